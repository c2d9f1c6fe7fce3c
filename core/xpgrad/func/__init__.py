"""`xpgrad.func`: transforms of functions, with the names of `torch.func`, JAX and HIPS autograd; they compose in any order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpgrad._basics.faces import public_names, refusal
from xpgrad.func._forward import jvp as jvp, linearize as linearize
from xpgrad.func._jacobians import hessian as hessian, jacfwd as jacfwd
from xpgrad.func._loops import cond as cond, fori_loop as fori_loop, scan as scan, while_loop as while_loop
from xpgrad.func._modules import functional_call as functional_call, stack_module_state as stack_module_state
from xpgrad.func._named import (
    elementwise_grad as elementwise_grad,
    hessian_vector_product as hessian_vector_product,
    ravel_pytree as ravel_pytree,
    value_and_grad as value_and_grad,
)
from xpgrad.func._reverse import grad as grad, grad_and_value as grad_and_value, jacrev as jacrev, vjp as vjp
from xpgrad.func._sparse.face import sparse_hessian as sparse_hessian, sparse_jacobian as sparse_jacobian
from xpgrad.func._vmap import vmap as vmap

__all__ = [
    "cond", "elementwise_grad", "fori_loop", "functional_call", "grad", "grad_and_value", "hessian", "hessian_vector_product", "jacfwd",
    "jacrev", "jvp", "linearize", "ravel_pytree", "scan", "sparse_hessian", "sparse_jacobian", "stack_module_state", "value_and_grad",
    "vjp", "vmap", "while_loop",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)
