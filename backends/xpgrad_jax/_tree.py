"""Tensors as pytrees: how transforms of JAX flatten and rebuild them.

The device and requires_grad are part of the structure, and the array is the leaf. A Tensor with history or a tangent, or one that carries
a derivative of a running transform of xpgrad, raises an error: none of these can cross the boundary of a transform of JAX, so the
derivative would be lost silently.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

__all__ = ["register_tensors"]


def _flatten(x: Any) -> tuple[tuple[Any], tuple[str, bool]]:
    if not x.is_leaf:
        msg = (
            f"a Tensor with history (grad_fn={x.grad_fn.name()}) cannot enter or leave a transform of JAX: the graph behind it would "
            "be lost. Give it `x.detach()`, differentiate inside the transform, or use `xpgrad.compile`"
        )
        raise RuntimeError(msg)
    if (name := x._transformed_by()) is not None or x._has_tangent():
        what = "has a tangent" if name is None else f"carries the derivative of `{name}`"
        msg = (
            f"a Tensor that {what} cannot enter or leave a transform of JAX: the derivative would be lost. Give it `x.detach()`, or use "
            "xpgrad's transforms and `xpgrad.compile`"
        )
        raise RuntimeError(msg)
    return (x.backend.own(x),), (str(x.device), x.requires_grad)


def _unflatten(cls: Any) -> Any:
    def unflatten(static: tuple[str, bool], leaves: Any) -> Any:
        (raw,) = leaves
        out = object.__new__(cls)
        out._array = raw
        out._node = out._alias = None
        cls.backend.note_device(raw, cls.device)
        # NB: JAX also rebuilds structures with leaves that are not arrays, or have other dtypes.
        if static[1] and hasattr(raw, "dtype") and jnp.issubdtype(raw.dtype, jnp.inexact):
            out.requires_grad_()
        return out

    return unflatten


def register_tensors(backend: Any) -> None:
    """Register the Tensor classes of all devices of a backend as pytrees, including those that are made later."""
    from xpgrad.registry import when_class_is_made

    def register(cls: Any) -> None:
        if cls.backend is backend:
            jax.tree_util.register_pytree_node(cls, _flatten, _unflatten(cls))

    when_class_is_made(register)
