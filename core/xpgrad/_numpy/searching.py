"""Selection, sorting, searching, sets and comparisons: selected elements have gradients; indices and bools do not."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import xpgrad as xp
from xpgrad._aliasing.cells import chain_of, follow
from xpgrad._backends.classes import host_backend
from xpgrad._basics.shapes import normalize_axis
from xpgrad._numpy.adapters import adapt
from xpgrad._numpy.operands import (
    as_constant,
    as_numpy_dtype,
    as_tuple,
    can_read_values,
    lift,
    lift_sequence,
    lift_weak,
    refuse,
    reshape_to_axis,
    resolve_axis,
    write_out,
)
from xpgrad._numpy.reductions import dtype_bounds, resolve_no_value
from xpgrad._numpy.table import implements
from xpgrad._tensor.tensor import Tensor
from xpgrad._tensor.writing import shares_memory
from xpgrad.rules.indexing import fit_index
from xpgrad.rules.sets import UniqueAll, UniqueCounts, UniqueInverse

#: NumPy: `semantics` loaded it.
_np: Any = sys.modules["numpy"]


def _as_index(x: Any, positions: Any) -> Any:
    """Convert indices of `x` to a Tensor of integers; an empty list becomes an empty Tensor."""
    if isinstance(positions, Tensor):
        return positions
    if isinstance(positions, (list, tuple)) and not positions:
        return xp.asarray([], dtype=x.default_dtype("indexing"), device=x.device)
    return fit_index(x, positions, lambda positions: as_constant("take", positions, x))


# -- selection ---------------------------------------------------------------------------------------------------------


@implements("where")
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Select from `x` or `y` by a condition; without them, return the indices at which it holds (`numpy.where`)."""
    if x is None and y is None:
        return xp.nonzero(lift("where", condition)[0])
    if x is None or y is None:
        msg = "np.where: give both values, `np.where(condition, x, y)`, or none"
        raise ValueError(msg)
    kind = condition.__class__
    if x.__class__ is kind and y.__class__ is kind and issubclass(kind, Tensor) and condition.dtype.category == "bool":
        return xp.where(condition, x, y)
    mask, a, b = lift_weak("where", condition, x, y)
    like = next(t for t in (mask, a, b) if isinstance(t, Tensor))
    if not isinstance(mask, Tensor):
        mask = as_constant("where", mask, like)
    mask = _as_bools(mask)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        a = as_constant("where", a, like)
    return xp.where(mask, a, b)


def _apply_mode(name: str, index: Any, n: int, mode: str) -> Any:
    """Map indices that are out of range for length `n` into it by NumPy's `mode`; return them unchanged for mode 'raise'."""
    if mode == "wrap":
        return xp.remainder(index, n)
    if mode == "clip":
        return xp.clip(index, 0, n - 1)
    if mode != "raise":
        refuse(name, mode=mode)
    return index


@implements("take")
def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    like = a if isinstance(a, Tensor) else indices
    x = a if isinstance(a, Tensor) else as_constant("take", a, like)
    index = _as_index(x, indices)
    x, axis = resolve_axis(x, axis)
    axis = normalize_axis(axis, x.ndim, "take")
    n = x.shape[axis]
    flat = xp.take(x, xp.reshape(_apply_mode("take", index, n, mode), (-1,)), axis=axis)
    # As in NumPy, the result has the order of rows in memory, so that `reshape` returns a view of it.
    return write_out("take", out, xp.reshape(flat.contiguous(), (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])))


@adapt("take_along_axis", arrays=2)
def _take_along_axis(x: Any, index: Any, axis: Any = -1) -> Any:
    x, axis = resolve_axis(x, axis)
    return xp.take_along_axis(x, index, axis=axis)


@adapt("compress", arrays=2)
def _compress(mask: Any, x: Any, axis: Any = None) -> Any:
    x, axis = resolve_axis(x, axis)
    bools = _as_bools(mask)
    if bools.shape == (x.shape[axis],):
        return x[(slice(None),) * (axis % x.ndim) + (bools,)]
    return xp.take(x, xp.nonzero(bools)[0], axis=axis)  # a shorter mask selects among the first elements


