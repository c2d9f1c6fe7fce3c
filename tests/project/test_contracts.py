"""Law: the contracts hold on NumPy; on read-only arrays and simulated streams hold those that notice the faults planted there.

So a run of the tests notices each planted fault that `xpgrad conformance mutants` tries. `xpgrad conformance` tries more cases, on every
backend.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib

import pytest

from support import search_path
from xpgrad_conformance.contract import contracts
from xpgrad_conformance.engine import PROFILES
from xpgrad_conformance.faults import KILLS, load
from xpgrad_conformance.suite import ConformanceTests


def noticing(backend: str) -> list[str]:
    """Return the contracts that notice the faults planted for a backend."""
    killers: dict[str, str] = tomllib.loads(KILLS.read_text(encoding="utf-8"))["killer"]
    return sorted({killers[name] for name, fault in load().items() if fault.backend == backend})


class TestNumPy(ConformanceTests):
    backend = "numpy"
    profile = "quick"


class TestReadOnly(ConformanceTests):
    backend = "numpy+readonly"
    profile = "quick"

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        chosen = noticing(self.backend)
        metafunc.parametrize("contract", [contracts()[name] for name in chosen], ids=chosen)


STREAMS = """
import sys
from support import plugin_backends
from xpgrad_conformance.contract import contracts
from xpgrad_conformance.engine import PROFILES, execute
from xpgrad_conformance.facade import open_library

plugin_backends.register("simstream")
library = open_library("simstream")
for name in sys.argv[1:]:
    result, _ = execute(contracts()[name], library, PROFILES["quick"])
    print(name, result.status, result.message)
"""


def test_streams() -> None:
    """The contracts run in a process of their own: once a backend with streams is loaded, the engine asks it for its streams."""
    chosen = noticing("simstream")
    environment = {**os.environ, "PYTHONPATH": search_path()}
    run = subprocess.run([sys.executable, "-c", STREAMS, *chosen], env=environment, capture_output=True, text=True, check=False)
    assert [line.split() for line in run.stdout.splitlines()] == [[name, "passed"] for name in chosen], run.stdout + run.stderr


def test_no_planted_fault_is_left_out() -> None:
    assert {fault.backend for fault in load().values()} == {"numpy", "numpy+readonly", "simstream"}
    assert PROFILES["quick"].examples == PROFILES["mutants"].examples
