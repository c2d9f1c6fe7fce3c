"""Writes without assignment, at basic keys: the written block and what is around it are joined, one axis at a time.

So a write into an immutable array, and the gradient of a slice, cost a copy or two of the array.
"""

from __future__ import annotations

from typing import Any

from xpgrad._basics.keys import full_key


def write_block(xp: Any, buffer: Any, key: Any, value: Any) -> Any:
    """Return `buffer` with ``[key]`` overwritten, for a basic key, as a new array joined by `concat`.

    Each axis that the key does not cover costs one `concat`; the axes outside of it have the length of the block by then.
    """
    shape = tuple(buffer.shape)
    key = full_key(key, shape)
    slices, block, seen, flipped = _block_of(key, shape)
    if isinstance(value, (bool, int, float, complex)):
        if 0 in block:
            return buffer
        backend = xp._backend
        new = xp.full(block, value, dtype=buffer.dtype, **backend.creation_options(backend.device_of(buffer)))
        return _place(xp, new, slices, shape, buffer)
    new = xp.astype(xp.reshape(broadcast_value(xp, value, seen), block), buffer.dtype, copy=False)
    if 0 in block:
        return buffer
    if flipped:
        new = xp.flip(new, axis=flipped)
    if block == shape:  # the value may share its memory with an array of the user's
        return xp.asarray(new, copy=True)
    return _place(xp, new, slices, shape, buffer)


def pad_block(xp: Any, g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of `shape` with `g`, of the shape of ``[key]``, at a basic key, as a new array joined by `concat`."""
    slices, block, _, flipped = _block_of(full_key(key, shape), shape)
    if 0 in block:
        return xp.zeros_near(g, shape)
    new = xp.reshape(g, block)
    if flipped:
        new = xp.flip(new, axis=flipped)
    return xp.asarray(new, copy=True) if block == shape else _place(xp, new, slices, shape, None)


def _block_of(key: tuple[Any, ...], shape: tuple[int, ...]) -> tuple[list[range], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return what an explicit basic key selects.

    Returns
    -------
    (list of range, tuple of int, tuple of int, tuple of int)
        The places along each axis in ascending order, their numbers, the shape of ``x[key]``, and the axes along which it is reversed.
    """
    places: list[range] = []
    seen: list[int] = []
    flipped: list[int] = []
    for part in key:
        if part is None:
            seen.append(1)
        elif part is Ellipsis:
            rest = len(shape) - sum(p is not None and p is not Ellipsis for p in key)
            for n in shape[len(places) : len(places) + rest]:
                places.append(range(n))
                seen.append(n)
        elif isinstance(part, slice):
            along = range(*part.indices(shape[len(places)]))
            seen.append(len(along))
            if along.step < 0:
                flipped.append(len(places))
                along = along[::-1]
            places.append(along)
        else:
            start = part % shape[len(places)]
            places.append(range(start, start + 1))
    return places, tuple(map(len, places)), tuple(seen), tuple(flipped)


def broadcast_value(xp: Any, value: Any, shape: tuple[int, ...]) -> Any:
    """Return a value to write in a shape. As in NumPy and PyTorch, surplus leading axes of length 1 are dropped."""
    extra = max(len(value.shape) - len(shape), 0)
    if extra and all(n == 1 for n in value.shape[:extra]):
        value = xp.reshape(value, tuple(value.shape)[extra:])
    return value if tuple(value.shape) == shape else xp.broadcast_to(value, shape)


def _place(xp: Any, new: Any, places: list[range], shape: tuple[int, ...], base: Any) -> Any:
    """Return an array of `shape` that holds `new` at `places`, and around it `base`, or zeros if that is None."""
    part: list[range] = [range(n) for n in shape]  # of the base, in which `new` is placed along one axis at a time
    order = sorted((k for k, n in enumerate(shape) if len(places[k]) < n), key=lambda k: len(places[k]) / shape[k])
    around: list[tuple[int, list[range]]] = []
    for k in order:  # the axis of which the key leaves most is joined last, so that the joins before it are small
        around.append((k, list(part)))
        part[k] = places[k]
    for k, outer in reversed(around):
        new = _join_along(xp, new, k, places[k], outer, base)
    return new


def _join_along(xp: Any, new: Any, k: int, along: range, outer: list[range], base: Any) -> Any:
    """Return the part `outer` of `base` (or zeros) with `new` at the places `along` of axis `k`."""

    def rest(first: int, stop: int) -> Any:
        """Return the places from `first` to `stop` of the axis, out of the base."""
        if base is None:
            return xp.zeros_near(new, tuple(stop - first if i == k else len(r) for i, r in enumerate(outer)))
        key = tuple(slice(first, stop) if i == k else slice(r.start, r.stop, r.step) for i, r in enumerate(outer))
        return xp.index_basic(base, key)

    def piece(first: int, stop: int) -> Any:
        return xp.index_basic(new, tuple(slice(first, stop) if i == k else slice(len(r)) for i, r in enumerate(outer)))

    n, step, count = len(outer[k]), along.step, len(along)
    pieces: list[Any] = []
    if along.start:
        pieces.append(rest(0, along.start))
    if step == 1 or count == 1:
        pieces.append(new)
        end = along[-1] + 1
    else:  # groups of a new place and the step - 1 old ones behind it
        groups = count if along.start + count * step <= n else count - 1
        end = along.start + groups * step
        shape = tuple(new.shape)
        split = (*shape[:k], groups, step, *shape[k + 1 :])
        old = xp.index_basic(xp.reshape(rest(along.start, end), split), (*(slice(m) for m in split[: k + 1]), slice(1, step), ...))
        first = xp.reshape(new if groups == count else piece(0, groups), (*split[: k + 1], 1, *split[k + 2 :]))
        whole = (*shape[:k], groups * step, *shape[k + 1 :])
        pieces.append(xp.reshape(xp.concat([first, old], axis=k + 1), whole))
        if groups < count:
            pieces.append(piece(groups, count))
            end += 1
    if end < n:
        pieces.append(rest(end, n))
    return pieces[0] if len(pieces) == 1 else xp.concat(pieces, axis=k)
