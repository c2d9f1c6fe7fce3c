"""The table of special functions: usual arguments, points near the edges of the domain, and the reference in mpmath."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

import xpgrad as xp
from support.central_differences import values
from xpgrad.scipy import special

__all__ = ["CASES", "Case", "Range", "at_points", "error", "of_tensors", "points", "reference", "second_derivatives", "slope"]

DIGITS = 40


class Range(NamedTuple):
    """How an argument is drawn: uniformly, with a uniform logarithm, or among integers."""

    low: float
    high: float
    how: str = "even"

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return `count` numbers between the ends."""
        if self.how == "integers":
            return rng.integers(int(self.low), int(self.high) + 1, count).astype(float)
        if self.how == "logs":
            return np.exp(rng.uniform(math.log(self.low), math.log(self.high), count))
        return rng.uniform(self.low, self.high, count)


class Case(NamedTuple):
    """A special function of SciPy.

    Attributes
    ----------
    exact : callable
        The function of mpmath's numbers.
    ranges : tuple of Range
        The usual range of each argument.
    edges : tuple of tuples
        Points near the edges of the domain: tails, poles approached from the right, 0, huge numbers.
    wrt : tuple of int
        Numbers of the arguments in which it is differentiated.
    complex : bool
        Whether SciPy takes complex arguments and `exact` is the analytic continuation.
    second : tuple of pairs of int
        The pairs of arguments that have a second derivative; None if all pairs of `wrt` have.
    """

    exact: Callable[..., Any]
    ranges: tuple[Range, ...]
    edges: tuple[tuple[float, ...], ...] = ()
    wrt: tuple[int, ...] = (0,)
    complex: bool = False
    second: tuple[tuple[int, int], ...] | None = None

    def seconds(self) -> tuple[tuple[int, int], ...]:
        """Return the pairs of arguments that have a second derivative."""
        return tuple((i, j) for i in self.wrt for j in self.wrt if i <= j) if self.second is None else self.second


def _ncdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _inverse(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Return the inverse of a function in its last argument, found by iteration from SciPy's value."""

    def exact(*args: Any) -> Any:
        import scipy.special

        *first, y = args
        given = [int(v) if name == "bdtri" and i == 1 else float(v) for i, v in enumerate(args)]  # SciPy wants an integer there
        start = mp.mpf(float(getattr(scipy.special, name)(*given)))
        return mp.findroot(lambda t: mp.log(function(*first, abs(t)) / y), (start, start * (1 + mp.mpf(10) ** -8)), tol=mp.mpf(10) ** -60)

    return exact


def _lower(a: Any, x: Any) -> Any:
    return mp.gammainc(a, 0, x, regularized=True)


def _upper(a: Any, x: Any) -> Any:
    return mp.gammainc(a, x, mp.inf, regularized=True)


def _beta(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


def _student(df: Any, t: Any) -> Any:
    tail = mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def _student_quantile(df: Any, p: Any) -> Any:
    import scipy.special

    start = mp.mpf(float(scipy.special.stdtrit(float(df), float(p))))
    return mp.findroot(lambda t: _student(df, t) - p, (start, start * (1 + mp.mpf(10) ** -8)), tol=mp.mpf(10) ** -70)


def _fisher(dfn: Any, dfd: Any, x: Any) -> Any:
    return _beta(dfn / 2, dfd / 2, dfn * x / (dfn * x + dfd))


def _box_cox(x: Any, power: Any) -> Any:
    return (x**power - 1) / power if power else mp.log(x)


def _box_cox_inverse(y: Any, power: Any) -> Any:
    return (1 + power * y) ** (1 / power) if power else mp.exp(y)


def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    scale = sigma * mp.sqrt(2)
    z = (gamma - 1j * x) / scale
    return mp.re(mp.exp(z * z) * mp.erfc(z)) / (scale * mp.sqrt(mp.pi))


def _owens(h: Any, a: Any) -> Any:
    return mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)


def _legendre(m: Any, v: Any, x: Any) -> Any:
    return mp.legenp(v, int(m), x, type=2)


def _spherical(bessel: Callable[..., Any], factor: float = 1.0) -> Callable[..., Any]:
    return lambda n, z: factor * mp.sqrt(mp.pi / (2 * z)) * bessel(n + mp.mpf(1) / 2, z)


_wide, _positive, _unit = Range(-5.0, 5.0), Range(0.1, 20.0, "logs"), Range(0.01, 0.99)
_shape = Range(0.2, 30.0, "logs")
_orders, _trials, _angles = Range(0, 5, "integers"), Range(6, 12, "integers"), Range(-400.0, 400.0)
CASES: dict[str, Case] = {
    "erf": Case(mp.erf, (_wide,), ((1e-300,), (1e-8,), (20.0,), (-20.0,)), complex=True),
    "erfc": Case(mp.erfc, (_wide,), ((1e-8,), (20.0,), (-20.0,)), complex=True),
    "erfcx": Case(lambda x: mp.exp(x * x) * mp.erfc(x), (_wide,), ((19.9,), (20.1,), (1e4,), (1e8,), (-20.0,)), complex=True),
    "voigt_profile": Case(_voigt, (_wide, _positive, _positive), ((0.0, 1.0, 0.0), (50.0, 0.01, 1e-8), (1e3, 2.0, 0.5)), (0, 1, 2)),
    "erfinv": Case(mp.erfinv, (Range(-0.99, 0.99),), ((1e-300,), (1 - 1e-12,), (-1 + 1e-12,))),
    "erfcinv": Case(lambda y: mp.erfinv(1 - y), (Range(0.01, 1.99),), ((1e-12,), (1e-25,))),
    "expit": Case(lambda x: 1 / (1 + mp.exp(-x)), (_wide,), ((700.0,), (-700.0,), (40.0,))),
    "logit": Case(lambda x: mp.log(x / (1 - x)), (_unit,), ((1e-300,), (1 - 1e-12,), (0.5 + 1e-9,))),
    "log_expit": Case(lambda x: -mp.log1p(mp.exp(-x)), (_wide,), ((700.0,), (-1e6,), (40.0,))),
    "ndtr": Case(_ncdf, (_wide,), ((-37.0,), (30.0,)), complex=True),
    "log_ndtr": Case(lambda x: mp.log(_ncdf(x)), (_wide,), ((-37.0,), (-1e4,), (8.0,)), complex=True),
    "ndtri": Case(lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), (_unit,), ((1e-20,), (1 - 1e-12,))),
    "owens_t": Case(_owens, (Range(-3.0, 3.0), Range(-3.0, 3.0)), ((0.0, 1.0), (8.0, 0.5)), (0, 1)),
    "gamma": Case(mp.gamma, (Range(0.1, 20.0),), ((1e-8,), (160.0,), (-0.5,), (-3.7,)), complex=True),
    "gammaln": Case(lambda x: mp.log(abs(mp.gamma(x))), (_positive,), ((1e-8,), (1e8,), (-0.5,), (-3.7,))),
    "loggamma": Case(mp.loggamma, (_positive,), ((1e-8,), (1e8,)), complex=True),
    "digamma": Case(mp.digamma, (_positive,), ((1e-8,), (1e8,), (-0.5,), (-3.7,)), complex=True),
    "polygamma": Case(lambda n, x: mp.psi(int(n), x), (_orders, _positive), ((1, 1e-6), (2, 1e4), (3, 0.5)), (1,)),
    "rgamma": Case(mp.rgamma, (Range(-5.0, 20.0),), ((1e-8,), (160.0,), (0.0,), (-1.0,), (-4.0,)), complex=True),
    "beta": Case(mp.beta, (_positive, _positive), ((1e-6, 2.0), (300.0, 0.5)), (0, 1)),
    "betaln": Case(lambda a, b: mp.log(mp.beta(a, b)), (_positive, _positive), ((1e-6, 2.0), (1e6, 0.5), (1e6, 1e6)), (0, 1)),
    "betainc": Case(_beta, (_shape, _shape, _unit),
                    ((2.0, 3.0, 1e-10), (2.0, 3.0, 1 - 1e-10), (100.0, 200.0, 0.3), (1000.0, 5000.0, 0.17), (180.0, 9900.0, 0.0189)),
                    (0, 1, 2), second=((0, 2), (1, 2), (2, 2))),
    "betaincc": Case(lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True), (_shape, _shape, _unit),
                     ((2.0, 3.0, 1e-10), (100.0, 200.0, 0.4), (900.0, 3600.0, 0.4)), (0, 1, 2), second=((0, 2), (1, 2), (2, 2))),
    "betainccinv": Case(_inverse(lambda a, b, x: mp.betainc(a, b, x, 1, regularized=True), "betainccinv"),
                        (Range(0.5, 5.0), Range(0.5, 5.0), Range(0.1, 0.9)), ((2.0, 3.0, 1e-20), (0.5, 0.3, 1 - 1e-10)), (0, 1, 2),
                        second=((2, 2),)),
    "betaincinv": Case(_inverse(_beta, "betaincinv"), (Range(0.5, 5.0), Range(0.5, 5.0), Range(0.1, 0.9)), (), (0, 1, 2), second=((2, 2),)),
    "gammainc": Case(_lower, (_shape, _shape),
                     ((0.01, 0.5), (1e-10, 0.5), (0.09, 1e-300), (5.0, 1e-8), (200.0, 180.0), (5.0, 80.0)), (0, 1),
                     second=((0, 1), (1, 1))),
    "gammaincc": Case(_upper, (_shape, _shape), ((0.01, 0.5), (200.0, 220.0), (5.0, 80.0)), (0, 1), second=((0, 1), (1, 1))),
    "gammaincinv": Case(_inverse(_lower, "gammaincinv"), (Range(0.5, 10.0), Range(0.1, 0.9)), ((5.0, 1e-6),), (0, 1), second=((1, 1),)),
    "gammainccinv": Case(_inverse(_upper, "gammainccinv"), (Range(0.5, 10.0), Range(0.1, 0.9)), ((5.0, 1e-6),), (0, 1), second=((1, 1),)),
    "stdtr": Case(_student, (_shape, _wide), ((3.0, 0.0), (3.0, -100.0), (300.0, 1.0)), (0, 1), second=((0, 1), (1, 1))),
    "stdtrit": Case(_student_quantile, (Range(1.0, 20.0), Range(0.1, 0.45)), (), (0, 1), second=((1, 1),)),
    "poch": Case(mp.rf, (_positive, Range(0.1, 5.0)), ((3.0, 1e-6), (100.0, 2.5)), (0, 1)),
    "binom": Case(mp.binomial, (Range(5.0, 30.0), Range(0.5, 4.5)), ((1000.0, 2.5), (3.0, 4.0), (2.5, 6.5), (200.0, 201.0)), (0, 1)),
    "comb": Case(mp.binomial, (Range(5.0, 30.0), Range(0.5, 4.5)), ((1000.0, 2.5),), (0, 1)),
    "factorial": Case(lambda n: mp.gamma(n + 1), (Range(0.1, 20.0),), ((150.0,), (0.0,))),
    "xlogy": Case(lambda x, y: x * mp.log(y), (_wide, _positive), ((2.0, 1e-300), (1e-300, 1e300)), (0, 1), complex=True),
    "xlog1py": Case(lambda x, y: x * mp.log1p(y), (_wide, _positive), ((2.0, -1 + 1e-12), (2.0, 1e-12)), (0, 1), complex=True),
    "entr": Case(lambda x: -x * mp.log(x), (_positive,), ((1e-300,), (1e300,))),
    "rel_entr": Case(lambda x, y: x * mp.log(x / y), (_positive, _positive), ((1e-200, 1e200), (1.0, 1 + 1e-9)), (0, 1)),
    "kl_div": Case(lambda x, y: x * mp.log(x / y) - x + y, (_positive, _positive), ((1e-200, 1.0),), (0, 1)),
    "sinc": Case(lambda x: mp.sincpi(x), (_wide,), ((1e-8,), (0.0,), (0.49,), (0.51,), (1e3 + 0.3,)), complex=True),
    "i0": Case(lambda x: mp.besseli(0, x), (_wide,), ((0.0,), (500.0,))),
    "i0e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(0, x), (_positive,), ((1e-8,), (1e3,))),
    "i1": Case(lambda x: mp.besseli(1, x), (_wide,), ((0.0,), (1e-8,), (0.49,), (0.51,), (500.0,))),
    "i1e": Case(lambda x: mp.exp(-abs(x)) * mp.besseli(1, x), (_positive,), ((1e-8,), (1e3,))),
    "iv": Case(mp.besseli, (Range(0.0, 5.0), _positive), ((2.5, 1e-3), (0.5, 300.0)), (1,), complex=True),
    "ive": Case(lambda v, x: mp.exp(-abs(x)) * mp.besseli(v, x), (Range(0.0, 5.0), _positive), ((2.5, 1e-3), (0.5, 1e3)), (1,)),
    "kv": Case(mp.besselk, (Range(0.0, 5.0), _positive), ((2.5, 1e-3), (0.5, 300.0)), (1,), complex=True),
    "j0": Case(lambda x: mp.besselj(0, x), (Range(-20.0, 20.0),), ((0.0,), (1e3,))),
    "j1": Case(lambda x: mp.besselj(1, x), (Range(-20.0, 20.0),), ((0.0,), (1e-8,), (0.49,), (0.51,), (1e3,))),
    "jv": Case(mp.besselj, (Range(0.0, 5.0), _positive), ((2.5, 1e-3), (0.5, 1e3)), (1,), complex=True),
    "jn": Case(mp.besselj, (_orders, _positive), ((2, 1e-3),), (1,), complex=True),
    "y0": Case(lambda x: mp.bessely(0, x), (_positive,), ((1e-8,), (1e3,))),
    "y1": Case(lambda x: mp.bessely(1, x), (_positive,), ((1e-8,), (1e3,))),
    "yn": Case(mp.bessely, (_orders, _positive), ((2, 1e-3),), (1,)),
    "yv": Case(mp.bessely, (Range(0.0, 5.0), _positive), ((2.5, 1e-3), (0.5, 1e3)), (1,), complex=True),
    "exp1": Case(mp.e1, (_positive,), ((1e-8,), (700.0,)), complex=True),
    "expi": Case(mp.ei, (_positive,), ((1e-8,), (700.0,), (-1.0,), (-30.0,)), complex=True),
    "zeta": Case(mp.zeta, (Range(1.5, 10.0), _positive), ((1.01, 3.0), (3.0, 1e-3), (2.0, 1e6)), (1,)),
    "expn": Case(lambda n, x: mp.expint(int(n), x), (_orders, _positive), ((2, 1e-8), (0, 0.5), (1, 50.0)), (1,)),
    "spence": Case(lambda x: mp.polylog(2, 1 - x), (_positive,), ((1e-8,), (1.0,), (0.7,), (1.3,), (1e6,)), complex=True),
    "cbrt": Case(lambda x: mp.sign(x) * mp.cbrt(abs(x)), (_wide,), ((1e-300,), (-1e300,))),
    "exp2": Case(lambda x: mp.mpf(2) ** x, (_wide,), ((-1000.0,), (1000.5,))),
    "exp10": Case(lambda x: mp.mpf(10) ** x, (_wide,), ((-300.0,), (300.5,))),
    "cosm1": Case(lambda x: mp.cos(x) - 1, (_wide,), ((1e-8,), (0.0,), (1e3,))),
    "exprel": Case(lambda x: mp.expm1(x) / x if x else mp.mpf(1), (_wide,), ((1e-8,), (0.99,), (-1.01,), (700.0,), (-1e6,))),
    "sindg": Case(lambda x: mp.sin(mp.radians(x)), (_angles,), ((1e-8,), (180.0,), (359.0,))),
    "cosdg": Case(lambda x: mp.cos(mp.radians(x)), (_angles,), ((1e-8,), (180.0,), (359.0,))),
    "tandg": Case(lambda x: mp.tan(mp.radians(x)), (Range(-80.0, 80.0),), ((1e-8,), (170.0,))),
    "cotdg": Case(lambda x: mp.cot(mp.radians(x)), (Range(10.0, 170.0),), ((-1.0,), (269.0,))),
    "radian": Case(lambda d, m, s: mp.radians(d + m / 60 + s / 3600), (_angles, _angles, _angles), (), (0, 1, 2)),
    "huber": Case(lambda d, r: r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2), (_positive, _wide), ((1.0, 1e-8), (2.0, 1e6)), (0, 1)),
    "pseudo_huber": Case(lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1), (_positive, _wide), ((1.0, 1e-8), (2.0, 1e6)), (0, 1)),
    "boxcox": Case(_box_cox, (_positive, _wide), ((2.0, 0.0), (1 + 1e-9, 3.0), (1e-8, 0.5), (1e8, -0.1)), (0, 1)),
    "boxcox1p": Case(lambda x, power: _box_cox(1 + x, power), (_positive, _wide), ((2.0, 0.0), (1e-12, 3.0), (-0.99, 0.5)), (0, 1)),
    "inv_boxcox": Case(_box_cox_inverse, (Range(0.1, 2.0), Range(0.01, 2.0)), ((2.0, 0.0), (1e-9, 3.0), (0.9, -1.0)), (0, 1)),
    "inv_boxcox1p": Case(lambda y, power: _box_cox_inverse(y, power) - 1, (Range(0.1, 2.0), Range(0.01, 2.0)), ((2.0, 0.0), (1e-9, 3.0)),
                         (0, 1)),
    "ellipk": Case(mp.ellipk, (Range(-3.0, 0.99),), ((0.0,), (1e-8,), (-1e6,), (1 - 1e-9,))),
    "ellipkm1": Case(lambda p: mp.ellipk(1 - p), (Range(0.01, 3.0),), ((1.0,), (1e-12,), (1e6,))),
    "ellipe": Case(mp.ellipe, (Range(-3.0, 0.99),), ((0.0,), (1e-8,), (-1e6,), (1 - 1e-9,))),
    "k0": Case(lambda x: mp.besselk(0, x), (_positive,), ((1e-8,), (500.0,))),
    "k1": Case(lambda x: mp.besselk(1, x), (_positive,), ((1e-8,), (500.0,))),
    "k0e": Case(lambda x: mp.exp(x) * mp.besselk(0, x), (_positive,), ((1e-8,), (39.0,), (1e3,))),
    "k1e": Case(lambda x: mp.exp(x) * mp.besselk(1, x), (_positive,), ((1e-8,), (39.0,), (1e3,))),
    "kn": Case(mp.besselk, (_orders, _positive), ((2, 1e-3), (0, 1.0)), (1,)),
    "chdtr": Case(lambda v, x: _lower(v / 2, x / 2), (_shape, _shape), ((2.0, 1e-8),), (0, 1), second=((0, 1), (1, 1))),
    "chdtrc": Case(lambda v, x: _upper(v / 2, x / 2), (_shape, _shape), ((2.0, 100.0),), (0, 1), second=((0, 1), (1, 1))),
    "chdtri": Case(_inverse(lambda v, x: _upper(v / 2, x / 2), "chdtri"), (Range(1.0, 20.0), Range(0.1, 0.9)), (), (0, 1),
                   second=((1, 1),)),
    "fdtr": Case(_fisher, (_shape, _shape, _shape), ((2.0, 4.0, 1e-8),), (0, 1, 2), second=((2, 2),)),
    "fdtrc": Case(lambda a, b, x: _beta(b / 2, a / 2, b / (b + a * x)), (_shape, _shape, _shape),
                  ((2.0, 4.0, 1e3), (0.001, 0.001, 1e-20), (1.0, 1e4, 1e-8), (5.0, 1e5, 1e-4)), (0, 1, 2), second=((2, 2),)),
    "fdtri": Case(_inverse(_fisher, "fdtri"), (Range(1.0, 9.0), Range(1.0, 9.0), Range(0.1, 0.9)),
                  ((0.005, 0.5, 0.8), (3.0, 0.05, 0.4), (3.0, 2.0, 1e-20), (1557.0, 0.04, 0.05)), (0, 1, 2), second=((2, 2),)),
    "gdtr": Case(lambda a, b, x: _lower(b, a * x), (_positive, _shape, _positive), (), (0, 1, 2),
                 second=((0, 0), (0, 1), (0, 2), (1, 2), (2, 2))),
    "gdtrc": Case(lambda a, b, x: _upper(b, a * x), (_positive, _shape, _positive), (), (0, 1, 2),
                 second=((0, 0), (0, 1), (0, 2), (1, 2), (2, 2))),
    "pdtr": Case(lambda k, m: _upper(k + 1, m), (_orders, _positive), ((3, 50.0),), (1,)),
    "pdtrc": Case(lambda k, m: _lower(k + 1, m), (_orders, _positive), ((3, 1e-3),), (1,)),
    "pdtri": Case(_inverse(lambda k, m: _upper(k + 1, m), "pdtri"), (_orders, Range(0.1, 0.9)), (), (1,)),
    "bdtr": Case(lambda k, n, p: _beta(n - k, k + 1, 1 - p), (_orders, _trials, _unit), ((2, 6, 1e-3),), (2,)),
    "bdtrc": Case(lambda k, n, p: _beta(k + 1, n - k, p), (_orders, _trials, _unit), ((2, 6, 1e-3),), (2,)),
    "nbdtr": Case(lambda k, n, p: _beta(n, k + 1, p), (_orders, _trials, _unit), ((2, 6, 1e-3),), (2,)),
    "nbdtrc": Case(lambda k, n, p: _beta(k + 1, n, 1 - p), (_orders, _trials, _unit), ((2, 6, 0.99),), (2,)),
    "nbdtri": Case(_inverse(lambda k, n, p: _beta(n, k + 1, p), "nbdtri"), (_orders, _trials, Range(0.1, 0.9)), (), (2,)),
    "bdtri": Case(_inverse(lambda k, n, p: _beta(n - k, k + 1, 1 - p), "bdtri"), (_orders, _trials, Range(0.1, 0.9)),
                  ((0, 60000, 1e-20),), (2,)),
    "hyp2f1": Case(mp.hyp2f1, (_shape, _shape, _shape, Range(-0.9, 0.9)), ((2.0, 3.0, 0.5, 0.0), (0.5, 1.5, 2.0, -20.0)), (3,),
                   complex=True),
    "hyp1f1": Case(mp.hyp1f1, (_shape, _shape, _wide), ((2.0, 3.0, 0.0), (0.5, 1.5, -20.0)), (2,)),
    "lpmv": Case(_legendre, (Range(0, 3, "integers"), Range(0.0, 6.0), Range(-0.9, 0.9)), ((1, 2.5, 0.99),), (2,)),
    "spherical_jn": Case(_spherical(mp.besselj), (_orders, _positive), ((2, 1e-2),), (1,), complex=True),
    "spherical_yn": Case(_spherical(mp.bessely), (_orders, _positive), ((2, 1e-2),), (1,), complex=True),
    "spherical_in": Case(_spherical(mp.besseli), (_orders, _positive), ((2, 1e-2),), (1,), complex=True),
    "spherical_kn": Case(_spherical(mp.besselk), (_orders, _positive), ((2, 1e-2),), (1,), complex=True),
}  # fmt: skip


