"""Hypothesis strategies for contracts: they draw plain data, so that the `repr` of a failing case reproduces it."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

__all__ = ["broadcastable", "seeds", "shapes"]

seeds = st.integers(0, 2**16)


def shapes(least: int = 0, most: int = 3, side: int = 4, empty: bool = False) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw shapes of `least` to `most` axes, each of length 1 (0 if `empty`) to `side`."""
    return st.lists(st.integers(0 if empty else 1, side), min_size=least, max_size=most).map(tuple)


@st.composite
def broadcastable(draw: Any, n: int = 2) -> tuple[tuple[int, ...], ...]:
    """Draw `n` shapes that broadcast together; any of them may have fewer axes than the result."""
    full = draw(shapes(0, 3))
    found = []
    for _ in range(n):
        cut = draw(st.integers(0, len(full)))
        ones = draw(st.lists(st.booleans(), min_size=len(full) - cut, max_size=len(full) - cut))
        found.append(tuple(1 if one else side for one, side in zip(ones, full[cut:], strict=True)))
    return tuple(found)


def size(shape: tuple[int, ...]) -> int:
    """Return the number of elements of an array of this shape."""
    return math.prod(shape)
