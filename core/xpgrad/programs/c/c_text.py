"""Print programs as functions in C99.

A program is ``int name(const double *x, ..., double *out, ...)``: one function, which calls a static one for each nest, check and product,
in loops if steps repeat. It returns 0, 1 if an index is out of bounds, before memory is touched, or 2 if there is no memory.

Floating-point arithmetic is as written, as in NumPy: only additions of a sum within a chunk may be reordered, with OpenMP's pragmas.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xpgrad.programs.c.control_text import control_text
from xpgrad.programs.c.identifiers import Identifiers
from xpgrad.programs.c.layout import braces, comment_text, wrapped
from xpgrad.programs.c.matmul_text import product_text
from xpgrad.programs.c.nest_text import NestWriter, write_check
from xpgrad.programs.c.numbers import TYPES, VALUE_TYPES, number_text
from xpgrad.programs.nests import write_nest
from xpgrad.programs.program import Variable
from xpgrad.programs.regions import Advance, Check, Control, Lowered, Nest, Product, Region, Repeat
from xpgrad.programs.source import comment
from xpgrad.programs.views import Buffer

__all__ = ["CSource", "c_source"]

_VECTORS = """\
#ifdef XPGRAD_LIBMVEC /* functions of vectors, from glibc's libmvec */
LINES
#endif
"""
_MOST_LINES = 3  # of the user's, above a call


@dataclass(frozen=True, slots=True)
class CSource:
    """A program in C.

    Attributes
    ----------
    text : str
        The function and what it calls, without includes.
    prototype : str
        Its declaration, without a semicolon.
    parameters : list of str
        The names of its inputs and outputs.
    """

    text: str
    prototype: str
    parameters: list[str]


def c_source(lowered: Lowered, name: str, results: list[str] | None = None, constants: dict[Variable, str] | None = None) -> CSource:
    """Print a lowered program.

    Parameters
    ----------
    lowered : Lowered
    name : str
        The name of the function.
    results : list of str or None
        The names of its outputs.
    constants : dict or None
        The elements of each constant as C writes them; None if the function takes constants as parameters, after the inputs.
    """
    return _Program(lowered, name, results, constants).source()


# -- the program -----------------------------------------------------------------------------------------------------------


class _Program:
    """Writes a whole program in C: the functions of its regions, and the public function that calls them."""

    def __init__(
        self, lowered: Lowered, name: str, results: list[str] | None, constants: dict[Variable, str] | None, root: _Program | None = None
    ) -> None:  # fmt: skip
        self.lowered, self.name, self.constants, self.root = lowered, name, constants, root
        self.helpers: dict[str, str] = {} if root is None else root.helpers
        self.called: dict[str, str] = {} if root is None else root.called  # declarations of functions of the library
        self.functions: dict[str, str] = {} if root is None else root.functions  # the names by the texts
        self.wishes = _wishes(lowered)
        self.literals = {} if constants is None else {b: constants[v][1:-1] for v, b in _constants(lowered) if b.size == 1}
        made = [(o, v) for o in lowered.program.operations for result in o.results for v in lowered.parts.get(result, (result,))]
        self.lines = {v: o.line for o, v in made}
        self.backward = {v for o, v in made if o.backward}
        calls = [self.calls_of(region) for region in lowered.regions]
        self.names = Identifiers(name, *self.functions.values(), *self.helpers, "status", "workspace", "piece", "p", "done", "step")
        self.buffers: dict[Buffer, str] = {}
        program = lowered.program
        self.inputs = [self.named(b, v.name or "x") for b, v in zip(lowered.inputs, program.inputs)]
        self.fixed = [self.named(b, self.wishes.get(b, "c")) for b in lowered.constants]
        wished = results or [self.wishes.get(b, "out") for b in lowered.outputs]
        self.outputs = [self.named(b, wish) for b, wish in zip(lowered.outputs, wished)]
        for b in lowered.workspace:
            self.named(b, self.wishes.get(b, "t"))
        self.calls = calls
        self.touched = {b for group in calls for call in group for b, _ in call.places}
        self.tables: dict[str, str] = {}  # the names of tables of addresses, by their texts

    def named(self, buffer: Buffer, wish: str) -> str:
        name = self.buffers[buffer] = self.names.new(wish)
        return name

    def source(self) -> CSource:
        """Return the text of the function and its helpers, with its prototype and the names of its inputs and outputs."""
        prototype = wrapped(f"int {self.name}(", self.parameters() or ["void"], ")")
        vectors = [_VECTORS.replace("LINES", "\n".join(self.called.values()))] if self.called else []
        text = self.definition(prototype)
        parts = [*vectors, *self.helpers.values(), *(text.replace("@NAME", name) for text, name in self.functions.items()), text]
        return CSource("\n".join(parts), prototype, [*self.inputs, *self.outputs])

    def static_function(self) -> str:
        """Return the text of the function of a program that a loop or a branch runs; ``@NAME`` stands for its name."""
        workspace = ["uint8_t *workspace"] if self.lowered.workspace_size else []
        return self.definition(wrapped("static int @NAME(", [*workspace, *self.parameters()], ")"))

    def parameters(self) -> list[str]:
        """Return the declarations of the parameters: inputs, constants unless they are known, and outputs."""
        lowered = self.lowered
        found = [f"const {TYPES[b.dtype]} *{n}" for b, n in zip(lowered.inputs, self.inputs)]
        if self.constants is None:
            found += [f"const {TYPES[b.dtype]} *{n}" for b, n in zip(lowered.constants, self.fixed)]
        return found + [f"{TYPES[b.dtype]} *{n}" for b, n in zip(lowered.outputs, self.outputs)]

    def definition(self, prototype: str) -> str:
        """Return the text of the function."""
        return f"{prototype}\n{{\n" + "\n".join(self.body()) + "\n}\n"

    def body(self) -> list[str]:
        """Return the lines of the function."""
        lowered = self.lowered
        statements = self.statements()
        may_fail = any(call.text and isinstance(call.region, (Check, Control)) for group in self.calls for call in group)
        allocates = lowered.workspace_size > 0 and self.root is None
        lines: list[str] = []
        if self.constants is not None:
            for (v, b), name in zip(_constants(lowered), self.fixed):
                if b in self.touched:
                    lines.append(f"    static const {TYPES[b.dtype]} {name}[{max(b.size, 1)}] = {self.constants[v]};")
        if may_fail:
            lines.append("    int status = 0;")
        if allocates:
            lines += [f"    char *workspace = malloc({lowered.workspace_size});", "", "    if (workspace == NULL)", "        return 2;"]
        for b, place in lowered.workspace.items():
            if b in self.touched:
                lines.append(f"    {TYPES[b.dtype]} *{self.buffers[b]} = ({TYPES[b.dtype]} *)(workspace + {place});")
        lines += [f"    {text.replace('@NAME', name)}" for text, name in self.tables.items()]
        for b in (*lowered.inputs, *(lowered.constants if self.constants is None else ()), *lowered.outputs):
            if b not in self.touched:
                lines.append(f"    (void){self.buffers[b]};")
        lines += statements
        if may_fail:
            lines.append("done:")
        if allocates:
            lines.append("    free(workspace);")
        lines.append(f"    return {'status' if may_fail else '0'};")
        return lines[1:] if not lines[0] else lines

    def statements(self) -> list[str]:
        """Return the lines that call the functions of all regions, with comments."""
        lines: list[str] = []
        shown: list[str] = []
        backward = False
        for region, calls in zip(self.lowered.regions, self.calls):
            calls = [call for call in calls if call.text]
            if not calls:
                continue
            made = [self.comments(call.region) for call in calls]
            if all(is_backward for _, is_backward in made) and not backward:
                lines += ["", "    /* gradients */"]
                backward = True
            indent = "    "
            if isinstance(region, Repeat):
                lines += ["", f"    for (int64_t step = 0; step < {region.count}; step++) {{"]
                indent, shown = "        ", []
            for call, (comments, _) in zip(calls, made):
                if comments and comments != shown:
                    lines += [*([""] if shown or indent == "    " else []), *(f"{indent}{c}" for c in comments)]
                    shown = comments
                arguments = [self.address(call, b, n) for b, n in call.places]
                arguments += [_moving(n, call.advance.numbers[n]) for n in call.numbers]
                arguments += [self.literal(call.advance.literals[position], dtype) for position, dtype in call.literals]
                lines += [f"{indent}{line}" for line in call.text.format(*arguments).split("\n")]
            if isinstance(region, Repeat):
                lines.append("    }")
                shown = []
        return lines

    def address(self, call: _Call, buffer: Buffer, offset: int) -> str:
        """Print the address of an element, which may change from step to step."""
        name, moves = self.buffers[buffer], call.advance.memory.get(buffer, 0)
        if isinstance(moves, int):
            text = name + (f" + {offset}" if offset else "")
            return text + (f" {'+' if moves > 0 else '-'} {abs(moves)} * step" if moves else "")
        places, dtype = self.lowered.workspace, TYPES[buffer.dtype]
        if all(b in places for b, _ in moves) and buffer in places:
            offsets = [(places[b] - places[buffer]) // b.itemsize + offset + more for b, more in moves]
            text = braces("static const int64_t @NAME", list(map(str, offsets)))
            return f"{name} + {self.table(text, 'at')}[step]"
        texts = []
        for b, more in moves:
            base = f"({dtype} *)(workspace + {places[b]})" if b in places else self.buffers[b]
            texts.append(base + (f" + {offset + more}" if offset + more else ""))
        self.touched |= {b for b, _ in moves if b not in places}
        constant = "const " if any(b in (*self.lowered.inputs, *self.lowered.constants) for b, _ in moves) else ""
        return f"{self.table(braces(f'{constant}{dtype} *const @NAME', texts), f'{name}_at')}[step]"

    def literal(self, numbers: list[Any], dtype: str) -> str:
        """Print an operand that is another number in each step."""
        text = braces(f"static const {VALUE_TYPES[dtype]} @NAME", [number_text(x, dtype) for x in numbers])
        return f"{self.table(text, 'number')}[step]"

    def table(self, text: str, wish: str) -> str:
        """Return the name of a table, which is new unless there is an equal one."""
        if text not in self.tables:
            self.tables[text] = self.names.new(wish)
        return self.tables[text]

    def comments(self, region: Region) -> tuple[list[str], bool]:
        """Return the user's lines that a region computes, as comments, and whether it belongs to the backward pass."""
        if isinstance(region, Control):
            made = [v for result in region.operation.results for v in self.lowered.parts.get(result, (result,))]
        else:
            made = [s.out for s in region.body] if isinstance(region, Nest) else [region.out] if isinstance(region, Product) else []
        known = [v for v in made if v in self.lines]
        lines = list(dict.fromkeys(line for v in known if (line := self.lines[v]) is not None))
        texts = [f"/* {comment_text(comment(line)[2:])} */" for line in lines[:_MOST_LINES]]
        if len(lines) > _MOST_LINES:
            texts[-1] = f"/* ... and {len(lines) - _MOST_LINES + 1} more lines, up to {comment_text(comment(lines[-1])[2:])} */"
        return texts, bool(known) and all(v in self.backward for v in known)

    def calls_of(self, region: Region | Repeat) -> list[_Call]:
        """Return the calls for a region, or for each region of a loop."""
        if isinstance(region, Repeat):
            return [self.call(inside, advance) for inside, advance in zip(region.body, region.steps)]
        return [self.call(region, Advance())]

    def call(self, region: Region, advance: Advance) -> _Call:
        """Print the function of a region, and return its call."""
        if isinstance(region, Control):
            return self.control(region)
        if isinstance(region, Product):
            places = [(view.buffer, view.offset) for view in (region.a, region.b, region.target)]
            return _Call(region, advance, product_text(region, self.helpers), places)
        literals = {b: text for b, text in self.literals.items() if b not in advance.memory}
        writer = NestWriter(self.helpers, self.called, self.wishes, literals, advance)
        if isinstance(region, Check):
            write_check(region, writer)
            name, places = self.function(*writer.function("bool", "    return true;"), "check")
            arguments = "".join(["{}"] * len(places))  # a known index is none
            return _Call(region, advance, f"if (!{name}({arguments})) {{{{\n    status = 1;\n    goto done;\n}}}}", places)
        writer.count_pieces = region.pieces
        write_nest(self.lowered, region, writer)
        if not any(isinstance(x, Buffer) for x in writer.written):  # nothing reads the results
            return _Call(region, advance, "", [])
        name, places = self.function(*writer.function("void"), "loop")
        numbers, operands = writer.used_numbers(), writer.used_operands()
        arguments = ", ".join(["{}"] * (len(places) + len(numbers) + len(operands)))
        text = f"{name}({arguments});"
        if region.pieces > 1:
            loop = f"for (int64_t piece = 0; piece < {region.pieces}; piece++)"
            text = f"#pragma omp parallel for\n{loop}\n    {name}(piece, {arguments});"
        return _Call(region, advance, text, places, numbers, operands)

    def control(self, control: Control) -> _Call:
        """Print the function of a loop or a branch and those of its programs, and return its call."""
        operation = control.operation
        names = []
        for program, kind in zip(control.programs, operation.options["inner"].names(operation.name)):
            text = _Program(program, kind, None, self.constants, self.root or self).static_function()
            names.append(self.function(text, [], kind)[0])
        name, places = self.function(control_text(control, names), control.places(), operation.name)
        call = f"status = {name}({', '.join(['{}'] * len(places))});\nif (status != 0)\n    goto done;"
        return _Call(control, Advance(), call, places)

    def function(self, text: str, places: list[tuple[Buffer, int]], kind: str) -> tuple[str, list[tuple[Buffer, int]]]:
        """Add a function unless there is an equal one; return its name, and the places of this call."""
        if text not in self.functions:
            self.functions[text] = f"{kind}_{sum(n.startswith(kind) for n in self.functions.values()) + 1}"
        return self.functions[text], places


