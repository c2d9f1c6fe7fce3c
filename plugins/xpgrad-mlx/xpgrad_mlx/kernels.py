"""Kernels for which MLX has something better than the Array API calls of the defaults. Nothing here writes into an array that it was given.

NB: MLX checks no index: one that is out of range reads or writes memory that is not the array's. Keys have been checked before they come
here (`checks_indices` is False).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from xpgrad.backend import DefaultKernels

__all__ = ["KERNELS", "written"]

KERNELS: dict[str, Callable[..., Any]] = {}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Enter a kernel into the table under its own name."""
    KERNELS[function.__name__] = function
    return function


@kernel
def copy(x: Any) -> Any:
    return x  # nothing writes to it


@kernel
def index_basic(x: Any, key: Any) -> Any:
    return x[key]


@kernel
def index_basic_transpose(g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    out = mx.zeros(shape, dtype=g.dtype)
    out[key] = g
    return out


@kernel
def add_at(buffer: Any, g: Any, key: Any) -> Any:
    return buffer.at[key].add(g)


def written(xp: Any, buffer: Any, key: Any, value: Any) -> Any:
    """Basic keys are MLX's, on an array object of their own; of duplicates in others MLX does not promise which is the last."""
    if any(isinstance(part, mx.array) for part in key):
        return DefaultKernels.written(xp, buffer, key, value)
    out = mx.array(buffer)  # another object for the same values: assigning to it leaves `buffer` as it is
    out[key] = value if isinstance(value, mx.array) else mx.array(value, dtype=buffer.dtype)
    return out


@kernel
def segment_sum(values: Any, positions: Any, size: int) -> Any:
    return mx.zeros((size,), dtype=values.dtype).at[positions].add(values)


@kernel
def last_writer(positions: Any, size: int) -> Any:
    number = mx.arange(1, positions.shape[0] + 1, dtype=mx.int64)
    return mx.zeros((size,), dtype=mx.int64).at[positions].maximum(number)
