"""Kernels that are faster in NumPy than the Array API calls that the rows declare, or that NumPy spells differently."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad.backend import numpy_name

__all__ = ["HAS_WIDE_INDICES", "KERNELS", "POSITIONS", "native", "widened"]

#: Functions that NumPy >= 2.1 has under the standard's name, although `numpy_name` translates them for programs.
_SAME_NAME = frozenset(("empty", "matmul", "matrix_transpose", "ones", "permute_dims", "zeros"))
#: Functions whose form differs in NumPy: without an axis, its `count_nonzero` returns a Python int.
_UNLIKE = frozenset(("count_nonzero",))

#: The kernels by name; the first ones are functions of NumPy.
KERNELS: dict[str, Any] = {
    "clip": np.clip, "conj": np.conjugate, "gather_along": np.take_along_axis, "running_prod": np.cumprod, "running_sum": np.cumsum,
}  # fmt: skip


def native(name: str) -> Callable[..., Any] | None:
    """Return NumPy's own function for a kernel; None if NumPy has none.

    NB: array-api-compat's namespace has most of them too, but takes as long to import as NumPy itself, and wraps some of them.
    """
    known = name if name in _SAME_NAME else numpy_name(name)
    return None if known is None or name in _UNLIKE else getattr(np, known, None)


def widened(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel of a NumPy with 32-bit indices whose positions are int64, the default dtype of indices, as in its arguments."""

    def wide(x: Any) -> Any:
        return x.astype(np.int64) if getattr(x, "dtype", None) == np.int32 else x

    @functools.wraps(function)
    def call(x: Any, *args: Any, **options: Any) -> Any:
        if options.get("sorter") is not None:  # NumPy refuses wider ones; their range has been checked
            options["sorter"] = options["sorter"].astype(np.int32)
        out = function(x, *args, **options)
        if name in ("nonzero", "unique_all", "unique_counts", "unique_inverse"):
            parts = list(out)
            first = 0 if name == "nonzero" else 1  # the others begin with the values
            parts[first:] = map(wide, parts[first:])
            return type(out)(*parts) if hasattr(out, "_fields") else tuple(parts)
        return wide(out)

    return call


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a kernel under its function's name (a trailing underscore is dropped)."""
    KERNELS[function.__name__.rstrip("_")] = function
    return function


# NB: `Any` because NumPy's type hints lack the positional `keepdims`, which makes these calls cheap.
_add_reduce: Any = np.add.reduce
_max_reduce: Any = np.maximum.reduce
_min_reduce: Any = np.minimum.reduce
_ndarray = np.ndarray
_INDEX = np.dtype(np.intp)
#: Whether NumPy indexes with 64 bits. Where it has 32, as in WebAssembly, it wraps larger integers silently.
HAS_WIDE_INDICES = _INDEX.itemsize == 8
#: Kernels whose results, or some of them, have the dtype of NumPy's indices.
POSITIONS = frozenset(("argmax", "argmin", "argsort", "count_nonzero", "nonzero", "searchsorted"))
POSITIONS |= {f"unique_{what}" for what in ("all", "counts", "inverse")}
#: Complex dtypes with the memory of two numbers of a real dtype.
_PAIRS: dict[Any, Any] = {np.dtype(np.float64): np.dtype(np.complex128), np.dtype(np.float32): np.dtype(np.complex64)}
#: Integers as wide as each floating dtype.
_BITS: dict[Any, Any] = {np.dtype(f"f{n}"): np.dtype(f"i{n}") for n in (2, 4, 8)}


@kernel
def eigen_pairs_by_upper(x: Any) -> Any:
    return tuple(np.linalg.eigh(x, "U"))


@kernel
def keep(cond: Any, x: Any) -> Any:
    """Return `x` where `cond` is true, else 0 (even where `x` is infinite or nan)."""
    # NB: this multiplies the bits by 0 or 1. `np.where` and masked ufuncs branch at each element, which is ten times as slow for random
    # conditions, and `x * cond` has nan where `x` is infinite and `cond` is false.
    bits = _BITS.get(x.dtype)
    if bits is None:
        return np.where(cond, x, x.dtype.type(0))
    return np.multiply(x.view(bits), cond).view(x.dtype)


@kernel
def share(x: Any, low: Any, high: Any) -> Any:
    """Return 0 where ``low < high``, half of `x` where they are equal, and `x` elsewhere."""
    out = keep(np.logical_not(low < high), x)
    ties = low == high
    if np.count_nonzero(ties):  # NB: this check is cheap, and most arrays have no ties
        weights = np.multiply(ties, -0.5, dtype=out.dtype)
        weights += 1  # exactly 1/2 or 1
        out *= weights
    return out


