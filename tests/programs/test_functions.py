"""Our own elementary functions in machine code: errors in units in the last place, special values, and one result whatever the vectors."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from programs.building import BACKEND, Builder, random_program
from xpgrad.programs.evaluation import evaluate_program
from xpgrad.programs.lowering import lower
from xpgrad.programs.scalars import SCALARS

pytest.importorskip("llvmlite", reason="the extra `native`")
from programs.test_native import check  # after the check above
from xpgrad.programs.native import functions
from xpgrad.programs.native.llvm_text import region_kernel
from xpgrad.programs.native.machine import Machine
from xpgrad_numpy import _native
from xpgrad_numpy._native_function import machine_function

pytestmark = [pytest.mark.slow(one_in=3), pytest.mark.filterwarnings("ignore::RuntimeWarning")]

ROOT = Path(__file__).parents[2]
ALL = sorted(name for name, scalar in SCALARS.items() if scalar.form == "function")
TWO = ("atan2", "hypot", "pow")
DTYPES = ("float64", "float32")
#: Interval by interval: numbers are drawn evenly between bounds of unlike signs and evenly in their logarithms between others.
EVERY = [(-1.0, 1.0), (-20.0, 20.0), (1e-320, 1e-300), (1e-300, 1.0), (-1e-5, -1e-20), (1.0, 1e300), (-1e6, -1.0)]
POSITIVE = [(1e-320, 1e-300), (1e-300, 1e300), (1e-5, 1e5), (0.5, 2.0), (0.99, 1.01), (0.999999, 1.000001)]
EXPONENTS = [(-1.0, 1.0), (-1e-9, -1e-20), (1e-20, 1e-5), (-40.0, 40.0), (-745.0, -1.0), (600.0, 709.7), (-103.0, 88.7)]
ANGLES = [
    (-4.0, 4.0),
    (-1000.0, 1000.0),
    (1e-320, 1e-3),
    (1e3, 1e6),
    (1.2e5, 1.4e5),
    (-1e11, -1e6),
    (6e10, 8e10),
    (1e11, 1e22),
    (-1e308, -1e22),
    (1e300, 1.7e308),
]
INTERVALS: dict[str, list[tuple[float, float]]] = {
    "acos": [(-1.0, 1.0), (0.4, 0.6), (-0.6, -0.4), (0.99, 1.0), (1e-300, 1.0)], "acosh": [(1.0, 1.001), (1.0, 10.0), (1.0, 1.7e308)],
    "asin": [(-1.0, 1.0), (0.4, 0.6), (0.99, 1.0), (1e-320, 1e-300), (-1.0, -1e-300)],
    "atanh": [(-1.0, 1.0), (1e-320, 1.0), (0.9, 1.0)],
    "cos": ANGLES, "cosh": EXPONENTS, "exp": EXPONENTS, "expm1": EXPONENTS, "log": POSITIVE, "log10": POSITIVE, "log2": POSITIVE,
    "log1p": [(-0.9999, 1.0), (-0.1, 0.1), (1e-320, 1e-15), (1e-15, 1e300), (-1e-15, -1e-9)],
    "sin": ANGLES, "sinh": EXPONENTS, "tan": ANGLES, "tanh": EXPONENTS,
}  # fmt: skip
PAIRS: dict[str, list[tuple[tuple[float, float], tuple[float, float]]]] = {
    "atan2": [((-1.0, 1.0), (-1.0, 1.0)), ((1e-300, 1e300), (-1e300, -1e-300)), ((1e307, 1.7e308), (1e307, 1.7e308)),
              ((1e-320, 1e-310), (1e-320, 1e-310)), ((0.4, 0.5), (1.0, 1.1))],
    "hypot": [((-1.0, 1.0), (-1.0, 1.0)), ((1e-300, 1e300), (1e-300, 1e300)), ((1e307, 1e308), (1e307, 1e308)),
              ((1e-320, 1e-310), (1e-320, 1e-310))],
    "pow": [((0.1, 10.0), (-300.0, 300.0)), ((1e-5, 1e5), (-60.0, 60.0)), ((0.9, 1.1), (-7000.0, 7000.0)), ((1e-320, 1e-300), (-1.0, 1.0)),
            ((0.1, 10.0), (-20.0, 20.0)), ((1.0, 2.0), (-1.0, 1.0)), ((0.999999, 1.000001), (1e8, 1e9)), ((1e-300, 1e300), (-1.0, 1.0))],
}  # fmt: skip
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 3.4e38, 1e300, -1e300, np.inf, -np.inf, np.nan, np.finfo(float).max,
    -np.finfo(float).max, 5e-324, -5e-324, 1e-310, -1e-310, 2.3e-308, 1e-38, 1e-45, -1e-45, 709.78, 709.79, 710.4, 710.5, -708.4, -745.1,
    -745.2, 88.72, 88.73, 89.4, 89.5, -103.9, -104.1, 1e22, -1e22, 2.0**53, 2.0**53 + 2, 1024.0, -1074.0, -1075.0, -1023.5,
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of these tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XPGRAD_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def own() -> Machine:
    machine = Machine(libmvec=False)
    if not machine.target.own_functions:
        pytest.skip("a processor without fused multiply-adds")
    return machine


def points(interval: tuple[float, float], dtype: str, count: int, rng: np.random.Generator) -> Any:
    """Return numbers of an interval."""
    low, high = interval
    if low * high <= 0:
        return rng.uniform(low, high, count).astype(dtype)
    sign = np.sign(low)
    limits = np.finfo(dtype)
    a, b = np.clip(sorted(np.abs(interval)), limits.smallest_subnormal, limits.max)
    with np.errstate(over="ignore"):
        return (sign * np.clip(np.exp(rng.uniform(np.log(a), np.log(b), count)), a, b)).astype(dtype)


def numpy_name(name: str) -> str:
    return "power" if name == "pow" else re.sub("^a(?!rc)", "arc", name)


def error(name: str, found: Any, arrays: list[Any]) -> float:
    """Return the largest error in units in the last place; where the result is beyond the range or subnormal, of the type's least unit."""
    dtype = found.dtype
    if np.finfo(np.longdouble).eps < 1e-18:
        wanted = getattr(np, numpy_name(name))(*(a.astype(np.longdouble) for a in arrays))
    else:
        mpmath = pytest.importorskip("mpmath", reason="the reference where long doubles are no longer than doubles")
        function = getattr(mpmath, {"pow": "power"}.get(name, name))
        found, arrays = found[:500], [a[:500] for a in arrays]
        with mpmath.workdps(60):
            exact = [function(*map(mpmath.mpf, map(float, xs))) for xs in zip(*arrays)]
            rounded = np.array([float(w) for w in exact])
            rest = np.array([float(w - mpmath.mpf(r)) if np.isfinite(r) else 0.0 for w, r in zip(exact, rounded)])
        return float(np.nanmax(np.abs((found - rounded) - rest) / np.spacing(np.abs(rounded.astype(dtype))), initial=0.0))
    near = wanted.astype(dtype)
    inside = np.isfinite(near) & np.isfinite(found)
    outside = ~inside & (np.isfinite(near) | np.isfinite(found))  # one rounds to infinity: the other is the largest number
    assert np.all(np.abs(np.where(np.isfinite(near), near, found)[outside]) >= np.finfo(dtype).max * (1 - 4 * np.finfo(dtype).eps))
    np.testing.assert_array_equal(np.isnan(near), np.isnan(found))
    return float(np.max(np.abs(found[inside] - wanted[inside]) / np.spacing(np.abs(near[inside])), initial=0.0))


