"""Functions for custom vjps: sum a gradient over the axes along which an operand was broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips._arrays import np

__all__ = ["unbroadcast", "unbroadcast_f"]


def unbroadcast(x: Any, target_meta: Any, broadcast_idx: int = 0) -> Any:
    """Sum `x` to the shape of `target_meta`, a result of `numpy.metadata`, and drop the imaginary part for a real target."""
    shape, _, _, is_complex = target_meta
    surplus = np.ndim(x) - len(shape)
    first = broadcast_idx % np.ndim(x) if surplus > 0 else 0
    front = range(first - surplus + 1, first + 1) if broadcast_idx < 0 else range(first, first + surplus)
    rest = [axis for axis in range(np.ndim(x)) if surplus <= 0 or axis not in front]
    stretched = [axis for axis, length in zip(rest, shape) if length == 1 and np.shape(x)[axis] != 1]
    axes = (*(front if surplus > 0 else ()), *stretched)
    if axes:
        x = np.reshape(np.sum(x, axis=axes), shape)
    return x if is_complex or not np.iscomplexobj(x) else np.real(x)


def unbroadcast_f(target: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Return `f` with its results summed to the shape of `target`."""
    meta = np.shape(target), np.ndim(target), None, np.iscomplexobj(target)
    return lambda g: unbroadcast(f(g), meta)
