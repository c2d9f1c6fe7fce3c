"""How each kernel is lowered: a function for each, which adds its statements and views to a `Lowering`."""

from __future__ import annotations

import math
from typing import Any

from xpgrad._basics.dtypes import DTYPES, real_of
from xpgrad.programs.complexes import FORMULAS
from xpgrad.programs.lowering_steps import Lowering, lowers
from xpgrad.programs.program import Operation, Variable
from xpgrad.programs.regions import Unsupported
from xpgrad.programs.scalars import can_cast
from xpgrad.programs.views import View


@lowers("any elementwise")
def _elementwise(work: Lowering, o: Operation) -> None:
    work.elementwise(o.out, o.name, o.args)


@lowers("bitwise_invert")
def _invert(work: Lowering, o: Operation) -> None:
    if o.out.dtype.name == "bool":
        work.elementwise(o.out, "logical_not", o.args)
    else:
        work.elementwise(o.out, "bitwise_xor", (*o.args, -1))


@lowers("clip")
def _clip(work: Lowering, o: Operation) -> None:
    x, *bounds = o.args
    if not isinstance(x, Variable) or len(bounds) != 2 or None in bounds:
        raise Unsupported(o.name)
    low, high = bounds
    work.elementwise(o.out, "minimum", (work.compute("maximum", x, low, like=o.out), high))


@lowers("logaddexp")
def _logaddexp(work: Lowering, o: Operation) -> None:
    x, y, out = *o.args, o.out
    distance = work.compute("abs", work.compute("subtract", x, y, like=out), like=out)
    more = work.compute("log1p", work.compute("exp", work.compute("negative", distance, like=out), like=out), like=out)
    larger = work.compute("maximum", x, y, like=out)
    # Equal infinities have no distance, and one that is alone is the result.
    work.elementwise(out, "where", (work.compute("isinf", larger, like=out), larger, work.compute("add", larger, more, like=out)))


@lowers("any part", takes_complex=True)
def _part(work: Lowering, o: Operation) -> None:
    x, is_imaginary = work.array(o), o.name.startswith("imag")
    if x.dtype.is_complex:
        x = work.parts[x][is_imaginary]
    elif is_imaginary:
        raise Unsupported(o.name)
    work.show(o.out, x, work.views[x])


@lowers("conj")
def _conj(work: Lowering, o: Operation) -> None:
    x = work.array(o)
    work.show(o.out, x, work.views[x])


@lowers("any cast", takes_complex=True)
def _cast(work: Lowering, o: Operation) -> None:
    x, out = o.args[0], o.out
    if out.dtype.is_complex:
        parts = work.split(x, real_of(out.dtype))
        work.set_parts(out, *(work.result(out.shape, part, real_of(out.dtype)) for part in parts))
        return
    if isinstance(x, Variable) and x.dtype.is_complex:
        first, second = work.parts[x]
        if out.dtype.name == "bool":
            truths = (work.compute("not_equal", part, 0.0, like=part) for part in (first, second))
            work.elementwise(out, "logical_or", tuple(truths))
            return
        x = first
    if not isinstance(x, Variable) or not can_cast(x.dtype.name, out.dtype.name):
        raise Unsupported(o.name)
    if x.dtype is out.dtype:
        work.show(out, x, work.views[x])
    else:
        work.assign(out, "cast", (x,))


@lowers("copy", "clone", "clone_contiguous", elements=(0,))
def _copy(work: Lowering, o: Operation) -> None:
    x = o.args[0]
    if isinstance(x, Variable):
        work.show(o.out, x, work.views[x])
    else:
        work.elementwise(o.out, "copy", (x,))


@lowers("any fill", options=("device", "dtype", "fill_value"), takes_complex=True)
def _fill(work: Lowering, o: Operation) -> None:
    name = o.name.removesuffix("_like")
    if name in ("full", "empty"):
        value = 0 if name == "empty" else o.args[1] if len(o.args) > 1 else o.options.get("fill_value")
    else:
        value = int(name == "ones")
    if o.out.dtype.is_complex:
        parts = work.split(value, real_of(o.out.dtype))
        work.set_parts(o.out, *(work.result(o.out.shape, part, real_of(o.out.dtype)) for part in parts))
    elif isinstance(value, Variable) and value.dtype.is_complex:
        raise Unsupported(o.name)
    else:
        work.elementwise(o.out, "copy", (value,))


