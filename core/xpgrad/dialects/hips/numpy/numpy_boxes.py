"""The class of traced arrays, under the name in HIPS autograd."""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips._arrays import ARRAY

__all__ = ["ArrayBox"]

#: The class of the values that replace arrays and numbers while a function is differentiated.
ArrayBox: Any = ARRAY
