"""The functions of the Array API standard (2024.12) on MLX's arrays: MLX's own, or written in terms of them.

A function runs in NumPy on the host (`host.hosted`) if MLX has nothing like it, if the shape of its result depends on values, or if MLX
computes float64 operands in float32, which would silently lose half of the digits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mlx.core as mx
import numpy as np

from xpgrad.errors import CapabilityError
from xpgrad_mlx import fft as fft, linalg as linalg, reductions
from xpgrad_mlx.host import FLOATS, INTEGERS, array_of, hosted, numpy_of

__array_api_version__ = "2024.12"

# -- MLX's own functions and dtypes ----------------------------------------------------------------------------------------------

e, inf, nan, newaxis, pi = math.e, math.inf, math.nan, None, math.pi
bool = mx.bool_  # noqa: A001 (the standard's name)
int8, int16, int32, int64 = mx.int8, mx.int16, mx.int32, mx.int64
uint8, uint16, uint32, uint64 = mx.uint8, mx.uint16, mx.uint32, mx.uint64
float16, bfloat16, float32, float64, complex64 = mx.float16, mx.bfloat16, mx.float32, mx.float64, mx.complex64

abs = mx.abs  # noqa: A001
acos, acosh, asin, asinh, atan, atanh, atan2 = mx.arccos, mx.arccosh, mx.arcsin, mx.arcsinh, mx.arctan, mx.arctanh, mx.arctan2
ceil, floor, trunc, round = mx.ceil, mx.floor, mx.trunc, mx.round  # noqa: A001
conj, real, imag = mx.conj, mx.real, mx.imag
cosh, sinh, tan, tanh = mx.cosh, mx.sinh, mx.tan, mx.tanh
negative, reciprocal = mx.negative, mx.reciprocal
expand_dims, squeeze, matrix_transpose = mx.expand_dims, mx.squeeze, mx.matrix_transpose
moveaxis, permute_dims = mx.moveaxis, mx.permute_dims
flip, roll, tile, stack, broadcast_to = mx.flip, mx.roll, mx.tile, mx.stack, mx.broadcast_to
isfinite, isinf, isnan, isdtype, iinfo = mx.isfinite, mx.isinf, mx.isnan, mx.isdtype, mx.iinfo
log, log10, log2, sqrt, square = mx.log, mx.log10, mx.log2, mx.sqrt, mx.square
logical_and, logical_or, logical_not, logical_xor = mx.logical_and, mx.logical_or, mx.logical_not, mx.logical_xor
take, where = mx.take, mx.where
all, any, max, min, prod, sum = (  # noqa: A001
    reductions.all, reductions.any, reductions.max, reductions.min, reductions.prod, reductions.sum,
)  # fmt: skip
count_nonzero, mean, std, var = reductions.count_nonzero, reductions.mean, reductions.std, reductions.var


# -- elementwise -----------------------------------------------------------------------------------------------------------------


def _arrays(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Return two operands as arrays; one of them may be a Python number, which takes the dtype of the other."""
    if not isinstance(x1, mx.array):
        return mx.array(x1, dtype=x2.dtype), x2
    return x1, x2 if isinstance(x2, mx.array) else mx.array(x2, dtype=x1.dtype)


def _floating_arrays(x1: Any, x2: Any) -> Any:
    """Return two operands as arrays of floating-point numbers."""
    return (x if x.dtype in FLOATS else x.astype(mx.float32) for x in _arrays(x1, x2))


def _accept_large_integers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of two operands that also accepts Python integers too large for MLX if the other operand is floating."""

    def call(x1: Any, x2: Any, /) -> Any:
        try:
            return function(x1, x2)
        except RuntimeError:
            pair = [x if isinstance(x, mx.array) else float(x) for x in (x1, x2)]
            if mx.issubdtype(next(x.dtype for x in pair if isinstance(x, mx.array)), mx.inexact):
                return function(*pair)
            raise

    return call


add, multiply, divide = _accept_large_integers(mx.add), _accept_large_integers(mx.multiply), _accept_large_integers(mx.divide)
equal, not_equal = _accept_large_integers(mx.equal), _accept_large_integers(mx.not_equal)
less, less_equal, greater, greater_equal = map(_accept_large_integers, (mx.less, mx.less_equal, mx.greater, mx.greater_equal))
_floor_divide, _remainder = _accept_large_integers(mx.floor_divide), _accept_large_integers(mx.remainder)
maximum, minimum = _accept_large_integers(mx.maximum), _accept_large_integers(mx.minimum)
_subtract, _power = _accept_large_integers(mx.subtract), _accept_large_integers(mx.power)


def remainder(x1: Any, x2: Any, /) -> Any:
    """Return the remainder with the sign of `x2`; MLX's zero has that of `x1`."""
    out = _remainder(x1, x2)
    if not mx.issubdtype(out.dtype, mx.inexact):
        return out
    zero = mx.zeros((), out.dtype)
    return mx.where(equal(out, 0.0), mx.where(less(x2, 0.0), -zero, zero), out)


