"""Save and restore the surroundings of a function call: modes, devices, streams and random numbers."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any

from xpgrad._backends.contexts import CallContext
from xpgrad._backends.default_device import default_device, get_default_device
from xpgrad._backends.generators import RandomStates
from xpgrad._modes import state
from xpgrad._modes.batch_levels import active_levels, at_levels
from xpgrad._modes.setting import Setting
from xpgrad._tape.streams import CLASSES, ambient_streams, on_streams
from xpgrad._transforms.forward.levels import Levels, keep_tangents, reopen


class Surroundings:
    """The surroundings at creation: levels of forward mode and `vmap`, default device, streams, states of random generators, and the
    context of the call.

    Parameters
    ----------
    preserve_rng_state : bool
        Whether to save the states of global random generators.
    """

    def __init__(self, preserve_rng_state: bool) -> None:
        mode = state.current()
        self._levels = () if mode is None else mode.levels
        keep_tangents(self._levels)
        self._batches = active_levels()
        self._device = get_default_device()
        self._streams = ambient_streams() if CLASSES else None
        self._random = RandomStates() if preserve_rng_state else None
        self._context = CallContext()

    def restore(self, packing: Any = None) -> AbstractContextManager[Any]:
        """Return a context manager that restores the surroundings and records operations, with `packing` hooks for saved values.

        Selective checkpoints outside it are not consulted, since everything in it has run before.
        """
        levels = Levels(reopen(self._levels)) if self._levels else ()
        mode = state.mode_with(recording=True, inference=False, levels=levels, packing=packing, selecting=None)
        return _Together(
            at_levels(self._batches), default_device(self._device), on_streams(self._streams),
            nullcontext() if self._random is None else self._random.restored(), Setting(state.VARIABLE, mode), self._context.resumed(),
        )  # fmt: skip


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
