"""Lazy kernels that dask's namespace lacks, or whose gradients would not have the chunks of their operands."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import array_api_compat.numpy
import dask.array
import numpy as np

from xpgrad.backend import spellings
from xpgrad.errors import CapabilityError
from xpgrad_dask.chunks import is_unknown, unknown_length

__all__ = ["EXTENSIONS", "KERNELS", "PLAIN", "Extension", "broadcast_to", "chunks_for", "fit", "fit_like", "guard_lengths", "size_is_known"]

da: Any = dask.array  # it has no type hints on most of its functions, and wrong ones on some


def size_is_known(x: Any) -> bool:
    """Return whether all lengths of an array, or of a shape, are known."""
    return not any(is_unknown(n) for n in getattr(x, "shape", x))


def chunks_for(shape: Any, dtype: Any) -> Any:
    """Return the chunks of a `ChunkedShape`; for a plain shape, those that dask would choose."""
    chunks = getattr(shape, "chunks", None)
    return da.core.normalize_chunks("auto", tuple(shape), dtype=dtype) if chunks is None else chunks


def fit(x: Any, shape: Any) -> Any:
    """Return `x` in the chunks of a `ChunkedShape`; unchanged if `shape` is a plain shape or a length is unknown."""
    chunks = getattr(shape, "chunks", None)
    if chunks is None or x.chunks == chunks or not size_is_known(shape) or not size_is_known(x):
        return x
    return x.rechunk(chunks)


def fit_like(x: Any, like: Any) -> Any:
    """Return `x` in the chunks of `like`, which has the same shape."""
    return x if x.chunks == like.chunks or not size_is_known(like) else x.rechunk(like.chunks)


# -- between an array and its reduction ------------------------------------------------------------------------------------


def _broadcast_block(like: Any, block: Any) -> Any:
    return np.broadcast_to(block, like.shape)


def _are_equal(a: float, b: float) -> bool:
    """Return whether two lengths are equal; two unknown ones count as equal, and are compared when they are computed."""
    return is_unknown(b) if is_unknown(a) else a == b


def broadcast_to(x: Any, shape: Any) -> Any:
    """Broadcast `x` to a shape, in the chunks of the shape, so that no chunk becomes as large as the whole array."""
    like = getattr(shape, "like", None)
    if like is not None:
        if x.numblocks == like.numblocks and not size_is_known(x) and all(map(_are_equal, x.shape, like.shape)):
            return x
        return da.map_blocks(_broadcast_block, like, x, dtype=x.dtype, meta=np.empty((0,) * like.ndim, x.dtype))
    if not size_is_known(shape):
        msg = "broadcasting"
        raise unknown_length(msg)
    target = tuple(int(n) for n in shape)
    if tuple(x.shape) == target:
        return fit(x, shape)
    chunks = chunks_for(shape, x.dtype)
    extra = len(target) - x.ndim
    if extra >= 0:
        # Along an axis that is not repeated, dask requires the chunks of `x`.
        x = x.rechunk({i: chunks[i + extra] for i, n in enumerate(x.shape) if n == target[i + extra] and x.chunks[i] != chunks[i + extra]})
        chunks = tuple(c if i < extra or x.shape[i - extra] == 1 else x.chunks[i - extra] for i, c in enumerate(chunks))
    return da.broadcast_to(x, target, chunks=chunks)


def expand_reduced(xp: Any, x: Any, shape: Any, axes: Any, keepdims: bool) -> Any:
    """Broadcast the gradient of a reduction over the axes that it removed."""
    if axes is not None and not keepdims:
        x = x[tuple(None if i in axes else slice(None) for i in range(len(shape)))]
    return broadcast_to(x, shape)


def sum_to(xp: Any, x: Any, shape: Any) -> Any:
    """Sum a broadcast gradient back to `shape`."""
    extra = x.ndim - len(shape)
    if extra == 0 and size_is_known(x) and size_is_known(shape) and tuple(x.shape) == tuple(shape):
        return x
    axes = tuple(i for i, n in enumerate(shape, start=extra) if n == 1 and x.shape[i] != 1)
    if axes:
        x = x.sum(axis=axes, keepdims=True, dtype=x.dtype)
    if extra:
        x = x.sum(axis=tuple(range(extra)), dtype=x.dtype)
    if len(x.shape) != len(shape) or any(a != b for a, b in zip(x.shape, shape) if not is_unknown(a) and not is_unknown(b)):
        msg = f"a gradient of shape {x.shape} does not fit an operand of shape {tuple(shape)}"
        raise RuntimeError(msg)
    return fit(x, shape)


def reshape(x: Any, shape: Any, *, copy: bool | None = None) -> Any:
    """Reshape `x`; if lengths are unknown, only axes of length 1 may be added or removed."""
    if size_is_known(x) and size_is_known(shape):
        if x.ndim and 0 not in x.shape:
            x = _reshape_known(x, tuple(shape))
        else:
            x = x.reshape(tuple(shape)) if x.ndim or not len(shape) else x[(None,) * len(shape)]
        return fit(x, shape)
    old = [i for i, n in enumerate(x.shape) if n != 1]
    new = [n for n in shape if n != 1]
    if len(old) != len(new) or any(x.shape[i] != n for i, n in zip(old, new) if not is_unknown(x.shape[i]) and not is_unknown(n)):
        msg = f"a reshape from {x.shape} to {tuple(shape)}"
        raise unknown_length(msg)
    x = x[tuple(slice(None) if i in old else 0 for i in range(x.ndim))]
    return x[tuple(None if n == 1 else slice(None) for n in shape)]


def _reshape_known(x: Any, shape: tuple[int, ...]) -> Any:
    try:
        return x.reshape(shape)
    except NotImplementedError:  # dask merges axes, or splits them, not both at once
        return x.reshape(-1).reshape(shape)


def reshape_to(xp: Any, x: Any, shape: Any) -> Any:
    """Reshape `x`, as the kernel `reshape_to`."""
    return reshape(x, shape)


def copy(x: Any) -> Any:
    """Return another object with the same graph, which is enough because arrays are never written in place."""
    return x.copy()


def _triangle(x: Any, k: int, lower: bool) -> Any:
    # NB: dask's `tril` and `triu` make the mask in the dtype of `x`, which warns for complex numbers.
    down, across = (da.arange(n, chunks=(c,)) for n, c in zip(x.shape[-2:], x.chunks[-2:]))
    distance = across[None, :] - down[:, None]
    return da.where(distance <= k if lower else distance >= k, x, x.dtype.type(0))


def tril(x: Any, *, k: int = 0) -> Any:
    """Return the lower triangles of matrices."""
    return _triangle(x, k, True)


def triu(x: Any, *, k: int = 0) -> Any:
    """Return the upper triangles of matrices."""
    return _triangle(x, k, False)


# -- along one axis -----------------------------------------------------------------------------------------------------------


def merge_chunks(x: Any, axes: Any) -> Any:
    """Rechunk `x` to one chunk along each of `axes`; other axes are divided further, so that chunks do not grow."""
    many = {a for a in axes if x.numblocks[a] > 1}
    if not many:
        return x
    if not size_is_known(x):
        if any(is_unknown(x.shape[a]) for a in many):
            msg = "a function along an axis in several chunks"
            raise unknown_length(msg)
        return x.rechunk(dict.fromkeys(many, -1))
    return x.rechunk({i: -1 if i in axes else "auto" for i in range(x.ndim)})


def _align_chunks(like: Any, x: Any, axis: int) -> Any:
    """Return `x` in the chunks of `like` along all axes but `axis`."""
    other = {i: c for i, c in enumerate(like.chunks) if i != axis and x.chunks[i] != c}
    # Unknown lengths with equally many chunks are assumed to be equal; if they are not, NumPy raises when they are computed.
    same = [i for i, c in other.items() if is_unknown(sum(c)) and is_unknown(sum(x.chunks[i])) and len(c) == len(x.chunks[i])]
    return x.rechunk({i: c for i, c in other.items() if i not in same})


def take_along_axis(x: Any, indices: Any, *, axis: int) -> Any:
    """Return elements at indices along an axis, which is merged into one chunk; the indices vary along the other axes."""
    axis %= x.ndim
    x = merge_chunks(x, (axis,))
    indices = _align_chunks(x, merge_chunks(indices, (axis,)), axis)
    return da.map_blocks(
        _take_along_block, x, indices, axis=axis, dtype=x.dtype, meta=np.empty((0,) * x.ndim, x.dtype),
        chunks=(*x.chunks[:axis], indices.chunks[axis], *x.chunks[axis + 1 :]),
    )  # fmt: skip


def _take_along_block(x: Any, indices: Any, axis: int) -> Any:
    return np.take_along_axis(x, indices.astype(np.int64, copy=False), axis=axis)


def _make_sort(name: str) -> Callable[..., Any]:
    """Return `sort` or `argsort`, which dask lacks; the axis is merged into one chunk."""

    def function(x: Any, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
        axis %= x.ndim
        x = merge_chunks(x, (axis,))
        dtype = x.dtype if name == "sort" else np.dtype(np.int64)
        options = {"axis": axis, "descending": descending, "stable": stable}
        return da.map_blocks(_sort_block, x, function=name, options=options, dtype=dtype, meta=np.empty((0,) * x.ndim, dtype))

    return function


def _sort_block(x: Any, function: str, options: Any) -> Any:
    return getattr(array_api_compat.numpy, function)(x, **options)


def searchsorted(x1: Any, x2: Any, *, side: str = "left", sorter: Any = None) -> Any:
    """Return the positions at which the elements of `x2` would have to be inserted into the sorted `x1`."""
    if sorter is not None:
        x1 = take_along_axis(x1, sorter, axis=0)
    x1 = merge_chunks(x1, (0,))
    axes = tuple(range(x2.ndim))
    return da.blockwise(_search, axes, x1, (x2.ndim,), x2, axes, side=side, concatenate=True, dtype=np.int64,
                        meta=np.empty((0,) * x2.ndim, np.int64))  # fmt: skip


def _search(x1: Any, x2: Any, side: Any) -> Any:
    return np.searchsorted(x1, x2, side=side).astype(np.int64, copy=False)


# -- functions along one axis of an array that has other axes of unknown length ----------------------------------------------------


def _make_join(function: Any) -> Callable[..., Any]:
    """Return `concat` or `stack`; unknown lengths are assumed to be equal if they have equally many chunks."""

    def join(arrays: Any, /, *, axis: int = 0) -> Any:
        if all(size_is_known(x) for x in arrays):
            return function(arrays, axis=axis)
        first, *others = arrays
        for i, n in enumerate(first.shape):
            differ = any((is_unknown(n) or is_unknown(x.shape[i])) and x.numblocks[i] != first.numblocks[i] for x in others)
            if differ and (function is da.stack or i != axis):
                msg = f"`{'stack' if function is da.stack else 'concat'}` of Tensors in different chunks"
                raise unknown_length(msg)
        return function(arrays, axis=axis, allow_unknown_chunksizes=True)

    return join


concat, stack = _make_join(da.concatenate), _make_join(da.stack)


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Roll `x` along axes, other axes of which may have unknown lengths."""
    if size_is_known(x) or axis is None:
        return da.roll(x, shift, axis=axis)
    for s, a in zip(shift, axis) if isinstance(axis, tuple) else ((shift, axis),):
        if is_unknown(x.shape[a]):
            msg = "`roll`"
            raise unknown_length(msg)
        cut = -s % (x.shape[a] or 1)
        lead = (slice(None),) * (a % x.ndim)
        x = concat([x[(*lead, slice(cut, None))], x[(*lead, slice(None, cut))]], axis=a)
    return x


