"""Turn programs into NumPy functions; the interface for backends and plugins."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.programs import numpy_text
from xpgrad.programs.array_api_text import array_api_function, array_api_source
from xpgrad.programs.blocks import fuse_loops
from xpgrad.programs.captured import CapturedGradients
from xpgrad.programs.products import side_by_side
from xpgrad.programs.program import Inner, Operation, Program, Steps, Variable, change_inner
from xpgrad.programs.source import Source, built
from xpgrad.programs.unrolling import unroll_scans

__all__ = [
    "CapturedGradients", "Inner", "Operation", "Program", "Source", "Steps", "Variable", "array_api_function", "array_api_source", "built",
    "numpy_function", "numpy_source", "unroll_scans",
]  # fmt: skip


def numpy_source(program: Program, name: str = "function", threads: int | None = None) -> Source:
    """Print a program as NumPy source, with loops over blocks of large arrays; threads may share blocks and matrix products."""
    program = _in_blocks(program, threads)
    return numpy_text.numpy_source(program, name, threads=threads or 1)


def _in_blocks(program: Program, threads: int | None) -> Program:
    """Fuse the operations of a program, and of what its loops and branches run, and let threads share them."""
    program = fuse_loops(program)
    if threads is not None and threads > 1:
        program = side_by_side(program, threads)
    return change_inner(program, lambda inside: _in_blocks(inside, threads))


def numpy_function(program: Program, backend: Any, threads: int | None = None) -> Callable[..., tuple[Any, ...]]:
    """Compile a program into a function of NumPy arrays."""
    return built(numpy_source(program, threads=threads), {"xp": backend.kernels}, backend.raw_dtype)
