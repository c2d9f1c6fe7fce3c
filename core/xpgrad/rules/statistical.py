"""Means, variances, products and running totals.

`sum`, `max` and `min` are in `reduction`. The gradients of products are built from products only, never by dividing by an element, so that
they are exact where elements are zero and can be differentiated any number of times.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.arguments import as_flag, as_real
from xpgrad._basics.docstrings import shares
from xpgrad._basics.dtypes import as_dtype
from xpgrad._basics.shapes import normalize_axis, normalize_reduction_axes
from xpgrad._operations.declare import front, rule
from xpgrad._operations.lift import as_tensor
from xpgrad._rows.row import Kink
from xpgrad.rules.creation import full
from xpgrad.rules.manipulation import concat, reshape
from xpgrad.rules.reduction import _document_axes

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["cumulative_prod", "cumulative_sum", "mean", "prod", "std", "var"]


def _count(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> int:
    """Return the number of elements that a reduction over `axes` combines."""
    return math.prod(shape if axes is None else (shape[a] for a in axes))


def _floating(x: Tensor) -> Tensor:
    """Return `x`, or its values in the default floating-point dtype if it holds integers or bools."""
    return x if x.dtype.differentiable else x._cast(x.default_dtype("real floating"))


# -- mean, variance, standard deviation -------------------------------------------------------------------------------


#: The largest n such that float16 represents all integers up to n; gradients are divided by larger counts in a wider dtype.
_EXACT = 2048


def _mean_vjp(g: Any, x_shape: Any, axes: Any, keepdims: bool, xp: Any) -> Any:
    count = _count(x_shape, axes) or 1
    if count > _EXACT:
        wide = xp.wide(g)
        if wide is not g:
            return xp.expand_reduced(xp.cast(wide / count, g.dtype), x_shape, axes, keepdims)
    return xp.expand_reduced(g / count, x_shape, axes, keepdims)


@rule(_mean_vjp, conj=False, node="MeanBackward0", batch="stacked", kind="reduction", memory="new", dtype="same", public="mean")
def reduce_mean(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """Return the mean over axes (a tuple, or None for all)."""
    return xp.mean(x, axis=axes, keepdims=keepdims)


@front(method="mean")
@_document_axes
def mean(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the arithmetic mean over axes.

    Returns
    -------
    Tensor
        Has the shape of `x` without the reduced axes, and its dtype; integers and bools give the default floating-point dtype.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    >>> y = xp.mean(x, axis=0)
    >>> y
    tensor([2. , 3.5], grad_fn=<MeanBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([[0.5, 0.5],
            [0.5, 0.5]])
    """
    if not isinstance(x, TensorBase):
        x = as_tensor("mean", x)
    op = x._op_reduce_mean  # type: ignore[attr-defined]
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, "mean", "keepdims")
    if not x.dtype.differentiable:
        x = _floating(x)
        op = x._op_reduce_mean  # type: ignore[attr-defined]
    return op(None if axis is None else normalize_reduction_axes(axis, x.ndim, "mean"), keepdims)


def _variance_vjp(g: Any, x: Any, x_shape: Any, axes: Any, correction: float, keepdims: bool, xp: Any) -> Any:
    count = _count(x_shape, axes)
    freedom = count - correction
    spread = x - xp.reduce_mean(x, axes, True)
    wide = xp.wide(g) if count > _EXACT else g
    out = xp.expand_reduced(wide * (2 / freedom if freedom > 0 else math.inf), x_shape, axes, keepdims) * spread
    return out if wide is g else xp.cast(out, g.dtype)


def _deviation_vjp(g: Any, x: Any, out: Any, x_shape: Any, axes: Any, correction: float, keepdims: bool, xp: Any) -> Any:
    # For equal values the gradient is 0, the least of the subgradients (SUB-08).
    flat = out == 0
    inner = xp.keep(~flat, g / (xp.where(flat, xp.ones_like(out), out) * 2))
    return _variance_vjp(inner, x, x_shape, axes, correction, keepdims, xp)