def _make_running(name: str) -> Callable[..., Any]:
    """Return `cumulative_sum` or `cumulative_prod`; the axis is merged into one chunk if another axis has an unknown length.

    NB: dask loses what comes after a chunk without elements, and which chunks of an unknown length have none is not known.
    """

    def running(xp: Any, x: Any, axis: int) -> Any:
        if size_is_known(x):
            return getattr(xp, name)(x, axis=axis)
        dtype = getattr(array_api_compat.numpy, name)(np.empty(0, x.dtype)).dtype
        options = {"function": name, "axis": axis, "dtype": dtype, "meta": np.empty((0,) * x.ndim, dtype)}
        if not is_unknown(x.shape[axis]):
            return da.map_blocks(_running_block, merge_chunks(x, (axis,)), **options)
        lengths = (*x.chunks[:axis], (1,) * x.numblocks[axis], *x.chunks[axis + 1 :])
        totals = da.map_blocks(_total_block, x, chunks=lengths, **options)
        before = da.map_blocks(_totals_before, totals.rechunk({axis: -1}), **options).rechunk({axis: 1})
        return da.map_blocks(_continued_block, da.map_blocks(_running_block, x, **options), before, chunks=x.chunks, **options)

    return running


def _running_block(x: Any, function: str, axis: int) -> Any:
    return getattr(array_api_compat.numpy, function)(x, axis=axis)


