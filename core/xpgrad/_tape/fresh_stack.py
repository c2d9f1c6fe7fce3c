"""A call on a thread of its own, whose stack is empty, for what is nested too deeply for this one; the caller waits for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from xpgrad._tape.streams import on_streams


def on_fresh_stack(function: Callable[[], Any], ambient: dict[Any, Any] | None) -> Any:
    """Call `function` on another thread, in this one's context and with its streams, and return or raise what it does.

    Parameters
    ----------
    function : callable
    ambient : dict or None
        The current streams, by Tensor class.
    """
    result: list[Any] = []
    failure: list[BaseException] = []
    begun: list[bool] = []
    abandoned: list[bool] = []
    finished = threading.Event()

    def work() -> None:
        begun.append(True)
        try:
            if not abandoned:
                with on_streams(ambient):
                    result.append(function())
        except BaseException as exc:  # noqa: BLE001 (handed to the caller's thread)
            failure.append(exc)
        finally:
            finished.set()

    # NB: not `join`, which takes a thread for ended when the waiting is interrupted (Python 3.11).
    try:
        threading.Thread(target=copy_context().run, args=(work,), name="xpgrad nested pass").start()
        finished.wait()
    except BaseException:  # interrupted: what has begun is not left running behind the caller's back, and nothing begins later
        abandoned.append(True)
        if begun:
            finished.wait()
        raise
    if failure:
        raise failure[0]
    return result[0]
