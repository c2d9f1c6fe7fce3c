"""Law: where PyTorch differs from NumPy (promotion, wrapping, returned operands, overlapping memory), xpgrad's arrays follow NumPy."""

from __future__ import annotations

import operator
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import xpgrad as xp

ROOT = Path(__file__).resolve().parents[3]

DTYPES = ("bool", "int8", "int32", "int64", "uint8", "float16", "float32", "float64", "complex64", "complex128")
SCALARS = (True, 2, -1, 300, 1.5, 0.0, 1j, float("nan"))
OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "ne", "lt", "le", "gt", "ge", "and_", "or_", "xor")
} | {name: getattr(xp, name) for name in ("maximum", "minimum")}
REDUCTIONS = ("sum", "prod", "mean", "max", "min", "all", "any", "count_nonzero", "var", "std")
#: The beginnings of errors that are allowed where NumPy has a result: functions that PyTorch lacks (listed in `test_dtypes`) or rejects.
REFUSED = {"CapabilityError: ", "RuntimeError: ZeroDivisionError", "RuntimeError: Integers to negative integer powers are not allowed."}


def outcome(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            return function(*args, **options)
    except Exception as exc:  # noqa: BLE001 (an error is an outcome)
        return exc


def compare(expected: Any, found: Any, what: Any) -> bool:
    """Check that two outcomes are equal, and return True; return False if one of them is an exception that is allowed."""
    if isinstance(expected, Exception):
        return False
    if isinstance(found, Exception):
        text = f"{type(found).__name__}: {found}"
        assert any(text.startswith(known) for known in REFUSED), (what, text)
        return False
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    tolerance = 1e-2 if expected.dtype.name == "float16" else 1e-5
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=tolerance, atol=tolerance, err_msg=str(what))
    return True


def both(data: Any, dtype: str) -> tuple[Any, Any]:
    host = np.asarray(data).astype(dtype)
    return xp.asarray(host), xp.asarray(host, device="torch")


@pytest.mark.parametrize("shape", [(3,), ()])
@pytest.mark.parametrize("dtype", DTYPES)
def test_operators_promote_and_compute_as_numpys(dtype: str, shape: tuple[int, ...]) -> None:
    (x, t), (y, u) = (both(np.array(data)[: len(shape) * 3].reshape(shape) if shape else data[2], dtype) for data in ([1, 0, 2], [1, 3, 2]))
    compared = 0
    for name, function in OPERATORS.items():
        if dtype == "bool" and name == "pow":
            continue  # NumPy's powers of bools are int8
        compared += compare(outcome(function, x, y), outcome(function, t, u), (name, dtype))
        for s in SCALARS:
            compared += compare(outcome(function, x, s), outcome(function, t, s), (name, dtype, s))
            compared += compare(outcome(function, s, x), outcome(function, s, t), (name, s, dtype))
    assert compared > 70


@pytest.mark.parametrize("dtype", DTYPES)
def test_reductions_over_any_axes_are_numpys(dtype: str) -> None:
    x, t = both([[1, 0, 2], [2, 2, 1]], dtype)
    compared = 0
    for name in REDUCTIONS:
        for axis in (None, (), 0, (0, 1), (1,)):
            for keepdims in (False, True):
                function = getattr(xp, name)
                args = {"axis": axis, "keepdims": keepdims}
                compared += compare(outcome(function, x, **args), outcome(function, t, **args), (name, dtype, args))
    assert compared >= 50


def test_powers_of_complex_zeros_and_their_gradients() -> None:
    """PyTorch's ``0 ** 0`` is nan for complex numbers."""
    data = np.array([0j, 0j, 1 + 1j]), np.array([0j, 1 + 0j, 0j])
    results = []
    for device in ("numpy", "torch"):
        x, y = (xp.tensor(d, requires_grad=True, device=device) for d in data)
        out = x**y
        xp.sum(xp.real(out)).backward()
        assert x.grad is not None
        results.append((out.detach().numpy(), x.grad.numpy()))
    np.testing.assert_allclose(results[0][0], [1, 0, 1])
    np.testing.assert_allclose(results[0][1], [0, 1, 0])
    for ours, theirs in zip(*results):
        np.testing.assert_allclose(theirs, ours)


def test_integers_that_do_not_fit_are_refused_in_arithmetic_and_compared() -> None:
    x = xp.asarray([1, 44], dtype="int8", device="torch")
    with pytest.raises(OverflowError, match="300 does not fit in dtype int8"):
        x + 300
    assert (x == 300).tolist() == [False, False]  # PyTorch compares with 300 - 256
    assert (xp.asarray([1], dtype="uint8", device="torch") > -1).tolist() == [True]


