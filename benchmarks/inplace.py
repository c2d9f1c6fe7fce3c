"""`python -m benchmarks.inplace`: measure what support for in-place writes costs programs that do not write, and what writes allocate.

The out-of-place hot path is compared with a copy of the sources from which version counters, aliases and views are cut out; both run in
turns, each in a process of its own. The contexts and the optimiser's step are measured in one process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

from benchmarks.turns import compare_checkouts

__all__ = ["CUTS", "cut_sources", "main", "step_allocations"]

ROOT = Path(__file__).resolve().parent.parent
CORE = "core/xpgrad"
WORKLOADS = ("chain", "mixed", "rnn", "stencil")

_FREED = '''            t(f"""
                if {name} is None:
                    raise _freed(_self)
            """)
'''

_SAVEABLE = '''            t(f"""
                if _t_{name}._alias is not None:
                    _check_saveable(_t_{name})
            """)
'''

#: The parts that are removed from the copy: (file, text, replacement).
CUTS = (
    (f"{CORE}/_operations/forward.py", "_node.buffer = _node.hooks = _node._alias = None", "_node.buffer = _node.hooks = None"),
    (f"{CORE}/_operations/forward.py", _SAVEABLE, ""),
    (f"{CORE}/_operations/forward.py", "_one._alias = _one._node = None", "_one._node = None"),
    (f"{CORE}/_operations/forward.py", "            _out._alias = None\n", ""),
    (f"{CORE}/_operations/forward.py", "        _note_view(t, f)", '        t("pass")'),
    (f"{CORE}/_operations/backward.py", _FREED, _FREED + "            continue\n"),
)


def cut_sources(folder: Path) -> None:
    """Write a copy of the sources without in-place writing into `folder`."""
    import shutil

    for name in ("core", "backends"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in CUTS:
        path = folder / file
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{file} no longer has {old!r}: update `CUTS`"
        path.write_text(text.replace(old, new), encoding="utf-8")


def hot_path(rounds: int) -> dict[str, tuple[float, float, float]]:
    """Return, per workload, the quartiles of the ratio of the time with in-place writing to the time without."""
    with tempfile.TemporaryDirectory() as folder:
        cut_sources(Path(folder))
        return compare_checkouts((ROOT, Path(folder)), WORKLOADS, rounds)


def context_cost(rounds: int) -> float:
    """Return the microseconds per operation that `allow_mutation_on_saved_tensors` adds while nothing is written."""
    import xpgrad as xp

    x = xp.ones(4, requires_grad=True)
    count = 400

    def chain() -> float:
        start = time.perf_counter()
        y = x
        for _ in range(count // 2):
            y = xp.sin(y * 1.0)
        seconds = time.perf_counter() - start
        xp.sum(y).backward()
        return seconds

    added = []
    chain()
    for _ in range(rounds * 4):
        plain = chain()
        with xp.autograd.graph.allow_mutation_on_saved_tensors():
            guarded = chain()
        added.append((guarded - plain) / count * 1e6)
    return statistics.median(added)


def step_allocations(shape: tuple[int, ...] = (256, 256)) -> tuple[int, int]:
    """Return the peak memory in bytes of ``p -= lr * p.grad`` under `no_grad`, and of the same in NumPy."""
    import numpy as np

    import xpgrad as xp

    data, gradient = np.ones(shape), np.full(shape, 0.5)
    p = xp.tensor(data, requires_grad=True)
    p.grad = xp.tensor(gradient)

    def ours() -> None:
        nonlocal p
        with xp.no_grad():
            p -= 0.1 * p.grad

    def theirs() -> None:
        nonlocal data
        data -= 0.1 * gradient

    peaks = []
    for step in (ours, theirs):
        step()
        tracemalloc.start()
        step()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return peaks[0], peaks[1]


def main(argv: list[str] | None = None) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inplace", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60)
    args = parser.parse_args(argv)
    print("| out of place, forward + backward | with in-place writing / without (quartiles) |\n|---|---:|")
    for name, (middle, low, high) in hot_path(args.rounds).items():
        print(f"| {name} | {middle:.3f} ({low:.3f} to {high:.3f}) |")
    print(f"\n`allow_mutation_on_saved_tensors`, nothing written: {context_cost(args.rounds):+.3f} us per operation")
    ours, theirs = step_allocations()
    print(f"`p -= lr * p.grad` under `no_grad`: peak {ours} bytes, in NumPy {theirs}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
