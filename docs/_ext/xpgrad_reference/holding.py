"""Find the contracts that hold a name: those of its facts, those that follow its page of PyTorch, and those that name it."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from xpgrad_reference.facts import facts
from xpgrad_reference.names import Name

_CATALOGUE = Path(__file__).resolve().parents[3] / "conformance" / "xpgrad_conformance" / "catalogue.toml"
#: The pages of PyTorch's documentation that are about one name each.
_PAGES = {
    "xpgrad.Tensor.backward": {"S0"},
    "xpgrad.autograd.backward": {"S1"},
    "xpgrad.autograd.grad": {"S3"},
    "xpgrad.dialects.libtorch.backward": {"S2"},
    "xpgrad.dialects.oneflow.backward": {"S4"},
    "xpgrad.autograd.gradcheck": {"GC"},
    "xpgrad.func.functional_call": {"FC"},
    "xpgrad.func.vmap": {"FV"},
    "xpgrad.func.jacrev": {"FJ"},
    "xpgrad.func.jacfwd": {"FJ"},
    "xpgrad.func.hessian": {"FJ"},
    "xpgrad.utils.checkpoint.checkpoint": {"CK"},
}
#: Words that rules use of many things: here only the page, or the docstring, tells.
_COMMON = frozenset(
    ["T", "add", "all", "any", "backward", "data", "device", "dtype", "grad", "is_leaf", "metadata", "name", "out", "real"]
    + ["requires_grad", "shape", "size", "sum", "update", "where"]
)
ID = re.compile(r"\b[A-Z]{3}-\d\d\b")


@cache
def rules() -> dict[str, dict[str, Any]]:
    """The rules of the catalogue, by id."""
    return {rule["id"]: rule for rule in tomllib.loads(_CATALOGUE.read_text(encoding="utf-8"))["rule"]}


@cache
def _speaking() -> dict[str, list[str]]:
    """The rules by the words that they set in backticks, each part of a dotted name by itself."""
    found: dict[str, list[str]] = {}
    for identity, rule in rules().items():
        for quoted in re.findall(r"`([^`]+)`", rule["rule"]):
            for word in set(re.findall(r"[A-Za-z_]\w*", quoted)):
                found.setdefault(word, []).append(identity)
    return found


def contracts(name: Name) -> list[str]:
    """The ids of the contracts that hold a name, in the catalogue's order."""
    found = set(facts(name.full).contracts)
    pages = _PAGES.get(name.full, set())
    found |= {identity for identity, rule in rules().items() if pages & set(rule["source"])}
    homes = ("xpgrad.Tensor.", "xpgrad.autograd", "xpgrad.func", "xpgrad.utils")
    if name.short not in _COMMON and (name.full.startswith(homes) or name.owner == "xpgrad"):
        found |= set(_speaking().get(name.short, ()))
    return [identity for identity in rules() if identity in found]
