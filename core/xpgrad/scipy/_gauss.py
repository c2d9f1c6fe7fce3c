"""Gauss's quadrature with any number of points, in Python floats."""

from __future__ import annotations

import math


def gauss_legendre(count: int) -> list[tuple[float, float]]:
    """Return abscissas and weights on [-1, 1]: the zeros of Legendre's polynomial, by Newton's method."""
    found = []
    for k in range(count):
        # Tricomi's estimate.
        x, slope = math.cos(math.pi * (k + 0.75) / (count + 0.5)), 1.0
        for _ in range(8):
            before, now = 0.0, 1.0
            for n in range(count):
                before, now = now, ((2 * n + 1) * x * now - n * before) / (n + 1)
            slope = count * (x * now - before) / (x * x - 1.0)
            x -= now / slope
        found.append((x, 2.0 / ((1.0 - x * x) * slope * slope)))
    return found
