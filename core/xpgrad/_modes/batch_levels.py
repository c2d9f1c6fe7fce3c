"""The calls of `vmap` that are running in this context."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Any
from weakref import ref

from xpgrad._modes.setting import Setting


class BatchLevel:
    """One call of `vmap`, or one batch of gradients.

    Attributes
    ----------
    size : int
        The length of the batch.
    running : list
        One item for each running call or pass that may compute with elements of the batch; empty once the call of `vmap` has returned,
        so that an element that left it is refused. (A list, because `append` and `pop` are atomic.)
    made : dict
        Weak references to the Tensors that creation functions and copies made in this level, by `id`.
    """

    __slots__ = ("made", "randomness", "running", "size")

    def __init__(self, size: int, randomness: str = "error") -> None:
        self.size = size
        self.randomness = randomness
        self.running: list[None] = [None]
        self.made: dict[int, Any] = {}


_LEVELS: ContextVar[tuple[BatchLevel, ...]] = ContextVar("xpgrad_batch_levels", default=())


def active_levels() -> tuple[BatchLevel, ...]:
    """Return the running calls of `vmap` in this context, outermost first."""
    return _LEVELS.get()


def note_made(x: Any) -> Any:
    """Note that `x` was made in the innermost level, if there is one, so that elements of its batch may be written into it; return `x`."""
    levels = _LEVELS.get()
    if levels:
        made, key = levels[-1].made, id(x)
        # The callback is `made.pop(key, reference)`, and not Python code, in which an interrupt would be printed instead of raised.
        made[key] = ref(x, partial(made.pop, key))
    return x


def was_made_within(x: Any, depth: int) -> bool:
    """Return whether `x` was made in the level number `depth`, counted from 1 for the outermost, or inside of it."""
    return any(id(x) in level.made for level in _LEVELS.get()[depth - 1 :])


def run_within(level: BatchLevel, function: Callable[[], Any]) -> Any:
    """Call `function` with `level` as the innermost level and return its result; then end the level."""
    before = _LEVELS.get()
    try:
        _LEVELS.set((*before, level))
        return function()
    finally:
        _LEVELS.set(before)  # first: an interrupt may arrive between the two, and a level that has ended must not stay active
        level.running.pop()


class at_levels(Setting[tuple[BatchLevel, ...]]):  # noqa: N801 (a context manager, called like a function)
    """Context manager in which exactly these levels are active, and their elements may be used, to continue work that began in them.

    Parameters
    ----------
    levels : tuple of BatchLevel
        Outermost first.
    """

    def __init__(self, levels: tuple[BatchLevel, ...]) -> None:
        super().__init__(_LEVELS, levels)

    def __enter__(self) -> None:
        super().__enter__()
        for level in self.value:
            level.running.append(None)

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        for level in self.value:
            level.running.pop()
