"""Products of arrays, and `numpy.linalg`."""

from __future__ import annotations

import functools
import math
from typing import Any

import xpgrad as xp
from xpgrad import linalg
from xpgrad._numpy.manipulation import trace as trace_of
from xpgrad._numpy.operands import as_ints, floating, into, lift, lift_all, refuse
from xpgrad._numpy.reductions import no_value
from xpgrad._numpy.table import covers

__all__ = ["eigvals", "least_squares", "visible"]

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


# -- products ----------------------------------------------------------------------------------------------------------


@covers("dot")
def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Stand for `numpy.dot`."""
    x, y = lift("dot", a, b)
    if not x.ndim or not y.ndim:
        result = x * y
    elif y.ndim == 1 or (x.ndim <= 2 and y.ndim == 2):
        result = xp.matmul(x, y)
    else:
        result = xp.tensordot(x, y, axes=([x.ndim - 1], [y.ndim - 2]))
    return into("dot", out, result)


@covers("inner")
def inner(a: Any, b: Any, /) -> Any:
    """Stand for `numpy.inner`."""
    x, y = lift("inner", a, b)
    return x * y if not x.ndim or not y.ndim else xp.tensordot(x, y, axes=([x.ndim - 1], [y.ndim - 1]))


@covers("vdot")
def vdot(a: Any, b: Any, /) -> Any:
    """Stand for `numpy.vdot`."""
    x, y = (xp.reshape(t, (-1,)) for t in lift("vdot", a, b))
    return xp.vecdot(x, y)


@covers("outer")
def outer(a: Any, b: Any, out: Any = None) -> Any:
    """Stand for `numpy.outer`."""
    x, y = lift("outer", a, b)
    return into("outer", out, xp.reshape(x, (-1, 1)) * xp.reshape(y, (1, -1)))


@covers("kron")
def kron(a: Any, b: Any) -> Any:
    """Stand for `numpy.kron`."""
    x, y = lift("kron", a, b)
    rank = max(x.ndim, y.ndim)
    first, second = ((1,) * (rank - t.ndim) + t.shape for t in (x, y))
    x = xp.reshape(x, tuple(n for m in first for n in (m, 1)))
    y = xp.reshape(y, tuple(n for m in second for n in (1, m)))
    return xp.reshape(x * y, tuple(m * n for m, n in zip(first, second)))


@covers("tensordot", "linalg.tensordot")
def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """Stand for `numpy.tensordot`."""
    x, y = lift("tensordot", a, b)
    return xp.tensordot(x, y, axes=as_ints("tensordot", "axes", axes))


@covers("linalg.matmul")
def matmul(x1: Any, x2: Any, /) -> Any:
    """Stand for `numpy.linalg.matmul`."""
    return xp.matmul(*lift("linalg.matmul", x1, x2))


@covers("linalg.vecdot")
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Stand for `numpy.linalg.vecdot`."""
    return xp.vecdot(*(xp.moveaxis(t, axis, -1) for t in lift("linalg.vecdot", x1, x2)))


@covers("linalg.outer")
def linalg_outer(x1: Any, x2: Any, /) -> Any:
    """Stand for `numpy.linalg.outer`."""
    return linalg.outer(*lift("linalg.outer", x1, x2))


@covers("cross", note="of vectors of length 3")
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    """Stand for `numpy.cross`."""
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = lift("cross", a, b)
    out = linalg.cross(xp.moveaxis(x, axisa, -1), xp.moveaxis(y, axisb, -1))
    return xp.moveaxis(out, -1, axisc)


