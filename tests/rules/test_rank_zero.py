"""Law: in every transform, a 0-d Tensor is reduced along axis 0 or -1 like a vector with its one element, as in NumPy and PyTorch.

Its gradient accumulates like any other, also if a library represents it by immutable scalars.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp

#: Functions of a Tensor and an axis that reduce or accumulate; those of the second table have no gradient.
SMOOTH: dict[str, Callable[[Any, Any], Any]] = {
    "sum": lambda x, axis: xp.sum(x, axis=axis),
    "sum, kept": lambda x, axis: xp.sum(x, axis=axis, keepdims=True),
    "sum of dtype": lambda x, axis: xp.sum(x, axis=axis, dtype=x.dtype),
    "prod": lambda x, axis: xp.prod(x, axis=axis),
    "mean": lambda x, axis: xp.mean(x, axis=axis),
    "mean, kept": lambda x, axis: xp.mean(x, axis=axis, keepdims=True),
    "max": lambda x, axis: xp.max(x, axis=axis),
    "min": lambda x, axis: xp.min(x, axis=axis),
    "var": lambda x, axis: xp.var(x, axis=axis),
    "std": lambda x, axis: xp.std(x, axis=axis),
    "vector_norm": lambda x, axis: xp.linalg.vector_norm(x, axis=axis),
    "method": lambda x, axis: x.sum(axis) + x.amax(axis) * x.mean(dim=axis),
}
ONE_AXIS: dict[str, Callable[[Any, Any], Any]] = {
    "cumulative_sum": lambda x, axis: xp.cumulative_sum(x, axis=axis),
    "cumulative_prod": lambda x, axis: xp.cumulative_prod(x, axis=axis),
    "methods": lambda x, axis: x.cumsum(axis) * x.cumprod(axis),
}
CONSTANT: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda x, axis: xp.all(x, axis=axis),
    "any": lambda x, axis: xp.any(x, axis=axis),
    "count_nonzero": lambda x, axis: xp.count_nonzero(x, axis=axis),
}
CONSTANT_ONE_AXIS: dict[str, Callable[[Any, Any], Any]] = {
    "argmax": lambda x, axis: xp.argmax(x, axis=axis),
    "argmin": lambda x, axis: xp.argmin(x, axis=axis, keepdims=True),
}
EVERY = {**SMOOTH, **ONE_AXIS, **CONSTANT, **CONSTANT_ONE_AXIS}
AXES = (0, -1, (0,), (-1,))


def axes_of(name: str) -> tuple[Any, ...]:
    return AXES if name in SMOOTH or name in CONSTANT else (0, -1)


def of_a_vector(f: Callable[[Any, Any], Any], x: Any, axis: Any) -> Any:
    """Apply `f` to the vector with the one element of `x`."""
    return xp.reshape(f(xp.reshape(x, (1,)), axis), ())


@pytest.mark.parametrize("name", EVERY)
def test_values(name: str, xpgrad_device: str) -> None:
    x = xp.tensor(-1.5, device=xpgrad_device)
    for axis in axes_of(name):
        out = EVERY[name](x, axis)
        assert out.shape == ()
        assert out.item() == of_a_vector(EVERY[name], x, axis).item()
        assert out.dtype is of_a_vector(EVERY[name], x, axis).dtype


@pytest.mark.parametrize("name", [*SMOOTH, *ONE_AXIS])
def test_gradients_and_tangents(name: str, xpgrad_device: str) -> None:
    f = EVERY[name]
    for axis in axes_of(name):
        x = xp.tensor(1.5, device=xpgrad_device)
        expected = xp.func.grad(lambda x, axis=axis: of_a_vector(f, x, axis))(x).item()
        assert xp.func.grad(lambda x, axis=axis: f(x, axis))(x).item() == expected
        assert xp.func.jvp(lambda x, axis=axis: f(x, axis), (x,), (xp.ones_like(x),))[1].item() == expected


@pytest.mark.parametrize("name", EVERY)
def test_elements_of_a_batch(name: str, xpgrad_device: str) -> None:
    x = xp.tensor([1.5, 0.0, -2.0], device=xpgrad_device)
    for axis in axes_of(name):
        out = xp.func.vmap(lambda x, axis=axis: EVERY[name](x, axis))(x)
        np.testing.assert_array_equal(out.numpy(), [EVERY[name](x[i], axis).item() for i in range(3)])
        if name in SMOOTH or name in ONE_AXIS:
            slope = xp.func.vmap(xp.func.grad(lambda x, axis=axis: EVERY[name](x, axis)))(x)
            expected = [xp.func.grad(lambda x, axis=axis: EVERY[name](x, axis))(x[i]).item() for i in range(3)]
            np.testing.assert_array_equal(slope.numpy(), expected)


@pytest.mark.parametrize("name", EVERY)
def test_it_has_no_other_axis(name: str) -> None:
    for axis in (1, -2):
        with pytest.raises(IndexError, match="out of range"):
            EVERY[name](xp.tensor(1.5), axis)
    with pytest.raises(TypeError, match="must be an int"):
        EVERY[name](xp.tensor(1.5), 0.0)


def test_axes_named_twice() -> None:
    with pytest.raises(ValueError, match="twice"):
        xp.sum(xp.tensor(1.5), axis=(0, -1))


def test_a_total_that_begins_with_nothing_needs_an_axis() -> None:
    with pytest.raises(ValueError, match="include_initial"):
        xp.cumulative_sum(xp.tensor(1.5), axis=0, include_initial=True)


@pytest.mark.parametrize("keep", [True, False])
def test_a_mask_adds_to_a_gradient_that_is_there(keep: bool, xpgrad_device: str) -> None:
    x = xp.asarray(3.0, device=xpgrad_device).requires_grad_()
    y = x * 2.0
    part = xp.sum(y[xp.asarray(keep, device=xpgrad_device)])
    (part + y * 3.0 + y * 4.0).backward()  # the mask was used first, so that it is differentiated last
    assert float(x.grad) == 2.0 * (keep + 7.0)
