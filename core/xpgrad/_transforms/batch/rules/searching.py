"""Sorting and searching; functions whose result has a value-dependent shape raise an error."""

from __future__ import annotations

import math
from typing import Any

from xpgrad._transforms.batch.array import no_rule_error
from xpgrad._transforms.batch.rulebook import Rulebook, along_axis, batched, refused

along_axis("sort", "argsort", default=-1)
refused("unique_all", "unique_counts", "unique_inverse", "unique_values")


def _extreme(book: Rulebook, name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    function = getattr(book.xp, name)
    if x.level is None:
        return book.raw(function(x.value, axis=axis, keepdims=keepdims), None)
    if axis is not None:
        return book.raw(function(x.value, axis=axis % len(x.shape) + 1, keepdims=keepdims), x.level)
    out = function(book.xp.reshape_to(x.value, (x.level.size, math.prod(x.shape))), axis=1)
    return book.raw(book.xp.reshape_to(out, (x.level.size, *(1,) * len(x.shape))) if keepdims else out, x.level)


@batched
def argmax(book: Rulebook, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _extreme(book, "argmax", x, axis, keepdims)


@batched
def argmin(book: Rulebook, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return _extreme(book, "argmin", x, axis, keepdims)


@batched
def searchsorted(book: Rulebook, x1: Any, x2: Any, *, side: str = "left", sorter: Any = None) -> Any:
    if x1.level is None and (sorter is None or book.from_static(sorter).level is None):
        order = None if sorter is None else book.from_static(sorter).value
        flat = book.xp.reshape(x2.value, (-1,))
        return book.raw(book.xp.reshape(book.xp.searchsorted(x1.value, flat, side=side, sorter=order), x2.value.shape), x2.level)
    if sorter is not None:
        x1 = book.kernels.gather_along(x1, sorter, 0)
    # Count the elements of each sorted row that are smaller (or equal).
    level = book.level(x1, x2)
    row = book.xp.reshape_to(book.broadcast_batch(x1, level), (level.size, *(1,) * len(x2.shape), x1.shape[0]))
    values = book.xp.expand_dims(book.pad(x2, len(x2.shape)), axis=-1)
    before = (row < values) if side == "left" else (row <= values)
    return book.raw(book.xp.count_nonzero(before, axis=-1), level)


@batched
def nonzero(book: Rulebook, x: Any) -> tuple[Any, ...]:
    """Return the positions of nonzero elements; raise unless all elements of the batch share the array."""
    if x.level is not None:
        raise no_rule_error("nonzero")
    below = book.backend.inner.backend
    return tuple(book.raw(book.wrap_below(found), None) for found in below.kernels.nonzero(book.to_static(x)))
