"""Cubic interpolants, which differ in their slopes at the knots: splines, monotone ones and Akima's."""

from __future__ import annotations

from typing import Any, Literal

from xpgrad._basics.arguments import check_choice, shown
from xpgrad._rows.namespace import operations as xp
from xpgrad.scipy._operands import arrays_of, visible
from xpgrad.scipy._splines import akima_slopes, monotone_slopes, spline_slopes
from xpgrad.scipy.interpolate._arguments import Extrapolate, as_column, check_extrapolate, check_points
from xpgrad.scipy.interpolate._polynomials import PPoly


class CubicHermiteSpline(PPoly):
    """The piecewise cubic with given values and slopes at its knots (`scipy.interpolate.CubicHermiteSpline`).

    Parameters
    ----------
    x : Tensor, shape (n,)
        Knots, strictly increasing, at least two. Differentiable.
    y, dydx : Tensor
        Values and slopes at the knots, real or complex, of equal shapes with length n along `axis`. Differentiable.
    axis : int
        Axis of `y` along which the knots lie.
    extrapolate : bool or "periodic", optional
        See `PPoly`.

    Raises
    ------
    TypeError
        An argument has a wrong type.
    ValueError
        The shapes do not fit, the knots are not strictly increasing, or an option is invalid.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.interpolate import CubicHermiteSpline
    >>> dydx = xp.tensor([0.0, 2.0], requires_grad=True)
    >>> curve = CubicHermiteSpline(xp.asarray([0.0, 1.0]), xp.asarray([0.0, 1.0]), dydx)  # which is x**2
    >>> y = curve(0.5)
    >>> y.backward()
    >>> y.item(), dydx.grad
    (0.25, tensor([ 0.125, -0.125]))
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Extrapolate = None) -> None:
        title = self._title()
        y, dydx = arrays_of(title, y=y, dydx=dydx)
        if y.shape != dydx.shape:
            msg = f"{title}: `y` and `dydx` must have one shape, but got {y.shape} and {dydx.shape}"
            raise ValueError(msg)
        x, y, place = check_points(title, x, y, axis)
        self._cubic(x, y, xp.moveaxis(dydx, place, 0), True if extrapolate is None else check_extrapolate(title, extrapolate), place)

    def _cubic(self, x: Any, y: Any, slopes: Any, extrapolate: bool | str, axis: int) -> None:
        """Initialise the interpolant with the coefficients that follow from values and slopes."""
        dx = as_column(x[1:] - x[:-1], y.ndim)
        slope = (y[1:] - y[:-1]) / dx
        bend = (slopes[:-1] + slopes[1:] - slope * 2.0) / dx
        self._set(xp.stack([bend / dx, (slope - slopes[:-1]) / dx - bend, slopes[:-1], y[:-1]]), x, extrapolate, axis)

    def _from_slopes(self, x: Any, y: Any, find: Any, extrapolate: bool | str, axis: int) -> None:
        """Initialise the interpolant with the slopes at the knots, which ``find(values)`` computes for real values in columns."""
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
        Knots, strictly increasing, at least two. Differentiable.
    y : Tensor
        Values at the knots, real or complex, of length n along `axis`. Differentiable.
    axis : int
        Axis of `y` along which the knots lie.
    bc_type : str or pair
        End conditions: "not-a-knot" (the two pieces next to an end are one cubic), "natural" (the second derivative is 0), "clamped" (the
        first derivative is 0) or "periodic"; or a pair, for the two ends, of the first three or of pairs (order, value). The order of the
        derivative is 1 or 2, and the value has the shape of `y` without `axis`. Values are differentiable.
    extrapolate : bool or "periodic", optional
        See `PPoly`. Default: "periodic" for periodic splines, else True.

    Attributes
    ----------
    c : Tensor, shape (4, n - 1, ...)
        Coefficients of the pieces, highest power first.
    x : Tensor, shape (n,)
        Knots.

    Raises
    ------
    TypeError, ValueError
        The shapes do not fit, an option is invalid, or the first and last values of a periodic spline differ.

    Notes
    -----
    The slopes solve a tridiagonal system. SciPy solves it in O(n) if the memory is the host's; otherwise it is solved as a dense system.

    Examples
    --------
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
        x, y, place = check_points(title, x, y, axis)
        left, right = self._conditions(bc_type, y)
        periodic = left == "periodic"
        if periodic and visible(y) and not bool(xp.all(xp.abs((y[0] - y[-1]).detach()) <= 1e-15 + 1e-15 * xp.abs(y[-1].detach()))):
            msg = f"{title}: for bc_type='periodic' the first and the last values of `y` must be the same"
            raise ValueError(msg)
        way = periodic or True if extrapolate is None else check_extrapolate(title, extrapolate)
        if periodic and extrapolate is None:
            way = "periodic"

        def find(columns: Any) -> Any:
            return spline_slopes(x, columns, *(_in_columns(end, y) for end in (left, right)))

        self._from_slopes(x, y, find, way, place)

    def _conditions(self, given: Any, y: Any) -> tuple[Any, Any]:
        """Return the conditions at both ends from `bc_type`."""
        title = self._title()
        if isinstance(given, str) and given == "periodic":
            return given, given
        pair = (given, given) if isinstance(given, str) else given
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            msg = f"{title}: `bc_type` must be a name or a pair of conditions, but got {shown(given)}"
            raise ValueError(msg)
        return self._condition(pair[0], y), self._condition(pair[1], y)

    def _condition(self, given: Any, y: Any) -> Any:
        """Return the condition at one end as "not-a-knot" or (order, value)."""
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
    """Broadcast a vector-valued end condition to the columns of the system."""
    if isinstance(condition, str) or isinstance(condition[1], float):
        return condition
    value = xp.reshape(condition[1], (-1,))
    return condition[0], xp.concat([xp.real(value), xp.imag(value)]) if y.dtype.is_complex else value


class PchipInterpolator(CubicHermiteSpline):
    """The piecewise cubic that is monotone wherever the points are (`scipy.interpolate.PchipInterpolator`).

    Parameters
    ----------
    x : Tensor, shape (n,)
        Knots, strictly increasing, at least two. Differentiable.
    y : Tensor
        Values at the knots, real, of length n along `axis`. Differentiable.
    axis : int
        Axis of `y` along which the knots lie.
    extrapolate : bool or "periodic", optional
        See `PPoly`.

    Raises
    ------
    TypeError
        An argument has a wrong type.
    ValueError
        The shapes do not fit, the knots are not strictly increasing, or an option is invalid.

    Notes
    -----
    If two neighbouring differences have different signs, or one is 0, the slope between them is 0, and so are its derivatives with respect
    to `y`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.interpolate import PchipInterpolator
    >>> x, y = xp.asarray([0.0, 1.0, 2.0, 3.0]), xp.tensor([0.0, 0.0, 1.0, 1.0], requires_grad=True)
    >>> step = PchipInterpolator(x, y)
    >>> step(xp.asarray([0.5, 1.5, 2.5])).detach()  # no overshoot
    tensor([0. , 0.5, 1. ])
    >>> step(1.5).backward()
    >>> y.grad
    tensor([0. , 0.5, 0.5, 0. ])
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Extrapolate = None) -> None:
        title = self._title()
        x, y, place = check_points(title, x, y, axis)
        _need_real(title, y)
        way = True if extrapolate is None else check_extrapolate(title, extrapolate)
        self._from_slopes(x, y, lambda columns: monotone_slopes(x, columns), way, place)


