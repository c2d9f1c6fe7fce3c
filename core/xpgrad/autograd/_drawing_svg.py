"""Lay out a graph in layers and draw it as SVG, after K. Sugiyama, S. Tagawa and M. Toda (1981).

The layer of a node is the length of the longest path from a result. An edge that spans several layers has a bend in each layer between,
which all edges from the same output share. Bends are ordered and placed like boxes.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from html import escape
from typing import Any

from xpgrad.autograd._drawing_parts import BROKEN_COLOUR, COLOURS, EDGE_COLOUR, TEXT_COLOUR, Arrow, Vertex

_CHARACTER, _LINE, _PAD = 7.25, 16.0, 10.0  # for a monospaced font of 12 pixels
_BESIDE, _BETWEEN, _MARGIN = 22.0, 44.0, 16.0
_NUMBERS = 11.0  # the height of the line with the numbers of outputs
_ROW = 1400.0  # the maximum width of a layer; further boxes go to a layer above it
_SWEEPS = 10
_BROKEN = f' stroke="{BROKEN_COLOUR}" stroke-width="2" stroke-dasharray="6 4"'


class _Box:
    """A node in the layout, or a bend of an edge that crosses a layer."""

    __slots__ = ("above", "below", "broken", "height", "layer", "place", "vertex", "width", "x")

    def __init__(self, vertex: int, layer: int, width: float, height: float) -> None:
        self.vertex, self.layer, self.width, self.height = vertex, layer, width, height  # vertex: -1 for a bend
        self.x = 0.0  # the centre
        self.place = 0
        self.broken = False  # it stands for a node that is no longer part of the graph
        # Lines to the next layer up and down: (other box, offset of this end from the centre, offset of the other end from its centre).
        self.above: list[tuple[_Box, float, float]] = []
        self.below: list[tuple[_Box, float, float]] = []


def svg_text(vertices: list[Vertex], arrows: list[Arrow], max_nodes: int) -> str:
    """Return the SVG of the first `max_nodes` nodes and the edges between them.

    Parameters
    ----------
    vertices : list of Vertex
    arrows : list of Arrow
    max_nodes : int
    """
    shown = min(len(vertices), max_nodes)
    inner, hidden, operands = _edges_of(shown, arrows)
    layers, boxes = _layer_boxes(shown, inner, [_size(v) for v in vertices[:shown]])
    _connect(layers, boxes, inner, vertices, operands)
    _order(layers)
    _place(layers)
    sheet = _Sheet(layers, _notes(shown, len(vertices)), room_above=bool(hidden))
    return "".join(
        (
            sheet.head(len(vertices)),
            _lines(sheet, boxes, hidden, operands),
            *(_box(sheet, k, b, v, inner) for k, (b, v) in enumerate(zip(boxes, vertices))),
            sheet.notice(),
            "</svg>\n",
        )
    )


def _edges_of(shown: int, arrows: list[Arrow]) -> tuple[list[Arrow], dict[int, list[int]], list[int]]:
    """Split the edges into those between shown nodes, and those from hidden ones.

    Returns
    -------
    inner : list of Arrow
    hidden : dict
        For each node, the operands whose node is hidden.
    operands : list of int
        The number of operands of each node.
    """
    inner = []
    hidden: dict[int, list[int]] = {}
    operands = [0] * shown
    for a in arrows:
        if a.target < shown:
            operands[a.target] = max(operands[a.target], a.operand + 1)
            if a.source < shown:
                inner.append(a)
            else:
                hidden.setdefault(a.target, []).append(a.operand)
    return inner, hidden, operands


def _size(v: Vertex) -> tuple[float, float]:
    """Return the width and height of a node's box."""
    return max(map(len, v.lines)) * _CHARACTER + 2 * _PAD, len(v.lines) * _LINE + _PAD + (_NUMBERS if v.outputs > 1 else 0.0)


def _notes(shown: int, count: int) -> list[str]:
    """Return the lines of the notice above a picture that hides nodes; none if it shows all."""
    if shown == count:
        return []
    return [
        f"{shown} of {count} nodes are shown, those nearest the results; dashed lines lead to the others.",
        "All are in `.dot` and `.mermaid`; `max_nodes=` shows more here.",
    ]


