"""Complex arithmetic in operations on real numbers, with NumPy's formulas and special values.

This is what a complex number is below the level of programs: two real numbers, its parts. `lowering` makes two real arrays of each complex
one; arguments, constants and results of a program hold both in turns, as NumPy does, and other arrays have them apart. So regions, their
scalar operations, and the texts in LLVM's language and in C know real numbers only.

A product is fused where NumPy fuses it: a part is ``fma(a, c, -(b * d))``. Quotients are by Smith's algorithm, as in NumPy. The functions
compute in float64 for complex64, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["FORMULAS", "POWERS", "Formula", "Pair", "Real"]

_INFINITY = math.inf
_LN2 = 0.6931471805599453


class Real:
    """A real number in a formula, with Python's operators: an operand of statements, and what adds a statement and returns its result."""

    __slots__ = ("add", "operand")

    def __init__(self, operand: Any, add: Callable[..., Any]) -> None:
        self.operand: Any = operand
        self.add: Callable[..., Any] = add

    def compute(self, op: str, *others: Real | float) -> Real:
        """Return the result of a scalar operation of this number and others."""
        return Real(self.add(op, self.operand, *(x.operand if isinstance(x, Real) else x for x in others)), self.add)

    def __add__(self, other: Real | float) -> Real:
        return self.compute("add", other)

    def __sub__(self, other: Real | float) -> Real:
        return self.compute("subtract", other)

    def __mul__(self, other: Real | float) -> Real:
        return self.compute("multiply", other)

    def __truediv__(self, other: Real | float) -> Real:
        return self.compute("divide", other)

    def __neg__(self) -> Real:
        return self.compute("negative")

    def __abs__(self) -> Real:
        return self.compute("abs")

    def __and__(self, other: Real) -> Real:
        return self.compute("logical_and", other)

    def __or__(self, other: Real) -> Real:
        return self.compute("logical_or", other)

    def __invert__(self) -> Real:
        return self.compute("logical_not")

    def __lt__(self, other: Real | float) -> Real:
        return self.compute("less", other)

    def __gt__(self, other: Real | float) -> Real:
        return self.compute("greater", other)

    def __ge__(self, other: Real | float) -> Real:
        return self.compute("greater_equal", other)

    def equals(self, other: Real | float) -> Real:
        return self.compute("equal", other)

    def times_plus(self, factor: Real, term: Real) -> Real:
        """Return the product with `factor` plus a term, rounded once where processors can do that."""
        return self.compute("multiply_add", factor, term)

    def choose(self, a: Real | float, b: Real | float) -> Real:
        """Return `a` if this truth holds, else `b`."""
        return self.compute("where", a, b)


#: The real and the imaginary part.
Pair: TypeAlias = "tuple[Real, Real]"


@dataclass(frozen=True, slots=True)
class Formula:
    """How a kernel for complex numbers is computed.

    Attributes
    ----------
    function : callable
        Takes a `Pair` for each complex operand and a `Real` for a condition; returns a `Pair`, or a `Real` for a real result or a truth.
    has_condition : bool
        Whether the first operand is a truth.
    is_wide : bool
        Whether it computes in float64 for complex64, too.
    """

    function: Callable[..., Any]
    has_condition: bool = False
    is_wide: bool = False


# -- arithmetic --------------------------------------------------------------------------------------------------------------


def _add(x: Pair, y: Pair) -> Pair:
    return x[0] + y[0], x[1] + y[1]


def _subtract(x: Pair, y: Pair) -> Pair:
    return x[0] - y[0], x[1] - y[1]


