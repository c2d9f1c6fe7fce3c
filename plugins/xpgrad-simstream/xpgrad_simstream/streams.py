"""Streams as queues of work, and a detector of races between them by vector clocks.

A stream runs its work in order; different streams run in any order that the events between them allow, drawn at random. What is not
ordered by an event is a race, whether or not it went wrong this time.
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
    """Two operations on the same memory, at least one of them a write, whose order no event decides."""


class Stream:
    """A queue of work on one device.

    Attributes
    ----------
    name : str
    device : int
    clock : dict
        By stream, the amount of its work that is known to be done before what is queued here next.
    """

    def __init__(self, name: str, device: int = 0) -> None:
        self.name = name
        self.device = device
        self.clock: dict[Stream, int] = {self: 0}
        self.queue: deque[tuple[Any, Any]] = deque()  # (event to wait for, work): one of them is None
        self.queued = 0  # operations
        self.entries = self.passed = 0  # operations and waits
        _streams.append(self)

    def __repr__(self) -> str:
        return f"Stream({self.name!r}, device={self.device})"

    def put(self, work: Callable[[], None], name: str, reads: list[Storage], writes: list[Storage]) -> None:
        """Queue an operation and compare it with what others do to the same memory."""
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
        """Do the next piece of work; False if there is none, or it has to wait."""
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
    """A place in a stream's queue."""

    def __init__(self, stream: Stream, place: int, clock: dict[Stream, int]) -> None:
        self.stream, self.place, self.clock = stream, place, clock


class Storage:
    """The memory of an array and of its views: who wrote it last, who read it since, and on which stream it was allocated.

    When it is given back, work on other streams that may still use it races with whatever gets the memory next on its own stream,
    unless `keep` was called after that work.
    """

    def __init__(self, owner: Stream) -> None:
        self.owner = owner
        self.written: tuple[Stream, int] = (owner, 0)
        self.read: dict[Stream, int] = {}
        self.kept: dict[Stream, int] = {}

    def keep(self, stream: Stream) -> None:
        """Do not give the memory back before what is queued on `stream` is done."""
        self.kept[stream] = stream.queued

    def __del__(self) -> None:
        for stream, time in (self.written, *self.read.items()):
            if stream is self.owner or time <= max(self.kept.get(stream, 0), self.owner.clock.get(stream, 0)):
                continue
            races.append(f"memory of {self.owner!r} is given back while {stream!r} may still use it")


_streams: list[Stream] = []
#: Threads queue and run work one at a time. NB: memory may be given back, and noted, while the thread holds it.
_lock = threading.RLock()
_random = random.Random(0)
#: The races found in memory that was given back: nothing can be raised there.
races: list[str] = []
_defaults: dict[int, Stream] = {}
_current: ContextVar[dict[int, Stream] | None] = ContextVar("xpgrad_simstream_current", default=None)


def _check(stream: Stream, storage: Storage, other: tuple[Stream, int], what: str, verb: str) -> None:
    writer, time = other
    if writer is not stream and stream.clock.get(writer, 0) < time:
        msg = f"race: on {stream!r}, {what} {writer!r} {verb}, and nothing orders the two; let it wait for an event recorded there"
        raise RaceError(msg)


def current(device: int = 0) -> Stream:
    """Return the stream that work on a device is queued on now."""
    found = (_current.get() or {}).get(device)
    if found is None:
        found = _defaults.get(device)
        if found is None:
            found = _defaults[device] = Stream("default", device)
    return found


@contextmanager
def use(stream: Stream) -> Iterator[Stream]:
    """Queue work on `stream` inside a `with` block."""
    token = _current.set({**(_current.get() or {}), stream.device: stream})
    try:
        yield stream
    finally:
        _current.reset(token)


def synchronize(*streams: Stream) -> None:
    """Make the host wait for streams (for all, without an argument), while the others proceed at random.

    Raises
    ------
    RaceError
        If streams wait for one another.
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
    # The host has waited, so whatever it queues from now on, anywhere, comes after what those streams were given.
    for s in wanted:
        for other in _streams:
            for stream, time in s.clock.items():
                other.clock[stream] = max(other.clock.get(stream, 0), time)


def seed(number: int) -> None:
    """Draw a new order of streams."""
    _random.seed(number)


def reset() -> None:
    """Forget all streams and races."""
    _streams.clear()
    _defaults.clear()
    races.clear()


def garbage(like: np.ndarray) -> np.ndarray:
    """Memory that has not been written to yet."""
    out = np.empty_like(like)
    out.fill(np.nan if out.dtype.kind in "fc" else 0)
    return out
