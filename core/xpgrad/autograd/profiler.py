"""`xpgrad.autograd.profiler`: how long operations and nodes take, and how much memory they save, after `torch.autograd.profiler`.

In forward code, an event is an operation on a device's Tensors. Its time is that of the library's call and of recording the result; what
xpgrad does before, such as promotion, is self time of the enclosing event. Operations on elements of a batch, on tangents and in a
recomputation count where they are computed. In a backward pass, an event is a node that ran; the operations of its formulas are events
inside it only if they are recorded, or if the library's arrays have no operators. A custom Function, and a function made by
`xpgrad.compile`, are one event forward and one backward. Functions that make or move data without an operation (creation functions,
`detach`) are not events. Without an active profile, operations are exactly the methods that they are otherwise.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from os import PathLike
from typing import Any

from xpgrad._basics.arguments import as_flags, shown
from xpgrad._basics.faces import public_names
from xpgrad._modes import state
from xpgrad._operations.watching import Watching
from xpgrad._rows.row import ROWS
from xpgrad.autograd._profile_events import EventList, FunctionEvent, FunctionEventAvg, Interval
from xpgrad.autograd._profile_pages import chrome_trace, html_page, write
from xpgrad.autograd._profile_recording import Recording

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "profile", "record_function"]


def __dir__() -> list[str]:
    return public_names(__name__)


#: PyTorch's arguments that are not supported: the default, which is accepted, and the reason.
_REFUSED: dict[str, tuple[Any, str]] = {
    "use_cuda": (False, "devices are not timed apart from the host; pass `synchronize=True`, which waits for each result"),
    "use_device": (None, "devices are not timed apart from the host; pass `synchronize=True`, which waits for each result"),
    "with_flops": (False, "floating-point operations are not counted"),
    "with_modules": (False, "there are no modules; label parts of a program with `record_function`"),
    "use_kineto": (False, "Kineto is a library of PyTorch's"),
    "use_cpu": (True, "it is the host that is timed"),
    "experimental_config": (None, "there are no experimental options"),
    "acc_events": (False, "a profile is of one block; make one for each"),
    "custom_trace_id_callback": (None, "traces have no identifiers"),
    "post_processing_timeout_s": (None, "events are not parsed after the profile"),
    "activity_filters": (None, "there are no activities of devices"),
}


class profile:  # noqa: N801 (PyTorch's name)
    """Context manager that records when operations and graph nodes run in this thread, and what they save for backward.

    Parameters
    ----------
    enabled : bool, default True
        If False, record nothing.
    record_shapes : bool
        Record the shapes of operands, for ``key_averages(group_by_input_shape=True)``.
    profile_memory : bool
        Record the bytes of the arrays that nodes save for backward. Values packed by hooks and values that a checkpoint drops do not
        count. (PyTorch counts allocations, which array libraries do not report.)
    with_stack : bool
        Record the stack of the user's code, for ``key_averages(group_by_stack_n=1)`` and `export_stacks`; a node has that of its
        operation.
    synchronize : bool
        Wait for each result if the library computes asynchronously (JAX, CuPy, PyTorch on a GPU). Without it, times are those of the
        calls. dask's arrays are not computed in either case. PyTorch does not have this argument.
    **refused
        PyTorch's other arguments; only their defaults are accepted.

    Attributes
    ----------
    function_events : EventList
        `FunctionEvent` objects in the order in which they began; empty until the block ends.
    self_cpu_time_total : float
        The sum of all self times, in microseconds.

    Raises
    ------
    NotImplementedError
        An argument of PyTorch's that is not supported has another value than its default.
    TypeError
        An argument is unknown.
    RuntimeError
        The profile is entered a second time, or inside another profile of the same thread.

    Notes
    -----
    A profile is part of the context, like a mode: it sees asynchronous tasks and threads that run in a copy of the context, and no other
    threads. The interface follows the documentation of `torch.autograd.profiler.profile` (PyTorch 2.13).

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> with xp.autograd.profiler.profile() as prof:
    ...     xp.sum(x * x).backward()
    >>> [(event.key, event.count) for event in prof.key_averages() if event.scope == 1]
    [('SumBackward1', 1), ('MulBackward0', 1), ('AccumulateGrad', 1)]
    """

    enabled: bool
    record_shapes: bool
    profile_memory: bool
    with_stack: bool
    synchronize: bool
    entered: bool

    def __init__(
        self, enabled: bool = True, *, record_shapes: bool = False, profile_memory: bool = False, with_stack: bool = False,
        synchronize: bool = False, **refused: Any,
    ) -> None:  # fmt: skip
        self.enabled, self.record_shapes, self.profile_memory, self.with_stack, self.synchronize = as_flags(
            "profile", enabled=enabled, record_shapes=record_shapes, profile_memory=profile_memory, with_stack=with_stack,
            synchronize=synchronize,
        )  # fmt: skip
        for name, value in refused.items():
            if name not in _REFUSED:
                msg = f"profile() has no argument {name!r}; it has enabled, record_shapes, profile_memory, with_stack, synchronize"
                raise TypeError(msg)
            default, why = _REFUSED[name]
            if value is not default and value != default:
                msg = f"profile: `{name}={value!r}` is not supported: {why}; leave it out"
                raise NotImplementedError(msg)
        self.entered = False
        self._recording = Recording(shapes=self.record_shapes, stacks=self.with_stack, memory=self.profile_memory, waits=self.synchronize)
        self._events: EventList | None = None

    def __enter__(self) -> profile:
        if not self.enabled:
            return self
        if self.entered:
            msg = "Profiler context manager is not reentrant; make a new `profile()` for another block"
            raise RuntimeError(msg)
        before = state.current()
        if before is not None and before.profiling is not None and before.profiling.active:
            msg = "a profile is already on in this thread, and profiles do not nest; label a part of it with `record_function(name)`"
            raise RuntimeError(msg)
        self.entered = True
        self._watching = Watching(ROWS.values())
        self._watching.__enter__()
        try:
            self._before = before
            state.put(state.mode_with(profiling=self._recording))
            self._recording.open()
        except BaseException:  # an interrupt
            self._leave()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._leave()

    def _leave(self) -> None:
        try:
            self._recording.close()
        finally:
            try:
                state.put(self._before)
            finally:
                self._watching.__exit__()
        self._events = self._listed(self._recording.events)

    def _listed(self, events: Any) -> EventList:
        return EventList(events, profile_memory=self.profile_memory, with_stack=self.with_stack)

    def __repr__(self) -> str:
        if self._events is None:
            return "<unfinished xpgrad.autograd.profiler.profile>" if self.enabled else "<disabled xpgrad.autograd.profiler.profile>"
        return repr(self._events)

    def __str__(self) -> str:
        return repr(self) if self._events is None else self.table()

    @property
    def function_events(self) -> EventList:
        return self._listed(()) if self._events is None else self._events

    @property
    def self_cpu_time_total(self) -> float:
        return self.function_events.self_cpu_time_total

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Sum the events by name.

        Parameters
        ----------
        group_by_input_shape : bool
            Group by the shapes of operands as well; needs ``record_shapes``.
        group_by_stack_n : int
            Group by this many of the innermost lines of the stack as well: 1 sums per line. Needs ``with_stack``.

        Returns
        -------
        EventList
            `FunctionEventAvg` objects.

        Raises
        ------
        TypeError
            An argument has the wrong type.

        See Also
        --------
        xpgrad.autograd.profiler.FunctionEventAvg
        """
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def total_average(self) -> FunctionEventAvg:
        """Sum all events.

        Returns
        -------
        FunctionEventAvg
            Its key is `Total`.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.ones(3)
        >>> with xp.autograd.profiler.profile() as prof:
        ...     y = xp.exp(xp.sin(x))
        >>> prof.total_average().count
        2
        """
        return self.function_events.total_average()

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
        max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False,
    ) -> str:  # fmt: skip
        """Return a table with a row per event. The table of ``key_averages()`` is shorter.

        Parameters
        ----------
        sort_by : str, optional
            As for `EventList.table`.
        row_limit : int
            The number of rows; all if negative.
        max_src_column_width : int
            Longer texts are cut.
        max_name_column_width : int
            Longer texts are cut.
        max_shapes_column_width : int
            Longer texts are cut.
        header : str, optional
            A title.
        top_level_events_only : bool
            Leave out events inside others.

        Returns
        -------
        str
            Empty if there are no events.

        Raises
        ------
        ValueError
            `sort_by` is unknown.

        Examples
        --------
        >>> import xpgrad as xp
        >>> with xp.autograd.profiler.profile() as prof:
        ...     y = xp.exp(xp.ones(3))
        >>> prof.table() == prof.function_events.table()
        True
        """
        return self.function_events.table(
            sort_by, row_limit, max_src_column_width, max_name_column_width, max_shapes_column_width, header, top_level_events_only
        )

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the events in the Trace Event Format (JSON), which `chrome://tracing` and https://ui.perfetto.dev show.

        Arrows lead from operations to their nodes.

        Parameters
        ----------
        path : path
            The file to write.

        Raises
        ------
        OSError
            The file cannot be written.

        Examples
        --------
        >>> import xpgrad as xp
        >>> import json, pathlib, tempfile
        >>> with xp.autograd.profiler.profile() as prof:
        ...     y = xp.exp(xp.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "trace.json")
        ...     prof.export_chrome_trace(path)
        ...     events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
        >>> "exp" in [event["name"] for event in events]
        True
        """
        write(path, chrome_trace(self.function_events))

    def export_html(self, path: str | PathLike[str]) -> None:
        """Write a self-contained HTML page with a timeline and a table. PyTorch does not have this method.

        Parameters
        ----------
        path : path
            The file to write.

        Raises
        ------
        OSError
            The file cannot be written.

        Examples
        --------
        >>> import xpgrad as xp
        >>> import pathlib, tempfile
        >>> with xp.autograd.profiler.profile() as prof:
        ...     y = xp.exp(xp.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "profile.html")
        ...     prof.export_html(path)
        ...     path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        True
        """
        write(path, html_page(self.function_events))

    def export_stacks(self, path: str | PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write stacks and the time spent in each, for programs that draw flame graphs: ``outer;inner microseconds``.

        Parameters
        ----------
        path : path
            The file to write.
        metric : str
            Must be ``"self_cpu_time_total"``.

        Raises
        ------
        ValueError
            `metric` is unknown, or the profile was made without ``with_stack``.

        Examples
        --------
        >>> import xpgrad as xp
        >>> import pathlib, tempfile
        >>> with xp.autograd.profiler.profile(with_stack=True) as prof:
        ...     y = xp.exp(xp.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "stacks.txt")
        ...     prof.export_stacks(path)
        ...     path.exists()
        True
        """
        if metric != "self_cpu_time_total":
            msg = f"export_stacks: metric should be 'self_cpu_time_total', the only one there is, but got {metric!r}"
            raise ValueError(msg)
        if not self.with_stack:
            msg = "export_stacks() requires `profile(with_stack=True)`"
            raise ValueError(msg)
        sums: dict[str, float] = {}
        for event in self.function_events:
            if event.stack:
                line = ";".join(frame.replace(";", "_").replace(" ", "_") for frame in reversed(event.stack))
                sums[line] = sums.get(line, 0.0) + event.self_cpu_time_total
        write(path, "".join(f"{line} {round(us)}\n" for line, us in sums.items()))


