"""Linear algebra of the main namespace: `matmul`, `tensordot` and `vecdot`."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._basics.arguments import as_int, shown
from xpgrad._basics.dtypes import promote
from xpgrad._basics.scalars import is_scipy_sparse
from xpgrad._basics.shapes import common_shape, normalize_axis
from xpgrad._operations.coerce import unify
from xpgrad._operations.declare import composite, front, rule
from xpgrad._operations.lift import ContainerError, as_tensors, is_constant, lift_all
from xpgrad.rules.elementwise import conj
from xpgrad.rules.manipulation import reshape, reshape_to, transpose_axes
from xpgrad.rules.reduction import sum as total

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["matmul", "tensordot", "vecdot"]


def _matmul_general(row: Any, x1: Any, x2: Any) -> Any:
    """Multiply operands that are not two matrices of one class and dtype: vectors, stacks, raw arrays, mixed dtypes."""
    if is_constant(x2):
        try:
            x1, x2 = lift_all("matmul", (x1, x2))
        except ContainerError:
            # As NumPy's arrays do. The reflected method is no help: pint's `__rmatmul__` exchanges the operands.
            return sys.modules["numpy"].matmul(x1, x2)
    if is_scipy_sparse(x2):
        return _with_sparse(x1, x2)
    for x in (x1, x2):
        if not isinstance(x, TensorBase):
            if not isinstance(x1, TensorBase):
                raise not_a_tensor("matmul", x)
            first: Any = x1
            if isinstance(x, (list, tuple)) and (second := first._from_sequence(x)) is not None:
                return matmul(first, second)
            return NotImplemented if not isinstance(x, (int, float, complex)) else _refuse_scalar(x)
        if x.ndim == 0:
            _refuse_scalar(x)
    if type(x1) is not type(x2) or x1.dtype is not x2.dtype:
        x1, x2 = unify("matmul", [x1, x2])
        dtype = promote(x1.dtype, x2.dtype)
        return matmul(x1._cast(dtype), x2._cast(dtype))
    if x1.shape[-1] != x2.shape[-2 if x2.ndim > 1 else -1]:
        msg = f"matmul: shapes {x1.shape} and {x2.shape} do not fit: {x1.shape[-1]} != {x2.shape[-2 if x2.ndim > 1 else -1]}"
        raise ValueError(msg)
    if x1.ndim == 2 and x2.ndim == 2:
        return matmul_nd(x1, x2)
    if x2.ndim == 1 and x1.ndim <= 2:
        return inner_product(x1, x2) if x1.ndim == 1 else mat_vec(x1, x2)
    # NB: no length is used in arithmetic here, so that this works on a backend where one is not known.
    a = reshape_to(x1, (1, *x1.shape)) if x1.ndim == 1 else x1
    b = reshape_to(x2, (*x2.shape, 1)) if x2.ndim == 1 else x2
    common_shape(a.shape[:-2], b.shape[:-2])
    out = matmul_nd(a, b) if a.ndim == b.ndim == 2 else batched_matmul(a, b)
    if x1.ndim > 1 and x2.ndim > 1:
        return out
    shape = out.shape[:-2] + (() if x1.ndim == 1 else out.shape[-2:-1]) + (() if x2.ndim == 1 else out.shape[-1:])
    return reshape_to(out, shape)


def _with_sparse(x1: Any, x2: Any) -> Any:
    """Multiply a Tensor and a sparse array of SciPy's, which NumPy passes to `xpgrad.scipy.sparse`."""
    return sys.modules["numpy"].matmul(x1, x2)


def _refuse_scalar(x: Any) -> Any:
    what = f"a 0-d Tensor {x!r:.40}" if isinstance(x, TensorBase) else f"the scalar {x!r}"
    msg = f"matmul needs operands with at least one axis, but got {what}; use `*` to scale"
    raise (ValueError if isinstance(x, TensorBase) else TypeError)(msg)


