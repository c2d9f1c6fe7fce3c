"""Passes over the steps of a loop, and the passes that pull cotangents back through them: what derivatives of loops consist of.

A `scan` and a `while_loop` differ in who keeps the rows of the steps, which a pass reads: a scan stacks them (`_scans.py`), and a loop
whose number of steps is not known runs all its passes again (`_whiles.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from xpgrad._aliasing.cells import next_number
from xpgrad._modes import switches
from xpgrad.func._loop_lowering import Lowering
from xpgrad.func._loop_nodes import begin, cast_like, continued, edges_outside, pull_back, run_aside, zeros_of
from xpgrad.rules.creation import zeros_like

__all__ = ["Pass", "Pullback", "Run"]

#: Takes the state and the row of a step, and returns the next state and other results.
Run = Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]]


class Pass:
    """A pass over the steps of a loop, forward or backward, whose state changes from step to step.

    It computes with Tensors that are in no batch and have no tangents. What it can read of each step is the step's row: the slices of a
    scan, then the states of earlier passes before their visits to the step, and the other results of these visits. The first pass is the
    loop itself.

    Attributes
    ----------
    title : str
        The name of the loop, for messages.
    run : callable
        ``run(state, row)`` returns the state after a step, and other results.
    reverse : bool
        Whether it begins with the last step.
    row, start, others : list of Tensor
        Tensors like a row that it reads, like its first state, and like the other results of a step, all without history. They show shapes
        and dtypes.
    varies : list of bool
        Whether each of the others has a history.
    edges : list of Node
        What `run` closes over, as nodes that are older than the loop.
    scan : callable or None
        For `run_aside`.
    """

    __slots__ = ("edges", "others", "reverse", "row", "run", "scan", "start", "title", "varies")

    row: list[Any]
    start: list[Any]
    others: list[Any]
    varies: list[bool]
    edges: list[Any]

    def __init__(self, title: str, run: Run, reverse: bool = False) -> None:
        self.title, self.run, self.reverse = title, run, reverse

    def try_out(self, scan: Callable[..., Any] | None, start: list[Any], row: list[Any], recording: bool) -> None:
        """Run it once on the side, on Tensors like its first state and like a row that it will read; `scan` is for `run_aside`."""
        self.scan, self.start, self.row = scan, [x.detach() for x in start], [x.detach() for x in row]

        def run(tensors: list[Any]) -> list[Any]:
            inner = [begin(x) if recording else x for x in tensors]
            first = next_number()
            new, others = self.run(inner[: len(start)], inner[len(start) :])
            self.varies = [x._node is not None for x in others]
            self.edges = edges_outside([*new, *others], inner, first) if recording else []
            return others

        self.others = run_aside(scan, run, [*start, *row])

    @property
    def visible(self) -> list[Any]:
        """What a step's row has of this pass."""
        return [*self.start, *self.others]


class Pullback:
    """A pass that goes backward through another one: its state is the cotangent of the other's state, and sums over the steps.

    Its Tensors may be elements of batches and have tangents, as the cotangents may.

    Parameters
    ----------
    inner : Pass
    given : list of (Tensor or None)
        The cotangents of its last state.
    later : sequence of int
        The numbers of the columns whose cotangents are in the row, behind all others: of what `inner` reads, of its states and of its other
        results.
    later_counts : sequence of int
        The numbers of their parts.
    lowering : Lowering
        Takes cotangents apart.
    fixed : collection of int
        Columns of which no cotangents are wanted.

    Attributes
    ----------
    inner : Pass
    moving : list of int
        The numbers of the variables of the inner state that have a cotangent.
    sums : list of Node
        What the inner pass closes over that has a gradient: the sums over the steps are further variables of the state.
    totals : list of int
        Its other results: the columns of a row that `inner` reads for which the visit gives a cotangent, added to that in the row.
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

    def __init__(
        self, inner: Pass, given: list[Any], later: Sequence[int], later_counts: Sequence[int], lowering: Lowering,
        fixed: Collection[int] = (),
    ) -> None:  # fmt: skip
        row = inner.row
        self.inner, self.width, self.lowering, self.fixed = inner, len(row), lowering, fixed
        self.later, self.later_counts = later, later_counts
        columns = [*row, *inner.visible]
        zero = [zeros_like(x) for x in inner.start]
        first = {k: zero[k] if g is None else g for k, g in enumerate(given)}
        totals = {c: zeros_like(columns[c]) for c in self.later if c < len(columns)}
        count = len(zero)
        moving = {k for k in range(count) if given[k] is not None or self.width + k in self.later}
        grads: dict[Any, Any] = {}
        by_edge: dict[Any, Any] = {}

        def pull(tensors: list[Any]) -> list[Any]:
            while True:  # which variables and edges get a gradient, and of which shape
                cotangents = {k: first[k].detach() for k in moving}
                for known, found in zip((grads, by_edge), self._pull(cotangents, totals, tensors[: self.width], tensors[self.width :])):
                    known.update(found)
                more = {c - self.width for c, g in grads.items() if g is not None and c >= self.width}
                if more <= moving:
                    return []
                moving.update(more)

        with switches.no_grad():
            run_aside(inner.scan, pull, [*row, *inner.start])
        self.moving = sorted(moving)
        self.sums = [e for e, g in by_edge.items() if g is not None]
        self.totals = [c for c in range(self.width) if c in self.later or grads.get(c) is not None]
        self.total_counts = [lowering.count(row[c]) for c in self.totals]
        self.is_needed = bool(self.moving or self.sums or self.totals != [c for c in self.later if c < self.width])
        self.start = [first[k] for k in self.moving] + [zeros_of(by_edge[e]) for e in self.sums]
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
        inner, inputs = self.inner, [continued(x) for x in (*read, *own)]
        seeds = [cotangents.get(k) for k in range(len(own))]
        seeds += [totals.get(len(inputs) + k) for k in range(len(inner.others))]
        wanted = [k for k, x in enumerate(inputs) if x.dtype.differentiable and k not in self.fixed]

        def outputs() -> list[Any]:
            new, others = inner.run(inputs[self.width :], inputs[: self.width])
            return [*new, *others]

        found = pull_back(inner.title, outputs, inputs, [inputs[k] for k in wanted], inner.edges, seeds)
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
    found = [cast_like(t, like) for t in terms if t is not None]
    if not found:
        return zeros_like(like)
    return found[0] if len(found) == 1 else found[0] + found[1]
