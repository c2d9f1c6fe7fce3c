"""Rows of matrix functions: the exponential, the logarithm, the square root, and the polar decomposition.

A derivative of a matrix function is a block of the same function of a matrix twice as large, or solves a linear equation, so that all
orders follow. Matrices are the last two axes, all axes before them form a stack.
"""

from __future__ import annotations

import math
from typing import Any

from xpgrad._backends.classes import host_backend
from xpgrad.rules.factorisations import adjoint, identity_like, skew
from xpgrad.scipy._declare import row_only
from xpgrad.scipy.linalg._hosts import by_the_host_of_matrices, values_are_known


def finite_only(x: Any, xp: Any) -> tuple[Any, Any]:
    """Return a mask of the finite matrices, and the matrices with zeros for others, on which libraries raise or hang."""
    finite = xp.all(xp.isfinite(x), axis=(-2, -1), keepdims=True)
    return finite, xp.where(finite, x, xp.zeros_like(x))


def kept(finite: Any, out: Any, xp: Any) -> Any:
    """Return a result with NaN for the matrices that are not finite."""
    return xp.where(finite, out, xp.zeros_like(out) + math.nan)


def _size(x: Any, xp: Any) -> Any:
    """Return the norm of order 1, the largest column sum of absolute values, with axes of length 1."""
    return xp.max(xp.sum(xp.abs(x), axis=-2, keepdims=True), axis=-1, keepdims=True)


# -- derivatives as blocks -------------------------------------------------------------------------------------------------


def _scale(xp: Any, x: Any, change: Any, least: float) -> Any:
    size, wanted = _size(change, xp), _size(x, xp)
    wanted = xp.where(wanted > least, wanted, xp.zeros_like(wanted) + least)
    there = (size > 0) & (wanted > 0) & xp.isfinite(size) & xp.isfinite(wanted)
    one = xp.ones_like(size)
    steps = xp.floor(xp.log2(xp.where(there, wanted, one)) - xp.log2(xp.where(there, size, one)))
    most = 100.0 if float(xp.finfo(size.dtype).max) < 1e100 else 900.0
    return xp.pow(one * 2.0, xp.where(steps > most, one * most, xp.where(steps < -most, one * -most, steps)))


@row_only(None, None, composed=_scale, elementwise=False, batch="stacked")
def _linalg_scale(x: Any, change: Any, least: float) -> Any:
    """Return a constant power of two that scales the change of a matrix to the size of the matrix, or to `least`."""


def _derive(row: str, x: Any, change: Any, xp: Any, least: float) -> Any:
    """Return the derivative of a function of matrices along a change: a block of the function (Higham 2008, theorem 3.6).

    It is linear in the change, which is first scaled to the size of the matrix, so that the function needs no more accuracy than for the
    matrix itself.
    """
    scale = xp.special_linalg_scale(x, change, least)
    axis, n = len(x.shape) - 1, x.shape[-1]
    above = xp.join([x, change * scale], axis)
    below = xp.join([xp.zeros_like(x), x], axis)
    return getattr(xp, row)(xp.join([above, below], axis - 1))[..., :n, n:] / scale


# -- the exponential ---------------------------------------------------------------------------------------------------------

#: The coefficients of the numerator of the [13/13] Padé approximant of exp, and up to which norm it has double precision: Higham, "The
#: scaling and squaring method for the matrix exponential revisited" (2005).
_PADE = [math.comb(13, k) * math.factorial(26 - k) / math.factorial(26) for k in range(14)]
_REACH = 4.25
#: The absolute value of the first coefficient of its backward error.
_ERROR = 1.0 / (math.comb(26, 13) * math.factorial(27))
#: How often matrices are squared at most where their norms are not known.
_SQUARINGS = 40


def _times(x: Any, factor: Any, count: int) -> Any:
    """Return ``x * factor**count`` without overflow of the power."""
    for _ in range(count):
        x = x * factor
    return x


def _log2(x: Any, xp: Any) -> Any:
    """Return the binary logarithm; a large negative number for 0."""
    return xp.where(x > 0, xp.log2(xp.where(x > 0, x, xp.ones_like(x))), xp.zeros_like(x) - 4096.0)


