"""Errors that several modules of `programs` raise."""

from __future__ import annotations

from typing import Any

from xpgrad.errors import CaptureError

__all__ = ["device_error", "outside_error"]


def device_error(x: Any, device: Any) -> CaptureError:
    """Return the error for a Tensor from outside that is on another device than the arguments of a compiled function."""
    return CaptureError(
        f"a compiled function, whose arguments are on {device}, uses a Tensor on {x.device} (shape {tuple(x.shape)}): it is captured for "
        f"one device. Move the Tensor outside, with `x.to_device({str(device)!r})`, pass it as an argument, or compile with `fallback=True`"
    )


def outside_error(x: Any) -> RuntimeError:
    """Return the error for a Tensor with history that a compiled function uses without getting it as an argument."""
    return RuntimeError(
        "a compiled function uses a Tensor that requires grad and is not one of its arguments: its gradient would be lost. "
        f"Pass it as an argument (its shape is {tuple(x.shape)})"
    )
