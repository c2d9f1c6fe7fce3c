"""Integrate functions and samples: SciPy finds the panels for a function, and a quadrature rule on them is recorded.

Samples are integrated by Newton-Cotes rules, composed of other functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xpgrad._backends.contexts import keep_context
from xpgrad._basics.arguments import as_int, check_callable, shown
from xpgrad._modes import state, switches
from xpgrad._operations.lift import as_operand
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import zeros
from xpgrad.rules.elementwise import isfinite, sqrt, where
from xpgrad.rules.manipulation import concat, moveaxis, stack
from xpgrad.rules.statistical import cumulative_sum
from xpgrad.scipy._gauss import gauss_legendre
from xpgrad.scipy.integrate._problem import Failure, check_failure, report_failure, scipy_integrate

#: Gauss-Legendre points on each panel; their order is higher than that of the rule with which SciPy estimates errors.
_POINTS = gauss_legendre(21)
#: The three-point Gauss-Legendre rule on the unit interval; it makes derivatives up to the sixth exact.
_ENDS = ((0.5 - 0.15**0.5, 5 / 18), (0.5, 4 / 9), (0.5 + 0.15**0.5, 5 / 18))


def quad_vec(
    f: Callable[..., Any], a: Any, b: Any, epsabs: float = 1e-200, epsrel: float = 1e-8, norm: str = "2", limit: int = 10000, *,
    points: Sequence[float] | None = None, args: tuple[Any, ...] = (), full_output: bool = False, failure: Failure = "raise",
) -> Any:  # fmt: skip
    """Integrate a function of one number (`scipy.integrate.quad_vec`).

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns a number or a Tensor of any shape, real or complex, for a 0-d Tensor. It may close over Tensors.
    a, b : number or 0-d Tensor
        Bounds of the interval; either may be infinite. Differentiable if finite.
    epsabs, epsrel : float
        Absolute and relative tolerance of the integral.
    norm : {"2", "max"}
        Norm of the error.
    limit : int
        Maximum number of panels.
    points : sequence of float, optional
        Points at which `f` has kinks or jumps; only with finite bounds.
    args : tuple
        Further arguments of `f`.
    full_output : bool
        Whether to return `info` as well.
    failure : {"raise", "warn", "ignore"}
        What to do if the tolerance is not reached.

    Returns
    -------
    integral : Tensor
        The shape of the value of `f`.
    error : float
        SciPy's estimate of the error.
    info : object
        SciPy's report, if `full_output` is True. For infinite bounds it is about the substituted finite interval.

    Raises
    ------
    RuntimeError
        The tolerance is not reached and `failure` is "raise".
    TypeError
        An argument has a wrong type.
    ValueError
        A bound is nan, `points` are given for an infinite interval, or a bound is differentiated at which `f` is not finite.
    ImportError
        SciPy is not installed.

    Notes
    -----
    SciPy chooses the panels for the integral. Its derivatives are integrals over the same panels, by the 21-point Gauss-Legendre rule.
    If a parameter moves a jump of `f`, the derivative has a further term that this does not include: split the interval at the jump.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.integrate import quad_vec
    >>> k = xp.tensor(2.0, requires_grad=True)
    >>> value, error = quad_vec(lambda x: xp.exp(-k * x), 0.0, float("inf"))
    >>> value.backward()  # the integral is 1 / k
    >>> round(k.grad.item(), 6)
    -0.25
    """
    check_callable(f, "quad_vec", "f")
    f = keep_context(f)
    check_failure("quad_vec", failure)
    if not isinstance(args, tuple):
        msg = f"quad_vec: `args` must be a tuple of further arguments of the function, but got {shown(args)}; give `(argument,)`"
        raise TypeError(msg)
    integrate = scipy_integrate("quad_vec")
    low, high = _to_bound("a", a), _to_bound("b", b)
    like = next((x for x in (a, b) if isinstance(x, Tensor)), None)
    made: dict[str, Any] = {} if like is None else {"dtype": like.dtype, "device": like.device}
    inner, ends = _substitute(low, high)
    if points is not None and inner is not _plain:
        msg = "quad_vec: `points` are taken between finite bounds only; split the interval there"
        raise ValueError(msg)

    def value(u: float) -> Any:
        x, slope = inner(u, low, high)
        out = f(asarray(x, **made), *args)
        out = out if isinstance(out, Tensor) else as_operand("quad_vec", out) if not isinstance(out, (list, tuple)) else asarray(out)
        return out if slope == 1.0 else out * slope

    def raw(u: float) -> Any:
        with switches.no_grad():
            return value(u).detach().numpy()

    more = {} if points is None else {"points": [float(p) for p in points]}
    _, error, info = integrate.quad_vec(raw, *ends, epsabs, epsrel, norm, limit=limit, quadrature="gk21", full_output=True, **more)
    if not info.success:
        report_failure("quad_vec", f"the tolerance was not reached, the estimated error is {float(error):.3g}", failure)
    values, scales = [], []
    for start, end in sorted(map(tuple, info.intervals)):
        half = (end - start) / 2
        for node, weight in _POINTS:
            values.append(value(float((start + end) / 2 + half * node)))
            scales.append(float(half * weight))
    total = _weighted_sum(values, scales)
    for argument, bound, sign in (("a", a, -1.0), ("b", b, 1.0)):
        if isinstance(bound, Tensor) and (bound.requires_grad or state.carries_tangents()) and math.isfinite(_to_bound(argument, bound)):
            total = total + _bound_gain(argument, lambda x: f(x, *args), bound) * sign
    return (total, float(error), info) if full_output else (total, float(error))


def _to_bound(argument: str, x: Any) -> float:
    """Return a bound as a float.

    Raises
    ------
    TypeError, ValueError
        The bound is not a real number, or is nan.
    """
    if isinstance(x, Tensor) and not x.ndim and not x.dtype.is_complex:
        x = x.detach()
    elif getattr(x, "ndim", 0) or isinstance(x, complex) or not hasattr(x, "__float__"):
        msg = f"quad_vec: `{argument}` must be a real number or a 0-d Tensor, but got {shown(x)}"
        raise TypeError(msg)
    value = float(x)
    if value != value:
        msg = f"quad_vec: `{argument}` must be a number or infinite, but is nan"
        raise ValueError(msg)
    return value


def _plain(u: float, low: float, high: float) -> tuple[float, float]:
    return u, 1.0


def _to_right(u: float, low: float, high: float) -> tuple[float, float]:
    return low + u / (1.0 - u), 1.0 / (1.0 - u) ** 2


def _to_left(u: float, low: float, high: float) -> tuple[float, float]:
    return high - u / (1.0 - u), 1.0 / (1.0 - u) ** 2


def _to_both(u: float, low: float, high: float) -> tuple[float, float]:
    return u / (1.0 - u * u), (1.0 + u * u) / (1.0 - u * u) ** 2


def _exchange_bounds(inner: Any) -> Any:
    """Return the substitution `inner` with its bounds exchanged, which changes the sign of its slope."""

    def function(u: float, low: float, high: float) -> tuple[float, float]:
        x, slope = inner(u, high, low)
        return x, -slope

    return function


def _substitute(low: float, high: float) -> tuple[Any, tuple[float, float]]:
    """Return a substitution and the finite interval that it maps to [low, high]; ``substitution(u, low, high)`` is ``x, dx/du``."""
    if math.isfinite(low) and math.isfinite(high):
        return _plain, (low, high)
    if low == high:
        return _plain, (0.0, 0.0)
    if low > high:
        inner, ends = _substitute(high, low)
        return _exchange_bounds(inner), ends
    if math.isfinite(low):
        return _to_right, (0.0, 1.0)
    return (_to_left, (0.0, 1.0)) if math.isfinite(high) else (_to_both, (-1.0, 1.0))


def _weighted_sum(values: list[Any], weights: list[float]) -> Any:
    """Return the sum of Tensors multiplied by weights."""
    piled = stack(values)
    scales = asarray(weights, device=piled.device).to(piled.dtype)
    return (scales @ piled.reshape((len(weights), -1))).reshape(piled.shape[1:])


def _bound_gain(argument: str, f: Any, bound: Any) -> Any:
    """Return a zero whose derivatives are those of the integral with respect to a bound."""
    here = bound.detach()
    step = bound - here
    values = [f(here + step * s) for s, _ in _ENDS]
    values = [v if isinstance(v, Tensor) else asarray(v) for v in values]
    if not bool(isfinite(values[0].detach()).all()):
        msg = (
            f"quad_vec: the derivative with respect to the bound `{argument}` is the function's value there, which is not finite; give "
            f"`{argument}.detach()`"
        )
        raise ValueError(msg)
    return _weighted_sum(values, [w for _, w in _ENDS]) * step


# -- samples ----------------------------------------------------------------------------------------------------------------------


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Integrate samples by the trapezoidal rule (`scipy.integrate.trapezoid`).

    Parameters
    ----------
    y : Tensor or array
        Samples; integers are cast to floating numbers. Differentiable.
    x : Tensor or array, optional
        Sample points: a vector along `axis`, or of the shape of `y`. Default: points `dx` apart. Differentiable.
    dx : number or 0-d Tensor
        Distance of the sample points, if `x` is None. Differentiable.
    axis : int
        Axis along which to integrate.

    Returns
    -------
    Tensor
        The shape of `y` without `axis`.

    Raises
    ------
    ValueError
        `axis` is out of range, or `x` does not fit `y`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import integrate
    >>> x = xp.tensor([0.0, 1.0, 3.0], requires_grad=True)
    >>> y = xp.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> whole = integrate.trapezoid(y, x)
    >>> whole.backward()
    >>> whole.item(), y.grad, x.grad
    (7.5, tensor([0.5, 1.5, 1. ]), tensor([-1.5, -1.5,  3. ]))
    """
    y, d = _samples("trapezoid", y, x, dx, axis)
    return (d * (y[..., 1:] + y[..., :-1])).sum(-1) * 0.5


