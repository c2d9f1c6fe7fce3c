"""Law: a planted fault is left out only if no contract runs its code; code that cannot be observed counts as run."""

from __future__ import annotations

from pathlib import Path

import pytest

import xpgrad as xp
from xpgrad_conformance.reach import Reach, ReachError, reach, statement

SOURCE = """\
import math

LIMIT = [
    1,
    2,
]

@decorated(
    1,
)
def f(x, *,
      y=2):
    if x:
        return (x +
                y)
    while y:
        y -= 1
    return lambda: (
        y)
"""


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((1, 1), (1, 1)), ((4, 5), (3, 6)), ((9, 9), (8, 19)), ((12, 12), (8, 19)), ((13, 13), (13, 15)), ((15, 15), (14, 15)),
        ((17, 17), (17, 17)), ((13, 17), (8, 19)), ((19, 19), (18, 19)), ((1, 13), (1, 20)), ((2, 2), (1, 20)),
    ],
)  # fmt: skip
def test_the_innermost_statement_that_holds_some_lines(lines: tuple[int, int], expected: tuple[int, int]) -> None:
    assert statement(SOURCE, *lines) == expected


def test_a_statement_concerns_those_who_run_a_line_of_it() -> None:
    found = Reach({"a.py": frozenset({1, 3})}, {"X-1": {"a.py": frozenset({13, 14})}, "X-2": {"a.py": frozenset({13, 16, 17})}, "X-3": None,
                                                "X-4": {"b.py": frozenset({17})}})  # fmt: skip
    assert found.could_notice("a.py", SOURCE, 17, 17) == {"X-2", "X-3"}
    assert found.could_notice("a.py", SOURCE, 15, 15) == {"X-1", "X-3"}
    assert found.could_notice("a.py", SOURCE, 13, 13) == {"X-1", "X-2", "X-3"}
    assert found.could_notice("a.py", SOURCE, 5, 5) == {"X-1", "X-2", "X-3", "X-4"}  # at import
    assert found.could_notice("c.py", SOURCE, 17, 17) == {"X-3"}


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_the_lines_that_contracts_run_are_seen() -> None:
    found = reach("numpy", ["BWD-30", "GCK-01", "THR-01", "HOG-02"])
    assert list(found.run) == ["BWD-30", "HOG-02", "THR-01", "GCK-01"]
    assert found.run["THR-01"] is None  # threads run in another order each time
    assert found.run["HOG-02"] is None  # it starts other processes
    core = Path(xp.__file__).parent

    def who(file: str, text: str) -> set[str]:
        source = (core / file).read_text(encoding="utf-8")
        line = source.count("\n", 0, source.index(text)) + 1
        return found.could_notice(f"xpgrad/{file}", source, line, line) - {"THR-01", "HOG-02"}

    assert who("_tape/requests.py", "does not require grad and does not have a grad_fn") == {"BWD-30"}
    assert who("_tape/engine.py", "def run_pass") == {"BWD-30", "GCK-01"}  # the module was imported before
    assert who("autograd/_gradcheck.py", "numerical = ") == {"GCK-01"}


def test_a_target_that_cannot_be_opened_is_said() -> None:
    with pytest.raises(ReachError, match=r"cannot see which lines the contracts run on nowhere: .*nowhere"):
        reach("nowhere")
