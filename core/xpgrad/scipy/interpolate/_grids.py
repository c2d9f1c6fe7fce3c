"""Interpolation on rectangular grids with any number of axes."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

from xpgrad._basics.arguments import as_flag, shown
from xpgrad._basics.shapes import common_shape
from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy._operands import arrays_of, visible
from xpgrad.scipy.interpolate._arguments import as_column, check_knots, move_inside
from xpgrad.scipy.interpolate._one_axis import zeros_from
from xpgrad.scipy.interpolate._polynomials import interval_of, pieces_of


class RegularGridInterpolator:
    """An interpolant of values on a rectangular grid (`scipy.interpolate.RegularGridInterpolator`).

    Parameters
    ----------
    points : sequence of Tensor, shapes (m1,), ..., (mn,)
        Coordinates of the grid along each axis, strictly increasing or decreasing. Differentiable.
    values : Tensor, shape (m1, ..., mn, ...)
        Values on the grid, real or complex. Differentiable.
    method : {"linear", "nearest"}
        Interpolation method.
    bounds_error : bool
        Whether queries outside the grid raise ValueError, if their values can be read.
    fill_value : number or None
        Value outside the grid; None extrapolates.

    Raises
    ------
    NotImplementedError
        `method` is one of SciPy's other methods.
    TypeError
        An argument has a wrong type.
    ValueError
        The shapes do not fit, or coordinates are not strictly monotonic.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.interpolate import RegularGridInterpolator
    >>> grid = RegularGridInterpolator((xp.asarray([0.0, 1.0]), xp.asarray([0.0, 2.0])), xp.asarray([[0.0, 2.0], [4.0, 6.0]]))
    >>> at = xp.tensor([0.5, 1.0], requires_grad=True)
    >>> out = grid(at)
    >>> out.sum().backward()
    >>> out.tolist(), at.grad.tolist()
    ([3.0], [4.0, 1.0])
    """

    def __init__(
        self, points: Any, values: Any, method: str = "linear", bounds_error: bool = True, fill_value: float | None = math.nan
    ) -> None:
        title = "scipy.interpolate.RegularGridInterpolator"
        self._check(title, method)
        if not isinstance(points, Sequence) or not points:
            msg = f"{title}: `points` must be a sequence of vectors, one for each axis of the grid, but got {shown(points)}"
            raise TypeError(msg)
        *axes, values = arrays_of(title, **{f"points[{i}]": p for i, p in enumerate(points)}, values=values)
        if values.ndim < len(axes):
            msg = f"{title}: `values` of shape {values.shape} have fewer axes than there are `points`, {len(axes)}"
            raise ValueError(msg)
        self.grid: list[Tensor] = []
        for i, p in enumerate(axes):
            p = xp.real(p) if p.dtype.is_complex else p
            if p.ndim == 1 and p.shape[0] > 1:
                p, values = _ascending(p, values, i)
            p = check_knots(title, p, 2 if method == "linear" else 1, f"points[{i}]")
            if p.shape[0] != values.shape[i]:
                msg = f"{title}: there are {p.shape[0]} points along axis {i}, but `values` have shape {values.shape}"
                raise ValueError(msg)
            self.grid.append(p)
        self.values: Tensor = values
        self.method: str = method
        self.bounds_error: bool = as_flag(bounds_error, title, "bounds_error")
        self.fill_value: float | None = fill_value

    @staticmethod
    def _check(title: str, method: Any) -> None:
        if method not in ("linear", "nearest"):
            msg = f"{title}: `method` must be 'linear' or 'nearest', but got {shown(method)}"
            raise NotImplementedError(msg)

    def __call__(self, xi: Any, method: str | None = None) -> Tensor:
        """Return the values at queries.

        Parameters
        ----------
        xi : Tensor, shape (..., n), or tuple of n Tensors or numbers that broadcast
            Coordinates of the queries. Differentiable.
        method : {"linear", "nearest"}, optional
            Interpolation method. Default: that of the interpolant.

        Returns
        -------
        Tensor
            The shape of the queries, followed by the axes of `values` after those of the grid. A single query counts as shape (1,), but
            as shape () if it is a tuple of numbers.

        Raises
        ------
        ValueError
            A query is outside the grid, and `bounds_error` is True.
        """
        title = "scipy.interpolate.RegularGridInterpolator"
        method = self.method if method is None else method
        self._check(title, method)
        at, shape = self._at(title, xi)
        outside = functools.reduce(operator.or_, [(x < p[0]) | (x > p[-1]) for p, x in zip(self.grid, at)])
        if self.bounds_error and visible(outside) and bool(xp.any(outside)):
            msg = f"{title}: `xi` has points outside of the grid; give `bounds_error=False` and a `fill_value`, or None to extrapolate"
            raise ValueError(msg)
        missing = functools.reduce(operator.or_, map(xp.isnan, at))
        hidden = missing if self.fill_value is None else missing | outside
        at = [move_inside(x, hidden, p) for p, x in zip(self.grid, at)]
        out = self._corners(at) if method == "linear" else self._nearest(at)
        if self.fill_value is not None:
            out = xp.where(as_column(outside, out.ndim), xp.zeros_like(out) + self.fill_value, out)
        out = xp.where(as_column(missing, out.ndim), xp.zeros_like(out) + math.nan, out)
        return xp.reshape(out, (*shape, *self.values.shape[len(self.grid) :]))

    def _at(self, title: str, xi: Any) -> tuple[list[Any], tuple[int, ...]]:
        """Return the coordinates of the queries, one vector per axis of the grid, and the shape of the queries."""
        count = len(self.grid)
        if isinstance(xi, tuple) and len(xi) == count:
            parts = arrays_of(title, **{f"xi[{i}]": v for i, v in enumerate(xi)}, points=self.grid[0])[:-1]
            shape = common_shape(*(p.shape for p in parts), name=title)
            return [xp.reshape(xp.broadcast_to(p, shape), (-1,)) for p in parts], shape
        x = arrays_of(title, xi=xi, points=self.grid[0])[0]
        if not x.ndim or x.shape[-1] != count or x.dtype.is_complex:
            msg = f"{title}: `xi` must be real, with the length {count} along its last axis, but got {x.dtype} of shape {x.shape}"
            raise ValueError(msg)
        flat = xp.reshape(x, (-1, count))
        return [flat[:, i] for i in range(count)], x.shape[:-1] or (1,)

    def _flat(self, places: Sequence[Any]) -> Any:
        """Return the values at positions of the grid."""
        count = len(self.grid)
        lengths = self.values.shape[:count]
        index: Any = None
        for n, i in zip(lengths, places):
            index = i if index is None else index * n + i
        return xp.take(xp.reshape(self.values, (math.prod(lengths), *self.values.shape[count:])), index, axis=0)

    def _corners(self, at: list[Any]) -> Any:
        """Return the multilinear interpolant: the mean of a cell's corners, weighted by the volumes of the opposite parts of the cell."""
        rank = self.values.ndim - len(self.grid) + 1
        sides = []
        for p, x in zip(self.grid, at):
            i = interval_of(p, x)
            low, high = xp.take(p, i, axis=0), xp.take(p, i + 1, axis=0)
            part = (x - low) / (high - low)
            sides.append(((i, 1.0 - part), (i + 1, part)))
        total: Any = None
        for corner in itertools.product(*sides):
            weight: Any = None
            for _, w in corner:
                weight = w if weight is None else weight * w
            term = self._flat([i for i, _ in corner]) * as_column(weight, rank)
            total = term if total is None else total + term
        return total

    def _nearest(self, at: list[Any]) -> Any:
        """Return the values at the nearest points of the grid."""
        places = []
        for p, x in zip(self.grid, at):
            places.append(pieces_of((p[:-1] + (p[1:] - p[:-1]) * 0.5).detach(), x, "left"))
        out = self._flat(places)
        nothing: Any = None
        for x in at:
            nothing = zeros_from(x) if nothing is None else nothing + zeros_from(x)
        return out + as_column(nothing, out.ndim)