def cumulative_trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1, initial: float | None = None) -> Tensor:
    """Integrate samples up to each sample by the trapezoidal rule (`scipy.integrate.cumulative_trapezoid`).

    Parameters
    ----------
    y, x, dx, axis
        See `trapezoid`.
    initial : 0, optional
        If 0, prepend a zero, so that the result is as long as `y`; otherwise it is one shorter.

    Returns
    -------
    Tensor
        The shape of `y`, one shorter along `axis` unless `initial` is 0.

    Raises
    ------
    ValueError
        There are no samples, `initial` is neither None nor 0, `axis` is out of range, or `x` does not fit `y`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import integrate
    >>> y = xp.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> sums = integrate.cumulative_trapezoid(y, dx=0.5, initial=0)
    >>> sums.detach()
    tensor([0.  , 0.75, 2.25])
    >>> sums[1].backward()
    >>> y.grad
    tensor([0.25, 0.25, 0.  ])
    """
    if initial is not None and initial != 0:
        msg = f"cumulative_trapezoid: `initial` must be 0 or None, but got {shown(initial)}"
        raise ValueError(msg)
    y, d = _samples("cumulative_trapezoid", y, x, dx, axis)
    if not y.shape[-1]:
        msg = "cumulative_trapezoid: at least one sample is required along `axis`, but there are none"
        raise ValueError(msg)
    out = cumulative_sum(d * (y[..., 1:] + y[..., :-1]) * 0.5, axis=-1)
    if initial is not None:
        out = concat([zeros((*out.shape[:-1], 1), dtype=out.dtype, device=out.device), out], axis=-1)
    return moveaxis(out, -1, axis)


