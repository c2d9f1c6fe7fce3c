"""Print a program as a function in plain NumPy, as if written by hand: operators, `out=` into dead arrays, the user's names and lines.

The text uses ``np.`` and runs on NumPy alone. It computes the same dtypes and bits as the kernels of the NumPy backend: each kernel is
printed as an expression or as a helper function in the text. Unknown kernels are called from the backend's table ``xp``; `Source.kernels`
lists them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from xpgrad._basics.dtypes import DType
from xpgrad._rows.kernels import kernel_of
from xpgrad.programs.blocks import Loop
from xpgrad.programs.helpers import HELPERS, IN_THREADS, select_helpers
from xpgrad.programs.literals import augmented_text, cast_text, key_text, operator_text, text_of
from xpgrad.programs.loop_text import write_loop
from xpgrad.programs.naming import Names
from xpgrad.programs.passes_text import unwind_lines
from xpgrad.programs.products import Products
from xpgrad.programs.program import INNER, Inner, Operation, Part, Program, Steps, Variable
from xpgrad.programs.reuse import Reuse, reuse
from xpgrad.programs.simplify import with_numbers
from xpgrad.programs.source import Source, comment

__all__ = ["Writer", "numpy_source"]

#: Names that texts use themselves.
_RESERVED = ("block", "start", "stop", "part", "totals", "os", "contextvars", "ThreadPoolExecutor", "_pools", "_submit")
#: Programs with as many operations, on arrays of no more elements, spend their time between the loops of NumPy.
_LONG, _SMALL = 256, 4096
_CALLED = re.compile(r"\bnp\.((?:\w+\.reduce)|[a-z]\w*)\(")
_STATEMENTS = frozenset(("index_basic_transpose", "loop", *INNER))  # more than an expression


def numpy_source(
    program: Program, name: str = "function", plan: Callable[[Program], Reuse] = reuse, docstring: str = "", threads: int = 1
) -> Source:
    """Print a program as NumPy source.

    Parameters
    ----------
    program : Program
    name : str
        The name of the function.
    plan : callable
        Decides which results reuse memory.
    docstring : str
        The docstring of the function.
    threads : int
        The number of threads for blocks of a loop and independent products.
    """
    program = with_numbers(program)
    return Writer(program, name, plan(program), threads).source(docstring)


class Writer:
    """The writer of one text."""

    program: Program
    name: str
    plan: Reuse
    threads: int

    def __init__(self, program: Program, name: str, plan: Reuse, threads: int = 1, root: Writer | None = None) -> None:
        self.program, self.name, self.plan, self.threads = program, name, plan, threads
        self.root: Writer = self if root is None else root
        self.names: Names = Names(name, *_RESERVED, *IN_THREADS, *HELPERS)
        self.called: dict[Variable, str] = {}
        if root is None:
            self.helpers: set[str] = set()
            self.kernels: dict[str, None] = {}
            self.functions: dict[str, Any] = {}
            self.dtypes: dict[str, DType] = {}
            self.constants: dict[str, Any] = {}
            self.inner: list[str] = []  # the functions that loops and branches call
            self.outside: Names = Names(name, *_RESERVED, *IN_THREADS, *HELPERS)  # the names of the module
        else:
            self.helpers, self.kernels, self.functions, self.dtypes = root.helpers, root.kernels, root.functions, root.dtypes
            self.constants, self.inner, self.outside = root.constants, root.inner, root.outside
        self.lines: list[str] = []
        self.indent: str = "    "
        self.inlined: dict[Variable, str] = {}  # as an operand of anything
        self.bare: dict[Variable, str] = {}  # the same where nothing is beside it
        self.before: dict[Variable, Variable] = {operation.out: v for operation, v in plan.into.items()}
        self.holder: dict[str, Variable] = {}  # what a name stands for now
        self.reader: dict[Variable, Operation] = {}

    # -- the function ------------------------------------------------------------------------------------------

    def source(self, docstring: str) -> Source:
        """Print the whole program."""
        self.write_function(docstring)
        head = "import numpy as np" + self.bind() + select_helpers(self.helpers, self.threads)
        text = "\n\n\n".join([head, *self.inner, "\n".join(self.lines)]) + "\n"
        text = text.replace("\n\n    \n", "\n\n")
        parameters = [self.called[v] for v in self.program.inputs]
        return Source(text, self.name, parameters, self.constants, self.dtypes, list(self.kernels), self.functions)

    def module_name(self, base: str) -> str:
        """Return a new name based on `base` that is taken neither in the module nor in this function."""
        while True:
            name = self.outside.new(base)
            if not self.names.is_taken(name):
                return self.names.new(name)

    def write_function(self, docstring: str = "") -> None:
        """Add the lines of the function."""
        program = self.program
        for v in program.inputs:
            self.called[v] = self.names.new(v.name or "x")
        for v, raw in program.constants.items():
            name = self.called[v] = self.module_name(v.name or "c")
            self.constants[name] = raw
        self.find_inlined()
        self.name_results()
        parameters = [self.called[v] for v in program.inputs]
        self.lines.append(f"def {self.name}({', '.join(parameters)}):")
        if docstring:
            self.lines.append(f'    """{docstring}"""')
        line, backward = None, False
        for operation in program.operations:
            if operation.results and operation.results[0] in self.inlined:
                text = self.expression(operation)
                self.bare[operation.out] = text
                simple = operation.facts.operator is None and operation.name not in ("reduce_mean", "scale", "add_at")
                self.inlined[operation.out] = text if simple else f"({text})"
                continue
            if operation.backward and not backward:
                if not self.lines[-1].startswith("def "):
                    self.put("")
                self.put("# backward")
                line = None
            backward = operation.backward
            if operation.line is not None and operation.line != line:
                line = operation.line
                self.put(comment(line))
            self.write(operation)
            for v in operation.results:
                self.holder[self.called[v]] = v
            dropped = self.plan.dropped.get(operation)
            if dropped:
                names = sorted({name for v in dropped if v not in self.inlined for name in self.names_of(v)})
                for name in names:
                    del self.holder[name]
                if names:
                    self.put(f"del {', '.join(names)}")
        outs = [self.ref(v) + (".copy()" if copied else "") for v, copied in zip(program.outputs, self.plan.copied)]
        self.put(f"return {', '.join(outs)}{',' if len(outs) == 1 else ''}" if outs else "return ()")

    def bind(self) -> str:
        """Bind NumPy's functions to names of the module in long programs on small arrays: change the calls, and return the new lines.

        There, looking up ``np.cos`` takes a twentieth of the time of the call. For other programs, return an empty text.
        """
        operations = self.program.operations
        if len(operations) < _LONG or any(v.size > _SMALL for operation in operations for v in operation.results):
            return ""
        bound: dict[str, str] = {}

        def renamed(found: re.Match[str]) -> str:
            name = found[1].replace(".", "_")
            if self.names.is_taken(name) and name not in bound:
                return found[0]
            bound[name] = found[1]
            return f"{name}("

        self.lines = [line if line.lstrip().startswith("#") else _CALLED.sub(renamed, line) for line in self.lines]
        plain = sorted(name for name, path in bound.items() if name == path)
        lines = [f"from numpy import {', '.join(plain)}"] if plain else []
        lines += [f"\n{name} = np.{path}" for name, path in sorted(bound.items()) if name != path]
        return "".join(f"\n{line}" for line in lines)

    def names_of(self, v: Variable) -> set[str]:
        """Return all names that still stand for the memory of a variable."""
        found = set()
        while True:
            if self.holder.get(self.called[v]) is v:
                found.add(self.called[v])
            if v not in self.before:
                return found
            v = self.before[v]

    def put(self, line: str) -> None:
        """Add a line."""
        self.lines.append(self.indent + line if line else "")

    def find_inlined(self) -> None:
        """Find results to print inside the expression that reads them: those with a single reader and without a user's name.

        Views always qualify; other results only if no statement comes in between, and no result reuses their memory.
        """
        operations, into = self.program.operations, self.plan.into
        count: dict[Variable, int] = dict.fromkeys(self.program.outputs, 2)
        reader: dict[Variable, Operation] = {}
        for operation in operations:
            reads = 2 if operation.__class__ is Loop or operation.name in INNER else 1  # there it would be made again for each block
            for v in operation.operands():
                count[v] = count.get(v, 0) + reads
                reader[v] = operation
        taken = set(into.values())
        following: Operation | None = None  # the statement that comes next
        for operation in reversed(operations):
            if not operation.several and operation.out.name is None and count.get(operation.out) == 1:
                out, name = operation.out, operation.name
                next_reads = following is not None and reader[out] is following and operation.backward == following.backward
                facts = kernel_of(name)
                whole = facts.updates or name in _STATEMENTS or operation in into or out in taken
                if facts.is_view or (next_reads and not whole):
                    self.inlined[out] = self.bare[out] = ""
                    self.reader[out] = reader[out]
                    continue
            following = operation

    def name_results(self) -> None:
        """Name all results: the user's name, else the name of the memory that they reuse or that gets a name later.

        The other results share a few names: binding a name again frees the memory of its former value.
        """
        operations, into, called, names = self.program.operations, self.plan.into, self.called, self.names
        heir = {v: operation.out for operation, v in into.items()}
        later: dict[Variable, Variable] = {}  # the first to take a variable's memory, at however many removes, that the user has a name for
        for operation in reversed(operations):
            taken = into.get(operation)
            if taken is not None:
                named = operation.out if operation.out.name is not None else later.get(operation.out)
                if named is not None:
                    later[taken] = named
        last: dict[Variable, int] = {}
        place: dict[Operation, int] = {}
        for k in range(len(operations) - 1, -1, -1):
            operation = operations[k]
            inlined = operation.several is False and operation.out in self.inlined
            place[operation] = position = place[self.reader[operation.out]] if inlined else k
            for v in operation.operands():
                if last.get(v, -1) < position:
                    last[v] = position
        for v in self.program.outputs:
            last[v] = len(operations)
        for operation in operations:
            for v in operation.results:
                if v.name is not None:
                    called[v] = names.new(v.name)
        dying: dict[int, list[Variable]] = {}
        free: dict[str, list[str]] = {"t": [], "g": []}
        shared: set[Variable] = set()
        for k, operation in enumerate(operations):
            taken = into.get(operation)
            prefix = "g" if operation.backward else "t"
            for v in operation.results:
                if v in self.inlined:
                    continue
                if v not in called:
                    if taken is not None and taken in called and operation.name != "matmul":
                        called[v] = called[taken]
                        if taken in shared:
                            shared.add(v)
                    elif v in later:
                        called[v] = called[later[v]]
                    else:
                        called[v] = free[prefix].pop() if free[prefix] else names.next_name(prefix)
                        shared.add(v)
                if v in shared and v not in heir:
                    dying.setdefault(max(last.get(v, k), k), []).append(v)
            for v in dying.get(k, ()):
                free[called[v][0]].append(called[v])

    def ref(self, x: Any) -> str:
        """Return how an argument is written in the text: a variable's name or inlined expression, or a dtype.

        Raises
        ------
        TypeError
            The argument is of another type.
        """
        if x.__class__ is Variable:
            if x in self.inlined:
                return self.inlined[x]
            return self.called[x]
        if isinstance(x, DType):
            return "np.bool_" if x.name == "bool" else f"np.{x.name}"
        msg = f"{self.name}: a program holds an argument of type {type(x).__name__!r}, which has no text"
        raise TypeError(msg)

    def alone(self, x: Any) -> str:
        """Print an argument that stands alone, without parentheses."""
        return self.bare[x] if x.__class__ is Variable and x in self.bare else text_of(x, self.ref)

    def text(self, x: Any) -> str:
        """Return the source of an argument, in parentheses if needed."""
        return text_of(x, self.ref)

    # -- operations --------------------------------------------------------------------------------------------

    def write(self, operation: Operation) -> None:
        """Add the statement of one operation."""
        name = operation.name
        if isinstance(operation, Loop):
            write_loop(self, operation)
            return
        if isinstance(operation, Products):
            self.helpers.add("_side_by_side")
            calls = ", ".join([f"lambda: {self.expression(o)}" for o in operation.body])
            self.put(f"{', '.join([self.called[v] for v in operation.results])} = _side_by_side({calls})")
            return
        if name in INNER:
            getattr(self, f"write_{name}")(operation)
            return
        if isinstance(operation, Part):
            name = self.module_name("part")
            self.functions[name] = operation.function
            results = ", ".join([self.called[v] for v in operation.results])
            self.put(f"{results}, = {name}({', '.join([self.alone(v) for v in operation.args])})")
            return
        if operation.several:
            self.put(f"{', '.join([self.called[v] for v in operation.results])}, = {self.expression(operation)}")
            return
        out = operation.out
        taken = self.plan.into.get(operation)
        facts = kernel_of(name)
        if facts.updates and out.shape:
            self.write_into(operation, taken)
        elif name == "index_basic_transpose":
            values, key, shape = operation.args
            self.put(f"{self.called[out]} = np.zeros({shape[0] if len(shape) == 1 else shape}{self.dtype(out.dtype)})")
            self.put(f"{self.called[out]}[{key_text(key, shape, self.ref)}] = {self.alone(values)}")
        elif taken is not None:
            target, here = self.called[out], self.called[taken]
            args = [self.alone(x) for x in operation.args]
            augmented = augmented_text(facts.operator, target, args) if target == here and taken in operation.args else None
            prefix = "" if target == here else f"{target} = "
            self.put(augmented or f"{prefix}np.{facts.ufunc or name}({', '.join(args)}, out={here})")
        else:
            self.put(f"{self.called[out]} = {self.expression(operation)}")

    def inner_functions(self, operation: Operation) -> list[str]:
        """Return the names of the functions that a loop or a branch calls; add those that no emitter compiled to the module."""
        inner: Inner = operation.options["inner"]
        names = []
        for k, (base, program) in enumerate(zip(inner.names(operation.name), inner.programs)):
            name = self.module_name(base)
            names.append(name)
            if inner.functions is not None:
                self.functions[name] = inner.functions[k]
                continue
            program = with_numbers(program)
            plan = reuse(program)
            if isinstance(inner, Steps):  # NB: the loop copies the other results
                plan.copied = [copied and i < inner.count for i, copied in enumerate(plan.copied)]
            body = Writer(program, name, plan, self.threads, self.root)
            body.write_function()
            self.inner.append("\n".join(body.lines))
        return names

    def write_scan(self, operation: Operation) -> None:
        """Print the loop of a scan, whose steps are calls of a function."""
        steps: Steps = operation.options["inner"]
        (name,) = self.inner_functions(operation)
        init, xs, shared = operation.args
        results = [self.called[v] for v in operation.results]
        carry, stacks, k = results[: steps.count], results[steps.count :], self.names.new("k")
        rows = [self.names.new("row") for _ in stacks]
        if init:
            self.put(f"{', '.join(carry)}, = {', '.join([self.alone(v) for v in init])},")
        for y, v in zip(stacks, operation.results[steps.count :]):
            self.put(f"{y} = np.empty({v.shape[0] if len(v.shape) == 1 else v.shape}{self.dtype(v.dtype)})")
        self.put(f"for {k} in {steps.order_text}:")
        before, self.indent = self.indent, self.indent + "    "
        given = [*carry, *(f"{self.text(x)}[{k}]" for x in xs), *(self.alone(v) for v in shared)]
        self.put(f"{', '.join([*carry, *rows])}, = {name}({', '.join(given)})")
        for y, row in zip(stacks, rows):
            self.put(f"{y}[{k}] = {row}")
        self.indent = before

    def write_while(self, operation: Operation) -> None:
        """Print a loop that runs while a function returns true."""
        test, step = self.inner_functions(operation)
        init, tested, shared = [[self.alone(v) for v in group] for group in operation.args]
        carry = self.names.new("carry")
        self.put(f"{carry} = ({', '.join([f'{x}.copy()' for x in init])},)")  # NB: it may run no step
        self.put(f"while {test}({', '.join([f'*{carry}', *tested])})[0]:")
        self.put(f"    {carry} = {step}({', '.join([f'*{carry}', *shared])})")
        self.put(f"{', '.join([self.called[v] for v in operation.results])}, = {carry}")

    def write_unwind(self, operation: Operation) -> None:
        """Write a while loop that keeps a row for each step, and the loops of the passes over these rows."""
        names = self.inner_functions(operation)
        init, tested, shared, *others = [[self.alone(v) for v in group] for group in operation.args]
        starts = [[f"{x}.copy()" for x in start] for start in others[::2]]
        for line in unwind_lines(operation, names, (init, tested, shared), starts, others[1::2], self.names, self.called):
            self.put(line)

    def write_branch(self, operation: Operation) -> None:
        """Print a call of one of two functions."""
        holds, *read = operation.args
        names = self.inner_functions(operation)
        first, second = [f"{name}({', '.join([self.alone(v) for v in group])})" for name, group in zip(names, read)]
        self.put(f"{', '.join([self.called[v] for v in operation.results])}, = {first} if {self.text(holds)} else {second}")

    def write_into(self, operation: Operation, taken: Variable | None) -> None:
        """Print a write into a buffer: in place, or into a copy if the old values are still read."""
        buffer, other, key = operation.args
        if operation.name == "written":
            key, other = other, key
        target, here = self.called[operation.out], self.ref(buffer)
        if taken is None:
            self.put(f"{target} = {here}.copy()")
        elif target != here:
            self.put(f"{target} = {here}")
        if operation.name == "scatter_into":
            self.helpers.add("_scatter_into")
            self.put(f"_scatter_into({target}, {self.text(other)}, {self.text(key)})")
        else:
            sign, text = "+=" if operation.name == "add_at" else "=", self.alone(other)
            if sign == "+=" and text[0] == "-" and text[1:].isidentifier():
                sign, text = "-=", text[1:]
            self.put(f"{target}[{key_text(key, buffer.shape, self.ref)}] {sign} {text}")

    def expression(self, operation: Operation) -> str:
        """Return the source of the right-hand side of an operation's statement."""
        name = operation.name
        found = _WRITERS.get(name)
        if found is not None:
            text: str | None = found(self, operation)
            if text is not None:
                return text
        facts = kernel_of(name)
        if facts.helper:
            return self.helper(f"_{name}", *operation.args)
        if not operation.options:
            args = operation.args
            if facts.operator is not None:
                return operator_text(name, [self.text(x) for x in args])
            if facts.ufunc is not None:
                return f"np.{facts.ufunc}({', '.join([self.alone(x) for x in args])})"
        if facts.numpy is not None:
            return self.call(f"np.{facts.numpy}", operation)
        self.kernels[name] = None
        return self.call(f"xp.{name}", operation, self.kernel_argument)

    def call(self, function: str, operation: Operation, ref: Callable[[Any], str] | None = None) -> str:
        """Print a call with the operation's arguments, without a device."""
        ref = ref or self.ref
        args = [text_of(x, ref) for x in operation.args]
        args += [f"{k}={text_of(x, ref)}" for k, x in operation.options.items() if k != "device"]
        return f"{function}({', '.join(args)})"

    def kernel_argument(self, x: Any) -> str:
        """Print an argument of a kernel; a dtype is the library's object."""
        if isinstance(x, DType):
            name = f"dtype_{x.name}"
            self.dtypes[name] = x
            return name
        return self.ref(x)

    def helper(self, name: str, *args: Any) -> str:
        """Print a call of a helper function, and include the helper."""
        self.helpers.add(name)
        return f"{name}({', '.join([self.alone(x) for x in args])})"

    def dtype(self, dtype: DType) -> str:
        """Print `dtype` as the last argument of a function that makes an array; empty for float64."""
        return "" if dtype.name == "float64" else f", {self.ref(dtype)}"


