"""`xpgrad.scipy.interpolate`: SciPy's interpolants for Tensors on every backend, differentiable in the points, the values and the queries.

Piecewise polynomials are as differentiable as they are smooth: the derivatives of each piece are taken, at a knot those of the piece to its
right. The interval in which a query lies is looked up, which has no derivative. Values may be complex; knots and queries are real.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Literal

from xpgrad._basics.arguments import as_flag, as_int, check_choice, shown
from xpgrad._basics.faces import public_names
from xpgrad._basics.shapes import common_shape, normalize_axis
from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy._operands import arrays_of, visible
from xpgrad.scipy._splines import akima_slopes, monotone_slopes, spline_slopes

__all__ = [
    "Akima1DInterpolator", "CubicHermiteSpline", "CubicSpline", "PPoly", "PchipInterpolator", "RegularGridInterpolator", "interp1d",
    "interpn",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


Extrapolate = bool | Literal["periodic"] | None


# -- arguments -----------------------------------------------------------------------------------------------------------


def _knots(title: str, x: Any, least: int, name: str = "x") -> Any:
    """Refuse what is not a vector of ascending numbers; where values cannot be looked at the knots become nan instead."""
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


def _points(title: str, x: Any, y: Any, axis: Any, least: int = 2, *, ordered: bool = True) -> tuple[Any, Any, int]:
    """The knots, the values with the axis of the knots in front, and that axis."""
    x, y = arrays_of(title, x=x, y=y)
    if y.dtype.is_complex and x.dtype.is_complex:
        x = xp.real(x)
    if not y.ndim:
        msg = f"{title}: `y` must have at least one axis, but got a 0-d Tensor"
        raise ValueError(msg)
    place = normalize_axis(axis, y.ndim, title)
    if ordered:
        x = _knots(title, x, least)
    if x.ndim != 1 or x.shape[0] < least or y.shape[place] != x.shape[0]:
        msg = f"{title}: `x` must be a vector of at least {least} numbers, one for each along axis {place} of `y`, but their shapes are {x.shape} and {y.shape}"  # noqa: E501
        raise ValueError(msg)
    return x, xp.moveaxis(y, place, 0), place


def _extrapolate(title: str, given: Any) -> bool | str:
    if isinstance(given, str):
        check_choice(given, ("periodic",), title, "extrapolate")
        return given
    return as_flag(given, title, "extrapolate")


def _queries(title: str, given: Any, like: Any) -> Any:
    """Where to evaluate, as a real Tensor beside the knots."""
    x, _ = arrays_of(title, x=given, knots=like)
    if x.dtype.is_complex:
        msg = f"{title}: `x` must be real, but got dtype {x.dtype}"
        raise TypeError(msg)
    return x


def _column(v: Any, rank: int) -> Any:
    """A vector that broadcasts along the first of `rank` axes."""
    return xp.reshape(v, (*v.shape, *(1,) * (rank - 1)))


# -- piecewise polynomials -----------------------------------------------------------------------------------------------


class PPoly:
    """A piecewise polynomial (`scipy.interpolate.PPoly`).

    Parameters
    ----------
    c : Tensor, shape (k, m, ...)
        The coefficients of each of m pieces, of the highest power first: powers of the distance to the piece's left end.
    x : Tensor, shape (m + 1,)
        The ends of the pieces, strictly increasing.
    extrapolate : bool or "periodic", optional
        Whether the first and the last piece go on beyond the ends (the default), or the value there is nan, or that of a period.
    axis : int
        Where the axis of the pieces is among those behind the first of `c`; the results have the axes of the queries there.

    Attributes
    ----------
    c, x, axis, extrapolate
        As given; of `c` the pieces are the second axis.

    Raises
    ------
    TypeError, ValueError
        For arguments that do not fit; where evaluated, for complex queries.

    >>> import xpgrad as xp
    >>> from xpgrad.scipy.interpolate import PPoly
    >>> PPoly(xp.asarray([[1.0, -1.0], [0.0, 1.0]]), xp.asarray([0.0, 1.0, 2.0]))(xp.asarray([0.25, 1.25])).tolist()
    [0.25, 0.75]
    """

    c: Tensor
    x: Tensor
    axis: int
    extrapolate: bool | str

    def __init__(self, c: Any, x: Any, extrapolate: Extrapolate = None, axis: int = 0) -> None:
        title = self._title()
        c, x = arrays_of(title, c=c, x=x)
        x = _knots(title, xp.real(x) if c.dtype.is_complex else x, 2)
        if c.ndim < 2:
            msg = f"{title}: `c` must have at least two axes, but got shape {c.shape}"
            raise ValueError(msg)
        place = normalize_axis(axis, c.ndim - 1, title)
        if place:
            c = xp.moveaxis(c, place + 1, 1)
        if not c.shape[0] or c.shape[1] != x.shape[0] - 1:
            msg = f"{title}: `c` must have the shape (k, m, ...) for `x` of shape (m + 1,), but their shapes are {c.shape} and {x.shape}"
            raise ValueError(msg)
        self._set(c, x, True if extrapolate is None else _extrapolate(title, extrapolate), place)

    @classmethod
    def _title(cls) -> str:
        return f"scipy.interpolate.{cls.__name__}"

    def _set(self, c: Any, x: Any, extrapolate: bool | str, axis: int) -> None:
        self.c, self.x, self.axis, self.extrapolate = c, x, axis, extrapolate

    @staticmethod
    def _made(c: Any, x: Any, extrapolate: bool | str, axis: int) -> PPoly:
        out = PPoly.__new__(PPoly)
        out._set(c, x, extrapolate, axis)
        return out

    def __call__(self, x: Any, nu: int = 0, extrapolate: Extrapolate = None) -> Tensor:
        """The values, or those of a derivative.

        Parameters
        ----------
        x : Tensor or number
            Where, of any shape.
        nu : int
            Which derivative.
        extrapolate : bool or "periodic", optional
            Default: the interpolant's own.

        Returns
        -------
        Tensor
            The axes of `x` are in the place of the axis of the knots.
        """
        title = self._title()
        order = as_int(nu, title, "nu")
        if order < 0:
            msg = f"{title}: `nu` must not be negative, but got {order}; call `antiderivative({-order})` first"
            raise ValueError(msg)
        if order:
            return self.derivative(order)(x, 0, extrapolate)
        way = self.extrapolate if extrapolate is None else _extrapolate(title, extrapolate)
        at = _queries(title, x, self.x)
        flat = xp.reshape(at, (-1,))
        if way == "periodic":
            flat = _wrapped(flat, self.x)[0]
        out = _evaluated(self.c, self.x, flat)
        if way is False:
            inside = (flat >= self.x[0]) & (flat <= self.x[-1])
            out = xp.where(_column(inside, out.ndim), out, xp.zeros_like(out) + math.nan)
        out = xp.reshape(out, (*at.shape, *out.shape[1:]))
        if self.axis and at.ndim:
            return xp.moveaxis(out, tuple(range(at.ndim)), tuple(range(self.axis, self.axis + at.ndim)))
        return out

    def derivative(self, nu: int = 1) -> PPoly:
        """The derivative of order `nu`, as a piecewise polynomial of lower degree; negative: an antiderivative."""
        order = as_int(nu, self._title(), "nu")
        if order < 0:
            return self.antiderivative(-order)
        c = self.c
        for _ in range(order):
            k = c.shape[0]
            if k == 1:
                c = xp.zeros_like(c)
                break
            c = xp.stack([c[i] * float(k - 1 - i) for i in range(k - 1)])
        return self._made(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """The antiderivative of order `nu` that is 0 at the first knot; of a periodic one it does not go on beyond the ends."""
        order = as_int(nu, self._title(), "nu")
        if order < 0:
            return self.derivative(-order)
        c = self.c
        dx = _column(self.x[1:] - self.x[:-1], c.ndim - 1)
        for _ in range(order):
            k = c.shape[0]
            raised = [c[i] / float(k - i) for i in range(k)]
            whole = raised[0]
            for part in raised[1:]:
                whole = whole * dx + part
            before = xp.cumulative_sum(whole * dx, axis=0)
            c = xp.stack([*raised, xp.concat([xp.zeros_like(before[:1]), before[:-1]], axis=0)])
        return self._made(c, self.x, False if self.extrapolate == "periodic" and order else self.extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Extrapolate = None) -> Tensor:
        """The integral from `a` to `b`, numbers or 0-d Tensors, in both of which it is differentiable.

        Raises
        ------
        ValueError
            If `a` or `b` has axes.
        """
        title = self._title()
        way = self.extrapolate if extrapolate is None else _extrapolate(title, extrapolate)
        ends = xp.stack([_end(title, name, v, self.x) for name, v in (("a", a), ("b", b))])
        whole = self.antiderivative()
        if way == "periodic":
            flat, turns = _wrapped(ends, self.x)
            values = _evaluated(whole.c, self.x, flat)
            values = values + _column(turns, values.ndim) * _evaluated(whole.c, self.x, self.x[-1:])
        else:
            values = _evaluated(whole.c, self.x, ends)
            if way is False:
                inside = xp.all((ends >= self.x[0]) & (ends <= self.x[-1]))
                values = xp.where(inside, values, xp.zeros_like(values) + math.nan)
        return values[1] - values[0]


def _end(title: str, name: str, v: Any, like: Any) -> Any:
    (t, _) = arrays_of(title, **{name: v, "knots": like})
    if t.ndim:
        msg = f"{title}: `{name}` must be a number or a 0-d Tensor, but got shape {t.shape}"
        raise ValueError(msg)
    return t


def _wrapped(x: Any, knots: Any) -> tuple[Any, Any]:
    """Queries moved into the period, and by how many periods."""
    period = knots[-1] - knots[0]
    turns = xp.floor(((x - knots[0]) / period).detach())
    return x - turns * period, turns


def _interval(knots: Any, x: Any) -> Any:
    """The number of the piece in which each query lies; those beyond the ends belong to the piece there."""
    return _searched(knots.detach()[1:-1], x, "right")


def _searched(borders: Any, x: Any, side: Any) -> Any:
    """How many borders lie before each query; there may be none."""
    if not borders.shape[0]:
        return xp.zeros(x.shape, dtype=x.default_dtype("indexing"), device=x.device)
    return xp.searchsorted(borders, x.detach(), side=side)


def _evaluated(c: Any, knots: Any, x: Any) -> Any:
    """The polynomials at a vector of queries, by Horner's rule."""
    i = _interval(knots, x)
    distance = _column(x - xp.take(knots, i, axis=0), c.ndim - 1)
    taken = xp.take(c, i, axis=1)
    out = taken[0]
    for k in range(1, c.shape[0]):
        out = out * distance + taken[k]
    # A constant has no derivative by the query but 0, and nowhere is a value.
    return out if c.shape[0] > 1 else out + xp.where(xp.isnan(distance), distance, xp.zeros_like(distance))


