"""Law: Fourier, cosine and sine transforms have SciPy's values, and derivatives of every order, in every mode, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy", reason="it says what is right")

import scipy.fft as theirs

import xpgrad as xp
from signals.laws import Call, batch_is_loop, derivatives_are_differences, forward_is_reverse, values_are_scipys
from support.central_differences import loosen, numbers, values
from xpgrad.scipy import fft as ours
from xpgrad.scipy._cosines import _transform_real

#: Names of transforms by operands: real numbers, complex ones, or either.
REAL = {"rfft", "ihfft", "rfftn", "rfft2", "ihfftn", "ihfft2"}
COSINES = ("dct", "idct", "dst", "idst")
OTHERS = {"fftfreq", "rfftfreq", "fftshift", "ifftshift", "next_fast_len", "prev_fast_len"}


def call(name: str, point: np.ndarray, **options: Any) -> Call:
    return Call(lambda x: getattr(ours, name)(x, **options), lambda x: getattr(theirs, name)(x, **options), (point,))


def point(name: str, shape: tuple[int, ...]) -> np.ndarray:
    return numbers(shape, 1.0, np.float64 if name in REAL else np.complex128)


CALLS: dict[str, Call] = {
    **{
        f"{name} {norm}": call(name, point(name, (2, 5)), n=n, axis=axis, norm=norm)
        for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
        for n, axis, norm in ((None, -1, None), (4, 0, "ortho"), (3, 1, "forward"))
    },
    **{
        f"{name} {norm}": call(name, point(name, (2, 3, 4)), s=s, axes=axes, norm=norm)
        for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn", "fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")
        for s, axes, norm in ((None, (-2, -1), None), ((3, 5), (0, 2), "ortho"))
    },
    **{
        f"{name} {kind} {norm}": call(name, numbers((2, 5)), type=kind, norm=norm, **more)
        for name in COSINES
        for kind in (1, 2, 3, 4)
        for norm, more in ((None, {}), ("ortho", {"axis": 0, "n": 4}), ("forward", {"orthogonalize": True, "n": 3}))
    },
    **{f"{name} complex": call(name, numbers((5,), 1.0, np.complex128), type=4) for name in COSINES},
    **{f"{name}n": call(f"{name}n", numbers((2, 3, 4)), s=(5, 2), axes=[2, 0], norm="ortho") for name in COSINES},
}  # fmt: skip
_each = pytest.mark.parametrize("name", CALLS)


def test_every_function_is_in_the_table() -> None:
    assert {name.split()[0] for name in CALLS} | OTHERS == set(ours.__all__)


@pytest.mark.slow(one_in=3)
@_each
def test_values_are_scipys(name: str, xpgrad_device: str) -> None:
    values_are_scipys(CALLS[name], xpgrad_device)


@pytest.mark.slow(one_in=3)
@_each
def test_derivatives_are_differences(name: str, xpgrad_device: str) -> None:
    derivatives_are_differences(CALLS[name], xpgrad_device)


@pytest.mark.slow(one_in=3)
@_each
def test_forward_mode_is_reverse_mode(name: str, xpgrad_device: str) -> None:
    forward_is_reverse(CALLS[name], xpgrad_device)


@pytest.mark.slow(one_in=3)
@_each
def test_a_batch_is_a_loop(name: str, xpgrad_device: str) -> None:
    batch_is_loop(CALLS[name], xpgrad_device)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("name", COSINES)
def test_cosine_transforms_of_every_length(name: str, norm: Any, xpgrad_device: str) -> None:
    tolerance = loosen(1e-12, xpgrad_device)
    for n in (1, 2, 3, 4, 7, 8):
        x = numbers((2, n))
        for kind in (1, 2, 3, 4):
            if n == 1 and kind == 1 and name.endswith("ct"):
                continue
            for orthogonalize in (None, True, False):
                options = {"type": kind, "norm": norm, "orthogonalize": orthogonalize}
                found = getattr(ours, name)(xp.asarray(x, device=xpgrad_device), **options)
                expected = getattr(theirs, name)(x, **options)
                np.testing.assert_allclose(values(found), expected, rtol=tolerance, atol=tolerance, err_msg=str((n, options)))


@pytest.mark.parametrize("sine", [False, True])
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
def test_without_the_host_they_are_fourier_transforms(kind: int, sine: bool, xpgrad_device: str) -> None:
    """Without SciPy, cosine and sine transforms agree with the matrices of their definition."""
    like = xp.zeros(1, dtype=xp.float32, device=xpgrad_device)
    tolerance = loosen(1e-12, xpgrad_device)
    for size in (1, 2, 3, 8, 9):
        if kind == 1 and not sine and size == 1:
            continue
        n, k = np.arange(size), np.arange(size)[:, None]
        if sine:
            angle = {1: (n + 1) * (k + 1) / (size + 1), 2: (2 * n + 1) * (k + 1) / (2 * size), 3: (n + 1) * (2 * k + 1) / (2 * size)}
        else:
            angle = {1: n * k / max(size - 1, 1), 2: (2 * n + 1) * k / (2 * size), 3: n * (2 * k + 1) / (2 * size)}
        angle[4] = (2 * n + 1) * (2 * k + 1) / (4 * size)
        matrix = 2 * (np.sin if sine else np.cos)(np.pi * angle[kind])
        x = numbers((3, size))
        found = _transform_real(like.backend.kernels, xp.asarray(x, device=xpgrad_device)._array, kind, sine)
        np.testing.assert_allclose(values(like.backend.wrap(found)), x @ matrix.T, rtol=tolerance, atol=tolerance)


def test_inverses_are_inverses(xpgrad_device: str) -> None:
    x = xp.asarray(numbers((2, 6)), device=xpgrad_device)
    for name, inverse in (("dct", "idct"), ("dst", "idst"), ("dctn", "idctn"), ("dstn", "idstn")):
        for kind in (1, 2, 3, 4):
            for norm in (None, "ortho", "forward"):
                back = getattr(ours, inverse)(getattr(ours, name)(x, kind, norm=norm), kind, norm=norm)
                np.testing.assert_allclose(values(back), values(x), rtol=loosen(1e-12, xpgrad_device), atol=loosen(1e-13, xpgrad_device))


def test_lengths_frequencies_and_shifts(xpgrad_device: str) -> None:
    for n in range(1, 150):
        for real in (False, True):
            assert ours.next_fast_len(n, real) == theirs.next_fast_len(n, real)
            assert ours.prev_fast_len(n, real) == theirs.prev_fast_len(n, real)
    for n in (5, 6):
        tolerance = loosen(1e-15, xpgrad_device)
        np.testing.assert_allclose(values(ours.fftfreq(n, 0.3, device=xpgrad_device)), theirs.fftfreq(n, 0.3), rtol=tolerance)
        np.testing.assert_allclose(values(ours.rfftfreq(n, 0.3, device=xpgrad_device)), theirs.rfftfreq(n, 0.3), rtol=tolerance)
    x = xp.asarray(np.arange(12.0).reshape(3, 4), device=xpgrad_device)
    for axes in (None, 0, (0, 1), [1]):
        assert values(ours.fftshift(x, axes)).tolist() == theirs.fftshift(values(x), axes).tolist()
        assert values(ours.ifftshift(x, axes)).tolist() == theirs.ifftshift(values(x), axes).tolist()


def test_integers_and_lists_promote(xpgrad_device: str) -> None:
    x = xp.asarray([1, 2, 3], device=xpgrad_device)
    for name in ("dct", "fft"):
        expected = getattr(theirs, name)([1.0, 2.0, 3.0])
        tolerance = loosen(1e-12, xpgrad_device)
        np.testing.assert_allclose(values(getattr(ours, name)(x)), expected, rtol=tolerance, atol=tolerance)
    assert ours.dct(xp.asarray([1.0, 2.0], dtype=xp.float32, device=xpgrad_device)).dtype == xp.float32
    np.testing.assert_allclose(values(ours.rfft([1, 2, 3])), theirs.rfft([1, 2, 3]))


def test_nan_is_seen() -> None:
    for kind in (1, 2, 3, 4):
        assert np.isnan(values(ours.dct(xp.asarray([1.0, np.nan, 2.0, 0.5]), kind))).all()


X = xp.zeros((2, 3))
BAD: dict[str, tuple[Any, type[Exception], str]] = {
    "types": (lambda: ours.dct(X, 5), ValueError, "`type` must be 1, 2, 3 or 4"),
    "types that are not integers": (lambda: ours.dct(X, 2.5), TypeError, "`type` must be an int"),
    "norms": (lambda: ours.dst(X, norm="max"), ValueError, "`norm` must be"),
    "norms of fft": (lambda: ours.fft(X, norm="max"), ValueError, "`norm` must be"),
    "numbers": (lambda: ours.dct(3.0), ValueError, "at least one axis"),
    "text": (lambda: ours.dct("abc"), TypeError, "`x` must be a Tensor"),
    "bools": (lambda: ours.dct(xp.asarray([True])), TypeError, "`x` must hold numbers"),
    "lengths": (lambda: ours.dct(X, n=0), ValueError, "must be at least 1"),
    "short": (lambda: ours.dct(xp.zeros(1), 1), ValueError, "must be at least 2"),
    "no elements": (lambda: ours.dct(xp.zeros(0)), ValueError, "must be at least 1, but is 0"),
    "axes that are not there": (lambda: ours.dct(X, axis=3), (ValueError, IndexError), "3"),
    "many lengths": (lambda: ours.dctn(X, s=(2, 2, 2)), ValueError, "more lengths"),
    "lengths without axes": (lambda: ours.dctn(X, s=(2, 2), axes=0), ValueError, "equal lengths"),
    "complex numbers": (lambda: ours.rfft(X * 1j), TypeError, "needs a real Tensor"),
    "plans": (lambda: ours.fft(X, plan=3), NotImplementedError, "`plan` must be None"),
    "targets": (lambda: ours.next_fast_len(0), ValueError, "`target` must be a positive length"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_by_name(name: str) -> None:
    function, error, message = BAD[name]
    with pytest.raises(error, match=message):
        function()


def test_gradients_are_jaxs() -> None:
    jax = pytest.importorskip("jax", reason="JAX is what is compared with")
    if not jax.config.jax_enable_x64:
        pytest.skip("JAX computes in single precision here: run with JAX_ENABLE_X64=1")
    import jax.scipy.fft

    x = numbers((3, 5))
    for name in ("dct", "idct"):
        expected = jax.grad(lambda x, n=name: (getattr(jax.scipy.fft, n)(x, norm="ortho") ** 3).sum())(x)
        found = xp.func.grad(lambda x, n=name: xp.sum(getattr(ours, n)(x, norm="ortho") ** 3))(xp.asarray(x))
        np.testing.assert_allclose(values(found), expected, rtol=1e-10, atol=1e-12)
