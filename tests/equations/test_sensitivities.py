"""Law: forward sensitivities are derivatives of the solution of the function that is called now, whatever was compiled before."""

from __future__ import annotations

import functools
import gc
import importlib
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.autograd import grad
from xpgrad.func import hessian, jacfwd, jacrev, jvp
from xpgrad.scipy import optimize

scipy_integrate: Any = pytest.importorskip("scipy.integrate")
scipy_optimize: Any = importlib.import_module("scipy.optimize")
integrate = importlib.import_module("xpgrad.scipy.integrate")

TIGHT = {"rtol": 1e-10, "atol": 1e-10}
TIMES = np.linspace(0.0, 15.0, 40)
RATES = [1.0, 0.1, 1.5, 0.075]


def hunters(y: Any, t: Any, p: Any) -> Any:
    """Return the right-hand side of the Lotka-Volterra equation."""
    return xp.stack([p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]])


def plain_hunters(y: Any, t: Any, p: Any) -> list[Any]:
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def robertson(y: Any, t: Any, p: Any) -> Any:
    """Return the right-hand side of a stiff equation whose Jacobian is not symmetric."""
    a, b, c = p[0] * y[0], p[1] * 1e4 * y[1] * y[2], p[2] * 3e7 * y[1] ** 2
    stack = xp.stack if isinstance(a, xp.Tensor) else np.stack
    return stack([b - a, a - b - c, c])


@functools.cache
def differences(right: Any, y0: Any, t: Any, p: Any, step: float, method: str) -> np.ndarray:
    """Return the Jacobian of SciPy's solution by the parameters, by central differences of fourth order."""

    p = np.asarray(p)

    def solution(q: Any) -> Any:
        return scipy_integrate.solve_ivp(lambda s, y: right(y, s, q), (t[0], t[-1]), y0, method, t_eval=t, rtol=1e-11, atol=1e-13).y.T

    columns = []
    for k, v in enumerate(p):
        e = np.eye(len(p))[k] * step * v
        one, two = (solution(p + i * e) - solution(p - i * e) for i in (1, 2))
        columns.append((8 * one - two) / (12 * step * v))
    return np.stack(columns, axis=-1)


def names(y: Any) -> str:
    return str(y.grad_fn.name())


# -- values and derivatives ----------------------------------------------------------------------------------------------------


def test_every_mode_has_the_jacobian_of_differences() -> None:
    expected = differences(plain_hunters, (10.0, 5.0), tuple(TIMES), tuple(RATES), 1e-3, "DOP853")
    f = lambda p: integrate.odeint(hunters, [10.0, 5.0], TIMES, (p,), **TIGHT)  # noqa: E731
    p = xp.asarray(RATES)
    for jacobian in (jacrev, jacfwd):
        np.testing.assert_allclose(jacobian(f)(p), expected, rtol=1e-5, atol=1e-5)
    leaf = xp.tensor(RATES, requires_grad=True)
    (g,) = grad(xp.sum(f(leaf)), leaf)
    np.testing.assert_allclose(g, expected.sum((0, 1)), rtol=1e-5, atol=1e-5)
    assert names(f(leaf)) == "FlowBackward"


@pytest.mark.slow
@pytest.mark.parametrize("method", ["LSODA", "BDF", "Radau"])
def test_stiff_equations(method: str) -> None:
    p, y0, t = (0.04, 1.0, 1.0), (1.0, 0.0, 0.0), (0.0, 0.1, 1.0, 10.0, 100.0)
    expected = differences(robertson, y0, t, p, 1e-2, "Radau")
    options: dict[str, Any] = {"method": method, "rtol": 1e-8, "atol": 1e-12, "gradient": "forward"}
    for jacobian in (jacrev, jacfwd) if method == "LSODA" else (jacrev,):
        found = jacobian(lambda p: integrate.odeint(robertson, list(y0), t, (p,), **options))(xp.asarray(p))
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-6)


