"""Reads by keys and by indices along an axis, which may differ between elements, and their transposes."""

from __future__ import annotations

import math
from typing import Any

from xpgrad._array.kernels import DefaultKernels
from xpgrad._basics.keys import full_key, index_arrays, is_basic
from xpgrad._transforms.batch.array import no_rule_error
from xpgrad._transforms.batch.rulebook import Rulebook, batched


def plain_part(part: Any) -> bool:
    """Return whether a part of a key is not an array."""
    return part is None or part is Ellipsis or isinstance(part, (int, slice))


def key_below(book: Rulebook, key: Any) -> Any:
    """Convert a key that all elements share to one of the class below."""
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(p if plain_part(p) else book.to_static(p) for p in parts)


@batched
def index_basic(book: Rulebook, x: Any, key: Any) -> Any:
    if x.level is None:
        return book.raw(book.xp.index_basic(x.value, key), None)
    return book.raw(book.xp.index_basic(x.value, (slice(None), *full_key(key, x.shape))), x.level)


@batched
def index_basic_transpose(book: Rulebook, x: Any, key: Any, shape: Any) -> Any:
    if x.level is None:
        return book.raw(book.xp.index_basic_transpose(x.value, key, shape), None)
    return book.raw(book.xp.index_basic_transpose(x.value, (slice(None), *full_key(key, shape)), (x.level.size, *shape)), x.level)


