"""The Fourier transforms of the standard. MLX computes them in single precision only, so float64 raises `CapabilityError`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import mlx.core as mx

from xpgrad_mlx.host import lacks

__all__ = [
    "fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn", "rfft", "rfftfreq", "rfftn",
]  # fmt: skip


def _reject_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a transform that raises `CapabilityError` for float64, which MLX would compute in single precision."""

    @functools.wraps(function)
    def call(x: Any, *args: Any, **options: Any) -> Any:
        if x.dtype == mx.float64:
            raise lacks("complex128")
        return function(x, *args, **options)

    return call


fft, fftn, ifft, ifftn = (_reject_float64(getattr(mx.fft, name)) for name in ("fft", "fftn", "ifft", "ifftn"))
rfft, rfftn, irfft, irfftn = (_reject_float64(getattr(mx.fft, name)) for name in ("rfft", "rfftn", "irfft", "irfftn"))
fftshift, ifftshift = mx.fft.fftshift, mx.fft.ifftshift
_OTHER_WAY = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    return irfft(mx.conj(x), n=n, axis=axis, norm=_OTHER_WAY[norm])


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Any:
    return mx.conj(rfft(x, n=n, axis=axis, norm=_OTHER_WAY[norm]))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = mx.float32, device: Any = None) -> Any:
    half = (n - 1) // 2 + 1
    return mx.array([*range(half), *range(-(n // 2), 0)], dtype=dtype) / mx.array(n * d, dtype=dtype)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = mx.float32, device: Any = None) -> Any:
    return mx.arange(n // 2 + 1, dtype=dtype) / mx.array(n * d, dtype=dtype)