def _as_bools(x: Any) -> Any:
    return x if x.dtype.category == "bool" else xp.not_equal(x, 0)


adapt("extract", lambda condition, arr: _compress(xp.reshape(condition, (-1,)), arr), arrays=2)


@implements("choose")
def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    parts = lift_sequence("choose", [a, *(choices if not isinstance(choices, Tensor) else xp.unstack(choices))])
    index = _apply_mode("choose", parts[0], len(parts) - 1, mode)
    if mode == "raise" and bool(xp.any((index < 0) | (index >= len(parts) - 1))):
        msg = f"np.choose: an index is out of range for {len(parts) - 1} choices"
        raise ValueError(msg)
    index, *options = xp.broadcast_arrays(index, *parts[1:])
    result = options[-1]
    for k in range(len(options) - 2, -1, -1):
        result = xp.where(index == k, options[k], result)
    return write_out("choose", out, result)


@implements("select")
def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not len(condlist):
        msg = f"np.select needs as many choices as conditions, and one at least, but got {len(choicelist)} and {len(condlist)}"
        raise ValueError(msg)
    conditions, choices = list(condlist), list(choicelist)
    *parts, result = lift_weak("select", *conditions, *choices, default)
    for mask, choice in zip(parts[len(conditions) - 1 :: -1], parts[: len(conditions) - 1 : -1]):
        result = where(mask, choice, result)
    return result.contiguous()


@implements("piecewise", note="each function is applied to all of `x`, and its result is taken where its condition holds")
def _piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    (t,) = (x,) if isinstance(x, Tensor) else (None,)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if t is None:
        found = [c for c in (*conditions, *funclist) if isinstance(c, Tensor)]
        t = as_constant("piecewise", x, found[0])
    masks = [_as_bools(m) for m in lift("piecewise", t, *conditions)[1:]]
    if len(masks) not in (len(funclist), len(funclist) - 1):
        msg = f"np.piecewise needs as many functions as conditions, or one more, but got {len(funclist)} and {len(masks)}"
        raise ValueError(msg)
    rest = len(funclist) > len(masks)
    result: Any = xp.zeros_like(t)
    if rest:
        masks.append(functools.reduce(xp.logical_and, [xp.logical_not(m) for m in masks]))
    one = t.dtype.differentiable
    for mask, function in zip(masks, funclist):
        if isinstance(function, Callable):  # type: ignore[arg-type]
            if can_read_values(mask) and not bool(mask.any()):
                continue  # as in NumPy, the function is not called
            # The function must not see elements of other pieces: an infinite derivative there, times a zero gradient, would be nan.
            inside = xp.where(mask, t, _largest_in_piece(t, mask)) if one else t
            value = function(inside, *args, **kw)
        else:
            value = function
        value = value if isinstance(value, Tensor) else as_constant("piecewise", value, t)
        result = xp.where(mask, value._cast(t.dtype) if one else value, result)
    return result


def _largest_in_piece(x: Any, mask: Any) -> Any:
    """Return the largest element at which `mask` is True, as a constant; the dtype's lower bound if there is none."""
    with xp.no_grad():
        values = x.detach()
        return xp.max(xp.where(mask, values, type(x).scalar(dtype_bounds(x)[0], x.dtype))) if x.size else values


@implements("clip")
def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None, **kwargs: Any) -> Any:  # noqa: A002 (NumPy's names)
    low, high = (resolve_no_value(old) if new is None else new for old, new in ((a_min, min), (a_max, max)))
    refuse("clip", **{k: v for k, v in kwargs.items() if k not in ("casting", "order", "subok")})
    x, low, high = lift_weak("clip", a, low, high)
    if not isinstance(x, Tensor):
        x = as_constant("clip", x, low if isinstance(low, Tensor) else high)
    for bound, row in ((low, xp.maximum), (high, xp.minimum)):
        if bound is None:
            continue
        narrow = isinstance(bound, Tensor) and (bound.dtype is not x.dtype or xp.broadcast_shapes(bound.shape, x.shape) != x.shape)
        if narrow or (isinstance(bound, float) and not x.dtype.differentiable):
            x = row(x, bound)
        else:
            x = xp.clip(x, bound, None) if row is xp.maximum else xp.clip(x, None, bound)
    return write_out("clip", out, x if low is not None or high is not None else xp.positive(x))


