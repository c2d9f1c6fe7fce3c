"""Print elementary functions such as ``exp`` in LLVM's language, without branches, so that LLVM makes vectors of them on every processor.

Each is one internal function of numbers, which LLVM inlines into the loops that call it. All operations are those of IEEE 754 (additions,
multiplications, divisions, roots and fused multiply-adds), so that a number has the same result in vectors of any width, in the rest of a
loop, and on every processor that has fused multiply-adds. For float32, ``pow`` and ``hypot`` compute in float64.

The steps are the usual ones: the argument is reduced to a small interval, exactly or with an error term; a polynomial follows; and special
values are selected at the end. Only for large arguments of ``sin``, ``cos`` and ``tan`` there is a branch, in a function that multiplies
them by the digits of 2/pi that matter.

The coefficients interpolate each function at the zeros of a Chebyshev polynomial, and are rounded to float64. ``test_functions.py``
computes them again. For each polynomial there is one list for float64 and a shorter one for float32.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["COEFFICIENTS", "DIGITS", "Polynomial", "has_function", "own_function"]


class Polynomial(NamedTuple):
    """The coefficients for float64 and for float32, from the constant term on."""

    double: list[float]
    single: list[float]


#: What each polynomial approximates:
#: "asin", "atan", "sin": (f(sqrt(x)) / sqrt(x) - 1) / x
#: "cos": (cos(sqrt(x)) - 1 + x / 2) / x**2
#: "exp": (exp(x) - 1 - x) / x**2
#: "log": (2 * atanh(sqrt(x)) / sqrt(x) - 2) / x
#: "pow": (atanh(sqrt(x)) / sqrt(x) - 1 - x / 3) / x**2
COEFFICIENTS: dict[str, Polynomial] = {
    "asin": Polynomial(
        [
            0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247, 0.02237217294214989,
            0.017352392720869973, 0.013971212973552933, 0.011479177415184906, 0.01032281435018578, 0.005457506718640358,
            0.01740087944269402, -0.014851887071247204, 0.028757851367421566,
        ],
        [
            0.16666666337430908, 0.07500094543497424, 0.04459940152851218, 0.03110066273549457, 0.017149238357677253,
            0.03369084720283012,
        ],
    ),
    "atan": Polynomial(
        [
            -0.3333333333333333, 0.1999999999999549, -0.1428571428466014, 0.11111111014741562, -0.09090904557214267,
            0.0769218270524632, -0.06664504610032648, 0.05858089538610203, -0.050851391487066376, 0.03922268882347632,
            -0.0191659065063043,
        ],
        [
            -0.3333333175572402, 0.19999539232716604, -0.1426391227285186, 0.10743263384329244, -0.06450377352341542,
        ],
    ),
    "cos": Polynomial(
        [
            0.041666666666666664, -0.001388888888888723, 2.480158729851767e-05, -2.755731714444461e-07, 2.0876120020701785e-09,
            -1.1380761312687717e-11,
        ],
        [
            0.041666664528702296, -0.0013888277879640465, 2.454256397769355e-05,
        ],
    ),
    "exp": Polynomial(
        [
            0.5000000000000001, 0.16666666666666669, 0.04166666666662064, 0.008333333333329793, 0.0013888888918939168,
            0.00019841269864380513, 2.4801518641395993e-05, 2.75572664186123e-06, 2.7621338669142925e-07, 2.510134692835034e-08,
        ],
        [
            0.5, 0.16666573381900845, 0.04166655011030512, 0.008363773874405574, 0.0013926926614021907,
        ],
    ),
    "log": Polynomial(
        [
            0.666666666666667, 0.3999999999989607, 0.28571428627528794, 0.22222210881932927, 0.1818290749767122,
            0.1533111258796017, 0.1462395660821188,
        ],
        [
            0.6666668534980387, 0.39988653938211444, 0.295856807745129,
        ],
    ),
    "pow": Polynomial(
        [
            0.2, 0.14285714285714698, 0.11111111110818422, 0.09090909169848817, 0.07692297251904945, 0.06667414786953267,
            0.05852785947838605, 0.05865053930946515,
        ],
        [
            0.2000000765271481, 0.1428106708914017, 0.1152642563324957,
        ],
    ),
    "sin": Polynomial(
        [
            -0.16666666666666663, 0.008333333333330684, -0.00019841269836362113, 2.755731589908745e-06, -2.5051089888500053e-08,
            1.591513837397633e-10,
        ],
        [
            -0.16666664531761544, 0.008332723165866475, -0.00019582524205010148,
        ],
    ),
}  # fmt: skip
#: The binary digits of 2/pi after the point, as words of 64 bits, after one word of zeros.
DIGITS: tuple[int, ...] = (
    0x0000000000000000,
    0xA2F9836E4E441529,
    0xFC2757D1F534DDC0,
    0xDB6295993C439041,
    0xFE5163ABDEBBC561,
    0xB7246E3A424DD2E0,
    0x06492EEA09D1921C,
    0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484,
    0xE99C7026B45F7E41,
    0x3991D639835339F4,
    0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F,
    0xEF2F118B5A0A6D1F,
    0x6D367ECF27CB09B7,
    0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B,
    0x3D0739F78A5292EA,
    0x6BFB5FB11F8D5D08,
    0x56033046FC7B6BAB,
)

_LN2 = (0.6931471805599453, 2.3190468138462996e-17)
_LOG2_E = (1.4426950408889634, 2.0355273740931033e-17)
_LOG10_E = (0.4342944819032518, 1.098319650216765e-17)
_LOG10_2 = (0.3010299956639812, -2.8037281277851704e-18)
_THIRD = (0.3333333333333333, 1.850371707708594e-17)
_HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
_INFINITY = math.inf
_ATTRIBUTES = "nounwind willreturn memory(none)"


# -- the language ----------------------------------------------------------------------------------------------------------------


def _word(value: float) -> int:
    """Return the bits of a number."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


