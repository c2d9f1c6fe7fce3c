"""Kernels for which JAX has something better than the Array API calls that the rows declare: its functional updates, mostly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from xpgrad.backend import DefaultKernels, out_of_range
from xpgrad.errors import CapabilityError

__all__ = ["DATA_DEPENDENT", "KERNELS"]

#: Functions whose results have shapes that depend on values.
DATA_DEPENDENT = frozenset(("nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"))

KERNELS: dict[str, Callable[..., Any]] = {}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a kernel into the table under its own name."""
    KERNELS[function.__name__] = function
    return function


@kernel
def copy(x: Any) -> Any:
    return x  # nothing can write to it


@kernel
def atan2(x1: Any, x2: Any) -> Any:
    """Return the angle of a point; JAX computes something of complex numbers, too, for which there is none."""
    if jnp.iscomplexobj(x1) or jnp.iscomplexobj(x2):
        msg = "atan2 is not defined for complex numbers"
        raise TypeError(msg)
    return jnp.arctan2(x1, x2)


def _checked(key: Any, shape: tuple[int, ...]) -> Any:
    """Return the key, whose integers must lie within the axes: JAX would clamp them."""
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
    return x[_checked(key, x.shape)]


@kernel
def index_basic_transpose(g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    return jnp.zeros(shape, g.dtype).at[key].set(g)


@kernel
def add_at(buffer: Any, g: Any, key: Any) -> Any:
    return buffer.at[key].add(g)


def _is_mask(key: Any, shape: tuple[int, ...]) -> bool:
    """Return whether a key is one mask for all axes."""
    if isinstance(key, tuple):
        if len(key) != 1:
            return False
        (key,) = key
    return isinstance(key, jax.Array) and key.dtype == bool and key.shape == shape


def written(xp: Any, buffer: Any, key: Any, value: Any) -> Any:
    """Like the default, which handles the other keys: of duplicates the last one counts, which JAX does not promise."""
    shape = buffer.shape
    parts = key if isinstance(key, tuple) else (key,)
    if all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts):
        place = buffer.at[_checked(key, shape)]
        if isinstance(value, jax.Array):
            # As in NumPy and PyTorch, surplus leading axes of length 1 are dropped.
            axes = len(shape) + sum([(part is None) - isinstance(part, int) for part in parts])
            extra = max(value.ndim - axes, 0)
            if all(n == 1 for n in value.shape[:extra]):
                value = value.reshape(value.shape[extra:])
        return place.set(jnp.asarray(value, dtype=buffer.dtype))
    if _is_mask(key, shape) and jnp.ndim(value) == 0:  # the only masks that do not have to be turned into positions
        return jnp.where(parts[0], jnp.asarray(value, dtype=buffer.dtype), buffer)
    return DefaultKernels.written(xp, buffer, _advanced(key, shape), value)


@kernel
def gather_along(x: Any, indices: Any, axis: int) -> Any:
    _check_known(indices, x.shape[axis], axis)  # NB: JAX would fill with nan
    return jnp.take_along_axis(x, indices, axis=axis)


def _check_known(indices: Any, n: int, axis: int) -> None:
    """Refuse indices that are out of range, if that can be known: a constant's values are, also inside a transform."""
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


def _advanced(key: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return a key with integer arrays and masks, checked as far as its values are known: JAX would fill, clamp or drop.

    NB: integer arrays come in the widest integers, since JAX counts negative ones from the end in their own dtype.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    used = sum([_width(p) for p in parts])
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
        axis += len(shape) - used if part is Ellipsis else _width(part)
    return tuple(parts)


def _width(part: Any) -> int:
    """Return the number of axes of the array that a part of a key consumes."""
    if part is None or part is Ellipsis:
        return 0
    return part.ndim if isinstance(part, jax.Array) and part.dtype == bool else 1


@kernel
def gather(x: Any, key: Any) -> Any:
    key = _advanced(key, x.shape)
    try:
        return x[key]
    except ValueError as exc:
        msg = f"the arrays of an index must broadcast together: {exc}"
        raise IndexError(msg) from exc


@kernel
def scatter_add(values: Any, key: Any, shape: tuple[int, ...]) -> Any:
    return jnp.zeros(shape, values.dtype).at[_advanced(key, shape)].add(values)


@kernel
def scatter_into(buffer: Any, g: Any, key: Any) -> Any:
    return buffer.at[_advanced(key, buffer.shape)].add(g)


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
