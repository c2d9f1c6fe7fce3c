"""Run a captured program as a function of raw arrays, for libraries without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad.programs.array_api_text import array_api_function
from xpgrad.programs.evaluation import evaluator
from xpgrad.programs.program import Program, same_programs
from xpgrad.programs.recorder import same_values
from xpgrad.programs.simplify import simplified
from xpgrad.programs.structure import arrangement

__all__ = ["Captured"]


class Captured:
    """A function of raw arrays that runs a captured program, which is compiled at the first call.

    Parameters
    ----------
    below : Backend
        The backend of the raw arrays.
    capture : callable
        ``capture(*raws)`` captures the program for arrays like these, and passes it to `take`. It is called if there is no program yet.
    names : list of (str or None)
        The names of the arrays in the user's function.
    threads : int or None
        The number of threads that run the program.

    Attributes
    ----------
    template : nested tuples of int or None
        The positions of the results among the program's outputs.
    """

    capture: Callable[..., None]
    names: list[str | None]
    threads: int | None

    def __init__(self, below: Any, capture: Callable[..., None], names: list[str | None], threads: int | None) -> None:
        self.below: Any = below
        self.capture, self.names, self.threads = capture, names, threads
        self.captured: Program | None = None
        self.run: Any = None
        self.arranged: Any = None
        self.template: Any = None
        self._program: Program | None = None

    def __call__(self, *raws: Any) -> Any:
        run = self.run
        if run is None:
            if self.captured is None:
                self.capture(*raws)
            run = self.run = self.below.compile_program(self.program, threads=self.threads) or array_api_function(self.program, self.below)
        return self.arranged(run(*raws))

    def take(self, program: Program, template: Any) -> None:
        """Set the captured program."""
        self.captured, self.template, self._program, self.run = program, template, None, None
        self.arranged = eval(f"lambda o: {arrangement(template)}")  # our own text: a tuple's structure

    def is_like(self, other: Program) -> bool:
        """Return whether another program has the same operations, constants and results, apart from the backward pass."""
        assert self.captured is not None
        return same_programs(self.captured, other, lambda a, b: same_values(self.below, a, b))

    @property
    def program(self) -> Program:
        """The simplified program. It must have been captured."""
        program = self._program
        if program is None:
            assert self.captured is not None
            program = self._program = simplified(self.captured, evaluator(self.below))
        return program
