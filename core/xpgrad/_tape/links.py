"""Cut the graph of a function at nodes that existed before, so that a pass ends there with their gradients.

A backward pass through the cut graph ends at the links. Once the links are opened, other passes continue through them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from xpgrad._tape.node import ListNode


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


def make_link(inner: Any, cls: Any) -> Link:
    """Make a link in place of a node of a Tensor of the class `cls`; None stands for no node."""
    link: Link = Link.made_now()
    if inner is not None:  # a number on the host may meet arrays elsewhere
        cls = inner.cls if inner.cls is not None else inner.backend.tensor_base if inner.backend is not None else cls
    link.cls, link.inner, link.e = cls, inner, ()
    link.stream = None
    link.seq = 0.0 if inner is None or inner.is_leaf else inner.seq + 0.125  # it runs right before the node in whose place it stands
    return link


def cut_below(roots: Sequence[Any], own: Container[Any], mark: float, cls: Any) -> list[Link]:
    """Replace the edges from the graph of `roots` to leaves and to nodes older than `mark` by links, and return these.

    Parameters
    ----------
    roots : sequence of Node
        None of them is a leaf or older than `mark`, unless it is in `own`.
    own : container of Node
        The arguments of the function, where the graph ends anyway.
    mark : float
        The creation number at which the function began.
    cls : type
        The class of Tensors, for nodes that do not know theirs.
    """
    links = _Mapping()
    stack = [root for root in dict.fromkeys(roots) if root not in own]
    seen, border = set(stack), []
    while stack:
        node = stack.pop()
        outside = False
        for e in node.edges():
            if e in own:
                continue
            if e.seq > mark and not e.is_leaf:
                if e not in seen:
                    seen.add(e)
                    stack.append(e)
                continue
            outside = True
            if e not in links:
                inner = e
                while isinstance(inner, Link) and inner.e:  # an open one, of a function that is evaluated in this one
                    (inner,) = inner.e
                if inner not in links:
                    links[inner] = make_link(inner, cls)
                links[e] = links[inner]
        if outside:
            border.append(node)
    for node in border:
        node.redirect(links)
    return list(dict.fromkeys(links.values()))
