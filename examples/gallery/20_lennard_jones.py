"""Thirteen atoms: the Lennard-Jones cluster of least energy
============================================================

Argon atoms attract each other at large distances and repel each other at short ones, as described by the Lennard-Jones potential. Thirteen
atoms have many arrangements that are local minima of the energy; the lowest is an icosahedron around a central atom. Basin hopping finds
it: perturb the atoms, ``minimize`` with the gradient, keep the result if its energy is lower. The ``hessian`` at the minimum gives the
frequencies at which the cluster vibrates.

The lowest energy is -44.326801 (M. R. Hoare and P. Pal, "Physical cluster mechanics", Advances in Physics 20, 1971; digits from the
Cambridge Cluster Database). Symmetry gives a second check: of the 39 degrees of freedom, 6 shift or rotate the whole cluster, which costs
no energy, and the other 33 have only nine different frequencies, with multiplicities 1, 3, 3, 3, 4, 4, 5, 5 and 5. The picture shows the
atoms, the minima on the way, and the frequencies.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREY, ORANGE, YELLOW, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import hessian
from xpgrad.scipy.optimize import minimize

ATOMS, PUBLISHED = 13, -44.326801
PAIRS = np.stack(np.triu_indices(ATOMS, 1))


@xp.compile
def energy(places: xp.Tensor) -> xp.Tensor:
    """Return the energy in well depths, given positions of shape (atoms, 3); two atoms at distance 1 have energy 0."""
    first, second = (xp.take(places, xp.asarray(side), axis=0) for side in PAIRS)
    attraction = xp.sum((first - second) ** 2, axis=1) ** -3
    return 4.0 * xp.sum(attraction**2 - attraction)


def lowest(start: xp.Tensor) -> tuple[xp.Tensor, float]:
    """Return the local minimum reached from given positions, and its energy."""
    found = minimize(energy, start, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-7, "maxls": 50})
    return found.x.detach(), float(found.fun)


@program({"energy, off by": (0.0, 1e-6), "stiffness of moving, turning": (0.0, 1e-3), "spread of multiplets": (0.0, 1e-4)})
def main(small: bool) -> Result:
    """Search for the lowest minimum, and compute its vibrations."""
    rng = np.random.default_rng(2)
    places, least = lowest(xp.asarray(1.5 * rng.normal(size=(ATOMS, 3))))
    minima = [least]
    for _ in range(60 if small else 150):
        there, value = lowest(places + xp.asarray(rng.uniform(-0.4, 0.4, size=(ATOMS, 3))))
        minima.append(value)
        places, least = (there, value) if value < least else (places, least)
    stiffness = xp.linalg.eigvalsh(xp.reshape(hessian(energy)(places), (3 * ATOMS, 3 * ATOMS))).numpy()
    frequencies = np.sqrt(stiffness[6:])
    multiplets = np.split(frequencies, 1 + np.flatnonzero(np.diff(frequencies) > 1e-2))

    figure = plt.figure(figsize=(11.0, 4.2))
    space, path, tones = figure.add_subplot(131, projection="3d"), figure.add_subplot(132), figure.add_subplot(133)
    atoms = places.numpy() - places.numpy().mean(axis=0)
    for ends in atoms[PAIRS.T]:
        if np.linalg.norm(ends[0] - ends[1]) < 1.3:
            space.plot(*ends.T, color=GREY, lw=1)
    space.scatter(*atoms.T, s=200, c=np.where(np.linalg.norm(atoms, axis=1) < 0.5, ORANGE, BLUE), alpha=1.0, edgecolors="k")
    space.set_title(f"Lowest energy: {least:.6f}")
    space.set_axis_off()
    space.set_box_aspect((1, 1, 1), zoom=1.35)
    path.plot(minima, "o", ms=3, color=BLUE)
    path.axhline(PUBLISHED, color=YELLOW, zorder=0)
    path.set(xlabel="hop", ylabel="energy of the minimum", title=f"{len({round(e, 3) for e in minima})} minima in {len(minima)} hops")
    for tone in multiplets:
        tones.plot(range(1, len(tone) + 1), tone, "_", color=ORANGE, ms=24, mew=2.0)
    tones.set(xlabel="ways to vibrate", ylabel="angular frequency", xlim=(0, 6), title=f"33 vibrations, {len(multiplets)} frequencies")
    wrong = sorted(map(len, multiplets)) != [1, 3, 3, 3, 4, 4, 5, 5, 5]
    spread = np.inf if wrong else max(float(np.ptp(tone)) for tone in multiplets)
    free = float(np.max(np.abs(stiffness[:6])))
    return Result(figure, {"energy, off by": abs(least - PUBLISHED), "stiffness of moving, turning": free, "spread of multiplets": spread})


if __name__ == "__main__":
    main.command()
