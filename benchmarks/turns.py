"""`python -m benchmarks.turns OTHER`: compare this checkout with another one, workload by workload, in turns within one run.

Each side runs in a separate process with its own sources. Ratios are taken of consecutive measurements, so that they are valid even if the
machine's speed drifts. `benchmarks.inplace` compares in the same way.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["compare_checkouts", "main"]

ROOT = Path(__file__).resolve().parent.parent
WORKLOADS = ("chain", "mixed", "digits", "rnn", "stencil", "graph", "fan", "deep5", "hvp")


def _serve() -> None:
    """Run as a worker: for each name on standard input, print the seconds per step of that workload."""
    import numpy as np

    from benchmarks.contestants import CONTESTANTS
    from benchmarks.measure import settle_allocator
    from benchmarks.workloads import WORKLOADS as ALL

    contestant = CONTESTANTS["xpgrad"]()
    settle_allocator()
    steps: dict[str, Any] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in steps:
            leaves, constants = ALL[name].data(np.random.default_rng(0), ALL[name].sizes[0])
            steps[name] = contestant.step(ALL[name], leaves, constants)
            steps[name]()
        start = time.perf_counter()
        count = 0
        while time.perf_counter() - start < 0.02:
            steps[name]()
            count += 1
        print((time.perf_counter() - start) / count, flush=True)


def compare_checkouts(roots: tuple[Path, Path], workloads: Sequence[str], rounds: int) -> dict[str, tuple[float, float, float]]:
    """Return, per workload, the ratio of the first checkout's time to the second's.

    Parameters
    ----------
    roots : pair of Path
        Checkouts, or copies of their ``core`` and ``backends``. The workloads are this one's.
    workloads : sequence of str
    rounds : int

    Returns
    -------
    dict
        Median and quartiles: ``(middle, low, high)``.
    """
    from tqdm import tqdm

    # Linear algebra uses one thread, because two processes that use all cores would slow each other down.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.turns", "--worker"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **threads, "PYTHONPATH": os.pathsep.join(str(r / n) for n in ("core", "backends"))},
            text=True,
        )
        for r in roots
    ]
    times: dict[str, list[list[float]]] = {name: [[], []] for name in workloads}
    try:
        for turn in tqdm(range(rounds + 1), desc="rounds", disable=None):
            for name in workloads:
                for k in (0, 1) if turn % 2 else (1, 0):
                    pipe: Any = workers[k]
                    pipe.stdin.write(name + "\n")
                    pipe.stdin.flush()
                    seconds = float(pipe.stdout.readline())
                    if turn:  # the first round compiles
                        times[name][k].append(seconds)
    finally:
        for worker in workers:
            worker.communicate()
    found = {}
    for name, (first, second) in times.items():
        low, middle, high = statistics.quantiles([a / b for a, b in zip(first, second)], n=4)
        found[name] = (middle, low, high)
    return found


def main(argv: list[str] | None = None) -> int:
    """Compare with another checkout and print a table; the exit status is 0."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__)
    parser.add_argument("other", type=Path, nargs="?", help="a checkout to compare with")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--workloads", nargs="+", default=list(WORKLOADS))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.worker:
        _serve()
        return 0
    if arguments.other is None or not (arguments.other / "core" / "xpgrad").is_dir():
        parser.error(f"{arguments.other} is not a checkout of xpgrad: it has no core/xpgrad")
    print("| forward + backward | this / other |\n|---|---:|")
    for name, (middle, low, high) in compare_checkouts((ROOT, arguments.other.resolve()), arguments.workloads, arguments.rounds).items():
        print(f"| {name} | {middle:.3f} ({low:.3f} to {high:.3f}) |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
