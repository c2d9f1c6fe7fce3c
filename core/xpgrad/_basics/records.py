"""Dataclasses as containers: their fields, and one of given fields."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import Any


@functools.cache
def _names(cls: type) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls))


def field_names(cls: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None for another class."""
    return _names(cls) if hasattr(cls, "__dataclass_fields__") else None


def record(cls: type, values: dict[str, Any]) -> Any:
    """An instance with these fields. Nothing of the class runs: its `__init__` may check, or refuse, what stands in for Tensors."""
    out: Any = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(out, name, value)  # which frozen ones allow
    return out
