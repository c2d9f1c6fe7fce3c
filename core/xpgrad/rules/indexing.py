"""Indexing by ``x[key]``, `take` and `take_along_axis`.

Basic keys give views. Advanced keys (masks, integer arrays, and mixtures) give copies; the gradients of elements that are selected more
than once add up. In-place writes are in `rules.writing` and `_tensor.writing`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpgrad._aliasing.cells import ForbiddenView
from xpgrad._aliasing.stale import VIEWS
from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._array.kernels import add_along, take_along
from xpgrad._array.pieces import pad_block
from xpgrad._backends.classes import host_backend
from xpgrad._basics.dtypes import bool_, iinfo
from xpgrad._basics.keys import BASIC_PARTS, basic_key, full_key, is_basic, zero_step_error
from xpgrad._basics.scalars import as_scalar, is_raw_array, is_scalar
from xpgrad._basics.shapes import common_shape, normalize_axis
from xpgrad._modes.captures import as_captured
from xpgrad._modes.state import current
from xpgrad._operations.declare import front, rule, view
from xpgrad._operations.lift import as_tensor, lift
from xpgrad._rows.namespace import RULES, operations
from xpgrad.errors import CapabilityError
from xpgrad.rules.conversion import asarray

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["take", "take_along_axis"]


@view(
    lambda g, x_shape, key, xp: xp.index_basic_transpose(g, key, x_shape),
    into="add_at", fresh=True, node="SliceBackward0", kind="selection", dtype="same", whole=True, spelled="x[key]",
)  # fmt: skip
def index_basic(xp: Any, x: Any, key: Any) -> Any:
    """Return ``x[key]`` for integers, slices, ellipsis and newaxis."""
    return x[full_key(key, x.shape)]


@rule(
    lambda g, key, xp: xp.index_basic(g, key),
    conj=False, node="SliceBackward0Backward0", kind="selection", memory="new", dtype="same", whole=True, grows=True,
)  # fmt: skip
def index_basic_transpose(xp: Any, x: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of `shape` with `x` written at ``[key]``."""
    if not xp._backend.capabilities.mutable:
        return pad_block(xp, x, key, shape)
    return xp.written(xp.zeros_near(x, shape), key, x)


@rule(
    lambda g, x_shape, key, xp: xp.scatter_add(g, key, x_shape),
    into="scatter_into", conj=False, fresh=True, node="IndexBackward0", kind="selection", memory="new", dtype="same", keyed=True,
    public="take", spelled="x[key]",
)  # fmt: skip
def gather(xp: Any, x: Any, key: Any) -> Any:
    """Return ``x[key]`` for a key with raw integer arrays or masks."""
    found = take_along(xp, x, key)
    return xp.take_flat(x, xp.flat_index(key, tuple(x.shape), x)) if found is None else found


