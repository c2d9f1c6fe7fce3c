"""The raw array of a batch backend: a Tensor with the batch as its first axis, or a value that all elements share."""

from __future__ import annotations

from typing import Any, ClassVar

from xpgrad._array.operators import add_operators
from xpgrad._basics.dtypes import DType
from xpgrad._modes.switches import enable_grad
from xpgrad.errors import CapabilityError
from xpgrad.rules.manipulation import broadcast_view

new: Any = object.__new__


class Batched:
    """A raw array of a batch backend: a Tensor with the batch as its first axis, or without it if all elements share one value.

    Attributes
    ----------
    value : Tensor
    level : BatchLevel or None
        The level whose axis is the first of `value`; None if there is no such axis.
    shape : tuple of int
        The shape of one element.
    home : int
        The position of the batch axis before it became the first, for the `vmap` of custom Functions.
    """

    __slots__ = ("home", "level", "shape", "value")

    value: Any
    level: Any
    shape: tuple[int, ...]
    home: int

    #: The rules of the backend (see `rulebook`), which also implement the operators.
    rules: ClassVar[Any]
    __array_ufunc__: ClassVar[None] = None

    def __new__(cls, value: Any, level: Any) -> Batched:
        if level is not None and not level.running:
            raise left_error()
        self: Batched = new(cls)
        self.value, self.level = value, level
        shape = value._array.shape
        self.shape = shape if level is None else shape[1:]
        self.home = 0
        return self

    @property
    def dtype(self) -> DType:
        """The data type."""
        return self.value.dtype

    def keep_history(self, after: Any) -> Any:
        """Return the array `after`, which a write that is not recorded puts in the place of this one, with the history of this one."""
        old, own = self.value, after.value
        if self.level is not after.level:
            if self.level is not None:
                return after
            with enable_grad():
                old = broadcast_view(old, (after.level.size, *self.shape))
        if own.depth:
            return type(after)(own._wrap(old._array.keep_history(own._array)), after.level)
        if old._node is None or own._node is not None:
            return after
        if old._node.is_leaf:
            with enable_grad():
                old = old.clone()
        kept = own._wrap(own._array)
        kept._node = old._node
        return type(after)(kept, after.level)

    def __getitem__(self, key: Any) -> Any:
        return self.rules.kernels.index_basic(self, key)

    def __len__(self) -> int:
        return self.shape[0]


def escaped_error() -> RuntimeError:
    """Return the error for Tensors of two batches that met, because one of them left its call of `vmap`."""
    return RuntimeError(
        "Tensors of two different calls of `vmap` were combined: one of them left its call, e.g. through a global variable or a list. "
        "Return it from the function instead"
    )


def left_error() -> RuntimeError:
    """Return the error for an operation on an element of a batch whose call of `vmap` has returned."""
    return RuntimeError(
        "This Tensor is an element of a batch, but the call of `vmap` that it belongs to has returned: it left the function, e.g. through "
        "a global variable or a list. Return it from the function instead"
    )


def no_rule_error(name: str) -> CapabilityError:
    """Return the error for a function that cannot be applied to a batch."""
    return CapabilityError(f"`{name}` cannot be vectorised by `vmap`: the shape of its result depends on values; call it outside")


add_operators(Batched, lambda batched: batched.rules.kernels)
