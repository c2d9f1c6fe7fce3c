"""Bessel functions, including modified and spherical ones, after chapter 10 of the NIST Digital Library (DLMF).

A derivative is the mean or the difference of the neighbouring orders (DLMF 10.6.1, 10.29.1, 10.51.1). The derivative with respect to the
order has no closed form; it raises an error.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._basics.arguments import as_flag, as_int
from xpgrad._basics.docstrings import shares
from xpgrad._rows.namespace import operations
from xpgrad.scipy._declare import front, no_derivative, operands_of, row_only, special

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = [
    "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jn", "jv", "k0", "k0e", "k1", "k1e", "kn", "kv", "spherical_in", "spherical_jn",
    "spherical_kn", "spherical_yn", "y0", "y1", "yn", "yv",
]  # fmt: skip


# -- what docstrings have in common ----------------------------------------------------------------------------------------

_document_real = shares(
    parameters="""\
x : Tensor or number
    Any shape; real. Differentiable."""
)
_document_order = shares(
    parameters="""\
v : Tensor or number
    The order, real. Not differentiable: the backward pass raises NotImplementedError if it requires grad.
z : Tensor or number
    Real or complex; broadcasts with the order. Differentiable. For a negative real number the value is nan unless
    the order is an integer."""
)
_document_integer_order = shares(
    parameters="""\
n : Tensor or number
    The order, an integer in any dtype; as in SciPy, a fractional part is dropped. Not differentiable: the backward pass
    raises NotImplementedError if it requires grad."""
)
_document_spherical = shares(
    parameters="""\
n : int
    The order, at least 0; one for all elements.
z : Tensor or number
    Real or complex. Differentiable.
derivative : bool
    Whether to return the derivative with respect to `z`, which is differentiable as well.""",
    returns="""\
Tensor
    The shape of `z`, floating-point or complex.""",
    raises="""\
TypeError
    `n` is not an integer, `derivative` is not a bool, or `z` is neither a Tensor, an array nor a number.
ValueError
    `n` is negative.
