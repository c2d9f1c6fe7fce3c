"""The transform that is running the user's function in this context."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

_RUNNING: ContextVar[str | None] = ContextVar("xpgrad_transform", default=None)
#: The Tensors in which the running functions are differentiated by reverse mode, the outermost's first.
_INPUTS: ContextVar[tuple[Any, ...]] = ContextVar("xpgrad_transform_inputs", default=())


def transforming() -> str | None:
    """The name of the innermost transform that runs a function in this context, or None."""
    return _RUNNING.get()


def transform_inputs() -> tuple[Any, ...]:
    """Return the Tensors in which the functions that run in this context are differentiated by reverse mode."""
    return _INPUTS.get()


def run_transformed(name: str, inputs: Iterable[Any], function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call the user's function for a transform of this name.

    Parameters
    ----------
    name : str
    inputs : iterable of Tensor
        Those among the arguments in which the transform differentiates by reverse mode; forward mode's and `vmap`'s know what they are.
    function : callable
    *args, **kwargs : object
        For the function.
    """
    before, outer = _RUNNING.get(), _INPUTS.get()
    try:
        _RUNNING.set(name)
        _INPUTS.set((*outer, *inputs))
        return function(*args, **kwargs)
    finally:
        _RUNNING.set(before)
        _INPUTS.set(outer)
