"""Selects the contracts that a user names by an id, a prefix or a group's letter, or in a file of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from xpgrad_conformance.contract import Contract

__all__ = ["SelectionError", "select", "words"]


class SelectionError(ValueError):
    """Raised if a word of a selection names no contract."""


def select(every: Mapping[str, Contract], wanted: Iterable[str]) -> list[Contract]:
    """Select contracts, in the order of `every`; all of them if `wanted` names none.

    Parameters
    ----------
    every : mapping of str to Contract
        The contracts to select from, by id.
    wanted : iterable of str
        Ids (``BWD-01``), prefixes (``BWD``), letters of groups (``A``), or ``file:PATH`` for a file with one of these on each line.

    Raises
    ------
    SelectionError
        If a word names no contract.
    """
    named = words(wanted)
    if not named:
        return list(every.values())
    chosen: set[str] = set()
    for word in named:
        found = {c.id for c in every.values() if c.id == word or c.id.startswith(f"{word}-") or c.rule.group == word}
        if not found:
            raise SelectionError(f"{word!r} names no contract; write an id (BWD-01), its prefix (BWD) or a group's letter (A)")
        chosen |= found
    return [c for c in every.values() if c.id in chosen]


def words(wanted: Iterable[str]) -> list[str]:
    """Split a selection into words, and replace each ``file:PATH`` by the words in that file."""
    found: list[str] = []
    for word in wanted:
        found += Path(word[5:]).read_text(encoding="utf-8").split() if word.startswith("file:") else [w for w in word.split(",") if w]
    return found
