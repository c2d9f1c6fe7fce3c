"""The backward pass.

The nodes below the roots are found and sorted by creation number, latest first, which is a topological order; each in turn takes the
gradient from its buffer and adds its operands' gradients into theirs. Iterative throughout.
"""

from __future__ import annotations

import bisect
import itertools
import threading
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from operator import attrgetter
from typing import Any

from xpgrad import _modes
from xpgrad._accumulate import AccumulateGrad, accumulate_graph
from xpgrad._hooks import run_post_accumulate, run_post_hooks, run_pre_hooks, run_tensor_hooks
from xpgrad._node import Node, SlotNode, walk
from xpgrad._saved import add_into, freed
from xpgrad._streams import CLASSES, ambient_streams, on_streams, several_streams, steps_on_streams

__all__ = ["Pass", "current_pass", "note_complex", "run_pass"]

_creation = attrgetter("seq")
# Held by the pass that uses the nodes' own fields. A pass that finds it taken, in another thread or above it on the same stack, works
# on private copies of the nodes instead: nothing waits, so nothing can deadlock.
_FIELDS = threading.Lock()
_PASSES_PER_THREAD = 24
_complex_seen = False
_task_ids = itertools.count()
_CURRENT: ContextVar[Pass | None] = ContextVar("xpgrad_pass", default=None)
current_pass: Callable[[], Pass | None] = _CURRENT.get


def note_complex() -> None:
    """From now on passes look for complex gradients, around which the engine conjugates."""
    global _complex_seen
    _complex_seen = True


def complex_seen() -> bool:
    """Whether there has been a complex Tensor."""
    return _complex_seen


class Pass:
    """One call of `backward` or `grad`.

    Attributes
    ----------
    id : int
        Distinguishes passes (THR-08).
    graph : bool
        Gradients are Tensors: for ``create_graph``, and where they have tangents.
    create : bool
        ``create_graph``: they are recorded.
    retain : bool
        Saved values are kept.
    targets : list or None
        The nodes that gradients are wanted for; None: all leaves.
    special : dict or None
        Targets, and roots from which no target can be reached (their tensor hooks fire all the same), with whether their node runs.
    capture : bool
        ``grad()``: gradients are returned, not accumulated.
    """

    __slots__ = ("ambient", "callbacks", "capture", "captured", "create", "depth", "graph", "id", "notes", "on_thread", "order", "retain",
                 "special", "targets")  # fmt: skip

    def __init__(self, *, graph: bool, retain: bool, targets: list[Any] | None, capture: bool, create: bool | None = None) -> None:
        self.id = next(_task_ids)
        self.graph = graph
        self.create = graph if create is None else create
        self.retain = retain
        self.targets = None if targets is None else list(dict.fromkeys(targets))
        self.special: dict[Any, bool] | None = None  # known once the graph has been walked
        self.capture = capture
        self.captured: dict[Any, Any] = {}
        self.callbacks: list[Callable[[], None]] = []
        self.order: list[Any] = []  # the nodes whose gradient this pass computes
        self.notes: dict[Any, Any] = {}  # what multi-grad hooks remember during this pass
        self.depth = 0  # passes that this one runs inside of
        self.on_thread = False
        self.ambient: dict[Any, Any] | None = ambient_streams() if CLASSES else None

    def will_run(self, node: Node) -> bool:
        """Whether this pass computes the gradient of that node's output (for multi-grad hooks)."""
        found = self.notes.get("nodes")
        if found is None:
            found = self.notes["nodes"] = {getattr(n, "real", n) for n in self.order}
        return node in found


def run_pass(task: Pass, roots: list[Any], seeds: list[Any]) -> list[Any]:
    """Differentiate `roots`, seeded with `seeds` (raw arrays, or Tensors when recording).

    Returns
    -------
    list
        The captured gradient of each target, in their order; None where no gradient arrived.
    """
    outer = _CURRENT.get()
    if outer is not None:
        task.depth = outer.depth + 1
        if task.depth % _PASSES_PER_THREAD == 0 and not task.on_thread:
            return _on_fresh_stack(task, roots, seeds)
    mode = _modes.current()
    if mode is None or mode is _modes.NO_GRAD:
        mode = None if task.create else _modes.NO_GRAD
    else:
        mode = _modes.replaced(recording=task.create)
    token, pass_token = _modes.enter(mode), _CURRENT.set(task)
    exclusive = _FIELDS.acquire(blocking=False)
    try:
        if exclusive:
            _run(task, roots, seeds)
        else:
            _run_on_shadows(task, roots, seeds)
        for callback in task.callbacks:
            callback()
    finally:
        if exclusive:
            _FIELDS.release()
        _CURRENT.reset(pass_token)
        _modes.leave(token)
    return [task.captured.get(node) for node in task.targets or ()]


