"""The Dirichlet distribution: density and its logarithm, differentiable in all arguments, and random points."""

from __future__ import annotations

import importlib
from typing import Any

from xpgrad.dialects.hips._arrays import np
from xpgrad.dialects.hips.scipy.special import gammaln
from xpgrad.dialects.hips.scipy.stats._support import xlogy

__all__ = ["logpdf", "pdf", "rvs"]

#: Random points, SciPy's: constants.
rvs: Any = importlib.import_module("scipy.stats").dirichlet.rvs


def logpdf(x: Any, alpha: Any) -> Any:
    """Return the logarithm of the density at a point whose coordinates sum to 1 along the first axis; all are independent variables."""
    x, alpha = (np.asarray(v) if isinstance(v, (list, tuple)) else v for v in (x, alpha))
    constant = gammaln(np.sum(alpha)) - np.sum(gammaln(alpha))
    return constant + np.sum(xlogy((alpha - 1.0) if np.ndim(x) == 1 else np.expand_dims(alpha - 1.0, -1), x), axis=0)


def pdf(x: Any, alpha: Any) -> Any:
    """Return the density."""
    return np.exp(logpdf(x, alpha))
