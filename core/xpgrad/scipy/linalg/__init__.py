"""`xpgrad.scipy.linalg`: SciPy's matrix functions for Tensors on every backend, differentiable to every order in both modes.

The last two axes of a Tensor are the matrix; the axes before them are batch axes, and those of two operands broadcast. Integers are cast to
the default floating dtype. Shapes and dtypes of results never depend on values; docstrings say where SciPy's do. A matrix that is not
finite gives nan (SciPy raises ValueError). A singular matrix raises the error of the backend's library (NumPy:
`numpy.linalg.LinAlgError`). SciPy's arguments `overwrite_*` and `check_finite` do not exist, because nothing is overwritten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpgrad._basics.faces import public_names, refusal
from xpgrad.scipy.linalg._building import block_diag as block_diag, circulant as circulant, hankel as hankel, toeplitz as toeplitz
from xpgrad.scipy.linalg._functions import PolarResult as PolarResult, expm as expm, logm as logm, polar as polar, sqrtm as sqrtm
from xpgrad.scipy.linalg._lyapunov import (
    solve_continuous_lyapunov as solve_continuous_lyapunov,
    solve_discrete_lyapunov as solve_discrete_lyapunov,
    solve_lyapunov as solve_lyapunov,
    solve_sylvester as solve_sylvester,
)
from xpgrad.scipy.linalg._riccati import solve_continuous_are as solve_continuous_are, solve_discrete_are as solve_discrete_are
from xpgrad.scipy.linalg._systems import (
    LstsqResult as LstsqResult,
    cho_factor as cho_factor,
    cho_solve as cho_solve,
    lstsq as lstsq,
    solve_banded as solve_banded,
    solve_triangular as solve_triangular,
)

__all__ = [
    "LstsqResult", "PolarResult", "block_diag", "cho_factor", "cho_solve", "circulant", "expm", "hankel", "logm", "lstsq", "polar",
    "solve_banded", "solve_continuous_are", "solve_continuous_lyapunov", "solve_discrete_are", "solve_discrete_lyapunov", "solve_lyapunov",
    "solve_sylvester", "solve_triangular", "sqrtm", "toeplitz",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)
