"""Variants: classes to which an object changes while a rare condition holds, by assigning `__class__`.

A few Tensors are inference tensors, or views whose memory was written to since their node was made; a few nodes have packed values, or are
copies for a nested pass. Testing for these conditions would slow down every operation. Instead the object gets another class, a *variant*
of its class, whose methods handle the condition and then call those of the class. Later the object may get its class back. Objects for
which no such condition holds pay nothing.

* A variant is a subclass without slots, because Python can change the class only between classes of the same layout.
* There is one variant per class, created when the first object needs it, because a generated class knows its backend and its pattern.
* Operations test by `x.__class__ is y.__class__` whether operands match. A variant does not match its class, so `coerce` is called, which
  asks for a stand-in of the normal class (`_stand_in`).

If the variant is a single fixed class, it is defined next to the class: `_aliasing.cells.CopyCell`, `_tape.leaf.ShadowLeaf`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._rows.row import ROWS, Row


class Variants(dict[Any, Any]):
    """A mapping from classes to their variants of one kind, which are created on first access.

    Parameters
    ----------
    body : callable
        ``body(cls)`` returns the attributes of the variant of `cls`.
    *bases : type
        Classes without slots whose attributes come before those of `cls`.
    """

    def __init__(self, body: Callable[[Any], dict[str, Any]], *bases: type) -> None:
        super().__init__()
        self._body, self._bases = body, bases

    def __missing__(self, cls: Any) -> Any:
        body = {"__slots__": (), "__module__": cls.__module__, **self._body(cls)}
        return self.setdefault(cls, type(cls.__name__, (*self._bases, cls), body))


_TENSOR_VARIANTS: list[TensorVariants] = []


class TensorVariants(Variants):
    """Variants of Tensor classes; each implements every operation.

    Parameters
    ----------
    body : callable
    operation : callable
        ``operation(row, method)`` returns the method of that name (see `method_names`).
    """

    def __init__(self, body: Callable[[Any], dict[str, Any]], operation: Callable[[Row, str], Callable[..., Any]]) -> None:
        self._operation = operation
        self._operations: Any = type("Operations", (), {"__slots__": ()})
        super().__init__(body, self._operations)
        _TENSOR_VARIANTS.append(self)

    def __missing__(self, cls: Any) -> Any:
        if not self:
            for row in ROWS.values():
                self._implement(row)
        return super().__missing__(cls)

    def _implement(self, row: Row) -> None:
        for name in method_names(row):
            setattr(self._operations, name, self._operation(row, name))

    def declare(self, row: Row) -> None:
        """Implement a row that is declared after variants were made."""
        if self:
            self._implement(row)


def method_names(row: Row) -> list[str]:
    """Return the names of the methods of a Tensor that compute an operation."""
    names = [row.method]
    if row.elementwise and len(row.tensors) == 2:
        names += [f"_sop_{row.name}", f"_srop_{row.name}"]
    return names + [name for name in row.special_methods or () if name is not None]


def declare_in_variants(row: Row) -> None:
    """Implement a row in the variants of Tensor classes."""
    for variants in _TENSOR_VARIANTS:
        variants.declare(row)
