"""Law: a constrained minimum has the derivatives that its first-order conditions give it, whichever of SciPy's forms constrains it."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.autograd import grad, gradcheck, gradgradcheck
from xpgrad.func import jacfwd, jacrev, vmap

scipys = pytest.importorskip("scipy.optimize")
Bounds, LinearConstraint, NonlinearConstraint = scipys.Bounds, scipys.LinearConstraint, scipys.NonlinearConstraint
optimize = importlib.import_module("xpgrad.scipy.optimize")


def minimum(fun: Any, x0: Any, *args: Any, **options: Any) -> Any:
    return optimize.minimize(fun, x0, *args, **({"tol": 1e-13} | options)).x


def distance(x: Any, t: Any) -> Any:
    return xp.sum((x - t) ** 2) + 0.1 * xp.sum(x**4) + x[0] * x[1] * t[2]


@pytest.mark.slow(one_in=8)
@pytest.mark.parametrize("form", ["bounds", "ineq", "bounds beside ineq"])
@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize("tol", [None, 1e-6])
@pytest.mark.parametrize("method", ["trust-constr", "SLSQP", "COBYLA", "COBYQA"])
def test_methods_that_stop_before_a_limit_have_the_derivatives_at_it(method: str, tol: float | None, scale: float, form: str) -> None:
    """Of "trust-constr" the derivatives were those without the limit, at a distance to it of 1e-5 or more."""
    target, limit = xp.tensor([0.7, 0.4, -0.2], requires_grad=True), xp.tensor([0.5, 0.45], requires_grad=True)
    options: dict[str, Any] = {"method": method, "tol": tol}
    if form == "ineq":
        options["constraints"] = {"type": "ineq", "fun": lambda x: limit - x[:2]}
    else:
        options["bounds"] = [(None, limit[0]), (-1.0, limit[1]), (None, None)]
    if form == "bounds beside ineq":
        options["constraints"] = {"type": "ineq", "fun": lambda x: 9.0 - xp.sum(x * x)}
    x = minimum(lambda x: scale * xp.sum((x - target) ** 2), xp.zeros(3), **options)
    for i, (by_target, by_limit) in enumerate([((0, 0, 0), (1, 0)), ((0, 1, 0), (0, 0)), ((0, 0, 1), (0, 0))]):
        found = grad(x[i], (target, limit), retain_graph=True, allow_unused=True)
        for g, expected in zip(found, (by_target, by_limit)):
            np.testing.assert_allclose(np.zeros(len(expected)) if g is None else g.numpy(), expected, atol=1e-6)


#: Minima as functions of three positive numbers: an equation, an inequality that is active, one that is not, and mixtures.
MINIMA: dict[str, Callable[[Any], Any]] = {
    "eq": lambda t: minimum(distance, xp.zeros(3), (t,), constraints={"type": "eq", "fun": lambda x: x[0] + x[1] * x[2] - t[1]}),
    "eq, args": lambda t: minimum(
        distance, xp.zeros(3), (t,), constraints=[{"type": "eq", "fun": lambda x, s, k: x[0] * k + x[1] - s, "args": (t[1], 2.0)}]
    ),
    "eq, gmres": lambda t: minimum(
        distance, xp.zeros(3), (t,), constraints={"type": "eq", "fun": lambda x: xp.sum(x) - t[1]}, linear_solver="gmres"
    ),
    "ineq": lambda t: minimum(distance, xp.zeros(3), (t,), constraints={"type": "ineq", "fun": lambda x: t[0] / 2 - xp.sum(x * x)}),
    "inactive": lambda t: minimum(distance, xp.zeros(3), (t,), constraints={"type": "ineq", "fun": lambda x: 9 * t[0] - xp.sum(x * x)}),
    "a value of several": lambda t: minimum(
        distance, xp.zeros(3), (t,), constraints={"type": "ineq", "fun": lambda x: [x[0] - 2 * t[0], t[1] * 9 - x]}
    ),
    "linear": lambda t: minimum(distance, xp.zeros(3), (t,), constraints=LinearConstraint([[1.0, 1.0, 1.0]], 0.5, 0.5)),
    "linear, of Tensors": lambda t: minimum(
        distance, xp.zeros(3), (t,), constraints=LinearConstraint(xp.stack([t, t * t]), -np.inf, xp.stack([t[1], t[0] * 9]))
    ),
    "nonlinear, its limits": lambda t: minimum(
        distance, xp.zeros(3), (t,), constraints=NonlinearConstraint(lambda x: xp.stack([xp.sum(x**3), x[1] + x[2]]), [t[0] * 2, -9.0], 9.0)
    ),
    "bounds": lambda t: minimum(
        distance, xp.zeros(3), (t,), bounds=[(None, t[2] / 7), (0.0, None), (-5, 5)],
        constraints={"type": "eq", "fun": lambda x: xp.sum(x) - t[1]},
    ),
    "trust-constr": lambda t: minimum(
        distance, 0.1 * xp.ones(3), (t,), "trust-constr", tol=1e-10,
        constraints=[{"type": "eq", "fun": lambda x: x[0] + x[1] * x[2] - t[1]}, NonlinearConstraint(lambda x: x[2], -np.inf, t[2] / 9)],
        options={"barrier_tol": 1e-11, "xtol": 1e-14},
    ),
    "a tree": lambda t: minimum(
        lambda p: xp.sum((p["a"] - t) ** 2) + p["b"] ** 2 * t[1], {"a": xp.zeros(3), "b": 1.0},
        constraints=({"type": "eq", "fun": lambda p: xp.sum(p["a"]) - p["b"] * t[0]}, {"type": "ineq", "fun": lambda p: 0.9 - p["a"][0]}),
    )["a"],
    "the value": lambda t: optimize.minimize(
        distance, xp.zeros(3), (t,), tol=1e-13, constraints={"type": "ineq", "fun": lambda x: t[0] / 2 - xp.sum(x * x)}
    ).fun,
}  # fmt: skip


@pytest.mark.slow(one_in=16)
@pytest.mark.parametrize("name", MINIMA)
def test_first_and_second_derivatives(name: str) -> None:
    t = xp.tensor([1.1, 0.4, 0.7], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert gradcheck(MINIMA[name], (t,), eps=1e-4, atol=1e-4, check_forward_ad=True)
        assert gradgradcheck(MINIMA[name], (t,), eps=1e-4, atol=1e-3)


def test_projection_on_a_simplex() -> None:
    """The Jacobian is that of the mean subtracted, among the numbers that stay positive."""
    y = np.asarray([0.9, 0.5, -0.4, 0.3, -2.0])
    ones = {"type": "eq", "fun": lambda x: xp.sum(x) - 1.0}

    def project(y: Any) -> Any:
        return minimum(lambda x: xp.sum((x - y) ** 2), 0.2 * xp.ones(5), bounds=[(0.0, None)] * 5, constraints=ones)

    x = project(xp.asarray(y)).numpy()
    ordered = np.sort(y)[::-1]
    shifts = (np.cumsum(ordered) - 1.0) / np.arange(1, 6)
    shift = shifts[np.nonzero(ordered > shifts)[0][-1]]
    np.testing.assert_allclose(x, np.maximum(y - shift, 0.0), atol=1e-8)
    kept = (y > shift).astype(float)
    expected = np.diag(kept) - np.outer(kept, kept) / kept.sum()
    for transform in (jacrev, jacfwd):
        np.testing.assert_allclose(transform(project)(xp.asarray(y)).numpy(), expected, atol=1e-7)


@pytest.mark.parametrize("form", ["function", "matrix"])
@pytest.mark.parametrize("seed", range(4))
def test_a_quadratic_with_equations_has_the_closed_form(seed: int, form: str) -> None:
    rng = np.random.default_rng(seed)
    n, k = 5, 2
    root = rng.normal(size=(n, n))
    values = [root @ root.T + np.eye(n), rng.normal(size=n), rng.normal(size=(k, n)), rng.normal(size=k)]
    q, b, a, c = leaves = [xp.tensor(v, requires_grad=True) for v in values]
    constraint = {"type": "eq", "fun": lambda x: a @ x - c} if form == "function" else LinearConstraint(a, c, c)
    found = optimize.minimize(lambda x: 0.5 * x @ q @ x - b @ x, xp.zeros(n), constraints=constraint, tol=1e-14)
    upper = xp.concat([0.5 * (q + q.T), a.T], axis=1)
    lower = xp.concat([a, xp.zeros((k, k))], axis=1)
    solved = xp.linalg.solve(xp.concat([upper, lower]), xp.concat([b, c]))
    weights = xp.asarray(rng.normal(size=n))
    np.testing.assert_allclose(found.x.detach().numpy(), solved[:n].detach().numpy(), atol=1e-7)
    pairs = [grad(xp.sum(x * weights), leaves, create_graph=True) for x in (found.x, solved[:n])]
    for ours, closed in zip(*pairs, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), closed.detach().numpy(), rtol=1e-6, atol=1e-7)
    (by_c,) = grad(found.fun, c, retain_graph=True)  # the multipliers
    np.testing.assert_allclose(by_c.numpy(), -solved[n:].detach().numpy(), rtol=1e-6, atol=1e-7)
    twice = [grad(xp.sum(xp.stack([xp.sum(xp.sin(g)) for g in pair])), leaves) for pair in pairs]
    for ours, closed in zip(*twice, strict=True):
        np.testing.assert_allclose(ours.numpy(), closed.numpy(), rtol=1e-5, atol=1e-5)


def test_a_portfolio_has_the_derivatives_of_scipys() -> None:
    """Weights that are not negative, add up to one and have a wanted return: compare with differences of SciPy's own solutions."""
    risks, means = np.asarray([0.1, 0.2, 0.3, 0.4]), np.asarray([0.04, 0.06, 0.09, 0.1])
    correlations = np.asarray([[1.0, 0.8, 0.0, 0.0], [0.8, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -0.5], [0.0, 0.0, -0.5, 1.0]])
    covariance = correlations * np.outer(risks, risks)

    def scipys_own(covariance: Any, wanted: float) -> Any:
        constraints = [{"type": "eq", "fun": lambda w: w.sum() - 1.0}, {"type": "ineq", "fun": lambda w: means @ w - wanted}]
        return scipys.minimize(
            lambda w: 50 * w @ covariance @ w, np.full(4, 0.25), jac=lambda w: 50 * (covariance + covariance.T) @ w, tol=1e-15,
            bounds=[(0.0, None)] * 4, constraints=constraints,
        ).x  # fmt: skip

    c, wanted = xp.tensor(covariance, requires_grad=True), xp.tensor(0.055, requires_grad=True)
    constraints = [{"type": "eq", "fun": lambda w: xp.sum(w) - 1.0}, {"type": "ineq", "fun": lambda w: xp.asarray(means) @ w - wanted}]
    w = minimum(lambda w: 50 * w @ c @ w, 0.25 * xp.ones(4), bounds=Bounds(0.0, np.inf), constraints=constraints)
    np.testing.assert_allclose(w.detach().numpy(), scipys_own(covariance, 0.055), atol=1e-7)
    assert w[1].item() == pytest.approx(0.0, abs=1e-9)  # the second is not bought
    weights = np.asarray([0.3, -1.1, 0.8, 0.4])
    by_c, by_wanted = grad(xp.sum(w * xp.asarray(weights)), [c, wanted])
    h = 1e-5
    ends = [weights @ scipys_own(covariance, 0.055 + s * h) for s in (1, -1)]
    assert by_wanted.item() == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-4)
    for i, j in ((0, 0), (0, 2), (1, 3), (3, 3)):
        e = np.zeros((4, 4))
        e[i, j] = h
        ends = [weights @ scipys_own(covariance + s * e, 0.055) for s in (1, -1)]
        assert by_c[i, j].item() == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-3, abs=1e-4)


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr", "COBYLA", "COBYQA"])
def test_every_method_with_constraints(method: str) -> None:
    """The least of a linear function on a disc is minus its direction times the radius."""
    t = xp.tensor([3.0, 4.0], requires_grad=True)
    disc = NonlinearConstraint(lambda x: x @ x, -np.inf, 4.0)
    x = minimum(lambda x: t @ x, xp.asarray([-1.0, -0.5]), method=method, tol=1e-9, constraints=disc)
    np.testing.assert_allclose(x.detach().numpy(), [-1.2, -1.6], atol=1e-4)
    found = np.stack([grad(x[k], t, retain_graph=True)[0].numpy() for k in range(2)])
    np.testing.assert_allclose(found, -2.0 / 5.0 * (np.eye(2) - np.outer([0.6, 0.8], [0.6, 0.8])), atol=1e-3)


