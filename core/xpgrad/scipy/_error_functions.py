"""Error functions, and functions of the normal and the Voigt distribution, after chapter 7 of the NIST Digital Library (DLMF)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._rows.namespace import operations
from xpgrad.rules.elementwise import is_complex
from xpgrad.scipy._declare import as_complex, by_the_host, front, operands_of, row_only, special

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = ["erf", "erfc", "erfcinv", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri", "owens_t", "voigt_profile", "wofz"]

_ROOT = math.sqrt(math.pi)
_ROOT_2 = math.sqrt(2.0)
#: Above these real and complex arguments the asymptotic series of erfcx (DLMF 7.12.1) is more accurate than the difference of two large
#: numbers, with so many terms.
_FAR, _TERMS = 20.0, 9
_FAR_COMPLEX, _TERMS_COMPLEX = 8.0, 20
#: ``(2 k + 1)!! / (-2)**k``: the coefficients of the series of the derivative of erfcx in ``1 / x**2``.
_COEFFICIENTS = [1.0]
for _k in range(1, _TERMS_COMPLEX):
    _COEFFICIENTS.append(-_COEFFICIENTS[-1] * (2 * _k + 1) / 2)


def _bell(x: Any, scale: float, xp: Any) -> Any:
    return xp.exp(-(x * x)) * scale


@special(lambda g, x, xp: g * _bell(x, 2 / _ROOT, xp), complex=True)
def erf(x: Operand, /) -> Tensor:
    """Return the error function, the integral of ``2 / sqrt(pi) * exp(-t**2)`` from 0 to `x`.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([0.0, 0.5, 1.0], requires_grad=True)
    >>> special.erf(x).detach()
    tensor([0.    , 0.5205, 0.8427])
    >>> special.erf(x).sum().backward()
    >>> x.grad  # 2 / sqrt(pi) * exp(-x**2)
    tensor([1.1284, 0.8788, 0.4151])
    """


@special(lambda g, x, xp: g * _bell(x, -2 / _ROOT, xp), complex=True)
def erfc(x: Operand, /) -> Tensor:
    """Return the complement of the error function, ``1 - erf(x)``.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.erfc(5.0) > 0.0  # 1 - erf(5.0) is only rounding error
    tensor(True)
    >>> xp.func.grad(special.erfc)(0.5)
    tensor(-0.8788)
    """


def _erfcx_slope(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return the vjp of `erfcx`; for large `x` by the asymptotic series."""
    in_plane = is_complex(x, xp)
    far = xp.abs(x) > _FAR_COMPLEX if in_plane else x > _FAR
    t = 1.0 / xp.where(far, x, xp.ones_like(x))
    t = t * t
    first, *others = _COEFFICIENTS[(_TERMS_COMPLEX if in_plane else _TERMS) - 1 : 0 : -1]
    series = t * first
    for c in others:
        series = (series + c) * t
    slope = (series + 1.0) * t * (-1.0 / _ROOT)
    if in_plane:
        # Across the imaginary axis the weight of the second solution of the equation, exp(x**2), changes from 0 to 2 (DLMF 7.4.2). It is
        # 1 near the axis, on which it alone has a real part.
        side = xp.real(x)
        zero = xp.zeros_like(side)
        weight = xp.where(side < -0.5, zero + 4.0, xp.where(side <= 0.5, zero + 2.0, zero))
        safe = xp.where(far & (side <= 0.5), x, xp.zeros_like(x))
        slope = slope + safe * xp.exp(safe * safe) * weight
    return g * xp.where(far, slope, x * out * 2.0 - 2.0 / _ROOT)


def _erfcx(xp: Any, x: Any) -> Any:
    if is_complex(x, xp):
        return by_the_host("erfcx")(xp, x)
    # Near 0 it is computed from erfc, else from the continued fraction (DLMF 7.9.3).
    far = x > 5.0
    z = xp.where(far, x, xp.ones_like(x) + 5.0)
    tail = z
    for k in range(60, 0, -1):
        tail = z + (k / 2.0) / tail
    near = xp.where(far, xp.zeros_like(x), x)
    return xp.where(far, 1.0 / (tail * _ROOT), xp.exp(near * near) * xp.special_erfc(near))


