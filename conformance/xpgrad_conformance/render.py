"""A report as text for a terminal, Markdown, JUnit XML and a badge; the page for a browser is in `html`."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from xml.sax.saxutils import escape

from xpgrad_conformance.catalogue import LEVELS, groups, pages, rules
from xpgrad_conformance.engine import tally
from xpgrad_conformance.report import Report, Target

__all__ = ["badge", "junit", "markdown", "reasons", "terminal"]


#: How a failure is headed in a terminal, by its kind.
_HEADS = {"timeout": "TIMED OUT", "crash": "CRASHED"}


def _cell(counts: Counter[str]) -> str:
    """Return the text of a cell: ``passed/ran``, and the number of failures if there are any."""
    ran = sum(n for status, n in counts.items() if status != "not run")
    if not ran:
        return "not run" if counts else ""
    bad = counts["failed"] + counts["unexpected pass"]
    return f"{counts['passed']}/{ran}" + (f" FAIL {bad}" if bad else "")


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def reasons(target: Target) -> list[tuple[str, list[str]]]:
    """Return the reasons why contracts did not run, each with the ids of its contracts, the most frequent reason first."""
    found: dict[str, list[str]] = {}
    for row in target.rows:
        if row.status == "not run":
            found.setdefault(row.reason, []).append(row.id)
    return sorted(found.items(), key=lambda item: -len(item[1]))


def spans(ids: Iterable[str]) -> str:
    """Join ids, and shorten runs of consecutive ones: ``SAV-01..03, SAV-07``."""
    order = {name: n for n, name in enumerate(rules())}
    found = []
    for _, run in itertools.groupby(enumerate(sorted(ids, key=order.__getitem__)), key=lambda p: (order[p[1]] - p[0], p[1][:3])):
        names = [name for _, name in run]
        found.append(names[0] if len(names) == 1 else f"{names[0]}..{names[-1][4:]}" if len(names) > 2 else ", ".join(names))
    return ", ".join(found)


def terminal(report: Report) -> str:
    """Return the text that the command line prints: the matrix, the failures, and the reasons why contracts or cases did not run."""
    targets = report.targets
    out = [f"xpgrad {report.suite} conformance, profile {report.profile}, Python {report.python}: contracts passed / run", ""]
    head = ["group", *(t.label for t in targets)]
    body = [[f"{letter}. {title}", *(_cell(t.counts(group=letter)) for t in targets)] for letter, title in groups().items()]
    levels = [[level, *(_cell(t.counts(level=level)) for t in targets)] for level in LEVELS]
    out += _table([head, *(row for row in body if any(row[1:])), ["-" * 5] * len(head), *levels])
    for target in targets:
        out += ["", f"== {target.label} ({target.library or 'no library'}): {tally(target.counts())}"]
        if target.cause:
            out.append(f"COULD NOT BE RUN  {target.cause}")
            continue
        for row in target.failures:
            heading = _HEADS.get(row.kind, "FAILED") if row.status == "failed" else "UNEXPECTED PASS"
            out.append(f"{heading}  {row.id} [{rules()[row.id].level}] {rules()[row.id].rule}")
            out += [f"        {line}" for line in (row.message or row.reason).splitlines()[:12]]
            out += [f"        drawn: {row.example}"] * bool(row.example)
        kinds: dict[tuple[str, str], list[str]] = {}
        for row in target.rows:
            if row.status == "expected failure":
                kinds.setdefault((row.kind, row.reason), []).append(row.id)
        out += [f"EXPECTED FAILURE ({kind})  {spans(ids)}: {reason}" for (kind, reason), ids in kinds.items()]
        out += [f"LEFT OUT  {row.id}: {row.left_out}" for row in target.rows if row.left_out]
        out += [f"NOT RUN  {spans(ids)}: {reason}" for reason, ids in reasons(target)]
        out.append(target.verdict.replace("does not", "does NOT"))
    return "\n".join(out) + "\n"


def markdown(report: Report, title: str = "Conformance") -> str:
    """Return the report as a page of Markdown."""
    targets = report.targets
    out = [f"# {title}", ""]
    out += [f"xpgrad {report.suite}, profile `{report.profile}`, Python {report.python}, {report.platform}, {report.date}.", ""]
    out += ["| target | library | " + " | ".join(LEVELS) + " | expected failures | not run | |", "|---" * (len(LEVELS) + 5) + "|"]
    for t in targets:
        counts = t.counts()
        verdict = t.verdict if t.cause or t.conforms else f"**{t.verdict}**"
        levels = " | ".join(_cell(t.counts(level=level)) or "-" for level in LEVELS)
        out.append(f"| {t.label} | {t.library or '-'} | {levels} | {counts['expected failure']} | {counts['not run']} | {verdict} |")
    out += [
        "",
        "Contracts passed / run, by group:",
        "",
        "| group | " + " | ".join(t.label for t in targets) + " |",
        "|---" * (len(targets) + 1) + "|",
    ]
    for letter, name in groups().items():
        out.append(f"| {letter}. {name} | " + " | ".join(_cell(t.counts(group=letter)) or "-" for t in targets) + " |")
    for t in targets:
        out += ["", f"## {t.label}", ""]
        if t.cause:
            out += [f"Could not be run: {t.cause}"]
            continue
        for row in t.failures:
            out += [f"* **{row.status}** {row.id}: {rules()[row.id].rule} `{(row.message or row.reason).splitlines()[0]}`"]
        kinds: dict[tuple[str, str], list[str]] = {}
        for row in t.rows:
            if row.status == "expected failure":
                kinds.setdefault((row.kind, row.reason), []).append(row.id)
        out += [f"* expected failure ({kind}) {spans(ids)}: {reason}" for (kind, reason), ids in kinds.items()]
        out += [f"* left out {row.id}: {row.left_out}" for row in t.rows if row.left_out]
        out += [f"* not run {spans(ids)}: {reason}" for reason, ids in reasons(t)]
    return "\n".join(out) + "\n"


def junit(report: Report) -> str:
    """Return the report as JUnit XML, with a test suite for each target."""
    root = ET.Element("testsuites", name="xpgrad conformance")
    for t in report.targets:
        counts = t.counts()
        skipped = counts["not run"] + counts["expected failure"]
        bad = counts["failed"] + counts["unexpected pass"]
        suite = ET.SubElement(root, "testsuite", name=t.label, tests=str(len(t.rows)), failures=str(bad), skipped=str(skipped), errors="0")
        for row in t.rows:
            case = ET.SubElement(
                suite, "testcase", classname=f"xpgrad_conformance.{rules()[row.id].group}", name=row.id, time=f"{row.seconds:.3f}"
            )
            if row.status in ("failed", "unexpected pass"):
                failure = ET.SubElement(case, "failure", message=_xml((row.message or row.reason).splitlines()[0]), type=row.status)
                failure.text = _xml("\n".join(filter(None, [rules()[row.id].rule, row.message, row.trace, row.example])))
            elif row.status in ("not run", "expected failure"):
                ET.SubElement(case, "skipped", message=_xml(f"{row.status}: {row.reason}"))
            if row.left_out:
                ET.SubElement(case, "system-out").text = _xml(f"left out: {row.left_out}")
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """Return the text without the control characters that XML does not allow."""
    return "".join(c for c in text if c in "\t\n" or ord(c) >= 32)


def badge(report: Report) -> str:
    """Return an SVG badge that shows how many MUST contracts the first target passes."""
    target = report.targets[0]
    counts = target.counts(level="MUST")
    ran = sum(n for status, n in counts.items() if status != "not run")
    text = "not run" if not ran else f"{counts['passed']}/{ran} MUST"
    color = "#6e7781" if not ran else "#1a7f37" if target.conforms else "#cf222e"
    name = f"xpgrad on {target.label}"
    label = f"{escape(name)}: {escape(text)}"
    left, right = 12 + 6.3 * len(name), 12 + 6.3 * len(text)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right:.0f}" height="20" role="img" aria-label="{label}">'
        f"<title>{label}</title>"
        f'<rect width="{left:.0f}" height="20" fill="#24292f"/><rect x="{left:.0f}" width="{right:.0f}" height="20" fill="{color}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="6" y="14">{escape(name)}</text><text x="{left + 6:.0f}" y="14">{escape(text)}</text></g></svg>\n'
    )


def sources(keys: Iterable[str]) -> str:
    """Return the titles of the pages that a rule comes from, as one text."""
    return "; ".join(pages()[key].title for key in keys)
