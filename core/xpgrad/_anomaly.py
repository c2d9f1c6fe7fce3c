"""What anomaly detection does: nodes remember the traceback of their forward call, and what a node computes is checked for nan.

`_modes` and `_engine` call this in the mode only, so that nobody else pays for it.
"""

from __future__ import annotations

import traceback
import warnings
from contextvars import ContextVar
from typing import Any

__all__ = ["remember_traceback", "watched"]

_TRACEBACK, _PARENT = "traceback_", "parent_"
_running: ContextVar[Any] = ContextVar("xpgrad_running_node", default=None)


def remember_traceback(node: Any) -> None:
    """Store the stack of the forward call, innermost last, in the node's metadata (ANO-07)."""
    metadata = node.metadata
    if _TRACEBACK in metadata:
        return
    frames = traceback.extract_stack()
    while frames and _is_internal(frames[-1].filename):
        frames.pop()
    metadata[_TRACEBACK] = traceback.format_list(frames)
    if _running.get() is not None:
        metadata[_PARENT] = _running.get()


def _is_internal(filename: str) -> bool:
    return filename.startswith("<xpgrad ") or filename in _FILES


_FILES = frozenset({__file__, __file__.replace("_anomaly", "_modes"), __file__.replace("_anomaly", "_tensor")})


def watched(task: Any, node: Any, g: Any, mode: Any) -> list[Any]:
    """Run a node's rule; if it fails or gives nan, warn with the traceback of the node's forward call.

    Raises
    ------
    RuntimeError
        For nan (ANO-01); else whatever the rule raises, of its own type (ANO-09).
    """
    token = _running.set(getattr(node, "real", node))
    try:
        values: list[Any] = node.graph_grads(g) if task.graph else node.grads(g)
        if mode.check_nan:
            _check_nan(node, values)
    except BaseException:
        _report(node)
        raise
    finally:
        _running.reset(token)
    return values


def _check_nan(node: Any, values: list[Any]) -> None:
    places = [i for i, e in enumerate(node.operands()) if e is not None]
    for i, v in zip(places, values):
        if v is not None and _has_nan(v):
            msg = f"Function '{node.name()}' returned nan values in its {i}th output."
            raise RuntimeError(msg)


def _has_nan(v: Any) -> bool:
    from xpgrad._tensor import Tensor
    from xpgrad.registry import class_for_array

    while isinstance(v, Tensor):  # an element of a batch is one in which any element is
        v = v._array.value if v.depth else v._array
    backend = class_for_array(v).backend
    if not backend.dtype_of(v.dtype).differentiable:
        return False
    return bool(backend.kernels.any(backend.kernels.isnan(v)))


def _report(node: Any) -> None:
    node = getattr(node, "real", node)
    stack = node.metadata.get(_TRACEBACK)
    if stack is None:
        text = (
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for "
            "more information."
        )
    else:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}"
    warnings.warn(text, UserWarning, stacklevel=2)
    parent = node.metadata.get(_PARENT)
    while parent is not None:
        stack = parent.metadata.get(_TRACEBACK)
        where = "No forward pass information available for it." if stack is None else f"Traceback of its forward call:\n{''.join(stack)}"
        warnings.warn(f"The failing operation was made by the backward of {parent.name()}. {where}", UserWarning, stacklevel=2)
        parent = parent.metadata.get(_PARENT)
