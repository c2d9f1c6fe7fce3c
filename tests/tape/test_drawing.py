"""Law: a drawing has the nodes and edges of the graph, in each of its formats, whatever the graph.

The expected graph is taken from `next_functions`. The drawn one is read back from the text: DOT and Mermaid by their grammar, the SVG by
following its lines from box to box.
"""

from __future__ import annotations

import random
import re
import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.autograd.graph import draw

SVG = "{http://www.w3.org/2000/svg}"


class Twice(xp.autograd.Function):
    """A custom operation with two outputs."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any) -> Any:
        ctx.save_for_backward(x)
        return x * 2.0, x + y

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        return 2.0 * a + b, b


OPERATIONS: dict[str, Any] = {
    "sin": lambda x, y: xp.sin(x),
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "matmul": lambda x, y: x @ y,
    "scale": lambda x, y: x * 0.5,
    "concat": lambda x, y: xp.concat([x, y, x])[:2, :],
    "unstack": lambda x, y: xp.stack(list(reversed(xp.unstack(x)))),
    "second": lambda x, y: xp.expand_dims(xp.unstack(x)[1], axis=0) * y,
    "custom": lambda x, y: Twice.apply(x, y)[0],
    "both": lambda x, y: xp.multiply(*Twice.apply(x, y)),
    "detach": lambda x, y: x.detach() * y,
}


def random_graph(seed: int) -> list[Any]:
    """Return some results of a random program, all of shape (2, 2)."""
    rng, data = random.Random(seed), np.random.default_rng(seed)
    pool = [xp.tensor(data.uniform(-0.5, 0.5, (2, 2)), requires_grad=True) for _ in range(3)]
    for _ in range(rng.randint(1, 25)):
        pool.append(OPERATIONS[rng.choice(list(OPERATIONS))](rng.choice(pool[-6:]), rng.choice(pool)))
    roots = rng.sample(pool, rng.randint(1, 3))
    if rng.random() < 0.3:  # a freed graph can be drawn as well
        xp.autograd.backward(roots, [xp.ones((2, 2)) for _ in roots])
    return roots


def title_of(node: Any) -> str:
    return node.name() if node.next_functions else "leaf"


def expected_graph(roots: list[Any]) -> tuple[list[Any], list[tuple[Any, int, Any]]]:
    """Return all nodes, and all edges as (producer, output number, consumer)."""
    stack = [xp.autograd.graph.get_gradient_edge(r).node for r in roots]
    nodes, edges = [], []
    while stack:
        node = stack.pop()
        if node not in nodes:
            nodes.append(node)
            for source, number in node.next_functions:
                if source is not None:
                    edges.append((source, number, node))
                    stack.append(source)
    return nodes, edges


def graph_invariant(nodes: Any, edges: Any) -> list[Any]:
    """Return an invariant that equal graphs share whatever their nodes' names: colours refined by neighbours (Weisfeiler and Leman)."""
    colour = dict(nodes)
    for _ in range(8):
        above, below = defaultdict(list), defaultdict(list)
        for s, number, t in edges:
            above[t].append((number, colour[s]))
            below[s].append((number, colour[t]))
        colour = {n: hash((colour[n], tuple(sorted(above[n])), tuple(sorted(below[n])))) for n in colour}
    return sorted(colour.values())


def wanted(roots: list[Any]) -> list[Any]:
    nodes, edges = expected_graph(roots)
    several = {node: node.n_outputs > 1 for node in nodes}
    return graph_invariant({n: hash(title_of(n)) for n in nodes}, [(s, number if several[s] else 0, t) for s, number, t in edges])


def title_in(lines: list[str]) -> str:
    return next(line for line in lines if line.endswith(("Backward", "Backward0", "Backward1")) or line == "leaf")


def read_dot(text: str) -> list[Any]:
    nodes, edges = {}, []
    lines = text.splitlines()
    assert lines[0] == "digraph autograd {"
    assert lines[-1] == "}"
    for line in lines[5:-1]:
        node = re.fullmatch(
            r'  (n\d+) \[label="((?:[^"\\]|\\.)*)", style="[a-z,]+", fillcolor="#\w{6}", color="#\w{6}"(, penwidth=2)?\];', line
        )
        edge = re.fullmatch(r'  (n\d+) -> (n\d+)(?: \[label="(\d+)"\])?;', line)
        if node:
            nodes[node[1]] = hash(title_in(node[2].split("\\n")))
        else:
            assert edge, line
            edges.append((edge[1], int(edge[3] or 0), edge[2]))
    return graph_invariant(nodes, edges)


