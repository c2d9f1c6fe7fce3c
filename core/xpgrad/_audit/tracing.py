"""Record the operations of a function, their operands, and where values leave the graph: `Mode.auditing` is a `Trace` during an audit.

A value leaves the graph if it has no history but is computed from a Tensor that has one: by a call (`detach`, `float`, `.array`), under
`no_grad`, or by an operation whose derivative is zero or undefined. These breaks are numbered in the order in which they occur, so that a
second run can freeze the values of some of them. A change of the derivative then shows what depends on these values.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any, NamedTuple

from xpgrad._array.base import TensorBase
from xpgrad._audit.places import Place, Stop, user_places
from xpgrad._modes import state
from xpgrad._rows.kernels import kernel_of
from xpgrad._rows.row import Row

#: The size in bytes up to which operands are copied, to detect whether their values change.
COPIED = 1 << 24
_CALLS = {
    "detach()": "detached", ".data": "detached", "bool(x)": "branch", "format(x)": "printed", ".array": "left-as-array",
    "numpy()": "left-as-array", "np.asarray(x)": "left-as-array", "autograd.grad": "inner-gradient",
}  # fmt: skip


class Event(NamedTuple):
    """An operation that ran.

    Attributes
    ----------
    name : str
        The public name, or that of a custom Function.
    row : Row or None
    function : type or None
        A custom Function.
    operands : tuple
        Tensors and Python scalars.
    statics : tuple
    outs : tuple
        Tensors.
    places : tuple of Place
        The stack of the user's code, the innermost line first.
    node : Node or None
        The node that recorded it.
    """

    name: str
    row: Row | None
    function: Any
    operands: tuple[Any, ...]
    statics: tuple[Any, ...]
    outs: tuple[Any, ...]
    places: tuple[Place, ...]
    node: Any

    @property
    def place(self) -> Place | None:
        """The innermost line of the user's code."""
        return self.places[0] if self.places else None

    @property
    def tensors(self) -> list[Any]:
        """The operands that are Tensors."""
        return [x for x in self.operands if isinstance(x, TensorBase)]


class Break(NamedTuple):
    """A value that left the graph.

    Attributes
    ----------
    number : int
    kind : str
        ``"detached"``, ``"no-grad"``, ``"left-as-number"``, ``"left-as-array"``, ``"inner-gradient"``, ``"branch"``, ``"compared"``,
        ``"rounded"``, ``"index"``, ``"cast"``, ``"written"``, ``"printed"``.
    call : str
        The call by which it left.
    places : tuple of Place
    value : object
        A copy of the value: a number, a host array or a raw array.
    before : int
        The number of operations that had run.
    """

    number: int
    kind: str
    call: str
    places: tuple[Place, ...]
    value: Any
    before: int

    @property
    def place(self) -> Place | None:
        return self.places[0] if self.places else None

    @property
    def group(self) -> tuple[str, str, Place | None]:
        """The key under which repeated breaks are one finding."""
        return self.kind, self.call, self.place


