"""One call of `backward` or `grad`, and the one that is running in this context."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextvars import ContextVar
from threading import get_ident
from typing import Any

from xpgrad._tape.node import Node
from xpgrad._tape.streams import CLASSES, ambient_streams

_has_seen_complex = False
_task_ids = itertools.count()
CURRENT: ContextVar[Pass | None] = ContextVar("xpgrad_pass", default=None)
current_pass: Callable[[], Pass | None] = CURRENT.get


def note_complex() -> None:
    """Record that a complex Tensor exists: from now on passes look for complex gradients and conjugate them."""
    global _has_seen_complex
    _has_seen_complex = True


def has_seen_complex() -> bool:
    """Return whether a complex Tensor has ever been created."""
    return _has_seen_complex


class OtherLeaves(Exception):
    """Raised by a pass with `alone` set if it finds leaves that are not targets."""


class Pass:
    """One call of `backward` or `grad`.

    Attributes
    ----------
    id : int
        Distinguishes passes (THR-08).
    graph : bool
        Gradients are Tensors: for ``create_graph``, or because they have tangents.
    create : bool
        ``create_graph``: the formulas are recorded.
    retain : bool
        Saved values are not freed.
    targets : list or None
        The nodes whose gradients are requested; None for all leaves.
    special : dict or None
        Whether the node runs, for each target and each root from which no target can be reached (its tensor hooks still run).
    capture : bool
        ``grad()``: gradients are returned, not accumulated.
    alone : bool
        The targets must be all the leaves that the roots depend on; otherwise `OtherLeaves` is raised before anything runs.
    private : bool
        The nodes were made for this pass, so that no other pass can use them, except one that this pass runs inside.
    profiling : Recording or None
        Records when each node runs.
    """

    __slots__ = ("alone", "ambient", "callbacks", "capture", "captured", "create", "depth", "graph", "id", "notes", "on_thread", "order",
                 "private", "profiling", "retain", "special", "targets", "thread")  # fmt: skip

    def __init__(self, *, graph: bool, retain: bool, targets: list[Any] | None, capture: bool, create: bool | None = None) -> None:
        self.id = next(_task_ids)
        self.graph = graph
        self.create = graph if create is None else create
        self.retain = retain
        self.targets = None if targets is None else list(dict.fromkeys(targets))
        self.special: dict[Any, bool] | None = None  # known once the graph has been walked
        self.capture = capture
        self.alone = self.private = False
        self.captured: dict[Any, Any] = {}
        self.callbacks: list[Callable[[], None]] = []
        self.order: list[Any] = []  # the nodes whose gradient this pass computes
        self.notes: dict[Any, Any] = {}  # the state of multi-grad hooks during this pass
        self.depth = 0  # the number of passes that this one runs inside
        self.on_thread = False
        self.profiling: Any = None
        self.thread = get_ident()
        self.ambient: dict[Any, Any] | None = ambient_streams() if CLASSES else None

    def will_run(self, node: Node) -> bool:
        """Return whether this pass computes the gradient of that node's output (for multi-grad hooks)."""
        found = self.notes.get("nodes")
        if found is None:
            found = self.notes["nodes"] = {n.original for n in self.order}
        return node in found
