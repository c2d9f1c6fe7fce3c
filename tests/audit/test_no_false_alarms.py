"""Law: an audit does not object to correct functions: the package's own examples, and functions of other libraries."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp

ROOT = Path(__file__).resolve().parents[2]


def _module(path: str) -> Any:
    name = "xpgrad_audited_" + Path(path).stem
    spec = importlib.util.spec_from_file_location(name, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up the types of their fields there
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["digits", "gaussian_process", "stencil"])
def test_the_exported_examples(name: str) -> None:
    function, args = _module("examples/exported/functions.py").examples()[name]
    report = xp.audit(function, *args)
    assert not report.kinds("warning"), report


def test_the_digits_example() -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    digits = _module("examples/digits.py")
    rng = np.random.default_rng(0)
    training, _ = digits.load_digits(None, rng)
    network = digits.make_network((64, 12, 10), None, rng)
    batch = next(iter(digits.batches(training, 20, rng)))

    def loss(parameters: list[Any]) -> Any:
        layers = [digits.Layer(*parameters[i : i + 2]) for i in range(0, len(parameters), 2)]
        return digits.cross_entropy(digits.logits(layers, batch.images), batch.labels)

    report = xp.audit(loss, [p for layer in network for p in (layer.weights, layer.bias)])
    assert not report.kinds("warning"), report


@pytest.mark.parametrize("value", np.linspace(-1.5, 1.5, 25))
def test_single_precision_between_double_precision(value: float) -> None:
    report = xp.audit(lambda x: xp.astype(xp.sin(xp.astype(x * x, xp.float32)), xp.float64) * x, np.asarray(value))
    assert not report.kinds("warning"), report


@pytest.mark.slow
def test_the_solutions_example(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    solutions = _module("examples/solutions.py")
    seen = []

    def audited(name: str, f: Any, at: Any) -> bool:
        seen.append((name, xp.audit(f, at, checks=("paths", "nonfinite", "kinks"))))
        return True

    monkeypatch.setattr(solutions, "compare_derivatives", audited)
    solutions.main([])
    assert len(seen) == 3
    for name, report in seen:
        assert not report.kinds("warning"), f"{name}: {report}"


@pytest.mark.slow
def test_functions_of_other_libraries() -> None:
    for library in ("scipy", "sklearn", "array_api_extra"):
        pytest.importorskip(library)
    path = os.pathsep.join([str(ROOT / "tests"), *sys.path])
    command, environment = [sys.executable, "-m", "audit.libraries"], {**os.environ, "PYTHONPATH": path}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(found) >= 30
    assert not [(name, text) for name, kinds, text in found if kinds]
