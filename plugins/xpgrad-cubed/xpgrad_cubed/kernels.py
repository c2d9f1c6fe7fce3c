"""Kernels beside the namespace: shapes that carry chunks, indices, and arrays without elements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cubed
import numpy as np

from xpgrad.backend import DefaultKernels
from xpgrad.registry import backend_for
from xpgrad_cubed import storage
from xpgrad_cubed.blocks import apply_blocks
from xpgrad_cubed.namespace import NAMESPACE, check_indices, index

__all__ = ["KERNELS", "ChunkedShape", "flat_index", "without_elements"]

KERNELS: dict[str, Callable[..., Any]] = {}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a kernel under its function's name."""
    KERNELS[function.__name__] = function
    return function


class ChunkedShape(tuple[int, ...]):
    """A shape that carries the chunk size of its array."""

    chunksize: tuple[int, ...]

    @classmethod
    def of(cls, x: Any) -> ChunkedShape:
        """Return the shape of a cubed array with its chunk size."""
        out = cls(x.shape)
        out.chunksize = x.chunksize
        return out


@kernel
def copy(x: Any) -> Any:
    """Return `x`, because arrays are never written in place."""
    return x


@kernel
def reduce_var(x: Any, axes: Any, correction: float, keepdims: bool) -> Any:
    """Return the variance; cubed's takes no complex numbers."""
    if x.dtype.kind != "c":
        return NAMESPACE.var(x, axis=axes, correction=correction, keepdims=keepdims)
    parts = (reduce_var(part, axes, correction, keepdims) for part in (cubed.real(x), cubed.imag(x)))
    return cubed.add(*parts)


@kernel
def index_basic(x: Any, key: Any) -> Any:
    """Return ``x[key]`` for a basic key."""
    return index(x, key)


# -- indices: known at once where the user's are, so that they are checked and no plan grows -----------------------------------------


def _numpy_kernels() -> Any:
    return backend_for("numpy").kernels


@kernel
def count_up(like: Any, *bounds: int) -> Any:
    """Return ``arange(*bounds)``."""
    return NAMESPACE.arange(*bounds, dtype=np.int64)


def _from_front(indices: Any, n: int, axis: int) -> Any:
    check_indices(indices, n, axis)
    indices = indices.astype(np.int64, copy=False)
    return np.where(indices < 0, indices + n, indices)


@kernel
def from_front(indices: Any, n: int, axis: int, like: Any) -> Any:
    """Return indices counted from the front. Known ones are checked at once, lazy ones when they are computed."""
    known = storage.known_values(indices)
    if known is None:
        return apply_blocks(functools.partial(_from_front, n=n, axis=axis), "", indices, dtype=np.int64)
    return storage.from_numpy(_from_front(known, n, axis))


class _KnownKernels:
    """NumPy's kernels, with the check of indices that its backend leaves to NumPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(_numpy_kernels(), name)

    def from_front(self, indices: Any, n: int, axis: int, like: Any) -> Any:
        return _from_front(indices, n, axis)


def flat_index(xp: Any, key: Any, shape: Any, like: Any) -> Any:
    """Return the positions that ``[key]`` selects in a flattened array: known at once if the key is."""
    known = tuple(storage.known_values(part) if isinstance(part, cubed.Array) else part for part in key)
    if any(a is None and b is not None for a, b in zip(known, key)):
        return DefaultKernels.flat_index(xp, key, shape, like)
    return storage.from_numpy(np.asarray(DefaultKernels.flat_index(_KnownKernels(), known, tuple(shape), np.empty(0))))


@kernel
def segment_sum(values: Any, positions: Any, size: int) -> Any:
    """Return the sums of values that share a position; each chunk of the result reads all values."""
    return apply_blocks(_sum_chunk, "(),(m),(m)->()", NAMESPACE.arange(size), positions, values, dtype=values.dtype)


def _sum_chunk(places: Any, positions: Any, values: Any) -> Any:
    inside = (positions >= places[0]) & (positions <= places[-1])
    out = np.zeros(places.shape, values.dtype)
    np.add.at(out, positions[inside] - places[0], values[inside])
    return out


@kernel
def last_writer(positions: Any, size: int) -> Any:
    """Return, for each place, 1 + the index of the last position that names it, or 0."""
    return apply_blocks(_last_chunk, "(),(m)->()", NAMESPACE.arange(size), positions, dtype=np.int64)


def _last_chunk(places: Any, positions: Any) -> Any:
    inside = np.flatnonzero((positions >= places[0]) & (positions <= places[-1]))
    out = np.zeros(places.shape, np.int64)
    np.maximum.at(out, positions[inside] - places[0], inside + 1)
    return out


# -- arrays without elements -----------------------------------------------------------------------------------------------------------


def without_elements(name: str, function: Any, namespace: Callable[[], Any] = _numpy_kernels) -> Any:
    """Wrap a kernel: with an array without elements, NumPy computes the result at once. cubed's functions fail on them."""
    if not callable(function) or isinstance(function, (type, np.dtype)) or name in _SAFE:
        return function

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        arrays = [a for a in args if isinstance(a, cubed.Array)]
        if not any(0 in a.shape for a in arrays):
            return function(*args, **options)
        found = getattr(namespace(), name)(*map(_stand_in, args), **{k: _stand_in(v) for k, v in options.items()})
        return tuple(map(_back, found)) if isinstance(found, tuple) else _back(found)

    return call


#: Kernels that take arrays without elements themselves, since their results depend on the other operands.
_SAFE = ("add_at", "concat", "copy", "put", "put_at_path", "scatter_into", "written")


def _stand_in(a: Any) -> Any:
    """Return a NumPy array of the shape and dtype of a cubed array, whose values no result without elements depends on."""
    if isinstance(a, tuple):
        return tuple(map(_stand_in, a))
    if not isinstance(a, cubed.Array):
        return a
    known = storage.known_values(a)
    return np.zeros(a.shape, a.dtype) if known is None else known.copy()


def _back(x: Any) -> Any:
    return storage.from_numpy(np.array(x, copy=True)) if isinstance(x, (np.ndarray, np.generic)) else x
