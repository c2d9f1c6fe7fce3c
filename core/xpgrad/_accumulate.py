"""What happens at a leaf: adding the pass's gradient to `.grad` by the layout rules (groups C and D), and checking what users assign."""

from __future__ import annotations

import warnings
from typing import Any

from xpgrad import _modes
from xpgrad._alias import alias_of
from xpgrad._node import ACCUMULATION_LOCK, AccumulateGrad

__all__ = ["accumulate_graph", "accumulate_raw", "check_assigned", "layout_policy_enforced"]

layout_policy_enforced = True


def accumulate_raw(node: Any, g: Any) -> None:
    """Add a raw gradient: in place into an existing `.grad`, else as a new one with the leaf's layout (LAY-01..05)."""
    real = node.original
    backend = real.cls.backend
    wanted = real.grad_dtype
    with ACCUMULATION_LOCK:
        old = real.grad
        if old is not None:
            wanted = old.dtype
        if wanted is not None:
            raw = backend.raw_dtype(wanted)
            if g.dtype != raw:
                g = backend.kernels.cast(g, raw)
                node.owned = True
        if old is None:
            if not (node.owned and backend.same_layout(g, real.array)):
                g = backend.with_layout(g, real.array)
            real.grad = new = real.variable._alike(g)
            mode = _modes.current()
            if mode is not None and mode.inference:
                new._become_inference()
        else:
            add_in_place(old, g)


def add_in_place(tensor: Any, g: Any) -> None:
    """Add a raw array into a Tensor's memory; the object, its layout and its history stay, its version rises (ACC-20, ACC-21)."""
    backend = tensor.backend
    array = backend.own(tensor)
    if backend.capabilities.mutable:
        array += g
        tensor._array = array
    else:
        tensor._array = array + g
    if not tensor.is_inference():
        alias_of(tensor).cell.bump()


def accumulate_graph(node: Any, g: Any) -> None:
    """Add a gradient with history: the old object keeps its value, `.grad` becomes a new one (ACC-22, LAY-06)."""
    real = node.original
    if real.grad_dtype is not None:
        g = g._cast(real.grad_dtype)
    old = real.grad
    if old is None:
        from xpgrad.rules.creation import clone_laid_out

        real.grad = clone_laid_out(g, real.array)
    else:
        real.grad = old + g


def check_assigned(tensor: Any, value: Any) -> None:
    """Refuse what cannot be a `.grad` (ACC-19).

    Raises
    ------
    TypeError, RuntimeError
        See the rule.
    """
    from xpgrad._tensor import Tensor

    if value is None:
        return
    if not isinstance(value, Tensor):
        msg = f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
        raise TypeError(msg)
    if value is tensor:
        msg = "can't assign Variable as its own grad"
        raise RuntimeError(msg)
    if value.shape != tensor.shape:
        msg = f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(tensor.shape)}'"
        raise RuntimeError(msg + "; the sizes must be equal")
    node = tensor._node
    wanted = node.grad_dtype if node.__class__ is AccumulateGrad else tensor.dtype
    if wanted is not None and value.dtype is not wanted:
        msg = f"attempting to assign a gradient with dtype '{value.dtype}' to a tensor with grad_dtype '{wanted}'; use `xpgrad.astype`"
        raise RuntimeError(msg)
    if value.device != tensor.device:
        msg = (
            f"attempting to assign a gradient with device type '{value.device}' to a tensor with device type '{tensor.device}'; "
            "use `to_device`"
        )
        raise RuntimeError(msg)


def warn_create_graph() -> None:
    """The warning of HOG-02, once per process."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
            "cause a memory leak. Use `xpgrad.autograd.grad` to avoid it, or set `.grad = None` afterwards",
            UserWarning,
            stacklevel=4,
        )


_warned = False
