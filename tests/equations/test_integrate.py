"""Law: solutions of equations have the derivatives of their closed form, of every order, by the adjoint and through the solver's steps."""

from __future__ import annotations

import gc
import importlib
import math
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from xpgrad.autograd import grad, gradcheck, gradgradcheck
from xpgrad.func import grad as gradient, jacfwd, jacrev, jvp, vmap

scipy_integrate: Any = pytest.importorskip("scipy.integrate")
integrate = importlib.import_module("xpgrad.scipy.integrate")

TIMES = [0.2, 0.5, 0.5, 1.1]
TIGHT = {"rtol": 1e-10, "atol": 1e-10}

#: The methods of solution, and how each computes its gradient.
WAYS = [
    ("LSODA", "adjoint"), ("RK45", "adjoint"), ("DOP853", "adjoint"), ("Radau", "adjoint"), ("BDF", "adjoint"),
    ("RK45", "steps"), ("RK23", "steps"), ("DOP853", "steps"),
    ("LSODA", "forward"), ("RK45", "forward"), ("DOP853", "forward"), ("Radau", "forward"), ("BDF", "forward"), ("LSODA", "auto"),
]  # fmt: skip
FAST = [("LSODA", "adjoint"), ("DOP853", "adjoint"), ("DOP853", "steps"), ("LSODA", "forward"), ("DOP853", "forward"), ("LSODA", "auto")]


def field(y: Any, t: Any, p: Any) -> Any:
    """Return the right-hand side of a forced, nonlinear equation with two unknowns."""
    return xp.stack([p[0] * y[1] + xp.sin(3 * t) * p[1], -y[0] - p[2] * y[0] ** 3 - 0.2 * y[1]])


def solve(p: Any, y0: Any, t: Any, way: tuple[str, str], tolerances: dict[str, Any] = TIGHT) -> Any:
    method, how = way
    return integrate.odeint(field, y0, t, (p,), method=method, gradient=how, **tolerances)


def leaves(requires_grad: bool = True) -> tuple[Any, Any, Any]:
    return tuple(xp.tensor(v, requires_grad=requires_grad) for v in ([1.1, 0.4, 0.7], [1.0, -0.5], TIMES))


def exact(p: np.ndarray, y0: np.ndarray, t: Any, w: np.ndarray) -> float:
    """Return a weighted sum of the outputs, computed with high accuracy."""

    def right(s: float, y: np.ndarray) -> list[float]:
        return [p[0] * y[1] + math.sin(3 * s) * p[1], -y[0] - p[2] * y[0] ** 3 - 0.2 * y[1]]

    found = scipy_integrate.solve_ivp(right, (t[0], t[-1]), y0, "DOP853", rtol=1e-13, atol=1e-13, dense_output=True).sol(np.asarray(t))
    return float((found.T * w).sum())


def _write_into_views(y: Any, p: Any) -> Any:
    """Return a result of in-place writes into views, each of which replaces the graph of the whole."""
    out = xp.zeros(2) + p * 0.0
    out[:1] = y[1:]
    out[1:] *= 0.0
    return out


#: Right-hand sides whose result is not a new node (an argument, a leaf, a view, ...), each with its solution at 1.
RETURNED: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]] = {
    "the state": (lambda y, **_: y, lambda y0, p: y0 * math.e),
    "a leaf": (lambda y, p, **_: p, lambda y0, p: y0 + p),
    "what was there before": (lambda y, q, **_: q, lambda y0, p: y0 + 3 * p),
    "a view of the state": (lambda y, **_: xp.flip(y, axis=0), lambda y0, p: y0 * math.cosh(1) + xp.flip(y0, axis=0) * math.sinh(1)),
    "a view of what was there before": (lambda y, q, **_: q[::-1], lambda y0, p: y0 + 3 * xp.flip(p, axis=0)),
    "one of several outputs": (lambda y, q, **_: xp.unstack(xp.stack([y, q]))[1], lambda y0, p: y0 + 3 * p),
    "one of several outputs from before": (lambda y, parts, **_: parts[0], lambda y0, p: y0 + 3 * p),
    "what was written into": (lambda y, p, **_: _write_into_views(y, p), lambda y0, p: xp.stack([y0[0] + y0[1], y0[1]])),
}


