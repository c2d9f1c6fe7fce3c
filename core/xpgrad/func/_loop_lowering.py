"""Take Tensors at the edge of a loop or a branch apart, into arrays below every batch and every tangent, and put them together again.

A loop of a backend runs on raw arrays. So `vmap` and forward mode are applied around it and inside its steps, where `Lowering.reopened`
makes them active again, also when a backward pass runs the steps later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy
from typing import Any

from xpgrad._modes import state
from xpgrad._modes.batch_levels import active_levels, at_levels
from xpgrad._modes.setting import Setting
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._transforms.batch.batch import class_of_depth, put_in, take_out
from xpgrad._transforms.forward.levels import keep_tangents, reopen, with_levels
from xpgrad.rules.creation import zeros_like
from xpgrad.rules.manipulation import moveaxis

__all__ = ["Lowering", "bottom", "grouped", "levels_of", "settled"]


def _without_packing() -> Any:
    """Return a context manager that deactivates hooks for saved values and selective checkpoints."""
    mode = state.current()
    if mode is None or mode.packing is mode.selecting is None:
        return nullcontext()
    return Setting(state.VARIABLE, state.mode_with(packing=None, selecting=None))


class _Rebatched(Exception):
    """Raised if Tensors turn out to have tangents, or these to be a batch of which the values are not elements: lowering begins again."""


def bottom(x: Any) -> Any:
    """Return the Tensor that holds the batches of which `x` is an element; `x` itself outside of batches."""
    while x.depth:
        x = x._array.value
    return x


def levels_of(tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Return the levels of which Tensors are elements, outermost first."""
    found = {}
    for x in tensors:
        while x is not None and x.depth:
            if x._array.level is not None:
                found[x.depth] = x._array.level
            x = x._array.value
    return tuple(found[depth] for depth in sorted(found))


