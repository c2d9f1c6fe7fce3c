"""The functions of `numpy.emath`, which give complex numbers where those of `numpy` with the same names give nan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import xpgrad as xp
from xpgrad._numpy.operands import as_floating, can_read_values, lift
from xpgrad._numpy.table import implements

_NOTE = "complex if one of the arguments is outside of the domain of real results; in `vmap` and compiled functions always"


def _is_negative(x: Any) -> Any:
    return x < 0


def _exceeds_one(x: Any) -> Any:
    return xp.abs(x) > 1


def _extend(x: Any, is_outside: Callable[[Any], Any]) -> Any:
    """Return `x` as complex numbers if a value is outside of the domain of real results, or if values cannot be read."""
    if x.dtype.is_complex or (can_read_values(x) and not bool(xp.any(is_outside(x.detach())))):
        return x
    return as_floating(x) + 0j


def _implement(name: str, function: Callable[[Any], Any], is_outside: Callable[[Any], Any]) -> None:
    @implements(f"emath.{name}", note=_NOTE)
    def compute(x: Any) -> Any:
        (t,) = lift(name, x)
        return function(as_floating(_extend(t, is_outside)))


for _name, _function in {"sqrt": xp.sqrt, "log": xp.log, "log2": xp.log2, "log10": xp.log10}.items():
    _implement(_name, _function, _is_negative)
for _name, _function in {"arccos": xp.acos, "arcsin": xp.asin, "arctanh": xp.atanh}.items():
    _implement(_name, _function, _exceeds_one)


@implements("emath.logn", note=_NOTE)
def _logn(n: Any, x: Any) -> Any:
    base, t = (xp.log(as_floating(_extend(t, _is_negative))) for t in lift("logn", n, x))
    return t / base


@implements("emath.power", note=_NOTE)
def _power(x: Any, p: Any) -> Any:
    base, exponent = lift("power", x, p)
    if not exponent.dtype.differentiable and (not can_read_values(exponent) or bool(xp.any(exponent < 0))):
        exponent = as_floating(exponent)  # powers of integers with negative exponents are not integers
    return xp.pow(_extend(base, _is_negative), exponent)
