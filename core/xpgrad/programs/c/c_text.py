"""Print programs as functions in C99.

A program is ``int name(const double *x, ..., double *out, ...)``: one function, which calls a static one for each nest, check and product,
in loops if steps repeat. It returns 0, 1 if an index is out of bounds, before memory is touched, or 2 if there is no memory.

Floating-point arithmetic is as written, as in NumPy: only additions of a sum within a chunk may be reordered, with OpenMP's pragmas.
"""

from __future__ import annotations

import math
import struct
import textwrap
from dataclasses import dataclass, field
from typing import Any

from xpgrad.programs.c.expressions import ATOM, CHOICE, COMPARISON, PRODUCT, SUM, UNARY, Block, Line, Value
from xpgrad.programs.c.identifiers import Identifiers
from xpgrad.programs.nests import write_nest
from xpgrad.programs.program import Variable
from xpgrad.programs.regions import Advance, Check, Lowered, Nest, Product, Region, Repeat, Statement
from xpgrad.programs.scalars import FLOATS, SCALARS
from xpgrad.programs.source import comment
from xpgrad.programs.views import Buffer

__all__ = ["TYPES", "CSource", "c_source", "comment_text", "number_text"]

#: The types of elements in memory; a truth is a byte there.
TYPES = {"float64": "double", "float32": "float", "int64": "int64_t", "int32": "int32_t", "bool": "uint8_t"}
_TYPES = {**TYPES, "bool": "bool"}
_SUFFIXES = {"float64": "", "float32": "f", "int64": "_i64", "int32": "_i32", "bool": "_b"}
_UNSIGNED = {"int64": "uint64_t", "int32": "uint32_t"}
_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "and": "&", "or": "|", "xor": "^"}
_RELATIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
#: Comparisons of truths; as numbers they would get warnings.
_TRUTHS = {"lt": "(!{}) & {}", "le": "(!{}) | {}", "gt": "{} & (!{})", "ge": "{} | (!{})"}
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

    def __init__(self, lowered: Lowered, name: str, results: list[str] | None, constants: dict[Variable, str] | None) -> None:
        self.lowered, self.name, self.constants = lowered, name, constants
        self.helpers: dict[str, str] = {}
        self.called: dict[str, str] = {}  # declarations of functions of the library
        self.functions: dict[str, str] = {}  # the names by the texts
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
        lowered = self.lowered
        parameters = [f"const {TYPES[b.dtype]} *{n}" for b, n in zip(lowered.inputs, self.inputs)]
        if self.constants is None:
            parameters += [f"const {TYPES[b.dtype]} *{n}" for b, n in zip(lowered.constants, self.fixed)]
        parameters += [f"{TYPES[b.dtype]} *{n}" for b, n in zip(lowered.outputs, self.outputs)]
        prototype = _wrapped(f"int {self.name}(", parameters or ["void"], ")")
        vectors = [_VECTORS.replace("LINES", "\n".join(self.called.values()))] if self.called else []
        parts = [*vectors, *self.helpers.values(), *(text.replace("@NAME", name) for text, name in self.functions.items())]
        parts.append(f"{prototype}\n{{\n" + "\n".join(self.body()) + "\n}\n")
        return CSource("\n".join(parts), prototype, [*self.inputs, *self.outputs])

    def body(self) -> list[str]:
        """Return the lines of the function."""
        lowered = self.lowered
        statements = self.statements()
        has_checks = any(isinstance(r, Check) for r in lowered.every_region())
        lines: list[str] = []
        if self.constants is not None:
            for (v, b), name in zip(_constants(lowered), self.fixed):
                if b in self.touched:
                    lines.append(f"    static const {TYPES[b.dtype]} {name}[{max(b.size, 1)}] = {self.constants[v]};")
        if has_checks:
            lines.append("    int status = 0;")
        if lowered.workspace_size:
            lines += [f"    char *workspace = malloc({lowered.workspace_size});", "", "    if (workspace == NULL)", "        return 2;"]
            for b, place in lowered.workspace.items():
                if b in self.touched:
                    lines.append(f"    {TYPES[b.dtype]} *{self.buffers[b]} = ({TYPES[b.dtype]} *)(workspace + {place});")
        lines += [f"    {text.replace('@NAME', name)}" for text, name in self.tables.items()]
        for b in (*lowered.inputs, *(lowered.constants if self.constants is None else ()), *lowered.outputs):
            if b not in self.touched:
                lines.append(f"    (void){self.buffers[b]};")
        lines += statements
        if has_checks:
            lines.append("done:")
        if lowered.workspace_size:
            lines.append("    free(workspace);")
        lines.append(f"    return {'status' if has_checks else '0'};")
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
            text = _braces("static const int64_t @NAME", list(map(str, offsets)))
            return f"{name} + {self.table(text, 'at')}[step]"
        texts = []
        for b, more in moves:
            base = f"({dtype} *)(workspace + {places[b]})" if b in places else self.buffers[b]
            texts.append(base + (f" + {offset + more}" if offset + more else ""))
        self.touched |= {b for b, _ in moves if b not in places}
        constant = "const " if any(b in (*self.lowered.inputs, *self.lowered.constants) for b, _ in moves) else ""
        return f"{self.table(_braces(f'{constant}{dtype} *const @NAME', texts), f'{name}_at')}[step]"

    def literal(self, numbers: list[Any], dtype: str) -> str:
        """Print an operand that is another number in each step."""
        text = _braces(f"static const {_TYPES[dtype]} @NAME", [number_text(x, dtype) for x in numbers])
        return f"{self.table(text, 'number')}[step]"

    def table(self, text: str, wish: str) -> str:
        """Return the name of a table, which is new unless there is an equal one."""
        if text not in self.tables:
            self.tables[text] = self.names.new(wish)
        return self.tables[text]

    def comments(self, region: Region) -> tuple[list[str], bool]:
        """Return the user's lines that a region computes, as comments, and whether it belongs to the backward pass."""
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
        if isinstance(region, Product):
            return _Call(region, advance, *self.product(region))
        literals = {b: text for b, text in self.literals.items() if b not in advance.memory}
        writer = _Writer(self.helpers, self.called, self.wishes, literals, advance)
        if isinstance(region, Check):
            _write_check(region, writer)
            name, places = self.function(*writer.function("bool", "    return true;"), "check")
            return _Call(region, advance, f"if (!{name}({{}})) {{{{\n    status = 1;\n    goto done;\n}}}}", places)
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

    def function(self, text: str, places: list[tuple[Buffer, int]], kind: str) -> tuple[str, list[tuple[Buffer, int]]]:
        """Add a function unless there is an equal one; return its name, and the places of this call."""
        if text not in self.functions:
            self.functions[text] = f"{kind}_{sum(n.startswith(kind) for n in self.functions.values()) + 1}"
        return self.functions[text], places

    def product(self, product: Product) -> tuple[str, list[tuple[Buffer, int]]]:
        """Return the text of the call that multiplies matrices, and the places that it needs."""
        dtype = product.out.dtype.name
        name = f"matmul{_SUFFIXES[dtype]}"
        if name not in self.helpers:
            self.helpers[name] = _MATMUL.replace("NAME", name).replace("TYPE", TYPES[dtype]).replace("GEMM", _GEMMS[dtype])
        views = (product.a, product.b, product.target)
        (m, k), n = product.a.shape[-2:], product.b.shape[-1]
        count = max(v.shape[0] if len(v.shape) == 3 else 1 for v in views)
        places = []
        for view in views:
            terms = ["{}"]
            if count > 1 and len(view.shape) == 3 and view.strides[0]:
                terms.append(f"{view.strides[0]} * p")
            places.append(" + ".join(terms))
        a, b, c = places
        first, second = (", ".join(map(str, view.strides[-2:])) for view in views[:2])
        call = f"{name}({m}, {n}, {k}, {a}, {first}, {b}, {second}, {c}, {'true' if product.adds else 'false'});"
        if count > 1:
            call = f"for (int64_t p = 0; p < {count}; p++)\n    {call}"
        return call, [(view.buffer, view.offset) for view in views]


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


