"""What kernels compute of selections ``x[mask]`` in a capture.

Elementwise kernels compute on all elements. Reductions over the selected axis put their neutral element where the mask is False. Writes and
gradients go back through the same mask. Every other kernel is refused by a `CaptureError`, since it would need the length.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from xpgrad._basics.dtypes import iinfo
from xpgrad._rows.kernels import kernel_of
from xpgrad._rows.row import ROWS
from xpgrad.programs.recorder import refusal
from xpgrad.programs.selections import (
    Length,
    Selected,
    find_mask,
    is_mask,
    is_same_mask,
    mask_mismatch_error,
    replace_positions,
    selection_error,
)

__all__ = ["WATCHED", "compute_selected", "has_selection"]

#: Functions of the backend and a kernel's arguments, by the kernel's name.
_KERNELS: dict[str, Callable[..., Any]] = {}

_ELEMENTWISE = ("elementwise", "cast", "copy", "part")


def _kernel(*names: str) -> Callable[[Any], Any]:
    """Register a function for a kernel; for several, which it gets as its first argument."""

    def add(function: Any) -> Any:
        for name in names:
            _KERNELS[name] = function if len(names) == 1 else functools.partial(function, name)
        return function

    return add


def has_selection(backend: Any, name: str, args: tuple[Any, ...]) -> bool:
    """Return whether an argument of one of the kernels `WATCHED` is a selection, or a key with a selection or a mask."""
    if any(a.__class__ is backend.selected for a in args):
        return True
    if name == "nonzero":
        return args[0].recorder is not None
    if name == "written" and hasattr(args[2], "dtype") and args[2].shape:
        return False  # the library finds out whether as many elements are selected
    keys = [a for a in args if isinstance(a, tuple)]
    return any(p.__class__ is backend.selected or is_mask(p, backend.raw) for key in keys for p in key)


def compute_selected(backend: Any, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return what a kernel computes of selections, or of lengths of selections.

    Raises
    ------
    CaptureError
        The kernel needs the length, or mixes selections by different masks.
    """
    found = _KERNELS.get(name)
    if found is not None:
        return found(backend, *args, **options)
    if kernel_of(name).kind in _ELEMENTWISE:
        return _compute_elementwise(backend, name, args, options)
    row = ROWS.get(name)
    if row is not None and row.kernel is not None:
        return row.kernel(backend.kernels, *args, **options)
    raise selection_error(f"given to `{name}`, which needs an array of known length")


def _compute_elementwise(backend: Any, name: str, args: Sequence[Any], options: dict[str, Any]) -> Any:
    """Compute an elementwise kernel on all elements."""
    dtype = next(a.dtype for a in args if hasattr(a, "dtype"))
    given = [a.as_symbol(dtype) if isinstance(a, Length) else a for a in args]
    first = next((a for a in given if isinstance(a, Selected)), None)
    function = getattr(backend.kernels, name)
    if first is None:
        return function(*given, **options)
    for a in given:
        if isinstance(a, Selected):
            if a.behind != first.behind or not is_same_mask(a.mask, first.mask):
                raise mask_mismatch_error(name)
        elif len(getattr(a, "shape", ())) >= first.behind and a.shape[-first.behind] != 1:
            raise refusal(f"`{name}` was given `x[mask]` and an array with its own length along the selected axis", "select from both")
    out = function(*[_get_full(a) for a in given], **options)
    return backend.selected(out, first.mask, out.ndim - first.behind)


def _get_full(x: Any) -> Any:
    return x.full if isinstance(x, Selected) else x


def _align_mask(backend: Any, mask: Any, behind: int) -> Any:
    """Return a mask with axes of length 1 behind its own, which is at position `behind` from the last."""
    return backend.kernels.reshape(mask, (mask.shape[0], *(1,) * (behind - 1)))


def _fill(backend: Any, x: Any, value: Any = 0) -> Any:
    """Return an array with one value for all that was not selected."""
    xp = backend.kernels
    return xp.where(_align_mask(backend, x.mask, x.behind), x.full, xp.full_like(x.full, value))


# -- reading and writing -----------------------------------------------------------------------------------------------------


