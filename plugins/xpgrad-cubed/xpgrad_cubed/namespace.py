"""cubed's Array API namespace, with its mistakes corrected, and with functions that cubed lacks if a chunk of a whole axis allows them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import cubed
import numpy as np

from xpgrad.backend import out_of_range
from xpgrad.errors import CapabilityError
from xpgrad_cubed import storage
from xpgrad_cubed.blocks import apply_blocks, merge_chunks

__all__ = ["MISSING", "NAMESPACE", "check_indices"]

#: Functions of the standard whose results have shapes that depend on values, which cubed does not support.
MISSING = frozenset({"nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"})

_FUNCTIONS: dict[str, Callable[..., Any]] = {}


def function(f: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function of the namespace under its name."""
    _FUNCTIONS[f.__name__] = f
    return f


class _Namespace:
    """cubed's namespace, in which the functions of this module come first."""

    def __getattr__(self, name: str) -> Any:
        if name in MISSING:
            raise CapabilityError(f"backend 'cubed' has no function `{name}`")
        found = _FUNCTIONS[name] if name in _FUNCTIONS else getattr(cubed, name)
        setattr(self, name, found)
        return found


NAMESPACE: Any = _Namespace()


# -- creation ----------------------------------------------------------------------------------------------------------------------


def _make_creation(name: str) -> Callable[..., Any]:
    """Return a function that chooses chunks by the allowed memory. NB: cubed's are of 128 MiB, and it has none for empty arrays."""
    make, of_numpy = getattr(cubed, name), getattr(np, name)

    def create(shape: Any, *args: Any, dtype: Any = None, device: Any = None) -> Any:
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if 0 in shape:
            return storage.from_numpy(of_numpy(shape, *args, dtype=dtype))
        return make(shape, *args, dtype=dtype, chunks=storage.choose_chunks(shape, dtype or np.complex128), spec=storage.current_spec)

    return create


_FUNCTIONS |= {name: _make_creation(name) for name in ("empty", "full", "ones", "zeros")}


@function
def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    """Return evenly spaced numbers; up to 1 MB of them are known at once, so that they may be indices that are checked."""
    start, stop = (0, start) if stop is None else (start, stop)
    length = max(math.ceil((stop - start) / step), 0)
    if length * 8 <= storage.IN_MEMORY:
        return storage.from_numpy(np.arange(start, stop, step, dtype=dtype))
    places = cubed.arange(length, chunks=storage.choose_chunks((length,), np.int64), spec=storage.current_spec)
    return _at_places(places, start, step, dtype or np.arange(start, start + step, step).dtype)


@function
def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True) -> Any:
    """Return evenly spaced numbers between two. NB: cubed's, of no numbers, is one number."""
    if num * 8 <= storage.IN_MEMORY:
        return storage.from_numpy(np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint))
    places = cubed.arange(num, chunks=storage.choose_chunks((num,), np.int64), spec=storage.current_spec)
    return _at_places(places, start, (stop - start) / (num - endpoint), dtype or np.result_type(start, stop, 1.0))


def _at_places(places: Any, start: Any, step: Any, dtype: Any) -> Any:
    return apply_blocks(functools.partial(_numbers, start=start, step=step, dtype=dtype), "", places, dtype=np.dtype(dtype))


def _numbers(places: Any, start: Any, step: Any, dtype: Any) -> Any:
    return (start + places * step).astype(dtype, copy=False)


@function
def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Any:
    """Return ones on a diagonal, in square chunks that fit into the allowed memory."""
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    if 0 in shape:
        return storage.from_numpy(np.eye(*shape, dtype=dtype))
    return cubed.eye(*shape, k=k, dtype=dtype, chunks=min(storage.choose_chunks(shape, np.complex128)), spec=storage.current_spec)


