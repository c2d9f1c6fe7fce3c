"""Law: exported modules run without xpgrad, test themselves, and their tests notice a wrong gradient."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad.__main__ import main

EXPORTED = Path(__file__).resolve().parents[2] / "examples" / "exported"
rng = np.random.default_rng(0)
CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "mean of squares": (lambda w, x: xp.mean((x @ w) ** 2), (rng.normal(size=3), rng.normal(size=(5, 3)))),
    "float32": (lambda x: xp.sum(xp.exp(x) * x), (rng.normal(size=(3, 4)).astype("f4"),)),
    "complex": (lambda z: xp.sum(xp.abs(z * z + 1) ** 2), (rng.normal(size=4) + 1j * rng.normal(size=4),)),
    "rows": (lambda x, i: xp.sum(xp.take(x, i, axis=0) ** 3), (rng.normal(size=(5, 2)), np.array([0, 3, 3, -1]))),
    "nothing to do with one": (lambda x, y: xp.sum(x), (rng.normal(size=3), rng.normal(size=2))),
    "a dict and a number": (lambda p, k: xp.sum(p["a"] * p["b"]) * k, ({"a": rng.normal(size=3), "b": rng.normal(size=3)}, 2.5)),
    "a small constant": (lambda x: xp.sum(x * xp.asarray([1.0, -0.0, np.inf, 2.0])[:2]), (rng.normal(size=2),)),
    "an empty constant": (lambda x: xp.sum(x) + xp.sum(x[:0] * np.ones((0, 2))), (rng.normal(size=(4, 2)),)),
    "an inverse": (lambda x: xp.sum(xp.linalg.inv(x)), (rng.normal(size=(3, 3)) + 5 * np.eye(3),)),
    "blocks": (lambda x, y: xp.sum(xp.sin(x * y) / (1 + x * x)), (rng.normal(size=40000), rng.normal(size=40000))),
    "a matrix in blocks": (lambda x, b: xp.sum(xp.log(xp.sum(xp.exp(x * b), axis=1))), (rng.normal(size=(2000, 30)), rng.normal(size=30))),
    "writes": (lambda x: xp.sum(_write_slice(x) ** 2), (rng.normal(size=6),)),
    "no axes": (lambda x: x * x, (np.asarray(0.5),)),
    "several results": (lambda x: (xp.sin(x), x + 1), (rng.normal(size=3),)),
    "a loop": (
        lambda w, x, u, i: _loop(w, x, u, i),
        ([rng.normal(size=(4, 3)) / 3 for _ in range(3)], rng.normal(size=(9, 3, 4)), rng.normal(size=60), rng.integers(-3, 3, (9, 3))),
    ),
}


def _write_slice(x: Any) -> Any:
    y = x * 2
    y[1:3] = x[3:5] * x[0]
    return y


def _loop(layers: Any, x: Any, u: Any, indices: Any) -> Any:
    h = x[0] @ layers[0]
    for k in range(9):
        h = xp.tanh(h + x[k] @ layers[k // 3] * (1.0 + k / 9))
        h = xp.take(h, indices[k], axis=0) - xp.asarray([[k / 3.0], [1.0 / (1 + k)], [2.0]])
        u = u[1:-1] + 0.2 * (u[2:] - u[:-2])
    return xp.sum(h * h) + xp.sum(u * u)


def run(text: str, tmp_path: Path) -> Any:
    """Run an exported module in a separate process in which xpgrad cannot be imported."""
    path = tmp_path / "gradients.py"
    path.write_text(text, encoding="utf-8")
    code = f"import sys, runpy; sys.modules['xpgrad'] = None; runpy.run_path({str(path)!r}, run_name='__main__')"
    return subprocess.run([sys.executable, "-I", "-W", "error", "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.slow(one_in=4)
@pytest.mark.parametrize("name", CASES)
def test_modules_test_themselves(name: str, tmp_path: Path) -> None:
    function, args = CASES[name]
    text = xp.export(function, *args, path=None)
    done = run(text, tmp_path)
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    assert "ok" in done.stdout
    assert "FAILED" not in done.stdout
    assert not any(len(line) > 160 for line in text.splitlines())


def test_a_module_computes_what_the_function_does(tmp_path: Path) -> None:
    function, args = CASES["writes"]
    path = tmp_path / "mine.py"
    assert xp.export(function, *args, path=path) == path.read_text(encoding="utf-8")
    space: dict[str, Any] = {}
    exec(path.read_text(encoding="utf-8"), space)  # noqa: S102 (what was just written)
    x = xp.tensor(args[0], requires_grad=True)
    y = function(x)
    y.backward()
    value, gradient = space["function_and_gradients"](*args)
    np.testing.assert_allclose(value, y.item(), rtol=1e-14)
    np.testing.assert_allclose(gradient, x.grad.numpy(), rtol=1e-14)


@pytest.mark.parametrize("shape", [(2, 3), (0, 3)])
def test_examples_have_the_dtypes_of_the_arguments(shape: tuple[int, ...]) -> None:
    args = [np.ones(shape, dtype) for dtype in ("float64", "float32", "complex128", "int32", "bool")]
    text = xp.export(lambda x, y, z, i, m: xp.sum(xp.where(m, x * y, i)) + xp.abs(xp.sum(z)), *args, path=None)
    space: dict[str, Any] = {}
    exec(text, space)  # noqa: S102 (what was just made)
    assert [(x.dtype, x.shape) for x in space["_example"](0)] == [(x.dtype, shape) for x in args]


def test_only_tensors_that_require_grad_have_gradients() -> None:
    w, x = xp.tensor([1.0, 2.0], requires_grad=True), np.ones((3, 2))
    text = xp.export(lambda w, x: xp.sum(x @ w), w, x, path=None)
    assert "grad_w" in text
    assert "grad_x" not in text


def test_a_wrong_gradient_is_noticed(tmp_path: Path) -> None:
    function, args = CASES["mean of squares"]
    text = xp.export(function, *args, path=None)
    wrong = text.replace("grad_w = ", "grad_w = 1.001 * ")
    assert wrong != text
    done = run(wrong, tmp_path)
    assert done.returncode == 1
    assert "FAILED" in done.stdout


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (lambda x: xp.sum(x * xp.asarray(np.arange(100.0) ** 2)), (np.ones(100),), r"shape \(100,\).*pass it as an argument"),
        (lambda x: xp.sum(xp.linalg.svdvals(x) * 0 + xp.linalg.pinv(x)[0, 0]), (np.eye(3),), "no text in NumPy alone is known"),
    ],
)
def test_what_has_no_text_is_refused(function: Any, args: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        xp.export(function, *args, path=None)


def test_values_are_refused() -> None:
    with pytest.raises(xp.errors.CaptureError):
        xp.export(lambda x: x * 2 if x.sum() > 0 else x, np.ones(3), path=None)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    (tmp_path / "exported_by_a_test.py").write_text(
        "import xpgrad as xp\ndef loss(w, x, p=2):\n    return xp.mean(xp.abs(x @ w) ** p)\n"
        "def given():\n    return xp.ones(3), xp.ones((2, 3))\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for arguments in (["float64[3]", "float32[5,3]", "3"], ["--args", "exported_by_a_test:given"]):
        assert main(["export", "exported_by_a_test:loss", *arguments, "--output", "made.py"]) == 0
        text = Path("made.py").read_text(encoding="utf-8")
        assert "xpgrad export exported_by_a_test:loss" in text
        assert run(text, tmp_path).returncode == 0
    for wrong in (["nowhere"], ["exported_by_a_test:loss", "float65[3]"], ["exported_by_a_test:nothing"], ["no_such_module:f"]):
        assert main(["export", *wrong]) == 1
        assert "xpgrad export: " in capsys.readouterr().err


@pytest.mark.parametrize("name", ["digits", "gaussian_process", "stencil"])
def test_the_examples_are_what_is_exported(name: str, tmp_path: Path) -> None:
    text = (EXPORTED / f"{name}_gradients.py").read_text(encoding="utf-8")
    space: dict[str, Any] = {"__name__": "__main__ of another"}
    file = EXPORTED / "functions.py"
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)  # noqa: S102 (an example)
    function, args = space["examples"]()[name]
    assert xp.export(function, *args, path=None, command="python functions.py") == text, "run examples/exported/functions.py again"
    done = run(text, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", [3, 2.5, ["a"], object()])
def test_a_path_is_a_path(path: Any) -> None:
    with pytest.raises(TypeError, match="export needs a path or None as `path`"):
        xp.export(lambda x: x * x, np.ones(2), path=path)
