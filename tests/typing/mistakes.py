"""Mistakes that a type checker must find: the comment names the rule of pyright by which it does. This program is not run."""

import xpgrad as xp
from xpgrad import Tensor


@xp.autograd.custom_rule
def softplus(x: Tensor, *, beta: float = 1.0) -> Tensor:
    return xp.log1p(xp.exp(beta * x)) / beta


@xp.no_grad()
def doubled(x: Tensor) -> Tensor:
    return 2.0 * x


x = xp.tensor([1.0], requires_grad=True)
xp.sine(x)  # reportAttributeAccessIssue
xp.array([1.0])  # reportAttributeAccessIssue
xp.autograd.gradient(x, x)  # reportAttributeAccessIssue
xp.linalg.inverse(x)  # reportAttributeAccessIssue
xp.fft.dct(x)  # reportAttributeAccessIssue
xp.func.gradient(xp.sum)  # reportAttributeAccessIssue
x.sine()  # reportAttributeAccessIssue
x.grad.tolist()  # reportOptionalMemberAccess
softplus(x, gamma=2.0)  # reportCallIssue
softplus("x")  # reportArgumentType
doubled(x, x)  # reportCallIssue
xp.autograd.grad(x, x, allow_unused=True)[0].tolist()  # reportOptionalMemberAccess
