"""Law: the pytest plugin checks marked tests, expects known failures, and reports at the end, in one process or several."""

from __future__ import annotations

import html.parser
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

LIBRARY = """
import numpy as np
import pytest
from xpgrad.testing import case, parametrize_with_checks

X, Y = np.linspace(0.2, 1.4, 5), np.linspace(-0.9, 0.7, 5)

def smooth(x, y):
    return x.__array_namespace__().exp(x) * y

def leaves(x):
    return (x.detach() if hasattr(x, "detach") else x) * 2.0

def branches(x):
    return x * 2.0 if float(x.detach()[0] if hasattr(x, "detach") else x[0]) < 5.0 else x
"""


REPORTS = [f"--differentiability-report={form}" for form in ("json", "html", "md")]


def run(folder: Path, files: dict[str, str], *options: str, backends: str = "numpy") -> pytest.LineMatcher:
    """Write test files after the library's functions, run pytest on them, and return its output."""
    for name, tests in files.items():
        (folder / f"test_{name}.py").write_text(LIBRARY + tests, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "xpgrad_pytest", "-p", "no:cacheprovider", *options]
    environment = {**os.environ, "XPGRAD_BACKENDS": backends, "PYTEST_ADDOPTS": "", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return pytest.LineMatcher([*done.stdout.splitlines(), *done.stderr.splitlines()])


MARKED = """
@pytest.mark.differentiable(X, Y, argnums=0)
def test_smooth(x, y):
    return smooth(x, y)

@pytest.fixture
def factor():
    return 3.0

@pytest.mark.differentiable(X, name="thrice")
def test_with_a_fixture(x, factor):
    return x * factor

class TestClass:
    @pytest.mark.differentiable(X)
    def test_method(self, x):
        return x * x

@pytest.mark.differentiable(order=1)
def test_calls(differentiable):
    assert {row.check for row in differentiable(smooth, X, Y).rows} >= {"gradient", "vmap"}
    assert "second" not in {row.check for row in differentiable(branches, X, skip="vmap").rows}

def test_without_a_marker(differentiable):
    differentiable(smooth, X, Y)

@pytest.mark.differentiable(X, name="<b>&")
def test_leaves(x):
    return leaves(x)
"""


TABLE = """
@parametrize_with_checks([
    (smooth, [X, Y]),
    case(branches, X, known={"vmap": "it asks for a value"}),
    case(smooth, X, Y, name="again", known={"numpy:second": "not so"}),
    case(leaves, X, order=1, vmap=False, skip=("forward",)),
])
def test_table(check):
    check()
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> tuple[pytest.LineMatcher, Path]:
    """Run all of them in one process, and return the output and the folder of the reports."""
    folder = tmp_path_factory.mktemp("alone")
    return run(folder, {"library": MARKED + TABLE}, "-v", *REPORTS, "--differentiability-path=reports/found"), folder / "reports"


def test_marked_tests_are_the_function_or_call_it(alone: tuple[pytest.LineMatcher, Path]) -> None:
    alone[0].fnmatch_lines([
        "*::test_smooth PASSED*", "*::test_with_a_fixture PASSED*", "*::TestClass::test_method PASSED*", "*::test_calls PASSED*",
        "*::test_without_a_marker PASSED*", "*::test_leaves FAILED*",
        "*numpy, check `graph`, argument 0: the argument moves the output*",
    ])  # fmt: skip


def test_a_table_makes_a_test_of_each_check(alone: tuple[pytest.LineMatcher, Path]) -> None:
    alone[0].fnmatch_lines([
        "*test_table?smooth-numpy-runs? PASSED*",
        "*test_table?branches-numpy-vmap? XFAIL (it asks for a value)*",
        "*test_table?again-numpy-second? FAILED*",
        "*test_table?leaves-numpy-graph? FAILED*",
        "*test_table?leaves-numpy-gradient? SKIPPED (the check `graph` did not pass)*",
        "*XPASS(strict)* not so",
        "*= 3 failed, 34 passed, 1 skipped, 1 xfailed in *",
    ])  # fmt: skip


def test_the_run_ends_with_a_table_and_the_reasons(alone: tuple[pytest.LineMatcher, Path]) -> None:
    alone[0].fnmatch_lines([
        "*= differentiability =*", "*numpy",
        "<b>&*✗ graph", "again*✗ second", "branches*known vmap", "leaves*✗ graph", "method*✓", "smooth*✓", "thrice*✓", "*3 of 7",
        "<b>& on numpy: graph of argument 0: the argument moves the output*",
        "again on numpy: second of argument 0, 1: it passes, but `known` says: not so; remove that",
        "branches on numpy: vmap: it asks for a value (RuntimeError: *)",
    ])  # fmt: skip


@pytest.mark.slow
def test_reports_are_written_by_several_processes_as_by_one(alone: tuple[pytest.LineMatcher, Path], tmp_path: Path) -> None:
    said = run(tmp_path, {"library": MARKED + TABLE}, *REPORTS, "--differentiability-path=found", "-n2")
    said.fnmatch_lines(["differentiability: wrote found.json", "differentiability: wrote found.html", "differentiability: wrote found.md"])
    for form in ("json", "html", "md"):
        assert (tmp_path / f"found.{form}").read_text(encoding="utf-8") == (alone[1] / f"found.{form}").read_text(encoding="utf-8")
    rows = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))["rows"]
    (row,) = [row for row in rows if row["function"] == "leaves" and row["check"] == "graph"]
    assert (row["argument"], row["backend"], row["outcome"]) == (0, "numpy", "failed")
    markdown = (tmp_path / "found.md").read_text(encoding="utf-8")
    assert "| **differentiable** | 3 of 7 |" in markdown
    assert "| `branches` | known vmap [" in markdown


class Page(html.parser.HTMLParser):
    """A parser of a page that records open elements, cells, and files to load."""

    VOID = ("meta", "input", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.loads += [value for name, value in attrs if name in ("src", "href")]
        if tag == "td":
            self.cells.append(dict(attrs)["class"])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_by_itself_and_shows_names_as_they_are(alone: tuple[pytest.LineMatcher, Path]) -> None:
    text = (alone[1] / "found.html").read_text(encoding="utf-8")
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.loads == []
    assert page.cells == ["failed", "failed", "known", "failed", "passed", "passed", "passed"]
    assert "<code>&lt;b&gt;&amp;</code>" in text


def test_a_run_without_marked_tests_says_nothing(tmp_path: Path) -> None:
    said = run(tmp_path, {"plain": "\ndef test_plain():\n    assert True\n"})
    said.fnmatch_lines(["*1 passed*"])
    said.no_fnmatch_line("*differentiab*")


@pytest.mark.slow
def test_a_run_can_be_kept_to_some_backends(tmp_path: Path) -> None:
    said = run(tmp_path, {"library": MARKED}, "--differentiability-backends=numpy,numpy+readonly", "-k", "smooth", backends="")
    said.fnmatch_lines(["*numpy*numpy+readonly", "smooth*✓*✓"])


NAMED = """
@parametrize_with_checks([
    (smooth, [X, Y]), case(leaves, X, name="all", backends="all"), case(leaves, X, name="own", backends=["numpy+readonly"]),
], checks=["runs"])
def test_table(check):
    check()

@parametrize_with_checks([(smooth, [X, Y])], backends=["numpy+readonly"], checks=["values"])
def test_named(check):
    check()
"""


@pytest.mark.slow
@pytest.mark.parametrize("processes", [(), ("-n2",)])
def test_tables_without_backends_are_kept_to_some(tmp_path: Path, processes: tuple[str, ...]) -> None:
    """Their tests, and so their ids, depend on the option and not on what is installed; explicit backends remain."""
    said = run(tmp_path, {"library": NAMED}, "--differentiability-backends=numpy", "-v", *processes, backends="")
    found = {line.partition("[")[2].partition("]")[0] for line in said.lines if "PASSED" in line and "test_library.py" in line}
    if processes:  # the name of the process comes first
        found = {line.rpartition("[")[2].rpartition("]")[0] for line in said.lines if "PASSED test_library.py" in line}
    assert found == {"smooth-numpy-runs", "all-numpy-runs", "own-numpy+readonly-runs", "smooth-numpy+readonly-values"}
    said.fnmatch_lines(["*= 4 passed in *"])


#: Tests that are written wrongly, and the messages about them.
WRONG = {
    "empty": (
        "@pytest.mark.differentiable(argnums=0)\ndef test_x():\n    pass\n",
        "has no arguments and the test does not use the fixture",
    ),
    "many": ("@pytest.mark.differentiable(X, Y)\ndef test_x(x):\n    return x\n", "has 2 arguments, but the test takes 1"),
    "option": ("@pytest.mark.differentiable(X, argnum=0)\ndef test_x(x):\n    return x\n", "unexpected keyword argument 'argnum'"),
    "row": ("@parametrize_with_checks([smooth])\ndef test_x(check):\n    check()\n", "a row must be `case(function, ?args, ...)`"),
    "case": ("@parametrize_with_checks([case(smooth, X, argnum=0)])\ndef test_x(check):\n    check()\n", "there is no option 'argnum'"),
    "checks": ("@parametrize_with_checks([], checks=['grad'])\ndef test_x(check):\n    check()\n", "`checks` has no check 'grad'"),
}


def test_what_is_written_wrongly_is_said(tmp_path: Path) -> None:
    said = run(tmp_path, {name: "\n" + tests for name, (tests, _) in WRONG.items()}, "--continue-on-collection-errors")
    said.fnmatch_lines_random([f"*{words}*" for _, words in WRONG.values()])
    said.fnmatch_lines(["*1 failed, 5 errors*"])


def test_the_plugin_loads_nothing_of_the_library() -> None:
    code = "import sys, xpgrad_pytest; print([m for m in sys.modules if m == 'xpgrad' or m.startswith('xpgrad.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "[]\n"


def test_the_example_does_what_it_says() -> None:
    example = Path(__file__).resolve().parents[2] / "examples" / "library_checks"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xpgrad_pytest", "-p", "no:cacheprovider", str(example)]
    environment = {**os.environ, "XPGRAD_BACKENDS": "numpy"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=example)
    assert done.returncode == 0, done.stdout
    assert "25 passed, 1 skipped, 3 xfailed" in done.stdout
    assert (
        "nearest        ✓ 0\nsmooth_l1      ✓\nsoftmax        ✓\nspread         known gradient, forward, vmap\nweighted_mean  ✓\n"
        in done.stdout
    )