def test_pytorchs_default_dtype_is_not_asked() -> None:
    torch.set_default_dtype(torch.float16)
    try:
        x = xp.asarray([1, 2], device="torch")
        for y in (x * 0.5, x / 2, xp.sin(x), xp.mean(x), xp.tensor([1.0], device="torch"), xp.zeros(2, device="torch")):
            assert y.dtype is xp.float64
    finally:
        torch.set_default_dtype(torch.float32)


# -- memory --------------------------------------------------------------------------------------------------------------


FRESH: dict[str, Callable[[Any], Any]] = {
    "positive": xp.positive, "conj": xp.conj, "abs": xp.abs, "sign": xp.sign, "floor": xp.floor, "ceil": xp.ceil, "round": xp.round,
    "trunc": xp.trunc, "clip": lambda x: xp.clip(x, 0, 9), "clip by nothing": xp.clip, "astype": lambda x: xp.astype(x, x.dtype),
    "clone": lambda x: x.clone(), "sum": lambda x: xp.sum(x, axis=()), "prod": lambda x: xp.prod(x, axis=()),
    "mean": lambda x: xp.mean(x, axis=()), "max": lambda x: xp.max(x, axis=()), "min": lambda x: xp.min(x, axis=()),
    "all": lambda x: xp.all(x, axis=()), "any": lambda x: xp.any(x, axis=()), "roll": lambda x: xp.roll(x, 0, axis=0), "flip": xp.flip,
    "concat": lambda x: xp.concat([x]), "stack": lambda x: xp.stack([x]), "tile": lambda x: xp.tile(x, (1, 1)),
    "repeat": lambda x: xp.repeat(x, 1, axis=0), "meshgrid": lambda x: xp.meshgrid(x[0], x[0], indexing="ij")[0],
    "tril": lambda x: xp.tril(x, k=3), "sort": lambda x: xp.sort(x, axis=0), "take": lambda x: xp.take(x, xp.asarray([0, 1, 2]), axis=0),
    "gather by a 0-d index": lambda x: x[xp.asarray(0)], "mask": lambda x: x[xp.asarray([True, True, True])],
    "where": lambda x: xp.where(xp.ones_like(x, dtype="bool"), x, x), "pad": lambda x: xp.pad(x, 0), "real to_device": lambda x: x.clone(),
    "cumulative": lambda x: xp.cumulative_sum(x[:1], axis=0), "diff": lambda x: xp.diff(x, n=0), "tensor": xp.tensor,
    "asarray": lambda x: xp.asarray(x, copy=True), "reshape": lambda x: xp.reshape(x, x.shape, copy=True),
}  # fmt: skip


@pytest.mark.parametrize("name", FRESH)
def test_what_is_not_a_view_has_memory_of_its_own(name: str) -> None:
    """Many functions of PyTorch return their operand if they change nothing; a later write to it would change their results."""
    for dtype in ("float64", "complex128", "int64", "bool"):
        x = xp.ones((3, 3), dtype=dtype, device="torch")
        out = outcome(FRESH[name], x)
        if isinstance(out, Exception):
            assert isinstance(out, (NotImplementedError, RuntimeError, TypeError)), out  # PyTorch has no such function for this dtype
            continue
        before = out.tolist()
        assert out is not x
        x[...] = False
        assert out.tolist() == before, dtype


OVERLAPS = ("x[:, :3] += x[:, 1:]", "x[:, 1:] += x[:, :3]", "x += x.T", "x[1:] += x[:-1]", "x[1:] = x[:-1]", "x[:-1] *= x[1:]",
            "x += x", "x[::-1] = x", "x[[0, 1, 2, 3]] = x[[3, 2, 1, 0]]", "x[:, 0] = x[0]", "x.T.copy_(x)", "x[...] = x.T", "x.mul_(x[0])",
            "x[:, ::2].mul_(x[:, 1::2])", "x[[0, 0, 1]] = x[1:]", "x[x > 3] = x[0, 1]")  # fmt: skip


@pytest.mark.parametrize("statement", OVERLAPS)
def test_operands_that_overlap_are_read_first(statement: str) -> None:
    """PyTorch raises an error for some of these, and computes others in the order of the elements."""
    for history in (False, True):
        for recording in (True, False):
            found = []
            for device in ("numpy", "torch"):
                x = xp.asarray(np.arange(16.0).reshape(4, 4), device=device)
                x = x.requires_grad_() * 1.0 if history else x
                with xp.set_grad_enabled(recording):
                    exec(statement, {"x": x})  # noqa: S102 (our own text)
                found.append(x.detach().numpy())
            np.testing.assert_array_equal(found[1], found[0])


