"""Run a captured program as a function of raw arrays, for libraries without a compiler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xpgrad.emitter import EmitterInfo
from xpgrad.programs.array_api_text import array_api_function, array_api_source
from xpgrad.programs.evaluation import evaluator
from xpgrad.programs.program import Program, same_programs
from xpgrad.programs.recorder import same_values
from xpgrad.programs.simplify import simplify_program
from xpgrad.programs.structure import arrangement
from xpgrad.programs.unrolling import can_unroll, unroll_scans

__all__ = ["Captured", "CapturedGradients"]


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
    emitter : EmitterInfo or None
        What makes the function; the backend itself if it is None.

    Attributes
    ----------
    template : nested tuples of int or None
        The positions of the results among the program's outputs.
    """

    capture: Callable[..., None]
    names: list[str | None]
    threads: int | None
    emitter: EmitterInfo | None

    def __init__(
        self, below: Any, capture: Callable[..., None], names: list[str | None], threads: int | None, emitter: EmitterInfo | None = None
    ) -> None:
        self.below: Any = below
        self.capture, self.names, self.threads, self.emitter = capture, names, threads, emitter
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
            run = self.run = self._function()
        return self.arranged(run(*raws))

    def _function(self) -> Callable[..., tuple[Any, ...]]:
        """Make the function of the program."""
        if self.emitter is not None:
            return self.emitter.function(self._runnable(self.emitter.loops), self.below, self.threads)
        program = self._for_backend()
        made = None if program is None else self.below.compile_program(program, threads=self.threads)
        return made or array_api_function(self.program, self.below)

    def _runnable(self, loops: bool) -> Program:
        """Return the program, with its scans unrolled unless `loops`."""
        return self.program if loops else unroll_scans(self.program)

    def _for_backend(self) -> Program | None:
        """Return the program for the backend to compile; None if it has a loop or a branch that the backend does not know."""
        loops = self.below.program_loops
        return self._runnable(loops) if loops or can_unroll(self.program) else None

    def source(self) -> str:
        """Return the text of the function, for people to read."""
        if self.emitter is not None:
            return self.emitter.source(self._runnable(self.emitter.loops), self.below, self.threads)
        program = self._for_backend()
        if program is None:
            return array_api_source(self.program, backend=self.below).text
        text: str = self.below.program_source(program, threads=self.threads)
        return text

    def take(self, program: Program, template: Any) -> None:
        """Set the captured program and its template, and discard the function of a former program."""
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
            program = self._program = simplify_program(self.captured, evaluator(self.below))
        return program


@dataclass(frozen=True, slots=True)
class CapturedGradients:
    """A function that is exported.

    Attributes
    ----------
    program : Program
        It computes the results and, if they are one real number, the gradients.
    title, name : str
        The name of the function, and that of the exported one.
    names : list of str
        The names of the arguments.
    results : list of (str, int or None)
        The names of the results; those of gradients with the positions of their arguments.
    flat : list
        The raw arrays of the arguments.
    made : object
        The compiled function.
    """

    program: Program
    title: str
    name: str
    names: list[str]
    results: list[tuple[str, int | None]]
    flat: list[Any]
    made: Any
