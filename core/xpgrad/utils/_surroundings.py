"""The surroundings in which a function runs: modes, devices, streams and random numbers, noted so that it can run the same way again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from xpgrad._backends.classes import host_backend, tensor_class
from xpgrad._backends.default_device import default_device, get_default_device
from xpgrad._modes import state
from xpgrad._tape.streams import CLASSES, ambient_streams, on_streams
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.level import active_levels, at_levels

__all__ = ["Surroundings"]


class Surroundings:
    """The state at creation: the levels of forward mode and of `vmap`, the default device, streams, and the states of random generators.

    Parameters
    ----------
    args : iterable
        The global random generators are noted for the Tensors among them, for the default device and for NumPy, where there are any.
    preserve_rng_state : bool
        Whether to note them at all.
    """

    def __init__(self, args: Iterable[Any], preserve_rng_state: bool) -> None:
        mode = state.current()
        self._levels = () if mode is None else mode.levels
        self._batches = active_levels()
        self._device = get_default_device()
        self._streams = ambient_streams() if CLASSES else None
        self._generators: list[tuple[Any, Any]] = []
        self._states: list[Any] = []
        if preserve_rng_state:
            places = [host_backend().devices()[0], tensor_class(self._device).device, *(a.device for a in args if isinstance(a, Tensor))]
            for device in dict.fromkeys(places):
                backend = tensor_class(device).backend
                numbers = backend.get_rng_state(device)
                if numbers is not None:
                    self._generators.append((backend, device))
                    self._states.append(numbers)

    @contextmanager
    def restored(self, packing: Any = None) -> Iterator[None]:
        """A context in which everything is as it was, and operations are recorded; `packing` are the hooks on what they save."""
        with ExitStack() as stack:
            stack.enter_context(at_levels(self._batches))
            stack.enter_context(default_device(self._device))
            stack.enter_context(on_streams(self._streams))
            stack.enter_context(self._random_numbers())
            before = state.current()
            try:
                state.put(state.replaced(recording=True, inference=False, levels=self._levels, packing=packing))
                yield
            finally:
                state.put(before)

    @contextmanager
    def _random_numbers(self) -> Iterator[None]:
        now = [backend.get_rng_state(device) for backend, device in self._generators]
        self._set(self._states)
        try:
            yield
        finally:
            self._set(now)

    def _set(self, states: list[Any]) -> None:
        for (backend, device), numbers in zip(self._generators, states):
            backend.set_rng_state(device, numbers)
