"""The report: one JSON document from which every other form is made, and the comparison of two reports.

Schema 1: ``schema, suite, date, profile, seed, python, platform`` and ``targets``, each with ``label, device, library, capabilities,
cause`` and ``rows``; a row is an `engine.Result`.
"""

from __future__ import annotations

import datetime
import json
import platform
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from xpgrad_conformance.catalogue import rules
from xpgrad_conformance.engine import Result, counts_as_failure
from xpgrad_conformance.session import UNTRIED, Outcome

__all__ = ["Change", "Report", "ReportError", "Target", "differences"]

SCHEMA = 1


class ReportError(ValueError):
    """Raised if a file is not a report of this schema."""


class Target(NamedTuple):
    """The results of one target.

    Attributes
    ----------
    label : str
        The target's name in reports.
    device : str
        The device of xpgrad, or ``"pytorch"``.
    library : str
        Name and version of the array library.
    capabilities : dict of str to bool
        Whether the target has each capability, as it declares them.
    rows : list of Result
        The result of each contract.
    cause : str
        The reason if nothing ran, else empty.
    """

    label: str
    device: str
    library: str
    capabilities: dict[str, bool]
    rows: list[Result]
    cause: str = ""

    @classmethod
    def of(cls, label: str, device: str, outcome: Outcome) -> Target:
        """Make a target from the outcome of a run."""
        return cls(label, device, outcome.library, outcome.capabilities, outcome.rows, outcome.cause)

    def counts(self, level: str | None = None, group: str | None = None) -> Counter[str]:
        """Count the contracts with each status; only those of a level or of a group if given."""
        every = rules()
        return Counter(
            row.status
            for row in self.rows
            if (level is None or every[row.id].level == level) and (group is None or every[row.id].group == group)
        )

    @property
    def failures(self) -> list[Result]:
        """The results that count as failures (`counts_as_failure`)."""
        return [r for r in self.rows if counts_as_failure(r)]

    @property
    def untried(self) -> int:
        """The number of contracts that were not tried, because the run stopped before them."""
        return sum(row.status == "not run" and row.kind in UNTRIED for row in self.rows)

    @property
    def conforms(self) -> bool:
        """True if every contract was tried, and none of them is among the `failures`."""
        return not self.cause and not self.failures and not self.untried

    @property
    def verdict(self) -> str:
        """The outcome in words; a target that conforms says how many rules it is known to break, pointers (INFO) not counted."""
        if self.cause:
            return "could not be run"
        if not self.conforms:
            contracts = f"{self.untried} {'contract was' if self.untried == 1 else 'contracts were'} not tried"
            rest = f"incomplete: {contracts}" if self.untried else ""
            return "; ".join(filter(None, ["does not conform" if self.failures else "", rest]))
        every = rules()
        declared = sum(row.status == "expected failure" and every[row.id].level != "INFO" for row in self.rows)
        return f"conforms, with {declared} declared deviation{'s' if declared > 1 else ''}" if declared else "conforms"


class Report(NamedTuple):
    """The results of one run of the suite."""

    targets: list[Target]
    profile: str
    seed: int | None
    suite: str
    date: str
    python: str
    platform: str

    @classmethod
    def new(cls, targets: Iterable[Target], profile: str, seed: int | None) -> Report:
        """Make a report with today's date and this machine's platform."""
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        system = f"{platform.system()} {platform.machine()}"
        return cls(list(targets), profile, seed, version("xpgrad"), today, platform.python_version(), system)

    def to_json(self) -> str:
        """Return the report as a JSON document."""
        targets = [{**t._asdict(), "rows": [_shorten(r) for r in t.rows]} for t in self.targets]
        return json.dumps({"schema": SCHEMA, **self._asdict(), "targets": targets}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, origin: str = "the text") -> Report:
        """Make a report from a JSON document.

        Raises
        ------
        ReportError
            If the text is not a report of this schema; the message calls it `origin`.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            if data.pop("schema") != SCHEMA:
                raise ReportError(f"{origin} is a report of a schema other than {SCHEMA}; use the version of the suite that wrote it")
            targets = [Target(**{**t, "rows": [Result(**r) for r in t["rows"]]}) for t in data.pop("targets")]
            return cls(targets=targets, **data)
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as exc:
            raise ReportError(f"{origin} is not a report of the conformance suite: {type(exc).__name__}: {exc}") from exc

    @classmethod
    def load(cls, path: str | Path) -> Report:
        """Read a report from a file.

        Raises
        ------
        ReportError
            If the file cannot be read, or is not a report.
        """
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"), str(path))
        except OSError as exc:
            raise ReportError(f"{path}: {exc.strerror}") from exc


def _shorten(row: Result) -> dict[str, Any]:
    """Return a row as a dict without its empty fields, the time rounded to milliseconds."""
    full = row._replace(seconds=round(row.seconds, 3))._asdict()
    return {k: v for k, v in full.items() if v not in ("", 0.0)}


class Change(NamedTuple):
    """A change of a contract's status on a target; `worse` is true if it is a regression."""

    label: str
    id: str
    old: str
    new: str
    worse: bool


def differences(old: Report, new: Report) -> Iterator[Change]:
    """Yield the changes between two reports.

    Regressions are a new failure or unexpected pass, a contract that ran and no longer does or whose cases are no longer all run, and a
    target or contract that is missing.
    """
    after = {t.label: t for t in new.targets}
    for target in old.targets:
        now = {r.id: r for r in after[target.label].rows} if target.label in after else {}
        for row in target.rows:
            states = _describe_state(row), _describe_state(now.get(row.id))
            if states[0] != states[1]:
                yield Change(target.label, row.id, *states, _is_worse(row, now.get(row.id)))
    before = {(t.label, r.id) for t in old.targets for r in t.rows}
    for target in new.targets:
        for row in target.rows:
            if (target.label, row.id) not in before:
                yield Change(target.label, row.id, "absent", _describe_state(row), row.status in ("failed", "unexpected pass"))


def _describe_state(row: Result | None) -> str:
    """Return a row's status, and whether cases were left out; "gone" if there is no row."""
    return "gone" if row is None else row.status + ", cases left out" * bool(row.left_out)


def _is_worse(old: Result, new: Result | None) -> bool:
    if new is None or new.status == "not run":
        return old.status != "not run"
    if new.status in ("failed", "unexpected pass"):
        return old.status != "failed"
    return old.status == "passed" and (new.status == "expected failure" or (bool(new.left_out) and not old.left_out))
