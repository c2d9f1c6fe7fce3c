"""Law: what `reshape` and `contiguous` copy depends on the layout of the array, not on how the function runs.

Eagerly they return views where the strides allow it, and copies elsewhere. A later write shows which of the two. The same holds for a
compiled function, for each element of a batch, wherever the batch axis lies, and where nodes keep what they saved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import values
from xpgrad import func

#: Functions from a matrix that was computed to a matrix or a stack of matrices.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "the same": lambda x: x,
    "transposed": lambda x: xp.permute_dims(x, (1, 0)),
    "rows reversed": lambda x: x[::-1],
    "columns reversed": lambda x: x[:, ::-1],
    "every second column": lambda x: x[:, ::2],
    "some columns": lambda x: x[:, 1:],
    "some rows": lambda x: x[1:],
    "broadcast": lambda x: xp.broadcast_to(x, (2, *x.shape)),
    "a copy of the transposed": lambda x: xp.permute_dims(x, (1, 0)).clone(),
    "a copy of the reversed": lambda x: x[::-1].clone(),
    "computed of the transposed": lambda x: xp.permute_dims(x, (1, 0)) * 2.0,
    "the transposed, contiguous": lambda x: xp.permute_dims(x, (1, 0)).contiguous(),
    "the same, contiguous": lambda x: x.contiguous(),
    "split and merged": lambda x: xp.reshape(x, (2, 2, 3))[:, 1],
}


def _write_to_the_whole(view: Callable[[Any], Any], x: Any) -> Any:
    whole = xp.sin(x)
    part = view(whole)
    flat = xp.reshape(part, (-1,))
    whole[..., -1] *= 0.5
    if part.shape[0] != 2 or part.ndim == 2:  # a broadcast array cannot be written to
        part[0] *= 3.0
    return xp.concat([flat, xp.reshape(part.clone(), (-1,))])


def _write_to_the_flat(view: Callable[[Any], Any], x: Any) -> Any:
    whole = xp.sin(x)
    part = view(whole)
    flat = xp.reshape(part, (-1,))
    if part.ndim == 2:
        flat[1:] *= 2.0
    return xp.concat([xp.reshape(whole.clone(), (-1,)), xp.reshape(part.clone(), (-1,)), flat])


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("write", [_write_to_the_whole, _write_to_the_flat], ids=["whole", "flat"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_reshape_shares_the_memory_that_it_shares_alone(name: str, write: Any, xpgrad_device: str) -> None:
    def function(x: Any) -> Any:
        return write(VIEWS[name], x)

    x = xp.asarray(np.linspace(0.1, 2.0, 24).reshape(2, 4, 3).tolist(), device=xpgrad_device)
    try:
        expected = [values(function(element)) for element in x]
    except RuntimeError as refused:
        pytest.skip(f"refused: {refused}")
    with xp.autograd.graph.allow_mutation_on_saved_tensors():
        np.testing.assert_allclose(values(function(x[0])), expected[0], rtol=1e-5)
    np.testing.assert_allclose(values(xp.compile(function)(x[0])), expected[0], rtol=1e-5)
    np.testing.assert_allclose(values(func.jvp(function, (x[0],), (xp.ones_like(x[0]),))[0]), expected[0], rtol=1e-5)
    np.testing.assert_allclose(values(func.vmap(function)(x)), expected, rtol=1e-5)
    np.testing.assert_allclose(values(xp.compile(func.vmap(function))(x)), expected, rtol=1e-5)
    for axis in (1, 2):
        moved = xp.moveaxis(x, 0, axis)
        for batch in (moved, moved.contiguous()):
            np.testing.assert_allclose(values(func.vmap(function, in_dims=axis)(batch)), expected, rtol=1e-5)


def test_one_element_is_shared(xpgrad_device: str) -> None:
    def function(x: Any) -> Any:
        total = xp.sum(x)
        part = xp.reshape(xp.expand_dims(total, axis=0), (1, 1))
        part[0] += total
        total *= 3.0
        return part + total

    x = xp.asarray([[1.0, 2.0], [3.0, 4.0]], device=xpgrad_device)
    assert values(function(x[0])).tolist() == values(xp.compile(function)(x[0])).tolist() == [[36.0]]
    assert values(func.vmap(function)(x)).tolist() == [[[36.0]], [[84.0]]]


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize("name", VIEWS)
def test_gradients_follow(name: str) -> None:
    def loss(x: Any) -> Any:
        return xp.sum(_write_to_the_whole(VIEWS[name], x) ** 2) + xp.sum(_write_to_the_flat(VIEWS[name], x) ** 3)

    x = xp.asarray(np.linspace(0.1, 2.0, 24).reshape(2, 4, 3))
    expected = [values(func.grad(loss)(element)) for element in x]
    np.testing.assert_allclose(values(xp.compile(func.grad(loss))(x[0])), expected[0])
    np.testing.assert_allclose(values(func.vmap(func.grad(loss), in_dims=1)(xp.moveaxis(x, 0, 1).contiguous())), expected)


@pytest.mark.parametrize("write", [_write_to_the_whole, _write_to_the_flat], ids=["whole", "flat"])
@pytest.mark.parametrize("name", ["the same", "transposed", "some columns", "the same, contiguous"])
def test_a_compiled_function_follows_the_layout_of_each_call(name: str, write: Any, xpgrad_device: str) -> None:
    def function(x: Any) -> Any:
        return write(VIEWS[name], x)

    data = xp.asarray(np.linspace(0.1, 2.0, 12).reshape(4, 3).tolist(), device=xpgrad_device)
    layouts = [
        data,
        xp.permute_dims(xp.permute_dims(data, (1, 0)).contiguous(), (1, 0)),
        xp.stack([data, data], axis=2)[..., 0],
        data[::-1],
    ]
    compiled = xp.compile(function)
    for k in (0, 1, 2, 3, 1, 0):
        np.testing.assert_allclose(values(compiled(layouts[k])), values(function(layouts[k])), rtol=1e-5)
    leaf = layouts[1].detach().requires_grad_()
    for first in (compiled(leaf), function(leaf)):
        leaf.grad = None
        xp.sum(first * first).backward()
        np.testing.assert_allclose(values(leaf.grad), values(func.grad(lambda x: xp.sum(function(x) ** 2))(layouts[1])), rtol=1e-5)
