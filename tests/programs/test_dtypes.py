"""Law: a compiled expression gives the uncompiled one's result, to the dtype and the last bit, whatever the operands' dtypes.

Every algebraic rule of `xpgrad.programs.simplify` applies to some expressions here, and each is tried with every pair of dtypes and with
Python numbers of every kind. The values are those at which arithmetic has special cases: the ends of the range, zeros of both signs,
subnormal numbers, infinities and nan.
"""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from programs.building import OLD_POWERS

pytestmark = pytest.mark.slow(one_in=3)

Expression = Callable[[Any, Any], Any]
NAMES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64", "complex64",
    "complex128",
]  # fmt: skip
NUMBERS: list[Any] = [
    0, 0.0, -0.0, 1, 1.0, -1, -1.0, 2, 2.0, -2, -2.0, 0.5, 3, 300, 1e-45, 1.7e38, -6e4, 1e308, float("inf"), float("nan"), True, 1j,
    -1.0 + 0j, 2j,
]  # fmt: skip
#: Consecutive factors, which a pass may multiply with each other first.
FACTORS = [
    (3, 2),
    (3, 2.0),
    (3.0, 2),
    (0.1, -4.0),
    (1e-45, 2.0),
    (1.7e38, 4),
    (4e4, 2),
    (1e308, 2.0),
    (2, -1.0),
    (-1.0, -1),
    (-1, 1.0),
    (1e-310, 4),
]

#: What makes functions of NumPy arrays.
EMITTERS = ("numpy", "native") if importlib.util.find_spec("llvmlite") is not None else ("numpy",)
LARGE = 33_000  #: number of elements for which NumPy's texts compute block by block

#: Expressions of two Tensors.
PAIRS: dict[str, Expression] = {
    "x + y": lambda x, y: x + y,
    "x + -y": lambda x, y: x + (-y),
    "-x + y": lambda x, y: (-x) + y,
    "-x + -y": lambda x, y: (-x) + (-y),
    "x - -y": lambda x, y: x - (-y),
    "-x - y": lambda x, y: (-x) - y,
    "-x - -y": lambda x, y: (-x) - (-y),
    "-x * -y": lambda x, y: (-x) * (-y),
    "x * -y": lambda x, y: x * (-y),
    "-x / -y": lambda x, y: (-x) / (-y),
    "-(x * y)": lambda x, y: -(x * y),
    "-(x / y)": lambda x, y: -(x / y),
    "-(-(x + y))": lambda x, y: xp.negative(-(x + y)),
    "x * ones": lambda x, y: x * xp.ones_like(y),
    "ones * x": lambda x, y: xp.ones_like(y) * x,
    "x / ones": lambda x, y: x / xp.ones_like(y),
    "x * minus ones": lambda x, y: x * (-xp.ones_like(y)),
    "x * 2 * twos": lambda x, y: x * 2 * xp.full_like(y, 2),
    "x + zeros": lambda x, y: x + xp.zeros_like(y),
    "zeros - x": lambda x, y: xp.zeros_like(y) - x,
    "x - zeros": lambda x, y: x - xp.zeros_like(y),
    "x ** ones": lambda x, y: x ** xp.ones_like(y),
    "x ** twos": lambda x, y: x ** xp.full_like(y, 2),
    "x + ones of a column": lambda x, y: x + xp.ones((2, 1), dtype=y.dtype, device=y.device),
    "negative ones": lambda x, y: x + (-xp.ones_like(y)) * xp.ones_like(x),
    "chosen": lambda x, y: xp.where(x == y, x, x) + xp.where(x != y, y, y),
    "chosen of two": lambda x, y: xp.where(y != 0, x, xp.zeros_like(y)),
    "maximum": lambda x, y: xp.maximum(x, xp.zeros_like(y)),
    "there and back": lambda x, y: xp.astype(xp.astype(x, y.dtype), x.dtype),
    "cast": lambda x, y: x + xp.astype(-x, y.dtype),
    "a cast times -1.0": lambda x, y: xp.astype(x, y.dtype) * -1.0,
    "a mask": lambda x, y: xp.astype(x != 0, y.dtype) * -1.0 * x,
    "parts": lambda x, y: xp.real(x) + xp.conj(y),
    "abs": lambda x, y: xp.abs(-x) * y,
    "a cube": lambda x, y: x * x * x + y,
}  # fmt: skip

