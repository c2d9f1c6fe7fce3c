"""Rows of matrix functions: the exponential, the logarithm and the square root.

The derivative of a matrix function is a block of the same function of a matrix twice as large, or the solution of a linear equation. Each
formula therefore uses rows again, which gives derivatives of every order. The last two axes are the matrix, the others are batch axes.
"""

from __future__ import annotations

import math
from typing import Any

from xpgrad._array.kernels import read_number
from xpgrad._backends.classes import host_backend
from xpgrad.rules.elementwise import nan_unless
from xpgrad.rules.factorisations import identity_like, zero_unless_finite
from xpgrad.scipy._declare import row_only
from xpgrad.scipy.linalg._hosts import by_the_host_of_matrices, values_are_known


def _one_norm(x: Any, xp: Any) -> Any:
    """Return the 1-norm of matrices, the largest absolute column sum, with axes of length 1."""
    return xp.max(xp.sum(xp.abs(x), axis=-2, keepdims=True), axis=-1, keepdims=True)


# -- derivatives as blocks -------------------------------------------------------------------------------------------------


def _scale(xp: Any, x: Any, change: Any, least: float) -> Any:
    """Return the power of two that scales `change` to about the norm of `x`, or to `least` if that is larger."""
    size, wanted = _one_norm(change, xp), _one_norm(x, xp)
    wanted = xp.where(wanted > least, wanted, xp.zeros_like(wanted) + least)
    regular = (size > 0) & (wanted > 0) & xp.isfinite(size) & xp.isfinite(wanted)
    one = xp.ones_like(size)
    steps = xp.floor(xp.log2(xp.where(regular, wanted, one)) - xp.log2(xp.where(regular, size, one)))
    most = 100.0 if float(xp.finfo(size.dtype).max) < 1e100 else 900.0
    return xp.pow(one * 2.0, xp.where(steps > most, one * most, xp.where(steps < -most, one * -most, steps)))


@row_only(None, None, composed=_scale, elementwise=False, batch="stacked")
def _linalg_scale(x: Any, change: Any, least: float) -> Any:
    """Return the power of two that scales a tangent to the norm of the matrix, or to `least` if that is larger; it has no derivative."""


def _frechet(row: str, x: Any, change: Any, xp: Any, least: float) -> Any:
    """Return the Fréchet derivative of a matrix function at `x` in the direction `change`.

    It is a block of the function of a matrix twice as large (Higham, "Functions of Matrices" (2008), theorem 3.6). The direction is first
    scaled to the norm of the matrix, which the linear derivative permits, so that the function costs no more than at `x`.
    """
    if 0 in x.shape:
        return xp.zeros_like(change)
    scale = xp.special_linalg_scale(x, change, least)
    axis, n = len(x.shape) - 1, x.shape[-1]
    above = xp.join([x, change * scale], axis)
    below = xp.join([xp.zeros_like(x), x], axis)
    return getattr(xp, row)(xp.join([above, below], axis - 1))[..., :n, n:] / scale


# -- the exponential ---------------------------------------------------------------------------------------------------------

#: Numerator coefficients of the [13/13] Padé approximant of exp, and the norm up to which it has double precision (Higham, "The scaling
#: and squaring method for the matrix exponential revisited" (2005)).
_PADE = [math.comb(13, k) * math.factorial(26 - k) / math.factorial(26) for k in range(14)]
_REACH = 4.25
#: Absolute value of the first coefficient of its backward error.
_ERROR = 1.0 / (math.comb(26, 13) * math.factorial(27))
#: Number of squarings if norms cannot be read.
_SQUARINGS = 40


def _multiply_repeatedly(x: Any, factor: Any, count: int) -> Any:
    """Return ``x * factor**count`` by repeated products, since the power itself might overflow."""
    for _ in range(count):
        x = x * factor
    return x


def _log2(x: Any, xp: Any) -> Any:
    """Return the logarithm to base 2; for 0, a large negative number."""
    return xp.where(x > 0, xp.log2(xp.where(x > 0, x, xp.ones_like(x))), xp.zeros_like(x) - 4096.0)


def _ceil_or_zero(x: Any, xp: Any) -> Any:
    """Round up, and replace negative numbers by 0."""
    return xp.where(x > 0, xp.ceil(x), xp.zeros_like(x))


def _expm(xp: Any, x: Any) -> Any:
    """Compute matrix exponentials; lazy arrays in host memory go through a callback, which can read norms."""
    backend = xp._backend
    if 0 in x.shape:
        return xp.zeros_like(x)
    known = values_are_known(xp, x)
    if not known and backend.on_host(backend.device_of(x)):
        return backend.through_host("linalg.expm", _expm_of_the_host, x, signature="(m,m)->(m,m)")
    return _scale_and_square(xp, x, known)


def _expm_of_the_host(x: Any) -> Any:
    """Compute matrix exponentials of an array of the host's library."""
    return _expm(host_backend().kernels, x)