class _Place:
    """The part of an array that a key with a mask selects.

    Attributes
    ----------
    axis : int
        The first axis of the mask.
    shape : tuple of int
        The mask's own shape.
    mask : Symbol
        All elements of the mask, as one axis.
    rest : tuple
        The basic parts of the key, with full slices in place of the mask.
    """

    def __init__(self, backend: Any, key: tuple[Any, ...], x_shape: Sequence[Any]) -> None:
        mask = find_mask(key, backend.raw)
        if mask is None or not mask.ndim:
            raise selection_error("combined with other index arrays, or a mask has no axes")
        self.backend = backend
        self.axis, self.rest = _split_key(key, mask, len(x_shape))
        self.shape = tuple(mask.shape)
        lengths = tuple(x_shape[self.axis : self.axis + mask.ndim])
        if lengths != self.shape:
            msg = f"a mask of shape {self.shape} does not fit the shape {tuple(x_shape)} that it indexes, at axis {self.axis}"
            raise IndexError(msg)
        xp = backend.kernels
        if not isinstance(mask, Selected):
            self.mask = xp.reshape(mask, (math.prod(self.shape),))
        elif mask.ndim == 1:
            self.mask = xp.logical_and(mask.full, mask.mask)
        else:
            raise selection_error("indexed by a mask with several axes")
        self._whole = all(p is Ellipsis or p == slice(None) for p in self.rest)

    def read(self, x: Any) -> Any:
        """Return what the basic parts of the key select."""
        return x if self._whole else self.backend.kernels.index_basic(x, self.rest)

    def flatten(self, part: Any) -> Any:
        """Return a part with the axes of the mask as one."""
        shape = tuple(part.shape)
        return self.backend.kernels.reshape(part, (*shape[: self.axis], self.mask.shape[0], *shape[self.axis + len(self.shape) :]))

    def write(self, x: Any, value: Any) -> Any:
        """Return an array with a selection, an array or a number in the place of the elements that are selected."""
        xp = self.backend.kernels
        part = self.read(x)
        flat = self.flatten(part)
        behind = flat.ndim - self.axis
        if isinstance(value, Selected):
            if not is_same_mask(value.mask, self.mask):
                raise mask_mismatch_error("x[mask] = value")
            if value.behind != behind:
                msg = f"a value of shape {value.shape} does not fit a part with {flat.ndim} axes"
                raise ValueError(msg)
            value = value.full
        elif not hasattr(value, "dtype"):
            value = xp.full_like(flat, value)
        elif len(value.shape) >= behind and value.shape[-behind] != 1:
            raise refusal("an array was written to a part of `x[mask]`", "write a number, or what the same mask selects")
        value = xp.astype(value, flat.dtype) if value.dtype != flat.dtype else value
        written = xp.reshape(xp.where(_align_mask(self.backend, self.mask, behind), value, flat), tuple(part.shape))
        return written if self._whole else xp.written(xp.copy(x), self.rest, written)


def _split_key(key: tuple[Any, ...], mask: Any, rank: int) -> tuple[int, tuple[Any, ...]]:
    """Return the axis of a mask in a key for `rank` axes, and the key with full slices in place of the mask.

    Raises
    ------
    CaptureError
        Another part than a full slice stands before the mask, or something stands between the mask and an integer: in NumPy, the selected
        axis would become the first one.
    """
    at = next(i for i, p in enumerate(key) if p is mask)
    taken = sum(p is not None and p is not Ellipsis for p in key) - 1 + mask.ndim
    if taken > rank:
        msg = f"too many indices: an array with {rank} axes was indexed by {taken}"
        raise IndexError(msg)
    before: list[Any] = []
    for part in key[:at]:
        if part is not Ellipsis and (not isinstance(part, slice) or part != slice(None)):
            raise refusal("`x[..., mask]` has an integer, None or a part of an axis before the mask", "take that first")
        before += [slice(None)] * (rank - taken if part is Ellipsis else 1)
    behind = [isinstance(part, int) for part in key[at + 1 :]]
    if before and behind != sorted(behind, reverse=True):
        raise refusal("`x[:, mask]` has an integer that is not next to the mask", "take that first")
    return len(before), (*before, *(slice(None),) * mask.ndim, *key[at + 1 :])


def _full_shape(shape: Sequence[Any]) -> tuple[int, ...]:
    """Return a shape with the numbers of all elements in place of the lengths of selections."""
    return tuple([n.mask.shape[0] if isinstance(n, Length) else n for n in shape])