def _braces(head: str, texts: list[str]) -> str:
    """Print the definition of a table."""
    elements = ", ".join(texts)
    if len(elements) > 80:
        whole = ", ".join(text.replace(" ", "~") for text in texts)  # lines end between elements only
        lines = textwrap.fill(whole, 110, initial_indent="        ", subsequent_indent="        ", break_on_hyphens=False)
        elements = "\n" + lines.replace("~", " ") + "\n    "
    return f"{head}[{len(texts)}] = {{{elements}}};"


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


def _wrapped(head: str, parts: list[str], tail: str) -> str:
    """Write `head`, the parameters in `parts` and `tail`, in lines of at most 100 characters."""
    lines, line = [], head
    for k, part in enumerate(parts):
        text = part + ("," if k < len(parts) - 1 else tail)
        if len(line) + len(text) > 100 and line.strip():
            lines.append(line.rstrip())
            line = "    "
        line += f"{text} "
    return "\n".join([*lines, line.rstrip()])


def comment_text(text: str) -> str:
    """Return a text that may stand in a comment."""
    return text.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")


# -- nests -----------------------------------------------------------------------------------------------------------------


class _Writer:
    """The dialect of C: values are expressions."""

    def __init__(
        self,
        helpers: dict[str, str],
        called: dict[str, str],
        wishes: dict[Buffer, str],
        literals: dict[Buffer, str],
        advance: Advance,
    ) -> None:
        self.helpers, self.called, self.wishes, self.literals = helpers, called, wishes, literals
        self.advance = advance  # the numbers that are arguments
        self.numbers: dict[int, Value] = {}
        self.operands: dict[int, tuple[Value, str]] = {}
        self.position = 0  # of the next number among the operands
        self.block = Block()
        self.pointers: dict[Buffer, Value] = {}
        self.offsets: dict[Buffer, list[tuple[int, str, Value]]] = {}  # with what follows, and what stands for the text of both
        self.counters: list[Value] = []
        self.accumulators: dict[Value, int] = {}  # with the number of loops around them
        self.indices: dict[tuple[Value, int], Value] = {}
        self.written: set[Any] = set()
        self.loops: list[_Loop] = []
        self.count_pieces = 1
        self.wish: str | None = None

    def function(self, result: str, *last: str) -> tuple[str, list[tuple[Buffer, int]]]:
        """Return the text of a static C function for the statements so far, and the places in memory that are its arguments.

        Parameters
        ----------
        result : str
            The type of its result.
        *last : str
            Lines at its end.

        Returns
        -------
        str
            ``@NAME`` stands for the function's name.
        list of (Buffer, int)
            The memory and the offset of each pointer.
        """
        self.block.drop_unused()
        names = Identifiers("piece", "start", "stop", *self.helpers)
        pointers = {buffer: pointer for buffer, pointer in self.pointers.items() if pointer.uses}
        for buffer, pointer in pointers.items():
            pointer.name = names.new(self.wishes.get(buffer, "a"))
        for counter, letter in zip(self.counters, "ijklmnop" * len(self.counters)):
            counter.name = names.new(letter)
        for accumulator in self.accumulators:
            accumulator.name = names.new("result")
        firsts = {buffer: min(n for n, _, _ in self.offsets[buffer]) for buffer in pointers}
        for buffer, first in firsts.items():
            for n, sign, offset in self.offsets[buffer]:
                offset.name = f"{n - first}{sign}" if n != first or not sign else sign.strip(" +")
        for n in self.used_numbers():
            self.numbers[n].name = names.new("n")
        for position, _ in self.used_operands():
            self.operands[position][0].name = names.new("number")
        lines = self.block.lines(names, self.written)
        parameters = ["int64_t piece"] if self.count_pieces > 1 else []
        for buffer, pointer in pointers.items():
            constant = "" if buffer in self.written else "const "
            parameters.append(f"{constant}{TYPES[buffer.dtype]} *restrict {pointer.name}")
        parameters += [f"int64_t {self.numbers[n].name}" for n in self.used_numbers()]
        parameters += [f"{_TYPES[dtype]} {self.operands[position][0].name}" for position, dtype in self.used_operands()]
        head = _wrapped(f"static {result} @NAME(", parameters, ")")
        return "\n".join([head, "{", *lines, *last, "}\n"]), list(firsts.items())

    def number_of(self, number: int) -> Value | None:
        """Return the argument for a length or a stride that changes from step to step; None for others."""
        return self.numbers.setdefault(number, Value(())) if number in self.advance.numbers else None

    def used_numbers(self) -> list[int]:
        """Return the lengths and strides that are arguments, in order."""
        return [n for n, argument in self.numbers.items() if argument.uses]

    def operand(self, value: Any, dtype: str) -> Value:
        """Return the next number among the operands of statements: a literal or an argument."""
        position = self.position
        self.position += 1
        if position not in self.advance.literals:
            return self.number(value, dtype)
        self.operands[position] = Value(()), dtype
        return self.operands[position][0]

    def used_operands(self) -> list[tuple[int, str]]:
        """Return the positions of numbers among the operands that are arguments, with their dtypes, in order."""
        return [(position, dtype) for position, (argument, dtype) in self.operands.items() if argument.uses]

    def value(self, *parts: Any, level: int = ATOM, kind: str) -> Value:
        """Add an expression to the block, and return it."""
        found: Value = self.block.add(Value(parts, level, kind))
        return found

    def name_of(self, helper: str, dtype: str, text: str) -> str:
        """Return the name of a helper for a dtype, which is defined by `text` if it is new."""
        name = f"{helper}{_SUFFIXES[dtype]}"
        if name not in self.helpers:
            text = text.replace("UNSIGNED", _UNSIGNED.get(dtype, "")).replace("TYPE", _TYPES[dtype])
            self.helpers[name] = f"static inline {_TYPES[dtype]} {name}{text}"
        return name

    # -- loops -------------------------------------------------------------------------------------------------------------

    def begin_statement(self, statement: Statement) -> None:
        """Note what the user called the result of the next statement."""
        self.wish = statement.out.name if statement.kind == "assign" else None

    def extent(self, length: int) -> Value:
        """Return a length as a literal or an argument."""
        return self.number_of(length) or Value((str(length),))

    def piece(self, length: int) -> tuple[Value, Value, Value]:
        """Return where a piece begins and ends, and its number."""
        count = self.count_pieces
        self.block.put(f"const int64_t start = {length} * piece / {count};")
        self.block.put(f"const int64_t stop = {length} * (piece + 1) / {count};")
        return Value(("start",)), Value(("stop",)), Value(("piece",))

    def open_loop(self, start: Value, end: Value, step: int, *, vector: bool) -> Value:
        """Begin a loop; return its counter."""
        while len(self.counters) <= len(self.loops):
            self.counters.append(Value(()))
        i = self.counters[len(self.loops)]
        pragma = self.block.put()
        forward = "++" if step == 1 else f" += {step}"
        self.block.enter("for (int64_t ", (i, 0), " = ", (start, 0), "; ", (i, 0), " < ", (end, SUM), "; ", (i, 0), f"{forward}) {{")
        self.loops.append(_Loop(pragma, vector, {}))
        return i

    def close_loop(self) -> None:
        """End the innermost loop."""
        loop = self.loops.pop()
        self.block.leave()
        if loop.vector and loop.sums:
            names: list[Any] = []
            for accumulator in loop.sums:
                names += [", " if names else "", (accumulator, 0)]
            loop.pragma.parts = ("#pragma omp simd reduction(+ : ", *names, ")")
        else:
            self.block.items = [item for item in self.block.items if item[0] is not loop.pragma]

    def chunk_end(self, start: Value, chunk: int, end: Value) -> Value:
        """Return where a chunk ends: `chunk` after `start`, or at `end` if that comes first."""
        full = ((start, SUM), f" + {chunk}")
        found = self.value(*full, " < ", (end, SUM), " ? ", *full, " : ", (end, 0), level=CHOICE, kind="int64_t")
        found.wish, found.is_kept = "end", True
        return found

    # -- memory ------------------------------------------------------------------------------------------------------------

    def element(self, buffer: Buffer, offset: int, terms: list[tuple[Value, int]]) -> tuple[Any, ...]:
        """Return the parts of the expression for the element at an offset plus the sum of counters times strides (`terms`)."""
        pointer = self.pointers.setdefault(buffer, Value(()))
        parts: list[Any] = []
        for counter, stride in terms:
            if parts:
                parts.append(" + " if stride > 0 else " - ")
            argument = self.number_of(stride)
            if argument is not None:
                parts += [(argument, ATOM), " * "]
            elif abs(stride) != 1:
                parts.append(f"{abs(stride)} * ")
            parts.append((counter, UNARY))
        begin = Value(())
        self.offsets.setdefault(buffer, []).append((offset, "" if not terms else " + " if terms[0][1] > 0 else " - ", begin))
        return ((pointer, 0), "[", (begin, 0), *parts, "]")

    def load(self, buffer: Buffer, offset: int, terms: list[tuple[Value, int]]) -> Value:
        """Return the value of an element: a literal for a known constant, else an expression."""
        if buffer in self.literals:
            return _number(self.literals[buffer])
        parts = self.element(buffer, offset, terms)
        if buffer.dtype == "bool":
            found = self.value(*parts, " != 0", level=COMPARISON, kind="bool")
        else:
            found = self.value(*parts, kind=TYPES[buffer.dtype])
        found.reads = buffer
        found.is_free = not any(c.kind for c, _ in terms)  # the other terms are counters
        return found

    def store(self, buffer: Buffer, offset: int, terms: list[tuple[Value, int]], value: Value) -> None:
        """Write an element."""
        self.written.add(buffer)
        self.block.put(*self.element(buffer, offset, terms), " = ", (value, 0), ";", is_store=True)

    def wrap_index(self, index: Value, dtype: str, length: int) -> Value:
        """Return an index as an int64; the length is added if it is negative."""
        known = self.indices.get((index, length))
        if known is not None:
            return known
        given = index
        if dtype != "int64":
            index = self.value("(int64_t)", (index, UNARY), level=UNARY, kind="int64_t")
        found = self.value((index, SUM), " < 0 ? ", (index, SUM), f" + {length} : ", (index, 0), level=CHOICE, kind="int64_t")
        found.wish, found.is_kept = "at", True
        self.indices[given, length] = found
        return found

    # -- accumulators ------------------------------------------------------------------------------------------------------

    def new_accumulator(self, dtype: str, value: Value) -> Value:
        """Declare a variable with an initial value, and return it."""
        found = Value(())
        self.accumulators[found] = len(self.loops)
        self.written.add(found)
        self.block.put(f"{_TYPES[dtype]} ", (found, 0), " = ", (value, 0), ";", is_store=True)
        return found

    def accumulate(self, accumulator: Value, op: str, dtype: str, value: Value) -> None:
        """Update an accumulator with a value, by the reduction `op`; additions may be reordered."""
        if op == "sum" and dtype in FLOATS:
            self.block.put((accumulator, 0), " += ", (value, 0), ";", is_store=True)
        else:
            old = self.accumulated(accumulator, dtype)
            new = self.compute(
                {"sum": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}[op], dtype, [old, value], [dtype, dtype]
            )
            self.block.put((accumulator, 0), " = ", (new, 0), ";", is_store=True)
        for loop in self.loops[self.accumulators[accumulator] :]:
            if op == "sum" and dtype in FLOATS:
                loop.sums[accumulator] = None
            else:
                loop.vector = False

    def accumulated(self, accumulator: Value, dtype: str) -> Value:
        """Return the value of an accumulator."""
        found = self.value((accumulator, 0), kind=_TYPES[dtype])
        found.reads, found.is_free = accumulator, True
        return found

    # -- scalars -----------------------------------------------------------------------------------------------------------

    def number(self, value: Any, dtype: str) -> Value:
        """Return the literal of a number."""
        return _number(number_text(value, dtype))

    def compute(self, op: str, dtype: str, args: list[Any], kinds: list[Any]) -> Value:
        """Return the result of a scalar operation."""
        found = self.computed(op, dtype, args, kinds)
        if self.wish is not None and found.wish is None and found.kind and not found.is_free:
            found.wish, self.wish = self.wish, None
        return found

    def computed(self, op: str, dtype: str, args: list[Any], kinds: list[Any]) -> Value:
        if op == "cast":
            return self.cast(args[0], kinds[0], dtype)
        scalar = SCALARS[op]
        kind = dtype if scalar.makes == "same" else next(k for k in kinds if k is not None)
        if op == "pow" and kinds[1] is None and args[1] in _POWERS:
            self.position += 1
            return _POWERS[args[1]](self, kind, args)
        a = [x if k is not None else self.operand(x, kind) for x, k in zip(args, kinds)]
        if scalar.form == "arithmetic":
            return self.arithmetic(scalar.code, kind, a[0], a[1])
        if scalar.form == "comparison":
            return self.compare(scalar.code, kind, a[0], a[1])
        if scalar.form == "bits":
            return self.value((a[0], ATOM), f" {_SYMBOLS[scalar.code]} ", (a[1], ATOM), level=CHOICE, kind=_TYPES[kind])
        if scalar.form == "function":
            t, name = _TYPES[kind], f"{scalar.code}{_SUFFIXES[kind]}"
            self.called[name] = f'__attribute__((simd("notinbranch"))) {t} {name}({", ".join([t] * len(a))});'
        if scalar.form == "precise":
            return self.precise(scalar.code, kind, a)
        if scalar.form in ("function", "rounding"):
            return self.call(scalar.code.replace("roundeven", "nearbyint"), kind, *a)
        return _SPECIAL[scalar.code](self, kind, a)

    def arithmetic(self, code: str, kind: str, a: Value, b: Value) -> Value:
        """Return a sum, difference, product or quotient; integers wrap around."""
        symbol = _SYMBOLS[code]
        if kind in FLOATS:
            level = SUM if code in ("add", "sub") else PRODUCT
            return self.value((a, level), f" {symbol} ", (b, level + 1), level=level, kind=_TYPES[kind])
        text = f"(TYPE a, TYPE b)\n{{\n    return (TYPE)((UNSIGNED)a {symbol} (UNSIGNED)b);\n}}\n"
        return self.helper(self.name_of(f"wrapping_{code}", kind, text), kind, a, b)

    def helper(self, name: str, kind: str, *a: Value) -> Value:
        """Return the call of a function by its name."""
        parts: list[Any] = []
        for x in a:
            parts += [", " if parts else "", (x, 0)]
        return self.value(f"{name}(", *parts, ")", kind=_TYPES[kind])

    def call(self, name: str, kind: str, *a: Value) -> Value:
        """Return the call of a function of C's library, whose name gets the dtype's suffix."""
        return self.helper(name + _SUFFIXES[kind], kind, *a)

    def precise(self, code: str, kind: str, a: list[Value]) -> Value:
        """Return the call of a function of C's library that is not computed for vectors."""
        name, t = f"precise_{code}{_SUFFIXES[kind]}", _TYPES[kind]
        self.helpers[name] = (
            "#ifdef __GNUC__\n__attribute__((noinline)) /* not for vectors, which have larger errors */\n#endif\n"
            f"static {t} {name}({t} a)\n{{\n    return {code}{_SUFFIXES[kind]}(a);\n}}\n"
        )
        return self.helper(name, kind, *a)

    def compare(self, code: str, kind: str, a: Value, b: Value) -> Value:
        """Return whether a comparison holds; with nan only "ne" does."""
        if kind == "bool" and code in _TRUTHS:
            first, middle, last = _TRUTHS[code].split("{}")
            return self.value(first, (a, ATOM), middle, (b, ATOM), last, level=CHOICE, kind="bool")
        level = ATOM if kind == "bool" else SUM
        return self.value((a, level), f" {_RELATIONS[code]} ", (b, level), level=COMPARISON, kind="bool")

    def choose(self, condition: Value, a: Value, b: Value, kind: str) -> Value:
        """Return `a` if a condition holds, else `b`."""
        return self.value((condition, CHOICE + 1), " ? ", (a, CHOICE + 1), " : ", (b, CHOICE), level=CHOICE, kind=_TYPES[kind])

    def cast(self, value: Value, source: str, dtype: str) -> Value:
        """Return a value in another dtype."""
        if source == dtype:
            return value
        if dtype == "bool":
            return self.compare("ne", source, value, self.number(0, source))
        return self.value(f"({_TYPES[dtype]})", (value, UNARY), level=UNARY, kind=_TYPES[dtype])


