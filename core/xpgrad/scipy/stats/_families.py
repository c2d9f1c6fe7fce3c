"""Base classes of the univariate distributions, which parse arguments as SciPy does and handle location, scale and support.

A distribution is a table of functions of the standardised argument. Outside the support the density and its derivatives are 0. For invalid
parameters, values and derivatives are nan.
"""

from __future__ import annotations

import functools
import inspect
import math
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpgrad._basics.docstrings import shares
from xpgrad._rows.namespace import PRIMITIVES, operations
from xpgrad.rules.elementwise import one_for_zero
from xpgrad.scipy._declare import PREFIX, operands_of, row_only

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

Function = Callable[..., Any]


def _end_by_probability(g: Any, q: Any, density: Any, xp: Any) -> Any:
    at, one = (q == 0) | (q == 1), xp.ones_like(density)
    flat = xp.where(at, (q * (1 - q)) ** 2, one)  # 0 at the ends, where it does not change with `q`: second derivatives are nan
    slope = g / (xp.where(at, density, one) * one_for_zero(flat, xp))
    return xp.where(at, slope, xp.zeros_like(slope))


def _in_common_shape(xp: Any, value: Any, q: Any, density: Any) -> Any:
    # The shape must be that of all operands: under `vmap` only some of them have the axis of the batch.
    return xp.where((q == 0) | (density == 0), value, value)


@row_only(
    lambda g, xp: g, _end_by_probability, None,
    composed=_in_common_shape, fresh=(False, True, False),
)  # fmt: skip
def _end_of_support(value: Any, q: Any, density: Any) -> Any:
    """Return `value`, with the derivative ``1 / density`` by `q` where that is 0 or 1, and 0 elsewhere."""


# -- what docstrings have in common -----------------------------------------------------------------------------------------

_CONTINUOUS = """\
*args : Tensor or number
    The shape parameters in SciPy's order, then the location `loc` (default: 0) and the scale `scale` (default: 1).
    All broadcast with the first argument. Differentiable.
**options : Tensor or number
    The same parameters by name."""
_DISCRETE = """\
*args : Tensor or number
    The shape parameters in SciPy's order, then the location `loc` (default: 0). All broadcast with the first argument. The shape
    parameters are differentiable, except in `ppf`, where `loc` is.
**options : Tensor or number
    The same parameters by name."""
_RETURNS = """\
Tensor
    The shape to which the arguments broadcast, floating-point."""
_ERRORS = """\
TypeError
    A shape parameter is missing, a parameter is unknown or given twice, or an argument is not real.
ValueError
    The arguments do not broadcast."""
_document_continuous = shares(
    parameters=f"""\
x : Tensor or number
    Points at which to evaluate: real; broadcasts with the parameters. Differentiable.
q : Tensor or number
    Probabilities in [0, 1]; broadcasts with the parameters. Differentiable.
{_CONTINUOUS}""",
    returns=_RETURNS,
    raises=_ERRORS,
)
_document_discrete = shares(
    parameters=f"""\
k : Tensor or number
    Points at which to evaluate: real, rounded down to integers; broadcasts with the parameters. Not differentiable: the value jumps.
{_DISCRETE}""",
    returns=_RETURNS,
    raises=_ERRORS,
)


def _name_parameters(method: Any, shapes: tuple[str, ...], continuous: bool) -> str:
    """Return the docstring of a method with entries for the parameters (`shapes`, location and scale) in place of `*args`."""
    slope = " Differentiable." if continuous or method.__name__ != "ppf" else ""
    texts = {", ".join(shapes): f"Shape of the distribution, parametrised as in SciPy; invalid values give nan.{slope}"} if shapes else {}
    texts["loc"] = "Location. Differentiable." if continuous or method.__name__ == "ppf" else "Location."
    if continuous:
        texts["scale"] = "Scale, above 0; other values give nan. Differentiable."
    entries = "\n".join(f"{name} : Tensor or number\n    {text}" for name, text in texts.items())
    return method.__doc__.replace(_CONTINUOUS if continuous else _DISCRETE, entries)


