"""Law: on arrays that Hypothesis draws from the standard's own strategies, xpgrad computes what NumPy's namespace computes.

Values (including special ones), shapes and dtypes are compared; the strategies themselves (`hypothesis.extra.array_api`) run on xpgrad.

Law: what version 2025.12 of the standard changed is as in array-api-strict, the reference namespace, which follows that version.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import array_api_compat.numpy as npx
import array_api_strict as strict
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import xpgrad as xp
from support.central_differences import has_float64

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    xps = make_strategies_namespace(xp, api_version="2024.12")  # the last that Hypothesis of 2025 knows

SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
pytestmark = [pytest.mark.slow(one_in=3), pytest.mark.filterwarnings("ignore")]  # NumPy's warnings for special values

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


@pytest.mark.slow(one_in=14)
@pytest.mark.parametrize(("name", "kind"), rows(UNARY))
def test_functions_of_one_array(name: str, kind: str) -> None:
    def check(data: Any) -> None:
        x = drawn(data, kind)
        agree(getattr(xp, name)(x), getattr(npx, name)(x.numpy()))

    over_data(check)


@pytest.mark.slow(one_in=15)
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


@pytest.mark.slow(one_in=6)
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


# -- version 2025.12 ------------------------------------------------------------------------------------------------------


def _describe(found: Any) -> Any:
    """Return a result's types, shapes, dtypes and values, in one form for every library."""
    if isinstance(found, (tuple, list)):
        return "tuple" if isinstance(found, tuple) else "list", [_describe(each) for each in found]
    if hasattr(found, "dtype"):
        return found.shape, str(found.dtype).rpartition(".")[2], np.asarray(found).tolist()
    return found


#: Calls of a namespace, by the line of the version's changelog that they belong to.
CHANGED: dict[str, list[Callable[[Any], Any]]] = {
    "__array_api_version__": [lambda lib: lib.__array_api_version__],
    "broadcast_arrays returns a tuple": [
        lambda lib: lib.broadcast_arrays(), lambda lib: lib.broadcast_arrays(lib.ones(2)),
        lambda lib: lib.broadcast_arrays(lib.ones((2, 1)), lib.arange(3)),
    ],
    "meshgrid returns a tuple": [
        lambda lib: lib.meshgrid(), lambda lib: lib.meshgrid(lib.arange(2)),
        *(lambda lib, how=how: lib.meshgrid(lib.arange(2), lib.arange(3), indexing=how) for how in ("xy", "ij")),
    ],
    "devices returns a tuple": [lambda lib: type(lib.__array_namespace_info__().devices())],
    "broadcast_shapes": [
        *(lambda lib, s=s: lib.broadcast_shapes(*s) for s in ((), ((2, 1),), ((), (4,), (3, 1)), ((0,), (1,)))),
    ],
    "isin": [
        lambda lib: lib.isin(lib.asarray([[1, 2], [3, 1]]), lib.asarray([1, 5])), lambda lib: lib.isin(lib.asarray([1, 2]), 2),
        lambda lib: lib.isin(2, lib.asarray([[1, 2]])), lambda lib: lib.isin(lib.asarray([1], dtype=lib.int8), lib.asarray([1])),
    ],
    "expand_dims at a tuple": [
        *(lambda lib, a=a: lib.expand_dims(lib.ones((2, 3)), axis=a) for a in ((0, 1), (0, -1), (-1, -2), (1, 3), (2,), ())),
        lambda lib: lib.expand_dims(lib.ones(()), axis=(0, 1)),
    ],
    "permute_dims with negative axes": [
        *(lambda lib, a=a: lib.permute_dims(lib.reshape(lib.arange(6), (1, 2, 3)), a) for a in ((-1, 0, 1), (-1, -2, -3), (0, -1, 1))),
    ],
    "searchsorted of a number": [
        *(lambda lib, v=v, side=side: lib.searchsorted(lib.asarray([1.0, 2.0, 2.0, 5.0]), v, side=side)
          for v in (0, 2, 2.0, 9.5) for side in ("left", "right")),
        lambda lib: lib.searchsorted(lib.asarray([1, 2, 5]), 2), lambda lib: lib.searchsorted(lib.asarray([1, 2], dtype=lib.uint8), 2),
    ],
    "clip with numbers": [
        *(lambda lib, d=d, a=a, b=b: lib.clip(lib.asarray([1, 5, 9], dtype=getattr(lib, d)), a, b)
          for d in ("int8", "int64", "float32", "float64") for a, b in ((2, None), (None, 6), (2, 6))),
        lambda lib: lib.clip(lib.asarray([1, 5, 9], dtype=lib.float32), 1.5, 6),
    ],
    "eig and eigvals": [
        lambda lib: lib.linalg.eigvals(lib.asarray([[2.0, 0.0], [0.0, 2.0]])), lambda lib: lib.linalg.eig(lib.eye(2, dtype=lib.float32)),
    ],
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGED)
def test_what_version_2025_changed_is_as_in_the_reference(change: str, xpgrad_device: str) -> None:
    if not has_float64(xpgrad_device):
        pytest.skip("its default dtypes are not the reference's")
    assert strict.__array_api_version__ == "2025.12"
    for call in CHANGED[change]:
        assert _describe(call(xp.namespace(xpgrad_device))) == _describe(call(strict))


