"""The interface of emitters, which turn a captured program into a function of raw arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xpgrad._basics.faces import public_names

__all__ = ["EmitterInfo"]


def __dir__() -> list[str]:
    return public_names(__name__)


@dataclass(frozen=True)
class EmitterInfo:
    """An emitter for `xpgrad.compile`, as a plugin describes it.

    Attributes
    ----------
    name : str
        Its name, as in ``xp.compile(f, emitter=name)``; the same as the name of its entry point in the group ``xpgrad.emitters``.
    function : callable
        ``function(program, backend, threads)`` returns a function that takes the raw arrays of the program's inputs, by position, and
        returns a tuple of those of its outputs. These are new arrays, whose memory nothing else uses, and the inputs are not changed.
        `program` is a `Program` of `xpgrad.programs.emission`, `backend` the `Backend` of the arrays, and `threads` the number of threads
        that may work on it, or None.
    source : callable
        ``source(program, backend, threads)`` returns as text what the function does, for people to read.
    backends : tuple of str
        The backends for whose arrays it makes functions, e.g. ``("numpy",)``; empty for all.
    loops : bool
        Whether it knows the operations with an option `inner`, loops and branches, which `xpgrad.programs.emission.Inner` describes. If
        False, it gets programs in which scans are unrolled, and programs with other loops or branches raise a `CaptureError`.
    export : callable, optional
        ``export(captured, stem, origin)`` returns the texts of the files that `xpgrad.export` writes for this emitter's name as `target`,
        by their suffixes, that of the main file first: ``{".c": text, ".h": text}``. `captured` is a `CapturedGradients` of
        `xpgrad.programs.emission`, `stem` the name of the files without a suffix, and `origin` a list of lines that say what they were
        made from. If it is None, the emitter exports nothing.

    See Also
    --------
    xpgrad.compile
    xpgrad.registry.register_emitter

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.programs.emission import array_api_function
    >>> info = xp.emitter.EmitterInfo(
    ...     name="mine",
    ...     function=lambda program, backend, threads: array_api_function(program, backend),
    ...     source=lambda program, backend, threads: str(program),
    ... )
    >>> info.backends, info.loops
    ((), False)
    """

    name: str
    function: Callable[[Any, Any, int | None], Callable[..., tuple[Any, ...]]]
    source: Callable[[Any, Any, int | None], str]
    backends: tuple[str, ...] = ()
    loops: bool = False
    export: Callable[[Any, str, list[str]], dict[str, str]] | None = None
