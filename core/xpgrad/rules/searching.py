"""Positions of elements: `argmax`, `argmin`, `count_nonzero`, `nonzero`, `searchsorted` and `isin`; none has a derivative.

The differentiable `where` is in `elementwise`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._basics.arguments import as_flag, check_choice
from xpgrad._basics.dtypes import promote, promote_scalar
from xpgrad._basics.scalars import as_scalar, is_scalar
from xpgrad._basics.shapes import normalize_reduction_axes, normalize_reduction_axis
from xpgrad._operations.coerce import unify
from xpgrad._operations.declare import nondifferentiable
from xpgrad._operations.lift import as_tensor, lift, lift_all
from xpgrad.errors import CapabilityError
from xpgrad.rules.indexing import check_range, to_signed
from xpgrad.rules.reduction import apply_kernel, wrap_constant

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["argmax", "argmin", "count_nonzero", "isin", "nonzero", "searchsorted"]


def need_data_dependent_shapes(name: str, x: Tensor) -> None:
    """Raise CapabilityError if the backend has no functions whose result has a shape that depends on values."""
    if not x.backend.capabilities.data_dependent_shapes:
        msg = f"`{name}` gives a shape that depends on values, which backend {x.backend.table_name!r} does not support; use another device"
        raise CapabilityError(msg)


def _extreme_index(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    x = as_tensor(name, x)
    if x.dtype.is_complex:
        msg = f"`{name}` needs an order, which complex numbers do not have; take `xpgrad.abs(x)` or `xpgrad.real(x)` first"
        raise TypeError(msg)
    position = normalize_reduction_axis(axis, x.ndim, name)
    if not (x.size if position is None else x.shape[position]):
        msg = f"`{name}` needs at least one element, but x has shape {x.shape}; leave out the empty axis"
        raise ValueError(msg)
    return apply_kernel(name, x, axis=position, keepdims=as_flag(keepdims, name, "keepdims"))


@nondifferentiable(primitive=True, method="argmax")
def argmax(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the largest element, the first of equal ones.

    Parameters
    ----------
    x : Tensor or raw array
        Real, with at least one element along the axis.
    axis : int, optional
        Axis to reduce; without it the result is an index into the flattened `x`.
    keepdims : bool
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Indices of the default integer dtype, of the shape of `x` without the reduced axes. They never require grad.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or is complex.
    ValueError
        If there is no element along the axis.
    IndexError
        If `axis` is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.argmax(xp.tensor([3.0, 1.0, 3.0, 1.0]))
    tensor(0)
    """
    return _extreme_index("argmax", x, axis, keepdims)


