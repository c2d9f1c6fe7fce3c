"""Student's t: density and its logarithm, differentiable in all arguments; distribution function and its logarithm in all but `df`."""

from __future__ import annotations

import importlib
import math
from typing import Any

from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.extend import defjvp, defvjp, primitive
from xpgrad.dialects.hips.numpy.numpy_vjps import unbroadcast_f
from xpgrad.dialects.hips.scipy.special import gammaln

__all__ = ["cdf", "logcdf", "logpdf", "pdf"]

_t: Any = importlib.import_module("scipy.stats").t


def logpdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of the density."""
    z = (x - loc) / scale
    constant = gammaln((df + 1.0) / 2) - gammaln(df / 2.0) - np.log(df * math.pi) / 2
    return constant - np.log(scale) - (df + 1.0) / 2 * np.log1p(z * z / df)


def pdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the density."""
    return np.exp(logpdf(x, df, loc, scale))


@primitive
def _cdf(z: Any, df: Any) -> Any:
    return _t.cdf(z, df)


@primitive
def _logcdf(z: Any, df: Any) -> Any:
    return _t.logcdf(z, df)


defvjp(_cdf, lambda ans, z, df: unbroadcast_f(z, lambda g: g * pdf(z, df)), argnums=[0])
defjvp(_cdf, lambda g, ans, z, df: g * pdf(z, df), argnums=[0])
defvjp(_logcdf, lambda ans, z, df: unbroadcast_f(z, lambda g: g * np.exp(logpdf(z, df) - ans)), argnums=[0])
defjvp(_logcdf, lambda g, ans, z, df: g * np.exp(logpdf(z, df) - ans), argnums=[0])


def cdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the cumulative distribution function."""
    return _cdf((x - loc) / scale, df)


def logcdf(x: Any, df: Any, loc: Any = 0.0, scale: Any = 1.0) -> Any:
    """Return the logarithm of the cumulative distribution function."""
    return _logcdf((x - loc) / scale, df)
