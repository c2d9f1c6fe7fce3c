"""Differentiate the solutions of three problems that SciPy solves.

    python examples/solutions.py
    python examples/solutions.py --device torch

* A support vector machine: how its validation loss changes with the regularisation, and a few steps down that slope.
* A layer that is an equilibrium, trained by the implicit function theorem: no iteration is recorded.
* A reaction: the rates of a differential equation are fitted to measurements, and the sensitivity of its steady state is computed.

It prints the results, compares each gradient with a central difference, and returns 1 if one of them is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import xpgrad as xp
from xpgrad.scipy import integrate, optimize

#: How far a gradient may be from a central difference, relatively.
NEAR = 1e-3


def compare_derivatives(name: str, f: Callable[[Any], Any], at: Any) -> bool:
    """Print a function's derivative at the 0-d Tensor `at` and a difference quotient; return whether they agree."""
    leaf = at.detach().clone().requires_grad_()
    slope = float(xp.autograd.grad(f(leaf), leaf)[0])
    h = 1e-4
    difference = (float(f(at + h).detach()) - float(f(at - h).detach())) / (2 * h)
    good = abs(slope - difference) <= NEAR * max(abs(difference), 1e-3)
    print(f"  {name}: gradient {slope:.6f}, difference {difference:.6f}{'' if good else '  <- they differ'}")
    return good


def machine(device: str) -> bool:
    """Choose the regularisation of a support vector machine by the slope of its validation loss."""
    rng = np.random.default_rng(0)

    def sample(count: int) -> tuple[np.ndarray, np.ndarray]:
        signs = rng.choice([-1.0, 1.0], count)
        return rng.normal(size=(count, 2)) + 0.8 * signs[:, None], signs

    (x, y), (v, w) = sample(40), sample(60)
    gram = y[:, None] * (x @ x.T + 1.0) * y + 0.05 * np.eye(40)
    kernel, across, truth = (xp.asarray(a, device=device) for a in (gram, (v @ x.T + 1.0) * y, w))

    def loss(log_c: Any) -> Any:
        c = xp.exp(log_c)
        dual = lambda a: 0.5 * a @ kernel @ a - xp.sum(a)  # noqa: E731
        start = xp.full(40, 0.01, device=device)
        a = optimize.minimize(dual, start, bounds=[(0.0, c)] * 40, tol=1e-14, options={"maxiter": 5000}).x
        return xp.mean(xp.log1p(xp.exp(-truth * (across @ a))))  # the logistic loss of its margins

    at = xp.tensor(-2.0, device=device)
    good = compare_derivatives("validation loss by log C", loss, at)
    for _ in range(5):
        leaf = at.detach().clone().requires_grad_()
        (slope,) = xp.autograd.grad(loss(leaf), leaf)
        at = at - 20.0 * slope
    print(f"  after 5 steps: C = {np.exp(float(at)):.3f}, loss {float(loss(at).detach()):.4f}")
    return good


def equilibrium(device: str) -> bool:
    """Train a layer ``z = tanh(z W + x U)`` so that the sum of its equilibrium equals the length of `x`."""
    rng = np.random.default_rng(1)
    data = rng.normal(size=(64, 3))
    x, wanted = xp.asarray(data, device=device), xp.asarray((data**2).sum(1), device=device)
    shapes = ((8, 8), (3, 8), (8,))
    parts = [xp.tensor(rng.normal(size=s) * 0.3, device=device, requires_grad=True) for s in shapes]

    def loss(parts: list[Any]) -> Any:
        w, u, out = parts
        z = optimize.fixed_point(
            lambda z: xp.tanh(z @ w + x @ u + 0.5), xp.zeros((64, 8), device=device), xtol=1e-12, method="iteration", linear_solver="gmres"
        )
        return xp.mean((z * z @ out - wanted) ** 2)

    good = compare_derivatives(
        "loss by the scale of W", lambda s: loss([parts[0].detach() * s, *(p.detach() for p in parts[1:])]), xp.tensor(1.0, device=device)
    )
    first = 0.0
    for step in range(60):
        value = loss(parts)
        first = first or float(value.detach())
        gradients = xp.autograd.grad(value, parts)
        with xp.no_grad():
            for p, g in zip(parts, gradients, strict=True):
                p -= 0.02 * g
        if step % 20 == 19:
            print(f"  step {step + 1}: loss {float(value.detach()):.3f} (at first {first:.3f})")
    return good and float(loss(parts).detach()) < first


def reaction(device: str) -> bool:
    """Fit the rates of ``A <-> B -> C`` with inflow, and print how its steady state depends on them."""
    times = np.linspace(0.0, 4.0, 9)
    start = xp.asarray([1.0, 0.0], device=device)

    def change(state: Any, t: Any, rates: Any) -> Any:
        there, back, out = rates[0], rates[1], rates[2]
        return xp.stack([1.0 - there * state[0] + back * state[1], there * state[0] - (back + out) * state[1]])

    truth = xp.asarray([0.9, 0.4, 0.7], device=device)
    measured = integrate.odeint(change, start, times, (truth,)).detach()
    found = optimize.least_squares(
        lambda rates: (integrate.odeint(change, start, times, (rates,)) - measured).reshape(-1), xp.full(3, 0.5, device=device)
    ).x
    print("  rates:", ", ".join(f"{float(r):.4f}" for r in found.detach()), "(true: 0.9, 0.4, 0.7)")

    def steady(there: Any) -> Any:
        rates = xp.stack([there, truth[1], truth[2]])
        return optimize.root(lambda s: change(s, 0.0, rates), xp.full(2, 1.0, device=device), tol=1e-12).x[0]

    good = compare_derivatives("steady state of A by the first rate", steady, truth[0])
    return good and float(xp.max(xp.abs(found.detach() - truth))) < 1e-2


def main(arguments: list[str] | None = None) -> int:
    """Solve the three problems; return 1 if a gradient is off."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="numpy", help="where the Tensors are: numpy, torch, jax, ... (default: numpy)")
    options = parser.parse_args(arguments)
    good = []
    for title, problem in (("a support vector machine", machine), ("an equilibrium as a layer", equilibrium), ("a reaction", reaction)):
        print(title)
        good.append(problem(options.device))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
