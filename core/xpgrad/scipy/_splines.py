"""Building blocks of piecewise polynomials: tridiagonal systems as a row, and the slopes of interpolants at their knots.

A cubic between two knots follows from the values and slopes there (Hermite). The slopes of splines solve a tridiagonal system that says
that the second derivative is continuous: de Boor, "A Practical Guide to Splines" (1978), chapter IV. Those of monotone interpolants are
means of neighbouring differences: Fritsch and Butland, "A method for constructing local monotone piecewise cubic interpolants" (1984);
Akima, "A new method of interpolation and smooth curve fitting based on local procedures" (1970).
"""

from __future__ import annotations

from typing import Any

from xpgrad._rows.namespace import operations as ops
from xpgrad.scipy._declare import on_the_host, row_only

# -- tridiagonal systems -------------------------------------------------------------------------------------------------


def _embed(x: Any, start: int, length: int, xp: Any) -> Any:
    """Place `x` at `start` among zeros along the last axis, which gets the given length."""
    return xp.index_basic_transpose(x, (..., slice(start, start + x.shape[-1])), (*x.shape[:-1], length))


def _transpose_bands(bands: Any, xp: Any) -> Any:
    """Return the bands of the transpose of a tridiagonal matrix."""
    n = bands.shape[-1]
    lower, middle, upper = (bands[..., i, :] for i in range(3))
    return xp.pile([_embed(upper[..., :-1], 1, n, xp), middle, _embed(lower[..., 1:], 0, n, xp)], len(bands.shape) - 2)


def _bands_vjp(g: Any, bands: Any, out: Any, bands_shape: Any, xp: Any) -> Any:
    """Return the cotangent of the bands of a tridiagonal system with the solution `out`."""
    u = xp.special_tridiagonal(_transpose_bands(bands, xp), g)
    n = out.shape[-2]
    last = (len(u.shape) - 1,)
    lower = _embed(xp.reduce_sum(u[..., 1:, :] * out[..., :-1, :], last, False), 1, n, xp)
    upper = _embed(xp.reduce_sum(u[..., :-1, :] * out[..., 1:, :], last, False), 0, n, xp)
    middle = xp.reduce_sum(u * out, last, False)
    return xp.sum_to(-xp.pile([lower, middle, upper], len(u.shape) - 2), bands_shape)


def _product(bands: Any, x: Any, xp: Any) -> Any:
    """Return the product of the tridiagonal matrix with the given bands and the matrix `x`."""
    lower, middle, upper = (bands[..., i, :, None] for i in range(3))
    inside = middle * x
    count, rest = x.shape[-2], (*inside.shape[:-2], x.shape[-2], x.shape[-1])
    below = xp.index_basic_transpose(lower[..., 1:, :] * x[..., :-1, :], (..., slice(1, count), slice(0, x.shape[-1])), rest)
    above = xp.index_basic_transpose(upper[..., :-1, :] * x[..., 1:, :], (..., slice(0, count - 1), slice(0, x.shape[-1])), rest)
    return inside + below + above


def _jvp(d_bands: Any, d_rhs: Any, bands: Any, out: Any, xp: Any) -> Any:
    if d_bands is None:
        return xp.special_tridiagonal(bands, d_rhs)
    change = -_product(d_bands, out, xp)
    return xp.special_tridiagonal(bands, change if d_rhs is None else d_rhs + change)


def _kernel(xp: Any, bands: Any, rhs: Any) -> Any:
    """Solve a tridiagonal system by SciPy if possible, else as a dense system."""
    found = on_the_host(xp, "tridiagonal", bands, rhs)
    if found is not None:
        return found
    # The cost of a dense system grows with the cube of the number of knots.
    n = bands.shape[-1]
    i = xp.count_up(bands, 0, n, 1)
    row, column = i[:, None], i[None, :]
    lower, middle, upper = (bands[..., k, :, None] for k in range(3))
    zero = xp.zeros_like(middle)
    matrix = xp.where(row == column, middle, xp.where(row == column + 1, lower, xp.where(row + 1 == column, upper, zero)))
    return xp.linalg.solve(matrix, rhs)


