"""Law: the functions of the namespace give NumPy's values and dtypes, with every option that the standard has."""

from __future__ import annotations

import warnings
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import xpgrad as xp
from xpgrad_mlx import namespace

_rng = np.random.default_rng(3)
#: Operands by name: floats, positive ones, a regular matrix, integers with duplicates, unsigned ones, bools, complex numbers.
OPERANDS = {
    "x": _rng.standard_normal((3, 4, 3)).astype("float32"), "v": np.asarray([0.5, 2.0, -1.0, 2.0], "float32"),
    "p": np.abs(_rng.standard_normal((3, 4))).astype("float32"), "a": (np.eye(3) * 3 + _rng.random((3, 3))).astype("float32"),
    "i": np.asarray([[3, -1, 3, 0], [2, 2, -7, 1]]), "k": np.asarray([300, 5, 70, 5, -2, 70, 11, 200, 1, 23, 900]),
    "u": np.asarray([250, 3, 0, 255], "uint8"), "b": np.asarray([[True, False, True, False], [True, True, False, True]]),
    "c": (_rng.standard_normal((2, 4)) + 1j * _rng.standard_normal((2, 4))).astype("complex64"), "n": np.asarray([0, 2, 1]),
}  # fmt: skip

_FFT = [f"xp.fft.{name}({{}}, {options})" for name in ("fft", "ifft", "hfft", "irfft", "rfft", "ihfft")
        for options in ("axis=-1", "n=5, axis=0", "n=2, norm='ortho'", "norm='forward'")]  # fmt: skip
