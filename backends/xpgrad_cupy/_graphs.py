"""Compiles functions on CuPy for `xpgrad.compile`: the first call with each signature of arguments captures a CUDA graph.

Later calls copy the arguments into the graph's memory, launch the graph, and copy the results out. A function that cannot be captured is
called without a graph, and a warning says so once.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import cupy

from xpgrad import Tensor

__all__ = ["CompiledFunction", "check_not_capturing", "forbid_capture"]

#: The number of graphs that one function keeps; beyond it, the least recently used graph is dropped.
LIMIT = 16
#: The addresses of the streams on which this module is capturing a graph.
_CAPTURING: set[int] = set()
#: The functions about which a warning has said that they run without a graph.
_WARNED: weakref.WeakSet[Any] = weakref.WeakSet()


class CompiledFunction:
    """A callable with the results of a function of raw arrays, which runs it as CUDA graphs if it can be captured.

    Parameters
    ----------
    function : callable
        Takes raw arrays and None, and returns nested tuples of these. It must not have side effects, or branch on values.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.graphs: OrderedDict[Any, _Graph | None] = OrderedDict()  # None for a signature that cannot be captured
        self.lock = threading.Lock()

    def __call__(self, *args: Any) -> Any:
        devices = {a.data.device_id for a in args if a is not None}
        if len(devices) != 1:
            return _run_directly(self.function, args)
        device = cupy.cuda.Device(devices.pop())
        with device:
            stream = cupy.cuda.get_current_stream()
            if stream.is_capturing():  # the caller or an outer compiled function is capturing: this call becomes part of that graph
                return _run_directly(self.function, args)
            # NB: the key has strides because the memory layout of the results follows that of the arguments.
            key = (device.id, *[None if a is None else (a.shape, a.strides, a.dtype) for a in args])
            with self.lock:
                known = key in self.graphs
                graph = self.graphs.get(key)
                if known:
                    self.graphs.move_to_end(key)
            if not known:
                return self._run_and_capture(key, args)
            return _run_directly(self.function, args) if graph is None else graph(args, stream)

    def _run_and_capture(self, key: Any, args: Any) -> Any:
        """Run the function for the first time with a signature, which compiles its kernels; then capture it, and return the results."""
        # NB: the function gets copies. If it writes to its arguments, that is found only after it has run, and the caller's arrays must not
        # change. No lock is held, because the user's function may call other compiled functions, which other threads may be capturing.
        results = _run_directly(self.function, args, copied=True)
        graph, cause = None, None
        try:
            graph = _Graph(self.function, args)
        except Exception as exc:  # noqa: BLE001 (if CUDA or Python cannot capture it, the results above are still right)
            cause = f"{type(exc).__name__}: {exc}"
        with self.lock:
            self.graphs[key] = graph
            while len(self.graphs) > LIMIT:
                # NB: its last launch may still be running, but CUDA destroys a graph only when it is done, and `cudaFree` waits.
                self.graphs.popitem(last=False)
        # `xpgrad.compile` makes several methods of one user's function, one per signature and direction: warn once for all of them.
        subject = inspect.unwrap(getattr(getattr(self.function, "__self__", None), "function", self.function))
        if cause is not None and not _mark_warned(subject):
            name = getattr(subject, "__name__", type(subject).__name__)
            msg = f"the compiled function {name!r} runs as it is on CuPy: it cannot be captured as a CUDA graph ({cause})"
            warnings.warn(msg, UserWarning, stacklevel=_find_user_level())
        return results