class _Format(NamedTuple):
    """A type of numbers, with that of integers of the same size."""

    kind: str
    integer: str
    suffix: str  # of LLVM's functions
    digits: int  # binary digits after the point
    bias: int  # of exponents

    @property
    def magic(self) -> float:
        """A number whose sum with an integer ends in the bits of the integer."""
        return 1.5 * 2.0**self.digits

    @property
    def far(self) -> float:
        """The least number whose product with 2/pi needs more digits."""
        return 2.0**36 if self.digits == 52 else 2.0**17

    @property
    def size(self) -> int:
        """Number of bits."""
        return 64 if self.digits == 52 else 32

    @property
    def tiny(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def small(self) -> float:
        """A bound below which the square of a number is negligible beside 1."""
        return 2.0 ** -((self.digits + 2) // 2)

    def nearest(self, x: float) -> float:
        """Return the number of this type that is nearest to `x`."""
        return x if self.digits == 52 else float(struct.unpack("<f", struct.pack("<f", x))[0])

    def word(self, x: float) -> int:
        """Return the bits of a number."""
        return int(struct.unpack("<q", struct.pack("<d", x))[0] if self.digits == 52 else struct.unpack("<i", struct.pack("<f", x))[0])

    def pair(self, x: tuple[float, ...]) -> tuple[float, float]:
        """Return two numbers whose sum is nearest to that of the first two numbers in `x`."""
        high = self.nearest(x[0])
        return high, self.nearest(x[0] - high + x[1])

    def triple(self, x: tuple[float, float, float]) -> tuple[float, float, float]:
        """Return three numbers whose sum is nearest to that of the numbers in `x`."""
        high, middle = self.pair(x)
        return high, middle, self.nearest((x[0] - high - middle + x[1]) if self.digits < 52 else x[2])


_DOUBLE = _Format("double", "i64", "f64", 52, 1023)
_SINGLE = _Format("float", "i32", "f32", 23, 127)


class _Code:
    """The instructions of one function.

    Parameters
    ----------
    form : _Format
        The type of its numbers.
    short : bool
        Whether the result is in float32.
    widths : tuple of int
        The numbers of elements of vectors.
    """

    def __init__(self, form: _Format, *, short: bool, widths: tuple[int, ...] = ()) -> None:
        self.format = form
        self.short = short
        self.wide = short and form is _DOUBLE  # the result has fewer digits than its parts
        self.widths = widths
        self.lines: list[str] = []
        self.texts: dict[str, str] = {}  # what the function calls
        self.variants: dict[str, str] = {}  # variants for vectors of what it calls
        self.count = 0

    def emit(self, right: str, kind: str) -> _Value:
        """Add an instruction with a result; return it."""
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"  {name} = {right}")
        return _Value(self, name, kind)

    def call(self, name: str, *args: _Value) -> _Value:
        """Emit a call of one of LLVM's intrinsic functions, and return its result."""
        kind, name = self.format.kind, f"llvm.{name}.{self.format.suffix}"
        self.texts[name] = f"declare {kind} @{name}({', '.join(x.kind for x in args)})"
        return self.emit(f"call {kind} @{name}({', '.join(f'{x.kind} {x.name}' for x in args)})", kind)

    def value(self, x: _Value | float, kind: str | None = None) -> _Value:
        """Return a number as a value of type `kind`; a value stays unchanged."""
        if isinstance(x, _Value):
            return x
        if kind in (None, self.format.kind):
            return _Value(self, f"0x{_word(self.format.nearest(x)):016X}", self.format.kind)
        return _Value(self, str(int(x)), kind or "")

    def coefficients(self, name: str) -> list[float]:
        return COEFFICIENTS[name][self.short]


class _Value:
    """A number, an integer of its size or a truth in a function, with Python's operators."""

    def __init__(self, code: _Code, name: str, kind: str) -> None:
        self.code = code
        self.name = name
        self.kind = kind

    @property
    def is_number(self) -> bool:
        return self.kind == self.code.format.kind

    def combine(self, instruction: str, a: _Value | float, b: _Value | float, kind: str | None = None) -> _Value:
        a, b = self.code.value(a, self.kind), self.code.value(b, self.kind)
        return self.code.emit(f"{instruction} {self.kind} {a.name}, {b.name}", kind or self.kind)

    def __add__(self, other: _Value | float) -> _Value:
        return self.combine("fadd" if self.is_number else "add", self, other)

    def __sub__(self, other: _Value | float) -> _Value:
        return self.combine("fsub" if self.is_number else "sub", self, other)

    def __rsub__(self, other: float) -> _Value:
        return self.combine("fsub" if self.is_number else "sub", other, self)

    def __mul__(self, other: _Value | float) -> _Value:
        return self.combine("fmul", self, other)

    def __truediv__(self, other: _Value | float) -> _Value:
        return self.combine("fdiv", self, other)

    def __rtruediv__(self, other: float) -> _Value:
        return self.combine("fdiv", other, self)

    def __neg__(self) -> _Value:
        return self.code.emit(f"fneg {self.kind} {self.name}", self.kind)

    def __and__(self, other: _Value | int) -> _Value:
        return self.combine("and", self, other)

    def __or__(self, other: _Value | int) -> _Value:
        return self.combine("or", self, other)

    def __xor__(self, other: _Value | int) -> _Value:
        return self.combine("xor", self, other)

    def __lshift__(self, count: int) -> _Value:
        return self.combine("shl", self, count)

    def __rshift__(self, count: int) -> _Value:
        """Shift in zeros."""
        return self.combine("lshr", self, count)

    def __lt__(self, other: _Value | float) -> _Value:
        return self.combine("fcmp olt", self, other, "i1")

    def __gt__(self, other: _Value | float) -> _Value:
        return self.combine("fcmp ogt", self, other, "i1")

    def __ge__(self, other: _Value | float) -> _Value:
        return self.combine("fcmp oge", self, other, "i1")

    def equals(self, other: _Value | float) -> _Value:
        return self.combine("fcmp oeq" if self.is_number else "icmp eq", self, other, "i1")

    def differs(self, other: _Value | float) -> _Value:
        """Return whether two values are not equal; nan differs from all."""
        return self.combine("fcmp une" if self.is_number else "icmp ne", self, other, "i1")

    def bits(self) -> _Value:
        """Return the bits of a number as an integer."""
        return self.code.emit(f"bitcast {self.kind} {self.name} to {self.code.format.integer}", self.code.format.integer)

    def number(self) -> _Value:
        """Return the number that has these bits."""
        return self.code.emit(f"bitcast {self.kind} {self.name} to {self.code.format.kind}", self.code.format.kind)


def _where(condition: _Value, a: _Value | float, b: _Value | float) -> _Value:
    c = condition.code
    kind = next((x.kind for x in (a, b) if isinstance(x, _Value)), c.format.kind)
    a, b = c.value(a, kind), c.value(b, kind)
    return c.emit(f"select i1 {condition.name}, {kind} {a.name}, {kind} {b.name}", kind)


def _fma(a: _Value, b: _Value | float, c: _Value | float) -> _Value:
    """Return a * b + c, rounded once."""
    return a.code.call("fma", a, a.code.value(b), a.code.value(c))


def _abs(x: _Value) -> _Value:
    return x.code.call("fabs", x)


def _sqrt(x: _Value) -> _Value:
    return x.code.call("sqrt", x)


def _floor(x: _Value) -> _Value:
    return x.code.call("floor", x)


def _with_sign(x: _Value, sign: _Value) -> _Value:
    return x.code.call("copysign", x, sign)


def _polynomial(x: _Value, name: str) -> _Value:
    """Evaluate a polynomial by pairs of terms, then pairs of pairs, so that few operations wait for others."""
    terms: list[_Value] = [x.code.value(c) for c in x.code.coefficients(name)]
    power = x
    while len(terms) > 1:
        terms = [_fma(power, b, a) for a, b in zip(terms[::2], terms[1::2])] + terms[len(terms) // 2 * 2 :]
        power = power * power
    return terms[0]


def _larger_first(a: _Value, b: _Value) -> tuple[_Value, _Value]:
    first = a > b
    return _where(first, a, b), _where(first, b, a)


# -- sums of two numbers ---------------------------------------------------------------------------------------------------------

#: A number and a smaller one, whose sum is meant.
_Pair = tuple[_Value, _Value]


def _sum(a: _Value, b: _Value) -> _Pair:
    """Return a sum and its error, which is exact."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _ordered_sum(a: _Value, b: _Value) -> _Pair:
    """Return a sum and its error, which is exact unless b is larger than a."""
    s = a + b
    return s, b - (s - a)


def _product(a: _Value, b: _Value | float) -> _Pair:
    """Return a product and its error, which is exact."""
    p = a * b
    return p, _fma(a, b, -p)


# -- exponentials ----------------------------------------------------------------------------------------------------------------


def _clamp(x: _Value, low: float, high: float) -> _Value:
    """Return a number between bounds; nan stays."""
    return _where(x < low, low, _where(x > high, high, x))


def _round(x: _Value) -> _Value:
    """Return the nearest integer of a number that is less than 2**51."""
    return (x + x.code.format.magic) - x.code.format.magic


def _power_of_two(n: _Value) -> _Value:
    """Return 2**n for an integer n such that it is a normal number."""
    f = n.code.format
    return ((n + (f.magic + f.bias)).bits() << f.digits).number()


def _exp_parts(x: _Value) -> _Pair:
    """Return n and exp(r) - 1, where exp(x) = 2**n * exp(r)."""
    f = x.code.format
    n = _fma(x, _LOG2_E[0], f.magic) - f.magic
    high, low = f.pair(_LN2)
    r = _fma(-n, low, _fma(-n, high, x))
    return n, _fma(r * r, _polynomial(r, "exp"), r)


def _scaled(n: _Value, e: _Value) -> _Value:
    """Return 2**n * (1 + e), which may be subnormal or infinite."""
    if n.code.wide:
        s = _power_of_two(n)
        return _fma(e, s, s)
    half = _round(n * 0.5)
    s = _power_of_two(half)
    return _fma(e, s, s) * _power_of_two(n - half)


def _exp(x: _Value) -> _Value:
    low, high = (-104.5, 89.0) if x.code.short else (-746.0, 710.0)
    return _scaled(*_exp_parts(_clamp(x, low, high)))


def _quarter(x: _Value) -> _Value:
    """Return (exp(x) - 1) / 4, which is finite a little beyond the largest argument of `sinh` that has a finite result."""
    n, e = _exp_parts(x)
    s = _power_of_two(n - 2.0)
    return _fma(e, s, s - 0.25)


def _expm1(x: _Value) -> _Value:
    result = _quarter(_clamp(x, -50.0, 89.0 if x.code.short else 710.0)) * 4.0
    return _where(_abs(x) < x.code.format.small**2, x, result)


def _most(x: _Value) -> float:
    """Return a number whose hyperbolic sine and cosine are infinite; those of larger ones are, too."""
    return 89.5 if x.code.short else 710.6


def _sinh(x: _Value) -> _Value:
    e = _quarter(_clamp(_abs(x), 0.0, _most(x)))
    result = _fma(e / (e + 0.25), 0.25, e) * 2.0
    return _where(_abs(x) < x.code.format.small, x, _with_sign(result, x))


def _cosh(x: _Value) -> _Value:
    n, e = _exp_parts(_clamp(_abs(x), 0.0, _most(x)))
    s = _power_of_two(n - 2.0)
    quarter = _fma(e, s, s)
    return _fma(quarter, 2.0, 0.125 / quarter)


def _tanh(x: _Value) -> _Value:
    e = _quarter(_clamp(_abs(x), 0.0, 22.0) * 2.0)
    return _where(_abs(x) < 0.5 * x.code.format.small, x, _with_sign(e / (e + 0.5), x))


# -- logarithms ------------------------------------------------------------------------------------------------------------------


def _split(x: _Value, *, subnormal: bool = True) -> _Pair:
    """Return k and m from sqrt(1/2) to sqrt(2), where x = 2**k * m is positive."""
    f = x.code.format
    subnormal = subnormal and not x.code.wide
    below: Any = None
    if subnormal:
        below = x < f.tiny
        x = _where(below, x * 2.0 ** (f.digits + 2), x)
    word, one = x.bits(), (f.bias + 1) << f.digits
    top = (word + (one - f.word(math.sqrt(0.5)))) >> f.digits  # k + bias + 1
    k = (top | f.word(2.0**f.digits)).number()
    m = (word - ((top << f.digits) - one)).number()
    offset = 2.0**f.digits + f.bias + 1
    return k - (_where(below, offset + (f.digits + 2), offset) if subnormal else offset), m


def _log_parts(m: _Value) -> _Pair:
    """Return two numbers whose sum is log(m), for m between sqrt(1/2) and sqrt(2); the first is exact."""
    f = m - 1.0
    s = f / (f + 2.0)
    z = s * s
    half = f * f * 0.5
    return f, _fma(s, _fma(z, _polynomial(z, "log"), half), -half)


def _log_limits(x: _Value, result: _Value) -> _Value:
    """Return a logarithm with its values at infinity, zero and negative numbers."""
    result = _where(x < _INFINITY, result, x)
    return _where(x > 0.0, result, _where(x.equals(0.0), -_INFINITY, math.nan))


def _log(x: _Value) -> _Value:
    k, m = _split(x)
    f, rest = _log_parts(m)
    high, low = x.code.format.pair(_LN2)
    return _log_limits(x, _fma(k, high, f + _fma(k, low, rest)))


def _log2(x: _Value) -> _Value:
    k, m = _split(x)
    f, rest = _log_parts(m)
    high, low = x.code.format.pair(_LOG2_E)
    p, e = _product(f, high)
    s, t = _sum(k, p)
    return _log_limits(x, s + (t + _fma(rest, high, _fma(f, low, e))))


def _log10(x: _Value) -> _Value:
    k, m = _split(x)
    f, rest = _log_parts(m)
    high, low = x.code.format.pair(_LOG10_E)
    step, step_low = x.code.format.pair(_LOG10_2)
    p, e = _product(f, high)
    q, d = _product(k, step)
    s, t = _sum(q, p)
    small = _fma(rest, high, _fma(f, low, e)) + _fma(k, step_low, d)
    return _log_limits(x, s + (t + small))


def _log_of_sum(u: _Value, c: _Value, doublings: _Value | None = None) -> _Value:
    """Return log(u + c), where c is small beside u, plus a number of times log(2)."""
    k, m = _split(u, subnormal=False)
    if doublings is not None:
        k = k + doublings
    f, rest = _log_parts(m)
    high, low = u.code.format.pair(_LN2)
    return _fma(k, high, f + _fma(k, low, rest + c / u))


def _log1p(x: _Value) -> _Value:
    u, c = _sum(x.code.value(1.0), x)
    result = _where(x < _INFINITY, _log_of_sum(u, c), x)
    result = _where(x > -1.0, result, _where(x.equals(-1.0), -_INFINITY, math.nan))
    return _where(_abs(x) < x.code.format.small**2, x, result)


def _asinh(x: _Value) -> _Value:
    a = _abs(x)
    square = a * a
    large = a > 2.0 / x.code.format.small
    t = a + square / (_sqrt(square + 1.0) + 1.0)
    u, c = _sum(x.code.value(1.0), t)
    result = _log_of_sum(_where(large, a, u), _where(large, 0.0, c), _where(large, 1.0, 0.0))
    result = _where(a < _INFINITY, result, a)
    return _where(a < x.code.format.small, x, _with_sign(result, x))


def _acosh(x: _Value) -> _Value:
    t = x - 1.0
    large = x > 2.0 / x.code.format.small
    t = t + _sqrt(_fma(t, t, t * 2.0))
    u, c = _sum(x.code.value(1.0), t)
    result = _log_of_sum(_where(large, x, u), _where(large, 0.0, c), _where(large, 1.0, 0.0))
    result = _where(x < _INFINITY, result, x)
    return _where(x >= 1.0, result, math.nan)


def _atanh(x: _Value) -> _Value:
    a = _abs(x)
    return _where(a < x.code.format.small, x, _with_sign(_log1p((a + a) / (1.0 - a)) * 0.5, x))


# -- powers ----------------------------------------------------------------------------------------------------------------------


def _log2_pair(x: _Value) -> _Pair:
    """Return log2 of a positive number with 65 correct bits; for a result in float32, one float64 number and zero."""
    k, m = _split(x)
    f = m - 1.0
    d, d_rest = _ordered_sum(x.code.value(2.0), f)
    inverse = 1.0 / d
    s = f * inverse
    if x.code.wide:
        z = s * s
        factor = _fma(z * z, _polynomial(z, "pow"), _fma(z, _THIRD[0], 1.0))
        return _fma(s * factor, 2.0 * _LOG2_E[0], k), x.code.value(0.0)
    s_rest = _fma(-s, d_rest, _fma(-s, d, f)) * inverse
    z = s * s
    z_rest = _fma(s + s, s_rest, _fma(s, s, -z))
    series, e = _product(z, _THIRD[0])
    series_rest = _fma(z * z, _polynomial(z, "pow"), _fma(z_rest, _THIRD[0], _fma(z, _THIRD[1], e)))
    cubic, e = _product(s, series)
    cubic_rest = _fma(s, series_rest, _fma(s_rest, series, e))
    total, e = _ordered_sum(s, cubic)
    total_rest = e + (s_rest + cubic_rest)
    scaled, e = _product(total, 2.0 * _LOG2_E[0])
    scaled_rest = _fma(total_rest, 2.0 * _LOG2_E[0], _fma(total, 2.0 * _LOG2_E[1], e))
    high, low = _sum(k, scaled)
    return _ordered_sum(high, low + scaled_rest)


def _pow(x: _Value, y: _Value) -> _Value:
    a = _abs(x)
    high, low = _log2_pair(a)
    limit = _where(a.equals(0.0), -_INFINITY, _INFINITY)
    finite = (a > 0.0) & (a < _INFINITY)
    high = _where(finite, high, _where(a.equals(a), limit, a))
    p = high * y
    bounded = _abs(p) < 1100.0
    rest = _where(bounded, _fma(high, y, -p) + low * y, 0.0)
    p = _clamp(p, -1100.0, 1100.0)
    n = _round(p)
    r = p - n
    t = _fma(r, _LN2[0], _fma(r, _LN2[1], rest * _LN2[0]))
    e = _fma(t * t, _polynomial(t, "exp"), t)
    if x.code.wide:
        n = _clamp(n, -1000.0, 1000.0)
    result = _where(a.equals(1.0), 1.0, _scaled(n, e))
    is_integer = _floor(y).equals(y)
    half = y * 0.5
    is_odd = is_integer & _floor(half).differs(half)
    result = (result.bits() ^ _where(is_odd, x.bits() & -(1 << 63), 0)).number()
    undefined = (x < 0.0) & (a < _INFINITY) & (is_integer ^ 1)
    result = _where(undefined, math.nan, result)
    result = _where(y.equals(y), result, y)
    return _where(x.equals(1.0) | y.equals(0.0), 1.0, result)


def _hypot(x: _Value, y: _Value) -> _Value:
    a, b = _abs(x), _abs(y)
    if x.code.wide:
        result = _sqrt(_fma(a, a, b * b))
    else:
        large, small = _larger_first(a, b)
        huge, tiny = large > 2.0**500, large < 2.0**-500
        down, up = _where(huge, 2.0**-600, 1.0), _where(huge, 2.0**600, 1.0)
        down, up = _where(tiny, 2.0**600, down), _where(tiny, 2.0**-600, up)
        large, small = large * down, small * down
        result = _sqrt(_fma(large, large, small * small)) * up
    return _where(a.equals(_INFINITY) | b.equals(_INFINITY), _INFINITY, result)


# -- trigonometric functions -----------------------------------------------------------------------------------------------------


def _reduce(x: _Value) -> tuple[_Value, _Value, _Value]:
    """Return x - n * pi/2 as a pair, and an integer that ends in the bits of n, for numbers that are not far."""
    f = x.code.format
    first, second, third = f.triple(_HALF_PI)
    t = _fma(x, 2.0 / math.pi, f.magic)
    n = t - f.magic
    r = _fma(-n, first, x)  # exact
    p, e = _product(n, second)
    high, low = _sum(r, -p)
    return high, low - _fma(n, third, e), t.bits()


def _sine(high: _Value, low: _Value) -> _Value:
    z = high * high
    return _fma(high * z, _polynomial(z, "sin"), low) + high


def _cosine(high: _Value, low: _Value) -> _Value:
    z = high * high
    w = _fma(z, -0.5, 1.0)
    return w + (_fma(z, -0.5, 1.0 - w) + _fma(z * z, _polynomial(z, "cos"), -(high * low)))


def _sine_of(high: _Value, low: _Value, n: _Value) -> _Value:
    """Return the sine of a pair plus n * pi/2."""
    result = _where((n & 1).differs(0), _cosine(high, low), _sine(high, low))
    return (result.bits() ^ ((n & 2) << (n.code.format.size - 2))).number()


def _cosine_of(high: _Value, low: _Value, n: _Value) -> _Value:
    return _sine_of(high, low, n + 1)


def _tangent_of(high: _Value, low: _Value, n: _Value) -> _Value:
    s, c = _sine(high, low), _cosine(high, low)
    odd = (n & 1).differs(0)
    result = _where(odd, c, s) / _where(odd, s, c)
    return (result.bits() ^ ((n & 1) << (n.code.format.size - 1))).number()


def _periodic(of: Callable[[_Value, _Value, _Value], _Value], name: str, *, odd: bool) -> Callable[[_Value], _Value]:
    def function(x: _Value) -> _Value:
        c, kind, suffix = x.code, x.kind, x.code.format.suffix
        result = of(*_reduce(x))
        if odd:
            result = _where(_abs(x) < c.format.small, x, result)
        far = f"xpgrad.{name}.far.{suffix}"
        c.texts |= {
            "llvm.ctlz.i64": "declare i64 @llvm.ctlz.i64(i64, i1)",
            "llvm.fma.f64": "declare double @llvm.fma.f64(double, double, double)",
        }
        c.texts |= {"xpgrad.reduce": _FAR_REDUCTION} | _far(of, far, c.format)
        bound = f"{kind} 0x{_word(c.format.far):016X}"
        for n in c.widths:
            c.texts[f"llvm.vector.reduce.or.v{n}i1"] = f"declare i1 @llvm.vector.reduce.or.v{n}i1(<{n} x i1>)"
            c.texts[f"llvm.fabs.v{n}{suffix}"] = f"declare <{n} x {kind}> @llvm.fabs.v{n}{suffix}(<{n} x {kind}>)"
            vector = f"<{n} x {kind}>"
            parts = {"NAME": far, "COUNT": str(n), "LIST": ", ".join([bound] * n), "VECTOR": vector, "KIND": kind, "SUFFIX": suffix}
            c.variants[f"{far}.{n}"] = functools.reduce(lambda text, part: text.replace(*part), parts.items(), _FAR_VARIANT)
        variants = ",".join(f"_ZGV_LLVM_N{n}vv_{far}({far}.{n})" for n in c.widths)
        # NB: an attribute of the call, not of the function, which the variants call in loops.
        return c.emit(f'call {kind} @{far}({kind} {x.name}, {kind} {result.name}) "vector-function-abi-variant"="{variants}"', kind)

    return function


def _far(of: Callable[[_Value, _Value, _Value], _Value], name: str, form: _Format) -> dict[str, str]:
    """Return the texts, by name, of a function that replaces the result for a large number, and of those that it calls."""
    kind, c, outer = form.kind, _Code(_DOUBLE, short=False), _Code(form, short=False)
    is_far = _abs(_Value(outer, "%x", kind)) >= form.far
    lines = [*outer.lines, f"  br i1 {is_far.name}, label %far, label %near", "near:", f"  ret {kind} %y", "far:"]
    lines.append("  %long = fpext float %x to double" if form is _SINGLE else "  %long = fadd double %x, 0.0")
    lines.append("  %parts = call {double, double, i64} @xpgrad.reduce(double %long)")
    c.count = outer.count
    kinds = ("double", "double", "i64")
    result = of(*(c.emit(f"extractvalue {{double, double, i64}} %parts, {k}", kind) for k, kind in enumerate(kinds)))
    if form is _SINGLE:
        result = c.emit(f"fptrunc double {result.name} to float", "float")
    head = f"define internal {kind} @{name}({kind} %x, {kind} %y) noinline optsize {_ATTRIBUTES} {{"
    return {**outer.texts, **c.texts, name: "\n".join([head, *lines, *c.lines, f"  ret {kind} {result.name}", "}"])}


_FAR_VARIANT = f"""\
define internal VECTOR @NAME.COUNT(VECTOR %x, VECTOR %y) noinline optsize {_ATTRIBUTES} {{
entry:
  %size = call VECTOR @llvm.fabs.vCOUNTSUFFIX(VECTOR %x)
  %far = fcmp oge VECTOR %size, <LIST>
  %any = call i1 @llvm.vector.reduce.or.vCOUNTi1(<COUNT x i1> %far)
  br i1 %any, label %each, label %near
near:
  ret VECTOR %y
each:
  %i = phi i32 [0, %entry], [%j, %each]
  %results = phi VECTOR [%y, %entry], [%changed, %each]
  %number = extractelement VECTOR %x, i32 %i
  %result = extractelement VECTOR %results, i32 %i
  %new = call KIND @NAME(KIND %number, KIND %result)
  %changed = insertelement VECTOR %results, KIND %new, i32 %i
  %j = add i32 %i, 1
  %more = icmp ult i32 %j, COUNT
  br i1 %more, label %each, label %end
end:
  ret VECTOR %changed
}}"""


#: A number that is far is m * 2**e, and the digits of 2/pi that make multiples of 4 or vanish beside them are left out.
_FAR_REDUCTION = f"""\
@xpgrad.digits = internal constant [{len(DIGITS)} x i64] [{", ".join(f"i64 {d}" for d in DIGITS)}]
define internal {{double, double, i64}} @xpgrad.reduce(double %x) noinline optsize {_ATTRIBUTES} {{
  %bits = bitcast double %x to i64
  %top = lshr i64 %bits, 52
  %exponent = and i64 %top, 2047
  %fraction = and i64 %bits, {2**52 - 1}
  %m = or i64 %fraction, {2**52}
  %offset = sub i64 %exponent, 1013
  %index = lshr i64 %offset, 6
  %shift = and i64 %offset, 63
  %at = getelementptr i64, ptr @xpgrad.digits, i64 %index
  %at1 = getelementptr i64, ptr %at, i64 1
  %at2 = getelementptr i64, ptr %at, i64 2
  %at3 = getelementptr i64, ptr %at, i64 3
  %d0 = load i64, ptr %at
  %d1 = load i64, ptr %at1
  %d2 = load i64, ptr %at2
  %d3 = load i64, ptr %at3
  %down = xor i64 %shift, 63
  %d1.half = lshr i64 %d1, 1
  %d2.half = lshr i64 %d2, 1
  %d3.half = lshr i64 %d3, 1
  %d1.in = lshr i64 %d1.half, %down
  %d2.in = lshr i64 %d2.half, %down
  %d3.in = lshr i64 %d3.half, %down
  %d0.up = shl i64 %d0, %shift
  %d1.up = shl i64 %d1, %shift
  %d2.up = shl i64 %d2, %shift
  %w0 = or i64 %d0.up, %d1.in
  %w1 = or i64 %d1.up, %d2.in
  %w2 = or i64 %d2.up, %d3.in
  %m.wide = zext i64 %m to i128
  %w1.wide = zext i64 %w1 to i128
  %w2.wide = zext i64 %w2 to i128
  %p2 = mul i128 %m.wide, %w2.wide
  %p2.high = lshr i128 %p2, 64
  %p1 = mul i128 %m.wide, %w1.wide
  %p1.sum = add i128 %p1, %p2.high
  %p0 = mul i64 %m, %w0
  %p0.wide = zext i64 %p0 to i128
  %p0.up = shl i128 %p0.wide, 64
  %product = add i128 %p0.up, %p1.sum
  %rounded = add i128 %product, {1 << 125}
  %quadrant.wide = lshr i128 %rounded, 126
  %quadrant = trunc i128 %quadrant.wide to i64
  %whole = shl i128 %quadrant.wide, 126
  %signed = sub i128 %product, %whole
  %sign = ashr i128 %signed, 127
  %flipped = xor i128 %signed, %sign
  %size = and i128 %flipped, {(1 << 126) - 1}
  %first.wide = lshr i128 %size, 64
  %first = trunc i128 %first.wide to i64
  %second = trunc i128 %size to i64
  %zeros = call i64 @llvm.ctlz.i64(i64 %first, i1 false)
  %none = icmp eq i64 %zeros, 64
  %more = call i64 @llvm.ctlz.i64(i64 %second, i1 false)
  %more.used = select i1 %none, i64 %more, i64 0
  %all = add i64 %zeros, %more.used
  %all.wide = zext i64 %all to i128
  %normal = shl i128 %size, %all.wide
  %high.wide = lshr i128 %normal, 75
  %high.int = trunc i128 %high.wide to i64
  %low.wide = lshr i128 %normal, 22
  %low.long = trunc i128 %low.wide to i64
  %low.int = and i64 %low.long, {2**53 - 1}
  %high.number = uitofp i64 %high.int to double
  %low.number = uitofp i64 %low.int to double
  %scale.exponent = sub i64 {1023 - 51}, %all
  %scale.bits = shl i64 %scale.exponent, 52
  %scale = bitcast i64 %scale.bits to double
  %h = fmul double %high.number, %scale
  %low.scaled = fmul double %low.number, {2.0**-53!r}
  %l = fmul double %low.scaled, %scale
  %r = fmul double %h, 0x{_word(_HALF_PI[0]):016X}
  %r.neg = fneg double %r
  %e = call double @llvm.fma.f64(double %h, double 0x{_word(_HALF_PI[0]):016X}, double %r.neg)
  %e1 = call double @llvm.fma.f64(double %h, double 0x{_word(_HALF_PI[1]):016X}, double %e)
  %e2 = call double @llvm.fma.f64(double %l, double 0x{_word(_HALF_PI[0]):016X}, double %e1)
  %x.sign = and i64 %bits, {-(1 << 63)}
  %sign.last = trunc i128 %sign to i64
  %sign.bit = shl i64 %sign.last, 63
  %turn = xor i64 %sign.bit, %x.sign
  %r.bits = bitcast double %r to i64
  %e.bits = bitcast double %e2 to i64
  %r.turned = xor i64 %r.bits, %turn
  %e.turned = xor i64 %e.bits, %turn
  %high.found = bitcast i64 %r.turned to double
  %low.found = bitcast i64 %e.turned to double
  %infinite = icmp eq i64 %exponent, 2047
  %high = select i1 %infinite, double 0x7FF8000000000000, double %high.found
  %low = select i1 %infinite, double 0.0, double %low.found
  %is.negative = icmp slt i64 %bits, 0
  %quadrant.neg = sub i64 0, %quadrant
  %n = select i1 %is.negative, i64 %quadrant.neg, i64 %quadrant
  %one = insertvalue {{double, double, i64}} undef, double %high, 0
  %two = insertvalue {{double, double, i64}} %one, double %low, 1
  %three = insertvalue {{double, double, i64}} %two, i64 %n, 2
  ret {{double, double, i64}} %three
}}"""


# -- their inverses --------------------------------------------------------------------------------------------------------------


def _arc_tangent(numerator: _Value, denominator: _Value, add: tuple[_Value | float, _Value | float]) -> _Value:
    """Return atan(numerator / denominator), up to tan(pi/8), plus a pair."""
    t = numerator / denominator
    z = t * t
    rest = _fma(t * z, _polynomial(z, "atan"), add[1])
    return (t + rest) + add[0]


_EIGHTH = math.sqrt(2.0) - 1.0  # tan(pi/8)


def _angle(y: _Value, x: _Value) -> _Value:
    """Return atan(y / x) from 0 to pi/2 for numbers that are not negative."""
    below, above = y < x * _EIGHTH, y > x * (1.0 / _EIGHTH)
    numerator = _where(below, y, _where(above, -x, y - x))
    denominator = _where(below, x, _where(above, y, y + x))
    offsets = [_where(below, 0.0, _where(above, p, 0.5 * p)) for p in x.code.format.pair(_HALF_PI)]
    return _arc_tangent(numerator, denominator, (offsets[0], offsets[1]))


def _atan(x: _Value) -> _Value:
    return _where(_abs(x) < x.code.format.small, x, _with_sign(_angle(_abs(x), x.code.value(1.0)), x))


def _atan2(y: _Value, x: _Value) -> _Value:
    a, b = _abs(y), _abs(x)
    f = x.code.format
    large = _where(a > b, a, b) > 2.0 ** (f.bias - 4)
    a, b = (_where(large, v * 0.125, v) for v in (a, b))
    small = _where(a > b, a, b) < f.tiny / f.small**2
    a, b = (_where(small, v * 2.0**f.digits, v) for v in (a, b))
    alike = a.equals(b) & (a.equals(0.0) | a.equals(_INFINITY))
    acute = _angle(a, b)
    acute = _where(alike, _where(a.equals(0.0), 0.0, math.pi / 4), acute)
    acute = _where(a.equals(a) & b.equals(b), acute, a + b)
    negative = (x.bits() >> (f.size - 1)).differs(0)
    high, low = f.pair(_HALF_PI)
    obtuse = (2.0 * high - acute) + 2.0 * low
    return _with_sign(_where(negative, obtuse, acute), y)


def _arc_sine_rest(s: _Value, z: _Value) -> _Value:
    """Return asin(s) - s, where z is s * s and at most 1/4."""
    return s * z * _polynomial(z, "asin")


def _asin(x: _Value) -> _Value:
    a = _abs(x)
    outer = a > 0.5
    z = _where(outer, _fma(a, -0.5, 0.5), a * a)
    s = _where(outer, _sqrt(z), a)
    rest = _arc_sine_rest(s, z)
    inner = s + rest
    high, low = x.code.format.pair(_HALF_PI)
    result = _where(outer, high - (inner * 2.0 - low), inner)
    return _where(a < x.code.format.small, x, _with_sign(result, x))


def _acos(x: _Value) -> _Value:
    a = _abs(x)
    outer = a > 0.5
    z = _where(outer, _fma(a, -0.5, 0.5), a * a)
    s = _where(outer, _sqrt(z), x)
    inner = s + _arc_sine_rest(s, z)
    twice = inner * 2.0
    high, low = x.code.format.pair(_HALF_PI)
    far = _where(x < 0.0, 2.0 * high - (twice - 2.0 * low), twice)
    return _where(outer, far, high - (inner - low))


# -- all of them -----------------------------------------------------------------------------------------------------------------

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "acos": _acos,
    "acosh": _acosh,
    "asin": _asin,
    "asinh": _asinh,
    "atan": _atan,
    "atan2": _atan2,
    "atanh": _atanh,
    "cos": _periodic(_cosine_of, "cos", odd=False),
    "cosh": _cosh,
    "exp": _exp,
    "expm1": _expm1,
    "hypot": _hypot,
    "log": _log,
    "log10": _log10,
    "log1p": _log1p,
    "log2": _log2,
    "pow": _pow,
    "sin": _periodic(_sine_of, "sin", odd=True),
    "sinh": _sinh,
    "tan": _periodic(_tangent_of, "tan", odd=True),
    "tanh": _tanh,
}


#: Those that compute results for float32 in float64, since their parts need more digits than float32 has.
_WIDE = [_hypot, _pow]


def has_function(name: str) -> bool:
    """Return whether `own_function` has one of C's functions."""
    return name in _FUNCTIONS


@functools.cache
def own_function(name: str, dtype: str, count: int, vector_bits: int) -> tuple[str, dict[str, str], dict[str, str]]:
    """Return the name of a function; the texts, by name, of it and of all that it calls; and those of variants for vectors.

    Parameters
    ----------
    name : str
        The function's name in C, for float64.
    dtype : str
        float64 or float32.
    count : int
        The number of arguments.
    vector_bits : int
        The width of vectors.
    """
    single = dtype == "float32"
    convert = single and _FUNCTIONS[name] in _WIDE
    c = _Code(_SINGLE if single and not convert else _DOUBLE, short=single, widths=(vector_bits // 64, vector_bits // 32))
    symbol, t = f"xpgrad.{name}{'f' if single else ''}", "float" if single else "double"
    given = [f"%x{k}" for k in range(count)]
    arguments = [c.emit(f"fpext float {x} to double", "double") if convert else _Value(c, x, t) for x in given]
    result = _FUNCTIONS[name](*arguments)
    if convert:
        result = c.emit(f"fptrunc double {result.name} to float", "float")
    head = f"define internal {t} @{symbol}({', '.join(f'{t} {x}' for x in given)}) alwaysinline {_ATTRIBUTES} {{"
    text = "\n".join([head, "entry:", *c.lines, f"  ret {t} {result.name}", "}"])
    return symbol, {**c.texts, symbol: text}, c.variants
