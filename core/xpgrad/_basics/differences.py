"""Central differences of a function of one number: the signed distance from a point, along a direction that the caller chose."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple


def central_difference(at: Callable[[float], Any], step: float) -> Any:
    """Return ``(at(step) - at(-step)) / (2 * step)``; the values are numbers, arrays, Tensors, or nested lists of them."""
    return _quotient(at(step), at(-step), 2 * step)


def _quotient(above: Any, below: Any, width: float) -> Any:
    """Return ``(above - below) / width`` for numbers, arrays or nested lists of them."""
    if isinstance(above, list):
        return [_quotient(a, b, width) for a, b in zip(above, below)]
    return (above - below) / width


class Slope(NamedTuple):
    """A derivative in a direction, an estimate of its error, and the one-sided quotients for the chosen step."""

    value: float
    error: float
    right: float = math.nan
    left: float = math.nan

    def agrees(self, other: float, eps: float) -> bool:
        """Return whether `other` equals this slope within its error and a tolerance that follows from the precision `eps`."""
        return abs(other - self.value) <= 6 * self.error + math.sqrt(eps) * 30 * (abs(other) + abs(self.value)) + 1e-300


def best_slope(at: Callable[[float], float], middle: float, eps: float) -> Slope:
    """Return the central difference for the step whose result differs least from those of the neighbouring steps.

    `middle` is the value at the point (nan if unknown), `eps` the spacing of the precision in which the values are computed.
    """
    best = Slope(math.nan, math.inf)
    found: list[Slope] = []  # one per step, with the rounding error
    h = eps**0.25
    for _ in range(6):
        plus, minus = at(h), at(-h)
        rounding = 4 * eps * (abs(plus) + abs(minus)) / h
        found.append(Slope(_quotient(plus, minus, 2 * h), rounding, (plus - middle) / h, (middle - minus) / h))
        if len(found) >= 3:
            before, now, after = found[-3:]
            error = max(abs(now.value - before.value), abs(after.value - now.value)) + now.error
            if math.isfinite(error) and error < best.error:
                best = now._replace(error=error)
            if best.error <= math.sqrt(eps) * abs(best.value) or (before.value == now.value == after.value == 0):
                break
        h /= 8
    return best


def dot(gradient: Any, direction: Any) -> float:
    """Return the derivative along `direction`, given the gradient as a host array in the convention ``dL/dx + i dL/dy``."""
    return float((gradient.conj() * direction).real.sum())