def test_the_last_of_equal_indices_is_written_and_all_are_added() -> None:
    rng = np.random.default_rng(0)
    for size, count in ((5, 20), (1000, 30), (50, 50)):
        places, values = rng.integers(-size, size, count), rng.standard_normal(count)
        expected = np.zeros(size)
        expected[places] = values
        x = xp.zeros(size, device="torch")
        x[places] = xp.asarray(values, device="torch")
        np.testing.assert_array_equal(x.numpy(), expected)
        leaf = xp.zeros(size, device="torch", requires_grad=True)
        xp.sum(leaf[places] * xp.asarray(values, device="torch")).backward()
        expected = np.zeros(size)
        np.add.at(expected, places, values)
        assert leaf.grad is not None
        np.testing.assert_allclose(leaf.grad.numpy(), expected)
    x = xp.asarray([10.0, 20.0, 30.0], device="torch")
    assert x[xp.asarray([2, 0, 1], dtype="uint8")].tolist() == [30.0, 10.0, 20.0]  # PyTorch would treat uint8 as a mask


# -- the border --------------------------------------------------------------------------------------------------------------


class Exporter:
    """An object that supports DLPack and is not an array of a registered library."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_dlpack_both_ways_and_to_the_device_that_is_asked_for() -> None:
    host = np.array([1.0, 2.0])
    x = xp.from_dlpack(Exporter(host), device="torch")
    host[0] = 5.0
    assert (x.device, x.tolist()) == ("torch:cpu", [5.0, 2.0])
    np.from_dlpack(x)[1] = 7.0
    assert host[1] == 7.0
    there = xp.from_dlpack(Exporter(host), device="torch:meta")
    assert there.array.is_meta
    with pytest.raises(ValueError, match="copy=False"):
        xp.from_dlpack(Exporter(host), device="torch:meta", copy=False)
    assert xp.asarray(torch.ones(2), device="torch:meta").array.is_meta
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray(torch.ones(2), device="torch:meta", copy=False)


def test_parameters_lazy_conjugates_and_other_kinds_of_tensors() -> None:
    frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    assert type(xp.asarray(frozen).array) is torch.Tensor
    raw = torch.tensor([1 + 2j, 3 - 1j])
    x = xp.asarray(torch.conj(raw))
    assert xp.imag(x).tolist() == [-2.0, 1.0]
    assert x.numpy().tolist() == [1 - 2j, 3 + 1j]
    x[0] = 4 + 1j
    assert raw[0].item() == 4 - 1j
    with pytest.raises(TypeError, match="dense plain tensors"):
        xp.asarray(torch.ones(2).to_sparse())
    with pytest.raises(TypeError, match="float8"):
        xp.asarray(torch.ones(2).to(torch.float8_e5m2))


#: Functions, and the gradients of their sums by a vector x of ones, or by s = 2.0; the raw tensor t has ones.
MIXED: dict[str, Any] = {
    "t + x": [1.0, 1.0], "x + t": [1.0, 1.0], "t * s": 2.0, "s * t": 2.0, "t - s": -2.0, "t / s": -0.5, "t ** s": 0.0, "t @ x": [1.0, 1.0],
    "xp.stack([x, t])": [1.0, 1.0], "xp.where(t > 0, t * s, x)": 2.0,
}  # fmt: skip


@pytest.mark.parametrize("expression", MIXED)
def test_raw_tensors_are_constants_for_operators(expression: str) -> None:
    """PyTorch would treat a 0-d Tensor as a number, but its operators leave the result to ours."""
    x, s = xp.ones(2, device="torch", requires_grad=True), xp.tensor(2.0, device="torch", requires_grad=True)
    out = eval(expression, {"t": torch.ones(2, dtype=torch.float64), "x": x, "s": s, "xp": xp})
    of = s if "s" in expression.replace("xp.stack", "") else x
    assert xp.autograd.grad(xp.sum(out), of)[0].tolist() == MIXED[expression]


@pytest.mark.parametrize("expression", ["t.add_(s)", "torch.add(t, s)", "torch.tensor(x)", "torch.asarray(s)", "t.copy_(x)"])
def test_functions_of_pytorch_do_not_take_tensors_that_have_a_gradient(expression: str) -> None:
    """PyTorch would treat a 0-d Tensor as a number, and lose its gradient."""
    scope = {
        "t": torch.ones(2, dtype=torch.float64), "x": xp.ones(2, device="torch", requires_grad=True), "xp": xp, "torch": torch,
        "s": xp.tensor(2.0, device="torch", requires_grad=True),
    }  # fmt: skip
    with pytest.raises((TypeError, RuntimeError)):
        eval(expression, scope)


ENTRIES = ["xp.asarray(t)", "xp.tensor(t)", "xp.asarray([t, t])", "xp.from_dlpack(t)", "x * t", "t * x", "xp.where(x > 0, t, x)"]


@pytest.mark.filterwarnings("ignore:`torch.jit.script`:DeprecationWarning")  # PyTorch's own call of it
@pytest.mark.parametrize("expression", ENTRIES)
def test_tensors_that_pytorch_differentiates_by_are_refused(expression: str) -> None:
    """PyTorch would find a derivative of zero."""

    def f(t: Any) -> Any:
        return eval(expression, {"xp": xp, "x": xp.ones(2, device="torch"), "t": t}).array.sum()

    t = torch.ones(2)
    nested = lambda t: torch.func.jvp(lambda s: f(t) + s.sum(), (torch.ones(2),), (torch.ones(2),))[0]  # noqa: E731
    for derive in (
        lambda: f(t.clone().requires_grad_()), lambda: torch.func.grad(f)(t), lambda: torch.func.jvp(f, (t,), (t,)),
        lambda: torch.func.jacfwd(nested)(t), lambda: torch.func.grad(nested)(t),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"Pass `x\.detach\(\)`"):
            derive()
    with torch.autograd.forward_ad.dual_level(), pytest.raises(TypeError, match="with a tangent"):
        f(torch.autograd.forward_ad.make_dual(t, t))
    scaled = torch.func.jvp(lambda s: s * f(t), (t,), (t,))[1]  # a constant
    assert scaled.tolist() == [f(t).item()] * 2


def test_dtypes_come_in_and_go_out() -> None:
    for name in ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "complex64"):
        host = np.array([1, 0, 1]).astype(name)
        x = xp.asarray(host, device="torch")
        assert x.dtype.name == name
        np.testing.assert_array_equal(x.numpy(), host)
        assert xp.astype(x if name != "complex64" else xp.real(x), xp.float64).tolist() == [1.0, 0.0, 1.0]
    half = xp.tensor([1.5, 2.0], dtype=xp.bfloat16, device="torch", requires_grad=True)
    xp.sum(half * half).backward()
    assert half.grad is not None
    assert (half.grad.dtype, half.grad.tolist()) == (xp.bfloat16, [3.0, 4.0])
    back = np.arange(6.0).reshape(2, 3)[::-1]
    assert xp.asarray(back.astype(">f8"), device="torch").tolist() == back.tolist()


def test_meta_says_which_function_needs_values() -> None:
    x = xp.ones((3, 4), device="torch:meta")
    x[x > 0] = 2.0
    x[[0, 1]] = 1.0
    assert x[[0, 1]].shape == (2, 4)
    for call in (lambda: x[x > 0], lambda: xp.nonzero(x), lambda: xp.unique_values(x), lambda: x.to_device("numpy"), lambda: bool(x[0, 0])):
        with pytest.raises(xp.CapabilityError, match=r"torch:meta"):
            call()


def test_the_host_has_no_streams() -> None:
    backend = xp.ones(1, device="torch").backend
    for device in (xp.Device("torch:cpu"), xp.Device("torch:meta")):
        assert backend.current_stream(device) is None
        assert not backend.is_capturing(device)
        backend.synchronize(device)
    with backend.stream_guard(None):
        backend.wait_event(None, backend.record_event(None))
    assert backend.capabilities.streams == torch.cuda.is_available()


def test_the_digits_are_learnt_as_well_as_on_numpy(tmp_path: Path) -> None:
    """The example has the same accuracy after one epoch, which is below the accuracy that it requires (exit code 1)."""
    accuracies = []
    for device in ("numpy", "torch"):
        command = [sys.executable, str(ROOT / "examples" / "digits.py"), "--device", device, "--epochs", "1"]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240, cwd=tmp_path, env=environment)
        assert run.returncode == 1, run.stderr
        found = re.search(r"test accuracy ([\d.]+)% on (\S+)", run.stdout)
        assert found is not None, run.stdout
        assert found[2].startswith(device)
        accuracies.append(float(found[1]))
    assert accuracies[1] == pytest.approx(accuracies[0], abs=0.5)
    assert accuracies[0] > 90
