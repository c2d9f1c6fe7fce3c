"""Draw the operations of an audit, with values that left the graph in red, and a curve of the strength of gradients."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from xpgrad._audit.findings import Finding
from xpgrad._audit.running import Outcome
from xpgrad.autograd._drawing_parts import Arrow, Vertex
from xpgrad.autograd._drawing_svg import svg_text

#: The maximum number of operations that are drawn.
DRAWN = 150


def graph_svg(base: Outcome, labels: list[str], findings: tuple[Finding, ...], entries: list[int]) -> str:
    """Draw the operations as an SVG element, with inputs at the top.

    Parameters
    ----------
    base : Outcome
        A run with its operations.
    labels : list of str
        The names of the inputs.
    findings : tuple of Finding
    entries : list of int
        The numbers of operations with a constant operand that depends on an input.
    """
    trace = base.trace
    lost = {(f.kind, f.place) for f in findings if f.group == "paths" and f.severity == "error"}
    broken = [b for b in trace.breaks if (b.kind, b.place) in lost]
    results = {id(o) for o in base.outputs}
    vertices: list[Vertex] = []
    number: dict[Any, int] = {}
    # The operations nearest the results come first: if there are too many, only these are drawn.
    exits: dict[Any, int] = {b.group: b.number for b in reversed(broken) if b.number in trace.exits}
    order: list[tuple[float, str, int]] = [(float(i), "event", i) for i in range(len(trace.events))]
    order += [(trace.breaks[n].before - 0.5, "exit", n) for n in exits.values()]
    for _, kind, i in sorted(order, reverse=True):
        number[kind, i] = len(vertices)
        if kind == "exit":
            b = trace.breaks[i]
            at = "" if b.place is None else f"line {b.place.line}"
            vertices.append(Vertex("broken", tuple(line for line in (b.call, at) if line), 1, True))
            continue
        event = trace.events[i]
        at = "" if event.place is None else f"line {event.place.line}"
        shape = f"{tuple(event.outs[0].shape)}" if event.outs else ""
        cut = any(b.before == i and b.number not in trace.exits for b in broken)
        kind = "broken" if cut else "result" if any(id(o) in results for o in event.outs) else "custom" if event.function else "operation"
        vertices.append(Vertex(kind, tuple(line for line in (event.name, shape, at) if line), 1, cut))
    for k, (label, x) in enumerate(zip(labels, base.inputs)):
        number["input", k] = len(vertices)
        vertices.append(Vertex("leaf", (label, str(tuple(x.shape))), 1, False))
    sources = {id(x): ("input", k) for k, x in enumerate(base.inputs)}
    arrows: list[Arrow] = []
    for i, event in enumerate(trace.events):
        target = number["event", i]
        feeding: list[Any] = [sources[id(x)] for x in event.tensors if id(x) in sources]
        for x in event.tensors:
            came = trace.came.get(id(x))
            if came is not None:
                group = trace.breaks[came].group
                feeding.append(("exit", exits[group]) if group in exits else None)
        if i in entries:
            feeding += [("exit", n) for n in exits.values() if trace.breaks[n].before <= i and not _is_tensor(trace, n)]
        feeding = [f for f in dict.fromkeys(feeding) if f is not None]
        arrows += [Arrow(number[f], 0, target, k) for k, f in enumerate(feeding)]
        for o in event.outs:
            sources[id(o)] = ("event", i)
    for n in exits.values():
        made = sources.get(id(trace.exits[n]))
        if made is not None:
            arrows.append(Arrow(number[made], 0, number["exit", n], 0))
    return svg_text(vertices, arrows, DRAWN) if vertices else ""


def _is_tensor(trace: Any, number: int) -> bool:
    return number in trace.came.values()


def curve_svg(base: Outcome, curve: list[tuple[int, float]]) -> str:
    """Draw how strongly the result depends on each value, in the order of the backward pass, on a log scale; empty below 3 points."""
    points = [(k, math.log10(s), base.trace.events[i]) for k, (i, s) in enumerate(curve) if s > 0 and math.isfinite(s)]
    if len(points) < 3:
        return ""
    low, high = math.floor(min(y for _, y, _ in points)), math.ceil(max(y for _, y, _ in points))
    high = max(high, low + 1)
    width, height, left, top = 860.0, 220.0, 60.0, 12.0
    last = max(k for k, _, _ in points) or 1

    def at(k: float, y: float) -> tuple[float, float]:
        return left + (width - left - 16) * k / last, top + (height - top - 40) * (high - y) / (high - low)

    step = max(1, (high - low + 5) // 6)
    grid = "".join(
        f'<line x1="{left}" x2="{width - 16}" y1="{at(0, y)[1]:.1f}" y2="{at(0, y)[1]:.1f}" class="grid"/>'
        f'<text x="{left - 8}" y="{at(0, y)[1] + 4:.1f}" text-anchor="end">1e{y}</text>'
        for y in range(low, high + 1, step)
    )
    line = " ".join(f"{at(k, y)[0]:.1f},{at(k, y)[1]:.1f}" for k, y, _ in points)
    dots = "".join(
        f'<circle cx="{at(k, y)[0]:.1f}" cy="{at(k, y)[1]:.1f}" r="3"><title>{_title(event)}: {10**y:.3g}</title></circle>'
        for k, y, event in points
    )
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="dependence by depth" class="curve">{grid}'
        f'<polyline points="{line}"/>{dots}<text x="{width / 2}" y="{height - 8}" text-anchor="middle">'
        f"operations, in the order of the backward (the result on the left)</text></svg>"
    )


def _title(event: Any) -> str:
    return escape(event.name if event.place is None else f"{event.name}, line {event.place.line}")
