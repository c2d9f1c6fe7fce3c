"""A map of 400,000 measurements: least squares larger than memory
==================================================================

Sensors at random places measure temperatures, with errors larger than the differences between places. A map of 100 waves is fitted by least
squares. The matrix, with a row for each sensor and a column for each wave, would need 320 MB. On dask its rows are created in chunks, used
and discarded, in the forward and in the backward pass: a gradient is one pass over the data. SciPy's conjugate gradients need no more,
because the gradient of a quadratic function changes by its Hessian times the step.

The error of each wave is known: its variance is the variance of the noise divided by the sum of squares of its column. Squared errors
divided by these variances have a mean of 1. The picture shows some measurements, the map, and its error. With ``--device numpy`` and others
the same program runs with the whole matrix in memory.
"""

from __future__ import annotations

import tracemalloc

import dask.array as da
import numpy as np
from _program import Result, program
from matplotlib import pyplot as plt
from scipy.sparse.linalg import LinearOperator, cg

import xpgrad as xp
from xpgrad.func import grad

WAVES, NOISE = 10, 2.0  # in each direction; of a measurement


def basis(places: xp.Tensor) -> xp.Tensor:
    """Return rows of the matrix: the values of all waves at places, shape (rows, 2), in the unit square."""
    across, up = (xp.cos(places[:, k, None] * (np.pi * xp.arange(float(WAVES)))) for k in range(2))
    return xp.reshape(across[:, :, None] * up[:, None, :], (-1, WAVES**2))


def misfit(map_: xp.Tensor, places: xp.Tensor, measured: xp.Tensor) -> xp.Tensor:
    """Return half the mean squared error of a map, given by the amplitudes of the waves."""
    return 0.5 * xp.mean((basis(places) @ map_ - measured) ** 2)


@program({"memory, by the matrix": (0.0, 0.8), "slope, by the first": (0.0, 1e-4), "errors, by those expected": (0.6, 1.5)}, device="dask")
def main(small: bool) -> Result:
    """Measure, fit, and watch the memory."""
    rows, chunk = (60_000, 3_000) if small else (400_000, 5_000)
    numbers, rng = np.arange(WAVES), da.random.default_rng(0)  # type: ignore[no-untyped-call]
    truth = np.random.default_rng(1).normal(size=(WAVES, WAVES)) / (1.0 + np.add.outer(numbers**2, numbers**2))
    drawn = rng.uniform(size=(rows, 2), chunks=(chunk, 2)), NOISE * rng.normal(size=rows, chunks=chunk)
    lazy = str(xp.zeros(0).device) == "dask"  # elsewhere all is in memory
    places, noise = (xp.asarray(part if lazy else part.compute()) for part in drawn)
    measured = basis(places) @ xp.asarray(truth.ravel()) + noise

    def slope(map_: np.ndarray) -> np.ndarray:
        return grad(misfit)(xp.asarray(map_), places, measured).numpy()

    tracemalloc.start()
    first = slope(np.zeros(WAVES**2))
    memory = tracemalloc.get_traced_memory()[1] / (8 * rows * WAVES**2) if lazy else 0.0
    tracemalloc.stop()
    hessian = LinearOperator((WAVES**2,) * 2, matvec=lambda step: slope(step) - first, dtype=np.float64)
    solution, _ = cg(hessian, -first, rtol=1e-5)
    left = float(np.linalg.norm(slope(solution)) / np.linalg.norm(first))
    errors = solution.reshape(WAVES, WAVES) - truth
    squares = np.where(numbers == 0, 1.0, 0.5)  # the mean square of a cosine
    ratio = float(np.mean(errors**2 * np.multiply.outer(squares, squares)) * rows / NOISE**2)
    figure, panels = plt.subplots(1, 3, figsize=(12.0, 3.6))
    some = xp.concat([places, measured[:, None]], axis=1)[:3000].numpy()
    waves = np.cos(np.pi * np.outer(np.linspace(0.0, 1.0, 80), numbers))
    heights = [(waves @ map_ @ waves.T).T for map_ in (truth + errors, errors)]
    images = [panels[0].scatter(*some.T[:2], c=some[:, 2], s=4)]
    images += [panel.imshow(height, origin="lower", extent=(0, 1, 0, 1), aspect="auto") for panel, height in zip(panels[1:], heights)]
    titles = "3000 measurements", f"map of {rows} measurements", f"its errors (memory: {memory:.0%} of the matrix)"
    for panel, image, title in zip(panels, images, titles):
        figure.colorbar(image, ax=panel, label="temperature")
        panel.set(xlabel="place across", ylabel="place up", title=title)
    return Result(figure, {"memory, by the matrix": float(memory), "slope, by the first": left, "errors, by those expected": ratio})


if __name__ == "__main__":
    main.command()
