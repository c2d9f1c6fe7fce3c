"""Law: a solution that SciPy finds has the derivatives that the implicit function theorem gives it, of every order, on every backend."""

from __future__ import annotations

import gc
import importlib
import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from xpgrad.autograd import grad, gradcheck, gradgradcheck
from xpgrad.autograd.graph import GradientEdge
from xpgrad.func import jacrev, jvp, vmap
from xpgrad.scipy._cutting import cut_graph

scipys = pytest.importorskip("scipy.optimize")
Bounds = scipys.Bounds
optimize = importlib.import_module("xpgrad.scipy.optimize")

RNG = np.random.default_rng(0)
T = np.linspace(0.0, 1.0, 12)


def quartic(x: Any, t: Any) -> Any:
    return xp.sum((x - t) ** 2) + 0.1 * xp.sum(x**4) + x[0] * x[1] * t[2]


def curve(p: Any, y: Any) -> Any:
    return p[0] * xp.exp(-p[1] * xp.asarray(T, dtype=y.dtype, device=y.device)) - y


#: Solutions as functions of three positive numbers.
SOLUTIONS: dict[str, Callable[[Any], Any]] = {
    "minimize": lambda t: optimize.minimize(quartic, xp.zeros(3), (t,), "trust-exact", tol=1e-8).x,
    "minimize, closed over": lambda t: optimize.minimize(lambda x: quartic(x, t), xp.zeros(3), method="trust-exact", tol=1e-8).x,
    "minimize, its value": lambda t: optimize.minimize(quartic, xp.zeros(3), (t,), "trust-exact", tol=1e-8).fun,
    "minimize, products": lambda t: optimize.minimize(quartic, xp.zeros(3), (t,), "trust-ncg", tol=1e-8, linear_solver="cg").x,
    "minimize, Hessians": lambda t: optimize.minimize(quartic, xp.zeros(3), (t,), "Newton-CG", tol=1e-10, linear_solver="gmres").x,
    "minimize, bounds": lambda t: optimize.minimize(
        quartic, xp.zeros(3), (t,), bounds=[(None, t[0] / 8), (-3, 3.0), (None, None)], tol=1e-13
    ).x,
    "minimize, a tree": lambda t: optimize.minimize(
        lambda p: xp.sum((p["a"] - t) ** 2) + p["b"][0] ** 2 * t[1] * 3 + xp.sum(p["a"]) * p["b"][0] * 0.5,
        {"a": xp.zeros(3), "b": (1.0,)}, method="trust-exact", tol=1e-8,
    ).x["a"],
    "root": lambda t: optimize.root(lambda x: 0.3 * x**3 + 2 * x + 0.2 * x[::-1] - t, xp.ones(3), tol=1e-13).x,
    "root, lm": lambda t: optimize.root(lambda x, t: x * t + x**3 - 1.0, xp.ones(3), (t,), "lm", tol=1e-13).x,
    "root, krylov": lambda t: optimize.root(lambda x: x * t + x**3 - 1.0, xp.ones(3), method="krylov", tol=1e-12).x,
    "brentq": lambda t: optimize.brentq(lambda x: x**3 * t[0] + x * t[1] - t[2], 0.0, 3.0),
    "fixed_point": lambda t: optimize.fixed_point(lambda x: 0.5 * xp.cos(x) * t, xp.ones(3), xtol=1e-13),
    "fixed_point, plainly": lambda t: optimize.fixed_point(lambda x, t: 0.3 * xp.sin(x + t), xp.ones(3), (t,), 1e-13, method="iteration"),
}  # fmt: skip


@pytest.mark.slow(one_in=15)
@pytest.mark.parametrize("name", SOLUTIONS)
def test_first_and_second_derivatives(name: str) -> None:
    t = xp.tensor([1.1, 0.4, 0.7], requires_grad=True)
    solution = SOLUTIONS[name]
    assert gradcheck(solution, (t,), check_forward_ad=True)
    assert gradgradcheck(solution, (t,), atol=1e-4)


def test_third_derivatives() -> None:
    def cube_root(a: Any) -> Any:
        return optimize.root(lambda x: x**3 - a, xp.ones(1), tol=1e-14).x[0]

    derivative: Any = cube_root
    for power, factor in ((1 / 3, 1.0), (-2 / 3, 1 / 3), (-5 / 3, -2 / 9), (-8 / 3, 10 / 27)):
        assert float(derivative(xp.tensor(2.0))) == pytest.approx(factor * 2.0**power, rel=1e-9)
        derivative = xp.func.grad(derivative)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 6), how=st.sampled_from(["auto", "dense", "cg", "gmres"]))