def _steps(x: Any, xp: Any) -> Any:
    """Round numbers up, with 0 for negative ones."""
    return xp.where(x > 0, xp.ceil(x), xp.zeros_like(x))


def _expm(xp: Any, x: Any) -> Any:
    backend = xp._backend
    if 0 in x.shape:
        return xp.zeros_like(x)
    known = values_are_known(xp, x)
    if not known and backend.on_host(backend.device_of(x)):
        return backend.through_host("linalg.expm", _expm_of_the_host, x, signature="(m,m)->(m,m)")
    return _scale_and_square(xp, x, known)


def _expm_of_the_host(x: Any) -> Any:
    return _expm(host_backend().kernels, x)


def _scale_and_square(xp: Any, given: Any, known: bool) -> Any:
    finite, x = finite_only(xp.wide(given), xp)
    size = _size(x, xp)
    if known and float(xp.max(size)) <= _REACH:
        x2 = x @ x
        x4 = x2 @ x2
        out = _pade(xp, x, x2, x4, x4 @ x2)
    else:
        *powers, count = _scale_down(x, size, xp)
        out = _pade(xp, *powers)
        for k in range(int(xp.max(count)) if known else _SQUARINGS):
            out = xp.where(count > k, out @ out, out)
        finite = finite if known else finite & (count <= _SQUARINGS)
    out = kept(finite, out, xp)
    return out if x.dtype == given.dtype else xp.cast(out, given.dtype)


def _pade(xp: Any, x: Any, x2: Any, x4: Any, x6: Any) -> Any:
    """Return the Padé approximant of a matrix of norm up to `_REACH` from its even powers."""
    c, identity = _PADE, identity_like(x, xp)
    odd = x @ (x6 @ (x6 * c[13] + x4 * c[11] + x2 * c[9]) + x6 * c[7] + x4 * c[5] + x2 * c[3] + identity * c[1])
    even = x6 @ (x6 * c[12] + x4 * c[10] + x2 * c[8]) + x6 * c[6] + x4 * c[4] + x2 * c[2] + identity
    return xp.linalg.solve(even - odd, even + odd)


def _scale_down(x: Any, size: Any, xp: Any) -> tuple[Any, ...]:
    """Divide matrices by powers of two; return them, their even powers, and the numbers of squarings."""
    # Al-Mohy and Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009): the norms of powers say how much a
    # matrix must be scaled, which for one that is far from normal is less than its own norm says.
    one = xp.ones_like(size)
    halvings = _steps(_log2(size, xp), xp)
    x = x * xp.pow(one * 2.0, -halvings)  # so that no power overflows
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    root6, root8, root10 = (_log2(_size(power, xp), xp) / order for power, order in ((x6, 6), (x4 @ x4, 8), (x4 @ x6, 10)))
    early = xp.where(root6 > root8, root6, root8)
    late = xp.where(root8 > root10, root8, root10)
    count = _steps(xp.where(early < late, early, late) + halvings - math.log2(_REACH), xp)
    sizes = xp.abs(x)
    sums = xp.sum(sizes, axis=-2, keepdims=True)
    size = xp.max(sums, axis=-1, keepdims=True)
    for _ in range(26):
        sums = sums @ sizes
    error = xp.max(sums, axis=-1, keepdims=True) / xp.where(size > 0, size, one)
    error = _log2(error, xp) + math.log2(_ERROR / float(xp.finfo(one.dtype).eps)) + 1.0
    count = count + _steps(error / 26.0 + halvings - count, xp)
    back = xp.pow(one * 2.0, halvings - count)
    return (*(_times(power, back, k) for power, k in ((x, 1), (x2, 2), (x4, 4), (x6, 6))), count)


@row_only(
    lambda g, x, xp: _derive("special_linalg_expm", xp.swap_last(x), g, xp, 1.0), composed=_expm,
    jvp=lambda d_x, x, xp: _derive("special_linalg_expm", x, d_x, xp, 1.0), elementwise=False, batch="stacked",
)  # fmt: skip
def _linalg_expm(x: Any) -> Any:
    """Compute the exponentials of square matrices."""


# -- the logarithm and the square root --------------------------------------------------------------------------------------------


