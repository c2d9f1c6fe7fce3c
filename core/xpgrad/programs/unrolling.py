"""Replace the loops of a program by their steps, for what runs programs without loops."""

from __future__ import annotations

from typing import Any

from xpgrad.errors import CaptureError
from xpgrad.programs.program import Operation, Program, Variable, substitute

__all__ = ["can_unroll", "unroll_scans"]


class _Known(dict[Variable, Variable]):
    """The variables that replace those of a step; others replace themselves."""

    def __missing__(self, v: Variable) -> Variable:
        return v


def can_unroll(program: Program) -> bool:
    """Return whether a program has no loops or branches other than scans."""
    return all(o.name == "scan" and all(map(can_unroll, o.options["inner"].programs)) for o in program.operations if "inner" in o.options)


def unroll_scans(program: Program) -> Program:
    """Return an equivalent program without the operation ``scan``; its size is proportional to the numbers of steps.

    Raises
    ------
    CaptureError
        The program has another loop or a branch.
    """
    for o in program.operations:
        if "inner" in o.options and o.name != "scan":
            what = "branch" if o.name == "branch" else "loop"
            msg = (
                f"this function has a {what} that depends on values of its arguments, and what it is compiled for has no such {what}; use "
                "`xpgrad.func.scan` and `xpgrad.where`"
            )
            raise CaptureError(msg)
    if all(o.name != "scan" for o in program.operations):
        return program
    constants = dict(program.constants)
    operations: list[Operation] = []
    same = _Known()
    for operation in program.operations:
        options = {k: substitute(x, same.__getitem__) for k, x in operation.options.items()}
        operation = operation.replace(args=substitute(operation.args, same.__getitem__), options=options)
        if operation.name == "scan":
            same.update(zip(operation.results, _unroll(operation, operations, constants)))
        else:
            operations.append(operation)
    return Program(program.inputs, constants, operations, [same[v] for v in program.outputs])


def _unroll(operation: Operation, operations: list[Operation], constants: dict[Variable, Any]) -> list[Variable]:
    """Append the operations of all steps, and return the variables of the results."""
    steps = operation.options["inner"]
    body = unroll_scans(steps.program)
    constants.update(body.constants)
    init, xs, shared = operation.args
    carry, rows = list(init), []

    def add(name: str, args: tuple[Any, ...], options: dict[str, Any], shape: tuple[int, ...], like: Variable) -> Variable:
        out = Variable(shape, like.dtype)
        operations.append(Operation(name, args, options, (out,), line=operation.line, backward=operation.backward))
        return out

    for k in steps.order:
        slices = [add("index_basic", (x, (k,)), {}, x.shape[1:], x) for x in xs]
        known = _Known(zip(body.inputs, [*carry, *slices, *shared]))
        for o in body.operations:
            results = tuple([Variable(v.shape, v.dtype, v.name) for v in o.results])
            options = {name: substitute(x, known.__getitem__) for name, x in o.options.items()}
            operations.append(o.replace(args=substitute(o.args, known.__getitem__), options=options, results=results))
            known.update(zip(o.results, results))
        out = [known[v] for v in body.outputs]
        carry = out[: steps.count]
        rows.append(out[steps.count :])
    if steps.reverse:
        rows.reverse()
    stacked = []
    for k, v in enumerate(operation.results[steps.count :]):
        stacked.append(add("stack", ([row[k] for row in rows],), {"axis": 0}, v.shape, v))
    return [*carry, *stacked]