def test_linear_least_squares_has_the_closed_form(seed: int, n: int, how: str) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(n + 3, n)), rng.normal(size=n + 3)
    ta, tb = xp.tensor(a, requires_grad=True), xp.tensor(b, requires_grad=True)
    fit = optimize.least_squares(
        lambda x: ta @ x - tb, xp.zeros(n), xtol=1e-15, ftol=1e-15, gtol=1e-15, failure="ignore", linear_solver=how
    )
    v = rng.normal(size=n)
    found = grad(xp.sum(fit.x * xp.asarray(v)), [ta, tb], retain_graph=True)
    # x = (A'A)^-1 A'b: the adjoint of the normal equations.
    u = np.linalg.solve(a.T @ a, v)
    x = np.linalg.lstsq(a, b, rcond=None)[0]
    np.testing.assert_allclose(found[1].numpy(), a @ u, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found[0].numpy(), np.outer(b - a @ x, u) - np.outer(a @ u, x), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(grad(fit.cost, tb)[0].numpy(), b - a @ x, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy", "arctan"])
def test_robust_fits(loss: str) -> None:
    y = np.exp(-1.3 * T) + 0.05 * RNG.normal(size=len(T))

    def fit(y: Any) -> Any:
        options: dict[str, Any] = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "failure": "ignore"}
        return optimize.least_squares(curve, xp.asarray([1.0, 1.0]), (y,), loss=loss, f_scale=0.1, **options).x

    leaf = xp.tensor(y, requires_grad=True)
    found = jacrev(fit)(leaf.detach()).numpy()
    for k in (0, 5):
        e = 1e-4 * np.eye(len(T))[k]
        ends = [fit(xp.asarray(y + s * e)).numpy() for s in (1, -1)]
        np.testing.assert_allclose(found[:, k], (ends[0] - ends[1]) / 2e-4, rtol=1e-3, atol=1e-5)


def test_bounds_that_hold() -> None:
    t, top = xp.tensor([2.0, 0.5], requires_grad=True), xp.tensor(1.0, requires_grad=True)
    for bounds in ([(None, top), (0, None)], Bounds([-9, 0], [1, np.inf])):
        x = optimize.minimize(lambda x: xp.sum((x - t) ** 2), xp.zeros(2), bounds=bounds).x
        np.testing.assert_allclose(x.detach().numpy(), [1.0, 0.5], atol=1e-6)
        found = jacrev(lambda t, b=bounds: optimize.minimize(lambda y, t: xp.sum((y - t) ** 2), xp.zeros(2), (t,), bounds=b).x)(t.detach())
        np.testing.assert_allclose(found.detach().numpy(), [[0, 0], [0, 1]], atol=1e-6)
    x = optimize.minimize(lambda x: xp.sum((x - t) ** 2), xp.zeros(2), bounds=[(None, top), (0, None)]).x
    np.testing.assert_allclose(grad(x[0] * 3 + x[1], top)[0].numpy(), 3.0, atol=1e-6)


def test_a_number_on_the_host_beside_arrays_elsewhere(xpgrad_device: str) -> None:
    a = xp.tensor(0.5, requires_grad=True)
    x = optimize.root(lambda x: x * a - 1, xp.ones(2, device=xpgrad_device), tol=1e-6).x
    (found,) = grad(xp.sum(x), a)
    assert found.device == a.device
    assert float(found) == pytest.approx(-8.0, rel=1e-3)


def test_every_backend(xpgrad_device: str) -> None:
    t = xp.tensor([1.1, 0.4, 0.7], dtype=xp.float32, device=xpgrad_device, requires_grad=True)
    start = xp.zeros(3, dtype=xp.float32, device=xpgrad_device)
    host = xp.tensor([1.1, 0.4, 0.7], requires_grad=True)
    there = optimize.minimize(quartic, start, (t,), tol=1e-5, failure="ignore").x
    here = SOLUTIONS["minimize"](host)
    assert (there.device, there.dtype) == (t.device, t.dtype)
    np.testing.assert_allclose(there.detach().to_device("numpy").numpy(), here.detach().numpy(), atol=1e-3)
    for one, other in zip(grad(there.sum(), t), grad(here.sum(), host), strict=True):
        np.testing.assert_allclose(one.to_device("numpy").numpy(), other.numpy(), atol=2e-3)


def test_a_solution_inside_of_what_is_solved() -> None:
    """Law: a problem may contain solutions of other problems, which depend on its unknowns and on outer variables."""
    a, k = xp.tensor([1.2, -0.7], requires_grad=True), xp.tensor(0.3, requires_grad=True)

    def within(b: Any) -> Any:
        return optimize.minimize(lambda y: xp.sum((y - b) ** 2) + xp.sum(y * y), xp.zeros(2), tol=1e-12).x  # b / 2

    weights = xp.asarray([0.4, 1.7])
    least = optimize.minimize(lambda z: xp.sum((within(z * a) - 1.0) ** 2) + k * xp.sum(z * z), xp.ones(2), tol=1e-8).x
    rooted = optimize.root(lambda z: within(z * a) * a - 1.0 + k * z, xp.ones(2), tol=1e-13).x  # a*a*z/2 - 1 + k*z
    for found, expected, near in ((least, 2 * a / (a * a + 4 * k), 1e-6), (rooted, 2 / (a * a + 2 * k), 1e-9)):
        np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=near)
        pairs = [grad(xp.sum(x * weights), [a, k], create_graph=True) for x in (found, expected)]
        for g, wanted in zip(*pairs):
            np.testing.assert_allclose(g.tolist(), wanted.tolist(), rtol=10 * near)
        twice = [grad(xp.sum(by_a * weights) + by_k, [a, k]) for by_a, by_k in pairs]
        for g, wanted in zip(*twice):
            np.testing.assert_allclose(g.tolist(), wanted.tolist(), rtol=100 * near)