def _scale_and_square(xp: Any, given: Any, known: bool) -> Any:
    """Compute matrix exponentials by scaling and squaring; `known` says whether norms can be read."""
    finite, x = zero_unless_finite(xp.wide(given), xp)
    size = _one_norm(x, xp)
    if known and read_number(xp, xp.max(size)) <= _REACH:
        x2 = x @ x
        x4 = x2 @ x2
        out = _pade(xp, x, x2, x4, x4 @ x2)
    else:
        *powers, count = _scale_and_powers(x, size, xp)
        out = _pade(xp, *powers)
        for k in range(int(read_number(xp, xp.max(count))) if known else _SQUARINGS):
            out = xp.where(count > k, out @ out, out)
        finite = finite if known else finite & (count <= _SQUARINGS)
    out = nan_unless(finite, out, xp)
    return out if x.dtype == given.dtype else xp.cast(out, given.dtype)


def _pade(xp: Any, x: Any, x2: Any, x4: Any, x6: Any) -> Any:
    """Return the Padé approximant of exp for a matrix of norm up to `_REACH`, given its even powers."""
    c, identity = _PADE, identity_like(x, xp)
    odd = x @ (x6 @ (x6 * c[13] + x4 * c[11] + x2 * c[9]) + x6 * c[7] + x4 * c[5] + x2 * c[3] + identity * c[1])
    even = x6 @ (x6 * c[12] + x4 * c[10] + x2 * c[8]) + x6 * c[6] + x4 * c[4] + x2 * c[2] + identity
    return xp.linalg.solve(even - odd, even + odd)


def _scale_and_powers(x: Any, size: Any, xp: Any) -> tuple[Any, ...]:
    """Return matrices divided by powers of two, their even powers, and the exponents, which are the numbers of squarings."""
    # Al-Mohy and Higham, "A new scaling and squaring algorithm for the matrix exponential" (2009): the norms of powers determine the
    # scaling. For a matrix far from normal this is less than its own norm suggests.
    one = xp.ones_like(size)
    halvings = _ceil_or_zero(_log2(size, xp), xp)
    x = x * xp.pow(one * 2.0, -halvings)  # so that no power overflows
    x2 = x @ x
    x4 = x2 @ x2
    x6 = x4 @ x2
    root6, root8, root10 = (_log2(_one_norm(power, xp), xp) / order for power, order in ((x6, 6), (x4 @ x4, 8), (x4 @ x6, 10)))
    early = xp.where(root6 > root8, root6, root8)
    late = xp.where(root8 > root10, root8, root10)
    count = _ceil_or_zero(xp.where(early < late, early, late) + halvings - math.log2(_REACH), xp)
    sizes = xp.abs(x)
    sums = xp.sum(sizes, axis=-2, keepdims=True)
    size = xp.max(sums, axis=-1, keepdims=True)
    for _ in range(26):
        sums = sums @ sizes
    error = xp.max(sums, axis=-1, keepdims=True) / xp.where(size > 0, size, one)
    error = _log2(error, xp) + math.log2(_ERROR / float(xp.finfo(one.dtype).eps)) + 1.0
    count = count + _ceil_or_zero(error / 26.0 + halvings - count, xp)
    back = xp.pow(one * 2.0, halvings - count)
    return (*(_multiply_repeatedly(power, back, k) for power, k in ((x, 1), (x2, 2), (x4, 4), (x6, 6))), count)


@row_only(
    lambda g, x, xp: _frechet("special_linalg_expm", xp.swap_last(x), g, xp, 1.0), composed=_expm,
    jvp=lambda d_x, x, xp: _frechet("special_linalg_expm", x, d_x, xp, 1.0), elementwise=False, batch="stacked",
)  # fmt: skip
def _linalg_expm(x: Any) -> Any:
    """Return the exponentials of square matrices."""


# -- the logarithm and the square root --------------------------------------------------------------------------------------------


@row_only(
    lambda g, x, xp: _frechet("special_linalg_logm", xp.swap_last(x), g, xp, 0.0), composed=by_the_host_of_matrices("logm", "(m,m)->(m,m)"),
    jvp=lambda d_x, x, xp: _frechet("special_linalg_logm", x, d_x, xp, 0.0), elementwise=False, batch="stacked",
)  # fmt: skip
def _linalg_logm(x: Any) -> Any:
    """Return the principal logarithms of square matrices; nan for real matrices whose logarithm is not real."""


def _root_vjp(g: Any, out: Any, xp: Any) -> Any:
    # The tangent d of the root solves ``d @ out + out @ d == tangent of x``.
    out_t = xp.swap_last(out)
    return xp.special_linalg_solve_sylvester(out_t, out_t, g)


@row_only(
    _root_vjp, composed=by_the_host_of_matrices("sqrtm", "(m,m)->(m,m)"),
    jvp=lambda d_x, out, xp: xp.special_linalg_solve_sylvester(out, out, d_x), elementwise=False, batch="stacked",
)  # fmt: skip
def _linalg_sqrtm(x: Any) -> Any:
    """Return the principal square roots of square matrices; nan for real matrices whose root is not real."""
