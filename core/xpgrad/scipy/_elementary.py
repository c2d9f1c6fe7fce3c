"""Special functions composed of exponentials and logarithms, which every backend has without SciPy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._basics.arguments import as_flag, as_int
from xpgrad._basics.docstrings import shares
from xpgrad._basics.dtypes import finfo
from xpgrad._basics.shapes import Axis, normalize_reduction_axes
from xpgrad._modes import state
from xpgrad._rows.namespace import operations
from xpgrad.rules.elementwise import is_complex, nan_unless
from xpgrad.scipy._declare import as_complex, front, helper, operands_of, row_only, special, valid

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = [
    "cbrt", "cosdg", "cosm1", "cotdg", "entr", "exp10", "exp2", "expit", "huber", "kl_div", "lambertw", "log_expit", "log_softmax", "logit",
    "logsumexp", "pseudo_huber", "radian", "rel_entr", "sindg", "sinc", "softmax", "tandg", "xlog1py", "xlogy",
]  # fmt: skip

_document_real = shares(
    parameters="""\
x : Tensor or number
    Any shape; real. Differentiable."""
)

# -- the logistic function ---------------------------------------------------------------------------------------------------


def _expit(xp: Any, x: Any) -> Any:
    small = xp.exp(-xp.abs(x))
    return xp.where(x < 0, small, xp.ones_like(small)) / (small + 1.0)


@special(lambda g, x, out, xp: g * (out * xp.special_expit(-x)), composed=_expit)
@_document_real
def expit(x: Operand, /) -> Tensor:
    """Return the logistic function ``1 / (1 + exp(-x))``, accurate in both tails.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([-1000.0, 0.0, 1.0], requires_grad=True)
    >>> special.expit(x).detach()
    tensor([0.    , 0.5   , 0.7311])
    >>> special.expit(x).sum().backward()
    >>> x.grad
    tensor([0.    , 0.25  , 0.1966])
    """


def _logit(xp: Any, x: Any) -> Any:
    # Near 1/2 the quotient is near 1, and its logarithm would magnify the rounding error of the quotient.
    middle = (x > 0.3) & (x < 0.65)
    half = xp.where(middle, (x - 0.5) * 2.0, xp.zeros_like(x))
    rest = xp.where(middle, xp.zeros_like(x) + 0.25, x)
    return xp.where(middle, xp.log1p(half) - xp.log1p(-half), xp.log(rest) - xp.log1p(-rest))


@special(lambda g, x, out, xp: g * valid(1.0 / (x * (1.0 - x)), out, xp), composed=_logit)
def logit(x: Operand, /) -> Tensor:
    """Return the inverse of `expit`, ``log(x / (1 - x))``; infinite at 0 and 1, nan outside.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real, in [0, 1]. Differentiable; the derivative is infinite at the ends and nan outside.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.logit(xp.asarray([0.0, 0.5, 0.75]))
    tensor([  -inf, 0.    , 1.0986])
    >>> xp.func.grad(special.logit)(0.75)  # 1 / (x * (1 - x))
    tensor(5.3333)
    """


def _log_expit(xp: Any, x: Any) -> Any:
    zero = xp.zeros_like(x)
    return xp.where(x < 0, x, zero) - xp.log1p(xp.exp(-xp.abs(x)))


@special(lambda g, x, xp: g * xp.special_expit(-x), composed=_log_expit)
@_document_real
def log_expit(x: Operand, /) -> Tensor:
    """Return the logarithm of `expit`, even if that underflows.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([-1000.0, -1.0], requires_grad=True)
    >>> special.log_expit(x).detach()  # expit(-1000.0) is 0
    tensor([-1000.    ,    -1.3133])
    >>> special.log_expit(x).sum().backward()
    >>> x.grad
    tensor([1.    , 0.7311])
    """


# -- products with logarithms ------------------------------------------------------------------------------------------------


def _product(x: Any, y: Any, log: Any, xp: Any) -> Any:
    """Return ``x * log(y)``, and 0 where `x` is 0 unless `y` is NaN."""
    zero = (x == 0) & ~xp.isnan(y)
    safe = xp.where(zero, xp.ones_like(y), y)
    return xp.where(zero, xp.zeros_like(x * safe), x * log(safe))


@helper(
    lambda g, y, xp: g / y, lambda g, x, y, xp: -g * xp.special_ratio(xp.special_ratio(x, y), y), composed=True,
)  # fmt: skip
def _ratio(xp: Any, x: Any, y: Any) -> Any:
    """Return ``x / y``, but 0 for 0 / 0; the derivative with respect to `x` is infinite there."""
    none = (x == 0) & (y == 0)
    return x / xp.where(none, xp.ones_like(y), y)


def _domain(slope: Any, y: Any, low: float, xp: Any) -> Any:
    """Return the derivative `slope` with NaN where a real `y` is below `low`."""
    return slope if is_complex(y, xp) else nan_unless(~(y < low), slope, xp)


@special(
    lambda g, x, y, xp: g * _domain(xp.log(y), y, 0.0, xp), lambda g, x, y, xp: g * _domain(xp.special_ratio(x, y), y, 0.0, xp),
    composed=lambda xp, x, y: _product(x, y, xp.log, xp), complex=True,
)  # fmt: skip
def xlogy(x: Operand, y: Operand, /) -> Tensor:
    """Return ``x * log(y)``, and 0 where `x` is 0.

    Parameters
    ----------
    x : Tensor or number
        Real or complex. Differentiable: the derivative is ``log(y)``.
    y : Tensor or number
        Real, at least 0, or complex; broadcasts with `x`. Differentiable; nan below 0, unless `x` is 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([0.0, 2.0], requires_grad=True)
    >>> y = xp.tensor([3.0, 3.0], requires_grad=True)
    >>> special.xlogy(x, y).sum().backward()
    >>> x.grad, y.grad
    (tensor([1.0986, 1.0986]), tensor([0.    , 0.6667]))
    >>> special.xlogy(0.0, 0.0)
    tensor(0.)
    """


@special(
    lambda g, x, y, xp: g * _domain(xp.log1p(y), y, -1.0, xp), lambda g, x, y, xp: g * _domain(xp.special_ratio(x, 1.0 + y), y, -1.0, xp),
    composed=lambda xp, x, y: _product(x, y, xp.log1p, xp), complex=True,
)  # fmt: skip
def xlog1py(x: Operand, y: Operand, /) -> Tensor:
    """Return ``x * log1p(y)``, and 0 where `x` is 0.

    Parameters
    ----------
    x : Tensor or number
        Real or complex. Differentiable: the derivative is ``log1p(y)``.
    y : Tensor or number
        Real, at least -1, or complex; broadcasts with `x`. Differentiable; nan below -1, unless `x` is 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.xlog1py(0.0, -1.0)
    tensor(0.)
    >>> xp.func.grad(special.xlog1py, argnums=(0, 1))(2.0, 1.0)
    (tensor(0.6931), tensor(1.))
    """


def _entr(xp: Any, x: Any) -> Any:
    positive = x > 0
    safe = xp.where(positive, x, xp.ones_like(x))
    return xp.where(positive, -safe * xp.log(safe), xp.where(x < 0, xp.zeros_like(x) - math.inf, x * 0.0))


@special(lambda g, x, xp: g * nan_unless(~(x < 0), -xp.log(x) - 1.0, xp), composed=_entr)
def entr(x: Operand, /) -> Tensor:
    """Return ``-x * log(x)``, 0 at 0, and minus infinity below.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real. Differentiable above 0; at 0 the derivative is infinite, below it is nan.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> p = xp.tensor([0.5, 0.25, 0.25], requires_grad=True)
    >>> entropy = special.entr(p).sum()
    >>> entropy.backward()
    >>> round(entropy.item(), 4), p.grad  # the derivative is -log(p) - 1
    (1.0397, tensor([-0.3069,  0.3863,  0.3863]))
    """


def _log_ratio(x: Any, y: Any, xp: Any) -> Any:
    """Return ``log(x / y)`` for positive numbers, even if the quotient overflows; NaN elsewhere, and minus infinity for `x` = 0."""
    both = (x >= 0) & (y > 0)
    x, y = nan_unless(both, x, xp), nan_unless(both, y, xp)
    near = (x > y * 0.5) & (x < y * 2.0)
    step = xp.where(near, (x - y) / y, xp.zeros_like(x))
    return xp.where(near, xp.log1p(step), xp.log(xp.where(near, xp.ones_like(x), x)) - xp.log(xp.where(near, xp.ones_like(y), y)))


def _rel_entr(xp: Any, x: Any, y: Any) -> Any:
    both, none = (x > 0) & (y > 0), (x == 0) & (y >= 0)
    one = xp.ones_like(x * y)
    value = xp.where(both, x, one) * _log_ratio(xp.where(both, x, one), xp.where(both, y, one), xp)
    unknown = xp.isnan(x) | xp.isnan(y)
    return xp.where(both, value, xp.where(none, xp.zeros_like(value), xp.where(unknown, x + y, xp.zeros_like(value) + math.inf)))


def _kl_div(xp: Any, x: Any, y: Any) -> Any:
    both, none = (x > 0) & (y > 0), (x == 0) & (y >= 0)
    one = xp.ones_like(x * y)
    p, q = xp.where(both, x, one), xp.where(both, y, one)
    unknown = xp.isnan(x) | xp.isnan(y)
    value = p * _log_ratio(p, q, xp) + (q - p)
    return xp.where(both, value, xp.where(none, y + xp.zeros_like(value), xp.where(unknown, x + y, xp.zeros_like(value) + math.inf)))


def _entropy_y(g: Any, x: Any, y: Any, xp: Any) -> Any:
    return g * -nan_unless((x >= 0) & (y >= 0), xp.special_ratio(x, y), xp)


def _divergence_y(g: Any, x: Any, y: Any, xp: Any) -> Any:
    # One quotient: ``1 - x / y`` would keep the rounding error of the quotient near `x` = `y`.
    return g * nan_unless((x >= 0) & (y >= 0), xp.special_ratio(y - x, y), xp)


@special(lambda g, x, y, xp: g * (_log_ratio(x, y, xp) + 1.0), _entropy_y, composed=_rel_entr)
def rel_entr(x: Operand, y: Operand, /) -> Tensor:
    """Return ``x * log(x / y)``, 0 for `x` = 0 and `y` >= 0, and infinite elsewhere.

    Parameters
    ----------
    x : Tensor or number
        Real, at least 0. Differentiable if `x` and `y` are above 0; otherwise the derivative is not finite.
    y : Tensor or number
        Real, at least 0; broadcasts with `x`. Differentiable; the derivative is nan outside the domain.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> p, q = xp.asarray([0.5, 0.5, 0.0]), xp.tensor([0.25, 0.5, 0.25], requires_grad=True)
    >>> divergence = special.rel_entr(p, q).sum()
    >>> divergence.backward()
    >>> round(divergence.item(), 4), q.grad + 0.0  # the derivative is -p / q
    (0.3466, tensor([-2., -1.,  0.]))
    """


@special(lambda g, x, y, xp: g * _log_ratio(x, y, xp), _divergence_y, composed=_kl_div)
def kl_div(x: Operand, y: Operand, /) -> Tensor:
    """Return ``x * log(x / y) - x + y`` for positive `x` and `y`, `y` if `x` is 0 and `y` at least 0, and infinity otherwise.

    Parameters
    ----------
    x : Tensor or number
        Real, at least 0. Differentiable if `x` and `y` are above 0; otherwise the derivative is not finite.
    y : Tensor or number
        Real, at least 0; broadcasts with `x`. Differentiable; the derivative is nan outside the domain.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> y = xp.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> special.kl_div(2.0, y).detach()  # least at y = 2
    tensor([0.3863, 0.    , 0.6137])
    >>> special.kl_div(2.0, y).sum().backward()
    >>> y.grad
    tensor([-1. ,  0. ,  0.5])
    """


# -- sinc --------------------------------------------------------------------------------------------------------------------


def _sinc(xp: Any, x: Any) -> Any:
    zero = x == 0
    y = xp.where(zero, xp.ones_like(x) * 1e-20, x) * math.pi
    return xp.sin(y) / y


def _sinc_slope(g: Any, x: Any, out: Any, xp: Any) -> Any:
    """Return the vjp of `sinc`."""
    # Near 0, where the two terms nearly cancel, the power series is used.
    near = xp.abs(x) < 0.5
    small = xp.where(near, x, xp.zeros_like(x))
    t = small * small
    series = xp.zeros_like(t)
    for k in range(14, 0, -1):
        series = series * t + (-1) ** k * 2 * k * math.pi ** (2 * k) / math.factorial(2 * k + 1)
    far = xp.where(near, xp.ones_like(x), x)
    return g * xp.where(near, series * small, (xp.cos(far * math.pi) - out) / far)


@special(_sinc_slope, composed=_sinc, complex=True)
def sinc(x: Operand, /) -> Tensor:
    """Return ``sin(pi * x) / (pi * x)``, and 1 at 0.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Differentiable everywhere.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([0.0, 0.5, 1.5], requires_grad=True)
    >>> special.sinc(x).detach()
    tensor([ 1.    ,  0.6366, -0.2122])
    >>> special.sinc(x).sum().backward()
    >>> x.grad + 0.0
    tensor([ 0.    , -1.2732,  0.1415])
    """


# -- powers and angles -------------------------------------------------------------------------------------------------------


def _cbrt(xp: Any, x: Any) -> Any:
    special = (x == 0) | ~xp.isfinite(x)
    safe = xp.where(special, xp.ones_like(x), xp.abs(x))
    root = xp.pow(safe, xp.zeros_like(x) + 1.0 / 3.0)
    root = root - (root - safe / root / root) / 3.0  # one step of Newton's method: 1/3 is rounded
    return xp.where(special, x, xp.sign(x) * root)


@special(lambda g, out, xp: g / (out * out * 3.0), composed=_cbrt)
def cbrt(x: Operand, /) -> Tensor:
    """Return the real cube root.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real. Differentiable; the derivative is infinite at 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.cbrt(xp.asarray([-8.0, 0.0, 27.0]))
    tensor([-2.,  0.,  3.])
    >>> xp.func.grad(special.cbrt)(8.0)
    tensor(0.0833)
    """


@special(lambda g, out, xp: g * (out * math.log(2.0)), composed=lambda xp, x: xp.pow(xp.zeros_like(x) + 2.0, x))
@_document_real
def exp2(x: Operand, /) -> Tensor:
    """Return ``2**x``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.exp2(xp.asarray([-1.0, 0.0, 3.0]))
    tensor([0.5, 1. , 8. ])
    >>> xp.func.grad(special.exp2)(0.0)  # log(2)
    tensor(0.6931)
    """


@special(lambda g, out, xp: g * (out * math.log(10.0)), composed=lambda xp, x: xp.pow(xp.zeros_like(x) + 10.0, x))
@_document_real
def exp10(x: Operand, /) -> Tensor:
    """Return ``10**x``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.exp10(xp.asarray([-1.0, 0.0, 2.0]))
    tensor([  0.1,   1. , 100. ])
    >>> xp.func.grad(special.exp10)(0.0)  # log(10)
    tensor(2.3026)
    """


def _cosm1(xp: Any, x: Any) -> Any:
    half = xp.sin(x * 0.5)
    return half * half * -2.0


@special(lambda g, x, xp: -g * xp.sin(x), composed=_cosm1)
@_document_real
def cosm1(x: Operand, /) -> Tensor:
    """Return ``cos(x) - 1``, accurate for small `x`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.cosm1(1.0)
    tensor(-0.4597)
    >>> xp.func.grad(special.cosm1)(1.0)  # -sin(1.0)
    tensor(-0.8415)
    """


_DEGREE = math.pi / 180.0
_document_degrees = shares(
    parameters="""\