@row_only(
    lambda g, x, xp: _derive("special_linalg_logm", xp.swap_last(x), g, xp, 0.0), composed=by_the_host_of_matrices("logm", "(m,m)->(m,m)"),
    jvp=lambda d_x, x, xp: _derive("special_linalg_logm", x, d_x, xp, 0.0), elementwise=False, batch="stacked",
)  # fmt: skip
def _linalg_logm(x: Any) -> Any:
    """Compute the principal logarithms of square matrices; NaN for a real matrix whose logarithm is complex."""


def _root_vjp(g: Any, out: Any, xp: Any) -> Any:
    # The change of the root solves ``d @ out + out @ d == change``.
    turned = xp.swap_last(out)
    return xp.special_linalg_solve_sylvester(turned, turned, g)


@row_only(
    _root_vjp, composed=by_the_host_of_matrices("sqrtm", "(m,m)->(m,m)"),
    jvp=lambda d_x, out, xp: xp.special_linalg_solve_sylvester(out, out, d_x), elementwise=False, batch="stacked",
)  # fmt: skip
def _linalg_sqrtm(x: Any) -> Any:
    """Compute the principal square roots of square matrices; NaN for a real matrix whose root is complex."""


# -- the polar decomposition ------------------------------------------------------------------------------------------------------


def _halves(xp: Any, p: Any, q: Any) -> Any:
    finite, p = finite_only(p, xp)
    if 0 in q.shape:
        return xp.zeros_like(q)
    values, vectors = xp.linalg.eigh(p)
    sums = values[..., None, :] + values[..., :, None]
    regular = xp.abs(sums) > xp.max(xp.abs(values), axis=-1)[..., None, None] * (float(xp.finfo(values.dtype).eps) * p.shape[-1])
    inner = adjoint(vectors, xp) @ q @ vectors
    inner = xp.where(regular, inner / xp.where(regular, sums, xp.ones_like(sums)), xp.zeros_like(inner) + math.nan)
    return kept(finite, vectors @ inner @ adjoint(vectors, xp), xp)


def _halves_left(g: Any, p: Any, out: Any, xp: Any) -> Any:
    back, turned = xp.special_linalg_halves(xp.swap_last(p), g), xp.swap_last(out)
    return -(back @ turned + turned @ back)


@row_only(
    _halves_left, lambda g, p, xp: xp.special_linalg_halves(xp.swap_last(p), g), composed=_halves, elementwise=False, batch="stacked"
)  # fmt: skip
def _linalg_halves(p: Any, q: Any) -> Any:
    """Solve Lyapunov's equation ``p @ x + x @ p == q`` for Hermitian `p`; NaN if two eigenvalues of `p` add up to 0."""


def _polar(xp: Any, x: Any) -> Any:
    finite, x = finite_only(x, xp)
    if 0 in x.shape:
        return x, xp.swap_last(x) @ x
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    v = adjoint(vh, xp)
    p = (v * s[..., None, :]) @ vh
    return kept(finite, u @ vh, xp), kept(finite, (p + adjoint(p, xp)) / 2, xp)


def _polar_vjp(g: Any, x: Any, out: Any, xp: Any) -> Any:
    # ``p @ p == x^H @ x``, and the change of u is u times a skew matrix, and what is orthogonal to u: divisions are by sums of singular
    # values only, so that equal ones do no harm.
    (gu, gp), (u, p) = g, out
    total = None
    if gp is not None:
        half = xp.special_linalg_halves(p, (gp + adjoint(gp, xp)) / 2)
        total = x @ (half + adjoint(half, xp))
    if gu is not None:
        turn = skew(adjoint(u, xp) @ gu, xp)
        part = u @ xp.special_linalg_halves(p, turn)
        if x.shape[-2] > x.shape[-1]:
            beside = adjoint(xp.solve_matrix(p, adjoint(gu, xp)), xp)
            part = part + beside - u @ (adjoint(u, xp) @ beside)
        total = part if total is None else total + part
    return total


@row_only(_polar_vjp, composed=_polar, outputs=2, conj=False, elementwise=False, batch="stacked")
def _linalg_polar(x: Any) -> Any:
    """Compute the unitary and the positive factor of matrices with at least as many rows as columns: ``u @ p == x``."""
