"""The multivariate normal distribution: density, its logarithm and the entropy, differentiable in all arguments."""

from __future__ import annotations

import math
from typing import Any

from xpgrad.dialects.hips._arrays import np

__all__ = ["entropy", "logpdf", "pdf"]


def _matrix(name: str, cov: Any, dim: int, allow_singular: bool) -> Any:
    """Return the covariance as a matrix; a number or a vector is its diagonal.

    Raises
    ------
    ValueError
        The shape is wrong, or ``allow_singular=True``: a singular density has no derivative with respect to the covariance.
    """
    if allow_singular:
        msg = f"multivariate_normal.{name}: allow_singular=True has no derivatives; add a small multiple of the identity to `cov`"
        raise ValueError(msg)
    if np.ndim(cov) < 2:
        cov = cov * np.eye(dim)
    if np.shape(cov) != (dim, dim):
        msg = f"multivariate_normal.{name}: `cov` must have shape {(dim, dim)}, but has {np.shape(cov)}"
        raise ValueError(msg)
    return cov


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: bool = False) -> Any:
    """Return the logarithm of the density at points along the last axis.

    Raises
    ------
    ValueError
        The shapes do not fit together, or ``allow_singular=True``.
    """
    dim = max(np.size(mean), np.shape(cov)[0] if np.ndim(cov) else 1)
    cov = _matrix("logpdf", cov, dim, allow_singular)
    apart = x - mean if dim > 1 or np.ndim(x) > 1 else np.expand_dims(x - mean, -1)
    rows = np.reshape(apart, (-1, dim))
    squares = np.sum(rows * np.transpose(np.linalg.solve(cov, np.transpose(rows))), axis=1)
    out = -0.5 * (squares + dim * math.log(2 * math.pi) + np.linalg.slogdet(cov)[1])
    shape = np.shape(apart)[:-1]
    return np.reshape(out, shape) if shape != (1,) or np.ndim(x) > 1 else out[0]


def pdf(x: Any, mean: Any, cov: Any, allow_singular: bool = False) -> Any:
    """Return the density; see `logpdf`."""
    return np.exp(logpdf(x, mean, cov, allow_singular))


def entropy(mean: Any, cov: Any) -> Any:
    """Return the differential entropy."""
    dim = max(np.size(mean), np.shape(cov)[0] if np.ndim(cov) else 1)
    return 0.5 * (dim * (1 + math.log(2 * math.pi)) + np.linalg.slogdet(_matrix("entropy", cov, dim, False))[1])
