"""A Gaussian process, its hyper-parameters, and its slope
========================================================

A curve was measured at sixty places with noise, except in a gap. A Gaussian process describes which curves are likely, given its amplitude,
its length scale and the noise. ``minimize`` finds the values of these that make the data most likely, with the gradient of the likelihood
through a Cholesky decomposition. The slope of the curve is also a Gaussian process: ``jacfwd`` differentiates the kernel.

The parameters, the likelihood and its gradient are compared with scikit-learn's, whose gradients are handwritten. The data are simulated.
The picture shows the curve and its slope with error bands of two standard deviations, and the true curve: the errors grow in the gap.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREY, ORANGE, Result, program
from matplotlib import pyplot as plt
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import xpgrad as xp
from xpgrad.func import grad, jacfwd, vmap
from xpgrad.scipy.optimize import minimize


def kernel(logs: xp.Tensor, a: xp.Tensor, b: xp.Tensor) -> xp.Tensor:
    """Return the covariance of the curve at a and b; the parameters are logarithms of variance, length and noise variance."""
    return xp.exp(logs[0] - 0.5 * (a - b) ** 2 * xp.exp(-2.0 * logs[1]))


def covariance(logs: xp.Tensor, places: xp.Tensor) -> xp.Tensor:
    return kernel(logs, places[:, None], places) + xp.exp(logs[2]) * xp.eye(places.shape[0])


def likelihood(logs: xp.Tensor, places: xp.Tensor, data: xp.Tensor) -> xp.Tensor:
    factor = xp.linalg.cholesky(covariance(logs, places))
    white = xp.linalg.solve(factor, data)
    return -0.5 * white @ white - xp.sum(xp.log(xp.linalg.diagonal(factor))) - 0.5 * data.shape[0] * np.log(2.0 * np.pi)


@program({"parameters, off by": (0.0, 1e-3), "likelihood, off by": (0.0, 1e-6), "gradient, off by": (0.0, 1e-8)})
def main(small: bool) -> Result:
    """Fit, and predict the curve and its slope."""
    rng = np.random.default_rng(1)
    where = np.sort(np.concatenate([rng.uniform(0.0, 4.0, 35), rng.uniform(6.0, 10.0, 25)]))
    measured = np.sin(where) + 0.3 * np.cos(3.0 * where) + rng.normal(scale=0.15, size=60)
    places, data, guess = xp.asarray(where), xp.asarray(measured), xp.asarray(np.log([1.0, 1.0, 0.1]))
    logs = minimize(lambda logs: -likelihood(logs, places, data), guess, tol=1e-4).x.detach()

    grid, inverse = xp.linspace(0.0, 10.0, 101 if small else 401), xp.linalg.inv(covariance(logs, places))
    slope = jacfwd(kernel, argnums=1)  # covariance of the curve's slope at a and the curve at b
    curves = []
    for function, prior in ((kernel, kernel), (slope, jacfwd(slope, argnums=2))):
        shared = vmap(vmap(function, in_dims=(None, None, 0)), in_dims=(None, 0, None))(logs, grid, places)
        variance = prior(logs, xp.asarray(5.0), xp.asarray(5.0)) - xp.sum(shared @ inverse * shared, axis=1)
        curves.append(((shared @ inverse @ data).numpy(), xp.sqrt(variance).numpy()))

    model = GaussianProcessRegressor(ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1), alpha=0.0).fit(where[:, None], measured)
    at_guess = model.log_marginal_likelihood(guess.numpy(), eval_gradient=True)[1]
    figure, panels = plt.subplots(1, 2, figsize=(10.5, 4.0))
    x = grid.numpy()
    truths = np.sin(x) + 0.3 * np.cos(3.0 * x), np.cos(x) - 0.9 * np.sin(3.0 * x)
    panels[0].plot(where, measured, "o", ms=3, color=GREY, label="measured")
    for axes, colour, name, truth, (mean, error) in zip(panels, (BLUE, ORANGE), ("curve", "slope"), truths, curves):
        axes.plot(x, truth, "--", color=GREY, label="true")
        axes.plot(x, mean, color=colour, label=f"{name}, and twice its error")
        axes.fill_between(x, mean - 2.0 * error, mean + 2.0 * error, color=colour, alpha=0.2, lw=0)
        axes.legend()
        axes.set(xlabel="place", ylabel=name)
    size, length, noise = xp.exp(logs * xp.asarray([0.5, 1.0, 0.5])).numpy()
    panels[0].set_title(f"Amplitude {size:.2f}, length {length:.2f}, noise {noise:.2f} (true noise: 0.15)")
    panels[1].set_title("The slope, which was not measured")
    off = float(np.max(np.abs(grad(likelihood)(guess, places, data).numpy() - at_guess)))
    away = float(np.max(np.abs(logs.numpy() - model.kernel_.theta)))
    apart = abs(float(likelihood(logs, places, data)) - model.log_marginal_likelihood_value_)
    return Result(figure, {"parameters, off by": away, "likelihood, off by": apart, "gradient, off by": off})


if __name__ == "__main__":
    main.command()
