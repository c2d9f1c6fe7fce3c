"""Wide networks learn like a kernel
==================================

The neural tangent kernel describes how a small training step at one input changes the output at another one. It is the product of two rows
of the Jacobian with respect to the parameters. In a network with one wide layer, the kernel hardly depends on the random initial parameters
and hardly changes during training (Jacot, Gabriel and Hongler, "Neural Tangent Kernel", 2018). So training is linear, with a solution in
closed form.

``jacrev`` computes the kernel of networks of several widths. For inputs on a circle the limit is (sin a + 2 (pi - a) cos a) / (2 pi), where
a is the angle between them, from Cho's and Saul's integrals ("Kernel Methods for Deep Learning", 2009). A wide network is trained and
compared with the prediction of the kernel. The picture shows both.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREEN, GREY, ORANGE, SKY, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import grad, jacrev

Params = dict[str, xp.Tensor]


def initial(width: int, rng: np.random.Generator) -> Params:
    return {"in": xp.asarray(rng.normal(size=(2, width))), "out": xp.asarray(rng.normal(size=width))}


def network(params: Params, angles: xp.Tensor) -> xp.Tensor:
    """Return the outputs for inputs on the circle, given by their angles."""
    inputs = xp.stack([xp.cos(angles), xp.sin(angles)], axis=1)
    return xp.maximum(inputs @ params["in"], 0.0) @ params["out"] / params["out"].size ** 0.5


def kernel(params: Params, a: xp.Tensor, b: xp.Tensor) -> xp.Tensor:
    """Return the neural tangent kernel at angles a and b."""
    pairs = zip(*(jacrev(network)(params, angles).values() for angles in (a, b)))
    return sum((xp.reshape(left, (a.size, -1)) @ xp.reshape(right, (b.size, -1)).T for left, right in pairs), xp.zeros(()))


@program({"kernel of the widest, off by": (0.0, 0.1), "decline with the width": (-0.8, -0.2), "training, off by": (0.0, 0.1)})
def main(small: bool) -> Result:
    """Compute kernels, train, predict, and draw."""
    rng, grid = np.random.default_rng(0), xp.linspace(-np.pi, np.pi, 61)
    a = np.abs(grid.numpy())
    limit = (np.sin(a) + 2.0 * (np.pi - a) * np.cos(a)) / (2.0 * np.pi)
    widths, repeats = (10, 100, 1000) if small else (10, 100, 1000, 10000), 4 if small else 8
    kernels = [[kernel(initial(width, rng), xp.zeros(1), grid).numpy()[0] for _ in range(repeats)] for width in widths]
    errors = [float(np.sqrt(np.mean((np.asarray(rows) - limit) ** 2))) for rows in kernels]

    params, rate, steps = initial(2000 if small else 10000, rng), 0.2, 200 if small else 400
    angles, targets = xp.asarray([[-2.6, -1.7, -0.6, 0.3, 1.2, 2.2], [0.8, -0.7, 0.1, 1.2, -0.3, -0.9]])
    before = network(params, grid)
    values, vectors = np.linalg.eigh(kernel(params, angles, angles).numpy())
    done = (vectors * (1.0 - (1.0 - rate * values) ** steps) / values) @ vectors.T @ (targets - network(params, angles)).numpy()
    predicted = before.numpy() + kernel(params, grid, angles).numpy() @ done
    slopes = grad(lambda params: 0.5 * xp.sum((network(params, angles) - targets) ** 2))
    for _ in range(steps):
        params = {name: params[name] - rate * slope for name, slope in slopes(params).items()}
    trained = network(params, grid).numpy()
    off = float(np.max(np.abs(trained - predicted)))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.0))
    for colour, width, rows, error in zip((SKY, GREEN, BLUE, ORANGE), widths, kernels, errors):
        left.plot(grid.numpy(), np.asarray(rows[:3]).T, color=colour, lw=1.0, label=[f"width {width}: off by {error:.3f}", None, None])
    left.plot(grid.numpy(), limit, "k--", label="of infinite width")
    left.set(xlabel="angle between inputs", ylabel="kernel", ylim=(-1.0, 2.2), title="The kernel of three networks for each width")
    right.plot(grid.numpy(), before.numpy(), color=GREY, label="network before")
    right.plot(grid.numpy(), trained, color=BLUE, lw=3.0, label=f"after {steps} steps")
    right.plot(grid.numpy(), predicted, "--", color=ORANGE, label="predicted by the kernel")
    right.plot(angles.numpy(), targets.numpy(), "ko", label="learned from")
    right.set(xlabel="angle", ylabel="output", title=f"Training and prediction differ by {off:.3f} at most")
    left.legend(fontsize="small")
    right.legend(fontsize="small")
    decline = float(np.polyfit(np.log(widths), np.log(errors), 1)[0])
    return Result(figure, {"kernel of the widest, off by": errors[-1], "decline with the width": decline, "training, off by": off})


if __name__ == "__main__":
    main.command()
