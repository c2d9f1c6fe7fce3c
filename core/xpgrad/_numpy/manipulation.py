"""Shapes, order of axes, joining, splitting, repeating and padding."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

import xpgrad as xp
from xpgrad._basics.dtypes import as_dtype, float64, real_of
from xpgrad._basics.shapes import normalize_axes, normalize_axis
from xpgrad._numpy.adapters import adapt
from xpgrad._numpy.operands import as_constant, as_ints, as_tuple, lift, refuse, reshape_to_axis, resolve_axis, slice_axis
from xpgrad._numpy.semantics import is_running
from xpgrad._numpy.shared import as_result
from xpgrad._numpy.table import FUNCTIONS, implements
from xpgrad._tensor.tensor import Tensor
from xpgrad.linalg import diagonal as diagonal_of
from xpgrad.rules.indexing import view_by_key

#: NumPy: `semantics` loaded it.
_np: Any = sys.modules["numpy"]

# -- queries -----------------------------------------------------------------------------------------------------------


@implements("shape", differentiable=False, note="a tuple of ints")
def _shape(a: Any) -> tuple[int, ...]:
    return tuple(lift("shape", a)[0].shape)


@implements("ndim", differentiable=False, note="an int")
def _ndim(a: Any) -> int:
    return len(lift("ndim", a)[0].shape)


@implements("size", differentiable=False, note="an int")
def _size(a: Any, axis: Any = None) -> int:
    shape = lift("size", a)[0].shape
    axes = normalize_axes(axis, len(shape), "np.size")
    return math.prod(shape if axes is None else (shape[i] for i in axes))


# -- shapes ------------------------------------------------------------------------------------------------------------


def _is_fortran_order(name: str, x: Any, order: Any) -> bool:
    """Return whether `order` is Fortran's; "A" and "K", which follow the memory, raise TypeError unless `x` is in row-major order there."""
    if order not in ("C", "F", None) and (order not in ("A", "K") or x.contiguous() is not x):
        refuse(name, **{"order of elements": order})
    return bool(order == "F")


@implements("reshape")
def _reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: Any = None) -> Any:
    if shape.__class__ is tuple and order == "C" and copy is None and isinstance(a, Tensor):
        return xp.reshape(a, shape)
    (x,) = lift("reshape", a)
    target = as_ints("reshape", "shape", shape)
    if _is_fortran_order("reshape", x, order):
        return reverse_axes(xp.reshape(reverse_axes(x), as_tuple(target)[::-1], copy=copy))
    return xp.reshape(x, target, copy=copy)


def reverse_axes(x: Any) -> Any:
    """Return `x` with its axes in reverse order."""
    return xp.permute_dims(x, tuple(range(x.ndim))[::-1])


@adapt("ravel")
def _ravel(x: Any, order: Any = "C") -> Any:
    x = reverse_axes(x) if _is_fortran_order("ravel", x, order) else x
    return xp.reshape(x.contiguous(), (-1,) if x.size else (0,))


adapt("transpose", lambda x, axes=None: reverse_axes(x) if axes is None else xp.permute_dims(x, axes), ints=("axes",))
adapt("matrix_transpose", xp.matrix_transpose)
adapt("linalg.matrix_transpose", xp.matrix_transpose)
adapt("moveaxis", xp.moveaxis, ints=("source", "destination"))
adapt("unstack", xp.unstack)