def _mask_for_all(book: Rulebook, key: Any) -> Any:
    """Return the key that reads a whole batch, if its elements share it and it is a mask among slices; None for another key."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(index_arrays(parts)) != 1 or any(isinstance(p, int) for p in parts) or book.level(*parts) is not None:
        return None
    below = key_below(book, key)
    (array,) = index_arrays(below)
    return (slice(None), *below) if book.backend.inner.backend.kernels.isdtype(array.dtype, "bool") else None


def flat_positions(book: Rulebook, key: Any, shape: Any) -> Any:
    """Return the flat positions that an advanced key selects in an array of `shape`; batched if the key is."""
    parts = key if isinstance(key, tuple) else (key,)
    if book.level(*parts) is None:
        below = book.backend.inner.backend
        like = next(book.to_static(p) for p in parts if not plain_part(p))
        flat = below.kernels.flat_index(key_below(book, key), tuple(shape), like)
        return book.raw(book.wrap_below(flat), None)
    own = tuple(book.from_static(p) for p in parts)
    for p in own:
        if p.__class__ is book.raw and p.dtype.category == "bool":
            raise no_rule_error("x[mask]")
    like = next(p for p in own if p.__class__ is book.raw)
    return DefaultKernels.flat_index(book.kernels, own, tuple(shape), like)


@batched
def from_front(book: Rulebook, indices: Any, n: int, axis: int, like: Any) -> Any:
    # An index out of the bounds of an element may be in those of the batch, so the kernel below checks it if it can.
    places = book.to_static(indices)
    found = book.backend.inner.backend.kernels.from_front(places, n, axis, places)
    return book.raw(book.wrap_below(found), indices.level if indices.__class__ is book.raw else None)


@batched
def gather(book: Rulebook, x: Any, key: Any) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    level = book.level(x, *parts)
    if x.level is None and book.level(*parts) is None:
        return book.raw(book.xp.gather(x.value, key_below(book, key)), None)
    whole = _mask_for_all(book, key)
    if whole is not None:
        return book.raw(book.xp.gather(x.value, whole), level)
    flat = flat_positions(book, key, x.shape)
    count, picked = math.prod(x.shape), math.prod(flat.shape)
    if flat.level is None:
        rows = book.xp.reshape_to(x.value, (level.size, count))
        out = book.xp.gather(rows, (slice(None), book.static(book.xp.reshape_to(flat.value, (picked,)))))
    elif x.level is None:
        out = book.xp.gather(book.xp.reshape_to(x.value, (count,)), (book.static(book.xp.reshape_to(flat.value, (level.size * picked,))),))
    else:
        rows = book.xp.reshape_to(x.value, (level.size, count))
        out = book.xp.gather_along(rows, book.static(book.xp.reshape_to(flat.value, (level.size, picked))), 1)
    return book.raw(book.xp.reshape_to(out, (level.size, *flat.shape)), level)


@batched
def read(book: Rulebook, x: Any, key: Any) -> Any:
    return book.kernels.index_basic(x, key) if is_basic(key) else book.kernels.gather(x, key)


@batched
def take(book: Rulebook, x: Any, indices: Any, *, axis: int = 0) -> Any:
    return book.kernels.gather(x, (*(slice(None),) * (axis % len(x.shape)), indices))


@batched
def scatter_add(book: Rulebook, x: Any, key: Any, shape: Any) -> Any:
    parts = key if isinstance(key, tuple) else (key,)
    level = book.level(x, *parts)
    if level is None:
        return book.raw(book.xp.scatter_add(x.value, key_below(book, key), tuple(shape)), None)
    whole = _mask_for_all(book, key)
    if whole is not None:
        return book.raw(book.xp.scatter_add(x.value, whole, (level.size, *shape)), level)
    flat = flat_positions(book, key, shape)
    count, picked = math.prod(shape), math.prod(flat.shape)
    values = book.xp.reshape_to(book.broadcast_batch(x, level), (level.size, picked))
    if flat.level is None:
        place = book.static(book.xp.reshape_to(flat.value, (picked,)))
        out = book.xp.scatter_add(values, (slice(None), place), (level.size, count))
    else:
        places = places_in_batch(book, flat, count)
        out = book.xp.scatter_add(book.xp.reshape_to(values, (level.size * picked,)), (places,), (level.size * count,))
    return book.raw(book.xp.reshape_to(out, (level.size, *shape)), level)


def places_in_batch(book: Rulebook, flat: Any, count: int) -> Any:
    """Convert batched positions to positions in the flattened batch: a raw array below with one axis."""
    size = flat.level.size
    starts = book.count_up(size, flat.value) * count
    total = book.xp.reshape_to(flat.value, (size, math.prod(flat.shape))) + book.xp.reshape_to(starts, (size, 1))
    return book.static(book.xp.reshape_to(total, (size * math.prod(flat.shape),)))


def _indices(book: Rulebook, x: Any, indices: Any) -> tuple[Any, Any, Any]:
    """Return an array and the indices along its axes, both with the batch axis, and the level; without a batch, None as the level."""
    own = book.from_static(indices)
    level = book.level(x, own)
    if level is None:
        return x.value, book.static(own.value), None
    return book.broadcast_batch(x, level), book.static(book.broadcast_batch(own, level)), level


@batched
def gather_along(book: Rulebook, x: Any, indices: Any, axis: int) -> Any:
    value, places, level = _indices(book, x, indices)
    return book.raw(book.xp.gather_along(value, places, axis if level is None else axis % len(x.shape) + 1), level)


@batched
def scatter_along(book: Rulebook, x: Any, indices: Any, shape: Any, axis: int) -> Any:
    value, places, level = _indices(book, x, indices)
    if level is None:
        return book.raw(book.xp.scatter_along(value, places, shape, axis), None)
    return book.raw(book.xp.scatter_along(value, places, (level.size, *shape), axis % len(shape) + 1), level)


@batched
def ordered(book: Rulebook, x: Any, order: Any, axis: int) -> Any:
    value, places, level = _indices(book, x, order)
    return book.raw(book.xp.ordered(value, places, axis if level is None else axis % len(x.shape) + 1), level)


@batched
def ordered_back(book: Rulebook, x: Any, order: Any, axis: int) -> Any:
    value, places, level = _indices(book, x, order)
    return book.raw(book.xp.ordered_back(value, places, axis if level is None else axis % len(x.shape) + 1), level)