# -- views -------------------------------------------------------------------------------------------------------------------


@lowers("any reshape", elements=(0,))
def _reshape(work: Lowering, o: Operation) -> None:
    x = work.array(o)
    found = work.views[x].reshaped(o.out.shape)
    if found is None:
        copy = Variable(x.shape, x.dtype)
        work.assign(copy, "copy", (x,))
        x, found = copy, View.whole(work.views[copy].buffer, o.out.shape)
    work.show(o.out, x, found)


@lowers("transpose_axes", "permute_dims", elements=(0,))
def _transpose(work: Lowering, o: Operation) -> None:
    x = work.array(o)
    work.show(o.out, x, work.views[x].transposed([a % len(x.shape) for a in o.args[1]]))


@lowers("swap_last", "matrix_transpose", "linalg.matrix_transpose", elements=(0,))
def _swap_last(work: Lowering, o: Operation) -> None:
    x = work.array(o)
    rank = len(x.shape)
    work.show(o.out, x, work.views[x].transposed([*range(rank - 2), rank - 1, rank - 2]))


@lowers("broadcast_to", "broadcast_view", elements=(0,))
def _broadcast(work: Lowering, o: Operation) -> None:
    x = work.array(o)
    work.show(o.out, x, work.views[x].expanded(o.out.shape))


@lowers("expand_reduced", elements=(0,))
def _expand_reduced(work: Lowering, o: Operation) -> None:
    x, shape, axes, keepdims = work.array(o), *o.args[1:]
    view = work.views[x]
    if axes is not None and not keepdims:
        axes = {a % len(shape) for a in axes}
        view = view.indexed(tuple([None if i in axes else slice(None) for i in range(len(shape))]))
    work.show(o.out, x, view.expanded(shape))


@lowers("index_basic", elements=(0,))
def _index(work: Lowering, o: Operation) -> None:
    x = work.array(o)
    work.show(o.out, x, work.views[x].indexed(_basic(o.args[1])))


def _basic(key: Any) -> Any:
    """Return a key of integers, slices, None and an ellipsis; raise Unsupported for others."""
    for p in key if isinstance(key, tuple) else (key,):
        bounds = (p.start, p.stop, p.step) if isinstance(p, slice) else ()
        if not (p is None or p is Ellipsis or p.__class__ is int or isinstance(p, slice)) or any(
            b.__class__ not in (int, type(None)) for b in bounds
        ):
            msg = f"key {key!r}"
            raise Unsupported(msg)
    return key


@lowers("flip", options=("axis",), elements=(0,))
def _flip(work: Lowering, o: Operation) -> None:
    x, axes = work.array(o), o.options.get("axis")
    rank = len(x.shape)
    axes = range(rank) if axes is None else [a % rank for a in (axes if isinstance(axes, tuple) else (axes,))]
    work.show(o.out, x, work.views[x].indexed(tuple([slice(None, None, -1 if a in axes else 1) for a in range(rank)])))


@lowers("diagonal_view", elements=(0,))
def _diagonal_view(work: Lowering, o: Operation) -> None:
    x = work.array(o)
    work.show(o.out, x, _diagonal(work.views[x], o.args[1]))


def _diagonal(view: View, offset: int) -> View:
    """Return a diagonal of the last two axes."""
    (m, n), (s, t) = view.shape[-2:], view.strides[-2:]
    length = max(min(m - max(-offset, 0), n - max(offset, 0)), 0)
    start = view.offset + max(-offset, 0) * s + max(offset, 0) * t
    return View(view.buffer, start if length else 0, (*view.shape[:-2], length), (*view.strides[:-2], s + t))


# -- writing and indexing ----------------------------------------------------------------------------------------------------


@lowers("index_basic_transpose", elements=(0,))
def _pad(work: Lowering, o: Operation) -> None:
    values, key, _ = o.args
    started = work.start(o.out, 0)
    work.store(o.out, "=", values, work.views[o.out].indexed(_basic(key)), {started})


@lowers("add_at", elements=(0, 1))
def _add_at(work: Lowering, o: Operation) -> None:
    buffer, values, key = o.args
    started = work.update(o.out, buffer, values)
    work.store(o.out, "+=", values, work.views[o.out].indexed(_basic(key)), {started})


