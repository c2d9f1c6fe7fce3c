"""Waves that keep their speed: the coefficients of a stencil, learned
======================================================================

Finite differences propagate short waves too slowly, so that a wave packet disperses. Tam and Webb chose coefficients for seven points such
that the stencil has fourth order, and that the squared error over all waves of at least four points per wavelength is minimal: 0.79926643,
-0.18941314, 0.02651995 ("Dispersion-relation-preserving finite difference schemes for computational acoustics", Journal of Computational
Physics 107, 1993). ``minimize`` reproduces these digits.

A stencil learned from data can be better for waves similar to the data. Its gradient passes through a simulation of many steps;
``checkpoint`` keeps only the states and recomputes the stages. The picture shows a packet that was not in the data after twice the
distance, and the speeds of waves. For comparison it includes the usual Taylor stencil of sixth order.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREEN, GREY, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.scipy.integrate import quad_vec
from xpgrad.scipy.optimize import minimize
from xpgrad.utils.checkpoint import checkpoint

PUBLISHED, TAYLOR = [0.79926643, -0.18941314, 0.02651995], [3 / 4, -3 / 20, 1 / 60]
PLACES, STEP = np.arange(128.0), 0.25  # points at a distance of 1, on a circle
WAVES = 2.0 * np.pi * np.arange(1, 65) / 128  # their wave numbers


def seen(stencil: xp.Tensor, waves: xp.Tensor) -> xp.Tensor:
    """Return the stencil's effective wave numbers: the true ones times the wave speeds."""
    return 2.0 * xp.sin(waves[..., None] * xp.arange(1.0, 4.0)) @ stencil


@xp.compile
def step(stencil: xp.Tensor, u: xp.Tensor) -> xp.Tensor:
    """Return the state after a step of du/dt = -du/dx in four stages."""
    start = u
    for part in (4, 3, 2, 1):
        slope = sum(stencil[k] * (xp.roll(u, -k - 1, axis=-1) - xp.roll(u, k + 1, axis=-1)) for k in range(3))
        u = start - STEP / part * slope
    return u


def after(stencil: xp.Tensor, u: xp.Tensor, way: int) -> xp.Tensor:
    """Return waves after the time in which they should travel a distance."""
    for _ in range(int(way / STEP)):
        u = checkpoint(step, stencil, u, use_reentrant=False)
    return u


@program({"off from Tam and Webb's": (0.0, 1e-8), "error, learned by theirs": (0.0, 0.5)})
def main(small: bool) -> Result:
    """Find the published stencil, learn another one, and propagate a packet."""
    fourth, free = xp.asarray([2 / 3, -1 / 12, 0.0]), xp.asarray([5.0, -4.0, 1.0])  # how much of `free`, the order leaves open
    error = lambda much: quad_vec(lambda k: (seen(fourth + much * free, k) - k) ** 2, 0.0, np.pi / 2)[0]  # noqa: E731
    webb = fourth + minimize(error, xp.asarray(0.0), tol=1e-12).x.detach() * free
    way, data = 10 if small else 40, xp.asarray(np.cos(WAVES[:31, None] * PLACES))  # all waves of more than four points
    truth = xp.roll(data, way, axis=1)
    learned = minimize(lambda stencil: xp.mean((after(stencil, data, way) - truth) ** 2), webb, method="L-BFGS-B").x.detach()
    packet = xp.asarray(np.exp(-((PLACES - 20.0) ** 2) / 100.0) * np.cos(1.2 * PLACES))  # of about five points
    exact, errors = xp.roll(packet, 2 * way), []
    figure, (place, speed) = plt.subplots(1, 2, figsize=(10.5, 4.0), width_ratios=(3, 2))
    place.plot(PLACES, exact.numpy(), color=GREY, lw=5, alpha=0.4, label="exact")
    for name, stencil, colour in zip(("Taylor", "Tam and Webb", "learned"), (xp.asarray(TAYLOR), webb, learned), (BLUE, GREEN, ORANGE)):
        there = after(stencil, packet, 2 * way)
        errors.append(float(xp.linalg.vector_norm(there - exact) / xp.linalg.vector_norm(exact)))
        place.plot(PLACES, there.numpy(), color=colour, label=f"{name}: {errors[-1]:.0%} off")
        speed.plot(WAVES, seen(stencil, xp.asarray(WAVES)).numpy() / WAVES, color=colour, label=str(np.round(stencil.numpy(), 4)))
    place.set(xlim=(2 * way - 10, 2 * way + 47), ylim=(-1.1, 1.7), xlabel="place", ylabel="height", title=f"After {2 * way} points")
    speed.set(xlim=(0, 2), ylim=(0.9, 1.02), xlabel="wave number, 1 / distance of points", ylabel="speed (exact: 1)", title="Coefficients")
    place.legend(ncols=2)
    speed.legend()
    off = float(xp.max(xp.abs(webb - xp.asarray(PUBLISHED))))
    return Result(figure, {"off from Tam and Webb's": off, "error, learned by theirs": errors[2] / errors[1]})


if __name__ == "__main__":
    main.command()
