"""Choosing, sorting, searching, sets and truth: what is found has no gradient, what is taken has one."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any

import xpgrad as xp
from xpgrad._basics.shapes import normalize_axis
from xpgrad._numpy.operands import as_ints, constant, floating, into, lift, lift_all, numpy_dtype, refuse, weak
from xpgrad._numpy.reductions import bounds
from xpgrad._numpy.table import covers
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.sets import UniqueAll, UniqueCounts, UniqueInverse

__all__: list[str] = []


def _indices(x: Any, places: Any) -> Any:
    """Integers beside `x`, which index it."""
    if isinstance(places, Tensor):
        return places
    return constant("take", places, x) if not isinstance(places, (list, tuple)) or places else xp.asarray(
        [], dtype=x.default_dtype("indexing"), device=x.device
    )  # fmt: skip


# -- choosing ----------------------------------------------------------------------------------------------------------


@covers("where")
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Stand for `numpy.where`."""
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        msg = "np.where: give both values, `np.where(condition, x, y)`, or none"
        raise ValueError(msg)
    kind = condition.__class__
    if x.__class__ is kind and y.__class__ is kind and issubclass(kind, Tensor) and condition.dtype.kind == "bool":
        return xp.where(condition, x, y)
    mask, a, b = weak("where", condition, x, y)
    like = next(t for t in (mask, a, b) if isinstance(t, Tensor))
    if not isinstance(mask, Tensor):
        mask = constant("where", mask, like)
    mask = mask if mask.dtype.kind == "bool" else xp.not_equal(mask, 0)
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        a = constant("where", a, like)
    return xp.where(mask, a, b)


@covers("take")
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    """Stand for `numpy.take`."""
    like = a if isinstance(a, Tensor) else indices
    x = a if isinstance(a, Tensor) else constant("take", a, like)
    index = _indices(x, indices)
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    axis = normalize_axis(axis, x.ndim, "take")
    n = x.shape[axis]
    if mode == "wrap":
        index = xp.remainder(index, n)
    elif mode == "clip":
        index = xp.clip(index, 0, n - 1)
    elif mode != "raise":
        refuse("take", mode=mode)
    flat = xp.take(x, xp.reshape(index, (-1,)), axis=axis)
    return into("take", out, xp.reshape(flat, (*x.shape[:axis], *index.shape, *x.shape[axis + 1 :])))


@covers("take_along_axis")
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """Stand for `numpy.take_along_axis`."""
    x, index = lift("take_along_axis", arr, indices)
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    return xp.take_along_axis(x, index, axis=axis)


@covers("compress")
def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    """Stand for `numpy.compress`."""
    mask, x = lift("compress", condition, a)
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    places = xp.nonzero(mask if mask.dtype.kind == "bool" else xp.not_equal(mask, 0))[0]
    return into("compress", out, xp.take(x, places, axis=axis))


@covers("extract")
def extract(condition: Any, arr: Any) -> Any:
    """Stand for `numpy.extract`."""
    mask, x = lift("extract", condition, arr)
    return compress(xp.reshape(mask, (-1,)), xp.reshape(x, (-1,)))


@covers("choose")
def choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    """Stand for `numpy.choose`."""
    parts = lift_all("choose", [a, *(choices if not isinstance(choices, Tensor) else xp.unstack(choices))])
    index, *options = xp.broadcast_arrays(*parts)
    if mode in ("wrap", "clip"):
        index = xp.remainder(index, len(options)) if mode == "wrap" else xp.clip(index, 0, len(options) - 1)
    elif mode != "raise":
        refuse("choose", mode=mode)
    elif bool(xp.any((index < 0) | (index >= len(options)))):
        msg = f"np.choose: an index is out of range for {len(options)} choices"
        raise ValueError(msg)
    result = options[-1]
    for k in range(len(options) - 2, -1, -1):
        result = xp.where(index == k, options[k], result)
    return into("choose", out, result)


