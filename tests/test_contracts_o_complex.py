"""Contracts of group O: complex numbers. Each test names its contracts first in its docstring; values by finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

POINTS = np.array([1 + 2j, -0.5 + 0.3j, 0.7 - 1.1j])
REAL_VALUED = {
    "abs2": lambda ns, z: (z * z.conj()).real.sum(),
    "real": lambda ns, z: (z * (2 - 1j)).real.sum(),
    "imag": lambda ns, z: ns.exp(z).imag.sum(),
    "abs": lambda ns, z: ns.abs(z).sum(),
    "sin": lambda ns, z: ns.abs(ns.sin(z) * z).sum(),
    "quotient": lambda ns, z: (1 / z + z**2).imag.sum(),
    "log": lambda ns, z: (ns.log(z) * ns.sqrt(z)).real.sum(),
    "dot": lambda ns, z: (z[:2] * z[1:].conj()).real.sum(),
    "matmul": lambda ns, z: (z.reshape((1, 3)) @ (z.reshape((3, 1)) * 1j)).real.sum(),
}


@pytest.mark.parametrize("name", REAL_VALUED)
def test_gradients_of_real_functions(lib: Any, name: str) -> None:
    """CPX-01, CPX-02, CPX-03: dL/dx + i dL/dy."""
    program = REAL_VALUED[name]
    z = lib.tensor(POINTS, dtype="complex128")
    program(lib.ns, z).backward()

    def at(points: np.ndarray) -> float:
        return program(lib.ns, lib.const(points, "complex128")).item()

    eps = 1e-6
    expected = []
    for k in range(len(POINTS)):
        step = np.zeros(3, complex)
        step[k] = eps
        along = [(at(POINTS + d * step) - at(POINTS - d * step)) / (2 * eps) for d in (1, 1j)]
        expected.append(along[0] + 1j * along[1])
    np.testing.assert_allclose(lib.value(z.grad), expected, rtol=1e-5, atol=1e-7)


def test_conventions(lib: Any) -> None:
    """CPX-01, CPX-02, CPX-03: the values by name."""
    z, w = lib.tensor(3 + 4j, dtype="complex128"), lib.tensor(1 - 2j, dtype="complex128")
    one = lib.const(1.0, "complex128")
    lib.equal(lib.grad((z * z.conj()).real, z)[0], 6 + 8j)
    lib.equal(lib.grad(z.real, z)[0], 1)
    lib.equal(lib.grad(z.imag, z)[0], 1j)
    lib.equal(lib.grad(z * w, z, one)[0], 1 + 2j)
    lib.equal(lib.grad(z.exp(), z, one)[0], np.conj(np.exp(3 + 4j)))
    lib.equal(lib.grad(lib.ns.abs(z), z)[0], 0.6 + 0.8j)


def test_real_input(lib: Any) -> None:
    """CPX-04: the real part only, in a real dtype."""
    x, w = lib.tensor([1.0, 2.0]), lib.const([1 + 2j, 3 - 1j], "complex128")
    (x * w).backward(lib.const([1 + 1j, 2j], "complex128"))
    assert x.grad.dtype == lib.ns.float64
    lib.equal(x.grad, np.real(np.array([1 + 1j, 2j]) * np.conj([1 + 2j, 3 - 1j])))


def test_real_function_through_complex_numbers(lib: Any) -> None:
    """CPX-05."""
    x, y = lib.tensor([0.5, 2.0]), lib.tensor([0.5, 2.0])
    lib.ns.exp(lib.cast(x, "complex128") * 1j).real.sum().backward()
    lib.ns.cos(y).sum().backward()
    lib.equal(x.grad, lib.value(y.grad))


@pytest.mark.filterwarnings("ignore:Casting complex values to real")
def test_conj_and_casts(lib: Any) -> None:
    """CPX-06."""
    z = lib.tensor([1 + 2j], dtype="complex128")
    seed = lib.const([3 + 5j], "complex128")
    lib.equal(lib.grad(z.conj(), z, seed)[0], [3 - 5j])
    lib.equal(lib.grad(lib.cast(z, "float64"), z, lib.ones(1))[0], [1])
    x = lib.tensor([2.0])
    lib.equal(lib.grad(lib.cast(x, "complex128"), x, seed)[0], [3.0])


def test_abs_at_zero(lib: Any) -> None:
    """CPX-07."""
    z = lib.tensor([0j, 3 + 4j], dtype="complex128")
    with np.errstate(invalid="ignore"):
        lib.equal(lib.grad(lib.ns.abs(z).sum(), z)[0], [0, 0.6 + 0.8j])


def test_descent(lib: Any) -> None:
    """CPX-08: steps along the negative gradient reach the minimum."""
    z, target = lib.tensor(2 + 1j, dtype="complex128"), lib.const(-1 + 3j, "complex128")
    for _ in range(60):
        d = z - target
        (d * d.conj()).real.backward()
        with lib.ns.no_grad():
            z.sub_(0.2 * z.grad)
        z.grad = None
    np.testing.assert_allclose(lib.value(z), -1 + 3j, atol=1e-6)


def test_gradcheck(lib: Any) -> None:
    """CPX-10, GCK-12."""
    z, x = lib.tensor(POINTS, dtype="complex128"), lib.tensor([0.3, 0.4, 0.5])
    assert lib.ag.gradcheck(lambda z, x: (z * z * x, lib.ns.abs(z), (x * 1j * z.conj()).imag), (z, x))
    assert lib.ag.gradgradcheck(lambda z, x: z * z * x, (z, x))
    wrong = lib.fn(lambda ctx, z: z * z.conj(), lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        lib.ag.gradcheck(wrong.apply, (z,))


def test_second_order(lib: Any) -> None:
    """CPX-02 at second order."""
    z = lib.tensor([1 + 2j], dtype="complex128")
    (g,) = lib.grad((z * z * z).real.sum(), z, create_graph=True)
    (h,) = lib.grad(g.real.sum(), z)
    lib.equal(h, np.conj(6 * np.array([1 + 2j])))
