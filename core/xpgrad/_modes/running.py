"""The transform that is running the user's function in this context."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_RUNNING: ContextVar[str | None] = ContextVar("xpgrad_transform", default=None)


def transforming() -> str | None:
    """The name of the innermost transform that runs a function in this context, or None."""
    return _RUNNING.get()


def run_transformed(name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call the user's function for a transform of this name."""
    before = _RUNNING.get()
    try:
        _RUNNING.set(name)
        return function(*args, **kwargs)
    finally:
        _RUNNING.set(before)
