"""Law: SciPy, scikit-learn and array-api-extra do with Tensors of a non-default device what the page says.

``PYTHONPATH=tests python tests/project/test_consumers.py numpy strict torch jax`` writes docs/consumers.md, with a column for each device,
and ``... --newer numpy strict jax`` its section on functions of a newer SciPy, where that is installed.
The tests check a sample of its rows, drawn with ``XPGRAD_TEST_SEED``; with ``XPGRAD_TEST_CONSUMERS=1`` they check all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from support import DEVICES
from support.consumers import NEWER
from support.consumers.page import columns, mark, newer_columns, page, with_newer

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "consumers.md"
#: The libraries, as the page and the package index call them.
LIBRARIES = {"scipy": "SciPy", "sklearn": "scikit-learn", "array_api_extra": "array-api-extra"}
#: One row in this many is checked; fewer on JAX, which compiles each operation for each shape.
SHARES = {"numpy": 4, "strict": 8, "torch": 4, "jax": 24}


def ask(*words: str) -> list[Any]:
    """Run ``python -m support.consumers`` in a separate process and return the JSON values that it prints."""
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "DASK_SCHEDULER": "synchronous", "XPGRAD_DEVICE": "", "SCIPY_ARRAY_API": "1"}
    command = [sys.executable, "-W", "ignore", "-m", "support.consumers", *words]
    done = subprocess.run(command, cwd=ROOT / "tests", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def sample(names: list[str], device: str) -> list[str]:
    """Return the names of the rows to check on a device; another seed gives other rows."""
    share = int(os.environ.get("XPGRAD_TEST_CONSUMERS", SHARES.get(device, 8)))
    seed = os.environ.get("XPGRAD_TEST_SEED", "")
    return [name for name in names if zlib.crc32(f"{seed} {device} {name}".encode()) % share == 0]


def is_newer() -> bool:
    """Whether the table of functions of a newer SciPy has rows here."""
    return tuple(map(int, version("scipy").split(".")[:2])) >= tuple(map(int, NEWER.split()[1].split(".")))


def needs_the_libraries() -> None:
    for library in LIBRARIES:
        pytest.importorskip(library)


@pytest.mark.timeout(120)
def test_every_function_that_supports_the_standard_is_a_row_or_left_out_with_a_reason() -> None:
    needs_the_libraries()
    ((supported, rows, left_out),) = ask("--coverage")
    newer = ask("--coverage", NEWER)[0][1] if is_newer() else []
    called = {name.partition("(")[0] for name in [*rows, *newer]}
    assert len(supported) > 500
    text = PAGE.read_text(encoding="utf-8")
    # The page lists the functions of the versions that it names; newer ones support the standard in further functions.
    listed = [module for module, name in LIBRARIES.items() if f"{name} {version(name)}" in text]
    assert [name for name in set(supported) - called - set(left_out) if name.partition(".")[0] in listed] == []
    assert sorted(called & set(left_out)) == []
    assert all(left_out.values())
    written = columns(text)
    assert {device: list(column) for device, column in written.items()} == dict.fromkeys(("numpy", "strict", "torch", "jax"), rows)
    assert not newer or {device: list(column) for device, column in newer_columns(text).items()} == dict.fromkeys(
        ("numpy", "strict", "jax"), newer
    )
    assert [name for name in left_out if f"`{name}`" not in text] == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("device", [d for d in DEVICES if d in columns(PAGE.read_text(encoding="utf-8"))])
def test_the_page_says_what_libraries_do_with_tensors_of_a_device(device: str) -> None:
    needs_the_libraries()
    column = columns(PAGE.read_text(encoding="utf-8"))[device]
    names = sample(list(column), device)
    assert names
    found = {name: mark(rows)[0] for name, rows in ask(device, *names)}
    assert found == {name: column[name] for name in names}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("device", [d for d in DEVICES if d in newer_columns(PAGE.read_text(encoding="utf-8"))])
def test_the_page_says_what_a_newer_scipy_does(device: str) -> None:
    needs_the_libraries()
    column = newer_columns(PAGE.read_text(encoding="utf-8"))[device]
    if not is_newer():
        pytest.skip(f"needs {NEWER}")
    assert {name: mark(rows)[0] for name, rows in ask(device, NEWER)} == column


def test_another_seed_draws_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"row {k}" for k in range(400)]
    first = sample(names, "numpy")
    monkeypatch.setenv("XPGRAD_TEST_SEED", "another")
    assert 40 < len(sample(names, "numpy")) < 200
    assert sample(names, "numpy") != first
    monkeypatch.setenv("XPGRAD_TEST_CONSUMERS", "1")
    assert sample(names, "jax") == names


if __name__ == "__main__":
    ((_, _, left),) = ask("--coverage")
    if sys.argv[1] == "--newer":
        text = with_newer(PAGE.read_text(encoding="utf-8"), {device: dict(ask(device, NEWER)) for device in sys.argv[2:]})
    else:
        _, title, newer = PAGE.read_text(encoding="utf-8").partition("## Since ")
        text = "\n".join([page({device: dict(ask(device)) for device in sys.argv[1:]}, left), title + newer])
    PAGE.write_text(text, encoding="utf-8")
