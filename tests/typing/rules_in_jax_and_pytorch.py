"""The tutorial's "Rules in JAX and PyTorch"."""

from collections.abc import Callable
from typing import Any

import xpgrad as xp
from xpgrad import Tensor
from xpgrad.autograd.interop import to_jax_custom_vjp, to_torch_function


@xp.autograd.custom_rule
def double(x: Tensor) -> Tensor:
    return 2.0 * x


@double.vjp
def _(g: Tensor) -> Tensor:
    return 2.0 * g


exporters: list[Callable[..., Callable[..., Any]]] = [to_jax_custom_vjp, to_torch_function]