@covers("select")
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """Stand for `numpy.select`."""
    if len(condlist) != len(choicelist) or not len(condlist):
        msg = f"np.select needs as many choices as conditions, and one at least, but got {len(choicelist)} and {len(condlist)}"
        raise ValueError(msg)
    conditions, choices = list(condlist), list(choicelist)
    *parts, result = weak("select", *conditions, *choices, default)
    for mask, choice in zip(parts[len(conditions) - 1 :: -1], parts[: len(conditions) - 1 : -1]):
        result = where(mask, choice, result)
    return result


@covers("piecewise", note="each function is applied to all of `x`, and its result is taken where its condition holds")
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Any:
    """Stand for `numpy.piecewise`."""
    (t,) = (x,) if isinstance(x, Tensor) else (None,)
    conditions = list(condlist) if isinstance(condlist, (list, tuple)) else [condlist]
    if t is None:
        found = [c for c in (*conditions, *funclist) if isinstance(c, Tensor)]
        t = constant("piecewise", x, found[0])
    masks = [m if m.dtype.kind == "bool" else xp.not_equal(m, 0) for m in lift("piecewise", t, *conditions)[1:]]
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
            # Elements of other pieces must not reach the function: an infinite derivative there would come back as nan.
            inside = xp.where(mask, t, _inside(t, mask)) if one else t
            value = function(inside, *args, **kw)
        else:
            value = function
        value = value if isinstance(value, Tensor) else constant("piecewise", value, t)
        result = xp.where(mask, value._cast(t.dtype) if one else value, result)
    return result


def _inside(x: Any, mask: Any) -> Any:
    """A number of the piece itself, as a constant; any if the piece is empty."""
    with xp.no_grad():
        held = x.detach()
        return xp.max(xp.where(mask, held, type(x).scalar(bounds(x)[0], x.dtype))) if x.size else held


@covers("clip")
def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None, **kwargs: Any) -> Any:  # noqa: A002 (NumPy's names)
    """Stand for `numpy.clip`."""
    low, high = (p if type(p).__name__ != "_NoValueType" else None for p in (a_min, a_max))
    low, high = (low if min is None else min), (high if max is None else max)
    refuse("clip", **{k: v for k, v in kwargs.items() if k not in ("casting", "order", "subok")})
    x, low, high = weak("clip", a, low, high)
    if not isinstance(x, Tensor):
        x = constant("clip", x, low if isinstance(low, Tensor) else high)
    for bound, row in ((low, xp.maximum), (high, xp.minimum)):
        if bound is None:
            continue
        narrow = isinstance(bound, Tensor) and (bound.dtype is not x.dtype or xp.broadcast_shapes(bound.shape, x.shape) != x.shape)
        if narrow or (isinstance(bound, float) and not x.dtype.differentiable):
            x = row(x, bound)
        else:
            x = xp.clip(x, bound, None) if row is xp.maximum else xp.clip(x, None, bound)
    return into("clip", out, x if low is not None or high is not None else xp.positive(x))


# -- sorting -----------------------------------------------------------------------------------------------------------


def _sorted(name: str, row: Any, a: Any, axis: Any, order: Any) -> Any:
    refuse(name, **({} if order is None else {"order (of fields)": order}))
    (x,) = lift(name, a)
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    return row(x, axis=axis)


