"""Tensors from outside in a function that is being captured."""

from __future__ import annotations

from typing import Any

from xpgrad._modes import state

__all__ = ["as_captured"]


def as_captured(x: Any) -> Any:
    """Return a Tensor from outside as a constant of the running capture.

    It is unchanged if nothing is captured, or if it is an element of a batch or on another device.
    """
    mode = state.current()
    if mode is None or mode.capturing is None or x.depth or x.device != mode.capturing.cls.device:
        return x
    return mode.capturing.cls.lift(x)