@dataclass(slots=True)
class _Loop:
    """An open loop: the line for its pragma, whether its iterations are independent, and the sums in it."""

    pragma: Line
    vector: bool
    sums: dict[Value, None]


def _number(text: str) -> Value:
    return Value((text,), UNARY if text[0] == "-" else ATOM)


def number_text(value: Any, dtype: str) -> str:
    """Print a number as a literal of a dtype."""
    if dtype == "bool":
        return "true" if value else "false"
    if dtype not in FLOATS:
        value = int(value)
        if value == -(2**63):
            return "INT64_MIN"
        if value == -(2**31):
            return "INT32_MIN"
        return str(value) if abs(value) < 2**31 else f"INT64_C({value})" if value > 0 else f"-INT64_C({-value})"
    value = float(value)
    if dtype == "float32":
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    if not math.isfinite(value):
        return "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"
    if dtype == "float64":
        return repr(value)
    digits = next(n for n in range(1, 10) if struct.pack("<f", float(f"{value:.{n}g}")) == struct.pack("<f", value))
    text = f"{value:.{digits}g}"
    return f"{text if '.' in text or 'e' in text else f'{text}.0'}f"


# -- scalar operations that are more than one symbol -------------------------------------------------------------------------


def _square(w: _Writer, kind: str, a: list[Any]) -> Value:
    return w.arithmetic("mul", kind, a[0], a[0])


