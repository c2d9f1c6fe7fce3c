"""Operators on functions of one argument as operators on functions of several, and names of functions made from others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from xpgrad.dialects.hips.differential_operators import unary_to_nary

__all__ = ["get_doc", "get_name", "unary_to_nary", "wrap_nary_f", "wraps"]


def get_name(f: Any) -> str:
    """Return the name of a function, or "[unknown name]"."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f: Any) -> Any:
    """Return the docstring of a function, or ""."""
    return getattr(f, "__doc__", "")


def wraps(fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: Any) -> Callable[[Any], Any]:
    """Decorate a function made from `fun` with a name and a docstring, in which ``{fun}`` and ``{doc}`` stand for those of `fun`."""

    def decorate(f: Any) -> Any:
        words = {"fun": get_name(fun), "doc": get_doc(fun), **kwargs}
        # An object whose names cannot be set keeps them, and a docstring with braces is left out.
        with contextlib.suppress(AttributeError, TypeError, KeyError, IndexError, ValueError):
            f.__name__, f.__doc__ = namestr.format(**words), docstr.format(**words)
        return f

    return decorate


def wrap_nary_f(fun: Any, op: Any, argnum: Any) -> Callable[[Any], Any]:
    """Decorate the result of an operator `op` on the function `fun` of several arguments."""
    name = f"{get_name(op)}_of_{{fun}}_wrt_argnum_{argnum}"
    return wraps(fun, name, f"{get_name(op)} of function {{fun}} with respect to argument number {argnum}.")