@special(_erfcx_slope, composed=_erfcx, complex=True)
def erfcx(x: Operand, /) -> Tensor:
    """Return the scaled complement of the error function, ``exp(x**2) * erfc(x)``.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex; overflows below about -26 in double precision. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.erfcx(30.0)  # erfc(30.0) itself underflows
    tensor(0.0188)
    >>> x = xp.tensor([0.0, 1.0], requires_grad=True)
    >>> special.erfcx(x).sum().backward()
    >>> x.grad
    tensor([-1.1284, -0.2732])
    """


@special(lambda g, out, xp: g * (xp.exp(out * out) * (_ROOT / 2)))
def erfinv(x: Operand, /) -> Tensor:
    """Return the inverse of `erf` on [-1, 1]; infinite at the ends, NaN outside.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real, in [-1, 1]. Differentiable; the derivative is infinite at the ends and nan outside.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([0.5, 1.0, 2.0], requires_grad=True)
    >>> special.erfinv(x).detach()
    tensor([0.4769,    inf,    nan])
    >>> special.erfinv(x).sum().backward()
    >>> x.grad
    tensor([1.1126,    inf,    nan])
    """


@special(lambda g, out, xp: g * (xp.exp(out * out) * (-_ROOT / 2)))
def erfcinv(x: Operand, /) -> Tensor:
    """Return the inverse of `erfc` on [0, 2]; infinite at the ends, NaN outside.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real, in [0, 2]. Differentiable; the derivative is infinite at the ends and nan outside.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.erfcinv(xp.asarray([0.0, 0.5, 1.5]))
    tensor([    inf,  0.4769, -0.4769])
    >>> xp.func.grad(special.erfcinv)(0.5)
    tensor(-1.1126)
    """


@special(lambda g, x, xp: g * (xp.exp(x * x * -0.5) * (1 / (_ROOT * _ROOT_2))), complex=True,
         composed=lambda xp, x: xp.special_erfc(x * (-1 / _ROOT_2)) * 0.5)  # fmt: skip
def ndtr(x: Operand, /) -> Tensor:
    """Return the cumulative distribution function of the standard normal distribution.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Differentiable: the derivative is the normal density.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.ndtr(xp.asarray([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5   , 0.8413])
    >>> xp.func.grad(special.ndtr)(0.0)  # 1 / sqrt(2 * pi)
    tensor(0.3989)
    """


def _log_ndtr(xp: Any, x: Any) -> Any:
    """Compute `log_ndtr`; in the left tail by `erfcx`."""
    if is_complex(x, xp):
        return by_the_host("log_ndtr")(xp, x)
    left = x < -1.0
    low, high = xp.where(left, x, -xp.ones_like(x)), xp.where(left, xp.zeros_like(x), x)
    tail = xp.log(xp.special_erfcx(low * (-1 / _ROOT_2)) * 0.5) - low * low * 0.5
    return xp.where(left, tail, xp.log1p(xp.special_erfc(high * (1 / _ROOT_2)) * -0.5))


def _log_ndtr_slope(x: Any, xp: Any) -> Any:
    """Compute the derivative of `log_ndtr`, the normal density over `ndtr`; in the right tail not by `erfcx`, which overflows there."""
    scale = math.sqrt(2 / math.pi)
    if is_complex(x, xp):
        return scale / xp.special_erfcx(x * (-1 / _ROOT_2))
    left = x < 0
    low, high = xp.where(left, x, xp.zeros_like(x)), xp.where(left, xp.zeros_like(x), x)
    return xp.where(
        left, scale / xp.special_erfcx(low * (-1 / _ROOT_2)), xp.exp(high * high * -0.5) * (0.5 * scale) / xp.special_ndtr(high)
    )