@covers("linalg.cross")
def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Stand for `numpy.linalg.cross`."""
    return linalg.cross(*lift("linalg.cross", x1, x2), axis=axis)


@covers("einsum")
def einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    """Stand for `numpy.einsum`."""
    dtype = kwargs.pop("dtype", None)
    refuse("einsum", **kwargs)
    if isinstance(operands[0], str):
        equation, *arrays = operands
    else:
        equation, arrays = _equation(operands)
    tensors = lift("einsum", *arrays)
    if dtype is not None:
        tensors = tuple(xp.astype(t, dtype) for t in tensors)
    return into("einsum", out, xp.einsum(equation, *tensors))


def _equation(operands: Any) -> tuple[str, list[Any]]:
    """The equation for operands that alternate with lists of numbers, which name their axes."""
    arrays, lists = list(operands[0 : len(operands) - 1 : 2]), list(operands[1::2])
    texts = ["".join("..." if i is Ellipsis else _LETTERS[i] for i in labels) for labels in lists[: len(arrays)]]
    result = operands[-1] if len(operands) % 2 else None
    equation = ",".join(texts)
    return (equation if result is None else f"{equation}->{''.join('...' if i is Ellipsis else _LETTERS[i] for i in result)}"), arrays


@covers("linalg.multi_dot")
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Stand for `numpy.linalg.multi_dot`."""
    return into("linalg.multi_dot", out, functools.reduce(xp.matmul, lift_all("linalg.multi_dot", arrays)))


# -- inverses and determinants -----------------------------------------------------------------------------------------


def _one(name: str, a: Any) -> Any:
    return floating(lift(f"linalg.{name}", a)[0])


@covers("linalg.inv")
def inv(a: Any) -> Any:
    """Stand for `numpy.linalg.inv`."""
    return linalg.inv(_one("inv", a))


@covers("linalg.pinv", note="`rcond` and `rtol` are constants")
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Stand for `numpy.linalg.pinv`."""
    rtol = no_value(rtol)
    limit = rcond if rcond is not None else rtol
    return linalg.pinv(_one("pinv", a), rtol=limit if limit is not None else 1e-15 if rtol is None else rtol)


@covers("linalg.det")
def det(a: Any) -> Any:
    """Stand for `numpy.linalg.det`."""
    return linalg.det(_one("det", a))


@covers("linalg.slogdet")
def slogdet(a: Any) -> Any:
    """Stand for `numpy.linalg.slogdet`."""
    return linalg.slogdet(_one("slogdet", a))


@covers("linalg.solve")
def solve(a: Any, b: Any) -> Any:
    """Stand for `numpy.linalg.solve`."""
    return linalg.solve(*map(floating, lift("linalg.solve", a, b)))


@covers("linalg.tensorinv")
def tensorinv(a: Any, ind: int = 2) -> Any:
    """Stand for `numpy.linalg.tensorinv`."""
    x = _one("tensorinv", a)
    if ind < 1:
        msg = f"np.linalg.tensorinv: `ind` must be positive, but got {ind}"
        raise ValueError(msg)
    rows = math.prod(x.shape[ind:])
    return xp.reshape(linalg.inv(xp.reshape(x, (rows, -1))), x.shape[ind:] + x.shape[:ind])


@covers("linalg.tensorsolve")
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Stand for `numpy.linalg.tensorsolve`."""
    x, y = map(floating, lift("linalg.tensorsolve", a, b))
    if axes is not None:
        moved = [i % x.ndim for i in axes]
        x = xp.permute_dims(x, tuple(i for i in range(x.ndim) if i not in moved) + tuple(moved))
    shape = x.shape[y.ndim :]
    return xp.reshape(linalg.solve(xp.reshape(x, (y.size, -1)), xp.reshape(y, (-1,))), shape)


@covers("linalg.matrix_power")
def matrix_power(a: Any, n: int) -> Any:
    """Stand for `numpy.linalg.matrix_power`."""
    return linalg.matrix_power(_one("matrix_power", a), n)