# -- sorting -----------------------------------------------------------------------------------------------------------


def _declare_sort(name: str, row: Callable[..., Any], differentiable: bool = True, note: str = "") -> None:
    """Implement a NumPy function that sorts or partitions, by a full sort; `kind`, `stable` and `kth` are ignored.

    Parameters
    ----------
    name : str
        NumPy's name.
    row : callable
        `xpgrad.sort` or `xpgrad.argsort`.
    differentiable, note
        As for `implements`.
    """

    @adapt(name, differentiable=differentiable, note=note)
    def sort(x: Any, axis: Any = -1, kth: Any = None, kind: Any = None, order: Any = None, stable: Any = None) -> Any:
        refuse(name, **({} if order is None else {"order (of fields)": order}))
        x, axis = resolve_axis(x, axis)
        return row(x, axis=axis)


_SORTS_ALL = "all elements are sorted, which is a valid partition for any `kth`"
_declare_sort("sort", xp.sort)
_declare_sort("argsort", xp.argsort, differentiable=False)
_declare_sort("partition", xp.sort, note=_SORTS_ALL)
_declare_sort("argpartition", xp.argsort, differentiable=False, note=_SORTS_ALL)


@adapt("lexsort", arrays=0, differentiable=False)
def _lexsort(keys: Any, axis: int = -1) -> Any:
    first, *rest = (k._cast(k.default_dtype("integral")) if k.dtype.category == "bool" else k for k in keys)
    order = xp.argsort(first, axis=axis)
    for key in rest:
        order = xp.take_along_axis(order, xp.argsort(xp.take_along_axis(key.detach(), order, axis=axis), axis=axis), axis=axis)
    return order


# -- searching ---------------------------------------------------------------------------------------------------------


def _find_nonzero(x: Any) -> Any:
    """Return the positions of the nonzero elements of the flattened `x`."""
    return xp.nonzero(xp.reshape(x.detach(), (-1,)))[0]


adapt("nonzero", xp.nonzero, differentiable=False)
adapt("flatnonzero", _find_nonzero, differentiable=False)
adapt("argwhere", lambda a: xp.stack(xp.nonzero(a), axis=-1), differentiable=False)


@implements("searchsorted", differentiable=False)
def _searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    x, values, order = lift("searchsorted", a, v, sorter)
    return _search(x, values, side, order)


def _search(x: Any, values: Any, side: Any, order: Any = None) -> Any:
    """Return insertion positions of `values` in the vector `x`, in the shape of `values`; the options are those of `numpy.searchsorted`."""
    flat = xp.searchsorted(x, xp.reshape(values, (-1,)), side=side, sorter=order)
    return xp.reshape(flat, values.shape)


@adapt("digitize", arrays=2, differentiable=False, note="`bins` must be ascending")
def _digitize(values: Any, edges: Any, right: bool = False) -> Any:
    if bool(xp.any(edges[1:] < edges[:-1])):
        msg = "np.digitize: xpgrad needs ascending `bins`; use `len(bins) - np.digitize(x, bins[::-1], not right)` for descending ones"
        raise ValueError(msg)
    return _search(edges, values, "left" if right else "right")


@adapt("unravel_index", ints=("shape",), differentiable=False)
def unravel_index(rest: Any, shape: Any, order: str = "C") -> Any:
    """Convert positions in the flattened array to one index per axis of `shape` (`numpy.unravel_index`)."""
    refuse("unravel_index", **({} if order == "C" else {"order of columns": order}))
    out: list[Any] = []
    for n in as_tuple(shape)[::-1]:
        out.insert(0, xp.remainder(rest, n))
        rest = xp.floor_divide(rest, n)
    return tuple(out)


