"""A function of raw arrays, captured at its first call and run from its text: `Backend.compile` where a library has no compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.programs.array_api_text import array_api_function
from xpgrad.programs.capture import capture
from xpgrad.programs.evaluation import evaluator
from xpgrad.programs.program import Program
from xpgrad.programs.simplify import simplified
from xpgrad.programs.structure import arrangement

__all__ = ["Captured"]


class Captured:
    """A function of raw arrays as a captured program.

    Parameters
    ----------
    cls : type
        The class of captured Tensors.
    function : callable
        ``function(recorder, *raws)`` returns nested tuples of raw arrays and None.
    names : list of (str or None)
        What the user calls the arrays.
    """

    cls: Any
    function: Callable[..., Any]
    names: list[str | None]
    threads: int | None

    def __init__(self, cls: Any, function: Callable[..., Any], names: list[str | None], threads: int | None) -> None:
        self.cls, self.function, self.names, self.threads = cls, function, names, threads
        self.program: Program | None = None
        self.run: Any = None
        self.arranged: Any = None
        self.template: Any = None  # where the results are among the program's outputs

    def __call__(self, *raws: Any) -> Any:
        run = self.run
        if run is None:
            self.capture(raws)
            run = self.run
        return self.arranged(run(*raws))

    def capture(self, raws: Any) -> None:
        """Capture the function as it is for these arrays."""
        program, self.template, _ = capture(self.cls, self.function, raws, self.names)
        self.arranged = eval(f"lambda o: {arrangement(self.template)}")  # our own text: a tuple's structure
        below = self.cls.backend.below
        self.program = program = simplified(program, evaluator(below))
        self.run = below.compile_program(program, threads=self.threads) or array_api_function(program, below)
