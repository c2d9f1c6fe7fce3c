"""Save and restore the surroundings of a function call: modes, devices, streams and random numbers."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from xpgrad._backends.classes import host_backend, tensor_class
from xpgrad._backends.default_device import default_device, get_default_device
from xpgrad._modes import state
from xpgrad._modes.batch_levels import active_levels, at_levels
from xpgrad._modes.setting import Setting
from xpgrad._tape.streams import CLASSES, ambient_streams, on_streams
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.forward.levels import Levels, keep_tangents, reopen


class Surroundings:
    """The surroundings at creation: levels of forward mode and `vmap`, default device, streams, and states of random generators.

    Parameters
    ----------
    args : iterable
        The global random generators of the Tensors among them are saved, with those of the default device and of NumPy.
    preserve_rng_state : bool
        Whether to save random generators.
    """

    def __init__(self, args: Iterable[Any], preserve_rng_state: bool) -> None:
        mode = state.current()
        self._levels = () if mode is None else mode.levels
        keep_tangents(self._levels)
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

    def restore(self, packing: Any = None) -> AbstractContextManager[Any]:
        """Return a context manager that restores the surroundings and records operations, with `packing` hooks for saved values.

        Selective checkpoints outside it are not consulted, since everything in it has run before.
        """
        levels = Levels(reopen(self._levels)) if self._levels else ()
        mode = state.mode_with(recording=True, inference=False, levels=levels, packing=packing, selecting=None)
        return _Together(
            at_levels(self._batches), default_device(self._device), on_streams(self._streams), _RandomNumbers(self),
            Setting(state.VARIABLE, mode),
        )  # fmt: skip

    def _draw_from(self, states: list[Any]) -> None:
        for (backend, device), numbers in zip(self._generators, states):
            backend.set_rng_state(device, numbers)


class _RandomNumbers:
    """Context manager that restores the saved states of random generators."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings

    def __enter__(self) -> None:
        self._now = [backend.get_rng_state(device) for backend, device in self._surroundings._generators]
        self._surroundings._draw_from(self._surroundings._states)

    def __exit__(self, *exc: object) -> None:
        self._surroundings._draw_from(self._now)


class _Together:
    """Context manager that enters several context managers in order, and leaves them in reverse order."""

    def __init__(self, *contexts: AbstractContextManager[Any]) -> None:
        self._contexts = contexts
        self._stack = ExitStack()

    def __enter__(self) -> None:
        try:
            for context in self._contexts:
                self._stack.enter_context(context)
        except BaseException:
            self._stack.close()
            raise

    def __exit__(self, *exc: Any) -> None:
        self._stack.__exit__(*exc)
