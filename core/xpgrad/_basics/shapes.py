"""Arithmetic on shapes and axes, with the errors that users see."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from xpgrad._basics.arguments import as_int, shown


def common_shape(*shapes: Sequence[int], name: str = "") -> tuple[int, ...]:
    """The shape to which the shapes of arrays broadcast together; lengths may be a library's symbols. `name` is the function's.

    Raises
    ------
    ValueError
        If they do not.
    """
    out: list[int] = []
    for shape in shapes:
        shape = tuple(shape)
        out[:0] = [1] * (len(shape) - len(out))
        for i, n in enumerate(shape, start=len(out) - len(shape)):
            if n not in (1, out[i]) and out[i] != 1:
                start = f"{name}: " if name else ""
                msg = f"{start}shapes {', '.join(str(tuple(s)) for s in shapes)} do not broadcast: axis {i - len(out)} has {out[i]} and {n}"
                raise ValueError(msg)
            out[i] = n if out[i] == 1 else out[i]
    return tuple(out)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape to which `shapes` broadcast together (Array API 2025.12, `broadcast_shapes`).

    Parameters
    ----------
    *shapes : tuple of int
        Shapes.

    Returns
    -------
    tuple of int
        What they broadcast to.

    Raises
    ------
    ValueError
        If they do not, or have negative lengths.
    TypeError
        If one of them is no sequence of ints.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return common_shape(*(_lengths(shape) for shape in shapes))


def _lengths(shape: Any) -> tuple[int, ...]:
    """A shape as the user wrote it."""
    try:
        lengths = tuple(as_int(n, "broadcast_shapes", "shape") for n in (shape if isinstance(shape, (tuple, list)) else tuple(shape)))
    except TypeError as exc:
        msg = f"broadcast_shapes: a shape must be a sequence of ints, but got {shown(shape)}"
        raise TypeError(msg) from exc
    if any(n < 0 for n in lengths):
        msg = f"broadcast_shapes: a shape must not have negative lengths, but got {lengths}"
        raise ValueError(msg)
    return lengths


#: Elements of the largest array, of numbers of 16 bytes.
MOST_ELEMENTS = sys.maxsize // 16


def shape_tuple(shape: Any, name: str = "shape", least: int = 0) -> tuple[int, ...]:
    """A shape as a tuple of ints from an int or a sequence (lists are welcome).

    Parameters
    ----------
    shape : object
    name : str
        The argument's name, for the message.
    least : int
        The smallest length that means something.

    Raises
    ------
    TypeError, ValueError
        If it is not a shape, or one of more elements than an array can have.
    """
    if shape.__class__ is tuple:
        total = 1
        for n in shape:
            if n.__class__ is not int or n < least:
                break
            total *= n or 1  # a length beside one of 0 has its limit, too
        else:
            if total <= MOST_ELEMENTS:
                return shape
    try:
        if isinstance(shape, (bool, str)):
            raise TypeError
        lengths: tuple[int, ...] = (shape.__index__(),)
    except (AttributeError, TypeError):
        try:
            if isinstance(shape, (dict, set, frozenset)):
                raise TypeError
            given: Any = shape
            lengths = tuple(n if n.__class__ is int else as_int(n, name, name) for n in given)
        except TypeError as exc:
            msg = f"`{name}` must be an int or a sequence of ints, but got {shape!r:.80}"
            raise TypeError(msg) from exc
    if any(n < least for n in lengths):
        msg = f"`{name}` must not be {'negative' if least == 0 else f'less than {least}'}, but got {lengths}"
        raise ValueError(msg)
    check_fits(lengths, f"`{name}`")
    return lengths


def check_fits(shape: tuple[int, ...], what: str) -> None:
    """Raise ValueError for a shape, described by `what`, that no array can have."""
    if math.prod(n or 1 for n in shape) > MOST_ELEMENTS:
        msg = f"{what} has more elements than any array can have: {shape}"
        raise ValueError(msg)


Axis = int | tuple[int, ...] | None


def normalize_axis(axis: Any, ndim: int, name: str, what: str = "axis") -> int:
    """One axis as a number in ``range(ndim)``.

    Raises
    ------
    TypeError
        If it is not an integer.
    IndexError
        If it is out of range.
    """
    number: int = axis if axis.__class__ is int else as_int(axis, name, what)
    if not -ndim <= number < ndim:
        fits = f"use {-ndim} to {ndim - 1}" if ndim else "it has none"
        msg = f"{name}: {what} {number} is out of range for a Tensor with {ndim} axes; {fits}"
        raise IndexError(msg)
    return number % ndim


def normalize_axes(axis: Any, ndim: int, name: str, what: str = "axis") -> tuple[int, ...] | None:
    """Axes as a tuple of different numbers in ``range(ndim)``; None stays None (all).

    Raises
    ------
    TypeError, IndexError, ValueError
        If they are not integers, are out of range, or occur twice.
    """
    if axis is None:
        return None
    if axis.__class__ is int:
        return (normalize_axis(axis, ndim, name, what),)
    axes = tuple(normalize_axis(a, ndim, name, what) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) != len(axes):
        msg = f"{name}: `{what}` names an axis twice: {axis!r}"
        raise ValueError(msg)
    return axes


def reduced_axes(axis: Any, ndim: int, name: str) -> tuple[int, ...] | None:
    """The axes of a reduction. As in NumPy and PyTorch, a 0-d array may be reduced along axis 0 or -1: it is its only element."""
    if axis.__class__ is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    if ndim or axis is None:
        return normalize_axes(axis, ndim, name)
    _check_rank_zero(axis, name)
    return None


def reduced_axis(axis: Any, ndim: int, name: str) -> int | None:
    """The one axis of a function such as `argmax`, or None for all; of a 0-d array as in `reduced_axes`."""
    if ndim or axis is None:
        return None if axis is None else normalize_axis(axis, ndim, name)
    if isinstance(axis, (tuple, list)):
        normalize_axis(axis, 1, name)  # which refuses it: there is one axis
    _check_rank_zero(axis, name)
    return None


def _check_rank_zero(axis: Any, name: str) -> None:
    """Raise for what is neither axis 0 nor -1, nor several axes with one of them at most: a 0-d array's one element has no other."""
    try:
        normalize_axes(axis, 1, name)
    except IndexError:
        msg = f"{name}: axis {axis!r:.60} is out of range for a 0-d Tensor; use 0, -1 or None"
        raise IndexError(msg) from None


def row_major_strides(shape: tuple[int, ...]) -> list[int]:
    """Row-major, in elements."""
    out = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        out[i] = out[i + 1] * shape[i + 1]
    return out
