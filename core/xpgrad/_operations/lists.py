"""Operations on a list of Tensors (`concat`, `stack`), whose rows share one node class that is not generated."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import next_number
from xpgrad._modes import state
from xpgrad._operations.coerce import unify
from xpgrad._rows.namespace import operations
from xpgrad._rows.row import Row
from xpgrad._tape.node import ListNode
from xpgrad.backend import Backend


class VarNode(ListNode):
    """The node of an operation on a list of Tensors (`concat`, `stack`), which is written by hand."""

    __slots__ = ("row", "shapes", "statics")

    row: Row
    shapes: tuple[tuple[int, ...], ...]
    statics: tuple[Any, ...]

    def vjp(self, g: Any, xp: Any) -> list[Any]:
        """Return the gradient of each operand, constants included."""
        known = dict(zip(self.row.statics, self.statics)) | {"g": g, "xp": xp, f"{self.row.tensors[0]}_shape": self.shapes}
        return self.row.formulas[0](*(known[n] for n in self.row.reads[0]))

    def name(self) -> str:
        return self.row.node

    def grads(self, g: Any) -> list[Any]:
        return [v for v, e in zip(self.vjp(g, self.backend.kernels), self.e) if e is not None]

    def graph_grads(self, g: Any) -> list[Any]:
        return [v for v, e in zip(self.vjp(g, operations), self.e) if e is not None]

    backend: Any = None
    records = True


@functools.cache
def _var_class(backend: Any, title: str) -> type[VarNode]:
    """Make the node class of an operation on a list of Tensors, for a backend."""
    return type(title, (VarNode,), {"__slots__": (), "backend": backend, "title": title, "__module__": "xpgrad.autograd.graph"})


def list_operation(row: Row, backend: Any, kernel: Any = None) -> Callable[..., Any]:
    """Return the method for an operation on a list of Tensors; it calls `kernel`, by default the backend's."""
    kernel = getattr(backend.kernels, row.name) if kernel is None else kernel
    plain = type(backend).operand_shape is Backend.operand_shape

    def op(first: Any, xs: list[Any], *statics: Any) -> Any:
        cls = first.__class__
        for x in xs:
            if x.__class__ is not cls:  # happens in a formula, if only some Tensors are elements of a batch
                xs = unify(row.name, xs)
                return getattr(xs[0], row.method)(xs, *statics)
        r = kernel([x._array for x in xs], *statics)
        out = object.__new__(cls)
        out._array = r
        out._alias = out._node = None
        m = state.current()
        if (m is None or m.recording) and any(x._node is not None for x in xs):
            n = object.__new__(_var_class(backend, row.node))
            n.seq = next_number()
            n.buffer = n.hooks = n._alias = None
            n.e = tuple(x._node for x in xs)
            n.row, n.statics = row, statics
            n.stream = (cls, backend.current_stream(cls.device)) if backend.capabilities.streams else None
            n.shapes = tuple(x._array.shape for x in xs) if plain else tuple(backend.operand_shape(x._array) for x in xs)
            out._node = n
        if m is not None and not m.plain:
            m.finish_operation(out, row, (xs,), statics)
        return out

    return op
