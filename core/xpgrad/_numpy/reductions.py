"""Sums, products, extrema, means, running totals and differences."""

from __future__ import annotations

import functools
import math
from typing import Any

import xpgrad as xp
from xpgrad._basics.dtypes import as_dtype, iinfo
from xpgrad._basics.shapes import normalize_axes
from xpgrad._numpy.adapters import adapt
from xpgrad._numpy.operands import (
    as_floating,
    as_tuple,
    can_read_values,
    lift,
    lift_weak,
    refuse,
    reshape_to_axis,
    resolve_axis,
    slice_axis,
    write_out,
)
from xpgrad._numpy.table import implements
from xpgrad._tensor.tensor import Tensor


def resolve_no_value(value: Any, default: Any = None) -> Any:
    """Return an argument; `default` if it is NumPy's marker for an omitted argument (`numpy._NoValue`)."""
    if value is None or value is False or value is True:
        return value
    return default if type(value).__name__ == "_NoValueType" else value


def has_keepdims(keepdims: Any) -> bool:
    """Return `keepdims` as a bool; False if it was omitted."""
    return bool(resolve_no_value(keepdims, False))


def fill_where_false(name: str, a: Any, where: Any, fill: Any) -> Any:
    """Lift `a`, and replace elements at which `where` is False by `fill`."""
    where = resolve_no_value(where, True)
    if where is True:
        return lift(name, a)[0]
    x, mask = lift(name, a, where)
    fill = fill if isinstance(fill, Tensor) else type(x).scalar(fill, x.dtype)
    return xp.where(mask, x, fill)


def count_where(x: Any, where: Any, axis: Any) -> Any:
    """Count the elements that `where` selects, over `axis`, with ``keepdims=True`` and in the dtype of `x`."""
    mask = xp.broadcast_to(where, xp.broadcast_shapes(where.shape, x.shape))
    return xp.sum(xp.astype(mask, x.dtype), axis=axis, keepdims=True)


def _combine_initial(name: str, combine: Any, initial: Any, result: Any) -> Any:
    initial = resolve_no_value(initial)
    if initial is None:
        return result
    return combine(*lift_weak(name, initial, result))


# -- sums and products -------------------------------------------------------------------------------------------------


def _bool_to_int(x: Any) -> Any:
    """Cast bools to integers, because NumPy sums them as integers; return other Tensors unchanged."""
    return x._cast(x.default_dtype("integral")) if x._node is None and x.dtype.category == "bool" else x


def _sum(name: str, row: Any, combine: Any, neutral: int, a: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any
         ) -> Any:  # fmt: skip
    x = _bool_to_int(fill_where_false(name, a, where, neutral))
    result = row(x, axis=axis, dtype=resolve_no_value(dtype), keepdims=has_keepdims(keepdims))
    return write_out(name, out, _combine_initial(name, combine, initial, result))


@implements("sum")
def total(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
          ) -> Any:  # fmt: skip
    """Sum elements (`numpy.sum`)."""
    if where is True and initial is None and out is None and isinstance(a, Tensor) and (a._node is not None or a.dtype.category != "bool"):
        return xp.sum(a, axis=axis, dtype=dtype, keepdims=resolve_no_value(keepdims, False))
    return _sum("sum", xp.sum, xp.add, 0, a, axis, dtype, out, keepdims, initial, where)


@implements("prod")
def product(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
            ) -> Any:  # fmt: skip
    """Multiply elements (`numpy.prod`)."""
    return _sum("prod", xp.prod, xp.multiply, 1, a, axis, dtype, out, keepdims, initial, where)


def replace_nan(a: Any, fill: float) -> Any:
    """Lift `a`, and replace nan by `fill`."""
    (x,) = lift("isnan", a)
    return x if not x.dtype.differentiable else xp.where(xp.isnan(x), type(x).scalar(fill, x.dtype), x)


for _name, _reduce, _neutral in (("nansum", total, 0), ("nanprod", product, 1)):

    @implements(_name)
    def _nan_reduction(a: Any, *args: Any, reduce: Any = _reduce, neutral: int = _neutral, **options: Any) -> Any:
        return reduce(replace_nan(a, neutral), *args, **options)


