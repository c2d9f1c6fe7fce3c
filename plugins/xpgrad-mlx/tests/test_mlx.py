"""Law: MLX's arrays compute what NumPy's do, in the precision of their dtype; nothing is silently narrowed, read or written."""

from __future__ import annotations

import importlib.util
import itertools
import math
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

import xpgrad as xp
from xpgrad.registry import backend_for
from xpgrad_mlx import backend as table, namespace

ROOT = Path(__file__).resolve().parents[3]
WIDTHS = ["float32", "float64"]
NAMES = {"float32": "mlx", "float64": "mlx+float64"}
NEAR = {"float32": 3e-6, "float64": 1e-14}


def test_the_readme_is_true(capsys: Any) -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(code, {})  # noqa: S102 (our own text)
    assert capsys.readouterr().out == "[2.0, 4.0] float32 array\n"


# -- precision -------------------------------------------------------------------------------------------------------------------

_INSIDE = {"acosh": 1.0, "log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": 0.0, "sqrt": 0.0, "reciprocal": 0.5}
UNARY = [
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "exp", "expm1", "floor", "log", "log10", "log1p",
    "log2", "negative", "reciprocal", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
BINARY = ["add", "atan2", "copysign", "divide", "floor_divide", "hypot", "logaddexp", "maximum", "minimum", "multiply", "nextafter",
          "pow", "remainder", "subtract"]  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", UNARY + BINARY)
def test_a_function_has_the_precision_of_its_operands(name: str, width: str) -> None:
    """MLX computes some functions of float64 in float32; the backend must not."""
    points = np.random.default_rng(0).uniform(-0.95, 0.95, (2, 200)).astype(width)
    points = np.abs(points) + np.asarray(_INSIDE[name], width) + 1e-3 if name in _INSIDE else points
    points[0] = np.abs(points[0]) if name == "pow" else points[0]
    operands = list(points.astype(width)) if name in BINARY else [points[0].astype(width)]
    found = getattr(namespace, name)(*(mx.array(p, dtype=getattr(mx, width)) for p in operands))
    expected = getattr(np, name)(*operands)
    assert str(np.asarray(found).dtype) == str(expected.dtype)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=NEAR[width], atol=NEAR[width])


SPECIAL = [0.0, -0.0, 1.0, -2.5, math.inf, -math.inf, math.nan]


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["sign", "signbit", "exp", "expm1", "log1p", "copysign", "hypot", "logaddexp", "maximum", "pow"])
def test_special_values(name: str, width: str) -> None:
    grid = np.meshgrid(SPECIAL, SPECIAL)
    operands = [g.reshape(-1).astype(width) for g in grid][: 2 if name in BINARY else 1]
    found = getattr(namespace, name)(*(mx.array(p, dtype=getattr(mx, width)) for p in operands))
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(np.asarray(found), getattr(np, name)(*operands), rtol=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
def test_whole_quotients_are_those_of_the_remainder(width: str) -> None:
    """The derivative of `remainder` is the quotient, which MLX would round twice."""
    near = [0.1, -0.1, 0.3, 1.0, -1.0, 6.0, 7.5, -2.5, 0.0, -0.0, 1e-30, -1e30, math.nan]
    x1, x2 = (g.reshape(-1).astype(width) for g in np.meshgrid(near, near))
    found = namespace.floor_divide(*(mx.array(x, dtype=getattr(mx, width)) for x in (x1, x2)))
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(found), np.floor_divide(x1, x2))
    assert namespace.floor_divide(mx.array([7, -7]), 2).tolist() == [3, -4]


