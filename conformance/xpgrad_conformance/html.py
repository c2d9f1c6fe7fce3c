"""The report as one self-contained HTML page: a matrix of groups and targets, and below it every contract with its results.

The page works without scripts (it uses links and <details>); its script adds a filter. Each mark has a word as well as a colour, for
readers who use a screen reader or cannot tell the colours apart. This module shares no code with the core's pages, because the suite's
report must not depend on the library that it judges.
"""

from __future__ import annotations

from collections import Counter
from html import escape
from importlib.resources import files

from xpgrad_conformance.catalogue import LEVELS, groups, pages, rules
from xpgrad_conformance.contract import contracts
from xpgrad_conformance.engine import STATUSES, Result
from xpgrad_conformance.render import reasons, spans
from xpgrad_conformance.report import Report, Target

__all__ = ["page"]

_MARKS = {"passed": "✓", "failed": "✗", "unexpected pass": "!", "expected failure": "~", "not run": "–", "absent": "·"}
_CLASSES = {"passed": "ok", "failed": "bad", "unexpected pass": "bad", "expected failure": "known", "not run": "off", "absent": "off"}


def _asset(name: str) -> str:
    """Read a file next to this one."""
    return files("xpgrad_conformance").joinpath(name).read_text(encoding="utf-8")


def _prose(text: str) -> str:
    """Return a rule's text as HTML, with the parts between backticks as code."""
    return "".join(f"<code>{escape(part)}</code>" if n % 2 else escape(part) for n, part in enumerate(text.split("`")))


def page(report: Report) -> str:
    """Return a report as an HTML page that includes its style and script, so that it needs no other files."""
    parts = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<title>xpgrad conformance</title><style>{_asset('report.css')}</style></head><body>",
        "<h1>xpgrad conformance</h1>",
        f"<p>xpgrad {escape(report.suite)}, profile {escape(report.profile)}, Python {escape(report.python)}, "
        f"{escape(report.platform)}, {escape(report.date)}. "
        "Each contract checks one promise of PyTorch's autograd documentation.</p>",
        _legend(),
        "<main>",
        _targets(report),
        _matrix(report),
        _not_run(report),
        '<h2 id="contracts">Contracts</h2>',
        '<div class="filter" hidden><label>Find <input type="search" id="text" placeholder="id or words"></label> '
        '<label><input type="checkbox" id="only"> only what did not pass everywhere</label> '
        '<span id="said" role="status" class="sr"></span></div>',
        *(_group(report, letter) for letter in groups()),
        "</main>",
        f"<script>{_asset('report.js')}</script></body></html>\n",
    ]
    return "\n".join(parts)


def _legend() -> str:
    marks = " ".join(f'<span class="{_CLASSES[s]}">{_MARKS[s]} {s}</span>' for s in STATUSES)
    return f'<p class="marks" style="white-space:normal">{marks}</p>'


def _targets(report: Report) -> str:
    head = "".join(f'<th scope="col">{t}</th>' for t in ("target", "library", "verdict", *LEVELS))
    body = []
    for target in report.targets:
        verdict, kind = (target.verdict, "off" if target.cause else "ok" if target.conforms else "bad")
        cells = "".join(f"<td>{_fraction(target.counts(level=level))}</td>" for level in LEVELS)
        body.append(
            f'<tr><th scope="row">{escape(target.label)}</th><td>{escape(target.library) or "–"}</td>'
            f'<td class="{kind}">{verdict}</td>{cells}</tr>'
        )
    causes = "".join(f"<p>{escape(t.label)} could not be run: {_prose(t.cause)}</p>" for t in report.targets if t.cause)
    return (
        f'<h2>Targets</h2><div class="scroll" tabindex="0" role="region" aria-label="targets"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div><p>Contracts passed / run.</p>{causes}"
    )


def _fraction(counts: Counter[str]) -> str:
    ran = sum(n for status, n in counts.items() if status != "not run")
    return f"{counts['passed']}/{ran}" if ran else "–"


