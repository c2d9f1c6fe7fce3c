"""Passes over several streams: each node runs on the stream of its forward operation, and streams wait for one another (STR-01..08).

A node waits for the streams that produced its gradient, the first nodes wait for the caller's stream, and the caller's stream waits for
the leaves at the end. Nothing here runs if all work is on the caller's stream, or if the device has no streams.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from contextvars import ContextVar
from typing import Any

from xpgrad._backends.classes import when_class_is_made
from xpgrad._basics.arguments import as_flag
from xpgrad._modes.setting import Setting

#: The Tensor classes of devices that have streams.
CLASSES: list[Any] = []
#: The Tensors that hooks unpacked for the running node: they must live until its stream has read them.
UNPACKED: ContextVar[list[Any] | None] = ContextVar("xpgrad_unpacked", default=None)


def _note(cls: Any) -> None:
    if cls.backend.capabilities.streams:
        CLASSES.append(cls)


when_class_is_made(_note)


def ambient_streams() -> dict[Any, Any]:
    """Return the current stream of each device that has streams, by Tensor class."""
    return {cls: cls.backend.current_stream(cls.device) for cls in CLASSES}


def on_streams(ambient: dict[Any, Any] | None) -> AbstractContextManager[Any]:
    """Return a context manager that makes these the current streams, for a thread that continues another's work."""
    stack = ExitStack()
    for cls, stream in (ambient or {}).items():
        stack.enter_context(cls.backend.stream_guard(stream))
    return stack


_warns = False
_overrides = False


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Set whether to warn when a leaf accumulates a gradient that another stream computed.

    A leaf accumulates on the stream on which it began to require grad. If its gradients come from another stream, the two wait for each
    other in each pass, and a captured graph includes the leaf's stream. The warning is given once per pass. The setting is global and off
    by default.

    Parameters
    ----------
    enabled : bool

    Raises
    ------
    TypeError
        If `enabled` is not a bool.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    """
    global _warns
    _warns = as_flag(enabled, "set_warn_on_accumulate_grad_stream_mismatch", "enabled")


def set_override_stale_capture_stream(enabled: bool) -> None:
    """Set whether a node may leave its stream during a graph capture in which that stream takes no part.

    If enabled, such a node runs on the capturing stream of the node that produced its gradient. Otherwise (the default) it stays on the
    stream of its forward operation, which joins the capture by waiting; if the library does not allow that, as CUDA does not for its
    default stream, a RuntimeError is raised. The setting is global.

    Parameters
    ----------
    enabled : bool

    Raises
    ------
    TypeError
        If `enabled` is not a bool.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.autograd.graph.set_override_stale_capture_stream(False)
    """
    global _overrides
    _overrides = as_flag(enabled, "set_override_stale_capture_stream", "enabled")


def needs_streams(order: list[Any], ambient: dict[Any, Any]) -> bool:
    """Return whether any node of a pass has to run on another stream than the caller's."""
    return any(node.stream is not None and node.stream[1] != ambient[node.stream[0]] for node in order)