@covers("sort")
def sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Stand for `numpy.sort`."""
    return _sorted("sort", xp.sort, a, axis, order)


@covers("argsort", differentiable=False)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """Stand for `numpy.argsort`."""
    return _sorted("argsort", xp.argsort, a, axis, order)


@covers("partition", note="everything is sorted, which is a partition about any `kth`")
def partition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """Stand for `numpy.partition`."""
    return _sorted("partition", xp.sort, a, axis, order)


@covers("argpartition", differentiable=False, note="everything is sorted, which is a partition about any `kth`")
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: Any = "introselect", order: Any = None) -> Any:
    """Stand for `numpy.argpartition`."""
    return _sorted("argpartition", xp.argsort, a, axis, order)


@covers("lexsort", differentiable=False)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """Stand for `numpy.lexsort`."""
    first, *rest = (k._cast(k.default_dtype("integral")) if k.dtype.kind == "bool" else k for k in lift_all("lexsort", keys))
    order = xp.argsort(first, axis=axis)
    for key in rest:
        order = xp.take_along_axis(order, xp.argsort(xp.take_along_axis(key.detach(), order, axis=axis), axis=axis), axis=axis)
    return order


# -- searching ---------------------------------------------------------------------------------------------------------


@covers("nonzero", differentiable=False)
def nonzero(a: Any) -> Any:
    """Stand for `numpy.nonzero`."""
    return xp.nonzero(lift("nonzero", a)[0])


@covers("flatnonzero", differentiable=False)
def flatnonzero(a: Any) -> Any:
    """Stand for `numpy.flatnonzero`."""
    return xp.nonzero(xp.reshape(lift("flatnonzero", a)[0].detach(), (-1,)))[0]


@covers("argwhere", differentiable=False)
def argwhere(a: Any) -> Any:
    """Stand for `numpy.argwhere`."""
    return xp.stack(nonzero(a), axis=-1)


@covers("searchsorted", differentiable=False)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Stand for `numpy.searchsorted`."""
    x, values, order = lift("searchsorted", a, v, sorter)
    return _found(x, values, side, order)


def _found(x: Any, values: Any, side: Any, order: Any = None) -> Any:
    """Positions in sorted numbers, in the shape of the values."""
    flat = xp.searchsorted(x, xp.reshape(values, (-1,)), side=side, sorter=order)
    return xp.reshape(flat, values.shape)


