"""A printed program with what it needs to run, and its compilation into a function whose tracebacks show the text."""

from __future__ import annotations

import itertools
import linecache
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from xpgrad._basics.dtypes import DType

__all__ = ["Source", "built", "comment"]

_numbers = itertools.count(1)
_LONG = 100  # characters of a user's line that a comment shows


@dataclass(frozen=True)
class Source:
    """A function as text.

    Attributes
    ----------
    text : str
        A module with imports, helper functions, and the function, which takes the inputs by position and returns a tuple of the outputs.
        It does not overwrite inputs, and the outputs share no memory with inputs, constants or each other.
    name : str
        The name of the function.
    parameters : list of str
    constants : dict
        Raw arrays by the names that the text reads them from.
    dtypes : dict
        The `DType` of each name that stands for a library's dtype object in the text.
    kernels : list of str
        The kernels that the text calls in ``xp``. Without any, it needs no backend.
    functions : dict
        Compiled functions, or None where nothing is to run, by the names that the text calls.
    """

    text: str
    name: str
    parameters: list[str]
    constants: dict[str, Any] = field(default_factory=dict)
    dtypes: dict[str, DType] = field(default_factory=dict)
    kernels: list[str] = field(default_factory=list)
    functions: dict[str, Any] = field(default_factory=dict)


def built(source: Source, names: Mapping[str, Any] | None = None, raw_dtype: Callable[[DType], Any] | None = None) -> Callable[..., Any]:
    """Compile a text into its function.

    Parameters
    ----------
    source : Source
    names : mapping or None
        Further names in the text: ``xp``, the backend's table of kernels, if `source.kernels` is not empty.
    raw_dtype : callable or None
        Returns the library's object for a dtype, if `source.dtypes` is not empty.
    """
    space: dict[str, Any] = {"__name__": "<xpgrad>", **source.constants, **source.functions}
    space.update({} if names is None else names)
    if raw_dtype is not None:
        space.update((name, raw_dtype(dtype)) for name, dtype in source.dtypes.items())
    filename = f"<xpgrad.compile {next(_numbers)}: {source.name}>"
    exec(compile(source.text, filename, "exec", dont_inherit=True), space)  # noqa: S102 (it is the program's own text)
    function: Callable[..., Any] = space[source.name]
    # NB: an entry without a time stays until somebody clears the cache; here until the function is gone.
    linecache.cache[filename] = (len(source.text), None, source.text.splitlines(keepends=True), filename)
    weakref.finalize(function, linecache.cache.pop, filename, None)
    return function


def comment(line: tuple[str, int, str]) -> str:
    """Print a user's line as a comment: its location, and its text if that can be read."""
    file, number, function = line
    text = linecache.getline(file, number).strip()
    text = text if len(text) <= _LONG else f"{text[:_LONG]} ..."
    return f"# {file.replace(chr(92), '/').rpartition('/')[2]}:{number}{f'  {text}' if text else f' in {function}'}"
