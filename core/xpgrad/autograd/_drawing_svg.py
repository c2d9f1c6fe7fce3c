"""The layout of a drawn graph and its SVG, after K. Sugiyama, S. Tagawa, M. Toda (1981): layers, an order in each, coordinates, curves.

A layer is as deep as the longest path from a result. An edge that spans several layers goes through a point in each layer between, which
all edges from the same output share; points are ordered and placed together with the boxes.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from html import escape
from typing import Any

__all__ = ["svg_text"]

_CHARACTER, _LINE, _PAD = 7.25, 16.0, 10.0  # of a monospaced font of 12 pixels
_BESIDE, _BETWEEN, _MARGIN = 22.0, 44.0, 16.0
_NUMBERS = 11.0  # the line of the outputs' numbers
_ROW = 1400.0  # boxes of one layer are together no wider than this; others go to a layer further up
_SWEEPS = 10


class _Box:
    """A node, or a point on the way of an edge, in the layout."""

    __slots__ = ("above", "below", "height", "layer", "place", "vertex", "width", "x")

    def __init__(self, vertex: int, layer: int, width: float, height: float) -> None:
        self.vertex, self.layer, self.width, self.height = vertex, layer, width, height  # vertex: -1 for a point
        self.x = 0.0  # of its middle
        self.place = 0
        # Lines to the next layer up and down: (box, x of this end from the middle of this box, x of the other end from the other's).
        self.above: list[tuple[_Box, float, float]] = []
        self.below: list[tuple[_Box, float, float]] = []


def svg_text(vertices: list[Any], arrows: list[Any], max_nodes: int) -> str:
    """The picture of the first `max_nodes` nodes, and of the edges between these.

    Parameters
    ----------
    vertices : list of Vertex
    arrows : list of Arrow
    max_nodes : int
    """
    shown = min(len(vertices), max_nodes)
    hidden: dict[int, list[int]] = {}  # operands whose node is left out
    inner = []
    for a in arrows:
        if a.target < shown:
            if a.source < shown:
                inner.append(a)
            else:
                hidden.setdefault(a.target, []).append(a.operand)
    sizes = []
    for v in vertices[:shown]:
        sizes.append((max(map(len, v.lines)) * _CHARACTER + 2 * _PAD, len(v.lines) * _LINE + _PAD + (_NUMBERS if v.outputs > 1 else 0.0)))
    operands = [0] * shown
    for a in arrows:
        if a.target < shown:
            operands[a.target] = max(operands[a.target], a.operand + 1)
    layers, boxes = _layered(shown, inner, sizes)
    _connect(layers, boxes, inner, vertices, operands)
    _order(layers)
    _place(layers)
    return _drawn(layers, boxes, vertices, inner, hidden, operands)


def _layered(shown: int, arrows: list[Any], sizes: list[tuple[float, float]]) -> tuple[list[list[_Box]], list[_Box]]:
    """A box for each node, and the boxes of each layer: layer 0 has the results, operands are further up than what uses them."""
    sources: list[list[int]] = [[] for _ in range(shown)]
    waiting = [0] * shown
    for a in arrows:
        sources[a.target].append(a.source)
        waiting[a.source] += 1
    least = [0] * shown
    widths: list[float] = []
    layers: list[list[_Box]] = []
    boxes: list[Any] = [None] * shown
    ready = [k for k in range(shown) if not waiting[k]]
    for k in ready:  # NB: grows while it is walked
        width, height = sizes[k]
        layer = least[k]
        while layer < len(layers) and widths[layer] + width > _ROW:
            layer += 1
        while layer >= len(layers):
            layers.append([])
            widths.append(0.0)
        boxes[k] = _Box(k, layer, width, height)
        layers[layer].append(boxes[k])
        widths[layer] += width + _BESIDE
        # From both sides inwards: if a layer gets too wide for all, those in the middle go further up.
        for source in [s for pair in zip(sources[k], sources[k][::-1]) for s in pair][: len(sources[k])]:
            least[source] = max(least[source], layer + 1)
            waiting[source] -= 1
            if not waiting[source]:
                ready.append(source)
    return layers, boxes


def _port(width: float, k: int, count: int) -> float:
    """Where the k-th of several ends meets a side of a box, from its middle."""
    return width * ((k + 1) / (count + 1) - 0.5)


def _connect(layers: list[list[_Box]], boxes: list[_Box], arrows: list[Any], vertices: list[Any], operands: list[int]) -> None:
    """Join boxes of neighbouring layers, through points in the layers between."""
    chains: dict[tuple[int, int], list[tuple[_Box, float]]] = {}  # by output: its end in each layer, downwards
    for a in arrows:
        source, target = boxes[a.source], boxes[a.target]
        start = _port(source.width, a.number, vertices[a.source].outputs)
        chain = chains.setdefault((a.source, a.number), [(source, start)])
        while source.layer - len(chain) > target.layer:
            point = _Box(-1, source.layer - len(chain), 2.0, 0.0)
            layers[point.layer].append(point)
            upper, at = chain[-1]
            _join(upper, at, point, 0.0)
            chain.append((point, 0.0))
        end = _port(target.width, a.operand, operands[a.target])
        upper, start = chain[source.layer - target.layer - 1]
        _join(upper, start, target, end)


def _join(upper: _Box, start: float, lower: _Box, end: float) -> None:
    upper.below.append((lower, start, end))
    lower.above.append((upper, end, start))


def _number(layer: list[_Box]) -> None:
    for k, box in enumerate(layer):
        box.place = k


def _order(layers: list[list[_Box]]) -> None:
    """Order each layer by the barycentres of what it is joined to, up and down in turn; the order with the fewest crossings stays."""
    for layer in layers:
        _number(layer)
    best, fewest = [list(layer) for layer in layers], _crossings(layers)
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        upwards = sweep % 2 == 0
        for layer in layers[1:] if upwards else layers[-2::-1]:
            keys = {}
            for box in layer:
                ends = box.below if upwards else box.above
                # Ends at different ports of one box are told apart, too.
                keys[box] = sum(o.place + at / (o.width + 1.0) for o, _, at in ends) / len(ends) if ends else float(box.place)
            layer.sort(key=keys.__getitem__)
            _number(layer)
        found = _crossings(layers)
        if found < fewest:
            best, fewest = [list(layer) for layer in layers], found
    for layer, kept in zip(layers, best):
        layer[:] = kept
        _number(layer)


def _crossings(layers: list[list[_Box]]) -> int:
    """How many pairs of lines between neighbouring layers cross."""
    count = 0
    for layer in layers:
        ends = sorted((box.place, at, o.place, there) for box in layer for o, at, there in box.below)
        passed: list[tuple[int, float]] = []
        for _, _, place, there in ends:
            k = bisect.bisect_right(passed, (place, there))
            count += len(passed) - k
            passed.insert(k, (place, there))
    return count


def _place(layers: list[list[_Box]]) -> None:
    """Give boxes their x: near what they are joined to, points above all, so that long edges are straight."""
    for layer in layers:
        _spread(layer, [0.0] * len(layer), [1.0] * len(layer))
    for sweep in range(2 * _SWEEPS):
        down = sweep % 2 == 1
        for layer in reversed(layers) if down else layers:
            wishes, weights = [], []
            for box in layer:
                ends = (box.above or box.below) if down else (box.below or box.above)
                if sweep >= 2 * _SWEEPS - 2:
                    ends = box.above + box.below
                wishes.append(sum(o.x + there - at for o, at, there in ends) / len(ends) if ends else box.x)
                weights.append(0.2 + len(ends) if box.vertex >= 0 else 8.0)
            _spread(layer, wishes, weights)


def _spread(layer: list[_Box], wishes: list[float], weights: list[float]) -> None:
    """Put the boxes of a layer as near to where they wish to be as their order and widths allow, in least squares.

    That is isotonic regression, by pooling adjacent violators (M. Ayer et al., 1955).
    """
    offsets, offset = [], 0.0
    for k, box in enumerate(layer):
        if k:
            left = layer[k - 1]
            gap = _BESIDE if left.vertex >= 0 and box.vertex >= 0 else _BESIDE * (0.5 if left.vertex >= 0 or box.vertex >= 0 else 0.4)
            offset += (left.width + box.width) / 2 + gap
        offsets.append(offset)
    pools: list[tuple[float, float, int]] = []  # (mean, weight, how many)
    for wish, weight, offset in zip(wishes, weights, offsets):
        pool = (wish - offset, weight, 1)
        while pools and pools[-1][0] >= pool[0]:
            mean, other, count = pools.pop()
            total = other + pool[1]
            pool = ((mean * other + pool[0] * pool[1]) / total, total, count + pool[2])
        pools.append(pool)
    k = 0
    for mean, _, count in pools:
        for _ in range(count):
            layer[k].x = mean + offsets[k]
            k += 1


def _drawn(layers: list[list[_Box]], boxes: list[_Box], vertices: list[Any], arrows: list[Any], hidden: Any, operands: list[int]) -> str:
    """The SVG of boxes that have their places."""
    from xpgrad.autograd._drawing import COLOURS, EDGE_COLOUR, TEXT_COLOUR  # loads late

    left = min(b.x - b.width / 2 for layer in layers for b in layer) - _MARGIN
    right = max(b.x + b.width / 2 for layer in layers for b in layer) + _MARGIN
    tops: list[float] = [0.0] * len(layers)
    heights = [max((b.height for b in layer), default=0.0) for layer in layers]
    notes = []
    if len(vertices) > len(boxes):
        notes.append(f"{len(boxes)} of {len(vertices)} nodes are shown, those nearest the results; dashed lines lead to the others.")
        notes.append("All are in `.dot` and `.mermaid`; `max_nodes=` shows more here.")
    note_width = max((len(line) * _CHARACTER + 2 * _PAD for line in notes), default=0.0)
    y = _MARGIN + (len(notes) * _LINE + _PAD + _MARGIN if notes else 0.0) + (_BETWEEN / 2 if hidden else 0.0)
    for k in reversed(range(len(layers))):
        tops[k] = y
        # Lines that go far to the side need room to do so.
        reach = max((abs(b.x + at - o.x - there) for b in layers[k] for o, at, there in b.below), default=0.0)
        y += heights[k] + _BETWEEN + min(reach / 12, 60.0)
    height = y - _BETWEEN + _MARGIN
    width = max(right - left, note_width + 2 * _MARGIN)
    left -= (width - (right - left)) / 2

    def n(value: float) -> str:
        return f"{value:.1f}".removesuffix(".0")

    def top(box: _Box) -> float:
        """Boxes stand in the middle of their layer."""
        return tops[box.layer] + (heights[box.layer] - box.height) / 2

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{n(width)}" height="{n(height)}" viewBox="{n(left)} 0 {n(width)} {n(height)}" '
        f'role="img" font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="12">\n',
        f"<title>The recorded graph: {len(vertices)} nodes</title>\n",
        f'<g fill="none" stroke="{EDGE_COLOUR}" stroke-width="1.3">\n',
    ]
    heads = []
    for layer in layers:
        for b in layer:
            for o, at, there in b.below:
                x0, x1 = b.x + at, o.x + there
                y0, y1 = tops[b.layer] + heights[b.layer], tops[o.layer]
                start = top(b) + b.height if b.vertex >= 0 else tops[b.layer]
                end = top(o) - 5 if o.vertex >= 0 else tops[o.layer]
                middle = (y0 + y1) / 2
                out.append(
                    f'<path d="M{n(x0)} {n(start)}V{n(y0)}C{n(x0)} {n(middle)} {n(x1)} {n(middle)} {n(x1)} {n(y1 - 5)}V{n(end)}"/>\n'
                )
                if o.vertex >= 0:
                    heads.append(f"M{n(x1)} {n(top(o))}l-3.5 -7h7z")
    for k, found in sorted(hidden.items()):
        b = boxes[k]
        for operand in found:
            x = b.x + _port(b.width, operand, operands[k])
            out.append(f'<path d="M{n(x)} {n(top(b) - _BETWEEN / 2)}V{n(top(b))}" stroke-dasharray="3 3"/>\n')
    out.append("</g>\n")
    if heads:
        out.append(f'<path d="{"".join(heads)}" fill="{EDGE_COLOUR}"/>\n')
    for k, (b, v) in enumerate(zip(boxes, vertices)):
        fill, stroke = COLOURS[v.kind]
        border, dash = 2.5 if v.kind == "result" else 1.3, ' stroke-dasharray="5 3"' if v.freed else ""
        out.append(f'<g data-node="{k}"><title>{escape(chr(10).join(v.lines))}</title>')
        out.append(
            f'<rect x="{n(b.x - b.width / 2)}" y="{n(top(b))}" width="{n(b.width)}" height="{n(b.height)}" '
            f'rx="{12 if v.kind == "leaf" else 3}" fill="{fill}" stroke="{stroke}" stroke-width="{border}"{dash}/>'
        )
        out.append(_text(v.lines, b.x, top(b) + _PAD / 2, TEXT_COLOUR))
        if v.outputs > 1:
            for number in sorted({a.number for a in arrows if a.source == k}):
                x = b.x + _port(b.width, number, v.outputs)
                place = f'x="{n(x)}" y="{n(top(b) + b.height - 4)}"'
                out.append(f'<text {place} font-size="10" text-anchor="middle" fill="{TEXT_COLOUR}">{number}</text>')
        out.append("</g>\n")
    if notes:
        x, fill = left + width / 2, COLOURS["operation"][0]
        out.append(
            f'<g><rect x="{n(x - note_width / 2)}" y="{n(_MARGIN)}" width="{n(note_width)}" height="{n(len(notes) * _LINE + _PAD)}" '
            f'fill="{fill}"/>{_text(notes, x, _MARGIN + _PAD / 2, TEXT_COLOUR)}</g>\n'
        )
    out.append("</svg>\n")
    return "".join(out)


def _text(lines: Iterable[str], x: float, y: float, colour: str) -> str:
    spans = "".join(f'<tspan x="{x:.1f}" y="{y + (k + 0.75) * _LINE:.1f}">{escape(line)}</tspan>' for k, line in enumerate(lines))
    return f'<text text-anchor="middle" fill="{colour}" xml:space="preserve">{spans}</text>'
