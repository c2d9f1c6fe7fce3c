"""Passes over several streams: each node runs on the stream of its forward operation, and streams wait for one another (STR-01..08).

Who reads a gradient waits for who made it, the first nodes wait for the stream that the caller is on, and that one waits for the leaves
at the end. Nothing here runs where all work is on the caller's stream, or where there are no streams.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

from xpgrad._accumulate import AccumulateGrad

__all__ = ["CLASSES", "UNPACKED", "ambient_streams", "on_streams", "several_streams", "steps_on_streams"]

#: The Tensor classes of devices that have streams.
CLASSES: list[Any] = []
#: The Tensors that hooks on saved values gave back to the node that is running: they live until its stream has read them.
UNPACKED: ContextVar[list[Any] | None] = ContextVar("xpgrad_unpacked", default=None)


def ambient_streams() -> dict[Any, Any]:
    """The current stream of each device that has any, by its Tensor class."""
    return {cls: cls.backend.current_stream(cls.device) for cls in CLASSES}


def on_streams(ambient: dict[Any, Any] | None) -> AbstractContextManager[Any]:
    """A context in which these are the current streams: for a thread that goes on for another."""
    stack = ExitStack()
    for cls, stream in (ambient or {}).items():
        stack.enter_context(cls.backend.stream_guard(stream))
    return stack


def several_streams(order: list[Any], ambient: dict[Any, Any]) -> bool:
    """Whether a node of a pass has to run on another stream than the caller's."""
    return any(node.stream is not None and node.stream[1] != ambient[node.stream[0]] for node in order)


def steps_on_streams(task: Any, order: list[Any], roots: list[Any], empty: Any, general: Callable[..., None]) -> None:
    """Run the nodes in order, each on its own stream.

    Parameters
    ----------
    task : Pass
        Its `ambient` are the caller's streams.
    general : callable
        Runs one node: ``general(task, node, gradient, empty)``.
    """
    ambient = task.ambient
    # By node: which streams must have reached which events before its gradient may be read.
    pending: dict[Any, list[tuple[Any, Any]]] = {}
    for root in roots:
        if root.stream is not None:
            cls = root.stream[0]
            here = (cls, ambient[cls])
            pending[root] = [(here, cls.backend.record_event(ambient[cls]))]
    ends: list[tuple[Any, Any]] = []
    try:
        for node in order:
            g, node.buffer = node.buffer, None
            edges = node.edges()
            arrived = pending.pop(node, [])
            if node.stream is None:  # on the host, which waits by itself
                general(task, node, None if g is empty else g, empty)
                continue
            partial = [e for e in edges if e.buffer is not None and e.buffer is not empty]
            for e in partial:
                arrived = arrived + pending.get(e, [])
            cls, stream = node.stream
            backend = cls.backend
            _wait(arrived, cls, stream)
            if any(other != node.stream for other, _ in arrived):
                node.owned = False  # memory of another stream's: a leaf keeps a copy of its own
            used = [g if g is not empty else None, *(e.buffer for e in partial), *([] if task.retain else node.held())]
            unpacked: list[Any] = []
            with backend.stream_guard(stream), _noted(unpacked):
                general(task, node, used[0], empty)
            used += [x for x in unpacked if x.backend is backend]
            done = [(node.stream, backend.record_event(stream))]
            for x in used:
                _keep(backend, x, stream)
            source: Any = getattr(node, "source", None)  # a move between devices ends on the other device's stream
            if source in ambient:
                done.append(((source, ambient[source]), source.backend.record_event(ambient[source])))
            for e in edges:
                pending[e] = done
            if not edges or node.hooks is not None or task.special is not None or isinstance(node, AccumulateGrad):
                ends += done
            used.clear()
            unpacked.clear()
            g = None
    finally:
        for (cls, stream), event in ends:
            if stream != ambient[cls]:
                cls.backend.wait_event(ambient[cls], event)


@contextmanager
def _noted(unpacked: list[Any]) -> Iterator[None]:
    """A context in which what hooks unpack is noted."""
    token = UNPACKED.set(unpacked)
    try:
        yield
    finally:
        UNPACKED.reset(token)


def _wait(arrived: list[tuple[Any, Any]], cls: Any, stream: Any) -> None:
    """Let a stream wait for what other streams have been given to do."""
    for (other, from_stream), event in arrived:
        if other.backend is not cls.backend:
            other.backend.synchronize(other.device)
        elif from_stream != stream:
            cls.backend.wait_event(stream, event)


def _keep(backend: Any, x: Any, stream: Any) -> None:
    """Keep the memory of a gradient, or of several, from being used again too early."""
    if x is None:
        return
    for item in x if isinstance(x, list) else [x]:
        if item is not None:
            backend.keep_alive(getattr(item, "_array", item), stream)
