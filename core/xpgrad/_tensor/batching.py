"""Turns what a function under `vmap` made into an element of the batch, as soon as an element is written into it.

A creation function under `vmap` makes an ordinary Tensor, which all elements share. A write of different values needs one for each
element: the Tensor, and the views of it, get the class of the batch and the values that they had, and then the write is one like others.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from xpgrad._aliasing.cells import chain_of, follow, note_sharing
from xpgrad._aliasing.sharing import run_uninterrupted
from xpgrad._aliasing.stale import VIEWS
from xpgrad._modes import state
from xpgrad._modes.batch_levels import was_made_within
from xpgrad._modes.switches import enable_grad
from xpgrad.rules.indexing import shared_by_batch

__all__ = ["become_batched"]


def become_batched(x: Any, cls: Any) -> None:
    """Make `x`, and all Tensors that share its memory, Tensors of the batched class `cls`, with the same values for all elements.

    Raises
    ------
    RuntimeError
        If the function under `vmap` did not make the memory by a creation function or a copy, if `x` is a leaf that requires grad, if
        there are views of it that have a history, or if it has a tangent.
    """
    mode = state.current()
    base = x if x._alias is None or x._alias.parent is None else x._base
    cell = None if base._alias is None else base._alias.cell
    found = [] if cell is None else [reference() for reference in cell.views]
    views = list({id(t): t for t in found if t is not None and t is not base and t._alias.cell is cell}.values())
    with_history = [t for t in (base, *views) if t.fresh is not None or t._node is not None]
    has_tangent = mode is not None and bool(mode.levels) and mode.levels.have_tangents(base)
    if has_tangent or not was_made_within(base, cls.depth) or (with_history and (views or base._node.is_leaf)):
        raise shared_by_batch(x)
    with enable_grad() if base._node is not None else nullcontext():  # a write that is not recorded keeps the history
        batched = cls.lift(base.clone())
    turned = [(t, follow(batched, chain_of(t), VIEWS)) for t in views]
    if any(t._alias.parent is None for t in views):  # as of `detach()`: it shares the memory, and is not a view
        raise shared_by_batch(x)

    def turn() -> None:
        for t, new in [(base, batched), *turned]:
            t.__class__, t._array, t._node, t._alias = cls, new._array, new._node, new._alias
            if t._alias is not None:
                note_sharing(t)
        for _, new in turned:
            while new is not batched and new is not base:
                alias, new = new._alias, new._alias.parent
                if new is batched:
                    alias.parent = base

    run_uninterrupted(turn)
