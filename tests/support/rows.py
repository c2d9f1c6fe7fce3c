"""Undo the rows that a test declares, wherever they were registered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._rows.kernels import KERNELS
from xpgrad._rows.namespace import COMPOSITE, IN_PLACE, METHODS, NONDIFFERENTIABLE, PRIMITIVES, RULES
from xpgrad._rows.row import ROWS
from xpgrad._rows.variants import _TENSOR_VARIANTS

__all__ = ["TABLES", "forgetting_rows"]

#: The tables that a declaration adds to.
TABLES: tuple[dict[str, Any], ...] = (ROWS, KERNELS, RULES, NONDIFFERENTIABLE, PRIMITIVES, COMPOSITE, METHODS, IN_PLACE)


def _classes() -> list[Any]:
    """Return the classes that an operation may be added to: the base of all Tensors, the devices' and those that variants share."""
    found = [TensorBase, *(variants._operations for variants in _TENSOR_VARIANTS)]
    for cls in found:
        found += [sub for sub in cls.__subclasses__() if sub not in found]
    return found


@contextmanager
def forgetting_rows() -> Iterator[None]:
    """Context manager that removes the rows declared inside it from the tables, from the classes of Tensors and from the backends."""
    tables = [dict(table) for table in TABLES]
    classes = {cls: dict(vars(cls)) for cls in _classes()}
    try:
        yield
    finally:
        new = set(ROWS) - set(tables[0])
        for table, before in zip(TABLES, tables):
            table.clear()
            table.update(before)
        methods = {f"{prefix}{name}" for name in new for prefix in ("_op_", "_sop_", "_srop_")}
        for cls in _classes():
            known = classes.get(cls, {})
            for name, value in dict(vars(cls)).items():
                if name in methods and name not in known:
                    delattr(cls, name)
                elif callable(value) and known.get(name, value) is not value:
                    setattr(cls, name, known[name])
            backend = getattr(cls, "backend", None)
            for name in new if backend is not None else ():
                vars(backend.kernels).pop(name, None)
                for key in [key for key in backend.node_classes if key[0] == name]:
                    del backend.node_classes[key]
