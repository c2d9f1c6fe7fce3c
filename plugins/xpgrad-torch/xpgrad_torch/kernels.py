"""Kernels for which PyTorch has something faster than the default kernels, or behaves differently.

Three things differ: PyTorch promotes integers to its default dtype (float32) when they are combined with Python floats or divided, wraps
Python integers that the dtype cannot hold, and returns the operand itself from some functions that change nothing. Here integers become
float64, by xpgrad's promotion rules, integers that the dtype cannot hold raise an error, and a result that is not a view has new memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from xpgrad.errors import CapabilityError
from xpgrad_torch.lacking import compute_otherwise

__all__ = ["GENERAL", "KERNELS", "shares_memory"]

#: Kernels by name; those of `GENERAL` take the raw namespace as their first argument.
KERNELS: dict[str, Callable[..., Any]] = {}
GENERAL: dict[str, Callable[..., Any]] = {}

_Tensor = torch.Tensor
_SMALL = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.uint16, torch.uint32)
_INT64 = torch.int64
_UNSIGNED = (torch.uint8, torch.uint16, torch.uint32, torch.uint64)
_SINGLE = (torch.complex64, torch.float32, torch.float16, torch.bfloat16)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a kernel under its function's name (without a trailing underscore)."""
    KERNELS[function.__name__.rstrip("_")] = function
    return function


