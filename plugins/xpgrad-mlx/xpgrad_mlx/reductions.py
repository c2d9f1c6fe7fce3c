"""The standard's reductions. MLX's are not used for arrays without elements, for which they read memory outside the array.

Floating dtypes of 16 bits are reduced in float32, because MLX would sum in 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from xpgrad_mlx.host import COMPLEX, FLOATS, UNSIGNED

__all__ = ["all", "any", "count_nonzero", "max", "mean", "min", "prod", "std", "sum", "var", "widen_for_sum"]


def widen_for_sum(x: Any, dtype: Any) -> Any:
    """Return `x` in the dtype of its sum: `dtype` if given, else 64 bits for integers and bools."""
    if dtype is None:
        dtype = x.dtype if x.dtype in FLOATS or x.dtype in COMPLEX else mx.uint64 if x.dtype in UNSIGNED else mx.int64
    return x if x.dtype == dtype else x.astype(dtype)


def _reduce(function: Callable[..., Any], x: Any, axis: Any, keepdims: Any, nothing: Any, dtype: Any = None) -> Any:
    """Reduce `x` over axes.

    Parameters
    ----------
    function : callable
        MLX's reduction, which is called unless `x` is empty.
    x, axis, keepdims
        As in the standard.
    nothing : number or None
        The reduction of no elements; None if there is none, so that ValueError is raised.
    dtype : mlx.core.Dtype, optional
        The dtype of the result, if it is not that of `x`.
    """
    if x.size:
        out = function(x, axis=axis, keepdims=keepdims)
        return out if dtype is None else out.astype(dtype)  # MLX sums integers of 8 and 16 bits in 32 bits
    axes = {a % x.ndim for a in (range(x.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis)}
    shape = tuple(1 if k in axes else n for k, n in enumerate(x.shape) if keepdims or k not in axes)
    if nothing is None and 0 not in shape:
        msg = f"an array of shape {x.shape} has no elements along {axis!r}, so that there is no extremum; reduce along other axes"
        raise ValueError(msg)
    # MLX makes complex numbers float32 if they are filled with a float.
    return mx.full(shape, 0 if nothing is None else nothing).astype(x.dtype if dtype is None else dtype)


def _reduce_in_single(function: Callable[..., Any], x: Any, **options: Any) -> Any:
    """Reduce 16-bit floats in float32, and return the result in the dtype of `x`."""
    return function(x.astype(mx.float32), **options).astype(x.dtype)


def _is_half(x: Any) -> bool:
    return x.dtype in (mx.float16, mx.bfloat16)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:  # noqa: A001 (the standard's names, from here on)
    x = widen_for_sum(x, dtype)
    return _reduce_in_single(sum, x, axis=axis, keepdims=keepdims) if _is_half(x) else _reduce(mx.sum, x, axis, keepdims, 0, x.dtype)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: Any = False) -> Any:
    x = widen_for_sum(x, dtype)
    return _reduce(mx.prod, x, axis, keepdims, 1, x.dtype)


def mean(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduce_in_single(mean, x, axis=axis, keepdims=keepdims) if _is_half(x) else _reduce(mx.mean, x, axis, keepdims, math.nan)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Any:
    if _is_half(x):
        return _reduce_in_single(var, x, axis=axis, correction=correction, keepdims=keepdims)
    out = _reduce(mx.var, x, axis, keepdims, math.nan)
    count = x.size // out.size if out.size else 1
    return out * count / mx.array(np.maximum(count - correction, 0.0), dtype=out.dtype) if correction else out


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: Any = False) -> Any:
    if _is_half(x):
        return _reduce_in_single(std, x, axis=axis, correction=correction, keepdims=keepdims)
    return mx.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def max(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    return _reduce(mx.max, x, axis, keepdims, None)


def min(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    return _reduce(mx.min, x, axis, keepdims, None)


def all(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    return _reduce(mx.all, x, axis, keepdims, True, mx.bool_)


def any(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:  # noqa: A001
    return _reduce(mx.any, x, axis, keepdims, False, mx.bool_)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: Any = False) -> Any:
    return _reduce(mx.sum, (x != 0).astype(mx.int64), axis, keepdims, 0)
