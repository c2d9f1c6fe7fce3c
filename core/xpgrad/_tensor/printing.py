"""The repr of a Tensor: values, dtype and device where they are not the default, and its place in the graph."""

from __future__ import annotations

from typing import Any

from xpgrad._backends.default_device import get_default_device

__all__ = ["tensor_repr"]


def tensor_repr(x: Any) -> str:
    """``tensor([1., 2.], grad_fn=<MulBackward0>)``: values as the host array prints them, summarised where there are many."""
    prefix = "tensor("
    try:
        body = x.backend.text(x._array, len(prefix))
    except Exception as exc:  # noqa: BLE001 (a repr must not fail: traced and broken arrays have no values to show)
        body = f"<{type(exc).__name__}: values not available>, shape={x.shape}"
    parts = [body]
    if x.dtype.kind != "bool" and x.dtype is not x.default_dtype(_kind(x.dtype.kind)):
        parts.append(f"dtype={x.dtype!r}")
    if 0 in x.shape:
        parts.append(f"shape={x.shape}")
    if x.device != get_default_device():
        parts.append(f"device={str(x.device)!r}")
    node = x._node
    if node is not None:
        parts.append("requires_grad=True" if node.is_leaf else f"grad_fn=<{node.name()}>")
    return f"{prefix}{', '.join(parts)})"


def _kind(kind: str) -> str:
    return "integral" if "integer" in kind else kind
