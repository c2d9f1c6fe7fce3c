"""The benchmarks compare like with like: every library, and the handwritten code, computes the same loss and gradients on every workload.

No test here measures time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


def _package() -> None:
    """Make `benchmarks` importable, which is not part of the distribution."""
    spec = importlib.util.spec_from_file_location(
        "benchmarks", ROOT / "benchmarks" / "__init__.py", submodule_search_locations=[str(ROOT / "benchmarks")]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmarks"] = module
    spec.loader.exec_module(module)


_package()

from benchmarks import calls, cli, derivatives, inplace, measure  # noqa: E402
from benchmarks.contestants import CONTESTANTS, Contestant, installed  # noqa: E402
from benchmarks.workloads import WORKLOADS  # noqa: E402


@pytest.fixture(scope="module")
def contestants() -> Iterator[dict[str, Contestant]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the libraries' own imports may warn
        made = {key: c() for key, c in installed().items()}
    yield made
    if "torch" in made:
        import torch

        torch.set_num_threads(2)


_PAIRS = [(n, k) for n in WORKLOADS for k in CONTESTANTS if k != "numpy" and (k != "plain" or WORKLOADS[n].plain is not None)]


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(("name", "key"), _PAIRS)
def test_everybody_computes_the_same(name: str, key: str, contestants: dict[str, Contestant]) -> None:
    if key not in contestants:
        pytest.skip(f"{key} is not installed")
    workload = WORKLOADS[name]
    if key in workload.without:
        pytest.skip(f"{key} sits this out: {workload.without[key]}")
    pair = {"numpy": contestants["numpy"], key: contestants[key]}
    steps, missing = measure.steps_of(workload, pair, workload.sizes[2])
    assert not missing
    with warnings.catch_warnings():
        if key not in ("numpy", "xpgrad"):
            warnings.simplefilter("ignore")
        measure.agree(steps, pair, tolerance=workload.tolerance)


@pytest.mark.parametrize("name", WORKLOADS)
def test_the_code_by_hand_is_right(name: str) -> None:
    """The handwritten gradients agree with differences of the loss, which only use the forward half of that code."""
    workload = WORKLOADS[name]
    leaves, constants = workload.data(np.random.default_rng(1), workload.sizes[2])
    leaves = tuple(x.astype(np.float64) for x in leaves)  # differences need double precision
    if workload.kind == "hvp":
        (x,), (v,) = leaves, constants

        def gradient(x: Any) -> Any:
            step = 1e-5
            m = np  # the loss only uses functions that NumPy has
            return np.array([(workload.loss(m, x + e) - workload.loss(m, x - e)) / (2 * step) for e in np.eye(x.size) * step])

        expected = (gradient(x + 1e-4 * v) - gradient(x - 1e-4 * v)) / 2e-4
        np.testing.assert_allclose(workload.hand(leaves, constants)()[0], expected, rtol=1e-3, atol=1e-2)
        return
    _, *grads = workload.hand(leaves, constants)()
    rng = np.random.default_rng(2)
    for k, grad in enumerate(grads):
        direction = rng.normal(size=leaves[k].shape)

        def loss(t: float, k: int = k, direction: Any = direction) -> float:
            moved = tuple(x + t * direction if i == k else x for i, x in enumerate(leaves))
            return float(workload.hand(moved, constants)()[0])

        slope = (loss(1e-6) - loss(-1e-6)) / 2e-6
        np.testing.assert_allclose((grad * direction).sum(), slope, rtol=1e-5, atol=1e-6)


def test_disagreement_is_found(contestants: dict[str, Contestant]) -> None:
    workload = WORKLOADS["chain"]
    steps, _ = measure.steps_of(workload, {k: contestants[k] for k in ("numpy", "xpgrad")}, 3)
    right = steps["xpgrad"]

    def wrong() -> tuple[Any, ...]:
        value, g, *rest = right()
        return value, g * (1 + 1e-6), *rest

    with pytest.raises(AssertionError, match="xpgrad, result 1, step 1"):
        measure.agree({"numpy": steps["numpy"], "xpgrad": wrong}, contestants)


@pytest.mark.slow
def test_nothing_is_left_after_the_loss_has_gone() -> None:
    found = measure.count_leftovers(size=1000)
    assert found["nodes"] == found["tensors"] == found["arrays"] == 0
    assert found["growth"] == 0


def test_the_elementwise_graph_needs_few_arrays(contestants: dict[str, Contestant]) -> None:
    workload = WORKLOADS["elementwise"]
    size = 20_000
    for _ in range(2):  # the first call generates code
        steps, _ = measure.steps_of(workload, {"xpgrad": contestants["xpgrad"]}, size)
        arrays = measure.peak_arrays(steps["xpgrad"], size * 8)
    assert 3 < arrays <= workload.memory


@pytest.mark.slow
def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The tables show what was measured, and never the machine's name."""
    import platform

    file = tmp_path / "times.json"
    options = ["--only", "chain", "--only", "elementwise", "--against", "", "--quick", "--repeat", "1", "--seconds", "0.1"]
    assert cli.main([*options, "--json", str(file)]) == 0
    out = capsys.readouterr().out
    assert "small-op chain" in out
    assert "peak memory" in out
    written = json.loads(file.read_text(encoding="utf-8"))
    assert set(written["workloads"]) == {"chain", "elementwise"}
    assert set(written["workloads"]["chain"]["seconds"]) == {"numpy", "xpgrad"}
    assert cli.main([*options, "--markdown"]) == 0
    table = capsys.readouterr().out
    assert table.startswith("| forward + backward |")
    rows = [line for line in table.splitlines() if line.startswith("|")]
    assert len({row.count("|") for row in rows}) == 1
    if len(platform.node()) > 3:
        for text in (out, table, file.read_text(encoding="utf-8")):
            assert platform.node() not in text


def test_the_sources_without_in_place_writing_still_differentiate(tmp_path: Path) -> None:
    """The variant that `benchmarks.inplace` derives from the current sources still differentiates."""
    inplace.cut_sources(tmp_path)
    code = "import xpgrad as xp; x = xp.tensor([2.0, 3.0], requires_grad=True); (x * x[:1]).sum().backward(); print(x.grad.tolist())"
    path = os.pathsep.join(str(tmp_path / folder) for folder in ("core", "backends"))
    run = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[7.0, 2.0]"


def test_derivatives_agree() -> None:
    """xpgrad's derivatives, and PyTorch's if it is installed, agree with the handwritten closed forms."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch's own, about functions that its transforms use
        found = derivatives.contestants()
        for task in derivatives.TITLES:
            expected = np.asarray(found["numpy"][task]())
            assert np.any(expected != 0)
            for name, steps in found.items():
                np.testing.assert_allclose(np.asarray(steps[task]()), expected, rtol=1e-8, atol=1e-8, err_msg=f"{name}: {task}")


@pytest.mark.parametrize("name", calls.OPERATIONS)
def test_counts_of_calls_repeat(name: str) -> None:
    assert calls.calls_of(name) == calls.calls_of(name)


def test_an_operation_on_two_tensors_is_one_generated_function() -> None:
    ((file, function),) = calls.calls_of("x * y")
    assert (file.split()[:2], function) == (["<xpgrad", "multiply"], "_op")