@covers("linalg.matrix_rank", differentiable=False)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """Stand for `numpy.linalg.matrix_rank`."""
    x = _one("matrix_rank", A)
    if x.ndim < 2:
        return xp.astype(xp.any(xp.not_equal(x, 0)), x.default_dtype("integral"))
    if tol is None:
        return linalg.matrix_rank(x, rtol=rtol)
    return xp.count_nonzero(linalg.svdvals(x.detach()) > tol, axis=-1)


def least_squares(a: Any, b: Any, rcond: Any) -> Any:
    """The solution of least squares of the smallest norm."""
    return xp.matmul(linalg.pinv(a, rtol=rcond), b)


@covers("linalg.lstsq", note="differentiable where the rank does not change; `rcond` is a constant")
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Stand for `numpy.linalg.lstsq`."""
    x, y = map(floating, lift("linalg.lstsq", a, b))
    rows, columns = x.shape
    limit = xp.finfo(x.dtype).eps * max(rows, columns) if rcond is None or rcond < 0 else rcond
    solution = least_squares(x, y, limit)
    rank = int(linalg.matrix_rank(x.detach(), rtol=limit))
    rest = y - xp.matmul(x, solution)
    squares = xp.sum(xp.real(rest * xp.conj(rest)) if rest.dtype.is_complex else rest * rest, axis=0)
    squares = xp.reshape(squares, (-1,)) if rank == columns and rows > columns else xp.zeros((0,), dtype=squares.dtype, device=x.device)
    return solution, squares, rank, linalg.svdvals(x)


# -- factorisations ----------------------------------------------------------------------------------------------------


def _from_triangle(x: Any, upper: bool) -> Any:
    """The Hermitian matrix whose one triangle is that of `x`: NumPy never reads the other, so it has no gradient."""
    if upper:
        return xp.triu(x) + _adjoint(xp.triu(x, k=1))
    return xp.tril(x) + _adjoint(xp.tril(x, k=-1))


def _adjoint(x: Any) -> Any:
    x = xp.matrix_transpose(x)
    return xp.conj(x) if x.dtype.is_complex else x


def _need_square(name: str, x: Any) -> Any:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        msg = f"np.linalg.{name} needs square matrices, but got shape {x.shape}"
        raise ValueError(msg)
    return x


def _upper(name: str, triangle: Any) -> bool:
    if triangle not in ("L", "U", "l", "u"):
        msg = f"np.linalg.{name}: `UPLO` must be 'L' or 'U', but got {triangle!r}"
        raise ValueError(msg)
    return triangle in ("U", "u")


@covers("linalg.cholesky", note="the gradient is that of the one triangle that NumPy reads")
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Stand for `numpy.linalg.cholesky`."""
    return linalg.cholesky(_from_triangle(_need_square("cholesky", _one("cholesky", a)), upper), upper=upper)


@covers("linalg.eigh", note="the gradient is that of the one triangle that NumPy reads")
def eigh(a: Any, UPLO: str = "L") -> Any:
    """Stand for `numpy.linalg.eigh`."""
    return linalg.eigh(_from_triangle(_need_square("eigh", _one("eigh", a)), _upper("eigh", UPLO)))


