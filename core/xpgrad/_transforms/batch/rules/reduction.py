"""Batch rules for reductions, with the keyword arguments that kernels pass, and for the operations that undo broadcasting."""

from __future__ import annotations

from typing import Any

from xpgrad._transforms.batch.rulebook import Rulebook, along_axis, batched

along_axis("sum", "max", "prod", "all", "any", "count_nonzero")


@batched
def sum_to(book: Rulebook, x: Any, shape: Any) -> Any:
    if tuple(x.shape) == tuple(shape):
        return x
    if x.level is None:
        return book.raw(book.xp.sum_to(x.value, tuple(shape)), None)
    extra = len(x.shape) - len(shape)
    out = book.xp.sum_to(x.value, (x.level.size, *(1,) * extra, *shape))
    return book.raw(book.xp.reshape_to(out, (x.level.size, *shape)) if extra else out, x.level)
