"""Run hooks in the order of HOK-15: tensor hooks, `retain_grad`, pre-hooks, (the node), post-accumulate hooks, post-hooks.

The engine calls these functions only for nodes that have hooks. They also check what a hook returns.
"""

from __future__ import annotations

from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._tape import hook_tables
from xpgrad._tape.node import backend_of


def _as_tensor(task: Any, node: Any, g: Any) -> Any:
    """Wrap a raw gradient as the Tensor that hooks get; it shares the memory."""
    if g is None or task.graph:
        return g
    return backend_of(node).wrap(g)


def _output_grads(task: Any, node: Any, g: Any) -> tuple[Any, ...]:
    """Return the gradients of a node's outputs as Tensors, one per output."""
    grads = (g or [None] * node.n_outputs) if node.slotted else [g]
    return tuple(_as_tensor(task, node, x) for x in grads)


def _as_raw(task: Any, value: Any) -> Any:
    return value if value is None or task.graph else value._array


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", None) or type(hook).__name__


def check_replacement(hook: Any, new: Any, old: Any) -> Any:
    """Return a hook's replacement; raise if it is not a Tensor with the shape and type of the gradient `old` (HOK-07).

    In a pass over a batch, all elements may share one replacement.
    """
    if not isinstance(new, TensorBase):
        msg = f"expected Variable, but hook returned '{type(new).__name__}'; a hook returns a Tensor or None"
        raise TypeError(msg)
    if old is None:
        raise _nothing_to_replace(hook)
    if new.shape != old.shape:
        msg = f"hook '{_name(hook)}' has changed the size of value: {old.shape} became {new.shape}"
        raise RuntimeError(msg)
    if type(new) is not type(old) and new.depth < old.depth and new.device == old.device:
        new = type(old).align([new, old])[0]
    if new.dtype is not old.dtype or type(new) is not type(old):
        msg = f"hook '{_name(hook)}' has changed the type of value (was {old.dtype} on {old.device} got {new.dtype} on {new.device})"
        raise RuntimeError(msg)
    return new


def run_tensor_hooks(task: Any, node: Any, g: Any) -> Any:
    """Run tensor hooks in order, fill `.grad` for `retain_grad` (HOK-17), call multi-grad hooks, and return the gradient."""
    hooks = node.hooks
    if not (hooks.tensor or hooks.retain or hooks.multi):
        return g
    grad = _as_tensor(task, node, g)
    for hook in list(hooks.tensor.values()):
        result = hook(grad)
        if result is not None:
            result = check_replacement(hook, result, grad)
            grad = result
            g = _as_raw(task, grad)
    if hooks.retain and grad is not None:
        with hook_tables.LOCK:
            old = hooks.retained
            # ACC-13: `.grad` is a new object each time; ACC-26: it has history only if the pass is recorded.
            hooks.retained = (grad.clone() if task.graph else grad.detach().clone()) if old is None else old + grad
    for watch in list(hooks.multi.values()):
        watch(grad)
    node.owned = False  # a hook may keep the gradient, so nothing may be added to it in place from here on
    return g


def run_absent_hooks(task: Any, node: Any) -> None:
    """Call the tensor hooks of a node's outputs that get no gradient in this pass with None (HOK-27)."""
    for reference in node.slots:
        slot = None if reference is None else reference()
        if slot is not None and slot.hooks is not None and slot.hooks.tensor and not task.will_run(slot):
            for hook in list(slot.hooks.tensor.values()):
                if hook(None) is not None:
                    raise _nothing_to_replace(hook)


def _nothing_to_replace(hook: Any) -> RuntimeError:
    return RuntimeError(f"hook '{_name(hook)}': can't replace a None gradient with a non-None value")


def run_pre_hooks(task: Any, node: Any, g: Any) -> Any:
    """Run a node's pre-hooks: each gets, and may return, a tuple with one gradient per output (HOK-18)."""
    grads = _output_grads(task, node, g)
    for hook in list(node.hooks.pre.values()):
        result = hook(grads)
        if result is None:
            continue
        grads = _check_tuple(hook, result, grads)
    raw = [_as_raw(task, x) for x in grads]
    node.owned = False
    return raw if node.slotted else raw[0]


def _check_tuple(hook: Any, result: Any, old: tuple[Any, ...]) -> tuple[Any, ...]:
    if not isinstance(result, tuple):
        msg = f"expected tuple, but hook returned '{type(result).__name__}'"
        raise TypeError(msg)
    if len(result) != len(old):
        msg = f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(result)}, but expected {len(old)})"
        raise RuntimeError(msg)
    taken = list(result)
    for i, (new, before) in enumerate(zip(result, old)):
        if new is None:
            continue
        if before is None:
            raise _nothing_to_replace(hook)
        taken[i] = check_replacement(hook, new, before)
    return tuple(taken)


def run_post_hooks(task: Any, node: Any, values: list[Any], g: Any) -> list[Any]:
    """Run a node's post-hooks: ``hook(grad_inputs, grad_outputs)``, with one entry per operand and per output (HOK-19)."""
    operands = node.operands()
    places = [i for i, e in enumerate(operands) if e is not None]
    grads: list[Any] = [None] * len(operands)
    for i, v in zip(places, values):
        grads[i] = _as_tensor(task, node, v)
    inputs = tuple(grads)
    outputs = _output_grads(task, node, g)
    for hook in list(node.hooks.post.values()):
        result = hook(inputs, outputs)
        if result is not None:
            inputs = _check_tuple(hook, result, inputs)
    return [_as_raw(task, inputs[i]) for i in places]


def run_post_accumulate(node: Any) -> None:
    """Run the hooks that follow the accumulation into `.grad`: each gets the leaf and must return None (HOK-21, HOK-23)."""
    leaf = node.original.variable
    for hook in list(node.hooks.post_accumulate.values()):
        if hook(leaf) is not None:
            msg = "Tensor post accumulate grad hooks should return None."
            raise RuntimeError(msg)
