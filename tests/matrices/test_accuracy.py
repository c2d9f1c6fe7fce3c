"""Law: functions of matrices and their derivatives agree with mpmath at 50 digits, with PyTorch and with JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it computes some")
mp = pytest.importorskip("mpmath", reason="it says what is right; the extra `test` brings it")

import xpgrad as xp  # noqa: E402 (behind the skips)
from support.central_differences import numbers, values  # noqa: E402 (behind the skips)
from xpgrad.scipy import linalg  # noqa: E402 (behind the skips)

T = xp.asarray
G = numbers((4, 4), 2.0)
#: Matrices for all functions, and matrices for exponentials only: far from normal, stiff, with large and small norms.
REGULAR: dict[str, np.ndarray] = {
    "positive definite": G @ G.T + np.eye(4), "general": G + 3.0 * np.eye(4), "small": 1e-6 * (G @ G.T + np.eye(4)),
    "complex": G + 1j * numbers((4, 4), 5.0) + 3.0 * np.eye(4), "one block of Jordan's": np.array([[2.0, 1.0], [0.0, 2.0]]),
    "far from normal": np.array([[1.0, 1e3], [0.0, 2.0]]),
}  # fmt: skip
EXPONENTIALS = REGULAR | {
    "of norm 30": 10.0 * G, "negative": -20.0 * np.eye(4) + G, "very far from normal": np.array([[1.0, 1e6], [0.0, -1.0]]),
    "a turn": np.array([[0.0, -100.0], [100.0, 0.0]]), "Moler and Van Loan": np.array([[-49.0, 24.0], [-64.0, 31.0]]),
    "stiff": np.array([[-1e3, 1.0], [1.0, -1.0]]), "tiny": 1e-9 * G,
}  # fmt: skip


def _exact(x: np.ndarray) -> Any:
    return mp.matrix([[mp.mpmathify(complex(v) if np.iscomplexobj(x) else float(v)) for v in row] for row in x])


def _size(m: Any) -> Any:
    return mp.sqrt(sum(abs(v) ** 2 for v in m))


def distance(found: np.ndarray, expected: Any) -> float:
    """Return the relative error in the Frobenius norm."""
    return float(_size(_exact(found) - expected) / _size(expected))


FUNCTIONS: dict[str, Callable[..., Any]] = {"expm": lambda m: mp.expm(m, method="taylor"), "logm": mp.logm, "sqrtm": mp.sqrtm}
EVERY = [(name, what) for name in FUNCTIONS for what in (EXPONENTIALS if name == "expm" else REGULAR)]


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(("name", "what"), EVERY)
def test_values_and_derivatives_are_those_of_mpmath(name: str, what: str) -> None:
    x = (EXPONENTIALS if name == "expm" else REGULAR)[what]
    change = numbers(x.shape, 7.0, x.dtype) * np.abs(x).max()
    # No algorithm is more accurate than the effect of rounding the matrix: the function's condition number times the unit roundoff.
    found = values(getattr(linalg, name)(T(x)))
    _, slope = xp.func.jvp(getattr(linalg, name), (T(x),), (T(change),))
    with mp.workdps(50):
        exact, step = FUNCTIONS[name], mp.mpf(10) ** -15
        a, e = _exact(x), _exact(change)
        moved = (exact(a + step * e) - exact(a - step * e)) / (2 * step)
        condition = max(1.0, float(_size(moved) * _size(a) / _size(exact(a)) / _size(e)))
        assert distance(found, exact(a)) < 3e-15 * condition * len(x)
        assert distance(values(slope), moved) < 1e-14 * condition * len(x)


def test_a_gradient_is_what_pytorch_says() -> None:
    torch = pytest.importorskip("torch", reason="it is what is compared with; the extra `oracle` brings it")
    a, b = numbers((2, 3, 3)) + 3.0 * np.eye(3), numbers((2, 3, 2), 4.0)
    pairs: list[tuple[Any, Any, list[np.ndarray]]] = [
        (linalg.expm, torch.linalg.matrix_exp, [a]), (linalg.expm, torch.linalg.matrix_exp, [a + 1j * np.swapaxes(a, -1, -2)]),
        (linalg.solve_triangular, lambda a, b: torch.linalg.solve_triangular(a, b, upper=True), [a, b]),
        (lambda a, b: linalg.cho_solve((a, True), b), lambda a, b: torch.cholesky_solve(b, a.tril()), [a, b]),
        (lambda a, b: linalg.lstsq(a, b).x, lambda a, b: torch.linalg.lstsq(a, b).solution, [b, a]),
        (linalg.block_diag, torch.block_diag, [a[0], b[0]]),
    ]  # fmt: skip
    for ours, other, arrays in pairs:
        xs, ys = [xp.tensor(v, requires_grad=True) for v in arrays], [torch.tensor(v, requires_grad=True) for v in arrays]
        x, y = ours(*xs), other(*ys)
        np.testing.assert_allclose(values(x), y.detach().numpy(), rtol=1e-12, atol=1e-13)
        weights = numbers(tuple(x.shape), 3.0, values(x).dtype)
        for g, h in zip(xp.autograd.grad(x, xs, T(weights)), torch.autograd.grad(y, ys, torch.asarray(weights))):
            np.testing.assert_allclose(values(g), h.numpy(), rtol=1e-11, atol=1e-12)


def test_a_gradient_is_what_jax_says() -> None:
    jax = pytest.importorskip("jax", reason="it is what is compared with")
    theirs: Any = pytest.importorskip("jax.scipy.linalg")
    a = (numbers((3, 3)) + 3.0 * np.eye(3)).astype(np.float32)
    pairs: list[tuple[Any, Any, list[np.ndarray]]] = [
        (linalg.expm, theirs.expm, [a]), (lambda a: linalg.polar(a).u, lambda a: theirs.polar(a, method="svd")[0], [a]),
    ]  # fmt: skip
    for ours, other, arrays in pairs:
        xs = [xp.tensor(v, requires_grad=True) for v in arrays]
        x, (y, pull) = ours(*xs), jax.vjp(other, *arrays)
        np.testing.assert_allclose(values(x), y, rtol=1e-4, atol=1e-4)
        weights = numbers(tuple(x.shape), 3.0, np.float32)
        for g, h in zip(xp.autograd.grad(x, xs, T(weights)), pull(weights)):
            np.testing.assert_allclose(values(g), h, rtol=1e-3, atol=2e-4 * float(np.abs(h).max()))
