"""The regularised incomplete gamma and beta functions, Student's distribution function, and their inverses (DLMF, chapter 8).

Derivatives with respect to a shape have no closed form. They are integrals of the density times the derivative of its
logarithm, which has one sign below the mode and one above. The side without cancellation is integrated by the double exponential formula
for the half line (Takahasi and Mori 1974), with the same steps for all elements.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._basics.docstrings import shares
from xpgrad.scipy._declare import helper, no_derivative, special, valid

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = [
    "betainc", "betaincc", "betainccinv", "betaincinv", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "stdtr", "stdtrit",
]  # fmt: skip

_STEP = 1.0 / 16.0
#: The abscissas and weights of the formula: the integral over the half line is the sum of ``weight * f(abscissa)``.
_NODES = [
    (math.exp(u - math.exp(-u)), _STEP * math.exp(u - math.exp(-u)) * (1.0 + math.exp(-u))) for u in (-3.6 + _STEP * k for k in range(131))
]


# -- what docstrings have in common ---------------------------------------------------------------------------------------------

#: What docstrings say of a shape parameter.
ONCE = "Differentiable once, by quadrature; second derivatives raise NotImplementedError."
_PROBABILITY = """\
y : Tensor or number
    Probability in [0, 1]; nan outside. Broadcasts with the shape parameters. Differentiable."""
_document_gamma = shares(
    parameters=f"""\
a : Tensor or number
    Shape parameter, real, above 0; nan otherwise. {ONCE}
x : Tensor or number
    Real, at least 0; nan below. Broadcasts with `a`. Differentiable to every order.
{_PROBABILITY}"""
)
_document_beta = shares(
    parameters=f"""\
a : Tensor or number
    First shape parameter, real, above 0; nan otherwise. Differentiable once, by quadrature; second derivatives with
    respect to shape parameters raise NotImplementedError.
b : Tensor or number
    Second shape parameter; see `a`. All three arguments broadcast.
x : Tensor or number
    Real, in [0, 1]; nan outside. Differentiable to every order.
{_PROBABILITY}"""
)
_document_student = shares(
    parameters=f"""\
