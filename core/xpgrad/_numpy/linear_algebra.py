"""Products of arrays, and the functions of `numpy.linalg`."""

from __future__ import annotations

import functools
import math
import sys
from typing import Any

import xpgrad as xp
from xpgrad import linalg
from xpgrad._modes import state
from xpgrad._numpy.adapters import adapt
from xpgrad._numpy.manipulation import diagonal, trace
from xpgrad._numpy.operands import as_floating, can_read_values, lift, refuse, write_out
from xpgrad._numpy.reductions import resolve_no_value
from xpgrad._numpy.table import implements
from xpgrad.rules.creation import clone_contiguous
from xpgrad.rules.factorisations import eigen_pairs_by_upper
from xpgrad.rules.matrices import tolerance_of_lapack
from xpgrad.rules.utility import parse_equation

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


# -- products ----------------------------------------------------------------------------------------------------------


@adapt("dot", arrays=2)
def _dot(x: Any, y: Any) -> Any:
    if not x.ndim or not y.ndim:
        return x * y
    if y.ndim == 1 or (x.ndim <= 2 and y.ndim == 2):
        return xp.matmul(x, y)
    return xp.tensordot(x, y, axes=([x.ndim - 1], [y.ndim - 2]))


@adapt("inner", arrays=2)
def _inner(x: Any, y: Any) -> Any:
    return x * y if not x.ndim or not y.ndim else xp.tensordot(x, y, axes=([x.ndim - 1], [y.ndim - 1]))


@adapt("kron", arrays=2)
def _kron(x: Any, y: Any) -> Any:
    rank = max(x.ndim, y.ndim)
    first, second = ((1,) * (rank - t.ndim) + t.shape for t in (x, y))
    x = xp.reshape(x, tuple(n for m in first for n in (m, 1)))
    y = xp.reshape(y, tuple(n for m in second for n in (1, m)))
    return xp.reshape(x * y, tuple(m * n for m, n in zip(first, second)))


@adapt("cross", arrays=2, note="vectors of length 3 only")
def _cross(x: Any, y: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    return xp.moveaxis(linalg.cross(xp.moveaxis(x, axisa, -1), xp.moveaxis(y, axisb, -1)), -1, axisc)


adapt("vdot", lambda a, b: xp.vecdot(xp.reshape(a, (-1,)), xp.reshape(b, (-1,))), arrays=2)
adapt("outer", lambda a, b: xp.reshape(a, (-1, 1)) * xp.reshape(b, (1, -1)), arrays=2)
adapt("tensordot", xp.tensordot, arrays=2, ints=("axes",))
adapt("linalg.tensordot", xp.tensordot, arrays=2, ints=("axes",))
adapt("linalg.matmul", xp.matmul, arrays=2)
adapt("linalg.vecdot", lambda x1, x2, axis=-1: xp.vecdot(xp.moveaxis(x1, axis, -1), xp.moveaxis(x2, axis, -1)), arrays=2)
adapt("linalg.outer", linalg.outer, arrays=2)
adapt("linalg.cross", linalg.cross, arrays=2)
adapt("linalg.multi_dot", lambda arrays: functools.reduce(xp.matmul, arrays), arrays=0)


@implements("einsum")
def _einsum(*operands: Any, out: Any = None, optimize: Any = False, **kwargs: Any) -> Any:
    dtype = kwargs.pop("dtype", None)
    refuse("einsum", **kwargs)
    if isinstance(operands[0], str):
        equation, *arrays = operands
    else:
        equation, arrays = _build_equation(operands)
    tensors = lift("einsum", *arrays)
    if dtype is not None:
        tensors = tuple(xp.astype(t, dtype) for t in tensors)
    view = _rearrange(equation, *tensors) if len(tensors) == 1 else None
    if view is None:
        view = xp.einsum(equation, *tensors)
        mode = state.current()
        if (
            mode is not None and mode.numpy is not None
        ):  # elements lie in the order of rows, as NumPy's do, so that `reshape` returns a view
            view = clone_contiguous(view) if view._is_view() else view.contiguous()
    return write_out("einsum", out, view)


def _rearrange(equation: str, x: Any) -> Any:
    """Return the Einstein sum of one operand as a view, as NumPy does; None if it sums."""
    (labels,), output = parse_equation(equation, (x,))
    if set(labels) != set(output):
        return None
    while len(labels) > len(output):
        first = next(i for i, label in enumerate(labels) if label in labels[i + 1 :])
        second = labels.index(labels[first], first + 1)
        if x.shape[first] != x.shape[second]:
            return None  # `xpgrad.einsum` raises
        x = diagonal(x, 0, first, second)
        labels = [*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], labels[first]]
    return xp.permute_dims(x, tuple(labels.index(label) for label in output))


def _build_equation(operands: Any) -> tuple[str, list[Any]]:
    """Return the equation and the arrays of an `einsum` call whose operands alternate with lists of axis numbers."""
    arrays, lists = list(operands[0 : len(operands) - 1 : 2]), list(operands[1::2])
    texts = ["".join("..." if i is Ellipsis else _LETTERS[i] for i in labels) for labels in lists[: len(arrays)]]
    result = operands[-1] if len(operands) % 2 else None
    equation = ",".join(texts)
    return (equation if result is None else f"{equation}->{''.join('...' if i is Ellipsis else _LETTERS[i] for i in result)}"), arrays


