"""Reading, adding and writing at keys of every kind, chunk by chunk, without computing lazy indices.

A key with integer arrays is split into three steps (`Plan`): a basic key, a transposition, and a list of positions along the first axis.
Gradients go through the transposes of these steps in reverse order.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dask.array
import numpy as np

from xpgrad.errors import CapabilityError
from xpgrad.registry import backend_for
from xpgrad_dask.chunks import ChunkedShape, known_values, unknown_length
from xpgrad_dask.kernels import broadcast_to, chunks_for, fit, fit_like, reshape, size_is_known

__all__ = ["KERNELS"]

da: Any = dask.array  # it has no type hints on most of its functions, and wrong ones on some
_FULL = slice(None)


def _is_number(part: Any) -> bool:
    return isinstance(part, int) and not isinstance(part, bool)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def _is_mask(part: Any) -> bool:
    return isinstance(part, da.Array) and part.dtype == np.bool_


# -- basic keys ---------------------------------------------------------------------------------------------------------------


def index_basic(xp: Any, x: Any, key: Any) -> Any:
    """Return ``x[key]`` for integers, slices, ellipsis and newaxis."""
    parts = _expand_key(key, x.ndim)
    if not size_is_known(x):
        axis = 0
        for part in parts:
            if part is None:
                continue
            if x.shape[axis] != x.shape[axis] and part != _FULL:
                msg = f"`x[{part}]`"
                raise unknown_length(msg)
            axis += 1
    return x[tuple(parts)]


def _expand_key(key: Any, ndim: int, keep: bool = False) -> list[Any]:
    """Return a key's parts, with full slices for the ellipsis and for missing trailing axes; `keep` leaves the ellipsis before them."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if sum(p is Ellipsis for p in parts) > 1:
        msg = "an index can have only a single ellipsis ('...'), but this one has more"
        raise IndexError(msg)
    used = sum(0 if p is None or p is Ellipsis else p.ndim if _is_mask(p) else 1 for p in parts)
    if used > ndim:
        msg = f"too many indices: the array has {ndim} axes, but {used} are indexed"
        raise IndexError(msg)
    place = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
    return [*parts[:place], *parts[place : place + keep], *[_FULL] * (ndim - used), *parts[place + 1 :]]


def index_basic_transpose(xp: Any, x: Any, key: Any, shape: Any) -> Any:
    """Return zeros of `shape`, in its chunks, with `x` written at ``[key]``."""
    if size_is_known(shape):
        return put(da.zeros(tuple(shape), dtype=x.dtype, chunks=chunks_for(shape, x.dtype)), key, x)
    axis = 0
    for part in _expand_key(key, len(shape)):  # `axis` counts the axes of the result
        if part is None:
            x = x[(_FULL,) * axis + (0,)]
            continue
        if isinstance(part, int):
            x = x[(_FULL,) * axis + (None,)]
            part = slice(part, part + 1 or None)
        if part != _FULL:
            x = _embed(x, part, axis, int(shape[axis]))
        axis += 1
    return x


def _embed(x: Any, part: slice, axis: int, length: int) -> Any:
    """Return zeros with `x` written at the slice `part` of an axis, which has the given length."""
    if x.numblocks[axis] > 1:
        x = x.rechunk({axis: -1})
    chunks = (*x.chunks[:axis], (length,), *x.chunks[axis + 1 :])
    return da.map_blocks(_embed_block, x, part=part, axis=axis, length=length, dtype=x.dtype, chunks=chunks, meta=x._meta)


def _embed_block(block: Any, part: slice, axis: int, length: int) -> Any:
    out = np.zeros((*block.shape[:axis], length, *block.shape[axis + 1 :]), block.dtype)
    out[(_FULL,) * axis + (part,)] = block
    return out


def _fill_block(x: Any, value: Any) -> Any:
    return np.full(x.shape, value, x.dtype)


