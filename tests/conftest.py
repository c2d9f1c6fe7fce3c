"""The fixtures that tests share: the devices that every rule is tested on, some of them backends that exist only for these tests."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest

import xpgrad
from support import DEVICES, frozen_backend, strict_backend

strict_backend.register()
frozen_backend.register()


@pytest.fixture(scope="session", params=DEVICES)
def xpgrad_device(request: Any) -> str:
    """Every device that a rule must run on: the fast one, one whose memory is frozen, one that has only what the standard has, and more."""
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
