"""Arithmetic on shapes and axes, with the errors that users see."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

from xpgrad._basics.arguments import as_int, is_bool, shown


class UnknownLength:
    """The base of lengths that are known only when a program runs; shapes may contain them.

    Attributes
    ----------
    backend : Backend
        The backend that makes arrays of such a length.
    """

    __slots__ = ()

    backend: Any


class UnknownShape(tuple[Any, ...]):
    """A shape with at least one `UnknownLength`, as `shape_tuple` returns it."""

    __slots__ = ()

    @property
    def backend(self) -> Any:
        """The backend that makes arrays of this shape."""
        return next(n.backend for n in self if isinstance(n, UnknownLength))


def common_shape(*shapes: Sequence[int], name: str = "") -> tuple[int, ...]:
    """Return the shape to which `shapes` broadcast; lengths may be symbolic, and `name` is the function's name for the error message.

    Raises
    ------
    ValueError
        If the shapes do not broadcast.
    """
    out: list[int] = []
    for shape in shapes:
        shape = tuple(shape)
        out[:0] = [1] * (len(shape) - len(out))
        for i, n in enumerate(shape, start=len(out) - len(shape)):
            if n not in (1, out[i]) and out[i] != 1:
                start = f"{name}: shapes" if name else "shapes"
                given = ", ".join(str(tuple(s)) for s in shapes)
                # NumPy and SciPy's tests look for "not be broadcast".
                msg = f"{start} {given} could not be broadcast together: axis {i - len(out)} has {out[i]} and {n}"
                raise ValueError(msg)
            out[i] = n if out[i] == 1 else out[i]
    return tuple(out)


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which `shapes` broadcast together (Array API 2025.12, `broadcast_shapes`).

    Parameters
    ----------
    *shapes : tuple of int
        Shapes.

    Returns
    -------
    tuple of int
        The common shape.

    Raises
    ------
    ValueError
        If the shapes do not broadcast, or have negative lengths.
    TypeError
        If one of them is not a sequence of ints.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    return common_shape(*(_lengths(shape) for shape in shapes))


def _lengths(shape: Any) -> tuple[int, ...]:
    """Check one of the user's shapes, and return it as a tuple."""
    try:
        lengths = tuple(as_int(n, "broadcast_shapes", "shape") for n in (shape if isinstance(shape, (tuple, list)) else tuple(shape)))
    except TypeError as exc:
        msg = f"broadcast_shapes: a shape must be a sequence of ints, but got {shown(shape)}"
        raise TypeError(msg) from exc
    if any(n < 0 for n in lengths):
        msg = f"broadcast_shapes: a shape must not have negative lengths, but got {lengths}"
        raise ValueError(msg)
    return lengths


#: The largest number of elements that an array of 16-byte numbers can have.
MOST_ELEMENTS = sys.maxsize // 16


def shape_tuple(shape: Any, name: str = "shape", least: int = 0) -> tuple[int, ...]:
    """Return a shape, given as an int or a sequence of ints, as a tuple of ints.

    Parameters
    ----------
    shape : object
    name : str
        The argument's name, for the message.
    least : int
        The smallest valid length.

    Raises
    ------
    TypeError, ValueError
        If it is not a shape, or has more elements than an array can have.
    """
    if shape.__class__ is tuple:
        total = 1
        for n in shape:
            if n.__class__ is not int or n < least:
                break
            total *= n or 1  # lengths are limited even if another one is 0
        else:
            if total <= MOST_ELEMENTS:
                return shape
    try:
        if isinstance(shape, str) or is_bool(shape):
            raise TypeError
        lengths: tuple[int, ...] = (_length(shape, name),) if isinstance(shape, UnknownLength) else (shape.__index__(),)
    except (AttributeError, TypeError):
        try:
            if isinstance(shape, (dict, set, frozenset)):
                raise TypeError
            given: Any = shape
            lengths = tuple(_length(n, name) for n in given)
        except TypeError as exc:
            msg = f"`{name}` must be an int or a sequence of ints, but got {shape!r:.80}"
            raise TypeError(msg) from exc
    if any(n < least for n in lengths):
        msg = f"`{name}` must not be {'negative' if least == 0 else f'less than {least}'}, but got {lengths}"
        raise ValueError(msg)
    check_fits(lengths, f"`{name}`")
    return UnknownShape(lengths) if any(isinstance(n, UnknownLength) for n in lengths) else lengths


