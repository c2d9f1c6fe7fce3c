"""Functions of matrices, computed by SciPy: triangular systems, Sylvester's equation and the square root."""

from __future__ import annotations

import importlib
from typing import Any

from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.extend import defjvp_argnum, defvjp, defvjp_argnum, primitive

__all__ = ["solve_sylvester", "solve_triangular", "sqrtm"]

_linalg: Any = importlib.import_module("scipy.linalg")


def _column(x: Any) -> Any:
    return np.reshape(x, (-1, 1)) if np.ndim(x) == 1 else x


# -- triangular systems ----------------------------------------------------------------------------------------------------


@primitive
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """The solution of ``a @ x == b``, or with ``trans=1`` of ``a.T @ x == b``, where only one triangle of `a` is read.

    Raises
    ------
    NotImplementedError
        By derivatives: for the conjugate transpose of complex matrices.
    """
    return _linalg.solve_triangular(a, b, trans=trans, lower=lower, unit_diagonal=unit_diagonal)


def _turned(a: Any, trans: Any) -> bool:
    """Return whether the equation is that of the transpose."""
    if trans in (2, "C") and np.iscomplexobj(a):
        msg = "solve_triangular: the derivative for trans='C' and complex matrices is not there; conjugate the matrix, with trans='T'"
        raise NotImplementedError(msg)
    return trans not in (0, "N")


def _triangle(x: Any, lower: bool, unit_diagonal: bool) -> Any:
    """The elements that are read."""
    return np.tril(x, -int(unit_diagonal)) if lower else np.triu(x, int(unit_diagonal))


def _triangular_vjp(argnum: int, ans: Any, args: Any, options: Any) -> Any:
    a, _, trans, lower, unit = _arguments(*args, **options)
    turned = _turned(a, trans)

    def vjp(g: Any) -> Any:
        back = solve_triangular(a, g, 0 if turned else 1, lower, unit)
        if argnum == 1:
            return back
        left, right = (ans, back) if turned else (back, ans)
        return -_triangle(np.dot(_column(left), np.transpose(_column(right))), lower, unit)

    return vjp


def _triangular_jvp(argnum: int, g: Any, ans: Any, args: Any, options: Any) -> Any:
    a, _, trans, lower, unit = _arguments(*args, **options)
    if argnum == 0:
        moved = _triangle(g, lower, unit)
        g = -np.dot(np.transpose(moved) if _turned(a, trans) else moved, ans)
    return solve_triangular(a, g, trans, lower, unit)


def _arguments(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> tuple[Any, ...]:
    return a, b, trans, lower, unit_diagonal


defvjp_argnum(solve_triangular, _triangular_vjp)
defjvp_argnum(solve_triangular, _triangular_jvp)


# -- Sylvester's equation and the square root --------------------------------------------------------------------------------


@primitive
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The solution of ``a @ x + x @ b == q``."""
    return _linalg.solve_sylvester(a, b, q)


def _sylvester_vjp(argnum: int, ans: Any, args: Any, options: Any) -> Any:
    a, b, _ = args

    def vjp(g: Any) -> Any:
        back = solve_sylvester(np.transpose(a), np.transpose(b), g)
        if argnum == 2:
            return back
        return -np.dot(back, np.transpose(ans)) if argnum == 0 else -np.dot(np.transpose(ans), back)

    return vjp


def _sylvester_jvp(argnum: int, g: Any, ans: Any, args: Any, options: Any) -> Any:
    a, b, _ = args
    return solve_sylvester(a, b, g if argnum == 2 else -np.dot(g, ans) if argnum == 0 else -np.dot(ans, g))


defvjp_argnum(solve_sylvester, _sylvester_vjp)
defjvp_argnum(solve_sylvester, _sylvester_jvp)


@primitive
def sqrtm(a: Any) -> Any:
    """The principal square root of a matrix."""
    return _linalg.sqrtm(a)


defvjp(sqrtm, lambda ans, a: lambda g: solve_sylvester(np.transpose(ans), np.transpose(ans), g))
defjvp_argnum(sqrtm, lambda argnum, g, ans, args, options: solve_sylvester(ans, ans, g))
