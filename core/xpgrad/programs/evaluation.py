"""Interpret programs on raw arrays, one kernel at a time: to fold constants, and to check printed text."""

from __future__ import annotations

import operator
from typing import Any

from xpgrad._basics.dtypes import DType
from xpgrad.backend import Backend
from xpgrad.programs.program import Inner, Operation, Passes, Program, Steps, Variable

__all__ = ["evaluate_program", "evaluator", "kernel_for"]


def kernel_for(backend: Backend, name: str) -> Any:
    """Return the function that computes an operation: the backend's kernel, or Python's operator for powers.

    NumPy's operator computes some powers differently from its function, e.g. ``x ** 0.5`` as a square root, and uncompiled calls use it.
    """
    if name == "pow" and backend.has_operator(name):
        return operator.pow
    found: Any = backend.kernels
    for part in name.split("."):
        found = getattr(found, part)
    return found


def evaluator(backend: Backend) -> Any:
    """Return ``evaluate(operation, values)`` for `simplify_program`; it runs one operation on operands from `values`."""
    kernels = backend.kernels

    def raw(x: Any, values: dict[Variable, Any]) -> Any:
        if x.__class__ is Variable:
            return values[x]
        if x.__class__ is tuple or x.__class__ is list:
            return x.__class__([raw(i, values) for i in x])
        return backend.raw_dtype(x) if isinstance(x, DType) else x

    def evaluate(operation: Operation, values: dict[Variable, Any]) -> list[Any]:
        if "inner" in operation.options:
            return run_inner[operation.name](operation.options["inner"], raw(operation.args, values))
        args = [raw(x, values) for x in operation.args]
        if operation.facts.writes:  # these may write to their first operand
            args[0] = kernels.copy(args[0])
        found = kernel_for(backend, operation.name)(*args, **{k: raw(x, values) for k, x in operation.options.items()})
        return list(found) if operation.several else [found]

    def run(program: Program, *inputs: Any) -> list[Any]:
        return evaluate_program(program, backend, [x for group in inputs for x in group])

    def run_steps(steps: Steps, args: Any) -> list[Any]:
        init, xs, shared = args
        carry, rows = list(init), []
        for k in steps.order:
            slices = [kernels.index_basic(x, (k,)) for x in xs]
            out = run(steps.program, carry, slices, shared)
            carry, ys = out[: steps.count], out[steps.count :]
            rows.append(ys)
        if steps.reverse:
            rows.reverse()
        return [*carry, *(kernels.stack(list(column), axis=0) for column in zip(*rows))]

    def run_while(inner: Inner, args: Any) -> list[Any]:
        (test, step), (carry, tested, shared) = inner.programs, args
        while run(test, carry, tested)[0]:
            carry = run(step, carry, shared)
        return list(carry)

    def run_unwind(passes: Passes, args: Any) -> list[Any]:
        (test, step, *programs), (carry, tested, shared, *others) = passes.programs, args
        rows: list[list[Any]] = []
        while run(test, carry, tested)[0]:
            rows.append(list(carry))
            carry = run(step, carry, shared)
        results = []
        for program, count, reverse, state, read in zip(programs, passes.counts, passes.reverse, others[::2], others[1::2]):
            for row in reversed(rows) if reverse else rows:
                found = run(program, state, row, read)
                row += [*state, *found[count:]]
                state = found[:count]
            results += state
        return results

    def run_branch(inner: Inner, args: Any) -> list[Any]:
        holds, *read = args
        k = 0 if holds else 1
        return run(inner.programs[k], read[k])

    run_inner: dict[str, Any] = {"scan": run_steps, "while": run_while, "unwind": run_unwind, "branch": run_branch}
    return evaluate


def evaluate_program(program: Program, backend: Backend, inputs: list[Any]) -> list[Any]:
    """Compute the outputs of a program for raw inputs, which are not overwritten."""
    evaluate = evaluator(backend)
    values = {**program.constants, **dict(zip(program.inputs, inputs))}
    for operation in program.operations:
        values.update(zip(operation.results, evaluate(operation, values)))
    return [values[v] for v in program.outputs]
