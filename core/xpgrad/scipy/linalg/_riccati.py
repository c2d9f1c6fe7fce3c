"""Solvers of the algebraic Riccati equations of optimal control, in continuous and in discrete time.

Their derivative solves a Lyapunov equation of the closed loop ``a - b @ k``: since the gain `k` minimises the cost, its own change does
not count (Lancaster and Rodman, *Algebraic Riccati Equations*, 1995).
"""

from __future__ import annotations

from typing import Any

from xpgrad._operations.lift import as_tensors
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import inv, matmul, solve
from xpgrad.rules.factorisations import adjoint as adjoint_of, identity_like
from xpgrad.scipy._declare import row_only
from xpgrad.scipy.linalg._hosts import by_the_host_of_matrices
from xpgrad.scipy.linalg._operands import adjoint, broadcast_batch, check_matrix, promote, register

#: Steps of the doubling algorithm, whose error is squared in each; a double has 52 bits.
_STEPS = 60


# -- rows ----------------------------------------------------------------------------------------------------------------------------


def _double(xp: Any, a: Any, g: Any, q: Any) -> Any:
    """Solve ``x == q + a^H @ x @ inv(1 + g @ x) @ a`` by doubling (Chu, Fan, Lin and Wang 2004)."""
    eye = identity_like(a, xp)
    for _ in range(_STEPS):
        w = xp.linalg.inv(eye + g @ q)
        a, g, q = a @ w @ a, g + a @ w @ g @ adjoint_of(a, xp), q + adjoint_of(a, xp) @ q @ w @ a
    return q


def _discrete(xp: Any, a: Any, b: Any, q: Any, r: Any) -> Any:
    return _double(xp, a, b @ xp.linalg.inv(r) @ adjoint_of(b, xp), q)


def _continuous(xp: Any, a: Any, b: Any, q: Any, r: Any) -> Any:
    """Solve the continuous equation as the discrete one of its Cayley transform."""
    eye = identity_like(a, xp)
    size = eye * (xp.max(xp.sum(xp.abs(a), axis=-1, keepdims=True), axis=-2, keepdims=True) + 1.0)  # no eigenvalue of `a`
    g = b @ xp.linalg.inv(r) @ adjoint_of(b, xp)
    left = xp.linalg.inv(a - size)
    right = xp.linalg.inv(adjoint_of(a, xp) - size + q @ left @ g)
    return _double(xp, eye + size @ adjoint_of(right, xp) * 2.0, size @ left @ g @ right * 2.0, size @ right @ q @ left * 2.0)


def _closed_loop(g: Any, a: Any, b: Any, r: Any, x: Any, discrete: bool, xp: Any) -> tuple[Any, Any, Any]:
    """Return the solution of the adjoint Lyapunov equation, the gain, and the matrix that the change of the closed loop meets."""
    if not discrete:
        gain = xp.linalg.solve(r, adjoint_of(b, xp) @ x)
        loop = a - b @ gain
        return xp.special_linalg_solve_sylvester(loop, adjoint_of(loop, xp), -g), gain, x
    ahead = adjoint_of(b, xp) @ x
    gain = xp.linalg.solve(r + ahead @ b, ahead @ a)
    loop = a - b @ gain
    eye, loop_h = identity_like(a, xp), adjoint_of(loop, xp)
    # The bilinear transformation makes it a continuous equation: the loop is stable, so that -1 is no eigenvalue.
    back = xp.linalg.inv(loop_h + eye)
    half = (loop_h - eye) @ back
    right = adjoint_of(back, xp) @ g @ back * 2.0
    return xp.special_linalg_solve_sylvester(adjoint_of(half, xp), half, -right), gain, x @ loop


def _by_a(g: Any, a: Any, b: Any, r: Any, out: Any, a_shape: Any, discrete: bool, xp: Any) -> Any:
    back, _, meets = _closed_loop(g, a, b, r, out, discrete, xp)
    return xp.sum_to(meets @ (back + adjoint_of(back, xp)), a_shape)


def _by_b(g: Any, a: Any, b: Any, r: Any, out: Any, b_shape: Any, discrete: bool, xp: Any) -> Any:
    back, gain, meets = _closed_loop(g, a, b, r, out, discrete, xp)
    return xp.sum_to(-(meets @ (back + adjoint_of(back, xp)) @ adjoint_of(gain, xp)), b_shape)


def _by_q(g: Any, a: Any, b: Any, r: Any, out: Any, q_shape: Any, discrete: bool, xp: Any) -> Any:
    return xp.sum_to(_closed_loop(g, a, b, r, out, discrete, xp)[0], q_shape)


def _by_r(g: Any, a: Any, b: Any, r: Any, out: Any, r_shape: Any, discrete: bool, xp: Any) -> Any:
    back, gain, _ = _closed_loop(g, a, b, r, out, discrete, xp)
    return xp.sum_to(gain @ back @ adjoint_of(gain, xp), r_shape)


_ON_THE_HOST = {
    discrete: by_the_host_of_matrices(f"solve_{time}_are", "(m,m),(m,n),(m,m),(n,n)->(m,m)", composed)
    for discrete, time, composed in ((False, "continuous", _continuous), (True, "discrete", _discrete))
}


@row_only(
    _by_a, _by_b, _by_q, _by_r, composed=lambda xp, a, b, q, r, discrete: _ON_THE_HOST[discrete](xp, a, b, q, r), conj=False,
    elementwise=False, batch="broadcast", fresh=False,
)  # fmt: skip
def _linalg_solve_are(a: Any, b: Any, q: Any, r: Any, discrete: bool) -> Any:
    """Solve a Riccati equation, the one in discrete time if `discrete`; only the Hermitian parts of `q` and `r` are given."""


