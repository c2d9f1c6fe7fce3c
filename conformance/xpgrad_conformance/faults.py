"""Reads the table of planted faults, ``mutants/*.toml``: each row replaces a piece of text in one source file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

from xpgrad_conformance.contract import contracts

__all__ = ["FOLDER", "KILLS", "Mutant", "MutantError", "load"]

FOLDER = Path(__file__).resolve().parent / "mutants"
KILLS = FOLDER / "kills.toml"


class MutantError(ValueError):
    """Raised if a row of the table is malformed, or no longer matches the sources."""


class Mutant(NamedTuple):
    """A planted fault.

    Attributes
    ----------
    name : str
        A unique name.
    title : str
        A description of the fault.
    file : str
        The source, relative to the folder that contains its package: ``xpgrad/_tape/engine.py``.
    old, new : str
        Text that occurs once in the source, and its replacement.
    kills : tuple of str
        Contracts that are known to notice the fault.
    backend : str
        The device on which these contracts run.
    """

    name: str
    title: str
    file: str
    old: str
    new: str
    kills: tuple[str, ...] = ()
    backend: str = "numpy"


def load(folder: Path = FOLDER) -> dict[str, Mutant]:
    """Read every fault, by its name.

    Raises
    ------
    MutantError
        If a name occurs twice, a key is unknown, or a contract does not exist.
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