# -- what is neither an operator nor a call of the same name --------------------------------------------------------------

_Write = Callable[[Writer, Operation], "str | None"]
_WRITERS: dict[str, _Write] = {}


def _writes(*names: str) -> Callable[[_Write], _Write]:
    def register(function: _Write) -> _Write:
        _WRITERS.update(dict.fromkeys(names, function))
        return function

    return register


def _axes(axes: Any) -> str:
    if axes.__class__ is tuple and len(axes) == 1:
        return str(axes[0])
    return str(axes)


def _reduction(w: Writer, function: str, operation: Operation) -> str:
    x, axes, keepdims = operation.args
    if axes is None and len(x.shape) == 1 and not keepdims:
        return f"{function}({w.alone(x)})"  # the only axis is the first
    keep = ", keepdims=True" if keepdims else ""
    return f"{function}({w.alone(x)}, {_axes(axes)}{keep})"


@_writes("reduce_sum", "reduce_max", "reduce_min")
def _reduce(w: Writer, operation: Operation) -> str:
    x, axes, keepdims = operation.args
    if operation.name == "reduce_sum" and not x.dtype.differentiable:
        return f"np.sum({w.ref(x)}, axis={axes}, keepdims={keepdims})"
    return _reduction(w, f"np.{operation.facts.numpy}", operation)


