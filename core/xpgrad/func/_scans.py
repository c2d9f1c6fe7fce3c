"""Scans that a backend runs: loops over the slices of arrays, each as one node of the tape.

The node saves the carry before each step, stacked. The backward pass is another scan, over the same slices and these carries, of the pass
that pulls cotangents back through a step; so derivatives of all orders and modes are loops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._backends.generators import repeat_draws
from xpgrad._modes import state, switches
from xpgrad._modes.batch_levels import at_levels
from xpgrad._tape.node import slot_of
from xpgrad._tape.saved import unpack
from xpgrad.func._loop_lowering import Lowering, grouped, settled
from xpgrad.func._loop_nodes import attach, classes_of, raws_of, restored, saved, wrap, wrap_arguments
from xpgrad.func._loop_passes import Pass, Pullback, Run
from xpgrad.func._recomputed import call_recomputed
from xpgrad.rules.manipulation import stack, unstack

__all__ = ["run_scan", "scan_in_python"]


def run_scan(
    loop: Callable[..., Any], step: Run, init: list[Any], xs: list[Any], length: int, reverse: bool, unroll: Any
) -> tuple[list[Any], list[Any]]:
    """Run a scan of Tensors, which may be elements of batches and have tangents.

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
    lowering, step = Lowering(), repeat_draws(step)
    carry_counts, x_counts = [lowering.fitting_count(c) for c in init], [lowering.fitting_count(x) for x in xs]
    shared: list[list[Any] | None] = []
    y_counts: list[int] = []

    def below(carry: list[Any], x: list[Any]) -> tuple[list[Any], list[Any]]:
        with lowering.reopened() as now:
            columns = zip(grouped(x, x_counts), shared)
            slices = [now.assemble(group) if found is None else now.joined(group) for group, found in columns]
            new, ys = step(now.assemble_all(carry, carry_counts), slices)
            now.fit(carry_counts, new)
            now.fit(y_counts, ys)
            return now.take_all_apart(new, carry_counts), now.take_all_apart(ys, y_counts)

    def run() -> tuple[list[Any], list[Any]]:
        shared[:] = [lowering.take_shared_apart(x, n) for x, n in zip(xs, x_counts)]
        columns = [
            part for x, n, found in zip(xs, x_counts, shared) for part in (lowering.take_slices_apart(x, n) if found is None else found)
        ]
        start = lowering.take_all_apart(init, carry_counts)
        with at_levels(()):
            carry, stacked = _Scan(loop, Pass("scan", below, reverse), length, unroll)(start, columns)
        return lowering.assemble_all(carry, carry_counts), [lowering.assemble_slices(group) for group in grouped(stacked, y_counts)]

    return settled(run)


