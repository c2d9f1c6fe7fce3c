"""Programs as C compute what NumPy does; exported sources compile without warnings, test themselves, and notice wrong results."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from programs import building
from programs.building import (
    BACKEND,
    CLOSE,
    EXACT,
    Builder,
    assert_same,
    assert_same_complex,
    assert_same_numbers,
    complex_array,
    random_program,
    variables,
)  # fmt: skip
from programs.test_export import CASES
from xpgrad.__main__ import main
from xpgrad.programs.c import compiler as compilers
from xpgrad.programs.c.c_text import c_source
from xpgrad.programs.c.numbers import number_text
from xpgrad.programs.evaluation import evaluate_program
from xpgrad.programs.lowering import lower
from xpgrad.programs.regions import Unsupported
from xpgrad_numpy._c import c_function, c_text
from xpgrad_numpy._c_export import elements_text
from xpgrad_numpy._c_testing import test_text as self_test

if shutil.which("cc") is None:
    pytest.skip("there is no C compiler `cc`", allow_module_level=True)

pytestmark = [pytest.mark.slow(one_in=3), pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::numpy.exceptions.ComplexWarning")]

WARNINGS = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wmissing-prototypes", "-Werror"]
SANITIZERS = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
#: What has no C: the rest of the cases of `test_export.py` does.
REFUSED = {"an inverse": "`linalg.inv`: no C is known"}
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1e308, -1e308, 1e22, 2.0, 3.0]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of this test alone."""
    monkeypatch.setenv("XPGRAD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fresh() -> Iterator[None]:
    """No compiler has been found, and nothing is loaded."""
    compilers.compiler.cache_clear()
    yield
    compilers.compiler.cache_clear()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler optimises little, and warnings are errors."""
    code = compilers.compiler()
    monkeypatch.setattr(code, "command", [*(c for c in code.command if c != "-O3"), "-O1", *WARNINGS])


def check(b: Builder, *, exact: bool) -> None:
    """Compare C for a program with its plain evaluation."""
    program = b.program(*b.outputs)
    with np.errstate(all="ignore"):
        wanted = evaluate_program(program, BACKEND, b.raws())
        before = [np.array(x) for x in b.raws()]
        try:
            found = c_function(program, BACKEND)(*b.raws())
            for x, y in zip(found, wanted, strict=True):
                compare(b, np.asarray(x), np.asarray(y), exact)
        except Exception as exc:
            exc.add_note(f"{program}\n{c_text(program, BACKEND)}")
            raise
    for x, old in zip(b.raws(), before):
        np.testing.assert_array_equal(x, old)
    results = [x for x in found if isinstance(x, np.ndarray)]
    others = [x for x in (*b.raws(), *program.constants.values()) if isinstance(x, np.ndarray)]
    assert not any(np.may_share_memory(x, y) for i, x in enumerate(results) for y in [*results[:i], *others])


def compare(b: Builder, x: Any, y: Any, exact: bool) -> None:
    program = b.program(*b.outputs)
    if exact:
        assert_same(x, y, program)
        return
    assert (x.dtype, x.shape) == (y.dtype, y.shape)
    kinds = [v.dtype.name for v in variables(program)]
    eps = 2000 * np.finfo("f2" if "float16" in kinds else "f4" if "float32" in kinds else "f8").eps if x.dtype.kind in "fc" else 0
    finite = [np.abs(v[np.isfinite(v)]).max(initial=1.0) for v in map(np.asarray, b.values.values()) if v.dtype.kind in "fc"]
    np.testing.assert_allclose(x, y, rtol=eps, atol=eps * max(finite, default=1.0))


def run(name: str, *arrays: Any) -> Any:
    """Return the results of C for one kernel, and NumPy's."""
    b = Builder()
    b.outputs = [b(name, *(b.input(a) for a in arrays))]
    with np.errstate(all="ignore"):
        return c_function(b.program(*b.outputs), BACKEND)(*arrays)[0], evaluate_program(b.program(*b.outputs), BACKEND, b.raws())[0]


# -- the emitter -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", range(5))
def test_random_programs_of_arithmetic(block: int, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits, but for the order of sums; XPGRAD_PROGRAMS=20000 draws more."""
    monkeypatch.setattr(building, "_UNARY", [name for name in building._UNARY if name not in ("sin", "exp", "tanh")])
    monkeypatch.setattr(building, "_BINARY", [name for name in building._BINARY if name != "hypot"])
    for k in range(int(os.environ.get("XPGRAD_PROGRAMS", "100")) // 20):
        random = Random(200_000 * block + k)
        check(random_program(random, random.randint(1, 25)), exact=True)


@pytest.mark.parametrize("block", range(5))
def test_random_programs_with_functions(block: int, quick: None) -> None:
    for k in range(int(os.environ.get("XPGRAD_PROGRAMS", "100")) // 20):
        random = Random(200_000 * block + 100_000 + k)
        check(random_program(random, random.randint(1, 25)), exact=False)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_special_values(dtype: str) -> None:
    """Infinities, nan, subnormal numbers and zeros of either sign give what NumPy gives."""
    values = np.array(SPECIAL).astype(dtype)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    inexact = ["acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p", "log2", "sin",
               "sinh", "tan", "tanh"]  # fmt: skip
    one = ["abs", "ceil", "floor", "isfinite", "isinf", "isnan", "negative", "reciprocal", "round", "sign", "signbit", "sqrt", "square",
           "trunc"]  # fmt: skip
    two = ["add", "atan2", "copysign", "divide", "equal", "greater", "greater_equal", "hypot", "less", "less_equal", "maximum", "minimum",
           "multiply", "not_equal", "pow", "subtract"]  # fmt: skip
    b = Builder()
    u, v = b.input(x), b.input(y)
    names = [*inexact, *one, *two]
    b.outputs = [b(name, *((u, v) if name in two else (u,))) for name in names]
    for exponent in (1.0, 2.0, 3.0, 0.5, -1.0):
        b.outputs.append(b("pow", u, exponent))
        names.append("pow")
    b.outputs.append(b("share", u, u, v))
    b.outputs.append(b("keep", b("less", u, v), u))
    program = b.program(*b.outputs)
    with np.errstate(all="ignore"):
        pairs = zip([*names, "share", "keep"], c_function(program, BACKEND)(x, y), evaluate_program(program, BACKEND, [x, y]))
    for name, found, wanted in pairs:
        assert_same_numbers(found, wanted, name, exact=name not in (*inexact, "atan2", "hypot", "pow"))


@pytest.mark.parametrize("dtype", ["int64", "int32", "bool"])
def test_integers_and_bools(dtype: str) -> None:
    info = None if dtype == "bool" else np.iinfo(dtype)
    values = np.array([0, 1] if info is None else [0, 1, -1, 7, info.min, info.max, info.min + 1], dtype)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    two = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "bitwise_and", "bitwise_or", "bitwise_xor"]
    two += ["logical_and", "logical_or", "logical_xor"] if info is None else ["add", "subtract", "multiply", "maximum", "minimum"]
    one = ["logical_not"] if info is None else ["abs", "negative", "square"]
    b = Builder()
    u, v = b.input(x), b.input(y)
    b.outputs = [b(name, u, v) for name in two] + [b(name, u) for name in one]
    b.outputs += [b("to_dtype", u, building.DTYPES[name]) for name in ("float64", "float32", "int64", "int32", "bool")]
    program = b.program(*b.outputs)
    for found, wanted in zip(c_function(program, BACKEND)(x, y), evaluate_program(program, BACKEND, [x, y]), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("value", [0.1, -0.0, 1e-45, 3.4e38, 1e39, -np.inf, np.nan, 16777217.0, 1e300, 5e-324, 1.0])
def test_numbers_are_printed_exactly(value: float) -> None:
    for kind in (np.float64, np.float32):
        text = number_text(value, kind.__name__)
        found = kind(text.replace("INFINITY", "inf").replace("NAN", "nan") if "N" in text else text.rstrip("f"))
        wanted = kind(value)
        np.testing.assert_array_equal(found, wanted)
        assert np.signbit(found) == np.signbit(wanted)
        assert text.endswith("f") == (kind is np.float32 and bool(np.isfinite(wanted)))
    assert [number_text(x, "int64") for x in (-(2**63), 2**40, -5)] == ["INT64_MIN", "INT64_C(1099511627776)", "-5"]


@pytest.mark.parametrize("shape", [(70_000,), (300, 300), (16, 17, 300), (3, 70_000)])
def test_sums_of_large_arrays(shape: tuple[int, ...]) -> None:
    """Loops in chunks and in pieces."""
    b = Builder()
    x = b.input(np.random.default_rng(0).normal(size=shape))
    y = b("multiply", x, x)
    b.outputs = [y]
    for axes in (None, *[(a,) for a in range(len(shape))]):
        for name in ("reduce_sum", "reduce_max", "reduce_mean"):
            b.outputs.append(b("add", b(name, y, axes, True), x))
    check(b, exact=False)


SHAPES = [((4, 3), (3, 5)), ((3,), (3, 5)), ((4, 3), (3,)), ((3,), (3,)), ((2, 4, 3), (3, 5)), ((2, 1, 4, 3), (6, 3, 5)),
          ((70, 130), (130, 140)), ((1, 9), (9, 1))]  # fmt: skip


def a_product(shapes: Any, dtype: str) -> Builder:
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
    return b


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products(shapes: Any, dtype: str, quick: None) -> None:
    check(a_product(shapes, dtype), exact=False)


def test_what_c_lacks_is_numpy_between_its_parts() -> None:
    b = Builder()
    x = b.input(np.linspace(0.1, 2.0, 12).reshape(3, 4))
    y = b("multiply", b("sin", x), x)
    z = b("cumulative_sum", y, axis=1)
    b.outputs = [b("multiply", b("add", z, y), 2.0), z]
    text = c_text(b.program(*b.outputs), BACKEND)
    assert "np.cumulative_sum(" in text
    assert text.count("static void loop_1(") == 2
    check(b, exact=False)


def test_arrays_in_any_order_and_of_another_shape() -> None:
    b = Builder()
    x = b.input(np.arange(12.0).reshape(3, 4))
    b.outputs = [b("multiply", x, x), b("reduce_sum", x, None, False)]
    function = c_function(b.program(*b.outputs), BACKEND)
    for array in (np.asfortranarray(b.values[x]), b.values[x].astype(">f8"), b.values[x][::-1], b.values[x].view(np.matrix)):
        product, total = function(array)
        np.testing.assert_array_equal(product, np.asarray(array) ** 2)
        assert isinstance(total, np.float64)
    for wrong in (np.ones((3, 5)), np.ones((4, 3)), np.ones(12), np.float64(1.0)):
        with pytest.raises(ValueError, match="shape"):
            function(wrong)


@pytest.mark.parametrize("bad", [7, -8, 2**62, -(2**62)])
def test_indices_out_of_bounds_raise(bad: int) -> None:
    f = xp.compile(lambda x, i: xp.sum(x[i] * x[i]), emitter="c")
    x = xp.tensor(np.arange(7.0), requires_grad=True)
    y = f(x, xp.asarray([0, 6, -7]))
    y.backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 12.0]
    with pytest.raises(IndexError, match="out of bounds"):
        f(x, xp.asarray([0, bad, 1]))


def test_additions_to_bools_are_numpys() -> None:
    """True plus True is True."""
    b = Builder()
    x, key = b.input(np.array([True, False, False])), b.constant(np.array([0, 1, 1]))
    b.outputs = [b("scatter_into", b("copy", x), b("logical_not", b("logical_not", b.input(np.ones(3, bool)))), (key,))]
    b.outputs.append(b("add_at", x, x, (slice(0, 3, 1),)))
    check(b, exact=True)


# -- the compiler ------------------------------------------------------------------------------------------------------------


def a_program() -> Builder:
    b = Builder()
    x = b.input(np.arange(5.0))
    b.outputs = [b("multiply", b("add", x, 1.5), x)]
    return b


def test_the_emitter_has_a_name_and_shows_its_text() -> None:
    x = xp.asarray([1.0, 2.0])
    f = xp.compile(lambda x: x * x + 1.0, emitter="c")
    assert f(x).tolist() == [2.0, 5.0]
    assert "[i] = x[i] * x[i] + 1.0;" in f.source(x)
    assert "c" in xp.registry.emitter_names()


def test_without_a_compiler_an_error_says_what_to_install(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(ImportError, match=r"there is no 'no-such-compiler'; install GCC or Clang, for example with `apt install gcc`"):
        xp.compile(lambda x: x + 1.0, emitter="c")(xp.asarray([1.0]))


def test_a_compiler_that_fails_raises(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("false") is None:
        pytest.skip("there is no program `false`")
    monkeypatch.setenv("CC", "false")
    with pytest.raises(RuntimeError, match=r"the C compiler .*false failed; use `emitter='numpy'`"):
        xp.compile(lambda x: x + 1.0, emitter="c")(xp.asarray([1.0]))


def test_libraries_are_kept_for_the_next_process(folder: Path, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    b = a_program()
    c_function(b.program(*b.outputs), BACKEND)
    assert len(list(folder.iterdir())) == 1
    compilers.compiler.cache_clear()
    monkeypatch.setattr(compilers.Compiler, "compile", lambda *args: pytest.fail("compiled again"))
    check(b, exact=True)


def test_the_text_is_the_same_in_every_run() -> None:
    def text() -> str:
        b = random_program(Random(5), 20)
        return c_text(b.program(*b.outputs), BACKEND)

    assert text() == text()


# -- exported sources --------------------------------------------------------------------------------------------------------


def build(text: str, folder: Path, *flags: str) -> Path:
    """Compile a source without warnings; return the program or library."""
    libraries = [flag for flag in flags if flag.startswith("-l")]
    source, made = folder / "made.c", folder / f"made{len(list(folder.iterdir()))}"
    source.write_text(text, encoding="utf-8")
    done = subprocess.run(
        ["cc", *WARNINGS, *flags, str(source), "-o", str(made), *libraries, "-lm"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stderr}\n{text}"
    return made


def outcome(text: str, folder: Path, *flags: str) -> tuple[int, str]:
    """Return the status of a source's test, and what it prints."""
    done = subprocess.run([str(build(text, folder, "-DXPGRAD_MAIN", *flags))], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@functools.cache
def has_sanitizers() -> bool:
    """Return whether programs with the sanitizers can be compiled and run."""
    command = 'cc -x c - -fsanitize=address,undefined -o "$0" && "$0"; code=$?; rm -f "$0"; exit $code'
    place = Path(os.environ.get("TMPDIR", "/tmp")) / f"xpgrad_sanitizers_{os.getpid()}"
    return (
        subprocess.run(["sh", "-c", command, str(place)], input=b"int main(void){return 0;}", capture_output=True, check=False).returncode
        == 0
    )


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("name", [name for name in CASES if name not in REFUSED])
def test_sources_compile_and_test_themselves(name: str, tmp_path: Path) -> None:
    function, args = CASES[name]
    text = xp.export(function, *args, path=tmp_path / "made.c", target="c")
    assert text == (tmp_path / "made.c").read_text(encoding="utf-8")
    assert '#include "' not in text
    code, printed = outcome(text, tmp_path, "-O2")
    assert code == 0, printed + text
    assert printed.startswith("ok: ")
    assert len(printed.splitlines()) == 1
    header = (tmp_path / "made.h").read_text(encoding="utf-8")
    program = '#include "made.h"\n#include "made.h"\nint main(void) { return 0; }\n'
    build(program, tmp_path, "-c")
    if shutil.which("c++"):
        subprocess.run(["c++", "-Wall", "-Werror", "-fsyntax-only", "-x", "c++", str(tmp_path / "made.h")], check=True)
    assert re.search(r"#ifndef (XPGRAD_MADE_H)\n#define \1\n", header)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_c_is_refused(name: str) -> None:
    function, args = CASES[name]
    with pytest.raises(ValueError, match=REFUSED[name]):
        xp.export(function, *args, path=None, target="c")


def test_constants_may_be_large_if_they_are_equal_numbers(tmp_path: Path) -> None:
    x = np.linspace(0.0, 1.0, 5000)
    text = xp.export(lambda x: xp.sum(x * xp.asarray(np.full(5000, 2.5))), x, path=None, target="c")
    assert outcome(text, tmp_path) == (0, "ok: 2 results as stored, 1 gradient as by central differences\n")
    with pytest.raises(ValueError, match=r"shape \(5000,\).*pass it as an argument"):
        xp.export(lambda y: xp.sum(y * xp.asarray(x)), x, path=None, target="c")


def stored(text: str) -> list[str]:
    """Return the names of the stored results."""
    return re.findall(r"static const \w+ (want_\w+)\[", text)


def test_a_wrong_stored_value_is_noticed(tmp_path: Path) -> None:
    function, args = CASES["mean of squares"]
    text = xp.export(function, *args, path=None, target="c")
    assert stored(text) == ["want_function", "want_grad_w", "want_grad_x"]
    for name in stored(text):
        numbers = re.search(rf"{name}\[\d+\] = {{\s*([-\d.e]+)", text)
        assert numbers
        wrong = text[: numbers.start(1)] + repr(float(numbers[1]) * 1.00001) + text[numbers.end(1) :]
        code, printed = outcome(wrong, tmp_path)
        assert code == 1
        assert printed.startswith(f"FAILED: element 0 of {name.removeprefix('want_')} is ")


def test_a_gradient_that_disagrees_with_differences_is_noticed(tmp_path: Path) -> None:
    function, args = CASES["mean of squares"]
    text = xp.export(function, *args, path=None, target="c")
    for name in ("grad_w", "grad_x"):
        wrong = text.replace(f"(double)saved_{name}[i]", f"1.001 * (double)saved_{name}[i]")
        assert wrong != text
        code, printed = outcome(wrong, tmp_path)
        assert code == 1
        assert f"{name}, along a direction" in printed


def test_a_source_computes_what_the_function_does(tmp_path: Path) -> None:
    function, args = CASES["writes"]
    library = ctypes.CDLL(str(build(xp.export(function, *args, path=None, target="c"), tmp_path, "-shared", "-fPIC", "-O2")))
    x = xp.tensor(args[0], requires_grad=True)
    y = function(x)
    y.backward()
    value, gradient = np.empty(()), np.empty(6)
    assert library.function_and_gradients(*(ctypes.c_void_p(a.ctypes.data) for a in (args[0], value, gradient))) == 0
    np.testing.assert_allclose(value, y.item(), rtol=1e-14)
    np.testing.assert_allclose(gradient, x.grad.numpy(), rtol=1e-14)


def test_one_index_may_be_a_constant(tmp_path: Path) -> None:
    """It is a number in the text."""
    b = Builder()
    x = b.input(np.arange(3.0))
    b.outputs = [b("gather", x, (b.constant(np.array([-1])),))]
    code, printed = outcome(program_text(b), tmp_path)
    assert code == 0, printed


def test_a_bad_index_is_a_status(tmp_path: Path) -> None:
    function, args = CASES["rows"]
    library = ctypes.CDLL(str(build(xp.export(function, *args, path=None, target="c"), tmp_path, "-shared", "-fPIC")))
    for index, status in ((4, 0), (-5, 0), (5, 1), (-6, 1), (2**62, 1)):
        x, key = args[0].copy(), np.array([0, 3, index, -1])
        results = [np.full((), 7.0), np.full((5, 2), 7.0)]
        assert library.function_and_gradients(*(ctypes.c_void_p(a.ctypes.data) for a in (x, key, *results))) == status
        assert all((r == 7.0).all() for r in results) == bool(status)


def test_names_that_c_cannot_have(tmp_path: Path) -> None:
    def free(double: Any, y0: Any, matmul: Any, i: Any, NULL: Any, t1: Any, linux: Any, σ: Any, lambda_: Any, result: Any) -> Any:
        exp = double * y0 + xp.matmul(xp.reshape(matmul, (1, 3)), xp.reshape(i, (3, 1)))[0, 0]
        class_ = exp * NULL - t1 * linux * σ
        this = xp.exp(class_ / 10) + lambda_
        return xp.sum(this * result)

    rng = np.random.default_rng(0)
    text = xp.export(free, *(rng.uniform(size=3) for _ in range(10)), path=tmp_path / "free.c", target="c")
    assert outcome(text, tmp_path)[0] == 0
    if shutil.which("c++"):
        subprocess.run(["c++", "-Wall", "-Werror", "-fsyntax-only", "-x", "c++", str(tmp_path / "free.h")], check=True)

    def sin(x: Any) -> Any:
        return x * 2  # a comment's end */ and a trigraph ??/

    assert "int sin_2(" in (text := xp.export(sin, np.ones(3), path=None, target="c"))
    assert outcome(text, tmp_path)[0] == 0


#: A BLAS that checks the order of its arguments, and multiplies.
_BLAS = """
#ifndef CBLAS_H
#define CBLAS_H
#include <assert.h>
enum order { CblasRowMajor = 101 };
enum transpose { CblasNoTrans = 111, CblasTrans = 112 };
#define GEMM(name, TYPE) \\
static inline void name(enum order o, enum transpose ta, enum transpose tb, int m, int n, int k, TYPE alpha, const TYPE *a, int lda, \\
    const TYPE *b, int ldb, TYPE beta, TYPE *c, int ldc) \\
{ \\
    assert(o == CblasRowMajor && lda >= (ta == CblasTrans ? m : k) && ldb >= (tb == CblasTrans ? k : n) && ldc >= n); \\
    for (int i = 0; i < m; i++) \\
        for (int j = 0; j < n; j++) { \\
            TYPE sum = 0; \\
            for (int p = 0; p < k; p++) \\
                sum += (ta == CblasTrans ? a[p * lda + i] : a[i * lda + p]) * (tb == CblasTrans ? b[j * ldb + p] : b[p * ldb + j]); \\
            c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]); \\
        } \\
}
GEMM(cblas_dgemm, double)
GEMM(cblas_sgemm, float)
#endif
"""


def program_text(b: Builder) -> str:
    """Return a program as a source with a test; it raises Unsupported if the program is not all C."""
    program = b.program(*b.outputs)
    lowered = lower(program)
    constants = {v: elements_text(np.asarray(raw), v.dtype.name) for v, raw in program.constants.items()}
    source = c_source(lowered, "run", None, constants)
    return f"{compilers.preamble()}\n{source.prototype};\n{source.text}\n{self_test(program, source, 'run', b.raws(), [], BACKEND)}"


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_numbers(dtype: str) -> None:
    """NumPy's special values, for arguments and constants."""
    every = complex_array(*(v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL)), dtype)
    x, y = (v.ravel() for v in np.meshgrid(every, every))
    b = Builder()
    given, other = b.input(x), b.constant(y)
    names = EXACT | CLOSE
    b.outputs = [b(name, *[given, other][:count]) for name, count in names.items()]
    program = b.program(*b.outputs)
    lower(program)  # all of it is C
    with np.errstate(all="ignore"):
        for name, found, wanted in zip(names, c_function(program, BACKEND)(*b.raws()), evaluate_program(program, BACKEND, b.raws())):
            assert_same_complex(found, wanted, name, 4 if name in CLOSE else 0)
    assert "for vectors, which have larger errors" in c_text(program, BACKEND)


def test_complex_source_has_the_users_lines_and_names() -> None:
    def loss(wave: Any) -> Any:
        turned = wave * 1j
        return xp.sum(xp.abs(turned + wave) ** 2)

    text = xp.compile(loss, emitter="c").source(xp.tensor(np.ones(3) * (1 + 2j), requires_grad=True))  # type: ignore[attr-defined]
    assert "turned = wave * 1j" in text
    assert "const double *wave" in text


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_by_blas(shapes: Any, dtype: str, tmp_path: Path) -> None:
    (tmp_path / "cblas.h").write_text(_BLAS, encoding="utf-8")
    code, printed = outcome(program_text(a_product(shapes, dtype)), tmp_path, "-DXPGRAD_BLAS", "-I", str(tmp_path))
    assert code == 0, printed


def test_openmp_gives_the_same_results(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=70_000)
    text = xp.export(lambda x: xp.sum(xp.sin(x) * x), x, path=None, target="c")
    try:
        code, printed = outcome(text, tmp_path, "-O2", "-fopenmp")
    except AssertionError:
        pytest.skip("the compiler has no OpenMP")
    assert "omp parallel for" in text
    assert code == 0, printed


def test_functions_of_vectors(tmp_path: Path) -> None:
    if "-DXPGRAD_LIBMVEC" not in compilers.compiler().command:
        pytest.skip("there is no libmvec, or the compiler does not call it")
    function, args = CASES["blocks"]
    text = xp.export(function, *args, path=None, target="c")
    assert '__attribute__((simd("notinbranch"))) double sin(double);' in text
    code, printed = outcome(text, tmp_path, "-O3", "-fno-math-errno", "-DXPGRAD_LIBMVEC", "-lmvec")
    assert code == 0, printed


@pytest.mark.parametrize("name", ["mean of squares", "rows", "writes", "blocks"])
def test_sources_with_sanitizers(name: str, tmp_path: Path) -> None:
    if not has_sanitizers():
        pytest.skip("the compiler has no sanitizers")
    function, args = CASES[name]
    code, printed = outcome(xp.export(function, *args, path=None, target="c"), tmp_path, *SANITIZERS)
    assert code == 0, printed


@pytest.mark.parametrize("block", range(5))
def test_random_programs_with_sanitizers(block: int, tmp_path: Path) -> None:
    """No program reads or writes outside its arrays, or does what C leaves undefined; XPGRAD_PROGRAMS=20000 draws more."""
    if not has_sanitizers():
        pytest.skip("the compiler has no sanitizers")
    count = k = 0
    while count < int(os.environ.get("XPGRAD_PROGRAMS", "100")) // 50:
        k += 1
        random = Random(200_000 * block + 150_000 + k)
        b = random_program(random, random.randint(4, 15))
        try:
            text = program_text(b)
        except Unsupported:
            continue
        count += 1
        code, printed = outcome(text, tmp_path, *SANITIZERS)
        assert code == 0, f"{printed}\n{b.program(*b.outputs)}\n{text}"


def test_the_command_writes_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (tmp_path / "exported_by_a_test_of_c.py").write_text(
        "import xpgrad as xp\ndef loss(w, x, p=2):\n    return xp.mean(xp.abs(x @ w) ** p)\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["export", "exported_by_a_test_of_c:loss", "float64[3]", "float64[5,3]", "3", "--target", "c"]) == 0
    assert "`cc -DXPGRAD_MAIN gradients.c -lm && ./a.out` compares" in capsys.readouterr().out
    text = Path("gradients.c").read_text(encoding="utf-8")
    assert "xpgrad export exported_by_a_test_of_c:loss 'float64[3]' 'float64[5,3]' 3 --target c --output gradients.c" in text
    assert "int loss_and_gradients(const double *w, const double *x," in Path("gradients.h").read_text(encoding="utf-8")
    assert outcome(text, tmp_path)[0] == 0


def test_wrong_arguments_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"a path that ends with \.c for target='c', but got 'made\.cpp'"):
        xp.export(lambda x: x * x, np.ones(2), path="made.cpp", target="c")
    with pytest.raises(ValueError, match="the emitter 'native' exports no files"):
        xp.export(lambda x: xp.sum(x), np.ones(2), path=None, target="native")
    with pytest.raises(ValueError, match="the name of an emitter that exports, such as 'c', as `target`, but got 'fortran'"):
        xp.export(lambda x: x * x, np.ones(2), target="fortran")
    xp.export(lambda x: x * x, np.ones(2), target="c")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["gradients.c", "gradients.h"]


def test_an_emitter_of_a_plugin_exports(tmp_path: Path) -> None:
    def export(captured: Any, stem: str, origin: list[str]) -> dict[str, str]:
        return {".txt": f"{stem}\n{captured.program}", ".origin": "\n".join(origin)}

    if "as-text" not in xp.registry.emitter_names():
        info = xp.emitter.EmitterInfo("as-text", function=print, source=print, export=export)
        xp.registry.register_emitter(info)
    path = tmp_path / "made.txt"
    text = xp.export(lambda x: xp.sum(x * x), np.ones(3), path=path, target="as-text")
    assert path.read_text(encoding="utf-8") == text
    assert text.startswith("made\ninputs: x: float64[3]")
    assert "xpgrad.export(function, x, target='as-text', path='made.txt')" in (tmp_path / "made.origin").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match=r"a path that ends with \.txt"):
        xp.export(lambda x: xp.sum(x * x), np.ones(3), path=tmp_path / "made.c", target="as-text")
