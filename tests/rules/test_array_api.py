"""Law: on arrays that Hypothesis draws from the standard's own strategies, xpgrad computes what NumPy's namespace computes.

Values (including special ones), shapes and dtypes are compared; the strategies themselves (`hypothesis.extra.array_api`) run on xpgrad.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import array_api_compat.numpy as npx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import xpgrad as xp

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    xps = make_strategies_namespace(xp)

SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
pytestmark = pytest.mark.filterwarnings("ignore")  # NumPy's warnings for special values

KINDS = {
    "bool": xps.boolean_dtypes(),
    "integer": xps.integer_dtypes(),
    "bits": xps.integer_dtypes() | xps.boolean_dtypes(),
    "real": xps.real_dtypes(),
    "numeric": xps.numeric_dtypes(),
    "floating": xps.floating_dtypes(),
    "complex": xps.complex_dtypes(),
    "inexact": xps.floating_dtypes() | xps.complex_dtypes(),
    "any": xps.scalar_dtypes() | xps.complex_dtypes(),
}
UNARY = {
    "inexact": "acos acosh asin asinh atan atanh cos cosh exp expm1 log log1p log2 log10 sin sinh sqrt tan tanh reciprocal",
    "numeric": "abs conj negative positive square isfinite isinf isnan",
    "real": "ceil floor round trunc sign",
    "floating": "signbit",
    "bool": "logical_not",
    "bits": "bitwise_invert",
    "complex": "real imag",
}
BINARY = {
    "numeric": "add subtract multiply equal not_equal",
    "inexact": "divide",
    "floating": "pow atan2 hypot logaddexp copysign nextafter",
    "real": "maximum minimum less less_equal greater greater_equal floor_divide remainder",
    "bool": "logical_and logical_or logical_xor",
    "bits": "bitwise_and bitwise_or bitwise_xor",
}
OVER_AXES = {"numeric": "sum prod", "real": "max min", "inexact": "mean", "floating": "std var", "any": "all any count_nonzero flip"}
ALONG_AXIS = {"real": "argmax argmin sort argsort", "numeric": "cumulative_sum cumulative_prod diff"}
WHOLE = {"real": "unique_values unique_all unique_counts unique_inverse", "any": "nonzero"}


def rows(table: dict[str, str]) -> list[tuple[str, str]]:
    return [(name, kind) for kind, names in table.items() for name in names.split()]


def agree(ours: Any, theirs: Any, atol: float = 0.0) -> None:
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            agree(a, b, atol)
        return
    a, b = ours.numpy(), np.asarray(theirs)
    assert a.shape == b.shape
    assert a.dtype == b.dtype
    if b.dtype.kind in "fc":
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=atol)
    else:
        np.testing.assert_array_equal(a, b)


def drawn(data: Any, kind: str, least: int = 0) -> xp.Tensor:
    return data.draw(xps.arrays(KINDS[kind], xps.array_shapes(min_dims=min(least, 1), max_dims=3, min_side=least, max_side=4)))


def over_data(test: Callable[[Any], None]) -> None:
    """Run a test that takes one `data` object on drawn examples."""
    SETTINGS(given(st.data())(test))()


@pytest.mark.parametrize(("name", "kind"), rows(UNARY))
def test_functions_of_one_array(name: str, kind: str) -> None:
    def check(data: Any) -> None:
        x = drawn(data, kind)
        agree(getattr(xp, name)(x), getattr(npx, name)(x.numpy()))

    over_data(check)


@pytest.mark.parametrize(("name", "kind"), rows(BINARY))
def test_functions_of_two_arrays(name: str, kind: str) -> None:
    def check(data: Any) -> None:
        shapes = data.draw(xps.mutually_broadcastable_shapes(2, max_dims=3, max_side=3)).input_shapes
        x, y = (data.draw(xps.arrays(KINDS[kind], shape)) for shape in shapes)
        integers = ["integer" in t.dtype.category for t in (x, y)]
        unsigned = {t.dtype.category for t in (x, y)} == {"signed integer", "unsigned integer"}
        if integers[0] != integers[1] or (unsigned and xp.uint64 in (x.dtype, y.dtype)):
            return  # for operands of different kinds xpgrad has its own table
        agree(getattr(xp, name)(x, y), getattr(npx, name)(x.numpy(), y.numpy()))

    over_data(check)


@pytest.mark.parametrize(("name", "kind"), rows(OVER_AXES) + rows(ALONG_AXIS) + rows(WHOLE))
def test_functions_along_axes(name: str, kind: str) -> None:
    def check(data: Any) -> None:
        x = drawn(data, kind, least=1)
        values = x.numpy()
        if values.dtype.kind == "f" and not np.isfinite(values).all() and name not in ("sum", "prod", "max", "min", "mean", "all", "any"):
            return  # the order of nan, and the spread of infinities, are not specified
        axis = st.integers(-x.ndim, x.ndim - 1)
        options: dict[str, Any] = {}
        if (name, kind) in rows(OVER_AXES):
            options["axis"] = data.draw(st.none() | axis)
        elif (name, kind) in rows(ALONG_AXIS):
            options["axis"] = data.draw(axis)
        if name in ("sort", "argsort"):
            options["descending"] = data.draw(st.booleans())
        # The spread of equal values is 0 up to the rounding of their mean.
        rounding = 4.0 * float(np.max(np.abs(values))) * np.finfo(values.dtype).eps if name in ("std", "var") else 0.0
        if not np.isfinite(rounding * rounding):
            return
        agree(getattr(xp, name)(x, **options), getattr(npx, name)(values, **options), rounding if name == "std" else rounding**2)

    over_data(check)


def test_reading_and_writing_at_every_basic_key() -> None:
    def check(data: Any) -> None:
        x = drawn(data, "any")
        key = data.draw(xps.indices(x.shape, allow_newaxis=True))
        agree(x[key], x.numpy()[key])
        ours, theirs = xp.asarray(x, copy=True), x.numpy().copy()
        value = data.draw(xps.arrays(x.dtype, ours[key].shape))
        ours[key] = value
        theirs[key] = value.numpy()
        agree(ours, theirs)
        mask = data.draw(xps.arrays(xp.bool, x.shape))
        agree(x[mask], x.numpy()[mask.numpy()])

    over_data(check)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64", "float32", "float64", "complex64", "complex128"])
def test_operators_with_python_scalars(dtype: str) -> None:
    x = xp.asarray([1, 0, 1], dtype=dtype)
    tried = 0
    for scalar in (True, 2, 2.5, 1 + 2j):
        if isinstance(scalar, bool) != (dtype == "bool"):
            continue
        for operator in ("__add__", "__mul__", "__sub__", "__truediv__", "__rsub__", "__pow__", "__and__", "__eq__", "__lt__"):
            try:
                expected = getattr(x.numpy(), operator)(scalar)
            except TypeError:
                continue
            if expected is not NotImplemented:
                agree(getattr(x, operator)(scalar), expected)
                tried += 1
    assert tried
