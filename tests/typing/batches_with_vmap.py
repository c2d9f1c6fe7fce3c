"""The tutorial's "Batches with vmap"."""

import xpgrad as xp
from xpgrad import Tensor
from xpgrad.func import grad, vmap


def loss(weights: Tensor, inputs: Tensor, target: Tensor) -> Tensor:
    return (xp.sum(weights * inputs) - target) ** 2


points = xp.asarray([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
each: Tensor = vmap(grad(loss), in_dims=(None, 0, 0))(xp.asarray([0.5, -0.5]), points, xp.asarray([0.0, 1.0, 2.0]))
assert each.shape == (3, 2)
