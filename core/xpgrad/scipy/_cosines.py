"""The row of cosine and sine transforms: four kinds of matrices whose transposes are of these kinds as well.

The kinds are numbered as the transforms, but without their halved ends: with ``n`` and ``k`` from 0, and N the length, the elements are
twice the cosine of ``pi n k / (N - 1)``, ``pi (2 n + 1) k / 2N``, ``pi n (2 k + 1) / 2N`` and ``pi (2 n + 1) (2 k + 1) / 4N``; for sines
``n + 1`` and ``k + 1`` stand for the bare n and k, and ``N + 1`` for ``N - 1``. They are computed by Fourier transforms, following Makhoul,
"A fast cosine transform in one and two dimensions" (1980).
"""

from __future__ import annotations

import math
from typing import Any

from xpgrad.scipy._declare import on_the_host, row_only

#: The kind of the transpose of each kind.
_TRANSPOSE = {1: 1, 2: 3, 3: 2, 4: 4}


def _kernel(xp: Any, x: Any, kind: int, sine: bool, axis: int) -> Any:
    """Return the transform of `x` along an axis, computed by SciPy if possible, else by Fourier transforms."""
    found = on_the_host(xp, "cosines", x, kind, sine, axis)
    if found is not None:
        return found
    x = xp.moveaxis(x, axis, -1)
    if xp._backend.is_complex(x):
        real, imaginary = (_transform_real(xp, part(x), kind, sine) for part in (xp.real, xp.imag))
        out = xp.cast(real, x.dtype) + xp.cast(imaginary, x.dtype) * 1j
    else:
        out = _transform_real(xp, x, kind, sine)
    return xp.moveaxis(out, -1, axis)


def _transform_real(xp: Any, x: Any, kind: int, sine: bool) -> Any:
    """Return the transform of a real array along the last axis."""
    if kind == 1:
        return _odd(xp, x) if sine else _transform_even_extension(xp, x)
    if not sine:
        return _COSINES[kind](xp, x)
    # A sine transform is a cosine transform of the reversed sequence with alternating signs.
    if kind == 2:
        return xp.flip(_second(xp, _alternate_signs(xp, x)), axis=-1)
    if kind == 3:
        return _alternate_signs(xp, _third(xp, xp.flip(x, axis=-1)))
    return _alternate_signs(xp, _fourth(xp, xp.flip(x, axis=-1)))


def _alternate_signs(xp: Any, x: Any) -> Any:
    """Return `x` with every second element along the last axis negated."""
    return xp.where(xp.count_up(x, 0, x.shape[-1], 1) % 2 == 1, -x, x)


def _transform_even_extension(xp: Any, x: Any) -> Any:
    """Return the cosine transform of kind 1, computed as the Fourier transform of the even extension of `x`."""
    ends = xp.concat([x[..., :1] * 2, x[..., 1:-1], x[..., -1:] * 2], axis=-1)
    return xp.real(xp.fft.rfft(xp.concat([ends, xp.flip(x[..., 1:-1], axis=-1)], axis=-1), axis=-1))


def _odd(xp: Any, x: Any) -> Any:
    """Return the sine transform of kind 1, computed as the Fourier transform of the odd extension of `x`."""
    zero = xp.zeros_like(x[..., :1])
    whole = xp.fft.rfft(xp.concat([zero, x, zero, -xp.flip(x, axis=-1)], axis=-1), axis=-1)
    return -xp.imag(whole)[..., 1 : x.shape[-1] + 1]


def _phases(xp: Any, like: Any, start: float, step: float, count: int) -> Any:
    """Return ``exp(i * (start + step * n))`` for n from 0 below `count`, in the dtype of a complex array `like`."""
    angle = xp.cast(xp.count_up(like, 0, count, 1), xp.real(like).dtype) * step + start
    return xp.cast(xp.cos(angle), like.dtype) + xp.cast(xp.sin(angle), like.dtype) * 1j


def _second(xp: Any, x: Any) -> Any:
    """Return the cosine transform of kind 2, computed by a Fourier transform of the reordered elements."""
    n = x.shape[-1]
    order = xp.concat([x[..., 0:n:2], xp.flip(x[..., 1:n:2], axis=-1)], axis=-1)
    half = xp.fft.rfft(order, axis=-1)
    half = half * _phases(xp, half, 0.0, -math.pi / (2 * n), n // 2 + 1) * 2.0
    rest = -xp.flip(xp.imag(half)[..., 1 : (n + 1) // 2], axis=-1)
    return xp.concat([xp.real(half), rest], axis=-1)


def _third(xp: Any, x: Any) -> Any:
    """Return the cosine transform of kind 3: N times the inverse of kind 2, with the first element of `x` doubled."""
    n = x.shape[-1]
    back = xp.flip(x[..., n - n // 2 :], axis=-1)
    imaginary = xp.concat([xp.zeros_like(x[..., :1]), -back], axis=-1)
    kind = xp.fft.rfft(x[..., :1], axis=-1).dtype
    half = xp.cast(xp.concat([x[..., :1] * 2, x[..., 1 : n // 2 + 1]], axis=-1), kind) + xp.cast(imaginary, kind) * 1j
    half = half * _phases(xp, half, 0.0, math.pi / (2 * n), n // 2 + 1)
    order = xp.fft.irfft(half, n=n, axis=-1) * n
    front, rest = order[..., : (n + 1) // 2], xp.flip(order[..., (n + 1) // 2 :], axis=-1)
    if n % 2:
        rest = xp.concat([rest, xp.zeros_like(rest[..., :1]) if n > 1 else xp.zeros_like(front)], axis=-1)
    return xp.reshape(xp.stack([front, rest], axis=-1), (*x.shape[:-1], 2 * front.shape[-1]))[..., :n]


def _fourth(xp: Any, x: Any) -> Any:
    """Return the cosine transform of kind 4, computed by a complex Fourier transform of twice the length."""
    n = x.shape[-1]
    kind = xp.fft.rfft(x[..., :1], axis=-1).dtype
    z = xp.cast(x, kind)
    z = z * _phases(xp, z, 0.0, -math.pi / (2 * n), n)
    whole = xp.fft.fft(z, n=2 * n, axis=-1)[..., :n]
    return xp.real(whole * _phases(xp, whole, -math.pi / (4 * n), -math.pi / (2 * n), n)) * 2.0


_COSINES = {2: _second, 3: _third, 4: _fourth}


@row_only(
    lambda g, kind, sine, axis, xp: xp.special_cosines(g, _TRANSPOSE[kind], sine, axis), composed=_kernel, conj=False, elementwise=False,
    batch="stacked",
)  # fmt: skip
def _cosines(x: Any, kind: int, sine: bool, axis: int) -> Any:
    """Return `x` multiplied along an axis by the cosine matrix or, if `sine`, the sine matrix of a kind."""
