"""Fuse operations on large arrays into loops over blocks that fit the cache.

A loop runs along the first axis, a few rows at a time. Elementwise operations and reductions over other axes are local to a block. Sums
over the first axis are accumulated, and known after the loop. Operands that broadcast along the first axis are the same for every block.
Arrays with few, long rows are flattened, if all operands have the full shape.

Operations need not be adjacent to share a loop: operations that are ready and do not fit a loop run first; then a loop takes all operations
that become ready by its own results. So forward and backward form one loop unless a total separates them.
"""

from __future__ import annotations

import math
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from xpgrad.programs.program import Operation, Program, Variable

__all__ = ["Loop", "fuse_loops"]

#: ("rows", length) or ("flat", shape).
Domain: TypeAlias = "tuple[str, Any]"
_CACHE = 1 << 20  # bytes
_LEAST = 1024


class Loop(Operation):
    """Operations that run block by block, as one operation: its operands are read by them, and its results are used outside the loop.

    Attributes
    ----------
    body : list of Operation
    domain : ("rows", length) or ("flat", shape)
        What is divided into blocks: the first axis, or flattened arrays of one shape.
    rows : int
        The number of rows, or of elements, in a block.
    """

    __slots__ = ("body", "domain", "rows")

    body: list[Operation]
    domain: Domain
    rows: int

    def __init__(self, body: list[Operation], domain: Domain, rows: int, results: tuple[Variable, ...]) -> None:
        made = {operation.out for operation in body}
        args = tuple(dict.fromkeys(v for operation in body for v in operation.operands() if v not in made))
        super().__init__("loop", args, {}, results, several=True, backward=all(o.backward for o in body))
        self.body, self.domain, self.rows = body, domain, rows

    @property
    def length(self) -> int:
        """The number of rows or elements to divide into blocks."""
        kind, extent = self.domain
        return extent if kind == "rows" else math.prod(extent)

    def is_cut(self, operation: Operation, v: Variable) -> bool:
        """Return whether an operation of the body reads a block of `v`, and not all of it."""
        return _is_cut(self.domain, operation, v)

    def is_total(self, operation: Operation) -> bool:
        """Return whether the result of an operation is known only after the loop."""
        return _is_total(self.domain, operation)


def fuse_loops(program: Program, block: int = 8192, threshold: int = 32768) -> Program:
    """Return a program with fused loops.

    Parameters
    ----------
    program : Program
    block : int
        The approximate number of elements in a block.
    threshold : int
        The smallest number of elements for which a loop pays off.
    """
    domains = _domains(program, block, threshold)
    if not domains:
        return program
    schedule = _Schedule(program, domains, block, threshold)
    return Program(program.inputs, program.constants, schedule.run(), program.outputs)


# -- which operations can be in a loop ----------------------------------------------------------------------------------


def _domains(program: Program, block: int, threshold: int) -> dict[Operation, Domain]:
    """Return the domain of each operation that can be in a loop of blocks of `block` elements; empty if all are below `threshold`."""
    found: dict[Operation, Domain] = {}
    large: set[Domain] = set()
    for operation in program.operations:
        shape = _extent(operation)
        if shape is None:
            continue
        domain = _domain(operation, shape, block)
        if domain is not None:
            found[operation] = domain
            if math.prod(shape) >= threshold:
                large.add(domain)
    return {operation: domain for operation, domain in found.items() if domain in large}


def _extent(operation: Operation) -> tuple[int, ...] | None:
    """Return the shape over which an operation iterates; None if it cannot run in blocks."""
    name = operation.name
    if operation.several or operation.options:
        return None
    facts = operation.facts
    if facts.blockwise:
        return operation.out.shape
    if facts.accumulates or name == "reshape_to":
        return operation.args[0].shape
    if name == "gather":
        x, key = operation.args
        key = key[0] if key.__class__ is tuple and len(key) == 1 else key
        if key.__class__ is Variable and key is not x and key.dtype.name != "bool" and len(key.shape) == 1:
            return operation.out.shape
    return None


