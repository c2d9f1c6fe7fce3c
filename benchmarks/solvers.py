"""`python -m benchmarks.solvers`: the hyper-gradient of ridge regression through `xpgrad.scipy.optimize`, against its closed form in NumPy.

Both fit 100 weights to 10,000 rows, and differentiate the loss on 1,000 others by the logarithm of the regularisation. The closed form
makes the normal equations and solves two systems with them. xpgrad gets the normal equations and the same solver through `custom_root`; it
adds the Jacobian of the residual, the adjoint system and the graph.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import xpgrad as xp
from xpgrad.scipy.optimize import custom_root

ROWS, OTHERS, WEIGHTS, ROUNDS = 10_000, 1_000, 100, 15


def _data() -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(ROWS, WEIGHTS)), rng.normal(size=(OTHERS, WEIGHTS))
    truth = rng.normal(size=WEIGHTS)
    return a, a @ truth + rng.normal(size=ROWS), v, v @ truth + rng.normal(size=OTHERS)


def by_hand(a: Any, b: Any, v: Any, w: Any) -> Callable[[], float]:
    def step() -> float:
        weight = np.exp(0.3)
        matrix = a.T @ a + weight * np.eye(WEIGHTS)
        x = np.linalg.solve(matrix, a.T @ b)
        adjoint = np.linalg.solve(matrix, v.T @ (v @ x - w))
        return float(-adjoint @ (weight * x))

    return step


def by_xpgrad(a: Any, b: Any, v: Any, w: Any) -> Callable[[], float]:
    log = xp.tensor(0.3, requires_grad=True)
    tv, tw = xp.asarray(v), xp.asarray(w)

    def step() -> float:
        gram, right = a.T @ a, a.T @ b
        tensors = xp.asarray(gram), xp.asarray(right)

        @custom_root(lambda x, log: tensors[0] @ x + xp.exp(log) * x - tensors[1], symmetric=True)
        def fit(log: Any) -> Any:
            return np.linalg.solve(gram + np.exp(float(log)) * np.eye(WEIGHTS), right)

        (found,) = xp.autograd.grad(0.5 * xp.sum((tv @ fit(log) - tw) ** 2), log)
        return float(found)

    return step


def main() -> None:
    data = _data()
    steps = {"closed form": by_hand(*data), "xpgrad": by_xpgrad(*data)}
    values = {name: step() for name, step in steps.items()}
    np.testing.assert_allclose(values["xpgrad"], values["closed form"], rtol=1e-6)
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(ROUNDS):
        for name, step in steps.items():
            start = time.process_time()
            step()
            times[name].append(time.process_time() - start)
    found = {name: statistics.median(t) for name, t in times.items()}
    print("| hyper-gradient of ridge regression, 10,000 x 100 | by hand | xpgrad, ratio |\n|---|---:|---:|")
    hand, ours = found["closed form"], found["xpgrad"]
    print(f"| closed form against `custom_root` | {1e3 * hand:.2f} ms | {ours / hand:.2f} |")


if __name__ == "__main__":
    main()
