"""The scalar operations of machine code: how it computes an elementwise kernel for single numbers, and for which dtypes.

A kernel that is not here is computed by NumPy. Numbers in a program take the dtype of the arrays beside them, as in NumPy. All numbers
here are real: `complexes.py` makes real operations of complex ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["FLOATS", "INTEGERS", "SCALARS", "SIZES", "Scalar", "can_cast", "has_scalar"]

FLOATS = frozenset(("float64", "float32"))
INTEGERS = frozenset(("int64", "int32"))
#: The dtypes of arrays in machine code, with the bytes of an element.
SIZES = {"float64": 8, "float32": 4, "int64": 8, "int32": 4, "bool": 1}

_NUMBERS = FLOATS | INTEGERS
_BOOL = frozenset(("bool",))
_ANY = _NUMBERS | _BOOL


@dataclass(frozen=True, slots=True)
class Scalar:
    """How machine code computes a kernel for single numbers.

    Attributes
    ----------
    form : str
        How code generators write it. "arithmetic", "comparison" and "bits": an instruction for two operands. "rounding": a function that
        processors have. "function": a function of C's library. "precise": the same, without the vector functions of glibc, whose errors are
        larger. "special": a separate rule.
    code : str
        The name of the instruction or function, as in LLVM or C.
    takes : frozenset of str
        The dtypes of its operands, which are all equal, but for the condition of a selection.
    makes : str
        "same": the result has the dtype of the operands. "bool": a truth.
    """

    form: str
    code: str
    takes: frozenset[str] = FLOATS
    makes: str = "same"


def _function(code: str) -> Scalar:
    return Scalar("function", code)


def _precise(code: str) -> Scalar:
    return Scalar("precise", code)


def _rounding(code: str) -> Scalar:
    return Scalar("rounding", code)


def _comparison(code: str) -> Scalar:
    return Scalar("comparison", code, _ANY, "bool")


def _truth(code: str, takes: frozenset[str] = FLOATS) -> Scalar:
    return Scalar("special", code, takes, "bool")


#: Every scalar operation by the name of its kernel. The formulas of complex numbers have some that are no kernels: "multiply_add" is
#: x * y + z, rounded once where processors can do that.
SCALARS: dict[str, Scalar] = {
    # arithmetic
    "add": Scalar("arithmetic", "add", _NUMBERS),
    "subtract": Scalar("arithmetic", "sub", _NUMBERS),
    "multiply": Scalar("arithmetic", "mul", _NUMBERS),
    "scale": Scalar("arithmetic", "mul", _NUMBERS),
    "divide": Scalar("arithmetic", "div"),
    "abs": Scalar("special", "abs", _NUMBERS),
    "copy": Scalar("special", "copy", _ANY),
    "maximum": Scalar("special", "gt", _NUMBERS),
    "minimum": Scalar("special", "lt", _NUMBERS),
    "negative": Scalar("special", "neg", _NUMBERS),
    "positive": Scalar("special", "copy", _NUMBERS),
    "reciprocal": Scalar("special", "reciprocal"),
    "multiply_add": Scalar("special", "fma"),
    "sign": Scalar("special", "sign"),
    "square": Scalar("special", "square", _NUMBERS),
    # comparisons, bits and selections
    "equal": _comparison("eq"),
    "greater": _comparison("gt"),
    "greater_equal": _comparison("ge"),
    "less": _comparison("lt"),
    "less_equal": _comparison("le"),
    "not_equal": _comparison("ne"),
    "bitwise_and": Scalar("bits", "and", INTEGERS | _BOOL),
    "bitwise_or": Scalar("bits", "or", INTEGERS | _BOOL),
    "bitwise_xor": Scalar("bits", "xor", INTEGERS | _BOOL),
    "logical_and": Scalar("bits", "and", _BOOL),
    "logical_or": Scalar("bits", "or", _BOOL),
    "logical_xor": Scalar("bits", "xor", _BOOL),
    "logical_not": _truth("not", _BOOL),
    "isfinite": _truth("isfinite"),
    "isinf": _truth("isinf"),
    "isnan": _truth("isnan"),
    "signbit": _truth("signbit"),
    "keep": Scalar("special", "keep", _ANY),
    "share": Scalar("special", "share"),
    "where": Scalar("special", "where", _ANY),
    # functions
    "ceil": _rounding("ceil"),
    "copysign": _rounding("copysign"),
    "floor": _rounding("floor"),
    "round": _rounding("roundeven"),
    "sqrt": _rounding("sqrt"),
    "trunc": _rounding("trunc"),
    "acos": _function("acos"),
    "acosh": _function("acosh"),
    "asin": _function("asin"),
    "asinh": _function("asinh"),
    "atan": _function("atan"),
    "atan2": _function("atan2"),
    "atanh": _function("atanh"),
    "cos": _function("cos"),
    "cos_precise": _precise("cos"),
    "cosh": _function("cosh"),
    "cosh_precise": _precise("cosh"),
    "exp": _function("exp"),
    "exp_precise": _precise("exp"),
    "expm1": _function("expm1"),
    "hypot": _function("hypot"),
    "log": _function("log"),
    "log10": _function("log10"),
    "log1p": _function("log1p"),
    "log2": _function("log2"),
    "pow": _function("pow"),
    "sin": _function("sin"),
    "sin_precise": _precise("sin"),
    "sinh": _function("sinh"),
    "sinh_precise": _precise("sinh"),
    "tan": _function("tan"),
    "tanh": _function("tanh"),
}


def can_cast(source: str, target: str) -> bool:
    """Return whether machine code converts a dtype as NumPy does. Floats to integers are excluded: the result is undefined out of range."""
    return source in SIZES and target in SIZES and not (source in FLOATS and target in INTEGERS)


def has_scalar(name: str, dtype: str, operands: Sequence[Any]) -> bool:
    """Return whether machine code computes an elementwise kernel.

    Parameters
    ----------
    name : str
        The kernel.
    dtype : str
        The dtype of its result.
    operands : sequence
        For each argument the name of its dtype, or a number.
    """
    scalar = SCALARS.get(name)
    if scalar is None:
        return False
    if scalar.code in ("where", "keep"):
        if operands[0] != "bool":
            return False
        operands = operands[1:]
    kind = dtype if scalar.makes == "same" else next((x for x in operands if isinstance(x, str)), "")
    if kind not in scalar.takes or (scalar.makes == "bool" and dtype != "bool"):
        return False
    return all(x == kind if isinstance(x, str) else _holds(kind, x) for x in operands)


def _holds(dtype: str, number: Any) -> bool:
    """Return whether a number keeps its value as an operand of this dtype."""
    if isinstance(number, bool):
        return True
    if isinstance(number, int):
        return dtype in FLOATS or (dtype in INTEGERS and -(2 ** (8 * SIZES[dtype] - 1)) <= number < 2 ** (8 * SIZES[dtype] - 1))
    return isinstance(number, float) and dtype in FLOATS