def _select(backend: Any, full: Any, mask: Any, axis: int, place: Any = None) -> Any:
    """Return a selection with its largest element in place of those that are not selected.

    This keeps functions from warning about elements that are not selected, and positions within bounds. If nothing is selected, it is 1,
    or 0 for integers, which may be positions.
    """
    xp, out = backend.kernels, backend.selected(full, mask, axis, place)
    is_integer = "integer" in full.dtype.category
    none = 0 if is_integer else 1
    other = xp.full_like(full, none)
    if full.shape[axis] and mask.recorder.runs and full.dtype.category in ("real floating", "signed integer"):
        least = iinfo(full.dtype).min if is_integer else -math.inf
        largest = xp.reduce_max(_fill(backend, out, least), (axis,), True)
        other = xp.where(xp.equal(largest, xp.full_like(largest, least)), xp.full_like(largest, none), largest)
    out.full = xp.where(_align_mask(backend, mask, out.behind), full, other)
    return out


@_kernel("nonzero")
def _nonzero(backend: Any, x: Any) -> Any:
    """Return the positions of the nonzero elements, as selections."""
    if isinstance(x, Selected):
        raise selection_error("given to `nonzero`")
    xp, shape = backend.kernels, tuple(x.shape)
    mask = x if x.dtype.category == "bool" else xp.not_equal(x, xp.zeros_like(x))
    size = math.prod(shape)
    flat = xp.reshape(mask, (size,))
    found = []
    for k, n in enumerate(shape):
        positions = xp.broadcast_to(xp.reshape(xp.count_up(x, n), (n, *(1,) * (len(shape) - k - 1))), shape)
        found.append(_select(backend, xp.reshape(positions, (size,)), flat, 0, (mask, k)))
    return tuple(found)


def _resolve_positions(backend: Any, key: tuple[Any, ...], rank: int) -> tuple[tuple[Any, ...], Any, int]:
    """Return a key of selected positions as one of all positions, with their mask, and the axis of the result.

    Raises
    ------
    CaptureError
        The key has other parts than adjacent arrays by one mask, and slices.
    """
    at = [i for i, p in enumerate(key) if not isinstance(p, slice) and p is not None and p is not Ellipsis]
    arrays = [key[i] for i in at]
    if at != list(range(at[0], at[0] + len(at))) or not all(isinstance(a, Selected) and a.ndim == 1 for a in arrays):
        raise selection_error("combined with other index arrays or integers, or a mask has no axes")
    if not all(is_same_mask(a.mask, arrays[0].mask) for a in arrays):
        raise mask_mismatch_error("x[key]")
    taken = sum(p is not None and p is not Ellipsis for p in key)
    axis = sum(rank - taken if p is Ellipsis else 1 for p in key[: at[0]])
    return tuple([_get_full(p) for p in key]), arrays[0].mask, axis


@_kernel("gather")
def _gather(backend: Any, x: Any, key: Any) -> Any:
    """Return ``x[key]``: a selection."""
    key = replace_positions(key, x.shape)
    if find_mask(key, backend.raw) is None:
        if isinstance(x, Selected):
            raise selection_error("indexed by an array")
        whole, mask, axis = _resolve_positions(backend, key, x.ndim)
        return backend.selected(backend.kernels.gather(x, whole), mask, axis)
    place = _Place(backend, key, x.shape)
    if isinstance(x, Selected) and place.axis != x.axis:
        raise selection_error("indexed by a mask of another axis")
    return _select(backend, place.flatten(place.read(_get_full(x))), place.mask, place.axis)


@_kernel("scatter_add")
def _scatter_add(backend: Any, g: Any, key: Any, shape: tuple[Any, ...]) -> Any:
    """Return zeros of `shape` with `g` added at ``[key]``."""
    key = replace_positions(key, shape)
    mask = find_mask(key, backend.raw)
    if mask is None:
        whole, _, _ = _resolve_positions(backend, key, len(shape))
        return backend.kernels.scatter_add(_fill(backend, g), whole, shape)
    nothing = backend.kernels.zeros_near(_get_full(g), _full_shape(shape))
    out = _Place(backend, key, shape).write(nothing, g)
    return backend.selected(out, mask.mask, _selected_axis(shape)) if isinstance(mask, Selected) else out


