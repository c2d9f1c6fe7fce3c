"""Machine code computes what a program says: NumPy's bits, but for functions such as `exp` and for the order of sums."""

from __future__ import annotations

import gc
import os
import re
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from programs import building
from programs.building import (
    BACKEND,
    CLOSE,
    EVALUATE,
    EXACT,
    OLD_POWERS,
    Builder,
    assert_same,
    assert_same_complex,
    assert_same_numbers,
    complex_array,
    parts_of,
    random_program,
)  # fmt: skip
from support import search_path
from support.central_differences import values
from xpgrad import func
from xpgrad.__main__ import main
from xpgrad._basics.dtypes import DTYPES
from xpgrad.programs import emitters
from xpgrad.programs.evaluation import evaluate_program
from xpgrad.programs.lowering import lower
from xpgrad.programs.program import Part
from xpgrad.programs.regions import Nest, Product
from xpgrad.programs.simplify import simplify_program
from xpgrad.registry import emitter_names, register_emitter

pytest.importorskip("llvmlite", reason="the extra `native`")
from xpgrad.programs.native import cache, machine as machines, parts  # after the check above
from xpgrad.programs.native.llvm_text import Target, region_kernel
from xpgrad_numpy import _backend, _emitters
from xpgrad_numpy._native import native_function