# -- cubic interpolants --------------------------------------------------------------------------------------------------


class CubicHermiteSpline(PPoly):
    """The piecewise cubic with given values and slopes at its knots (`scipy.interpolate.CubicHermiteSpline`).

    Parameters
    ----------
    x : Tensor, shape (n,)
        Strictly increasing, at least two.
    y, dydx : Tensor
        Of one shape, of length n along `axis`.
    axis : int
    extrapolate : bool or "periodic", optional
        See `PPoly`.

    Raises
    ------
    TypeError, ValueError
        For arguments that do not fit.
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Extrapolate = None) -> None:
        title = self._title()
        y, dydx = arrays_of(title, y=y, dydx=dydx)
        if y.shape != dydx.shape:
            msg = f"{title}: `y` and `dydx` must have one shape, but got {y.shape} and {dydx.shape}"
            raise ValueError(msg)
        x, y, place = _points(title, x, y, axis)
        self._cubic(x, y, xp.moveaxis(dydx, place, 0), True if extrapolate is None else _extrapolate(title, extrapolate), place)

    def _cubic(self, x: Any, y: Any, slopes: Any, extrapolate: bool | str, axis: int) -> None:
        dx = _column(x[1:] - x[:-1], y.ndim)
        slope = (y[1:] - y[:-1]) / dx
        bend = (slopes[:-1] + slopes[1:] - slope * 2.0) / dx
        self._set(xp.stack([bend / dx, (slope - slopes[:-1]) / dx - bend, slopes[:-1], y[:-1]]), x, extrapolate, axis)

    def _from_slopes(self, x: Any, y: Any, find: Any, extrapolate: bool | str, axis: int) -> None:
        """Set it up with slopes that a function finds, of the knots and of real values in columns."""
        flat = xp.reshape(y, (y.shape[0], -1))
        if y.dtype.is_complex:
            count = flat.shape[1]
            both = find(xp.concat([xp.real(flat), xp.imag(flat)], axis=1))
            slopes = both[:, :count] + both[:, count:] * 1j
        else:
            slopes = find(flat)
        self._cubic(x, y, xp.reshape(slopes, y.shape), extrapolate, axis)


_CONDITIONS: dict[str, Any] = {"clamped": (1, 0.0), "natural": (2, 0.0), "not-a-knot": "not-a-knot"}


class CubicSpline(CubicHermiteSpline):
    """The cubic spline through points, twice continuously differentiable (`scipy.interpolate.CubicSpline`).

    Parameters
    ----------
    x : Tensor, shape (n,)
        The knots: strictly increasing, at least two.
    y : Tensor
        The values, real or complex, of length n along `axis`.
    axis : int
    bc_type : str or pair
        The conditions at the ends: ``"not-a-knot"`` (two pieces at an end are one cubic), ``"natural"`` (the second derivative is 0),
        ``"clamped"`` (the first is 0), ``"periodic"``; or a pair of these, or of pairs (order, value), where the order is 1 or 2 and the
        value of the shape of `y` without `axis`.
    extrapolate : bool or "periodic", optional
        See `PPoly`; the default is ``"periodic"`` for periodic splines.

    Attributes
    ----------
    c : Tensor, shape (4, n - 1, ...)
    x : Tensor, shape (n,)

    Raises
    ------
    TypeError, ValueError
        For arguments that do not fit; for a periodic spline whose first and last values differ.

    Notes
    -----
    The slopes solve a tridiagonal system, by SciPy in O(n) where the memory is the host's, otherwise as a dense one.

    >>> import xpgrad as xp
    >>> from xpgrad.scipy.interpolate import CubicSpline
    >>> y = xp.tensor([0.0, 1.0, 8.0, 27.0], requires_grad=True)
    >>> x = xp.tensor(1.5, requires_grad=True)
    >>> out = CubicSpline(xp.asarray([0.0, 1.0, 2.0, 3.0]), y)(x)
    >>> out.backward()
    >>> round(out.item(), 6), round(x.grad.item(), 6)
    (3.375, 6.75)
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Extrapolate = None) -> None:
        title = self._title()
        x, y, place = _points(title, x, y, axis)
        left, right = self._conditions(bc_type, y)
        periodic = left == "periodic"
        if periodic and visible(y) and not bool(xp.all(xp.abs((y[0] - y[-1]).detach()) <= 1e-15 + 1e-15 * xp.abs(y[-1].detach()))):
            msg = f"{title}: for bc_type='periodic' the first and the last values of `y` must be the same"
            raise ValueError(msg)
        way = periodic or True if extrapolate is None else _extrapolate(title, extrapolate)
        if periodic and extrapolate is None:
            way = "periodic"

        def find(columns: Any) -> Any:
            return spline_slopes(x, columns, *(_in_columns(end, y) for end in (left, right)))

        self._from_slopes(x, y, find, way, place)

    def _conditions(self, given: Any, y: Any) -> tuple[Any, Any]:
        title = self._title()
        if isinstance(given, str) and given == "periodic":
            return given, given
        pair = (given, given) if isinstance(given, str) else given
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            msg = f"{title}: `bc_type` must be a name or a pair of conditions, but got {shown(given)}"
            raise ValueError(msg)
        return self._condition(pair[0], y), self._condition(pair[1], y)

    def _condition(self, given: Any, y: Any) -> Any:
        title = self._title()
        if isinstance(given, str):
            if given not in _CONDITIONS:
                names = ", ".join(map(repr, (*_CONDITIONS, "periodic")))
                msg = f"{title}: a condition of `bc_type` must be one of {names} (the last for both ends), or a pair, but got {given!r}"
                raise ValueError(msg)
            return _CONDITIONS[given]
        if not isinstance(given, (tuple, list)) or len(given) != 2 or given[0] not in (1, 2):
            msg = f"{title}: a condition of `bc_type` must be a name or (order, value), with the order 1 or 2, but got {shown(given)}"
            raise ValueError(msg)
        value, _ = arrays_of(title, bc_type=given[1], y=y)
        if value.shape != y.shape[1:]:
            msg = f"{title}: the value of a condition must have the shape of `y` without `axis`, {y.shape[1:]}, but got {value.shape}"
            raise ValueError(msg)
        if value.dtype.is_complex and not y.dtype.is_complex:
            msg = f"{title}: a complex condition needs complex values `y`"
            raise TypeError(msg)
        return int(given[0]), value