def put(x: Any, key: Any, value: Any) -> Any:
    """Return a copy of `x` with `value` at ``[key]``, for a basic key."""
    parts = _expand_key(key, x.ndim)
    if None in parts:  # dask does not write through new axes
        wanted = x[tuple(parts)].shape
        parts_left = tuple(p for p in parts if p is not None)
        if not _is_scalar(value):
            value = reshape(da.broadcast_to(value, wanted), x[parts_left].shape)
        parts = list(parts_left)
    if _is_scalar(value) and all(p == _FULL for p in parts):
        return da.map_blocks(_fill_block, x, value=value, dtype=x.dtype, meta=np.empty((0,) * x.ndim, x.dtype))
    picked = x[tuple(parts)].shape
    if 0 in picked or 0 in x.shape:
        return x
    if isinstance(value, da.Array):
        extra = value.ndim - len(picked)
        if extra > 0:  # as in NumPy, surplus leading axes of length 1 are dropped
            value = reshape(value, value.shape[extra:])
        value = value.astype(x.dtype)
        if all(p == _FULL for p in parts):
            return fit_like(broadcast_to(value, ChunkedShape.of(x)) if not size_is_known(x) else da.broadcast_to(value, picked), x)
        value = da.broadcast_to(value, picked)
    out = x.copy()
    out[tuple(_with_positive_step(p, n) for p, n in zip(parts, x.shape))] = _flip_negative_steps(value, parts, x.shape)
    return out


def _with_positive_step(part: Any, length: int) -> Any:
    """Return a slice with a positive step that picks the same elements. NB: dask writes only through these."""
    if not isinstance(part, slice):
        return part
    places = range(length)[part]
    if places.step < 0:
        places = places[::-1]
    return slice(places.start, places.stop, places.step)


def _flip_negative_steps(value: Any, parts: Any, shape: Any) -> Any:
    """Return a value reversed along the axes whose slices have negative steps, as `_with_positive_step` reverses these slices."""
    if not isinstance(value, da.Array):
        return value
    steps = [part.indices(n)[2] for part, n in zip(parts, shape) if isinstance(part, slice)]
    return value[tuple(slice(None, None, -1) if step < 0 else _FULL for step in steps)]


# -- keys with arrays -----------------------------------------------------------------------------------------------------------


@dataclass
class Plan:
    """The steps that read a key with integer arrays.

    Reading ``x[key]`` takes `basic`, moves the axes that the arrays index to the front (`order`), merges them into a single axis
    (`to_rows`), takes the `positions` along it, and arranges the axes as NumPy does (`to_result`).
    """

    basic: tuple[Any, ...]  # the key's slices and new axes, with full slices for the arrays
    order: tuple[int, ...]  # the transposition that moves the indexed axes to the front
    rows: int  # the length of the merged axis
    lengths: tuple[int, ...]  # the lengths of the indexed axes
    rest: tuple[int, ...]  # the lengths of the other axes
    positions: Any  # flat positions along the merged axis: a NumPy array if they are known, else a dask array
    common: tuple[int, ...]  # the shape to which the arrays broadcast
    place: int  # the first axis of the result that belongs to the arrays

    def to_rows(self, x: Any) -> Any:
        """Return the array after the basic key, with the indexed axes merged into its first axis."""
        x = x[self.basic].transpose(self.order)
        return x if len(self.lengths) == 1 else reshape(x, (self.rows, *self.rest))

    def to_result(self, rows: Any) -> Any:
        """Return the rows at `positions` in the shape of ``x[key]``."""
        x = reshape(rows, (*self.common, *self.rest)) if len(self.common) != 1 else rows
        count = len(self.common)
        return da.moveaxis(x, tuple(range(count)), tuple(range(self.place, self.place + count)))

    def from_result(self, x: Any) -> Any:
        """Return an array in the shape of ``x[key]`` as one row for each position; the inverse of `to_result`."""
        count = len(self.common)
        x = da.moveaxis(x, tuple(range(self.place, self.place + count)), tuple(range(count)))
        return reshape(x, (math.prod(self.common), *self.rest)) if count != 1 else x

    def from_rows(self, rows: Any) -> Any:
        """Return rows in the shape of the array after the basic key; the inverse of `to_rows` without undoing the basic key."""
        x = rows if len(self.lengths) == 1 else reshape(rows, (*self.lengths, *self.rest))
        return x.transpose(tuple(int(i) for i in np.argsort(self.order)))


