"""Track which Tensors share memory and when it was last written, by version counters that are created when needed.

A piece of memory has a `Cell`; a Tensor, and the node that made it, have an `Alias`. A Tensor without an alias has version 0: it was
never viewed, detached or written to.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import ref

from xpgrad._basics.threads import renew_in_children

# One clock for nodes and for writes: a saved value is stale exactly when its memory was written after the node was made.
next_number: Callable[[], int] = itertools.count(1).__next__
_REMEMBERED_WRITES = 64
new: Any = object.__new__
#: Held while a list of views is shortened; while the node of several outputs gets its cell; without the GIL, while a Tensor gets its alias.
_LOCK = threading.RLock()
renew_in_children(globals(), "_LOCK")
_FREE_THREADED = not getattr(sys, "_is_gil_enabled", lambda: True)()


class Cell:
    """The version counter of one piece of memory.

    ``version`` counts the writes, ``last_write`` is the clock at the latest one, ``writes`` the clock at the latest few. A node refers
    to the cell of its output; a Tensor to its alias, which would keep a view's base alive: both have a `cell`.
    """

    __slots__ = ("last_write", "limit", "version", "views", "writes")

    def __init__(self) -> None:
        self.version = 0
        self.last_write = 0
        self.writes: list[int] = []
        self.views: list[Any] = []  # weak references to the Tensors that share this memory
        self.limit = 16

    is_copy = False

    @property
    def cell(self) -> Cell:
        """The cell itself. A node may refer to a cell or to an alias, and both have this property."""
        return self

    def bump(self, destructive: bool = True) -> None:
        """Count a write. If it is not destructive, nodes still have the old values that they saved."""
        if not destructive:
            self.version += 1
            return
        number = next_number()
        self.version += 1
        self.last_write = number
        self.writes.append(number)
        if len(self.writes) > 2 * _REMEMBERED_WRITES:
            del self.writes[:-_REMEMBERED_WRITES]

    def forget(self) -> None:
        """Remove deleted Tensors from the list of views; called when the list has grown long."""
        views, kept = self.views, 0
        with _LOCK:
            count = len(views)
            for k in range(count):
                reference = views[k]
                if reference() is not None:
                    views[kept] = reference
                    kept += 1
            del views[kept:count]  # NB: other threads may have appended to it
            self.limit = 2 * kept + 16

    def version_at(self, number: int) -> int:
        """Return the version at an earlier reading of the clock, which is exact for the latest writes."""
        return self.version - sum(1 for w in self.writes if w > number)


class CopyCell(Cell):
    """The cell of a copy returned instead of a view: a write to the copy would not reach the base."""

    __slots__ = ()

    is_copy = True


class DetachedCell:
    """The cell of a Tensor that was detached in place: values saved from it can no longer be used (ACC-30).

    ``memory`` is the former cell: the node that made the Tensor still needs to know of writes.
    """

    __slots__ = ("memory",)

    last_write = float("inf")

    def __init__(self, memory: Cell) -> None:
        self.memory = memory

    @property
    def cell(self) -> DetachedCell:
        return self


#: The reasons for views of Tensors with a history that were made while nothing was recorded, with their names in messages.
UNRECORDED: dict[str, str] = {"no_grad": "no_grad mode", "inference_mode": "inference mode"}


class Alias:
    """The memory location of a Tensor that is not a view: its cell, and the path from the memory's root array.

    ``forbidden`` is the reason why the Tensor must not be written to while recording, or None: "no_grad" or "inference_mode" (a view
    made there: `UNRECORDED`), "inference", "argument"
    (of a function that a transform differentiates), "saved" (read from a node), "leaf" (a leaf that a hook on saved values has unpacked),
    or a `ForbiddenView`. ``path`` leads from the memory's root array to this Tensor's: pairs of a row's name and its arguments; ``memory``
    is a list that holds that root array, shared by the Tensors (and not by nodes, which would keep it alive).
    """

    __slots__ = ("cell", "forbidden", "memory", "path")

    parent: Any = None
    row: Any = None
    args: tuple[Any, ...] = ()

    def __init__(self, cell: Any, path: tuple[tuple[str, tuple[Any, ...]], ...] = (), memory: list[Any] | None = None) -> None:
        self.cell = cell
        self.forbidden: str | ForbiddenView | None = None
        self.memory = memory
        self.path = path


class ForbiddenView:
    """The reason not to write to a view while recording: it is one of several outputs, or of a custom Function (MUT-17, FUN-23)."""

    __slots__ = ("custom", "output")

    def __init__(self, output: str, custom: bool = False) -> None:
        self.output, self.custom = output, custom

    @property
    def origin(self) -> str:
        """The origin of the view, as a sentence for error messages."""
        if self.custom:
            return (
                "This view was created inside a custom Function (or an input was returned as it is); a history of views and writes would "
                "replace its backward"
            )
        return "This view is the output of a function that returns multiple views"


class View:
    """The memory location of a view: its parent Tensor, and the operation that made it. It has the fields of an `Alias`.

    Every slice makes one, so the generated text sets the fields itself (`_operations.forward`).
    """

    __slots__ = ("args", "cell", "forbidden", "parent", "row")

    def __init__(self, parent: Any, row: Any, args: tuple[Any, ...]) -> None:
        self.parent = parent
        self.cell: Cell = parent._alias.cell
        self.forbidden: str | ForbiddenView | None = parent._alias.forbidden  # inherited from the parent
        self.row = row  # None: the whole of its parent
        self.args = args

    @property
    def path(self) -> tuple[tuple[str, tuple[Any, ...]], ...]:
        before: tuple[tuple[str, tuple[Any, ...]], ...] = self.parent._alias.path
        return before if self.row is None else (*before, (self.row.name, self.args))

    @property
    def memory(self) -> list[Any] | None:
        found: list[Any] | None = self.parent._alias.memory
        return found


class _JointCell:
    """The joint cell of a node with several outputs; it counts as written once the memory of any output is written."""

    __slots__ = ("cells",)

    def __init__(self) -> None:
        self.cells: list[Cell] = []

    @property
    def cell(self) -> _JointCell:
        return self

    @property
    def last_write(self) -> int:
        return max(c.last_write for c in self.cells)

    @property
    def version(self) -> int:
        return max(self.cells, key=lambda c: c.last_write).version

    def version_at(self, number: int) -> int:
        return max(self.cells, key=lambda c: c.last_write).version_at(number)


def note_copy(tensor: Any) -> None:
    """Mark a Tensor as a copy returned instead of a view, so that writes to it and to its views raise."""
    alias_of(tensor).cell.__class__ = CopyCell


def mark_node(node: Any, alias: Alias) -> None:
    """Set the cell of `node` to that of `alias`, which counts the writes to the node's output.

    For one of several outputs, the cell is also added to the joint cell of the owner, the node that made them all.
    """
    if node is None:
        return
    node._alias = alias.cell
    if node.is_slot:  # one of several outputs: the owner saves them together
        owner = node.owner
        if owner._alias is None:
            with _LOCK:
                owner._alias = owner._alias or _JointCell()
        owner._alias.cells.append(alias.cell)


def note_sharing(tensor: Any) -> None:
    """Add a Tensor to the views of its cell: a write must reach or notify them."""
    cell = tensor._alias.cell
    cell.views.append(ref(tensor))
    if len(cell.views) > cell.limit:
        cell.forget()


def leave_memory(view: Any) -> None:
    """Make a new view a copy, with memory of its own."""
    if view.backend.capabilities.mutable:
        view._array = view.backend.kernels.copy(view._array)
    views = view._alias.cell.views
    views[:] = [reference for reference in views if reference() is not view]
    view._alias = None
    if view._node is not None:
        view._node._alias = None


def alias_of(tensor: Any) -> Any:
    """Return the alias of a Tensor; create it if it has none."""
    alias = tensor._alias
    if alias is None:
        node = tensor._node
        known = None if node is None else node._alias  # set if a saved value was read: another Tensor in this memory, which got a cell
        cell = Cell() if known is None else known.memory if known.__class__ is DetachedCell else known
        array = tensor._array
        backend = tensor.backend
        alias = new(Alias)  # 80 ns less than a call of the class: every base of a slice gets one
        alias.cell = cell
        alias.forbidden = None
        alias.memory = [array if array.__class__ is backend.array_type else backend.own(tensor)]
        alias.path = ()
        cell.views.append(ref(tensor))
        if _FREE_THREADED or (node is not None and node.is_slot):
            return _publish(tensor, node if known is None else None, alias)
        # NB: without a call no other thread runs in between, and no interrupt arrives.
        if tensor._alias is not None:
            return tensor._alias  # another thread was faster
        if node is not None and known is None:
            node._alias = cell
        tensor._alias = alias
    return alias


def _publish(tensor: Any, node: Any, alias: Alias) -> Any:
    """Set the alias of a Tensor and the cell of its node, unless another thread has done so, and return its alias."""
    with _LOCK:
        found = tensor._alias
        if found is None:
            mark_node(node, alias)
            found = tensor._alias = alias  # last, when it is whole
    return found


def share_memory(out: Any, owner: Any) -> None:
    """Give `out` the version counter of `owner`, whose memory it shares without being a view: writes do not rewrite its history."""
    alias = alias_of(owner)
    out._alias = Alias(alias.cell, alias.path, alias.memory)
    note_sharing(out)


def share_inference(out: Any, owner: Any, step: tuple[tuple[str, tuple[Any, ...]], ...] = ()) -> None:
    """Let an inference tensor and an alias or a view of it see each other's writes; none of them has a version.

    ``step`` is the operation that made a view: the name of its row and its arguments.
    """
    alias = owner._alias
    if owner.backend.capabilities.mutable:
        out._alias = Alias(None)
    else:  # a write makes new arrays
        if alias.cell is None:
            alias.cell, alias.memory = Cell(), [owner._array]
            note_sharing(owner)
        out._alias = Alias(alias.cell, (*alias.path, *step), alias.memory)
        note_sharing(out)
    out._alias.forbidden = "inference"


def chain_of(x: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """Return the operations, as names and arguments, that made the view `x` from its base."""
    chain = []
    while x._alias is not None and x._alias.parent is not None:
        if x._alias.row is not None:  # a view that a custom Function made of its argument is all of it
            chain.append((x._alias.row.name, x._alias.args))
        x = x._alias.parent
    return tuple(reversed(chain))


def is_window(x: Any) -> bool:
    """Return whether `x` is a view by integer arrays, or a view of one: its array is a copy, in which elements are repeated."""
    return x._alias is not None and x._alias.parent is not None and any(name == "gather" for name, _ in chain_of(x))


def follow(x: Any, chain: Any, xp: Any) -> Any:
    """Apply the operations of `chain_of` to `x`, in the namespace `xp`."""
    for name, args in chain:
        x = getattr(xp, name)(x, *args)
    return x
