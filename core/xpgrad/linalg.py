"""`xpgrad.linalg`: the linear algebra extension of the Array API standard 2025.12, differentiable.

Matrices are the last two axes of a Tensor; the axes before them are a batch, and the batches of two operands broadcast. A singular
matrix, or one that is not positive definite, raises the error of the backend's library (NumPy: `numpy.linalg.LinAlgError`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from xpgrad._basics.arguments import as_flag, as_int, check_choice
from xpgrad._basics.docstrings import shares
from xpgrad._basics.faces import public_names, refusal
from xpgrad._basics.shapes import common_shape, normalize_axis, normalize_reduction_axes
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
from xpgrad.rules.reduction import max as _max, min as _min, sum as _sum, wrap_constant

__all__ = [
    "EigResult", "EighResult", "QRResult", "SVDResult", "SlogdetResult", "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet",
    "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)


class EigResult(NamedTuple):
    """The result of `eig`.

    Parameters
    ----------
    eigenvalues : Tensor
        Eigenvalues, of shape (..., M); complex.
    eigenvectors : Tensor
        Eigenvectors as columns, of shape (..., M, M); complex.

    See Also
    --------
    xpgrad.linalg.eig

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
    """The result of `eigh`.

    Parameters
    ----------
    eigenvalues : Tensor
        Eigenvalues in ascending order, of shape (..., M); real.
    eigenvectors : Tensor
        Eigenvectors as columns, of shape (..., M, M).

    See Also
    --------
    xpgrad.linalg.eigh

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
    """The result of `qr`.

    Parameters
    ----------
    Q : Tensor
        Matrices with orthonormal columns.
    R : Tensor
        Upper triangular matrices.

    See Also
    --------
    xpgrad.linalg.qr

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
    """The result of `slogdet`.

    Parameters
    ----------
    sign : Tensor
        Sign of each determinant; for complex matrices a number of modulus 1. 0 for a singular matrix.
    logabsdet : Tensor
        Logarithm of the absolute value of each determinant; real, -inf for a singular matrix.

    See Also
    --------
    xpgrad.linalg.slogdet

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
    """The result of `svd`.

    Parameters
    ----------
    U : Tensor
        Left singular vectors as columns.
    S : Tensor
        Singular values in descending order; real.
    Vh : Tensor
        Conjugated right singular vectors as rows.

    See Also
    --------
    xpgrad.linalg.svd

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


# -- what docstrings have in common -------------------------------------------------------------------------------------------

_TYPE_ERROR = """\
TypeError
    If `x` is not a Tensor or an array, or its dtype is neither floating-point nor complex."""
_document_square = shares(
    parameters="""\
x : Tensor or raw array
    Square matrices, of shape (..., M, M); floating-point or complex.""",
    raises=f"""\
{_TYPE_ERROR}
ValueError
    If `x` has fewer than two axes, or its matrices are not square.""",
)
_document_matrices = shares(
    parameters="""\
x : Tensor or raw array
    Matrices, of shape (..., M, N); floating-point or complex.""",
    raises=f"""\
{_TYPE_ERROR}
ValueError
    If `x` has fewer than two axes.""",
)
_document_iteration = shares(
    raises="""\
numpy.linalg.LinAlgError
    If the iteration does not converge. Other backends raise the errors of their libraries."""
)


def _is_recorded(x: Tensor) -> bool:
    """Return whether an operation on `x` will be recorded, or may have a tangent."""
    mode = state.current()
    return (x.requires_grad and state.records(mode)) or (mode is not None and bool(mode.levels))  # a batch has no node


def _call_unrecorded(x: Tensor, name: str, **options: Any) -> Tensor:
    """Call a function of the library's own linear algebra extension, without recording."""
    return wrap_constant(x, x.backend.adopt(getattr(x.backend.kernels.linalg, name)(x._array, **options)), f"linalg.{name}")


# -- inverses and determinants ------------------------------------------------------------------------------------------------


