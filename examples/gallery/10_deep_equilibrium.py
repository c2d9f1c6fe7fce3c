"""A layer of infinite depth: deep equilibrium
============================================

A deep equilibrium model (Bai, Kolter and Koltun, 2019) repeats one layer until its output no longer changes, and returns this fixed point
of z = tanh(z W + x U + b). ``fixed_point`` finds it. The derivatives come from the implicit function theorem, so no iteration is stored.
Here the model learns which of two spirals a point is on.

The gradient is compared with that of eighty unrolled layers. The picture shows the result of training, and that the gradient through a few
layers is wrong: with more layers it approaches the gradient of the fixed point, but each layer costs memory.
"""

from __future__ import annotations

from functools import partial, reduce

import numpy as np
from _program import BLUE, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import grad, grad_and_value
from xpgrad.scipy.optimize import fixed_point
from xpgrad.scipy.special import log_expit

HIDDEN = 24


def layer(z: xp.Tensor, params: dict[str, xp.Tensor], points: xp.Tensor) -> xp.Tensor:
    """Apply the layer, whose matrix is scaled so that the layer contracts."""
    matrix = 0.8 * params["W"] / xp.sqrt(1.0 + xp.sum(params["W"] ** 2))
    return xp.tanh(z @ matrix + points @ params["U"] + params["b"])


def equilibrium(params: dict[str, xp.Tensor], points: xp.Tensor) -> xp.Tensor:
    return fixed_point(layer, xp.zeros((points.shape[0], HIDDEN)), args=(params, points), xtol=1e-9, method="iteration")


def unrolled(params: dict[str, xp.Tensor], points: xp.Tensor, layers: int) -> xp.Tensor:
    return reduce(lambda z, _: layer(z, params, points), range(layers), xp.zeros((points.shape[0], HIDDEN)))


@program({"right": (0.95, 1.0), "gradient, off by": (0.0, 1e-6), "gradient of four layers, off by": (1e-4, 1.0)})
def main(small: bool) -> Result:
    """Train, compare gradients, and draw."""
    rng, n = np.random.default_rng(0), 60 if small else 150
    turns = 2.6 * np.pi * np.sqrt(np.linspace(0.04, 1.0, n))[:, None]
    arm = turns / 4.0 * np.concatenate([np.cos(turns), np.sin(turns)], axis=1)
    points = xp.asarray(np.concatenate([arm, -arm]) + rng.normal(scale=0.03, size=(2 * n, 2)))
    signs = xp.asarray(np.repeat([1.0, -1.0], n))
    shapes = {"W": (HIDDEN, HIDDEN), "U": (2, HIDDEN), "b": (HIDDEN,), "out": (HIDDEN,)}
    params = {name: xp.asarray(rng.normal(size=shape)) for name, shape in shapes.items()}

    def loss(params: dict[str, xp.Tensor], solve=equilibrium) -> xp.Tensor:  # type: ignore[no-untyped-def] # short
        return -xp.mean(log_expit(signs * (solve(params, points) @ params["out"])))

    speeds, course = dict.fromkeys(shapes, 0.0), []
    for _ in range(150 if small else 300):  # descent with momentum
        slopes, value = grad_and_value(loss)(params)
        course.append(float(value))
        speeds = {name: 0.9 * speeds[name] - 0.3 * slope for name, slope in slopes.items()}
        params = {name: params[name] + speed for name, speed in speeds.items()}
    right = float(np.mean((signs * (equilibrium(params, points) @ params["out"])).numpy() > 0.0))
    exact, depths = grad(loss)(params)["W"].numpy(), [1, 2, 4, 8, 16, 40, 80]
    others = [grad(loss)(params, partial(unrolled, layers=layers))["W"].numpy() for layers in depths]
    offs = [float(np.linalg.norm(other - exact) / np.linalg.norm(exact)) for other in others]
    figure, (plane, curve) = plt.subplots(1, 2, figsize=(10.5, 4.4))
    side = np.linspace(-2.4, 2.4, 41 if small else 101)
    grid = xp.asarray(np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2))
    shown = (equilibrium(params, grid) @ params["out"]).numpy().reshape(len(side), -1)
    plane.contourf(side, side, np.tanh(0.5 * shown), levels=np.linspace(-1.0, 1.0, 11), cmap="PuOr_r", alpha=0.6)
    plane.scatter(*points.numpy().T, s=8, color=np.repeat([ORANGE, BLUE], n))
    plane.set(xlabel="across", ylabel="up", title=f"{100.0 * right:.0f} % of points are on the right side")
    curve.loglog(depths, offs, "o-", color=BLUE)
    curve.set(xlabel="layers, unrolled", ylabel="error of the gradient", title=f"The loss went from {course[0]:.2f} to {course[-1]:.3f}")
    return Result(figure, {"right": right, "gradient, off by": offs[-1], "gradient of four layers, off by": offs[2]})


if __name__ == "__main__":
    main.command()