def _on_fresh_stack(task: Pass, roots: list[Any], seeds: list[Any]) -> list[Any]:
    """Run a deeply nested pass on a thread of its own, whose stack is empty: nesting never meets the recursion limit (THR-06)."""
    task.on_thread = True
    result: list[Any] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            with on_streams(task.ambient):
                result.append(run_pass(task, roots, seeds))
        except BaseException as exc:  # noqa: BLE001 (handed to the caller's thread)
            failure.append(exc)

    thread = threading.Thread(target=copy_context().run, args=(work,), name="xpgrad nested pass")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]


def _run(task: Pass, roots: list[Any], seeds: list[Any]) -> None:
    """The whole pass: walk, sort, step."""
    empty = object()  # marks the nodes of this pass until a gradient arrives
    order: list[Any] = []
    stack: list[Any] = []
    try:
        for root in roots:
            if root.buffer is not empty:
                root.buffer = empty
                stack.append(root)
        pop, push, found = stack.pop, stack.append, order.append
        while stack:
            node = pop()
            found(node)
            node.reach(empty, push)
        order.sort(key=_creation, reverse=True)
        if task.targets is not None:
            order = _only_needed(task, order, set(roots))
        task.order = order
        if MUTATION_WINDOWS:
            check_windows(order)
        for root, seed in zip(roots, seeds):
            add_into(root, seed, empty)
        if task.ambient is not None and several_streams(order, task.ambient):
            steps_on_streams(task, order, roots, empty, _general)
        else:
            (_steps_recorded if task.graph else _steps)(task, order, empty)
    except BaseException:
        for node in itertools.chain(order, stack):
            node.buffer = None
            node.undefined()
        raise


#: Readings of the clock between which `allow_mutation_on_saved_tensors` was active, once it has been left.
MUTATION_WINDOWS: list[tuple[float, float]] = []
_REMEMBERED_WINDOWS = 10_000


def remember_window(start: int, end: int) -> None:
    """Note that the context was active between two readings of the clock."""
    bisect.insort(MUTATION_WINDOWS, (start, end))
    del MUTATION_WINDOWS[:-_REMEMBERED_WINDOWS]


def check_windows(order: list[Any]) -> None:
    """MUT-23: what was recorded where saved Tensors may be overwritten is differentiated there too."""
    mode = _modes.current()
    if mode is not None and mode.copies:
        return
    for node in order:
        if node.saves:
            k = bisect.bisect_left(MUTATION_WINDOWS, (node.seq, 0)) - 1
            if k >= 0 and node.seq < MUTATION_WINDOWS[k][1]:
                msg = (
                    f"Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally "
                    f"recorded ({node.name()}); call `backward()` or `grad()` inside of it"
                )
                raise AssertionError(msg)


def _steps(task: Pass, order: list[Any], empty: Any) -> None:
    """Run the nodes in order on raw arrays."""
    mode = _modes.current()
    if mode is not None and mode.anomaly:
        _steps_watched(task, order, empty)
        return
    retain, special, watch = task.retain, task.special, _complex_seen
    for node in order:
        g = node.buffer
        node.buffer = None
        if node.hooks is None and (special is None or node not in special):
            if g is not empty:
                if watch and node.conjugates and node.backend.is_complex(g):
                    _general(task, node, g, empty)
                else:
                    node.step(g, empty, retain)
            elif node.runs_undefined:
                _general(task, node, None, empty)
            else:
                node.undefined()
        else:
            _general(task, node, None if g is empty else g, empty)
        g = None  # the gradient dies before the next one is made


def _steps_recorded(task: Pass, order: list[Any], empty: Any) -> None:
    """Run the nodes in order on Tensors, recording."""
    mode = _modes.current()
    if mode is not None and mode.anomaly:
        _steps_watched(task, order, empty)
        return
    retain, special = task.retain, task.special
    for node in order:
        g = node.buffer
        if node.hooks is None and node.records and g is not empty and (special is None or node not in special):
            node.buffer = None
            for e, v in zip(node.edges(), node.graph_grads(g)):
                b = e.buffer
                if b is not None and v is not None:
                    e.owned = False
                    e.buffer = v if b is empty else b + v
            if not retain:
                node.release()
        else:
            node.buffer = None
            _general(task, node, None if g is empty else g, empty)


def _steps_watched(task: Pass, order: list[Any], empty: Any) -> None:
    """Run the nodes in order with every check of anomaly mode."""
    for node in order:
        g = node.buffer
        node.buffer = None
        _general(task, node, None if g is empty else g, empty)


