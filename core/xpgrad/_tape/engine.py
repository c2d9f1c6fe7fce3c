"""The backward pass.

The pass finds the nodes below the roots and sorts them by creation number, latest first, which is a topological order. Each node in turn
takes the gradient from its buffer and adds its operands' gradients to theirs. Nothing here recurses over the graph.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from xpgrad._aliasing.windows import MUTATION_WINDOWS, check_windows
from xpgrad._modes import state
from xpgrad._tape.fresh_stack import on_fresh_stack
from xpgrad._tape.hooks import run_absent_hooks, run_post_accumulate, run_post_hooks, run_pre_hooks, run_tensor_hooks
from xpgrad._tape.leaf import accumulate_graph
from xpgrad._tape.node import SlotNode, add_into, add_into_general, backend_of
from xpgrad._tape.shadows import run_on_shadows
from xpgrad._tape.streams import needs_streams, run_on_streams
from xpgrad._tape.task import CURRENT, OtherLeaves, Pass, has_seen_complex
from xpgrad.errors import CapabilityError

_creation = attrgetter("seq")
# The pass that uses the fields of the nodes themselves, if any. A pass that finds another one here, on another thread or above it on the
# same stack, works on private copies of the nodes: no pass waits, so none can deadlock. NB: this is not a lock, because an interrupt
# between acquiring a lock and noting that would leave it locked for ever.
_OWN: dict[str, Pass] = {}
_PASSES_PER_THREAD = 24


def _after_fork() -> None:
    """In a child process, discard a pass owned by a thread that does not exist there."""
    if "pass" in _OWN and _OWN["pass"].thread != threading.get_ident():
        _OWN.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def run_pass(task: Pass, roots: list[Any], seeds: list[Any]) -> list[Any]:
    """Differentiate `roots` with the cotangents `seeds` (raw arrays, or Tensors if `task.graph`).

    Returns
    -------
    list
        The captured gradient of each target, in order; None if no gradient arrived.
    """
    outer = CURRENT.get()
    if outer is not None:
        task.depth = outer.depth + 1
        if task.depth % _PASSES_PER_THREAD == 0 and not task.on_thread:
            _need_threads(roots, task.depth)
            task.on_thread = True  # nesting never hits the recursion limit (THR-06)
            found: list[Any] = on_fresh_stack(lambda: run_pass(task, roots, seeds), task.ambient)
            return found
    before = state.current()
    # NB: an interrupt arrives after a call, never before it, so each `finally` begins with the one thing that it must undo.
    try:
        try:
            if before is None or before is state.NO_GRAD:
                state.put(None if task.create else state.NO_GRAD)
            else:
                state.put(state.mode_with(recording=task.create))
                task.profiling = before.profiling
            CURRENT.set(task)
            if (own := _OWN.setdefault("pass", task)) is task or (task.private and own.thread == task.thread):
                _run(task, roots, seeds)
            else:
                run_on_shadows(task, roots, seeds, _run)
            for callback in task.callbacks:
                callback()
        finally:
            try:  # NB: not `get`, a call, after which an interrupt may arrive
                if _OWN["pass"] is task:
                    del _OWN["pass"]
            except KeyError:  # the pass of another thread has ended
                pass
            CURRENT.set(outer)
    finally:
        state.put(before)
    return [task.captured.get(node) for node in task.targets or ()]


def _need_threads(roots: list[Any], depth: int) -> None:
    """Raise if a pass must continue on another thread, because it runs inside `depth` others, but its arrays cannot be used there."""
    for root in roots:
        backend = backend_of(root)
        if not backend.capabilities.threads:
            msg = (
                f"a pass inside of {depth} others would go on in another thread, because they have used up the stack, but arrays of "
                f"backend {backend.table_name!r} stay in the thread that made them (its capability `threads` is False); nest fewer passes"
            )
            raise CapabilityError(msg)


def _run(task: Pass, roots: list[Any], seeds: list[Any]) -> None:
    """Run the whole pass: find the nodes, sort them, step through them."""
    empty = object()  # marks the nodes of this pass until a gradient arrives
    order: list[Any] = []
    try:
        _find(roots, empty, order, _oldest_target(task))
        order.sort(key=_creation, reverse=True)
        if task.targets is not None:
            order = _select_needed(task, order, set(roots))
        task.order = order
        if MUTATION_WINDOWS.get():
            check_windows(order)
        for root, seed in zip(roots, seeds):
            add_into(root, seed, empty)
        steps = order if task.profiling is None else task.profiling.steps(task, order, empty)
        if task.ambient is not None and needs_streams(order, task.ambient):
            run_on_streams(task, steps, roots, empty, _general)
        else:
            mode = state.current()
            watched = mode is not None and mode.anomaly is not None
            if task.graph or watched:
                _steps_general(task, steps, empty, watched)
            else:
                _steps(task, steps, empty)
    except BaseException:
        for node in order:
            node.buffer = None
            node.undefined()
        raise


def _find(roots: list[Any], empty: Any, order: list[Any], oldest: float | None) -> None:
    """Append the nodes below the roots to `order`, each once, and mark them with `empty`.

    With `oldest`, search no further below nodes that are older: a node depends on older nodes only, so no target is missed, and
    gradients inside of a loop that is recorded do not take quadratic time.
    """
    found = order.append
    for root in roots:
        if root.buffer is not empty:
            root.buffer = empty
            found(root)
    # NB: each loop makes `order` grow while it runs.
    if oldest is None:
        for node in order:
            node.reach(empty, found)
    else:
        for node in order:
            if node.seq >= oldest:
                node.reach(empty, found)


def _oldest_target(task: Pass) -> float | None:
    """Return the creation number of the oldest target; None if the whole graph must be searched, because a target is a leaf."""
    targets = task.targets
    if not targets or not task.capture or task.alone:
        return None
    oldest = math.inf
    for node in targets:
        if node._is_end or node.is_slot:
            return None
        oldest = min(oldest, node.seq)
    return oldest


def _select_needed(task: Pass, order: list[Any], roots: set[Any]) -> list[Any]:
    """Return the nodes from which a target can be reached, and record in `task.special` which targets and roots run."""
    targets = set(task.targets or ())
    ends = [node for node in order if node._is_end]
    if len(ends) == len(targets) and targets.issuperset(ends):
        # The targets are exactly the ends, so every node is needed and no target lies on the way to another.
        task.special = dict.fromkeys(ends, False) if task.capture else {}
        return order
    if task.alone and not targets.issuperset(ends):
        raise OtherLeaves
    # INP-06: `backward` runs the node of a target; if that is one output of several, the node that owns them.
    needed: set[Any] = set() if task.capture else {node.owner for node in targets if node.is_slot}
    special: dict[Any, bool] = {}
    for node in reversed(order):
        below = node in needed or not needed.isdisjoint(node.edges())
        if node in targets:
            special[node] = below or not task.capture
            needed.add(node)
        elif below:
            needed.add(node)
        elif len(roots) == 1 and node in roots:  # HOK-11: only the hooks of a single root are called if no target is below
            special[node] = False
        else:
            node.buffer = None
            node.undefined()
    task.special = special
    return [node for node in order if node in needed or node in special]


def _steps(task: Pass, order: Iterable[Any], empty: Any) -> None:
    """Run the nodes in order on raw arrays."""
    retain, special, watch = task.retain, task.special, has_seen_complex()
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
        elif node.hooks is None and not (node.is_shadow or special[node]):  # type: ignore[index]
            task.captured[node] = None if g is empty else g  # a target whose node does not run
            node.undefined()
        else:
            _general(task, node, None if g is empty else g, empty)
        g = None  # free this gradient before the next one is allocated


def _steps_general(task: Pass, order: Iterable[Any], empty: Any, watched: bool) -> None:
    """Run the nodes in order on Tensors or, if `watched`, with the checks of anomaly mode; `empty` marks a buffer without a gradient."""
    retain, special = task.retain, task.special
    for node in order:
        g = node.buffer
        node.buffer = None
        if not watched and node.hooks is None and node.records and g is not empty and (special is None or node not in special):
            for e, v in zip(node.edges(), node.graph_grads(g)):
                b = e.buffer
                if b is not None and v is not None:
                    e.owned = False
                    e.buffer = v if b is empty else b + v
            if not retain:
                node.release()
        else:
            _general(task, node, None if g is empty else g, empty)


def _general(task: Pass, node: Any, g: Any, empty: Any) -> None:
    """Run one node with hooks, capture and checks, and restore the mode that a hook may have changed."""
    mode = state.current()
    try:
        _at_node(task, node, g, empty)
    finally:
        state.put(mode)


def _at_node(task: Pass, node: Any, g: Any, empty: Any) -> None:
    """Run one node: its hooks, the capture of its gradient, anomaly checks and missing gradients included."""
    hooks = node.hooks
    target = task.special is not None and node in task.special
    runs = not target or task.special[node]  # type: ignore[index]
    key = node.original
    if target and runs and task.capture:
        task.captured[key] = g  # HOK-10: before the hooks when the node runs as well
    if hooks is not None:
        if node.slotted:
            run_absent_hooks(task, node)
        else:
            g = run_tensor_hooks(task, node, g)
    if target and not runs:
        task.captured[key] = g
        node.undefined()
        return
    if hooks is not None and hooks.pre:
        g = run_pre_hooks(task, node, g)
    if node.is_leaf:
        node.undefined()
        if node.off:
            node.check_accumulates()
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
    mode = state.current()
    if mode is not None and mode.anomaly is not None:
        values = mode.anomaly.run_checked(task, node, g, mode.check_nan)
    else:
        values = node.graph_grads(g) if task.graph else node.grads(g)
    if hooks is not None and hooks.post:
        values = run_post_hooks(task, node, values, g)
    for e, v in zip(node.edges(), values):
        add_into_general(e, v, empty)
    if not task.retain:
        node.release()
