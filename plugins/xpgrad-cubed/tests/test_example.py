"""The example runs within its allowed memory, and prints what it measured; the README's programs run unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def run(*command: str) -> str:
    """Run Python with warnings as errors, and return what it prints."""
    done = subprocess.run([sys.executable, "-W", "error", *command], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_larger_than_memory(tmp_path: Path) -> None:
    small = ["--rows", "40000", "--columns", "32", "--chunk", "2000", "--allowed", "4MB", "--work-dir", str(tmp_path)]  # 10 MB of data
    text = run(str(ROOT / "examples" / "larger_than_memory.py"), *small)
    losses = [float(n) for n in re.findall(r"loss ([\d.]+)", text)]
    assert len(losses) == 2
    assert losses[1] < 0.3 * losses[0]
    projected = [float(n) for n in re.findall(r"([\d.]+) MB for the largest task", text)]
    assert all(n <= 4.0 for n in projected)
    found = re.search(r"peak memory (\d+) MB, (\d+) MB more", text)
    assert found is not None
    assert int(found[2]) < 100  # NB: it contains what cubed and zarr import when they first compute


def test_too_little_memory_is_an_error() -> None:
    small = ["--rows", "40000", "--columns", "32", "--chunk", "20000", "--allowed", "4MB"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "larger_than_memory.py"), *small], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert "memory" in done.stderr.splitlines()[-1].lower()


def test_readme() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        run("-c", block)
