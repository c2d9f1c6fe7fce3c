"""SciPy's matrix functions as kernels that take stacks of matrices and return the dtype of the operands.

The result is nan for a matrix that is not finite, and for a real matrix whose logarithm or root is not real.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["function"]

#: Stacks of triangular matrices up to this size are solved together by `numpy.linalg.solve`; larger matrices are solved one by one.
_SMALL = 32


def _widen_half(x: Any) -> Any:
    """Convert half to single precision, because LAPACK has no half precision; return other arrays unchanged."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _map_matrices(one: Callable[..., Any], ranks: int, shape: Any, *arrays: Any) -> Any:
    """Call a function for each matrix of a stack, and return the stack of its results; nan where a matrix is not finite.

    Parameters
    ----------
    one : callable
        The function of single matrices.
    ranks : int
        The number of axes of one element of the stack: 2 for matrices.
    shape : callable
        Takes the broadcast arrays, and returns the shape of one element of the result.
    *arrays
        The stacks, whose leading axes broadcast.
    """
    dtype = np.result_type(*arrays)
    batch = np.broadcast_shapes(*(x.shape[:-ranks] for x in arrays))
    arrays = tuple(np.broadcast_to(_widen_half(x), batch + x.shape[-ranks:]) for x in arrays)
    out = np.empty(batch + shape(*arrays), dtype)
    for i in np.ndindex(batch):
        given = [x[i] for x in arrays]
        out[i] = one(*given) if out.size and all(np.isfinite(x).all() for x in given) else np.nan
    return out


def _solve_triangular(linalg: Any, a: Any, b: Any, turned: bool, lower: bool, unit: bool) -> Any:
    dtype = np.result_type(a, b)
    if 0 in a.shape or 0 in b.shape:
        return np.zeros(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + b.shape[-2:], dtype)

    def one(a: Any, b: Any) -> Any:
        return linalg.solve_triangular(a, b, trans=int(turned), lower=lower, unit_diagonal=unit, check_finite=False)

    if a.ndim == b.ndim == 2:
        return np.asarray(one(_widen_half(a), _widen_half(b)), dtype)
    a, b = _widen_half(a), _widen_half(b)
    if a.shape[-1] <= _SMALL:
        a = (np.tril if lower else np.triu)(a, (-1 if lower else 1) if unit else 0)
        if unit:
            a = a + np.eye(a.shape[-1], dtype=a.dtype)
        if turned:
            a = np.swapaxes(a, -1, -2)
        if lower is turned:
            return np.linalg.solve(a, b).astype(dtype, copy=False)
        return np.linalg.solve(a[..., ::-1, ::-1], b[..., ::-1, :])[..., ::-1, :].astype(dtype, copy=False)
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, batch + x.shape[-2:]) for x in (a, b))
    out = np.empty(b.shape, dtype)
    for i in np.ndindex(batch):
        out[i] = one(a[i], b[i])
    return out


# -- the logarithm and the square root, which are real or nan for real matrices -----------------------------------------------


def _has_negative_eigenvalue(t: Any, rounding: float = 0.0) -> bool:
    """Return whether a real Schur form has a real eigenvalue below ``-rounding`` times its largest element."""
    diagonal, below = np.diagonal(t), np.diagonal(t, -1) != 0
    alone = ~(np.append(below, False) | np.append(False, below))
    return bool((diagonal[alone] < -rounding * np.abs(t).max()).any())


def _sqrtm(linalg: Any, a: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy warns of singular matrices, but an infinite root is visible in the result
        out = linalg.sqrtm(a)
    if a.dtype.kind == "c" or out.dtype.kind != "c":
        return out
    # Rounding can make an eigenvalue of 0 negative, except for a triangular matrix, whose eigenvalues are on its diagonal.
    exact = not np.tril(a, -1).any() or not np.triu(a, 1).any()
    return np.nan if _has_negative_eigenvalue(linalg.schur(a)[0], 0.0 if exact else len(a) * np.finfo(a.dtype).eps) else out.real


def _logm(linalg: Any, a: Any) -> Any:
    real = a.dtype.kind != "c"
    t, z = linalg.schur(a)
    if real:
        if _has_negative_eigenvalue(t):
            return np.nan
        t, z = linalg.rsf2csf(t, z)
    if (np.diagonal(t) == 0).any():
        return np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy warns that a matrix is nearly singular
        out = z @ linalg.logm(t) @ z.conj().T
    return out.real if real else out


# -- equations ---------------------------------------------------------------------------------------------------------------------


def _solve_sylvester(linalg: Any, a: Any, b: Any, q: Any) -> Any:
    # Bartels and Stewart, "Solution of the matrix equation AX + XB = C" (1972).
    a, b, q = (x.astype(np.result_type(a, b, q), copy=False) for x in (a, b, q))
    r, u = linalg.schur(a)
    s, v = (r, u) if np.array_equal(a, b) else linalg.schur(b)  # the derivative of a square root passes the same matrix twice
    (solve,) = linalg.get_lapack_funcs(("trsyl",), (r, s, q))
    y, scale, info = solve(r, s, u.conj().T @ q @ v)
    if info:
        msg = (
            "Sylvester's equation is singular: an eigenvalue of `a` is minus one of `b`, or nearly so; as the derivative of `sqrtm` it is "
            "if the matrix is singular, whose root has none"
        )
        raise np.linalg.LinAlgError(msg)
    return u @ (y / scale) @ v.conj().T


def _solve_banded(linalg: Any, lower: int, upper: int, ab: Any, b: Any) -> Any:
    return linalg.solve_banded((lower, upper), ab, b, check_finite=False)


def _solve_banded_stack(linalg: Any, ab: Any, b: Any, lower: int, upper: int) -> Any:
    # Elements of `ab` beyond the corners of the matrix may have any value, and must not make the result nan.
    n = ab.shape[-1]
    column, row = np.arange(n), np.arange(lower + upper + 1)[:, None] - upper
    ab = np.where((column + row >= 0) & (column + row < n), ab, ab.dtype.type(0))
    # LAPACK does not accept diagonals that lie entirely beyond the corners.
    low, up = min(lower, max(n - 1, 0)), min(upper, max(n - 1, 0))
    ab = ab[..., upper - up : upper + low + 1, :]
    return _map_matrices(functools.partial(_solve_banded, linalg, low, up), 2, lambda ab, b: b.shape[-2:], ab, b)


@functools.cache
def function(name: str) -> Callable[..., Any] | None:
    """Return the function of stacks of matrices of that name; None if the name is unknown or SciPy is not installed."""
    try:
        linalg = importlib.import_module("scipy.linalg")
    except ModuleNotFoundError:
        return None
    square = lambda a: a.shape[-2:]  # noqa: E731 (a shape)
    found: dict[str, Callable[..., Any]] = {
        "solve_triangular": functools.partial(_solve_triangular, linalg),
        "sqrtm": functools.partial(_map_matrices, functools.partial(_sqrtm, linalg), 2, square),
        "logm": functools.partial(_map_matrices, functools.partial(_logm, linalg), 2, square),
        "solve_sylvester": functools.partial(_map_matrices, functools.partial(_solve_sylvester, linalg), 2, lambda a, b, q: q.shape[-2:]),
        **{
            f"solve_{time}_are": functools.partial(_map_matrices, getattr(linalg, f"solve_{time}_are"), 2, lambda a, b, q, r: a.shape[-2:])
            for time in ("continuous", "discrete")
        },
        "solve_banded": functools.partial(_solve_banded_stack, linalg),
    }
    return found.get(name)