def plan(key: Any, shape: Any) -> Plan:
    """Return the steps that read ``[key]`` of an array of `shape`, by NumPy's rules.

    Raises
    ------
    IndexError
        If a known index is out of range, a mask has the wrong shape, the arrays do not broadcast, or there are too many indices.
    CapabilityError
        If a length is unknown, or if a mask with unknown values is combined with integers or other arrays.
    """
    if not size_is_known(shape):
        msg = "an index with arrays"
        raise unknown_length(msg)
    parts = _expand_key(key, len(shape), keep=True)
    basic: list[Any] = []
    advanced: list[int] = []  # axes after the basic key
    picks: list[Any] = []
    strides: list[int] = []
    axis, place, ended, together = 0, -1, False, True
    for part in parts:
        if part is Ellipsis:  # an ellipsis separates arrays even if it stands for no axis
            ended = ended or bool(picks)
            continue
        if part is None or isinstance(part, slice):
            ended = ended or bool(picks)
            basic.append(part)
            axis += part is not None
            continue
        found: list[Any]
        if _is_number(part):
            found = [np.asarray(part)]
        else:
            values = known_values(part)
            if part.dtype == bool:
                width = part.ndim
                if tuple(part.shape) != tuple(shape[axis : axis + width]):
                    msg = f"a mask of shape {part.shape} does not fit the axes {tuple(shape[axis : axis + width])} of an array of shape "
                    raise IndexError(msg + f"{tuple(shape)}")
                if values is None:
                    msg = (
                        "a mask whose values are not known yet cannot be mixed with integers or other arrays in a key, because the length "
                        "of what it picks is not known; index in two steps, or take a mask that is known: "
                        "`xpgrad.asarray(mask.numpy(), device='dask')`"
                    )
                    raise CapabilityError(msg)
                found = list(np.nonzero(values)) if width else []
            else:
                found = [part if values is None else values]
        if place < 0:
            place = sum(not (isinstance(b, slice) and i in advanced) for i, b in enumerate(basic))
        together = together and not ended
        for one in found:
            picks.append(_check_index(one, int(shape[axis]), axis))
            advanced.append(len(basic))
            basic.append(_FULL)
            axis += 1
        if not _is_number(part) and part.ndim == 0 and part.dtype == bool:  # a 0-d mask picks 0 or 1 elements of a new axis
            picks.append(np.nonzero(np.reshape(known_values(part), (1,)))[0])
            advanced.append(len(basic))
            basic.append(None)
    try:
        common = np.broadcast_shapes(*(p.shape for p in picks))
    except ValueError as exc:
        msg = f"the arrays of an index must broadcast together: {exc}"
        raise IndexError(msg) from exc
    if not size_is_known(common):
        msg = "an index of unknown length"
        raise unknown_length(msg)
    after = np.broadcast_to(np.empty(()), tuple(int(n) for n in shape))[tuple(basic)].shape
    others = [i for i in range(len(after)) if i not in advanced]
    lengths = tuple(after[i] for i in advanced)
    strides = [math.prod(lengths[i + 1 :]) for i in range(len(lengths))]
    positions: Any = sum(p.astype(np.int64) * s for p, s in zip(picks, strides))
    if isinstance(positions, da.Array):
        positions = reshape(da.broadcast_to(positions, common), (math.prod(common),))
    else:
        positions = np.broadcast_to(positions, common).reshape(-1)
    return Plan(tuple(basic), (*advanced, *others), math.prod(lengths), lengths, tuple(after[i] for i in others), positions, tuple(common),
                place if together else 0)  # fmt: skip


def _check_index(index: Any, length: int, axis: int) -> Any:
    """Return an index array with negative indices counted from the front; a lazy one is checked when it is computed."""
    if isinstance(index, da.Array):
        return da.map_blocks(_check_block, index, length=length, axis=axis, dtype=np.int64, meta=np.empty((0,) * index.ndim, np.int64))
    return _check_block(index, length, axis)


