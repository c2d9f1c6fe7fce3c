"""`xpgrad.scipy.stats`: probability distributions with SciPy's names, differentiable in arguments and parameters, on every backend.

Continuous: `norm`, `expon`, `laplace`, `cauchy`, `logistic`, `lognorm`, `uniform`, `gamma`, `beta`, `chi2`, `t`, `weibull_min`,
`truncnorm`, `vonmises`, with ``logpdf pdf cdf logcdf sf logsf ppf isf``. Discrete: `poisson`, `binom`, `bernoulli`, with ``logpmf pmf cdf
logcdf sf ppf``. Multivariate: `multivariate_normal`, `dirichlet`, with ``logpdf pdf entropy``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._basics.faces import public_names, refusal
from xpgrad._rows.namespace import operations as xp
from xpgrad.scipy import special
from xpgrad.scipy._declare import by_the_host, row_only
from xpgrad.scipy._gauss import gauss_legendre
from xpgrad.scipy.stats._families import Continuous as Continuous, Discrete as Discrete
from xpgrad.scipy.stats._normal import norm_logpdf
from xpgrad.scipy.stats._vectors import Dirichlet as Dirichlet, MultivariateNormal as MultivariateNormal

__all__ = [
    "Continuous", "Dirichlet", "Discrete", "MultivariateNormal", "bernoulli", "beta", "binom", "cauchy", "chi2", "dirichlet", "expon",
    "gamma", "laplace", "logistic", "lognorm", "multivariate_normal", "norm", "poisson", "t", "truncnorm", "uniform", "vonmises",
    "weibull_min",
]  # fmt: skip

_INF = math.inf
_LOG_ROOT = math.log(2 * math.pi) / 2
#: `vonmises.cdf` sums `_TERMS` terms of a series up to the concentration `_NARROW`; beyond it, integrates `_SIGMAS` standard deviations.
_NARROW, _TERMS, _SIGMAS = 25.0, 50, 8.5
_GAUSS = gauss_legendre(40)


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)


def _positive(*shapes: Any) -> Any:
    """Return whether all shape parameters are above 0, element by element."""
    good = shapes[0] > 0
    for s in shapes[1:]:
        good = good & (s > 0)
    return good


# -- continuous ------------------------------------------------------------------------------------------------------------

norm: Continuous = Continuous(
    "norm", (), -_INF, _INF, None, located_logpdf=norm_logpdf, cdf=special.ndtr, sf=lambda z: special.ndtr(-z),
    logcdf=special.log_ndtr, logsf=lambda z: special.log_ndtr(-z), ppf=special.ndtri, isf=lambda q: -special.ndtri(q),
)  # fmt: skip
expon: Continuous = Continuous(
    "expon", (), 0.0, _INF, None, logpdf=lambda z: -z, cdf=lambda z: -xp.expm1(-z), sf=lambda z: xp.exp(-z), logsf=lambda z: -z,
    ppf=lambda q: -xp.log1p(-q), isf=lambda q: -xp.log(q),
)  # fmt: skip


def _laplace_tail(z: Any) -> Any:
    """Return the probability of a value above `z` under the standard Laplace distribution."""
    right = z > 0
    half = xp.exp(xp.where(right, -z, z)) * 0.5  # not exp(-abs(z)): the derivative of abs at 0 is 0
    return xp.where(right, half, 1.0 - half)


def _laplace_quantile(q: Any) -> Any:
    """Return the quantile of the standard Laplace distribution at `q`; each branch of `where` gets arguments at which it is finite."""
    left = q < 0.5
    return xp.where(left, xp.log(xp.where(left, q, 0.25 + 0.0 * q) * 2.0), -xp.log((1.0 - xp.where(left, 0.75 + 0.0 * q, q)) * 2.0))


laplace: Continuous = Continuous(
    "laplace", (), -_INF, _INF, None, logpdf=lambda z: -xp.abs(z) - math.log(2.0), cdf=lambda z: _laplace_tail(-z), sf=_laplace_tail,
    ppf=_laplace_quantile, isf=lambda q: -_laplace_quantile(q),
)  # fmt: skip


def _cauchy_quantile(q: Any) -> Any:
    """Return the quantile of the standard Cauchy distribution at `q`, from the nearer end or from the median, to keep all digits."""
    right = q > 0.5
    tail = xp.where(right, 1.0 - q, q)
    size = xp.where(tail > 0.25, xp.tan((0.5 - tail) * math.pi), 1.0 / xp.tan(tail * math.pi))
    return xp.where(right, size, -size)


cauchy: Continuous = Continuous(
    "cauchy", (), -_INF, _INF, None, logpdf=lambda z: -xp.log1p(z * z) - math.log(math.pi),
    cdf=lambda z: xp.atan2(xp.ones_like(z), -z) * (1 / math.pi), sf=lambda z: xp.atan2(xp.ones_like(z), z) * (1 / math.pi),
    ppf=_cauchy_quantile, isf=lambda q: -_cauchy_quantile(q),
)  # fmt: skip
logistic: Continuous = Continuous(
    "logistic", (), -_INF, _INF, None, logpdf=lambda z: special.log_expit(z) + special.log_expit(-z), cdf=special.expit,
    sf=lambda z: special.expit(-z), logcdf=special.log_expit, logsf=lambda z: special.log_expit(-z), ppf=special.logit,
    isf=lambda q: -special.logit(q),
)  # fmt: skip


def _in_logarithm(function: Any, at_zero: float) -> Any:
    """Compose a function of ``(log(z), s)`` with the logarithm; its value at ``z == 0`` is `at_zero`, with derivatives 0."""

    def composed(z: Any, s: Any) -> Any:
        is_zero = z == 0
        value = function(xp.log(xp.where(is_zero, xp.ones_like(z), z)), s)
        return xp.where(is_zero, xp.ones_like(value) * at_zero, value)

    return composed


lognorm: Continuous = Continuous(
    "lognorm", ("s",), 0.0, _INF, _positive,
    logpdf=_in_logarithm(lambda y, s: -((y / s) ** 2) * 0.5 - y - xp.log(s) - _LOG_ROOT, -_INF),
    cdf=_in_logarithm(lambda y, s: special.ndtr(y / s), 0.0), sf=_in_logarithm(lambda y, s: special.ndtr(-y / s), 1.0),
    logcdf=_in_logarithm(lambda y, s: special.log_ndtr(y / s), -_INF),
    logsf=_in_logarithm(lambda y, s: special.log_ndtr(-y / s), 0.0),
    ppf=lambda q, s: xp.exp(special.ndtri(q) * s), isf=lambda q, s: xp.exp(-special.ndtri(q) * s),
)  # fmt: skip
uniform: Continuous = Continuous(
    "uniform", (), 0.0, 1.0, None, logpdf=lambda z: z * 0.0, cdf=lambda z: z, sf=lambda z: 1.0 - z, ppf=lambda q: q, isf=lambda q: 1.0 - q,
)  # fmt: skip


def _finite_exp(x: Any) -> Any:
    """Return the exponential function, or a large number if it would overflow: a factor beside powers of 0 and their derivatives."""
    return xp.exp(xp.minimum(x, 0.8 * math.log(xp.finfo(x.dtype).max)))


def _with_powers(logpdf: Any, is_zero: Any, powers: Any) -> dict[str, Any]:
    """Return the functions `logpdf` and `pdf`. Where `pdf` is 0 it is `powers`, because the logarithm has no derivative there."""

    def pdf(z: Any, *shapes: Any) -> Any:
        zero, inside = is_zero(z, *shapes), xp.zeros_like(z) + 0.5
        return xp.where(zero, powers(xp.where(zero, z, inside), *shapes), xp.exp(logpdf(xp.where(zero, inside, z), *shapes)))

    return {"logpdf": logpdf, "pdf": pdf}


gamma: Continuous = Continuous(
    "gamma", ("a",), 0.0, _INF, _positive,
    **_with_powers(
        lambda z, a: special.xlogy(a - 1.0, z) - z - special.gammaln(a), lambda z, a: (z == 0) & (a > 1),
        lambda z, a: z ** (a - 1.0) * xp.exp(-z - special.gammaln(a)),
    ),
    cdf=lambda z, a: special.gammainc(a, z), sf=lambda z, a: special.gammaincc(a, z), ppf=lambda q, a: special.gammaincinv(a, q),
    isf=lambda q, a: special.gammainccinv(a, q),
)  # fmt: skip
chi2: Continuous = Continuous(
    "chi2", ("df",), 0.0, _INF, _positive,
    **_with_powers(
        lambda z, df: special.xlogy(df * 0.5 - 1.0, z) - z * 0.5 - special.gammaln(df * 0.5) - df * (math.log(2.0) / 2),
        lambda z, df: (z == 0) & (df > 2),
        lambda z, df: z ** (df * 0.5 - 1.0) * xp.exp(z * -0.5 - special.gammaln(df * 0.5) - df * (math.log(2.0) / 2)),
    ),
    cdf=lambda z, df: special.gammainc(df * 0.5, z * 0.5), sf=lambda z, df: special.gammaincc(df * 0.5, z * 0.5),
    ppf=lambda q, df: special.gammaincinv(df * 0.5, q) * 2.0, isf=lambda q, df: special.gammainccinv(df * 0.5, q) * 2.0,
)  # fmt: skip
beta: Continuous = Continuous(
    "beta", ("a", "b"), 0.0, 1.0, _positive,
    **_with_powers(
        lambda z, a, b: special.xlogy(a - 1.0, z) + special.xlog1py(b - 1.0, -z) - special.betaln(a, b),
        lambda z, a, b: ((z == 0) & (a > 1)) | ((z == 1) & (b > 1)),
        lambda z, a, b: z ** (a - 1.0) * (1.0 - z) ** (b - 1.0) * _finite_exp(-special.betaln(a, b)),
    ),
    cdf=lambda z, a, b: special.betainc(a, b, z), sf=lambda z, a, b: special.betaincc(a, b, z),
    ppf=lambda q, a, b: special.betaincinv(a, b, q), isf=lambda q, a, b: special.betainccinv(a, b, q),
)  # fmt: skip
t: Continuous = Continuous(
    "t", ("df",), -_INF, _INF, _positive,
    logpdf=lambda z, df: (df + 1.0) * -0.5 * xp.log1p(z * z / df) - special.betaln(df * 0.5, 0.5) - xp.log(df) * 0.5,
    cdf=lambda z, df: special.stdtr(df, z), sf=lambda z, df: special.stdtr(df, -z), ppf=lambda q, df: special.stdtrit(df, q),
    isf=lambda q, df: -special.stdtrit(df, q),
)  # fmt: skip
weibull_min: Continuous = Continuous(
    "weibull_min", ("c",), 0.0, _INF, _positive,
    **_with_powers(
        lambda z, c: xp.log(c) + special.xlogy(c - 1.0, z) - z**c, lambda z, c: (z == 0) & (c > 1),
        lambda z, c: c * z ** (c - 1.0) * xp.exp(-(z**c)),
    ),
    cdf=lambda z, c: -xp.expm1(-(z**c)), sf=lambda z, c: xp.exp(-(z**c)), logsf=lambda z, c: -(z**c),
    ppf=lambda q, c: (-xp.log1p(-q)) ** (1.0 / c), isf=lambda q, c: (-xp.log(q)) ** (1.0 / c),
)  # fmt: skip


def _vonmises_cdf(z: Any, kappa: Any) -> Any:
    """Return the cumulative distribution function of `vonmises` at the angle `z`; each full turn adds 1.

    Up to a concentration of 25 it is the Fourier series, whose remainder after 50 terms is below 1e-16. For narrower peaks it is integrated
    by Gauss-Legendre quadrature in ``s = 2 sqrt(kappa) sin(z / 2)``, in which the density is ``exp(-s**2 / 2)`` times a smooth factor.
    """
    turns = xp.round(z * (0.5 / math.pi))
    z = z - turns * (2 * math.pi)
    narrow = kappa > _NARROW
    one = xp.ones_like(z * kappa)
    k = xp.where(narrow, one, kappa * one)
    total = xp.zeros_like(one)
    for j in range(_TERMS, 0, -1):
        total = total + special.ive(float(j), k) * xp.sin(z * float(j)) * (1.0 / j)
    series = 0.5 + z * (0.5 / math.pi) + total / special.i0e(k) * (1 / math.pi)
    k = xp.where(narrow, kappa * one, one * 100.0)
    s = xp.sin(z * 0.5) * xp.sqrt(k) * 2.0
    s = xp.where(xp.abs(s) > _SIGMAS, xp.sign(s) * _SIGMAS, s)
    bell = xp.zeros_like(one)
    for node, weight in _GAUSS:
        u = s * ((1.0 + node) * 0.5)
        bell = bell + xp.exp(u * u * -0.5) / xp.sqrt(1.0 - u * u / (k * 4.0)) * (weight * 0.5)
    peak = 0.5 + bell * s / (special.i0e(k) * xp.sqrt(k) * (2 * math.pi))
    return xp.where(narrow, peak, series) + turns


vonmises: Continuous = Continuous(
    "vonmises", ("kappa",), -_INF, _INF, _positive,
    logpdf=lambda z, kappa: xp.sin(z * 0.5) ** 2 * kappa * -2.0 - xp.log(special.i0e(kappa)) - math.log(2 * math.pi),
    cdf=_vonmises_cdf, sf=lambda z, kappa: 1.0 - _vonmises_cdf(z, kappa),
)  # fmt: skip


def _finite_ends(a: Any, b: Any) -> tuple[Any, Any]:
    """Return an interval with finite ends and the same normal probability: beyond 40 deviations more than the other end it underflows.

    Derivatives with respect to an infinite end are therefore 0; those of the functions below would be nan there.
    """
    right = xp.where(xp.isinf(b), xp.where(a > 0, a, xp.zeros_like(a)) + 40.0, b)
    return xp.where(xp.isinf(a), xp.where(b < 0, b, xp.zeros_like(b)) - 40.0, a), right


def _log_between(a: Any, b: Any) -> Any:
    """Return the logarithm of the normal probability of the interval from `a` to `b`, accurate also in the tails."""
    a, b = _finite_ends(a, b)
    flipped = a > 0
    a, b = xp.where(flipped, -b, a), xp.where(flipped, -a, b)
    left = b <= 0
    one = xp.ones_like(xp.where(left, a, b))
    low, high = xp.where(left, a, -one), xp.where(left, b, one * 0.0)
    top = special.log_ndtr(high)
    tail = top + xp.log1p(-xp.exp(special.log_ndtr(low) - top))
    low, high = xp.where(left, -one, a), xp.where(left, one, b)
    return xp.where(left, tail, xp.log1p(-special.ndtr(low) - special.ndtr(-high)))


def _truncated_quantile(q: Any, a: Any, b: Any) -> Any:
    """Return the quantile of `truncnorm`, computed from the nearer tail, and from logarithms if the interval is far out in it."""
    a, b = _finite_ends(a, b)
    flipped = a > 0
    low, high = xp.where(flipped, -b, a), xp.where(flipped, -a, b)
    p = xp.where(flipped, 1.0 - q, q)
    far = (high < -5.0) & (p > 0) & (p < 1)
    one = xp.ones_like(xp.where(far, high, p))
    tail = _tail_quantile(xp.where(far, p, one * 0.5), xp.where(far, low, one * -7.0), xp.where(far, high, one * -6.0))
    mass = xp.exp(_log_between(a, b))
    level = special.ndtr(low) + p * mass
    inner = xp.where(far, one * 0.5, level)
    z = xp.where(far, tail, special.ndtri(inner))
    z = xp.where(flipped, -z, z)
    return z * xp.where(inner > 0, one, one * math.nan)


def _tail_quantile(p: Any, low: Any, high: Any) -> Any:
    """Return the quantile of a normal variable between `low` and `high`, which are below -5, by Newton's method on `log_ndtr`."""
    top = special.log_ndtr(high)
    level = top + xp.log(p + (1.0 - p) * xp.exp(special.log_ndtr(low) - top))
    size = level * -2.0
    z = -xp.sqrt(size - xp.log(size) - 2.0 * _LOG_ROOT)
    for _ in range(4):  # each step doubles the correct digits, and the order of the correct derivatives
        value = special.log_ndtr(z)
        z = z - (value - level) * xp.exp(value + z * z * 0.5 + _LOG_ROOT)
    return z


