"""Law: `compute` hands the arrays of each library to `compute_many` in one call, and changes nothing but who holds the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import kernels_only
from xpgrad.backend import BackendInfo
from xpgrad.registry import backend_names, register_backend

CALLS: list[list[Any]] = []


class Postponing(kernels_only.KernelsOnlyBackend):
    """NumPy arrays that are never written; `compute_many` returns copies, and notes its calls."""

    name = "postponing"

    def __init__(self, variant: str | None) -> None:
        super().__init__(variant)
        self.device = xp.Device("postponing")
        self.capabilities = replace(self.capabilities, mutable=False, view_aliases=False)

    def own(self, tensor: Any) -> Any:
        return tensor._array

    def compute_many(self, arrays: Sequence[Any]) -> Sequence[Any]:
        CALLS.append(list(arrays))
        return [np.array(a) for a in arrays]


@pytest.fixture(autouse=True)
def calls() -> list[list[Any]]:
    if "postponing" not in backend_names():
        register_backend(BackendInfo(name="postponing", load=Postponing, install="part of the tests"))
    CALLS.clear()
    return CALLS


def tensor(*values: float, requires_grad: bool = False) -> xp.Tensor:
    return xp.tensor(values, dtype=xp.float32, device="postponing", requires_grad=requires_grad)


def test_each_library_computes_once(calls: list[list[Any]]) -> None:
    a, b, c = tensor(1.0), tensor(2.0), xp.ones(2, device="numpy")
    before = [a.array, b.array]
    host = c.array
    xp.compute(a, None, c, b)
    assert [[id(x) for x in call] for call in calls] == [[id(x) for x in before]]
    assert a.array is not before[0]
    assert b.array is not before[1]
    assert c.array is host  # NumPy has computed already


def test_only_values_are_replaced() -> None:
    x = tensor(1.0, 2.0, 3.0, requires_grad=True)
    y = x * x
    view, first = y[1:], y[0]
    version = y._version
    xp.compute(x, y, view)
    assert y._version == version
    assert (x.is_leaf, y.is_leaf) == (True, False)
    y[0] = 7.0  # a write after it reaches every view, as before
    assert first.item() == 7.0
    view[0] = 8.0
    assert y.tolist() == [7.0, 8.0, 9.0]
    xp.sum(y * y).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.0, 0.0, 2 * 9.0 * 6.0]
    grad = x.grad
    xp.compute(x.grad)
    assert x.grad is grad


def test_a_leaf_that_is_recreated_has_the_computed_values() -> None:
    x = tensor(3.0, requires_grad=True)
    y = x * 2.0
    xp.compute(x)
    array = x.array
    del x
    assert y.grad_fn is not None
    node: Any = y.grad_fn.next_functions[0][0]
    assert node.variable.array is array


@pytest.mark.parametrize("wrong", [[1.0], 1.0, np.ones(2), "x"], ids=str)
def test_anything_else_is_refused_before_anything_is_computed(wrong: Any, calls: list[list[Any]]) -> None:
    with pytest.raises(TypeError, match=r"compute: expected Tensors, but got .*; pass each one"):
        xp.compute(tensor(1.0), wrong)
    assert not calls


def test_scipy_gets_value_and_gradient_from_one_computation(calls: list[list[Any]]) -> None:
    objective = xp.autograd.interop.scipy_objective(lambda p: xp.sum(p * p), tensor(1.0, 2.0))
    value, slope = objective(objective.x0)
    assert (value, slope.tolist()) == (5.0, [2.0, 4.0])
    assert [len(call) for call in calls] == [2]


def test_transforms_and_compiled_functions_pass_it_by() -> None:
    x = tensor(1.0, 2.0)

    def square(v: Any) -> Any:
        y = v * v
        xp.compute(v, y)
        return y

    assert xp.func.vmap(square)(x).tolist() == [1.0, 4.0]
    assert xp.func.jvp(square, (x,), (tensor(1.0, 1.0),))[1].tolist() == [2.0, 4.0]
    assert xp.func.grad(lambda v: xp.sum(square(v)))(x).tolist() == [2.0, 4.0]
    assert xp.compile(square)(x).tolist() == [1.0, 4.0]


def test_a_view_keeps_its_values_and_its_base(calls: list[list[Any]]) -> None:
    """It holds what was computed; its base, whose memory was not, is as before."""
    base = tensor(1.0, 2.0, 3.0)
    part = base[1:]
    before = base.array, part.array
    xp.compute(part)
    assert base.array is before[0]
    assert part.array is not before[1]
    np.testing.assert_array_equal(part.numpy(), [2.0, 3.0])
    with xp.no_grad():
        base += 1.0
    np.testing.assert_array_equal(part.numpy(), [3.0, 4.0])
