"""Quantiles, covariances, histograms and counts."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import xpgrad as xp
from xpgrad._basics.shapes import normalize_axes
from xpgrad._numpy.operands import (
    as_constant,
    as_floating,
    as_tuple,
    can_read_values,
    is_default,
    lift,
    lift_sequence,
    reshape_to_axis,
    write_out,
)
from xpgrad._numpy.reductions import has_keepdims
from xpgrad._numpy.table import implements
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.indexing import add_slices

# -- quantiles ---------------------------------------------------------------------------------------------------------

#: Numbers a and b of each method: quantile q of n elements is at position ``q (n + a) + b``.
_POSITIONS = {
    "linear": (-1.0, 0.0), "weibull": (1.0, -1.0), "hazen": (0.0, -0.5), "median_unbiased": (1 / 3, -2 / 3),
    "normal_unbiased": (1 / 4, -5 / 8), "lower": (-1.0, 0.0), "higher": (-1.0, 0.0), "midpoint": (-1.0, 0.0), "nearest": (-1.0, 0.0),
    "interpolated_inverted_cdf": (0.0, -1.0), "inverted_cdf": (0.0, -1.0), "averaged_inverted_cdf": (0.0, -1.0),
    "closest_observation": (0.0, -1.0),
}  # fmt: skip
#: Discontinuous methods: the weight of the upper neighbour at a position of an element, and at one between two elements.
_JUMPS = {
    "lower": (0.0, 0.0), "higher": (0.0, 1.0), "midpoint": (0.0, 0.5), "inverted_cdf": (0.0, 1.0), "averaged_inverted_cdf": (0.5, 1.0),
}  # fmt: skip
#: Methods that round the position half to even, and the position that they give to the first element.
_ROUNDED = {"nearest": 0.0, "closest_observation": 1.0}
#: Methods whose results are elements, and keep the dtype of integers.
_ELEMENTS = {"lower", "higher", "inverted_cdf", *_ROUNDED}


def _merge_reduced_axes(name: str, x: Any, axis: Any) -> tuple[Any, tuple[int, ...]]:
    """Return `x` with the reduced axes merged into one last axis, and a tuple of these axes."""
    if axis is None:
        return xp.reshape(x, (-1,)), tuple(range(x.ndim))
    axes = normalize_axes(as_tuple(axis), x.ndim, f"np.{name}") or ()
    rest = [i for i in range(x.ndim) if i not in axes]
    count = math.prod(x.shape[i] for i in axes)
    return xp.reshape(xp.permute_dims(x, (*rest, *axes)), (*(x.shape[i] for i in rest), count)), axes


def _numbers_in(q: Any) -> Iterator[Any]:
    """Yield the numbers in a number, array or nested sequence. Tensors are left out: their values may be traced."""
    if isinstance(q, (int, float)):
        yield q
    elif isinstance(q, (list, tuple)):
        for item in q:
            yield from _numbers_in(item)
    elif not isinstance(q, Tensor):
        yield from _numbers_in(xp.asarray(q).tolist())


def _quantile(name: str, a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: Any, weights: Any, nans: bool, percent: bool) -> Any:
    if method not in _POSITIONS:
        msg = f"np.{name}: there is no `method`={method!r:.60}; there are {', '.join(_POSITIONS)}"
        raise ValueError(msg)
    if weights is not None and method != "inverted_cdf":
        msg = f"np.{name}: only `method='inverted_cdf'` takes `weights`, but got method={method!r}"
        raise ValueError(msg)
    if not isinstance(q, Tensor):
        (a,) = lift(name, a)
    x, at = lift(name, a, q if isinstance(q, Tensor) else as_constant(name, q, a))
    given, x, at = x.dtype, as_floating(x), as_floating(at)
    if x.dtype.is_complex or at.dtype.is_complex:
        msg = f"np.{name} needs an order, which complex numbers do not have; take `np.abs(x)` or `np.real(x)` first"
        raise TypeError(msg)
    at = at / 100.0 if percent else at
    limit = 100 if percent else 1
    if not all(0 <= number <= limit for number in _numbers_in(q)):
        msg = f"np.{name}: `q` must be between 0 and {limit}, but got {q!r:.60}"
        raise ValueError(msg)
    flat, axes = _merge_reduced_axes(name, x, axis)
    if not flat.shape[-1]:
        msg = f"np.{name} needs at least one element along the axes that it reduces, but got shape {x.shape}"
        raise ValueError(msg)
    # Quantiles get a new first axis. The number of elements that are not nan may differ from row to row.
    positions = xp.reshape(at, (-1,) + (1,) * (flat.ndim - 1))
    if weights is None:
        ranked, heavy = xp.sort(flat, axis=-1), None
    else:
        order = xp.argsort(flat.detach(), axis=-1)
        ranked, heavy = (xp.take_along_axis(t, order, axis=-1) for t in (flat, _shape_weights(name, weights, x, axes)))
    is_nan = xp.isnan(ranked.detach())
    number = (
        xp.sum(xp.astype(~is_nan, at.dtype), axis=-1) if nans else xp.full(flat.shape[:-1], flat.shape[-1], dtype=at.dtype, device=x.device)
    )
    number = xp.broadcast_to(number, (at.size, *flat.shape[:-1]))
    if heavy is None:
        result = _interpolate(ranked, positions, number, method)
    else:  # the result of a row of nan alone is nan, whatever it weighs
        heavy = xp.where(is_nan, xp.where(is_nan[..., :1], 1.0, 0.0), heavy)
        result = _take_sorted(ranked, _count_lighter(name, heavy, positions.detach()))
    # A `q` that is not a Tensor has the default precision, which must not change the dtype of the result.
    result = result if isinstance(q, Tensor) else result._cast(x.dtype)
    if not given.differentiable:
        result = result._cast(given) if method in _ELEMENTS else result
    elif not nans:
        result = xp.where(is_nan[..., -1], math.nan, result)
    else:
        result = xp.where(number == 0, math.nan, result)
    if has_keepdims(keepdims):
        result = xp.reshape(result, (at.size, *(1 if i in axes else n for i, n in enumerate(x.shape))))
    return write_out(name, out, xp.reshape(result, at.shape + result.shape[1:]))


def _take_sorted(ranked: Any, place: Any) -> Any:
    """Take elements of sorted rows. The first axis of `place` is that of the quantiles; the positions may differ from row to row."""
    index = xp.moveaxis(place._cast(place.default_dtype("indexing")), 0, -1)
    return xp.moveaxis(xp.take_along_axis(ranked, index, axis=-1), -1, 0)


def _interpolate(ranked: Any, positions: Any, number: Any, method: str) -> Any:
    """Return the quantiles of rows whose first `number` elements are sorted."""
    more, shift = _POSITIONS[method]
    place = (number + more) * positions + shift
    below = xp.floor(place.detach())
    fraction = place - below
    if method in _JUMPS:
        fraction = xp.where(fraction > 0, *(xp.full_like(fraction, weight) for weight in reversed(_JUMPS[method])))
    if method in _ROUNDED:
        below = xp.round(place.detach() + _ROUNDED[method]) - _ROUNDED[method]
        fraction = xp.zeros_like(below)
    last = xp.maximum(number - 1.0, 0.0)
    lower, upper = (_take_sorted(ranked, xp.minimum(xp.maximum(t, 0.0), last)) for t in (below, below + 1.0))
    return lower + (upper - lower) * fraction


def _shape_weights(name: str, weights: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return weights in the shape that `_merge_reduced_axes` gives `x`. The selected element jumps with them: they are constants."""
    heavy = (weights if isinstance(weights, Tensor) else as_constant(name, weights, x)).detach()
    heavy = as_floating(heavy)
    if heavy.shape != x.shape and (len(axes) != 1 or heavy.shape != (x.shape[axes[0]],)):
        msg = f"np.{name}: `weights` must have the shape of the array, {x.shape}, or the length of its one axis, but got {heavy.shape}"
        raise ValueError(msg)
    heavy = heavy if heavy.shape == x.shape else xp.broadcast_to(reshape_to_axis(heavy, axes[0], x.ndim), x.shape)
    return _merge_reduced_axes(name, heavy, axes)[0]


