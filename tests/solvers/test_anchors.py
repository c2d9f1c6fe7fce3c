"""Known problems with known derivatives: hyper-gradients, an equilibrium as a layer, the sensitivity of a steady state."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.autograd import grad

pytest.importorskip("scipy")
optimize = importlib.import_module("xpgrad.scipy.optimize")


def test_the_hyper_gradient_of_ridge_regression() -> None:
    """The validation loss's derivative in the logarithm of the regularisation has its closed form."""
    rng = np.random.default_rng(0)
    a, b, v, w = rng.normal(size=(40, 5)), rng.normal(size=40), rng.normal(size=(20, 5)), rng.normal(size=20)
    ta, tb, tv, tw = map(xp.asarray, (a, b, v, w))
    log = xp.tensor(0.3, requires_grad=True)

    def loss(x: Any) -> Any:
        return 0.5 * xp.sum((ta @ x - tb) ** 2) + 0.5 * xp.exp(log) * xp.sum(x * x)

    for how in ("dense", "cg"):
        fit = optimize.minimize(loss, xp.zeros(5), method="Newton-CG", tol=1e-12, linear_solver=how).x
        (found,) = grad(0.5 * xp.sum((tv @ fit - tw) ** 2), log)
        matrix = a.T @ a + np.exp(0.3) * np.eye(5)
        x = np.linalg.solve(matrix, a.T @ b)
        expected = -(v.T @ (v @ x - w)) @ np.linalg.solve(matrix, np.exp(0.3) * x)
        assert float(found) == pytest.approx(expected, rel=1e-7)


def test_the_hyper_gradient_of_a_support_vector_machine() -> None:
    """The dual's solution is differentiated in its upper bound, the regularisation: multipliers at the bound move with it."""
    rng = np.random.default_rng(1)
    points = np.concatenate([rng.normal(-0.7, 1.0, (12, 2)), rng.normal(0.7, 1.0, (12, 2))])
    labels = np.repeat([-1.0, 1.0], 12)
    kernel = labels[:, None] * (points @ points.T + 1.0 + 0.1 * np.eye(24)) * labels
    held = xp.asarray(kernel)

    def multipliers(c: Any) -> Any:
        def dual(x: Any) -> Any:
            return 0.5 * x @ held @ x - xp.sum(x)

        return optimize.minimize(dual, xp.full(24, 0.1), bounds=[(0.0, c)] * 24, tol=1e-14, options={"maxiter": 5000}).x

    c = xp.tensor(0.5, requires_grad=True)
    x = multipliers(c)
    at = x.detach().numpy()
    assert (at > 0.5 - 1e-6).sum() >= 2  # some are held from above,
    assert (at < 1e-6).sum() >= 2  # some from below,
    assert ((at > 1e-3) & (at < 0.499)).sum() >= 1  # and some are free
    v = rng.normal(size=24)
    (found,) = grad(xp.sum(x * xp.asarray(v)), c)
    free = (at > 1e-4) & (at < 0.5 - 1e-4)
    top = at >= 0.5 - 1e-4
    # The free ones solve K_ff x_f = 1 - K_ft c.
    moved = -np.linalg.solve(kernel[np.ix_(free, free)], kernel[np.ix_(free, top)].sum(1))
    assert float(found) == pytest.approx(v[top].sum() + v[free] @ moved, rel=1e-6)


@pytest.mark.parametrize("linear_solver", ["dense", "gmres"])
def test_an_equilibrium_as_a_layer(linear_solver: str) -> None:
    """The gradients of all parameters agree with those of the unrolled, converged iteration."""
    rng = np.random.default_rng(2)
    parts = [xp.tensor(rng.normal(size=shape) * 0.4, requires_grad=True) for shape in ((4, 4), (3, 4), (4,))]
    data = xp.asarray(rng.normal(size=(5, 3)))

    def step(z: Any) -> Any:
        return xp.tanh(z @ parts[0] + data @ parts[1] + parts[2])

    z = optimize.fixed_point(step, xp.zeros((5, 4)), xtol=1e-14, method="iteration", linear_solver=linear_solver)
    found = grad(xp.sum(z**2), parts)
    z = xp.zeros((5, 4))
    for _ in range(200):
        z = step(z)
    for one, other in zip(found, grad(xp.sum(z**2), parts), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-7, atol=1e-10)


def test_the_sensitivity_of_a_steady_state() -> None:
    """The sensitivities of a reaction A <-> B -> C with inflow agree with the concentrations' closed form."""
    rates = xp.tensor([2.0, 0.5, 1.5, 0.7], requires_grad=True)

    def change(x: Any) -> Any:
        inflow, there, back, out = rates[0], rates[1], rates[2], rates[3]
        return xp.stack([inflow - there * x[0] + back * x[1], there * x[0] - (back + out) * x[1]])

    state = optimize.root(change, xp.ones(2), tol=1e-13).x
    inflow, there, back, out = xp.unstack(rates)
    closed = xp.stack([inflow * (back + out) / (there * out), inflow / out])
    np.testing.assert_allclose(state.detach().numpy(), closed.detach().numpy(), rtol=1e-10)
    for k in range(2):
        one, other = grad(state[k], rates, retain_graph=True)[0], grad(closed[k], rates, retain_graph=True)[0]
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9, atol=1e-12)


def test_more_unknowns_than_a_matrix_is_made_for() -> None:
    """CG solves the adjoint of a reaction-diffusion line with 2,000 points from products only, without a matrix."""
    n = 2000
    k = xp.tensor(0.5, requires_grad=True)
    source = xp.asarray(np.sin(np.linspace(0, 3, n)))

    def energy(u: Any) -> Any:
        steps = xp.diff(u, prepend=xp.zeros(1), append=xp.zeros(1))
        return 0.5 * k * xp.sum(steps**2) + 0.5 * xp.sum(u * u) - xp.sum(source * u)

    u = optimize.minimize(energy, xp.zeros(n), method="Newton-CG", tol=1e-10).x
    (found,) = grad(xp.sum(u * u), k)
    matrix = 2 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1)
    whole = 0.5 * matrix + np.eye(n)
    exact = np.linalg.solve(whole, np.asarray(source.numpy()))
    assert float(found) == pytest.approx(-2 * exact @ np.linalg.solve(whole, matrix @ exact), rel=1e-5)
