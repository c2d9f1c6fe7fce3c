"""CuPy's special functions as kernels: those of `cupyx.scipy.special`, whose results get the dtype of the operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cupy
import cupyx.scipy.special
import numpy as np

__all__ = ["function"]

#: Functions of CuPy's with wrong values: `i0e` and `i1e` are nan where `i0` and `i1` overflow, and `exprel` is nan at infinity.
_WRONG = frozenset({"exprel", "i0e", "i1e"})


@functools.cache
def function(name: str) -> Callable[..., Any] | None:
    """Return CuPy's function of that name; None if it has none, or has one that reduces axes or is wrong."""
    found: Any = getattr(cupyx.scipy.special, name, None)
    if not isinstance(found, cupy.ufunc) or name in _WRONG:
        return None

    def call(*args: Any) -> Any:
        # NB: CuPy computes float16 in single precision, and some functions, such as `yn`, of every dtype in double precision.
        dtypes = [a.dtype for a in args if isinstance(a, cupy.ndarray) and a.dtype.kind == "f"]
        out: Any = found(*args)
        return out.astype(np.result_type(*dtypes), copy=False) if dtypes and out.dtype.kind == "f" else out

    return call