def test_every_backend(xpgrad_device: str) -> None:
    t = xp.tensor([1.5, 0.5], dtype=xp.float32, device=xpgrad_device, requires_grad=True)
    start = xp.zeros(2, dtype=xp.float32, device=xpgrad_device)
    line = LinearConstraint(np.ones((1, 2)), 1.0, 1.0)
    x = minimum(lambda x: xp.sum((x - t) ** 2), start, constraints=line, tol=1e-6, failure="ignore")
    assert (x.device, x.dtype) == (t.device, t.dtype)
    (found,) = grad(x[0], t)
    np.testing.assert_allclose(found.to_device("numpy").numpy(), [0.5, -0.5], atol=1e-4)


def test_a_constraint_without_effect_at_its_limit_warns() -> None:
    t = xp.tensor(0.0, requires_grad=True)
    above = {"type": "ineq", "fun": lambda x: x[0]}
    with pytest.warns(RuntimeWarning, match=r"minimize: a constraint is at its limit .* derivatives are those without the constraint"):
        x = minimum(lambda x: xp.sum((x - t) ** 2), xp.ones(2), constraints=above)
    assert grad(x[0], t)[0].item() == pytest.approx(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        minimum(lambda x: xp.sum(x**2), xp.ones(2), constraints=above)  # it has no derivatives
        pushed = minimum(lambda x: xp.sum((x + 1.0 - t) ** 2), xp.ones(2), constraints=above)
    assert grad(pushed[0], t, retain_graph=True)[0].item() == pytest.approx(0.0, abs=1e-9)
    assert grad(pushed[1], t)[0].item() == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore:Singular Jacobian")
@pytest.mark.parametrize(
    "fun", [lambda x, t: [x[0] + x[1] - t, 2 * x[0] + 2 * x[1] - 2 * t], lambda x, t: (x[0] + x[1] - t) ** 2], ids=["twice", "squared"]
)
def test_dependent_constraints_are_refused_when_they_are_differentiated(fun: Any) -> None:
    t = xp.tensor(1.0, requires_grad=True)
    constraint = {"type": "eq", "fun": fun, "args": (t,)}
    x = minimum(
        lambda x: xp.sum((x - 1.0) ** 2), xp.asarray([0.3, 0.6]), method="trust-constr", constraints=constraint, failure="ignore",
        tol=1e-12, options={"maxiter": 300},
    )  # fmt: skip
    with pytest.raises(RuntimeError, match="singular"):
        x[0].backward()
    assert t.grad is None


def test_derivatives_that_are_given_are_called() -> None:
    t, calls = xp.tensor([1.0, 2.0], requires_grad=True), []

    def counted(name: str, value: Any) -> Any:
        calls.append(name)
        return value

    def fun(x: Any, t: Any) -> Any:
        return xp.sum((x - t) ** 2)

    def both(x: Any, t: Any) -> Any:
        return fun(x, t), counted("both", 2 * (x - t))

    wanted: dict[str, Any] = {
        "both": {"jac": True},
        "jac": {"jac": lambda x, t: counted("jac", np.asarray((2 * (x - t)).detach()))},
        "hess": {"hess": lambda x, t: counted("hess", 2 * np.eye(2)), "method": "trust-exact"},
        "hessp": {"hessp": lambda x, p, t: counted("hessp", 2 * p), "method": "trust-ncg"},
        "hess of Newton-CG": {"hess": lambda x, t: counted("hess of Newton-CG", 2 * np.eye(2)), "method": "Newton-CG"},
    }
    for name, options in wanted.items():
        x = minimum(both if name == "both" else fun, xp.zeros(2), (t,), **(options | {"tol": 1e-8}))
        np.testing.assert_allclose(jacrev(lambda t, x=x: t)(t.detach()).numpy(), np.eye(2))
        np.testing.assert_allclose(grad(x[0] + 3 * x[1], t)[0].numpy(), [1.0, 3.0], rtol=1e-9)
        assert name in calls
    x = minimum(both, xp.zeros(2), (t,), method="Nelder-Mead", jac=True, tol=1e-10)
    np.testing.assert_allclose(x.detach().numpy(), [1.0, 2.0], atol=1e-6)


REFUSED: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "a form": (ValueError, "`constraints` must be a dict with 'type'", {"constraints": {"type": "equal", "fun": lambda x: x}}),
    "a function alone": (ValueError, "`constraints` must be a dict", {"constraints": lambda x: x}),
    "no function": (ValueError, "`constraints` must be a dict", {"constraints": [{"type": "eq"}]}),
    "a method": (ValueError, "'BFGS' takes no constraints", {"constraints": LinearConstraint(np.ones(2), 0, 1), "method": "BFGS"}),
    "columns": (
        ValueError,
        r"a column for each of 2 unknowns, but has shape \(1, 3\)",
        {"constraints": LinearConstraint(np.ones(3), 0, 1)},
    ),
    "args": (TypeError, "must be a tuple, but got", {"constraints": {"type": "eq", "fun": lambda x, t: x - t, "args": 2.0}}),
    "limits": (ValueError, "has 2 values, but 3 limits", {"constraints": NonlinearConstraint(lambda x: x, np.zeros(3), 1)}),
    "jac": (ValueError, "`jac` must be a function, or True, but got", {"jac": "2-point"}),
    "hess": (ValueError, "`hess` must be a function, but got", {"hess": True}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    error, says, options = REFUSED[name]
    with pytest.raises(error, match=says):
        optimize.minimize(lambda x: xp.sum(x * x), xp.ones(2), **options)


def test_no_constraints_and_batches() -> None:
    nothing: tuple[Any, ...] = ((), [], None)
    for none in nothing:
        np.testing.assert_allclose(minimum(lambda x: xp.sum((x - 2) ** 2), xp.zeros(2), constraints=none).numpy(), 2.0, rtol=1e-6)
    with pytest.raises((RuntimeError, NotImplementedError)):
        vmap(MINIMA["eq"])(xp.ones((2, 3)))
