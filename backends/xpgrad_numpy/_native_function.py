"""A lowered program as a function of NumPy arrays."""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from xpgrad.programs.native.llvm_text import Kernel, region_kernel
from xpgrad.programs.native.machine import Code, Machine
from xpgrad.programs.regions import Advance, Lowered, Repeat
from xpgrad.programs.views import Buffer
from xpgrad_numpy._native_calls import ARGUMENT_FLAGS, RESULT_FLAGS, driver_text

__all__ = ["machine_function", "suitable"]

_LONG = 200_000  # elements that are computed; a program with more lets other threads run


class _Definition(ctypes.Structure):
    """Python's description of a built-in function."""

    _fields_ = (("name", ctypes.c_char_p), ("address", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_FASTCALL = 0x0080
_new_function = ctypes.pythonapi.PyCFunction_NewEx
_new_function.restype, _new_function.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
_definitions: dict[int, _Definition] = {}


def _built_in(driver: Code, table: bytes, used: list[Any]) -> Callable[..., Any]:
    """Return the driver as a built-in function, with a table as its `self`; in place of a module it keeps what the table refers to."""
    definition = _definitions.get(driver.address)
    if definition is None:
        # NB: Python keeps its address, so that another thread's must not replace it.
        definition = _definitions.setdefault(driver.address, _Definition(b"xpgrad_run", driver.address, _FASTCALL, None))
    function: Callable[..., Any] = _new_function(ctypes.addressof(definition), table, used)
    return function


@functools.cache
def _driver(machine: Machine) -> Code:
    """Return the function that runs the steps of a table; it stays loaded."""
    machine.llvm.add_symbol("PyArray_Type", id(np.ndarray))
    (code,) = machine.load([driver_text().replace("@xpgrad_run", "@NAME")])
    return code


def machine_function(lowered: Lowered, machine: Machine, otherwise: Callable[..., Any], threads: int = 1) -> Callable[..., tuple[Any, ...]]:
    """Return a function that runs a lowered program.

    Its attribute ``exact`` is the same function without conversions: it returns NotImplemented for arrays that are not of the program's
    dtypes and shapes in row-major order, and False if an index is out of bounds. It is ``call`` with new memory for the results, which are
    the first of ``buffers()``: a caller that needs a result only until the next call passes the same buffers each time.

    Parameters
    ----------
    lowered : Lowered
    machine : Machine
    otherwise : callable
        Called with the arguments if an index is out of bounds: it raises what NumPy raises.
    threads : int
        The number of threads that share the pieces of large nests.
    """
    program = lowered.program
    constants = [np.require(np.asarray(raw), requirements=["C", "A"]) for raw in program.constants.values()]
    workspace = lowered.workspace_size // 8
    head = _Head(lowered, constants, workspace)
    groups = head.groups(lowered, machine)
    if threads == 1:
        call = _built_in(_driver(machine), head.table(groups, head.is_long), head.used)
    else:
        call = _in_threads(_driver(machine), head, groups, threads)
    space: dict[str, Any] = {
        "call": call, "empty": np.empty, "otherwise": otherwise, "suitable": suitable, "pool": [],
        "kinds": [(np.dtype(v.dtype.name), v.shape) for v in program.inputs],
    }  # fmt: skip
    exec(_text(lowered, workspace, space), space)  # noqa: S102 (our own text)
    function: Any = space["function"]
    function.exact, function.call = space["exact"], call
    function.buffers = functools.partial(_buffers, [(v.shape, v.dtype.name) for v in program.outputs], workspace)
    result: Callable[..., tuple[Any, ...]] = function
    return result


def _buffers(kinds: list[tuple[tuple[int, ...], str]], workspace: int) -> list[Any]:
    """Return new memory for the results of a function, and its workspace."""
    return [*(np.empty(shape, dtype) for shape, dtype in kinds), *([np.empty(workspace)] if workspace else [])]


def _text(lowered: Lowered, workspace: int, space: dict[str, Any]) -> str:
    """Return the text of two Python functions around the built-in one, which make the results and the workspace.

    ``exact`` returns what the built-in function returns if that is not None, else the results. ``function`` converts other arguments first.
    """
    inputs = [f"x{k}" for k in range(len(lowered.inputs))]
    outputs = [f"o{k}" for k in range(len(lowered.outputs))]
    given = ", ".join(inputs)
    arguments = ", ".join([*inputs, *outputs, *(["w"] if workspace else [])])
    lines = [f"def exact({given}):"]
    for k, v in enumerate(lowered.program.outputs):
        space[f"dtype{k}"] = np.dtype(v.dtype.name)
        lines.append(f"    o{k} = empty({v.shape}, dtype{k})")
    if workspace:  # NB: one call at a time has it, since `pop` and `append` are atomic
        lines += ["    try:", "        w = pool.pop()", "    except IndexError:", f"        w = empty({workspace})"]
    lines.append(f"    status = call({arguments})")
    if workspace:
        lines += ["    if not pool:", "        pool.append(w)"]
    lines += ["    if status is not None:", "        return status", f"    return {_tuple(outputs)}"]
    scalars = [name if v.shape else f"{name}[()]" for name, v in zip(outputs, lowered.program.outputs)]
    lines += [f"def function({given}):", f"    found = exact({given})", "    if found is NotImplemented:"]
    lines += [f"        {given or '_'}{',' if given else ''} = suitable(kinds, {_tuple(inputs)})", f"        found = exact({given})"]
    lines += ["    if found is False:", f"        return otherwise({given})"]
    if scalars != outputs:
        lines += [f"    {_tuple(outputs)} = found", f"    return {_tuple(scalars)}"]
    else:
        lines.append("    return found")
    return "\n".join(lines)


def _tuple(names: list[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def suitable(kinds: list[tuple[Any, tuple[int, ...]]], arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return arguments as aligned arrays in row-major order; others are copied.

    Raises
    ------
    ValueError
        An array has another shape than the program.
    """
    found = []
    for (dtype, shape), x in zip(kinds, arrays):
        array = np.require(np.asarray(x, dtype), requirements=["C", "A"])
        array = array.view(np.ndarray).reshape(np.shape(x))
        if array.shape != shape:
            msg = f"a program for arrays of shape {shape} was called with one of shape {array.shape}"
            raise ValueError(msg)
        if array.dtype is not dtype:  # equal, but another object
            array = np.array(array, dtype)
        found.append(array)
    return tuple(found)


#: The array in which a pointer lies, the byte at which it begins, and the bytes by which it advances in each step; or the arrays and bytes
#: of all steps.
_Pointer = tuple[int, int, int] | list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class _Step:
    """A call of a kernel.

    Attributes
    ----------
    address : int
    pointers : list
    numbers : list of list of int
        The numbers for each time that it runs; one list if they are always the same.
    piece : object or None
        The same object for all pieces of a nest; None for what is not divided.
    """

    address: int
    pointers: list[_Pointer]
    numbers: list[list[int]]
    piece: object | None

    def at(self, time: int) -> _Step:
        """Return the call that runs at one of the times of a group."""
        pointers: list[_Pointer] = []
        for p in self.pointers:
            which, byte = p[time] if isinstance(p, list) else (p[0], p[1] + time * p[2])
            pointers.append((which, byte, 0))
        return _Step(self.address, pointers, [self.numbers[time % len(self.numbers)]], self.piece and (self.piece, time))


@dataclass(frozen=True, slots=True)
class _Group:
    """Steps that run one after the other, several times."""

    times: int
    steps: list[_Step]


class _Head:
    """The common part of a program's tables: its arguments, its constants, and the positions of its buffers."""

    def __init__(self, lowered: Lowered, constants: list[Any], workspace: int) -> None:
        program = lowered.program
        self.is_long = sum(v.size for o in program.operations for v in o.results) > _LONG
        described: list[tuple[Any, tuple[int, ...], int]] = [(v.dtype.name, v.shape, ARGUMENT_FLAGS) for v in program.inputs]
        described += [(v.dtype.name, v.shape, RESULT_FLAGS) for v in program.outputs]
        if workspace:
            described.append(("float64", (workspace,), RESULT_FLAGS))
        self.count, self.constants = len(described), [c.ctypes.data for c in constants]
        self.used: list[Any] = [*constants]  # also the kernels
        self.words: list[int] = []
        for name, shape, flags in described:
            dtype = np.dtype(name)
            scalar = id(dtype.type) if not shape and flags == ARGUMENT_FLAGS else 0
            self.words += [id(dtype), scalar, flags, len(shape), *shape]
        #: The argument or constant in which a buffer lies, and the byte at which it begins.
        self.places: dict[Buffer, tuple[int, int]] = {b: (k, 0) for k, b in enumerate([*lowered.inputs, *lowered.outputs])}
        self.places |= {b: (len(self.places), at) for b, at in lowered.workspace.items()}
        self.places |= {b: (self.count + k, 0) for k, b in enumerate(lowered.constants)}

    def groups(self, lowered: Lowered, machine: Machine) -> list[_Group]:
        """Load the kernels, and return the steps that run all regions."""
        calls: list[tuple[Kernel, Advance, int]] = []
        for region in lowered.regions:
            if isinstance(region, Repeat):
                found = zip(region.body, region.steps)
                calls += [(region_kernel(lowered, inside, machine.target, advance), advance, region.count) for inside, advance in found]
            else:
                calls.append((region_kernel(lowered, region, machine.target), Advance(), 1))
        kernels = machine.load(kernel.text for kernel, _, _ in calls)
        self.used += kernels
        steps = iter([self.steps(*call, code.address) for call, code in zip(calls, kernels)])
        groups: list[_Group] = []
        for repeats, regions in itertools.groupby(lowered.regions, key=lambda region: isinstance(region, Repeat)):
            if repeats:
                groups += [_Group(r.count, [s for _ in r.body for s in next(steps)]) for r in regions if isinstance(r, Repeat)]
            else:
                groups.append(_Group(1, [s for _ in regions for s in next(steps)]))
        return groups

    def steps(self, kernel: Kernel, advance: Advance, times: int, address: int) -> list[_Step]:
        """Return the calls of a kernel: one, or one for each piece of a nest."""
        pointers: list[_Pointer] = []
        for buffer, offset in kernel.pointers:
            moves = advance.memory.get(buffer, 0)
            if isinstance(moves, int):
                pointers.append((*self.place(buffer, offset), moves * buffer.itemsize))
            else:
                pointers.append([self.place(b, offset + more) for b, more in moves])
        piece = object() if len(kernel.numbers) > 1 else None
        changes = times if advance.numbers or kernel.literals else 1
        pieces = zip(*(kernel.numbers_of(advance, time) for time in range(changes)))
        return [_Step(address, pointers, list(numbers), piece) for numbers in pieces]

    def place(self, buffer: Buffer, offset: int) -> tuple[int, int]:
        """Return the array in which an element of a buffer lies, and its first byte."""
        which, at = self.places[buffer]
        return which, at + offset * buffer.itemsize

    def table(self, groups: list[_Group], release: bool) -> bytes:
        """Return the words that the driver reads, for some groups of steps."""
        steps = [step for group in groups for step in group.steps]
        widest = max((len(step.pointers) for step in steps), default=0)
        words = [self.count, len(self.constants), len(groups), widest, int(release), *self.words, *self.constants]
        lists: list[tuple[int, Sequence[Sequence[int]]]] = []  # with where the table says where they begin
        for group in groups:
            words += [group.times, len(group.steps)]
            for step in group.steps:
                words += [step.address, len(step.pointers), len(step.numbers[0]), 0]
                if len(step.numbers) > 1:
                    lists.append((len(words) - 1, step.numbers))
                for p in step.pointers:
                    if isinstance(p, list):
                        lists.append((len(words) + 1, p))
                        words += [-1, 0, 0]
                    else:
                        words += p
                if len(step.numbers) == 1:
                    words += step.numbers[0]
        for at, rows in lists:
            words[at] = len(words)
            words += itertools.chain(*rows)
        return np.array(words, np.int64).tobytes()


# -- threads -----------------------------------------------------------------------------------------------------------------

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process, since threads do not survive a fork, and number of threads


def _in_threads(driver: Code, head: _Head, groups: list[_Group], threads: int) -> Callable[..., Any]:
    """Return a function like the built-in one, in which several threads share the pieces of a nest."""
    stages: list[list[Callable[..., Any]]] = []

    def add(shares: list[list[_Group]]) -> None:
        release = len(shares) > 1 or head.is_long
        stages.append([_built_in(driver, head.table(share, release), head.used) for share in shares])

    for group in groups:
        if group.times > 1 and all(step.piece is None for step in group.steps):
            add([[group]])
            continue
        steps = [step.at(time) for time in range(group.times) for step in group.steps]
        for piece, same in itertools.groupby(steps, key=lambda step: step.piece):
            part = list(same)
            count = threads if piece is not None else 1
            bounds = [len(part) * k // count for k in range(count + 1)]
            add([[_Group(1, part[a:b])] for a, b in itertools.pairwise(bounds) if a < b])

    def call(*args: Any) -> Any:
        for first, *others in stages:
            if others:
                pool = _pools.get((os.getpid(), threads))
                if pool is None:
                    pool = _pools.setdefault((os.getpid(), threads), ThreadPoolExecutor(threads))
                started = [pool.submit(other, *args) for other in others]
                states = [first(*args), *(s.result() for s in started)]
            else:
                states = [first(*args)]
            for status in states:
                if status is not None:
                    return status
        return None

    return call
