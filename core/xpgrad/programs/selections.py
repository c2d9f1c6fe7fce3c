"""Selections ``x[mask]`` in a capture: arrays whose length depends on values, held as all elements and the mask.

A selection is a raw array beside `Symbol`. What stands where its mask is False is arbitrary, and never leaves the selection: see
`selected_kernels`. Its length is a `Length`, with which rules compute as with a number.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

from xpgrad._array.operators import add_operators
from xpgrad._basics.dtypes import DType
from xpgrad._basics.keys import index_arrays
from xpgrad._basics.scalars import is_scalar
from xpgrad._basics.shapes import UnknownLength
from xpgrad.errors import CaptureError
from xpgrad.programs.program import Variable
from xpgrad.programs.recorder import Recorder, refusal, same_values
from xpgrad.programs.symbols import Symbol

__all__ = ["Length", "Selected", "mask_mismatch_error", "is_mask", "find_mask", "selection_error", "is_same_mask", "replace_positions"]

new: Any = object.__new__


class Length(UnknownLength):
    """The length of a selection, or a number that rules compute from it, such as the divisor of a mean.

    It is ``factor * count + offset``, where `count` is the number of True elements of the mask, or `over` divided by that. It equals itself
    only, and is larger than every number. Multiplied with an array, or as its divisor, it is an array without axes.

    Attributes
    ----------
    mask : Symbol
        Shape (M,), bool.
    factor, offset : float
    over : float or None
    """

    __slots__ = ("factor", "mask", "offset", "over")

    mask: Symbol
    factor: float
    offset: float
    over: float | None

    def __init__(self, mask: Symbol, factor: float = 1, offset: float = 0, over: float | None = None) -> None:
        self.mask, self.factor, self.offset, self.over = mask, factor, offset, over

    @property
    def backend(self) -> Any:
        """The backend of the capture."""
        return self.mask.backend

    def as_symbol(self, dtype: DType) -> Any:
        """Return it as a symbol without axes, which is computed when the program runs."""
        xp = self.mask.backend.kernels
        out = xp.reduce_sum(xp.astype(self.mask, dtype), None, False)
        out = out if self.factor == 1 else xp.multiply(out, xp.full_like(out, self.factor))
        out = out if self.offset == 0 else xp.add(out, xp.full_like(out, self.offset))
        return out if self.over is None else xp.divide(xp.full_like(out, self.over), out)

    def is_plain(self) -> bool:
        """Return whether it is the length itself, and not computed from it."""
        return (self.factor, self.offset, self.over) == (1, 0, None)

    def _as_tensor(self, x: Any) -> Any:
        """Return it as a Tensor, to compute with another one."""
        return self.mask.backend.wrap(self.as_symbol(x.dtype))

    def __mul__(self, other: Any) -> Any:
        if not is_scalar(other):
            return other * self._as_tensor(other)
        if self.over is not None:
            return Length(self.mask, self.factor, self.offset, self.over * other)
        return Length(self.mask, self.factor * other, self.offset * other)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        return Length(self.mask, self.factor, self.offset + other) if is_scalar(other) and self.over is None else self.__index__()

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other if is_scalar(other) else self.__index__()

    def __rtruediv__(self, other: Any) -> Any:
        if not is_scalar(other):
            return other / self._as_tensor(other)
        return Length(self.mask, self.factor, self.offset, other) if self.over is None else self.__index__()

    def __floordiv__(self, other: Any) -> Any:
        exact = isinstance(other, int) and self.over is None and not self.offset and not self.factor % other  # for every count
        return Length(self.mask, self.factor // other) if exact else self.__index__()

    def __mod__(self, other: Any) -> int:
        _ = self // other  # raises if the remainder is not known
        return 0

    def __index__(self, other: Any = None) -> NoReturn:
        raise refusal("the length of `x[mask]` was asked for", "use `xpgrad.sum(mask)`, which is an array")

    __float__: Any = __index__
    __rfloordiv__: Any = __index__
    __rmod__: Any = __index__
    __truediv__: Any = __index__
    __rsub__: Any = __index__
    __neg__: Any = __index__
    __pow__: Any = __index__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Length):
            return False
        facts = (self.factor, self.offset, self.over) == (other.factor, other.offset, other.over)
        return facts and is_same_mask(self.mask, other.mask)

    def __hash__(self) -> int:
        return hash(Length)  # equal masks may be different objects

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return True

    __le__: Any = __lt__
    __ge__: Any = __gt__

    def __repr__(self) -> str:
        return "?"


class Selected:
    """A raw array of a capture, one axis of which was selected by a mask.

    Attributes
    ----------
    full : Symbol
        All elements; arbitrary ones where the mask is False.
    mask : Symbol
        bool, of shape (M,), where M is the length of the axis of `full`.
    axis : int
        The axis.
    shape : tuple of (int or Length)
    place : tuple of (Symbol, int) or None
        For the positions that ``nonzero(mask)`` returns, `mask` and the axis along which they count.
    """

    __slots__ = ("axis", "full", "mask", "place", "shape")

    full: Symbol
    mask: Symbol
    axis: int
    shape: tuple[Any, ...]
    place: tuple[Symbol, int] | None

    #: The backend of a capture; a subclass for each sets it.
    backend: ClassVar[Any]
    __array_ufunc__: ClassVar[None] = None

    def __new__(cls, full: Symbol, mask: Symbol, axis: int, place: tuple[Symbol, int] | None = None) -> Selected:
        self: Selected = new(cls)
        self.full, self.mask, self.axis, self.place = full, mask, axis, place
        self.shape = (*full.shape[:axis], Length(mask), *full.shape[axis + 1 :])
        return self

    @property
    def dtype(self) -> DType:
        """The data type."""
        return self.full.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def behind(self) -> int:
        """The position of the axis, counted from the last axis, which is 1."""
        return len(self.shape) - self.axis

    @property
    def recorder(self) -> NoReturn:
        """Raise a `CaptureError`: as a whole, a selection is not a variable of the program."""
        raise selection_error("returned, or given to a loop")

    value: Any = recorder
    variable: Any = recorder

    def __getitem__(self, key: Any) -> Any:
        return self.backend.kernels.index_basic(self, key)

    def __len__(self) -> int:
        return int(self.shape[0])


add_operators(Selected, lambda selected: selected.backend.kernels)


def selection_error(what: str) -> CaptureError:
    """Return the error for something that cannot be done with a selection."""
    return refusal(f"`x[mask]` was {what}", "use `xpgrad.where(mask, x, 0)`, or turn the mask into positions outside")


def mask_mismatch_error(name: str) -> CaptureError:
    """Return the error for a function of two selections of different elements."""
    return refusal(f"`{name}` was given selections by different masks", "use one mask for both")


# -- masks -------------------------------------------------------------------------------------------------------------------


def is_mask(part: Any, raw: type[Symbol]) -> bool:
    """Return whether a part of a key is a mask whose values are not known, in an array or in a selection."""
    if isinstance(part, Selected):
        return part.dtype.category == "bool"
    return part.__class__ is raw and part.recorder is not None and part.dtype.category == "bool"


def find_mask(key: tuple[Any, ...], raw: type[Symbol]) -> Any:
    """Return the mask of a key without other arrays; None if there is no such mask."""
    arrays = index_arrays(key)
    return arrays[0] if len(arrays) == 1 and is_mask(arrays[0], raw) else None


def replace_positions(key: Any, shape: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a key for an array of a shape as a tuple, with `mask` in place of ``nonzero(mask)`` if it has the shape of the axes."""
    parts = key if isinstance(key, tuple) else (key,)
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    axis = 0
    for i, part in enumerate(parts):
        if isinstance(part, Selected) and part.place is not None and part.place[1] == 0:
            mask = part.place[0]
            own = [p.place for p in parts[i : i + mask.ndim] if isinstance(p, Selected) and p.place is not None and p.place[0] is mask]
            if [k for _, k in own] == list(range(mask.ndim)) and tuple(shape[axis : axis + mask.ndim]) == mask.shape:
                return (*parts[:i], mask, *parts[i + mask.ndim :])
        axis += len(shape) - taken if part is Ellipsis else part is not None
    return parts


