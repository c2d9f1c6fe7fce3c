"""The catalogue as a page of the documentation, docs/contracts.md; a test keeps it up to date."""

from __future__ import annotations

from collections import Counter

from xpgrad_conformance.catalogue import LEVELS, groups, pages, rules
from xpgrad_conformance.contract import contracts
from xpgrad_conformance.known import bundled

__all__ = ["catalogue_page"]


def catalogue_page() -> str:
    """Every rule with its level, its source and its check, or the reason why there is none."""
    every, known = contracts(), bundled()
    counts = Counter(rule.level for rule in rules().values())
    unchecked = [c for c in every.values() if c.function is None]
    levels = ", ".join(f"{counts[level]} {level}" for level in LEVELS)
    out = [
        "# The contracts",
        "",
        "What the documentation of PyTorch 2.13 promises of autograd, as rules in our own words; each is checked by one contract.",
        "This page is generated: `xpgrad conformance catalogue`.",
        "",
        f"{len(every)} rules: {levels}; {len(unchecked)} of them are not checked, each with its reason.",
        "MUST: promised by a page. SHOULD: what PyTorch 2.13 does though no page promises it. INFO: a detail by the page's own words, or a",
        "pointer.",
        "",
        "Sources:",
        "",
    ]
    out += [f"* {key}: [{page.title}]({page.url})" if page.url else f"* {key}: {page.title}" for key, page in pages().items()]
    for letter, title in groups().items():
        out += ["", f"## {letter}. {title}", ""]
        for contract in every.values():
            rule = contract.rule
            if rule.group != letter:
                continue
            notes = [", ".join(rule.source), f"since {rule.since}"]
            if not rule.checked_on_pytorch:
                notes.append("documentation only")
            if contract.requires:
                notes.append("requires " + ", ".join(f"`{name}`" for name in contract.requires))
            out.append(f"* **{rule.id}** {rule.level}. {rule.rule} ({'; '.join(notes)})")
            out += [f"  * {name}: {text}" for name, text in (("detail", rule.detail), ("policy", rule.policy)) if text]
            if contract.function is None:
                out.append(f"  * not checked: {contract.reason}")
            out += [f"  * expected failure on `{k.backend}` ({k.kind}): {k.reason}" for k in known if k.contract == rule.id]
    return "\n".join(out) + "\n"
