"""Tables of the hooks on a node, and the handles that remove them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

from xpgrad._basics.threads import renew_in_children

#: Held while a node gets its table of hooks, and while a retained gradient is added to.
LOCK = threading.RLock()
renew_in_children(globals(), "LOCK")


class RemovableHandle:
    """A handle that removes a hook: by `remove()`, or on leaving a `with` block."""

    _ids = itertools.count(1)

    def __init__(self, *tables: dict[int, Any]) -> None:
        self.id: int = next(RemovableHandle._ids)
        self._tables = tables

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        for table in self._tables:
            table.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Hooks:
    """The hooks of a node.

    ``tensor`` hooks get the gradient of its output; ``retained`` is the `.grad` of a non-leaf.
    """

    __slots__ = ("multi", "post", "post_accumulate", "pre", "retain", "retained", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, Callable[[Any], Any]] = {}
        self.pre: dict[int, Callable[[Any], Any]] = {}
        self.post: dict[int, Callable[[Any, Any], Any]] = {}
        self.post_accumulate: dict[int, Callable[[Any], Any]] = {}
        self.multi: dict[int, Callable[[Any], Any]] = {}  # get the gradient after the tensor hooks; cannot change it
        self.retain: bool = False
        self.retained: Any = None


def hooks_of(node: Any) -> Hooks:
    """Return the hooks of a node; create the table if it has none."""
    node = node.original
    if node.hooks is None:
        with LOCK:
            if node.is_slot:
                hooks_of(node.owner)  # the owner calls the hooks of the outputs that no gradient has reached
            if node.hooks is None:
                node.hooks = Hooks()
    found: Hooks = node.hooks
    return found


def add_hook(table: dict[int, Any], hook: Any, *more: dict[int, Any]) -> RemovableHandle:
    """Add a callable to a table of hooks and return the handle that removes it.

    Raises
    ------
    TypeError
        If it cannot be called.
    """
    if not callable(hook):
        msg = f"a hook must be callable, but got {type(hook).__name__}"
        raise TypeError(msg)
    handle = RemovableHandle(table, *more)
    table[handle.id] = hook
    return handle
