"""The distinct elements of a Tensor. The values are elements of it, and so are their derivatives; counts and places have none.

A gradient goes to the element at the first index of its value. (PyTorch's `unique` raises in the backward.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from xpgrad._modes import state
from xpgrad._operations.declare import composite
from xpgrad._operations.lift import as_tensor
from xpgrad.errors import CapabilityError
from xpgrad.rules.indexing import take
from xpgrad.rules.manipulation import reshape
from xpgrad.rules.reduction import finished
from xpgrad.rules.searching import need_data_dependent_shapes

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    """The fields that `unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The pair that `unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The pair that `unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


#: Of each function: the fields of `UniqueAll` that it returns.
_FIELDS: dict[str, tuple[str, ...]] = {
    "unique_all": UniqueAll._fields, "unique_counts": UniqueCounts._fields, "unique_inverse": UniqueInverse._fields,
    "unique_values": ("values",),
}  # fmt: skip


def _unique(name: str, x: Any) -> tuple[Tensor, ...]:
    x = as_tensor(name, x)
    need_data_dependent_shapes(name, x)
    if x.dtype.differentiable and _is_differentiated(x):
        found = tuple(finished(x, r, name) for r in x.backend.kernels.unique_all(x._array))
        count = found[1].shape[0]
        if not isinstance(count, int):
            msg = (
                f"{name} of a Tensor that is differentiated needs the number of distinct elements, which backend {x.backend.table_name!r} "
                f"does not know before it computes; call `{name}(x.detach())`, whose values have no gradient"
            )
            raise CapabilityError(msg)
        everything = (take(reshape(x, (-1,)), found[1], axis=0), *found[1:])
        return tuple(everything[UniqueAll._fields.index(field)] for field in _FIELDS[name])
    raw = getattr(x.backend.kernels, name)(x._array)
    return tuple(finished(x, r, name) for r in (raw if isinstance(raw, tuple) else (raw,)))


def _is_differentiated(x: Any) -> bool:
    """Return whether a derivative of `x` is recorded or carried."""
    mode = state.current()
    if mode is not None and mode.levels and not mode.inference and mode.levels.tangents_of(x):
        return True
    return x._node is not None and state.records(mode)


@composite
def unique_all(x: Tensor, /) -> UniqueAll:
    """Distinct elements, with the first index of each, the position among them of each element, and how often each occurs.

    Parameters
    ----------
    x : Tensor
        Any shape; real.

    Returns
    -------
    UniqueAll
        ``values``, ``indices``, ``inverse_indices`` (of the shape of `x`), ``counts``.

    Raises
    ------
    TypeError
        An argument is no Tensor.
    IndexError
        An axis or an index is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.unique_all(xp.tensor([2.0, 1.0, 2.0])).indices
    tensor([1, 0])
    """
    return UniqueAll(*_unique("unique_all", x))


@composite
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Distinct elements, and how often each occurs: ``values``, ``counts``.

    Parameters
    ----------
    x : Tensor
        Any shape; real.

    Returns
    -------
    (values, counts)
        A named tuple of Tensors.

    Raises
    ------
    TypeError
        An argument is no Tensor.
    IndexError
        An axis or an index is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.unique_counts(xp.tensor([2.0, 1.0, 2.0]))
    UniqueCounts(values=tensor([1., 2.]), counts=tensor([1, 2]))
    """
    return UniqueCounts(*_unique("unique_counts", x))


@composite
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Distinct elements, and the position among them of each element: ``values``, ``inverse_indices`` (of the shape of `x`).

    Parameters
    ----------
    x : Tensor
        Any shape; real.

    Returns
    -------
    (values, inverse_indices)
        A named tuple of Tensors.

    Raises
    ------
    TypeError
        An argument is no Tensor.
    IndexError
        An axis or an index is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.unique_inverse(xp.tensor([2.0, 1.0, 2.0]))
    UniqueInverse(values=tensor([1., 2.]), inverse_indices=tensor([1, 0, 1]))
    """
    return UniqueInverse(*_unique("unique_inverse", x))


@composite
def unique_values(x: Tensor, /) -> Tensor:
    """Distinct elements; their order is the backend's.

    Parameters
    ----------
    x : Tensor
        Any shape; real.

    Returns
    -------
    Tensor
        Ascending; a gradient goes to the first of equal elements.

    Raises
    ------
    TypeError
        An argument is no Tensor.
    IndexError
        An axis or an index is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([2.0, 1.0, 2.0], requires_grad=True)
    >>> y = xp.unique_values(x)
    >>> y
    tensor([1., 2.], grad_fn=<IndexBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([1., 1., 0.])
    """
    return _unique("unique_values", x)[0]