CapabilityError
    The library of the arrays has no such function, and SciPy is not installed or cannot reach the memory.""",
)


# -- of the orders 0 and 1 -------------------------------------------------------------------------------------------------


def _over_x(x: Any, value: Any, sign: float, decay: Any, xp: Any) -> Any:
    """Return ``value / x`` for the function of order 1, by its power series near 0 (DLMF 10.2.2, 10.25.2); `decay` scales it."""
    near = xp.abs(x) < 0.5
    small = xp.where(near, x, xp.zeros_like(x))
    t = small * small * (0.25 * sign)
    series = xp.zeros_like(t)
    for k in range(8, -1, -1):
        series = series * t + 0.5 / (math.factorial(k) * math.factorial(k + 1))
    if decay is not None:
        series = series * decay
    return xp.where(near, series, value / xp.where(near, xp.ones_like(x), x))


def _slope_coefficients(order: int, sign: float) -> list[float]:
    """Return the coefficients of the derivative of the asymptotic series of a scaled function in ``1 / x``.

    The sign is 1 for `i0e` and `i1e` (DLMF 10.40.1), and -1 for `k0e` and `k1e` (DLMF 10.40.2).
    """
    found, term = [], 1.0
    for k in range(14):
        found.append(-(k + 0.5) * term)
        term *= sign * ((2 * k + 1) ** 2 - 4 * order**2) / (8.0 * (k + 1))
    return found


_SLOPES = {
    name: _slope_coefficients(order, sign) for name, order, sign in (("i0e", 0, 1.0), ("i1e", 1, 1.0), ("k0e", 0, -1.0), ("k1e", 1, -1.0))
}


def _far_slope(name: str, t: Any, scale: float, xp: Any) -> Any:
    """Return the derivative of a scaled function by its asymptotic series, for large positive `t`."""
    inverse = 1.0 / t
    series = xp.zeros_like(t)
    for coefficient in reversed(_SLOPES[name]):
        series = series * inverse + coefficient
    return series * inverse * scale / xp.sqrt(t)


def _scaled_slope(order: int, x: Any, usual: Any, xp: Any) -> Any:
    """Return the derivative of `i0e` or `i1e`: `usual`, or the asymptotic series where `usual` would cancel."""
    far = xp.abs(x) > 40.0
    t = xp.where(far, xp.abs(x), xp.ones_like(x))
    series = _far_slope(f"i{order}e", t, 1.0 / math.sqrt(2.0 * math.pi), xp)
    return xp.where(far, series if order else series * xp.sign(x), usual)


def _scaled_k_slope(order: int, x: Any, usual: Any, xp: Any) -> Any:
    """Return the derivative of `k0e` or `k1e`: `usual`, or the asymptotic series where `usual` would cancel."""
    far = x > 40.0
    t = xp.where(far, x, xp.ones_like(x))
    return xp.where(far, _far_slope(f"k{order}e", t, math.sqrt(math.pi / 2.0), xp), usual)


@special(lambda g, x, xp: -g * xp.special_j1(x))
@_document_real
def j0(x: Operand, /) -> Tensor:
    """Return the Bessel function of the first kind of order 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([0.0, 1.0, 2.0], requires_grad=True)
    >>> special.j0(x).detach()
    tensor([1.    , 0.7652, 0.2239])
    >>> special.j0(x).sum().backward()
    >>> x.grad + 0.0  # -j1(x)
    tensor([ 0.    , -0.4401, -0.5767])
    """


@special(lambda g, x, out, xp: g * (xp.special_j0(x) - _over_x(x, out, -1.0, None, xp)))
@_document_real
def j1(x: Operand, /) -> Tensor:
    """Return the Bessel function of the first kind of order 1.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.j1(xp.asarray([-1.0, 0.0, 1.0]))
    tensor([-0.4401,  0.    ,  0.4401])
    >>> xp.func.grad(special.j1)(0.0)
    tensor(0.5)
    """


@special(lambda g, x, xp: -g * xp.special_y1(x))
def y0(x: Operand, /) -> Tensor:
    """Return the Bessel function of the second kind of order 0; infinite at 0, NaN for negative `x`.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real. Differentiable above 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.y0(xp.asarray([-1.0, 0.0, 1.0]))
    tensor([   nan,   -inf, 0.0883])
    >>> xp.func.grad(special.y0)(1.0)  # -y1(1.0)
    tensor(0.7812)
    """


@special(lambda g, x, out, xp: g * (xp.special_y0(x) - out / x))
def y1(x: Operand, /) -> Tensor:
    """Return the Bessel function of the second kind of order 1; infinite at 0, NaN for negative `x`.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real. Differentiable above 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.y1(xp.asarray([0.5, 1.0, 2.0]))
    tensor([-1.4715, -0.7812, -0.107 ])
    >>> xp.func.grad(special.y1)(1.0)
    tensor(0.8695)
    """


@special(lambda g, x, xp: g * xp.special_i1(x))
@_document_real
def i0(x: Operand, /) -> Tensor:
    """Return the modified Bessel function of the first kind of order 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.i0(xp.asarray([0.0, 1.0, 2.0]))
    tensor([1.    , 1.2661, 2.2796])
    >>> xp.func.grad(special.i0)(1.0)  # i1(1.0)
    tensor(0.5652)
    """


@special(lambda g, x, out, xp: g * (xp.special_i0(x) - _over_x(x, out, 1.0, None, xp)))
@_document_real
def i1(x: Operand, /) -> Tensor:
    """Return the modified Bessel function of the first kind of order 1.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.i1(xp.asarray([-1.0, 0.0, 1.0]))
    tensor([-0.5652,  0.    ,  0.5652])
    >>> xp.func.grad(special.i1)(0.0)
    tensor(0.5)
    """


@special(lambda g, x, out, xp: g * _scaled_slope(0, x, xp.special_i1e(x) - xp.sign(x) * out, xp))
@_document_real
def i0e(x: Operand, /) -> Tensor:
    """Return ``exp(-abs(x)) * i0(x)``; at its kink at 0 the derivative is 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.i0e(1000.0)  # i0(1000.0) overflows
    tensor(0.0126)
    >>> x = xp.tensor([-1.0, 0.0], requires_grad=True)
    >>> special.i0e(x).sum().backward()
    >>> x.grad  # 0 at the kink
    tensor([0.2578, 0.    ])
    """


def _i1e_vjp(g: Any, x: Any, out: Any, xp: Any) -> Any:
    usual = xp.special_i0e(x) - xp.sign(x) * out - _over_x(x, out, 1.0, xp.exp(-xp.abs(x)), xp)
    return g * _scaled_slope(1, x, usual, xp)


@special(_i1e_vjp)
@_document_real
def i1e(x: Operand, /) -> Tensor:
    """Return ``exp(-abs(x)) * i1(x)``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.i1e(xp.asarray([-1.0, 1.0, 1000.0]))  # i1(1000.0) overflows
    tensor([-0.2079,  0.2079,  0.0126])
    >>> xp.func.grad(special.i1e)(1.0)
    tensor(0.0499)
    """


_document_second = shares(
    parameters="""\
