"""Kernels of special functions, filters, cosine transforms and tridiagonal systems: SciPy's functions, or our own in NumPy.

Results have the dtype of the operands, and the orders of Bessel functions and the parameters of `hyp2f1` are real.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad_numpy._matrix_functions import function as matrices
from xpgrad_numpy._sparse import function as sparse_function

__all__ = ["function"]

#: Functions that are not ufuncs in SciPy, and that the rows compose from ufuncs.
_COMPOSED = frozenset(("comb", "factorial", "log_softmax", "logsumexp", "multigammaln", "polygamma", "softmax"))
#: Functions whose first operands, so many, are orders or parameters, which are real even if the argument is complex.
_ORDERS = {**dict.fromkeys(("iv", "ive", "jv", "jve", "kv", "kve", "yv"), 1), "hyp2f1": 3}


# -- over axes: the formulas of the rows, computed in place --------------------------------------------------------------


def _exponentials(x: Any, axes: Any) -> tuple[Any, Any]:
    """Return the largest real part of `x` along axes (0 where it is infinite), and the exponentials of `x` minus that."""
    top = np.max(x.real if x.dtype.kind == "c" else x, axis=axes, keepdims=True)
    if not np.isfinite(top).all():
        top = np.where(np.isfinite(top), top, top.dtype.type(0))
    e = np.asarray(np.subtract(x, top))
    return top, np.exp(e, out=e)


def _softmax(x: Any, axes: Any) -> Any:
    _, e = _exponentials(x, axes)
    e /= np.sum(e, axis=axes, keepdims=True)
    return e


def _logsumexp_and_weights(x: Any, axes: Any) -> tuple[Any, Any]:
    top, e = _exponentials(x, axes)
    total = np.sum(e, axis=axes, keepdims=True)
    e /= total
    return np.log(total) + top, e


def _logsumexp(x: Any, axes: Any, keepdims: bool) -> Any:
    top, e = _exponentials(x, axes)
    out = np.log(np.sum(e, axis=axes, keepdims=True)) + top
    return out if keepdims else np.squeeze(out, axis=axes)


_OVER_AXES: dict[str, Callable[..., Any]] = {"softmax": _softmax, "logsumexp": _logsumexp, "logsumexp_and_weights": _logsumexp_and_weights}


# -- of whole arrays: filters, cosine transforms, tridiagonal systems ------------------------------------------------------


def _is_single_line(x: Any, h: Any, rank: int) -> bool:
    return rank == 1 and x.size == x.shape[-1] and h.size == h.shape[-1]


def _last_axes_key(key: Any) -> Any:
    """Return the key that applies the parts of `key` to the last axes."""
    return (..., *key)


def _window_key(start: Any, sizes: Any) -> Any:
    """Return the key of a window of the last axes, given its first position and its sizes."""
    return _last_axes_key(slice(i, i + n) for i, n in zip(start, sizes))


def _full_convolution(x: Any, h: Any, rank: int, fourier: bool) -> Any:
    if fourier:
        return _convolve_by_fourier(x, h, rank, [slice(0, n + m - 1) for n, m in zip(x.shape[-rank:], h.shape[-rank:])])
    if _is_single_line(x, h, rank):
        return np.convolve(x.reshape(-1), h.reshape(-1)).reshape((*np.broadcast_shapes(x.shape[:-1], h.shape[:-1]), -1))
    if math.prod(h.shape[-rank:]) > math.prod(x.shape[-rank:]):
        x, h = h, x
    sizes = x.shape[-rank:]
    lead = np.broadcast_shapes(x.shape[:-rank], h.shape[:-rank])
    out = np.zeros((*lead, *(n + m - 1 for n, m in zip(sizes, h.shape[-rank:]))), x.dtype)
    term = np.empty((*lead, *sizes), x.dtype)
    for at in itertools.product(*map(range, h.shape[-rank:])):
        np.multiply(x, h[(..., *at, *(None,) * rank)], out=term)
        out[_window_key(at, sizes)] += term
    return out


def _sliding_product(x: Any, h: Any, rank: int, fourier: bool) -> Any:
    taps = h.shape[-rank:]
    sizes = tuple(n - m + 1 for n, m in zip(x.shape[-rank:], taps))
    if fourier:
        inside = [slice(m - 1, n) for n, m in zip(x.shape[-rank:], taps)]
        return _convolve_by_fourier(x, np.flip(h, tuple(range(-rank, 0))), rank, inside)
    if _is_single_line(x, h, rank):
        found = np.correlate(x.reshape(-1), h.reshape(-1).conj(), "valid")
        return found.reshape((*np.broadcast_shapes(x.shape[:-1], h.shape[:-1]), -1))
    lead = np.broadcast_shapes(x.shape[:-rank], h.shape[:-rank])
    out = np.zeros((*lead, *sizes), x.dtype)
    if math.prod(sizes) < math.prod(taps):
        places = "abcdefgh"[:rank]
        for at in itertools.product(*map(range, sizes)):
            out[_last_axes_key(at)] = np.einsum(f"...{places},...{places}->...", x[_window_key(at, taps)], h)
        return out
    term = np.empty((*lead, *sizes), x.dtype)
    for at in itertools.product(*map(range, taps)):
        np.multiply(x[_window_key(at, sizes)], h[(..., *at, *(None,) * rank)], out=term)
        out += term
    return out


def _convolve_by_fourier(x: Any, h: Any, rank: int, inside: list[slice]) -> Any:
    """Return the part `inside` of a circular convolution that is just long enough not to wrap around in that part."""
    axes = tuple(range(-rank, 0))
    lengths = [_find_fast_length(s.stop) for s in inside]
    out: Any
    if x.dtype.kind == "c":
        out = np.fft.ifftn(np.fft.fftn(x, lengths, axes) * np.fft.fftn(h, lengths, axes), axes=axes)
    else:
        out = np.fft.irfftn(np.fft.rfftn(x, lengths, axes) * np.fft.rfftn(h, lengths, axes), lengths, axes)
    return np.ascontiguousarray(out[_last_axes_key(inside)]).astype(x.dtype, copy=False)


@functools.lru_cache(1024)
def _find_fast_length(n: int) -> int:
    """Return the smallest length of at least `n` whose only prime factors are 2, 3 and 5."""
    best = 1 << max(n - 1, 0).bit_length()
    for fives in (5**k for k in range(28)):
        for base in (fives * 3**k for k in range(41)):
            if base >= best:
                break
            best = min(best, base << max(-(-n // base) - 1, 0).bit_length())
    return best


def _recursion(a: Any, v: Any) -> Any:
    lfilter = importlib.import_module("scipy.signal").lfilter
    dtype = v.dtype
    if dtype == np.float16:
        a, v = a.astype(np.float32), v.astype(np.float32)
    if a.size == a.shape[-1]:
        out = lfilter(np.ones(1, v.dtype), a.reshape(-1), v, axis=-1)
        return out.astype(dtype, copy=False).reshape((*np.broadcast_shapes(a.shape[:-1], v.shape[:-1]), v.shape[-1]))
    lead = np.broadcast_shapes(a.shape[:-1], v.shape[:-1])
    a, v = np.broadcast_to(a, (*lead, a.shape[-1])), np.broadcast_to(v, (*lead, v.shape[-1]))
    out = np.empty(v.shape, dtype)
    for at in np.ndindex(lead):
        out[at] = lfilter(np.ones(1, v.dtype), a[at], v[at])
    return out


def _double_ends(x: Any, axis: int, ends: tuple[int, ...]) -> Any:
    """Return a copy of `x` in which the elements at the positions `ends` of an axis are doubled."""
    x = np.array(np.moveaxis(x, axis, -1))
    for end in ends:
        x[..., end] *= 2
    return np.moveaxis(x, -1, axis)


def _cosines(x: Any, kind: int, sine: bool, axis: int) -> Any:
    fft = importlib.import_module("scipy.fft")
    if kind == 1 and not sine:
        x = _double_ends(x, axis, (0, -1))
    elif kind == 3:
        x = _double_ends(x, axis, (-1 if sine else 0,))
    return (fft.dst if sine else fft.dct)(x, type=kind, axis=axis).astype(x.dtype, copy=False)


def _tridiagonal(bands: Any, rhs: Any) -> Any:
    solve = importlib.import_module("scipy.linalg").solve_banded
    lead = np.broadcast_shapes(bands.shape[:-2], rhs.shape[:-2])
    n, columns = rhs.shape[-2:]
    out = np.empty((*lead, n, columns), rhs.dtype)
    bands, rhs = np.broadcast_to(bands, (*lead, 3, n)), np.broadcast_to(rhs, out.shape)
    for at in np.ndindex(lead):
        lower, middle, upper = bands[at]
        table = np.zeros((3, n), bands.dtype)
        table[0, 1:], table[1], table[2, :-1] = upper[:-1], middle, lower[1:]
        out[at] = solve((1, 1), table, rhs[at], check_finite=False)
    return out


def _has_scipy() -> bool:
    try:
        importlib.import_module("scipy")
    except ModuleNotFoundError:
        return False
    return True


#: Functions of whole arrays by name: whether they need SciPy, and the function.
_ARRAYS: dict[str, tuple[bool, Callable[..., Any]]] = {
    "full_convolution": (False, _full_convolution), "sliding_product": (False, _sliding_product), "recursion": (True, _recursion),
    "cosines": (True, _cosines), "tridiagonal": (True, _tridiagonal),
}  # fmt: skip


@functools.cache
def _find_quantile(distribution: str) -> Callable[..., Any] | None:
    """Return SciPy's quantile function of a distribution on integers, in the dtype of its argument; None without SciPy."""
    try:
        stats = importlib.import_module("scipy.stats")
    except ModuleNotFoundError:
        return None
    found = getattr(stats, distribution).ppf
    return lambda q, *shapes: np.asarray(found(q, *shapes), q.dtype)