def _in_columns(condition: Any, y: Any) -> Any:
    """A condition whose value is a vector, for the columns that are solved for."""
    if isinstance(condition, str) or isinstance(condition[1], float):
        return condition
    value = xp.reshape(condition[1], (-1,))
    return condition[0], xp.concat([xp.real(value), xp.imag(value)]) if y.dtype.is_complex else value


class PchipInterpolator(CubicHermiteSpline):
    """The piecewise cubic that is as monotone as the points are (`scipy.interpolate.PchipInterpolator`).

    Parameters
    ----------
    x : Tensor, shape (n,)
        Strictly increasing, at least two.
    y : Tensor
        Real, of length n along `axis`.
    axis : int
    extrapolate : bool or "periodic", optional
        See `PPoly`.

    Raises
    ------
    TypeError, ValueError
        For arguments that do not fit.

    Notes
    -----
    Where two neighbouring differences have different signs the slope is 0, and so are its derivatives in the values.
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Extrapolate = None) -> None:
        title = self._title()
        x, y, place = _points(title, x, y, axis)
        _need_real(title, y)
        way = True if extrapolate is None else _extrapolate(title, extrapolate)
        self._from_slopes(x, y, lambda columns: monotone_slopes(x, columns), way, place)


class Akima1DInterpolator(CubicHermiteSpline):
    """Akima's piecewise cubic, whose pieces depend on the nearest points only (`scipy.interpolate.Akima1DInterpolator`).

    Parameters
    ----------
    x : Tensor, shape (n,)
        Strictly increasing, at least two.
    y : Tensor
        Real, of length n along `axis`.
    axis : int
    method : {"akima", "makima"}
        The original weights, or those that avoid overshoots.
    extrapolate : bool or "periodic", optional
        See `PPoly`; here the default is False.

    Raises
    ------
    TypeError, ValueError
        For arguments that do not fit.
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, *, method: Literal["akima", "makima"] = "akima", extrapolate: Extrapolate = None
    ) -> None:
        title = self._title()
        check_choice(method, ("akima", "makima"), title, "method")
        x, y, place = _points(title, x, y, axis)
        _need_real(title, y)
        way = False if extrapolate is None else _extrapolate(title, extrapolate)
        self._from_slopes(x, y, lambda columns: akima_slopes(x, columns, method == "makima"), way, place)


