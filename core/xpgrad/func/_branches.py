"""Branches that a backend runs: one of two functions, as one node of the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xpgrad._aliasing.cells import next_number
from xpgrad._backends.generators import repeat_draws
from xpgrad._modes import state, switches
from xpgrad._modes.batch_levels import at_levels
from xpgrad.func._loop_lowering import Lowering, settled
from xpgrad.func._loop_nodes import attach, classes_of, edges_outside, pull_back, raws_of, wrap, zeros_of

__all__ = ["choose"]


def choose(branch: Callable[..., Any], holds: Any, branches: Sequence[Callable[[], list[Any]]]) -> list[Any]:
    """Return the results of the first branch if `holds`, else of the second; they may be elements of batches and have tangents.

    Parameters
    ----------
    branch : callable
        The `cond` of a `ControlFlow`.
    holds : Tensor
        0-d, boolean, in no batch.
    branches : sequence of callable
        They return Tensors of the same shapes and dtypes.
    """
    lowering, branches = Lowering(), [repeat_draws(f) for f in branches]
    counts: list[int] = []

    def below(k: int) -> list[Any]:
        with lowering.reopened() as now:
            outs = branches[k]()
            now.fit(counts, outs)
            return now.take_all_apart(outs, counts)

    def run() -> list[Any]:
        start = next_number()
        samples = [below(0), below(1)]
        edges = list(dict.fromkeys(e for outs in samples for e in edges_outside(outs, [], start))) if recording else []
        with at_levels(()), switches.no_grad():
            outs = wrap(classes_of(samples[0]), branch(holds._array, lambda: raws_of(below(0)), lambda: raws_of(below(1))))
        needs = [recording and (a._node is not None or b._node is not None) for a, b in zip(*samples)]
        if edges and True in needs:
            attach("CondBackward0", edges, outs, needs).pull = _CondPass(branch, holds, below, edges)
        return lowering.assemble_all(outs, counts)

    recording = state.is_grad_enabled()
    return settled(run)


class _CondPass:
    """The backward pass of a branch: another branch, which runs the chosen function again and differentiates it."""

    def __init__(self, branch: Callable[..., Any], holds: Any, below: Callable[[int], list[Any]], edges: list[Any]) -> None:
        self.branch, self.holds, self.below, self.edges = branch, holds, below, edges

    def __call__(self, node: Any, given: list[Any]) -> list[Any]:
        def pulled(k: int) -> list[Any]:
            return pull_back("cond", lambda: self.below(k), [], [], self.edges, given)

        with switches.no_grad():
            found = [a if b is None else b for a, b in zip(pulled(0), pulled(1))]
        places = [i for i, g in enumerate(found) if g is not None]

        def chosen(k: int) -> list[Any]:
            grads = pulled(k)
            return [zeros_of(found[i]) if grads[i] is None else grads[i] for i in places]

        grads = choose(self.branch, self.holds, [lambda: chosen(0), lambda: chosen(1)])
        by_place = dict(zip(places, grads))
        return [by_place.get(i) for i in range(len(self.edges))]
