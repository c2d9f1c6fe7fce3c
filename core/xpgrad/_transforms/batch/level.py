"""The calls of `vmap` that are running in this context."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["BatchLevel", "active_levels", "at_levels"]


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
    """The calls of `vmap` that are running in this context, the outermost first."""
    return _LEVELS.get()


class running:  # noqa: N801 (a context, not a type that anybody makes instances of to keep)
    """Context: a level is the innermost one."""

    def __init__(self, level: BatchLevel) -> None:
        self.level = level

    def __enter__(self) -> BatchLevel:
        self._before = _LEVELS.get()
        _LEVELS.set((*self._before, self.level))
        return self.level

    def __exit__(self, *exc: object) -> None:
        _LEVELS.set(self._before)
        self.level.alive = False


class at_levels:  # noqa: N801 (a context)
    """Context: these levels are active, and no others: for what goes on where it was begun."""

    def __init__(self, levels: tuple[BatchLevel, ...]) -> None:
        self.levels = levels

    def __enter__(self) -> None:
        self._before = _LEVELS.get()
        _LEVELS.set(self.levels)

    def __exit__(self, *exc: object) -> None:
        _LEVELS.set(self._before)
