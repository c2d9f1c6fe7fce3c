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

#: What says how many threads BLAS and torch have. Each of xdist's processes gives them one: with one for each core they would wait for
#: one another.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

plugin_backends.register("strict")
frozen_backend.register()
kernels_only.register()

# ``--hypothesis-profile=first-failure`` ends a failing test at once: where only the failure matters, no smaller example is looked for.
hypothesis.settings.register_profile("first-failure", phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--all`` and ``--rest``."""
    parser.addoption("--all", action="store_true", help="also run what takes long, and every case on every device")
    parser.addoption("--rest", type=int, default=0, metavar="N", help="of what only --all runs, run one test in N")


@pytest.hookimpl(trylast=True)  # when pytest's reporter is there
def pytest_configure(config: pytest.Config) -> None:
    """Show the time left, declare the marker, and let tests compile on CuPy what it cannot capture, e.g. products of matrices."""
    for name in THREADS:
        os.environ.setdefault(name, "1")
    time_left.show(config)
    config.addinivalue_line("markers", "slow(one_in): only --all runs this test; with `one_in`, one case in so many always runs")
    if any(device.startswith("cupy") for device in DEVICES):
        config.addinivalue_line("filterwarnings", "ignore:.*it cannot be captured as a CUDA graph:UserWarning")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the cycle collector, which would visit the growing list of tests again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After a module's last test, exempt what stays from the cycle collector: else many a `gc.collect()` in a test takes a second."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what takes long, unless ``--all`` is given, and what ``XPGRAD_TEST_SHARE`` does not draw.

    Only ``--all`` runs tests that are marked ``slow``. Of one that is marked ``slow(one_in=N)``, one case in N is kept, on the first
    device alone. The others repeat what runs on the first: there one case in eight is kept of each test without a mark, and at least one.
    ``--rest 3`` adds one in three of the tests that are left out. ``XPGRAD_TEST_SHARE=3`` keeps one test in three. Each run keeps the
    same tests; ``XPGRAD_TEST_SEED`` selects others.
    """
    seed, share = os.environ.get("XPGRAD_TEST_SEED", ""), int(os.environ.get("XPGRAD_TEST_SHARE", "1"))
    rest = config.getoption("--rest")
    numbers = {item: zlib.crc32(f"{seed} {item.nodeid}".encode()) for item in items}
    left_out = {item for item in items if numbers[item] % share}
    if not config.getoption("--all"):
        tests: dict[tuple[str, str, int], list[pytest.Item]] = {}
        for item in items:
            tests.setdefault((item.nodeid.partition("[")[0], *_device_and_share(item)), []).append(item)
        for (_, _, one_in), cases in tests.items():
            kept = -(-len(cases) // one_in) if one_in else 0
            left_out.update(item for item in _spread(sorted(cases, key=numbers.__getitem__))[kept:] if not rest or numbers[item] % rest)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


def _device_and_share(item: pytest.Item) -> tuple[str, int]:
    """Return the device that a test runs on, and in how many of its cases one is kept; 0 if none is."""
    device = item.callspec.params.get("xpgrad_device", DEVICES[0]) if hasattr(item, "callspec") else DEVICES[0]
    mark = item.get_closest_marker("slow")
    one_in = 1 if mark is None else mark.kwargs.get("one_in", 0)
    return device, one_in if device == DEVICES[0] else 8 if mark is None else 0


def _spread(cases: list[pytest.Item]) -> list[pytest.Item]:
    """Move cases forward that have a parameter that no earlier case has, so that a sample has as many of them as possible."""
    seen: set[str] = set()
    first, others = [], []
    for case in cases:
        parameters = set(case.nodeid.partition("[")[2].removesuffix("]").split("-"))
        (others if parameters <= seen else first).append(case)
        seen |= parameters
    return first + others


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
