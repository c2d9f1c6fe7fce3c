"""Rows of the Fourier transforms: complex to complex, real to half-complex, and the reverse; the gradient of each is another of them.

They are linear, so they save only shapes. The transpose of a transform with norm "backward" is the inverse transform with norm
"forward", and vice versa.
"""

from __future__ import annotations

from typing import Any

from xpgrad._operations.declare import rule

#: The normalisation of the transpose, and the inverse's name for the same factor.
OPPOSITE = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


@rule(
    lambda g, axes, forward, norm, xp: xp.fourier(g, axes, not forward, OPPOSITE[norm]),
    conj=False, fresh=True, node="FftC2CBackward0", batch="stacked",
    public=("fft.fft", "fft.ifft", "fft.fftn", "fft.ifftn"),
)  # fmt: skip
def fourier(xp: Any, x: Any, axes: tuple[int, ...], forward: bool, norm: str) -> Any:
    """Return the discrete Fourier transform of a complex array over `axes` or, unless `forward`, the inverse transform."""
    if len(axes) == 1:
        return (xp.fft.fft if forward else xp.fft.ifft)(x, axis=axes[0], norm=norm)
    return (xp.fft.fftn if forward else xp.fft.ifftn)(x, axes=axes, norm=norm)


def _real_vjp(g: Any, x_shape: Any, axis: int, norm: str, xp: Any) -> Any:
    return xp.half_to_real(xp.scale_inner(g, x_shape[axis], axis, 0.5), x_shape[axis], axis, OPPOSITE[norm])


@rule(_real_vjp, conj=False, fresh=True, node="FftR2CBackward0", batch="stacked", public=("fft.rfft", "fft.rfftn"))
def real_to_half(xp: Any, x: Any, axis: int, norm: str) -> Any:
    """Return the discrete Fourier transform of a real array along an axis, for the nonnegative frequencies."""
    return xp.fft.rfft(x, axis=axis, norm=norm)


def _half_vjp(g: Any, length: int, axis: int, norm: str, xp: Any) -> Any:
    return xp.scale_inner(xp.real_to_half(g, axis, OPPOSITE[norm]), length, axis, 2.0)


@rule(_half_vjp, conj=False, fresh=True, node="FftC2RBackward0", batch="stacked", public=("fft.irfft", "fft.irfftn"))
def half_to_real(xp: Any, x: Any, length: int, axis: int, norm: str) -> Any:
    """Return the real array whose transform along an axis is `x` at the nonnegative frequencies; it has `length` there."""
    return xp.fft.irfft(x, n=length, axis=axis, norm=norm)


@rule(lambda g, length, axis, factor, xp: xp.scale_inner(g, length, axis, factor), conj=False, fresh=True, batch="stacked")
def scale_inner(xp: Any, x: Any, length: int, axis: int, factor: float) -> Any:
    """Multiply by `factor` the frequencies that a spectrum of `length` contains twice: all but zero and, for even lengths, the last."""
    before = (slice(None),) * axis
    inner = (length + 1) // 2
    parts = [x[(*before, part, ...)] for part in (slice(0, 1), slice(1, inner), slice(inner, None))]
    return xp.concat([parts[0], parts[1] * factor, parts[2]], axis=axis)
