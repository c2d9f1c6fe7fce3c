"""SciPy's functions of matrices as kernels: stacks, the dtype of the operands, and nan for what is not finite or not real."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["function"]

#: Triangular matrices up to this length, in stacks, are solved by `numpy.linalg.solve` at once, and larger ones one by one.
_SMALL = 32


def _wide(x: Any) -> Any:
    """LAPACK has no halves."""
    return x.astype(np.float32) if x.dtype == np.float16 else x


def _each(one: Callable[..., Any], ranks: int, shape: Any, *arrays: Any) -> Any:
    """Return a function of matrices for each element of a stack, whose axes broadcast; nan where a matrix is not finite.

    Parameters
    ----------
    one : callable
    ranks : int
        Of the elements: 2.
    shape : callable
        Of the elements: the shape of the result.
    *arrays
    """
    dtype = np.result_type(*arrays)
    batch = np.broadcast_shapes(*(x.shape[:-ranks] for x in arrays))
    arrays = tuple(np.broadcast_to(_wide(x), batch + x.shape[-ranks:]) for x in arrays)
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
        return np.asarray(one(_wide(a), _wide(b)), dtype)
    a, b = _wide(a), _wide(b)
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


# -- the logarithm and the square root: of real matrices they are real, or nan ------------------------------------------------


def _negative(t: Any, rounding: float = 0.0) -> bool:
    """Return whether a real Schur form has an eigenvalue that is negative, by more than that part of the largest element."""
    diagonal, below = np.diagonal(t), np.diagonal(t, -1) != 0
    alone = ~(np.append(below, False) | np.append(False, below))
    return bool((diagonal[alone] < -rounding * np.abs(t).max()).any())


def _sqrtm(linalg: Any, a: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of singular matrices, whose root may be infinite: that shows
        out = linalg.sqrtm(a)
    if a.dtype.kind == "c" or out.dtype.kind != "c":
        return out
    # What is 0 may be found to be less, but not on the diagonal of a triangle.
    exact = not np.tril(a, -1).any() or not np.triu(a, 1).any()
    return np.nan if _negative(linalg.schur(a)[0], 0.0 if exact else len(a) * np.finfo(a.dtype).eps) else out.real


def _logm(linalg: Any, a: Any) -> Any:
    real = a.dtype.kind != "c"
    t, z = linalg.schur(a)
    if real:
        if _negative(t):
            return np.nan
        t, z = linalg.rsf2csf(t, z)
    if (np.diagonal(t) == 0).any():
        return np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a matrix is nearly singular
        out = z @ linalg.logm(t) @ z.conj().T
    return out.real if real else out


# -- equations ---------------------------------------------------------------------------------------------------------------------


def _solve_sylvester(linalg: Any, a: Any, b: Any, q: Any) -> Any:
    # Bartels and Stewart, "Solution of the matrix equation AX + XB = C" (1972).
    a, b, q = (x.astype(np.result_type(a, b, q), copy=False) for x in (a, b, q))
    r, u = linalg.schur(a)
    s, v = (r, u) if np.array_equal(a, b) else linalg.schur(b)  # the same for the derivative of a root
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


def _banded(linalg: Any, ab: Any, b: Any, lower: int, upper: int) -> Any:
    # Beyond the corners of the matrix `ab` may hold anything, which is not read.
    n = ab.shape[-1]
    column, row = np.arange(n), np.arange(lower + upper + 1)[:, None] - upper
    ab = np.where((column + row >= 0) & (column + row < n), ab, ab.dtype.type(0))
    # A diagonal that lies beyond the corners as a whole is none to LAPACK.
    low, up = min(lower, max(n - 1, 0)), min(upper, max(n - 1, 0))
    ab = ab[..., upper - up : upper + low + 1, :]
    return _each(functools.partial(_solve_banded, linalg, low, up), 2, lambda ab, b: b.shape[-2:], ab, b)


@functools.cache
def function(name: str) -> Callable[..., Any] | None:
    """SciPy's function of that name, of stacks of matrices; None without SciPy, or for another name."""
    try:
        linalg = importlib.import_module("scipy.linalg")
    except ModuleNotFoundError:
        return None
    square = lambda a: a.shape[-2:]  # noqa: E731 (a shape)
    found: dict[str, Callable[..., Any]] = {
        "solve_triangular": functools.partial(_solve_triangular, linalg),
        "sqrtm": functools.partial(_each, functools.partial(_sqrtm, linalg), 2, square),
        "logm": functools.partial(_each, functools.partial(_logm, linalg), 2, square),
        "solve_sylvester": functools.partial(_each, functools.partial(_solve_sylvester, linalg), 2, lambda a, b, q: q.shape[-2:]),
        "solve_banded": functools.partial(_banded, linalg),
    }
    return found.get(name)
