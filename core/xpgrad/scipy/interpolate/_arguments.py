"""Check the arguments of interpolants: ordered points, values, queries, and extrapolation."""

from __future__ import annotations

import math
from typing import Any, Literal

from xpgrad._basics.arguments import as_flag, check_choice
from xpgrad._basics.shapes import normalize_axis
from xpgrad._rows.namespace import operations as xp
from xpgrad.scipy._operands import arrays_of, visible

Extrapolate = bool | Literal["periodic"] | None


def check_knots(title: str, x: Any, least: int, name: str = "x") -> Any:
    """Return the knots; raise unless they are an ascending vector. If values cannot be read, invalid knots become NaN instead."""
    if x.ndim != 1 or x.shape[0] < least:
        msg = f"{title}: `{name}` must be a vector of at least {least} numbers, but got shape {x.shape}"
        raise ValueError(msg)
    ascending = xp.all((x[1:] - x[:-1]).detach() > 0)
    if not visible(ascending):
        return xp.where(ascending, x, xp.zeros_like(x) + math.nan)
    if not bool(ascending):
        msg = f"{title}: `{name}` must be strictly increasing, without nan; sort the points, and join those that coincide"
        raise ValueError(msg)
    return x


def check_points(title: str, x: Any, y: Any, axis: Any, least: int = 2, *, ordered: bool = True) -> tuple[Any, Any, int]:
    """Return the knots, the values with the axis of the knots in front, and that axis.

    Parameters
    ----------
    title : str
        The function, for messages.
    x, y : array-like
        Knots and values.
    axis : int
    least : int
        The smallest number of knots.
    ordered : bool
        Whether the knots must increase.
    """
    x, y = arrays_of(title, x=x, y=y)
    if y.dtype.is_complex and x.dtype.is_complex:
        x = xp.real(x)
    if not y.ndim:
        msg = f"{title}: `y` must have at least one axis, but got a 0-d Tensor"
        raise ValueError(msg)
    place = normalize_axis(axis, y.ndim, title)
    if ordered:
        x = check_knots(title, x, least)
    if x.ndim != 1 or x.shape[0] < least or y.shape[place] != x.shape[0]:
        msg = f"{title}: `x` must be a vector of at least {least} numbers, one for each along axis {place} of `y`, but their shapes are {x.shape} and {y.shape}"  # noqa: E501
        raise ValueError(msg)
    return x, xp.moveaxis(y, place, 0), place


def check_extrapolate(title: str, given: Any) -> bool | str:
    """Return the argument `extrapolate` as a bool or "periodic"."""
    if isinstance(given, str):
        check_choice(given, ("periodic",), title, "extrapolate")
        return given
    return as_flag(given, title, "extrapolate")


def as_queries(title: str, given: Any, like: Any) -> Any:
    """Convert queries to a real Tensor on the device of the knots."""
    x, _ = arrays_of(title, x=given, knots=like)
    if x.dtype.is_complex:
        msg = f"{title}: `x` must be real, but got dtype {x.dtype}"
        raise TypeError(msg)
    return x


def as_column(v: Any, rank: int) -> Any:
    """Reshape a vector so that it broadcasts along the first of `rank` axes."""
    return xp.reshape(v, (*v.shape, *(1,) * (rank - 1)))


def move_inside(x: Any, outside: Any, knots: Any) -> Any:
    """Return queries with the first knot for those outside, whose value is a constant: derivatives at infinite ones would be nan."""
    return xp.where(outside, xp.zeros_like(x) + knots[0].detach(), x)