def _check_block(index: Any, length: int, axis: int) -> Any:
    index = np.asarray(index)
    if index.size and (index.min() < -length or index.max() >= length):
        given = index.min() if index.min() < -length else index.max()
        msg = f"index {given} is out of range for axis {axis} of length {length}: indices are {-length} to {length - 1}"
        raise IndexError(msg)
    index = index.astype(np.int64)
    return np.where(index < 0, index + length, index)


def from_front(xp: Any, indices: Any, n: int, axis: int, like: Any) -> Any:
    """Return a dask array of indices counted from the front; values that are not known yet are checked when they are computed."""
    values = known_values(indices)
    return _check_index(indices, n, axis) if values is None else da.from_array(_check_block(values, n, axis))


def take_rows(x: Any, positions: Any) -> Any:
    """Return ``x[positions]``, for positions that are within the first axis."""
    if positions.shape[0] == 0:
        return x[:0]
    if not isinstance(positions, da.Array) or x.dtype.kind != "c":
        return x[positions]
    with warnings.catch_warnings():
        # NB: dask casts the meta of the array, here a complex one, to integers for its table of chunks, which warns.
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        return x[positions]


def _scatter_rows(values: Any, positions: Any, length: int, sizes: Any, operation: Any) -> Any:
    """Scatter rows into zeros: combine all `values` that have the same position with `operation` (`np.add` or `np.maximum`).

    The result has `length` rows in chunks of `sizes`. Each of its chunks is computed from each chunk of the values, and these parts are
    reduced as a tree.
    """
    if not isinstance(positions, da.Array):
        positions = da.from_array(np.array(positions), chunks=values.chunks[0] if positions.shape[0] else -1)
    positions = positions.rechunk((values.chunks[0],)) if positions.chunks[0] != values.chunks[0] else positions
    if values.shape[0] == 0:
        return da.zeros((length, *values.shape[1:]), chunks=(sizes, *values.chunks[1:]), dtype=values.dtype)
    ends = np.cumsum(sizes)
    bounds = da.from_array(np.stack([ends - np.array(sizes), ends], axis=1), chunks=(1, 2))
    rest = tuple(f"r{i}" for i in range(values.ndim - 1))
    parts = da.blockwise(
        _scatter_block, ("j", "o", *rest), values, ("j", *rest), positions, ("j",), bounds, ("o", "t"), operation=operation,
        concatenate=True, align_arrays=False, dtype=values.dtype, meta=np.empty((0,) * (values.ndim + 1), values.dtype),
        adjust_chunks={"j": (1,) * values.numblocks[0], "o": tuple(sizes)},
    )  # fmt: skip
    if parts.shape[0] == 1:
        return parts[0]
    return parts.sum(axis=0, dtype=values.dtype) if operation is np.add else parts.max(axis=0)


def _scatter_block(values: Any, positions: Any, bounds: Any, operation: Any) -> Any:
    start, stop = (int(n) for n in bounds.reshape(-1))
    out = np.zeros((stop - start, *values.shape[1:]), values.dtype)
    here = (positions >= start) & (positions < stop)
    operation.at(out, positions[here] - start, values[here])
    return out[None]


# -- masks whose values are not known yet -------------------------------------------------------------------------------------------


def find_lone_mask(key: Any, ndim: int) -> tuple[int, Any] | None:
    """Return the axis and the mask of a key that is otherwise nothing but full slices, if the mask is not known yet."""
    parts = _expand_key(key, ndim)
    masks = [(i, p) for i, p in enumerate(parts) if _is_mask(p)]
    if len(masks) != 1 or any(isinstance(p, da.Array) or p != _FULL for i, p in enumerate(parts) if i != masks[0][0]):
        return None
    axis, mask = masks[0]
    return None if known_values(mask) is not None else (axis, mask)


