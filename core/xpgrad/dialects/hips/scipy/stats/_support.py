"""Parts that densities share: what they are outside of their support, and powers at its ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips._arrays import np


def xlogy(k: Any, x: Any) -> Any:
    """The product ``k * log(x)``, which is 0 where both are 0."""
    none = np.logical_and(k == 0, x == 0)
    with np.errstate(divide="ignore"):  # infinite densities at the ends of a support
        return k * np.log(np.where(none, 1.0, x))


def inside(support: Any, safe: float, x: Any, logarithm: Callable[[Any], Any]) -> Any:
    """The logarithm of a density: minus infinity outside of the support, where it is computed at a safe place instead."""
    return np.where(support, logarithm(np.where(support, x, safe)), -np.inf)
