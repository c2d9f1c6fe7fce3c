"""The hook of folders whose tests are skipped where a device lacks a function, because of where its memory is, or double precision."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from xpgrad.errors import CapabilityError


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    try:
        return (yield)
    except CapabilityError as exc:
        # These laws are of double precision; that single precision stays what it is has a test that needs no other.
        if not any(phrase in str(exc) for phrase in ("SciPy computes on the host only", "has no float64", "has no complex128")):
            raise
        pytest.skip(str(exc))
