"""`python -m benchmarks.equations`: compare the time of `odeint`'s gradients with HIPS autograd's, in turns, in one process.

Both integrate by SciPy's LSODA with its own tolerances, forward and backward; the gradients of both are compared first. HIPS autograd
integrates the state backward with the adjoint, xpgrad forward again, from the outputs.
"""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import xpgrad as xp
from xpgrad.scipy.integrate import odeint

ROUNDS = 7
#: The target: the fraction of HIPS autograd's time that a gradient may take.
TARGET = 0.5

_RNG = np.random.default_rng(0)
_WEIGHTS = _RNG.normal(size=(32, 32)) * 0.3


def hunters(np: Any) -> Any:
    """Return the right-hand side of the Lotka-Volterra equation, computed number by number."""

    def right(y: Any, t: Any, p: Any) -> Any:
        change = [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]
        return np.stack(change) if hasattr(np, "Tensor") else np.array(change)

    return right


def network(np: Any) -> Any:
    """Return a layer as the right-hand side."""
    return lambda y, t, w: np.tanh(np.matmul(w, y))


#: By name: the right-hand side, the initial state, the parameters and the times.
PROGRAMS: dict[str, tuple[Any, Any, Any, Any]] = {
    "Lotka and Volterra, at the end": (hunters, np.ones(2), np.asarray([1.5, 1.0, 3.0, 1.0]), np.linspace(0, 5, 2)),
    "Lotka and Volterra, 20 outputs": (hunters, np.ones(2), np.asarray([1.5, 1.0, 3.0, 1.0]), np.linspace(0, 5, 20)),
    "a network of 32 x 32, 5 outputs": (network, np.ones(32), _WEIGHTS, np.linspace(0, 2, 5)),
}


def by_hips(make: Any, y0: Any, p: Any, t: Any) -> Callable[[], Any]:
    numpy, grad = importlib.import_module("autograd.numpy"), importlib.import_module("autograd").grad
    integrate, packed = importlib.import_module("autograd.scipy.integrate"), importlib.import_module("autograd.builtins").tuple
    right = make(numpy)
    found = grad(lambda p: numpy.sum(integrate.odeint(right, y0, t, packed((p,))) ** 2))
    return lambda: found(p)


def by_xpgrad(make: Any, y0: Any, p: Any, t: Any, *, compiled: bool) -> Callable[[], Any]:
    right = xp.compile(make(xp)) if compiled else make(xp)
    start = xp.asarray(y0)

    def step() -> Any:
        parameters = xp.tensor(p, requires_grad=True)
        return xp.autograd.grad(xp.sum(odeint(right, start, t, (parameters,)) ** 2), parameters)[0].numpy()

    return step


def main() -> None:
    """Print the table."""
    print(f"| gradient of `odeint` | HIPS autograd | xpgrad, ratio | its right side compiled |  (target {TARGET})\n|---|---:|---:|---:|")
    for name, program in PROGRAMS.items():
        steps = [by_hips(*program), by_xpgrad(*program, compiled=False), by_xpgrad(*program, compiled=True)]
        first, *others = [step() for step in steps]
        for found in others:
            np.testing.assert_allclose(found, first, rtol=1e-4, atol=1e-5 * abs(first).max())
        times: list[list[float]] = [[] for _ in steps]
        for _ in range(ROUNDS):
            for step, taken in zip(steps, times):
                start = time.process_time()
                step()
                taken.append(time.process_time() - start)
        hips, eager, compiled = (statistics.median(taken) for taken in times)
        print(f"| {name} | {1e3 * hips:.0f} ms | {eager / hips:.2f} | {compiled / hips:.2f} |")


if __name__ == "__main__":
    main()
