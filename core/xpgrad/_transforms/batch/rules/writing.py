"""Writes as operations without side effects, and the operations in their gradients."""

from __future__ import annotations

import math
from typing import Any

from xpgrad._basics.keys import full_key, is_basic
from xpgrad._transforms.batch.array import no_rule_error
from xpgrad._transforms.batch.rulebook import Rulebook, batched
from xpgrad._transforms.batch.rules.indexing import flat_positions, key_below, places_in_batch


@batched
def written(book: Rulebook, buffer: Any, key: Any, value: Any) -> Any:
    return book.kernels.put(buffer, value, key)


@batched
def put(book: Rulebook, x: Any, value: Any, key: Any) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    scalar = value.__class__ is not book.raw
    level = book.level(x, value, *parts)
    if scalar:
        value = book.scalar(value, x)
    if level is None:
        return book.raw(book.xp.put(x.value, value.value, key_below(book, key)), None)
    whole = book.broadcast_batch(x, level)
    if is_basic(key):
        place = (slice(None), *full_key(key, x.shape))
        rank = len(book.xp.index_basic(whole, place).shape) - 1
        return book.raw(book.xp.put(whole, _fit_rank(book, value, rank), place), level)
    if len(parts) == 1 and book.level(*parts) is not None and (mask := book.from_static(parts[0])).dtype.category == "bool":
        return _put_where(book, x, value, mask, level)
    flat = flat_positions(book, key, x.shape)
    count, picked = math.prod(x.shape), math.prod(flat.shape)
    value = book.kernels.broadcast_view(_drop_ones(book, value, len(flat.shape)), tuple(flat.shape))
    values = book.xp.reshape_to(book.broadcast_batch(value, level), (level.size, picked))
    if flat.level is None:
        place = book.static(book.xp.reshape_to(flat.value, (picked,)))
        out = book.xp.put(book.xp.reshape_to(whole, (level.size, count)), values, (slice(None), place))
    else:
        places = places_in_batch(book, flat, count)
        out = book.xp.put(book.xp.reshape_to(whole, (level.size * count,)), book.xp.reshape_to(values, (level.size * picked,)), (places,))
    return book.raw(book.xp.reshape_to(out, (level.size, *x.shape)), level)


def _put_where(book: Rulebook, x: Any, value: Any, mask: Any, level: Any) -> Any:
    """Write one value to all places that a mask selects, whose number differs between the elements of the batch."""
    further = len(x.shape) - len(mask.shape)
    value = _drop_ones(book, value, further)
    if x.shape[: len(mask.shape)] != mask.shape or len(value.shape) > further:
        raise no_rule_error("x[mask] = values")
    mask = book.kernels.reshape_to(mask, (*mask.shape, *(1,) * further))
    whole = book.broadcast_batch(x, level)
    return book.raw(book.xp.where(book.broadcast_batch(mask, level), book.pad(value, len(x.shape)), whole), level)


def _fit_rank(book: Rulebook, value: Any, rank: int) -> Any:
    """Return the value to write with `rank` axes, those of the part to overwrite; as in NumPy, further axes of length 1 are dropped."""
    return book.pad(_drop_ones(book, value, rank), rank)


def _drop_ones(book: Rulebook, value: Any, rank: int) -> Any:
    extra = len(value.shape) - rank
    drops = extra > 0 and all(n == 1 for n in value.shape[:extra])
    return book.kernels.reshape_to(value, value.shape[extra:]) if drops else value


def _rows(book: Rulebook, name: str, x: Any, key: Any, shape: Any) -> tuple[Any, Any, Any]:
    """Apply a function of written places to the rows of a batch, flattened if the key is batched; also return level and positions."""
    level = book.level(x, *(key if isinstance(key, tuple) else (key,)))
    flat = flat_positions(book, key, shape)
    count, picked = math.prod(shape), math.prod(flat.shape)
    function, source = getattr(book.xp, name), picked if name == "wins" else count
    size: tuple[int, ...]
    place: tuple[Any, ...]
    if flat.level is None:
        rows, size = book.xp.reshape_to(book.broadcast_batch(x, level), (level.size, source)), (level.size, count)
        place = (slice(None), book.static(book.xp.reshape_to(flat.value, (picked,))))
    else:
        rows, size = book.xp.reshape_to(book.broadcast_batch(x, level), (level.size * source,)), (level.size * count,)
        place = (places_in_batch(book, flat, count),)
    return function(rows, place, size) if name == "wins" else function(rows, place), level, flat


@batched
def put_zero(book: Rulebook, x: Any, key: Any) -> Any:
    if book.level(x, *(key if isinstance(key, tuple) else (key,))) is None:
        return book.raw(book.xp.put_zero(x.value, key_below(book, key)), None)
    if is_basic(key):
        return book.raw(book.xp.put_zero(x.value, (slice(None), *full_key(key, x.shape))), x.level)
    out, level, _ = _rows(book, "put_zero", x, key, x.shape)
    return book.raw(book.xp.reshape_to(out, (level.size, *x.shape)), level)


@batched
def take_written(book: Rulebook, x: Any, key: Any) -> Any:
    if book.level(x, *(key if isinstance(key, tuple) else (key,))) is None:
        return book.raw(book.xp.take_written(x.value, key_below(book, key)), None)
    if is_basic(key):
        return book.kernels.index_basic(x, key)
    out, level, flat = _rows(book, "take_written", x, key, x.shape)
    return book.raw(book.xp.reshape_to(out, (level.size, *flat.shape)), level)


@batched
def wins(book: Rulebook, x: Any, key: Any, shape: Any) -> Any:
    if book.level(x, *(key if isinstance(key, tuple) else (key,))) is None:
        return book.raw(book.xp.wins(x.value, key_below(book, key), shape), None)
    if is_basic(key):
        out = book.xp.wins(x.value, (slice(None), *full_key(key, shape)), (x.level.size, *shape))
        return book.raw(out, x.level)
    out, level, flat = _rows(book, "wins", x, key, shape)
    return book.raw(book.xp.reshape_to(out, (level.size, *flat.shape)), level)
