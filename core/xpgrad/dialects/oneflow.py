"""`xpgrad.dialects.oneflow`: autograd as OneFlow documents it, for programs that are ported from there.

`backward` is the method of OneFlow's tensors, and `autograd` the module of that name. Both keep the graph if they record the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import xpgrad
from xpgrad import Tensor
from xpgrad._basics.faces import public_names

__all__ = ["autograd", "backward"]


def __dir__() -> list[str]:
    return public_names(__name__)


_DTYPES = (xpgrad.float16, xpgrad.float32, xpgrad.float64, xpgrad.bfloat16)


def backward(tensor: Tensor, gradient: Tensor | None = None, retain_graph: bool = False, create_graph: bool = False) -> None:
    """Differentiate a Tensor with respect to its leaves, adding to their `.grad` (``tensor.backward`` of OneFlow).

    Parameters
    ----------
    tensor : Tensor
        The root.
    gradient : Tensor, optional
        The vector of the vector-Jacobian product, of the root's shape; not needed for a root with one element. Its own history counts
        only where `create_graph` is true.
    retain_graph : bool
        Keep the saved values for another pass; with `create_graph` they are kept in any case (ONE-02).
    create_graph : bool
        Record the backward, so that the gradients can be differentiated.

    Raises
    ------
    RuntimeError
        For a root that does not require grad, has a dtype that OneFlow does not differentiate, or lacks a gradient that fits.
    TypeError
        For what is not a Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.dialects import oneflow
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> oneflow.backward(x * x, xp.tensor([1.0, 10.0]))
    >>> x.grad
    tensor([ 2., 40.])
    """
    autograd.backward(tensor, gradient, retain_graph, create_graph)


class autograd:  # noqa: N801 (OneFlow's name)
    """The functions of ``oneflow.autograd``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.dialects import oneflow
    >>> x = xp.tensor(2.0, requires_grad=True)
    >>> oneflow.autograd.grad(x * x, x)
    (tensor(4.),)
    >>> oneflow.autograd.backward([x * x], None)
    >>> x.grad
    tensor(4.)
    """

    @staticmethod
    def backward(
        tensors: Tensor | Sequence[Tensor], grad_tensors: Tensor | Sequence[Tensor | None] | None, retain_graph: bool = False,
        create_graph: bool = False,
    ) -> None:  # fmt: skip
        """Differentiate `tensors` with respect to the leaves, adding to their `.grad`.

        Parameters
        ----------
        tensors : Tensor or sequence of Tensor
            The roots; their contributions are summed.
        grad_tensors : Tensor, sequence of Tensor or None, or None
            One for each root. It must be passed, though it may be None (ONE-03).
        retain_graph, create_graph : bool
            As for `xpgrad.dialects.oneflow.backward`.

        Raises
        ------
        RuntimeError, TypeError
            As `xpgrad.dialects.oneflow.backward`; also for lengths that differ.

        See Also
        --------
        xpgrad.dialects.oneflow.autograd
        """
        roots, seeds = _check_gradients(tensors, grad_tensors)
        xpgrad.autograd.backward(roots, seeds, create_graph or retain_graph, create_graph)

    @staticmethod
    def grad(
        outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor],
        grad_outputs: Tensor | Sequence[Tensor | None] | None = None, retain_graph: bool = False, create_graph: bool = False,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Return the gradients of `outputs` with respect to `inputs`; ``.grad`` does not change unless `inputs` is empty.

        Parameters
        ----------
        outputs : Tensor or sequence of Tensor
        inputs : Tensor or sequence of Tensor
            Empty: the gradients are added to the leaves' `.grad`, as by `backward` (ONE-04).
        grad_outputs, retain_graph, create_graph
            As for `backward`.

        Returns
        -------
        tuple of Tensor
            One per input.

        Raises
        ------
        RuntimeError, TypeError
            As `backward`; also for an input that does not require grad (ONE-05) or was not used.

        See Also
        --------
        xpgrad.dialects.oneflow.autograd
        """
        wanted = _as_list("inputs", inputs)
        if not wanted:
            autograd.backward(outputs, grad_outputs, retain_graph, create_graph)
            return ()
        _check_required("input", wanted)
        _check_dtypes("input", wanted)
        roots, seeds = _check_gradients(outputs, grad_outputs)
        found: tuple[Tensor, ...] = xpgrad.autograd.grad(roots, wanted, seeds, create_graph or retain_graph, create_graph)
        return found


def _as_list(name: str, given: Any) -> list[Tensor]:
    """Return a Tensor or a sequence of Tensors as a list; raise TypeError for anything else."""
    found = [given] if isinstance(given, Tensor) else given
    if not isinstance(found, Sequence) or not all(isinstance(x, Tensor) for x in found):
        msg = f"`{name}` must be a Tensor or a sequence of Tensors, but got {type(given).__name__}; wrap arrays with `xpgrad.asarray`"
        raise TypeError(msg)
    return list(found)


def _check_required(name: str, tensors: list[Tensor]) -> None:
    for i, x in enumerate(tensors):
        if not x.requires_grad:
            msg = f"All {name} tensors `.requires_grad` should be true, but number {i} does not require grad; call `requires_grad_()` first"
            raise RuntimeError(msg)


def _check_dtypes(name: str, tensors: Sequence[Tensor]) -> None:
    for x in tensors:
        if x.dtype not in _DTYPES:
            msg = f"an {name} has dtype {x.dtype}, but OneFlow differentiates half, float, double and bfloat16 only; use `xpgrad.autograd`"
            raise RuntimeError(msg)


def _leaves(roots: list[Tensor]) -> Iterator[Tensor]:
    """Yield the leaves of the roots' graphs."""
    stack: list[Any] = [x.grad_fn for x in roots]
    seen = set()
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        stack.extend(below for below, _ in node.next_functions)


def _check_gradients(outputs: Any, gradients: Any) -> tuple[list[Tensor], list[Tensor | None]]:
    """Return the roots and their gradients as lists after all checks, so that an error changes nothing."""
    roots = _as_list("outputs", outputs)
    _check_required("output", roots)
    _check_dtypes("output", [*roots, *_leaves(roots)])
    if gradients is None:
        given: list[Any] = [None] * len(roots)
    elif isinstance(gradients, Tensor):
        given = [gradients]
    elif isinstance(gradients, Sequence):
        given = list(gradients)
    else:
        msg = f"gradients must be Tensors or None, but got {type(gradients).__name__}; wrap arrays with `xpgrad.asarray`"
        raise TypeError(msg)
    if len(given) != len(roots):
        msg = f"got {len(roots)} tensors and {len(given)} gradients; give one gradient, or None, per tensor"
        raise RuntimeError(msg)
    for i, (root, g) in enumerate(zip(roots, given)):
        if isinstance(g, Tensor) and g.shape != root.shape:
            msg = f"out_grad's shape must be same as output's: number {i} has {g.shape}, its output {root.shape}"
            raise RuntimeError(msg)
    return roots, given