CALLS = [
    # operands of other kinds
    "xp.divide(x, 10**30)", "xp.add(3, v)", "xp.equal(v, 10**30)", "xp.subtract(i, 2)", "xp.floor_divide(i, 2)", "xp.remainder(i, 3)",
    "xp.bitwise_and(i, 6)", "xp.bitwise_or(6, u)", "xp.bitwise_xor(b, b)", "xp.bitwise_invert(u)", "xp.bitwise_left_shift(i, 2)",
    "xp.bitwise_right_shift(u, 3)", "xp.signbit(i)", "xp.signbit(-p)", "xp.sign(c)", "xp.sign(i)", "xp.positive(c)", "xp.copysign(v, -1.0)",
    "xp.logaddexp(x, 0.5)", "xp.hypot(x, 2.0)", "xp.nextafter(v, 9.0)", "xp.nextafter(v, x[0, 0, 0])",
    # complex numbers
    "xp.expm1(c)", "xp.expm1(c * 1e-3)", "xp.log1p(c)", "xp.log1p(c * 1e-3)", "xp.exp(c)", "xp.sqrt(c)", "xp.pow(c, 2.0)",
    "xp.pow(c * 0, c * 0)",
    "xp.pow(v, 2)", "xp.abs(c)", "xp.conj(c)", "xp.sum(c, axis=0)", "xp.mean(c)", "xp.prod(c, axis=1)", "xp.matmul(c, xp.conj(c[0]))",
    # bounds
    "xp.clip(x, -0.5, 0.5)", "xp.clip(x, max=0.5)", "xp.clip(x, min=0.0)", "xp.clip(x)", "xp.clip(x, x[0], None)", "xp.clip(i, 0, 2)",
    # running sums
    "xp.cumulative_sum(x, axis=1)", "xp.cumulative_sum(x, axis=-1, include_initial=True)", "xp.cumulative_sum(u)",
    "xp.cumulative_sum(b, axis=1)",
    "xp.cumulative_sum(i, axis=0, dtype=xp.float32)", "xp.cumulative_prod(x, axis=0, include_initial=True)", "xp.cumulative_prod(v)",
    "xp.cumulative_sum(u, dtype=xp.uint8)",
    "xp.diff(x, axis=0)", "xp.diff(x, n=2, axis=1)", "xp.diff(v, prepend=v[:1], append=v[:2])",
    # order and sets
    "xp.argsort(i, axis=0, stable=True)", "xp.sort(x, axis=1)", "xp.argmax(x)", "xp.argmax(x, axis=1, keepdims=True)",
    "xp.argmin(x, axis=-1)",
    "xp.argmin(x[0, 0, 0])", "xp.searchsorted(xp.sort(v), x[0, 0])", "xp.searchsorted(xp.sort(v), v, side='right')",
    "xp.searchsorted(v, v, side='left', sorter=xp.argsort(v))", "xp.nonzero(x > 0)", "xp.isin(i, u)", "xp.sort(xp.unique_values(k))",
    "xp.unique_all(k)",
    "xp.unique_counts(i)", "xp.unique_inverse(i)",
    # reductions
    "xp.sum(u)", "xp.sum(u, dtype=xp.int32)", "xp.sum(u, dtype=xp.uint8)", "xp.sum(i, dtype=xp.int8)", "xp.prod(u, dtype=xp.uint8)",
    "xp.sum(b)", "xp.sum(x, axis=(0, -1), keepdims=True)", "xp.prod(u[:2])", "xp.prod(x, axis=1, dtype=xp.float32)",
    "xp.var(x, axis=(0, 1), correction=1)", "xp.var(v, correction=1.5)", "xp.var(v, keepdims=True)", "xp.var(v, correction=4)",
    "xp.std(x, axis=2, correction=1, keepdims=True)", "xp.mean(x, axis=1, keepdims=True)", "xp.max(i, axis=1)",
    "xp.min(x, axis=(0, 2), keepdims=True)",
    "xp.all(b, axis=0)", "xp.any(v)", "xp.any(b, axis=1, keepdims=True)", "xp.count_nonzero(i)", "xp.count_nonzero(v, axis=0)",
    # shapes
    "xp.reshape(x, (4, 9))", "xp.concat([i, b], axis=1)", "xp.concat([x, x[0]], axis=None)", "xp.unstack(x, axis=1)", "xp.repeat(v, 2)",
    "xp.repeat(x, 2, axis=1)", "xp.repeat(x, n, axis=0)", "xp.repeat(v[:3], n)", "xp.broadcast_arrays(x, x[0, 0])", "xp.meshgrid(v, n)",
    "xp.meshgrid(v, n, indexing='ij')", "xp.take_along_axis(x, n[None, None] * 1, axis=1)", "xp.tril(x)", "xp.tril(x, k=-1)", "xp.triu(x)",
    "xp.triu(x, k=1)", "xp.moveaxis(x, 0, -1)", "xp.roll(x, (1, -2), axis=(0, 1))", "xp.flip(x)", "xp.flip(x, axis=(0, 2))",
    "xp.tile(v, (2, 1))",
    # creation
    "xp.zeros((2, 3))", "xp.ones(3, dtype=xp.int16)", "xp.empty((0, 2))", "xp.full(2, 7)", "xp.full((2,), 2.5, dtype=xp.complex64)",
    "xp.full(2, True)", "xp.zeros_like(u)", "xp.ones_like(c)", "xp.ones_like(c, dtype=xp.int8)", "xp.zeros_like(c, dtype=xp.int8)",
    "xp.full_like(u, 9)", "xp.full_like(u, 9, dtype=xp.float32)", "xp.empty_like(v[:0])", "xp.arange(3)", "xp.arange(2, 9, 3)",
    "xp.arange(5, 1, -2, dtype=xp.float32)", "xp.arange(1.5)", "xp.linspace(0, 1, 4)", "xp.linspace(-3, 4, 6, dtype=xp.int32)",
    "xp.linspace(1, 2, 4, endpoint=False)", "xp.eye(3)", "xp.eye(2, 4, k=1)", "xp.eye(3, 2, k=-1, dtype=xp.int32)", "xp.asarray([1, 2])",
    "xp.asarray(i, dtype=xp.float32)", "xp.asarray(b, copy=True)", "xp.astype(v, xp.int32)", "xp.astype(v, xp.float32, copy=False)",
    # linear algebra
    "xp.tensordot(x, x, axes=((0, 1), (0, 1)))", "xp.tensordot(i, i, axes=2)", "xp.matmul(i, i[0])", "xp.matmul(b, b[0])",
    "xp.vecdot(c, c[0])", "xp.vecdot(u, u)",
    "xp.vecdot(x, x[:1], axis=-2)", "xp.linalg.outer(v, u)", "xp.linalg.diagonal(x, offset=1)", "xp.linalg.diagonal(a, offset=-1)",
    "xp.linalg.trace(x, offset=-1)", "xp.linalg.trace(i, dtype=xp.float32)", "xp.linalg.cross(x, x[:, :1], axis=-1)",
    "xp.linalg.cross(x, xp.flip(x), axis=0)", "xp.linalg.cross(n, n[0] + n * n)", "xp.linalg.cholesky(a @ a.T)", "xp.linalg.slogdet(a)",
    "xp.linalg.solve(a, a[0])", "xp.linalg.solve(a, a[:, :2])", "xp.linalg.qr(x)[1] ** 2", "xp.linalg.qr(x, mode='complete')[0] ** 2",
    "xp.linalg.svd(x)[0] ** 2", "xp.linalg.svd(x, full_matrices=False)[0] ** 2", "xp.linalg.eigh(a + a.T)[0]",
    "xp.linalg.matrix_power(a, -2)",
    "xp.linalg.matrix_norm(x, ord=1, keepdims=True)", "xp.linalg.pinv(x)", "xp.linalg.matrix_rank(a)",
    *(f"xp.linalg.vector_norm({x}, ord={o}, {options})" for o in ("2", "1", "0", "3", "0.5", "xp.inf", "-xp.inf")
      for x, options in (("x", "axis=(0, 2)"), ("v", "keepdims=True"), ("c", "axis=1"))),
    # Fourier transforms
    *(call.format("x" if "fft.rfft" in call or "ihfft" in call else "c") for call in _FFT),
    "xp.fft.fftn(x, axes=(0, 1), s=(4, 2), norm='ortho')", "xp.fft.ifftn(c)", "xp.fft.rfftn(x, norm='forward')",
    "xp.fft.irfftn(c, s=(2, 5), axes=(0, 1))",
    "xp.fft.fftfreq(5)", "xp.fft.fftfreq(4, d=0.5)", "xp.fft.rfftfreq(5, d=2.0)", "xp.fft.rfftfreq(6)", "xp.fft.fftshift(x, axes=1)",
    "xp.fft.ifftshift(v[:3])",
]  # fmt: skip


