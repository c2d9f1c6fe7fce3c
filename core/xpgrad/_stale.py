"""Views whose base got a history that they may not share: using one would lose a gradient, so every use raises (MUT-17, MUT-18).

As inference tensors they are classes of their own, swapped in when the base is written to: other Tensors pay nothing for them.
"""

from __future__ import annotations

from typing import Any

from xpgrad._row import ROWS
from xpgrad._specialise import OPERATORS

__all__ = ["make_stale"]

_classes: dict[Any, Any] = {}


def _refuse(self: Any, *args: Any) -> Any:
    if self._alias.forbidden == "no_grad":
        msg = (
            "A view was created in no_grad mode and its base or another view of its base has been modified inplace with grad mode enabled, "
            "so its history is not known. Create the view and write to its base in the same mode, or view a `detach()` of the base"
        )
    else:
        msg = (
            f"{self._alias.forbidden} is a view and its base or another view of its base has been modified inplace. This view is the "
            "output of a function that returns multiple views, which may not be used then; take slices of the base, or `clone()` them"
        )
    raise RuntimeError(msg)


def make_stale(view: Any) -> None:
    """Turn a view into one whose every use raises."""
    cls = type(view)
    if getattr(cls, "fresh", None) is not None:
        return
    found = _classes.get(cls)
    if found is None:
        body: dict[str, Any] = {
            "__slots__": (), "fresh": cls, "__module__": "xpgrad", "__qualname__": "Tensor", "__hash__": object.__hash__,
            "_stand_in": _refuse, "__getitem__": _refuse, "clone": _refuse,
            **{name: property(_refuse) for name in ("requires_grad", "is_leaf", "grad_fn")},
        }  # fmt: skip
        for row in ROWS.values():
            body[row.method] = _refuse
            if row.name in OPERATORS:
                method, reflected = OPERATORS[row.name]
                body[method] = _refuse
                if reflected is not None:
                    body[reflected] = _refuse
        found = _classes[cls] = type("Tensor", (cls,), body)
    view.__class__ = found