def _domain(operation: Operation, shape: tuple[int, ...], block: int) -> Domain | None:
    if not shape or shape[0] < 2 or 0 in shape:
        return None
    name = operation.name
    row = math.prod(shape[1:])
    if row <= 2 * block:
        domain: Domain = ("rows", shape[0])
        if name == "reshape_to" and operation.out.shape[:1] != shape[:1]:
            return None
    else:
        domain = ("flat", shape)
        if operation.facts.blockwise:
            if any(v.shape not in ((), shape) for v in operation.operands()):
                return None
        elif name != "reduce_sum" or operation.args[1] is not None:
            return None
    if operation.facts.accumulates and _is_total(domain, operation):
        dtype = operation.out.dtype
        if name != "reduce_sum" or not dtype.differentiable or dtype.itemsize < 4:
            return None
    return domain


def _is_total(domain: Domain, operation: Operation) -> bool:
    if not operation.facts.accumulates:
        return False
    x, axes, _ = operation.args
    return axes is None or domain[0] == "flat" or any(a % len(x.shape) == 0 for a in axes)


def _is_cut(domain: Domain, operation: Operation, v: Variable) -> bool:
    kind, extent = domain
    if kind == "flat":
        return v.shape == extent
    if operation.name == "gather":
        return v is not operation.args[0]
    if operation.facts.blockwise:
        return len(v.shape) == len(operation.out.shape) and v.shape[0] == extent
    return True


# -- the order ----------------------------------------------------------------------------------------------------------


