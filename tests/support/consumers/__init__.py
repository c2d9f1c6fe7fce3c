"""Calls of array API functions of SciPy, scikit-learn and array-api-extra, which `xpgrad.testing` checks on a device.

``python -m support.consumers DEVICE [NAME ...]`` (from ``tests/``) prints one line of JSON for each call: its name and what
was found. SciPy and scikit-learn read the switch for array API support at import, so this runs in a separate process.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

__all__ = ["MODULES", "NEWER", "table_of", "tables"]

#: The table that has rows only where this version of SciPy, or a newer one, is installed.
NEWER = "SciPy 1.18"

#: The module of each table by the prefix of its rows' names; a longer prefix comes before a shorter one.
MODULES = {
    "scipy.special": "scipy_special",
    "scipy.stats": "scipy_stats",
    "scipy.signal": "scipy_signal",
    "scipy.ndimage": "scipy_ndimage",
    "scipy": "scipy_others",
    "sklearn": "scikit_learn",
    "array_api_extra": "array_api_extra",
    NEWER: "scipy_newer",
}


def table_of(name: str) -> str:
    """Return the prefix in `MODULES` that matches a row's name."""
    return next(start for start in MODULES if name.startswith(start))


def tables(*starts: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the rows of the named tables (default: all but the one of newer functions), and the reason for each name that is left out."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    rows: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for start in starts or [start for start in MODULES if start != NEWER]:
        module = importlib.import_module(f"support.consumers.{MODULES[start]}")
        if start == "sklearn":
            importlib.import_module("sklearn").set_config(array_api_dispatch=True)
        rows |= module.ROWS
        left_out |= {name: reason for reason, names in module.LEFT_OUT.items() for name in names.split()}
    return rows, left_out