@_kernel("scatter_into")
def _scatter_into(backend: Any, buffer: Any, g: Any, key: Any) -> Any:
    """Return `buffer` with `g` added at ``[key]``."""
    return backend.kernels.add(buffer, _scatter_add(backend, g, key, tuple(buffer.shape)))


@_kernel("wins")
def _wins(backend: Any, x: Any, key: Any, shape: tuple[Any, ...]) -> Any:
    """Return whether each element of `x`, written at ``[key]``, is the last one written to its place: a mask names no element twice."""
    if find_mask(replace_positions(key, shape), backend.raw) is None:
        raise selection_error("written, and its gradient asked for, at positions that may be equal")
    return backend.kernels.equal(backend.kernels.zeros_like(x), 0)


@_kernel("written")
def _write(backend: Any, x: Any, key: Any, value: Any) -> Any:
    """Return `x` with ``[key]`` overwritten, where `x` or the value is a selection, or the key has a mask and the value is one number."""
    if isinstance(x, Selected) and (key[0] if isinstance(key, tuple) and len(key) == 1 else key) is Ellipsis:
        return _compute_elementwise(backend, "where", (backend.kernels.ones_like(backend.kernels.isnan(x)), value, x), {})
    key = replace_positions(key, x.shape)
    if find_mask(key, backend.raw) is None:
        raise selection_error("written to, or written, at something else than a mask")
    out = _Place(backend, key, x.shape).write(_get_full(x), value)
    return backend.selected(out, x.mask, x.axis) if isinstance(x, Selected) else out


@_kernel("index_basic")
def _index_basic(backend: Any, x: Any, key: Any) -> Any:
    """Return ``x[key]`` for a key that leaves the selected axis as it is."""
    parts = list(key) if isinstance(key, tuple) else [key]
    taken = sum(p is not None and p is not Ellipsis for p in parts)
    at = parts.index(Ellipsis) if Ellipsis in parts else len(parts)
    parts[at : at + 1] = [slice(None)] * (x.ndim - taken)
    axis = out = 0
    for part in parts:
        if part is not None and axis == x.axis:
            if not isinstance(part, slice) or part != slice(None):
                raise selection_error("indexed along the selected axis")
            break
        axis, out = axis + (part is not None), out + (not isinstance(part, int))
    return backend.selected(backend.kernels.index_basic(x.full, tuple(parts)), x.mask, out)


@_kernel("index_basic_transpose")
def _index_basic_transpose(backend: Any, x: Any, key: Any, shape: tuple[Any, ...]) -> Any:
    axis = _selected_axis(shape)
    return backend.selected(backend.kernels.index_basic_transpose(_get_full(x), key, _full_shape(shape)), shape[axis].mask, axis)


@_kernel("add_at")
def _add_at(backend: Any, buffer: Any, g: Any, key: Any) -> Any:
    return backend.kernels.add(buffer, _index_basic_transpose(backend, g, key, tuple(buffer.shape)))


# -- shapes ------------------------------------------------------------------------------------------------------------------


def _selected_axis(shape: Sequence[Any]) -> int:
    """Return the axis of a shape that has the length of a selection."""
    found = [i for i, n in enumerate(shape) if isinstance(n, Length)]
    if len(found) != 1 or not shape[found[0]].is_plain():
        raise selection_error("part of an array with several axes of unknown length, or an axis joined others")
    return found[0]


@_kernel("zeros_like", "ones_like", "full_like", "empty_like")
def _create_like(name: str, backend: Any, x: Any, *args: Any, **options: Any) -> Any:
    return backend.selected(getattr(backend.kernels, name)(x.full, *args, **options), x.mask, x.axis)


@_kernel("zeros", "ones", "full", "empty")
def _create(name: str, backend: Any, shape: tuple[Any, ...], *args: Any, **options: Any) -> Any:
    axis = _selected_axis(shape)
    return backend.selected(getattr(backend.kernels, name)(_full_shape(shape), *args, **options), shape[axis].mask, axis)


@_kernel("zeros_near", "broadcast_to")
def _expand(name: str, backend: Any, x: Any, shape: tuple[Any, ...]) -> Any:
    axis = _selected_axis(shape)
    mask = shape[axis].mask
    if isinstance(x, Selected) and name == "broadcast_to" and not (len(shape) - axis == x.behind and is_same_mask(x.mask, mask)):
        raise mask_mismatch_error(name)
    return backend.selected(getattr(backend.kernels, name)(_get_full(x), _full_shape(shape)), mask, axis)