#: Expressions of a Tensor and a Python number.
WITH_NUMBER: dict[str, Expression] = {
    "x + k": lambda x, k: x + k,
    "k + x": lambda x, k: k + x,
    "x - k": lambda x, k: x - k,
    "k - x": lambda x, k: k - x,
    "x * k": lambda x, k: x * k,
    "k * x": lambda x, k: k * x,
    "x / k": lambda x, k: x / k,
    "k / x": lambda x, k: k / x,
    "x ** k": lambda x, k: x**k,
    "-x + k": lambda x, k: (-x) + k,
    "k + -x": lambda x, k: k + (-x),
    "k - -x": lambda x, k: k - (-x),
    "-x * k": lambda x, k: (-x) * k,
    "k * -x": lambda x, k: k * (-x),
    "-x / k": lambda x, k: (-x) / k,
    "-(x * k)": lambda x, k: -(x * k),
    "-(x / k)": lambda x, k: -(x / k),
    "-(k / x)": lambda x, k: -(k / x),
    "x + -(x * k)": lambda x, k: x + -(x * k),
    "1j - -x * k": lambda x, k: 1j - (-x) * k,
    "equal": lambda x, k: x == k,
    "less": lambda x, k: x < k,
    "maximum": lambda x, k: xp.maximum(x, k),
    "chosen": lambda x, k: xp.where(x != 0, x, k),
    "chosen numbers": lambda x, k: xp.where(x != 0, k, 0.0) * x,
}  # fmt: skip


def values(name: str) -> Any:
    """Return special values of a dtype."""
    if name == "bool":
        return np.array([True, False])
    if np.dtype(name).kind in "iu":
        info = np.iinfo(name)
        return np.array([info.min, info.max, 0, 1, info.max // 2 + 1, 3, info.max - 1], name)
    if np.dtype(name).kind == "c":
        parts = [0.0, -0.0, 1.5, -np.inf, np.nan]
        return np.array([complex(a, b) for a in parts for b in parts], name)
    info = np.finfo(name)
    return np.array([0.0, -0.0, 1.5, -1 / 3, info.max, info.smallest_subnormal * 3, -info.tiny, np.inf, -np.inf, np.nan, 1e-3], name)


def assert_same_bits(found: Any, expected: Any, what: str, ulps: int = 0) -> None:
    """Assert equal values, up to some units in the last place, dtypes and signs of zero; every nan counts as equal."""
    assert found.dtype == expected.dtype, what
    found, expected = found.numpy(), expected.numpy()
    for part in ("real", "imag"):
        a, b = getattr(found, part), getattr(expected, part)
        if ulps and a.dtype.kind == "f":
            np.testing.assert_allclose(
                a, b, rtol=ulps * np.finfo(a.dtype).eps, atol=ulps * float(np.finfo(a.dtype).smallest_subnormal), err_msg=what
            )
        else:
            np.testing.assert_array_equal(a, b, err_msg=what)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b), err_msg=what)


def compare(expressions: dict[str, Callable[..., Any]], tensors: list[Any], what: str) -> None:
    """Compile together all expressions that raise no error, and compare each result with the uncompiled one."""
    expected: dict[str, Any] = {}
    for name, expression in expressions.items():
        try:
            expected[name] = expression(*tensors)
        except (TypeError, OverflowError, ValueError, RuntimeError, NotImplementedError):
            continue
    for emitter in EMITTERS if tensors[0].device == xp.Device("numpy") else (None,):
        compiled = xp.compile(lambda *args: [expressions[name](*args) for name in expected], emitter=emitter)
        for (name, wanted), found in zip(expected.items(), compiled(*tensors)):
            # A power, and a complex absolute value, is a function, whose last digits are not NumPy's in machine code.
            is_function = "**" in name or (name == "abs" and "complex" in what)
            assert_same_bits(found, wanted, f"{name} of {what} by {emitter}", 4 if emitter == "native" and is_function else 0)


