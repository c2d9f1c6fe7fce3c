"""Law: `xpgrad.linalg` has the standard's values, and the gradients of finite differences and of PyTorch, to second order.

The operands are stacks of matrices, square and rectangular, real and complex; losses of complex factorisations do not depend on undefined
phases. One table of calls drives the comparison of values, and one of differentiable functions drives all others.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support.central_differences import cast_for_device, differences, loosen
from xpgrad import linalg as la
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, RULES
from xpgrad.scipy import linalg as scipy_linalg

pytestmark = pytest.mark.slow(one_in=3)

strict = pytest.importorskip("array_api_strict", reason="the reference namespace of the standard")

inf = math.inf
NAMES = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power",
    "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace",
    "vecdot", "vector_norm",
]  # fmt: skip
SHARED = ("matmul", "matrix_transpose", "tensordot", "vecdot")  # with the main namespace
MATRIX_ORDERS = ("fro", "nuc", 1, -1, 2, -2, inf, -inf, None)
VECTOR_ORDERS = (1, 2, 3, 0.5, 1.5, 2.5, -1, -2.5, inf, -inf)


def draw(shape: tuple[int, ...], dtype: Any = "float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def positive(shape: tuple[int, ...], dtype: Any = "float64") -> np.ndarray:
    """Return Hermitian positive definite matrices."""
    x = draw(shape, dtype)
    return (x @ np.swapaxes(x.conj(), -1, -2) + np.eye(shape[-1])).astype(dtype)


def numpy_of(t: Any) -> np.ndarray:
    """Return the values of a Tensor of either library."""
    if isinstance(t, xp.Tensor):
        return t.detach().numpy()
    return (t.detach() + 0).resolve_conj().resolve_neg().numpy(force=True)


def dot(w: np.ndarray, y: np.ndarray) -> float:
    """Return the real inner product, whose gradients are PyTorch's."""
    return float(np.real(np.sum(np.conj(w) * y)))


# -- the namespace -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_signatures_are_the_standards(name):
    ours, theirs = (inspect.signature(getattr(lib, name)).parameters for lib in (la, strict.linalg))
    positional = {"axes"} if name == "tensordot" else set()  # as in NumPy and PyTorch
    kinds = {p.name: p.POSITIONAL_OR_KEYWORD if p.name in positional else p.kind for p in theirs.values()}
    assert sorted((p.name, p.kind, p.default) for p in ours.values()) == sorted((p.name, kinds[p.name], p.default) for p in theirs.values())


def test_every_function_is_in_one_table():
    functions = [name for name in la.__all__ if not name.endswith("Result")]
    assert sorted(functions) == NAMES
    for name in NAMES:
        key = name if name in SHARED else f"linalg.{name}"
        assert [key in table for table in (RULES, NONDIFFERENTIABLE, COMPOSITE)].count(True) == 1
        if name in SHARED:
            assert getattr(la, name) is getattr(xp, name)


# -- values ------------------------------------------------------------------------------------------------------------------

