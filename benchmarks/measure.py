"""Measurements: agreement of results, times in turns, peak memory, objects left after a pass, import times."""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import tempfile
import tracemalloc
import weakref
from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.contestants import Contestant, Missing
from benchmarks.workloads import Step, Workload

__all__ = ["agree", "import_times", "count_leftovers", "peak_arrays", "steps_of", "take_turns"]

Tick = Callable[[], None]


def steps_of(workload: Workload, contestants: dict[str, Contestant], size: int) -> tuple[dict[str, Step], dict[str, str]]:
    """Return the steps on the same data, and for contestants without a step the reason."""
    leaves, constants = workload.data(np.random.default_rng(0), size)
    steps: dict[str, Step] = {}
    missing: dict[str, str] = {}
    for key, contestant in contestants.items():
        try:
            steps[key] = contestant.step(workload, leaves, constants)
        except Missing as exc:
            missing[key] = str(exc)
    return steps, missing


def agree(steps: dict[str, Step], contestants: dict[str, Contestant], repeats: int = 2, tolerance: float = 1e-8) -> None:
    """Check that the loss and every gradient are equal for all, on the first steps (a second one sees the updated leaves).

    Raises
    ------
    AssertionError
        Naming the contestant and the result.
    """
    for turn in range(repeats):
        expected = [np.array(r) for r in steps["numpy"]()]
        for key, step in steps.items():
            if key == "numpy":
                continue
            got = contestants[key].numbers(step())
            assert len(got) == len(expected), f"{key}: {len(got)} results, expected {len(expected)}"
            for k, (a, b) in enumerate(zip(got, expected)):
                assert a.shape == b.shape, f"{key}, result {k}: shape {a.shape}, expected {b.shape}"
                scale = float(np.max(np.abs(b), initial=0.0))
                where = f"{key}, result {k}, step {turn + 1}"
                np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance / 100 * scale, err_msg=where)


def settle_allocator() -> None:
    """Bring the C library's allocator to the state of a process that has been running for a while.

    NB: glibc returns freed memory to the system, which makes every next use of it fault page by page, until some large block has been
    freed once. Without this a workload's time would depend on which ones ran before it, for all contestants.
    """
    for _ in range(2):
        block = np.ones(30 * 2**20, np.uint8)
        del block


def take_turns(steps: dict[str, Step], rounds: int, seconds: float, tick: Tick, sample: float = 0.004) -> dict[str, list[float]]:
    """Return the seconds per step of each contestant; in every round each runs once, in rotating order.

    Parameters
    ----------
    rounds : int
        The maximum; fewer (at least three) where they would take more than `seconds`.
    sample : float
        Steps are repeated within a round for about this long.
    """
    counts = {}
    total = 0.0
    settle_allocator()
    for key, step in steps.items():
        start = perf_counter()
        step()
        once = perf_counter() - start
        counts[key] = count = max(1, round(sample / once))
        total += once * count
    rounds = min(rounds, max(3, int(seconds / total)))
    times: dict[str, list[float]] = {key: [] for key in steps}
    keys = list(steps)
    gc.collect()
    gc.freeze()  # so that collections during the steps skip everything that was imported
    try:
        for turn in range(rounds):
            shift = turn % len(keys)
            for key in keys[shift:] + keys[:shift]:
                step, count = steps[key], counts[key]
                gc.collect()  # no contestant collects another's garbage; the collector stays on, as for users
                start = perf_counter()
                for _ in repeat(None, count):
                    step()
                times[key].append((perf_counter() - start) / count)
            tick()
    finally:
        gc.unfreeze()
    return times


def ratio(times: list[float], base: list[float]) -> tuple[float, float, float]:
    """Return the median of the rounds' ratios, and their quartiles."""
    ratios = sorted(t / b for t, b in zip(times, base))
    if len(ratios) < 4:
        return statistics.median(ratios), ratios[0], ratios[-1]
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return statistics.median(ratios), low, high


def peak_arrays(step: Step, nbytes: int) -> float:
    """Return the peak of memory allocated during a step, results included, in arrays of `nbytes`.

    The step must be a new one: an old one has its last gradients already.
    """
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return (peak - before) / nbytes


def count_leftovers(size: int = 100_000) -> dict[str, int]:
    """Count the objects that a backward pass leaves behind, with the cyclic collector off.

    Returns
    -------
    dict
        ``"saved"``: bytes of intermediate arrays still alive after the pass while the loss itself is; ``"nodes"``, ``"tensors"`` and
        ``"arrays"``: how many of those that the step made are alive once the loss has gone; ``"growth"``: bytes per further step.
    """
    import xpgrad as xp

    def forward(x: Any) -> tuple[Any, list[Any], list[Any], list[Any]]:
        made = [x]
        for _ in range(3):
            h = xp.sin(made[-1]) * x
            made += [h, xp.exp(h[1:] + h[:-1])[:1] * x]
        loss = xp.sum(made[-1])
        tensors = made[1:]
        return (
            loss,
            [weakref.ref(t) for t in tensors],
            [weakref.ref(t.grad_fn) for t in (*tensors, loss)],
            [weakref.ref(t.array) for t in tensors],
        )

    def alive(refs: list[Any]) -> int:
        return sum(r() is not None for r in refs)

    def leaf(size: int) -> Any:
        return xp.tensor(np.linspace(0.1, 1.0, size), requires_grad=True)

    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        loss, tensors, nodes, arrays = forward(leaf(size))
        if not alive(nodes) or not alive(arrays):
            msg = "the check itself is broken: before the pass nothing was saved"
            raise RuntimeError(msg)
        loss.backward()
        saved = sum(r().nbytes for r in arrays if r() is not None)
        del loss
        result = {"saved": saved, "nodes": alive(nodes), "tensors": alive(tensors), "arrays": alive(arrays)}
        x = leaf(10)

        def again(steps: int) -> int:
            for _ in range(steps):
                x.grad = None
                forward(x)[0].backward()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        first = again(1500)  # NB: until then the interpreter fills its lists of free tuples
        result["growth"] = max(0, again(300) - first) // 300
    finally:
        tracemalloc.stop()
        if enabled:
            gc.enable()
    return result


_PROGRAMS = {
    "import numpy": "import numpy",
    "import xpgrad": "import xpgrad",
    "first Tensor": "import xpgrad; xpgrad.tensor([1.0])",
    "first gradient": ("import xpgrad; x = xpgrad.tensor([1.0], requires_grad=True); xpgrad.sum(xpgrad.sin(x) * x).backward()"),
    "import numpy, first array": "import numpy; numpy.array([1.0])",
}


def import_times(rounds: int, tick: Tick) -> dict[str, list[float]]:
    """Return the seconds that each program takes in a fresh interpreter, without its start-up time, in turns."""
    times: dict[str, list[float]] = {title: [] for title in _PROGRAMS}
    with tempfile.TemporaryDirectory() as cache:
        # All byte code is cached in the same place, even if the environment forbids Python to write it.
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": cache}
        for turn in range(rounds + 1):
            for title, program in _PROGRAMS.items():
                code = f"from time import perf_counter as t; s = t(); {program}; print(t() - s)"
                done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
                if turn:  # the first round writes byte code and warms the file cache
                    times[title].append(float(done.stdout))
            tick()
    return times