def _leaves(found: Any) -> list[np.ndarray]:
    """Return a result's arrays as NumPy's."""
    return [np.asarray(x) for x in (found if isinstance(found, (tuple, list)) else [found])]


@pytest.mark.parametrize("call", CALLS)
def test_a_function_has_numpys_values_and_dtype(call: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # NumPy warns about a variance of too few elements
        expected = _leaves(eval(call, {"xp": np, **OPERANDS}))
    found = _leaves(eval(call, {"xp": namespace, **{name: mx.array(x) for name, x in OPERANDS.items()}}))
    for e, f in zip(expected, found, strict=True):
        narrow = {"float64": "float32", "complex128": "complex64"}
        assert (narrow.get(f.dtype.name, f.dtype.name), f.shape) == (narrow.get(e.dtype.name, e.dtype.name), e.shape)
        np.testing.assert_allclose(f, e, rtol=2e-5, atol=2e-6)


def test_the_next_number_of_bfloat16_is_refused_and_that_of_integers_is_floating() -> None:
    """NumPy would give the next float32, which rounds back to the operand, and float64 for integers."""
    with pytest.raises(xp.CapabilityError, match="`nextafter` of bfloat16"):
        xp.nextafter(xp.ones(2, dtype="bfloat16", device="mlx"), 2.0)
    assert xp.nextafter(xp.asarray([3], device="mlx"), 4).dtype is xp.float32


def test_distinct_values_are_sorted_with_and_without_a_gradient() -> None:
    values = [300, 5, 70, 5, -2, 200, 1, 23, 900]
    for x in (xp.asarray(values, device="mlx"), xp.tensor(values, dtype=xp.complex64, device="mlx", requires_grad=True)):
        assert xp.unique_values(x.detach()).tolist() == xp.unique_values(x).tolist() == sorted(set(values))


@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64"])
def test_equal_indices_are_added_and_the_last_of_them_is_written(dtype: str) -> None:
    found = []
    for device in ("numpy", "mlx"):
        x = xp.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=dtype, requires_grad=True, device=device)
        turn = 1 + 2j if dtype == "complex64" else 3
        places, mask = xp.asarray([2, 0, 2, 2], device=device), xp.asarray([True, False, True], device=device)
        y = x * turn
        y[places] = x[places] * xp.asarray([[1.0], [2.0], [3.0], [4.0]], dtype=dtype, device=device)
        y[mask, 1], y[1, 0] = 7, y[0, 0] * 5
        xp.sum(xp.real(y * y * turn)).backward()
        assert (y.dtype.name, x.grad.dtype.name) == (dtype, dtype)
        found.append((y.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


def test_numpys_results_for_bfloat16_are_bfloat16() -> None:
    x = xp.asarray(mx.array([2.0, 1.0, 2.0], dtype=mx.bfloat16))
    assert (xp.unique_values(x).dtype, xp.unique_values(x).tolist()) == (xp.bfloat16, [1.0, 2.0])
    assert xp.unique_all(x).indices.dtype is xp.int64
