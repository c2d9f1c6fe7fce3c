"""The central differences that `gradcheck`, the audit, `xpgrad.testing` and HIPS' `check_grads` use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

import xpgrad as xp
from xpgrad._basics.differences import best_slope, central_difference, dot

NUMBERS = st.floats(-3, 3)


@given(a=NUMBERS, b=NUMBERS, c=NUMBERS, step=st.floats(1e-2, 1.0))
def test_a_parabola_has_its_slope_at_any_step(a: float, b: float, c: float, step: float) -> None:
    """A central difference of a parabola is exact for any step, because even terms cancel."""

    def at(h: float) -> float:
        return a + b * h + c * h * h

    assert central_difference(at, step) == pytest.approx(b, abs=1e-11)
    both = central_difference(lambda h: [[at(h), 2.0 * at(h)], [h]], step)
    assert both == [[central_difference(at, step), central_difference(lambda h: 2.0 * at(h), step)], [1.0]]
    for made in (np.asarray, xp.asarray):
        found = central_difference(lambda h, made=made: made([at(h), at(h) * 1j]), step)
        np.testing.assert_allclose(np.asarray(found), [b, b * 1j], atol=1e-11)


@given(x=NUMBERS, scale=st.floats(0.1, 3))
def test_differences_settle_at_a_smooth_function(x: float, scale: float) -> None:
    def at(h: float) -> float:
        return math.exp(scale * (x + h))

    slope, eps = best_slope(at, at(0.0), 2.0**-52), 2.0**-52
    exact = scale * at(0.0)
    assert slope.agrees(exact, eps)
    assert abs(slope.value - exact) <= 6 * slope.error + 1e-9 * exact
    assert not slope.agrees(exact * 1.01, eps)
    assert abs(slope.right - slope.left) <= 0.1 * exact * scale


def test_a_kink_shows_in_the_one_sided_quotients_and_a_jump_does_not_settle() -> None:
    slope = best_slope(abs, 0.0, 2.0**-52)
    assert (slope.value, slope.right, slope.left) == (0.0, 1.0, -1.0)
    jump = best_slope(lambda h: float(h > 0), 0.0, 2.0**-52)
    assert jump.error > abs(jump.value)
    assert math.isinf(best_slope(lambda h: math.nan, 0.0, 2.0**-52).error)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_a_gradient_gives_the_derivative_along_a_direction(dtype: str) -> None:
    draw = np.random.default_rng(0)
    g, v = (draw.normal(size=(2, 3)) + (1j * draw.normal(size=(2, 3)) if dtype == "complex128" else 0.0) for _ in range(2))

    def loss(h: float) -> Any:
        z = h * v
        return float(np.sum(g.real * z.real) + np.sum(g.imag * z.imag))

    assert dot(g, v) == pytest.approx(central_difference(loss, 1.0))
