"""The short way of recording a primitive's call gives what the long way gives, and refuses what it must refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from xpgrad.dialects.hips import _primitives, elementwise_grad, grad, jacobian, make_jvp, make_vjp, numpy as anp, value_and_grad
from xpgrad.dialects.hips.extend import defjvp, defvjp, primitive

# -- one function, three arguments, all dtypes -----------------------------------------------------------------------------


@primitive
def combine(x: Any, y: Any, power: int, *, scale: float = 1.0) -> Any:
    return scale * np.asarray(x) ** power * np.asarray(y)


def _summed(g: Any, like: Any) -> Any:
    """Sum a cotangent over the axes along which an argument was broadcast."""
    extra = anp.ndim(g) - anp.ndim(like)
    g = anp.sum(g, axis=tuple(range(extra))) if extra else g
    axes = tuple(i for i, n in enumerate(anp.shape(like)) if n == 1 and anp.shape(g)[i] != 1)
    g = anp.sum(g, axis=axes, keepdims=True) if axes else g
    return g if anp.iscomplexobj(like) else anp.real(g)


defvjp(
    combine,
    lambda ans, x, y, power, scale=1.0: lambda g: _summed(g * scale * power * x ** (power - 1) * y, x),
    lambda ans, x, y, power, scale=1.0: lambda g: _summed(g * scale * x**power, y),
    argnums=(0, 1),
)
defjvp(
    combine,
    lambda g, ans, x, y, power, scale=1.0: g * scale * power * x ** (power - 1) * y,
    lambda g, ans, x, y, power, scale=1.0: g * scale * x**power,
    argnums=(0, 1),
)


@pytest.fixture(name="long_way")
def _long_way(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], Any]:
    """Call a function while no call of a primitive goes the short way."""

    def call(function: Callable[[], Any]) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(_primitives, "_short_arguments", lambda *_: None)
            return function()

    return call


#: Pairs of shapes that broadcast.
_SHAPES = st.sampled_from([
    ((), ()), ((3,), ()), ((), (3,)), ((1,), (3,)), ((2, 3), (3,)), ((2, 1), (2, 3)), ((3,), (2, 1)), ((0, 3), (3,)), ((0,), (1,)),
])  # fmt: skip
_DTYPES = st.sampled_from(["float64", "float32", "complex128"])


def _values(draw: Any, shape: tuple[int, ...], dtype: str) -> Any:
    seed = draw(st.integers(0, 1000))
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.5, 2.0, shape)
    x = x + 1j * rng.uniform(-1, 1, shape) if dtype == "complex128" else x
    return np.asarray(x, dtype) if shape else np.dtype(dtype).type(x)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_both_ways_agree(data: Any) -> None:
    x, y = (_values(data.draw, shape, data.draw(_DTYPES)) for shape in data.draw(_SHAPES))
    power, scale = data.draw(st.integers(1, 3)), data.draw(st.sampled_from([1.0, 0.5]))

    def loss(x: Any, y: Any) -> Any:
        out = combine(anp.sin(x), y, power, scale=scale)
        return anp.sum(anp.abs(combine(out, x, 2)) ** 2)

    def run() -> list[Any]:
        (value, (gx, gy)) = loss(x, y), (grad(loss, 0)(x, y), grad(loss, 1)(x, y))
        second = elementwise_grad(lambda x: grad(loss, 1)(x, y) * 1.0)(x) if not np.iscomplexobj(x) and not np.iscomplexobj(y) else 0.0
        return [value, gx, gy, second]

    short = run()
    before = _primitives._short_arguments
    try:
        _primitives._short_arguments = lambda *_: None  # type: ignore[assignment]
        long = run()
    finally:
        _primitives._short_arguments = before
    for a, b in zip(short, long, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-5 if "32" in str(a.dtype) else 1e-12)


def test_the_short_way_is_taken() -> None:
    seen = []

    def f(x: Any) -> Any:
        out = combine(x, 2.0, 2)
        seen.append(type(out._node))
        return out

    assert grad(f)(1.5) == 6.0
    assert seen == [_primitives.PrimitiveNode]


def test_derivatives_of_any_mode_and_order(long_way: Any) -> None:
    x = np.array([0.5, 1.0, 1.5])

    def f(x: Any) -> Any:
        return combine(anp.cos(x), x, 3)

    def run() -> list[Any]:
        third = elementwise_grad(elementwise_grad(elementwise_grad(f)))(x)
        along = lambda x: make_jvp(f)(x)(np.ones(3))[1]  # noqa: E731
        return [third, jacobian(f)(x), jacobian(jacobian(f))(x), along(x), elementwise_grad(along)(x)]

    def exact(x: Any, h: float = 1e-3) -> Any:
        g = lambda x: np.cos(x) ** 3 * x  # noqa: E731
        return (g(x + 2 * h) - 2 * g(x + h) + 2 * g(x - h) - g(x - 2 * h)) / (2 * h**3)

    short = run()
    for a, b in zip(short, long_way(run), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    np.testing.assert_allclose(short[0], exact(x), rtol=1e-4)


def test_derivatives_of_the_value_that_a_rule_reads() -> None:
    @primitive
    def exponential(x: Any) -> Any:
        return np.exp(x)

    defvjp(exponential, lambda ans, x: lambda g: g * ans)
    third = grad(grad(grad(lambda x: exponential(2.0 * x))))
    assert third(0.5) == pytest.approx(8 * np.e, rel=1e-14)


# -- refusals, and what is kept ----------------------------------------------------------------------------------------------


def test_a_freed_graph_and_an_overwritten_argument_raise() -> None:
    vjp, _ = make_vjp(lambda x: combine(x, 2.0, 2))(np.ones(2))
    assert np.array_equal(vjp(np.ones(2)), [4.0, 4.0])
    assert np.array_equal(vjp(np.ones(2)), [4.0, 4.0])  # as HIPS autograd's, it may be called again

    def writes(x: Any) -> Any:
        y = x * 1.0
        out = combine(y, 2.0, 2)
        y[0] = 7.0
        return anp.sum(out)

    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*argument 0"):
        grad(writes)(np.ones(2))

    def writes_out(x: Any) -> Any:
        out = combine(x, 2.0, 2)
        out[0] = 7.0
        return anp.sum(out)

    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*out"):
        grad(writes_out)(np.ones(2))


def test_the_function_is_called_once_whatever_it_returns() -> None:
    calls = []

    @primitive
    def several(x: Any) -> Any:
        calls.append(type(x))
        return x * 2, {"n": 3}

    defvjp(several, lambda ans, x: lambda g: 2 * g[0])
    assert np.array_equal(grad(lambda x: anp.sum(several(x)[0]))(np.ones(3)), [2.0, 2.0, 2.0])
    assert calls == [np.ndarray]

    @primitive
    def whole(x: Any) -> Any:
        calls.append(type(x))
        return np.argmax(x)

    defvjp(whole, lambda ans, x: lambda g: np.zeros_like(x))
    value, gradient = value_and_grad(lambda x: anp.sum(x) * whole(x))(np.array([1.0, 3.0]))
    assert (value, list(gradient)) == (4.0, [1.0, 1.0])
    assert calls == [np.ndarray] * 2

    @primitive
    def wrong(x: Any) -> Any:
        return np.array(["a"])

    defvjp(wrong, lambda ans, x: lambda g: g)
    with pytest.raises(TypeError, match="a primitive must return arrays and numbers"):
        grad(lambda x: wrong(x))(1.0)


def test_rules_that_are_missing_raise_before_the_function_is_called() -> None:
    calls = []

    @primitive
    def f(x: Any, y: Any) -> Any:
        calls.append(1)
        return x * y

    defvjp(f, lambda ans, x, y: lambda g: g * y)
    assert grad(f)(2.0, 3.0) == 3.0
    assert len(calls) == 1
    with pytest.raises(NotImplementedError, match=r"VJP of f wrt argnums \(1,\)"):
        grad(f, 1)(2.0, 3.0)
    assert len(calls) == 1


def test_a_rule_may_return_numbers_tensors_and_arrays_of_fewer_axes() -> None:
    @primitive
    def f(x: Any) -> Any:
        return np.sum(x)

    for returned in (1, 1.0, np.float32(1), np.ones((1, 1)), np.ones(2)):
        defvjp(f, lambda ans, x, r=returned: lambda g: r)
        found = grad(lambda x: f(x) * 3.0)(np.zeros((3, 2)))
        assert (found.shape, found.dtype) == ((3, 2), np.float64)
        assert np.array_equal(found, np.ones((3, 2)))
        found[0] = 5.0  # a gradient is the caller's own
    defvjp(f, lambda ans, x: lambda g: anp.sin(x) * g)
    assert np.array_equal(grad(f)(np.ones(2)), np.sin(np.ones(2)))