class Trace:
    """The record of one run.

    Parameters
    ----------
    base : Trace, optional
        The first run, from which frozen values are taken.
    frozen : container of int
        The numbers of the breaks whose values are frozen.
    keep : bool
        Whether to store the operations; False if only the outcome is needed.
    """

    def __init__(self, base: Trace | None = None, frozen: Container[int] = (), keep: bool = True) -> None:
        self.base, self.frozen, self.keep = base, frozen, keep
        self.events: list[Event] = []
        self.breaks: list[Break] = []
        self.stop = Stop()
        self.diverged = False
        self.producers: dict[int, int] = {}  # by the id of a Tensor, the last operation that made or wrote it
        self.count = 0
        self.exits: dict[int, Any] = {}  # by the number of a break, the Tensor on which its call was made
        self.came: dict[int, int] = {}  # by the id of a Tensor, the break from which it came
        self.cuts: dict[int, int] = {}  # by the id of a Tensor, the break of which it is the result
        self.branches: set[int] = set()  # the breaks on whose result the function branched
        self.alive: list[Any] = []  # keeps Tensors alive, so that no id is reused
        #: By the numbers of an operation and a Tensor operand: its raw array, and a copy of its values and its version at that time.
        self.copies: dict[tuple[int, int], tuple[Any, Any, int]] = {}

    # -- what `Mode` and the operations call -----------------------------------------------------------------------

    def ran(self, row: Row, operands: tuple[Any, ...], statics: tuple[Any, ...], out: Any) -> None:
        """Record an operation that a row declares, with its operands and its result."""
        operands = tuple(operands[0]) if row.varargs else operands
        outs = out if out.__class__ is tuple else (out,)
        if any(o.stage for o in outs):
            return  # inside a batch or a capture: the operations on the underlying Tensors are recorded instead
        self._note(_name(row), row, None, operands, statics, outs)

    def record_computed(self, name: str, operands: tuple[Any, ...], out: Any) -> None:
        """Record an operation that no row declares, with its name, its operands and its result."""
        if not out.stage:
            self._note(name, None, None, operands, (), (out,))

    def record_call(self, function: Any, args: tuple[Any, ...], outs: tuple[Any, ...]) -> None:
        """Record a call of a custom Function."""
        self._note(function.__name__, None, function, args, (), tuple(o for o in outs if isinstance(o, TensorBase)))

    def wrote(self, x: Any, value: Any) -> None:
        """Record a write to a Tensor."""
        if x.stage:
            return
        source = self.producers.get(id(value))
        if source is not None:
            self.producers[id(x)] = source
        if isinstance(value, TensorBase) and x._node is None and (value._node is not None or value.requires_grad):
            (kept,) = self._record_break("written", "x[...] = value", [x], user_places(self.stop)[0])
            if kept is not None:
                x._array = kept

    def record_leaving(self, call: str, x: Any, value: Any) -> Any:
        """Record a value that leaves the graph through a call, and return it, or its frozen copy from the first run."""
        if call == "bool(x)" and id(x) in self.cuts:
            self.branches.add(self.cuts[id(x)])
        if value is None or (isinstance(x, TensorBase) and x._node is None):  # else a gradient edge
            return value
        if isinstance(value, TensorBase) and value.depth:  # in a batch: the values of all elements leave
            array = value._array
            kept = self.record_leaving(call, x, array.value)
            return value if kept is array.value else value._wrap(value.backend.raw(kept, array.level))
        if isinstance(x, TensorBase) and x.stage and (x.stage > x.depth or not isinstance(value, TensorBase)):
            return value  # in a capture, or a number
        kind = _CALLS.get(call, "left-as-number")
        places, via = user_places(self.stop)
        if via and via not in call:
            call = f"{call} inside of {via}"
        if isinstance(value, TensorBase):
            if self.keep:
                self.exits[len(self.breaks)] = x
                self.came[id(value)] = len(self.breaks)
                self.alive.append(value)
            mode = state.current()
            levels = () if mode is None else mode.levels
            kept = self._record_break(kind, call, list(_with_tangents(value, levels)), places)
            return value if kept[0] is None else _replaced(value, iter(kept), levels)
        number = len(self.breaks)
        held = self._frozen_value(number, kind, places)
        if held is not None:
            return _copy_leaving(x, held)
        if self.keep:
            self.exits[number] = x
        self.breaks.append(Break(number, kind, call, places, _copy_leaving(x, value), self.count))
        return value

    # -- how they are noted ----------------------------------------------------------------------------------------

    def _note(self, name: str, row: Row | None, function: Any, operands: Any, statics: Any, outs: tuple[Any, ...]) -> None:
        """Record an operation, its results, and a break if it loses the history of its operands."""
        node = next((o._node.owner for o in outs if o._node is not None), None)
        places, _ = user_places(self.stop)
        if any(isinstance(x, TensorBase) and x._node is not None for x in operands):
            kind = _kind(name, row, statics, state.is_grad_enabled())
            step = row is not None and row.is_step
            lost = [o for o in outs if o._node is None or step or not o.dtype.differentiable]
            if lost and kind:
                self.cuts |= dict.fromkeys(map(id, lost), len(self.breaks))
                self.alive += lost
                for o, kept in zip(lost, self._record_break(kind, name, lost, places)):
                    if kept is not None:
                        o._array = kept
        if self.keep:
            self.events.append(Event(name, row, function, tuple(operands), tuple(statics), outs, places, node))
            if node is not None:
                self._copy(operands)
            for o in outs:
                self.producers[id(o)] = self.count
        self.count += 1

    def _copy(self, operands: Any) -> None:
        """Store copies of the current values of operands."""
        for j, x in enumerate(x for x in operands if isinstance(x, TensorBase)):
            if x.dtype.differentiable and x.nbytes <= COPIED:
                t: Any = x
                version = 0 if t._alias is None or t.is_inference() else t._version
                self.copies[self.count, j] = x._array, x.backend.to_host(x._array).copy(), version

    def _record_break(self, kind: str, call: str, tensors: list[Any], places: tuple[Place, ...]) -> list[Any]:
        """Record a break of Tensors; return for each the raw array of its frozen value, or None if it is not frozen."""
        number = len(self.breaks)
        held = self._frozen_value(number, kind, places)
        copies = [t.backend.kernels.copy(t._array) for t in tensors] if held is None else held
        if held is None:
            self.breaks.append(Break(number, kind, call, places, copies, self.count))
            return [None] * len(tensors)
        fits = len(held) == len(tensors) and all(tuple(h.shape) == t.shape and h.dtype == t._array.dtype for h, t in zip(held, tensors))
        if not fits:
            self.diverged = True
            return [None] * len(tensors)
        return [t.backend.kernels.copy(h) for h, t in zip(held, tensors)]

    def _frozen_value(self, number: int, kind: str, places: tuple[Place, ...]) -> Any:
        """Return the value that a break had in the first run, or None if it is not frozen or this run differs from the first."""
        if self.base is None:
            return None
        if number >= len(self.base.breaks):
            self.diverged = True
            return None
        before = self.base.breaks[number]
        if before.kind != kind or before.place != (places[0] if places else None):
            self.diverged = True
            return None
        if number not in self.frozen:
            return None
        self.breaks.append(before)
        return before.value


