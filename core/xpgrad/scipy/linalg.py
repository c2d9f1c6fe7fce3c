"""`xpgrad.scipy.linalg`: SciPy's functions of matrices for Tensors on every backend, differentiable to every order, in both modes, batched.

Matrices are the last two axes of a Tensor, all axes before them are a stack, and the stacks of two operands broadcast. Integers become
floating numbers of the default dtype. Dtypes and shapes of results never depend on values: where SciPy's do, the docstring says what is here.
A matrix that is not finite gives nan, where SciPy raises ValueError; a singular one raises what the backend's library raises (NumPy:
`numpy.linalg.LinAlgError`). SciPy's arguments `overwrite_*` and `check_finite` are not there: nothing is overwritten, and nothing is unchecked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

from xpgrad._basics.arguments import as_flag, as_int, check_choice, shown
from xpgrad._basics.dtypes import finfo
from xpgrad._basics.faces import public_names
from xpgrad._basics.scalars import NOT_SCALAR, as_scalar
from xpgrad._basics.shapes import common_shape
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import as_tensor, as_tensors
from xpgrad._rows.namespace import EXTRAS, PRIMITIVES, PUBLIC, operations
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import cholesky, inv, matmul, matrix_transpose, solve
from xpgrad.rules.elementwise import abs as _abs, conj
from xpgrad.rules.manipulation import broadcast_to, concat, reshape
from xpgrad.rules.reduction import sum as total
from xpgrad.scipy import _matrix_equations as _equations, _matrix_functions as _functions
from xpgrad.scipy._declare import PREFIX

__all__ = [
    "LstsqResult", "PolarResult", "block_diag", "cho_factor", "cho_solve", "circulant", "expm", "hankel", "logm", "lstsq", "polar",
    "solve_banded", "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_lyapunov", "solve_sylvester", "solve_triangular", "sqrtm",
    "toeplitz",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


class LstsqResult(NamedTuple):
    """What `lstsq` returns."""

    x: Tensor
    residues: Tensor
    rank: Tensor
    s: Tensor


class PolarResult(NamedTuple):
    """What `polar` returns."""

    u: Tensor
    p: Tensor


F = TypeVar("F", bound=Callable[..., Any])


def _front(func: F) -> F:
    """Register a public function; it stands for the row of its name, if there is one."""
    title = f"scipy.linalg.{func.__name__}"
    EXTRAS[title] = func
    row = f"{PREFIX}linalg_{func.__name__}"
    if row in PRIMITIVES:
        PUBLIC.setdefault(row, (title,))
    return func


# -- operands ------------------------------------------------------------------------------------------------------------------


def _floating(x: Any) -> Any:
    return x if x.dtype.differentiable else x._cast(x.default_dtype("real floating"))


def _checked(name: str, argument: str, x: Any, *, square: bool = True) -> Any:
    """A Tensor of (square) matrices of floating or complex numbers.

    Raises
    ------
    ValueError
        For other shapes.
    """
    if x.ndim < 2:
        msg = f"scipy.linalg.{name}: `{argument}` must be a matrix, or a stack of them, of at least 2 axes, but has shape {x.shape}"
        raise ValueError(msg)
    if square and x.shape[-1] != x.shape[-2]:
        msg = f"scipy.linalg.{name}: `{argument}` must be a square matrix, or a stack of them, but has shape {x.shape}"
        raise ValueError(msg)
    return _floating(x)


def _matrix(name: str, argument: str, x: Any, *, square: bool = True) -> Any:
    return _checked(name, argument, as_tensor(f"scipy.linalg.{name}", x), square=square)


def _together(name: str, *xs: Any) -> list[Any]:
    """Tensors on one device, in their common dtype.

    Raises
    ------
    DeviceMismatchError
        If they are on several.
    """
    tensors = unify(f"scipy.linalg.{name}", list(xs))
    dtype = operations.result_type(*tensors)
    return [x._cast(dtype) for x in tensors]


def _batches(name: str, **xs: Any) -> tuple[int, ...]:
    """The common shape of stacks.

    Raises
    ------
    ValueError
        If they do not broadcast.
    """
    try:
        return tuple(common_shape(*(x.shape[:-2] for x in xs.values())))
    except ValueError as exc:
        what = ", ".join(f"`{argument}` has shape {x.shape}" for argument, x in xs.items())
        msg = f"scipy.linalg.{name}: {what}: the axes before the last two do not broadcast together"
        raise ValueError(msg) from exc


def _right_side(name: str, b: Any, rows: int, of: str) -> tuple[Any, bool]:
    """The right side as matrices, and whether it is a vector.

    Raises
    ------
    ValueError
        If it does not fit.
    """
    if b.ndim == 0 or b.shape[-2 if b.ndim > 1 else 0] != rows:
        msg = (
            f"scipy.linalg.{name}: `b` must have shape ({rows},) or (..., {rows}, K) to fit `{of}`, but has shape {b.shape}; give a stack of "
            "vectors as `b[..., None]`"
        )
        raise ValueError(msg)
    b = _floating(b)
    return (reshape(b, (*b.shape, 1)), True) if b.ndim == 1 else (b, False)


def _solution(x: Any, vector: bool) -> Any:
    return reshape(x, x.shape[:-1]) if vector else x


def _adjoint(x: Any) -> Any:
    return matrix_transpose(conj(x) if x.dtype.is_complex else x)


# -- functions of matrices ----------------------------------------------------------------------------------------------------------


@_front
def expm(A: Tensor) -> Tensor:  # noqa: N803 (SciPy's name)
    """The exponential of a square matrix (`scipy.linalg.expm`; Al-Mohy and Higham 2009).

    Parameters
    ----------
    A : Tensor, shape (..., N, N)

    Returns
    -------
    Tensor, shape (..., N, N)

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, or is not square.

    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> t = xp.tensor(0.5, requires_grad=True)
    >>> turn = linalg.expm(t * xp.asarray([[0.0, -1.0], [1.0, 0.0]]))  # by half a radian
    >>> turn[1, 0].backward()  # the cosine
    >>> round(t.grad.item(), 6)
    0.877583
    """
    return _functions._linalg_expm(_matrix("expm", "A", A))


@_front
def logm(A: Tensor) -> Tensor:  # noqa: N803 (SciPy's name)
    """The principal logarithm of a square matrix (`scipy.linalg.logm`), computed by SciPy.

    Parameters
    ----------
    A : Tensor, shape (..., N, N)

    Returns
    -------
    Tensor, shape (..., N, N)
        In the dtype of `A`. For a real matrix with a negative eigenvalue the logarithm is not real: it is nan, where SciPy's is complex;
        give `A` as complex numbers for that. For a singular matrix it is nan.

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, or is not square.
    CapabilityError
        Without SciPy, and where the memory is not the host's.
    """
    return _functions._linalg_logm(_matrix("logm", "A", A))


@_front
def sqrtm(A: Tensor) -> Tensor:  # noqa: N803 (SciPy's name)
    """The principal square root of a square matrix (`scipy.linalg.sqrtm`), computed by SciPy.

    Parameters
    ----------
    A : Tensor, shape (..., N, N)

    Returns
    -------
    Tensor, shape (..., N, N)
        In the dtype of `A`. For a real matrix with a negative eigenvalue the root is not real: it is nan, where SciPy's is complex; give
        `A` as complex numbers for that. A singular matrix may have a root, but that has no derivative, and backward raises.

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, or is not square.
    CapabilityError
        Without SciPy, and where the memory is not the host's.
    """
    return _functions._linalg_sqrtm(_matrix("sqrtm", "A", A))


@_front
def polar(a: Tensor, side: Literal["right", "left"] = "right") -> PolarResult:
    """The polar decomposition (`scipy.linalg.polar`): ``a == u @ p``, or ``a == p @ u`` for ``side="left"``.

    Parameters
    ----------
    a : Tensor, shape (..., M, N)
    side : {"right", "left"}

    Returns
    -------
    u : Tensor, shape (..., M, N)
        With orthonormal columns, or rows if there are fewer of these.
    p : Tensor, shape (..., N, N), or (..., M, M) for "left"
        Hermitian, without negative eigenvalues.

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array of matrices; for another side.

    Notes
    -----
    Differentiable for matrices of full rank, whatever singular values coincide: the derivative divides by sums of singular values, not by
    differences. Where the rank is not full it is nan.
    """
    x = _matrix("polar", "a", a, square=False)
    check_choice(side, ("right", "left"), "scipy.linalg.polar", "side")
    tall = x.shape[-2] >= x.shape[-1]
    if tall:
        u, p = _functions._linalg_polar(x)
    else:
        turned, p = _functions._linalg_polar(_adjoint(x))
        u = _adjoint(turned)
    if tall is not (side == "right"):
        p = u @ p @ _adjoint(u) if tall else _adjoint(u) @ p @ u
    return PolarResult(u, p)


# -- triangular and positive definite systems -----------------------------------------------------------------------------------------


@_front
def solve_triangular(
    a: Tensor, b: Tensor, trans: Literal[0, 1, 2, "N", "T", "C"] = 0, lower: bool = False, unit_diagonal: bool = False
) -> Tensor:  # fmt: skip
    """The solution of ``a @ x == b`` for a triangular matrix (`scipy.linalg.solve_triangular`).

    Parameters
    ----------
    a : Tensor, shape (..., N, N)
        Only the triangle is read, and only it gets a gradient.
    b : Tensor, shape (N,) or (..., N, K)
        Vectors are never stacked, so that no case is ambiguous.
    trans : {0, 1, 2, "N", "T", "C"}
        Solve with `a`, its transpose, or its conjugate transpose.
    lower : bool
        Read the lower triangle.
    unit_diagonal : bool
        Take the diagonal for ones, and do not read it.

    Returns
    -------
    Tensor, of the shape of `b`, stacked

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, shapes that do not fit, and another `trans`.
    """
    name = "solve_triangular"
    a, b = as_tensors(f"scipy.linalg.{name}", a, b)
    a = _checked(name, "a", a)
    b, vector = _right_side(name, b, a.shape[-1], "a")
    _batches(name, a=a, b=b)
    known = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}
    how = known.get(trans) if isinstance(trans, (int, str)) and not isinstance(trans, bool) else None
    if how is None:
        msg = f"scipy.linalg.{name}: `trans` must be one of 0, 1, 2, 'N', 'T', 'C', but got {shown(trans)}"
        raise ValueError(msg)
    lower, unit_diagonal = (
        as_flag(x, f"scipy.linalg.{name}", argument) for x, argument in ((lower, "lower"), (unit_diagonal, "unit_diagonal"))
    )
    a, b = _together(name, a, b)
    if how == 2 and a.dtype.is_complex:
        a = conj(a)
    return _solution(_equations._linalg_solve_triangular(a, b, how != 0, lower, unit_diagonal), vector)


@_front
def cho_factor(a: Tensor, lower: bool = False) -> tuple[Tensor, bool]:
    """The triangular factor of a Hermitian positive definite matrix, for `cho_solve` (`scipy.linalg.cho_factor`).

    Parameters
    ----------
    a : Tensor, shape (..., N, N)
        The gradient is Hermitian, as if both triangles were read.
    lower : bool
        Return the lower triangle.

    Returns
    -------
    c : Tensor, shape (..., N, N)
        Zero in the other triangle, where SciPy's holds anything.
    lower : bool
    """
    lower = as_flag(lower, "scipy.linalg.cho_factor", "lower")
    return cholesky(_matrix("cho_factor", "a", a), upper=not lower), lower


@_front
def cho_solve(c_and_lower: tuple[Tensor, bool], b: Tensor) -> Tensor:
    """The solution of ``a @ x == b`` from the factor of `a` (`scipy.linalg.cho_solve`).

    Parameters
    ----------
    c_and_lower : (Tensor, bool)
        As `cho_factor` returns it; only the triangle is read.
    b : Tensor, shape (N,) or (..., N, K)

    Returns
    -------
    Tensor, of the shape of `b`, stacked

    Raises
    ------
    TypeError, ValueError
        For what is not a pair, not a Tensor or an array, and shapes that do not fit.
    """
    if not isinstance(c_and_lower, (tuple, list)) or len(c_and_lower) != 2:
        msg = f"scipy.linalg.cho_solve: `c_and_lower` must be the pair that `cho_factor` returns, but got {shown(c_and_lower)}"
        raise TypeError(msg)
    c, lower = c_and_lower
    lower = as_flag(lower, "scipy.linalg.cho_solve", "lower")
    c, b = as_tensors("scipy.linalg.cho_solve", c, b)
    c = _checked("cho_solve", "c", c)
    b, vector = _right_side("cho_solve", b, c.shape[-1], "c")
    first = solve_triangular(c, b, trans=0 if lower else 2, lower=lower)
    return _solution(solve_triangular(c, first, trans=2 if lower else 0, lower=lower), vector)


@_front
def solve_banded(l_and_u: tuple[int, int], ab: Tensor, b: Tensor) -> Tensor:
    """The solution of ``a @ x == b`` for a banded matrix (`scipy.linalg.solve_banded`).

    Parameters
    ----------
    l_and_u : (int, int)
        The numbers of diagonals below and above the main one.
    ab : Tensor, shape (..., l + u + 1, M)
        The diagonals: ``ab[u + i - j, j] == a[i, j]``. What lies beyond the corners of `a` is not read, and gets the gradient 0.
    b : Tensor, shape (M,) or (..., M, K)

    Returns
    -------
    Tensor, of the shape of `b`, stacked

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, and shapes that do not fit.
    """
    name = "solve_banded"
    if not isinstance(l_and_u, (tuple, list)) or len(l_and_u) != 2:
        msg = f"scipy.linalg.{name}: `l_and_u` must be a pair of ints, but got {shown(l_and_u)}"
        raise TypeError(msg)
    below, above = (as_int(n, f"scipy.linalg.{name}", "l_and_u") for n in l_and_u)
    ab, b = as_tensors(f"scipy.linalg.{name}", ab, b)
    ab = _checked(name, "ab", ab, square=False)
    if below < 0 or above < 0 or ab.shape[-2] != below + above + 1:
        msg = (
            f"scipy.linalg.{name}: `ab` must have {below} + {above} + 1 rows, a diagonal each, for `l_and_u` = {tuple(l_and_u)}, which must "
            f"not be negative, but has shape {ab.shape}"
        )
        raise ValueError(msg)
    b, vector = _right_side(name, b, ab.shape[-1], "ab")
    _batches(name, ab=ab, b=b)
    ab, b = _together(name, ab, b)
    return _solution(_equations._linalg_solve_banded(ab, b, below, above), vector)


# -- Sylvester's and Lyapunov's equations ------------------------------------------------------------------------------------------------


@_front
def solve_sylvester(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """The solution of Sylvester's equation ``a @ x + x @ b == q`` (`scipy.linalg.solve_sylvester`; Bartels and Stewart 1972).

    Parameters
    ----------
    a : Tensor, shape (..., M, M)
    b : Tensor, shape (..., N, N)
    q : Tensor, shape (..., M, N)

    Returns
    -------
    Tensor, shape (..., M, N)

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, and shapes that do not fit.
    LinAlgError
        NumPy's, if an eigenvalue of `a` is minus one of `b`: the solution is not unique. (SciPy returns huge numbers.)

    Notes
    -----
    SciPy computes in the host's memory. Without SciPy, and elsewhere, one linear system of all M N elements is solved: time grows with
    the cube of that number.
    """
    name = "solve_sylvester"
    a, b, q = as_tensors(f"scipy.linalg.{name}", a, b, q)
    a, b, q = _checked(name, "a", a), _checked(name, "b", b), _checked(name, "q", q, square=False)
    if q.shape[-2:] != (a.shape[-1], b.shape[-1]):
        wanted = f"(..., {a.shape[-1]}, {b.shape[-1]})"
        msg = f"scipy.linalg.{name}: `q` must have shape {wanted} to fit `a` and `b`, but has shape {q.shape}"
        raise ValueError(msg)
    _batches(name, a=a, b=b, q=q)
    return _equations._linalg_solve_sylvester(*_together(name, a, b, q))


def _of_lyapunov(name: str, a: Any, q: Any) -> tuple[Any, Any]:
    a, q = as_tensors(f"scipy.linalg.{name}", a, q)
    a, q = _checked(name, "a", a), _checked(name, "q", q)
    if a.shape[-1] != q.shape[-1]:
        msg = f"scipy.linalg.{name}: `q` must have matrices of the shape of those of `a`, but the shapes are {a.shape} and {q.shape}"
        raise ValueError(msg)
    _batches(name, a=a, q=q)
    return tuple(_together(name, a, q))  # type: ignore[return-value]


@_front
def solve_continuous_lyapunov(a: Tensor, q: Tensor) -> Tensor:
    """The solution of Lyapunov's equation ``a @ x + x @ a^H == q`` (`scipy.linalg.solve_continuous_lyapunov`); see `solve_sylvester`.

    Parameters
    ----------
    a, q : Tensor, shape (..., M, M)

    Returns
    -------
    Tensor, shape (..., M, M)

    Raises
    ------
    TypeError, ValueError, LinAlgError
        As `solve_sylvester`.
    """
    a, q = _of_lyapunov("solve_continuous_lyapunov", a, q)
    return _equations._linalg_solve_sylvester(a, _adjoint(a), q)


#: SciPy's older name.
solve_lyapunov = solve_continuous_lyapunov


@_front
def solve_discrete_lyapunov(a: Tensor, q: Tensor, method: Literal["direct", "bilinear"] | None = None) -> Tensor:
    """The solution of the discrete Lyapunov equation ``a @ x @ a^H - x + q == 0`` (`scipy.linalg.solve_discrete_lyapunov`).

    Parameters
    ----------
    a, q : Tensor, shape (..., M, M)
    method : {"direct", "bilinear"}, optional
        By one system of all elements, or by a continuous equation. Default: as SciPy, "direct" up to M = 9, "bilinear" beyond.

    Returns
    -------
    Tensor, shape (..., M, M)

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, shapes that do not fit, and another method.
    """
    name = "solve_discrete_lyapunov"
    a, q = _of_lyapunov(name, a, q)
    if method is not None:
        check_choice(method, ("direct", "bilinear"), f"scipy.linalg.{name}", "method")
    n = a.shape[-1]
    identity = operations.eye(n, dtype=a.dtype, device=a.device)
    if method == "bilinear" or (method is None and n >= 10):
        turned = _adjoint(a)
        inverse = inv(turned + identity)
        half = matmul(turned - identity, inverse)
        right = matmul(matmul(inv(a + identity), q), inverse) * 2.0
        return _equations._linalg_solve_sylvester(_adjoint(half), half, -right)
    other = conj(a) if a.dtype.is_complex else a
    whole = reshape(a, (*a.shape[:-2], n, 1, n, 1)) * reshape(other, (*a.shape[:-2], 1, n, 1, n))
    whole = operations.eye(n * n, dtype=a.dtype, device=a.device) - reshape(whole, (*a.shape[:-2], n * n, n * n))
    x = solve(whole, reshape(q, (*q.shape[:-2], n * n, 1)))
    return reshape(x, (*x.shape[:-2], n, n))


# -- least squares --------------------------------------------------------------------------------------------------------------------------


@_front
def lstsq(a: Tensor, b: Tensor, cond: float | None = None) -> LstsqResult:
    """The shortest of the vectors that minimise the length of ``a @ x - b`` (`scipy.linalg.lstsq`).

    Parameters
    ----------
    a : Tensor, shape (..., M, N)
    b : Tensor, shape (M,) or (..., M, K)
    cond : float, optional
        Singular values up to `cond` times the largest count as 0. Default: the dtype's eps.

    Returns
    -------
    x : Tensor, shape (N,) or (..., N, K)
    residues : Tensor, shape () or (..., K), or (0,)
        The squares of the lengths of ``a @ x - b`` for M > N. (SciPy's are empty if the rank is not full; here a shape does not depend on
        values.) Else empty.
    rank : Tensor, shape (...)
        Integers.
    s : Tensor, shape (..., min(M, N))
        The singular values, descending.

    Raises
    ------
    TypeError, ValueError
        For what is not a Tensor or an array, shapes that do not fit, and a `cond` that is no number.

    Notes
    -----
    Computed by singular values (SciPy's default is LAPACK's ``gelsd``, which does so too). `x` is differentiable where the rank does not
    change nearby: for full rank of columns or of rows, and along changes that keep a rank that is not full (Golub and Pereyra 1973). `s` is
    differentiable as `xpgrad.linalg.svdvals` is.
    """
    name = "lstsq"
    a, b = as_tensors(f"scipy.linalg.{name}", a, b)
    a = _checked(name, "a", a, square=False)
    b, vector = _right_side(name, b, a.shape[-2], "a")
    batch = _batches(name, a=a, b=b)
    rtol = _tolerance(name, cond, a)
    a, b = _together(name, a, b)
    rows, columns = a.shape[-2:]
    a, b = (x if x.shape[:-2] == batch else broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    if 0 in (rows, columns):
        x = matmul(operations.zeros((*batch, columns, rows), dtype=a.dtype, device=a.device), b)
        s = operations.zeros((*batch, 0), dtype=_abs(a.detach()).dtype, device=a.device)
        rank = operations.zeros(batch, dtype=a.default_dtype("indexing"), device=a.device)
    else:
        x, s = _equations._linalg_lstsq(a, b, rtol)
        raw = s.detach()
        rank = total(raw > raw[..., :1] * rtol, axis=-1, dtype=a.default_dtype("indexing"))
    if rows > columns:
        gap = _abs(b - matmul(a, x))
        residues = total(gap * gap, axis=-2)
        residues = reshape(residues, residues.shape[:-1]) if vector else residues
    else:
        residues = operations.zeros(0, dtype=_abs(a.detach()).dtype, device=a.device)
    return LstsqResult(_solution(x, vector), residues, rank, s)


def _tolerance(name: str, cond: Any, x: Any) -> float:
    if cond is None:
        return float(finfo(x.dtype).eps)
    scalar = as_scalar(cond)
    if scalar is NOT_SCALAR or isinstance(scalar, (bool, complex)):
        msg = f"scipy.linalg.{name}: `cond` must be a real number or None, but got {shown(cond)}"
        raise TypeError(msg)
    return float(scalar)


# -- matrices of vectors and of blocks -------------------------------------------------------------------------------------------------------


def _vector(name: str, argument: str, x: Any) -> Any:
    if x.ndim < 1:
        msg = f"scipy.linalg.{name}: `{argument}` must be a vector, or a stack of them, but has shape {x.shape}"
        raise ValueError(msg)
    return x


def _picked(x: Any, rows: int, columns: int, offset: int, step: int) -> Any:
    """The matrix of the elements of a vector at ``offset + step * i - j`` (``+ j`` for a negative `step`), modulo its length."""
    i = operations.arange(rows, device=x.device)
    j = operations.arange(columns, device=x.device)
    where = reshape(i, (rows, 1)) + offset - reshape(j, (1, columns)) * step
    where = operations.remainder(where, max(x.shape[-1], 1))
    return reshape(operations.take(x, reshape(where, (rows * columns,)), axis=-1), (*x.shape[:-1], rows, columns))


def _pair(name: str, c: Any, r: Any) -> tuple[Any, Any]:
    c, r = (_vector(name, argument, x) for argument, x in zip("cr", as_tensors(f"scipy.linalg.{name}", c, r)))
    batch = common_shape(c.shape[:-1], r.shape[:-1], name=f"scipy.linalg.{name}")
    c, r = unify(f"scipy.linalg.{name}", [c, r])
    return tuple(  # type: ignore[return-value]
        x if x.shape[:-1] == batch else broadcast_to(x, (*batch, x.shape[-1])) for x in (c, r)
    )


@_front
def toeplitz(c: Tensor, r: Tensor | None = None) -> Tensor:
    """The matrix with constant diagonals whose first column is `c` and whose first row is `r` (`scipy.linalg.toeplitz`).

    Parameters
    ----------
    c : Tensor, shape (..., M)
    r : Tensor, shape (..., N), optional
        Its first element is not read. Default: the conjugate of `c`.

    Returns
    -------
    Tensor, shape (..., M, N)
    """
    if r is None:
        c = _vector("toeplitz", "c", as_tensor("scipy.linalg.toeplitz", c))
        r = conj(c) if c.dtype.is_complex else c
    c, r = _pair("toeplitz", c, r)
    m, n = c.shape[-1], r.shape[-1]
    whole = concat([operations.flip(r[..., 1:], axis=-1), c], axis=-1)
    return _picked(whole, m, n, max(n - 1, 0), 1)


@_front
def circulant(c: Tensor) -> Tensor:
    """The matrix whose columns are `c`, each moved on by one (`scipy.linalg.circulant`).

    Parameters
    ----------
    c : Tensor, shape (..., N)

    Returns
    -------
    Tensor, shape (..., N, N)
    """
    c = _vector("circulant", "c", as_tensor("scipy.linalg.circulant", c))
    return _picked(c, c.shape[-1], c.shape[-1], 0, 1)


@_front
def hankel(c: Tensor, r: Tensor | None = None) -> Tensor:
    """The matrix with constant antidiagonals whose first column is `c` and whose last row is `r` (`scipy.linalg.hankel`).

    Parameters
    ----------
    c : Tensor, shape (..., M)
    r : Tensor, shape (..., N), optional
        Its first element is not read. Default: zeros, as many as `c` has elements.

    Returns
    -------
    Tensor, shape (..., M, N)
    """
    c = _vector("hankel", "c", as_tensor("scipy.linalg.hankel", c))
    c, r = _pair("hankel", c, operations.zeros_like(c) if r is None else r)
    whole = concat([c, r[..., 1:]], axis=-1)
    return _picked(whole, c.shape[-1], r.shape[-1], 0, -1)


@_front
def block_diag(*arrs: Tensor) -> Tensor:
    """The matrix with the given ones along its diagonal, and zeros elsewhere (`scipy.linalg.block_diag`).

    Parameters
    ----------
    *arrs : Tensor, shape (..., M, N), (N,) or ()
        A vector is a matrix of one row, also an empty one; a number is one of one element.

    Returns
    -------
    Tensor, shape (..., the sum of M, the sum of N)
        Without arguments an empty matrix of one row, as SciPy's.
    """
    if not arrs:
        return operations.zeros((1, 0))
    xs = [x if x.ndim > 1 else reshape(x, (1, x.size)) for x in as_tensors("scipy.linalg.block_diag", *arrs)]
    xs = _together("block_diag", *xs)
    try:
        batch = common_shape(*(x.shape[:-2] for x in xs))
    except ValueError as exc:
        msg = f"scipy.linalg.block_diag: the axes before the last two do not broadcast together: the shapes are {[x.shape for x in xs]}"
        raise ValueError(msg) from exc
    width, left, rows = sum(x.shape[-1] for x in xs), 0, []
    for x in xs:
        x = x if x.shape[:-2] == batch else broadcast_to(x, (*batch, *x.shape[-2:]))
        sides = ((*batch, x.shape[-2], n) for n in (left, width - left - x.shape[-1]))
        before, behind = (operations.zeros(shape, dtype=x.dtype, device=x.device) for shape in sides)
        rows.append(concat([before, x, behind], axis=-1))
        left += x.shape[-1]
    return concat(rows, axis=-2)

