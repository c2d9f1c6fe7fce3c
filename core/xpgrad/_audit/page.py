"""The page of an audit: findings with the user's lines, the source with marks in its margin, the graph, and the saved memory. The
page is self-contained."""

from __future__ import annotations

import linecache
from html import escape
from typing import Any

from xpgrad._audit.findings import SEVERITIES, Finding
from xpgrad._audit.picture import curve_svg, graph_svg
from xpgrad._audit.places import Place, short
from xpgrad._audit.running import Outcome, host_of
from xpgrad._basics import pages
from xpgrad._basics.pages import prose, section
from xpgrad.autograd._drawing import bytes_text

_STYLE = """
.badge { display: inline-block; border-radius: 1em; padding: .1em .75em; font-weight: 600; font-size: .85em; }
.error .badge, .badge.error { color: var(--error); background: var(--error-soft); }
.warning .badge, .badge.warning { color: var(--warning); background: var(--warning-soft); }
.note .badge, .badge.note { color: var(--note); background: var(--note-soft); } .badge.ok { color: var(--ok); background: var(--ok-soft); }
.finding { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--line); border-radius: 8px;
  padding: .9rem 1.1rem; margin: .8rem 0; }
.finding.error { border-left-color: var(--error); } .finding.warning { border-left-color: var(--warning); }
.finding.note { border-left-color: var(--note); }
.finding h3 { font-size: 1rem; margin: 0 0 .3rem; } .finding h3 .badge { margin-right: .5em; }
.cure { border-top: 1px dashed var(--line); margin-top: .6rem; padding-top: .5rem; } .cure b { color: var(--ok); }
.source { background: var(--soft); border-radius: 6px; overflow-x: auto; padding: .5rem 0; margin: .6rem 0; }
.source div { display: flex; white-space: pre; padding-right: 1rem; } .source .n { width: 3.6rem; text-align: right; color: var(--faint);
  padding-right: .8rem; flex: none; user-select: none; } .source .m { width: 1.6rem; flex: none; text-align: center; font-weight: 700; }
.source div.error { background: var(--error-soft); } .source div.error .m { color: var(--error); }
.source div.warning { background: var(--warning-soft); } .source div.warning .m { color: var(--warning); }
.source div.note { background: var(--note-soft); } .source div.note .m { color: var(--note); }
th { font-weight: 600; color: var(--faint); font-size: .88em; } .number { text-align: right;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
#graph .scroll { max-height: 46rem; background: #ffffff; padding: .5rem; }
.bar { background: var(--note-soft); border-radius: 3px;
  height: .8em; display: inline-block; vertical-align: -1px; border: 1px solid var(--note); }
.curve { width: 100%; } .curve text { font: 12px system-ui, sans-serif; fill: var(--faint); }
.curve polyline { fill: none; stroke: var(--note); stroke-width: 2; } .curve circle { fill: var(--note); }
@media (max-width: 40rem) { table { display: block; overflow-x: auto; } }
"""
_MARKS = {"error": "✗", "warning": "!", "note": "·"}


def page(audit: Any, base: Outcome, curve: list[tuple[int, float]]) -> str:
    """Return the audit's report as an HTML page.

    Parameters
    ----------
    audit : Audit
    base : Outcome
        The first run.
    curve : list of (int, float)
        The result of `ranges.dependence`.
    """
    parts = [_head(audit), _inputs(audit), _findings(audit), _sources(audit, base), _graph(audit, base), _ranges(base, curve), _cost(audit)]
    return pages.page(f"Audit of {audit.name}", "<main>", *parts, "</main>", style=_STYLE)


def _head(audit: Any) -> str:
    counts = [(s, sum(f.severity == s for f in audit.findings)) for s in reversed(SEVERITIES)]
    badges = " ".join(f'<span class="badge {s}">{n} {s}{"s" if n != 1 else ""}</span>' for s, n in counts if n)
    badges = badges or '<span class="badge ok">nothing found</span>'
    return (
        f"<header><h1>Audit of <code>{escape(audit.name)}</code></h1>\n<p>{badges} "
        f'<span class="faint">{audit.operations} operations; the function ran {audit.runs} times</span></p></header>'
    )


def _inputs(audit: Any) -> str:
    rows = []
    for (name, g), x in zip(audit.gradients.items(), audit._problem.points):
        host = None if g is None else abs(host_of(g)).astype(float)
        norm = "none: the graph does not lead here" if host is None else f"{float((host**2).sum() ** 0.5):.6g}"
        rows.append(
            f"<tr><td><code>{escape(name)}</code></td><td>{tuple(x.shape)}</td><td>{x.dtype}</td><td>{x.device}</td>"
            f'<td class="number">{norm}</td></tr>'
        )
    return (
        "<table><thead><tr><th>input</th><th>shape</th><th>dtype</th><th>device</th>"
        '<th class="number">norm of its gradient</th></tr></thead>\n<tbody>' + "\n".join(rows) + "</tbody></table>"
    )


def _findings(audit: Any) -> str:
    return section("findings", "Findings", "\n".join(_finding(f) for f in audit.findings))