df : Tensor or number
    Degrees of freedom, real, above 0; nan otherwise. {ONCE}"""
)


def _at_zero(x: Any, exponent: Any, xp: Any) -> tuple[Any, Any]:
    """Return ``x**exponent`` at 0, with 1 elsewhere, and `x` with 1 at 0.

    A density is the exponential of a logarithm, because its factors overflow. At an end of the support the logarithm is infinite, and the
    derivatives of the exponential would be products of 0 and infinity; there the power itself is the factor. With the exponent 0 the
    second result remains 0, as a constant, whose logarithm is the derivative by the exponent.
    """
    zero, one = x == 0, xp.ones_like(x)
    return xp.pow(xp.where(zero, x, one), exponent), xp.where(zero, xp.where(exponent == 0, xp.zeros_like(x), one), x)


def _log_at_zero(x: Any, exponent: Any, xp: Any) -> Any:
    """Return ``log(x)``, but 0 where ``x**exponent * log(x)`` is 0 because `x` is."""
    return xp.log(xp.where((x == 0) & (exponent > 0), xp.ones_like(x), x))


# -- the gamma distribution -----------------------------------------------------------------------------------------------------


def _gamma_density(a: Any, x: Any, xp: Any) -> Any:
    """Return ``x**(a - 1) * exp(-x) / gamma(a)``."""
    power, rest = _at_zero(x, a - 1.0, xp)
    return power * xp.exp(xp.special_xlogy(a - 1.0, rest) - x - xp.special_gammaln(a))


def _gamma_by_a(g: Any, a: Any, x: Any, out: Any, xp: Any) -> Any:
    return g * valid(xp.special_gammainc_by_a(a, x), out, xp)


def _gamma_by_x(g: Any, a: Any, x: Any, out: Any, xp: Any) -> Any:
    return g * valid(_gamma_density(a, x, xp), out, xp)


@helper(
    no_derivative("gammainc", "a", "of the second order it is not computed"),
    lambda g, a, x, xp: g * (_gamma_density(a, x, xp) * (_log_at_zero(x, a - 1.0, xp) - xp.special_digamma(a))),
)  # fmt: skip
def gammainc_by_a(xp: Any, a: Any, x: Any) -> Any:
    """Return the derivative of `gammainc` with respect to its shape."""
    inside = (a > 0) & (x > 0) & xp.isfinite(a) & xp.isfinite(x)
    one = xp.ones_like(a * x)
    a1, x1 = xp.where(inside, a, one), xp.where(inside, x, one)
    # For small shapes, in which the parts of the sum have a pole, it is the derivative for the next shape and that of the term between.
    small = a1 < 0.1
    a1 = xp.where(small, a1 + 1.0, a1)
    low = x1 < xp.where(a1 < 1.0, one, a1)
    root = xp.where(low, xp.where(a1 < 1.0, a1, xp.sqrt(a1)), xp.sqrt(x1))
    sign = xp.where(low, -one, one)
    scale = sign / ((x1 - a1) * xp.where((x1 - a1) * sign > 0, sign, xp.zeros_like(one)) + root)
    start = xp.log(x1) - xp.special_digamma(a1)
    total = xp.zeros_like(one)
    for node, weight in _NODES:
        t = scale * node
        total = total + xp.exp(t * a1 - x1 * xp.expm1(t)) * (start + t) * weight
    density = xp.exp(xp.where(small, a1 - 1.0, a1) * xp.log(x1) - x1 - xp.special_gammaln(a1))
    slope = density * xp.where(small, start - total * scale * x1, total * -scale)
    # At 0 and infinity the distribution function is 0 and 1 for every shape.
    fixed = (a > 0) & ((x == 0) | (x == math.inf)) & xp.isfinite(a)
    return xp.where(inside, slope, xp.where(fixed, xp.zeros_like(one), one + math.nan))


@special(_gamma_by_a, _gamma_by_x)
@_document_gamma
def gammainc(a: Operand, x: Operand, /) -> Tensor:
    """Return the regularised lower incomplete gamma function.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> a = xp.tensor(2.0, requires_grad=True)
    >>> x = xp.tensor([0.0, 0.5, 2.0], requires_grad=True)
    >>> special.gammainc(a, x).sum().backward()
    >>> a.grad, x.grad
    (tensor(-0.445), tensor([0.    , 0.3033, 0.2707]))
    """


@special(lambda g, a, x, out, xp: _gamma_by_a(-g, a, x, out, xp), lambda g, a, x, out, xp: _gamma_by_x(-g, a, x, out, xp))
@_document_gamma
def gammaincc(a: Operand, x: Operand, /) -> Tensor:
    """Return the regularised upper incomplete gamma function, ``1 - gammainc(a, x)``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.gammaincc(1.0, xp.asarray([0.0, 1.0]))  # exp(-x)
    tensor([1.    , 0.3679])
    >>> xp.func.grad(special.gammaincc, argnums=(0, 1))(2.0, 0.5)
    (tensor(0.151), tensor(-0.3033))
    """


def _quantile_by_a(g: Any, a: Any, out: Any, xp: Any) -> Any:
    # At the end of the support the quantile is 0 for every shape.
    return g * -xp.keep(out != 0, xp.special_gammainc_by_a(a, out) / _gamma_density(a, out, xp))


@special(_quantile_by_a, lambda g, a, out, xp: g / _gamma_density(a, out, xp))
@_document_gamma
def gammaincinv(a: Operand, y: Operand, /) -> Tensor:
    """Return the inverse of `gammainc` in `x`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> q = xp.tensor([0.25, 0.5], requires_grad=True)
    >>> special.gammaincinv(1.0, q).detach()  # -log(1 - q)
    tensor([0.2877, 0.6931])
    >>> special.gammaincinv(1.0, q).sum().backward()
    >>> q.grad
    tensor([1.3333, 2.    ])
    """


@special(_quantile_by_a, lambda g, a, out, xp: -g / _gamma_density(a, out, xp))
@_document_gamma
def gammainccinv(a: Operand, y: Operand, /) -> Tensor:
    """Return the inverse of `gammaincc` in `x`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = special.gammainccinv(2.0, 0.25)
    >>> special.gammaincc(2.0, x)
    tensor(0.25)
    >>> xp.func.grad(special.gammainccinv)(2.0, 0.25)
    tensor(1.2562)
    """


# -- the beta distribution --------------------------------------------------------------------------------------------------------


def _beta_density(a: Any, b: Any, x: Any, xp: Any) -> Any:
    """Return ``x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)``."""
    first, rest = _at_zero(x, a - 1.0, xp)
    last, other = _at_zero(1.0 - x, b - 1.0, xp)
    inner = xp.where(x == 1, 1.0 - other, x)
    return first * last * xp.exp(xp.special_xlogy(a - 1.0, rest) + xp.special_xlog1py(b - 1.0, -inner) - xp.special_betaln(a, b))


def _beta_by_x(g: Any, a: Any, b: Any, x: Any, out: Any, xp: Any) -> Any:
    return g * valid(_beta_density(a, b, x, xp), out, xp)


def _beta_by_a(g: Any, a: Any, b: Any, x: Any, out: Any, xp: Any) -> Any:
    return g * valid(xp.special_betainc_by_a(a, b, x, 1.0 - x), out, xp)


def _beta_by_b(g: Any, a: Any, b: Any, x: Any, out: Any, xp: Any) -> Any:
    return g * -valid(xp.special_betainc_by_a(b, a, 1.0 - x, x), out, xp)


def _slope_by_x(g: Any, a: Any, b: Any, x: Any, y: Any, xp: Any) -> Any:
    # `y` is 1 - x and moves with it: the whole derivative is that by `x`.
    first, rest = _at_zero(x, a - 1.0, xp)
    last, other = _at_zero(y, b - 1.0, xp)
    density = first * last * xp.exp(xp.special_xlogy(a - 1.0, rest) + xp.special_xlogy(b - 1.0, other) - xp.special_betaln(a, b))
    return g * (density * (_log_at_zero(x, a - 1.0, xp) - xp.special_psi_gap(a, b)))


_TWICE = "of the second order it is not computed"


@helper(no_derivative("betainc", "a", _TWICE), no_derivative("betainc", "b", _TWICE), _slope_by_x, None)
def betainc_by_a(xp: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
    """Return the derivative of `betainc` with respect to its first shape parameter, given `x` and ``y == 1 - x``, both accurate."""
    inside = (a > 0) & (b > 0) & (x > 0) & (y > 0) & xp.isfinite(a) & xp.isfinite(b)
    one = xp.ones_like(a * b * x)
    a1, b1 = xp.where(inside, a, one), xp.where(inside, b, one)
    x1, y1 = xp.where(inside, x, one * 0.5), xp.where(inside, y, one * 0.5)
    gap = xp.special_psi_gap(a1, b1)
    low = x1 * (a1 + b1) < a1
    # From the point to the end of its side, in the logarithm of the distance to that end.
    p, q = xp.where(low, a1, b1), xp.where(low, b1, a1)
    z, rest = xp.where(low, x1, y1), xp.where(low, y1, x1)
    fall = p - (q - 1.0) * z / rest
    fall = xp.where(fall > 0, xp.where(fall < p, fall, p), xp.zeros_like(fall))  # far away it is p
    scale = 1.0 / (fall + xp.where(p < 1.0, p, xp.sqrt(p)))
    start = xp.log(z)
    near = z > 0.5
    # The density at the point is a factor outside of the sum: for shapes of some hundreds, its parts overflow and underflow.
    base = xp.where(near, xp.log(rest), xp.log1p(-xp.where(near, xp.zeros_like(z), z)))
    total = xp.zeros_like(one)
    for node, weight in _NODES:
        t = scale * node
        part = z * xp.exp(-t)
        far = part > 0.5
        other = xp.where(far, xp.log(rest - z * xp.expm1(-t)), xp.log1p(-xp.where(far, xp.zeros_like(part), part)))
        change = xp.where(low, start - t - gap, gap - other)
        total = total + xp.exp((q - 1.0) * (other - base) - p * t) * change * weight
    slope = total * scale * xp.exp(p * start + (q - 1.0) * base - xp.special_betaln(a1, b1))
    fixed = (a > 0) & (b > 0) & ((x == 0) | (y == 0)) & xp.isfinite(a) & xp.isfinite(b)
    return xp.where(inside, slope, xp.where(fixed, xp.zeros_like(one), one + math.nan))


@special(_beta_by_a, _beta_by_b, _beta_by_x)
@_document_beta
def betainc(a: Operand, b: Operand, x: Operand, /) -> Tensor:
    """Return the regularised incomplete beta function.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.betainc(2.0, 3.0, xp.asarray([0.0, 0.5, 1.0]))
    tensor([0.    , 0.6875, 1.    ])
    >>> xp.func.grad(special.betainc, argnums=(0, 1, 2))(2.0, 3.0, 0.5)
    (tensor(-0.1953), tensor(0.1541), tensor(1.5))
    """


@special(
    lambda g, a, b, x, out, xp: _beta_by_a(-g, a, b, x, out, xp), lambda g, a, b, x, out, xp: _beta_by_b(-g, a, b, x, out, xp),
    lambda g, a, b, x, out, xp: _beta_by_x(-g, a, b, x, out, xp),
)  # fmt: skip
@_document_beta
def betaincc(a: Operand, b: Operand, x: Operand, /) -> Tensor:
    """Return the complement of `betainc`, ``1 - betainc(a, b, x)``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.betaincc(2.0, 3.0, xp.asarray([0.0, 0.5, 1.0]))
    tensor([1.    , 0.3125, 0.    ])
    >>> xp.func.grad(special.betaincc, argnums=2)(2.0, 3.0, 0.5)  # minus the density
    tensor(-1.5)
    """


def _beta_quantile_by(change: Any, a: Any, b: Any, out: Any, xp: Any) -> Any:
    """Return the quantile's derivative by a shape from that of the distribution function; it is 0 at the ends, which never move."""
    return xp.keep((out != 0) & (out != 1), change / _beta_density(a, b, out, xp))


