"""Handle functions that PyTorch lacks in some dtypes: compute with signed instead of unsigned integers, or raise `CapabilityError`.

Nothing is checked before a kernel runs, so supported dtypes cost nothing extra. Unsigned integers are viewed as signed ones of the same
width: the bits of sums, differences, products and powers modulo 2 ** width are the same, and so is the order once the highest bit is
flipped.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch

from xpgrad.backend import spellings
from xpgrad.errors import CapabilityError

__all__ = ["Extension", "guard_kernel", "compute_otherwise"]

_Tensor = torch.Tensor

#: The signed dtypes of the same width.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
_HALF = (torch.float16, torch.bfloat16)

# PyTorch's messages for a dtype that a kernel does not support; all other errors are about something else.
_LACKS = re.compile(
    r"not implemented for|not supported|not support|[Uu]nsupported dtype|Unsupported data type|handle types other than|"
    r"expected a tensor with .* types|torch\.[if]info\(\)|int64_t without overflow|int too big|negative int to|"
    r"[Ee]xpected .*(floating|complex|scalar type|dtype)"
)

# PyTorch's messages for a written value of the wrong shape, which every other library reports as a ValueError.
_MISFIT = re.compile(r"expanded size|shape mismatch|not expandable")


def _is_public(name: str) -> bool:
    """Return whether a kernel implements a single public function with another name; its errors should show that name."""
    found = spellings(name)
    return len(found) == 1 and found != (name,)


def _tensors(args: Any) -> Iterator[Any]:
    """Yield the tensors among arguments, and among the entries of their tuples, lists and dicts."""
    for arg in args.values() if isinstance(args, dict) else args:
        if isinstance(arg, _Tensor):
            yield arg
        elif isinstance(arg, (tuple, list, dict)):
            yield from _tensors(arg)


def _map_tensors(args: Any, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to each tensor among arguments or results; return these with the new tensors."""
    if isinstance(args, _Tensor):
        return change(args)
    if isinstance(args, dict):
        return {name: _map_tensors(arg, change) for name, arg in args.items()}
    if isinstance(args, (tuple, list)):
        parts = [_map_tensors(arg, change) for arg in args]
        return parts if isinstance(args, list) else tuple(parts)
    return args


def _is_integer(arg: Any) -> bool:
    return isinstance(arg, int) and not isinstance(arg, bool)


# -- ways to compute with unsigned integers ------------------------------------------------------------------------------------
#
# Each takes the kernel, the unsigned dtype, and the kernel's arguments and options. A signed dtype below is the one of the same width.


def _move_bits(function: Any, dtype: Any, args: Any, options: Any) -> Any:
    """Call a kernel that only moves elements, with views as signed integers; view its results as unsigned again."""
    signed = _SIGNED[dtype]
    bits = lambda t: t.view(signed) if t.dtype is dtype else t  # noqa: E731 (what `_map_tensors` takes)
    out = function(*_map_tensors(args, bits), **_map_tensors(options, bits))
    return _map_tensors(out, lambda t: t.view(dtype) if t.dtype is signed else t)


def _test_bits(function: Any, dtype: Any, args: Any, options: Any) -> Any:
    """Call a kernel that tests bits, e.g. for equality, with views as signed integers; its results are not values of `dtype`."""
    bits = lambda t: t.view(_SIGNED[dtype]) if t.dtype is dtype else t  # noqa: E731
    return function(*_map_tensors([_wrap_scalar(a, dtype) if _is_integer(a) else a for a in args], bits), **_map_tensors(options, bits))


def _write_bits(function: Any, dtype: Any, args: Any, options: Any) -> Any:
    """Write a value into the first operand through its view as signed integers, and return this operand."""
    buffer, key, value = args
    if isinstance(value, (int, float)):
        value = _wrap_scalar(int(value), dtype)
    elif value.dtype is dtype:
        value = value.view(_SIGNED[dtype])
    function(buffer.view(_SIGNED[dtype]), key, value)
    return buffer


def _wrap_scalar(value: int, dtype: Any) -> int:
    """Return the signed integer that has the bits of an unsigned one."""
    return value - (torch.iinfo(dtype).max + 1) * (value > torch.iinfo(_SIGNED[dtype]).max)


