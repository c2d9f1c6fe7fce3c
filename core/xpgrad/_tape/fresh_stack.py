"""Run a call on a new thread, whose stack is empty, when the current thread's is nested too deeply; the caller waits for it.

Where no thread can be started, as in a browser, the call runs on the current stack.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from xpgrad._tape.streams import on_streams


def on_fresh_stack(function: Callable[[], Any], ambient: dict[Any, Any] | None) -> Any:
    """Call `function` on a new thread, with this thread's context and streams, and return its result or raise its error.

    If no thread can be started, `function` is called here. Python raises `RecursionError` if the stack does not suffice.

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

    # NB: `join` would report an interrupted wait as the end of the thread (Python 3.11).
    thread = threading.Thread(target=copy_context().run, args=(work,), name="xpgrad nested pass")
    try:
        thread.start()
        finished.wait()
    except BaseException as exc:  # interrupted: wait for work that has begun, and keep work that has not from beginning later
        abandoned.append(True)
        if begun:
            finished.wait()
        if begun or thread.ident is not None or not isinstance(exc, RuntimeError):
            raise
    if not finished.is_set():  # the thread could not be started
        with on_streams(ambient):
            return function()
    if failure:
        raise failure[0]
    return result[0]
