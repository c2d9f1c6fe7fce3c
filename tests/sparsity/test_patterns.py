"""Law: a traced pattern contains every entry of the Jacobian that can be nonzero, and no entry that is always 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from sparsity.dense import dense_jacobian
from xpgrad._backends.classes import host_backend
from xpgrad.func import sparse_hessian, sparse_jacobian
from xpgrad.func._sparse.tracing import RULES
from xpgrad.scipy import signal

N = 6
X = np.array([0.3, 1.2, -2.2, 0.7, 0.0, 1.9])
ONE = np.eye(N, dtype=bool)
STENCIL = np.array([[1.0, 2.0, 0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0, 0.0, -1.0], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]])


def blocks(count: int, m: int, n: int) -> Any:
    """Return a pattern of full blocks along the diagonal."""
    return np.kron(np.eye(count, dtype=bool), ones(m, n))


def ones(*shape: int) -> Any:
    return np.ones(shape, bool)


def band(m: int, low: int, high: int) -> Any:
    """Return a pattern of the diagonals `low` to `high` with `m` rows."""
    return np.tri(m, N, k=high, dtype=bool) & ~np.tri(m, N, k=low - 1, dtype=bool)


def written(x: Any) -> Any:
    y = xp.zeros(N)
    y[1:3] = x[3:5] * 2.0
    y[0] = x[5]
    return y


def masked(x: Any) -> Any:
    y = x * 2.0
    y[x > 0] = x[x > 0] ** 2
    return y


def overwritten(x: Any) -> Any:
    y = x * 2.0
    y[1:4] = 3.0
    y[4] = 1.0
    return y


def twice(x: Any) -> Any:
    y = xp.zeros(3)
    y.index_add_(0, xp.asarray([0, 2, 0, 1, 2, 0]), x)
    return y


#: Functions of `X`, and the pattern of their Jacobians for all values.
GLOBAL: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "elementwise": (lambda x: xp.sin(x) * xp.exp(x), ONE),
    "differences": (lambda x: (x[1:] - x[:-1]) ** 2, ONE[1:] | ONE[:-1]),
    "constant": (lambda x: xp.ones(2), np.zeros((2, N), bool)),
    "rounding": (lambda x: xp.round(x) * 2.0 + xp.sign(x), np.zeros((N, N), bool)),
    "a comparison chooses": (lambda x: xp.where(x > 0, x, -x[::-1]), ONE | ONE[::-1]),
    "detached": (lambda x: x * xp.sum(x).detach(), ONE),
    "a sum": (lambda x: xp.sum(x**2), ones(1, N)),
    "sums of rows": (lambda x: xp.sum(xp.reshape(x, (2, 3)), axis=1), blocks(2, 1, 3)),
    "a mean, kept": (lambda x: xp.mean(xp.reshape(x, (3, 2)), axis=0, keepdims=True), np.tile(np.eye(2, dtype=bool), 3)),
    "a broadcast": (
        lambda x: x[:2, None] * x[None, 2:4], np.array([[k in (i, 2 + j) for k in range(N)] for i in range(2) for j in range(2)]),
    ),
    "a running sum": (lambda x: xp.cumulative_sum(x), np.tri(N, dtype=bool)),
    "a roll and a flip": (lambda x: xp.roll(x, 2) + xp.flip(x), np.roll(ONE, 2, axis=0) | ONE[::-1]),
    "a transpose": (lambda x: xp.matrix_transpose(xp.reshape(x, (2, 3))), ONE[[0, 3, 1, 4, 2, 5]]),
    "joined": (lambda x: xp.concat([x[4:], xp.stack([x[0], x[1]])]), ONE[[4, 5, 0, 1]]),
    "indices": (lambda x: x[np.array([2, 2, -1])] * 3.0, ONE[[2, 2, 5]]),
    "taken": (lambda x: xp.take(x, xp.asarray([5, 0])), ONE[[5, 0]]),
    "a mask from outside": (lambda x: x[np.array([True, False, False, True, False, False])], ONE[[0, 3]]),
    "a mask, written": (masked, ONE),
    "a mask, summed": (lambda x: xp.sum(x[x > 0] ** 2), ones(1, N)),
    "a triangle": (lambda x: xp.tril(xp.reshape(x[:4], (2, 2))), ONE[:4] & np.array([True, False, True, True])[:, None]),
    "a diagonal": (lambda x: xp.linalg.diagonal(xp.reshape(x[:4], (2, 2))), ONE[[0, 3]]),
    "written": (written, np.concatenate([ONE[[5, 3, 4]], np.zeros((3, N), bool)])),
    "overwritten by numbers": (overwritten, np.diag([True, False, False, False, False, True])),
    "added at repeated indices": (twice, np.array([[1, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 0], [0, 1, 0, 0, 1, 0]], bool)),
    "times a known matrix": (lambda x: STENCIL @ x, STENCIL != 0),
    "a known matrix from the right": (lambda x: x[:3] @ STENCIL, np.pad((STENCIL != 0).T, ((0, 0), (0, 3)))),
    "a matrix times a known one": (
        lambda x: STENCIL[:2, :3] @ xp.reshape(x, (3, 2)), np.kron(STENCIL[:2, :3] != 0, np.eye(2, dtype=bool)),
    ),
    "a product of two": (
        lambda x: xp.reshape(x[:4], (2, 2)) @ x[4:], np.array([[1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 1, 1]], bool),
    ),
    "a tensor product": (lambda x: xp.tensordot(xp.reshape(x, (2, 3)), xp.ones((3, 2)), axes=1), blocks(2, 2, 3)),
    "inner products": (lambda x: xp.vecdot(xp.reshape(x, (2, 3)), xp.ones(3)), blocks(2, 1, 3)),
    "a cross product": (lambda x: xp.linalg.cross(x[:3], xp.ones(3)), np.pad(~np.eye(3, dtype=bool), ((0, 0), (0, 3)))),
    "equations": (lambda x: xp.linalg.solve(xp.ones((2, 3, 3)) + xp.eye(3), xp.reshape(x, (2, 3, 1))), blocks(2, 3, 3)),
    "times a known 0": (lambda x: x * np.array([1.0, 0.0, 2.0, 0.0, 0.0, 1.0]), np.diag([True, False, True, False, False, True])),
    "sorted rows": (lambda x: xp.sort(xp.reshape(x, (2, 3)), axis=1), blocks(2, 3, 3)),
    "a maximum": (lambda x: xp.maximum(x[:3], x[3:]), np.tile(np.eye(3, dtype=bool), 2)),
    "a Fourier transform of rows": (
        lambda x: xp.real(xp.fft.fft(xp.reshape(x, (2, 3)))), blocks(2, 3, 3),
    ),
}  # fmt: skip

#: The same, with the pattern for the values of `X` only.
LOCAL: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "a comparison chooses": (lambda x: xp.where(x > 0, x, -x[::-1]), np.where((X > 0)[:, None], ONE, ONE[::-1])),
    "a maximum of all": (lambda x: xp.max(x), ONE[[5]]),
    "clipped": (lambda x: xp.clip(x, 0.5, 1.5), np.diag((X > 0.5) & (X < 1.5))),
    "a product with a 0": (lambda x: x * x[4], ONE & False | np.outer(X != 0, ONE[4])),
    "the kink of abs": (lambda x: xp.abs(x), np.diag(X != 0)),
    "sorted": (lambda x: xp.sort(x), ONE[np.argsort(X)]),
}


@pytest.mark.parametrize("name", GLOBAL)
def test_global_patterns_are_those_of_the_mathematics(name: str) -> None:
    f, expected = GLOBAL[name]
    prepared = sparse_jacobian(f).prepare(xp.asarray(X))
    np.testing.assert_array_equal(prepared.pattern.toarray(), expected)
    for values in (X, 1.0 - X, X[::-1].copy()):  # for all values
        x = xp.asarray(values)
        np.testing.assert_allclose(prepared(x).toarray(), dense_jacobian(f, x), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", LOCAL)
def test_local_patterns_know_the_branches(name: str) -> None:
    f, expected = LOCAL[name]
    x = xp.asarray(X)
    prepared = sparse_jacobian(f, pattern="local").prepare(x)
    np.testing.assert_array_equal(prepared.pattern.toarray(), expected)
    np.testing.assert_allclose(prepared(x).toarray(), dense_jacobian(f, x))
    assert prepared.nnz < sparse_jacobian(f).prepare(x).nnz


CONVOLUTIONS: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "of what is traced": (lambda x: signal.convolve(x, np.array([1.0, 2.0, 3.0])), band(8, -2, 0)),
    "with a known 0": (lambda x: signal.convolve(x, np.array([1.0, 0.0, 3.0])), np.eye(8, N, dtype=bool) | np.eye(8, N, k=-2, dtype=bool)),
    "of the kernel": (lambda x: signal.convolve(np.arange(1.0, 10.0), x, mode="valid"), ones(4, N)),
    "of the kernel, all of it": (lambda x: signal.convolve(np.ones(2), x), band(7, -1, 0)),
    "in two axes": (
        lambda x: signal.convolve2d(xp.reshape(x, (2, 3)), np.array([[0.0, 1.0]]), mode="full"),
        np.concatenate([np.zeros((1, N)), np.eye(3, N), np.zeros((1, N)), np.eye(3, N, k=3)]) != 0,
    ),
    "of rows, by Fourier transforms": (
        lambda x: signal.fftconvolve(xp.reshape(x, (2, 3)), np.array([[1.0, 2.0]]), axes=1),
        np.kron(np.eye(2), np.eye(4, 3) + np.eye(4, 3, k=-1)) != 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("by", ["columns", "rows"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_have_bands(name: str, by: str) -> None:
    f, expected = CONVOLUTIONS[name]
    x = xp.asarray(X)
    prepared = sparse_jacobian(f, by=by).prepare(x)
    np.testing.assert_allclose(prepared(x).toarray(), dense_jacobian(f, x), atol=1e-12)
    np.testing.assert_array_equal(prepared.pattern.toarray(), expected)


def test_linear_functions_have_empty_hessians() -> None:
    x = xp.asarray(X)
    prepared = sparse_hessian(lambda x: xp.sum(x[1:] - 2.0 * x[:-1]) + xp.max(x) + xp.sum(STENCIL @ x)).prepare(x)
    assert (prepared.nnz, prepared.colours, prepared.shape) == (0, 0, (N, N))
    assert prepared(x).toarray().any() == np.False_


def test_hessians_have_the_pairs_that_meet_in_a_product() -> None:
    prepared = sparse_hessian(lambda x: x[0] * x[3] + xp.sin(x[1]) + xp.sum(x[4:]) ** 2 + x[2]).prepare(xp.asarray(X))
    expected = np.zeros((N, N), bool)
    expected[[0, 3, 1, 4, 4, 5, 5], [3, 0, 1, 4, 5, 4, 5]] = True
    np.testing.assert_array_equal(prepared.pattern.toarray(), expected)


def test_what_is_known_of_no_kernel_mixes_everything_and_is_told() -> None:
    def f(x: Any) -> Any:
        return xp.linalg.inv(xp.reshape(x[:4], (2, 2)) + 3.0 * xp.eye(2)) @ x[4:]

    removed = RULES.pop("matmul")
    try:
        prepared = sparse_jacobian(f).prepare(xp.asarray(X))
    finally:
        RULES["matmul"] = removed
    assert prepared.pattern.toarray().all()
    assert any(text.startswith("matmul (test_patterns.py, line ") for text in prepared.unresolved)
    assert sparse_jacobian(f).prepare(xp.asarray(X)).unresolved == []


def test_no_name_in_the_tables_is_misspelt() -> None:
    kernels = host_backend().kernels
    for name in RULES:
        found: Any = kernels
        for part in name.split("."):
            found = getattr(found, part)
        assert callable(found)


def test_indices_that_are_arguments_are_not_looked_at() -> None:
    x, places = xp.asarray(X), xp.asarray([1, 3])
    f = sparse_jacobian(lambda x, places: xp.take(x, places))
    prepared = f.prepare(x, places)
    assert prepared.pattern.toarray().all()
    np.testing.assert_array_equal(prepared(x, xp.asarray([0, 5])).toarray(), ONE[[0, 5]])
    local = sparse_jacobian(lambda x, places: xp.take(x, places), pattern="local").prepare(x, places)
    np.testing.assert_array_equal(local.pattern.toarray(), ONE[[1, 3]])


def test_each_direction_traces_its_own_products() -> None:
    """For a rule with contradictory derivatives, the traced pattern is that of the mode that computes the products."""

    class Both(xp.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return xp.roll(g, 1)

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return t * 1.0

    x = xp.asarray(X)
    np.testing.assert_array_equal(sparse_jacobian(Both.apply, by="columns")(x).toarray(), ONE)
    np.testing.assert_array_equal(sparse_jacobian(Both.apply, by="rows")(x).toarray(), np.roll(ONE, 1, axis=1))


def test_a_straight_through_rule_has_the_pattern_of_its_gradient() -> None:
    class Rounded(xp.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return xp.round(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g[::-1]

    x = xp.asarray(X)
    prepared = sparse_jacobian(Rounded.apply).prepare(x)  # it has no forward mode: products from the left
    np.testing.assert_array_equal(prepared(x).toarray(), ONE[::-1])
    assert prepared.row_colours.max() == 0
