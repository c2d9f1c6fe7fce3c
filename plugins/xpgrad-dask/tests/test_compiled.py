"""Law: a function compiled on dask has the values and gradients of NumPy's; its elementwise operations are one task per chunk."""

from __future__ import annotations

import random
from typing import Any

import dask.array as da
import numpy as np
import pytest

import xpgrad as xp

SHAPES = {(12,): [(12,), (5, 4, 3), (1,) * 12], (4, 6): [((4,), (6,)), ((2, 2), (3, 3)), ((1, 3), (6,))], (): [()]}
ELEMENTWISE = (
    lambda a, b: a * b, lambda a, b: a - b, lambda a, b: xp.sin(a) / (b * b + 1.0), lambda a, b: xp.maximum(a, b),
    lambda a, b: xp.where(a > b, a, 2.0 * b), lambda a, b: xp.tanh(a) + 0.5,
    lambda a, b: xp.astype(xp.astype(a, xp.float32), xp.float64) * b,
    lambda a, b: xp.clip(a, -0.5, 0.5) * b,
)  # fmt: skip
OTHERS = (
    lambda a: a * xp.sum(a), lambda a: a / (1.0 + xp.max(a) ** 2), lambda a: xp.cumulative_sum(a, axis=0) if a.ndim else a,
    lambda a: xp.flip(a) if a.ndim else a, lambda a: a * xp.mean(a * a),
)  # fmt: skip


def program(seed: int) -> Any:
    """Return a random function of three Tensors of one shape and a 0-d Tensor."""
    rng = random.Random(seed)
    steps = [(rng.random(), rng.choice(ELEMENTWISE), rng.choice(OTHERS), rng.random(), rng.random()) for _ in range(rng.randint(3, 9))]

    def function(a: Any, b: Any, c: Any, s: Any) -> Any:
        values = [a, b, c * s]
        for kind, two, one, first, second in steps:
            x, y = values[-1 - int(first * len(values))], values[-1 - int(second * len(values))]
            values.append(two(x, y) if kind < 0.75 else one(x))
        return xp.sum(values[-1] * values[-2]) + s, values[-1]

    return function


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("seed", range(12))
def test_programs(seed: int, shape: tuple[int, ...]) -> None:
    generator, rng = np.random.default_rng(seed), random.Random(seed)
    data = [*(generator.normal(size=shape) for _ in range(3)), np.asarray(0.7)]
    function = program(seed)

    def found(leaves: list[Any], f: Any) -> list[np.ndarray]:
        total, last = f(*leaves)
        (total + 0.0 * xp.sum(last)).backward()
        return [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in leaves] + [total.detach().numpy()]

    expected = found([xp.tensor(d, requires_grad=True) for d in data], function)
    compiled = xp.compile(function)
    for _ in range(2):  # the second call has other chunks than the captured one
        parts = [rng.choice(SHAPES[shape]) for _ in range(3)]
        arrays = [da.from_array(d, chunks=p if shape == () or len(shape) > 1 else (p,)) for d, p in zip(data, parts)]
        leaves = [xp.tensor(x, requires_grad=True) for x in (*arrays, da.from_array(data[3], chunks=()))]
        for a, b in zip(found(leaves, compiled), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9)


def test_one_task_for_each_chunk() -> None:
    def chain(x: Any, w: Any) -> Any:
        for _ in range(20):
            x = xp.sin(x * w)
        return xp.sum(x)

    def tasks(f: Any) -> int:
        x, w = (xp.tensor(da.ones(40, chunks=10), requires_grad=True) for _ in range(2))
        f(x, w).backward()
        return len(dict(x.grad.array.__dask_graph__()))

    assert tasks(xp.compile(chain)) <= 4 * 5  # at most five tasks per chunk: two inputs, the piece, and its two results, the gradients
    assert tasks(chain) > 4 * 60
