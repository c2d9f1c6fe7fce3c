"""Law: what is known about an operation is on its row, or in the table of kernels, and nowhere else in a list of names.

And what docstrings of a module have in common is written once.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import xpgrad.scipy.linalg
import xpgrad.scipy.special  # noqa: F401 (its rows load late)
from xpgrad._basics.docstrings import complete, shares
from xpgrad._rows.kernels import KERNELS
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, RULES
from xpgrad._rows.row import ROWS
from xpgrad_reference.sections import parts

ROOT = Path(__file__).parents[2]
MOST = 5

#: The tables that may contain names of operations all the same, and the reason.
EXCEPTIONS: dict[str, str] = {
    "_namespaces.py": "the creation functions, which know a default device; test_namespaces.py compares them with their signatures",
    "_numpy/missing.py": "NumPy's functions that no Tensor reaches, and why",
    "dialects/hips/_arrays.py": "NumPy's methods of arrays, which are its functions of the same names",
    "dialects/hips/numpy/_making.py": "NumPy's functions whose first argument is one array",
}

#: How often a module may contain an entry of one or two lines; a longer one only once.
MOST_ENTRIES = 4
#: The modules whose docstrings may repeat themselves all the same, and the reason.
WHOLE: dict[str, str] = {"backend.py": "the page that the author of a backend reads from top to bottom"}


def operations() -> set[str]:
    """Return the names of operations that are not also common argument names."""
    return {*ROWS, *KERNELS, *RULES, *NONDIFFERENTIABLE, *COMPOSITE} - {"copy", "all", "any"}


def tables(file: Path) -> Iterator[tuple[int, set[str]]]:
    """Yield the line of each display in a file, with the strings in it (as keys or elements).

    Dicts from names to code are left out: an interpreter uses them to find the code for an operation.
    """
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Dict):
            if all(isinstance(value, (ast.Name, ast.Lambda, ast.Attribute, ast.Call, ast.Dict)) for value in node.values):
                continue
            parts: list[ast.expr | None] = node.keys
        elif isinstance(node, (ast.Set, ast.Tuple, ast.List)):
            parts = list(node.elts)
        else:
            continue
        found = {p.value for p in parts if isinstance(p, ast.Constant) and isinstance(p.value, str)}
        if found:
            yield node.lineno, found


def files() -> list[Path]:
    return sorted(p for p in (ROOT / "core" / "xpgrad").rglob("*.py") if p.parent.name != "_rows")


def test_no_table_lists_operations_by_name() -> None:
    known = operations()
    found: dict[str, dict[int, set[str]]] = {}
    for file in files():
        # `__all__` lists what a module exports.
        exported = {
            node.value.lineno
            for node in ast.parse(file.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        }
        if here := {line: names & known for line, names in tables(file) if len(names & known) > MOST and line not in exported}:
            found[file.relative_to(ROOT / "core" / "xpgrad").as_posix()] = here
    assert {place: here for place, here in found.items() if place not in EXCEPTIONS} == {}
    assert set(EXCEPTIONS) <= set(found), "what has no table any more is no exception"


# -- docstrings --------------------------------------------------------------------------------------------------------------


def repeated_entries(source: str) -> dict[tuple[str, str], int]:
    """Return the entries of parameters, results and errors that the docstrings of a module repeat too often, and how often."""
    found: Counter[tuple[str, str]] = Counter()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.search(r"\n *---", node.value):
            sections = parts(inspect.cleandoc(node.value))
            for heading in ("Parameters", "Returns", "Raises"):
                found.update((heading, entry.strip()) for entry in re.split(r"\n(?=\S)", sections.get(heading, "")) if entry)
    return {key: times for key, times in found.items() if times > (1 if key[1].count("\n") > 1 else MOST_ENTRIES)}


def test_docstrings_share_entries() -> None:
    core = ROOT / "core" / "xpgrad"
    entries = {p.relative_to(core).as_posix(): repeated_entries(p.read_text(encoding="utf-8")) for p in core.rglob("*.py")}
    repeated = {place: found for place, found in entries.items() if found}
    assert {place: found for place, found in repeated.items() if place not in WHOLE} == {}  # `xpgrad._basics.docstrings.shares` shares them
    assert set(WHOLE) <= set(repeated), "what repeats nothing any more is no exception"


def test_repeated_entries_are_found() -> None:
    def function(entry: str, count: int) -> str:
        text = entry.replace("\n", "\n    ")
        return f'def f(x):\n    """Return `x`.\n\n    Parameters\n    ----------\n    {text}\n    """\n' * count

    short, long = "x : array\n    Any shape.", "x : array\n    Any shape,\n    and any dtype."
    assert repeated_entries(function(short, 4) + function(long, 1)) == {}
    assert repeated_entries(function(short, 5)) == {("Parameters", short): 5}
    assert repeated_entries(function(long, 2)) == {("Parameters", long): 2}


FAMILY = shares(
    parameters="""\
x, y : int
    Both.
z : int
    Last.
*rest : int
    More.
**options : int
    By name.
unknown : int
    No parameter of these functions.""",
    returns="int\n    The sum.",
    raises="IndexError\n    Of the family.\nTypeError\n    Of the family.",
)


def test_shares_completes_docstrings() -> None:
    """Entries are in the order of the signature, and TypeError is the first error."""

    @FAMILY
    def add(z: int, *rest: int, y: int, **options: int) -> None:
        """Add.

        Examples
        --------
        >>> add(1)
        1
        """

    assert (
        add.__doc__
        == """\
Add.

Parameters
----------
z : int
    Last.
*rest : int
    More.
x, y : int
    Both.
**options : int
    By name.

Returns
-------
int
    The sum.

Raises
------
TypeError
    Of the family.
IndexError
    Of the family.

Examples
--------
>>> add(1)
1"""
    )
    assert add.__name__ == "add"


def test_shares_keeps_what_a_docstring_says() -> None:
    @FAMILY
    def add(x: int, y: int, z: int) -> None:
        """Add.

        Parameters
        ----------
        y : int
            Own text.
        other : int
            It stays, although it is no parameter.

        Returns
        -------
        float
            Own result.

        Raises
        ------
        IndexError, KeyError
            Own error.

        Hints
        -----
        A section with another heading is last.
        """

    sections = parts(add.__doc__ or "")
    assert list(sections) == ["", "Parameters", "Returns", "Raises", "Hints"]
    assert sections["Parameters"] == (
        "x, y : int\n    Both.\ny : int\n    Own text.\nz : int\n    Last.\nother : int\n    It stays, although it is no parameter."
    )
    assert sections["Returns"] == "float\n    Own result."
    assert sections["Raises"] == "TypeError\n    Of the family.\nIndexError, KeyError\n    Own error."


def test_families_can_be_combined() -> None:
    @FAMILY
    @shares("x : float\n    Of a smaller family.", "ValueError\n    Of a smaller family.")
    def negate(x: int) -> None:
        pass

    sections = parts(negate.__doc__ or "")
    assert sections["Parameters"] == "x : float\n    Of a smaller family."
    assert sections["Raises"].split("\n")[::2] == ["TypeError", "IndexError", "ValueError"]


def test_complete_adds_missing_sections() -> None:
    doc = "Add.\n\n    Examples\n    --------\n    >>> 1\n    1\n    "
    assert complete(doc, (("Returns", "int"), ("Examples", ">>> 2"))) == ("Add.\n\nReturns\n-------\nint\n\nExamples\n--------\n>>> 1\n1")
    assert complete(None, (("Returns", "int"),)) == "Returns\n-------\nint"
