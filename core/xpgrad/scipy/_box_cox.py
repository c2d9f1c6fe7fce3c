"""The Box-Cox transforms and their inverses, and the relative exponential `exprel` of which they are made.

Near 0 the quotients that define the derivatives cancel, so power series are used there.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._basics.docstrings import shares
from xpgrad.scipy._declare import special

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = ["boxcox", "boxcox1p", "exprel", "inv_boxcox", "inv_boxcox1p"]

_document_power = shares(
    parameters="""\
lmbda : Tensor or number
    Power, real; broadcasts with the other argument. Differentiable, also at 0."""
)


def _exprel(xp: Any, x: Any) -> Any:
    special = (x == 0) | (x == math.inf)
    safe = xp.where(special, xp.ones_like(x), x)
    return xp.where(special, x + 1.0, xp.expm1(safe) / safe)


def _exprel_slope(x: Any, xp: Any) -> Any:
    """Return the derivative of `exprel`."""
    near, above = xp.abs(x) < 1.0, x > 0
    small = xp.where(near, x, xp.zeros_like(x))
    series = xp.zeros_like(x)
    for k in range(22, 0, -1):
        series = series * small + k / math.factorial(k + 1)
    one = xp.ones_like(x)
    high, low = xp.where(near | ~above, one, x), xp.where(near | above, -one, x)
    rising = xp.special_exprel(high) * (1.0 - 1.0 / high) + 1.0 / high
    falling = (xp.exp(low) - xp.special_exprel(low)) / low
    return xp.where(near, series, xp.where(above, rising, falling))


@special(lambda g, x, xp: g * _exprel_slope(x, xp), composed=_exprel)
def exprel(x: Operand, /) -> Tensor:
    """Return the relative error exponential ``(exp(x) - 1) / x``, and 1 at 0.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real. Differentiable everywhere.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.exprel(xp.asarray([-1.0, 0.0, 1e-10]))
    tensor([0.6321, 1.    , 1.    ])
    >>> xp.func.grad(special.exprel)(0.0)
    tensor(0.5)
    """


def _power_transform(log: Any, power: Any, xp: Any) -> Any:
    """Return ``(x**power - 1) / power`` for ``log = log(x)``, and `log` for the power 0."""
    zero = power == 0
    safe = xp.where(zero, xp.ones_like(power), power)
    return xp.where(zero, log + xp.zeros_like(power), xp.expm1(safe * log) / safe)


def _by_power(log: Any, power: Any, xp: Any) -> Any:
    """Return the derivative of `_power_transform` with respect to `power`: ``log**2`` times the slope of `exprel`."""
    lowest = (log == -math.inf) & (power > 0)  # x = 0, where the transform is -1 / power
    safe = xp.where(lowest, xp.zeros_like(log), log)
    positive = xp.where(lowest, power, xp.ones_like(power))
    return xp.where(lowest, 1.0 / (positive * positive), safe * safe * _exprel_slope(power * safe, xp))


def _log_or_nan(x: Any, low: float, log: Any, xp: Any) -> Any:
    return xp.where(x < low, xp.zeros_like(x) + math.nan, log(xp.where(x < low, xp.zeros_like(x), x)))


@special(
    lambda g, x, lmbda, xp: g * xp.exp(xp.special_xlogy(lmbda - 1.0, x)),
    lambda g, x, lmbda, xp: g * _by_power(_log_or_nan(x, 0.0, xp.log, xp), lmbda, xp),
    composed=lambda xp, x, lmbda: _power_transform(_log_or_nan(x, 0.0, xp.log, xp), lmbda, xp),
)  # fmt: skip
@_document_power
def boxcox(x: Operand, lmbda: Operand, /) -> Tensor:
    """Return the Box-Cox transform ``(x**lmbda - 1) / lmbda``, and ``log(x)`` where `lmbda` is 0.

    Parameters
    ----------
    x : Tensor or number
        Real, at least 0; nan below. Differentiable above 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.boxcox(4.0, xp.asarray([0.0, 0.5, 1.0]))
    tensor([1.3863, 2.    , 3.    ])
    >>> xp.func.grad(special.boxcox, argnums=(0, 1))(4.0, 0.0)  # 1 / x, and half of the square of log(x)
    (tensor(0.25), tensor(0.9609))
    """


@special(
    lambda g, x, lmbda, xp: g * xp.exp(xp.special_xlog1py(lmbda - 1.0, x)),
    lambda g, x, lmbda, xp: g * _by_power(_log_or_nan(x, -1.0, xp.log1p, xp), lmbda, xp),
    composed=lambda xp, x, lmbda: _power_transform(_log_or_nan(x, -1.0, xp.log1p, xp), lmbda, xp),
)  # fmt: skip
@_document_power
def boxcox1p(x: Operand, lmbda: Operand, /) -> Tensor:
    """Return the Box-Cox transform of ``1 + x``, accurate for small `x`.

    Parameters
    ----------
    x : Tensor or number
        Real, at least -1; nan below. Differentiable above -1.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.boxcox1p(3.0, xp.asarray([0.0, 0.5, 1.0]))
    tensor([1.3863, 2.    , 3.    ])
    >>> xp.func.grad(special.boxcox1p, argnums=(0, 1))(3.0, 0.0)
    (tensor(0.25), tensor(0.9609))
    """


def _log1p_slope(u: Any, xp: Any) -> Any:
    """Return the derivative of ``log1p(u) / u``, which is -1/2 at 0."""
    near = xp.abs(u) < 0.3
    small = xp.where(near, u, xp.zeros_like(u))
    series = xp.zeros_like(u)
    for k in range(34, -1, -1):
        series = series * small + (-1.0) ** (k + 1) * (k + 1) / (k + 2)
    far = xp.where(near, xp.ones_like(u), u)
    return xp.where(near, series, (far / (1.0 + far) - xp.log1p(far)) / (far * far))


def _inverse_exponent(y: Any, power: Any, xp: Any) -> Any:
    """Return the logarithm of the inverse transform: ``log1p(power * y) / power``, and `y` for the power 0."""
    zero = power == 0
    safe = xp.where(zero, xp.ones_like(power), power)
    return xp.where(zero, y + xp.zeros_like(power), xp.log1p(safe * y) / safe)


def _inverse_by_y(y: Any, power: Any, whole: Any, xp: Any) -> Any:
    """Return the derivative of `inv_boxcox`, whose value is `whole`, with respect to `y`: its limit where ``1 + power * y`` is 0."""
    base = 1.0 + power * y
    zero, one = xp.zeros_like(base), xp.ones_like(base)
    limit = xp.where(power == 1, one, xp.where((power > 0) & (power < 1), zero, one * math.inf))
    return xp.where(base == 0, limit, whole / xp.where(base == 0, one, base))


def _inverse_by_power(y: Any, power: Any, whole: Any, xp: Any) -> Any:
    """Return the derivative of `inv_boxcox`, whose value is `whole`, with respect to `power`."""
    base = 1.0 + power * y
    end = base == 0
    one = xp.ones_like(base)
    limit = _inverse_by_y(y, power, whole, xp) * xp.where(end, y, one) / xp.where(end, power, one)
    return xp.where(end, limit, whole * (y * y * _log1p_slope(xp.where(end, xp.zeros_like(base), power * y), xp)))


@special(
    lambda g, y, lmbda, out, xp: g * _inverse_by_y(y, lmbda, out, xp),
    lambda g, y, lmbda, out, xp: g * _inverse_by_power(y, lmbda, out, xp),
    composed=lambda xp, y, lmbda: xp.exp(_inverse_exponent(y, lmbda, xp)),
)  # fmt: skip
@_document_power
def inv_boxcox(y: Operand, lmbda: Operand, /) -> Tensor:
    """Return the inverse of `boxcox`, ``(1 + lmbda * y)**(1 / lmbda)``, and ``exp(y)`` where `lmbda` is 0.

    Parameters
    ----------
    y : Tensor or number
        Real; nan where ``1 + lmbda * y`` is negative. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.inv_boxcox(xp.asarray([2.0, 3.0]), xp.asarray([0.5, 1.0]))
    tensor([4., 4.])
    >>> xp.func.grad(special.inv_boxcox, argnums=(0, 1))(1.0, 0.0)
    (tensor(2.7183), tensor(-1.3591))
    """


@special(
    lambda g, y, lmbda, out, xp: g * _inverse_by_y(y, lmbda, out + 1.0, xp),
    lambda g, y, lmbda, out, xp: g * _inverse_by_power(y, lmbda, out + 1.0, xp),
    composed=lambda xp, y, lmbda: xp.expm1(_inverse_exponent(y, lmbda, xp)),
)  # fmt: skip
@_document_power
def inv_boxcox1p(y: Operand, lmbda: Operand, /) -> Tensor:
    """Return the inverse of `boxcox1p`, ``(1 + lmbda * y)**(1 / lmbda) - 1``, and ``expm1(y)`` where `lmbda` is 0.

    Parameters
    ----------
    y : Tensor or number
        Real; nan where ``1 + lmbda * y`` is negative. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.inv_boxcox1p(xp.asarray([2.0, 3.0]), xp.asarray([0.5, 1.0]))
    tensor([3., 3.])
    >>> xp.func.grad(special.inv_boxcox1p, argnums=(0, 1))(1.0, 0.0)
    (tensor(2.7183), tensor(-1.3591))
    """
