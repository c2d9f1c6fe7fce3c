"""Helpers for the tests of several folders: the devices, central differences, backends and a CuPy made for the tests."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["DEVICES", "search_path"]

#: The devices that every rule is tested on; ``XPGRAD_TEST_DEVICES=jax,torch`` tests on others.
DEVICES = os.environ.get("XPGRAD_TEST_DEVICES", "numpy,numpy+readonly,strict").split(",")


def search_path() -> str:
    """PYTHONPATH for a process that a test starts and that imports `support`: this folder, then the present value."""
    return os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH")]))