def _compute_modulo(function: Any, dtype: Any, args: Any, options: Any) -> Any:
    """Call a kernel of arithmetic modulo 2 ** width, which gives the same bits for signed integers."""
    return _move_bits(function, dtype, [_wrap_scalar(a, dtype) if _is_integer(a) else a for a in args], options)


def _make_ordered(values: bool) -> Callable[..., Any]:
    """Return a way to call a comparison with signed integers in the same order.

    `values` says that the results are values of the operands (as of `maximum`), and not bools.
    """

    def way(function: Any, dtype: Any, args: Any, options: Any) -> Any:
        signed = _SIGNED[dtype]
        low = torch.iinfo(signed).min
        turn = lambda t: t.view(signed) ^ low if t.dtype is dtype else t  # noqa: E731
        out = function(*_map_tensors([a + low if _is_integer(a) else a for a in args], turn), **_map_tensors(options, turn))
        return _map_tensors(out, lambda t: (t ^ low).view(dtype) if t.dtype is signed else t) if values else out

    return way


def _find_position(function: Any, dtype: Any, args: Any, options: Any) -> Any:
    """Call a kernel that returns positions (as `argmax`) with signed integers in the same order; its integer arguments are axes."""
    low = torch.iinfo(_SIGNED[dtype]).min
    return function(*_map_tensors(args, lambda t: t.view(_SIGNED[dtype]) ^ low if t.dtype is dtype else t), **options)


def _find_value(function: Any, dtype: Any, args: Any, options: Any) -> Any:
    """Call a kernel that returns extreme or sorted values with signed integers in the same order, and convert its result back."""
    low = torch.iinfo(_SIGNED[dtype]).min
    return (_find_position(function, dtype, args, options) ^ low).view(dtype)


def _widen_operands(dtype: Any, args: Any) -> list[Any]:
    """Return two operands as tensors of int64: with the same values, or for uint64 with the same bits."""
    tensor = next(_tensors(args))
    parts = [a if isinstance(a, _Tensor) else torch.full((), a, dtype=dtype, device=tensor.device) for a in args]
    return [a.view(torch.int64) if dtype is torch.uint64 else a.to(torch.int64) for a in parts]


_LOW, _HIGH = -(2**63), 2**63 - 1


