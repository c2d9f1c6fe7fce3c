"""Hares and lynxes: a differential equation fitted to data
=========================================================

The Hudson's Bay Company recorded the number of pelts that it bought. From 1900 to 1920 the numbers of hares and lynxes rose and fell in
turns. The Lotka-Volterra equation is fitted to the logarithms of these counts, with six parameters: four rates and the state in 1900.
`odeint` is differentiable in all six, so `least_squares` gets exact Jacobians. One more Jacobian shows how well the data determine the
solution.

The rates are compared with the posterior means of Bob Carpenter's Bayesian analysis of the same data, "Predator-prey population dynamics:
the Lotka-Volterra model in Stan" (2018), which is also the source of the data. The pages on equations and on solvers describe the functions
used here.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import grad, jacrev
from xpgrad.scipy.integrate import odeint
from xpgrad.scipy.optimize import least_squares

HARES = [30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7]
LYNXES = [4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6]
PUBLISHED = np.asarray([0.55, 0.028, 0.80, 0.024])  # births, being eaten, deaths, eating; per year, and per thousand pelts


def course(logs: xp.Tensor, times: xp.Tensor) -> xp.Tensor:
    """Return the logarithms of hares and lynxes, of shape (times, 2), given the logarithms of the rates and of the start."""
    births, eaten, deaths, eating = xp.unstack(xp.exp(logs[:4]))

    def change(state: xp.Tensor, t: xp.Tensor) -> xp.Tensor:
        hares, lynxes = xp.unstack(state)
        return xp.stack([(births - eaten * lynxes) * hares, (eating * hares - deaths) * lynxes])

    return xp.log(odeint(change, xp.exp(logs[4:]), times, rtol=1e-7, atol=1e-7))


@program({"farthest from a published rate": (0.0, 0.06), "scatter of the logarithms": (0.2, 0.3), "gradient, off by": (0.0, 1e-5)})
def main(small: bool) -> Result:
    """Fit the rates, and compute how uncertain the solution is."""
    counts = xp.log(xp.asarray([*zip(HARES, LYNXES)]))

    def residuals(logs: xp.Tensor) -> xp.Tensor:
        return xp.reshape(course(logs, xp.arange(21.0)) - counts, (-1,))

    def misfit(logs: xp.Tensor) -> xp.Tensor:
        return xp.sum(residuals(logs) ** 2)

    guess = xp.log(xp.asarray([0.5, 0.02, 0.9, 0.03, 30.0, 4.0]))
    difference = (misfit(guess + 1e-5) - misfit(guess - 1e-5)) / 2e-5
    found = least_squares(residuals, guess, xtol=1e-6 if small else 1e-10).x.detach()
    rates = xp.exp(found[:4]).numpy()

    jacobian = jacrev(residuals)(found)
    scatter = xp.sqrt(misfit(found) / (42 - 6))  # the standard deviation of a logarithm
    covariance = scatter**2 * xp.linalg.inv(jacobian.T @ jacobian)
    times = xp.linspace(0.0, 20.0, 61 if small else 201)
    slopes = jacrev(course)(found, times)  # (times, 2, 6): how the course depends on all that was fitted
    spread = xp.sqrt(xp.sum((slopes @ covariance) * slopes, axis=-1)).numpy()
    logs, years = course(found, times).numpy(), 1900.0 + times.numpy()

    figure, axes = plt.subplots(figsize=(9.0, 4.2))
    for k, (name, colour, data) in enumerate((("hares", BLUE, HARES), ("lynxes", ORANGE, LYNXES))):
        axes.plot(1900 + np.arange(21), data, "o", color=colour, label=f"{name}, pelts bought")
        axes.plot(years, np.exp(logs[:, k]), color=colour, label="fit, and twice its error")
        axes.fill_between(years, *np.exp(logs[:, k] + np.asarray([[-2.0], [2.0]]) * spread[:, k]), color=colour, alpha=0.2, lw=0)
    fitted, published = (", ".join(f"{rate:.3f}" for rate in numbers) for numbers in (rates, PUBLISHED))
    axes.set(xlabel="year", ylabel="thousands of pelts", xticks=range(1900, 1921, 4), ylim=(0, 110))
    axes.set_title(f"Births, being eaten, deaths, eating: {fitted} a year (published: {published})")
    axes.legend(ncols=2)
    off = float(xp.abs(xp.sum(grad(misfit)(guess)) / difference - 1.0))
    away = float(np.max(np.abs(rates / PUBLISHED - 1.0)))
    return Result(figure, {"farthest from a published rate": away, "scatter of the logarithms": float(scatter), "gradient, off by": off})


if __name__ == "__main__":
    main.command()
