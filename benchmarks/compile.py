"""`python -m benchmarks.compile`: functions compiled by xpgrad on JAX against `jax.jit(jax.value_and_grad(...))` of the same functions.

Run time (loss and gradients, in turns, medians) and compile time (the first call, each in a fresh process, in turns).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["PROGRAMS", "contestants", "main"]

ROOT = Path(__file__).resolve().parent.parent


def mlp(m: Any, w1: Any, b1: Any, w2: Any, b2: Any, x: Any, y: Any) -> Any:
    """Define the digits step: 64-128-10, batch 64, cross-entropy with one-hot labels."""
    hidden = m.maximum(x @ w1 + b1, 0.0 * b1)
    scores = hidden @ w2 + b2
    scores = scores - m.max(scores, axis=1, keepdims=True)
    return m.mean(m.log(m.sum(m.exp(scores), axis=1)) - m.sum(scores * y, axis=1))


def chain(m: Any, x: Any) -> Any:
    """Define a chain of 200 operations on 4 elements."""
    y = x
    for _ in range(50):
        y = m.sin(y) * 0.9 + x * 0.1
    return m.sum(y)


def data(name: str, scale: int) -> tuple[list[Any], list[Any]]:
    import numpy as np

    rng = np.random.default_rng(0)
    if name.startswith("chain"):
        return [rng.standard_normal(4 * scale)], []
    n = 64 * scale
    leaves = [rng.standard_normal((64, 128)) * 0.1, np.zeros(128), rng.standard_normal((128, 10)) * 0.1, np.zeros(10)]
    return leaves, [rng.random((n, 64)), np.eye(10)[rng.integers(0, 10, n)]]


#: Name: (title, function, how much larger than the smallest data).
PROGRAMS: dict[str, tuple[str, Callable[..., Any], int]] = {
    "digits": ("digits MLP, loss and gradients, batch 64", mlp, 1),
    "digits-large": ("the same, batch 4096", mlp, 64),
    "chain": ("chain of 200 operations on 4 elements", chain, 1),
    "chain-large": ("the same on 1e5 elements", chain, 25_000),
}


def contestants(name: str) -> dict[str, Callable[[], list[Any]]]:
    """Return a step for each library, which returns the loss and the gradients as the library's arrays."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    import xpgrad as xp

    _, function, scale = PROGRAMS[name]
    leaves, constants = data(name, scale)
    raw = [jnp.asarray(a) for a in leaves], [jnp.asarray(a) for a in constants]
    reference = jax.jit(jax.value_and_grad(lambda leaves, constants: function(jnp, *leaves, *constants)))

    def theirs() -> list[Any]:
        value, grads = reference(*raw)
        return jax.block_until_ready([value, *grads])

    tensors = [xp.tensor(a, requires_grad=True, device="jax") for a in leaves], [xp.tensor(a, device="jax") for a in constants]
    compiled = xp.compile(lambda *args: function(xp, *args))

    def ours() -> list[Any]:
        loss = compiled(*tensors[0], *tensors[1])
        grads = xp.autograd.grad(loss, tensors[0])
        return jax.block_until_ready([loss.array, *(g.array for g in grads)])

    return {"jax": theirs, "xpgrad": ours}


def run_times(name: str, rounds: int) -> tuple[float, float, float]:
    """Return JAX's and xpgrad's milliseconds, and the median of the rounds' ratios."""
    import numpy as np

    steps = contestants(name)
    expected, found = (steps[key]() for key in ("jax", "xpgrad"))
    for a, b in zip(expected, found):
        np.testing.assert_allclose(np.asarray(b), np.asarray(a), rtol=1e-9, atol=1e-12)
    times: dict[str, list[float]] = {key: [] for key in steps}
    start = time.perf_counter()
    steps["jax"]()
    count = max(1, round(0.01 / (time.perf_counter() - start)))
    for turn in range(rounds):
        for key in list(steps)[:: 1 if turn % 2 else -1]:
            start = time.perf_counter()
            for _ in range(count):
                steps[key]()
            times[key].append((time.perf_counter() - start) / count)
    ratio = statistics.median(b / a for a, b in zip(times["jax"], times["xpgrad"]))
    return statistics.median(times["jax"]) * 1e3, statistics.median(times["xpgrad"]) * 1e3, ratio


def compile_times(name: str, rounds: int) -> tuple[float, float, float]:
    """Return the seconds of the first call in fresh processes: JAX's, xpgrad's, and their ratio."""
    times: dict[str, list[float]] = {"jax": [], "xpgrad": []}
    for _ in range(rounds):
        for key, found in times.items():
            command = [sys.executable, "-m", "benchmarks.compile", "--first", key, name]
            out = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
            found.append(float(out.stdout))
    ours, theirs = statistics.median(times["xpgrad"]), statistics.median(times["jax"])
    return theirs, ours, ours / theirs


def _first(key: str, name: str) -> float:
    """Return the seconds of the first step, after JAX itself was warmed up by another function."""
    import jax
    import jax.numpy as jnp

    step = contestants(name)[key]
    jax.block_until_ready(jax.jit(jax.value_and_grad(lambda x: jnp.sum(x * 2.0)))(jnp.ones(3)))
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def main(argv: list[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--first", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    if args.first:
        print(_first(*args.first))
        return 0
    print("| loss and gradients on JAX | jax.jit(jax.value_and_grad) | xpgrad.compile | ratio | compile time, ratio |")
    print("|---|---:|---:|---:|---:|")
    for name, (title, _, _) in PROGRAMS.items():
        theirs, ours, ratio = run_times(name, args.rounds)
        first = compile_times(name, max(3, args.rounds // 8))
        print(
            f"| {title} | {theirs:.3f} ms | {ours:.3f} ms | {ratio:.2f} | {first[0]:.2f} s, {first[1]:.2f} s: {first[2]:.2f} |", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
