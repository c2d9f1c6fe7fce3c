"""Helpers of densities: values outside the support, and powers at its ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips._arrays import np


def xlogy(k: Any, x: Any) -> Any:
    """Return ``k * log(x)``, which is 0 if both are 0."""
    none = np.logical_and(k == 0, x == 0)
    with np.errstate(divide="ignore"):  # infinite densities at the ends of a support
        return k * np.log(np.where(none, 1.0, x))


def restrict_to_support(support: Any, safe: float, x: Any, logarithm: Callable[[Any], Any]) -> Any:
    """Return the logarithm of a density; outside the support it is minus infinity, and `logarithm` is evaluated at `safe`."""
    return np.where(support, logarithm(np.where(support, x, safe)), -np.inf)