x : Tensor or number
    Any shape; real. Infinite at 0, nan below. Differentiable above 0."""
)


@special(lambda g, x, xp: -g * xp.special_k1(x))
@_document_second
def k0(x: Operand, /) -> Tensor:
    """Return the modified Bessel function of the second kind of order 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.k0(xp.asarray([0.0, 1.0, 2.0]))
    tensor([   inf, 0.421 , 0.1139])
    >>> xp.func.grad(special.k0)(1.0)  # -k1(1.0)
    tensor(-0.6019)
    """


@special(lambda g, x, out, xp: -g * (xp.special_k0(x) + out / x))
@_document_second
def k1(x: Operand, /) -> Tensor:
    """Return the modified Bessel function of the second kind of order 1.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.k1(xp.asarray([0.0, 1.0, 2.0]))
    tensor([   inf, 0.6019, 0.1399])
    >>> xp.func.grad(special.k1)(1.0)
    tensor(-1.0229)
    """


@special(lambda g, x, out, xp: g * _scaled_k_slope(0, x, out - xp.special_k1e(x), xp))
@_document_second
def k0e(x: Operand, /) -> Tensor:
    """Return ``exp(x) * k0(x)``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.k0e(xp.asarray([1.0, 1000.0]))  # k0(1000.0) underflows
    tensor([1.1445, 0.0396])
    >>> xp.func.grad(special.k0e)(1.0)
    tensor(-0.4917)
    """


@special(lambda g, x, out, xp: g * _scaled_k_slope(1, x, out - xp.special_k0e(x) - out / x, xp))
@_document_second
def k1e(x: Operand, /) -> Tensor:
    """Return ``exp(x) * k1(x)``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.k1e(xp.asarray([1.0, 1000.0]))  # k1(1000.0) underflows
    tensor([1.6362, 0.0396])
    >>> xp.func.grad(special.k1e)(1.0)
    tensor(-1.1445)
    """


# -- of any order ------------------------------------------------------------------------------------------------------------


@special(no_derivative("jv", "v"), lambda g, v, z, xp: g * ((xp.special_jv(v - 1.0, z) - xp.special_jv(v + 1.0, z)) * 0.5), complex="z")
@_document_order
def jv(v: Operand, z: Operand, /) -> Tensor:
    """Return the Bessel function of the first kind of real order `v`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.jv(xp.asarray([0.0, 0.5, 1.0]), 2.0)
    tensor([0.2239, 0.513 , 0.5767])
    >>> xp.func.grad(lambda z: special.jv(0.5, z))(2.0)
    tensor(-0.363)
    >>> special.jv(xp.tensor(0.5, requires_grad=True), 2.0).backward()
    Traceback (most recent call last):
        ...
    NotImplementedError: scipy.special.jv: the derivative with respect to `v` is not known (it has no closed form); ...
    """


@special(row="jv", complex="z")
@_document_order
def jn(v: Operand, z: Operand, /) -> Tensor:
    """Return the Bessel function of the first kind of real order `v`; another name of `jv`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.jn(2, xp.asarray([0.0, 1.0, 5.0]))
    tensor([0.    , 0.1149, 0.0466])
    >>> xp.func.grad(lambda z: special.jn(2, z))(1.0)
    tensor(0.2102)
    """


@special(no_derivative("yv", "v"), lambda g, v, z, xp: g * ((xp.special_yv(v - 1.0, z) - xp.special_yv(v + 1.0, z)) * 0.5), complex="z")
@_document_order
def yv(v: Operand, z: Operand, /) -> Tensor:
    """Return the Bessel function of the second kind of real order `v`.

    Parameters
    ----------
    z : Tensor or number
        Real or complex; broadcasts with the order. Differentiable. Infinite at 0, nan for negative real numbers.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.yv(0.5, xp.asarray([0.0, 1.0, 2.0]))
    tensor([   -inf, -0.4311,  0.2348])
    >>> xp.func.grad(lambda z: special.yv(0.5, z))(1.0)
    tensor(0.8869)
    """


def _yn_slope(g: Any, n: Any, x: Any, xp: Any) -> Any:
    n = xp.trunc(n)  # as in the value: fractional neighbours could be truncated to other orders
    return g * ((xp.special_yn(n - 1.0, x) - xp.special_yn(n + 1.0, x)) * 0.5)


@special(no_derivative("yn", "n", "it is an integer"), _yn_slope)
@_document_integer_order
def yn(n: Operand, x: Operand, /) -> Tensor:
    """Return the Bessel function of the second kind of integer order `n`; infinite at 0, NaN for negative `x`.

    Parameters
    ----------
    x : Tensor or number
        Real; broadcasts with `n`. Differentiable above 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.yn(xp.asarray([0, 1, 2]), 2.0)
    tensor([ 0.5104, -0.107 , -0.6174])
    >>> xp.func.grad(lambda x: special.yn(2, x))(2.0)
    tensor(0.5104)
    """


@special(no_derivative("iv", "v"), lambda g, v, z, xp: g * ((xp.special_iv(v - 1.0, z) + xp.special_iv(v + 1.0, z)) * 0.5), complex="z")
@_document_order
def iv(v: Operand, z: Operand, /) -> Tensor:
    """Return the modified Bessel function of the first kind of real order `v`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.iv(xp.asarray([0.0, 0.5, 1.0]), 2.0)
    tensor([2.2796, 2.0462, 1.5906])
    >>> xp.func.grad(lambda z: special.iv(0.5, z))(2.0)
    tensor(1.611)
    """


def _ive_slope(g: Any, v: Any, z: Any, out: Any, xp: Any) -> Any:
    return g * ((xp.special_ive(v - 1.0, z) + xp.special_ive(v + 1.0, z)) * 0.5 - xp.sign(z) * out)


@special(no_derivative("ive", "v"), _ive_slope)
@_document_order
def ive(v: Operand, z: Operand, /) -> Tensor:
    """Return ``exp(-abs(z)) * iv(v, z)`` for real `z`.

    Parameters
    ----------
    z : Tensor or number
        Real; broadcasts with the order. Differentiable. For a negative number the value is nan unless the order is an
        integer.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.ive(0.5, xp.asarray([1.0, 1000.0]))  # iv(0.5, 1000.0) overflows
    tensor([0.345 , 0.0126])
    >>> xp.func.grad(lambda z: special.ive(0.5, z))(1.0)
    tensor(-0.0645)
    """


def _kn_slope_of(g: Any, n: Any, x: Any, xp: Any) -> Any:
    n = xp.abs(xp.trunc(n))  # the function is even in its order
    return g * ((xp.special_kn(xp.abs(n - 1.0), x) + xp.special_kn(n + 1.0, x)) * -0.5)


@special(no_derivative("kn", "n", "it is an integer"), _kn_slope_of)
@_document_integer_order
def kn(n: Operand, x: Operand, /) -> Tensor:
    """Return the modified Bessel function of the second kind of integer order `n`.

    Parameters
    ----------
    x : Tensor or number
        Real; infinite at 0, nan below. Broadcasts with `n`. Differentiable above 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.kn(xp.asarray([0, 1, 2]), 2.0)
    tensor([0.1139, 0.1399, 0.2538])
    >>> xp.func.grad(lambda x: special.kn(2, x))(2.0)
    tensor(-0.3936)
    """


@special(no_derivative("kv", "v"), lambda g, v, z, xp: g * ((xp.special_kv(v - 1.0, z) + xp.special_kv(v + 1.0, z)) * -0.5), complex="z")
@_document_order
def kv(v: Operand, z: Operand, /) -> Tensor:
    """Return the modified Bessel function of the second kind of real order `v`.

    Parameters
    ----------
    z : Tensor or number
        Real or complex; broadcasts with the order. Differentiable. Infinite at 0, nan for negative real numbers.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.kv(xp.asarray([0.0, 0.5, 1.0]), 2.0)
    tensor([0.1139, 0.1199, 0.1399])
    >>> xp.func.grad(lambda z: special.kv(0.5, z))(2.0)
    tensor(-0.1499)
    """


# -- spherical ones ----------------------------------------------------------------------------------------------------------


def _neighbours(name: str, below: float, above: float) -> Any:
    """Return the derivative formula of a spherical function: a sum of its neighbouring orders (DLMF 10.51.2, 10.51.5)."""

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
    """Compute `spherical_jn` for checked arguments; this function declares its row."""


@row_only(_yn_spherical_slope)
def _spherical_yn(z: Any, n: int) -> Any:
    """Compute `spherical_yn` for checked arguments; this function declares its row."""


@row_only(_in_slope)
def _spherical_in(z: Any, n: int) -> Any:
    """Compute `spherical_in` for checked arguments; this function declares its row."""


@row_only(_kn_slope)
def _spherical_kn(z: Any, n: int) -> Any:
    """Compute `spherical_kn` for checked arguments; this function declares its row."""


def _spherical(name: str, row: Any, slope: Any, n: Any, z: Any, derivative: Any) -> Any:
    """Check the arguments of a spherical function, and compute it or its derivative."""
    order = as_int(n, f"scipy.special.{name}", "n")
    if order < 0:
        msg = f"scipy.special.{name}: the order `n` must not be negative, but got {order}"
        raise ValueError(msg)
    (z,) = operands_of(name, ("z",), (z,), takes_complex=True)
    return slope(1.0, z, order, operations) if as_flag(derivative, f"scipy.special.{name}", "derivative") else row(z, order)


@front
@_document_spherical
def spherical_jn(n: int, z: Operand, derivative: bool = False) -> Tensor:
    """Return the spherical Bessel function of the first kind, or its derivative.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> z = xp.tensor([0.0, 1.0], requires_grad=True)
    >>> special.spherical_jn(1, z).detach()
    tensor([0.    , 0.3012])
    >>> special.spherical_jn(1, z).sum().backward()
    >>> z.grad
    tensor([0.3333, 0.2391])
    >>> special.spherical_jn(1, z.detach(), derivative=True)
    tensor([0.3333, 0.2391])
    """
    return _spherical("spherical_jn", _spherical_jn, _jn_slope, n, z, derivative)


@front
@_document_spherical
def spherical_yn(n: int, z: Operand, derivative: bool = False) -> Tensor:
    """Return the spherical Bessel function of the second kind, or its derivative.

    Parameters
    ----------
    z : Tensor or number
        Real or complex; minus infinity at 0. Differentiable elsewhere.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.spherical_yn(0, xp.asarray([1.0, 2.0]))  # -cos(z) / z
    tensor([-0.5403,  0.2081])
    >>> special.spherical_yn(0, 1.0, derivative=True)
    tensor(1.3818)
    """
    return _spherical("spherical_yn", _spherical_yn, _yn_spherical_slope, n, z, derivative)


@front
@_document_spherical
def spherical_in(n: int, z: Operand, derivative: bool = False) -> Tensor:
    """Return the modified spherical Bessel function of the first kind, or its derivative.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.spherical_in(0, xp.asarray([0.0, 1.0]))  # sinh(z) / z
    tensor([1.    , 1.1752])
    >>> xp.func.grad(lambda z: special.spherical_in(0, z))(1.0)
    tensor(0.3679)
    """
    return _spherical("spherical_in", _spherical_in, _in_slope, n, z, derivative)


@front
@_document_spherical
def spherical_kn(n: int, z: Operand, derivative: bool = False) -> Tensor:
    """Return the modified spherical Bessel function of the second kind, or its derivative.

    Parameters
    ----------
    z : Tensor or number
        Real or complex; infinite at 0. Differentiable elsewhere.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.spherical_kn(0, xp.asarray([1.0, 2.0]))  # pi / 2 * exp(-z) / z
    tensor([0.5779, 0.1063])
    >>> special.spherical_kn(0, 1.0, derivative=True)
    tensor(-1.1557)
    """
    return _spherical("spherical_kn", _spherical_kn, _kn_slope, n, z, derivative)