class Akima1DInterpolator(CubicHermiteSpline):
    """Akima's piecewise cubic, whose pieces depend on the nearest points only (`scipy.interpolate.Akima1DInterpolator`).

    Parameters
    ----------
    x : Tensor, shape (n,)
        Knots, strictly increasing, at least two. Differentiable.
    y : Tensor
        Values at the knots, real, of length n along `axis`. Differentiable.
    axis : int
        Axis of `y` along which the knots lie.
    method : {"akima", "makima"}
        Use the original weights, or modified ones that reduce overshoots.
    extrapolate : bool or "periodic", optional
        See `PPoly`. Default: False.

    Raises
    ------
    TypeError
        An argument has a wrong type.
    ValueError
        The shapes do not fit, the knots are not strictly increasing, or an option is invalid.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.interpolate import Akima1DInterpolator
    >>> x, y = xp.asarray([0.0, 1.0, 2.0, 3.0, 4.0]), xp.tensor([0.0, 1.0, 2.0, 3.0, 4.0], requires_grad=True)
    >>> line = Akima1DInterpolator(x, y)
    >>> line(xp.asarray([0.5, 2.5, 5.0])).detach()  # nan outside the knots by default
    tensor([0.5, 2.5, nan])
    >>> Akima1DInterpolator(x, y, extrapolate=True)(5.0).item()
    5.0
    """

    def __init__(
        self, x: Any, y: Any, axis: int = 0, *, method: Literal["akima", "makima"] = "akima", extrapolate: Extrapolate = None
    ) -> None:
        title = self._title()
        check_choice(method, ("akima", "makima"), title, "method")
        x, y, place = check_points(title, x, y, axis)
        _need_real(title, y)
        way = False if extrapolate is None else check_extrapolate(title, extrapolate)
        self._from_slopes(x, y, lambda columns: akima_slopes(x, columns, method == "makima"), way, place)


def _need_real(title: str, y: Any) -> None:
    if y.dtype.is_complex:
        msg = f"{title}: `y` must be real, but got dtype {y.dtype}; interpolate `xpgrad.real(y)` and `xpgrad.imag(y)`"
        raise TypeError(msg)
