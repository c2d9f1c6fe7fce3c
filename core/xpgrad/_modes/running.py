"""The transform that is running the user's function in this context."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["transformed", "transforming"]

_RUNNING: ContextVar[str | None] = ContextVar("xpgrad_transform", default=None)


def transforming() -> str | None:
    """The name of the innermost transform that runs a function in this context, or None."""
    return _RUNNING.get()


class transformed:  # noqa: N801 (a context)
    """Context: a transform is running the user's function."""

    __slots__ = ("_before", "name")

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self._before = _RUNNING.get()
        _RUNNING.set(self.name)

    def __exit__(self, *exc: object) -> None:
        _RUNNING.set(self._before)
