"""Distributions: `norm`."""

from __future__ import annotations

from typing import Any

from xpgrad.dialects.hips.scipy.stats import norm as norm

__all__ = ["norm"]


def __getattr__(name: str) -> Any:
    """Say which distributions are there."""
    msg = f"xpgrad.dialects.hips.scipy.stats has no {name!r}, only `norm`; write the density with NumPy and `scipy.special`"
    raise AttributeError(msg)