def test_a_pass_leaves_alone_what_ends_at_a_cut() -> None:
    """Law: a pass for other gradients neither runs nor frees nodes from which only a cut can be reached."""
    a, w, kept = xp.tensor([3.0], requires_grad=True), xp.tensor([1.0], requires_grad=True), []

    def function(y: Any) -> Any:
        kept.append(y * a)
        return kept[0]

    value, own, (link,) = cut_graph(function, xp.asarray([2.0]))
    (by_w,) = grad(xp.sum(w * kept[0]), w)
    assert by_w.tolist() == [6.0]
    found = grad([value], [GradientEdge(own, 0), GradientEdge(link, 0)], [xp.ones(1)])
    assert [g.tolist() for g in found] == [[3.0], [2.0]]


@pytest.mark.parametrize("how", ["auto", "cg"])
def test_a_differential_equation_inside_of_what_is_solved(how: str) -> None:
    """Law: a residual that rounds differently when recorded is not mistaken for one that has changed."""
    odeint = importlib.import_module("xpgrad.scipy.integrate").odeint
    drag = xp.tensor(0.7, requires_grad=True)

    def miss(speed: Any) -> Any:
        """Return the squared distance from 2 of the position of a decelerating body after a time of 1."""
        start = xp.stack([xp.asarray(0.0), speed[0]])
        return (odeint(lambda y, t: xp.stack([y[1], -drag * y[1]]), start, [0.0, 1.0], rtol=1e-10, atol=1e-10)[1, 0] - 2.0) ** 2

    speed = optimize.minimize(miss, xp.ones(1), tol=1e-10, linear_solver=how).x
    expected = 2.0 * drag / (1.0 - xp.exp(-drag))
    np.testing.assert_allclose(speed.item(), expected.item(), rtol=1e-8)
    for x in (speed.sum(), expected):
        x.backward()
        found, drag.grad = drag.grad, None
        np.testing.assert_allclose(found.item(), 1.2295878440, rtol=1e-7)


def test_ones_own_solver() -> None:
    calls = []

    @optimize.custom_root(lambda x, a, b: {"u": x["u"] ** 2 - a, "v": x["v"] * x["u"] - b})
    def solver(a: Any, b: Any) -> Any:
        calls.append((a.requires_grad, b.requires_grad))
        u = np.sqrt(a.numpy())
        return {"u": u, "v": b.numpy() / u}

    a, b = xp.tensor([2.0, 3.0], requires_grad=True), xp.tensor([1.0, 5.0], requires_grad=True)
    assert gradcheck(lambda a, b: tuple(solver(a, b).values()), (a, b))
    assert gradgradcheck(lambda a, b: tuple(solver(a, b).values()), (a, b))
    assert set(calls) == {(False, False)}
    assert solver(a, b)["v"].dtype == a.dtype

    def direct(product: Any, right: Any) -> Any:
        return np.linalg.solve(np.stack([product(e) for e in np.eye(len(right))], axis=1), right)

    found = optimize.custom_root(lambda x, a: 0.3 * x**3 + 2 * x + 0.2 * x[::-1] - a, linear_solver=direct)(lambda a: SOLUTIONS["root"](a))
    t = xp.tensor([1.1, 0.4, 0.7], requires_grad=True)
    np.testing.assert_allclose(jacrev(found)(t.detach()).numpy(), jacrev(SOLUTIONS["root"])(t.detach()).numpy(), rtol=1e-9)


