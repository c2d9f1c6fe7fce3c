"""Law: a run of the tests without ``--all`` leaves out what is marked and repetitions, and a terminal shows the time left."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from programs import test_dtypes
from support import DEVICES, search_path
from support.time_left import TimeLeft

ROOT = Path(__file__).resolve().parents[2]
#: A module whose tests run on each device, one with tests of which a part is kept, and one whose tests are slow.
MODULES = ("tests/rules/test_rank_zero.py", "tests/programs/test_dtypes.py", "tests/project/test_random_mutants.py")


@functools.cache
def collected(*options: str, **variables: str) -> list[str]:
    """Return the names of the tests that a run would select."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XPGRAD_TEST_")}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options, *MODULES]
    run = subprocess.run(command, cwd=ROOT, env={**kept, **variables}, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return [line for line in run.stdout.splitlines() if "::" in line]


def functions(names: list[str]) -> set[str]:
    return {name.partition("[")[0] for name in names}


@pytest.mark.slow
def test_what_is_left_out_is_marked_or_repeats_what_is_run() -> None:
    everything, sample = collected("--all"), collected()
    assert set(sample) < set(everything)
    assert functions(sample) == {name for name in functions(everything) if "random_mutants" not in name}
    on = {device: [name for name in everything if "rank_zero" in name and f"[{device}-" in name] for device in DEVICES}
    assert set(on["numpy"]) <= set(sample)
    for device in ("numpy+readonly", "strict"):
        assert functions(on[device]) == functions(on["numpy"])
        assert functions([name for name in on[device] if name in sample]) == functions(on[device])
        assert len([name for name in on[device] if name in sample]) < len(on[device]) / 4
    (slow,) = (mark for mark in test_dtypes.test_expressions_of_two_tensors.pytestmark if mark.name == "slow")
    marked = [[name for name in names if "test_expressions_of_two_tensors[" in name] for names in (sample, everything)]
    assert len(marked[0]) == -(-len(marked[1]) // slow.kwargs["one_in"]) > 1
    assert collected.__wrapped__() == sample
    other = collected(XPGRAD_TEST_SEED="another")
    assert set(other) != set(sample)
    assert len(other) == len(sample)
    assert 0 < len(collected("--all", XPGRAD_TEST_SHARE="4")) < len(everything) / 2


@pytest.mark.slow
def test_different_seeds_add_different_parts_of_the_rest() -> None:
    everything, sample, rest = set(collected("--all")), set(collected()), set(collected("--rest", "2"))
    assert sample < rest < everything
    assert len(everything - sample) / 3 < len(rest - sample) < len(everything - sample) * 2 / 3
    other = set(collected("--rest", "2", XPGRAD_TEST_SEED="another"))
    assert other - sample != rest - sample
    assert set(collected("--rest", "1")) == everything


# -- the time left ---------------------------------------------------------------------------------------------------------------


def test_the_time_left_follows_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases of b took three times as long as those of a: after those of a, three quarters of the time are left."""
    now, kept = [0.0], {"xpgrad/seconds": {"a": 1.0, "b": 3.0}}
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    reporter: Any = SimpleNamespace(_get_progress_information_message=lambda: " [ 50%]", _screen_width=80)
    config: Any = SimpleNamespace(cache=SimpleNamespace(get=kept.get, set=kept.__setitem__))
    shown = TimeLeft(config, reporter)
    now[0] = 7.0
    shown.pytest_xdist_node_collection_finished(["a[1]", "a[2]", "b[1]", "b[2]"])
    shown.pytest_xdist_node_collection_finished(["a[1]", "a[2]", "b[1]", "b[2]"])  # the second process
    assert reporter._get_progress_information_message() == " [ 50%]"
    now[0] = 47.0
    for test in ("a[1]", "a[2]"):
        for when in ("setup", "call", "teardown"):
            shown.pytest_runtest_logreport(SimpleNamespace(nodeid=test, when=when, duration=2.0))  # type: ignore[arg-type]
    assert reporter._get_progress_information_message() == " [ 50%, 2:00 left]"
    shown.pytest_sessionfinish()
    assert kept["xpgrad/seconds"] == {"a": 6.0, "b": 3.0}


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-q",), ("-p", "xdist", "-n", "2")], ids=" ".join)
def test_a_terminal_shows_the_time_left_and_a_log_does_not(options: tuple[str, ...], tmp_path: Path) -> None:
    pty = pytest.importorskip("pty", reason="this system has no pseudo-terminals")
    (tmp_path / "conftest.py").write_text(
        "import pytest\nfrom support import time_left\n\n\n"
        "@pytest.hookimpl(trylast=True)\ndef pytest_configure(config):\n    time_left.show(config)\n",
        encoding="utf-8",
    )
    (tmp_path / "test_it.py").write_text(
        "import time, pytest\n\n\n@pytest.mark.parametrize('k', range(150))\ndef test_it(k):\n    time.sleep(0.002)\n", encoding="utf-8"
    )
    command = [sys.executable, "-m", "pytest", "--color=no", *options]
    environment = {**os.environ, "PYTHONPATH": search_path(), "COLUMNS": "80", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        text = b""
        try:
            while more := os.read(ours, 10_000):
                text += more
        except OSError:  # the other end is closed
            pass
    os.close(ours)
    assert process.returncode == 0, text
    lines = re.split(r"[\r\n]+", text.decode())
    assert [line for line in lines if re.search(r"\.{5} +\[ *\d+%, \d:\d\d left\]$", line)], lines
    assert max(len(line) for line in lines if "left]" in line) <= 80
    log = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert "%]" in log
    assert "left" not in log
