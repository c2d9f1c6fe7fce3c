"""Programs at the level of memory: nests of loops over scalar statements, products of matrices, and checks of indices."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xpgrad.programs.program import Operation, Program, Variable
from xpgrad.programs.views import Buffer, View

__all__ = [
    "Advance",
    "Check",
    "Control",
    "Indexed",
    "Lowered",
    "Nest",
    "Operand",
    "Product",
    "Region",
    "Repeat",
    "Statement",
    "Unsupported",
]


class Unsupported(Exception):
    """Raised when a program contains an operation that cannot be lowered."""


@dataclass(frozen=True, eq=False, slots=True)
class Indexed:
    """An element of a view whose position is given by arrays of integers.

    Attributes
    ----------
    view : View
        Over the domain; its strides are 0 along the axes of the indices.
    indices : tuple of (Variable, int, int)
        Each with the length and the stride of the axis that it indexes. Negative indices count from the end.
    """

    view: View
    indices: tuple[tuple[Variable, int, int], ...]


#: What a statement reads: a number, a variable at the same place of the domain, or an indexed element.
Operand: TypeAlias = "bool | int | float | Variable | Indexed"


@dataclass(eq=False, slots=True)
class Statement:
    """A scalar statement, which runs at each place of a domain.

    Attributes
    ----------
    kind : str
        "assign": `out` becomes ``op(*args)``. "reduce": `out` is the sum, product, maximum or minimum (`op`) of the operand over axes.
        "store": the operand is written ("=") or added ("+=") to `target`.
    domain : tuple of int
    op : str
    args : tuple of Operand
    out : Variable
    target : View or Indexed
        The memory of the result, over the domain.
    reads : set of hashable
        Tokens of the results that must be complete before it runs.
    makes : hashable
        The token of the result that is complete after it.
    axes : tuple of int
        The axes that a reduction removes.
    piece_stride : int
        The distance in the target between the results of the pieces of a nest; 0 if all pieces write to the same memory.
    """

    kind: str
    domain: tuple[int, ...]
    op: str
    args: tuple[Operand, ...]
    out: Variable
    target: View | Indexed
    reads: set[Any]
    makes: Any
    axes: tuple[int, ...] = ()
    piece_stride: int = 0

    @property
    def memory(self) -> View:
        """The memory of the result."""
        return self.target.view if isinstance(self.target, Indexed) else self.target


@dataclass(eq=False, slots=True)
class Check:
    """A test that all indices in an array are within the bounds of an axis; the program stops if it fails."""

    key: View
    length: int
    reads: set[Any]
    makes: Any

    def __str__(self) -> str:
        return f"check that {math.prod(self.key.shape)} indices are below {self.length}"


@dataclass(eq=False, slots=True)
class Product:
    """A matrix product, or a stack of them; if `adds` is true, it is added to the values in the memory of the result."""

    a: View
    b: View
    target: View
    out: Variable
    adds: bool
    reads: set[Any]
    makes: Any

    def __str__(self) -> str:
        return f"{'add the' if self.adds else 'the'} product of {self.a.shape} and {self.b.shape}"


@dataclass(eq=False, slots=True)
class Nest:
    """A nest of loops over a domain, and the statements of its body in order.

    Attributes
    ----------
    domain : tuple of int
    body : list of Statement
    pieces : int
        Number of pieces into which the outermost loop is divided. They may run in any order, or in parallel.
    """

    domain: tuple[int, ...]
    body: list[Statement] = field(default_factory=list)
    pieces: int = 1

    def __str__(self) -> str:
        words = {"=": "write", "+=": "add to"}
        steps = [words.get(s.op, f"{s.op} over axes {s.axes}" if s.kind == "reduce" else s.op) for s in self.body]
        return f"loops over {self.domain}{f' in {self.pieces} pieces' if self.pieces > 1 else ''}: {', '.join(steps)}"


@dataclass(eq=False, slots=True)
class Control:
    """A loop or a branch, whose programs become functions of arrays whose elements follow each other in memory.

    Attributes
    ----------
    operation : Operation
    programs : list of Lowered
    arguments : list of lists of (Buffer, int)
        The memory of its operands and the positions of their first elements, in the groups in which the operation has them.
    results : list of Buffer
    scratch : Buffer or None
        The memory of temporary arrays of the programs, one of which runs at a time, and then the spare memory.
    spares : list of int
        Where in the scratch the spare memory of each variable that changes from step to step begins. If the operation has passes, these are
        the variables of the state of the last one.
    reads : set of hashable
    makes : hashable
    """

    operation: Operation
    programs: list[Lowered]
    arguments: list[list[tuple[Buffer, int]]]
    results: list[Buffer]
    scratch: Buffer | None
    spares: list[int]
    reads: set[Any]
    makes: Any

    def __str__(self) -> str:
        return f"a {self.operation.name}"

    def places(self) -> list[tuple[Buffer, int]]:
        """Return all memory that it reads and writes: the scratch, the operands, and the results."""
        scratch = [] if self.scratch is None else [(self.scratch, 0)]
        return [*scratch, *(place for group in self.arguments for place in group), *((b, 0) for b in self.results)]


Region: TypeAlias = "Nest | Product | Check | Control"


@dataclass(eq=False, slots=True)
class Advance:
    """How the memory and the numbers of a region change from step to step.

    Attributes
    ----------
    memory : dict
        For each buffer that changes, either the number of elements by which its address moves in each step, or a list with the buffer of
        each step and the number of elements by which the region's offsets in this buffer are larger than in the first step.
    numbers : dict
        For each length and stride of the first step that changes, its change in each step.
    literals : dict
        For each number among the operands of its statements that changes, by its position among these numbers, the number in each step.
    """

    memory: dict[Buffer, int | list[tuple[Buffer, int]]] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    literals: dict[int, list[Any]] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Repeat:
    """A loop over regions.

    Attributes
    ----------
    count : int
        Number of steps.
    body : list of Region
        The regions of the first step.
    steps : list of Advance
        How each region of the body changes from step to step.
    """

    count: int
    body: list[Region]
    steps: list[Advance]

    def __str__(self) -> str:
        return f"loop of {self.count} steps"


@dataclass(eq=False, slots=True)
class Lowered:
    """A program lowered to regions, with the memory that they use.

    Attributes
    ----------
    program : Program
    views : dict
        The memory of each variable.
    inputs, constants, outputs : list of Buffer
    regions : list of Region or Repeat
    stored : set of Variable
        The results of assignments that are written to memory; others are read only in their own nests.
    workspace : dict
        The offsets of temporary buffers in the workspace, in bytes.
    workspace_size : int
        Bytes of all temporary buffers.
    parts : dict
        The real and the imaginary parts of each complex variable.
    """

    program: Program
    views: dict[Variable, View]
    inputs: list[Buffer]
    constants: list[Buffer]
    outputs: list[Buffer]
    regions: list[Region | Repeat]
    stored: set[Variable]
    workspace: dict[Buffer, int]
    workspace_size: int
    parts: dict[Variable, tuple[Variable, Variable]]

    def every_region(self) -> Iterator[Region]:
        """Yield all regions, those of a repeat once."""
        for region in self.regions:
            yield from region.body if isinstance(region, Repeat) else (region,)
