"""Events of a profile, their averages, and the table that prints them.

An event is one run of an operation, of a graph node or of a labelled range; events in one context nest. The self time of an event excludes
the events directly inside it. Times are in microseconds, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from xpgrad._basics.arguments import as_flag, as_int
from xpgrad.autograd._drawing import bytes_text

#: PyTorch's numbers of the scopes: an operation, a node, a labelled range.
FORWARD, BACKWARD, RANGE = 0, 1, 7
SORTS = ("cpu_time", "cpu_time_total", "self_cpu_time_total", "saved_bytes", "self_saved_bytes", "count")
UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


class Interval(NamedTuple):
    """A time interval, in microseconds since the profile began.

    Parameters
    ----------
    start, end : float
        In microseconds.

    Examples
    --------
    >>> import xpgrad as xp
    >>> interval = xp.autograd.profiler.Interval(start=1.5, end=4.0)
    >>> interval.start, interval.end, interval.elapsed_us()
    (1.5, 4.0, 2.5)
    """

    start: float
    end: float

    def elapsed_us(self) -> float:
        """Return the length of the interval.

        Returns
        -------
        float
            In microseconds.

        See Also
        --------
        xpgrad.autograd.profiler.Interval
        """
        return self.end - self.start


class _Formatted:
    """Times of an event, formatted as text."""

    count: int
    cpu_time_total: Any
    self_cpu_time_total: Any

    @property
    def cpu_time(self) -> float:
        """The average time of a call, in microseconds.

        See Also
        --------
        xpgrad.autograd.profiler.FunctionEvent
        """
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return time_text(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return time_text(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return time_text(self.self_cpu_time_total)


class FunctionEvent(_Formatted):
    """One run of an operation, of a graph node or of a labelled range.

    Parameters
    ----------
    parent : FunctionEvent, optional
        The event inside which it runs.
    recording : object
        The profile that makes it; users do not make events.

    Attributes
    ----------
    id : int
    name, key : str
        The name of the public function, the name of the node (``"MulBackward0"``) or the label.
    thread : int
        The identifier of the thread that ran it.
    time_range : Interval
    count : int
        1.
    cpu_time, cpu_time_total, self_cpu_time_total : float
    cpu_parent : FunctionEvent or None
        The event inside which it ran.
    cpu_children : list of FunctionEvent
    scope : int
        0 for an operation, 1 for a graph node in a backward pass, 7 for a labelled range.
    forward : FunctionEvent or None
        For a node, the event of the operation that made it, if that was profiled.
    fwd_thread : int or None
        For a node, the thread of that operation.
    sequence_nr : int
        The creation number of the node, for a recorded operation and for its node; -1 otherwise.
    input_shapes : list of list of int
        With ``record_shapes``: the shapes of an operation's operands, or of the gradients of a node's outputs; ``[]`` for a scalar.
    stack : list of str
        With ``with_stack``: lines of the user's code, the innermost first; for a node, those of its operation.
    saved_bytes, self_saved_bytes : int
        With ``profile_memory``: the bytes that nodes save for backward, including and excluding events inside this one.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd import profiler
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> with profiler.profile(record_shapes=True, profile_memory=True) as prof:
    ...     with profiler.record_function("square"):
    ...         y = x * x
    ...     y.sum().backward()
    >>> outer, inner = prof.function_events[:2]
    >>> type(outer) is profiler.FunctionEvent, outer.is_user_annotation, inner.is_user_annotation
    (True, True, False)
    >>> inner.name, inner.cpu_parent is outer, inner.input_shapes, inner.count
    ('multiply', True, [[2], [2]], 1)
    >>> inner.cpu_time == inner.cpu_time_total, abs(inner.cpu_time_total - inner.time_range.elapsed_us()) < 0.01
    (True, True)
    >>> outer.saved_bytes == inner.self_saved_bytes > 0, outer.self_saved_bytes
    (True, 0)
    >>> node = next(event for event in prof.function_events if event.name == "MulBackward0")
    >>> node.forward is inner, node.fwd_thread == inner.thread
    (True, True)
    """

    id: int
    name: str
    key: str
    thread: int
    scope: int
    cpu_parent: FunctionEvent | None
    sequence_nr: int
    recording: Any
    self_saved_bytes: int
    start: int
    count: int = 1

    def __init__(
        self, id: int, name: str, thread: int, scope: int, parent: FunctionEvent | None = None, recording: Any = None  # noqa: A002 (PyTorch's name)
    ) -> None:  # fmt: skip
        self.id = id
        self.name = self.key = name
        self.thread = thread
        self.scope = scope
        self.cpu_parent = parent
        self.cpu_children: list[FunctionEvent] = []
        self.forward: FunctionEvent | None = None
        self.sequence_nr = -1
        self.input_shapes: list[list[int]] = []
        self.stack: list[str] = []
        self.args: str | None = None
        self.recording = recording  # the recording to which it belongs
        self.self_saved_bytes = 0
        self.start = 0  # nanoseconds since the profile began
        self.end: int | None = None

    @property
    def is_user_annotation(self) -> bool:
        """Whether it is a labelled range.

        See Also
        --------
        xpgrad.autograd.profiler.FunctionEvent
        """
        return self.scope == RANGE

    @property
    def fwd_thread(self) -> int | None:
        return None if self.forward is None else self.forward.thread

    @property
    def _stop(self) -> int:
        return self.start if self.end is None else self.end

    @property
    def time_range(self) -> Interval:
        return Interval(self.start / 1e3, self._stop / 1e3)

    @property
    def cpu_time_total(self) -> float:
        return (self._stop - self.start) / 1e3

    @property
    def self_cpu_time_total(self) -> float:
        """Time without the events inside it, in microseconds; overlapping events on several threads count once.

        Examples
        --------
        >>> import xpgrad as xp
        >>> with xp.autograd.profiler.profile() as prof:
        ...     with xp.autograd.profiler.record_function("range"):
        ...         y = xp.exp(xp.ones(3))
        >>> event = prof.function_events[0]
        >>> 0 < event.self_cpu_time_total < event.cpu_time_total
        True
        """
        covered, reached = 0, self.start
        for start, end in sorted((c.start, c._stop) for c in self.cpu_children):
            end = min(end, self._stop)
            covered += max(0, end - max(start, reached))
            reached = max(reached, end)
        return (self._stop - self.start - covered) / 1e3

    @property
    def saved_bytes(self) -> int:
        total, inside = 0, [self]
        while inside:
            event = inside.pop()
            total += event.self_saved_bytes
            inside += event.cpu_children
        return total

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} start_us={self.time_range.start} "
            f"end_us={self.time_range.end} cpu_children={[c.id for c in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} saved_bytes={self.saved_bytes} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(_Formatted):
    """The sum of several events with the same key.

    Attributes
    ----------
    key : str
    count : int
    cpu_time_total, self_cpu_time_total, cpu_time : float
        Microseconds of all calls, and the average per call.
    saved_bytes, self_saved_bytes : int
        Bytes of all calls.
    input_shapes, stack, scope, is_user_annotation
        Those of the first event.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.ones(3)
    >>> with xp.autograd.profiler.profile() as prof:
    ...     y = xp.exp(xp.exp(x))
    >>> (average,) = prof.key_averages()
    >>> type(average) is xp.autograd.profiler.FunctionEventAvg
    True
    >>> average.key, average.count
    ('exp', 2)
    >>> average.cpu_time == average.cpu_time_total / 2
    True
    >>> [t[-1] for t in (average.cpu_time_str, average.cpu_time_total_str, average.self_cpu_time_total_str)]
    ['s', 's', 's']
    """

    key: str
    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    saved_bytes: int
    self_saved_bytes: int
    scope: int
    is_user_annotation: bool

    def __init__(self) -> None:
        self.key = ""
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.saved_bytes = self.self_saved_bytes = 0
        self.input_shapes: list[list[int]] = []
        self.stack: list[str] = []
        self.scope = FORWARD
        self.is_user_annotation = False
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Add an event or a sum of events, in place.

        Parameters
        ----------
        other : FunctionEvent or FunctionEventAvg
            The first one sets the key, the shapes and the stack.

        Returns
        -------
        FunctionEventAvg
            The object itself.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.ones(3)
        >>> with xp.autograd.profiler.profile() as prof:
        ...     y = xp.exp(xp.sin(x))
        >>> average = xp.autograd.profiler.FunctionEventAvg()
        >>> for event in prof.function_events:
        ...     average = average.add(event)
        >>> average.key, average.count
        ('sin', 2)
        """
        if not self.count:
            self.key, self.scope, self.is_user_annotation = other.key, other.scope, other.is_user_annotation
            self.input_shapes, self.stack, self.cpu_parent = other.input_shapes, other.stack, other.cpu_parent
        self.count += other.count
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.saved_bytes += other.saved_bytes
        self.self_saved_bytes += other.self_saved_bytes
        return self

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"count={self.count} input_shapes={self.input_shapes} saved_bytes={self.saved_bytes}>"
        )