def read_mermaid(text: str) -> list[Any]:
    nodes, edges = {}, []
    for line in text.splitlines()[1:]:
        node = re.fullmatch(r'  (n\d+)(?:\(\["([^"]*)"\]\)|\["([^"]*)"\]):::\w+', line)
        edge = re.fullmatch(r'  (n\d+) -->(?:\|"(\d+)"\|)? (n\d+)', line)
        if node:
            nodes[node[1]] = hash(title_in((node[2] or node[3]).split("<br/>")))
        elif edge:
            edges.append((edge[1], int(edge[2] or 0), edge[3]))
        else:
            assert re.match(r"  (classDef|class|linkStyle) ", line), line
    return graph_invariant(nodes, edges)


def read_svg(text: str) -> tuple[dict[str, list[str]], list[tuple[str, int, str]]]:
    """Return the lines of text of each box, and the edges: each runs from the bottom of a box to an arrowhead at the top of another."""
    root = ET.fromstring(text)
    boxes, lines = {}, {}
    for group in root.findall(f"{SVG}g[@data-node]"):
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        x, y, w, h = (float(rect.attrib[k]) for k in ("x", "y", "width", "height"))
        boxes[group.attrib["data-node"]] = (x, y, x + w, y + h)
        spans = group.iter(f"{SVG}tspan")
        lines[group.attrib["data-node"]] = [span.text or "" for span in spans]
        title = group.find(f"{SVG}title")
        assert title is not None
        assert (title.text or "").split("\n") == lines[group.attrib["data-node"]]
    names = list(boxes)
    for k, a in enumerate(names):
        for b in names[k + 1 :]:
            (x0, y0, x1, y1), (u0, v0, u1, v1) = boxes[a], boxes[b]
            assert x1 < u0 or u1 < x0 or y1 < v0 or v1 < y0, "boxes overlap"
    # The ends of the lines that begin at each point; `ends` are those at which a line arrives at a box.
    onward: dict[tuple[float, float], list[tuple[float, float]]] = defaultdict(list)
    first = root.find(f"{SVG}g")
    assert first is not None
    for path in first:
        numbers = [float(v) for v in re.findall(r"-?[\d.]+", path.attrib["d"])]
        if "stroke-dasharray" not in path.attrib:
            start, end = (numbers[0], numbers[1]), (numbers[7], numbers[9])
            onward[start].append(end)
    heads = root.find(f"{SVG}path")
    tips = Counter() if heads is None else Counter(re.findall(r"M(-?[\d.]+) (-?[\d.]+)l", heads.attrib["d"]))

    def box_at(x: float, y: float) -> str | None:
        return next((n for n, (x0, y0, x1, y1) in boxes.items() if x0 < x < x1 and abs(y0 - y) < 0.11), None)

    edges = []
    for name, (x0, _, x1, y1) in boxes.items():
        ports = sorted(p for p in onward if x0 < p[0] < x1 and abs(p[1] - y1) < 0.11)
        count = max([int(line.split(":")[0]) + 1 for line in lines[name] if re.match(r"\d+: ", line)], default=1)
        for port in ports:
            number = round((port[0] - x0) / (x1 - x0) * (count + 1)) - 1
            stack = list(onward[port])
            while stack:
                x, y = stack.pop()
                target = box_at(x, y + 5)
                if target is None:
                    assert (x, y) in onward, "a line ends nowhere"
                    stack += onward[x, y]
                else:
                    edges.append((name, number if count > 1 else 0, target))
    assert sum(tips.values()) == len(edges)
    return lines, edges


