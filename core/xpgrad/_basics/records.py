"""Dataclasses as containers: reading their fields, and creating instances from fields."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import Any


@functools.cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


def field_names(cls: type) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields; None for any other class."""
    return _names(cls) if hasattr(cls, "__dataclass_fields__") else None


def record(cls: type, values: dict[str, Any]) -> Any:
    """Create an instance of a dataclass with the given field values, without calling `__init__`, which may reject stand-ins for Tensors."""
    out: Any = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(out, name, value)  # also works for frozen dataclasses
    return out
