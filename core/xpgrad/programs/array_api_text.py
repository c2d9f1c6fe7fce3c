"""Print a program as calls of a backend's kernels: the same text runs on any library.

Functions of the standard have their own names (``xp.sin(x)``), arithmetic uses Python's operators, which take numbers on either side, and
private kernels are those of `xpgrad.backend`. Nothing is overwritten: kernels that change their first operand get a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._basics.dtypes import DType
from xpgrad._rows.kernels import Kernel, kernel_of
from xpgrad.programs.literals import operator_text, text_of
from xpgrad.programs.naming import Names
from xpgrad.programs.passes_text import unwind_lines
from xpgrad.programs.program import Inner, Operation, Program, Steps, Variable, variables_in
from xpgrad.programs.source import Source, built, comment

__all__ = ["array_api_function", "array_api_source"]


def array_api_source(program: Program, name: str = "function", docstring: str = "", *, backend: Any = None) -> Source:
    """Generate the source of a program in Array API calls, which run on any backend.

    Parameters
    ----------
    program : Program
        A program without loops over blocks.
    name, docstring : str
        The name and the docstring of the function.
    backend : Backend or None
        The backend whose arrays it will take; None for any library whose operators compute what the functions do.

    Returns
    -------
    Source
        Its text refers to ``xp``, the backend's table of kernels (`Backend.kernels`).
    """
    return _Writer(program, name, backend).source(docstring)


def _slice_text(x: str, k: str) -> str:
    return f"xp.index_basic({x}, ({k},))"


def array_api_function(program: Program, backend: Any) -> Callable[..., tuple[Any, ...]]:
    """Compile a program into a function of raw arrays that calls the backend's kernels."""
    return built(array_api_source(program, backend=backend), {"xp": backend.kernels}, backend.raw_dtype)


def _is_always_new(facts: Kernel) -> bool:
    """Return whether every library returns the result of a kernel in new memory."""
    return facts.operator is not None or (facts.ufunc is not None and not facts.may_return_operand) or facts.name == "reduce_sum"


