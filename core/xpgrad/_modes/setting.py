"""Set a context variable for the length of a block.

It is not a generator: if that were interrupted on entering, it would restore the old value only when it is garbage-collected.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Setting(ContextDecorator, Generic[T]):
    """Context manager and decorator that sets a context variable.

    Parameters
    ----------
    variable : ContextVar
        A variable with a default.
    value : object
        Its value inside the block.
    """

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self.variable, self.value = variable, value
        self._before: tuple[Any, ...] = ()

    def __enter__(self) -> None:
        before = self.variable.get()
        self._before = (*self._before, before)
        try:
            self.variable.set(self.value)
        except BaseException:  # an interrupt may arrive after the variable was set
            self.variable.set(before)
            raise

    def __exit__(self, *exc: object) -> None:
        *rest, before = self._before
        try:
            self.variable.set(before)
        finally:
            self._before = tuple(rest)