pytestmark = [pytest.mark.slow(one_in=3), pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")]

#: The functions whose results differ from NumPy's in the last digits, and intervals on which they are compared.
FUNCTIONS: dict[str, tuple[float, float]] = {
    "acos": (-1, 1), "acosh": (1, 1e6), "asin": (-1, 1), "asinh": (-1e6, 1e6), "atan": (-1e3, 1e3), "atanh": (-1, 1), "cos": (-1e3, 1e3),
    "cosh": (-80, 80), "exp": (-80, 80), "expm1": (-30, 30), "log": (1e-30, 1e30), "log10": (1e-30, 1e30), "log1p": (-0.999, 1e6),
    "log2": (1e-30, 1e30), "sin": (-1e3, 1e3), "sinh": (-80, 80), "tan": (-1e3, 1e3), "tanh": (-20, 20),
}  # fmt: skip
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e308, -1e308, 1e22, 2.0, 3.0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of this test alone."""
    monkeypatch.setenv("XPGRAD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fresh() -> Iterator[machines.Machine]:
    """A machine that has loaded nothing, as in a new process."""
    machines.machine.cache_clear()
    yield machines.machine()
    machines.machine.cache_clear()


def check(b: Builder, *, exact: bool = True) -> None:
    """Compare machine code for a program, and for the simplified one, with its plain evaluation."""
    program = b.program(*b.outputs)
    with np.errstate(all="ignore"):
        wanted = evaluate_program(program, BACKEND, b.raws())
        for p in (program, simplify_program(program, EVALUATE)):
            for threads in (1, 2):
                inputs = [np.array(x) if isinstance(x, np.ndarray) and threads == 2 else x for x in b.raws()]
                before = [np.array(x) for x in inputs]
                try:
                    function = native_function(p, BACKEND, threads)
                    first, found = function(*inputs), function(*inputs)
                    compare_all(b, found, wanted, exact)
                except Exception as exc:
                    exc.add_note(str(p))
                    raise
                for x, old in zip(inputs, before):
                    np.testing.assert_array_equal(x, old)
                arrays = [x for x in (*first, *found, *inputs, *program.constants.values()) if isinstance(x, np.ndarray)]
                results = [x for x in (*first, *found) if isinstance(x, np.ndarray)]
                assert all(x.flags.writeable for x in results)
                assert not any(np.may_share_memory(x, y) for i, x in enumerate(results) for y in [*results[:i], *arrays[len(results) :]])


def compare_all(b: Builder, found: Any, wanted: Any, exact: bool) -> None:
    numbers = [v for v in map(np.asarray, b.values.values()) if v.dtype.kind in "fc"]
    finite = [np.abs(v[np.isfinite(v)]).max(initial=1.0) for v in numbers]
    eps = 2000 * max([float(np.finfo(v.dtype).eps) for v in numbers], default=0.0)
    for x, y in zip(found, wanted, strict=True):
        if exact:
            assert_same(x, y, b.program(*b.outputs))
            continue
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        for part, expected in ((x.real, y.real), (x.imag, y.imag)):  # one of them may be rounded where the other one is infinite
            np.testing.assert_allclose(part, expected, rtol=eps, atol=eps * max(finite, default=1.0))


# -- programs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("block", range(10))
def test_random_programs_of_arithmetic(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits, but for the order of sums; XPGRAD_PROGRAMS=20000 draws more."""
    monkeypatch.setattr(building, "_UNARY", [name for name in building._UNARY if name not in ("sin", "exp", "tanh")])
    monkeypatch.setattr(building, "_BINARY", [name for name in building._BINARY if name != "hypot"])
    for k in range(int(os.environ.get("XPGRAD_PROGRAMS", "100")) // 20):
        random = Random(100_000 * block + k)
        check(random_program(random, random.randint(1, 25)))


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("block", range(10))
def test_random_programs_with_functions(block: int) -> None:
    for k in range(int(os.environ.get("XPGRAD_PROGRAMS", "100")) // 20):
        random = Random(100_000 * block + 50_000 + k)
        check(random_program(random, random.randint(1, 25)), exact=False)


@settings(max_examples=20, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_random_programs_that_shrink(random: Random, count: int) -> None:
    check(random_program(random, count), exact=False)


@pytest.mark.parametrize("emitter", ["native", "c"])
@pytest.mark.parametrize("name", ["max", "min"])
def test_the_last_of_equal_zeros_is_the_extremum(name: str, emitter: str) -> None:
    if emitter == "c" and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    random = Random(0)
    for shape, axis in [((3, 4), 0), ((9, 5), 0), ((2, 4, 3), 1), ((70, 1_000), 0)]:
        compiled = xp.compile(lambda x: getattr(xp, name)(x, axis=axis), emitter=emitter)  # noqa: B023
        for _ in range(5):
            x = np.asarray(random.choices([0.0, -0.0, -1.0 if name == "max" else 1.0], k=int(np.prod(shape)))).reshape(shape)
            found, wanted = values(compiled(xp.asarray(x, device="numpy"))), getattr(np, name)(x, axis=axis)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("emitter", ["native", "c", "numpy"])
@pytest.mark.parametrize("shape", [(), (1,), (3, 1)])
def test_a_sum_of_negative_zeros_is_zero(shape: tuple[int, ...], emitter: str) -> None:
    if emitter == "c" and shutil.which("cc") is None:
        pytest.skip("no C compiler")
    x = -np.zeros(shape)
    for axis in (None, (), *range(len(shape))):
        found = xp.compile(lambda x: xp.sum(x, axis=axis), emitter=emitter)(xp.asarray(x, device="numpy"))  # noqa: B023
        np.testing.assert_array_equal(np.signbit(values(found)), np.signbit(np.sum(x, axis=axis)))


@pytest.mark.parametrize("shape", [(70_000,), (70_000, 3), (3, 70_000), (300, 300), (16, 17, 300), (1, 70_000), (70_000, 1)])
def test_sums_of_large_arrays(shape: tuple[int, ...]) -> None:
    """Nests in pieces: sums over all, first, last and middle axes, and what is read of them."""
    rng = np.random.default_rng(len(shape))
    b = Builder()
    x = b.input(rng.normal(size=shape))
    y = b("multiply", x, x)
    b.outputs = [y]
    for axes in (None, *[(a,) for a in range(len(shape))], tuple({0, len(shape) - 1})):
        for name in ("reduce_sum", "reduce_max", "reduce_mean"):
            b.outputs.append(b(name, y, axes, True))
            b.outputs.append(b("add", b.outputs[-1], x))
    program = b.program(*b.outputs)
    wanted = evaluate_program(program, BACKEND, b.raws())
    one, three = (native_function(program, BACKEND, threads)(*b.raws()) for threads in (1, 3))
    for found, other, y in zip(one, three, wanted, strict=True):
        np.testing.assert_array_equal(found, other)  # whatever the number of threads
        np.testing.assert_allclose(found, y, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "shapes", [((4, 3), (3, 5)), ((3,), (3, 5)), ((4, 3), (3,)), ((3,), (3,)), ((2, 4, 3), (3, 5)), ((2, 1, 4, 3), (6, 3, 5))]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products(shapes: Any, dtype: str) -> None:
    """Products of stacks, of views in rows, columns and neither, and sums of products in one memory."""
    rng = np.random.default_rng(0)
    b = Builder()
    x, y = (b.input(rng.normal(size=s).astype(dtype)) for s in shapes)
    b.outputs = [b("matmul", x, y)]
    if len(shapes[0]) == len(shapes[1]) == 2:
        xt, yt = b("transpose_axes", x, (1, 0)), b("transpose_axes", y, (1, 0))
        b.outputs.append(b("matmul", yt, xt))
        b.outputs.append(b("add", b("matmul", x, y), b("transpose_axes", b("matmul", yt, xt), (1, 0))))
        b.outputs.append(b("add", b("add", b("matmul", x, y), b("matmul", b("negative", x), y)), b("matmul", x, b("negative", y))))
        steps = (slice(None, None, 2), slice(None, None, -1))
        b.outputs.append(b("matmul", b("index_basic", x, steps), b("index_basic", y, (slice(None, None, -1), slice(None, None, 2)))))
    check(b, exact=False)


def test_every_region_is_native_and_sums_of_products_share_memory() -> None:
    b = Builder()
    x, y = (b.input(np.random.default_rng(k).normal(size=(4, 4))) for k in range(2))
    b.outputs = [b("add", b("add", b("matmul", x, y), b("matmul", y, x)), b("matmul", x, x))]
    lowered = lower(b.program(*b.outputs))
    assert [type(r) for r in lowered.regions] == [Product, Product, Product]
    assert [r.adds for r in lowered.regions if isinstance(r, Product)] == [False, True, True]
    check(b)


def test_a_workspace_is_used_again_only_when_nothing_reads_it() -> None:
    b = Builder()
    x = v = b.input(np.random.default_rng(0).normal(size=(8, 8)) / 3)
    for _ in range(6):
        v = b("matmul", v, x)
    b.outputs = [v]
    assert lower(b.program(v)).workspace_size == 2 * 8 * 8 * 8  # the operand of a product and its result, in turns
    check(b, exact=False)


def test_an_array_that_is_read_again_is_not_overwritten() -> None:
    b = Builder()
    x = b.input(np.arange(16.0).reshape(4, 4))
    y = b("multiply", x, 2.0)
    z = b("add_at", y, b("index_basic", x, (slice(0, 2),)), (slice(0, 2),))
    b.outputs = [b("multiply", b("matmul", z, x), y)]  # which waits for `z`
    check(b)


@pytest.mark.parametrize(("kernel", "key"), [
    ("written", (slice(None, None, -1),)), ("add_at", (slice(None, None, -1),)), ("scatter_into", [1, 0, 0, 3]),
])  # fmt: skip
def test_an_array_that_is_written_into_itself_is_copied(kernel: str, key: Any) -> None:
    b = Builder()
    y = b("multiply", b.input(np.arange(16.0).reshape(4, 4)), 2.0)
    place = key if isinstance(key, tuple) else (b.input(np.array(key)),)
    b.outputs = [b(kernel, y, place, y) if kernel == "written" else b(kernel, y, y, place)]
    check(b)


def test_a_sum_is_read_when_it_is_complete() -> None:
    b = Builder()
    x = b.input(np.arange(12.0).reshape(3, 4))
    total = b("reduce_sum", x, (), True)
    b.outputs = [b("subtract", x, b("reduce_sum", x, (0,), True)), b("multiply", x, total)]
    y = b("scatter_into", b("multiply", x, 1.0), x, (b.input(np.array([0, 0, 2])),))
    b.outputs.append(b("add", y, x))
    check(b)


def test_an_index_just_beyond_the_end_is_refused() -> None:
    f = xp.compile(lambda x, i: x[i] * 2.0, emitter="native")
    x = xp.asarray(np.arange(7.0))
    assert f(x, xp.asarray([6, -7])).tolist() == [12.0, 0.0]
    for bad in (7, -8):
        with pytest.raises(IndexError, match="out of bounds"):
            f(x, xp.asarray([0, bad]))


def test_a_chain_is_one_nest_without_memory() -> None:
    b = Builder()
    x = v = b.input(np.ones(4))
    for k in range(50):
        v = b("add", b("multiply", v, x), float(k))
    b.outputs = [v]
    lowered = lower(b.program(v))
    assert len(lowered.regions) == 1
    assert isinstance(lowered.regions[0], Nest)
    assert lowered.workspace_size == 0
    assert len(lowered.stored) == 1
    check(b)


def test_what_machine_code_lacks_is_numpy_between_its_parts() -> None:
    b = Builder()
    x = b.input(np.linspace(0.1, 2.0, 12).reshape(3, 4))
    y = b("multiply", b("sin", x), x)
    z = b("cumulative_sum", y, axis=1)
    turned = b("transpose_axes", b("add", z, y), (1, 0))
    b.outputs = [b("multiply", turned, 2.0), turned, b("cumulative_prod", turned, axis=0)]
    divided = parts.divide(b.program(*b.outputs), products=True)
    assert [o.name for o in divided.operations] == ["part", "cumulative_sum", "part", "transpose_axes", "cumulative_prod"]
    assert [len(o.program) for o in divided.operations if isinstance(o, Part)] == [2, 3]
    check(b, exact=False)


#: Kernels with their arguments after one or two arrays of shape (3, 4), and their options.
KERNELS: list[tuple[str, int, tuple[Any, ...], dict[str, Any]]] = [
    *(("flip", 1, (), {"axis": axis}) for axis in (None, 0, (1,), (0, 1))),
    *(("roll", 1, (by,), {"axis": axis}) for by in (0, 1, -1, 7) for axis in (0, 1)),
    *((name, 1, (axes, *more, keepdims), {}) for name, more in (("reduce_prod", ()), ("reduce_var", (1.0,)), ("reduce_var", (0.0,)))
      for axes in (None, (0,), (1,), (0, 1)) for keepdims in (False, True)),
    *(("linalg.vector_norm", 1, (), {"axis": axis, "keepdims": False, "ord": 2}) for axis in (None, 0, (1,))),
    *(("diagonal_view", 1, (k,), {}) for k in (-2, -1, 0, 1, 3)),
    ("clip", 1, (-0.5, 0.5), {}), ("clip", 3, (), {}), ("logaddexp", 2, (), {}), ("take_flat", 1, (np.array([0, -1, 11]),), {}),
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k[0]} {k[2]} {k[3]}")
def test_kernels_that_are_more_than_one_statement(kernel: Any) -> None:
    name, count, args, options = kernel
    b = Builder()
    arrays = [b.input(np.random.default_rng(k).normal(size=(3, 4)) - (0.0, 0.5, -0.5)[k]) for k in range(count)]
    args = tuple(b.input(a) if isinstance(a, np.ndarray) else a for a in args)
    found = b(name, *arrays, *args, **options)
    b.outputs = [found, b("multiply", found, 2.0)]
    lower(b.program(*b.outputs))  # all of it is machine code
    check(b, exact=False)


def test_arrays_are_put_together() -> None:
    b = Builder()
    x, y = (b.input(np.random.default_rng(k).normal(size=(2, 3))) for k in range(2))
    twice = b("multiply", x, 2.0)
    b.outputs = [b("concat", (x, twice, y), axis=axis) for axis in (0, 1, -1)] + [b("stack", (twice, y), axis=axis) for axis in (0, 2, -2)]
    b.outputs += [b("diagonal_transpose", x, (2, 4, 4), k) for k in (-1, 1)]
    lower(b.program(*b.outputs))
    check(b)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_logaddexp_of_special_values(dtype: str) -> None:
    x, y = (v.ravel() for v in np.meshgrid(*[np.array(SPECIAL).astype(dtype)] * 2))
    with np.errstate(all="ignore"):
        wanted = np.logaddexp(x, y)
    np.testing.assert_allclose(run("logaddexp", x, y)[0], wanted, rtol=4 * np.finfo(dtype).eps, atol=0)


# -- numbers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_functions_are_within_four_units_in_the_last_place(name: str, dtype: str) -> None:
    """Compared with the correctly rounded result: NumPy's in extended precision."""
    low, high = FUNCTIONS[name]
    x = np.random.default_rng(0).uniform(low, high, 20_000).astype(dtype)
    if low > 0:
        x = np.exp(np.random.default_rng(0).uniform(np.log(low), np.log(high), 20_000)).astype(dtype)
    (found,) = run(name, x)
    spelled = {"acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan", "atanh": "arctanh"}.get(
        name, name
    )
    wanted = getattr(np, spelled)(x.astype(np.longdouble))
    error = np.abs(found - wanted) / np.spacing(np.abs(wanted).astype(dtype)).astype(np.longdouble)
    assert float(error.max()) <= 4.0
    small = x[:7]  # no vectors
    (again,) = run(name, small)
    assert float(np.max(np.abs(again - wanted[:7]) / np.spacing(np.abs(wanted[:7]).astype(dtype)))) <= 4.0


def run(name: str, *arrays: Any) -> Any:
    """Return the results of machine code for one elementwise kernel."""
    b = Builder()
    b.outputs = [b(name, *(b.input(a) for a in arrays))]
    with np.errstate(all="ignore"):
        return native_function(b.program(*b.outputs), BACKEND)(*arrays)


@pytest.mark.parametrize("size", [3, 100])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_special_values(dtype: str, size: int) -> None:
    """Infinities, nan, subnormal numbers and zeros of either sign give what NumPy gives, in vectors and one by one."""
    values = np.array(SPECIAL).astype(dtype)
    x, y = (np.resize(v, (len(SPECIAL) ** 2 // size + 1) * size).reshape(-1, size) for v in np.meshgrid(values, values))
    one = [*FUNCTIONS, "abs", "ceil", "floor", "isfinite", "isinf", "isnan", "negative", "reciprocal", "round", "sign", "signbit", "sqrt",
           "square", "trunc"]  # fmt: skip
    two = ["add", "atan2", "copysign", "divide", "equal", "greater", "greater_equal", "hypot", "less", "less_equal", "maximum", "minimum",
           "multiply", "not_equal", "pow", "subtract"]  # fmt: skip
    for name in [*one, *two]:
        b = Builder()
        arrays = [x, y] if name in two else [x]
        b.outputs = [b(name, *(b.input(a) for a in arrays))]
        (wanted,) = evaluate_program(b.program(*b.outputs), BACKEND, b.raws())
        (found,) = run(name, *arrays)
        assert_same_numbers(found, wanted, name, exact=name not in (*FUNCTIONS, "atan2", "hypot", "pow"))


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_integers_and_bools(dtype: str) -> None:
    info = None if dtype == "bool" else np.iinfo(dtype)
    values = np.array([0, 1] if info is None else [0, 1, -1, 7, info.min, info.max, info.min + 1], dtype)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    two = ["equal", "not_equal", "less", "bitwise_and", "bitwise_or", "bitwise_xor"]
    two += ["logical_and", "logical_or", "logical_xor"] if info is None else ["add", "subtract", "multiply", "maximum", "minimum"]
    one = ["logical_not"] if info is None else ["abs", "negative", "square"]
    for name in [*one, *two]:
        arrays = [x, y] if name in two else [x]
        b = Builder()
        b.outputs = [b(name, *(b.input(a) for a in arrays))]
        (wanted,) = evaluate_program(b.program(*b.outputs), BACKEND, b.raws())
        (found,) = run(name, *arrays)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted, err_msg=name)


def test_additions_to_bools_are_numpys() -> None:
    """True plus True is True."""
    b = Builder()
    x, key = b.input(np.array([True, False, False])), b.constant(np.array([0, 1, 1]))
    b.outputs = [b("scatter_into", b("copy", x), b.input(np.ones(3, bool)), (key,)), b("add_at", x, x, (slice(0, 3, 1),))]
    check(b)


# -- complex numbers ---------------------------------------------------------------------------------------------------------

COMPLEX = ["complex128", "complex64"]


@pytest.mark.slow(one_in=11)
@pytest.mark.parametrize("size", [3, 100])
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", [*EXACT, *CLOSE])
def test_complex_special_values(name: str, dtype: str, size: int) -> None:
    """Parts that are infinite, nan, subnormal, or zeros of either sign give what NumPy gives, in vectors and one by one."""
    special = [*SPECIAL, 710.0, -745.0] if dtype == "complex128" else [*SPECIAL, 3e38, 89.0, -104.0, 1e-40]
    every = complex_array(*(v.ravel() for v in np.meshgrid(special, special)), dtype)
    count = (EXACT | CLOSE)[name]
    grid = [v.ravel() for v in np.meshgrid(*[every] * count)]
    arrays = [np.resize(v, (len(v) // size + 1) * size).reshape(-1, size) for v in grid]
    b = Builder()
    b.outputs = [b(name, *(b.input(a) for a in arrays))]
    lower(b.program(*b.outputs))  # all of it is machine code
    with np.errstate(all="ignore"):
        (wanted,) = evaluate_program(b.program(*b.outputs), BACKEND, b.raws())
    assert_same_complex(run(name, *arrays)[0], wanted, name, 4 if name in CLOSE else 0)


@pytest.mark.slow(one_in=8)
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("number", [2.0, -1, 0, 0.5j, 1 - 2j, float("inf"), float("nan")])
def test_complex_arrays_and_numbers(number: Any, dtype: str) -> None:
    z = complex_array(*(v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL)), dtype)
    for name in ("add", "subtract", "multiply", "divide", "equal", "not_equal"):
        for first in (True, False):
            b = Builder()
            x = b.input(z)
            b.outputs = [b(name, x, number) if first else b(name, number, x)]
            lower(b.program(*b.outputs))
            with np.errstate(all="ignore"):
                (wanted,) = evaluate_program(b.program(*b.outputs), BACKEND, b.raws())
                (found,) = native_function(b.program(*b.outputs), BACKEND)(*b.raws())
            assert_same_complex(found, wanted, f"{name} {number} {first}")


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("power", [-1, 0.5, 1, 2, 3, 1.0, 2.0, 3.0])
def test_complex_powers(power: float, dtype: str) -> None:
    if OLD_POWERS and power in (1, 2):
        pytest.skip("NumPy 2.2 computes it otherwise")
    z = complex_array(*(v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL)), dtype)
    b = Builder()
    b.outputs = [b("pow", b.input(z), power)]
    lower(b.program(*b.outputs))
    with np.errstate(all="ignore"):
        (wanted,) = evaluate_program(b.program(*b.outputs), BACKEND, b.raws())
        (found,) = native_function(b.program(*b.outputs), BACKEND)(*b.raws())
    assert_same_complex(found, wanted, f"power {power}", 4 if power == 0.5 else 0)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("name", [name for name in CLOSE if name != "abs"] + ["reciprocal", "square"])
def test_complex_functions_are_within_four_units_of_the_modulus(name: str, dtype: str) -> None:
    """Compared with NumPy's results in extended precision."""
    rng, n = np.random.default_rng(0), 5_000
    near = 10.0 ** rng.uniform(-12, -1, (2, n))
    places = {
        "circle": np.exp(1j * rng.uniform(-4, 4, n)) * (1 + rng.normal(size=n) * 10.0 ** rng.uniform(-17, 0, n)),
        "all sizes": (rng.normal(size=(2, n)) * 10.0 ** rng.uniform(-12, 12, (2, n))).T.copy().view(complex)[:, 0],
        "square": rng.uniform(-50, 50, n) + 1j * rng.uniform(-50, 50, n),
        "near 1": 1 + near[0] * rng.choice([-1, 1], n) + 1j * near[1],
    }
    for where, z in places.items():
        z = z.astype(dtype)
        (found,) = run(name, z)
        with np.errstate(all="ignore"):
            wanted = getattr(np, name)(z.astype(np.clongdouble))
        finite = np.isfinite(wanted.astype(dtype)) & np.isfinite(found)
        assert finite.sum() > n // 3
        error = np.stack([np.abs(a - b) for a, b in zip(parts_of(found.astype(np.clongdouble)), parts_of(wanted))])
        unit = np.spacing(np.abs(wanted).astype(found.real.dtype)).astype(np.longdouble)
        assert float((error / unit)[:, finite].max()) <= 4.0, where
        (again,) = run(name, z[:3])  # no vectors
        assert float((np.abs(again - wanted[:3]) / unit[:3])[finite[:3]].max(initial=0.0)) <= 4.0


@pytest.mark.parametrize("order", [float("inf"), float("-inf")])
def test_the_largest_modulus_gets_the_gradient_of_a_norm(order: float) -> None:
    """Also where NumPy, which computes the norm, rounds it otherwise."""
    z = np.random.default_rng(0).normal(size=(100, 6)).view(complex)
    size = np.abs(z)
    chosen = size == (size.max if order > 0 else size.min)(axis=1, keepdims=True)
    found = xp.compile(func.grad(lambda z: xp.sum(xp.linalg.vector_norm(z, axis=1, ord=order))), emitter="native")(xp.asarray(z))
    np.testing.assert_allclose(found.numpy(), np.where(chosen, z / size, 0.0), rtol=1e-14)


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("block", range(10))
def test_random_programs_of_complex_numbers(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "_FLOATS", ["complex128", "complex64", "complex128", "float64", "float32"])
    monkeypatch.setattr(building, "_DTYPES", ["complex128", "complex128", "complex64", "complex64", "float64", "int64", "bool"])
    monkeypatch.setattr(building, "_BINARY", [*building._BINARY, "equal", "not_equal"])
    for k in range(int(os.environ.get("XPGRAD_PROGRAMS", "100")) // 20):
        random = Random(300_000 * block + k)
        check(random_program(random, random.randint(1, 25)), exact=False)


#: Kernels with their arguments after some complex arrays of a shape, and their options.
ARRANGED: list[tuple[str, int, tuple[Any, ...], dict[str, Any]]] = [
    ("flip", 1, (), {"axis": 0}), ("roll", 1, (2,), {"axis": 0}), ("roll", 1, (-1,), {"axis": 1}), ("swap_last", 1, (), {}),
    ("transpose_axes", 1, ((1, 0),), {}), ("broadcast_view", 1, ((2, 3, 4),), {}), ("reshape_to", 1, ((2, 6),), {}),
    ("index_basic", 1, ((slice(None, None, -2), slice(1, 3)),), {}), ("diagonal_view", 1, (1,), {}), ("copy", 1, (), {}),
    ("index_basic_transpose", 1, ((slice(1, 4), slice(0, 8, 2)), (5, 8)), {}), ("sum_to", 1, ((1, 4),), {}),
    ("diagonal_transpose", 1, ((3, 5, 5), 1), {}), ("take_flat", 1, (np.array([0, -1, 11]),), {}),
    ("gather", 1, ((np.array([2, 0, -1, 0]),),), {}), ("scatter_add", 1, ((np.array([1, 1, 3]),), (4, 4)), {}),
    ("real", 1, (), {}), ("imag", 1, (), {}), ("real_part", 1, (), {}), ("imag_part", 1, (), {}),
    *(("reduce_var", 1, (axes, 1.0, keepdims), {}) for axes in (None, (0,)) for keepdims in (False, True)),
    *((name, 1, (axes, keepdims), {})
      for name in ("reduce_sum", "reduce_mean") for axes in (None, (0,), (1,)) for keepdims in (False, True)),
    *(("linalg.vector_norm", 1, (), {"axis": axis, "keepdims": False, "ord": 2}) for axis in (None, 1)),
    ("zeros_like", 1, (), {}), ("ones_like", 1, (), {}), ("full_like", 1, (1 - 2j,), {}),
]  # fmt: skip


@pytest.mark.slow(one_in=24)
@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("kernel", ARRANGED, ids=lambda k: f"{k[0]} {k[2]} {k[3]}")
def test_kernels_that_arrange_or_add_complex_numbers(kernel: Any, dtype: str) -> None:
    name, count, args, options = kernel
    b = Builder()
    rng = np.random.default_rng(1)
    arrays = [b.input(complex_array(rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), dtype)) for _ in range(count)]
    args = tuple(
        tuple(b.input(p) if isinstance(p, np.ndarray) else p for p in a)
        if isinstance(a, tuple)
        else b.input(a)
        if isinstance(a, np.ndarray)
        else a
        for a in args
    )
    for made in (arrays[0], b("multiply", arrays[0], 1j)):  # an argument, whose parts are in turns, and a result
        found = b(name, made, *args, **options)
        b.outputs = [found, b("multiply", found, 2.0), made]
        lower(b.program(*b.outputs))  # all of it is machine code
        check(b, exact=False)


@pytest.mark.parametrize("dtype", COMPLEX)
def test_complex_numbers_beside_others(dtype: str) -> None:
    """Casts, selections, writes, and real arrays that become complex."""
    rng = np.random.default_rng(0)
    real = "float64" if dtype == "complex128" else "float32"
    b = Builder()
    z = b.input(complex_array(rng.normal(size=(3, 4)), rng.normal(size=(3, 4)), dtype))
    x = b.input(rng.normal(size=(3, 4)).astype(real))
    w = b("multiply", z, x)
    b.outputs = [
        b("to_dtype", z, DTYPES[real]), b("to_dtype", x, DTYPES[dtype]), b("to_dtype", z, DTYPES["bool"]),
        b("to_dtype", z, DTYPES["complex64"]), b("to_dtype", w, DTYPES["complex128"]), b("multiply", x, 2j),
        b("where", b("less", x, 0.0), z, w), b("where", b("less", x, 0.0), z, 1j), b("keep", b("less", x, 0.0), w), b("add", x, z),
        b("written", b("negative", z), (slice(0, 2),), b("index_basic", w, (slice(1, 3),))), b("written", w, (slice(0, 2),), 1 - 1j),
        b("add_at", b("negative", w), b("index_basic", z, (1,)), (2,)), b("concat", (z, w), axis=1), b("stack", (w, z), axis=1),
        b("scatter_into", b("copy", w), z, (b.input(np.array([1, 1, 0])),)), b("add", b("abs", z), b("imag", w)), b("conj", x),
    ]  # fmt: skip
    lower(b.program(*b.outputs))
    check(b, exact=False)


@pytest.mark.parametrize("dtype", COMPLEX)
@pytest.mark.parametrize("shape", [(), (1,), (0,), (0, 3), (3, 0), (1, 5), (70_000,), (300, 300), (3, 70_000)])
def test_complex_arrays_of_every_shape(shape: tuple[int, ...], dtype: str) -> None:
    rng = np.random.default_rng(0)
    b = Builder()
    z = b.input(complex_array(rng.normal(size=shape), rng.normal(size=shape), dtype))
    w = b("multiply", z, 1 - 0.5j)
    b.outputs = [w, b("reduce_sum", w, None, False), b("reduce_mean", w, (0,) if shape else None, True), b("abs", w), z]
    program = b.program(*b.outputs)
    lower(program)
    with np.errstate(all="ignore"):
        wanted = evaluate_program(program, BACKEND, b.raws())
        one, three = (native_function(program, BACKEND, threads)(*b.raws()) for threads in (1, 3))
    for found, other, y in zip(one, three, wanted, strict=True):
        assert (found.dtype, found.shape) == (y.dtype, y.shape)
        np.testing.assert_array_equal(found, other)  # whatever the number of threads
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(found, y, rtol=2000 * eps, atol=2000 * eps * max(np.sqrt(w.size), 1.0))


def test_complex_numbers_are_stored_in_one_loop_and_kept_apart_between_loops() -> None:
    b = Builder()
    z = b.input(np.arange(12.0).reshape(3, 4) * (1 + 2j))
    w = b("multiply", z, z)
    b.outputs = [b("multiply", w, b("reduce_sum", w, (0,), True))]
    lowered = lower(b.program(*b.outputs))
    assert [type(r) for r in lowered.regions] == [Nest, Nest]
    last = lowered.regions[-1]
    assert isinstance(last, Nest)
    assert sum(s.memory.buffer.is_paired for s in last.body) == 2
    assert not any(buffer.is_paired for buffer in lowered.workspace)
    check(b)


def test_no_call_of_numpy_remains_in_a_complex_program() -> None:
    def loss(z: Any, turns: Any, key: Any) -> Any:
        for _ in range(3):
            z = xp.exp(1j * turns) * xp.roll(z, 1, axis=0) / (1 + xp.abs(z)) + xp.conj(z)[key]
        return xp.mean(xp.abs(xp.where(turns > 0, z, xp.sqrt(z) * z**2)) ** 2) + xp.sum(xp.imag(z)) + xp.abs(xp.mean(z))

    rng = np.random.default_rng(0)
    z, turns, key = rng.normal(size=(8, 2)).view(complex)[:, 0], rng.normal(size=8), rng.permutation(8)
    step = xp.func.value_and_grad(loss, argnums=(0, 1))
    compiled = xp.compile(step, emitter="native")
    arguments = (xp.asarray(z), xp.asarray(turns), xp.asarray(key))
    assert "0 calls of NumPy" in compiled.explain(*arguments).splitlines()[0]
    (value, gradients), (found, others) = step(*arguments), compiled(*arguments)
    np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=1e-13)
    for a, g in zip(others, gradients, strict=True):
        np.testing.assert_allclose(a.numpy(), g.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("own", [False, True])
def test_complex_functions_do_without_the_vector_functions_of_glibc(own: bool) -> None:
    """Beside real ones that use them: their errors, added up, exceed four units."""
    b = Builder()
    z, x = b.input(np.ones(3) * 1j), b.input(np.ones(3))
    b.outputs = [b("exp", z), b("exp", x)]
    lowered = lower(b.program(*b.outputs))
    variants = {"exp": [(4, "_ZGVdN4v_exp")], "sin": [(4, "_ZGVdN4v_sin")], "cos": [(4, "_ZGVdN4v_cos")]}
    (region,) = lowered.regions
    text = region_kernel(lowered, region, Target(256, variants, own_functions=own)).text
    assert "_ZGVdN4v_exp" in text  # of the real one
    assert "_ZGVdN4v_sin" not in text
    assert "_ZGVdN4v_cos" not in text
    assert ("@xpgrad.exp(" in text) == own
    calls = [line for line in text.splitlines() if " call double @exp(" in line]
    assert len({line.rpartition("#")[2] for line in calls}) == (1 if own else 2)


@pytest.mark.parametrize("name", ["tanh", "tan", "log2", "reduce_prod", "matmul", "less"])
def test_what_is_not_accurate_or_not_of_parts_stays_numpys(name: str) -> None:
    b = Builder()
    z = b.input(np.random.default_rng(0).normal(size=(3, 6)).view(complex))
    args = {"reduce_prod": ((0,), False), "matmul": (z,), "less": (z,)}.get(name, ())
    b.outputs = [b("multiply", b(name, b("multiply", z, 2.0), *args), 1)]
    assert name in [o.name for o in parts.divide(b.program(*b.outputs)).operations]
    check(b, exact=False)


# -- arguments ---------------------------------------------------------------------------------------------------------------


def arrays_of(x: Any) -> dict[str, Any]:
    """Return the same numbers in arrays that lie in memory in other ways."""
    spread = np.zeros((*x.shape[:-1], 2 * x.shape[-1]), x.dtype)
    spread[..., ::2] = x
    unaligned = np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:].view(x.dtype).reshape(x.shape)
    frozen = x.copy()
    frozen.flags.writeable = False
    return {
        "columns": np.asfortranarray(x), "every other": spread[..., ::2], "reversed": x[::-1].copy()[::-1], "unaligned": unaligned,
        "frozen": frozen, "swapped": x.astype(x.dtype.newbyteorder(">")),
        "subclass": x.view(np.matrix), "expanded": np.broadcast_to(x[:1], x.shape),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128", "complex64"])
def test_arrays_in_any_order(dtype: str) -> None:
    b = Builder()
    x = b.input((np.arange(12.0).reshape(3, 4) * (1 if dtype == "float64" else 1 - 2j)).astype(dtype))
    b.outputs = [b("multiply", x, x), b("reduce_sum", x, (0,), False)]
    function = native_function(b.program(*b.outputs), BACKEND)
    for name, array in arrays_of(b.values[x]).items():
        before = np.array(array)
        for found, wanted in zip(function(array), evaluate_program(b.program(*b.outputs), BACKEND, [np.asarray(before)]), strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=name)
        np.testing.assert_array_equal(array, before)


def test_arguments_of_another_shape_are_refused() -> None:
    b = Builder()
    b.outputs = [b("negative", b.input(np.ones((3, 4))))]
    function = native_function(b.program(*b.outputs), BACKEND)
    for wrong in (np.ones((3, 5)), np.ones((4, 3)), np.ones(12), np.float64(1.0)):
        with pytest.raises(ValueError, match="shape"):
            function(wrong)


def test_an_argument_that_changes_its_dtype_is_compiled_again() -> None:
    f = xp.compile(lambda x: x * x + 0.1, emitter="native")
    for dtype in (xp.float64, xp.float32, xp.int64, xp.float64):
        x = xp.astype(xp.asarray([1, 2, 3]), dtype)
        assert f(x).dtype == (x * x + 0.1).dtype
        np.testing.assert_array_equal(f(x).numpy(), (x * x + 0.1).numpy())


def test_arguments_require_grad_in_turns() -> None:
    """Calls of one function that differ only in what requires grad."""
    f = xp.compile(lambda x, y: xp.sum(x * y), emitter="native")
    data = np.arange(1.0, 4.0)
    for _ in range(2):
        for needs in ((False, False), (True, False), (False, False), (False, True), (True, True)):
            x, y = (xp.tensor(data, requires_grad=need) for need in needs)
            out = f(x, y)
            assert out.requires_grad == any(needs)
            if any(needs):
                out.backward()
            for t in (x, y):
                assert (t.grad is None) == (not t.requires_grad)
                assert t.grad is None or t.grad.tolist() == data.tolist()


@pytest.mark.parametrize("bad", [7, -8, 2**62, -(2**62)])
def test_indices_out_of_bounds_raise_before_memory_is_touched(bad: int) -> None:
    for write in (False, True):
        f = xp.compile(lambda x, i, write=write: xp.sum(x[i] * x[i]) if not write else _added(x, i), emitter="native")
        x = xp.tensor(np.arange(7.0), requires_grad=True)
        assert np.isfinite(float(f(x, xp.asarray([0, 6, -7])).detach().numpy()))
        with pytest.raises(IndexError, match="out of bounds"):
            f(x, xp.asarray([0, bad, 1]))
        with pytest.raises(IndexError, match="out of bounds"):
            xp.compile(lambda x, i: x[i + 0] * 2.0, emitter="native")(x, xp.asarray([bad]))  # an index that is computed


def _added(x: Any, i: Any) -> Any:
    out = xp.zeros_like(x)
    out = out + 0.0
    out[i] = x[i]
    return xp.sum(out * x)


# -- processes, threads, and the cache ----------------------------------------------------------------------------------------


def test_threads_may_call_one_function_at_the_same_time() -> None:
    f = xp.compile(lambda x: xp.sum(xp.sin(x) * xp.cumulative_sum(x, axis=0)) + xp.sum(x @ xp.matrix_transpose(x)), emitter="native")
    data = [np.random.default_rng(k).normal(size=(30, 30)) for k in range(4)]
    wanted = [float(f(xp.asarray(d)).numpy()) for d in data]
    found: list[set[float]] = [set() for _ in data]

    def work(k: int) -> None:
        for _ in range(30):
            found[k].add(float(f(xp.asarray(data[k])).numpy()))

    workers = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert found == [{w} for w in wanted]


def a_program() -> Builder:
    b = Builder()
    x = b.input(np.arange(5.0))
    b.outputs = [b("multiply", b("add", x, 1.5), x)]
    return b


def test_machine_code_is_kept_for_the_next_process(folder: Path, fresh: machines.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    b = a_program()
    native_function(b.program(*b.outputs), BACKEND)
    files = sorted(folder.iterdir())
    assert len(files) == 2  # what calls machine code, and the kernel
    assert not stat.S_IMODE(folder.stat().st_mode) & 0o077
    machines.machine.cache_clear()
    monkeypatch.setattr(machines.Machine, "compile", lambda self, text: pytest.fail("compiled again"))
    (found,) = native_function(b.program(*b.outputs), BACKEND)(*b.raws())
    np.testing.assert_array_equal(found, b.values[b.outputs[0]])
    assert sorted(folder.iterdir()) == files
    assert cache.clear() == 2
    assert not list(folder.iterdir())


@pytest.mark.parametrize("damage", [lambda code: code[:-5], lambda code: b"", lambda code: b"\x7fELF" + code[4:], lambda code: code[:60]])
def test_a_damaged_file_is_ignored_with_a_warning(folder: Path, fresh: machines.Machine, damage: Callable[[bytes], bytes]) -> None:
    b = a_program()
    native_function(b.program(*b.outputs), BACKEND)
    for file in folder.iterdir():
        file.write_bytes(damage(file.read_bytes()))
    machines.machine.cache_clear()
    with pytest.warns(RuntimeWarning, match="not whole machine code"):
        (found,) = native_function(b.program(*b.outputs), BACKEND)(*b.raws())
    np.testing.assert_array_equal(found, b.values[b.outputs[0]])


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="Windows has other permissions")
def test_a_folder_to_which_others_can_write_is_not_used(folder: Path, fresh: machines.Machine) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    cache.clear()
    folder.chmod(0o777)
    b = a_program()
    machines.machine.cache_clear()
    with pytest.warns(RuntimeWarning, match="others can write"):
        (found,) = native_function(b.program(*b.outputs), BACKEND)(*b.raws())
    np.testing.assert_array_equal(found, b.values[b.outputs[0]])
    assert not list(folder.iterdir())


def test_the_oldest_files_are_deleted_beyond_the_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_LIMIT", 500)
    for k in range(5):
        cache.save(f"k{k}", bytes(100))
        os.utime(folder / f"k{k}.o", (k, k))
    assert [path.name for path, _, _ in cache.entries()] == ["k2.o", "k3.o", "k4.o"]
    assert cache.load("k0") is None
    assert cache.load("k4") == bytes(100)


def test_the_folder_is_not_measured_at_each_save(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With tens of thousands of files, that would take longer than a compilation."""
    measured = []
    monkeypatch.setattr(cache, "entries", lambda: measured.append(None) or [])
    for k in range(20):
        cache.save(f"k{k}", bytes(100))
    assert len(measured) <= 1
    for k in range(20):
        cache.save(f"k{k}", bytes(1 << 20))
    assert 4 <= len(measured) <= 7


def test_the_text_is_the_same_in_every_run(fresh: machines.Machine) -> None:
    """The cache finds code by its text."""
    texts = set()
    for _ in range(3):
        b = Builder()
        x = b.input(np.ones((3, 4)))
        y = b("add", b("multiply", b("sin", x), x), b("gather", x, (b.input(np.array([0, 2, 1])),)))
        b.outputs = [b("matmul", y, b("transpose_axes", x, (1, 0))), b("reduce_sum", y, (0,), False), y]
        lowered = lower(b.program(*b.outputs))
        texts.add("".join(region_kernel(lowered, region, fresh.target).text for region in lowered.regions))
    assert len(texts) == 1


def test_batches_of_another_size_use_the_same_code(fresh: machines.Machine) -> None:
    f = xp.compile(lambda x, w: xp.sum(xp.tanh(x * w), axis=1), emitter="native")
    w = xp.asarray(np.linspace(0.0, 1.0, 10))
    f(xp.asarray(np.ones((64, 10))), w)
    count = len(fresh.loaded)
    f(xp.asarray(np.ones((50, 10))), w)
    assert len(fresh.loaded) == count


def linear(k: int) -> Any:
    """The function ``x * k + x``, with a kernel that no other `k` has."""
    b = Builder()
    x = b.input(np.ones(3))
    return native_function(b.program(b("add", b("multiply", x, float(k)), x)), BACKEND)


def memory_maps() -> int:
    return len(Path("/proc/self/maps").read_text(encoding="utf-8").splitlines())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells and limits the maps")
def test_code_that_nothing_uses_is_unloaded(fresh: machines.Machine) -> None:
    """Otherwise a process that goes on compiling reaches the limit of memory maps, beyond which code cannot run."""
    kept = linear(-1)
    fresh.recent = deque(maxlen=4)
    counts = []
    for k in range(60):
        function = linear(k)
        call = function.call
        assert function(np.ones(3))[0].tolist() == [k + 1.0] * 3
        del function
        gc.collect()
        out = np.empty(3)
        call(np.ones(3), out)  # keeps its kernels alone
        assert out.tolist() == [k + 1.0] * 3
        counts.append(memory_maps())
    assert len(fresh.loaded) <= 8
    assert counts[-1] - counts[10] < 30
    assert kept(np.ones(3))[0].tolist() == [0.0] * 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="where Linux tells how much memory a process has")
def test_compiling_leaves_no_memory(fresh: machines.Machine) -> None:
    b = a_program()
    function = native_function(b.program(*b.outputs), BACKEND)
    text = max(fresh.loaded, key=len).replace("@NAME", "@kernel")
    sizes = []
    for _ in range(80):
        fresh.compile(text)
        sizes.append(int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE"))
    assert sizes[-1] - sizes[19] < 2 << 20
    del function


def test_beyond_the_limit_of_memory_maps_numpy_runs(fresh: machines.Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    linear(0)
    monkeypatch.delenv("XPGRAD_EMITTER", raising=False)
    monkeypatch.setattr(machines, "_most_functions", lambda: len(fresh.loaded))
    _backend._warn_once.cache_clear()
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(MemoryError, match="max_map_count"):
        xp.compile(lambda x: xp.sin(x) * 7.0, emitter="native")(x)
    with pytest.warns(RuntimeWarning, match="could not be compiled .MemoryError"):
        assert xp.compile(lambda x: x * 7.0 + 3.0)(x).tolist() == [10.0, 17.0]
    _backend._warn_once.cache_clear()


_FORKS = """
    import os, signal, threading, time
    import numpy as np
    import xpgrad as xp

    stop = threading.Event()

    def compile_one(k):
        f = xp.compile(lambda x: xp.sum(xp.sin(x * float(k)) * xp.exp(x)), emitter="native")
        return float(f(xp.asarray(np.full(3, 0.5))))

    def work():
        k = 1
        while not stop.is_set():
            compile_one(k)
            k += 1

    compile_one(0)
    thread = threading.Thread(target=work)
    thread.start()
    failed = 0
    for n in range(15):
        time.sleep(0.003)
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # a child that waits for ever is killed
            os._exit(not np.isclose(compile_one(-1 - n), 3 * np.sin(-0.5 - n / 2) * np.exp(0.5)))
        failed += os.waitpid(child, 0)[1] != 0
    stop.set()
    thread.join()
    print(failed)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.timeout(200)
def test_a_child_compiles_whatever_other_threads_were_compiling(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", textwrap.dedent(_FORKS)],
        capture_output=True, text=True, timeout=180, check=False,
        env={**os.environ, "PYTHONPATH": search_path(), "XPGRAD_CACHE": str(tmp_path)},
    )  # fmt: skip
    assert found.stdout == "0\n", found.stderr


# -- choosing an emitter -------------------------------------------------------------------------------------------------------


def test_an_emitter_is_chosen_by_name_or_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    x = xp.asarray([1.0, 2.0])
    assert {"array-api", "native", "numpy"} <= set(emitter_names())
    assert "x + 1.0" in xp.compile(lambda x: x + 1.0, emitter="native").source(x)
    assert "import numpy" in xp.compile(lambda x: x + 1.0, emitter="numpy").source(x)
    assert "xp." in xp.compile(lambda x: xp.sin(x), emitter="array-api").source(x)
    monkeypatch.setenv("XPGRAD_EMITTER", "array-api")
    assert "xp.sin" in xp.compile(lambda x: xp.sin(x)).source(x)
    monkeypatch.setenv("XPGRAD_EMITTER", "native")
    frozen = xp.asarray([1.0, 2.0], device="numpy+readonly")
    assert xp.compile(lambda x: x + 1.0)(frozen).tolist() == [2.0, 3.0]  # the environment's is for NumPy alone
    with pytest.raises(ValueError, match=r"emitter='native' is for arrays of numpy"):
        xp.compile(lambda x: x + 1.0, emitter="native")(frozen)
    with pytest.raises(ValueError, match="no such emitter: 'nativ'"):
        xp.compile(lambda x: x, emitter="nativ")


def test_without_llvmlite_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    machines.machine.cache_clear()
    monkeypatch.setitem(__import__("sys").modules, "llvmlite", None)
    with pytest.raises(ImportError, match=r"pip install 'xpgrad\[native\]'"):
        xp.compile(lambda x: x + 1.0, emitter="native")(xp.asarray([1.0]))
    machines.machine.cache_clear()


def test_a_plugin_brings_an_emitter(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    class Plugin:
        @xp.hookspecs.hookimpl
        def xpgrad_emitter(self) -> Any:
            return xp.emitter.EmitterInfo("counting", function=self.function, source=lambda program, backend, threads: f"{threads} threads")

        def function(self, program: Any, backend: Any, threads: int | None) -> Any:
            seen.append(len(program))
            return lambda *arrays: tuple(evaluate_program(program, backend, list(arrays)))

    class Entry:
        name, value = "counting", "counting:plugin"

        def load(self) -> Any:
            return Plugin()

    monkeypatch.setattr(emitters, "_entries", lambda: {"counting": Entry()})
    monkeypatch.setattr(emitters, "_registered", {})
    f = xp.compile(lambda x: xp.sin(x) * 2.0, emitter="counting", threads=3)
    assert f(xp.asarray([0.0])).tolist() == [0.0]
    assert seen == [2]
    assert f.source(xp.asarray([0.0])) == "3 threads"
    with pytest.raises(ValueError, match="registered already"):
        register_emitter(xp.emitter.EmitterInfo("array-api", function=print, source=print))
    with pytest.raises(TypeError, match="needs an EmitterInfo"):
        register_emitter("native")  # type: ignore[arg-type]


def test_without_a_choice_a_failure_is_told_once_and_numpy_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XPGRAD_EMITTER", raising=False)
    failing = xp.emitter.EmitterInfo("native", function=lambda *args: 1 / 0, source=lambda *args: "", backends=("numpy",))
    monkeypatch.setattr(_emitters.NATIVE, "info", failing)
    monkeypatch.setattr(emitters, "_registered", {})
    monkeypatch.setattr(_backend, "_is_native_default", lambda: True)
    _backend._warn_once.cache_clear()
    x = xp.asarray([1.0, 2.0])
    with pytest.warns(RuntimeWarning, match="could not be compiled .ZeroDivisionError"):
        assert xp.compile(lambda x: x + 1.0)(x).tolist() == [2.0, 3.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert xp.compile(lambda x: x + 2.0)(x).tolist() == [3.0, 4.0]
    with pytest.raises(ZeroDivisionError):
        xp.compile(lambda x: x + 1.0, emitter="native")(x)
    _backend._warn_once.cache_clear()


def test_an_explanation_names_regions_and_reasons() -> None:
    def f(x: Any, w: Any) -> Any:
        y = xp.tanh(x @ w)
        return xp.sum(xp.cumulative_sum(y, axis=0)) + xp.sum(y / xp.sum(y, axis=1, keepdims=True))

    text = xp.compile(f).explain(xp.asarray(np.ones((30, 4))), xp.asarray(np.ones((4, 5))))
    assert "the product of (30, 4) and (4, 5)" in text
    assert "waits for region 1" in text
    assert "NumPy: running_sum -> (30, 5) (no machine code for running_sum)" in text
    assert "has other loops than region" in text or "needs all of region" in text
    assert "bound by functions" in text
    assert "150 functions" in text
    square = xp.ones((8, 8))
    text = xp.compile(lambda x, w, y: x @ w + y @ w).explain(square, square, square)
    assert re.search(r"2\. add the product of \(8, 8\) and \(8, 8\); 1\.5 kB read, 512 B written", text)


def test_an_explanation_shows_the_programs_of_loops() -> None:
    carry, xs = xp.ones(3), xp.ones((5, 3))
    text = xp.compile(lambda c, xs: func.scan(lambda c, x: (xp.sin(c) * x, c * x), c, xs)).explain(carry, xs)
    assert re.search(
        r"loop of 5 steps, each of which has\n +3 operations: 1 regions .*\n +1\. loops over \(3,\): sin, multiply, multiply", text
    )
    text = xp.compile(lambda x: func.while_loop(lambda c: xp.sum(c) < 100.0, lambda c: c * 2.0, x)).explain(carry)
    assert re.search(r"the test and the step have\n +2 operations: .*\n.*sum.*\n.*less.*\n +1 operations: .*\n.*multiply", text)


def test_the_cache_is_shown_and_cleared(capsys: pytest.CaptureFixture[str], folder: Path, fresh: machines.Machine) -> None:
    b = a_program()
    native_function(b.program(*b.outputs), BACKEND)
    assert main(["cache"]) == 0
    assert f"{folder}: 2 functions" in capsys.readouterr().out
    assert main(["cache", "--clear"]) == 0
    assert "deleted 2 files" in capsys.readouterr().out
    assert not list(folder.iterdir())
