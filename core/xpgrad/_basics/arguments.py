"""Checks of arguments that several functions share, with the errors that users see.

None of them runs in a valid call of an operation; the checks that normalise an operation's arguments are in `shapes`.
"""

from __future__ import annotations

import sys
from typing import Any

from xpgrad._basics.scalars import as_scalar


def shown(value: Any) -> str:
    """Format a value for an error message: its type and the beginning of its repr."""
    return f"{type(value).__name__} {value!r:.60}"


def is_bool(value: Any) -> bool:
    """Return whether a value is a bool of Python or of an array library; NumPy 2.2's has an `__index__`, which only warns."""
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", None) == "b"


def as_int(value: Any, name: str, what: str) -> int:
    """Return `value` as an int; a bool is an error, as in NumPy and PyTorch.

    Parameters
    ----------
    value : object
    name, what : str
        The names of the function and the argument, for the message.

    Raises
    ------
    TypeError
        If it is not an integer.
    """
    if value.__class__ is int:
        return value
    try:
        if isinstance(value, type) or is_bool(value):
            raise TypeError
        number: int = value.__index__()
    except (AttributeError, TypeError) as exc:
        msg = f"{name}: `{what}` must be an int, but got {shown(value)}"
        raise TypeError(msg) from (exc if str(exc) else None)
    return number


def as_size(value: Any, name: str, what: str) -> int:
    """Return `value` as the length of an axis.

    Raises
    ------
    TypeError, ValueError
        If it is not an integer, is negative, or exceeds the size of any array.
    """
    number = as_int(value, name, what)
    if not 0 <= number <= sys.maxsize:
        msg = f"{name}: `{what}` must {'not be negative' if number < 0 else f'be at most {sys.maxsize}'}, but got {number}"
        raise ValueError(msg)
    return number


def as_flag(value: Any, name: str, what: str) -> bool:
    """Return `value` as a bool: it must be True, False, 0 or 1, of Python's or NumPy's types.

    Raises
    ------
    TypeError
        If it is anything else.
    """
    scalar = value if isinstance(value, bool) else as_scalar(value)
    if isinstance(scalar, (bool, int)) and scalar in (0, 1):
        return bool(scalar)
    msg = f"{name}: `{what}` must be a bool, but got {shown(value)}"
    raise TypeError(msg)


def as_real(value: Any, name: str, what: str) -> Any:
    """Return `value` as a Python int or float.

    Raises
    ------
    TypeError
        If it is neither, nor a NumPy scalar of such a kind.
    """
    scalar = as_scalar(value)
    if isinstance(scalar, bool) or not isinstance(scalar, (int, float)):
        msg = f"{name}: `{what}` must be a real number, but got {shown(value)}"
        raise TypeError(msg)
    return scalar


def check_callable(value: Any, name: str, what: str = "func") -> None:
    """Raise TypeError if `value` is not callable."""
    if not callable(value):
        msg = f"{name}: `{what}` must be callable, but got {shown(value)}; give a function"
        raise TypeError(msg)


def check_chunk_size(value: Any, name: str) -> None:
    """Raise ValueError if `value` is neither None nor a positive int."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        msg = f"{name}: `chunk_size` must be a positive int or None, but got {value!r:.60}"
        raise ValueError(msg)


def check_choice(value: Any, choices: tuple[str, ...], name: str, what: str) -> None:
    """Raise ValueError if `value` is not one of `choices`."""
    # NB: comparing an array with a name would give an array.
    if not isinstance(value, str) or value not in choices:
        msg = f"{name}: `{what}` must be {' or '.join(map(repr, choices))}, but got {value!r:.60}"
        raise ValueError(msg)


def as_flags(name: str, **flags: Any) -> tuple[bool, ...]:
    """Return several arguments as bools, in the given order; see `as_flag`."""
    return tuple(as_flag(value, name, what) for what, value in flags.items())
