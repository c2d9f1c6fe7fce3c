"""A call that converts a Tensor which requires grad to a NumPy array is named in the error, with what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
from scipy.interpolate import CubicSpline
from scipy.linalg import expm

import xpgrad as xp
from xpgrad.autograd import forward_ad as fwd

CALLS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "np.full(2, x[0, 0])": (lambda x, rng: np.full(2, x[0, 0]), "use `xpgrad.full`"),
    "np.asarray(x)": (lambda x, rng: np.asarray(x), "use the Tensor without the conversion"),
    "np.array([x[0], x[1]])": (lambda x, rng: np.array([x[0], x[1]]), "put Tensors together with `xpgrad.stack([...])`"),
    "expm(x)": (lambda x, rng: expm(x), "use `xpgrad.scipy.linalg.expm`"),
    "scipy.linalg.expm(x)": (lambda x, rng: scipy.linalg.expm(x), "use `xpgrad.scipy.linalg.expm`"),
    "scipy.fft.dct(x)": (lambda x, rng: scipy.fft.dct(x), "use `xpgrad.scipy.fft.dct`"),
    "scipy.fft.fft(x)": (lambda x, rng: scipy.fft.fft(x), "use `xpgrad.scipy.fft.fft`"),
    "CubicSpline([0, 1], x)": (lambda x, rng: CubicSpline([0, 1], x), "use `xpgrad.scipy.interpolate.CubicSpline`"),
    "scipy.linalg.schur(x)": (lambda x, rng: scipy.linalg.schur(x), "use a function of xpgrad, or give the call a derivative"),
    "rng.normal(x)": (lambda x, rng: rng.normal(x), "transform standard random numbers instead"),
    "scipy.linalg.hessenberg(x, overwrite_a=False, check_finite=True, calc_q=False) ": (
        lambda x, rng: scipy.linalg.hessenberg(
            x,
            overwrite_a=False,
            check_finite=True,
            calc_q=False,
        ),
        "use a function of xpgrad",
    ),
}


@pytest.mark.parametrize("text", CALLS)
@pytest.mark.parametrize("forward", [False, True], ids=["reverse", "forward"])
def test_the_error_names_the_call_and_a_way(text: str, forward: bool) -> None:
    call, way = CALLS[text]
    x = xp.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=not forward)
    with fwd.dual_level():
        given = fwd.make_dual(x, xp.ones((2, 2))) if forward else x
        with pytest.raises(RuntimeError, match=r"Can't call numpy\(\) on Tensor that .*detach\(\).numpy\(\) instead for a") as caught:
            call(given, np.random.default_rng(0))
    said = str(caught.value)
    shown, where = said.split("`")[1:3]
    assert text.startswith(shown) or "..." in shown
    assert where.startswith(" (test_conversion_errors.py, line ")
    lost = "derivative" if forward else "gradient"
    assert f"so the {lost} would be lost. To keep the {lost}, {way}" in said


def test_a_program_without_source_gets_the_short_message() -> None:
    x = xp.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"requires grad. Use tensor.detach\(\).numpy\(\) instead"):
        eval(compile("np.asarray(x)", "<nowhere>", "eval"), {"np": np, "x": x})
    with pytest.raises(RuntimeError, match=r"requires grad. Use tensor.detach\(\).numpy\(\) instead"):
        x.numpy()


def test_names_are_not_computed_for_the_message() -> None:
    """Properties of the user's objects must not run a second time."""

    class Model:
        runs = 0

        @property
        def convert(self) -> Any:
            Model.runs += 1
            return np.asarray

    model, x = Model(), xp.tensor([1.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"`model.convert\(x\)`"):
        model.convert(x)
    assert Model.runs == 1
