"""The rules that the suite checks, read from ``catalogue.toml``: each has a level, and the pages of documentation that promise it."""

from __future__ import annotations

import functools
import tomllib
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["LEVELS", "Page", "Rule", "groups", "pages", "rules"]

#: MUST: a page promises it. SHOULD: PyTorch 2.13 does it, but no page promises it. INFO: the page calls it a detail, or only links to
#: another page.
LEVELS = ("MUST", "SHOULD", "INFO")


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
        The version of the suite that introduced the rule.
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
    """Return every rule by its id, in the order of the groups."""
    found = {}
    for row in _document()["rule"]:
        found[row["id"]] = Rule(**{**row, "source": tuple(row["source"])})
    return found


@functools.cache
def groups() -> dict[str, str]:
    """Return the titles of the groups by their letters."""
    return {letter: group["title"] for letter, group in _document()["groups"].items()}


@functools.cache
def pages() -> dict[str, Page]:
    """Return the pages of documentation that rules come from, by key."""
    return {key: Page(**page) for key, page in _document()["pages"].items()}