def points(case: Case, count: int, seed: int = 0) -> list[tuple[float, ...]]:
    """Return fixed points in the usual range."""
    rng = np.random.default_rng(seed)
    return [tuple(float(v) for v in point) for point in zip(*(r.draw(count, rng) for r in case.ranges))]


def _numbers(point: Any) -> list[Any]:
    return [mp.mpc(v) if isinstance(v, complex) else mp.mpf(v) for v in point]


def reference(case: Case, point: tuple[Any, ...]) -> Any:
    """Return the value at a point, with many digits."""
    with mp.workdps(DIGITS):
        return case.exact(*_numbers(point))


def slope(case: Case, point: tuple[Any, ...], *by: int) -> Any:
    """Return a derivative of the first or second order at a point."""
    with mp.workdps(DIGITS):
        at = _numbers(point)
        orders = tuple(by.count(i) for i in range(len(at)))
        h = [(abs(v) or mp.mpf(1)) * mp.mpf(10) ** -30 for v in at]
        # The step is small enough for 40 correct digits; 1000 digits are used if cancellation in a tail uses up 120.
        for digits in (120, 1000):
            with mp.workdps(digits):
                found = _differences(case.exact, at, orders, h)
                if abs(found) * math.prod(abs(v) or 1 for v in at) > abs(case.exact(*at)) * mp.mpf(10) ** -30:
                    break
        return found