#: (name, operands' shapes or "spd" + shape, keyword or further positional arguments)
VALUES: list[tuple[str, tuple[Any, ...], tuple[Any, ...], dict[str, Any]]] = [
    *(("cholesky", (("spd", 2, 3, 3),), (), {"upper": u}) for u in (False, True)),
    ("cross", ((2, 3), (2, 3)), (), {}), ("cross", ((3, 4), (3, 1)), (), {"axis": -2}),
    ("det", ((2, 3, 3),), (), {}), ("det", ((0, 0),), (), {}),
    *(("diagonal", ((2, 3, 5),), (), {"offset": k}) for k in (0, 1, -1, 4, -2)),
    ("eig", ((2, 3, 3),), (), {}), ("eigvals", ((2, 3, 3),), (), {}),
    ("eigh", (("spd", 2, 3, 3),), (), {}), ("eigvalsh", (("spd", 2, 3, 3),), (), {}), ("inv", ((2, 3, 3),), (), {}),
    ("matmul", ((2, 3, 4), (4, 5)), (), {}), ("matrix_transpose", ((2, 3, 4),), (), {}), ("outer", ((3,), (4,)), (), {}),
    *(("matrix_norm", ((2, 3, 4),), (), {"ord": p, "keepdims": k}) for p in MATRIX_ORDERS for k in (False, True)),
    *(("matrix_power", ((2, 3, 3),), (n,), {}) for n in (0, 1, 2, 5, -1, -3)),
    ("matrix_rank", ((2, 3, 4),), (), {}), ("matrix_rank", ((2, 3, 4),), (), {"rtol": 0.5}),
    ("pinv", ((2, 3, 4),), (), {}), ("pinv", ((4, 2),), (), {"rtol": 0.4}),
    *(("qr", (s,), (), {"mode": m}) for s in ((2, 3, 3), (4, 2), (2, 4)) for m in ("reduced", "complete")),
    ("slogdet", ((2, 3, 3),), (), {}), ("solve", ((2, 3, 3), (3,)), (), {}), ("solve", ((3, 3), (2, 3, 4)), (), {}),
    ("solve", ((3, 3), (3, 1)), (), {}), ("svdvals", ((2, 3, 4),), (), {}),
    *(("svd", (s,), (), {"full_matrices": f}) for s in ((2, 3, 3), (4, 2), (2, 4)) for f in (False, True)),
    ("tensordot", ((2, 3, 4), (3, 4, 5)), (), {"axes": 2}), ("vecdot", ((2, 3), (2, 3)), (), {}),
    ("trace", ((2, 3, 4),), (), {}), ("trace", ((2, 3, 4),), (), {"offset": -1}),
    *(("vector_norm", ((2, 3, 4),), (), {"ord": p, "axis": a}) for p in (0, *VECTOR_ORDERS) for a in (None, 1, (0, -1))),
    ("vector_norm", ((2, 3),), (), {"keepdims": True}), ("vector_norm", ((2, 3),), (), {"keepdims": True, "axis": 1, "ord": 0}),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(("name", "shapes", "args", "kw"), VALUES, ids=lambda v: str(v).replace(" ", ""))
def test_values(name, shapes, args, kw, dtype):
    raw = [positive(s[1:], dtype) if s[:1] == ("spd",) else draw(s, dtype, k) for k, s in enumerate(shapes)]
    expected = getattr(strict.linalg, name)(*map(strict.asarray, raw), *args, **kw)
    got = getattr(la, name)(*map(xp.asarray, raw), *args, **kw)
    if isinstance(expected, tuple):
        assert got._fields == expected._fields
    else:
        got, expected = (got,), (expected,)
    tolerance = 1e-3 if dtype in ("float32", "complex64") else 1e-10
    for ours, theirs in zip(got, expected, strict=True):
        theirs = np.from_dlpack(theirs)
        assert (ours.numpy().dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=tolerance, atol=tolerance)


def test_traces_of_integers_and_in_another_dtype():
    x = xp.asarray(np.arange(6, dtype=np.int8).reshape(2, 3))
    assert (la.trace(x).dtype, la.trace(x).item(), la.trace(x, offset=9).item()) == (xp.int64, 4, 0)
    assert la.trace(xp.astype(x, xp.float32), dtype=xp.float64).dtype is xp.float64


# -- gradients ---------------------------------------------------------------------------------------------------------------


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose."""
    return x.mT if not (x.dtype.is_complex if isinstance(x, xp.Tensor) else x.is_complex()) else x.mT.conj()


def herm(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def recompose(u: Any, s: Any, vh: Any) -> Any:
    """Return a function of all factors that does not depend on phases."""
    return (u * s[..., None, :] ** 2) @ vh + abs(u) @ abs(vh)


def spectral(w: Any, v: Any) -> Any:
    return (v * w[..., None, :] ** 2) @ adjoint(v) + abs(v)


def whole(u: Any, s: Any, vh: Any, k: int) -> Any:
    return recompose(u[..., :, :k], s, vh[..., :k, :])


def general(ns: Any, x: Any) -> Any:
    """Return a function of eigenvalues and moduli of eigenvectors that does not depend on order, phases or signs."""
    w, v = ns.eig(x)
    return (v * w[..., None, :] ** 3) @ ns.inv(v) + (abs(v) ** 3 * w[..., None, :] ** 2) @ (abs(v).mT + 0 * w[..., None])


T = (2, 4, 3)  # tall
W = (2, 3, 4)  # wide
S = (2, 3, 3)  # square
#: name: (function of a namespace of linear algebra and Tensors, shapes), with PyTorch's spelling where it differs
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "inv": (lambda ns, x: ns.inv(x), S),
    "det": (lambda ns, x: ns.det(x), S),
    "logabsdet": (lambda ns, x: ns.slogdet(x)[1], S),
    "pinv tall": (lambda ns, x: ns.pinv(x), T),
    "pinv wide": (lambda ns, x: ns.pinv(x), W),
    "solve": (lambda ns, a, b: ns.solve(a, b), S, (2, 3, 2)),
    "solve broadcast": (lambda ns, a, b: ns.solve(a, b), (3, 3), (2, 3, 2)),
    "solve vector": (lambda ns, a, b: ns.solve(a, b), (3, 3), (3,)),
    "cholesky": (lambda ns, x: ns.cholesky(herm(x)), S),
    "cholesky upper": (lambda ns, x: ns.cholesky(herm(x), upper=True), S),
    "eigvals": (lambda ns, x: sum(ns.eigvals(x)[..., k] ** 3 for k in range(3)), S),
    "eig": (general, S),
    "eigvalsh": (lambda ns, x: ns.eigvalsh(herm(x)), S),
    "eigh": (lambda ns, x: spectral(*ns.eigh(herm(x))), S),
    "eigh vectors": (lambda ns, x: abs(ns.eigh(herm(x))[1]), S),
    **{f"qr {k} {s[-2:]}": (lambda ns, x, k=k: ns.qr(x)[k], s) for k in (0, 1) for s in (T, W, S)},
    "qr complete": (lambda ns, x: ns.qr(x, mode="complete")[0] @ ns.qr(x, mode="complete")[1][..., :3], W),
    "svdvals": (lambda ns, x: ns.svdvals(x), W),
    **{f"svd {s[-2:]}": (lambda ns, x: recompose(*ns.svd(x, full_matrices=False)), s) for s in (T, W, S)},
    "svd full": (lambda ns, x: whole(*ns.svd(x), 3), T),
    "svd left": (lambda ns, x: abs(ns.svd(x, full_matrices=False)[0]), T),
    "svd right": (lambda ns, x: abs(ns.svd(x, full_matrices=False)[2]), W),
    **{f"matrix_power {n}": (lambda ns, x, n=n: ns.matrix_power(x, n), S) for n in (1, 3, -2)},
    **{f"matrix_norm {p}": (lambda ns, x, p=p: ns.matrix_norm(x, ord=p), W) for p in MATRIX_ORDERS if p is not None},
    **{f"vector_norm {p}": (lambda ns, x, p=p: ns.vector_norm(x, ord=p), (2, 3)) for p in VECTOR_ORDERS},
    "vector_norm axis": (lambda ns, x: ns.vector_norm(x, axis=(0, 2), keepdims=True), W,
                         lambda ns, x: ns.vector_norm(x, dim=(0, 2), keepdim=True)),
    "cross": (lambda ns, a, b: ns.cross(a, b, axis=-2), (3, 2), (3, 1), lambda ns, a, b: ns.cross(a, b, dim=-2)),
    "outer": (lambda ns, a, b: ns.outer(a, b), (3,), (2,), lambda ns, a, b: a[:, None] * b),
    "vecdot": (lambda ns, a, b: ns.vecdot(a, b), (2, 3), (2, 3)),
    "diagonal": (lambda ns, x: ns.diagonal(x, offset=1) ** 2, W),
    "diagonal below": (lambda ns, x: ns.diagonal(x, offset=-2) ** 2, W),
    "trace": (lambda ns, x: ns.trace(x * x, offset=-1), T, lambda ns, x: ns.diagonal(x * x, offset=-1).sum(-1)),
}  # fmt: skip
SPECIAL = {  # functions whose operands need a property
    "cholesky": positive, "cholesky upper": positive, "eigh": positive, "eigh vectors": positive, "eigvalsh": positive,
}  # fmt: skip


def operands(name: str, dtype: str) -> list[np.ndarray]:
    shapes = [s for s in FUNCTIONS[name][1:] if isinstance(s, tuple)]
    if name in SPECIAL:
        return [SPECIAL[name](shapes[0], dtype)]
    return [draw(s, dtype, k) for k, s in enumerate(shapes)]


def derivatives(lib: Any, f: Any, raw: list[np.ndarray], order: int = 2) -> list[np.ndarray]:
    """Return the value, its vjp with a fixed cotangent, and the vjp of that with another cotangent."""
    leaf = lib.tensor if lib is not xp else functools.partial(xp.tensor, device=str(xp.get_default_device()))
    xs = [leaf(a, requires_grad=True) for a in raw]
    y = f(lib.linalg, *xs)
    w = leaf(draw(tuple(y.shape), numpy_of(y).dtype, 1))
    first = lib.autograd.grad(y, xs, w, create_graph=True)
    out = [y, *first]
    if order > 1:
        live = [(g, k) for k, g in enumerate(first) if g.requires_grad]
        vs = [leaf(draw(tuple(g.shape), numpy_of(g).dtype, 2 + k)) for g, k in live]
        second = lib.autograd.grad([g for g, _ in live], xs, vs, allow_unused=True) if live else [None] * len(xs)
        out += [xs[k] * 0 if h is None else h for k, h in enumerate(second)]
    return [numpy_of(t) for t in out]


@pytest.mark.slow(one_in=13)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_are_finite_differences(name, dtype):
    check(FUNCTIONS[name][0], operands(name, dtype))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 0, 3)], ids=str)
def test_matrices_without_elements_have_norms_of_0_and_inverses(shape, xpgrad_device):
    x = xp.zeros(shape, dtype=xp.float32, requires_grad=True, device=xpgrad_device)
    norms = [la.matrix_norm(x, ord=order) for order in (1, 2, inf, "fro", "nuc")]
    assert all(norm.shape == shape[:-2] and bool(xp.all(norm == 0)) for norm in norms)
    inverse = la.pinv(x, rtol=0.3)
    assert inverse.shape == (*shape[:-2], shape[-1], shape[-2])
    xp.sum(sum(map(xp.sum, norms), start=xp.sum(inverse))).backward()
    assert x.grad.shape == shape


@pytest.mark.parametrize("kept", [1, 2])
@pytest.mark.parametrize("shape", [T, W, S], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_a_pseudoinverse_without_small_singular_values(dtype, shape, kept):
    """Values that are left out but not 0 turn the ranges of the others. PyTorch's gradient is that of a matrix of constant rank."""
    u, s, vh = np.linalg.svd(draw(shape, dtype), full_matrices=False)
    s = s / s[..., :1] * 0 + np.array([3.0, 1.2, 0.9] if kept == 2 else [3.0, 0.9, 0.5])
    check(lambda ns, x: ns.pinv(x, rtol=0.35), [(u * s[..., None, :]) @ vh])


def check(f: Any, raw: list[np.ndarray], tolerance: float = 1e-5) -> None:
    """Compare first derivatives, and second ones along one direction, with central differences."""
    n = len(raw)
    y, *rest = derivatives(xp, f, raw)
    w = draw(y.shape, y.dtype, 1)
    vs = [draw(a.shape, a.dtype, 2 + k) for k, a in enumerate(raw)]

    def loss(k: int, b: np.ndarray) -> float:
        return dot(w, f(la, *(xp.asarray(b if i == k else a) for i, a in enumerate(raw))).numpy())

    def directional(k: int, b: np.ndarray) -> float:
        firsts = derivatives(xp, f, [b if i == k else a for i, a in enumerate(raw)], order=1)[1:]
        return sum(dot(v, g) for v, g in zip(vs, firsts))

    for k, a in enumerate(raw):
        scale = 1 + np.abs(rest[k]).max()
        np.testing.assert_allclose(rest[k], differences(lambda b, k=k: loss(k, b), a), atol=tolerance * scale)
        scale = 1 + np.abs(rest[n + k]).max()
        np.testing.assert_allclose(rest[n + k], differences(lambda b, k=k: directional(k, b), a), atol=tolerance * scale)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_as_pytorch(name, dtype):
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    ours, theirs = FUNCTIONS[name][0], FUNCTIONS[name][-1] if callable(FUNCTIONS[name][-1]) else FUNCTIONS[name][0]
    raw = operands(name, dtype)
    for a, b in zip(derivatives(xp, ours, raw), derivatives(torch, theirs, raw), strict=True):
        assert a.dtype == b.dtype
        scale = 1 + np.abs(b).max()
        np.testing.assert_allclose(a, b, atol=(2e-3 if dtype == "float32" else 1e-8) * scale)


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.data())
def test_gradients_on_drawn_shapes(data):
    name = data.draw(st.sampled_from(["pinv", "qr", "svd", "fro", "nuc", "det", "solve", "cholesky", "diagonal", "norm"]))
    batch = tuple(data.draw(st.lists(st.integers(1, 2), max_size=2)))
    m, n = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 3))
    dtype = data.draw(st.sampled_from(["float64", "complex128"]))
    square, any_shape = draw((*batch, m, m), dtype, 5), draw((*batch, m, n), dtype, 5)
    offset, order = data.draw(st.integers(-3, 3)), data.draw(st.sampled_from(VECTOR_ORDERS))
    axis = data.draw(st.sampled_from([None, *range(-len(batch) - 2, len(batch) + 2)]))
    cases: dict[str, tuple[Any, ...]] = {
        "pinv": (lambda ns, x: ns.pinv(x), any_shape),
        "qr": (lambda ns, x: ns.qr(x).Q @ abs(ns.qr(x).R), any_shape),
        "svd": (lambda ns, x: recompose(*ns.svd(x, full_matrices=False)), any_shape),
        "fro": (lambda ns, x: ns.matrix_norm(x, keepdims=True), any_shape),
        "nuc": (lambda ns, x: ns.matrix_norm(x, ord="nuc", keepdims=True), any_shape),
        "det": (lambda ns, x: ns.det(x), square),
        "solve": (lambda ns, a, b: ns.solve(a, b), square, draw((m, n), dtype, 6)),
        "cholesky": (lambda ns, x: ns.cholesky(herm(x)), positive((*batch, m, m), dtype)),
        "diagonal": (lambda ns, x: ns.diagonal(x, offset=offset) ** 2, any_shape),
        "norm": (lambda ns, x: ns.vector_norm(x, axis=axis, ord=order), any_shape),
    }
    f, *raw = cases[name]
    check(f, raw, 1e-3 if name in ("qr", "svd", "solve", "pinv", "nuc") else 1e-4)


