"""Kernels that JAX does better than the Array API calls that the rows declare, mostly by its functional updates (``x.at``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from xpgrad.backend import DefaultKernels, out_of_range
from xpgrad.errors import CapabilityError
from xpgrad_jax._complex import COMPLEX

__all__ = ["DATA_DEPENDENT", "KERNELS"]

#: Functions whose results have shapes that depend on values.
DATA_DEPENDENT = frozenset(("nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"))

KERNELS: dict[str, Callable[..., Any]] = {**COMPLEX}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a kernel under its function's name."""
    KERNELS[function.__name__] = function
    return function


@kernel
def copy(x: Any) -> Any:
    return x  # nothing can write to it


@kernel
def atan2(x1: Any, x2: Any) -> Any:
    """Return the angle of a point; raise for complex numbers, for which JAX would compute meaningless results."""
    if jnp.iscomplexobj(x1) or jnp.iscomplexobj(x2):
        msg = "atan2 is not defined for complex numbers"
        raise TypeError(msg)
    return jnp.arctan2(x1, x2)


@kernel
def sign(x: Any, /) -> Any:
    return jnp.where(x == 0, jnp.zeros_like(x), jnp.sign(x))  # NB: JAX's keeps the sign of zero, and the standard's is 0


@kernel
def remainder(x1: Any, x2: Any, /) -> Any:
    """Return the remainder with the sign of `x2`; the sign of XLA's zero is that of `x1`."""
    found = jnp.remainder(x1, x2)
    return jnp.where(found == 0, jnp.copysign(found, x2), found) if jnp.issubdtype(found.dtype, jnp.floating) else found


@kernel
def floor_divide(x1: Any, x2: Any, /) -> Any:
    """Return the quotient, rounded down, with the sign of the exact one; the sign of XLA's zero is another."""
    found = jnp.floor_divide(x1, x2)
    return jnp.where(found == 0, jnp.copysign(found, x1 / x2), found) if jnp.issubdtype(found.dtype, jnp.floating) else found


def _check_basic_key(key: Any, shape: tuple[int, ...]) -> Any:
    """Return a basic key; raise IndexError if an integer is out of range, which JAX would clamp, or there are too many indices."""
    parts = key if isinstance(key, tuple) else (key,)
    used = sum(p is not None and p is not Ellipsis for p in parts)
    if used > len(shape):
        msg = f"too many indices: the array has shape {shape}, but {used} of its axes are indexed"
        raise IndexError(msg)
    axis = 0
    for part in parts:
        if part is None:
            continue
        if part is Ellipsis:
            axis += len(shape) - used
            continue
        if isinstance(part, int) and not -shape[axis] <= part < shape[axis]:
            raise out_of_range(part, shape[axis], axis)
        axis += 1
    return key


@kernel
def index_basic(x: Any, key: Any) -> Any:
    return x[_check_basic_key(key, x.shape)]