@lowers("written", elements=(0, 2))
def _written(work: Lowering, o: Operation) -> None:
    buffer, key, value = o.args
    started = work.update(o.out, buffer, value)
    work.store(o.out, "=", value, work.views[o.out].indexed(_basic(key)), {started})


@lowers("gather", elements=(0,))
def _gather(work: Lowering, o: Operation) -> None:
    x = work.array(o)
    element, reads = work.indexed(work.views[x], o.args[1], o.out.shape)
    work.assign(o.out, "copy", (element,), reads | {work.source(x)})


@lowers("take_flat", elements=(0,))
def _take_flat(work: Lowering, o: Operation) -> None:
    x, flat = work.array(o), o.args[1]
    view = work.views[x].reshaped((x.size,))
    if view is None or not isinstance(flat, Variable):
        raise Unsupported(o.name)
    element, reads = work.indexed(view, flat, o.out.shape)
    work.assign(o.out, "copy", (element,), reads | {work.source(x)})


@lowers("scatter_add", elements=(0,))
def _scatter_add(work: Lowering, o: Operation) -> None:
    values, key, _ = o.args
    _scatter(work, o.out, work.start(o.out, 0), values, key)


@lowers("segment_sum", elements=(0,))
def _segment_sum(work: Lowering, o: Operation) -> None:
    values, positions, _ = o.args
    _scatter(work, o.out, work.start(o.out, 0), values, positions)


@lowers("scatter_into", elements=(0, 1))
def _scatter_into(work: Lowering, o: Operation) -> None:
    buffer, values, key = o.args
    _scatter(work, o.out, work.update(o.out, buffer, values), values, key)


def _scatter(work: Lowering, out: Variable, started: Any, values: Any, key: Any) -> None:
    parts = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(p, Variable) for p in parts):
        raise Unsupported(out)
    lead = _common_shape([p.shape for p in parts])
    element, reads = work.indexed(work.views[out], key, lead + out.shape[len(parts) :])
    work.store(out, "+=", values, element, reads | {started})


def _common_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    return tuple(next((n for n in axis if n != 1), 1) for axis in zip(*padded))


@lowers("concat", options=("axis",), elements=(0,))
def _concat(work: Lowering, o: Operation) -> None:
    axis, place, started = o.options.get("axis", 0) % len(o.out.shape), 0, None
    work.new_buffer(o.out)
    for k, x in enumerate(o.args[0]):
        end = place + x.shape[axis]
        target = work.views[o.out].indexed((slice(None),) * axis + (slice(place, end),))
        started = work.part(o.out, k == len(o.args[0]) - 1, x, target, started)
        place = end


@lowers("stack", options=("axis",), elements=(0,))
def _stack(work: Lowering, o: Operation) -> None:
    axis, started = o.options.get("axis", 0) % len(o.out.shape), None
    work.new_buffer(o.out)
    for k, x in enumerate(o.args[0]):
        target = work.views[o.out].indexed((slice(None),) * axis + (k,))
        started = work.part(o.out, k == len(o.args[0]) - 1, x, target, started)


@lowers("roll", options=("axis",), elements=(0,))
def _roll(work: Lowering, o: Operation) -> None:
    x, by, axis = work.array(o), o.args[1], o.options.get("axis")
    if not isinstance(by, int) or not isinstance(axis, int):
        raise Unsupported(o.name)
    axis %= len(x.shape)
    n, before = x.shape[axis], (slice(None),) * axis
    by, started = by % n if n else 0, None
    work.new_buffer(o.out)
    for last, old, new in ((False, slice(0, n - by), slice(by, n)), (True, slice(n - by, n), slice(0, by))):
        part = Variable(work.views[x].indexed((*before, old)).shape, x.dtype)
        work.show(part, x, work.views[x].indexed((*before, old)))
        started = work.part(o.out, last, part, work.views[o.out].indexed((*before, new)), started)


@lowers("diagonal_transpose", elements=(0,))
def _diagonal_transpose(work: Lowering, o: Operation) -> None:
    values, _, offset = o.args
    started = work.start(o.out, 0)
    work.store(o.out, "=", values, _diagonal(work.views[o.out], offset), {started})


# -- reductions and products -----------------------------------------------------------------------------------------------


