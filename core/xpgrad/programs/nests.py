"""Write a nest: choose its loops, place each statement in them, and load and store elements. A `Dialect` provides the syntax.

Adjacent axes become one loop where every access allows it. Sums run in chunks: a chunk's sum is added to the total, which keeps the error
small, and lets a compiler reorder additions within a chunk only.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from xpgrad.programs.program import Variable
from xpgrad.programs.regions import Indexed, Lowered, Nest, Operand, Statement
from xpgrad.programs.scalars import SCALARS
from xpgrad.programs.views import Buffer, View

__all__ = ["CHUNK", "SMALL", "Dialect", "can_be_argument", "write_nest"]

CHUNK = 4096  # elements that are added before their sum is added to the total
SMALL = 32  # lengths and strides up to here are parts of a text; others may be arguments of it

#: What a reduction starts with.
_INITIAL = {"sum": 0.0, "prod": 1.0, "max": -math.inf, "min": math.inf}


class Dialect(Protocol):
    """A language of loops and scalars. Values, counters and accumulators are what its methods return."""

    def begin_statement(self, statement: Statement) -> None:
        """Note which statement the next values belong to."""

    def open_loop(self, start: Any, end: Any, step: int, *, vector: bool) -> Any:
        """Begin a loop; return its counter. With `vector`, no iteration reads what another one writes."""

    def close_loop(self) -> None:
        """End the innermost loop."""

    def piece(self, length: int) -> tuple[Any, Any, Any]:
        """Return where a piece of a loop of this length begins and ends, and the number of the piece."""

    def extent(self, length: int) -> Any:
        """Return the length of a loop as a value."""

    def chunk_end(self, start: Any, chunk: int, end: Any) -> Any:
        """Return where a chunk ends: after `chunk` elements, or at the end."""

    def load(self, buffer: Buffer, offset: int, terms: list[tuple[Any, int]]) -> Any:
        """Return the element at an offset plus the sum of counters times strides."""

    def store(self, buffer: Buffer, offset: int, terms: list[tuple[Any, int]], value: Any) -> None:
        """Write the element at an offset plus the sum of counters times strides."""

    def wrap_index(self, index: Any, dtype: str, length: int) -> Any:
        """Return an index as a counter; a negative one counts from the end."""

    def number(self, value: Any, dtype: str) -> Any:
        """Return a number as a value of the dialect."""

    def compute(self, op: str, dtype: str, args: list[Any], kinds: list[Any]) -> Any:
        """Return the result of a scalar operation; `kinds` are the dtypes of the operands, or None for plain numbers."""

    def new_accumulator(self, dtype: str, value: Any) -> Any:
        """Return a new accumulator with an initial value."""

    def accumulate(self, accumulator: Any, op: str, dtype: str, value: Any) -> None:
        """Update an accumulator with a value, by the reduction `op`; additions may be reordered."""

    def accumulated(self, accumulator: Any, dtype: str) -> Any:
        """Return the value of an accumulator."""


def can_be_argument(number: Any, op: str, kinds: list[Any]) -> bool:
    """Return whether a number among the operands of a scalar operation may be an argument of the text, with the same result.

    Compilers replace functions of known numbers, as in ``pow(x, 2.0)``, and choose the sign of nan.

    Parameters
    ----------
    number : bool, int or float
    op : str
    kinds : list of (str or None)
        The dtypes of the operands; None for numbers.
    """
    return number == number and op in SCALARS and SCALARS[op].form != "function" and "bool" not in kinds


class _Access:
    """The elements of memory that a statement reads or writes, over the domain of its nest."""

    __slots__ = ("indices", "piece_stride", "view")

    def __init__(self, view: View, indices: tuple[tuple[Variable, int, int], ...] = (), piece_stride: int = 0) -> None:
        self.view, self.indices, self.piece_stride = view, indices, piece_stride


def write_nest(lowered: Lowered, nest: Nest, dialect: Dialect) -> None:
    """Write the loops of a nest."""
    _Walk(lowered, nest, dialect).run()


class _Walk:
    """The writer of one nest."""

    def __init__(self, lowered: Lowered, nest: Nest, dialect: Dialect) -> None:
        self.lowered, self.nest, self.dialect = lowered, nest, dialect
        self.loads: dict[Any, _Access] = {}
        self.stores: dict[Statement, _Access] = {}
        self.find_accesses()
        self.loops = self.join_axes()
        self.depth: dict[Statement, int | None] = {s: self.depth_of(s) for s in nest.body if s.kind == "reduce"}
        #: The outermost loop over reduced axes, which runs in chunks.
        self.chunked: int = min([d for d in self.depth.values() if d is not None], default=-1)
        self.piece: tuple[Any, Any, Any] | None = None
        self.values: dict[Variable, Any] = {}
        self.counters: list[Any] = []
        self.accumulators: dict[Statement, Any] = {}

    def find_accesses(self) -> None:
        """Record which elements of memory each statement loads and stores."""
        nest, views = self.nest, self.lowered.views
        own = {s.out for s in nest.body if s.kind == "assign"}
        for s in nest.body:
            for a in s.args:
                if isinstance(a, Indexed):
                    self.loads[a] = _Access(a.view, a.indices)
                    self.add_indices(a)
                elif isinstance(a, Variable) and a not in own:
                    self.loads[a] = _Access(views[a].expanded(nest.domain))
            if isinstance(s.target, Indexed):
                self.stores[s] = _Access(s.target.view, s.target.indices)
                self.add_indices(s.target)
            elif s.kind != "assign" or s.out in self.lowered.stored:
                self.stores[s] = _Access(s.target, (), s.piece_stride)

    def add_indices(self, element: Indexed) -> None:
        for v, _, _ in element.indices:
            self.loads[v] = _Access(self.lowered.views[v].expanded(self.nest.domain))

    def join_axes(self) -> list[tuple[int, int]]:
        """Return the loops, from the outermost: their lengths, and the axes whose strides they have."""
        domain = self.nest.domain
        accesses = [*self.loads.values(), *self.stores.values()]
        reduced = [s.axes for s in self.nest.body if s.kind == "reduce"]
        loops: list[tuple[int, int]] = []
        for axis, n in enumerate(domain):
            if n == 1:
                continue
            if loops:
                length, before = loops[-1]
                strides = all(x.view.strides[before] == x.view.strides[axis] * n for x in accesses)
                if strides and all((before in axes) == (axis in axes) for axes in reduced):
                    loops[-1] = (length * n, axis)
                    continue
            loops.append((n, axis))
        return loops

    def depth_of(self, s: Statement) -> int | None:
        """Return how many loops are around a reduction's accumulator; None if its results are accumulated in memory."""
        inside = [axis in s.axes for _, axis in self.loops]
        first = inside.index(True) if True in inside else len(inside)
        return first if all(inside[first:]) else None

    # -- the loops ---------------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Write the loops and statements of the nest."""
        if self.nest.pieces > 1:
            self.piece = self.dialect.piece(self.loops[0][0])
        for s, depth in self.depth.items():
            if depth is None:
                self.fill(s)
        self.write_loops(0)

    def fill(self, s: Statement) -> None:
        """Fill the memory of a reduction with its initial value."""
        dialect, buffer = self.dialect, s.memory.buffer
        size = s.piece_stride or buffer.size
        counter = dialect.open_loop(dialect.number(0, "int64"), dialect.extent(size), 1, vector=True)
        terms = [(counter, 1)]
        if self.piece is not None and s.piece_stride:
            terms.append((self.piece[2], size))
        dialect.store(buffer, 0, terms, dialect.number(_initial(s), buffer.dtype))
        dialect.close_loop()

    def write_loops(self, level: int) -> None:
        """Write the loops from a level on, and the body inside."""
        dialect = self.dialect
        mine = [s for s, depth in self.depth.items() if depth == level]
        for s in mine:
            dtype = s.memory.buffer.dtype
            self.accumulators[s] = dialect.new_accumulator(dtype, dialect.number(_initial(s), dtype))
        if level == len(self.loops):
            self.values.clear()
            for s in self.nest.body:
                self.write_statement(s)
        else:
            length, _ = self.loops[level]
            inner = math.prod(n for n, _ in self.loops[level + 1 :])
            chunk = max(CHUNK // max(inner, 1), 1)
            if level == 0 and self.piece is not None:
                first, end, _ = self.piece
            else:
                first, end = dialect.number(0, "int64"), dialect.extent(length)
            if level == self.chunked and length > 2 * chunk:
                start = dialect.open_loop(first, end, chunk, vector=False)
                totals = dict(self.accumulators)
                for s in mine:
                    dtype = s.memory.buffer.dtype
                    self.accumulators[s] = dialect.new_accumulator(dtype, dialect.number(_initial(s), dtype))
                self.write_loop(level, start, dialect.chunk_end(start, chunk, end))
                for s in mine:
                    dtype = s.memory.buffer.dtype
                    dialect.accumulate(totals[s], s.op, dtype, dialect.accumulated(self.accumulators[s], dtype))
                self.accumulators = totals
                dialect.close_loop()
            else:
                self.write_loop(level, first, end)
        for s in mine:
            value = dialect.accumulated(self.accumulators[s], s.memory.buffer.dtype)
            self.write(self.stores[s], value)

    def write_loop(self, level: int, start: Any, end: Any) -> None:
        """Write one loop and everything inside it."""
        innermost = level == len(self.loops) - 1
        counter = self.dialect.open_loop(start, end, 1, vector=innermost and self.is_free_of_conflicts())
        self.counters.append(counter)
        self.write_loops(level + 1)
        self.counters.pop()
        self.dialect.close_loop()

    def is_free_of_conflicts(self) -> bool:
        """Return whether no iteration of the innermost loop writes to an element that another one reads or writes."""
        _, axis = self.loops[-1]
        for s, x in self.stores.items():
            if any(self.loads[v].view.strides[axis] for v, _, _ in x.indices):
                return False
            if s.kind == "reduce":
                if self.depth[s] is None and not x.view.strides[axis]:
                    return False
            elif not x.view.strides[axis]:
                return False
        return True

    # -- the body ---------------------------------------------------------------------------------------------------------------

    def write_statement(self, s: Statement) -> None:
        """Write one statement."""
        dialect, dtype = self.dialect, s.memory.buffer.dtype
        dialect.begin_statement(s)
        args = [self.value_of(a) for a in s.args]
        kinds = [_dtype_of(a) for a in s.args]
        if s.kind == "assign":
            value = self.values[s.out] = dialect.compute(s.op, dtype, args, kinds)
            if s in self.stores:
                self.write(self.stores[s], value)
            return
        value = dialect.number(args[0], dtype) if kinds[0] is None else dialect.compute("cast", dtype, args, kinds)
        if s.kind == "reduce" and self.depth[s] is not None:
            dialect.accumulate(self.accumulators[s], s.op, dtype, value)
            return
        x = self.stores[s]
        if s.kind == "reduce":
            value = dialect.compute(_COMBINING[s.op], dtype, [self.read(x), value], [dtype, dtype])
        elif s.op == "+=":
            value = dialect.compute("add", dtype, [self.read(x), value], [dtype, dtype])
        self.write(x, value)

    def value_of(self, a: Operand) -> Any:
        """Return an operand as a value of the dialect; numbers stay unchanged."""
        if isinstance(a, Indexed):
            return self.read(self.loads[a])
        if not isinstance(a, Variable):
            return a
        if a not in self.values:
            self.values[a] = self.read(self.loads[a])
        return self.values[a]

    def read(self, x: _Access) -> Any:
        return self.dialect.load(x.view.buffer, x.view.offset, self.place(x))

    def write(self, x: _Access, value: Any) -> None:
        self.dialect.store(x.view.buffer, x.view.offset, self.place(x), value)

    def place(self, x: _Access) -> list[tuple[Any, int]]:
        """Return the terms of an element's position: counters of the open loops and indices, with their strides."""
        terms = [(c, x.view.strides[axis]) for c, (_, axis) in zip(self.counters, self.loops) if x.view.strides[axis]]
        if x.piece_stride and self.piece is not None:
            terms.append((self.piece[2], x.piece_stride))
        for v, length, stride in x.indices:
            terms.append((self.dialect.wrap_index(self.value_of(v), v.dtype.name, length), stride))
        return terms


_COMBINING = {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _initial(s: Statement) -> Any:
    """Return the initial value of a reduction."""
    dtype = s.memory.buffer.dtype
    if dtype.startswith("float"):
        return _INITIAL[s.op]
    bits = 8 * s.memory.buffer.itemsize
    return {"sum": 0, "prod": 1, "max": -(2 ** (bits - 1)), "min": 2 ** (bits - 1) - 1}[s.op]


def _dtype_of(a: Operand) -> str | None:
    if isinstance(a, Variable):
        return a.dtype.name
    return a.view.buffer.dtype if isinstance(a, Indexed) else None
