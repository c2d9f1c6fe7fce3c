"""Solvers of the Sylvester and Lyapunov equations, whose unknown is a matrix."""

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
from xpgrad.scipy.linalg._operands import adjoint, broadcast_batch, check_matrix, promote, register


@register
def solve_sylvester(a: Tensor, b: Tensor, q: Tensor) -> Tensor:
    """Solve the Sylvester equation ``a @ x + x @ b == q`` (`scipy.linalg.solve_sylvester`).

    Parameters
    ----------
    a : Tensor, shape (..., M, M)
        Left matrix. Differentiable.
    b : Tensor, shape (..., N, N)
        Right matrix. Differentiable.
    q : Tensor, shape (..., M, N)
        Right-hand side. Differentiable.

    Returns
    -------
    Tensor, shape (..., M, N)
        In the common dtype of the arguments.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array.
    ValueError
        The shapes do not fit.
    LinAlgError
        An eigenvalue of `a` is minus an eigenvalue of `b`, so that the solution is not unique. The class is NumPy's. (SciPy returns huge
        numbers.)

    See Also
    --------
    solve_continuous_lyapunov : ``b`` is the conjugate transpose of `a`.

    Notes
    -----
    SciPy computes it in host memory (Bartels and Stewart 1972). Without SciPy, or elsewhere, one linear system of M N unknowns is solved,
    in time proportional to ``(M * N)**3``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> a, b = xp.asarray([[1.0, 0.0], [0.0, 3.0]]), xp.asarray([[1.0]])
    >>> q = xp.tensor([[4.0], [8.0]], requires_grad=True)
    >>> x = linalg.solve_sylvester(a, b, q)
    >>> x.detach()  # a @ x + x @ b == q
    tensor([[2.],
            [2.]])
    >>> x.sum().backward()
    >>> q.grad
    tensor([[0.5 ],
            [0.25]])
    """
    name = "solve_sylvester"
    a, b, q = as_tensors(f"scipy.linalg.{name}", a, b, q)
    a, b, q = check_matrix(name, "a", a), check_matrix(name, "b", b), check_matrix(name, "q", q, square=False)
    if q.shape[-2:] != (a.shape[-1], b.shape[-1]):
        wanted = f"(..., {a.shape[-1]}, {b.shape[-1]})"
        msg = f"scipy.linalg.{name}: `q` must have shape {wanted} to fit `a` and `b`, but has shape {q.shape}"
        raise ValueError(msg)
    broadcast_batch(name, a=a, b=b, q=q)
    return _rows._linalg_solve_sylvester(*promote(name, a, b, q))


def _as_operands(name: str, a: Any, q: Any) -> tuple[Any, Any]:
    """Return `a` and `q` as square matrices of one shape and dtype, and raise ValueError if they do not fit."""
    a, q = as_tensors(f"scipy.linalg.{name}", a, q)
    a, q = check_matrix(name, "a", a), check_matrix(name, "q", q)
    if a.shape[-1] != q.shape[-1]:
        msg = f"scipy.linalg.{name}: `q` must have matrices of the shape of those of `a`, but the shapes are {a.shape} and {q.shape}"
        raise ValueError(msg)
    broadcast_batch(name, a=a, q=q)
    return tuple(promote(name, a, q))


@register
def solve_continuous_lyapunov(a: Tensor, q: Tensor) -> Tensor:
    """Solve the continuous Lyapunov equation ``a @ x + x @ a^H == q`` (`scipy.linalg.solve_continuous_lyapunov`).

    Parameters
    ----------
    a, q : Tensor, shape (..., M, M)
        Coefficient matrix and right-hand side. Differentiable.

    Returns
    -------
    Tensor, shape (..., M, M)
        In the common dtype of the arguments.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array.
    ValueError
        The shapes do not fit.
    LinAlgError
        Two eigenvalues ``v`` and ``w`` of `a` satisfy ``v + conj(w) == 0``, so that the solution is not unique. The class is NumPy's.

    See Also
    --------
    solve_sylvester : The general equation, which computes this one.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> rate = xp.tensor(-0.5, requires_grad=True)
    >>> x = linalg.solve_continuous_lyapunov(rate * xp.eye(2), -xp.eye(2))
    >>> x.detach() + 0.0  # the covariance of a process with this decay rate
    tensor([[1., 0.],
            [0., 1.]])
    >>> x[0, 0].backward()
    >>> rate.grad
    tensor(2.)
    """
    a, q = _as_operands("solve_continuous_lyapunov", a, q)
    return _rows._linalg_solve_sylvester(a, adjoint(a), q)


#: SciPy's older name.
solve_lyapunov = solve_continuous_lyapunov


@register
def solve_discrete_lyapunov(a: Tensor, q: Tensor, method: Literal["direct", "bilinear"] | None = None) -> Tensor:
    """Solve the discrete Lyapunov equation ``a @ x @ a^H - x + q == 0`` (`scipy.linalg.solve_discrete_lyapunov`).

    Parameters
    ----------
    a, q : Tensor, shape (..., M, M)
        Coefficient matrix and constant term. Differentiable.
    method : {"direct", "bilinear"}, optional
        "direct" solves one linear system of all M**2 unknowns; "bilinear" transforms to a continuous equation. Default, as in SciPy:
        "direct" for M < 10, else "bilinear".

    Returns
    -------
    Tensor, shape (..., M, M)
        In the common dtype of the arguments.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array.
    ValueError
        The shapes do not fit, or `method` is another value.

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
    a, q = _as_operands(name, a, q)
    if method is not None:
        check_choice(method, ("direct", "bilinear"), f"scipy.linalg.{name}", "method")
    n = a.shape[-1]
    identity = operations.eye(n, dtype=a.dtype, device=a.device)
    if method == "bilinear" or (method is None and n >= 10):
        a_h = adjoint(a)
        inverse = inv(a_h + identity)
        half = matmul(a_h - identity, inverse)
        right = matmul(matmul(inv(a + identity), q), inverse) * 2.0
        return _rows._linalg_solve_sylvester(adjoint(half), half, -right)
    other = conj(a) if a.dtype.is_complex else a
    whole = reshape(a, (*a.shape[:-2], n, 1, n, 1)) * reshape(other, (*a.shape[:-2], 1, n, 1, n))
    whole = operations.eye(n * n, dtype=a.dtype, device=a.device) - reshape(whole, (*a.shape[:-2], n * n, n * n))
    x = solve(whole, reshape(q, (*q.shape[:-2], n * n, 1)))
    return reshape(x, (*x.shape[:-2], n, n))
