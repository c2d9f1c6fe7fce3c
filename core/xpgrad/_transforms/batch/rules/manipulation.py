"""Shapes and axis orders."""

from __future__ import annotations

import math
from typing import Any

from xpgrad._transforms.batch.rulebook import Rulebook, along_axis, batched

along_axis("flip")


@batched
def reshape_to(book: Rulebook, x: Any, shape: Any) -> Any:
    if x.level is None:
        return book.raw(book.xp.reshape_to(x.value, tuple(shape)), None)
    if -1 in shape:  # an empty batch has no elements by which it could be inferred
        rest = math.prod(n for n in shape if n != -1)
        shape = [math.prod(x.shape) // rest if n == -1 and rest else n for n in shape]
    return book.raw(book.xp.reshape_to(x.value, (x.level.size, *shape)), x.level)


@batched
def reshape(book: Rulebook, x: Any, shape: Any, *, copy: bool | None = None) -> Any:
    if x.level is None:
        return book.raw(book.xp.reshape(x.value, shape), None)
    return book.kernels.reshape_to(x, shape)


@batched
def transpose_axes(book: Rulebook, x: Any, axes: Any) -> Any:
    order = axes if x.level is None else (0, *(a % len(x.shape) + 1 for a in axes))
    return book.raw(book.xp.transpose_axes(x.value, order), x.level)


@batched
def expand_dims(book: Rulebook, x: Any, *, axis: int = 0) -> Any:
    place = axis % (len(x.shape) + 1)
    return book.kernels.reshape_to(x, (*x.shape[:place], 1, *x.shape[place:]))


@batched
def broadcast_view(book: Rulebook, x: Any, shape: Any) -> Any:
    if x.level is None:
        return book.raw(book.xp.broadcast_view(x.value, tuple(shape)), None)
    return book.raw(book.xp.broadcast_view(book.pad(x, len(shape)), (x.level.size, *shape)), x.level)


@batched
def broadcast_to(book: Rulebook, x: Any, shape: Any) -> Any:
    return book.kernels.broadcast_view(x, shape)


@batched
def shift_by(book: Rulebook, x: Any, shift: Any, axes: Any) -> Any:
    if axes is None and x.level is not None:
        flat = book.xp.shift_by(book.xp.reshape_to(x.value, (x.level.size, math.prod(x.shape))), shift, 1)
        return book.raw(book.xp.reshape_to(flat, (x.level.size, *x.shape)), x.level)
    return book.raw(book.xp.shift_by(x.value, shift, book.axes(x, axes)), x.level)


@batched
def concat(book: Rulebook, xs: Any, *, axis: int = 0) -> Any:
    return book.kernels.join(list(xs), axis)


@batched
def stack(book: Rulebook, xs: Any, *, axis: int = 0) -> Any:
    return book.kernels.pile(list(xs), axis)
