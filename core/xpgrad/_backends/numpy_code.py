"""Functions of code for NumPy (`numpy_code`) that run again after that code has ended, as in a backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from xpgrad._backends.default_device import default_device, get_default_device
from xpgrad._modes import state
from xpgrad._modes.setting import Setting

__all__ = ["NumpyCode", "resume_numpy_code", "without_numpy_code"]


class NumpyCode:
    """The code for NumPy that runs in this thread at creation, if any.

    Attributes
    ----------
    semantics : object or None
    modules : tuple of context managers
        Within each, the names of a module of the code mean stand-ins.
    """

    def __init__(self) -> None:
        mode = state.current()
        self.semantics = None if mode is None else mode.numpy
        self.modules = () if self.semantics is None else tuple(self.semantics.modules)
        self._device = None if self.semantics is None else get_default_device()

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """Context manager in which code means what it meant then."""
        mode = state.current()
        if (None if mode is None else mode.numpy) is self.semantics:
            yield
            return
        if self.semantics is None:
            with Setting(state.VARIABLE, state.mode_with(numpy=None)):
                yield
            return
        with (
            Setting(state.VARIABLE, state.mode_with(numpy=self.semantics, copies=True)),
            default_device(self._device),
            ExitStack() as names,
        ):
            for module in self.modules:
                names.enter_context(module)
            yield

    def keep(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function to run within this code; return the function itself if there is none."""
        if self.semantics is None:
            return function

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.resumed():
                return function(*args, **kwargs)

        return call


def resume_numpy_code(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to mean later what it means now if code for NumPy is running; otherwise return the function itself."""
    return NumpyCode().keep(function)


def without_numpy_code() -> AbstractContextManager[Any]:
    """Return a context manager in which no code for NumPy runs."""
    mode = state.current()
    if mode is None or mode.numpy is None:
        return nullcontext()
    return Setting(state.VARIABLE, state.mode_with(numpy=None, copies=False))
