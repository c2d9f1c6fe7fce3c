"""Exchange two axes of a Tensor: as a view, or in place (`transpose_`), where its shape, history and version change, its memory does not.

In place, no other Tensor may share the memory: a view, a base or a detached alias would keep the old shape, and a write through one of the
two would reach the wrong elements of the other.
"""

from __future__ import annotations

from typing import Any

from xpgrad._aliasing.cells import alias_of
from xpgrad._aliasing.sharing import bump, run_uninterrupted
from xpgrad._aliasing.stale import take_over
from xpgrad._basics.shapes import normalize_axis
from xpgrad._modes import state
from xpgrad._tensor.writing import check_writable
from xpgrad.rules import manipulation


def exchange_axes(x: Any, name: str, **axes: int) -> Any:
    """Return a view with two axes exchanged; the names of the function and of the axes are for messages."""
    order = list(range(x.ndim))
    first, second = (normalize_axis(axis, x.ndim, name, argument) for argument, axis in axes.items())
    order[first], order[second] = order[second], order[first]
    return manipulation.transpose_axes(x, tuple(order))


def turn(x: Any, dim0: int, dim1: int) -> Any:
    """Exchange two axes of `x` in place, and return `x`.

    Raises
    ------
    RuntimeError
        For a leaf that requires grad, a Tensor that shares its memory with another, an inference tensor, one with a tangent, or one on
        which a transform runs.
    """
    mode = state.current()
    check_writable(x, None, mode)
    if x.stage or x.is_inference() or (mode is not None and bool(mode.levels) and mode.levels.have_tangents(x)):
        raise _refusal("it is an inference tensor, has a tangent, or is an argument of `vmap` or of a compiled function")
    alias = alias_of(x)
    if alias.parent is not None or any(t is not None and t is not x for t in (reference() for reference in alias.cell.views)):
        raise _refusal("it shares its memory with another Tensor, which would keep the old shape")
    if x._node is not None and x._node.is_leaf:
        raise _refusal("it is a leaf that requires grad, whose `.grad` has the old shape")
    turned = exchange_axes(x, "transpose_", dim0=dim0, dim1=dim1)
    raw, node = turned._array, turned._node

    def steps() -> None:
        x._array = raw
        if alias.memory is not None:
            alias.memory[0] = raw
        if node is not None:
            take_over(x, node)

    run_uninterrupted(steps)
    del turned  # no view of `x` is left
    bump(x)
    return x


def _refusal(why: str) -> RuntimeError:
    return RuntimeError(f"transpose_: the shape of this Tensor cannot be changed in place: {why}; write `x = x.transpose(dim0, dim1)`")
