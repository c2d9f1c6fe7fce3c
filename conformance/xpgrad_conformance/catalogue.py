"""The rules that the suite checks, read from ``catalogue.toml``: each has a level, and the pages of documentation that promise it."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["LEVELS", "CatalogueError", "Page", "Rule", "groups", "pages", "rules", "version_key", "versions"]

#: MUST: a page promises it. SHOULD: PyTorch 2.13 does it, but no page promises it. INFO: the page calls it a detail, or only links to
#: another page.
LEVELS = ("MUST", "SHOULD", "INFO")


class CatalogueError(Exception):
    """Raised if the catalogue is malformed, or the contracts do not match it."""


class Page(NamedTuple):
    """A page of documentation; `url` is empty for an entry that stands for behaviour that no page promises."""

    title: str
    url: str


class Rule(NamedTuple):
    """A rule of the catalogue.

    Attributes
    ----------
    id : str
        A stable id that is never reused, e.g. ``BWD-01``.
    group : str
        The letter of the rule's group.
    level : str
        One of `LEVELS`.
    rule : str
        The expected behaviour in plain words.
    source : tuple of str
        The pages that the rule comes from, as keys of `pages`.
    documented : str
        Where the rule is documented: in one of the five main documents, on a page that they link to, or elsewhere.
    since : str
        The version of the suite that introduced the rule, e.g. ``0.1``.
    detail : str
        The type and gist of the error, or an example.
    policy : str
        What the suite expects if documentation and PyTorch 2.13 disagree.
    checked_on_pytorch : bool
        Whether the rule was verified on PyTorch 2.13; otherwise it rests on documentation only.
    differs : bool
        Whether documentation and PyTorch 2.13 disagree.
    """

    id: str
    group: str
    level: str
    rule: str
    source: tuple[str, ...]
    documented: str
    since: str
    detail: str = ""
    policy: str = ""
    checked_on_pytorch: bool = True
    differs: bool = False


@functools.cache
def _document() -> dict[str, Any]:
    return tomllib.loads(files("xpgrad_conformance").joinpath("catalogue.toml").read_text(encoding="utf-8"))


@functools.cache
def rules() -> dict[str, Rule]:
    """Return every rule by its id, in the order of the groups.

    Raises
    ------
    CatalogueError
        If a rule does not say since which version it exists.
    """
    return {row["id"]: _rule(row) for row in _document()["rule"]}


def _rule(row: Mapping[str, Any]) -> Rule:
    """Make a rule from its table in the catalogue."""
    if re.fullmatch(r"\d+\.\d+", str(row.get("since", ""))) is None:
        raise CatalogueError(f"{row['id']}: since={row.get('since')!r}, expected the version that introduces the rule, such as '0.2'")
    return Rule(**{**row, "source": tuple(row["source"])})


@functools.cache
def versions() -> tuple[str, ...]:
    """Return the versions of the suite that introduced rules, the oldest first."""
    return tuple(sorted({rule.since for rule in rules().values()}, key=version_key))


def version_key(version: str) -> tuple[int, ...]:
    """Return a version such as ``0.10`` as integers, by which versions are compared."""
    return tuple(map(int, version.split(".")))


@functools.cache
def groups() -> dict[str, str]:
    """Return the titles of the groups by their letters."""
    return {letter: group["title"] for letter, group in _document()["groups"].items()}


@functools.cache
def pages() -> dict[str, Page]:
    """Return the pages of documentation that rules come from, by key."""
    return {key: Page(**page) for key, page in _document()["pages"].items()}
