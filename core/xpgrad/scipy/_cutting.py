"""Cut the graph of a function at nodes that existed before, to find the parameters on which the function depends.

A backward pass through the cut graph ends at the links, with the gradients of the argument and of the parameters. Once the links are
opened, other passes continue through them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import next_number
from xpgrad._modes import switches
from xpgrad._tape.node import ListNode
from xpgrad.autograd.function import Function


class Link(ListNode):
    """A placeholder at a cut in the graph: while closed it ends a backward pass; once opened it forwards to the original node."""

    __slots__ = ("cls", "inner")

    title = "LinkBackward0"
    saves = False
    cls: Any
    inner: Any

    @property
    def _is_end(self) -> bool:  # type: ignore[override]
        return not self.e

    def grads(self, g: Any) -> list[Any]:
        return [g] if self.e else []

    def graph_grads(self, g: Any) -> list[Any]:
        return [g] if self.e else []

    def open(self) -> None:
        """Connect the link with the node that it replaces."""
        self.e = (self.inner,)


class _Mapping(dict[Any, Any]):
    """Maps nodes to their links; a node without a link maps to itself."""

    def __missing__(self, node: Any) -> Any:
        return node


def cut(function: Callable[[Any], Any], x: Any) -> tuple[Any, Link, list[Link]]:
    """Return the recorded value at `x`, the link that replaces `x`, and a link for each other node at which its graph ends."""
    start = x.clone()
    own = _link(x._node, type(x))
    start._node = own
    own.seq = next_number()
    mark = next_number()
    with switches.enable_grad():
        value = function(start)
        node = value._node
        # What was there before, and what may be a view, needs a node that was made here.
        if node is not None and (value._alias is not None or node.is_leaf or node.is_slot or node.seq < mark):
            value = value.clone()
    if value._node is None:
        return value, own, []
    links = _Mapping()
    seen, stack, border = {value._node}, [value._node], []
    while stack:
        node = stack.pop()
        outside = False
        for e in node.edges():
            if e is own:
                continue
            if e.seq > mark and not e.is_leaf:
                if e not in seen:
                    seen.add(e)
                    stack.append(e)
                continue
            outside = True
            if e not in links:
                inner = e
                while isinstance(inner, Link):  # an open one, of a function that is evaluated in this one
                    (inner,) = inner.e
                if inner not in links:
                    links[inner] = _link(inner, type(value))
                links[e] = links[inner]
        if outside:
            border.append(node)
    for node in border:
        node.redirect(links)
    return value, own, list(dict.fromkeys(links.values()))


def _link(inner: Any, cls: Any) -> Link:
    """Make a link in place of a node; None stands for no node."""
    link: Link = Link.made_now()
    if inner is not None:  # a number on the host may meet arrays elsewhere
        cls = inner.cls if inner.cls is not None else inner.backend.tensor_base if inner.backend is not None else cls
    link.cls, link.inner, link.e = cls, inner, ()
    link.stream = None
    link.seq = 0.0 if inner is None or inner.is_leaf else inner.seq + 0.125  # it runs right before the node in whose place it stands
    return link


class Once(Function):
    """A value that was computed without history although it depends on recorded values: differentiating it raises."""

    generate_vmap_rule = True

    @staticmethod
    def forward(found: Any, value: Any, message: str) -> Any:
        return found.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.message = inputs[2]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise NotImplementedError(ctx.message)
