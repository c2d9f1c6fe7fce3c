"""Errors that several parts of compiling raise."""

from __future__ import annotations

from typing import Any

from xpgrad.errors import CaptureError

__all__ = ["elsewhere", "from_outside"]


def elsewhere(x: Any, device: Any) -> CaptureError:
    """The error for a Tensor that a compiled function uses on another device than that of its arguments."""
    return CaptureError(
        f"a compiled function, whose arguments are on {device}, uses a Tensor on {x.device} (shape {tuple(x.shape)}): it is captured for "
        f"one device. Move the Tensor outside, with `x.to_device({str(device)!r})`, pass it as an argument, or compile with `fallback=True`"
    )


def from_outside(x: Any) -> RuntimeError:
    """The error for a Tensor with history that a compiled function uses, and that is not one of its arguments."""
    return RuntimeError(
        "a compiled function uses a Tensor that requires grad and is not one of its arguments: its gradient would be lost. "
        f"Pass it as an argument (its shape is {tuple(x.shape)})"
    )
