"""Python's operators on Tensors, until a backend's class has its own: generated implementations replace these at first use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._operations.coerce import coerce
from xpgrad._rows.namespace import operations
from xpgrad._rows.row import ROWS

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["Operators"]


class Operators(TensorBase):
    """The operators of `Tensor`; see there."""

    __slots__ = ()

    # The common ones are replaced, on each backend's class, by generated implementations at first use.
    def __add__(self, other: Any, /) -> Tensor:
        return self._op_add(other)

    def __radd__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "add")

    def __sub__(self, other: Any, /) -> Tensor:
        return self._op_subtract(other)

    def __rsub__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "subtract")

    def __mul__(self, other: Any, /) -> Tensor:
        return self._op_multiply(other)

    def __rmul__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "multiply")

    def __truediv__(self, other: Any, /) -> Tensor:
        return self._op_divide(other)

    def __rtruediv__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "divide")

    def __floordiv__(self, other: Any, /) -> Tensor:
        return self._op_floor_divide(other)

    def __rfloordiv__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "floor_divide")

    def __mod__(self, other: Any, /) -> Tensor:
        return self._op_remainder(other)

    def __rmod__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "remainder")

    def __pow__(self, other: Any, /) -> Tensor:
        return self._op_pow(other)

    def __rpow__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "pow")

    def __matmul__(self, other: Any, /) -> Tensor:
        return self._op_matmul_nd(other)

    def __rmatmul__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "matmul_nd")

    def __and__(self, other: Any, /) -> Tensor:
        return self._op_bitwise_and(other)

    def __rand__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "bitwise_and")

    def __or__(self, other: Any, /) -> Tensor:
        return self._op_bitwise_or(other)

    def __ror__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "bitwise_or")

    def __xor__(self, other: Any, /) -> Tensor:
        return self._op_bitwise_xor(other)

    def __rxor__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "bitwise_xor")

    def __lshift__(self, other: Any, /) -> Tensor:
        return self._op_bitwise_left_shift(other)

    def __rlshift__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "bitwise_left_shift")

    def __rshift__(self, other: Any, /) -> Tensor:
        return self._op_bitwise_right_shift(other)

    def __rrshift__(self, other: Any, /) -> Tensor:
        return _reflected(self, other, "bitwise_right_shift")

    def __eq__(self, other: Any, /) -> Tensor:  # type: ignore[override]
        return self._op_equal(other)

    def __ne__(self, other: Any, /) -> Tensor:  # type: ignore[override]
        return self._op_not_equal(other)

    def __lt__(self, other: Any, /) -> Tensor:
        return self._op_less(other)

    def __le__(self, other: Any, /) -> Tensor:
        return self._op_less_equal(other)

    def __gt__(self, other: Any, /) -> Tensor:
        return self._op_greater(other)

    def __ge__(self, other: Any, /) -> Tensor:
        return self._op_greater_equal(other)

    def __neg__(self) -> Tensor:
        return self._op_negative()

    def __pos__(self) -> Tensor:
        return self._op_positive()

    def __abs__(self) -> Tensor:
        return self._op_abs()

    def __invert__(self) -> Tensor:
        return self._op_bitwise_invert()

    if TYPE_CHECKING:

        def __hash__(self) -> int: ...

    else:
        __hash__ = object.__hash__

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            msg = "a 0-d Tensor cannot be iterated over; use `x.item()` for its value"
            raise TypeError(msg)
        x: Any = self
        return (x[i] for i in range(self.shape[0]))

    def __len__(self) -> int:
        if self.ndim == 0:
            msg = "a 0-d Tensor has no len()"
            raise TypeError(msg)
        return self.shape[0]

    # Replaced per row and backend by `_operations.forward`; named here for type checkers.
    _op_add: Any
    _op_subtract: Any
    _op_multiply: Any
    _op_divide: Any
    _op_floor_divide: Any
    _op_remainder: Any
    _op_pow: Any
    _op_matmul_nd: Any
    _op_bitwise_and: Any
    _op_bitwise_or: Any
    _op_bitwise_xor: Any
    _op_bitwise_left_shift: Any
    _op_bitwise_right_shift: Any
    _op_bitwise_invert: Any
    _op_equal: Any
    _op_not_equal: Any
    _op_less: Any
    _op_less_equal: Any
    _op_greater: Any
    _op_greater_equal: Any
    _op_negative: Any
    _op_positive: Any
    _op_abs: Any


def _reflected(x: Any, other: Any, name: str) -> Any:
    """``other OP x`` for an `other` that does not support the operation itself."""
    if name == "matmul_nd":
        return operations.matmul(other, x)
    return coerce(ROWS[name], other, x)