# -- functions -----------------------------------------------------------------------------------------------------------------------


def _solve(name: str, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any) -> Tensor:
    """Check the operands, reduce the general equation to that without `e` and `s`, and solve it."""
    given = {"a": a, "b": b, "q": q, "r": r} | ({} if e is None else {"e": e}) | ({} if s is None else {"s": s})
    given = dict(zip(given, as_tensors(f"scipy.linalg.{name}", *given.values())))
    given = {k: check_matrix(name, k, x, square=k not in "bs") for k, x in given.items()}
    m, n = given["b"].shape[-2:]
    for k, shape in {"a": (m, m), "q": (m, m), "r": (n, n), "e": (m, m), "s": (m, n)}.items():
        if k in given and given[k].shape[-2:] != shape:
            wanted = f"(..., {shape[0]}, {shape[1]})"
            msg = f"scipy.linalg.{name}: `{k}` must have shape {wanted} to fit `b`, but has shape {given[k].shape}"
            raise ValueError(msg)
    broadcast_batch(name, **given)
    given = dict(zip(given, promote(name, *given.values())))
    a, b, q, r = (given[k] for k in "abqr")
    q, r = ((x + adjoint(x)) * 0.5 for x in (q, r))
    if e is not None:  # the unknown is then y == e^H @ x @ e
        a, b = solve(given["e"], a), solve(given["e"], b)
    if s is not None:
        shift = solve(r, adjoint(given["s"]))
        a, q = a - matmul(b, shift), q - matmul(given["s"], shift)
        q = (q + adjoint(q)) * 0.5
    x = _linalg_solve_are(a, b, q, r, name == "solve_discrete_are")
    if e is not None:
        back = inv(given["e"])
        x = matmul(matmul(adjoint(back), x), back)
    return x


@register
def solve_continuous_are(
    a: Tensor, b: Tensor, q: Tensor, r: Tensor, e: Tensor | None = None, s: Tensor | None = None, balanced: bool = True
) -> Tensor:
    """Solve the continuous algebraic Riccati equation (`scipy.linalg.solve_continuous_are`).

    It is ``e^H @ x @ a + a^H @ x @ e - (e^H @ x @ b + s) @ inv(r) @ (b^H @ x @ e + s^H) + q == 0``. For a linear system with the state
    ``dz/dt == a @ z + b @ u``, the control ``u == -inv(r) @ b^H @ x @ z`` minimises the integral of ``z^H @ q @ z + u^H @ r @ u``.

    Parameters
    ----------
    a : Tensor, shape (..., M, M)
        Matrix of the system. Differentiable.
    b : Tensor, shape (..., M, N)
        Matrix of the control. Differentiable.
    q : Tensor, shape (..., M, M)
        Cost of the state. Differentiable; only its Hermitian part counts.
    r : Tensor, shape (..., N, N)
        Cost of the control, nonsingular. Differentiable; only its Hermitian part counts.
    e : Tensor, shape (..., M, M), optional
        Matrix of the derivative by the time, nonsingular. Differentiable. Default: the identity.
    s : Tensor, shape (..., M, N), optional
        Cost of products of state and control. Differentiable. Default: 0.
    balanced : bool
        As in SciPy, which decides how it scales; the solution is the same.

    Returns
    -------
    Tensor, shape (..., M, M)
        The stabilising solution, Hermitian, in the common dtype of the arguments.

    Raises
    ------
    TypeError
        An argument is neither a Tensor nor an array.
    ValueError
        The shapes do not fit. (SciPy also raises it if `q` or `r` is not Hermitian.)
    LinAlgError
        There is no stabilising solution. The class is NumPy's.

    See Also
    --------
    solve_discrete_are : The equation of control in steps.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> one = xp.asarray([[1.0]])
    >>> q = xp.tensor([[3.0]], requires_grad=True)
    >>> x = linalg.solve_continuous_are(one, one, q, one)
    >>> x.detach()  # 2 x - x**2 + 3 == 0
    tensor([[3.]])
    >>> x.sum().backward()
    >>> q.grad  # 1 / (2 x - 2)
    tensor([[0.25]])
    """
    return _solve("solve_continuous_are", a, b, q, r, e, s)


@register
def solve_discrete_are(
    a: Tensor, b: Tensor, q: Tensor, r: Tensor, e: Tensor | None = None, s: Tensor | None = None, balanced: bool = True
) -> Tensor:
    """Solve the discrete algebraic Riccati equation (`scipy.linalg.solve_discrete_are`).

    It is ``a^H @ x @ a - e^H @ x @ e - (a^H @ x @ b + s) @ inv(r + b^H @ x @ b) @ (b^H @ x @ a + s^H) + q == 0``.

    Parameters
    ----------
    a, b, q, r, e, s, balanced
        As for `solve_continuous_are`; each step is ``e @ z_next == a @ z + b @ u``.

    Returns
    -------
    Tensor, shape (..., M, M)
        The stabilising solution, Hermitian, in the common dtype of the arguments.

    Raises
    ------
    TypeError, ValueError, LinAlgError
        As for `solve_continuous_are`.

    See Also
    --------
    solve_continuous_are : The equation of control at each time.

    Examples
    --------
    The gradient of a cost by a parameter of the system:

    >>> import xpgrad as xp
    >>> from xpgrad.scipy import linalg
    >>> one = xp.asarray([[1.0]])
    >>> a = xp.tensor([[1.0]], requires_grad=True)
    >>> x = linalg.solve_discrete_are(a, one, one, one)
    >>> x.detach()  # x**2 - x - 1 == 0
    tensor([[1.618]])
    >>> x.sum().backward()
    >>> a.grad
    tensor([[1.4472]])
    """
    return _solve("solve_discrete_are", a, b, q, r, e, s)
