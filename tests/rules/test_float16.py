"""Law: float16, which holds no number above 65,504 and no integer between 2,048 and 2,050, loses nothing on longer arrays.

The expected values are closed forms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import values

COUNT = 70_000
SIGNS = (-1.0) ** np.arange(COUNT)
ONES = np.ones(COUNT)
NINTH = np.arange(COUNT) == 8


@dataclass(frozen=True)
class Case:
    """A function along an axis, a point, its gradient there times `COUNT`, and a tangent with its image."""

    function: Callable[[Any, Any, bool], Any]
    point: np.ndarray
    gradient: np.ndarray
    tangent: np.ndarray
    image: float


def _norm(x: Any, axis: Any, keepdims: bool, order: float) -> Any:
    return xp.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=order)


CASES: dict[str, Case] = {
    "mean": Case(lambda x, a, k: xp.mean(x, axis=a, keepdims=k), SIGNS, ONES, 1 + SIGNS, 1.0),
    "max": Case(lambda x, a, k: xp.max(x, axis=a, keepdims=k), ONES, ONES, 1 + SIGNS, 1.0),
    "min": Case(lambda x, a, k: xp.min(x, axis=a, keepdims=k), ONES, ONES, 1 + SIGNS, 1.0),
    "max without ties": Case(lambda x, a, k: xp.max(x, axis=a, keepdims=k), 1.0 * NINTH, COUNT * NINTH, SIGNS, 1.0),
    "var": Case(lambda x, a, k: xp.var(x, axis=a, keepdims=k), SIGNS, 2 * SIGNS, SIGNS, 2.0),
    "var corrected": Case(
        lambda x, a, k: xp.var(x, axis=a, keepdims=k, correction=COUNT / 2), SIGNS, 4 * SIGNS, SIGNS, 4.0
    ),
    "std": Case(lambda x, a, k: xp.std(x, axis=a, keepdims=k), SIGNS, SIGNS, SIGNS, 1.0),
    "norm inf": Case(lambda x, a, k: _norm(x, a, k, float("inf")), SIGNS, SIGNS, SIGNS, 1.0),
    "norm -inf": Case(lambda x, a, k: _norm(x, a, k, -float("inf")), SIGNS, SIGNS, SIGNS, 1.0),
}  # fmt: skip
#: The shape of the point, and the axis.
SHAPES: list[tuple[tuple[int, ...], Any]] = [((COUNT,), None), ((COUNT,), 0), ((2, COUNT), 1), ((COUNT, 2), 0), ((1, 2, COUNT), (0, 2))]
SCALE = 512.0  # beyond it the gradients are not subnormal


def _spread(data: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Broadcast numbers along the long axis to a shape."""
    long = shape.index(COUNT)
    return np.broadcast_to(data.reshape(tuple(COUNT if i == long else 1 for i in range(len(shape)))), shape)


def _half(data: np.ndarray, device: str) -> Any:
    return xp.asarray(data.astype(np.float16), device=device)


@pytest.fixture(autouse=True)
def _has_float16(xpgrad_device: str) -> None:
    if all(d.name != "float16" for d in xp.zeros(1, dtype="float32", device=xpgrad_device).backend.dtypes()):
        pytest.skip(f"{xpgrad_device} has no float16")


@pytest.mark.slow(one_in=21)
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_counts_above_the_largest_float16(name: str, shape: tuple[int, ...], axis: Any, keepdims: bool, xpgrad_device: str) -> None:
    case = CASES[name]
    expected = _spread(case.gradient, shape) * (SCALE / COUNT)
    x = _half(_spread(case.point, shape), xpgrad_device)

    def loss(t: Any) -> Any:
        return xp.sum(case.function(t, axis, keepdims)) * SCALE

    leaf = x.clone().requires_grad_()
    found = {
        "plain": xp.autograd.grad(loss(leaf), leaf)[0],
        "create_graph": xp.autograd.grad(loss(leaf), leaf, create_graph=True)[0],
        "func.grad": xp.func.grad(loss)(x),
        "vmap": xp.func.vmap(xp.func.grad(loss))(xp.stack([x, x]))[1],
        "batched": xp.autograd.grad(loss(leaf), leaf, xp.ones(2, dtype="float16", device=xpgrad_device), is_grads_batched=True)[0][1],
    }
    for way, g in found.items():
        assert g.dtype is xp.float16
        np.testing.assert_allclose(values(g).astype(float), expected, rtol=2e-3, err_msg=way)
    tangent = _half(_spread(case.tangent, shape), xpgrad_device)
    images = {
        "jvp": xp.func.jvp(lambda t: case.function(t, axis, keepdims), (x,), (tangent,))[1],
        "vmap of jvp": xp.func.vmap(lambda t, d: xp.func.jvp(lambda u: case.function(u, axis, keepdims), (t,), (d,))[1])(
            xp.stack([x, x]), xp.stack([tangent, tangent])
        )[1],
    }
    for way, image in images.items():
        assert image.dtype is xp.float16
        np.testing.assert_allclose(values(image).astype(float), case.image, rtol=4e-3, err_msg=way)


def test_second_derivatives(xpgrad_device: str) -> None:
    """The Hessian of the variance maps u to ``2 / n (u - mean u)``."""
    x = _half(SIGNS, xpgrad_device).requires_grad_()
    (g,) = xp.autograd.grad(xp.var(x) * SCALE, x, create_graph=True)
    (h,) = xp.autograd.grad(g, x, _half(SIGNS, xpgrad_device))
    np.testing.assert_allclose(values(h).astype(float), 2 * SCALE / COUNT * SIGNS, rtol=4e-3)


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies(name: str, xpgrad_device: str) -> None:
    found = getattr(xp.fft, name)(COUNT, dtype="float16", device=xpgrad_device)
    assert found.dtype is xp.float16
    np.testing.assert_array_equal(values(found), getattr(np.fft, name)(COUNT).astype(np.float16))