@function
def asarray(x: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    """Return `x` as a cubed array. NB: cubed's `asarray` ignores `dtype` if `x` is a cubed array."""
    if isinstance(x, cubed.Array):
        return x if dtype is None or dtype == x.dtype else cubed.astype(x, dtype)
    return storage.from_numpy(np.array(x, dtype=dtype, copy=True))


# -- shapes and chunks -------------------------------------------------------------------------------------------------------------


@function
def broadcast_to(x: Any, /, shape: Any) -> Any:
    """Broadcast `x`, to the chunks of a `ChunkedShape` if it is one. NB: cubed gives each repeated element a chunk of its own."""
    target = tuple(shape)
    if tuple(x.shape) == target:
        return x
    extra = len(target) - x.ndim
    wanted = getattr(shape, "chunksize", None) or storage.choose_chunks(target, x.dtype)
    repeated = [i < extra or x.shape[i - extra] == 1 for i in range(len(target))]
    return cubed.broadcast_to(x, target, chunks=tuple(c if repeated[i] else x.chunksize[i - extra] for i, c in enumerate(wanted)))


@function
def broadcast_arrays(*arrays: Any) -> tuple[Any, ...]:
    """Broadcast arrays together, as `broadcast_to` does."""
    shape = np.broadcast_shapes(*(x.shape for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def _same_chunks(arrays: Any, axis: int | None) -> list[Any]:
    """Return arrays whose chunks are equal along all axes, but may be shorter along `axis` if an array is no longer than a chunk."""
    chunks = [max(x.chunksize[i] for x in arrays) if i == axis else min(x.chunksize[i] for x in arrays) for i in range(arrays[0].ndim)]
    wanted = [tuple(min(n, c) for n, c in zip(x.shape, chunks)) for x in arrays]
    return [x if x.chunksize == c else cubed.rechunk(x, c) for x, c in zip(arrays, wanted)]


@function
def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Join arrays. NB: if they are divided differently, cubed reads beyond their chunks, and it fails for arrays without elements."""
    arrays = [reshape(x, (-1,)) for x in arrays] if axis is None else list(arrays)
    axis = (axis or 0) % arrays[0].ndim
    dtype = np.result_type(*(x.dtype for x in arrays))
    found = [x if x.dtype == dtype else cubed.astype(x, dtype) for x in arrays if x.shape[axis]] or arrays[:1]
    return found[0] if len(found) == 1 else cubed.concat(_same_chunks(found, axis), axis=axis)


@function
def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Join arrays along a new axis. NB: cubed takes it for granted that they have the same chunks and dtype."""
    dtype = np.result_type(*(x.dtype for x in arrays))
    found = [x if x.dtype == dtype else cubed.astype(x, dtype) for x in arrays]
    return cubed.stack(_same_chunks(found, None), axis=axis % (arrays[0].ndim + 1))


@function
def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """Reshape `x`. NB: cubed's only merges axes, or splits them, not both at once, and only if chunks and axes happen to fit."""
    shape = tuple(shape)
    if -1 in shape:
        rest = -math.prod(shape)
        shape = tuple(x.size // rest if n == -1 else n for n in shape)
    try:
        return cubed.reshape(x, shape)
    except (NotImplementedError, ValueError):
        if math.prod(shape) != x.size:
            raise
        flat = x if x.ndim == 1 else cubed.reshape(merge_chunks(x, range(1, x.ndim)), (x.size,))
        row = math.prod(shape[1:])
        return cubed.reshape(cubed.rechunk(flat, (max(flat.chunksize[0] // row, 1) * row,)), shape)


@function
def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Roll `x`. NB: cubed joins the wrong axes if one is negative."""
    axis = tuple(a % x.ndim for a in axis) if isinstance(axis, tuple) else axis if axis is None else axis % x.ndim
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    for s, a in zip(shift, axis) if isinstance(axis, tuple) else ((shift, axis),):
        cut = -s % x.shape[a]
        lead = (slice(None),) * a
        x = concat([x[(*lead, slice(cut, None))], x[(*lead, slice(None, cut))]], axis=a) if cut else x
    return x


@function
def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Move axes. NB: cubed imports a module of NumPy 1, which warns."""
    order = np.moveaxis(np.broadcast_to(False, tuple(range(x.ndim))), source, destination).shape  # each length is the axis's number
    return x if order == tuple(range(x.ndim)) else cubed.permute_dims(x, order)


def index(x: Any, key: Any) -> Any:
    """Return ``x[key]`` for a basic key. NB: cubed reads no slice backwards, none without elements, and steps along one axis at a time."""
    shape = np.broadcast_to(False, x.shape)[key].shape  # raises the errors for a key that does not fit
    if 0 in shape:
        return storage.from_numpy(np.empty(shape, x.dtype))
    parts = [part for part in (key if isinstance(key, tuple) else (key,)) if part is not None]
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts[at : at + 1] = [slice(None)] * (x.ndim - len(parts) + (at < len(parts)))
    flipped, axis = [], 0
    for i, (part, n) in enumerate(zip(parts, x.shape)):
        if isinstance(part, slice):
            along = range(*part.indices(n))
            if along.step < 0:
                flipped.append(axis)
                along = along[::-1]
            parts[i] = slice(along.start, along.stop, along.step)
            if along.step > 1 and x.ndim > 1:
                x = x[(*[slice(None)] * i, parts[i], *[slice(None)] * (x.ndim - i - 1))]
                parts[i] = slice(None)
            axis += 1
    out = x[tuple(parts)]
    out = cubed.flip(out, axis=tuple(flipped)) if flipped else out
    return out if out.shape == shape else reshape(out, shape)


# -- along an axis -----------------------------------------------------------------------------------------------------------------


def along_last(f: Callable[..., Any], x: Any, axis: int, signature: str = "(n)->(n)", **options: Any) -> Any:
    """Apply a NumPy function of a last axis along another, which is merged into one chunk."""
    axis %= x.ndim
    out = apply_blocks(f, signature, moveaxis(x, axis, -1), **options)
    return moveaxis(out, -1, axis)


def _sort(x: Any, descending: bool, positions: bool) -> Any:
    if descending:  # equal elements stay in their order
        order = x.shape[-1] - 1 - np.flip(np.argsort(np.flip(x, axis=-1), axis=-1, stable=True), axis=-1)
    else:
        order = np.argsort(x, axis=-1, stable=True)
    return order.astype(np.int64, copy=False) if positions else np.take_along_axis(x, order, axis=-1)


@function
def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort `x` along an axis."""
    return along_last(functools.partial(_sort, descending=descending, positions=False), x, axis)


@function
def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Return the indices that sort `x` along an axis."""
    return along_last(functools.partial(_sort, descending=descending, positions=True), x, axis)


@function
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Return the slices of `x` at indices. NB: cubed returns `x` itself if the result has its shape, and computes a lazy index.

    Indices that are known are read from the chunks in which they are. A lazy index needs the axis in one chunk.
    """
    x, axis = (reshape(x, (-1,)), 0) if axis is None else (x, axis % x.ndim)
    known = storage.known_values(indices)
    if known is not None and x.numblocks[axis] > 1:
        kept, places = np.unique(known, return_inverse=True)
        if len(kept) < x.shape[axis]:
            x, indices = x[(slice(None),) * axis + (kept,)], storage.from_numpy(places)
    read = functools.partial(_take, axis=axis)
    return moveaxis(apply_blocks(read, "(n),(m)->(m)", moveaxis(x, axis, -1), indices, dtype=x.dtype), -1, axis)


def _take(x: Any, indices: Any, axis: int) -> Any:
    check_indices(indices, x.shape[-1], axis)
    return x[..., indices]


@function
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """Return the elements of `x` at indices along an axis, which is merged into one chunk."""
    axis %= x.ndim
    read = functools.partial(_take_along, axis=axis)
    out = apply_blocks(read, "(n),(m)->(m)", moveaxis(x, axis, -1), moveaxis(indices, axis, -1), dtype=x.dtype)
    return moveaxis(out, -1, axis)


def _take_along(x: Any, indices: Any, axis: int) -> Any:
    check_indices(indices, x.shape[-1], axis)
    shape = np.broadcast_shapes(x.shape[:-1], indices.shape[:-1])
    x, indices = np.broadcast_to(x, (*shape, x.shape[-1])), np.broadcast_to(indices, (*shape, indices.shape[-1]))
    return np.take_along_axis(x, indices.astype(np.int64, copy=False), axis=-1)


def check_indices(indices: Any, n: int, axis: int) -> None:
    """Raise IndexError for the first index along `axis`, of length `n`, that is out of range."""
    wrong = indices[(indices < -n) | (indices >= n)]
    if wrong.size:
        raise out_of_range(int(wrong.flat[0]), n, axis)


@function
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Return positions in the sorted `x1`, which is merged into one chunk. NB: cubed's has no `sorter`, and fails for an own Spec."""
    x1 = x1 if sorter is None else take(x1, sorter, axis=0)
    return apply_blocks(functools.partial(_search, side=side), "(n),()->()", x1, x2, dtype=np.int64)


def _search(x1: Any, x2: Any, side: Any) -> Any:
    return np.searchsorted(x1, x2, side=side).astype(np.int64, copy=False)


def _make_running(name: str) -> Callable[..., Any]:
    """Return `cumulative_sum` or `cumulative_prod`. NB: cubed's need an axis, and have no `include_initial`."""
    make = getattr(cubed, name)

    def running(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Any:
        axis = 0 if axis is None else axis % x.ndim
        out = make(x, axis=axis, dtype=dtype)
        if not include_initial:
            return out
        first = NAMESPACE.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), int(name == "cumulative_prod"), dtype=out.dtype)
        return concat([first, out], axis=axis)

    return running


_FUNCTIONS |= {name: _make_running(name) for name in ("cumulative_prod", "cumulative_sum")}


# -- reductions and products -------------------------------------------------------------------------------------------------------


@function
def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Return the variance. NB: cubed's fails for 0-d arrays."""
    if x.ndim == 0:
        return reshape(cubed.var(reshape(x, (1,)), correction=correction), ())
    return cubed.var(x, axis=axis, correction=correction, keepdims=keepdims)


def _make_extreme(name: str) -> Callable[..., Any]:
    """Return `argmax` or `argmin`. NB: cubed's ignore `keepdims` if there is no axis."""
    make = getattr(cubed, name)

    def find(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
        if axis is not None and x.ndim:
            return make(x, axis=axis % x.ndim, keepdims=keepdims)
        return reshape(make(reshape(x, (x.size,)), axis=0), (1,) * x.ndim if keepdims else ())

    return find


_FUNCTIONS |= {name: _make_extreme(name) for name in ("argmax", "argmin")}


@function
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:  # noqa: A002 (the standard's names)
    """Limit values. NB: cubed's fails if there is only a lower limit."""
    x = x if min is None else cubed.maximum(x, min)
    return x if max is None else cubed.minimum(x, max)


def _make_floating(name: str) -> Callable[..., Any]:
    """Return `copysign` or `hypot`, which refuse integers, as `sqrt` does. NB: cubed rounds down their results."""
    make = getattr(cubed, name)

    def compute(x1: Any, x2: Any, /) -> Any:
        if any(x.dtype.kind in "biu" for x in (x1, x2) if hasattr(x, "dtype")):
            msg = f"Only floating-point dtypes are allowed in {name}"
            raise TypeError(msg)
        return make(x1, x2)

    return compute


_FUNCTIONS |= {name: _make_floating(name) for name in ("copysign", "hypot")}


@function
def conj(x: Any, /) -> Any:
    """Return the complex conjugate. NB: cubed's refuses real numbers."""
    return cubed.conj(x) if x.dtype.kind == "c" else x


@function
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Return the tensor product with summed axes. NB: cubed sums the wrong ones if they are negative."""
    if isinstance(axes, int):
        return cubed.tensordot(x1, x2, axes=axes)
    return cubed.tensordot(x1, x2, axes=tuple(tuple(a % x.ndim for a in part) for x, part in zip((x1, x2), axes)))


@function
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return products of vectors. NB: cubed's does not conjugate the first."""
    return cubed.sum(cubed.multiply(conj(x1), x2), axis=axis, dtype=np.result_type(x1.dtype, x2.dtype))
