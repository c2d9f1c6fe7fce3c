"""Calls of functions that accept arrays of any library from SciPy 1.18 on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import integrate, interpolate, signal, stats
from scipy.sparse import linalg

from support.consumers.rows import MATRIX, SQUARE, Row, V, W, X, asarray_like, row
from support.consumers.scipy_stats import LONG, A, B, _resampled, _test

BETWEEN = np.asarray([0.22, 0.41, 0.63])
KNOTS = np.asarray([-0.1, 0.0, 0.1, 0.35, 0.6, 0.9, 1.0, 1.1])
POINTS = np.asarray([[0.22, 0.41], [0.63, 0.3]])
TIMES = np.linspace(0.1, 5.9, 7)


def _line(name: str) -> Any:
    """Return a function that fits a line and returns its slope and intercept."""

    def run(y: Any, x: Any) -> Any:
        fit = getattr(stats, name)(y, x)
        return fit.slope, fit.intercept

    return run


def _fit(x: Any, y: Any) -> Any:
    fit = stats.linregress(x, y)
    return fit.slope, fit.intercept, fit.rvalue, fit.pvalue, fit.stderr, fit.intercept_stderr


def _interpolant(name: str, **options: Any) -> Any:
    """Return a function that interpolates and evaluates between the points, by the points, the values and where to evaluate."""
    return lambda x, y, where: getattr(interpolate, name)(x, y, **options)(where)


def _operator(a: Any, v: Any) -> Any:
    operator = 2.0 * linalg.aslinearoperator(a)
    return (operator @ operator.T).matvec(v)


ROWS: dict[str, Row] = {
    "scipy.integrate.fixed_quad": row(lambda a, b: integrate.fixed_quad(lambda t: t**3, a, b)[0], np.asarray(0.2), np.asarray(1.3)),
    "scipy.integrate.simpson": row(lambda y, x: integrate.simpson(y, x=x), W, V),
    **{f"scipy.interpolate.{name}": row(_interpolant(name), V, W, BETWEEN) for name in ("Akima1DInterpolator", "CubicSpline")},
    "scipy.interpolate.BPoly": row(lambda c, x, where: interpolate.BPoly(c, x)(where), MATRIX[:3, :4], V, BETWEEN),
    "scipy.interpolate.BSpline": row(lambda t, c, where: interpolate.BSpline(t, c, 2)(where), KNOTS, W, BETWEEN),
    "scipy.interpolate.CubicHermiteSpline": row(
        lambda x, y, d, where: interpolate.CubicHermiteSpline(x, y, d)(where), V, W, W * W, BETWEEN
    ),
    "scipy.interpolate.NdBSpline": row(lambda t, c, where: interpolate.NdBSpline((t, t), c, 2)(where), KNOTS, MATRIX[:, :5], POINTS),
    "scipy.interpolate.PPoly": row(lambda c, x, where: interpolate.PPoly(c, x)(where), MATRIX[:3, :4], V, BETWEEN),
    "scipy.interpolate.RBFInterpolator": row(_interpolant("RBFInterpolator"), X[:, :2], X[:, 2], POINTS),
    "scipy.interpolate.RegularGridInterpolator": row(
        lambda x, y, where: interpolate.RegularGridInterpolator((x, x), y)(where), V, MATRIX[:, :5], POINTS
    ),
    "scipy.signal.findfreqs": row(lambda a: signal.findfreqs(asarray_like(a, [1.0]), a, 5), np.asarray([1.0, 9.0, 14.0])),
    "scipy.signal.sawtooth": row(lambda t: signal.sawtooth(t, 0.3), TIMES),
    "scipy.signal.square": row(lambda t: signal.square(t, 0.3), TIMES),
    "scipy.sparse.linalg.aslinearoperator": row(_operator, SQUARE, V[:4]),
    "scipy.stats.binomtest": row(lambda p: stats.binomtest(3, 10, p).pvalue, np.asarray(0.4)),
    "scipy.stats.bws_test": row(_test("bws_test"), A[:5], B[:5]),
    "scipy.stats.cumfreq": row(lambda x: stats.cumfreq(x, numbins=4).cumcount, A),
    "scipy.stats.estimated_cdf": row(stats.estimated_cdf, A, V),
    "scipy.stats.expectile": row(lambda x: stats.expectile(x, 0.3), A),
    "scipy.stats.kendalltau": row(_test("kendalltau"), A, B),
    "scipy.stats.ks_2samp": row(_test("ks_2samp"), A, B),
    "scipy.stats.kstest": row(lambda x: _resampled(stats.kstest(x, lambda v: v / 2.0)), A),
    "scipy.stats.linregress": row(_fit, A, B),
    "scipy.stats.obrientransform": row(stats.obrientransform, A, B),
    "scipy.stats.pointbiserialr": row(_test("pointbiserialr"), np.arange(12) % 2, B),
    "scipy.stats.quantile_test": row(lambda x: stats.quantile_test(x, q=0.4).pvalue, A),
    "scipy.stats.relfreq": row(lambda x: stats.relfreq(x, numbins=4).frequency, A),
    "scipy.stats.shapiro": row(_test("shapiro"), LONG),
    "scipy.stats.siegelslopes": row(_line("siegelslopes"), B, A),
    "scipy.stats.theilslopes": row(_line("theilslopes"), B, A),
}

LEFT_OUT: dict[str, str] = {}
