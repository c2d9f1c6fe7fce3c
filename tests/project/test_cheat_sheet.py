"""Law: every cell of the cheat sheet runs, and the cells of a row return the same."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import xpgrad
import xpgrad as xp
import xpgrad.scipy.integrate
import xpgrad.scipy.optimize

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cheat-sheet.md"
LIBRARIES = ("NumPy", "PyTorch", "JAX")

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # PyTorch's own, from inside its transforms


def rows() -> list[tuple[str, dict[str, str]]]:
    """Return each row's label with its code by column."""
    found = []
    header: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            header = []
        elif not header:
            header = cells
        elif not line.startswith("|---"):
            found.append((cells[0], {name: cell for name, cell in zip(header[1:], cells[1:], strict=True) if cell}))
    return found


def evaluate(cell: str, names: dict[str, Any]) -> Any:
    """Run a cell's code; return the value of its last expression, or what it assigned to `y`."""
    result = None
    for code in re.findall(r"`([^`]+)`", cell):
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 (the page's own code)
        result = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names) if isinstance(last, ast.Expr) else names.get("y")
    return result


def set_up(library: str) -> dict[str, Any]:
    """Return the page's set-up with the functions of a library."""
    data = np.asarray([1.0, 2.0, 3.0])
    names: dict[str, Any] = {"np": np, "data": data, "rng": np.random.default_rng(0)}
    lib: ModuleType
    if library == "PyTorch":
        lib = pytest.importorskip("torch")
        pytest.importorskip("torch.utils.checkpoint")
        names |= {"torch": lib, "x": lib.asarray(data), "v": lib.ones(3, dtype=lib.float64), "A": lib.eye(3, dtype=lib.float64) + 1.0}
        names["w"] = lib.tensor(data, requires_grad=True)
    elif library == "JAX":
        jax, lib = pytest.importorskip("jax"), pytest.importorskip("jax.numpy")
        for module in ("test_util", "scipy.optimize", "experimental.ode"):
            pytest.importorskip(f"jax.{module}")
        names |= {"jax": jax, "jnp": lib, "key": jax.random.key(0), "x": lib.asarray(data), "v": lib.ones(3), "A": lib.eye(3) + 1.0}
    else:
        lib = np if library == "NumPy" else xp
        names |= {"x": lib.asarray(data), "v": lib.ones(3), "A": lib.eye(3) + 1.0, "xp": xp, "xpgrad": xpgrad}
        names["w"] = xp.tensor(data, requires_grad=True)
    names |= {"f": lambda x: lib.sum(lib.sin(x) * x), "g": lambda x: x[1:] * x[:-1], "h": lambda x, row: lib.sum(x * row) ** 2}
    return names


def arrays(value: Any) -> list[Any]:
    """Return the arrays of any library in `value`, a result or a tuple of results, as NumPy's; nothing for other objects."""
    if isinstance(value, tuple):
        return [array for item in value for array in arrays(item)]
    if hasattr(value, "detach"):
        value = value.detach()
    return [np.asarray(value)] if isinstance(value, float) or hasattr(value, "shape") else []


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("label", "cells"), rows(), ids=[label for label, _ in rows()])
def test_a_row_returns_the_same(label: str, cells: dict[str, str], library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if library not in cells and library != "NumPy":
        pytest.skip("the row has nothing for it")
    monkeypatch.chdir(tmp_path)
    device = xp.get_default_device()
    try:
        ours = arrays(evaluate(cells["xpgrad"], set_up("xpgrad")))
    finally:
        xp.set_default_device(device)
    if library in cells:
        theirs = arrays(evaluate(cells[library], set_up(library)))
        assert [array.shape for array in ours] == [array.shape for array in theirs]
        if label != "random numbers":
            for one, other in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5)


def test_the_set_up_is_the_pages() -> None:
    """Law: the page's set-up code defines the same values as the set-up with which the cells are run here."""
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102 (the page's own code)
    ours = set_up("xpgrad")
    for name in ("x", "v", "A", "w"):
        assert names[name].tolist() == ours[name].tolist()
        assert names[name].requires_grad == ours[name].requires_grad
    for name in ("f", "g"):
        assert names[name](ours["x"]).tolist() == ours[name](ours["x"]).tolist()
    assert names["h"](ours["x"], ours["v"]).item() == ours["h"](ours["x"], ours["v"]).item()
