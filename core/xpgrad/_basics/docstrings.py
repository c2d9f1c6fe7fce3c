"""Complete docstrings with sections that all functions of a family share, such as their parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

#: The sections of a docstring, as numpydoc orders them.
ORDER = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References", "Examples")


def complete(doc: str | None, sections: Iterable[tuple[str, str]]) -> str:
    """Add sections to a docstring, in numpydoc's order; a section that it already has is kept.

    Parameters
    ----------
    doc : str or None
        Text as written in the source: all lines but the first are indented.
    sections : iterable of (str, str)
        Headings and texts.
    """
    text, own = _split(doc)
    return _join(text, dict(sections) | own)


def shares(parameters: str = "", raises: str = "", **sections: str) -> Callable[[F], F]:
    """Return a decorator that adds shared sections to the docstrings of a family of functions.

    Parameters
    ----------
    parameters : str
        Entries of the section "Parameters". A function gets those of its parameters that its docstring does not describe.
    raises : str
        Entries of the section "Raises". A function gets those of the exceptions that its docstring does not describe, before its own; only
        TypeError always comes first.
    **sections : str
        The texts of other sections, such as `returns`, for docstrings that lack them.
    """
    common, errors = _entries(parameters), _entries(raises)
    others = {heading.title(): text for heading, text in sections.items()}

    def decorate(function: F) -> F:
        text, own = _split(function.__doc__)
        mine = _entries(own.pop("Parameters", ""))
        entries = common | mine
        # One entry may describe several parameters.
        described = dict.fromkeys([*(entries[name] for name in _parameters(function) if name in entries), *mine.values()])
        raised = dict.fromkeys((errors | _entries(own.pop("Raises", ""))).values())
        if described:
            own["Parameters"] = "\n".join(described)
        if raised:
            own["Raises"] = "\n".join(sorted(raised, key=lambda entry: not entry.startswith("TypeError")))
        function.__doc__ = _join(text, others | own)
        return function

    return decorate


def _parameters(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of a function's parameters in the order of its signature; `inspect.signature` would slow down the import."""
    code = function.__code__
    names = iter(code.co_varnames)
    positional, by_name = (list(islice(names, count)) for count in (code.co_argcount, code.co_kwonlyargcount))
    yield from positional
    yield from islice(names, bool(code.co_flags & inspect.CO_VARARGS))
    yield from by_name
    yield from islice(names, bool(code.co_flags & inspect.CO_VARKEYWORDS))


def _split(doc: str | None) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring before its first section, and the text of each section by its heading."""
    before, *pieces = re.split(r"^(.+)\n-+$", inspect.cleandoc(doc or ""), flags=re.MULTILINE)
    return before.strip(), {heading: body.strip() for heading, body in zip(pieces[::2], pieces[1::2])}


def _join(text: str, sections: Mapping[str, str]) -> str:
    """Join a text and sections to a docstring, in numpydoc's order."""
    headings = sorted(sections, key=lambda heading: ORDER.index(heading) if heading in ORDER else len(ORDER))
    blocks = [f"{heading}\n{'-' * len(heading)}\n{sections[heading]}" for heading in headings]
    return "\n\n".join([text, *blocks] if text else blocks)


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section "Parameters" or "Raises" by the names that they describe."""
    entries = re.split(r"\n(?=\S)", section) if section else []
    return {name.strip(" *"): entry for entry in entries for name in entry.partition("\n")[0].partition(":")[0].split(",")}