def run(machine: Machine, name: str, *arrays: Any) -> Any:
    """Return the results of machine code for one elementwise kernel."""
    b = Builder()
    b.outputs = [b(name, *(b.input(a) for a in arrays))]
    with np.errstate(all="ignore"):
        (found,) = machine_function(lower(b.program(*b.outputs)), machine, lambda *_: pytest.fail("not in machine code"))(*arrays)
    return found


def documented(name: str, dtype: str) -> float:
    """Return the error that the page on compiling promises."""
    text = (ROOT / "docs" / "compiling.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| `{name}` +\| ([\d.]+) +\| ([\d.]+) +\|$", text, re.MULTILINE)
    return float(row[DTYPES.index(dtype)])


def largest_error(machine: Machine, name: str, dtype: str, count: int) -> float:
    """Return the largest error over all intervals of a function."""
    found = []
    for k, intervals in enumerate(PAIRS[name] if name in TWO else [(i,) for i in INTERVALS.get(name, EVERY)]):
        rng = np.random.default_rng(k)
        arrays = [points(i, dtype, count, rng) for i in intervals]
        found.append(error(name, run(machine, name, *arrays), arrays))
    return max(found)


@pytest.mark.slow(one_in=5)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ALL)
def test_errors_are_at_most_the_documented_ones(own: Machine, name: str, dtype: str) -> None:
    assert largest_error(own, name, dtype, 20_000) <= documented(name, dtype) <= 4.0


