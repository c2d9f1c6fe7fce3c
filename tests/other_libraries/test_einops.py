"""Law: einops takes Tensors through a backend that registers itself, and gradients flow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from support import DEVICES
from support.central_differences import check, numbers

einops = pytest.importorskip("einops", reason="einops is not installed (the extra `friends`)")

START = numbers((3, 4)) + 2.0
ARRAY = numbers((3, 4), 2.0)


def packed(x: Any) -> Any:
    whole, shapes = einops.pack([x, x[:, 0]], "a *")
    matrix, column = einops.unpack(whole**2, shapes, "a *")
    return matrix * column[:, None]


CALLS: dict[str, Callable[[Any], Any]] = {
    "rearrange": lambda x: einops.rearrange(x, "a (b c) -> (a b) c", b=2),
    "an ellipsis": lambda x: einops.rearrange(x, "... b -> b ..."),
    "a new axis": lambda x: einops.rearrange(x, "a b -> a 1 b"),
    "a list": lambda x: einops.rearrange([x, x**2], "k a b -> a (k b)"),
    "reduce by sum": lambda x: einops.reduce(x, "a (b c) -> a c", "sum", b=2),
    "reduce by mean": lambda x: einops.reduce(x, "a (b c) -> a c", "mean", b=2),
    "reduce by min": lambda x: einops.reduce(x, "a b -> a 1", "min"),
    "reduce by max": lambda x: einops.reduce(x, "a b -> b", "max"),
    "reduce by prod": lambda x: einops.reduce(x, "a b -> b", "prod"),
    "reduce all": lambda x: einops.reduce(x, "a b ->", "mean"),
    "reduce by a function": lambda x: einops.reduce(x, "a b -> a", lambda t, axes: xp.sum(t**2, axis=tuple(axes))),
    "repeat": lambda x: einops.repeat(x, "a b -> (a k) b 2", k=3),
    "repeat a number": lambda x: einops.repeat(xp.sum(x), "-> k", k=2),
    "pack and unpack": packed,
    "einsum": lambda x: einops.einsum(x, xp.asarray(ARRAY, device=x.device), "a b, c b -> a c"),
    "einsum with an array": lambda x: einops.einsum(x, x, "a b, c b -> a c"),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CALLS)
def test_gradients_flow(name: str, device: str) -> None:
    check(CALLS[name], [START], device)


def test_values_are_those_with_numpy_arrays() -> None:
    for name, call in CALLS.items():
        if name not in ("reduce by a function", "repeat a number", "einsum"):
            np.testing.assert_allclose(call(xp.asarray(START)).numpy(), call(START), err_msg=name)


def test_what_is_not_differentiated() -> None:
    x = xp.asarray(START)
    assert einops.parse_shape(x, "a b") == {"a": 3, "b": 4}
    assert einops.asnumpy(x).tolist() == START.tolist()
    assert einops.reduce(x > 2.0, "a b -> b", "any").numpy().tolist() == (START > 2.0).any(0).tolist()
    with pytest.raises(NotImplementedError, match="reduce_mean is not available for non-floating tensors"):
        einops.reduce(xp.asarray([1, 2]), "a ->", "mean")
    with pytest.raises(RuntimeError, match="requires grad"):
        einops.asnumpy(xp.tensor(START, requires_grad=True))


def test_transforms_go_through() -> None:
    x = xp.asarray(START)
    halves = xp.func.vmap(lambda r: einops.reduce(r, "(a b) -> a", "sum", a=2))(x)
    np.testing.assert_allclose(halves.numpy(), START.reshape(3, 2, 2).sum(2))
    np.testing.assert_allclose(xp.compile(lambda x: einops.rearrange(x * 2.0, "a b -> b a"))(x).numpy(), 2.0 * START.T)


USE = "x = xpgrad.tensor([[1.0, 2.0]], requires_grad=True); einops.reduce(x, 'a b -> a', 'sum').backward(); print(x.grad.numpy().tolist())"


@pytest.mark.parametrize("imports", ["import xpgrad, einops", "import einops, xpgrad", "import xpgrad, einops._backends; import einops"])
def test_the_order_of_imports_does_not_matter(imports: str) -> None:
    code = (
        f"import sys; before = list(sys.meta_path); {imports}; {USE}; print(sys.meta_path == before, einops._backends.__loader__.path[-3:])"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.splitlines() == ["[[1.0, 1.0]]", "True .py"], run.stderr


def test_xpgrad_does_not_import_einops() -> None:
    assert find_spec("einops")
    code = "import sys, xpgrad; xpgrad.ones((2,)).sum(); print('einops' in sys.modules)"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "False\n", run.stderr
