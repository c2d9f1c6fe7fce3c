"""A call as one node of the tape, which saves the inputs only and calls the function again in a backward pass.

Each step of a loop with ``checkpoint=True`` that Python runs is such a call: it has the branches that this step takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import alias_of, next_number
from xpgrad._modes import state
from xpgrad._modes.batch_levels import at_levels
from xpgrad.func._loop_lowering import Lowering, settled
from xpgrad.func._loop_nodes import attach, begin, continued, edges_outside, pull_back, restored, saved

__all__ = ["call_recomputed"]


def call_recomputed(
    what: str, function: Callable[[list[Any], list[Any]], list[Any]], inputs: list[Any], plain: list[Any]
) -> list[Any]:  # fmt: skip
    """Return the results of a function; its inputs and results may be elements of batches and have tangents.

    Parameters
    ----------
    what : str
        The name of the loop, for messages.
    function : callable
        ``function(inputs, plain)`` returns a list of Tensors. It may close over others, and is differentiated with respect to them.
    inputs, plain : list of Tensor
        Those in `plain` are in no batch and have no tangents, and stay so.
    """
    lowering = Lowering()
    counts: list[int] = [lowering.fitting_count(x) for x in inputs]
    out_counts: list[int] = []
    width = sum(counts)

    def below(parts: list[Any]) -> list[Any]:
        with lowering.reopened() as now:
            outs = function(now.assemble_all(parts[:width], counts), parts[width:])
            now.fit(out_counts, outs)
            return now.take_all_apart(outs, out_counts)

    def run() -> list[Any]:
        parts = lowering.take_all_apart(inputs, counts)
        with at_levels(()):
            outs = _call(what, below, [*parts, *plain])
        return lowering.assemble_all(outs, out_counts)

    return settled(run)


def _call(what: str, function: Callable[[list[Any]], list[Any]], inputs: list[Any]) -> list[Any]:
    """Do what `call_recomputed` does for Tensors that are in no batch and have no tangents."""
    recording = state.is_grad_enabled()
    own = [begin(x) if recording and x._node is not None else x.detach() for x in inputs]
    for x in own:
        if x.backend.capabilities.mutable:
            alias_of(x).forbidden = "argument"
    first = next_number()
    results = function(own)
    needs = [x._node is not None for x in results]
    # NB: a view, of an input or of what the function closes over, would be written to without a history.
    outs = [x.detach() if x._alias is None else x.detach().clone() for x in results]
    if recording and True in needs:
        edges = edges_outside(results, own, first)
        node = attach("ScanBackward0", [*(x._node for x in inputs if x._node is not None), *edges], outs, needs)
        node.pull = _Pull(what, function, inputs, edges)
    return outs


class _Pull:
    """The backward pass of a call: a call of the function that computes its gradients, which runs it again."""

    def __init__(self, what: str, function: Callable[[list[Any]], list[Any]], inputs: list[Any], edges: list[Any]) -> None:
        self.what, self.function, self.edges = what, function, edges
        self.inputs = [saved(x) for x in inputs]

    def __call__(self, node: Any, given: list[Any]) -> list[Any]:
        inputs = [restored(node, entry) for entry in self.inputs]
        wanted = [k for k, x in enumerate(inputs) if x._node is not None]
        present = [k for k, g in enumerate(given) if g is not None]
        places: list[int] = []

        def pulled(cotangents: list[Any], own: list[Any]) -> list[Any]:
            own = [continued(x) if k in wanted else x for k, x in enumerate(own)]
            seeds = dict(zip(present, cotangents))
            found = pull_back(
                self.what, lambda: self.function(own), own, [own[k] for k in wanted], self.edges, [seeds.get(k) for k in range(len(given))]
            )  # fmt: skip
            places[:] = [k for k, g in enumerate(found) if g is not None]
            return [found[k] for k in places]

        by_place = dict(zip(places, call_recomputed(self.what, pulled, [given[k] for k in present], inputs)))
        return [by_place.get(k) for k in range(len(wanted) + len(self.edges))]