@_writes("reduce_prod")
def _product(w: Writer, operation: Operation) -> str:
    x, axes, keepdims = operation.args
    return f"np.prod({w.ref(x)}, axis={axes}, keepdims={keepdims})"


@_writes("reduce_mean")
def _mean(w: Writer, operation: Operation) -> str:
    x, axes, keepdims = operation.args
    if x.dtype.name == "float16":
        return f"np.mean({w.ref(x)}, axis={axes}, keepdims={keepdims})"
    count = x.size if axes is None else math.prod(x.shape[a] for a in axes)
    return f"{_reduction(w, 'np.add.reduce', operation)} / {count}"


@_writes("sum_to")
def _sum_to(w: Writer, operation: Operation) -> str:
    x, shape = operation.args
    full = x.shape
    if full == shape:
        return w.ref(x)
    extra = len(full) - len(shape)
    axes = (*range(extra), *(i + extra for i, n in enumerate(shape) if n == 1 and full[i + extra] != 1))
    text = f"np.add.reduce({w.ref(x)}, {_axes(None if len(axes) == len(full) else axes)}{', keepdims=True' if not extra else ''})"
    return f"{text}.reshape({shape})" if extra and 1 in shape else text


@_writes("reshape", "reshape_to", "expand_dims", "squeeze")
def _reshape(w: Writer, operation: Operation) -> str:
    x: Any = operation.args[0]
    shape: Any = operation.out.shape
    if not shape:
        return f"{w.ref(x)}.reshape(())"
    if len(shape) == len(x.shape) + 1 and x.shape:  # a new axis reads better as one
        for axis, text in ((len(x.shape), f"{':, ' * len(x.shape)}None"), (0, "None")):
            if shape[axis] == 1 and shape[:axis] + shape[axis + 1 :] == x.shape:
                return f"{w.ref(x)}[{text}]"
    return f"{w.ref(x)}.reshape({shape if len(shape) > 1 else shape[0]})"