def _block_size(body: list[Operation]) -> int:
    """Return the number of elements in a block for which all live results of a loop fit the cache, with a lower bound."""
    last: dict[Variable, int] = {}
    for k, operation in enumerate(body):
        for v in (*operation.operands(), operation.out):
            last[v] = k
    alive = most = 0
    seen: set[Variable] = set()
    for k, operation in enumerate(body):
        for v in {*operation.operands(), operation.out} - seen:
            alive += v.dtype.itemsize
            seen.add(v)
        most = max(most, alive)
        alive -= sum(v.dtype.itemsize for v in {*operation.operands(), operation.out} if last[v] == k)
    return max(_CACHE // max(most, 1), _LEAST)


class _Schedule:
    """The scheduler that orders operations and forms loops; it tracks which operations wait for which results."""

    def __init__(self, program: Program, domains: dict[Operation, Domain], block: int, threshold: int) -> None:
        self.program, self.domains, self.block, self.threshold = program, domains, block, threshold
        self.all = program.operations
        self.readers: dict[Variable, list[int]] = {}
        made = {v for operation in self.all for v in operation.results}
        self.waits: list[int] = []
        for k, operation in enumerate(self.all):
            operands = {v for v in operation.operands() if v in made}
            self.waits.append(len(operands))
            for v in operands:
                self.readers.setdefault(v, []).append(k)
        self.outputs = set(program.outputs)
        self.plain: list[int] = []  # ready, and not for a loop
        self.candidates: list[int] = []  # ready, and for a loop
        self.put_off: set[int] = set()
        self.order: list[Operation] = []

    def run(self) -> list[Operation]:
        for k, waits in enumerate(self.waits):
            if not waits:
                self.ready(k)
        while self.plain or self.candidates:
            if self.plain:
                operation = self.all[heappop(self.plain)]
                self.order.append(operation)
                for v in operation.results:
                    for k in self.mark_computed(v):
                        self.ready(k)
            else:
                self.loop(self.domains[self.all[self.candidates[0]]])
        return self.order

    def ready(self, k: int) -> None:
        heappush(self.candidates if self.all[k] in self.domains else self.plain, k)

    def mark_computed(self, v: Variable) -> list[int]:
        """Mark `v` as computed; return the positions of the operations that are ready now."""
        found = []
        for k in self.readers.get(v, ()):
            self.waits[k] -= 1
            if not self.waits[k]:
                found.append(k)
        return found

    def loop(self, domain: Domain) -> None:
        """Form a loop of all ready operations of a domain, and of those that become ready by its results.

        If fewer than two of them are large, they are appended without a loop.
        """
        domains, every = self.domains, self.all
        queue = [k for k in self.candidates if domains[every[k]] == domain]
        self.candidates = [k for k in self.candidates if domains[every[k]] != domain]
        heapify(self.candidates)
        heapify(queue)
        group: list[int] = []
        local: set[Variable] = set()
        later: list[int] = []
        while queue:
            k = heappop(queue)
            operation = every[k]
            if any(v in local and not _is_cut(domain, operation, v) for v in operation.operands()):
                later.append(k)  # it needs the whole of what the loop makes
                continue
            group.append(k)
            if _is_total(domain, operation):
                continue
            local.add(operation.out)
            for other in self.mark_computed(operation.out):
                if domains.get(every[other]) == domain:
                    heappush(queue, other)
                else:
                    later.append(other)
        for k in group:
            if _is_total(domain, every[k]):
                later += self.mark_computed(every[k].out)
        group, back = self.move_later(group, domain)
        body = [every[k] for k in group]
        size = sum(math.prod(_extent(o) or ()) >= self.threshold for o in body)
        if size < 2:
            self.order += body
        else:
            self.order += self.make_loop(body, domain)
        for k in back:
            self.put_off.add(k)
            for other in self.readers.get(every[k].out, ()):
                self.waits[other] += 1
        for k in [*later, *back]:
            if not self.waits[k]:
                self.ready(k)

    def move_later(self, group: list[int], domain: Domain) -> tuple[list[int], list[int]]:
        """Return the positions that stay in a group, and those that move to a later loop, which saves memory.

        Operations move, once each, if they use nothing of this loop, and only later operations of the domain read them.
        """
        every = self.all
        inside = set(group)
        made = {every[k].out for k in group}
        back = []
        for k in reversed(group):
            out = every[k].out
            readers = self.readers.get(out, ())
            if (
                k not in self.put_off
                and out not in self.outputs
                and not _is_total(domain, every[k])
                and readers
                and all(other not in inside and self.domains.get(every[other]) == domain for other in readers)
                and not any(v in made for v in every[k].operands())
            ):
                inside.discard(k)
                made.discard(out)
                back.append(k)
        return [k for k in group if k in inside], back

    def make_loop(self, body: list[Operation], domain: Domain) -> list[Operation]:
        """Return the operations of a group in order: some small ones, the loop, and other small ones.

        Those before it use nothing of the loop, and those after it make nothing that the loop reads.
        """
        before, after = [], []
        made = {o.out for o in body}
        outside: dict[Operation, None] = {}
        for operation in body:  # small, and independent of the loop
            if math.prod(_extent(operation) or ()) < self.threshold and not any(v in made for v in operation.operands()):
                before.append(operation)
                made.discard(operation.out)
                outside[operation] = None
        read = {v for o in body if o not in outside for v in o.operands()}
        for operation in reversed(body):
            if operation not in outside and math.prod(_extent(operation) or ()) < self.threshold and operation.out not in read:
                after.append(operation)
                outside[operation] = None
                read = {v for o in body if o not in outside for v in o.operands()}
        body = [o for o in body if o not in outside]
        inside = dict.fromkeys(body)
        results = tuple(o.out for o in body if o.out in self.outputs or any(self.all[k] not in inside for k in self.readers.get(o.out, ())))
        kind, extent = domain
        length = extent if kind == "rows" else math.prod(extent)
        row = 1 if kind == "flat" else max(math.prod((_extent(o) or ())[1:]) for o in body)
        rows = min(max(min(self.block, _block_size(body)) // row, 1), length)
        return [*before, Loop(body, domain, rows, results), *after[::-1]]
