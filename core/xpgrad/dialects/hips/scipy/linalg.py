"""Functions of matrices: SciPy's for arrays, and those of `xpgrad.scipy.linalg` for values that are differentiated."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._arrays import np
from xpgrad.scipy import linalg as _ours

__all__ = ["solve_banded", "solve_sylvester", "solve_triangular", "sqrtm"]

_linalg: Any = importlib.import_module("scipy.linalg")


def _of_both(name: str) -> Any:
    """Wrap a function of SciPy so that it accepts Tensors."""
    theirs, ours = getattr(_linalg, name), getattr(_ours, name)

    @functools.wraps(ours)
    def function(*args: Any, **options: Any) -> Any:
        return (ours if any(isinstance(a, Tensor) for a in (*args, *options.values())) else theirs)(*args, **options)

    return function


solve_banded: Any = _of_both("solve_banded")
solve_sylvester: Any = _of_both("solve_sylvester")
solve_triangular: Any = _of_both("solve_triangular")


def sqrtm(A: Any) -> Any:
    """Return the principal square root of a matrix; it may be complex for a real matrix."""
    if not isinstance(A, Tensor):
        return _linalg.sqrtm(A)
    out: Any = _ours.sqrtm(A)
    real = not A.dtype.is_complex and bool(np.isnan(out).any()) and not bool(np.isnan(A).any())
    return _ours.sqrtm(A + 0j) if real else out
