"""Between MLX's arrays and NumPy's: the dtypes of one by those of the other, and functions of NumPy on MLX's arrays."""

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
    """The values of an array of MLX as one of NumPy, in the same memory where that is possible; bfloat16, which NumPy lacks, in float32."""
    return np.asarray(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)


def lacks(name: str) -> CapabilityError:
    """The error for a dtype that MLX has not; NB: only float64 leads to a wider one than those there are, and only the variant has that."""
    msg = f"backend 'mlx+float64' has no dtype {name}, since MLX has none; compute in float32, or on another backend"
    return CapabilityError(msg)


def array_of(array: Any, dtype: Any) -> Any:
    """Return an array of MLX with the values of one of NumPy, in memory of its own.

    Parameters
    ----------
    array : numpy.ndarray
    dtype : mlx.core.Dtype or None
        None keeps that of `array`.

    Raises
    ------
    CapabilityError
        If MLX has no such dtype; it would take a smaller one without a word.
    """
    small = dtype is not None and dtype == mx.bfloat16  # NB: MLX's dtypes compare with nothing else, not even with None
    found = np.dtype(np.float32) if small else _NUMPY.get(dtype)
    array = array.astype(array.dtype.newbyteorder("=") if found is None else found, copy=False)
    if array.dtype not in _RAW:
        raise lacks(array.dtype.name)
    out = mx.array(array, dtype=_RAW[array.dtype])  # NB: without a dtype it makes float32 of float64
    return out.astype(dtype) if small else out


def hosted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's on arrays of MLX: it waits for them, and the results are new arrays of the dtypes that NumPy gave them.

    Parameters
    ----------
    function : callable
        Takes NumPy arrays, by position; gives an array or a tuple of them. Floating results of bfloat16 operands are bfloat16 again.
    """

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        wanted = mx.bfloat16 if any(isinstance(x, mx.array) and x.dtype == mx.bfloat16 for x in args) else None

        def back(x: Any) -> Any:
            x = np.asarray(x)
            return array_of(x, wanted if x.dtype.kind == "f" else None)

        with np.errstate(all="ignore"):  # MLX does not warn, either
            found = function(*(numpy_of(x) if isinstance(x, mx.array) else x for x in args), **options)
        return tuple(map(back, found)) if isinstance(found, tuple) else back(found)

    return call