@adapt("swapaxes")
def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Exchange two axes (`numpy.swapaxes`)."""
    order = list(range(x.ndim))
    first, second = (normalize_axis(i, x.ndim, "swapaxes") for i in (axis1, axis2))
    order[first], order[second] = second, first
    return xp.permute_dims(x, tuple(order))


@adapt("rollaxis")
def _rollaxis(x: Any, axis: int, start: int = 0) -> Any:
    axis = normalize_axis(axis, x.ndim, "rollaxis")
    start = start + x.ndim if start < 0 else start
    return xp.moveaxis(x, axis, start - 1 if axis < start else start)


adapt("expand_dims", lambda x, axis: xp.expand_dims(x, axis=as_tuple(axis)))


@adapt("squeeze", ints=("axis",))
def _squeeze(x: Any, axis: Any = None) -> Any:
    return xp.squeeze(x, axis=tuple(i for i, n in enumerate(x.shape) if n == 1) if axis is None else axis)


def _expand_to_rank(rank: int, arys: Any) -> Any:
    out = []
    for x in lift(f"atleast_{rank}d", *arys):
        if rank == 3 and x.ndim == 2:
            x = xp.expand_dims(x, axis=2)
        elif rank == 3 and x.ndim == 1:
            x = xp.reshape(x, (1, -1, 1))
        elif x.ndim < rank:
            x = xp.reshape(x, (1,) * (rank - x.ndim) + x.shape)
        out.append(x)
    return out


def _keep_shared(given: Any, results: Any, view: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return results for several arguments; in code for NumPy, `view` makes those for arrays of NumPy's, whose memory they share."""
    return tuple(as_result(view(x), [x]) if isinstance(x, _np.ndarray) and is_running() else out for x, out in zip(given, results))


for _rank in (1, 2, 3):

    @implements(f"atleast_{_rank}d")
    def _atleast(*arys: Any, rank: int = _rank) -> Any:
        out = _keep_shared(arys, _expand_to_rank(rank, arys), getattr(_np, f"atleast_{rank}d"))
        return out[0] if len(out) == 1 else out


adapt("broadcast_to", lambda x, shape: xp.broadcast_to(x, as_tuple(shape)), ints=("shape",))


@adapt("lib.stride_tricks.sliding_window_view", ints=("window_shape", "axis"), note="`writeable=` raises")
def _sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    name = "lib.stride_tricks.sliding_window_view"
    sizes, axes = as_tuple(window_shape), tuple(range(x.ndim)) if axis is None else as_tuple(axis)
    if len(sizes) != len(axes):
        msg = f"np.{name}: `window_shape`={sizes} must have one length for each of the axes {axes} of shape {x.shape}"
        raise ValueError(msg)
    counts, places = list(x.shape), [[a] for a in range(x.ndim)]
    for k, (size, a) in enumerate(zip(sizes, axes)):
        a = normalize_axis(a, x.ndim, name, "axis")
        counts[a] -= size - 1
        places[a].append(x.ndim + k)
        if size < 0 or counts[a] < 1:
            msg = f"np.{name}: windows of shape {sizes} do not fit an array of shape {x.shape}"
            raise ValueError(msg)
    shape = (*counts, *sizes)
    steps = [_np.arange(n).reshape([n if b == a else 1 for b in range(len(shape))]) for a, n in enumerate(shape)]
    return view_by_key(x, tuple(sum(steps[b] for b in place) for place in places))


@implements("broadcast_arrays")
def _broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    out = xp.broadcast_arrays(*lift("broadcast_arrays", *args))
    return _keep_shared(args, out, lambda x: _np.broadcast_to(x, out[0].shape))


# -- joining and splitting ---------------------------------------------------------------------------------------------