@rule(
    lambda g, x2, xp: g @ xp.swap_last(x2), lambda g, x1, xp: xp.swap_last(x1) @ g,
    fresh=True, node="MmBackward0", guard="len(x1.shape) == 2 == len(x2.shape) and x1.shape[1] == x2.shape[0]", slow=_matmul_general,
    op="@",
    public="matmul",
)  # fmt: skip
def matmul_nd(xp: Any, x1: Any, x2: Any) -> Any:
    """Return the product of two matrices."""
    return xp.matmul(x1, x2)


@rule(
    lambda g, x1_shape, x2, xp: xp.sum_to(g @ xp.swap_last(x2), x1_shape),
    lambda g, x1, x2_shape, xp: xp.sum_to(xp.swap_last(x1) @ g, x2_shape),
    node="BmmBackward0", op="@", owns_op=False, batch="broadcast",
    public="matmul",
)  # fmt: skip
def batched_matmul(xp: Any, x1: Any, x2: Any) -> Any:
    """Return the products of stacks of matrices, whose leading axes broadcast."""
    return xp.matmul(x1, x2)


@rule(
    lambda g, x2, x1_shape, xp: xp.reshape_to(g, (x1_shape[0], 1)) * x2, lambda g, x1, xp: xp.mat_vec(xp.swap_last(x1), g),
    fresh=True, node="MvBackward0",
    public="matmul",
)  # fmt: skip
def mat_vec(xp: Any, x1: Any, x2: Any) -> Any:
    """Return the product of a matrix and a vector."""
    return xp.matmul(x1, x2)


@rule(lambda g, x2: g * x2, lambda g, x1: g * x1, fresh=True, node="DotBackward0", public="matmul")
def inner_product(xp: Any, x1: Any, x2: Any) -> Any:
    """Return the sum of the products of two vectors' elements; neither is conjugated."""
    return xp.matmul(x1, x2)


