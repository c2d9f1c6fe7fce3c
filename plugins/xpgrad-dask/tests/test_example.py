"""The example runs on threads and on a cluster, and prints the memory that it used; the README's programs run unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("scheduler", ["threads", "cluster"])
def test_larger_than_memory(scheduler: str) -> None:
    if scheduler == "cluster":
        pytest.importorskip("distributed")
    command = [sys.executable, str(ROOT / "examples" / "larger_than_memory.py"), "--scheduler", scheduler]
    small = ["--rows", "40000", "--columns", "8", "--chunk", "4000", "--steps", "3", "--limit", "1GiB"]
    run = subprocess.run([*command, *small], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    norms = [float(n) for n in re.findall(r"norm of the gradient ([\d.]+)", run.stdout)]
    assert len(norms) == 3
    assert norms[2] < 0.3 * norms[0]
    assert re.search(r"peak memory: [\d.]+ [MG]iB", run.stdout)  # NB: on Linux it includes the memory of the parent when it forked
    assert "100% Completed" in run.stdout


def test_readme() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        run = subprocess.run([sys.executable, "-W", "error", "-c", block], capture_output=True, text=True, timeout=120, check=False)
        assert run.returncode == 0, run.stderr
