"""Wrong diagnoses: hyper-gradients say which data to leave out
===============================================================

A tenth of the labels used to train a logistic regression are wrong. Which ones? Each patient has a weight in the training, and the loss on
other patients, whose labels were checked, is differentiated with respect to these weights, through the training. By the implicit function
theorem the result of ``minimize`` is a differentiable function of the weights, and one backward pass computes all derivatives. The patient
whose weight should decrease fastest is removed, and the search is repeated.

The first derivatives are compared with central differences, which need two trainings for each patient. The picture shows these derivatives,
and how the loss decreases towards that of correct labels, also on patients that were not used before. The measurements are Street's,
Wolberg's and Mangasarian's (UCI Machine Learning Repository, 1995, https://doi.org/10.24432/C5DW2B, CC BY 4.0), from scikit-learn.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREY, ORANGE, Result, program
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

import xpgrad as xp
from xpgrad.func import grad, grad_and_value
from xpgrad.scipy.optimize import minimize
from xpgrad.scipy.special import log_expit


def losses(plane: xp.Tensor, patients: xp.Tensor) -> xp.Tensor:
    """Return the logistic loss of each patient; a row has 30 measurements and a 1, negated if the label is healthy."""
    return -log_expit(patients @ plane)


def train(weights: xp.Tensor, patients: xp.Tensor) -> xp.Tensor:
    """Return the plane that separates the weighted patients best."""
    return minimize(lambda plane: weights @ losses(plane, patients) + 0.5 * plane @ plane, xp.zeros(31), tol=1e-6).x


@program({"slopes, off by": (0.0, 1e-5), "wrong, of the first 20": (17.0, 20.0), "loss, by that of right labels": (0.9, 1.5)})
def main(small: bool) -> Result:
    """Flip labels, and find the flipped ones."""
    rng, (measured, healthy) = np.random.default_rng(0), load_breast_cancer(return_X_y=True)
    scaled = np.pad((measured - measured.mean(axis=0)) / measured.std(axis=0), ((0, 0), (0, 1)), constant_values=1.0)
    parts = np.split(rng.permutation(scaled * (1.0 - 2.0 * healthy[:, None])), [300, 420])
    right, checked, new = (xp.asarray(part) for part in parts)
    flipped = np.arange(300) < 30
    data = right * xp.asarray(np.where(flipped, -1.0, 1.0))[:, None]

    def loss(weights: xp.Tensor) -> xp.Tensor:
        return xp.mean(losses(train(weights, data), checked))

    weights, out, course = np.ones(300), [], []
    first = grad(loss)(xp.ones(300)).numpy()
    for _ in range(20 if small else 45):
        slopes, value = grad_and_value(loss)(xp.asarray(weights))
        course.append((float(value), float(xp.mean(losses(train(xp.asarray(weights), data), new)))))
        out.append(int(np.argmax(np.where(weights > 0.0, slopes.numpy(), -np.inf))))
        weights[out[-1]] = 0.0
    best = float(xp.mean(losses(train(xp.ones(300), right), new)))
    pairs = [loss(xp.asarray(1.0 + h)) - loss(xp.asarray(1.0 - h)) for h in 1e-4 * np.eye(300)[out[:5]]]

    figure, (bars, curves) = plt.subplots(1, 2, figsize=(10.5, 4.0))
    order = np.argsort(first)
    bars.bar(np.arange(300), first[order], 1.0, color=np.where(flipped, ORANGE, GREY)[order])
    bars.set(xlabel="patients, sorted", ylabel="slope of the loss by the weight", title="At first (orange: with a wrong label)")
    for name, colour, part in zip(("checked patients", "new patients"), (BLUE, ORANGE), zip(*course)):
        curves.plot(part, color=colour, label=name)
    curves.axhline(best, color=GREY, ls="--", label="new patients, all labels right")
    curves.set(xlabel="patients left out", ylabel="loss", title=f"{np.sum(flipped[out])} of 30 wrong labels among them")
    curves.legend()
    off = float(np.max(np.abs(xp.stack(pairs).detach().numpy() / 2e-4 - first[out[:5]])))
    found = float(np.sum(flipped[out[:20]]))
    return Result(figure, {"slopes, off by": off, "wrong, of the first 20": found, "loss, by that of right labels": course[-1][1] / best})


if __name__ == "__main__":
    main.command()
