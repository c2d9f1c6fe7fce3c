"""Classify, check and normalise the keys of `x[key]`."""

from __future__ import annotations

from typing import Any

BASIC_PARTS = frozenset((int, slice, type(None), type(Ellipsis)))


def basic_key(key: Any) -> bool:
    """Return whether `key` consists of integers, slices, ellipsis and newaxis only."""
    if key.__class__ is tuple:
        for k in key:  # noqa: SIM110 (all() with a generator costs three times as much)
            if k.__class__ not in BASIC_PARTS:
                return False
        return True
    return key.__class__ in BASIC_PARTS


def out_of_range(index: int, n: int, axis: int) -> IndexError:
    """Return the error for an index that is out of range on an axis of length `n`.

    Parameters
    ----------
    index : int
        The given index.
    n : int
        The length of the axis.
    axis : int
        The number of the axis.

    Returns
    -------
    IndexError
        The error to raise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> error = xp.backend.out_of_range(3, 2, 0)
    >>> type(error).__name__, str(error)
    ('IndexError', 'index 3 is out of range for axis 0 of length 2: indices are -2 to 1')
    """
    what = f"indices are {-n} to {n - 1}" if n else "it has none"
    return IndexError(f"index {index} is out of range for axis {axis} of length {n}: {what}")


def too_many_indices_error(shape: tuple[int, ...], used: int) -> IndexError:
    """Return the error for a key that indexes more axes than the array has."""
    return IndexError(f"too many indices: the array has shape {tuple(shape)}, but {used} of its axes are indexed")


def check_ellipsis(parts: tuple[Any, ...]) -> None:
    """Raise IndexError if the parts of a key contain more than one ellipsis."""
    if sum(p is Ellipsis for p in parts) > 1:
        msg = "an index holds at most one ellipsis (`...`), but this one has more; write `:` for each axis in place of all but one"
        raise IndexError(msg)


def zero_step_error(key: Any) -> ValueError | None:
    """Return the error for a key that contains a slice with a step of 0; None if there is no such slice."""
    for part in key if isinstance(key, tuple) else (key,):
        if not isinstance(part, slice):
            continue
        try:
            part.indices(0)
        except ValueError:
            return ValueError(f"the step of a slice must not be 0, but the index has {part!r:.80}; leave it out for a step of 1")
        except TypeError:  # a bound that is not an integer raises another error elsewhere
            continue
    return None


def full_key(key: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return a basic key as the standard requires it: with an entry for every axis, and slices within bounds.

    Raises
    ------
    IndexError
        If an integer is out of range, or there are too many indices, or two ellipses.
    ValueError
        If a slice has a step of 0.
    """
    parts = key if isinstance(key, tuple) else (key,)
    rest = len(shape) - sum(p is not None and p is not Ellipsis for p in parts)
    if rest < 0:
        raise too_many_indices_error(shape, len(shape) - rest)
    check_ellipsis(parts)
    out: list[Any] = []
    axis = 0
    part: Any
    for part in parts if any(p is Ellipsis for p in parts) else (*parts, Ellipsis):
        if part is Ellipsis:
            out.append(...)
            axis += rest
            continue
        if part is None:
            out.append(None)
            continue
        n = shape[axis]
        if isinstance(part, slice):
            try:
                start, stop, step = part.indices(n)
            except ValueError as exc:
                raise zero_step_error(part) or exc from exc
            empty = not range(start, stop, step)
            part = slice(0, 0) if empty else slice(start, None if stop < 0 else stop, step)
        elif part < -n or part >= n:  # NB: False if the length is unknown (nan)
            raise out_of_range(part, n, axis)
        out.append(part)
        axis += 1
    return tuple(out)


def has_negative_step(key: Any) -> bool:
    """Return whether a basic key has a slice with a negative step."""
    if key.__class__ is int:
        return False
    for part in key if key.__class__ is tuple else (key,):  # noqa: SIM110 (all() with a generator costs three times as much)
        if part.__class__ is slice and part.step is not None and part.step < 0:
            return True
    return False


def index_arrays(key: Any) -> list[Any]:
    """Return the parts of a prepared key that are arrays: integers and masks."""
    parts = key if isinstance(key, tuple) else (key,)
    return [p for p in parts if p is not None and p is not Ellipsis and not isinstance(p, (int, slice))]


def is_basic(key: Any) -> bool:
    """Return whether a key has no arrays, so that it selects a view."""
    parts = key if isinstance(key, tuple) else (key,)
    return all(p is None or p is Ellipsis or (isinstance(p, (int, slice)) and not isinstance(p, bool)) for p in parts)
