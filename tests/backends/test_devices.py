"""Law: a device round-trips through its string, Tensors of two devices do not mix, and gradients go back to where they belong."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
import threading
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xpgrad as xp
from support import kernels_only
from support.central_differences import check, numbers, values

grad = xp.autograd.grad
DEVICES = ["numpy", "numpy+readonly", "strict", "strict:device1"]


# -- the value ---------------------------------------------------------------------------------------------------------------------

PARSED = [
    ("numpy", ("numpy", None, None, None)), ("numpy+readonly", ("numpy", "readonly", None, None)),
    ("jax:cpu:1", ("jax", None, "cpu", 1)), ("cupy:0", ("cupy", None, None, 0)), ("strict:device1", ("strict", None, "device1", None)),
    ("my-lib+fast-one:gpu:12", ("my-lib", "fast-one", "gpu", 12)), ("_x", ("_x", None, None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "parts"), PARSED)
def test_parsing(text: str, parts: tuple[Any, ...]) -> None:
    device = xp.Device(text)
    assert (device.backend, device.variant, device.kind, device.index) == parts
    assert str(device) == text
    assert device.table == (parts[0] if parts[1] is None else f"{parts[0]}+{parts[1]}")


@pytest.mark.parametrize("order", [DEVICES, DEVICES[::-1]], ids=["first", "last"])
def test_a_table_wraps_an_array_as_a_tensor_of_its_device(order: list[str]) -> None:
    """Law: a table wraps an array as a Tensor of its device, whichever of its devices is used first."""
    tables = {xp.Device(text).table for text in order}
    for backend in (xp.zeros(1, dtype=xp.float32, device=t).backend for t in tables):
        backend._only_class = None  # the state after loading
    for text in order:
        x = xp.zeros(2, dtype=xp.float32, device=text)
        for _ in range(2):
            wrapped = x.backend.wrap(x.array)
            assert type(wrapped) is type(x)
            assert (wrapped.device, wrapped.requires_grad) == (x.device, False)


WORDS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)


@given(WORDS, st.none() | WORDS, st.none() | WORDS, st.none() | st.integers(0, 99), st.booleans())
@settings(derandomize=True, deadline=None, max_examples=100)
def test_round_trips(backend: str, variant: str | None, kind: str | None, index: int | None, padded: bool) -> None:
    canonical = backend + (f"+{variant}" if variant else "") + (f":{kind}" if kind else "") + ("" if index is None else f":{index}")
    written = canonical if index is None or not padded else canonical[: -len(str(index))] + f"0{index}"
    device = xp.Device(written)
    assert str(device) == canonical
    copies = [xp.Device(str(device)), xp.Device(device), pickle.loads(pickle.dumps(device)), copy.deepcopy(device)]
    for other in (*copies, eval(repr(device), {"Device": xp.Device})):
        assert other == device
        assert hash(other) == hash(device)
    assert device == canonical
    assert canonical == device
    assert hash(device) == hash(canonical)
    assert device != f"{canonical}x"
    assert device != 3
    assert (device.backend, device.variant, device.kind, device.index) == (backend, variant, kind, index)


@pytest.mark.parametrize("text", ["", ":", "numpy:", "numpy+", "numpy::0", "a b", "1numpy", "numpy:0:cpu", "numpy:-1", "+x", "numpy\n"])
def test_what_names_no_device(text: str) -> None:
    with pytest.raises(ValueError, match=r"backend\[\+variant\]\[:kind\]\[:index\]"):
        xp.Device(text)


@pytest.mark.parametrize("value", [None, 3, b"numpy", ["numpy"]])
def test_what_is_not_a_device(value: Any) -> None:
    with pytest.raises(TypeError, match="named by a string"):
        xp.Device(value)


def test_devices_are_frozen() -> None:
    device = xp.Device("numpy")
    with pytest.raises(AttributeError, match="frozen"):
        device.index = 1


@pytest.mark.parametrize("name", DEVICES)
def test_a_tensor_knows_its_device(name: str) -> None:
    x = xp.ones(2, device=name)
    assert x.device == name
    assert isinstance(x.device, xp.Device)
    assert (x * x)[0].device == name
    assert xp.zeros_like(x).device == name
    assert xp.asarray([1.0], device=xp.Device(name)).device == name
    assert ("device=" in repr(x)) == (name != "numpy")


def test_raw_arrays_bring_their_device() -> None:
    import array_api_strict as strict

    with xp.default_device("numpy+readonly"):
        assert xp.asarray(np.ones(2)).device == "numpy+readonly"  # NumPy's arrays have no device
        assert xp.asarray(strict.asarray([1.0])).device == "strict"
        assert xp.asarray(strict.asarray([1.0], device=strict.Device("device1"))).device == "strict:device1"
        assert xp.asarray([1.0]).device == "numpy+readonly"
        assert xp.asarray(strict.asarray([1.0, 2.0]), device="numpy").tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="copy=False"):
        xp.asarray(strict.asarray([1.0]), device="numpy", copy=False)


# -- the default -------------------------------------------------------------------------------------------------------------------


def test_default_device_contexts_nest_and_are_left_on_errors() -> None:
    assert xp.get_default_device() == "numpy"
    with xp.default_device("strict"):
        assert xp.ones(1).device == "strict"
        with pytest.raises(KeyError, match="readonly"), xp.default_device("numpy+readonly"):
            {}[xp.tensor(1.0).device]
        assert xp.arange(3).device == "strict"
    assert xp.get_default_device() == "numpy"


def test_the_default_device_is_local_to_its_context() -> None:
    found = []

    def work() -> None:
        found.append(xp.get_default_device())
        xp.set_default_device("strict")
        found.append(xp.get_default_device())

    copy_context().run(work)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == ["numpy", "strict", "numpy", "strict"]
    assert xp.get_default_device() == "numpy"


@pytest.mark.parametrize(("device", "error"), [
    ("nowhere", xp.BackendNotFoundError), ("numpy:gpu", ValueError), ("a b", ValueError), (3, TypeError),
])  # fmt: skip
def test_a_default_that_does_not_exist_changes_nothing(device: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        xp.set_default_device(device)
    with pytest.raises(error), xp.default_device(device):
        pass
    assert xp.get_default_device() == "numpy"


def test_a_shorter_name_becomes_the_devices_own() -> None:
    with xp.default_device("strict"):
        assert str(xp.get_default_device()) == "strict"


@pytest.mark.slow(one_in=3)
@pytest.mark.parametrize(
    ("value", "expected"), [("numpy+readonly", "numpy+readonly"), ("", "numpy"), (" ", "numpy"), ("cpu", "numpy"), (None, "numpy")]
)
def test_the_environment_sets_the_first_default(value: str | None, expected: str) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "XPGRAD_DEVICE"} | ({} if value is None else {"XPGRAD_DEVICE": value})
    code = "import xpgrad as xp; print(xp.ones(1).device, xp.get_default_device())"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected, expected]


# -- general names ---------------------------------------------------------------------------------------------------------------


def test_cpu_is_the_default_device_on_the_host() -> None:
    assert xp.ones(2, device="cpu").device == "numpy"
    assert xp.ones(2, device="cpu:0").device == "numpy"
    for default in ("numpy+readonly", "strict"):
        with xp.default_device(default):
            assert xp.ones(2, device="cpu").device == default
            assert xp.ones(2, device="numpy").to_device("cpu").device == default
            assert xp.ones(2, device="numpy").to("cpu").device == default
    with xp.default_device("cpu"):
        assert xp.get_default_device() == "numpy"
    with pytest.raises(ValueError, match="the host is one device"):
        xp.ones(2, device="cpu:1")


#: A backend whose arrays are NumPy's, with two devices that call themselves CUDA's.
GENERAL = """
import xpgrad as xp
from xpgrad.backend import BackendInfo
from xpgrad_numpy._backend import NumPyBackend

