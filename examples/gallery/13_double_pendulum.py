"""Where a double pendulum is chaotic
=====================================

A double pendulum released from high up soon forgets its initial state. Its equations of motion are not written by hand: they are the
Euler-Lagrange equations, with the derivatives of the Lagrangian by ``grad``, ``jacfwd`` and ``hessian``. ``linearize`` propagates tangents
through each step; ``vmap`` and ``compile`` run thousands of pendulums at once. The map shows how strongly the final state depends on the
initial one.

Two laws check the result. The motion preserves volumes of angles and momenta (Liouville), so the Jacobian in angles and speeds has the
determinant m(start) / m(end), where m = 1 + sin(difference of the angles)^2 is the determinant of the mass matrix. Small oscillations have
frequencies whose squares are 2 - sqrt(2) and 2 + sqrt(2).
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import grad, hessian, jacfwd, linearize, vmap

STEP, STEPS = 0.05, 240  # the unit of time is sqrt(length of a rod / gravity)


def lagrangian(q: xp.Tensor, v: xp.Tensor) -> xp.Tensor:
    """Return kinetic minus potential energy, given two angles and their speeds; rods, masses and gravity are 1."""
    return v[0] ** 2 + 0.5 * v[1] ** 2 + v[0] * v[1] * xp.cos(q[0] - q[1]) + 2.0 * xp.cos(q[0]) + xp.cos(q[1])


def change(state: xp.Tensor) -> xp.Tensor:
    """Return the time derivative of angles and speeds: d/dt dL/dv = dL/dq, solved for the acceleration."""
    q, v = state[:2], state[2:]
    force = grad(lagrangian)(q, v) - jacfwd(grad(lagrangian, argnums=1))(q, v) @ v
    return xp.concat([v, xp.linalg.solve(hessian(lagrangian, argnums=1)(q, v), force)])


def step(state: xp.Tensor) -> xp.Tensor:
    """Return the state one step later, by the Runge-Kutta method of fourth order."""
    second = change(state + 0.5 * STEP * (first := change(state)))
    third = change(state + 0.5 * STEP * second)
    return state + STEP / 6.0 * (first + 2.0 * second + 2.0 * third + change(state + STEP * third))


@xp.compile
@vmap
def step_along(state: xp.Tensor, moves: xp.Tensor) -> tuple[xp.Tensor, xp.Tensor]:
    """Return the state one step later, and propagate tangents of shape (moves, 4)."""
    after, along = linearize(step, state)
    return after, vmap(along)(moves)


@program({"volume, off by": (0.0, 1e-4), "frequencies, off by": (0.0, 1e-9)})
def main(small: bool) -> Result:
    """Map how a plane of initial states is stretched, and show two of them in detail."""
    n = 10 if small else 36
    plane = [(upper, lower) for lower in np.linspace(-179.0, 179.0, 2 * n) for upper in np.linspace(1.0, 179.0, n)]
    degrees = np.asarray([(150.3, -100), (150, -100), (149.7, -100), (60.3, 30), (60, 30), (59.7, 30), *plane])
    state = xp.asarray(np.radians(np.pad(degrees, ((0, 0), (0, 2)))))  # at rest
    moves, course = xp.zeros((len(state), 1, 1)) + xp.eye(4), [state.numpy()]
    for _ in range(STEPS):
        state, moves = step_along(state, moves)
        course.append(state.numpy())
    stretch, angles = xp.linalg.matrix_norm(moves[:, :2]).numpy(), np.asarray(course)[:, :6, :2]
    figure, (map_axes, time_axes) = plt.subplots(1, 2, figsize=(10.0, 4.4), width_ratios=(3, 4))
    image = map_axes.imshow(stretch[6:].reshape(2 * n, n), extent=(0, 180, -180, 180), aspect="auto", origin="lower", norm="log")
    figure.colorbar(image, ax=map_axes, label="stretch")
    map_axes.set(xlabel="upper rod at the start, degrees", ylabel="lower rod at the start, degrees", title=f"{len(state)} pendulums")
    for k, colour in enumerate([ORANGE] * 3 + [BLUE] * 3):
        time_axes.plot(STEP * np.arange(STEPS + 1), np.degrees(angles[:, k, 1]), color=colour)
        map_axes.plot(*degrees[k], "o", color=colour, mec="w")
    time_axes.set(xlabel="time", ylabel="lower rod, degrees", title=f"0.3 degrees, stretched by {stretch[1]:.0f} and by {stretch[4]:.1f}")
    volume = float(xp.linalg.det(moves[4])) / np.divide(*(1.0 + np.sin(np.diff(angles[[0, -1], 4])) ** 2)).item()
    squares = np.sort(np.linalg.eigvals(jacfwd(change)(xp.zeros(4)).numpy()).imag ** 2)[1:3]
    off = np.max(np.abs(squares - [2.0 - 2.0**0.5, 2.0 + 2.0**0.5]))
    return Result(figure, {"volume, off by": float(abs(volume - 1.0)), "frequencies, off by": float(off)})


if __name__ == "__main__":
    main.command()
