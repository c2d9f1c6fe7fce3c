"""The Nile at Aswan: a Kalman filter and its parameters
========================================================

How much of the Nile's yearly flow is noise, and how fast does its level drift? The model is a level that follows a random walk and is
measured with noise, and the Kalman filter computes the likelihood of the two variances. ``minimize`` finds the most likely variances, and
``hessian`` their errors. A gradient also gives a smoother, which uses all years and not only the past: the derivative of the log-likelihood
by each flow, times the variance of the noise, is the difference between the smoothed level and the flow. The second derivative gives the
error of the level.

The flows, in 10^8 cubic metres, are those of Cobb, "The problem of the Nile" (Biometrika 65, 1978). The variances, 15099 and 1469.1, are
those of Durbin and Koopman, "Time Series Analysis by State Space Methods" (2nd edition, 2012, chapter 2). The smoothed levels are compared
with the solution of a linear system. The picture shows the level's fall around 1899, when a dam was built, and the likelihood.
"""

from __future__ import annotations

import numpy as np
from _program import BLUE, GREY, ORANGE, Result, program
from matplotlib import pyplot as plt

import xpgrad as xp
from xpgrad.func import grad, hessian, vmap
from xpgrad.scipy.optimize import minimize

NILE = [
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140, 1100, 1210, 1150, 1250,
    1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969, 831, 726, 456, 824, 702, 1120, 1100, 832, 764,
    821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801,
    1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
]  # fmt: skip
PUBLISHED, ENDS = np.asarray([15099.0, 1469.1]), np.asarray([-1.0, 1.0])


def likelihood(logs: xp.Tensor, flows: xp.Tensor) -> xp.Tensor:
    """Return the log-likelihood of flows, given log-variances of noise and drift; nothing is known before the first flow."""
    noise, drift = xp.unstack(xp.exp(logs))
    level, *later = xp.unstack(flows)
    variance, total = noise + drift, xp.asarray(0.0)
    for flow in later:
        surprise, expected = flow - level, variance + noise
        total = total - 0.5 * (xp.log(2.0 * np.pi * expected) + surprise**2 / expected)
        gain = variance / expected
        level, variance = level + gain * surprise, gain * noise + drift
    return total


@program({"variances, off by": (0.0, 1e-4), "levels, off by": (0.0, 1e-8), "their errors, off by": (0.0, 1e-8)})
def main(small: bool) -> Result:
    """Fit the variances, smooth the flows, and draw."""
    flows = xp.asarray(NILE, dtype=xp.float64)
    logs = minimize(lambda logs: -likelihood(logs, flows), xp.log(xp.asarray([1e4, 1e3])), tol=1e-8).x.detach()
    noise, drift = variances = xp.exp(logs).numpy()
    factors = np.exp(xp.sqrt(xp.linalg.diagonal(xp.linalg.inv(-hessian(likelihood)(logs, flows)))).numpy())  # of one standard error
    levels = (flows + noise * grad(likelihood, argnums=1)(logs, flows)).numpy()
    spread = xp.sqrt(noise + noise**2 * xp.linalg.diagonal(hessian(likelihood, argnums=1)(logs, flows))).numpy()
    steps = np.diff(np.eye(100), axis=0)  # the same by a linear system: flows pull levels by 1 / noise, neighbours each other by 1 / drift
    covariance = np.linalg.inv(np.eye(100) / noise + steps.T @ steps / drift)
    years = np.arange(1871, 1971)
    figure, (course, plane) = plt.subplots(1, 2, figsize=(10.5, 4.0), width_ratios=(3, 2))
    course.plot(years, NILE, "o", ms=3, color=GREY, label="flow")
    course.plot(years, levels, color=BLUE, label="level, and twice its error")
    course.fill_between(years, levels - 2.0 * spread, levels + 2.0 * spread, color=BLUE, alpha=0.2, lw=0)
    course.set(xlabel="year", ylabel="flow of the Nile, $10^8$ m³", title=f"One backward pass smooths {len(NILE)} years")
    grid = xp.stack(xp.meshgrid(*(xp.linspace(*ends, 9 if small else 41) for ends in ((8.9, 10.3), (4.6, 9.6)))), axis=-1)
    above = vmap(vmap(lambda point: likelihood(logs, flows) - likelihood(point, flows)))(grid)
    across, up = xp.unstack(xp.exp(grid), axis=-1)
    plane.contourf(across.numpy(), up.numpy(), above.numpy(), levels=[0.0, 0.5, 2.0, 4.5, 8.0], cmap="Blues_r")
    plane.plot(noise, drift, "o", color=ORANGE, label=f"{noise:.0f} (times or over {factors[0]:.2f}), {drift:.0f} ({factors[1]:.1f})")
    plane.plot(noise * factors[0] ** ENDS, [drift] * 2, [noise] * 2, drift * factors[1] ** ENDS, color=ORANGE)
    plane.set(xscale="log", yscale="log", xlabel="variance of the noise", ylabel="variance of the drift in a year")
    plane.set_title("Likelihood: 1, 2, 3 and 4 standard errors")
    for axes in (course, plane):
        axes.legend()
    names, found = ("variances", "levels", "their errors"), (variances, levels, spread**2)
    truths = PUBLISHED, covariance @ NILE / noise, np.diag(covariance)
    return Result(figure, {f"{name}, off by": float(np.max(np.abs(a / b - 1.0))) for name, a, b in zip(names, found, truths)})


if __name__ == "__main__":
    main.command()
