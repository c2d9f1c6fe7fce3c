"""Conversions between MLX's arrays and NumPy's, and NumPy's functions on MLX's arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from xpgrad.errors import CapabilityError

__all__ = ["COMPLEX", "FLOATS", "INTEGERS", "UNSIGNED", "array_of", "hosted", "lacks", "numpy_of"]

UNSIGNED = (mx.uint8, mx.uint16, mx.uint32, mx.uint64)
INTEGERS = (mx.int8, mx.int16, mx.int32, mx.int64, *UNSIGNED)
FLOATS = (mx.float16, mx.bfloat16, mx.float32, mx.float64)
COMPLEX = (mx.complex64,)

_NAMES = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64")
_RAW = {np.dtype(name): getattr(mx, name) for name in _NAMES} | {np.dtype(bool): mx.bool_}
_NUMPY = {raw: dtype for dtype, raw in _RAW.items()}


def numpy_of(x: Any) -> Any:
    """Return an MLX array as a NumPy array, if possible in the same memory; bfloat16, which NumPy lacks, becomes float32."""
    return np.asarray(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)


def lacks(name: str) -> CapabilityError:
    """Return the error for a dtype that MLX lacks. NB: only float64 promotes to such a dtype, so the variant ``mlx+float64`` is named."""
    msg = f"backend 'mlx+float64' has no dtype {name}, since MLX has none; compute in float32, or on another backend"
    return CapabilityError(msg)


def array_of(array: Any, dtype: Any) -> Any:
    """Return a new MLX array with the values of a NumPy array.

    Parameters
    ----------
    array : numpy.ndarray
        The values.
    dtype : mlx.core.Dtype or None
        The dtype of the result; None keeps that of `array`.

    Raises
    ------
    CapabilityError
        If MLX lacks the dtype of `array` and `dtype` is None. MLX would silently use a smaller dtype.
    """
    small = dtype is not None and dtype == mx.bfloat16  # NB: MLX's dtypes compare with nothing else, not even with None
    found = np.dtype(np.float32) if small else _NUMPY.get(dtype)
    array = array.astype(array.dtype.newbyteorder("=") if found is None else found, copy=False)
    if array.dtype not in _RAW:
        raise lacks(array.dtype.name)
    out = mx.array(array, dtype=_RAW[array.dtype])  # NB: without a dtype, float64 would become float32
    return out.astype(dtype) if small else out


def hosted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a NumPy function as a function of MLX arrays.

    The function waits for its operands. Its results are new MLX arrays with the dtypes of NumPy's results; if an operand is bfloat16,
    floating results are bfloat16.

    Parameters
    ----------
    function : callable
        Takes NumPy arrays as positional arguments, and returns an array or a tuple of arrays.
    """

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        wanted = mx.bfloat16 if any(isinstance(x, mx.array) and x.dtype == mx.bfloat16 for x in args) else None

        def back(x: Any) -> Any:
            x = np.asarray(x)
            return array_of(x, wanted if x.dtype.kind == "f" else None)

        with np.errstate(all="ignore"):  # MLX's functions do not warn
            found = function(*(numpy_of(x) if isinstance(x, mx.array) else x for x in args), **options)
        return tuple(map(back, found)) if isinstance(found, tuple) else back(found)

    return call
