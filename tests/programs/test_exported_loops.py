"""Law: exports in NumPy and in C keep loops and branches, take complex arrays, and compute what the function does."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from programs.test_c import SANITIZERS, build, has_sanitizers, outcome
from programs.test_export import run
from programs.test_scan_derivatives import SCANS
from programs.test_scans import BRANCHES, FUNCTIONS, ON_VALUES
from programs.test_while_derivatives import ALL, LOOPS, POINT
from support.central_differences import SINGLE, numbers, values
from xpgrad import func
from xpgrad.errors import CaptureError
from xpgrad.func._tree import flatten

# Both functions of a branch run once, when they are captured.
pytestmark = [
    pytest.mark.slow(one_in=3),
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
]  # both functions of a branch run once, when they are captured

has_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler `cc`")
OF_THREE = FUNCTIONS | ON_VALUES | BRANCHES
#: Inverses of matrices and casts to integers have no C; a gradient that stops at `detach()` is not a derivative, which the test notices.
IN_C = [name for name in OF_THREE if name not in ("of matrices", "up to a number", "tangents inside")]
ARGS = [numbers(s, k) for k, s in enumerate([(3, 3), (3,), (5, 3)])]


def total(function: Any) -> Any:
    """Return a function that computes one real number from the results of another one, so that it has gradients."""

    def real_number(*args: Any) -> Any:
        outs = [y for y in flatten(function(*args))[0] if y.dtype.differentiable]
        return sum((xp.sum(xp.real(y * xp.conj(y))) for y in outs[1:]), start=xp.sum(xp.real(outs[0] * xp.conj(outs[0]))))

    return real_number


def eager(function: Any, args: list[np.ndarray]) -> list[np.ndarray]:
    """Return the results of a function and, if it has one real number as a result, the gradients."""
    leaves = [xp.asarray(a, device="numpy") for a in args]
    leaves = [x.requires_grad_() if x.dtype.differentiable else x for x in leaves]
    outs = flatten(function(*leaves))[0]
    found = [values(y.detach()) for y in outs]
    if len(outs) == 1 and outs[0].shape == () and outs[0].requires_grad:
        wanted = [x for x in leaves if x.requires_grad]
        found += [values(g) for g in xp.autograd.grad(outs[0], wanted, allow_unused=True, materialize_grads=True)]
    return found


def assert_close(found: Any, wanted: list[np.ndarray]) -> None:
    for x, y in zip(found, wanted, strict=True):
        tolerance = SINGLE if np.asarray(y).dtype in ("f4", "c8") else 1e-9
        assert (np.shape(x), np.asarray(x).dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * max(1.0, np.abs(y).max(initial=0.0)))


def check_numpy(function: Any, args: list[np.ndarray]) -> str:
    """Compare an exported module with the function; return its text."""
    text = xp.export(function, *args, path=None)
    space: dict[str, Any] = {"__name__": "exported"}
    exec(text, space)  # noqa: S102 (what was just written)
    wanted = eager(function, args)
    name = next(n for n in ("real_number_and_gradients", "real_number", "function_and_gradients", "function") if n in space)
    assert_close(space[name](*args), wanted)
    return text


def check_c(function: Any, args: list[np.ndarray], folder: Path, *flags: str) -> str:
    """Compare an exported source with the function, and let it test itself; return its text."""
    text = xp.export(function, *args, path=None, target="c")
    wanted = eager(function, args)
    library = ctypes.CDLL(str(build(text, folder, "-shared", "-fPIC", "-O1")))
    results = [np.full(y.shape, 7, y.dtype) for y in wanted]
    before = [a.copy() for a in args]
    run = getattr(library, next(n for n in ("real_number_and_gradients", "real_number", "function") if f"int {n}(" in text))
    assert run(*(ctypes.c_void_p(np.ascontiguousarray(a).ctypes.data) for a in (*args, *results))) == 0
    assert_close(results, wanted)
    assert all(np.array_equal(a, b) for a, b in zip(args, before))
    code, printed = outcome(text, folder, *(flags or ("-O1",)))
    assert code == 0, printed + text
    return text


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("name", OF_THREE)
def test_modules_compute_what_the_function_does(name: str, sign: float) -> None:
    check_numpy(total(OF_THREE[name]), [sign * a for a in ARGS])


@has_cc
@pytest.mark.parametrize("name", IN_C)
def test_sources_compute_what_the_function_does(name: str, tmp_path: Path) -> None:
    check_c(total(OF_THREE[name]), [-a if name in BRANCHES else a for a in ARGS], tmp_path)


@pytest.mark.slow(one_in=24)
@has_cc
@pytest.mark.parametrize("derivative", ["reverse", "reverse, reverse", "forward, reverse", "third, mixed"])
@pytest.mark.parametrize("name", ["in loops", "several", "no step", "counted", "nested", "in a batch"])
def test_sources_of_derivatives(name: str, derivative: str, tmp_path: Path) -> None:
    """Loops with several passes over their steps, and scans of scans."""
    check_c(total(ALL[derivative]((LOOPS | SCANS)[name])), [POINT], tmp_path)


@pytest.mark.slow
def test_modules_of_derivatives_test_themselves(tmp_path: Path) -> None:
    for name in ("in loops", "nested"):
        done = run(xp.export(total(func.hessian((LOOPS | SCANS)[name])), POINT, path=None), tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow(one_in=6)
@has_cc
@pytest.mark.parametrize("name", ["powers", "in a loop", "no step", "branches in steps", "nested", "with indices"])
def test_sources_with_sanitizers(name: str, tmp_path: Path) -> None:
    if not has_sanitizers():
        pytest.skip("the compiler has no sanitizers")
    check_c(total(OF_THREE[name]), ARGS, tmp_path, *SANITIZERS)


# -- dtypes -----------------------------------------------------------------------------------------------------------------------


def _waves(x: Any, y: Any, n: Any) -> Any:
    """Have loops whose carries are complex or integers, and views of complex arrays as operands."""
    c, ys = func.scan(lambda c, v: (xp.sin(c * v) + y[::-1], (c * xp.conj(v), v[0])), x[1], x, reverse=True)
    c = func.fori_loop(0, n, lambda i, c: c * xp.cos(y) + i, c)
    c = func.while_loop(lambda c: xp.sum(xp.abs(c)) < 60.0, lambda c: 2.0 * c + xp.ones_like(c), c)
    return func.cond(xp.abs(c[0]) > xp.abs(c[1]), lambda: c * y, lambda: c / 2.0), ys, x.mT


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
def test_modules_in_every_dtype(dtype: str) -> None:
    check_numpy(total(_waves), [numbers((4, 2), 0, dtype), numbers((2,), 1, dtype), np.asarray(3)])


@pytest.mark.slow(one_in=4)
@has_cc
@pytest.mark.parametrize("has_gradients", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "complex64"])
def test_sources_in_every_dtype(dtype: str, has_gradients: bool, tmp_path: Path) -> None:
    args = [numbers((4, 2), 0, dtype), numbers((2,), 1, dtype), np.asarray(3)]
    if has_gradients:
        check_c(total(_waves), args, tmp_path)
        return

    def function(*args: Any) -> Any:
        return tuple(flatten(_waves(*args))[0])

    check_c(function, args, tmp_path)


@pytest.mark.slow(one_in=6)
@has_cc
@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
@pytest.mark.parametrize("size", [3, 5000])
def test_complex_arguments_constants_and_results(dtype: str, size: int, tmp_path: Path) -> None:
    """Large arguments are drawn by the test in C, and large constants of equal numbers are fills."""
    constant, ones = numbers((3,), 5, dtype), np.full(size, 1.5 - 0.5j, dtype)

    def real_number(z: Any, x: Any) -> Any:
        w = z * xp.asarray(ones) + xp.exp(z / 4.0) * x
        return xp.real(xp.sum(w * xp.conj(w))) + xp.sum(xp.abs(w[:3] - xp.asarray(constant)) ** 2)

    args = [numbers((size,), 0, dtype), numbers((size,), 1, "float64" if dtype == "complex128" else "float32")]
    text = check_c(real_number, args, tmp_path)
    kind = "double" if dtype == "complex128" else "float"
    assert f"z : {kind}, shape ({size},), complex: a real and an imaginary part in turns" in text
    flags = SANITIZERS if has_sanitizers() else ["-O0"]
    code, printed = outcome(text, tmp_path, *flags)
    assert code == 0, printed
    for name in ("grad_z", "grad_x") if dtype == "complex128" else ():  # differences in float32 are not exact enough
        code, printed = outcome(text.replace(f"(double)saved_{name}[i]", f"1.01 * (double)saved_{name}[i]"), tmp_path)
        assert code == 1
        assert f"{name}, along a direction" in printed


@has_cc
def test_headers_of_complex_functions_are_cpp(tmp_path: Path) -> None:
    if shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler `c++`")
    xp.export(lambda z: z * z, numbers((2,), 0, "complex128"), path=tmp_path / "made.c", target="c")
    caller = """
