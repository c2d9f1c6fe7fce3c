"""Law: a derivative that is asked for is computed: no mode around a transform makes it 0."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.functions import Cube
from xpgrad import func
from xpgrad.autograd import functional


def _cube_sum(v: Any) -> Any:
    return xp.sum(v * v * v)


CALLS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda x: func.grad(_cube_sum)(x),
    "grad of a Function": lambda x: func.grad(lambda v: xp.sum(Cube.apply(v)))(x),
    "grad of grad": lambda x: func.grad(lambda u: xp.sum(func.grad(_cube_sum)(u)))(x),
    "vjp": lambda x: func.vjp(lambda v: v * v, x)[1](x)[0],
    "jacrev": lambda x: func.jacrev(lambda v: v * v)(x),
    "jacrev, plain": lambda x: func.jacrev(xp.sin)(x),
    "jacfwd": lambda x: func.jacfwd(lambda v: v * v)(x),
    "hessian": lambda x: func.hessian(_cube_sum)(x),
    "jvp": lambda x: func.jvp(lambda v: v * v, (x,), (x,))[1],
    "linearize": lambda x: func.linearize(lambda v: v * v, x)[1](x),
    "vmap of grad": lambda x: func.vmap(func.grad(lambda v: v * v))(x),
    "functional.jacobian": lambda x: functional.jacobian(lambda v: v * v, x),
    "functional.hessian": lambda x: functional.hessian(_cube_sum, x),
    "functional.vjp": lambda x: functional.vjp(_cube_sum, x)[1],
    "functional.jvp": lambda x: functional.jvp(lambda v: v * v, x, x)[1],
    "functional.hvp": lambda x: functional.hvp(_cube_sum, x, x)[1],
    "functional.vhp": lambda x: functional.vhp(_cube_sum, x, x)[1],
}
MODES: dict[str, Callable[[], Any]] = {
    "plain": nullcontext, "no_grad": xp.no_grad, "inference": xp.inference_mode, "no_grad in inference": lambda: _Both(),
}  # fmt: skip


class _Both:
    def __enter__(self) -> None:
        self.outer, self.inner = xp.inference_mode(), xp.no_grad()
        self.outer.__enter__()
        self.inner.__enter__()

    def __exit__(self, *exc: object) -> None:
        self.inner.__exit__(*exc)
        self.outer.__exit__(*exc)


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("made", ["plain", "inference"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", CALLS)
def test_derivatives_do_not_depend_on_the_mode(name: str, mode: str, made: str) -> None:
    expected = np.asarray(CALLS[name](xp.tensor([1.0, 2.0])).detach())
    assert np.any(expected != 0)
    with MODES[made]():
        x = xp.tensor([1.0, 2.0])
    with MODES[mode]():
        found = CALLS[name](x)
    np.testing.assert_array_equal(np.asarray(found.detach()), expected)
    np.testing.assert_array_equal(np.asarray(x), [1.0, 2.0])


@pytest.mark.parametrize("mode", MODES)
def test_normal_mode_records_anywhere(mode: str) -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    with MODES[mode]():
        before = xp.is_grad_enabled(), xp.is_inference_mode_enabled()
        with xp.inference_mode(False):
            assert (xp.is_grad_enabled(), xp.is_inference_mode_enabled()) == (True, False)
            y = xp.sum(x * x)
        assert (xp.is_grad_enabled(), xp.is_inference_mode_enabled()) == before
    np.testing.assert_array_equal(np.asarray(xp.autograd.grad(y, x)[0].detach()), [2.0, 4.0])