@functools.cache
def _with_signatures(cls: type, shapes: tuple[str, ...]) -> type:
    """Return a subclass whose methods have explicit signatures: ``(x, *args, **options)`` becomes ``(x, a, loc=0, scale=1)``.

    Their docstrings describe these parameters.
    """
    by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD
    optional = {"loc": 0, "scale": 1} if issubclass(cls, Continuous) else {"loc": 0}
    named = [
        *(inspect.Parameter(n, by_name) for n in shapes),
        *(inspect.Parameter(n, by_name, default=value) for n, value in optional.items()),
    ]
    # An empty `__slots__` keeps the layout, so that an instance of `cls` can change to the subclass.
    members: dict[str, Any] = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    for name in dir(cls):
        method = getattr(cls, name)
        if name.startswith("_") or not inspect.isfunction(method) or not method.__code__.co_flags & inspect.CO_VARARGS:
            continue
        copy: Any = types.FunctionType(method.__code__, method.__globals__, name, method.__defaults__, method.__closure__)
        functools.update_wrapper(copy, method)
        del copy.__wrapped__
        copy.__doc__ = _name_parameters(method, shapes, issubclass(cls, Continuous))
        first = [inspect.Parameter(n, by_name) for n in method.__code__.co_varnames[: method.__code__.co_argcount]]
        copy.__signature__ = inspect.Signature([*first, *named])
        members[name] = copy
    return type(cls.__name__, (cls,), members)


class _Family:
    """A univariate distribution: its name, shape parameters, support, parameter check and functions."""

    def __init__(self, name: str, shapes: tuple[str, ...], low: float, high: float, valid: Function | None, **functions: Function) -> None:
        self.name: str = name
        self.shapes: tuple[str, ...] = shapes
        self.low: float = low
        self.high: float = high
        self.valid: Function | None = valid
        self.functions: dict[str, Function] = functions
        cls: Any = type(self)
        self.__class__ = _with_signatures(cls, shapes)

    def __repr__(self) -> str:
        return f"xpgrad.scipy.stats.{self.name}"

    def _operands(self, kind: str, first: str, x: Any, args: tuple[Any, ...], options: dict[str, Any], more: tuple[str, ...]) -> list[Any]:
        """Return the argument, the shape parameters, and those named in `more` (the location and perhaps the scale) as Tensors.

        Raises
        ------
        TypeError
            A parameter is missing, unknown or given twice, or an argument is not real.
        ValueError
            The arguments do not broadcast.
        """
        title, names = f"{self.name}.{kind}", (*self.shapes, *more)
        if len(args) == len(names) and not options:
            return operands_of(title, (first, *names), (x, *args), module="stats")
        given = dict(zip(names, args))
        twice = [n for n in options if n in given or n not in names]
        if len(args) > len(names) or twice:
            wrong = f"`{twice[0]}`" if twice else f"{len(args)} parameters"
            msg = f"scipy.stats.{title}: got {wrong}, but takes {', '.join(f'`{n}`' for n in names)}, each once"
            raise TypeError(msg)
        given |= options
        for n in self.shapes:
            if n not in given:
                msg = f"scipy.stats.{title}: the parameter `{n}` is missing"
                raise TypeError(msg)
        values = [given.get(n, 1.0 if n == "scale" else 0.0) for n in names]
        return operands_of(title, (first, *names), (x, *values), module="stats")

    def _factor(self, shapes: list[Any], dtype: Any, scale: Any = None) -> Any:
        """Return a factor that is 1 for valid shapes and a positive `scale`, and nan for others.

        It depends on the parameters only, so that it is 0-d if they are.
        """
        checks = [] if self.valid is None else [self.valid(*shapes)]
        if scale is not None:
            checks.append(scale > 0)
        good = functools.reduce(operations.logical_and, checks)
        one = operations.ones_like(good, dtype=dtype)
        return operations.where(good, one, one * math.nan)