def _cube(w: _Writer, kind: str, a: list[Any]) -> Value:
    return w.arithmetic("mul", kind, _square(w, kind, a), a[0])


def _reciprocal(w: _Writer, kind: str, a: list[Any]) -> Value:
    return w.arithmetic("div", kind, w.number(1, kind), a[0])


def _multiply_add(w: _Writer, kind: str, a: list[Any]) -> Value:
    name = f"fma{_SUFFIXES[kind]}"
    body = f"#ifdef FP_FAST_{name.upper()}\n    return {name}(a, b, c);\n#else\n    return a * b + c;\n#endif"
    text = f"(TYPE a, TYPE b, TYPE c)\n{{\n{body}\n}}\n"
    return w.helper(w.name_of("multiply_add", kind, text), kind, *a)


def _absolute(w: _Writer, kind: str, a: list[Any]) -> Value:
    if kind in FLOATS:
        return w.call("fabs", kind, a[0])
    return w.choose(w.compare("lt", kind, a[0], w.number(0, kind)), _negative(w, kind, a), a[0], kind)


def _extremum(w: _Writer, kind: str, a: list[Any], code: str) -> Value:
    """Return the first of two numbers if it is more extreme or nan, else the second, as NumPy does for zeros of both signs."""
    test = f"a {_RELATIONS[code]} b{' || a != a' if kind in FLOATS else ''}"
    name = "maximum" if code == "gt" else "minimum"
    return w.helper(w.name_of(name, kind, f"(TYPE a, TYPE b)\n{{\n    return {test} ? a : b;\n}}\n"), kind, a[0], a[1])


