"""Raw arrays of a capture: a variable of the program, with a value that only gives shapes and dtypes."""

from __future__ import annotations

from typing import Any, ClassVar

from xpgrad._array.operators import add_operators
from xpgrad._basics.dtypes import DType

__all__ = ["Symbol"]

new: Any = object.__new__


class Symbol:
    """A raw array of a capture's backend.

    Attributes
    ----------
    value : array
        The raw array of the backend below in the first call. It gives shapes and dtypes; nothing depends on its elements.
    variable : Variable or None
        None for a constant.
    recorder : Recorder or None
        The recorder of the program that has the variable; None for a constant.
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


add_operators(Symbol, lambda symbol: symbol.backend.kernels)