def test_the_jacobian_of_stiff_equations_makes_their_steps_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong Jacobian gives right results in many more steps."""
    counts: list[int] = []
    real = scipy_integrate.odeint

    def counted(*args: Any, **options: Any) -> Any:
        found, info = real(*args, **options)
        counts.append(int(info["nst"][-1]))
        return found, info

    monkeypatch.setattr(scipy_integrate, "odeint", counted)
    t, p = np.asarray([0.0, 100.0, 1e4, 1e6]), xp.asarray([0.04, 1.0, 1.0])
    jacrev(lambda p: integrate.odeint(robertson, [1.0, 0.0, 0.0], t, (p,), rtol=1e-6, atol=1e-10))(p)
    assert len(counts) == 2  # the state, and the state with its sensitivities
    assert counts[1] < 3 * counts[0]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["LSODA", "RK45", "Radau"])
def test_second_derivatives_are_those_through_the_steps(method: str) -> None:
    p, t, y0 = xp.tensor(RATES), np.linspace(0.0, 2.0, 4), xp.tensor([10.0, 5.0])

    def loss(p: Any, y0: Any, method: str, gradient: str) -> Any:
        return xp.sum(xp.log(integrate.odeint(hunters, y0, t, (p,), method=method, gradient=gradient, rtol=1e-9, atol=1e-9)) ** 2)

    for k in (0, 1):
        f, other = (
            functools.partial((lambda x, m, g: loss(x, y0, m, g)) if k == 0 else (lambda x, m, g: loss(p, x, m, g)), m=m, g=g)
            for m, g in ((method, "forward"), ("DOP853", "steps"))
        )
        x = (p, y0)[k]
        expected = hessian(other)(x)
        for found in (hessian(f)(x), jacfwd(jacfwd(f))(x), jacrev(jacfwd(f))(x), jacrev(jacrev(f))(x)):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * float(xp.max(xp.abs(expected))))


def test_errors_follow_the_tolerances() -> None:
    expected = differences(plain_hunters, (10.0, 5.0), tuple(TIMES), tuple(RATES), 1e-3, "DOP853")
    scale = np.abs(expected).max()
    for tolerance in (1e-3, 1e-5, 1e-7, 1e-9):
        for method in ("LSODA", "DOP853"):
            f = lambda p, m=method, r=tolerance: integrate.odeint(hunters, [10.0, 5.0], TIMES, (p,), method=m, rtol=r, atol=r)  # noqa: E731
            assert np.abs(jacrev(f)(xp.asarray(RATES)).numpy() - expected).max() < 300 * tolerance * scale


def test_a_sensitivity_whose_parameter_does_not_move_the_state_is_controlled() -> None:
    """The state rests at zero, so that its own error is none; the sensitivity is an oscillation."""
    p = xp.tensor(0.0, requires_grad=True)
    y = integrate.odeint(lambda y, t: xp.stack([y[1], p - 100.0 * y[0]]), [0.0, 0.0], np.linspace(0.0, 5.0, 9), rtol=1e-8, atol=1e-8)
    assert names(y) == "FlowBackward"
    for k, time in enumerate(np.linspace(0.0, 5.0, 9)):
        (g,) = grad(y[k, 0], p, retain_graph=True)
        assert g.item() == pytest.approx((1 - np.cos(10 * time)) / 100, abs=1e-6)


# -- the choice ----------------------------------------------------------------------------------------------------------------


def test_the_choice_counts_numbers_and_outputs() -> None:
    p = xp.tensor(RATES, requires_grad=True)
    y0 = xp.tensor([10.0, 5.0], requires_grad=True)
    for count, start, expected in ((2, y0.detach(), "FlowBackward0"), (3, y0.detach(), "FlowBackward"), (3, y0, "FlowBackward0"),
                                   (4, y0, "FlowBackward")):  # fmt: skip
        assert names(integrate.odeint(hunters, start, TIMES[:count], (p,))) == expected
    assert names(integrate.odeint(hunters, y0, TIMES[:2], (p,), gradient="forward")) == "FlowBackward"
    assert names(integrate.odeint(hunters, y0, TIMES, (p,), gradient="adjoint")) == "FlowBackward0"
    big = xp.tensor(np.full((40, 40), 0.01), requires_grad=True)  # 40 * 1601 variables
    t = np.linspace(0.0, 0.1, 50)
    assert names(integrate.odeint(lambda y, t: xp.tanh(big @ y), xp.ones(40), t, method="RK45")) == "FlowBackward0"


def test_tensors_that_do_not_matter_get_no_gradient() -> None:
    a, b = (xp.tensor(0.5, requires_grad=True) for _ in range(2))
    y = integrate.odeint(lambda y, t, a, b: -a * y, [1.0], TIMES, (a, b))
    found = grad(xp.sum(y), (a, b), allow_unused=True)
    assert found[1] is None
    assert found[0].item() == pytest.approx(-(TIMES * np.exp(-0.5 * TIMES)).sum(), rel=1e-6)


class Decay:
    """A right-hand side that keeps its parameter in an object whose attributes cannot be read."""

    __slots__ = ("rate",)

    def __init__(self, rate: Any) -> None:
        self.rate = rate

    def __call__(self, y: Any, t: Any) -> Any:
        return -self.rate * y


class Counter:
    """A right-hand side that writes to its object."""

    def __init__(self, rate: Any) -> None:
        self.rate, self.count = rate, 0

    def __call__(self, y: Any, t: Any) -> Any:
        self.count += 1
        return -self.rate * y


class OfModule:
    """A right-hand side whose method finds its parameter in the module, and in an argument."""

    def __init__(self, rate: Any) -> None:
        global module_rate
        module_rate = self.rate = rate

    def __call__(self, y: Any, t: Any) -> Any:
        return -0.5 * (module_rate + self.rate) * y


module_rate: Any = None


def _branching(rate: Any) -> Any:
    return lambda y, t: -rate * y if y[0] > 0.0 else y


def _silent(rate: Any) -> Any:
    def right(y: Any, t: Any) -> Any:
        with xp.no_grad():
            half = rate * 0.5
        return -half * y - 0.5 * rate * y

    return right


class Halved(xp.autograd.Function):
    """The identity, whose gradient is halved."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 0.5 * g


