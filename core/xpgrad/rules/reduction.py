"""Reductions over axes (`sum`, `max`, `min`, `all`, `any`), and the primitives that expand their gradients to the operand's shape."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.arguments import as_flag
from xpgrad._basics.docstrings import shares
from xpgrad._basics.dtypes import as_dtype
from xpgrad._basics.shapes import Axis, normalize_reduction_axes
from xpgrad._modes import state
from xpgrad._operations.declare import front, nondifferentiable, rule
from xpgrad._operations.lift import as_tensor
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._rows.row import Domain, Kink

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["max", "min", "sum", "all", "any"]


# -- changes of shape between an array and its reduction --------------------------------------------------------------


@rule(
    lambda g, x_shape, axes, keepdims, xp: xp.expand_reduced(g, x_shape, axes, keepdims),
    conj=False, node="SumBackward1", batch="stacked", kind="reduction", memory="new", numpy="add.reduce", public="sum",
)  # fmt: skip
def reduce_sum(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """Sum over axes (a tuple, or None for all)."""
    return xp.sum(x, axis=axes, keepdims=keepdims)


@rule(
    lambda g, axes, keepdims, xp: xp.reduce_sum(g, axes, keepdims),
    conj=False, node="ExpandBackward0", batch="stacked", kind="expansion", memory="view", dtype="same", grows=True,
)  # fmt: skip
def expand_reduced(xp: Any, x: Any, shape: tuple[int, ...], axes: Any, keepdims: bool) -> Any:
    """Repeat the result of a reduction along the reduced axes."""
    if axes is not None and not keepdims:
        kept = [1 if i in axes else n for i, n in enumerate(shape)]
        x = xp.reshape(x, tuple(kept))
    return xp.broadcast_to(x, shape)


@rule(lambda g, x_shape, xp: xp.broadcast_to(g, x_shape), conj=False, node="SumBackward1", kind="scatter", memory="view", dtype="same")
def sum_to(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Undo a broadcast: sum over the axes that `shape` lacks or has with length 1."""
    if tuple(x.shape) == tuple(shape):
        return x
    extra = len(x.shape) - len(shape)
    axes = tuple(range(extra)) + tuple(i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1)
    if axes:
        x = xp.sum(x, axis=axes, keepdims=True)
    return xp.reshape(x, shape)


# If nothing was broadcast, there is nothing to record on Tensors.
PRIMITIVES["sum_to"] = lambda x, shape: x if x.shape == tuple(shape) else sum_to(x, shape)


#: Shared sections of the docstrings of reductions.
_document_axes = shares(
    parameters="""\
x : Tensor or raw array
    Any shape and dtype.
axis : int or tuple of int, optional
    Axes to reduce; all of them by default. A 0-d `x` may be reduced along axis 0 or -1.
keepdims : bool
    Whether reduced axes stay, with length 1.""",
    raises="""\
TypeError
    If `x` is not a Tensor or an array, or `axis` is not an int or a tuple of ints.
IndexError
    If `axis` is out of range.
ValueError
    If `axis` names an axis twice.""",
)


@front(method="sum")
@_document_axes
def sum(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, dtype: Any = None, keepdims: bool = False) -> Tensor:  # noqa: A001
    """Return the sum over axes.

    Parameters
    ----------
    dtype : DType, optional
        Data type in which to sum, and of the result. By default that of `x`, except that bools and integers narrower than
        the default integer dtype are widened to it.

    Returns
    -------
    Tensor
        Has the shape of `x` without the reduced axes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([[1.0, 2.0], [3.0, 5.0]], requires_grad=True)
    >>> y = xp.sum(x, axis=0)
    >>> y
    tensor([4., 7.], grad_fn=<SumBackward1>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([[1., 1.],
            [1., 1.]])
    """
    if not isinstance(x, TensorBase):
        x = as_tensor("sum", x)
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, "sum", "keepdims")
    if dtype is not None:
        wanted = as_dtype(dtype, x.default_dtype)
        return reduce_sum(x._cast(wanted), normalize_reduction_axes(axis, x.ndim, "sum"), keepdims)._cast(wanted)
    return reduce_sum(x, None if axis is None else normalize_reduction_axes(axis, x.ndim, "sum"), keepdims)


