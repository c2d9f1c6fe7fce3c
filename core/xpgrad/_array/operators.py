"""Python's operators on the raw arrays of interpreters (batches, captures), for which a kernel of their backend stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._rows.row import ROWS


def add_operators(cls: type, kernels: Callable[[Any], Any]) -> None:
    """Give a class the operators that formulas and kernels use.

    Parameters
    ----------
    cls : type
        Backends make subclasses of it.
    kernels : callable
        ``kernels(array)`` is the table in which the operators of that array are found.
    """
    cls.__abs__ = _operator("__abs__", "abs", kernels, unary=True)  # type: ignore[attr-defined]
    for row in ROWS.values():
        if row.special_methods is not None:
            method, reflected = row.special_methods
            kernel = row.public[0]
            setattr(cls, method, _operator(method, kernel, kernels, unary=len(row.tensors) == 1))
            if reflected is not None:
                setattr(cls, reflected, _operator(reflected, kernel, kernels, swapped=True))


def _operator(method: str, name: str, kernels: Callable[[Any], Any], *, swapped: bool = False, unary: bool = False) -> Any:
    """A special method that finds its kernel when it is first used, and then is that on the class of the backend."""

    def first(self: Any, *others: Any) -> Any:
        kernel = getattr(kernels(self), name)
        if unary:
            found: Any = lambda self: kernel(self)  # noqa: E731
        elif swapped:
            found = lambda self, other: kernel(other, self)  # noqa: E731
        else:
            found = lambda self, other: kernel(self, other)  # noqa: E731
        setattr(type(self), method, found)
        return found(self, *others)

    return first