class _Graph:
    """A captured graph with all memory that it reads and writes.

    The arguments, results and intermediate arrays have memory from a separate pool. Constants, i.e. arrays that the function finds in
    closures and globals, are read where they are: a graph sees later in-place writes to a constant, but not that a name in the function
    now refers to another array.
    """

    def __init__(self, function: Callable[..., Any], args: Any) -> None:
        self.lock = threading.Lock()
        self.done = cupy.cuda.Event(disable_timing=True)  # recorded after the last launch and the copies of its results
        self.blocks: list[Any] = []
        made = _RecordingAllocator(cupy.cuda.MemoryPool(self._allocate).malloc)
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream, cupy.cuda.using_allocator(made), _collect_constants(made.addresses) as self.constants:
            self.inputs = [None if a is None else cupy.empty_like(a) for a in args]
            self.graph, self.outputs = _capture(stream, functools.partial(function, *self.inputs))

    def _allocate(self, size: int) -> Any:
        """Allocate memory that lives as long as the graph.

        NB: without the references in `blocks`, a pool that runs out of memory would free blocks that the graph uses.
        """
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
                return _map_arrays(_copy, self.outputs)
            finally:
                stream.record(self.done)


def _find_user_level() -> int:
    """Return the `stacklevel` with which the caller's warning points to the first frame outside of xpgrad and this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("xpgrad", "xpgrad_cupy"):
        frame, level = frame.f_back, level + 1
    return level


def _mark_warned(function: Any) -> bool:
    """Record that a warning about a function is given, and return whether it was already recorded."""
    try:
        before = function in _WARNED
        _WARNED.add(function)
    except TypeError:  # the function is not hashable, or cannot be referenced weakly
        return False
    return before


def _capture(stream: Any, function: Callable[[], Any]) -> tuple[Any, Any]:
    """Capture what a function queues on the current stream; return the graph, and the function's results."""
    stream.begin_capture()
    _CAPTURING.add(stream.ptr)
    try:
        results = function()
    except BaseException:
        with contextlib.suppress(Exception):  # the capture may be invalid, but the first exception says why
            stream.end_capture()
        raise
    finally:
        _CAPTURING.discard(stream.ptr)
    return stream.end_capture(), results


class _RecordingAllocator:
    """An allocator that records the addresses of the memory that it allocates."""

    def __init__(self, allocate: Callable[[int], Any]) -> None:
        self.allocate, self.addresses = allocate, set[int]()

    def __call__(self, size: int) -> Any:
        pointer = self.allocate(size)
        self.addresses.add(pointer.mem.ptr)
        return pointer


@contextlib.contextmanager
def _collect_constants(own: set[int]) -> Iterator[dict[int, Any]]:
    """Context manager that collects the memory, except `own`, of arrays that functions called inside find in locals and globals."""
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


def _run_directly(function: Callable[..., Any], args: Any, copied: bool = False) -> Any:
    """Call a function without a graph, on copies of its arguments if `copied`.

    Results that share memory with an argument, a constant or one another are copied, because a graph's results never share memory.
    """
    made = _RecordingAllocator(cupy.cuda.get_allocator())

    def own(x: Any) -> Any:
        if x.data.mem.ptr in made.addresses:
            made.addresses.discard(x.data.mem.ptr)
            return x
        return _copy(x)

    with cupy.cuda.using_allocator(made):
        results = function(*[None if a is None else _copy(a) for a in args] if copied else args)
    return _map_arrays(own, results)


def _copy(x: Any) -> Any:
    return x.copy(order="K")


def _map_arrays(function: Callable[[Any], Any], x: Any) -> Any:
    """Return nested tuples with a function applied to their arrays; None stays None."""
    if isinstance(x, (tuple, list)):
        return tuple([_map_arrays(function, item) for item in x])
    return None if x is None else function(x)


def check_not_capturing(stream: Any, what: str) -> None:
    """Raise RuntimeError if a compiled function is being captured on a stream; the function then runs without a graph."""
    if stream.ptr in _CAPTURING:
        msg = f"{what} cannot be captured"
        raise RuntimeError(msg)


def forbid_capture(function: Callable[..., Any], what: str) -> Callable[..., Any]:
    """Wrap a kernel so that it raises RuntimeError while a compiled function is being captured."""

    @functools.wraps(function)
    def guarded(*args: Any, **options: Any) -> Any:
        check_not_capturing(cupy.cuda.get_current_stream(), what)
        return function(*args, **options)

    return guarded
