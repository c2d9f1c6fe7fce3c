"""Law: integrals of functions and of samples are SciPy's, and their derivatives are those of closed forms and of differences."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

import xpgrad as xp
from xpgrad.autograd import grad, gradcheck, gradgradcheck
from xpgrad.func import grad as gradient, jacfwd, jacrev

scipy_integrate: Any = pytest.importorskip("scipy.integrate")
integrate = importlib.import_module("xpgrad.scipy.integrate")
INF = math.inf

#: Integrals with a parameter: the function, the bounds, the closed form.
CLOSED: dict[str, tuple[Callable[..., Any], float, float, Callable[[Any], Any]]] = {
    "a polynomial": (lambda x, k: k * x**2 + x, 0.0, 2.0, lambda k: k * 8 / 3 + 2),
    "backwards": (lambda x, k: k * x**2, 2.0, 0.0, lambda k: -k * 8 / 3),
    "nothing": (lambda x, k: k * x, 1.0, 1.0, lambda k: 0.0 * k),
    "to the right": (lambda x, k: xp.exp(-k * x), 0.0, INF, lambda k: 1 / k),
    "to the left": (lambda x, k: xp.exp(k * x), -INF, 0.0, lambda k: 1 / k),
    "from the right": (lambda x, k: xp.exp(-k * x), INF, 0.0, lambda k: -1 / k),
    "everywhere": (lambda x, k: xp.exp(-k * x * x), -INF, INF, lambda k: xp.sqrt(math.pi / k)),
    "a root in the beginning": (lambda x, k: k / xp.sqrt(x), 0.0, 4.0, lambda k: 4 * k),
    "a peak": (lambda x, k: k / (k * k + x * x), -1.0, 1.0, lambda k: 2 * xp.atan(1 / k)),
    "complex": (lambda x, k: xp.exp(1j * k * x), 0.0, 1.0, lambda k: (xp.exp(1j * k) - 1) / (1j * k)),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms(name: str) -> None:
    f, a, b, closed = CLOSED[name]
    k = xp.tensor(0.7, requires_grad=True)
    value, error = integrate.quad_vec(f, a, b, args=(k,))
    wanted = closed(k)
    assert abs(complex(value.detach()) - complex(wanted.detach())) <= 1e-7
    assert error < 1e-5
    parts = (xp.real, xp.imag) if value.dtype.is_complex else (lambda v: v,)
    for part in parts:
        (found,), (right,) = grad(part(value), k, create_graph=True), grad(part(wanted), k, create_graph=True)
        assert float(found.detach()) == pytest.approx(float(right.detach()), abs=1e-6)
        if right.requires_grad and name != "nothing":
            (second,), (other,) = grad(found, k, retain_graph=True), grad(right, k, retain_graph=True)
            assert float(second) == pytest.approx(float(other), abs=1e-5)


def test_bounds_are_differentiable_of_every_order() -> None:
    a, b, k = (xp.tensor(v, requires_grad=True) for v in (0.3, 1.4, 2.0))
    f = lambda a, b, k: integrate.quad_vec(lambda x: xp.sin(k * x) * xp.exp(x), a, b)[0]  # noqa: E731
    assert gradcheck(f, (a, b, k))
    assert gradgradcheck(f, (a, b, k))
    third = gradient(gradient(gradient(lambda b: f(a.detach(), b, k.detach()))))(b.detach())
    second_of_f = gradient(gradient(lambda x: xp.sin(2.0 * x) * xp.exp(x)))(b.detach())
    assert float(third) == pytest.approx(float(second_of_f), rel=1e-10)
    np.testing.assert_allclose(jacfwd(lambda b: f(a.detach(), b, k.detach()))(b.detach()), np.sin(2.8) * np.exp(1.4))


def test_a_jump_at_a_bound_is_no_matter() -> None:
    b = xp.tensor(1.5, requires_grad=True)
    step = lambda x: xp.where(x > 1.0, 3.0, 1.0)  # noqa: E731
    value, _ = integrate.quad_vec(step, 0.0, b, points=[1.0])
    value.backward()
    assert float(value.detach()) == pytest.approx(2.5)
    assert float(b.grad) == pytest.approx(3.0)


def test_an_infinite_integrand_at_a_differentiated_bound_is_refused() -> None:
    a = xp.tensor(0.0, requires_grad=True)
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="not finite"):
        integrate.quad_vec(lambda x: 1 / xp.sqrt(x), a, 1.0)


def test_vectors_and_closures() -> None:
    k = xp.tensor([[0.5, 1.0], [2.0, 3.0]], requires_grad=True)
    value, _ = integrate.quad_vec(lambda x: xp.exp(-k * x), 0.0, INF, norm="max")
    np.testing.assert_allclose(value.detach(), 1 / k.detach(), rtol=1e-8)
    xp.sum(value).backward()
    np.testing.assert_allclose(k.grad, -1 / k.detach() ** 2, rtol=1e-6)
    np.testing.assert_allclose(jacrev(lambda k: integrate.quad_vec(lambda x: k * x, 0.0, 1.0)[0])(xp.ones(2)), np.eye(2) / 2)


BAD: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no function": (lambda: integrate.quad_vec(1.0, 0.0, 1.0), TypeError, "f"),
    "a bound": (lambda: integrate.quad_vec(xp.exp, "a", 1.0), TypeError, "`a` must be a real number"),
    "bounds": (lambda: integrate.quad_vec(xp.exp, 0.0, xp.ones(2)), TypeError, "`b` must be a real number"),
    "a bound that is nan": (lambda: integrate.quad_vec(xp.exp, 0.0, math.nan), ValueError, "is nan"),
    "points": (lambda: integrate.quad_vec(lambda x: xp.exp(-x), 0.0, INF, points=[1.0]), ValueError, "finite bounds"),
    "args": (lambda: integrate.quad_vec(xp.exp, 0.0, 1.0, args=2.0), TypeError, "`args` must be a tuple"),
    "failure": (lambda: integrate.quad_vec(xp.exp, 0.0, 1.0, failure="never"), ValueError, "'warn'"),
    "no convergence": (lambda: integrate.quad_vec(lambda x: xp.sin(1 / x), 0.0, 1.0, limit=3), RuntimeError, "tolerance"),
    "an axis": (lambda: integrate.trapezoid(xp.ones(3), axis=1), ValueError, "`axis` must be between"),
    "places": (lambda: integrate.simpson(xp.ones(3), xp.ones(2)), ValueError, "`x` must be a vector of 3"),
    "initial": (lambda: integrate.cumulative_trapezoid(xp.ones(3), initial=1), ValueError, "must be 0 or None"),
    "no samples": (lambda: integrate.cumulative_trapezoid(xp.ones(0)), ValueError, "at least one sample"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name: str) -> None:
    call, kind, words = BAD[name]
    with pytest.raises(kind, match=words):
        call()


@pytest.mark.parametrize("places", [[0.0, 1.0, 1.0, 2.0], [0.0, 0.0, 1.0], [0.0, 1.0, 2.0, 2.0], [1.0] * 3, [0.0, 1.0, 2.0, 3.0, 3.0]])
def test_simpson_at_equal_points_is_scipys(places: list[float]) -> None:
    y = xp.tensor([1.0, 2.0, 3.0, 5.0, 2.0][: len(places)], requires_grad=True)
    found = integrate.simpson(y, xp.asarray(places))
    found.backward()
    weights = [scipy_integrate.simpson(row, x=places) for row in np.eye(len(places))]
    np.testing.assert_allclose(y.grad, weights, atol=1e-15)
    assert found.item() == pytest.approx(weights @ y.detach().numpy())


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_simpson_has_no_derivative_by_points_that_are_equal() -> None:
    y = xp.asarray([1.0, 2.0, 3.0, 5.0])
    for places, moved in (([0.0, 1.0, 1.0, 2.0], slice(1, 3)), ([0.0, 0.0, 1.0], slice(0, 2))):
        for jacobian in (xp.func.jacrev, xp.func.jacfwd):
            found = jacobian(lambda x: integrate.simpson(y[: x.shape[0]], x))(xp.asarray(places))
            assert np.isnan(found[moved]).all()


def test_simpson_of_an_infinite_sample_and_without_length() -> None:
    for count in (3, 4):
        assert integrate.simpson(xp.asarray([1.0] * (count - 1) + [math.inf]), dx=0.5).item() == math.inf
        assert integrate.simpson(xp.ones(count), dx=0.0).item() == scipy_integrate.simpson(np.ones(count), dx=0.0) == 0.0


@settings(max_examples=40, deadline=None)
@example("simpson", 4, 0, 1, "dx", 0)  # with an even number of samples the last interval has a special rule
@example("simpson", 6, 1, 0, "vector", 1)
@given(
    st.sampled_from(["trapezoid", "cumulative_trapezoid", "simpson"]), st.integers(1, 8), st.integers(0, 2), st.integers(0, 2),
    st.sampled_from(["dx", "vector", "array"]), st.integers(0, 1000),
)  # fmt: skip
def test_samples(name: str, count: int, before: int, after: int, places: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = (*[2] * before, count, *[3] * after)
    axis = before if seed % 2 else before - len(shape)
    y = rng.normal(size=shape)
    options: dict[str, Any] = {"axis": axis}
    if places == "dx":
        options["dx"] = 0.3
    elif places == "vector":
        options["x"] = np.cumsum(rng.uniform(0.1, 1.0, count))
    else:
        options["x"] = np.cumsum(rng.uniform(0.1, 1.0, shape), axis=before)
    if name == "cumulative_trapezoid" and seed % 3:
        options["initial"] = 0
    ours, theirs = getattr(integrate, name), getattr(scipy_integrate, name)
    wanted = theirs(y, **options)
    np.testing.assert_allclose(ours(xp.asarray(y), **options), wanted, atol=1e-12)
    if "x" in options:
        x = xp.tensor(options.pop("x"), requires_grad=True)
        assert gradcheck(lambda y, x: ours(y, x, **options), (xp.tensor(y, requires_grad=True), x))
    else:
        assert gradcheck(lambda y: ours(y, **options), (xp.tensor(y, requires_grad=True),))


def test_on_every_backend(xpgrad_device: str) -> None:
    k = xp.tensor([0.5, 2.0], device=xpgrad_device, requires_grad=True)
    value, _ = integrate.quad_vec(lambda x: xp.exp(-k * x), 0.0, 1.0, epsrel=1e-5)
    assert value.device == k.device
    xp.sum(value).backward()
    exact = (np.exp(-np.asarray([0.5, 2.0])) * (np.asarray([0.5, 2.0]) + 1) - 1) / np.asarray([0.5, 2.0]) ** 2
    np.testing.assert_allclose(k.grad.to_device("numpy").numpy(), exact, rtol=1e-4)
    samples = integrate.cumulative_trapezoid(k, dx=0.5)
    np.testing.assert_allclose(samples.detach().to_device("numpy").numpy(), [0.625], rtol=1e-6)
