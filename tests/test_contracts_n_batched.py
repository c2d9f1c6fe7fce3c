"""Contracts of group N: ``is_grads_batched``. Each test names its contracts first in its docstring."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

EYE = np.eye(2)


def batched(lib: Any, outputs: Any, inputs: Any, seeds: Any, **options: Any) -> Any:
    return lib.grad(outputs, inputs, seeds, is_grads_batched=True, **options)


def test_stacked_products(lib: Any) -> None:
    """BAT-01."""
    x, w = lib.tensor([1.0, 2.0]), lib.tensor(3.0)
    jx, jw = batched(lib, x * x * w, [x, w], lib.const(EYE))
    lib.equal(jx, [[6.0, 0.0], [0.0, 12.0]])
    lib.equal(jw, [1.0, 4.0])


@pytest.mark.parametrize(
    ("seed", "error", "phrase"),
    [
        (np.ones(2), RuntimeError, "If `is_grads_batched=True`, we interpret the first dimension"),
        (np.ones((2, 3)), RuntimeError, "If `is_grads_batched=True`, we interpret the first dimension"),
        (np.ones(()), IndexError, None),
        (np.ones((0, 2)), IndexError, None),
    ],
)
def test_shapes(lib: Any, seed: Any, error: Any, phrase: str) -> None:
    """BAT-02."""
    x = lib.tensor([1.0, 2.0])
    with pytest.raises(error, match=phrase):
        batched(lib, x * x, x, lib.const(seed))


def test_one_batch_size(lib: Any) -> None:
    """BAT-03."""
    x = lib.tensor([1.0, 2.0])
    y = x * x
    with pytest.raises(ValueError, match=r"Expected all tensors to have the same size in the mapped dimension, got sizes .2, 3."):
        batched(lib, [y, y], x, [lib.const(EYE), lib.ones(3, 2)])


def test_none(lib: Any) -> None:
    """BAT-04."""
    x = lib.tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="of dimensionality 0"):
        batched(lib, x.sum(), x, None)


def test_unused_inputs(lib: Any) -> None:
    """BAT-05."""
    x, u = lib.tensor([1.0, 2.0]), lib.tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used"):
        batched(lib, x * x, [x, u], lib.const(EYE))
    assert batched(lib, x * x, [x, u], lib.const(EYE), allow_unused=True)[1] is None


def test_materialised_zeros(ours: Any) -> None:
    """BAT-05, a deviation: PyTorch's zeros lack the batch axis."""
    x, u = ours.tensor([1.0, 2.0]), ours.tensor([1.0, 2.0, 3.0])
    ours.equal(batched(ours, x * x, [x, u], ours.const(EYE), materialize_grads=True)[1], np.zeros((2, 3)))


def test_create_graph(lib: Any) -> None:
    """BAT-06."""
    x = lib.tensor([1.0, 2.0])
    (j,) = batched(lib, x * x * x, x, lib.const(EYE), create_graph=True)
    lib.equal(lib.grad(j.sum(), x)[0], [6.0, 12.0])
    v = lib.tensor(EYE)
    (j,) = batched(lib, x * x, x, v, create_graph=True)
    lib.equal(lib.grad(j.sum(), v)[0], [[2.0, 4.0], [2.0, 4.0]])


def test_hooks(lib: Any) -> None:
    """BAT-07: they see one sample's shape."""
    x, seen = lib.tensor([1.0, 2.0]), []
    y = x * x
    y.register_hook(lambda g: seen.append(tuple(g.shape)))
    batched(lib, y * 1, x, lib.const(EYE))
    assert set(seen) == {(2,)}


def test_dict_and_undefined(lib: Any) -> None:
    """BAT-01, GRD-23."""
    x = lib.tensor([1.0, 2.0])
    found = batched(lib, x * x, {"x": x}, lib.const(EYE))
    assert list(found) == ["x"]
    lib.equal(found["x"], [[2.0, 0.0], [0.0, 4.0]])