REFUSED: dict[str, Callable[[Any], Any]] = {
    "broadcast_shapes that do not fit": lambda lib: lib.broadcast_shapes((2,), (3,)),
    "expand_dims twice": lambda lib: lib.expand_dims(lib.ones((2, 3)), axis=(0, 0)),
    "expand_dims twice, once from the end": lambda lib: lib.expand_dims(lib.ones((2, 3)), axis=(0, -4)),
    "expand_dims beyond the result": lambda lib: lib.expand_dims(lib.ones((2, 3)), axis=(0, 4)),
    "permute_dims twice": lambda lib: lib.permute_dims(lib.ones((2, 3)), (0, -2)),
    "searchsorted of a complex number": lambda lib: lib.searchsorted(lib.asarray([1.0, 2.0]), 1j),
    "isin of two numbers": lambda lib: lib.isin(1, 1),
}


@pytest.mark.parametrize("change", REFUSED)
def test_what_version_2025_refuses(change: str, xpgrad_device: str) -> None:
    for lib in (strict, xp.namespace(xpgrad_device)):
        with pytest.raises((TypeError, ValueError, IndexError)):
            REFUSED[change](lib)


DTYPES = [*strict.__array_namespace_info__().dtypes()]


@pytest.mark.parametrize("value", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_written_array_is_promoted_to_the_dtype_and_its_gradient_keeps_its_own(dtype: str, value: str) -> None:
    if not strict.can_cast(getattr(strict, value), getattr(strict, dtype)):
        return  # not specified
    results = []
    for lib in (strict, xp):
        x = lib.zeros(3, dtype=getattr(lib, dtype))
        x[:2] = lib.asarray([1, 0], dtype=getattr(lib, value))
        results.append(_describe(x))
    assert results[0] == results[1]
    if "float" in value or "complex" in value:
        v = xp.tensor([1.0, 2.0], dtype=value, requires_grad=True)
        x = xp.zeros(3, dtype=dtype)
        x[:2] = v
        xp.sum(xp.real(x * x)).backward()
        assert v.grad is not None
        assert (str(v.grad.dtype), v.grad.tolist()) == (value, [2.0, 4.0])


MASKS = {
    "one axis": ((3,), (0,), ()), "the second axis": ((2, 3), (2, 0), ()), "the first of two": ((2, 3), (0,), ()),
    "after a slice": ((2, 3), (0,), (slice(None),)),
    "after an ellipsis": ((2, 3, 4), (0, 4), (Ellipsis,)), "after None": ((2, 3), (0, 0), (None,)),
}  # fmt: skip


@pytest.mark.parametrize("name", MASKS)
def test_a_mask_with_an_axis_of_length_0_picks_nothing(name: str, xpgrad_device: str) -> None:
    """The standard allows it whatever the length of the array's axis, and NumPy accepts it."""
    shape, size, before = MASKS[name]
    array, mask = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape), np.zeros(size, bool)
    expected = array[(*before, mask)]
    x = xp.tensor(array, device=xpgrad_device, requires_grad=True)
    key = (*before, xp.asarray(mask, device=xpgrad_device))
    out = x[key]
    assert out.detach().numpy().shape == expected.shape
    xp.sum(out).backward()
    assert not np.any(x.grad.numpy())
    y = x.detach() * 1.0
    y[key] = 7.0
    assert np.array_equal(y.numpy(), array)
    for wrong in (tuple(5 for _ in size), (*size[:-1], 0, 5)):
        with pytest.raises(IndexError):
            x[(*before, xp.zeros(wrong, dtype=xp.bool, device=xpgrad_device))]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0), (2, 0, 2)])
@pytest.mark.parametrize("name", ["std", "var"])
def test_deviations_of_nothing_are_nan(name: str, shape: tuple[int, ...], xpgrad_device: str) -> None:
    for axis in (None, 0, -1, tuple(range(len(shape)))):
        expected = getattr(npx, name)(np.zeros(shape, np.float32), axis=axis)
        x = xp.zeros(shape, dtype=xp.float32, device=xpgrad_device, requires_grad=True)
        out = getattr(xp, name)(x, axis=axis)
        np.testing.assert_array_equal(out.detach().numpy(), expected)
        assert xp.autograd.grad(xp.sum(out), x)[0].shape == shape


