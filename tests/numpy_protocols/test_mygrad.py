"""Law: NumPy's functions compute on Tensors what MyGrad's functions of the same names compute, and the page translates its other names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from inspect import ismodule
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from numpy_protocols.page import PAGE
from support.central_differences import numbers
from xpgrad._numpy.missing import NOT_DISPATCHED
from xpgrad._numpy.table import ABSENT, FUNCTIONS, UFUNCS

mg: Any = pytest.importorskip("mygrad", reason="MyGrad is what is compared with; the extra `bench` brings it")

SECTION = PAGE.read_text(encoding="utf-8").split("## Coming from MyGrad")[1].split("\n## ")[0]
ROWS = re.findall(r"^\| `(mg\..+?)` \| `(.+?)` \|$", SECTION, re.MULTILINE)
POINT = np.abs(numbers((3, 4))) * 0.6 + 0.3
#: MyGrad's own objects and switches, which the section describes in words.
OWN = {"Tensor", "tensor", "execute_op", "mem_guard_active", "mem_guard_off", "mem_guard_on", "no_autodiff", "sliding_window_view",
       "turn_memory_guarding_off", "turn_memory_guarding_on", "TYPE_CHECKING"}  # fmt: skip
LAYERS = {"batchnorm", "constant", "conv_nd", "dirac", "focal_loss", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
          "identity", "margin_ranking_loss", "max_pool", "multiclass_hinge", "negative_log_likelihood", "normal", "softmax_crossentropy",
          "softmax_focal_loss", "uniform"}  # fmt: skip
#: Names that MyGrad shares with NumPy and that are refused for Tensors, for the reason that the table gives.
REFUSED = {"save"}


def public(module: Any) -> Iterator[str]:
    return (name for name in dir(module) if not name.startswith("_") and not ismodule(getattr(module, name)))


def in_numpy(prefix: str, name: str) -> bool:
    """Return whether a name is in NumPy and either supports Tensors or does not concern them (a dtype, a number, array creation)."""
    found = getattr(np.linalg if prefix else np, name, None)
    key = prefix + getattr(found, "__name__", name)
    aside = isinstance(found, (type, float)) or (found is None and hasattr(np, name))
    return aside or key in FUNCTIONS or key in UFUNCS or any(key in group for group in NOT_DISPATCHED.values())


def test_every_name_of_mygrad_is_numpys_or_in_the_section() -> None:
    told = {re.match(r"mg\.([\w.]+)", left).group(1) for left, _ in ROWS}  # type: ignore[union-attr]
    rest = {name for name in public(mg) if not in_numpy("", name)}
    assert rest - told == OWN | REFUSED | ({"isnat"} & set(dir(mg)))
    assert {name for name in public(mg.linalg) if not in_numpy("linalg.", name)} <= told
    assert {name for name in public(mg.nnet) if f"nnet.{name}" not in told} == LAYERS
    assert set(ABSENT) >= REFUSED


def gradient(text: str, x: Any, total: Any) -> tuple[np.ndarray, np.ndarray]:
    y = eval(text, {"mg": mg, "np": np, "xp": xp, "math": math, "x": x})  # the page's own text
    total(y * y).backward()
    return np.asarray(y.data if hasattr(y, "data") and not isinstance(y, xp.Tensor) else y.detach()), np.asarray(x.grad)


@pytest.mark.parametrize(("left", "right"), ROWS)
def test_the_section_computes_the_same(left: str, right: str) -> None:
    theirs = gradient(left, mg.tensor(POINT), mg.sum)
    ours = gradient(right, xp.tensor(POINT, requires_grad=True), np.sum)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_what_the_section_says_of_passes() -> None:
    theirs, ours = mg.tensor(POINT), xp.tensor(POINT, requires_grad=True)
    (theirs * 2).backward()
    np.testing.assert_array_equal(theirs.grad, np.full_like(POINT, 2.0))
    with pytest.raises(RuntimeError, match="scalar"):
        (ours * 2).backward()
    used = theirs * 3
    assert theirs.grad is None
    used.backward()
    for _ in range(2):
        np.sum(ours * 3).backward()
    np.testing.assert_array_equal(theirs.grad, np.full_like(POINT, 3.0))
    np.testing.assert_array_equal(ours.grad.numpy(), np.full_like(POINT, 6.0))


#: Calls, on a positive 3 x 4 Tensor, of functions that MyGrad has under NumPy's names.
CALLS = [
    *(f"m.{name}(x)" for name in (
        "abs", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "cos", "cosh", "cumprod", "cumsum", "exp", "exp2", "expm1", "log", "log10",
        "log1p", "log2", "max", "mean", "min", "negative", "positive", "prod", "ravel", "reciprocal", "sin", "sinc", "sinh", "sqrt",
        "square", "std", "sum", "tan", "tanh", "transpose", "var",
    )),
    *(f"m.{name}(x, x[::-1] * 1.5)" for name in ("add", "arctan2", "divide", "logaddexp", "logaddexp2", "maximum", "minimum", "multiply",
                                                "power", "subtract", "true_divide")),
    "m.arccosh(x + 1)", "m.arccos(x / 2)", "m.amax(x, axis=1)", "m.amin(x, axis=0, keepdims=True)", "m.atleast_3d(x)",
    "m.broadcast_to(x, (2, 3, 4))", "m.clip(x, 0.5, 0.8)", "m.concatenate([x, 2 * x], axis=1)", "m.einsum('ij,kj->ik', x, x)",
    "m.expand_dims(x, 1)", "m.linalg.norm(x, axis=1)", "m.matmul(x, x.T)", "m.moveaxis(x, 0, 1)", "m.repeat(x, 2, axis=0)",
    "m.reshape(x, (4, 3))", "m.roll(x, 2, axis=1)", "m.squeeze(x[None])", "m.stack([x, x], axis=1)", "m.swapaxes(x, 0, 1)",
    "m.where(np.eye(3, 4) > 0, x, 2 * x)",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_functions_of_numpys_names_compute_the_same(call: str) -> None:
    theirs = gradient(call.replace("m.", "mg."), mg.tensor(POINT), mg.sum)
    ours = gradient(call.replace("m.", "np."), xp.tensor(POINT, requires_grad=True), np.sum)
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
