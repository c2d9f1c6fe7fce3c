"""Kernels for which MLX has something better than the default kernels. None of them writes into its operands.

NB: MLX does not check indices: one that is out of range reads or writes memory outside the array. xpgrad checks keys before it calls these
kernels, because `checks_indices` is False.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from xpgrad.backend import DefaultKernels

__all__ = ["KERNELS", "written"]

KERNELS: dict[str, Callable[..., Any]] = {}


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a kernel under its function's name."""
    KERNELS[function.__name__] = function
    return function


@kernel
def copy(x: Any) -> Any:
    return x  # no copy is needed, because arrays are never written in place


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
    """Return a copy of `buffer` with `value` at ``[key]``; if the key has duplicates, the last value wins.

    MLX writes at basic keys. The default kernel writes at keys with arrays, because MLX does not define which of the duplicates wins.
    """
    if any(isinstance(part, mx.array) for part in key):
        return DefaultKernels.written(xp, buffer, key, value)
    out = mx.array(buffer)  # another object with the same values, so that assigning to it does not change `buffer`
    out[key] = value if isinstance(value, mx.array) else mx.array(value, dtype=buffer.dtype)
    return out


@kernel
def segment_sum(values: Any, positions: Any, size: int) -> Any:
    out = mx.zeros((size,), dtype=values.dtype)
    return out.at[positions].add(values) if size else out  # NB: MLX refuses to add nothing to nothing


@kernel
def last_writer(positions: Any, size: int) -> Any:
    number = mx.arange(1, positions.shape[0] + 1, dtype=mx.int64)
    out = mx.zeros((size,), dtype=mx.int64)
    return out.at[positions].maximum(number) if size else out
