"""`xpgrad.linalg`: the linear algebra extension of the Array API standard 2024.12, differentiable; with `eig`, `eigvals` of 2025.12.

Matrices are the last two axes of a Tensor, all axes before them are a batch, and the batches of two operands broadcast. A singular
matrix, or one that is not positive definite, raises what the backend's library raises (NumPy: `numpy.linalg.LinAlgError`).
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from xpgrad._basics.arguments import as_flag, as_int, check_choice
from xpgrad._basics.faces import public_names
from xpgrad._basics.shapes import common_shape, normalize_axis, reduced_axes
from xpgrad._modes import state
from xpgrad._operations.declare import composite, front, nondifferentiable
from xpgrad._operations.lift import as_tensors
from xpgrad._rows.namespace import operations
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules import factorisations as _factors, matrices as _rows
from xpgrad.rules.creation import zeros
from xpgrad.rules.elementwise import abs as _abs
from xpgrad.rules.linear_algebra import matmul as matmul, tensordot as tensordot, vecdot as vecdot
from xpgrad.rules.manipulation import _same_kind, broadcast_to, matrix_transpose as matrix_transpose, reshape, reshape_to
from xpgrad.rules.matrices import check_order, diagonal_offset, need_floating, need_matrices, raw_tolerance
from xpgrad.rules.reduction import finished, max as _max, min as _min, sum as _sum

__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet",
    "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


class EigResult(NamedTuple):
    """The pair that `eig` returns.

    Parameters
    ----------
    eigenvalues : Tensor
        The eigenvalues.
    eigenvectors : Tensor
        The eigenvectors, as columns.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> result = xp.linalg.eig(xp.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    >>> isinstance(result, xp.linalg.EigResult)
    True
    >>> result._fields
    ('eigenvalues', 'eigenvectors')
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class EighResult(NamedTuple):
    """The pair that `eigh` returns.

    Parameters
    ----------
    eigenvalues : Tensor
        The eigenvalues.
    eigenvectors : Tensor
        The eigenvectors, as columns.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> result = xp.linalg.eigh(xp.tensor([[2.0, 0.0], [0.0, 1.0]]))
    >>> isinstance(result, xp.linalg.EighResult)
    True
    >>> result._fields
    ('eigenvalues', 'eigenvectors')
    """

    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    """The pair that `qr` returns.

    Parameters
    ----------
    Q : Tensor
        The orthonormal columns.
    R : Tensor
        The upper triangle.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> result = xp.linalg.qr(xp.tensor([[2.0, 0.0], [0.0, 3.0]]))
    >>> isinstance(result, xp.linalg.QRResult)
    True
    >>> result._fields
    ('Q', 'R')
    """

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The pair that `slogdet` returns.

    Parameters
    ----------
    sign : Tensor
        The sign, or the phase, of the determinant.
    logabsdet : Tensor
        The logarithm of its absolute value.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> result = xp.linalg.slogdet(xp.tensor([[2.0, 0.0], [0.0, 3.0]]))
    >>> isinstance(result, xp.linalg.SlogdetResult)
    True
    >>> result._fields
    ('sign', 'logabsdet')
    """

    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    """The triple that `svd` returns.

    Parameters
    ----------
    U : Tensor
        The left singular vectors, as columns.
    S : Tensor
        The singular values, descending.
    Vh : Tensor
        The right singular vectors, as rows, conjugated.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> result = xp.linalg.svd(xp.tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> isinstance(result, xp.linalg.SVDResult)
    True
    >>> result._fields
    ('U', 'S', 'Vh')
    """

    U: Tensor
    S: Tensor
    Vh: Tensor


def _recorded(x: Tensor) -> bool:
    """Return whether an operation on `x` will be recorded, or may have a tangent."""
    mode = state.current()
    return (x._node is not None and state.records(mode)) or (mode is not None and bool(mode.levels))


def _constant(x: Tensor, name: str, **options: Any) -> Tensor:
    """A function of the library's own extension, not recorded."""
    return finished(x, x.backend.adopt(getattr(x.backend.kernels.linalg, name)(x._array, **options)), f"linalg.{name}")


# -- inverses and determinants ------------------------------------------------------------------------------------------------


@front
def inv(x: Tensor, /) -> Tensor:
    """The inverses of square matrices of shape (..., M, M).

    Parameters
    ----------
    x : Tensor
        At least two axes: square matrices; floating or complex.

    Returns
    -------
    Tensor
        The inverses.

    Raises
    ------
    TypeError, ValueError
        For integers, or matrices that are not square.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> xp.linalg.inv(a)
    tensor([[ 0.6, -0.2],
            [-0.2,  0.4]], grad_fn=<LinalgInvExBackward0>)
    """
    x = need_matrices("inv", x, square=True)
    return _rows.inverse(x)


@front
def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solution of ``x1 @ x == x2``.

    Parameters
    ----------
    x1 : Tensor
        Square matrices of shape (..., M, M).
    x2 : Tensor
        A vector of shape (M,), or matrices of shape (..., M, K): vectors are never stacked, so that no case is ambiguous.

    Returns
    -------
    Tensor
        Of the shape of `x2`.

    Raises
    ------
    TypeError, ValueError
        For integers, or shapes that do not fit.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> x = xp.linalg.solve(a, xp.tensor([1.0, 0.0]))
    >>> x
    tensor([ 0.6, -0.2], grad_fn=<ViewBackward0>)
    >>> x[0].backward()
    >>> a.grad
    tensor([[-0.36,  0.12],
            [ 0.12, -0.04]])
    """
    x1, x2 = as_tensors("solve", x1, x2)
    need_matrices("solve", x1, square=True)
    need_floating("solve", x2)
    if x2.ndim == 0 or x2.shape[-2 if x2.ndim > 1 else 0] != x1.shape[-1]:
        msg = (
            f"solve: x2 must have shape ({x1.shape[-1]},) or (..., {x1.shape[-1]}, K) to fit x1 of shape {x1.shape}, but got {x2.shape}; "
            "give a stack of vectors as `x2[..., None]`"
        )
        raise ValueError(msg)
    a, b = _same_kind("solve", (x1, x2))
    if b.ndim == 1:
        out = _rows.solve_matrix(a, reshape_to(b, (*b.shape, 1)))
        return reshape_to(out, out.shape[:-1])
    common_shape(a.shape[:-2], b.shape[:-2], name="solve")
    return _rows.solve_matrix(a, b)


@front
def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The Moore-Penrose inverses of matrices; differentiable where the rank does not change.

    Parameters
    ----------
    x : Tensor
        Shape (..., M, N).
    rtol : float or Tensor of shape (...), optional
        Singular values below `rtol` times the largest count as 0. Default: ``max(M, N)`` times the dtype's eps.

    Returns
    -------
    Tensor
        With the last two axes exchanged.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.pinv(xp.tensor([[1.0, 0.0], [0.0, 0.0]]))
    tensor([[1., 0.],
            [0., 0.]])
    """
    x = need_matrices("pinv", x)
    return _rows.pseudoinverse(x, raw_tolerance("pinv", rtol, x))


@front
def det(x: Tensor, /) -> Tensor:
    """The determinants of square matrices; the first derivative exists for singular ones too.

    Parameters
    ----------
    x : Tensor
        At least two axes: square matrices; floating or complex.

    Returns
    -------
    Tensor
        One for each matrix.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> d = xp.linalg.det(a)
    >>> d
    tensor(5., grad_fn=<LinalgDetBackward0>)
    >>> d.backward()
    >>> a.grad
    tensor([[ 3., -1.],
            [-1.,  2.]])
    """
    x = need_matrices("det", x, square=True)
    return _rows.determinant(x)


@front
def slogdet(x: Tensor, /) -> SlogdetResult:
    """The sign of determinants, and the logarithm of their absolute values (-inf for 0).

    Parameters
    ----------
    x : Tensor
        At least two axes: square matrices; floating or complex.

    Returns
    -------
    SlogdetResult
        `sign` and `logabsdet`.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> s = xp.linalg.slogdet(a)
    >>> s.logabsdet.backward()
    >>> a.grad
    tensor([[ 0.6, -0.2],
            [-0.2,  0.4]])
    """
    x = need_matrices("slogdet", x, square=True)
    return SlogdetResult(*_rows.sign_and_log(x))


@composite
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Square matrices multiplied with themselves `n` times, in fresh memory; inverted for negative `n`, identities for 0.

    Parameters
    ----------
    x : Tensor
        At least two axes: square matrices; floating or complex.
    n : int
        The power; negative ones are those of the inverse.

    Returns
    -------
    Tensor
        One for each matrix.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> xp.linalg.matrix_power(a, 3)
    tensor([[15., 20.],
            [20., 35.]], grad_fn=<MmBackward0>)
    """
    x = need_matrices("matrix_power", x, square=True)
    n = as_int(n, "matrix_power", "n")
    if n == 0:
        return _factors.identity_like(x, operations)
    if n < 0:
        x, n = inv(x), -n
    elif n == 1:
        return x.clone()
    out = None
    while True:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if not n:
            return out  # type: ignore[return-value]
        x = matmul(x, x)


@nondifferentiable(primitive=True)
def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """The number of singular values of matrices above `rtol` times the largest (default: ``max(M, N)`` times the dtype's eps).

    Parameters
    ----------
    x : Tensor
        At least two axes.
    rtol : float or Tensor, optional
        What counts as 0, relative to the largest singular value.

    Returns
    -------
    Tensor
        Integer, one for each matrix.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.matrix_rank(xp.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    x = need_matrices("matrix_rank", x)
    if 0 in x.shape[-2:]:
        return zeros(x.shape[:-2], dtype=x.default_dtype("indexing"), device=x.device)
    return _constant(x, "matrix_rank", rtol=raw_tolerance("matrix_rank", rtol, x))


# -- factorisations -------------------------------------------------------------------------------------------------------------


@front
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factors of Hermitian positive definite matrices: ``L @ L^H``, or ``U^H @ U`` with ``upper=True``.

    The gradient is Hermitian, as if both triangles of `x` were read.

    Parameters
    ----------
    x : Tensor
        At least two axes: square matrices; floating or complex.
    upper : bool
        The upper factor instead of the lower one.

    Returns
    -------
    Tensor
        Triangular, of the shape of `x`.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> xp.linalg.cholesky(a @ a.T)
    tensor([[2.2361, 0.    ],
            [2.2361, 2.2361]], grad_fn=<LinalgCholeskyExBackward0>)
    """
    x = need_matrices("cholesky", x, square=True)
    return _factors.cholesky_factor(x, as_flag(upper, "cholesky", "upper"))


@front
def eig(x: Tensor, /) -> EigResult:
    """Eigenvalues, in no order, and eigenvectors (columns of length 1) of square matrices (Array API 2025.12, `eig`; `torch.linalg.eig`).

    Both are complex, for real matrices too, whose gradient is real.

    The gradient needs independent eigenvectors; through the eigenvectors also distinct eigenvalues, and a loss that does not depend on the
    vectors' phases: otherwise backward raises RuntimeError, as PyTorch does.

    Parameters
    ----------
    x : Tensor
        At least two axes: square matrices; floating or complex.

    Returns
    -------
    EigResult
        Complex `eigenvalues` and `eigenvectors`.

    Raises
    ------
    CapabilityError
        If the backend's library has no `eig`, or none for this device.
    TypeError, ValueError
        For integers, or matrices that are not square.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.eig(xp.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    x = need_matrices("eig", x, square=True)
    return EigResult(*_factors.general_eigen_pairs(x))


@front
def eigvals(x: Tensor, /) -> Tensor:
    """The eigenvalues of square matrices, in no order, complex for real ones too (Array API 2025.12, `eigvals`); see `eig`.

    Where eigenvalues coincide only symmetric functions of them have a gradient, and none where their eigenvectors coincide as well.

    Parameters
    ----------
    x : Tensor
        At least two axes: square matrices; floating or complex.

    Returns
    -------
    Tensor
        Complex.

    Raises
    ------
    CapabilityError, TypeError, ValueError
        As `eig`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.eigvals(xp.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
    x = need_matrices("eigvals", x, square=True)
    if _recorded(x):
        return _factors.general_eigen_pairs(x)[0]
    return finished(x, x.backend.adopt(x.backend.kernels.general_eigenvalues(x._array)), "linalg.eigvals")


@front
def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    The gradient through the eigenvectors needs distinct eigenvalues and, for a complex matrix, a loss that does not depend on the
    eigenvectors' phases: otherwise backward raises RuntimeError, as PyTorch does.

    Parameters
    ----------
    x : Tensor
        At least two axes: square matrices; floating or complex.

    Returns
    -------
    EighResult
        `eigenvalues` (real, ascending) and `eigenvectors`.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.eigh(xp.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    x = need_matrices("eigh", x, square=True)
    return EighResult(*_factors.eigen_pairs(x))


@front
def eigvalsh(x: Tensor, /) -> Tensor:
    """The eigenvalues of Hermitian matrices, ascending.

    Parameters
    ----------
    x : Tensor
        At least two axes: square matrices; floating or complex.

    Returns
    -------
    Tensor
        Real, ascending.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> xp.linalg.eigvalsh(a)[0].backward()
    >>> a.grad
    tensor([[ 0.7236, -0.4472],
            [-0.4472,  0.2764]])
    """
    x = need_matrices("eigvalsh", x, square=True)
    return _factors.eigen_pairs(x)[0] if _recorded(x) else _constant(x, "eigvalsh")


@front
def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Decompose matrices of shape (..., M, N) into orthonormal columns times upper triangles.

    The gradient needs independent first ``min(M, N)`` columns; with ``mode="complete"`` and M > N it does not exist, and backward
    raises NotImplementedError.

    Parameters
    ----------
    x : Tensor
        At least two axes.
    mode : str
        ``"reduced"`` or ``"complete"``.

    Returns
    -------
    QRResult
        `Q` and `R`.

    Raises
    ------
    ValueError
        For another mode.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> q, r = xp.linalg.qr(a)
    >>> xp.round(xp.abs(xp.linalg.det(q)), ) if False else q.shape
    (2, 2)
    """
    x = need_matrices("qr", x)
    check_choice(mode, ("reduced", "complete"), "qr", "mode")
    return QRResult(*_factors.orthogonal_triangular(x, mode))


@front
def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Decompose matrices of shape (..., M, N) into ``U @ diag(S) @ Vh``, singular values descending.

    The gradient through U and Vh needs distinct singular values and, for a complex matrix, a loss that does not depend on the vectors'
    common phases: otherwise backward raises RuntimeError. Columns of full matrices beyond the first ``min(M, N)`` get no gradient.

    Parameters
    ----------
    x : Tensor
        At least two axes.
    full_matrices : bool
        Whether `U` and `Vh` are square.

    Returns
    -------
    SVDResult
        `U`, `S` (real, descending) and `Vh`.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> u, s, vh = xp.linalg.svd(a)
    >>> xp.max(xp.abs(u @ (s[:, None] * vh) - a)) < 1e-12
    tensor(True)
    """
    x = need_matrices("svd", x)
    return SVDResult(*_factors.singular_triples(x, as_flag(full_matrices, "svd", "full_matrices")))


@front
def svdvals(x: Tensor, /) -> Tensor:
    """The singular values of matrices, descending.

    Parameters
    ----------
    x : Tensor
        At least two axes.

    Returns
    -------
    Tensor
        Real, descending.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.svdvals(xp.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    x = need_matrices("svdvals", x)
    return _factors.singular_triples(x, False)[1] if _recorded(x) else _constant(x, "svdvals")


# -- norms -----------------------------------------------------------------------------------------------------------------------


@front
def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
    ord: float = 2,  # noqa: A002 (the standard's name)
) -> Tensor:  # fmt: skip
    """The norm ``sum(abs(x) ** ord) ** (1 / ord)`` over axes; real for complex `x`.

    Where it is not differentiable, the gradient at the zero vector is 0, the largest (smallest) elements share that of order inf
    (-inf) evenly, and order 0 has none (SUB-05, SUB-08, ACC-07).

    Parameters
    ----------
    x : Tensor
    axis : int or tuple of int, optional
        Default: all.
    keepdims : bool
        Keep reduced axes with length 1.
    ord : float
        Any number; 0 counts the elements that are not 0, inf and -inf give the largest and smallest absolute value.

    Returns
    -------
    Tensor
        Real, without the axes that were reduced.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([3.0, 4.0], requires_grad=True)
    >>> xp.linalg.vector_norm(x).backward()
    >>> x.grad
    tensor([0.6, 0.8])
    """
    x = need_floating("vector_norm", x)
    order = check_order("vector_norm", ord, None, "a number, inf and -inf included")
    keepdims = as_flag(keepdims, "vector_norm", "keepdims")
    axes = reduced_axes(axis, x.ndim, "vector_norm")
    if math.isinf(order) and 0 in (x.shape if axes is None else [x.shape[a] for a in axes]):
        msg = f"vector_norm: order {order} is not defined for an empty reduction (shape {x.shape}, axis {axis!r})"
        raise ValueError(msg)
    if order == 0:
        return _rows.count_nonzero_norm([x], axes, keepdims)
    return _rows.norm(x, order, axes, keepdims)


@composite
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:  # noqa: A002
    """The norms of matrices; real for complex `x`.

    Parameters
    ----------
    x : Tensor
        Shape (..., M, N).
    keepdims : bool
        Keep the last two axes with length 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf} or None
        Frobenius (None too), sum of the singular values, largest (smallest) sum of a column's absolute values, largest (smallest)
        singular value, largest (smallest) sum of a row's absolute values.

    Returns
    -------
    Tensor
        Real, one for each matrix.

    Raises
    ------
    TypeError, ValueError
        For another order.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.matrix_norm(xp.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor(5.)
    """
    x = need_matrices("matrix_norm", x)
    keepdims = as_flag(keepdims, "matrix_norm", "keepdims")
    known = ("fro", "nuc", None, 1, -1, 2, -2, math.inf, -math.inf)
    order = check_order("matrix_norm", ord, known, "'fro', 'nuc', None, 1, -1, 2, -2, inf or -inf")
    if order in ("fro", None):
        return _rows.norm(x, 2, (x.ndim - 2, x.ndim - 1), keepdims)
    if order in (1, -1, math.inf, -math.inf):
        sums = _sum(_abs(x), axis=-2 if abs(order) == 1 else -1)
    else:
        sums = svdvals(x)
    if order == "nuc":
        out = _sum(sums, axis=-1)
    else:
        out = _max(sums, axis=-1) if order > 0 else _min(sums, axis=-1)
    return reshape(out, (*out.shape, 1, 1)) if keepdims else out


# -- diagonals and products --------------------------------------------------------------------------------------------------------


@front
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A diagonal of matrices: a view; `offset` counts diagonals to the right of the main one.

    Parameters
    ----------
    x : Tensor
        At least two axes; any dtype.
    offset : int
        Which diagonal.

    Returns
    -------
    Tensor
        A view, with the diagonal as its last axis.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> xp.linalg.diagonal(a)
    tensor([2., 3.], grad_fn=<DiagonalBackward0>)
    """
    x = need_matrices("diagonal", x, floating=False)
    return _rows.diagonal_view(x, diagonal_offset("diagonal", x, offset))


@composite
def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """The sum over a diagonal of matrices, computed in `dtype` (default: as for `sum`).

    Parameters
    ----------
    x : Tensor
        At least two axes.
    offset : int
        Which diagonal.
    dtype : DType, optional
        The dtype of the sum.

    Returns
    -------
    Tensor
        One for each matrix.

    Raises
    ------
    ValueError
        `x` has fewer than two axes, or is not square where it has to be.
    TypeError
        The dtype is neither floating nor complex.
    numpy.linalg.LinAlgError
        A matrix is singular, not positive definite, or the iteration did not converge; other libraries have errors of
        their own.

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> xp.linalg.trace(a)
    tensor(5., grad_fn=<SumBackward1>)
    """
    x = need_matrices("trace", x, floating=False)
    return _sum(_rows.diagonal_view(x, diagonal_offset("trace", x, offset)), axis=-1, dtype=dtype)


@front
def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of length 3 along an axis; the other axes broadcast.

    Parameters
    ----------
    x1 : Tensor
        Length 3 along the axis.
    x2 : Tensor
        Length 3 along the axis.
    axis : int
        The axis.

    Returns
    -------
    Tensor
        One for each matrix.

    Raises
    ------
    ValueError
        If the axis has another length.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.cross(xp.tensor([1.0, 0.0, 0.0]), xp.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    a, b = _same_kind("cross", (x1, x2))
    if a.dtype.kind == "bool":
        msg = "cross needs numbers, but got bools; convert them with `xpgrad.astype`"
        raise TypeError(msg)
    position = as_int(axis, "cross", "axis")
    if position >= 0 and a.ndim != b.ndim:
        msg = f"cross: `axis` must be negative for Tensors with different numbers of axes, but got {axis} for {a.shape} and {b.shape}"
        raise ValueError(msg)
    for x in (a, b):
        if x.shape[normalize_axis(position, x.ndim, "cross")] != 3:
            msg = f"cross: axis {axis} must have length 3 in both Tensors, but the shapes are {a.shape} and {b.shape}"
            raise ValueError(msg)
    shape = common_shape(a.shape, b.shape, name="cross")
    a, b = (x if x.shape == shape else broadcast_to(x, shape) for x in (a, b))
    return _rows.cross_product(a, b, normalize_axis(position, len(shape), "cross") - len(shape))


@composite
def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """All products of the elements of two vectors: shape (N, M).

    Parameters
    ----------
    x1 : Tensor
        One axis.
    x2 : Tensor
        One axis.

    Returns
    -------
    Tensor
        One for each matrix.

    Raises
    ------
    ValueError
        An operand has other than one axis.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.outer(xp.tensor([1.0, 2.0]), xp.tensor([3.0, 4.0]))
    tensor([[3., 4.],
            [6., 8.]])
    """
    x1, x2 = as_tensors("outer", x1, x2)
    for x in (x1, x2):
        if x.ndim != 1:
            msg = f"outer needs one-dimensional Tensors, but got shapes {x1.shape} and {x2.shape}"
            raise ValueError(msg)
    return reshape(x1, (-1, 1)) * reshape(x2, (1, -1))
