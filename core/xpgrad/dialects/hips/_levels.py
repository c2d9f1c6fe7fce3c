"""The levels of nested derivatives in reverse mode, and the value without the innermost of them, which HIPS autograd calls ``x._value``.

A run of a function in reverse mode is a level. A value depends on the levels whose arguments its graph reaches. ``x._value`` keeps that
graph and begins with a node at which the passes of the innermost of these runs end; the passes of all other runs continue through it.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

from xpgrad._tape.leaf import AccumulateGrad
from xpgrad._tape.node import ListNode

if TYPE_CHECKING:
    from xpgrad.dialects.hips._records import Record

#: The runs that go on in this context, the outermost first.
RUNS: ContextVar[tuple[Record | Trace, ...]] = ContextVar("xpgrad_hips_runs", default=())
#: The runs whose passes go on in this context, among those that a `ValueNode` names.
PASSES: ContextVar[tuple[Record | Trace, ...]] = ContextVar("xpgrad_hips_passes", default=())


class Start(AccumulateGrad):
    """The node of an argument whose history begins at it, while the function or a pass runs, which may call parts of the function again."""

    __slots__ = ()


class Ended(Start):
    """A `Start` at other times; no outer derivative is with respect to it."""

    __slots__ = ()


class Trace:
    """A run that the program itself makes, by `tracer.trace_stack`, or names by a number, as HIPS autograd does.

    Attributes
    ----------
    cut : bool
        As of a `Record`: whether the program took a value without this level, by `x._value`.
    depth : int
        The number of runs outside it; -1 for a run with a number, which is outside of all that go on.
    """

    #: The run that each node of an argument belongs to.
    of: ClassVar[MutableMapping[Any, Trace]] = WeakKeyDictionary()
    #: The value of each of these arguments, without history.
    values: ClassVar[MutableMapping[Any, Any]] = WeakKeyDictionary()
    _numbered: ClassVar[dict[int, Trace]] = {}

    inner: tuple[Any, ...] = ()  # as of a `Record`; `of` has the arguments

    def __init__(self, depth: int | None = None) -> None:
        self.cut: bool = False
        self.depth: int = len(RUNS.get()) if depth is None else depth

    @classmethod
    def numbered(cls, number: int) -> Trace:
        """Return the run with a number."""
        return cls._numbered.setdefault(number, cls(-1))

    def begin(self, x: Any) -> None:
        """Declare a Tensor an argument."""
        self.of[x._node], self.values[x._node] = self, x._wrap(x._array)


class ValueNode(ListNode):
    """The node of a value without one level: it forwards the cotangent, except in passes of the run `run`."""

    __slots__ = ("backend", "cls", "run")

    title = "ValueBackward"
    run: Record | Trace

    def grads(self, g: Any) -> list[Any]:
        return [None if self.run in PASSES.get() else g]

    def graph_grads(self, g: Any) -> list[Any]:
        return self.grads(g)


def levels_of(x: Any) -> tuple[list[Record | Trace], bool]:
    """Return the runs on which the value of a Tensor depends, outermost first, and whether it has any other history.

    These are the runs that go on, and those of the program's own.
    """
    runs = RUNS.get()
    starts: dict[Any, Record | Trace] = {t._node: run for run in runs for t in run.inner}
    found: list[Record | Trace] = []
    other = False
    stack: list[Any] = [] if x._node is None else [(x._node, frozenset())]
    seen = set(stack)
    while stack:
        node, without = stack.pop()
        run = starts.get(node) or (Trace.of.get(node) if Trace.of else None)  # NB: mostly there is none
        if run is not None and run not in without and run not in found:
            found.append(run)
        other |= run is None and node.is_leaf and node.__class__ is not Ended and not node.is_spent
        if node.__class__ is ValueNode:
            without |= {node.run}
        for e in node.edges():
            if (e, without) not in seen:
                seen.add((e, without))
                stack.append((e, without))
    return sorted(found, key=lambda run: run.depth if isinstance(run, Trace) else runs.index(run)), other


def trace_of(x: Any) -> Any:
    """Return the innermost run on which the value of a Tensor depends; None without one."""
    levels, _ = levels_of(x)
    return levels[-1] if levels else None


def cut(x: Any, copied: Any, run: Record | Trace) -> Any:
    """Return a Tensor with the value `copied` of `x`, a raw array, and its derivatives in all runs but `run`."""
    out = x._wrap(copied)
    node = ValueNode.made_now()
    node.backend, node.cls, node.run, node.e, node.stream = out.backend, out.__class__, run, (x._node,), None
    run.cut = True
    out._node = node
    return out
