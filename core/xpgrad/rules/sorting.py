"""`sort` and `argsort`. A sorted Tensor has the same elements in another order, so its gradient goes back in the inverse order (SUB-06)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad._basics.arguments import as_flag
from xpgrad._basics.shapes import normalize_axis
from xpgrad._modes import state
from xpgrad._operations.declare import front, nondifferentiable, rule
from xpgrad._operations.lift import as_tensor
from xpgrad.rules.reduction import apply_kernel

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["argsort", "sort"]


@rule(lambda g, order, axis, xp: xp.ordered_back(g, order, axis), conj=False, fresh=True, node="SortBackward0", public="sort")
def ordered(xp: Any, x: Any, order: Any, axis: int) -> Any:
    """Return the elements in a given order (raw indices), which varies along the other axes."""
    return xp.take_along_axis(x, order, axis=axis)


@rule(
    lambda g, order, axis, xp: xp.ordered(g, order, axis),
    conj=False, fresh=True, node="SortBackward0Backward0", kind="selection", memory="new", dtype="same", helper=True, spelled="sort",
)  # fmt: skip
def ordered_back(xp: Any, x: Any, order: Any, axis: int) -> Any:
    """Return the elements of `x` moved back to the places from which `ordered` took them."""
    return xp.take_along_axis(x, xp.argsort(order, axis=axis), axis=axis)


@front
def sort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements in ascending order along an axis.

    The gradient of each element goes back to the place from which the element came.

    Parameters
    ----------
    x : Tensor or raw array
        At least one axis; real.
    axis : int
        Axis along which to sort.
    descending : bool
        Whether the largest element comes first.
    stable : bool
        Whether equal elements, and so their gradients, keep their order.

    Returns
    -------
    Tensor
        Has the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `axis` is not an int.
    IndexError
        If `axis` is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([3.0, 1.0, 2.0], requires_grad=True)
    >>> y = xp.sort(x)
    >>> y
    tensor([1., 2., 3.], grad_fn=<SortBackward0>)
    >>> xp.sum(y * xp.tensor([1.0, 10.0, 100.0])).backward()
    >>> x.grad
    tensor([100.,   1.,  10.])
    """
    x = as_tensor("sort", x)
    options: dict[str, Any] = {"axis": normalize_axis(axis, x.ndim, "sort"), **_order("sort", descending, stable)}
    mode = state.current()
    if x._node is None and (mode is None or not mode.levels):
        return apply_kernel("sort", x, **options)
    order = x.backend.kernels.argsort(x._array, **options)
    return ordered(x, order, options["axis"])


@nondifferentiable(primitive=True)
def argsort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort `x` along an axis.

    Parameters
    ----------
    x : Tensor or raw array
        At least one axis; real.
    axis : int
        Axis along which to sort.
    descending : bool
        Whether the index of the largest element comes first.
    stable : bool
        Whether the indices of equal elements keep their order.

    Returns
    -------
    Tensor
        Indices of the default integer dtype, of the shape of `x`. They never require grad.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `axis` is not an int.
    IndexError
        If `axis` is out of range.

    See Also
    --------
    xpgrad.sort

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.argsort(xp.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    x = as_tensor("argsort", x)
    return apply_kernel("argsort", x, axis=normalize_axis(axis, x.ndim, "argsort"), **_order("argsort", descending, stable))


def _order(name: str, descending: Any, stable: Any) -> dict[str, bool]:
    return {"descending": as_flag(descending, name, "descending"), "stable": as_flag(stable, name, "stable")}
