"""Track the transform that is calling the user's function in this context."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import ContextVar
from typing import Any

_RUNNING: ContextVar[str | None] = ContextVar("xpgrad_transform", default=None)
#: The Tensors in which the running functions are differentiated by reverse mode, the outermost's first.
_INPUTS: ContextVar[tuple[Any, ...]] = ContextVar("xpgrad_transform_inputs", default=())


def transforming() -> str | None:
    """Return the name of the innermost transform that is calling a function in this context; None outside transforms."""
    return _RUNNING.get()


def transform_inputs() -> tuple[Any, ...]:
    """Return the Tensors with respect to which the running transforms differentiate in reverse mode."""
    return _INPUTS.get()


def run_transformed(name: str, inputs: Iterable[Any], function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call the user's function on behalf of a transform.

    Parameters
    ----------
    name : str
    inputs : iterable of Tensor
        The arguments with respect to which the transform differentiates in reverse mode. Forward mode and `vmap` give none: their
        Tensors carry a level.
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
