"""Laws of writes: a value may have more leading axes of length 1 than its place, and copies of expanded memory are dense."""

from __future__ import annotations

import itertools
import math
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp

X = np.arange(24.0).reshape(2, 3, 4)
PARTS = (
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(None, None, 2),
    None,
    ...,
    np.array([0, 1]),
    np.array([[0], [1]]),
    np.array(1),
    np.array(True),
)
KEYS = [key for rank in (1, 2, 3) for key in itertools.product(range(len(PARTS)), repeat=rank)]


def shape_at(key: Any) -> tuple[int, ...] | None:
    """Return the shape of the part of the NumPy array at `key`; None if the key is invalid or repeats an element."""
    places = np.arange(X.size).reshape(X.shape)
    try:
        part = places[key]
    except IndexError:
        return None
    return part.shape if len(set(part.ravel().tolist())) == part.size else None


@pytest.mark.slow(one_in=6)
@settings(max_examples=150, deadline=None)
@given(chosen=st.sampled_from(KEYS), extra=st.integers(0, 3), short=st.integers(0, 2))
def test_the_gradient_of_a_written_value(chosen: tuple[int, ...], extra: int, short: int, xpgrad_device: str) -> None:
    key = tuple(PARTS[i] for i in chosen)
    shape = shape_at(key)
    if shape is None:
        return
    plain = shape[min(short, len(shape)) :]
    shape = (1,) * extra + plain
    value = np.cos(np.arange(math.prod(shape))).reshape(shape)
    expected, weights = X.copy(), np.sin(X + 1)
    expected[key] = value.reshape(plain)  # NumPy refuses leading axes if the key selects one element
    ours = tuple(xp.asarray(part, device=xpgrad_device) if isinstance(part, np.ndarray) else part for part in key)
    x, v = (xp.tensor(data, device=xpgrad_device, requires_grad=True) for data in (X, value))
    y = x * 1.0
    y[ours] = v
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    g_x, g_v = xp.autograd.grad(xp.sum(y * xp.asarray(weights, device=xpgrad_device)), (x, v))
    kept = np.ones_like(X)
    kept[key] = 0
    np.testing.assert_allclose(g_x.numpy(), kept * weights)
    assert g_v.shape == shape
    # The gradient of each number of the value is the sum of the weights of the places that it is written to.
    sums = np.zeros(value.size)
    numbers = np.full(X.shape, -1)
    numbers[key] = np.arange(value.size).reshape(plain)
    np.add.at(sums, numbers[numbers >= 0], weights[numbers >= 0])
    np.testing.assert_allclose(g_v.numpy().reshape(-1), sums, rtol=1e-12, atol=1e-12)


def test_a_value_with_longer_axes_in_front_is_refused(xpgrad_device: str) -> None:
    y = xp.zeros((2, 3), device=xpgrad_device)
    with pytest.raises(ValueError, match="does not fit"):
        y[0] = xp.ones((2, 3), device=xpgrad_device)
    np.testing.assert_array_equal(y.numpy(), np.zeros((2, 3)))


@pytest.mark.parametrize("dtype", ["float64", "bool", "complex128"])
def test_copies_of_expanded_memory_have_the_layout_of_results(dtype: str) -> None:
    y = xp.asarray(np.arange(24).reshape(2, 3, 4).astype(dtype))
    for v in (y[0, 0].expand(2, 4), y[:, :1].expand(2, 5, 4), y[:1].expand(3, 3, 4), y[:, :, :1].expand(2, 3, 5), y[:0].expand(0, 3, 4)):
        for copy in (v.clone(), v.to(xp.float32 if dtype != "complex128" else xp.complex64)):
            assert copy.contiguous() is copy or not copy.size
            np.testing.assert_array_equal(copy.numpy(), v.numpy())
            assert xp.reshape(copy, (-1,)).shape == (math.prod(v.shape),)


def test_a_deep_copy_shares_memory_as_the_original_does(xpgrad_device: str) -> None:
    x = xp.tensor([[1.0, 2.0], [3.0, 4.0]], device=xpgrad_device)
    row, turned = x[1], x.T
    for order in ((x, row, turned), (turned, row, x)):
        copies = deepcopy(order)
        whole = next(c for c, o in zip(copies, order) if o is x)
        part, other = (next(c for c, o in zip(copies, order) if o is view) for view in (row, turned))
        part[0] = 9.0
        assert (whole.tolist(), part.tolist(), other.tolist()) == ([[1.0, 2.0], [9.0, 4.0]], [9.0, 4.0], [[1.0, 9.0], [2.0, 4.0]])
        whole[1, 1] = 7.0
        assert part.tolist() == [9.0, 7.0]
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert deepcopy(x[0]).tolist() == [1.0, 2.0]
