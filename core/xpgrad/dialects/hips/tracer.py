"""Tell whether a value is traced, get the value behind it, and run a function and its derivative by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._records import Record, getval, push_forward
from xpgrad.dialects.hips.extend import Box, JVPNode, Node, VJPNode, notrace_primitive, primitive, register_notrace
from xpgrad.dialects.hips.util import subvals, toposort

__all__ = ["Box", "Node", "getval", "isbox", "notrace_primitive", "primitive", "register_notrace", "subvals", "toposort", "trace"]


def isbox(x: Any) -> bool:
    """Return whether `x` is a traced value, which replaces an array or number while a function is differentiated."""
    return isinstance(x, Tensor)


def trace(start_node: Any, fun: Callable[[Any], Any], x: Any) -> tuple[Any, Any]:
    """Run a function of one argument at `x`, and return its value and the node at its end; None if the value is independent of `x`.

    Parameters
    ----------
    start_node : VJPNode or JVPNode
        Made by `VJPNode.new_root()` or `JVPNode.new_root(tangent)`. The end goes to `core.backward_pass`, or has the tangent as `g`.
    fun : callable
    x : array, number, or nested tuples, lists and dicts of them

    Raises
    ------
    TypeError
        For nodes of another class: NumPy's functions do not make nodes of a program's own class.
    """
    if isinstance(start_node, VJPNode):
        record = Record("trace", fun, x)
        if all(out._node is None for out in record.outs):
            warnings.warn("Output seems independent of input.", UserWarning, stacklevel=2)
            return record.value, None
        return record.value, VJPNode(record)
    if isinstance(start_node, JVPNode):
        value, tangent = push_forward("trace", fun, x, start_node.g)
        return value, JVPNode(tangent)
    msg = (
        f"trace: nodes must be VJPNode or JVPNode, but this one is {type(start_node).__name__}; `xpgrad.compile(f).explain(x)` shows the "
        "operations of a function, and `Tensor.grad_fn` its graph"
    )
    raise TypeError(msg)


def __getattr__(name: str) -> Any:
    """Raise an AttributeError that says what to use instead."""
    msg = f"module {__name__!r} has no attribute {name!r}"
    if name in ("new_box", "trace_stack", "TraceStack", "find_top_boxed_args", "box_type_mappings", "trace_primitives_map"):
        msg += ": values are traced by the Tensors themselves; run a function with `trace`, or use `make_vjp` and `make_jvp`"
    raise AttributeError(msg)
