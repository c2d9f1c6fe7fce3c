"""Rows of linear equations: triangular and banded systems, the Sylvester equation, and least squares.

The vjp of a solution solves the same equation with the transposed matrices, which gives derivatives of every order. The last two axes are
the matrix. The axes before them broadcast, except in least squares, in which they are equal.
"""

from __future__ import annotations

from typing import Any

from xpgrad.rules.elementwise import nan_unless
from xpgrad.rules.factorisations import adjoint, identity_like, zero_unless_finite
from xpgrad.rules.matrices import pseudoinverse_vjp, truncates
from xpgrad.scipy._declare import row_only
from xpgrad.scipy.linalg._hosts import by_the_host_of_matrices


def identity_near(x: Any, n: int, xp: Any) -> Any:
    """Return the identity matrix of size `n` in the dtype and on the device of a raw array `x`."""
    return identity_like(xp.zeros_near(x, (n, n)), xp)


# -- triangular matrices -----------------------------------------------------------------------------------------------------------


def _read_triangle(x: Any, lower: bool, unit: bool, xp: Any) -> Any:
    """Return the lower or upper triangle of `x`, without the diagonal if `unit` (a solver then takes it as ones)."""
    return xp.lower(x, -1 if unit else 0) if lower else xp.upper(x, 1 if unit else 0)


def _triangular(xp: Any, a: Any, b: Any, transposed: bool, lower: bool, unit: bool) -> Any:
    """Solve a triangular system by the library's general solver; the options are those of `solve_triangular`."""
    a = _read_triangle(a, lower, unit, xp)
    if unit:
        a = a + identity_like(a, xp)
    if transposed:
        a = xp.matrix_transpose(a)
    if lower is transposed:
        return xp.linalg.solve(a, b)
    # With rows and columns reversed, the lower triangle is an upper one. Elimination by the general solver then has nothing to do, and
    # only the back substitution remains.
    return xp.flip(xp.linalg.solve(xp.flip(a, axis=(-2, -1)), xp.flip(b, axis=-2)), axis=-2)


def _triangular_left(g: Any, a: Any, out: Any, a_shape: Any, transposed: bool, lower: bool, unit: bool, xp: Any) -> Any:
    back = xp.special_linalg_solve_triangular(a, g, not transposed, lower, unit)
    product = out @ xp.swap_last(back) if transposed else back @ xp.swap_last(out)
    return xp.sum_to(-_read_triangle(product, lower, unit, xp), a_shape)


def _triangular_right(g: Any, a: Any, b_shape: Any, transposed: bool, lower: bool, unit: bool, xp: Any) -> Any:
    return xp.sum_to(xp.special_linalg_solve_triangular(a, g, not transposed, lower, unit), b_shape)


def _triangular_jvp(d_a: Any, d_b: Any, a: Any, out: Any, transposed: bool, lower: bool, unit: bool, xp: Any) -> Any:
    """Return the tangent of the solution of a triangular system."""
    change = None if d_b is None else xp.broadcast_to(d_b, out.shape)
    if d_a is not None:
        d_a = _read_triangle(d_a, lower, unit, xp)
        part = -((xp.swap_last(d_a) if transposed else d_a) @ out)
        change = part if change is None else change + part
    return xp.special_linalg_solve_triangular(a, change, transposed, lower, unit)


@row_only(
    _triangular_left, _triangular_right, composed=_triangular, jvp=_triangular_jvp, elementwise=False, batch="broadcast", fresh=False
)  # fmt: skip
def _linalg_solve_triangular(a: Any, b: Any, transposed: bool, lower: bool, unit: bool) -> Any:
    """Solve ``a @ x == b``, or ``a.T @ x == b`` if `transposed`, reading one triangle of `a`."""


# -- the Sylvester equation ----------------------------------------------------------------------------------------------------------


