"""Custom Functions that several tests use."""

from __future__ import annotations

from typing import Any

from xpgrad.autograd import Function

__all__ = ["Cube", "SavesInputs"]


class SavesInputs:
    """A mixin for a Function, xpgrad's or PyTorch's, that saves its inputs for both modes."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)


class Cube(SavesInputs, Function):
    """``x**3``, with derivatives for both modes."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3 * ctx.saved_tensors[0] ** 2

    @staticmethod
    def jvp(ctx: Any, t: Any) -> Any:
        return t * 3 * ctx.saved_tensors[0] ** 2
