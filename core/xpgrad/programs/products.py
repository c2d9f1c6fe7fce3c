"""Group independent products of large matrices into one operation, which several threads compute.

In a backward pass such products come in pairs: both gradients of a product are products with the same cotangent. Operations on which a
later product of the group depends, and which depend on no product of the group, run before it.
"""

from __future__ import annotations

import math

from xpgrad.programs.program import Operation, Program, Variable

__all__ = ["Products", "side_by_side"]

_LEAST = 1 << 21  # multiplications: a few hundred microseconds, beside some tens for handing a call to a thread
_AHEAD = 64  # operations that are looked at for one more


class Products(Operation):
    """Independent matrix products as one operation, with all their operands and results.

    Attributes
    ----------
    body : list of Operation
    """

    __slots__ = ("body",)

    body: list[Operation]

    def __init__(self, body: list[Operation]) -> None:
        args = tuple(v for operation in body for v in operation.operands())
        results = tuple(operation.out for operation in body)
        super().__init__("products", args, {}, results, several=True, line=body[0].line, backward=body[0].backward)
        self.body = body


def side_by_side(program: Program, threads: int, least: int = _LEAST) -> Program:
    """Return a program in which independent products of large matrices are grouped.

    Parameters
    ----------
    program : Program
    threads : int
        The largest number of products in a group.
    least : int
        The smallest number of multiplications for which a thread pays off.
    """
    every = program.operations
    order: list[Operation] = []
    taken: set[int] = set()
    for k, operation in enumerate(every):
        if k in taken:
            continue
        group = [k, *_find_independent(every, k, taken, threads, least)] if _is_large(operation, least) else [k]
        if len(group) == 1:
            order.append(operation)
            continue
        early = _find_dependent(every, group, taken)
        order += [every[j] for j in early]
        order.append(Products([every[j] for j in group]))
        taken.update(early, group)
    return Program(program.inputs, program.constants, order, program.outputs)


def _is_large(operation: Operation, least: int) -> bool:
    if operation.name != "matmul" or not operation.out.shape:
        return False
    return math.prod(operation.out.shape) * operation.args[0].shape[-1] >= least


def _find_independent(every: list[Operation], k: int, taken: set[int], threads: int, least: int) -> list[int]:
    """Return the positions of products after the `k`-th operation that depend neither on it nor on each other.

    Parameters
    ----------
    every : list of Operation
    k : int
    taken : set of int
        Positions of operations that are in other groups.
    threads : int
        The largest number of products, including the `k`-th.
    least : int
        The smallest number of multiplications of a product that counts.
    """
    found: list[int] = []
    dependent: set[Variable] = {every[k].out}
    for j in range(k + 1, min(k + _AHEAD, len(every))):
        operation = every[j]
        if len(found) == threads - 1 or operation.backward != every[k].backward:
            break
        if j in taken:
            continue
        if any(v in dependent for v in operation.operands()):
            dependent.update(operation.results)
        elif _is_large(operation, least):
            found.append(j)
            dependent.add(operation.out)
    return found


def _find_dependent(every: list[Operation], group: list[int], taken: set[int]) -> list[int]:
    """Return the positions of operations between the products of a group on which one of them depends, in order, without those `taken`."""
    wanted = {v for j in group for v in every[j].operands()}
    found = []
    for j in range(group[-1] - 1, group[0], -1):
        if j not in taken and j not in group and any(v in wanted for v in every[j].results):
            found.append(j)
            wanted.update(every[j].operands())
    return found[::-1]
