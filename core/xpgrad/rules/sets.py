"""The distinct elements of a Tensor. As with PyTorch's `unique`, none of these has a derivative, not even the values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from xpgrad._operations.declare import nondifferentiable
from xpgrad._operations.lift import as_tensor
from xpgrad.rules.reduction import finished
from xpgrad.rules.searching import need_data_dependent_shapes

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor


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


def _unique(name: str, x: Any) -> tuple[Tensor, ...]:
    x = as_tensor(name, x)
    need_data_dependent_shapes(name, x)
    raw = getattr(x.backend.kernels, name)(x._array)
    return tuple(finished(x, r, name) for r in (raw if isinstance(raw, tuple) else (raw,)))


@nondifferentiable(primitive=True)
def unique_all(x: Tensor, /) -> UniqueAll:
    """Distinct elements, with the first index of each, the position among them of each element, and how often each occurs.

    Returns
    -------
    UniqueAll
        ``values``, ``indices``, ``inverse_indices`` (of the shape of `x`), ``counts``.
    """
    return UniqueAll(*_unique("unique_all", x))


@nondifferentiable(primitive=True)
def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Distinct elements, and how often each occurs: ``values``, ``counts``."""
    return UniqueCounts(*_unique("unique_counts", x))


@nondifferentiable(primitive=True)
def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Distinct elements, and the position among them of each element: ``values``, ``inverse_indices`` (of the shape of `x`)."""
    return UniqueInverse(*_unique("unique_inverse", x))


@nondifferentiable(primitive=True)
def unique_values(x: Tensor, /) -> Tensor:
    """Distinct elements; their order is the backend's."""
    return _unique("unique_values", x)[0]
