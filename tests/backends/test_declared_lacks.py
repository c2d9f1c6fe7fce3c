"""Law: a library may lack what NumPy has (complex128 beside float64, use in other threads, NumPy's error classes) if its table says so."""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import kernels_only
from xpgrad import Device
from xpgrad.backend import BackendInfo, Capabilities
from xpgrad.registry import backend_for, backend_names, register_backend


class Sparing(kernels_only.KernelsOnlyBackend):
    """NumPy arrays with float64 but without complex128, which stay in one thread and whose errors are all ValueErrors."""

    name = "sparing"

    def __init__(self, variant: str | None) -> None:
        super().__init__(variant)
        self.device = Device("sparing")
        self.capabilities = Capabilities(complex128=False, threads=False)

    def find_dtype(self, name: str) -> Any:
        return None if name in ("bfloat16", "complex128") else np.dtype(name)

    def wrap_kernel(self, name: str, function: Any) -> Any:
        if not callable(function) or isinstance(function, type):
            return function
        inner = super().wrap_kernel(name, function)

        def kernel(*args: Any, **options: Any) -> Any:
            try:
                return inner(*args, **options)
            except (TypeError, OverflowError) as exc:
                raise ValueError("not supported") from exc

        return kernel


def test_a_backend_that_declares_nothing_has_what_numpy_has() -> None:
    rare = {"strides", "lazy", "streams", "devices", "jit", "vmap"}  # what few libraries have is declared
    assert {name for name, value in dataclasses.asdict(Capabilities()).items() if not value} == rare


@pytest.fixture(autouse=True)
def sparing() -> None:
    if "sparing" not in backend_names():
        register_backend(BackendInfo(name="sparing", load=Sparing, install="part of the tests"))


# -- dtypes ----------------------------------------------------------------------------------------------------------------------


def test_the_defaults_are_what_there_is() -> None:
    x = xp.tensor([1.0, 2.0], device="sparing")
    assert (x.dtype, xp.tensor([1j], device="sparing").dtype) == (xp.float64, xp.complex64)
    assert "complex128" not in map(str, backend_for("sparing").dtypes())


def test_complex_numbers_beside_float64_are_an_error() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True, device="sparing")
    z = xp.tensor([1j, 2.0], device="sparing")
    for use in (lambda: x * 1j, lambda: x * z, lambda: xp.astype(x, complex) * x, lambda: xp.fft.fft(x)):
        with pytest.raises(xp.CapabilityError, match=r"backend 'sparing' has no dtype complex128; it has .*float64, complex64"):
            use()
    y = xp.astype(x, xp.float32) * z  # in single precision both dtypes exist
    xp.sum(xp.real(y * xp.conj(y))).backward()
    assert (x.grad.dtype, x.grad.tolist()) == (xp.float64, [2.0, 16.0])


# -- threads ---------------------------------------------------------------------------------------------------------------------


def _nest(device: str, levels: int) -> tuple[set[int], Any]:
    """Return the threads in which passes ran that are nested to a depth, and the leaf of the outermost."""
    threads = set()

    class Nested(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, left: int) -> Any:
            ctx.left = left
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            threads.add(threading.get_ident())
            if ctx.left:
                with xp.enable_grad():
                    x = xp.tensor(1.0, requires_grad=True, device=device)
                    Nested.apply(x * 2.0, ctx.left - 1).backward()
            return g, None

    x = xp.tensor(1.0, requires_grad=True, device=device)
    Nested.apply(x, levels).backward()
    return threads, x


def test_no_pass_changes_threads() -> None:
    """If arrays may not leave their thread, passes nest as deep as the stack certainly allows (THR-06)."""
    threads, x = _nest("sparing", 23)
    assert threads == {threading.get_ident()}
    assert x.grad.item() == 1.0
    message = r"a pass inside of 24 others would go on in another thread, .* backend 'sparing' stay in the thread .* `threads` is False"
    with pytest.raises(xp.CapabilityError, match=message):
        _nest("sparing", 24)
    assert _nest("sparing", 3)[1].grad.item() == 1.0  # it leaves no state behind
    assert len(_nest("numpy", 30)[0]) > 1


# -- errors ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda x, n, b, z: xp.bitwise_and(x, x), TypeError),
        (lambda x, n, b, z: n & x, TypeError),
        (lambda x, n, b, z: xp.floor(z), TypeError),
        (lambda x, n, b, z: xp.remainder(z, z), TypeError),
        (lambda x, n, b, z: b - b, TypeError),
        (lambda x, n, b, z: -b, TypeError),
        (lambda x, n, b, z: n + 300, OverflowError),
        (lambda x, n, b, z: n * -(2**70), OverflowError),
    ],
)
def test_what_has_no_meaning_is_the_same_error_everywhere(use: Any, error: type[Exception]) -> None:
    """A meaningless call raises the same type of error, whatever the library itself raises."""
    for device in ("sparing", "numpy"):
        x, n = xp.tensor([1.0], device=device), xp.asarray([1], dtype="int8", device=device)
        with pytest.raises(error):
            use(x, n, n > 0, xp.tensor([1j], dtype="complex64", device=device))


def test_an_error_that_is_about_something_else_stays() -> None:
    x = xp.tensor([1.0], device="sparing")
    kernels = backend_for("sparing").kernels

    def broken(*args: Any) -> Any:
        raise ValueError("the disk is full")

    kernels.log1p = broken
    try:
        with pytest.raises(ValueError, match="the disk is full"):
            xp.log1p(x)
    finally:
        del kernels.log1p
