"""The global random generators of libraries, for functions that run again and must draw the same numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from xpgrad._backends.classes import classes_in_use, host_backend, tensor_class
from xpgrad._backends.contexts import keep_context
from xpgrad._backends.default_device import get_default_device

__all__ = ["RandomStates", "repeat_draws"]


class RandomStates:
    """The states of the global generators of NumPy and of all devices in use, when it is created.

    A function may draw from the generator of any device, also if its arguments are elsewhere.
    """

    def __init__(self) -> None:
        self._entries: list[tuple[Any, Any, Any]] = []
        places = [host_backend().devices()[0], get_default_device()]
        for cls in dict.fromkeys([*map(tensor_class, places), *classes_in_use()]):
            numbers = cls.backend.get_rng_state(cls.device)
            if numbers is not None:
                self._entries.append((cls.backend, cls.device, numbers))

    def are_unchanged(self) -> bool:
        """Return whether the generators have drawn nothing since."""
        return all(_is_same(backend.get_rng_state(device), numbers) for backend, device, numbers in self._entries)

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Return a context manager in which the generators continue from these states; afterwards they continue from their own.

        One that cannot tell its own state now, as while CuPy captures a graph, is left alone.
        """
        own = [(backend, device, backend.get_rng_state(device), numbers) for backend, device, numbers in self._entries]
        try:
            for backend, device, mine, numbers in own:
                if mine is not None:
                    backend.set_rng_state(device, numbers)
            yield
        finally:
            for backend, device, mine, _ in own:
                if mine is not None:
                    backend.set_rng_state(device, mine)


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two states of a generator are equal."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_is_same(x, b[key]) for key, x in a.items())
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_is_same, a, b))
    same = a == b
    return bool(same.all() if hasattr(same, "all") else same)


def repeat_draws(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that runs again to draw the same random numbers from global generators in each call as in the first.

    It keeps the context of this call: code for NumPy, and the Tensors that `functional_call` has put into objects.

    If the first draws none, the others cost nothing: NumPy takes 50 us to save or to set the state of its generator.
    """
    states: list[RandomStates | None] = []
    function = keep_context(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not states:
            first = RandomStates()
            out = function(*args, **kwargs)
            states.append(None if first.are_unchanged() else first)
            return out
        if states[0] is None:
            return function(*args, **kwargs)
        with states[0].restored():
            return function(*args, **kwargs)

    return call
