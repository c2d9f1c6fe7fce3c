"""The names of `numpy`, and the tool that HIPS autograd wraps other modules of functions with."""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips._arrays import np as _np
from xpgrad.dialects.hips.numpy import _making
from xpgrad.dialects.hips.numpy._making import array, array_from_args, concatenate_args, make_diagonal, wrap_if_boxes_inside

__all__ = ["array", "array_from_args", "concatenate_args", "make_diagonal", "wrap_if_boxes_inside", "wrap_namespace"]


def wrap_namespace(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Copy the functions, types and constants of a NumPy module's names `old` to `new`; NumPy dispatches its functions to Tensors."""
    new.update({name: value for name, value in old.items() if callable(value) or isinstance(value, (float, int, type(None)))})


def __getattr__(name: str) -> Any:
    """Return a name of NumPy, or what replaces it in the dialect."""
    found = _making.exported()
    if name not in found and name != "_np":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return _np if name == "_np" else found[name]
