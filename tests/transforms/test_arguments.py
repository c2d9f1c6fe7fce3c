"""Law: a differentiated function that writes to its arguments, or to what shares their memory, raises an error.

A write to the argument would change the caller's Tensor and lose the derivative of what was there before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad import func

START = np.asarray([[1.0, 2.0], [3.0, 4.0]])


def _write_item(v: Any) -> Any:
    v[0] = 3.0
    return v


WRITES: dict[str, Callable[[Any], Any]] = {
    "mul_": lambda v: v.mul_(2.0),
    "augmented": lambda v: v.__iadd__(1.0),
    "item": _write_item,
    "through a view": lambda v: (v[0].mul_(2.0), v)[1],
    "through a view of a view": lambda v: (xp.expand_dims(v, axis=0)[0, 1].fill_(0.0), v)[1],
    "zero_": lambda v: v.zero_(),
}
TRANSFORMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda f, x: func.grad(lambda v: xp.sum(f(v)))(x),
    "vjp": lambda f, x: func.vjp(f, x),
    "jacrev": lambda f, x: func.jacrev(f)(x),
    "nested": lambda f, x: func.grad(lambda u: xp.sum(func.grad(lambda v: xp.sum(f(v)))(u)))(x),
    "vmap": lambda f, x: func.vmap(func.grad(lambda v: xp.sum(f(v))))(xp.stack([x, x])),
    "vmap of vmap": lambda f, x: func.vmap(func.vmap(func.grad(lambda v: xp.sum(f(v)))))(xp.stack([xp.stack([x, x])] * 2)),
}
GIVEN: dict[str, Callable[[], Any]] = {
    "constant": lambda: xp.tensor(START),
    "leaf": lambda: xp.tensor(START, requires_grad=True),
    "result": lambda: xp.tensor(START, requires_grad=True) * 1,
    "view": lambda: (xp.tensor(np.stack([START, START]), requires_grad=True) * 1)[0],
}


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_writes_to_an_argument_are_refused(transform: str, given: str, write: str) -> None:
    x = GIVEN[given]()
    with pytest.raises(RuntimeError, match="in-place operation"):
        TRANSFORMS[transform](WRITES[write], x)
    np.testing.assert_array_equal(np.asarray(x.detach()), START)


@pytest.mark.parametrize("given", ["constant", "result", "view"])
def test_writes_to_a_captured_tensor_that_is_also_the_argument_are_refused(given: str) -> None:
    x = GIVEN[given]()

    def f(v: Any) -> Any:
        x.mul_(2.0)
        return xp.sum(v * v)

    with pytest.raises(RuntimeError, match="in-place operation"):
        func.grad(f)(x)
    np.testing.assert_array_equal(np.asarray(x.detach()), START)
    np.testing.assert_array_equal(np.asarray(x.mul_(2.0).detach()), 2 * START)  # after the transform it may be written to again


@pytest.mark.parametrize("given", GIVEN)
def test_a_copy_of_the_argument_may_be_written_to(given: str) -> None:
    def f(v: Any) -> Any:
        w = v.clone()
        w[0] = 3 * v[1]
        w[0].mul_(2.0)
        return xp.sum(w * w)

    expected = np.stack([np.zeros(2), 2 * START[1] + 2 * 36 * START[1]])
    np.testing.assert_allclose(np.asarray(func.grad(f)(GIVEN[given]()).detach()), expected)
