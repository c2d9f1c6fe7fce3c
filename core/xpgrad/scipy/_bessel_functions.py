"""Bessel functions, modified and spherical ones: chapter 10 of the NIST Digital Library (DLMF).

A derivative is the mean or the difference of the neighbouring orders (DLMF 10.6.1, 10.29.1, 10.51.1); that with respect to the order has no
closed form, and is refused.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._basics.arguments import as_flag, as_int
from xpgrad._rows.namespace import operations
from xpgrad.scipy._declare import front, no_derivative, operands_of, row_only, special

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = [
    "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jn", "jv", "kv", "spherical_in", "spherical_jn", "spherical_kn", "spherical_yn",
    "y0", "y1", "yn", "yv",
]  # fmt: skip


def _over_x(x: Any, value: Any, sign: float, decay: Any, xp: Any) -> Any:
    """``value / x`` for the function of order 1, by its power series near 0 (DLMF 10.2.2, 10.25.2); `decay` is its scale there, or None."""
    near = xp.abs(x) < 0.5
    small = xp.where(near, x, xp.zeros_like(x))
    t = small * small * (0.25 * sign)
    series = xp.zeros_like(t)
    for k in range(8, -1, -1):
        series = series * t + 0.5 / (math.factorial(k) * math.factorial(k + 1))
    if decay is not None:
        series = series * decay
    return xp.where(near, series, value / xp.where(near, xp.ones_like(x), x))


# -- of the orders 0 and 1 -------------------------------------------------------------------------------------------------


@special(lambda g, x, xp: -g * xp.special_j1(x))
def j0(x: Operand, /) -> Tensor:
    """The Bessel function of the first kind of order 0, of real `x`."""


@special(lambda g, x, out, xp: g * (xp.special_j0(x) - _over_x(x, out, -1.0, None, xp)))
def j1(x: Operand, /) -> Tensor:
    """The Bessel function of the first kind of order 1, of real `x`."""


@special(lambda g, x, xp: -g * xp.special_y1(x))
def y0(x: Operand, /) -> Tensor:
    """The Bessel function of the second kind of order 0, of real `x`; infinite at 0, nan below."""


@special(lambda g, x, out, xp: g * (xp.special_y0(x) - out / x))
def y1(x: Operand, /) -> Tensor:
    """The Bessel function of the second kind of order 1, of real `x`; infinite at 0, nan below."""


@special(lambda g, x, xp: g * xp.special_i1(x))
def i0(x: Operand, /) -> Tensor:
    """The modified Bessel function of the first kind of order 0, of real `x`."""


@special(lambda g, x, out, xp: g * (xp.special_i0(x) - _over_x(x, out, 1.0, None, xp)))
def i1(x: Operand, /) -> Tensor:
    """The modified Bessel function of the first kind of order 1, of real `x`."""


@special(lambda g, x, out, xp: g * (xp.special_i1e(x) - xp.sign(x) * out))
def i0e(x: Operand, /) -> Tensor:
    """``exp(-abs(x)) * i0(x)``, of real `x`; the derivative of its kink at 0 is 0."""


@special(lambda g, x, out, xp: g * (xp.special_i0e(x) - xp.sign(x) * out - _over_x(x, out, 1.0, xp.exp(-xp.abs(x)), xp)))
def i1e(x: Operand, /) -> Tensor:
    """``exp(-abs(x)) * i1(x)``, of real `x`."""


# -- of any order ------------------------------------------------------------------------------------------------------------


@special(no_derivative("jv", "v"), lambda g, v, z, xp: g * ((xp.special_jv(v - 1.0, z) - xp.special_jv(v + 1.0, z)) * 0.5), complex="z")
def jv(v: Operand, z: Operand, /) -> Tensor:
    """The Bessel function of the first kind of real order `v`; complex `z` too."""


@special(row="jv", complex="z")
def jn(v: Operand, z: Operand, /) -> Tensor:
    """The same as `jv`."""


@special(no_derivative("yv", "v"), lambda g, v, z, xp: g * ((xp.special_yv(v - 1.0, z) - xp.special_yv(v + 1.0, z)) * 0.5), complex="z")
def yv(v: Operand, z: Operand, /) -> Tensor:
    """The Bessel function of the second kind of real order `v`; complex `z` too."""


def _yn_slope(g: Any, n: Any, x: Any, xp: Any) -> Any:
    n = xp.trunc(n)  # as the value is computed: a neighbour of the fraction may be another order's
    return g * ((xp.special_yn(n - 1.0, x) - xp.special_yn(n + 1.0, x)) * 0.5)


@special(no_derivative("yn", "n", "it is an integer"), _yn_slope)
def yn(n: Operand, x: Operand, /) -> Tensor:
    """The Bessel function of the second kind of integer order `n`, whose fraction is dropped, of real `x`; infinite at 0, nan below."""


@special(no_derivative("iv", "v"), lambda g, v, z, xp: g * ((xp.special_iv(v - 1.0, z) + xp.special_iv(v + 1.0, z)) * 0.5), complex="z")
def iv(v: Operand, z: Operand, /) -> Tensor:
    """The modified Bessel function of the first kind of real order `v`; complex `z` too."""


def _ive_slope(g: Any, v: Any, z: Any, out: Any, xp: Any) -> Any:
    return g * ((xp.special_ive(v - 1.0, z) + xp.special_ive(v + 1.0, z)) * 0.5 - xp.sign(z) * out)


@special(no_derivative("ive", "v"), _ive_slope)
def ive(v: Operand, z: Operand, /) -> Tensor:
    """``exp(-abs(z)) * iv(v, z)`` for real `z`."""


@special(no_derivative("kv", "v"), lambda g, v, z, xp: g * ((xp.special_kv(v - 1.0, z) + xp.special_kv(v + 1.0, z)) * -0.5), complex="z")
def kv(v: Operand, z: Operand, /) -> Tensor:
    """The modified Bessel function of the second kind of real order `v`; complex `z` too."""


# -- spherical ones ----------------------------------------------------------------------------------------------------------


def _neighbours(name: str, below: float, above: float) -> Any:
    """The formula of a spherical function: a sum of those of the neighbouring orders (DLMF 10.51.2, 10.51.5)."""

    def formula(g: Any, z: Any, n: int, xp: Any) -> Any:
        function = getattr(xp, f"special_{name}")
        later = function(z, n + 1) * (above * (n + 1) / (2 * n + 1))
        return g * (later + function(z, n - 1) * (below * n / (2 * n + 1)) if n else later)

    return formula


_jn_slope = _neighbours("spherical_jn", 1.0, -1.0)
_yn_spherical_slope = _neighbours("spherical_yn", 1.0, -1.0)
_in_slope = _neighbours("spherical_in", 1.0, 1.0)
_kn_slope = _neighbours("spherical_kn", -1.0, -1.0)


@row_only(_jn_slope)
def _spherical_jn(z: Any, n: int) -> Any:
    """The row of `spherical_jn`."""


@row_only(_yn_spherical_slope)
def _spherical_yn(z: Any, n: int) -> Any:
    """The row of `spherical_yn`."""


@row_only(_in_slope)
def _spherical_in(z: Any, n: int) -> Any:
    """The row of `spherical_in`."""


@row_only(_kn_slope)
def _spherical_kn(z: Any, n: int) -> Any:
    """The row of `spherical_kn`."""


def _checked(name: str, row: Any, slope: Any, n: Any, z: Any, derivative: Any) -> Any:
    """A spherical function, or its derivative, after the checks of its arguments."""
    order = as_int(n, f"scipy.special.{name}", "n")
    if order < 0:
        msg = f"scipy.special.{name}: the order `n` must not be negative, but got {order}"
        raise ValueError(msg)
    (z,) = operands_of(name, ("z",), (z,), takes_complex=True)
    return slope(1.0, z, order, operations) if as_flag(derivative, f"scipy.special.{name}", "derivative") else row(z, order)


@front
def spherical_jn(n: int, z: Operand, derivative: bool = False) -> Tensor:
    """The spherical Bessel function of the first kind, or its derivative.

    Parameters
    ----------
    n : int
        The order, at least 0.
    z : Tensor or number
        Real or complex.
    derivative : bool
        Whether the derivative is asked for.
    """
    return _checked("spherical_jn", _spherical_jn, _jn_slope, n, z, derivative)


@front
def spherical_yn(n: int, z: Operand, derivative: bool = False) -> Tensor:
    """The spherical Bessel function of the second kind, or its derivative; arguments as of `spherical_jn`."""
    return _checked("spherical_yn", _spherical_yn, _yn_spherical_slope, n, z, derivative)


@front
def spherical_in(n: int, z: Operand, derivative: bool = False) -> Tensor:
    """The modified spherical Bessel function of the first kind, or its derivative; arguments as of `spherical_jn`."""
    return _checked("spherical_in", _spherical_in, _in_slope, n, z, derivative)


@front
def spherical_kn(n: int, z: Operand, derivative: bool = False) -> Tensor:
    """The modified spherical Bessel function of the second kind, or its derivative; arguments as of `spherical_jn`."""
    return _checked("spherical_kn", _spherical_kn, _kn_slope, n, z, derivative)
