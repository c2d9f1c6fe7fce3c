"""The chi-squared distribution: density and its logarithm, differentiable in all arguments; distribution function in `x`."""

from __future__ import annotations

import math
from typing import Any

from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.scipy.stats import gamma

__all__ = ["cdf", "logpdf", "pdf"]


def logpdf(x: Any, df: Any) -> Any:
    """Return the logarithm of the density."""
    return gamma.logpdf(x / 2, df / 2) - math.log(2)


def pdf(x: Any, df: Any) -> Any:
    """Return the density."""
    return np.exp(logpdf(x, df))


def cdf(x: Any, df: Any) -> Any:
    """Return the cumulative distribution function."""
    return gamma.cdf(x / 2, df / 2)