@implements("ravel_multi_index", differentiable=False)
def _ravel_multi_index(multi_index: Any, dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    places, lengths = lift("ravel_multi_index", *multi_index), as_tuple(dims)
    modes = (mode,) * len(lengths) if isinstance(mode, str) else tuple(mode)
    if order not in ("C", "F") or not {"raise", "wrap", "clip"}.issuperset(modes):
        msg = f"np.ravel_multi_index takes order='C' or 'F', and 'raise', 'wrap' or 'clip' as `mode`, but got {order!r} and {mode!r}"
        raise ValueError(msg)
    if not len(places) == len(lengths) == len(modes) or any("integer" not in place.dtype.category for place in places):
        msg = f"np.ravel_multi_index needs integers for each of the {len(lengths)} axes, but got {len(places)} arrays"
        raise TypeError(msg)
    out: Any = 0
    for place, n, how in list(zip(places, lengths, modes))[:: -1 if order == "F" else 1]:
        if how == "raise" and can_read_values(place) and bool(xp.any((place < 0) | (place >= n))):
            msg = f"np.ravel_multi_index: an index is outside of an axis of length {n}"
            raise ValueError(msg)
        place = xp.astype(place, xp.int64)  # NumPy's default; smaller integers would overflow
        out = out * n + (xp.remainder(place, n) if how == "wrap" else xp.clip(place, 0, n - 1) if how == "clip" else place)
    return out


@implements("diag_indices_from", differentiable=False)
def _diag_indices_from(arr: Any) -> Any:
    if len(arr.shape) < 2 or len(set(arr.shape)) != 1:
        msg = f"np.diag_indices_from needs two or more axes of equal lengths, but got shape {tuple(arr.shape)}"
        raise ValueError(msg)
    return (xp.arange(arr.shape[0], device=arr.device),) * len(arr.shape)


for _name, _part in (("tril_indices_from", xp.tril), ("triu_indices_from", xp.triu)):

    @adapt(_name, differentiable=False)
    def _triangle(x: Any, k: int = 0, name: str = _name, part: Any = _part) -> Any:
        if x.ndim != 2:
            msg = f"np.{name} needs two axes, but got shape {x.shape}"
            raise ValueError(msg)
        return xp.nonzero(part(xp.ones(x.shape, dtype=x.default_dtype("real floating"), device=x.device), k=k))


@implements("ix_", differentiable=False, note="integers and masks only")
def _ix(*args: Any) -> Any:
    out = []
    for i, x in enumerate(lift("ix_", *args)):
        if x.dtype.category == "bool":
            (x,) = xp.nonzero(x)
        if x.ndim != 1 or x.dtype.differentiable:
            msg = f"np.ix_ needs one-dimensional integers or masks, but got {x.dtype} of shape {x.shape}"
            raise ValueError(msg)
        out.append(reshape_to_axis(x, i, len(args)))
    return tuple(out)


# -- sets --------------------------------------------------------------------------------------------------------------


def _find_distinct(x: Any, equal_nan: bool, axis: int | None = None) -> tuple[Any, Any, Any, Any]:
    """Return the sorted distinct elements, or slices along an axis, their first positions, the inverse indices and the counts."""
    flat = xp.reshape(x, (-1,)) if axis is None else xp.moveaxis(x, axis, 0)
    if not flat.shape[0]:
        empty = xp.zeros((0,), dtype=x.default_dtype("indexing"), device=x.device)
        return (flat.clone(), empty, xp.reshape(empty, x.shape), empty) if axis is None else (x.clone(), empty, empty, empty)
    values = flat.detach()
    values = values._cast(values.default_dtype("integral")) if values.dtype.category == "bool" else values
    if axis is None:
        order = xp.argsort(values)
        ranked = xp.take(values, order)
        differs = ranked[1:] != ranked[:-1]
    else:  # rows, in the order of their first elements that differ
        values = xp.reshape(values, (flat.shape[0], math.prod(flat.shape[1:])))
        columns = xp.unstack(values, axis=1)
        order = _lexsort(columns[::-1]) if columns else xp.arange(flat.shape[0], dtype=x.default_dtype("indexing"), device=x.device)
        ranked = xp.take(values, order, axis=0)
        differs = xp.any(ranked[1:] != ranked[:-1], axis=1)
    if equal_nan and axis is None and ranked.dtype.differentiable:
        differs = differs & ~(xp.isnan(ranked[1:]) & xp.isnan(ranked[:-1]))
    first = xp.concat([xp.ones((1,), dtype=xp.bool, device=x.device), differs])
    (starts,) = xp.nonzero(first)
    positions = xp.take(order, starts)
    number = xp.cumulative_sum(first._cast(order.dtype)) - 1
    inverse = xp.take(number, xp.argsort(order))
    ends = xp.concat([starts[1:], xp.full((1,), flat.shape[0], dtype=starts.dtype, device=x.device)])
    if axis is None:
        return xp.take(flat, positions), positions, xp.reshape(inverse, x.shape), ends - starts
    return xp.take(x, positions, axis=axis), positions, inverse, ends - starts


@adapt("unique", note="the gradient goes to the first of equal elements")
def _unique(x: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None, *,
            equal_nan: bool = True, sorted: bool = True) -> Any:  # noqa: A002 (NumPy's name)  # fmt: skip
    if axis is not None:
        axis = normalize_axis(axis, x.ndim, "np.unique")
        axis = axis if x.ndim > 1 else None
    values, *rest = _find_distinct(x, equal_nan, axis)
    wanted = [part for part, asked in zip(rest, (return_index, return_inverse, return_counts)) if asked]
    return (values, *wanted) if wanted else values


adapt("unique_all", lambda x: UniqueAll(*_find_distinct(x, False)))
adapt("unique_counts", lambda x: UniqueCounts(*_find_distinct(x, False)[::3]))
adapt("unique_inverse", lambda x: UniqueInverse(*_find_distinct(x, False)[::2]))
adapt("unique_values", lambda x: _find_distinct(x, False)[0])
adapt("isin", xp.isin, arrays=2, differentiable=False)


def _flatten_all(*arrays: Any) -> Any:
    return [xp.reshape(t, (-1,)) for t in arrays]


adapt("union1d", lambda ar1, ar2: _unique(xp.concat(_flatten_all(ar1, ar2))), arrays=2)


@adapt("intersect1d", arrays=2, note="the gradient goes to the first argument")
def _intersect1d(ar1: Any, ar2: Any, *, return_indices: bool = False) -> Any:
    a, b = _flatten_all(ar1, ar2)
    (a, at, *_), (b, other, *_) = _find_distinct(a, True), _find_distinct(b, True)
    common = xp.isin(a, b)
    return (a[common], at[common], other[xp.isin(b, a)]) if return_indices else a[common]


@adapt("setdiff1d", arrays=2)
def _setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    a, b = _flatten_all(ar1, ar2)
    a = a if assume_unique else _unique(a)
    return a[xp.isin(a, b, invert=True)]


@adapt("setxor1d", arrays=2)
def _setxor1d(ar1: Any, ar2: Any) -> Any:
    a, b = map(_unique, _flatten_all(ar1, ar2))
    return xp.sort(xp.concat([a[xp.isin(a, b, invert=True)], b[xp.isin(b, a, invert=True)]]))


# -- comparisons and dtypes --------------------------------------------------------------------------------------------


@implements("isclose", differentiable=False)
def _isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        a, b = lift("isclose", a, b)
    else:  # a tolerance is the Tensor
        a, b, rtol, atol = lift("isclose", a, b, rtol, atol)
    return xp.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


@implements("allclose", differentiable=False, note="a bool")
def _allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    return bool(xp.all(_isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)))


