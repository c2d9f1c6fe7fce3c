"""Shapes, order of axes, joining, splitting, repeating and padding."""

from __future__ import annotations

import itertools
import math
from typing import Any

import xpgrad as xp
from xpgrad._basics.dtypes import as_dtype
from xpgrad._basics.shapes import normalize_axis
from xpgrad._numpy.operands import as_ints, constant, into, lift, lift_all, refuse
from xpgrad._numpy.reductions import maximum, mean, minimum
from xpgrad._numpy.table import covers
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import diagonal as diagonal_of

__all__ = ["as_matrices_last"]


# -- questions ---------------------------------------------------------------------------------------------------------


@covers("shape", differentiable=False, note="a tuple of ints")
def shape_of(a: Any) -> tuple[int, ...]:
    """Stand for `numpy.shape`."""
    return tuple(a.shape)


@covers("ndim", differentiable=False, note="an int")
def ndim_of(a: Any) -> int:
    """Stand for `numpy.ndim`."""
    return len(a.shape)


@covers("size", differentiable=False, note="an int")
def size_of(a: Any, axis: Any = None) -> int:
    """Stand for `numpy.size`."""
    axes = range(len(a.shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    return math.prod(a.shape[i] for i in axes)


# -- shapes ------------------------------------------------------------------------------------------------------------


def _in_columns(name: str, order: Any) -> bool:
    """Return whether elements are read in Fortran's order."""
    if order not in ("C", "F", "A", "K", None):
        refuse(name, order=order)
    return bool(order == "F")


@covers("reshape")
def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: Any = None) -> Any:
    """Stand for `numpy.reshape`."""
    if shape.__class__ is tuple and order == "C" and copy is None and isinstance(a, Tensor):
        return xp.reshape(a, shape)
    (x,) = lift("reshape", a)
    target = as_ints("reshape", "shape", shape)
    if _in_columns("reshape", order):
        target = target if isinstance(target, tuple) else (target,)
        return _reversed(xp.reshape(_reversed(x), target[::-1], copy=copy))
    return xp.reshape(x, target, copy=copy)


def _reversed(x: Any) -> Any:
    return xp.permute_dims(x, tuple(range(x.ndim))[::-1])


@covers("ravel")
def ravel(a: Any, order: Any = "C") -> Any:
    """Stand for `numpy.ravel`."""
    (x,) = lift("ravel", a)
    return xp.reshape(_reversed(x) if _in_columns("ravel", order) else x, (-1,) if x.size else (0,))


@covers("transpose")
def transpose(a: Any, axes: Any = None) -> Any:
    """Stand for `numpy.transpose`."""
    (x,) = lift("transpose", a)
    return _reversed(x) if axes is None else xp.permute_dims(x, as_ints("transpose", "axes", axes))


@covers("matrix_transpose", "linalg.matrix_transpose")
def matrix_transpose(x: Any, /) -> Any:
    """Stand for `numpy.matrix_transpose`."""
    return xp.matrix_transpose(lift("matrix_transpose", x)[0])


@covers("swapaxes")
def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Stand for `numpy.swapaxes`."""
    (x,) = lift("swapaxes", a)
    order = list(range(x.ndim))
    first, second = (normalize_axis(i, x.ndim, "swapaxes") for i in (axis1, axis2))
    order[first], order[second] = second, first
    return xp.permute_dims(x, tuple(order))


@covers("moveaxis")
def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Stand for `numpy.moveaxis`."""
    return xp.moveaxis(lift("moveaxis", a)[0], as_ints("moveaxis", "source", source), as_ints("moveaxis", "destination", destination))


@covers("rollaxis")
def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """Stand for `numpy.rollaxis`."""
    (x,) = lift("rollaxis", a)
    axis = normalize_axis(axis, x.ndim, "rollaxis")
    start = start + x.ndim if start < 0 else start
    return xp.moveaxis(x, axis, start - 1 if axis < start else start)


@covers("expand_dims")
def expand_dims(a: Any, axis: Any) -> Any:
    """Stand for `numpy.expand_dims`."""
    (x,) = lift("expand_dims", a)
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    rank = x.ndim + len(axes)
    for i in sorted(normalize_axis(i, rank, "expand_dims") for i in axes):
        x = xp.expand_dims(x, axis=i)
    return x


@covers("squeeze")
def squeeze(a: Any, axis: Any = None) -> Any:
    """Stand for `numpy.squeeze`."""
    (x,) = lift("squeeze", a)
    return xp.squeeze(x, axis=tuple(i for i, n in enumerate(x.shape) if n == 1) if axis is None else as_ints("squeeze", "axis", axis))


def _at_least(name: str, rank: int, arys: Any) -> Any:
    out = []
    for x in lift(name, *arys):
        if rank == 3 and x.ndim == 2:
            x = xp.expand_dims(x, axis=2)
        elif rank == 3 and x.ndim == 1:
            x = xp.reshape(x, (1, -1, 1))
        elif x.ndim < rank:
            x = xp.reshape(x, (1,) * (rank - x.ndim) + x.shape)
        out.append(x)
    return out[0] if len(out) == 1 else tuple(out)


@covers("atleast_1d")
def atleast_1d(*arys: Any) -> Any:
    """Stand for `numpy.atleast_1d`."""
    return _at_least("atleast_1d", 1, arys)


@covers("atleast_2d")
def atleast_2d(*arys: Any) -> Any:
    """Stand for `numpy.atleast_2d`."""
    return _at_least("atleast_2d", 2, arys)


@covers("atleast_3d")
def atleast_3d(*arys: Any) -> Any:
    """Stand for `numpy.atleast_3d`."""
    return _at_least("atleast_3d", 3, arys)


@covers("broadcast_to")
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Any:
    """Stand for `numpy.broadcast_to`."""
    return xp.broadcast_to(
        lift("broadcast_to", array)[0], as_ints("broadcast_to", "shape", shape if hasattr(shape, "__len__") else (shape,))
    )


@covers("lib.stride_tricks.sliding_window_view", note="a copy; `writeable` is refused")
def sliding_window_view(x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False) -> Any:
    """Stand for `numpy.lib.stride_tricks.sliding_window_view`."""
    name = "lib.stride_tricks.sliding_window_view"
    refuse(name, writeable=None if writeable is False else writeable)
    (out,) = lift(name, x)
    sizes, places = (
        (n,) if isinstance(n, int) else n
        for n in (as_ints(name, "window_shape", window_shape), tuple(range(out.ndim)) if axis is None else as_ints(name, "axis", axis))
    )
    if len(sizes) != len(places):
        msg = f"np.{name}: `window_shape`={sizes} must have one length for each of the axes {places} of shape {out.shape}"
        raise ValueError(msg)
    for size, place in zip(sizes, places):
        place = normalize_axis(place, x.ndim, name, "axis")
        count = out.shape[place] - size + 1
        if size < 0 or count < 1:
            msg = f"np.{name}: windows of shape {sizes} do not fit an array of shape {x.shape}"
            raise ValueError(msg)
        starts, steps = (xp.arange(n, device=out.device) for n in (count, size))
        flat = xp.take(out, xp.reshape(xp.reshape(starts, (-1, 1)) + xp.reshape(steps, (1, -1)), (-1,)), axis=place)
        shape = (*out.shape[:place], count, size, *out.shape[place + 1 :])
        out = xp.moveaxis(xp.reshape(flat, shape), place + 1, -1)
    return out


@covers("broadcast_arrays")
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """Stand for `numpy.broadcast_arrays`."""
    return tuple(xp.broadcast_arrays(*lift("broadcast_arrays", *args)))


# -- joining and splitting ---------------------------------------------------------------------------------------------


def _joined(name: str, row: Any, arrays: Any, axis: Any, out: Any, dtype: Any, casting: Any) -> Any:
    refuse(name, casting=casting)
    result = row(arrays, axis=axis)
    if dtype is not None:
        result = result._cast(as_dtype(dtype, result.default_dtype))
    return into(name, out, result)


@covers("concatenate", "concat")
def concatenate(arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Stand for `numpy.concatenate`."""
    return _joined("concatenate", xp.concat, lift_all("concatenate", arrays), axis, out, dtype, casting)


@covers("stack")
def stack(arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Stand for `numpy.stack`."""
    return _joined("stack", xp.stack, lift_all("stack", arrays), axis, out, dtype, casting)


def _listed(x: Any) -> list[Any]:
    return list(x) if isinstance(x, tuple) else [x]


@covers("vstack")
def vstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Stand for `numpy.vstack`."""
    return _joined("vstack", xp.concat, _listed(atleast_2d(*lift_all("vstack", tup))), 0, None, dtype, casting)


@covers("hstack")
def hstack(tup: Any, *, dtype: Any = None, casting: str = "same_kind") -> Any:
    """Stand for `numpy.hstack`."""
    parts = _listed(atleast_1d(*lift_all("hstack", tup)))
    return _joined("hstack", xp.concat, parts, 0 if parts[0].ndim == 1 else 1, None, dtype, casting)


@covers("dstack")
def dstack(tup: Any) -> Any:
    """Stand for `numpy.dstack`."""
    return xp.concat(_listed(atleast_3d(*lift_all("dstack", tup))), axis=2)


@covers("column_stack")
def column_stack(tup: Any) -> Any:
    """Stand for `numpy.column_stack`."""
    return xp.concat([xp.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in lift_all("column_stack", tup)], axis=1)


@covers("append")
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Stand for `numpy.append`."""
    return xp.concat(lift("append", arr, values), axis=axis)


@covers("block")
def block(arrays: Any) -> Any:
    """Stand for `numpy.block`."""

    def leaves(item: Any) -> list[Any]:
        return [x for part in item for x in leaves(part)] if isinstance(item, list) else [item]

    def depth(item: Any) -> int:
        return 1 + max(map(depth, item), default=0) if isinstance(item, list) else 0

    levels = depth(arrays)
    lifted = iter(lift("block", *leaves(arrays)))

    def joined(item: Any, level: int) -> Any:
        if not isinstance(item, list):
            return next(lifted)
        parts = [joined(part, level + 1) for part in item]
        rank = max(levels, *(p.ndim for p in parts))
        return xp.concat([xp.reshape(p, (1,) * (rank - p.ndim) + p.shape) for p in parts], axis=-(levels - level))

    return joined(arrays, 0) if levels else xp.positive(next(lifted))


def _split(name: str, ary: Any, where: Any, axis: int, uneven: bool = False) -> list[Any]:
    (x,) = lift(name, ary)
    n = x.shape[normalize_axis(axis, x.ndim, name)]
    given = as_ints(name, "indices_or_sections", where)
    if isinstance(given, tuple):
        bounds = [0, *given, n]
    else:
        if given < 1 or (n % given and not uneven):
            msg = f"np.{name}: an axis of length {n} does not divide into {given} equal parts"
            raise ValueError(msg)
        size, more = divmod(n, given)
        bounds = [0]
        for k in range(given):
            bounds.append(bounds[-1] + size + (k < more))
    lead = (slice(None),) * normalize_axis(axis, x.ndim, name)
    return [x[(*lead, slice(a, b))] for a, b in itertools.pairwise(bounds)]


@covers("split")
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Stand for `numpy.split`."""
    return _split("split", ary, indices_or_sections, axis)


@covers("array_split")
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Stand for `numpy.array_split`."""
    return _split("array_split", ary, indices_or_sections, axis, True)


@covers("hsplit")
def hsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Stand for `numpy.hsplit`."""
    return _split("hsplit", ary, indices_or_sections, 1 if len(ary.shape) > 1 else 0)


@covers("vsplit")
def vsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Stand for `numpy.vsplit`."""
    return _split("vsplit", ary, indices_or_sections, 0)


@covers("dsplit")
def dsplit(ary: Any, indices_or_sections: Any) -> Any:
    """Stand for `numpy.dsplit`."""
    return _split("dsplit", ary, indices_or_sections, 2)


@covers("unstack")
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """Stand for `numpy.unstack`."""
    return xp.unstack(lift("unstack", x)[0], axis=axis)


# -- repeating, leaving out and turning --------------------------------------------------------------------------------


@covers("tile")
def tile(A: Any, reps: Any) -> Any:
    """Stand for `numpy.tile`."""
    return xp.tile(lift("tile", A)[0], as_ints("tile", "reps", reps if hasattr(reps, "__len__") else (reps,)))


@covers("repeat")
def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Stand for `numpy.repeat`."""
    (x,) = lift("repeat", a)
    counts = repeats if isinstance(repeats, Tensor) else as_ints("repeat", "repeats", repeats)
    if isinstance(counts, tuple):
        counts = xp.asarray(list(counts), dtype=x.default_dtype("indexing"), device=x.device)
    return xp.repeat(x, counts, axis=axis)


@covers("resize")
def resize(a: Any, new_shape: Any) -> Any:
    """Stand for `numpy.resize`."""
    (x,) = lift("resize", a)
    shape = as_ints("resize", "new_shape", new_shape if hasattr(new_shape, "__len__") else (new_shape,))
    flat, count = xp.reshape(x, (-1,)), math.prod(shape)
    if not x.size:
        return xp.zeros(shape, dtype=x.dtype, device=x.device)
    return xp.reshape(xp.tile(flat, (-(-count // x.size),))[:count], shape)


def _chosen(x: Any, places: list[int], axis: int) -> Any:
    return xp.take(x, xp.asarray(places, dtype=x.default_dtype("indexing"), device=x.device), axis=axis)


def _places(name: str, obj: Any, n: int) -> list[int]:
    """The positions along an axis that an int, a slice, a sequence of ints or a mask names."""
    if isinstance(obj, slice):
        return list(range(n))[obj]
    if hasattr(obj, "tolist"):
        obj = obj.tolist()
    if isinstance(obj, (list, tuple)) and obj and all(isinstance(i, bool) for i in obj):
        return [i for i, keep in enumerate(obj) if keep]
    given = as_ints(name, "obj", obj)
    return [_position(name, i, n) for i in (given if isinstance(given, tuple) else (given,))]


def _position(name: str, i: int, n: int) -> int:
    if not -n <= i < n:
        msg = f"np.{name}: index {i} is out of range for an axis of length {n}"
        raise IndexError(msg)
    return i % n


@covers("delete")
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """Stand for `numpy.delete`."""
    (x,) = lift("delete", arr)
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    axis = normalize_axis(axis, x.ndim, "delete")
    gone = set(_places("delete", obj, x.shape[axis]))
    return _chosen(x, [i for i in range(x.shape[axis]) if i not in gone], axis)


@covers("insert")
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Stand for `numpy.insert`."""
    x, v = lift("insert", arr, values)
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    axis = normalize_axis(axis, x.ndim, "insert")
    n = x.shape[axis]
    given = obj.tolist() if hasattr(obj, "tolist") else obj
    if isinstance(given, slice) or (isinstance(given, (list, tuple)) and given and all(isinstance(i, bool) for i in given)):
        places = _places("insert", given, n)
    else:
        numbers = as_ints("insert", "obj", given)
        places = [i + n if i < 0 else i for i in (numbers if isinstance(numbers, tuple) else (numbers,))]
    if any(not 0 <= i <= n for i in places):
        msg = f"np.insert: a position is out of range for an axis of length {n}: {obj!r:.60}"
        raise IndexError(msg)
    v = v._cast(x.dtype)
    if len(places) == 1:  # all new elements go there
        v = xp.reshape(v, (1,) * (x.ndim - v.ndim) + v.shape)
        v = v if isinstance(given, (list, tuple, slice)) else xp.moveaxis(v, 0, axis)
        places = places * v.shape[axis]
    v = xp.broadcast_to(v, (*x.shape[:axis], len(places), *x.shape[axis + 1 :]))
    # Where the old and the new elements end up: new ones before the old one at their position, in the order given.
    order = sorted([(i, 0, k, n + k) for k, i in enumerate(places)] + [(i, 1, 0, i) for i in range(n)])
    return _chosen(xp.concat([x, v], axis=axis), [source for *_, source in order], axis)


@covers("trim_zeros", note="one axis; the length of the result depends on values")
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Stand for `numpy.trim_zeros`."""
    (x,) = lift("trim_zeros", filt)
    if x.ndim != 1:
        msg = f"np.trim_zeros: xpgrad trims one axis, but got shape {x.shape}"
        raise TypeError(msg)
    zero = (x.detach() == 0).tolist()
    start, stop = 0, len(zero)
    while "f" in trim.lower() and start < stop and zero[start]:
        start += 1
    while "b" in trim.lower() and stop > start and zero[stop - 1]:
        stop -= 1
    return x[start:stop]


@covers("flip")
def flip(m: Any, axis: Any = None) -> Any:
    """Stand for `numpy.flip`."""
    return xp.flip(lift("flip", m)[0], axis=axis)


@covers("fliplr")
def fliplr(m: Any) -> Any:
    """Stand for `numpy.fliplr`."""
    return xp.flip(lift("fliplr", m)[0], axis=1)


@covers("flipud")
def flipud(m: Any) -> Any:
    """Stand for `numpy.flipud`."""
    return xp.flip(lift("flipud", m)[0], axis=0)


@covers("rot90")
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Stand for `numpy.rot90`."""
    (x,) = lift("rot90", m)
    first, second = (normalize_axis(a, x.ndim, "rot90") for a in axes)
    k %= 4
    if k == 0:
        return xp.positive(x)
    if k == 2:
        return xp.flip(x, axis=(first, second))
    return swapaxes(xp.flip(x, axis=second), first, second) if k == 1 else xp.flip(swapaxes(x, first, second), axis=second)


@covers("roll")
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Stand for `numpy.roll`."""
    (x,) = lift("roll", a)
    shift = as_ints("roll", "shift", shift)
    if isinstance(shift, tuple) and not isinstance(axis, (tuple, list)):
        shift = sum(shift)
    if isinstance(axis, (tuple, list)):
        axis = tuple(axis)
        shift = shift if isinstance(shift, tuple) else (shift,) * len(axis)
    return xp.roll(x, shift, axis=axis)


# -- diagonals ---------------------------------------------------------------------------------------------------------


def as_matrices_last(name: str, a: Any, axis1: int, axis2: int) -> Any:
    """`a` with two axes moved to the end."""
    (x,) = lift(name, a)
    return xp.moveaxis(x, (normalize_axis(axis1, x.ndim, name), normalize_axis(axis2, x.ndim, name)), (-2, -1))


@covers("diagonal")
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Stand for `numpy.diagonal`."""
    return diagonal_of(as_matrices_last("diagonal", a, axis1, axis2), offset=offset)


@covers("trace")
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """Stand for `numpy.trace`."""
    return into("trace", out, xp.sum(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype))


# -- borders -----------------------------------------------------------------------------------------------------------


@covers("pad", note="`linear_ramp`, `empty`, `stat_length`, `reflect_type='odd'` and functions as modes are refused")
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """Stand for `numpy.pad`."""
    (x,) = lift("pad", array)
    known = ("constant", "edge", "reflect", "symmetric", "wrap", "maximum", "minimum", "mean", "median")
    if mode not in known:
        msg = f"np.pad: xpgrad has no `mode`={mode!r:.60}; it has {', '.join(known)}"
        raise TypeError(msg)
    values = kwargs.pop("constant_values", 0) if mode == "constant" else None
    if kwargs.get("reflect_type", "even") == "even":
        kwargs.pop("reflect_type", None)
    refuse(f"pad(mode={mode!r})", **kwargs)
    for axis, (before, after) in enumerate(_pairs("pad_width", pad_width, x.ndim)):
        if before or after:
            x = _padded(x, axis, as_ints("pad", "pad_width", before), as_ints("pad", "pad_width", after), mode, values)
    return x if x is not array else xp.positive(x)


def _pairs(what: str, given: Any, rank: int) -> list[Any]:
    """One pair for each axis, of anything, from one for all, a pair for all, or pairs."""
    if isinstance(given, dict):
        pairs = [(0, 0)] * rank
        for axis, pair in given.items():
            pairs[axis] = pair if isinstance(pair, (tuple, list)) else (pair, pair)
        return pairs
    if hasattr(given, "tolist") and not isinstance(given, Tensor):
        given = given.tolist()
    if not isinstance(given, (tuple, list)):
        return [(given, given)] * rank
    if given and not isinstance(given[0], (tuple, list)):
        return [(given[0], given[0])] * rank if len(given) == 1 else [tuple(given)] * rank
    full = list(given) * rank if len(given) == 1 else list(given)
    if len(full) != rank or any(len(p) not in (1, 2) for p in full):
        msg = f"np.pad: `{what}` must be one number, a pair, or a pair for each of the {rank} axes, but got {given!r:.60}"
        raise ValueError(msg)
    return [tuple(p) * 2 if len(p) == 1 else tuple(p) for p in full]


def _padded(x: Any, axis: int, before: int, after: int, mode: str, values: Any) -> Any:
    n = x.shape[axis]
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        if not n:
            msg = f"np.pad: axis {axis} has no elements to take the border from"
            raise ValueError(msg)
        return _chosen(x, [_source(i, n, mode) for i in range(-before, n + after)], axis)
    if mode == "constant":
        borders = _pairs("constant_values", values, x.ndim)[axis]
        borders = [b if isinstance(b, Tensor) else constant("pad", b, x) for b in borders]
        if not x.dtype.differentiable:
            borders = [b._cast(x.dtype) for b in borders]
    else:
        reduction: Any = {"maximum": maximum, "minimum": minimum, "mean": mean, "median": _median}[mode]
        from_all = reduction(x, axis=axis, keepdims=True)
        borders = [from_all, from_all]
    parts = []
    for border, count in zip(borders, (before, after)):
        parts.append(xp.broadcast_to(border._cast(x.dtype), (*x.shape[:axis], count, *x.shape[axis + 1 :])))
    return xp.concat([parts[0], x, parts[1]], axis=axis)


def _median(x: Any, axis: int, keepdims: bool) -> Any:
    n = x.shape[axis]
    middle = xp.take(
        xp.sort(x, axis=axis), xp.asarray([(n - 1) // 2, n // 2], dtype=x.default_dtype("indexing"), device=x.device), axis=axis
    )
    return xp.mean(middle, axis=axis, keepdims=keepdims)


def _source(i: int, n: int, mode: str) -> int:
    """The position from which an element of a border is taken."""
    if mode == "edge":
        return min(max(i, 0), n - 1)
    if mode == "wrap":
        return i % n
    if mode == "symmetric":
        i %= 2 * n
        return min(i, 2 * n - 1 - i)
    if n == 1:
        return 0
    i %= 2 * (n - 1)
    return min(i, 2 * (n - 1) - i)
