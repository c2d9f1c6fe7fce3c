"""From a program to a function: what backends call, and plugins may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.programs import numpy_text
from xpgrad.programs.array_api_text import array_api_function, array_api_source
from xpgrad.programs.blocks import fused
from xpgrad.programs.products import side_by_side
from xpgrad.programs.program import Operation, Program, Variable
from xpgrad.programs.source import Source, built

__all__ = [
    "Operation", "Program", "Source", "Variable", "array_api_function", "array_api_source", "built", "numpy_function", "numpy_source",
]  # fmt: skip


def numpy_source(program: Program, name: str = "function", threads: int | None = None) -> Source:
    """The text of a program in NumPy, with loops over blocks of large arrays; several threads may share blocks and products of matrices."""
    program = fused(program)
    if threads is not None and threads > 1:
        program = side_by_side(program, threads)
    return numpy_text.numpy_source(program, name, threads=threads or 1)


def numpy_function(program: Program, backend: Any, threads: int | None = None) -> Callable[..., tuple[Any, ...]]:
    """A program as a function of NumPy's arrays, run from its text in NumPy's calls."""
    return built(numpy_source(program, threads=threads), {"xp": backend.kernels}, backend.raw_dtype)
