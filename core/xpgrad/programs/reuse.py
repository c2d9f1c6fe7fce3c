"""Plan memory: which results may overwrite dead arrays, and which outputs would share memory that the caller must not see.

A result of a *fresh* kernel owns its memory, and known views keep that alive. An operation may write to memory that the program owns after
the last operation that reads it or a view of it, or while it reads it itself: NumPy's elementwise functions accept an operand as `out=`,
and copy first if another operand overlaps. Inputs, constants, memory shared with an output, 0-d results (NumPy scalars are immutable) and
results of unknown kernels are never overwritten.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from xpgrad.programs.program import Operation, Program, Variable

__all__ = ["Reuse", "has_out", "reuse"]

_LARGE = 1 << 17  # bytes: less than this is freed and allocated again for next to nothing


@dataclass
class Reuse:
    """The memory plan that `reuse` returns.

    Attributes
    ----------
    into : dict
        For an operation, the variable whose memory its result reuses.
    dropped : dict
        For an operation, large variables (and views of them) that are dead after it and whose memory is not reused.
    copied : list of bool
        For each output, whether it must be copied: it is read-only, or shares memory with an input, a constant or another output.
    """

    into: dict[Operation, Variable] = field(default_factory=dict)
    dropped: dict[Operation, list[Variable]] = field(default_factory=dict)
    copied: list[bool] = field(default_factory=list)


def reuse(program: Program, large: int = _LARGE) -> Reuse:
    """Decide which memory each result may reuse.

    Parameters
    ----------
    program : Program
    large : int
        The size in bytes above which memory is kept for later results, or freed early.
    """
    roots, owned, read_only = _memory(program)
    last: dict[Variable, float] = {}
    for k, operation in enumerate(program.operations):
        for v in operation.results:  # what nobody reads is free at once
            last.setdefault(v, k)
        for v in operation.operands():
            for root in roots[v]:
                last[root] = k
    for v in program.outputs:
        for root in roots[v]:
            last[root] = math.inf
    found = Reuse()
    dying: dict[float, list[Variable]] = {}
    for root, end in last.items():
        if root in owned and root.shape:
            dying.setdefault(end, []).append(root)
    pool: dict[tuple[tuple[int, ...], object], list[tuple[Variable, Operation]]] = {}
    for k, operation in enumerate(program.operations):
        facts = operation.facts
        taken = None
        if facts.updates:
            buffer = operation.args[0]
            others = [root for v in operation.operands()[1:] for root in roots[v]]
            if buffer in owned and buffer.shape and last[buffer] == k and buffer not in others:
                taken = buffer
        elif has_out(operation) and not operation.several and operation.out.shape:
            out = operation.out
            if facts.ufunc is not None:
                for v in operation.operands():
                    if v in owned and v.shape == out.shape and v.dtype is out.dtype and last[v] == k:
                        taken = v
                        break
            if taken is None and _bytes(out) >= large:
                free = pool.get((out.shape, out.dtype))
                if free:
                    taken = free.pop()[0]
        if taken is not None:
            found.into[operation] = taken
        for v in dying.get(k, ()):
            if v is not taken and _bytes(v) >= large:
                pool.setdefault((v.shape, v.dtype), []).append((v, operation))
    given_back = {v: operation for free in pool.values() for v, operation in free}
    if given_back:
        for v, mine in roots.items():  # views, too, keep it
            for root in mine:
                if root in given_back:
                    found.dropped.setdefault(given_back[root], []).append(v)
    seen: set[Variable] = set()
    for v in program.outputs:
        mine = roots[v]
        found.copied.append(v in read_only or any(root not in owned or root in seen for root in mine))
        seen.update(mine)
    return found


def has_out(operation: Operation) -> bool:
    """Return whether NumPy's function for an operation computes the same bits with `out=`.

    Python's operator computes some powers differently from `numpy.power`, e.g. ``x ** 0.5`` as a square root.
    """
    return operation.facts.takes_out and (operation.name != "pow" or all(x.__class__ is Variable for x in operation.args))


def _memory(program: Program) -> tuple[dict[Variable, tuple[Variable, ...]], set[Variable], set[Variable]]:
    """Return the variables in whose memory each variable may lie, those that own their memory, and those that are read-only."""
    roots: dict[Variable, tuple[Variable, ...]] = {v: (v,) for v in (*program.inputs, *program.constants)}
    owned: set[Variable] = set()
    read_only: set[Variable] = set()
    for operation in program.operations:
        facts = operation.facts
        if facts.is_fresh:
            for v in operation.results:
                roots[v] = (v,)
            owned.update(operation.results)
        else:
            operands = operation.operands()
            if facts.is_view:
                operands = operands[:1]
            mine = tuple(dict.fromkeys(root for v in operands for root in roots[v]))
            for v in operation.results:
                roots[v] = mine if facts.is_view and mine else (*mine, v)  # an unknown kernel's results are nobody's, and themselves
                if facts.is_read_only or any(o in read_only for o in operands):
                    read_only.add(v)
    return roots, owned, read_only


def _bytes(v: Variable) -> int:
    return v.size * v.dtype.itemsize
