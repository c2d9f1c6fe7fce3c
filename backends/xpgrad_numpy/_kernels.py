"""Kernels for which NumPy has something faster, or different, than the Array API calls that the rows declare."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad.backend import numpy_name

__all__ = ["KERNELS", "native"]

#: Functions of the standard that NumPy >= 2.1 has under the same name, although programs write them otherwise.
_SAME_NAME = frozenset(("empty", "matmul", "matrix_transpose", "ones", "permute_dims", "zeros"))
#: Functions that NumPy has in another form: it counts everything in a Python int.
_UNLIKE = frozenset(("count_nonzero",))

#: Kernels that are functions of NumPy.
KERNELS: dict[str, Any] = {
    "clip": np.clip, "conj": np.conjugate, "gather_along": np.take_along_axis, "running_prod": np.cumprod, "running_sum": np.cumsum,
}  # fmt: skip


def native(name: str) -> Callable[..., Any] | None:
    """Return NumPy's own function for a kernel; None if it has none.

    NB: most are also those of array-api-compat's namespace, but that takes as long to import as NumPy itself, and wraps some of them.
    """
    known = name if name in _SAME_NAME else numpy_name(name)
    return None if known is None or name in _UNLIKE else getattr(np, known, None)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a kernel under its function's name (a trailing underscore is dropped)."""
    KERNELS[function.__name__.rstrip("_")] = function
    return function


# NB: NumPy's own type hints do not know the positional `keepdims` that makes these calls cheap.
_add_reduce: Any = np.add.reduce
_max_reduce: Any = np.maximum.reduce
_min_reduce: Any = np.minimum.reduce
_ndarray = np.ndarray
_INDEX = np.dtype(np.intp)
_PAIRS: dict[Any, Any] = {np.dtype(np.float64): np.dtype(np.complex128), np.dtype(np.float32): np.dtype(np.complex64)}
#: Integers as wide as each floating dtype.
_BITS: dict[Any, Any] = {np.dtype(f"f{n}"): np.dtype(f"i{n}") for n in (2, 4, 8)}


@kernel
def keep(cond: Any, x: Any) -> Any:
    """`x` where `cond` holds, else 0 (whatever `x` is there)."""
    # NB: bits times 0 or 1. `np.where` and masked ufuncs branch at each element, ten times as slow where conditions are random, and
    # inf * False is nan.
    bits = _BITS.get(x.dtype)
    if bits is None:
        return np.where(cond, x, x.dtype.type(0))
    return np.multiply(x.view(bits), cond).view(x.dtype)


@kernel
def share(x: Any, low: Any, high: Any) -> Any:
    """0 where ``low < high``, half of `x` where they are equal, else `x`."""
    out = keep(np.logical_not(low < high), x)
    ties = low == high
    if np.count_nonzero(ties):  # NB: looking is cheap; most arrays have none
        weights = np.multiply(ties, -0.5, dtype=out.dtype)
        weights += 1  # 1/2 or 1, exactly: of inf and nan, too
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


#: How to undo a broadcast, by the two shapes: axes, keepdims, whether to reshape. NB: working it out takes longer than a small sum.
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
    """Return the inverse of a reduction's change of shape: a read-only view."""
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
        g = np.asarray(g[(0,) * g.ndim])  # one number everywhere, as the gradient of a sum is: expanded from itself
    # NB: this is what np.broadcast_to does, at a quarter of its cost on small arrays.
    strides = tuple(s if n != 1 else 0 for s, n in zip(g.strides, g.shape)) or (0,) * len(shape)
    out = _ndarray(shape, g.dtype, g, 0, strides)
    out.flags.writeable = False
    return out


@kernel
def broadcast_view(x: Any, shape: tuple[int, ...]) -> Any:
    out = np.broadcast_to(x, shape)
    if x.flags.writeable:
        out.flags.writeable = True  # a part of it may be written to; xpgrad itself refuses writes to memory that is expanded
    return out


@kernel
def index_basic(x: Any, key: Any) -> Any:
    out = x[key]
    if out.__class__ is not _ndarray:
        # An integer for every axis copies the element into a scalar; with an ellipsis it stays a view.
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
        buffer = np.array(buffer)  # an immutable scalar: what is added to a view of it would be lost
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


def _places(rows: Any, count: int, width: int) -> Any:
    """The flat positions of some of an array's `count` rows, of `width` elements each; both count from the end where they are negative."""
    if count <= rows.size:
        # NB: copying ready rows of positions is three times as fast as adding to each row's start, where rows are short.
        return np.arange(count * width, dtype=_INDEX).reshape(count, width).take(rows, axis=0).reshape(-1)
    return (rows.reshape(-1, 1) * width + np.arange(width)).reshape(-1)


@kernel
def scatter_into(out: Any, values: Any, key: Any) -> Any:
    """`out`, which belongs to the caller, with `values` added at an advanced index, duplicates included.

    They are added one after the other, in the order of the key.

    NB: `np.add.at` is fast only in one dimension and with equal dtypes, so rows are flattened first.
    """
    if out.__class__ is not _ndarray:
        out = np.array(out)  # an immutable scalar, which is what NumPy adds up gradients without axes to
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
            if pair is not None and not width % 2:  # two numbers at once, as one complex: half as many indices
                flat_out, flat_values, width = flat_out.view(pair), flat_values.view(pair), width // 2
            np.add.at(flat_out, _places(key.reshape(-1), shape[0], width), flat_values)
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
    return x.astype(dtype) if 0 not in x.strides else _unfolded(x, dtype)


def _unfolded(x: Any, dtype: Any) -> Any:
    """A copy of an expanded array, with its axes in the order in which operations leave them; NumPy has the expanded ones innermost."""
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
    # NB: np.mean costs three times as much as this on small arrays, but it adds up float16 in float32.
    if x.dtype.char == "e":
        return np.mean(x, axis=axes, keepdims=keepdims)
    return _add_reduce(x, axes, None, None, keepdims) / _count(x, axes)


@kernel
def reduce_var(x: Any, axes: Any, correction: float, keepdims: bool) -> Any:
    # NB: as for the mean.
    if x.dtype.char == "e":
        return np.var(x, axis=axes, dtype=np.float32, ddof=correction, keepdims=keepdims).astype(x.dtype)  # NumPy's sums overflow
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
    return np.array(x, copy=True, order="K") if 0 not in x.strides else _unfolded(x, x.dtype)


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
    """True on and below a diagonal; kept, since for a small matrix `np.tri` costs more than everything else."""
    mask = np.tri(rows, columns, k, dtype=bool)
    mask.flags.writeable = False
    return mask


_SMALL = 4096  # elements of a triangle that is kept


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
    """The extension `linalg` of NumPy's namespace, for matrices with infinities, too.

    NB: LAPACK's decomposition into singular vectors need not return where an element is infinite; that into singular values alone does.
    """

    def __getattr__(self, name: str) -> Any:
        import array_api_compat.numpy.linalg as namespace  # loads late, as the namespace itself does

        found = getattr(namespace, name)
        setattr(self, name, found)
        return found

    solve = staticmethod(np.linalg.solve)  # NB: the standard's since NumPy 2; array-api-compat's looks for its parts at each call

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
        import array_api_compat.numpy.linalg as namespace  # loads late: as above

        return namespace.pinv


KERNELS["linalg"] = _LinearAlgebra()
