"""Cut the graph of a function at nodes that existed before, to find the parameters on which the function depends.

Each place at which the graph is cut gets a *link*, a placeholder node. A backward pass through the cut graph ends at the links, which
yields the gradients of the argument and of the parameters. Once the links are opened, other passes continue through them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import next_number
from xpgrad._modes import switches
from xpgrad._tape.links import Link, cut_below, make_link
from xpgrad.autograd.function import Function


def cut_graph(function: Callable[[Any], Any], x: Any) -> tuple[Any, Link, list[Link]]:
    """Return the recorded value at `x`, the link that replaces `x`, and a link for each other node at which its graph ends."""
    start = x.clone()
    own = make_link(x._node, type(x))
    start._node = own
    own.seq = next_number()
    mark = next_number()
    with switches.enable_grad():
        value = function(start)
        node = value._node
        # A value that existed before, or that may be a view, needs a new node.
        if node is not None and (value._alias is not None or node.is_leaf or node.is_slot or node.seq < mark):
            value = value.clone()
    if value._node is None:
        return value, own, []
    return value, own, cut_below([value._node], {own}, mark, type(value))


class Once(Function):
    """The identity on a value computed without history from others: the result has a node whose derivative raises NotImplementedError.

    The others, `causes`, are what it would depend on: a backward pass for one of their parameters runs the node.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(found: Any, message: str, *causes: Any) -> Any:
        return found.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.message = inputs[1]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise NotImplementedError(ctx.message)
