"""`sort` and `argsort`. A sorted Tensor is its elements in another order, so the gradient goes back in the inverse order (SUB-06)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad._basics.arguments import as_flag
from xpgrad._basics.shapes import normalize_axis
from xpgrad._modes import state
from xpgrad._operations.declare import front, nondifferentiable, rule
from xpgrad._operations.lift import as_tensor
from xpgrad.rules.reduction import plain

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["argsort", "sort"]


@rule(lambda g, order, axis, xp: xp.ordered_back(g, order, axis), conj=False, fresh=True, node="SortBackward0", public="sort")
def ordered(xp: Any, x: Any, order: Any, axis: int) -> Any:
    """Elements in a given order (raw), which varies along the other axes."""
    return xp.take_along_axis(x, order, axis=axis)


@rule(
    lambda g, order, axis, xp: xp.ordered(g, order, axis),
    conj=False, fresh=True, node="SortBackward0Backward0", kind="selection", memory="new", dtype="same", helper=True, spelled="sort",
)  # fmt: skip
def ordered_back(xp: Any, x: Any, order: Any, axis: int) -> Any:
    """Undo `ordered`."""
    return xp.take_along_axis(x, xp.argsort(order, axis=axis), axis=axis)


@front
def sort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """Elements in ascending order along an axis (Array API 2024.12, `sort`).

    Parameters
    ----------
    x : Tensor
        At least one axis.
    axis : int
    descending : bool
        The largest first.
    stable : bool
        Equal elements, and so their gradients, keep their order.

    Returns
    -------
    Tensor
        Of the shape and dtype of `x`.

    Raises
    ------
    TypeError
        An argument is no Tensor.
    IndexError
        An axis or an index is out of range.

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
        return plain("sort", x, **options)
    order = x.backend.kernels.argsort(x._array, **options)
    return ordered(x, order, options["axis"])


@nondifferentiable(primitive=True)
def argsort(x: Tensor, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort along an axis (Array API 2024.12, `argsort`); see `sort`.

    Parameters
    ----------
    x : Tensor
        Any shape; real.
    axis : int
        The axis.
    descending : bool
        The largest first.
    stable : bool
        Equal elements keep their order.

    Returns
    -------
    Tensor
        Integer, of the shape of `x`.

    Raises
    ------
    TypeError
        An argument is no Tensor.
    IndexError
        An axis or an index is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.argsort(xp.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """
    x = as_tensor("argsort", x)
    return plain("argsort", x, axis=normalize_axis(axis, x.ndim, "argsort"), **_order("argsort", descending, stable))


def _order(name: str, descending: Any, stable: Any) -> dict[str, bool]:
    return {"descending": as_flag(descending, name, "descending"), "stable": as_flag(stable, name, "stable")}
