"""Print a loop whose number of steps is not known, and passes over its steps, in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xpgrad.programs.naming import Names
from xpgrad.programs.program import Operation, Passes, Variable

__all__ = ["unwind_lines"]


def unwind_lines(
    operation: Operation, functions: Sequence[str], loop: tuple[Sequence[str], ...], starts: Sequence[Sequence[str]],
    read: Sequence[Sequence[str]], names: Names, results: Mapping[Variable, str],
) -> list[str]:  # fmt: skip
    """Return the lines of an operation ``unwind``.

    Parameters
    ----------
    operation : Operation
    functions : sequence of str
        The names of the functions that compute the inner programs.
    loop : tuple of three sequences of str
        The first carry, and what the test and the step read besides the carry.
    starts, read : sequence of sequences of str
        The first state of each pass, and what it reads besides its state and the row of a step.
    names : Names
    results : mapping
        The names of the operation's results.
    """
    passes: Passes = operation.options["inner"]
    (test, step, *others), (init, tested, shared) = functions, loop
    carry, rows = names.new("carry"), names.new("rows")
    lines = [
        f"{carry}, {rows} = {_tuple(init)}, []",
        f"while {test}({', '.join([f'*{carry}', *tested])})[0]:",
        f"    {rows}.append({carry})",
        f"    {carry} = {step}({', '.join([f'*{carry}', *shared])})",
    ]
    last = iter(operation.results)
    for number, (function, count, start, used) in enumerate(zip(others, passes.counts, starts, read), start=1):
        reverse = passes.reverse[number - 1]
        state = names.new("state")
        lines.append(f"{state} = {_tuple(start)}")
        if number == len(others):  # nothing reads the rows after it
            row = names.new("row")
            lines.append(f"for {row} in {f'reversed({rows})' if reverse else rows}:")
            lines.append(f"    {state} = {function}({', '.join([f'*{state}', f'*{row}', *used])})")
        else:
            k, found = names.new("k"), names.new("found")
            order = f"range(len({rows}))"
            lines.append(f"for {k} in {f'reversed({order})' if reverse else order}:")
            lines.append(f"    {found} = {function}({', '.join([f'*{state}', f'*{rows}[{k}]', *used])})")
            further = [f"*{found}[{count}:]"] if len(passes.programs[number + 1].outputs) > count else []
            lines.append(f"    {rows}[{k}] = ({', '.join([f'*{rows}[{k}]', f'*{state}', *further])})")
            lines.append(f"    {state} = {found}{f'[:{count}]' if further else ''}")
        kept = [results[next(last)] for _ in range(count)]
        if kept:
            lines.append(f"{', '.join(kept)}, = {state}")
    return lines


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if items else ''})"
