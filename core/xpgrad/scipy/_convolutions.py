"""Rows of linear filters: convolutions over several axes, and the recursion of an IIR filter.

Two rows are closed under derivatives: the full convolution, and the sliding product of one array with the windows of another (the
correlation of mode ``"valid"``). The third is the recursion ``a[0] y[n] + a[1] y[n - 1] + ... = v[n]``. Its adjoint is the same recursion
run backwards, and its derivative with respect to the coefficients is a correlation. See Oppenheim and Schafer, "Discrete-Time Signal
Processing" (2010), section 2.5.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from xpgrad.scipy._declare import on_the_host, row_only

#: More than `_TAPS` taps are not summed one by one but multiplied by a matrix of windows with at most `_WINDOWS` elements.
_TAPS, _WINDOWS = 64, 1 << 22


def fast_length(n: int, primes: tuple[int, ...] = (2, 3, 5)) -> int:
    """Return the smallest length of at least `n` without other prime factors, for which Fourier transforms are fast."""
    best, found = 1 << max(n - 1, 0).bit_length(), {1}
    for p in primes:
        found = {m for base in found for m in _powers(base, p, best)}
    return min((m for m in found if m >= n), default=best)


def _powers(base: int, p: int, limit: int) -> list[int]:
    """Return the numbers ``base * p**k`` up to `limit`."""
    out = []
    while base <= limit:
        out.append(base)
        base *= p
    return out


def _by_windows(g: Any, other: Any, shape: Any, rank: int, fourier: bool, xp: Any) -> Any:
    return xp.sum_to(xp.special_sliding_product(g, other, rank, fourier), shape)


def _by_convolution(g: Any, other: Any, shape: Any, rank: int, fourier: bool, xp: Any) -> Any:
    return xp.sum_to(xp.special_full_convolution(g, other, rank, fourier), shape)


# -- kernels -------------------------------------------------------------------------------------------------------------


def _last_axes(rank: int) -> tuple[int, ...]:
    """Return the numbers of the last `rank` axes."""
    return tuple(range(-rank, 0))


def _convolve_by_fft(xp: Any, x: Any, h: Any, lengths: list[int], rank: int) -> Any:
    """Compute the circular convolution of `x` and `h` over the last `rank` axes, of these lengths, by Fourier transforms."""
    axes = _last_axes(rank)
    if not xp._backend.is_complex(x):
        return xp.fft.irfftn(xp.fft.rfftn(x, s=lengths, axes=axes) * xp.fft.rfftn(h, s=lengths, axes=axes), s=lengths, axes=axes)
    for n, axis in zip(lengths, axes):  # not by `fftn`, whose `s` some libraries ignore
        x, h = xp.fft.fft(x, n=n, axis=axis), xp.fft.fft(h, n=n, axis=axis)
    return xp.fft.ifftn(x * h, axes=axes)


def _full_kernel(xp: Any, x: Any, h: Any, rank: int, fourier: bool) -> Any:
    """Compute the full convolution of `x` and `h` over the last `rank` axes, by Fourier transforms if `fourier`, else directly."""
    sizes = [n + m - 1 for n, m in zip(x.shape[-rank:], h.shape[-rank:])]
    if fourier:
        lengths = [fast_length(n) for n in sizes]
        return _convolve_by_fft(xp, x, h, lengths, rank)[(..., *(slice(0, n) for n in sizes))]
    if math.prod(h.shape[-rank:]) > math.prod(x.shape[-rank:]):
        x, h = h, x
    for axis, m in zip(_last_axes(rank), h.shape[-rank:]):
        border = xp.zeros_near(x, (*x.shape[: axis + len(x.shape)], m - 1, *x.shape[len(x.shape) + axis + 1 :]))
        x = xp.concat([border, x, border], axis=len(x.shape) + axis) if m > 1 else x
    return _slide_directly(xp, x, xp.flip(h, axis=_last_axes(rank)), rank)


def _slide_kernel(xp: Any, x: Any, h: Any, rank: int, fourier: bool) -> Any:
    """Compute the sliding product of `x` and `h` over the last `rank` axes, by Fourier transforms if `fourier`, else directly."""
    if not fourier:
        return _slide_directly(xp, x, h, rank)
    # A circular convolution of the length of `x` suffices: what wraps around does not reach the windows inside `x`.
    lengths = [fast_length(n) for n in x.shape[-rank:]]
    out = _convolve_by_fft(xp, x, xp.flip(h, axis=_last_axes(rank)), lengths, rank)
    return out[(..., *(slice(m - 1, n) for n, m in zip(x.shape[-rank:], h.shape[-rank:])))]


def _slide_directly(xp: Any, x: Any, h: Any, rank: int) -> Any:
    """Compute the sum of each window of `x` times `h`, term by term."""
    taps = h.shape[-rank:]
    sizes = tuple(n - m + 1 for n, m in zip(x.shape[-rank:], taps))
    if min(math.prod(taps), math.prod(sizes)) > _TAPS:
        return _slide_by_matrices(xp, x, h, rank, sizes)
    if math.prod(sizes) < math.prod(taps):  # one sum of products per result
        found = [
            xp.sum(x[(..., *(slice(i, i + m) for i, m in zip(at, taps)))] * h, axis=_last_axes(rank), dtype=x.dtype)
            for at in itertools.product(*map(range, sizes))
        ]
        out = xp.stack(found, axis=-1)
        return xp.reshape(out, (*out.shape[:-1], *sizes))
    total: Any = None
    for at in itertools.product(*map(range, taps)):
        factor = h[(..., *at)]
        factor = xp.reshape(factor, (*factor.shape, *(1,) * rank))
        term = x[(..., *(slice(j, j + n) for j, n in zip(at, sizes)))] * factor
        total = term if total is None else total + term
    return total


def _slide_by_matrices(xp: Any, x: Any, h: Any, rank: int, sizes: tuple[int, ...]) -> Any:
    """Compute the sums of `_slide_directly` by products with matrices of windows along the last axis; the result has `sizes` there."""
    taps = h.shape[-rank:]
    rows = max(1, _WINDOWS // (taps[-1] * max(1, math.prod(x.shape[:-1]))))
    total: Any = None
    for at in itertools.product(*map(range, taps[:-1])):
        part = x[(..., *(slice(j, j + n) for j, n in zip(at, sizes)), slice(None))]
        taken = h[(..., *at, slice(None))]
        factor = xp.reshape(taken, (*taken.shape[:-1], *(1,) * (rank - 1), taps[-1], 1))
        blocks = [
            xp.matmul(_windows(xp, part, start, min(start + rows, sizes[-1]), taps[-1]), factor)[..., 0]
            for start in range(0, sizes[-1], rows)
        ]
        term = blocks[0] if len(blocks) == 1 else xp.concat(blocks, axis=-1)
        total = term if total is None else total + term
    return total


def _windows(xp: Any, x: Any, start: int, stop: int, width: int) -> Any:
    """Return the windows of the last axis that begin at start .. stop - 1, stacked."""
    first = xp.reshape(xp.count_up(x, start, stop, 1), (stop - start, 1))
    places = first + xp.reshape(xp.count_up(x, 0, width, 1), (1, width))
    taken = xp.take(x, xp.reshape(places, ((stop - start) * width,)), axis=len(x.shape) - 1)
    return xp.reshape(taken, (*x.shape[:-1], stop - start, width))


# -- rows ----------------------------------------------------------------------------------------------------------------


@row_only(
    lambda g, h, x_shape, rank, fourier, xp: _by_windows(g, h, x_shape, rank, fourier, xp),
    lambda g, x, h_shape, rank, fourier, xp: _by_windows(g, x, h_shape, rank, fourier, xp),
    composed=_full_kernel, elementwise=False, batch="broadcast",
)  # fmt: skip
def _full_convolution(x: Any, h: Any, rank: int, fourier: bool) -> Any:
    """Compute the sums of ``x[i] * h[n - i]`` over the last `rank` axes; the other axes broadcast."""


@row_only(
    lambda g, h, x_shape, rank, fourier, xp: _by_convolution(g, h, x_shape, rank, fourier, xp),
    lambda g, x, h_shape, rank, fourier, xp: _by_windows(x, g, h_shape, rank, fourier, xp),
    composed=_slide_kernel, elementwise=False, batch="broadcast",
)  # fmt: skip
def _sliding_product(x: Any, h: Any, rank: int, fourier: bool) -> Any:
    """Compute the sums of ``x[n + j] * h[j]`` over the last `rank` axes, for `h` within `x`; the other axes broadcast."""


# -- the recursion -------------------------------------------------------------------------------------------------------


def _run_backwards(a: Any, g: Any, xp: Any) -> Any:
    """Return the adjoint of the recursion applied to `g`: the recursion run from the last sample to the first."""
    last = (len(g.shape) - 1,)
    return xp.reverse(xp.special_recursion(a, xp.reverse(g, last)), last)


def _recursion_by_a(g: Any, a: Any, out: Any, a_shape: Any, xp: Any) -> Any:
    # The cotangent of a[k] in A(a) y = v is minus the sum of u[n] y[n - k], where u is the result of the adjoint.
    u = _run_backwards(a, g, xp)
    n = u.shape[-1]
    longer = xp.index_basic_transpose(u, (..., slice(0, n)), (*u.shape[:-1], n + a_shape[-1] - 1))
    return xp.sum_to(-xp.special_sliding_product(longer, out, 1, False), a_shape)


def _recursion_jvp(d_a: Any, d_v: Any, a: Any, out: Any, xp: Any) -> Any:
    if d_a is None:
        return xp.special_recursion(a, d_v)
    change = -xp.special_full_convolution(out, d_a, 1, False)[..., : out.shape[-1]]
    return xp.special_recursion(a, change if d_v is None else d_v + change)


def _recursion_kernel(xp: Any, a: Any, v: Any) -> Any:
    """Compute the recursion by SciPy if possible, else by `_by_blocks`."""
    found = on_the_host(xp, "recursion", a, v)
    return _by_blocks(xp, a, v) if found is None else found


def _by_blocks(xp: Any, a: Any, v: Any) -> Any:
    """Compute the recursion in about ``2 sqrt(n)`` steps: first all blocks from zero states, then the effect of each block on the next.

    Powers of the companion matrix would need ``log2(n)`` steps, but their squares lose all digits for filters of high order.
    """
    p, n = a.shape[-1] - 1, v.shape[-1]
    start = v / a[..., :1]
    if not p:
        return start
    size = min(n, max(p, math.isqrt(n - 1) + 1))
    free = _free_response(xp, -a[..., 1:] / a[..., :1], size)
    one = xp.zeros_like(free[..., 0, :1]) + 1.0
    response = xp.concat([xp.zeros_like(free[..., 0, : size - 1]), one, free[..., 0, : size - 1]], axis=len(free.shape) - 2)
    blocks = -(-n // size)
    if blocks * size > n:
        start = xp.concat([start, xp.zeros_near(start, (*start.shape[:-1], blocks * size - n))], axis=len(start.shape) - 1)
    start = xp.reshape(start, (*start.shape[:-1], blocks, size))
    alone = xp.matmul(start, xp.flip(_windows(xp, response, 0, size, size), axis=-2))
    parts = [alone[..., 0, :]]
    for k in range(1, blocks):
        state = xp.flip(parts[-1][..., size - p :], axis=-1)
        parts.append(alone[..., k, :] + xp.matmul(state[..., None, :], free)[..., 0, :])
    return xp.concat(parts, axis=len(alone.shape) - 2)[..., :n]


def _free_response(xp: Any, feedback: Any, size: int) -> Any:
    """Return the response without input to a 1 in each of the last results, with shape (..., p, size)."""
    p = feedback.shape[-1]
    place = xp.count_up(feedback, 0, p, 1)
    zero = xp.zeros_like(feedback)[..., None, :] + xp.zeros_like(feedback)[..., None]
    state = xp.where(place[:, None] == place[None, :], zero + 1.0, zero)
    found = []
    for _ in range(size):
        y = xp.matmul(state, feedback[..., None])
        state = xp.concat([y, state[..., : p - 1]], axis=len(state.shape) - 1)
        found.append(y)
    return xp.concat(found, axis=len(state.shape) - 1)


@row_only(
    _recursion_by_a, lambda g, a, v_shape, xp: xp.sum_to(_run_backwards(a, g, xp), v_shape),
    composed=_recursion_kernel, jvp=_recursion_jvp, elementwise=False, batch="broadcast",
)  # fmt: skip
def _recursion(a: Any, v: Any) -> Any:
    """Solve ``a[0] y[n] + a[1] y[n - 1] + ... == v[n]`` along the last axes, with zeros before the first sample."""