# -- inverses and determinants -----------------------------------------------------------------------------------------


for _name in ("inv", "det", "slogdet", "matrix_power", "svdvals", "vector_norm", "matrix_norm"):
    adapt(f"linalg.{_name}", getattr(linalg, _name), floating=True)
adapt("linalg.solve", linalg.solve, arrays=2, floating=True)


@implements("linalg.pinv", note="`rcond` and `rtol` are constants")
def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    rtol = resolve_no_value(rtol)
    limit = rcond if rcond is not None else rtol
    (x,) = lift("linalg.pinv", a)
    if hermitian:
        _check_square("pinv", x)
    return linalg.pinv(as_floating(x), rtol=limit if limit is not None else 1e-15 if rtol is None else rtol)


@adapt("linalg.tensorinv", floating=True)
def _tensorinv(x: Any, ind: int = 2) -> Any:
    if ind < 1:
        msg = f"np.linalg.tensorinv: `ind` must be positive, but got {ind}"
        raise ValueError(msg)
    rows = math.prod(x.shape[ind:])
    return xp.reshape(linalg.inv(xp.reshape(x, (rows, -1))), x.shape[ind:] + x.shape[:ind])


@adapt("linalg.tensorsolve", arrays=2, floating=True)
def _tensorsolve(x: Any, y: Any, axes: Any = None) -> Any:
    if axes is not None:
        last = [i % x.ndim for i in axes]
        x = xp.permute_dims(x, tuple(i for i in range(x.ndim) if i not in last) + tuple(last))
    shape = x.shape[y.ndim :]
    return xp.reshape(linalg.solve(xp.reshape(x, (y.size, -1)), xp.reshape(y, (-1,))), shape)


@adapt("linalg.matrix_rank", floating=True, differentiable=False)
def _matrix_rank(x: Any, tol: Any = None, hermitian: bool = False, rtol: Any = None) -> Any:
    if x.ndim < 2:
        return xp.astype(xp.any(xp.not_equal(x, 0)), x.default_dtype("integral"))
    if tol is None:
        return linalg.matrix_rank(x, rtol=rtol)
    return xp.count_nonzero(linalg.svdvals(x.detach()) > tol, axis=-1)


def least_squares(a: Any, b: Any, rcond: float) -> Any:
    """Return the least-squares solution of the smallest norm."""
    return xp.matmul(linalg.pinv(a, rtol=tolerance_of_lapack(rcond, a)), b)


@adapt(
    "linalg.lstsq", arrays=2, floating=True,
    note="differentiable while the rank stays the same; `rcond` is a constant; in `vmap` and compiled functions the residuals are those of "
    "a matrix of full rank",
)  # fmt: skip
def solve_least_squares(x: Any, y: Any, rcond: Any = None) -> Any:
    """Return the solution, the sums of squared residuals, the rank and the singular values (`numpy.linalg.lstsq`)."""
    rows, columns = x.shape
    limit = tolerance_of_lapack(xp.finfo(x.dtype).eps * max(rows, columns) if rcond is None else rcond, x)
    solution = least_squares(x, y, limit)
    rank: Any = linalg.matrix_rank(x.detach(), rtol=limit)
    readable = can_read_values(rank)
    rank = int(rank) if readable else rank
    residual = y - xp.matmul(x, solution)
    squares = xp.sum(xp.real(residual * xp.conj(residual)) if residual.dtype.is_complex else residual * residual, axis=0)
    unique = rows > columns and (not readable or rank == columns)
    squares = xp.reshape(squares, (-1,)) if unique else xp.zeros((0,), dtype=squares.dtype, device=x.device)
    return solution, squares, rank, linalg.svdvals(x)


# -- factorisations ----------------------------------------------------------------------------------------------------


def _hermitian_from_triangle(x: Any, upper: bool) -> Any:
    """Return the Hermitian matrix with one triangle of `x`. NumPy does not read the other triangle, so its gradient is zero."""
    if upper:
        return xp.triu(x) + _adjoint(xp.triu(x, k=1))
    return xp.tril(x) + _adjoint(xp.tril(x, k=-1))


def _adjoint(x: Any) -> Any:
    x = xp.matrix_transpose(x)
    return xp.conj(x) if x.dtype.is_complex else x


def _check_square(name: str, x: Any) -> Any:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        msg = f"np.linalg.{name} needs square matrices, but got shape {x.shape}"
        raise ValueError(msg)
    return x


def _is_upper(name: str, triangle: Any) -> bool:
    if triangle not in ("L", "U", "l", "u"):
        msg = f"np.linalg.{name}: `UPLO` must be 'L' or 'U', but got {triangle!r}"
        raise ValueError(msg)
    return triangle in ("U", "u")


_ONE_TRIANGLE = "only the triangle that NumPy reads has a gradient"


