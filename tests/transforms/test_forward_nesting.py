"""Law: levels of forward mode nest, with themselves and with reverse mode, and perturbations are never confused.

Further tests of `jvp` and `linearize`: trees, the number of calls of the function, `no_grad`, and what they refuse.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import values
from xpgrad import func
from xpgrad._modes import state
from xpgrad._transforms.forward import levels
from xpgrad.autograd import forward_ad as fw
from xpgrad.func._forward import jvp, linearize

grad = xp.autograd.grad
Function = Callable[..., Any]


# -- nesting --------------------------------------------------------------------------------------------------------------


def d(function: Function) -> Function:
    """Return the derivative of a function of one number, by forward mode."""
    return lambda x: jvp(function, (x,), (xp.ones_like(x),))[1]


def r(function: Function) -> Function:
    """Return the derivative of a function of one number, by reverse mode."""

    def slope(x: Any) -> Any:
        with xp.enable_grad():
            y = x[...]
            if not y.requires_grad:
                y.requires_grad_()
            z = function(y)
            return grad(z, y, create_graph=True)[0] if z.requires_grad else xp.zeros_like(x)

    return slope


#: Functions with an inner derivative that depends on the variable of the outer one, and their derivatives at 2.
NESTED: list[tuple[Callable[[Function, Function], Function], float]] = [
    (lambda a, b: lambda x: x * b(lambda y: x + y)(xp.ones_like(x)), 1.0),
    (lambda a, b: lambda x: x * b(lambda y: x * y * y)(x), 24.0),  # d/dx 2 x^3
    (lambda a, b: lambda x: b(lambda y: x * a(lambda z: x * y * z)(y))(x), 4.0),  # d/dx x^2
    (lambda a, b: lambda x: b(lambda y: y * a(lambda z: x * z * z * y)(y))(x), 72.0),  # d/dx 6 x^3
    (lambda a, b: lambda x: b(lambda y: a(lambda z: y * z)(y) * x)(xp.ones_like(x) * 3), 1.0),
    (lambda a, b: lambda x: b(a(lambda y: xp.exp(x * y)))(xp.zeros_like(x)), 4.0),  # d/dx x^2
]


@pytest.mark.parametrize("order", list(itertools.product("dr", repeat=3)), ids="".join)
@pytest.mark.parametrize("case", range(len(NESTED)))
def test_perturbations_are_not_confused(case: int, order: tuple[str, ...], xpgrad_device: str) -> None:
    outer, one, two = ({"d": d, "r": r}[k] for k in order)
    make, expected = NESTED[case]
    x = xp.tensor(2.0, dtype="float64", device=xpgrad_device)
    assert math.isclose(outer(make(one, two))(x).item(), expected, rel_tol=1e-12)


@pytest.mark.parametrize("order", [o for n in (1, 2, 3, 4) for o in itertools.product("dr", repeat=n)], ids="".join)
def test_derivatives_of_any_order_in_any_mixture(order: tuple[str, ...], xpgrad_device: str) -> None:
    f: Function = lambda x: xp.sin(2 * x) * xp.exp(-x)  # noqa: E731 (it is wrapped below)
    for k in order:
        f = {"d": d, "r": r}[k](f)
    x = xp.tensor(0.7, dtype="float64", device=xpgrad_device)
    expected = (complex(-1, 2) ** len(order) * np.exp(complex(-1, 2) * 0.7)).imag
    assert math.isclose(f(x).item(), expected, rel_tol=1e-11)


def test_levels_of_forward_ad_and_func_nest() -> None:
    x, t = xp.tensor(2.0), xp.tensor(1.0)
    with fw.dual_level():
        dual = fw.make_dual(x, t)
        slope = jvp(lambda y: y**3 * dual, (dual,), (t,))[1]  # 3 x^3
        assert fw.unpack_dual(slope).tangent.item() == 36.0
        assert fw.unpack_dual(slope).primal.item() == 24.0

    def inner(y: Any) -> Any:
        with fw.dual_level():
            return fw.unpack_dual(fw.make_dual(y, xp.ones_like(y)) ** 3).tangent

    assert d(inner)(x).item() == 12.0


def test_a_tangent_is_gone_after_its_level() -> None:
    kept: list[Any] = []
    x = xp.tensor(2.0)

    def keep(y: Any) -> Any:
        kept.append(y * y)
        return kept[0]

    jvp(keep, (x,), (xp.ones_like(x),))
    _, slope = jvp(lambda y: kept[0] * y, (x,), (xp.ones_like(x),))
    assert slope.item() == 4.0


def test_tangents_of_dead_tensors_are_dropped() -> None:
    with levels.new_level() as level:
        y = level.dual(xp.tensor(1.0), xp.tensor(1.0))
        leaf = level.dual(xp.tensor(1.0, requires_grad=True), xp.tensor(1.0))
        for _ in range(100):
            y = y * 1.5
            _ = leaf * 2.0
        assert len(level._tensors) <= 3
        assert len(level._nodes) <= 3
    assert not level.active


def test_inference_mode_stops_it_and_no_grad_does_not() -> None:
    x, t = xp.tensor(2.0), xp.tensor(1.0)

    def inside(mode: Any) -> Function:
        def function(y: Any) -> Any:
            with mode():
                return (y * y).clone()

        return function

    assert jvp(inside(xp.no_grad), (x,), (t,))[1].item() == 4.0
    assert jvp(inside(xp.inference_mode), (x,), (t,))[1].item() == 0.0
    with xp.inference_mode():  # as in PyTorch, a `no_grad` around it makes no difference
        y = xp.tensor(3.0)
        assert jvp(lambda y: y * y, (y,), (xp.ones_like(y),))[1].item() == 6.0
        assert linearize(lambda y: y * y, y)[1](xp.ones_like(y)).item() == 6.0


# -- jvp and linearize ------------------------------------------------------------------------------------------------------


def test_trees(xpgrad_device: str) -> None:
    x = xp.asarray([1.0, 2.0], device=xpgrad_device)

    def function(tree: Any, y: Any) -> Any:
        return {"product": tree["a"][0] * y, "rest": [tree["b"] ** 2]}

    arguments = ({"a": (x,), "b": x}, x)
    direction = ({"a": (x,), "b": 2 * x}, 3 * x)
    result, tangent = linearize(function, *arguments)
    for out, slope in (jvp(function, arguments, direction), (result, tangent(*direction))):
        assert values(out["product"]).tolist() == [1.0, 4.0]
        assert values(slope["product"]).tolist() == [4.0, 16.0]
        assert values(slope["rest"][0]).tolist() == [4.0, 16.0]
    out, slope, aux = jvp(lambda x: (x * x, ("text", x)), (x,), (x,), has_aux=True)
    assert values(slope).tolist() == [2.0, 8.0]
    assert aux[0] == "text"
    assert values(aux[1]).tolist() == [1.0, 2.0]


def test_linearize_calls_the_function_once_and_is_linear() -> None:
    calls: list[int] = []
    w = xp.tensor([3.0, 4.0], requires_grad=True)

    def function(x: Any) -> Any:
        calls.append(1)
        return xp.sin(x) * w, xp.ones(3), xp.argmax(x)

    x = xp.tensor([1.0, 2.0])
    out, tangent = linearize(function, x)
    np.testing.assert_allclose(values(out[0]), np.sin([1.0, 2.0]) * [3.0, 4.0], rtol=1e-12)
    for k in (1.0, 2.0):
        t = xp.asarray([k, -k])
        first, none, index = tangent(t)
        np.testing.assert_allclose(values(first), np.cos([1.0, 2.0]) * [3.0, 4.0] * values(t), rtol=1e-12)
        assert none.tolist() == [0.0] * 3
        assert index.item() == 0
        (g,) = grad(xp.sum(first), w, retain_graph=True)  # as with jvp; PyTorch 2.13 loses it
        np.testing.assert_allclose(values(g), np.cos([1.0, 2.0]) * values(t), rtol=1e-12)
        with xp.no_grad():
            assert not tangent(t)[0].requires_grad
    assert calls == [1]
    assert not linearize(xp.sin, x)[1](x).requires_grad
    t = xp.tensor([1.0, 2.0], requires_grad=True)
    (g,) = grad(xp.sum(tangent(t)[0]), t)
    np.testing.assert_allclose(values(g), np.cos([1.0, 2.0]) * [3.0, 4.0], rtol=1e-12)
    assert values(d(lambda s: tangent(s * t.detach())[0])(xp.tensor(1.0))).shape == (2,)
    with xp.no_grad():
        assert linearize(lambda x: x * x, x)[1](x).tolist() == [2.0, 8.0]


def test_forward_mode_ignores_no_grad() -> None:
    """As in PyTorch, tangents pass through `no_grad`, also in `linearize`, but their own derivatives do not."""
    w = xp.tensor([3.0, 4.0], requires_grad=True)

    def function(x: Any) -> Any:
        with xp.no_grad():
            inner = xp.sin(x) * w
            flat = xp.broadcast_to(x, (2, 2))
        return inner + x * w, flat * 1.0

    x, t = xp.tensor([0.3, 1.2], requires_grad=True), xp.asarray([1.0, -2.0])
    expected = (np.cos([0.3, 1.2]) + 1.0) * [3.0, -8.0]
    for slope, view in (jvp(function, (x,), (t,))[1], linearize(function, x)[1](t)):
        np.testing.assert_allclose(values(slope), expected, rtol=1e-12)
        np.testing.assert_allclose(values(view), [[1.0, -2.0]] * 2, rtol=1e-12)
        found = grad(xp.sum(slope), (x, w), allow_unused=True)
        assert found[0] is None or values(found[0]).tolist() == [0.0, 0.0]
        assert values(found[1]).tolist() == [1.0, -2.0]
    d = x * 0.5
    view = jvp(lambda x: function(x)[1], (x,), (d,))[1]
    assert not view.requires_grad  # nothing was recorded when the view was made


ERRORS: list[tuple[Function, type[Exception], str]] = [
    (lambda x, t: jvp(xp.sin, x, (t,)), RuntimeError, "Expected primals to be a tuple"),
    (lambda x, t: jvp(xp.sin, (x,), (t, t)), RuntimeError, "same python structure"),
    (lambda x, t: jvp(xp.sin, (x,), [t]), RuntimeError, "same python structure"),
    (lambda x, t: jvp(xp.sin, (x,), (xp.ones(3),)), RuntimeError, "different size than that of the original Tensor"),
    (lambda x, t: jvp(lambda: x, (), ()), RuntimeError, "at least one Tensor"),
    (lambda x, t: jvp(xp.sin, ("1",), (t,)), RuntimeError, "Expected primals to only contain Tensors"),
    (lambda x, t: jvp(lambda x: (x, 3), (x,), (t,)), RuntimeError, "return only tensors"),
    (lambda x, t: jvp(lambda x: None, (x,), (t,)), RuntimeError, "non-empty output"),
    (lambda x, t: jvp(xp.sin, (x,), (t,), has_aux=True), RuntimeError, "(output, aux)"),
    (lambda x, t: jvp(lambda x: t, (x,), (t,), strict=True), RuntimeError, "independent of the inputs"),
    (lambda x, t: jvp(xp.sin, (xp.asarray([1, 2]),), (t,)), ValueError, "Expected primal to be floating point or complex"),
    (lambda x, t: jvp(xp.sin, (x,), (xp.asarray([1, 2]),)), ValueError, "Expected tangent to be floating point or complex"),
    (lambda x, t: linearize(xp.sin, "3.0"), RuntimeError, "Tensors"),
    (lambda x, t: linearize(xp.sin, 3), RuntimeError, "only Tensors of floating and complex dtype can be differentiated"),
    (lambda x, t: linearize(xp.sin, x)[1](xp.ones(3)), RuntimeError, "doesn't match the shape"),
    (lambda x, t: linearize(xp.sin, x)[1](xp.astype(t, "float32")), RuntimeError, "doesn't match the dtype"),
    (lambda x, t: linearize(xp.sin, x)[1](t, t), RuntimeError, "same argspec"),
]


@pytest.mark.parametrize("case", range(len(ERRORS)))
def test_errors(case: int) -> None:
    call, error, words = ERRORS[case]
    with pytest.raises(error) as info:
        call(xp.asarray([1.0, 2.0]), xp.asarray([1.0, 0.0]))
    assert words in str(info.value)
    assert jvp(xp.sin, (xp.zeros(()),), (xp.ones(()),))[1].item() == 1.0  # no level stays active
    mode = state.current()
    assert mode is None


def _by_vjp(function: Function) -> Function:
    return lambda x: func.vjp(function, x)[1](xp.ones((), dtype=x.dtype))[0]


@pytest.mark.parametrize("slope", [func.grad, func.jacrev, _by_vjp, lambda f: lambda x: func.grad_and_value(f)(x)[0]])
@pytest.mark.parametrize("compiled", [False, True])
def test_products_with_the_hessian_are_differentiable_in_the_vector(slope: Any, compiled: bool) -> None:
    """The gradient of ``sum(H @ t)`` with respect to `t`, which only the tangents of the inner gradient depend on, is ``H @ 1``."""
    x, t = xp.tensor([1.3, 0.6], dtype=xp.float64), xp.tensor([0.2, -0.7], dtype=xp.float64)

    def gradient(x: Any, t: Any) -> Any:
        return func.grad(lambda t: xp.sum(func.jvp(slope(lambda x: xp.sum(xp.sin(x * x) * xp.sum(x))), (x,), (t,))[1]))(t)

    found = (xp.compile(gradient) if compiled else gradient)(x, t)
    wanted = xp.sum(func.hessian(lambda x: xp.sum(xp.sin(x * x) * xp.sum(x)))(x), axis=0)
    np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-12)