def function(name: str) -> Callable[..., Any] | None:
    """Return SciPy's function of that name, or our own; None if neither exists or SciPy is not installed."""
    if name in _OVER_AXES:
        return _OVER_AXES[name]
    if name.startswith("linalg_"):
        return matrices(name.removeprefix("linalg_"))
    if name.startswith("sparse_"):
        return sparse_function(name.removeprefix("sparse_"))
    if name.startswith("stats_"):
        return _find_quantile(name.removeprefix("stats_").removesuffix("_ppf"))
    if name in _ARRAYS:
        scipy, own = _ARRAYS[name]
        return own if not scipy or _has_scipy() else None
    try:
        public = importlib.import_module("scipy.special")
        # NB: under SCIPY_ARRAY_API=1 the public names are wrappers that look for a namespace first.
        bare = importlib.import_module("scipy.special._ufuncs")
    except ModuleNotFoundError:
        return None
    found = None if name in _COMPOSED else getattr(bare, name, None) or getattr(public, name, None)
    if found is None:
        return None
    if name.startswith("spherical_"):
        return lambda z, n: np.asarray(found(n, z), z.dtype)  # the row's operand comes first; SciPy computes in double precision
    if name == "lambertw":
        return lambda z, k: np.asarray(found(z, k), z.dtype)
    orders = _ORDERS.get(name, 0)

    def call(*args: Any) -> Any:
        if orders and args[-1].dtype.kind == "c":
            args = (*(x if isinstance(x, float) else x.real for x in args[:orders]), args[-1])
        out = found(*args)
        for a in args:  # SciPy returns single or double precision for half precision
            if getattr(a, "dtype", None) == np.float16:
                return out.astype(np.float16)
        return out

    return call
