"""How each operation acts on a batch: rules that shift axes behind the batch's and call the same operation on the Tensors below.

Elementwise operations share one rule; kernels that are written in other kernels need none. Statics may hold raw arrays (the keys of an
index): batched ones, or those of the class below, which are the same for all elements.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from xpgrad._array.kernels import DefaultKernels
from xpgrad._basics.dtypes import DType
from xpgrad._basics.keys import full_key, is_basic
from xpgrad._rows.namespace import PRIMITIVES, operations
from xpgrad._rows.row import ROWS
from xpgrad._transforms.batch.array import Batched, escaped, no_rule

__all__ = ["BatchRules", "elementwise"]

_OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "**": operator.pow, "//": operator.floordiv,
    "%": operator.mod, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
}  # fmt: skip
_UNARY_OPERATORS: dict[str, Callable[..., Any]] = {"-": operator.neg, "~": operator.invert}
#: Operations on matrices in the last two axes, or on each element: the batch's axis in front is one more of theirs.
_STACKED = (
    "clone", "clone_contiguous", "real_part", "imag_part", "lower", "upper", "phase", "clip_scalar", "swap_last", "inverse",
    "determinant", "cofactors", "cholesky_factor", "eigen_pairs", "singular_triples", "orthogonal_triangular", "sign_and_log",
    "diagonal_view", "real", "imag", "matrix_transpose", "tril", "triu",
)  # fmt: skip
#: Operations whose last arguments are axes (a tuple, or None for all) and keepdims.
_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min", "reduce_mean", "reduce_var", "reduce_std", "reduce_prod", "norm")
#: Operations with one axis, and where it is among their arguments behind the array.
_ALONG = {"running_sum": 0, "running_sum_back": 0, "running_prod": 0, "real_to_half": 0, "half_to_real": 1, "scale_inner": 1}
#: Functions of the standard by keyword, which sum up over axes.
_BY_KEYWORD = ("sum", "max", "min", "prod", "all", "any", "count_nonzero", "mean", "var", "std")
_ORDERED = ("sort", "argsort", "cumulative_sum", "cumulative_prod")


class BatchRules:
    """The rules of one batch backend: each takes and returns its raw arrays (`Batched`)."""

    #: The operations on what a batch is held by.
    T: Any = operations

    def __init__(self, backend: Any) -> None:
        self.backend = backend
        self.raw: Any = None  # the class of the raw arrays; the backend sets it
        self.linalg = _Linalg(self)

    def find(self, name: str) -> Any:
        """The rule of that name, or None if the kernel is to be composed of others."""
        own = getattr(self, name, None) if not name.startswith("_") and name != "find" else None
        if own is not None:
            return own
        row = ROWS.get(name)
        if row is not None and row.elementwise:
            function = self._operation(row, name)
            return self._binary(function) if len(row.tensors) == 2 else self._elementwise(function)
        if name in _STACKED:
            return self._stacked(getattr(self.T, name))
        if name in _REDUCTIONS:
            return self._reduction(getattr(self.T, name))
        if name in _ALONG:
            return self._along(getattr(self.T, name), _ALONG[name])
        if name in _BY_KEYWORD:
            return self._by_keyword(getattr(self.T, name))
        if name in _ORDERED:
            return self._ordered(getattr(self.T, name))
        if name in ("nonzero", "unique_all", "unique_counts", "unique_inverse", "unique_values"):
            raise no_rule(name)
        if row is not None or hasattr(DefaultKernels, name) or name in ("isdtype", "finfo", "iinfo"):
            return getattr(self.T, name) if row is None and not hasattr(DefaultKernels, name) else None
        return None

    # -- what a batch is held by: here Tensors ------------------------------------------------------------------------------

    def _shape(self, value: Any) -> Any:
        return value._array.shape

    def _static(self, value: Any) -> Any:
        """A value as a raw array, which is what a static argument is."""
        return value._array

    def _held(self, array: Any) -> Any:
        """The value of a raw array."""
        return self.backend.inner.backend.wrap(array)

    def _scalar(self, value: Any, like: Any) -> Any:
        return self.raw(self.backend.inner.scalar(value, like.dtype), None)

    def _count_up(self, size: int, like: Any) -> Any:
        return self.T.arange(size, dtype=like.dtype, device=like.device)

    def _operation(self, row: Any, name: str) -> Any:
        return elementwise(row, name, self.T)

    # -- what the rules are made of --------------------------------------------------------------------------------------

    def _level(self, *arrays: Any) -> Any:
        """The one level that batched arrays among these belong to, or None."""
        level = None
        for a in arrays:
            if a.__class__ is self.raw and a.level is not None:
                if level is None:
                    level = a.level
                elif level is not a.level:
                    raise escaped()
        return level

    def _padded(self, x: Any, rank: int) -> Any:
        """The value of `x` with axes of length 1 so that its elements have `rank` axes: they broadcast from the right."""
        value, missing = x.value, rank - len(x.shape)
        if x.level is None or missing <= 0:
            return value
        shape = self._shape(value)
        return self.T.reshape_to(value, (shape[0], *(1,) * missing, *shape[1:]))

    def _full(self, x: Any, level: Any) -> Any:
        """The value of `x` with the axis of the batch, whether it had one or not."""
        if x.level is not None:
            return x.value
        return self.T.broadcast_view(x.value, (level.size, *x.shape))

    def _below(self, x: Any) -> Any:
        """A raw array of the class below: of a static that is the same for all elements."""
        return self._static(x.value) if x.__class__ is self.raw else x

    def _own(self, x: Any) -> Any:
        """A raw array of a static as one of this backend's."""
        if x.__class__ is self.raw or isinstance(x, (int, float, complex, slice)) or x is None or x is Ellipsis:
            return x
        return self.raw(self._held(x), None)

    def _wrapped(self, out: Any, level: Any) -> Any:
        if out.__class__ is tuple or isinstance(out, tuple):
            return tuple(self.raw(o, level) for o in out)
        return self.raw(out, level)

    # -- families -----------------------------------------------------------------------------------------------------------

    def _elementwise(self, function: Any) -> Any:
        raw_class = self.raw

        def rule(*operands: Any) -> Any:
            level, rank, uneven = None, -1, False
            for o in operands:
                if o.__class__ is raw_class:
                    n = len(o.shape)
                    if n != rank:
                        uneven = rank >= 0
                        rank = max(n, rank)
                    if o.level is not None:
                        if level is None:
                            level = o.level
                        elif level is not o.level:
                            raise escaped()
            if uneven:
                values = [self._padded(o, rank) if o.__class__ is raw_class else o for o in operands]
            else:
                values = [o.value if o.__class__ is raw_class else o for o in operands]
            return raw_class(function(*values), level)

        return rule

    def _binary(self, function: Any) -> Any:
        """As `_elementwise`, quicker for two operands whose elements have equally many axes, or of which one is a scalar."""
        raw_class, general = self.raw, self._elementwise(function)

        def rule(x: Any, y: Any) -> Any:
            if x.__class__ is not raw_class:
                return raw_class(function(x, y.value), y.level)
            if y.__class__ is not raw_class:
                return raw_class(function(x.value, y), x.level)
            level = x.level
            if len(x.shape) != len(y.shape) or (level is not y.level and level is not None and y.level is not None):
                return general(x, y)
            return raw_class(function(x.value, y.value), y.level if level is None else level)

        return rule

    def _stacked(self, function: Any) -> Any:
        def rule(x: Any, *statics: Any, **options: Any) -> Any:
            return self._wrapped(function(x.value, *statics, **options), x.level)

        return rule

    def _axes(self, x: Any, axes: Any) -> Any:
        """Axes of an element as those of the batch."""
        if x.level is None:
            return axes
        n = len(x.shape)
        if axes is None:
            return tuple(range(1, n + 1))
        return axes % n + 1 if isinstance(axes, int) else tuple(a % n + 1 for a in axes)

    def _reduction(self, function: Any) -> Any:
        def rule(x: Any, *statics: Any) -> Any:
            *before, axes, keepdims = statics
            if function is self.T.reduce_var or function is self.T.reduce_std:
                axes, correction, keepdims = statics
                return self.raw(function(x.value, self._axes(x, axes), correction, keepdims), x.level)
            return self.raw(function(x.value, *before, self._axes(x, axes), keepdims), x.level)

        return rule

    def _along(self, function: Any, place: int) -> Any:
        def rule(x: Any, *statics: Any) -> Any:
            shifted = [self._axes(x, s) if i == place else s for i, s in enumerate(statics)]
            return self.raw(function(x.value, *shifted), x.level)

        return rule

    def _by_keyword(self, function: Any) -> Any:
        def rule(x: Any, *, axis: Any = None, **options: Any) -> Any:
            return self.raw(function(x.value, axis=self._axes(x, axis), **options), x.level)

        return rule

    def _ordered(self, function: Any) -> Any:
        def rule(x: Any, *, axis: int = -1, **options: Any) -> Any:
            return self.raw(function(x.value, axis=self._axes(x, axis), **options), x.level)

        return rule

    # -- dtypes and memory ------------------------------------------------------------------------------------------------

    def to_dtype(self, x: Any, dtype: Any) -> Any:
        value = x.value
        if not isinstance(dtype, DType):  # the cast of a Tensor that all elements share, whose tangent or gradient they do not
            dtype = self.backend.inner.backend.dtype_of(dtype)
        if x.dtype.is_complex and not dtype.is_complex and dtype.name != "bool":
            value = self.T.real(value)
        return self.raw(value._cast(dtype), x.level)

    def cast(self, x: Any, dtype: Any) -> Any:
        return self.to_dtype(x, dtype)

    def astype(self, x: Any, dtype: Any, *, copy: bool = True) -> Any:
        return self.to_dtype(x, dtype)

    def copy(self, x: Any) -> Any:
        return self.raw(x.value.clone(), x.level)

    def clone_laid_out(self, x: Any, like: Any) -> Any:
        return self.raw(x.value.clone(), x.level)

    def asarray(self, value: Any, dtype: Any = None, copy: bool | None = None, device: Any = None) -> Any:
        return value if value.__class__ is self.raw else self.raw(self.backend.inner.scalar(value, dtype), None)

    def isdtype(self, dtype: Any, kind: Any) -> bool:
        return bool(self.T.isdtype(dtype, kind))

    def finfo(self, dtype: Any) -> Any:
        return self.T.finfo(dtype)

    def _created(self, name: str, *args: Any, dtype: Any = None) -> Any:
        inner = self.backend.inner
        return self.raw(inner.lift(getattr(self.T, name)(*args, dtype=dtype, device=inner.device)), None)

    def zeros(self, shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
        return self._created("zeros", shape, dtype=dtype)

    def ones(self, shape: Any, *, dtype: Any = None, device: Any = None) -> Any:
        return self._created("ones", shape, dtype=dtype)

    def arange(self, *bounds: Any, dtype: Any = None, device: Any = None) -> Any:
        return self._created("arange", *bounds, dtype=dtype)

    def zeros_like(self, x: Any, *, dtype: Any = None) -> Any:
        return self._created("zeros", x.shape, dtype=dtype or x.dtype)

    def ones_like(self, x: Any, *, dtype: Any = None) -> Any:
        return self._created("ones", x.shape, dtype=dtype or x.dtype)

    def full_like(self, x: Any, value: Any, *, dtype: Any = None) -> Any:
        return self._created("full", x.shape, value, dtype=dtype or x.dtype)

    # -- shapes ---------------------------------------------------------------------------------------------------------------

    def reshape_to(self, x: Any, shape: Any) -> Any:
        if x.level is None:
            return self.raw(self.T.reshape_to(x.value, tuple(shape)), None)
        if -1 in shape:
            return self.raw(self.T.reshape(x.value, (x.level.size, *shape)), x.level)
        return self.raw(self.T.reshape_to(x.value, (x.level.size, *shape)), x.level)

    def reshape(self, x: Any, shape: Any, *, copy: bool | None = None) -> Any:
        if x.level is None:
            return self.raw(self.T.reshape(x.value, shape), None)
        return self.reshape_to(x, shape)

    def transpose_axes(self, x: Any, axes: Any) -> Any:
        order = axes if x.level is None else (0, *(a % len(x.shape) + 1 for a in axes))
        return self.raw(self.T.transpose_axes(x.value, order), x.level)

    def permute_dims(self, x: Any, axes: Any) -> Any:
        return self.transpose_axes(x, axes)

    def broadcast_view(self, x: Any, shape: Any) -> Any:
        if x.level is None:
            return self.raw(self.T.broadcast_view(x.value, tuple(shape)), None)
        return self.raw(self.T.broadcast_view(self._padded(x, len(shape)), (x.level.size, *shape)), x.level)

    def broadcast_to(self, x: Any, shape: Any) -> Any:
        return self.broadcast_view(x, shape)

    def expand_reduced(self, x: Any, shape: Any, axes: Any, keepdims: bool) -> Any:
        if x.level is None:
            return self.raw(self.T.expand_reduced(x.value, shape, axes, keepdims), None)
        n = len(shape)
        shifted = tuple(range(1, n + 1)) if axes is None else tuple(a % n + 1 for a in axes)
        return self.raw(self.T.expand_reduced(x.value, (x.level.size, *shape), shifted, keepdims), x.level)

    def sum_to(self, x: Any, shape: Any) -> Any:
        if tuple(x.shape) == tuple(shape):
            return x
        if x.level is None:
            return self.raw(self.T.sum_to(x.value, tuple(shape)), None)
        extra = len(x.shape) - len(shape)
        out = self.T.sum_to(x.value, (x.level.size, *(1,) * extra, *shape))
        return self.raw(self.T.reshape_to(out, (x.level.size, *shape)) if extra else out, x.level)

    def reverse(self, x: Any, axes: Any) -> Any:
        return self.raw(self.T.reverse(x.value, self._axes(x, axes)), x.level)

    def flip(self, x: Any, *, axis: Any = None) -> Any:
        return self.raw(self.T.flip(x.value, axis=self._axes(x, axis)), x.level)

    def shift_by(self, x: Any, shift: Any, axes: Any) -> Any:
        if axes is None and x.level is not None:
            flat = self.T.shift_by(self.T.reshape_to(x.value, (x.level.size, math.prod(x.shape))), shift, 1)
            return self.raw(self.T.reshape_to(flat, (x.level.size, *x.shape)), x.level)
        return self.raw(self.T.shift_by(x.value, shift, self._axes(x, axes)), x.level)

    def roll(self, x: Any, shift: Any, *, axis: Any = None) -> Any:
        return self.shift_by(x, shift, axis)

    def join(self, xs: Any, axis: int) -> Any:
        level = self._level(*xs)
        if level is None:
            return self.raw(self.T.join([x.value for x in xs], axis), None)
        return self.raw(self.T.join([self._full(x, level) for x in xs], axis % len(xs[0].shape) + 1), level)

    def concat(self, xs: Any, *, axis: int = 0) -> Any:
        return self.join(list(xs), axis)

    def pile(self, xs: Any, axis: int) -> Any:
        level = self._level(*xs)
        if level is None:
            return self.raw(self.T.pile([x.value for x in xs], axis), None)
        return self.raw(self.T.pile([self._full(x, level) for x in xs], axis % (len(xs[0].shape) + 1) + 1), level)

    def stack(self, xs: Any, *, axis: int = 0) -> Any:
        return self.pile(list(xs), axis)

    def count_nonzero_norm(self, xs: Any, axes: Any, keepdims: bool) -> Any:
        (x,) = xs
        return self.raw(self.T.count_nonzero_norm([x.value], self._axes(x, axes), keepdims), x.level)

    # -- indexing ---------------------------------------------------------------------------------------------------------------

    def index_basic(self, x: Any, key: Any) -> Any:
        if x.level is None:
            return self.raw(self.T.index_basic(x.value, key), None)
        return self.raw(self.T.index_basic(x.value, (slice(None), *full_key(key, x.shape))), x.level)

    def index_basic_transpose(self, x: Any, key: Any, shape: Any) -> Any:
        if x.level is None:
            return self.raw(self.T.index_basic_transpose(x.value, key, shape), None)
        return self.raw(self.T.index_basic_transpose(x.value, (slice(None), *full_key(key, shape)), (x.level.size, *shape)), x.level)

    def _flat(self, key: Any, shape: Any) -> Any:
        """The positions that an advanced key picks of an array of `shape`, as a `Batched`: with a level if the key has one."""
        parts = key if isinstance(key, tuple) else (key,)
        if self._level(*parts) is None:
            below = self.backend.inner.backend
            like = next(self._below(p) for p in parts if not _plain(p))
            flat = below.kernels.flat_index(tuple(p if _plain(p) else self._below(p) for p in parts), tuple(shape), like)
            return self.raw(self._held(flat), None)
        own = tuple(self._own(p) for p in parts)
        for p in own:
            if p.__class__ is self.raw and p.dtype.kind == "bool":
                raise no_rule("x[mask]")
        like = next(p for p in own if p.__class__ is self.raw)
        return DefaultKernels.flat_index(self.backend.kernels, own, tuple(shape), like)

    def from_front(self, indices: Any, n: int, axis: int, like: Any) -> Any:
        # What lies outside of an element would be inside of the batch: it is looked at below, where that is possible.
        places = self._below(indices)
        found = self.backend.inner.backend.kernels.from_front(places, n, axis, places)
        return self.raw(self._held(found), indices.level if indices.__class__ is self.raw else None)

    def gather(self, x: Any, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        level = self._level(x, *parts)
        if x.level is None and self._level(*parts) is None:
            return self.raw(self.T.gather(x.value, tuple(p if _plain(p) else self._below(p) for p in parts)), None)
        flat = self._flat(key, x.shape)
        count, picked = math.prod(x.shape), math.prod(flat.shape)
        if flat.level is None:
            rows = self.T.reshape_to(x.value, (level.size, count))
            out = self.T.gather(rows, (slice(None), self._static(self.T.reshape_to(flat.value, (picked,)))))
        elif x.level is None:
            out = self.T.gather(
                self.T.reshape_to(x.value, (count,)), (self._static(self.T.reshape_to(flat.value, (level.size * picked,))),)
            )
        else:
            rows = self.T.reshape_to(x.value, (level.size, count))
            out = self.T.gather_along(rows, self._static(self.T.reshape_to(flat.value, (level.size, picked))), 1)
        return self.raw(self.T.reshape_to(out, (level.size, *flat.shape)), level)

    def read(self, x: Any, key: Any) -> Any:
        return self.index_basic(x, key) if is_basic(key) else self.gather(x, key)

    def take(self, x: Any, indices: Any, *, axis: int = 0) -> Any:
        return self.gather(x, (*(slice(None),) * (axis % len(x.shape)), indices))

    def scatter_add(self, x: Any, key: Any, shape: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        level = self._level(x, *parts)
        if level is None:
            return self.raw(self.T.scatter_add(x.value, tuple(p if _plain(p) else self._below(p) for p in parts), tuple(shape)), None)
        flat = self._flat(key, shape)
        count, picked = math.prod(shape), math.prod(flat.shape)
        values = self.T.reshape_to(self._full(x, level), (level.size, picked))
        if flat.level is None:
            place = self._static(self.T.reshape_to(flat.value, (picked,)))
            out = self.T.scatter_add(values, (slice(None), place), (level.size, count))
        else:
            places = self._places(flat, count)
            out = self.T.scatter_add(self.T.reshape_to(values, (level.size * picked,)), (places,), (level.size * count,))
        return self.raw(self.T.reshape_to(out, (level.size, *shape)), level)

    def _places(self, flat: Any, count: int) -> Any:
        """Batched positions as positions in the flattened batch: a raw array below with one axis."""
        size = flat.level.size
        starts = self._count_up(size, flat.value) * count
        total = self.T.reshape_to(flat.value, (size, math.prod(flat.shape))) + self.T.reshape_to(starts, (size, 1))
        return self._static(self.T.reshape_to(total, (size * math.prod(flat.shape),)))

    def segment_sum(self, values: Any, positions: Any, size: int) -> Any:
        return self.scatter_add(values, (positions,), (size,))

    def _indices(self, x: Any, indices: Any) -> tuple[Any, Any, Any]:
        """An array and the indices along its axes, both with the axis of the batch; the level, or None without one."""
        own = self._own(indices)
        level = self._level(x, own)
        if level is None:
            return x.value, self._static(own.value), None
        return self._full(x, level), self._static(self._full(own, level)), level

    def gather_along(self, x: Any, indices: Any, axis: int) -> Any:
        value, places, level = self._indices(x, indices)
        return self.raw(self.T.gather_along(value, places, axis if level is None else axis % len(x.shape) + 1), level)

    def take_along_axis(self, x: Any, indices: Any, *, axis: int = -1) -> Any:
        return self.gather_along(x, indices, axis)

    def scatter_along(self, x: Any, indices: Any, shape: Any, axis: int) -> Any:
        value, places, level = self._indices(x, indices)
        if level is None:
            return self.raw(self.T.scatter_along(value, places, shape, axis), None)
        return self.raw(self.T.scatter_along(value, places, (level.size, *shape), axis % len(shape) + 1), level)

    def ordered(self, x: Any, order: Any, axis: int) -> Any:
        value, places, level = self._indices(x, order)
        return self.raw(self.T.ordered(value, places, axis if level is None else axis % len(x.shape) + 1), level)

    def ordered_back(self, x: Any, order: Any, axis: int) -> Any:
        value, places, level = self._indices(x, order)
        return self.raw(self.T.ordered_back(value, places, axis if level is None else axis % len(x.shape) + 1), level)

    # -- writing -------------------------------------------------------------------------------------------------------------------

    def written(self, buffer: Any, key: Any, value: Any) -> Any:
        return self.put(buffer, value, key)

    def put(self, x: Any, value: Any, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        scalar = value.__class__ is not self.raw
        level = self._level(x, value, *parts)
        if scalar:
            value = self._scalar(value, x)
        if level is None:
            return self.raw(self.T.put(x.value, value.value, tuple(p if _plain(p) else self._below(p) for p in parts)), None)
        whole = self._full(x, level)
        if is_basic(key):
            place = (slice(None), *full_key(key, x.shape))
            rank = len(self.T.index_basic(whole, place).shape) - 1
            return self.raw(self.T.put(whole, self._fitted(value, rank), place), level)
        flat = self._flat(key, x.shape)
        count, picked = math.prod(x.shape), math.prod(flat.shape)
        values = self.T.reshape_to(self._full(self._spread(value, flat.shape), level), (level.size, picked))
        if flat.level is None:
            place = self._static(self.T.reshape_to(flat.value, (picked,)))
            out = self.T.put(self.T.reshape_to(whole, (level.size, count)), values, (slice(None), place))
        else:
            places = self._places(flat, count)
            out = self.T.put(self.T.reshape_to(whole, (level.size * count,)), self.T.reshape_to(values, (level.size * picked,)), (places,))
        return self.raw(self.T.reshape_to(out, (level.size, *x.shape)), level)

    def _fitted(self, value: Any, rank: int) -> Any:
        """What is written, with as many axes as the place has: as NumPy, more axes of length 1 are dropped."""
        extra = len(value.shape) - rank
        if extra > 0 and all(n == 1 for n in value.shape[:extra]):
            value = self.reshape_to(value, value.shape[extra:])
        return self._padded(value, rank)

    def _spread(self, value: Any, shape: Any) -> Any:
        extra = len(value.shape) - len(shape)
        if extra > 0 and all(n == 1 for n in value.shape[:extra]):
            value = self.reshape_to(value, value.shape[extra:])
        return self.broadcast_view(value, tuple(shape))

    def _rows(self, function: Any, x: Any, key: Any, shape: Any, *more: Any) -> Any:
        """A function of written places on the rows of a batch; batched keys only as positions in the flattened batch."""
        level = self._level(x, *(key if isinstance(key, tuple) else (key,)))
        flat = self._flat(key, shape)
        count, picked = math.prod(shape), math.prod(flat.shape)
        lengths = (count,) if function is self.T.put_zero else (picked,)
        whole = self._full(x, level)
        source = count if function in (self.T.put_zero, self.T.take_written) else picked
        if flat.level is None:
            place = self._static(self.T.reshape_to(flat.value, (picked,)))
            sizes: tuple[Any, ...] = ((level.size, count),) if more else ()
            return function(self.T.reshape_to(whole, (level.size, source)), (slice(None), place), *sizes), level, flat, lengths
        sizes = ((level.size * count,),) if more else ()
        places = self._places(flat, count)
        out = function(self.T.reshape_to(whole, (level.size * source,)), (places,), *sizes)
        return out, level, flat, lengths

    def put_zero(self, x: Any, key: Any) -> Any:
        if self._level(x, *(key if isinstance(key, tuple) else (key,))) is None:
            return self.raw(self.T.put_zero(x.value, self._key_below(key)), None)
        if is_basic(key):
            return self.raw(self.T.put_zero(x.value, (slice(None), *full_key(key, x.shape))), x.level)
        out, level, _, _ = self._rows(self.T.put_zero, x, key, x.shape)
        return self.raw(self.T.reshape_to(out, (level.size, *x.shape)), level)

    def take_written(self, x: Any, key: Any) -> Any:
        if self._level(x, *(key if isinstance(key, tuple) else (key,))) is None:
            return self.raw(self.T.take_written(x.value, self._key_below(key)), None)
        if is_basic(key):
            return self.index_basic(x, key)
        out, level, flat, _ = self._rows(self.T.take_written, x, key, x.shape)
        return self.raw(self.T.reshape_to(out, (level.size, *flat.shape)), level)

    def wins(self, x: Any, key: Any, shape: Any) -> Any:
        if self._level(x, *(key if isinstance(key, tuple) else (key,))) is None:
            return self.raw(self.T.wins(x.value, self._key_below(key), shape), None)
        if is_basic(key):
            out = self.T.wins(x.value, (slice(None), *full_key(key, shape)), (x.level.size, *shape))
            return self.raw(out, x.level)
        out, level, flat, _ = self._rows(self.T.wins, x, key, shape, shape)
        return self.raw(self.T.reshape_to(out, (level.size, *flat.shape)), level)

    def _key_below(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        return tuple(p if _plain(p) else self._below(p) for p in parts)

    # -- order and search -------------------------------------------------------------------------------------------------------

    def _extreme(self, name: str, x: Any, axis: Any, keepdims: bool) -> Any:
        function = getattr(self.T, name)
        if x.level is None:
            return self.raw(function(x.value, axis=axis, keepdims=keepdims), None)
        if axis is not None:
            return self.raw(function(x.value, axis=axis % len(x.shape) + 1, keepdims=keepdims), x.level)
        out = function(self.T.reshape_to(x.value, (x.level.size, math.prod(x.shape))), axis=1)
        return self.raw(self.T.reshape_to(out, (x.level.size, *(1,) * len(x.shape))) if keepdims else out, x.level)

    def argmax(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self._extreme("argmax", x, axis, keepdims)

    def argmin(self, x: Any, *, axis: Any = None, keepdims: bool = False) -> Any:
        return self._extreme("argmin", x, axis, keepdims)

    def searchsorted(self, x1: Any, x2: Any, *, side: str = "left", sorter: Any = None) -> Any:
        if x1.level is None and (sorter is None or self._own(sorter).level is None):
            order = None if sorter is None else self._own(sorter).value
            flat = self.T.reshape(x2.value, (-1,))
            return self.raw(self.T.reshape(self.T.searchsorted(x1.value, flat, side=side, sorter=order), x2.value.shape), x2.level)
        if sorter is not None:
            x1 = self.gather_along(x1, sorter, 0)
        # By counting: how many elements of each sorted row are smaller (or equal).
        level = self._level(x1, x2)
        row = self.T.reshape_to(self._full(x1, level), (level.size, *(1,) * len(x2.shape), x1.shape[0]))
        values = self.T.expand_dims(self._padded(x2, len(x2.shape)), axis=-1)
        before = (row < values) if side == "left" else (row <= values)
        return self.raw(self.T.count_nonzero(before, axis=-1), level)

    # -- linear algebra -----------------------------------------------------------------------------------------------------------

    def matmul_nd(self, x1: Any, x2: Any) -> Any:
        level = self._level(x1, x2)
        a, b = x1.value, x2.value
        if level is None:
            return self.raw(self.T.matmul_nd(a, b), None)
        if x2.level is None:  # one product of matrices for the whole batch
            rows = self.T.reshape_to(a, (level.size * x1.shape[0], x1.shape[1]))
            return self.raw(self.T.reshape_to(self.T.matmul_nd(rows, b), (level.size, x1.shape[0], x2.shape[1])), level)
        if x1.level is None and x2.shape[1] == 1:
            columns = self.T.reshape_to(b, (level.size, x2.shape[0]))
            out = self.T.matmul_nd(columns, self.T.swap_last(a))
            return self.raw(self.T.reshape_to(out, (level.size, x1.shape[0], 1)), level)
        return self.raw(self.T.batched_matmul(a, b), level)

    def mat_vec(self, x1: Any, x2: Any) -> Any:
        level = self._level(x1, x2)
        a, b = x1.value, x2.value
        if level is None:
            return self.raw(self.T.mat_vec(a, b), None)
        rows = x1.shape[0]
        if x1.level is None:  # one product of matrices for the whole batch
            return self.raw(self.T.matmul_nd(b, self.T.swap_last(a)), level)
        if x2.level is None:
            out = self.T.mat_vec(self.T.reshape_to(a, (level.size * rows, x1.shape[1])), b)
        else:
            out = self.T.batched_matmul(a, self.T.reshape_to(b, (level.size, x2.shape[0], 1)))
        return self.raw(self.T.reshape_to(out, (level.size, rows)), level)

    def inner_product(self, x1: Any, x2: Any) -> Any:
        level = self._level(x1, x2)
        a, b = x1.value, x2.value
        if level is None:
            return self.raw(self.T.inner_product(a, b), None)
        if x1.level is None or x2.level is None:
            return self.raw(self.T.mat_vec(a, b) if x2.level is None else self.T.mat_vec(b, a), level)
        return self.raw(self.T.reduce_sum(self.T.multiply(a, b), (1,), False), level)

    def batched_matmul(self, x1: Any, x2: Any) -> Any:
        return self._aligned(self.T.batched_matmul, x1, x2)

    def matmul(self, x1: Any, x2: Any) -> Any:
        return self.matmul_nd(x1, x2) if len(x1.shape) == len(x2.shape) == 2 else self._aligned(self.T.matmul, x1, x2)

    def _aligned(self, function: Any, x1: Any, x2: Any, *statics: Any) -> Any:
        """A function of two stacks of matrices that broadcast."""
        rank = max(len(x1.shape), len(x2.shape))
        return self._wrapped(function(self._padded(x1, rank), self._padded(x2, rank), *statics), self._level(x1, x2))

    def solve_matrix(self, x1: Any, x2: Any) -> Any:
        return self._aligned(self.T.solve_matrix, x1, x2)

    def cofactors_along(self, x1: Any, x2: Any) -> Any:
        level = self._level(x1, x2)
        if level is None:
            return self.raw(self.T.cofactors_along(x1.value, x2.value), None)
        return self.raw(self.T.cofactors_along(self._full(x1, level), self._full(x2, level)), level)

    def cross_product(self, x1: Any, x2: Any, axis: int) -> Any:
        level = self._level(x1, x2)
        if level is None:
            return self.raw(self.T.cross_product(x1.value, x2.value, axis), None)
        return self.raw(self.T.cross_product(self._full(x1, level), self._full(x2, level), axis % len(x1.shape) - len(x1.shape)), level)

    def pseudoinverse(self, x: Any, rtol: Any) -> Any:
        if rtol.__class__ is self.raw:
            level = self._level(x, rtol)
            if level is None:
                return self.raw(self.T.pseudoinverse(x.value, self._static(rtol.value)), None)
            return self.raw(self.T.pseudoinverse(self._full(x, level), self._static(self._full(rtol, level))), level)
        return self.raw(self.T.pseudoinverse(x.value, rtol), x.level)

    def diagonal_transpose(self, x: Any, shape: Any, offset: int) -> Any:
        full = shape if x.level is None else (x.level.size, *shape)
        return self.raw(self.T.diagonal_transpose(x.value, full, offset), x.level)

    def fourier(self, x: Any, axes: Any, forward: bool, norm: str) -> Any:
        return self.raw(self.T.fourier(x.value, self._axes(x, axes), forward, norm), x.level)

    def check_phase(self, drift: Any, size: Any, name: str) -> None:
        PRIMITIVES["check_phase"](drift.value, size.value, name)

    def check_regular(self, x: Any) -> None:
        PRIMITIVES["check_regular"](x.value)


class _Linalg:
    """The functions of the linear algebra extension, which take stacks of matrices: on a batch as they are."""

    def __init__(self, rules: BatchRules) -> None:
        self._rules = rules

    def __getattr__(self, name: str) -> Any:
        rules = self._rules
        function = getattr(rules.T.linalg, name)

        def rule(*arrays: Any, **options: Any) -> Any:
            level = rules._level(*arrays)
            rank = max(len(a.shape) for a in arrays)
            if "axis" in options:
                options["axis"] = rules._axes(arrays[0], options["axis"])
            values = [rules._padded(a, rank) for a in arrays]
            return rules._wrapped(function(*values, **options), level)

        setattr(self, name, rule)
        return rule


def elementwise(row: Any, name: str, operations: Any) -> Any:
    """The operation of an elementwise row, as an operator where there is one."""
    if row.op is not None:
        found = (_OPERATORS if len(row.tensors) == 2 else _UNARY_OPERATORS).get(row.op)
        if found is not None:
            return found
    return getattr(operations, name)


def _plain(part: Any) -> bool:
    """Whether a part of a key is no array."""
    return part is None or part is Ellipsis or isinstance(part, (int, slice))


def _operator(method: str, name: str, swapped: bool = False) -> Any:
    """A special method that finds its kernel when it is first used, and then is that on the class of the backend."""

    def first(self: Any, *others: Any) -> Any:
        kernel = getattr(self.rules.backend.kernels, name)
        if not others:
            found: Any = lambda self: kernel(self)  # noqa: E731
        elif swapped:
            found = lambda self, other: kernel(other, self)  # noqa: E731
        else:
            found = lambda self, other: kernel(self, other)  # noqa: E731
        setattr(self.rules.raw, method, found)
        return found(self, *others)

    return first


def _add_operators() -> None:
    """Python's operators on raw arrays, as kernels use them."""
    names = {
        "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow", "floordiv": "floor_divide",
        "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    }  # fmt: skip
    for short, name in names.items():
        setattr(Batched, f"__{short}__", _operator(f"__{short}__", name))
        setattr(Batched, f"__r{short}__", _operator(f"__r{short}__", name, swapped=True))
    for short, name in {
        "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "matmul": "matmul",
    }.items():  # fmt: skip
        setattr(Batched, f"__{short}__", _operator(f"__{short}__", name))
    for short, name in {"neg": "negative", "invert": "bitwise_invert", "abs": "abs"}.items():
        setattr(Batched, f"__{short}__", _operator(f"__{short}__", name))


_add_operators()
