"""The repr of a Tensor: values, dtype and device unless they are the default, its node, its tangent, its batches."""

from __future__ import annotations

from typing import Any

from xpgrad._backends.default_device import get_default_device
from xpgrad._modes import state


def tensor_repr(x: Any) -> str:
    """Return the repr, such as ``tensor([1., 2.], grad_fn=<MulBackward0>)``: values as the host prints them, summarised if there are many.

    An element of a batch is shown with its shape, the values of all elements, and the lengths of its batches, ``batch=(8,)``: those of
    several `vmap` with the outermost first. A dual is shown with its tangent at the innermost level that has one.
    """
    prefix = "tensor("
    try:
        body = x.backend.text(x._array, len(prefix))
    except Exception as exc:  # noqa: BLE001 (a repr must not fail: traced and broken arrays have no values to show)
        body = f"<{type(exc).__name__}: values not available>, shape={x.shape}"
    parts = [body]
    if x.dtype.category != "bool" and x.dtype is not x.default_dtype(_kind(x.dtype.category)):
        parts.append(f"dtype={x.dtype!r}")
    if 0 in x.shape and not _batch(x):
        parts.append(f"shape={x.shape}")
    if x.device != get_default_device():
        parts.append(f"device={str(x.device)!r}")
    if batch := _batch(x):
        parts.append(f"shape={x.shape}, batch={batch}")
    node = x._node
    if node is not None:
        parts.append("requires_grad=True" if x.is_leaf else f"grad_fn=<{node.name()}>")
    if (tangent := _tangent(x)) is not None:
        parts.append(f"tangent={tangent!r}")
    return f"{prefix}{', '.join(parts)})"


def _batch(x: Any) -> tuple[int, ...]:
    """Return the lengths of the batches to which the element `x` belongs, the outermost first."""
    sizes: tuple[int, ...] = ()
    while x.depth:
        level, x = x._array.level, x._array.value
        sizes = sizes if level is None else (level.size, *sizes)
    return sizes


def _tangent(x: Any) -> Any:
    """Return the tangent of `x` at the innermost active level of forward mode that has one, or None."""
    mode = state.current()
    if mode is None or not mode.levels or mode.inference or not mode.levels.running:
        return None
    found = (level.tangent(x) for level in reversed(mode.levels))
    return next((t for t in found if t is not None), None)


def _kind(kind: str) -> str:
    return "integral" if "integer" in kind else kind
