"""A small library for the Array API, as its authors write it: it has never heard of xpgrad, nor of any array library.

`smooth_l1` and `softmax` are differentiable; `nearest` is not, by its nature; `rescaled` loops over numbers of its own.
"""

from __future__ import annotations

from typing import Any


def softmax(x: Any, axis: int = -1) -> Any:
    """Exponentials that sum to 1 along an axis; the largest is taken out before, so that none overflows."""
    xp = x.__array_namespace__()
    shifted = xp.exp(x - xp.max(x, axis=axis, keepdims=True))
    return shifted / xp.sum(shifted, axis=axis, keepdims=True)


def smooth_l1(x: Any, y: Any, beta: float = 1.0) -> Any:
    """The mean loss that is quadratic up to `beta` and linear beyond."""
    xp = x.__array_namespace__()
    far = xp.abs(x - y)
    return xp.mean(xp.where(far < beta, far * far / (2.0 * beta), far - beta / 2.0))


def weighted_mean(values: Any, weights: Any) -> Any:
    """The mean of `values` with weights that need not sum to 1."""
    xp = values.__array_namespace__()
    return xp.sum(values * weights) / xp.sum(weights)


def nearest(x: Any, step: float) -> Any:
    """The nearest multiples of a step: constant almost everywhere."""
    xp = x.__array_namespace__()
    return xp.round(x / step) * step


def spread(x: Any) -> Any:
    """The largest less the smallest of the sums of rows; `float` makes it leave the graph, which is the mistake to be found."""
    xp = x.__array_namespace__()
    sums = xp.sum(x, axis=1)
    return xp.asarray(float(xp.max(sums))) - xp.min(sums)