def general(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a kernel whose first argument is the raw namespace."""
    GENERAL[function.__name__] = function
    return function


def handles_lacking(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a kernel that handles dtypes that PyTorch lacks in a `try` block, which saves the call of a guard around it."""
    function.handles_lacking = True  # type: ignore[attr-defined]
    return function


def shares_memory(x: Any, y: Any) -> bool:
    """Return whether two tensors have the same storage."""
    return x.untyped_storage() is y.untyped_storage() or (
        not x.is_meta and not y.is_meta and x.numel() > 0 and x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr()
    )


def _need_values(x: Any, name: str) -> None:
    """Raise CapabilityError for a tensor on `meta`: the shape of the result of `name` depends on values, which `meta` does not have."""
    if x.is_meta:
        msg = f"`{name}` gives a shape that depends on values, which Tensors on 'torch:meta' do not have; use another device"
        raise CapabilityError(msg)


# -- arithmetic ----------------------------------------------------------------------------------------------------------


def _is_float(x: Any) -> bool:
    return bool(x.dtype.is_floating_point or x.dtype.is_complex)


def _to_floating(x: Any) -> Any:
    """Return `x`; integers and bools are converted to float64."""
    return x if x.dtype.is_floating_point or x.dtype.is_complex else x.to(torch.float64)


def _promote(x: Any, scalar: Any, compares: bool, orders: bool = False) -> Any:
    """Convert a tensor to the dtype to which a Python scalar promotes it.

    Parameters
    ----------
    x : torch.Tensor
        The operand.
    scalar : bool, int, float or complex
        The other operand.
    compares : bool
        Accept an integer that the dtype of `x` cannot hold, and return `x` in a dtype in which it can be compared with it.
    orders : bool
        Return zeros instead of `x` if all its values compare with `scalar` as 0 does.

    Raises
    ------
    OverflowError
        If the dtype cannot hold an integer `scalar` and `compares` is False, as in NumPy. PyTorch would wrap it.
    """
    dtype = x.dtype
    if isinstance(scalar, complex):
        return x if dtype.is_complex else x.to(torch.complex64 if dtype in _SINGLE else torch.complex128)
    if dtype.is_floating_point or dtype.is_complex:
        return x
    if isinstance(scalar, float):
        return x.to(torch.float64)
    if dtype is torch.bool:
        return x if isinstance(scalar, bool) else x.to(torch.int64)
    limits = torch.iinfo(dtype)
    if not limits.min <= scalar <= limits.max:
        if compares:
            if dtype is not torch.uint64 and -(2**63) <= scalar < 2**63:
                return x.to(torch.int64)
            # All values of the dtype are on the same side of the scalar, as 0 is; as floats, the largest could be rounded to the scalar.
            return torch.zeros_like(x, dtype=torch.float64) if orders else x.to(torch.float64)
        msg = f"Python integer {scalar} is out of bounds for {str(dtype).removeprefix('torch.')}; convert the Tensor with `xpgrad.astype`"
        raise OverflowError(msg)
    return x


def _register_binary(
    name: str, function: Callable[[Any, Any], Any], compares: bool = False, floating: bool = False, array: bool = False
) -> None:
    """Register a kernel of two tensors of one dtype, or of a tensor and a Python scalar.

    Parameters
    ----------
    name : str
        The name of the kernel.
    function : callable
        PyTorch's function of two operands.
    compares : bool
        The function returns bools, so Python integers that the dtype cannot hold are valid operands; otherwise they raise OverflowError.
    floating : bool
        Convert integers and bools to float64 first.
    array : bool
        Convert Python scalars to tensors, because the function does not accept scalars.
    """

    orders = compares and not array

    def apply(x1: Any, x2: Any) -> Any:
        try:
            if x1.__class__ is _Tensor:
                if x2.__class__ is _Tensor:
                    return function(_to_floating(x1), _to_floating(x2)) if floating else function(x1, x2)
                y1 = _promote(_to_floating(x1) if floating else x1, x2, compares, orders)
                return function(y1, torch.full((), x2, dtype=y1.dtype, device=y1.device) if array else x2)
            y2 = _promote(_to_floating(x2) if floating else x2, x1, compares, orders)
            return function(torch.full((), x1, dtype=y2.dtype, device=y2.device) if array else x1, y2)
        except (RuntimeError, OverflowError) as exc:
            return compute_otherwise(name, apply, exc, (x1, x2), {})

    apply.__name__ = apply.__qualname__ = name
    KERNELS[name] = handles_lacking(apply)


def _power(x1: Any, x2: Any) -> Any:
    out = x1**x2
    if out.dtype.is_complex and x2.__class__ is _Tensor:
        return torch.where(x2 == 0, torch.ones_like(out), out)  # NB: PyTorch's 0 ** 0 is nan for complex numbers
    return out


def _remainder(x1: Any, x2: Any) -> Any:
    out = x1 % x2
    if not out.dtype.is_floating_point:
        return out
    # NB: PyTorch's zero has the sign of the dividend, as in C, and all others that of the divisor.
    sign = x2 if x2.__class__ is _Tensor else torch.full((), x2, dtype=out.dtype, device=out.device)
    return torch.where(out == 0, torch.copysign(out, sign), out)


for _name, _function in {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "pow": _power,
                         "floor_divide": operator.floordiv, "remainder": _remainder, "bitwise_and": operator.and_,
                         "bitwise_or": operator.or_, "bitwise_xor": operator.xor, "bitwise_left_shift": operator.lshift,
                         "bitwise_right_shift": operator.rshift}.items():  # fmt: skip
    _register_binary(_name, _function)
_register_binary("divide", operator.truediv, floating=True)
for _name, _function in {"equal": operator.eq, "not_equal": operator.ne, "less": operator.lt, "less_equal": operator.le,
                         "greater": operator.gt, "greater_equal": operator.ge}.items():  # fmt: skip
    _register_binary(_name, _function, compares=True)
for _name in ("logical_and", "logical_or", "logical_xor"):
    _register_binary(_name, getattr(torch, _name), compares=True, array=True)
for _name in ("maximum", "minimum"):
    _register_binary(_name, getattr(torch, _name), array=True)
for _name in ("atan2", "copysign", "hypot", "logaddexp", "nextafter"):
    _register_binary(_name, getattr(torch, _name), floating=True, array=True)


def _register_unary(name: str, function: Callable[[Any], Any]) -> None:
    """Register a function of one operand; integers and bools are converted to float64 first."""

    def apply(x: Any) -> Any:
        try:
            dtype = x.dtype
            return function(x if dtype.is_floating_point or dtype.is_complex else x.to(torch.float64))
        except RuntimeError as exc:
            return compute_otherwise(name, apply, exc, (x,), {})

    apply.__name__ = apply.__qualname__ = name
    KERNELS[name] = handles_lacking(apply)


def _acos(x: Any) -> Any:
    if not x.dtype.is_complex:
        return torch.acos(x)
    # NB: above the real axis, PyTorch's own has the imaginary part of zero that belongs below it.
    turned = torch.acosh(x)
    return torch.complex(turned.imag.abs(), -torch.copysign(turned.real, x.imag))


def _log1p(x: Any) -> Any:
    found = torch.log1p(x)
    return torch.where(torch.isfinite(x), found, torch.log(x)) if x.dtype.is_complex else found  # NB: PyTorch's own is nan at infinities


for _name in ("acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log2", "reciprocal", "sin", "sinh",
              "sqrt", "tan", "tanh"):  # fmt: skip
    _register_unary(_name, getattr(torch, _name))
_register_unary("acos", _acos)
_register_unary("log1p", _log1p)


@kernel
@handles_lacking
def negative(x: Any) -> Any:
    try:
        return -x
    except RuntimeError as exc:
        return compute_otherwise("negative", negative, exc, (x,), {})


@kernel
@handles_lacking
def square(x: Any) -> Any:
    try:
        return x * x if x.dtype is not torch.bool else torch.square(x)
    except RuntimeError as exc:
        return compute_otherwise("square", square, exc, (x,), {})


@kernel
@handles_lacking
def matmul(x1: Any, x2: Any) -> Any:
    try:
        return x1 @ x2
    except RuntimeError as exc:
        return compute_otherwise("matmul", matmul, exc, (x1, x2), {})


KERNELS.update(matmul_nd=matmul, batched_matmul=matmul)


@kernel
def positive(x: Any) -> Any:
    return x.clone()  # NB: torch.positive returns its operand


@kernel
def conj(x: Any) -> Any:
    return torch.conj_physical(x) if x.dtype.is_complex else x.clone()  # NB: PyTorch returns a real operand itself


@kernel
def sign(x: Any) -> Any:
    if x.dtype.is_complex:
        return torch.sgn(x)
    out = torch.sign(x)
    return torch.where(torch.isnan(x), x, out) if x.dtype.is_floating_point else out  # NB: PyTorch's sign of nan is 0


@kernel
def scale(g: Any, factor: Any) -> Any:
    """Return ``g * factor``, in the memory of `g` unless that is broadcast; nothing else may use `g`."""
    return g * factor if 0 in g.stride() else g.mul_(factor)


# -- copies, dtypes and shapes -------------------------------------------------------------------------------------------


@kernel
def copy(x: Any) -> Any:
    return x.clone(memory_format=torch.contiguous_format)


@kernel
def clone(x: Any) -> Any:
    return x.clone()


@kernel
def clone_contiguous(x: Any) -> Any:
    return x.clone(memory_format=torch.contiguous_format)


@kernel
def to_dtype(x: Any, dtype: Any) -> Any:
    if x.dtype.is_complex and not dtype.is_complex:
        # The bool of a complex number depends on both parts.
        return x != 0 if dtype is torch.bool else x.real.to(dtype, copy=True)
    return x.to(dtype, copy=True)


@kernel
def reshape_to(x: Any, shape: Any) -> Any:
    return x.reshape(shape)


@kernel
def transpose_axes(x: Any, axes: Any) -> Any:
    return x.permute(axes)


@kernel
def swap_last(x: Any) -> Any:
    return x.transpose(-1, -2)


@kernel
def broadcast_view(x: Any, shape: Any) -> Any:
    return x.expand(shape)


@kernel
def diagonal_view(x: Any, offset: int) -> Any:
    return torch.diagonal(x, offset, -2, -1)


@kernel
def diagonal_transpose(x: Any, shape: Any, offset: int) -> Any:
    out = x.new_zeros(shape)
    torch.diagonal(out, offset, -2, -1).copy_(x)
    return out


@kernel
@handles_lacking
def reverse(x: Any, axes: Any) -> Any:
    try:
        return torch.flip(x, tuple(range(x.ndim)) if axes is None else axes)  # always a copy
    except RuntimeError as exc:
        return compute_otherwise("reverse", reverse, exc, (x, axes), {})


# -- reductions ----------------------------------------------------------------------------------------------------------
#
# NB: PyTorch treats no axes, ``()``, as all axes. It sums integers in int64, whose results have the bits of those in uint64.


def _as_total(out: Any, x: Any) -> Any:
    """Return `out`, a total of the integers `x` as int64, viewed as uint64 if `x` is unsigned."""
    return out.view(torch.uint64) if x.dtype in _UNSIGNED else out


@kernel
def reduce_sum(x: Any, axes: Any, keepdims: bool) -> Any:
    if axes == ():
        return x.clone() if _is_float(x) else _as_total(x.to(torch.int64, copy=True), x)
    out = torch.sum(x) if axes is None and not keepdims else torch.sum(x, tuple(range(x.ndim)) if axes is None else axes, keepdims)
    return _as_total(out, x) if out.dtype is _INT64 else out


@kernel
def sum_to(x: Any, shape: Any) -> Any:
    """Sum a broadcast gradient back to `shape`."""
    return x.sum_to_size(shape)


@kernel
def expand_reduced(g: Any, shape: Any, axes: Any, keepdims: bool) -> Any:
    """Broadcast the gradient of a reduction over the axes that it removed, as a view."""
    if axes is not None and not keepdims:
        g = g.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape)))
    return g.expand(shape)


