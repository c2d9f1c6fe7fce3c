"""Divide a program into parts for machine code, each as large as possible, and the operations between them.

An operation goes to machine code if it can be lowered alone. Views at the edge of a part stay operations, since NumPy makes no copy.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from xpgrad.programs.lowering import lower
from xpgrad.programs.numpy_text import numpy_source
from xpgrad.programs.program import Operation, Part, Program, Variable, change_inner, compile_inner
from xpgrad.programs.regions import Unsupported
from xpgrad.programs.simplify import with_numbers, without_dead_code
from xpgrad.programs.source import built

__all__ = ["can_lower", "compile_parts", "divide"]

_Function = Callable[..., tuple[Any, ...]]


#: The kinds of kernels whose results may be views.
_LAYOUT = frozenset(("expansion", "reshape", "transpose", "selection"))


def compile_parts(
    program: Program, backend: Any, whole: Callable[[Program], _Function], products: bool = True, threads: int | None = None
) -> _Function:
    """Compile a program, or else its parts, with calls of NumPy between them.

    Parameters
    ----------
    program : Program
    backend : Backend
    whole : callable
        Compiles a program; it raises Unsupported if the program has an operation that has no machine code.
    products : bool
        Whether machine code can multiply matrices.
    threads : int or None
        The number of threads for NumPy's operations.
    """
    program = with_numbers(program)
    try:
        return whole(program)
    except Unsupported:
        pass
    divided = divide(program, products)
    operations: list[Operation] = []
    for o in divided.operations:
        if isinstance(o, Part):
            try:
                o.function = whole(o.program)
            except Unsupported:  # each operation has machine code, but not all together
                operations += o.program.operations
                continue
        operations.append(o)
    divided = Program(divided.inputs, divided.constants, operations, divided.outputs)
    divided = change_inner(divided, lambda inside: inside)  # NB: the caller's program stays unchanged
    compile_inner(divided, lambda inside: compile_parts(inside, backend, whole, products, threads))
    return built(numpy_source(divided, threads=threads or 1), {"xp": backend.kernels}, backend.raw_dtype)


def divide(program: Program, products: bool = True) -> Program:
    """Return a program in which operations for machine code are grouped into parts.

    Parameters
    ----------
    program : Program
    products : bool
        Whether machine code can multiply matrices.
    """
    every = program.operations
    native = [can_lower(o, products) for o in every]
    made = {v: k for k, o in enumerate(every) for v in o.results}
    needed = [{made[v] for v in o.operands() if v in made} for o in every]
    readers: dict[int, list[int]] = {}
    for k, positions in enumerate(needed):
        for j in positions:
            readers.setdefault(j, []).append(k)
    waits = [len(positions) for positions in needed]
    ready: tuple[list[int], list[int]] = [], []  # the positions of operations for NumPy, and for machine code

    def put(k: int) -> None:
        heappush(ready[native[k]], k)

    def run(k: int) -> Operation:
        for j in readers.get(k, ()):
            waits[j] -= 1
            if not waits[j]:
                put(j)
        return every[k]

    for k, count in enumerate(waits):
        if not count:
            put(k)
    order: list[Operation] = []
    while ready[0] or ready[1]:
        while ready[0]:
            order.append(run(heappop(ready[0])))
        group = []
        while ready[1]:
            group.append(run(heappop(ready[1])))
        if group:
            order += _part_of(program, group)
    return Program(program.inputs, program.constants, order, program.outputs)


def can_lower(operation: Operation, products: bool = True) -> bool:
    """Return whether an operation has machine code."""
    try:
        lower(Program(list(dict.fromkeys(operation.operands())), {}, [operation], list(operation.results)), products)
    except Unsupported:
        return False
    return True


def _is_layout(operation: Operation) -> bool:
    return operation.facts.is_view and operation.facts.kind in _LAYOUT


def _part_of(program: Program, group: list[Operation]) -> list[Operation]:
    """Return a part of these operations, followed by the views of its results that others read; the group if a part would not pay."""
    inside = {v: o for o in group for v in o.results}
    members = set(group)
    outside = {v for o in program.operations if o not in members for v in o.operands()}.union(program.outputs)
    wanted: dict[Variable, None] = {}
    after: dict[Operation, None] = {}
    stack = [v for v in inside if v in outside]
    while stack:
        v = stack.pop()
        operation = inside[v]
        if not _is_layout(operation):
            wanted[v] = None
        elif operation not in after:
            after[operation] = None
            stack += [x for x in operation.operands() if x in inside]
    views = [o for o in group if o in after]
    body = without_dead_code(Program([], {}, group, list(wanted))).operations
    computing = [o for o in body if not _is_layout(o)]
    if not computing or (len(computing) == 1 and computing[0].name == "matmul"):
        return group
    reads = dict.fromkeys(v for o in body for v in o.operands() if v not in inside)
    constants = {v: program.constants[v] for v in reads if v in program.constants}
    return [Part(Program([v for v in reads if v not in constants], constants, body, list(wanted))), *views]
