"""The functions from which the other modules in this folder were exported. ``python functions.py`` writes these modules again."""

from pathlib import Path

import numpy as np

import xpgrad as xp


def digits(w1, b1, w2, b2, pixels, labels):
    """Return the cross-entropy of a network with one hidden layer; labels are one-hot."""
    hidden = xp.maximum(pixels @ w1 + b1, 0)
    scores = hidden @ w2 + b2
    scores = scores - xp.max(scores.detach(), axis=1, keepdims=True)
    log_p = scores - xp.log(xp.sum(xp.exp(scores), axis=1, keepdims=True))
    return -xp.sum(labels * log_p) / pixels.shape[0]


def gaussian_process(log_length, log_noise, x, y):
    """Return the negative log marginal likelihood of a Gaussian process with a squared-exponential kernel."""
    distance = (x[:, None] - x[None, :]) / xp.exp(log_length)
    covariance = xp.exp(-0.5 * distance * distance) + xp.exp(log_noise) * xp.eye(x.shape[0])
    factor = xp.linalg.cholesky(covariance)
    alpha = xp.linalg.solve(covariance, y)
    return 0.5 * xp.sum(y * alpha) + xp.sum(xp.log(xp.linalg.diagonal(factor)))


def stencil(u, wanted, rate=0.2, steps=4):
    """Return the squared distance of a temperature from the wanted one after some steps of diffusion with fixed ends."""
    for _ in range(steps):
        inner = u[1:-1] + rate * (u[2:] - 2 * u[1:-1] + u[:-2])
        u = xp.concat([u[:1], inner, u[-1:]])
    return xp.sum((u - wanted) ** 2)


def examples():
    """Return each function with its arguments by name: Tensors that require grad, and arrays, which are constants."""
    rng = np.random.default_rng(0)
    weights = [rng.normal(0, 0.125, (64, 32)), rng.normal(0, 0.1, 32), rng.normal(0, 0.17, (32, 10)), rng.normal(0, 0.1, 10)]
    pixels, labels = rng.uniform(0, 1, (50, 64)), np.eye(10)[rng.integers(0, 10, 50)]
    parameters = [xp.tensor(w, requires_grad=True) for w in (*weights, -0.5, -2.0, rng.uniform(0, 1, 40))]
    x = np.sort(rng.uniform(0, 5, 30))
    return {
        "digits": (digits, (*parameters[:4], pixels, labels)),
        "gaussian_process": (gaussian_process, (*parameters[4:6], x, np.sin(x))),
        "stencil": (stencil, (parameters[6], np.linspace(0, 1, 40))),
    }


if __name__ == "__main__":
    for name, (function, arguments) in examples().items():
        xp.export(function, *arguments, path=Path(__file__).parent / f"{name}_gradients.py", command="python functions.py")