@covers("digitize", differentiable=False, note="`bins` ascend")
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Stand for `numpy.digitize`."""
    values, edges = lift("digitize", x, bins)
    if bool(xp.any(edges[1:] < edges[:-1])):
        msg = "np.digitize: xpgrad needs ascending `bins`; use `len(bins) - np.digitize(x, bins[::-1], not right)` for descending ones"
        raise ValueError(msg)
    return _found(edges, values, "left" if right else "right")


@covers("unravel_index", differentiable=False)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> Any:
    """Stand for `numpy.unravel_index`."""
    refuse("unravel_index", **({} if order == "C" else {"order of columns": order}))
    (rest,) = lift("unravel_index", indices)
    lengths = as_ints("unravel_index", "shape", shape if hasattr(shape, "__len__") else (shape,))
    out: list[Any] = []
    for n in lengths[::-1]:
        out.insert(0, xp.remainder(rest, n))
        rest = xp.floor_divide(rest, n)
    return tuple(out)


@covers("diag_indices_from", differentiable=False)
def diag_indices_from(arr: Any) -> Any:
    """Stand for `numpy.diag_indices_from`."""
    if len(arr.shape) < 2 or len(set(arr.shape)) != 1:
        msg = f"np.diag_indices_from needs two or more axes of equal lengths, but got shape {tuple(arr.shape)}"
        raise ValueError(msg)
    return (xp.arange(arr.shape[0], device=arr.device),) * len(arr.shape)


def _triangle(name: str, arr: Any, k: int, upper: bool) -> Any:
    (x,) = lift(name, arr)
    if x.ndim != 2:
        msg = f"np.{name} needs two axes, but got shape {x.shape}"
        raise ValueError(msg)
    ones = xp.ones(x.shape, dtype=x.default_dtype("real floating"), device=x.device)
    return xp.nonzero(xp.triu(ones, k=k) if upper else xp.tril(ones, k=k))


@covers("tril_indices_from", differentiable=False)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """Stand for `numpy.tril_indices_from`."""
    return _triangle("tril_indices_from", arr, k, False)


@covers("triu_indices_from", differentiable=False)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """Stand for `numpy.triu_indices_from`."""
    return _triangle("triu_indices_from", arr, k, True)


@covers("ix_", differentiable=False, note="of integers and masks")
def ix_(*args: Any) -> Any:
    """Stand for `numpy.ix_`."""
    out = []
    for i, x in enumerate(lift("ix_", *args)):
        if x.dtype.kind == "bool":
            (x,) = xp.nonzero(x)
        if x.ndim != 1 or x.dtype.differentiable:
            msg = f"np.ix_ needs one-dimensional integers or masks, but got {x.dtype} of shape {x.shape}"
            raise ValueError(msg)
        out.append(xp.reshape(x, tuple(-1 if j == i else 1 for j in range(len(args)))))
    return tuple(out)


# -- sets --------------------------------------------------------------------------------------------------------------


def _distinct(x: Any, equal_nan: bool) -> tuple[Any, Any, Any, Any]:
    """Distinct elements in ascending order, the first position of each, the position among them of each element, and counts."""
    flat = xp.reshape(x, (-1,))
    if not flat.size:
        none = xp.zeros((0,), dtype=x.default_dtype("indexing"), device=x.device)
        return flat.clone(), none, none, none
    held = flat.detach()
    held = held._cast(held.default_dtype("integral")) if held.dtype.kind == "bool" else held
    order = xp.argsort(held)
    ranked = xp.take(held, order)
    new = ranked[1:] != ranked[:-1]
    if equal_nan and ranked.dtype.differentiable:
        new = new & ~(xp.isnan(ranked[1:]) & xp.isnan(ranked[:-1]))
    first = xp.concat([xp.ones((1,), dtype=xp.bool, device=x.device), new])
    (starts,) = xp.nonzero(first)
    places = xp.take(order, starts)
    number = xp.cumulative_sum(first._cast(order.dtype)) - 1
    inverse = xp.take(number, xp.argsort(order))
    ends = xp.concat([starts[1:], xp.full((1,), flat.size, dtype=starts.dtype, device=x.device)])
    return xp.take(flat, places), places, xp.reshape(inverse, x.shape), ends - starts


@covers("unique", note="`axis` is refused; equal elements give the gradient to the first")
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Any = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,  # noqa: A002 (NumPy's name)
) -> Any:
    """Stand for `numpy.unique`."""
    refuse("unique", axis=axis)
    values, *rest = _distinct(lift("unique", ar)[0], equal_nan)
    wanted = [part for part, asked in zip(rest, (return_index, return_inverse, return_counts)) if asked]
    return (values, *wanted) if wanted else values


@covers("unique_all")
def unique_all(x: Any) -> Any:
    """Stand for `numpy.unique_all`."""
    return UniqueAll(*_distinct(lift("unique_all", x)[0], False))


@covers("unique_counts")
def unique_counts(x: Any) -> Any:
    """Stand for `numpy.unique_counts`."""
    values, _, _, number = _distinct(lift("unique_counts", x)[0], False)
    return UniqueCounts(values, number)


@covers("unique_inverse")
def unique_inverse(x: Any) -> Any:
    """Stand for `numpy.unique_inverse`."""
    values, _, inverse, _ = _distinct(lift("unique_inverse", x)[0], False)
    return UniqueInverse(values, inverse)


@covers("unique_values")
def unique_values(x: Any) -> Any:
    """Stand for `numpy.unique_values`."""
    return _distinct(lift("unique_values", x)[0], False)[0]


@covers("isin", differentiable=False)
def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None) -> Any:
    """Stand for `numpy.isin`."""
    return xp.isin(*lift("isin", element, test_elements), invert=invert)


def _flat_pair(name: str, a: Any, b: Any) -> tuple[Any, Any]:
    return tuple(xp.reshape(t, (-1,)) for t in lift(name, a, b))  # type: ignore[return-value]


@covers("union1d")
def union1d(ar1: Any, ar2: Any) -> Any:
    """Stand for `numpy.union1d`."""
    return unique(xp.concat(_flat_pair("union1d", ar1, ar2)))


@covers("intersect1d", note="the gradient goes to the first argument; `return_indices` is refused")
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """Stand for `numpy.intersect1d`."""
    refuse("intersect1d", return_indices=None if return_indices is False else return_indices)
    a, b = _flat_pair("intersect1d", ar1, ar2)
    a = unique(a)
    return a[xp.isin(a, b)]


@covers("setdiff1d")
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Stand for `numpy.setdiff1d`."""
    a, b = _flat_pair("setdiff1d", ar1, ar2)
    a = a if assume_unique else unique(a)
    return a[xp.isin(a, b, invert=True)]


