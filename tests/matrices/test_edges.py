"""Functions of matrices in degenerate cases, refused arguments, all kinds of shapes, and which library computes."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it says what is right, and computes some")

import scipy.linalg as theirs
from hypothesis import given, settings, strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import xpgrad as xp
from matrices.table import matrices
from support import search_path
from support.central_differences import check, has_float64, loosen, numbers, values
from xpgrad._rows.namespace import EXTRAS
from xpgrad.scipy import linalg
from xpgrad.scipy.linalg import _equation_rows as equations, _function_rows as functions, _riccati as riccati

T = xp.asarray
EYE, ONE = np.eye(2), np.ones(2)


def gradient(function: Any, x: np.ndarray) -> np.ndarray:
    leaf = xp.tensor(x, requires_grad=True)
    out = function(leaf)
    xp.sum(xp.real(out)).backward()
    assert leaf.grad is not None
    return values(leaf.grad)


# -- degenerate cases --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["expm", "logm", "sqrtm"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_nan_and_nothing_else_of_the_stack(name: str, bad: float, xpgrad_device: str) -> None:
    x = np.stack([3.0 * np.eye(2) + 0.1] * 3)
    x[1, 0, 1] = bad
    leaf = xp.tensor(x.astype(np.float64 if has_float64(xpgrad_device) else np.float32), device=xpgrad_device, requires_grad=True)
    out = getattr(linalg, name)(leaf)
    xp.sum(out).backward()
    for found in (values(out), values(leaf.grad)):
        assert np.isnan(found[1]).all()
        assert np.isfinite(found[[0, 2]]).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_equations_with_what_is_not_finite_have_no_finite_solution(bad: float) -> None:
    a, b = numbers((3, 3)) + 3.0 * np.eye(3), numbers((3, 2))
    spoilt = a.copy()
    spoilt[1, 1] = bad
    for found in (
        linalg.solve_sylvester(T(spoilt), T(EYE), T(b)), linalg.solve_sylvester(T(a), T(EYE), T(b * bad)),
        linalg.solve_banded((1, 1), T(spoilt), T(b)), linalg.lstsq(T(spoilt), T(b)).x, linalg.lstsq(T(spoilt), T(b)).s,
        linalg.polar(T(spoilt)).u, linalg.polar(T(spoilt)).p, linalg.solve_continuous_are(T(spoilt), T(b), T(np.eye(3)), T(EYE)),
        linalg.solve_discrete_are(T(a), T(b), T(spoilt), T(EYE)),
    ):  # fmt: skip
        assert np.isnan(values(found)).all()
    assert np.isnan(gradient(lambda x: linalg.lstsq(x, T(b)).x, spoilt)).all()
    assert np.isnan(gradient(lambda x: linalg.polar(x).u, spoilt)).all()
    assert np.isnan(values(linalg.solve_triangular(T(a), T(b * np.nan)))).all()


@pytest.mark.parametrize("name", ["logm", "sqrtm"])
def test_what_is_not_real_of_a_real_matrix_is_nan_and_given_complex_it_is_scipys(name: str) -> None:
    x = np.array([[-1.0, 0.3], [0.0, 2.0]])
    found = getattr(linalg, name)(T(np.stack([x, 2.0 * EYE])))
    assert found.dtype == xp.float64
    assert np.isnan(values(found)[0]).all()
    np.testing.assert_allclose(values(found)[1], getattr(theirs, name)(2.0 * EYE), atol=1e-15)
    np.testing.assert_allclose(values(getattr(linalg, name)(T(x + 0j))), getattr(theirs, name)(x), rtol=1e-14, atol=1e-15)
    assert np.isnan(gradient(getattr(linalg, name), x)).all()
    check(getattr(linalg, name), [x + 1e-1j])


def test_singular_matrices() -> None:
    for x in (np.zeros((2, 2)), np.ones((2, 2)), np.diag([4.0, 0.0]), np.diag([4.0, 0.0]) + 0j):
        assert np.isnan(values(linalg.logm(T(x)))).all()
    np.testing.assert_allclose(values(linalg.sqrtm(T(np.ones((2, 2))))), np.full((2, 2), 0.5**0.5))
    np.testing.assert_allclose(values(linalg.sqrtm(T(np.diag([4.0, 0.0])))), np.diag([2.0, 0.0]))
    assert np.isnan(values(linalg.sqrtm(T(np.diag([1e20, -1.0]))))).all()  # -1 is small compared with 1e20, but not a rounding error
    with pytest.raises(np.linalg.LinAlgError, match="as the derivative of `sqrtm` it is if the matrix is singular"):
        gradient(linalg.sqrtm, np.diag([4.0, 0.0]))
    for name in ("u", "p"):
        assert np.isnan(gradient(lambda x, n=name: getattr(linalg.polar(x), n), np.diag([4.0, 0.0]))).all()
    for call in (
        lambda: linalg.solve_sylvester(T(EYE), T(-EYE), T(EYE)), lambda: linalg.solve_continuous_lyapunov(T(0.0 * EYE), T(EYE)),
        lambda: linalg.solve_discrete_lyapunov(T(EYE), T(EYE)), lambda: linalg.solve_triangular(T(0.0 * EYE), T(ONE)),
        lambda: linalg.solve_triangular(T(np.zeros((2, 2, 2))), T(ONE)), lambda: linalg.solve_banded((1, 0), T(0.0 * EYE), T(ONE)),
        lambda: linalg.cho_factor(T(-EYE)), lambda: linalg.solve_continuous_are(T(EYE), T(0.0 * EYE), T(EYE), T(EYE)),
    ):  # fmt: skip
        with pytest.raises(np.linalg.LinAlgError):
            call()


@pytest.mark.parametrize("x", [np.eye(3), np.array([[0.0, -2.0], [2.0, 0.0]]), np.ones((2, 1)) * np.sqrt(0.5)], ids=["1", "turn", "column"])
def test_the_polar_decomposition_is_differentiable_where_singular_values_coincide(x: np.ndarray, xpgrad_device: str) -> None:
    for side in ("right", "left"):
        if side == "right" or len(x) == x.shape[1]:
            check(lambda a, s=side: linalg.polar(a, s), [x], xpgrad_device)


def test_the_other_triangle_is_neither_read_nor_differentiated(xpgrad_device: str) -> None:
    for shape in ((2, 2), (3, 2, 2)):
        for unit in (False, True):
            a = np.array([[2.0, np.nan], [3.0, np.nan if unit else 4.0]])
            leaf = xp.tensor(np.broadcast_to(a, shape).copy(), device=xpgrad_device, requires_grad=True)
            out = linalg.solve_triangular(leaf, xp.ones(2, dtype=leaf.dtype, device=xpgrad_device), lower=True, unit_diagonal=unit)
            assert np.isfinite(values(out)).all()
            xp.sum(out).backward()
            assert np.isfinite(values(leaf.grad)).all()
            assert (values(leaf.grad)[..., 0, 1] == 0.0).all()
            assert (values(leaf.grad)[..., 1, 1] == 0.0).all() == unit


def test_what_lies_beyond_the_corners_is_neither_read_nor_differentiated(xpgrad_device: str) -> None:
    ab = np.array([[np.nan, 0.3, 0.2], [2.0, 3.0, 4.0], [0.5, 0.1, np.nan]])
    leaf = xp.tensor(ab, device=xpgrad_device, requires_grad=True)
    out = linalg.solve_banded((1, 1), leaf, xp.ones(3, dtype=leaf.dtype, device=xpgrad_device))
    xp.sum(out).backward()
    assert np.isfinite(values(out)).all()
    assert (values(leaf.grad)[[0, 2], [0, 2]] == 0.0).all()
    assert np.isfinite(values(leaf.grad)).all()


def test_least_squares_say_the_rank_and_shapes_do_not_depend_on_it() -> None:
    a = np.stack([np.ones((3, 2)), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])])
    found = linalg.lstsq(T(a), T(np.array([[1.0], [2.0], [3.0]])))
    assert found.rank.tolist() == [1, 2]
    assert found.residues.shape == (2, 1)
    np.testing.assert_allclose(values(found.residues)[:, 0], [2.0, 9.0])
    np.testing.assert_allclose(values(found.x)[0, :, 0], theirs.lstsq(a[0], [1.0, 2.0, 3.0])[0])
    assert linalg.lstsq(T(a[0]), T(np.ones(3)), cond=0.0).rank.item() in (1, 2)
    assert linalg.lstsq(T(np.diag([1.0, 0.1])), T(ONE), cond=0.5).x.tolist() == [1.0, 0.0]
    check(lambda b: linalg.lstsq(T(np.ones((3, 2))), b).x if b.device == "numpy" else b, [np.array([1.0, 2.0, 3.0])])


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_residues_of_0_have_second_derivatives(dtype: Any, xpgrad_device: str) -> None:
    a = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], dtype)  # the first two equations are solved exactly
    for b in (np.array([1.0, 2.0, 3.0], dtype), np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0]], dtype)):
        check(lambda a, b: linalg.lstsq(a, b)[1], [a, b], xpgrad_device)


def test_matrices_without_elements() -> None:
    for name in ("expm", "logm", "sqrtm"):
        for shape in ((0, 0), (2, 0, 0), (0, 3, 3)):
            assert getattr(linalg, name)(T(np.zeros(shape))).shape == gradient(getattr(linalg, name), np.zeros(shape)).shape == shape
    assert linalg.polar(T(np.zeros((3, 0)))).p.shape == (0, 0)
    assert linalg.solve_triangular(T(np.zeros((0, 0))), T(np.zeros((0, 2)))).shape == (0, 2)
    assert linalg.solve_triangular(T(EYE), T(np.zeros((2, 0)))).shape == (2, 0)
    assert linalg.solve_sylvester(T(np.zeros((0, 0))), T(EYE), T(np.zeros((0, 2)))).shape == (0, 2)
    assert linalg.solve_banded((1, 1), T(np.zeros((3, 0))), T(np.zeros(0))).shape == (0,)
    none, flat = linalg.lstsq(T(np.zeros((0, 2))), T(np.zeros((0, 3)))), linalg.lstsq(T(np.zeros((3, 0))), T(np.ones(3)))
    assert (none.x.shape, none.residues.shape, none.s.shape, none.rank.item()) == ((2, 3), (0,), (0,), 0)
    assert (flat.x.shape, flat.residues.item()) == ((0,), 3.0)
    assert linalg.toeplitz(T(np.zeros(0))).shape == (0, 0)
    assert linalg.circulant(T(np.zeros(0))).shape == (0, 0)
    assert linalg.block_diag().shape == theirs.block_diag().shape
    assert linalg.block_diag(T(np.zeros(0)), T(np.ones((2, 3)))).shape == theirs.block_diag([], np.ones((2, 3))).shape


def test_sizes_far_from_one(xpgrad_device: str) -> None:
    exact = has_float64(xpgrad_device)
    for x in (np.diag([-1e5, -2.0]), np.array([[0.0, 1e12], [0.0, 0.0]]), np.diag([1e-20, 0.0]), np.array([[-300.0, 1e8], [0.0, -1.0]])):
        found = linalg.expm(T(x if exact else x.astype(np.float32), device=xpgrad_device))
        np.testing.assert_allclose(values(found), theirs.expm(x), rtol=1e-9 if exact else 1e-3, atol=0.0 if exact else 1e-30)
    if exact:
        # The derivative is linear in the direction, whether this is huge or tiny compared with the matrix.
        a, e = numbers((3, 3)) + 3.0 * np.eye(3), numbers((3, 3), 2.0)
        for name in ("expm", "logm", "sqrtm"):
            along = lambda s, n=name: xp.func.jvp(getattr(linalg, n), (T(a),), (T(e * s),))[1]  # noqa: E731 (a closure)
            for size in (1e12, 1e-200):
                np.testing.assert_allclose(values(along(size)) / size, values(along(1.0)), rtol=1e-11, atol=1e-14)


# -- operands ----------------------------------------------------------------------------------------------------------------


def test_integers_and_arrays_are_operands() -> None:
    whole = T(np.array([[2, 1], [0, 3]]))
    for name in ("expm", "logm", "sqrtm"):
        np.testing.assert_allclose(values(getattr(linalg, name)(whole)), getattr(theirs, name)(np.array([[2.0, 1], [0, 3]])), atol=1e-15)
    assert linalg.solve_triangular(whole, T(np.array([1, 2]))).dtype == xp.float64
    assert linalg.solve_triangular(whole, np.array([1.0, 2.0])).tolist() == theirs.solve_triangular([[2, 1], [0, 3]], [1.0, 2.0]).tolist()
    assert linalg.expm(np.zeros((2, 2))).tolist() == EYE.tolist()
    assert linalg.toeplitz(T(np.arange(3))).dtype == xp.int64
    assert linalg.block_diag(whole, T(3)).tolist() == theirs.block_diag([[2, 1], [0, 3]], 3).tolist()
    assert linalg.solve_triangular(T(EYE.astype(np.float32)), T(ONE + 0j)).dtype == xp.complex128
    for name in ("expm", "logm", "sqrtm"):
        for count in (1, 20):
            assert getattr(linalg, name)(T(np.stack([EYE.astype(np.float16)] * count))).dtype == xp.float16
    factor, lower = linalg.cho_factor(T(4.0 * EYE))
    assert (factor.tolist(), lower) == ((2.0 * EYE).tolist(), False)


BAD: list[tuple[Any, Any, str]] = [
    (lambda: linalg.expm([[1.0]]), TypeError, r"scipy\.linalg\.expm` needs a Tensor, but got"),
    (lambda: linalg.expm(T(np.ones((2, 3)))), ValueError, r"expm: `A` must be a square matrix, .* but has shape \(2, 3\)"),
    (lambda: linalg.logm(T(ONE)), ValueError, "logm: `A` must be a matrix, or a stack of them"),
    (lambda: linalg.sqrtm(2.0), TypeError, r"scipy\.linalg\.sqrtm` needs a Tensor"),
    (lambda: linalg.polar(T(EYE), "up"), ValueError, "polar: `side` must be 'right' or 'left', but got 'up'"),
    (lambda: linalg.polar(T(ONE)), ValueError, "polar: `a` must be a matrix"),
    (lambda: linalg.solve_triangular(T(EYE), T(ONE), trans=5), ValueError, "must be one of 0, 1, 2, 'N', 'T', 'C', but got int 5"),
    (lambda: linalg.solve_triangular(T(EYE), T(ONE), trans=True), ValueError, "`trans` must be one of"),
    (lambda: linalg.solve_triangular(T(EYE), T(ONE), lower="yes"), TypeError, "lar: `lower` must be a bool, but got str 'yes'"),
    (lambda: linalg.solve_triangular(T(EYE), T(np.ones(3))), ValueError, r"`b` must have shape \(2,\) or \(\.\.\., 2, K\) to fit `a`"),
    (lambda: linalg.solve_triangular(T(EYE), T(1.0)), ValueError, r"`b` must have shape \(2,\)"),
    (lambda: linalg.solve_triangular(T(np.ones((2, 2, 2))), T(np.ones((3, 2, 1)))), ValueError, "do not broadcast together"),
    (lambda: linalg.solve_triangular(T(EYE), xp.ones(2, device="numpy+readonly")), xp.DeviceMismatchError, r"scipy\.linalg\.solve_tri"),
    (lambda: linalg.solve_banded(3, T(EYE), T(ONE)), TypeError, "`l_and_u` must be a pair of ints, but got int 3"),
    (lambda: linalg.solve_banded((1, 1), T(EYE), T(ONE)), ValueError, r"`ab` must have 1 \+ 1 \+ 1 rows"),
    (lambda: linalg.solve_banded((-1, 2), T(EYE), T(ONE)), ValueError, "must not be negative"),
    (lambda: linalg.solve_banded((0.5, 1), T(EYE), T(ONE)), TypeError, "`l_and_u` must be an int, but got float"),
    (lambda: linalg.solve_banded((0, 1), T(EYE), T(np.ones(3))), ValueError, "to fit `ab`"),
    (lambda: linalg.solve_sylvester(T(EYE), T(np.eye(3)), T(np.ones((3, 2)))), ValueError, r"`q` must have shape \(\.\.\., 2, 3\)"),
    (lambda: linalg.solve_continuous_lyapunov(T(EYE), T(np.eye(3))), ValueError, "`q` must have matrices of the shape of those of `a`"),
    (lambda: linalg.solve_discrete_lyapunov(T(EYE), T(EYE), "x"), ValueError, "`method` must be 'direct' or 'bilinear'"),
    (lambda: linalg.solve_continuous_are(T(EYE), T(EYE[:, :1]), T(EYE), T(EYE)), ValueError, "`r` must have shape"),
    (lambda: linalg.solve_discrete_are(T(EYE), T(EYE), T(np.ones((2, 3))), T(EYE)), ValueError, "`q` must be a square matrix"),
    (lambda: linalg.solve_discrete_are(T(np.eye(3)), T(EYE[:, :1]), T(EYE), T(EYE[:1, :1])), ValueError, "`a` must have shape"),
    (lambda: linalg.cho_solve(T(EYE), T(ONE)), TypeError, "`c_and_lower` must be the pair that `cho_factor` returns"),
    (lambda: linalg.cho_solve((T(EYE), 'no'), T(ONE)), TypeError, "`lower` must be a bool"),
    (lambda: linalg.lstsq(T(EYE), T(ONE), cond="x"), TypeError, "`cond` must be a real number or None, but got str 'x'"),
    (lambda: linalg.lstsq(T(EYE), T(np.ones(3))), ValueError, r"`b` must have shape \(2,\)"),
    (lambda: linalg.toeplitz(T(1.0)), ValueError, "`c` must be a vector"),
    (lambda: linalg.toeplitz(T(np.ones((2, 3))), T(np.ones((3, 3)))), ValueError, r"scipy\.linalg\.toeplitz: shapes"),
    (lambda: linalg.block_diag(T(np.ones((2, 2, 3))), T(np.ones((3, 3, 3)))), ValueError, "do not broadcast together"),
    (lambda: linalg.block_diag([1.0, 2.0]), TypeError, r"scipy\.linalg\.block_diag` needs a Tensor"),
    (lambda: linalg.hankel(None), TypeError, r"scipy\.linalg\.hankel` needs a Tensor"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "message"), BAD)
def test_what_does_not_fit_is_refused_by_name(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_stacks_broadcast(data: Any) -> None:
    shapes = data.draw(mutually_broadcastable_shapes(num_shapes=2, max_dims=2, max_side=3))
    n, k = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    dtype = data.draw(st.sampled_from([np.float64, np.complex128]))
    a, b = matrices((*shapes.input_shapes[0], n, n), dtype, shift=4.0), numbers((*shapes.input_shapes[1], n, k), 2.0, dtype)
    lower, unit = data.draw(st.booleans()), data.draw(st.booleans())
    below, above = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    ab = numbers((*shapes.input_shapes[0], below + above + 1, n), 1.0, dtype)
    ab[..., above, :] += 8.0
    calls = [
        (lambda m, a, b: m.solve_triangular(a, b, lower=lower, unit_diagonal=unit), a, b),
        (lambda m, ab, b: m.solve_banded((below, above), ab, b), ab, b),
        (lambda m, a, b: m.lstsq(a, b)[0], a, b),
        (lambda m, a, b: m.block_diag(a, b), a, b),
    ]
    for call, first, second in calls:
        xs = [xp.tensor(v, requires_grad=True) for v in (first, second)]
        out = call(linalg, *xs)
        spread = [np.broadcast_to(v, shapes.result_shape + v.shape[-2:]) for v in (first, second)]
        expected = np.zeros(out.shape, dtype)
        assert out.shape[:-2] == shapes.result_shape
        for i in np.ndindex(shapes.result_shape):
            expected[i] = call(theirs, *(v[i] for v in spread))
        np.testing.assert_allclose(values(out), expected, rtol=1e-9, atol=1e-9)
        xp.sum(xp.real(out)).backward()
        for x in xs:
            assert x.grad is not None
            assert x.grad.shape == x.shape


# -- which library computes ----------------------------------------------------------------------------------------------------


def test_compositions_are_what_scipy_computes(xpgrad_device: str) -> None:
    """Law: the compositions used without SciPy, or if the memory is not the host's, give SciPy's results."""
    like = xp.zeros(0, dtype=xp.float64 if has_float64(xpgrad_device) else xp.float32, device=xpgrad_device)
    kernels, dtype = like.backend.kernels, np.dtype(like.dtype.name)
    raw = lambda x: T(np.asarray(x, dtype), device=xpgrad_device)._array  # noqa: E731 (short)
    host = lambda x: values(like.backend.wrap(x))  # noqa: E731 (short)
    rtol = loosen(1e-12, xpgrad_device)
    a, b, q = matrices((2, 3, 3), dtype, shift=3.0), matrices((2, 2), dtype, shift=2.0), numbers((3, 2), 1.0, dtype)
    found = host(equations._by_kronecker(kernels, raw(a), raw(b), raw(q)))
    np.testing.assert_allclose(found, [theirs.solve_sylvester(x, b, q) for x in a], rtol=rtol, atol=rtol)
    ab = numbers((2, 4, 5), 1.0, dtype) + 3.0 * np.eye(4)[:, 2:3]
    ab[:, 0, :2] = ab[:, 1, 0] = ab[:, 3, -1] = np.nan
    found = host(equations._solve_dense(kernels, raw(ab), raw(numbers((5, 1))), 1, 2))
    np.testing.assert_allclose(found, [theirs.solve_banded((1, 2), np.nan_to_num(x), numbers((5, 1))) for x in ab], rtol=rtol, atol=rtol)
    b, q, r = numbers((3, 2), 2.0, dtype), matrices((3, 3), dtype, 3.0, 3.0), matrices((2, 2), dtype, 4.0, 3.0)
    q, r = q @ q.T, r @ r.T
    for composed, solve in ((riccati._continuous, theirs.solve_continuous_are), (riccati._discrete, theirs.solve_discrete_are)):
        found = host(composed(kernels, raw(a), raw(b), raw(q), raw(r)))
        np.testing.assert_allclose(found, [solve(x, b, q, r) for x in a], rtol=rtol, atol=rtol * 100)
    q = numbers((3, 2), 1.0, dtype)
    for turned in (False, True):
        for lower in (False, True):
            for unit in (False, True):
                found = host(equations._triangular(kernels, raw(a), raw(q), turned, lower, unit))
                expected = [theirs.solve_triangular(x, q, trans=int(turned), lower=lower, unit_diagonal=unit) for x in a]
                np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    for known in (True, False):
        several = np.stack([numbers((3, 3), s) * 4.0**s for s in range(-3, 4)] + [np.zeros((3, 3)), np.full((3, 3), np.nan)])
        found = host(functions._scale_and_square(kernels, raw(several), known))
        np.testing.assert_allclose(found[:-1], theirs.expm(several[:-1]), rtol=max(rtol, 1e-11), atol=rtol)
        assert np.isnan(found[-1]).all()


def test_a_large_stack_of_exponentials_is_a_loop(xpgrad_device: str) -> None:
    x = numbers((3, 7, 2, 2)) * np.exp(numbers((3, 7, 1, 1), 2.0) * 4.0)
    found = values(linalg.expm(xp.asarray(x if has_float64(xpgrad_device) else x.astype(np.float32), device=xpgrad_device)))
    np.testing.assert_allclose(found, theirs.expm(x), rtol=loosen(1e-12, xpgrad_device), atol=loosen(1e-12, xpgrad_device))


def test_triangles_of_every_size_are_solved_one_by_one_or_at_once() -> None:
    for n in (2, 40):
        a, b = np.triu(numbers((3, n, n))) / n + 2.0 * np.eye(n), numbers((n, 2))
        for turned in (0, 1):
            found = linalg.solve_triangular(T(a), T(b), turned)
            np.testing.assert_allclose(values(found), [theirs.solve_triangular(x, b, turned) for x in a], rtol=1e-12, atol=1e-12)


WITHOUT = """
import sys
sys.modules["scipy"] = None
import numpy as np, xpgrad as xp
from xpgrad.scipy import linalg
a = xp.tensor([[2.0, 0.5], [0.0, 3.0]], requires_grad=True)
eye = xp.eye(2)
for out in (linalg.expm(a), linalg.solve_triangular(a, eye), linalg.solve_sylvester(a, a, eye), linalg.solve_banded((1, 0), a, eye),
            linalg.solve_continuous_are(a, eye, eye, eye), linalg.solve_discrete_are(a, eye, eye, eye),
            linalg.lstsq(a, eye).x, linalg.polar(a).u, linalg.solve_discrete_lyapunov(a, eye), linalg.toeplitz(a[0])):
    (g,) = xp.autograd.grad(xp.sum(out), a)
    assert np.isfinite(g.numpy()).all()
for f in (linalg.logm, linalg.sqrtm):
    try:
        f(a)
    except xp.CapabilityError as exc:
        print(exc)
"""


def test_without_scipy_compositions_remain_and_the_others_say_what_to_install() -> None:
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False, env={"PYTHONPATH": search_path(), "PATH": ""}
    )
    assert run.returncode == 0, run.stderr
    told = "is computed by SciPy, which is not installed; run `pip install 'xpgrad[scipy]'`"
    assert run.stdout.splitlines() == [f"scipy.linalg.{name} {told}" for name in ("logm", "sqrtm")]


def test_it_is_a_part_that_loads_late_and_its_functions_are_known() -> None:
    assert xp.scipy.linalg is linalg
    assert EXTRAS["scipy.linalg.expm"] is linalg.expm
    assert [n for n in dir(linalg) if not n.startswith("_")] == sorted(linalg.__all__)
    run = [
        sys.executable,
        "-c",
        "import sys, xpgrad, xpgrad.scipy; print([m for m in sys.modules if 'scipy.' in m and 'xpgrad.scipy._' not in m])",
    ]
    assert subprocess.run(run, capture_output=True, text=True, check=True, env={"PYTHONPATH": search_path(), "PATH": ""}).stdout == "[]\n"
