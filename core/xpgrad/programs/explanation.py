"""Explain to people what becomes of a program as machine code: its regions, why they are apart, and what each costs at least."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from xpgrad.programs.lowering import lower
from xpgrad.programs.native.parts import divide
from xpgrad.programs.program import Operation, Part, Program
from xpgrad.programs.regions import Check, Indexed, Lowered, Nest, Product, Region, Repeat, Unsupported
from xpgrad.programs.scalars import SCALARS
from xpgrad.programs.simplify import with_numbers

__all__ = ["explain_program"]

#: What a core of a usual machine does in a nanosecond: bytes to or from memory, operations of loops and of BLAS, functions such as `exp`.
_RATES = {"memory": 10.0, "arithmetic": 4.0, "products": 40.0, "functions": 0.3}


#: What the report calls loops and branches, before the reports on the programs that they run.
_INNER = {
    "scan": "loop of {0.length} steps, each of which has",
    "while": "loop that runs while a test holds; the test and the step have",
    "unwind": "loop whose steps other loops go through again; the test, the step and the steps of these loops have",
    "branch": "one of two branches, which have",
}


def explain_program(program: Program, products: bool = True) -> str:
    """Return a report on a program, one line for each region of machine code and each call of NumPy.

    Parameters
    ----------
    program : Program
    products : bool
        Whether machine code can multiply matrices, which takes SciPy.
    """
    program = with_numbers(program)
    lines: list[str] = []
    numbers: dict[int, int] = {}  # of the lines, by the identities of regions
    depths: dict[int, str] = {}  # how the lines of regions in loops are indented
    counts, loops = {True: 0, False: 0}, 0
    for item, lowered in _pieces(program, products):
        if isinstance(item, Repeat):
            lines.append(f"{len(lines) + 1:3}. {item}, each of which has")
            loops += 1
            depths = {id(region): "     " for region in item.body}
            continue
        if lowered is None and "inner" in item.options:
            inner = item.options["inner"]
            title = _INNER[item.name].format(inner)
            reports = [explain_program(program, products).replace("\n", "\n     ") for program in inner.programs]
            lines.append(f"{len(lines) + 1:3}. {title}\n     " + "\n     ".join(reports))
            continue
        native = lowered is not None
        counts[native] += 1
        numbers[id(item)] = len(lines) + 1
        number = f"{depths.get(id(item), '')}{len(lines) + 1:3}. "
        if lowered is None:
            assert isinstance(item, Operation)
            why = _why_not(item, products)
            lines.append(f"{number}NumPy: {item.name} -> {item.results[0].shape if item.results else ()}{f' ({why})' if why else ''}")
        else:
            lines.append(f"{number}{item!s}; {_cost(item, lowered)}{_why_apart(item, lowered, numbers)}")
    found = f", partly in {loops} loop{'s' if loops > 1 else ''}" if loops else ""
    head = f"{len(program)} operations: {counts[True]} regions of machine code{found}, {counts[False]} calls of NumPy"
    return "\n".join([head, *lines])


def _pieces(program: Program, products: bool) -> Iterator[tuple[Any, Lowered | None]]:
    """Yield the regions of a program with their lowered programs, and the operations that stay NumPy's with None.

    The regions of a loop follow the loop.
    """
    try:
        lowered = lower(program, products)
    except Unsupported:
        for operation in divide(program, products).operations:
            if isinstance(operation, Part):
                yield from _pieces(operation.program, products)
            else:
                yield operation, None
    else:
        for region in lowered.regions:
            yield region, lowered
            if isinstance(region, Repeat):
                yield from ((inside, lowered) for inside in region.body)


def _why_not(operation: Operation, products: bool) -> str:
    """Return why an operation has no machine code; empty if it has."""
    try:
        lower(Program(list(dict.fromkeys(operation.operands())), {}, [operation], list(operation.results)), products)
    except Unsupported as exc:
        return f"no machine code for {exc}"
    return ""


def _why_apart(region: Region, lowered: Lowered, numbers: dict[int, int]) -> str:
    """Explain why a nest was not fused with the earlier regions that compute its inputs; empty without them and for other regions."""
    if not isinstance(region, Nest):
        return ""
    needed = {token for s in region.body for token in s.reads}
    reasons = []
    every = list(lowered.every_region())
    for other in every[: every.index(region)]:
        made = {s.makes for s in other.body} if isinstance(other, Nest) else {other.makes}
        if made & needed:
            if not isinstance(other, Nest):
                reasons.append(f"waits for region {numbers[id(other)]}")
            elif other.domain != region.domain:
                reasons.append(f"has other loops than region {numbers[id(other)]}")
            else:
                reasons.append(f"needs all of region {numbers[id(other)]}")
    return f"; {', '.join(reasons)}" if reasons else ""


def _cost(region: Region, lowered: Lowered) -> str:
    """Return what a region moves and computes, and what bounds its time."""
    read, written = _traffic(region, lowered)
    arithmetic = products = functions = 0
    if isinstance(region, Product):
        (*_, m, k), n = region.a.shape, region.b.shape[-1]
        products = 2 * m * k * n * (region.a.shape[0] if len(region.a.shape) == 3 else 1)
    elif isinstance(region, Nest):
        size = math.prod(region.domain)
        functions = size * sum(s.op in SCALARS and SCALARS[s.op].form in ("function", "precise") for s in region.body)
        arithmetic = size * len(region.body) - functions
    elif isinstance(region, Check):
        arithmetic = 2 * math.prod(region.key.shape)
    counts = {"memory": read + written, "arithmetic": arithmetic, "products": products, "functions": functions}
    times = {name: count / _RATES[name] for name, count in counts.items()}
    bound = max(times, key=lambda name: times[name])
    counted = f"{arithmetic + products} operations" + (f", {functions} functions" if functions else "")
    return f"{_bytes(read)} read, {_bytes(written)} written, {counted}: at least {times[bound] / 1000:.2f} us, bound by {bound}"


def _traffic(region: Region, lowered: Lowered) -> tuple[int, int]:
    """Return the bytes that a region reads from and writes to memory."""
    read: dict[Any, int] = {}
    written: dict[Any, int] = {}

    def note(found: dict[Any, int], view: Any) -> None:
        size = math.prod(n for n, s in zip(view.shape, view.strides) if s)
        found[view.part] = max(found.get(view.part, 0), min(size, view.buffer.size) * view.buffer.itemsize)

    if isinstance(region, Product):
        for view in (region.a, region.b, *([region.target] if region.adds else [])):
            note(read, view)
        note(written, region.target)
    elif isinstance(region, Check):
        note(read, region.key)
    elif isinstance(region, Nest):
        own = {s.out for s in region.body if s.kind == "assign"}
        for s in region.body:
            for a in s.args:
                if isinstance(a, Indexed):
                    found = math.prod(region.domain) * a.view.buffer.itemsize
                    read[a.view.part] = max(read.get(a.view.part, 0), found)
                elif a in lowered.views and a not in own:
                    note(read, lowered.views[a])
            if s.kind != "assign" or s.out in lowered.stored:
                note(written, s.memory)
    return sum(read.values()), sum(written.values())


def _bytes(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
