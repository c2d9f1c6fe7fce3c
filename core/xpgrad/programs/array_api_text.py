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
from xpgrad.programs.program import Operation, Program, Variable
from xpgrad.programs.source import Source, built, comment

__all__ = ["array_api_function", "array_api_source"]


def array_api_source(program: Program, name: str = "function", docstring: str = "", *, operators: bool = True) -> Source:
    """Print a program for any backend.

    Parameters
    ----------
    program : Program
        A program without loops.
    name, docstring : str
        The name and the docstring of the function.
    operators : bool
        Whether the arrays of the library have Python's operators (`Backend.operators`).

    Returns
    -------
    Source
        Its text refers to ``xp``, the backend's table of kernels (`Backend.kernels`).
    """
    return _Writer(program, name, operators).source(docstring)


def array_api_function(program: Program, backend: Any) -> Callable[..., tuple[Any, ...]]:
    """Compile a program into a function of raw arrays that calls the backend's kernels."""
    return built(array_api_source(program, operators=backend.operators), {"xp": backend.kernels}, backend.raw_dtype)


def _is_always_new(facts: Kernel) -> bool:
    """Return whether every library returns the result of a kernel in new memory."""
    return facts.operator is not None or (facts.ufunc is not None and not facts.may_return_operand) or facts.name == "reduce_sum"


class _Writer:
    """The writer of one text."""

    def __init__(self, program: Program, name: str, operators: bool) -> None:
        self.program, self.name, self.operators = program, name, operators
        self.names = Names(name, "inf", "nan")
        self.called: dict[Variable, str] = {}
        self.dtypes: dict[str, DType] = {}
        self.statics: dict[str, Any] = {}
        self.kernels: dict[str, None] = {}

    def source(self, docstring: str) -> Source:
        """Print the whole program."""
        program, called, names = self.program, self.called, self.names
        for v in program.inputs:
            called[v] = names.new(v.name or "x")
        parameters = [called[v] for v in program.inputs]
        constants = {}
        for v, raw in program.constants.items():
            called[v] = names.new(v.name or "c")
            constants[called[v]] = raw
        dead = self.find_dead()
        free: list[str] = []
        lines = [f"def {self.name}({', '.join(parameters)}):"]
        if docstring:
            lines.append(f'    """{docstring}"""')
        line, backward = None, False
        for k, operation in enumerate(program.operations):
            if operation.backward and not backward:
                lines += ["", "    # backward"]
                line = None
            backward = operation.backward
            if operation.line is not None and operation.line != line:
                line = operation.line
                lines.append(f"    {comment(line)}")
            text = self.expression(operation)
            for v in operation.results:
                called[v] = names.new(v.name) if v.name is not None else free.pop() if free else names.numbered("t")
            results = ", ".join([called[v] for v in operation.results]) + ("," if operation.several else "")
            lines.append(f"    {results} = {text}")
            for v in dead.get(k, ()):  # a name that is bound again frees what it stood for
                if v.name is None:
                    free.append(called[v])
        own = {o.out for o in program.operations if _is_always_new(o.facts)}
        outs = []
        for i, v in enumerate(program.outputs):
            shared = v not in own or v in program.outputs[:i]
            outs.append(f"xp.copy({called[v]})" if shared else called[v])
        lines.append(f"    return {', '.join(outs)}{',' if len(outs) == 1 else ''}" if outs else "    return ()")
        text = "from math import inf, nan\n\n\n" + "\n".join(lines) + "\n"
        return Source(text, self.name, parameters, {**constants, **self.statics}, self.dtypes, list(self.kernels))

    def find_dead(self) -> dict[int, list[Variable]]:
        """Return, for each operation, the results that no later operation reads."""
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
        if facts.operator is not None and self.operators and not operation.options:
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
        for name, known in self.statics.items():
            if known is x:
                return name
        name = self.names.new("static")
        self.statics[name] = x
        return name
