"""`xpgrad.func`: transforms of functions, with the names of `torch.func`; they compose in any order."""

from __future__ import annotations

from xpgrad.func._forward import jvp as jvp, linearize as linearize
from xpgrad.func._jacobians import hessian as hessian, jacfwd as jacfwd
from xpgrad.func._reverse import grad as grad, grad_and_value as grad_and_value, jacrev as jacrev, vjp as vjp
from xpgrad.func._vmap import vmap as vmap

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp", "vmap"]
