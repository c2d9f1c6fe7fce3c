"""The pass of one node that knows its gradients, as a compiled loss does: they go to its leaves, and no engine is started.

What could be noticed beside goes through the engine: hooks, modes, streams, other nodes, a leaf that is given twice.
"""

from __future__ import annotations

from typing import Any

from xpgrad._aliasing.windows import MUTATION_WINDOWS
from xpgrad._modes import state
from xpgrad._tape.leaf import accumulate_raw
from xpgrad._tape.streams import CLASSES
from xpgrad._tape.task import CURRENT


def hand_over(node: Any, g: Any, retain: bool) -> bool:
    """Run the pass of one node that has its gradients at hand and nothing but leaves below it; return whether it is such a one.

    It uses no field of a node, so that it meets no other pass, and calls nobody who would ask which pass runs.
    """
    if not node._is_finished or node.hooks is not None or state.current() is not None or CURRENT.get() is not None:
        return False
    edges = node.edges()
    if CLASSES or MUTATION_WINDOWS or len(set(edges)) < len(edges):
        return False
    for e in edges:
        if not e.is_leaf or e.hooks is not None or e.off:
            return False
    for e, v in zip(edges, node.finished(g, retain)):
        if v is not None:
            accumulate_raw(e, v, True)
    return True
