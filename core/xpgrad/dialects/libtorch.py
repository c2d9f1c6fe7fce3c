"""`xpgrad.dialects.libtorch`: autograd as in PyTorch's C++ library, for programs that are ported from there.

It is stricter than the Python interface about lists, and less strict about the shape of a gradient. None is the undefined tensor, as in
PyTorch's bindings and as in ``.grad`` before the first backward pass.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import xpgrad
from xpgrad import Tensor, autograd
from xpgrad._basics.faces import public_names

__all__ = ["backward", "grad", "register_hook", "remove_hook"]


def __dir__() -> list[str]:
    return public_names(__name__)


_REAL = {xpgrad.float16: "Half", xpgrad.bfloat16: "BFloat16", xpgrad.float32: "Float", xpgrad.float64: "Double"}
_NAMES = {xpgrad.complex64: "ComplexFloat", xpgrad.complex128: "ComplexDouble"} | _REAL


def backward(
    tensors: Sequence[Tensor], grad_tensors: Sequence[Tensor | None] = (), retain_graph: bool | None = None, create_graph: bool = False,
    inputs: Sequence[Tensor] = (),
) -> None:  # fmt: skip
    """Differentiate `tensors` with respect to the leaves, and add the gradients to their ``.grad``, as `torch::autograd::backward` does.

    Parameters
    ----------
    tensors : sequence of Tensor
        What is differentiated; contributions are summed.
    grad_tensors : sequence of Tensor or None
        One cotangent per root, or an empty sequence. A root is expanded to the shape of its cotangent, so that cotangents of the same
        element are summed.
    retain_graph : bool, optional
        Whether the graph can be differentiated again. Default: `create_graph`.
    create_graph : bool
        Record the computation of the gradients, so that they can be differentiated.
    inputs : sequence of Tensor
        The Tensors whose ``.grad`` is accumulated; all leaves if empty.

    Raises
    ------
    RuntimeError
        The lengths differ, a root has no history, a cotangent is missing or has a wrong shape, or an input does not require grad.
    TypeError
        An argument is not a sequence of Tensors.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.dialects import libtorch
    >>> x = xp.tensor(2.0, requires_grad=True)
    >>> y = xp.tensor(5.0, requires_grad=True)
    >>> libtorch.backward([x * y], inputs=[x])
    >>> x.grad, y.grad
    (tensor(5.), None)
    """
    seeds = _seeds(tensors, grad_tensors, create_graph)
    wanted = _as_list("inputs", inputs)
    autograd.backward(list(tensors), seeds, retain_graph, create_graph, inputs=wanted or None)


def grad(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], grad_outputs: Sequence[Tensor | None] = (), retain_graph: bool | None = None,
    create_graph: bool = False, allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Return the gradients of `outputs` with respect to `inputs` without changing any ``.grad``, as `torch::autograd::grad` does.

    Parameters
    ----------
    outputs, inputs : sequence of Tensor
    grad_outputs, retain_graph, create_graph
        As for `backward`.
    allow_unused : bool
        Return None, instead of raising, for inputs on which the outputs do not depend.

    Returns
    -------
    tuple of Tensor or None
        One per input.

    Raises
    ------
    RuntimeError, TypeError
        As for `backward`; or `inputs` is empty, or an input is unused and `allow_unused` is False.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.dialects import libtorch
    >>> x = xp.tensor(2.0, requires_grad=True)
    >>> libtorch.grad([x * x], [x])
    (tensor(4.),)
    """
    seeds = _seeds(outputs, grad_outputs, create_graph)
    wanted = _as_list("inputs", inputs)
    if not wanted:
        msg = "grad requires non-empty inputs."
        raise RuntimeError(msg)
    for i, x in enumerate(wanted):
        if not x.requires_grad:
            msg = f"element {i} of the input tensors does not require grad; call `requires_grad_()` on it before the forward"
            raise RuntimeError(msg)
    found: tuple[Tensor | None, ...] = autograd.grad(list(outputs), wanted, seeds, retain_graph, create_graph, allow_unused=True)
    for i, g in enumerate(found):
        if g is None and not allow_unused:
            msg = (  # NB: the missing space is PyTorch's.
                f"element {i}of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this "
                "is the desired behavior."
            )
            raise RuntimeError(msg)
    return found


class _Hook:
    """A hook that can be removed without changing the indices of others. It does not keep its Tensor alive."""

    __slots__ = ("__weakref__", "function")

    def __init__(self, function: Callable[[Tensor], Tensor | None]) -> None:
        self.function: Callable[[Tensor], Tensor | None] | None = function

    def __call__(self, g: Tensor) -> Tensor | None:
        return None if self.function is None else self.function(g)


# The hooks of each Tensor that has some, by its id for as long as it lives; a Tensor cannot be a key, since it compares elementwise.
_hooks: dict[int, list[weakref.ref[_Hook]]] = {}


