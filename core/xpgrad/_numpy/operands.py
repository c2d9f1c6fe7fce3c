"""Operands of NumPy's functions: numbers and arrays become constants on the Tensors' device; other objects raise `TypeError`."""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterable
from typing import Any

import xpgrad as xp
from xpgrad._array.checks import describe_container
from xpgrad._backends.classes import host_backend
from xpgrad._basics.dtypes import promote, promote_scalar
from xpgrad._basics.scalars import NOT_SCALAR, as_scalar, is_container, is_raw_array
from xpgrad._modes import state
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import ContainerError, is_movable, lift as lift_raw, lift_matching
from xpgrad._tensor.tensor import Tensor

# -- constants ---------------------------------------------------------------------------------------------------------


def as_constant(name: str, x: Any, like: Tensor) -> Tensor:
    """Convert `x`, which is not a Tensor, to a constant on the device of `like`.

    Parameters
    ----------
    name : str
        The function's name, for error messages.
    x : number, sequence of numbers or Tensors, NumPy array, or raw array of the library of `like`
        The constant shares an array's memory if the library can; later writes to the array are not tracked (`_operations.lift`).
    like : Tensor

    Raises
    ------
    TypeError
        If `x` is an array of objects, a masked array, an array of another library, or no array at all.
    DeviceMismatchError
        If `x` is a NumPy array and the device's memory is not the host's, or if `x` is a raw array on another device.
    """
    if (scalar := _as_number(x)) is not NOT_SCALAR:
        return xp.asarray(scalar, device=like.device)
    if isinstance(x, (deque, range)):
        x = list(x)
    if isinstance(x, (list, tuple)):
        if _find_tensors(x):  # stacking keeps each Tensor of the list in the graph
            return xp.asarray(x)
        for item in x:
            if isinstance(item, (list, tuple)) or is_raw_array(item):
                _check_array(name, item, like)
        return xp.asarray(x, device=like.device)
    _check_kind(name, x, like)
    found: Tensor = lift_raw(f"np.{name}", x, like)
    return found if found.device == like.device else found.to_device(like.device)


def _as_number(x: Any) -> Any:
    """Return `x` as a Python scalar if it is a number of Python or NumPy, or a 0-d NumPy array; else `NOT_SCALAR`."""
    scalar = as_scalar(x)
    if scalar is NOT_SCALAR and getattr(x, "ndim", None) == 0 and not isinstance(x, Tensor) and not hasattr(x, "mask"):
        host: Any = host_backend().array_types()
        if isinstance(x, host) and x.dtype.kind in "biufc":
            return x.item()
    return scalar


def _check_array(name: str, x: Any, like: Tensor) -> None:
    """Raise unless `x`, or every item if it is a nested list, is a number or an array that can be a constant on the device of `like`."""
    if isinstance(x, (list, tuple)):
        for item in x:
            _check_array(name, item, like)
    elif as_scalar(x) is NOT_SCALAR:
        _check_kind(name, x, like)
        lift_raw(f"np.{name}", x, like)


def _check_kind(name: str, x: Any, like: Tensor) -> None:
    """Raise `TypeError` unless `x` is an array of numbers or bools."""
    what = f"{type(x).__module__}.{type(x).__qualname__}"
    host: Any = host_backend().array_types()
    if isinstance(x, host) and x.dtype.kind not in "biufc":
        inside = any(isinstance(item, Tensor) for item in x.flat) if x.dtype.kind == "O" else False
        advice = "`np.stack` makes one Tensor of several" if inside else "convert it with `x.astype(float)`"
        which = f"an array of dtype {x.dtype}" + (" that holds Tensors" if inside else "")
        msg = f"np.{name}: a Tensor on {like.device} met {which}, which no device has; {advice}"
        raise TypeError(msg)
    if is_container(x) and not is_raw_array(x):
        raise ContainerError(describe_container(f"np.{name}", x))
    if not is_raw_array(x):
        msg = f"np.{name}: a Tensor on {like.device} met {what}, which is neither a number nor an array; use `xpgrad.asarray(x)`"
        raise TypeError(msg)


# -- lifting operands --------------------------------------------------------------------------------------------------


def _reference_tensor(name: str, tensors: list[Any]) -> Any:
    """Return the Tensor that decides the device of constants: the first that does not move to others, else the first.

    Raises
    ------
    TypeError
        If there are no Tensors.
    """
    if not tensors:
        msg = f"np.{name}: none of the arrays is a Tensor, only `out` or an option; wrap one with `xpgrad.asarray(x)`"
        raise TypeError(msg)
    return next((t for t in tensors if not is_movable(t)), tensors[0])


