"""A test that meets a function that a device lacks, because its memory is not the host's, is a skip that says so."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from xpgrad.errors import CapabilityError


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    try:
        return (yield)
    except CapabilityError as exc:
        if "SciPy computes on the host only" not in str(exc):
            raise
        pytest.skip(str(exc))