@pytest.mark.slow(one_in=9)
@pytest.mark.parametrize("name", [name for name in ALL if name not in TWO])
def test_errors_of_a_million_single_numbers(own: Machine, name: str) -> None:
    """All exponents and signs evenly."""
    patterns = np.random.default_rng(0).integers(0, 2**32, 1_000_000, np.uint32)
    x = patterns.view(np.float32)
    x = x[np.isfinite(x)]
    assert error(name, run(own, name, x), [x]) <= documented(name, "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ALL)
def test_special_values(own: Machine, name: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        values = np.array(SPECIAL).astype(dtype)
    arrays = [v.ravel() for v in np.meshgrid(values, values)] if name in TWO else [values]
    b = Builder()
    b.outputs = [b(name, *(b.input(a) for a in arrays))]
    with np.errstate(all="ignore"):
        (wanted,) = evaluate_program(b.program(*b.outputs), BACKEND, b.raws())
    found = run(own, name, *arrays)
    eps, least = 4 * np.finfo(dtype).eps, np.finfo(dtype).smallest_subnormal
    np.testing.assert_allclose(found, wanted, rtol=eps, atol=least, err_msg=name)
    np.testing.assert_array_equal(np.signbit(found) & ~np.isnan(found), np.signbit(wanted) & ~np.isnan(wanted))


def test_exact_results(own: Machine) -> None:
    """Powers of two and ten, and small powers of integers, have exact logarithms and powers."""
    n = np.arange(-1074, 1024)
    np.testing.assert_array_equal(run(own, "log2", np.ldexp(1.0, n)), n)
    np.testing.assert_array_equal(run(own, "log10", np.array([10.0**k for k in range(23)])), np.arange(23))
    np.testing.assert_array_equal(run(own, "pow", np.full(n.shape, 2.0), n.astype(float)), np.ldexp(1.0, n))
    x, y = (v.ravel() for v in np.meshgrid(np.arange(-12.0, 13), np.arange(0.0, 14)))
    np.testing.assert_array_equal(run(own, "pow", x, y), [float(int(a) ** int(b)) for a, b in zip(x, y)])


def test_multiples_of_pi(own: Machine) -> None:
    """The numbers nearest to multiples of pi/2 lose all their digits in a reduction that is not exact."""
    k = np.concatenate([np.arange(1.0, 10_000), np.rint(np.exp(np.random.default_rng(0).uniform(9, 600, 20_000)))])
    x = np.concatenate([k * (np.pi / 2), [6381956970095103.0 * 2.0**797, 5.319372648326541e255, 2.0**36, np.nextafter(2.0**36, 0)]])
    for name in ("sin", "cos", "tan"):
        assert error(name, run(own, name, x), [x]) <= documented(name, "float64")


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ALL)
def test_results_do_not_depend_on_the_place_in_an_array(own: Machine, name: str, dtype: str) -> None:
    """The rest of a loop computes number by number what vectors compute together."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2 ** (64 if dtype == "float64" else 32), 2 * 301, np.uint64 if dtype == "float64" else np.uint32)
    arrays = list(np.where(np.arange(602) % 2, rng.uniform(-2, 2, 602).astype(dtype), bits.view(dtype)).reshape(2, 301))[
        : 1 + (name in TWO)
    ]
    whole = run(own, name, *arrays)
    for start, size in ((0, 1), (7, 3), (1, 64), (290, 11), (5, 33)):
        part = run(own, name, *(np.array(a[start : start + size]) for a in arrays))
        np.testing.assert_array_equal(part, whole[start : start + size])


@pytest.mark.parametrize("name", ALL)
def test_results_do_not_depend_on_the_width_of_vectors(own: Machine, name: str) -> None:
    """Vectors of 128 bits, and those of an older processor, compute the same bits."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**64, 2 * 10_001, np.uint64)
    arrays = list(np.where(np.arange(20_002) % 2, rng.uniform(-2, 2, 20_002), bits.view(float)).reshape(2, -1))[: 1 + (name in TWO)]
    wanted = run(own, name, *arrays)
    narrow = Machine(libmvec=False)
    narrow.target = replace(narrow.target, vector_bits=128)
    older = Machine(libmvec=False)
    if narrow.features and platform.machine() in ("x86_64", "AMD64") and "+avx2" in narrow.features:
        older.processor, older.features, older.target = "haswell", "", replace(older.target, vector_bits=256)
        older.compiler = older.new_compiler()
    for machine in (narrow, older):
        np.testing.assert_array_equal(run(machine, name, *arrays), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ALL)
def test_loops_become_vectors(own: Machine, name: str, dtype: str) -> None:
    b = Builder()
    b.outputs = [b(name, *(b.input(np.ones(1000, dtype)) for _ in range(1 + (name in TWO))))]
    lowered = lower(b.program(*b.outputs))
    text = str(own.optimize(region_kernel(lowered, lowered.regions[0], own.target).text.replace("@NAME", "@k")))
    body = text[text.index("@k.body(") :]
    assert len(re.findall(r"= .*<\d+ x (?:double|float)>", body)) >= 10
    assert f"@{name}" not in text  # nothing of C's library


# -- polynomials ---------------------------------------------------------------------------------------------------------------


def polynomials(mp: Any) -> dict[str, tuple[Callable[[Any], Any], Any, Any]]:
    """Return what each polynomial approximates, and on which interval."""
    low, high = -mp.log(2) * mp.mpf("0.505"), mp.log(2) * mp.mpf("0.505")
    sqrt = mp.sqrt
    logs = mp.mpf("0.0296")  # ((sqrt(2) - 1) / (sqrt(2) + 1))**2, and a little more
    return {
        "asin": (lambda z: (mp.asin(sqrt(z)) / sqrt(z) - 1) / z, 0, mp.mpf("0.25")),
        "atan": (lambda z: (mp.atan(sqrt(z)) / sqrt(z) - 1) / z, 0, mp.mpf("0.1717")),
        "cos": (lambda z: (mp.cos(sqrt(z)) - 1 + z / 2) / z**2, 0, mp.mpf("0.63")),
        "exp": (lambda r: mp.hyp1f1(1, 3, r) / 2, low, high),
        "log": (lambda z: (2 * mp.atanh(sqrt(z)) / sqrt(z) - 2) / z, 0, logs),
        "pow": (lambda z: (mp.atanh(sqrt(z)) / sqrt(z) - 1 - z / 3) / z**2, 0, logs),
        "sin": (lambda z: (mp.sin(sqrt(z)) / sqrt(z) - 1) / z, 0, mp.mpf("0.63")),
    }


@pytest.mark.parametrize("name", sorted(functions.COEFFICIENTS))
def test_coefficients_interpolate_the_functions(name: str) -> None:
    mp = pytest.importorskip("mpmath", reason="it computes the coefficients")
    with mp.workdps(60):
        function, low, high = polynomials(mp)[name]
        for coefficients in functions.COEFFICIENTS[name]:
            n = len(coefficients)
            zeros = [(low + high) / 2 + (high - low) / 2 * mp.cos((2 * j + 1) * mp.pi / (2 * n)) for j in range(n)]
            powers = mp.matrix([[x**j for j in range(n)] for x in zeros])
            assert [float(c) for c in mp.lu_solve(powers, mp.matrix([function(x) for x in zeros]))] == coefficients


def test_the_digits_of_two_over_pi() -> None:
    mp = pytest.importorskip("mpmath", reason="it computes the digits")
    count = len(functions.DIGITS) - 1
    with mp.workdps(400):
        digits = int(mp.floor(mp.ldexp(2 / mp.pi, 64 * count)))
    assert tuple(functions.DIGITS) == (0, *((digits >> 64 * (count - 1 - k)) % 2**64 for k in range(count)))


@pytest.mark.slow
def test_random_programs(own: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions in one loop with others, in reductions, and of numbers alone."""
    monkeypatch.setattr(_native, "machine", lambda: own)
    for seed in range(40):
        check(random_program(Random(seed), 15), exact=False)


def test_every_function_is_here() -> None:
    assert all(functions.has_function(SCALARS[name].code) for name in ALL)