# -- extrema ------------------------------------------------------------------------------------------------------------


#: Complex numbers have no order, so the library decides whether it accepts them.
_ORDERED = Domain("library")


def ties(xp: Any, chosen: Any, like: Any, axes: Any, keepdims: bool) -> tuple[Any, Any]:
    """Return the number of elements that share a gradient evenly (SUB-05), and the gradient of the other elements, which is 0.

    If no element equals the extremum, because it is nan, the number is 1 and the gradient of all elements is nan.
    """
    count = xp.reduce_sum(xp.cast(chosen, like.dtype), axes, keepdims)
    none, zeros = count == 0, xp.zeros_like(count)
    return xp.where(none, xp.ones_like(count), count), xp.where(none, zeros + math.nan, zeros)


def _mask_of_ties(x: Any, out: Any, axes: Any, keepdims: bool) -> Any:
    """Return a mask of the elements that equal the extremum, where it occurs more than once."""
    if axes is not None and not keepdims:
        out = out.reshape([1 if i in axes else n for i, n in enumerate(x.shape)])
    chosen = x == out
    return chosen & (chosen.sum(axis=axes, keepdims=True) > 1)


def _extremum_vjp(g: Any, x: Any, out: Any, x_shape: Any, axes: Any, keepdims: bool, xp: Any) -> Any:
    # All that depends on `x` are truth values: the gradient is a function of `g` alone, and has no graph where `g` has none.
    chosen = x == xp.expand_reduced(out, x_shape, axes, keepdims)
    wide = xp.wide(g)
    count, blank = ties(xp, chosen, wide, axes, True)
    share = xp.where(chosen, xp.expand_reduced(wide, x_shape, axes, keepdims) / count, blank)
    return share if wide is g else xp.cast(share, g.dtype)


def _extremum_jvp(d_x: Any, x: Any, out: Any, x_shape: Any, axes: Any, keepdims: bool, xp: Any) -> Any:
    chosen = x == xp.expand_reduced(out, x_shape, axes, keepdims)
    wide = xp.wide(d_x)
    count, blank = ties(xp, chosen, wide, axes, keepdims)
    share = xp.reduce_sum(xp.keep(chosen, wide), axes, keepdims) / count + blank
    return share if wide is d_x else xp.cast(share, d_x.dtype)


