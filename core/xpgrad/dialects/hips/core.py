"""What HIPS autograd has in `core`: products with the Jacobian of functions of one argument, rules, vector spaces, and passes by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any

from xpgrad._tape.node import Node as TapeNode
from xpgrad.dialects.hips._records import pull_back_from
from xpgrad.dialects.hips._spaces import SparseObject, VSpace, vspace
from xpgrad.dialects.hips.differential_operators import _make_jvp as make_jvp, _make_vjp as make_vjp
from xpgrad.dialects.hips.extend import (
    JVPNode,
    Primitive,
    VJPNode,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive,
)

__all__ = [
    "JVPNode", "SparseObject", "VJPNode", "VSpace", "add_outgrads", "backward_pass", "def_linear", "defjvp", "defjvp_argnum",
    "defjvp_argnums", "defvjp", "defvjp_argnum", "defvjp_argnums", "make_jvp", "make_vjp", "primitive", "primitive_jvps",
    "primitive_vjps", "sum_outgrads", "vspace",
]  # fmt: skip


def backward_pass(g: Any, end_node: Any) -> Any:
    """Return the gradient with respect to the argument of a run, from the cotangent `g` of its end.

    Parameters
    ----------
    g : array, number or Tensor
        If it is differentiated itself, so is the gradient.
    end_node : VJPNode or Node
        The second value of `tracer.trace`, or ``x._node`` of a value that depends on one argument that `tracer.new_box` made.

    Raises
    ------
    TypeError
        It is no such node.
    ValueError
        `g` does not fit the value.

    Examples
    --------
    >>> import xpgrad.dialects.hips.numpy as np
    >>> from xpgrad.dialects.hips.core import VJPNode, backward_pass
    >>> from xpgrad.dialects.hips.tracer import new_box
    >>> x = new_box(3.0, 0, VJPNode.new_root())
    >>> print(backward_pass(2.0, (x * x)._node))
    12.0
    """
    if isinstance(end_node, VJPNode) and end_node.record is not None:
        return end_node.record.vjp(g)
    if not isinstance(end_node, TapeNode):
        msg = (
            "backward_pass: this node is no end of a run; pass the second value of `tracer.trace(VJPNode.new_root(), fun, x)`, or "
            "`x._node` of a value that depends on what `tracer.new_box` made"
        )
        raise TypeError(msg)
    return pull_back_from(g, end_node)


def add_outgrads(prev_g_flagged: tuple[Any, bool] | None, g: Any) -> tuple[Any, bool]:
    """Add a gradient to the pair of a sum and a flag that `add_outgrads` returned, or to nothing; the flag says that the sum is its own."""
    is_sparse = isinstance(g, SparseObject)
    if prev_g_flagged is None:
        return (g.mut_add(g.vs.zeros()), True) if is_sparse else (g, False)
    total = prev_g_flagged[0]
    return (g.mut_add(vspace(total).add(total, vspace(total).zeros())), True) if is_sparse else (vspace(g).add(total, g), True)


def sum_outgrads(gs: Iterable[Any]) -> Any:
    """Return the sum of gradients, some of which may be sparse."""
    found: tuple[Any, bool] | None = None
    for g in gs:
        found = add_outgrads(found, g)
    return None if found is None else found[0]


class _Rules(MutableMapping[Any, Any]):
    """The rules of one kind, by primitive; those of NumPy's functions are xpgrad's, and not in it."""

    def __init__(self, attribute: str) -> None:
        self._attribute = attribute

    def __getitem__(self, fun: Any) -> Any:
        found = getattr(fun, self._attribute) if isinstance(fun, Primitive) else None
        if found is None:
            raise KeyError(fun)
        return found

    def __setitem__(self, fun: Any, rule: Any) -> None:
        if not isinstance(fun, Primitive):
            msg = f"{getattr(fun, '__name__', fun)!r} is not a primitive; decorate a function with `@primitive`"
            raise TypeError(msg)
        setattr(fun, self._attribute, rule)

    def __delitem__(self, fun: Any) -> None:
        self[fun]
        setattr(fun, self._attribute, None)

    def __iter__(self) -> Iterator[Any]:
        return (fun for fun in Primitive.every if getattr(fun, self._attribute) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


primitive_vjps: MutableMapping[Any, Any] = _Rules("_vjps")
primitive_jvps: MutableMapping[Any, Any] = _Rules("_jvps")
