"""Interpolation along one axis: linear, piecewise constant or by a spline."""

from __future__ import annotations

import math
from typing import Any

from xpgrad._basics.arguments import as_flag, shown
from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy._operands import arrays_of, visible
from xpgrad.scipy.interpolate._arguments import as_column, as_queries, check_knots, check_points, move_inside
from xpgrad.scipy.interpolate._cubic import CubicSpline
from xpgrad.scipy.interpolate._polynomials import interval_of, pieces_of

_KINDS = ("linear", "slinear", "nearest", "nearest-up", "previous", "next", "cubic")


class interp1d:  # noqa: N801 (SciPy's name)
    """An interpolant between points along an axis (`scipy.interpolate.interp1d`).

    Parameters
    ----------
    x : Tensor, shape (n,)
        Coordinates of the points, distinct, in any order. Differentiable.
    y : Tensor
        Values at the points, real or complex, of length n along `axis`. Differentiable.
    kind : {"linear", "slinear", "nearest", "nearest-up", "previous", "next", "cubic"}
        "nearest" rounds halves down and "nearest-up" rounds them up. "cubic" is `CubicSpline` with its default end conditions.
    axis : int
        Axis of `y` along which the points lie.
    copy : bool
        Accepted for compatibility; it has no effect.
    bounds_error : bool, optional
        Whether queries outside the points raise ValueError, if their values can be read. Default: True, unless `fill_value` is
        "extrapolate".
    fill_value : number, array, a pair of them, or "extrapolate"
        Values outside the points; a pair gives those below and above.
    assume_sorted : bool
        Whether the points are already in ascending order.

    Raises
    ------
    NotImplementedError
        `kind` is another one of SciPy's.
    TypeError
        An argument has a wrong type.
    ValueError
        The shapes do not fit, or the points are not distinct.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.interpolate import interp1d
    >>> x = xp.tensor([0.5, 1.5], requires_grad=True)
    >>> out = interp1d(xp.asarray([0.0, 1.0, 2.0]), xp.asarray([0.0, 2.0, 3.0]))(x)
    >>> out.sum().backward()
    >>> out.tolist(), x.grad.tolist()
    ([1.0, 2.5], [2.0, 1.0])
    """

    def __init__(
        self, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: bool | None = None,
        fill_value: Any = math.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        title = "scipy.interpolate.interp1d"
        if kind not in _KINDS:
            msg = f"{title}: `kind` must be {', '.join(map(repr, _KINDS))}, but got {shown(kind)}"
            raise NotImplementedError(msg)
        least = {"linear": 2, "slinear": 2, "cubic": 4}.get(kind, 1)
        x, y, place = check_points(title, x, y, axis, least, ordered=False)
        if not as_flag(assume_sorted, title, "assume_sorted"):
            order = xp.argsort(x.detach())
            x, y = xp.take(x, order, axis=0), xp.take(y, order, axis=0)
        x = check_knots(title, x, 1)
        beyond = isinstance(fill_value, str) and fill_value == "extrapolate"
        if beyond and bounds_error:
            msg = f"{title}: bounds_error=True and fill_value='extrapolate' exclude one another; leave one out"
            raise ValueError(msg)
        self.x: Tensor = x
        self.y: Tensor = y
        self.axis: int = place
        self._kind: str = kind
        self.bounds_error: bool = not beyond if bounds_error is None else as_flag(bounds_error, title, "bounds_error")
        self.fill_value: Any = fill_value
        self._fill: Any = None if beyond else self._pair(title, fill_value)
        self._spline: CubicSpline | None = CubicSpline(x, y) if kind == "cubic" else None

    def _pair(self, title: str, given: Any) -> Any:
        """Return the fill values below and above the points, with the shape of `y` without `axis`."""
        pair = given if isinstance(given, tuple) and len(given) == 2 else (given, given)
        found = []
        for value in pair:
            if isinstance(value, str):
                msg = f"{title}: `fill_value` must be numbers, a pair of them, or 'extrapolate', but got {value!r}"
                raise TypeError(msg)
            t, _ = arrays_of(title, fill_value=value, y=self.y)
            if t.ndim >= self.y.ndim or any(n not in (1, m) for n, m in zip(t.shape[::-1], self.y.shape[:0:-1])):
                msg = f"{title}: `fill_value` must broadcast to the shape of `y` without `axis`, {self.y.shape[1:]}, but got {t.shape}"
                raise ValueError(msg)
            found.append(t)
        return found

    def __call__(self, x: Any) -> Tensor:
        """Return the interpolated values.

        Parameters
        ----------
        x : Tensor or number
            Queries, of any shape; real. Differentiable.

        Returns
        -------
        Tensor
            The shape of `y`, with the axes of `x` in place of the axis of the points.

        Raises
        ------
        ValueError
            A query is outside the points, and `bounds_error` is True.
        """
        title = "scipy.interpolate.interp1d"
        at = as_queries(title, x, self.x)
        flat = xp.reshape(at, (-1,))
        below, above = flat < self.x[0], flat > self.x[-1]
        if self.bounds_error and visible(below) and bool(xp.any(below | above)):
            msg = f"{title}: `x` has values beyond those of the points; give `bounds_error=False` and a `fill_value`, e.g. 'extrapolate'"
            raise ValueError(msg)
        missing = xp.isnan(flat)
        out = self._interpolate(move_inside(flat, missing if self._fill is None else missing | below | above, self.x))
        out = xp.where(as_column(missing, out.ndim), xp.zeros_like(out) + math.nan, out)
        if self._fill is not None:
            out = xp.where(as_column(below, out.ndim), self._fill[0], out)
            out = xp.where(as_column(above, out.ndim), self._fill[1], out)
        out = xp.reshape(out, (*at.shape, *out.shape[1:]))
        if self.axis and at.ndim:
            return xp.moveaxis(out, tuple(range(at.ndim)), tuple(range(self.axis, self.axis + at.ndim)))
        return out

    def _interpolate(self, flat: Any) -> Any:
        """Evaluate the interpolant at a vector of queries, extrapolating outside the range of the points."""
        if self._spline is not None:
            return self._spline(flat)
        if self._kind in ("linear", "slinear"):
            return _linear(self.x, self.y, flat)
        out = xp.take(self.y, self._nearest_points(flat), axis=0)
        # The values are constant between jumps: the derivative with respect to the query is 0, not missing.
        out = out + as_column(zeros_from(flat), out.ndim)
        if self._kind not in ("previous", "next"):
            return out
        missing = flat < self.x[0] if self._kind == "previous" else flat > self.x[-1]
        return xp.where(as_column(missing, out.ndim), xp.zeros_like(out) + math.nan, out)

    def _nearest_points(self, flat: Any) -> Any:
        """Return, for a vector of queries, the numbers of the points whose values apply."""
        x, at, n = self.x.detach(), flat.detach(), self.x.shape[0]
        if self._kind in ("nearest", "nearest-up"):
            return pieces_of(x[:-1] + (x[1:] - x[:-1]) * 0.5, at, "left" if self._kind == "nearest" else "right")
        if self._kind == "previous":
            return xp.clip(xp.searchsorted(x, at, side="right") - 1, 0, n - 1)
        return xp.clip(xp.searchsorted(x, at, side="left"), 0, n - 1)


def zeros_from(flat: Any) -> Any:
    """Return zeros that depend on the queries, so that their derivative is 0 and not missing."""
    return xp.where(xp.isfinite(flat), flat, xp.zeros_like(flat)) * 0.0


def _linear(x: Any, y: Any, at: Any) -> Any:
    """Return the piecewise linear interpolant of the points (x, y) at the queries `at`."""
    i = interval_of(x, at)
    low, high = xp.take(x, i, axis=0), xp.take(x, i + 1, axis=0)
    y0, y1 = xp.take(y, i, axis=0), xp.take(y, i + 1, axis=0)
    return y0 + (y1 - y0) * as_column((at - low) / (high - low), y.ndim)
