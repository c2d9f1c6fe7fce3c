"""`xpgrad.dialects.hips`: HIPS autograd's public interface, for programs that only change their imports.

`install` makes ``import autograd`` import it. Arguments and results are NumPy arrays and numbers; inside a function that is being
differentiated they are Tensors. `docs/hips.md` lists what is supported, and what differs.
"""

from __future__ import annotations

from xpgrad.dialects.hips import (
    builtins as builtins,
    core as core,
    differential_operators as differential_operators,
    extend as extend,
    misc as misc,
    numpy as numpy,
    test_util as test_util,
    tracer as tracer,
    util as util,
    wrap_util as wrap_util,
)
from xpgrad.dialects.hips._install import install
from xpgrad.dialects.hips.builtins import dict, isinstance, list, tuple, type  # noqa: A004 (HIPS autograd's names)
from xpgrad.dialects.hips.differential_operators import (
    checkpoint,
    deriv,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)  # fmt: skip
from xpgrad.dialects.hips.extend import primitive

__all__ = [
    "checkpoint", "deriv", "dict", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian", "hessian_tensor_product",
    "hessian_vector_product", "holomorphic_grad", "install", "isinstance", "jacobian", "list", "make_ggnvp", "make_hvp", "make_jvp",
    "make_vjp", "multigrad_dict", "primitive", "tensor_jacobian_product", "tuple", "type", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip
