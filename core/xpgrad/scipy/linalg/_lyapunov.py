"""The equations of Sylvester and Lyapunov, whose unknown is a matrix."""

from __future__ import annotations

from typing import Any, Literal

from xpgrad._basics.arguments import check_choice
from xpgrad._operations.lift import as_tensors
from xpgrad._rows.namespace import operations
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import inv, matmul, solve
from xpgrad.rules.elementwise import conj
from xpgrad.rules.manipulation import reshape
from xpgrad.scipy.linalg import _equation_rows as _rows
from xpgrad.scipy.linalg._operands import adjoint, batches, checked, front, together


@front
def solve_sylvester(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """Solve Sylvester's equation ``a @ x + x @ b == q`` (`scipy.linalg.solve_sylvester`; Bartels and Stewart 1972).

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

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> a, b = xp.asarray([[1.0, 0.0], [0.0, 3.0]]), xp.asarray([[1.0]])
    >>> q = xp.tensor([[4.0], [8.0]], requires_grad=True)
    >>> x = linalg.solve_sylvester(a, b, q)
    >>> x.detach()  # of a @ x + x @ b == q
    tensor([[2.],
            [2.]])
    >>> x.sum().backward()
    >>> q.grad
    tensor([[0.5 ],
            [0.25]])
    """
    name = "solve_sylvester"
    a, b, q = as_tensors(f"scipy.linalg.{name}", a, b, q)
    a, b, q = checked(name, "a", a), checked(name, "b", b), checked(name, "q", q, square=False)
    if q.shape[-2:] != (a.shape[-1], b.shape[-1]):
        wanted = f"(..., {a.shape[-1]}, {b.shape[-1]})"
        msg = f"scipy.linalg.{name}: `q` must have shape {wanted} to fit `a` and `b`, but has shape {q.shape}"
        raise ValueError(msg)
    batches(name, a=a, b=b, q=q)
    return _rows._linalg_solve_sylvester(*together(name, a, b, q))


def _of_lyapunov(name: str, a: Any, q: Any) -> tuple[Any, Any]:
    a, q = as_tensors(f"scipy.linalg.{name}", a, q)
    a, q = checked(name, "a", a), checked(name, "q", q)
    if a.shape[-1] != q.shape[-1]:
        msg = f"scipy.linalg.{name}: `q` must have matrices of the shape of those of `a`, but the shapes are {a.shape} and {q.shape}"
        raise ValueError(msg)
    batches(name, a=a, q=q)
    return tuple(together(name, a, q))


@front
def solve_continuous_lyapunov(a: Tensor, q: Tensor) -> Tensor:
    """Solve Lyapunov's equation ``a @ x + x @ a^H == q`` (`scipy.linalg.solve_continuous_lyapunov`).

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

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> rate = xp.tensor(-0.5, requires_grad=True)
    >>> x = linalg.solve_continuous_lyapunov(rate * xp.eye(2), -xp.eye(2))
    >>> x.detach() + 0.0  # the covariance of a process that falls back at this rate
    tensor([[1., 0.],
            [0., 1.]])
    >>> x[0, 0].backward()
    >>> rate.grad
    tensor(2.)
    """
    a, q = _of_lyapunov("solve_continuous_lyapunov", a, q)
    return _rows._linalg_solve_sylvester(a, adjoint(a), q)


#: SciPy's older name.
solve_lyapunov = solve_continuous_lyapunov


@front
def solve_discrete_lyapunov(a: Tensor, q: Tensor, method: Literal["direct", "bilinear"] | None = None) -> Tensor:
    """Solve the discrete Lyapunov equation ``a @ x @ a^H - x + q == 0`` (`scipy.linalg.solve_discrete_lyapunov`).

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

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> a = xp.tensor([[0.5]], requires_grad=True)
    >>> x = linalg.solve_discrete_lyapunov(a, xp.asarray([[3.0]]))
    >>> x.detach()  # 3 / (1 - a**2)
    tensor([[4.]])
    >>> x.sum().backward()
    >>> a.grad
    tensor([[5.3333]])
    """
    name = "solve_discrete_lyapunov"
    a, q = _of_lyapunov(name, a, q)
    if method is not None:
        check_choice(method, ("direct", "bilinear"), f"scipy.linalg.{name}", "method")
    n = a.shape[-1]
    identity = operations.eye(n, dtype=a.dtype, device=a.device)
    if method == "bilinear" or (method is None and n >= 10):
        turned = adjoint(a)
        inverse = inv(turned + identity)
        half = matmul(turned - identity, inverse)
        right = matmul(matmul(inv(a + identity), q), inverse) * 2.0
        return _rows._linalg_solve_sylvester(adjoint(half), half, -right)
    other = conj(a) if a.dtype.is_complex else a
    whole = reshape(a, (*a.shape[:-2], n, 1, n, 1)) * reshape(other, (*a.shape[:-2], 1, n, 1, n))
    whole = operations.eye(n * n, dtype=a.dtype, device=a.device) - reshape(whole, (*a.shape[:-2], n * n, n * n))
    x = solve(whole, reshape(q, (*q.shape[:-2], n * n, 1)))
    return reshape(x, (*x.shape[:-2], n, n))
