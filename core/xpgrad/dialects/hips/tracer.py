"""Tell whether a value is traced, and get the value behind it, while a function is differentiated."""

from __future__ import annotations

from typing import Any

from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._records import raw_of

__all__ = ["Box", "getval", "isbox"]

#: The class of the values that replace arrays and numbers while a function is differentiated.
Box = Tensor


def isbox(x: Any) -> bool:
    """Return whether `x` is a traced value, which replaces an array or number while a function is differentiated."""
    return isinstance(x, Tensor)


def getval(x: Any) -> Any:
    """Return the array or number behind `x`, without history; return other objects unchanged."""
    return raw_of(x.detach()) if isinstance(x, Tensor) else x
