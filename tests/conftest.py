"""What the tests share: the devices that every rule is tested on, among them backends that are no plugins but tools of these tests."""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

# NB: pytest's importlib mode puts no directory on the path; the modules beside the tests that are no tests are found here.
sys.path.append(str(Path(__file__).parent))

importlib.import_module("strict_backend").register()
importlib.import_module("frozen_backend").register()


#: The devices that every rule is tested on; ``XPGRAD_TEST_DEVICES=jax,torch`` tests on others.
DEVICES = os.environ.get("XPGRAD_TEST_DEVICES", "numpy,numpy+readonly,strict").split(",")


@pytest.fixture(scope="session", params=DEVICES)
def xpgrad_device(request: Any) -> str:
    """Every device that a rule must run on: the fast one, one whose memory is frozen, one that has nothing but the standard, and more."""
    xpgrad = importlib.import_module("xpgrad")
    return str(xpgrad.zeros(0, dtype=xpgrad.float32, device=str(request.param)).device)


@pytest.fixture
def no_cyclic_gc() -> Iterator[None]:
    """Only reference counting frees what is dropped: a cycle shows as memory that stays."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