class Lowering:
    """The calls of `vmap` and the levels of forward mode around a loop.

    Attributes
    ----------
    levels : tuple of BatchLevel
        Outermost first.
    tangents : tuple of Level
        The levels of forward mode at which a Tensor has a tangent, outermost first.
    batches : dict of Level to tuple of BatchLevel
        The batches of which tangents are elements and values are not, as in `jacfwd`. They are found while Tensors are taken apart, which
        then begins again: see `settled`.
    """

    def __init__(self) -> None:
        self.levels = active_levels()
        mode = state.current()
        self.tangents: tuple[Any, ...] = ()
        if mode is not None and state.carries_tangents():
            self.tangents = tuple(level for level in mode.levels if level.active)
        self.batches: dict[Any, tuple[Any, ...]] = {level.root: () for level in self.tangents}
        keep_tangents(self.tangents)

    @contextmanager
    def reopened(self) -> Iterator[Lowering]:
        """Context manager in which the batches are active, and tangents are those that Tensors had when they were saved.

        It gives an object like this one, in which copies stand for the levels of forward mode that have ended. A pass runs the steps of a
        loop again; they may use Tensors that had tangents.

        Hooks for saved values from outside are inactive: what a step saves lives no longer than the step, and values of a loop of generated
        code cannot leave it.
        """
        with at_levels(self.levels), _without_packing():
            mode = state.current()
            known = {} if mode is None else {level.root: level for level in mode.levels}
            if all(known.get(level.root) is level for level in self.tangents):
                yield self
                return
            found = copy(self)
            found.tangents = reopen(self.tangents)
            with with_levels((*found.tangents, *(level for level in known.values() if level not in found.tangents))):
                yield found

    def take_apart(self, x: Any, count: int | None = None) -> list[Any]:
        """Return the value and the tangents of a Tensor, below the batches; a Tensor that the elements share is repeated.

        With a `count` of 1 it has no tangents, and is the only part.

        Raises
        ------
        _Rebatched
            The tangents are a batch of a level that `batches` lacks.
        """
        outside = _outside(x, self.levels)._stand_in()
        return [outside] if count == 1 else self._split(outside)

    def assemble(self, parts: list[Any]) -> Any:
        """Undo `take_apart`."""
        return _inside(self.joined(parts), self.levels)

    def take_all_apart(self, tensors: Sequence[Any], counts: Sequence[int] | None = None) -> list[Any]:
        """Return the parts of several Tensors."""
        known: Sequence[int | None] = counts or [None] * len(tensors)
        return [part for x, n in zip(tensors, known) for part in self.take_apart(x, n)]

    def assemble_all(self, parts: Sequence[Any], counts: Sequence[int]) -> list[Any]:
        """Return Tensors from their parts; `counts` are the numbers of parts."""
        return [self.assemble(group) for group in grouped(parts, counts)]

    def take_slices_apart(self, x: Any, count: int | None = None) -> list[Any]:
        """Do the same as `take_apart` for a stack of Tensors; the first axis of the parts goes along the stack."""
        return self._stacks(self.take_apart(x, count), len(self.levels))

    def take_shared_apart(self, x: Any, count: int) -> list[Any] | None:
        """Do the same for a stack that all elements of the batches share, which is not repeated; None if they do not share it.

        `joined` undoes it for a slice.
        """
        if not self.levels:
            return self.take_slices_apart(x, count)
        found = [x]
        for level in reversed(self.tangents) if x.dtype.differentiable else ():
            found += [t for t in map(level.tangent, found) if t is not None]
        if any(level in self.levels for y in found for level in levels_of([y])):
            return None
        below = bottom(x)._stand_in()
        return self._stacks([below] if count == 1 else self._split(below), 0)

    def assemble_slices(self, parts: list[Any]) -> Any:
        """Undo `take_slices_apart`."""
        axes = [count + len(self.levels) for count in self._batch_axes(len(parts))]
        return self.assemble([moveaxis(part, 0, axis) if axis else part for part, axis in zip(parts, axes)])

    def _stacks(self, parts: list[Any], more: int) -> list[Any]:
        """Return parts with the axis behind those of the batches, and behind `more` others, as the first."""
        axes = [count + more for count in self._batch_axes(len(parts))]
        return [moveaxis(part, axis, 0) if axis else part for part, axis in zip(parts, axes)]

    def _batch_axes(self, count: int) -> list[int]:
        """Return the number of first axes of each of the parts of a Tensor that are batches of tangents."""
        found = [0]
        for level in reversed(self.tangents) if count > 1 else ():
            found = [n for before in found for n in (before, before + len(self.batches[level.root]))]
        return found

    def count(self, x: Any) -> int:
        """Return the number of parts of a Tensor."""
        return 2 ** len(self.tangents) if x.dtype.differentiable else 1

    def fitting_count(self, x: Any) -> int:
        """Return the number of parts that a Tensor needs: 1 if it has no tangents, since tangents of 0 become nan at infinite slopes."""
        return self.count(x) if any(level.tangent(x) is not None for level in self.tangents) else 1

    def fit(self, counts: list[int], tensors: Sequence[Any]) -> None:
        """Make `counts` large enough for Tensors; empty counts are those that they need.

        Raises
        ------
        _Rebatched
            They were too small.
        """
        found = list(map(self.fitting_count, tensors))
        is_known = bool(counts)
        larger = [max(pair) for pair in zip(counts, found)] if is_known else found
        if larger != counts:
            counts[:] = larger
            if is_known:
                raise _Rebatched

    def _split(self, x: Any) -> list[Any]:
        """Return the value and the tangents, those of the outermost level next to what they belong to."""
        parts = [x]
        if x.dtype.differentiable:
            for level in reversed(self.tangents):
                parts = [q for p in parts for q in (level.primal(p), self._tangent(level, p))]
        return parts

    def _tangent(self, level: Any, x: Any) -> Any:
        """Return the tangent of `x` at a level, with the batches of that level as its first axes."""
        t = level.tangent(x)
        t = _outside(zeros_like(x) if t is None else t, self.batches[level.root])
        if t.depth:
            self.batches[level.root] = levels_of([t]) + self.batches[level.root]
            raise _Rebatched
        return t._stand_in()

    def joined(self, parts: list[Any]) -> Any:
        """Return a Tensor below the batches from its value and tangents."""
        for level in self.tangents if len(parts) > 1 else ():
            parts = [self._dual(level, p, t) for p, t in zip(parts[::2], parts[1::2])]
        return parts[0]

    def _dual(self, level: Any, x: Any, tangent: Any) -> Any:
        """Return `x` with a tangent; undo `_tangent`."""
        batches = self.batches[level.root]
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


def grouped(parts: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """Return consecutive parts in groups of these lengths."""
    given = iter(parts)
    return [[next(given) for _ in range(count)] for count in counts]


def settled(function: Callable[[], Any]) -> Any:
    """Call a function until the batches of tangents stay the same."""
    while True:
        try:
            return function()
        except _Rebatched:
            continue
