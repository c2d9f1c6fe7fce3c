"""`python -m benchmarks.threads`: how much faster two threads are than one, for passes that share nothing, on Python without the GIL.

One thread does all passes, then two threads do half of them each; both are measured several times, in turns. The ratio of the wall times
is 2 if threads do not disturb each other. Set ``OPENBLAS_NUM_THREADS=1``, so that linear algebra uses one thread.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import xpgrad as xp

ROUNDS = 15
SECONDS = 0.15  # of one measurement


def small() -> Callable[[], object]:
    """Return a pass over 40 operations on 4 numbers: nearly all of its time is xpgrad's own."""
    x = xp.tensor([0.1, 0.2, 0.3, 0.4], requires_grad=True)

    def step() -> object:
        y = x
        for _ in range(20):
            y = y * 1.01 + 0.01
        xp.sum(y).backward()
        return x.grad

    return step


def large() -> Callable[[], object]:
    """Return a pass over elementwise operations on 100,000 numbers."""
    x = xp.tensor(np.linspace(0.0, 1.0, 100_000), requires_grad=True)

    def step() -> object:
        xp.sum(xp.sin(x) * xp.exp(-x)).backward()
        return x.grad

    return step


def layers() -> Callable[[], object]:
    """Return a pass through two layers of 64 units, for 32 rows."""
    rng = np.random.default_rng(0)
    first, second, rows = (xp.asarray(rng.normal(size=shape)) for shape in ((64, 64), (64, 64), (32, 64)))
    first.requires_grad_()
    second.requires_grad_()

    def step() -> object:
        xp.sum(xp.tanh(xp.tanh(rows @ first) @ second) ** 2).backward()
        return first.grad

    return step


def transforms() -> Callable[[], object]:
    """Return a Hessian of a function of 8 numbers."""
    x = xp.asarray(np.linspace(0.1, 0.8, 8))
    function = xp.func.hessian(lambda v: xp.sum(xp.sin(v) * xp.cumulative_sum(v) ** 2))
    return lambda: function(x)


PASSES: dict[str, Callable[[], Callable[[], object]]] = {"small": small, "large": large, "layers": layers, "transforms": transforms}


def seconds(steps: list[Callable[[], object]], count: int) -> float:
    """Return the wall time in which threads, one for each step, call their steps `count` times."""
    barrier = threading.Barrier(len(steps) + 1)

    def work(step: Callable[[], object]) -> None:
        barrier.wait()
        for _ in range(count):
            step()

    threads = [threading.Thread(target=work, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def measure(make: Callable[[], Callable[[], object]]) -> list[float]:
    """Return how many times faster two threads are than one, in each round."""
    one, other = make(), make()
    seconds([one], 5)
    count = 2 * max(1, round(SECONDS / (seconds([one], 20) / 20) / 2))
    seconds([one, other], count // 2)
    return [seconds([one], count) / seconds([one, other], count // 2) for _ in range(ROUNDS)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=PASSES, default=list(PASSES), help="which passes (default: all)")
    asked: Any = parser.parse_args()
    enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"Python {platform.python_version()}, {'with' if enabled else 'without'} the GIL, NumPy {np.__version__}, {os.cpu_count()} cores")
    print(f"\n{'| pass':14}| two threads against one (quartiles) |\n|---|---:|")
    for name in asked.only:
        low, middle, high = statistics.quantiles(measure(PASSES[name]), n=4)
        print(f"| {name:12}| {middle:.2f} ({low:.2f} to {high:.2f}) |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
