"""The outcome of a check of `xpgrad backends check`, and how one is made from a call."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from xpgrad.errors import CapabilityError


class Check(NamedTuple):
    """The outcome of one check.

    Attributes
    ----------
    what : str
        A statement.
    holds : bool
        Whether it holds.
    advice : str
        What is wrong and what to do, if it does not hold.
    lacks : str
        The backend's reason, if it cannot do this; such a check counts as passed.
    trace : str
        The traceback of the exception that the check ended with.
    """

    what: str
    holds: bool
    advice: str = ""
    lacks: str = ""
    trace: str = ""


def outcome(what: str, advice: str, test: Callable[[], Any]) -> Check:
    """Run `test`, and return the outcome for the statement `what`; a `CapabilityError` counts as passed, any other error as failed."""
    return _outcome(what, lambda: (bool(test()), advice), advice)


def compared(what: str, call: Callable[[], Any], expected: Any) -> Check:
    """Run `call`, and return whether its result equals `expected`; a `CapabilityError` counts as passed, any other error as failed."""

    def test() -> tuple[bool, str]:
        found = call()
        return found == expected, f"got {found}, expected {expected}"

    return _outcome(what, test, f"expected {expected}")


def _outcome(what: str, test: Callable[[], tuple[bool, str]], advice: str) -> Check:
    try:
        return Check(what, *test())
    except CapabilityError as exc:
        return Check(what, True, lacks=str(exc), trace=trace_of(exc))
    except Exception as exc:  # noqa: BLE001 (whatever a plugin raises is what the check has found)
        return Check(what, False, f"{advice}: {error_text(exc)}", trace=trace_of(exc))


def error_text(error: BaseException) -> str:
    """Return the type and the message of an error, and the line that raised it."""
    text = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    place = frames[-1]
    return f"{text} ({place.filename}:{place.lineno}{f', `{place.line}`' if place.line else ''})"


def trace_of(error: BaseException) -> str:
    """Return the traceback of an error as text."""
    return "".join(traceback.format_exception(error)).rstrip()
