"""Find out whether threads can be started: WebAssembly builds of Python have the module `threading`, but a single thread."""

from __future__ import annotations

import threading


def can_start_threads() -> bool:
    """Return whether a thread can be started now; a build of Python tells only by trying."""
    thread = threading.Thread(target=bool, name="xpgrad trial", daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return False
    thread.join()
    return True
