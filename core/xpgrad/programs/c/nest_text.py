"""Print nests of loops, and checks of indices, as functions of C."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from xpgrad.programs.c.expressions import ATOM, CHOICE, COMPARISON, SUM, UNARY, Line, Value
from xpgrad.programs.c.identifiers import Identifiers
from xpgrad.programs.c.layout import wrapped
from xpgrad.programs.c.numbers import TYPES, VALUE_TYPES
from xpgrad.programs.c.scalar_text import ScalarWriter, literal_value
from xpgrad.programs.regions import Advance, Check, Statement
from xpgrad.programs.scalars import FLOATS
from xpgrad.programs.views import Buffer

__all__ = ["NestWriter", "write_check"]


class NestWriter(ScalarWriter):
    """The dialect of C: loops, memory and accumulators.

    Parameters
    ----------
    helpers, called, advance
        As for `ScalarWriter`.
    wishes : dict of Buffer to str
        The user's names of arrays.
    literals : dict of Buffer to str
        The arrays of one known number, as literals.
    """

    wish: str | None
    wishes: dict[Buffer, str]
    literals: dict[Buffer, str]

    def __init__(
        self,
        helpers: dict[str, str],
        called: dict[str, str],
        wishes: dict[Buffer, str],
        literals: dict[Buffer, str],
        advance: Advance,
    ) -> None:
        super().__init__(helpers, called, advance)
        self.wishes, self.literals = wishes, literals
        self.numbers: dict[int, Value] = {}
        self.pointers: dict[Buffer, Value] = {}
        self.offsets: dict[Buffer, list[tuple[int, str, Value]]] = {}  # with what follows, and what stands for the text of both
        self.counters: list[Value] = []
        self.accumulators: dict[Value, int] = {}  # with the number of loops around them
        self.indices: dict[tuple[Value, int], Value] = {}
        self.written: set[Any] = set()
        self.loops: list[_Loop] = []
        self.count_pieces = 1

    def function(self, result: str, *last: str) -> tuple[str, list[tuple[Buffer, int]]]:
        """Return the text of a static C function for the statements so far, and the places in memory that are its arguments.

        Parameters
        ----------
        result : str
            The type of its result.
        *last : str
            Lines at its end.

        Returns
        -------
        str
            ``@NAME`` stands for the function's name.
        list of (Buffer, int)
            The memory and the offset of each pointer.
        """
        self.block.drop_unused()
        names = Identifiers("piece", "start", "stop", *self.helpers)
        pointers = {buffer: pointer for buffer, pointer in self.pointers.items() if pointer.uses}
        for buffer, pointer in pointers.items():
            pointer.name = names.new(self.wishes.get(buffer, "a"))
        for counter, letter in zip(self.counters, "ijklmnop" * len(self.counters)):
            counter.name = names.new(letter)
        for accumulator in self.accumulators:
            accumulator.name = names.new("result")
        firsts = {buffer: min(n for n, _, _ in self.offsets[buffer]) for buffer in pointers}
        for buffer, first in firsts.items():
            for n, sign, offset in self.offsets[buffer]:
                offset.name = f"{n - first}{sign}" if n != first or not sign else sign.strip(" +")
        for n in self.used_numbers():
            self.numbers[n].name = names.new("n")
        for position, _ in self.used_operands():
            self.operands[position][0].name = names.new("number")
        lines = self.block.lines(names, self.written)
        parameters = ["int64_t piece"] if self.count_pieces > 1 else []
        for buffer, pointer in pointers.items():
            constant = "" if buffer in self.written else "const "
            parameters.append(f"{constant}{TYPES[buffer.dtype]} *restrict {pointer.name}")
        parameters += [f"int64_t {self.numbers[n].name}" for n in self.used_numbers()]
        parameters += [f"{VALUE_TYPES[dtype]} {self.operands[position][0].name}" for position, dtype in self.used_operands()]
        head = wrapped(f"static {result} @NAME(", parameters or ["void"], ")")
        return "\n".join([head, "{", *lines, *last, "}\n"]), list(firsts.items())

    def number_of(self, number: int) -> Value | None:
        """Return the argument for a length or a stride that changes from step to step; None for others."""
        return self.numbers.setdefault(number, Value(())) if number in self.advance.numbers else None

    def used_numbers(self) -> list[int]:
        """Return the lengths and strides that are arguments, in order."""
        return [n for n, argument in self.numbers.items() if argument.uses]

    # -- loops -------------------------------------------------------------------------------------------------------------

    def begin_statement(self, statement: Statement) -> None:
        """Note what the user called the result of the next statement."""
        self.wish = statement.out.name if statement.kind == "assign" else None

    def extent(self, length: int) -> Value:
        """Return a length as a literal or an argument."""
        return self.number_of(length) or Value((str(length),))

    def piece(self, length: int) -> tuple[Value, Value, Value]:
        """Return where a piece begins and ends, and its number."""
        count = self.count_pieces
        self.block.put(f"const int64_t start = {length} * piece / {count};")
        self.block.put(f"const int64_t stop = {length} * (piece + 1) / {count};")
        return Value(("start",)), Value(("stop",)), Value(("piece",))

    def open_loop(self, start: Value, end: Value, step: int, *, vector: bool) -> Value:
        """Begin a loop; return its counter."""
        while len(self.counters) <= len(self.loops):
            self.counters.append(Value(()))
        i = self.counters[len(self.loops)]
        pragma = self.block.put()
        forward = "++" if step == 1 else f" += {step}"
        self.block.enter("for (int64_t ", (i, 0), " = ", (start, 0), "; ", (i, 0), " < ", (end, SUM), "; ", (i, 0), f"{forward}) {{")
        self.loops.append(_Loop(pragma, vector, {}))
        return i

    def close_loop(self) -> None:
        """End the innermost loop."""
        loop = self.loops.pop()
        self.block.leave()
        if loop.vector and loop.sums:
            names: list[Any] = []
            for accumulator in loop.sums:
                names += [", " if names else "", (accumulator, 0)]
            loop.pragma.parts = ("#pragma omp simd reduction(+ : ", *names, ")")
        else:
            self.block.items = [item for item in self.block.items if item[0] is not loop.pragma]

    def chunk_end(self, start: Value, chunk: int, end: Value) -> Value:
        """Return where a chunk ends: `chunk` after `start`, or at `end` if that comes first."""
        full = ((start, SUM), f" + {chunk}")
        found = self.value(*full, " < ", (end, SUM), " ? ", *full, " : ", (end, 0), level=CHOICE, kind="int64_t")
        found.wish, found.is_kept = "end", True
        return found

    # -- memory ------------------------------------------------------------------------------------------------------------

    def element(self, buffer: Buffer, offset: int, terms: list[tuple[Value, int]]) -> tuple[Any, ...]:
        """Return the parts of the expression for the element at an offset plus the sum of counters times strides (`terms`)."""
        pointer = self.pointers.setdefault(buffer, Value(()))
        parts: list[Any] = []
        for counter, stride in terms:
            if parts:
                parts.append(" + " if stride > 0 else " - ")
            argument = self.number_of(stride)
            if argument is not None:
                parts += [(argument, ATOM), " * "]
            elif abs(stride) != 1:
                parts.append(f"{abs(stride)} * ")
            parts.append((counter, UNARY))
        begin = Value(())
        self.offsets.setdefault(buffer, []).append((offset, "" if not terms else " + " if terms[0][1] > 0 else " - ", begin))
        return ((pointer, 0), "[", (begin, 0), *parts, "]")

    def load(self, buffer: Buffer, offset: int, terms: list[tuple[Value, int]]) -> Value:
        """Return the value of an element: a literal for a known constant, else an expression."""
        if buffer in self.literals:
            return literal_value(self.literals[buffer])
        parts = self.element(buffer, offset, terms)
        if buffer.dtype == "bool":
            found = self.value(*parts, " != 0", level=COMPARISON, kind="bool")
        else:
            found = self.value(*parts, kind=TYPES[buffer.dtype])
        found.reads = buffer
        found.is_free = not any(c.kind for c, _ in terms)  # the other terms are counters
        return found

    def store(self, buffer: Buffer, offset: int, terms: list[tuple[Value, int]], value: Value) -> None:
        """Write an element."""
        self.written.add(buffer)
        self.block.put(*self.element(buffer, offset, terms), " = ", (value, 0), ";", is_store=True)

    def wrap_index(self, index: Value, dtype: str, length: int) -> Value:
        """Return an index as an int64; the length is added if it is negative."""
        known = self.indices.get((index, length))
        if known is not None:
            return known
        given = index
        if dtype != "int64":
            index = self.value("(int64_t)", (index, UNARY), level=UNARY, kind="int64_t")
        found = self.value((index, SUM), " < 0 ? ", (index, SUM), f" + {length} : ", (index, 0), level=CHOICE, kind="int64_t")
        found.wish, found.is_kept = "at", True
        self.indices[given, length] = found
        return found

    # -- accumulators ------------------------------------------------------------------------------------------------------

    def new_accumulator(self, dtype: str, value: Value) -> Value:
        """Declare a variable with an initial value, and return it."""
        found = Value(())
        self.accumulators[found] = len(self.loops)
        self.written.add(found)
        self.block.put(f"{VALUE_TYPES[dtype]} ", (found, 0), " = ", (value, 0), ";", is_store=True)
        return found

    def accumulate(self, accumulator: Value, op: str, dtype: str, value: Value) -> None:
        """Update an accumulator with a value, by the reduction `op`; additions may be reordered."""
        if op == "sum" and dtype in FLOATS:
            self.block.put((accumulator, 0), " += ", (value, 0), ";", is_store=True)
        else:
            old = self.accumulated(accumulator, dtype)
            new = self.compute(
                {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}[op], dtype, [old, value], [dtype, dtype]
            )
            self.block.put((accumulator, 0), " = ", (new, 0), ";", is_store=True)
        for loop in self.loops[self.accumulators[accumulator] :]:
            if op == "sum" and dtype in FLOATS:
                loop.sums[accumulator] = None
            else:
                loop.vector = False

    def accumulated(self, accumulator: Value, dtype: str) -> Value:
        """Return the value of an accumulator."""
        found = self.value((accumulator, 0), kind=VALUE_TYPES[dtype])
        found.reads, found.is_free = accumulator, True
        return found


@dataclass(slots=True)
class _Loop:
    """An open loop: the line for its pragma, whether its iterations are independent, and the sums in it."""

    pragma: Line
    vector: bool
    sums: dict[Value, None]


def write_check(check: Check, w: NestWriter) -> None:
    """Write the test that all elements of an array are indices of an axis."""
    key, n = check.key, check.length
    terms = [(w.open_loop(w.number(0, "int64"), w.extent(m), 1, vector=False), stride) for m, stride in zip(key.shape, key.strides)]
    terms = [(i, stride) for i, stride in terms if stride]
    index = w.load(key.buffer, key.offset, terms)
    w.block.put("if (", (index, SUM), f" < {-n} || ", (index, SUM), f" >= {n})")
    w.block.put("    return false;")
    for _ in key.shape:
        w.close_loop()
