"""Law: without a GPU the CuPy backend says what is missing, and the Python code of its table is right on a stand-in made of NumPy.

On a GPU the other tests run on it: ``XPGRAD_TEST_DEVICES=cupy:0 python -m pytest --all tests``; see docs/gpu.md.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import xpgrad as xp
from support import search_path

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    *(f"rules/test_{name}" for name in ("elementwise", "shapes", "statistics", "float16", "linalg", "fft")),
    "tape/test_tensor",
    *(f"transforms/test_{name}" for name in ("vmap", "forward_mode", "forward_nesting", "forward_tape")),
)


def stand_in(command: list[str]) -> Any:
    environment = {**os.environ, "PYTHONPATH": search_path(), "XPGRAD_TEST_DEVICES": "cupy:0"}
    environment["XPGRAD_TEST_SHARE"] = "4"  # the laws of those modules repeat themselves on one more backend
    return subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_without_a_gpu_the_reason_is_given() -> None:
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    if cupy.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(xp.BackendLoadError, match="no CUDA device"):
        xp.zeros(1, device="cupy")


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.partition("/test_")[2])
def test_the_rules_on_a_stand_in(file: str) -> None:
    run = stand_in(["-m", "pytest", "-q", "-p", "support.fake_cupy", "-p", "no:xdist", "-p", "no:cacheprovider", f"tests/{file}.py"])
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert " passed" in run.stdout


STREAMS = """
from support import fake_cupy
import cupy, xpgrad as xp
side = cupy.cuda.Stream()
x = xp.tensor([1.0, 2.0], requires_grad=True, device="cupy")
with side:
    y = x * x
    y.register_hook(lambda g: seen.append(cupy.cuda.get_current_stream() is side))
seen = []
loss = xp.sum(y)
loss.backward()
print(seen, x.grad.tolist(), len(side.waits) > 0, len(fake_cupy._NULL.waits) > 0)
"""


def test_streams_on_a_stand_in() -> None:
    """The contracts of streams hold on the stand-in (STR-01, STR-05)."""
    run = stand_in(["-c", STREAMS])
    assert run.stdout == "[True] [2.0, 4.0] True True\n", run.stdout + run.stderr


def test_scatter_of_every_dtype_on_a_stand_in() -> None:
    """Dtypes without atomic addition in CuPy are added in another dtype, and wrap around as integers do."""
    code = """
import json, numpy as np
import support.fake_cupy
from xpgrad_cupy import _kernels
import cupy
for name in ("float16", "float32", "float64", "complex64", "complex128", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"):
    values = np.asarray([1, 2, 3, 100, 100, 100]).astype(name)
    out = _kernels.segment_sum(cupy.asarray(values), cupy.asarray([0, 2, 2, 1, 1, 1]), 4)
    expected = np.zeros(4, name)
    np.add.at(expected, [0, 2, 2, 1, 1, 1], values)
    print(name, out.dtype == expected.dtype and bool((out == expected).all()))
for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
    index = np.asarray([90, 5, 90, 250 if name == "uint8" else -3 if name[0] == "i" else 299]).astype(name)
    for key, shape in ((index, (300, 2)), ((index, slice(None)), (300, 2))):
        key = tuple(map(lambda p: cupy.asarray(p) if p is index else p, key)) if isinstance(key, tuple) else cupy.asarray(key)
        out = _kernels.scatter_add(cupy.asarray(np.ones((4, 2))), key, shape)
        expected = np.zeros(shape)
        np.add.at(expected, index.astype(np.int64), 1.0)
        print("key", name, bool((out == expected).all()))
print("last", _kernels.last_writer(cupy.asarray([3, 1, 3, 0]), 5).tolist())
"""
    run = stand_in(["-c", code])
    lines = run.stdout.splitlines()
    assert len(lines) == 29, run.stderr
    assert [line for line in lines[:-1] if not line.endswith("True")] == []
    assert lines[-1] == "last [4, 2, 0, 3, 0]"