def _by_kronecker(xp: Any, a: Any, b: Any, q: Any) -> Any:
    """Solve the Sylvester equation as one linear system for all elements of the solution, row by row."""
    m, n = a.shape[-1], b.shape[-1]
    left = a[..., :, None, :, None] * identity_near(b, n, xp)[:, None, :]
    right = identity_near(a, m, xp)[:, None, :, None] * xp.matrix_transpose(b)[..., None, :, None, :]
    whole = left + right
    whole = xp.reshape(whole, (*whole.shape[:-4], m * n, m * n))
    found = xp.linalg.solve(whole, xp.reshape(q, (*q.shape[:-2], m * n, 1)))
    return xp.reshape(found, (*found.shape[:-2], m, n))


def _solve_adjoint_sylvester(g: Any, a: Any, b: Any, xp: Any) -> Any:
    return xp.special_linalg_solve_sylvester(xp.swap_last(a), xp.swap_last(b), g)


def _sylvester_jvp(d_a: Any, d_b: Any, d_q: Any, a: Any, b: Any, out: Any, xp: Any) -> Any:
    """Return the tangent of the solution of the Sylvester equation."""
    change = None if d_q is None else xp.broadcast_to(d_q, out.shape)
    for part in (None if d_a is None else d_a @ out, None if d_b is None else out @ d_b):
        if part is not None:
            change = -part if change is None else change - part
    return xp.special_linalg_solve_sylvester(a, b, change)


@row_only(
    lambda g, a, b, out, a_shape, xp: xp.sum_to(-(_solve_adjoint_sylvester(g, a, b, xp) @ xp.swap_last(out)), a_shape),
    lambda g, a, b, out, b_shape, xp: xp.sum_to(-(xp.swap_last(out) @ _solve_adjoint_sylvester(g, a, b, xp)), b_shape),
    lambda g, a, b, q_shape, xp: xp.sum_to(_solve_adjoint_sylvester(g, a, b, xp), q_shape),
    composed=by_the_host_of_matrices("solve_sylvester", "(m,m),(n,n),(m,n)->(m,n)", _by_kronecker), jvp=_sylvester_jvp,
    elementwise=False, batch="broadcast", fresh=False,
)  # fmt: skip
def _linalg_solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Solve ``a @ x + x @ b == q``."""


# -- banded matrices -----------------------------------------------------------------------------------------------------------------


def _shift(x: Any, steps: int, xp: Any) -> Any:
    """Shift the last axis to the left by `steps` places (to the right if negative), and fill with zeros."""
    if steps == 0:
        return x
    axis, n = len(x.shape) - 1, x.shape[-1]
    blank = xp.zeros_like(x)
    return xp.join([x[..., steps:], blank[..., :steps]] if steps > 0 else [blank[..., steps:], x[..., : n + steps]], axis)


def _transpose_band(ab: Any, lower: int, upper: int, xp: Any) -> Any:
    """Return the diagonals of the transpose in SciPy's order, for a matrix with `lower` diagonals below its main one and `upper` above."""
    # Diagonals beyond the corners are empty: shifts are limited to the length of the axis.
    n = ab.shape[-1]
    rows = [_shift(ab[..., k, :], max(-n, min(n, upper - k)), xp)[..., None, :] for k in range(lower + upper, -1, -1)]
    return xp.join(rows, len(ab.shape) - 2)


def _product_in_band(left: Any, right: Any, lower: int, upper: int, xp: Any) -> Any:
    """Return the diagonals of ``left @ right.mT`` within the band of `lower` diagonals below the main one and `upper` above."""
    left, right = xp.swap_last(left), xp.swap_last(right)
    n = left.shape[-1]
    rows = []
    for k in range(lower + upper + 1):
        row = _shift(left, max(-n, min(n, k - upper)), xp) * right
        rows.append(xp.reduce_sum(row, (len(row.shape) - 2,), True))
    return xp.join(rows, len(rows[0].shape) - 2)


def _solve_dense(xp: Any, ab: Any, b: Any, lower: int, upper: int) -> Any:
    """Solve a banded system, whose diagonals are the rows of `ab`, as a dense one; `lower` and `upper` are their numbers."""
    n = ab.shape[-1]
    places = xp.reshape(xp.count_up(ab, 0, n, 1), (n,))
    gap = places[:, None] - places[None, :]
    whole = xp.zeros_like(ab[..., :1, :] * identity_near(ab, n, xp))
    for k in range(lower + upper + 1):
        whole = xp.where(gap == k - upper, ab[..., k : k + 1, :] + xp.zeros_like(whole), whole)
    return xp.linalg.solve(whole, b)


