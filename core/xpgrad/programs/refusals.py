"""Errors that several parts of compiling raise."""

from __future__ import annotations

from typing import Any

__all__ = ["from_outside"]


def from_outside(x: Any) -> RuntimeError:
    """The error for a Tensor with history that a compiled function uses, and that is not one of its arguments."""
    return RuntimeError(
        "a compiled function uses a Tensor that requires grad and is not one of its arguments: its gradient would be lost. "
        f"Pass it as an argument (its shape is {tuple(x.shape)})"
    )
