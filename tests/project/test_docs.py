"""Law: the code in the documentation runs and does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def blocks(file: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(encoding="utf-8"), re.DOTALL)


def test_the_worked_backend_is_whole_and_short() -> None:
    (code,) = blocks("docs/writing-a-backend.md")
    assert len([line for line in code.splitlines() if line.strip()]) < 40
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    # d/dx of x0 * (sin x0 + sin x1 + sin x2)
    assert run.stdout == "tensor([2.4322, -0.4161, -0.99], device='mylib')\n" or run.stdout.startswith("tensor([ 2.4322, -0.4161, -0.99")


def test_the_examples_of_the_readme_run() -> None:
    code = "\n".join(blocks("README.md"))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 0, run.stderr
    for block in blocks("README.md"):
        for line in block.splitlines():
            match = re.search(r"print\(.*\)  # (.+)$", line)
            if match:
                assert match[1] in run.stdout


@pytest.mark.parametrize("name", ["simstream", "strict", "torch", "dask"])
def test_every_plugin_says_what_it_is(name: str) -> None:
    text = (ROOT / "plugins" / f"xpgrad-{name}" / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# xpgrad-{name}\n")
    assert f"pip install xpgrad-{name}" in text
