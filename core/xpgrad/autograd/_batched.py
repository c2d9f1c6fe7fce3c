"""``autograd.grad(..., is_grads_batched=True)``: one vector-Jacobian product per element of a batch, in one pass (group N)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xpgrad._node import GradientEdge
from xpgrad._tensor import Tensor

__all__ = ["batched_grads"]


def batched_grads(outputs: Any, inputs: Any, grad_outputs: Any, retain: bool, create: bool, allow_unused: bool, materialize: bool) -> Any:
    """The stacked gradients for each element along axis 0 of the gradient outputs (BAT-01).

    Returns
    -------
    tuple of Tensor or None
        One per input, of shape ``(batch, *input.shape)``; a dict for a dict of inputs. Zeros for unused inputs have the batch axis
        too, unlike PyTorch's (BAT-05).

    Raises
    ------
    RuntimeError, ValueError, IndexError, TypeError
        For gradient outputs that do not fit (BAT-02..04), and as `xpgrad.autograd.grad`.
    """
    from xpgrad._transforms.passes import batched_pass
    from xpgrad.autograd import _input_list

    outs = _listed(outputs)
    seeds = _listed(grad_outputs)
    if len(outs) != len(seeds):
        msg = f"got {len(outs)} tensors and {len(seeds)} gradients; give one batch of gradients per tensor"
        raise RuntimeError(msg)
    count = _batch_size(outs, seeds)
    if not create:
        seeds = [s.detach() for s in seeds]
    wanted = _input_list(inputs, "grad")
    keys = list(inputs) if type(inputs) is dict else None
    options = {"retain_graph": retain, "create_graph": create, "allow_unused": allow_unused}
    found = batched_pass(outs, wanted, seeds, count, options)
    results = [_zeros(item, count, create) if g is None and materialize else g for item, g in zip(wanted, found)]
    return tuple(results) if keys is None else dict(zip(keys, results))


def _listed(given: Any) -> list[Any]:
    if given is None or isinstance(given, (Tensor, GradientEdge)):
        return [given]
    if not isinstance(given, Iterable):
        msg = f"'{type(given).__name__}' object is no Tensor; with is_grads_batched=True give Tensors, wrapped with `xpgrad.asarray`"
        raise TypeError(msg)
    return list(given)


def _batch_size(outs: list[Any], seeds: list[Any]) -> int:
    """The common length of axis 0, all else checked."""
    sizes = []
    for i, (out, seed) in enumerate(zip(outs, seeds)):
        if seed is None:
            msg = (
                f"grad_outputs[{i}] is None, a Tensor of dimensionality 0 to is_grads_batched=True, which needs a batch axis: give ones "
                "of shape (batch, *output.shape)"
            )
            raise ValueError(msg)
        if not isinstance(seed, Tensor):
            msg = f"gradients can be either Tensors or None, but got {type(seed).__name__}; wrap it with `xpgrad.asarray`"
            raise TypeError(msg)
        if seed.ndim == 0:
            msg = f"grad_outputs[{i}] is 0-d: is_grads_batched=True needs a batch axis in front of the output's shape"
            raise IndexError(msg)
        if isinstance(out, Tensor) and seed.shape[1:] != out.shape:
            msg = (
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of "
                f"the remaining dimensions must match the output, but grad_output[{i}] has a shape of {seed.shape} and output[{i}] has a "
                f"shape of {out.shape}"
            )
            raise RuntimeError(msg)
        sizes.append(seed.shape[0])
    if len(set(sizes)) > 1:
        msg = f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        raise ValueError(msg)
    if not sizes or sizes[0] == 0:
        msg = "is_grads_batched=True: index 0 is out of bounds for the batch axis with size 0; give at least one gradient"
        raise IndexError(msg)
    return sizes[0]


def _zeros(item: Any, count: int, create: bool) -> Any:
    """What stands for an unused input's gradients."""
    from xpgrad.rules.creation import zeros

    if isinstance(item, GradientEdge):
        msg = "materialize_grads cannot be used when the given input is a GradientEdge; give the Tensor instead"
        raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    zero = zeros((count, *item.shape), dtype=item.dtype, device=item.device)
    return zero.requires_grad_() if create else zero
