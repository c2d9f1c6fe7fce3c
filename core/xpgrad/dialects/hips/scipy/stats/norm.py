"""The normal distribution: density, distribution function and their logarithms, differentiable in all arguments."""

from __future__ import annotations

import importlib
import math
from typing import Any

from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.extend import defjvp, defvjp, primitive

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_norm: Any = importlib.import_module("scipy.stats").norm
_CONSTANT = math.log(2 * math.pi) / 2


def logpdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of the density."""
    z = (x - loc) / scale
    return -_CONSTANT - np.log(scale) - z * z / 2


def pdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the density."""
    return np.exp(logpdf(x, loc, scale))


@primitive
def _cdf(z: Any) -> Any:
    return _norm.cdf(z)


@primitive
def _logcdf(z: Any) -> Any:
    return _norm.logcdf(z)


defvjp(_cdf, lambda ans, z: lambda g: g * pdf(z))
defjvp(_cdf, lambda g, ans, z: g * pdf(z))
# The quotient of the two is one exponential, because far from the mean each of them underflows to zero.
defvjp(_logcdf, lambda ans, z: lambda g: g * np.exp(logpdf(z) - ans))
defjvp(_logcdf, lambda g, ans, z: g * np.exp(logpdf(z) - ans))


def cdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the cumulative distribution function."""
    return _cdf((x - loc) / scale)


def logcdf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of the cumulative distribution function."""
    return _logcdf((x - loc) / scale)


def sf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return one minus the cumulative distribution function."""
    return _cdf(-(x - loc) / scale)


def logsf(x: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of one minus the cumulative distribution function."""
    return _logcdf(-(x - loc) / scale)
