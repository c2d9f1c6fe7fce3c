"""Law: NumPy's own kernels agree with the default ones for arrays of any layout, and rows are added in the order of the index."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from xpgrad.registry import backend_for

LAYOUTS = {
    "row-major": lambda x: np.ascontiguousarray(x),
    "column-major": lambda x: np.asfortranarray(x),
    "every second": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: np.ascontiguousarray(x[..., ::-1])[..., ::-1],
    "read-only": lambda x: np.lib.stride_tricks.as_strided(x, writeable=False),
    "one number": lambda x: np.broadcast_to(x[(0,) * x.ndim], x.shape),
    "one row": lambda x: np.broadcast_to(x[:1], x.shape),
}
NUMBERS = [-np.inf, -1.0, -0.0, 0.0, 1.0, 2.0, np.inf, np.nan, 1e-5]

KERNELS: Any = backend_for("numpy").kernels


def drawn(rng: np.random.Generator, dtype: str, shape: tuple[int, ...] = (4, 6)) -> np.ndarray:
    x = rng.choice(NUMBERS, shape)
    return (x + 1j * rng.choice(NUMBERS, shape) if dtype.startswith("complex") else x).astype(dtype)


def share(x: np.ndarray, low: Any, high: Any) -> np.ndarray:
    return np.where(low < high, np.zeros((), x.dtype), np.where(low == high, x / 2, x))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128", "int32", "bool"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_not_kept_is_zero(layout: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        x = LAYOUTS[layout](drawn(rng, dtype))
        for cond in (rng.random((4, 6)) < 0.5, rng.random(6) < 0.5, rng.random((4, 1)) < 0.5, np.asfortranarray(rng.random((4, 6)) < 0.5)):
            out = KERNELS.keep(cond, x)
            np.testing.assert_array_equal(out, np.where(cond, x, np.zeros((), x.dtype)))
            assert out.dtype == x.dtype
            assert out.flags.writeable
            assert not np.shares_memory(out, x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_ties_get_half(layout: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    x, low, high = (LAYOUTS[layout](drawn(rng, dtype)) for _ in range(3))
    for a, b in ((low, high), (low, 1.0), (0, high), (low[0], high), (low, high[:, :1]), (low, low), (low + 3, low)):
        out = KERNELS.share(x, a, b)
        np.testing.assert_array_equal(out, share(x, a, b))
        assert out.dtype == x.dtype
        assert out.flags.writeable
        assert not np.shares_memory(out, x)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_without_axes(dtype: Any) -> None:
    """Kernels accept NumPy's scalars, which operations on 0-d arrays return, and give the right value and dtype."""
    for x in (dtype(-3.0), np.asarray(-3.0, dtype)):
        assert KERNELS.keep(np.bool_(True), x) == -3.0
        assert KERNELS.keep(np.bool_(False), x) == 0.0
        for a, b, expected in ((0.5, 1.0, 0.0), (1.0, 1.0, -1.5), (2.0, 1.0, -3.0)):
            for low, high in ((dtype(a), b), (a, dtype(b)), (np.asarray(a, dtype), np.asarray(b, dtype))):
                out = KERNELS.share(x, low, high)
                assert out == expected
                assert out.dtype == dtype


@pytest.mark.parametrize("layout", LAYOUTS)
def test_reductions_are_undone(layout: str) -> None:
    g = LAYOUTS[layout](np.arange(24.0).reshape(4, 6))
    for shape, axes in (((4, 3, 6), (1,)), ((4, 6, 2), (2,)), ((2, 4, 6), (0,)), ((2, 4, 6, 3), (0, 3))):
        kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
        for keepdims in (False, True):
            out = KERNELS.expand_reduced(g.reshape(kept) if keepdims else g, shape, axes, keepdims)
            np.testing.assert_array_equal(out, np.broadcast_to(g.reshape(kept), shape))
            assert not out.flags.writeable
    twice = KERNELS.expand_reduced(KERNELS.expand_reduced(np.float32(2.5), (4,), None, False), (4, 3), (1,), False)
    np.testing.assert_array_equal(twice, np.full((4, 3), 2.5))
    assert twice.dtype == np.float32


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    rows=st.integers(1, 12), width=st.integers(0, 7), count=st.integers(0, 30), seed=st.integers(0, 99),
    dtype=st.sampled_from(["float32", "float64", "complex64", "complex128"]),
    index=st.sampled_from(["int8", "uint8", "int32", "int64", "intp"]), axes=st.integers(1, 2),
)  # fmt: skip
def test_rows_are_added_one_after_the_other(rows: int, width: int, count: int, seed: int, dtype: str, index: str, axes: int) -> None:
    """Each sum adds its terms in the order of the index, to the last bit, whatever else the array contains."""
    rng = np.random.default_rng(seed)
    low = 0 if index.startswith("u") else -rows
    key = rng.integers(low, rows, (count,) if axes == 1 else (2, count)).astype(index)
    values = rng.normal(size=(*key.shape, width)).astype(dtype)
    buffer = rng.normal(size=(rows, width)).astype(dtype)
    for start in (np.zeros_like(buffer), buffer):
        expected = start.copy()
        for place, value in zip(key.reshape(-1).tolist(), values.reshape(key.size, width)):
            expected[place] += value
        out = KERNELS.scatter_into(start.copy(), values, (key,))
        np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(KERNELS.scatter_add(values, (key,), (rows, width)), KERNELS.scatter_into(buffer * 0, values, (key,)))


def test_few_rows_of_a_large_array_take_little_memory() -> None:
    key, values = np.asarray([7, -1, 7]), np.ones((3, 16))
    for _ in range(2):
        tracemalloc.start()
        try:
            out = KERNELS.scatter_add(values, (key,), (20_000, 16))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert out.sum() == 48
    assert peak < 1.1 * out.nbytes


def test_a_gather_and_its_gradient_are_the_same_in_every_run() -> None:
    rng = np.random.default_rng(3)
    table = xp.tensor(rng.normal(size=(50, 6)).astype("float32"), requires_grad=True)
    key = xp.asarray(rng.integers(0, 50, 400))
    seed = xp.asarray(rng.normal(size=(400, 6)).astype("float32"))
    found = [xp.autograd.grad(xp.take(table, key, axis=0), table, seed)[0].numpy() for _ in range(3)]
    expected = np.zeros((50, 6), "float32")
    for place, value in zip(key.numpy(), seed.numpy()):
        expected[place] += value
    for g in found:
        np.testing.assert_array_equal(g, expected)
