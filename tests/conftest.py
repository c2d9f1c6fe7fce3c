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
from support import DEVICES, frozen_backend, kernels_only, plugin_backends, time_left
from xpgrad.errors import CapabilityError, DeviceMismatchError

plugin_backends.register("strict")
frozen_backend.register()
kernels_only.register()

# ``--hypothesis-profile=first-failure`` ends a failing test at once: where only the failure matters, no smaller example is looked for.
hypothesis.settings.register_profile("first-failure", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--all``."""
    parser.addoption(
        "--all", action="store_true", help="run every case of every test, on every device, not a sample of those that take long"
    )


@pytest.hookimpl(trylast=True)  # when pytest's reporter is there
def pytest_configure(config: pytest.Config) -> None:
    """Show the time left, declare the marker, and let tests compile on CuPy what it cannot capture, e.g. products of matrices."""
    time_left.show(config)
    config.addinivalue_line("markers", "sample(one_in): without --all, one case in so many of this test is run, and at least one")
    if any(device.startswith("cupy") for device in DEVICES):
        config.addinivalue_line("filterwarnings", "ignore:.*it cannot be captured as a CUDA graph:UserWarning")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the cycle collector, and exempt from it what is there: else each `gc.collect()` visits all tests (0.5 s)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep a sample of the tests that have many cases; ``--all`` keeps every test.

    Of a test that is marked ``sample(one_in=N)``, one case in N is kept; of repetitions on devices after the first, one in eight. Each test
    keeps at least one case on each device. ``XPGRAD_TEST_SHARE=3`` keeps one test in three, whatever is marked.

    The samples are the same in each run. ``XPGRAD_TEST_SEED`` selects others.
    """
    seed, share = os.environ.get("XPGRAD_TEST_SEED", ""), int(os.environ.get("XPGRAD_TEST_SHARE", "1"))
    numbers = {item: zlib.crc32(f"{seed} {item.nodeid}".encode()) for item in items}
    left_out = {item for item in items if numbers[item] % share}
    if not config.getoption("--all"):
        cases: dict[tuple[str, str | None, int], list[pytest.Item]] = {}
        for item in items:
            device, mark = _further_device(item), item.get_closest_marker("sample")
            one_in = max(1 if device is None else 8, 1 if mark is None else mark.kwargs["one_in"])
            cases.setdefault((item.nodeid.partition("[")[0], device, one_in), []).append(item)
        for (_, _, one_in), same in cases.items():
            left_out.update(sorted(same, key=numbers.__getitem__)[-(-len(same) // one_in) :])
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _further_device(item: pytest.Item) -> str | None:
    """Return the device that a test runs on; None if it is the first one, or the test runs on no particular device."""
    device = item.callspec.params.get("xpgrad_device", DEVICES[0]) if hasattr(item, "callspec") else DEVICES[0]
    return None if device == DEVICES[0] else device


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
