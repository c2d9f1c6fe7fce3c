"""A robot arm reaches around obstacles
=====================================

An arm with five joints reaches from one place to another, past two discs. The unknowns are the joint angles at some times. ``minimize``
makes the motion smooth, ends it at the goal, and keeps the arm out of the discs; for this the positions of the links are differentiated
with respect to all angles.

The Jacobian is compared with the geometric one: a joint moves the hand at a right angle to the line from the joint to the hand. The
distances of the hand from its goal and of the arm from the discs are measured at more times than the plan uses. The picture shows the
motion.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREY, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import jacrev
from xpgrad.scipy.optimize import minimize

LENGTHS = np.asarray([1.0, 0.9, 0.8, 0.6, 0.4])
DISCS = np.asarray([[1.9, 1.5, 0.4], [-0.5, 2.6, 0.4]])  # across, up, radius
START, GOAL = np.asarray([0.1, 0.2, 0.1, 0.1, 0.1]), np.asarray([-1.9, 1.4])


def joints(angles: xp.Tensor) -> xp.Tensor:
    """Return the positions of joints and hand, shape (..., 6, 2), given the angles between links, shape (..., 5)."""
    turned = xp.cumulative_sum(angles, axis=-1)
    links = xp.asarray(LENGTHS)[:, None] * xp.stack([xp.cos(turned), xp.sin(turned)], axis=-1)
    return xp.concat([xp.zeros_like(links[..., :1, :]), xp.cumulative_sum(links, axis=-2)], axis=-2)


def gaps(angles: xp.Tensor) -> xp.Tensor:
    """Return the distances of points of the links from the edges of the discs."""
    ends = joints(angles)[..., None, :]
    points = ends[..., :-1, :, :] + xp.asarray(np.arange(6.0)[:, None] / 6.0) * (ends[..., 1:, :, :] - ends[..., :-1, :, :])
    return xp.linalg.vector_norm(points[..., None, :] - xp.asarray(DISCS[:, :2]), axis=-1) - xp.asarray(DISCS[:, 2])


def between(plan: xp.Tensor, each: int) -> xp.Tensor:
    """Interpolate the start and the plan linearly, with `each` steps between two times of the plan."""
    times = np.linspace(0.0, plan.shape[0], each * plan.shape[0] + 1)
    hats = np.maximum(1.0 - np.abs(times[:, None] - np.arange(plan.shape[0] + 1)), 0.0)
    return xp.asarray(hats) @ xp.concat([xp.asarray(START)[None, :], plan])


def cost(plan: xp.Tensor) -> xp.Tensor:
    """Return the cost of a plan: roughness (at rest before and after), distance from the goal, closeness (< 0.1) to a disc."""
    rest = xp.zeros((1, 5))
    rough = xp.sum(xp.diff(xp.concat([rest, xp.diff(between(plan, 1), axis=0), rest]), axis=0) ** 2)
    near = xp.sum(xp.maximum(0.1 - gaps(between(plan, 4)), 0.0) ** 2)
    return rough + 100.0 * near + 1e3 * xp.sum((joints(plan[-1])[-1] - xp.asarray(GOAL)) ** 2)


@program({"hand from the goal": (0.0, 0.01), "arm from the discs": (0.02, 1.0), "Jacobian, off by": (0.0, 1e-12)})
def main(small: bool) -> Result:
    """Plan, check, and draw."""
    times = 12 if small else 16
    guess = xp.asarray(START + np.linspace(0.0, 1.0, times + 1)[1:, None] * np.asarray([1.2, 0.3, 0.3, 0.3, 0.3]))
    plan = minimize(cost, guess, method="L-BFGS-B", tol=1e-8, options={"maxcor": 30}).x.detach()
    fine = between(plan, 10)
    nearest, places = xp.min(gaps(fine), axis=(1, 2, 3)).numpy(), joints(fine).numpy()
    arms, missed = places[-1, -1] - places[-1, :-1], float(np.linalg.norm(places[-1, -1] - GOAL))
    jacobian = jacrev(lambda angles: joints(angles)[-1])(plan[-1]).numpy()
    off = float(np.max(np.abs(jacobian - np.stack([-arms[:, 1], arms[:, 0]]))))
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4), width_ratios=(3, 2))
    for across, up, radius in DISCS:
        left.add_patch(plt.Circle((across, up), radius, color=GREY, alpha=0.5))  # type: ignore[attr-defined] # a re-export
    for k in range(0, len(places), len(places) // 8):
        left.plot(*places[k].T, "o-", ms=3, color=BLUE, alpha=0.25 + 0.75 * k / len(places))
    left.plot(*places[:, -1].T, color=ORANGE, lw=1.0)
    left.set(xlabel="across", ylabel="up", aspect="equal", title=f"The hand (its way: orange) ends {missed:.1e} from its goal")
    right.plot(np.linspace(0.0, 1.0, len(nearest)), nearest, color=BLUE)
    right.set(xlabel="time", ylabel="distance of arm and discs", title=f"Never nearer to a disc than {nearest.min():.3f}")
    return Result(figure, {"hand from the goal": missed, "arm from the discs": float(nearest.min()), "Jacobian, off by": off})


if __name__ == "__main__":
    main.command()