@rule(
    lambda g, key, xp: xp.gather(g, key),
    conj=False, fresh=True, node="IndexPutBackward0", kind="scatter", memory="new", dtype="same", helper=True, whole=True, keyed=True,
    spelled="x[key]",
)  # fmt: skip
def scatter_add(xp: Any, x: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of `shape` with `x` added at ``[key]``, duplicates included."""
    found = add_along(xp, x, key, shape)
    if found is not None:
        return found
    count = math.prod(x.shape)
    flat = xp.reshape(xp.flat_index(key, shape, x), (count,))
    return xp.reshape(xp.segment_sum(xp.reshape(x, (count,)), flat, math.prod(shape)), shape)


def unstack_views(x: Tensor, axis: int) -> tuple[Tensor, ...]:
    """Return the slices along an axis, marked as outputs of one function that returns several views."""
    key = (slice(None),) * axis
    views = tuple(index_basic(x, (*key, i)) for i in range(x.shape[axis]))
    for k, v in enumerate(views):
        if v._alias is not None and not v.is_inference():
            v._alias.forbidden = ForbiddenView(f"Output {k} of Unbind")
    return views


def prepare_key(x: Tensor, key: Any) -> tuple[Any, ...]:
    """Convert a key that `basic_key` rejects to the form that kernels take: Tensors to raw arrays, and integer scalars to Python ints.

    Raises
    ------
    IndexError, TypeError
        If a part of the key is not a valid index.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    empty = False
    for i, part in enumerate(parts):
        if part.__class__ in BASIC_PARTS:
            continue
        if isinstance(part, slice):
            continue
        scalar = as_scalar(part) if is_scalar(part) else None
        if isinstance(scalar, int) and not isinstance(scalar, bool):
            parts[i] = scalar
            continue
        parts[i] = _index_array(x, part)
        empty = empty or 0 in parts[i].shape
    return _fit_empty_masks(x, parts) if empty else tuple(parts)


def _fit_empty_masks(x: Tensor, parts: list[Any]) -> tuple[Any, ...]:
    """Return a prepared key in which masks with axes of length 0 have the shape of the axes that they index.

    A mask may have an axis of length 0 where the array has another length (Array API, "Boolean Array Indexing"), and picks nothing then.
    """
    isdtype = x.backend.kernels.isdtype
    widths = [0 if p is None or p is Ellipsis else len(p.shape) if hasattr(p, "shape") and isdtype(p.dtype, "bool") else 1 for p in parts]
    axis = 0
    for i, (part, width) in enumerate(zip(parts, widths)):
        if part is Ellipsis:
            axis += x.ndim - sum(widths)
        elif width and hasattr(part, "shape") and 0 in part.shape and isdtype(part.dtype, "bool"):
            place = tuple(x.shape[axis : axis + width])
            if len(place) == width and all(k in (0, n) for k, n in zip(part.shape, place)):
                parts[i] = _index_array(x, operations.zeros(place, dtype=bool_, device=host_backend().devices()[0]))
        axis += width
    return tuple(parts)


def _index_array(x: Tensor, part: Any) -> Any:
    """Return an advanced part of a key as a copied raw array, so that later writes to the caller's array do not affect gradients."""
    if not isinstance(part, TensorBase):
        if isinstance(part, range):
            part = list(part)
        if not (is_raw_array(part) or isinstance(part, (list, tuple, bool))):
            msg = (
                f"a Tensor is indexed by integers, slices, `...`, None, masks and integer arrays, not by {type(part).__name__} {part!r:.40}"
            )
            raise IndexError(msg)
        if isinstance(part, (list, tuple)) and not part:
            part = asarray(part, dtype=x.default_dtype("indexing"), device=x.device)
        else:
            part = fit_index(x, part, lambda part: asarray(part, device=x.device))
    elif part.device != x.device:
        part = fit_index(x, part, lambda part: part.to_device(x.device))
    if part.stage > x.stage:  # reading lifts `x` first
        raise shared_by_batch(x)
    if part.stage < x.stage:
        part = type(x).lift(part)
    kind = part.dtype.category
    if kind not in ("bool", "signed integer", "unsigned integer"):
        msg = f"an index array must hold integers or bools, but got dtype {part.dtype}; convert it with `xpgrad.astype`"
        raise IndexError(msg)
    out = to_signed(part)
    return x.backend.kernels.copy(out) if out is part._array else out


def fit_index(x: Tensor, index: Any, convert: Callable[[Any], Tensor]) -> Tensor:
    """Return an index array as a Tensor beside `x`; integers that the library of `x` lacks get the dtype of indices.

    Libraries without 64-bit integers take NumPy's, which have 64 bits, as indices. Those that do not fit stay out of range.

    Parameters
    ----------
    x : Tensor
        What is indexed.
    index : Tensor, raw array or list
    convert : callable
        It makes a Tensor on the device of `x`.

    Raises
    ------
    CapabilityError
        If the library lacks the dtype, and it is not one of integers.
    """
    try:
        return convert(index)
    except CapabilityError:
        there: Any = index if isinstance(index, TensorBase) else asarray(index, device=host_backend().devices()[0])
        if "integer" not in there.dtype.category:
            raise
        wanted = x.default_dtype("indexing")
        limits = iinfo(wanted)
        return operations.clip(there, limits.min, limits.max)._cast(wanted).to_device(x.device)


def to_signed(indices: Any) -> Any:
    """Return integer indices as a raw array whose values fit into the dtype of indices.

    Unsigned integers as wide as that dtype are converted to it; those that it cannot hold become its maximum, which is out of range.
    """
    dtype = indices.dtype
    if dtype.category != "unsigned integer" or dtype.itemsize < (wanted := indices.default_dtype("indexing")).itemsize:
        return indices._array
    xp = indices.backend.kernels
    out = xp.astype(indices._array, indices.backend.raw_dtype(wanted))
    return xp.where(xp.less(out, xp.zeros_like(out)), xp.full_like(out, iinfo(wanted).max), out)


def _lift_indexed(name: str, x: Any, indices: Any) -> Any:
    """Return the operand to index as a Tensor; a raw array becomes one on the device of `indices`, if they are a Tensor."""
    return as_tensor(name, lift(name, x, indices) if isinstance(indices, TensorBase) else x)


def to_level_of(x: Tensor, *parts: Any) -> Tensor:
    """Lift `x` to the highest stage of the indices `parts` if that is higher; else return it unchanged.

    In a function that is being compiled, indices that are no Tensors become constants of its capture.
    """
    highest = max((p for p in parts if isinstance(p, TensorBase)), key=lambda p: p.stage, default=x)
    if highest.stage > x.stage:
        x = type(highest).align([x, highest])[0]
    if x.stage or (mode := current()) is None or mode.capturing is None:
        return x
    return x if all(isinstance(p, (TensorBase, *BASIC_PARTS)) for p in parts) else as_captured(x)


def getitem(x: Tensor, key: Any) -> Tensor:
    """Return ``x[key]``."""
    kind = key.__class__
    if kind is slice or kind is int or basic_key(key):
        try:
            out = x._op_index_basic(key)  # type: ignore[attr-defined]
        except (OverflowError, TypeError, ValueError, IndexError) as exc:
            error = basic_error(x, key, exc)
            if error is exc:
                raise
            raise error from exc
        if kind is slice:
            return out
    else:
        x = to_level_of(x, *(key if isinstance(key, tuple) else (key,)))
        prepared = prepare_key(x, key)
        out = (index_basic if is_basic(prepared) else gather)(x, prepared)
    mode = current()
    return out if mode is None or mode.numpy is None else mode.numpy.finish_index(key, out)


def view_by_key(x: Tensor, key: tuple[Any, ...]) -> Tensor:
    """Return ``x[key]`` for integer arrays, as a view in code for NumPy: later writes to `x` change it, and writes to it raise."""
    x = to_level_of(x, *key)
    prepared = prepare_key(x, key)
    mode = current()
    # Only while writes go to copies do the Tensors that share memory get new arrays.
    return (VIEWS.gather if mode is not None and mode.copies and not x.is_inference() else gather)(x, prepared)


def basic_error(x: Tensor, key: Any, exc: Exception) -> Exception:
    """Return the error for a basic key that the library refused."""
    parts = key if isinstance(key, tuple) else (key,)
    # NB: a library may report an int that is too large for it as not an int.
    if isinstance(exc, OverflowError) or any(isinstance(p, int) and abs(p) > sys.maxsize for p in parts):
        return IndexError(f"an index is out of range for a Tensor of shape {x.shape}: {key!r:.80}")
    for part in parts:
        for bound in (part.start, part.stop, part.step) if isinstance(part, slice) else ():
            if bound is not None and not hasattr(bound, "__index__"):
                return TypeError(f"the bounds of a slice must be integers or None, but the index has {part!r:.80}")
    return (zero_step_error(key) if isinstance(exc, ValueError) else None) or exc


RULES["__getitem__"] = getitem


@front
def take(x: Tensor, indices: Tensor, /, axis: int | None = None) -> Tensor:
    """Return the elements of `x` at integer indices along an axis; the gradients of duplicates add up.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape and dtype.
    indices : Tensor, raw array or list of integers
        Indices along the axis, in any shape; negative ones count from the end.
    axis : int, optional
        Axis to index. It may be omitted only if `x` is one-dimensional.

    Returns
    -------
    Tensor
        Has the shape of `x` with the axis replaced by those of `indices`, and the dtype of `x`.

    Raises
    ------
    TypeError
        If `x` is not a Tensor or an array, or `indices` are bools.
    ValueError
        If `axis` is omitted and `x` is not one-dimensional.
    IndexError
        If `axis` or an index is out of range, or `indices` are neither integers nor bools.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([10.0, 20.0, 30.0], requires_grad=True)
    >>> y = xp.take(x, xp.asarray([2, 0, 2]), axis=0)
    >>> y
    tensor([30., 10., 30.], grad_fn=<IndexBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([1., 0., 2.])
    """
    x = x if isinstance(x, TensorBase) else _lift_indexed("take", x, indices)
    if axis is None:
        if x.ndim != 1:
            msg = f"take: `axis` may be left out for a one-dimensional Tensor only, but x has shape {x.shape}"
            raise ValueError(msg)
        axis = 0
    axis = normalize_axis(axis, x.ndim, "take")
    x = to_level_of(x, indices)
    index = _index_array(x, indices)
    if x.backend.dtype_of(index.dtype).category == "bool":
        msg = "take: `indices` must be integers, but got bools; use `x[mask]`"
        raise TypeError(msg)
    return gather(x, (*(slice(None),) * axis, index))


@rule(
    lambda g, x_shape, indices, axis, xp: xp.scatter_along(g, indices, x_shape, axis),
    conj=False, fresh=True, node="GatherBackward0", kind="selection", memory="new", dtype="same", numpy="take_along_axis",
    public="take_along_axis",
)  # fmt: skip
def gather_along(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    """Return ``x[..., indices[..., i, ...], ...]``, where the raw `indices` vary along the other axes."""
    return xp.take_along_axis(x, indices, axis=axis)


@rule(
    lambda g, indices, axis, xp: xp.gather_along(g, indices, axis),
    conj=False, fresh=True, node="GatherBackward0Backward0", kind="scatter", dtype="same", spelled="take_along_axis",
)  # fmt: skip
def scatter_along(xp: Any, x: Any, indices: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Return the transpose of `gather_along`: it adds, duplicates included."""
    key = [
        indices if i == axis else xp.reshape(xp.count_up(x, n), tuple(-1 if j == i else 1 for j in range(len(shape))))
        for i, n in enumerate(x.shape)
    ]
    return xp.scatter_add(x, tuple(key), shape)


@front
def take_along_axis(x: Tensor, indices: Tensor, /, axis: int = -1) -> Tensor:
    """Return the elements of `x` at indices that vary along the other axes; the gradients of duplicates add up.

    Parameters
    ----------
    x : Tensor or raw array
        At least one axis; any dtype.
    indices : Tensor or raw array of integers
        Indices along `axis`. It has as many axes as `x`, and broadcasts with it along all but `axis`.
    axis : int
        Axis to index.

    Returns
    -------
    Tensor
        Has the shape to which both broadcast, with the length of `indices` along `axis`, and the dtype of `x`.

    Raises
    ------
    TypeError
        If `x` or `indices` is not a Tensor or an array, or `indices` are bools.
    ValueError
        If `indices` has another number of axes than `x`, or does not broadcast with it.
    IndexError
        If `axis` or an index is out of range, or `indices` are neither integers nor bools.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([[3.0, 1.0], [2.0, 4.0]])
    >>> xp.take_along_axis(x, xp.argsort(x, axis=1), axis=1)
    tensor([[1., 3.],
            [2., 4.]])
    """
    x = x if isinstance(x, TensorBase) else _lift_indexed("take_along_axis", x, indices)
    if not isinstance(indices, TensorBase) and not is_raw_array(indices):
        raise not_a_tensor("take_along_axis", indices)
    x = to_level_of(x, indices)
    index = x._wrap(_index_array(x, indices))
    axis = normalize_axis(axis, x.ndim, "take_along_axis")
    if index.ndim != x.ndim:
        msg = f"take_along_axis: `indices` must have as many axes as x, but the shapes are {index.shape} and {x.shape}"
        raise ValueError(msg)
    if "integer" not in index.dtype.category:
        msg = f"take_along_axis: `indices` must be integers, but got dtype {index.dtype}"
        raise TypeError(msg)
    rest = [list(s) for s in (x.shape, index.shape)]
    for shape in rest:
        shape[axis] = 1
    common = list(common_shape(*rest, name="take_along_axis"))
    for t, place in ((x, 0), (index, 1)):
        wanted = tuple(t.shape[axis] if i == axis else n for i, n in enumerate(common))
        if wanted != t.shape:
            t = operations.broadcast_to(t, wanted)
        if place:
            index = t
        else:
            x = t
    return gather_along(x, index._array, axis)


def add_slices(x: Tensor, axis: int, index: Tensor, source: Tensor) -> Tensor:
    """Return `x` with slices of `source` added at `index` along an axis, duplicates included (`torch.index_add`).

    Raises
    ------
    ValueError
        If the shape of `source` is not that of ``take(x, index, axis=axis)``.
    IndexError
        If an index is out of range, and its values can be read, which waits for the device.
    """
    source = as_tensor("index_add", lift("index_add", source, x))
    axis = normalize_axis(axis, x.ndim, "index_add")
    x = to_level_of(x, index, source)
    source = to_level_of(source, x)
    places = _index_array(x, index)
    if x.backend.dtype_of(places.dtype).category == "bool":
        msg = "index_add: `index` must hold integers, but got bools; use `xpgrad.nonzero(mask)[0]`"
        raise IndexError(msg)
    expected = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
    if source.shape != expected:
        where = f"`x` of shape {x.shape} at indices of shape {tuple(places.shape)}"
        msg = f"index_add: `source` has shape {source.shape}, but {where} needs {expected}"
        raise ValueError(msg)
    # NB: in gradients the kernel adds at indices that were read before, so it does not check them.
    places = check_range(x, places, axis)
    return x + scatter_add(source._cast(x.dtype), (*(slice(None),) * axis, places), x.shape)


def add_along_axis(x: Tensor, axis: int, index: Tensor, source: Tensor) -> Tensor:
    """Return `x` with the elements of `source` added at `index` along an axis, duplicates included (`torch.scatter_add`).

    `index` has the shape of `source`. Along the other axes both may be shorter than `x`, whose remaining elements stay.

    Raises
    ------
    IndexError
        If an index is out of range, and its values can be read, which waits for the device.
    """
    x = to_level_of(x, index, source)
    source = to_level_of(source, x)
    places = check_range(x, _index_array(x, index), axis)
    part = tuple(x.shape[axis] if i == axis else n for i, n in enumerate(source.shape))
    added = scatter_along(source, places, part, axis)
    return x + (added if part == x.shape else index_basic_transpose(added, tuple(slice(n) for n in part), x.shape))


def check_range(x: Tensor, places: Any, axis: int) -> Any:
    """Check raw indices along an axis and return them counted from the front.

    Indices of a lazy library that checks them itself are returned unchanged.
    """
    backend = x.backend
    if backend.checks_indices and backend.capabilities.lazy:
        return places
    return backend.kernels.from_front(places, x.shape[axis], axis, places)


def shared_by_batch(x: Any) -> RuntimeError:
    """Return the error for a write under `vmap` into a Tensor that is not an element of the batch, and cannot become one."""
    return RuntimeError(
        f"vmap: different values cannot be written in place into a Tensor of shape {x.shape} that all elements of the batch share; write "
        "into what the function itself made, by a creation function or `clone()`, and take views of it after the first write"
    )
