"""The example of sparse derivatives, run as a reader would run it: SciPy's solvers find the right solutions."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "sparse.py"


@pytest.mark.slow
def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("xpgrad_example_sparse", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main() == 0
    said = capsys.readouterr().out
    assert said.count(" products: ") == 4
    assert "<sparse_hessian: 46 x 46, 0 entries, 0 products>" in said
