"""`GradientEdge`: one output of one node, as a user refers to it."""

from __future__ import annotations

from typing import Any, NamedTuple

from xpgrad._array.checks import need_tensor
from xpgrad._tape.node import Node, slot_of


class GradientEdge(NamedTuple):
    """One output of one node, used instead of a Tensor as a root or an input of a backward pass.

    Attributes
    ----------
    node : Node
    output_nr : int
    ownership_token : object
        Keeps alive what `node` needs.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * x
    >>> edge = xp.autograd.graph.get_gradient_edge(y)
    >>> type(edge) is xp.autograd.graph.GradientEdge
    True
    >>> edge.node is y.grad_fn, edge.output_nr, edge.ownership_token is None
    (True, 0, False)
    >>> xp.autograd.grad(xp.sum(3.0 * y), edge)
    (tensor([3., 3.]),)
    """

    node: Node
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Any) -> GradientEdge:
    """Return the edge that stands for `tensor` in the current graph.

    Parameters
    ----------
    tensor : Tensor
        A leaf or a result that requires grad.

    Returns
    -------
    GradientEdge
        Can be a root or an input of `backward` and `grad`. It stays valid after the Tensor is deleted or
        overwritten.

    Raises
    ------
    RuntimeError
        If the Tensor does not require grad.
    TypeError
        If it is not a Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * x
    >>> edge = xp.autograd.graph.get_gradient_edge(y)
    >>> loss = xp.sum(3.0 * y)
    >>> del y
    >>> xp.autograd.grad(loss, edge)
    (tensor([3., 3.]),)
    """
    need_tensor("get_gradient_edge", tensor)
    node = tensor._node
    if node is None:
        msg = "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        raise RuntimeError(msg)
    tensor._note_meta()
    return GradientEdge(node.owner, node.output_nr, node)


def output_edge(edge: GradientEdge) -> Any:
    """Return the engine's node for a `GradientEdge`.

    Raises
    ------
    RuntimeError
        If the edge's first entry is not a node, or the node has no such output (EDG-10).
    """
    node = edge.node
    if not isinstance(node, Node):
        msg = f"GradientEdge's first object must be an autograd.graph.Node but got {type(node).__name__}"
        raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    if not 0 <= edge.output_nr < node.n_outputs:
        msg = f"GradientEdge names output {edge.output_nr} of {node.name()}, which has {node.n_outputs} output(s)"
        raise RuntimeError(msg)
    return slot_of(node, edge.output_nr)


def node_of(item: Any) -> Any:
    """Return the engine's node of a `GradientEdge` or a Tensor; None for a Tensor that does not require grad."""
    if isinstance(item, GradientEdge):
        return output_edge(item)
    node = item._node
    return node if node is None else node.original