@adapt("linalg.cholesky", floating=True, note=_ONE_TRIANGLE)
def _cholesky(x: Any, upper: bool = False) -> Any:
    return linalg.cholesky(_hermitian_from_triangle(_check_square("cholesky", x), upper), upper=upper)


for _name in ("eigh", "eigvalsh"):

    @adapt(f"linalg.{_name}", floating=True, note=_ONE_TRIANGLE)
    def _eigh(x: Any, UPLO: str = "L", name: str = _name, function: Any = getattr(linalg, _name)) -> Any:  # noqa: B008 (by name)
        is_upper = _is_upper(name, UPLO)
        matrix = _hermitian_from_triangle(_check_square(name, x), is_upper)
        if is_upper and name == "eigh":  # LAPACK gives the vectors other signs then
            return linalg.EighResult(*eigen_pairs_by_upper(matrix))
        return function(matrix)


_REAL = (
    "complex; with NumPy before 2.5 real if the matrix and all eigenvalues are real and can be read: not in `vmap` and compiled functions"
)


@functools.cache
def _numpy_chooses() -> bool:
    """Return whether NumPy is older than 2.5, whose eigenvalues have the dtype that their values need."""
    return tuple(map(int, sys.modules["numpy"].__version__.split(".")[:2])) < (2, 5)


def drop_zero_imaginary_parts(values: Any, x: Any) -> Any:
    """Return the eigenvalues of `x` as real numbers if both are real and the values can be read."""
    return xp.real(values) if _are_real(values, x) else values


def _are_real(values: Any, x: Any) -> bool:
    return not x.dtype.is_complex and can_read_values(values) and not bool(xp.any(xp.not_equal(xp.imag(values.detach()), 0)))


@adapt("linalg.eig", floating=True, note=_REAL)
def _eig(x: Any) -> Any:
    out = linalg.eig(_check_square("eig", x))
    return linalg.EigResult(*map(xp.real, out)) if _numpy_chooses() and _are_real(out.eigenvalues, x) else out


@adapt("linalg.eigvals", floating=True, note=_REAL)
def _eigvals(x: Any) -> Any:
    values = linalg.eigvals(_check_square("eigvals", x))
    return drop_zero_imaginary_parts(values, x) if _numpy_chooses() else values


@adapt("linalg.qr", floating=True, note="modes `reduced`, `complete` and `r`")
def _qr(x: Any, mode: Any = "reduced") -> Any:
    if mode not in ("reduced", "complete", "r"):
        refuse("linalg.qr", mode=mode)
    out = linalg.qr(x, mode="reduced" if mode == "r" else mode)
    return out.R if mode == "r" else out


@adapt("linalg.svd", floating=True, note="`hermitian` is accepted and ignored")
def _svd(x: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    return linalg.svd(x, full_matrices=full_matrices) if compute_uv else linalg.svdvals(x)


# -- norms and diagonals -----------------------------------------------------------------------------------------------


@adapt("linalg.norm", floating=True)
def _norm(t: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:  # noqa: A002 (NumPy's name)
    if ord is None:
        return linalg.vector_norm(t, axis=axis, keepdims=keepdims)
    axes = tuple(range(t.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) == 1:
        if isinstance(ord, str):
            msg = f"np.linalg.norm: a vector has no norm of order {ord!r}"
            raise ValueError(msg)
        return linalg.vector_norm(t, axis=axes[0], keepdims=keepdims, ord=ord)
    if len(axes) != 2:
        msg = f"np.linalg.norm: order {ord!r} needs one or two axes, but got axis={axis!r} for shape {t.shape}"
        raise ValueError(msg)
    first, second = (i % t.ndim for i in axes)
    out = linalg.matrix_norm(xp.moveaxis(t, (first, second), (-2, -1)), keepdims=keepdims, ord=ord)
    return xp.moveaxis(out, (-2, -1), (first, second)) if keepdims else out


@adapt("linalg.cond", floating=True)
def _cond(t: Any, p: Any = None) -> Any:
    if p in (None, 2, -2):
        values = linalg.svdvals(t)
        top, bottom = values[..., 0], values[..., -1]
        found = bottom / top if p == -2 else top / bottom
    else:
        singular = linalg.slogdet(t.detach()).sign == 0  # `inv` would raise; the number is infinite, and its gradient infinite or nan
        inverse = linalg.inv(xp.where(singular[..., None, None], xp.eye(t.shape[-1], dtype=t.dtype, device=t.device), t))
        found = linalg.matrix_norm(t, ord=p) * linalg.matrix_norm(inverse, ord=p)
        one = xp.ones_like(found)
        found = xp.where(singular, one * math.inf, one) * xp.where(singular, found + one, found)
    # That of the zero matrix is infinite as well, where ``0 / 0`` is nan.
    return xp.where(xp.isnan(found) & ~xp.any(xp.isnan(t), axis=(-2, -1)), math.inf, found)


adapt("linalg.diagonal", linalg.diagonal)
adapt("linalg.trace", lambda x, offset=0, dtype=None: trace(x, offset, -2, -1, dtype))
