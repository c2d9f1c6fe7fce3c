"""Law: what a row says about NumPy agrees with NumPy's functions, HIPS autograd's dialect and the backends' kernels."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import types
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import search_path
from support.central_differences import has_float64
from xpgrad._numpy import dispatch
from xpgrad._numpy.adapters import ADAPTED, signature_of
from xpgrad._numpy.table import UFUNCS
from xpgrad._rows.namespace import operations
from xpgrad._rows.row import ROWS, Row
from xpgrad.backend import numpy_name
from xpgrad.registry import backend_for

assert dispatch  # importing it loads the tables

#: The rows that are universal functions of NumPy.
NAMED = {name: getattr(np, row.facts.numpy) for name, row in ROWS.items() if row.elementwise and row.facts.numpy}
UNIVERSAL = {name: ufunc for name, ufunc in NAMED.items() if isinstance(ufunc, np.ufunc)}


def operands(row: Row) -> list[np.ndarray]:
    """Return points inside the row's domain, of a kind of number that it accepts."""
    if row.domains[0].integers == "truth":
        return [np.asarray([True, False, True, False]), np.asarray([True, True, False, False])][: len(row.tensors)]
    if row.domains[0].numbers == "integer":
        return [np.asarray([5, 2, 7, 1]), np.asarray([1, 2, 0, 3])][: len(row.tensors)]
    low, high = max(row.domains[0].low, -2.0), min(row.domains[0].high, low + 3.0 if (low := max(row.domains[0].low, -2.0)) > -2.0 else 2.0)
    shares = [np.asarray([0.31, 0.47, 0.72, 0.86]), np.asarray([0.93, 0.64, 0.83, 0.58])]
    return [low + (high - low) * share for share in shares[: len(row.tensors)]]


def test_what_is_not_universal_is_a_function_of_the_table() -> None:
    assert set(NAMED) - set(UNIVERSAL) == {"round", "where"}  # NumPy has it in another form


@pytest.mark.parametrize("name", UNIVERSAL)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # powers of negative numbers
def test_numpys_universal_function_runs_the_row(name: str, xpgrad_device: str) -> None:
    if not has_float64(xpgrad_device):
        pytest.skip("the values are NumPy's in float64")
    row, ufunc, points = ROWS[name], UNIVERSAL[name], operands(ROWS[name])
    found = UFUNCS[ufunc.__name__]
    assert found.row is row
    assert (found.count, found.differentiable) == (len(row.tensors), row.differentiable)
    results = []
    for function in (ufunc, getattr(operations, name)):
        leaves = [xp.tensor(p, device=xpgrad_device, requires_grad=row.differentiable) for p in points]
        out = function(*leaves)
        grads = xp.autograd.grad(xp.sum(out * out), leaves) if row.differentiable else []
        assert not row.differentiable or out.grad_fn.name() == row.node
        results.append([np.asarray(t.detach()) for t in (out, *grads)])
    for ours, others in zip(*results, strict=True):
        np.testing.assert_array_equal(ours, others)
    np.testing.assert_allclose(results[0][0], ufunc(*points), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", sorted(UNIVERSAL))
def test_integers_mean_what_numpy_means(name: str) -> None:
    """Law: `Domain.integers` says to which numbers integers are converted, as in NumPy."""
    row, ufunc = ROWS[name], UNIVERSAL[name]
    points = [np.asarray([4, 1, 3]), np.asarray([2, 1, 2])][: len(row.tensors)]
    if row.domains[0].high == 1.0:
        points = [np.asarray([0, 0, 0])]
    found, expected = ufunc(*map(xp.tensor, points)), ufunc(*points)
    assert np.asarray(found).dtype == expected.dtype
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-14)


@pytest.mark.parametrize("name", [name for name in UNIVERSAL if ROWS[name].differentiable])
def test_an_operand_may_be_out(name: str) -> None:
    """Law: a ufunc that writes over one of its operands has the values and gradients that it has without ``out=``."""
    ufunc, points = UNIVERSAL[name], operands(ROWS[name])
    for k in range(len(points)):
        results = []
        for written in (False, True):
            leaves = [xp.tensor(p, requires_grad=True) for p in points]
            parts = [x * 1.0 for x in leaves]
            out = ufunc(*parts, out=parts[k]) if written else ufunc(*parts)
            assert not written or out is parts[k]
            grads = xp.autograd.grad(xp.sum(out * out), leaves, allow_unused=True, materialize_grads=True)
            results.append([np.asarray(t.detach()) for t in (out, *grads)])
        for one, two in zip(*results, strict=True):
            np.testing.assert_array_equal(one, two)