def run_on_streams(task: Any, order: Iterable[Any], roots: list[Any], empty: Any, general: Callable[..., None]) -> None:
    """Run the nodes in order, each on its stream.

    Parameters
    ----------
    task : Pass
        Its `ambient` has the caller's streams.
    general : callable
        Runs one node: ``general(task, node, gradient, empty)``.
    """
    ambient = task.ambient
    # For each node: the streams, and the events on them, that must precede the reading of its gradient.
    pending: dict[Any, list[tuple[Any, Any]]] = {}
    for root in roots:
        if root.stream is not None:
            cls = root.stream[0]
            here = (cls, ambient[cls])
            pending[root] = [(here, cls.backend.record_event(ambient[cls]))]
    ends: list[tuple[Any, Any]] = []
    capturing = [cls for cls in ambient if cls.backend.is_capturing(cls.device)]
    mismatched: list[tuple[Any, Any]] = []
    try:
        for node in order:
            g, node.buffer = node.buffer, None
            edges = node.edges()
            arrived = pending.pop(node, [])
            if node.stream is None:  # the host waits for each result anyway
                general(task, node, None if g is empty else g, empty)
                continue
            partial = [e for e in edges if e.buffer is not None and e.buffer is not empty]
            for e in partial:
                arrived = arrived + pending.get(e, [])
            cls, stream = node.stream
            backend = cls.backend
            if cls in capturing:
                stream = _stream_in_capture(node, arrived, ambient[cls])
            else:
                _wait(arrived, cls, stream)
            if any(other != (cls, stream) for other, _ in arrived):
                node.owned = False  # the memory belongs to another stream, so a leaf must copy it
            used = [g if g is not empty else None, *(e.buffer for e in partial), *([] if task.retain else node.held())]
            unpacked: list[Any] = []
            with backend.stream_guard(stream), _record_unpacked(unpacked):
                general(task, node, used[0], empty)
            used += [x for x in unpacked if x.backend is backend]
            done = [((cls, stream), backend.record_event(stream))]
            for x in used:
                _keep(backend, x, stream)
            source: Any = getattr(node, "source", None)  # a move between devices ends on the other device's stream
            if source in ambient:
                done.append(((source, ambient[source]), source.backend.record_event(ambient[source])))
            for e in edges:
                pending[e] = done
            if _warns and not task.capture:
                mismatched += [(e, stream) for e in edges if e.is_leaf and e.buffer is not None and _differ(e, cls, stream)]
            if not edges or node.hooks is not None or task.special is not None or node.is_leaf:
                ends += done
            used.clear()
            unpacked.clear()
            g = None
    finally:
        for (cls, stream), event in ends:
            if stream != ambient[cls]:
                cls.backend.wait_event(ambient[cls], event)
    if mismatched:
        _warn_of(mismatched)


def _differ(leaf: Any, cls: Any, stream: Any) -> bool:
    return leaf.stream[0] is cls and leaf.stream[1] != stream


def _warn_of(mismatched: list[tuple[Any, Any]]) -> None:
    leaf, stream = mismatched[0]
    more = len({e for e, _ in mismatched}) - 1
    msg = (
        f"The AccumulateGrad node's stream does not match the stream of the node that produced the incoming gradient: a leaf of shape "
        f"{tuple(leaf.array.shape)}{f' (and {more} more)' if more else ''} began to require grad on {leaf.stream[1]}, but its gradient was "
        f"computed on {stream}, so that the two wait for one another. Call `requires_grad_()` on the stream of the forward, or turn this "
        "warning off with `xpgrad.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)`"
    )
    warnings.warn(msg, UserWarning, stacklevel=2)


def _stream_in_capture(node: Any, arrived: list[tuple[Any, Any]], ambient: Any) -> Any:
    """Return the stream on which a node runs during a graph capture, after it has waited for what arrived.

    Raises
    ------
    RuntimeError
        If the node's stream takes no part in the capture and cannot join it.
    """
    cls, stream = node.stream
    with cls.backend.stream_guard(stream):
        stale = not cls.backend.is_capturing(cls.device)
    if stale and _overrides:
        stream = next((s for (other, s), _ in arrived if other is cls), ambient)
    try:
        _wait(arrived, cls, stream)
    except Exception as exc:
        if not stale or _overrides:
            raise
        msg = (
            f"{node.name()} belongs to {stream}, which takes no part in the graph that is being captured, and cannot join it ({exc}). Run "
            "the forward on the capturing stream, leaves included, or put such nodes there with "
            "`xpgrad.autograd.graph.set_override_stale_capture_stream(True)`"
        )
        raise RuntimeError(msg) from exc
    return stream


def _record_unpacked(unpacked: list[Any]) -> AbstractContextManager[None]:
    """Return a context manager in which the Tensors that hooks unpack are appended to `unpacked`."""
    return Setting(UNPACKED, unpacked)


def _wait(arrived: list[tuple[Any, Any]], cls: Any, stream: Any) -> None:
    """Make a stream wait for the work queued on other streams."""
    for (other, from_stream), event in arrived:
        if other.backend is not cls.backend:
            other.backend.synchronize(other.device)
        elif from_stream != stream:
            cls.backend.wait_event(stream, event)


def _keep(backend: Any, x: Any, stream: Any) -> None:
    """Keep the memory of one gradient, or a list of them, from being reused before `stream` has read it."""
    if x is None:
        return
    for item in x if isinstance(x, list) else [x]:
        if item is not None:
            backend.keep_alive(getattr(item, "_array", item), stream)
