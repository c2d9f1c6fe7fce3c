"""The gamma distribution of scale 1: density and its logarithm, differentiable in all arguments; distribution function in `x`."""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.scipy.special import gammainc, gammaln
from xpgrad.dialects.hips.scipy.stats._support import restrict_to_support, xlogy

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: Any, a: Any) -> Any:
    """Return the logarithm of the density."""
    return restrict_to_support(x >= 0, 1.0, x, lambda x: xlogy(a - 1.0, x) - x - gammaln(a))


def pdf(x: Any, a: Any) -> Any:
    """Return the density."""
    return np.exp(logpdf(x, a))


def cdf(x: Any, a: Any) -> Any:
    """Return the cumulative distribution function."""
    return gammainc(a, np.maximum(x, 0.0))
