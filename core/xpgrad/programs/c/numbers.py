"""Names of types in C, and numbers as literals."""

from __future__ import annotations

import math
import struct
from typing import Any

from xpgrad.programs.scalars import FLOATS

__all__ = ["PARTS", "SUFFIXES", "TYPES", "UNSIGNED", "VALUE_TYPES", "number_text"]

#: The types of elements in memory; a truth is a byte there.
TYPES = {"float64": "double", "float32": "float", "int64": "int64_t", "int32": "int32_t", "bool": "uint8_t"}
#: The dtypes of the real and imaginary parts of complex numbers, which lie in memory in turns.
PARTS = {"complex128": "float64", "complex64": "float32"}
#: The types of variables.
VALUE_TYPES = {**TYPES, "bool": "bool"}
#: The ends of the names of functions for a dtype.
SUFFIXES = {"float64": "", "float32": "f", "int64": "_i64", "int32": "_i32", "bool": "_b"}
UNSIGNED = {"int64": "uint64_t", "int32": "uint32_t"}


def number_text(value: Any, dtype: str) -> str:
    """Print a number as a literal of a dtype."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype not in FLOATS:
        value = int(value)
        if value == -(2**63):
            return "INT64_MIN"
        if value == -(2**31):
            return "INT32_MIN"
        return str(value) if abs(value) < 2**31 else f"INT64_C({value})" if value > 0 else f"-INT64_C({-value})"
    value = float(value)
    if dtype == "float32":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    if not math.isfinite(value):
        return "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
    if dtype == "float64":
        return repr(value)
    digits = next(n for n in range(1, 10) if struct.pack("<f", float(f"{value:.{n}g}")) == struct.pack("<f", value))
    text = f"{value:.{digits}g}"
    return f"{text if '.' in text or 'e' in text else f'{text}.0'}f"
