"""Kernels for special functions: the functions of `torch.special` that are as accurate as SciPy's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

__all__ = ["function"]

#: Functions with the same name and meaning, for real tensors. NB: not all are accurate enough: PyTorch's `ndtr` loses digits in the tail
#: (2.13, float64: 0.0 at -37 instead of 6e-300), and its Bessel functions of orders 0 and 1 have only eight digits.
_NAMES = frozenset((
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "expit", "gammainc", "gammaincc", "gammaln", "i0", "i0e", "i1", "i1e", "log_ndtr",
    "logit", "ndtri", "sinc", "xlog1py", "xlogy", "zeta",
))  # fmt: skip


def _solve_triangular(a: Any, b: Any, turned: bool, lower: bool, unit: bool) -> Any:
    return torch.linalg.solve_triangular(a.mT if turned else a, b, upper=lower is turned, unitriangular=unit)


#: Kernels of `xpgrad.scipy.linalg`. NB: PyTorch's `matrix_exp` scales by the norm alone, and loses digits for matrices that are far from
#: normal (2.13, float64: the result for [[1, 1e6], [0, -1]] has eleven digits).
_MATRICES: dict[str, Callable[..., Any]] = {"linalg_solve_triangular": _solve_triangular}


@functools.cache
def function(name: str) -> Callable[..., Any] | None:
    """Return PyTorch's function for a special function's name; None if it has none that is accurate enough.

    The returned function also accepts Python scalars beside a tensor.
    """
    if name not in _NAMES:
        return _MATRICES.get(name)
    found = getattr(torch.special, name)

    def call(*args: Any) -> Any:
        if len(args) > 1:
            like = next(a for a in args if isinstance(a, torch.Tensor))
            args = tuple(a if isinstance(a, torch.Tensor) else torch.full((), a, dtype=like.dtype, device=like.device) for a in args)
        return found(*args)

    return call
