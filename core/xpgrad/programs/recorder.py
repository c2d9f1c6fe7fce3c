"""Record a capture: turn calls of kernels into operations of a program, with the user's lines and names."""

from __future__ import annotations

import dis
import functools
import sys
from types import CodeType
from typing import Any

from xpgrad._array.kernels import read_number
from xpgrad.errors import CaptureError
from xpgrad.programs.program import Operation, Program, Variable

__all__ = ["Recorder", "refusal", "same_values", "user_line"]

#: Whether the code of a function is this package's or a backend's, or NumPy's, which hands its functions over to it.
_inside: dict[CodeType, bool] = {}
_MANY = 4096
_STORES = frozenset(("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"))

Place = tuple[CodeType, int, int]  # code, offset of the call, line


def _place(depth: int) -> Place | None:
    """Return the user's line that is running, above `depth` frames; None if there is none."""
    frame: Any = sys._getframe(depth)
    while frame is not None:
        code = frame.f_code
        inside = _inside.get(code)
        if inside is None:
            module = frame.f_globals.get("__name__", "")  # generated text has none
            if len(_inside) >= _MANY:  # functions that are made again and again must not be kept for ever
                _inside.clear()
            top = module.partition(".")[0]
            inside = top.startswith("xpgrad_") or top in ("", "xpgrad", "numpy", "array_api_compat", "functools", "contextlib")
            _inside[code] = inside
        if not inside:
            return code, frame.f_lasti, frame.f_lineno
        frame = frame.f_back
    return None


def user_line() -> str:
    """Format the user's line that is running for messages, as " (file.py, line 3, in f)"; empty if there is none."""
    place = _place(2)
    if place is None:
        return ""
    code, _, line = place
    return f" ({code.co_filename.rpartition('/')[2]}, line {line}, in {code.co_name})"


@functools.lru_cache(maxsize=256)
def _assigned_names(code: CodeType) -> dict[int, str]:
    """Return the names of the variables to which results of calls are assigned, by the position of the call in the code."""
    names: dict[int, str] = {}
    before = -1
    for instruction in dis.get_instructions(code):
        if instruction.opname in _STORES:
            for k in range(before, instruction.offset if before >= 0 else before, 2):  # a call may be at its instruction, or behind
                names[k] = instruction.argval
            before = -1
        elif instruction.opname != "CACHE":
            before = instruction.offset
    return names


