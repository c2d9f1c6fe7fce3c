"""Elementwise functions that are not ufuncs: rounding, parts of complex numbers, interpolation, special functions."""

from __future__ import annotations

import math
from typing import Any

import xpgrad as xp
from xpgrad._numpy.adapters import adapt
from xpgrad._numpy.operands import as_floating, lift, refuse, slice_axis, write_out
from xpgrad._numpy.reductions import dtype_bounds
from xpgrad._numpy.table import implements
from xpgrad._tensor.tensor import Tensor

adapt("real", xp.real)
adapt("imag", lambda val: xp.imag(val) if val.dtype.is_complex else val * 0)
adapt("fix", xp.trunc)


@adapt("angle", floating=True)
def _angle(z: Any, deg: bool = False) -> Any:
    out = xp.atan2(xp.imag(z) if z.dtype.is_complex else xp.zeros_like(z), xp.real(z))
    return out * (180.0 / math.pi) if deg else out


@adapt("real_if_close", note="the dtype of the result depends on the values")
def _real_if_close(x: Any, tol: Any = 100) -> Any:
    if not x.dtype.is_complex:
        return x
    limit = tol * xp.finfo(x.dtype).eps if tol > 1 else tol
    return xp.real(x) if bool(xp.all(xp.abs(xp.imag(x.detach())) < limit)) else x


def _round(x: Any, decimals: int = 0) -> Any:
    if not x.dtype.differentiable:
        if decimals < 0:
            refuse("round", decimals=decimals)
        return xp.positive(x)
    scale = 10.0 ** abs(decimals)
    if decimals == 0:
        return xp.round(x)
    return xp.round(x * scale) / scale if decimals > 0 else xp.round(x / scale) * scale


adapt("round", _round)
adapt("around", _round)


@implements("nan_to_num")
def _nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    (t,) = lift("nan_to_num", x)
    if not t.dtype.differentiable:
        return xp.positive(t) if copy else t
    if t.dtype.is_complex:
        msg = "np.nan_to_num: xpgrad replaces real numbers; apply it to `np.real(x)` and `np.imag(x)`"
        raise TypeError(msg)
    least, greatest = dtype_bounds(t)
    out = t
    for mask, value in (
        (xp.isnan(t), nan), (xp.equal(t, math.inf), greatest if posinf is None else posinf),
        (xp.equal(t, -math.inf), least if neginf is None else neginf),
    ):  # fmt: skip
        out = xp.where(mask, value, out)
    return out if copy else write_out("nan_to_num", t, out)


@adapt("sinc", floating=True)
def _sinc(x: Any) -> Any:
    angle = x * math.pi
    # Near 0 the quotient loses digits, and its derivatives lose more; the series is exact to rounding there.
    near = xp.abs(angle.detach()) < 0.05
    safe = xp.where(near, xp.ones_like(angle), angle)
    square = xp.where(near, angle * angle, xp.zeros_like(angle))
    series = 1 - square / 6.0 * (1 - square / 20.0 * (1 - square / 42.0 * (1 - square / 72.0 * (1 - square / 110.0))))
    return xp.where(near, series, xp.sin(safe) / safe)


#: Coefficients of the power series of I0 in ``(x / 2) ** 2``, and of the asymptotic series of ``I0(x) exp(-x) sqrt(2 pi x)`` in ``1 / x``.
_SERIES = [1.0 / math.factorial(k) ** 2 for k in range(60)]
_ASYMPTOTIC = [1.0]
for _k in range(1, 25):
    _ASYMPTOTIC.append(_ASYMPTOTIC[-1] * (2 * _k - 1) ** 2 / (8.0 * _k))
_ASYMPTOTIC_FROM = 25.0


