"""Find steps that repeat in a list of regions, as those of an unrolled loop do, and replace them by loops.

What is printed and compiled for a loop then depends on its body, and not on the number of its steps, while each step does what it did
before, in the same order.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from xpgrad.programs.nests import SMALL, can_be_argument, write_nest
from xpgrad.programs.regions import Advance, Control, Indexed, Lowered, Nest, Product, Region, Repeat, Statement
from xpgrad.programs.scalars import FLOATS
from xpgrad.programs.views import Buffer

__all__ = ["with_repeats"]

_FEWEST = 4  # steps of a loop; fewer are easier to read one after the other
_LONGEST = 512  # regions of a step
_TRIES = 64  # lengths of a step that are tried from one region on
_LOSSES = 2  # first or last steps that may stay outside a loop, so that addresses in it advance evenly
_PERIODS = (1, 2, 3)  # steps that may form one step, for the same reason


def with_repeats(lowered: Lowered) -> Lowered:
    """Return a lowered program in which steps that repeat are loops.

    Two regions are equal if they differ only in where their arrays lie in memory, in long lengths and strides that advance evenly, and in
    numbers among the operands.
    """
    regions = list(lowered.every_region())
    if len(regions) < _FEWEST:
        return lowered
    patterns = [_pattern(lowered, region) for region in regions]
    numbers: dict[Any, int] = {}
    text = "".join([chr(numbers.setdefault(p.key, len(numbers))) for p in patterns])  # NB: parts of strings are compared quickly
    where: dict[str, list[int]] = {}
    for k, letter in enumerate(text):
        where.setdefault(letter, []).append(k)
    found: list[Region | Repeat] = []
    start = 0
    seen = dict.fromkeys(where, 0)  # how many of the places of each letter lie before the start
    while start < len(text):
        size, count = _best_run(text, start, where[text[start]], seen[text[start]])
        loop: _Loop | None = None
        if count > 1:
            steps = [patterns[k : k + size] for k in range(start, start + size * count, size)]
            loop = _loop(lowered, steps[: _even_numbers(steps)])
        if loop is None:
            end = start + 1
            found.append(regions[start])
        else:
            first, end = start + size * loop.first, start + size * (loop.first + loop.period * loop.count)
            found += regions[start:first]
            found.append(Repeat(loop.count, regions[first : first + size * loop.period], loop.steps))
        for letter in text[start:end]:
            seen[letter] += 1
        start = end
    return replace(lowered, regions=found)


def _best_run(text: str, start: int, places: list[int], index: int) -> tuple[int, int]:
    """Return the length and the number of equal parts that begin at `start`: of enough short ones, those that cover most of the text.

    The number is 1 if there are too few.

    Parameters
    ----------
    text : str
    start : int
    places : list of int
        Where the letter at `start` occurs.
    index : int
        The position of `start` in `places`.
    """
    best = (1, 1)
    for place in places[index + 1 : index + 1 + _TRIES]:
        size = place - start
        if size > _LONGEST:
            break
        part, end = text[start:place], place
        while text.startswith(part, end):
            end += size
        count = (end - start) // size
        if count >= _FEWEST and end - start > best[0] * best[1]:
            best = size, count
    return best


def _even_numbers(steps: list[list[_Pattern]]) -> int:
    """Return the number of first steps in which lengths and strides advance evenly."""
    for k in range(2, len(steps)):
        for p, q, r in zip(*steps[k - 2 : k + 1]):
            if any(b - a != c - b for a, b, c in zip(p.numbers, q.numbers, r.numbers)):
                return k
    return len(steps)


# -- addresses ---------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Loop:
    """A loop over some of the steps of a run.

    Attributes
    ----------
    first : int
        The first of the steps.
    period : int
        The number of these steps that form a step of the loop.
    count : int
        The number of steps of the loop.
    steps : list of Advance
        How each region of the loop's body changes.
    """

    first: int
    period: int
    count: int
    steps: list[Advance]


def _loop(lowered: Lowered, steps: list[list[_Pattern]]) -> _Loop | None:
    """Return a loop over most of the steps, in which as many addresses as possible advance evenly; None if there are too few steps."""
    if len(steps) < _FEWEST:
        return None
    places = [[_place(lowered, *place) for p in step for place in p.places] for step in steps]
    columns = list(zip(*places))
    moves = [[k for k, (a, b) in enumerate(itertools.pairwise(same)) if a[0] is not b[0]] for same in columns]  # to another array
    best, chosen = 2 * len(columns) + 1, (0, 1, len(steps))
    for period in _PERIODS:
        breaks = [_breaks(same, period) for same in columns]
        losses = sorted(itertools.product(range(_LOSSES + 1), repeat=2), key=sum)
        for first, last in losses:
            count = (len(steps) - first - last) // period
            after = first + (count - 2) * period
            uneven = sum(any(first <= k < after for k in found) for found in breaks)
            uneven += sum(any(first <= k < after + 2 * period - 1 for k in found) for found in moves)  # tables of such addresses cost more
            if count >= _FEWEST and uneven < best and (period == 1 or not uneven):
                best, chosen = uneven, (first, period, count)
        if not best:
            break
    return _Loop(*chosen, list(_advances(lowered, steps, *chosen)))


def _breaks(places: tuple[tuple[Buffer | None, int], ...], period: int) -> list[int]:
    """Return the steps from which an address does not advance by the same number of bytes in the next two periods."""
    found = []
    for k, (first, second, third) in enumerate(zip(places, places[period:], places[2 * period :])):
        if not (first[0] is second[0] is third[0] and second[1] - first[1] == third[1] - second[1]):
            found.append(k)
    return found


def _place(lowered: Lowered, buffer: Buffer, offset: int) -> tuple[Buffer | None, int]:
    """Return a buffer and a byte in it; for temporary buffers None and a byte in the workspace."""
    if buffer in lowered.workspace:
        return None, lowered.workspace[buffer] + offset * buffer.itemsize
    return buffer, offset * buffer.itemsize


def _advances(lowered: Lowered, steps: list[list[_Pattern]], first: int, period: int, count: int) -> Iterator[Advance]:
    """Yield how each region of a loop's body changes."""
    for k in range(period):
        for same in zip(*steps[first + k :: period][:count]):
            memory: dict[Buffer, int | list[tuple[Buffer, int]]] = {}
            for elements in zip(*(p.places for p in same)):
                buffer, offset = elements[0]
                places = tuple([_place(lowered, *element) for element in elements])
                if _breaks(places, 1):
                    memory[buffer] = [(b, at - offset) for b, at in elements]
                elif places[0] != places[1]:
                    memory[buffer] = (places[1][1] - places[0][1]) // buffer.itemsize
            before, after = same[0].numbers, same[1].numbers
            literals = {}
            for position, values in enumerate(zip(*(p.literals for p in same))):
                if len(set(map(_literal, values))) > 1:
                    literals[position] = list(values)
            yield Advance(memory, {a: b - a for a, b in zip(before, after) if a != b}, literals)


