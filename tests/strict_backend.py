"""The plugin xpgrad-strict for the tests, installed or not: what the standard does not have is an error there."""

from __future__ import annotations

import sys
from pathlib import Path

from xpgrad.registry import backend_names, register_backend

__all__ = ["register"]


def register() -> None:
    """Make it known, once."""
    if "strict" not in backend_names():
        sys.path.append(str(Path(__file__).resolve().parents[1] / "plugins" / "xpgrad-strict"))
        from xpgrad_strict import xpgrad_backend

        register_backend(xpgrad_backend())
