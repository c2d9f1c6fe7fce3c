"""Sparse matrices: programs with SciPy's constant ones run as they stand, arrays are built as SciPy builds them, and errors say why."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it says what is right, and computes some")

import scipy.sparse as theirs
import scipy.sparse.linalg
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support.central_differences import numbers, values
from xpgrad.scipy import sparse
from xpgrad.scipy.sparse import _array

DENSE = np.array([[4.0, 0.0, 1.0, 0.0], [0.0, 3.0, 0.0, -1.0], [2.0, 0.0, 5.0, 0.0], [0.0, 1.0, 0.0, 6.0]])
FORMATS = ("csr", "csc", "coo", "dia", "bsr", "lil", "dok")
T = xp.asarray

#: NumPy programs with a matrix and an array, which is a vector or a matrix.
PROGRAMS: dict[str, tuple[Any, int]] = {
    "A @ x": (lambda a, x: a @ x, 1),
    "x @ A": (lambda a, x: x @ a, 1),
    "A.T @ x": (lambda a, x: a.T @ x, 1),
    "A @ matrix": (lambda a, x: a @ x, 2),
    "matrix @ A": (lambda a, x: x @ a, 2),
    "A.dot": (lambda a, x: a.tocsr().dot(x), 1),  # that of `coo_array` converts its operand first
    "np.matmul": (lambda a, x: np.matmul(a, x) if isinstance(x, xp.Tensor) else a @ x, 1),
    "a quadratic form": (lambda a, x: x @ (a @ x), 1),
    "an integer matrix": (lambda a, x: a.astype(np.int64) @ x, 1),
    "a part": (lambda a, x: a.tocsr()[1:, :3] @ x[:3], 1),
    "an explicit step": (lambda a, x: x + 0.1 * (a @ np.sin(x)), 1),
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_constant_matrices(name: str, form: str) -> None:
    """Law: a product with SciPy's matrix is a Tensor with NumPy's value, with and without grad, and its differences are the gradient."""
    program, rank = PROGRAMS[name]
    x = numbers((4,) * rank, 1.0)
    for a in (getattr(theirs, f"{form}_array")(DENSE), getattr(theirs, f"{form}_matrix")(DENSE)):
        for leaf in (T(x), xp.tensor(x, requires_grad=True)):
            out = program(a, leaf)
            assert isinstance(out, xp.Tensor)
            np.testing.assert_allclose(values(out), program(a, x), rtol=1e-14)
        jacobian = xp.func.jacrev(lambda x, a=a: program(a, x))(T(x))
        columns = [np.asarray(program(a, x + e)) - np.asarray(program(a, x - e)) for e in 1e-6 * np.eye(x.size).reshape(-1, *x.shape)]
        expected = np.moveaxis(np.reshape(columns, (*x.shape, *columns[0].shape)), range(rank), range(-rank, 0)) / 2e-6
        np.testing.assert_allclose(values(jacobian), expected, atol=1e-8)


def test_the_older_matrices_multiply_by_asterisk() -> None:
    x = xp.tensor(numbers((4,), 1.0), requires_grad=True)
    a = theirs.csr_matrix(DENSE)
    for out, expected in ((a * x, DENSE @ values(x.detach())), (x * a, values(x.detach()) @ DENSE)):
        np.testing.assert_allclose(values(out.detach()), expected, rtol=1e-14)
    (a * x).sum().backward()
    np.testing.assert_allclose(values(x.grad), DENSE.sum(axis=0), rtol=1e-14)


@pytest.mark.parametrize("transform", ["eager", "compile", "numpy_code", "vmap", "jvp", "checkpoint"])
def test_products_in_transforms(transform: str) -> None:
    a, x = theirs.csc_array(DENSE), numbers((4,), 1.0)

    def program(x: Any) -> Any:
        return np.tanh(a @ x) @ a

    expected = np.tanh(DENSE @ x) @ DENSE
    jacobian = DENSE.T @ np.diag(1.0 - np.tanh(DENSE @ x) ** 2) @ DENSE
    runs = {
        "eager": program, "compile": xp.compile(program), "numpy_code": xp.numpy_code(program),
        "vmap": lambda x: xp.func.vmap(program)(xp.stack([x, x]))[1], "jvp": program,
        "checkpoint": lambda x: xp.utils.checkpoint.checkpoint(program, x, use_reentrant=False),
    }  # fmt: skip
    run = runs[transform]
    np.testing.assert_allclose(values(run(T(x))), expected, rtol=1e-13)
    modes = [xp.func.jacfwd] if transform == "jvp" else [xp.func.jacrev]
    for mode in modes:
        np.testing.assert_allclose(values(mode(run)(T(x))), jacobian, rtol=1e-12)


def test_patterns_of_products_are_followed() -> None:
    n = 12
    a = theirs.diags_array([1.0, -2.0, 1.0], offsets=[-1, 0, 1], shape=(n, n)).tocsr()
    u = T(numbers((n,), 1.0))
    prepared = xp.func.sparse_jacobian(lambda u: a @ u + u**3).prepare(u)
    assert (prepared.nnz, prepared.colours, prepared.unresolved) == (a.nnz, 3, [])
    np.testing.assert_allclose(prepared(u).toarray(), a.toarray() + np.diag(3.0 * values(u) ** 2), rtol=1e-13)
    # With respect to the entries, each element of the product depends on those of its row; nothing is in the row of another.
    row, col = a.tocoo().coords
    f = lambda k: sparse.coo_array((k, (row, col)), shape=(n, n)) @ u  # noqa: E731 (a closure)
    found = xp.func.sparse_jacobian(f)(T(a.data))
    np.testing.assert_allclose(found.toarray(), values(xp.func.jacrev(f)(T(a.data))), rtol=1e-13)
    assert found.nnz == a.nnz


# -- constants of SciPy's -----------------------------------------------------------------------------------------------


def test_a_matrix_that_changes_is_converted_again() -> None:
    a, x = theirs.csr_array(DENSE), T(numbers((4,), 1.0))
    for change in (lambda: None, lambda: a.data.__imul__(2.0), lambda: a.__setitem__((0, 2), 7.0), lambda: a.sum_duplicates()):
        change()
        np.testing.assert_allclose(values(a @ x), a @ values(x), rtol=1e-14)


def test_rows_and_columns_may_be_one_array() -> None:
    """So they are for a diagonal in a program that keeps equal constants once; the matrix and its transpose then differ in their shapes."""
    from xpgrad_numpy._special import function

    product: Any = function("sparse_matmul")
    entries, places = np.array([[2.0], [3.0]]), np.array([0, 1])
    for shape in ((3, 2), (2, 3), (2, 2)):
        dense = np.zeros(shape)
        dense[places, places] = entries[:, 0]
        x = numbers((shape[1], 2), 1.0)
        np.testing.assert_allclose(product(entries, x, places, places, shape), dense @ x)


def test_a_matrix_that_was_resized_is_converted_again() -> None:
    """Its arrays stay as they are if it gets more columns."""
    a, x = theirs.csr_array(DENSE), T(numbers((4,), 1.0))
    assert (x @ a).shape == (4,)
    a.resize((4, 6))
    assert (x @ a).tolist() == (values(x) @ a).tolist()


def test_what_inference_mode_made_is_not_kept() -> None:
    a, x = theirs.csr_array(DENSE), xp.tensor(numbers((4,), 1.0), requires_grad=True)
    with xp.inference_mode():
        a @ x
    (a @ x).sum().backward()
    np.testing.assert_allclose(values(x.grad), DENSE.sum(axis=0), rtol=1e-14)


def test_nothing_outlives_its_matrix(no_cyclic_gc: None) -> None:
    from xpgrad_numpy import _sparse as host

    before = len(_array._CONSTANTS), len(host._PATTERNS)
    a, x = theirs.csr_array(DENSE), xp.tensor(numbers((4,), 1.0), requires_grad=True)
    out = sparse.linalg.spsolve(a, a @ x).sum()
    out.backward()
    assert (len(_array._CONSTANTS), len(host._PATTERNS)) == (before[0] + 1, before[1] + 1)
    del a, out
    gc.collect(0)
    assert (len(_array._CONSTANTS), len(host._PATTERNS)) == before


def test_a_matrix_is_factorised_once_for_all_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    splu = scipy.sparse.linalg.splu
    monkeypatch.setattr(scipy.sparse.linalg, "splu", lambda a: calls.append(1) or splu(a))
    row, col = np.nonzero(DENSE)
    data, b = T(DENSE[row, col]), T(numbers((4,), 1.0))

    def solution(data: Any, b: Any) -> Any:
        return xp.sum(sparse.linalg.spsolve(a._with(data), b) ** 2)

    a = sparse.coo_array((data, (row, col)))
    xp.func.hessian(solution, argnums=(0, 1))(data, b)
    assert len(calls) == 1
    xp.func.grad(solution)(data * 2.0, b)  # other entries
    assert len(calls) == 2


# -- building -------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_arrays_are_scipys(data: Any) -> None:
    """Law: an array of any entries, places and format has SciPy's elements, and so have its transpose, its parts and its sums."""
    m, n, k = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 5)), data.draw(st.integers(0, 9))
    dtype = data.draw(st.sampled_from([np.float64, np.float32, np.complex128, np.int64]))
    places = st.lists(st.tuples(st.integers(0, m - 1), st.integers(0, n - 1)), min_size=k, max_size=k)
    row, col = np.array(data.draw(places), np.int64).reshape(-1, 2).T
    entries = (numbers((k,), 1.0) * 5.0).astype(dtype)
    made = theirs.coo_array((entries, (row, col)), shape=(m, n))
    forms = {
        "coo": (made, sparse.coo_array((T(entries), (row, col)), shape=(m, n))),
        "csr": ((c := made.tocsr()), sparse.csr_array((T(c.data), c.indices, c.indptr), shape=(m, n))),
        "csc": ((c := made.tocsc()), sparse.csc_array((T(c.data), T(c.indices), c.indptr), shape=(m, n))),
        "scipy": (made, sparse.csr_array(made)),
    }
    expected, a = forms[data.draw(st.sampled_from(sorted(forms)))]
    dense = expected.toarray()
    assert (a.shape, a.nnz, values(a.data).dtype) == (dense.shape, expected.nnz, dense.dtype)
    np.testing.assert_allclose(values(a.toarray()), dense, rtol=1e-5)
    np.testing.assert_allclose(values(a.T.toarray()), dense.T, rtol=1e-5)
    np.testing.assert_allclose(a.to_scipy().toarray(), dense, rtol=1e-5)
    np.testing.assert_allclose(values(a.sum(axis=-1)), dense.sum(axis=-1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(values(a.diagonal()), dense.diagonal(), rtol=1e-5)
    i, j = data.draw(st.integers(0, m - 1)), data.draw(st.integers(0, n - 1))
    np.testing.assert_allclose(values(a[i, j]), dense[i, j], rtol=1e-5)
    step = data.draw(st.sampled_from([1, 2, -1]))
    np.testing.assert_allclose(values(a[::step, j:].toarray()), dense[::step, j:], rtol=1e-5)
    np.testing.assert_allclose(values((a @ a.T.conj()).toarray()), dense @ dense.T.conj(), rtol=1e-4, atol=1e-4)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(-4, 4), min_size=1, max_size=4, unique=True), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_diagonals_are_scipys(offsets: list[int], m: int, n: int, wide: bool) -> None:
    lengths = [min(m + min(k, 0), n - max(k, 0)) for k in offsets]
    if min(lengths) < 0:
        with pytest.raises(ValueError, match="elements, but got shape"):
            sparse.diags_array([xp.ones(1)] * len(offsets), offsets=offsets, shape=(m, n))
        return
    parts = [numbers((length,), 1.0 + k) if wide else np.array([1.5 + k]) for k, length in enumerate(lengths)]
    if min(lengths) == 0:
        return  # SciPy refuses the offset
    found = sparse.diags_array([T(p) for p in parts], offsets=offsets, shape=(m, n))
    np.testing.assert_allclose(values(found.toarray()), theirs.diags_array(parts, offsets=offsets, shape=(m, n)).toarray())


def test_diagonals_of_numbers_and_without_a_shape() -> None:
    d = numbers((3,), 1.0)
    for diagonals, offsets in ((d, 0), (d, np.int64(-2)), ([d, 2.0], (0, 1)), ([1.0], 0), ([[1.0, 2.0]], [1])):
        given = diagonals if isinstance(diagonals, list) else T(diagonals)
        expected = theirs.diags_array(diagonals, offsets=offsets)
        np.testing.assert_allclose(values(sparse.diags_array(given, offsets=offsets).toarray()), expected.toarray())


def test_operands_and_dtypes() -> None:
    a = sparse.csr_array((xp.tensor([1.0, 2.0], dtype=xp.float32), [0, 1], [0, 1, 2]))
    assert a.dtype == xp.float32
    assert (a @ xp.ones(2, dtype=xp.float64)).dtype == xp.float64
    assert (a @ xp.ones(2, dtype=xp.float16)).dtype == xp.float32
    assert (a @ (np.ones(2) + 1j)).dtype == xp.complex128
    assert values(np.ones((3, 2)) @ a).tolist() == [[1.0, 2.0]] * 3  # NumPy's array on the left
    assert values((a @ xp.ones((5, 2, 3)))[4]).tolist() == [[1.0] * 3, [2.0] * 3]
    assert sparse.linalg.spsolve(a, np.asarray([3, 4])).tolist() == [3.0, 2.0]
    assert (a + theirs.eye_array(2)).toarray().tolist() == (theirs.eye_array(2) + a).toarray().tolist() == [[2.0, 0.0], [0.0, 3.0]]
    assert (a - np.ones((2, 2), np.float32)).tolist() == [[0.0, -1.0], [-1.0, 1.0]]
    units = np.ones((2, 2), np.uint8)  # whose negative is 255
    for few in (units, theirs.csr_array(units), sparse.csr_array(theirs.csr_array(units))):
        minuend, subtrahend = a - few, few - a
        found = [x if few is units else x.toarray() for x in (minuend, subtrahend)]
        assert [values(x).tolist() for x in found] == [[[0.0, -1.0], [-1.0, 1.0]], [[0.0, 1.0], [1.0, -1.0]]]
    few = sparse.coo_array((T(np.asarray([1, 2], np.uint8)), (np.asarray([0, 1], np.uint64), np.asarray([0, 1], np.uint64))))
    assert (np.zeros((2, 2)) - few).tolist() == [[-1.0, 0.0], [0.0, -2.0]]
    assert (few + theirs.eye_array(2)).toarray().tolist() == [[2.0, 0.0], [0.0, 3.0]]
    assert (theirs.csr_array([[0.0, 1.0], [1.0, 0.0]]) @ a).toarray().tolist() == [[0.0, 2.0], [1.0, 0.0]]
    assert (a / 2.0 * T([[2.0], [4.0]])).toarray().tolist() == [[1.0, 0.0], [0.0, 4.0]]
    assert sum([a, a]).toarray().tolist() == [[2.0, 0.0], [0.0, 4.0]]  # type: ignore[union-attr]
    assert repr(a) == "<SparseArray: 2 x 2, 2 entries, float32 on numpy>"
    half = sparse.diags_array(xp.ones(3, dtype=xp.float16))
    assert (half @ xp.ones(3, dtype=xp.float16)).dtype == sparse.linalg.spsolve(half, xp.ones(3, dtype=xp.float16)).dtype == xp.float16


def test_functions_of_numpy_and_truth() -> None:
    """Those that call a method are SciPy's; others would compute with an object that is no number, and raise."""
    a, expected = sparse.coo_array((T([1.0, -3.0, 2.0]), ([0, 0, 1], [1, 1, 0])), shape=(2, 2)), np.array([[0.0, -2.0], [2.0, 0.0]])
    found: Any = np.transpose(a)  # type: ignore[call-overload]
    assert isinstance(found, sparse.SparseArray)
    assert found.toarray().tolist() == a.transpose((1, 0)).toarray().tolist() == expected.T.tolist()
    assert np.sum(a, axis=0).tolist() == [2.0, -2.0]  # type: ignore[call-overload]
    assert np.sum(a, dtype=np.float32).dtype == xp.float32  # type: ignore[call-overload]
    assert abs(a).toarray().tolist() == np.abs(expected).tolist()
    assert (np.shape(a), np.ndim(a)) == ((2, 2), 2)  # type: ignore[arg-type]
    assert np.array([a, a], dtype=object).shape == (2,)
    assert bool(a[:1, 1:])
    assert not bool(a[1:, 1:])
    assert len({a, a, a.T}) == 2
    assert a in [a.T, a][1:]
    assert (a == None, a != "text") == (False, True)  # noqa: E711 (SciPy's answer to what has no elements)


def test_solutions_at_the_edge() -> None:
    singular = theirs.csr_array([[1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(RuntimeError, match="singular"):
        sparse.linalg.spsolve(singular, xp.ones(2))
    found = sparse.linalg.spsolve(theirs.eye_array(2), T([np.nan, 1.0]))
    assert np.isnan(values(found)).all()
    assert sparse.linalg.spsolve(theirs.csr_array((0, 0)), xp.ones(0)).shape == (0,)
    many = sparse.linalg.factorized(theirs.csr_array(DENSE))(T(numbers((3, 4, 2), 1.0)))
    np.testing.assert_allclose(values(many), np.linalg.solve(DENSE, numbers((3, 4, 2), 1.0)), rtol=1e-12)


A = sparse.csr_array(theirs.csr_array(DENSE))
BAD: list[tuple[Any, Any, str]] = [
    (lambda: sparse.coo_array(T(DENSE)), TypeError, r"(?s)coo_array: a tuple .* places of a dense matrix would depend"),
    (lambda: sparse.coo_array((T([1.0]), [0], [0])), TypeError, r"\(data, \(row, col\)\) is wanted, but got a tuple of 3"),
    (lambda: sparse.coo_array((T([1.0]), ([0.5], [0]))), TypeError, "`row` must be integers"),
    (lambda: sparse.coo_array((T([1.0]), ([0], [4])), shape=(2, 2)), ValueError, r"`col` must be between 0 and 1 for shape \(2, 2\)"),
    (lambda: sparse.coo_array((T([1.0]), ([-1], [0])), shape=(2, 2)), ValueError, "`row` must be between 0 and 1"),
    (lambda: sparse.coo_array((T([1.0, 2.0]), ([0], [1]))), ValueError, "must be vectors of one length"),
    (lambda: sparse.coo_array((T([]), ([], []))), ValueError, "`shape` is needed without entries"),
    (lambda: sparse.coo_array((T([1.0]), [0])), TypeError, r"the places must be a pair \(row, col\)"),
    (lambda: sparse.coo_array((T([1.0]), ([0], [0])), shape=3), TypeError, "`shape` must be a pair of ints"),
    (lambda: sparse.coo_array((T([1.0]), ([0], [0])), shape=(-1, 2)), ValueError, "`shape` must not be negative"),
    (lambda: sparse.csr_array((T([1.0]), [0], [0, 2])), ValueError, "`indptr` must ascend from 0 to at most the number of indices, 1"),
    (lambda: sparse.csr_array((T([1.0]), [0], [0, 1]), shape=(2, 2)), ValueError, "`indptr` of length 2 does not fit to shape"),
    (lambda: sparse.csc_array((T([1.0]),)), TypeError, "is wanted, but got a tuple of 1"),
    (lambda: sparse.csr_array(theirs.coo_array(np.ones(3))), ValueError, r"must have 2 axes, but has shape \(3,\)"),
    (lambda: sparse.diags_array([xp.ones(2)], offsets=[0, 1]), ValueError, "1 diagonals do not fit to the offsets"),
    (lambda: sparse.diags_array([xp.ones(2)] * 2, offsets=[1, 1]), ValueError, "which must be different"),
    (lambda: sparse.diags_array([xp.ones(2)], offsets=[0], shape=(3, 3)), ValueError, r"has 3 elements, but got shape \(2,\)"),
    (lambda: sparse.SparseArray(np.ones(1), [0], [0], (1, 1)), TypeError, "`data` must be a Tensor"),  # type: ignore[arg-type]
    (lambda: A @ 2.0, ValueError, "use `\\*` to scale"),
    (lambda: A @ xp.ones(3), ValueError, r"shapes \(4, 4\) and \(3,\) do not fit"),
    (lambda: xp.ones(3) @ theirs.csr_array(DENSE), ValueError, "do not fit"),
    (lambda: A @ theirs.eye_array(3), ValueError, "do not fit"),
    (lambda: A @ "text", TypeError, "needs a Tensor or an array with axes"),
    (lambda: A * A, TypeError, "the elements of two sparse arrays"),
    (lambda: A + 1.0, NotImplementedError, "would make it dense"),
    (lambda: A + theirs.eye_array(3), ValueError, r"of shapes \(4, 4\) and \(3, 3\) cannot be added"),
    (lambda: A == A.T, TypeError, "elements of sparse arrays are not compared"),
    (lambda: theirs.csr_array(DENSE) != A, TypeError, "elements of sparse arrays are not compared"),
    (lambda: theirs.csr_array(DENSE) == A, TypeError, "elements of sparse arrays are not compared"),
    (lambda: A == 0, TypeError, "elements of sparse arrays are not compared"),
    (lambda: np.ones((4, 4)) == A, TypeError, "elements of sparse arrays are not compared"),
    (lambda: T(DENSE) != A, TypeError, "elements of sparse arrays are not compared"),
    (lambda: A > 0.0, TypeError, "elements of sparse arrays are not compared"),
    (lambda: bool(A), ValueError, "neither true nor false"),
    (lambda: np.dot(A, np.ones(4)), TypeError, "NumPy does not compute with a SparseArray"),  # type: ignore[call-overload]
    (lambda: np.asarray(A), TypeError, "NumPy does not compute with a SparseArray"),
    (lambda: np.where(A, 1.0, 2.0), TypeError, "NumPy does not compute with a SparseArray"),  # type: ignore[arg-type]
    (lambda: A.transpose((0, 1)), ValueError, r"`axes` must be \(1, 0\)"),
    (lambda: A.sum(out=np.zeros(4)), TypeError, "are not written to `out`"),
    (lambda: A.sum(axis=2), ValueError, "`axis` must be 0 or 1, but got 2"),
    (lambda: A[0], IndexError, r"use a slice, such as `a\[i:i\+1\]`"),
    (lambda: list(A), TypeError, r"loop over slices, such as `a\[i:i\+1\]`"),
    (lambda: A[9, 9], IndexError, "out of range"),
    (lambda: xp.ones(4) * theirs.csr_array(DENSE), TypeError, "use `A @ x` for the product of matrices"),
    (lambda: xp.ones(4) + theirs.csr_matrix(DENSE), TypeError, "`add` does not combine the elements"),
    (lambda: sparse.linalg.spsolve(DENSE, xp.ones(4)), TypeError, "a sparse array of xpgrad or SciPy is wanted, but got"),
    (lambda: sparse.linalg.spsolve(A[:3], xp.ones(4)), ValueError, r"`A` must be square, but has shape \(3, 4\)"),
    (lambda: sparse.linalg.spsolve(A, xp.ones(3)), ValueError, r"`b` must have shape \(4,\) or \(\.\.\., 4, K\), but has shape \(3,\)"),
    (lambda: sparse.linalg.spsolve(A, 1.0), TypeError, "`b` must be a Tensor or an array, but got float"),
    (lambda: sparse.linalg.factorized(2.0), TypeError, "factorized: a sparse array"),
    (lambda: scipy.sparse.linalg.spsolve(theirs.csc_array(DENSE), xp.ones(4, requires_grad=True)), RuntimeError, r"linalg\.spsolve`"),
    (lambda: theirs.coo_matrix((xp.ones(1, requires_grad=True), ([0], [0]))), RuntimeError, r"`xpgrad\.scipy\.sparse\.coo_array`"),
    (lambda: theirs.csr_array(DENSE).multiply(xp.ones(4, requires_grad=True)), RuntimeError, "gradient would be lost"),
    (lambda: A._with(A.data.clone().requires_grad_()).to_scipy(), RuntimeError, "requires grad"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(BAD)))
def test_what_does_not_fit_is_refused(case: int) -> None:
    call, error, message = BAD[case]
    with pytest.raises(error, match=message):
        call()