def test_sums_of_small_floats_are_not_computed_in_them() -> None:
    x = xp.full((70000,), 1.0, dtype="float16", device="mlx")
    assert xp.mean(x).item() == 1.0
    assert xp.mean(xp.full((70000,), 1.0, dtype="bfloat16", device="mlx")).item() == 1.0
    assert (xp.var(x).item(), xp.std(x).item(), xp.sum(x / 16.0).item()) == (0.0, 0.0, 4376.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_limits_are_those_of_the_dtype(dtype: str) -> None:
    ours, raw = xp.finfo(dtype), namespace.finfo(getattr(mx, dtype))
    assert (ours.bits, ours.eps, ours.max, ours.min, ours.smallest_normal) == (raw.bits, raw.eps, raw.max, raw.min, raw.smallest_normal)


REDUCTIONS = ["all", "any", "count_nonzero", "mean", "prod", "std", "sum", "var"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (2, 0, 3)], ids=str)
def test_reductions_of_no_elements(name: str, shape: tuple[int, ...]) -> None:
    """MLX's reductions read memory outside an empty array, so some memory is filled with numbers before."""
    empty = np.zeros(shape, np.float32)
    axes = [None, *(a for k in range(len(shape) + 1) for a in itertools.combinations(range(len(shape)), k))]
    for axis, keepdims in itertools.product(axes, (False, True)):
        mx.eval([mx.full((n,), 3.0) * 2 for n in range(1, 40)])
        found = getattr(namespace, name)(mx.array(empty), axis=axis, keepdims=keepdims)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # NumPy warns about a mean of no elements
            expected = getattr(np, name)(empty, axis=axis, keepdims=keepdims)
        np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize(
    "expression",
    [
        "x[x > 0]",
        "x[:, [0, 1]]",
        "xp.take_along_axis(x, xp.argsort(x, axis=-1), axis=-1)",
        "x.median(-1)[0]",
        "x * xp.argmax(x, axis=1, keepdims=True)",
        "(x * 1.0).index_add_(1, i, x)",
    ],
)
def test_gradients_of_empty_arrays(expression: str) -> None:
    x = xp.zeros((0, 3), device="mlx").requires_grad_()
    out = eval(expression, {"xp": xp, "x": x, "i": xp.asarray([0, 1, 1], device="mlx")})
    xp.sum(out).backward()
    assert x.grad is not None
    assert x.grad.shape == (0, 3)


def test_there_is_no_largest_of_no_elements() -> None:
    x = xp.zeros((0, 3), device="mlx")
    for extreme in (xp.max, xp.min):
        assert extreme(x, axis=1).shape == (0,)
        with pytest.raises(ValueError, match=r"shape \(0, 3\)"):
            extreme(x, axis=0)


# -- dtypes ----------------------------------------------------------------------------------------------------------------------


def test_no_digit_is_lost_on_the_way() -> None:
    wide = np.asarray([0.1, 1 / 3, 1e300])
    with pytest.raises(xp.CapabilityError, match=r"backend 'mlx' has no dtype float64; it has bool, .*float32, complex64$"):
        xp.asarray(wide, device="mlx")
    with pytest.raises(TypeError, match=r"backend 'mlx' cannot hold dtype 'mlx\.core\.float64'; convert the array first"):
        xp.asarray(mx.array(wide, dtype=mx.float64))
    x = xp.asarray(wide, device="mlx+float64")
    assert x.numpy().tolist() == wide.tolist()
    assert xp.from_dlpack(wide, device="mlx+float64").tolist() == wide.tolist()
    assert xp.asarray(mx.array(wide, dtype=mx.float64), device="mlx+float64").tolist() == wide.tolist()


def test_there_is_no_complex128_beside_float64() -> None:
    x = xp.tensor([1.0, 2.0], device="mlx+float64")
    turn = xp.asarray([[0.0, 1.0], [-1.0, 0.0]], device="mlx+float64")
    assert (x.dtype, xp.tensor([1j], device="mlx+float64").dtype) == (xp.float64, xp.complex64)
    for refused in (
        lambda: x * 1j,
        lambda: xp.fft.fft(x),
        lambda: xp.astype(x, xp.complex128),
        lambda: xp.linalg.eigvals(turn),
    ):
        with pytest.raises(xp.CapabilityError, match=r"backend 'mlx\+float64' has no dtype complex128"):
            refused()


def test_the_devices_exchange_tensors() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True, device="mlx")
    y = xp.astype(x, "float32").to_device("numpy").double().to_device("mlx+float64")
    xp.sum(y * y).backward()
    assert (x.grad.tolist(), str(x.grad.device), x.grad.dtype) == ([2.0, 4.0], "mlx", xp.float32)


# -- memory ----------------------------------------------------------------------------------------------------------------------


def test_what_is_assigned_to_an_array_stays_with_it() -> None:
    raw = mx.array([1.0, 2.0])
    x = xp.asarray(raw)
    raw[0] = 9.0
    assert x.tolist() == [1.0, 2.0]


def test_a_write_leaves_arrays_as_they_are() -> None:
    x = xp.tensor([1.0, 2.0, 3.0], device="mlx")
    before, view = x.array, x[1:]
    x[1] = 5.0
    assert (before.tolist(), view.tolist()) == ([1.0, 2.0, 3.0], [5.0, 3.0])


