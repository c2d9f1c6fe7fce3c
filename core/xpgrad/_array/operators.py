"""Python's operators for the raw arrays of interpreters (batches, captures), implemented by their backend's kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._rows.row import ROWS


def add_operators(cls: type, kernels: Callable[[Any], Any]) -> None:
    """Add to a class the Python operators that formulas and kernels use.

    Parameters
    ----------
    cls : type
        Each backend has a subclass of it.
    kernels : callable
        ``kernels(array)`` returns the kernels that implement the operators of that array.
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
    """Return a special method that finds its kernel at its first use and then replaces itself on the array's class.

    Parameters
    ----------
    method, name : str
        The special method, such as ``__radd__``, and its kernel.
    kernels : callable
        As for `add_operators`.
    swapped : bool
        Whether the array is the kernel's second operand.
    unary : bool
        Whether there is only one operand.
    """

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