@pytest.mark.parametrize("how", ["cg", "gmres"])
def test_jacrev_solves_for_each_cotangent_as_it_was_asked_to(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.sparse.linalg

    solved: list[Any] = []
    original = getattr(scipy.sparse.linalg, how)
    monkeypatch.setattr(scipy.sparse.linalg, how, lambda *args, **options: solved.append(how) or original(*args, **options))
    t = xp.tensor([1.1, 0.4, 0.7])
    solution = lambda t: optimize.minimize(quartic, xp.zeros(3), (t,), "Newton-CG", tol=1e-12, linear_solver=how).x  # noqa: E731
    found = jacrev(solution)(t)
    assert len(solved) == 3
    np.testing.assert_allclose(found.numpy(), xp.func.jacfwd(SOLUTIONS["minimize, Hessians"])(t).numpy(), rtol=1e-6)


def test_hooks_run_once_and_graphs_are_freed() -> None:
    a, seen = xp.tensor(2.0, requires_grad=True), []
    b = a * 1.5
    b.register_hook(lambda g: seen.append(float(g)) or g * 2)
    x = optimize.root(lambda x: x**2 - b, xp.ones(1), tol=1e-13).x
    x.sum().backward(retain_graph=True)
    slope = 0.5 / 3.0**0.5
    assert seen == [pytest.approx(slope)]
    assert float(a.grad) == pytest.approx(2 * 1.5 * slope)
    x.sum().backward()
    assert float(a.grad) == pytest.approx(2 * 2 * 1.5 * slope)
    with pytest.raises(RuntimeError, match="second time"):
        x.sum().backward()
    node = weakref.ref(x.grad_fn)
    del x
    gc.collect()
    assert node() is None


def test_a_parameter_that_is_written_to_is_noticed() -> None:
    a = xp.tensor([2.0], requires_grad=True)
    b = a * 1.0
    x = optimize.root(lambda x: x**2 * b - 1.0, xp.ones(1), tol=1e-12).x
    b *= 3.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


def test_no_history_no_graph() -> None:
    assert not SOLUTIONS["minimize"](xp.tensor([1.1, 0.4, 0.7])).requires_grad
    with xp.no_grad():
        assert not SOLUTIONS["root"](xp.tensor([1.1, 0.4, 0.7], requires_grad=True)).requires_grad
    empty = optimize.custom_root(lambda x, a: x - a)(lambda a: a.numpy())(xp.tensor(np.zeros(0), requires_grad=True))
    empty.sum().backward()


def _along(function: Callable[[Any], Any], v: Any) -> Callable[[Any], Any]:
    """Return the derivative of a function along `v`, in forward mode."""
    return lambda t: jvp(function, (t,), (v,))[1]


#: The second derivative of a scalar function along two vectors, in each order of the two modes.
SECOND: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "reverse of reverse": lambda f, t, v, w: xp.sum(xp.func.grad(lambda t: xp.sum(xp.func.grad(f)(t) * v))(t) * w),
    "reverse of forward": lambda f, t, v, w: xp.sum(xp.func.grad(_along(f, v))(t) * w),
    "forward of reverse": lambda f, t, v, w: xp.sum(_along(xp.func.grad(f), w)(t) * v),
    "forward of forward": lambda f, t, v, w: _along(_along(f, v), w)(t),
    "many forward of reverse": lambda f, t, v, w: v @ xp.func.jacfwd(xp.func.grad(f))(t) @ w,
    "hessian": lambda f, t, v, w: v @ xp.func.hessian(f)(t) @ w,
    "many reverse of forward": lambda f, t, v, w: xp.func.jacrev(_along(f, v))(t) @ w,
    "by the direction": lambda f, t, v, w: xp.sum(xp.func.grad(lambda v: _along(_along(f, v), w)(t))(v) * v),
}