@kernel
def index_basic_transpose(g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    return jnp.zeros(shape, g.dtype).at[key].set(g)


@kernel
def add_at(buffer: Any, g: Any, key: Any) -> Any:
    return buffer.at[key].add(g)


def _is_mask(key: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a key is a single mask of the array's shape."""
    if isinstance(key, tuple):
        if len(key) != 1:
            return False
        (key,) = key
    return isinstance(key, jax.Array) and key.dtype == bool and key.shape == shape


def written(xp: Any, buffer: Any, key: Any, value: Any) -> Any:
    """Return a copy of `buffer` with `value` written at `key`.

    NB: other keys than basic ones and masks go to the default kernel: the last of several writes to an element counts there, which JAX
    does not promise.
    """
    shape = buffer.shape
    parts = key if isinstance(key, tuple) else (key,)
    if all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts):
        place = buffer.at[_check_basic_key(key, shape)]
        if isinstance(value, jax.Array):
            # As in NumPy and PyTorch, surplus leading axes of length 1 are dropped.
            axes = len(shape) + sum([(part is None) - isinstance(part, int) for part in parts])
            extra = max(value.ndim - axes, 0)
            if all(n == 1 for n in value.shape[:extra]):
                value = value.reshape(value.shape[extra:])
        return place.set(jnp.asarray(value, dtype=buffer.dtype))
    if _is_mask(key, shape) and jnp.ndim(value) == 0:  # this mask need not be turned into positions
        return jnp.where(parts[0], jnp.asarray(value, dtype=buffer.dtype), buffer)
    return DefaultKernels.written(xp, buffer, _check_advanced_key(key, shape), value)


@kernel
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    return jnp.searchsorted(x1, x2, side=side, sorter=sorter).astype(int)  # JAX's own positions are int32 although its default is int64


@kernel
def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
    """Return running products. NB: JAX's own, unlike its running sums, do not widen integers, so that they wrap around."""
    if dtype is None and not jnp.issubdtype(x.dtype, jnp.inexact):
        dtype = jax.eval_shape(jnp.sum, x).dtype
    return jnp.cumulative_prod(x, axis=axis, dtype=dtype, include_initial=include_initial)


@kernel
def gather_along(x: Any, indices: Any, axis: int) -> Any:
    _check_known(indices, x.shape[axis], axis)  # NB: JAX would fill with nan
    return jnp.take_along_axis(x, indices, axis=axis)


def _check_known(indices: Any, n: int, axis: int) -> None:
    """Raise IndexError if indices are out of range; do nothing if their values are not known inside a transform."""
    if isinstance(indices, Tracer) or not indices.size:
        return
    with jax.ensure_compile_time_eval():
        lowest, highest = map(int, np.asarray(_bounds(indices)))
    if lowest < -n or highest >= n:
        raise out_of_range(lowest if lowest < -n else highest, n, axis)


@jax.jit
def _bounds(indices: Any) -> Any:
    indices = indices.astype(int)
    return jnp.stack([indices.min(), indices.max()])


def _check_advanced_key(key: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return an advanced key; raise IndexError if it is out of range, as far as its values are known.

    NB: integer arrays are converted to the widest integers, because JAX wraps negative indices in their own dtype, which may overflow.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    used = sum([_count_axes(p) for p in parts])
    if used > len(shape):
        msg = f"too many indices: the array has shape {shape}, but {used} of its axes are indexed"
        raise IndexError(msg)
    axis = 0
    for i, part in enumerate(parts):
        if isinstance(part, int) and not -shape[axis] <= part < shape[axis]:
            raise out_of_range(part, shape[axis], axis)
        if isinstance(part, slice):
            part.indices(shape[axis])  # raises for a step of 0
        if isinstance(part, jax.Array):
            if part.dtype == bool:
                if isinstance(part, Tracer):
                    msg = (
                        "the shape of what a mask picks depends on values, which are not known inside a transform of JAX (jit, vmap, grad, "
                        "shard_map) or a compiled function; use `xpgrad.where`, or index outside"
                    )
                    raise CapabilityError(msg)
                if part.shape != shape[axis : axis + part.ndim]:
                    place = shape[axis : axis + part.ndim]
                    msg = f"a mask of shape {part.shape} does not fit the axes {place} of an array of shape {shape}"
                    raise IndexError(msg)
            else:
                _check_known(part, shape[axis], axis)
                parts[i] = part.astype(int)
        axis += len(shape) - used if part is Ellipsis else _count_axes(part)
    return tuple(parts)


def _count_axes(part: Any) -> int:
    """Return the number of the array's axes that a part of a key indexes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, jax.Array) and part.dtype == bool else 1


@kernel
def gather(x: Any, key: Any) -> Any:
    key = _check_advanced_key(key, x.shape)
    try:
        return x[key]
    except ValueError as exc:
        msg = f"the arrays of an index must broadcast together: {exc}"
        raise IndexError(msg) from exc


@kernel
def scatter_add(values: Any, key: Any, shape: tuple[int, ...]) -> Any:
    return jnp.zeros(shape, values.dtype).at[_check_advanced_key(key, shape)].add(values)


@kernel
def scatter_into(buffer: Any, g: Any, key: Any) -> Any:
    return buffer.at[_check_advanced_key(key, buffer.shape)].add(g)


@kernel
def take_flat(x: Any, flat: Any) -> Any:
    return x.reshape(-1)[flat]


@kernel
def segment_sum(values: Any, positions: Any, size: int) -> Any:
    return jnp.zeros((size,), values.dtype).at[positions].add(values)


@kernel
def last_writer(positions: Any, size: int) -> Any:
    number = jnp.arange(1, len(positions) + 1)
    return jnp.zeros((size,), number.dtype).at[positions].max(number)
