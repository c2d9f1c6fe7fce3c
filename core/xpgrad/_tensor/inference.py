"""Inference tensors: variants of the normal classes (`_rows.variants`), so that normal Tensors cost nothing more (INF-01..11).

An operation on one is the normal operation on a stand-in of the normal class, which the rules refuse to save (INF-03).
"""

from __future__ import annotations

from typing import Any

from xpgrad._aliasing.cells import Alias, share_inference
from xpgrad._rows.row import Row
from xpgrad._rows.variants import TensorVariants
from xpgrad._tape.saved import check_saved_operands


def _stand_in(self: Any) -> Any:
    """Return a Tensor of the normal class around the same array, marked as not to be saved."""
    out = object.__new__(type(self).normal)
    out._array, out._node, out._alias = self._array, self._node, Alias(None)
    out._alias.forbidden = "inference"
    return out


def _operation(row: Row, method: str) -> Any:
    def op(self: Any, *args: Any) -> Any:
        args = tuple(_to_plain(a) for a in args)
        stand_in = _stand_in(self)
        out = getattr(stand_in, method)(*args)
        check_saved_operands(out, (stand_in, *args))
        if row.is_view:
            if not out.is_inference():
                out._become_inference()  # INF-07: a view of an inference tensor stays one
            share_inference(out, self, ((row.name, args),))
        return out

    return op


def _to_plain(arg: Any) -> Any:
    if isinstance(arg, list):
        return [_to_plain(a) for a in arg]
    return _stand_in(arg) if getattr(type(arg), "normal", None) is not None else arg


def _body(cls: Any) -> dict[str, Any]:
    return {"normal": cls, "is_inference": lambda self: True, "_stand_in": _stand_in, "__hash__": object.__hash__}


_inference_classes = TensorVariants(_body, _operation)


def inference_class(cls: Any) -> Any:
    """Return the class of inference tensors for a normal class; an inference class is returned itself."""
    return cls if cls.normal is not None else _inference_classes[cls]