@covers("setxor1d")
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    """Stand for `numpy.setxor1d`."""
    a, b = (unique(t) for t in _flat_pair("setxor1d", ar1, ar2))
    return xp.sort(xp.concat([a[xp.isin(a, b, invert=True)], b[xp.isin(b, a, invert=True)]]))


# -- truth and kinds ---------------------------------------------------------------------------------------------------


@covers("isclose", differentiable=False)
def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Stand for `numpy.isclose`."""
    x, y = lift("isclose", a, b)
    return xp.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)


@covers("allclose", differentiable=False, note="a bool")
def allclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool:
    """Stand for `numpy.allclose`."""
    return bool(xp.all(isclose(a, b, rtol, atol, equal_nan)))


@covers("array_equal", differentiable=False, note="a bool")
def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> bool:
    """Stand for `numpy.array_equal`."""
    x, y = lift("array_equal", a1, a2)
    if x.shape != y.shape:
        return False
    same = xp.equal(x, y)
    if equal_nan and x.dtype.differentiable and y.dtype.differentiable:
        same = same | (xp.isnan(x) & xp.isnan(y))
    return bool(xp.all(same))


@covers("array_equiv", differentiable=False, note="a bool")
def array_equiv(a1: Any, a2: Any) -> bool:
    """Stand for `numpy.array_equiv`."""
    x, y = lift("array_equiv", a1, a2)
    try:
        return bool(xp.all(xp.equal(x, y)))
    except ValueError:  # their shapes do not broadcast
        return False


@covers("iscomplexobj", differentiable=False, note="a bool")
def iscomplexobj(x: Any) -> bool:
    """Stand for `numpy.iscomplexobj`."""
    return bool(x.dtype.is_complex)


@covers("isrealobj", differentiable=False, note="a bool")
def isrealobj(x: Any) -> bool:
    """Stand for `numpy.isrealobj`."""
    return not x.dtype.is_complex


@covers("iscomplex", differentiable=False)
def iscomplex(x: Any) -> Any:
    """Stand for `numpy.iscomplex`."""
    return xp.not_equal(xp.imag(x), 0) if x.dtype.is_complex else xp.zeros(x.shape, dtype=xp.bool, device=x.device)


@covers("isreal", differentiable=False)
def isreal(x: Any) -> Any:
    """Stand for `numpy.isreal`."""
    return xp.equal(xp.imag(x), 0) if x.dtype.is_complex else xp.ones(x.shape, dtype=xp.bool, device=x.device)


@covers("isneginf", differentiable=False)
def isneginf(x: Any, out: Any = None) -> Any:
    """Stand for `numpy.isneginf`."""
    (t,) = map(floating, lift("isneginf", x))
    return into("isneginf", out, xp.equal(t, -math.inf))


@covers("isposinf", differentiable=False)
def isposinf(x: Any, out: Any = None) -> Any:
    """Stand for `numpy.isposinf`."""
    (t,) = map(floating, lift("isposinf", x))
    return into("isposinf", out, xp.equal(t, math.inf))


@covers("result_type", differentiable=False, note="NumPy's dtype of the name that xpgrad's promotion gives")
def result_type(*arrays_and_dtypes: Any) -> Any:
    """Stand for `numpy.result_type`."""
    given = [a.dtype if hasattr(a, "dtype") and hasattr(a, "shape") else a for a in arrays_and_dtypes if not isinstance(a, Tensor)]
    return numpy_dtype(xp.result_type(*(a for a in arrays_and_dtypes if isinstance(a, Tensor)), *given))


@covers("can_cast", differentiable=False, note="a bool, by NumPy's rules")
def can_cast(from_: Any, to: Any, casting: str = "safe") -> Any:
    """Stand for `numpy.can_cast`."""
    return sys.modules["numpy"].can_cast(numpy_dtype(from_.dtype), to, casting)


@covers("min_scalar_type", differentiable=False, note="NumPy's dtype of the Tensor; a 0-d one is not asked for its value")
def min_scalar_type(a: Any, /) -> Any:
    """Stand for `numpy.min_scalar_type`."""
    return numpy_dtype(a.dtype)


@covers("common_type", differentiable=False, note="NumPy's dtype")
def common_type(*arrays: Any) -> Any:
    """Stand for `numpy.common_type`."""
    found = xp.result_type(*lift("common_type", *arrays))
    return numpy_dtype(found if found.differentiable else xp.float64).type


# -- writing in place --------------------------------------------------------------------------------------------------


def _target(name: str, x: Any) -> Any:
    """Return what is written to.

    Raises
    ------
    TypeError
        If it is not a Tensor: a Tensor's values would leave the graph.
    """
    if not isinstance(x, Tensor):
        what = f"{type(x).__module__}.{type(x).__qualname__}"
        msg = f"np.{name}: a Tensor cannot be written into {what}; make the target a Tensor, or write `x.detach().numpy()`"
        raise TypeError(msg)
    return x


def _value(name: str, x: Any, value: Any) -> Any:
    return value if isinstance(value, Tensor) else constant(name, value, x)._cast(x.dtype)


@covers("copyto", note="in place")
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Stand for `numpy.copyto`."""
    x = _target("copyto", dst)
    refuse("copyto", casting=casting)
    into(
        "copyto",
        x,
        src if isinstance(src, Tensor) else constant("copyto", src, x),
        None if where is True else lift("copyto", where, x)[0],
    )


