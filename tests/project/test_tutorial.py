"""Law: the tutorial is true: its code runs, each `print` prints the comment next to it, and it draws the picture that it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def blocks() -> list[tuple[str, str]]:
    """Return each block of code with the library that it needs besides xpgrad."""
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    found = re.findall(r"^```python(?: needs=(\w+))?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(found) == text.count("```python")
    return found


def run(code: str, folder: Path) -> None:
    expected = []
    for line in code.splitlines():
        if re.match(r"\s*print\(", line):
            shown = re.search(r"\)  # (.+)$", line)
            assert shown, f"this line does not say what it prints: {line}"
            expected.append(shown[1])
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected


def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    run("\n".join(code for needs, code in blocks() if not needs), tmp_path)
    assert (tmp_path / "tutorial-graph.svg").read_text(encoding="utf-8") == (DOCS / "tutorial-graph.svg").read_text(encoding="utf-8"), (
        "copy the new picture to docs/"
    )


@pytest.mark.parametrize("library", ["jax", "torch", "scipy"])
def test_the_tutorial_on_other_libraries(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, reason="this part of the tutorial is about it")
    rule = next(code for _, code in blocks() if "def softplus" in code)
    (code,) = [code for needs, code in blocks() if needs == library]
    run(f"import xpgrad as xp\n{rule}\n{code}", tmp_path)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", (DOCS / "tutorial.md").read_text(encoding="utf-8")):
        assert (DOCS / target).exists(), target
