"""Distinct elements of a Tensor. The values are differentiable, since they are elements of it; counts and indices are not.

A gradient goes to the first element of each value. (PyTorch's `unique` raises in the backward pass.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from xpgrad._basics.docstrings import shares
from xpgrad._modes import state
from xpgrad._operations.declare import composite
from xpgrad._operations.lift import as_tensor
from xpgrad.errors import CapabilityError
from xpgrad.rules.indexing import take
from xpgrad.rules.manipulation import reshape
from xpgrad.rules.reduction import wrap_constant
from xpgrad.rules.searching import need_data_dependent_shapes

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["unique_all", "unique_counts", "unique_inverse", "unique_values"]


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Tensor
    inverse_indices: Tensor


#: Shared sections of the docstrings of these functions.
_document_unique = shares(
    parameters="""\
x : Tensor or raw array
    Any shape; real.""",
    raises="""\
TypeError
    If `x` is not a Tensor or an array.
CapabilityError
    If the backend has no shapes that depend on values.""",
)
#: The fields of `UniqueAll` that each function returns.
_FIELDS: dict[str, tuple[str, ...]] = {
    "unique_all": UniqueAll._fields, "unique_counts": UniqueCounts._fields, "unique_inverse": UniqueInverse._fields,
    "unique_values": ("values",),
}  # fmt: skip


def _unique(name: str, x: Any) -> tuple[Tensor, ...]:
    x = as_tensor(name, x)
    need_data_dependent_shapes(name, x)
    if x.dtype.differentiable and _is_differentiated(x):
        found = tuple(wrap_constant(x, r, name) for r in x.backend.kernels.unique_all(x._array))
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
    return tuple(wrap_constant(x, r, name) for r in (raw if isinstance(raw, tuple) else (raw,)))


def _is_differentiated(x: Any) -> bool:
    """Return whether operations on `x` are recorded, or `x` has a tangent."""
    mode = state.current()
    if mode is not None and mode.levels and not mode.inference and mode.levels.have_tangents(x):
        return True
    return x._node is not None and state.records(mode)


@composite
@_document_unique
def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct elements with their first indices, the positions of all elements among them, and their counts.

    The gradient of a value goes to its first occurrence in the flattened `x`.

    Returns
    -------
    UniqueAll
        Named tuple of `values`, one-dimensional; `indices`, where each value occurs first in the flattened `x`; `inverse_indices`, of the
        shape of `x`, such that ``values[inverse_indices]`` is `x`; and `counts`, how often each value occurs.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.unique_all(xp.tensor([2.0, 1.0, 2.0])).indices
    tensor([1, 0])
    """
    return UniqueAll(*_unique("unique_all", x))


@composite
@_document_unique
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct elements and how often each occurs.

    The gradient of a value goes to its first occurrence in the flattened `x`.

    Returns
    -------
    UniqueCounts
        Named tuple of `values` and `counts`, both one-dimensional.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.unique_counts(xp.tensor([2.0, 1.0, 2.0]))
    UniqueCounts(values=tensor([1., 2.]), counts=tensor([1, 2]))
    """
    return UniqueCounts(*_unique("unique_counts", x))


@composite
@_document_unique
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct elements and the position of each element among them.

    The gradient of a value goes to its first occurrence in the flattened `x`.

    Returns
    -------
    UniqueInverse
        Named tuple of `values`, one-dimensional, and `inverse_indices`, of the shape of `x`, such that ``values[inverse_indices]`` is `x`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.unique_inverse(xp.tensor([2.0, 1.0, 2.0]))
    UniqueInverse(values=tensor([1., 2.]), inverse_indices=tensor([1, 0, 1]))
    """
    return UniqueInverse(*_unique("unique_inverse", x))


@composite
@_document_unique
def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct elements, in the order of the backend's library.

    The gradient of a value goes to its first occurrence in the flattened `x`.

    Returns
    -------
    Tensor
        One-dimensional, of the dtype of `x`.

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