@adapt("i0", floating=True)
def _i0(t: Any) -> Any:
    if t.dtype.is_complex:
        msg = "np.i0 is not defined for complex numbers"
        raise TypeError(msg)
    size = xp.where(t < 0, -t, t)
    far = size > _ASYMPTOTIC_FROM
    z = xp.where(far, xp.ones_like(size), size)
    z = z * z / 4.0
    inner = _evaluate_polynomial(z, _SERIES)
    large = xp.where(far, size, xp.full_like(size, _ASYMPTOTIC_FROM))
    outer = xp.exp(large) / xp.sqrt(large * (2 * math.pi)) * _evaluate_polynomial(1.0 / large, _ASYMPTOTIC)
    return xp.where(far, outer, inner)


def _evaluate_polynomial(z: Any, coefficients: list[float]) -> Any:
    out = xp.full_like(z, coefficients[-1])
    for c in coefficients[-2::-1]:
        out = out * z + c
    return out


@adapt("unwrap", floating=True)
def _unwrap(x: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * math.pi) -> Any:
    if isinstance(period, Tensor):
        refuse("unwrap", period=period)
    limit = period / 2 if discont is None else discont
    # The corrections are whole periods, hence constants with zero derivative.
    steps = xp.diff(x.detach(), axis=axis)
    whole = xp.remainder(steps + period / 2, period) - period / 2
    whole = xp.where((whole == -period / 2) & (steps > 0), period / 2, whole)
    jumps = xp.where(xp.abs(steps) < limit, xp.zeros_like(steps), whole - steps)
    first, rest = (slice_axis(x, axis % x.ndim, *ends) for ends in ((None, 1), (1, None)))
    return xp.concat([first, rest + xp.cumulative_sum(jumps, axis=axis)], axis=axis)


@implements("interp")
def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    if period is not None and not isinstance(period, Tensor) and period == 0:
        msg = "np.interp: `period` must not be 0"
        raise ValueError(msg)
    return _interpolate(*lift("interp", x, xp, fp, left, right, period))


def _interpolate(at: Any, knots: Any, heights: Any, low: Any, high: Any, period: Any) -> Any:
    at, knots, heights = as_floating(at), as_floating(knots), as_floating(heights)
    n = knots.shape[0] if knots.ndim == 1 else -1
    if n < 1 or heights.shape != (n,):
        msg = f"np.interp: the knots and heights must be vectors of one length, but got shapes {knots.shape} and {heights.shape}"
        raise ValueError(msg)
    missing = xp.isnan(at) if period is None else ~xp.isfinite(at)
    if period is not None:  # one more knot on either side closes the circle, so that no point is outside
        period, low, high = xp.abs(period), None, None
        at = xp.where(missing, xp.zeros_like(at), at)
        at, knots = xp.remainder(at, period), xp.remainder(knots, period)
        order = xp.argsort(knots.detach())
        knots, heights = xp.take(knots, order), xp.take(heights, order)
        knots = xp.concat([knots[-1:] - period, knots, knots[:1] + period])
        heights = xp.concat([heights[-1:], heights, heights[:1]])
        n += 2
    first = heights[0] if low is None else low
    last = heights[-1] if high is None else high
    before, after = at < knots[0], at > knots[-1]
    # The derivatives of the pieces at nan or infinity, times the gradient 0, would be nan.
    inside = xp.reshape(xp.where(before | after | missing, xp.zeros_like(at) + knots[0].detach(), at), (-1,))
    if n > 1:
        place = xp.clip(xp.searchsorted(knots.detach(), inside.detach(), side="right") - 1, 0, n - 2)
        x0, x1, y0, y1 = (xp.take(t, place + k) for t in (knots, heights) for k in (0, 1))
        out = y0 + (inside - x0) * ((y1 - y0) / (x1 - x0))
    else:
        out = xp.broadcast_to(heights, inside.shape)
    out = xp.reshape(out, at.shape)
    if n > 1:
        out = xp.where(missing, xp.zeros_like(out) + math.nan, out)
    return xp.where(after, last, xp.where(before, first, out))
