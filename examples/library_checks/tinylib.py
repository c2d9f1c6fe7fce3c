"""A small library for the Array API. It imports neither xpgrad nor any array library.

`smooth_l1` and `softmax` are differentiable; `nearest` is not; `spread` has a mistake to find.
"""

from __future__ import annotations

from typing import Any


def softmax(x: Any, axis: int = -1) -> Any:
    """Return exponentials that sum to 1 along an axis; the maximum is subtracted first to avoid overflow."""
    xp = x.__array_namespace__()
    shifted = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return shifted / xp.sum(shifted, axis=axis, keepdims=True)


def smooth_l1(x: Any, y: Any, beta: float = 1.0) -> Any:
    """Return the mean of a loss that is quadratic up to `beta` and linear beyond."""
    xp = x.__array_namespace__()
    far = xp.abs(x - y)
    return xp.mean(xp.where(far < beta, far * far / (2.0 * beta), far - beta / 2.0))


def weighted_mean(values: Any, weights: Any) -> Any:
    """Return the mean of `values` with weights that need not sum to 1."""
    xp = values.__array_namespace__()
    return xp.sum(values * weights) / xp.sum(weights)


def nearest(x: Any, step: float) -> Any:
    """Return the nearest multiples of a step, which are constant almost everywhere."""
    xp = x.__array_namespace__()
    return xp.round(x / step) * step


def spread(x: Any) -> Any:
    """Return the range of the sums of rows; `float` takes it out of the graph, which is the mistake to find."""
    xp = x.__array_namespace__()
    sums = xp.sum(x, axis=1)
    return xp.asarray(float(xp.max(sums))) - xp.min(sums)