def scan_in_python(
    step: Run, init: list[Any], xs: list[Any], length: int, reverse: bool, checkpoint: bool
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """Run a scan step by step, each of which is recorded as usual or, with `checkpoint`, computed again in a backward pass."""
    carry, rows, count = init, [], len(init)
    parts = [unstack(x) for x in xs]
    saves = checkpoint and state.is_grad_enabled()

    def flat(inputs: list[Any], _: list[Any]) -> list[Any]:
        new, ys = step(inputs[:count], inputs[count:])
        return [*new, *ys]

    for k in range(length - 1, -1, -1) if reverse else range(length):
        row = [part[k] for part in parts]
        if saves:
            outs = call_recomputed("scan", repeat_draws(flat), [*carry, *row], [])
            carry, ys = outs[:count], outs[count:]
        else:
            carry, ys = step(carry, row)
        rows.append(ys)
    if reverse:
        rows.reverse()
    return carry, [stack(list(column)) for column in zip(*rows)]


class _Scan:
    """A scan of Tensors that are in no batch and have no tangents; calling it runs it.

    Its first state is the carry, and the rows of its steps are slices.
    """

    def __init__(self, loop: Callable[..., Any], body: Pass, length: int, unroll: Any) -> None:
        self.loop, self.body, self.length, self.unroll = loop, body, length, unroll

    def __call__(self, init: list[Any], xs: list[Any]) -> tuple[list[Any], list[Any]]:
        recording, body = state.is_grad_enabled(), self.body
        body.try_out(self.loop, init, [x[0] for x in xs], recording)
        own = [x._node for x in (*init, *xs) if x._node is not None]
        is_recorded = recording and bool(own or body.edges)
        with switches.no_grad():
            carry, ys, carries = self._run(init, xs, saves=is_recorded)
        outs = [*carry, *ys, *carries]
        needs = [x.dtype.differentiable for x in carry]
        needs += body.varies + needs
        if is_recorded and True in needs:
            node = attach("ScanBackward0", [*own, *body.edges], outs, needs)
            node.pull = _ScanPass(self, init, xs, carries)
        return carry, ys

    def _run(self, init: list[Any], xs: list[Any], *, saves: bool) -> tuple[list[Any], list[Any], list[Any]]:
        """Run it on raw arrays; return the last carry, the outputs of the steps, and the carries before them if `saves`."""
        carries, slices = classes_of(init), classes_of(xs)
        outs = classes_of(self.body.others)

        def raw_step(carry: Any, x: Any) -> Any:
            before = wrap_arguments(carries, carry)
            new, ys = self.body.run(before, wrap_arguments(slices, x))
            return raws_of(new), raws_of([*ys, *before] if saves else ys)

        reverse = self.body.reverse
        last, stacked = self.loop(raw_step, raws_of(init), raws_of(xs), length=self.length, reverse=reverse, unroll=self.unroll)
        count = len(outs)
        return wrap(carries, last), wrap(outs, stacked[:count]), wrap(carries, stacked[count:])


class _ScanPass:
    """The backward pass of a scan: another scan, in the other direction, whose carry is the cotangent of the carry."""

    def __init__(self, scan: _Scan, init: list[Any], xs: list[Any], carries: list[Any]) -> None:
        self.scan, self.edges = scan, list(scan.body.edges)
        self.init_needs = [x._node is not None for x in init]
        self.xs = [saved(x) for x in xs]
        first = len(init) + len(scan.body.others)
        self.carries = [(type(x), x._array, first + k if x._node is not None else None) for k, x in enumerate(carries)]

    def __call__(self, node: Any, given: list[Any]) -> list[Any]:
        """Return the gradients of the edges: of the initial carry and the operands that have one, then of what the step closes over."""
        scan, body, xs = self.scan, self.scan.body, [restored(node, entry) for entry in self.xs]
        carries = [
            cls._wrap(raw) if k is None else unpack(cls.backend, raw, slot_of(node, k)) for cls, raw, k in self.carries
        ]  # fmt: skip
        count, first = len(carries), len(carries) + len(body.others)
        columns = dict(enumerate([*given[first:], *given[count:first]], start=len(xs)))  # the carries come before the outputs in a row
        later = {c: g for c, g in columns.items() if g is not None}
        fixed = [c for c, entry in enumerate(self.xs) if entry[2] is None]
        lowering = Lowering()

        def pulled() -> tuple[Pullback, list[Any], list[Any]]:
            back = Pullback(body, given[:count], list(later), [lowering.count(g) for g in later.values()], lowering, fixed)
            if not back.is_needed:
                return back, [], []
            slices = [*xs, *carries, *(part for g in later.values() for part in lowering.take_slices_apart(g))]
            start = lowering.take_all_apart(back.start)
            with at_levels(()):
                last, stacked = _Scan(scan.loop, Pass("scan", back.run, not body.reverse), scan.length, scan.unroll)(start, slices)
            slopes = [lowering.assemble_slices(group) for group in grouped(stacked, back.total_counts)]
            return back, lowering.assemble_all(last, back.counts), slopes

        back, last, slopes = settled(pulled)
        by_carry, by_edge = dict(zip(back.moving, last)), dict(zip(back.sums, last[len(back.moving) :]))
        by_column = dict(zip(back.totals, slopes))
        found = [by_carry.get(k) for k, need in enumerate(self.init_needs) if need]
        found += [by_column.get(c) for c in range(len(xs)) if c not in fixed]
        return [*found, *(by_edge.get(e) for e in self.edges)]
