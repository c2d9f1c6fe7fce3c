"""Solvers of linear systems with triangular, positive definite and banded matrices, and of least-squares problems."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from xpgrad._basics.arguments import as_flag, as_int, shown
from xpgrad._basics.dtypes import finfo
from xpgrad._basics.scalars import NOT_SCALAR, as_scalar
from xpgrad._operations.lift import as_tensors
from xpgrad._rows.namespace import operations
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import cholesky, matmul
from xpgrad.rules.elementwise import abs as _abs, conj
from xpgrad.rules.manipulation import broadcast_to, reshape
from xpgrad.rules.matrices import tolerance_of_lapack
from xpgrad.rules.reduction import sum as total
from xpgrad.scipy.linalg import _equation_rows as _rows
from xpgrad.scipy.linalg._operands import as_matrix, as_right_side, broadcast_batch, check_matrix, promote, register, restore_vector


class LstsqResult(NamedTuple):
    """The result of `lstsq`.

    Parameters
    ----------
    x : Tensor, shape (N,) or (..., N, K)
        Least-squares solution.
    residues : Tensor, shape () or (..., K), or (0,)
        Squared norms of ``a @ x - b`` for M > N, else empty.
    rank : Tensor, shape (...)
        Numerical rank of `a`, an integer.
    s : Tensor, shape (..., min(M, N))
        Singular values of `a` in descending order.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> found = linalg.lstsq(xp.asarray([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]]), xp.asarray([3.0, 4.0, 5.0]))
    >>> isinstance(found, linalg.LstsqResult)
    True
    >>> found.x, found.residues
    (tensor([3., 2.]), tensor(25.))
    >>> found.rank, found.s
    (tensor(2), tensor([2., 1.]))
    """

    x: Tensor
    residues: Tensor
    rank: Tensor
    s: Tensor


@register
def solve_triangular(
    a: Tensor, b: Tensor, trans: Literal[0, 1, 2, "N", "T", "C"] = 0, lower: bool = False, unit_diagonal: bool = False
) -> Tensor:  # fmt: skip
    """Solve ``a @ x == b`` for a triangular matrix `a` (`scipy.linalg.solve_triangular`).

    Parameters
    ----------
    a : Tensor, shape (..., N, N)
        Triangular matrix. Only the triangle is read and receives a gradient. Differentiable.
    b : Tensor, shape (N,) or (..., N, K)
        Right-hand side. Only a 1-d `b` is a vector; pass a batch of vectors as ``b[..., None]``. Differentiable.
    trans : {0, 1, 2, "N", "T", "C"}
        Solve with `a` (0, "N"), its transpose (1, "T"), or its conjugate transpose (2, "C").
    lower : bool
        Whether `a` is lower triangular.
    unit_diagonal : bool
        Whether to assume ones on the diagonal, which is then not read.

    Returns
    -------
    Tensor, shape (N,) or (..., N, K)
        In the common dtype of `a` and `b`; batch axes broadcast.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array, or a flag is not a bool.
    ValueError
        The shapes do not fit, or `trans` is another value.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> a = xp.tensor([[2.0, 1.0], [9.0, 4.0]], requires_grad=True)
    >>> x = linalg.solve_triangular(a, xp.asarray([4.0, 8.0]))
    >>> x.detach()  # the 9 below the diagonal is not read
    tensor([1., 2.])
    >>> x.sum().backward()
    >>> a.grad + 0.0
    tensor([[-0.5 , -1.  ],
            [ 0.  , -0.25]])
    """
    name = "solve_triangular"
    a, b = as_tensors(f"scipy.linalg.{name}", a, b)
    a = check_matrix(name, "a", a)
    b, vector = as_right_side(name, b, a.shape[-1], "a")
    broadcast_batch(name, a=a, b=b)
    known = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}
    how = known.get(trans) if isinstance(trans, (int, str)) and not isinstance(trans, bool) else None
    if how is None:
        msg = f"scipy.linalg.{name}: `trans` must be one of 0, 1, 2, 'N', 'T', 'C', but got {shown(trans)}"
        raise ValueError(msg)
    lower, unit_diagonal = (
        as_flag(x, f"scipy.linalg.{name}", argument) for x, argument in ((lower, "lower"), (unit_diagonal, "unit_diagonal"))
    )
    a, b = promote(name, a, b)
    if how == 2 and a.dtype.is_complex:
        a = conj(a)
    return restore_vector(_rows._linalg_solve_triangular(a, b, how != 0, lower, unit_diagonal), vector)


@register
def cho_factor(a: Tensor, lower: bool = False) -> tuple[Tensor, bool]:
    """Return the Cholesky factor of a Hermitian positive definite matrix, for `cho_solve` (`scipy.linalg.cho_factor`).

    Parameters
    ----------
    a : Tensor, shape (..., N, N)
        Hermitian positive definite matrix. Its gradient is Hermitian, as if both triangles were read. Differentiable.
    lower : bool
        Whether to return the lower triangular factor.

    Returns
    -------
    c : Tensor, shape (..., N, N)
        The factor; zero in the other triangle, which SciPy leaves undefined.
    lower : bool
        The argument `lower`.

    Raises
    ------
    TypeError
        `a` is neither a Tensor nor an array, or `lower` is not a bool.
    ValueError
        `a` is not square.
    LinAlgError
        `a` is not positive definite. The class is that of the backend's library.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> c, lower = linalg.cho_factor(xp.asarray([[4.0, 2.0], [2.0, 5.0]]))
    >>> c, lower
    (tensor([[2., 1.],
            [0., 2.]]), False)
    """
    lower = as_flag(lower, "scipy.linalg.cho_factor", "lower")
    return cholesky(as_matrix("cho_factor", "a", a), upper=not lower), lower


@register
def cho_solve(c_and_lower: tuple[Tensor, bool], b: Tensor) -> Tensor:
    """Solve ``a @ x == b``, given the Cholesky factor of `a` (`scipy.linalg.cho_solve`).

    Parameters
    ----------
    c_and_lower : (Tensor, bool)
        The result of `cho_factor`; only the triangle is read. Differentiable.
    b : Tensor, shape (N,) or (..., N, K)
        Right-hand side. Only a 1-d `b` is a vector. Differentiable.

    Returns
    -------
    Tensor, shape (N,) or (..., N, K)
        In the common dtype of the factor and `b`; batch axes broadcast.

    Raises
    ------
    TypeError
        `c_and_lower` is not a pair, its second element is not a bool, or another argument is neither a Tensor nor an array.
    ValueError
        The shapes do not fit.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> b = xp.tensor([8.0, 8.0], requires_grad=True)
    >>> x = linalg.cho_solve(linalg.cho_factor(xp.asarray([[4.0, 2.0], [2.0, 5.0]])), b)
    >>> x.detach()
    tensor([1.5, 1. ])
    >>> x[1].backward()
    >>> b.grad  # a row of the inverse
    tensor([-0.125,  0.25 ])
    """
    if not isinstance(c_and_lower, (tuple, list)) or len(c_and_lower) != 2:
        msg = f"scipy.linalg.cho_solve: `c_and_lower` must be the pair that `cho_factor` returns, but got {shown(c_and_lower)}"
        raise TypeError(msg)
    c, lower = c_and_lower
    lower = as_flag(lower, "scipy.linalg.cho_solve", "lower")
    c, b = as_tensors("scipy.linalg.cho_solve", c, b)
    c = check_matrix("cho_solve", "c", c)
    b, vector = as_right_side("cho_solve", b, c.shape[-1], "c")
    first = solve_triangular(c, b, trans=0 if lower else 2, lower=lower)
    return restore_vector(solve_triangular(c, first, trans=2 if lower else 0, lower=lower), vector)


@register
def solve_banded(l_and_u: tuple[int, int], ab: Tensor, b: Tensor) -> Tensor:
    """Solve ``a @ x == b`` for a banded matrix `a` (`scipy.linalg.solve_banded`).

    Parameters
    ----------
    l_and_u : (int, int)
        Numbers of diagonals below and above the main diagonal.
    ab : Tensor, shape (..., l + u + 1, M)
        Diagonals of `a` as rows: ``ab[u + i - j, j] == a[i, j]``. Elements outside `a` are ignored; their gradient is 0. Differentiable.
    b : Tensor, shape (M,) or (..., M, K)
        Right-hand side. Only a 1-d `b` is a vector. Differentiable.

    Returns
    -------
    Tensor, shape (M,) or (..., M, K)
        In the common dtype of `ab` and `b`; batch axes broadcast.

    Raises
    ------
    TypeError
        `l_and_u` is not a pair of ints, or another argument is neither a Tensor nor an array.
    ValueError
        The shapes do not fit, or `l_and_u` is negative.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> ab = xp.tensor([[0.0, -1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0, 0.0]], requires_grad=True)
    >>> x = linalg.solve_banded((1, 1), ab, xp.asarray([1.0, 0.0, 1.0]))
    >>> x.detach()
    tensor([1., 1., 1.])
    >>> x[1].backward()
    >>> ab.grad + 0.0  # 0 in the corners, which are ignored
    tensor([[ 0. , -0.5, -1. ],
            [-0.5, -1. , -0.5],
            [-1. , -0.5,  0. ]])
    """
    name = "solve_banded"
    if not isinstance(l_and_u, (tuple, list)) or len(l_and_u) != 2:
        msg = f"scipy.linalg.{name}: `l_and_u` must be a pair of ints, but got {shown(l_and_u)}"
        raise TypeError(msg)
    below, above = (as_int(n, f"scipy.linalg.{name}", "l_and_u") for n in l_and_u)
    ab, b = as_tensors(f"scipy.linalg.{name}", ab, b)
    ab = check_matrix(name, "ab", ab, square=False)
    if below < 0 or above < 0 or ab.shape[-2] != below + above + 1:
        msg = (
            f"scipy.linalg.{name}: `ab` must have {below} + {above} + 1 rows, a diagonal each, for `l_and_u` = {tuple(l_and_u)}, which "
            f"must not be negative, but has shape {ab.shape}"
        )
        raise ValueError(msg)
    b, vector = as_right_side(name, b, ab.shape[-1], "ab")
    broadcast_batch(name, ab=ab, b=b)
    ab, b = promote(name, ab, b)
    return restore_vector(_rows._linalg_solve_banded(ab, b, below, above), vector)


@register
def lstsq(a: Tensor, b: Tensor, cond: float | None = None) -> LstsqResult:
    """Return the least-squares solution of ``a @ x == b`` of minimum norm (`scipy.linalg.lstsq`).

    Parameters
    ----------
    a : Tensor, shape (..., M, N)
        Coefficient matrix. Differentiable.
    b : Tensor, shape (M,) or (..., M, K)
        Right-hand side. Only a 1-d `b` is a vector. Differentiable.
    cond : float, optional
        Singular values up to `cond` times the largest count as 0. Default, and for a `cond` outside of (0, 1): the eps of the dtype.

    Returns
    -------
    x : Tensor, shape (N,) or (..., N, K)
        Solution, in the common dtype of `a` and `b`.
    residues : Tensor, shape () or (..., K), or (0,)
        Squared norms of ``a @ x - b`` for M > N, else empty. (SciPy's are also empty if the rank is not full; here shapes do not depend
        on values.)
    rank : Tensor, shape (...)
        Numerical rank of `a`, an integer.
    s : Tensor, shape (..., min(M, N))
        Singular values of `a` in descending order.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array, or `cond` is not a real number.
    ValueError
        The shapes do not fit.

    Notes
    -----
    It is computed from the singular value decomposition. `x` is differentiable if the rank is constant nearby: for full column or row rank,
    and along changes that preserve a lower rank (Golub and Pereyra 1973). `s` is differentiable like `xpgrad.linalg.svdvals`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> t = xp.asarray([0.0, 1.0, 2.0])
    >>> y = xp.tensor([1.0, 3.0, 5.0], requires_grad=True)
    >>> line = linalg.lstsq(xp.stack([xp.ones(3), t], axis=1), y).x
    >>> line.detach()  # y = 1 + 2 t
    tensor([1., 2.])
    >>> line[0].backward()
    >>> y.grad  # how the value at t = 0 depends on the data
    tensor([ 0.8333,  0.3333, -0.1667])
    """
    name = "lstsq"
    a, b = as_tensors(f"scipy.linalg.{name}", a, b)
    a = check_matrix(name, "a", a, square=False)
    b, vector = as_right_side(name, b, a.shape[-2], "a")
    batch = broadcast_batch(name, a=a, b=b)
    rtol = _tolerance(name, cond, a)
    a, b = promote(name, a, b)
    rows, columns = a.shape[-2:]
    a, b = (x if x.shape[:-2] == batch else broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    if 0 in (rows, columns):
        x = matmul(operations.zeros((*batch, columns, rows), dtype=a.dtype, device=a.device), b)
        s = operations.zeros((*batch, 0), dtype=_abs(a.detach()).dtype, device=a.device)
        rank = operations.zeros(batch, dtype=a.default_dtype("indexing"), device=a.device)
    else:
        x, s = _rows._linalg_lstsq(a, b, rtol)
        raw = s.detach()
        rank = total(raw > raw[..., :1] * rtol, axis=-1, dtype=a.default_dtype("indexing"))
    if rows > columns:
        gap = b - matmul(a, x)  # NB: the square of `abs` has no second derivative at 0
        residues = total(operations.real(conj(gap) * gap) if gap.dtype.is_complex else gap * gap, axis=-2)
        residues = reshape(residues, residues.shape[:-1]) if vector else residues
    else:
        residues = operations.zeros(0, dtype=_abs(a.detach()).dtype, device=a.device)
    return LstsqResult(restore_vector(x, vector), residues, rank, s)


def _tolerance(name: str, cond: Any, x: Any) -> float:
    """Return `cond` as a float, or the eps of the dtype if it is None or, as in LAPACK, outside of (0, 1)."""
    if cond is None:
        return float(finfo(x.dtype).eps)
    scalar = as_scalar(cond)
    if scalar is NOT_SCALAR or isinstance(scalar, (bool, complex)):
        msg = f"scipy.linalg.{name}: `cond` must be a real number or None, but got {shown(cond)}"
        raise TypeError(msg)
    return tolerance_of_lapack(float(scalar), x)
