"""Law: a sparse derivative equals the dense one for arguments and results of any shape and nesting, on every device, for any colouring."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import xpgrad as xp
from sparsity.dense import dense_hessian, dense_jacobian, of_one_array
from support.central_differences import numbers
from xpgrad.backend import Backend
from xpgrad.errors import CapabilityError
from xpgrad.func import sparse_hessian, sparse_jacobian

BY = ("auto", "columns", "rows", "both")


def tensor(shape: tuple[int, ...], device: str, seed: float = 1.0) -> Any:
    return xp.asarray(numbers(shape, seed), device=device)


def mixed(x: Any) -> Any:
    """Return a function with a full row, a full column, and bands: three products from both sides."""
    return xp.concat([xp.reshape(xp.sum(x**2), (1,)), x[1:] ** 2 * x[:1]])


def chain(x: Any) -> Any:
    return xp.sum((1.0 - x[:-1]) ** 2) + 10.0 * xp.sum((x[1:] - x[:-1] ** 2) ** 2)


def assert_close(found: Any, expected: Any) -> None:
    close = 1e-10 if expected.dtype == np.float64 else 1e-4  # a library may have single precision only
    np.testing.assert_allclose(of_one_array(found), expected, rtol=close, atol=close)


@pytest.mark.parametrize("by", BY)
def test_jacobians_are_the_dense_ones(by: str, xpgrad_device: str) -> None:
    x = tensor((8,), xpgrad_device)
    assert_close(sparse_jacobian(mixed, by=by)(x), dense_jacobian(mixed, x))


@pytest.mark.parametrize("by", ["symmetric", "rows"])
def test_hessians_are_the_dense_ones(by: str, xpgrad_device: str) -> None:
    x = tensor((8,), xpgrad_device)
    assert_close(sparse_hessian(chain, by=by)(x), dense_hessian(chain, x))


@pytest.mark.parametrize("pattern", ["global", "local"])
def test_rows_and_columns_are_elements_in_row_major_order(pattern: str, xpgrad_device: str) -> None:
    x = tensor((2, 3, 2), xpgrad_device)

    def f(x: Any) -> Any:
        return xp.permute_dims(x, (2, 0, 1))[:, :, 1:] * xp.sum(x, axis=1)[:, None, :2].reshape((2, 2, 1))

    assert_close(sparse_jacobian(f, pattern=pattern)(x), dense_jacobian(f, x))


def test_several_arguments_are_columns_one_after_the_other(xpgrad_device: str) -> None:
    x, y = tensor((3,), xpgrad_device), tensor((2, 2), xpgrad_device, 2.0)

    def f(x: Any, y: Any, scale: float) -> Any:
        return (x * y[0, 0] * scale, y[1] * x[:2])

    expected = dense_jacobian(lambda x, y: f(x, y, 2.0), x, y)
    assert_close(sparse_jacobian(f, (0, 1))(x, y, 2.0), expected)
    assert_close(sparse_jacobian(f, (1, 0))(x, y, 2.0), np.concatenate([expected[:, 3:], expected[:, :3]], axis=1))
    assert_close(sparse_jacobian(f, 1)(x, y, scale=2.0), expected[:, 3:])
    assert_close(sparse_jacobian(lambda tree, scale: f(tree["x"], tree["y"], scale))({"x": x, "y": y}, 2.0), expected)
    total = lambda x, y: xp.sum(f(x, y, 2.0)[0] ** 2) + xp.sum(y**3)  # noqa: E731
    assert_close(sparse_hessian(total, (0, 1))(x, y), dense_hessian(total, x, y))
    assert_close(sparse_hessian(total, 1)(x, y), dense_hessian(total, x, y)[3:, 3:])


def test_aux_is_passed_through() -> None:
    matrix, aux = sparse_jacobian(lambda x: (x**2, {"kept": 3}), has_aux=True)(xp.asarray([1.0, 2.0]))
    assert (matrix.toarray().tolist(), aux) == ([[2.0, 0.0], [0.0, 4.0]], {"kept": 3})
    matrix, aux = sparse_hessian(lambda x: (xp.sum(x**2), "aux"), has_aux=True)(xp.asarray([1.0, 2.0]))
    assert (matrix.toarray().tolist(), aux) == ([[2.0, 0.0], [0.0, 2.0]], "aux")
    assert sparse_jacobian(lambda x: (xp.ones(2), 1), has_aux=True)(xp.asarray([1.0]))[1] == 1


@pytest.mark.parametrize("by", BY)
@pytest.mark.parametrize("chunk", [1, 2, None])
def test_chunks_change_nothing(by: str, chunk: int | None) -> None:
    x = xp.asarray(numbers((9,)))
    assert_close(sparse_jacobian(mixed, by=by, chunk_size=chunk)(x), dense_jacobian(mixed, x))
    assert_close(sparse_hessian(chain, chunk_size=chunk)(x), dense_hessian(chain, x))


def test_a_prepared_derivative_is_used_again_without_tracing() -> None:
    calls = 0

    def f(x: Any, t: float) -> Any:
        nonlocal calls
        calls += 1
        return (x[1:] - x[:-1]) ** 2 * t

    prepared = sparse_jacobian(f).prepare(xp.zeros(50), 0.0)
    assert (prepared.shape, prepared.nnz, prepared.colours, prepared.unresolved) == ((49, 50), 98, 2, [])
    assert repr(prepared) == "<sparse_jacobian: 49 x 50, 98 entries, 2 products: 2 of columns>"
    before = calls
    for k in range(3):
        x = xp.asarray(numbers((50,), k + 1.0))
        assert_close(prepared(x, 0.5 + k), (0.5 + k) * dense_jacobian(lambda x: (x[1:] - x[:-1]) ** 2, x))
    assert calls == before + 3  # one run for all products
    assert_close(
        prepared(numbers((50,)), 1.0), dense_jacobian(lambda x: (x[1:] - x[:-1]) ** 2, xp.asarray(numbers((50,))))
    )  # an array, from a solver


@pytest.mark.parametrize(("form", "kind"), [("csr", sp.csr_array), ("csc", sp.csc_array), ("coo", sp.coo_array), ("native", sp.csr_array)])
def test_matrices_are_scipys_in_the_format_that_is_asked_for(form: str, kind: Any) -> None:
    x = xp.asarray(numbers((5,)))
    prepared = sparse_jacobian(mixed, format=form).prepare(x)
    found = prepared(x)
    assert isinstance(found, kind)
    assert found.dtype == np.float64
    assert_close(found, dense_jacobian(mixed, x))
    found.data[:] = 0.0  # not shared with anyone
    if form == "csr":
        found.eliminate_zeros()
    assert_close(prepared(x), dense_jacobian(mixed, x))


def test_native_matrices_are_the_librarys_own(xpgrad_device: str) -> None:
    x = tensor((5,), xpgrad_device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if type(x).backend.sparse_matrix.__func__ is Backend.sparse_matrix:
            with pytest.raises(CapabilityError, match="has no sparse matrices; ask for SciPy's"):
                sparse_jacobian(mixed, format="native")(x)
        else:
            assert_close(sparse_jacobian(mixed, format="native")(x), dense_jacobian(mixed, x))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_matrices_have_the_precision_of_the_function(dtype: str) -> None:
    x = xp.asarray(numbers((5,)), dtype=getattr(xp, dtype))
    found = sparse_jacobian(mixed)(x)
    assert found.dtype == (np.float32 if dtype == "float16" else dtype)  # SciPy has no narrower one
    np.testing.assert_allclose(found.toarray(), dense_jacobian(mixed, x), rtol=1e-2 if dtype == "float16" else 1e-6)


def test_a_pattern_may_be_given_and_is_not_traced() -> None:
    def f(x: Any) -> Any:
        return x**2 if x[0] > 0 else -x

    x = xp.asarray(numbers((4,)))
    for pattern in (np.eye(4, dtype=bool), np.eye(4), sp.csr_array(sp.eye(4)), sp.coo_matrix(np.tri(4)), xp.eye(4)):
        assert_close(sparse_jacobian(f, pattern=pattern)(x), dense_jacobian(f, x))
    hessian = sparse_hessian(chain, pattern=np.tri(4) - np.tri(4, k=-2)).prepare(x)  # one triangle is enough
    assert_close(hessian(x), dense_hessian(chain, x))
    assert hessian.nnz == 10


def test_tensors_from_outside_are_constants_whether_they_require_grad_or_not() -> None:
    w = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
    x = xp.tensor([0.5, 0.25, 0.125], requires_grad=True)
    np.testing.assert_array_equal(sparse_jacobian(lambda x: x * w)(x).toarray(), np.diag([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(sparse_hessian(lambda x: xp.sum(x * x * w))(x).toarray(), np.diag([2.0, 4.0, 6.0]))
    assert x.grad is None
    assert w.grad is None


@pytest.mark.parametrize("mode", [xp.no_grad, xp.inference_mode])
def test_the_mode_that_is_on_does_not_matter(mode: Any) -> None:
    x = xp.asarray(numbers((5,)))
    with mode():
        jacobian, hessian = sparse_jacobian(mixed)(x), sparse_hessian(chain)(x)
    assert_close(jacobian, dense_jacobian(mixed, x))
    assert_close(hessian, dense_hessian(chain, x))


def test_functions_with_transforms_and_compiled_ones_inside() -> None:
    x = xp.asarray(numbers((6,)))
    f = lambda x: xp.func.grad(chain)(x) * x[0]  # noqa: E731
    assert_close(sparse_jacobian(f)(x), dense_jacobian(f, x))
    assert_close(sparse_jacobian(xp.compile(f))(x), dense_jacobian(f, x))
    g = lambda x: xp.func.vmap(xp.sin)(x[:, None])[:, 0] * x  # noqa: E731
    assert sparse_jacobian(g).prepare(x).nnz == 6
    assert_close(sparse_jacobian(g)(x), dense_jacobian(g, x))


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0)])
def test_empty_arguments_and_results(n: int, m: int) -> None:
    found = sparse_jacobian(lambda x: xp.ones(m) * xp.sum(x))(xp.zeros(n))
    assert found.shape == (m, n)


def test_no_dense_matrix_is_ever_in_memory() -> None:
    import tracemalloc

    n = 20_000
    prepared = sparse_jacobian(lambda x: (x[1:] - x[:-1]) ** 2).prepare(xp.ones(n))
    x = xp.asarray(numbers((n,)))
    tracemalloc.start()
    try:
        sparse_jacobian(lambda x: (x[1:] - x[:-1]) ** 2)(x)
        prepared(x)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 400 * n  # bytes: 50 numbers for each row, of 20,000


def test_the_picture_has_a_mark_for_each_entry() -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="it draws")
    matplotlib.use("Agg")
    prepared = sparse_jacobian(mixed).prepare(xp.asarray(numbers((8,))))
    ax = prepared.plot()
    assert sum(len(marks.get_offsets()) for marks in ax.collections) == prepared.nnz
    assert len({tuple(c) for marks in ax.collections for c in marks.get_facecolors()}) == prepared.colours
    assert prepared.plot(ax) is ax
    matplotlib.pyplot.close(ax.figure)
