"""Fast path: a single node with precomputed gradients (a compiled loss) adds them to its leaves without running the engine.

If hooks, modes, streams, other nodes or a repeated leaf are involved, the engine runs the pass instead.
"""

from __future__ import annotations

from typing import Any

from xpgrad._aliasing.windows import MUTATION_WINDOWS
from xpgrad._modes import state
from xpgrad._tape.leaf import accumulate_raw
from xpgrad._tape.streams import CLASSES
from xpgrad._tape.task import CURRENT


def run_finished_node(node: Any, g: Any, retain: bool) -> bool:
    """Add a node's precomputed gradients to its leaves and return True; return False if the engine has to run the pass.

    It uses no field of a node, so that it cannot disturb another pass, and calls nothing that asks which pass is running.
    """
    if not node._is_finished or node.hooks is not None or state.current() is not None or CURRENT.get() is not None:
        return False
    edges = node.edges()
    if CLASSES or MUTATION_WINDOWS.get() or len(set(edges)) < len(edges):
        return False
    for e in edges:
        if not e.is_leaf or e.hooks is not None or e.off:
            return False
    for e, v in zip(edges, node.finish(g, retain)):
        if v is not None:
            accumulate_raw(e, v, True)
    return True