@_writes("transpose_axes", "permute_dims", "swap_last", "matrix_transpose")
def _transpose(w: Writer, operation: Operation) -> str:
    x = operation.args[0]
    rank = len(x.shape)
    if operation.name in ("swap_last", "matrix_transpose"):
        axes = (*range(rank - 2), rank - 1, rank - 2)
    else:
        axes = tuple(a % rank for a in (operation.args[1] if len(operation.args) > 1 else operation.options["axes"]))
    if axes == (1, 0):
        return f"{w.ref(x)}.T"
    if rank > 1 and axes == (*range(rank - 2), rank - 1, rank - 2):
        return f"{w.ref(x)}.swapaxes(-1, -2)"
    return f"{w.ref(x)}.transpose({axes})"


@_writes("broadcast_to", "broadcast_view")
def _broadcast(w: Writer, operation: Operation) -> str:
    return f"np.broadcast_to({w.ref(operation.args[0])}, {operation.out.shape})"


@_writes("expand_reduced")
def _expand(w: Writer, operation: Operation) -> str:
    x, shape, axes, keepdims = operation.args
    text = w.ref(x)
    if axes is not None and not keepdims and x.shape:
        axes = {a % len(shape) for a in axes}
        text += f"[{', '.join('None' if i in axes else ':' for i in range(len(shape)))}]"
    return f"np.broadcast_to({text}, {shape})"