def _flatten_mask(x: Any, axis: int, mask: Any) -> tuple[Any, Any]:
    """Return `x` with the masked axes merged into its first, and the flat mask, both in the same chunks along that axis.

    Raises
    ------
    IndexError
        If the mask does not fit the axes of `x`.
    CapabilityError
        If unknown lengths prevent merging the axes or matching the chunks.
    """
    width = mask.ndim
    if tuple(x.shape[axis : axis + width]) != tuple(mask.shape) and size_is_known(x) and size_is_known(mask):
        msg = f"a mask of shape {mask.shape} does not fit the axes {x.shape[axis : axis + width]} of an array of shape {x.shape}"
        raise IndexError(msg)
    if width == 0:
        x, mask = x[None], mask[None]
    if width > 1:
        if not size_is_known(x) or not size_is_known(mask):
            msg = "a mask over several axes"
            raise unknown_length(msg)
        mask = mask.reshape(-1)
        x = x.reshape((*x.shape[:axis], mask.shape[0], *x.shape[axis + width :]))
    if width:
        x = da.moveaxis(x, axis, 0)
    if x.chunks[0] != mask.chunks[0] and not (x.numblocks[0] == mask.numblocks[0] and not size_is_known(x)):
        if not size_is_known(x) or not size_is_known(mask):
            msg = "a mask in other chunks than the array"
            raise unknown_length(msg)
        mask = mask.rechunk((x.chunks[0],))
    return x, mask


def _select_block(x: Any, mask: Any) -> Any:
    return x[mask]


def _select_by_mask(x: Any, axis: int, mask: Any) -> Any:
    """Return the elements of `x` that a mask over the axes from `axis` on picks; the result has an unknown length along `axis`."""
    rows, flat = _flatten_mask(x, axis, mask)
    rest = tuple(f"r{i}" for i in range(rows.ndim - 1))
    out = da.blockwise(
        _select_block, ("j", *rest), rows, ("j", *rest), flat, ("j",), align_arrays=False, dtype=x.dtype,
        meta=np.empty((0,) * rows.ndim, x.dtype),
        adjust_chunks={"j": lambda n: np.nan},
    )  # fmt: skip
    return out if mask.ndim == 0 else da.moveaxis(out, 0, axis)


def _scatter_mask_block(g: Any, mask: Any) -> Any:
    if g.shape[0] != np.count_nonzero(mask):
        msg = f"a mask picks {np.count_nonzero(mask)} elements of a chunk, but the gradient's chunk has {g.shape[0]}"
        raise ValueError(msg)
    out = np.zeros((mask.shape[0], *g.shape[1:]), g.dtype)
    out[mask] = g
    return out


def _scatter_by_mask(g: Any, axis: int, mask: Any, shape: Any) -> Any:
    """Return the transpose of `_select_by_mask`: zeros with `g` where the mask is true."""
    width = mask.ndim
    flat = mask[None] if width == 0 else mask.reshape(-1) if width > 1 else mask
    g = da.moveaxis(g, axis, 0) if width else g
    if width <= 1 and size_is_known(shape) and getattr(shape, "chunks", None) is not None and width:
        flat = flat.rechunk((shape.chunks[axis],))
    elif width > 1:
        flat = _flatten_mask(da.zeros(tuple(shape), chunks=chunks_for(shape, g.dtype)), axis, mask)[1]
    if g.numblocks[0] != flat.numblocks[0] or size_is_known((g.shape[0],)):
        # The chunks differ from the mask's, so the place of each row is found by counting the true elements before it.
        rows = _spread_by_count(g, flat)
    else:
        rest = tuple(f"r{i}" for i in range(g.ndim - 1))
        rows = da.blockwise(_scatter_mask_block, ("j", *rest), g, ("j", *rest), flat, ("j",), align_arrays=False, dtype=g.dtype,
                            meta=np.empty((0,) * g.ndim, g.dtype), adjust_chunks={"j": flat.chunks[0]})  # fmt: skip
    if width == 0:
        return fit(rows[0], shape)
    out = da.moveaxis(rows, 0, axis)
    return reshape(out, shape) if width > 1 else fit(out, shape)