def _count_lighter(name: str, heavy: Any, share: Any) -> Any:
    """Return how many leading elements of each row have together less than this share of the row's weight, or no weight at all."""
    total = xp.cumulative_sum(heavy, axis=-1)
    whole = total[..., -1:]
    if can_read_values(whole) and not bool(xp.all(heavy >= 0) & xp.all((whole > 0) & xp.isfinite(whole))):
        msg = f"np.{name}: `weights` must be finite and not negative, and must not all be 0"
        raise ValueError(msg)
    number = xp.sum(xp.astype((total / whole < share[..., None]) | (total == 0), heavy.dtype), axis=-1)
    return xp.minimum(number, heavy.shape[-1] - 1.0)


for _name in ("quantile", "percentile", "nanquantile", "nanpercentile"):

    @implements(_name, note="also differentiable in `q`, except in discontinuous methods")
    def _quantile_function(a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: str = "linear",
                     keepdims: Any = False, *, weights: Any = None, name: str = _name) -> Any:  # fmt: skip
        return _quantile(name, a, q, axis, out, method, keepdims, weights, name.startswith("nan"), name.endswith("percentile"))


for _name in ("median", "nanmedian"):

    @implements(_name)
    def _median(
        a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False, *, name: str = _name
    ) -> Any:
        return _quantile(name, a, 0.5, axis, out, "linear", keepdims, None, name == "nanmedian", False)


