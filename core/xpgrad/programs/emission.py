"""From a program to a function: what backends call, and plugins may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

<<<<<<< HEAD
from xpgrad.programs.array_api_text import array_api_function, array_api_source
from xpgrad.programs.blocks import fused
from xpgrad.programs.numpy_text import numpy_source
=======
from xpgrad.programs import numpy_text
from xpgrad.programs.array_api_text import array_api_function, array_api_source
from xpgrad.programs.blocks import fused
>>>>>>> part-passes
from xpgrad.programs.program import Operation, Program, Variable
from xpgrad.programs.source import Source, built

__all__ = [
<<<<<<< HEAD
    "Operation", "Program", "Source", "Variable", "array_api_function", "array_api_source", "blocked_source", "built", "numpy_function",
    "numpy_source",
]  # fmt: skip
=======
    "Operation", "Program", "Source", "Variable", "array_api_function", "array_api_source", "built", "numpy_function", "numpy_source",
]  # fmt: skip


def numpy_source(program: Program, name: str = "function", docstring: str = "") -> Source:
    """The text of a program in NumPy, with loops over blocks of large arrays."""
    return numpy_text.numpy_source(fused(program), name, docstring=docstring)
>>>>>>> part-passes


def numpy_function(program: Program, backend: Any) -> Callable[..., tuple[Any, ...]]:
    """A program as a function of NumPy's arrays, run from its text in NumPy's calls."""
    return built(blocked_source(program), {"xp": backend.kernels}, backend.raw_dtype)


def blocked_source(program: Program) -> Source:
    """The text of a program in NumPy's calls, with loops over blocks where arrays are large."""
    return numpy_source(fused(program))