@implements("may_share_memory", differentiable=False, note="a bool; on a device that does not tell, whether one is a view of the other")
def _may_share_memory(a: Any, b: Any, max_work: int | None = None) -> bool:
    return _share_memory(a, b, _np.may_share_memory, max_work)


@implements("shares_memory", differentiable=False, note="as `may_share_memory`")
def _shares_memory(a: Any, b: Any, max_work: int | None = None) -> bool:
    return _share_memory(a, b, _np.shares_memory, max_work)


def _share_memory(a: Any, b: Any, decide: Callable[..., bool], max_work: int | None) -> bool:
    """Return whether two arrays share memory; `decide` is NumPy's function, for arrays on the host."""
    host = host_backend().array_types()
    raws = [x._array if isinstance(x, Tensor) else x for x in (a, b)]
    if a is b or (all(isinstance(raw, host) for raw in raws) and decide(*raws, max_work=max_work)):
        return True
    if not (isinstance(a, Tensor) and isinstance(b, Tensor) and shares_memory(a, b)):
        return False
    # Where writes go to copies, views have arrays of their own, which later writes to the base replace.
    base, other = (x if x._base is None else x._base for x in (a, b))
    if base is not other:
        return True
    places = _np.reshape(_np.arange(math.prod(base.shape)), base.shape)
    found = [follow(places, chain_of(x), host_backend().kernels) for x in (a, b)]
    return bool(decide(*found, max_work=max_work) or _np.isin(*found).any())


