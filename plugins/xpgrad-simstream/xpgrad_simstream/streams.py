"""Streams as queues of work, and a detector of races between them by vector clocks.

A stream runs its work in order. Different streams run in a random order that respects the events between them. Two accesses to the same
memory that no event orders are a race, even if their order happens to be right.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

__all__ = ["Event", "RaceError", "Storage", "Stream", "current", "races", "reset", "seed", "synchronize", "use"]


class RaceError(RuntimeError):
    """Two operations access the same memory, at least one of them writes, and no event orders them."""


class Stream:
    """A queue of work on one device.

    Attributes
    ----------
    name : str
        The name in messages.
    device : int
        The number of its device.
    clock : dict
        By stream, the number of its operations that are sure to be done before the next one that is queued here.
    """

    def __init__(self, name: str, device: int = 0) -> None:
        self.name = name
        self.device = device
        self.clock: dict[Stream, int] = {self: 0}
        self.queue: deque[tuple[Any, Any]] = deque()  # pairs of (event to wait for, work), one of which is None
        self.queued = 0  # the number of operations queued so far
        self.entries = self.passed = 0  # the numbers of operations and waits queued, and done, so far
        _streams.append(self)

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, device={self.device})"

    def put(self, work: Callable[[], None], name: str, reads: list[Storage], writes: list[Storage]) -> None:
        """Queue an operation.

        Parameters
        ----------
        work : callable
            The operation.
        name : str
            Its name in messages.
        reads, writes : list of Storage
            The memory that it reads and writes.

        Raises
        ------
        RaceError
            If no event orders it and an access of another stream to the same memory.
        """
        with _lock:
            self._put(work, name, reads, writes)

    def _put(self, work: Callable[[], None], name: str, reads: list[Storage], writes: list[Storage]) -> None:
        for storage in reads:
            _check(self, storage, storage.written, f"{name} reads what", "writes")
        for storage in writes:
            _check(self, storage, storage.written, f"{name} overwrites what", "writes")
            for reader, time in storage.read.items():
                _check(self, storage, (reader, time), f"{name} overwrites what", "reads")
        self.queued += 1
        self.clock[self] = self.queued
        for storage in reads:
            storage.read[self] = self.queued
        for storage in writes:
            storage.written = (self, self.queued)
            storage.read.clear()
        self.queue.append((None, work))
        self.entries += 1

    def record(self) -> Event:
        """Return an event that is reached when all work queued so far is done."""
        with _lock:
            return Event(self, self.entries, dict(self.clock))

    def wait(self, event: Event) -> None:
        """Make work queued from now on wait for an event."""
        with _lock:
            for stream, time in event.clock.items():
                self.clock[stream] = max(self.clock.get(stream, 0), time)
            self.queue.append((event, None))
            self.entries += 1

    def step(self) -> bool:
        """Run the next entry of the queue; return False if the queue is empty or its first entry must wait for an event."""
        if not self.queue:
            return False
        event, work = self.queue[0]
        if event is not None and event.stream.passed < event.place:
            return False
        self.queue.popleft()
        self.passed += 1
        if work is not None:
            work()
        return True


class Event:
    """A place in a stream's queue, for which other streams can wait."""

    def __init__(self, stream: Stream, place: int, clock: dict[Stream, int]) -> None:
        self.stream, self.place, self.clock = stream, place, clock


class Storage:
    """The accesses to the memory of an array and its views: the last write, the reads since, and the stream that allocated it.

    When the memory is freed, the stream that allocated it may reuse it at once. If other streams may still use it then, this is a race,
    unless `keep` was called after their work was queued.
    """

    def __init__(self, owner: Stream) -> None:
        self.owner = owner
        self.written: tuple[Stream, int] = (owner, 0)
        self.read: dict[Stream, int] = {}
        self.kept: dict[Stream, int] = {}

    def keep(self, stream: Stream) -> None:
        """Delay the reuse of the memory until the work queued on `stream` so far is done."""
        self.kept[stream] = stream.queued

    def __del__(self) -> None:
        for stream, time in (self.written, *self.read.items()):
            if stream is self.owner or time <= max(self.kept.get(stream, 0), self.owner.clock.get(stream, 0)):
                continue
            races.append(f"memory of {self.owner!r} is given back while {stream!r} may still use it")


_streams: list[Stream] = []
#: Threads queue and run work one at a time. NB: the lock is reentrant, because memory may be freed while a thread holds it.
_lock = threading.RLock()
_random = random.Random(0)
#: Messages of races with freed memory, which are found in `__del__`, where nothing can be raised.
races: list[str] = []
_defaults: dict[int, Stream] = {}
_current: ContextVar[dict[int, Stream] | None] = ContextVar("xpgrad_simstream_current", default=None)


def _check(stream: Stream, storage: Storage, other: tuple[Stream, int], what: str, verb: str) -> None:
    """Raise RaceError if `other`, an access (stream, number of its operation), is not sure to precede the next work on `stream`."""
    writer, time = other
    if writer is not stream and stream.clock.get(writer, 0) < time:
        msg = f"race: on {stream!r}, {what} {writer!r} {verb}, and nothing orders the two; let it wait for an event recorded there"
        raise RaceError(msg)


def current(device: int = 0) -> Stream:
    """Return the current stream of a device."""
    found = (_current.get() or {}).get(device)
    if found is None:
        found = _defaults.get(device)
        if found is None:
            found = _defaults[device] = Stream("default", device)
    return found


@contextmanager
def use(stream: Stream) -> Iterator[Stream]:
    """Return a context manager in which `stream` is the current stream of its device."""
    token = _current.set({**(_current.get() or {}), stream.device: stream})
    try:
        yield stream
    finally:
        _current.reset(token)


def synchronize(*streams: Stream) -> None:
    """Run queued work, in a random order, until the given streams (all, if none are given) are done.

    Raises
    ------
    RaceError
        If streams wait for each other in a cycle.
    """
    with _lock:
        _synchronize(streams or tuple(_streams))


def _synchronize(wanted: tuple[Stream, ...]) -> None:
    busy = list(_streams)
    while any(s.queue for s in wanted):
        _random.shuffle(busy)
        if not sum(s.step() for s in busy):
            msg = f"streams wait for one another: {[s for s in wanted if s.queue]}"
            raise RaceError(msg)
    # The host has waited, so everything that it queues from now on comes after the work of those streams.
    for s in wanted:
        for other in _streams:
            for stream, time in s.clock.items():
                other.clock[stream] = max(other.clock.get(stream, 0), time)


def seed(number: int) -> None:
    """Seed the random numbers that decide the order of streams."""
    _random.seed(number)


def reset() -> None:
    """Forget all streams and races."""
    _streams.clear()
    _defaults.clear()
    races.clear()


def make_garbage(like: np.ndarray) -> np.ndarray:
    """Return memory for an array `like` this one, filled with nan (or 0) as if it had not been written yet."""
    out = np.empty_like(like)
    out.fill(np.nan if out.dtype.kind in "fc" else 0)
    return out