def _spread_by_count(values: Any, flat: Any) -> Any:
    """Return one row per element of a flat mask: the rows of `values` in order where it is true, and zeros elsewhere."""
    if values.numblocks[0] > 1:
        if not size_is_known((values.shape[0],)):
            msg = "a value whose chunks are not those of the mask"
            raise unknown_length(msg)
        values = values.rechunk({0: -1})
    before = da.cumsum(flat.astype(np.int64), axis=0) - flat
    total = flat.sum(dtype=np.int64)
    rest = tuple(f"r{i}" for i in range(values.ndim - 1))
    return da.blockwise(
        _spread_block, ("j", *rest), values, ("v", *rest), flat, ("j",), before, ("j",), total, (), concatenate=True, align_arrays=False,
        dtype=values.dtype, meta=np.empty((0,) * values.ndim, values.dtype),
    )  # fmt: skip


def _spread_block(values: Any, mask: Any, before: Any, total: Any) -> Any:
    if values.shape[0] != int(total):
        msg = f"a mask picks {int(total)} elements, but the value has {values.shape[0]}"
        raise ValueError(msg)
    out = np.zeros((mask.shape[0], *values.shape[1:]), values.dtype)
    out[mask] = values[before[mask]]
    return out


# -- the kernels --------------------------------------------------------------------------------------------------------------------


def gather(xp: Any, x: Any, key: Any) -> Any:
    """Return ``x[key]`` for a key with integer arrays or masks."""
    alone = find_lone_mask(key, x.ndim)
    if alone is not None:
        return _select_by_mask(x, *alone)
    p = plan(key, x.shape)
    return p.to_result(take_rows(p.to_rows(x), p.positions))


def scatter_add(xp: Any, g: Any, key: Any, shape: Any) -> Any:
    """Return zeros of `shape`, in its chunks, with `g` added at ``[key]``; duplicates in the key accumulate."""
    alone = find_lone_mask(key, len(shape))
    if alone is not None:
        return _scatter_by_mask(g, *alone, shape)
    p = plan(key, shape)
    sizes = _row_sizes(p, shape, g.dtype)
    out = p.from_rows(_scatter_rows(p.from_result(g), p.positions, p.rows, sizes, np.add))
    if all(part == _FULL for part in p.basic):
        return fit(out, shape)
    return index_basic_transpose(xp, out, p.basic, shape)


def _row_sizes(p: Plan, shape: Any, dtype: Any) -> tuple[int, ...]:
    """Return the lengths of the chunks of a plan's rows: the shape's chunks if the rows are one of its axes."""
    chunks = getattr(shape, "chunks", None)
    if p.rows == 1:
        return (1,)
    if chunks is not None and len(p.lengths) == 1:
        axis = sum(part is not None for part in p.basic[: p.order[0]])
        return tuple(chunks[axis])
    return tuple(chunks_for((p.rows, *p.rest), dtype)[0])


def written(xp: Any, buffer: Any, key: Any, value: Any) -> Any:
    """Return a copy of `buffer` with `value` at ``[key]``; if the key has duplicates, the last value wins."""
    parts = key if isinstance(key, tuple) else (key,)
    if all(p is None or p is Ellipsis or isinstance(p, slice) or _is_number(p) for p in parts):
        return put(buffer, key, value)
    scalar = _is_scalar(value)
    value = value if scalar else value.astype(buffer.dtype)
    alone = find_lone_mask(key, buffer.ndim)
    if alone is not None:
        return _write_at_mask(buffer, *alone, value)
    p = plan(key, buffer.shape)
    if 0 in p.common or 0 in buffer.shape:
        return buffer
    whole = _result_shape(p)
    if scalar:
        value = da.full((), value, dtype=buffer.dtype)
    extra = value.ndim - len(whole)
    if extra > 0:
        value = reshape(value, value.shape[extra:])
    rows = p.from_result(da.broadcast_to(value, whole))
    old = p.to_rows(buffer)
    sizes = old.chunks[0]
    count = rows.shape[0]
    numbers = da.arange(1, count + 1, chunks=(rows.chunks[0],), dtype=np.int64)
    writer = _scatter_rows(numbers, p.positions, p.rows, sizes, np.maximum)
    new = take_rows(rows, da.maximum(writer - 1, 0))
    hit = writer.reshape((p.rows,) + (1,) * len(p.rest)) > 0
    out = p.from_rows(da.where(hit, new, old))
    if all(part == _FULL for part in p.basic):
        return fit_like(out, buffer)
    return put(buffer, p.basic, out)


