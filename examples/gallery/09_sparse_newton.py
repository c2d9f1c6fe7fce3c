"""A soap film, by Newton's method with sparse Hessians
=====================================================

A soap film has the least area that its frame allows. The unknowns are its heights at thousands of nodes of a grid, and the area is the sum
of the areas of triangles. Newton's method needs the Hessian, in which each node has only six neighbours. ``func.sparse_hessian`` finds the
nonzero entries, computes them by a few products, and returns a SciPy matrix for SciPy's sparse solver.

The frame lies on Scherk's surface, log(cos y / cos x), which is a minimal surface (1834), so the heights of the film are known. They are
compared on two grids, since the error of a triangulation decreases with the square of the grid spacing. The picture shows the film, and
that the last steps double the number of correct digits.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, ORANGE, Result, program
from matplotlib import pyplot as plt
from scipy.sparse.linalg import spsolve

import xpgrad as xp
from xpgrad.func import grad, sparse_hessian


def area(inner: xp.Tensor, frame: xp.Tensor, step: float) -> xp.Tensor:
    """Return the film's area, given its inner heights; `frame` has the heights at the edge, and any values inside."""
    top, bottom, left, right = frame[:1, :], frame[-1:, :], frame[1:-1, :1], frame[1:-1, -1:]
    heights = xp.concat([top, xp.concat([left, inner, right], axis=1), bottom])
    down, across = xp.diff(heights, axis=0) / step, xp.diff(heights, axis=1) / step
    lower = xp.sum(xp.sqrt(1.0 + down[:, :-1] ** 2 + across[1:, :] ** 2))
    return 0.5 * step**2 * (lower + xp.sum(xp.sqrt(1.0 + down[:, 1:] ** 2 + across[:-1, :] ** 2)))


def film(n: int) -> tuple[np.ndarray, np.ndarray, list[float], str]:
    """Return the film of n by n nodes, Scherk's surface there, the gradient norm at each step, and the prepared Hessian."""
    x = np.linspace(-1.2, 1.2, n + 2)
    step, surface = float(x[1] - x[0]), np.log(np.cos(x[:, None]) / np.cos(x))
    frame, inner, slopes = xp.asarray(surface), xp.zeros((n, n)), []
    hessian = sparse_hessian(lambda inner: area(inner, frame, step)).prepare(inner)
    for _ in range(12):
        slope = grad(area)(inner, frame, step).numpy().reshape(-1)
        slopes.append(float(np.linalg.norm(slope)))
        if slopes[-1] < 1e-11:
            break
        way = xp.asarray(-spsolve(hessian(inner).tocsc(), slope).reshape(n, n))
        now, size = float(area(inner, frame, step)), 1.0
        while float(area(inner + size * way, frame, step)) > now + 1e-12:  # Newton's step may be too long at first
            size /= 2.0
        inner = inner + size * way
    return inner.numpy(), surface[1:-1, 1:-1], slopes, str(hessian)


@program({"film, off by": (0.0, 0.01), "order": (1.8, 2.2), "last slope": (0.0, 1e-11)})
def main(small: bool) -> Result:
    """Compute two films, and draw the finer one."""
    n = 31 if small else 95
    coarse, rough, _, _ = film(n // 2)
    fine, surface, slopes, kind = film(n)
    off, before = np.max(np.abs(fine - surface)), np.max(np.abs(coarse - rough))

    figure = plt.figure(figsize=(10.5, 4.2))
    left, right = figure.add_subplot(1, 2, 1, projection="3d"), figure.add_subplot(1, 2, 2)
    x, y = np.meshgrid(*2 * [np.linspace(-1.2, 1.2, n + 2)[1:-1]])
    left.plot_surface(x, y, fine, cmap="cividis", rcount=40, ccount=40)
    left.set(xlabel="x", ylabel="y", zlabel="height", title=f"{n * n} heights, off from Scherk's by {off:.1e}")
    right.semilogy(slopes, "o-", color=BLUE)
    right.axhline(1e-11, color=ORANGE, ls="--", label="asked for")
    right.set(xlabel="Newton's steps", ylabel="length of the gradient", title=kind.split(": ", 1)[1].rstrip(">"))
    right.legend()
    order = np.log(before / off) / np.log((n + 1) / (n // 2 + 1))
    return Result(figure, {"film, off by": float(off), "order": float(order), "last slope": slopes[-1]})


if __name__ == "__main__":
    main.command()
