"""Python's operators: each symbol with its special methods and functions, in one table."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple


class Operator(NamedTuple):
    """A Python operator and the functions that implement it.

    Attributes
    ----------
    symbol : str
    method, reflected : str, str or None
        The special methods, such as ``"__add__"`` and ``"__radd__"``.
    function : callable
        The function that computes it.
    update : callable or None
        The function that computes it in place, for floating-point arithmetic.
    commutes : bool
    """

    symbol: str
    method: str
    reflected: str | None
    function: Callable[..., Any]
    update: Callable[..., Any] | None = None
    commutes: bool = False

    @property
    def in_place(self) -> str | None:
        """The special method for ``x OP= y``, such as ``"__iadd__"``; None for comparisons."""
        return f"__i{self.method[2:]}" if self.reflected is not None or self.symbol == "@" else None


#: Operators of two operands, by symbol.
BINARY: dict[str, Operator] = {
    found.symbol: found
    for found in (
        Operator("+", "__add__", "__radd__", operator.add, operator.iadd, commutes=True),
        Operator("-", "__sub__", "__rsub__", operator.sub, operator.isub),
        Operator("*", "__mul__", "__rmul__", operator.mul, operator.imul, commutes=True),
        Operator("/", "__truediv__", "__rtruediv__", operator.truediv, operator.itruediv),
        Operator("//", "__floordiv__", "__rfloordiv__", operator.floordiv),
        Operator("%", "__mod__", "__rmod__", operator.mod),
        Operator("**", "__pow__", "__rpow__", operator.pow, operator.ipow),
        Operator("@", "__matmul__", None, operator.matmul),
        Operator("&", "__and__", "__rand__", operator.and_),
        Operator("|", "__or__", "__ror__", operator.or_),
        Operator("^", "__xor__", "__rxor__", operator.xor),
        Operator("<<", "__lshift__", "__rlshift__", operator.lshift),
        Operator(">>", "__rshift__", "__rrshift__", operator.rshift),
        Operator("==", "__eq__", None, operator.eq),
        Operator("!=", "__ne__", None, operator.ne),
        Operator("<", "__lt__", None, operator.lt),
        Operator("<=", "__le__", None, operator.le),
        Operator(">", "__gt__", None, operator.gt),
        Operator(">=", "__ge__", None, operator.ge),
    )
}

#: Operators of one operand, by symbol.
UNARY: dict[str, Operator] = {
    "-": Operator("-", "__neg__", None, operator.neg),
    "+": Operator("+", "__pos__", None, operator.pos),
    "~": Operator("~", "__invert__", None, operator.invert),
}


def find_operator(symbol: str | None, operands: int) -> Operator | None:
    """Return the operator of a symbol with that number of operands; None if `symbol` is None.

    Raises
    ------
    KeyError
        If Python has no such operator.
    """
    return None if symbol is None else (UNARY if operands == 1 else BINARY)[symbol]
