"""The linear algebra of the standard. Factorisations use NumPy: MLX's also run on the CPU, and do not support complex numbers.

MLX's Cholesky factorisation also returns a result, without an error, for a matrix that is not positive definite, and the error for a
singular matrix appears only when the result is evaluated.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import mlx.core as mx
import numpy as np

from xpgrad_mlx import reductions
from xpgrad_mlx.host import hosted

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot",
    "vector_norm",
]  # fmt: skip


class EigResult(NamedTuple):
    """What `eig` returns."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """What `qr` returns."""

    Q: Any
    R: Any


class SlogdetResult(NamedTuple):
    """What `slogdet` returns."""

    sign: Any
    logabsdet: Any


class SVDResult(NamedTuple):
    """What `svd` returns."""

    U: Any
    S: Any
    Vh: Any


cholesky, inv, pinv, det = hosted(np.linalg.cholesky), hosted(np.linalg.inv), hosted(np.linalg.pinv), hosted(np.linalg.det)
eigvals, eigvalsh, svdvals = hosted(np.linalg.eigvals), hosted(np.linalg.eigvalsh), hosted(np.linalg.svdvals)
matrix_norm, matrix_power, matrix_rank = hosted(np.linalg.matrix_norm), hosted(np.linalg.matrix_power), hosted(np.linalg.matrix_rank)
matrix_transpose = mx.matrix_transpose
_eig, _eigh, _qr, _slogdet, _svd = (hosted(getattr(np.linalg, name)) for name in ("eig", "eigh", "qr", "slogdet", "svd"))
_solve, _matmul = hosted(np.linalg.solve), hosted(np.matmul)


def eig(x: Any, /) -> EigResult:
    return EigResult(*_eig(x))


def eigh(x: Any, /) -> EighResult:
    return EighResult(*_eigh(x))


def qr(x: Any, /, *, mode: str = "reduced") -> QRResult:
    return QRResult(*_qr(x, mode=mode))


def slogdet(x: Any, /) -> SlogdetResult:
    return SlogdetResult(*_slogdet(x))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVDResult:
    return SVDResult(*_svd(x, full_matrices=full_matrices))


def solve(x1: Any, x2: Any, /) -> Any:
    """Return the solution `x` of ``x1 @ x = x2``; `x2` is a vector only if it is 1-d, as in NumPy since 2.0."""
    return _solve(x1, x2)


def matmul(x1: Any, x2: Any, /) -> Any:
    if mx.issubdtype(x1.dtype, mx.inexact) and mx.issubdtype(x2.dtype, mx.inexact):
        return mx.matmul(x1, x2)
    return _matmul(x1, x2)  # MLX's `matmul` supports neither integers nor bools


def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    if mx.issubdtype(x1.dtype, mx.inexact) and mx.issubdtype(x2.dtype, mx.inexact):
        return mx.tensordot(x1, x2, axes=axes)
    return hosted(np.tensordot)(x1, x2, axes=axes)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    products = mx.conj(x1) * x2  # MLX's `vecdot` does not broadcast operands of different numbers of axes
    return reductions.sum(products, axis=axis, dtype=products.dtype)


def outer(x1: Any, x2: Any, /) -> Any:
    return x1[:, None] * x2[None, :]


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return mx.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    found = mx.diagonal(x, offset, -2, -1)
    return reductions.sum(found, axis=-1, dtype=dtype)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    a, b = (mx.moveaxis(x, axis, -1) for x in mx.broadcast_arrays(x1, x2))
    (a0, a1, a2), (b0, b1, b2) = ([x[..., k] for k in range(3)] for x in (a, b))
    return mx.moveaxis(mx.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1), -1, axis)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: Any = False, ord: float = 2) -> Any:  # noqa: A002 (the standard's name)
    size = mx.abs(x)
    if ord == math.inf:
        return reductions.max(size, axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return reductions.min(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return reductions.sum((size != 0).astype(size.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return reductions.sum(size, axis=axis, keepdims=keepdims)
    if ord == 2:
        return mx.sqrt(reductions.sum(size * size, axis=axis, keepdims=keepdims))
    return reductions.sum(size**ord, axis=axis, keepdims=keepdims) ** (1 / ord)
