"""The tutorial's "Custom rules": a rule has the signature of the function from which it was made."""

from typing import Any

import numpy as np

import xpgrad as xp
from xpgrad import Tensor
from xpgrad.autograd import Function, custom_rule


@custom_rule
def softplus(x: Tensor, *, beta: float = 1.0) -> Tensor:
    return xp.log1p(xp.exp(beta * x)) / beta


@softplus.vjp
def _(g: Tensor, x: Tensor, beta: float) -> Tensor:
    return g / (1.0 + xp.exp(-beta * x))


@custom_rule(elementwise=True)
def wave(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return xp.asarray(np.sin(x.numpy()) * y.numpy()), xp.asarray(np.cos(x.numpy()) * y.numpy())


@wave.vjp
def _(g: tuple[Tensor, Tensor], x: Tensor, y: Tensor, out: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return g[0] * out[1] - g[1] * out[0], g[0] * xp.sin(x) + g[1] * xp.cos(x)


class Cube(Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x**3

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return 3.0 * x**2 * g


v = xp.tensor([-1.0, 0.0], requires_grad=True)
value: Tensor = softplus(v, beta=2.0)
sine, cosine = wave(v, value)
cube: Tensor = Cube.apply(v)
(slope,) = xp.autograd.grad(xp.sum(sine + cosine + cube), v)
assert xp.autograd.gradcheck(softplus, (v,))
operands: tuple[str, ...] = wave.operands
assert operands == ("x", "y")