@pytest.mark.parametrize("way", FAST, ids=str)
@pytest.mark.parametrize("case", RETURNED)
def test_a_right_side_may_return_what_is_there_already(case: str, way: tuple[str, str]) -> None:
    right, closed = RETURNED[case]
    y0, p = (xp.tensor(v, requires_grad=True) for v in ([1.1, -0.4], [0.3, 0.8]))
    q = 3 * p
    parts = xp.unstack(xp.stack([q, y0.detach()]))
    out = integrate.odeint(lambda y, t: right(y, p=p, q=q, parts=parts), y0, [0.0, 1.0], method=way[0], gradient=way[1], **TIGHT)[1]
    expected = closed(y0, p) + 0.0 * (p + y0)
    np.testing.assert_allclose(out.tolist(), expected.tolist(), rtol=1e-8)
    weights = xp.asarray([0.7, -1.3])
    found = grad(xp.sum(out * weights), [y0, p], allow_unused=True)
    for g, wanted in zip(found, grad(xp.sum(expected * weights), [y0, p])):
        np.testing.assert_allclose((xp.zeros(2) if g is None else g).tolist(), wanted.tolist(), rtol=1e-8, atol=1e-9)


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_values_and_gradients_are_those_of_differences(way: tuple[str, str]) -> None:
    p, y0, t = leaves()
    w = np.random.default_rng(1).normal(size=(4, 2))
    tolerances = TIGHT if way[0] not in ("BDF", "RK23") else {"rtol": 1e-7, "atol": 1e-9}
    out = solve(p, y0, t, way, tolerances)
    found = grad(xp.sum(out * w), (p, y0, t))
    numbers = [v.detach().numpy() for v in (p, y0, t)]
    assert float(xp.sum(out * w).detach()) == pytest.approx(exact(*numbers, w), abs=1e-5)
    for k, g in enumerate(found):
        for i in range(len(numbers[k])):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [v.copy() for v in numbers]
                moved[k][i] += step
                if k == 2:  # each output depends on its time, and the start on the first one
                    order = np.argsort(moved[2], kind="stable")
                    ends.append(exact(*moved[:2], moved[2][order], w[order]))
                else:
                    ends.append(exact(*moved, w))
            np.testing.assert_allclose(float(g[i]), (ends[0] - ends[1]) / 2e-5, rtol=2e-4, atol=2e-4)


@pytest.mark.slow
@pytest.mark.parametrize("way", FAST, ids=str)
def test_second_derivatives(way: tuple[str, str]) -> None:
    p, y0, _ = leaves()
    t = xp.tensor([0.2, 0.6, 1.0], requires_grad=True)
    assert gradcheck(lambda *args: solve(*args, way), (p, y0, t), atol=1e-5)
    assert gradgradcheck(lambda *args: solve(*args, way), (p, y0, t), atol=1e-4, rtol=1e-3)


@pytest.mark.slow
def test_the_ways_agree_in_the_third_derivative() -> None:
    found = []
    for way in FAST[1:]:
        y0 = xp.tensor([1.0, -0.5])

        def f(c: Any, way: Any = way, y0: Any = y0) -> Any:
            return xp.sum(solve(xp.stack([c, xp.ones_like(c), c * c]), y0, [0.0, 0.8], way))

        found.append(float(gradient(gradient(gradient(f)))(xp.tensor(0.9))))
    assert found[0] == pytest.approx(found[1], rel=1e-4)


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 3), st.integers(2, 5), st.sampled_from(FAST), st.booleans(), st.integers(0, 1000))
def test_linear_equations_have_their_closed_form(n: int, count: int, way: tuple[str, str], falling: bool, seed: int) -> None:
    """``y' = -k y`` has the solution ``y0 exp(-k (t - t0))`` in any shape, with times in either direction."""
    rng = np.random.default_rng(seed)
    k, y0 = (xp.tensor(rng.uniform(0.2, 1.0, (n, 2)), requires_grad=True) for _ in range(2))
    t = np.sort(rng.uniform(0, 1.5, count))[:: -1 if falling else 1].copy()
    w = rng.normal(size=(count, n, 2))
    out = integrate.odeint(lambda y, s: -k * y, y0, t, method=way[0], gradient=way[1], **TIGHT)
    closed = y0 * xp.exp(-k * xp.asarray(t - t[0]).reshape((count, 1, 1)))
    np.testing.assert_allclose(out.detach(), closed.detach(), rtol=1e-6)
    for a, b in zip(grad(xp.sum(out * w), (k, y0)), grad(xp.sum(closed * w), (k, y0))):
        np.testing.assert_allclose(a, b, atol=1e-6)


# -- forward mode, batches -----------------------------------------------------------------------------------------------------


def test_forward_mode_goes_through_the_steps() -> None:
    p, y0, t = leaves(requires_grad=False)
    f = lambda p, way=("DOP853", "adjoint"): solve(p, y0, t, way)  # noqa: E731
    np.testing.assert_allclose(jacfwd(f)(p), jacrev(f)(p), atol=1e-6)
    _, tangent = jvp(lambda s: solve(p, y0, xp.stack([t[0], s]), ("RK45", "adjoint")), (t[-1],), (xp.asarray(1.0),))
    np.testing.assert_allclose(tangent[-1], field(solve(p, y0, t, FAST[0])[-1], t[-1], p), atol=1e-6)
    with pytest.raises(NotImplementedError, match="forward mode goes through the steps"):
        jacfwd(lambda p: f(p, FAST[0]))(p)


@pytest.mark.slow
def test_jacobians_of_gradients_and_of_jacobians() -> None:
    p, y0, t = leaves(requires_grad=False)
    one, *others = (jacrev(gradient(lambda p, way=way: xp.sum(solve(p, y0, t, way) ** 2)))(p) for way in FAST[1:])
    for other in others:
        np.testing.assert_allclose(one, other, atol=1e-5)
    with pytest.raises(NotImplementedError, match="gradient='steps'"):  # a batch of cotangents, differentiated again
        jacrev(jacrev(lambda p: solve(p, y0, t, FAST[0])))(p)
    one, *others = (jacrev(jacrev(lambda p, way=way: solve(p, y0, t, way)))(p) for way in FAST[2:])
    assert one.shape == (4, 2, 3, 3)
    for other in others:
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_batches_are_refused() -> None:
    with pytest.raises(RuntimeError, match="inside `vmap`"):
        vmap(lambda y: integrate.odeint(lambda y, t: -y, y, [0.0, 1.0]))(xp.ones((3, 2)))