class EventList(list[Any]):
    """A list of events or of averages that prints as a table.

    Parameters
    ----------
    events : iterable
    profile_memory, with_stack : bool
        Whether the events have saved bytes, and stacks.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.autograd import profiler
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> with profiler.profile() as prof:
    ...     (x * x + x).sum().backward()
    >>> type(prof.function_events) is profiler.EventList
    True
    >>> [event.name for event in prof.function_events if event.scope == 1]
    ['SumBackward1', 'AddBackward0', 'MulBackward0', 'AccumulateGrad']
    """

    def __init__(self, events: Iterable[Any] = (), *, profile_memory: bool = False, with_stack: bool = False) -> None:
        super().__init__(events)
        self._memory, self._stacks = profile_memory, with_stack

    def __str__(self) -> str:
        return self.table()

    def _like(self, events: Iterable[Any]) -> EventList:
        return EventList(events, profile_memory=self._memory, with_stack=self._stacks)

    @property
    def self_cpu_time_total(self) -> float:
        """The sum of all self times, in microseconds.

        Examples
        --------
        >>> import xpgrad as xp
        >>> with xp.autograd.profiler.profile() as prof:
        ...     y = xp.exp(xp.ones(3))
        >>> events = prof.function_events
        >>> events.self_cpu_time_total == sum(e.self_cpu_time_total for e in events)
        True
        """
        return sum((event.self_cpu_time_total for event in self), 0.0)

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Sum the events by name.

        Parameters
        ----------
        group_by_input_shapes : bool
            Group by the shapes of operands as well; needs ``record_shapes``.
        group_by_stack_n : int
            Group by this many of the innermost lines of the stack as well; needs ``with_stack``.

        Returns
        -------
        EventList
            `FunctionEventAvg` objects, in the order of the first calls.

        Raises
        ------
        TypeError
            An argument has the wrong type.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.ones(3)
        >>> with xp.autograd.profiler.profile(record_shapes=True) as prof:
        ...     y = xp.exp(x) + xp.exp(x[:2]).sum()
        >>> [(e.key, e.count) for e in prof.function_events.key_averages() if e.key == "exp"]
        [('exp', 2)]
        >>> [(e.input_shapes, e.count) for e in prof.function_events.key_averages(group_by_input_shapes=True) if e.key == "exp"]
        [([[3]], 1), ([[2]], 1)]
        """
        shapes = as_flag(group_by_input_shapes, "key_averages", "group_by_input_shapes")
        lines = max(0, as_int(group_by_stack_n, "key_averages", "group_by_stack_n"))
        found: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (event.key, event.scope, str(event.input_shapes) if shapes else "", *event.stack[:lines])
            found.setdefault(key, FunctionEventAvg()).add(event)
        for average in found.values():
            average.stack = average.stack[:lines]
            if not shapes:
                average.input_shapes = []
        return self._like(found.values())

    def total_average(self) -> FunctionEventAvg:
        """Sum all events, under the key ``"Total"``.

        Returns
        -------
        FunctionEventAvg
            Its shapes and its stack are empty.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.ones(3)
        >>> with xp.autograd.profiler.profile() as prof:
        ...     y = xp.exp(xp.sin(x))
        >>> total = prof.function_events.total_average()
        >>> total.key, total.count
        ('Total', 2)
        """
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key, total.stack, total.input_shapes = "Total", [], []
        return total

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75, max_name_column_width: int = 55,
        max_shapes_column_width: int = 80, header: str | None = None, top_level_events_only: bool = False, time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """Return a table with a row per event.

        Parameters
        ----------
        sort_by : str, optional
            ``cpu_time``, ``cpu_time_total``, ``self_cpu_time_total``, ``saved_bytes``, ``self_saved_bytes`` or ``count``, in descending
            order. Default: the order of the calls.
        row_limit : int
            The number of rows; all if negative.
        max_src_column_width, max_name_column_width, max_shapes_column_width : int
            Longer texts are shortened.
        header : str, optional
            A title.
        top_level_events_only : bool
            Leave out events inside others.
        time_unit : {"s", "ms", "us"}, optional
            Default: the unit that suits each time.

        Returns
        -------
        str
            Empty if there are no events.

        Raises
        ------
        ValueError
            `sort_by` or `time_unit` is unknown.

        Examples
        --------
        >>> import xpgrad as xp
        >>> with xp.autograd.profiler.profile() as prof:
        ...     y = xp.exp(xp.sin(xp.ones(3)))
        >>> text = prof.function_events.table(sort_by="cpu_time_total", header="Two functions")
        >>> "Two functions" in text, "sin" in text, "exp" in text
        (True, True, True)
        >>> xp.autograd.profiler.EventList().table()
        ''
        """
        if sort_by is not None and sort_by not in SORTS:
            msg = f"table: `sort_by` must be one of {', '.join(map(repr, SORTS))} or None, but got {sort_by!r}"
            raise ValueError(msg)
        if time_unit is not None and time_unit not in UNITS:
            msg = f"table: `time_unit` must be 's', 'ms', 'us' or None, but got {time_unit!r}"
            raise ValueError(msg)
        row_limit = as_int(row_limit, "table", "row_limit")
        if not self:
            return ""
        events = self if sort_by is None else sorted(self, key=lambda event: getattr(event, sort_by), reverse=True)
        shown = [e for e in events if not (top_level_events_only and e.cpu_parent is not None)]
        shown = shown if row_limit < 0 else shown[:row_limit]
        total = self.self_cpu_time_total
        columns = _columns(shown, total, self._memory, time_unit, (max_name_column_width, max_shapes_column_width, max_src_column_width))
        return _layout(columns, header, top_level_events_only, f"Self CPU time total: {time_text(total, time_unit)}")


def time_text(us: float, unit: str | None = None) -> str:
    """Format a time in microseconds, in the given unit or one that suits it."""
    if unit is None:
        unit = "s" if us >= 1e6 else "ms" if us >= 1e3 else "us"
    return f"{us / UNITS[unit]:.3f}{unit}"


def _shorten(text: str, width: int) -> str:
    return text if width < 0 or len(text) <= width else text[: max(width - 3, 0)] + "..."


def _columns(
    events: list[Any], total: float, memory: bool, unit: str | None, widths: tuple[int, int, int]
) -> list[tuple[str, list[str], bool]]:
    """Return the columns of a profile's table: the title, the cells, and whether the column is right-aligned.

    Parameters
    ----------
    events : list of FunctionEventAvg
    total : float
        The sum of their own times, in microseconds.
    memory : bool
        Whether there are columns for saved bytes.
    unit : str or None
        The unit of times; None chooses one for each.
    widths : (int, int, int)
        Most characters of names, shapes and source lines.
    """
    name, shapes, source = widths

    def share(us: float) -> str:
        return f"{100 * us / total:.2f}%" if total else "0.00%"

    columns = [
        ("Name", [_shorten(e.key, name) for e in events], True),
        ("Self CPU %", [share(e.self_cpu_time_total) for e in events], True),
        ("Self CPU", [time_text(e.self_cpu_time_total, unit) for e in events], True),
        ("CPU total %", [share(e.cpu_time_total) for e in events], True),
        ("CPU total", [time_text(e.cpu_time_total, unit) for e in events], True),
        ("CPU time avg", [time_text(e.cpu_time, unit) for e in events], True),
    ]
    if memory:
        columns += [
            ("Saved", [bytes_text(e.saved_bytes) for e in events], True),
            ("Self saved", [bytes_text(e.self_saved_bytes) for e in events], True),
        ]
    columns.append(("# of Calls", [str(e.count) for e in events], True))
    if any(e.input_shapes for e in events):
        columns.append(("Input Shapes", [_shorten(str(e.input_shapes), shapes) for e in events], True))
    if any(e.stack for e in events):
        columns.append(("Source Location", [_tail(e.stack[0], source) if e.stack else "" for e in events], False))
    return columns


def _tail(text: str, width: int) -> str:
    """Shorten a text at its beginning."""
    return text if width < 0 or len(text) <= width else "..." + text[len(text) - max(width - 3, 0) :]


def _layout(columns: list[tuple[str, list[str], bool]], header: str | None, top_level: bool, footer: str) -> str:
    widths = [max(len(title), *map(len, cells), 0) if cells else len(title) for title, cells, _ in columns]

    def line(cells: Iterable[str]) -> str:
        return "  ".join(c.rjust(w) if right else c.ljust(w) for c, w, (_, _, right) in zip(cells, widths, columns)).rstrip()

    rule = "  ".join("-" * w for w in widths)
    lines = []
    if header is not None:
        lines += ["=" * len(rule), header]
    if top_level:
        lines += ["=" * len(rule), "Events inside of others are left out"]
    lines += [rule, line(title for title, _, _ in columns), rule]
    lines += [line(row) for row in zip(*(cells for _, cells, _ in columns))]
    return "\n".join([*lines, rule, footer, ""])