def _multiply(x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    return a.times_plus(c, -(b * d)), a.times_plus(d, b * c)


def _divide(x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    size, other = abs(c), abs(d)
    is_larger = size >= other
    large, small = is_larger.choose(c, d), is_larger.choose(d, c)
    ratio = small / large
    scale = Real(1.0, c.add) / (large + small * ratio)
    first, second = is_larger.choose(a, b), is_larger.choose(b, a)
    turned = first * ratio
    re, im = (first + second * ratio) * scale, is_larger.choose(second - turned, turned - second) * scale
    is_zero = size.equals(0.0) & other.equals(0.0)
    return is_zero.choose(a / size, re), is_zero.choose(b / size, im)


def _negative(x: Pair) -> Pair:
    return -x[0], -x[1]


def _conj(x: Pair) -> Pair:
    return x[0], -x[1]


def _square(x: Pair) -> Pair:
    return _multiply(x, x)


def _reciprocal(x: Pair) -> Pair:
    a, b = x
    is_larger = abs(b).compute("less_equal", abs(a))
    large, small = is_larger.choose(a, b), is_larger.choose(b, a)
    ratio = small / large
    divisor = large + small * ratio
    one, other = Real(1.0, a.add) / divisor, ratio / divisor
    return is_larger.choose(one, other), is_larger.choose(-other, -one)


def _abs(x: Pair) -> Real:
    return x[0].compute("hypot", x[1])


def _sign(x: Pair) -> Pair:
    """Return x / |x|; if that is infinite, the direction of the part that is infinite, and nan for two."""
    a, b = x
    size = _abs(x)
    is_nan, is_zero, is_far = size.compute("isnan"), size.equals(0.0), size.equals(_INFINITY)
    is_right, is_up = abs(a).equals(_INFINITY), abs(b).equals(_INFINITY)
    both = is_right & is_up
    far = is_right.choose(a.compute("sign"), 0.0), is_right.choose(0.0, b.compute("sign"))

    def part(p: Real, direction: Real) -> Real:
        found = is_far.choose(both.choose(math.nan, direction), is_zero.choose(0.0, p / size))
        return is_nan.choose(math.nan, found)

    return part(a, far[0]), part(b, far[1])


# -- comparisons and selections ----------------------------------------------------------------------------------------------


def _equal(x: Pair, y: Pair) -> Real:
    return x[0].equals(y[0]) & x[1].equals(y[1])


def _not_equal(x: Pair, y: Pair) -> Real:
    return x[0].compute("not_equal", y[0]) | x[1].compute("not_equal", y[1])


def _isfinite(x: Pair) -> Real:
    return x[0].compute("isfinite") & x[1].compute("isfinite")


def _isinf(x: Pair) -> Real:
    return x[0].compute("isinf") | x[1].compute("isinf")


def _isnan(x: Pair) -> Real:
    return x[0].compute("isnan") | x[1].compute("isnan")


def _where(condition: Real, x: Pair, y: Pair) -> Pair:
    return condition.choose(x[0], y[0]), condition.choose(x[1], y[1])


def _keep(condition: Real, x: Pair) -> Pair:
    return condition.compute("keep", x[0]), condition.compute("keep", x[1])


# -- functions ---------------------------------------------------------------------------------------------------------------


def _exp(x: Pair) -> Pair:
    a, b = x
    large = a > 709.0  # exp(a) may be infinite where the result is not
    size, factor = large.choose(a - 709.0, a).compute("exp_precise"), large.choose(math.exp(709.0), 1.0)
    re, im = (b.compute("cos_precise") * factor) * size, (b.compute("sin_precise") * factor) * size
    lost = ~b.compute("isfinite")  # the angle
    re = (lost & a.equals(_INFINITY)).choose(_INFINITY, (lost & a.equals(-_INFINITY)).choose(0.0, re))
    im = (lost & a.equals(-_INFINITY)).choose(Real(0.0, a.add).compute("copysign", b), im)
    return re, b.equals(0.0).choose(b, im)


def _larger_first(x: Pair) -> Pair:
    a, b = abs(x[0]), abs(x[1])
    larger = a > b
    return larger.choose(a, b), larger.choose(b, a)


def _log(x: Pair) -> Pair:
    a, b = x
    large, small = _larger_first(x)
    is_huge, is_tiny = large > 2.0**1000, large < 2.0**-900
    scale = is_huge.choose(2.0**-100, is_tiny.choose(2.0**100, 1.0))
    offset = is_huge.choose(100 * _LN2, is_tiny.choose(-100 * _LN2, 0.0))
    far = (a * scale).compute("hypot", b * scale).compute("log") + offset
    near = ((large - 1.0) * (large + 1.0) + small * small).compute("log1p") * 0.5
    is_near = (large > 0.5) & (large < 2.0)
    return is_near.choose(near, far), b.compute("atan2", a)


def _sqrt(x: Pair) -> Pair:
    a, b = x
    large, _ = _larger_first(x)
    is_huge, is_tiny = large > 2.0**1000, large < 2.0**-900
    down = is_huge.choose(2.0**-4, is_tiny.choose(2.0**120, 1.0))
    up = is_huge.choose(4.0, is_tiny.choose(2.0**-60, 1.0))
    p, q = a * down, b * down
    root = ((abs(p) + p.compute("hypot", q)) * 0.5).compute("sqrt")
    other = abs(q) / (root + root)
    is_right = a >= 0.0
    re, im = is_right.choose(root, other) * up, is_right.choose(other, root).compute("copysign", b) * up
    is_zero = a.equals(0.0) & b.equals(0.0)
    is_far = abs(b).equals(_INFINITY)
    return is_far.choose(_INFINITY, is_zero.choose(0.0, re)), (is_far | is_zero).choose(b, im)


def _hyperbolic(a: Real, b: Real) -> tuple[Pair, Pair]:
    """Return the parts of sinh(a + i b) and of cosh(a + i b)."""
    size = abs(a)
    large = size > 700.0  # exp(a) may be infinite where the result is not
    growth = (size - 700.0).compute("exp_precise") * 0.5
    factor = large.choose(math.exp(700.0), 1.0)
    odd, even = large.choose(growth.compute("copysign", a), a.compute("sinh_precise")), large.choose(growth, a.compute("cosh_precise"))
    cosine, sine = b.compute("cos_precise") * factor, b.compute("sin_precise") * factor
    sinh, cosh = (odd * cosine, even * sine), (even * cosine, odd * sine)
    lost = ~b.compute("isfinite")  # the angle
    is_zero, is_far, is_flat = a.equals(0.0), size.equals(_INFINITY), b.equals(0.0)
    turn = a.compute("isnan").choose(1.0, Real(1.0, a.add).compute("copysign", a))
    zero = Real(0.0, a.add).compute("copysign", b) * turn
    sinh = (lost & is_zero).choose(a, (lost & is_far).choose(_INFINITY, sinh[0])), is_flat.choose(b, sinh[1])
    cosh = (lost & is_far).choose(_INFINITY, cosh[0]), is_flat.choose(zero, (lost & is_zero).choose(0.0, cosh[1]))
    return sinh, cosh


def _sinh(x: Pair) -> Pair:
    return _hyperbolic(*x)[0]


def _cosh(x: Pair) -> Pair:
    return _hyperbolic(*x)[1]


def _sin(x: Pair) -> Pair:
    (re, im), _ = _hyperbolic(x[1], x[0])
    return im, re


def _cos(x: Pair) -> Pair:
    return _hyperbolic(-x[1], x[0])[1]


def _power(x: Pair, result: Pair) -> Pair:
    """Return a power; NumPy's are 0.0, without a sign, for zeros of any sign."""
    is_zero = x[0].equals(0.0) & x[1].equals(0.0)
    return is_zero.choose(0.0, result[0]), is_zero.choose(0.0, result[1])


def _product(x: Pair, y: Pair) -> Pair:
    """Return a product that is not fused, as in NumPy's powers."""
    (a, b), (c, d) = x, y
    return a * c - b * d, a * d + b * c


#: What is complex in machine code, by the names of kernels, except for powers.
FORMULAS: dict[str, Formula] = {
    "abs": Formula(_abs),
    "add": Formula(_add),
    "conj": Formula(_conj),
    "cos": Formula(_cos, is_wide=True),
    "cosh": Formula(_cosh, is_wide=True),
    "divide": Formula(_divide),
    "equal": Formula(_equal),
    "exp": Formula(_exp, is_wide=True),
    "isfinite": Formula(_isfinite),
    "isinf": Formula(_isinf),
    "isnan": Formula(_isnan),
    "keep": Formula(_keep, has_condition=True),
    "log": Formula(_log, is_wide=True),
    "multiply": Formula(_multiply),
    "negative": Formula(_negative),
    "not_equal": Formula(_not_equal),
    "phase": Formula(_sign),
    "positive": Formula(lambda x: x),
    "reciprocal": Formula(_reciprocal),
    "scale": Formula(_multiply),
    "sign": Formula(_sign),
    "sin": Formula(_sin, is_wide=True),
    "sinh": Formula(_sinh, is_wide=True),
    "sqrt": Formula(_sqrt, is_wide=True),
    "square": Formula(_square),
    "subtract": Formula(_subtract),
    "where": Formula(_where, has_condition=True),
}
#: The powers that NumPy computes by products and roots, by their types and values; the others would lose more digits here.
POWERS: dict[tuple[type, float], Formula] = {
    (int, -1): FORMULAS["reciprocal"],
    (int, 1): Formula(lambda x: _power(x, x)),
    (int, 2): FORMULAS["square"],
    (int, 3): Formula(lambda x: _power(x, _product(x, _product(x, x)))),
    (float, 0.5): FORMULAS["sqrt"],
    (float, 1.0): Formula(lambda x: _power(x, x)),
    (float, 2.0): Formula(lambda x: _power(x, _product(x, x))),
    (float, 3.0): Formula(lambda x: _power(x, _product(x, _product(x, x)))),
}