@rule(
    _extremum_vjp,
    conj=False, fresh=True, node="AmaxBackward0", jvp=_extremum_jvp, batch="stacked", kind="reduction", memory="new", dtype="same",
    numpy="maximum.reduce", public="max", domain=_ORDERED, kink=Kink("of equal largest elements", _mask_of_ties, (1.0, 1.0), tie=True),
)  # fmt: skip
def reduce_max(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """Return the largest element over axes (a tuple, or None for all)."""
    return xp.max(x, axis=axes, keepdims=keepdims)


@rule(
    _extremum_vjp,
    conj=False, fresh=True, node="AminBackward0", jvp=_extremum_jvp, batch="stacked", kind="reduction", memory="new", dtype="same",
    numpy="minimum.reduce", public="min", domain=_ORDERED, kink=Kink("of equal smallest elements", _mask_of_ties, (1.0, 1.0), tie=True),
)  # fmt: skip
def reduce_min(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """Return the smallest element over axes (a tuple, or None for all)."""
    return xp.min(x, axis=axes, keepdims=keepdims)


def _extremum(name: str, primitive: Any, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    x = as_tensor(name, x)
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, name, "keepdims")
    axes = normalize_reduction_axes(axis, x.ndim, name)
    try:
        out: Tensor = primitive(x, axes, keepdims)
    except ValueError as exc:
        if 0 not in x.shape:
            raise
        msg = f"{name} needs at least one element along the axes that it reduces, but x has shape {x.shape}; leave out the empty axis"
        raise ValueError(msg) from exc
    return out


@front
@_document_axes
def max(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001 (the standard's name)
    """Return the largest element over axes; equal ones share the gradient evenly.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape, with at least one element along the reduced axes; real.

    Returns
    -------
    Tensor
        Has the shape of `x` without the reduced axes, and its dtype.

    Raises
    ------
    ValueError
        If a reduced axis has length 0, or `axis` names an axis twice.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([[1.0, 7.0], [3.0, 7.0]], requires_grad=True)
    >>> y = xp.max(x, axis=0)
    >>> y
    tensor([3., 7.], grad_fn=<AmaxBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([[0. , 0.5],
            [1. , 0.5]])
    """
    return _extremum("max", reduce_max, x, axis, keepdims)


@front
@_document_axes
def min(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001 (the standard's name)
    """Return the smallest element over axes; equal ones share the gradient evenly.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape, with at least one element along the reduced axes; real.

    Returns
    -------
    Tensor
        Has the shape of `x` without the reduced axes, and its dtype.

    Raises
    ------
    ValueError
        If a reduced axis has length 0, or `axis` names an axis twice.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([[1.0, 7.0], [1.0, 5.0]], requires_grad=True)
    >>> y = xp.min(x, axis=0)
    >>> y
    tensor([1., 5.], grad_fn=<AminBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([[0.5, 0. ],
            [0.5, 1. ]])
    """
    return _extremum("min", reduce_min, x, axis, keepdims)


# -- truth ----------------------------------------------------------------------------------------------------------------


def apply_kernel(name: str, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Apply a function of the raw namespace that has no derivative, and wrap its result."""
    x = as_tensor(name, x)
    args = tuple(a._array if isinstance(a, TensorBase) else a for a in args)
    kernel, mode = getattr(x.backend.kernels, name), state.current()
    if mode is not None and not x.stage:
        return wrap_constant(x, mode.call(name, kernel, x._array, *args, **kwargs), name)
    return wrap_constant(x, kernel(x._array, *args, **kwargs), name)


def wrap_constant(x: Tensor, raw: Any, name: str) -> Tensor:
    """Wrap the constant result of a public function in the class of `x`, and report it to the mode if the mode asks for that."""
    out = (x._stand_in() if x.is_inference() else x)._wrap(raw)
    mode = state.current()
    if mode is not None and not mode.plain:
        mode.finish_computed(name, (x,), out)
    return out


@nondifferentiable(primitive=True, method="all")
@_document_axes
def all(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001 (the standard's name)
    """Return whether all elements over axes are True.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape; every nonzero element counts as True.

    Returns
    -------
    Tensor
        bool, of the shape of `x` without the reduced axes; True for an empty reduction.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.all(xp.tensor([[True, False], [True, True]]), axis=1)
    tensor([False,  True])
    """
    x = as_tensor("all", x)
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, "all", "keepdims")
    return apply_kernel("all", x, axis=normalize_reduction_axes(axis, x.ndim, "all"), keepdims=keepdims)


@nondifferentiable(primitive=True, method="any")
@_document_axes
def any(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:  # noqa: A001 (the standard's name)
    """Return whether at least one element over axes is True.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape; every nonzero element counts as True.

    Returns
    -------
    Tensor
        bool, of the shape of `x` without the reduced axes; False for an empty reduction.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.any(xp.tensor([[True, False], [True, True]]), axis=1)
    tensor([ True,  True])
    """
    x = as_tensor("any", x)
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, "any", "keepdims")
    return apply_kernel("any", x, axis=normalize_reduction_axes(axis, x.ndim, "any"), keepdims=keepdims)
