"""How toxic is it? Variational inference, and how much it misses
===============================================================

Four doses of a poison were given to five animals each (Racine and others, "Bayesian methods in practice", 1986). The model is a line for
the logit of the probability of death. Variational inference approximates the posterior of its intercept and slope by a distribution that is
easy to sample. It maximizes a lower bound of the probability of the data, whose gradient passes through the samples. Two distributions are
fitted: a normal one, and one whose axes are bent by a sinh.

The samples are the nodes of a quadrature, so that ``minimize`` gets a smooth function. The probability of the data and the means are
compared with sums over a fine grid, which is possible for two parameters. The picture shows that the posterior is not normal, and what each
distribution misses.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import jacfwd, vmap
from xpgrad.scipy.optimize import minimize
from xpgrad.scipy.special import log_expit

DOSES, DEATHS = np.asarray([-0.86, -0.30, -0.05, 0.73]), np.asarray([0.0, 1.0, 3.0, 5.0])


def log_joint(points: xp.Tensor) -> xp.Tensor:
    """Return the log-density of data and parameters; the last axis has intercept and slope, with wide normal priors."""
    logits = points[..., :1] + points[..., 1:] * xp.asarray(DOSES)
    priors = (points / xp.asarray([4.0, 20.0])) ** 2
    return xp.sum(log_expit(logits) * DEATHS + log_expit(-logits) * (5.0 - DEATHS), axis=-1) - xp.sum(0.5 * priors, axis=-1)


def transport(params: xp.Tensor, normal: xp.Tensor) -> xp.Tensor:
    """Map a standard normal point to the distribution: bend both axes by params[5:], then scale, shear and shift."""
    bend = params[5:]
    bent = xp.sinh(bend + xp.asinh(normal)) - xp.sinh(bend)
    a, b = xp.unstack(bent * xp.exp(params[2:4]))
    return params[:2] + xp.stack([a, b + params[4] * a])


def negative_bound(params: xp.Tensor, normals: xp.Tensor, weights: xp.Tensor) -> xp.Tensor:
    """Return minus the bound, with the log-determinants of the transport."""
    points = vmap(transport, in_dims=(None, 0))(params, normals)
    volumes = xp.linalg.slogdet(vmap(jacfwd(transport, argnums=1), in_dims=(None, 0))(params, normals)).logabsdet
    entropy = volumes + 0.5 * xp.sum(normals**2, axis=1) + np.log(2.0 * np.pi)
    return -(weights @ (log_joint(points) + entropy))


@program({"missed by the normal": (0.02, 0.5), "missed by the bent": (0.0, 0.1), "means of the bent, off by": (0.0, 0.5)})
def main(small: bool) -> Result:
    """Fit both distributions, and draw them."""
    nodes, each = np.polynomial.hermite_e.hermegauss(12 if small else 24)
    normals = xp.asarray(np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2))
    weights = xp.asarray(np.outer(each, each).reshape(-1) / each.sum() ** 2)
    start = xp.asarray([1.0, 10.0, 0.0, 1.5, 0.0])
    normal = minimize(lambda p: negative_bound(xp.concat([p, xp.zeros(2)]), normals, weights), start, tol=1e-4)
    bent = minimize(lambda p: negative_bound(p, normals, weights), xp.concat([normal.x.detach(), xp.zeros(2)]), tol=1e-4)
    fits = xp.concat([normal.x.detach(), xp.zeros(2)]), bent.x.detach()

    axis, up = np.linspace(-8.0, 14.0, 401), np.linspace(-15.0, 80.0, 401)
    grid = np.stack(np.meshgrid(axis, up), axis=-1)
    density = np.exp(log_joint(xp.asarray(grid)).numpy())
    exact = np.log(density.sum() * (axis[1] - axis[0]) * (up[1] - up[0]))
    mean = np.sum(density[..., None] * grid, axis=(0, 1)) / density.sum()
    missed = [float(exact + fit.fun) for fit in (normal, bent)]

    figure, panels = plt.subplots(1, 2, figsize=(10.5, 4.2), sharey=True)
    draws = xp.asarray(np.random.default_rng(0).normal(size=(800, 2)))
    for panel, params, colour, name, gap in zip(panels, fits, (ORANGE, BLUE), ("Normal", "Bent"), missed):
        panel.contour(axis, up, density / density.max(), levels=[0.01, 0.05, 0.2, 0.5, 0.9], colors="k", linewidths=1.0)
        panel.plot(*vmap(transport, in_dims=(None, 0))(params, draws).numpy().T, ".", ms=3, color=colour)
        panel.set(xlabel="start, logits", ylabel="slope, logits per unit", xlim=(-4, 8), ylim=(-10, 50))
        panel.set_title(f"{name}: misses {gap:.4f} of the data's log probability")
    away = float(np.max(np.abs(weights.numpy() @ vmap(transport, in_dims=(None, 0))(fits[1], normals).numpy() - mean)))
    return Result(figure, {"missed by the normal": missed[0], "missed by the bent": missed[1], "means of the bent, off by": away})


if __name__ == "__main__":
    main.command()