def _negative(w: _Writer, kind: str, a: list[Any]) -> Value:
    if kind in FLOATS:
        return w.value("-", (a[0], ATOM), level=UNARY, kind=_TYPES[kind])
    return w.arithmetic("sub", kind, w.number(0, kind), a[0])


def _sign(w: _Writer, kind: str, a: list[Any]) -> Value:
    text = "(TYPE a)\n{\n    return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;\n}\n"
    return w.helper(w.name_of("sign", kind, text), kind, a[0])


def _share(w: _Writer, kind: str, a: list[Any]) -> Value:
    """Return zero if the first of two numbers is smaller, half of a cotangent if they are equal, and otherwise all of it."""
    half = w.number(0.5, kind).spelled()
    text = f"(TYPE g, TYPE a, TYPE b)\n{{\n    return a < b ? 0 : a == b ? g * {half} : g;\n}}\n"
    return w.helper(w.name_of("share", kind, text), kind, *a)


def _test(w: _Writer, a: list[Any], name: str) -> Value:
    """Return the test whether the macro `name` returns a number other than zero."""
    return w.value(f"{name}(", (a[0], 0), ") != 0", level=COMPARISON, kind="bool")


_SPECIAL: dict[str, Any] = {
    "abs": _absolute,
    "copy": lambda w, kind, a: a[0],
    "fma": _multiply_add,
    "gt": lambda w, kind, a: _extremum(w, kind, a, "gt"),
    "isfinite": lambda w, kind, a: _test(w, a, "isfinite"),
    "isinf": lambda w, kind, a: _test(w, a, "isinf"),
    "isnan": lambda w, kind, a: _test(w, a, "isnan"),
    "keep": lambda w, kind, a: w.choose(a[0], a[1], w.number(0, kind), kind),
    "lt": lambda w, kind, a: _extremum(w, kind, a, "lt"),
    "neg": _negative,
    "not": lambda w, kind, a: w.value("!", (a[0], ATOM), level=UNARY, kind="bool"),
    "reciprocal": _reciprocal,
    "share": _share,
    "sign": _sign,
    "signbit": lambda w, kind, a: _test(w, a, "signbit"),
    "square": _square,
    "where": lambda w, kind, a: w.choose(*a, kind),
}
#: The powers that NumPy's operator computes by other means than a power.
_POWERS: dict[float, Any] = {
    1: lambda w, kind, a: a[0],
    2: _square,
    3: _cube,
    0.5: lambda w, kind, a: w.call("sqrt", kind, a[0]),
    -1: _reciprocal,
}


