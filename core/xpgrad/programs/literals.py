"""Print numbers, shapes, keys, operators and casts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from xpgrad._rows.kernels import kernel_of
from xpgrad._rows.operators import Operator
from xpgrad.programs.program import Variable

__all__ = ["augmented_text", "cast_text", "key_text", "number_text", "operator_text", "text_of"]


def number_text(x: complex, module: str = "np.") -> str:
    """Print a Python number exactly; ``inf`` and ``nan``, which have no literals, are taken from `module`."""
    if isinstance(x, float) and not math.isfinite(x):
        return f"{module}nan" if x != x else f"{module}inf" if x > 0 else f"-{module}inf"
    if isinstance(x, complex):
        return f"complex({number_text(x.real, module)}, {number_text(x.imag, module)})"
    return float.__repr__(x) if isinstance(x, float) else repr(x)


def text_of(x: Any, name: Callable[[Any], str], module: str = "np.") -> str:
    """Print nested tuples and lists of variables, numbers and slices; `name` names variables and all other objects."""
    if x.__class__ is Variable:
        return name(x)
    if x is None or x is Ellipsis or isinstance(x, (str, bool, int)):
        return "..." if x is Ellipsis else _plain_text(x)
    if isinstance(x, (float, complex)):
        return number_text(x, module)
    if isinstance(x, tuple):
        inner = ", ".join([text_of(i, name, module) for i in x])
        return f"({inner},)" if len(x) == 1 else f"({inner})"
    if isinstance(x, list):
        return f"[{', '.join([text_of(i, name, module) for i in x])}]"
    if isinstance(x, slice):
        return f"slice({', '.join(text_of(p, name, module) for p in (x.start, x.stop, x.step))})"
    return name(x)


def _plain_text(x: Any) -> str:
    """Print None, a bool, an int or a string. What a subclass of int or str says of itself never gets into a source that is executed."""
    if x is None or isinstance(x, bool):
        return repr(x)
    return str.__repr__(x) if isinstance(x, str) else int.__repr__(operator.index(x))


def operator_text(name: str, args: list[str]) -> str:
    """Print a kernel as Python's operator between printed operands."""
    found = kernel_of(name).operator
    assert found is not None
    symbol = found.symbol
    if len(args) == 1:
        return f"{symbol}{args[0]}"
    left = f"({args[0]})" if name == "pow" and args[0][0] == "-" else args[0]
    return f"{left} {symbol} {args[1]}"


def augmented_text(sign: Operator | None, target: str, args: list[str]) -> str | None:
    """Return an operation as ``target += other`` if one of its operands is `target` and the operator allows that, else None."""
    if sign is None or sign.update is None or sign.symbol == "**" or target not in args:
        return None
    if args[0] == target:
        return f"{target} {sign.symbol}= {args[1]}"
    return f"{target} {sign.symbol}= {args[0]}" if sign.commutes else None


def cast_text(text: str, x: Variable, out: Variable, dtype: str) -> str:
    """Print a cast for NumPy: complex numbers become their real part, or for bools whether they are nonzero."""
    real = ".real" if x.dtype.is_complex and not out.dtype.is_complex and out.dtype.name != "bool" else ""
    return f"{text}{real}.astype({dtype})"


def key_text(key: Any, shape: tuple[int, ...], name: Callable[[Any], str]) -> str:
    """Print the key of ``x[...]``, without slice bounds that are the ends of their axis."""
    parts = key if key.__class__ is tuple else (key,)
    if not parts:
        return "()"
    basic = not any(p.__class__ is Variable for p in parts)
    used = sum(p is not None and p is not Ellipsis for p in parts)
    texts = []
    axis = 0
    for part in parts:
        if part.__class__ is slice:
            texts.append(_slice_text(part, shape[axis] if basic and axis < len(shape) else None))
        else:
            texts.append(text_of(part, name))
        axis += len(shape) - used if part is Ellipsis else part is not None
    return ", ".join(texts) if len(texts) > 1 or key.__class__ is not tuple or basic else f"{texts[0]},"


def _slice_text(part: slice, length: int | None) -> str:
    start, stop, step = part.start, part.stop, part.step
    if length is not None and (step is None or step > 0):
        start = None if start == 0 else start
        stop = None if stop is not None and stop >= length else stop
    text = f"{'' if start is None else _plain_text(start)}:{'' if stop is None else _plain_text(stop)}"
    return text if step in (None, 1) else f"{text}:{_plain_text(step)}"