def _halved(rate: Any) -> Any:
    return lambda y, t: -Halved.apply(rate) * y


def _counting(rate: Any) -> Any:
    count = 0

    def right(y: Any, t: Any) -> Any:
        nonlocal count
        count += 1
        return -rate * y

    return right


def _listing(rate: Any) -> Any:
    seen: list[Any] = []

    def right(y: Any, t: Any) -> Any:
        seen.append(None)
        return -rate * y

    right.seen = seen  # type: ignore[attr-defined]
    return right


#: Right-hand sides that must not be compiled or integrated with sensitivities, and the part of the gradient that they let through.
OTHERS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "an object": (Decay, 1.0), "a method": (lambda rate: Decay(rate).__call__, 1.0), "a branch": (_branching, 1.0),
    "a part that is not recorded": (_silent, 0.5), "a rule for the backward pass alone": (_halved, 0.5), "a counter": (_counting, 1.0),
    "a list that grows": (_listing, 1.0), "an object that counts": (Counter, 1.0), "a Tensor of a method's module": (OfModule, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_what_cannot_be_compiled_has_its_gradient_by_the_adjoint(case: str) -> None:
    make, share = OTHERS[case]
    t = np.linspace(0.0, 1.0, 5)
    for _ in range(2):
        rate = xp.tensor(0.5, requires_grad=True)
        y = integrate.odeint(make(rate), [1.0], t)
        assert names(y) == "FlowBackward0"
        (g,) = grad(xp.sum(y), rate)
        assert g.item() == pytest.approx(-share * (t * np.exp(-0.5 * t)).sum(), rel=1e-5)


def test_a_list_that_the_function_fills_is_filled_at_each_evaluation() -> None:
    right = _listing(xp.asarray(0.5))
    counts = []
    for _ in range(3):
        right.seen.clear()
        integrate.odeint(right, [1.0], [0.0, 1.0])
        counts.append(len(right.seen))
    assert counts[0] > 10
    assert counts[1] >= counts[0]  # the second call tries to compile it
    assert counts[2] == counts[0]


def test_random_numbers_are_drawn_at_each_evaluation() -> None:
    right = lambda y, t: 0.0 * y + np.random.normal()  # noqa: E731, NPY002
    ends = [integrate.odeint(right, [1.0], [0.0, 1.0], method="RK23", rtol=1.0, atol=1e9)[-1, 0].item() for _ in range(4)]
    assert len(set(ends)) == 4


def test_forward_sensitivities_need_to_know_the_tensors() -> None:
    rate = xp.tensor(0.5, requires_grad=True)
    with pytest.raises(ValueError, match="gradient='forward' needs a function whose Tensors can be found"):
        integrate.odeint(Decay(rate), [1.0], TIMES, gradient="forward")
    with pytest.raises(ValueError, match="gradient='forward' needs a function whose Tensors can be found"):
        integrate.odeint(OfModule(rate), [1.0], TIMES, gradient="forward")
    with pytest.raises(RuntimeError, match="the same derivatives in forward and in reverse mode"):
        integrate.odeint(_silent(rate), [1.0], TIMES, gradient="forward")
    with pytest.raises(NotImplementedError, match="keeps Tensors in an object"):
        jacfwd(lambda rate: integrate.odeint(Decay(rate), [1.0], TIMES))(rate.detach())
    found = jacfwd(lambda rate: integrate.odeint(_branching(rate), [1.0], TIMES[:9]))(rate.detach())  # LSODA, not compiled
    np.testing.assert_allclose(found[:, 0], -TIMES[:9] * np.exp(-0.5 * TIMES[:9]), atol=1e-6)


# -- what is compiled serves no other function ---------------------------------------------------------------------------------


def _calls_of(function: Any, action: Callable[[], Any]) -> int:
    """Count the calls of a Python function, and of functions that are rebuilt from it, during an action."""
    count = 0

    def watch(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is function.__code__

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def test_the_function_is_captured_once() -> None:
    def right(y: Any, t: Any, p: Any) -> Any:
        return xp.stack([-p[0] * y[0] * 1.25, p[1] * y[0] - y[1]])

    def jacobian(k: float) -> Any:
        return jacrev(lambda p: integrate.odeint(right, [1.0, 2.0], TIMES, (p,)))(xp.asarray([0.5 + k, 0.25]))

    assert 0 < _calls_of(right, lambda: jacobian(0.0)) < 30
    assert _calls_of(right, lambda: jacobian(0.1)) == 0
    assert _calls_of(right, lambda: integrate.odeint(right, [1.0, 2.0], TIMES, (xp.asarray([0.5, 0.1]),))) == 0


def test_a_function_without_a_module_is_captured_like_others() -> None:
    space: dict[str, Any] = {}
    exec("def right(y, t, p): return -p * y * 1.5", space)  # noqa: S102 (our own text)
    assert space["right"].__module__ is None
    p = xp.asarray(0.5)
    found = jacrev(lambda p: integrate.odeint(space["right"], [1.0], TIMES, (p,), **TIGHT))(p)
    np.testing.assert_allclose(found[:, 0], -1.5 * TIMES * np.exp(-0.75 * np.asarray(TIMES)), rtol=1e-6, atol=1e-9)


def test_without_derivatives_it_is_compiled_at_the_second_call() -> None:
    def right(y: Any, t: Any) -> Any:
        return -1.75 * y

    calls = [_calls_of(right, lambda: integrate.odeint(right, [1.0], [0.0, 1.0])) for _ in range(3)]
    assert calls[0] > 20
    assert calls[2] == 0


class Model:
    """An object with attributes, as models have them."""

    scale = 1.0

    def __init__(self, factor: Any) -> None:
        self.factor = {"c": factor}

    @property
    def total(self) -> Any:
        return self.factor["c"] * self.scale

    def right(self, y: Any, t: Any, k: Any) -> Any:
        return -k * self.total * y


factor = 1.0
table = np.asarray([1.0, 3.0])


def _scale(x: Any) -> Any:
    return factor * table[0] * x


def _closes_over(value: Any) -> Any:
    """Return a right-hand side, and a function that changes what it closes over."""

    def right(y: Any, t: Any, k: Any) -> Any:
        return -k * value * y

    def change(new: Any) -> None:
        nonlocal value
        value = new

    return right, change


def _changes() -> dict[str, Any]:
    """Return, by name, a right-hand side ``-k c y`` with c = 1, and an action that makes c = 2."""
    number, change_number = _closes_over(1.0)
    integer, change_integer = _closes_over(1)
    tensor, change_tensor = _closes_over(xp.asarray(1.0))
    written = xp.asarray(1.0)
    in_place, _ = _closes_over(written)
    listed: list[Any] = [1.0]
    kept = {"c": xp.asarray(1.0)}
    array = np.asarray([1.0])

    def helper(x: Any) -> Any:
        return 1.0 * x

    def by_helper(y: Any, t: Any, k: Any) -> Any:
        return -k * helper(y)

    def other_helper(x: Any) -> Any:
        return 2.0 * x

    def change_helper() -> None:
        nonlocal helper
        helper = other_helper

    def by_default(y: Any, t: Any, k: Any, c: Any = 1.0) -> Any:
        return -k * c * y

    def by_keyword(y: Any, t: Any, k: Any, *, c: Any = 1.0) -> Any:
        return -k * c * y

    def set_factor() -> None:
        global factor
        factor = 2.0

    def set_table() -> None:
        table[0] = 2.0

    class Own(Model):
        pass

    model, tensors, own, patched = Model(1.0), Model(xp.asarray(1.0)), Own(1.0), Own(1.0)

    def patch() -> None:
        Own.total = property(lambda self: 2.0)  # type: ignore[assignment]

    def set_code() -> None:
        by_code.__code__ = (lambda y, t, k: -k * 2.0 * y).__code__

    def by_code(y: Any, t: Any, k: Any) -> Any:
        return -k * y

    return {
        "a number": (number, lambda: change_number(2.0)), "an int": (integer, lambda: change_integer(2)),
        "a Tensor": (tensor, lambda: change_tensor(xp.asarray(2.0))), "a Tensor in place": (in_place, lambda: written.mul_(2.0)),
        "an item of a list": (lambda y, t, k: -k * listed[0] * y, lambda: listed.__setitem__(0, 2.0)),
        "an item of a dict": (lambda y, t, k: -k * kept["c"] * y, lambda: kept.update(c=xp.asarray(2.0))),
        "an element of an array": (lambda y, t, k: -k * array[0] * y, lambda: array.__setitem__(0, 2.0)),
        "a helper": (by_helper, change_helper), "a default": (by_default, lambda: setattr(by_default, "__defaults__", (2.0,))),
        "a keyword": (by_keyword, lambda: by_keyword.__kwdefaults__.update(c=2.0)),
        "a global number of a helper": (lambda y, t, k: -k * _scale(y), set_factor),
        "a global array of a helper": (lambda y, t, k: -k * _scale(y), set_table), "its code": (by_code, set_code),
        "an attribute": (model.right, lambda: model.factor.update(c=2.0)),
        "a Tensor of an object": (tensors.right, lambda: tensors.factor.update(c=xp.asarray(2.0))),
        "an attribute of a class": (own.right, lambda: setattr(Own, "scale", 2.0)), "a method of a class": (patched.right, patch),
        "an object as an argument": (lambda y, t, k: -k * model.factor["c"] * y, lambda: setattr(model, "factor", {"c": 2.0})),
    }  # fmt: skip


@pytest.mark.parametrize("case", list(_changes()))
def test_a_change_of_what_it_reaches_counts_at_once(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "factor", 1.0)
    monkeypatch.setitem(globals(), "table", np.asarray([1.0, 3.0]))
    right, change = _changes()[case]
    t = np.linspace(0.0, 1.0, 6)
    for c in (1.0, 2.0):
        for _ in range(3):
            k = xp.tensor(0.5, requires_grad=True)
            y = integrate.odeint(right, [1.0], t, (k,))
            np.testing.assert_allclose(y.detach().numpy()[:, 0], np.exp(-0.5 * c * t), rtol=1e-6)
            assert names(y) == "FlowBackward"
            assert grad(xp.sum(y), k)[0].item() == pytest.approx(-(c * t * np.exp(-0.5 * c * t)).sum(), rel=1e-6)
            np.testing.assert_allclose(integrate.odeint(right, [1.0], t, (k.detach(),)), y.detach())
        if c == 1.0:
            change()


def test_two_places_of_one_tensor_are_not_two_tensors() -> None:
    right = lambda y, t, a, b: -a * y + b  # noqa: E731
    a, b = (xp.tensor(v, requires_grad=True) for v in (0.5, 0.25))
    closed = lambda a, b: (1.0 - b / a) * xp.exp(-a) + b / a  # noqa: E731
    for first, second in ((a, a), (a, b), (b, a), (a, a)):
        y = integrate.odeint(right, [1.0], [0.0, 0.25, 0.5, 1.0], (first, second), **TIGHT)
        found, wanted = (grad(v, (a, b), allow_unused=True) for v in (y[-1, 0], closed(first, second)))
        for g, w in zip(found, wanted):
            assert (g is None) == (w is None)
            assert g is None or g.item() == pytest.approx(w.item(), rel=1e-8)


def test_nothing_keeps_tensors_alive() -> None:
    def run() -> list[Any]:
        k = xp.tensor([0.5], requires_grad=True)
        y = integrate.odeint(lambda y, t: -k * y, [1.0], TIMES)
        xp.sum(y).backward()
        return [weakref.ref(v) for v in (k, y, y.grad_fn)]

    seen = run()
    gc.collect()
    assert [r() for r in seen] == [None] * 3


def test_a_tensor_written_to_after_the_solution_is_noticed() -> None:
    k = xp.tensor(0.5, requires_grad=True)
    y = integrate.odeint(lambda y, t: -k * y, [1.0], TIMES)
    assert names(y) == "FlowBackward"
    with xp.no_grad():
        k.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        xp.sum(y).backward()


def test_a_solver_that_fails_for_the_sensitivities_raises() -> None:
    """The state is constant, and its sensitivity grows beyond all numbers."""
    k = xp.tensor(0.0, requires_grad=True)
    right = lambda y, t: k * xp.ones_like(y) + 1e3 * y  # noqa: E731
    y = integrate.odeint(right, [0.0], np.linspace(0.0, 9.0, 5), failure="ignore")
    with pytest.raises(RuntimeError, match="did not reach the end"):
        y[-1].backward()


def test_times_have_their_tangents() -> None:
    t = xp.asarray([0.0, 0.4, 1.0])
    f = lambda t, k: integrate.odeint(lambda y, t: -k * y * t, [1.0], t, gradient="forward", **TIGHT)[:, 0]  # noqa: E731
    closed = lambda t, k: xp.exp(-k * (t * t - t[0] ** 2) / 2)  # noqa: E731
    args = (t, xp.asarray(0.7)), (xp.asarray([0.3, -1.0, 2.0]), xp.asarray(0.5))
    np.testing.assert_allclose(jvp(f, *args)[1], jvp(closed, *args)[1], atol=1e-8)
    for k in (0, 1):
        np.testing.assert_allclose(jacrev(f, argnums=k)(*args[0]), jacfwd(closed, argnums=k)(*args[0]), atol=1e-8)


#: Functions of one of the times: which of start, end and wanted it is, and the call with `x` in its place, where `t` has all three.
TIMED: dict[str, tuple[int, Any]] = {
    "the end": (1, lambda f, t, x: f(0.1, x, None)[-1:]),
    "the start": (0, lambda f, t, x: f(x, 1.5, None)[-1:]),
    "those wanted": (2, lambda f, t, x: f(0.1, 1.5, x)),
    "those wanted, beside an end": (2, lambda f, t, x: f(0.1, t[1], x)),
    "those wanted, beside a start": (2, lambda f, t, x: f(t[0], 1.5, x)),
    "the start, beside those wanted": (0, lambda f, t, x: f(x, 1.5, t[2])),
}


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("gradient", ["auto", "adjoint", "steps"])
@pytest.mark.parametrize("right", [lambda y, t: -0.7 * y, Decay(xp.asarray(0.7))], ids=["a function", "an object"])
@pytest.mark.parametrize("name", TIMED)
def test_each_time_has_its_tangent_whichever_others_are_tensors(name: str, right: Any, gradient: str) -> None:
    def solve(start: Any, end: Any, wanted: Any) -> Any:
        found = integrate.solve_ivp(lambda t, y: right(y, t), (start, end), [1.0], "RK45", wanted, gradient=gradient, **TIGHT)
        return found.y[0]

    def closed(start: Any, end: Any, wanted: Any) -> Any:
        return xp.exp(-0.7 * ((xp.asarray([end]) if wanted is None else wanted) - start))

    which, call = TIMED[name]
    for requires_grad in (False, True):
        t = [xp.tensor(v, requires_grad=requires_grad) for v in (0.1, 1.5, [0.5, 1.0])]
        found, expected = (
            jvp(lambda x, f=f, t=t: call(f, t, x), (t[which],), (xp.ones_like(t[which]),))[1]
            for f in (solve, closed)  # type: ignore[misc]
        )
        np.testing.assert_allclose(found.detach(), expected.detach(), rtol=1e-6)


class Late:
    """A right side that keeps its parameter in an object, and depends on it from the time 0.5 on."""

    __slots__ = ("rate",)

    def __init__(self, rate: Any) -> None:
        self.rate = rate

    def __call__(self, y: Any, t: Any) -> Any:
        return -(self.rate if t > 0.5 else 1.0) * y


@pytest.mark.parametrize("gradient", ["auto", "adjoint", "steps"])
def test_a_tangent_that_matters_late_is_not_lost(gradient: str) -> None:
    def solve(rate: Any, method: str, t_eval: Any = None) -> Any:
        right = Late(rate)
        return integrate.solve_ivp(lambda t, y: right(y, t), (0.0, 2.0), [1.0], method, t_eval, gradient=gradient, **TIGHT).y[0, -1]

    rate, one = xp.asarray(0.7), xp.asarray(1.0)
    if gradient == "steps":
        found = jvp(lambda p: solve(p, "RK45"), (rate,), (one,))[1]
        assert float(found) == pytest.approx(-1.5 * float(np.exp(-0.5 - 1.5 * 0.7)), rel=1e-6)
        return
    for method in ("RK45", "LSODA", "Radau"):
        with pytest.raises(RuntimeError, match="depends on Tensors with tangents, but not yet at the start"):
            jvp(lambda p, m=method: solve(p, m), (rate,), (one,))  # type: ignore[misc]
    with pytest.raises(RuntimeError, match="depends on Tensors with tangents, but not yet at the start"):
        jvp(lambda p: integrate.odeint(Late(p), [1.0], TIMES, gradient=gradient), (rate,), (one,))
    assert float(solve(rate, "RK45")) == pytest.approx(float(np.exp(-0.5 - 1.5 * 0.7)), rel=1e-6)


def test_the_tangent_of_a_time_of_a_solution_without_steps_is_refused() -> None:
    right = Decay(xp.asarray(0.7))
    found = integrate.solve_ivp(lambda t, y: right(y, t), (0.0, 1.0), [1.0], dense_output=True)
    with pytest.raises(NotImplementedError, match="computed without its steps; take gradient='steps'"):
        jvp(found.sol, (xp.asarray(0.5),), (xp.asarray(1.0),))
    found = integrate.solve_ivp(lambda t, y: right(y, t), (0.0, 1.0), [1.0], dense_output=True, gradient="steps", **TIGHT)
    assert float(jvp(found.sol, (xp.asarray(0.5),), (xp.asarray(1.0),))[1]) == pytest.approx(-0.7 * float(np.exp(-0.35)), rel=1e-6)


# -- fits ------------------------------------------------------------------------------------------------------------------------


def _data() -> np.ndarray:
    found = scipy_integrate.odeint(plain_hunters, [10.0, 5.0], TIMES, (RATES,))
    return np.asarray(found * (1 + 0.02 * np.random.default_rng(0).normal(size=found.shape)))


START = [0.9, 0.12, 1.3, 0.08]


def test_fits_are_scipys() -> None:
    data = _data()
    theirs = scipy_optimize.least_squares(lambda p: (scipy_integrate.odeint(plain_hunters, [10.0, 5.0], TIMES, (p,)) - data).ravel(), START)
    solution = lambda p: integrate.odeint(hunters, [10.0, 5.0], TIMES, args=(p,))  # noqa: E731
    ours = optimize.least_squares(lambda p: solution(p) - data, START)
    np.testing.assert_allclose(ours.x.detach(), theirs.x, rtol=1e-5)
    found = optimize.minimize(lambda p: xp.sum((solution(p) - data) ** 2), START, method="L-BFGS-B", bounds=[(0.01, 3.0)] * 4)
    np.testing.assert_allclose(found.x.detach(), theirs.x, rtol=1e-4)
    best, covariance = optimize.curve_fit(lambda t, *p: xp.reshape(solution(xp.stack(p)), (-1,)), TIMES, data.ravel(), p0=START)
    np.testing.assert_allclose(best.detach(), theirs.x, rtol=1e-5)
    assert covariance.shape == (4, 4)


def test_fits_are_differentiable() -> None:
    """By the data, which takes second derivatives of the solution."""
    data = xp.tensor(_data(), requires_grad=True)

    def fit(data: Any) -> Any:
        options = {"xtol": 1e-13, "ftol": 1e-13, "gtol": 1e-13}
        residual = lambda p: integrate.odeint(hunters, [10.0, 5.0], TIMES, args=(p,), rtol=1e-10, atol=1e-10) - data  # noqa: E731
        return optimize.least_squares(residual, START, **options).x

    (g,) = grad(fit(data)[0], data)
    step = np.zeros((40, 2))
    step[7, 1] = 0.1
    with xp.no_grad():
        slope = float(fit(data + step)[0] - fit(data - step)[0]) / 0.2
    assert g[7, 1].item() == pytest.approx(slope, rel=1e-5)