# -- covariances -------------------------------------------------------------------------------------------------------


@implements("cov")
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None, fweights: Any = None, aweights: Any = None, *,
        dtype: Any = None) -> Any:  # fmt: skip
    """Return the covariance matrix of variables (`numpy.cov`)."""
    x, other, repeats, weights = lift("cov", m, y, fweights, aweights)
    rows = []
    for t in (x, other):
        if t is not None:
            if t.ndim > 2:
                msg = f"np.cov needs at most two axes, but got shape {t.shape}"
                raise ValueError(msg)
            t = as_floating(t) if dtype is None else xp.astype(t, dtype)
            t = xp.reshape(t, (1, -1)) if t.ndim < 2 else t
            rows.append(t if rowvar or t.shape[0] == 1 else xp.matrix_transpose(t))
    x = xp.concat(rows, axis=0) if len(rows) > 1 else rows[0]
    freedom = ddof if ddof is not None else 0 if bias else 1
    w = None
    for name, given in (("fweights", repeats), ("aweights", weights)):
        if given is not None:
            if given.shape != x.shape[1:]:
                msg = f"np.cov: `{name}` must have shape {x.shape[1:]}, one weight for each observation, but got {given.shape}"
                raise ValueError(msg)
            given = given._cast(xp.real(x).dtype)
            w = given if w is None else w * given
    if w is None:
        number: Any = x.shape[1]
        centred, scaled = _subtract_mean(x, None, number), None
        factor: Any = max(number - freedom, 0)
    else:
        number = xp.sum(w)
        centred = _subtract_mean(x, w, number)
        scaled = centred * w
        # With `aweights` the effective number of observations depends on the squares of the weights.
        factor = number - freedom * (xp.sum(w * weights._cast(w.dtype)) / number if weights is not None else 1.0)
        factor = xp.where(factor > 0, factor, xp.zeros_like(factor))
    right = xp.matrix_transpose(centred if scaled is None else scaled)
    out = xp.matmul(centred, xp.conj(right) if right.dtype.is_complex else right)
    out = out / factor if isinstance(factor, Tensor) or factor else out / 0.0
    return xp.squeeze(out, axis=tuple(i for i, n in enumerate(out.shape) if n == 1))


def _subtract_mean(x: Any, w: Any, number: Any) -> Any:
    return x - (xp.mean(x, axis=1, keepdims=True) if w is None else xp.sum(x * w, axis=1, keepdims=True) / number)


@implements("corrcoef")
def _corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c = cov(x, y, rowvar, dtype=dtype)
    if not c.ndim:
        return c / c
    n = c.shape[0]
    spread = xp.sqrt(xp.real(xp.reshape(c, (-1,))[:: n + 1]))
    out = c / xp.reshape(spread, (-1, 1)) / xp.reshape(spread, (1, -1))
    # As in NumPy, rounding does not lead beyond 1.
    known = out.detach()
    parts = [xp.clip(part, -1.0, 1.0) for part in ((xp.real(known), xp.imag(known)) if known.dtype.is_complex else (known,))]
    return out + (functools.reduce(lambda real, imag: real + 1j * imag, parts) - known)


# -- histograms --------------------------------------------------------------------------------------------------------


def _sum_by_index(index: Any, weights: Any, length: int) -> Any:
    """Return a vector of `length` elements; element i sums the weights at which `index` is i (or counts them, without weights)."""
    ones = xp.ones_like(index) if weights is None else weights
    return add_slices(xp.zeros((length,), dtype=ones.dtype, device=index.device), 0, index, ones)


@implements("bincount", note="differentiable in the weights")
def _bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Any:
    index, w = lift("bincount", x, weights)
    if index.dtype.differentiable or index.ndim != 1:
        msg = (
            f"np.bincount counts a vector of integers, but got dtype {index.dtype} and shape {index.shape}; use `np.histogram` for numbers"
        )
        raise TypeError(msg)
    length = max(int(xp.max(index)) + 1 if index.size else 0, minlength)
    return _sum_by_index(index, None if w is None else as_floating(w), length)