# -- what it depends on ------------------------------------------------------------------------------------------------------------


def test_what_the_function_closes_over_gets_its_gradient() -> None:
    a, b = (xp.tensor(v, requires_grad=True) for v in (0.5, 2.0))
    inner = b * b  # not a leaf: the gradient continues through its history
    y = integrate.odeint(lambda y, t: -a * y + inner, xp.tensor(1.0), [0.0, 0.7])
    closed = inner / a + (1.0 - inner / a) * xp.exp(-a * 0.7)
    for found, wanted in zip(grad(y[-1], (a, b), retain_graph=True), grad(closed, (a, b))):
        assert float(found) == pytest.approx(float(wanted), rel=1e-6)


class Push:
    """A right-hand side that depends on a parameter for a while only."""

    __slots__ = ("begin", "end", "push")

    def __init__(self, push: Any, begin: float, end: float) -> None:
        self.push, self.begin, self.end = push, begin, end

    def __call__(self, y: Any, t: Any) -> Any:
        return self.push + 0.0 * y if self.begin < float(t) < self.end else 0.0 * y


@pytest.mark.parametrize("start", [False, True], ids=["nothing else counts", "the start counts"])
@pytest.mark.parametrize(("way", "inside"), [("odeint", 0.2), ("RK45", 0.2), ("Radau", 0.2), ("RK45", 0.004)])
def test_a_parameter_that_counts_between_outputs_only_is_no_silent_zero(way: str, inside: float, start: bool) -> None:
    a, y0 = xp.tensor(2.0, requires_grad=True), xp.tensor([1.0], requires_grad=start)
    right = Push(a, 0.5, 0.5 + inside)
    hmax = 0.02 if inside > 0.1 else 0.002

    def solve() -> Any:
        if way == "odeint":
            return integrate.odeint(right, y0, [0.0, 1.0], hmax=hmax)[-1]
        return integrate.solve_ivp(lambda t, y: right(y, t), (0.0, 1.0), y0, way, [0.0, 1.0], max_step=hmax).y[:, -1]

    if inside < 0.1:  # too short for the samples of the evaluations
        with pytest.raises(RuntimeError, match="Ask for more outputs"):
            solve().sum().backward()
        with xp.no_grad():
            assert float(solve()[0]) == pytest.approx(1.0 + 2.0 * inside, rel=1e-2)
        return
    solve().sum().backward()
    assert float(a.grad) == pytest.approx(inside, rel=0.1)
    a.grad = None
    integrate.odeint(right, y0, np.linspace(0.0, 1.0, 41), hmax=0.01)[-1].backward()
    assert float(a.grad) == pytest.approx(inside, rel=0.05)


@pytest.mark.parametrize("way", FAST[:2], ids=str)
def test_a_parameter_written_to_afterwards_is_noticed(way: tuple[str, str]) -> None:
    p, y0, t = leaves()
    loss = xp.sum(solve(p, y0, t, way))
    with xp.no_grad():
        p.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert p.grad is None


def test_complex_parameters() -> None:
    c = xp.tensor(0.3 + 0.4j, requires_grad=True)
    size = lambda: xp.real(c) ** 2 + 2 * xp.imag(c)  # noqa: E731
    y = integrate.odeint(lambda y, t: -size() * y, xp.tensor(1.0), [0.0, 1.0])
    (found,) = grad(y[-1], c, create_graph=False)
    (wanted,) = grad(xp.exp(-size()), c)
    assert complex(found) == pytest.approx(complex(wanted), rel=1e-6)
    y = integrate.odeint(lambda y, t: -size() * y, xp.tensor(1.0), [0.0, 1.0])
    with pytest.raises(NotImplementedError, match="complex parameters"):
        grad(y[-1], c, create_graph=True)


def test_stiff_and_dissipative_equations() -> None:
    """The solution is never integrated backward in time, where for this equation it would grow by exp(500)."""
    k = xp.tensor(100.0, requires_grad=True)
    y = integrate.odeint(lambda y, t: -k * (y - xp.cos(t)), xp.tensor(0.0), [0.0, 5.0])
    y[-1].backward()
    h = 1e-3
    exact_at = lambda k: (k * k * math.cos(5.0) + k * math.sin(5.0)) / (1 + k * k)  # noqa: E731
    assert float(k.grad) == pytest.approx((exact_at(100 + h) - exact_at(100 - h)) / (2 * h), rel=1e-3)


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("way", FAST, ids=str)
def test_right_sides_that_are_gradients_themselves(way: tuple[str, str]) -> None:
    """Right-hand sides may be gradients: Hamilton's equations of a pendulum, by `func.grad` and by a nested pass."""
    k, y0 = xp.tensor(1.3, requires_grad=True), xp.tensor([1.0, 0.0], requires_grad=True)

    def energy(y: Any) -> Any:
        return 0.5 * y[1] ** 2 + k * (1 - xp.cos(y[0]))

    def transform(y: Any, t: Any) -> Any:
        g = gradient(energy)(y)
        return xp.stack([g[1], -g[0]])

    def by_a_pass(y: Any, t: Any) -> Any:
        with xp.enable_grad():
            z = y if y.requires_grad else y.detach().requires_grad_()
            (g,) = grad(energy(z), z, create_graph=True)
        return xp.stack([g[1], -g[0]])

    found = []
    for right in (lambda y, t: xp.stack([y[1], -k * xp.sin(y[0])]), transform, by_a_pass):
        if right is by_a_pass and way[1] == "forward":
            with pytest.raises(RuntimeError, match="the same derivatives in forward and in reverse mode"):  # it detaches tangents
                integrate.odeint(right, y0, [0.0, 1.0], method=way[0], gradient=way[1])
            continue
        y = integrate.odeint(right, y0, [0.0, 1.0], method=way[0], gradient=way[1])
        first = grad(xp.sum(y[-1]), (k, y0), create_graph=True)
        found.append([v.detach().numpy() for v in (*first, *grad(first[0], k))])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_graphs_are_freed() -> None:
    p, y0, t = leaves()
    out = solve(p, y0, t, FAST[0])
    assert out.grad_fn.name() == "FlowBackward0"
    loss = xp.sum(out)
    loss.backward(retain_graph=True)
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    seen = weakref.ref(out.grad_fn)
    del out, loss
    gc.collect()
    assert seen() is None


