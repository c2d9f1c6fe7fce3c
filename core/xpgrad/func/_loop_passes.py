"""Loops and branches that a backend runs (`Backend.control_flow`), each as one node of the tape whose pass runs a loop or a branch.

Functions here take and return flat lists of Tensors. A loop computes with the Tensors below every batch and every tangent, because it runs
on raw arrays: `_Lowering` takes batches and tangents out of its variables and puts them back where the user's function runs.

The gradients of Tensors that the function closes over are found by running it once on the side: an edge of its graph that leads to an
older node leaves the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from xpgrad._aliasing.cells import alias_of, next_number
from xpgrad._modes import state, switches
from xpgrad._modes.batch_levels import active_levels, at_levels
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._tape.edges import GradientEdge
from xpgrad._tape.links import Link, cut_below
from xpgrad._tape.node import ListNode, freed_error, make_slot, slot_of
from xpgrad._tape.saved import check_version, unpack
from xpgrad._transforms.batch.batch import class_of_depth, put_in, take_out
from xpgrad._transforms.batch.passes import gradients
from xpgrad._transforms.forward.levels import with_levels
from xpgrad.backend import ControlFlow
from xpgrad.func._reverse import make_input
from xpgrad.rules.creation import zeros, zeros_like
from xpgrad.rules.elementwise import where
from xpgrad.rules.manipulation import moveaxis, stack, unstack
from xpgrad.rules.reduction import any as any_of

__all__ = ["bottom", "choose", "python_loops", "repeat_while", "run_scan", "scan_in_python"]

Step = Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]


class _Unrolled(Exception):
    """Raised if a backend cannot run a scan or a branch.

    That is so if it is differentiated by forward and by reverse mode at the same time, since the tangents of what it closes over may be
    gone in the backward pass, and if its tangents are a batch and its values are not, as in `jacfwd`.
    """


class _Rebatched(Exception):
    """Raised if the tangents of a while loop turn out to be a batch of which its values are not elements: lowering begins again."""


# -- batches and tangents ---------------------------------------------------------------------------------------------------------


def bottom(x: Any) -> Any:
    """Return the Tensor that holds the batches of which `x` is an element; `x` itself outside of batches."""
    while x.depth:
        x = x._array.value
    return x


def _levels_of(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return the levels of which Tensors are elements, outermost first."""
    found = {}
    for x in tensors:
        while x is not None and x.depth:
            if x._array.level is not None:
                found[x.depth] = x._array.level
            x = x._array.value
    return tuple(found[depth] for depth in sorted(found))


