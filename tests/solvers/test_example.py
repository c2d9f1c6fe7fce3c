"""The example of solutions, run as a reader would run it: its gradients agree with differences."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("scipy")

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "solutions.py"


@pytest.mark.slow
def test_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("xpgrad_example_solutions", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main([]) == 0
    said = capsys.readouterr().out
    assert said.count("gradient") == 3
    assert "differ\n" not in said
    assert "rates: 0.9000, 0.4000, 0.7000" in said