def _layer_boxes(shown: int, arrows: list[Arrow], sizes: list[tuple[float, float]]) -> tuple[list[list[_Box]], list[_Box]]:
    """Return the layers of boxes and the box of each node: results are in layer 0, and operands in a higher layer than their users.

    Parameters
    ----------
    shown : int
        The number of nodes.
    arrows : list of Arrow
    sizes : list of (float, float)
        Width and height of each node's box, in pixels.
    """
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
    for k in ready:  # NB: grows during the iteration
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
        # Sources are placed from both sides inwards: if a layer gets too wide, the ones in the middle move up.
        for source in [s for pair in zip(sources[k], sources[k][::-1]) for s in pair][: len(sources[k])]:
            least[source] = max(least[source], layer + 1)
            waiting[source] -= 1
            if not waiting[source]:
                ready.append(source)
    return layers, boxes


def _port(width: float, k: int, count: int) -> float:
    """Return the offset from the centre of a box at which the k-th of `count` edges is attached."""
    return width * ((k + 1) / (count + 1) - 0.5)


def _connect(layers: list[list[_Box]], boxes: list[_Box], arrows: list[Arrow], vertices: list[Vertex], operands: list[int]) -> None:
    """Join boxes by edges, with a bend in each layer that an edge crosses.

    Parameters
    ----------
    layers, boxes
        As `_layer_boxes` returns them; bends are added to the layers.
    arrows : list of Arrow
    vertices : list of Vertex
    operands : list of int
        The number of operands of each node.
    """
    chains: dict[tuple[int, int], list[tuple[_Box, float]]] = {}  # by output: its end in each layer, downwards
    for a in arrows:
        source, target = boxes[a.source], boxes[a.target]
        source.broken = vertices[a.source].kind == "broken"
        start = _port(source.width, a.number, vertices[a.source].outputs)
        chain = chains.setdefault((a.source, a.number), [(source, start)])
        while source.layer - len(chain) > target.layer:
            point = _Box(-1, source.layer - len(chain), 2.0, 0.0)
            point.broken = source.broken
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
    """Order each layer by the barycentres of its neighbours, sweeping up and down, and keep the order with the fewest crossings."""
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
                # The offset also distinguishes ends at different ports of one box.
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
    """Count the crossings of lines between neighbouring layers."""
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
    """Set the x of each box near its neighbours; bends weigh most, so that long edges become straight."""
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
    """Move the boxes of a layer as near to the wished positions as their order and widths allow, in least squares.

    That is isotonic regression, by pooling adjacent violators (M. Ayer et al., 1955).
    """
    offsets, offset = [], 0.0
    for k, box in enumerate(layer):
        if k:
            left = layer[k - 1]
            gap = _BESIDE if left.vertex >= 0 and box.vertex >= 0 else _BESIDE * (0.5 if left.vertex >= 0 or box.vertex >= 0 else 0.4)
            offset += (left.width + box.width) / 2 + gap
        offsets.append(offset)
    pools: list[tuple[float, float, int]] = []  # (mean, weight, count)
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


class _Sheet:
    """The geometry of the picture: its size, the position and height of each layer, and the notes above."""

    def __init__(self, layers: list[list[_Box]], notes: list[str], *, room_above: bool) -> None:
        self.layers, self.notes = layers, notes
        left = min(b.x - b.width / 2 for layer in layers for b in layer) - _MARGIN
        right = max(b.x + b.width / 2 for layer in layers for b in layer) + _MARGIN
        self.tops: list[float] = [0.0] * len(layers)
        self.heights = [max((b.height for b in layer), default=0.0) for layer in layers]
        self.note_width = max((len(line) * _CHARACTER + 2 * _PAD for line in notes), default=0.0)
        y = _MARGIN + (len(notes) * _LINE + _PAD + _MARGIN if notes else 0.0) + (_BETWEEN / 2 if room_above else 0.0)
        for k in reversed(range(len(layers))):
            self.tops[k] = y
            # Lines that go far to the side need more height.
            reach = max((abs(b.x + at - o.x - there) for b in layers[k] for o, at, there in b.below), default=0.0)
            y += self.heights[k] + _BETWEEN + min(reach / 12, 60.0)
        self.height = y - _BETWEEN + _MARGIN
        self.width = max(right - left, self.note_width + 2 * _MARGIN)
        self.left = left - (self.width - (right - left)) / 2

    def top(self, box: _Box) -> float:
        """Return the y of the top of a box, which is centred in its layer."""
        return self.tops[box.layer] + (self.heights[box.layer] - box.height) / 2

    def head(self, count: int) -> str:
        """Return the opening lines of the SVG."""
        width, height = _n(self.width), _n(self.height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="{_n(self.left)} 0 {width} {height}" '
            f'role="img" font-family="ui-monospace, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="12">\n'
            f"<title>The recorded graph: {count} nodes</title>\n"
        )

    def notice(self) -> str:
        """Return the SVG of the notes; empty if there are none."""
        if not self.notes:
            return ""
        x, fill = self.left + self.width / 2, COLOURS["operation"][0]
        return (
            f'<g><rect x="{_n(x - self.note_width / 2)}" y="{_n(_MARGIN)}" width="{_n(self.note_width)}" '
            f'height="{_n(len(self.notes) * _LINE + _PAD)}" fill="{fill}"/>'
            f"{_text(self.notes, x, _MARGIN + _PAD / 2, TEXT_COLOUR)}</g>\n"
        )


