"""Law: every compiled function has the value and gradients that it has eagerly, whatever text or kernels its program becomes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES
from xpgrad_conformance.facade import open_library
from xpgrad_conformance.functions import all_cases, as_list, cases, scalar_loss

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
BACKENDS = sorted({*DEVICES, "torch"})

#: Functions without derivatives, called with an array of floats.
CONSTANT: dict[str, Callable[[Any], Any]] = {
    "all": lambda x: xp.all(x > 0, axis=1),
    "any": lambda x: xp.any(x > 0, axis=0, keepdims=True),
    "arange": lambda x: xp.arange(3, dtype=xp.float64) * x[0, 0],
    "argmax": lambda x: xp.argmax(x, axis=1),
    "argmin": lambda x: xp.argmin(x, axis=0, keepdims=True),
    "argsort": lambda x: xp.argsort(x, axis=1),
    "comparisons": lambda x: (x < 0.1) | (x >= 0.5) & ~(x == 0.3),
    "count_nonzero": lambda x: xp.count_nonzero(x > 0, axis=1),
    "cumulative_sum of integers": lambda x: xp.cumulative_sum(xp.argsort(x, axis=0), axis=1),
    "eye": lambda x: xp.eye(3, 4) * x,
    "floor": lambda x: xp.floor(3 * x) + xp.round(x) + xp.sign(x),
    "integers": lambda x: (xp.argsort(x, axis=1) * 2 + 1) // 3 % 2,
    "isfinite": lambda x: xp.isfinite(1 / x) & ~xp.isnan(x),
    "linspace": lambda x: xp.linspace(0.0, 1.0, 4) + x,
    "max of integers": lambda x: xp.max(xp.argsort(x, axis=0), axis=1),
    "prod of integers": lambda x: xp.prod(xp.argsort(x, axis=0) + 1, axis=1),
    "searchsorted": lambda x: xp.searchsorted(xp.sort(xp.reshape(x, (-1,))), xp.asarray([0.1, 0.4])),
    "shifts": lambda x: (xp.argsort(x, axis=1) << 2) >> 1,
    "sum of integers": lambda x: xp.sum(xp.argsort(x, axis=0), axis=1),
    "triangles": lambda x: xp.tril(x, k=-1) - xp.triu(x, k=1),
}


@pytest.fixture(params=BACKENDS)
def lib(request: pytest.FixtureRequest) -> Any:
    if request.param not in xp.backend_names():
        pytest.skip(f"the backend {request.param} is not installed")
    return open_library(request.param)


@pytest.mark.slow(one_in=24)
@pytest.mark.parametrize("complex_too", [False, True], ids=["real", "complex"])
@pytest.mark.parametrize("name", list(all_cases()))
def test_the_gradients_are_the_eager_ones(lib: Any, name: str, complex_too: bool) -> None:
    case = dict(cases(lib, complex_too)).get(name)
    if case is None:
        pytest.skip("not a function of such numbers, or of this backend")
    points = case.arrays(complex_too)

    def loss(*xs: Any) -> Any:
        return scalar_loss(lib, case.call(lib, *xs))

    found = []
    for function in (loss, xp.compile(loss)):
        xs = [lib.tensor(p, True, lib.complex if p.dtype.kind == "c" else lib.real) for p in points]
        value = function(*xs)
        found.append([lib.value(value), *[None if g is None else lib.value(g) for g in lib.grad(value, xs, allow_unused=True)]])
    assert value.grad_fn.name() == "CompiledBackward0"
    for a, b in zip(*found, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            scale = float(np.max(np.abs(a), initial=1.0))
            tolerance = 1e-11 if lib.real == "float64" else 1e-4
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * scale)


#: Functions whose rules or texts treat large arrays differently; each returns a real or complex result.
LARGE: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: xp.sum(x * x, axis=0),
    "mean": lambda x: xp.mean(x * xp.abs(x), axis=0),
    "var": lambda x: xp.var(x),
    "var of columns": lambda x: xp.var(x, axis=0, correction=1, keepdims=True) * x,
    "std": lambda x: xp.std(x),
    "std of columns": lambda x: xp.std(x, axis=0),
    "max": lambda x: xp.max(xp.abs(x), axis=0),
    "norm": lambda x: xp.linalg.vector_norm(x),
    "norm of columns": lambda x: xp.linalg.vector_norm(x, axis=0, ord=3),
    "parts": lambda x: xp.real(x) * xp.imag(xp.conj(x) * 1j) / (1 + xp.abs(x)),
    "powers": lambda x: x**3 + xp.sqrt(x) + xp.conj(x) ** 2,
    "running sums": lambda x: xp.cumulative_sum(xp.exp(-x), axis=0),
    "chosen": lambda x: xp.where(xp.real(x) > 0.5, x * 2, xp.square(x)),
    "a mean that is taken away": lambda x: (x - xp.mean(x, axis=0)) * x / xp.std(x),
    "expanded": lambda x: xp.broadcast_to(xp.sum(x, axis=0), x.shape) * x,
}


@pytest.mark.slow(one_in=6)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("name", list(LARGE))
def test_sizes_on_both_sides_of_thresholds(lib: Any, name: str, dtype: str) -> None:
    """Results are right below and above 2,048 elements, the largest count in 16 bits, and 32,768, from where texts run in blocks."""
    device = lib.tensor(1.0, False, lib.real).device
    try:
        kind = xp.asarray([1.0], device=device).backend.find_dtype(dtype)
    except xp.CapabilityError:
        kind = None
    if kind is None:
        pytest.skip(f"this backend has no {dtype}")
    rng = np.random.default_rng(0)
    function = LARGE[name]
    for shape in ((2048,), (2049,), (33_000,), (2049, 3)):
        data = rng.uniform(0.25, 1.0, shape) + (1j * rng.uniform(-1.0, 1.0, shape) if dtype.startswith("complex") else 0)
        found = []
        for f in (function, xp.compile(function)):
            x = xp.tensor(data.astype(dtype), device=device, requires_grad=True)
            out = f(x)
            (g,) = xp.autograd.grad(xp.sum(xp.real(out * (1 - 0.5j) if out.dtype.is_complex else out)), x)
            found.append([t.detach().to_device("numpy") for t in (out, g)])
        eps = {"float16": 1e-3, "float32": 1e-7, "complex64": 1e-7}.get(dtype, 2e-16)
        for a, b in zip(*found, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            a, b = a.numpy(), b.numpy()
            scale = float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0))
            np.testing.assert_allclose(b, a, rtol=300 * eps, atol=300 * eps * scale, err_msg=str(shape))


@pytest.mark.parametrize("name", list(CONSTANT))
def test_the_values_are_the_eager_ones(lib: Any, name: str) -> None:
    device = lib.tensor(1.0, False, lib.real).device
    x = xp.asarray(np.cos(np.arange(12.0) * 1.7).reshape(3, 4), device=device)
    function = CONSTANT[name]
    with xp.default_device(device):
        expected, found = as_list(function(x)), as_list(xp.compile(function)(x))
    for a, b in zip(expected, found, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(b.to_device("numpy").numpy(), a.to_device("numpy").numpy(), rtol=1e-12)
