"""Law: the contracts hold on NumPy, and those of streams on simulated streams. `xpgrad conformance` tries more cases and backends."""

from __future__ import annotations

from typing import Any

from support import plugin_backends
from xpgrad_conformance.contract import contracts
from xpgrad_conformance.suite import ConformanceTests

plugin_backends.register("simstream")


class TestNumPy(ConformanceTests):
    backend = "numpy"
    profile = "quick"


class TestStreams(ConformanceTests):
    backend = "simstream"
    profile = "quick"

    def pytest_generate_tests(self, metafunc: Any) -> None:
        chosen = [contract for contract in contracts().values() if "streams" in contract.requires]
        metafunc.parametrize("contract", chosen, ids=[contract.id for contract in chosen])
