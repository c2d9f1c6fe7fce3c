"""Calls of the functions of SciPy, scikit-learn and array-api-extra that accept any array, which `xpgrad.testing` checks on a device.

``python -m support.consumers DEVICE [NAME ...]`` (from ``tests/``) prints a line of JSON for each: its name and what was found. SciPy and
scikit-learn read what allows it when they are imported, so this is a process of its own; a library is imported where a row needs it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

__all__ = ["MODULES", "tables"]

#: The tables by the beginning of their rows' names; a longer one comes first.
MODULES = {
    "scipy.special": "scipy_special",
    "scipy.stats": "scipy_stats",
    "scipy.signal": "scipy_signal",
    "scipy.ndimage": "scipy_ndimage",
    "scipy": "scipy_others",
    "sklearn": "scikit_learn",
    "array_api_extra": "array_api_extra",
}


def table_of(name: str) -> str:
    """The beginning under which a row's name is found."""
    return next(start for start in MODULES if name.startswith(start))


def tables(*starts: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The rows, and what is left out with the reason for it, of some libraries, or of all."""
    os.environ["SCIPY_ARRAY_API"] = "1"
    rows: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for start in starts or MODULES:
        module = importlib.import_module(f"support.consumers.{MODULES[start]}")
        if start == "sklearn":
            importlib.import_module("sklearn").set_config(array_api_dispatch=True)
        rows |= module.ROWS
        left_out |= {name: reason for reason, names in module.LEFT_OUT.items() for name in names.split()}
    return rows, left_out
