"""The calls of `vmap` that are running in this context."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from xpgrad._modes.setting import Setting


class BatchLevel:
    """One call of `vmap`, or one batch of gradients.

    Attributes
    ----------
    size : int
        The length of the batch.
    alive : bool
        Whether the call is still running.
    """

    __slots__ = ("alive", "randomness", "size")

    def __init__(self, size: int, randomness: str = "error") -> None:
        self.size = size
        self.randomness = randomness
        self.alive = True


_LEVELS: ContextVar[tuple[BatchLevel, ...]] = ContextVar("xpgrad_batch_levels", default=())


def active_levels() -> tuple[BatchLevel, ...]:
    """Return the running calls of `vmap` in this context, outermost first."""
    return _LEVELS.get()


def run_within(level: BatchLevel, function: Callable[[], Any]) -> Any:
    """Call `function` with `level` as the innermost level and return its result; then mark it as finished."""
    before = _LEVELS.get()
    try:
        _LEVELS.set((*before, level))
        return function()
    finally:
        level.alive = False
        _LEVELS.set(before)


def at_levels(levels: tuple[BatchLevel, ...]) -> AbstractContextManager[None]:
    """Return a context manager in which exactly these levels are active, to continue work that began in them."""
    return Setting(_LEVELS, levels)
