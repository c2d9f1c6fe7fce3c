"""Kernels that are faster or more reliable in CuPy than the Array API calls that the rows declare."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

__all__ = ["KERNELS"]

KERNELS: dict[str, Callable[..., Any]] = {"clip": cupy.clip, "running_prod": cupy.cumprod, "running_sum": cupy.cumsum}

#: The dtypes that CuPy's atomic addition takes, as characters; `_add` expresses additions of other dtypes by these.
_ATOMIC = frozenset("efdILQi")


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a kernel under its function's name."""
    KERNELS[function.__name__] = function
    return function


@kernel
def copy(x: Any) -> Any:
    return x.copy()


@kernel
def clone_contiguous(x: Any) -> Any:
    return cupy.array(x, copy=True, order="C")  # the standard's copy keeps the memory order


@kernel
def index_basic(x: Any, key: Any) -> Any:
    return x[key]  # CuPy returns a view even for a single element


@kernel
def index_basic_transpose(g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    out = cupy.zeros(shape, g.dtype)
    out[key] = g
    return out


@kernel
def add_at(buffer: Any, g: Any, key: Any) -> Any:
    part = buffer[key]
    cupy.add(part, g, out=part)
    return buffer


@kernel
def reshape_to(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape)


@kernel
def transpose_axes(x: Any, axes: tuple[int, ...]) -> Any:
    return x.transpose(axes)


@kernel
def to_dtype(x: Any, dtype: Any) -> Any:
    if x.dtype.kind == "c" and dtype.kind != "c":
        return x != 0 if dtype.kind == "b" else x.real.astype(dtype)  # the bool of a complex number asks for both parts
    return x.astype(dtype)


@kernel
def scale(g: Any, factor: Any) -> Any:
    return cupy.multiply(g, factor, out=g)


@kernel
def segment_sum(values: Any, positions: Any, size: int) -> Any:
    """Return zeros of length `size` with `values` added at `positions`, duplicates included."""
    out = cupy.zeros(size, values.dtype)
    _add(out, positions, values)
    return out


@kernel
def scatter_add(values: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of `shape` with `values` added at an advanced index, duplicates included."""
    return scatter_into(cupy.zeros(shape, values.dtype), values, key)


@kernel
def scatter_into(out: Any, values: Any, key: Any) -> Any:
    """Add `values` to `out`, which the caller owns, at an advanced index, duplicates included; return `out`."""
    _add(out, key, values)
    return out


def _widen_indices(part: Any) -> Any:
    """Convert an integer array of a key to 64 bits; return other parts unchanged.

    NB: CuPy adds the axis's length to negative indices in their own dtype, which may overflow.
    """
    return part.astype(np.int64) if isinstance(part, cupy.ndarray) and part.dtype.kind in "iu" and part.dtype.itemsize < 8 else part


def _add(out: Any, key: Any, values: Any) -> None:
    """Compute ``out[key] += values`` in place, duplicates included."""
    key = tuple(map(_widen_indices, key)) if key.__class__ is tuple else _widen_indices(key)
    kind = out.dtype.char
    if kind in _ATOMIC:
        cupy.add.at(out, key, values)
    elif out.dtype.kind == "c":  # the real and imaginary parts are views
        values = cupy.asarray(values, out.dtype)
        _add(out.real, key, values.real)
        _add(out.imag, key, values.imag)
    elif out.dtype == np.int64:  # in two's complement, unsigned addition gives the same bits
        cupy.add.at(out.view(np.uint64), key, cupy.ascontiguousarray(cupy.asarray(values, np.int64)).view(np.uint64))
    else:  # small integers and bools are added in 64 bits and converted back
        wide = cupy.zeros(out.shape, np.int64)
        _add(wide, key, cupy.asarray(values, np.int64))
        out[...] = (out + wide).astype(out.dtype) if out.dtype.kind != "b" else (out | (wide != 0))


@kernel
def last_writer(positions: Any, size: int) -> Any:
    """Return, for each of the places 0 .. size - 1, one plus the largest `i` with ``positions[i]`` equal to the place; 0 if none is."""
    out = cupy.zeros(size, np.uint64)
    cupy.maximum.at(out, positions, cupy.arange(1, len(positions) + 1, dtype=np.uint64))
    return out.view(np.int64)


@kernel
def sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Sum a broadcast gradient back to `shape`."""
    full = x.shape
    if full == shape:
        return x
    extra = len(full) - len(shape)
    axes = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and full[i + extra] != 1))
    return x.sum(axis=axes, keepdims=True, dtype=x.dtype).reshape(shape)