@lowers("reduce_sum", elements=(0,))
@lowers("reduce_max", "reduce_min", "reduce_prod")
def _reduce(work: Lowering, o: Operation) -> None:
    x, axes, _ = work.array(o), *o.args[1:]
    work.reduce(o.out, o.name.removeprefix("reduce_"), x, range(len(x.shape)) if axes is None else axes)


@lowers("all", "any", options=("axis", "keepdims"))
def _count_truths(work: Lowering, o: Operation) -> None:
    x, axes = work.array(o), o.options.get("axis")
    axes = range(len(x.shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    counted = work.compute("not_equal" if o.name == "any" else "equal", x, False if x.dtype.name == "bool" else 0, like=x)
    count = Variable(o.out.shape, DTYPES["int64"])
    work.reduce(count, "sum", counted, axes)
    work.elementwise(o.out, "not_equal" if o.name == "any" else "equal", (count, 0))


@lowers("reduce_mean", takes_complex=True)
def _mean(work: Lowering, o: Operation) -> None:
    x, axes, _ = work.array(o), *o.args[1:]
    axes = range(len(x.shape)) if axes is None else axes
    total = Variable(o.out.shape, o.out.dtype)
    if x.dtype.is_complex:
        _complex_mean(work, o.out, x, axes)
        return
    work.reduce(total, "sum", x, axes)
    work.elementwise(o.out, "divide", (total, math.prod(x.shape[a] for a in axes)))


def _complex_mean(work: Lowering, out: Variable, x: Variable, axes: Any) -> None:
    """Compute a mean by a complex division, as NumPy does."""
    if out.dtype is not x.dtype:
        msg = f"mean of {x.dtype} as {out.dtype}"
        raise Unsupported(msg)
    total = Variable(out.shape, out.dtype)
    for part, of in zip(work.new_parts(total), work.parts[x]):
        work.reduce(part, "sum", of, axes)
    work.apply(FORMULAS["divide"], Operation("divide", (total, math.prod(x.shape[a] for a in axes)), {}, (out,)))


@lowers("reduce_var", takes_complex=True)
def _variance(work: Lowering, o: Operation) -> None:
    x, axes, correction, _ = work.array(o), *o.args[1:]
    axes = sorted(a % len(x.shape) for a in (range(len(x.shape)) if axes is None else axes))
    count = math.prod(x.shape[a] for a in axes)
    kept = Variable(tuple(1 if a in axes else n for a, n in enumerate(x.shape)), x.dtype)
    if x.dtype.is_complex:
        _complex_mean(work, kept, x, axes)
        square = _square_size(work, [work.compute("subtract", p, q, like=p) for p, q in zip(work.parts[x], work.parts[kept])])
    else:
        work.reduce(kept, "sum", x, axes)
        square = work.compute("square", work.compute("subtract", x, work.compute("divide", kept, count, like=kept), like=x), like=x)
    total = Variable(o.out.shape, o.out.dtype)
    work.reduce(total, "sum", square, axes)
    work.elementwise(o.out, "divide", (total, max(count - correction, 0)))


def _square_size(work: Lowering, parts: Any) -> Variable:
    """Return the squares of the absolute values of complex numbers, given by their parts."""
    first, second = (work.compute("square", part, like=part) for part in parts)
    return work.compute("add", first, second, like=first)


@lowers("linalg.vector_norm", options=("axis", "keepdims", "ord"), takes_complex=True)
def _norm(work: Lowering, o: Operation) -> None:
    x, axes = work.array(o), o.options.get("axis")
    if o.options.get("ord", 2) != 2:
        raise Unsupported(o.name)
    axes = range(len(x.shape)) if axes is None else axes if isinstance(axes, tuple) else (axes,)
    total = Variable(o.out.shape, o.out.dtype)
    square = _square_size(work, work.parts[x]) if x.dtype.is_complex else work.compute("square", x, like=x)
    work.reduce(total, "sum", square, axes)
    work.elementwise(o.out, "sqrt", (total,))


@lowers("sum_to", elements=(0,))
def _sum_to(work: Lowering, o: Operation) -> None:
    x, shape = work.array(o), o.args[1]
    extra = len(x.shape) - len(shape)
    axes = [*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1)]
    if axes:
        work.reduce(o.out, "sum", x, axes)
    else:
        work.show(o.out, x, work.views[x])


@lowers("matmul")
def _matmul(work: Lowering, o: Operation) -> None:
    work.multiply(o, o.out)