# -- checks and products -------------------------------------------------------------------------------------------------------


def _write_check(check: Check, w: _Writer) -> None:
    """Write the test that all elements of an array are indices of an axis."""
    key, n = check.key, check.length
    terms = [(w.open_loop(w.number(0, "int64"), w.extent(m), 1, vector=False), stride) for m, stride in zip(key.shape, key.strides)]
    terms = [(i, stride) for i, stride in terms if stride]
    index = w.load(key.buffer, key.offset, terms)
    w.block.put("if (", (index, SUM), f" < {-n} || ", (index, SUM), f" >= {n})")
    w.block.put("    return false;")
    for _ in key.shape:
        w.close_loop()


_GEMMS = {"float64": "cblas_dgemm", "float32": "cblas_sgemm"}
_MATMUL = """\
/* c = a b, or c += a b: a has m x k and b k x n elements, with the given steps between rows and columns; c is dense. */
static void NAME(int64_t m, int64_t n, int64_t k, const TYPE *restrict a, int64_t a_row, int64_t a_column,
    const TYPE *restrict b, int64_t b_row, int64_t b_column, TYPE *restrict c, bool adds)
{
#ifdef XPGRAD_BLAS
    const bool rows_a = a_column == 1 || k == 1, rows_b = b_column == 1 || n == 1;
    const int64_t lda = rows_a ? (a_row > k ? a_row : k) : (a_column > m ? a_column : m);
    const int64_t ldb = rows_b ? (b_row > n ? b_row : n) : (b_column > k ? b_column : k);

    GEMM(CblasRowMajor, rows_a ? CblasNoTrans : CblasTrans, rows_b ? CblasNoTrans : CblasTrans, (int)m, (int)n, (int)k,
        1, a, (int)lda, b, (int)ldb, adds ? 1 : 0, c, (int)n);
#else
    if (n == 1 && m > 1) { /* the transposes in the other order: long rows */
        NAME(1, m, k, b, b_column, b_row, a, a_column, a_row, c, adds);
        return;
    }
    for (int64_t i = 0; i < m * n && !adds; i++)
        c[i] = 0;
    if (m == 1 && b_row == 1) { /* products of vectors */
        for (int64_t j = 0; j < n; j++) {
            for (int64_t p = 0; p < k; p += 4096) {
                const int64_t end = p + 4096 < k ? p + 4096 : k;
                TYPE sum = 0;
#pragma omp simd reduction(+ : sum)
                for (int64_t q = p; q < end; q++)
                    sum += a[a_column * q] * b[q + b_column * j];
                c[j] += sum;
            }
        }
        return;
    }
    /* Blocks of b are copied in the order in which they are read. */
    TYPE block[64][128];
    for (int64_t j = 0; j < n; j += 128) {
        const int64_t width = j + 128 < n ? 128 : n - j;
        for (int64_t p = 0; p < k; p += 64) {
            const int64_t height = p + 64 < k ? 64 : k - p;
            for (int64_t q = 0; q < height; q++)
                for (int64_t l = 0; l < width; l++)
                    block[q][l] = b[b_row * (p + q) + b_column * (j + l)];
            for (int64_t i = 0; i < m; i++) {
                const TYPE *restrict row = a + a_row * i + a_column * p;
                TYPE *restrict to = c + n * i + j;
                int64_t q = 0;
                for (; q + 4 <= height; q += 4) {
                    const TYPE a0 = row[a_column * q], a1 = row[a_column * (q + 1)];
                    const TYPE a2 = row[a_column * (q + 2)], a3 = row[a_column * (q + 3)];
                    for (int64_t l = 0; l < width; l++)
                        to[l] += (a0 * block[q][l] + a1 * block[q + 1][l]) + (a2 * block[q + 2][l] + a3 * block[q + 3][l]);
                }
                for (; q < height; q++)
                    for (int64_t l = 0; l < width; l++)
                        to[l] += row[a_column * q] * block[q][l];
            }
        }
    }
#endif
}
"""