@special(lambda g, x, xp: g * _log_ndtr_slope(x, xp), composed=_log_ndtr, complex=True)
def log_ndtr(x: Operand, /) -> Tensor:
    """Return the logarithm of `ndtr`, even if that underflows.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Differentiable, accurately also far in the left tail.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([-50.0, -1.0], requires_grad=True)
    >>> special.log_ndtr(x).detach()  # ndtr(-50.0) underflows
    tensor([-1254.8314,    -1.841 ])
    >>> special.log_ndtr(x).sum().backward()
    >>> x.grad
    tensor([50.02  ,  1.5251])
    """


@special(lambda g, out, xp: g * (xp.exp(out * out * 0.5) * (_ROOT * _ROOT_2)))
def ndtri(x: Operand, /) -> Tensor:
    """Return the inverse of `ndtr` on [0, 1]; infinite at the ends, NaN outside.

    Parameters
    ----------
    x : Tensor or number
        Any shape; probabilities in [0, 1]. Differentiable; the derivative is infinite at the ends and nan outside.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.ndtri(xp.asarray([0.0, 0.5, 0.975]))
    tensor([-inf, 0.  , 1.96])
    >>> xp.func.grad(special.ndtri)(0.5)  # sqrt(2 * pi)
    tensor(2.5066)
    """


def _owens_slope_h(g: Any, h: Any, a: Any, xp: Any) -> Any:
    return g * (xp.exp(h * h * -0.5) * xp.special_erf(a * h * (1 / _ROOT_2)) * (-0.5 / (_ROOT * _ROOT_2)))


def _owens_slope_a(g: Any, h: Any, a: Any, xp: Any) -> Any:
    square = a * a + 1.0
    return g * (xp.exp(h * h * square * -0.5) / (square * (2 * math.pi)))


@special(_owens_slope_h, _owens_slope_a)
def owens_t(h: Operand, a: Operand, /) -> Tensor:
    """Return Owen's T function: the probability of ``X > h`` and ``0 < Y < a * X`` for independent standard normal X and Y.

    Parameters
    ----------
    h : Tensor or number
        Real. Differentiable.
    a : Tensor or number
        Real; broadcasts with `h`. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.owens_t(0.0, xp.asarray([0.0, 1.0]))  # atan(a) / (2 * pi)
    tensor([0.   , 0.125])
    >>> xp.func.grad(special.owens_t, argnums=(0, 1))(1.0, 1.0)
    (tensor(-0.0826), tensor(0.0293))
    """


@row_only(lambda g, z, out, xp: _erfcx_slope(g, z * -1j, out, xp) * -1j, dtype="other")  # of real numbers, too, it is complex
def _wofz(z: Any) -> Any:
    """Compute `wofz`; this function declares its row."""


@front
def wofz(z: Operand, /) -> Tensor:
    """Return the Faddeeva function, ``exp(-z**2) * erfc(-1j * z)``.

    Parameters
    ----------
    z : Tensor or number
        Any shape; real or complex. Differentiable.

    Returns
    -------
    Tensor
        The shape of `z`, complex.

    Raises
    ------
    TypeError
        `z` is not a Tensor, an array or a number.
    CapabilityError
        SciPy computes this function, and is not installed or cannot reach the memory of the array.

    See Also
    --------
    voigt_profile : The line shape that its real part describes.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> w = special.wofz(xp.asarray([0.0, 1.0]))
    >>> xp.real(w)  # exp(-x**2)
    tensor([1.    , 0.3679])
    >>> xp.imag(w)  # 2 / sqrt(pi) times Dawson's integral
    tensor([0.    , 0.6072])
    >>> xp.func.grad(lambda x: xp.imag(special.wofz(x)))(0.0)  # 2 / sqrt(pi)
    tensor(1.1284)
    """
    (x,) = operands_of("wofz", ("z",), (z,), takes_complex=True)
    return _wofz(as_complex(x))