def lift(name: str, *args: Any) -> Any:
    """Convert operands to Tensors on one device; None stays None.

    Raises
    ------
    TypeError, DeviceMismatchError
        As `as_constant`, and if the Tensors are on several devices.
    """
    first = args[0].__class__
    if issubclass(first, Tensor) and (len(args) == 1 or all(a.__class__ is first for a in args)):
        return args
    if len(args) == 2 and (found := _lift_pair(*args)) is not None:
        return found
    tensors = [a for a in args if isinstance(a, Tensor)] or [t for a in args for t in _find_tensors(a)]
    like = _reference_tensor(name, tensors)
    return _unify_tensors(name, [a if a is None or isinstance(a, Tensor) else _lift_constant(name, a, tensors, like) for a in args])


def _lift_pair(a: Any, b: Any) -> Any:
    """Fast path of `lift` for a Tensor and an array that needs no conversion: return both as Tensors; None otherwise."""
    if isinstance(a, Tensor):
        b = lift_matching(b, a)
        return None if b is None else (a, b)
    if isinstance(b, Tensor):
        a = lift_matching(a, b)
        return None if a is None else (a, b)
    return None


def _lift_constant(name: str, x: Any, tensors: list[Any], like: Tensor) -> Tensor:
    """Convert `x` to a constant; a number gets the dtype that results from promoting it with the Tensors.

    A bool keeps its dtype, because it is a condition.
    """
    scalar = _as_number(x)
    if scalar is NOT_SCALAR or isinstance(scalar, bool):
        return as_constant(name, x, like)
    dtype = functools.reduce(promote, (t.dtype for t in tensors))
    return xp.full((), scalar, dtype=promote_scalar(dtype, scalar, like.default_dtype), device=like.device)


def lift_weak(name: str, *args: Any) -> Any:
    """Convert arrays to Tensors on one device, and numbers to Python scalars, so that they do not raise the precision of the result."""
    if len(args) == 2 and (found := _lift_pair(*args)) is not None:
        return found
    tensors = [a for a in args if isinstance(a, Tensor)] or [t for a in args for t in _find_tensors(a)]
    like = _reference_tensor(name, tensors)
    out = []
    for a in args:
        if a is not None and not isinstance(a, Tensor):
            scalar = _as_number(a)
            a = as_constant(name, a, like) if scalar is NOT_SCALAR else scalar
        out.append(a)
    return _unify_tensors(name, out)


def _unify_tensors(name: str, out: list[Any]) -> Any:
    positions = [i for i, a in enumerate(out) if isinstance(a, Tensor)]
    if len({type(out[i]) for i in positions}) > 1:
        for i, t in zip(positions, unify(f"np.{name}", [out[i] for i in positions])):
            out[i] = t
    return tuple(out)


def lift_sequence(name: str, arrays: Any) -> list[Any]:
    """Convert the items of a sequence to Tensors on one device.

    Raises
    ------
    TypeError
        If `arrays` is not iterable.
    ValueError
        If it is empty.
    """
    if isinstance(arrays, Tensor):
        return list(arrays)
    if not isinstance(arrays, Iterable):
        msg = f"np.{name} needs a sequence of arrays, but got {type(arrays).__name__}"
        raise TypeError(msg)
    items = list(arrays)
    if not items:
        msg = f"np.{name} needs at least one array"
        raise ValueError(msg)
    found = [t for item in items for t in _find_tensors(item)]
    like = _reference_tensor(name, found)
    return list(_unify_tensors(name, [a if isinstance(a, Tensor) else as_constant(name, a, like) for a in items]))


def _find_tensors(x: Any) -> list[Any]:
    if isinstance(x, Tensor):
        return [x]
    return [t for item in x for t in _find_tensors(item)] if isinstance(x, (list, tuple, deque)) else []


def can_read_values(x: Any) -> bool:
    """Return whether the values of `x` can be read: not inside `vmap`, or if `x` is lazy or traced."""
    return not (x.depth or x.backend.capabilities.lazy or x.backend.is_traced(x._array))


# -- dtypes ------------------------------------------------------------------------------------------------------------


def as_floating(x: Any) -> Any:
    """Cast integers and bools to the device's default floating dtype; return other Tensors unchanged."""
    return x if x._node is not None or x.dtype.differentiable else x._cast(x.default_dtype("real floating"))


def as_numpy_dtype(dtype: Any) -> Any:
    """Return NumPy's dtype of the same name, which NumPy code expects."""
    return sys.modules["numpy"].dtype(dtype)


_KINDS = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")


def can_cast_same_kind(dtype: Any, to: Any) -> bool:
    """Return whether NumPy's casting rule "same_kind" allows a cast: it keeps fractions, imaginary parts and signs."""
    return _KINDS.index(dtype.category) <= _KINDS.index(to.category)