@row_only(
    _bands_vjp, lambda g, bands, rhs_shape, xp: xp.sum_to(xp.special_tridiagonal(_transpose_bands(bands, xp), g), rhs_shape),
    composed=_kernel, jvp=_jvp, elementwise=False, batch="broadcast",
)  # fmt: skip
def _tridiagonal(bands: Any, rhs: Any) -> Any:
    """Solve ``bands[0, i] x[i - 1] + bands[1, i] x[i] + bands[2, i] x[i + 1] == rhs[i]`` for the columns of `rhs`."""


# -- slopes --------------------------------------------------------------------------------------------------------------


def spline_slopes(x: Any, y: Any, left: Any, right: Any) -> Any:
    """Return the slopes of the cubic spline through points.

    Parameters
    ----------
    x : Tensor, shape (n,)
    y : Tensor, shape (n, m)
    left, right : str or (order, Tensor of shape (m,))
        The conditions at the ends: ``"not-a-knot"``, both ``"periodic"``, or the value of a derivative.
    """
    n = x.shape[0]
    dx = x[1:] - x[:-1]
    slope = (y[1:] - y[:-1]) / dx[:, None]
    if left == "periodic":
        return _periodic(dx, slope)
    if n == 2:
        left, right = ((1, slope[0]) if end == "not-a-knot" else end for end in (left, right))
    if n == 3 and left == right == "not-a-knot":
        return _parabola(dx, slope)
    first, second = _end_equation(left, dx, slope, 1.0), _end_equation(right, ops.flip(dx), ops.flip(slope, axis=0), -1.0)
    bands, rhs = _inner_equations(dx, slope)
    zero = ops.zeros_like(dx[:1])
    bands = ops.stack([
        ops.concat([zero, bands[0], second[1]]), ops.concat([first[0], bands[1], second[0]]), ops.concat([first[1], bands[2], zero]),
    ])  # fmt: skip
    return _tridiagonal(bands, ops.concat([first[2][None, :], rhs, second[2][None, :]], axis=0))


def _inner_equations(dx: Any, slope: Any) -> tuple[list[Any], Any]:
    """Return the equations of the inner knots, at which the second derivative is continuous."""
    before, after = dx[:-1], dx[1:]
    return [after, (before + after) * 2.0, before], (after[:, None] * slope[:-1] + before[:, None] * slope[1:]) * 3.0


def _end_equation(condition: Any, dx: Any, slope: Any, direction: float) -> tuple[Any, Any, Any]:
    """Return the diagonal element, its neighbour and the right-hand side of the equation of an end; `direction` is -1 at the right end."""
    one = dx[:1]
    if condition == "not-a-knot":  # the third derivative is continuous at the next knot
        both = one + dx[1:2]
        return dx[1:2], both, ((one + both * 2.0) * dx[1:2] * slope[0] + one * one * slope[1]) / both
    order, value = condition
    if order == 1:
        return ops.ones_like(one), ops.zeros_like(one), value + ops.zeros_like(slope[0])
    return one * 2.0, one, slope[0] * one * 3.0 - value * one * one * (0.5 * direction)


def _parabola(dx: Any, slope: Any) -> Any:
    """Return the slopes of the parabola through three points at these points."""
    middle = (dx[1] * slope[0] + dx[0] * slope[1]) / (dx[0] + dx[1])
    return ops.stack([slope[0] * 2.0 - middle, middle, slope[1] * 2.0 - middle])


