"""Kernels for which JAX has something better than the Array API calls that the rows declare: its functional updates, mostly."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

__all__ = ["KERNELS"]

KERNELS: dict[str, Callable[..., Any]] = {}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a kernel into the table under its own name."""
    KERNELS[function.__name__] = function
    return function


@kernel
def copy(x: Any) -> Any:
    return x  # nobody can write to it


def _checked(key: Any, shape: tuple[int, ...]) -> Any:
    """The key, whose integers must lie within the axes: JAX would clamp them."""
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
            msg = f"index {part} is out of range for axis {axis} of length {shape[axis]}"
            raise IndexError(msg)
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


@kernel
def reshape_to(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape)


@kernel
def transpose_axes(x: Any, axes: tuple[int, ...]) -> Any:
    return x.transpose(axes)


@kernel
def sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    full = x.shape
    if full == shape:
        return x
    extra = len(full) - len(shape)
    axes = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and full[i + extra] != 1))
    return x.sum(axis=axes, keepdims=True, dtype=x.dtype).reshape(shape)


@kernel
def reduce_mean(x: Any, axes: Any, keepdims: bool) -> Any:
    count = x.size if axes is None else math.prod(x.shape[a] for a in axes)
    return x.mean(axis=axes, keepdims=keepdims) if count else jnp.full_like(x.sum(axis=axes, keepdims=keepdims), math.nan)
