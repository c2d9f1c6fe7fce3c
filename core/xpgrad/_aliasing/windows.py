"""Record when `allow_mutation_on_saved_tensors` was active: graphs recorded in it must be differentiated in it."""

from __future__ import annotations

import bisect
import threading
from typing import Any

from xpgrad._basics.threads import renew_in_children
from xpgrad._modes import state

#: Readings of the clock between which `allow_mutation_on_saved_tensors` was active, once it has been left.
MUTATION_WINDOWS: list[tuple[float, float]] = []
_REMEMBERED_WINDOWS = 10_000
_LOCK = threading.RLock()
renew_in_children(globals(), "_LOCK")


def remember_window(start: int, end: int) -> None:
    """Record that the context was active between two readings of the clock."""
    with _LOCK:
        bisect.insort(MUTATION_WINDOWS, (start, end))
        del MUTATION_WINDOWS[:-_REMEMBERED_WINDOWS]


def check_windows(order: list[Any]) -> None:
    """Raise for nodes that were recorded inside `allow_mutation_on_saved_tensors`, if it is not active now (MUT-23)."""
    mode = state.current()
    if mode is not None and mode.copies:
        return
    windows = MUTATION_WINDOWS.copy()  # other threads may add to it
    for node in order:
        if node.saves:
            k = bisect.bisect_left(windows, (node.seq, 0)) - 1
            if k >= 0 and node.seq < windows[k][1]:
                msg = (
                    f"Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally "
                    f"recorded ({node.name()}); call `backward()` or `grad()` inside of it"
                )
                raise AssertionError(msg)
