"""Every kernel that replaces one of cubed's, on arrays of several uneven chunks, beside NumPy; the fault is named at the kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import cubed
import numpy as np
import pytest

import xpgrad as xp
import xpgrad_cubed
from xpgrad.backend import Backend
from xpgrad.errors import CapabilityError
from xpgrad.registry import backend_for

RNG = np.random.default_rng(0)
A, B, V, W = RNG.normal(size=(5, 7)), RNG.normal(size=(5, 7)), RNG.normal(size=12), RNG.normal(size=7)
Z = A + 1j * B
SQUARE, TALL = RNG.normal(size=(3, 4, 4)), RNG.normal(size=(3, 5, 4))
POSITIVE = SQUARE @ SQUARE.swapaxes(1, 2) + np.eye(4)
ZERO = np.asarray(3.0)


def divided(x: Any) -> Any:
    """Return a cubed array in chunks that do not divide its axes evenly; arrays of 7 elements are in one chunk."""
    if isinstance(x, (list, tuple)):
        return type(x)(map(divided, x))
    if not isinstance(x, np.ndarray):
        return x
    return cubed.asarray(x, chunks=tuple(n if n == 7 and x.ndim == 1 else min(n, 3) for n in x.shape))


def of(backend: Backend, name: str) -> Callable[..., Any]:
    namespace: Any = backend.kernels
    for part in name.split("."):
        namespace = getattr(namespace, part)
    found: Callable[..., Any] = namespace
    return found


def compare(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    """Compare a kernel of cubed's backend with NumPy's: values, shape, dtype, and the shape and dtype that were known before."""
    ours, numpys = backend_for("cubed"), backend_for("numpy")
    found = of(ours, name)(*map(divided, arguments), **{k: divided(v) for k, v in options.items()})
    expected = of(numpys, name)(*arguments, **options)
    for x, y in zip(found, expected) if isinstance(expected, tuple) else [(found, expected)]:
        values = ours.to_host(x)
        assert x.shape == values.shape == np.shape(y)
        assert x.dtype == values.dtype
        assert x.dtype == y.dtype or name in ("linalg.eig", "linalg.eigvals")
        np.testing.assert_allclose(values, y, atol=1e-10)


CASES: list[tuple[Any, ...]] = [
    ("concat", ([V, W],), {}),
    ("concat", ([A, A[:, :2], A],), {"axis": 1}),
    ("concat", ([A, A[:0]],), {"axis": 0}),
    ("concat", ([A, V],), {"axis": None}),
    ("stack", ([W, V[:7]],), {}),
    ("stack", ([A, B],), {"axis": -1}),
    ("take", (V, np.arange(12)[::-1].copy()), {"axis": 0}),
    ("take", (A, np.asarray([3, 0, 0])), {"axis": 1}),
    ("take_along_axis", (A, np.argsort(B, axis=0)), {"axis": 0}),
    ("reshape", (A, (7, 5)), {}),
    ("reshape", (A, (5, 1, 7)), {}),
    ("reshape", (A, (-1,)), {}),
    ("reshape", (A[:3, :4].copy(), (12,)), {}),
    ("reshape", (ZERO, (1, 1)), {}),
    ("roll", (A, 2), {"axis": -1}),
    ("roll", (A, (1, -2)), {"axis": (0, 1)}),
    ("roll", (A, 3), {}),
    ("moveaxis", (TALL, 0, -1), {}),
    ("broadcast_to", (W, (5, 7)), {}),
    ("broadcast_to", (ZERO, (1000,)), {}),
    ("broadcast_arrays", (A, W), {}),
    ("sort", (A,), {"axis": 0}),
    ("sort", (np.round(A),), {"descending": True}),
    ("argsort", (np.round(A),), {"descending": True}),
    ("searchsorted", (np.sort(V), W), {}),
    ("searchsorted", (V, W), {"sorter": np.argsort(V), "side": "right"}),
    ("cumulative_sum", (V,), {}),
    ("cumulative_sum", (A,), {"axis": -1, "include_initial": True}),
    ("cumulative_prod", (A,), {"axis": 1}),
    ("var", (ZERO,), {}),
    ("var", (A,), {"axis": 0, "correction": 1.0}),
    ("mean", (ZERO,), {}),
    ("mean", (A,), {"axis": (0, 1)}),
    ("argmax", (A,), {"keepdims": True}),
    ("argmin", (A,), {"axis": -1}),
    ("argmax", (ZERO,), {}),
    ("clip", (A,), {"min": 0.0}),
    ("clip", (A,), {"max": 0.5}),
    ("conj", (A,), {}),
    ("conj", (Z,), {}),
    ("tensordot", (A, B), {"axes": ((-1,), (1,))}),
    ("tensordot", (A, B.T.copy()), {"axes": 1}),
    ("vecdot", (Z, Z), {"axis": 0}),
    ("vecdot", (A, W), {}),
    ("matmul", (TALL, TALL.swapaxes(1, 2).copy()), {}),
    ("matmul", (A, W), {}),
    ("tril", (A,), {"k": 1}),
    ("triu", (A,), {"k": -1}),
    ("flip", (A,), {}),
    ("repeat", (A, 3), {"axis": 1}),
    ("tile", (A, (2, 3)), {}),
    ("diff", (A,), {"axis": 0}),
    ("isin", (V, V[:3]), {}),
    ("sum", (A,), {"axis": -1}),
    ("max", (A,), {"axis": 0}),
    ("prod", (A,), {}),
    ("any", (A > 1,), {}),
    ("count_nonzero", (A > 0,), {"axis": 1}),
    ("asarray", (A,), {"dtype": np.float32}),
    ("linalg.cholesky", (POSITIVE,), {}),
    ("linalg.cholesky", (POSITIVE,), {"upper": True}),
    ("linalg.det", (SQUARE,), {}),
    ("linalg.eigh", (POSITIVE,), {}),
    ("linalg.eigvalsh", (POSITIVE,), {}),
    ("linalg.inv", (SQUARE,), {}),
    ("linalg.slogdet", (SQUARE,), {}),
    ("linalg.qr", (TALL,), {}),
    ("linalg.qr", (TALL,), {"mode": "complete"}),
    ("linalg.svd", (TALL,), {}),
    ("linalg.svd", (TALL,), {"full_matrices": False}),
    ("linalg.svdvals", (TALL,), {}),
    ("linalg.eig", (SQUARE,), {}),
    ("linalg.eigvals", (SQUARE,), {}),
    ("linalg.pinv", (TALL,), {}),
    ("linalg.matrix_rank", (TALL,), {}),
    ("linalg.matrix_rank", (TALL,), {"rtol": np.asarray([0.1, 0.5, 0.9])}),
    ("linalg.solve", (SQUARE, TALL.swapaxes(1, 2).copy()), {}),
    ("linalg.solve", (SQUARE, V[:4]), {}),
    ("linalg.matrix_power", (SQUARE, 3), {}),
    ("linalg.diagonal", (TALL,), {"offset": -2}),
    ("linalg.trace", (TALL,), {}),
    ("linalg.cross", (TALL[..., :3], TALL[0, :, :3]), {}),
    ("linalg.outer", (V, W), {}),
    ("linalg.vector_norm", (TALL,), {"axis": (0, 2), "keepdims": True}),
    ("linalg.vector_norm", (A,), {"ord": 3}),
    ("linalg.vector_norm", (A,), {"axis": 0, "ord": np.inf}),
    ("linalg.vector_norm", (A,), {"ord": 0}),
    ("linalg.matrix_norm", (TALL,), {"ord": "nuc", "keepdims": True}),
]


@pytest.mark.parametrize(("name", "arguments", "options"), CASES, ids=[f"{k} {case[0]}" for k, case in enumerate(CASES)])
def test_like_numpy(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    compare(name, arguments, options)


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("arange", (300_000,), {}),
        ("arange", (5, 300_000 * 3, 3), {"dtype": np.float64}),
        ("arange", (300_000, 0, -1), {}),
        ("arange", (0.0, 1.0, 0.3), {}),
        ("linspace", (0.0, 1.0, 300_000), {}),
        ("linspace", (1, 3, 300_000), {"endpoint": False, "dtype": np.float32}),
        ("linspace", (0.0, 1.0, 0), {}),
        ("eye", (5, 3), {"k": 1}),
        ("eye", (3, 7), {"k": -1, "dtype": np.int64}),
        ("eye", (0, 3), {}),
        ("zeros", ((4, 0),), {}),
        ("full", ((3,), 2.0), {}),
    ],
)
def test_creation(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    compare(name, arguments, options)


def test_created_arrays_fit_into_the_allowed_memory() -> None:
    xpgrad_cubed.set_spec(cubed.Spec(allowed_mem="20MB"))
    try:
        for x in (xp.zeros((3000, 3000), device="cubed"), xp.eye(3000, device="cubed"), xp.arange(10**8, device="cubed")):
            assert x.array.chunkmem <= 2_000_000
            assert xp.sum(x.array[:5] * 0).item() == 0  # cubed refuses a plan with a larger task
    finally:
        xpgrad_cubed.set_spec(None)


def test_stack_of_arrays_in_different_chunks() -> None:
    ours = backend_for("cubed")
    found = ours.kernels.stack([cubed.asarray(V, chunks=5), cubed.asarray(V + 1, chunks=3)], axis=1)
    np.testing.assert_array_equal(ours.to_host(found), np.stack([V, V + 1], axis=1))


EMPTY = np.empty((0, 3))


def test_writing_nothing_changes_nothing() -> None:
    x = xp.asarray(divided(A)).requires_grad_()
    y = x * 1.0
    y[xp.asarray(np.empty(0, np.int64), device="cubed")] = 5.0
    (xp.sum(y * 2) + xp.sum(y[xp.asarray(np.empty(0, np.int64), device="cubed")])).backward()
    assert x.grad is not None
    np.testing.assert_array_equal(x.grad.numpy(), np.full(A.shape, 2.0))


@pytest.mark.parametrize(
    ("name", "arguments", "options"),
    [
        ("sum", (EMPTY,), {"axis": 0}),
        ("sum", (EMPTY,), {}),
        ("prod", (EMPTY,), {}),
        ("all", (EMPTY > 0,), {"axis": 0}),
        ("any", (EMPTY > 0,), {}),
        ("add", (EMPTY, A[:1, :3]), {}),
        ("matmul", (EMPTY.T, EMPTY), {}),
        ("concat", ([EMPTY, A[:, :3]],), {}),
        ("reshape", (EMPTY, (3, 0)), {}),
        ("zeros", ((0, 2),), {}),
        ("flip", (EMPTY,), {}),
        ("cumulative_sum", (EMPTY,), {"axis": 0}),
        ("linalg.inv", (np.empty((0, 4, 4)),), {}),
        ("sort", (EMPTY,), {"axis": 0}),
        ("where", (EMPTY > 0, EMPTY, EMPTY), {}),
    ],
)
def test_arrays_without_elements(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
    compare(name, arguments, options)


SLICES = [slice(*part) for part in ((1, None), (None, None, 2), (1, None, 3), (None, -1), (None, None, -2), (4, 0, -1))]
KEYS = [
    (None, 1, ..., None),
    (..., -1),
    (slice(3, 3),),
    (2, slice(0, 5, 2)),
    (),
    (slice(1, 4), None, slice(None, None, -1)),
    (...,),
    3,
    None,
]


@pytest.mark.parametrize("key", [*KEYS, *SLICES, *itertools.product(SLICES, SLICES)])
def test_slices(key: Any) -> None:
    ours = backend_for("cubed")
    for x in (divided(A), ours.from_host(A, xp.Device("cubed"))):
        np.testing.assert_array_equal(ours.to_host(ours.kernels.index_basic(x, key)), A[key])


@pytest.mark.parametrize("key", [(5,), (0, 0, 0), (0, -8)])
def test_keys_that_do_not_fit(key: Any) -> None:
    with pytest.raises(IndexError):
        xp.asarray(divided(A))[key]


def test_what_is_missing_says_so() -> None:
    x = xp.asarray(divided(A))
    with pytest.raises(CapabilityError, match="depends on values"):
        xp.nonzero(x)
    with pytest.raises(ValueError, match="at least one axis"):  # what is wrong everywhere comes before what is missing here
        xp.nonzero(x[0, 0])
    with pytest.raises(CapabilityError, match="nonzero"):
        x[x > 0].numpy()
    with pytest.raises(CapabilityError, match="float16"):
        xp.asarray(np.ones(2, np.float16), device="cubed")
    with pytest.raises(CapabilityError, match=r"linalg\.schur"):
        backend_for("cubed").kernels.linalg.schur  # noqa: B018
    assert not xp.asarray([1.0], device="cubed").backend.capabilities.fft
