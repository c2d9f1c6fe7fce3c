"""What tests share: the devices that every rule is tested on, some of them backends that exist only for these tests; and sampling."""

from __future__ import annotations

import gc
import os
import re
import zlib
from collections.abc import Generator, Iterator
from typing import Any

import pytest

import xpgrad
from support import DEVICES, frozen_backend, kernels_only, strict_backend
from xpgrad.errors import CapabilityError

strict_backend.register()
frozen_backend.register()
kernels_only.register()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a share of the tests where backends repeat each other; ``XPGRAD_TEST_SEED`` draws it, the same seed the same tests.

    ``XPGRAD_TEST_SHARE=3`` keeps one test in three; ``XPGRAD_TEST_REPEATS=3`` all on the first device, and one in three of those that
    run the same on a further one.
    """
    share, repeats = (int(os.environ.get(f"XPGRAD_TEST_{name}", "1")) for name in ("SHARE", "REPEATS"))
    seed = os.environ.get("XPGRAD_TEST_SEED", "")

    def draws(item: pytest.Item, one_in: int) -> bool:
        return zlib.crc32(f"{seed} {item.nodeid}".encode()) % one_in == 0

    kept = [item for item in items if draws(item, share) and (not _is_repeated(item) or draws(item, repeats))]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=sorted(set(items) - set(kept), key=lambda item: item.nodeid))
        items[:] = kept


def _is_repeated(item: pytest.Item) -> bool:
    """Return whether a test runs on a device that is not the first."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    return parameters.get("xpgrad_device", DEVICES[0]) != DEVICES[0]


#: What the errors for a declared lack say, by the capability that declares it.
LACKS = {
    "complex": r"(has no dtype|cannot hold dtype) '?complex",
    "float64": r"(has no dtype|cannot hold dtype) '?(float64|complex128)",
    "linalg": r"has no function `linalg",
    "fft": r"has no function `fft",
}


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Skip where a test meets what its device's backend declares not to have, and says it lacks; any other error stays one."""
    try:
        return (yield)
    except (CapabilityError, TypeError) as exc:
        device = pyfuncitem.funcargs.get("xpgrad_device")
        if device is None:
            raise
        backend = xpgrad.zeros(0, dtype=xpgrad.float32, device=device).backend
        for name, phrase in LACKS.items():
            if not getattr(backend.capabilities, name) and re.search(f"backend {re.escape(repr(backend.table_name))} {phrase}", str(exc)):
                pytest.skip(f"backend {backend.table_name!r} declares {name}=False: {exc}")
        raise


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