def _length(n: Any, name: str) -> Any:
    """Return a length as an int, unless it is not known."""
    return n if n.__class__ is int or isinstance(n, UnknownLength) else as_int(n, name, name)


def check_fits(shape: tuple[int, ...], what: str) -> None:
    """Raise ValueError if no array can have this shape; `what` describes it in the message."""
    if math.prod(n or 1 for n in shape if not isinstance(n, UnknownLength)) > MOST_ELEMENTS:
        msg = f"{what} has more elements than any array can have: {shape}"
        raise ValueError(msg)


Axis = int | tuple[int, ...] | None


def normalize_axis(axis: Any, ndim: int, name: str, what: str = "axis") -> int:
    """Return one axis as a number in ``range(ndim)``.

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
    """Return axes as a tuple of distinct numbers in ``range(ndim)``; None, for all axes, stays None.

    Raises
    ------
    TypeError, IndexError, ValueError
        If an axis is not an integer, is out of range, or occurs twice.
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


def normalize_reduction_axes(axis: Any, ndim: int, name: str) -> tuple[int, ...] | None:
    """Return the axes of a reduction; as in NumPy and PyTorch, axis 0 or -1 of a 0-d array means its only element."""
    if axis.__class__ is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    if ndim or axis is None:
        return normalize_axes(axis, ndim, name)
    _check_rank_zero(axis, name)
    return None


def normalize_reduction_axis(axis: Any, ndim: int, name: str) -> int | None:
    """Return the axis of a function such as `argmax`, or None for all; a 0-d array is treated as in `normalize_reduction_axes`."""
    if ndim or axis is None:
        return None if axis is None else normalize_axis(axis, ndim, name)
    if isinstance(axis, (tuple, list)):
        normalize_axis(axis, 1, name)  # raises: a single axis is required
    _check_rank_zero(axis, name)
    return None


def _check_rank_zero(axis: Any, name: str) -> None:
    """Raise IndexError unless the axis of a 0-d array is 0 or -1, or a sequence with at most one of them."""
    try:
        normalize_axes(axis, 1, name)
    except IndexError:
        msg = f"{name}: axis {axis!r:.60} is out of range for a 0-d Tensor; use 0, -1 or None"
        raise IndexError(msg) from None


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of an array whose last axis varies fastest."""
    out = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        out[i] = out[i + 1] * shape[i + 1]
    return tuple(out)


def reshape_strides(shape: Sequence[int], strides: Sequence[int], new: Sequence[int]) -> tuple[int, ...] | None:
    """Return the strides of the same elements, in row-major order, in another shape; None if that needs a copy.

    Parameters
    ----------
    shape, strides : sequence of int
        Of an array with elements.
    new : sequence of int
        The other shape, of as many elements.

    Examples
    --------
    >>> reshape_strides((2, 3), (3, 1), (6,)), reshape_strides((2, 3), (1, 2), (6,))
    ((1,), None)
    """
    merged: list[tuple[int, int]] = []  # lengths and strides, of as few axes as possible
    for n, s in zip(shape, strides):
        if n == 1:
            continue
        if merged and merged[-1][1] == n * s:
            merged[-1] = (merged[-1][0] * n, s)
        else:
            merged.append((n, s))
    found = []
    rest, step = 1, 0  # what is left of the axis that is being divided, and its stride
    for n in reversed(new):
        if n == 1:
            found.append(0)
            continue
        if rest == 1:
            rest, step = merged.pop()
        if rest % n:
            return None
        found.append(step)
        rest, step = rest // n, step * n
    return tuple(found[::-1])
