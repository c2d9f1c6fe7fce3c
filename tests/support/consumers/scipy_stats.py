"""Calls of the functions of `scipy.stats` that accept arrays of any library."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import stats as t

from support.consumers.rows import ROW, Row, V, W, X, row, words

A, B = ROW, np.random.default_rng(5).random(12) + 0.2
LONG = np.random.default_rng(6).normal(size=24)
FREQUENCIES = np.asarray([12.0, 9.0, 15.0, 10.0])
EXPECTED = np.asarray([10.0, 12.0, 13.0, 11.0])


def _test(name: str, **options: Any) -> Any:
    """Return a function that runs a hypothesis test and returns its statistic and p-value."""

    def run(*samples: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # SciPy warns about small samples
            found = getattr(t, name)(*samples, **options)
        return found.statistic, found.pvalue

    return run


def _scaled(expected: Any, observed: Any) -> Any:
    """Scale expected frequencies to the sum of the observed ones, as SciPy's tests require."""
    xp = expected.__array_namespace__()
    return expected * (xp.sum(observed) / xp.sum(expected))


def _resampled(found: Any) -> Any:
    return found.statistic, found.pvalue


ONE = words("jarque_bera kurtosistest normaltest skewtest")
TWO = words("""alexandergovern ansari bartlett brunnermunzel chatterjeexi cramervonmises_2samp epps_singleton_2samp f_oneway fligner kruskal
levene mannwhitneyu mood pearsonr spearmanrho ttest_ind ttest_rel wilcoxon""")

ROWS: dict[str, Row] = {
    **{f"scipy.stats.{name}": row(_test(name), LONG) for name in ONE},
    **{f"scipy.stats.{name}": row(_test(name), A, B) for name in TWO},
    **{f"scipy.stats.{name}": row(getattr(t, name)) for name in ("zscore", "skew", "kurtosis", "sem", "circmean", "circstd", "circvar")},
    **{f"scipy.stats.{name}": row(getattr(t, name), X + 1.0) for name in ("gmean", "hmean", "gstd", "gzscore", "variation", "iqr")},
    **{f"scipy.stats.{name}": row(getattr(t, name)) for name in ("median_abs_deviation", "tmean", "tvar", "tmin", "tmax", "tstd", "tsem")},
    **{f"scipy.stats.{name}": row(getattr(t, name), A) for name in ("kstat", "kstatvar", "differential_entropy", "lmoment", "rankdata")},
    "scipy.stats.bootstrap": row(
        lambda x: t.bootstrap((x,), _mean, n_resamples=20, rng=np.random.default_rng(0), method="percentile").standard_error, A
    ),
    "scipy.stats.boxcox_llf": row(lambda x: t.boxcox_llf(0.5, x), A),
    "scipy.stats.chisquare": row(lambda f, e: _resampled(t.chisquare(f, _scaled(e, f))), FREQUENCIES, EXPECTED),
    "scipy.stats.combine_pvalues": row(lambda p: _resampled(t.combine_pvalues(p)), V),
    "scipy.stats.cramervonmises": row(lambda x: _resampled(t.cramervonmises(x, lambda v: v / 2.0)), A),
    "scipy.stats.describe": row(lambda x: tuple(t.describe(x))[2:], X),
    "scipy.stats.directional_stats": row(lambda x: t.directional_stats(x).mean_direction),
    "scipy.stats.entropy": row(t.entropy, X + 1.0, X * X + 1.0),
    "scipy.stats.false_discovery_control": row(t.false_discovery_control, V),
    "scipy.stats.friedmanchisquare": row(_test("friedmanchisquare"), A, B, A * B),
    "scipy.stats.ks_1samp": row(lambda x: _resampled(t.ks_1samp(x, lambda v: v / 2.0)), A),
    "scipy.stats.mode": row(lambda x: t.mode(x).mode, X),
    "scipy.stats.moment": row(lambda x: t.moment(x, order=3)),
    "scipy.stats.monte_carlo_test": row(
        lambda x: t.monte_carlo_test(x, lambda size: _normal(x, size), _mean, n_resamples=20, vectorized=True).statistic, A
    ),
    "scipy.stats.permutation_test": row(
        lambda x, y: t.permutation_test((x, y), _difference, n_resamples=20, vectorized=True, rng=np.random.default_rng(0)).statistic, A, B
    ),
    "scipy.stats.pmean": row(lambda x: t.pmean(x + 1.0, 2.0)),
    "scipy.stats.power_divergence": row(
        lambda f, e: _resampled(t.power_divergence(f, _scaled(e, f), lambda_="freeman-tukey")), FREQUENCIES, EXPECTED
    ),
    "scipy.stats.quantile": row(t.quantile, A, V),
    "scipy.stats.sigmaclip": row(lambda x: t.sigmaclip(x, 3.0, 3.0).clipped, A),
    "scipy.stats.trim_mean": row(lambda x: t.trim_mean(x, 0.1), A),
    "scipy.stats.ttest_1samp": row(lambda x, m: _resampled(t.ttest_1samp(x, m)), A, np.asarray(0.5)),
    "scipy.stats.ttest_ind_from_stats": row(
        lambda m, s, n, r: _resampled(t.ttest_ind_from_stats(m, s, 8, n, r, 9)), V, W, V + 0.1, W + 0.1
    ),
    "scipy.stats.yeojohnson_llf": row(lambda x: t.yeojohnson_llf(0.5, x)),
    "scipy.stats.zmap": row(t.zmap, X, X + X * X),
}


def _mean(x: Any, axis: int = -1) -> Any:
    return x.__array_namespace__().mean(x, axis=axis)


def _difference(x: Any, y: Any, axis: int = -1) -> Any:
    return _mean(x, axis) - _mean(y, axis)


def _normal(x: Any, size: Any) -> Any:
    return x.__array_namespace__().asarray(np.random.default_rng(0).normal(size=size))


LEFT_OUT: dict[str, str] = {
    "it simulates a test whose samples are drawn by functions of its own; no array is an argument": "scipy.stats.power",
}
