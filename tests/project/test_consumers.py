"""Law: what SciPy, scikit-learn and array-api-extra do with Tensors of any device, the default one left alone, is what the page says.

``PYTHONPATH=tests python tests/project/test_consumers.py DEVICE...`` writes docs/consumers.md, a column for each device.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import DEVICES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "consumers.md"
MARKS = {"differentiates": "✓", "allowing writes": "✓ w", "runs": "runs", "no": "no"}


def outcomes(device: str, *names: str) -> dict[str, tuple[str, str]]:
    """What becomes of each call on a device, and why."""
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "DASK_SCHEDULER": "synchronous", "XPGRAD_DEVICE": ""}
    command = [sys.executable, "-W", "ignore", "-m", "support.consumers", device, *names]
    done = subprocess.run(command, cwd=ROOT / "tests", env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return {name: (how, why) for name, how, why in map(json.loads, done.stdout.splitlines())}


def page(found: dict[str, dict[str, tuple[str, str]]]) -> str:
    """The text of docs/consumers.md."""
    reasons: dict[str, int] = {}
    rows = []
    for name in next(iter(found.values())):
        cells = []
        for device in found:
            how, why = found[device][name]
            number = f" [{reasons.setdefault(why, len(reasons) + 1)}]" if why else ""
            cells.append(MARKS[how] + number)
        rows.append(f"| `{name}` | " + " | ".join(cells) + " |")
    counts = [f"{sum(MARKS[how].startswith('✓') for how, _ in column.values())} of {len(column)}" for column in found.values()]
    return "\n".join([
        "# Libraries that accept any array",
        "",
        "Functions of SciPy, scikit-learn and array-api-extra, called on Tensors of a device while the default device is `numpy`: nobody",
        "told these libraries of xpgrad, nor of the device. They ask the Tensor for its namespace (`x.__array_namespace__()`), and make",
        "their arrays with it, on the Tensor's device ([devices](devices-and-errors.md)).",
        "",
        "* ✓: the gradient agrees with central differences.",
        "* ✓ w: it does, inside of `autograd.graph.allow_mutation_on_saved_tensors()`, because the library writes into its own temporaries",
        "  ([writing in place](writing-in-place.md)); without it an error says so.",
        "* runs: the value agrees, and there is no gradient, for the reason given below.",
        "* no: it does not run.",
        "",
        "The tests check the columns of the backends that they run on. This page is written by",
        "`PYTHONPATH=tests python tests/project/test_consumers.py DEVICE...`.",
        "",
        "| | " + " | ".join(f"`{device}`" for device in found) + " |",
        "|---|" + "---|" * len(found),
        "| **differentiate** | " + " | ".join(counts) + " |",
        *rows,
        "",
        *(f"{number}. {why}" for why, number in reasons.items()),
        "",
    ])  # fmt: skip


def columns() -> dict[str, dict[str, str]]:
    """What the page says: for each device, the mark of each call. Nothing where it is not written yet."""
    lines = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
    heads, *table = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")] or [[""]]
    rows = [row for row in table if not row[0].startswith("**")]
    return {head: {row[0]: re.sub(r" \[\d+\]", "", row[k]) for row in rows} for k, head in enumerate(heads) if head}


def test_the_page_has_every_call_in_every_column() -> None:
    source = ast.parse((ROOT / "tests" / "support" / "consumers.py").read_text(encoding="utf-8"))
    (table,) = [node.value for node in source.body if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "CALLS"]
    calls = [key.value for key in table.keys]  # type: ignore[union-attr]
    assert {device: list(column) for device, column in columns().items()} == dict.fromkeys(("numpy", "strict", "torch", "jax"), calls)
    assert not [name for column in columns().values() for name, mark in column.items() if mark not in MARKS.values()]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("device", [d for d in DEVICES if d in columns()])
def test_the_page_says_what_libraries_do_with_tensors_of_a_device(device: str, part: int) -> None:
    for library in ("scipy", "sklearn", "array_api_extra"):
        pytest.importorskip(library)
    expected = dict(list(columns()[device].items())[part::4])
    assert {name: MARKS[how] for name, (how, _) in outcomes(device, *expected).items()} == expected


if __name__ == "__main__":
    PAGE.write_text(page({device: outcomes(device) for device in sys.argv[1:]}), encoding="utf-8")