@covers("linalg.eigvalsh", note="the gradient is that of the one triangle that NumPy reads")
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Stand for `numpy.linalg.eigvalsh`."""
    return linalg.eigvalsh(_from_triangle(_need_square("eigvalsh", _one("eigvalsh", a)), _upper("eigvalsh", UPLO)))


_REAL = "real where the matrix is and all eigenvalues are, as in NumPy; complex in `vmap`, on lazy devices and where values are traced"


def visible(x: Any) -> bool:
    """Return whether values can be looked at, by which NumPy chooses some dtypes: not in `vmap`, nor lazy or traced ones."""
    return not (x.depth or x.backend.capabilities.lazy or x.backend.is_traced(x._array))


def _all_real(x: Any, values: Any) -> bool:
    """Return whether NumPy would return real eigenvalues: of a real matrix, all of them real."""
    return not x.dtype.is_complex and visible(values) and not bool(xp.any(xp.not_equal(xp.imag(values.detach()), 0)))


@covers("linalg.eig", note=_REAL)
def eig(a: Any) -> Any:
    """Stand for `numpy.linalg.eig`."""
    x = _need_square("eig", _one("eig", a))
    out = linalg.eig(x)
    return linalg.EigResult(*map(xp.real, out)) if _all_real(x, out.eigenvalues) else out


@covers("linalg.eigvals", note=_REAL)
def eigvals(a: Any) -> Any:
    """Stand for `numpy.linalg.eigvals`."""
    x = _need_square("eigvals", _one("eigvals", a))
    values = linalg.eigvals(x)
    return xp.real(values) if _all_real(x, values) else values


@covers("linalg.qr", note="modes `reduced`, `complete` and `r`")
def qr(a: Any, mode: str = "reduced") -> Any:
    """Stand for `numpy.linalg.qr`."""
    if mode not in ("reduced", "complete", "r"):
        refuse("linalg.qr", mode=mode)
    out = linalg.qr(_one("qr", a), mode="reduced" if mode == "r" else mode)  # type: ignore[arg-type]
    return out.R if mode == "r" else out


@covers("linalg.svd", note="`hermitian` makes no difference")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Stand for `numpy.linalg.svd`."""
    x = _one("svd", a)
    return linalg.svd(x, full_matrices=full_matrices) if compute_uv else linalg.svdvals(x)


@covers("linalg.svdvals")
def svdvals(x: Any, /) -> Any:
    """Stand for `numpy.linalg.svdvals`."""
    return linalg.svdvals(_one("svdvals", x))


# -- norms and diagonals -----------------------------------------------------------------------------------------------


@covers("linalg.norm")
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002 (NumPy's name)
    """Stand for `numpy.linalg.norm`."""
    t = _one("norm", x)
    if ord is None:
        return linalg.vector_norm(t, axis=axis, keepdims=keepdims)
    axes = tuple(range(t.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) == 1:
        if isinstance(ord, str):
            msg = f"np.linalg.norm: a vector has no norm of order {ord!r}"
            raise ValueError(msg)
        return linalg.vector_norm(t, axis=axes[0], keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        msg = f"np.linalg.norm: order {ord!r} is for one axis or two, but got axis={axis!r} for shape {t.shape}"
        raise ValueError(msg)
    first, second = (i % t.ndim for i in axes)
    out = linalg.matrix_norm(xp.moveaxis(t, (first, second), (-2, -1)), keepdims=keepdims, ord=ord)
    return xp.moveaxis(out, (-2, -1), (first, second)) if keepdims else out


@covers("linalg.vector_norm")
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:  # noqa: A002 (NumPy's name)
    """Stand for `numpy.linalg.vector_norm`."""
    return linalg.vector_norm(_one("vector_norm", x), axis=axis, keepdims=keepdims, ord=ord)


@covers("linalg.matrix_norm")
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:  # noqa: A002 (NumPy's name)
    """Stand for `numpy.linalg.matrix_norm`."""
    return linalg.matrix_norm(_one("matrix_norm", x), keepdims=keepdims, ord=ord)


@covers("linalg.cond")
def cond(x: Any, p: Any = None) -> Any:
    """Stand for `numpy.linalg.cond`."""
    t = _one("cond", x)
    if p in (None, 2, -2):
        values = linalg.svdvals(t)
        top, bottom = values[..., 0], values[..., -1]
        return bottom / top if p == -2 else top / bottom
    return linalg.matrix_norm(t, ord=p) * linalg.matrix_norm(linalg.inv(t), ord=p)


@covers("linalg.diagonal")
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Stand for `numpy.linalg.diagonal`."""
    return linalg.diagonal(lift("linalg.diagonal", x)[0], offset=offset)


@covers("linalg.trace")
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Stand for `numpy.linalg.trace`."""
    return trace_of(x, offset, -2, -1, dtype)
