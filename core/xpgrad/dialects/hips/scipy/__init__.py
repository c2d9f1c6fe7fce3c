"""`xpgrad.dialects.hips.scipy`: functions of SciPy that can be differentiated, under its names: `special`, and `norm` of `stats`."""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips.scipy import special as special, stats as stats

__all__ = ["special", "stats"]


def __getattr__(name: str) -> Any:
    """Say what is there instead of `linalg`, `signal`, `integrate`."""
    msg = (
        f"xpgrad.dialects.hips.scipy has no {name!r}, only `special` and `stats.norm`; make a primitive of a function of SciPy with "
        "`extend.primitive` and `extend.defvjp`"
    )
    raise AttributeError(msg)
