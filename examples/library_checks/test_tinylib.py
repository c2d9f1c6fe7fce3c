"""The tests of the small library: `python -m pytest -p xpgrad_pytest examples/library_checks --differentiability-report html`."""

from typing import Any

import numpy as np
import pytest
import tinylib

from xpgrad.testing import case, parametrize_with_checks

X, Y = np.linspace(-1.0, 2.0, 6).reshape(2, 3), np.linspace(0.3, 0.9, 6).reshape(2, 3)


@pytest.mark.differentiable(X)
def test_softmax(x: Any) -> Any:
    return tinylib.softmax(x, axis=1)


@pytest.mark.differentiable(argnums=(0, 1))
def test_weighted_mean(differentiable: Any) -> None:
    differentiable(tinylib.weighted_mean, X, Y)


TABLE = [
    case(tinylib.smooth_l1, X, Y, argnums=0),
    case(tinylib.nearest, X, 0.7),
    case(
        tinylib.spread,
        X,
        known={"gradient": "a part goes through float()", "forward": "float() raises there", "vmap": "it asks for a value"},
    ),
]


@parametrize_with_checks(TABLE)
def test_table(check: Any) -> None:
    check()