def _declare_cumulative(name: str, row: Any, neutral: int | None) -> None:
    """Implement a cumulative NumPy function by `row`; nan counts as `neutral`, unless that is None."""

    @adapt(name)
    def running(x: Any, axis: Any = None, dtype: Any = None) -> Any:
        x, axis = resolve_axis(_bool_to_int(x if neutral is None else replace_nan(x, neutral)), axis)
        return row(x if x.ndim else xp.reshape(x, (1,)), axis=axis, dtype=dtype)


_declare_cumulative("cumsum", xp.cumulative_sum, None)
_declare_cumulative("cumprod", xp.cumulative_prod, None)
_declare_cumulative("nancumsum", xp.cumulative_sum, 0)
_declare_cumulative("nancumprod", xp.cumulative_prod, 1)
_row: Any
for _name, _row in (("cumulative_sum", xp.cumulative_sum), ("cumulative_prod", xp.cumulative_prod)):

    @adapt(_name)
    def _cumulative(x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False, row: Any = _row) -> Any:
        return row(_bool_to_int(x), axis=axis, dtype=dtype, include_initial=include_initial)


# -- extrema -----------------------------------------------------------------------------------------------------------


def _reduce_extremum(name: str, row: Any, combine: Any, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any) -> Any:
    if where is True and initial is None and out is None and isinstance(a, Tensor):
        return row(a, axis=axis, keepdims=resolve_no_value(keepdims, False))
    initial, where = resolve_no_value(initial), resolve_no_value(where, True)
    if where is not True and initial is None:
        msg = f"np.{name}: `where` needs `initial`, because this reduction has no neutral element"
        raise ValueError(msg)
    x = fill_where_false(name, a, where, initial)
    if initial is not None and not x.size:
        value = initial if isinstance(initial, Tensor) else type(x).scalar(initial, x.dtype)
        x, initial = xp.broadcast_to(value, tuple(n or 1 for n in x.shape)), None
    result = row(x, axis=axis, keepdims=has_keepdims(keepdims))
    return write_out(name, out, _combine_initial(name, combine, initial, result))


