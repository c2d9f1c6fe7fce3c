"""Print a loop over blocks, which reuses a few small arrays instead of one large array per result."""

from __future__ import annotations

from typing import Any, Protocol

from xpgrad._rows.kernels import kernel_of
from xpgrad.programs.blocks import Loop
from xpgrad.programs.literals import augmented_text, cast_text, operator_text, text_of
from xpgrad.programs.naming import Names
from xpgrad.programs.program import Operation, Variable
from xpgrad.programs.reuse import has_out
from xpgrad.programs.source import comment

__all__ = ["write_loop"]


class _Writer(Protocol):
    names: Names
    called: dict[Variable, str]
    indent: str
    threads: int
    helpers: set[str]

    def put(self, line: str) -> None: ...
    def ref(self, x: Any) -> str: ...


def write_loop(writer: _Writer, loop: Loop) -> None:
    """Add the statements of a loop."""
    _LoopText(writer, loop).write()


class _LoopText:
    """The writer of one loop. Registers are small arrays, each of which holds one result at a time."""

    def __init__(self, writer: _Writer, loop: Loop) -> None:
        self.writer, self.loop = writer, loop
        self.flat = loop.domain[0] == "flat"
        self.blocks: dict[Variable, str] = {}  # what a block of a variable is called
        self.registers: dict[tuple[Any, Any], list[str]] = {}  # by row and dtype
        self.free: dict[tuple[Any, Any], list[str]] = {}
        self.holds: dict[str, int] = {}  # how many variables, results and views of them, lie in a register
        self.register_of: dict[Variable, str] = {}

    def write(self) -> None:
        loop, put = self.loop, self.writer.put
        length, rows = loop.length, loop.rows
        body, cut = self.body()
        kept = [o.out for o in loop.body if o.out in loop.results and not loop.is_total(o)]
        totals = [(self.writer.called[o.out], self.zero(o.out)) for o in loop.body if loop.is_total(o)]
        threads = self.writer.threads > 1
        for name, zero in totals:
            put(f"{name} = {zero}")
        whole: dict[Variable, str] = {}
        for v in kept:
            put(f"{self.writer.called[v]} = {self.empty(v.shape, v)}")
        for v in [*cut, *kept]:
            whole[v] = self.writer.called[v] if v in kept else self.writer.ref(v)
            if self.flat:
                name = self.writer.names.new(f"{self.blocks[v]}flat")
                put(f"{name} = {whole[v]}.reshape(-1)")
                whole[v] = name
        outside = self.writer.indent
        if threads:
            put("")
            put("def part(start, stop):")
            self.writer.indent += "    "
            for name, zero in totals:
                put(f"{name} = {zero}")
        names = [(name, key) for key, found in self.registers.items() for name in found]
        for name, (row, v) in [(n, (k[0], self.sample[k])) for n, k in names]:
            put(f"{name} = {self.empty((rows, *row), v)}")
        put(f"for start in range({'start, stop' if threads else f'0, {length}'}, {rows}):")
        before = self.writer.indent
        self.writer.indent += "    "
        put(f"block = slice(start, start + {rows})")
        if length % rows and names:
            put(f"if start + {rows} > {length}:  # the last block is shorter")
            for few in [names[i : i + 6] for i in range(0, len(names), 6)]:
                listed = ", ".join(n for n, _ in few)
                shorter = ", ".join(f"{n}[:{length % rows}]" for n, _ in few)
                put(f"    {listed} = {shorter}")
        for v in [*cut, *kept]:
            put(f"{self.blocks[v]} = {whole[v]}[block]")
        for line in body:
            put(line)
        self.writer.indent = before
        if threads:
            if totals:
                put(f"return {', '.join(name for name, _ in totals)},")
            self.writer.indent = outside
            self.writer.helpers.add("_in_threads")
            put("")
            call = f"_in_threads(part, {length}, {rows})"
            put(f"for totals in {call}:" if totals else call)
            for i, (name, _) in enumerate(totals):
                put(f"    {name} += totals[{i}]")

    def body(self) -> tuple[list[str], list[Variable]]:
        """Return the statements for one block, and the outside variables of which the loop reads blocks."""
        loop, writer = self.loop, self.writer
        last: dict[Variable, int] = {}
        for k, operation in enumerate(loop.body):
            for v in operation.operands():
                last[v] = k
        kept = set(loop.results)
        made = {o.out for o in loop.body}
        cut: dict[Variable, None] = {}
        self.sample: dict[tuple[Any, Any], Variable] = {}
        for operation in loop.body:
            for v in operation.operands():
                if v not in made and v.shape and loop.is_cut(operation, v) and v not in self.blocks:
                    cut[v] = None
                    self.blocks[v] = writer.names.new(f"{_plain(writer.called.get(v, 'x'))}_")
        for operation in loop.body:
            if operation.out in kept and not loop.is_total(operation):
                self.blocks[operation.out] = writer.names.new(f"{writer.called[operation.out]}_")
        lines: list[str] = []
        line = None
        for k, operation in enumerate(loop.body):
            if operation.line is not None and operation.line != line:
                line = operation.line
                lines.append(comment(line))
            lines.append(self.statement(operation, k, last))
        return lines, list(cut)

    def statement(self, operation: Operation, k: int, last: dict[Variable, int]) -> str:
        """Return the statement of one operation, and free the registers that it reads for the last time."""
        loop, name, out = self.loop, operation.name, operation.out
        if loop.is_total(operation):
            text = f"{self.writer.called[out]} += {self.reduction(operation)}"
            self.release(operation, k, last)
            return text
        args = [text_of(x, lambda v: self.ref(operation, v)) for x in operation.args]
        if name == "reshape_to":
            source = operation.args[0]
            text = f"{args[0]}.reshape({('-1', *map(str, out.shape[1:]))!r})".replace("'", "")
            if out.shape == (*source.shape, 1):
                text = f"{args[0]}[{':, ' * len(source.shape)}None]"
            register = self.register_of.get(source)
            if out in self.blocks:
                self.release(operation, k, last)
                return f"{self.blocks[out]}[...] = {text}"
            view = self.blocks[out] = self.writer.names.next_name("v")
            if register is not None:
                self.register_of[out] = register
                self.holds[register] += 1
            self.release(operation, k, last)
            return f"{view} = {text}"
        facts = kernel_of(name)
        in_place = has_out(operation)
        if in_place:
            self.release(operation, k, last)  # the result may overwrite an operand
        own = out in self.blocks
        target = self.blocks[out] if own else self.register(operation)
        if not in_place:
            self.release(operation, k, last)
            text = self.expression(operation, args)
            return f"{target}[...] = {text}" if own else f"{target} = {text}"
        return augmented_text(facts.operator, target, args) or f"np.{facts.ufunc}({', '.join(args)}, out={target})"

    def expression(self, operation: Operation, args: list[str]) -> str:
        """Return the right side of a statement that makes a new small array."""
        name, out = operation.name, operation.out
        if name == "gather":
            return f"{args[0]}.take({args[1].strip('(),')}, axis=0)"
        if name == "to_dtype":
            return cast_text(args[0], operation.args[0], out, self.writer.ref(out.dtype))
        facts = kernel_of(name)
        if facts.accumulates:
            return self.reduction(operation)
        if facts.helper:
            self.writer.helpers.add(f"_{name}")
            return f"_{name}({', '.join(args)})"
        if name == "pow":
            return operator_text(name, args)
        return f"np.{facts.numpy}({', '.join(args)})"

    def reduction(self, operation: Operation) -> str:
        x, axes, keepdims = operation.args
        text = self.ref(operation, x)
        if operation.name == "reduce_sum" and not x.dtype.differentiable:
            return f"np.sum({text}, axis={axes}, keepdims={keepdims})"
        if self.flat or (axes is not None and len(axes) == 1 and len(x.shape) == 1) or (axes is None and len(x.shape) == 1):
            axis = ""
        else:
            axis = f", {axes[0] if axes is not None and len(axes) == 1 else axes}"
        keep = ", keepdims=True" if keepdims and not self.flat else ""
        return f"np.{operation.facts.numpy}({text}{axis}{keep})"

    def ref(self, operation: Operation, v: Any) -> str:
        if v in self.blocks and self.loop.is_cut(operation, v):
            return self.blocks[v]
        return self.writer.ref(v)

    def register(self, operation: Operation) -> str:
        """Return a register for a result: a free or a new one."""
        out = operation.out
        key = (() if self.flat else out.shape[1:], out.dtype)
        free = self.free.setdefault(key, [])
        if free:
            name = free.pop()
        else:
            name = self.writer.names.next_name("b")
            self.registers.setdefault(key, []).append(name)
            self.sample[key] = out
        self.blocks[out] = name
        self.register_of[out] = name
        self.holds[name] = 1
        return name

    def release(self, operation: Operation, k: int, last: dict[Variable, int]) -> None:
        """Free the registers of variables that are read for the last time."""
        for v in dict.fromkeys(operation.operands()):
            name = self.register_of.get(v)
            if name is not None and last[v] == k:
                self.holds[name] -= 1
                if not self.holds[name]:
                    for key, found in self.registers.items():
                        if name in found:
                            self.free[key].append(name)

    def empty(self, shape: tuple[int, ...], like: Variable) -> str:
        dtype = "" if like.dtype.name == "float64" else f", {self.writer.ref(like.dtype)}"
        return f"np.empty({shape[0] if len(shape) == 1 else shape}{dtype})"

    def zero(self, v: Variable) -> str:
        return "0.0" if not v.shape else self.empty(v.shape, v).replace("np.empty", "np.zeros")


def _plain(name: str) -> str:
    return name if name.isidentifier() else "x"