def _beta_quantile_by_a(g: Any, a: Any, b: Any, out: Any, xp: Any) -> Any:
    return g * -_beta_quantile_by(xp.special_betainc_by_a(a, b, out, 1.0 - out), a, b, out, xp)


def _beta_quantile_by_b(g: Any, a: Any, b: Any, out: Any, xp: Any) -> Any:
    return g * _beta_quantile_by(xp.special_betainc_by_a(b, a, 1.0 - out, out), a, b, out, xp)


@special(_beta_quantile_by_a, _beta_quantile_by_b, lambda g, a, b, out, xp: -g / _beta_density(a, b, out, xp))
@_document_beta
def betainccinv(a: Operand, b: Operand, y: Operand, /) -> Tensor:
    """Return the inverse of `betaincc` in `x`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.betainccinv(1.0, 2.0, 0.25)  # x with (1 - x)**2 = 0.25
    tensor(0.5)
    >>> xp.func.grad(special.betainccinv, argnums=(0, 2))(1.0, 2.0, 0.25)
    (tensor(0.2699), tensor(-1.))
    """


@special(_beta_quantile_by_a, _beta_quantile_by_b, lambda g, a, b, out, xp: g / _beta_density(a, b, out, xp))
@_document_beta
def betaincinv(a: Operand, b: Operand, y: Operand, /) -> Tensor:
    """Return the inverse of `betainc` in `x`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.betaincinv(1.0, 2.0, 0.75)  # x with 2 x - x**2 = 0.75
    tensor(0.5)
    >>> xp.func.grad(special.betaincinv, argnums=(0, 2))(1.0, 2.0, 0.75)
    (tensor(0.2699), tensor(1.))
    """