class Table(NumPyBackend):
    name = "pretended"
    is_host = False
    def devices(self):
        return [xp.Device("pretended:cuda:0"), xp.Device("pretended:cuda:1")]

def load(variant):
    if {fails}:
        raise ImportError("no driver")
    return Table()

xp.register_backend(BackendInfo("pretended", load, install="pip install xpgrad", cuda={cuda}))
for name in ("cuda", "cuda:1", "cuda:2"):
    try:
        print(xp.ones(1, device=name).device)
    except xp.BackendNotFoundError as error:
        print(error)
"""


def _general(**options: Any) -> list[str]:
    environment = os.environ | {"XPGRAD_BACKENDS": "numpy,pretended"}
    done = subprocess.run([sys.executable, "-c", GENERAL.format(**options)], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_cuda_is_the_first_device_that_is_ready() -> None:
    first, second, third = _general(cuda=True, fails=False)
    assert (first, second) == ("pretended:cuda:0", "pretended:cuda:1")
    assert third == (
        "no backend has the device 'cuda:2'; of those that are registered, these could: backend 'pretended' has 2 CUDA devices"
    )


def test_without_a_device_the_backends_that_could_have_one_are_named() -> None:
    for line in _general(cuda=True, fails=True):
        assert "these could: backend 'pretended' is registered but not available" in line
        assert "pip install xpgrad`" in line
    for line in _general(cuda=False, fails=False):
        assert line.endswith("these could: none")


# -- mixing ------------------------------------------------------------------------------------------------------------------------

PAIRS = [("numpy", "strict"), ("strict", "strict:device1"), ("numpy", "numpy+readonly"), ("strict:device1", "numpy")]
CALLS = {
    "add": lambda a, b: a + b, "matmul": lambda a, b: a @ b, "concat": lambda a, b: xp.concat([a, b]),
    "where": lambda a, b: xp.where(a > 0, a, b),
    "tensordot": lambda a, b: xp.tensordot(a, b, axes=1), "vecdot": xp.vecdot, "stack": lambda a, b: xp.stack([a, b]),
    "setitem": lambda a, b: a.__setitem__(0, b[0]), "in place": lambda a, b: a.add_(b),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_mixing_raises_and_names_both(pair: tuple[str, str], call: str) -> None:
    a, b = (xp.ones((2, 2), device=d) for d in pair)
    with pytest.raises(xp.DeviceMismatchError) as caught:
        CALLS[call](a, b)
    assert isinstance(caught.value, RuntimeError)
    for device in pair:
        assert f" {device} (shape" in str(caught.value)
    assert "to_device" in str(caught.value)
    assert a.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_0d_tensors_of_a_device_that_is_not_a_host_do_not_mix() -> None:
    with pytest.raises(xp.DeviceMismatchError):
        xp.ones(2) * xp.tensor(2.0, device="strict")


@pytest.mark.parametrize("target", ["numpy+readonly", "strict", "strict:device1"])
@pytest.mark.parametrize("order", ["first", "second"])
def test_0d_host_tensors_mix_and_their_gradient_returns(target: str, order: str) -> None:
    s, x = xp.tensor(3.0, requires_grad=True), xp.tensor([1.0, 2.0], device=target, requires_grad=True)
    y = s * x * x if order == "first" else x * x * s
    assert y.device == target
    gs, gx = grad(xp.sum(y), [s, x], create_graph=True)
    assert gs.device == "numpy"
    assert gx.device == target
    assert gs.item() == 5.0
    assert gx.tolist() == [6.0, 12.0]
    (second,) = grad(xp.sum(gx), s)  # d/ds of sum(2 s x)
    assert second.device == "numpy"
    assert second.item() == 6.0
    xp.sum(x * s).backward()
    assert s.grad.device == "numpy"
    assert s.grad.item() == 3.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("target", ["strict", "numpy+readonly", "bare"])
def test_0d_host_tensors_are_weak(target: str, batched: bool, dtype: str) -> None:
    """A 0-d host Tensor is weak like a Python number, as in PyTorch, so it mixes with a device that lacks its dtype."""
    kernels_only.register()
    s = xp.tensor(2.0, dtype=dtype, requires_grad=True)
    i = xp.tensor(3, dtype="int64")
    x = xp.asarray(np.asarray([[1.0, 2.0]], dtype="float32"), device=target).requires_grad_()
    for f in (lambda v: v * s, lambda v: s * v, lambda v: xp.where(v > 1, v, s), lambda v: v * s * i, lambda v: xp.maximum(i, v) * s):
        y = xp.func.vmap(f)(x) if batched else f(x)
        assert y.dtype is xp.float32
        assert y.device == target
        gs, gx = grad(xp.sum(y), [s, x])
        assert (str(gs.dtype), gx.dtype, gs.device) == (dtype, xp.float32, "numpy")
    with xp.no_grad():
        assert (x * i).dtype is xp.float32
    whole = xp.asarray(np.asarray([3], dtype="int32"), device=target)
    assert (whole * i).dtype is xp.int32
    assert (whole * s).dtype is (xp.float32 if target == "bare" else xp.float64)  # the default dtype of the kind


def test_several_0d_tensors_promote() -> None:
    s, t = xp.tensor(2.0, dtype="float64"), xp.tensor(2.0, dtype="float32", device="numpy+readonly")
    assert (s * t).dtype is (t * s).dtype is xp.float64
    assert (s * t.to_device("strict")).dtype is xp.float32  # a 0-d Tensor elsewhere is not weak


def test_scalars_live_wherever_they_are_needed(xpgrad_device: str) -> None:
    for device in {xpgrad_device, "strict:device1"}:
        x = xp.tensor([1.0, -2.0], device=device, requires_grad=True)
        for y in (x + 1, 2 - x, x**2, xp.maximum(x, 0.0), xp.where(x > 0, 1.5, x), xp.clip(x, -1, 1), np.float64(2.0) * x):
            assert y.device == device
            assert grad(xp.sum(y), x)[0].device == device


RULES_ON_DEVICE_1 = {
    "duplicates": lambda x: x[xp.asarray([0, 0, 1], device=x.device)], "mask": lambda x: x[x > 0], "slices": lambda x: x[1:] * x[:-1],
    "take_along_axis": lambda x: xp.take_along_axis(x, xp.asarray([[1, 1], [0, 1]], device=x.device), axis=1),
    "pad": lambda x: xp.pad(x, 1),
    "repeat": lambda x: xp.repeat(x, 2), "meshgrid": lambda x: xp.meshgrid(x[0], x[1])[0], "max": lambda x: xp.max(x, axis=0),
    "pow": lambda x: (x * x + 1) ** xp.abs(x), "reduce": lambda x: xp.mean(x) * xp.prod(x) + xp.sum(xp.std(x, axis=0)),
    "sort": lambda x: xp.sort(x), "cumulative": lambda x: xp.cumulative_prod(x, axis=1) + xp.cumulative_sum(x, axis=0),
    "tril": lambda x: xp.tril(x),
    "matmul": lambda x: x @ x[0] @ x, "diff": lambda x: xp.diff(x, axis=0), "full": lambda x: xp.full_like(x, xp.sum(x)),
    "einsum": lambda x: xp.einsum("ii->", x) * x, "complex": lambda x: xp.abs(x + 1j * x * x), "stack": lambda x: xp.stack([x, x]),
    "astype": lambda x: xp.astype(x, "float32") * 1.0, "var": lambda x: xp.var(x),
}  # fmt: skip


@pytest.mark.parametrize("name", RULES_ON_DEVICE_1)
def test_rules_make_their_constants_where_the_operands_are(name: str) -> None:
    """Rules create constants on the operands' device; on the library's default device they would raise here."""
    if name == "astype":
        x = xp.tensor([1.0, 2.0], device="strict:device1", requires_grad=True)
        assert grad(xp.sum(RULES_ON_DEVICE_1[name](x)), x)[0].device == "strict:device1"
        return
    check(RULES_ON_DEVICE_1[name], [numbers((2, 2))], "strict:device1")


# -- moving ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", DEVICES)
@pytest.mark.parametrize("target", DEVICES)
def test_moving_is_differentiable(source: str, target: str) -> None:
    x = xp.tensor(numbers((2, 3)), device=source, requires_grad=True)
    y = x.to_device(target)
    assert (y is x) == (source == target)
    assert y.device == target
    np.testing.assert_array_equal(values(y), numbers((2, 3)))
    seed = xp.asarray(numbers((2, 3), 2.0), device=target)
    (g,) = grad(y * y, x, seed, create_graph=True)
    assert g.device == source
    np.testing.assert_allclose(values(g), 2 * numbers((2, 3)) * numbers((2, 3), 2.0))
    (h,) = grad(xp.sum(g * g), x)
    assert h.device == source
    np.testing.assert_allclose(values(h), 8 * numbers((2, 3)) * numbers((2, 3), 2.0) ** 2)
    for again in (xp.asarray(x, device=target), x.to(target), x.to(device=target), xp.astype(x, x.dtype, device=target)):
        assert again.device == target
        assert again.requires_grad


def test_moving_copies_and_keeps_the_dtype() -> None:
    x = xp.tensor([1.0, 2.0], dtype="float32")
    y = x.to_device("strict")
    y.add_(1.0)
    assert x.tolist() == [1.0, 2.0]
    assert y.tolist() == [2.0, 3.0]
    assert y.dtype is xp.float32
    assert xp.tensor([True, False]).to_device("strict").dtype is xp.bool


def test_moving_without_recording() -> None:
    x = xp.tensor([1.0], requires_grad=True)
    with xp.no_grad():
        assert not x.to_device("strict").requires_grad
    with xp.inference_mode():
        assert x.to_device("strict").is_inference()


def test_a_graph_over_three_devices_runs_backward() -> None:
    x = xp.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).to_device("strict").to_device("strict:device1") * 3.0
    z = y.to_device("numpy+readonly") + x.to_device("numpy+readonly")
    z.backward(xp.ones_like(z))
    assert x.grad.device == "numpy"
    assert x.grad.tolist() == [7.0, 13.0]


def test_where_tensors_cannot_go() -> None:
    x = xp.ones(2)
    with pytest.raises(xp.BackendNotFoundError):
        x.to_device("nowhere")
    with pytest.raises(ValueError, match="no device 'strict:device7'"):
        x.to_device("strict:device7")


@pytest.mark.parametrize("name", DEVICES)
def test_copies_keep_the_device(name: str) -> None:
    x = xp.tensor([1.0, 2.0], device=name, requires_grad=True)
    xp.sum(x).backward()
    for again in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert again.device == name
        assert again.requires_grad
        assert again.grad.device == name
