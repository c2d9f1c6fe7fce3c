"""The tutorial's "Forward mode"."""

import numpy as np

import xpgrad as xp
from xpgrad import Tensor
from xpgrad.autograd import forward_ad
from xpgrad.func import grad, hessian, jacfwd, jacrev, jvp


def energy(p: Tensor) -> Tensor:
    return xp.sum(xp.sin(p) * p**2)


point, direction = xp.asarray([0.0, 1.0]), xp.asarray([1.0, 1.0])
value, along = jvp(energy, (point,), (direction,))
slope: Tensor = grad(energy)(point)
assert np.isclose(along.item(), xp.sum(slope * direction).item())
curvature: Tensor = hessian(energy)(point) @ direction
jacobians: list[Tensor] = [jacfwd(grad(energy))(point), jacrev(grad(energy))(point)]
with forward_ad.dual_level():
    dual = forward_ad.make_dual(point, direction)
    tangent: Tensor | None = forward_ad.unpack_dual(energy(dual)).tangent