@front
def voigt_profile(x: Operand, sigma: Operand, gamma: Operand, /) -> Tensor:
    """Return the density of the Voigt distribution, the convolution of a normal and a Cauchy distribution around 0.

    Parameters
    ----------
    x : Tensor or number
        Real. Differentiable.
    sigma : Tensor or number
        The standard deviation of the normal distribution, at least 0; broadcasts with the others. Differentiable.
    gamma : Tensor or number
        Half the width of the Cauchy distribution at half its height, at least 0; broadcasts with the others. Differentiable.

    Returns
    -------
    Tensor
        The shape to which the arguments broadcast, floating-point. With ``sigma == 0`` the Cauchy density, with ``gamma == 0`` the normal
        one.

    Raises
    ------
    TypeError
        An argument is not a Tensor, an array or a number, or is complex.
    ValueError
        The shapes do not broadcast.
    CapabilityError
        SciPy computes `wofz`, and is not installed or cannot reach the memory of the arrays.

    Notes
    -----
    The derivative by `sigma` is the difference of nearly equal numbers where `x` or `gamma` is larger than `sigma`: its relative error is
    below 1e-11. Where they are more than 12 times as large it is below 1e-14, because a series is derived.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.voigt_profile(xp.asarray([0.0, 1.0, 2.0]), 1.0, 0.5)
    tensor([0.279 , 0.2002, 0.0824])
    >>> xp.func.grad(special.voigt_profile, argnums=(1, 2))(1.0, 1.0, 0.5)  # by the widths of the line
    (tensor(-0.0321), tensor(-0.077))
    """
    place, deviation, half = operands_of("voigt_profile", ("x", "sigma", "gamma"), (x, sigma, gamma))
    outside = operations.isinf(place)
    place = operations.where(outside, 0.0, place)
    point = place + half * 1j
    size, sharp = operations.abs(point.detach()), deviation == 0.0
    far = sharp | (size > deviation * (_FAR_COMPLEX * _ROOT_2)) & (deviation > 0.0) & (half >= 0.0)
    near = operations.real(_wofz(operations.where(far, 0.0, point) / (operations.where(far, 1.0, deviation) * _ROOT_2)))
    near = near / (operations.where(far, 1.0, deviation) * (_ROOT * _ROOT_2))
    value = operations.where(far, _voigt_far(place, deviation, half, far), near)._cast(place.dtype)  # complex numbers have no halves
    return operations.where(outside, 0.0, operations.where(sharp & (size == 0.0), math.inf, value))


def _voigt_far(x: Tensor, sigma: Tensor, gamma: Tensor, far: Tensor) -> Tensor:
    """Compute `voigt_profile` where `far`, by the asymptotic series in ``sigma**2`` (DLMF 7.12.1), which starts with the Cauchy density.

    Computed by `wofz`, its derivatives by a small `sigma` would be differences of nearly equal numbers, and all of those at 0 would be 0.
    """
    point = x + gamma * 1j
    far = far & (point != 0.0)
    sigma, point = operations.where(far, sigma, 0.0), operations.where(far, point, 1.0)
    ratio = sigma / point
    t = ratio * ratio
    series = operations.ones_like(t)
    for k in range(2 * _TERMS_COMPLEX - 1, 0, -2):
        series = t * series * k + 1.0
    # Beside the real axis, whose series has no real part, the normal density counts as well. Farther away it underflows.
    beside = (gamma <= sigma) & (sigma > 0.0) & (operations.abs(point.detach()) < sigma * 50.0)
    deviation = operations.where(beside, sigma, 1.0)
    scaled = operations.where(beside, point, 0.0) / deviation
    normal = operations.real(operations.exp(scaled * scaled * -0.5)) / (deviation * (_ROOT * _ROOT_2))
    return operations.real(series * 1j / point) / math.pi + operations.where(beside, normal, 0.0)