def test_without_gradients_nothing_is_recorded() -> None:
    p, y0, t = leaves()
    with xp.no_grad():
        assert not solve(p, y0, t, FAST[0]).requires_grad
    assert not solve(p.detach(), y0.detach(), TIMES, FAST[0]).requires_grad


def test_many_parameters_and_many_outputs() -> None:
    """Gradients are right for more parameters than are integrated with the adjoint, and more outputs than are sampled."""
    rng = np.random.default_rng(0)
    w, y0, t = xp.tensor(rng.normal(size=(50, 50)) * 0.1, requires_grad=True), xp.asarray(rng.normal(size=50)), np.linspace(0, 1, 80)
    found = []
    for way in (("RK45", "adjoint"), ("RK45", "steps")):
        y = integrate.odeint(lambda y, t: xp.tanh(w @ y), y0, t, method=way[0], gradient=way[1], rtol=1e-8, atol=1e-8)
        (g,) = grad(xp.sum(y[-1] ** 2), w)
        found.append(g.numpy())
    np.testing.assert_allclose(*found, atol=1e-6)


# -- solve_ivp ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["adjoint", "steps", "forward"])
@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853"])
def test_solve_ivp_is_scipys(method: str, how: str) -> None:
    rate = xp.tensor(0.7, requires_grad=True)
    for t_eval in (None, [0.0, 0.3, 1.0], [0.5]):
        ours = integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 2.0), [1.0, 2.0], method, t_eval, dense_output=True, gradient=how)
        theirs = scipy_integrate.solve_ivp(lambda t, y: -0.7 * y, (0.0, 2.0), [1.0, 2.0], method, t_eval, dense_output=True)
        np.testing.assert_allclose(ours.t, theirs.t)
        np.testing.assert_allclose(ours.y.detach(), theirs.y, rtol=1e-12)
        assert ours.nfev >= 1
        assert ours.sol(0.4).shape == (2,)
        times = [0.9, 0.4, 1.3, 0.4]
        np.testing.assert_allclose(ours.sol(times).detach(), theirs.sol(times), rtol=1e-12)


@pytest.mark.parametrize("how", ["adjoint", "steps", "forward"])
def test_solve_ivp_without_outputs(how: str) -> None:
    """None of `t_eval` is in a span of length 0, or before a terminal event: as SciPy documents, there are no columns."""

    def stop(t: Any, y: Any) -> Any:
        return y[0] - 0.5

    stop.terminal = True  # type: ignore[attr-defined]
    y0 = xp.tensor([1.0, 2.0], requires_grad=True)
    for end, t_eval, events in ((0.0, [0.0], None), (1.0, [0.9], stop), (1.0, xp.tensor([0.9], requires_grad=True), stop)):
        found = integrate.solve_ivp(lambda t, y: -y, (0.0, end), y0, t_eval=t_eval, events=events, gradient=how)
        assert (found.t.shape, found.y.shape, found.success) == ((0,), (2, 0), True)
        if events is not None:
            np.testing.assert_allclose(grad(found.t_events[0].sum(), y0)[0], [1.0, 0.0], atol=1e-3)


def test_dense_output_is_differentiable_in_the_time_too() -> None:
    rate, t = xp.tensor(0.7, requires_grad=True), xp.tensor([1.3, 0.4], requires_grad=True)
    for how in ("adjoint", "steps", "forward"):
        found = integrate.solve_ivp(lambda t, y: -rate * y, (0.0, 2.0), [1.0], "DOP853", dense_output=True, gradient=how, **TIGHT)
        g, gt = grad(xp.sum(found.sol(t)), (rate, t))
        times = np.asarray([1.3, 0.4])
        assert float(g) == pytest.approx(float((-times * np.exp(-0.7 * times)).sum()), rel=1e-6)
        np.testing.assert_allclose(gt, -0.7 * np.exp(-0.7 * times), rtol=1e-5)
    with pytest.raises(ValueError, match="known between"):
        found.sol(2.5)


