"""CuPy's special functions as kernels: those of `cupyx.scipy.special`, whose results have the dtype of the operands."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cupyx.scipy.special
import numpy as np

__all__ = ["function"]


@functools.cache
def function(name: str) -> Callable[..., Any] | None:
    """Return CuPy's function of that name; None if it has none."""
    found = getattr(cupyx.scipy.special, name, None)
    if found is None:
        return None

    def call(*args: Any) -> Any:
        out = found(*args)
        half = any(getattr(a, "dtype", None) == np.float16 for a in args)
        return out.astype(np.float16) if half else out  # CuPy returns single precision for half precision

    return call
