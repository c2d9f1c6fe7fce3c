"""Law: a function compiled by JAX may be transformed by JAX; the tests for all backends are in `tests/programs/test_compile.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp

jax = pytest.importorskip("jax", reason="JAX is not installed")
ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("x64")


def test_compiled_functions_inside_transforms() -> None:
    outer = xp.compile(lambda a: xp.sum(a * a * a))

    def gradient(raw: Any) -> Any:
        leaf = xp.asarray(raw)
        leaf.requires_grad_()
        return xp.autograd.grad(outer(leaf), leaf)[0].array

    raw = jax.numpy.asarray([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(np.asarray(jax.jit(jax.vmap(gradient))(raw)), 3.0 * np.asarray(raw) ** 2)


def test_the_benchmark_compares_equal_results() -> None:
    """The benchmark refuses to time programs whose loss and gradients differ; its table has a row with a ratio."""
    code = "from benchmarks import compile as c; print(len(c.PROGRAMS), all(r > 0 for n in ('chain', 'digits') for r in c.run_times(n, 1)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert run.stdout == "4 True\n", run.stderr
    command = [sys.executable, "-m", "benchmarks.compile", "--first", "xpgrad", "chain"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=240)
    assert float(run.stdout) > 0.0, run.stderr


@pytest.mark.parametrize("loop", [False, True], ids=["no loop", "loop"])
def test_value_and_gradients_draw_the_same_random_numbers(loop: bool) -> None:
    def noise() -> Any:
        return xp.asarray(np.random.uniform(1.0, 2.0, 3), dtype=xp.float32, device="jax")  # noqa: NPY002 (the global generator is meant)

    def scaled(x: Any) -> Any:
        return xp.func.fori_loop(0, 3, lambda _, x: x * noise(), x) if loop else x * noise()

    f = xp.compile(scaled)
    x = xp.tensor([1.0, 2.0, 3.0], dtype=xp.float32, device="jax", requires_grad=True)
    y = f(x)
    (g,) = xp.autograd.grad(xp.sum(y), x)
    np.testing.assert_allclose(g.numpy(), (y / x).detach().numpy(), rtol=1e-5)
    ones = xp.ones_like(x.detach())
    y, pull = xp.func.vjp(f, x.detach())
    np.testing.assert_allclose(pull(ones)[0].numpy(), (y / x.detach()).numpy(), rtol=1e-5)
    if not loop:
        y = f(x)
        (g,) = xp.autograd.grad(xp.sum(y), x, create_graph=True)
        np.testing.assert_allclose(g.detach().numpy(), (y / x).detach().numpy(), rtol=1e-5)
