"""`xpgrad.dialects.hips.scipy`: differentiable functions of SciPy under SciPy's names.

They are in the modules `integrate`, `linalg`, `signal`, `special` and `stats`.
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
