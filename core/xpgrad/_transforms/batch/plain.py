"""Batches of plain arrays, for backward passes that are not recorded, and the rules for them."""

from __future__ import annotations

from typing import Any, ClassVar

from xpgrad._modes.batch_levels import BatchLevel
from xpgrad._transforms.batch.array import Batched
from xpgrad._transforms.batch.rulebook import RULES, Rulebook, Table
from xpgrad.rules import matrices as _matrices  # noqa: F401 (declares the kernels that turn bands into matrices)

new: Any = object.__new__


class PlainBatch(Batched):
    """A plain array with the batch as its first axis, or without it (level None).

    The rows of an identity matrix, and elementwise results of them, are stored as a band: element ``j`` of one axis is ``band[j]`` in row
    ``j + offset`` of the batch and 0 in all other rows. The band becomes a whole matrix when one is needed.
    """

    __slots__ = ("_value", "band", "offset")

    band: Any
    offset: int
    _value: Any

    def __new__(cls, value: Any, level: Any) -> PlainBatch:
        self: PlainBatch = new(cls)
        self._value, self.level, self.band = value, level, None
        shape = tuple(value.shape)
        self.shape = shape if level is None else shape[1:]
        return self

    @classmethod
    def banded(cls, band: Any, offset: int, level: BatchLevel, shape: tuple[int, ...]) -> Any:
        """Return a band whose elements have `shape`: ``(n,)`` followed by any number of axes of length 1."""
        self = new(cls)
        self._value, self.level, self.band, self.offset, self.shape = None, level, band, offset, shape
        return self

    @property
    def value(self) -> Any:
        """The whole array."""
        if self._value is None:
            xp, size, n = self.rules.xp, self.level.size, self.shape[0]
            first, last = max(0, -self.offset), min(n, size - self.offset)
            band = self.band if (first, last) == (0, n) else xp.index_basic(self.band, (slice(first, max(last, first)),))
            whole = xp.diagonal_transpose(band, (size, n), -self.offset)
            self._value = whole if len(self.shape) == 1 else xp.reshape_to(whole, (size, *self.shape))
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        """The whole array."""
        self._value = value

    @property
    def dtype(self) -> Any:
        """The dtype of the array, as the library's own object."""
        return (self._value if self.band is None else self.band).dtype


#: The rules that differ if a plain array holds the batch.
PLAIN = Table()
on_plain, made_on_plain = PLAIN.rule, PLAIN.made


class PlainRulebook(Rulebook):
    """The rules for batches that are plain arrays."""

    tables: ClassVar[tuple[Table, ...]] = (PLAIN, RULES)

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self.below = backend.inner.backend
        self.xp = self.below.kernels

    def shape(self, value: Any) -> Any:
        return value.shape

    def static(self, value: Any) -> Any:
        return value

    def wrap_below(self, array: Any) -> Any:
        return array

    def scalar(self, value: Any, like: Any) -> Any:
        return self.raw(self.xp.full_like(self.xp.zeros_near(like.value, ()), value), None)

    def count_up(self, size: int, like: Any) -> Any:
        return self.xp.count_up(like, size)

    def operation(self, row: Any) -> Any:
        return row.operator.function if row.operator is not None and self.below.has_operator(row.name) else getattr(self.xp, row.name)


@on_plain
def to_dtype(book: PlainRulebook, x: Any, dtype: Any) -> Any:
    return book.raw(book.xp.cast(x.value, dtype), x.level)


@on_plain
def zeros_near(book: PlainRulebook, x: Any, shape: Any) -> Any:
    return book.raw(book.xp.zeros_near(x.value, tuple(shape)), None)


@on_plain
def count_up(book: PlainRulebook, like: Any, *bounds: int) -> Any:
    return book.raw(book.xp.count_up(like.value if like.__class__ is book.raw else like, *bounds), None)


@on_plain
def zeros_like(book: PlainRulebook, x: Any, *, dtype: Any = None) -> Any:
    return zeros_near(book, x, x.shape)


@on_plain
def ones_like(book: PlainRulebook, x: Any, *, dtype: Any = None) -> Any:
    return book.raw(book.xp.ones_like(book.xp.zeros_near(x.value, x.shape)), None)


@on_plain
def full_like(book: PlainRulebook, x: Any, value: Any, *, dtype: Any = None) -> Any:
    return book.raw(book.xp.full_like(book.xp.zeros_near(x.value, x.shape), value), None)
