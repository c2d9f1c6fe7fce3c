"""Draw the picture of the README: a curve fitted to data by gradient descent, and the path of the parameters.

python examples/front.py --picture docs/front.png
"""

from __future__ import annotations

import argparse

import numpy as np

import xpgrad as xp
from xpgrad.func import vmap

rng = np.random.default_rng(0)
t = np.linspace(0.0, 4.0, 40)
data = 2.5 * np.exp(-1.3 * t) + 0.05 * rng.normal(size=40)


def loss(p: xp.Tensor) -> xp.Tensor:
    """Return the mean square difference between the curve with height `p[0]` and rate `p[1]` and the data."""
    return xp.mean((p[0] * xp.exp(-p[1] * t) - data) ** 2)


def descend(steps: int) -> list[list[float]]:
    """Return the parameters before the first step and after each."""
    p = xp.tensor([1.0, 0.3], requires_grad=True)
    path = [p.tolist()]
    for _ in range(steps):
        loss(p).backward()
        assert p.grad is not None
        with xp.no_grad():
            p -= 0.5 * p.grad
        p.grad = None
        path.append(p.tolist())
    return path


def draw(path: list[list[float]], file: str) -> None:
    """Draw curves from the path beside the data, and the path on the contours of the loss."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(9.0, 3.2), layout="constrained")
    shown = {0: "#9ecae1", 3: "#6baed6", 10: "#3182bd", len(path) - 1: "#08306b"}
    left.plot(t, data, "o", color="#d55e00", markersize=3.5, label="data")
    for step, color in shown.items():
        height, rate = path[step]
        left.plot(t, height * np.exp(-rate * t), color=color, label=f"after {step} steps" if step else "start")
    left.set_xlabel("t")
    left.legend(frameon=False)

    heights, rates = np.linspace(0.6, 3.4, 90), np.linspace(0.1, 2.1, 80)
    grid = xp.asarray(np.stack(np.meshgrid(heights, rates), axis=-1))
    surface = vmap(vmap(loss))(grid).numpy()
    right.contour(heights, rates, np.log(surface), levels=16, cmap="Greys_r", linewidths=0.8)
    right.plot(*zip(*path, strict=True), ".-", color="#3182bd", linewidth=1.0, markersize=4)
    for step, color in shown.items():
        right.plot(*path[step], "o", color=color)
    right.plot(2.5, 1.3, "+", color="#d55e00", markersize=14, markeredgewidth=2, label="the true values")
    right.set_xlabel("height")
    right.set_ylabel("rate")
    right.legend(frameon=True, loc="upper left")
    fig.savefig(file, dpi=100)


def main() -> None:
    """Fit the curve, print the parameters and draw the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--picture", metavar="FILE", default="front.png", help="where to draw it (default: %(default)s)")
    path = descend(100)
    draw(path, parser.parse_args().picture)
    print("height {:.2f}, rate {:.2f}".format(*path[-1]))


if __name__ == "__main__":
    main()