@covers("fill_diagonal", note="in place; matrices")
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Stand for `numpy.fill_diagonal`."""
    x = _target("fill_diagonal", a)
    if x.ndim < 2 or (x.ndim > 2 and len(set(x.shape)) != 1) or wrap:
        msg = f"np.fill_diagonal: xpgrad fills matrices, or axes of equal lengths, without `wrap`, but got shape {x.shape}"
        raise TypeError(msg)
    n = x.shape[0] if x.ndim > 2 else min(x.shape)
    place = xp.arange(n, device=x.device)
    value = _value("fill_diagonal", x, val)
    x[(place,) * x.ndim] = xp.reshape(value, (-1,))[:n] if value.ndim else value


@covers("put", note="in place")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Stand for `numpy.put`."""
    x = _target("put", a)
    index = xp.reshape(_indices(x, ind), (-1,))
    if mode in ("wrap", "clip"):
        index = xp.remainder(index, x.size) if mode == "wrap" else xp.clip(index, 0, x.size - 1)
    value = xp.reshape(_value("put", x, v), (-1,))
    value = _cycled(value, index.shape[0])
    index = xp.where(index < 0, index + x.size, index)
    x[unravel_index(index, x.shape) if x.ndim != 1 else index] = value


def _cycled(value: Any, count: int) -> Any:
    """The first elements of a vector that is repeated."""
    n = value.shape[0]
    return value if n == count else value[:count] if n > count else xp.tile(value, (-(-count // n),))[:count]


@covers("place", note="in place")
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Stand for `numpy.place`."""
    x = _target("place", arr)
    (chosen,) = lift("place", mask) if isinstance(mask, Tensor) else (constant("place", mask, x),)
    index = flatnonzero(chosen)
    if index.shape[0]:
        put(x, index, _cycled(xp.reshape(_value("place", x, vals), (-1,)), index.shape[0]))


@covers("putmask", note="in place")
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Stand for `numpy.putmask`."""
    x = _target("putmask", a)
    chosen = mask if isinstance(mask, Tensor) else constant("putmask", mask, x)
    spread = _cycled(xp.reshape(_value("putmask", x, values), (-1,)), x.size)
    x[...] = xp.where(chosen, xp.reshape(spread, x.shape)._cast(x.dtype), x)


@covers("put_along_axis", note="in place")
def put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> None:
    """Stand for `numpy.put_along_axis`."""
    x = _target("put_along_axis", arr)
    index = _indices(x, indices)
    if axis is None:
        put(x, index, values)
        return
    axis = normalize_axis(axis, x.ndim, "put_along_axis")
    key = tuple(
        index if i == axis else xp.reshape(xp.arange(n, device=x.device), tuple(-1 if j == i else 1 for j in range(x.ndim)))
        for i, n in enumerate(x.shape)
    )
    x[key] = _value("put_along_axis", x, values)
