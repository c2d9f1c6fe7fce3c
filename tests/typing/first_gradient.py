"""The tutorial's "The first gradient"."""

import numpy as np

import xpgrad as xp
from xpgrad import Tensor


def slope_of(inputs: Tensor, targets: Tensor, steps: int = 100) -> Tensor:
    slope = xp.tensor(0.0, requires_grad=True)
    for _ in range(steps):
        loss = xp.mean((slope * inputs - targets) ** 2)
        loss.backward()
        with xp.no_grad():
            assert slope.grad is not None
            slope -= slope.grad
        slope.grad = None
    return slope


data = xp.asarray(np.linspace(0.0, 1.0, 5))
assert abs(slope_of(data, 3.0 * data).item() - 3.0) < 1e-3
x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True)
(g,) = xp.autograd.grad(xp.sum(xp.sin(x)), x)
assert np.allclose(g.numpy(), np.cos(x.detach().numpy()))
gradients: tuple[Tensor, ...] = xp.autograd.grad(xp.sum(x), [x])
unused: Tensor | None = xp.autograd.grad(xp.sum(x), [x, data.clone().requires_grad_()], allow_unused=True)[1]
by_name: dict[str, Tensor] = xp.autograd.grad(xp.sum(x * x), {"x": x})
zeros: tuple[Tensor, ...] = xp.autograd.grad(xp.sum(x), [x], materialize_grads=True)
(x * xp.asarray([1.0, 10.0, 100.0])).backward(xp.ones(3))
shape: tuple[int, ...] = x.shape
dtype: xp.DType = x.dtype
device: xp.Device = x.device