#include <complex>
#include "made.h"
int main() {
    const std::complex<double> z[2] = {{1, 2}, {0, 1}};
    std::complex<double> out[2];
    if (function(reinterpret_cast<const double *>(z), reinterpret_cast<double *>(out)) != 0) return 1;
    return out[0] == z[0] * z[0] && out[1] == z[1] * z[1] ? 0 : 1;
}
"""
    (tmp_path / "caller.cpp").write_text(caller, encoding="utf-8")
    made = build((tmp_path / "made.c").read_text(encoding="utf-8"), tmp_path, "-c")
    program = tmp_path / "caller"
    subprocess.run(["c++", "-x", "c++", str(tmp_path / "caller.cpp"), "-x", "none", str(made), "-lm", "-o", str(program)], check=True)
    assert subprocess.run([str(program)], check=False).returncode == 0


# -- what an export is --------------------------------------------------------------------------------------------------------------


def _long(w: Any, x: Any) -> Any:
    last, ys = func.scan(lambda c, y: (xp.tanh(w * c + y), xp.sum(c)), xp.zeros_like(w), x)
    return xp.sum(last * last) + xp.sum(ys)


@pytest.mark.parametrize("target", ["python", "c"])
def test_texts_do_not_depend_on_the_number_of_steps(target: str) -> None:
    lines = [
        len(xp.export(_long, np.ones(3), np.ones((n, 3)), path=None, target=target).split("#ifdef XPGRAD_MAIN")[0].splitlines())
        for n in (100, 2000)
    ]
    assert lines[0] == lines[1]


@has_cc
def test_one_source_serves_all_numbers_of_steps(tmp_path: Path) -> None:
    def function(x: Any, n: Any) -> Any:
        return func.fori_loop(0, n, lambda i, v: xp.sin(v * x) + i, x)

    text = xp.export(function, np.asarray(0.7), np.asarray(2), path=None, target="c")
    library = ctypes.CDLL(str(build(text, tmp_path, "-shared", "-fPIC")))
    for count in (0, 1, 2, 40, 1000):
        args = [np.asarray(0.7), np.asarray(count)]
        results = [np.empty(()), np.empty(())]
        assert library.function_and_gradients(*(ctypes.c_void_p(a.ctypes.data) for a in (*args, *results))) == 0
        assert_close(results, eager(function, args))


@pytest.mark.slow
@has_cc
@pytest.mark.parametrize("count", [65, 100, 5000, pytest.param(65536, marks=pytest.mark.slow)])
def test_the_numbers_of_many_steps_need_no_long_constant(count: int, tmp_path: Path) -> None:
    def real_number(x: Any) -> Any:
        return func.fori_loop(-7, count - 7, lambda i, v: v + xp.sin(x * i), x)

    text = check_c(real_number, [np.asarray(0.7)], tmp_path)
    assert len(text) < 40_000


@has_cc
def test_a_bad_index_in_a_step_is_a_status(tmp_path: Path) -> None:
    args = [np.arange(1.0, 5.0), np.array([0, 3, -1])]

    def product(x: Any, i: Any) -> Any:
        return func.scan(lambda c, k: (c * xp.take(x, xp.reshape(k, (1,)), axis=0)[0], None), xp.asarray(1.0, dtype=xp.float64), i)[0]

    text = xp.export(product, *args, path=None, target="c")
    library = ctypes.CDLL(str(build(text, tmp_path, "-shared", "-fPIC")))
    for index, status in ((3, 0), (-4, 0), (4, 1), (-5, 1), (2**62, 1)):
        args[1][1] = index
        results = [np.empty(()), np.empty(4)]
        found = library.product_and_gradients(*(ctypes.c_void_p(a.ctypes.data) for a in (*args, *results)))
        assert found == status
        if not status:
            assert_close(results, eager(product, args))


def test_targets_without_loops_get_steps() -> None:
    def exported(captured: Any, stem: str, origin: list[str]) -> dict[str, str]:
        return {".txt": str(captured.program)}

    if "steps-as-text" not in xp.registry.emitter_names():
        xp.registry.register_emitter(xp.emitter.EmitterInfo("steps-as-text", function=print, source=print, export=exported))
    text = xp.export(_long, np.ones(3), np.ones((4, 3)), path=None, target="steps-as-text")
    assert text.count("tanh(") == 8
    assert "scan(" not in text
    with pytest.raises(CaptureError, match="a loop that depends on values"):
        xp.export(LOOPS["newton"], POINT, path=None, target="steps-as-text")
