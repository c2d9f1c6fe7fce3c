"""Law: what is known about an operation is on its row, or in the table of kernels, and nowhere else in a list of names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import xpgrad.scipy.linalg
import xpgrad.scipy.special  # noqa: F401 (its rows load late)
from xpgrad._rows.kernels import KERNELS
from xpgrad._rows.namespace import COMPOSITE, NONDIFFERENTIABLE, RULES
from xpgrad._rows.row import ROWS

ROOT = Path(__file__).parents[2]
MOST = 5

#: The tables that may contain names of operations all the same, and the reason.
EXCEPTIONS: dict[str, str] = {
    "_namespaces.py": "the creation functions, which know a default device; test_namespaces.py compares them with their signatures",
    "_numpy/missing.py": "NumPy's functions that no Tensor reaches, and why",
    "dialects/hips/_arrays.py": "NumPy's methods of arrays, which are its functions of the same names",
    "dialects/hips/numpy/_making.py": "NumPy's functions whose first argument is one array",
}


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


@pytest.mark.parametrize("file", files(), ids=lambda p: str(p.relative_to(ROOT / "core")))
def test_no_table_lists_operations_by_name(file: Path) -> None:
    known = operations()
    place = str(file.relative_to(ROOT / "core" / "xpgrad"))
    # `__all__` lists what a module exports.
    exported = {
        node.value.lineno
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    }
    found = {line: names & known for line, names in tables(file) if len(names & known) > MOST and line not in exported}
    if place in EXCEPTIONS:
        assert found, f"{place} has no table any more: it is no exception"
    else:
        assert not found
