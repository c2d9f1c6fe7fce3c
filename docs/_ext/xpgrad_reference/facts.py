"""Read what the reference says of a name beside its docstring: `facts/notes.toml`, and `facts/values.toml` for what has no docstring.

::

    [differs]
    "xpgrad.add" = "No `alpha`: `Tensor.add` has it."

    ["xpgrad.pi"]
    summary = "The ratio of a circle's circumference to its diameter."
    example = '''
    >>> xp.sin(xp.pi / 2)
    tensor(1.)
    '''
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "facts"
_NOTES, _VALUES = {"torch", "differs", "internal", "contracts"}, {"summary", "example", "see"}


@dataclass(frozen=True)
class Facts:
    """What the reference says of a name beside its docstring.

    Attributes
    ----------
    summary : str
        A sentence for a constant or an attribute, which has no docstring.
    example : str
        A session of the interpreter for one of these.
    see : str
        Another public name whose example shows this one.
    torch : str or None
        The name that PyTorch documents; empty if there is none. None: the same name, if PyTorch has it.
    differs : str
        How it differs from PyTorch's.
    internal : str
        Why a name without an underscore is not for users. Such names are listed with their class, without a text.
    contracts : tuple of str
        Contracts that hold it, beside those that follow its page of PyTorch or name it.
    """

    summary: str = ""
    example: str = ""
    see: str = ""
    torch: str | None = None
    differs: str = ""
    internal: str = ""
    contracts: tuple[str, ...] = ()


@cache
def all_facts() -> dict[str, Facts]:
    """Return the facts by name.

    Raises
    ------
    ValueError
        If a key is unknown.
    """
    found: dict[str, dict[str, object]] = {}
    notes, values = (tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")) for name in ("notes", "values"))
    for key, texts in notes.items():
        for name, text in texts.items():
            found.setdefault(name, {})[key] = tuple(text) if key == "contracts" else text
    for name, table in values.items():
        found.setdefault(name, {}).update({key: text.strip("\n") for key, text in table.items()})
        notes |= dict.fromkeys(table.keys() - _VALUES)
    if unknown := notes.keys() - _NOTES:
        msg = f"unknown keys {sorted(unknown)}; known are {sorted(_NOTES | _VALUES)}"
        raise ValueError(msg)
    return {name: Facts(**table) for name, table in found.items()}  # type: ignore[arg-type]


def facts(name: str) -> Facts:
    """Return what the reference says of a name beside its docstring; often nothing."""
    return all_facts().get(name, Facts())
