"""CuPy as the standard has it: array-api-compat's namespace, with the functions that CuPy computes for fewer operands or wrongly."""

from __future__ import annotations

import functools
from typing import Any

import array_api_compat.cupy as library
import array_api_compat.cupy.linalg as linalg
import cupy
import numpy as np

__all__ = ["namespace"]


class _Overlay:
    """A module in which some functions are replaced."""

    def __init__(self, module: Any, **functions: Any) -> None:
        self._module = module
        self.__dict__.update(functions)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        setattr(self, name, found)
        return found


def _solve(x1: Any, x2: Any, /) -> Any:
    """Return the ``x`` with ``x1 @ x == x2``; CuPy's function does not broadcast stacks of matrices."""
    if x2.ndim == 1:
        return _solve(x1, x2[:, None])[..., 0]
    stack = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return cupy.linalg.solve(cupy.broadcast_to(x1, stack + x1.shape[-2:]), cupy.broadcast_to(x2, stack + x2.shape[-2:]))


def _in_single_precision(function: Any) -> Any:
    """Compute a statistic of float16 in float32, because CuPy divides by the number of elements in float16, where 70,000 is infinite."""

    @functools.wraps(function)
    def compute(x: Any, /, **options: Any) -> Any:
        return function(x.astype(np.float32), **options).astype(x.dtype) if x.dtype == np.float16 else function(x, **options)

    return compute


@functools.cache
def namespace() -> Any:
    """Return the namespace."""
    statistics = {name: _in_single_precision(getattr(library, name)) for name in ("mean", "std", "var")}
    return _Overlay(library, linalg=_Overlay(linalg, solve=_solve), **statistics)
