"""Turn programs into NumPy functions; the interface for backends and plugins."""

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
    """Print a program as NumPy source, with loops over blocks of large arrays; threads may share blocks and matrix products."""
    program = fused(program)
    if threads is not None and threads > 1:
        program = side_by_side(program, threads)
    return numpy_text.numpy_source(program, name, threads=threads or 1)


def numpy_function(program: Program, backend: Any, threads: int | None = None) -> Callable[..., tuple[Any, ...]]:
    """Compile a program into a function of NumPy arrays."""
    return built(numpy_source(program, threads=threads), {"xp": backend.kernels}, backend.raw_dtype)
