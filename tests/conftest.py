"""Fixtures and hooks that tests share: the devices that every rule is tested on, some with backends made for the tests, and sampling."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import zlib
from collections.abc import Generator, Iterator
from typing import Any

import hypothesis
import pytest

import xpgrad
from support import DEVICES, frozen_backend, kernels_only, strict_backend
from xpgrad.errors import CapabilityError, DeviceMismatchError

strict_backend.register()
frozen_backend.register()
kernels_only.register()

# ``--hypothesis-profile=first-failure`` ends a failing test at once: where only the failure matters, no smaller example is looked for.
hypothesis.settings.register_profile("first-failure", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])


def pytest_configure(config: pytest.Config) -> None:
    """Let tests compile on CuPy what it cannot capture as a graph, e.g. products of matrices: it then runs as it is."""
    if any(device.startswith("cupy") for device in DEVICES):
        config.addinivalue_line("filterwarnings", "ignore:.*it cannot be captured as a CUDA graph:UserWarning")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a share of the tests if backends repeat each other; ``XPGRAD_TEST_SEED`` draws it, and the same seed draws the same tests.

    ``XPGRAD_TEST_SHARE=3`` keeps one test in three; ``XPGRAD_TEST_REPEATS=3`` keeps all tests on the first device, and one in three of
    their repetitions on other devices.
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


#: The errors for a dtype or a function that a backend lacks.
LACKS = re.compile(r"backend '(?P<table>[^']*)' (?:(?:has no|cannot hold) dtype '?(?P<dtype>\w+)|has no function `(?P<function>[\w.]+))")

#: The errors for what only the host has: NumPy's arrays, and SciPy's functions that a library lacks.
ON_HOST = re.compile(r"an array of type numpy\.ndarray on numpy|SciPy computes on the host only")


def declared_lack(error: BaseException) -> str | None:
    """Return the declared lack of a tested backend that an error reports; None if it reports none.

    It is a capability, a dtype, a function, or memory that is the host's: NumPy's arrays are not moved to other devices.
    """
    if ON_HOST.search(str(error)):
        devices = [xpgrad.zeros(0, dtype=xpgrad.float32, device=device).device for device in DEVICES]
        elsewhere = [str(device) for device in devices if not xpgrad.registry.backend_for(device.table).on_host(device)]
        return f"{elsewhere[0]} is not on the host" if elsewhere else None
    found = LACKS.search(str(error))
    if found is None or found["table"] not in {xpgrad.Device(device).table for device in DEVICES}:
        return None
    backend = xpgrad.registry.backend_for(found["table"])
    can = backend.capabilities
    if found["dtype"] is not None:
        by = {"float64": ("float64",), "complex64": ("complex",), "complex128": ("complex", "float64", "complex128")}.get(found["dtype"])
        if by is None:
            return None if found["dtype"] in map(str, backend.dtypes()) else f"dtypes() without {found['dtype']}"
        return next((f"{name}=False" for name in by if not getattr(can, name)), None)
    extension = found["function"].partition(".")[0]
    if extension in ("linalg", "fft") and not getattr(can, extension):
        return f"{extension}=False"
    return f"missing {found['function']}" if found["function"] in backend.missing else None


@contextlib.contextmanager
def lacks_are_skips() -> Iterator[None]:
    """Skip if a tested backend reports something that it declares not to have; any other error propagates."""
    try:
        yield
    except (CapabilityError, TypeError, AssertionError, DeviceMismatchError) as exc:
        # NB: if another error was expected, pytest fails while it handles the actual one.
        error = exc.__context__ if isinstance(exc, AssertionError) and "Regex pattern did not match" in str(exc) else exc
        lack = declared_lack(error) if isinstance(error, (CapabilityError, TypeError, DeviceMismatchError)) else None
        if lack is None:
            raise
        pytest.skip(f"declared, {lack}: {error}")


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    """Run a test, and skip it if the backend declares to lack what it needs."""
    with lacks_are_skips():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    """Set up a fixture, which may make the Tensors of several tests, and skip in the same way."""
    with lacks_are_skips():
        return (yield)


@pytest.fixture(scope="session", params=DEVICES)
def xpgrad_device(request: Any) -> str:
    """Return each device that a rule must run on: the fast one, one with frozen memory, a strict one, and more."""
    return str(xpgrad.zeros(0, dtype=xpgrad.float32, device=str(request.param)).device)


@pytest.fixture
def no_cyclic_gc() -> Iterator[None]:
    """Disable the cycle collector, so that a reference cycle shows as memory that stays."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
