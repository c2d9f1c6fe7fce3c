"""Compiles functions on CuPy for `xpgrad.compile`: a CUDA graph for each signature of the arguments, captured at the first call.

The next calls copy the arguments into the graph's memory, launch it, and copy the results out. A function that cannot be captured runs
as it is, and says so once.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import cupy

from xpgrad import Tensor

__all__ = ["CompiledFunction", "refuse", "uncaptured"]

#: The number of graphs that one function keeps; beyond it, the one that has not run for longest is dropped.
LIMIT = 16
#: The streams that are capturing for this module, by address.
_CAPTURING: set[int] = set()
#: The functions whose users have been told that they run as they are.
_TOLD: weakref.WeakSet[Any] = weakref.WeakSet()


class CompiledFunction:
    """A function of raw arrays and Nones, with the same results.

    Parameters
    ----------
    function : callable
        It returns nested tuples of raw arrays and None, does not depend on values, and has no effects.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.graphs: OrderedDict[Any, _Graph | None] = OrderedDict()  # None: cannot be captured
        self.lock = threading.Lock()

    def __call__(self, *args: Any) -> Any:
        devices = {a.data.device_id for a in args if a is not None}
        if len(devices) != 1:
            return _as_it_is(self.function, args)
        device = cupy.cuda.Device(devices.pop())
        with device:
            stream = cupy.cuda.get_current_stream()
            if stream.is_capturing():  # for the caller, or for a compiled function around this one: it becomes part of that graph
                return _as_it_is(self.function, args)
            # NB: strides, too: the results' memory is laid out like that of the arguments.
            key = (device.id, *[None if a is None else (a.shape, a.strides, a.dtype) for a in args])
            with self.lock:
                known = key in self.graphs
                graph = self.graphs.get(key)
                if known:
                    self.graphs.move_to_end(key)
            if not known:
                return self._first(key, args)
            return _as_it_is(self.function, args) if graph is None else graph(args, stream)

    def _first(self, key: Any, args: Any) -> Any:
        """Run the function, which compiles and loads its kernels, and then capture it."""
        # NB: on copies: a function that writes to its arguments is refused after it has run, and must not have written to the caller's.
        # No lock is held: the function is the user's, and may call other compiled functions, which other threads may be capturing.
        results = _as_it_is(self.function, args, copied=True)
        graph, cause = None, None
        try:
            graph = _Graph(self.function, args)
        except Exception as exc:  # noqa: BLE001 (whatever refuses to be captured, CUDA or Python: what ran above is right)
            cause = f"{type(exc).__name__}: {exc}"
        with self.lock:
            self.graphs[key] = graph
            while len(self.graphs) > LIMIT:
                # NB: its last launch may be under way: CUDA destroys a graph when it is done, and `cudaFree` waits for the device.
                self.graphs.popitem(last=False)
        # For one function, `xpgrad.compile` makes methods around that function, for each signature and direction.
        subject = getattr(getattr(self.function, "__self__", None), "function", self.function)
        if cause is not None and not _told(subject):
            name = getattr(subject, "__name__", type(subject).__name__)
            msg = f"the compiled function {name!r} runs as it is on CuPy: it cannot be captured as a CUDA graph ({cause})"
            warnings.warn(msg, UserWarning, stacklevel=_users_level())
        return results


class _Graph:
    """A captured graph with all memory that it reads and writes.

    That is the memory of the arguments, of the results and of everything in between, from a pool of its own, and that of the constants:
    arrays that the function finds elsewhere are read where they are. So a graph sees later in-place writes to a constant; it does not
    see that a name in the function has come to mean another array.
    """

    def __init__(self, function: Callable[..., Any], args: Any) -> None:
        self.lock = threading.Lock()
        self.done = cupy.cuda.Event(disable_timing=True)  # the last launch, and the copies out of its results
        self.blocks: list[Any] = []
        made = _Noted(cupy.cuda.MemoryPool(self._allocate).malloc)
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream, cupy.cuda.using_allocator(made), _arrays_elsewhere(made.addresses) as self.constants:
            self.inputs = [None if a is None else cupy.empty_like(a) for a in args]
            self.graph, self.outputs = _capture(stream, functools.partial(function, *self.inputs))

    def _allocate(self, size: int) -> Any:
        """Memory that lives as long as the graph. NB: short of memory, a pool frees what was used earlier in the capture."""
        self.blocks.append(cupy.cuda.MemoryPointer(cupy.cuda.Memory(size), 0))
        return self.blocks[-1]

    def __call__(self, args: Any, stream: Any) -> Any:
        with self.lock:
            stream.wait_event(self.done)  # the last call may have been on another stream
            try:
                for own, given in zip(self.inputs, args):
                    if own is not None:
                        own[...] = given
                self.graph.launch(stream)
                return _mapped(_copy, self.outputs)
            finally:
                stream.record(self.done)