def _total_block(x: Any, function: str, axis: int) -> Any:
    return getattr(array_api_compat.numpy, "sum" if function == "cumulative_sum" else "prod")(x, axis=axis, keepdims=True)


def _totals_before(x: Any, function: str, axis: int) -> Any:
    totals = getattr(array_api_compat.numpy, function)(x, axis=axis, include_initial=True)
    return totals[(*[slice(None)] * axis, slice(-1))]


def _continued_block(x: Any, before: Any, function: str, axis: int) -> Any:
    return x + before if function == "cumulative_sum" else x * before


def clip_scalar(xp: Any, x: Any, lo: Any, hi: Any) -> Any:
    """Limit values to ``[lo, hi]``, two Python scalars or None, chunk by chunk."""
    return da.map_blocks(_clip_block, x, lo=lo, hi=hi, dtype=x.dtype, meta=np.empty((0,) * x.ndim, x.dtype))


def _clip_block(x: Any, lo: Any, hi: Any) -> Any:
    return getattr(array_api_compat.numpy, "clip")(x, lo, hi)  # noqa: B009 (type checkers do not see it)


def reduce_mean(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
    """Return the mean over axes; float16 is computed in float32, since dask's sums overflow."""
    narrow = x.dtype == np.float16
    out = xp.mean(x.astype(np.float32) if narrow else x, axis=axes, keepdims=keepdims)
    return out.astype(x.dtype) if narrow else out


def reduce_var(xp: Any, x: Any, axes: Any, correction: float, keepdims: bool) -> Any:
    """Return the variance over axes; float16 is computed in float32, since dask's sums overflow."""
    if x.dtype.kind == "c":
        return reduce_var(xp, x.real, axes, correction, keepdims) + reduce_var(xp, x.imag, axes, correction, keepdims)
    wide = x.astype(np.float32) if x.dtype == np.float16 else x
    if size_is_known(x):
        out = xp.var(wide, axis=axes, correction=correction, keepdims=keepdims)
    else:  # NB: dask's variance is nan if a chunk has no elements
        count = da.map_blocks(np.ones_like, wide, dtype=wide.dtype, meta=wide._meta).sum(axis=axes, keepdims=keepdims)
        squares = (wide - wide.mean(axis=axes, keepdims=True)) ** 2
        out = squares.sum(axis=axes, keepdims=keepdims) / (count - correction)
    return out if wide is x else out.astype(x.dtype)


def _make_extremum(name: str) -> Callable[..., Any]:
    """Return `max` or `min` over axes; with no elements it raises ValueError at once, and not when it is computed, as dask does."""

    def reduce(xp: Any, x: Any, axes: Any, keepdims: bool) -> Any:
        if any(n == 0 for i, n in enumerate(x.shape) if axes is None or i in axes):
            raise ValueError(f"{name} of no elements: shape {x.shape}")
        if size_is_known(x):
            return getattr(xp, name)(x, axis=axes, keepdims=keepdims)
        chunk, meta = functools.partial(_extremum_block, function=name), np.empty((0,) * (x.ndim - 1), x.dtype)
        return da.reduction(
            x, chunk=chunk, combine=chunk, aggregate=getattr(array_api_compat.numpy, name), axis=axes, keepdims=keepdims, dtype=x.dtype,
            meta=meta,
        )  # fmt: skip

    return reduce


def _extremum_block(x: Any, axis: tuple[int, ...], keepdims: bool, function: str) -> Any:
    """Return the extremum of a chunk. NB: dask raises if a chunk has no elements; here the result has none."""
    return getattr(array_api_compat.numpy, function)(x, axis=tuple(a for a in axis if x.shape[a]), keepdims=keepdims)


def reduce_std(xp: Any, x: Any, axes: Any, correction: float, keepdims: bool) -> Any:
    """Return the standard deviation. One of the values is subtracted first, so that the result is exactly 0 if all are equal."""
    first = tuple(slice(0, 1) if axes is None or i in axes else slice(None) for i in range(x.ndim))
    known = not any(is_unknown(n) for n, part in zip(x.shape, first) if part.stop)
    return xp.sqrt(xp.reduce_var(x - (x[first] if known else xp.reduce_min(x, axes, True)), axes, correction, keepdims))


# -- linear algebra: each matrix is in one chunk, a stack of matrices may be in several ----------------------------------------


def _make_matrix_function(function: Any, signature: str, outputs: int, **core: Any) -> Callable[..., Any]:
    """Return a NumPy function of matrices as a function of dask's stacks of matrices.

    Parameters
    ----------
    function : callable
        Called on chunks of whole matrices.
    signature : str
        The generalized ufunc signature, e.g. ``"(m,n)->(m,k),(k,n)"``.
    outputs : int
        The number of arrays that `function` returns. Their dtypes are found by calling it on an identity matrix.
    **core
        For each dimension that appears only in the outputs, a function of the arrays that returns its length.
    """

    def apply(*arrays: Any, **options: Any) -> Any:
        for x in arrays:
            if not size_is_known(x):
                msg = "linear algebra"
                raise unknown_length(msg)
        f = functools.partial(function, **options)
        if all(0 in x.shape for x in arrays):  # `apply_gufunc` would divide by the length of a chunk
            found = f(*(np.empty(x.shape, x.dtype) for x in arrays))
            return tuple(map(da.asarray, found)) if outputs > 1 else da.asarray(found)
        probe = f(*(np.eye(2, dtype=x.dtype) for x in arrays))
        # NB: given only dtypes, dask converts examples to them, which warns when complex numbers become real.
        meta = tuple(np.empty(0, p.dtype) for p in probe) if outputs > 1 else np.empty(0, probe.dtype)
        sizes = {name: size(*arrays) for name, size in core.items()}
        return da.apply_gufunc(f, signature, *arrays, meta=meta, output_sizes=sizes, allow_rechunk=True)

    return apply


def _rank(x: Any) -> int:
    return int(min(x.shape[-2:]))


def _svd_thin(x: Any) -> Any:
    return tuple(np.linalg.svd(x, full_matrices=False))


def _svd_full(x: Any) -> Any:
    return tuple(np.linalg.svd(x, full_matrices=True))


def svd(x: Any, *, full_matrices: bool = True) -> Any:
    """Return the singular value decomposition ``(u, s, vh)``."""
    if full_matrices:
        return _make_matrix_function(_svd_full, "(m,n)->(m,m),(k),(n,n)", 3, k=_rank)(x)
    return _make_matrix_function(_svd_thin, "(m,n)->(m,k),(k),(k,n)", 3, k=_rank)(x)


def _svdvals(x: Any) -> Any:
    return np.linalg.svd(x, compute_uv=False)


def svdvals(x: Any) -> Any:
    """Return singular values."""
    return _make_matrix_function(_svdvals, "(m,n)->(k)", 1, k=_rank)(x)


def _qr(x: Any, mode: Any) -> Any:
    return tuple(np.linalg.qr(x, mode=mode))


def qr(x: Any, *, mode: str = "reduced") -> Any:
    """Return an orthogonal and a triangular factor."""
    if mode == "complete":
        return _make_matrix_function(_qr, "(m,n)->(m,m),(m,n)", 2)(x, mode=mode)
    return _make_matrix_function(_qr, "(m,n)->(m,k),(k,n)", 2, k=_rank)(x, mode=mode)


def _eigh(x: Any) -> Any:
    return tuple(np.linalg.eigh(x))


def _eig(x: Any) -> Any:
    # NB: the dtypes of NumPy's results depend on the values. The dtype of a lazy array cannot, so it is always complex.
    return tuple(part.astype(np.result_type(part.dtype, np.complex64)) for part in np.linalg.eig(x))


def _eigvals(x: Any) -> Any:
    values = np.linalg.eigvals(x)
    return values.astype(np.result_type(values.dtype, np.complex64))


def _slogdet(x: Any) -> Any:
    return tuple(np.linalg.slogdet(x))


def _pinv(x: Any, rtol: Any) -> Any:
    return np.linalg.pinv(x, rtol=rtol)


def pinv(x: Any, *, rtol: Any = None) -> Any:
    """Return pseudoinverses; `rtol` is a number, or an array of one per matrix."""
    if rtol is None or isinstance(rtol, (int, float)):
        return _make_matrix_function(_pinv, "(m,n)->(n,m)", 1)(x, rtol=rtol)
    f = lambda a, r: np.linalg.pinv(a, rtol=r)  # noqa: E731 (dask pickles it by value)
    return da.apply_gufunc(f, "(m,n),()->(n,m)", x, rtol, output_dtypes=x.dtype, allow_rechunk=True)


def matrix_rank(x: Any, *, rtol: Any = None) -> Any:
    """Return the number of singular values above `rtol` (a number, or one per matrix) times the largest."""
    if rtol is None or isinstance(rtol, (int, float)):
        return _make_matrix_function(np.linalg.matrix_rank, "(m,n)->()", 1)(x, rtol=rtol)
    f = lambda a, r: np.linalg.matrix_rank(a, rtol=r)  # noqa: E731 (dask pickles it by value)
    return da.apply_gufunc(f, "(m,n),()->()", x, rtol, output_dtypes=np.int64, allow_rechunk=True)


def _cross(x: Any, y: Any, axis: int) -> Any:
    return np.linalg.cross(x, y, axis=axis)


def cross(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    """Return the cross products of vectors along an axis."""
    x1, x2 = da.broadcast_arrays(x1, x2)
    axis %= x1.ndim
    x1 = merge_chunks(x1, (axis,))
    x2 = x2.rechunk(x1.chunks)
    return da.map_blocks(_cross, x1, x2, axis=axis, dtype=np.result_type(x1.dtype, x2.dtype))


def _solve(a: Any, b: Any) -> Any:
    return np.linalg.solve(a, b)


def _cholesky(x: Any, upper: bool) -> Any:
    return np.linalg.cholesky(x, upper=upper)


def cholesky(x: Any, *, upper: bool = False) -> Any:
    """Return the Cholesky factors of matrices: lower triangular, or upper triangular with `upper`."""
    return _make_matrix_function(_cholesky, "(m,m)->(m,m)", 1)(x, upper=upper)


def diagonal(x: Any, *, offset: int = 0) -> Any:
    """Return diagonals of matrices."""
    if not size_is_known(x.shape[-2:]):
        msg = "`linalg.diagonal`"
        raise unknown_length(msg)
    return da.diagonal(x, offset=offset, axis1=-2, axis2=-1)


def trace(x: Any, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sums of the diagonals of matrices."""
    return diagonal(x, offset=offset).sum(axis=-1, dtype=dtype)


# -- Fourier transforms: each transformed axis is in one chunk -----------------------------------------------------------------


def _make_transform(name: str, many: bool) -> Callable[..., Any]:
    """Return one of `numpy.fft`'s functions for dask arrays; `many` says that it takes `axes` instead of `axis`."""

    def transform(x: Any, /, n: Any = None, axis: int = -1, *, axes: Any = None, s: Any = None, norm: str = "backward") -> Any:
        used = tuple(a % x.ndim for a in (axes if many else (axis,)))
        x = merge_chunks(x, used)
        options = {"axes": used, "norm": norm} if many else {"n": n, "axis": used[0], "norm": norm}
        f = functools.partial(getattr(np.fft, name), **options)
        probe = f(np.zeros(tuple(k if i in used else 1 for i, k in enumerate(x.shape)), x.dtype))
        chunks = tuple((probe.shape[i],) if i in used else c for i, c in enumerate(x.chunks))
        return da.map_blocks(f, x, dtype=probe.dtype, chunks=chunks, meta=np.empty((0,) * x.ndim, probe.dtype))

    return transform


class Extension:
    """The namespace of `linalg` or `fft`: our functions, then the library's, then an error that names the missing function."""

    def __init__(self, library: Any, functions: dict[str, Any], name: str) -> None:
        self._library, self._functions, self._name = library, functions, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = self._functions.get(name) or getattr(self._library, name, None)
        if found is None:
            msg = f"backend 'dask' has no function `{self._name}.{name}`"
            raise CapabilityError(msg)
        found = guard_lengths(f"{self._name}.{name}", found)
        setattr(self, name, found)
        return found


EXTENSIONS: dict[str, dict[str, Any]] = {
    "linalg": {
        "inv": _make_matrix_function(np.linalg.inv, "(m,m)->(m,m)", 1),
        "det": _make_matrix_function(np.linalg.det, "(m,m)->()", 1),
        "slogdet": _make_matrix_function(_slogdet, "(m,m)->(),()", 2),
        "eig": _make_matrix_function(_eig, "(m,m)->(m),(m,m)", 2),
        "eigvals": _make_matrix_function(_eigvals, "(m,m)->(m)", 1),
        "eigh": _make_matrix_function(_eigh, "(m,m)->(m),(m,m)", 2),
        "eigvalsh": _make_matrix_function(np.linalg.eigvalsh, "(m,m)->(m)", 1),
        "solve": _make_matrix_function(_solve, "(m,m),(m,n)->(m,n)", 1),
        "cholesky": cholesky, "svd": svd, "svdvals": svdvals, "qr": qr, "pinv": pinv,
        "matrix_rank": matrix_rank, "cross": cross, "diagonal": diagonal, "trace": trace,
    },
    "fft": {name: _make_transform(name, name.endswith("n")) for name in ("fft", "ifft", "fftn", "ifftn", "rfft", "irfft")},
}  # fmt: skip

#: Kernels that are functions of the standard: they are called without the namespace.
PLAIN: dict[str, Callable[..., Any]] = {
    "broadcast_to": broadcast_to, "reshape": reshape, "copy": copy, "tril": tril, "triu": triu,
    "take_along_axis": take_along_axis, "searchsorted": searchsorted, "concat": concat, "stack": stack, "roll": roll,
    "sort": _make_sort("sort"), "argsort": _make_sort("argsort"),
    "sign": da.sign,  # NB: the namespace's `sign` divides complex zeros, which warns when it is computed
}  # fmt: skip

KERNELS: dict[str, Callable[..., Any]] = {
    **PLAIN, "expand_reduced": expand_reduced, "sum_to": sum_to, "reshape_to": reshape_to, "running_sum": _make_running("cumulative_sum"),
    "running_prod": _make_running("cumulative_prod"), "clip_scalar": clip_scalar, "reduce_std": reduce_std,
    "reduce_mean": reduce_mean, "reduce_var": reduce_var, "reduce_max": _make_extremum("max"), "reduce_min": _make_extremum("min"),
}  # fmt: skip

# The messages of dask, and of NumPy and Python below it, when a length is unknown.
_WANTS_LENGTH = re.compile(r"unknown|\bnan\b|NaN|'float' object|cannot compute length")


def guard_lengths(name: str, function: Any) -> Any:
    """Return a kernel that raises `CapabilityError` with a remedy for errors that are caused by an unknown length."""
    if not callable(function):
        return function

    def guard(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except (ValueError, TypeError, AttributeError) as exc:
            if _WANTS_LENGTH.search(str(exc)) is None or not _has_unknown(args):
                raise
            public = spellings(name)[0]
            raise unknown_length(public if "`" in public else f"`{public}`") from exc

    return guard


def _has_unknown(args: Any) -> bool:
    """Return whether an argument is, contains or has an unknown length."""
    return any(
        _has_unknown(a) if isinstance(a, (tuple, list)) else is_unknown(a) or not size_is_known(getattr(a, "shape", ())) for a in args
    )
