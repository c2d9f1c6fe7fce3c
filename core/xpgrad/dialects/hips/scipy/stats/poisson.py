"""The Poisson distribution: probabilities of integers, their logarithm and the distribution function, differentiable in `mu`."""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.scipy.special import gammaincc, gammaln
from xpgrad.dialects.hips.scipy.stats._support import restrict_to_support, xlogy
from xpgrad.dialects.hips.tracer import getval

__all__ = ["cdf", "logpmf", "pmf"]


def logpmf(k: Any, mu: Any) -> Any:
    """Return the logarithm of the probability."""
    k = np.asarray(getval(k), dtype=float)
    return restrict_to_support(np.logical_and(k >= 0, k == np.floor(k)), 0.0, k, lambda k: xlogy(k, mu) - mu - gammaln(k + 1.0))


def pmf(k: Any, mu: Any) -> Any:
    """Return the probability."""
    return np.exp(logpmf(k, mu))


def cdf(k: Any, mu: Any) -> Any:
    """Return the cumulative distribution function."""
    k = np.floor(np.asarray(getval(k), dtype=float))
    return np.where(k >= 0, gammaincc(np.maximum(k, 0.0) + 1.0, mu), 0.0)
