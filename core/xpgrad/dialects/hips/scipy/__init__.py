"""`xpgrad.dialects.hips.scipy`: functions of SciPy that can be differentiated, under its names.

They are in `integrate`, `linalg`, `special` and `stats`.
"""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips.scipy import integrate as integrate, linalg as linalg, special as special, stats as stats

__all__ = ["integrate", "linalg", "special", "stats"]


def __getattr__(name: str) -> Any:
    """Say what is there instead of `signal`."""
    msg = (
        f"xpgrad.dialects.hips.scipy has no {name!r}, only `integrate`, `linalg`, `special` and `stats`; make a primitive of a function of "
        "SciPy with `extend.primitive` and `extend.defvjp`"
    )
    raise AttributeError(msg)
