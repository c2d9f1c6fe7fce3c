"""Record when operations, nodes and ranges run: the value of `Mode.profiling` while a profile is active.

An operation is timed by the second implementation that it has while it is watched (`_operations.watching`), from the call of the library to
the recorded result; functions that are not rows use `call`. The nodes of a pass are timed by the iterator `steps`, from which the engine
takes them. Both find their parent event in a context variable, so that threads do not mix.
"""

from __future__ import annotations

import itertools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.frames import is_own
from xpgrad._rows.row import Row
from xpgrad._tape.node import backend_of
from xpgrad.autograd._drawing import array_size
from xpgrad.autograd._profile_events import BACKWARD, FORWARD, RANGE, FunctionEvent

_OPEN: ContextVar[Any] = ContextVar("xpgrad_open_event", default=None)
#: The row and the event of the operation that was computed but has not reached `Mode.finish_operation`.
_COMPUTED: ContextVar[Any] = ContextVar("xpgrad_computed", default=None)


class Recording:
    """The recorder of one profile, which collects its events.

    Parameters
    ----------
    shapes, stacks, memory : bool
        Record the shapes of operands, the stack of the user's code, and the bytes that nodes save.
    waits : bool
        Wait for results that are computed asynchronously.
    """

    def __init__(self, *, shapes: bool, stacks: bool, memory: bool, waits: bool) -> None:
        self._shapes, self._stacks, self._memory, self._waits = shapes, stacks, memory, waits
        self.events: list[FunctionEvent] = []
        self.active = False
        self._ids = itertools.count()
        self._made: weakref.WeakKeyDictionary[Any, FunctionEvent] = weakref.WeakKeyDictionary()
        self._origin = 0

    def open(self) -> None:
        """Start recording."""
        self._origin = time.perf_counter_ns()
        self.active = True

    def close(self) -> None:
        """Stop recording, and end all events that are still running, also in other threads."""
        self.active = False
        now = time.perf_counter_ns() - self._origin
        for event in self.events:
            if event.end is None:
                event.end = now

    # -- events --------------------------------------------------------------------------------------------------------

    def begin(self, name: str, scope: int, forward: FunctionEvent | None = None) -> FunctionEvent:
        """Begin an event inside the one that is open in this context, and return it.

        Parameters
        ----------
        name : str
        scope : int
            The kind of event, as PyTorch numbers it.
        forward : FunctionEvent, optional
            For an event of a backward pass, that of the operation.
        """
        parent = _OPEN.get()
        if parent is not None and parent.recording is not self:
            parent = None
        event = FunctionEvent(next(self._ids), name, threading.get_ident(), scope, parent, self)
        event.forward = forward
        if self._stacks:
            event.stack = forward.stack if forward is not None else _user_lines()
        if parent is not None:
            parent.cpu_children.append(event)
        self.events.append(event)
        _OPEN.set(event)
        event.start = time.perf_counter_ns() - self._origin
        return event

    def end(self, event: FunctionEvent) -> None:
        """End an event, and make its parent the open one."""
        if event.end is None:
            event.end = time.perf_counter_ns() - self._origin
        _OPEN.set(event.cpu_parent)

    def range(self, name: str, args: str | None) -> FunctionEvent | None:
        """Begin a labelled range, and return its event; None after the profile has ended."""
        if not self.active:
            return None
        event = self.begin(name, RANGE)
        event.args = args
        return event

    def call(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function as an event: a computation that is not a single row."""
        if not self.active:
            return function(*args, **kwargs)
        event = self.begin(name, FORWARD)
        try:
            return function(*args, **kwargs)
        finally:
            self.end(event)

    # -- forward -------------------------------------------------------------------------------------------------------

    def time_operation(self, row: Row, backend: Any, compute: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Compute the raw result of an operation as an event; `finish` extends the event to the recording of its node."""
        if not self.active:
            return compute(*args)
        event = self.begin(_name(row), FORWARD)
        if self._shapes:
            event.input_shapes = _shapes(args[0] if row.varargs else args[: len(row.tensors)])
            event.start = time.perf_counter_ns() - self._origin
        try:
            found = compute(*args)
            if self._waits:
                _wait(backend, found if row.outputs is not None else (found,))
        finally:
            self.end(event)
        _COMPUTED.set((row, event))
        return found

    def finish(self, row: Row) -> FunctionEvent | None:
        """Return the event of the operation that was just recorded, and extend it to now; None if nothing was computed."""
        found = _COMPUTED.get()
        if found is None or found[0] is not row or found[1].recording is not self or not self.active:
            return None
        _COMPUTED.set(None)
        event: FunctionEvent = found[1]
        event.end = time.perf_counter_ns() - self._origin
        return event

    def record_node(self, event: FunctionEvent | None, out: Any) -> None:
        """Record the node of an operation's result (a Tensor or a tuple of Tensors), and the bytes that it saves."""
        for one in out if out.__class__ is tuple else (out,):
            if one._node is not None:
                self.made_node(event, one._node.owner)
                return

    def made_node(self, event: FunctionEvent | None, node: Any) -> None:
        """Record the node that an operation made, for its event or the open one."""
        event = _OPEN.get() if event is None else event
        if event is None or event.recording is not self or not self.active:
            return
        event.sequence_nr = int(node.seq)
        self._made[node] = event
        if self._memory:
            backend = node.backend if node.backend is not None else None if node.cls is None else node.cls.backend
            event.self_saved_bytes += sum(array_size(raw, backend) or 0 for raw in node.held())

    # -- backward ------------------------------------------------------------------------------------------------------

    def steps(self, task: Any, order: list[Any], empty: Any) -> Iterator[Any]:
        """Yield the nodes of a backward pass in order, and time each until the next one is requested.

        Parameters
        ----------
        task : Pass
        order : list
        empty : object
            The value of `buffer` for a node that received no gradient.
        """
        special = task.special
        for node in order:
            runs = node.buffer is not empty or node.runs_undefined
            if not (self.active and runs) or node.is_slot or (special is not None and not special.get(node, True)):
                yield node
                continue
            forward = self._made.get(node.original)
            arrived = [node.buffer] if not isinstance(node.buffer, list) else node.buffer
            arrived = [g for g in arrived if g is not None and g is not empty]
            wait = _make_waiter(node, arrived) if self._waits else None
            shapes = _shapes(arrived) if self._shapes else []
            arrived = []  # drop the references, so that the gradient is freed as soon as the node has used it
            event = self.begin(node.name(), BACKWARD, forward)
            event.input_shapes = shapes
            event.sequence_nr = -1 if forward is None else forward.sequence_nr
            try:
                yield node
                if wait is not None:
                    wait()
            finally:
                self.end(event)


def _name(row: Row) -> str:
    """Return the public name of an operation, or the row's name if several public functions share it."""
    return "getitem" if row.name == "index_basic" else row.public[0] if len(row.public) == 1 else row.name


def _shapes(values: Any) -> list[list[int]]:
    return [list(getattr(v, "shape", ())) for v in values]


def _user_lines() -> list[str]:
    """Return the stack of the user's code, the innermost line first."""
    frame: Any = sys._getframe(1)
    lines = []
    while frame is not None:
        code = frame.f_code
        if not is_own(code.co_filename):
            lines.append(f"{code.co_filename}({frame.f_lineno}): {code.co_name}")
        frame = frame.f_back
    return lines


def _wait(backend: Any, arrays: Any) -> None:
    """Wait until arrays are computed."""
    for device in {backend.device_of(x) for x in arrays if not backend.is_traced(x)}:
        backend.synchronize(device)


def _make_waiter(node: Any, arrived: list[Any]) -> Callable[[], None] | None:
    """Return a function that waits for the results of a node on the device of its gradients; None under tracing."""
    backend = backend_of(node)
    for g in arrived:
        raw = g._array if isinstance(g, TensorBase) else g
        if backend.tensor_base.stage or backend.is_traced(raw):
            return None
        device = backend.device_of(raw)
        return lambda: backend.synchronize(device)
    return None
