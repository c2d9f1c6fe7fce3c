"""Transforms with the names of JAX and HIPS autograd, flattened trees, and functions for SciPy."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from xpgrad.autograd.interop import scipy_objective
from xpgrad.errors import DeviceMismatchError
from xpgrad.func import elementwise_grad, grad, hessian, hessian_vector_product, ravel_pytree, value_and_grad, vmap

Pair = namedtuple("Pair", "first second")
V = np.asarray([0.3, -0.7, 1.2])
W = np.asarray([1.0, 0.5, -2.0])


def energy(x: Any) -> Any:
    return xp.sum(xp.sin(x) * x**2) + xp.prod(x)


def test_value_and_grad_is_grad_and_value_the_other_way_round(xpgrad_device: str) -> None:
    x = xp.asarray(V, device=xpgrad_device)
    value, slope = value_and_grad(energy)(x)
    expected, out = xp.func.grad_and_value(energy)(x)
    assert (value.tolist(), slope.tolist()) == (out.tolist(), expected.tolist())
    (value, aux), slopes = value_and_grad(lambda a, b: (energy(a * b), a), argnums=(0, 1), has_aux=True)(x, x)
    assert aux.tolist() == V.tolist()
    np.testing.assert_allclose(slopes[0].numpy(), (grad(lambda t: energy(t * x))(x)).numpy())


def test_elementwise_derivatives(xpgrad_device: str) -> None:
    x = xp.asarray(V, device=xpgrad_device)
    np.testing.assert_allclose(elementwise_grad(xp.sin)(x).numpy(), np.cos(V))
    np.testing.assert_allclose(elementwise_grad(elementwise_grad(xp.sin))(x).numpy(), -np.sin(V))
    found = elementwise_grad(lambda a, b: a * b["k"], argnums=(0, 1))(x, {"k": x * 2})
    np.testing.assert_allclose(found[1]["k"].numpy(), V)
    np.testing.assert_allclose(vmap(elementwise_grad(xp.exp))(x).numpy(), np.exp(V))


@pytest.mark.parametrize("out", ["a string", [1.0], lambda x: x > 0], ids=["text", "list", "bools"])
def test_elementwise_derivatives_of_something_else(out: Any) -> None:
    with pytest.raises(RuntimeError, match="elementwise_grad: Expected the function to return a real floating Tensor, but got"):
        elementwise_grad(lambda x: out(x) if callable(out) else out)(xp.asarray(V))


def test_products_with_the_hessian(xpgrad_device: str) -> None:
    x, w = xp.asarray(V, device=xpgrad_device), xp.asarray(W, device=xpgrad_device)
    whole = hessian(energy)(x).numpy()
    np.testing.assert_allclose(hessian_vector_product(energy)(x, w).numpy(), whole @ W)
    rows = vmap(lambda v: hessian_vector_product(energy)(x, v))(xp.eye(3, dtype=x.dtype, device=x.device))
    np.testing.assert_allclose(rows.numpy(), whole)
    # Trees, further arguments, and functions that depend on the vector and the point.
    found = hessian_vector_product(lambda k, p: k * energy(p["a"] * p["b"]), argnums=1)(2.0, {"a": x, "b": 1.5}, {"a": w, "b": 0.0})
    np.testing.assert_allclose(found["a"].numpy(), 2.0 * 1.5**2 * hessian(energy)(x * 1.5).numpy() @ W)
    third = grad(lambda t: xp.sum(hessian_vector_product(lambda s: xp.sum(s**3))(t, w)))(x)
    np.testing.assert_allclose(third.numpy(), 6.0 * W)
    with pytest.raises(TypeError, match="the vector behind them"):
        hessian_vector_product(energy)(x)
    with pytest.raises(RuntimeError):
        hessian_vector_product(energy)(x, w[:2])


leaves = st.tuples(st.lists(st.integers(0, 3), max_size=3), st.sampled_from(["float64", "float32", "int64"]), st.integers(0, 99))
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.builds(Pair, inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


def is_leaf(tree: Any) -> bool:
    return type(tree) is tuple and len(tree) == 3 and isinstance(tree[1], str)


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    if is_leaf(tree) or not isinstance(tree, (list, tuple, dict)):
        return function(tree)
    if isinstance(tree, dict):
        return {key: map_tree(function, value) for key, value in tree.items()}
    parts = [map_tree(function, part) for part in tree]
    return type(tree)(*parts) if isinstance(tree, Pair) else type(tree)(parts)


def list_leaves(tree: Any) -> list[Any]:
    found: list[Any] = []
    map_tree(found.append, tree)
    return found


@given(tree=trees)
@settings(deadline=None, max_examples=150)
def test_a_tree_is_a_vector_and_the_vector_the_tree(tree: Any) -> None:
    tensors = map_tree(lambda leaf: xp.asarray(np.random.default_rng(leaf[2]).integers(-9, 9, leaf[0]).astype(leaf[1])), tree)
    flat, unravel = ravel_pytree(tensors)
    assert flat.tolist() == [v for x in list_leaves(tensors) for v in x.numpy().ravel().tolist()]
    again = unravel(flat)
    assert repr(map_tree(lambda x: (tuple(x.shape), x.dtype.name, x.tolist()), again)) == repr(
        map_tree(lambda x: (tuple(x.shape), x.dtype.name, x.tolist()), tensors)
    )
    with pytest.raises(ValueError, match="unravel: expected a vector of shape"):
        unravel(xp.zeros(flat.shape[0] + 1))


def test_raveling_differentiates_both_ways(xpgrad_device: str) -> None:
    a, b = xp.asarray(V, device=xpgrad_device), xp.asarray(2.0, device=xpgrad_device, dtype=xp.float32)
    flat, unravel = ravel_pytree({"a": a, "b": b})
    found = grad(lambda p: xp.sum(ravel_pytree(p)[0] ** 2))({"a": a, "b": b})
    np.testing.assert_allclose(found["a"].numpy(), 2 * V)
    assert (found["b"].dtype, found["b"].item()) == (xp.float32, 4.0)
    through = grad(lambda f: xp.sum(unravel(f)["a"] ** 2) * unravel(f)["b"])(flat)
    np.testing.assert_allclose(through.numpy(), [*(4 * V), np.sum(V**2)], rtol=1e-6)


def test_what_cannot_be_raveled() -> None:
    with pytest.raises(TypeError, match="ravel_pytree"):
        ravel_pytree(["text"])
    with pytest.raises(DeviceMismatchError):
        ravel_pytree([xp.ones(2), xp.ones(2, device="strict")])


# -- SciPy ------------------------------------------------------------------------------------------------------------------


def bowl(p: Any, shift: float = 0.0) -> Any:
    return xp.sum((p["a"] - 3.0 - shift) ** 2) + p["b"] ** 4 + xp.sum(p["a"]) * p["b"] ** 2


def test_an_objective_has_the_derivatives_of_its_function(xpgrad_device: str) -> None:
    start = {"a": xp.asarray(V[:2], device=xpgrad_device), "b": xp.asarray(0.5, dtype=xp.float64, device=xpgrad_device)}
    f = scipy_objective(bowl, start)
    assert f.x0.tolist() == [0.3, -0.7, 0.5]
    x, p, step = np.asarray([1.0, 2.0, -0.5]), np.asarray([0.3, -1.0, 0.7]), 1e-5
    for args in ((), (1.5,)):
        value, slope = f(x, *args)
        assert type(value) is float
        assert (f.fun(x, *args), f.jac(x, *args).tolist()) == (value, slope.tolist())
        assert isinstance(slope, np.ndarray)
        assert slope.dtype == np.float64
        assert slope.flags.writeable
        ends = [f.fun(x + s * step * p, *args) for s in (1, -1)]
        assert slope @ p == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-7)
        slopes = [f.jac(x + s * step * p, *args) for s in (1, -1)]
        np.testing.assert_allclose(f.hessp(x, p, *args), (slopes[0] - slopes[1]) / (2 * step), rtol=1e-7)
        np.testing.assert_allclose(f.hess(x, *args) @ p, f.hessp(x, p, *args))
    assert str(f.unravel(x)["a"].device) == xpgrad_device
    assert x.tolist() == [1.0, 2.0, -0.5]


def test_residuals_have_a_jacobian(xpgrad_device: str) -> None:
    c = xp.asarray(np.linspace(0.0, 1.0, 6).reshape(2, 3), device=xpgrad_device)
    f = scipy_objective(lambda p: {"r": xp.exp(p[0] * c) * p[1], "s": [p[2] ** 2, 7.0]}, xp.asarray(V, device=xpgrad_device))
    value, jacobian = f(V)
    assert (value.shape, jacobian.shape) == ((8,), (8, 3))
    step = 1e-6
    for k in range(3):
        e = np.eye(3)[k] * step
        np.testing.assert_allclose(jacobian[:, k], (f.fun(V + e) - f.fun(V - e)) / (2 * step), rtol=1e-6, atol=1e-8)
    for method in (f.hess, lambda x: f.hessp(x, x)):
        with pytest.raises(ValueError, match="needs a function that returns a 0-d Tensor, but it returned 8 residuals"):
            method(V)


def test_single_precision_and_constants() -> None:
    f = scipy_objective(lambda p: xp.sum(p * p), xp.asarray([1.0, 2.0], dtype=xp.float32))
    slope = f.jac(np.asarray([0.1, 0.2]))
    assert slope.dtype == np.float64
    np.testing.assert_allclose(slope, [0.2, 0.4], rtol=1e-6)
    constant = scipy_objective(lambda p: xp.asarray(3.0), np.ones(2))
    assert constant(np.ones(2))[1].tolist() == [0.0, 0.0]
    with xp.no_grad():
        assert f(np.asarray([1.0, 2.0]))[1].tolist() == [2.0, 4.0]


def test_what_is_not_an_objective() -> None:
    with pytest.raises(TypeError, match="real floating numbers, but they meet in int64"):
        scipy_objective(bowl, [1, 2])
    with pytest.raises(TypeError, match="complex128"):
        scipy_objective(bowl, xp.asarray([1j]))
    with pytest.raises(TypeError, match="callable"):
        scipy_objective(3, V)  # type: ignore[arg-type]
    f = scipy_objective(lambda p: p > 0, V)
    with pytest.raises(TypeError, match="must return real floating Tensors, but returned bool"):
        f(V)
    with pytest.raises(ValueError, match=r"expected a vector of shape \(3,\)"):
        f(np.ones(2))


def test_scipy_finds_the_minimum() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    f = scipy_objective(bowl, {"a": xp.zeros(2), "b": 1.0})
    for options in ({"method": "L-BFGS-B"}, {"method": "trust-ncg", "hessp": f.hessp}, {"method": "trust-exact", "hess": f.hess}):
        found = optimize.minimize(f, f.x0, jac=True, **options)
        np.testing.assert_allclose(f.unravel(found.x)["a"].numpy(), [3.0, 3.0], atol=1e-4)
    shifted = optimize.minimize(f, f.x0, args=(1.0,), jac=True)
    np.testing.assert_allclose(shifted.x[:2], [4.0, 4.0], atol=1e-4)