@implements("max", "amax")
def maximum(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
    """Return the maximum over axes (`numpy.max`)."""
    return _reduce_extremum("max", xp.max, xp.maximum, a, axis, out, keepdims, initial, where)


@implements("min", "amin")
def minimum(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True) -> Any:
    """Return the minimum over axes (`numpy.min`)."""
    return _reduce_extremum("min", xp.min, xp.minimum, a, axis, out, keepdims, initial, where)


for _name, _pick, _fill in (("nanmax", maximum, -math.inf), ("nanmin", minimum, math.inf)):

    @implements(_name)
    def _nan_extremum(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True, *,
                      name: str = _name, pick: Any = _pick, fill: float = _fill) -> Any:  # fmt: skip
        (x,) = lift(name, a)
        if not x.dtype.differentiable:
            return pick(x, axis, out, keepdims, initial, where)
        result = pick(replace_nan(x, fill), axis, None, keepdims, initial, where)
        if resolve_no_value(initial) is None:
            all_nan = xp.all(xp.isnan(x), axis=axis, keepdims=has_keepdims(keepdims))
            result = xp.where(all_nan, type(x).scalar(math.nan, x.dtype), result)
        return write_out(name, out, result)


@adapt("ptp")
def _ptp(x: Any, axis: Any = None, keepdims: Any = False) -> Any:
    return maximum(x, axis, None, keepdims) - minimum(x, axis, None, keepdims)


# -- means and variances -----------------------------------------------------------------------------------------------


def _cast_floating(x: Any, dtype: Any) -> Any:
    dtype = resolve_no_value(dtype)
    return as_floating(x) if dtype is None else x._cast(as_dtype(dtype, x.default_dtype))


@implements("mean")
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    """Return the mean over axes (`numpy.mean`)."""
    if where is True and dtype is None and out is None and isinstance(a, Tensor):
        return xp.mean(a, axis=axis, keepdims=resolve_no_value(keepdims, False))
    where = resolve_no_value(where, True)
    if where is True:
        return write_out("mean", out, xp.mean(_cast_floating(lift("mean", a)[0], dtype), axis=axis, keepdims=has_keepdims(keepdims)))
    x, mask = lift("mean", a, where)
    x = _cast_floating(x, dtype)
    return write_out("mean", out, squeeze_reduced(_mean_where(x, mask, axis), x, axis, keepdims))


def _mean_where(x: Any, mask: Any, axis: Any) -> Any:
    return xp.sum(xp.where(mask, x, xp.zeros_like(x)), axis=axis, keepdims=True) / count_where(x, mask, axis)


def squeeze_reduced(result: Any, x: Any, axis: Any, keepdims: Any) -> Any:
    """Remove the reduced axes from a result that was computed with ``keepdims=True``, unless `keepdims` is True."""
    if has_keepdims(keepdims):
        return result
    axes = range(x.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return xp.squeeze(result, axis=tuple(a % result.ndim for a in axes)) if result.ndim else result


def _variance(name: str, a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
              where: Any = True, mean: Any = None, correction: Any = None) -> Any:  # fmt: skip
    nans = name.startswith("nan")
    correction, centre, where = resolve_no_value(correction), resolve_no_value(mean), resolve_no_value(where, True)
    if correction is not None:
        if ddof != 0:
            msg = f"np.{name}: give `ddof` or `correction`, not both"
            raise ValueError(msg)
        ddof = correction
    x, centre = lift(name, a, centre)
    x = _cast_floating(x, dtype)
    if where is True and centre is None and not nans:
        row = xp.std if name == "std" else xp.var
        return write_out(name, out, row(x, axis=axis, correction=ddof, keepdims=has_keepdims(keepdims)))
    mask = xp.ones_like(x, dtype=xp.bool) if where is True else lift(name, where, x)[0]
    if nans:
        mask = xp.logical_and(mask, xp.logical_not(xp.isnan(x)))
        x = replace_nan(x, 0.0)
    number = count_where(x, mask, axis)
    middle = _mean_where(x, mask, axis) if centre is None else centre
    deviation = xp.where(mask, x - middle, xp.zeros_like(x))
    squares = xp.real(deviation * xp.conj(deviation)) if x.dtype.is_complex else deviation * deviation
    freedom = xp.real(number) - ddof
    none = xp.full_like(freedom, math.nan if nans else 0.0)
    result = xp.sum(squares, axis=axis, keepdims=True) / xp.where(freedom > 0, freedom, none)
    if name.endswith("std"):
        flat = result == 0  # where all values are equal the derivative is 0, as for `xpgrad.std`
        result = xp.where(flat, xp.zeros_like(result), xp.sqrt(xp.where(flat, xp.ones_like(result), result)))
    return write_out(name, out, squeeze_reduced(result, x, axis, keepdims))


for _name in ("var", "std", "nanvar", "nanstd"):
    implements(_name)(functools.partial(_variance, _name))


@implements("nanmean")
def _nanmean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True) -> Any:
    (x,) = lift("nanmean", a)
    x = _cast_floating(x, dtype)
    mask = xp.logical_not(xp.isnan(x))
    if resolve_no_value(where, True) is not True:
        mask = xp.logical_and(mask, lift("nanmean", where, x)[0])
    return write_out("nanmean", out, squeeze_reduced(_mean_where(replace_nan(x, 0.0), mask, axis), x, axis, keepdims))


@implements("average")
def _average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    if weights is None:
        (x,) = map(as_floating, lift("average", a))
        result = xp.mean(x, axis=axis, keepdims=has_keepdims(keepdims))
        number: Any = xp.full_like(result, x.size / max(result.size, 1)) if returned else None
    else:
        x, w = map(as_floating, lift("average", a, weights))
        if w.shape != x.shape:
            axes = axis if isinstance(axis, tuple) else (axis,)
            if axis is None or w.shape != tuple(x.shape[i] for i in axes):
                msg = f"np.average: `weights` of shape {w.shape} fit neither `a` of shape {x.shape} nor its axis {axis}"
                raise (TypeError if axis is None else ValueError)(msg)
            weight_axes = [i % x.ndim for i in axes]
            w = xp.permute_dims(w, tuple(sorted(range(len(weight_axes)), key=weight_axes.__getitem__)))
            aligned: Any = xp.reshape(w, tuple(n if i in weight_axes else 1 for i, n in enumerate(x.shape)))
            w = xp.broadcast_to(aligned, x.shape)
        number = xp.sum(w, axis=axis, keepdims=has_keepdims(keepdims))
        result = xp.sum(x * w, axis=axis, keepdims=has_keepdims(keepdims)) / number
    return (result, xp.broadcast_to(number, result.shape)) if returned else result


# -- truth, counts and indices -----------------------------------------------------------------------------------------


for _name, _row, _trivial in (("all", xp.all, True), ("any", xp.any, False)):

    @implements(_name, differentiable=False)
    def _all_or_any(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True,
               name: str = _name, row: Any = _row, trivial: bool = _trivial) -> Any:  # fmt: skip
        (x,) = lift(name, a)
        x = fill_where_false(name, x if x.dtype.category == "bool" else xp.not_equal(x, 0), where, trivial)
        return write_out(name, out, row(x, axis=axis, keepdims=has_keepdims(keepdims)))


adapt("count_nonzero", xp.count_nonzero, differentiable=False)
adapt("argmax", lambda x, axis=None, keepdims=False: xp.argmax(_bool_to_int(x), axis=axis, keepdims=keepdims), differentiable=False)
adapt("argmin", lambda x, axis=None, keepdims=False: xp.argmin(_bool_to_int(x), axis=axis, keepdims=keepdims), differentiable=False)
for _name, _row, _fill in (("nanargmax", xp.argmax, -math.inf), ("nanargmin", xp.argmin, math.inf)):

    @adapt(_name, differentiable=False, note="returns index 0 for a row of nan whose values cannot be read, e.g. in `vmap`")
    def _nan_arg_extremum(x: Any, axis: Any = None, keepdims: Any = False, row: Any = _row, fill: float = _fill, name: str = _name) -> Any:
        if x.dtype.differentiable and can_read_values(x) and bool(xp.any(xp.all(xp.isnan(x.detach()), axis=axis))):
            msg = f"np.{name}: a row has no element that is not nan"
            raise ValueError(msg)
        return row(_bool_to_int(replace_nan(x, fill)), axis=axis, keepdims=keepdims)


# -- differences -------------------------------------------------------------------------------------------------------


@implements("diff")
def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    x, before, after = lift("diff", a, resolve_no_value(prepend), resolve_no_value(append))
    if n == 0:
        return x
    shape = list(x.shape)
    if shape:
        shape[axis] = 1
    before, after = (xp.broadcast_to(t, tuple(shape)) if t is not None and t.ndim == 0 else t for t in (before, after))
    if x.dtype.category == "bool":
        refuse("diff", prepend=before, append=after)
        for _ in range(n):
            x = xp.not_equal(slice_axis(x, axis % x.ndim, 1, None), slice_axis(x, axis % x.ndim, None, -1))
        return x
    return xp.diff(x, axis=axis, n=n, prepend=before, append=after)


@implements("ediff1d")
def _ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    flat: list[Any] = [t if t is None else xp.reshape(t, (-1,)) for t in lift("ediff1d", ary, to_end, to_begin)]
    x, end, begin = flat
    parts = [t for t in (begin, x[1:] - x[:-1], end) if t is not None]
    return xp.concat(parts) if len(parts) > 1 else parts[0]


@implements("trapezoid")
def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    if x is None and not isinstance(dx, Tensor):
        (y,), step = lift("trapezoid", y), dx
    elif x is None:
        y, step = lift("trapezoid", y, dx)
    else:
        y, x = lift("trapezoid", y, x)
        step = xp.diff(x, axis=axis if x.ndim > 1 else -1)
        if x.ndim == 1:
            step = reshape_to_axis(step, axis % y.ndim, y.ndim)
    y = xp.moveaxis(as_floating(y), axis, -1)
    if isinstance(step, Tensor) and step.ndim == y.ndim:
        step = xp.moveaxis(step, axis, -1)
    return xp.sum(step * (y[..., 1:] + y[..., :-1]) / 2.0, axis=-1)


@implements("gradient")
def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    x, *given = lift("gradient", f, *varargs)
    x = as_floating(x)
    axes = tuple(range(x.ndim)) if axis is None else normalize_axes(as_tuple(axis), x.ndim, "np.gradient") or ()
    steps: list[Any] = [None] * len(axes) if not given else given * len(axes) if len(given) == 1 and given[0].ndim == 0 else given
    if len(steps) != len(axes):
        msg = f"np.gradient: got {len(given)} spacings for {len(axes)} axes; give none, one number, or one for each axis"
        raise TypeError(msg)
    if edge_order not in (1, 2):
        msg = f"np.gradient: `edge_order` must be 1 or 2, but got {edge_order!r}"
        raise ValueError(msg)
    out = [_gradient_along(x, a, step, edge_order) for a, step in zip(axes, steps)]
    return out[0] if len(out) == 1 and (axis is None or not isinstance(axis, (tuple, list))) else tuple(out)


def _gradient_along(x: Any, axis: int, step: Any, edge_order: int) -> Any:
    n = x.shape[axis]
    if n < edge_order + 1:
        msg = f"np.gradient: axis {axis} has {n} elements, but edge_order={edge_order} needs at least {edge_order + 1}"
        raise ValueError(msg)
    if step is not None and step.ndim and step.shape != (n,):
        msg = f"np.gradient: the coordinates to_axis axis {axis} must have shape ({n},), but got {step.shape}"
        raise ValueError(msg)

    def part(start: int | None, stop: int | None) -> Any:
        return slice_axis(x, axis, start, stop)

    def to_axis(d: Any) -> Any:
        return reshape_to_axis(d, axis, x.ndim)

    gaps = xp.ones((n - 1,), dtype=xp.real(x).dtype, device=x.device)
    if step is not None:
        gaps = step[1:] - step[:-1] if step.ndim else xp.broadcast_to(step, (n - 1,))
    a, b = to_axis(gaps[:-1]), to_axis(gaps[1:])
    first, last = to_axis(gaps[:1]), to_axis(gaps[-1:])
    if edge_order == 1 or n < 3:
        start = (part(1, 2) - part(0, 1)) / first
        end = (part(n - 1, n) - part(n - 2, n - 1)) / last
    else:
        d1, d2 = to_axis(gaps[:1]), to_axis(gaps[1:2])
        start = (
            part(0, 1) * (-(2.0 * d1 + d2) / (d1 * (d1 + d2))) + part(1, 2) * ((d1 + d2) / (d1 * d2)) - part(2, 3) * (d1 / (d2 * (d1 + d2)))
        )
        d1, d2 = to_axis(gaps[-2:-1]), to_axis(gaps[-1:])
        end = part(n - 3, n - 2) * (d2 / (d1 * (d1 + d2))) - part(n - 2, n - 1) * ((d2 + d1) / (d1 * d2))
        end = end + part(n - 1, n) * ((2.0 * d2 + d1) / (d2 * (d1 + d2)))
    if n == 2:
        return xp.concat([start, end], axis=axis)
    inner = part(0, n - 2) * (-b / (a * (a + b))) + part(1, n - 1) * ((b - a) / (a * b)) + part(2, n) * (a / (b * (a + b)))
    return xp.concat([start, inner, end], axis=axis)


# -- bounds of dtypes, for other chapters ------------------------------------------------------------------------------


def dtype_bounds(x: Any) -> tuple[Any, Any]:
    """Return the smallest and the largest finite number of the dtype of `x`."""
    if x.dtype.differentiable:
        limits = xp.finfo(x.dtype)
        return limits.min, limits.max
    whole = iinfo(x.dtype)
    return whole.min, whole.max