# -- Student's distribution -----------------------------------------------------------------------------------------------------


def _student_density(df: Any, t: Any, xp: Any) -> Any:
    return xp.exp((df + 1.0) * -0.5 * xp.log1p(t * t / df) - xp.special_betaln(df * 0.5, xp.zeros_like(df) + 0.5)) / xp.sqrt(df)


def _student_by_both(g: Any, df: Any, t: Any, xp: Any) -> Any:
    """Return the vjp by `t` of the derivative by the degrees of freedom: the derivative of the density by these."""
    square = t * t
    log_slope = (df + 1.0) * square / (df * (df + square)) - xp.log1p(square / df) - 1.0 / df
    return g * (_student_density(df, t, xp) * 0.5 * (log_slope - xp.special_psi_gap(df * 0.5, xp.zeros_like(df) + 0.5)))


@helper(no_derivative("betainc", "a", _TWICE), _student_by_both)
def _student_by_df(xp: Any, df: Any, t: Any) -> Any:
    """Return the derivative of `stdtr` with respect to its degrees of freedom."""
    # The derivative through the shape of the incomplete beta function, and that through its argument, without a quotient at t = 0.
    whole = df + t * t
    half = xp.zeros_like(df * t) + 0.5
    shape = xp.special_betainc_by_a(df * 0.5, half, df / whole, t * t / whole)
    return xp.sign(t) * shape * -0.25 - _student_density(df, t, xp) * t / (df * 2.0)


@special(
    lambda g, df, t, out, xp: g * valid(xp.special_student_by_df(df, t), out, xp),
    lambda g, df, t, out, xp: g * valid(_student_density(df, t, xp), out, xp),
)  # fmt: skip
@_document_student
def stdtr(df: Operand, t: Operand, /) -> Tensor:
    """Return the cumulative distribution function of Student's t distribution.

    Parameters
    ----------
    t : Tensor or number
        Real; broadcasts with `df`. Differentiable: the derivative is the density.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.stdtr(1.0, xp.asarray([-1.0, 0.0, 1.0]))
    tensor([0.25, 0.5 , 0.75])
    >>> xp.func.grad(special.stdtr, argnums=(0, 1))(1.0, 1.0)
    (tensor(0.0662), tensor(0.1592))
    """


@special(
    lambda g, df, out, xp: g * -(xp.special_student_by_df(df, out) / _student_density(df, out, xp)),
    lambda g, df, out, xp: g / _student_density(df, out, xp),
)  # fmt: skip
@_document_student
def stdtrit(df: Operand, p: Operand, /) -> Tensor:
    """Return the inverse of `stdtr` in `t`.

    Parameters
    ----------
    p : Tensor or number
        Probability in [0, 1]; the result is infinite at 0 and 1, and nan outside. Broadcasts with `df`. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.stdtrit(1.0, xp.asarray([0.25, 0.5, 0.75]))
    tensor([-1.,  0.,  1.])
    >>> xp.func.grad(special.stdtrit, argnums=1)(1.0, 0.5)  # pi
    tensor(3.1416)
    """