@adapt("array_equal", arrays=2, differentiable=False, note="a bool")
def _array_equal(x: Any, y: Any, equal_nan: bool = False) -> bool:
    if x.shape != y.shape:
        return False
    same = xp.equal(x, y)
    if equal_nan and x.dtype.differentiable and y.dtype.differentiable:
        same = same | (xp.isnan(x) & xp.isnan(y))
    return bool(xp.all(same))


@adapt("array_equiv", arrays=2, differentiable=False, note="a bool")
def _array_equiv(x: Any, y: Any) -> bool:
    try:
        return bool(xp.all(xp.equal(x, y)))
    except ValueError:  # the shapes do not broadcast
        return False


def _full_bools(x: Any, value: bool) -> Any:
    return xp.full(x.shape, value, dtype=xp.bool, device=x.device)


adapt("iscomplexobj", lambda x: bool(x.dtype.is_complex), differentiable=False, note="a bool")
adapt("isrealobj", lambda x: not x.dtype.is_complex, differentiable=False, note="a bool")
adapt("iscomplex", lambda x: xp.not_equal(xp.imag(x), 0) if x.dtype.is_complex else _full_bools(x, False), differentiable=False)
adapt("isreal", lambda x: xp.equal(xp.imag(x), 0) if x.dtype.is_complex else _full_bools(x, True), differentiable=False)
adapt("isneginf", lambda x: xp.equal(x, -math.inf), floating=True, differentiable=False)
adapt("isposinf", lambda x: xp.equal(x, math.inf), floating=True, differentiable=False)


@implements("result_type", differentiable=False, note="a NumPy dtype, by xpgrad's promotion")
def _result_type(*arrays_and_dtypes: Any) -> Any:
    given = [
        a.dtype if not isinstance(a, type) and hasattr(a, "dtype") and hasattr(a, "shape") else a
        for a in arrays_and_dtypes
        if not isinstance(a, Tensor)
    ]
    return as_numpy_dtype(xp.result_type(*(a for a in arrays_and_dtypes if isinstance(a, Tensor)), *given))


@implements("can_cast", differentiable=False, note="a bool, by NumPy's rules")
def _can_cast(from_: Any, to: Any, casting: str = "safe") -> Any:
    return _np.can_cast(as_numpy_dtype(from_.dtype), to, casting)


@implements("min_scalar_type", differentiable=False, note="a NumPy dtype; that of the Tensor, whatever the value of a 0-d one")
def _min_scalar_type(a: Any, /) -> Any:
    return as_numpy_dtype(a.dtype)


@implements("common_type", differentiable=False, note="a NumPy dtype")
def _common_type(*arrays: Any) -> Any:
    found = xp.result_type(*lift("common_type", *arrays))
    return as_numpy_dtype(found if found.differentiable else xp.float64).type


# -- writing in place --------------------------------------------------------------------------------------------------