def register_hook(tensor: Tensor, hook: Callable[[Tensor], Tensor | None]) -> int:
    """Register a hook that is called with each computed gradient of a Tensor; a result other than None replaces the gradient.

    Parameters
    ----------
    tensor : Tensor
    hook : callable

    Returns
    -------
    int
        The hook's index among those that were registered here on this Tensor, for `remove_hook`.

    Raises
    ------
    RuntimeError
        The Tensor does not require grad.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.dialects import libtorch
    >>> x = xp.tensor(2.0, requires_grad=True)
    >>> libtorch.register_hook(x, lambda g: 10.0 * g)
    0
    >>> (x * x).backward()
    >>> x.grad
    tensor(40.)
    """
    if not tensor.requires_grad:
        msg = "cannot register a hook on a variable that doesn't require gradient; call `requires_grad_()` first"
        raise RuntimeError(msg)
    if not callable(hook):
        msg = f"a hook must be callable, but got {type(hook).__name__}"
        raise TypeError(msg)
    entry = _Hook(hook)
    tensor.register_hook(entry)
    if id(tensor) not in _hooks:
        _hooks[id(tensor)] = []
        weakref.finalize(tensor, _hooks.pop, id(tensor)).atexit = False
    known = _hooks[id(tensor)]
    known.append(weakref.ref(entry))
    return len(known) - 1


def remove_hook(tensor: Tensor, index: int) -> None:
    """Remove a hook; the others keep their indices.

    Parameters
    ----------
    tensor : Tensor
    index : int
        The result of `register_hook`.

    Raises
    ------
    RuntimeError
        There is no hook with that index.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.dialects import libtorch
    >>> x = xp.tensor(2.0, requires_grad=True)
    >>> index = libtorch.register_hook(x, lambda g: 10.0 * g)
    >>> libtorch.remove_hook(x, index)
    >>> (x * x).backward()
    >>> x.grad
    tensor(4.)
    """
    known = _hooks.get(id(tensor), [])
    if not 0 <= index < len(known):
        msg = f"Invalid index, no hook at position {index}: `register_hook` has registered {len(known)} on this Tensor"
        raise RuntimeError(msg)
    if (entry := known[index]()) is not None:
        entry.function = None


def _as_list(name: str, given: Any) -> list[Tensor]:
    """Return a list of Tensors; a single Tensor is refused, as in C++."""
    if isinstance(given, Tensor) or not isinstance(given, Sequence):
        msg = f"`{name}` is a list of Tensors in C++, but got a {type(given).__name__}; write [{name[:-1]}]"
        raise TypeError(msg)
    for x in given:
        if not isinstance(x, Tensor):
            msg = f"`{name}` contains a {type(x).__name__}, but must contain Tensors only; wrap it with `xpgrad.asarray`"
            raise TypeError(msg)
    return list(given)


def _seeds(tensors: Sequence[Tensor], gradients: Sequence[Tensor | None], create: bool) -> list[Tensor | None]:
    """Return one cotangent or None per root, in the root's shape; all errors are raised before anything has changed."""
    roots = _as_list("tensors", tensors)
    if isinstance(gradients, Tensor) or not isinstance(gradients, Sequence):
        msg = f"gradients are a list of Tensors or None in C++, but got a {type(gradients).__name__}; write [gradient]"
        raise TypeError(msg)
    given = list(gradients) or [None] * len(roots)
    if len(given) != len(roots):
        msg = f"got {len(roots)} tensors and {len(given)} gradients; give one gradient, or None, per tensor, or no gradients at all"
        raise RuntimeError(msg)
    for root, g in zip(roots, given):
        if g is None and root.requires_grad:
            _check_implicit(root)
    for i, root in enumerate(roots):
        if not root.requires_grad:  # CPP-04: whatever its gradient
            msg = f"element {i} of tensors does not require grad and does not have a grad_fn"
            raise RuntimeError(msg)
    return [g if g is None else _reduce_to_root(i, root, g, create) for i, (root, g) in enumerate(zip(roots, given))]


def _check_implicit(root: Tensor) -> None:
    if math.prod(root.shape) != 1:
        msg = f"grad can be implicitly created only for scalar outputs, but this one has shape {root.shape}; give a gradient"
        raise RuntimeError(msg)
    if root.dtype not in _REAL:
        msg = f"grad can be computed only for real scalar outputs but got {_NAMES.get(root.dtype, root.dtype)}; give a gradient"
        raise RuntimeError(msg)


def _reduce_to_root(i: int, root: Tensor, g: Any, create: bool) -> Tensor:
    """Sum a cotangent to the shape of its root, which must broadcast to that of the cotangent (CPP-05)."""
    if not isinstance(g, Tensor):
        msg = f"gradients can be either Tensors or None, but got {type(g).__name__}; wrap it with `xpgrad.asarray`"
        raise TypeError(msg)
    more = len(g.shape) - len(root.shape)
    if g.shape == root.shape:
        return g
    if more < 0 or any(side not in (1, long) for side, long in zip(root.shape, g.shape[more:])):
        msg = (
            f"invalid gradient at index {i} - got {list(g.shape)} but expected shape compatible with {list(root.shape)}: the root's "
            "shape, or one that it can be expanded to"
        )
        raise RuntimeError(msg)
    if not create:
        g = g.detach()
    stretched = tuple(more + k for k, (side, long) in enumerate(zip(root.shape, g.shape[more:])) if side != long)
    return xpgrad.reshape(xpgrad.sum(g, axis=(*range(more), *stretched)), root.shape)
