"""A minimal backward pass: no hooks, and no use of node fields that another pass may be using.

The caller provides the step at each node: formulas on batches of plain arrays, or recorded formulas on Tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from xpgrad._tape.node import SlotNode

_creation = attrgetter("seq")


def nodes_between(roots: list[Any], targets: list[Any], *, start: float = 0, leaves: set[Any] | None = None) -> tuple[list[Any], set[Any]]:
    """Return the nodes through which gradients flow from roots to targets.

    Parameters
    ----------
    roots, targets : list of Node
    start : float
        A creation number; older nodes are ignored.
    leaves : set of Node, optional
        Receives all leaves that the roots depend on.

    Returns
    -------
    order : list of Node
        The nodes in between, latest first.
    needed : set of Node
        These nodes and the targets.
    """
    seen: set[Any] = set()
    stack = list(roots)
    found = []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            if node.is_leaf:
                if leaves is not None:
                    leaves.add(node)
            elif node.seq > start:
                found.append(node)
                stack.extend(node.edges())
    found.sort(key=_creation)
    needed = set(targets)
    order = []
    for node in found:
        if not needed.isdisjoint(node.edges()):
            needed.add(node)
            order.append(node)
    order.reverse()
    return order, needed


def run_pass(
    order: list[Any], roots: list[Any], seeds: list[Any], targets: list[Any], step: Callable[[Any, Any, Callable[[Any, Any], None]], None]
) -> list[Any]:
    """Return the gradients that arrive at the targets; None for a target that none reaches.

    Parameters
    ----------
    order : list of Node
        As `nodes_between` returns it.
    roots, seeds : list
        Nodes and their initial gradients.
    targets : list of Node
    step : callable
        ``step(node, g, add)`` calls ``add(edge, v)`` for each edge of a node along which a needed gradient `v` flows.
    """
    gathered: dict[Any, Any] = {}

    def add(node: Any, v: Any) -> None:
        known = gathered.get(node)
        gathered[node] = v if known is None else known + v

    for root, seed in zip(roots, seeds):
        add(root, seed)
    wanted = set(targets)
    for node in order:
        g = gathered.get(node) if node in wanted else gathered.pop(node, None)
        if g is None:
            continue
        if node.__class__ is SlotNode:
            owner = node._owner
            collected = gathered.get(owner)
            if collected is None:
                collected = gathered[owner] = [None] * owner.n_outputs
            collected[node.k] = g
        else:
            step(node, g, add)
    return [gathered.get(node) for node in targets]
