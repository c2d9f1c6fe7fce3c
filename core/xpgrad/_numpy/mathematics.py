"""Python's `math`, `cmath` and `round` in code that was written for NumPy: numbers that are Tensors keep their derivatives."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any, cast

from xpgrad._numpy.operands import can_read_values
from xpgrad._numpy.semantics import is_followed, is_running
from xpgrad._numpy.table import FUNCTIONS, UFUNCS
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._tree import flatten, tree_map

__all__ = ["find_number_function", "round_number"]

#: NumPy: `chapters` loaded it.
_np: Any = sys.modules["numpy"]


def _special(name: str) -> Callable[..., Any]:
    # loads late: SciPy's functions, when the first is called
    return lambda x: getattr(importlib.import_module("xpgrad.scipy.special"), name)(x)


def _log(x: Any, *base: Any) -> Any:
    return _np.log(x) / _np.log(base[0]) if base else _np.log(x)


def _remainder(x: Any, y: Any) -> Any:
    return x - y * _np.rint(x / y)


def _distance(p: Any, q: Any) -> Any:
    return _np.sqrt(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)))


#: Those of `math` and `cmath` that are not NumPy's universal functions of the same name.
_OWN: dict[str, Callable[..., Any]] = {
    "dist": _distance,
    "erf": _special("erf"),
    "erfc": _special("erfc"),
    "fsum": sum,
    "gamma": _special("gamma"),
    "hypot": lambda *sides: functools.reduce(_np.hypot, sides) if sides[1:] else _np.fabs(*sides),
    "lgamma": _special("gammaln"),
    "log": _log,
    "phase": _np.angle,
    "polar": lambda z: (_np.abs(z), _np.angle(z)),
    "rect": lambda r, phi: r * _np.exp(1j * phi),
    "remainder": _remainder,
}
#: Step functions, whose values are not Tensors.
_STEPS = ("ceil", "floor", "isclose", "trunc")


def _find_rule(name: str) -> tuple[Any, bool]:
    """Return the function of Tensors that stands for one of Python's, or None, and whether its derivative is zero."""
    if name in _STEPS:
        return None, True
    if name in _OWN:
        return _OWN[name], False
    ufunc = UFUNCS.get(getattr(getattr(_np, name, None), "__name__", ""))
    return (None, False) if ufunc is None else (getattr(_np, name), not ufunc.differentiable)


def _as_number(x: Any) -> Any:
    return x._item("float(x)") if isinstance(x, Tensor) else x


def _as_scalar(x: Any) -> Any:
    return x.reshape(()) if isinstance(x, Tensor) and x.size == 1 else x


def _as_complex(x: Any) -> Any:
    return x.reshape(()) + 0j if isinstance(x, Tensor) else x


def find_number_function(function: Any) -> Any:
    """Return what stands for a function of `math` or `cmath`; None for anything else, also for those that compute with any number.

    As long as values can be read, Python's function is called with them, so that a number outside of its domain raises its error.
    """
    module = getattr(function, "__module__", None)
    if module not in ("math", "cmath") or not callable(function):
        return None
    name = function.__name__
    rule, is_step = _find_rule(name)
    if rule is None and not is_step:
        return None

    @functools.wraps(function)
    def compute(*args: Any, **options: Any) -> Any:
        if not is_running():
            return function(*args, **options)
        if name in ("dist", "fsum"):
            args = tuple(map(list, args))
        tensors = [x for x in flatten((args, options))[0] if isinstance(x, Tensor)]
        if not tensors:
            return function(*args, **options)
        if all(map(can_read_values, tensors)):
            value = function(*tree_map(_as_number, args), **tree_map(_as_number, options))
            if is_step or not any(map(is_followed, tensors)):
                return value
        if rule is None:
            return function(*args, **options)  # which raises, because it asks for a number
        return rule(*tree_map(_as_scalar if module == "math" or name == "rect" else _as_complex, args))

    return compute


def round_number(number: Any, ndigits: Any = None) -> Any:
    """Stand in for `round`: a scalar becomes an int, or a scalar with so many decimals, whose derivative is zero."""
    if not isinstance(number, Tensor) or not is_running() or number.ndim:
        return round(cast("Any", number), ndigits)
    return round(number._item("round(x)")) if ndigits is None else FUNCTIONS["round"].call(number, ndigits)
