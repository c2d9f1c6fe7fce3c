"""Draw the recorded graph, for `xpgrad.autograd.graph.draw`: as Graphviz and Mermaid text, and as SVG.

The graph is read once into plain data that holds no nodes and no arrays; each format is made from that data on demand.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from xpgrad._basics.arguments import as_flag, shown
from xpgrad._basics.dtypes import DType
from xpgrad._basics.shapes import common_shape
from xpgrad._operations.lists import VarNode
from xpgrad._tape.edges import GradientEdge, output_edge
from xpgrad._tape.node import Node
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd._custom import FunctionNode
from xpgrad.autograd._drawing_parts import COLOURS, EDGE_COLOUR, TEXT_COLOUR, Arrow, Vertex
from xpgrad.programs.compiled_node import CompiledNode


class Drawing:
    """A picture of a graph, made by `draw`: notebooks show it, and `save` writes it to a file.

    Attributes
    ----------
    vertices : list of Vertex
        All nodes, from the results to the leaves.
    arrows : list of Arrow
        All edges, in the direction of the computation.
    """

    vertices: list[Vertex]
    arrows: list[Arrow]
    max_nodes: int

    def __init__(self, vertices: list[Vertex], arrows: list[Arrow], max_nodes: int) -> None:
        self.vertices, self.arrows, self.max_nodes = vertices, arrows, max_nodes
        self._svg: str | None = None

    def __repr__(self) -> str:
        return f"<Drawing of {len(self.vertices)} nodes and {len(self.arrows)} edges>"

    @property
    def dot(self) -> str:
        """The whole graph in Graphviz's DOT language."""
        return "".join(self._dot_lines())

    @property
    def mermaid(self) -> str:
        """The whole graph as a Mermaid flowchart. Mermaid draws at most 500 edges unless its ``maxEdges`` is raised."""
        return "".join(self._mermaid_lines())

    @property
    def svg(self) -> str:
        """The picture as a self-contained SVG element with at most `max_nodes` nodes."""
        if self._svg is None:
            from xpgrad.autograd._drawing_svg import svg_text  # loads late: it imports `html`

            self._svg = svg_text(self.vertices, self.arrows, self.max_nodes)
        return self._svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file; an error leaves no partial file.

        Parameters
        ----------
        path : path-like
            Its suffix chooses the format: ``.dot`` or ``.gv`` (Graphviz), ``.mmd`` (Mermaid), ``.svg``.

        Raises
        ------
        ValueError
            The suffix is unknown.
        """
        path = Path(path)
        writers: dict[str, Callable[[], Iterator[str]]] = {
            ".dot": self._dot_lines,
            ".gv": self._dot_lines,
            ".mmd": self._mermaid_lines,
            ".svg": lambda: iter([self.svg]),
        }
        lines = writers.get(path.suffix.lower())
        if lines is None:
            msg = (
                f"cannot save a drawing as {path.name!r}: the name must end in one of {', '.join(writers)}; for other formats, give the "
                ".dot file to Graphviz, e.g. `dot -Tpdf graph.dot -o graph.pdf`"
            )
            raise ValueError(msg)
        part = path.with_name(f".{path.name}.{os.getpid()}.{next(_parts)}.part")
        try:
            with part.open("x", encoding="utf-8", newline="\n") as file:
                file.writelines(lines())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise

    def _dot_lines(self) -> Iterator[str]:
        yield 'digraph autograd {\n  rankdir=TB;\n  bgcolor="transparent";\n'
        yield f'  node [shape=box, fontname="monospace", fontsize=11, fontcolor="{TEXT_COLOUR}"];\n'
        yield f'  edge [color="{EDGE_COLOUR}", fontcolor="{EDGE_COLOUR}", fontname="monospace", fontsize=10];\n'
        for k, v in enumerate(self.vertices):
            fill, stroke = COLOURS[v.kind]
            label = "\\n".join(line.replace("\\", "\\\\").replace('"', '\\"') for line in v.lines)
            style = ["filled"] + (["rounded"] if v.kind == "leaf" else []) + (["dashed"] if v.freed else [])
            width = ", penwidth=2" if v.kind == "result" else ""
            yield f'  n{k} [label="{label}", style="{",".join(style)}", fillcolor="{fill}", color="{stroke}"{width}];\n'
        for a in self.arrows:
            label = f' [label="{a.number}"]' if self.vertices[a.source].outputs > 1 else ""
            yield f"  n{a.source} -> n{a.target}{label};\n"
        yield "}\n"

    def _mermaid_lines(self) -> Iterator[str]:
        """Yield the lines of the Mermaid flowchart."""
        yield "flowchart TB\n"
        for kind, (fill, stroke) in COLOURS.items():
            width = ",stroke-width:2px" if kind == "result" else ""
            yield f"  classDef {kind} fill:{fill},stroke:{stroke},color:{TEXT_COLOUR}{width}\n"
        yield "  classDef freed stroke-dasharray:4 3\n"
        yield f"  linkStyle default stroke:{EDGE_COLOUR}\n" if self.arrows else ""
        for k, v in enumerate(self.vertices):
            label = "<br/>".join("".join(_MERMAID.get(c, c) for c in line) for line in v.lines)
            box = f'(["{label}"])' if v.kind == "leaf" else f'["{label}"]'
            yield f"  n{k}{box}:::{v.kind}\n"
            if v.freed:
                yield f"  class n{k} freed\n"
        for a in self.arrows:
            label = f'|"{a.number}"|' if self.vertices[a.source].outputs > 1 else ""
            yield f"  n{a.source} -->{label} n{a.target}\n"


_parts = itertools.count()
_MERMAID = {c: f"#{ord(c)};" for c in '"#&;<>`\\'}


def _printable(name: str) -> str:
    """Return a name on one line, with characters that XML does not allow (controls, surrogates, non-characters) replaced."""
    return "".join(
        c if c.isprintable() and not 0xFFFE <= ord(c) & 0xFFFF <= 0xFFFF else "\N{REPLACEMENT CHARACTER}" for c in " ".join(name.split())
    )


def draw(tensors: Any, *, names: Mapping[str, Tensor] | None = None, saved: bool = True, max_nodes: int = 300) -> Drawing:
    """Draw the recorded graph of some Tensors.

    Leaves are at the top, results at the bottom, and arrows point from operands to results. A dashed frame marks a node whose saved values
    were freed. Some shapes and dtypes are missing, since nodes do not store all of them.

    Parameters
    ----------
    tensors : Tensor, GradientEdge, or list or tuple of them
        The results, which must require grad.
    names : mapping of str to Tensor, optional
        Names for leaves and intermediate results. Tensors that are not in the graph are ignored.
    saved : bool
        Show how many bytes each node saves for the backward pass. An array that several nodes save counts for each of them.
    max_nodes : int
        The number of nodes in the SVG, which are those nearest the results. DOT and Mermaid text have all nodes.

    Returns
    -------
    Drawing
        Notebooks show its `svg`; `dot` and `mermaid` are text, and `save(path)` writes a file.

    Raises
    ------
    TypeError
        `tensors` or a value of `names` is not a Tensor.
    RuntimeError
        A Tensor does not require grad.
    ValueError
        `max_nodes` is not a positive integer.

    Examples
    --------
    >>> import xpgrad as xp
    >>> w = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> picture = xp.autograd.graph.draw(xp.sum(w * w), names={"w": w})
    >>> picture
    <Drawing of 3 nodes and 3 edges>
    >>> print(picture.mermaid.splitlines()[-1])
      n2 --> n1
    """
    if not isinstance(max_nodes, int) or isinstance(max_nodes, bool) or max_nodes < 1:
        msg = f"draw: max_nodes must be a positive integer, but got {max_nodes!r:.60}"
        raise ValueError(msg)
    saved = as_flag(saved, "draw", "saved")
    if names is not None and not isinstance(names, Mapping):
        msg = f"draw: `names` must be a dict of names and Tensors, such as {{'w': w}}, but got {shown(names)}"
        raise TypeError(msg)
    roots = _results(tensors)
    labels: dict[tuple[Any, int], list[str]] = {}
    known = _Known()
    for name, t in (names or {}).items():
        if not isinstance(t, Tensor):
            msg = f"draw: names[{name!r}] must be a Tensor, but got {type(t).__name__}; names are given as {{'w': w}}"
            raise TypeError(msg)
        if t._node is not None:
            labels.setdefault(_key(t._node), []).append(_printable(str(name)))
            known.tensor(t)
    for root in [tensors] if isinstance(tensors, Tensor) else tensors if isinstance(tensors, (list, tuple)) else []:
        if isinstance(root, Tensor):
            known.tensor(root)

    place: dict[Any, int] = {}
    for node in roots:
        place.setdefault(node.owner.original, len(place))
    order = list(place)
    arrows = []
    for node in order:  # NB: grows during the iteration: breadth first
        target = place[node]
        for operand, (source, number) in enumerate(node.next_functions):
            if source is not None:
                source = source.original
                if source not in place:
                    place[source] = len(order)
                    order.append(source)
                arrows.append(Arrow(place[source], number, target, operand))
    known.nodes(order)
    results: dict[Any, list[str]] = {}
    for k, node in enumerate(roots):
        number = f", output {node.output_nr}" if node.owner.n_outputs > 1 else ""
        results.setdefault(node.owner.original, []).append(f"result{f' {k}' if len(roots) > 1 else ''}{number}")
    devices = {cls.device for _, _, cls in known.metas.values() if cls is not None}
    vertices = [_vertex(node, known, labels, results.get(node, []), saved, len(devices) > 1) for node in order]
    return Drawing(vertices, arrows, max_nodes)


def _key(node: Any) -> tuple[Any, int]:
    return node.owner.original, node.output_nr


def _results(tensors: Any) -> list[Any]:
    """Return the graph nodes of the Tensors to draw."""
    single = isinstance(tensors, (Tensor, GradientEdge))
    if not single and not isinstance(tensors, (list, tuple)):
        msg = f"draw: expected a Tensor, or a list or tuple of them, but got {type(tensors).__name__}"
        raise TypeError(msg)
    given = [tensors] if single else list(tensors)
    if not given:
        msg = "draw: got nothing to draw; give the results whose graph is to be drawn"
        raise ValueError(msg)
    nodes = []
    for k, root in enumerate(given):
        if not isinstance(root, (Tensor, GradientEdge)):
            msg = f"draw: element {k} must be a Tensor, but is of type {type(root).__name__}"
            raise TypeError(msg)
        node = output_edge(root) if isinstance(root, GradientEdge) else root._node
        if node is None:
            msg = (
                f"draw: element {k} does not require grad and does not have a grad_fn, so nothing was recorded; call `requires_grad_()` on "
                "an input before it is computed"
            )
            raise RuntimeError(msg)
        nodes.append(node)
    return nodes


class _Known:
    """The shape, dtype and Tensor class of node outputs, by node and output number; each is None if unknown."""

    def __init__(self) -> None:
        self.metas: dict[tuple[Any, int], tuple[Any, Any, Any]] = {}

    def tensor(self, t: Tensor) -> None:
        self.note(t._node, t.shape, t.dtype, type(t._stand_in()))

    def note(self, node: Any, shape: Any = None, dtype: Any = None, cls: Any = None) -> None:
        """Record facts about the output to which an edge leads."""
        if node is not None:
            self._merge(_key(node), shape, dtype, cls)

    def _merge(self, key: tuple[Any, int], shape: Any, dtype: Any, cls: Any) -> None:
        old = self.metas.get(key, (None, None, None))
        self.metas[key] = (
            tuple(shape) if old[0] is None and shape is not None else old[0],
            dtype if old[1] is None else old[1],
            cls if old[2] is None else old[2],
        )

    def nodes(self, order: list[Any]) -> None:
        """Read the shapes and dtypes that nodes store, and derive those of further outputs."""
        rows = []
        for node in order:
            for k, meta in enumerate(getattr(node, "metas", None) or [node.meta()]):
                if meta is not None:
                    self._merge((node, k), *meta)
            if isinstance(node, FunctionNode):
                for e, meta in zip(node.e, node.inputs):
                    self.note(e, *meta)
            elif isinstance(node, VarNode):
                for e, shape in zip(node.e, node.shapes):
                    self.note(e, shape)
            elif isinstance(node, CompiledNode):
                for source, raw in zip(node.sources, node.arrays or ()):
                    if isinstance(source, Node):
                        self.note(source, raw.shape, node.cls.backend.dtype_of(raw.dtype), node.cls)
            elif hasattr(node, "row"):
                self._saved_by(node)
                if node.row.elementwise:
                    rows.append(node)
        rows.sort(key=lambda node: node.seq)
        for node in rows:
            self._result_of(node)
        for node in reversed(rows):
            shape, dtype, _ = self.metas.get((node, 0), (None, None, None))
            for e in node.edges():
                # Operands of other shapes are known already. Only `abs` gives a real result for a complex operand.
                self.note(e, shape, None if node.row.name == "abs" else dtype)

    def _saved_by(self, node: Any) -> None:
        """Record facts about the operands and the output of a generated node from its saved values."""
        for name, kind in (*zip(node.row.tensors, node.mask), ("out", "g")):
            if kind == "g" and not (name == "out" and node.slotted):
                raw = getattr(node, name, None)
                shapes = (getattr(raw, "shape", None), getattr(node, f"b_{name}", None), getattr(node, f"{name}_shape", None))
                dtype = getattr(node, f"{name}_dtype", getattr(raw, "dtype", None))
                self.note(
                    node if name == "out" else getattr(node, f"e_{name}"),
                    next((s for s in shapes if s is not None), None),
                    dtype if dtype is None or isinstance(dtype, DType) else node.backend.dtype_of(dtype),  # NB: a DType for packed values
                )

    def _result_of(self, node: Any) -> None:
        """Derive the output of an elementwise operation from its operands, if all of them are known."""
        found = [self.metas.get(_key(e), (None, None, None)) for e in node.edges()]
        shapes = [shape for shape, _, _ in found if shape is not None]
        shape = None
        if not _broadcast(node):
            shape = next(iter(shapes), None)
        elif "c" not in node.mask and len(shapes) == len(found):  # a constant operand may have a larger shape
            shape = common_shape(*shapes)
        dtype, cls = found[0][1:]
        self.note(node, shape, dtype if dtype is not None and dtype.is_floating_point else None, cls)


def _broadcast(node: Any) -> bool:
    """Return whether the operands of a generated node were broadcast; such nodes store their shapes."""
    return hasattr(node, f"b_{node.row.tensors[node.mask.index('g')]}")


def _vertex(node: Any, known: _Known, labels: Any, results: list[str], saved: bool, devices: bool) -> Vertex:
    lines: list[str] = []
    metas = [known.metas.get((node, k)) for k in range(node.n_outputs)]
    several = len(metas) > 1
    for k in range(len(metas)):
        for name in labels.get((node, k), ()):
            lines.append(f"{name} (output {k})" if several else name)
    leaf = node.is_leaf
    if not leaf:
        lines.append(_printable(node.name()))
    elif not lines:
        lines.append("leaf")
    if several and len(metas) > _MOST_OUTPUTS:
        lines.append(f"{len(metas)} outputs")
    else:
        for k, meta in enumerate(metas):
            if meta is not None and meta[0] is not None:
                lines.append((f"{k}: " if several else "") + _shape_text(meta, devices))
    freed = False
    if leaf:
        lines.append(".grad is None" if node.grad is None else "has .grad")
    else:
        freed = node.ctx._saved is None if isinstance(node, FunctionNode) else node.saves and node.released()
        if saved:
            held = [raw for raw in node.held() if raw is not None]
            sizes = [array_size(raw, _backend_of(node)) for raw in held]
            if freed:
                lines.append("freed")
            elif None in sizes:
                lines.append(f"saves {len(sizes)} value{'s' if len(sizes) > 1 else ''}")
            elif sizes:
                lines.append(f"saves {bytes_text(sum(s for s in sizes if s is not None))}")
    lines += results
    kind = "result" if results else "leaf" if leaf else "custom" if isinstance(node, (FunctionNode, CompiledNode)) else "operation"
    return Vertex(kind, tuple(lines), len(metas), freed)


_MOST_OUTPUTS = 4


def _backend_of(node: Any) -> Any:
    return node.backend if node.backend is not None else None if node.cls is None else node.cls.backend


def _shape_text(meta: Any, devices: bool) -> str:
    shape, dtype, cls = meta
    text = f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"
    return " ".join([text] + ([] if dtype is None else [dtype.name]) + ([str(cls.device)] if devices and cls is not None else []))


def array_size(raw: Any, backend: Any) -> int | None:
    """Return the size of a raw array in bytes; None for values that hooks packed, and for arrays of unknown size."""
    shape, dtype = getattr(raw, "shape", None), getattr(raw, "dtype", None)
    if shape is None or dtype is None or isinstance(dtype, DType) or backend is None or not all(isinstance(n, int) for n in shape):
        return None
    size: int = math.prod(shape) * backend.dtype_of(dtype).itemsize
    return size


def bytes_text(n: int) -> str:
    if n < 1024:
        return f"{n} B"
    size, units = n / 1024, ["KiB", "MiB", "GiB", "TiB"]
    while size >= 1023.95 and len(units) > 1:
        size, units = size / 1024, units[1:]
    return f"{size:.1f} {units[0]}"
