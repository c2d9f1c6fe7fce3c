"""Convert the operands of functions that are not elementwise to Tensors of one dtype on one device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.arguments import shown
from xpgrad._basics.scalars import is_scalar
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import is_constant, lift_all
from xpgrad._rows.namespace import operations
from xpgrad._tensor.tensor import Tensor


def visible(*xs: Any) -> bool:
    """Return whether the values of a Tensor can be read: not under `vmap`, and not if they are lazy or traced."""
    return not any(x.depth or x.backend.capabilities.lazy or x.backend.is_traced(x._array) for x in xs)


def arrays_of(title: str, *, exact: bool = False, real: bool = False, **given: Any) -> list[Any]:
    """Convert arguments to Tensors of one dtype on one device; None stays None.

    Parameters
    ----------
    title : str
        The function's name, for messages.
    exact : bool
        Integers stay integers; otherwise they become floating numbers of the default dtype.
    real : bool
        Complex numbers are refused.
    **given
        Tensors, arrays, numbers, and sequences of numbers and 0-d Tensors, by the names of the arguments.

    Returns
    -------
    list of Tensor

    Raises
    ------
    TypeError, DeviceMismatchError
        For anything else, bools, and Tensors on different devices.
    """
    names, xs = list(given), list(given.values())
    xs = lift_all(title, [_stack(x) for x in xs])
    other = next((x for x in xs if isinstance(x, TensorBase)), None)
    for i, x in enumerate(xs):
        if x is not None and not isinstance(x, TensorBase):
            xs[i] = _read(title, names[i], x, other)
    for name, x in zip(names, xs):
        if x is None:
            continue
        if x.dtype.category == "bool":
            msg = f"{title}: `{name}` must hold numbers, but got bools; convert them, e.g. with `xpgrad.astype({name}, xpgrad.float64)`"
            raise TypeError(msg)
        if real and x.dtype.is_complex:
            msg = f"{title}: `{name}` must be real, but got dtype {x.dtype}; give `xpgrad.real({name})`"
            raise TypeError(msg)
    return _one_dtype(title, xs, exact=exact)


def _stack(x: Any) -> Any:
    """Stack a sequence with Tensors into one Tensor, which keeps their history; return any other value unchanged."""
    if isinstance(x, (list, tuple)) and any(isinstance(v, TensorBase) for v in x):
        like = next(v for v in x if isinstance(v, TensorBase))
        return operations.stack([v if isinstance(v, TensorBase) else operations.asarray(v, device=like.device) for v in x])
    return x


def _read(title: str, name: str, x: Any, other: Any) -> Any:
    """Convert an argument to a Tensor on the device of the operand `other`; numbers and sequences also take its precision."""
    if not is_scalar(x) and not (isinstance(x, Sequence) and not isinstance(x, (str, bytes))) and not is_constant(x):
        msg = f"{title}: `{name}` must be a Tensor, an array, or a sequence of numbers, but got {shown(x)}"
        raise TypeError(msg)
    try:
        found = operations.asarray(x) if other is None else operations.asarray(x, device=other.device)
    except (TypeError, ValueError) as exc:
        msg = f"{title}: `{name}` must be a Tensor, an array, or a sequence of numbers, but got {shown(x)}"
        raise type(exc)(msg) from exc
    if other is None or found.dtype.category == "bool" or not other.dtype.differentiable:
        return found
    scalar = 1j if found.dtype.is_complex else 1.0 if found.dtype.differentiable else 1
    return found._cast(operations.result_type(other, scalar))


def _one_dtype(title: str, xs: Sequence[Any], *, exact: bool = False) -> list[Any]:
    """Cast Tensors to the dtype to which they promote, on one device; None stays None."""
    there = unify(title, [x for x in xs if x is not None])
    floats = [x if x.dtype.differentiable or exact else x._cast(x.default_dtype("real floating")) for x in there]
    dtype = operations.result_type(*floats) if floats else None
    done = iter(_cast(x, dtype) for x in floats)
    return [None if x is None else next(done) for x in xs]


def _cast(x: Tensor, dtype: Any) -> Any:
    return x if x.dtype == dtype else x._cast(dtype)