def _periodic(dx: Any, slope: Any) -> Any:
    """Return the slopes of a periodic spline, whose last knot stands for the same point as the first."""
    n = dx.shape[0]
    if n == 1:
        return ops.concat([ops.zeros_like(slope)] * 2, axis=0)
    if n == 2:
        one = ((dx[0] * slope[1] + dx[1] * slope[0]) / (dx[0] + dx[1]))[None, :]
        return ops.concat([one] * 3, axis=0)
    # All unknowns except the last solve a tridiagonal system whose right-hand side depends linearly on the last.
    bands, rhs = _inner_equations(ops.concat([dx[-1:], dx]), ops.concat([slope[-1:], slope], axis=0))
    away = ops.concat([bands[0][:1], ops.zeros_like(dx[: n - 3]), bands[2][n - 2 : n - 1]])
    table = ops.stack([b[: n - 1] for b in bands])
    found = _tridiagonal(table, ops.concat([rhs[: n - 1], away[:, None]], axis=1))
    free, response = found[:, :-1], found[:, -1:]
    lower, middle, upper = (b[n - 1] for b in bands)
    last = (rhs[n - 1] - lower * free[-1] - upper * free[0]) / (middle - lower * response[-1] - upper * response[0])
    slopes = free - response * last
    return ops.concat([slopes, last[None, :], slopes[:1]], axis=0)


def monotone_slopes(x: Any, y: Any) -> Any:
    """Return slopes for which the interpolant is monotone wherever the points are."""
    n = x.shape[0]
    dx = (x[1:] - x[:-1])[:, None]
    slope = (y[1:] - y[:-1]) / dx
    if n == 2:
        return ops.concat([slope, slope], axis=0)
    before, after, s, t = dx[:-1], dx[1:], slope[:-1], slope[1:]
    same = ops.sign(s.detach()) * ops.sign(t.detach()) > 0
    one = ops.ones_like(s)
    w, v = after * 2.0 + before, after + before * 2.0
    mean = (w + v) / (w / ops.where(same, s, one) + v / ops.where(same, t, one))
    bad = ops.isnan(s) | ops.isnan(t)
    inner = ops.where(same, mean, ops.where(bad, s + t, ops.zeros_like(s)))
    ends = [_one_sided(dx, slope), _one_sided(ops.flip(dx, axis=0), ops.flip(slope, axis=0))]
    return ops.concat([ends[0], inner, ends[1]], axis=0)


def _one_sided(dx: Any, slope: Any) -> Any:
    """Return the slope at the first point of the parabola through the first three, limited so that the interpolant stays monotone."""
    h, k, s, t = dx[:1], dx[1:2], slope[:1], slope[1:2]
    found = ((h * 2.0 + k) * s - h * t) / (h + k)
    raw, a, b = (ops.sign(v.detach()) for v in (found, s, t))
    # At ``s == 0``, which is a kink, the derivatives are those for `s` of the other sign than `t`, as the inner slope's are.
    a = ops.where(a == 0, -b, a)
    steep = (raw == a) & (a != b) & (ops.abs(found.detach()) > ops.abs(s.detach()) * 3.0)
    return ops.where((raw != a) & ~ops.isnan(found), ops.zeros_like(found), ops.where(steep, s * 3.0, found))


def akima_slopes(x: Any, y: Any, makima: bool) -> Any:
    """Return Akima's slopes: means of the slopes on both sides of a knot, each weighted by the change of slope on the other side."""
    n = x.shape[0]
    slope = (y[1:] - y[:-1]) / (x[1:] - x[:-1])[:, None]
    if n == 2:
        return ops.concat([slope, slope], axis=0)
    before = slope[:1] * 2.0 - slope[1:2]
    after = slope[-1:] * 2.0 - slope[-2:-1]
    m = ops.concat([before * 2.0 - slope[:1], before, slope, after, after * 2.0 - slope[-1:]], axis=0)
    change = ops.abs(m[1:] - m[:-1])
    if makima:
        change = change + ops.abs(m[1:] + m[:-1]) * 0.5
    w, v = change[2:], change[:-2]
    total = (w + v).detach()
    # As in SciPy: if the variation on both sides is negligible, the slope is the mean of both sides.
    known = ops.isfinite(total)
    varies = total > 1e-9 * ops.max(ops.where(known, total, ops.zeros_like(total)))
    even = (m[3:] + m[:-3]) * 0.5
    return ops.where(varies, (w * m[1:-2] + v * m[2:-1]) / ops.where(varies, w + v, ops.ones_like(w)), even)
