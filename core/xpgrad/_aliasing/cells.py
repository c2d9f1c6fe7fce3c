"""Tells which Tensors share memory, and when it was last written: version counters, created only when they are needed.

A `Cell` belongs to a piece of memory, an `Alias` to a Tensor (and to the node that made it). A Tensor without an alias was never
viewed, detached or written to: version 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any
from weakref import ref

# One clock for nodes and for writes: a saved value is stale exactly when its memory was written after the node was made.
next_number: Callable[[], int] = itertools.count(1).__next__
_REMEMBERED_WRITES = 64
new: Any = object.__new__


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
        """Itself."""
        return self

    def bump(self, destructive: bool = True) -> None:
        """Note one write, now; one that was not destructive left the old values to the nodes that saved them."""
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
        """Drop the Tensors that are gone from the list; called when it is long, so that it stays short."""
        self.views[:] = [r for r in self.views if r() is not None]
        self.limit = 2 * len(self.views) + 16

    def version_at(self, number: int) -> int:
        """The version at a given reading of the clock (exact for the latest writes)."""
        return self.version - sum(1 for w in self.writes if w > number)


class CopyCell(Cell):
    """The cell of a part that had to be copied where other libraries give a view: what is written to it would not reach the whole."""

    __slots__ = ()

    is_copy = True


class DetachedCell:
    """Replaces the cell of a Tensor that has been detached in place: what was saved of it can no longer be used (ACC-30).

    ``memory`` is the cell itself: the node that made the Tensor still needs to know of writes.
    """

    __slots__ = ("memory",)

    last_write = float("inf")

    def __init__(self, memory: Cell) -> None:
        self.memory = memory

    @property
    def cell(self) -> DetachedCell:
        return self


class Alias:
    """A Tensor's place in its memory, if it is not a view: the cell, and the way from the memory's root array (through detached aliases).

    ``forbidden`` names the reason why a view must not be written to while recording, if there is one: "no_grad", "inference", "argument"
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
    """The reason why a view may not be written to while recording: one of several outputs, or a custom Function's (MUT-17, FUN-23)."""

    __slots__ = ("custom", "output")

    def __init__(self, output: str, custom: bool = False) -> None:
        self.output, self.custom = output, custom

    @property
    def origin(self) -> str:
        """The view's origin, as a sentence."""
        if self.custom:
            return (
                "This view was created inside a custom Function (or an input was returned as it is); a history of views and writes would "
                "replace its backward"
            )
        return "This view is the output of a function that returns multiple views"


class View:
    """A view's place in its memory: the Tensor that it is a view of, and how it was made; otherwise as `Alias`.

    The generated text fills these fields itself (`_operations.forward`): one is made for every slice.
    """

    __slots__ = ("args", "cell", "forbidden", "parent", "row")

    def __init__(self, parent: Any, row: Any, args: tuple[Any, ...]) -> None:
        self.parent = parent
        self.cell: Cell = parent._alias.cell
        self.forbidden: str | ForbiddenView | None = parent._alias.forbidden  # what its parent is forbidden, it is, too
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
    """Represents the cells of all outputs of one node: written when any of them was."""

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
    """Remember that a Tensor is a copy where other libraries would give a view: writes to it, and to its views, are refused."""
    alias_of(tensor).cell.__class__ = CopyCell


def give_alias(tensor: Any, alias: Alias) -> None:
    """Attach `alias` to a Tensor and to the node that made it, where the consumers of its value will look for it."""
    tensor._alias = alias
    mark_node(tensor._node, alias)


def mark_node(node: Any, alias: Alias) -> None:
    """Tell the node that made a value where to see whether that value was overwritten."""
    if node is None:
        return
    node._alias = alias.cell
    if node.is_slot:  # one of several outputs: the owner saves them together
        owner = node.owner
        if owner._alias is None:
            owner._alias = _JointCell()
        owner._alias.cells.append(alias.cell)


def note_sharing(tensor: Any) -> None:
    """Remember which Tensors share a cell: a write must reach or notify them."""
    cell = tensor._alias.cell
    cell.views.append(ref(tensor))
    if len(cell.views) > cell.limit:
        cell.forget()


def alias_of(tensor: Any) -> Any:
    """The alias of a Tensor, made now if it has none."""
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
        if node is not None and known is None:
            if node.is_slot:
                mark_node(node, alias)
            else:
                node._alias = cell
        tensor._alias = alias  # last, when it is whole
    return alias


def share_memory(out: Any, owner: Any) -> None:
    """Give `out` the version counter of `owner`, whose memory it has. It is not a view of it: a write does not rewrite its history."""
    alias = alias_of(owner)
    out._alias = Alias(alias.cell, alias.path, alias.memory)
    note_sharing(out)


def chain_of(x: Any) -> tuple[tuple[str, tuple[Any, ...]], ...]:
    """The steps that made a view from its base."""
    chain = []
    while x._alias is not None and x._alias.parent is not None:
        if x._alias.row is not None:  # a custom Function's view of its argument is the whole of it
            chain.append((x._alias.row.name, x._alias.args))
        x = x._alias.parent
    return tuple(reversed(chain))


def follow(x: Any, chain: Any, xp: Any) -> Any:
    """The view of `x` (or the part of a gradient) that a chain leads to."""
    for name, args in chain:
        x = getattr(xp, name)(x, *args)
    return x