@nondifferentiable(primitive=True, method="argmin")
def argmin(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the index of the smallest element, the first of equal ones.

    Parameters
    ----------
    x : Tensor or raw array
        Real, with at least one element along the axis.
    axis : int, optional
        Axis to reduce; without it the result is an index into the flattened `x`.
    keepdims : bool
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Indices of the default integer dtype, of the shape of `x` without the reduced axes. They never require grad.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or is complex.
    ValueError
        If there is no element along the axis.
    IndexError
        If `axis` is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.argmin(xp.tensor([3.0, 1.0, 3.0, 1.0]))
    tensor(1)
    """
    return _extreme_index("argmin", x, axis, keepdims)


@nondifferentiable(primitive=True)
def count_nonzero(x: Tensor, /, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False) -> Tensor:
    """Return the number of nonzero elements over axes.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape and dtype.
    axis : int or tuple of int, optional
        Axes to reduce; all of them by default. A 0-d `x` may be reduced along axis 0 or -1.
    keepdims : bool
        Whether reduced axes stay, with length 1.

    Returns
    -------
    Tensor
        Counts of the default integer dtype, of the shape of `x` without the reduced axes.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `axis` is not an int or a tuple of ints.
    IndexError
        If `axis` is out of range.
    ValueError
        If `axis` names an axis twice.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.count_nonzero(xp.tensor([0.0, 2.0, -1.0]))
    tensor(2)
    """
    x = as_tensor("count_nonzero", x)
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, "count_nonzero", "keepdims")
    return apply_kernel("count_nonzero", x, axis=normalize_reduction_axes(axis, x.ndim, "count_nonzero"), keepdims=keepdims)


@nondifferentiable(primitive=True)
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of the nonzero elements, one Tensor for each axis.

    Parameters
    ----------
    x : Tensor or raw array
        At least one axis; any dtype.

    Returns
    -------
    tuple of Tensor
        For each axis the indices along it, one-dimensional, in row-major order of the elements.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array.
    ValueError
        If `x` is 0-d.
    CapabilityError
        If the backend has no shapes that depend on values.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.nonzero(xp.tensor([0.0, 2.0, 3.0]))
    (tensor([1, 2]),)
    """
    x = as_tensor("nonzero", x)
    if x.ndim == 0:
        msg = "nonzero needs at least one axis, but got a 0-d Tensor; use `xpgrad.reshape(x, (1,))`"
        raise ValueError(msg)
    need_data_dependent_shapes("nonzero", x)
    return tuple(wrap_constant(x, raw, "nonzero") for raw in x.backend.kernels.nonzero(x._array))


def _unify_pair(name: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Return the operands `x1` and `x2`, one of which may be a scalar, as detached Tensors on one device and in one dtype."""
    x1, x2 = lift_all(name, (x1, x2))
    tensors = [x for x in (x1, x2) if isinstance(x, TensorBase)]
    if not tensors or not all(isinstance(x, TensorBase) or is_scalar(x) for x in (x1, x2)):
        raise not_a_tensor(name, x1, x2)
    tensors = unify(name, [t.detach() for t in tensors])
    if len(tensors) == 2:
        dtype = promote(tensors[0].dtype, tensors[1].dtype)
        return tensors[0]._cast(dtype), tensors[1]._cast(dtype)
    t = tensors[0]
    value = as_scalar(x2 if isinstance(x1, TensorBase) else x1)
    dtype = promote_scalar(t.dtype, value, t.default_dtype)
    t = t._cast(dtype)
    other = t.scalar(value, dtype)
    return (t, other) if isinstance(x1, TensorBase) else (other, t)


@nondifferentiable(primitive=True)
def searchsorted(
    x1: Tensor, x2: Tensor | float, /, *, side: Literal["left", "right"] = "left", sorter: Tensor | None = None
) -> Tensor:  # fmt: skip
    """Return the positions where elements would have to be inserted to keep a Tensor sorted.

    Parameters
    ----------
    x1 : Tensor or raw array
        One-dimensional and real, in ascending order, or put in order by `sorter`.
    x2 : Tensor, raw array or number
        Elements to insert; any shape.
    side : {"left", "right"}
        Whether the position is before or after equal elements.
    sorter : Tensor of integers, optional
        Indices that sort `x1`, of its shape.

    Returns
    -------
    Tensor
        Positions of the default integer dtype, of the shape of `x2`.

    Raises
    ------
    TypeError
        If an operand is not a Tensor or an array, or is complex, or `sorter` does not hold integers.
    ValueError
        If `x1` is not one-dimensional, `sorter` has another shape, or `side` is neither of the two.
    IndexError
        If an element of `sorter` is out of range, and its values can be read, which waits for the device.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.searchsorted(xp.tensor([1.0, 3.0, 5.0]), xp.tensor([0.0, 3.0, 9.0]))
    tensor([0, 1, 3])
    """
    check_choice(side, ("left", "right"), "searchsorted", "side")
    a, b = _unify_pair("searchsorted", x1, x2)
    if a.ndim != 1:
        msg = f"searchsorted: `x1` must have one axis, but got shape {a.shape}; search its rows one by one"
        raise ValueError(msg)
    if a.dtype.is_complex:
        msg = "searchsorted needs an order, which complex numbers do not have; take `xpgrad.abs(x)` or `xpgrad.real(x)` first"
        raise TypeError(msg)
    order = None
    if sorter is not None:
        sorter = lift("searchsorted", sorter, a)
        if not isinstance(sorter, TensorBase):
            raise not_a_tensor("searchsorted", sorter)
        if "integer" not in sorter.dtype.category or sorter.shape != a.shape:
            msg = f"searchsorted: `sorter` must hold integers in the shape {a.shape}, but got {sorter.dtype} of shape {sorter.shape}"
            raise (TypeError if "integer" not in sorter.dtype.category else ValueError)(msg)
        order = check_range(a, to_signed(sorter.to_device(a.device)), 0)
    return wrap_constant(a, a.backend.kernels.searchsorted(a._array, b._array, side=side, sorter=order), "searchsorted")


@nondifferentiable(primitive=True)
def isin(x1: Tensor | complex, x2: Tensor | complex, /, *, invert: bool = False) -> Tensor:
    """Return whether each element of `x1` is among the elements of `x2`.

    Parameters
    ----------
    x1, x2 : Tensor, raw array or number
        Real, of any shape; at least one of them is a Tensor or an array.
    invert : bool
        Whether to return True for the elements that are *not* among them.

    Returns
    -------
    Tensor
        bool, of the shape of `x1`.

    Raises
    ------
    TypeError
        If neither operand is a Tensor or an array, or one is complex.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.isin(xp.tensor([1, 2, 3]), xp.tensor([2, 3]))
    tensor([False,  True,  True])
    """
    invert = as_flag(invert, "isin", "invert")
    a, b = _unify_pair("isin", x1, x2)
    if a.dtype.is_complex:
        msg = "isin works on real Tensors; compare complex ones with `xpgrad.any(x1[:, None] == x2, axis=-1)`"
        raise TypeError(msg)
    if a.dtype.category == "bool":
        a, b = (t._cast(t.default_dtype("integral")) for t in (a, b))
    xp, x = a.backend.kernels, a._array
    if b.size:
        among = xp.sort(xp.reshape(b._array, (-1,)))
        place = xp.searchsorted(among, xp.reshape(x, (-1,)))
        last = b.size - 1
        found = xp.take(among, xp.where(place > last, xp.zeros_like(place) + last, place), axis=0)
        result = xp.reshape(found, a.shape) == x
    else:
        result = xp.zeros_like(x) != xp.zeros_like(x)
    return wrap_constant(a, ~result if invert else result, "isin")