def _result_shape(p: Plan) -> tuple[int, ...]:
    return (*p.rest[: p.place], *p.common, *p.rest[p.place :])


def _write_at_mask(buffer: Any, axis: int, mask: Any, value: Any) -> Any:
    """Return a copy of `buffer` with `value` where a mask, whose values are not known yet, is true."""
    rows, flat = _flatten_mask(buffer, axis, mask)
    hit = flat[(slice(None), *(None,) * (rows.ndim - 1))]
    if isinstance(value, da.Array) and value.ndim > rows.ndim:  # as in NumPy, surplus leading axes of length 1 are dropped
        value = reshape(value, value.shape[value.ndim - rows.ndim :])
    # NB: the number of picked elements is unknown. A value without that axis, or of length 1 along it, is the same for all of them.
    if _is_scalar(value) or value.ndim < rows.ndim - axis or value.shape[value.ndim - (rows.ndim - axis)] == 1:
        if isinstance(value, da.Array) and value.ndim:
            back = value.ndim - (rows.ndim - axis)
            value = value[(None,) * max(-back, 0)]
            value = da.moveaxis(value, max(back, 0), 0) if back > 0 else value
        new = da.where(hit, value, rows)
    else:
        lead = (*rows.shape[1 : axis + 1], value.shape[value.ndim - (rows.ndim - axis)], *rows.shape[axis + 1 :])
        new = da.where(hit, _spread_by_count(da.moveaxis(da.broadcast_to(value, lead), axis, 0), flat), rows)
    new = new.astype(buffer.dtype)
    if mask.ndim == 0:
        return new[0]
    return fit_like(reshape(da.moveaxis(new, 0, axis), buffer.shape), buffer)


def put_at_path(xp: Any, root: Any, path: Any, value: Any) -> Any:
    """Return a copy of `root` in which the view that a path of view operations leads to has the values `value`."""
    name, args = path[0]
    if name not in ("index_basic", "transpose_axes", "swap_last", "reshape_to", "real_part", "imag_part", "diagonal_view"):
        # A broadcast view repeats elements of `root`, so rebuilding it step by step would overwrite new values with old ones. Instead,
        # the rest of the path is applied to the positions of the elements, in NumPy, and the value is written there.
        host = backend_for("numpy").kernels
        places = np.arange(math.prod(root.shape)).reshape(root.shape)
        for step, options in path:
            places = getattr(host, step)(places, *options)
        flat = written(xp, reshape(root, (-1,)), (da.from_array(np.array(places).reshape(-1)),), reshape(value, (-1,)))
        return fit_like(reshape(flat, root.shape), root)
    if len(path) > 1:
        value = put_at_path(xp, getattr(xp, name)(root, *args), path[1:], value)
    if name == "index_basic":
        return put(root, args[0], value)
    if name == "transpose_axes":
        return fit_like(value.transpose(tuple(int(i) for i in np.argsort(args[0]))), root)
    if name == "swap_last":
        return fit_like(da.swapaxes(value, -1, -2), root)
    if name == "reshape_to":
        return fit_like(reshape(value, root.shape), root)
    if name in ("real_part", "imag_part"):
        real, imaginary = (value, root.imag) if name == "real_part" else (root.real, value)
        return da.map_blocks(_complex_block, fit_like(real, root), fit_like(imaginary, root), dtype=root.dtype)
    return _set_diagonal(value, root, args[0])


def _complex_block(real: Any, imaginary: Any) -> Any:
    out = np.empty(real.shape, np.result_type(real.dtype, np.complex64))
    out.real, out.imag = real, imaginary
    return out


