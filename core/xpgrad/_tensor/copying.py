"""Copies of Tensors: `copy.copy`, `copy.deepcopy` and pickle (ACC-37)."""

from __future__ import annotations

import copy
import sys
from types import FrameType
from typing import Any

from xpgrad._aliasing.cells import Alias, View, alias_of, chain_of, follow, note_sharing, share_inference
from xpgrad._modes.state import current
from xpgrad._modes.switches import enable_grad, no_grad
from xpgrad._rows.namespace import operations
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import alias as view_of_all


def _refuse(x: Any, what: str) -> None:
    if not x.is_leaf:
        msg = (
            f"Only Tensors created explicitly by the user (graph leaves) support the {what} protocol at the moment; this one was made by "
            f"{x.grad_fn.name()}. Use `x.detach().clone()`, or `x.clone()` to keep its history"
        )
        raise RuntimeError(msg)


def shallow(x: Any) -> Any:
    """Return another Tensor object with the same memory, history, tangents and gradient."""
    if _is_in_numpy_code():
        return x.clone()  # as NumPy's arrays are copied
    if x._has_tangent() or not x.is_leaf:
        with enable_grad():
            return view_of_all(x)  # an operation, which carries them, and which writes to either of the two note
    node = x._node  # first: a stale view becomes one of its normal class
    out = object.__new__(type(x))
    out._array, out._node = x.backend.own(x), node
    if x.is_inference():
        share_inference(out, x)
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
    """Return a leaf with copies of the values and of `.grad`; a Tensor that carries a derivative of a transform is cloned instead.

    So is every Tensor in code that was written for NumPy, and one that requires grad if xarray copies it: xarray's operations make deep
    copies on the way, and would lose the gradient.

    The copy of a view is a view of the copy of its base, as in PyTorch.
    """
    if id(x) in memo:
        return memo[id(x)]
    if (
        x.depth
        or x._has_tangent()
        or x._transformed_by() is not None
        or _is_in_numpy_code()
        or (x.requires_grad and _is_copied_by_xarray())
    ):
        memo[id(x)] = out = x.clone()
        return out
    _refuse(x, "deepcopy")
    if _is_plain_view(x):
        with no_grad():
            memo[id(x)] = out = follow(deep(x._base, memo), chain_of(x), operations)
        return out
    out = x._wrap(x.backend.kernels.copy(x._array))
    memo[id(x)] = out
    if x.requires_grad:
        out.requires_grad_()
    grad = x.grad
    if grad is not None:
        out.grad = copy.deepcopy(grad, memo) if grad.is_leaf else grad.detach().clone()
    return out


def _is_in_numpy_code() -> bool:
    mode = current()
    return mode is not None and mode.numpy is not None


def _is_copied_by_xarray() -> bool:
    """Return whether `copy.deepcopy` was called in a module of xarray."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != "copy":
        frame = frame.f_back
    while frame is not None and frame.f_globals.get("__name__") == "copy":
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "xarray"


def _is_plain_view(x: Any) -> bool:
    """Return whether `x` is a constant made from its base by operations that can be applied to another base."""
    base = x._base
    return base is not None and not x.requires_grad and base.is_leaf and x.grad is None


def _rebuild_tensor(host: Any, dtype: Any, device: str, requires_grad: bool, grad: Any) -> Any:
    """Recreate a pickled Tensor from its values on the host and its attributes."""
    out = asarray(host, dtype=dtype, device=device, copy=True)
    if requires_grad:
        out.requires_grad_()
    if grad is not None:
        out.grad = grad
    return out


_rebuild_tensor.__module__ = "xpgrad"  # what pickles name: `xpgrad` finds it here


def reduce_leaf(x: Any) -> Any:
    """Return the arguments with which pickle recreates a leaf: its values, dtype, device, requires_grad and `.grad`.

    Raises
    ------
    RuntimeError
        For a Tensor that is not a leaf, is an element of a batch, or carries a derivative that forward mode or a transform computes.
    """
    if x.depth or x._has_tangent() or x._transformed_by() is not None:
        what = "is an element of a batch" if x.depth else "carries a derivative"
        msg = (
            f"Can't pickle a Tensor that {what} inside of a function that is being transformed: the pickle would silently lose it. Pickle "
            "`x.detach()` if a constant is meant, outside of `vmap`; "
            "`copy.deepcopy(x)` makes a copy that keeps it"
        )
        raise RuntimeError(msg)
    _refuse(x, "pickle")
    grad = x.grad
    return _rebuild_tensor, (x.backend.to_host(x._array), x.dtype, str(x.device), x.requires_grad, None if grad is None else grad.detach())