@_writes("index_basic")
def _index(w: Writer, operation: Operation) -> str:
    x, key = operation.args
    return f"{w.ref(x)}[{key_text(key, x.shape, w.ref)}]"


@_writes("gather")
def _gather(w: Writer, operation: Operation) -> str:
    x, key = operation.args
    parts = key if key.__class__ is tuple else (key,)
    if len(parts) == 1 and parts[0].__class__ is Variable and parts[0].dtype.name != "bool":
        return f"{w.ref(x)}.take({w.ref(parts[0])}, axis=0)"
    return f"{w.ref(x)}[{key_text(key, x.shape, w.ref)}]"


@_writes("take_flat")
def _take_flat(w: Writer, operation: Operation) -> str:
    return f"{w.ref(operation.args[0])}.take({w.ref(operation.args[1])})"


@_writes("diagonal_view")
def _diagonal(w: Writer, operation: Operation) -> str:
    return f"np.diagonal({w.ref(operation.args[0])}, {operation.args[1]}, -2, -1)"


@_writes("add_at")
def _add_to_number(w: Writer, operation: Operation) -> str:
    buffer, g, _ = operation.args
    return f"{w.ref(buffer)} + {w.ref(g)}" + (".reshape(())" if g.shape else "")


@_writes("scatter_into", "written")
def _write_number(w: Writer, operation: Operation) -> str:
    buffer, other, key = operation.args
    if operation.name == "written":
        text = f"np.array({w.ref(buffer)})"
        w.helpers.add("_written")
        return f"_written({text}, {w.text(other)}, {w.text(key)})"
    w.helpers.add("_scatter_into")
    return f"_scatter_into(np.array({w.ref(buffer)}), {w.text(other)}, {w.text(key)})"