def _bin_edges(name: str, x: Any, bins: Any, limits: Any) -> Any:
    """Return the edges of bins. They are differentiable in the data if their range is that of the data."""
    if isinstance(bins, str):
        msg = f"np.{name}: xpgrad does not choose the number of bins ({bins!r}); give it, or the edges"
        raise TypeError(msg)
    if isinstance(bins, Tensor) and bins.ndim:
        return bins
    if not isinstance(bins, Tensor) and hasattr(bins, "__len__"):
        return as_constant(name, bins, x)
    count = int(bins)
    if count < 1:
        msg = f"np.{name}: the number of bins must be positive, but got {count}"
        raise ValueError(msg)
    if limits is not None:
        low, high = (as_floating(t) for t in lift(name, *limits, x)[:2])
    elif not x.size:
        low, high = (type(x).scalar(v, x.default_dtype("real floating")) for v in (0.0, 1.0))
    else:
        low, high = as_floating(xp.min(x)), as_floating(xp.max(x))
    if bool(low > high):
        msg = f"np.{name}: `range` must ascend, but got {limits!r:.60}"
        raise ValueError(msg)
    if bool(low == high):
        low, high = low - 0.5, high + 0.5
    steps = xp.arange(count + 1, dtype=low.dtype, device=low.device) / count
    return low * (1.0 - steps) + high * steps


def _find_bins(x: Any, edges: Any) -> tuple[Any, Any]:
    """Return the bin index of each element, and a mask of the elements that are in a bin. The last bin includes its right edge."""
    values, bounds = x.detach(), edges.detach()
    n = edges.shape[0] - 1
    place = xp.searchsorted(bounds, values, side="right") - 1
    place = xp.where(values == bounds[-1], n - 1, place)
    return place, (place >= 0) & (place < n)


@implements("histogram_bin_edges")
def _histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:  # noqa: A002 (NumPy's name)
    like = a if isinstance(a, Tensor) else next(t for t in (bins, weights) if isinstance(t, Tensor))
    x = a if a is like else as_constant("histogram_bin_edges", a, like)
    return _bin_edges("histogram_bin_edges", xp.reshape(x, (-1,)), bins, range)


@implements("histogram", note="differentiable in the weights, and in the edges if `density=True`; counts have no gradient")
def _histogram_1d(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:  # noqa: A002 (NumPy's name)
    counts, (edges,) = _histogram("histogram", [a], [bins], None if range is None else [range], density, weights)
    return counts, edges


@implements("histogram2d", note="as `histogram`")
def _histogram_2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:  # noqa: A002 (NumPy's name)
    counts, (first, second) = _histogram("histogram2d", [x, y], _bins_per_axis(bins, 2), range, density, weights)
    return counts, first, second


@implements("histogramdd", note="as `histogram`")
def _histogram_dd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:  # noqa: A002 (NumPy's name)
    if isinstance(sample, (list, tuple)):
        columns = lift_sequence("histogramdd", sample)
    else:
        (table,) = lift("histogramdd", sample) if isinstance(sample, Tensor) else (as_constant("histogramdd", sample, weights),)
        columns = list(xp.unstack(table, axis=1))
    return _histogram("histogramdd", columns, _bins_per_axis(bins, len(columns)), range, density, weights)


def _bins_per_axis(bins: Any, rank: int) -> list[Any]:
    """Return one specification of bins for each of `rank` axes."""
    is_sequence = hasattr(bins, "__len__") and getattr(bins, "ndim", True)
    return list(bins) if is_sequence and len(bins) == rank else [bins] * rank


def _histogram(name: str, columns: Any, bins: Any, ranges: Any, density: Any, weights: Any) -> tuple[Any, list[Any]]:
    *data, w = lift(name, *columns, weights, *(b for b in bins if isinstance(b, Tensor)))[: len(columns) + 1]
    data = [xp.reshape(x, (-1,)) for x in data]
    limits = [None] * len(data) if is_default(ranges, None) else list(ranges)
    edges = [_bin_edges(name, x, b, r) for x, b, r in zip(data, bins, limits)]
    lengths = tuple(e.shape[0] - 1 for e in edges)
    flat: Any = 0
    inside: Any = None
    for x, e in zip(data, edges):
        index, in_bin = _find_bins(x, e)
        flat = flat * (e.shape[0] - 1) + index
        inside = in_bin if inside is None else inside & in_bin
    ones = xp.ones_like(flat) if w is None else xp.reshape(w, (-1,))
    ones = xp.where(inside, ones, xp.zeros_like(ones))
    counts = xp.reshape(_sum_by_index(xp.where(inside, flat, 0), ones, math.prod(lengths)), lengths)
    if w is None and len(data) > 1:
        counts = counts._cast(as_floating(edges[0]).dtype)
    if density:
        counts = counts if counts.dtype.differentiable else counts._cast(as_floating(edges[0]).dtype)
        total = xp.sum(counts)
        for i, e in enumerate(edges):
            e = as_floating(e)
            counts = counts / reshape_to_axis(e[1:] - e[:-1], i, len(edges))
        counts = counts / total
    return counts, edges
