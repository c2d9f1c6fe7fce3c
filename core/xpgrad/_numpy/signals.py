"""Convolutions, polynomials, and functions applied along axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import xpgrad as xp
from xpgrad import linalg
from xpgrad._basics.shapes import normalize_axis
from xpgrad._numpy.adapters import adapt
from xpgrad._numpy.creation import vander
from xpgrad._numpy.linear_algebra import drop_zero_imaginary_parts, least_squares, solve_least_squares
from xpgrad._numpy.operands import as_constant, as_floating, can_read_values, is_default, lift
from xpgrad._numpy.table import implements
from xpgrad._tensor.tensor import Tensor

# -- convolutions ------------------------------------------------------------------------------------------------------


def _convolve_full(x: Any, y: Any) -> Any:
    """Return the full convolution of two vectors: products of the shorter one with windows of the longer one."""
    if x.shape[0] < y.shape[0]:
        x, y = y, x
    n, m = x.shape[0], y.shape[0]
    dtype = xp.result_type(x, y)
    border = xp.zeros((m - 1,), dtype=dtype, device=x.device)
    padded = xp.concat([border, x._cast(dtype), border]) if m > 1 else x._cast(dtype)
    start = xp.arange(n + m - 1, device=x.device)
    windows = xp.take(padded, xp.reshape(xp.reshape(start, (-1, 1)) + xp.reshape(xp.arange(m, device=x.device), (1, -1)), (-1,)))
    return xp.matmul(xp.reshape(windows, (n + m - 1, m)), xp.flip(y._cast(dtype)))


def _convolve(name: str, a: Any, v: Any, mode: Any, reverse: bool) -> Any:
    x, y = (xp.reshape(t, (1,)) if t.ndim == 0 else t for t in (a, v))
    if x.ndim != 1 or y.ndim != 1 or not x.shape[0] or not y.shape[0]:
        msg = f"np.{name} needs two vectors that are not empty, but got shapes {x.shape} and {y.shape}"
        raise ValueError(msg)
    if reverse:
        y = xp.flip(xp.conj(y) if y.dtype.is_complex else y)
    out = _convolve_full(x, y)
    n, m = max(x.shape[0], y.shape[0]), min(x.shape[0], y.shape[0])
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)
    if mode == "full":
        return out
    if mode == "same":
        # If the second vector is longer, NumPy correlates them in exchanged order and reverses the result.
        start = (m - 1) // 2 if not (reverse and x.shape[0] < y.shape[0]) else m // 2
        return out[start : start + n]
    if mode == "valid":
        return out[m - 1 : n]
    msg = f"np.{name}: `mode` must be 'full', 'same' or 'valid', but got {mode!r:.60}"
    raise ValueError(msg)


adapt("convolve", lambda a, v, mode="full": _convolve("convolve", a, v, mode, False), arrays=2)
adapt("correlate", lambda a, v, mode="valid": _convolve("correlate", a, v, mode, True), arrays=2)


# -- polynomials: coefficients from the highest power down -------------------------------------------------------------


def _as_coefficients(*given: Any) -> Any:
    return [xp.reshape(t, (1,)) if t.ndim == 0 else t for t in given]


@adapt("polyval", arrays=2)
def _polyval(c: Any, t: Any) -> Any:
    parts = xp.unstack(xp.reshape(c, (-1,)))
    out = xp.zeros_like(t) if not parts else xp.zeros_like(t) + parts[0]
    for part in parts[1:]:
        out = out * t + part
    return out


def _add_polynomials(a1: Any, a2: Any, sign: int) -> Any:
    x, y = _as_coefficients(a1, a2)
    dtype = xp.result_type(x, y)
    n = max(x.shape[0], y.shape[0])
    x, y = (xp.concat([xp.zeros((n - t.shape[0],), dtype=dtype, device=t.device), t._cast(dtype)]) for t in (x, y))
    return x + y if sign > 0 else x - y


adapt("polyadd", lambda a1, a2: _add_polynomials(a1, a2, 1), arrays=2)
adapt("polysub", lambda a1, a2: _add_polynomials(a1, a2, -1), arrays=2)
adapt("polymul", lambda a1, a2: _convolve_full(*_as_coefficients(a1, a2)), arrays=2)


@adapt("polydiv", arrays=2, floating=True, note="leading zeros of the remainder are kept")
def _polydiv(u: Any, v: Any) -> Any:
    x, y = _as_coefficients(u, v)
    dtype = xp.result_type(x, y)
    x, y = x._cast(dtype), y._cast(dtype)
    steps = x.shape[0] - y.shape[0] + 1
    if steps < 1:
        return xp.zeros((1,), dtype=dtype, device=x.device), x
    out, rest = [], x
    for _ in range(steps):
        factor = rest[0] / y[0]
        out.append(factor)
        rest = xp.concat([rest[1 : y.shape[0]] - factor * y[1:], rest[y.shape[0] :]])
    if not rest.shape[0]:
        rest = xp.zeros((1,), dtype=dtype, device=x.device)
    return xp.stack(out), rest


@adapt("polyder")
def _polyder(p: Any, m: int = 1) -> Any:
    (c,) = _as_coefficients(p)
    for _ in range(m):
        n = c.shape[0]
        c = c[:-1] * xp.astype(xp.arange(n - 1, 0, -1, device=c.device), c.dtype) if n > 1 else c[:0]
    return c


@adapt("polyint", floating=True)
def _polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    (c,) = _as_coefficients(p)
    constants = [0.0] * m if k is None else list(k) if hasattr(k, "__len__") and getattr(k, "ndim", True) else [k] * m
    constants = constants * m if len(constants) == 1 else constants
    for each in constants[:m]:
        powers = xp.astype(xp.arange(c.shape[0], 0, -1, device=c.device), c.dtype)
        last = each if isinstance(each, Tensor) else as_constant("polyint", each, c)
        c = xp.concat([c / powers, xp.reshape(last, (1,))._cast(c.dtype)])
    return c


@adapt("poly", floating=True, note="real if complex zeros come in conjugate pairs and their values can be read")
def _poly(zeros: Any) -> Any:
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1]:  # a matrix: its characteristic polynomial
        out = _polynomial_from_zeros(linalg.eigvals(zeros))
        return out if zeros.dtype.is_complex else xp.real(out)
    if zeros.ndim > 1:
        msg = f"np.poly needs zeros in one dimension, or a square matrix, but got shape {zeros.shape}"
        raise ValueError(msg)
    return _polynomial_from_zeros(zeros if zeros.ndim else xp.reshape(zeros, (1,)))


def _polynomial_from_zeros(zeros: Any) -> Any:
    """Return the coefficients of the monic polynomial with these zeros."""
    one = xp.ones((1,), dtype=zeros.dtype, device=zeros.device)
    out = one
    for zero in xp.unstack(zeros):
        out = _convolve_full(out, xp.concat([one, xp.reshape(-zero, (1,))]))
    return xp.real(out) if zeros.dtype.is_complex and can_read_values(zeros) and _are_conjugate_pairs(zeros.detach().tolist()) else out


def _are_conjugate_pairs(zeros: list[complex]) -> bool:
    """Return whether the complex conjugates of the numbers are the same numbers."""
    return sorted((z.real, z.imag) for z in zeros) == sorted((z.real, -z.imag) for z in zeros)


@adapt("roots", floating=True, note="leading zeros are dropped and have no gradient; real if all are real and can be read")
def _roots(p: Any) -> Any:
    (c,) = _as_coefficients(p)
    if c.ndim != 1:
        msg = f"np.roots needs the coefficients in one dimension, but got shape {c.shape}"
        raise ValueError(msg)
    nonzero = [not can_read_values(c) or bool(x) for x in xp.not_equal(c.detach(), 0)]
    if True not in nonzero[:-1]:
        return xp.zeros((0,), dtype=c.dtype, device=c.device)
    c = c[nonzero.index(True) :]
    found = _find_zeros(c)
    # NumPy strips trailing zero coefficients and appends roots 0. The roots depend on these coefficients, so they stay here, and only
    # the order of the roots is NumPy's.
    dropped = nonzero[::-1].index(True)
    if not dropped:
        return found
    rest, order = found.detach().tolist(), []
    for zero in (_find_zeros(c.detach()[:-dropped]).tolist() if dropped < c.shape[0] - 1 else []) + [0.0] * dropped:
        unused = [i for i in range(len(rest)) if i not in order]
        order.append(min(unused, key=lambda i: abs(rest[i] - zero)))
    return xp.take(found, xp.asarray(order, device=c.device), axis=0)


def _find_zeros(c: Any) -> Any:
    """Return the zeros of the polynomial with these coefficients, as eigenvalues of its companion matrix."""
    n = c.shape[0] - 1
    below = xp.eye(n - 1, n, dtype=c.dtype, device=c.device)
    companion = xp.concat([xp.reshape(-c[1:] / c[0], (1, n)), below])
    return drop_zero_imaginary_parts(linalg.eigvals(companion), companion)


@implements("polyfit", note="`full=True` needs the values, which decide the rank")
def _polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    at, heights, weights = lift("polyfit", x, y, w)
    at, heights = as_floating(at), as_floating(heights)
    matrix = vander(at, deg + 1)
    if weights is not None:
        weights = as_floating(weights)
        matrix = matrix * xp.reshape(weights, (-1, 1))
        heights = heights * (weights if heights.ndim == 1 else xp.reshape(weights, (-1, 1)))
    # Scaling the columns to unit length keeps the problem well conditioned: powers differ by many orders of magnitude.
    scale = xp.sqrt(xp.sum(matrix * matrix, axis=0))
    count = at.shape[0]
    limit = xp.finfo(at.dtype).eps * count if rcond is None else rcond
    unit = matrix / scale
    solution = least_squares(unit, heights, limit)
    out = solution / (scale if solution.ndim == 1 else xp.reshape(scale, (-1, 1)))
    if full:
        _, squares, rank, sizes = solve_least_squares(unit, heights, limit)
        return out, squares, rank, sizes, limit
    if is_default(cov, False):
        return out
    spread = xp.linalg.inv(xp.matmul(xp.matrix_transpose(unit), unit)) / (xp.reshape(scale, (-1, 1)) * scale)
    spread = spread if heights.ndim == 1 else spread[..., None]
    if cov != "unscaled":
        if count <= deg + 1:
            msg = f"np.polyfit: {count} points are too few for the covariance of {deg + 1} coefficients; `cov='unscaled'` needs no more"
            raise ValueError(msg)
        residual = heights - xp.matmul(unit, solution)
        spread = spread * (xp.sum(residual * residual, axis=0) / (count - deg - 1))
    return out, spread


# -- along axes --------------------------------------------------------------------------------------------------------


@implements("apply_along_axis")
def _apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    (x,) = lift("apply_along_axis", arr)
    axis = normalize_axis(axis, x.ndim, "np.apply_along_axis")
    lanes = xp.moveaxis(x, axis, -1)
    rest = lanes.shape[:-1]
    flat = xp.reshape(lanes, (math.prod(rest), lanes.shape[-1]))
    if not flat.shape[0]:
        msg = f"np.apply_along_axis needs at least one vector, but got shape {x.shape}"
        raise ValueError(msg)
    found = [func1d(lane, *args, **kwargs) for lane in xp.unstack(flat)]
    parts = [f if isinstance(f, Tensor) else as_constant("apply_along_axis", f, x) for f in found]
    out = xp.reshape(xp.stack(parts), (*rest, *parts[0].shape))
    inner = len(parts[0].shape)
    return xp.moveaxis(out, tuple(range(len(rest), out.ndim)), tuple(range(axis, axis + inner))) if inner else out


@implements("apply_over_axes")
def _apply_over_axes(func: Callable[..., Any], a: Any, axes: Any) -> Any:
    (x,) = lift("apply_over_axes", a)
    rank = x.ndim
    for axis in (axes,) if not hasattr(axes, "__len__") else axes:
        out = func(x, axis % rank)
        x = out if out.ndim == rank else xp.expand_dims(out, axis=axis % rank)
    return x