@pytest.mark.parametrize("name", ["remainder", "floor_divide"])
def test_zeros_of_divisions_have_signs(name: str, xpgrad_device: str) -> None:
    """A remainder of zero has the sign of the divisor, and a quotient of zero that of the exact quotient."""
    ours, numpys = getattr(xp, name), getattr(np, name)
    a, b = (v.ravel().astype(np.float32) for v in np.meshgrid([0.0, -0.0, 4.0, -4.0, 3.0], [2.0, -2.0, 5.0, -5.0, np.inf, -np.inf]))
    x, y = xp.asarray(a, device=xpgrad_device), xp.asarray(b, device=xpgrad_device)
    found = [ours(x, y), *(ours(x, float(v)) for v in b[::5]), *(ours(float(v), y) for v in a[:5])]
    expected = [numpys(a, b), *(numpys(a, v) for v in b[::5]), *(numpys(v, b) for v in a[:5])]
    symbol = {"remainder": "__mod__", "floor_divide": "__floordiv__"}[name]
    with xp.autograd.profiler.profile():
        found.append(ours(x, y))
    found += [getattr(x, symbol)(y), xp.compile(ours)(x, y), xp.func.vmap(ours)(x, y)]
    for one, other in zip(found, [*expected, *expected[:1] * 4], strict=True):
        np.testing.assert_array_equal(np.signbit(one.numpy()), np.signbit(other))
        np.testing.assert_array_equal(one.numpy(), other)


def _is_near(found: Any, expected: Any, signs: Any) -> Any:
    """Return where real numbers are equal up to rounding, nan with nan; with their signs, those of zeros too, where `signs` is True."""
    alike = np.where(signs, np.signbit(found) == np.signbit(expected), True)
    return (np.isnan(found) & np.isnan(expected)) | (alike & np.isclose(np.abs(found), np.abs(expected), rtol=1e-5, atol=0))


@pytest.mark.parametrize("name", ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10",
                                  "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh"])  # fmt: skip
def test_complex_functions_at_zeros_infinities_and_nan(name: str, xpgrad_device: str) -> None:
    """NumPy has the values of C, which the standard asks for; of numbers that are not finite it leaves some signs open."""
    parts = [0.0, -0.0, 1e-3, 1.0, -1.0, 0.3, -0.4, 2.5, -2.5, np.inf, -np.inf, np.nan]
    if name == "log1p":
        del parts[1:3]  # NumPy's is log(1 + z), which forgets signs of zeros and digits of small numbers
    if name == "expm1":
        del parts[-3:]  # NumPy has nan where the standard has infinities
    z = np.asarray([complex(a, b) for a in parts for b in parts], dtype=np.complex64)
    with np.errstate(all="ignore"):
        expected = getattr(np, name.replace("a", "arc", 1) if name.startswith("a") else name)(z)
    x = xp.asarray(z, device=xpgrad_device)
    for found in (getattr(xp, name)(x).numpy(), xp.compile(getattr(xp, name))(x).numpy()):
        near = [_is_near(f, e, np.isfinite(z)) for f, e in ((found.real, expected.real), (found.imag, expected.imag))]
        wrong = ~(near[0] & near[1])
        assert not [f"{name}({a}) is {b}, not {c}" for a, b, c in zip(z[wrong], found[wrong], expected[wrong])]


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_factors_are_exactly_triangular(dtype: str, xpgrad_device: str) -> None:
    a = np.asarray([[4.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 0.0, 2.0]]).astype(dtype)
    for upper in (False, True):
        found = xp.linalg.cholesky(xp.asarray(a, device=xpgrad_device), upper=upper).numpy()
        kept = (np.triu if upper else np.tril)(found)
        np.testing.assert_array_equal(found, kept)
        assert np.array_equal(np.signbit(np.imag(found)), np.signbit(np.imag(kept)))


@pytest.mark.parametrize("version", ["2021.12", "2022.12", "2023.12", "2024.12", "2025.12"])
def test_code_that_asks_for_an_older_version_gets_the_namespace(version: str) -> None:
    assert xp.ones(1).__array_namespace__(api_version=version) is xp


def test_consumers_that_know_no_versions_of_dlpack_get_a_capsule_without(xpgrad_device: str) -> None:
    x = xp.ones(2, device=xpgrad_device)
    if not x.backend.capabilities.dlpack:
        pytest.skip("its arrays are not exchanged by DLPack")
    for version in (None, (0, 1), (0, 8)):
        assert '"dltensor"' in repr(x.__dlpack__(max_version=version))
