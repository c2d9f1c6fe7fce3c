"""Errors for operands that are not Tensors."""

from __future__ import annotations

from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.scalars import is_container, is_raw_array, is_scalar


def not_a_tensor(name: str, *args: Any) -> TypeError:
    """Return the error for operands that should all be Tensors."""
    for arg in args:
        if isinstance(arg, TensorBase) or (is_scalar(arg) and any(isinstance(a, TensorBase) for a in args)):
            continue
        what = f"{type(arg).__module__}.{type(arg).__qualname__}"
        if is_container(arg):
            return TypeError(describe_container(name, arg))
        if is_raw_array(arg):
            return TypeError(f"`{name}` works on Tensors, but got a raw array of type {what}; wrap it with `xpgrad.asarray(x)`")
        return TypeError(f"`{name}` needs a Tensor, but got {what} {arg!r:.60}; make one with `xpgrad.asarray(x)`")
    return TypeError(f"`{name}` needs at least one Tensor among its operands, but got only scalars; use `xpgrad.asarray(x)`")


def describe_container(name: str, x: Any) -> str:
    """Return the message for an operand that computes with the array that it holds, where only arrays are taken."""
    return (
        f"`{name}` got {type(x).__module__}.{type(x).__qualname__}, which computes with the array that it holds: use its operators and "
        "functions, or the array itself, such as `x.data` of xarray or `x.magnitude` of pint"
    )


def need_tensor(name: str, x: Any) -> None:
    """Raise TypeError if `x` is not a Tensor."""
    if not isinstance(x, TensorBase):
        raise not_a_tensor(name, x)
