"""The table of planted faults, ``mutants/*.toml``: rows that say which text of one source file becomes what."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from xpgrad_conformance.contract import contracts

__all__ = ["FOLDER", "KILLS", "Mutant", "MutantError", "load"]

FOLDER = Path(__file__).resolve().parent / "mutants"
KILLS = FOLDER / "kills.toml"


class MutantError(ValueError):
    """A row of the table is malformed, or no longer matches the sources."""


class Mutant(NamedTuple):
    """A planted fault.

    Attributes
    ----------
    name, title : str
        A unique name; a description of the fault.
    file : str
        The source, relative to the folder of its package: ``xpgrad/_tape/engine.py``.
    old, new : str
        Text that occurs once in it, and what it becomes.
    kills : tuple of str
        Contracts that are known to notice it.
    backend : str
        The device that they run on.
    """

    name: str
    title: str
    file: str
    old: str
    new: str
    kills: tuple[str, ...] = ()
    backend: str = "numpy"


def load(folder: Path = FOLDER) -> dict[str, Mutant]:
    """Every fault by its name.

    Raises
    ------
    MutantError
        For a name that occurs twice, an unknown key, or a contract that does not exist.
    """
    found: dict[str, Mutant] = {}
    for path in sorted(folder.glob("*.toml")):
        if path.name == KILLS.name:
            continue
        for row in tomllib.loads(path.read_text(encoding="utf-8")).get("mutant", []):
            if surplus := set(row) - set(Mutant._fields):
                raise MutantError(f"{path.name}: {row.get('name')!r} has unknown keys {sorted(surplus)}")
            mutant = Mutant(**{**row, "kills": tuple(row.get("kills", ()))})
            if mutant.name in found:
                raise MutantError(f"{path.name}: a second fault is named {mutant.name!r}")
            if unknown := [name for name in mutant.kills if name not in contracts()]:
                raise MutantError(f"{path.name}: {mutant.name!r} names contracts that do not exist: {', '.join(unknown)}")
            found[mutant.name] = mutant
    return found