@_kernel("reshape")
def _reshape(backend: Any, x: Any, shape: Any, **options: Any) -> Any:
    """Return `x` in a shape that differs in axes of length 1 only."""
    if isinstance(x, Selected) and -1 in shape:  # only the selected axis can be the one that is left open
        shape = tuple([x.shape[x.axis] if n == -1 else n for n in shape])
    if not isinstance(x, Selected) or [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
        raise selection_error("reshaped so that the selected axis joins another")
    return backend.selected(backend.kernels.reshape(x.full, _full_shape(shape), **options), x.mask, _selected_axis(shape))


@_kernel("expand_dims")
def _expand_dims(backend: Any, x: Any, *, axis: int = 0) -> Any:
    axis %= x.ndim + 1
    return _reshape(backend, x, (*x.shape[:axis], 1, *x.shape[axis:]))


@_kernel("squeeze")
def _squeeze(backend: Any, x: Any, axis: Any) -> Any:
    axes = _axes(axis, x.ndim)
    return _reshape(backend, x, tuple([n for i, n in enumerate(x.shape) if i not in axes]))


@_kernel("permute_dims")
def _permute_dims(backend: Any, x: Any, axes: Any) -> Any:
    axes = tuple([a % x.ndim for a in axes])
    return backend.selected(backend.kernels.permute_dims(x.full, axes), x.mask, axes.index(x.axis))


@_kernel("matrix_transpose", "linalg.matrix_transpose")
def _matrix_transpose(_: str, backend: Any, x: Any) -> Any:
    n = x.ndim
    return _permute_dims(backend, x, (*range(n - 2), n - 1, n - 2))


@_kernel("stack", "concat")
def _join(name: str, backend: Any, arrays: Any, *, axis: int = 0) -> Any:
    """Join selections by one mask along a new axis, or along another than the selected one."""
    first = arrays[0]
    if not all(isinstance(x, Selected) and x.axis == first.axis and is_same_mask(x.mask, first.mask) for x in arrays):
        raise mask_mismatch_error(name)
    axis %= first.ndim + (name == "stack")
    if name == "concat" and axis == first.axis:
        raise selection_error("given to `concat` along the selected axis")
    out = getattr(backend.kernels, name)([x.full for x in arrays], axis=axis)
    return backend.selected(out, first.mask, first.axis + (name == "stack" and axis <= first.axis))


# -- reductions --------------------------------------------------------------------------------------------------------------

#: What elements that are not selected count as.
_NEUTRAL = {
    "reduce_sum": 0, "reduce_prod": 1, "reduce_max": -math.inf, "reduce_min": math.inf, "all": True, "any": False, "count_nonzero": 0,
}  # fmt: skip


def _axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Return the axes of a reduction; None means all."""
    if axis is None:
        return tuple(range(rank))
    return tuple([a % rank for a in (axis if isinstance(axis, (tuple, list)) else (axis,))])


def _wrap_rest(backend: Any, x: Any, full: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the selection that is left where other axes of `x` than the selected one were reduced."""
    return backend.selected(full, x.mask, x.axis if keepdims else x.axis - sum(a < x.axis for a in axes))


@_kernel("sum", "prod", "max", "min", "mean")
def _reduce_by_row(name: str, backend: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Reduce as the row does, of which more compilers know."""
    return getattr(backend.kernels, f"reduce_{name}")(x, None if axis is None else _axes(axis, x.ndim), keepdims)


@_kernel(*_NEUTRAL)
def _reduce(name: str, backend: Any, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """Reduce the selected elements; the largest of none is nan."""
    xp, axes, extremum = backend.kernels, _axes(axis, x.ndim), name in ("reduce_max", "reduce_min")
    function = getattr(xp, name)

    def reduced(full: Any) -> Any:
        return function(full, axis, keepdims) if name.startswith("reduce_") else function(full, axis=axis, keepdims=keepdims)

    if x.axis not in axes:
        return _wrap_rest(backend, x, reduced(x.full), axes, keepdims)
    if extremum and x.dtype.category != "real floating":
        what = f"`{name.removeprefix('reduce_')}` of `x[mask]` with integers was asked for"
        raise refusal(what, "say by `xpgrad.where` what it is where no element is selected")
    out = reduced(_fill(backend, x, _NEUTRAL[name]))
    return xp.where(xp.any(x.mask, axis=None, keepdims=False), out, xp.full_like(out, math.nan)) if extremum else out


def _divide_by_count(backend: Any, total: Any, x: Any, axes: tuple[int, ...], less: float) -> Any:
    """Return a sum divided by the number of elements along axes, reduced by `less`."""
    return backend.kernels.divide(total, math.prod(x.shape[a] for a in axes) - less)


@_kernel("reduce_mean")
def _reduce_mean(backend: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    xp, all_axes = backend.kernels, _axes(axes, x.ndim)
    if x.axis not in all_axes:
        return _wrap_rest(backend, x, xp.reduce_mean(x.full, axes, keepdims), all_axes, keepdims)
    return _divide_by_count(backend, xp.reduce_sum(x, axes, keepdims), x, all_axes, 0)


@_kernel("var")
def _reduce_var(backend: Any, x: Any, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    xp, axes = backend.kernels, _axes(axis, x.ndim)
    if x.axis not in axes:
        return _wrap_rest(backend, x, xp.reduce_var(x.full, axes, correction, keepdims), axes, keepdims)
    spread = xp.subtract(x, xp.reduce_mean(x, axes, True))
    return _divide_by_count(backend, xp.reduce_sum(xp.multiply(spread, spread), axes, keepdims), x, axes, correction)


@_kernel("reduce_std")
def _reduce_std(backend: Any, x: Any, axes: Any, correction: float, keepdims: bool) -> Any:
    xp, all_axes = backend.kernels, _axes(axes, x.ndim)
    if x.axis not in all_axes:
        return _wrap_rest(backend, x, xp.reduce_std(x.full, axes, correction, keepdims), all_axes, keepdims)
    # As for arrays, measured from one of the elements, so that equal ones give 0.
    return xp.sqrt(xp.reduce_var(xp.subtract(x, xp.reduce_max(x, axes, True)), axes, correction, keepdims))


# -- products ----------------------------------------------------------------------------------------------------------------


@_kernel("matmul", "linalg.matmul")
def _matmul(_: str, backend: Any, a: Any, b: Any) -> Any:
    xp = backend.kernels
    summed = [isinstance(x, Selected) and x.axis == axis for x, axis in ((a, a.ndim - 1), (b, max(b.ndim - 2, 0)))]
    if all(summed):
        if not is_same_mask(a.mask, b.mask):
            raise mask_mismatch_error("matmul")
        return xp.matmul(_fill(backend, a), _fill(backend, b))
    both = isinstance(a, Selected) and isinstance(b, Selected)
    if any(summed) or (both and not (a.behind == b.behind > 2 and is_same_mask(a.mask, b.mask))):
        raise selection_error("multiplied with an array of another length, or the product has two axes of unknown length")
    out = xp.matmul(_get_full(a), _get_full(b))
    if isinstance(a, Selected):
        return backend.selected(out, a.mask, a.axis + out.ndim - a.ndim + (b.ndim == 1))
    return backend.selected(out, b.mask, b.axis + out.ndim - b.ndim)


@_kernel("vecdot", "linalg.vecdot")
def _vecdot(_: str, backend: Any, a: Any, b: Any, *, axis: int = -1) -> Any:
    xp = backend.kernels
    return xp.sum(xp.multiply(xp.conj(a) if a.dtype.is_complex else a, b), axis=axis)


@_kernel("linalg.vector_norm")
def _vector_norm(backend: Any, x: Any, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:  # noqa: A002 (the standard's name)
    if not ord > 0:
        raise selection_error(f"given to `vector_norm` with ord={ord}, for which elements of 0 count")
    axes = _axes(axis, x.ndim)
    norm = functools.partial(backend.kernels.linalg.vector_norm, axis=axis, keepdims=keepdims, ord=ord)
    return norm(_fill(backend, x)) if x.axis in axes else _wrap_rest(backend, x, norm(x.full), axes, keepdims)


#: The kernels that this module computes for selections, also where libraries compose them of others.
WATCHED = frozenset(_KERNELS)
