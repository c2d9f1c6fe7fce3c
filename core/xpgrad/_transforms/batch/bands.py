"""Bands: the rows of an identity matrix stay a vector until an operation mixes them (see `PlainBatch`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._rows.row import ROWS
from xpgrad._transforms.batch.kinds import elementwise, pairwise
from xpgrad._transforms.batch.plain import PlainRulebook, made_on_plain, on_plain
from xpgrad._transforms.batch.rules import indexing, linear_algebra, manipulation


def _keep_band(book: PlainRulebook, name: str) -> Callable[[Any, Any], Any]:
    """Return the rule of a product or quotient, which keeps a band if the other operand is shared and has its shape or is a scalar."""
    function, raw = book.operation(ROWS[name]), book.raw
    whole = pairwise(book, function)

    def rule(x: Any, y: Any) -> Any:
        if x.__class__ is raw and x.band is not None:
            factor = y.value if y.__class__ is raw and y.level is None else y if y.__class__ is not raw else None
            if factor is not None:
                if y is factor or y.shape == ():
                    return raw.banded(function(x.band, factor), x.offset, x.level, x.shape)
                if y.shape == x.shape:
                    if len(x.shape) > 1:
                        factor = book.xp.reshape_to(factor, (x.shape[0],))
                    return raw.banded(function(x.band, factor), x.offset, x.level, x.shape)
        return whole(x, y)

    return rule


@made_on_plain
def multiply(book: PlainRulebook) -> Any:
    scaled, raw = _keep_band(book, "multiply"), book.raw

    def rule(x: Any, y: Any) -> Any:
        return scaled(y, x) if y.__class__ is raw and y.band is not None else scaled(x, y)

    return rule


@made_on_plain
def divide(book: PlainRulebook) -> Any:
    return _keep_band(book, "divide")


@made_on_plain
def negative(book: PlainRulebook) -> Any:
    function = book.operation(ROWS["negative"])
    whole = elementwise(book, function)

    def rule(x: Any) -> Any:
        return whole(x) if x.band is None else book.raw.banded(function(x.band), x.offset, x.level, x.shape)

    return rule


@made_on_plain
def add(book: PlainRulebook) -> Any:
    function, raw = book.operation(ROWS["add"]), book.raw
    whole = pairwise(book, function)

    def rule(x: Any, y: Any) -> Any:
        if x.__class__ is y.__class__ and x.band is not None and y.band is not None and (x.offset, x.shape) == (y.offset, y.shape):
            return raw.banded(function(x.band, y.band), x.offset, x.level, x.shape)
        return whole(x, y)

    return rule


@on_plain
def reshape_to(book: PlainRulebook, x: Any, shape: Any) -> Any:
    if x.band is not None and tuple(shape[:1]) == x.shape[:1] and all(n == 1 for n in shape[1:]):
        return book.raw.banded(x.band, x.offset, x.level, tuple(shape))
    return manipulation.reshape_to(book, x, shape)


@on_plain
def index_basic(book: PlainRulebook, x: Any, key: Any) -> Any:
    if x.band is not None and len(x.shape) == 1:
        part = _one_slice(key, x.shape)
        if part is not None:
            band = book.xp.index_basic(x.band, (part,))
            return book.raw.banded(band, x.offset + part.start, x.level, tuple(band.shape))
    return indexing.index_basic(book, x, key)


@on_plain
def index_basic_transpose(book: PlainRulebook, x: Any, key: Any, shape: Any) -> Any:
    if x.band is not None and len(x.shape) == 1 == len(shape):
        part = _one_slice(key, shape)
        if part is not None:
            band = book.xp.index_basic_transpose(x.band, (part,), shape)
            return book.raw.banded(band, x.offset - part.start, x.level, tuple(shape))
    return indexing.index_basic_transpose(book, x, key, shape)


@on_plain
def mat_vec(book: PlainRulebook, x1: Any, x2: Any) -> Any:
    if x1.level is None and x2.band is not None and x2.offset == 0 and x2.shape == (x2.level.size,):
        return book.raw(book.xp.multiply(book.xp.swap_last(x1.value), book.xp.reshape_to(x2.band, (x2.level.size, 1))), x2.level)
    return linear_algebra.mat_vec(book, x1, x2)


@on_plain
def matmul_nd(book: PlainRulebook, x1: Any, x2: Any) -> Any:
    if x1.level is None and x2.band is not None and x2.offset == 0 and x2.shape == (x2.level.size, 1):
        rows = book.xp.multiply(book.xp.swap_last(x1.value), book.xp.reshape_to(x2.band, x2.shape))
        return book.raw(book.xp.reshape_to(rows, (x2.level.size, x1.shape[0], 1)), x2.level)
    return linear_algebra.matmul_nd(book, x1, x2)


def _one_slice(key: Any, shape: Any) -> Any:
    """Return the slice if a key is a single non-empty slice without a step, with its bounds resolved; else None."""
    part: Any = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if part.__class__ is not slice or part.step not in (None, 1):
        return None
    start, stop, _ = part.indices(shape[0])
    return slice(start, stop) if stop > start else None