@pytest.mark.parametrize("name", ["inv", "det", "solve", "cholesky", "eigh", "svd (4, 3)", "qr 0 (4, 3)", "vector_norm 3", "logabsdet"])
def test_third_derivatives(name):
    f = FUNCTIONS[name][0]
    raw = operands(name, "float64")

    def first(ns: Any, *xs: Any) -> Any:
        xs = tuple(x if x.requires_grad else x.clone().requires_grad_() for x in xs)
        y = f(ns, *xs)
        return xp.autograd.grad(xp.sum(y * y), xs[0], create_graph=True)[0]

    y, *rest = derivatives(xp, first, raw)
    w = draw(y.shape, y.dtype, 1)
    vs = [draw(a.shape, a.dtype, 2 + k) for k, a in enumerate(raw)]

    def directional(b: np.ndarray) -> float:
        xs = [xp.tensor(b if k == 0 else a, requires_grad=True) for k, a in enumerate(raw)]
        firsts = xp.autograd.grad(first(la, *xs), xs, xp.asarray(w))
        return sum(dot(v, g.numpy()) for v, g in zip(vs, firsts))

    third = rest[len(raw)]
    np.testing.assert_allclose(third, differences(directional, raw[0]), atol=1e-4 * (1 + np.abs(third).max()))