def _ascending(p: Any, values: Any, axis: int) -> tuple[Any, Any]:
    """Return the coordinates along an axis and the values, both in ascending order of the coordinates."""
    falls = (p[0] > p[-1]).detach()
    if not visible(falls):
        return xp.where(falls, xp.flip(p), p), xp.where(falls, xp.flip(values, axis=axis), values)
    return (xp.flip(p), xp.flip(values, axis=axis)) if bool(falls) else (p, values)


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: float | None = math.nan
) -> Tensor:
    """Interpolate values given on a rectangular grid at query points (`scipy.interpolate.interpn`).

    Parameters
    ----------
    points : sequence of Tensor, shapes (m1,), ..., (mn,)
        Coordinates of the grid along each axis, strictly increasing or decreasing. Differentiable.
    values : Tensor, shape (m1, ..., mn, ...)
        Values on the grid, real or complex. Differentiable.
    xi : Tensor, shape (..., n), or tuple of n Tensors or numbers that broadcast
        Coordinates of the queries. Differentiable.
    method : {'linear', 'nearest'}
        Weighted mean of the corners of the cell, or the value at the nearest point, whose derivative with respect to `xi` is 0.
    bounds_error : bool
        Whether queries outside the grid raise ValueError, if their values can be read.
    fill_value : number or None
        Value outside the grid; None extrapolates.

    Returns
    -------
    Tensor
        The shape of the queries, followed by the axes of `values` after those of the grid. A single query counts as shape (1,).

    Raises
    ------
    NotImplementedError
        `method` is another one of SciPy's.
    TypeError
        An argument is not an array of numbers.
    ValueError
        The shapes do not fit, coordinates are not strictly monotonic, or a query is outside the grid and `bounds_error` is True.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.interpolate import interpn
    >>> values = xp.tensor([[0.0, 2.0], [4.0, 6.0]], requires_grad=True)
    >>> at = xp.tensor([0.25, 1.0], requires_grad=True)
    >>> y = interpn((xp.asarray([0.0, 1.0]), xp.asarray([0.0, 2.0])), values, at)
    >>> y.sum().backward()
    >>> y.detach(), at.grad
    (tensor([2.]), tensor([4., 1.]))
    >>> values.grad  # the weights of the corners
    tensor([[0.375, 0.375],
            [0.125, 0.125]])
    """
    grid = RegularGridInterpolator(points, values, method, bounds_error, fill_value)
    out = grid(xi)
    return out if out.ndim > grid.values.ndim - len(grid.grid) else xp.reshape(out, (1, *out.shape))
