"""A pytest plugin for another project's tests: it keeps a share of them, and writes one line of JSON for each outcome.

`suites` starts pytest with ``-p xpgrad.testing._suite_plugin`` and sets the variables of the environment.
"""

from __future__ import annotations

import json
import os
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: ``K/N`` keeps each N-th test, by the checksum of its name, with remainder K.
SHARE = "XPGRAD_SUITE_SHARE"
#: The file to which outcomes are appended.
OUTCOMES = "XPGRAD_SUITE_OUTCOMES"
#: The names that test modules give to functions that convert or compare results, separated by spaces (for `_suite_comparisons`).
CONVERSIONS = "XPGRAD_SUITE_CONVERSIONS"

#: What `_suite_derivatives` says of the derivatives of what a test compares by the arrays that it makes.
DERIVATIVES = {
    "right": "they are those of differences",
    "constant": "nothing that it compares changes with the arrays, and they are 0",
    "kink": "they differ at a kink or a step only",
    "nan": "one is NaN or infinite",
    "warned": "they differ, and a warning says that a value leaves the graph",
    "single": "they differ where the test computes in single precision, in which differences are inexact",
    "refused": "something has no derivative, and an error says so",
    "strays": "the test fails or does something else at nearby points",
    "nothing": "it makes or compares no floating-point arrays",
    "slow": "it takes longer than a second",
    "wrong": "they differ, and the test fails",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that are not in the share."""
    remainder, n = (int(part) for part in os.environ.get(SHARE, "0/1").split("/"))
    kept = [item for item in items if zlib.crc32(item.nodeid.encode()) % n == remainder]
    if len(kept) < len(items):
        chosen = set(map(id, kept))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in chosen])
        items[:] = kept


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write the outcome of a test: of its call, or of the set-up or tear-down that failed or skipped it."""
    if report.when != "call" and report.outcome == "passed":
        return
    outcome = "xfailed" if hasattr(report, "wasxfail") and report.outcome == "skipped" else report.outcome
    text = "" if outcome == "passed" else str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr or "")
    line = {"test": report.nodeid, "when": report.when, "outcome": outcome, "seconds": round(report.duration, 3), "text": text[-1500:]}
    line |= dict(report.user_properties)
    with open(os.environ[OUTCOMES], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
