"""Inside a plate: the conductivity, from potentials at its nodes
===============================================================

Currents enter a plate at eight places, one after the other, and leave it at its edge. The potentials are measured at some nodes of a grid,
with noise. How well does each part conduct? The potentials solve a linear system whose matrix depends on the conductivity. ``linalg.solve``
is differentiable: one more solve, with the transposed matrix, gives the derivatives of the misfit with respect to all conductivities. This
is the adjoint method, without an adjoint equation written by hand. ``minimize`` finds the conductivity.

The gradient is compared with a central difference along a random direction. The plate is simulated. The picture shows the plate, the
reconstruction, and how the misfit decreases until it is about as large as the noise.
"""

from __future__ import annotations

import numpy as np
from _program import Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import grad
from xpgrad.scipy.optimize import minimize


def differences(n: int) -> np.ndarray:
    """Return the matrix that maps n by n potentials (0 outside) to their differences along all 2 n (n + 1) edges."""
    steps = np.eye(n + 1, n) - np.eye(n + 1, n, -1)
    return np.concatenate([np.kron(steps, np.eye(n)), np.kron(np.eye(n), steps)])


@program({"misfit, by the noise": (0.8, 1.1), "correlation with the truth": (0.9, 1.0), "gradient, off by": (0.0, 1e-6)})
def main(small: bool) -> Result:
    """Simulate measurements, reconstruct the conductivity, and draw."""
    n, rng = 12 if small else 18, np.random.default_rng(0)
    across, up = np.meshgrid(*2 * [np.linspace(-1.0, 1.0, n)])
    good, bad = (((across - a) ** 2 + (up - b) ** 2) / 0.12 for a, b in ((0.35, 0.3), (-0.4, -0.3)))
    edges, truth = differences(n), xp.asarray((1.2 * np.exp(-(good**2)) - np.exp(-(bad**2))).reshape(-1))
    steps, halves = xp.asarray(edges), xp.asarray(np.abs(edges) / np.abs(edges).sum(axis=1)[:, None])
    inner = xp.asarray(edges[np.abs(edges).sum(axis=1) == 2.0])
    turns = 0.6 * np.exp(0.25j * np.pi * np.arange(8))
    sources = xp.asarray(np.exp(-(np.abs((across + 1j * up).reshape(-1, 1) - turns) ** 2) / 0.02))
    seen = xp.asarray(np.flatnonzero((np.arange(n * n) + np.arange(n * n) // n) % 2))

    def potentials(logs: xp.Tensor) -> xp.Tensor:
        """Return the measured potentials for each source, given log-conductivities: currents at each node sum to zero."""
        conductances = halves @ xp.exp(logs)
        return xp.take(xp.linalg.solve(steps.T @ (conductances[:, None] * steps), sources), seen, axis=0)

    exact = potentials(truth)
    noise = 0.003 * float(xp.max(exact))
    measured = exact + xp.asarray(rng.normal(scale=noise, size=exact.shape))

    def misfit(logs: xp.Tensor) -> xp.Tensor:
        return xp.mean((potentials(logs) - measured) ** 2) / noise**2

    def loss(logs: xp.Tensor) -> xp.Tensor:
        return 0.5 * measured.size * misfit(logs) + 4.0 * xp.sum(xp.sqrt((inner @ logs) ** 2 + 1e-2))

    def watch(logs: np.ndarray) -> None:
        course.append(float(misfit(xp.asarray(logs))))

    course, start, way = [], xp.zeros(n * n), xp.asarray(rng.normal(size=n * n))  # type: ignore[var-annotated] # of floats
    found = minimize(loss, start, method="L-BFGS-B", tol=1e-7, options={"maxcor": 30}, callback=watch)
    logs = found.x.detach()
    difference = (loss(start + 1e-5 * way) - loss(start - 1e-5 * way)) / 2e-5
    off = float(xp.abs(way @ grad(loss)(start) / difference - 1.0))
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.5, 3.8))
    alike = float(np.corrcoef(logs.numpy(), truth.numpy())[0, 1])
    for axes, values, title in ((left, truth, "True"), (middle, logs, f"Found: correlation {alike:.3f}")):
        shown = axes.imshow(values.numpy().reshape(n, n), cmap="cividis", vmin=-1.1, vmax=1.3, extent=(-1, 1, -1, 1), origin="lower")
        axes.set(xlabel="across", ylabel="up", title=title)
    figure.colorbar(shown, ax=(left, middle), label="logarithm of the conductivity")
    right.semilogy(course)
    right.axhline(1.0, color="k", ls="--", lw=1.0)
    right.set(xlabel="steps", ylabel="mean squared misfit, by the noise's", title=f"{n * n} unknowns, {found.nfev} gradients")
    return Result(figure, {"misfit, by the noise": float(misfit(logs)), "correlation with the truth": alike, "gradient, off by": off})


if __name__ == "__main__":
    main.command()