def _variance_jvp(d_x: Any, x: Any, x_shape: Any, axes: Any, correction: float, keepdims: bool, xp: Any) -> Any:
    freedom = _count(x_shape, axes) - correction
    spread = x - xp.reduce_mean(x, axes, True)
    wide = xp.wide(d_x)
    along = xp.real(wide * xp.conj(spread)) if xp.isdtype(x.dtype, "complex floating") else wide * spread
    out = xp.reduce_sum(along, axes, keepdims) * (2 / freedom if freedom > 0 else math.inf)
    return out if wide is d_x else xp.cast(out, d_x.dtype)


def _deviation_jvp(d_x: Any, x: Any, out: Any, x_shape: Any, axes: Any, correction: float, keepdims: bool, xp: Any) -> Any:
    flat = out == 0
    along = _variance_jvp(d_x, x, x_shape, axes, correction, keepdims, xp)
    return xp.keep(~flat, along / (xp.where(flat, xp.ones_like(out), out) * 2))


@rule(
    _variance_vjp,
    conj=False, fresh=True, node="VarBackward0", jvp=_variance_jvp, batch="stacked", kind="reduction", memory="new", dtype="real",
    helper=True, public="var",
)  # fmt: skip
def reduce_var(xp: Any, x: Any, axes: Any, correction: float, keepdims: bool) -> Any:
    """Return the variance over axes; for complex numbers the mean squared distance from the mean."""
    if xp.isdtype(x.dtype, "complex floating"):
        parts = [xp.var(part, axis=axes, correction=correction, keepdims=keepdims) for part in (xp.real(x), xp.imag(x))]
        return xp.add(*parts)
    return xp.var(x, axis=axes, correction=correction, keepdims=keepdims)


@rule(
    _deviation_vjp,
    conj=False, fresh=True, node="StdBackward0", jvp=_deviation_jvp, batch="stacked", kind="reduction", dtype="real", public="std",
    kink=Kink("of equal values", lambda out: out == 0, (1.0, 1.0)),
)  # fmt: skip
def reduce_std(xp: Any, x: Any, axes: Any, correction: float, keepdims: bool) -> Any:
    """Return the square root of the variance over axes."""
    # Equal values must give 0, not the rounding error of their mean, for the gradient to be 0: so measure from one of them.
    first = tuple(slice(0, 1 if n != 0 else 0) if axes is None or i in axes else slice(None) for i, n in enumerate(x.shape))
    return xp.sqrt(xp.reduce_var(xp.subtract(x, x[first]), axes, correction, keepdims))