class _Writer:
    """A writer of the Array API source of one program, or of one that a loop or a branch of it runs."""

    def __init__(self, program: Program, name: str, backend: Any, root: _Writer | None = None) -> None:
        self.program, self.name, self.backend = program, name, backend
        self.root = root = self if root is None else root
        self.names = Names(name, "inf", "nan")
        self.called: dict[Variable, str] = {}
        self.own_statics: dict[str, Any] = {}
        if root is self:
            self.dtypes: dict[str, DType] = {}
            self.statics: dict[str, Any] = {}
            self.kernels: dict[str, None] = {}
            self.constants: dict[str, Any] = {}
            self.inner: list[str] = []  # the functions that loops and branches call
            self.outside = Names(name, "inf", "nan")  # the names of the module
        else:
            self.dtypes, self.statics, self.kernels = root.dtypes, root.statics, root.kernels
            self.constants, self.inner, self.outside = root.constants, root.inner, root.outside

    def source(self, docstring: str) -> Source:
        """Print the whole program."""
        lines = self.function(docstring)
        parts = [*self.inner, "\n".join(lines)]
        text = "from math import inf, nan\n\n\n" + "\n\n\n".join(parts) + "\n"
        parameters = [self.called[v] for v in self.program.inputs]
        return Source(text, self.name, parameters, {**self.constants, **self.statics}, self.dtypes, list(self.kernels))

    def module_name(self, base: str) -> str:
        """Return a new name based on `base` that is taken neither in the module nor in this function."""
        while True:
            name = self.outside.new(base)
            if not self.names.is_taken(name):
                return self.names.new(name)

    def function(self, docstring: str = "") -> list[str]:
        """Return the lines of the function."""
        program, called, names = self.program, self.called, self.names
        for v in program.inputs:
            called[v] = names.new(v.name or "x")
        parameters = [called[v] for v in program.inputs]
        for v, raw in program.constants.items():
            called[v] = self.module_name(v.name or "c")
            self.constants[called[v]] = raw
        dead = self.find_dead()
        free: list[str] = []
        lines = [f"def {self.name}({', '.join(parameters)}):"]
        if docstring:
            lines.append(f'    """{docstring}"""')
        line, backward = None, False
        for k, operation in enumerate(program.operations):
            if operation.backward and not backward:
                lines += ["    # backward"] if len(lines) == 1 else ["", "    # backward"]
                line = None
            backward = operation.backward
            if operation.line is not None and operation.line != line:
                line = operation.line
                lines.append(f"    {comment(line)}")
            inner = operation.options.get("inner")
            text = self.expression(operation) if inner is None else ""
            given = [[called[v] for v in variables_in((group,))] for group in operation.args] if inner is not None else []
            for v in operation.results:
                called[v] = names.new(v.name) if v.name is not None else free.pop() if free else names.next_name("t")
            results = ", ".join([called[v] for v in operation.results]) + ("," if operation.several else "")
            if inner is None:
                lines.append(f"    {results} = {text}")
            else:
                lines += getattr(self, f"write_{operation.name}")(operation, given, [called[v] for v in operation.results])
            for v in dead.get(k, ()):  # a name that is bound again frees what it stood for
                if v.name is None:
                    free.append(called[v])
        own = {o.out for o in program.operations if _is_always_new(o.facts)}
        outs = []
        for i, v in enumerate(program.outputs):
            shared = v not in own or v in program.outputs[:i]
            outs.append(f"xp.copy({called[v]})" if shared else called[v])
        lines.append(f"    return {', '.join(outs)}{',' if len(outs) == 1 else ''}" if outs else "    return ()")
        return lines

    def inner_functions(self, operation: Operation) -> list[str]:
        """Add the functions that a loop or a branch calls to the module, and return their names."""
        inner: Inner = operation.options["inner"]
        names = [self.module_name(base) for base in inner.names(operation.name)]
        for name, program in zip(names, inner.programs):
            self.inner.append("\n".join(_Writer(program, name, self.backend, self.root).function()))
        return names

    def write_scan(self, operation: Operation, given: list[list[str]], results: list[str]) -> list[str]:
        """Return the lines of the loop of a scan."""
        steps: Steps = operation.options["inner"]
        (name,) = self.inner_functions(operation)
        init, xs, shared = given
        self.kernels["index_basic"] = None
        carry, stacks = [self.names.new("carry") for _ in init], results[len(init) :]
        rows = [self.names.new("rows") for _ in stacks]
        found = [self.names.new("row") for _ in stacks]
        k = self.names.new("k")
        lines = [f"    {c} = {x}" for c, x in zip(carry, init)] + [f"    {r} = []" for r in rows]
        lines.append(f"    for {k} in {steps.order_text}:")
        calls = [*carry, *(_slice_text(x, k) for x in xs), *shared]
        lines.append(f"        {', '.join([*carry, *found])}, = {name}({', '.join(calls)})")
        lines += [f"        {r}.append({y})" for r, y in zip(rows, found)]
        if stacks:
            self.kernels["stack"] = None
        backwards = "[::-1]" if steps.reverse else ""
        lines += [f"    {y} = xp.stack({r}{backwards}, axis=0)" for y, r in zip(stacks, rows)]
        return lines + [f"    {x} = {c}" for x, c in zip(results, carry)]

    def write_while(self, operation: Operation, given: list[list[str]], results: list[str]) -> list[str]:
        """Return the lines of a loop that runs while a function returns true."""
        test, step = self.inner_functions(operation)
        init, tested, shared = given
        carry = self.names.new("carry")
        return [
            f"    {carry} = {self.copies(init)}",
            f"    while {test}({', '.join([f'*{carry}', *tested])})[0]:",
            f"        {carry} = {step}({', '.join([f'*{carry}', *shared])})",
            f"    {', '.join(results)}, = {carry}",
        ]

    def write_unwind(self, operation: Operation, given: list[list[str]], results: list[str]) -> list[str]:
        """Return the lines of a loop that keeps a row for each step, and of the passes over these rows."""
        names = self.inner_functions(operation)
        init, tested, shared, *others = given
        self.kernels["copy"] = None
        starts = [[f"xp.copy({x})" for x in start] for start in others[::2]]
        lines = unwind_lines(
            operation, names, (init, tested, shared), starts, others[1::2], self.names, dict(zip(operation.results, results))
        )
        return [f"    {line}" for line in lines]

    def write_branch(self, operation: Operation, given: list[list[str]], results: list[str]) -> list[str]:
        """Return the line that calls one of two functions."""
        names = self.inner_functions(operation)
        (holds,), *read = given
        first, second = [f"{name}({', '.join(group)})" for name, group in zip(names, read)]
        return [f"    {', '.join(results)}, = {first} if {holds} else {second}"]

    def copies(self, names: list[str]) -> str:
        """Print a tuple of copies: a loop may run no step, and results share no memory with what it starts from."""
        self.kernels["copy"] = None
        return f"({', '.join([f'xp.copy({x})' for x in names])},)"

    def find_dead(self) -> dict[int, list[Variable]]:
        """Return the variables that can be freed after each operation, by its position: those used there for the last time."""
        last: dict[Variable, int] = {}
        for k, operation in enumerate(self.program.operations):
            for v in (*operation.results, *operation.operands()):
                last[v] = k
        for v in (*self.program.outputs, *self.program.inputs, *self.program.constants):
            last.pop(v, None)
        found: dict[int, list[Variable]] = {}
        for v, k in last.items():
            found.setdefault(k, []).append(v)
        return found

    def expression(self, operation: Operation) -> str:
        """Print the right side of an operation's statement."""
        name = operation.name
        args = [self.text(x) for x in operation.args]
        facts = kernel_of(name)
        if facts.operator is not None and not operation.options and (self.backend is None or self.backend.has_operator(name)):
            return operator_text(name, args)
        self.kernels[name] = None
        if facts.writes:
            self.kernels["copy"] = None
            args[0] = f"xp.copy({args[0]})"
        args += [f"{k}={self.text(x)}" for k, x in operation.options.items()]
        return f"xp.{name}({', '.join(args)})"

    def text(self, x: Any) -> str:
        """Print an argument."""
        return text_of(x, self.ref, "")

    def ref(self, x: Any) -> str:
        """Return the name of a variable, of a dtype, or of an argument that cannot be printed and is passed as a constant."""
        if x.__class__ is Variable:
            return self.called[x]
        if isinstance(x, DType):
            name = f"dtype_{x.name}"
            self.dtypes[name] = x
            return name
        for name, known in self.own_statics.items():
            if known is x:
                return name
        name = self.module_name("static")
        self.statics[name] = self.own_statics[name] = x
        return name
