"""`python -m benchmarks.equations`: compare the time of `odeint`'s gradients with HIPS autograd's, in turns, in one process.

Both integrate by SciPy's LSODA with its own tolerances; the gradients of both are compared first. HIPS autograd integrates the state
backward with the adjoint.

`python -m benchmarks.equations fits` compares fits of the Lotka-Volterra equation (4 parameters, 40 times) with SciPy's own by finite
differences, and with `jax.experimental.ode.odeint` under `jit`, whose derivatives are given to SciPy's functions. Each kind of fit runs in
a process of its own, whose imports are not counted, with an empty cache of machine code. The times are the processor's. The parameters are
compared.
"""

from __future__ import annotations

import importlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import xpgrad as xp
from xpgrad.scipy import optimize
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


# -- fits ------------------------------------------------------------------------------------------------------------------------

_TIMES = np.linspace(0.0, 15.0, 40)
_START, _FIRST = [10.0, 5.0], [0.9, 0.12, 1.3, 0.08]
#: For `minimize`, whose steps may be long.
_BOUNDS = [(0.01, 3.0)] * 4
#: Of the later calls the fastest counts, since threads of JAX may still be busy during the call of another contestant.
FIT_ROUNDS = 15
FITS = ("least_squares", "curve_fit", "minimize")
CONTESTANTS = ("SciPy", "JAX", "xpgrad")


def _changes(y: Any, p: Any) -> list[Any]:
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def _measurements() -> Any:
    """Return a solution with noise of two percent, shape (40, 2)."""
    solution = importlib.import_module("scipy.integrate").odeint(lambda y, t: _changes(y, [1.0, 0.1, 1.5, 0.075]), _START, _TIMES)
    return solution * (1 + 0.02 * np.random.default_rng(0).normal(size=solution.shape))


def fit_by_scipy(kind: str, data: Any) -> Callable[[], Any]:
    """Return SciPy's fit, with finite differences."""
    theirs, integrate = importlib.import_module("scipy.optimize"), importlib.import_module("scipy.integrate")

    def solution(p: Any) -> Any:
        return integrate.odeint(lambda y, t: _changes(y, p), _START, _TIMES)

    return {
        "least_squares": lambda: theirs.least_squares(lambda p: (solution(p) - data).ravel(), _FIRST).x,
        "curve_fit": lambda: theirs.curve_fit(lambda t, *p: solution(p).ravel(), _TIMES, data.ravel(), p0=_FIRST)[0],
        "minimize": lambda: theirs.minimize(lambda p: np.sum((solution(p) - data) ** 2), _FIRST, bounds=_BOUNDS).x,
    }[kind]


def fit_by_jax(kind: str, data: Any) -> Callable[[], Any]:
    """Return SciPy's fit with JAX's derivatives of a solution by JAX."""
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    ode = importlib.import_module("jax.experimental.ode").odeint
    theirs = importlib.import_module("scipy.optimize")
    stack, total, start, times = jax.numpy.stack, jax.numpy.sum, jax.numpy.asarray(_START), jax.numpy.asarray(_TIMES)

    def solution(p: Any) -> Any:
        return ode(lambda y, t, p: stack(_changes(y, p)), start, times, p, rtol=1.49012e-8, atol=1.49012e-8).ravel()

    curve, jacobian = jax.jit(solution), jax.jit(jax.jacrev(solution))
    loss = jax.jit(jax.value_and_grad(lambda p: total((solution(p) - data.ravel()) ** 2)))

    def both(p: Any) -> Any:
        value, slope = loss(p)
        return float(value), np.asarray(slope)

    return {
        "least_squares": lambda: theirs.least_squares(lambda p: curve(p) - data.ravel(), _FIRST, jac=jacobian).x,
        "curve_fit": lambda: theirs.curve_fit(
            lambda t, *p: curve(np.asarray(p)), _TIMES, data.ravel(), p0=_FIRST, jac=lambda t, *p: np.asarray(jacobian(np.asarray(p)))
        )[0],
        "minimize": lambda: theirs.minimize(both, _FIRST, jac=True, bounds=_BOUNDS).x,
    }[kind]


def fit_by_xpgrad(kind: str, data: Any) -> Callable[[], Any]:
    """Return xpgrad's fit."""

    def solution(p: Any) -> Any:
        return odeint(lambda y, t: xp.stack(_changes(y, p)), _START, _TIMES)

    return {
        "least_squares": lambda: optimize.least_squares(lambda p: solution(p) - data, _FIRST).x,
        "curve_fit": lambda: optimize.curve_fit(lambda t, *p: solution(p).reshape(-1), _TIMES, data.ravel(), p0=_FIRST)[0],
        "minimize": lambda: optimize.minimize(lambda p: xp.sum((solution(p) - data) ** 2), _FIRST, bounds=_BOUNDS).x,
    }[kind]


def time_fits(kind: str) -> None:
    """Print the row of one kind of fit."""
    data = _measurements()
    fits = [make(kind, data) for make in (fit_by_scipy, fit_by_jax, fit_by_xpgrad)]
    times: list[list[float]] = [[] for _ in fits]
    found = []
    for _ in range(FIT_ROUNDS + 1):
        found = []
        for fit, taken in zip(fits, times):
            start = time.process_time()
            found.append(np.asarray(fit()))
            taken.append(time.process_time() - start)
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-3)
    first, later = [taken[0] for taken in times], [min(taken[1:]) for taken in times]
    print(f"| `{kind}` |" + "".join(f" {1e3 * v:.0f} ms |" for v in (*first, *later)))


def print_fits() -> None:
    """Print the table of fits."""
    print(
        "| fit | " + " | ".join(f"{c}, {when}" for when in ("first", "later") for c in CONTESTANTS) + " |\n|---|" + 6 * "---:|", flush=True
    )
    for kind in FITS:
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"XPGRAD_CACHE": folder}
            subprocess.run([sys.executable, "-m", "benchmarks.equations", kind], check=True, env=environment)


def main() -> None:
    """Print the table that is asked for."""
    given = sys.argv[1:]
    if given == ["fits"]:
        print_fits()
    elif given:
        time_fits(*given)
    else:
        print_gradients()


def print_gradients() -> None:
    """Print the table of gradients."""
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
        print(f"| {name} | {1e3 * hips:.0f} ms | {eager / hips:.3f} | {compiled / hips:.3f} |")


if __name__ == "__main__":
    main()
