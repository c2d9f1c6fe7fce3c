"""The rules that the suite checks, read from ``catalogue.toml``; each says what is promised, by which page, and how firmly."""

from __future__ import annotations

import functools
import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["LEVELS", "Page", "Rule", "groups", "pages", "rules"]

#: MUST: promised. SHOULD: what PyTorch 2.13 does though no page promises it. INFO: a detail by the page's own words, or a pointer.
LEVELS = ("MUST", "SHOULD", "INFO")


class Page(NamedTuple):
    """A page of documentation; `url` is empty for behaviour that no page promises."""

    title: str
    url: str


class Rule(NamedTuple):
    """One rule.

    Attributes
    ----------
    id : str
        ``BWD-01``: stable, never reused.
    group : str
        The letter of its group.
    level : str
        One of `LEVELS`.
    rule : str
        What is expected, in plain words.
    source : tuple of str
        Keys of `pages`.
    documented : str
        Whether one of the five documents says so, a page that they link to, or another.
    since : str
        The version of the suite that first had it.
    detail : str
        The error's type and essence, or an example.
    policy : str
        What the suite expects where documentation and PyTorch 2.13 disagree.
    checked_on_pytorch : bool
        Whether the claim was seen to hold on PyTorch 2.13; otherwise it rests on documentation only.
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
    """Every rule by its id, in the order of the groups."""
    found = {}
    for row in _document()["rule"]:
        found[row["id"]] = Rule(**{**row, "source": tuple(row["source"])})
    return found


@functools.cache
def groups() -> dict[str, str]:
    """The titles of the groups by their letters."""
    return {letter: group["title"] for letter, group in _document()["groups"].items()}


@functools.cache
def pages() -> dict[str, Page]:
    """The pages of documentation that rules come from."""
    return {key: Page(**page) for key, page in _document()["pages"].items()}