def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Integrate samples by Simpson's rule (`scipy.integrate.simpson`).

    Parameters
    ----------
    y, x, dx, axis
        See `trapezoid`.

    Returns
    -------
    Tensor
        The shape of `y` without `axis`.

    Raises
    ------
    ValueError
        `axis` is out of range, or `x` does not fit `y`.

    Notes
    -----
    If the number of intervals is odd, the last one is integrated using the parabola through the last three samples (Cartwright 2017). Two
    samples are integrated by the trapezoidal rule. At equal sample points quotients by 0 count as 0, as in SciPy; the derivative with
    respect to these points does not exist, and is nan.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import integrate
    >>> x = xp.asarray([0.0, 1.0, 2.0])
    >>> y = xp.tensor([0.0, 1.0, 4.0], requires_grad=True)
    >>> whole = integrate.simpson(y, x)  # exact for x**2
    >>> whole.backward()
    >>> round(whole.item(), 4), y.grad  # 8/3, and the weights
    (2.6667, tensor([0.3333, 1.3333, 0.3333]))
    """
    y, d = _samples("simpson", y, x, dx, axis)
    count = y.shape[-1]
    if count < 3:
        return (d * (y[..., 1:] + y[..., :-1])).sum(-1) * 0.5
    last = count - 1 if count % 2 else count - 2
    h0, h1 = (d[..., 0:last:2], d[..., 1:last:2]) if getattr(d, "ndim", 0) else (d, d)
    y0, y1, y2 = y[..., 0:last:2], y[..., 1:last:2], y[..., 2 : last + 1 : 2]
    both, ratio = h0 + h1, _divide(h0, h1)
    total = (both / 6.0 * (y0 * (2.0 - _divide(1.0, ratio)) + y1 * (both * _divide(both, h0 * h1)) + y2 * (2.0 - ratio))).sum(-1)
    if count % 2:
        return total
    h0, h1 = (d[..., -2], d[..., -1]) if getattr(d, "ndim", 0) else (d, d)
    both = h0 + h1
    now = _divide(2.0 * h1 * h1 + 3.0 * h0 * h1, 6.0 * both) * y[..., -1] + _divide(h1 * h1 + 3.0 * h0 * h1, 6.0 * h0) * y[..., -2]
    return total + now - _divide(h1 * h1 * h1, 6.0 * h0 * both) * y[..., -3]


def _divide(a: Any, b: Any) -> Any:
    """Return ``a / b``, but 0 where `b` is 0, as SciPy does for equal sample points; derivatives with respect to these are nan."""
    if isinstance(b, Tensor):
        # The square root is 0 as well, and has no derivative in any mode; that of 0 would be 0 in forward mode.
        return where(b == 0.0, sqrt(b * b), a / where(b == 0.0, 1.0, b))
    return a / b if b else 0.0


def _samples(name: str, y: Any, x: Any, dx: Any, axis: int) -> tuple[Any, Any]:
    """Return the samples with their axis moved to the end, and their spacing: a number, or an array that broadcasts with them."""
    y = y if isinstance(y, Tensor) else asarray(y)
    axis = as_int(axis, name, "axis")
    if not -y.ndim <= axis < y.ndim:
        msg = f"{name}: `axis` must be between {-y.ndim} and {y.ndim - 1} for samples of shape {y.shape}, but is {axis}"
        raise ValueError(msg)
    y = moveaxis(y if y.dtype.differentiable else y.to(y.default_dtype("real floating")), axis, -1)
    if x is None:
        return y, dx
    x = x if isinstance(x, Tensor) else asarray(x, device=y.device)
    if x.ndim > 1 and x.ndim == y.ndim:
        x = moveaxis(x, axis, -1)
    if not x.ndim or x.shape[-1] != y.shape[-1] or x.ndim not in (1, y.ndim):
        msg = f"{name}: `x` must be a vector of {y.shape[-1]} points, or have the shape of `y`, but has shape {x.shape}"
        raise ValueError(msg)
    return y, x[..., 1:] - x[..., :-1]
