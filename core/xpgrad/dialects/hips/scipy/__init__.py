"""`xpgrad.dialects.hips.scipy`: functions of SciPy that can be differentiated, under its names.

They are in `integrate`, `linalg`, `signal`, `special` and `stats`.
"""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips.scipy import integrate as integrate, linalg as linalg, signal as signal, special as special, stats as stats

__all__ = ["integrate", "linalg", "signal", "special", "stats"]


def __getattr__(name: str) -> Any:
    """Raise an AttributeError that names the available modules."""
    msg = (
        f"xpgrad.dialects.hips.scipy has no {name!r}, only `integrate`, `linalg`, `signal`, `special` and `stats`; make a primitive of a "
        "function of SciPy with `extend.primitive` and `extend.defvjp`"
    )
    raise AttributeError(msg)