@kernel
def reduce_prod(x: Any, axes: Any, keepdims: bool) -> Any:
    axes = range(x.ndim) if axes is None else axes
    if not axes:
        return x.clone() if _is_float(x) else _as_total(x.to(torch.int64, copy=True), x)
    out = x
    for axis in sorted(axes, reverse=True):
        out = torch.prod(out, axis, keepdims)
    out = torch.prod(out) if out.dtype in _SMALL else out  # a small integer is widened even if there was no axis to reduce
    return _as_total(out, x) if out.dtype is _INT64 else out


@kernel
def var(x: Any, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Return the variance; if no numbers come out, without PyTorch's warning of too few of them."""
    if axis == ():
        return torch.zeros_like(x)
    axes = tuple(range(x.ndim)) if axis is None else axis
    if not x.numel() and not (out := torch.mean(x, axes, keepdims)).numel():
        return out
    return torch.var(x, axes, correction=correction, keepdim=keepdims)


@kernel
def all_(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return (x != 0) if axis == () else torch.all(x, tuple(range(x.ndim)) if axis is None else axis, keepdims).to(torch.bool)


@kernel
def any_(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return (x != 0) if axis == () else torch.any(x, tuple(range(x.ndim)) if axis is None else axis, keepdims).to(torch.bool)


@kernel
def count_nonzero(x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
    return reduce_sum(x != 0, axis, keepdims)


def _register_extremum(name: str, function: Any) -> None:
    """Register a kernel for a maximum or minimum over axes."""

    def apply(x: Any, axes: Any, keepdims: bool) -> Any:
        if axes == ():
            return x.clone()
        try:
            return function(x, tuple(range(x.ndim)) if axes is None else axes, keepdims)
        except IndexError as exc:  # an extremum of no elements, for which all other libraries raise ValueError
            raise ValueError(str(exc)) from exc
        except RuntimeError as exc:
            return compute_otherwise(name, apply, exc, (x, axes, keepdims), {})

    apply.__name__ = apply.__qualname__ = name
    KERNELS[name] = handles_lacking(apply)


_register_extremum("reduce_max", torch.amax)
_register_extremum("reduce_min", torch.amin)


@kernel
def running_sum(x: Any, axis: int) -> Any:
    return _as_total(torch.cumsum(x, axis), x)


@kernel
def running_prod(x: Any, axis: int) -> Any:
    return _as_total(torch.cumprod(x, axis), x)


def _find_position(x: Any, axis: int | None, keepdims: bool, function: Any) -> Any:
    """Return `torch.argmax` or `torch.argmin`, which do not support bools."""
    return function(x.to(torch.uint8) if x.dtype is torch.bool else x, axis, keepdims)


@kernel
def argmax(x: Any, *, axis: int | None, keepdims: bool) -> Any:
    return _find_position(x, axis, keepdims, torch.argmax)


@kernel
def argmin(x: Any, *, axis: int | None, keepdims: bool) -> Any:
    return _find_position(x, axis, keepdims, torch.argmin)


# -- order and search ----------------------------------------------------------------------------------------------------


def _register_sort(name: str, part: int) -> None:
    """Register the kernel `sort` or `argsort`, which is this part of the result of `torch.sort`."""

    def apply(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
        try:
            return torch.sort(x, dim=axis, descending=descending, stable=stable)[part]
        except RuntimeError as exc:
            return compute_otherwise(name, apply, exc, (x,), {"axis": axis, "descending": descending, "stable": stable})

    apply.__name__ = apply.__qualname__ = name
    KERNELS[name] = handles_lacking(apply)


_register_sort("sort", 0)
_register_sort("argsort", 1)


@kernel
def ordered(x: Any, order: Any, axis: int) -> Any:
    return torch.gather(x, axis, order)


@kernel
def ordered_back(x: Any, order: Any, axis: int) -> Any:
    return torch.empty_like(x).scatter_(axis, order, x)


@kernel
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    order = None if sorter is None else sorter.to(torch.int64)
    return torch.searchsorted(x1.contiguous(), x2.contiguous(), side=side, sorter=order)  # NB: it warns about other layouts


@kernel
def nonzero(x: Any) -> Any:
    _need_values(x, "nonzero")
    return torch.nonzero(x, as_tuple=True)


def _find_distinct(x: Any, name: str) -> tuple[Any, Any, Any]:
    """Return the distinct values in ascending order, the position of each element among them, and the count of each."""
    _need_values(x, name)
    flat = x.reshape(-1)
    if not x.dtype.is_complex:
        values, inverse, counts = torch.unique(flat, return_inverse=True, return_counts=True)
    else:  # sorted by the real part, then by the imaginary part
        pairs, inverse, counts = torch.unique(torch.view_as_real(flat.resolve_conj()), dim=0, return_inverse=True, return_counts=True)
        values = torch.view_as_complex(pairs)
    counts = torch.where(values != values, torch.ones_like(counts), counts)  # NB: old versions do not count nans
    return values, inverse.reshape(x.shape), counts


@kernel
def unique_all(x: Any) -> Any:
    values, inverse, counts = _find_distinct(x, "unique_all")
    places = torch.arange(x.numel(), device=x.device)
    first = torch.full((values.shape[0],), x.numel(), device=x.device, dtype=torch.int64)
    return values, first.scatter_reduce_(0, inverse.reshape(-1), places, "amin"), inverse, counts


@kernel
def unique_counts(x: Any) -> Any:
    values, _, counts = _find_distinct(x, "unique_counts")
    return values, counts


@kernel
def unique_inverse(x: Any) -> Any:
    values, inverse, _ = _find_distinct(x, "unique_inverse")
    return values, inverse


@kernel
def unique_values(x: Any) -> Any:
    return _find_distinct(x, "unique_values")[0]


# -- reading by a key ------------------------------------------------------------------------------------------------------


def _parts(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_basic(key: Any) -> bool:
    return all(p is None or p is Ellipsis or isinstance(p, slice) or (isinstance(p, int) and not isinstance(p, bool)) for p in _parts(key))


def _has_negative_step(key: Any) -> bool:
    """Return whether a basic key has a slice with a negative step, which PyTorch does not support."""
    return any(isinstance(p, slice) and p.step is not None and p.step < 0 for p in _parts(key))


def _with_positive_steps(key: Any, shape: Any) -> tuple[tuple[Any, ...], list[int]]:
    """Return a basic key with positive steps only, and the axes of its result that must be reversed to give the original key's."""
    parts = _parts(key)
    used = sum(p is not None and p is not Ellipsis for p in parts)
    out: list[Any] = []
    reversed_axes: list[int] = []
    axis = place = 0
    for p in parts:
        if p is Ellipsis:
            axis += len(shape) - used
            place += len(shape) - used
        elif p is None:
            place += 1
        else:
            if isinstance(p, slice):
                if p.step is not None and p.step < 0:
                    places = range(*p.indices(shape[axis]))
                    p = slice(places[-1], places[0] + 1, -p.step) if places else slice(0, 0)
                    reversed_axes.append(place)
                place += 1
            axis += 1
        out.append(p)
    return tuple(out), reversed_axes


def _check_ellipsis(key: tuple[Any, ...]) -> None:
    """Raise IndexError for a key with several ellipses, which PyTorch would accept."""
    if key.count(...) > 1:
        msg = f"an index holds at most one ellipsis, but got {key!r}"
        raise IndexError(msg)


@kernel
@handles_lacking
def index_basic(x: Any, key: Any) -> Any:
    if key.__class__ is tuple:
        _check_ellipsis(key)
    try:
        return x[key]
    except ValueError:  # NB: PyTorch has no negative strides, so this is a copy, which the capability `negative_step` tells the core
        if not _has_negative_step(key):
            raise
        key, axes = _with_positive_steps(key, x.shape)
        return KERNELS["reverse"](x[key], axes)


def _is_full_slice(part: Any) -> bool:
    return isinstance(part, slice) and part.start is None and part.stop is None and part.step is None


def has_no_values(x: Any) -> bool:
    """Return whether the host cannot read the values of a tensor: on the device "meta", and while CUDA captures a graph."""
    return bool(x.is_meta or (x.is_cuda and torch.cuda.is_current_stream_capturing()))


def _count_from_front(indices: Any, length: int, axis: int, checked: bool = False) -> Any:
    """Return integer indices as int64, with negative ones counted from the front.

    NB: on CUDA, an index out of range makes PyTorch useless for the rest of the process ("device-side assert triggered"). So indices are
    checked there too, which waits for the device, unless the caller has `checked` them before.

    Raises
    ------
    IndexError
        If an index is out of range.
    """
    if indices.dtype is not torch.int64:
        indices = indices.to(torch.int64)
    if indices.numel() and (indices.is_cpu or not (checked or has_no_values(indices))):
        low, high = torch.aminmax(indices)
        if low < -length or high >= length:
            given = int(low if low < -length else high)
            msg = f"index {given} is out of range for axis {axis} of length {length}: indices are {-length} to {length - 1}"
            raise IndexError(msg)
        if low >= 0:
            return indices
    return torch.where(indices < 0, indices + length, indices)


def _single_array_axis(key: Any) -> int | None:
    """Return the axis of the only array of integers in a key whose other parts are full slices before it; None for any other key."""
    parts = _parts(key)
    last = parts[-1] if parts else None
    if not isinstance(last, _Tensor) or last.dtype is torch.bool or last.ndim == 0:
        return None
    for p in parts[:-1]:
        if not _is_full_slice(p):
            return None
    return len(parts) - 1


@general
def gather(xp: Any, x: Any, key: Any) -> Any:
    """Return a copy of ``x[key]`` for a key with integer arrays or masks."""
    axis = _single_array_axis(key)
    if axis is not None and axis < x.ndim:
        indices = _parts(key)[-1]
        flat = _count_from_front(indices, x.shape[axis], axis).reshape(-1)
        return torch.index_select(x, axis, flat).reshape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    parts = _parts(key)
    if len(parts) == 1 and parts[0].dtype is torch.bool and parts[0].ndim and parts[0].shape == x.shape[: parts[0].ndim]:
        _need_values(x, "x[mask]")
        return x[parts[0]]
    return xp.take_flat(x, xp.flat_index(key, tuple(x.shape), x))


@kernel
def take_flat(x: Any, flat: Any) -> Any:
    """Return elements of the flattened `x` at positions of any shape."""
    return torch.index_select(x.reshape(-1), 0, flat.reshape(-1)).reshape(flat.shape)


@kernel
def gather_along(x: Any, indices: Any, axis: int) -> Any:
    return torch.gather(x, axis, _count_from_front(indices, x.shape[axis], axis))


# -- adding and writing by a key --------------------------------------------------------------------------------------------


@kernel
def index_basic_transpose(g: Any, key: Any, shape: Any) -> Any:
    out = g.new_zeros(shape)
    if _has_negative_step(key):
        key, axes = _with_positive_steps(key, shape)
        g = torch.flip(g, axes)
    out[key].copy_(g)
    return out


@kernel
def add_at(buffer: Any, g: Any, key: Any) -> Any:
    if _has_negative_step(key):
        key, axes = _with_positive_steps(key, buffer.shape)
        g = torch.flip(g, axes)
    buffer[key].add_(g)
    return buffer


@general
def scatter_add(xp: Any, values: Any, key: Any, shape: Any) -> Any:
    """Return zeros of `shape` with `values` added at an advanced index; duplicates in it accumulate."""
    return scatter_into(xp, values.new_zeros(shape), values, key)


@general
def scatter_into(xp: Any, out: Any, values: Any, key: Any) -> Any:
    """Add `values` to `out` in place at an advanced index, where duplicates accumulate, and return `out`.

    NB: `index_add_` adds in a fixed order; `index_put_` with duplicates does not if it runs on several threads.
    """
    axis = _single_array_axis(key)
    if axis is not None and axis < out.ndim:
        flat = _count_from_front(_parts(key)[-1], out.shape[axis], axis, checked=True).reshape(-1)
        return out.index_add_(axis, flat, values.reshape((*out.shape[:axis], flat.shape[0], *out.shape[axis + 1 :])))
    shape = tuple(out.shape)
    flat = xp.flat_index(key, shape, values).reshape(-1)
    if out.is_contiguous():
        out.view(-1).index_add_(0, flat, values.reshape(-1))
        return out
    return out.add_(segment_sum(values.reshape(-1), flat, out.numel()).view(shape))


@kernel
def segment_sum(values: Any, positions: Any, size: int) -> Any:
    """Return the sum of the `values` (1-d) at each of the positions 0 .. size - 1."""
    return values.new_zeros(size).index_add_(0, positions, values)


@kernel
def last_writer(positions: Any, size: int) -> Any:
    """Return for each of the places 0 .. size - 1 1 + the index of its last occurrence in `positions`, or 0 if it does not occur."""
    numbers = torch.arange(1, positions.shape[0] + 1, device=positions.device)
    return torch.zeros(size, dtype=torch.int64, device=positions.device).scatter_reduce_(0, positions, numbers, "amax")


@kernel
def scatter_along(x: Any, indices: Any, shape: Any, axis: int) -> Any:
    """Return zeros of `shape` with `x` added at indices along an axis, the transpose of `gather_along`; duplicates accumulate."""
    return x.new_zeros(shape).scatter_add_(axis, _count_from_front(indices, shape[axis], axis, checked=True), x)


def _are_distinct(flat: Any) -> bool:
    """Return whether all positions are different."""
    found = torch.sort(flat).values
    return not bool((found[1:] == found[:-1]).any())


@general
def written(xp: Any, buffer: Any, key: Any, value: Any) -> Any:
    """Write `value` to ``buffer[key]`` in place and return `buffer`; if the key has duplicates, the last value wins."""
    if isinstance(value, _Tensor) and shares_memory(buffer, value):
        value = value.clone()  # NB: PyTorch raises an error for operands that partly overlap
    if _is_basic(key):
        _check_ellipsis(_parts(key))
        if _has_negative_step(key):
            key, axes = _with_positive_steps(key, buffer.shape)
            if isinstance(value, _Tensor) and value.ndim:
                value = torch.flip(value.expand(buffer[key].shape), axes)
        buffer[key] = value
        return buffer
    parts = _parts(key)
    if len(parts) == 1 and parts[0].dtype is torch.bool and parts[0].ndim and (not isinstance(value, _Tensor) or not value.ndim):
        if parts[0].shape != buffer.shape[: parts[0].ndim]:
            msg = f"a mask of shape {tuple(parts[0].shape)} does not fit an array of shape {tuple(buffer.shape)}"
            raise IndexError(msg)
        return buffer.masked_fill_(parts[0].reshape((*parts[0].shape, *(1,) * (buffer.ndim - parts[0].ndim))), value)
    shape = tuple(buffer.shape)
    flat = xp.flat_index(key, shape, buffer)
    count = flat.numel()
    if isinstance(value, _Tensor):
        # As in NumPy and PyTorch, surplus leading axes of length 1 are dropped.
        extra = max(value.ndim - flat.ndim, 0)
        if all(n == 1 for n in value.shape[:extra]):
            value = value.reshape(value.shape[extra:])
        value = value.expand(flat.shape).reshape(-1).to(buffer.dtype)
    if not count:
        return buffer
    flat = flat.reshape(-1)
    if isinstance(value, _Tensor) and flat.is_cpu and buffer.is_contiguous() and count < buffer.numel() and _are_distinct(flat):
        buffer.view(-1).index_copy_(0, flat, value)  # the time is proportional to the size of the value, not of the buffer
        return buffer
    writer = last_writer(flat, buffer.numel())
    if isinstance(value, _Tensor):
        new = value[torch.clamp(writer - 1, min=0)].reshape(shape)
    else:
        new = torch.full((), value, dtype=buffer.dtype, device=buffer.device)
    return buffer.copy_(torch.where((writer > 0).reshape(shape), new, buffer))
