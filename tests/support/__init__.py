"""Helpers that several folders of tests share: devices, central differences, and backends (also an imitation of CuPy) made for tests."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["DEVICES", "search_path"]

#: The devices that every rule is tested on; ``XPGRAD_TEST_DEVICES=jax,torch`` chooses others.
DEVICES = os.environ.get("XPGRAD_TEST_DEVICES", "numpy,numpy+readonly,strict").split(",")


def search_path() -> str:
    """Return the PYTHONPATH for a child process that imports `support`: this folder in front of the current value."""
    return os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")]))