@front(method="matmul")
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the matrix product ``x1 @ x2``.

    Parameters
    ----------
    x1, x2 : Tensor or raw array
        Shapes (..., M, K) and (..., K, N), whose leading axes broadcast. A one-dimensional `x1` is a row, a one-dimensional `x2` a column,
        whose axis of length 1 the result lacks.

    Returns
    -------
    Tensor
        Shape (..., M, N), and the dtype to which the operands promote.

    Raises
    ------
    TypeError
        If an operand is not a Tensor or an array.
    ValueError
        If the inner lengths K differ, the leading axes do not broadcast, or an operand is 0-d.
    DeviceMismatchError
        If the operands are on different devices.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> y = xp.matmul(a, xp.tensor([1.0, 10.0]))
    >>> y
    tensor([21., 43.], grad_fn=<MvBackward0>)
    >>> xp.sum(y).backward()
    >>> a.grad
    tensor([[ 1., 10.],
            [ 1., 10.]])
    """
    first: Any = x1
    if not isinstance(x1, TensorBase):
        if is_scipy_sparse(x1):
            return _with_sparse(x1, x2)
        first, x2 = as_tensors("matmul", x1, x2)
    out = first._op_matmul_nd(x2)
    if out is NotImplemented:
        raise not_a_tensor("matmul", x2)
    return out


@composite
def tensordot(x1: Tensor, x2: Tensor, /, axes: Any = 2) -> Tensor:
    """Sum products over pairs of axes of two Tensors.

    Parameters
    ----------
    x1, x2 : Tensor or raw array
        Any shape and numeric dtype.
    axes : int or pair of sequences of int
        The number of last axes of `x1` to pair with as many first axes of `x2`, or the axes of each.

    Returns
    -------
    Tensor
        Has the other axes of `x1`, then those of `x2`, and the dtype to which the operands promote.

    Raises
    ------
    TypeError
        If an operand is not a Tensor or an array, or `axes` has another type.
    ValueError
        If paired axes have different lengths, or `axes` names an axis twice, or not as many of each operand.
    IndexError
        If an axis is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.tensordot(xp.ones((2, 3)), xp.ones((3, 4)), axes=1)
    tensor([[3., 3., 3., 3.],
            [3., 3., 3., 3.]])
    """
    x1, x2 = as_tensors("tensordot", x1, x2)
    if not isinstance(axes, (tuple, list)):
        axes = as_int(axes, "tensordot", "axes")
        if not 0 <= axes <= min(x1.ndim, x2.ndim):
            msg = f"tensordot: `axes`={axes} is too many for shapes {x1.shape} and {x2.shape}"
            raise ValueError(msg)
        first, second = list(range(x1.ndim - axes, x1.ndim)), list(range(axes))
    else:
        if len(axes) != 2:
            msg = f"tensordot: `axes` must be an int or a pair, of the axes of each Tensor, but got {shown(axes)}"
            raise ValueError(msg)
        pair = [list(a) if isinstance(a, (tuple, list)) else [a] for a in axes]
        first, second = ([normalize_axis(a, x.ndim, "tensordot", "axes") for a in p] for p, x in zip(pair, (x1, x2)))
        if len(first) != len(second) or len(set(first)) != len(first) or len(set(second)) != len(second):
            msg = f"tensordot: `axes` must name as many axes of each Tensor, none of them twice, but got {axes!r:.80}"
            raise ValueError(msg)
    contracted = [x1.shape[a] for a in first]
    if contracted != [x2.shape[b] for b in second]:
        msg = f"tensordot: the contracted axes differ: {contracted} of {x1.shape} and {[x2.shape[b] for b in second]} of {x2.shape}"
        raise ValueError(msg)
    free1 = [i for i in range(x1.ndim) if i not in first]
    free2 = [i for i in range(x2.ndim) if i not in second]
    n = math.prod(contracted)
    shape1, shape2 = tuple(x1.shape[i] for i in free1), tuple(x2.shape[i] for i in free2)
    rows, columns = math.prod(shape1), math.prod(shape2)
    a = reshape(transpose_axes(x1, (*free1, *first)), (rows, n))
    b = reshape(transpose_axes(x2, (*second, *free2)), (n, columns))
    return reshape(matmul(a, b), shape1 + shape2)


@composite
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the dot product along an axis; `x1` is conjugated.

    Parameters
    ----------
    x1 : Tensor or raw array
        First vectors; conjugated if complex.
    x2 : Tensor or raw array
        Second vectors; the other axes broadcast with those of `x1`.
    axis : int
        Axis of the vectors, negative.

    Returns
    -------
    Tensor
        Has the shape to which the operands broadcast, without the axis, and the dtype to which they promote.

    Raises
    ------
    TypeError
        If an operand is not a Tensor or an array, or `axis` is not an int.
    ValueError
        If the vectors' lengths differ, `axis` is not negative or out of range, or the other axes do not broadcast.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.vecdot(xp.tensor([1.0 + 1.0j, 2.0]), xp.tensor([1.0 + 1.0j, 3.0]))
    tensor(8.+0.j)
    """
    x1, x2 = as_tensors("vecdot", x1, x2)
    axis = as_int(axis, "vecdot", "axis")
    for x in (x1, x2):
        if not -x.ndim <= axis < 0:
            msg = f"vecdot: `axis` must be in [{-min(x1.ndim, x2.ndim)}, -1], but got {axis} for shapes {x1.shape} and {x2.shape}"
            raise ValueError(msg)
    if x1.shape[axis] != x2.shape[axis]:
        msg = f"vecdot: axis {axis} has length {x1.shape[axis]} in x1 and {x2.shape[axis]} in x2"
        raise ValueError(msg)
    return total((conj(x1) if x1.dtype.is_complex else x1) * x2, axis=axis, dtype=promote(x1.dtype, x2.dtype))