def test_numpy_may_not_write_to_the_memory() -> None:
    x = xp.tensor([1.0, 2.0], device="mlx")
    with pytest.raises(ValueError, match="read-only"):
        x.numpy()[0] = 7.0


@pytest.mark.parametrize("device", NAMES.values())
@pytest.mark.parametrize("key", [3, -4, (slice(None), 2), [0, 3], (0, [5, 0])], ids=str)
def test_no_index_leaves_the_array(key: Any, device: str) -> None:
    x = xp.zeros((3, 2), device=device)
    parts = tuple(xp.asarray(p, device=device) if isinstance(p, list) else p for p in (key if isinstance(key, tuple) else (key,)))
    with pytest.raises(IndexError):
        x[parts]
    with pytest.raises(IndexError):
        x[parts] = 1.0
    assert x.tolist() == [[0.0, 0.0]] * 3


# -- the rest --------------------------------------------------------------------------------------------------------------------


def test_a_checkpoint_draws_the_same_numbers_again() -> None:
    drawn = []

    def function(x: Any) -> Any:
        drawn.append(mx.random.uniform(shape=(3,)).tolist())
        return x * xp.asarray(mx.array(drawn[-1]))

    x = xp.tensor([1.0, 2.0, 3.0], requires_grad=True, device="mlx")
    xp.sum(xp.utils.checkpoint.checkpoint(function, x, use_reentrant=False)).backward()
    assert drawn[0] == drawn[1] == x.grad.tolist()
    assert mx.random.uniform(shape=(3,)).tolist() != drawn[0]


def test_passes_stay_in_their_thread() -> None:
    class Nested(xp.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, levels: int) -> Any:
            ctx.levels = levels
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            if ctx.levels:
                with xp.enable_grad():
                    x = xp.tensor(1.0, requires_grad=True, device="mlx")
                    Nested.apply(x * 2.0, ctx.levels - 1).backward()
            return g, None

    x = xp.tensor(1.0, requires_grad=True, device="mlx")
    Nested.apply(x, 23).backward()
    assert x.grad.item() == 1.0
    with pytest.raises(xp.CapabilityError, match="backend 'mlx' stay in the thread that made them"):
        Nested.apply(x, 24).backward()
    xp.sum(x * 3.0).backward()  # the failed pass has no effect on later ones
    assert x.grad.item() == 4.0


def test_the_variant_computes_on_the_cpu_where_there_is_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine with a GPU each kernel, creation function and copy must choose the CPU."""
    monkeypatch.setattr(mx, "is_available", lambda device: True)
    entered, stream = [], mx.stream

    def spy(device: Any) -> Any:
        entered.append(device)
        return stream(device)

    monkeypatch.setattr(mx, "stream", spy)
    confined = table.MlxBackend("float64")
    assert not confined.raw_operators
    array = confined.from_host(np.asarray([0.5, 0.25]), confined.device)
    sums = confined.kernels.sum(confined.kernels.index_basic(confined.kernels.sin(array), (slice(0, 1),)))
    assert math.isclose(float(confined.to_host(sums)), math.sin(0.5), rel_tol=1e-15)
    confined.namespace().zeros((2,), dtype=mx.float64)
    confined.kernels.linalg.inv(confined.namespace().ones((1, 1), dtype=mx.float64))
    assert len(entered) >= 8
    assert set(entered) == {mx.cpu}
    assert not backend_for("mlx").confined


def test_a_program_agrees_with_numpy() -> None:
    for device in NAMES.values():
        found = []
        for where in ("numpy", device):
            x = xp.tensor([[0.3, -0.7, 1.1], [0.9, 0.2, -0.4]], requires_grad=True, device=where)
            y = xp.tanh(x @ xp.matrix_transpose(x)) + x[:, 1]
            y[0, 0] = xp.max(x)
            y = xp.concat([y, xp.flip(y, axis=0)])
            (xp.sum(y * xp.exp(y)) + xp.linalg.det(x[:, :2])).backward()
            found.append(x.grad.numpy())
        np.testing.assert_allclose(found[1], found[0], rtol=1e-12 if device == "mlx+float64" else 1e-5)


def test_the_digits_are_learned(capsys: Any, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("xpgrad_example_digits", ROOT / "examples" / "digits.py")
    digits = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = digits  # dataclasses look up their module there
    spec.loader.exec_module(digits)
    assert digits.main(["--epochs", "8", "--device", "mlx", "--out", str(tmp_path / "digits.png")]) == 0
    assert float(re.search(r"test accuracy (\d+\.\d+)% on mlx", capsys.readouterr().out)[1]) >= 96.0
