"""Tell whether a value is traced, get the value behind it, and run a function and its derivative by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._levels import RUNS, Trace
from xpgrad.dialects.hips._records import Record, as_input, begin_in, getval, push_forward
from xpgrad.dialects.hips.extend import Box, JVPNode, Node, VJPNode, notrace_primitive, primitive, register_notrace
from xpgrad.dialects.hips.util import subvals, toposort

__all__ = [
    "Box", "Node", "TraceStack", "getval", "isbox", "new_box", "notrace_primitive", "primitive", "register_notrace", "subvals", "toposort",
    "trace", "trace_stack",
]  # fmt: skip


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
        if not any(out.requires_grad for out in record.outs):
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


class TraceStack:
    """The runs that go on; `trace_stack` is the only one."""

    @contextmanager
    def new_trace(self) -> Iterator[Trace]:
        """Begin a run, for values that `new_box` makes of arrays and numbers; it goes on until the block ends."""
        run, runs = Trace(), RUNS.get()
        RUNS.set((*runs, run))
        try:
            yield run
        finally:
            RUNS.set(runs)


#: What begins runs of a program's own: ``with trace_stack.new_trace() as run``.
trace_stack: TraceStack = TraceStack()


class _Boxes(tuple[Any, ...]):
    """A sequence of values that `new_box` made; `_trace` is their run."""

    _trace: Trace


def new_box(value: Any, trace: Trace | int, node: Any) -> Any:
    """Return a Tensor for an array or number, whose attribute `_trace` is the run, as is that of every value that depends on it.

    Parameters
    ----------
    value : array, number, Tensor, or tuple or list of them
        For a sequence, a sequence with the attribute `_trace` is returned.
    trace : Trace or int
        The run, from ``trace_stack.new_trace()``, or a number, as which HIPS autograd has runs: that one is outside of all that go on.
    node : VJPNode
        Made by `VJPNode.new_root()`.

    Raises
    ------
    TypeError
        For other values, and for other nodes: there are no such nodes in the graph.

    Examples
    --------
    Does a function depend on its argument?

    >>> import xpgrad.dialects.hips.numpy as np
    >>> from xpgrad.dialects.hips.core import VJPNode
    >>> from xpgrad.dialects.hips.tracer import isbox, new_box, trace_stack
    >>> with trace_stack.new_trace() as run:
    ...     start = new_box(2.0, run, VJPNode.new_root())
    ...     ends = np.sin(start), np.sin(1.0)
    >>> [isbox(end) and end._trace == start._trace for end in ends]
    [True, False]
    """
    if not isinstance(node, VJPNode):
        msg = f"new_box: the node must be `VJPNode.new_root()`, but got {type(node).__name__}; `make_jvp` differentiates in forward mode"
        raise TypeError(msg)
    if isinstance(trace, int):
        trace = Trace.numbered(trace)
    if isinstance(value, (tuple, list)):
        out = _Boxes(new_box(item, trace, node) for item in value)
        out._trace = trace
        return out
    return begin_in(trace, as_input("new_box", value))


def __getattr__(name: str) -> Any:
    """Raise an AttributeError that says what to use instead."""
    msg = f"module {__name__!r} has no attribute {name!r}"
    if name in ("find_top_boxed_args", "box_type_mappings", "trace_primitives_map"):
        msg += ": values are traced by the Tensors themselves; run a function with `trace`, or use `make_vjp` and `make_jvp`"
    raise AttributeError(msg)
