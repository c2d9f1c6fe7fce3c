"""Keys of `x[key]`: which are basic, and how they are made explicit."""

from __future__ import annotations

from typing import Any

__all__ = ["is_basic"]

BASIC_PARTS = frozenset((int, slice, type(None), type(Ellipsis)))


def basic_key(key: Any) -> bool:
    """Return whether `key` consists of integers, slices, ellipsis and newaxis only."""
    if key.__class__ is tuple:
        for k in key:  # noqa: SIM110 (all() with a generator costs three times as much)
            if k.__class__ not in BASIC_PARTS:
                return False
        return True
    return key.__class__ in BASIC_PARTS


def full_key(key: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """A basic key in the form that the standard requires: it has an entry for every axis, and its slices stay within bounds.

    Raises
    ------
    IndexError
        If there are too many indices.
    """
    parts = key if isinstance(key, tuple) else (key,)
    rest = len(shape) - sum(p is not None and p is not Ellipsis for p in parts)
    if rest < 0:
        msg = f"too many indices: the array has shape {tuple(shape)}, but {len(shape) - rest} of its axes are indexed"
        raise IndexError(msg)
    out: list[Any] = []
    axis = 0
    for part in parts if any(p is Ellipsis for p in parts) else (*parts, Ellipsis):
        if part is Ellipsis:
            out.append(...)
            axis += rest
            continue
        if part is None:
            out.append(None)
            continue
        if isinstance(part, slice):
            start, stop, step = part.indices(shape[axis])
            empty = not range(start, stop, step)
            part = slice(0, 0) if empty else slice(start, None if stop < 0 else stop, step)
        out.append(part)
        axis += 1
    return tuple(out)


def backwards(key: Any) -> bool:
    """Return whether a basic key has a slice with a negative step."""
    if key.__class__ is int:
        return False
    for part in key if key.__class__ is tuple else (key,):  # noqa: SIM110 (all() with a generator costs three times as much)
        if part.__class__ is slice and part.step is not None and part.step < 0:
            return True
    return False


def is_basic(key: Any) -> bool:
    """Return whether a key has no arrays: then it picks a view."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(p is None or p is Ellipsis or (isinstance(p, (int, slice)) and not isinstance(p, bool)) for p in parts)
