"""Law: processes that share arrays compute one common gradient; the example starts two of them on this machine."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "jax_distributed.py"


def test_two_processes_have_one_gradient() -> None:
    """Both processes have the gradient of all rows, computed by hand, and end with the weights that generated the data."""
    command = [sys.executable, str(EXAMPLE), "--seconds", "200"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, env={**os.environ, "PYTHONWARNINGS": "error"})
    assert run.returncode == 0, run.stdout + run.stderr
    rng = np.random.default_rng(0)
    points = rng.standard_normal((64, 3))
    expected = -2.0 * points.T @ (points @ np.asarray([1.0, -2.0, 0.5])) / 64
    for rank in range(2):
        said = [line.removeprefix(f"process {rank}: ") for line in run.stdout.splitlines() if line.startswith(f"process {rank}: ")]
        assert said[0].startswith("1 of 2 devices, loss ")
        np.testing.assert_allclose(ast.literal_eval(said[1].removeprefix("gradient ")), expected, atol=1e-6)
        assert said[2] == "after 100 steps loss 0.000000"
        assert said[3] == "weights [1.0, -2.0, 0.5]"


def test_a_process_that_waits_in_vain_is_ended() -> None:
    """After a very short time limit the processes are killed, and the exit code reports a failure."""
    command = [sys.executable, str(EXAMPLE), "--seconds", "0.2"]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 1
    assert "not done after 0.2 seconds" in run.stderr
