"""`python -m benchmarks.loops`: what unrolled Python loops cost to compile, by the number of their steps, to machine code and to C.

The first call of a function and its gradients is measured in CPU seconds, each in a fresh process with an empty cache, and so is the code
that it makes: the machine code of its kernels, or the lines of C. Then the time of a call is measured.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import xpgrad as xp

STEPS = (100, 1000)
CALLS = 20


def stencil(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...], int]:
    def loss(u: Any) -> Any:
        for _ in range(steps):
            u = u[1:-1] + 0.2 * (u[2:] - 2.0 * u[1:-1] + u[:-2])
        return xp.sum(u * u)

    return loss, (np.random.default_rng(0).normal(size=2 * steps + 100),), 1


def rnn(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...], int]:
    def loss(inner: Any, outer: Any, h: Any, x: Any) -> Any:
        for k in range(steps):
            h = xp.tanh(x[k] @ inner + h @ outer)
        return xp.sum(h * h)

    rng = np.random.default_rng(0)
    shapes = ((16, 16), (16, 16), (8, 16), (steps, 8, 16))
    return loss, tuple(rng.normal(size=shape) / 8 for shape in shapes), 2


def lstm(steps: int) -> tuple[Callable[..., Any], tuple[Any, ...], int]:
    def loss(inner: Any, outer: Any, bias: Any, x: Any) -> Any:
        h = c = xp.zeros((16, 32))
        for k in range(steps):
            gates = x[k] @ inner + h @ outer + bias
            keep, add, show = (1 / (1 + xp.exp(-gates[:, 32 * i : 32 * (i + 1)])) for i in range(3))
            c = keep * c + add * xp.tanh(gates[:, 96:])
            h = show * xp.tanh(c)
        return xp.sum(h * h)

    rng = np.random.default_rng(0)
    return loss, (rng.normal(size=(8, 128)) / 3, rng.normal(size=(32, 128)) / 6, np.zeros(128), rng.normal(size=(steps, 16, 8))), 3


LOOPS: dict[str, Callable[[int], tuple[Callable[..., Any], tuple[Any, ...], int]]] = {"stencil": stencil, "rnn": rnn, "lstm": lstm}


def measure(name: str, steps: int, emitter: str) -> str:
    """Return one row of the table."""
    loss, arrays, leaves = LOOPS[name](steps)
    args = [xp.asarray(a) for a in arrays]
    compiled: Any = xp.compile(xp.func.value_and_grad(loss, argnums=tuple(range(leaves))), emitter=emitter)
    with tempfile.TemporaryDirectory() as cache:
        os.environ["XPGRAD_CACHE"] = cache
        start = _cpu()
        compiled(*args)
        first = _cpu() - start
        size = sum(path.stat().st_size for path in Path(cache).iterdir())
    lines = f", {compiled.source(*args).count(chr(10))} lines" if emitter == "c" else ""
    times = []
    for _ in range(CALLS):
        start = time.perf_counter()
        compiled(*args)
        times.append(time.perf_counter() - start)
    return f"| {name}, {steps} steps | {emitter} | {first:.2f} s | {size / 1000:.0f} kB{lines} | {min(times) * 1e3:.3f} ms |"


def _cpu() -> float:
    """Return the CPU seconds of this process and of the compilers that it has started."""
    return sum(os.times()[:4])


def main() -> None:
    """Print the table, row by row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=LOOPS, nargs="*", default=list(LOOPS))
    parser.add_argument("--steps", type=int, nargs="*", default=STEPS)
    parser.add_argument("--emitters", nargs="*", default=["native", "c"])
    parser.add_argument("--row", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row is not None:
        name, steps, emitter = given.row
        print(measure(name, int(steps), emitter))
        return
    print("| value and gradients | emitter | first call | code | a call |\n|---|---|---:|---:|---:|", flush=True)
    for name in given.only:
        for emitter in given.emitters:
            for steps in given.steps:
                subprocess.run([sys.executable, "-m", "benchmarks.loops", "--row", name, str(steps), emitter], check=True)


if __name__ == "__main__":
    main()
