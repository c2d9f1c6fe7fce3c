"""A program: a straight list of calls of kernels, which describes what a function does with arrays.

It is plain data, independent of Tensors and libraries. Passes (`simplified`, ...) transform programs, and emitters print them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from xpgrad._basics.dtypes import DType
from xpgrad._rows.kernels import Kernel, kernel_of

__all__ = ["Operation", "Program", "Variable", "same_programs", "substituted", "variables_in"]


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
        """The only result."""
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

    def replaced(self, **changes: Any) -> Operation:
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


def variables_in(x: Any) -> Iterator[Variable]:
    """Yield the variables in nested tuples, lists, dicts and slices, in order."""
    if x.__class__ is Variable:
        yield x
    elif x.__class__ in (tuple, list):
        for item in x:
            yield from variables_in(item)


def substituted(x: Any, replace: Callable[[Variable], Any]) -> Any:
    """Replace each variable in nested tuples and lists by ``replace(variable)``."""
    if x.__class__ is Variable:
        return replace(x)
    if x.__class__ is tuple or x.__class__ is list:
        return x.__class__([substituted(item, replace) for item in x])
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
