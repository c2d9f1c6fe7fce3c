"""Tensors as pytrees: how transforms of JAX flatten and rebuild them.

Device and requires_grad belong to the structure, the array to the leaves. A Tensor with history is refused: a `grad_fn` does not
survive the boundary of a transform, so its gradient would be lost silently.
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
    return (x.backend.own(x),), (str(x.device), x.requires_grad)


def _unflatten(cls: Any) -> Any:
    def unflatten(static: tuple[str, bool], leaves: Any) -> Any:
        (raw,) = leaves
        out = object.__new__(cls)
        out._array = raw
        out._node = out._alias = None
        cls.backend.note_device(raw, cls.device)
        # NB: JAX also puts objects that are not arrays into a structure, and arrays of other dtypes.
        if static[1] and hasattr(raw, "dtype") and jnp.issubdtype(raw.dtype, jnp.inexact):
            out.requires_grad_()
        return out

    return unflatten


def register_tensors(backend: Any) -> None:
    """Make the Tensors of every device of the backend pytrees."""
    from xpgrad.registry import when_class_is_made

    def register(cls: Any) -> None:
        if cls.backend is backend:
            jax.tree_util.register_pytree_node(cls, _flatten, _unflatten(cls))

    when_class_is_made(register)
