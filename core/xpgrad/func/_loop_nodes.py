"""The node of one loop or branch on the tape, what its function closes over, and the gradients of a function that runs again.

The gradients of Tensors that a function closes over are found by running it once on the side: an edge of its graph that leads to an
older node leaves the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xpgrad._aliasing.cells import alias_of, next_number
from xpgrad._modes import state, switches
from xpgrad._modes.batch_levels import at_levels
from xpgrad._tape.edges import GradientEdge
from xpgrad._tape.links import Link, cut_below
from xpgrad._tape.node import ListNode, freed_error, make_slot
from xpgrad._tape.saved import check_version, unpack
from xpgrad._transforms.batch.passes import gradients
from xpgrad.func._loop_lowering import levels_of
from xpgrad.func._reverse import make_input
from xpgrad.rules.creation import zeros

__all__ = [
    "LoopNode", "attach", "begin", "cast_like", "classes_of", "continued", "edges_outside", "pull_back", "raws_of", "restored", "run_aside",
    "saved", "wrap", "wrap_arguments", "zeros_of",
]  # fmt: skip


def wrap(classes: Sequence[Any], raws: Sequence[Any]) -> list[Any]:
    """Return raw arrays as Tensors of these classes, without history."""
    found = []
    for cls, raw in zip(classes, raws):
        cls.backend.note_device(raw, cls.device)
        found.append(cls._wrap(raw))
    return found


def wrap_arguments(classes: Sequence[Any], raws: Sequence[Any]) -> list[Any]:
    """Return raw arrays as the arguments of a function, which may not write to them."""
    found = wrap(classes, raws)
    for x in found:
        if x.backend.capabilities.mutable:
            alias_of(x).forbidden = "argument"
    return found


def classes_of(tensors: Sequence[Any]) -> list[Any]:
    return [type(x._stand_in()) for x in tensors]


def raws_of(tensors: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(x._stand_in()._array for x in tensors)


def run_aside(scan: Callable[..., Any] | None, function: Callable[[list[Any]], list[Any]], tensors: Sequence[Any]) -> list[Any]:
    """Return the results of a function, without history, for Tensors like these, in one step of a loop of the backend.

    So a step is tried out where it will run: with the values of the first step, a branch would be chosen, and the other one not seen.

    Parameters
    ----------
    scan : callable or None
        The `scan` of a `ControlFlow`; without it, the function gets the values.
    function : callable
        Takes and returns a list of Tensors in no batch and without tangents. Of what else it computes, only shapes, dtypes and nodes may be
        used later.
    tensors : sequence of Tensor
        In no batch and without tangents.
    """
    if scan is None or not tensors:
        return [x.detach() for x in function([x.detach() for x in tensors])]
    classes = classes_of(tensors)
    found: list[Any] = []

    def step(carry: Any, _: Any) -> Any:
        out = function(wrap(classes, carry))
        found[:] = classes_of(out)
        return carry, raws_of(out)

    _, rows = scan(step, raws_of(tensors), (), length=1, reverse=False, unroll=1)
    return [x[0] for x in wrap(found, rows)]


class LoopNode(ListNode):
    """The node of one loop or branch.

    Attributes
    ----------
    pull : callable or None
        ``pull(node, cotangents)`` returns the gradient of each edge, from one Tensor or None per output; None if freed. It does not refer
        to the node, which would be garbage that only the collector finds.
    """

    __slots__ = ("cls", "metas", "n_outputs", "pull", "slots", "title")

    slotted = True
    cls: Any
    metas: list[Any]
    pull: Any
    slots: list[Any]

    def grads(self, g: Any) -> list[Any]:
        given = [None] * self.n_outputs if g is None else g
        wrapped = [None if v is None else m[2].backend.wrap(v) for v, m in zip(given, self.metas)]
        with switches.no_grad():
            return [None if v is None else v._stand_in()._array for v in self.graph_grads(wrapped)]

    def graph_grads(self, g: Any) -> list[Any]:
        real: Any = self.original
        if real.pull is None:
            raise freed_error(self)
        given = [None] * self.n_outputs if g is None else g
        with at_levels(levels_of(given)):  # a pass inside `vmap` runs below its batch
            found: list[Any] = real.pull(real, given)
        return found

    def release(self) -> None:
        self.pull = None

    def released(self) -> bool:
        return self.pull is None


def attach(title: str, edges: Sequence[Any], outs: list[Any], needs: Sequence[bool]) -> Any:
    """Give the outputs that need it the history of a new node, and return the node."""
    node: Any = LoopNode.made_now()
    first = next(x for x, need in zip(outs, needs) if need)
    node.e, node.cls, node.title, node.n_outputs = tuple(edges), type(first), title, len(outs)
    backend = node.cls.backend
    node.stream = (node.cls, backend.current_stream(node.cls.device)) if backend.capabilities.streams else None
    node.pull = None
    mode = state.current()
    if mode is not None and mode.anomaly is not None:
        mode.anomaly.record_traceback(node)
    node.slots, node.metas = [None] * len(outs), [(x.shape, x.dtype, type(x)) for x in outs]
    for k, (x, need) in enumerate(zip(outs, needs)):
        if need:
            x._node = make_slot(node, k)
    return node


def edges_outside(outs: Sequence[Any], own: Sequence[Any], start: float) -> list[Any]:
    """Return the edges from the graph of `outs` to nodes older than `start` and to leaves, other than those of the Tensors in `own`."""
    inner = {x._node for x in own if x._node is not None}
    found: dict[Any, None] = {}
    stack = [x._node for x in outs if x._node is not None]
    seen = set(stack)
    while stack:
        node: Any = stack.pop()
        while isinstance(node, Link) and node.e:  # an open one, of a pass that is differentiated
            (node,) = node.e
        if node in inner:
            continue
        if node.is_leaf or node.seq < start:  # a leaf does not know its age
            leaf: Any = node
            if not (leaf.is_leaf and leaf.is_spent):
                found[node] = None
            continue
        for e in node.edges():
            if e is not None and e not in seen:
                seen.add(e)
                stack.append(e)
    return list(found)


def begin(x: Any) -> Any:
    """Return a Tensor of the value of `x`, at which a history begins if its dtype allows."""
    y = x.detach()
    if y.dtype.differentiable:
        y.requires_grad_()._node.private = True
    return y


def continued(x: Any) -> Any:
    """Return an input of a function that is differentiated, through which derivatives flow to what `x` depends on.

    A Tensor of another dtype than floating-point or complex is returned unchanged.
    """
    if not x.dtype.differentiable:
        return x
    with at_levels(()):
        return make_input(x)


def _changed_error(what: str) -> RuntimeError:
    return RuntimeError(
        f"the function of `{what}` ran again to compute gradients, and used a Tensor that requires grad and that it did not use before: it "
        "must compute the same each time. Pass what changes as an argument"
    )


def pull_back(
    what: str, function: Callable[[], list[Any]], inputs: list[Any], wanted: list[Any], edges: list[Any], seeds: list[Any]
) -> list[Any]:
    """Run a function again, and return the gradients of its inputs and edges; None for those without a gradient.

    Parameters
    ----------
    what : str
        The name of the loop, for messages.
    function : callable
        Takes no arguments, and returns the outputs.
    inputs, wanted : list of Tensor
        The function's inputs, each the start of a history, and those with respect to which to differentiate.
    edges : list of Node
        Nodes recorded before the loop that the function uses.
    seeds : list of (Tensor or None)
        The cotangent of each output.

    Raises
    ------
    RuntimeError
        The function uses a Tensor that requires grad and is not among the edges.
    """
    create = state.is_grad_enabled()
    with switches.recorded():
        start = next_number()
        own = {x._node for x in inputs if x._node is not None}
        pairs = []
        for out, seed in zip(function(), seeds):
            if seed is not None and out._node is not None:
                older = (out._node.is_leaf or out._node.seq < start) and out._node not in own
                pairs.append((out.clone() if older else out, seed))
        if not pairs:
            return [None] * (len(wanted) + len(edges))
        links = cut_below([out._node for out, _ in pairs], own, start, type(pairs[0][0]))
        if any(link.inner not in edges and not link.inner.is_leaf for link in links):
            raise _changed_error(what)
        targets = [*wanted, *(GradientEdge(link, 0) for link in links)]
        found = gradients([o for o, _ in pairs], targets, [s for _, s in pairs], create_graph=create, allow_unused=True) if targets else []
        for link in links:
            link.open()
    by_edge = {link.inner: g for link, g in zip(links, found[len(wanted) :])}
    return [*found[: len(wanted)], *(by_edge.get(e) for e in edges)]


def zeros_of(x: Any) -> Any:
    """Return constant zeros of the shape of `x`."""
    return zeros(x.shape, dtype=x.dtype, device=x.device)


def cast_like(g: Any, like: Any) -> Any:
    return g if g.dtype is like.dtype else g._cast(like.dtype)


def saved(x: Any) -> tuple[Any, ...]:
    """Return what a node keeps of an operand, for `restored`."""
    return type(x), x._array, x._node, alias_of(x) if x.backend.capabilities.mutable else None


def restored(node: Any, entry: tuple[Any, ...]) -> Any:
    """Return an operand of a node with its history.

    Raises
    ------
    RuntimeError
        It was overwritten.
    """
    cls, raw, edge, alias = entry
    if alias is not None:
        check_version(node, f"a Tensor of shape {tuple(raw.shape)}", alias)
    return cls._wrap(raw) if edge is None else unpack(cls.backend, raw, edge)