def _check_target(name: str, x: Any) -> Any:
    """Return `x`, the target of an in-place write.

    Raises
    ------
    TypeError
        If it is not a Tensor: gradients cannot flow through another library's array.
    """
    if not isinstance(x, Tensor):
        what = f"{type(x).__module__}.{type(x).__qualname__}"
        msg = f"np.{name}: a Tensor cannot be written into {what}; make the target a Tensor, or write `x.detach().numpy()`"
        raise TypeError(msg)
    return x


def _as_value(name: str, x: Any, value: Any) -> Any:
    return value if isinstance(value, Tensor) else as_constant(name, value, x)._cast(x.dtype)


@implements("copyto", note="in place")
def _copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    x = _check_target("copyto", dst)
    refuse("copyto", casting=casting)
    value = src if isinstance(src, Tensor) else as_constant("copyto", src, x)
    write_out("copyto", x, value, None if where is True else lift("copyto", where, x)[0])


@implements("fill_diagonal", note="in place")
def _fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    x = _check_target("fill_diagonal", a)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) != 1):
        msg = f"np.fill_diagonal fills matrices, or arrays whose axes have one length, but got shape {x.shape}"
        raise ValueError(msg)
    rows, columns = x.shape[:2]
    place = xp.arange(rows if x.ndim > 2 else min(rows, columns), device=x.device)
    index = (place,) * x.ndim
    if wrap and rows > columns and x.ndim == 2:  # NB: NumPy's wrapped diagonal leaves one row free after each block of `columns` rows
        flat = xp.arange(0, x.size, columns + 1, device=x.device)
        index = flat // columns, flat % columns
    value = _as_value("fill_diagonal", x, val)
    if not value.size:  # NumPy writes nothing
        return
    x[index] = _repeat_to_length(xp.reshape(value, (-1,)), index[0].shape[0]) if value.ndim else value


@implements("put", note="in place")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write at positions in the flattened array, in place (`numpy.put`)."""
    x = _check_target("put", a)
    index = xp.reshape(_apply_mode("put", _as_index(x, ind), x.size, mode), (-1,))
    value = xp.reshape(_as_value("put", x, v), (-1,))
    if not value.shape[0]:  # NumPy writes nothing
        return
    value = _repeat_to_length(value, index.shape[0])
    index = xp.where(index < 0, index + x.size, index)
    x[unravel_index(index, x.shape) if x.ndim != 1 else index] = value


def _repeat_to_length(value: Any, count: int) -> Any:
    """Repeat a vector, or cut it off, so that it has `count` elements; raise ValueError if it is empty, and `count` is not 0."""
    n = value.shape[0]
    if not n and count:
        msg = f"{count} elements are to be written, but there are no values"
        raise ValueError(msg)
    return value if n == count else value[:count] if n > count else xp.tile(value, (-(-count // n),))[:count]


@implements("place", note="in place")
def _place(arr: Any, mask: Any, vals: Any) -> None:
    x = _check_target("place", arr)
    (chosen,) = lift("place", mask) if isinstance(mask, Tensor) else (as_constant("place", mask, x),)
    index = _find_nonzero(chosen)
    if index.shape[0]:
        put(x, index, _repeat_to_length(xp.reshape(_as_value("place", x, vals), (-1,)), index.shape[0]))


@implements("putmask", note="in place")
def _putmask(a: Any, /, mask: Any, values: Any) -> None:
    x = _check_target("putmask", a)
    chosen = mask if isinstance(mask, Tensor) else as_constant("putmask", mask, x)
    value = xp.reshape(_as_value("putmask", x, values), (-1,))
    if not value.shape[0]:  # NumPy writes nothing
        return
    spread = _repeat_to_length(value, x.size)
    x[...] = xp.where(chosen, xp.reshape(spread, x.shape)._cast(x.dtype), x)


@implements("put_along_axis", note="in place")
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    x = _check_target("put_along_axis", arr)
    index = _as_index(x, indices)
    if axis is None:
        put(x, index, values)
        return
    axis = normalize_axis(axis, x.ndim, "put_along_axis")
    key = [reshape_to_axis(xp.arange(n, device=x.device), i, x.ndim) for i, n in enumerate(x.shape)]
    key[axis] = index
    x[tuple(key)] = _as_value("put_along_axis", x, values)
