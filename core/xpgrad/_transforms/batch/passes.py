"""Batches of gradients in one backward pass (`is_grads_batched`), and `func.grad` inside `vmap`.

If the seeds are elements of a batch, the pass runs on Tensors and each formula acts on the whole batch. If outputs and inputs are
elements of a batch, the batch itself is differentiated, because elements do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xpgrad._modes.batch_levels import BatchLevel, run_within
from xpgrad._tape.edges import GradientEdge
from xpgrad._tape.requests import grad, input_list, unused_error
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.array import escaped_error
from xpgrad._transforms.batch.batch import batch_class, class_of_depth, enter, leave, put_in, take_out
from xpgrad._transforms.batch.plain_pass import plain_gradients
from xpgrad.rules.creation import ones_like, zeros
from xpgrad.rules.manipulation import moveaxis


def _depth_of(*items: Any) -> int:
    """Return the largest `vmap` depth among `items`; edges count as 0."""
    deepest = 0
    for x in items:
        if isinstance(x, Tensor) and x.depth > deepest:
            deepest = x.depth
    return deepest


def gradients(outputs: list[Any], inputs: list[Any], seeds: list[Any], **options: Any) -> list[Any]:
    """Return gradients as `autograd.grad` does, also for outputs and inputs that are elements of a batch."""
    if depth := _depth_of(*outputs, *inputs):
        return _grads_of_elements(outputs, inputs, seeds, depth, options)
    batched = options.pop("is_grads_batched", False)
    return list(grad(outputs, inputs, seeds, batched=batched_grads if batched else None, **options))


def batched_pass(outputs: list[Any], inputs: list[Any], seeds: list[Any], size: int, options: dict[str, Any]) -> list[Any]:
    """Return the gradients of `outputs` for each element of the seeds along their first axis, stacked.

    Parameters
    ----------
    outputs, inputs : list of Tensor or GradientEdge
        None of them an element of a batch.
    seeds : list of Tensor
        Of shape ``(size, *output.shape)``.
    size : int
    options : dict
        Keyword arguments of `autograd.grad`.

    Returns
    -------
    list of Tensor or None
        One per input, of shape ``(size, *input.shape)``.
    """
    level = BatchLevel(size)
    if not options.get("create_graph") and not _depth_of(*outputs, *inputs, *seeds):
        quick = plain_gradients(outputs, inputs, seeds, level, bool(options.get("retain_graph")))
        if quick is not None:
            if not options.get("allow_unused"):
                for i, g in enumerate(quick):
                    if g is None:
                        raise unused_error(i)
            return quick

    def mapped() -> list[Any]:
        elements = [enter(s, level, batch_class(type(s._stand_in()))) for s in seeds]
        found = grad(outputs, inputs, elements, **options)
        return [None if g is None else leave(g, level, class_of_depth(type(g._stand_in()), max(g.depth, 1))) for g in found]

    result: list[Any] = run_within(level, mapped)
    return result


def _grads_of_elements(outs: list[Any], inputs: list[Any], given: list[Any], depth: int, options: dict[str, Any]) -> list[Any]:
    """Return the gradients of outputs with respect to inputs; those at `depth` are elements of one batch."""
    level = cls = None
    raws: list[Any] = []  # the raw arrays of the Tensors at `depth`; None for the others
    for x in (*outs, *inputs):
        raw: Any = x._array if isinstance(x, Tensor) and x.depth == depth else None
        raws.append(raw)
        if raw is None:
            continue
        cls = cls or type(x)
        if raw.level is not None:
            if level is not None and raw.level is not level:
                raise escaped_error()
            level = raw.level
    batched = options.get("is_grads_batched", False)
    below_outs, below_seeds = [], []
    for i, (out, raw, g) in enumerate(zip(outs, raws, given)):
        mapped = raw is not None and raw.level is not None
        if raw is not None and mapped and g is None:
            g = ones_like(raw.value)
        elif g is not None:
            if mapped and (g.shape[1:] if batched else g.shape) != out.shape:
                msg = f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {out.shape}"
                raise RuntimeError(msg)
            try:
                g = take_out(g, level if mapped else None, cls)
            except LookupError:
                msg = f"grad_outputs[{i}] is an element of a batch, but the output is the same for all elements; sum it outside of `vmap`"
                raise RuntimeError(msg) from None
            if mapped and batched:
                g = moveaxis(g, 0, 1)
        below_outs.append(out if raw is None else raw.value)
        below_seeds.append(g)
    # The inputs are elements of the same batch, so no gradient is summed over the batch.
    input_raws = raws[len(outs) :]
    targets = [x if raw is None else raw.value for x, raw in zip(inputs, input_raws)]
    results: list[Any] = []
    for raw, g in zip(input_raws, gradients(below_outs, targets, below_seeds, **options)):
        mapped = raw is not None and raw.level is not None
        if g is not None:
            g = put_in(moveaxis(g, 1, 0) if mapped and batched else g, level if mapped else None, cls)
        results.append(g)
    return results


def batched_grads(outputs: Any, inputs: Any, grad_outputs: Any, retain: bool, create: bool, allow_unused: bool, materialize: bool) -> Any:
    """Return the stacked gradients for each element along axis 0 of the gradient outputs (BAT-01).

    The arguments are those of `xpgrad.autograd.grad`, with short names.

    Returns
    -------
    tuple of Tensor or None
        One per input, of shape ``(batch, *input.shape)``; a dict for a dict of inputs. Zeros for unused inputs have the batch axis
        too, unlike PyTorch's (BAT-05).

    Raises
    ------
    RuntimeError, ValueError, IndexError, TypeError
        If the gradient outputs do not match (BAT-02..04), and as in `xpgrad.autograd.grad`.
    """
    outs = _as_list(outputs)
    seeds = _as_list(grad_outputs)
    if len(outs) != len(seeds):
        msg = f"got {len(outs)} tensors and {len(seeds)} gradients; give one batch of gradients per tensor"
        raise RuntimeError(msg)
    count = _batch_size(outs, seeds)
    if not create:
        seeds = [s.detach() for s in seeds]
    wanted = input_list(inputs, "grad")
    keys = list(inputs) if type(inputs) is dict else None
    options = {"retain_graph": retain, "create_graph": create, "allow_unused": allow_unused}
    found = batched_pass(outs, wanted, seeds, count, options)
    results = [_zeros(item, count, create) if g is None and materialize else g for item, g in zip(wanted, found)]
    return tuple(results) if keys is None else dict(zip(keys, results))


def _as_list(given: Any) -> list[Any]:
    if given is None or isinstance(given, (Tensor, GradientEdge)):
        return [given]
    if not isinstance(given, Iterable):
        msg = f"'{type(given).__name__}' object is not a Tensor; with is_grads_batched=True give Tensors, wrapped with `xpgrad.asarray`"
        raise TypeError(msg)
    return list(given)


def _batch_size(outs: list[Any], seeds: list[Any]) -> int:
    """Check the batches of gradients and return the length of axis 0, which they share."""
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
    """Return the zeros that replace an unused input's gradients."""
    if isinstance(item, GradientEdge):
        msg = "materialize_grads cannot be used when the given input is a GradientEdge; give the Tensor instead"
        raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    zero = zeros((count, *item.shape), dtype=item.dtype, device=item.device)
    return zero.requires_grad_() if create else zero