def _users_level() -> int:
    """Return the level of the user's line above the caller of this, for a warning: the first one outside of xpgrad and this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("xpgrad", "xpgrad_cupy"):
        frame, level = frame.f_back, level + 1
    return level


def _told(function: Any) -> bool:
    """Return whether this has been asked before about a function that is still alive."""
    try:
        before = function in _TOLD
        _TOLD.add(function)
    except TypeError:  # neither hashable, maybe, nor weakly referenced
        return False
    return before


def _capture(stream: Any, function: Callable[[], Any]) -> tuple[Any, Any]:
    """The graph of what a function queues on the current stream, and what it returned; the stream is no longer capturing afterwards."""
    stream.begin_capture()
    _CAPTURING.add(stream.ptr)
    try:
        results = function()
    except BaseException:
        with contextlib.suppress(Exception):  # "invalidated", say: the first exception tells why
            stream.end_capture()
        raise
    finally:
        _CAPTURING.discard(stream.ptr)
    return stream.end_capture(), results


class _Noted:
    """An allocator that remembers which memory it has handed out."""

    def __init__(self, allocate: Callable[[int], Any]) -> None:
        self.allocate, self.addresses = allocate, set[int]()

    def __call__(self, size: int) -> Any:
        pointer = self.allocate(size)
        self.addresses.add(pointer.mem.ptr)
        return pointer


@contextlib.contextmanager
def _arrays_elsewhere(own: set[int]) -> Iterator[dict[int, Any]]:
    """Hold the memory, other than `own`, of all arrays that functions find in this context: arguments, closures and globals."""
    found: dict[int, Any] = {}

    def look(x: Any, depth: int = 3) -> None:
        x = x._array if isinstance(x, Tensor) else x
        if isinstance(x, cupy.ndarray):
            if x.data.mem.ptr not in own:
                found[x.data.mem.ptr] = x.data
        elif depth and isinstance(x, (list, tuple, dict)):
            for item in tuple(x.values() if isinstance(x, dict) else x):
                look(item, depth - 1)

    def on_event(frame: Any, event: str, arg: Any) -> None:
        if event == "call":
            look(list(frame.f_locals.values()))
            look([frame.f_globals.get(name) for name in frame.f_code.co_names])

    before = sys.getprofile()
    sys.setprofile(on_event)
    try:
        yield found
    finally:
        sys.setprofile(before)


def _as_it_is(function: Callable[..., Any], args: Any, copied: bool = False) -> Any:
    """Call a function; results that share memory with an argument, a constant or one another are copied, like those of a graph."""
    made = _Noted(cupy.cuda.get_allocator())

    def own(x: Any) -> Any:
        if x.data.mem.ptr in made.addresses:
            made.addresses.discard(x.data.mem.ptr)
            return x
        return _copy(x)

    with cupy.cuda.using_allocator(made):
        results = function(*[None if a is None else _copy(a) for a in args] if copied else args)
    return _mapped(own, results)


def _copy(x: Any) -> Any:
    return x.copy(order="K")


def _mapped(function: Callable[[Any], Any], x: Any) -> Any:
    """Nested tuples with a function applied to their arrays."""
    if isinstance(x, (tuple, list)):
        return tuple([_mapped(function, item) for item in x])
    return None if x is None else function(x)


def refuse(stream: Any, what: str) -> None:
    """Raise if that stream is capturing for a compiled function, which then runs as it is."""
    if stream.ptr in _CAPTURING:
        msg = f"{what} cannot be captured"
        raise RuntimeError(msg)


def uncaptured(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Return a kernel that is refused while a compiled function is captured."""

    @functools.wraps(function)
    def guarded(*args: Any, **options: Any) -> Any:
        refuse(cupy.cuda.get_current_stream(), what)
        return function(*args, **options)

    return guarded