@kernel
def copy(x: Any) -> Any:
    return np.array(x, copy=True)


@kernel
def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:  # noqa: A001 (the standard's name)
    return reduce_sum(x, axis, keepdims) if dtype is None else np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


@kernel
def reduce_sum(x: Any, axes: Any, keepdims: bool) -> Any:
    # NB: np.sum costs twice as much as its ufunc's reduce on small arrays.
    if x.dtype.kind in "biu":
        return np.sum(x, axis=axes, keepdims=keepdims)
    return _add_reduce(x, axes, None, None, keepdims)


#: How to undo a broadcast, by the two shapes: the axes to sum over, keepdims, and whether to reshape. NB: computing this takes longer than
#: a small sum.
_SUMS: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...] | None, bool, bool]] = {}


def _plan_sum(full: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[int, ...] | None, bool, bool]:
    extra = len(full) - len(shape)
    ones = tuple(i + extra for i, n in enumerate(shape) if n == 1 and full[i + extra] != 1)
    axes = tuple(range(extra)) + ones
    if len(_SUMS) >= 4096:
        _SUMS.clear()
    plan = _SUMS[full, shape] = (None if len(axes) == len(full) else axes, extra == 0, extra > 0 and bool(ones))
    return plan


@kernel
def sum_to(x: Any, shape: tuple[int, ...]) -> Any:
    """Sum a broadcast gradient back to `shape`."""
    full = x.shape
    if full == shape:
        return x
    plan = _SUMS.get((full, shape))
    axes, keepdims, reshape = _plan_sum(full, shape) if plan is None else plan
    x = _add_reduce(x, axes, None, None, keepdims)
    return x.reshape(shape) if reshape else x


@kernel
def expand_reduced(g: Any, shape: tuple[int, ...], axes: Any, keepdims: bool) -> Any:
    """Expand a reduced gradient to the shape of the reduction's operand, as a read-only view."""
    g = np.asarray(g)
    if axes is not None and not keepdims:
        index: list[Any] = [slice(None)] * len(shape)
        for a in axes:
            index[a] = None
        g = g[tuple(index)]
    if 0 in shape:
        return np.broadcast_to(g, shape)
    if not g.flags.c_contiguous:
        if any(g.strides):
            return np.broadcast_to(g, shape)
        g = np.asarray(g[(0,) * g.ndim])  # all strides are 0, as in the gradient of a sum: one number is expanded
    # NB: this does what np.broadcast_to does, at a quarter of its cost on small arrays.
    strides = tuple(s if n != 1 else 0 for s, n in zip(g.strides, g.shape)) or (0,) * len(shape)
    out = _ndarray(shape, g.dtype, g, 0, strides)
    out.flags.writeable = False
    return out


@kernel
def broadcast_view(x: Any, shape: tuple[int, ...]) -> Any:
    out = np.broadcast_to(x, shape)
    if x.flags.writeable:
        out.flags.writeable = True  # parts that are not expanded may be written to; xpgrad refuses writes to expanded memory
    return out


@kernel
def index_basic(x: Any, key: Any) -> Any:
    out = x[key]
    if out.__class__ is not _ndarray:
        # An integer for every axis copies the element into a scalar; an added ellipsis makes it a view.
        out = x[(*key, ...)] if key.__class__ is tuple else x[key, ...]
    return out


@kernel
def index_basic_transpose(g: Any, key: Any, shape: tuple[int, ...]) -> Any:
    out = np.zeros(shape, g.dtype)
    out[key] = g
    return out


@kernel
def add_at(buffer: Any, g: Any, key: Any) -> Any:
    if buffer.__class__ is not _ndarray:
        buffer = np.array(buffer)  # the buffer is an immutable scalar, whose copy can be written to
    part = buffer[key]
    if part.__class__ is _ndarray:
        np.add(part, g, out=part)
    else:
        buffer[key] = part + g
    return buffer


@kernel
def scale(g: Any, factor: Any) -> Any:
    return np.multiply(g, factor, out=g) if g.flags.writeable else g * factor