def _finding(f: Finding) -> str:
    of = f' <span class="faint">of {", ".join(f"<code>{escape(i)}</code>" for i in f.inputs)}</span>' if f.inputs else ""
    source = "" if f.place is None else _excerpt(f.place, {f.place.line: f.severity}, 2)
    others = [p for p in f.places[1:] if f.place is not None and p.file != f.place.file][-1:]
    called = "".join(f'<p class="faint">called from {_format_place(p)}: <code>{escape(p.text)}</code></p>' for p in others)
    at = "" if f.place is None else f'<p class="faint">{_format_place(f.place)}</p>'
    return (
        f'<article class="finding {f.severity}" data-kind="{f.kind}"><h3><span class="badge">{f.kind}</span>{prose(f.title)}{of}</h3>\n'
        f"<p>{prose(f.message)}</p>{at}{source}{called}\n"
        f'<p class="cure"><b>Cure:</b> {prose(f.cure)}</p></article>'
    )


def _format_place(p: Place) -> str:
    return f"<code>{escape(short(p.file))}</code>, line {p.line}, in <code>{escape(p.function)}</code>"


def _excerpt(place: Place, marks: dict[int, str], around: int, last: int | None = None) -> str:
    """Return the lines of a file from `place` to `last`, and `around` lines on each side, as HTML with marks in the margin."""
    lines = linecache.getlines(place.file)
    if not lines:
        return ""
    first, last = max(1, place.line - around), min(len(lines), (last or place.line) + around)
    out = []
    for n in range(first, last + 1):
        severity = marks.get(n, "")
        text = escape(lines[n - 1].rstrip("\n")) or " "
        out.append(
            f'<div class="{severity}"><span class="n">{n}</span><span class="m">{_MARKS.get(severity, "")}</span><span>{text}</span></div>'
        )
    return f'<div class="source code">{"".join(out)}</div>'


def _sources(audit: Any, base: Outcome) -> str:
    """Return the source of the user's functions that ran as HTML, with marks at the lines of findings."""
    spans: dict[tuple[str, str], list[int]] = {}
    marks: dict[str, dict[int, str]] = {}
    for event in base.trace.events:
        for p in event.places:
            spans.setdefault((p.file, p.function), []).append(p.line)
    for f in reversed(audit.findings):  # the worst comes last, and overwrites others on its line
        if f.place is not None:
            spans.setdefault((f.place.file, f.place.function), []).append(f.place.line)
            marks.setdefault(f.place.file, {})[f.place.line] = f.severity
    own = {f.place.file for f in audit.findings if f.place is not None} | {
        event.places[-1].file for event in base.trace.events[:1] if event.places
    }
    out = []
    for (file, function), lines in list(spans.items())[:12]:
        if file not in own or max(lines) - min(lines) > 200:
            continue
        excerpt = _excerpt(Place(file, min(lines), function), marks.get(file, {}), 1, max(lines))
        if excerpt:
            out.append(
                f'<p class="faint">{_format_place(Place(file, min(lines), function)).partition(", line")[0]}, '
                f"<code>{escape(function)}</code></p>{excerpt}"
            )
    return section("source", "Source", "".join(out))


def _graph(audit: Any, base: Outcome) -> str:
    svg = graph_svg(base, audit._problem.labels, audit.findings, audit._entries)
    said = "Inputs are blue, results green; where a gradient is lost, the value and what it leads to are red and dashed."
    return section("graph", "Graph", svg and f'<p class="faint">{said}</p><div class="scroll">{svg}</div>')


def _ranges(base: Outcome, curve: list[tuple[int, float]]) -> str:
    svg = curve_svg(base, curve)
    said = "The norm of each value times that of its gradient: how strongly the result depends on it."
    return section("ranges", "How far the gradient reaches", svg and f'<p class="faint">{said}</p>{svg}')


def _cost(audit: Any) -> str:
    cost = audit.cost
    if cost is None or not cost.total:
        return ""
    rows = []
    for k in cost.lines[:15]:
        at = "" if k.place is None else f"line {k.place.line}: <code>{escape(k.place.text)}</code>"
        share = 100 * k.bytes / cost.total
        rows.append(
            f'<tr><td class="number">{bytes_text(k.bytes)}</td><td><span class="bar" style="width:{max(2, share):.0f}px"></span></td>'
            f"<td><code>{escape(k.operation)}</code> × {k.nodes}</td><td>{at}</td></tr>"
        )
    advice = ""
    if cost.functions:
        name, freed, again = cost.functions[0]
        advice = (
            f"<p>A checkpoint around <code>{escape(name)}</code> would free up to {bytes_text(freed)}, and compute {again} "
            f"operations again.</p>"
        )
    inputs = f", {bytes_text(cost.inputs)} of it inputs" if cost.inputs else ""
    table = f"<table><tbody>{''.join(rows)}</tbody></table>"
    return section("cost", "Kept for the backward", f"<p>{bytes_text(cost.total)}{inputs}.</p>\n{table}{advice}")
