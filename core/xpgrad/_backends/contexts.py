"""What a function that runs again, as in a backward pass, needs of the call that it was given in (`numpy_code`, `functional_call`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

from xpgrad._backends.default_device import default_device, get_default_device
from xpgrad._modes import state
from xpgrad._modes.setting import Setting

__all__ = ["CallContext", "keep_context", "without_context"]


class CallContext:
    """The code for NumPy and the calls of `functional_call` that run in this thread at creation.

    Attributes
    ----------
    semantics : object or None
        NumPy's, if code for NumPy is running.
    modules : tuple of context managers
        Within each, the names of a module of that code mean stand-ins.
    replaced : tuple of context managers
        Within each, an object has other Tensors than its own.
    """

    def __init__(self) -> None:
        mode = state.current()
        self.semantics = None if mode is None else mode.numpy
        self.replaced: tuple[Any, ...] = () if mode is None else mode.replaced
        self.modules = () if self.semantics is None else tuple(self.semantics.modules)
        self._device: Any = None if self.semantics is None else get_default_device()

    @contextmanager
    def resumed(self) -> Iterator[None]:
        """Context manager in which code means what it meant then."""
        mode = state.current()
        semantics, replaced = (None, ()) if mode is None else (mode.numpy, mode.replaced)
        with ExitStack() as stack:
            if semantics is not self.semantics:
                new = state.mode_with(numpy=None) if self.semantics is None else state.mode_for_numpy_code(self.semantics)
                stack.enter_context(Setting(state.VARIABLE, new))
                if self.semantics is not None:
                    stack.enter_context(default_device(self._device))
                for module in self.modules:
                    stack.enter_context(module)
            missing = [x for x in self.replaced if x not in replaced]
            if missing:
                stack.enter_context(Setting(state.VARIABLE, state.mode_with(replaced=(*replaced, *missing))))
                for x in missing:
                    stack.enter_context(x)
            yield

    def keep(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function to run within this context; return the function itself if there is nothing to resume."""
        if self.semantics is None and not self.replaced:
            return function

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self.resumed():
                return function(*args, **kwargs)

        return call


def keep_context(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function to mean later what it means now."""
    return CallContext().keep(function)


def without_context() -> AbstractContextManager[Any]:
    """Return a context manager in which functions are compiled as outside of `numpy_code` and `functional_call`."""
    mode = state.current()
    if mode is None or not (mode.numpy or mode.replaced):
        return nullcontext()
    return Setting(state.VARIABLE, state.mode_with(numpy=None, copies=False, replaced=()))