class _Lowering:
    """The calls of `vmap` and the levels of forward mode around a loop.

    Attributes
    ----------
    levels : tuple of BatchLevel
        Outermost first.
    tangents : tuple of Level
        The levels of forward mode at which a Tensor has a tangent, outermost first.
    batches : dict of Level to tuple of BatchLevel, or None
        The batches of which tangents are elements and values are not, as in `jacfwd`. None if such tangents raise `_Unrolled`.
    saved : list
        What `Level.saved` returned for each level, for `reopened`.
    """

    def __init__(self, batches: bool = False) -> None:
        self.levels = active_levels()
        mode = state.current()
        self.tangents: tuple[Any, ...] = ()
        if mode is not None and state.carries_tangents():
            self.tangents = tuple(level for level in mode.levels if level.active)
        self.batches: dict[Any, tuple[Any, ...]] | None = {level.root: () for level in self.tangents} if batches else None
        self.saved = [level.saved() for level in self.tangents] if batches else []

    @contextmanager
    def reopened(self) -> Iterator[_Lowering]:
        """Context manager in which the batches are active, and tangents are those that Tensors had when this object was made.

        It gives an object like this one, in which copies stand for the levels of forward mode that have ended. A pass runs the steps of a
        loop again; they may use Tensors that had tangents.
        """
        with at_levels(self.levels):
            mode = state.current()
            known = {} if mode is None else {level.root: level for level in mode.levels}
            if all(known.get(level.root) is level for level in self.tangents):
                yield self
                return
            copies: dict[Any, Any] = {}
            for level, tables in zip(self.tangents, self.saved):
                copies[level] = known.get(level.root) or level.restored(tables, tuple([copies.get(o, o) for o in level.outer]))
            found = copy(self)
            found.tangents = tuple(copies.values())
            with with_levels((*found.tangents, *(level for level in known.values() if level not in found.tangents))):
                yield found

    def take_apart(self, x: Any) -> list[Any]:
        """Return the value and the tangents of a Tensor, below the batches; a Tensor that the elements share is repeated.

        Raises
        ------
        _Unrolled, _Rebatched
            The tangents are a batch and the value is not.
        """
        parts = self.split(self._lowered(x))
        if any(part.depth for part in parts):
            raise _Unrolled
        return parts

    def assemble(self, parts: list[Any]) -> Any:
        """Undo `take_apart`."""
        return self.raised(self.joined(parts))

    def take_all_apart(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the parts of several Tensors."""
        return [part for x in tensors for part in self.take_apart(x)]

    def assemble_all(self, parts: Sequence[Any], counts: Sequence[int]) -> list[Any]:
        """Return Tensors from their parts; `counts` are the numbers of parts."""
        return [self.assemble(group) for group in _grouped(parts, counts)]

    def take_slices_apart(self, x: Any) -> list[Any]:
        """Do the same as `take_apart` for a stack of Tensors, with the batches behind its first axis; what is shared is not repeated."""
        return [moveaxis(self._lowered(part), len(self.levels), 0) if part.depth else part for part in self.split(x)]

    def assemble_slices(self, parts: list[Any]) -> Any:
        """Undo `take_slices_apart`."""
        return self.joined([self.raised(moveaxis(part, 0, len(self.levels))) if self.levels else part for part in parts])

    def count(self, x: Any) -> int:
        """Return the number of parts of a Tensor."""
        return 2 ** len(self.tangents) if x.dtype.differentiable else 1

    def _lowered(self, x: Any) -> Any:
        x = _outside(x, self.levels)
        if x.depth:
            raise _Unrolled
        return x._stand_in()

    def raised(self, x: Any) -> Any:
        return _inside(x, self.levels)

    def split(self, x: Any) -> list[Any]:
        """Return the value and the tangents, those of the outermost level next to what they belong to."""
        parts = [x]
        if x.dtype.differentiable:
            for level in reversed(self.tangents):
                parts = [q for p in parts for q in (level.primal(p), self._tangent(level, p))]
        return parts

    def _tangent(self, level: Any, x: Any) -> Any:
        """Return the tangent of `x` at a level, with the batches of that level as its first axes."""
        t = level.tangent(x)
        t = zeros_like(x) if t is None else t
        if self.batches is None or x.depth:
            return t
        t = _outside(t, self.batches[level.root])
        if t.depth:
            self.batches[level.root] = _levels_of([t]) + self.batches[level.root]
            raise _Rebatched
        return t._stand_in()

    def joined(self, parts: list[Any]) -> Any:
        for level in self.tangents if len(parts) > 1 else ():
            parts = [self._dual(level, p, t) for p, t in zip(parts[::2], parts[1::2])]
        return parts[0]

    def _dual(self, level: Any, x: Any, tangent: Any) -> Any:
        """Return `x` with a tangent; undo `_tangent`."""
        batches = () if self.batches is None else self.batches[level.root]
        if not batches:
            return level.dual(x, tangent)
        out = PRIMITIVES["alias"](x)
        level.set_tangent(out, _inside(tangent, batches))  # the elements share the value
        return out


def _outside(x: Any, levels: tuple[Any, ...]) -> Any:
    """Return the Tensor of which `x` is an element: its first axes are the batches, the outermost first."""
    cls = class_of_depth(type(x._stand_in()), 0)
    for k in range(len(levels), 0, -1):
        x = take_out(x, levels[k - 1], class_of_depth(cls, k))
    return x


def _inside(x: Any, levels: tuple[Any, ...]) -> Any:
    """Undo `_outside`."""
    cls = class_of_depth(type(x._stand_in()), 0)
    for k, level in enumerate(levels, start=1):
        x = put_in(x, level, class_of_depth(cls, k))
    return x


def _grouped(parts: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """Return consecutive parts in groups of these lengths."""
    given = iter(parts)
    return [[next(given) for _ in range(count)] for count in counts]


def _wrap(classes: Sequence[Any], raws: Sequence[Any]) -> list[Any]:
    """Return raw arrays as Tensors of these classes, without history."""
    found = []
    for cls, raw in zip(classes, raws):
        cls.backend.note_device(raw, cls.device)
        found.append(cls._wrap(raw))
    return found


def _wrap_arguments(classes: Sequence[Any], raws: Sequence[Any]) -> list[Any]:
    """Return raw arrays as the arguments of a function, which may not write to them."""
    found = _wrap(classes, raws)
    for x in found:
        if x.backend.capabilities.mutable:
            alias_of(x).forbidden = "argument"
    return found


def _classes(tensors: Sequence[Any]) -> list[Any]:
    return [type(x._stand_in()) for x in tensors]


def _raws(tensors: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(x._stand_in()._array for x in tensors)


# -- the node ---------------------------------------------------------------------------------------------------------------------


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
        with at_levels(_levels_of(given)):  # a pass inside `vmap` runs below its batch
            found: list[Any] = real.pull(real, given)
        return found

    def release(self) -> None:
        self.pull = None

    def released(self) -> bool:
        return self.pull is None


def _attach(title: str, edges: Sequence[Any], outs: list[Any], needs: Sequence[bool]) -> Any:
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


def _edges_outside(outs: Sequence[Any], own: Sequence[Any], start: float) -> list[Any]:
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


def _begin(x: Any) -> Any:
    """Return a Tensor of the value of `x`, at which a history begins if its dtype allows."""
    y = x.detach()
    if y.dtype.differentiable:
        y.requires_grad_()._node.private = True
    return y


def _continued(x: Any) -> Any:
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


def _pull_back(
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


# -- scan -------------------------------------------------------------------------------------------------------------------------


def run_scan(
    loop: Callable[..., Any], step: Step, init: list[Any], xs: list[Any], length: int, reverse: bool, unroll: Any
) -> tuple[list[Any], list[Any]]:
    """Run a scan of Tensors, which may be elements of batches and have tangents; in Python if `loop` cannot be differentiated.

    Parameters
    ----------
    loop : callable
        The `scan` of a `ControlFlow`.
    step : callable
        ``step(carry, x)`` returns the next carry and the outputs of one step, as lists.
    init, xs : list of Tensor
    length : int
        At least 1.
    reverse : bool
    unroll : int or bool
        For the backend.
    """
    lowering = _Lowering()
    carry_counts, x_counts = [lowering.count(c) for c in init], [lowering.count(x) for x in xs]
    inside: list[bool] = []
    y_counts: list[int] = []

    def below(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        with at_levels(lowering.levels):
            raised = [lowering.raised(v) if b else v for v, b in zip(x, inside)]
            new, ys = step(
                [lowering.assemble(group) for group in _grouped(carry, carry_counts)],
                [lowering.joined(group) for group in _grouped(raised, x_counts)],
            )
            y_counts[:] = [lowering.count(y) for y in ys]
            return [p for c in new for p in lowering.take_apart(c)], [p for y in ys for p in lowering.take_apart(y)]

    try:
        inside += [part.depth > 0 for x in xs for part in lowering.split(x)]
        start = [part for c in init for part in lowering.take_apart(c)]
        slices = [part for x in xs for part in lowering.take_slices_apart(x)]
        with at_levels(()):
            carry, stacked = _Scan(loop, below, length, reverse, unroll, bool(lowering.tangents))(start, slices)
    except _Unrolled:
        return scan_in_python(step, init, xs, length, reverse)
    return (
        [lowering.assemble(group) for group in _grouped(carry, carry_counts)],
        [lowering.assemble_slices(group) for group in _grouped(stacked, y_counts)],
    )


def scan_in_python(step: Step, init: list[Any], xs: list[Any], length: int, reverse: bool) -> tuple[list[Any], list[Any]]:
    """Run a scan step by step, each of which is recorded as usual."""
    carry, rows = init, []
    parts = [unstack(x) for x in xs]
    for k in range(length - 1, -1, -1) if reverse else range(length):
        carry, ys = step(carry, [part[k] for part in parts])
        rows.append(ys)
    if reverse:
        rows.reverse()
    return carry, [stack(list(column)) for column in zip(*rows)]


class _Scan:
    """A scan of Tensors that are in no batch and have no tangents; calling it runs it, or raises `_Unrolled`."""

    def __init__(self, loop: Callable[..., Any], step: Step, length: int, reverse: bool, unroll: Any, tangents: bool) -> None:
        self.loop, self.step, self.tangents = loop, step, tangents
        self.length, self.reverse, self.unroll = length, reverse, unroll

    def __call__(self, init: list[Any], xs: list[Any]) -> tuple[list[Any], list[Any]]:
        recording = state.is_grad_enabled()
        firsts = [x[0] for x in xs]
        inner = [_begin(x) if recording else x for x in (*init, *firsts)]
        start = next_number()
        carry, ys = self.step(inner[: len(init)], inner[len(init) :])  # on the side, to see what comes out
        edges = _edges_outside([*carry, *ys], inner, start) if recording else []
        if not edges and not (recording and any(x._node is not None for x in (*init, *xs))):
            with switches.no_grad():
                return self._run(self.step, init, xs, ys)
        if self.tangents:
            raise _Unrolled
        return self._recorded(init, xs, carry, ys, edges)

    def _run(self, step: Step, init: list[Any], xs: list[Any], ys: list[Any]) -> tuple[list[Any], list[Any]]:
        """Run it on raw arrays; `ys` are outputs of a step."""
        carries, slices, outs = _classes(init), _classes(xs), _classes(ys)

        def raw_step(carry: Any, x: Any) -> Any:
            new, ys = step(_wrap_arguments(carries, carry), _wrap_arguments(slices, x))
            return _raws(new), _raws(ys)

        carry, stacked = self.loop(raw_step, _raws(init), _raws(xs), length=self.length, reverse=self.reverse, unroll=self.unroll)
        return _wrap(carries, carry), _wrap(outs, stacked)

    def _recorded(
        self, init: list[Any], xs: list[Any], carry: list[Any], ys: list[Any], edges: list[Any]
    ) -> tuple[list[Any], list[Any]]:  # fmt: skip
        """Run it with a history: the carry before each step is another output, from which the pass computes the step again."""

        def saving(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
            new, ys = self.step(carry, x)
            return new, [*ys, *carry]

        with switches.no_grad():
            carry_out, stacked = self._run(saving, init, xs, [*ys, *carry])
        outs = [*carry_out, *stacked]
        needs = [x.dtype.differentiable for x in carry_out]
        needs += [y._node is not None for y in ys] + needs
        own = [x._node for x in (*init, *xs) if x._node is not None]
        if True not in needs:
            return carry_out, stacked[: len(ys)]
        node = _attach("ScanBackward0", [*own, *edges], outs, needs)
        node.pull = _ScanPass(self, saving, init, xs, outs, len(ys), edges)
        return carry_out, stacked[: len(ys)]


class _ScanPass:
    """The backward pass of a scan: another scan, in the other direction, whose carry is the cotangent of the carry."""

    def __init__(
        self, scan: _Scan, saving: Step, init: list[Any], xs: list[Any], outs: list[Any], n_ys: int, edges: list[Any]
    ) -> None:  # fmt: skip
        self.scan, self.saving, self.edges = scan, saving, edges
        self.init_needs = [x._node is not None for x in init]
        self.xs = [(type(x), x._array, x._node, alias_of(x) if x.backend.capabilities.mutable else None) for x in xs]
        count = len(init)
        self.carries = [(type(x), x._array, k + count + n_ys if x._node is not None else None) for k, x in enumerate(outs[count + n_ys :])]
        self.count, self.n_ys = count, n_ys

    def saved(self, node: Any) -> tuple[list[Any], list[Any]]:
        """Return the carries before the steps, and the operands of the steps, with their histories.

        Raises
        ------
        RuntimeError
            An operand was overwritten.
        """
        carries = [
            cls._wrap(raw) if k is None else unpack(cls.backend, raw, slot_of(node, k)) for cls, raw, k in self.carries
        ]  # fmt: skip
        xs = []
        for cls, raw, edge, alias in self.xs:
            if alias is not None:
                check_version(node, f"a Tensor of shape {tuple(raw.shape)}", alias)
            xs.append(cls._wrap(raw) if edge is None else unpack(cls.backend, raw, edge))
        return carries, xs

    def __call__(self, node: Any, given: list[Any]) -> list[Any]:
        """Return the gradients of the edges: of the initial carry and the operands that have one, then of what the step closes over."""
        count, scan = self.count, self.scan
        carries, xs = self.saved(node)
        moving = [k for k, c in enumerate(carries) if c.dtype.differentiable]  # of the carry that have cotangents
        wanted = [k for k, entry in enumerate(self.xs) if entry[2] is not None]
        arrived = [k for k in range(count, len(given)) if given[k] is not None]
        n_carries, n_xs = len(carries), len(xs)

        def pull(cotangents: list[Any], x: list[Any]) -> list[Any]:
            inner = [_continued(v) for v in x[: n_carries + n_xs]]
            own, operands = inner[:n_carries], inner[n_carries:]
            seeds: list[Any] = [None] * len(given)
            for k, g in zip(moving, cotangents):
                seeds[k] = g
            for k, g in zip(arrived, x[n_carries + n_xs :]):
                seeds[k] = g

            def outputs() -> list[Any]:
                new, ys = self.saving(own, operands)
                return [*new, *ys]

            chosen = [own[k] for k in moving] + [operands[k] for k in wanted]
            return _pull_back("scan", outputs, inner, chosen, self.edges, seeds)

        start = [zeros_like(carries[k][0]).detach() if given[k] is None else given[k] for k in moving]
        slices = [*carries, *xs, *(given[k] for k in arrived)]
        with switches.no_grad():  # which edges get a gradient, and of which shape
            sample = pull([g.detach() for g in start], [s[0] for s in slices])
        sums = [k for k in range(len(self.edges)) if sample[len(moving) + len(wanted) + k] is not None]
        found = [sample[len(moving) + len(wanted) + k] for k in sums]
        start += [_zeros_of(g) for g in found]

        def step(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
            grads = pull(carry[: len(moving)], x)
            new = [zeros_like(c) if g is None else _cast(g, c) for g, c in zip(grads, carry[: len(moving)])]
            at = len(moving) + len(wanted)
            totals = [t if grads[at + k] is None else t + grads[at + k] for k, t in zip(sums, carry[len(moving) :])]
            slopes = [zeros_like(x[n_carries + k]) if g is None else g for k, g in zip(wanted, grads[len(moving) : at])]
            return [*new, *totals], slopes

        carry, slopes = run_scan(scan.loop, step, start, slices, scan.length, not scan.reverse, scan.unroll)
        by_carry, by_edge = dict(zip(moving, carry)), dict(zip(sums, carry[len(moving) :]))
        first = [by_carry.get(k) for k, need in enumerate(self.init_needs) if need]
        return [*first, *slopes, *(by_edge.get(k) for k in range(len(self.edges)))]


def _cast(g: Any, like: Any) -> Any:
    return g if g.dtype is like.dtype else g._cast(like.dtype)


# -- while ------------------------------------------------------------------------------------------------------------------------


def repeat_while(
    flow: ControlFlow, test: Callable[[list[Any]], Any], step: Callable[[list[Any]], list[Any]], init: list[Any]
) -> list[Any]:  # fmt: skip
    """Run `step` while `test` is true of some element; if `flow` cannot go back through the steps, a backward pass raises an error.

    Parameters
    ----------
    flow : ControlFlow
        It has a `while_loop`.
    test : callable
        Returns a 0-d boolean Tensor.
    step : callable
    init : list of Tensor
    """
    lowering = _Lowering(batches=True)
    counts = [lowering.count(x) for x in init]

    def tested(parts: list[Any]) -> Any:
        with lowering.reopened() as now:
            holds = bottom(test(now.assemble_all(parts, counts)))
            return any_of(holds) if holds.ndim else holds

    def run(parts: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        with lowering.reopened() as now:
            return now.take_all_apart(step(now.assemble_all(parts, counts))), []

    def loop() -> list[Any]:
        start = lowering.take_all_apart(init)
        with at_levels(()):
            (found,) = _While(flow, tested, [_Pass(run)])([start])
        return lowering.assemble_all(found, counts)

    return _settled(loop)


def _settled(function: Callable[[], Any]) -> Any:
    """Call a function until the batches of tangents stay the same."""
    while True:
        try:
            return function()
        except _Rebatched:
            continue


class _Pass:
    """A pass over the steps of a loop, forward or backward, whose state changes from step to step.

    It computes with Tensors that are in no batch and have no tangents. What it can read of each step is the step's row: the states of
    earlier passes before their visits to the step, and the other results of these visits. The first pass is the loop itself.

    Attributes
    ----------
    run : callable
        ``run(state, row)`` returns the state after a step, and other results, for the rows that later passes read.
    reverse : bool
        Whether it begins with the last step.
    start, others : list of Tensor
        The first state, and results like the others of a step, both without history: they show shapes and dtypes.
    edges : list of Node
        What `run` closes over, as nodes that are older than the loop.
    """

    __slots__ = ("edges", "others", "reverse", "run", "start")

    start: list[Any]
    others: list[Any]
    edges: list[Any]

    def __init__(self, run: Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]], reverse: bool = False) -> None:
        self.run, self.reverse = run, reverse

    def try_out(self, start: list[Any], row: list[Any], recording: bool) -> None:
        """Run it once on the side, on its first state and a row of Tensors like those that it will read."""
        self.start, self.others, self.edges = [x.detach() for x in start], [], []
        if row or recording:  # NB: the first pass has no other results
            inner = [_begin(x) if recording else x for x in (*start, *row)]
            first = next_number()
            new, others = self.run(inner[: len(start)], inner[len(start) :])
            self.others = [x.detach() for x in others]
            self.edges = _edges_outside([*new, *others], inner, first) if recording else []

    @property
    def visible(self) -> list[Any]:
        """What a step's row has of this pass."""
        return [*self.start, *self.others]


class _While:
    """A loop whose number of steps is not known, and passes over its steps; calling it runs them.

    It is one node of the tape. Its derivative is the same loop with twice as many passes, the further ones backward through the given.
    """

    def __init__(self, flow: ControlFlow, test: Callable[[list[Any]], Any], passes: list[_Pass], known: int = 0) -> None:
        self.flow, self.test, self.passes, self.known = flow, test, passes, known

    def __call__(self, starts: list[list[Any]]) -> list[list[Any]]:
        """Run the passes from their first states; return the last state of each pass, without those of the loop if there are others.

        The first `known` passes were tried out before.
        """
        recording = state.is_grad_enabled()
        row: list[Any] = []
        for k, (p, start) in enumerate(zip(self.passes, starts)):
            if k >= self.known:
                p.try_out(start, row, recording)
            row += p.visible
        with switches.no_grad():
            found = self._run(starts)
        outs = [x for group in found for x in group]
        needs = [x.dtype.differentiable for x in outs]
        own = [x._node for start in starts for x in start if x._node is not None]
        edges = list(dict.fromkeys(e for p in self.passes for e in p.edges))
        if recording and (own or edges) and True in needs:
            title = "WhileBackward0" if len(self.passes) == 1 else "WhileBackward0Backward0"
            node = _attach(title, [*own, *edges], outs, needs)
            node.pull = _refuse if self.flow.unwind is None else _WhilePass(self, starts, [len(group) for group in found], edges)
        return found

    def _run(self, starts: list[list[Any]]) -> list[list[Any]]:
        """Run it on raw arrays."""
        own, row = [_classes(start) for start in starts], _classes([x for p in self.passes for x in p.visible])

        def raw_test(carry: Any) -> Any:
            return self.test(_wrap(own[0], carry))._array

        def raw_step(carry: Any) -> Any:
            return _raws(self.passes[0].run(_wrap(own[0], carry), [])[0])

        def raw_pass(k: int) -> Callable[[Any, Any], Any]:
            def run(raws: Any, read: Any) -> Any:
                new, others = self.passes[k].run(_wrap(own[k], raws), _wrap(row[: len(read)], read))
                return _raws(new), _raws(others)

            return run

        raws = [_raws(start) for start in starts]
        if len(raws) == 1:
            assert self.flow.while_loop is not None
            return [_wrap(own[0], self.flow.while_loop(raw_test, raw_step, raws[0]))]
        assert self.flow.unwind is not None
        passes = [(raw_pass(k), raws[k], self.passes[k].reverse) for k in range(1, len(raws))]
        return [_wrap(classes, last) for classes, last in zip(own[1:], self.flow.unwind(raw_test, raw_step, raws[0], passes))]


class _WhilePass:
    """The backward pass of a `_While`: the same passes again, then one through each of them in the other direction."""

    def __init__(self, loop: _While, starts: list[list[Any]], counts: list[int], edges: list[Any]) -> None:
        self.loop, self.counts, self.edges = loop, counts, edges
        self.starts = [
            [(type(x), x._array, x._node, alias_of(x) if x.backend.capabilities.mutable else None) for x in start] for start in starts
        ]

    def saved(self, node: Any) -> list[list[Any]]:
        """Return the first states with their histories.

        Raises
        ------
        RuntimeError
            One was overwritten.
        """
        found: list[list[Any]] = []
        for start in self.starts:
            found.append([])
            for cls, raw, edge, alias in start:
                if alias is not None:
                    check_version(node, f"a Tensor of shape {tuple(raw.shape)}", alias)
                found[-1].append(cls._wrap(raw) if edge is None else unpack(cls.backend, raw, edge))
        return found

    def __call__(self, node: Any, given: list[Any]) -> list[Any]:
        """Return the gradients of the edges: of the first states, then of what the passes close over."""
        loop, starts = self.loop, self.saved(node)
        lowering = _Lowering(batches=True)
        groups = _grouped(given, self.counts)
        if len(groups) < len(starts):
            groups.insert(0, [None] * len(starts[0]))

        def pulled() -> tuple[list[_Pullback], list[list[Any]]]:
            found: list[_Pullback] = []
            for k in range(len(starts) - 1, -1, -1):
                row = [x for p in loop.passes[:k] for x in p.visible]
                back = _Pullback(loop.passes[k], row, groups[k], found, lowering)
                if back.is_needed:
                    found.append(back)
            lowered = [lowering.take_all_apart(back.start) for back in found]
            with at_levels(()):
                passes = [*loop.passes, *(_Pass(back.run, not back.inner.reverse) for back in found)]
                last = _While(loop.flow, loop.test, passes, len(starts))([*starts, *lowered]) if found else []
            return found, [lowering.assemble_all(parts, back.counts) for back, parts in zip(found, last[len(starts) - 1 :])]

        of_starts: dict[tuple[int, int], Any] = {}
        of_edges: dict[Any, Any] = {}
        for back, last in zip(*_settled(pulled)):
            k = loop.passes.index(back.inner)
            of_starts.update(zip([(k, m) for m in back.moving], last))
            for e, g in zip(back.sums, last[len(back.moving) :]):
                of_edges[e] = g if e not in of_edges else of_edges[e] + g
        own = [of_starts.get((k, m)) for k, start in enumerate(self.starts) for m, x in enumerate(start) if x[2] is not None]
        return [*own, *(of_edges.get(e) for e in self.edges)]


class _Pullback:
    """A pass that goes backward through another one: its state is the cotangent of the other's state, and sums over the steps.

    Its Tensors may be elements of batches and have tangents, as the cotangents may.

    Attributes
    ----------
    inner : _Pass
    moving : list of int
        The numbers of the variables of the inner state that have a cotangent.
    sums : list of Node
        What the inner pass closes over that has a gradient: the sums over the steps are further variables of the state.
    totals : list of int
        Its other results: the columns of a row for which the visit gives a cotangent, added to what the pullback before it gave.
    start : list of Tensor
        The first state.
    counts, total_counts : list of int
        The numbers of parts of each variable of the state, and of each of the totals.
    is_needed : bool
        Whether it computes any gradient.
    """

    moving: list[int]
    sums: list[Any]
    totals: list[int]
    total_counts: list[int]

    def __init__(self, inner: _Pass, row: list[Any], given: list[Any], before: list[_Pullback], lowering: _Lowering) -> None:
        self.inner, self.width, self.lowering = inner, len(row), lowering
        self.later, self.later_counts = (before[-1].totals, before[-1].total_counts) if before else ([], [])
        columns = [*row, *inner.visible]
        zero = [zeros_like(x) for x in inner.start]
        first = {k: zero[k] if g is None else g for k, g in enumerate(given)}
        totals = {c: zeros_like(columns[c]) for c in self.later if c < len(columns)}
        count = len(zero)
        moving = {k for k in range(count) if given[k] is not None or self.width + k in self.later}
        with switches.no_grad():
            while True:  # which variables and edges get a gradient, and of which shape
                grads, by_edge = self._pull({k: first[k].detach() for k in moving}, totals, row, inner.start)
                found = {c - self.width for c, g in grads.items() if g is not None and c >= self.width}
                if found <= moving:
                    break
                moving |= found
        self.moving = sorted(moving)
        self.sums = [e for e, g in by_edge.items() if g is not None]
        self.totals = [c for c in range(self.width) if c in self.later or grads.get(c) is not None]
        self.total_counts = [lowering.count(row[c]) for c in self.totals]
        self.is_needed = bool(self.moving or self.sums or self.totals != [c for c in self.later if c < self.width])
        self.start = [first[k] for k in self.moving] + [_zeros_of(by_edge[e]) for e in self.sums]
        self.counts = [lowering.count(x) for x in self.start]

    def _pull(self, cotangents: dict[int, Any], totals: dict[int, Any], read: list[Any], own: list[Any]) -> tuple[dict[Any, Any], ...]:
        """Return the gradients of one step of the inner pass: by the columns of a row, and by edges.

        Parameters
        ----------
        cotangents, totals : dict
            The cotangents of the next state, and of columns of the row.
        read, own : list of Tensor
            The columns that the inner pass reads, and its state.
        """
        inner, inputs = self.inner, [_continued(x) for x in (*read, *own)]
        seeds = [cotangents.get(k) for k in range(len(own))]
        seeds += [totals.get(len(inputs) + k) for k in range(len(inner.others))]
        wanted = [k for k, x in enumerate(inputs) if x.dtype.differentiable]

        def outputs() -> list[Any]:
            new, others = inner.run(inputs[self.width :], inputs[: self.width])
            return [*new, *others]

        found = _pull_back("while_loop", outputs, inputs, [inputs[k] for k in wanted], inner.edges, seeds)
        return dict(zip(wanted, found)), dict(zip(inner.edges, found[len(wanted) :]))

    def run(self, parts: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        """Go backward through one step."""
        width, end = self.width, self.width + len(self.inner.start)
        with self.lowering.reopened() as now:
            state = now.assemble_all(parts, self.counts)
            totals = dict(zip(self.later, now.assemble_all(row[len(row) - sum(self.later_counts) :], self.later_counts)))
            grads, by_edge = self._pull(dict(zip(self.moving, state)), totals, row[:width], row[width:end])
            new = [_sum(c, grads.get(width + k), totals.get(width + k)) for k, c in zip(self.moving, state)]
            new += [t if by_edge[e] is None else t + by_edge[e] for e, t in zip(self.sums, state[len(self.moving) :])]
            others = [_sum(row[c], grads.get(c), totals.get(c)) for c in self.totals]
            return now.take_all_apart(new), now.take_all_apart(others)


def _sum(like: Any, *terms: Any) -> Any:
    """Return the sum of those terms that are not None, with the dtype of `like`; zeros if all are."""
    found = [_cast(t, like) for t in terms if t is not None]
    if not found:
        return zeros_like(like)
    return found[0] if len(found) == 1 else found[0] + found[1]


def _refuse(node: Any, cotangents: list[Any]) -> list[Any]:
    msg = (
        "reverse mode cannot differentiate a `while_loop` that a library compiles with a number of steps that is not known. Use "
        "`xpgrad.func.scan`, or `fori_loop` with ints, and `xpgrad.where` to stop changing the values; or forward mode (`xpgrad.func.jvp`)"
    )
    raise RuntimeError(msg)


# -- cond -------------------------------------------------------------------------------------------------------------------------


def choose(branch: Callable[..., Any], holds: Any, branches: Sequence[Callable[[], list[Any]]]) -> list[Any]:
    """Return the results of the first branch if `holds`, else of the second.

    If `branch` cannot be differentiated, both run, and `where` chooses.

    Parameters
    ----------
    branch : callable
        The `cond` of a `ControlFlow`.
    holds : Tensor
        0-d, boolean, in no batch.
    branches : sequence of callable
        They return Tensors of the same shapes and dtypes.
    """
    lowering = _Lowering()
    counts: list[int] = []

    def below(k: int) -> list[Any]:
        with at_levels(lowering.levels):
            outs = branches[k]()
            counts[:] = [lowering.count(x) for x in outs]
            return [part for x in outs for part in lowering.take_apart(x)]

    def both() -> list[Any]:
        return [where(holds, a, b) for a, b in zip(branches[0](), branches[1]())]

    recording = state.is_grad_enabled()
    start = next_number()
    try:
        samples = [below(0), below(1)]
    except _Unrolled:
        return both()
    edges = list(dict.fromkeys(e for outs in samples for e in _edges_outside(outs, [], start))) if recording else []
    if edges and lowering.tangents:
        return both()
    classes = _classes(samples[0])
    with at_levels(()), switches.no_grad():
        outs = _wrap(classes, branch(holds._array, lambda: _raws(below(0)), lambda: _raws(below(1))))
    needs = [recording and (a._node is not None or b._node is not None) for a, b in zip(*samples)]
    if edges and True in needs:
        _attach("CondBackward0", edges, outs, needs).pull = _CondPass(branch, holds, below, edges)
    return [lowering.assemble(group) for group in _grouped(outs, counts)]


class _CondPass:
    """The backward pass of a branch: another branch, which runs the chosen function again and differentiates it."""

    def __init__(self, branch: Callable[..., Any], holds: Any, below: Callable[[int], list[Any]], edges: list[Any]) -> None:
        self.branch, self.holds, self.below, self.edges = branch, holds, below, edges

    def __call__(self, node: Any, given: list[Any]) -> list[Any]:
        def pulled(k: int) -> list[Any]:
            return _pull_back("cond", lambda: self.below(k), [], [], self.edges, given)

        with switches.no_grad():
            found = [a if b is None else b for a, b in zip(pulled(0), pulled(1))]
        places = [i for i, g in enumerate(found) if g is not None]

        def chosen(k: int) -> list[Any]:
            grads = pulled(k)
            return [_zeros_of(found[i]) if grads[i] is None else grads[i] for i in places]

        grads = choose(self.branch, self.holds, [lambda: chosen(0), lambda: chosen(1)])
        by_place = dict(zip(places, grads))
        return [by_place.get(i) for i in range(len(self.edges))]


def _zeros_of(x: Any) -> Any:
    """Return constant zeros of the shape of `x`."""
    return zeros(x.shape, dtype=x.dtype, device=x.device)


# -- Python -----------------------------------------------------------------------------------------------------------------------


def python_loops(backend: Any) -> ControlFlow:
    """Return the loops of Python on a backend's arrays, with which a scan saves only its carries."""
    kernels = backend.kernels

    def scan(step: Any, init: Any, xs: Any, *, length: int, reverse: bool, unroll: Any) -> Any:
        carry, rows = init, []
        for k in range(length - 1, -1, -1) if reverse else range(length):
            carry, ys = step(carry, tuple(kernels.index_basic(x, (k,)) for x in xs))
            rows.append(ys)
        if reverse:
            rows.reverse()
        return carry, tuple(kernels.stack(list(column), axis=0) for column in zip(*rows))

    def while_loop(test: Any, step: Any, init: Any) -> Any:
        while test(init):
            init = step(init)
        return init

    def cond(holds: Any, first: Any, second: Any) -> Any:
        return first() if holds else second()

    return ControlFlow(scan, while_loop, cond)
