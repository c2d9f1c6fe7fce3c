"""Write what a docstring does not say of a name: the pages that it follows, its contracts, and the backends on which its example ran."""

from __future__ import annotations

from xpgrad_reference import backends, follows, holding
from xpgrad_reference.facts import facts
from xpgrad_reference.names import Name
from xpgrad_reference.sections import plain

#: The report, seen from a page of the reference.
REPORT = "../conformance/report.html"


def block(name: Name) -> list[str]:
    """Return lines of reStructuredText about a name; none if there is nothing to say."""
    said: list[tuple[str, str]] = []
    if pages := _follows(name):
        said.append(("Follows", pages))
    if differs := facts(name.full).differs:
        said.append(("Differs from PyTorch 2.13", plain(differs)))
    if name.aliases:
        said.append(("Also", ", ".join(f"``{alias}``" for alias in name.aliases)))
    if held := holding.contracts(name):
        shown = ", ".join(contract(identity) for identity in held)
        said.append((f"Held by {len(held)} contract{'s' * (len(held) > 1)}", shown))
    if works := backends.sentence(name):
        said.append(("Backends", works))
    if not said:
        return []
    lines = [".. container:: facts", ""]
    for term, text in said:
        lines += [f"    **{term}:** {text}", ""]
    return lines


def contract(identity: str) -> str:
    """Return a link to a contract in the report."""
    return f"`{identity} <{REPORT}#{identity}>`__"


def _follows(name: Name) -> str:
    found = follows.followed(name)
    pages = []
    if theirs := found.get("torch"):
        pages.append(f"PyTorch's `{theirs} <{follows.torch_address(theirs)}>`__")
    if theirs := found.get("standard"):
        pages.append(f"the Array API standard's `{theirs} <{follows.standard_address(theirs)}>`__")
    if theirs := found.get("scipy"):
        pages.append(f"SciPy's `{theirs} <{follows.scipy_address(theirs)}>`__")
    return "; ".join(reversed(pages) if "scipy" in found else pages)
