"""Law: gradients are the same at every version of the standard; errors name the functions that a version lacks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
VARIANTS = ["strict", "strict+2023-12", "strict+2024-12", "strict+2025-12"]


def fresh(*args: str, **environment: str) -> Any:
    return subprocess.run(
        [sys.executable, *args], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=280
    )


@pytest.mark.parametrize("device", VARIANTS)
def test_the_rules_at_each_version(device: str) -> None:
    """Run the repository's tests of the elementwise rules in another process, since a process follows one version."""
    later = " and not reciprocal" if device == "strict+2023-12" else ""  # new in 2024.12
    tests = ["tests/rules/test_elementwise.py", "-k", "gradients and not complex" + later]
    run = fresh("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *tests, XPGRAD_TEST_DEVICES=device)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert " passed" in run.stdout


PROGRAM = """
import numpy as np, xpgrad as xp
found = []
for device in ("numpy", {device!r}):
    x = xp.tensor([[0.3, -0.7, 1.1], [0.9, 0.2, -0.4]], requires_grad=True, device=device)
    y = xp.tanh(x @ xp.matrix_transpose(x)) + x[:, 1]
    y[0, 0] = xp.max(x)
    y = xp.concat([y, xp.flip(y, axis=0)])
    xp.sum(y * xp.exp(y)).backward()
    found.append(x.grad.numpy())
print(x.device, np.allclose(found[0], found[1], rtol=1e-12))
"""


@pytest.mark.parametrize("device", VARIANTS)
def test_a_program_at_each_version(device: str) -> None:
    run = fresh("-W", "ignore", "-c", PROGRAM.format(device=device))
    assert run.stdout == f"{device} True\n", run.stderr


def test_a_function_that_a_version_does_not_have_is_named() -> None:
    code = """
import xpgrad as xp
x = xp.tensor([1.0, 2.0], device="strict+2023-12")
try:
    xp.nextafter(x, x)
except xp.CapabilityError as exc:
    print(exc)
"""
    run = fresh("-W", "ignore", "-c", code)
    assert "version 2023.12 of the standard" in run.stdout, run.stderr
    assert "has no function `nextafter`" in run.stdout


def test_a_second_version_in_one_process_is_refused() -> None:
    code = """
import xpgrad as xp
xp.zeros(1, device="strict+2023-12")
try:
    xp.zeros(1, device="strict+2024-12")
except xp.BackendLoadError as exc:
    print(exc)
"""
    run = fresh("-W", "ignore", "-c", code)
    assert "follows version 2023.12 of the standard in this process, and can't follow 2024.12 as well" in run.stdout, run.stderr


def test_the_readme_is_true(capsys: Any) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})  # noqa: S102 (our own text)
    assert capsys.readouterr().out == "[2.0, 4.0]\n"
