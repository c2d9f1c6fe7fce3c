"""Law: the rules' tests are strong. Each fault planted here, in a copy of the sources, is found by the tests that are named next to it.

The contracts have planted faults of their own, in the conformance suite.

A fault is one replacement of text in one file. A test run that finds nothing, or that cannot even collect, does not count; a
replacement whose text no longer exists fails, so that the table follows the code.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]


class Fault(NamedTuple):
    """A fault: ``old`` becomes ``new`` in ``file``; ``killer`` are the arguments with which pytest finds it."""

    name: str
    file: str
    old: str
    new: str
    killer: str


ENGINE, NODECLASS, ELEMENTWISE = "core/xpgrad/_tape/engine.py", "core/xpgrad/_operations/backward.py", "core/xpgrad/rules/elementwise.py"
KERNELS = "backends/xpgrad_numpy/_kernels.py"

FAULTS = [
    Fault("product rule takes the wrong factor", ELEMENTWISE, '@elementwise("g * x2", "g * x1",', '@elementwise("g * x1", "g * x1",', "tests/rules/test_elementwise.py -k multiply"),
    Fault("sine's derivative loses its sign's partner", ELEMENTWISE, "lambda g, x, xp: -g * xp.sin(x)", "lambda g, x, xp: g * xp.sin(x)",
          "tests/rules/test_elementwise.py -k cos"),
    Fault("a passed-on gradient counts as owned", ELEMENTWISE, 'op="+", fresh=False', 'op="+", fresh=True',
          "tests/rules/test_elementwise.py tests/rules/test_shapes.py -k fresh"),
    Fault("saved values are never freed", ENGINE, "node.step(g, empty, retain)", "node.step(g, empty, True)", "tests/memory/test_memory.py"),
    Fault("complex gradients are not conjugated", NODECLASS, 't("_complex = _is_complex(g)")', 't("_complex = False")',
          "tests/rules/test_elementwise.py -k complex"),
    Fault("duplicates of an index are lost", KERNELS, "np.add.at(out.reshape(-1), key.reshape(-1), values.reshape(-1))",
          "out.reshape(-1)[key.reshape(-1)] = values.reshape(-1)", "tests/rules/test_shapes.py"),
    Fault("the loser of a double write gets the gradient", "core/xpgrad/rules/writing.py", "    return xp.where(xp.wins(out, key, tuple(x.shape)), out, xp.zeros_like(out))",
          "    return out", "tests/tape/test_tensor.py"),
    Fault("a cast's gradient keeps the wrong dtype", "core/xpgrad/rules/creation.py", "@rule(lambda g, x_dtype, xp: xp.cast(g, x_dtype), conj=False, fresh=True, node=\"ToCopyBackward0\")",
          "@rule(lambda g: g, conj=False, node=\"ToCopyBackward0\")", "tests/rules/test_shapes.py"),
    Fault("a reduction's gradient is spread wrongly", "core/xpgrad/rules/statistical.py", "xp.expand_reduced(g / count, x_shape, axes, keepdims)", "xp.expand_reduced(g, x_shape, axes, keepdims)",
          "tests/rules/test_statistics.py"),
]  # fmt: skip


@pytest.mark.timeout(300)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_found(fault: Fault, tmp_path: Path) -> None:
    for folder in ("core", "backends"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path / fault.file
    text = target.read_text()
    assert text.count(fault.old) >= 1, f"the text of this fault is no longer in {fault.file}: update the table"
    target.write_text(text.replace(fault.old, fault.new))
    files, _, expression = fault.killer.partition(" -k ")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *files.split()]
    path = os.pathsep.join(str(tmp_path / folder) for folder in ("core", "backends"))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    run = subprocess.run(
        command + (["-k", expression] if expression else []), cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1, f"not found (exit {run.returncode}):\n{run.stdout[-3000:]}{run.stderr[-1000:]}"
    assert re.search(r"\b[1-9]\d* failed", run.stdout), run.stdout[-3000:]