def _only_needed(task: Pass, order: list[Any], roots: set[Any]) -> list[Any]:
    """Drop the nodes from which no target can be reached, and find out which of the special ones run."""
    targets = set(task.targets or ())
    leaves = [node for node in order if isinstance(node, AccumulateGrad)]
    if len(leaves) == len(targets) and targets.issuperset(leaves):
        # All leaves and nothing else: every node is needed, and no target's node is on the way to another.
        task.special = dict.fromkeys(leaves, False) if task.capture else {}
        return order
    # INP-06: `backward` runs a target's own node, which of one with several outputs is the owner of the output's.
    needed: set[Any] = set() if task.capture else {node.owner for node in targets if node.is_slot}
    special: dict[Any, bool] = {}
    for node in reversed(order):
        below = node in needed or not needed.isdisjoint(node.edges())
        if node in targets:
            special[node] = below or not task.capture
            needed.add(node)
        elif below:
            needed.add(node)
        elif node in roots:
            special[node] = False
        else:
            node.buffer = None
            node.undefined()
    task.special = special
    return [node for node in order if node in needed or node in special]


def _general(task: Pass, node: Any, g: Any, empty: Any) -> None:
    """One node with everything that can happen at it: hooks, capture, anomaly checks, recording, undefined gradients."""
    hooks = node.hooks
    target = task.special is not None and node in task.special
    runs = not target or task.special[node]  # type: ignore[index]
    key = node.original
    if target and runs and task.capture:
        task.captured[key] = g  # HOK-10: before the hooks when the node runs as well
    if hooks is not None and not node.slotted:
        g = run_tensor_hooks(task, node, g)
    if target and not runs:
        task.captured[key] = g
        node.undefined()
        return
    if hooks is not None and hooks.pre:
        g = run_pre_hooks(task, node, g)
    if isinstance(node, AccumulateGrad):
        node.undefined()
        if node.off:
            node.check_place()
        elif not (task.capture and target):
            if g is not None:
                if task.graph:
                    accumulate_graph(node, g, task.create)
                else:
                    node.step(g, empty, task.retain)
            if hooks is not None:
                if hooks.post_accumulate:
                    run_post_accumulate(node)
                if hooks.post:
                    run_post_hooks(task, node, [], g)
        return
    if g is None and not node.runs_undefined:
        return
    if isinstance(node, SlotNode):
        node.step(g, empty, task.retain)
        return
    mode = _modes.current()
    if mode is not None and mode.anomaly:
        from xpgrad._anomaly import watched

        values = watched(task, node, g, mode)
    else:
        values = node.graph_grads(g) if task.graph else node.grads(g)
    if hooks is not None and hooks.post:
        values = run_post_hooks(task, node, values, g)
    for e, v in zip(node.edges(), values):
        add_into_general(e, v, empty)
    if not task.retain:
        node.release()


def add_into_general(e: Any, v: Any, empty: Any) -> None:
    """`add_into` for raw gradients and Tensors alike; Tensors are never added in place."""
    b = e.buffer
    if b is None or v is None:
        return
    e.owned = False
    e.buffer = v if b is empty else b + v


def _run_on_shadows(task: Pass, roots: list[Any], seeds: list[Any]) -> None:
    """The pass on private copies of the graph's nodes, because another pass is using the nodes themselves."""
    mapping: dict[Any, Any] = {node: node.shadow() for node in walk(list(dict.fromkeys(roots)))}
    for node, copy in mapping.items():
        copy.redirect(mapping)
        copy.undefined()
        if not isinstance(copy, AccumulateGrad):
            copy.__class__ = _shadow_class(type(node))
    targets = task.targets
    if targets is not None:
        task.targets = [mapping.get(node, node) for node in targets]
    try:
        _run(task, [mapping[r] for r in roots], seeds)
    finally:
        task.targets = targets


_shadow_classes: dict[type, type] = {}


def _shadow_class(cls: type) -> type:
    """A node class whose instances check, and free, the node that they stand for."""
    found = _shadow_classes.get(cls)
    if found is None:

        def checked(name: str) -> Callable[..., Any]:
            def method(self: Any, g: Any, *rest: Any) -> Any:
                if self.real.released():
                    raise freed(self.real)
                out = getattr(cls, name)(self, g, *rest)
                if name == "step" and not rest[1]:
                    self.real.release()
                return out

            return method

        def release(self: Any) -> None:
            cls.release(self)  # type: ignore[attr-defined]
            self.real.release()

        body = {"__slots__": (), "step": checked("step"), "grads": checked("grads"), "graph_grads": checked("graph_grads")}
        body |= {"release": release, "__module__": cls.__module__, "is_shadow": True}
        found = _shadow_classes[cls] = type(cls.__name__, (cls,), body)
    return found