x : Tensor or number
    Any shape; real, in degrees. Differentiable."""
)


def _of_degrees(x: Any, xp: Any) -> tuple[Any, Any]:
    """Return the sine and the cosine of an angle in degrees, exact at multiples of 90."""
    turns = xp.round(x / 90.0)
    rest = (x - turns * 90.0) * _DEGREE
    quarter = turns - xp.floor(turns * 0.25) * 4.0
    sine, cosine = xp.sin(rest), xp.cos(rest)
    odd, back = (quarter == 1) | (quarter == 3), quarter >= 2
    first, second = xp.where(odd, cosine, sine), xp.where(odd, -sine, cosine)
    return xp.where(back, -first, first), xp.where(back, -second, second)


def _tangent_of_degrees(xp: Any, x: Any) -> Any:
    sine, cosine = _of_degrees(x, xp)
    return sine / cosine


def _cotangent_of_degrees(xp: Any, x: Any) -> Any:
    sine, cosine = _of_degrees(x, xp)
    return cosine / sine


@special(lambda g, x, xp: g * (xp.special_cosdg(x) * _DEGREE), composed=lambda xp, x: _of_degrees(x, xp)[0])
@_document_degrees
def sindg(x: Operand, /) -> Tensor:
    """Return the sine of an angle in degrees.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.sindg(xp.asarray([0.0, 30.0, 90.0]))
    tensor([0. , 0.5, 1. ])
    >>> xp.func.grad(special.sindg)(0.0)  # pi / 180
    tensor(0.0175)
    """


@special(lambda g, x, xp: g * (xp.special_sindg(x) * -_DEGREE), composed=lambda xp, x: _of_degrees(x, xp)[1])
@_document_degrees
def cosdg(x: Operand, /) -> Tensor:
    """Return the cosine of an angle in degrees.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.cosdg(xp.asarray([0.0, 60.0, 180.0]))
    tensor([ 1. ,  0.5, -1. ])
    >>> xp.func.grad(special.cosdg)(90.0)  # -pi / 180
    tensor(-0.0175)
    """


@special(lambda g, out, xp: g * ((out * out + 1.0) * _DEGREE), composed=_tangent_of_degrees)
@_document_degrees
def tandg(x: Operand, /) -> Tensor:
    """Return the tangent of an angle in degrees; infinite at odd multiples of 90.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.tandg(xp.asarray([0.0, 45.0]))
    tensor([0., 1.])
    >>> xp.func.grad(special.tandg)(45.0)  # pi / 90
    tensor(0.0349)
    """


@special(lambda g, out, xp: g * ((out * out + 1.0) * -_DEGREE), composed=_cotangent_of_degrees)
@_document_degrees
def cotdg(x: Operand, /) -> Tensor:
    """Return the cotangent of an angle in degrees; infinite at multiples of 180.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.cotdg(xp.asarray([45.0, 90.0]))
    tensor([1., 0.])
    >>> xp.func.grad(special.cotdg)(45.0)  # -pi / 90
    tensor(-0.0349)
    """


def _radian_by(scale: float) -> Any:
    """Return the formula of a part of an angle: a constant, but nan where a part is nan."""
    return lambda g, out, xp: g * valid(xp.zeros_like(out) + scale, out, xp)


@special(
    _radian_by(_DEGREE), _radian_by(_DEGREE / 60.0), _radian_by(_DEGREE / 3600.0),
    composed=lambda xp, d, m, s: (d + m / 60.0 + s / 3600.0) * _DEGREE,
)  # fmt: skip
def radian(d: Operand, m: Operand, s: Operand, /) -> Tensor:
    """Convert degrees, minutes and seconds to radians.

    Parameters
    ----------
    d, m, s : Tensor or number
        Degrees, minutes and seconds, real; they broadcast. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.radian(180.0, 0.0, 0.0)
    tensor(3.1416)
    >>> xp.func.grad(special.radian)(90.0, 30.0, 0.0)
    tensor(0.0175)
    """


# -- loss functions ----------------------------------------------------------------------------------------------------------


def _huber(xp: Any, delta: Any, r: Any) -> Any:
    size = xp.abs(r)
    value = xp.where(size <= delta, r * r * 0.5, delta * (size - delta * 0.5))
    return xp.where(delta < 0, xp.zeros_like(value) + math.inf, value)


def _huber_by_delta(delta: Any, r: Any, xp: Any) -> Any:
    over = xp.abs(r) - delta
    slope = xp.where(over > 0, over, xp.zeros_like(over))
    return nan_unless(~(delta < 0), slope, xp)


def _huber_by_r(delta: Any, r: Any, xp: Any) -> Any:
    slope = xp.where(xp.abs(r) <= delta, r, delta * xp.sign(r))
    return nan_unless(~(delta < 0), slope, xp)


@special(
    lambda g, delta, r, xp: g * _huber_by_delta(delta, r, xp), lambda g, delta, r, xp: g * _huber_by_r(delta, r, xp), composed=_huber,
)  # fmt: skip
def huber(delta: Operand, r: Operand, /) -> Tensor:
    """Return the Huber loss: ``r**2 / 2`` up to `delta`, and linear beyond.

    Parameters
    ----------
    delta : Tensor or number
        Where the loss becomes linear; real, at least 0; the loss is infinite below. Differentiable.
    r : Tensor or number
        Residual, real; broadcasts with `delta`. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> r = xp.tensor([0.5, 1.0, 3.0], requires_grad=True)
    >>> special.huber(1.0, r).detach()
    tensor([0.125, 0.5  , 2.5  ])
    >>> special.huber(1.0, r).sum().backward()
    >>> r.grad
    tensor([0.5, 1. , 1. ])
    """


def _smooth_parts(delta: Any, r: Any, xp: Any) -> tuple[Any, Any]:
    """Return ``r / root`` and ``r / (root + delta)`` with ``root = hypot(delta, r)``; 0 where both are 0. Nothing is divided by `delta`."""
    root = xp.hypot(delta, r)
    none = root == 0
    root = xp.where(none, xp.ones_like(root), root)
    return r / root, r / (root + delta)


def _pseudo_huber(xp: Any, delta: Any, r: Any) -> Any:
    value = delta * (r * _smooth_parts(delta, r, xp)[1])
    return xp.where(delta < 0, xp.zeros_like(value) + math.inf, value)


def _pseudo_by_delta(delta: Any, r: Any, xp: Any) -> Any:
    sine, part = _smooth_parts(delta, r, xp)
    slope = (sine * part) * (part * r)
    return nan_unless(~(delta < 0), slope, xp)


def _pseudo_by_r(delta: Any, r: Any, xp: Any) -> Any:
    slope = delta * _smooth_parts(delta, r, xp)[0]
    return nan_unless(~(delta < 0), slope, xp)


@special(
    lambda g, delta, r, xp: g * _pseudo_by_delta(delta, r, xp), lambda g, delta, r, xp: g * _pseudo_by_r(delta, r, xp),
    composed=_pseudo_huber,
)  # fmt: skip
def pseudo_huber(delta: Operand, r: Operand, /) -> Tensor:
    """Return the smooth Huber loss ``delta**2 * (sqrt(1 + (r / delta)**2) - 1)``.

    Parameters
    ----------
    delta : Tensor or number
        Where the loss becomes nearly linear; real, at least 0; the loss is infinite below. Differentiable.
    r : Tensor or number
        Residual, real; broadcasts with `delta`. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> r = xp.tensor([0.0, 1.0, 3.0], requires_grad=True)
    >>> special.pseudo_huber(1.0, r).detach()
    tensor([0.    , 0.4142, 2.1623])
    >>> special.pseudo_huber(1.0, r).sum().backward()
    >>> r.grad
    tensor([0.    , 0.7071, 0.9487])
    """


# -- over axes ---------------------------------------------------------------------------------------------------------------


def _largest(xp: Any, x: Any, axes: Any) -> Any:
    """Return the largest real part over axes, with axes of length 1; 0 if it is infinite or there are no elements."""
    top = xp.max(xp.real(x) if is_complex(x, xp) else x, axis=axes, keepdims=True)
    return xp.where(xp.isfinite(top), top, xp.zeros_like(top))


def _logsumexp_vjp(g: Any, x: Any, out: Any, x_shape: Any, axes: Any, keepdims: bool, xp: Any) -> Any:
    return xp.expand_reduced(g, x_shape, axes, keepdims) * xp.exp(x - xp.expand_reduced(out, x_shape, axes, keepdims))


def _logsumexp_jvp(d_x: Any, x: Any, out: Any, x_shape: Any, axes: Any, keepdims: bool, xp: Any) -> Any:
    return xp.reduce_sum(d_x * xp.exp(x - xp.expand_reduced(out, x_shape, axes, keepdims)), axes, keepdims)


def _logsumexp_kernel(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    top = _largest(xp, x, axes)
    out = xp.log(xp.sum(xp.exp(x - top), axis=axes, keepdims=True)) + top
    if keepdims:
        return out
    return xp.reshape(out, tuple(n for i, n in enumerate(out.shape) if axes is not None and i not in axes))


@row_only(_logsumexp_vjp, composed=_logsumexp_kernel, jvp=_logsumexp_jvp)
def _logsumexp(x: Any, axes: Any, keepdims: bool) -> Any:
    """Compute `logsumexp`; this function declares its row."""


def _pair_vjp(g: Any, out: Any, x_shape: Any, axes: Any, xp: Any) -> Any:
    weights, total = out[1], None
    if g[0] is not None:
        total = xp.expand_reduced(g[0], x_shape, axes, True) * weights
    if g[1] is not None:
        inner = _softmax_vjp(g[1], weights, axes, xp)
        total = inner if total is None else total + inner
    return total


def _pair_jvp(d_x: Any, out: Any, axes: Any, xp: Any) -> Any:
    moved = out[1] * d_x
    total = xp.reduce_sum(moved, axes, True)
    return total, moved - out[1] * total


def _pair_kernel(xp: Any, x: Any, axes: Any) -> Any:
    top = _largest(xp, x, axes)
    e = xp.exp(x - top)
    total = xp.sum(e, axis=axes, keepdims=True)
    return xp.log(total) + top, e / total


@row_only(_pair_vjp, composed=_pair_kernel, jvp=_pair_jvp, outputs=2)
def _logsumexp_and_weights(x: Any, axes: Any) -> Any:
    """Compute `logsumexp` with axes of length 1, and its derivative `softmax`, together for use in a gradient."""


def _softmax_kernel(xp: Any, x: Any, axes: Any) -> Any:
    e = xp.exp(x - _largest(xp, x, axes))
    return e / xp.sum(e, axis=axes, keepdims=True)


def _softmax_vjp(g: Any, out: Any, axes: Any, xp: Any) -> Any:
    return (g - xp.reduce_sum(g * out, axes, True)) * out  # NB: in this order NumPy writes to its own temporary arrays


@row_only(_softmax_vjp, composed=_softmax_kernel, jvp=lambda d_x, out, axes, xp: _softmax_vjp(d_x, out, axes, xp))
def _softmax(x: Any, axes: Any) -> Any:
    """Compute `softmax`; this function declares its row."""


def _log_softmax_kernel(xp: Any, x: Any, axes: Any) -> Any:
    rest = x - _largest(xp, x, axes)
    return rest - xp.log(xp.sum(xp.exp(rest), axis=axes, keepdims=True))


@row_only(
    lambda g, out, axes, xp: g - xp.exp(out) * xp.reduce_sum(g, axes, True), composed=_log_softmax_kernel,
    jvp=lambda d_x, out, axes, xp: d_x - xp.reduce_sum(d_x * xp.exp(out), axes, True),
)  # fmt: skip
def _log_softmax(x: Any, axes: Any) -> Any:
    """Compute `log_softmax`; this function declares its row."""


@front
def logsumexp(a: Tensor, axis: Axis = None, b: Operand | None = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """Return the logarithm of the sum of exponentials over axes, without overflow.

    Parameters
    ----------
    a : Tensor
        Real or complex.
    axis : int or tuple of int, optional
        Default: all.
    b : Tensor or number, optional
        Factors of the exponentials, which broadcast with `a`; a factor of 0 leaves an element out, whatever it is.
    keepdims : bool
        Keep reduced axes with length 1.
    return_sign : bool
        Return the logarithm of the absolute value of the sum, and the sign of the sum, as a pair. Without it the logarithm of a negative
        sum of real numbers is nan.

    Returns
    -------
    Tensor, or a pair of Tensors

    Raises
    ------
    TypeError
        An argument is neither a Tensor, an array nor a number, or a flag is not a bool.
    ValueError
        The shapes do not broadcast.
    IndexError
        An axis is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([800.0, 800.0, 0.0, 800.0, 800.0], requires_grad=True)
    >>> special.logsumexp(x).detach()  # 800 + log(4), where exp(800.0) overflows
    tensor(801.3863)
    >>> special.logsumexp(x).backward()
    >>> x.grad  # equals `softmax`
    tensor([0.25, 0.25, 0.  , 0.25, 0.25])
    >>> special.logsumexp(xp.asarray([1.0, 0.0]), b=xp.asarray([1.0, -1.0]))  # log(e - 1)
    tensor(0.5413)
    """
    name = "scipy.special.logsumexp"
    keepdims, signed = as_flag(keepdims, name, "keepdims"), as_flag(return_sign, name, "return_sign")
    if b is None and not signed:
        (x,) = operands_of("logsumexp", ("a",), (a,), takes_complex=True)
        axes = normalize_reduction_axes(axis, x.ndim, name)
        if 0 in x.shape:  # sums may have no terms, of which none is the largest
            return _sum_of_none(x, axes, keepdims)[0]
        if x._node is None or x.dtype.is_complex or not state.records(state.current()):
            return _logsumexp(x, axes, keepdims)
        out = _logsumexp_and_weights(x, axes)[0]
        return out if keepdims else _drop_axes(out, axes)
    x, factor = operands_of("logsumexp", ("a", "b"), (a, 1.0 if b is None else b), takes_complex=True)
    dtype = operations.result_type(x, factor)
    x, factor = operations.broadcast_arrays(x._cast(dtype), factor._cast(dtype))
    axes = normalize_reduction_axes(axis, x.ndim, name)
    if 0 in x.shape:
        none, sign = _sum_of_none(x, axes, keepdims)
        return (none, sign) if signed else none
    left_out, raw = factor == 0, operations.real(x.detach())
    top = operations.max(operations.where(left_out, operations.zeros_like(raw) - math.inf, raw), axis=axes, keepdims=True)
    top = operations.where(operations.isfinite(top), top, operations.zeros_like(top))
    # The derivative with respect to a factor of 0 is its exponential, but the product with an infinite one or nan would be nan.
    largest = math.log(finfo(x.dtype).max) - 1.0
    x = operations.where(left_out & ~(raw - top < largest), top + largest, x)
    total = operations.sum(factor * operations.exp(x - top), axis=axes, keepdims=True)
    if not signed:
        out = operations.log(total) + top
        return out if keepdims else _drop_axes(out, axes)
    out, sign = operations.log(operations.abs(total)) + top, operations.sign(total)
    return (out, sign) if keepdims else (_drop_axes(out, axes), _drop_axes(sign, axes))


def _sum_of_none(x: Any, axes: Any, keepdims: bool) -> tuple[Any, Any]:
    """Return the logarithm and the sign of sums over axes of an array without elements."""
    sign = operations.sum(x, axis=axes, keepdims=keepdims)
    return (operations.real(sign) - math.inf)._cast(x.dtype), sign


def _drop_axes(x: Any, axes: Any) -> Any:
    return operations.reshape(x, tuple(n for i, n in enumerate(x.shape) if axes is not None and i not in axes))


def _over_axes(name: str, row: Any, x: Any, axis: Axis) -> Any:
    (x,) = operands_of(name, ("x",), (x,), takes_complex=True)
    return row(x, normalize_reduction_axes(axis, x.ndim, f"scipy.special.{name}"))


@front
def softmax(x: Tensor, axis: Axis = None) -> Tensor:
    """Return the exponentials divided by their sum over axes, computed without overflow.

    Parameters
    ----------
    x : Tensor
        Real or complex. Differentiable.
    axis : int or tuple of int, optional
        Axes over which the results sum to 1. Default: all.

    Returns
    -------
    Tensor
        The shape of `x`, floating-point or complex.

    Raises
    ------
    TypeError
        `x` is neither a Tensor, an array nor a number.
    IndexError
        An axis is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([[0.0, 0.0], [0.0, 1000.0]], requires_grad=True)
    >>> special.softmax(x, axis=1).detach()
    tensor([[0.5, 0.5],
            [0. , 1. ]])
    >>> special.softmax(x, axis=1)[:, 0].sum().backward()
    >>> x.grad
    tensor([[ 0.25, -0.25],
            [ 0.  ,  0.  ]])
    """
    return _over_axes("softmax", _softmax, x, axis)


@front
def log_softmax(x: Tensor, axis: Axis = None) -> Tensor:
    """Return the logarithm of `softmax` over axes, even if that underflows.

    Parameters
    ----------
    x : Tensor
        Real or complex. Differentiable.
    axis : int or tuple of int, optional
        Axes over which the exponentials of the results sum to 1. Default: all.

    Returns
    -------
    Tensor
        The shape of `x`, floating-point or complex.

    Raises
    ------
    TypeError
        `x` is neither a Tensor, an array nor a number.
    IndexError
        An axis is out of range.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> scores = xp.tensor([2.0, 0.0, 0.0], requires_grad=True)
    >>> loss = -special.log_softmax(scores)[0]  # the cross entropy of class 0
    >>> loss.backward()
    >>> scores.grad  # softmax(scores) - [1, 0, 0]
    tensor([-0.213 ,  0.1065,  0.1065])
    >>> special.log_softmax(xp.asarray([0.0, -1000.0]))
    tensor([    0., -1000.])
    """
    return _over_axes("log_softmax", _log_softmax, x, axis)


# -- Lambert's W function ----------------------------------------------------------------------------------------------------


@row_only(lambda g, out, xp: g * (xp.exp(-out) / (out + 1.0)))
def _lambertw(z: Any, k: int) -> Any:
    """Compute `lambertw`; this function declares its row."""


@front
def lambertw(z: Operand, k: int = 0, tol: float = 1e-8) -> Tensor:
    """Return Lambert's W function, a complex solution of ``w * exp(w) == z``.

    Parameters
    ----------
    z : Tensor or number
        Any shape; real or complex. Differentiable, except at the branch point ``-exp(-1)``.
    k : int
        Branch of the function.
    tol : float
        Accepted for compatibility; only the default is supported.

    Returns
    -------
    Tensor
        The shape of `z`, complex.

    Raises
    ------
    TypeError
        `z` is neither a Tensor, an array nor a number, `k` is not an integer, or another `tol` is given.
    CapabilityError
        The library of the arrays has no such function, and SciPy is not installed or cannot reach the memory.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> w = special.lambertw(xp.asarray([0.0, 1.0]))
    >>> xp.real(w)
    tensor([0.    , 0.5671])
    >>> xp.real(w * xp.exp(w))  # it solves w * exp(w) == z
    tensor([0., 1.])
    >>> xp.func.grad(lambda z: xp.real(special.lambertw(z)))(1.0)
    tensor(0.3619)
    """
    if tol != 1e-8:
        msg = f"scipy.special.lambertw: xpgrad has no `tol`={tol!r}; leave it out"
        raise TypeError(msg)
    branch = as_int(k, "scipy.special.lambertw", "k")
    (x,) = operands_of("lambertw", ("z",), (z,), takes_complex=True)
    return _lambertw(as_complex(x), branch)