@pytest.fixture(params=["numpy", "torch"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    name = str(request.param)
    if name not in xp.backend_names():
        pytest.skip(f"the backend {name} is not installed")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield name


@pytest.mark.slow(one_in=24)
@pytest.mark.parametrize("first", NAMES)
def test_expressions_of_two_tensors(device: str, first: str) -> None:
    for second in NAMES:
        grid = [v.reshape(-1) for v in np.meshgrid(values(first), values(second), indexing="ij")]
        large = device == "numpy" and second in (first, "float64", "uint8")
        for size in (grid[0].size, LARGE) if large else (grid[0].size,):
            tensors = [xp.asarray(np.resize(v, size), device=device) for v in grid]
            compare(PAIRS, tensors, f"{first}, {second}, {size} elements on {device}")


@pytest.mark.parametrize("first", ["float32", "float64", "complex128"])
def test_gradients_of_expressions(device: str, first: str) -> None:
    """Compiled gradients with respect to the first of two Tensors are right, whatever the dtype of the second."""
    for second in NAMES:
        data = [np.asarray([1.5, 0.25, 3.0], first), np.asarray([1, 0, 1] if second == "bool" else [2, 1, 5], second)]
        x, y = xp.tensor(data[0], device=device, requires_grad=True), xp.asarray(data[1], device=device)
        expected = {}
        for name, expression in PAIRS.items():
            try:
                (expected[name],) = xp.autograd.grad(xp.sum(xp.real(expression(x, y))), x)
            except (TypeError, ValueError, RuntimeError, NotImplementedError):  # also if the expression has no gradient
                continue
        assert len(expected) > 10
        names = list(expected)
        compiled = xp.compile(lambda x, y, names=names: [xp.autograd.grad(xp.sum(xp.real(PAIRS[n](x, y))), x)[0] for n in names])
        for (name, wanted), found in zip(expected.items(), compiled(x, y)):
            what = f"{name} of {first}, {second} on {device}"
            assert found.dtype == wanted.dtype, what
            np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5 if first == "float32" else 1e-12, err_msg=what)


def test_a_mask_of_integers_times_minus_one() -> None:
    x = xp.tensor(np.array([1.0, -2.0, 3.0]), requires_grad=True)
    xp.compile(lambda x: xp.sum(xp.astype(x > 0, xp.uint8) * -1.0 * x))(x).backward()
    assert x.grad is not None
    assert x.grad.tolist() == [-1.0, 0.0, -1.0]


@pytest.mark.slow(one_in=24)
@pytest.mark.parametrize("name", NAMES)
def test_expressions_of_a_tensor_and_a_number(device: str, name: str) -> None:
    for x in [xp.asarray(values(name), device=device), *([xp.asarray(np.resize(values(name), LARGE))] if device == "numpy" else [])]:
        for k in NUMBERS if x.size < LARGE else (-1.0, 0.5, 2, 2.0, -6e4):
            expressions = {n: e for n, e in WITH_NUMBER.items() if not (OLD_POWERS and n == "x ** k" and k in (1, 2) and "complex" in name)}
            compare({n: lambda x, e=e, k=k: e(x, k) for n, e in expressions.items()}, [x], f"{name}, k = {k!r}, {x.size} on {device}")
    products = {}
    for a, b in itertools.chain(FACTORS, ((b, a) for a, b in FACTORS)):
        products |= {
            f"x * {a!r} * {b!r}": lambda x, a=a, b=b: x * a * b,
            f"-(x * {a!r}) * {b!r}": lambda x, a=a, b=b: -(x * a) * b,
            f"-(x / {a!r}) / {b!r}": lambda x, a=a, b=b: -(x / a) / b,
        }
    small = 1e3 * np.finfo(name).tiny if np.dtype(name).kind in "fc" else 0  # products that round to subnormal numbers are left out
    x = xp.asarray(np.array([v for v in values(name) if not 0 < abs(v) < small], name), device=device)
    compare(products, [x], f"{name} on {device}")
