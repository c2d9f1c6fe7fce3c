"""Sums, extrema and their kin: primitives with normalised axes, and the changes of shape by which gradients return."""

from __future__ import annotations

from typing import Any

from xpgrad._coerce import not_a_tensor
from xpgrad._dtypes import as_dtype
from xpgrad._row import PRIMITIVES, front, nondifferentiable, rule
from xpgrad._tensor import Tensor

Axis = int | tuple[int, ...] | None


def normalize_axis(axis: Any, ndim: int, name: str) -> int:
    """One axis as a number in ``range(ndim)``.

    Raises
    ------
    TypeError
        If it is no integer.
    IndexError
        If it is out of range.
    """
    try:
        number: int = axis.__index__()
    except (AttributeError, TypeError):
        msg = f"{name}: `axis` must be an int, but got {axis!r}"
        raise TypeError(msg) from None
    if not -ndim <= number < ndim:
        msg = f"{name}: axis {number} is out of range for a Tensor with {ndim} axes; use {-ndim} to {ndim - 1}"
        raise IndexError(msg)
    return number % ndim


def normalize_axes(axis: Any, ndim: int, name: str) -> tuple[int, ...] | None:
    """Axes as a tuple of different numbers in ``range(ndim)``; None stays None (all).

    Raises
    ------
    TypeError, IndexError, ValueError
        If they are no integers, out of range, or given twice.
    """
    if axis is None:
        return None
    if axis.__class__ is int:
        return (normalize_axis(axis, ndim, name),)
    axes = tuple(normalize_axis(a, ndim, name) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) != len(axes):
        msg = f"{name}: `axis` names an axis twice: {axis!r}"
        raise ValueError(msg)
    return axes


def need_tensor(name: str, x: Any) -> None:
    """Raise TypeError if `x` is no Tensor."""
    if not isinstance(x, Tensor):
        raise not_a_tensor(name, x)


# -- changes of shape between an array and its reduction --------------------------------------------------------------


@rule(lambda g, x_shape, axes, keepdims, xp: xp.expand_reduced(g, x_shape, axes, keepdims), conj=False, node="SumBackward1")
def reduce_sum(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """Sum over axes (a tuple, or None for all)."""
    return xp.sum(x, axis=axes, keepdims=keepdims)


@rule(lambda g, axes, keepdims, xp: xp.reduce_sum(g, axes, keepdims), conj=False, node="ExpandBackward0")
def expand_reduced(xp: Any, x: Any, shape: tuple[int, ...], axes: Any, keepdims: bool) -> Any:
    """Repeat a reduction's result over the axes that it lost."""
    if axes is not None and not keepdims:
        kept = [1 if i in axes else n for i, n in enumerate(shape)]
        x = xp.reshape(x, tuple(kept))
    return xp.broadcast_to(x, shape)


@rule(lambda g, x_shape, xp: xp.broadcast_to(g, x_shape), conj=False, node="SumBackward1")
def sum_to(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Undo a broadcast: sum over the axes that `shape` lacks or has of length 1."""
    if tuple(x.shape) == tuple(shape):
        return x
    extra = len(x.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1)
    if axes:
        x = xp.sum(x, axis=axes, keepdims=True)
    return xp.reshape(x, shape)


# On Tensors there is nothing to record where nothing was broadcast.
PRIMITIVES["sum_to"] = lambda x, shape: x if x.shape == tuple(shape) else sum_to(x, shape)


@front
def sum(x: Tensor, /, *, axis: Axis = None, dtype: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """Sum over axes (Array API 2024.12, `sum`).

    Parameters
    ----------
    x : Tensor
    axis : int or tuple of int, optional
        Default: all.
    dtype : DType, optional
        Default: that of `x`; for small integers the default integer.
    keepdims : bool
        Keep reduced axes with length 1.
    """
    need_tensor("sum", x)
    if dtype is not None:
        wanted = as_dtype(dtype, x.default_dtype)
        return reduce_sum(x._cast(wanted), normalize_axes(axis, x.ndim, "sum"), keepdims)._cast(wanted)
    return reduce_sum(x, None if axis is None else normalize_axes(axis, x.ndim, "sum"), keepdims)


# -- extrema ------------------------------------------------------------------------------------------------------------


def _extremum_vjp(g: Any, x: Any, out: Any, x_shape: Any, axes: Any, keepdims: bool, xp: Any) -> Any:
    # Ties share evenly (SUB-05).
    chosen = x == xp.expand_reduced(out, x_shape, axes, keepdims)
    wide = xp.wide(g)
    count = xp.reduce_sum(xp.cast(chosen, wide.dtype), axes, True)
    share = xp.expand_reduced(wide, x_shape, axes, keepdims) / count
    return xp.keep(chosen, share if wide is g else xp.cast(share, g.dtype))


def _extremum_jvp(d_x: Any, x: Any, out: Any, x_shape: Any, axes: Any, keepdims: bool, xp: Any) -> Any:
    chosen = x == xp.expand_reduced(out, x_shape, axes, keepdims)
    wide = xp.wide(d_x)
    count = xp.reduce_sum(xp.cast(chosen, wide.dtype), axes, keepdims)
    share = xp.reduce_sum(xp.keep(chosen, wide), axes, keepdims) / count
    return share if wide is d_x else xp.cast(share, d_x.dtype)


@rule(_extremum_vjp, conj=False, fresh=True, node="AmaxBackward0", jvp=_extremum_jvp)
def reduce_max(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """Largest element over axes."""
    return xp.max(x, axis=axes, keepdims=keepdims)


@rule(_extremum_vjp, conj=False, fresh=True, node="AminBackward0", jvp=_extremum_jvp)
def reduce_min(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """Smallest element over axes."""
    return xp.min(x, axis=axes, keepdims=keepdims)


@front
def max(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:  # noqa: A001 (the standard's name)
    """Largest element over axes; ties share the gradient evenly (SUB-05)."""
    need_tensor("max", x)
    return reduce_max(x, normalize_axes(axis, x.ndim, "max"), keepdims)


@front
def min(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:  # noqa: A001 (the standard's name)
    """Smallest element over axes; ties share the gradient evenly (SUB-05)."""
    need_tensor("min", x)
    return reduce_min(x, normalize_axes(axis, x.ndim, "min"), keepdims)


# -- truth ----------------------------------------------------------------------------------------------------------------


def plain(name: str, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Apply a function of the raw namespace that has no derivative."""
    need_tensor(name, x)
    args = tuple(a._array if isinstance(a, Tensor) else a for a in args)
    return finished(x, getattr(x.backend.kernels, name)(x._array, *args, **kwargs))


def finished(x: Tensor, raw: Any) -> Tensor:
    """A constant result beside `x`, marked by the mode if it asks for that."""
    from xpgrad import _modes

    out = (x._stand_in() if x.is_inference() else x)._alike(raw)
    mode = _modes.current()
    if mode is not None and not mode.plain:
        mode.finish(out)
    return out


@nondifferentiable(primitive=True)
def all(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:  # noqa: A001 (the standard's name)
    """Whether all elements along axes are true."""
    need_tensor("all", x)
    return plain("all", x, axis=normalize_axes(axis, x.ndim, "all"), keepdims=keepdims)


@nondifferentiable(primitive=True)
def any(x: Tensor, /, *, axis: Axis = None, keepdims: bool = False) -> Tensor:  # noqa: A001 (the standard's name)
    """Whether any element along axes is true."""
    need_tensor("any", x)
    return plain("any", x, axis=normalize_axes(axis, x.ndim, "any"), keepdims=keepdims)