def _need_real(title: str, y: Any) -> None:
    if y.dtype.is_complex:
        msg = f"{title}: `y` must be real, but got dtype {y.dtype}; interpolate `xpgrad.real(y)` and `xpgrad.imag(y)`"
        raise TypeError(msg)


# -- one axis ------------------------------------------------------------------------------------------------------------

_KINDS = ("linear", "slinear", "nearest", "nearest-up", "previous", "next", "cubic")


class interp1d:  # noqa: N801 (SciPy's name)
    """Interpolate between points along an axis (`scipy.interpolate.interp1d`).

    Parameters
    ----------
    x : Tensor, shape (n,)
        Different numbers, in any order.
    y : Tensor
        The values, real or complex, of length n along `axis`.
    kind : {"linear", "slinear", "nearest", "nearest-up", "previous", "next", "cubic"}
        ``"nearest"`` rounds halves down and ``"nearest-up"`` up. The cubic one is `CubicSpline` with its default ends.
    axis : int
    copy
        Without effect.
    bounds_error : bool, optional
        Raise a ValueError for queries beyond the points, where they can be looked at; the default without ``fill_value="extrapolate"``.
    fill_value : number, array, a pair of them, or "extrapolate"
        The values beyond the points: below them and above, if a pair. They are constants.
    assume_sorted : bool
        The points are in ascending order.

    Raises
    ------
    NotImplementedError
        For other kinds of SciPy's.
    TypeError, ValueError
        For arguments that do not fit.

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
        x, y, place = _points(title, x, y, axis, least, ordered=False)
        if not as_flag(assume_sorted, title, "assume_sorted"):
            order = xp.argsort(x.detach())
            x, y = xp.take(x, order, axis=0), xp.take(y, order, axis=0)
        x = _knots(title, x, 1)
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
        """The values below and above, of the shape of `y` without `axis`."""
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
        """The values at queries of any shape, whose axes are in the place of the axis of the points.

        Raises
        ------
        ValueError
            For queries beyond the points, with `bounds_error`.
        """
        title = "scipy.interpolate.interp1d"
        at = _queries(title, x, self.x)
        flat = xp.reshape(at, (-1,))
        below, above = flat < self.x[0], flat > self.x[-1]
        if self.bounds_error and visible(below) and bool(xp.any(below | above)):
            msg = f"{title}: `x` has values beyond those of the points; give `bounds_error=False` and a `fill_value`, e.g. 'extrapolate'"
            raise ValueError(msg)
        out = self._between(flat)
        if self._fill is not None:
            out = xp.where(_column(below, out.ndim), self._fill[0], out)
            out = xp.where(_column(above, out.ndim), self._fill[1], out)
        out = xp.reshape(out, (*at.shape, *out.shape[1:]))
        if self.axis and at.ndim:
            return xp.moveaxis(out, tuple(range(at.ndim)), tuple(range(self.axis, self.axis + at.ndim)))
        return out

    def _between(self, flat: Any) -> Any:
        """The values, extrapolated beyond the points."""
        if self._spline is not None:
            return self._spline(flat)
        if self._kind in ("linear", "slinear"):
            return _linear(self.x, self.y, flat)
        out = xp.take(self.y, self._steps(flat), axis=0)
        missing = xp.isnan(flat)
        if self._kind == "previous":
            missing = missing | (flat < self.x[0])
        elif self._kind == "next":
            missing = missing | (flat > self.x[-1])
        # Constant between the jumps: the derivative by the query is 0, and not missing.
        out = out + _column(_nothing(flat), out.ndim)
        return xp.where(_column(missing, out.ndim), xp.zeros_like(out) + math.nan, out)

    def _steps(self, flat: Any) -> Any:
        """The number of the point whose value is taken."""
        x, at, n = self.x.detach(), flat.detach(), self.x.shape[0]
        if self._kind in ("nearest", "nearest-up"):
            return _searched(x[:-1] + (x[1:] - x[:-1]) * 0.5, at, "left" if self._kind == "nearest" else "right")
        if self._kind == "previous":
            return xp.clip(xp.searchsorted(x, at, side="right") - 1, 0, n - 1)
        return xp.clip(xp.searchsorted(x, at, side="left"), 0, n - 1)


def _nothing(flat: Any) -> Any:
    """Zeros that depend on the queries, so that a derivative is 0 instead of missing."""
    return xp.where(xp.isfinite(flat), flat, xp.zeros_like(flat)) * 0.0


def _linear(x: Any, y: Any, at: Any) -> Any:
    i = _interval(x, at)
    low, high = xp.take(x, i, axis=0), xp.take(x, i + 1, axis=0)
    y0, y1 = xp.take(y, i, axis=0), xp.take(y, i + 1, axis=0)
    return y0 + (y1 - y0) * _column((at - low) / (high - low), y.ndim)


# -- grids ---------------------------------------------------------------------------------------------------------------


class RegularGridInterpolator:
    """Interpolate values on a rectangular grid (`scipy.interpolate.RegularGridInterpolator`).

    Parameters
    ----------
    points : sequence of Tensor, shapes (m1,), ..., (mn,)
        The grid's coordinates, each strictly increasing or decreasing.
    values : Tensor, shape (m1, ..., mn, ...)
        Real or complex.
    method : {"linear", "nearest"}
    bounds_error : bool
        Raise a ValueError for queries outside of the grid, where they can be looked at.
    fill_value : number or None
        The constant value outside; None extrapolates.

    Raises
    ------
    NotImplementedError
        For other methods of SciPy's.
    TypeError, ValueError
        For arguments that do not fit.

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
            p = _knots(title, p, 2 if method == "linear" else 1, f"points[{i}]")
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
        """The values at queries.

        Parameters
        ----------
        xi : Tensor, shape (..., n), or tuple of n of them that broadcast together
        method : {"linear", "nearest"}, optional
            Default: the interpolant's own.

        Returns
        -------
        Tensor
            Of the shape of the queries (a single one is a vector of one), and the axes of the values behind those of the grid.

        Raises
        ------
        ValueError
            For queries outside of the grid, with `bounds_error`.
        """
        title = "scipy.interpolate.RegularGridInterpolator"
        method = self.method if method is None else method
        self._check(title, method)
        at, shape = self._at(title, xi)
        outside: Any = None
        for p, x in zip(self.grid, at):
            beyond = (x < p[0]) | (x > p[-1])
            outside = beyond if outside is None else outside | beyond
        if self.bounds_error and visible(outside) and bool(xp.any(outside)):
            msg = f"{title}: `xi` has points outside of the grid; give `bounds_error=False` and a `fill_value`, or None to extrapolate"
            raise ValueError(msg)
        out = self._corners(at) if method == "linear" else self._nearest(at)
        if self.fill_value is not None:
            out = xp.where(_column(outside, out.ndim), xp.zeros_like(out) + self.fill_value, out)
        if method == "nearest":
            for x in at:
                out = xp.where(_column(xp.isnan(x), out.ndim), xp.zeros_like(out) + math.nan, out)
        return xp.reshape(out, (*shape, *self.values.shape[len(self.grid) :]))

    def _at(self, title: str, xi: Any) -> tuple[list[Any], tuple[int, ...]]:
        """The coordinates of the queries, a vector for each axis of the grid, and the shape of the queries."""
        count = len(self.grid)
        if isinstance(xi, tuple) and len(xi) == count and not all(isinstance(v, (int, float)) for v in xi):
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
        """Values at places of the grid."""
        count = len(self.grid)
        lengths = self.values.shape[:count]
        index: Any = None
        for n, i in zip(lengths, places):
            index = i if index is None else index * n + i
        return xp.take(xp.reshape(self.values, (math.prod(lengths), *self.values.shape[count:])), index, axis=0)

    def _corners(self, at: list[Any]) -> Any:
        """The mean of the corners of the cell, weighted by the opposite parts of it."""
        rank = self.values.ndim - len(self.grid) + 1
        sides = []
        for p, x in zip(self.grid, at):
            i = _interval(p, x)
            low, high = xp.take(p, i, axis=0), xp.take(p, i + 1, axis=0)
            part = (x - low) / (high - low)
            sides.append(((i, 1.0 - part), (i + 1, part)))
        total: Any = None
        for corner in itertools.product(*sides):
            weight: Any = None
            for _, w in corner:
                weight = w if weight is None else weight * w
            term = self._flat([i for i, _ in corner]) * _column(weight, rank)
            total = term if total is None else total + term
        return total

    def _nearest(self, at: list[Any]) -> Any:
        places = []
        for p, x in zip(self.grid, at):
            places.append(_searched((p[:-1] + (p[1:] - p[:-1]) * 0.5).detach(), x, "left"))
        out = self._flat(places)
        nothing: Any = None
        for x in at:
            nothing = _nothing(x) if nothing is None else nothing + _nothing(x)
        return out + _column(nothing, out.ndim)


def _ascending(p: Any, values: Any, axis: int) -> tuple[Any, Any]:
    """The coordinates along an axis, and the values there, in ascending order; they may have been in descending order."""
    falls = (p[0] > p[-1]).detach()
    if not visible(falls):
        return xp.where(falls, xp.flip(p), p), xp.where(falls, xp.flip(values, axis=axis), values)
    return (xp.flip(p), xp.flip(values, axis=axis)) if bool(falls) else (p, values)


def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: float | None = math.nan
) -> Tensor:
    """Interpolate values on a rectangular grid at queries (`scipy.interpolate.interpn`); see `RegularGridInterpolator`."""
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)
