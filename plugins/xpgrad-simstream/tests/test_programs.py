"""Law: programs give the same values, gradients and errors on queued work as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xpgrad as xp


@pytest.mark.filterwarnings("ignore")
def test_random_programs_of_writes_agree_with_numpy() -> None:
    pytest.importorskip("torch", reason="the programs are those of the comparison with PyTorch")
    from random_programs.test_writes import Machine, check, draw

    with np.errstate(all="ignore"):
        for seed in range(150):
            program = draw(seed)
            check(seed, Machine("xpgrad").run(program), Machine("xpgrad", "simstream").run(program), program)


def test_a_compiled_kernel_may_ask_for_the_precision_of_a_dtype() -> None:
    linalg = pytest.importorskip("xpgrad.scipy", reason="polar is SciPy's").linalg
    gradient = xp.func.grad(lambda x: xp.sum(linalg.polar(x)[1] ** 3))  # which divides unless a sum is within rounding errors of 0
    start = xp.asarray([[2.0, 1.0], [0.5, 3.0]], device="simstream")
    np.testing.assert_allclose(xp.compile(gradient)(start).numpy(), gradient(start.to("numpy")).numpy())


def test_views_of_constants_are_tensors_in_code_for_numpy() -> None:
    """An array in CPU memory could not be combined with Tensors of this device."""
    constants = np.ones((2, 3))

    def program(x: Any) -> Any:
        return np.sum(x * np.asarray(constants.copy())[0] * np.ravel(constants.copy())[:3])

    x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True, device="simstream")
    xp.numpy_code(program)(x).backward()
    assert x.grad.tolist() == [1.0, 1.0, 1.0]