def _set_diagonal(x: Any, root: Any, offset: int) -> Any:
    """Return a copy of `root` with `x` on a diagonal of its matrices."""
    rows, columns = root.shape[-2:]
    if not x.shape[-1]:
        return root
    # `x` is spread along rows, or along columns if the diagonal begins below the corner; `where` then picks the diagonal.
    missing = (rows if offset >= 0 else columns) - x.shape[-1]
    if missing:
        x = da.concatenate([x, da.zeros((*x.shape[:-1], missing), dtype=x.dtype)], axis=-1)
    spread = x[..., :, None] if offset >= 0 else x[..., None, :]
    down, across = da.arange(rows, chunks=(root.chunks[-2],)), da.arange(columns, chunks=(root.chunks[-1],))
    return fit_like(da.where(across[None, :] - down[:, None] == offset, spread, root), root)


def diagonal_transpose(xp: Any, x: Any, shape: Any, offset: int) -> Any:
    """Return zeros of `shape`, in its chunks, with `x` on a diagonal of its matrices."""
    return _set_diagonal(x, da.zeros(tuple(shape), dtype=x.dtype, chunks=chunks_for(shape, x.dtype)), offset)


def zero_through(xp: Any, x: Any, chain: Any) -> Any:
    """Return a copy of `x` with zeros in the part that a chain of view operations leads to."""
    part = x
    for name, args in chain:
        part = getattr(xp, name)(part, *args)
    return put_at_path(xp, x, chain, da.zeros_like(part)) if chain else da.zeros_like(x)


def wins(xp: Any, x: Any, key: Any, shape: Any) -> Any:
    """Return whether each element of `x`, written at ``[key]``, is the last one written to its place."""
    arrays = [p for p in (key if isinstance(key, tuple) else (key,)) if isinstance(p, da.Array)]
    if not any(p.dtype != bool for p in arrays):
        return da.ones_like(x, dtype=bool)  # masks and slices contain no place twice
    order = da.arange(math.prod(x.shape), dtype=np.int64).reshape(x.shape)
    buffer = da.full(tuple(shape), -1, dtype=np.int64, chunks=chunks_for(shape, np.int64))
    return gather(xp, written(xp, buffer, key, order), key) == order


def count_up(xp: Any, like: Any, *bounds: int) -> Any:
    """Return ``arange(*bounds)`` in int64; its values are in memory."""
    return da.from_array(np.arange(*bounds, dtype=np.int64))


def take(x: Any, indices: Any, *, axis: int) -> Any:
    """Return elements at integer indices along an axis."""
    key = (*(_FULL,) * (axis % x.ndim), indices)
    p = plan(key, x.shape)
    return p.to_result(take_rows(p.to_rows(x), p.positions))


def take_flat(xp: Any, x: Any, flat: Any) -> Any:
    """Return elements of the flattened `x` at positions of any shape."""
    return gather(xp, reshape(x, (-1,)), (flat,))


def segment_sum(xp: Any, values: Any, positions: Any, size: int) -> Any:
    """Return the sum of the `values` (1-d) at each of the positions 0 .. size - 1."""
    return _scatter_rows(values, positions, size, chunks_for((size,), values.dtype)[0], np.add)


def last_writer(xp: Any, positions: Any, size: int) -> Any:
    """Return for each of `size` places 1 + the index of its last occurrence in `positions`, or 0 if it does not occur."""
    numbers = da.arange(1, positions.shape[0] + 1, chunks=(positions.chunks[0],), dtype=np.int64)
    return _scatter_rows(numbers, positions, size, chunks_for((size,), np.int64)[0], np.maximum)


KERNELS: dict[str, Callable[..., Any]] = {
    "index_basic": index_basic, "index_basic_transpose": index_basic_transpose, "gather": gather, "scatter_add": scatter_add,
    "written": written, "put_at_path": put_at_path, "count_up": count_up, "take_flat": take_flat, "segment_sum": segment_sum,
    "last_writer": last_writer, "from_front": from_front, "diagonal_transpose": diagonal_transpose, "zero_through": zero_through,
    "wins": wins,
}  # fmt: skip
PLAIN: dict[str, Callable[..., Any]] = {"take": take}
