"""The part of the facade for streams: making them, queueing work on them, waiting for them, and finding races between them.

Backends differ only in how a stream is made and how races are reported; everything else calls the backend's own methods.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

__all__ = ["Streams", "streams_of"]


class Streams:
    """The streams of a target.

    Parameters
    ----------
    backend : xpgrad.backend.Backend
        The backend of the device.
    device : xpgrad.Device
        The device that the streams belong to.
    new : callable
        Makes a stream of the device.
    race : type of Exception, optional
        The error for two streams that use the same memory without an event that orders them; None if the backend cannot detect races.
    found : callable
        Returns descriptions of the races that were found but could not be raised.
    reset : callable
        Forgets all streams and races.
    """

    def __init__(self, backend: Any, device: Any, new: Callable[[], Any], race: type[Exception] | None,
                 found: Callable[[], list[str]] = list, reset: Callable[[], None] = lambda: None) -> None:  # fmt: skip
        self.backend, self.device, self.new, self.race, self.found, self.reset = backend, device, new, race, found, reset

    @contextmanager
    def check_races(self) -> Iterator[Streams]:
        """Context manager that begins and ends with no queued work, and asserts that no race was found inside."""
        _collect()  # deleted arrays return their memory to its streams
        self.reset()
        try:
            yield self
            assert not self.found(), f"races: {self.found()}"
        finally:
            self.synchronize()
            self.reset()

    def current(self) -> Any:
        """Return the current stream, on which new work is queued."""
        return self.backend.current_stream(self.device)

    def use(self, stream: Any) -> AbstractContextManager[Any]:
        """Return a context manager that makes a stream the current one."""
        context: AbstractContextManager[Any] = self.backend.stream_guard(stream)
        return context

    def wait(self, stream: Any, other: Any) -> None:
        """Make a stream wait for all work queued on another so far: PyTorch's `wait_stream`."""
        if stream != other:
            self.backend.wait_event(stream, self.backend.record_event(other))

    def keep(self, x: Any, stream: Any) -> None:
        """Declare that a Tensor made on one stream is used on another: PyTorch's `record_stream`."""
        self.backend.keep_alive(x.array, stream)

    def synchronize(self) -> None:
        """Make the host wait for all streams."""
        self.backend.synchronize(self.device)


_settled: list[bool] = []


def _collect() -> None:
    """Delete unreachable objects now."""
    gc.collect()
    if not _settled:  # NB: examining the objects that are older than the first contract on streams takes 0.1 s each time
        gc.freeze()
        _settled.append(True)


def streams_of(backend: Any, device: Any) -> Streams | None:
    """Return the streams of a device of xpgrad; None if the suite does not know how to make them."""
    if backend.name == "simstream":
        from xpgrad_simstream import streams as simulated

        names = iter("abcdefghijklmnopqrstuvwxyz" * 100)
        index = device.index or 0
        return Streams(
            backend, device, lambda: simulated.Stream(next(names), index), simulated.RaceError, lambda: simulated.races, simulated.reset
        )
    if backend.name == "cupy":
        import cupy

        made = []  # NB: CuPy destroys a stream with its last reference

        def new() -> Any:
            made.append(cupy.cuda.Stream(non_blocking=True))
            with cupy.cuda.Device(device.index or 0), made[-1]:
                return backend.current_stream(device)

        return Streams(backend, device, new, None)
    if backend.name == "torch" and device.kind == "cuda":
        from torch.cuda import Stream

        new_stream: Callable[..., Any] = Stream
        return Streams(backend, device, lambda: new_stream(device.index or 0), None)
    return None
