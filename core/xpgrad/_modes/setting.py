"""A context in which a context variable has a value, for all that is set for the length of a block.

Not a generator's context: one that is interrupted on entering would end, and put an old value back, only when it is collected.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Setting(ContextDecorator, Generic[T]):
    """Context, and decorator: `variable` has a value.

    Parameters
    ----------
    variable : ContextVar
        With a default.
    value
    """

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self.variable, self.value = variable, value
        self._before: tuple[Any, ...] = ()

    def __enter__(self) -> None:
        before = self.variable.get()
        self._before = (*self._before, before)
        try:
            self.variable.set(self.value)
        except BaseException:  # an interrupt, which comes after the call
            self.variable.set(before)
            raise

    def __exit__(self, *exc: object) -> None:
        *rest, before = self._before
        try:
            self.variable.set(before)
        finally:
            self._before = tuple(rest)