def _matrix(report: Report) -> str:
    head = "".join(f'<th scope="col">{escape(t.label)}</th>' for t in report.targets)
    rows = []
    for letter, title in groups().items():
        cells = []
        for target in report.targets:
            counts = target.counts(group=letter)
            bad = counts["failed"] + counts["unexpected pass"]
            ran = sum(n for status, n in counts.items() if status != "not run")
            kind = "bad" if bad else "off" if not ran else "known" if counts["expected failure"] else "ok"
            text = (
                "– not run"
                if not ran
                else f"✗ {bad} of {ran} failed"
                if bad
                else f"{'~' if kind == 'known' else '✓'} {counts['passed']}/{ran}"
            )
            words = ", ".join(f"{n} {status}" for status, n in counts.most_common())
            label = escape(f"{title} on {target.label}: {words}")
            cells.append(f'<td class="{kind}"><a href="#group-{letter}" aria-label="{label}" title="{label}">{text}</a></td>')
        rows.append(f'<tr><th scope="row"><a href="#group-{letter}">{letter}. {escape(title)}</a></th>{"".join(cells)}</tr>')
    return (
        '<h2>By group</h2><div class="scroll" tabindex="0" role="region" aria-label="results by group"><table>'
        f'<thead><tr><th scope="col">group</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _not_run(report: Report) -> str:
    parts = ['<h2 id="not-run">What did not run</h2>']
    for target in report.targets:
        found = reasons(target)
        total = sum(len(ids) for _, ids in found)
        lines = "".join(f"<dt>{escape(reason)}</dt><dd>{escape(spans(ids))}</dd>" for reason, ids in found)
        parts.append(
            f'<details><summary>{escape(target.label)}: <b>{total}</b> not run</summary><div class="body"><dl>{lines}</dl></div></details>'
        )
    return "".join(parts)


def _group(report: Report, letter: str) -> str:
    tables = [(t, {r.id: r for r in t.rows}) for t in report.targets]
    body = "".join(_contract(rule.id, tables) for rule in rules().values() if rule.group == letter)
    return f'<section class="group" id="group-{letter}"><h3>{letter}. {escape(groups()[letter])}</h3>{body}</section>'


def _contract(name: str, tables: list[tuple[Target, dict[str, Result]]]) -> str:
    rule, contract = rules()[name], contracts().get(name)
    found = [(target, rows.get(name, Result(name, "absent"))) for target, rows in tables]
    statuses = {row.status for target, row in found if not target.cause}  # a target that could not be run has no results
    state = "ok" if statuses <= {"passed"} else "bad" if statuses & {"failed", "unexpected pass"} else "known"
    marks = "".join(
        f'<span class="{_CLASSES[row.status]}" title="{escape(target.label)}: {row.status}" aria-hidden="true">{_MARKS[row.status]}</span>'
        for target, row in found
    )
    spoken = "; ".join(f"{target.label} {row.status}" for target, row in found)
    sources = "; ".join(
        f'<a href="{escape(p.url)}">{escape(p.title)}</a>' if p.url else escape(p.title) for p in (pages()[k] for k in rule.source)
    )
    facts = [("Source", sources + ("" if rule.checked_on_pytorch else " (documentation only)"))]
    facts += [(key, _prose(text)) for key, text in (("Detail", rule.detail), ("Policy", rule.policy)) if text]
    if contract is not None and contract.requires:
        facts.append(("Requires", escape(", ".join(contract.requires))))
    for target, row in found:
        if row.left_out:
            facts.append((escape(target.label), _prose(f"left out: {row.left_out}")))
        if row.status in ("passed", "absent"):
            continue
        kind = f" ({escape(row.kind)})" if row.kind else ""
        text = f'<span class="{_CLASSES[row.status]}">{_MARKS[row.status]} {row.status}</span>{kind} {_prose(row.reason)}'
        text += "".join(
            f"<pre>{escape(part)}</pre>" for part in (row.message, row.trace, f"drawn: {row.example}" if row.example else "") if part
        )
        facts.append((escape(target.label), text))
    listed = "".join(f"<dt>{key}</dt><dd>{text}</dd>" for key, text in facts)
    search = escape(f"{name} {rule.level} {rule.rule}".lower())
    return (
        f'<details class="contract" id="{name}" data-state="{state}" data-text="{search}"><summary><span class="id">{name}</span>'
        f'<span class="level">{rule.level}</span><span class="marks">{marks}</span><span class="sr">{escape(spoken)}</span> '
        f"{_prose(rule.rule)}</summary>"
        f'<div class="body"><dl>{listed}</dl></div></details>'
    )
