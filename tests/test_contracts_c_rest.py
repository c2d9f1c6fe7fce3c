"""Groups C, D and E, what users seldom touch: `_saved_*`, `Variable`, the layout policy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest


def test_saved_values_can_be_read(lib: Any) -> None:
    """ACC-34: inputs come back as the same object, an output as another one; what is not needed shows None."""
    x, c = lib.tensor([1.0, 2.0]), lib.const([3.0, 4.0])
    product = x * c
    assert product.grad_fn._saved_self is None
    assert product.grad_fn._saved_other is c
    both = x * x
    assert both.grad_fn._saved_self is x
    power = lib.ns.exp(x)
    result = power.grad_fn._saved_result
    assert result is not power
    assert lib.memory(result, power)
    assert result.grad_fn is power.grad_fn


def test_freed_saved_values_cannot_be_read(lib: Any) -> None:
    """RET-10."""
    x = lib.tensor([1.0, 2.0])
    y = x * x
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn._saved_self


def test_overwritten_saved_values_cannot_be_read(ours: Any) -> None:
    """MUT-03, at reading."""
    x = ours.tensor([1.0, 2.0])
    h = x * 1.0
    y = h * h
    h.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.grad_fn._saved_self


def test_variable_is_a_tensor(lib: Any) -> None:
    """ACC-40."""
    data = lib.const([1.0, 2.0])
    x = lib.ag.Variable(data, requires_grad=True)
    (x * x).sum().backward()
    lib.equal(x.grad, [2.0, 4.0])
    assert not data.requires_grad
    with pytest.raises(RuntimeError, match="is deprecated, use"):
        lib.ag.variable([1.0])


def test_the_layout_policy_can_be_switched_off(lib: Any) -> None:
    """LAY-10: a gradient that nobody else holds may keep its own strides."""
    policy = lib.ag.grad_mode.enforce_grad_layout_policy
    factor, seed = lib.ones(3, 4), lib.ones(3, 4)

    def strides() -> tuple[int, ...]:
        x = lib.ones(4, 3).T.requires_grad_()
        (x * factor).backward(seed)  # the leaf's gradient is a fresh row-major product
        lib.equal(x.grad, np.ones((3, 4)))
        return tuple(x.grad.stride())

    of_the_leaf, its_own = (1, 3), (4, 1)
    assert strides() == of_the_leaf
    with policy(False):
        assert strides() == its_own
    assert strides() == of_the_leaf
    assert policy(False)(strides)() == its_own
    assert strides() == of_the_leaf
    policy(False)
    assert strides() == its_own
    policy(True)
    assert strides() == of_the_leaf
