"""Interrupt a function, or fork, at each point where CPython checks for signals (`Python/ceval.c` of 3.11 to 3.13).

These points are the entry of a Python function, the return from a C function, and a backward jump.
"""

from __future__ import annotations

import dis
import functools
import inspect
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

__all__ = ["interrupted_at", "points", "run_until"]

_CALLS = {"CALL", "CALL_KW", "CALL_FUNCTION_EX", "CALL_INTRINSIC_1"}
_JUMPS = {"JUMP_BACKWARD"}
#: A context manager written in Python can be interrupted before it restores anything, which the language cannot prevent.
_EXEMPT = {"__exit__", "__del__"}


@functools.cache
def _instructions(code: CodeType) -> dict[int, tuple[str, Any]]:
    """Return, for each offset, the instruction's name and the target of the handler for an exception that it raises."""
    table = dis._parse_exception_table(code) if hasattr(dis, "_parse_exception_table") else []  # type: ignore[attr-defined]
    handlers: dict[int, Any] = {}
    for entry in table:
        for offset in range(entry.start, entry.end, 2):
            handlers[offset] = entry.target
    return {i.offset: (i.opname, handlers.get(i.offset)) for i in dis.get_instructions(code)}


def _interrupt() -> None:
    raise KeyboardInterrupt


class _Counter:
    """A trace function that counts the interruptible points and calls a function at one of them."""

    def __init__(self, at: int | None, happens: Callable[[], None] = _interrupt) -> None:
        self.at, self.happens, self.count = at, happens, 0
        self.last: dict[FrameType, int] = {}
        self.off = False
        #: These bound methods stay alive for as long as they may be called: Python 3.11 was once seen to call whatever object had
        #: replaced a method that was created for one event and then freed.
        self.on_entry, self.on_step = self.entered, self.stepped

    def point(self) -> None:
        if self.count == self.at:
            self.off = True
            self.happens()
        self.count += 1

    def entered(self, frame: FrameType, event: str, arg: Any) -> Any:
        if self.off:
            return None
        if frame.f_back is not None:
            self.last.pop(frame.f_back, None)  # The caller called a Python function, whose return is not an interruptible point.
        if frame.f_code.co_flags & inspect.CO_GENERATOR:
            return None  # A generator may be running because it is being closed; an exception there is printed, not raised.
        if frame.f_code.co_name not in _EXEMPT:
            self.point()
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.on_step

    def stepped(self, frame: FrameType, event: str, arg: Any) -> Any:
        if self.off or event != "opcode":
            self.last.pop(frame, None)
            return None if self.off else self.on_step
        found = _instructions(frame.f_code)
        before = self.last.get(frame)
        self.last[frame] = frame.f_lasti
        if before is not None:
            (name, handler), (_, now) = found[before], found[frame.f_lasti]
            # NB: the exception is raised at the instruction after the call, so both instructions must have the same handler.
            if (name in _CALLS or name in _JUMPS) and handler == now:
                self.point()
        return self.on_step


def _run_traced(function: Callable[[], Any], counter: _Counter) -> None:
    before = sys.gettrace()
    sys.settrace(counter.on_entry)
    try:
        function()
    finally:
        sys.settrace(before)


def points(function: Callable[[], Any]) -> int:
    """Return the number of points at which a call of `function` can be interrupted."""
    counter = _Counter(None)
    _run_traced(function, counter)
    return counter.count


def interrupted_at(k: int, function: Callable[[], Any]) -> bool:
    """Call `function` and interrupt it at its k-th point; return whether the interrupt propagated out of it."""
    try:
        _run_traced(function, _Counter(k))
    except KeyboardInterrupt:
        return True
    return False


def run_until(k: int, happens: Callable[[], None], function: Callable[[], Any]) -> None:
    """Call `function`, and `happens` at its k-th point."""
    _run_traced(function, _Counter(k, happens))
