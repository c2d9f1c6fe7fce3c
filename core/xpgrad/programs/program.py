"""A program: a straight list of calls of kernels, which describes what a function does with arrays.

It is plain data, independent of Tensors and libraries. Passes (`simplify_program`, ...) transform programs, and emitters print them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Self

from xpgrad._basics.dtypes import DType
from xpgrad._rows.kernels import Kernel, kernel_of

__all__ = [
    "INNER", "Inner", "Operation", "Part", "Passes", "Program", "Steps", "Variable", "change_inner", "compile_inner", "same_programs",
    "substitute", "variables_in", "with_inner",
]  # fmt: skip


class Variable:
    """One array of a program: an input, a constant, or the result of one operation. Variables are compared by identity.

    Parameters
    ----------
    shape : tuple of int
    dtype : DType
    name : str or None
        The user's name: that of a parameter, or of the variable to which the result was assigned.
    """

    __slots__ = ("dtype", "name", "shape")

    dtype: DType
    name: str | None
    shape: tuple[int, ...]

    def __init__(self, shape: tuple[int, ...], dtype: DType, name: str | None = None) -> None:
        self.shape, self.dtype, self.name = shape, dtype, name

    @property
    def size(self) -> int:
        """The number of elements."""
        size = 1
        for n in self.shape:
            size *= n
        return size

    def __repr__(self) -> str:
        return f"{self.name or '_'}: {self.dtype}[{', '.join(map(str, self.shape))}]"


class Operation:
    """One call of a kernel.

    Parameters
    ----------
    name : str
        The kernel: the name of a row, of a function of the standard (``"linalg.inv"`` in an extension), or of a private kernel of
        `xpgrad.backend`.
    args : tuple
        Variables and static values, as the kernel takes them by position; tuples and lists of them (`concat`, keys). A dtype is a `DType`.
    options : dict
        Keyword arguments.
    results : tuple of Variable
    several : bool
        Whether the kernel returns a tuple or a list, even with one item.
    line : tuple of (str, int, str) or None
        The user's line that caused it: file, number, function.
    backward : bool
        Whether it belongs to a backward pass.
    """

    __slots__ = ("_reads", "args", "backward", "line", "name", "options", "results", "several")

    args: tuple[Any, ...]
    backward: bool
    line: tuple[str, int, str] | None
    name: str
    options: dict[str, Any]
    results: tuple[Variable, ...]
    several: bool

    def __init__(
        self, name: str, args: tuple[Any, ...], options: dict[str, Any], results: tuple[Variable, ...], *, several: bool = False,
        line: tuple[str, int, str] | None = None, backward: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.args, self.options, self.results = name, args, options, results
        self.several, self.line, self.backward = several, line, backward
        self._reads: tuple[Variable, ...] | None = None

    @property
    def out(self) -> Variable:
        """The first result; most operations have only one."""
        return self.results[0]

    @property
    def facts(self) -> Kernel:
        """The facts of its kernel."""
        return kernel_of(self.name)

    def operands(self) -> tuple[Variable, ...]:
        """Return the variables that it reads, in order and with repetitions."""
        reads = self._reads
        if reads is None:  # NB: every pass asks
            found: list[Variable] = []
            for x in (*self.args, *self.options.values()) if self.options else self.args:
                if x.__class__ is Variable:
                    found.append(x)
                elif x.__class__ is tuple or x.__class__ is list:
                    found.extend(variables_in(x))
            reads = self._reads = tuple(found)
        return reads

    def replace(self, **changes: Any) -> Operation:
        """Return a copy with some fields changed."""
        fields = {name: getattr(self, name) for name in Operation.__slots__[1:]} | changes
        return Operation(**fields)


class Program:
    """A straight list of operations.

    Parameters
    ----------
    inputs : list of Variable
    constants : dict
        The raw arrays that the function uses and are not arguments, by variable.
    operations : list of Operation
        In an order in which each reads only earlier results. They have no side effects: nothing overwrites a result. Its `facts` say
        whether a result may share the memory of an operand.
    outputs : list of Variable
        Inputs, constants and results, in the order in which they are returned.

    Notes
    -----
    ``print(program)`` shows one operation per line.
    """

    __slots__ = ("constants", "inputs", "operations", "outputs")

    constants: dict[Variable, Any]
    inputs: list[Variable]
    operations: list[Operation]
    outputs: list[Variable]

    def __init__(
        self, inputs: list[Variable], constants: dict[Variable, Any], operations: list[Operation], outputs: list[Variable]
    ) -> None:
        self.inputs, self.constants, self.operations, self.outputs = inputs, constants, operations, outputs

    def __len__(self) -> int:
        return len(self.operations)

    def __str__(self) -> str:
        names = _names(self)
        lines = [f"inputs: {', '.join(f'{names[v]}: {_kind(v)}' for v in self.inputs)}"]
        lines += [f"constant {names[v]}: {_kind(v)}" for v in self.constants]
        backward = False
        for operation in self.operations:
            if operation.backward and not backward:
                lines.append("# backward")
            backward = operation.backward
            args = [_text(a, names) for a in operation.args] + [f"{k}={_text(a, names)}" for k, a in operation.options.items()]
            results = ", ".join(f"{names[v]}: {_kind(v)}" for v in operation.results)
            lines.append(f"{results} = {operation.name}({', '.join(args)})")
        lines.append(f"return {', '.join(names[v] for v in self.outputs)}")
        return "\n".join(lines)


class Part(Operation):
    """Operations that an emitter compiles by themselves, as one operation: its operands are read by them, its results used outside.

    Attributes
    ----------
    program : Program
    function : callable or None
        Takes the operands and returns a tuple of the results; None before it is compiled.
    """

    __slots__ = ("function", "program")

    program: Program
    function: Callable[..., tuple[Any, ...]] | None

    def __init__(self, program: Program) -> None:
        backward = all(o.backward for o in program.operations)
        super().__init__("part", tuple(program.inputs), {}, tuple(program.outputs), several=True, backward=backward)
        self.program, self.function = program, None


#: The operations that run programs: loops and branches, with names for the functions that compute these programs.
INNER: dict[str, tuple[str, ...]] = {
    "scan": ("step",),
    "while": ("test", "step"),
    "unwind": ("test", "step"),  # and one for each pass
    "branch": ("first", "second"),
}


class Inner:
    """The option `inner` of a loop or a branch: the programs that it runs.

    ``scan`` has `Steps`, ``unwind`` has `Passes`. The others have an `Inner`:

    * ``while``: a test, whose output is a 0-d boolean, and a step. The arguments are three tuples: the first carry, what the test reads
      besides the carry, and what the step reads besides it. The results are the last carry.
    * ``branch``: two alternatives. The arguments are a 0-d boolean, and two tuples: what each of them reads. The results are those of the
      first if the boolean is true, else of the second.

    Attributes
    ----------
    programs : tuple of Program
        The inputs of each are what changes from run to run, and then what its tuple of arguments holds.
    functions : tuple of callable, or None
        The programs as functions, if an emitter has compiled them.
    """

    __slots__ = ("functions", "programs")

    programs: tuple[Program, ...]
    functions: tuple[Callable[..., tuple[Any, ...]], ...] | None

    def __init__(self, programs: tuple[Program, ...]) -> None:
        self.programs, self.functions = programs, None

    def __repr__(self) -> str:
        return "".join(["\n    " + str(p).replace("\n", "\n    ") + "\n" for p in self.programs])

    def names(self, operation: str) -> tuple[str, ...]:
        """Return names for the functions that compute the programs."""
        return INNER[operation]

    def with_programs(self, programs: tuple[Program, ...]) -> Self:
        """Return a copy of this option that has other programs, without their compiled functions."""
        found = copy(self)
        found.programs, found.functions = programs, None
        return found

    def is_like(self, other: Inner, same: Callable[[Program, Program], bool]) -> bool:
        """Return whether both run the same programs, as often and in the same order."""
        if other.__class__ is not self.__class__ or len(self.programs) != len(other.programs):
            return False
        ways = [n for n in self.__slots__ if n not in Inner.__slots__]
        return all(getattr(self, n) == getattr(other, n) for n in ways) and all(map(same, self.programs, other.programs))


class Steps(Inner):
    """The option `inner` of the operation ``scan``: a program that runs once per step.

    The operation's arguments are three tuples: the first carry, the arrays whose slices along their first axis the steps read, and what all
    steps read. Its results are the last carry, and the other results of the steps, stacked.

    Attributes
    ----------
    program : Program
        Its inputs are the carry, the slices, and what all steps read; its outputs are the next carry and the other results.
    count : int
        The number of variables of the carry.
    length : int
        The number of steps, at least 1.
    reverse : bool
        Whether the last slices come first.
    """

    __slots__ = ("count", "length", "reverse")

    count: int
    length: int
    reverse: bool

    def __init__(self, program: Program, count: int, length: int, reverse: bool) -> None:
        super().__init__((program,))
        self.count, self.length, self.reverse = count, length, reverse

    def __repr__(self) -> str:
        return f"{self.length} steps{', the last first' if self.reverse else ''}:{super().__repr__()}"

    @property
    def program(self) -> Program:
        """The program that runs once per step."""
        return self.programs[0]

    @property
    def order(self) -> range:
        """The numbers of the slices in the order of the steps."""
        return range(self.length - 1, -1, -1) if self.reverse else range(self.length)

    @property
    def order_text(self) -> str:
        """The source of `order`."""
        return f"range({self.length - 1}, -1, -1)" if self.reverse else f"range({self.length})"


class Passes(Inner):
    """The option `inner` of the operation ``unwind``: a loop whose number of steps is not known, and passes over its steps.

    The first two programs are those of ``while``. The loop keeps a row for each step, which begins with the carry before the step. Then
    each pass runs its program once for each row. That takes the pass's state, the row, and what it reads besides them; it returns the next
    state and further values. The state before it and these values extend the row for the passes that follow.

    The arguments are tuples: the first carry, what the test and the step read besides it, and two for each pass: its first state, and what
    it reads besides its state and the row. The results are the last states of the passes.

    Attributes
    ----------
    counts : tuple of int
        The number of variables in the state of each pass.
    reverse : tuple of bool
        Whether each pass begins with the last row.
    """

    __slots__ = ("counts", "reverse")

    counts: tuple[int, ...]
    reverse: tuple[bool, ...]

    def __init__(self, programs: tuple[Program, ...], counts: tuple[int, ...], reverse: tuple[bool, ...]) -> None:
        super().__init__(programs)
        self.counts, self.reverse = counts, reverse

    def names(self, operation: str) -> tuple[str, ...]:
        return (*INNER[operation], *("back" if reverse else "forth" for reverse in self.reverse))


_PLAIN = frozenset((bool, int, float, complex, str, slice, DType))


def same_programs(one: Program, other: Program, same_arrays: Callable[[Any, Any], bool]) -> bool:
    """Return whether two programs have the same operations, constants and outputs, apart from the backward pass."""
    pairs = dict(zip(one.inputs, other.inputs))

    def same(x: Any, y: Any) -> bool:
        if x.__class__ is not y.__class__:
            return False
        if x.__class__ is Variable:
            if x in pairs:
                return pairs[x] is y
            if x not in one.constants or y not in other.constants:
                return False
            pairs[x] = y
            return same_arrays(one.constants[x], other.constants[y])
        if x.__class__ is tuple or x.__class__ is list:
            return len(x) == len(y) and all(map(same, x, y))
        if x.__class__ is dict:
            return list(x) == list(y) and all(same(item, y[k]) for k, item in x.items())
        if isinstance(x, Inner):
            return x.is_like(y, lambda p, q: same_programs(p, q, same_arrays))
        return x.__class__ not in _PLAIN or repr(x) == repr(y)  # a nan is itself, and 0.0 is not -0.0; other objects do not tell

    mine, others = ([o for o in p.operations if not o.backward] for p in (one, other))
    if len(mine) != len(others):
        return False
    for a, b in zip(mine, others):
        if a.name != b.name or not same(a.args, b.args) or not same(a.options, b.options) or len(a.results) != len(b.results):
            return False
        pairs.update(zip(a.results, b.results))
    forward = {*one.inputs, *one.constants, *(v for o in mine for v in o.results)}
    return all(same(x, y) for x, y in zip(one.outputs, other.outputs) if x in forward)


def with_inner(operation: Operation, change: Callable[[Program], Program]) -> Operation:
    """Return an operation that runs changed programs; other operations are returned unchanged."""
    inner: Inner | None = operation.options.get("inner")
    return (
        operation
        if inner is None
        else operation.replace(options={"inner": inner.with_programs(tuple([change(p) for p in inner.programs]))})
    )


def change_inner(program: Program, change: Callable[[Program], Program]) -> Program:
    """Return a program whose loops and branches run changed programs."""
    return Program(program.inputs, program.constants, [with_inner(o, change) for o in program.operations], program.outputs)


def compile_inner(program: Program, compiled: Callable[[Program], Callable[..., tuple[Any, ...]]]) -> None:
    """Set the functions of the programs that loops and branches run."""
    for o in program.operations:
        inner: Inner | None = o.options.get("inner")
        if inner is not None:
            inner.functions = tuple([compiled(p) for p in inner.programs])


def variables_in(x: Any) -> Iterator[Variable]:
    """Yield the variables in nested tuples and lists, in order."""
    if x.__class__ is Variable:
        yield x
    elif x.__class__ in (tuple, list):
        for item in x:
            yield from variables_in(item)


def substitute(x: Any, replace: Callable[[Variable], Any]) -> Any:
    """Replace each variable in nested tuples and lists by ``replace(variable)``."""
    if x.__class__ is Variable:
        return replace(x)
    if x.__class__ is tuple or x.__class__ is list:
        return x.__class__([substitute(item, replace) for item in x])
    return x


def _kind(v: Variable) -> str:
    return f"{v.dtype}[{','.join(map(str, v.shape))}]"


def _names(program: Program) -> dict[Variable, str]:
    """Return a unique name for each variable, its own name if possible."""
    names: dict[Variable, str] = {}
    used: dict[str, int] = {}

    def name(v: Variable, otherwise: str) -> None:
        base = v.name or otherwise
        count = used[base] = used.get(base, 0) + 1
        if v.name is None:
            names[v] = f"{base}{count - 1}"
        else:
            names[v] = base if count == 1 else f"{base}_{count}"

    for v in program.inputs:
        name(v, "x")
    for v in program.constants:
        name(v, "c")
    for operation in program.operations:
        for v in operation.results:
            name(v, "t")
    return names


def _text(x: Any, names: dict[Variable, str]) -> str:
    if x.__class__ is Variable:
        return names[x]
    if x.__class__ is list:
        return f"[{', '.join(_text(i, names) for i in x)}]"
    if x.__class__ is tuple:
        return f"({', '.join(_text(i, names) for i in x)}{',' if len(x) == 1 else ''})"
    if isinstance(x, slice):
        return ":".join("" if p is None else str(p) for p in (x.start, x.stop, x.step)) if x.step else f"{x.start or ''}:{x.stop or ''}"
    return str(x) if isinstance(x, DType) else repr(x)