# -- options -----------------------------------------------------------------------------------------------------------


def is_default(value: Any, default: Any) -> bool:
    """Return whether an argument equals its default, or is NumPy's marker for an omitted argument (`numpy._NoValue`)."""
    return value is default or type(value).__name__ == "_NoValueType" or (type(value) is type(default) and bool(value == default))


#: Options that do not affect the result's values: the accepted values of each, or None if every value is accepted.
_HARMLESS: dict[str, tuple[Any, ...] | None] = {
    "order": (None, "K", "C", "A"), "subok": (True, False), "casting": ("same_kind",), "optimize": None, "kind": None,
    "overwrite_input": (True, False), "assume_unique": (True, False), "signature": (None,), "copy": (True,),
}  # fmt: skip


def refuse(name: str, **options: Any) -> None:
    """Raise `TypeError` naming the first option that is set to something other than None or a value in `_HARMLESS`."""
    for option, value in options.items():
        harmless = _HARMLESS.get(option, (None,))
        if harmless is not None and not any(is_default(value, h) for h in harmless):
            msg = (
                f"np.{name}: xpgrad has no `{option}`={value!r:.60}; leave it out, or compute with `x.detach().numpy()` what is a constant"
            )
            raise TypeError(msg)


def as_ints(name: str, what: str, value: Any) -> Any:
    """Convert an integer, a sequence of integers or an integer array to an int or a (nested) tuple of ints.

    Raises
    ------
    TypeError
        If `value` contains something other than integers.
    """
    if value.__class__ is int:
        return value
    if isinstance(value, Tensor) or (hasattr(value, "tolist") and hasattr(value, "dtype")):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return tuple(as_ints(name, what, v) for v in value)
    try:
        if isinstance(value, bool):
            raise TypeError
        return value.__index__()
    except (AttributeError, TypeError):
        msg = f"np.{name}: `{what}` must be an int or a sequence of ints, but got {type(value).__name__} {value!r:.60}"
        raise TypeError(msg) from None


def as_tuple(value: Any) -> Any:
    """Return a tuple or list unchanged, and anything else as a tuple of one item."""
    return value if isinstance(value, (tuple, list)) else (value,)


def resolve_axis(x: Any, axis: Any) -> tuple[Any, Any]:
    """Return `x` and `axis`; if `axis` is None, the flattened `x` and 0."""
    return (xp.reshape(x, (-1,)), 0) if axis is None else (x, axis)


def slice_axis(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    """Return ``x[..., start:stop, ...]``, sliced along one axis that is not negative."""
    return x[(*(slice(None),) * axis, slice(start, stop))]


def reshape_to_axis(x: Any, axis: int, rank: int) -> Any:
    """Reshape a vector to `rank` axes of length 1, except for `axis`, so that it broadcasts along that axis."""
    return xp.reshape(x, (1,) * axis + (-1,) + (1,) * (rank - axis - 1))


def write_out(name: str, out: Any, result: Any, where: Any = None) -> Any:
    """Write `result` into `out`, as a recorded in-place write, and return `out`; return `result` if `out` is None.

    If `where` is given, elements of `out` at which it is False keep their value.

    Raises
    ------
    TypeError
        If `out` is not a Tensor: gradients cannot flow through another library's array.
    """
    if out is None or type(out).__name__ == "_NoValueType":
        return result
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if not isinstance(out, Tensor):
        what = f"{type(out).__module__}.{type(out).__qualname__}"
        mode = state.current()
        if mode is not None and mode.numpy is not None:
            advice = (
                "make the array inside of the function, of floating-point numbers (what is computed from integers, such as "
                "`np.arange(3) / 2`, stays NumPy's; `np.arange(3.0) / 2` does not), or pass it as an argument"
            )
        else:
            advice = "write `out[...] = result.detach().numpy()` after it, or give a Tensor"
        msg = f"np.{name}: `out` is {what}, but the operands are Tensors on {result.device}: the result would leave the graph; {advice}"
        raise TypeError(msg)
    if where is not None:
        result = xp.where(where, result, out)
    out[...] = cast_to_out(name, result, out)
    return out


def cast_to_out(name: str, result: Any, out: Any) -> Any:
    """Cast `result` to the dtype of `out`, under NumPy's casting rule "same_kind".

    Raises
    ------
    TypeError
        If the cast would lose fractions, imaginary parts or signs.
    """
    if not can_cast_same_kind(result.dtype, out.dtype):
        msg = f"np.{name}: a result of dtype {result.dtype} does not fit `out` of dtype {out.dtype}; convert it with `xpgrad.astype`"
        raise TypeError(msg)
    return result._cast(out.dtype)