def _declare_join(name: str, row: Callable[..., Any]) -> None:
    """Implement a NumPy function that joins a sequence of arrays; ``dtype=`` casts its result."""

    @adapt(name, arrays=0)
    def join(arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
        result = row(arrays, axis=axis)
        return result if dtype is None else result._cast(as_dtype(dtype, result.default_dtype))


def _hstack(arrays: Any, axis: Any) -> Any:
    parts = _expand_to_rank(1, arrays)
    return xp.concat(parts, axis=0 if parts[0].ndim == 1 else 1)


_declare_join("concatenate", xp.concat)
_declare_join("concat", xp.concat)
_declare_join("stack", xp.stack)
_declare_join("hstack", _hstack)
_declare_join("vstack", lambda arrays, axis: xp.concat(_expand_to_rank(2, arrays), axis=0))
adapt("dstack", lambda tup: xp.concat(_expand_to_rank(3, tup), axis=2), arrays=0)
adapt("column_stack", lambda tup: xp.concat([xp.reshape(x, (-1, 1)) if x.ndim < 2 else x for x in tup], axis=1), arrays=0)
adapt("append", lambda x, values, axis=None: xp.concat((x, values), axis=axis), arrays=2)


@implements("block")
def _block(arrays: Any) -> Any:

    def leaves(item: Any) -> list[Any]:
        return [x for part in item for x in leaves(part)] if isinstance(item, list) else [item]

    def depth(item: Any) -> int:
        return 1 + max(map(depth, item), default=0) if isinstance(item, list) else 0

    levels = depth(arrays)
    lifted = iter(lift("block", *leaves(arrays)))

    def join(item: Any, level: int) -> Any:
        if not isinstance(item, list):
            return next(lifted)
        parts = [join(part, level + 1) for part in item]
        rank = max(levels, *(p.ndim for p in parts))
        return xp.concat([xp.reshape(p, (1,) * (rank - p.ndim) + p.shape) for p in parts], axis=-(levels - level))

    return join(arrays, 0) if levels else xp.positive(next(lifted))


def _declare_split(name: str, axis_of: Any) -> None:
    """Implement a NumPy function that splits an array along ``axis_of(x)``; along the argument ``axis`` if `axis_of` is None."""

    @adapt(name, ints=("indices_or_sections",))
    def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
        axis = normalize_axis(axis if axis_of is None else axis_of(x), x.ndim, name)
        n, given = x.shape[axis], indices_or_sections
        if isinstance(given, tuple):
            bounds = [0, *given, n]
        else:
            if given < 1 or (n % given and name != "array_split"):
                msg = f"np.{name}: an axis of length {n} does not divide into {given} equal parts"
                raise ValueError(msg)
            size, more = divmod(n, given)
            bounds = [k * size + min(k, more) for k in range(given + 1)]
        return [slice_axis(x, axis, a, b) for a, b in itertools.pairwise(bounds)]


_declare_split("split", None)
_declare_split("array_split", None)
_declare_split("hsplit", lambda x: 1 if x.ndim > 1 else 0)
_declare_split("vsplit", lambda x: 0)
_declare_split("dsplit", lambda x: 2)


# -- repeating, deleting, rotating -------------------------------------------------------------------------------------


adapt("tile", lambda A, reps: xp.tile(A, as_tuple(reps)).contiguous(), ints=("reps",))


@adapt("flip")
def _flip(x: Any, axis: Any = None) -> Any:
    axes = range(x.ndim) if axis is None else normalize_axes(axis, x.ndim, "flip") or ()
    return x[tuple(slice(None, None, -1 if i in axes else None) for i in range(x.ndim))]


adapt("fliplr", lambda m: _flip(m, 1))
adapt("flipud", lambda m: _flip(m, 0))


@adapt("repeat")
def _repeat(x: Any, repeats: Any, axis: Any = None) -> Any:
    counts = repeats if isinstance(repeats, Tensor) else as_ints("repeat", "repeats", repeats)
    if isinstance(counts, tuple):
        counts = xp.asarray(list(counts), dtype=x.default_dtype("indexing"), device=x.device)
    return xp.repeat(x, counts, axis=axis).contiguous()


@adapt("resize", ints=("new_shape",))
def _resize(x: Any, new_shape: Any) -> Any:
    shape = as_tuple(new_shape)
    flat, count = xp.reshape(x, (-1,)), math.prod(shape)
    if not x.size:
        return xp.zeros(shape, dtype=x.dtype, device=x.device)
    return xp.reshape(xp.tile(flat, (-(-count // x.size),))[:count], shape)


def _take_positions(x: Any, positions: list[int], axis: int) -> Any:
    return xp.take(x, xp.asarray(positions, dtype=x.default_dtype("indexing"), device=x.device), axis=axis)


def _find_positions(name: str, obj: Any, n: int) -> list[int]:
    """Return the positions along an axis of length `n` that an int, a slice, a sequence of ints or a mask selects."""
    if isinstance(obj, slice):
        return list(range(n))[obj]
    if hasattr(obj, "tolist"):
        obj = obj.tolist()
    if isinstance(obj, (list, tuple)) and obj and all(isinstance(i, bool) for i in obj):
        return [i for i, keep in enumerate(obj) if keep]
    return [_check_position(name, i, n) for i in as_tuple(as_ints(name, "obj", obj))]


def _check_position(name: str, i: int, n: int) -> int:
    if not -n <= i < n:
        msg = f"np.{name}: index {i} is out of range for an axis of length {n}"
        raise IndexError(msg)
    return i % n


@adapt("delete")
def _delete(x: Any, obj: Any, axis: Any = None) -> Any:
    x, axis = resolve_axis(x, axis)
    axis = normalize_axis(axis, x.ndim, "delete")
    deleted = set(_find_positions("delete", obj, x.shape[axis]))
    return _take_positions(x, [i for i in range(x.shape[axis]) if i not in deleted], axis).contiguous()


@implements("insert")
def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    x, v = lift("insert", arr, values)
    x, axis = resolve_axis(x, axis)
    axis = normalize_axis(axis, x.ndim, "insert")
    n = x.shape[axis]
    given = obj.tolist() if hasattr(obj, "tolist") else obj
    if isinstance(given, slice) or (isinstance(given, (list, tuple)) and given and all(isinstance(i, bool) for i in given)):
        positions = _find_positions("insert", given, n)
    else:
        positions = [i + n if i < 0 else i for i in as_tuple(as_ints("insert", "obj", given))]
    if any(not 0 <= i <= n for i in positions):
        msg = f"np.insert: a position is out of range for an axis of length {n}: {obj!r:.60}"
        raise IndexError(msg)
    v = v._cast(x.dtype)
    if len(positions) == 1:  # one position for all new elements
        v = xp.reshape(v, (1,) * (x.ndim - v.ndim) + v.shape)
        v = v if isinstance(given, (list, tuple, slice)) else xp.moveaxis(v, 0, axis)
        positions = positions * v.shape[axis]
    v = xp.broadcast_to(v, (*x.shape[:axis], len(positions), *x.shape[axis + 1 :]))
    # New elements precede the old element at their position, in the order in which they were given.
    order = sorted([(i, 0, k, n + k) for k, i in enumerate(positions)] + [(i, 1, 0, i) for i in range(n)])
    return _take_positions(xp.concat([x, v], axis=axis), [source for *_, source in order], axis)


@adapt("trim_zeros", note="one axis only; the length of the result depends on the values")
def _trim_zeros(x: Any, trim: str = "fb", axis: Any = None) -> Any:
    if x.ndim != 1:
        msg = f"np.trim_zeros: xpgrad trims one axis, but got shape {x.shape}"
        raise TypeError(msg)
    normalize_axes(axis, 1, "np.trim_zeros")
    zero = (x.detach() == 0).tolist()
    start, stop = 0, len(zero)
    while "f" in trim.lower() and start < stop and zero[start]:
        start += 1
    while "b" in trim.lower() and stop > start and zero[stop - 1]:
        stop -= 1
    return x[start:stop]


@adapt("rot90")
def _rot90(x: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    pair: Any = normalize_axes(tuple(axes), x.ndim, "np.rot90")
    first, second = pair
    k %= 4
    x = _flip(x, {0: (), 1: second, 2: (first, second), 3: first}[k])
    return swapaxes(x, first, second) if k % 2 else x


@adapt("roll", ints=("shift",))
def _roll(x: Any, shift: Any, axis: Any = None) -> Any:
    if isinstance(shift, tuple) and not isinstance(axis, (tuple, list)):
        shift = sum(shift)
    if isinstance(axis, (tuple, list)):
        axis = tuple(axis)
        shift = shift if isinstance(shift, tuple) else (shift,) * len(axis)
    return xp.roll(x, shift, axis=axis)


# -- diagonals ---------------------------------------------------------------------------------------------------------


@adapt("diagonal")
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Return diagonals of the matrices along two axes (`numpy.diagonal`)."""
    first, second = (normalize_axis(a, x.ndim, "diagonal") for a in (axis1, axis2))
    return diagonal_of(xp.moveaxis(x, (first, second), (-2, -1)), offset=offset)


@adapt("trace")
def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Return the sum of a diagonal of the matrices along two axes (`numpy.trace`)."""
    return xp.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


# -- padding -----------------------------------------------------------------------------------------------------------


#: The option of each of `numpy.pad`'s modes, and its default.
_PAD_OPTIONS: dict[str, tuple[str, Any] | None] = {
    "constant": ("constant_values", 0), "edge": None, "empty": None, "linear_ramp": ("end_values", 0), "maximum": ("stat_length", None),
    "mean": ("stat_length", None), "median": ("stat_length", None), "minimum": ("stat_length", None), "reflect": ("reflect_type", "even"),
    "symmetric": ("reflect_type", "even"), "wrap": None,
}  # fmt: skip


@implements("pad", note="`empty` pads with zeros")
def _pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    (x,) = lift("pad", array)
    if callable(mode):
        return _pad_by_function(x, pad_width, mode, kwargs)
    if not isinstance(mode, str) or mode not in _PAD_OPTIONS:
        msg = f"np.pad: there is no `mode`={mode!r:.60}; there are {', '.join(_PAD_OPTIONS)}, and functions"
        raise ValueError(msg)
    name, default = _PAD_OPTIONS[mode] or ("", None)
    option = kwargs.pop(name, default)
    refuse(f"pad(mode={mode!r})", **kwargs)
    if name == "reflect_type":
        if option not in ("even", "odd"):
            msg = f"np.pad: `reflect_type` must be 'even' or 'odd', but got {option!r:.60}"
            raise ValueError(msg)
        options = [option] * x.ndim
    else:
        options = _pairs_per_axis(name, option, x.ndim)
    for axis, (before, after) in enumerate(_pairs_per_axis("pad_width", pad_width, x.ndim)):
        if before or after:
            x = _pad_axis(x, axis, as_ints("pad", "pad_width", before), as_ints("pad", "pad_width", after), mode, options[axis])
    return x.contiguous() if x is not array else xp.positive(x)


def _pad_by_function(x: Any, pad_width: Any, write: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Pad with zeros, and call `write` for each vector of the padded array along each axis, which it changes in place."""
    out = _pad(x, pad_width)
    for axis, pair in enumerate(_pairs_per_axis("pad_width", pad_width, x.ndim)):
        widths = tuple(as_ints("pad", "pad_width", width) for width in pair)
        lanes = xp.moveaxis(out, axis, -1)
        for index in itertools.product(*map(range, lanes.shape[:-1])):
            write(lanes[index], widths, axis, options)
    return out


def _pairs_per_axis(what: str, given: Any, rank: int) -> list[Any]:
    """Expand one value, one pair, or a pair for each axis to a list of `rank` pairs (before, after)."""
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


def _pad_axis(x: Any, axis: int, before: int, after: int, mode: str, option: Any) -> Any:
    """Pad one axis; `option` is a pair for the two sides, or `reflect_type`."""
    n = x.shape[axis]
    if mode in ("edge", "reflect", "symmetric", "wrap", "linear_ramp") and not n:
        msg = f"np.pad: axis {axis} has no elements to take the border from"
        raise ValueError(msg)
    if option == "odd" and n > 1:
        return _reflect_odd(x, axis, before, after, 0 if mode == "symmetric" else 1)
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        return _take_positions(x, [_source_position(i, n, mode) for i in range(-before, n + after)], axis)
    if mode == "linear_ramp":
        first, last = (_ramp(x, axis, count, side, end) for side, (count, end) in enumerate(zip((before, after), option)))
    else:
        if mode in ("constant", "empty"):
            borders = [_border_value(b, x) for b in (option if mode == "constant" else (0, 0))]
        else:
            borders = [_statistic(x, axis, mode, length, side) for side, length in enumerate(option)]
        shapes = [(*x.shape[:axis], count, *x.shape[axis + 1 :]) for count in (before, after)]
        first, last = (xp.broadcast_to(border, shape) for border, shape in zip(borders, shapes))
    return xp.concat([first, x, last], axis=axis)


def _border_value(value: Any, x: Any) -> Any:
    """Return a number or a Tensor for the border of `x`, in its dtype."""
    return (value if isinstance(value, Tensor) else as_constant("pad", value, x))._cast(x.dtype)


def _statistic(x: Any, axis: int, mode: str, length: Any, side: int) -> Any:
    """Return the statistic of the first (side 0) or last (side 1) elements along an axis; of all if `length` is None."""
    n = x.shape[axis]
    count = n if length is None else min(as_ints("pad", "stat_length", length), n)
    if count <= 0 and n and mode in ("maximum", "minimum"):
        msg = "np.pad: stat_length of 0 yields no value for padding"
        raise ValueError(msg)
    part = slice_axis(x, axis, 0, count) if side == 0 else slice_axis(x, axis, n - count, n)
    found = FUNCTIONS[{"maximum": "max", "minimum": "min"}.get(mode, mode)].call(part, axis=axis, keepdims=True)
    return found if found.dtype is x.dtype else (found if x.dtype.differentiable else xp.round(found))._cast(x.dtype)


def _ramp(x: Any, axis: int, count: int, side: int, end: Any) -> Any:
    """Return `count` values on lines from `end`, outermost, towards the edge of `x`."""
    n = x.shape[axis]
    edge = slice_axis(x, axis, 0, 1) if side == 0 else slice_axis(x, axis, n - 1, n)
    end = end if isinstance(end, Tensor) else as_constant("pad", end, edge)
    kind = x.dtype if x.dtype.differentiable else float64
    weights = xp.arange(count, dtype=real_of(kind), device=x.device) / max(count, 1)
    weights = reshape_to_axis(weights if side == 0 else xp.flip(weights), axis, x.ndim)
    edge, end = edge._cast(kind), end._cast(kind)
    values = end + (edge - end) * weights
    return (values if x.dtype.differentiable else xp.floor(values))._cast(x.dtype)


def _reflect_odd(x: Any, axis: int, before: int, after: int, skip: int) -> Any:
    """Extend an axis by its reflection at the two edges, turned around the edge's value; the edge itself is repeated unless `skip`."""
    unit = x.shape[axis] - skip
    while before or after:
        n = x.shape[axis]
        most = (n - skip) // unit * unit  # what lies further in was itself reflected, and not at this edge
        left, right = min(before, most), min(after, most)
        first = 2 * slice_axis(x, axis, 0, 1) - xp.flip(slice_axis(x, axis, skip, skip + left), axis=axis)
        last = 2 * slice_axis(x, axis, n - 1, n) - xp.flip(slice_axis(x, axis, n - skip - right, n - skip), axis=axis)
        x = xp.concat([first, x, last], axis=axis)
        before, after = before - left, after - right
    return x


def _source_position(i: int, n: int, mode: str) -> int:
    """Return the position of the element that is copied to position `i` of the padded axis; `i` counts from the first old element."""
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
