"""The raw array of a capture: a value that is known while capturing, at which nobody looks, and the variable that it is in the program."""

from __future__ import annotations

from typing import Any, ClassVar

from xpgrad._basics.dtypes import DType

__all__ = ["Symbol"]

new: Any = object.__new__


class Symbol:
    """A raw array of a capture's backend.

    Attributes
    ----------
    value : array
        A raw array of the backend below: what this one was in the first call. It tells shapes and dtypes; no decision rests on it.
    variable : Variable or None
        None for a constant.
    recorder : Recorder or None
        Whose program the variable is in; None for a constant.
    shape : tuple of int
    """

    __slots__ = ("recorder", "shape", "value", "variable")

    value: Any
    variable: Any
    recorder: Any
    shape: tuple[int, ...]

    #: The backend of a capture; a subclass for each sets it.
    backend: ClassVar[Any]
    __array_ufunc__: ClassVar[None] = None

    def __new__(cls, value: Any, variable: Any = None, recorder: Any = None) -> Symbol:
        self: Symbol = new(cls)
        self.value, self.variable, self.recorder = value, variable, recorder
        self.shape = tuple(value.shape)
        return self

    @property
    def dtype(self) -> DType:
        """The data type."""
        return self.backend.below.dtype_of(self.value.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def __getitem__(self, key: Any) -> Any:
        return self.backend.kernels.index_basic(self, key)

    def __len__(self) -> int:
        return self.shape[0]


def _operator(method: str, name: str, swapped: bool = False) -> Any:
    """A special method that finds its kernel when it is first used, and then is that on the class of the backend."""

    def first(self: Any, *others: Any) -> Any:
        kernel = getattr(self.backend.kernels, name)
        if not others:
            found: Any = lambda self: kernel(self)  # noqa: E731
        elif swapped:
            found = lambda self, other: kernel(other, self)  # noqa: E731
        else:
            found = lambda self, other: kernel(self, other)  # noqa: E731
        setattr(type(self), method, found)
        return found(self, *others)

    return first


def _add_operators() -> None:
    """Python's operators on raw arrays, as kernels and formulas use them."""
    both = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow", "floordiv": "floor_divide",
        "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift",
        "rshift": "bitwise_right_shift",
    }  # fmt: skip
    for short, name in both.items():
        setattr(Symbol, f"__{short}__", _operator(f"__{short}__", name))
        setattr(Symbol, f"__r{short}__", _operator(f"__r{short}__", name, swapped=True))
    for short, name in {
        "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "matmul": "matmul",
    }.items():  # fmt: skip
        setattr(Symbol, f"__{short}__", _operator(f"__{short}__", name))
    for short, name in {"neg": "negative", "pos": "positive", "invert": "bitwise_invert", "abs": "abs"}.items():
        setattr(Symbol, f"__{short}__", _operator(f"__{short}__", name))


_add_operators()
