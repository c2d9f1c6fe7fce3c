"""Runs on a fork server report what pytest reports, and a crash or hang there costs one contract only."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from xpgrad_conformance.contract import contracts
from xpgrad_conformance.fork_server import Forked, Server, available
from xpgrad_conformance.mutants import copy, surroundings
from xpgrad_conformance.session import Outcome, Request, run

pytestmark = [pytest.mark.skipif(not available(), reason="processes cannot fork here"), pytest.mark.timeout(240)]
CORE = Path(__import__("xpgrad").__file__).parent


@pytest.fixture(scope="module")
def server() -> Any:
    server = Server()
    yield server
    server.close()


def run_contracts(server: Server | None, ids: list[str], folder: Path | None = None, **options: Any) -> Outcome:
    environment = {} if folder is None else surroundings(folder)
    return run(Request("numpy", "numpy", [contracts()[name] for name in ids], "quick", environment=environment, **options), server=server)


def plant_fault(tmp_path: Path, file: str, old: str, new: str) -> Path:
    source = (CORE / file).read_text(encoding="utf-8")
    assert source.count(old) == 1
    copy(f"xpgrad/{file}", source.replace(old, new).encode(), tmp_path)
    assert (CORE / file).read_text(encoding="utf-8") == source
    return tmp_path


@pytest.mark.slow
def test_the_results_are_those_of_pytest(server: Server, tmp_path: Path) -> None:
    ids = ["HOG-02", "BWD-02", "STR-01", "DER-09", "FUN-36", "MUT-18"]  # passed, not run, cannot be checked, ...
    ours, theirs = run_contracts(server, ids), run_contracts(None, ids, as_listed=True)
    assert [(r.id, r.status, r.reason) for r in ours.rows] == [(r.id, r.status, r.reason) for r in theirs.rows]
    assert ours._replace(rows=[]) == theirs._replace(rows=[])
    assert len({r.status for r in ours.rows}) > 1
    folder = plant_fault(tmp_path, "rules/elementwise.py", '"g * x * 2"', '"g * x"')
    ids = ["BWD-02", "DER-02", "BWD-01"]
    assert [r.status for r in run_contracts(server, ids, folder).rows] == [
        r.status for r in run_contracts(None, ids, folder, as_listed=True).rows
    ]
    assert [r.status for r in run_contracts(server, ids, folder, exitfirst=True).rows] == ["passed", "failed", "not run"]
    assert [r.status for r in run_contracts(server, ids).rows] == ["passed"] * 3  # the fault does not affect the next run


def test_a_library_that_cannot_be_imported_is_a_cause(server: Server, tmp_path: Path) -> None:
    folder = plant_fault(tmp_path, "rules/elementwise.py", "import cmath", "import no_such_module")
    out = run_contracts(server, ["BWD-02"], folder)
    assert "no_such_module" in out.cause
    assert out.rows[0].status == "not run"
    assert "no_such_module" in run_contracts(server, ["BWD-02"], modules=("no_such_module",)).cause


@pytest.mark.slow
@pytest.mark.parametrize(("happens", "kind"), [('__import__("os").abort()', "crash"), ('__import__("time").sleep(60)', "timeout")])
def test_a_crash_and_a_hang_cost_one_contract(happens: str, kind: str, server: Server, tmp_path: Path) -> None:
    folder = plant_fault(
        tmp_path, "_basics/arguments.py", "isinstance(value, bool) else as_scalar(value)", f"isinstance(value, bool) else {happens}"
    )
    out = run_contracts(server, ["DER-24", "HOG-02"], folder, limit=3.0)
    assert [(r.status, r.kind) for r in out.rows] == [("failed", kind), ("passed", "")]
    assert "arguments.py" in out.rows[0].message  # the place where it happened


@pytest.mark.slow
def test_a_job_that_cannot_be_done_and_a_server_that_is_gone(tmp_path: Path) -> None:
    lone = Server()
    forked = lone.start({"folder": str(tmp_path)})  # the job's description is incomplete
    assert forked.wait() == forked.poll() == 70
    assert "KeyError" in (tmp_path / "output").read_text(encoding="utf-8")
    lone._process.kill()
    assert Forked(lone, 0).wait() == -signal.SIGKILL
    lone.close()