class Recorder:
    """A recorder that turns the operations on symbols during one capture into a program.

    Parameters
    ----------
    table : Backend
        The backend to which the symbols' values belong.
    parent : Recorder or None
        The recorder of the program in whose loop or branch the recorded operations run.
    loops : bool
        Whether the program may have loops and branches.

    Attributes
    ----------
    backward : bool
        Whether operations that are recorded now belong to the backward pass.
    closed : bool
        Whether the capture is over, so that its symbols are invalid.
    runs : bool
        Whether the program will run. If not, only the dependences between its arrays matter.
    asked_layout : bool
        Whether the function asked if `reshape` copies, which depends on the layout of its arguments.
    writes : bool
        Whether it writes in place.
    """

    def __init__(self, table: Any, parent: Recorder | None = None, *, loops: bool = False) -> None:
        self.table: Any = table
        self.parent: Recorder | None = parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.loops: bool = loops if parent is None else parent.loops
        self.backward: bool = False if parent is None else parent.backward
        self.open: list[Recorder] = [self] if parent is None else parent.open  # the innermost last
        self.shared: dict[Variable, tuple[Any, Variable]] = {}  # symbols of the parent, by their variables, and the inputs for them
        self.operations: list[Operation] = []
        self.makers: dict[Variable, Operation] = {}  # by their results
        self.inputs: list[Variable] = []
        self.constants: dict[Variable, Any] = {}
        self._known: dict[int, tuple[Any, Variable]] = {}  # arrays from outside and their constants, by the identity of the array
        self.kept: list[Any] = []  # weak references to the Tensors that the function makes as constants
        self.watched: dict[int, tuple[Any, int, Any, Any]] = {}  # Tensors from outside with their versions, arrays and nodes, by identity
        self.closed: bool = False
        self.runs: bool = True if parent is None else parent.runs
        self.asked_layout = self.writes = False
        self._places: list[Place | None] = []
        self._lines: tuple[dict[Variable, Any], dict[Variable, Any]] = ({}, {})  # of results of the forward, and of the backward

    def variable(self, symbol: Any) -> Variable:
        """Return the variable of a symbol in this program; a constant symbol becomes a constant of the program.

        Raises
        ------
        CaptureError
            The symbol belongs to another capture.
        """
        if symbol.recorder is self:
            found: Variable = symbol.variable
            return found
        if self.parent is not None and symbol.recorder is not None and symbol.recorder.depth < self.depth:
            outer = self.parent.variable(symbol)
            if outer not in self.shared:
                self.shared[outer] = symbol, Variable(symbol.shape, symbol.dtype)
            return self.shared[outer][1]
        if symbol.recorder is not None:
            msg = (
                "a Tensor left the call of a compiled function in which it was made, e.g. through a global, and was used in another"
                f"{user_line()}; return it from the function instead"
            )
            raise CaptureError(msg)
        value = symbol.value
        _, constant = self._known.get(id(value), (None, None))
        if constant is None or not self._is_unchanged(constant, value):
            constant = Variable(symbol.shape, symbol.dtype)
            self._known[id(value)] = value, constant
            # A copy: what the function computes of it now, and what the program does later, see the same values.
            self.constants[constant] = self.table.kernels.copy(value) if self.table.capabilities.mutable else value
        return constant

    def _is_unchanged(self, constant: Variable, value: Any) -> bool:
        """Return whether an array still has the values of the copy in the program."""
        return not self.table.capabilities.mutable or same_values(self.table, self.constants[constant], value)

    def add_input(self, shape: tuple[int, ...], dtype: Any, name: str | None) -> Variable:
        """Add an input to the program, and return its variable."""
        v = Variable(shape, dtype, name)
        self.inputs.append(v)
        return v

    def record(self, name: str, args: tuple[Any, ...], options: dict[str, Any], results: tuple[Variable, ...], several: bool) -> None:
        """Append one operation, whose arguments are variables and statics.

        Raises
        ------
        CaptureError
            The capture is over.
        """
        if self.closed:
            raise left_error()
        operation = Operation(name, args, options, results, several=several, backward=self.backward)
        if self.backward:
            operation.line = self._line_of(operation)
            self._places.append(None)
        else:
            place = _place(3)
            self._places.append(place)
            if place is not None:
                operation.line = (place[0].co_filename, place[2], place[0].co_name)
        if operation.line is not None:
            for v in results:
                self._lines[self.backward][v] = operation.line
        self.operations.append(operation)
        for v in results:
            self.makers[v] = operation

    def _line_of(self, operation: Operation) -> tuple[str, int, str] | None:
        """Return the line of the forward operation to which a backward operation belongs, found by the values that it reads, or None."""
        operands = list(operation.operands())
        lines = (known.get(v) for known in self._lines for v in operands)
        return next((line for line in lines if line is not None), None)

    def program(self, inputs: list[Variable], outputs: list[Variable]) -> Program:
        """Return the recorded program with these inputs and outputs; results get the names of the user's variables."""
        for k, (operation, place) in enumerate(zip(self.operations, self._places)):
            if place is None or (k + 1 < len(self._places) and self._places[k + 1] == place):
                continue  # the last operation of a call makes what is assigned
            if len(operation.results) == 1:
                operation.out.name = _assigned_names(place[0]).get(place[1])
        return Program(inputs, self.constants, self.operations, outputs)


def same_values(table: Any, one: Any, other: Any) -> bool:
    """Return whether two raw arrays have the same shape, dtype and elements; NaN is equal to itself."""
    if tuple(one.shape) != tuple(other.shape) or one.dtype != other.dtype:
        return False
    xp = table.kernels
    if read_number(xp, xp.all(xp.equal(one, other))):
        return True
    if xp.isdtype(one.dtype, "complex floating"):
        return same_values(table, xp.real(one), xp.real(other)) and same_values(table, xp.imag(one), xp.imag(other))
    if not xp.isdtype(one.dtype, "real floating"):
        return False
    return bool(read_number(xp, xp.all(xp.where(xp.isnan(one), xp.isnan(other), xp.equal(one, other)))))


def left_error() -> CaptureError:
    """Return the error for a Tensor that depends on the arguments of a compiled function, and is used after its call."""
    msg = f"a Tensor left the call of a compiled function in which it was made{user_line()}; return it from the function instead"
    return CaptureError(msg)


def refusal(what: str, instead: str) -> CaptureError:
    """Return the error for a dependence on values, with the user's line and what to write instead."""
    return CaptureError(f"{what} inside of a compiled function{user_line()}: its values are not known when it is compiled; {instead}")