def _truncated_ends(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Return the ends of the support of `truncnorm` and a finite point inside."""
    left, right = xp.isfinite(a), xp.isfinite(b)
    zero = xp.zeros_like(xp.where(left, a, b))
    a0, b0 = xp.where(left, a, zero), xp.where(right, b, zero)
    inside = xp.where(left & right, (a0 + b0) * 0.5, xp.where(left, a0 + 1.0, b0 - 1.0))
    return a, b, xp.where(left | right, inside, xp.zeros_like(inside))


truncnorm: Continuous = Continuous(
    "truncnorm", ("a", "b"), -_INF, _INF, lambda a, b: a < b, ends=_truncated_ends,
    logpdf=lambda z, a, b: z * z * -0.5 - _LOG_ROOT - _log_between(a, b),
    cdf=lambda z, a, b: xp.exp(_log_between(a, z) - _log_between(a, b)), sf=lambda z, a, b: xp.exp(_log_between(z, b) - _log_between(a, b)),
    logcdf=lambda z, a, b: _log_between(a, z) - _log_between(a, b), logsf=lambda z, a, b: _log_between(z, b) - _log_between(a, b),
    ppf=_truncated_quantile, isf=lambda q, a, b: -_truncated_quantile(q, -b, -a),
)  # fmt: skip

# -- discrete -----------------------------------------------------------------------------------------------------------------


def _in_unit(p: Any) -> Any:
    """Return whether a parameter is in [0, 1], element by element."""
    return (p >= 0) & (p <= 1)


def _log_counts(k: Any, n: Any) -> Any:
    """Return the logarithm of the number of ways to choose `k` of `n`."""
    return special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)


poisson: Discrete = Discrete(
    "poisson", ("mu",), 0.0, _INF, lambda mu: mu >= 0, logpmf=lambda k, mu: special.xlogy(k, mu) - special.gammaln(k + 1.0) - mu,
    pmf=lambda k, mu: mu**k * xp.exp(-special.gammaln(k + 1.0) - mu),
    cdf=lambda k, mu: special.gammaincc(k + 1.0, mu), sf=lambda k, mu: special.gammainc(k + 1.0, mu),
)  # fmt: skip
binom: Discrete = Discrete(
    "binom", ("n", "p"), 0.0, _INF, lambda n, p: (n >= 0) & (n == xp.round(n)) & _in_unit(p), last=lambda n, p: n,
    logpmf=lambda k, n, p: _log_counts(k, n) + special.xlogy(k, p) + special.xlog1py(n - k, -p),
    pmf=lambda k, n, p: _finite_exp(_log_counts(k, n)) * p**k * (1.0 - p) ** (n - k),
    inner=lambda n, p: xp.where(p > 0.5, n, xp.zeros_like(n)),
    cdf=lambda k, n, p: special.betaincc(k + 1.0, n - k, p), sf=lambda k, n, p: special.betainc(k + 1.0, n - k, p),
)  # fmt: skip
bernoulli: Discrete = Discrete(
    "bernoulli", ("p",), 0.0, 1.0, _in_unit, logpmf=lambda k, p: special.xlogy(k, p) + special.xlog1py(1.0 - k, -p), last=lambda p: 1.0,
    pmf=lambda k, p: p**k * (1.0 - p) ** (1.0 - k),
    inner=lambda p: xp.where(p > 0.5, xp.ones_like(p), xp.zeros_like(p)),
    cdf=lambda k, p: 1.0 - p, sf=lambda k, p: p,
)  # fmt: skip


def _host_quantile(name: str) -> Any:
    """Return a kernel that computes the quantiles of a discrete distribution by SciPy, exactly, in host memory."""
    return by_the_host(f"stats_{name}_ppf")


@row_only(None, None, composed=_host_quantile("poisson"))
def _poisson_ppf(q: Any, mu: Any) -> Any:
    """Return the smallest integer at which the cumulative distribution function of `poisson` is at least `q`."""


@row_only(None, None, None, composed=_host_quantile("binom"))
def _binom_ppf(q: Any, n: Any, p: Any) -> Any:
    """Return the smallest integer at which the cumulative distribution function of `binom` is at least `q`."""


@row_only(None, None, composed=_host_quantile("bernoulli"))
def _bernoulli_ppf(q: Any, p: Any) -> Any:
    """Return 0 or 1, the smaller one at which the cumulative distribution function of `bernoulli` is at least `q`."""


# -- multivariate ---------------------------------------------------------------------------------------------------------------

multivariate_normal: MultivariateNormal = MultivariateNormal()
dirichlet: Dirichlet = Dirichlet()