def _differences(exact: Callable[..., Any], at: list[Any], orders: tuple[int, ...], h: list[Any]) -> Any:
    """Return a central difference of any order."""
    for i, order in enumerate(orders):
        if order:
            rest = (*orders[:i], order - 1, *orders[i + 1 :])
            ends = [_differences(exact, [*at[:i], at[i] + s * h[i] / 2, *at[i + 1 :]], rest, h) for s in (1, -1)]
            return (ends[0] - ends[1]) / h[i]
    return exact(*at)


@functools.cache
def second_derivatives(exact: Callable[..., Any], point: tuple[float, ...], count: int) -> np.ndarray:
    """Return the Hessian of a function of mpmath's numbers in its first arguments."""
    orders = np.eye(len(point), dtype=int)
    with mp.workdps(DIGITS):
        at = [mp.mpf(v) for v in point]
        found = [[float(mp.re(mp.diff(exact, at, tuple(map(int, orders[i] + orders[j]))))) for j in range(count)] for i in range(count)]
    return np.array(found)


def of_tensors(name: str) -> Callable[..., Any]:
    """Return the function of Tensors; a spherical Bessel function takes its order as one number for all elements."""
    function = getattr(special, name)
    return (lambda n, z: function(int(n), z)) if name.startswith("spherical_") else function