@kernel
def scatter_add(values: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of `shape` with `values` added at an advanced index, duplicates included."""
    return scatter_into(np.zeros(shape, values.dtype), values, key)


def _flatten_rows(rows: Any, count: int, width: int) -> Any:
    """Return the flat positions of the elements of some rows of an array with `count` rows of `width` elements each.

    Negative rows count from the end; their positions may be negative and count from the end as well.
    """
    if count <= rows.size:
        # NB: for short rows, taking rows from a table of positions is three times as fast as adding to each row's start.
        return np.arange(count * width, dtype=_INDEX).reshape(count, width).take(rows, axis=0).reshape(-1)
    return (rows.reshape(-1, 1) * width + np.arange(width)).reshape(-1)


@kernel
def scatter_into(out: Any, values: Any, key: Any) -> Any:
    """Add `values` to `out`, which the caller owns, at an advanced index, duplicates included; return `out`.

    Values for the same position are added one by one, in the order of the key.

    NB: `np.add.at` is fast only in one dimension and with equal dtypes, so rows are flattened first.
    """
    if out.__class__ is not _ndarray:
        out = np.array(out)  # the sum of 0-d gradients is an immutable scalar in NumPy
    if key.__class__ is tuple and len(key) == 1:
        key = key[0]
    if key.__class__ is _ndarray and key.dtype.kind in "iu" and out.flags.c_contiguous:
        if key.dtype is not _INDEX:  # the positions below must not wrap around in the dtype of the key
            key = key.astype(_INDEX, copy=False)
        shape = out.shape
        width = math.prod(shape[1:])
        if width == 1:
            np.add.at(out.reshape(-1), key.reshape(-1), values.reshape(-1))
        elif out.size:
            flat_out, flat_values = out.reshape(-1), np.ascontiguousarray(values).reshape(-1)
            pair = _PAIRS.get(values.dtype)
            if pair is not None and not width % 2:  # adding two numbers at a time as one complex number halves the number of indices
                flat_out, flat_values, width = flat_out.view(pair), flat_values.view(pair), width // 2
            np.add.at(flat_out, _flatten_rows(key.reshape(-1), shape[0], width), flat_values)
    elif key.__class__ is _ndarray and key.dtype.kind == "b":  # a mask has no duplicates
        out[key] += values
    else:
        np.add.at(out, key, values)
    return out


@kernel
def reshape_to(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape)


@kernel
def transpose_axes(x: Any, axes: tuple[int, ...]) -> Any:
    return x.transpose(axes)


@kernel
def swap_last(x: Any) -> Any:
    return x.swapaxes(-1, -2)


@kernel
def to_dtype(x: Any, dtype: Any) -> Any:
    if dtype.kind not in "cb" and x.dtype.kind == "c":  # the bool of a complex number asks for both parts
        x = x.real
    return x.astype(dtype) if 0 not in x.strides else _copy_expanded(x, dtype)


def _copy_expanded(x: Any, dtype: Any) -> Any:
    """Return a copy of an expanded array in another dtype, with the memory layout of an elementwise operation's result.

    NB: `astype` and `np.array` would make the expanded axes the innermost ones.
    """
    out = np.nditer([x, None], flags=["zerosize_ok"], op_dtypes=[x.dtype, dtype]).operands[1]
    np.copyto(out, x, casting="unsafe")
    return out


@kernel
def wide(x: Any) -> Any:
    return x.astype(np.float32) if x.dtype.char == "e" else x


def _count(x: Any, axes: Any) -> int:
    if axes is None:
        return int(x.size)
    n, shape = 1, x.shape
    for a in axes:
        n *= shape[a]
    return n


@kernel
def reduce_mean(x: Any, axes: Any, keepdims: bool) -> Any:
    # NB: np.mean costs three times as much as this on small arrays, but sums float16 in float32.
    if x.dtype.char == "e":
        return np.mean(x, axis=axes, keepdims=keepdims)
    return _add_reduce(x, axes, None, None, keepdims) / _count(x, axes)


@kernel
def reduce_var(x: Any, axes: Any, correction: float, keepdims: bool) -> Any:
    # NB: np.var is slow on small arrays, as np.mean is; float16 needs it because its sums would overflow.
    if x.dtype.char == "e":
        return np.var(x, axis=axes, dtype=np.float32, ddof=correction, keepdims=keepdims).astype(x.dtype)
    n = _count(x, axes)
    d = x - _add_reduce(x, axes, None, None, True) / n
    d = d.real * d.real + d.imag * d.imag if d.dtype.kind == "c" else d * d
    return _add_reduce(d, axes, None, None, keepdims) / max(n - correction, 0)


@kernel
def ordered_back(x: Any, order: Any, axis: int) -> Any:
    out = np.empty_like(x)
    np.put_along_axis(out, order, x, axis)
    return out


@kernel
def reduce_prod(x: Any, axes: Any, keepdims: bool) -> Any:
    return np.prod(x, axis=axes, keepdims=keepdims)


@kernel
def reduce_max(x: Any, axes: Any, keepdims: bool) -> Any:
    return _max_reduce(x, axes, None, None, keepdims)


@kernel
def reduce_min(x: Any, axes: Any, keepdims: bool) -> Any:
    return _min_reduce(x, axes, None, None, keepdims)


@kernel
def gather(x: Any, key: Any) -> Any:
    if key.__class__ is tuple and len(key) == 1:
        key = key[0]
        if key.__class__ is _ndarray and key.dtype.kind in "iu":
            return x.take(key, axis=0)  # NB: half the cost of x[key]
    return x[key]


@kernel
def clone(x: Any) -> Any:
    return np.array(x, copy=True, order="K") if 0 not in x.strides else _copy_expanded(x, x.dtype)


@kernel
def clone_contiguous(x: Any) -> Any:
    return np.array(x, copy=True, order="C")


@kernel
def written(buffer: Any, key: Any, value: Any) -> Any:
    buffer = np.asarray(buffer)
    buffer[key] = value
    return buffer


@kernel
def surely_nonzero(x: Any) -> bool:
    return bool(x.all())


@functools.lru_cache(maxsize=64)
def _triangle(rows: int, columns: int, k: int) -> Any:
    """Return a mask that is true on and below a diagonal; cached, because `np.tri` dominates the cost for small matrices."""
    mask = np.tri(rows, columns, k, dtype=bool)
    mask.flags.writeable = False
    return mask


#: Masks of at most this many elements are cached.
_SMALL = 4096


@kernel
def lower(x: Any, k: int) -> Any:
    rows, columns = x.shape[-2:]
    return np.where(_triangle(rows, columns, k), x, np.zeros((), x.dtype)) if rows * columns <= _SMALL else np.tril(x, k)


@kernel
def upper(x: Any, k: int) -> Any:
    rows, columns = x.shape[-2:]
    return np.where(_triangle(rows, columns, k - 1), np.zeros((), x.dtype), x) if rows * columns <= _SMALL else np.triu(x, k)


@kernel
def diagonal_view(x: Any, offset: int) -> Any:
    out = np.diagonal(x, offset, -2, -1)
    if x.flags.writeable:
        out.flags.writeable = True  # NB: NumPy hands out read-only diagonals
    return out


@kernel
def diagonal_transpose(x: Any, shape: tuple[int, ...], offset: int) -> Any:
    out = np.zeros(shape, x.dtype)
    diagonal_view(out, offset)[...] = x
    return out


class _LinearAlgebra:
    """The extension `linalg` of NumPy's namespace, with an `svd` and a `pinv` that take matrices with infinities.

    NB: LAPACK's computation of singular vectors may not terminate if an element is infinite; that of singular values alone does.
    """

    def __getattr__(self, name: str) -> Any:
        import array_api_compat.numpy.linalg as namespace  # loads late, as the namespace itself does

        found = getattr(namespace, name)
        setattr(self, name, found)
        return found

    solve = staticmethod(np.linalg.solve)  # NB: follows the standard since NumPy 2; array-api-compat's version is slower

    def svd(self, x: Any, *, full_matrices: bool = True) -> Any:
        if np.isfinite(x).all():
            return np.linalg.svd(x, full_matrices=full_matrices)
        values = np.linalg.svdvals(x)  # raises for nan
        finite = np.isfinite(x).all(axis=(-2, -1))
        u, _, vh = np.linalg.svd(np.where(finite[..., None, None], x, 0), full_matrices=full_matrices)
        u[~finite] = vh[~finite] = np.nan
        return u, values, vh

    def pinv(self, x: Any, *, rtol: Any = None) -> Any:
        if np.isfinite(x).all():
            return self._pinv(x, rtol=rtol)
        np.linalg.svdvals(x)  # raises for nan
        finite = np.isfinite(x).all(axis=(-2, -1))
        out = self._pinv(np.where(finite[..., None, None], x, 0), rtol=rtol)
        out[~finite] = np.nan
        return out

    @property
    def _pinv(self) -> Any:
        import array_api_compat.numpy.linalg as namespace  # loads late, like `__getattr__`

        return namespace.pinv


KERNELS["linalg"] = _LinearAlgebra()
