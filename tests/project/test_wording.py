"""Law: docstrings open with a verb or a noun, and English negates the verb: 'is not a Tensor', never 'is no' and a noun."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
OPENINGS = re.compile(r"(What|Whether)\b")
#: Word for word from another language, by what to write instead.
FOREIGN = {
    "is not a Tensor": re.compile(r"\b(is|are|was|were) no (Tensors?|tensors?|leaf|leaves|view|views|array|arrays|node|argument)\b"),
    "a metaphor's meaning": re.compile(r"\bthe house\b|\bfront doors?\b"),
}
SOURCES = sorted(path for folder in ("core", "backends", "conformance") for path in (ROOT / folder).rglob("*.py"))
TEXTS = [*SOURCES, *sorted((ROOT / "conformance").rglob("*.toml")), *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md"))]


def docstrings(path: Path) -> list[tuple[str, str]]:
    """The docstrings of a file, each with the name of its owner."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]
    return [(getattr(node, "name", "the module"), text) for node in nodes if (text := ast.get_docstring(node))]


@pytest.mark.parametrize("folder", ["core", "backends", "conformance"])
def test_docstrings_open_with_a_verb_or_a_noun(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}: {text.splitlines()[0]}"
        for path in SOURCES
        if path.is_relative_to(ROOT / folder)
        for name, text in docstrings(path)
        if OPENINGS.match(text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("instead", FOREIGN)
def test_the_english_is_english(instead: str) -> None:
    texts = {path: path.read_text(encoding="utf-8").splitlines() for path in TEXTS}
    found = [
        f"{p.relative_to(ROOT)}:{n}: {line}"
        for p, lines in texts.items()
        for n, line in enumerate(lines, 1)
        if FOREIGN[instead].search(line)
    ]
    assert not found, f"write {instead!r}:\n" + "\n".join(found)
