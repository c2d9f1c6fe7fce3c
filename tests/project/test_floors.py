"""Law: the core can be read from the ground floor up. `lint-imports` checks the layers; these tests check what it cannot see."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

CORE = Path(__file__).resolve().parents[2] / "core" / "xpgrad"


def _imports_in_functions() -> Iterator[tuple[str, int, str]]:
    for path in sorted(CORE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        if not re.search(r"^ +(from|import)\b", text, re.MULTILINE):
            continue  # parsing takes longer
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                for node in ast.walk(function):
                    if isinstance(node, (ast.Import, ast.ImportFrom)):
                        yield str(path.relative_to(CORE)), node.lineno, lines[node.lineno - 1]


def test_an_import_inside_of_a_function_says_why() -> None:
    found = sorted(set(_imports_in_functions()))
    assert [f"{file}:{number}: {line.strip()}" for file, number, line in found if "# loads late: " not in line] == []


#: Modules that are imported at first use and not by `import xpgrad`.
LATE = (
    "_info", "_numpy", "_tape.anomaly", "_tape.inspection", "_tape.packing", "_tensor.copying", "_tensor.inference", "_tensor.printing",
    "_transforms.batch.batch", "_transforms.batch.rules", "_transforms.forward", "autograd.function", "autograd.graph", "fft", "func",
    "hookspecs", "linalg", "programs.capture", "programs.captured", "programs.emission", "programs.exporting", "programs.recorder",
    "programs.simplify", "registry", "rules.factorisations", "rules.fourier", "rules.matrices", "utils",
)  # fmt: skip


def test_features_load_late() -> None:
    script = "import sys, xpgrad; print(*[m.removeprefix('xpgrad.') for m in sys.modules if m.startswith('xpgrad.')])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    loaded = done.stdout.split()
    assert "_tape.engine" in loaded  # otherwise the next line would check nothing
    assert [m for m in loaded if m in LATE] == []
    assert all(importlib.util.find_spec(f"xpgrad.{m}") is not None for m in LATE)  # no name is misspelt


def test_the_floors_hold() -> None:
    pytest.importorskip("importlinter", reason="the extra `dev` brings import-linter")
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command, "--no-cache"], cwd=CORE.parents[1], capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
