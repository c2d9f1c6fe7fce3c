"""Print loops and branches of a program as functions of C, which call the functions of the programs that they run.

The functions return a status, as the exported function does: 0, 1 if an index is out of bounds, or 2 if there is no memory. What changes
from step to step lies in turns in the memory of the result and in spare memory. A loop whose steps are visited again keeps a row of
memory for each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.programs.c.identifiers import Identifiers
from xpgrad.programs.c.layout import wrapped
from xpgrad.programs.c.numbers import TYPES
from xpgrad.programs.program import Passes, Steps, Variable
from xpgrad.programs.regions import Control, Lowered
from xpgrad.programs.views import Buffer

__all__ = ["control_text"]

_DONE = "done:"
_ALIGNMENT = 16  # bytes, of the arrays in a row


def control_text(control: Control, functions: list[str]) -> str:
    """Return the text of the function of a loop or a branch, in which ``@NAME`` stands for its name.

    It takes the scratch memory, if there is any, then the operands, and then the results.

    Parameters
    ----------
    control : Control
    functions : list of str
        The names of the functions of its programs.
    """
    writer = _Writer(control, functions)
    _WRITERS[control.operation.name](writer)
    head = wrapped("static int @NAME(", writer.parameters, ")")
    return "\n".join([head, "{", *(f"    {line}" if line and line != _DONE else line for line in writer.lines), "}\n"])


class _Writer:
    """The lines of one function."""

    def __init__(self, control: Control, functions: list[str]) -> None:
        self.control, self.functions = control, functions
        self.names = Identifiers(*functions, "status", "step", "holds", "count", "capacity", "rows", "row", "visit", "more", "scratch")
        self.lines: list[str] = []
        self.parameters: list[str] = [] if control.scratch is None else ["uint8_t *scratch"]
        self.groups = [
            [self.parameter(buffer, v) for (buffer, _), v in zip(group, variables)]
            for group, variables in zip(control.arguments, _inputs(control))
        ]
        self.results = [self.parameter(buffer, v, "out") for buffer, v in zip(control.results, control.operation.results)]

    def parameter(self, buffer: Buffer, v: Variable, result: str = "") -> str:
        """Add a parameter, and return its name."""
        name = self.names.new(v.name or result or "x")
        self.parameters.append(f"{'' if result else 'const '}{TYPES[buffer.dtype]} *{name}")
        return name

    def put(self, *lines: str) -> None:
        """Add lines."""
        self.lines += lines

    def call(self, k: int, given: list[str], results: list[str]) -> str:
        """Return the call of the k-th function."""
        scratch = ["scratch"] if self.control.programs[k].workspace_size else []
        return f"{self.functions[k]}({', '.join([*scratch, *given, *results])})"

    def check(self, call: str, failed: list[str], indent: str = "    ") -> None:
        """Add a call, and what to do if it fails."""
        self.put(f"{indent}status = {call};", f"{indent}if (status != 0)", *(f"{indent}    {line}" for line in failed))


def _inputs(control: Control) -> list[list[Variable]]:
    """Return variables with names for the operands."""
    args = control.operation.args
    return [list(group) if isinstance(group, tuple) else [group] for group in args]


def _size(buffer: Buffer) -> int:
    return buffer.size * buffer.itemsize


def _spare(w: _Writer, k: int, buffer: Buffer) -> str:
    """Return the spare memory of a variable that changes."""
    return f"({TYPES[buffer.dtype]} *)(scratch + {w.control.spares[k]})"


def _moves(w: _Writer, starts: list[str], buffers: list[Buffer]) -> list[str]:
    """Declare pointers to the present values, and return their names."""
    now = [w.names.new(f"{start}_now") for start in starts]
    w.put(*(f"const {TYPES[b.dtype]} *{name} = {start};" for name, start, b in zip(now, starts, buffers)))
    return now


def _choices(w: _Writer, results: list[str], buffers: list[Buffer], condition: str, indent: str) -> list[str]:
    """Declare pointers to the next values, in the memory of the result if a condition holds, and return their names."""
    new = [w.names.new(f"{result}_next") for result in results]
    for k, (name, result, b) in enumerate(zip(new, results, buffers)):
        w.put(f"{indent}{TYPES[b.dtype]} *{name} = {condition} ? {result} : {_spare(w, k, b)};")
    return new


def _slice(name: str, buffer: Buffer, at: str) -> str:
    """Return the address of a slice of a stack."""
    return f"{name} + {at}" if buffer.size == 1 else f"{name} + {buffer.size} * {at}"


def _write_scan(w: _Writer) -> None:
    steps: Steps = w.control.operation.options["inner"]
    (program,) = w.control.programs
    init, xs, shared = w.groups
    count, length = steps.count, steps.length
    now = _moves(w, init, program.inputs)
    w.put("int status;", "", f"for (int64_t step = 0; step < {length}; step++) {{")
    at = "step"
    if steps.reverse:
        at = w.names.new("k")
        w.put(f"    const int64_t {at} = {length - 1} - step;")
    new = _choices(w, w.results[:count], program.outputs, f"({length} - step) % 2", "    ")
    slices = [_slice(x, b, at) for x, b in zip(xs, program.inputs[count:])]
    stacks = [_slice(y, b, at) for y, b in zip(w.results[count:], program.outputs[count:])]
    w.put("")
    w.check(w.call(0, [*now, *slices, *shared], [*new, *stacks]), ["return status;"])
    w.put(*(f"    {a} = {b};" for a, b in zip(now, new)), "}", "return 0;")


def _write_while(w: _Writer) -> None:
    test, step = w.control.programs
    init, tested, shared = w.groups
    now = _moves(w, init, step.inputs)
    w.put("uint8_t holds;", "int status;", "", "for (int64_t step = 0;; step++) {")
    w.check(w.call(0, [*now, *tested], ["&holds"]), ["return status;"])
    w.put("    if (!holds)", "        break;")
    new = _choices(w, w.results, step.outputs, "step % 2", "    ")
    w.check(w.call(1, [*now, *shared], new), ["return status;"])
    w.put(*(f"    {a} = {b};" for a, b in zip(now, new)), "}")
    for result, name, buffer in zip(w.results, now, test.inputs):
        w.put(f"if ({name} != {result})", f"    memcpy({result}, {name}, {_size(buffer)});")
    w.put("return 0;")


def _write_branch(w: _Writer) -> None:
    (holds,), *read = w.groups
    w.put(f"if (*{holds})", f"    return {w.call(0, read[0], w.results)};", f"return {w.call(1, read[1], w.results)};")


class _Rows:
    """The layout of a row, and the columns that a pass reads."""

    def __init__(self) -> None:
        self.size = 0
        self.columns: list[tuple[int, Buffer]] = []

    def add(self, buffers: list[Buffer]) -> list[tuple[int, Buffer]]:
        """Add columns, and return them."""
        new = []
        for b in buffers:
            new.append((self.size, b))
            self.size += -(-_size(b) // _ALIGNMENT) * _ALIGNMENT
        self.columns += new
        return new


def _at(columns: list[tuple[int, Buffer]], row: str = "row", *, written: bool = False) -> list[str]:
    """Return the addresses of columns of a row."""
    places = [f"({row} + {place})" if place else row if row.isidentifier() else f"({row})" for place, _ in columns]
    return [f"({'' if written else 'const '}{TYPES[b.dtype]} *){place}" for place, (_, b) in zip(places, columns)]


def _write_unwind(w: _Writer) -> None:
    passes: Passes = w.control.operation.options["inner"]
    step, programs = w.control.programs[1], w.control.programs[2:]
    init, tested, shared, *others = w.groups
    rows = _Rows()
    carry = rows.add(step.outputs)
    visits: list[Callable[[], None]] = []
    results = w.results
    for k, program in enumerate(programs):
        count = passes.counts[k]
        own, results = results[:count], results[count:]
        visits.append(_prepare_pass(w, passes, k, program, rows, others[2 * k], others[2 * k + 1], own))
    size = max(rows.size, _ALIGNMENT)
    w.put(
        "char *rows = NULL; /* of the steps */", "int64_t count = 0, capacity = 0;", "uint8_t holds;", "int status = 0;", "",
        "for (;; count++) {", "    if (count == capacity) {", "        char *more;", "", "        capacity = 2 * capacity + 16;",
        f"        more = realloc(rows, (size_t)capacity * {size});", "        if (more == NULL) {", "            status = 2;",
        "            goto done;", "        }", "        rows = more;", "    }",
        f"    char *row = rows + {size} * count;", "", "    if (count == 0) {",
    )  # fmt: skip
    w.put(*(f"        memcpy({to}, {x}, {_size(b)});" for to, x, (_, b) in zip(_at(carry, written=True), init, carry)), "    } else {")
    before = f"row - {size}"
    w.check(w.call(1, [*_at(carry, before), *shared], _at(carry, written=True)), ["goto done;"], "        ")
    w.put("    }")
    w.check(w.call(0, [*_at(carry), *tested], ["&holds"]), ["goto done;"])
    w.put("    if (!holds)", "        break;", "}")
    for visit in visits:
        visit()
    w.put(_DONE)
    w.put("free(rows);", "return status;")


def _prepare_pass(
    w: _Writer, passes: Passes, k: int, program: Lowered, rows: _Rows, start: list[str], read: list[str], results: list[str]
) -> Callable[[], None]:  # fmt: skip
    """Add what a pass leaves to the layout of rows; return a function that writes the loop of the pass, for which the layout must be known.

    Parameters
    ----------
    w : _Writer
    passes : Passes
    k : int
        The number of the pass.
    program : Lowered
    rows : _Rows
    start, read, results : list of str
        The names of its first state, of what it reads besides its state and the row, and of its last state.
    """
    count, is_last = passes.counts[k], k == len(passes.counts) - 1
    given = list(rows.columns)
    state = [] if is_last else rows.add(program.outputs[:count])
    left = rows.add(program.outputs[count:])
    buffers = program.outputs[:count]

    def write() -> None:
        size = max(rows.size, _ALIGNMENT)
        row = f"rows + {size} * {'(count - 1 - visit)' if passes.reverse[k] else 'visit'}"
        inside: list[str] = []
        now: list[str] = []
        if is_last:
            w.put("{")
            outside, w.lines = w.lines, []
            now = _moves(w, start, buffers)
            inside, w.lines = w.lines, outside
            w.put(*(f"    {line}" for line in inside), "")
        indent = "    " if is_last else ""
        w.put(f"{indent}for (int64_t visit = 0; visit < count; visit++) {{", f"{indent}    char *row = {row};")
        if is_last:
            new = _choices(w, results, buffers, "(count - visit) % 2", f"{indent}    ")
        else:
            after = f"row {'-' if passes.reverse[k] else '+'} {size}"
            new = [w.names.new(f"{result}_next") for result in results]
            for name, result, to, (_, b) in zip(new, results, _at(state, after, written=True), state):
                w.put(f"    {TYPES[b.dtype]} *{name} = visit == count - 1 ? {result} : {to};")
            if state:
                first = [f"        memcpy({to}, {x}, {_size(b)});" for to, x, (_, b) in zip(_at(state, written=True), start, state)]
                w.put("", "    if (visit == 0) {", *first, "    }")
        own = now if is_last else _at(state)
        w.check(w.call(k + 2, [*own, *_at(given), *read], [*new, *_at(left, written=True)]), ["goto done;"], f"{indent}    ")
        w.put(*(f"{indent}    {a} = {b};" for a, b in zip(now, new)), f"{indent}}}")
        if results:
            copies = [f"memcpy({result}, {x}, {_size(b)});" for result, x, b in zip(results, start, buffers)]
            w.put(f"{indent}if (count == 0) {{", *(f"{indent}    {line}" for line in copies), f"{indent}}}")
        if is_last:
            w.put("}")

    return write


_WRITERS: dict[str, Any] = {"scan": _write_scan, "while": _write_while, "unwind": _write_unwind, "branch": _write_branch}
