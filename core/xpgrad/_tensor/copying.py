"""Copies of Tensors: `copy.copy`, `copy.deepcopy` and pickle (ACC-37)."""

from __future__ import annotations

import copy
from typing import Any

from xpgrad._memory.cells import Alias, View, alias_of, note_sharing
from xpgrad.rules.conversion import asarray


def _refuse(x: Any, what: str) -> None:
    if not x.is_leaf:
        msg = (
            f"Only Tensors created explicitly by the user (graph leaves) support the {what} protocol at the moment; this one was made by "
            f"{x.grad_fn.name()}. Use `x.detach().clone()`, or `x.clone()` to keep its history"
        )
        raise RuntimeError(msg)


def shallow(x: Any) -> Any:
    """Another Tensor object with the same memory, history and gradient."""
    node = x._node  # first: a stale view becomes one of its normal class
    out = object.__new__(type(x))
    out._array, out._node = x.backend.own(x), node
    if x.is_inference():
        out._alias = x._alias
        return out
    alias = alias_of(x)
    if alias.parent is None:
        out._alias = Alias(alias.cell, alias.path, alias.memory)
    else:
        out._alias = View(alias.parent, alias.row, alias.args)
        out._alias.forbidden = alias.forbidden
    note_sharing(out)
    if hasattr(x, "_grad"):
        out._grad = x._grad
    return out


def deep(x: Any, memo: dict[int, Any]) -> Any:
    """A leaf with a copy of the values and of `.grad`."""
    _refuse(x, "deepcopy")
    if id(x) in memo:
        return memo[id(x)]
    out = x._wrap(x.backend.kernels.copy(x._array))
    memo[id(x)] = out
    if x.requires_grad:
        out.requires_grad_()
    grad = x.grad
    if grad is not None:
        out.grad = copy.deepcopy(grad, memo) if grad.is_leaf else grad.detach().clone()
    return out


def _rebuild_tensor(host: Any, dtype: Any, device: str, requires_grad: bool, grad: Any) -> Any:
    """Recreate a pickled Tensor."""
    out = asarray(host, dtype=dtype, device=device, copy=True)
    if requires_grad:
        out.requires_grad_()
    if grad is not None:
        out.grad = grad
    return out


_rebuild_tensor.__module__ = "xpgrad"  # what pickles name: `xpgrad` finds it here


def reduce_leaf(x: Any) -> Any:
    """Reduce a leaf for pickle: its values, dtype, device, requires_grad and `.grad`."""
    _refuse(x, "pickle")
    grad = x.grad
    return _rebuild_tensor, (x.backend.to_host(x._array), x.dtype, str(x.device), x.requires_grad, None if grad is None else grad.detach())