def is_same_mask(one: Symbol, other: Symbol) -> bool:
    """Return whether two masks have the same values because the same operations made them from the same arrays."""
    if one is other:
        return True
    recorder = one.recorder
    return recorder is not None and recorder is other.recorder and _is_same(one.variable, other.variable, recorder)


def _is_same(one: Variable, other: Variable, recorder: Recorder) -> bool:
    """Return whether two variables have the same values, however long the chains of operations are that made them."""
    constants, makers = recorder.constants, recorder.makers
    seen: set[tuple[Variable, Variable]] = set()
    left: list[tuple[Any, Any]] = [(one, other)]
    while left:
        a, b = left.pop()
        if a is b or (isinstance(a, Variable) and (a, b) in seen):
            continue
        if a.__class__ is not b.__class__:
            return False
        if isinstance(a, (tuple, list)):
            if len(a) != len(b):
                return False
            left += zip(a, b)
        elif not isinstance(a, Variable):
            if a != b:
                return False
        elif a in constants and b in constants:
            if not same_values(recorder.table, constants[a], constants[b]):
                return False
        else:
            first, second = makers.get(a), makers.get(b)
            if first is None or second is None or first.name != second.name or first.options.keys() != second.options.keys():
                return False
            if first.results.index(a) != second.results.index(b):
                return False
            seen.add((a, b))
            left += [(first.args, second.args), *((v, second.options[k]) for k, v in first.options.items())]
    return True
