"""Functions of matrices: SciPy's for arrays, and those of `xpgrad.scipy.linalg` for values that are differentiated."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.scipy._wrapping import others, wrap
from xpgrad.scipy import linalg as _ours

__all__ = ["solve_banded", "solve_sylvester", "solve_triangular", "sqrtm"]

_linalg: Any = importlib.import_module("scipy.linalg")


solve_banded: Any = wrap(_linalg, _ours, "solve_banded")
solve_sylvester: Any = wrap(_linalg, _ours, "solve_sylvester")
solve_triangular: Any = wrap(_linalg, _ours, "solve_triangular")


def sqrtm(A: Any) -> Any:
    """Return the principal square root of a matrix; it may be complex for a real matrix."""
    if not isinstance(A, Tensor):
        return _linalg.sqrtm(A)
    out: Any = _ours.sqrtm(A)
    real = not A.dtype.is_complex and bool(np.isnan(out).any()) and not bool(np.isnan(A).any())
    return _ours.sqrtm(A + 0j) if real else out


#: Other functions of `scipy.linalg`, to which `defvjp` can give rules if xpgrad has none.
__getattr__: Callable[[str], Any]
__dir__: Callable[[], list[str]]
__getattr__, __dir__ = others(globals(), _linalg, _ours)
