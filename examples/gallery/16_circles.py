"""A flower of fifty circles: differentiable rendering
======================================================

Sharp edges have no useful gradient: a pixel is inside a circle or outside, and its value does not say in which direction to move. If edges
are smoothed over a pixel, a picture is a smooth function of the circles' centres, radii and colours; circles in front hide those behind.
Then ``minimize`` can draw a photograph with circles, starting from circles at random places, by minimizing the squared difference.

Two facts hold for every circle: when its radius grows by 1, its area grows by the circumference, and when its centre moves, its area stays
the same. The derivatives of the sum of all pixels for one white circle are compared with these. The photograph is ``flower.jpg`` from
scikit-learn (CC BY 2.0, https://www.flickr.com/photos/vultilion/6056698931).
"""

from __future__ import annotations

import numpy as np
from _program import Result, program
from matplotlib import pyplot as plt
from sklearn.datasets import load_sample_image

import xpgrad as xp
from xpgrad.func import grad
from xpgrad.scipy.optimize import minimize
from xpgrad.scipy.special import expit

PHOTOGRAPH = load_sample_image("flower.jpg")[:424].reshape(53, 8, 80, 8, 3).mean(axis=(1, 3)) / 255.0  # 53 x 80 pixels
DOWN, ACROSS = np.indices((53, 80, 1))[:2] / 10.0  # where they are, in tens of pixels


@xp.compile
def render(circles: xp.Tensor) -> xp.Tensor:
    """Return the picture of circles, back to front; each has its centre (across, down), its radius, and red, green and blue."""
    across, down = xp.asarray(ACROSS), xp.asarray(DOWN)
    picture = xp.zeros(PHOTOGRAPH.shape)
    for k in range(circles.shape[0]):
        distance = xp.hypot(across - circles[k, 0], down - circles[k, 1])
        covers = expit(20.0 * (circles[k, 2] - distance))  # 0 outside, 1 inside
        picture = picture + covers * (circles[k, 3:] - picture)
    return picture


@program({"signal to noise, dB": (17.0, 40.0), "circumference, off by": (0.0, 1e-3), "area by moving": (0.0, 1e-2)})
def main(small: bool) -> Result:
    """Draw the flower, and check the law."""
    count, target, rng = 12 if small else 50, xp.asarray(PHOTOGRAPH), np.random.default_rng(0)
    columns, rows = rng.uniform((0, 0), (80, 53), size=(count, 2)).T
    shapes = np.stack([columns / 10.0, rows / 10.0, np.linspace(1.6, 0.3, count)], axis=1)
    start = xp.asarray(np.concat([shapes, PHOTOGRAPH[rows.astype(int), columns.astype(int)]], axis=1))
    steps, miss = 40 if small else 120, lambda circles: xp.sum((render(circles) - target) ** 2)
    found = minimize(miss, start, method="L-BFGS-B", options={"maxiter": steps}, failure="ignore")  # more steps would lead a little further
    before, after = render(start).numpy(), render(found.x.detach()).numpy()
    decibels = float(-10.0 * np.log10(np.mean((after - PHOTOGRAPH) ** 2)))

    white = xp.asarray([[4.03, 2.51, 1.5, 1.0, 1.0, 1.0]])
    area = lambda circles: xp.sum(render(circles)) / 300.0  # noqa: E731 (three colours; a unit of area has 100 pixels)
    across, down, radius = xp.unstack(grad(area)(white)[0, :3])

    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.0))
    axes[0].set_title(f"{count} circles, and where the gradient moves them")
    axes[0].quiver(columns, rows, *-grad(miss)(start).numpy()[:, :2].T, color="w", angles="xy")
    axes[1].set_title(f"the same circles, {steps} steps later: {decibels:.1f} dB")
    axes[2].set_title("photograph")
    for panel, picture in zip(axes, (before, after, PHOTOGRAPH)):
        panel.imshow(np.clip(picture, 0.0, 1.0), extent=(0, 80, 53, 0))
        panel.set(xlabel="pixels")
    off, moved = float(radius) / (3.0 * np.pi) - 1.0, max(abs(float(across)), abs(float(down)))
    return Result(figure, {"signal to noise, dB": decibels, "circumference, off by": abs(off), "area by moving": moved})


if __name__ == "__main__":
    main.command()