def test_out_may_share_memory_with_an_operand() -> None:
    x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1.0
    np.multiply(y[:-1], y[1:], out=y[1:])
    np.testing.assert_array_equal(y.detach().numpy(), [1.0, 2.0, 6.0])
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3.0, 4.0, 2.0])


@pytest.mark.parametrize("name", UNIVERSAL)
def test_the_dialect_of_hips_has_it(name: str) -> None:
    hips = pytest.importorskip("xpgrad.dialects.hips.numpy")
    assert getattr(hips, ROWS[name].facts.numpy) is UNIVERSAL[name]


@pytest.mark.parametrize("name", NAMED)
def test_numpys_own_kernel_is_found(name: str) -> None:
    backend = backend_for("numpy")
    assert backend.kernel(name) is (backend.overrides.get(name) or NAMED[name])
    assert numpy_name(name) == ROWS[name].facts.numpy


def test_functions_of_one_line_have_numpys_defaults() -> None:
    """Law: an option with a name of NumPy's has NumPy's default."""
    for name, function in ADAPTED.items():
        theirs = signature_of(name).parameters
        for key, option in inspect.signature(function).parameters.items():
            if key in theirs and option.default is not option.empty and theirs[key].default is not option.empty:
                left_out = (theirs[key].default, None) if theirs[key].default is not None else (None, "backward")
                value = theirs[key].default
                assert option.default in left_out or type(value).__name__ == "_NoValueType" or option.kind is option.VAR_KEYWORD, (
                    name,
                    key,
                )


def test_an_old_numpy_need_not_know_its_signatures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: the signatures of NumPy's functions in C are known with a NumPy before 2.4, which does not report them."""
    known = {name: signature_of(name) for name in ADAPTED}
    real = inspect.signature

    def old(function: Any) -> inspect.Signature:
        if isinstance(getattr(function, "__wrapped__", None), types.BuiltinFunctionType):
            raise ValueError("no signature found")  # noqa: TRY004 (what `inspect` raises)
        return real(function)

    monkeypatch.setattr(inspect, "signature", old)
    assert {name: signature_of(name) for name in ADAPTED} == known


CBRT = """
import sys
{before}
import numpy as np
import xpgrad as xp
from xpgrad._operations.declare import elementwise
from xpgrad._rows.row import Domain

def composed(xp, x):
    return xp.sign(x) * xp.pow(xp.abs(x), xp.full_like(x, 1.0 / 3.0))

@elementwise(lambda g, out: g / (out * out * 3.0), kernel=composed, domain=Domain("real"))
def cbrt(x, /):
    '''Cube root.'''

x = xp.tensor([8.0, -27.0], device={device!r}, requires_grad=True)
y = np.cbrt(x)
xp.sum(y).backward()
assert y.grad_fn.name() == "CbrtBackward0", y.grad_fn
kernel = x.backend.kernels.cbrt
library = {library}
print(kernel is library if library is not None else kernel.func.__name__)
print([[round(v, 6) for v in t.tolist()] for t in (y, x.grad)])
print(np.cbrt(xp.tensor([8], device={device!r})).tolist())
try:
    np.cbrt(xp.tensor([1j], device={device!r}))
except TypeError:
    print("real only")
"""


@pytest.mark.slow(one_in=2)
@pytest.mark.parametrize(
    ("device", "before", "library", "found"),
    [
        ("numpy", "", "np.cbrt", True),
        ("cupy", "import support.fake_cupy", "sys.modules['cupy'].cbrt", True),
        ("jax", "import jax; jax.config.update('jax_enable_x64', True)", "__import__('jax').numpy.cbrt", True),
        ("strict", "import support.plugin_backends; support.plugin_backends.register('strict')", "None", "checked"),
    ],
)
def test_a_new_row_is_computed_by_the_library(device: str, before: str, library: str, found: Any) -> None:
    """Law: a row that is only declared is computed by NumPy's function, or by the library's own kernel if it has one."""
    if device in ("jax", "strict"):
        pytest.importorskip({"jax": "jax", "strict": "array_api_strict"}[device])
    code = CBRT.format(device=device, before=before, library=library)
    environment = {**os.environ, "PYTHONPATH": search_path(), "JAX_PLATFORMS": "cpu"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert run.stdout == f"{found}\n[[2.0, -3.0], [0.083333, 0.037037]]\n[2.0]\nreal only\n", run.stdout + run.stderr
