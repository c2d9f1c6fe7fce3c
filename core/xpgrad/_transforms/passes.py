"""Backward passes and batches: many gradients in one pass (`is_grads_batched`), and those that `func.grad` asks for inside of `vmap`.

Seeds that are elements of a batch make the pass run on Tensors, where each formula acts on the whole batch. Outputs and inputs that are
elements of a batch are differentiated as what they are elements of: elements do not depend on each other.
"""

from __future__ import annotations

from typing import Any

from xpgrad._tensor import Tensor
from xpgrad._transforms.batch import BatchLevel, batch_class, class_of_depth, enter, escaped, leave, put_in, running, take_out

__all__ = ["batched_pass", "gradients"]


def _depth_of(*items: Any) -> int:
    """Of how many batches the deepest of some Tensors (and edges, which are of none) is an element."""
    return max((x.depth for x in items if isinstance(x, Tensor)), default=0)


def gradients(outputs: list[Any], inputs: list[Any], seeds: list[Any], **options: Any) -> list[Any]:
    """As `autograd.grad`, also for outputs and inputs that are elements of a batch."""
    from xpgrad.autograd import grad

    if _depth_of(*outputs, *inputs):
        return _grads_of_elements(outputs, inputs, seeds, options)
    return list(grad(outputs, inputs, seeds, **options))


def batched_pass(outputs: list[Any], inputs: list[Any], seeds: list[Any], size: int, options: dict[str, Any]) -> list[Any]:
    """One gradient of `outputs` per element of the seeds along their first axis, stacked.

    Parameters
    ----------
    outputs, inputs : list of Tensor or GradientEdge
        No elements of a batch.
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
    from xpgrad.autograd import _unused, grad

    level = BatchLevel(size)
    if not options.get("create_graph") and not _depth_of(*outputs, *inputs, *seeds):
        from xpgrad._transforms.raw_pass import raw_gradients

        quick = raw_gradients(outputs, inputs, seeds, level, bool(options.get("retain_graph")))
        if quick is not None:
            if not options.get("allow_unused"):
                for i, g in enumerate(quick):
                    if g is None:
                        raise _unused(i)
            return quick
    with running(level):
        elements = [enter(s, level, batch_class(type(s._stand_in()))) for s in seeds]
        found = grad(outputs, inputs, elements, **options)
        return [None if g is None else leave(g, level, class_of_depth(type(g._stand_in()), max(g.depth, 1))) for g in found]


def _grads_of_elements(outs: list[Any], inputs: list[Any], given: list[Any], options: dict[str, Any]) -> list[Any]:
    """The gradients of outputs with respect to inputs of which some are elements of a batch: per element."""
    from xpgrad.rules.creation import ones_like
    from xpgrad.rules.manipulation import moveaxis

    depth = _depth_of(*outs, *inputs)
    level: Any = None
    for x in (*outs, *inputs):
        if isinstance(x, Tensor) and x.depth == depth and x._array.level is not None:
            if level is not None and x._array.level is not level:
                raise escaped()
            level = x._array.level
    batched = options.get("is_grads_batched", False)
    cls = next(type(x) for x in (*outs, *inputs) if _depth_of(x) == depth)
    below_outs, below_seeds = [], []
    for i, (out, g) in enumerate(zip(outs, given)):
        mapped = _depth_of(out) == depth and out._array.level is not None
        if mapped:
            if g is None:
                g = ones_like(out)
            shape = g.shape[1:] if batched else g.shape
            if shape != out.shape:
                msg = f"Mismatch in shape: grad_output[{i}] has a shape of {g.shape} and output[{i}] has a shape of {out.shape}"
                raise RuntimeError(msg)
        if g is not None:
            try:
                g = take_out(g, level if mapped else None, cls)
            except LookupError:
                msg = f"grad_outputs[{i}] is an element of a batch, but the output is the same for all elements; sum it outside of `vmap`"
                raise RuntimeError(msg) from None
            if mapped and batched:
                g = moveaxis(g, 0, 1)
        below_outs.append(out._array.value if _depth_of(out) == depth else out)
        below_seeds.append(g)
    # The inputs are `fresh`: elements of the batch of their own, so that nothing is summed over the batch.
    targets = [x._array.value if _depth_of(x) == depth else x for x in inputs]
    results: list[Any] = []
    for x, g in zip(inputs, gradients(below_outs, targets, below_seeds, **options)):
        mapped = _depth_of(x) == depth and x._array.level is not None
        if g is not None:
            g = put_in(moveaxis(g, 1, 0) if mapped and batched else g, level if mapped else None, cls)
        results.append(g)
    return results
