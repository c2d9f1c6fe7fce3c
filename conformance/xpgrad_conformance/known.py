"""Expected failures: TOML files that say which contracts may fail on which targets, and why.

A file has one table ``[[known]]`` per expected failure, e.g.::

    [[known]]
    contract = "MUT-21"
    kind = "bug"                 # bug, unsupported, todo or deviation
    reason = "writes through expanded views are let through, see issue 12"
    backend = "mine*"            # optional: a pattern for the targets; by default all
    capabilities = { strides = false }   # optional: only targets that declare these
    example = "{'shape': (0, 3)}"        # optional: the counter-example, which is tried each time
    strict = false               # optional: the contract may pass; by default, passing is a failure
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from xpgrad_conformance.catalogue import rules

__all__ = ["KINDS", "Known", "KnownError", "bundled", "find", "load"]

#: bug: to be fixed. unsupported: not promised on this target. todo: not written yet. deviation: the suite's policy differs from the target.
KINDS = ("bug", "unsupported", "todo", "deviation")


class KnownError(ValueError):
    """Raised if a file of expected failures is malformed."""


class Known(NamedTuple):
    """An expected failure; the module's docstring explains the fields."""

    contract: str
    kind: str
    reason: str
    backend: str = "*"
    capabilities: Mapping[str, bool] = {}
    example: str = ""
    strict: bool = True

    def applies(self, target: str, capabilities: Mapping[str, bool]) -> bool:
        """Return whether this entry is about a target."""
        return fnmatch(target, self.backend) and all(capabilities.get(name) is value for name, value in self.capabilities.items())

    @property
    def drawn(self) -> dict[str, Any] | None:
        """The arguments of the counter-example; None if the entry has none."""
        return ast.literal_eval(self.example) if self.example else None


def load(path: str | Path) -> list[Known]:
    """Read a file of expected failures.

    Raises
    ------
    KnownError
        If the file cannot be read or is not TOML, or an entry has an unknown contract, key or kind, a malformed example, or no reason; the
        message names the file and the entry.
    """
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as exc:
        raise KnownError(f"{path}: {exc}") from exc
    if surplus := set(document) - {"known"}:
        raise KnownError(f"{path}: unknown tables {sorted(surplus)}; expected [[known]] only")
    found = []
    for n, row in enumerate(document.get("known", []), 1):
        where = f"{path}, entry {n}"
        if surplus := set(row) - set(Known._fields):
            raise KnownError(f"{where}: unknown keys {sorted(surplus)}; the known ones are {', '.join(Known._fields)}")
        if row.get("contract") not in rules():
            raise KnownError(
                f"{where}: {row.get('contract')!r} is not a contract's id; ids are like 'BWD-01', `xpgrad conformance list` names them"
            )
        if row.get("kind") not in KINDS:
            raise KnownError(f"{where} ({row['contract']}): kind={row.get('kind')!r}, expected one of {', '.join(KINDS)}")
        if not str(row.get("reason", "")).strip():
            raise KnownError(f"{where} ({row['contract']}): it needs a reason")
        known = Known(**row)
        try:
            drawn = known.drawn
        except (ValueError, SyntaxError) as exc:
            raise KnownError(f"{where} ({known.contract}): example={known.example!r} is not a literal: {exc}") from exc
        if drawn is not None and not isinstance(drawn, dict):
            raise KnownError(f"{where} ({known.contract}): example={known.example!r}, expected the arguments as a dict")
        found.append(known)
    return found


def bundled() -> list[Known]:
    """Return the suite's own expected failures: PyTorch's deviations, and what xpgrad does not support."""
    here = Path(__file__).parent / "known"
    return [known for path in sorted(here.glob("*.toml")) for known in load(path)]


def find(every: Iterable[Known], contract: str, target: str, capabilities: Mapping[str, bool]) -> Known | None:
    """Return the last expected failure of a contract on a target, so that a user's file overrides the suite's; None if there is none."""
    found = [known for known in every if known.contract == contract and known.applies(target, capabilities)]
    return found[-1] if found else None
