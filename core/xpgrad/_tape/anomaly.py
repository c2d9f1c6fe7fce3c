"""Anomaly detection: record the traceback of each forward call, and check the results of the backward pass for nan.

Other modules reach it through `Mode.anomaly`, so that passes without it pay nothing.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from contextvars import ContextVar
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._array.kernels import read_number
from xpgrad._basics.frames import is_own
from xpgrad._tape.node import backend_of

_TRACEBACK, _PARENT = "traceback_", "parent_"
_running: ContextVar[Any] = ContextVar("xpgrad_running_node", default=None)


class Anomaly:
    """The value of `Mode.anomaly` while anomaly detection is on."""

    __slots__ = ()

    def record_traceback(self, node: Any) -> None:
        """Record the stack of the forward call, innermost last, in the node's metadata (ANO-07)."""
        metadata = node.metadata
        if _TRACEBACK in metadata:
            return
        frames = traceback.extract_stack()
        while frames and is_own(frames[-1].filename):
            frames.pop()
        metadata[_TRACEBACK] = traceback.format_list(frames)
        if _running.get() is not None:
            metadata[_PARENT] = _running.get()

    def run_checked(self, task: Any, node: Any, g: Any, check_nan: bool) -> list[Any]:
        """Run a node's formulas and return their gradients; if they fail or give nan, warn with the forward call's traceback, and raise.

        Raises
        ------
        RuntimeError
            For nan (ANO-01). An error that a formula raises keeps its type (ANO-09).
        """
        before = _running.get()
        try:
            _running.set(node.original)
            values: list[Any] = node.graph_grads(g) if task.graph else node.grads(g)
            if check_nan:
                _check_nan(node, values)
        except BaseException:
            _report(node)
            raise
        finally:
            _running.set(before)
        return values


ANOMALY = Anomaly()


def _check_nan(node: Any, values: list[Any]) -> None:
    places = [i for i, e in enumerate(node.operands()) if e is not None]
    for i, v in zip(places, values):
        if v is not None and _has_nan(v, backend_of(node.operands()[i])):
            msg = f"Function '{node.name()}' returned nan values in its {i}th output."
            raise RuntimeError(msg)


def _has_nan(v: Any, backend: Any) -> bool:
    # NB: the backend comes from the node or the Tensor, because an array does not tell a variant from its base. An element of a batch
    # counts as nan if any element of the batch is nan.
    while isinstance(v, TensorBase) or isinstance(getattr(v, "value", None), TensorBase):
        if isinstance(v, TensorBase):
            backend, v = type(v._stand_in()).backend, v._array
        else:
            v = v.value
    if not backend.dtype_of(v.dtype).differentiable:
        return False
    return bool(read_number(backend.kernels, backend.kernels.any(backend.kernels.isnan(v))))


def _report(node: Any) -> None:
    node = node.original
    stack = node.metadata.get(_TRACEBACK)
    if stack is None:
        text = (
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for "
            "more information."
        )
    else:
        text = f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(stack)}"
    _warn(text)
    parent = node.metadata.get(_PARENT)
    while parent is not None:
        stack = parent.metadata.get(_TRACEBACK)
        where = "No forward pass information available for it." if stack is None else f"Traceback of its forward call:\n{''.join(stack)}"
        _warn(f"The failing operation was made by the backward of {parent.name()}. {where}")
        parent = parent.metadata.get(_PARENT)


def _warn(text: str) -> None:
    """Warn; where warnings are errors, print the text, since an error here would hide the one that it explains (ANO-09)."""
    try:
        warnings.warn(text, UserWarning, stacklevel=3)
    except UserWarning:
        print(f"UserWarning: {text}", file=sys.stderr)