class record_function(ContextDecorator):  # noqa: N801 (PyTorch's name)
    """Context manager and decorator for a labelled range in a profile; it has no effect without a profile.

    Parameters
    ----------
    name : str
        The label.
    args : str, optional
        A text that a trace shows with the range.

    Raises
    ------
    TypeError
        An argument is not a string.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0])
    >>> with xp.autograd.profiler.profile() as prof:
    ...     with xp.autograd.profiler.record_function("twice"):
    ...         y = x * 2
    >>> [[child.name for child in event.cpu_children] for event in prof.function_events]
    [['multiply'], []]
    """

    name: str
    args: str | None

    def __init__(self, name: str, args: str | None = None) -> None:
        for what, value in (("name", name), ("args", args)):
            if not isinstance(value, str) and not (what == "args" and value is None):
                msg = f"record_function: `{what}` must be a str, but got {shown(value)}"
                raise TypeError(msg)
        self.name, self.args = name, args
        self._open: list[Any] = []

    def _recreate_cm(self) -> record_function:
        return type(self)(self.name, self.args)  # decorated functions may recurse, and run in several threads

    def __enter__(self) -> record_function:
        mode = state.current()
        recording = None if mode is None else mode.profiling
        self._open.append((recording, None if recording is None else recording.range(self.name, self.args)))
        return self

    def __exit__(self, *exc: object) -> None:
        recording, event = self._open.pop()
        if event is not None:
            recording.end(event)