def test_the_ends_of_the_span_are_differentiable() -> None:
    begin, end = (xp.tensor(v, requires_grad=True) for v in (0.5, 1.5))
    for how in ("adjoint", "steps", "forward"):
        found = integrate.solve_ivp(lambda t, y: t * y, (begin, end), [2.0], "DOP853", gradient=how, **TIGHT)
        value = 2 * math.exp((1.5**2 - 0.5**2) / 2)
        a, b = grad(found.y[0, -1], (begin, end))
        assert (float(a), float(b)) == pytest.approx((-0.5 * value, 1.5 * value), rel=1e-6)


@pytest.mark.parametrize("way", FAST, ids=str)
def test_each_of_equal_times_has_its_own_derivatives(way: tuple[str, str]) -> None:
    weights = xp.asarray([0.3, 0.7, 1.1, -0.3, 0.6, 0.2])

    def closed(t: Any) -> Any:
        return weights @ (2.0 * xp.exp((t[0] ** 2 - t**2) / 2))

    t = xp.tensor([0.5, 0.5, 0.8, 0.8, 1.3, 1.3], requires_grad=True)
    y = integrate.odeint(lambda y, t: -t * y, 2.0, t, method=way[0], gradient=way[1], **TIGHT)
    (g,) = grad(weights @ y, t, create_graph=True)
    np.testing.assert_allclose(g.detach(), gradient(closed)(t.detach()), rtol=1e-7)
    rows = [grad(element, t, retain_graph=True)[0] for element in g]
    np.testing.assert_allclose(xp.stack(rows), jacrev(gradient(closed))(t.detach()), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("how", ["adjoint", "steps", "forward"])
def test_outputs_at_the_ends_of_a_span_that_moves(how: str) -> None:
    def solve_to(t: Any, **options: Any) -> Any:
        return integrate.solve_ivp(lambda t, y: -t * y, (t[0], t[1]), [2.0], "DOP853", gradient=how, **TIGHT, **options).y[0]

    t, ends = xp.asarray([0.5, 1.3]), xp.asarray([1.3, 0.5])
    for begin, outputs in ((t, [0.5]), (t, [0.5, 1.3]), (ends, [1.3, 0.7, 0.5])):  # the first output stays where it is

        def closed(t: Any, outputs: Any = outputs) -> Any:
            return xp.sum(2.0 * xp.exp((t[0] ** 2 - xp.asarray(outputs) ** 2) / 2))

        found = gradient(lambda t, outputs=outputs: xp.sum(solve_to(t, t_eval=outputs)))(begin)
        np.testing.assert_allclose(found, gradient(closed)(begin), rtol=1e-6, atol=1e-12)
    leaf = xp.tensor([0.5, 1.3], requires_grad=True)
    (g,) = grad(solve_to(leaf)[-1], leaf, create_graph=True)
    rows = [grad(element, leaf, retain_graph=True)[0] for element in g]
    np.testing.assert_allclose(xp.stack(rows), jacrev(gradient(lambda t: 2.0 * xp.exp((t[0] ** 2 - t[1] ** 2) / 2)))(t), rtol=1e-6)


def test_adjoint_gradients_take_as_many_steps_as_solutions() -> None:
    def solve_over(k: Any) -> Any:
        options: dict[str, Any] = {"gradient": "adjoint", "rtol": 1e-10, "atol": 1e-12}
        return integrate.solve_ivp(lambda t, y: -20 * k * xp.sin(20 * t) * y, (0.0, 4.0), [1.0], "LSODA", [4.0], **options).y[0, 0]

    k, change = xp.asarray(0.5), math.cos(80.0) - 1.0
    assert gradient(solve_over)(k).item() == pytest.approx(change * math.exp(0.5 * change), rel=1e-6)


@pytest.mark.parametrize("way", FAST, ids=str)
def test_derivatives_do_not_step_over_what_the_largest_step_finds(way: tuple[str, str]) -> None:
    """Law: the largest step holds for derivatives of every order: the equation is that of a short pulse."""

    def solve_over(k: Any) -> Any:
        def field(t: Any, y: Any) -> Any:
            return -k * y * y * xp.exp(-(((t - 5.0) / 0.1) ** 2))

        options: dict[str, Any] = {"max_step": 0.1, "rtol": 1e-8, "atol": 1e-8}
        return integrate.solve_ivp(field, (0.0, 10.0), [1.0], way[0], [10.0], gradient=way[1], **options).y[0, 0]

    def closed(k: Any) -> Any:
        return 1.0 / (1.0 + k * 0.1 * math.sqrt(math.pi))

    k = xp.tensor(3.0, requires_grad=True)
    (g,) = grad(solve_over(k), k, create_graph=True)
    assert float(g.detach()) == pytest.approx(float(gradient(closed)(k.detach())), rel=1e-5)
    assert float(grad(g, k)[0]) == pytest.approx(float(gradient(gradient(closed))(k.detach())), rel=1e-4)


def _ground(t: Any, y: Any) -> Any:
    return y[0]


_ground.terminal, _ground.direction = True, -1  # type: ignore[attr-defined]


def _throw(g: Any, v: Any, events: Any = _ground, **options: Any) -> Any:
    """Throw a ball upwards from height 1, with speed `v` and gravity `g`."""
    start = xp.stack([xp.ones_like(v), v])
    return integrate.solve_ivp(lambda t, y: xp.stack([y[1], -g]), (0.0, 10.0), start, events=events, **(TIGHT | options))


def _landing(g: Any, v: Any) -> Any:
    return (v + xp.sqrt(v * v + 2 * g)) / g


EVENT_OPTIONS: list[dict[str, Any]] = [
    {}, {"method": "DOP853", "gradient": "steps"}, {"method": "LSODA"}, {"method": "Radau", "rtol": 1e-8, "atol": 1e-8},
    {"t_eval": [0.0, 0.1, 0.7]}, {"gradient": "forward"}, {"method": "LSODA", "gradient": "forward"},
    {"method": "BDF", "gradient": "forward", "t_eval": [0.0, 0.1, 0.7], "rtol": 1e-9, "atol": 1e-9},
]  # fmt: skip


@pytest.mark.parametrize("end", [10.0, -10.0])
@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853"])
def test_the_state_of_a_terminal_event_is_scipys_through_the_steps(method: str, end: float) -> None:
    def event(t: Any, y: Any) -> Any:
        return y[0] - 0.3

    event.terminal = True  # type: ignore[attr-defined]
    rate = xp.tensor(1.0, requires_grad=True)
    options: dict[str, Any] = {"method": method, "events": event, "dense_output": True}  # with SciPy's loose tolerances
    ours = integrate.solve_ivp(lambda t, y: [y[1], -rate * y[0]], (0.0, end), [1.0, 0.0], gradient="steps", **options)
    theirs = scipy_integrate.solve_ivp(lambda t, y: [y[1], -y[0]], (0.0, end), [1.0, 0.0], **options)
    np.testing.assert_allclose(ours.y.detach(), theirs.y, rtol=1e-11)
    np.testing.assert_allclose(ours.y_events[0].detach(), theirs.y_events[0], rtol=1e-11)
    times = [theirs.t[-1], theirs.t[-2] * 0.1 + theirs.t[-1] * 0.9]
    np.testing.assert_allclose(ours.sol(times).detach(), theirs.sol(times), rtol=1e-11)


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("options", EVENT_OPTIONS, ids=str)
def test_the_time_and_the_state_of_a_terminal_event_are_differentiable(options: Any) -> None:
    g, v = xp.tensor(9.81, requires_grad=True), xp.tensor(2.0, requires_grad=True)
    found = _throw(g, v, **options)
    assert found.status == 1
    ((time,),), (state,) = found.t_events, found.y_events
    expected = _landing(g, v)
    pairs = [(time, expected), (state[0, 1], v - g * expected)]
    if "t_eval" not in options:  # the last output is that of the event
        pairs.append((found.y[1, -1], v - g * expected))
        assert found.t[-1] == time.item()
    for mine, other in pairs:
        assert mine.item() == pytest.approx(other.item(), rel=1e-7)
        first = grad(mine, (g, v), create_graph=True)
        wanted = grad(other, (g, v), create_graph=True)
        assert [x.item() for x in first] == pytest.approx([x.item() for x in wanted], rel=1e-6)
        second = [x.item() for x in grad(first[0] + first[1], (g, v), retain_graph=True)]
        assert second == pytest.approx([x.item() for x in grad(wanted[0] + wanted[1], (g, v), retain_graph=True)], rel=1e-5)
    (still,) = grad(state[0, 0], g)
    assert abs(still.item()) < 1e-8  # the height at the landing is zero, whatever the gravity is


def test_forward_mode_differentiates_events() -> None:
    args = (xp.tensor(9.81), xp.tensor(2.0)), (xp.tensor(1.0), xp.tensor(0.5))
    _, mine = xp.func.jvp(lambda g, v: _throw(g, v, method="DOP853").t_events[0], *args)
    _, wanted = xp.func.jvp(_landing, *args)
    assert mine[0].item() == pytest.approx(wanted.item(), rel=1e-6)


MODES: dict[str, Callable[[Any], Any]] = {
    "jacrev": xp.func.jacrev, "jacfwd": xp.func.jacfwd,
    "one by one": lambda f: lambda p: xp.autograd.functional.jacobian(f, p, create_graph=True),
}  # fmt: skip


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("options", [{}, {"method": "DOP853", "gradient": "steps"}, {"gradient": "forward"}], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_jacobians_and_hessians_of_events(mode: str, options: Any) -> None:
    """The formulas of several outputs at once evaluate the equation of the times outside of the batch."""
    p = xp.tensor([9.81, 2.0])

    def thrown(p: Any) -> Any:
        found = _throw(p[0], p[1], **options)
        return xp.concat([found.t_events[0], found.y_events[0][0, 1:]])

    def closed(p: Any) -> Any:
        time = _landing(p[0], p[1])
        return xp.stack([time, p[1] - p[0] * time])

    np.testing.assert_allclose(MODES[mode](thrown)(p).detach().numpy(), xp.func.jacrev(closed)(p).numpy(), rtol=1e-6)
    first = xp.func.grad(lambda p: thrown(p)[0])
    wanted = xp.func.hessian(lambda p: closed(p)[0])(p)
    np.testing.assert_allclose(MODES[mode](first)(p).detach().numpy(), wanted.numpy(), rtol=1e-5)
    np.testing.assert_allclose(xp.func.hessian(lambda p: thrown(p)[0])(p).numpy(), wanted.numpy(), rtol=1e-5)


def test_tangents_of_many_gradients_of_events_go_through_the_steps() -> None:
    p = xp.tensor([9.81, 2.0]), xp.tensor([1.0, 0.5])

    def tangent(**options: Any) -> Any:
        return jvp(jacrev(lambda p: xp.concat([_throw(p[0], p[1], **options).t_events[0]] * 2)), (p[0],), (p[1],))[1]

    wanted = jvp(jacrev(lambda p: xp.stack([_landing(p[0], p[1])] * 2)), (p[0],), (p[1],))[1]
    for choice in ("steps", "adjoint"):
        np.testing.assert_allclose(tangent(gradient=choice).numpy(), wanted.numpy(), rtol=1e-5)
    for choice in ("auto", "forward"):
        with pytest.raises(NotImplementedError, match=r"one by one"):
            tangent(gradient=choice)


def test_events_of_several_functions() -> None:
    level, rate = xp.tensor(0.5, requires_grad=True), xp.tensor(2.0, requires_grad=True)

    def crosses(t: Any, y: Any) -> Any:  # sin(rate t) = level, upwards and downwards
        return y["a"] - level

    def begins(t: Any, y: Any) -> Any:  # zero at the start already, and at every half turn
        return y["a"]

    def never(t: Any, y: Any) -> Any:
        return 1.0

    def at_a_time(t: Any, y: Any) -> Any:
        return t - 1.0

    found = integrate.solve_ivp(
        lambda t, y: {"a": rate * y["b"], "b": -rate * y["a"]}, (0.0, 3.0), {"a": xp.tensor(0.0), "b": xp.tensor(1.0)}, "DOP853",
        events=[crosses, begins, never, at_a_time], **TIGHT,
    )  # fmt: skip
    assert [len(t) for t in found.t_events] == [2, 2, 0, 1]
    assert found.y_events[2]["a"].shape == (0,)
    up = xp.asin(level) / rate
    for time, expected in zip(found.t_events[0], (up, math.pi / rate - up)):
        assert time.item() == pytest.approx(expected.item(), rel=1e-8)
        mine, wanted = (grad(t, (level, rate), retain_graph=True) for t in (time, expected))
        assert [x.item() for x in mine] == pytest.approx([x.item() for x in wanted], rel=1e-6)
    (of_half_turn,) = grad(found.t_events[1][1], rate, retain_graph=True)
    assert of_half_turn.item() == pytest.approx(-math.pi / 4, rel=1e-6)
    (of_a_time,) = grad(found.y_events[3]["a"][0], rate)
    assert of_a_time.item() == pytest.approx(math.cos(2.0), rel=1e-6)


def test_a_state_in_single_precision_has_events_as_well() -> None:
    g = xp.tensor(9.81, dtype=xp.float32, requires_grad=True)
    found = _throw(g, xp.tensor(2.0, dtype=xp.float32), rtol=1e-6, atol=1e-6)
    time, speed = found.t_events[0][0], found.y[1, -1]
    assert (time.dtype, speed.dtype) == (xp.float32, xp.float32)
    assert grad(time, g)[0].item() == pytest.approx(-0.050309, rel=1e-4)


def test_events_backwards_in_time() -> None:
    rate = xp.tensor(0.5, requires_grad=True)

    def doubled(t: Any, y: Any) -> Any:
        return y[0] - 2.0

    found = integrate.solve_ivp(lambda t, y: -rate * y, (1.0, -9.0), [1.0], events=doubled, **TIGHT)
    time = found.t_events[0][0]
    assert time.item() == pytest.approx(1 - math.log(2) / 0.5)
    assert grad(time, rate)[0].item() == pytest.approx(math.log(2) / 0.25, rel=1e-6)


def test_an_event_without_a_rate_has_no_derivative() -> None:
    height = xp.tensor(0.5, requires_grad=True)

    def step(t: Any, y: Any) -> Any:
        return xp.sign(y[0] - 1.0)

    found = integrate.solve_ivp(lambda t, y: xp.ones_like(y), (0.0, 2.0), xp.stack([height]), events=step)
    (time,) = found.t_events[0]
    assert time.item() == pytest.approx(0.5)
    with pytest.raises(RuntimeError, match=r"the event at t = 0.\d+ is not differentiable"):
        grad(time, height)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("times", [[1.0], [1.0, 1.0, 1.0]])
def test_an_interval_without_length_has_the_start_as_its_solution(times: list[float], way: tuple[str, str]) -> None:
    p, y0, _ = leaves()
    t = xp.tensor(times, requires_grad=True)
    y = solve(p, y0, t, way)
    assert y.tolist() == [y0.tolist()] * len(times)
    found = grad(xp.sum(y[-1]), (p, y0, t), allow_unused=True)
    assert found[0] is None or found[0].tolist() == [0.0] * 3
    assert found[1].tolist() == [1.0, 1.0]
    slope = 0.0 if len(times) == 1 else xp.sum(field(y0, t[0], p)).item()
    np.testing.assert_allclose(found[2], ([-slope, *[0.0] * (len(times) - 2)] if len(times) > 1 else []) + [slope], atol=1e-12)


def test_states_are_trees() -> None:
    start = {"place": xp.tensor([[1.0, 0.0]], requires_grad=True), "speed": (xp.tensor(0.5, requires_grad=True),)}

    def swing(y: Any, t: Any) -> Any:
        return {"place": -y["place"] * y["speed"][0], "speed": (-y["speed"][0],)}

    out = integrate.odeint(swing, start, [0.0, 0.5, 1.0])
    assert out["place"].shape == (3, 1, 2)
    assert out["speed"][0].shape == (3,)
    xp.sum(out["place"]).backward()
    assert start["place"].grad.shape == (1, 2)
    found = integrate.solve_ivp(lambda t, y: swing(y, t), (0.0, 1.0), start)
    assert found.y["place"].shape == (1, 2, len(found.t))
    with pytest.raises(ValueError, match="in structure and shapes"):
        integrate.odeint(lambda y, t: {"speed": y["speed"], "place": y["place"]}, start, [0.0, 1.0])


def test_on_every_backend(xpgrad_device: str) -> None:
    y0, rate = (xp.tensor(v, device=xpgrad_device, requires_grad=True) for v in ([1.0, 2.0], 0.5))
    single = y0.dtype.itemsize == 4
    for how in ("adjoint", "steps", "forward", "auto"):
        y = integrate.odeint(lambda y, t: -rate * y * t, y0, [0.0, 1.0, 2.0], method="DOP853", gradient=how, rtol=1e-6, atol=1e-6)
        assert y.dtype == y0.dtype
        assert y.device == y0.device
        g, gr = grad(xp.sum(y[-1]), (y0, rate))
        tolerance = 2e-3 if single else 1e-4
        np.testing.assert_allclose(g.numpy(), np.full(2, math.exp(-1.0)), rtol=tolerance)
        assert float(gr) == pytest.approx(-2.0 * 3.0 * math.exp(-1.0), rel=tolerance)


def test_a_number_on_the_host_beside_arrays_elsewhere(xpgrad_device: str) -> None:
    rate = xp.tensor(0.5, requires_grad=True)
    y0 = xp.tensor([1.0, 2.0], device=xpgrad_device)
    for create in (False, True):
        y = integrate.odeint(lambda y, t: -rate * y, y0, [0.0, 1.0], rtol=1e-6, atol=1e-6)
        (found,) = grad(xp.sum(y[-1]), rate, create_graph=create)
        assert found.device == rate.device
        assert float(found.detach()) == pytest.approx(-3 * math.exp(-0.5), rel=1e-3)
    (second,) = grad(found, rate)
    assert float(second) == pytest.approx(3 * math.exp(-0.5), rel=1e-3)


# -- bad input ------------------------------------------------------------------------------------------------------------------------


def decay(y: Any, t: Any) -> Any:
    return -y


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: integrate.odeint(3, [1.0], [0.0, 1.0]), TypeError, "func"),
    "integers": (lambda: integrate.odeint(decay, xp.asarray([1, 2]), [0.0, 1.0]), TypeError, "give 1.0, not 1"),
    "complex": (lambda: integrate.odeint(decay, xp.asarray([1j]), [0.0, 1.0]), TypeError, "real and the imaginary part"),
    "no order": (lambda: integrate.odeint(decay, [1.0], [0.0, 2.0, 1.0]), ValueError, "must rise or fall"),
    "no times": (lambda: integrate.odeint(decay, [1.0], []), ValueError, "vector of finite times"),
    "times are nan": (lambda: integrate.odeint(decay, [1.0], [0.0, math.nan]), ValueError, "vector of finite times"),
    "a time": (lambda: integrate.odeint(decay, [1.0], 1.0), ValueError, "vector of finite times"),
    "another shape": (lambda: integrate.odeint(lambda y, t: y[:1], [1.0, 2.0], [0.0, 1.0]), ValueError, "shape"),
    "complex change": (lambda: integrate.odeint(lambda y, t: y * 1j, [1.0, 2.0], [0.0, 1.0]), TypeError, "real numbers"),
    "args": (lambda: integrate.odeint(decay, [1.0], [0.0, 1.0], 3.0), TypeError, "`args` must be a tuple"),
    "method": (lambda: integrate.odeint(decay, [1.0], [0.0, 1.0], method="Euler"), ValueError, "LSODA"),
    "gradient": (lambda: integrate.odeint(decay, [1.0], [0.0, 1.0], gradient="both"), ValueError, "'forward', 'adjoint', 'steps'"),
    "steps": (lambda: integrate.odeint(decay, [1.0], [0.0, 1.0], gradient="steps"), ValueError, "DOP853"),
    "failure": (lambda: integrate.odeint(decay, [1.0], [0.0, 1.0], failure="no"), ValueError, "'warn'"),
    "tolerance": (lambda: integrate.odeint(decay, [1.0], [0.0, 1.0], atol=[1e-3, 1e-3]), ValueError, "`atol`"),
    "span": (lambda: integrate.solve_ivp(decay, 2.0, [1.0]), ValueError, "t_span"),
    "blows up": (lambda: integrate.solve_ivp(lambda t, y: y * y, (0.0, 2.0), [1.0]), RuntimeError, "did not reach the end"),
    "too many steps": (lambda: integrate.odeint(lambda y, t: -1e6 * y, [1.0], [0.0, 9.0], mxstep=2), RuntimeError, "did not reach the end"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        call()


def test_a_failure_can_be_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match="did not reach the end"):
        found = integrate.solve_ivp(lambda t, y: y * y, (0.0, 2.0), [1.0], failure="warn")
    assert not found.success


def test_an_error_of_the_function_comes_out() -> None:
    with pytest.raises(ZeroDivisionError):
        integrate.odeint(lambda y, t: y * (1 // 0), [1.0], [0.0, 1.0])
