"""The rules of one batch backend, by name, and the functions to write them with.

A rule takes and returns the backend's raw arrays (`Batched`). It shifts axes by the batch axis and calls the same operation on the values
that they hold.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, ClassVar

from xpgrad._rows.namespace import operations
from xpgrad._rows.row import ROWS
from xpgrad._transforms.batch.array import escaped_error, no_rule_error
from xpgrad._transforms.batch.kinds import elementwise, pairwise, stack_rule


class Table(dict[str, Callable[[Any], Any]]):
    """Rules by name: functions that make a rule for one backend, given its rulebook."""

    def rule(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Register ``rule(book, *args)`` under its name."""
        self[rule.__name__] = functools.partial(MethodType, rule)
        return rule

    def made(self, make: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Register ``make(book)``, which returns the rule of its name."""
        self[make.__name__] = make
        return make


#: The rules that do not follow from a row.
RULES = Table()
batched, made = RULES.rule, RULES.made


def stacks(*names: str) -> None:
    """Register functions of the standard that treat the batch axis as one more axis of a stack."""

    def maker(name: str) -> Callable[[Any], Any]:
        def make(book: Rulebook) -> Any:
            function = getattr(book.xp, name)
            return lambda x, *args, **options: book.raw(function(x.value, *args, **options), x.level)

        return make

    RULES.update({name: maker(name) for name in names})


def along_axis(*names: str, default: int | None = None) -> None:
    """Register functions of the standard with a keyword `axis`, whose default is `default`."""

    def maker(name: str) -> Callable[[Any], Any]:
        def make(book: Rulebook) -> Any:
            function = getattr(book.xp, name)

            def rule(x: Any, *, axis: Any = default, **options: Any) -> Any:
                return book.raw(function(x.value, axis=book.axes(x, axis), **options), x.level)

            return rule

        return make

    RULES.update({name: maker(name) for name in names})


def refused(*names: str) -> None:
    """Register functions that cannot be applied to a batch."""

    def maker(name: str) -> Callable[[Any], Any]:
        def make(book: Rulebook) -> Any:
            raise no_rule_error(name)

        return make

    RULES.update({name: maker(name) for name in names})


class Rulebook:
    """The rules of one batch backend whose batches are held by Tensors.

    Attributes
    ----------
    backend : Backend
    kernels : Kernels
        The backend's kernels, which are the rules by name, for rules that call others.
    raw : type
        The class of the backend's raw arrays; set by the backend.
    xp : namespace
        The operations on the values that hold a batch.
    """

    tables: ClassVar[tuple[Table, ...]] = (RULES,)
    xp: Any = operations
    raw: Any

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.kernels = backend.kernels

    def find(self, name: str) -> Any:
        """Return the rule of that name, or None if the kernel is composed of others."""
        for table in self.tables:
            make = table.get(name)
            if make is not None:
                return make(self)
        row = ROWS.get(name)
        if row is None:
            return None
        if row.elementwise:
            return (pairwise if len(row.tensors) == 2 else elementwise)(self, self.operation(row))
        return None if row.batch is None else stack_rule(self, row)

    # -- how a batch is held: here by Tensors -----------------------------------------------------------------------------------

    def shape(self, value: Any) -> Any:
        """Return the shape of the raw array of a value."""
        return value._array.shape

    def static(self, value: Any) -> Any:
        """Return the raw array of a value, the form in which static arguments are passed."""
        return value._array

    def wrap_below(self, array: Any) -> Any:
        """Wrap a raw array as a Tensor of the class below."""
        return self.backend.inner.backend.wrap(array)

    def scalar(self, value: Any, like: Any) -> Any:
        """Return a Python scalar in the dtype of `like`, shared by all elements."""
        return self.raw(self.backend.inner.scalar(value, like.dtype), None)

    def count_up(self, size: int, like: Any) -> Any:
        """Return ``0 .. size - 1`` in the dtype of `like`, as a value that a batch can hold."""
        return self.xp.arange(size, dtype=like.dtype, device=like.device)

    def operation(self, row: Any) -> Any:
        """Return the operation of a row, as an operator if it has one."""
        return row.operator.function if row.operator is not None else getattr(self.xp, row.name)

    # -- for writing rules ---------------------------------------------------------------------------------------------------

    def level(self, *arrays: Any) -> Any:
        """Return the level of the batched arrays among these, or None if there are none."""
        level = None
        for a in arrays:
            if a.__class__ is self.raw and a.level is not None:
                if level is None:
                    level = a.level
                elif level is not a.level:
                    raise escaped_error()
        return level

    def pad(self, x: Any, rank: int) -> Any:
        """Return the value of `x` with axes of length 1, so that its elements have `rank` axes and broadcast from the right."""
        value, missing = x.value, rank - len(x.shape)
        if x.level is None or missing <= 0:
            return value
        shape = self.shape(value)
        return self.xp.reshape_to(value, (shape[0], *(1,) * missing, *shape[1:]))

    def broadcast_batch(self, x: Any, level: Any) -> Any:
        """Return the value of `x` with the batch axis, broadcast if it had none."""
        if x.level is not None:
            return x.value
        return self.xp.broadcast_view(x.value, (level.size, *x.shape))

    def axes(self, x: Any, axes: Any) -> Any:
        """Convert axes of an element to axes of the batch."""
        if x.level is None:
            return axes
        n = len(x.shape)
        if axes is None:
            return tuple(range(1, n + 1))
        return axes % n + 1 if isinstance(axes, int) else tuple(a % n + 1 for a in axes)

    def to_static(self, x: Any) -> Any:
        """Convert a static argument to a raw array of the class below; all elements of the batch share it."""
        return self.static(x.value) if x.__class__ is self.raw else x

    def from_static(self, x: Any) -> Any:
        """Convert a raw array in a static argument to one of this backend."""
        if x.__class__ is self.raw or isinstance(x, (int, float, complex, slice)) or x is None or x is Ellipsis:
            return x
        return self.raw(self.wrap_below(x), None)

    def wrap(self, out: Any, level: Any) -> Any:
        """Return one result, or a tuple of them, as raw arrays of this backend."""
        if out.__class__ is tuple or isinstance(out, tuple):
            return tuple(self.raw(o, level) for o in out)
        return self.raw(out, level)
