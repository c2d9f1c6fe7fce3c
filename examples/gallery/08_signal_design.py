"""A lens without aberration: optics by gradients
===============================================

Parallel light in glass meets the curved end of a lens and is refracted into air. If the end is spherical, rays far from the axis cross the
axis too early. Here the end is a polynomial, and the rays are traced through it by Snell's law. ``vmap`` traces all rays, ``grad`` computes
the slope of the surface inside the trace, and ``least_squares`` gets the Jacobian of the rays' positions, through that slope, with respect
to the polynomial's coefficients.

By Fermat's principle the ideal end is a hyperbola, for which light takes equally long along all paths (Descartes, "La Dioptrique", 1637).
The picture shows the rays of both lenses, and how far each ray misses the focus.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREY, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import value_and_grad, vmap
from xpgrad.scipy.optimize import least_squares

INDEX, FOCUS, RADIUS = 1.5, 10.0, 2.5


def depth(terms: xp.Tensor, height: xp.Tensor) -> xp.Tensor:
    """Return the distance of the surface from its vertex plane at a height: a polynomial of even powers."""
    return -xp.sum(terms * (height / RADIUS) ** xp.arange(2.0, 2.0 * terms.size + 1.0, 2.0))


def ray(terms: xp.Tensor, height: xp.Tensor) -> tuple[xp.Tensor, xp.Tensor]:
    """Return where a ray leaves the glass, and its slope by Snell's law for the surface normal (1, -slope)."""
    place, slope = value_and_grad(depth, argnums=1)(terms, height)
    cosine = 1.0 / xp.sqrt(1.0 + slope**2)
    bend = xp.sqrt(1.0 - INDEX**2 * (1.0 - cosine**2)) - INDEX * cosine
    return place, -bend * cosine * slope / (INDEX + bend * cosine)


def misses(terms: xp.Tensor, heights: xp.Tensor) -> xp.Tensor:
    """Return the heights at which rays arrive in the focal plane."""
    places, slopes = vmap(ray, in_dims=(None, 0))(terms, heights)
    return heights + slopes * (FOCUS - places)


@program({"spot of the sphere": (0.1, 2.0), "spot of the design": (0.0, 2e-4), "surface, off by": (0.0, 2e-4)})
def main(small: bool) -> Result:
    """Design the end, and compare it with the hyperbola."""
    heights = xp.linspace(0.05, RADIUS, 20 if small else 60)
    r, bend = heights.numpy(), FOCUS * (INDEX - 1.0)  # the radius of a sphere with the same focus for rays near the axis
    sphere, hyperbola = np.sqrt(bend**2 - r**2) - bend, (bend - np.sqrt(bend**2 + (INDEX**2 - 1.0) * r**2)) / (INDEX**2 - 1.0)
    powers = (r[:, None] / RADIUS) ** np.arange(2, 21, 2)
    round_terms = xp.asarray(np.linalg.lstsq(powers, -sphere, rcond=None)[0])
    guess = xp.asarray([RADIUS**2 / (2.0 * bend)] + 5 * [0.0])
    terms = least_squares(lambda terms: misses(terms, heights), guess, xtol=1e-12, ftol=1e-12, gtol=1e-12).x.detach()

    figure, panels = plt.subplots(1, 3, figsize=(12.0, 4.0), width_ratios=(1, 1, 0.9))
    spots = []
    for axes, end, colour, name in ((panels[0], round_terms, ORANGE, "Sphere"), (panels[1], terms, BLUE, "Design")):
        places, slopes = (values.numpy() for values in vmap(ray, in_dims=(None, 0))(end, heights))
        missed = misses(end, heights).numpy()
        spots.append(float(np.sqrt(np.mean(missed**2))))
        for k in range(0, len(r), 1 if small else 4):
            for side in (-1.0, 1.0):
                way = side * np.asarray([r[k], r[k], r[k] + slopes[k] * (12.0 - places[k])])
                axes.plot([-5.0, places[k], 12.0], way, color=colour, lw=0.8)
        axes.fill_betweenx(np.concatenate([-r[::-1], r]), -5.0, np.concatenate([places[::-1], places]), color=GREY, alpha=0.3, lw=0)
        axes.set(xlabel="along the axis", ylabel="height", ylim=(-3.0, 3.0), title=f"{name}: misses by {spots[-1]:.1e}")
        panels[2].semilogy(r, np.abs(missed), color=colour, label=name)
    off = float(np.max(np.abs(vmap(depth, in_dims=(None, 0))(terms, heights).numpy() - hyperbola)))
    panels[2].set(xlabel="height of the ray in the glass", ylabel="misses the focus by", title=f"Off from the hyperbola by {off:.1e}")
    panels[2].legend()
    return Result(figure, {"spot of the sphere": spots[0], "spot of the design": spots[1], "surface, off by": off})


if __name__ == "__main__":
    main.command()