@front
@_document_axes
def var(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance over axes, which is real also for complex numbers.

    Parameters
    ----------
    correction : float
        The sum of squares is divided by ``N - correction``: 0 for the variance of a population, 1 for that of a sample.

    Returns
    -------
    Tensor
        Has the shape of `x` without the reduced axes; real floating-point.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    >>> y = xp.var(x, axis=0)
    >>> y
    tensor([1.  , 2.25], grad_fn=<VarBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([[-1. , -1.5],
            [ 1. ,  1.5]])
    """
    x = as_tensor("var", x)
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, "var", "keepdims")
    correction = as_real(correction, "var", "correction")
    return reduce_var(_floating(x), normalize_reduction_axes(axis, x.ndim, "var"), correction, keepdims)


@front
@_document_axes
def std(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation over axes; its gradient where all values are equal is taken as 0.

    Parameters
    ----------
    correction : float
        The sum of squares is divided by ``N - correction``: 0 for a population, 1 for a sample.

    Returns
    -------
    Tensor
        Has the shape of `x` without the reduced axes; real floating-point.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    >>> y = xp.std(x, axis=0)
    >>> y
    tensor([1. , 1.5], grad_fn=<StdBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([[-0.5, -0.5],
            [ 0.5,  0.5]])
    """
    x = as_tensor("std", x)
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, "std", "keepdims")
    correction = as_real(correction, "std", "correction")
    return reduce_std(_floating(x), normalize_reduction_axes(axis, x.ndim, "std"), correction, keepdims)


# -- product ----------------------------------------------------------------------------------------------------------------


def _prod_vjp(g: Any, x: Any, x_shape: Any, axes: Any, keepdims: bool, xp: Any) -> Any:
    """Return ``g`` times the product of all other elements, by going up a tree of products of pairs and down again (SUB-10)."""
    axes = tuple(range(len(x_shape))) if axes is None else axes
    kept = tuple(i for i in range(len(x_shape)) if i not in axes)
    order = kept + axes
    lengths = tuple(x_shape[i] for i in kept)
    count = _count(x_shape, axes)
    if count == 0:
        return xp.zeros_like(x)
    levels = [xp.reshape_to(xp.transpose_axes(x, order), (*lengths, count))]
    while levels[-1].shape[-1] > 1:
        level = levels[-1]
        half = level.shape[-1] // 2
        pairs = level[..., :half] * level[..., half : 2 * half]
        levels.append(_join(xp, pairs, level[..., 2 * half :]))
    out = xp.reshape_to(g, (*lengths, 1))
    for level in levels[-2::-1]:
        half = level.shape[-1] // 2
        top = out[..., :half]
        out = _join(xp, top * level[..., half : 2 * half], top * level[..., :half], out[..., half:])
    inverse = [0] * len(order)
    for place, axis in enumerate(order):
        inverse[axis] = place
    return xp.transpose_axes(xp.reshape_to(out, tuple(x_shape[i] for i in order)), tuple(inverse))


def _join(xp: Any, *parts: Any) -> Any:
    """Concatenate arrays along the last axis, skipping empty ones."""
    full = [p for p in parts if p.shape[-1]]
    return full[0] if len(full) == 1 else xp.concat(full, axis=-1)


@rule(_prod_vjp, node="ProdBackward0", batch="stacked", kind="reduction", memory="new", public="prod")
def reduce_prod(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """Return the product over axes (a tuple, or None for all)."""
    return xp.prod(x, axis=axes, keepdims=keepdims)


@front(method="prod")
@_document_axes
def prod(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """Return the product over axes; its gradient is exact where elements are zero.

    Parameters
    ----------
    dtype : DType, optional
        Data type in which to multiply, and of the result. By default that of `x`, except that bools and integers narrower than
        the default integer dtype are widened to it.

    Returns
    -------
    Tensor
        Has the shape of `x` without the reduced axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    >>> y = xp.prod(x, axis=0)
    >>> y
    tensor([ 3., 10.], grad_fn=<ProdBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([[3., 5.],
            [1., 2.]])
    """
    x = as_tensor("prod", x)
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, "prod", "keepdims")
    axes = normalize_reduction_axes(axis, x.ndim, "prod")
    if dtype is None:
        return reduce_prod(x, axes, keepdims)
    wanted = as_dtype(dtype, x.default_dtype)
    return reduce_prod(x._cast(wanted), axes, keepdims)._cast(wanted)


# -- running totals -----------------------------------------------------------------------------------------------------------


@rule(
    lambda g, axis, xp: xp.running_sum_back(g, axis),
    conj=False, fresh=True, node="CumsumBackward0", batch="stacked", memory="new", numpy="cumsum", public="cumulative_sum",
)  # fmt: skip
def running_sum(xp: Any, x: Any, axis: int) -> Any:
    """Return running sums along an axis."""
    return xp.cumulative_sum(x, axis=axis)


@rule(
    lambda g, axis, xp: xp.running_sum(g, axis),
    conj=False, fresh=True, node="CumsumBackward0Backward0", batch="stacked", spelled="the gradient of `cumulative_sum`",
)  # fmt: skip
def running_sum_back(xp: Any, x: Any, axis: int) -> Any:
    """Return running sums from the end of an axis."""
    return xp.flip(xp.running_sum(xp.flip(x, axis=axis), axis), axis=axis)


def _running_prod_vjp(g: Any, x: Any, out: Any, x_shape: Any, axis: int, xp: Any) -> Any:
    if 0 in x_shape:
        return xp.zeros_like(x)
    order = list(range(len(x_shape)))
    order[axis], order[-1] = order[-1], order[axis]
    g, x, out = (xp.transpose_axes(a, tuple(order)) for a in (g, x, out))
    return xp.transpose_axes(_scan_vjp(g, x, out, xp), tuple(order))


def _scan_vjp(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return the vjp of a running product along the last axis: O(n) by halving, and without dividing by an element.

    With ``c`` the running product of the pairs ``x[0] x[1], x[2] x[3], ...``: ``out[2i + 1] = c[i]``, ``out[2i] = c[i - 1] x[2i]``.
    """
    n = x.shape[-1]
    if n == 1:
        return g
    half, more = n // 2, (n - 1) // 2
    even, odd, c = x[..., 0::2], x[..., 1::2], out[..., 1::2]
    g_even, g_odd = g[..., 0::2], g[..., 1::2]
    late = g_even[..., 1:]
    g_c = _join(xp, g_odd[..., :more] + late * even[..., 1:], g_odd[..., more:])
    g_pairs = _scan_vjp(g_c, even[..., :half] * odd, c, xp)
    direct = _join(xp, g_even[..., :1], c[..., :more] * late)
    x_even = direct[..., :half] + g_pairs * odd
    x_odd = g_pairs * even[..., :half]
    zipped = xp.reshape_to(xp.stack([x_even, x_odd], axis=-1), (*x.shape[:-1], 2 * half))
    return _join(xp, zipped, direct[..., half:])


@rule(_running_prod_vjp, node="CumprodBackward0", batch="stacked", memory="new", numpy="cumprod", public="cumulative_prod")
def running_prod(xp: Any, x: Any, axis: int) -> Any:
    """Return running products along an axis."""
    return xp.cumulative_prod(x, axis=axis)


def _running(name: str, primitive: Any, first: int, x: Tensor, axis: int | None, dtype: Any, include_initial: bool) -> Tensor:
    """Compute `cumulative_sum` or `cumulative_prod`; `first` is the value of an empty total."""
    x = as_tensor(name, x)
    include_initial = as_flag(include_initial, name, "include_initial")
    if axis is None and x.ndim != 1:
        msg = f"{name}: give `axis` for a Tensor of shape {x.shape}; it may be left out for a one-dimensional one only"
        raise ValueError(msg)
    if x.ndim == 0:  # as in PyTorch: the one element, along axis 0 or -1
        normalize_axis(axis, 1, name)
        if include_initial:
            msg = f"{name}: `include_initial=True` needs at least one axis, but x has shape (); use `xpgrad.reshape(x, (1,))`"
            raise ValueError(msg)
        return reshape(_running(name, primitive, first, reshape(x, (1,)), 0, dtype, False), ())
    position = normalize_axis(-1 if axis is None else axis, x.ndim, name)
    wanted = None if dtype is None else as_dtype(dtype, x.default_dtype)
    out: Tensor = primitive(x if wanted is None else x._cast(wanted), position)
    if wanted is not None:
        out = out._cast(wanted)
    if include_initial:
        shape = (*x.shape[:position], 1, *x.shape[position + 1 :])
        out = concat([full(shape, first, dtype=out.dtype, device=x.device), out], axis=position)
    return out


_document_running = shares(
    parameters="""\
x : Tensor or raw array
    Any shape and dtype. A 0-d `x` has axis 0 or -1, as in PyTorch, and the result is 0-d.
axis : int, optional
    Axis along which to compute. It may be omitted only if `x` is one-dimensional.
dtype : DType, optional
    Data type in which to compute, and of the result. By default that of `x`, except that bools and integers narrower than
    the default integer dtype are widened to it.""",
    returns="""\
Tensor
    Has the shape of `x`, or one element more along the axis with `include_initial`.""",
    raises="""\
TypeError
    If `x` is not a Tensor or an array, or `axis` is not an int.
IndexError
    If `axis` is out of range.
ValueError
    If `axis` is omitted and `x` is not one-dimensional, or if `include_initial` is True and `x` is 0-d.""",
)


@front
@_document_running
def cumulative_sum(x: Tensor, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Return running sums along an axis.

    Parameters
    ----------
    include_initial : bool
        Whether to begin with 0, the empty sum.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = xp.cumulative_sum(x)
    >>> y
    tensor([1., 3., 6.], grad_fn=<CumsumBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([3., 2., 1.])
    """
    return _running("cumulative_sum", running_sum, 0, x, axis, dtype, include_initial)


@front
@_document_running
def cumulative_prod(x: Tensor, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Return running products along an axis; the gradient is exact where elements are zero.

    Parameters
    ----------
    include_initial : bool
        Whether to begin with 1, the empty product.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = xp.cumulative_prod(x)
    >>> y
    tensor([1., 2., 6.], grad_fn=<CumprodBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([9., 4., 2.])
    """
    return _running("cumulative_prod", running_prod, 1, x, axis, dtype, include_initial)
