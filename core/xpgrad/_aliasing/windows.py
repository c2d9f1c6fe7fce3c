"""Record when `allow_mutation_on_saved_tensors` was active: graphs recorded in it must be differentiated in it."""

from __future__ import annotations

import bisect
from contextvars import ContextVar
from typing import Any

from xpgrad._modes import state

#: Readings of the clock between which `allow_mutation_on_saved_tensors` was active in this thread or task, in order, once it has been left.
MUTATION_WINDOWS: ContextVar[tuple[tuple[float, float], ...]] = ContextVar("xpgrad_mutation_windows", default=())
_REMEMBERED_WINDOWS = 1000


def remember_window(start: int, end: int) -> None:
    """Record two readings of the clock between which `allow_mutation_on_saved_tensors` was active."""
    MUTATION_WINDOWS.set((*MUTATION_WINDOWS.get()[1 - _REMEMBERED_WINDOWS :], (start, end)))


def check_windows(order: list[Any]) -> None:
    """Raise for nodes that were recorded inside `allow_mutation_on_saved_tensors`, if it is not active now (MUT-23).

    Another thread's nodes are taken for this thread's if it recorded them at that time, but is not the one that differentiates them.
    """
    mode = state.current()
    if mode is not None and mode.copies:
        return
    windows = MUTATION_WINDOWS.get()
    for node in order:
        if node.saves:
            k = bisect.bisect_left(windows, (node.seq, 0)) - 1
            if k >= 0 and node.seq < windows[k][1]:
                msg = (
                    f"Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally "
                    f"recorded ({node.name()}); call `backward()` or `grad()` inside of it"
                )
                raise AssertionError(msg)