@pytest.mark.slow(one_in=16)
@pytest.mark.parametrize("order", SECOND)
@pytest.mark.parametrize("name", SOLUTIONS)
def test_second_derivatives_in_both_modes(name: str, order: str) -> None:
    def loss(t: Any) -> Any:
        out = SOLUTIONS[name](t)
        return xp.sum(xp.sin(out) * (xp.arange(3.0) + 1.0 if out.ndim else 1.0)) * t[1]

    t, v, w = (xp.asarray(x) for x in ([1.1, 0.4, 0.7], [0.3, -1.0, 0.5], [1.0, 0.2, -0.4]))
    gradient = lambda t: float(xp.sum(xp.func.grad(loss)(t) * v))  # noqa: E731
    expected = (gradient(t + 1e-4 * w) - gradient(t - 1e-4 * w)) / 2e-4
    assert float(SECOND[order](loss, t, v, w)) == pytest.approx(expected, rel=2e-4, abs=2e-5)


def _in_reverse(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return xp.func.grad(function)


def _in_forward_mode(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return _along(function, xp.asarray(1.0))


@pytest.mark.parametrize("modes", list(itertools.product([_in_reverse, _in_forward_mode], repeat=3)))
def test_third_derivatives_in_both_modes(modes: Any) -> None:
    derivative: Any = lambda a: optimize.root(lambda x: x**3 - a, xp.ones(1), tol=1e-14).x[0]  # noqa: E731
    for mode in modes:
        derivative = mode(derivative)
    assert float(derivative(xp.asarray(2.0))) == pytest.approx(10 / 27 * 2.0 ** (-8 / 3), rel=1e-9)


def test_what_is_not_taken_at_once_says_so() -> None:
    t = xp.tensor([1.1, 0.4, 0.7])
    one = jacrev(SOLUTIONS["root"])(t)
    other = xp.func.jacfwd(SOLUTIONS["root"])(t)
    np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-9)
    with pytest.raises(NotImplementedError, match="one by one"):
        xp.func.jacfwd(xp.func.jacfwd(SOLUTIONS["root"]))(t)
    with pytest.raises(NotImplementedError, match="one by one"):
        jacrev(jacrev(SOLUTIONS["root"]))(t)
    with pytest.raises(NotImplementedError, match="one by one"):
        jacrev(xp.func.jacfwd(SOLUTIONS["root"]))(t)

    def rows(t: Any) -> Any:
        return xp.autograd.functional.jacobian(SOLUTIONS["root"], t, create_graph=True)

    second = xp.autograd.functional.jacobian(rows, t).numpy()
    e = 1e-5 * np.eye(3)
    for k in range(3):
        ends = [jacrev(SOLUTIONS["root"])(t + xp.asarray(s * e[k])).numpy() for s in (1, -1)]
        np.testing.assert_allclose(second[..., k], (ends[0] - ends[1]) / 2e-5, rtol=1e-4, atol=1e-6)


REFUSED: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "no convergence": (
        RuntimeError, "did not converge", lambda: optimize.minimize(quartic, xp.zeros(3), (xp.ones(3),), options={"maxiter": 1}),
    ),
    "no root": (RuntimeError, "did not converge", lambda: optimize.root(lambda x: x**2 + 1.0, xp.ones(1))),
    "few iterations": (RuntimeError, "did not converge", lambda: optimize.brentq(lambda x: x**3 - 2.0, 0.0, 2.0, maxiter=2)),
    "no fixed point": (
        RuntimeError, "did not converge", lambda: optimize.fixed_point(lambda x: x + 1.0, 1.0, maxiter=5, method="iteration"),
    ),
    "one sign": (ValueError, "different signs", lambda: optimize.brentq(lambda x: x * x + 1.0, 0.0, 2.0)),
    "bools": (TypeError, "minimize: `x0` must be real", lambda: optimize.minimize(lambda x: xp.sum(x), xp.asarray([True, False]))),
    "a float": (ValueError, "returned a number or an array of one", lambda: optimize.minimize(lambda x: float(x.sum()), [1.0, 2.0])),
    "complex": (TypeError, "root: `x0` must be real", lambda: optimize.root(lambda x: x, xp.asarray([1j]))),
    "another number of equations": (ValueError, "as many numbers as it gets, 2", lambda: optimize.root(lambda x: x[:1], xp.ones(2))),
    "not a scalar": (ValueError, "0-d", lambda: optimize.minimize(lambda x: x, xp.ones(2))),
    "not a Tensor": (TypeError, "", lambda: optimize.minimize(lambda x: "text", xp.ones(2))),
    "not a function": (TypeError, "minimize", lambda: optimize.minimize(3, xp.ones(2))),  # type: ignore[arg-type]
    "args": (TypeError, "`args` must be a tuple", lambda: optimize.root(lambda x, a: x - a, xp.ones(2), xp.ones(2))),  # type: ignore[arg-type]
    "failure": (ValueError, "`failure`", lambda: optimize.root(lambda x: x, xp.ones(2), failure="never")),  # type: ignore[arg-type]
    "linear_solver": (ValueError, "`linear_solver`", lambda: optimize.root(lambda x: x, xp.ones(2), linear_solver="lu")),
    "bounds": (ValueError, "2 pairs", lambda: optimize.minimize(lambda x: xp.sum(x), xp.ones(2), bounds=[(0, 1)])),
    "loss": (ValueError, "`loss`", lambda: optimize.least_squares(lambda x: x, xp.ones(2), loss="square")),
    "jac": (TypeError, "'jac'", lambda: optimize.least_squares(lambda x: x, xp.ones(2), jac="2-point")),
    "a solver of another shape": (
        ValueError, "as many numbers", lambda: optimize.custom_root(lambda x, a: x[:1] - a)(lambda a: np.ones(2))(xp.ones(1)),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    error, says, call = REFUSED[name]
    with pytest.raises(error, match=says or None):
        call()


def test_failures_may_be_warnings() -> None:
    with pytest.warns(RuntimeWarning, match=r"did not converge: [^.]*\. Derivatives"):  # SciPy's sentence may end with a full stop
        found = optimize.minimize(quartic, xp.zeros(3), (xp.ones(3),), options={"maxiter": 1}, failure="warn")
    assert not found.success
    optimize.minimize(quartic, xp.zeros(3), (xp.ones(3),), options={"maxiter": 1}, failure="ignore")


@pytest.mark.parametrize("how", ["dense", "cg", "gmres"])
def test_a_singular_jacobian_is_refused_when_it_is_differentiated(how: str) -> None:
    t = xp.tensor(2.0, requires_grad=True)
    found = optimize.minimize(lambda x: (x[0] - x[1] - t) ** 2, xp.zeros(2), linear_solver=how, failure="ignore")
    if how == "dense":
        with pytest.raises(RuntimeError, match="singular"):
            found.x[0].backward()
    else:  # for consistent systems CG and GMRES find the shortest solution; this system has none
        with pytest.raises(RuntimeError, match=r"singular|did not solve"):
            found.x.sum().backward()
    assert t.grad is None


def test_elements_of_a_batch_are_refused() -> None:
    with pytest.raises((RuntimeError, NotImplementedError)):
        vmap(SOLUTIONS["root"])(xp.ones((2, 3)))


def test_a_matrix_that_is_singular_but_for_rounding_is_refused() -> None:
    """A matrix whose last pivot is only a rounding error raises, because its solutions would be finite but meaningless."""
    v, w = np.asarray([0.3, -0.7, 1.1]), np.asarray([0.9, 0.2, -0.4])
    matrix = np.outer(v, v) + np.outer(w, w)
    held = xp.asarray(matrix)
    t = xp.tensor(matrix @ np.asarray([1.0, 2.0, 3.0]), requires_grad=True)
    x = optimize.custom_root(lambda x, t: held @ x - t)(lambda t: np.asarray([1.0, 2.0, 3.0]))(t)
    assert np.all(np.isfinite(np.linalg.solve(matrix, np.ones(3))))  # the library does not notice
    with pytest.raises(RuntimeError, match="singular"):
        x.sum().backward()
    assert t.grad is None


@pytest.mark.parametrize("start", [[0.0, 0.0], [0, 0.0], [0, 0], (xp.asarray([0, 0])), np.asarray([0, 0]), np.zeros(2)], ids=repr)
def test_a_start_may_be_a_list_of_numbers_or_integers(start: Any) -> None:
    target = xp.tensor([1.0, 2.0], requires_grad=True)
    for x in (
        optimize.minimize(lambda p: xp.sum((p - target) ** 2), start).x,
        optimize.least_squares(lambda p: p - target, start).x,
        optimize.root(lambda p: p - target, start).x,
    ):
        np.testing.assert_allclose(x.detach().numpy(), [1.0, 2.0], rtol=1e-6)
        np.testing.assert_allclose(xp.autograd.grad(xp.sum(x * x), target)[0].numpy(), [2.0, 4.0], rtol=1e-6)
    assert float(optimize.minimize(lambda p: (p - 3) ** 2, 0).x) == pytest.approx(3.0)


def test_integers_in_a_tree_and_a_number_as_args_are_scipys() -> None:
    found = optimize.minimize(lambda p, c: (p["a"] - c) ** 2 + xp.sum((p["b"] - 1) ** 2), {"a": 0, "b": xp.asarray([0, 0])}, args=3.0)
    assert found.x["a"].item() == pytest.approx(3.0)
    np.testing.assert_allclose(found.x["b"].numpy(), 1.0, rtol=1e-6)
    assert optimize.brentq(lambda x, c: x - c, 0.0, 5.0, args=2).item() == pytest.approx(2.0)
    assert optimize.root(lambda x, c: x - c, [0, 0], args=2).x.tolist() == pytest.approx([2.0, 2.0])


def _line(t: Any, a: Any, b: Any) -> Any:
    return a + b * t


def test_curve_fit_takes_lists_of_numbers() -> None:
    best, _ = optimize.curve_fit(_line, [1, 2, 3], [1.0, 2.0, 4.0], p0=(1, 1))
    np.testing.assert_allclose(best.numpy(), [-2 / 3, 1.5], rtol=1e-6)


SIDES: list[Any] = [
    (0.0, 0.5), (0, np.asarray([0.5, 9.0, 9.0])), ([0.0, 0.0, 0.0], [0.5, 9.0, 9.0]), (np.zeros(3), (0.5, 9.0, 9.0)),
    (-np.inf, [0.5, np.inf, np.inf]), [(0.0, 0.5), (None, None), (0.0, 9.0)],
]  # fmt: skip


@pytest.mark.parametrize("bounds", SIDES, ids=repr)
def test_bounds_of_a_fit_may_be_all_lower_and_all_upper_ones(bounds: Any) -> None:
    upper = xp.tensor(0.5, requires_grad=True)
    x = optimize.least_squares(lambda p: p - 0.75, [0.25, 0.3, 0.4], bounds=bounds).x
    np.testing.assert_allclose(x.numpy(), [0.5, *[0.5 if bounds is SIDES[0] else 0.75] * 2], rtol=1e-5)
    x = optimize.least_squares(lambda p: p - 0.75, [0.25, 0.3, 0.4], bounds=(0.0, upper)).x
    assert xp.autograd.grad(xp.sum(x), upper)[0].item() == pytest.approx(3.0)
    two = optimize.least_squares(lambda p: p - 0.75, [0.25, 1.5], bounds=([0.0, 0.5], [1.0, 2.0])).x  # pairs
    np.testing.assert_allclose(two.numpy(), [0.5, 1.0], rtol=1e-5)


def test_a_fit_evaluates_its_residuals_once_at_each_point() -> None:
    calls = 0

    def residuals(p: Any) -> Any:
        nonlocal calls
        calls += 1
        return xp.stack([xp.exp(p[0]) - 2.0, p[0] * p[1] - 1.0])

    found = optimize.least_squares(residuals, [0.0, 1.0])
    assert found.njev > 2
    assert calls <= found.nfev + 3
    np.testing.assert_allclose(found.x.numpy(), [np.log(2.0), 1 / np.log(2.0)], rtol=1e-6)


@pytest.mark.parametrize("which", ["residuals", "bound"])
def test_a_solution_is_constant_only_if_nothing_moves_it(which: str) -> None:
    moved = xp.tensor(0.5, requires_grad=True)
    fun = (lambda x: xp.sum((x - moved) ** 2)) if which == "residuals" else lambda x: xp.sum((x - 2.0) ** 2)
    bounds = None if which == "residuals" else [(0.0, moved)]
    assert xp.autograd.grad(optimize.minimize(fun, [0.1], bounds=bounds).x[0], moved)[0].item() == pytest.approx(1.0, rel=1e-5)
    with xp.no_grad():
        assert not optimize.minimize(fun, [0.1], bounds=bounds).x.requires_grad


@pytest.mark.parametrize("absolute", [False, True])
@pytest.mark.parametrize("kind", ["none", "number", "each", "covariance"])
def test_curve_fit_of_a_line_is_the_closed_form(kind: str, absolute: bool) -> None:
    rng = np.random.default_rng(1)
    t = np.linspace(-1.0, 2.0, 7)
    noise = rng.uniform(0.5, 1.5, 7)
    sigmas = {"none": None, "number": np.asarray(0.3), "each": noise, "covariance": np.diag(noise**2) + 0.1}
    sigma = sigmas[kind]
    y = xp.tensor(1.0 - 2.0 * t + 0.2 * rng.normal(size=7), requires_grad=True)
    found = optimize.curve_fit(_line, t, y, sigma=sigma, absolute_sigma=absolute, gtol=1e-12)
    weights = np.eye(7) if sigma is None else np.linalg.inv(sigma) if sigma.ndim == 2 else np.eye(7) / sigma**2
    columns = np.stack([np.ones(7), t], axis=1)
    matrix = np.linalg.inv(columns.T @ weights @ columns)
    fit = xp.asarray(matrix @ columns.T @ weights) @ y
    rest = y - xp.asarray(columns) @ fit
    covariance = xp.asarray(matrix) * (1.0 if absolute else xp.sum(rest * (xp.asarray(weights) @ rest)) / 5)
    theirs = scipys.curve_fit(_line, t, y.detach().numpy(), sigma=sigma if kind != "number" else np.full(7, 0.3), absolute_sigma=absolute)
    for ours, closed, other in zip(found, (fit, covariance), theirs, strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), closed.detach().numpy(), rtol=1e-8)
        np.testing.assert_allclose(ours.detach().numpy(), other, rtol=1e-5)
        if closed.requires_grad:
            weigh = xp.asarray(rng.normal(size=closed.shape))
            (g,) = xp.autograd.grad(xp.sum(ours * weigh), y, retain_graph=True)
            (expected,) = xp.autograd.grad(xp.sum(closed * weigh), y, retain_graph=True)
            np.testing.assert_allclose(g.numpy(), expected.numpy(), rtol=1e-6, atol=1e-8)


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("loss", ["soft_l1", "huber", "cauchy", "arctan"])
def test_the_covariance_of_a_robust_fit_is_scipys(loss: str) -> None:
    t, start = np.linspace(0.0, 3.0, 9), [1.0, 1.0, 0.1]
    data = 2.0 * np.exp(-0.8 * t) + 0.15 * np.sin(5.0 * t) + 0.3
    data[4] += 1.0
    more = {"loss": loss, "f_scale": 0.9, "ftol": 1e-14, "xtol": 1e-14, "gtol": 1e-14}

    def fit(y: Any) -> Any:
        return optimize.curve_fit(lambda t, a, b, c: a * xp.exp(-b * t) + c, t, y, p0=start, **more)[1]

    expected = scipys.curve_fit(lambda t, a, b, c: a * np.exp(-b * t) + c, t, data, start, method="trf", **more)[1]
    leaf = xp.tensor(data, requires_grad=True)
    for y in (xp.asarray(data), leaf):  # with SciPy's Jacobian, and with a recorded one
        np.testing.assert_allclose(fit(y).detach().numpy(), expected, rtol=1e-5)
    assert gradcheck(fit, leaf, eps=1e-3, atol=1e-3, rtol=1e-3)  # of a solver, to its tolerance


def test_curve_fit_without_enough_data() -> None:
    with pytest.warns(RuntimeWarning, match="could not be estimated"):
        found, covariance = optimize.curve_fit(_line, np.asarray([0.0, 1.0]), [1.0, 3.0], p0=(0, 0))
    np.testing.assert_allclose(found.detach().numpy(), [1.0, 2.0], rtol=1e-8)
    assert np.isinf(covariance.numpy()).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: optimize.curve_fit(lambda t, *p: t, t, t), TypeError, "give an initial guess `p0`"),
        (lambda t: optimize.curve_fit(_line, t, t, sigma=np.ones(2)), ValueError, "`sigma` must have the shape of `ydata`"),
        (lambda t: optimize.curve_fit(lambda t, a: a, t, t), ValueError, "must return a Tensor of the shape of `ydata`"),
        (lambda t: optimize.curve_fit(lambda t, a: 1.0, t, t), ValueError, "but returned float"),
        (lambda t: optimize.curve_fit(3, t, t), TypeError, "`f` must be callable"),
        (lambda t: optimize.curve_fit(_line, t, t, absolute_sigma=2), TypeError, "`absolute_sigma` must be a bool"),
        (lambda t: optimize.curve_fit(_line, t, "data"), TypeError, "curve_fit"),
    ],
)
def test_curve_fit_refuses(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(np.linspace(0.0, 1.0, 5))
