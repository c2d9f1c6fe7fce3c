"""Portfolios, and how far their weights can be trusted
=======================================================

There are four assets with known risks. ``minimize`` finds three portfolios without negative weights: the one with the least variance, the
one with the highest excess return over cash for its risk, and the one to which all assets contribute the same risk. The weights are
functions of estimates. ``jacrev`` differentiates through ``minimize``, by the implicit function theorem, and shows how uncertain the
weights are if only ten years of monthly returns are known.

Risks, correlations, and the weights of least variance (74.5 %, 0, 15.2 %, 10.3 %) and of equal contributions (38.4 %, 19.2 %, 24.3 %, 18.2
%) are those of S. Maillard, T. Roncalli and J. Teiletche, "The properties of equally weighted risk contribution portfolios" (Journal of
Portfolio Management 36, 2010); the returns are made up. The errors of equal contributions are compared with those of simulated decades. The
picture shows why returns are a poor guide: they are the least certain of all.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREEN, GREY, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import jacrev
from xpgrad.scipy.optimize import minimize, root

RISKS, RETURNS, CASH = np.asarray([0.1, 0.2, 0.3, 0.4]), np.asarray([0.04, 0.06, 0.09, 0.1]), 0.01  # of a year
CORRELATIONS = np.asarray([[1.0, 0.8, 0.0, 0.0], [0.8, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -0.5], [0.0, 0.0, -0.5, 1.0]])
PUBLISHED = np.asarray([[0.745, 0.0, 0.152, 0.103], [0.384, 0.192, 0.243, 0.182]])
NAMES, YEARS = ("least variance", "equal contributions", "best return for its risk"), 10


def best(covariance: xp.Tensor, returns: xp.Tensor) -> xp.Tensor:
    """Return the weights with the highest return for their risk; with returns of 1, those of least variance."""
    held = minimize(lambda w: 0.5 * w @ covariance @ w - returns @ w, xp.ones(4), method="SLSQP", bounds=[(0.0, None)] * 4, tol=1e-12).x
    return held / xp.sum(held)


def equal(covariance: xp.Tensor) -> xp.Tensor:
    """Return the weights with equal contributions to the variance: weight times covariance with the portfolio."""
    held = root(lambda w: w * (covariance @ w) - 1.0, 1.0 / xp.asarray(RISKS), tol=1e-12).x
    return held / xp.sum(held)


def errors(slopes: xp.Tensor, covariance: xp.Tensor) -> xp.Tensor:
    """Return the errors of weights, given their derivatives with respect to a covariance that is estimated from 12 returns a year."""
    moved = (slopes + xp.matrix_transpose(slopes)) @ covariance / 2.0
    return xp.sqrt(2.0 * xp.sum(moved * xp.matrix_transpose(moved), axis=(1, 2)) / (12 * YEARS))


@program({"weights, off by": (0.0, 0.000501), "errors, by simulated ones": (0.75, 1.35)})
def main(small: bool) -> Result:
    """Find the portfolios and their errors, and simulate decades."""
    covariance, returns, ones = xp.asarray(CORRELATIONS * np.outer(RISKS, RISKS)), xp.asarray(RETURNS - CASH), xp.ones(4)
    weights = [w.detach().numpy() for w in (best(covariance, ones), equal(covariance), best(covariance, returns))]
    by_covariance, by_returns = jacrev(best, argnums=(0, 1))(covariance, returns)
    spreads = [errors(slopes, covariance).numpy() for slopes in (jacrev(best)(covariance, ones), jacrev(equal)(covariance), by_covariance)]
    spreads[2] = np.hypot(spreads[2], xp.sqrt(xp.sum((by_returns @ covariance) * by_returns, axis=1) / YEARS).numpy())

    c, rng = covariance.numpy(), np.random.default_rng(0)
    decades = rng.multivariate_normal(RETURNS, c, size=(60 if small else 400, 12 * YEARS))
    simulated = np.std([equal(xp.asarray(np.cov(decade.T))).detach().numpy() for decade in decades], axis=0)

    figure, (plane, bars) = plt.subplots(1, 2, figsize=(10.5, 4.2))
    efficient = np.stack([best(covariance, returns - 0.09 + gap).detach().numpy() for gap in np.geomspace(1e-3, 0.4, 40)])
    plane.plot(
        100 * np.sqrt(np.sum((efficient @ c) * efficient, axis=1)), 100 * efficient @ RETURNS, color=GREY, label="the efficient ones"
    )
    plane.plot(100 * RISKS, 100 * RETURNS, "ks", label="the four assets")
    for k, (name, colour, w) in enumerate(zip(NAMES, (BLUE, GREEN, ORANGE), weights)):
        plane.plot(100 * np.sqrt(w @ c @ w), 100 * w @ RETURNS, "o", color=colour, ms=9, label=name)
        bars.bar(np.arange(4) + 0.25 * (k - 1), 100 * w, 0.23, yerr=100 * spreads[k], color=colour, ecolor="k")
    plane.set(xlabel="risk, % of a year", ylabel="expected return, % of a year", title="Portfolios of four assets")
    bars.set(xticks=range(4), xticklabels=[f"{risk:.0%} risk" for risk in RISKS], ylabel="weight, %", title="Weights after ten years")
    plane.legend()
    off = float(np.max(np.abs(np.stack(weights[:2]) - PUBLISHED)))
    return Result(figure, {"weights, off by": off, "errors, by simulated ones": float(np.mean(spreads[1] / simulated))})


if __name__ == "__main__":
    main.command()
