"""Emit programs as machine code, with calls of NumPy between its parts for operations that it lacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.programs.evaluation import evaluate_program
from xpgrad.programs.lowering import lower
from xpgrad.programs.native.machine import Machine, machine
from xpgrad.programs.native.parts import compile_parts
from xpgrad.programs.program import Program
from xpgrad_numpy._native_calls import LAYOUT_IS_KNOWN
from xpgrad_numpy._native_function import machine_function

__all__ = ["native_function"]


def native_function(program: Program, backend: Any, threads: int | None = None) -> Callable[..., tuple[Any, ...]]:
    """Compile a program into a function of NumPy arrays.

    Raises
    ------
    ImportError
        llvmlite is not installed, or the layout of arrays in this NumPy is unknown.
    """
    code = _machine()
    return compile_parts(program, backend, lambda whole: _whole(whole, backend, code, threads), code.has_products, threads)


def _machine() -> Machine:
    if not LAYOUT_IS_KNOWN:
        msg = "machine code cannot call this NumPy: its arrays lie in memory in another way than known; use `emitter='numpy'`"
        raise ImportError(msg)
    try:
        return machine()
    except ImportError as exc:
        msg = f"machine code needs llvmlite ({exc}); run `pip install 'xpgrad[native]'`, or use `emitter='numpy'`"
        raise ImportError(msg) from exc


def _whole(program: Program, backend: Any, code: Machine, threads: int | None) -> Callable[..., tuple[Any, ...]]:
    """Compile a whole program to machine code; raise Unsupported if an operation has none."""

    def otherwise(*arrays: Any) -> tuple[Any, ...]:
        return tuple(evaluate_program(program, backend, list(arrays)))

    return machine_function(lower(program, code.has_products), code, otherwise, threads or 1)