def _divide_bits(a: Any, b: Any) -> Any:
    """Return the quotients, rounded down, of uint64 operands given as the int64 with the same bits."""
    large = b < 0  # 2 ** 63 or more: the quotient is 0 or 1
    divisor = torch.where(large, torch.ones_like(b), b)
    half = (((a >> 1) & _HIGH) // divisor) << 1  # at most 1 less than the quotient
    more = ((a - half * divisor) ^ _LOW) >= (divisor ^ _LOW)
    return torch.where(large, ((a ^ _LOW) >= (b ^ _LOW)).to(torch.int64), half + more)


def _shift_bits(a: Any, b: Any) -> Any:
    """Shift uint64 operands, given as the int64 with the same bits, to the right by `b`, filling with zeros."""
    return torch.where(b == 0, a, ((a >> 1) & _HIGH) >> (b - 1))


def _raise_bits(a: Any, b: Any) -> Any:
    """Return powers of uint64 operands, given as the int64 with the same bits, modulo 2 ** 64.

    Exponents of 2 ** 63 and more, which are negative as int64, can be reduced: the powers of an odd base repeat after 2 ** 62 steps, and
    those of an even base are 0 from the exponent 64 on.
    """
    return a ** torch.where(b < 0, (b & (2**62 - 1)) | 2**62, b)


def _make_integral(wide: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return a way to call a function whose bits differ for signed integers.

    The narrower dtypes are computed in int64, which holds all their values, and uint64 by `wide`, given the bits as int64.
    """

    def way(function: Any, dtype: Any, args: Any, options: Any) -> Any:
        a, b = _widen_operands(dtype, args)
        return wide(a, b).view(dtype) if dtype is torch.uint64 else function(a, b).to(dtype)

    return way


def _copy_operand(function: Any, dtype: Any, args: Any, options: Any) -> Any:
    """Return a copy of the operand: the absolute value of unsigned integers."""
    return args[0].clone()


def _sign(function: Any, dtype: Any, args: Any, options: Any) -> Any:
    return (args[0] != 0).to(dtype)


_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")

#: By kernel: the way to compute with unsigned integers that PyTorch does not support.
_UNSIGNED_WAYS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(
        ("lower", "upper", "tril", "triu", "index_basic", "gather", "take_flat", "gather_along", "take", "take_along_axis", "reverse",
         "flip", "shift_by", "roll", "ordered", "ordered_back", "where", "keep", "concat", "stack", "join", "pile", "unstack", "repeat",
         "copy", "clone", "clone_contiguous", "reshape", "reshape_to", "linalg.diagonal"), _move_bits
    ),
    **dict.fromkeys(("nonzero", "logical_not", "logical_and", "logical_or", "logical_xor", "equal", "not_equal"), _test_bits),
    **dict.fromkeys(("add", "subtract", "multiply", "negative", "square", "matmul", "matmul_nd", "batched_matmul", "bitwise_and",
                     "bitwise_or", "bitwise_xor", "bitwise_invert", "bitwise_left_shift", "linalg.cross", "linalg.matmul",
                     "linalg.outer"), _compute_modulo),
    **dict.fromkeys(_COMPARISONS[2:], _make_ordered(values=False)),
    **dict.fromkeys(("maximum", "minimum", "clip_scalar", "clip_below", "clip_above", "clip"), _make_ordered(values=True)),
    **dict.fromkeys(("argmax", "argmin", "searchsorted", "argsort"), _find_position),
    **dict.fromkeys(("reduce_max", "reduce_min", "max", "min", "sort"), _find_value),
    "floor_divide": _make_integral(_divide_bits), "remainder": _make_integral(lambda a, b: a - b * _divide_bits(a, b)),
    "bitwise_right_shift": _make_integral(_shift_bits), "pow": _make_integral(_raise_bits),
    "abs": _copy_operand, "sign": _sign, "written": _write_bits,
}  # fmt: skip
#: Functions that PyTorch has for float32 but not for half precision.
_SINGLE = ("fft.rfft", "fft.rfftn", "fft.ihfft")


def _as_float(value: int, exact: bool) -> float:
    """Return a large integer as a float; with `exact`, as the infinity of its sign."""
    return math.copysign(math.inf, value) if exact else float(value)


# -- the error ---------------------------------------------------------------------------------------------------------------------


def compute_otherwise(name: str, function: Any, exc: Exception, args: Any, options: Any) -> Any:
    """Compute the result of a kernel that raised `exc` in another way, if one exists.

    Parameters
    ----------
    name : str
        The name of the kernel.
    function : callable
        The kernel.
    exc : Exception
        The error that it raised.
    args, options
        Its arguments.

    Raises
    ------
    CapabilityError
        If PyTorch does not have the function for the operands' dtypes, and there is no other way.
    TypeError
        If the function is not defined for these dtypes in any library.
    ValueError
        If a written value does not fit the shape of its place.
    Exception
        `exc` itself if it is about something else.
    """
    if name == "written" and _MISFIT.search(str(exc)) is not None:
        raise ValueError(str(exc)) from exc
    cause = exc.__cause__ if isinstance(exc, CapabilityError) else exc
    if cause is None or _LACKS.search(str(cause)) is None:
        raise exc
    tensors = [*_tensors(args), *_tensors(options)]
    unsigned = next((t.dtype for t in tensors if t.dtype in _SIGNED), None)
    if any(_is_integer(arg) and not -(2**63) <= arg < (2**63 if unsigned is None else 2**64) for arg in args):
        # PyTorch does not accept such large Python integers. In comparisons with its integers, an infinity gives the same results.
        exact = name in _COMPARISONS and not any(t.dtype.is_floating_point or t.dtype.is_complex for t in tensors)
        return function(*(_as_float(arg, exact) if _is_integer(arg) else arg for arg in args), **options)
    try:
        if unsigned is not None and name in _UNSIGNED_WAYS:
            return _UNSIGNED_WAYS[name](function, unsigned, args, options)
        if name in _SINGLE and tensors and tensors[0].dtype in _HALF:
            return function(*_map_tensors(args, lambda t: t.to(torch.float32)), **options)
    except CapabilityError:
        pass  # PyTorch does not have it for signed integers either
    if exc is not cause and not _is_public(name):
        raise exc  # it names the missing function, which this kernel calls
    if _is_undefined(name, tensors, args):
        raise TypeError(str(cause)) from cause
    raise _make_error(name, tensors, cause) from cause


def _is_undefined(name: str, tensors: list[Any], args: Any) -> bool:
    """Return whether a function is undefined for these dtypes, as bits of floats, rounding of complex numbers, or negated bools."""
    dtypes = [t.dtype for t in tensors]
    if name.startswith("bitwise_"):
        return any(d.is_floating_point or d.is_complex for d in dtypes) or any(isinstance(arg, (float, complex)) for arg in args)
    return (name in _REAL and any(d.is_complex for d in dtypes)) or (name in ("subtract", "negative") and torch.bool in dtypes)


def _make_error(name: str, tensors: list[Any], cause: BaseException) -> CapabilityError:
    """Return the error for a function that PyTorch does not have for these dtypes."""
    dtypes = list(dict.fromkeys(str(t.dtype).removeprefix("torch.") for t in tensors))
    if any(t.dtype.is_complex for t in tensors):
        advice = "take a part or the size of each number first (`xpgrad.real`, `xpgrad.imag`, `xpgrad.abs`)"
    elif any(t.dtype in _HALF for t in tensors):
        advice = "convert first, with `xpgrad.astype(x, xpgrad.float32)`"
    elif any(t.dtype.is_floating_point for t in tensors):
        advice = "convert first, e.g. with `xpgrad.astype(x, xpgrad.int64)`"
    else:
        advice = f"convert first, with `xpgrad.astype(x, xpgrad.{'float64' if name.startswith(('linalg.', 'fft.')) else 'int64'})`"
    place = f"torch:{tensors[0].device}" if tensors else "torch"
    text = str(cause).strip().split("\n")[0]
    return CapabilityError(
        f"`{spellings(name)[0]}` of dtype {', '.join(dtypes)} on {place!r}: PyTorch does not have it ({text}); {advice}, or compute "
        "on another backend, e.g. on `x.to_device('numpy')`"
    )


#: Functions of real numbers only. NB: comparisons are not among them, since some libraries order complex numbers.
_REAL = frozenset(("floor", "ceil", "trunc", "remainder", "floor_divide", "hypot", "copysign", "signbit", "nextafter", "atan2"))
#: Kernels that need no guard, because PyTorch has them for every dtype or they handle its errors themselves.
_UNGUARDED = frozenset((
    "copy", "clone", "clone_contiguous", "clone_laid_out", "to_dtype", "cast", "reshape_to", "transpose_axes", "swap_last",
    "broadcast_view", "broadcast_to", "diagonal_view", "expand_reduced", "sum_to", "reduce_sum", "scale", "keep", "zeros_like",
    "ones_like", "real_part", "imag_part", "isdtype", "finfo", "iinfo", "asarray", "zeros", "arange", "empty", "full_like", "read",
    "flat_index", "count_up", "zeros_near", "put_at_path", "check_phase", "check_regular", "surely_nonzero", "isnan", "isinf",
    "isfinite", "real", "imag", "where", "running_sum", "running_prod", "concat", "join", "stack", "pile", "mean", "reduce_mean",
    "count_nonzero", "all", "any",
))  # fmt: skip
#: Functions of one operand without options, whose guard can be simpler.
_UNARY = frozenset(("abs", "floor", "ceil", "trunc", "round", "signbit", "logical_not", "bitwise_invert"))


def guard_kernel(name: str, function: Any) -> Any:
    """Return a kernel whose errors about unsupported dtypes go to `compute_otherwise`; the extra call costs 30 to 80 ns."""
    if name in _UNGUARDED or getattr(function, "handles_lacking", False) or not callable(function):
        return function
    if isinstance(function, functools.partial) and name not in _UNSIGNED_WAYS and not _is_public(name):
        return function  # a default kernel, which calls only guarded functions of the Array API
    if name in _UNARY:

        def one(x: Any) -> Any:
            try:
                return function(x)
            except (RuntimeError, TypeError) as exc:
                return compute_otherwise(name, function, exc, (x,), {})

        return one

    def guard(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except (RuntimeError, TypeError) as exc:
            return compute_otherwise(name, function, exc, args, options)

    return guard


class Extension:
    """The namespace of `linalg` or `fft`; each function is guarded when it is first looked up."""

    def __init__(self, library: Any, name: str) -> None:
        self._library, self._name = library, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._library, name, None)
        if found is None:
            msg = f"backend 'torch' has no function `{self._name}.{name}`"
            raise CapabilityError(msg)
        found = guard_kernel(f"{self._name}.{name}", found)
        setattr(self, name, found)
        return found
