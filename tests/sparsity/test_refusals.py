"""Law: what cannot be done raises an error with the name and, if known, the line of the function, and is never computed wrongly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support.central_differences import numbers
from xpgrad.func import sparse_hessian, sparse_jacobian

X = xp.asarray(numbers((4,)))


def branch(x: Any) -> Any:
    return x if x[0] > 0 else -x


def masked(x: Any) -> Any:
    return xp.sort(x[x > 0])


def host(x: Any) -> Any:
    return xp.asarray(np.sin(x.detach().numpy()))


@pytest.mark.parametrize("transform", [sparse_jacobian, lambda f: sparse_hessian(lambda x: xp.sum(f(x)))])
@pytest.mark.parametrize("f", [branch, masked, host])
def test_what_depends_on_values_has_no_pattern_and_the_line_is_told(f: Any, transform: Any) -> None:
    line = f.__code__.co_firstlineno + 1
    with pytest.raises(xp.CaptureError, match=rf"sparse_\w+: the pattern cannot be traced.*line {line}, in {f.__name__}.*`pattern=matrix`"):
        transform(f)(X)


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "no function": (lambda: sparse_jacobian(3), TypeError, "sparse_jacobian"),
    "a name that by= has not": (lambda: sparse_jacobian(xp.sin, by="diagonals"), ValueError, "`by` must be 'auto' or 'columns'"),
    "a Hessian by columns": (lambda: sparse_hessian(xp.sum, by="columns"), ValueError, "`by` must be 'symmetric' or 'rows'"),
    "a format": (lambda: sparse_jacobian(xp.sin, format="dense"), ValueError, "`format` must be 'csr'"),
    "a pattern's name": (lambda: sparse_jacobian(xp.sin, pattern="all"), ValueError, "`pattern` must be 'global' or 'local'"),
    "a list as pattern": (lambda: sparse_jacobian(xp.sin, pattern=[[True]]), TypeError, "`pattern` must be .* array of bools, not list"),
    "strings as pattern": (lambda: sparse_jacobian(xp.sin, pattern=np.array([["a"]]))(X), TypeError, "`pattern` must be"),
    "chunks": (lambda: sparse_jacobian(xp.sin, chunk_size=0), ValueError, "chunk_size"),
    "a flag": (lambda: sparse_jacobian(xp.sin, has_aux="no"), TypeError, "has_aux"),
    "a pattern of another shape": (
        lambda: sparse_jacobian(xp.sin, pattern=np.eye(3))(X), ValueError, r"shape \(3, 3\), but the matrix has \(4, 4\)",
    ),
    "a pattern that lacks entries": (
        lambda: sparse_jacobian(lambda x: x * x[::-1], pattern=np.eye(4))(X), ValueError, "lacks entries that are not 0: row 0",
    ),
    "a pattern from the left that lacks entries": (
        lambda: sparse_jacobian(lambda x: x * x[::-1], pattern=np.eye(4), by="rows")(X), ValueError, "lacks entries",
    ),
    "an empty pattern": (lambda: sparse_jacobian(xp.sin, pattern=np.zeros((4, 4)))(X), ValueError, "lacks entries"),
    "None": (lambda: sparse_jacobian(lambda x: None)(X), RuntimeError, "real floating Tensors, but got NoneType"),
    "numbers": (lambda: sparse_jacobian(lambda x: (x, 3.0))(X), RuntimeError, "real floating Tensors, but got float"),
    "nothing": (lambda: sparse_jacobian(lambda x: ())(X), RuntimeError, "at least one Tensor"),
    "integers": (lambda: sparse_jacobian(xp.argmax)(X), RuntimeError, "int64, which has no derivative"),
    "complex results": (lambda: sparse_jacobian(lambda x: x * 1j)(X), RuntimeError, "complex numbers are refused; return `xpgrad.real"),
    "complex arguments": (lambda: sparse_jacobian(xp.real)(X * 1j), RuntimeError, "complex arguments are refused"),
    "integer arguments": (lambda: sparse_jacobian(xp.sin)(xp.asarray([1, 2])), RuntimeError, "an input is int64"),
    "no pair": (lambda: sparse_jacobian(xp.sin, has_aux=True)(X), RuntimeError, r"must return a tuple \(output, aux\)"),
    "a Hessian of a vector": (lambda: sparse_hessian(xp.sin)(X), RuntimeError, r"scalar tensor, got one of shape \(4,\)"),
    "a Hessian of several": (lambda: sparse_hessian(lambda x: (x[0], x[1]))(X), RuntimeError, "scalar tensor, got 2 of them"),
    "what raises": (lambda: sparse_jacobian(lambda x: x * (1 / 0))(X), ZeroDivisionError, "division"),
    "inside of vmap": (lambda: xp.func.vmap(sparse_jacobian(xp.sin))(xp.ones((2, 3))), RuntimeError, "inside of `vmap`"),
    "inside of compile": (lambda: xp.compile(lambda x: sparse_jacobian(xp.sin)(x))(X), RuntimeError, "inside of `vmap`.*`compile`"),
    "inside of forward mode": (
        lambda: xp.func.jvp(lambda x: sparse_jacobian(xp.sin)(x), (X,), (X,)), RuntimeError, "inside of `vmap`, `jvp`",
    ),
    "large and dense": (
        lambda: sparse_jacobian(lambda x: x / xp.sum(x))(xp.ones(8000)), ValueError, "more nonzeros than a sparse one is for",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_by_name(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()


def test_a_prepared_derivative_refuses_other_arguments() -> None:
    prepared = sparse_jacobian(lambda x, k, t: x[:: abs(k)] * t).prepare(X, 2, 0.5)
    prepared(X, 2, 0.75)
    prepared(X, np.int64(2), np.float64(0.75))  # as solvers pass them
    prepared(X, 2, np.float32(0.75))
    for args, message in (
        ((xp.ones(3), 2, 0.5), r"prepared for float64\[4\] on numpy, but called with float64\[3\] on numpy"),
        ((xp.astype(X, xp.float32), 2, 0.5), r"called with float32\[4\]"),
        ((X, 1, 0.5), "prepared for 2, but called with 1; .* pass what varies as a Tensor"),
        ((X, True, 0.5), "prepared for 2, but called with True"),
        ((X, 2), "their number or nesting differs"),
        (([X], 2, 0.5), "their number or nesting differs"),
    ):
        with pytest.raises(ValueError, match=message):
            prepared(*args)


def test_a_number_that_has_to_be_one_is_part_of_what_was_prepared() -> None:
    prepared = sparse_jacobian(lambda x, t: x * math.sin(t)).prepare(X, 0.0)  # at this time the Jacobian is 0
    assert prepared.nnz == 0
    with pytest.raises(ValueError, match=r"prepared for 0\.0, but called with 0\.5"):
        prepared(X, 0.5)


@pytest.mark.parametrize("dtype", [xp.float32, xp.float64])
def test_rounding_errors_of_a_constant_are_no_unsymmetric_hessian(dtype: Any) -> None:
    def total(x: Any) -> Any:
        weights = xp.exp(x - xp.max(x))
        return xp.sum(weights / xp.sum(weights))

    for factor in (0.01, 1.0, 100.0):
        x = xp.asarray(np.random.default_rng(0).normal(size=4) * factor, dtype=dtype)
        assert np.max(np.abs(sparse_hessian(total)(x).toarray())) < 1e-5


def test_a_hessian_that_a_rule_makes_unsymmetric_is_refused_and_has_a_way() -> None:
    class Skewed(xp.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return xp.concat([g[:1] * x[1:2], g[1:]])

    f = lambda x: xp.sum(Skewed.apply(x))  # noqa: E731
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(ValueError, match=r"the Hessian is not symmetric.*`by='rows'`"):
        sparse_hessian(f)(x)
    np.testing.assert_array_equal(sparse_hessian(f, by="rows")(x).toarray(), xp.func.hessian(f)(x).numpy())


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for name in [m for m in sys.modules if m.startswith("xpgrad.func._sparse.") and not m.endswith("face")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(xp.CapabilityError, match=r"pip install 'xpgrad\[scipy\]'"):
        sparse_jacobian(xp.sin)(X)