@_writes("scale")
def _scale(w: Writer, operation: Operation) -> str:
    return f"{w.ref(operation.args[0])} * {w.text(operation.args[1])}"


@_writes("to_dtype", "astype", "wide")
def _cast(w: Writer, operation: Operation) -> str:
    x, out = operation.args[0], operation.out
    if operation.name != "to_dtype" and x.dtype is out.dtype:
        return w.ref(x)
    return cast_text(w.ref(x), x, out, w.ref(out.dtype))


@_writes("copy", "clone", "clone_contiguous")
def _copy(w: Writer, operation: Operation) -> str:
    return f"{w.ref(operation.args[0])}.copy()"


@_writes("asarray")
def _asarray(w: Writer, operation: Operation) -> str | None:
    x, out = operation.args[0], operation.out
    if x.__class__ is not Variable:
        return None
    return w.ref(x) if x.dtype is out.dtype else f"{w.ref(x)}.astype({w.ref(out.dtype)})"


@_writes("zeros", "ones", "empty")
def _filled_text(w: Writer, operation: Operation) -> str:
    out = operation.out
    shape = out.shape[0] if len(out.shape) == 1 else out.shape
    return f"np.{operation.name}({shape}{w.dtype(out.dtype)})"


@_writes("full")
def _full(w: Writer, operation: Operation) -> str:
    out = operation.out
    value = operation.args[1] if len(operation.args) > 1 else operation.options["fill_value"]
    return f"np.full({out.shape}, {w.text(value)}, {w.ref(out.dtype)})"


@_writes("real_part", "imag_part")
def _part(w: Writer, operation: Operation) -> str:
    return f"{w.ref(operation.args[0])}.{operation.name[:4]}"