def _kind(name: str, row: Row | None, statics: Any, recording: bool) -> str:
    """Return the kind of break of an operation that loses the history of its operands; empty if it is none."""
    if not recording:
        return "no-grad"
    if kernel_of(name).kind == "search":
        return "index"
    if row is None:
        return "" if name == "to_device" else "compared" if name in ("all", "any") else "index"
    if row.is_step:
        return "rounded"
    if row.name == "to_dtype":
        return "cast"
    if all(f is None for f in row.formulas):
        return "compared"
    return "index" if row.outputs is not None else ""


def _name(row: Row) -> str:
    """Return the public name of a row for reports."""
    return "getitem" if row.name == "index_basic" else row.public[0].removeprefix("special_")


def _with_tangents(x: Any, levels: Any) -> Iterator[Any]:
    """Yield a Tensor that left the graph, and those of its tangents that left it as well; the Tensor behind one that is mapped."""
    yield x
    for level in levels:
        tangent = level.tangent(x)
        if tangent is not None and (inside := _inside(tangent))._node is None:
            yield from _with_tangents(inside, level.outer)


def _replaced(x: Any, kept: Iterator[Any], levels: Any) -> Any:
    """Return a Tensor with the raw arrays `kept` in place of those of `_with_tangents`, and with the other tangents of `x`."""
    out = x._wrap(next(kept))
    for level in levels:
        tangent = level.tangent(x)
        if tangent is not None:
            inside = _inside(tangent)
            level.set_tangent(out, _around(tangent, _replaced(inside, kept, level.outer)) if inside._node is None else tangent)
    return out


def _inside(x: Any) -> Any:
    """Return the Tensor that holds the elements of a mapped one."""
    while x.depth:
        x = x._array.value
    return x


def _around(x: Any, inside: Any) -> Any:
    """Return a Tensor mapped like `x` whose elements `inside` holds."""
    return x.backend.wrap(x.backend.raw(_around(x._array.value, inside), x._array.level)) if x.depth else inside


def _copy_leaving(x: Any, value: Any) -> Any:
    """Copy a value that left the graph, so that later writes do not change the record."""
    if isinstance(value, list):
        return [_copy_leaving(x, v) for v in value]
    if not hasattr(value, "shape"):
        return value
    return value.copy() if hasattr(value, "copy") else x.backend.kernels.copy(value)
