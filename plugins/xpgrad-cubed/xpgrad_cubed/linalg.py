"""The extension `linalg`. A matrix is in one chunk, as NumPy needs it; a stack of matrices may be in several."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import cubed
import numpy as np

from xpgrad.errors import CapabilityError
from xpgrad.registry import backend_for
from xpgrad_cubed.blocks import apply_blocks
from xpgrad_cubed.kernels import without_elements
from xpgrad_cubed.namespace import NAMESPACE, reshape

__all__ = ["LINALG"]

_LINALG: dict[str, Callable[..., Any]] = {}


class MissingFunctionError(CapabilityError, AttributeError):
    """The extension lacks a function. It is also an AttributeError, so that `getattr` with a default works."""


class _Linalg:
    """The functions of this module, and cubed's products."""

    def __getattr__(self, name: str) -> Any:
        if name not in _LINALG and name not in ("matmul", "matrix_transpose", "outer", "tensordot", "vecdot"):
            raise MissingFunctionError(f"backend 'cubed' has no function `linalg.{name}`")
        found = _LINALG.get(name) or (cubed.linalg.outer if name == "outer" else getattr(NAMESPACE, name))
        found = without_elements(name, found, _numpy_linalg)
        setattr(self, name, found)
        return found


def _numpy_linalg() -> Any:
    return backend_for("numpy").kernels.linalg


LINALG: Any = _Linalg()


def function(f: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function of the extension under its name."""
    _LINALG[f.__name__] = f
    return f


def _make(name: str, before: str, *after: str) -> Callable[..., Any]:
    """Return a function of NumPy as one of stacks of matrices. If it has several results, each is computed from the matrix again."""

    def call(x: Any, **options: Any) -> Any:
        # With `full_matrices` or the mode "complete", the factors are square.
        square = options.get("full_matrices", name == "svd") or options.get("mode") == "complete"
        rows, columns = x.shape[-2:]
        rank = min(rows, columns)
        sizes = {"k": rank, "p": rows if square else rank, "q": columns if square else rank}
        found = []
        for i, core in enumerate(after):
            used = {axis: n for axis, n in sizes.items() if axis in core}
            found.append(apply_blocks(functools.partial(_part, name, i, options), f"{before}->{core}", x, sizes=used))
        return found[0] if len(found) == 1 else tuple(found)

    return call


def _part(name: str, i: int, options: Any, x: Any) -> Any:
    """Return one result of a function of `numpy.linalg`. Eigenvalues are complex, since a lazy dtype cannot depend on them."""
    found = getattr(np.linalg, name)(x, **options)
    out = found[i] if isinstance(found, tuple) else found
    return out.astype(np.result_type(out.dtype, np.complex64)) if name in ("eig", "eigvals") else out


_LINALG |= {
    "cholesky": _make("cholesky", "(m,n)", "(m,n)"),
    "det": _make("det", "(m,n)", "()"),
    "eig": _make("eig", "(m,n)", "(m)", "(m,n)"),
    "eigh": _make("eigh", "(m,n)", "(m)", "(m,n)"),
    "eigvals": _make("eigvals", "(m,n)", "(m)"),
    "eigvalsh": _make("eigvalsh", "(m,n)", "(m)"),
    "inv": _make("inv", "(m,n)", "(m,n)"),
    "qr": _make("qr", "(m,n)", "(m,p)", "(p,n)"),
    "slogdet": _make("slogdet", "(m,n)", "()", "()"),
    "svd": _make("svd", "(m,n)", "(m,p)", "(k)", "(q,n)"),
    "svdvals": _make("svdvals", "(m,n)", "(k)"),
}


@function
def solve(x1: Any, x2: Any, /) -> Any:
    """Solve linear systems; a 1-d `x2` is one vector."""
    if x2.ndim == 1:
        return reshape(solve(x1, reshape(x2, (*x2.shape, 1))), (*x1.shape[:-2], *x2.shape))
    return apply_blocks(np.linalg.solve, "(m,n),(n,k)->(m,k)", x1, x2, dtype=np.result_type(x1.dtype, x2.dtype))


@function
def pinv(x: Any, /, *, rtol: Any = None) -> Any:
    """Return pseudoinverses; `rtol` is a number, or an array of one per matrix."""
    return _with_tolerance(np.linalg.pinv, "(n,m)", x, rtol, None)


@function
def matrix_rank(x: Any, /, *, rtol: Any = None) -> Any:
    """Return the number of singular values above `rtol` (a number, or one per matrix) times the largest."""
    return _with_tolerance(np.linalg.matrix_rank, "()", x, rtol, np.int64)


def _with_tolerance(f: Any, after: str, x: Any, rtol: Any, dtype: Any) -> Any:
    call = functools.partial(_call_with_tolerance, f)
    core = "(m,n),()" if isinstance(rtol, cubed.Array) else "(m,n)"
    return apply_blocks(call, f"{core}->{after}", x, rtol, dtype=dtype or x.dtype)


def _call_with_tolerance(f: Any, x: Any, rtol: Any) -> Any:
    return f(x, rtol=rtol)


@function
def matrix_power(x: Any, n: int, /) -> Any:
    """Return powers of matrices."""
    return apply_blocks(functools.partial(np.linalg.matrix_power, n=n), "(m,n)->(m,n)", x)


@function
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return diagonals of matrices."""
    length = len(np.diagonal(np.broadcast_to(False, x.shape[-2:]), offset))
    if not length:
        return NAMESPACE.zeros((*x.shape[:-2], 0), dtype=x.dtype)
    of_chunk = functools.partial(np.diagonal, offset=offset, axis1=-2, axis2=-1)
    return apply_blocks(of_chunk, "(m,n)->(k)", x, sizes={"k": length}, dtype=x.dtype)


@function
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sums of the diagonals of matrices."""
    return NAMESPACE.sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


@function
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return cross products of vectors along an axis."""
    moved = (NAMESPACE.moveaxis(x, axis, -1) for x in NAMESPACE.broadcast_arrays(x1, x2))
    out = apply_blocks(np.linalg.cross, "(n),(n)->(n)", *moved, dtype=np.result_type(x1.dtype, x2.dtype))
    return NAMESPACE.moveaxis(out, -1, axis)


@function
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:  # noqa: A002 (the standard's name)
    """Return norms of vectors, by sums over chunks."""
    x, options = NAMESPACE.abs(x), {"axis": axis, "keepdims": keepdims}
    if ord in (np.inf, -np.inf):
        return (NAMESPACE.max if ord > 0 else NAMESPACE.min)(x, **options)
    if ord == 0:
        return NAMESPACE.sum(NAMESPACE.astype(NAMESPACE.not_equal(x, 0.0), x.dtype), **options)
    if ord == 2:
        return NAMESPACE.sqrt(NAMESPACE.sum(NAMESPACE.square(x), **options))
    return NAMESPACE.pow(NAMESPACE.sum(NAMESPACE.pow(x, float(ord)), **options), 1.0 / ord)


@function
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:  # noqa: A002 (the standard's name)
    """Return norms of matrices."""
    out = apply_blocks(functools.partial(np.linalg.matrix_norm, ord=ord), "(m,n)->()", x)
    return reshape(out, (*out.shape, 1, 1)) if keepdims else out
