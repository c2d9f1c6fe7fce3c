"""Inference tensors: classes of their own, so that normal Tensors pay nothing for them (INF-01..11).

An operation on one is the normal operation on a stand-in of the normal class, which the rules refuse to save (INF-03).
"""

from __future__ import annotations

from typing import Any

from xpgrad._memory.cells import Alias, Cell, note_sharing
from xpgrad._operations.coerce import coerce
from xpgrad._rows.row import ROWS
from xpgrad._tape.saved import check_kept

__all__ = ["inference_class"]

_classes: dict[Any, Any] = {}


def _stand_in(self: Any) -> Any:
    """A Tensor of the normal class around the same array, marked as not to be saved."""
    out = object.__new__(type(self).normal)
    out._array, out._node, out._alias = self._array, self._node, Alias(None)
    out._alias.forbidden = "inference"
    return out


def _operation(row: Any, method: str) -> Any:
    def op(self: Any, *args: Any) -> Any:
        args = tuple(_plain(a) for a in args)
        stand_in = _stand_in(self)
        out = getattr(stand_in, method)(*args)
        check_kept(out, (stand_in, *args))
        if row.is_view:
            if not out.is_inference():
                out._become_inference()  # INF-07: a view of an inference tensor stays one
            if not self.backend.capabilities.mutable:
                _share(self, out, row, args)
        return out

    return op


def _operation_reflected(row: Any) -> Any:
    def op(self: Any, other: Any) -> Any:
        return coerce(row, _plain(other), _stand_in(self))

    return op


def _share(base: Any, out: Any, row: Any, args: tuple[Any, ...]) -> None:
    """Let a view learn of writes to its base, and vice versa, where a write makes new arrays."""
    alias = base._alias
    if alias.cell is None:
        alias.cell, alias.memory = Cell(), [base._array]
        note_sharing(base)
    out._alias = Alias(alias.cell, (*alias.path, (row.name, args)), alias.memory)
    out._alias.forbidden = "inference"
    note_sharing(out)


def _plain(arg: Any) -> Any:
    if isinstance(arg, list):
        return [_plain(a) for a in arg]
    return _stand_in(arg) if getattr(type(arg), "normal", None) is not None else arg


def inference_class(cls: Any) -> Any:
    """The class of inference tensors beside a normal class; an inference class is its own."""
    if getattr(cls, "normal", None) is not None:
        return cls
    found = _classes.get(cls)
    if found is None:
        body: dict[str, Any] = {
            "__slots__": (), "normal": cls, "__module__": "xpgrad", "__qualname__": "Tensor",
            "is_inference": lambda self: True, "_stand_in": _stand_in, "__hash__": object.__hash__,
        }  # fmt: skip
        for row in ROWS.values():
            body[row.method] = _operation(row, row.method)
            if row.elementwise and len(row.tensors) == 2:
                for prefix in ("_sop_", "_srop_"):
                    body[prefix + row.name] = _operation(row, prefix + row.name)
            if row.special_methods is not None:
                method, reflected = row.special_methods
                body[method] = body[row.method]
                if reflected is not None and f"_srop_{row.name}" in body:
                    body[reflected] = _operation_reflected(row)
        found = _classes[cls] = type("Tensor", (cls,), body)
    return found
