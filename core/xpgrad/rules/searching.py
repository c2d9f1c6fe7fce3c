"""The positions of elements: `argmax`, `argmin`, `count_nonzero`, `nonzero`, `searchsorted` and `isin`; none has a derivative.

`where`, which has one, is in `elementwise`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._basics.arguments import as_flag, check_choice
from xpgrad._basics.dtypes import promote, promote_scalar
from xpgrad._basics.scalars import as_scalar, is_scalar
from xpgrad._basics.shapes import Axis, reduced_axes, reduced_axis
from xpgrad._operations.coerce import unify
from xpgrad._operations.declare import nondifferentiable
from xpgrad._operations.lift import as_tensor, lift, lift_all
from xpgrad.errors import CapabilityError
from xpgrad.rules.indexing import seen_in_range, signed
from xpgrad.rules.reduction import finished, plain

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["argmax", "argmin", "count_nonzero", "isin", "nonzero", "searchsorted"]


def need_data_dependent_shapes(name: str, x: Tensor) -> None:
    """Raise CapabilityError if the backend has no functions where the shape of the result depends on values."""
    if not x.backend.capabilities.data_dependent_shapes:
        msg = f"`{name}` gives a shape that depends on values, which backend {x.backend.table_name!r} does not support; use another device"
        raise CapabilityError(msg)


def _extreme_index(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    x = as_tensor(name, x)
    if x.dtype.is_complex:
        msg = f"`{name}` needs an order, which complex numbers do not have; take `xpgrad.abs(x)` or `xpgrad.real(x)` first"
        raise TypeError(msg)
    position = reduced_axis(axis, x.ndim, name)
    if not (x.size if position is None else x.shape[position]):
        msg = f"`{name}` needs at least one element, but x has shape {x.shape}; leave out the empty axis"
        raise ValueError(msg)
    return plain(name, x, axis=position, keepdims=as_flag(keepdims, name, "keepdims"))


@nondifferentiable(primitive=True, method="argmax")
def argmax(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Index of the largest element, the first of equal ones (Array API 2024.12, `argmax`).

    Parameters
    ----------
    x : Tensor
        Real.
    axis : int, optional
        Default: the index into the flattened `x`.
    keepdims : bool
        Keep reduced axes with length 1.

    Returns
    -------
    Tensor
        Integer: the index of the first of equal elements.

    Raises
    ------
    ValueError
        There is no element.
    IndexError
        The axis is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.argmax(xp.tensor([3.0, 1.0, 3.0, 1.0]))
    tensor(0)
    """
    return _extreme_index("argmax", x, axis, keepdims)


