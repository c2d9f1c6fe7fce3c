"""Parts that distributions share: arguments as SciPy takes them, location and scale, the ends of a support, parameters that are none.

A family is a table of functions of the standardised argument. Outside of its support a density is 0, and so is its derivative; for
parameters that no distribution has, values and derivatives are nan.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpgrad._rows.namespace import PRIMITIVES, operations
from xpgrad.scipy._declare import PREFIX, operands_of

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

Function = Callable[..., Any]


class _Family:
    """A distribution: its name, its shape parameters, where it lives, which parameters it has, and its functions."""

    def __init__(self, name: str, shapes: tuple[str, ...], low: float, high: float, valid: Function | None, **functions: Function) -> None:
        self.name: str = name
        self.shapes: tuple[str, ...] = shapes
        self.low: float = low
        self.high: float = high
        self.valid: Function | None = valid
        self.functions: dict[str, Function] = functions

    def __repr__(self) -> str:
        return f"xpgrad.scipy.stats.{self.name}"

    def _operands(self, kind: str, first: str, x: Any, args: tuple[Any, ...], options: dict[str, Any], more: tuple[str, ...]) -> list[Any]:
        """The argument, shapes and location (and scale) as Tensors.

        Raises
        ------
        TypeError
            For a missing parameter, and one that there is not.
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
        """A factor that is 1, or nan for parameters that are none; of parameters only, so that what has no axes stays that."""
        checks = [] if self.valid is None else [self.valid(*shapes)]
        if scale is not None:
            checks.append(scale > 0)
        good = functools.reduce(operations.logical_and, checks)
        one = operations.ones_like(good, dtype=dtype)
        return operations.where(good, one, one * math.nan)


