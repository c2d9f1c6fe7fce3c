"""Emit programs as C, with calls of NumPy between its parts for operations that it lacks."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from xpgrad.programs.c.c_text import c_source
from xpgrad.programs.c.compiler import compiler, preamble
from xpgrad.programs.evaluation import evaluate_program
from xpgrad.programs.lowering import lower
from xpgrad.programs.native.parts import compile_parts, divide
from xpgrad.programs.numpy_text import numpy_source
from xpgrad.programs.program import Part, Program
from xpgrad.programs.regions import Unsupported
from xpgrad.programs.simplify import with_numbers
from xpgrad_numpy._native_calls import ARGUMENT_FLAGS, DATA, LAYOUT_IS_KNOWN
from xpgrad_numpy._native_function import suitable

__all__ = ["c_function", "c_text"]

_NAME = "xpgrad_run"


def c_function(program: Program, backend: Any, threads: int | None = None) -> Callable[..., tuple[Any, ...]]:
    """Compile a program into a function of NumPy arrays.

    Raises
    ------
    ImportError
        There is no C compiler.
    """
    compiler()
    return compile_parts(program, backend, lambda whole: _whole(whole, backend), threads=threads)


def c_text(program: Program, backend: Any, threads: int | None = None) -> str:
    """Return readable source of what runs for a program: the C, and the calls of NumPy around it."""
    program = with_numbers(program)
    try:
        return _text(program)
    except Unsupported:
        program = divide(program)
        texts = [numpy_source(program).text]
        texts += [_text(o.program) for o in program.operations if isinstance(o, Part)]
        inner = [o.options["inner"] for o in program.operations if "inner" in o.options]
        texts += [c_text(p, backend, threads) for i in inner for p in i.programs]
        return "\n\n".join(texts)


def _text(program: Program) -> str:
    source = c_source(lower(program), _NAME)
    return f"{preamble()}\n{source.prototype};\n\n{source.text}"


def _whole(program: Program, backend: Any) -> Callable[..., tuple[Any, ...]]:
    """Compile a program that is all C; raise Unsupported if an operation has no C."""
    run = compiler().load(_text(program), _NAME)
    kinds = [(np.dtype(v.dtype.name), v.shape) for v in program.inputs]
    made = [(np.dtype(v.dtype.name), v.shape) for v in program.outputs]
    constants = [np.require(np.asarray(raw), requirements=["C", "A"]) for raw in program.constants.values()]
    kept = [(_address(raw), raw) for raw in constants]  # the arrays, too, as long as their addresses are used

    def function(*arrays: Any) -> tuple[Any, ...]:
        if not all(_is_suitable(x, *kind) for x, kind in zip(arrays, kinds, strict=True)):
            arrays = suitable(kinds, arrays)
        results = [np.empty(shape, dtype) for dtype, shape in made]
        given, taken = ([_address(x) for x in group] for group in (arrays, results))
        status = run(*given, *(address for address, _ in kept), *taken)
        if status == 2:
            msg = "there is no memory for the arrays of a compiled function"
            raise MemoryError(msg)
        if status:  # an index that is out of bounds: NumPy raises its error
            return tuple(evaluate_program(program, backend, list(arrays)))
        return tuple([x if x.shape else x[()] for x in results])

    return function


def _is_suitable(x: Any, dtype: Any, shape: tuple[int, ...]) -> bool:
    """Return whether C can read the elements of an argument where they are."""
    return x.__class__ is np.ndarray and x.dtype is dtype and x.shape == shape and x.flags.num & ARGUMENT_FLAGS == ARGUMENT_FLAGS


def _address(x: Any) -> ctypes.c_void_p:
    """Return where the elements of an array begin."""
    if LAYOUT_IS_KNOWN:
        return ctypes.c_void_p.from_address(id(x) + DATA)  # NB: several times as fast as NumPy's attribute
    return ctypes.c_void_p(x.ctypes.data)