# -- regions as patterns -----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Pattern:
    """A region without what may differ in another step.

    Attributes
    ----------
    key : hashable
        Equal for regions that have the same text.
    numbers : list of int
        Different lengths and strides that may be arguments of the text.
    places : list of (Buffer, int)
        The buffers, each with one of the offsets at which the region reads or writes them.
    literals : list
        The numbers among the operands.
    """

    key: Any
    numbers: list[int]
    places: list[tuple[Buffer, int]]
    literals: list[Any]


def _pattern(lowered: Lowered, region: Region) -> _Pattern:
    if isinstance(region, Control):  # equal to no other
        return _Pattern(id(region), [], [], [])
    if isinstance(region, Nest):
        writer = _Writer(is_fixed=region.pieces > 1 or any(map(_needs_same_lengths, region.body)))
        writer.events.append(("nest", region.pieces))
        write_nest(lowered, region, writer)
    else:
        writer = _Writer(is_fixed=True)
        if isinstance(region, Product):
            views = [region.a, region.b, region.target]
        else:
            views = [region.key]
        what = region.adds if isinstance(region, Product) else region.length
        writer.events.append((region.__class__, what, *((v.shape, v.strides, writer.element(v.buffer, v.offset, [])) for v in views)))
    return _Pattern(tuple(writer.events), list(writer.numbers), list(writer.places.items()), writer.literals)