class Continuous(_Family):
    """A continuous distribution with a location and a scale; `x`, the shapes, `loc` and `scale` broadcast, and all are differentiable.

    Shapes come first, in SciPy's order, then `loc` and `scale`; or by name. A support that depends on the shapes is the function `ends` of
    these: where it begins and ends, and a place inside.
    """

    def _ends(self, shapes: list[Any]) -> tuple[Any, Any, Any]:
        """Where the support begins and ends, and a place inside."""
        return self.functions["ends"](*shapes) if "ends" in self.functions else (self.low, self.high, 0.5)

    def _of_x(self, kind: str, x: Any, args: tuple[Any, ...], options: dict[str, Any], below: float, above: float) -> Any:
        """A function of the standardised argument, with its limits outside of the support."""
        x, *shapes, loc, scale = self._operands(kind, "x", x, args, options, ("loc", "scale"))
        if f"located_{kind}" in self.functions:  # one operation, where that is worth it; it knows what is no scale
            return self.functions[f"located_{kind}"](x, loc, scale, *shapes)
        scale = scale * self._factor(shapes, x.dtype, scale)
        z = (x - loc) / scale
        log_scale = operations.log(scale) if kind == "logpdf" else None
        if math.isinf(self.low) and math.isinf(self.high) and "ends" not in self.functions:
            value = self.functions[kind](z, *shapes)
            return value if log_scale is None else value - log_scale
        low, high, inner = self._ends(shapes)
        beyond, under = z > high, z < low
        value = self.functions[kind](operations.where(beyond | under, operations.zeros_like(z) + inner, z), *shapes)
        if log_scale is not None:
            value = value - log_scale
        edge = operations.ones_like(value)
        return operations.where(under, edge * below, operations.where(beyond, edge * above, value))

    def logpdf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The logarithm of the density; minus infinity outside of the support."""
        return self._of_x("logpdf", x, args, options, -math.inf, -math.inf)

    def pdf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The density."""
        return operations.exp(self.logpdf(x, *args, **options))

    def cdf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The distribution function."""
        return self._of_x("cdf", x, args, options, 0.0, 1.0)

    def sf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The survival function, ``1 - cdf``, also where that is small."""
        return self._of_x("sf", x, args, options, 1.0, 0.0)

    def logcdf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The logarithm of the distribution function."""
        if "logcdf" in self.functions:
            return self._of_x("logcdf", x, args, options, -math.inf, 0.0)
        return operations.log(self.cdf(x, *args, **options))

    def logsf(self, x: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The logarithm of the survival function."""
        if "logsf" in self.functions:
            return self._of_x("logsf", x, args, options, 0.0, -math.inf)
        return operations.log(self.sf(x, *args, **options))

    def ppf(self, q: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The quantile function, the inverse of `cdf`: the ends of the support at 0 and 1, nan beyond."""
        return self._quantile("ppf", q, args, options)

    def isf(self, q: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The inverse of `sf`: the ends of the support at 1 and 0, nan beyond."""
        return self._quantile("isf", q, args, options)

    def _quantile(self, kind: str, q: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        if kind not in self.functions:
            msg = f"scipy.stats.{self.name}.{kind} is not there: SciPy finds it by trial, element by element"
            raise NotImplementedError(msg)
        q, *shapes, loc, scale = self._operands(kind, "q", q, args, options, ("loc", "scale"))
        factor = self._factor(shapes, q.dtype, scale)
        one = operations.ones_like(q)
        beyond = ~((q >= 0) & (q <= 1))
        inside = beyond | ((q > 0) & (q < 1))
        q = q * operations.where(beyond, one * math.nan, one)  # by a factor, so that the derivative is nan, too
        z = self.functions[kind](operations.where(inside, q, one * 0.5), *shapes)
        low, high, _ = self._ends(shapes)
        first, last = (low, high) if kind == "ppf" else (high, low)
        edge = operations.ones_like(z)
        ends = operations.where(q == 0, edge * first, edge * last)
        return (operations.where(inside, z, ends) * scale + loc) * factor


class Discrete(_Family):
    """A distribution on integers, with a location; the shapes are differentiable."""

    def _of_k(self, kind: str, k: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, list[Any], Any]:
        """The place counted from the location, the shapes, and the factor."""
        k, *shapes, loc = self._operands(kind, "k", k, args, options, ("loc",))
        return k - loc, shapes, self._factor(shapes, k.dtype)

    def _inside(self, k: Any, shapes: list[Any]) -> Any:
        """Return whether a place is in the support, but for not being an integer."""
        return (k >= 0) & (k <= self.functions["last"](*shapes)) if "last" in self.functions else k >= 0

    def logpmf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The logarithm of the probability of `k`; minus infinity outside of the support."""
        k, shapes, factor = self._of_k("logpmf", k, args, options)
        inside = self._inside(k, shapes) & (k == operations.round(k))
        value = self.functions["logpmf"](operations.where(inside, k, operations.zeros_like(k * factor)), *shapes)
        return operations.where(inside, value, operations.full_like(value, -math.inf)) * factor + 0.0 * k  # nan stays nan

    def pmf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The probability of `k`."""
        return operations.exp(self.logpmf(k, *args, **options))

    def cdf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The distribution function."""
        return self._tail("cdf", k, args, options, 0.0, 1.0)

    def sf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The survival function, ``1 - cdf``, also where that is small."""
        return self._tail("sf", k, args, options, 1.0, 0.0)

    def logcdf(self, k: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The logarithm of the distribution function."""
        return operations.log(self.cdf(k, *args, **options))

    def ppf(self, q: Operand, *args: Operand, **options: Operand) -> Tensor:
        """The quantile function: the first integer at which `cdf` reaches `q`, in floating numbers, computed by SciPy.

        It is constant between jumps: nothing is differentiated.
        """
        place, *shapes, loc = self._operands("ppf", "q", q, args, options, ("loc",))
        factor = self._factor(shapes, place.dtype).detach()
        return PRIMITIVES[f"{PREFIX}{self.name}_ppf"](place, *shapes) * factor + loc.detach()

    def _tail(self, kind: str, k: Any, args: tuple[Any, ...], options: dict[str, Any], below: float, above: float) -> Any:
        k, shapes, factor = self._of_k(kind, k, args, options)
        whole = operations.floor(k)
        under = whole < 0
        beyond = whole >= self.functions["last"](*shapes) if "last" in self.functions else whole == math.inf
        safe = operations.where(under | beyond, operations.zeros_like(whole * factor), whole)
        value = self.functions[kind](safe, *shapes)
        edge = operations.ones_like(value)
        return operations.where(under, edge * below, operations.where(beyond, edge * above, value)) * factor
