"""The beta distribution: density and its logarithm, differentiable in all arguments; distribution function in `x`."""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.scipy.special import betainc, betaln
from xpgrad.dialects.hips.scipy.stats._support import restrict_to_support, xlogy

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: Any, a: Any, b: Any) -> Any:
    """Return the logarithm of the density."""
    support = np.logical_and(x >= 0, x <= 1)
    return restrict_to_support(support, 0.5, x, lambda x: xlogy(a - 1.0, x) + xlogy(b - 1.0, 1.0 - x) - betaln(a, b))


def pdf(x: Any, a: Any, b: Any) -> Any:
    """Return the density."""
    return np.exp(logpdf(x, a, b))


def cdf(x: Any, a: Any, b: Any) -> Any:
    """Return the cumulative distribution function."""
    return betainc(a, b, np.clip(x, 0.0, 1.0))