def _needs_same_lengths(s: Statement) -> bool:
    """Return whether a statement computes something else, or to other bits, if the lengths in its text are arguments."""
    is_sum = s.kind == "reduce" and s.op == "sum" and s.out.dtype.name in FLOATS
    return is_sum or any(isinstance(x, Indexed) for x in (*s.args, s.target))


class _Writer:
    """A dialect that records the calls of its methods. Values are the positions of calls.

    Parameters
    ----------
    is_fixed : bool
        Whether all lengths and strides are part of the record, instead of arguments.
    """

    def __init__(self, *, is_fixed: bool) -> None:
        self.is_fixed = is_fixed
        self.events: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.places: dict[Buffer, int] = {}
        self.order: dict[Buffer, int] = {}
        self.literals: list[Any] = []

    def record(self, *event: Any) -> int:
        self.events.append(event)
        return -len(self.events)  # NB: lengths are not negative

    def argument(self, number: int) -> Any:
        """Return a length or a stride if it is part of the record, else what stands for its value."""
        if self.is_fixed or abs(number) <= SMALL:
            return number
        return "+" if number > 0 else "-", self.numbers.setdefault(number, len(self.numbers))

    def element(self, buffer: Buffer, offset: int, terms: list[tuple[Any, int]]) -> Any:
        """Return what stands for an element of memory: offsets in a buffer count from the first one."""
        first = self.places.setdefault(buffer, offset)
        place = self.order.setdefault(buffer, len(self.order))
        return place, offset - first, buffer.dtype, tuple([(counter, self.argument(stride)) for counter, stride in terms])

    # -- the methods of a dialect ----------------------------------------------------------------------------------------------

    def begin_statement(self, statement: Statement) -> None:
        """Do nothing: names do not matter."""

    def open_loop(self, start: Any, end: Any, step: int, *, vector: bool) -> int:
        return self.record("loop", start, end, step, vector)

    def close_loop(self) -> None:
        self.record("end")

    def piece(self, length: int) -> tuple[Any, Any, Any]:
        self.record("piece", length)
        return "start", "stop", "piece"

    def extent(self, length: int) -> Any:
        return self.argument(length)

    def chunk_end(self, start: Any, chunk: int, end: Any) -> int:
        return self.record("chunk", start, chunk, end)

    def load(self, buffer: Buffer, offset: int, terms: list[tuple[Any, int]]) -> int:
        return self.record("load", self.element(buffer, offset, terms))

    def store(self, buffer: Buffer, offset: int, terms: list[tuple[Any, int]], value: Any) -> None:
        self.record("store", self.element(buffer, offset, terms), value)

    def wrap_index(self, index: Any, dtype: str, length: int) -> int:
        return self.record("index", index, dtype, length)

    def number(self, value: Any, dtype: str) -> Any:
        return _literal(value), dtype

    def compute(self, op: str, dtype: str, args: list[Any], kinds: list[Any]) -> int:
        given = []
        for x, kind in zip(args, kinds):
            if kind is None:
                self.literals.append(x)
                x = "number" if can_be_argument(x, op, kinds) else _literal(x)
            given.append(x)
        return self.record(op, dtype, *given, *kinds)

    def new_accumulator(self, dtype: str, value: Any) -> int:
        return self.record("accumulator", dtype, value)

    def accumulate(self, accumulator: Any, op: str, dtype: str, value: Any) -> None:
        self.record("accumulate", accumulator, op, dtype, value)

    def accumulated(self, accumulator: Any, dtype: str) -> int:
        return self.record("accumulated", accumulator, dtype)


def _literal(x: Any) -> Any:
    """Return what is equal for equal numbers of the same class only: the sign of zero counts, and nan is equal to itself."""
    return x.__class__.__name__, repr(x)
