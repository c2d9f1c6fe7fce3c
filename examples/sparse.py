"""Give SciPy's solvers sparse derivatives: an optimisation, a least-squares fit and a stiff equation, each with many unknowns.

    python examples/sparse.py

* A hanging chain: its energy's Hessian and its links' Jacobian, for `scipy.optimize.minimize(method="trust-constr")`.
* A smooth curve through noisy data with outliers: the Jacobian of the residuals, for `scipy.optimize.least_squares`.
* The Brusselator, a reaction that spreads: the Jacobian of a stiff equation, for `scipy.integrate.solve_ivp`.

It prints the problems and the number of products for each matrix, and returns 1 if a solution is wrong.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.optimize import NonlinearConstraint, least_squares, minimize

import xpgrad as xp
from xpgrad.func import grad, sparse_hessian, sparse_jacobian


def chain() -> bool:
    """Minimize the energy of links of equal length that hang between two nails; the shape is a catenary."""
    links, length = 24, 1.0 / 16.0

    def points(z: xp.Tensor) -> tuple[xp.Tensor, xp.Tensor]:
        inner = xp.reshape(z, (2, links - 1))
        ends = (np.zeros(1), np.ones(1)), (np.zeros(1), np.zeros(1))
        x, y = (xp.concat([xp.asarray(a), row, xp.asarray(b)]) for row, (a, b) in zip((inner[0], inner[1]), ends))
        return x, y

    def energy(z: xp.Tensor) -> xp.Tensor:
        _, y = points(z)
        return xp.sum(y[1:] + y[:-1]) / 2.0

    def squares(z: xp.Tensor) -> xp.Tensor:
        x, y = points(z)
        return ((x[1:] - x[:-1]) ** 2 + (y[1:] - y[:-1]) ** 2) / length**2

    start = np.concatenate([np.linspace(0.0, 1.0, links + 1)[1:-1], -0.3 * np.sin(np.linspace(0.0, np.pi, links + 1))[1:-1]])
    jacobian: Any = sparse_jacobian(squares).prepare(start)
    hessian = sparse_hessian(lambda z, weights: xp.sum(squares(z) * weights)).prepare(start, np.ones(links))
    flat = sparse_hessian(energy).prepare(start)  # of a linear function: empty
    bound = NonlinearConstraint(lambda z: squares(xp.asarray(z)).numpy(), 1.0, 1.0, jac=jacobian, hess=hessian)
    slope = grad(energy)
    settings = {"maxiter": 500, "gtol": 1e-8}
    found = minimize(
        lambda z: float(energy(xp.asarray(z))), start, jac=lambda z: slope(z).numpy(), hess=flat, method="trust-constr",
        constraints=[bound], options=settings,
    )  # fmt: skip
    x, y = (part.numpy() for part in points(xp.asarray(found.x)))
    steps = np.diff(y) / np.diff(x)  # of a catenary of links, the slopes grow by equal amounts
    good = bool(np.max(np.abs(np.diff(steps, 2))) < 1e-3 * np.max(np.abs(steps)) and abs(y[12] - y.min()) < 1e-6)
    print(f"chain: {jacobian}, {hessian}, {flat}")
    print(f"  lowest point {y.min():.4f} after {found.nit} steps{'' if good else '  <- it does not hang'}")
    return good


def curve() -> bool:
    """Fit a curve with small second differences to data with outliers."""
    rng = np.random.default_rng(0)
    n = 1000
    t = np.linspace(0.0, 1.0, n)
    truth = np.exp(np.sin(9.0 * t))
    data = truth + rng.normal(scale=0.05, size=n) + 3.0 * (rng.random(n) < 0.03)

    def residuals(p: xp.Tensor) -> xp.Tensor:
        return xp.concat([xp.exp(p) - data, 3.0 * (p[2:] - 2.0 * p[1:-1] + p[:-2])])

    jacobian: Any = sparse_jacobian(residuals).prepare(np.zeros(n))
    found = least_squares(
        lambda p: residuals(xp.asarray(p)).numpy(), np.zeros(n), jac=jacobian, tr_solver="lsmr", loss="soft_l1", f_scale=0.1
    )
    off = float(np.sqrt(np.mean((np.exp(found.x) - truth) ** 2)))
    print(f"curve: {jacobian}")
    print(f"  off by {off:.4f} on average, after {found.njev} matrices")
    return found.success and off < 0.05


def reaction() -> bool:
    """Solve the Brusselator on a periodic square, with a drop added at one place; it is stiff because of fast diffusion."""
    n = 24
    places = np.linspace(0.0, 1.0, n, endpoint=False)
    drop = 5.0 * ((places[:, None] - 0.3) ** 2 + (places - 0.6) ** 2 <= 0.01)
    spread = 0.1 * n**2

    def around(w: xp.Tensor) -> xp.Tensor:
        return spread * (xp.roll(w, 1, axis=0) + xp.roll(w, -1, axis=0) + xp.roll(w, 1, axis=1) + xp.roll(w, -1, axis=1) - 4.0 * w)

    def change(t: float, y: xp.Tensor) -> xp.Tensor:
        a, b = xp.reshape(y, (2, n, n))
        r = a * a * b
        return xp.reshape(xp.stack([around(a) + 1.0 + r - 4.4 * a + drop, around(b) + 3.4 * a - r]), (-1,))

    start = np.concatenate([22.0 * (places * (1.0 - places)) ** 1.5 + np.zeros((n, n)), 27.0 * np.ones((n, n)) / 8.0], axis=0).reshape(-1)
    jacobian: Any = sparse_jacobian(change, argnums=1).prepare(0.0, start)
    right = lambda t, y: change(t, xp.asarray(y)).numpy()  # noqa: E731
    found = solve_ivp(right, (0.0, 2.0), start, method="BDF", jac=jacobian, rtol=1e-6, atol=1e-8)
    plain = solve_ivp(right, (0.0, 0.05), start, method="RK45", rtol=1e-8, atol=1e-10)
    check = solve_ivp(right, (0.0, 0.05), start, method="BDF", jac=jacobian, rtol=1e-8, atol=1e-10)
    off = float(np.max(np.abs(plain.y[:, -1] - check.y[:, -1])))
    print(f"reaction: {jacobian}")
    print(f"  {found.njev} matrices for {found.t.size} steps; beside an explicit method off by {off:.1e}")
    return bool(found.success and off < 1e-5)


def main() -> int:
    """Solve all three problems; return 0 if every solution is right."""
    return 0 if all([chain(), curve(), reaction()]) else 1


if __name__ == "__main__":
    sys.exit(main())