@nondifferentiable(primitive=True, method="argmin")
def argmin(x: Tensor, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """Index of the smallest element, the first of equal ones (Array API 2024.12, `argmin`); see `argmax`.

    Parameters
    ----------
    x : Tensor
        Any shape; numeric.
    axis : int, optional
        The axis that goes; without it the index is that of the flattened `x`.
    keepdims : bool
        Keep them with length 1.

    Returns
    -------
    Tensor
        Integer: the index of the first of equal elements.

    Raises
    ------
    ValueError
        There is no element.
    IndexError
        The axis is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.argmin(xp.tensor([3.0, 1.0, 3.0, 1.0]))
    tensor(1)
    """
    return _extreme_index("argmin", x, axis, keepdims)


@nondifferentiable(primitive=True)
def count_nonzero(x: Tensor, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The number of elements over axes that are not zero (Array API 2024.12, `count_nonzero`).

    Parameters
    ----------
    x : Tensor
        Any shape; numeric.
    axis : int or tuple of int, optional
        The axes that go; all of them.
    keepdims : bool
        Keep them with length 1.

    Returns
    -------
    Tensor
        Integer, of the shape of `x` without those axes.

    Raises
    ------
    TypeError
        `x` is no Tensor, or `axis` no int or tuple of ints.
    IndexError
        An axis is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.count_nonzero(xp.tensor([0.0, 2.0, -1.0]))
    tensor(2)
    """
    x = as_tensor("count_nonzero", x)
    if keepdims is not False and keepdims is not True:
        keepdims = as_flag(keepdims, "count_nonzero", "keepdims")
    return plain("count_nonzero", x, axis=reduced_axes(axis, x.ndim, "count_nonzero"), keepdims=keepdims)


@nondifferentiable(primitive=True)
def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Indices of the elements that are not zero, one Tensor per axis (Array API 2024.12, `nonzero`).

    Parameters
    ----------
    x : Tensor
        At least one axis.

    Returns
    -------
    tuple of Tensor
        Integer indices, one Tensor for each axis.

    Raises
    ------
    ValueError
        For a 0-d `x`.
    CapabilityError
        If the backend has no shapes that depend on values.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.nonzero(xp.tensor([0.0, 2.0, 3.0]))
    (tensor([1, 2]),)
    """
    x = as_tensor("nonzero", x)
    need_data_dependent_shapes("nonzero", x)
    if x.ndim == 0:
        msg = "nonzero needs at least one axis, but got a 0-d Tensor; use `xpgrad.reshape(x, (1,))`"
        raise ValueError(msg)
    return tuple(finished(x, raw, "nonzero") for raw in x.backend.kernels.nonzero(x._array))


def _together(name: str, x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Two operands, of which one may be a scalar, on one device and in one dtype, without history."""
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
    """The positions where elements would have to be inserted to keep a Tensor sorted (Array API 2024.12, `searchsorted`).

    Parameters
    ----------
    x1 : Tensor
        One-dimensional, real, in ascending order (or so ordered by `sorter`).
    x2 : Tensor or scalar
        The elements to insert.
    side : {"left", "right"}
        Before or after equal elements.
    sorter : Tensor of integers, optional
        Indices that sort `x1`.

    Returns
    -------
    Tensor
        Integer, of the shape of the values.

    Raises
    ------
    IndexError
        If an element of `sorter` is out of range, where that can be seen without waiting for a device.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.searchsorted(xp.tensor([1.0, 3.0, 5.0]), xp.tensor([0.0, 3.0, 9.0]))
    tensor([0, 1, 3])
    """
    check_choice(side, ("left", "right"), "searchsorted", "side")
    a, b = _together("searchsorted", x1, x2)
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
        if "integer" not in sorter.dtype.kind or sorter.shape != a.shape:
            msg = f"searchsorted: `sorter` must hold integers in the shape {a.shape}, but got {sorter.dtype} of shape {sorter.shape}"
            raise (TypeError if "integer" not in sorter.dtype.kind else ValueError)(msg)
        order = seen_in_range(a, signed(sorter.to_device(a.device)), 0)
    return finished(a, a.backend.kernels.searchsorted(a._array, b._array, side=side, sorter=order), "searchsorted")


@nondifferentiable(primitive=True)
def isin(x1: Tensor | complex, x2: Tensor | complex, /, *, invert: bool = False) -> Tensor:
    """True where an element of `x1` is among the elements of `x2` (Array API 2025.12, `isin`).

    Parameters
    ----------
    x1, x2 : Tensor or scalar
        At least one is a Tensor; real.
    invert : bool
        True where an element is *not* among them.

    Returns
    -------
    Tensor
        bool, of the shape of `x1`.

    Raises
    ------
    TypeError
        An argument is no Tensor.
    IndexError
        An axis or an index is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.isin(xp.tensor([1, 2, 3]), xp.tensor([2, 3]))
    tensor([False,  True,  True])
    """
    invert = as_flag(invert, "isin", "invert")
    a, b = _together("isin", x1, x2)
    if a.dtype.is_complex:
        msg = "isin works on real Tensors; compare complex ones with `xpgrad.any(x1[:, None] == x2, axis=-1)`"
        raise TypeError(msg)
    if a.dtype.kind == "bool":
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
    return finished(a, ~result if invert else result, "isin")
