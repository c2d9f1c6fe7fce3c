"""Threads and forks: locks that a child process finds free, and whether threads can be started.

`docs/threads.md` says what is shared between threads, and what protects it.
"""

from __future__ import annotations

import os
import threading
from typing import Any


def renew_in_children(module: dict[str, Any], name: str) -> None:
    """Replace a module's lock in each child process, where the thread that may hold the parent's does not exist.

    Functions must read the lock from the module each time.

    Parameters
    ----------
    module : dict
        ``globals()`` of the module.
    name : str
        The name of a `threading.RLock` in it.
    """

    def renew() -> None:
        module[name] = threading.RLock()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=renew)


def wait_in_forks(lock: threading.RLock) -> None:
    """Let a fork wait until no other thread holds a lock, so that the child finds in order what it protects, as in another library."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)


def can_start_threads() -> bool:
    """Return whether a thread can be started now.

    WebAssembly builds of Python have the module `threading`, but a single thread. They tell only by trying.
    """
    thread = threading.Thread(target=bool, name="xpgrad trial", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True
