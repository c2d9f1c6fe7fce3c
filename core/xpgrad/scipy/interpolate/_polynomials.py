"""Piecewise polynomials of one variable, and the search for the piece of a query."""

from __future__ import annotations

import math
from typing import Any

from xpgrad._basics.arguments import as_int
from xpgrad._basics.shapes import normalize_axis
from xpgrad._rows.namespace import operations as xp
from xpgrad._tensor.tensor import Tensor
from xpgrad.scipy._operands import arrays_of
from xpgrad.scipy.interpolate._arguments import Extrapolate, as_column, as_queries, check_extrapolate, check_knots, move_inside


class PPoly:
    """A piecewise polynomial (`scipy.interpolate.PPoly`).

    Parameters
    ----------
    c : Tensor, shape (k, m, ...)
        Coefficients of the m pieces, highest power first, in powers of the distance to the left end of the piece. Differentiable.
    x : Tensor, shape (m + 1,)
        Ends of the pieces (the knots), strictly increasing. Differentiable.
    extrapolate : bool or "periodic", optional
        True (the default) continues the outer pieces outside the knots, False gives nan there, and "periodic" repeats the period.
    axis : int
        Position of the axis of the pieces among the axes of `c` after the first. Results have the axes of the queries there.

    Attributes
    ----------
    c, x, axis, extrapolate
        The arguments; the pieces are the second axis of `c`.

    Raises
    ------
    TypeError
        An argument has a wrong type.
    ValueError
        The shapes do not fit, or the knots are not strictly increasing.

    Examples
    --------
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
        x = check_knots(title, xp.real(x) if c.dtype.is_complex else x, 2)
        if c.ndim < 2:
            msg = f"{title}: `c` must have at least two axes, but got shape {c.shape}"
            raise ValueError(msg)
        place = normalize_axis(axis, c.ndim - 1, title)
        if place:
            c = xp.moveaxis(c, place + 1, 1)
        if not c.shape[0] or c.shape[1] != x.shape[0] - 1:
            msg = f"{title}: `c` must have the shape (k, m, ...) for `x` of shape (m + 1,), but their shapes are {c.shape} and {x.shape}"
            raise ValueError(msg)
        self._set(c, x, True if extrapolate is None else check_extrapolate(title, extrapolate), place)

    @classmethod
    def _title(cls) -> str:
        """Return the name of the class for error messages."""
        return f"scipy.interpolate.{cls.__name__}"

    def _set(self, c: Any, x: Any, extrapolate: bool | str, axis: int) -> None:
        """Assign the attributes without checks."""
        self.c, self.x, self.axis, self.extrapolate = c, x, axis, extrapolate

    @staticmethod
    def _make(c: Any, x: Any, extrapolate: bool | str, axis: int) -> PPoly:
        """Make a piecewise polynomial without checks."""
        out = PPoly.__new__(PPoly)
        out._set(c, x, extrapolate, axis)
        return out

    def __call__(self, x: Any, nu: int = 0, extrapolate: Extrapolate = None) -> Tensor:
        """Return the values, or those of a derivative.

        Parameters
        ----------
        x : Tensor or number
            Queries, of any shape; real. Differentiable.
        nu : int
            Order of the derivative; 0 returns values.
        extrapolate : bool or "periodic", optional
            Default: that of the interpolant.

        Returns
        -------
        Tensor
            The shape of the values, with the axes of `x` in place of the axis of the knots.

        Raises
        ------
        ValueError
            `nu` is negative.
        """
        title = self._title()
        order = as_int(nu, title, "nu")
        if order < 0:
            msg = f"{title}: `nu` must not be negative, but got {order}; call `antiderivative({-order})` first"
            raise ValueError(msg)
        if order:
            return self.derivative(order)(x, 0, extrapolate)
        way = self.extrapolate if extrapolate is None else check_extrapolate(title, extrapolate)
        at = as_queries(title, x, self.x)
        flat = xp.reshape(at, (-1,))
        defined = (
            (flat >= self.x[0]) & (flat <= self.x[-1]) if way is False else xp.isfinite(flat) if way == "periodic" else ~xp.isnan(flat)
        )
        flat = move_inside(flat, ~defined, self.x)
        out = _evaluate(self.c, self.x, _wrap_queries(flat, self.x)[0] if way == "periodic" else flat)
        out = xp.where(as_column(defined, out.ndim), out, xp.zeros_like(out) + math.nan)
        out = xp.reshape(out, (*at.shape, *out.shape[1:]))
        if self.axis and at.ndim:
            return xp.moveaxis(out, tuple(range(at.ndim)), tuple(range(self.axis, self.axis + at.ndim)))
        return out

    def derivative(self, nu: int = 1) -> PPoly:
        """Return the derivative of order `nu` as a piecewise polynomial; negative orders are antiderivatives.

        Parameters
        ----------
        nu : int
            Order of the derivative; if negative, of the antiderivative.

        Returns
        -------
        PPoly

        Raises
        ------
        TypeError
            `nu` is not an integer.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy.interpolate import Akima1DInterpolator
        >>> x, y = xp.asarray([0.0, 1.0, 2.0, 3.0, 4.0]), xp.tensor([0.0, 1.0, 2.0, 3.0, 4.0], requires_grad=True)
        >>> line = Akima1DInterpolator(x, y)
        >>> line.derivative()(xp.asarray([0.5, 2.5])).detach()
        tensor([1., 1.])
        """
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
        return self._make(c, self.x, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """Return the antiderivative of order `nu` that is 0 at the first knot.

        Parameters
        ----------
        nu : int
            Order of the antiderivative; if negative, of the derivative.

        Returns
        -------
        PPoly

        Raises
        ------
        TypeError
            `nu` is not an integer.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy.interpolate import Akima1DInterpolator
        >>> x, y = xp.asarray([0.0, 1.0, 2.0, 3.0, 4.0]), xp.tensor([0.0, 1.0, 2.0, 3.0, 4.0], requires_grad=True)
        >>> line = Akima1DInterpolator(x, y)
        >>> line.antiderivative()(xp.asarray([2.0, 4.0])).detach()
        tensor([2., 8.])
        """
        order = as_int(nu, self._title(), "nu")
        if order < 0:
            return self.derivative(-order)
        c = self.c
        dx = as_column(self.x[1:] - self.x[:-1], c.ndim - 1)
        for _ in range(order):
            k = c.shape[0]
            raised = [c[i] / float(k - i) for i in range(k)]
            whole = raised[0]
            for part in raised[1:]:
                whole = whole * dx + part
            before = xp.cumulative_sum(whole * dx, axis=0)
            c = xp.stack([*raised, xp.concat([xp.zeros_like(before[:1]), before[:-1]], axis=0)])
        return self._make(c, self.x, False if self.extrapolate == "periodic" and order else self.extrapolate, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Extrapolate = None) -> Tensor:
        """Return the integral from `a` to `b`, differentiable with respect to both bounds.

        Parameters
        ----------
        a : Tensor or number, shape ()
            Lower bound. Differentiable.
        b : Tensor or number, shape ()
            Upper bound. Differentiable.
        extrapolate : bool or 'periodic', optional
            Whether to continue the outer polynomials outside the knots; False gives nan. Default: that of the interpolant.

        Returns
        -------
        Tensor
            The shape of the values without the axis of the knots.

        Raises
        ------
        ValueError
            `a` or `b` is not 0-d.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy.interpolate import Akima1DInterpolator
        >>> x, y = xp.asarray([0.0, 1.0, 2.0, 3.0, 4.0]), xp.tensor([0.0, 1.0, 2.0, 3.0, 4.0], requires_grad=True)
        >>> line = Akima1DInterpolator(x, y)
        >>> b = xp.tensor(3.0, requires_grad=True)
        >>> line.integrate(0.0, b).backward()
        >>> b.grad  # the value at the end
        tensor(3.)
        """
        title = self._title()
        way = self.extrapolate if extrapolate is None else check_extrapolate(title, extrapolate)
        ends = xp.stack([_end(title, name, v, self.x) for name, v in (("a", a), ("b", b))])
        whole = self.antiderivative()
        if way == "periodic":
            flat, turns = _wrap_queries(ends, self.x)
            values = _evaluate(whole.c, self.x, flat)
            values = values + as_column(turns, values.ndim) * _evaluate(whole.c, self.x, self.x[-1:])
        else:
            values = _evaluate(whole.c, self.x, ends)
            if way is False:
                inside = xp.all((ends >= self.x[0]) & (ends <= self.x[-1]))
                values = xp.where(inside, values, xp.zeros_like(values) + math.nan)
        return values[1] - values[0]


def _end(title: str, name: str, v: Any, like: Any) -> Any:
    """Return a bound as a 0-d Tensor, and raise ValueError if it has axes."""
    (t, _) = arrays_of(title, **{name: v, "knots": like})
    if t.ndim:
        msg = f"{title}: `{name}` must be a number or a 0-d Tensor, but got shape {t.shape}"
        raise ValueError(msg)
    return t


def _wrap_queries(x: Any, knots: Any) -> tuple[Any, Any]:
    """Return the queries moved into the period that the knots span, and by how many periods each was moved."""
    period = knots[-1] - knots[0]
    turns = xp.floor(((x - knots[0]) / period).detach())
    return x - turns * period, turns


def interval_of(knots: Any, x: Any) -> Any:
    """Return the number of the piece of each query; queries beyond the ends belong to the outer pieces."""
    return pieces_of(knots.detach()[1:-1], x, "right")


def pieces_of(borders: Any, x: Any, side: Any) -> Any:
    """Return how many of the inner knots `borders` lie before each query; `side` is that of `searchsorted`."""
    if not borders.shape[0]:
        return xp.zeros(x.shape, dtype=x.default_dtype("indexing"), device=x.device)
    return xp.searchsorted(borders, x.detach(), side=side)


def _evaluate(c: Any, knots: Any, x: Any) -> Any:
    """Return the values of a piecewise polynomial with coefficients `c` at a vector of queries, by Horner's rule."""
    i = interval_of(knots, x)
    distance = as_column(x - xp.take(knots, i, axis=0), c.ndim - 1)
    taken = xp.take(c, i, axis=1)
    out = taken[0]
    for k in range(1, c.shape[0]):
        out = out * distance + taken[k]
    # A constant does not depend on the query: with these zeros its derivative is 0, not missing.
    return out if c.shape[0] > 1 else out + xp.where(xp.isnan(distance), distance, xp.zeros_like(distance))
