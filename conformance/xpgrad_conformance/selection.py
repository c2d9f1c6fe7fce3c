"""Selects the contracts that a user names by an id, a prefix or a group's letter, or in a file of them, and by the suite's version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from xpgrad_conformance.catalogue import version_key, versions
from xpgrad_conformance.contract import Contract

__all__ = ["SelectionError", "select", "words"]


class SelectionError(ValueError):
    """Raised if a word of a selection names no contract, or the suite has no such version."""


def select(every: Mapping[str, Contract], wanted: Iterable[str], version: str | None = None) -> list[Contract]:
    """Select contracts, in the order of `every`; all of them if `wanted` names none.

    Parameters
    ----------
    every : mapping of str to Contract
        The contracts to select from, by id.
    wanted : iterable of str
        Ids (``BWD-01``), prefixes (``BWD``), letters of groups (``A``), or ``file:PATH`` for a file with one of these on each line.
    version : str, optional
        Select only contracts that existed in this version of the suite, e.g. ``"0.1"``. Default: all of this version.

    Raises
    ------
    SelectionError
        If a word names no contract, or the suite has no such version.
    """
    every = _of_version(every, version)
    named = words(wanted)
    if not named:
        return list(every.values())
    chosen: set[str] = set()
    for word in named:
        found = {c.id for c in every.values() if c.id == word or c.id.startswith(f"{word}-") or c.rule.group == word}
        if not found:
            where = "" if version is None else f" of version {version}"
            raise SelectionError(f"{word!r} names no contract{where}; write an id (BWD-01), its prefix (BWD) or a group's letter (A)")
        chosen |= found
    return [c for c in every.values() if c.id in chosen]


def _of_version(every: Mapping[str, Contract], version: str | None) -> Mapping[str, Contract]:
    """Return the contracts that existed in a version of the suite."""
    if version is None:
        return every
    if version not in versions():
        raise SelectionError(f"the suite has no version {version!r}; its versions are {', '.join(versions())}")
    return {name: c for name, c in every.items() if version_key(c.rule.since) <= version_key(version)}


def words(wanted: Iterable[str]) -> list[str]:
    """Split a selection into words, and replace each ``file:PATH`` by the words in that file."""
    found: list[str] = []
    for word in wanted:
        found += Path(word[5:]).read_text(encoding="utf-8").split() if word.startswith("file:") else [w for w in word.split(",") if w]
    return found