class Continuous(_Family):
    """A continuous distribution with a location and a scale.

    The argument, the shape parameters, `loc` and `scale` broadcast, and all are differentiable. The parameters are passed by position, the
    shape parameters first in SciPy's order, or by name. The methods of each distribution list them in their signatures.

    Parameters
    ----------
    name : str
        The name that error messages show.
    shapes : tuple of str
        The names of the shape parameters, in SciPy's order.
    low : float
        Lower end of the support for location 0 and scale 1.
    high : float
        Upper end of the support for location 0 and scale 1.
    valid : callable or None
        Return, element by element, whether the shape parameters are valid. Values for invalid ones are nan. None accepts all.
    **functions : callable
        Functions of the standardised argument and the shape parameters: `logpdf`, `cdf`, `sf`, and optionally `pdf` (if `logpdf` is
        infinite at an end of the support where `pdf` has derivatives), `logcdf`, `logsf`, `ppf` and `isf`. For a support that depends
        on the shape parameters, `ends` returns its lower end, its upper end and a point inside.

    See Also
    --------
    Discrete : Distributions on integers.

    Notes
    -----
    The names and the parametrisation are those of `scipy.stats.rv_continuous`.

    Examples
    --------
    >>> from xpgrad.scipy import stats
    >>> stats.norm, isinstance(stats.norm, stats.Continuous)
    (xpgrad.scipy.stats.norm, True)
    >>> stats.gamma.shapes, stats.gamma.low, stats.gamma.high
    (('a',), 0.0, inf)
    """

    def _ends(self, shapes: list[Any]) -> tuple[Any, Any, Any]:
        """Return the lower and the upper end of the support, and a point inside."""
        return self.functions["ends"](*shapes) if "ends" in self.functions else (self.low, self.high, 0.5)

    def _of_x(self, kind: str, x: Any, args: tuple[Any, ...], options: dict[str, Any], below: float, above: float) -> Any:
        """Evaluate the function `kind` at the standardised argument; its value is `below` below the support and `above` above it."""
        x, *shapes, loc, scale = self._operands(kind, "x", x, args, options, ("loc", "scale"))
        if f"located_{kind}" in self.functions:  # one fused operation, which checks the scale itself
            return self.functions[f"located_{kind}"](x, loc, scale, *shapes)
        scale = scale * self._factor(shapes, x.dtype, scale)
        log_scale = operations.log(scale) if kind == "logpdf" else None
        is_density = kind in ("logpdf", "pdf")
        if is_density:
            z = (x - loc) / scale
        else:  # the derivative of an infinite `z` by the scale is infinite; times that of e.g. `cdf`, which is 0, it would be nan
            far = operations.isinf(x) if math.isfinite(below + above) else x == (math.inf if math.isfinite(above) else -math.inf)
            far = far & (operations.isfinite(loc) & operations.isfinite(scale))
            z = operations.where(far, x, (operations.where(far, operations.zeros_like(x), x) - loc) / scale)
        if (is_density or not shapes) and math.isinf(self.low) and math.isinf(self.high) and "ends" not in self.functions:
            value = self.functions[kind](z, *shapes)
            return value if log_scale is None else value - log_scale
        low, high, inner = self._ends(shapes)
        beyond, under = z > high, z < low
        if not is_density:
            beyond, under = beyond | (z == math.inf), under | (z == -math.inf)
        value = self.functions[kind](operations.where(beyond | under, operations.zeros_like(z) + inner, z), *shapes)
        if log_scale is not None:
            value = value - log_scale
        elif kind == "pdf":
            value = value / scale
        edge = operations.ones_like(value)
        return operations.where(under, edge * below, operations.where(beyond, edge * above, value))

    @_document_continuous
    def logpdf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the logarithm of the density; minus infinity outside the support.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> loc = xp.tensor(0.0, requires_grad=True)
        >>> scale = xp.tensor(1.0, requires_grad=True)
        >>> stats.norm.logpdf(xp.asarray([1.0, 2.0, 3.0]), loc, scale).sum().backward()
        >>> loc.grad, scale.grad  # the sums of z, and of z**2 - 1
        (tensor(6.), tensor(11.))
        >>> stats.expon.logpdf(xp.asarray([-1.0, 2.0]))  # the first is outside the support
        tensor([-inf,  -2.])
        """
        return self._of_x("logpdf", x, args, options, -math.inf, -math.inf)

    @_document_continuous
    def pdf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the density; 0 outside the support.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> x = xp.tensor([-1.0, 0.5, 2.0], requires_grad=True)
        >>> stats.expon.pdf(x, scale=2.0).detach()
        tensor([0.    , 0.3894, 0.1839])
        >>> stats.expon.pdf(x, scale=2.0).sum().backward()
        >>> x.grad
        tensor([ 0.    , -0.1947, -0.092 ])
        """
        if "pdf" in self.functions:
            return self._of_x("pdf", x, args, options, 0.0, 0.0)
        return operations.exp(self.logpdf(x, *args, **options))

    @_document_continuous
    def cdf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the cumulative distribution function, the probability of a value of at most `x`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.norm.cdf(xp.asarray([-1.0, 0.0, 1.0]))
        tensor([0.1587, 0.5   , 0.8413])
        >>> a = xp.tensor(2.0, requires_grad=True)
        >>> stats.gamma.cdf(1.5, a).backward()
        >>> a.grad  # with respect to a shape parameter
        tensor(-0.3135)
        """
        return self._of_x("cdf", x, args, options, 0.0, 1.0)

    @_document_continuous
    def sf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the survival function ``1 - cdf``, accurate also where it is small.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> xp.log10(stats.norm.sf(10.0))  # where 1 - cdf is 0
        tensor(-23.1181)
        >>> xp.func.grad(stats.norm.sf)(0.0)  # minus the density
        tensor(-0.3989)
        """
        return self._of_x("sf", x, args, options, 1.0, 0.0)

    @_document_continuous
    def logcdf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the logarithm of the cumulative distribution function.

        `norm`, `logistic`, `lognorm` and `truncnorm` compute it directly, accurate also where `cdf` underflows.
        For the other distributions it is the logarithm of `cdf`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.norm.logcdf(-50.0)  # cdf(-50.0) underflows
        tensor(-1254.8314)
        >>> xp.func.grad(stats.norm.logcdf)(-40.0)
        tensor(40.025)
        """
        if "logcdf" in self.functions:
            return self._of_x("logcdf", x, args, options, -math.inf, 0.0)
        return operations.log(self.cdf(x, *args, **options))

    @_document_continuous
    def logsf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the logarithm of the survival function.

        `norm`, `expon`, `logistic`, `lognorm`, `weibull_min` and `truncnorm` compute it directly, accurate also where `sf` underflows.
        For the other distributions it is the logarithm of `sf`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.norm.logsf(50.0)  # sf(50.0) underflows
        tensor(-1254.8314)
        >>> rate = xp.tensor(0.5, requires_grad=True)
        >>> stats.expon.logsf(3.0, scale=1.0 / rate).backward()  # -rate * x, the log-likelihood of a censored lifetime
        >>> rate.grad
        tensor(-3.)
        """
        if "logsf" in self.functions:
            return self._of_x("logsf", x, args, options, 0.0, -math.inf)
        return operations.log(self.sf(x, *args, **options))

    @_document_continuous
    def ppf(self, q: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the quantile function, the inverse of `cdf`.

        At 0 and 1 it is the lower and the upper end of the support, and its derivative is one-sided; outside [0, 1] it is nan.

        Raises
        ------
        NotImplementedError
            The distribution has no quantile function in closed form (`vonmises`).

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.norm.ppf(xp.asarray([0.0, 0.5, 0.975, 1.5]))
        tensor([-inf, 0.  , 1.96,  nan])
        >>> scale = xp.tensor(2.0, requires_grad=True)
        >>> stats.expon.ppf(0.5, scale=scale).backward()  # a reparametrised sample: log(2) * scale
        >>> scale.grad
        tensor(0.6931)
        """
        return self._quantile("ppf", q, args, options)

    @_document_continuous
    def isf(self, q: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the inverse of the survival function `sf`.

        At 0 and 1 it is the upper and the lower end of the support, and its derivative is one-sided; outside [0, 1] it is nan.

        Raises
        ------
        NotImplementedError
            The distribution has no quantile function in closed form (`vonmises`).

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.norm.isf(xp.asarray([0.025, 0.5]))
        tensor([1.96, 0.  ])
        >>> xp.func.grad(stats.expon.isf)(0.25)  # the derivative of -log(q)
        tensor(-4.)
        """
        return self._quantile("isf", q, args, options)

    def _quantile(self, kind: str, q: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Evaluate `ppf` or `isf`: the ends of the support at 0 and 1, nan outside [0, 1]."""
        if kind not in self.functions:
            msg = f"scipy.stats.{self.name}.{kind} is not supported: it has no closed form, and SciPy finds it by trial, element by element"
            raise NotImplementedError(msg)
        q, *shapes, loc, scale = self._operands(kind, "q", q, args, options, ("loc", "scale"))
        factor = self._factor(shapes, q.dtype, scale)
        one = operations.ones_like(q)
        beyond = ~((q >= 0) & (q <= 1))
        low, high, _ = self._ends(shapes)
        first, last = (low, high) if kind == "ppf" else (high, low)
        # Without shape parameters, the function and its derivative also hold at a finite end of the support.
        known = [not shapes and math.isfinite(end) for end in (first, last)]
        inside = beyond | ((q >= 0 if known[0] else q > 0) & (q <= 1 if known[1] else q < 1))
        q = q * operations.where(beyond, one * math.nan, one)  # a factor, so that the derivative is nan as well
        z = self.functions[kind](operations.where(inside, q, one * 0.5), *shapes)
        edge = operations.ones_like(z)
        ends = operations.where(q == 0, edge * first, edge * last)
        if not all(known):
            ends = self._moving_with(q, ends, shapes, kind == "isf")
        return (operations.where(inside, z, ends) * scale + loc) * factor

    def _moving_with(self, q: Any, ends: Any, shapes: list[Any], falls: bool) -> Any:
        """Return the ends of the support, with the derivatives of a quantile function by the probability `q` where that is 0 or 1."""
        density = operations.zeros_like(ends)
        if math.isfinite(self.low) or math.isfinite(self.high) or "ends" in self.functions:
            finite = operations.isfinite(ends)
            place = operations.where(finite, ends, operations.ones_like(ends) * self._ends(shapes)[2]).detach()
            density = operations.where(finite, operations.exp(self.functions["logpdf"](place, *(s.detach() for s in shapes))), density)
        return _end_of_support(ends, q, -density if falls else density)


def _keep_nan(k: Any, value: Any) -> Any:
    """Return `value`, but nan where the argument `k` is nan."""
    return operations.where(operations.isnan(k), k, value)


class Discrete(_Family):
    """A distribution on integers with a location; the shape parameters are differentiable.

    The parameters are passed by position, the shape parameters first in SciPy's order, or by name. The methods of each distribution list
    them in their signatures.

    Parameters
    ----------
    name : str
        The name that error messages show.
    shapes : tuple of str
        The names of the shape parameters, in SciPy's order.
    low : float
        Lower end of the support for location 0.
    high : float
        Upper end of the support for location 0; infinity if it depends on the shape parameters.
    valid : callable or None
        Return, element by element, whether the shape parameters are valid. Values for invalid ones are nan. None accepts all.
    **functions : callable
        Functions of the integer, counted from the location, and the shape parameters: `logpmf`, `cdf` and `sf`, and `pmf`, whose
        values are used only if the last parameter is 0 or 1. For a bounded support, `last` returns its largest integer from the shape
        parameters. If the probability of 0 may be 0, `inner` returns an integer whose probability is not.

    See Also
    --------
    Continuous : Continuous distributions.

    Notes
    -----
    The names and the parametrisation are those of `scipy.stats.rv_discrete`.

    Examples
    --------
    >>> from xpgrad.scipy import stats
    >>> stats.poisson, isinstance(stats.poisson, stats.Discrete)
    (xpgrad.scipy.stats.poisson, True)
    >>> stats.binom.shapes
    ('n', 'p')
    """

    def _of_k(self, kind: str, k: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        """Return the argument counted from the location, the shape parameters, and the factor of `_factor`."""
        k, *shapes, loc = self._operands(kind, "k", k, args, options, ("loc",))
        return k - loc, shapes, self._factor(shapes, k.dtype)

    def _inside(self, k: Any, shapes: list[Any]) -> Any:
        """Return whether `k` lies between the ends of the support, whether or not it is an integer."""
        return (k >= 0) & (k <= self.functions["last"](*shapes)) if "last" in self.functions else k >= 0

    @_document_discrete
    def logpmf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the logarithm of the probability of `k`; minus infinity outside the support and between integers.

        Parameters
        ----------
        k : Tensor or number
            Integers, of any real dtype; broadcasts with the parameters.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> mu = xp.tensor(2.0, requires_grad=True)
        >>> stats.poisson.logpmf(xp.asarray([1, 4, 4]), mu).sum().backward()
        >>> mu.grad  # the sum of k / mu - 1
        tensor(1.5)
        """
        k, shapes, factor = self._of_k("logpmf", k, args, options)
        return _keep_nan(k, self._at_integers("logpmf", k, shapes, -math.inf) * factor)

    def _at_integers(self, kind: str, k: Any, shapes: list[Any], outside: float) -> Any:
        """Evaluate a function at the integers of the support; its value is `outside` elsewhere."""
        inside = self._inside(k, shapes) & (k == operations.round(k))
        value = self.functions[kind](operations.where(inside, k, self._inner(k, shapes)), *shapes)
        return operations.where(inside, value, operations.full_like(value, outside))

    def _inner(self, k: Any, shapes: list[Any]) -> Any:
        """Return integers whose probability is not 0."""
        zero = operations.zeros_like(k)
        return zero + self.functions["inner"](*shapes) if "inner" in self.functions else zero

    @_document_discrete
    def pmf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the probability of `k`; 0 outside the support and between integers.

        Parameters
        ----------
        k : Tensor or number
            Integers, of any real dtype; broadcasts with the parameters.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.binom.pmf(xp.asarray([-1.0, 0.0, 0.5, 1.0, 2.0]), 2, 0.5)
        tensor([0.  , 0.25, 0.  , 0.5 , 0.25])
        >>> xp.func.grad(lambda p: stats.binom.pmf(1, 2, p))(0.25)  # the derivative of 2 * p * (1 - p)
        tensor(1.)
        """
        place, shapes, factor = self._of_k("pmf", k, args, options)
        *others, last = shapes
        # If the last parameter is 0 or 1, logarithms are infinite, and powers have the derivative. Elsewhere, powers may overflow.
        zero = operations.zeros_like(last)
        edge = ((last == 0) | (last == 1)) & (place != self._inner(place, shapes)) & (place < math.inf)
        value = operations.exp(self._at_integers("logpmf", place, [*others, operations.where(edge, zero + 0.5, last)], -math.inf))
        at_edge = self._at_integers("pmf", place, [*others, operations.where(edge, last, zero)], 0.0)
        return _keep_nan(place, operations.where(edge, at_edge, value) * factor)

    @_document_discrete
    def cdf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the cumulative distribution function, the probability of a value of at most `k`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.poisson.cdf(xp.asarray([-1.0, 0.0, 0.5, 2.0]), 1.0)
        tensor([0.    , 0.3679, 0.3679, 0.9197])
        >>> xp.func.grad(lambda mu: stats.poisson.cdf(0, mu))(1.0)  # the derivative of exp(-mu)
        tensor(-0.3679)
        """
        return self._tail("cdf", k, args, options, 0.0, 1.0)

    @_document_discrete
    def sf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the survival function ``1 - cdf``, accurate also where it is small.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.binom.sf(xp.asarray([0, 1, 2]), 2, 0.5)
        tensor([0.75, 0.25, 0.  ])
        >>> xp.func.grad(lambda p: stats.binom.sf(1, 2, p))(0.25)  # the derivative of p**2
        tensor(0.5)
        """
        return self._tail("sf", k, args, options, 1.0, 0.0)

    @_document_discrete
    def logcdf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the logarithm of the cumulative distribution function.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> stats.poisson.logcdf(xp.asarray([0, 1]), 1.0)
        tensor([-1.    , -0.3069])
        >>> xp.func.grad(lambda mu: stats.poisson.logcdf(0, mu))(1.0)
        tensor(-1.)
        """
        return operations.log(self.cdf(k, *args, **options))

    @_document_discrete
    def ppf(self, q: Operand, *args: Operand, **options: Operand) -> Tensor:
        """Return the quantile function: the smallest integer at which `cdf` is at least `q`.

        SciPy computes it. It is constant between jumps, so the result requires grad only if `loc` does, by which it moves.

        Parameters
        ----------
        q : Tensor or number
            Probabilities in [0, 1]; nan outside. Broadcasts with the parameters.

        Raises
        ------
        CapabilityError
            SciPy is not installed, or cannot reach the memory of the arrays.

        Examples
        --------
        >>> import xpgrad as xp
        >>> from xpgrad.scipy import stats
        >>> mu = xp.tensor(2.0, requires_grad=True)
        >>> k = stats.poisson.ppf(xp.asarray([0.1, 0.5, 0.9]), mu)
        >>> k, k.requires_grad
        (tensor([0., 2., 4.]), False)
        """
        place, *shapes, loc = self._operands("ppf", "q", q, args, options, ("loc",))
        factor = self._factor(shapes, place.dtype).detach()
        return PRIMITIVES[f"{PREFIX}{self.name}_ppf"](place, *shapes) * factor + loc

    def _tail(self, kind: str, k: Any, args: tuple[Any, ...], options: dict[str, Any], below: float, above: float) -> Any:
        """Evaluate `cdf` or `sf` at ``floor(k)``; the value is `below` below the support, and `above` from its last point on."""
        k, shapes, factor = self._of_k(kind, k, args, options)
        whole = operations.floor(k)
        under = whole < 0
        beyond = whole >= self.functions["last"](*shapes) if "last" in self.functions else whole == math.inf
        safe = operations.where(under | beyond, operations.zeros_like(whole * factor), whole)
        value = self.functions[kind](safe, *shapes)
        edge = operations.ones_like(value)
        return _keep_nan(k, operations.where(under, edge * below, operations.where(beyond, edge * above, value)) * factor)
