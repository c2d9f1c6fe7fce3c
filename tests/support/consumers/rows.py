"""The type of a row in the tables of consumers, and the arrays that rows share: few shapes, because some libraries compile for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["COUNTS", "MATRIX", "ROW", "SQUARE", "V", "W", "X", "Row", "asarray_like", "bind_last", "row", "words"]

X = np.random.default_rng(0).random((6, 3))
V, W = np.linspace(0.15, 0.85, 5), np.asarray([0.7, 0.3, 0.55, 0.2, 0.9])
ROW = np.random.default_rng(1).random(12) + 0.1
SQUARE = np.random.default_rng(2).random((4, 4)) + 2.0 * np.eye(4)
MATRIX = np.random.default_rng(3).random((5, 6))
COUNTS = np.asarray([1, 2, 3, 1, 2])


class Row(NamedTuple):
    """A call of a function: its NumPy arrays become Tensors, and it is differentiated in those with a floating dtype."""

    function: Callable[..., Any]
    args: tuple[Any, ...]


def row(function: Callable[..., Any], *args: Any) -> Row:
    """Return a row; without `args`, its argument is the matrix `X` of numbers between 0 and 1."""
    return Row(function, args or (X,))


def asarray_like(x: Any, values: Any) -> Any:
    """Return `values` as an array of the namespace of `x`."""
    return x.__array_namespace__().asarray(values)


def words(text: str) -> list[str]:
    """Split a text into names."""
    return text.split()


def bind_last(function: Callable[..., Any], *after: Any, **options: Any) -> Callable[..., Any]:
    """Return `function` with fixed trailing arguments and options."""
    return lambda *args: function(*args, *after, **options)