def _solve_adjoint_banded(g: Any, ab: Any, lower: int, upper: int, xp: Any) -> Any:
    return xp.special_linalg_solve_banded(_transpose_band(ab, lower, upper, xp), g, upper, lower)


def _banded_left(g: Any, ab: Any, out: Any, ab_shape: Any, lower: int, upper: int, xp: Any) -> Any:
    return xp.sum_to(-_product_in_band(_solve_adjoint_banded(g, ab, lower, upper, xp), out, lower, upper, xp), ab_shape)


@row_only(
    _banded_left, lambda g, ab, b_shape, lower, upper, xp: xp.sum_to(_solve_adjoint_banded(g, ab, lower, upper, xp), b_shape),
    composed=by_the_host_of_matrices("solve_banded", "(d,m),(m,k)->(m,k)", _solve_dense), elementwise=False, batch="broadcast", fresh=False,
)  # fmt: skip
def _linalg_solve_banded(ab: Any, b: Any, lower: int, upper: int) -> Any:
    """Solve ``a @ x == b``, given the diagonals `ab` of `a`."""


# -- least squares -------------------------------------------------------------------------------------------------------------------


def _least_squares(xp: Any, a: Any, b: Any, rtol: float) -> Any:
    """Return the minimum-norm solution and the singular values; nan for matrices that are not finite."""
    finite, a = zero_unless_finite(a, xp)
    u, s, vh = xp.linalg.svd(a, full_matrices=False)
    counts = s > s[..., :1] * rtol
    weights = xp.where(counts, 1.0 / xp.where(counts, s, xp.ones_like(s)), xp.zeros_like(s))
    x = adjoint(vh, xp) @ ((adjoint(u, xp) @ b) * weights[..., :, None])
    return nan_unless(finite, x, xp), nan_unless(finite[..., 0], s, xp)


def _least_squares_left(g: Any, a: Any, b: Any, out: Any, rtol: float, xp: Any) -> Any:
    """Return the cotangent of the matrix of `lstsq` from those of the solution and the singular values; None if both are missing."""
    # Golub and Pereyra, "The differentiation of pseudo-inverses ..." (1973), eq. 4.12, multiplied by the right-hand side.
    (gx, gs), total = g, None
    finite, a = zero_unless_finite(a, xp)
    if gs is not None:
        u, _, vh = xp.singular_triples(a, False)
        total = (u * gs[..., None, :]) @ vh
    if gx is not None:
        x, inverse = out[0], xp.pseudoinverse(a, rtol)
        if truncates(rtol, a, xp):
            part = pseudoinverse_vjp(gx @ adjoint(b, xp), a, inverse, rtol, xp)
        else:  # the same with the residual, which is accurate where it is small
            inverse_h = adjoint(inverse, xp)
            back = inverse_h @ gx
            part = (b - a @ x) @ adjoint(inverse @ back, xp) - back @ adjoint(x, xp)
            part = part + (inverse_h @ x) @ adjoint(gx - inverse @ (a @ gx), xp)
        total = part if total is None else total + part
    return None if total is None else nan_unless(finite, total, xp)


def _least_squares_right(g: Any, a: Any, rtol: float, xp: Any) -> Any:
    if g[0] is None:
        return None
    finite, a = zero_unless_finite(a, xp)
    return nan_unless(finite, adjoint(xp.pseudoinverse(a, rtol), xp) @ g[0], xp)


@row_only(_least_squares_left, _least_squares_right, composed=_least_squares, outputs=2, conj=False, elementwise=False, batch="stacked")
def _linalg_lstsq(a: Any, b: Any, rtol: float) -> Any:
    """Return the minimum-norm least-squares solution of ``a @ x == b`` and the singular values of `a`; the batch axes are equal."""
