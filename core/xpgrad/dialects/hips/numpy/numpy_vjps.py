"""The part of HIPS autograd's rules that programs with rules of their own take: the sum over axes along which an operand was broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips._arrays import np

__all__ = ["unbroadcast", "unbroadcast_f"]


def unbroadcast(x: Any, target_meta: Any, broadcast_idx: int = 0) -> Any:
    """`x` summed to the shape, number of axes, dtype and kind of `target_meta`, which `numpy.metadata` returns."""
    shape, ndim, _, is_complex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    for axis, length in enumerate(shape):
        if length == 1 and np.shape(x)[axis] != 1:
            x = np.sum(x, axis=axis, keepdims=True)
    return np.real(x) if np.iscomplexobj(x) and not is_complex else x


def unbroadcast_f(target: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, its results summed to the shape of `target`."""
    meta = np.shape(target), np.ndim(target), None, np.iscomplexobj(target)
    return lambda g: unbroadcast(f(g), meta)