def floor_divide(x1: Any, x2: Any, /) -> Any:
    """Return the whole number n with ``x1 == n * x2 + remainder(x1, x2)``: 9 for 1.0 and 0.1.

    MLX rounds ``x1 / x2`` before it takes the whole part, and has 10.
    """
    found = _floor_divide(x1, x2)
    if not mx.issubdtype(found.dtype, mx.inexact):
        return found
    rest, exact = remainder(x1, x2), divide(x1, x2)
    whole = mx.round(divide(subtract(x1, rest), x2))
    found = mx.where(mx.isfinite(whole), whole, found)
    below = mx.logical_and(mx.isinf(rest), mx.isfinite(exact))  # a number over an infinity of the other sign
    zero = mx.zeros((), found.dtype)  # the sign of the difference's zero is not that of the quotient
    return mx.where(below, -1 - zero, mx.where(equal(found, 0.0), mx.where(signbit(exact), -zero, zero), found))


def _reject_floats(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a bitwise function that raises TypeError for floats; MLX raises ValueError."""

    def call(*args: Any) -> Any:
        for x in args:
            if isinstance(x, float) or (isinstance(x, mx.array) and mx.issubdtype(x.dtype, mx.inexact)):
                msg = f"`{function.__name__}` takes integers and bools, not {getattr(x, 'dtype', 'float')}"
                raise TypeError(msg)
        return function(*args)

    return call


bitwise_and, bitwise_or, bitwise_xor = _reject_floats(mx.bitwise_and), _reject_floats(mx.bitwise_or), _reject_floats(mx.bitwise_xor)
bitwise_left_shift, bitwise_right_shift = _reject_floats(mx.left_shift), _reject_floats(mx.right_shift)
bitwise_invert = _reject_floats(mx.bitwise_invert)


def subtract(x1: Any, x2: Any, /) -> Any:
    out = _subtract(x1, x2)
    if out.dtype == mx.bool_:
        msg = "`subtract` takes numbers, not bools; use `logical_xor`"
        raise TypeError(msg)
    return out


def _make_exact(name: str) -> Callable[..., Any]:
    """Return a function for which NumPy computes float64 operands, because MLX computes them in single precision."""
    function, by_numpy = getattr(mx, name), hosted(getattr(np, name))

    def call(x: Any) -> Any:
        return by_numpy(x) if x.dtype == mx.float64 else function(x)

    return call


exp, sin, cos = _make_exact("exp"), _make_exact("sin"), _make_exact("cos")
_nextafter, _logaddexp = hosted(np.nextafter), hosted(np.logaddexp)


def logaddexp(x1: Any, x2: Any, /) -> Any:
    x1, x2 = _arrays(x1, x2)
    return _logaddexp(x1, x2) if mx.float64 in (x1.dtype, x2.dtype) else mx.logaddexp(x1, x2)


def nextafter(x1: Any, x2: Any, /) -> Any:
    x1, x2 = _floating_arrays(x1, x2)
    if mx.bfloat16 in (x1.dtype, x2.dtype):
        msg = "`nextafter` of bfloat16: neither MLX nor NumPy has it; convert first, with `xpgrad.astype(x, xpgrad.float32)`"
        raise CapabilityError(msg)
    return _nextafter(x1, x2)


def positive(x: Any, /) -> Any:
    return mx.array(x)


def _complex(real: Any, imag: Any) -> Any:
    """Return complex numbers of two parts. NB: the sum with ``imag * 1j`` would lose signs of zeros."""
    return mx.view(mx.stack([real, imag], axis=-1), mx.complex64)[..., 0]


def expm1(x: Any, /) -> Any:
    if x.dtype != mx.complex64:
        return mx.expm1(x)
    a, b = mx.real(x), mx.imag(x)
    half = mx.sin(b / 2)
    return _complex(mx.expm1(a) * mx.cos(b) - 2 * half * half, mx.where(b == 0, b, mx.exp(a) * mx.sin(b)))  # NB: its sine of -0 is 0


def log1p(x: Any, /) -> Any:
    if x.dtype != mx.complex64:
        return mx.log1p(x)
    a, b = mx.real(x), mx.imag(x)
    near = mx.maximum(mx.abs(a), mx.abs(b)) < 0.5  # elsewhere adding 1 loses nothing, and the squares would
    return _complex(mx.where(near, mx.log1p(a * (a + 2) + b * b) / 2, mx.real(mx.log(1 + x))), mx.arctan2(b, a + 1))


def sign(x: Any, /) -> Any:
    if x.dtype not in FLOATS:
        return mx.sign(x)
    return mx.where(mx.isnan(x), x, mx.sign(x))  # MLX's sign of nan is 0


def signbit(x: Any, /) -> Any:
    if x.dtype not in FLOATS:
        return x < 0
    return mx.view(x, {2: mx.int16, 4: mx.int32, 8: mx.int64}[x.dtype.size]) < 0


def copysign(x1: Any, x2: Any, /) -> Any:
    x1, x2 = _floating_arrays(x1, x2)
    return mx.where(signbit(x1) == signbit(x2), x1, -x1)


def hypot(x1: Any, x2: Any, /) -> Any:
    a, b = map(mx.abs, _floating_arrays(x1, x2))
    large, small = mx.maximum(a, b), mx.minimum(a, b)
    ratio = mx.where(small == large, mx.ones_like(small), small / large)  # 0 / 0 and inf / inf: both sides are equal
    endless = mx.isinf(a) | mx.isinf(b)
    size = mx.where(large == 0, large, large * mx.sqrt(1 + ratio * ratio))
    return mx.where(endless, mx.full(size.shape, math.inf, dtype=size.dtype), size)


def pow(x1: Any, x2: Any, /) -> Any:  # noqa: A001 (the standard's name)
    out = _power(x1, x2)
    return mx.where(x2 == 0, mx.ones_like(out), out) if out.dtype == mx.complex64 else out  # MLX's 0 ** 0 is nan there


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:  # noqa: A002
    return x if min is None and max is None else mx.clip(x, min, max)


# -- running sums and differences -----------------------------------------------------------------------------------------------


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Any:
    return _accumulate(mx.cumsum, mx.zeros, x, axis, dtype, include_initial)


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: Any = False) -> Any:
    return _accumulate(mx.cumprod, mx.ones, x, axis, dtype, include_initial)


def _accumulate(function: Any, start: Any, x: Any, axis: int | None, dtype: Any, include_initial: Any) -> Any:
    out = function(reductions.widen_for_sum(x, dtype), axis=0 if axis is None else axis)
    if not include_initial:
        return out
    axis = (0 if axis is None else axis) % out.ndim
    first = start(tuple(1 if i == axis else n for i, n in enumerate(out.shape)), dtype=out.dtype)
    return mx.concatenate([first, out], axis=axis)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    parts = [part for part in (prepend, x, append) if part is not None]
    return mx.diff(mx.concatenate(parts, axis=axis) if len(parts) > 1 else x, n=n, axis=axis)


# -- order, search and sets ------------------------------------------------------------------------------------------------------


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    if not descending:
        return mx.argsort(x, axis=axis).astype(mx.int64)
    # The ascending order of the flipped elements is reversed, so that equal elements keep their order.
    return x.shape[axis] - 1 - mx.flip(mx.argsort(mx.flip(x, axis=axis), axis=axis), axis=axis).astype(mx.int64)


def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Any:
    out = mx.sort(x, axis=axis)
    return mx.flip(out, axis=axis) if descending else out


def argmax(x: Any, /, *, axis: int | None = None, keepdims: Any = False) -> Any:
    return _find_place(mx.argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: Any = False) -> Any:
    return _find_place(mx.argmin, x, axis, keepdims)


def _find_place(function: Any, x: Any, axis: int | None, keepdims: Any) -> Any:
    if not x.ndim:  # MLX's function fails for 0-d arrays
        return mx.zeros((), dtype=mx.int64)
    if not x.size and axis is not None and x.shape[axis]:  # MLX's function refuses rows that are not there
        return mx.any(x, axis=axis, keepdims=keepdims).astype(mx.int64)
    return function(x, axis=axis, keepdims=keepdims).astype(mx.int64)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    return mx.searchsorted(x1 if sorter is None else mx.take(x1, sorter), x2, side=side).astype(mx.int64)


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: Any
    inverse_indices: Any


nonzero, isin = hosted(np.nonzero), hosted(np.isin)
unique_values = hosted(functools.partial(np.unique, equal_nan=False))  # `np.unique_values` does not sort integers


def unique_all(x: Any, /) -> UniqueAllResult:
    return UniqueAllResult(*hosted(np.unique_all)(x))


def unique_counts(x: Any, /) -> UniqueCountsResult:
    return UniqueCountsResult(*hosted(np.unique_counts)(x))


def unique_inverse(x: Any, /) -> UniqueInverseResult:
    return UniqueInverseResult(*hosted(np.unique_inverse)(x))


# -- shapes ----------------------------------------------------------------------------------------------------------------------


def reshape(x: Any, /, shape: Any, *, copy: Any = None) -> Any:
    return mx.reshape(x, shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    return mx.concatenate([mx.reshape(x, (-1,)) for x in arrays] if axis is None else list(arrays), axis=axis or 0)


def unstack(x: Any, /, *, axis: int = 0) -> Any:
    return tuple(mx.unstack(x, axis=axis))


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    if isinstance(repeats, int):
        return mx.repeat(x, repeats, axis=axis)
    x, axis = (mx.reshape(x, (-1,)), 0) if axis is None else (x, axis)
    return mx.take(x, mx.array(np.repeat(np.arange(x.shape[axis]), numpy_of(repeats))), axis=axis)


def broadcast_arrays(*arrays: Any) -> Any:
    return tuple(mx.broadcast_arrays(*arrays))


def meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    return tuple(mx.meshgrid(*arrays, indexing=indexing))


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    return mx.take_along_axis(x, indices, axis=axis)


def tril(x: Any, /, *, k: int = 0) -> Any:
    return mx.tril(x, k)


def triu(x: Any, /, *, k: int = 0) -> Any:
    return mx.triu(x, k)


# -- products --------------------------------------------------------------------------------------------------------------------


matmul, tensordot, vecdot = linalg.matmul, linalg.tensordot, linalg.vecdot

# -- creation --------------------------------------------------------------------------------------------------------------------
#
# The standard's signatures have `device`, which is ignored here: all of MLX's devices share one memory.


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: Any = None) -> Any:
    """Return an array from an MLX array, a NumPy array, or (nested lists of) Python numbers; it keeps the dtype if `dtype` is None."""
    if isinstance(obj, mx.array):
        if dtype is not None and dtype != obj.dtype:
            return obj.astype(dtype)
        return mx.array(obj) if copy else obj
    return array_of(np.asarray(obj), dtype)


def astype(x: Any, dtype: Any, /, *, copy: Any = True, device: Any = None) -> Any:
    return x if x.dtype == dtype and not copy else x.astype(dtype)


def from_dlpack(x: Any, /, *, device: Any = None, copy: Any = None) -> Any:
    """Return an array with the values of another library's array on the host. NB: `mx.from_dlpack` converts float64 to float32."""
    return x if isinstance(x, mx.array) else array_of(np.from_dlpack(x), None)


def zeros(shape: Any, *, dtype: Any = mx.float32, device: Any = None) -> Any:
    return mx.zeros(shape, dtype=dtype)


def ones(shape: Any, *, dtype: Any = mx.float32, device: Any = None) -> Any:
    return mx.ones(shape, dtype=dtype)


def empty(shape: Any, *, dtype: Any = mx.float32, device: Any = None) -> Any:
    return mx.zeros(shape, dtype=dtype)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return mx.full(shape, asarray(fill_value, dtype=dtype))


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    return mx.zeros(x.shape, dtype=x.dtype if dtype is None else dtype)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Any:
    return mx.ones(x.shape, dtype=x.dtype if dtype is None else dtype)


empty_like = zeros_like


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Any:
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Any:
    start, stop = (0, start) if stop is None else (start, stop)
    return array_of(np.arange(start, stop, step), dtype)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: Any = True) -> Any:
    values, dtype = np.linspace(start, stop, num, endpoint=endpoint), mx.float32 if dtype is None else dtype
    return array_of(np.floor(values) if dtype in INTEGERS else values, dtype)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = mx.float32, device: Any = None) -> Any:
    return mx.eye(n_rows, n_rows if n_cols is None else n_cols, k, dtype=dtype)


# -- dtypes ----------------------------------------------------------------------------------------------------------------------


class finfo:  # noqa: N801 (the standard's name)
    """Limits of a floating dtype, or of the real and imaginary parts of a complex dtype."""

    def __init__(self, type: Any, /) -> None:  # noqa: A002 (the standard's name)
        dtype = mx.float32 if type == mx.complex64 else type
        found = mx.finfo(dtype)
        self.bits, self.dtype = 8 * dtype.size, dtype
        self.eps, self.max, self.min = float(found.eps), float(found.max), float(found.min)
        # The exponent has the bits that remain after the sign and the mantissa.
        mantissa = -math.frexp(self.eps)[1] + 1
        self.smallest_normal = 2.0 ** (2 - 2 ** (self.bits - 1 - mantissa - 1))


def can_cast(from_: Any, to: Any, /) -> Any:
    dtype = from_.dtype if isinstance(from_, mx.array) else from_
    return result_type(dtype, to) == to


def result_type(*arrays_and_dtypes: Any) -> Any:
    return mx.result_type(*arrays_and_dtypes)