@pytest.mark.parametrize("block", range(6))
def test_each_format_shows_the_graph(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        roots = random_graph(seed)
        picture = draw(roots, max_nodes=1000)
        nodes, edges = expected_graph(roots)
        assert (len(picture.vertices), len(picture.arrows)) == (len(nodes), len(edges))
        expected = wanted(roots)
        assert read_dot(picture.dot) == expected
        assert read_mermaid(picture.mermaid) == expected
        lines, found = read_svg(picture.svg)
        assert graph_invariant({n: hash(title_in(text)) for n, text in lines.items()}, found) == expected


def test_operands_are_in_their_order() -> None:
    """The k-th line from the left comes from operand k."""
    leaves = [xp.tensor([float(k)], requires_grad=True) for k in range(7)]
    picture = draw(xp.concat(leaves), names={f"x{k}": x for k, x in enumerate(leaves)})
    root = ET.fromstring(picture.svg)
    places = {}
    for group in root.findall(f"{SVG}g[@data-node]"):
        rect, text = group.find(f"{SVG}rect"), next(group.iter(f"{SVG}tspan")).text
        assert rect is not None
        places[text] = float(rect.attrib["x"])
    assert sorted((x, name) for name, x in places.items() if name != "CatBackward0") == [(places[f"x{k}"], f"x{k}") for k in range(7)]
    assert [a.operand for a in picture.arrows] == list(range(7))


def box(picture: Any, name: str) -> list[str]:
    (found,) = [list(v.lines) for v in picture.vertices if name in v.lines]
    return found


def test_boxes_say_shape_dtype_bytes_and_gradient() -> None:
    w = xp.tensor(np.ones((3, 4)), requires_grad=True)
    b = xp.tensor(np.ones(4, dtype=np.float32), requires_grad=True)
    x = xp.tensor(np.ones((5, 3)))
    hidden = xp.tanh(x @ w + b)
    xp.sum(b * b).backward()
    picture = draw(xp.sum(hidden), names={"w": w, "b": b, "hidden": hidden, "x": x})
    assert box(picture, "w") == ["w", "(3, 4) float64", ".grad is None"]
    assert box(picture, "b") == ["b", "(4,) float32", "has .grad"]
    assert box(picture, "hidden") == ["hidden", "TanhBackward0", "(5, 4) float64", "saves 160 B"]
    assert box(picture, "MmBackward0") == ["MmBackward0", "(5, 4) float64", "saves 120 B"]  # only `x`: saving `w` is for its gradient
    assert box(picture, "AddBackward0") == ["AddBackward0", "(5, 4) float64"]
    assert box(picture, "result") == ["SumBackward1", "() float64", "result"]
    assert "saves" not in draw(hidden, saved=False).dot


def test_what_is_said_of_shapes_is_true() -> None:
    """On random graphs, the shape and dtype in a node's text are those of the Tensor that it made."""
    for seed in range(40):
        rng, data = random.Random(seed), np.random.default_rng(seed)
        pool = [xp.tensor(data.uniform(-0.5, 0.5, s), requires_grad=True) for s in ((3,), (2, 3), (2, 1), ())]
        pool.append(xp.tensor(np.ones(3, np.complex64), requires_grad=True))
        for _ in range(14):
            x, y = rng.choice(pool), rng.choice(pool)
            pool.append(
                rng.choice(
                    [
                        lambda x=x: xp.sin(x), lambda x=x, y=y: x * y, lambda x=x, y=y: x + y, lambda x=x: xp.abs(x), lambda x=x: xp.sum(x),
                        lambda x=x: xp.astype(x, xp.complex128), lambda x=x: xp.flip(x), lambda x=x: xp.expand_dims(x, axis=0),
                        lambda x=x: x.detach() * x, lambda x=x: xp.real(x), lambda x=x, y=y: x * xp.ones((4, *y.shape))[0],
                    ]
                )()
            )  # fmt: skip
        made = {f"v{k}": v for k, v in enumerate(pool)}
        loss = xp.sum(xp.real(pool[-1])) + xp.sum(xp.abs(pool[-2]))
        if seed % 2:
            loss.backward()
        plain = draw(loss)  # drawn without access to the Tensors
        named = draw(loss, names=made)
        known = 0
        for bare, labelled in zip(plain.vertices, named.vertices):
            for name in set(labelled.lines) & set(made):
                v = made[name]
                text = f"({', '.join(map(str, v.shape))}{',' if v.ndim == 1 else ''})"
                assert f"{text} {v.dtype.name}" in labelled.lines
                said = [line for line in bare.lines if line.startswith("(")]
                assert said in ([], [text], [f"{text} {v.dtype.name}"])
                known += bool(said)
        assert known
    z = xp.tensor(1j, requires_grad=True)
    size = xp.abs(z + z)
    size.backward()
    assert box(draw(size), "AddBackward0") in (["AddBackward0", "()"], ["AddBackward0", "() complex128"])


def test_freed_multi_output_and_custom_nodes() -> None:
    x = xp.tensor(np.ones((2, 2)), requires_grad=True)
    a, b = Twice.apply(x, xp.sin(x))
    picture = draw([b, a])
    assert box(picture, "TwiceBackward") == [
        "TwiceBackward", "0: (2, 2) float64", "1: (2, 2) float64", "saves 32 B", "result 0, output 1", "result 1, output 0",
    ]  # fmt: skip
    xp.sum(a * b).backward()
    again = draw(b)
    assert [v.lines[-2:] for v in again.vertices if "TwiceBackward" in v.lines] == [("freed", "result, output 1")]
    assert box(again, "SinBackward0")[-1] == "freed"
    assert [v.freed for v in again.vertices] == [True, False, True]
    assert 'stroke-dasharray="5 3"' in again.svg
    assert "dashed" in again.dot
    with xp.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
        packed = xp.sin(x) * x
    assert box(draw(packed), "MulBackward0") == ["MulBackward0", "(2, 2) float64", "result"]  # the size that hooks keep is unknown
    parts = xp.unstack(x * 1.0)
    assert len(draw(parts).vertices) == 2 + len(parts)  # rows are separate views here
    compiled = xp.compile(lambda x: xp.sum(x * x))
    assert box(draw(compiled(x)), "CompiledBackward0")[0] == "CompiledBackward0"


def test_a_drawing_holds_no_graph() -> None:
    import weakref

    x = xp.tensor([1.0], requires_grad=True)
    y = x * x
    node = weakref.ref(y.grad_fn)
    picture = draw(y)
    del y
    assert node() is None
    assert "MulBackward0" in picture.svg


def test_names_need_no_care() -> None:
    x = xp.tensor([1.0], requires_grad=True)
    name = 'we"i<r>d & #1; `x` \\ \n ]} C:\\new'
    shown = " ".join(name.split())
    picture = draw(x * 2.0, names={name: x})
    lines, _ = read_svg(picture.svg)
    assert shown in lines["1"]
    (line,) = [line for line in picture.dot.splitlines() if line.startswith("  n1 [")]
    label = re.match(r'  n1 \[label="((?:[^"\\]|\\.)*)"', line)
    assert label is not None
    parts = re.sub(r"\\(.)", lambda m: "\0" if m[1] == "n" else m[1], label[1]).split("\0")
    assert parts[0] == shown
    coded = re.search(r'n1\(\["([^"]*)"\]\)', picture.mermaid)
    assert coded is not None
    assert re.sub(r"#(\d+);", lambda m: chr(int(m[1])), coded[1].split("<br/>")[0]) == shown


@pytest.mark.parametrize("where", ["name of a Tensor", "name of a Function"])
def test_what_xml_cannot_hold_is_replaced(where: str, tmp_path: Path) -> None:
    odd = "".join(map(chr, (*range(32), *range(0x7F, 0xA0), 0x2028, 0xD800, 0xDC00, 0xDFFF, 0xFFFE, 0xFFFF, 0x1FFFE, 0x10FFFF)))
    x = xp.tensor([1.0], requires_grad=True)
    if where == "name of a Tensor":
        picture = draw(x * 2.0, names={f"a{odd}b": x})
    else:
        methods = {"forward": staticmethod(lambda ctx, x: x * 2.0), "backward": staticmethod(lambda ctx, g: g * 2.0)}
        picture = draw(type("a\x01\x1f\x85\ufffeb", (xp.autograd.Function,), methods).apply(x))
    (title,) = [t.text for t in ET.fromstring(picture.svg.encode()).iter(f"{SVG}title") if t.text is not None and t.text.startswith("a")]
    assert re.match("a[\N{REPLACEMENT CHARACTER} ]+b", title)
    for text in (picture.svg, picture.dot, picture.mermaid):
        assert all(c == "\n" or c.isprintable() for c in text)
    for format_ in ("svg", "dot", "mmd"):
        picture.save(tmp_path / f"graph.{format_}")


@pytest.mark.slow
def test_a_deep_graph_is_drawn() -> None:
    """A deep graph is drawn without recursion; the SVG has the nodes nearest to the result and says so."""
    depth = 30 * sys.getrecursionlimit()
    x = xp.tensor([1.0], requires_grad=True)
    y = x
    for _ in range(depth):
        y = y * 1.0
    picture = draw(y, max_nodes=50)
    assert picture.dot.count(" -> ") == depth
    assert picture.mermaid.count(" --> ") == depth
    lines, edges = read_svg(picture.svg)
    assert (len(lines), len(edges)) == (50, 49)
    assert f"50 of {depth + 1} nodes are shown" in picture.svg
    assert picture.svg.count('stroke-dasharray="3 3"') == 1
    assert "nodes are shown" not in draw(xp.sin(x)).svg


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_it_can_be_read_on_light_and_dark_pages() -> None:
    """Contrasts meet WCAG 2.1 on light and dark pages: 7 for text, 3 for lines."""
    x = xp.tensor([1.0], requires_grad=True)
    root = ET.fromstring(draw(Twice.apply(x * 2.0, x)[0]).svg)
    for group in root.findall(f"{SVG}g[@data-node]"):
        rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        assert rect is not None
        assert text is not None
        assert contrast(rect.attrib["fill"], text.attrib["fill"]) > 7
        assert contrast(rect.attrib["fill"], rect.attrib["stroke"]) > 3
    lines = root.find(f"{SVG}g")
    assert lines is not None
    for page in ("#ffffff", "#1e1e1e"):
        assert contrast(lines.attrib["stroke"], page) > 3


def test_save_writes_what_the_suffix_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.tensor([1.0], requires_grad=True)
    picture = draw(xp.sin(x))
    for suffix, text in {".dot": picture.dot, ".gv": picture.dot, ".mmd": picture.mermaid, ".svg": picture.svg}.items():
        path = tmp_path / f"graph{suffix}"
        path.write_text("old", encoding="utf-8")
        picture.save(path)
        assert path.read_text(encoding="utf-8") == text
    assert sorted(p.name for p in tmp_path.iterdir()) == ["graph.dot", "graph.gv", "graph.mmd", "graph.svg"]
    assert picture._repr_svg_() == picture.svg
    with pytest.raises(ValueError, match=r"must end in one of \.dot, \.gv, \.mmd, \.svg"):
        picture.save(tmp_path / "graph.png")
    before = sorted(p.name for p in tmp_path.iterdir())
    path = tmp_path / "graph.dot"

    def broken(self: Any) -> Any:
        yield "digraph"
        raise KeyboardInterrupt

    monkeypatch.setattr(type(picture), "_dot_lines", broken)
    with pytest.raises(KeyboardInterrupt):
        picture.save(path)
    assert path.read_text(encoding="utf-8") != "digraph"
    assert path.read_text(encoding="utf-8").endswith("}\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == before


def test_wrong_arguments_are_refused() -> None:
    x = xp.tensor([1.0], requires_grad=True)
    for call, error, phrase in [
        (lambda: draw(3), TypeError, "expected a Tensor, or a list or tuple"),
        (lambda: draw([x, 3]), TypeError, "element 1 must be a Tensor"),
        (lambda: draw([]), ValueError, "got nothing to draw"),
        (lambda: draw(xp.tensor([1.0])), RuntimeError, "does not require grad"),
        (lambda: draw(x, names={"w": 3}), TypeError, r"names\['w'\] must be a Tensor"),  # type: ignore[dict-item]
        (lambda: draw(x, max_nodes=0), ValueError, "positive integer"),
    ]:
        with pytest.raises(error, match=phrase):
            call()
    edge = xp.autograd.graph.get_gradient_edge(xp.sin(x))
    assert box(draw(edge), "result")[0] == "SinBackward0"
    assert repr(draw(x)) == "<Drawing of 1 nodes and 0 edges>"
