"""The tutorial's "Gradients of gradients"."""

import xpgrad as xp
from xpgrad import Tensor


def derivatives(t: Tensor, order: int) -> list[float]:
    y, found = t**4, list[float]()
    for _ in range(order):
        (y,) = xp.autograd.grad(y, t, create_graph=True)
        found.append(y.item())
    return found


assert derivatives(xp.tensor(2.0, requires_grad=True), 3) == [32.0, 48.0, 48.0]
y = xp.exp(xp.tensor(2.0, requires_grad=True))
y.backward(retain_graph=True)
y.backward()
