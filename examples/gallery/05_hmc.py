"""Eight schools: Hamiltonian Monte Carlo
=======================================

Eight schools coached pupils for a test (Rubin, "Estimation in parallel randomized experiments", 1981). The effect in each school is known
with a large error; how similar are the effects? Hamiltonian Monte Carlo draws samples from the posterior of the mean effect, of the scatter
between schools and of all eight effects: a point moves in a potential given by the logarithm of the density, whose gradient is the force.
The points of many chains move together, as rows of one Tensor, and ``grad`` computes all forces.

The priors are those of Stan's version of this example: normal of width 5 for the mean, half-Cauchy of width 5 for the scatter. The mean and
the scatter are compared with integrals over a grid, for which the effects are integrated out in closed form. The picture shows how the
effects shrink towards each other.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREY, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import grad

EFFECTS, ERRORS = np.asarray([28.0, 8, -3, 7, -1, 1, 18, 12]), np.asarray([15.0, 10, 16, 11, 9, 11, 10, 18])


def log_density(points: xp.Tensor) -> xp.Tensor:
    """Return the log-density of each chain's point: mean, log of the scatter, and each school's deviation / scatter."""
    mean, log, distances = points[:, :1], points[:, 1:2], points[:, 2:]
    misfits = (mean + xp.exp(log) * distances - xp.asarray(EFFECTS)) / xp.asarray(ERRORS)
    prior = (mean / 5.0) ** 2 + 2.0 * xp.log1p(xp.exp(2.0 * log) / 25.0) - 2.0 * log
    return -0.5 * (xp.sum(misfits**2 + distances**2, axis=1) + prior[:, 0])


forces = grad(lambda points: xp.sum(log_density(points)))  # each chain's density depends on its own point only


def exact() -> np.ndarray:
    """Return the posterior means of mean and scatter, by integrals over a grid."""
    mean, scatter = np.linspace(-25.0, 35.0, 601)[:, None, None], np.linspace(1e-3, 200.0, 8000)[:, None]
    variances = ERRORS**2 + scatter**2
    logs = -0.5 * ((EFFECTS - mean) ** 2 / variances + np.log(variances)).sum(axis=-1)
    weights = np.exp(logs - logs.max() - 0.5 * (mean[..., 0] / 5.0) ** 2) / (1.0 + scatter[:, 0] ** 2 / 25.0)
    return np.asarray([np.sum(weights * mean[..., 0]), np.sum(weights * scatter[:, 0])]) / weights.sum()


@program({"mean, off by": (0.0, 0.4), "scatter, off by": (0.0, 0.4), "accepted": (0.8, 1.0)})
def main(small: bool) -> Result:
    """Draw samples, and compare them with the integrals."""
    rng, chains, draws = np.random.default_rng(0), 50 if small else 100, 150 if small else 500
    points = xp.asarray(rng.normal(size=(chains, 10)) * np.asarray([5.0, *9 * [1.0]]))
    scales, accepted, kept = xp.asarray([3.0, *9 * [1.0]]), [], []
    for _ in range(draws):
        step = 0.25 * rng.uniform(0.8, 1.2) * scales
        moved, start = points, xp.asarray(rng.normal(size=(chains, 10)))
        velocity = start + 0.5 * step * forces(moved)
        for k in range(10):
            moved = moved + step * velocity
            velocity = velocity + (0.5 if k == 9 else 1.0) * step * forces(moved)
        gain = log_density(moved) - log_density(points) - 0.5 * xp.sum(velocity**2 - start**2, axis=1)
        taken = xp.asarray(np.log(rng.uniform(size=chains))) < gain
        points = xp.where(taken[:, None], moved, points)
        accepted.append(taken.numpy())
        kept.append(points.numpy())
    mean, log, distances = np.split(np.concatenate(kept[draws // 5 :]), [1, 2], axis=1)
    scatter, truth, effects = np.exp(log), exact(), mean + np.exp(log) * distances
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.0))
    left.hexbin(mean[:, 0], log[:, 0], gridsize=50, cmap="Blues", extent=(-12, 20, -4, 4))
    title = f"Means: {mean.mean():.2f}, {scatter.mean():.2f} (orange, by integrals: {truth[0]:.2f}, {truth[1]:.2f})"
    left.plot(truth[0], np.log(truth[1]), "o", color=ORANGE)
    left.set(xlabel="mean effect", ylabel="logarithm of the scatter", title=title)
    right.errorbar(np.arange(8) - 0.1, EFFECTS, ERRORS, fmt="o", color=GREY, label="measured")
    right.errorbar(np.arange(8) + 0.1, effects.mean(axis=0), effects.std(axis=0), fmt="o", color=BLUE, label="posterior")
    right.set(xlabel="school", ylabel="effect, points of the test", title="Effects shrink together")
    right.legend()
    offs = np.abs([mean.mean(), scatter.mean()] - truth)
    return Result(figure, {"mean, off by": float(offs[0]), "scatter, off by": float(offs[1]), "accepted": float(np.mean(accepted))})


if __name__ == "__main__":
    main.command()