def _n(value: float) -> str:
    """Format a coordinate with at most one decimal."""
    return f"{value:.1f}".removesuffix(".0")


def _lines(sheet: _Sheet, boxes: list[_Box], hidden: dict[int, list[int]], operands: list[int]) -> str:
    """Return the SVG of the edges with their arrow heads, and of stubs that lead to nodes which are not drawn.

    Parameters
    ----------
    sheet : _Sheet
    boxes : list of _Box
        The box of each node.
    hidden : dict
        For a node, the numbers of its operands that are not drawn.
    operands : list of int
        The number of operands of each node.
    """
    out, heads = [f'<g fill="none" stroke="{EDGE_COLOUR}" stroke-width="1.3">\n'], []
    for layer in sheet.layers:
        for b in layer:
            for o, at, there in b.below:
                out.append(_curve(sheet, b, b.x + at, o, o.x + there, _BROKEN if b.broken else ""))
                if o.vertex >= 0:
                    heads.append(f"M{_n(o.x + there)} {_n(sheet.top(o))}l-3.5 -7h7z")
    for k, found in sorted(hidden.items()):
        b = boxes[k]
        for operand in found:
            x = b.x + _port(b.width, operand, operands[k])
            out.append(f'<path d="M{_n(x)} {_n(sheet.top(b) - _BETWEEN / 2)}V{_n(sheet.top(b))}" stroke-dasharray="3 3"/>\n')
    out.append("</g>\n")
    if heads:
        out.append(f'<path d="{"".join(heads)}" fill="{EDGE_COLOUR}"/>\n')
    return "".join(out)


def _curve(sheet: _Sheet, upper: _Box, x0: float, lower: _Box, x1: float, style: str = "") -> str:
    """Return the SVG of a line from `x0` on a box to `x1` on one in the next layer: straight inside the layers, curved between them."""
    y0, y1 = sheet.tops[upper.layer] + sheet.heights[upper.layer], sheet.tops[lower.layer]
    start = sheet.top(upper) + upper.height if upper.vertex >= 0 else sheet.tops[upper.layer]
    end = sheet.top(lower) - 5 if lower.vertex >= 0 else y1
    middle = (y0 + y1) / 2
    bend = f"C{_n(x0)} {_n(middle)} {_n(x1)} {_n(middle)} {_n(x1)} {_n(y1 - 5)}"
    return f'<path d="M{_n(x0)} {_n(start)}V{_n(y0)}{bend}V{_n(end)}"{style}/>\n'


def _box(sheet: _Sheet, k: int, b: _Box, v: Vertex, arrows: list[Arrow]) -> str:
    """Return the SVG of node `k`: its box, its text and, if it has several outputs, the numbers of those that are used."""
    fill, stroke = COLOURS[v.kind]
    border, dash = 2.5 if v.kind == "result" else 1.3, ' stroke-dasharray="5 3"' if v.freed else ""
    top = sheet.top(b)
    out = [
        f'<g data-node="{k}"><title>{escape(chr(10).join(v.lines))}</title>'
        f'<rect x="{_n(b.x - b.width / 2)}" y="{_n(top)}" width="{_n(b.width)}" height="{_n(b.height)}" '
        f'rx="{12 if v.kind == "leaf" else 3}" fill="{fill}" stroke="{stroke}" stroke-width="{border}"{dash}/>',
        _text(v.lines, b.x, top + _PAD / 2, TEXT_COLOUR),
    ]
    if v.outputs > 1:
        for number in sorted({a.number for a in arrows if a.source == k}):
            x = b.x + _port(b.width, number, v.outputs)
            place = f'x="{_n(x)}" y="{_n(top + b.height - 4)}"'
            out.append(f'<text {place} font-size="10" text-anchor="middle" fill="{TEXT_COLOUR}">{number}</text>')
    out.append("</g>\n")
    return "".join(out)


def _text(lines: Iterable[str], x: float, y: float, colour: str) -> str:
    spans = "".join(f'<tspan x="{x:.1f}" y="{y + (k + 0.75) * _LINE:.1f}">{escape(line)}</tspan>' for k, line in enumerate(lines))
    return f'<text text-anchor="middle" fill="{colour}" xml:space="preserve">{spans}</text>'