@front
@_document_square
def inv(x: Tensor, /) -> Tensor:
    """Return the inverses of square matrices.

    Returns
    -------
    Tensor
        Inverses, of the shape and dtype of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular. Other backends raise the errors of their libraries.

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
    """Solve the systems of linear equations ``x1 @ x == x2``.

    Parameters
    ----------
    x1 : Tensor or raw array
        Square matrices, of shape (..., M, M); floating-point or complex.
    x2 : Tensor or raw array
        One vector, of shape (M,), or matrices, of shape (..., M, K), whose batch broadcasts with that of `x1`. A stack of vectors is
        given as ``x2[..., None]``.

    Returns
    -------
    Tensor
        Solutions, of shape (..., M, K), or (..., M) if `x2` is a vector, and of the dtype to which the operands promote.

    Raises
    ------
    TypeError
        If an operand is not a Tensor or an array, or its dtype is neither floating-point nor complex.
    ValueError
        If `x1` is not a stack of square matrices, or the shapes do not fit.
    numpy.linalg.LinAlgError
        If a matrix is singular. Other backends raise the errors of their libraries.

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
@_document_matrices
@_document_iteration
def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return the Moore-Penrose inverses of matrices; differentiable where the rank does not change.

    Parameters
    ----------
    rtol : float or Tensor, optional
        Singular values below `rtol` times the largest one count as 0; a Tensor has a shape that broadcasts to the batch of `x`.
        ``max(M, N)`` times the dtype's eps by default.

    Returns
    -------
    Tensor
        Pseudoinverses, of shape (..., N, M) and the dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, its dtype is neither floating-point nor complex, or `rtol` is not real.
    ValueError
        If `x` has fewer than two axes, or `rtol` does not broadcast to its batch.

    Notes
    -----
    If `rtol` leaves out singular values that are not rounding errors, the gradient contains how a change turns the spaces of the others.
    PyTorch's does not.

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
@_document_square
def det(x: Tensor, /) -> Tensor:
    """Return the determinants of square matrices.

    The first and second derivatives also exist for singular matrices; the third does not.

    Returns
    -------
    Tensor
        One number for each matrix, of shape (...) and the dtype of `x`.

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
@_document_square
def slogdet(x: Tensor, /) -> SlogdetResult:
    """Return the signs of determinants and the logarithms of their absolute values.

    The gradient is nan for a singular matrix.

    Returns
    -------
    SlogdetResult
        Named tuple of `sign` and `logabsdet`, both of shape (...).

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
@_document_square
def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Multiply square matrices with themselves `n` times, in newly allocated memory.

    Parameters
    ----------
    n : int
        Exponent. Negative ones give powers of the inverse, 0 gives identity matrices.

    Returns
    -------
    Tensor
        Powers, of the shape and dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, its dtype is neither floating-point nor complex, or `n` is not an int.
    numpy.linalg.LinAlgError
        If `n` is negative and a matrix is singular. Other backends raise the errors of their libraries.

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
        eye = _factors.identity_like(x, operations)
        # In PyTorch it has a history, with the gradient 0.
        return operations.where(operations.zeros_like(x, dtype="bool"), x, eye) if x.requires_grad else eye
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
@_document_matrices
@_document_iteration
def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Return the ranks of matrices: how many singular values of each are above a tolerance.

    Parameters
    ----------
    rtol : float or Tensor, optional
        Singular values count if they are above `rtol` times the largest one; a Tensor has a shape that broadcasts to the batch of `x`.
        ``max(M, N)`` times the dtype's eps by default.

    Returns
    -------
    Tensor
        One integer for each matrix, of shape (...). It never requires grad.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, its dtype is neither floating-point nor complex, or `rtol` is not real.
    ValueError
        If `x` has fewer than two axes, or `rtol` does not broadcast to its batch.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.matrix_rank(xp.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    x = need_matrices("matrix_rank", x)
    if 0 in x.shape[-2:]:
        return zeros(x.shape[:-2], dtype=x.default_dtype("indexing"), device=x.device)
    return _call_unrecorded(x, "matrix_rank", rtol=raw_tolerance("matrix_rank", rtol, x))


# -- factorisations -------------------------------------------------------------------------------------------------------------


@front
@_document_square
def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return the triangular Cholesky factors of Hermitian positive definite matrices.

    The gradient is Hermitian, as if both triangles of `x` were read.

    Parameters
    ----------
    x : Tensor or raw array
        Hermitian positive definite matrices, of shape (..., M, M); floating-point or complex.
    upper : bool
        If False, return ``L`` with ``L @ L^H == x``; if True, ``U`` with ``U^H @ U == x``.

    Returns
    -------
    Tensor
        Triangular factors, of the shape and dtype of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive definite. Other backends raise the errors of their libraries.

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
@_document_square
def eig(x: Tensor, /) -> EigResult:
    """Return the eigenvalues and eigenvectors of square matrices (Array API 2025.12, `eig`; `torch.linalg.eig`).

    The gradient of real matrices is real. It needs independent eigenvectors. The gradient through the eigenvectors also needs distinct
    eigenvalues and a loss that does not depend on the vectors' phases: otherwise backward raises RuntimeError, as in PyTorch.

    Returns
    -------
    EigResult
        Named tuple of `eigenvalues`, of shape (..., M) and in no particular order, and `eigenvectors`, of shape (..., M, M): columns of
        length 1. Both are complex.

    Raises
    ------
    CapabilityError
        If the backend's library has no `eig`, or none for this device.
    numpy.linalg.LinAlgError
        If a matrix is not finite, or the iteration does not converge. Other backends raise the errors of their libraries.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.eig(xp.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    x = need_matrices("eig", x, square=True)
    return EigResult(*_factors.general_eigen_pairs(x))


@front
@_document_square
def eigvals(x: Tensor, /) -> Tensor:
    """Return the eigenvalues of square matrices (Array API 2025.12, `eigvals`).

    If eigenvalues coincide, only symmetric functions of them have a gradient; if their eigenvectors coincide as well, no function has one.

    Returns
    -------
    Tensor
        Eigenvalues, of shape (..., M) and in no particular order; complex.

    Raises
    ------
    CapabilityError
        If the backend's library has no `eig`, or none for this device.
    numpy.linalg.LinAlgError
        If a matrix is not finite, or the iteration does not converge. Other backends raise the errors of their libraries.

    See Also
    --------
    xpgrad.linalg.eig

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.eigvals(xp.tensor([[0.0, 1.0], [-1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
    x = need_matrices("eigvals", x, square=True)
    if _is_recorded(x):
        return _factors.general_eigen_pairs(x)[0]
    return wrap_constant(x, x.backend.adopt(x.backend.kernels.general_eigenvalues(x._array)), "linalg.eigvals")


@front
@_document_square
@_document_iteration
def eigh(x: Tensor, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of Hermitian matrices.

    The gradient through the eigenvectors needs distinct eigenvalues and, for complex matrices, a loss that does not depend on the
    vectors' phases: otherwise backward raises RuntimeError, as in PyTorch.

    Parameters
    ----------
    x : Tensor or raw array
        Hermitian matrices, of shape (..., M, M); floating-point or complex.

    Returns
    -------
    EighResult
        Named tuple of `eigenvalues`, real, ascending and of shape (..., M), and `eigenvectors`, orthonormal columns of shape (..., M, M).

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.eigh(xp.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    x = need_matrices("eigh", x, square=True)
    return EighResult(*_factors.eigen_pairs(x))


@front
@_document_square
@_document_iteration
def eigvalsh(x: Tensor, /) -> Tensor:
    """Return the eigenvalues of Hermitian matrices, in ascending order.

    Parameters
    ----------
    x : Tensor or raw array
        Hermitian matrices, of shape (..., M, M); floating-point or complex.

    Returns
    -------
    Tensor
        Eigenvalues, of shape (..., M); real.

    See Also
    --------
    xpgrad.linalg.eigh

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
    return _factors.eigen_pairs(x)[0] if _is_recorded(x) else _call_unrecorded(x, "eigvalsh")


@front
@_document_matrices
def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Decompose matrices into orthonormal columns times upper triangular matrices: ``x == Q @ R``.

    The gradient needs independent first ``min(M, N)`` columns; it is nan where they are not. With ``mode="complete"`` and M > N it does
    not exist, and backward raises NotImplementedError.

    Parameters
    ----------
    mode : {"reduced", "complete"}
        Whether `Q` has ``min(M, N)`` columns or is square.

    Returns
    -------
    QRResult
        Named tuple of `Q`, of shape (..., M, K), and `R`, of shape (..., K, N): K is ``min(M, N)``, or M with ``mode="complete"``.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes, or `mode` is neither "reduced" nor "complete".

    Examples
    --------
    >>> import xpgrad as xp
    >>> a = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)
    >>> q, r = xp.linalg.qr(a)
    >>> xp.max(xp.abs(q @ r - a)) < 1e-12
    tensor(True)
    """
    x = need_matrices("qr", x)
    check_choice(mode, ("reduced", "complete"), "qr", "mode")
    return QRResult(*_factors.orthogonal_triangular(x, mode))


@front
@_document_matrices
@_document_iteration
def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Decompose matrices into singular vectors and singular values: ``x == U @ diag(S) @ Vh``.

    The gradient through `U` and `Vh` needs distinct singular values and, for complex matrices, a loss that does not depend on the vectors'
    common phases: otherwise backward raises RuntimeError. Columns of `U` and rows of `Vh` beyond the first ``min(M, N)`` get no gradient.

    Parameters
    ----------
    full_matrices : bool
        Whether `U` and `Vh` are square, rather than with ``K = min(M, N)`` columns and rows.

    Returns
    -------
    SVDResult
        Named tuple of `U`, of shape (..., M, M) or (..., M, K); `S`, real, descending and of shape (..., K); and `Vh`, of shape (..., N,
        N) or (..., K, N).

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
@_document_matrices
@_document_iteration
def svdvals(x: Tensor, /) -> Tensor:
    """Return the singular values of matrices, in descending order.

    Returns
    -------
    Tensor
        Singular values, of shape (..., min(M, N)); real.

    See Also
    --------
    xpgrad.linalg.svd

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.svdvals(xp.tensor([[3.0, 0.0], [0.0, 4.0]]))
    tensor([4., 3.])
    """
    x = need_matrices("svdvals", x)
    return _factors.singular_triples(x, False)[1] if _is_recorded(x) else _call_unrecorded(x, "svdvals")


# -- norms -----------------------------------------------------------------------------------------------------------------------


@front
def vector_norm(
    x: Tensor, /, *, axis: int | tuple[int, ...] | None = None, keepdims: bool = False,
    ord: float = 2,  # noqa: A002 (the standard's name)
) -> Tensor:  # fmt: skip
    """Return the norm ``sum(abs(x) ** ord) ** (1 / ord)`` over axes.

    The gradient at the zero vector is taken as 0. For order inf (-inf) the largest (smallest) elements share it evenly. Order 0 has none.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape; floating-point or complex.
    axis : int or tuple of int, optional
        Axes to reduce; all of them by default.
    keepdims : bool
        Whether reduced axes stay, with length 1.
    ord : float
        Order: any number. 0 counts the nonzero elements; inf and -inf give the largest and the smallest absolute value.

    Returns
    -------
    Tensor
        Has the shape of `x` without the reduced axes; real.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or its dtype is neither floating-point nor complex.
    ValueError
        If `ord` is not a real number, or is infinite and a reduced axis has length 0, or if `axis` names an axis twice.
    IndexError
        If an axis is out of range.

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
    axes = normalize_reduction_axes(axis, x.ndim, "vector_norm")
    if math.isinf(order) and 0 in (x.shape if axes is None else [x.shape[a] for a in axes]):
        msg = f"vector_norm: order {order} is not defined for an empty reduction (shape {x.shape}, axis {axis!r})"
        raise ValueError(msg)
    if order == 0:
        return _rows.count_nonzero_norm([x], axes, keepdims)
    return _rows.norm(x, order, axes, keepdims)


@composite
@_document_matrices
def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | str | None = "fro") -> Tensor:  # noqa: A002
    """Return the norms of matrices.

    Parameters
    ----------
    keepdims : bool
        Whether the last two axes stay, with length 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf} or None
        "fro" or None: the Frobenius norm. "nuc": the sum of the singular values. 1 (-1): the largest (smallest) sum of a column's absolute
        values. 2 (-2): the largest (smallest) singular value. inf (-inf): the largest (smallest) sum of a row's absolute values.

    Returns
    -------
    Tensor
        One number for each matrix, of shape (...); real.

    Raises
    ------
    TypeError, ValueError
        If `x` is not a stack of matrices of a floating-point or complex dtype, or `ord` is none of these.

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
    if order == "nuc":
        tall = x if x.shape[-2] >= x.shape[-1] else matrix_transpose(x)
        out = _factors.nuclear_norm(tall)[0] if _is_recorded(x) else _sum(svdvals(x), axis=-1)
    else:
        sums = svdvals(x) if abs(order) == 2 else _sum(_abs(x), axis=-2 if abs(order) == 1 else -1)
        largest = _max if sums.shape[-1] else _sum  # 0 where there are no sums, as in NumPy and PyTorch
        out = largest(sums, axis=-1) if order > 0 else _min(sums, axis=-1)
    return reshape(out, (*out.shape, 1, 1)) if keepdims else out


# -- diagonals and products --------------------------------------------------------------------------------------------------------


@front
def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return a diagonal of matrices, as a view.

    Parameters
    ----------
    x : Tensor or raw array
        Matrices, of shape (..., M, N); any dtype.
    offset : int
        Number of the diagonal: 0 is the main one, positive ones are above it.

    Returns
    -------
    Tensor
        A view with the diagonal as its last axis; of the dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `offset` is not an int.
    ValueError
        If `x` has fewer than two axes.

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
    """Return the sum over a diagonal of matrices.

    Parameters
    ----------
    x : Tensor or raw array
        Matrices, of shape (..., M, N); any dtype.
    offset : int
        Number of the diagonal: 0 is the main one, positive ones are above it.
    dtype : DType, optional
        Data type in which to sum, and of the result; by default as for `xpgrad.sum`.

    Returns
    -------
    Tensor
        One number for each matrix, of shape (...).

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `offset` is not an int.
    ValueError
        If `x` has fewer than two axes.

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
    """Return the cross products of vectors of length 3 along an axis.

    Parameters
    ----------
    x1, x2 : Tensor or raw array
        Numeric; length 3 along `axis`. The other axes broadcast.
    axis : int
        Axis of the vectors. It must be negative if the operands have different numbers of axes.

    Returns
    -------
    Tensor
        Has the shape to which the operands broadcast and the dtype to which they promote.

    Raises
    ------
    TypeError
        If an operand is not a Tensor or an array, both are bools, or `axis` is not an int.
    ValueError
        If `axis` has another length than 3, the other axes do not broadcast, or `axis` is not negative although it must be.
    IndexError
        If `axis` is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.linalg.cross(xp.tensor([1.0, 0.0, 0.0]), xp.tensor([0.0, 1.0, 0.0]))
    tensor([0., 0., 1.])
    """
    a, b = _same_kind("cross", (x1, x2))
    if a.dtype.category == "bool":
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
    """Return all products of an element of one vector and an element of another.

    Parameters
    ----------
    x1 : Tensor or raw array
        One-dimensional, of length N.
    x2 : Tensor or raw array
        One-dimensional, of length M.

    Returns
    -------
    Tensor
        Of shape (N, M) and the dtype to which the operands promote.

    Raises
    ------
    TypeError
        If an operand is not a Tensor or an array.
    ValueError
        If an operand is not one-dimensional.

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