@dataclass(frozen=True, slots=True)
class _Call:
    """A call of the function of a region.

    Attributes
    ----------
    region : Region
    advance : Advance
        How it changes from step to step.
    text : str
        The call with ``{}`` for each argument; empty if nothing reads the region's results.
    places : list of (Buffer, int)
        The memory and the offsets of its arguments.
    numbers : list of int
        Lengths and strides, which follow; of strides the sizes alone matter.
    literals : list of (int, str)
        The positions of numbers among the operands of its statements, which come last, with their dtypes.
    """

    region: Region
    advance: Advance
    text: str
    places: list[tuple[Buffer, int]]
    numbers: list[int] = field(default_factory=list)
    literals: list[tuple[int, str]] = field(default_factory=list)


def _moving(number: int, change: int) -> str:
    """Print the size of a number that changes in each step."""
    if number < 0:
        number, change = -number, -change
    return f"{number} {'+' if change > 0 else '-'} {abs(change)} * step"


def _constants(lowered: Lowered) -> list[tuple[Variable, Buffer]]:
    """Return the constants with their buffers."""
    return list(zip(lowered.program.constants, lowered.constants))


def _wishes(lowered: Lowered) -> dict[Buffer, str]:
    """Return the user's name for each buffer: that of the first variable in it that has one."""
    found: dict[Buffer, str] = {}
    for v, view in lowered.views.items():
        if v.name is not None:
            found.setdefault(view.buffer, v.name)
    return found
