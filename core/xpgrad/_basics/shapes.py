"""Arithmetic on shapes and axes, with the errors that users see."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape to which `shapes` broadcast together (Array API 2025.12, `broadcast_shapes`).

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
                msg = f"shapes {', '.join(str(tuple(s)) for s in shapes)} do not broadcast: axis {i - len(out)} has {out[i]} and {n}"
                raise ValueError(msg)
            out[i] = n if out[i] == 1 else out[i]
    return tuple(out)


def shape_tuple(shape: Any, name: str = "shape") -> tuple[int, ...]:
    """A shape as a tuple of ints from an int or a sequence (lists are welcome).

    Raises
    ------
    TypeError, ValueError
        If it is not a shape.
    """
    try:
        shape = (shape.__index__(),)
    except (AttributeError, TypeError):
        try:
            shape = tuple(n.__index__() for n in shape)
        except (AttributeError, TypeError):
            msg = f"`{name}` must be an int or a sequence of ints, but got {shape!r}"
            raise TypeError(msg) from None
    if any(n < 0 for n in shape):
        msg = f"`{name}` must not be negative, but got {shape}"
        raise ValueError(msg)
    return shape


Axis = int | tuple[int, ...] | None


def normalize_axis(axis: Any, ndim: int, name: str) -> int:
    """One axis as a number in ``range(ndim)``.

    Raises
    ------
    TypeError
        If it is not an integer.
    IndexError
        If it is out of range.
    """
    try:
        number: int = axis.__index__()
    except (AttributeError, TypeError):
        msg = f"{name}: `axis` must be an int, but got {axis!r}"
        raise TypeError(msg) from None
    if not -ndim <= number < ndim:
        msg = f"{name}: axis {number} is out of range for a Tensor with {ndim} axes; use {-ndim} to {ndim - 1}"
        raise IndexError(msg)
    return number % ndim


def normalize_axes(axis: Any, ndim: int, name: str) -> tuple[int, ...] | None:
    """Axes as a tuple of different numbers in ``range(ndim)``; None stays None (all).

    Raises
    ------
    TypeError, IndexError, ValueError
        If they are not integers, are out of range, or occur twice.
    """
    if axis is None:
        return None
    if axis.__class__ is int:
        return (normalize_axis(axis, ndim, name),)
    axes = tuple(normalize_axis(a, ndim, name) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(set(axes)) != len(axes):
        msg = f"{name}: `axis` names an axis twice: {axis!r}"
        raise ValueError(msg)
    return axes


def row_major_strides(shape: tuple[int, ...]) -> list[int]:
    """Row-major, in elements."""
    out = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        out[i] = out[i + 1] * shape[i + 1]
    return out