def at_points(name: str, at: list[tuple[Any, ...]], *by: int, device: str = "numpy") -> np.ndarray:
    """Return the values of the function at points, or those of its derivative with respect to the arguments `by`, one after the other."""
    if name.startswith("spherical_") and len(at) > 1:
        return np.concatenate([at_points(name, [point], *by, device=device) for point in at])
    columns = [np.array(column) for column in zip(*at)]
    fixed = [columns.pop(0)[0]] if name.startswith("spherical_") else []
    xs = [xp.tensor(c, device=device, requires_grad=i + len(fixed) in by) for i, c in enumerate(columns)]
    out = of_tensors(name)(*fixed, *xs)
    with xp.autograd.set_grad_enabled(True):
        for i in by:
            x = xs[i - len(fixed)]
            (out,) = xp.autograd.grad(xp.sum(out + 0.0 * x), x, create_graph=True)  # a derivative may be a constant, without history
    return values(out)


def error(found: float, case: Case, point: tuple[Any, ...], *by: int) -> float:
    """Return the error of a value or derivative relative to the effect of rounding the arguments in the last place."""
    exact = slope(case, point, *by) if by else reference(case, point)
    if not np.isfinite(found):
        return math.inf
    with mp.workdps(DIGITS):
        scale = abs(exact)
        for i, v in enumerate(point):
            if v and case.ranges[i].how != "integers":
                scale += abs(mp.mpf(v) * slope(case, point, *by, i))
        wrong = abs(mp.mpf(float(found)) - exact)
        return float(wrong / max(scale, mp.mpf(1e-290)))  # smaller numbers have no digits left
