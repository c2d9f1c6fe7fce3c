"""Loops of a backend whose number of steps is not known, each as one node of the tape.

The node of a loop saves nothing. Its backward pass is the same loop again, which keeps a row for each step, and a pass over these rows; the
derivative of that has further passes over the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._backends.generators import repeat_draws
from xpgrad._modes import state, switches
from xpgrad._modes.batch_levels import at_levels
from xpgrad.backend import ControlFlow
from xpgrad.func._loop_lowering import Lowering, bottom, grouped, settled
from xpgrad.func._loop_nodes import attach, classes_of, raws_of, restored, saved, wrap
from xpgrad.func._loop_passes import Pass, Pullback
from xpgrad.rules.reduction import any as any_of

__all__ = ["repeat_while"]


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
    lowering, test, step = Lowering(), repeat_draws(test), repeat_draws(step)
    counts = [lowering.fitting_count(x) for x in init]

    def tested(parts: list[Any]) -> Any:
        with lowering.reopened() as now:
            holds = bottom(test(now.assemble_all(parts, counts)))
            return any_of(holds) if holds.ndim else holds

    def run(parts: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        with lowering.reopened() as now:
            new = step(now.assemble_all(parts, counts))
            now.fit(counts, new)
            return now.take_all_apart(new, counts), []

    def loop() -> list[Any]:
        start = lowering.take_all_apart(init, counts)
        with at_levels(()):
            (found,) = _While(flow, tested, [Pass("while_loop", run)])([start])
        return lowering.assemble_all(found, counts)

    return settled(loop)


class _While:
    """A loop whose number of steps is not known, and passes over its steps; calling it runs them.

    It is one node of the tape. Its derivative is the same loop with twice as many passes, the further ones backward through the given.
    """

    def __init__(self, flow: ControlFlow, test: Callable[[list[Any]], Any], passes: list[Pass], known: int = 0) -> None:
        self.flow, self.test, self.passes, self.known = flow, test, passes, known

    def __call__(self, starts: list[list[Any]]) -> list[list[Any]]:
        """Run the passes from their first states; return the last state of each pass, without those of the loop if there are others.

        The first `known` passes were tried out before.
        """
        recording = state.is_grad_enabled()
        row: list[Any] = []
        for k, (p, start) in enumerate(zip(self.passes, starts)):
            if k >= self.known and (row or recording):
                p.try_out(self.flow.scan, start, row, recording)
            elif k >= self.known:  # it has no other results
                p.start, p.row, p.others, p.edges = [x.detach() for x in start], [], [], []
            row += p.visible
        with switches.no_grad():
            found = self._run(starts)
        outs = [x for group in found for x in group]
        needs = [x.dtype.differentiable for x in outs]
        own = [x._node for start in starts for x in start if x._node is not None]
        edges = list(dict.fromkeys(e for p in self.passes for e in p.edges))
        if recording and (own or edges) and True in needs:
            title = "WhileBackward0" if len(self.passes) == 1 else "WhileBackward0Backward0"
            node = attach(title, [*own, *edges], outs, needs)
            node.pull = _refuse if self.flow.unwind is None else _WhilePass(self, starts, [len(group) for group in found], edges)
        return found

    def _run(self, starts: list[list[Any]]) -> list[list[Any]]:
        """Run it on raw arrays."""
        own, row = [classes_of(start) for start in starts], classes_of([x for p in self.passes for x in p.visible])

        def raw_test(carry: Any) -> Any:
            return self.test(wrap(own[0], carry))._array

        def raw_step(carry: Any) -> Any:
            return raws_of(self.passes[0].run(wrap(own[0], carry), [])[0])

        def raw_pass(k: int) -> Callable[[Any, Any], Any]:
            def run(raws: Any, read: Any) -> Any:
                new, others = self.passes[k].run(wrap(own[k], raws), wrap(row[: len(read)], read))
                return raws_of(new), raws_of(others)

            return run

        raws = [raws_of(start) for start in starts]
        if len(raws) == 1:
            assert self.flow.while_loop is not None
            return [wrap(own[0], self.flow.while_loop(raw_test, raw_step, raws[0]))]
        assert self.flow.unwind is not None
        passes = [(raw_pass(k), raws[k], self.passes[k].reverse) for k in range(1, len(raws))]
        return [wrap(classes, last) for classes, last in zip(own[1:], self.flow.unwind(raw_test, raw_step, raws[0], passes))]


class _WhilePass:
    """The backward pass of a `_While`: the same passes again, then one through each of them in the other direction."""

    def __init__(self, loop: _While, starts: list[list[Any]], counts: list[int], edges: list[Any]) -> None:
        self.loop, self.counts, self.edges = loop, counts, edges
        self.starts = [[saved(x) for x in start] for start in starts]

    def __call__(self, node: Any, given: list[Any]) -> list[Any]:
        """Return the gradients of the edges: of the first states, then of what the passes close over."""
        loop, starts = self.loop, [[restored(node, entry) for entry in start] for start in self.starts]
        lowering = Lowering()
        groups = grouped(given, self.counts)
        if len(groups) < len(starts):
            groups.insert(0, [None] * len(starts[0]))

        def pulled() -> tuple[list[Pullback], list[list[Any]]]:
            found: list[Pullback] = []
            for k in range(len(starts) - 1, -1, -1):
                later, counts = (found[-1].totals, found[-1].total_counts) if found else ([], [])
                back = Pullback(loop.passes[k], groups[k], later, counts, lowering)
                if back.is_needed:
                    found.append(back)
            lowered = [lowering.take_all_apart(back.start) for back in found]
            with at_levels(()):
                passes = [*loop.passes, *(Pass("while_loop", back.run, not back.inner.reverse) for back in found)]
                last = _While(loop.flow, loop.test, passes, len(starts))([*starts, *lowered]) if found else []
            return found, [lowering.assemble_all(parts, back.counts) for back, parts in zip(found, last[len(starts) - 1 :])]

        of_starts: dict[tuple[int, int], Any] = {}
        of_edges: dict[Any, Any] = {}
        for back, last in zip(*settled(pulled)):
            k = loop.passes.index(back.inner)
            of_starts.update(zip([(k, m) for m in back.moving], last))
            for e, g in zip(back.sums, last[len(back.moving) :]):
                of_edges[e] = g if e not in of_edges else of_edges[e] + g
        own = [of_starts.get((k, m)) for k, start in enumerate(self.starts) for m, x in enumerate(start) if x[2] is not None]
        return [*own, *(of_edges.get(e) for e in self.edges)]


def _refuse(node: Any, cotangents: list[Any]) -> list[Any]:
    msg = (
        "reverse mode cannot differentiate a `while_loop` that a library compiles with a number of steps that is not known. Use "
        "`xpgrad.func.scan`, or `fori_loop` with ints, and `xpgrad.where` to stop changing the values; or forward mode (`xpgrad.func.jvp`)"
    )
    raise RuntimeError(msg)