# -- points where the derivative needs care --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_the_determinant_of_a_singular_matrix_differentiates(dtype):
    a = draw((2, 3, 3), dtype)
    a[0, 2] = a[0, 0] + a[0, 1]
    a[1] = 0
    x = xp.tensor(a, requires_grad=True)
    (g,) = xp.autograd.grad(la.det(x), x, xp.ones(2, dtype=x.dtype))
    np.testing.assert_allclose(g.numpy(), differences(lambda b: dot(np.ones(2), np.linalg.det(b)), a), atol=1e-8)
    assert np.abs(g.numpy()[0]).max() > 0.1


def test_equal_eigenvalues_and_singular_values_differentiate_where_no_vectors_enter():
    for f in (lambda x: xp.sum(la.eigvalsh(x)), lambda x: xp.sum(la.svdvals(x)), lambda x: la.matrix_norm(x, ord="nuc")):
        x = xp.tensor(np.eye(3), requires_grad=True)
        (g,) = xp.autograd.grad(f(x), x)
        np.testing.assert_allclose(g.numpy(), np.eye(3), atol=1e-15)


SUBGRADIENTS = [
    (2, [0.0, 0.0], [0.0, 0.0]), (2, [3.0, 4.0], [0.6, 0.8]), (1, [0.0, -2.0], [0.0, -1.0]), (inf, [2.0, -2.0], [0.5, -0.5]),
    (inf, [2.0, -2.0, 1.0], [0.5, -0.5, 0.0]), (-inf, [1.0, 1.0, 3.0], [0.5, 0.5, 0.0]), (inf, [0.0, 0.0], [0.0, 0.0]),
    (3, [0.0, 0.0], [0.0, 0.0]), (3, [0.0, 2.0], [0.0, 1.0]), (1.5, [0.0, 2.0], [0.0, 1.0]), (1.5, [0.0, 0.0], [0.0, 0.0]),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize(("order", "values", "expected"), SUBGRADIENTS, ids=lambda v: str(v))
def test_subgradients_of_norms(order, values, expected, dtype):
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    for lib in (xp, torch):
        x = lib.tensor(np.array(values, dtype), requires_grad=True)
        lib.linalg.vector_norm(x, ord=order).backward()
        np.testing.assert_allclose(numpy_of(x.grad), expected, atol=1e-15)
    if dtype == "float64":
        jacobian = xp.func.jacrev(lambda x: la.vector_norm(xp.stack([x, x]), axis=1, ord=order))(xp.tensor(values))
        np.testing.assert_allclose(jacobian.numpy(), [expected, expected], atol=1e-15)


#: Functions with points at which they have no derivative.
UNDEFINED = {
    "slogdet": (lambda x: la.slogdet(x)[1], np.diag([1.0, 2.0, 0.0])),
    "qr": (lambda x: la.qr(x)[1], np.ones((3, 3)) * [1.0, 0.0, 2.0]),
    "norm inf": (lambda x: la.vector_norm(x, ord=inf), np.array([1.0, np.nan])),
    "norm -inf": (lambda x: la.vector_norm(x, ord=-inf), np.array([1.0, np.nan])),
    "lstsq": (lambda x: scipy_linalg.lstsq(x, xp.ones(2))[0], np.array([[1.0, np.nan], [2.0, 3.0]])),
}  # fmt: skip


@pytest.mark.parametrize("name", UNDEFINED)
def test_without_a_derivative_both_modes_are_nan(name):
    function, raw = UNDEFINED[name]
    x = xp.tensor(raw)
    with np.errstate(all="ignore"):
        assert np.isnan(numpy_of(xp.func.grad(lambda x: xp.sum(function(x)))(x))).all()
        assert np.isnan(numpy_of(xp.func.jvp(function, (x,), (xp.ones_like(x),))[1])).all()


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize(("dtype", "scale"), [("float64", 1e-150), ("float64", 1e150), ("float32", 1e-18), ("float32", 1e18)])
def test_the_gradient_of_a_pseudoinverse_scales_as_its_square(shape, dtype, scale):
    raw, weights = draw(shape), draw(shape[::-1], seed=1)

    def gradient(raw, dtype):
        x = xp.tensor(raw.astype(dtype), requires_grad=True)
        return numpy_of(xp.autograd.grad(la.pinv(x), x, xp.asarray(weights, dtype=dtype))[0])

    tolerance = 1e-3 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(gradient(raw * scale, dtype) * scale * scale, gradient(raw, "float64"), rtol=tolerance)


@pytest.mark.parametrize("shape", [(4, 4), (7, 4), (4, 7)])
def test_the_gradient_of_a_pseudoinverse_keeps_its_digits(shape):
    """For solutions of ordinary size of ill-conditioned systems, where large terms cancel."""
    u, v = (np.linalg.qr(draw((n, 4), seed=n))[0] for n in shape)
    sizes = 10.0 ** np.linspace(0, -6, 4)
    left, right = draw((4,), seed=1), draw((4,), seed=2)
    x = xp.tensor((u * sizes) @ v.T, requires_grad=True)
    a, b = xp.asarray(v @ (sizes * left)), xp.asarray(u @ (sizes * right))
    (g,) = xp.autograd.grad(a @ la.pinv(x) @ b, x)
    wanted = -np.outer(u @ left, v @ right)
    assert np.max(np.abs(numpy_of(g) - wanted)) < 1e-3 * np.max(np.abs(wanted))  # eps times the square of the condition number is 2e-4


def test_the_norm_of_order_zero_sends_no_gradient():
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    for lib in (xp, torch):
        x = lib.tensor([1.0, 0.0], requires_grad=True)
        y = lib.linalg.vector_norm(x, ord=0)
        assert (y.item(), y.requires_grad) == (1.0, True)
        y.backward()
        assert x.grad is None
        (lib.linalg.vector_norm(x * 2, ord=0) + x[0]).backward()
        np.testing.assert_array_equal(numpy_of(x.grad), [1.0, 0.0])


def test_the_frobenius_norm_at_zero():
    x = xp.zeros((2, 2), requires_grad=True)
    la.matrix_norm(x).backward()
    assert not x.grad.numpy().any()


def test_phases_must_not_matter():
    x = xp.tensor(positive((3, 3), "complex128"), requires_grad=True)
    for y in (la.eigh(x).eigenvectors, la.svd(x).U, la.svd(x).Vh):
        with pytest.raises(RuntimeError, match="ill-defined"):
            xp.sum(xp.real(y * xp.asarray(draw((3, 3), "complex128", 3)))).backward()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_phases_of_eigenvectors_must_not_matter(dtype):
    x = xp.tensor(draw((4, 4), dtype), requires_grad=True)
    values, vectors = la.eig(x)
    assert (values.dtype, vectors.dtype, bool(np.any(np.imag(values.detach().numpy())))) == (xp.complex128, xp.complex128, True)
    with pytest.raises(RuntimeError, match="ill-defined"):
        xp.sum(xp.real(vectors * xp.asarray(draw((4, 4), "complex128", 3)))).backward()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("recorded", [False, True])
def test_eigenvalues_of_any_matrix(dtype, recorded, xpgrad_device):
    raw = draw((2, 4, 4), dtype)
    x = xp.tensor(raw, device=xpgrad_device, requires_grad=recorded)
    values, vectors = la.eig(x)
    assert values.dtype is vectors.dtype is la.eigvals(x).dtype is xp.result_type(x, xp.complex64)
    for w, v, more, a in zip(*map(numpy_of, (values, vectors, la.eigvals(x))), raw):
        np.testing.assert_allclose(a @ v, v * w, atol=1e-5 if dtype in ("float32", "complex64") else 1e-12)
        np.testing.assert_allclose(np.linalg.norm(v, axis=0), 1.0, atol=1e-6)
        np.testing.assert_allclose(np.sort_complex(more.round(4)), np.sort_complex(w.round(4)), atol=1e-3)


def test_a_gradient_of_a_real_matrix_is_real():
    x = xp.tensor(draw((4, 4)), requires_grad=True)
    xp.sum(xp.imag(la.eigvals(x)) ** 2).backward()
    assert x.grad.dtype is xp.float64


def test_a_library_without_eigenvalues_says_so(monkeypatch):
    kernels = xp.tensor(1.0).backend.kernels
    monkeypatch.setattr(kernels, "linalg", object())
    for function in (la.eig, la.eigvals):
        with pytest.raises(xp.CapabilityError, match=r"has no function `linalg\.eig"):
            function(xp.asarray(np.eye(2)))


def test_sign_of_a_real_determinant_has_the_gradient_zero():
    x = xp.tensor(draw((3, 3)), requires_grad=True)
    la.slogdet(x).sign.backward()
    assert not x.grad.numpy().any()


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_sign_of_a_complex_determinant(dtype):
    a = draw((3, 3), "complex128")
    x = xp.tensor(a.astype(dtype), requires_grad=True)
    xp.real(la.slogdet(x).sign).backward()
    expected = differences(lambda b: float(np.real(np.linalg.slogdet(b)[0])), a)
    np.testing.assert_allclose(x.grad.numpy(), expected, atol=1e-4 if dtype == "complex64" else 1e-8)


def test_complete_qr_of_a_tall_matrix_does_not_differentiate():
    x = xp.tensor(draw((4, 2)), requires_grad=True)
    y = la.qr(x, mode="complete").R
    with pytest.raises(NotImplementedError, match="mode='complete' and nrows > ncols"):
        xp.sum(y).backward()


def test_the_diagonal_is_a_view():
    x = xp.asarray(np.zeros((2, 3, 3)))
    d = la.diagonal(x, offset=1)
    d += 1
    np.testing.assert_array_equal(x.numpy(), np.broadcast_to(np.eye(3, k=1), (2, 3, 3)))
    assert (d._base is x, x._version, d._version) == (True, 1, 1)


def test_operands_promote_and_constants_stay_constant():
    a, b = xp.tensor(draw((3, 3), "float32"), requires_grad=True), xp.asarray(draw((3,), "complex128"))
    y = la.solve(a, b)
    assert y.dtype is xp.complex128
    xp.sum(xp.real(y)).backward()
    assert (a.grad.dtype, b.grad) == (xp.float32, None)
    assert not la.matrix_rank(a).requires_grad
    with xp.no_grad():
        assert not la.eigh(a + a.mT).eigenvalues.requires_grad


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_backend_agrees(name, dtype, xpgrad_device):
    raw, f = operands(name, dtype), FUNCTIONS[name][0]
    given = [cast_for_device(a, xpgrad_device) for a in raw]
    tolerance = loosen(1e-9, xpgrad_device, *raw)
    with xp.default_device(xpgrad_device):
        got = derivatives(xp, f, given)
    for a, b in zip(got, derivatives(xp, f, [a.astype(dtype) for a in given]), strict=True):
        np.testing.assert_allclose(a, b, rtol=max(tolerance, 1e-7), atol=tolerance * (1 + np.abs(b).max()))


# -- errors ------------------------------------------------------------------------------------------------------------------

one, rect, whole_numbers = np.ones(3), np.ones((2, 3)), np.ones((2, 2), np.int64)
SQUARE_ONLY = ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet")
MATRICES = (*SQUARE_ONLY, "qr", "svd", "svdvals", "pinv", "matrix_norm", "matrix_rank", "diagonal", "trace")
ERRORS = [
    *((name, (rect,), {}, ValueError, "square") for name in SQUARE_ONLY),
    *((name, (one,), {}, ValueError, "at least 2 axes") for name in MATRICES),
    *((name, (whole_numbers,), {}, TypeError, "astype") for name in (*SQUARE_ONLY, "qr", "svd", "pinv", "matrix_norm", "vector_norm")),
    ("qr", (rect,), {"mode": "r"}, ValueError, "complete"), ("matrix_norm", (rect,), {"ord": "max"}, ValueError, "'nuc'"),
    ("matrix_norm", (rect,), {"ord": 3}, ValueError, "'nuc'"), ("matrix_norm", (rect,), {"ord": [1]}, TypeError, "'nuc'"),
    ("vector_norm", (one,), {"ord": "fro"}, ValueError, "number"), ("vector_norm", (one,), {"ord": 1j}, TypeError, "number"),
    ("vector_norm", (one,), {"axis": 1}, IndexError, "axis"), ("vector_norm", (one[:0],), {"ord": inf}, ValueError, "empty reduction"),
    ("solve", (np.eye(3), np.ones((2, 2))), {}, ValueError, r"\(3,\)"), ("solve", (np.eye(3), np.ones((2, 3))), {}, ValueError, "None"),
    ("solve", (rect, one), {}, ValueError, "square"), ("outer", (rect, one), {}, ValueError, "one-dimensional"),
    ("cross", (one[:2], one[:2]), {}, ValueError, "length 3"), ("diagonal", (rect,), {"offset": 1.5}, TypeError, "int"),
    ("pinv", (rect,), {"rtol": "small"}, TypeError, "rtol"),
    ("inv", (np.zeros((2, 2)),), {}, np.linalg.LinAlgError, "Singular"),
    ("solve", (np.zeros((3, 3)), one), {}, np.linalg.LinAlgError, "Singular"),
    ("cholesky", (-np.eye(2),), {}, np.linalg.LinAlgError, "positive definite"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "raw", "kw", "error", "words"), ERRORS, ids=lambda v: v if isinstance(v, str) else "")
def test_errors(name, raw, kw, error, words):
    with pytest.raises(error, match=words):
        getattr(la, name)(*map(xp.asarray, raw), **kw)


def test_errors_of_operands():
    for name in ("inv", "svd", "vector_norm", "diagonal"):
        with pytest.raises(TypeError, match="asarray"):
            getattr(la, name)([[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(TypeError, match="int"):
        la.matrix_power(xp.eye(2), 1.5)


@pytest.mark.parametrize("deficit", [0, 1, 2])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_det_differentiates_twice_at_singular_matrices(size: int, deficit: int) -> None:
    """The gradient is the matrix of cofactors at any rank, and the second derivative agrees with central differences."""
    rng = np.random.default_rng(10 * size + deficit)
    matrix = rng.standard_normal((size, size))
    matrix[:, : min(deficit, size - 1)] = matrix[:, -1:]
    weights = rng.standard_normal((size, size))

    def minors(m: np.ndarray) -> np.ndarray:
        found = np.empty_like(m)
        for i, j in np.ndindex(m.shape):
            found[i, j] = (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(m, i, 0), j, 1))
        return found

    x = xp.tensor(matrix, requires_grad=True)
    (first,) = xp.autograd.grad(xp.linalg.det(x), x, create_graph=True)
    np.testing.assert_allclose(first.detach().numpy(), minors(matrix), atol=1e-12)
    (second,) = xp.autograd.grad(xp.sum(first * xp.asarray(weights)), x, create_graph=True)
    expected = np.empty_like(matrix)
    for place in np.ndindex(matrix.shape):
        step = np.zeros_like(matrix)
        step[place] = 1e-6
        expected[place] = np.sum((minors(matrix + step) - minors(matrix - step)) * weights) / 2e-6
    np.testing.assert_allclose(second.detach().numpy(), expected, atol=1e-7)
    if deficit and size > 2:
        with pytest.raises(RuntimeError, match="needs invertible matrices"):
            xp.autograd.grad(xp.sum(second * second), x)


# -- points without a gradient ---------------------------------------------------------------------------------------------------

NAN = float("nan")
SINGULAR = ([[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [3.0, 6.0, 9.0]])
#: Losses whose gradient is not finite, as in PyTorch, although LAPACK itself would raise.
LOSSES: list[tuple[str, Callable[[Any], Any], Any]] = [
    *(("slogdet of a singular matrix", lambda x: xp.linalg.slogdet(x).logabsdet, a) for a in SINGULAR),
    ("qr of zeros", lambda x: xp.sum(xp.linalg.qr(x).R) + xp.sum(xp.linalg.qr(x).Q), [[0.0, 0.0]] * 2),
    ("qr of tall zeros", lambda x: xp.sum(xp.linalg.qr(x).R), [[0.0, 0.0]] * 3),
    ("det of nan", xp.linalg.det, [[NAN, 1.0], [2.0, 3.0]]),
    ("det of nan", xp.linalg.det, [[NAN] * 3] * 3),
    ("det of inf", xp.linalg.det, [[float("inf"), 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
]


@pytest.mark.parametrize(("name", "loss", "matrix"), LOSSES)
def test_a_gradient_that_does_not_exist_is_nan(name: str, loss: Callable[[Any], Any], matrix: Any, xpgrad_device: str) -> None:
    x = xp.tensor(matrix, requires_grad=True, device=xpgrad_device)
    with np.errstate(all="ignore"):
        loss(x).backward()
        assert np.isnan(x.grad.numpy()).all()
        (first,) = xp.autograd.grad(loss(x), x, create_graph=True)
        assert np.isnan(first.detach().numpy()).all()


def test_matrices_beside_one_without_a_gradient_keep_theirs(xpgrad_device: str) -> None:
    good = [[1.0, 2.0], [3.0, 5.0]]
    for loss, bad in (
        (lambda x: xp.sum(xp.linalg.slogdet(x).logabsdet), [[1.0, 2.0], [2.0, 4.0]]),
        (lambda x: xp.sum(xp.linalg.qr(x).R), [[0.0, 0.0], [0.0, 0.0]]),
        (lambda x: xp.sum(xp.linalg.det(x)), [[NAN, 1.0], [2.0, 3.0]]),
    ):
        both, one = (xp.tensor(v, requires_grad=True, device=xpgrad_device) for v in ([bad, good], [good]))
        with np.errstate(all="ignore"):
            loss(both).backward()
            loss(one).backward()
        np.testing.assert_allclose(both.grad.numpy()[1], one.grad.numpy()[0], rtol=1e-12)
        assert np.isnan(both.grad.numpy()[0]).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("order", [float("inf"), float("-inf")])
def test_the_norm_of_what_is_not_a_number_beside_one_of_numbers(order: float, xpgrad_device: str) -> None:
    x = xp.tensor([[1.0, -3.0, 3.0], [NAN, 1.0, 2.0]], requires_grad=True, device=xpgrad_device)
    xp.sum(xp.linalg.vector_norm(x, axis=1, ord=order)).backward()
    expected = [0.0, -0.5, 0.5] if order > 0 else [1.0, 0.0, 0.0]
    np.testing.assert_array_equal(x.grad.to_device("cpu").numpy(), [expected, [NAN] * 3])


@pytest.mark.parametrize("bad", [[[NAN, 1.0], [2.0, 3.0]], [[float("inf"), 0.0], [0.0, 1.0]]])
def test_the_third_derivative_of_a_determinant_beside_one_that_is_not_finite(bad: Any, xpgrad_device: str) -> None:
    found = []
    for matrices in ([bad, [[1.0, 2.0], [3.0, 5.0]]], [[[1.0, 2.0], [3.0, 5.0]]]):
        x = xp.tensor(matrices, requires_grad=True, device=xpgrad_device)
        with np.errstate(all="ignore"):
            g = xp.linalg.det(x)
            for _ in range(3):
                (g,) = xp.autograd.grad((g * g).sum(), x, create_graph=True)
            found.append(g.detach().numpy())  # a lazy backend computes now
    assert np.isnan(found[0][0]).all()
    np.testing.assert_allclose(found[0][1], found[1][0], rtol=1e-10)


@pytest.mark.parametrize("call", ["svdvals(x)", "svd(x)[1]", "pinv(x)", "matrix_norm(x, ord=2)", "matrix_norm(x, ord='nuc')", "det(x)"])
def test_what_is_not_finite_is_decomposed_in_time(call: str) -> None:
    # NB: LAPACK's search for singular vectors may not end if an element is infinite.
    code = f"""
import warnings
import numpy as np
import xpgrad as xp
warnings.simplefilter("ignore")
one = np.eye(3)
for matrix in (np.diag([np.inf, 1, 1]), np.diag([1, 1, 1, -np.inf]), np.stack([np.diag([np.inf, 1, 1]), one])):
    x = xp.tensor(matrix, requires_grad=True)
    try:
        y = xp.linalg.{call}
    except np.linalg.LinAlgError:  # newer LAPACKs say so at once
        print(np.isinf(matrix).any(axis=(-2, -1)).tolist())
        continue
    xp.sum(y).backward()
    print(np.isnan(x.grad.numpy()).any(axis=(-2, -1)).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n") == ["True", "True", "[True, False]", ""]


def test_singular_values_are_the_same_whether_they_are_recorded() -> None:
    def said(x: Any) -> Any:
        try:
            return xp.linalg.svdvals(x).detach().numpy()
        except np.linalg.LinAlgError as exc:  # the message of newer LAPACKs for infinity
            return str(exc)

    for matrix in (np.diag([np.inf, 1.0, 1.0]), np.eye(3)):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(said(xp.tensor(matrix, requires_grad=True)), said(xp.asarray(matrix)))
    for matrix in (np.full((3, 3), np.nan), np.diag([np.inf, np.nan, 1.0])):
        for needs in (False, True):
            with pytest.raises(np.linalg.LinAlgError):
                xp.linalg.svdvals(xp.tensor(matrix, requires_grad=needs))


def test_the_rank_of_an_empty_matrix_is_0(xpgrad_device: str) -> None:
    for shape in ((0, 3), (2, 0), (0, 0), (2, 0, 3)):
        out = xp.linalg.matrix_rank(xp.zeros(shape, device=xpgrad_device))
        assert out.shape == shape[:-2]
        assert not out.numpy().any()


@pytest.mark.parametrize("order", [2, 3])
def test_a_root_of_a_norm_of_0(order: int, xpgrad_device: str) -> None:
    """The gradient of the root is inf * 0 for order 2 and 0 for order 3, as in PyTorch."""
    x = xp.zeros(2, device=xpgrad_device, requires_grad=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        (g,) = xp.autograd.grad(xp.sqrt(xp.linalg.vector_norm(x, ord=order)), x)
        found = g.numpy()  # a lazy backend computes now
    np.testing.assert_array_equal(found, [np.nan, np.nan] if order == 2 else [0.0, 0.0])


#: Functions whose gradients are chosen to be 0 at the first point, where they have no derivative, and the second derivatives there.
CHOSEN = {
    "norm": (lambda x: la.vector_norm(x), [0.0, 0.0], [[NAN, NAN], [NAN, NAN]]),
    "squared norm": (lambda x: la.vector_norm(x) ** 2, [0.0, 0.0], [[NAN, NAN], [NAN, NAN]]),
    "norm of a matrix": (lambda x: la.matrix_norm(xp.reshape(x, (1, 2))), [0.0, 0.0], [[NAN, NAN], [NAN, NAN]]),
    "norm of order 1.5": (lambda x: la.vector_norm(x, ord=1.5), [0.0, 0.0], [[NAN, NAN], [NAN, NAN]]),
    "norm of order 3": (lambda x: la.vector_norm(x, ord=3), [0.0, 0.0], [[0.0, 0.0], [0.0, 0.0]]),
    "atan2": (lambda x: xp.atan2(x[0], x[1]), [0.0, 0.0], [[NAN, NAN], [NAN, NAN]]),
}  # fmt: skip


@pytest.mark.parametrize("name", list(CHOSEN))
@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
def test_a_gradient_chosen_to_be_0_has_no_derivative(name, outer, inner, xpgrad_device):
    """All modes give what two passes in reverse mode give in PyTorch, and the gradient itself gives no warning (SUB-15)."""
    function, point, expected = CHOSEN[name]
    x = xp.tensor(point, dtype=xp.float64, device=xpgrad_device)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(xp.func.grad(function)(x).numpy(), [0.0, 0.0])
    with np.errstate(all="ignore"):
        found = getattr(xp.func, outer)(getattr(xp.func, inner)(function))(x).numpy()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
def test_second_derivatives_at_singular_matrices_in_all_modes(outer, inner, xpgrad_device):
    """Those of the determinant exist, and those of its logarithm are nan as its gradient is."""

    def second(function, x):
        with np.errstate(all="ignore"):
            return getattr(xp.func, outer)(getattr(xp.func, inner)(function))(x).numpy()

    x = xp.tensor(np.diag([2.0, 0.0, 0.0]), device=xpgrad_device)
    expected = np.zeros((3, 3, 3, 3))
    for one, other, sign in [((1, 1), (2, 2), 1.0), ((1, 2), (2, 1), -1.0)]:  # det is 2 (x11 x22 - x12 x21) nearby
        expected[one + other] = expected[other + one] = 2.0 * sign
    np.testing.assert_allclose(second(la.det, x), expected, atol=1e-12)
    assert np.isnan(second(lambda x: la.slogdet(x)[1], x)).all()


@pytest.mark.parametrize("outer", ["jacrev", "jacfwd"])
@pytest.mark.parametrize("inner", ["jacrev", "jacfwd"])
def test_a_nuclear_norm_has_second_derivatives_where_singular_values_are_equal(outer, inner, xpgrad_device):
    """The nuclear norm of a matrix of two rows and columns is ``sqrt(sum(x ** 2) + 2 * abs(det(x)))``; the singular vectors have none."""

    def second(function, x):
        return getattr(xp.func, outer)(getattr(xp.func, inner)(function))(xp.tensor(x, dtype=xp.float64, device=xpgrad_device)).numpy()

    def by_determinant(x):
        return xp.sqrt(xp.sum(x * x) + 2 * xp.abs(la.det(x)))

    def nuclear(x):
        return la.matrix_norm(x, ord="nuc")

    for x in ([[1.0, -1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 2.0]], [[1.0, 1e-9], [0.0, 1.0]], [[1.0, 2.0], [0.0, 3.0]]):
        np.testing.assert_allclose(second(nuclear, x), second(by_determinant, x), rtol=1e-7, atol=1e-9)
    wide = np.asarray([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # ``sqrt(1 + h ** 2)`` in place of 1 if the last column has an h
    found = second(nuclear, wide)
    np.testing.assert_allclose(found[:, 2, :, 2], np.eye(2), atol=1e-12)
    np.testing.assert_allclose(second(nuclear, wide.T), found.transpose(1, 0, 3, 2), atol=1e-12)
    assert np.isnan(second(nuclear, [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])).all()  # a kink, as the absolute value has at 0


def test_second_derivatives_of_nuclear_norms_in_a_batch(xpgrad_device):
    """As above, where a batch is the outermost transform."""
    x, weights = (xp.tensor(a, dtype=xp.float64, device=xpgrad_device) for a in ([[[0.6, 0.8], [-0.8, 0.6]]], [[1.0, 2.0], [3.0, 5.0]]))

    def second(function):
        return xp.func.vmap(xp.func.grad(lambda x: xp.sum(xp.func.grad(function)(x) * weights)))(x).numpy()

    expected = second(lambda x: xp.sqrt(xp.sum(x * x) + 2 * xp.abs(la.det(x))))
    np.testing.assert_allclose(second(lambda x: la.matrix_norm(x, ord="nuc")), expected, rtol=1e-7)


@pytest.mark.parametrize("modes", list(itertools.product(["jacrev", "jacfwd"], repeat=3)), ids="-".join)
def test_third_derivatives_of_determinants_in_all_modes(modes, xpgrad_device):
    """They are those of a cubic polynomial, the sign of each permutation; and ``det(x @ x)`` is ``det(x) ** 2``."""

    def third(function):
        for mode in modes:
            function = getattr(xp.func, mode)(function)
        return function(x).numpy()

    x = xp.tensor([[2.0, 1.0, 0.0], [-1.0, 3.0, 1.0], [0.5, 0.0, 1.0]], dtype=xp.float64, device=xpgrad_device)
    expected = np.zeros((3,) * 6)
    for columns in itertools.permutations(range(3)):
        sign = np.linalg.det(np.eye(3)[list(columns)])
        for rows in itertools.permutations(range(3)):
            expected[tuple(k for row in rows for k in (row, columns[row]))] = sign
    np.testing.assert_allclose(third(la.det), expected, atol=1e-12)
    np.testing.assert_allclose(third(lambda x: la.det(x @ x)), third(lambda x: la.det(x) ** 2), rtol=1e-9, atol=1e-9)
    x = xp.zeros((2, 2), dtype=xp.float64, device=xpgrad_device)
    with np.errstate(all="ignore"):
        assert np.isnan(third(lambda x: la.slogdet(x)[1])).all()  # as its gradient is


def test_second_derivatives_of_norms_at_0_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="the comparison runs on PyTorch")
    for order, values in itertools.product([1, 2, 3, 4, 1.5, 0.5], [[0.0, 0.0], [0.0, 3.0], [3.0, -4.0]]):
        found = []
        for lib in (xp, torch):
            x = lib.tensor(values, dtype=lib.float64, requires_grad=True)
            (g,) = lib.autograd.grad(lib.linalg.vector_norm(x, ord=order), x, create_graph=True)
            with np.errstate(all="ignore"):
                found.append([numpy_of(lib.autograd.grad(g[i], x, retain_graph=True)[0]) for i in range(2)] if g.requires_grad else 0)
        np.testing.assert_allclose(found[0], found[1], atol=1e-15, err_msg=f"order {order} at {values}")


@pytest.mark.parametrize("order", [-0.5, -1, -2, -math.inf])
def test_one_zero_makes_the_gradient_of_a_norm_of_negative_order_0(order, xpgrad_device):
    """So does PyTorch; near (0, 2), the norm is about the first element's absolute value, whatever the second one is."""
    x = xp.tensor([[0.0, 2.0], [0.0, 0.0], [1.0, 2.0]], dtype=xp.float64, device=xpgrad_device)
    with np.errstate(divide="ignore"):  # of the norm itself
        found = xp.func.grad(lambda x: xp.sum(la.vector_norm(x, ord=order, axis=1)))(x).numpy()
    size = 1.0 if math.isinf(order) else (1.0 + 2.0**order) ** (1 / order)
    np.testing.assert_allclose(found, [[0.0, 0.0], [0.0, 0.0], [size ** (1 - order), (size / 2) ** (1 - order)]], rtol=1e-14)


def test_the_power_0_has_the_gradient_0() -> None:
    """As in PyTorch the result requires grad; not even nan reaches it."""
    x = xp.tensor([[math.nan, 1.0], [2.0, 3.0]], requires_grad=True)
    y = xp.linalg.matrix_power(x, 0)
    assert y.requires_grad
    np.testing.assert_array_equal(y.detach().numpy(), np.eye(2))
    np.testing.assert_array_equal(xp.autograd.grad(xp.sum(y), x)[0].numpy(), np.zeros((2, 2)))
    assert not xp.linalg.matrix_power(x.detach(), 0).requires_grad
