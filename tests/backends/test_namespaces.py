"""Law: code that creates arrays with a Tensor's namespace creates them on the Tensor's device, whatever the default device is."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xpgrad as xp
from xpgrad._namespaces import MAKERS

#: A device that always exists, for use as another default.
OTHER = "numpy+readonly"
MADE: dict[str, Callable[[Any], Any]] = {
    "arange": lambda ns: ns.arange(3.0), "empty": lambda ns: ns.empty((2, 3)), "eye": lambda ns: ns.eye(2),
    "full": lambda ns: ns.full((2,), 3.0), "linspace": lambda ns: ns.linspace(0, 1, 5), "ones": lambda ns: ns.ones(2),
    "zeros": lambda ns: ns.zeros(2), "fft.fftfreq": lambda ns: ns.fft.fftfreq(4), "fft.rfftfreq": lambda ns: ns.fft.rfftfreq(4),
    "asarray": lambda ns: ns.asarray([1.0, 2.0]), "tensor": lambda ns: ns.tensor(np.float32(1.0)),
    "from_dlpack": lambda ns: ns.from_dlpack(np.ones(2, dtype=np.float32)),
    "astype": lambda ns: ns.astype(np.ones(2, dtype=np.float32), ns.bool),
}  # fmt: skip


def test_every_function_that_takes_a_device_is_in_the_tables() -> None:
    found = set()
    for place, module in (("", xp), ("fft.", xp.fft), ("linalg.", xp.linalg), ("func.", xp.func)):
        for name in module.__all__:
            function = getattr(module, name)
            if callable(function) and not isinstance(function, type) and "device" in inspect.signature(function).parameters:
                found.add(place + name)
    # These take the device from an array, or are about devices.
    found -= {name for name in found if name.endswith("_like")} | {"set_default_device", "default_device", "namespace"}
    assert found == {f"{module}.{name}".removeprefix("xpgrad.") for module, names in MAKERS.items() for name in names}
    assert found == set(MADE)


@pytest.mark.parametrize("name", MADE)
def test_what_a_namespace_makes_is_on_its_device(name: str, xpgrad_device: str) -> None:
    for device in (xpgrad_device, OTHER):
        for default in (xpgrad_device, "numpy", OTHER):
            with xp.default_device(default):
                out = MADE[name](xp.namespace(device))
                assert out.device == xp.ones(1, device=device).device
                np.testing.assert_array_equal(out.to_device("cpu").numpy().shape, MADE[name](xp).shape)
    assert xp.namespace(OTHER).ones(2, device="numpy").device == xp.Device("numpy")  # an explicit device wins


def test_a_tensor_has_the_namespace_of_its_device(xpgrad_device: str) -> None:
    x = xp.ones(3, device=xpgrad_device, requires_grad=True)
    own = xp.namespace(xpgrad_device)
    seen: list[Any] = []

    def look(v: Any) -> Any:
        ns = v.__array_namespace__()
        seen.append(ns)
        return ns.sum(v * ns.asarray(2.0, dtype=v.dtype) + ns.zeros((), dtype=v.dtype))

    look(x).backward()
    assert x.grad.device == x.device
    np.testing.assert_array_equal(x.grad.to_device("cpu").numpy(), [2.0, 2.0, 2.0])
    xp.func.vmap(look)(xp.ones((2, 3), device=xpgrad_device))
    xp.func.grad(look)(x)
    with xp.inference_mode():
        look(xp.ones(3, device=xpgrad_device))
    assert all(ns is own for ns in seen)
    with xp.default_device(xpgrad_device):
        assert x.__array_namespace__() is xp
        assert (xp.ones(1, device=OTHER).__array_namespace__() is xp) == (xpgrad_device == OTHER)
    with pytest.raises(ValueError, match=r"2024\.12"):
        x.__array_namespace__(api_version="1999.12")


def test_a_namespace_is_one_object_and_has_all_of_the_package() -> None:
    ns = xp.namespace(OTHER)
    assert ns is xp.namespace(xp.Device(OTHER)) is xp.ones(1, device=OTHER).__array_namespace__()
    assert xp.namespace() is xp is xp.namespace("numpy") is xp.namespace("cpu")
    for one in (ns, ns.fft):
        assert pickle.loads(pickle.dumps(one)) is one
        assert copy.deepcopy(one) is copy.copy(one) is one
    assert repr(ns) == "<namespace 'xpgrad' for device 'numpy+readonly'>"
    assert repr(ns.fft) == "<namespace 'xpgrad.fft' for device 'numpy+readonly'>"
    assert dir(ns) == dir(xp)
    assert ns.__name__ == "xpgrad"
    for name in xp.__all__:
        assert callable(getattr(ns, name)) == callable(getattr(xp, name))
    assert ns.sin is xp.sin
    assert ns.linalg is xp.linalg
    assert ns.float32 is xp.float32
    assert inspect.signature(ns.zeros) == inspect.signature(xp.zeros)
    assert ns.zeros.__doc__ == xp.zeros.__doc__
    for name in ("nothing", "__path__"):
        with pytest.raises(AttributeError, match=f"namespace 'xpgrad' for device 'numpy.readonly'> has no attribute '{name}'"):
            getattr(ns, name)
    with pytest.raises(xp.BackendNotFoundError):
        xp.namespace("nowhere")


def test_what_is_on_a_device_already_stays_there(xpgrad_device: str) -> None:
    ns, x = xp.namespace(OTHER), xp.ones(2, device=xpgrad_device, requires_grad=True)
    assert ns.asarray(x) is x
    assert ns.tensor(x.detach()).device == x.device
    assert ns.asarray(x, device=OTHER).device == xp.Device(OTHER)
    assert ns.asarray(np.ones(2)).device == xp.Device(OTHER)
    assert ns.asarray([x[0], 2.0]).device == x.device
    assert ns.asarray([x[0], 2.0], device=OTHER).device == xp.Device(OTHER)
    assert ns.asarray([1.0, 2.0]).device == xp.Device(OTHER)
    raw = x.detach().array
    assert ns.asarray(raw).device == (xp.Device(OTHER) if isinstance(raw, np.ndarray) else x.device)


def test_a_tensor_is_brought_by_dlpack_to_the_device_that_is_asked_for(xpgrad_device: str) -> None:
    x = xp.asarray([1.0, 2.0], dtype=xp.float32)
    out = xp.from_dlpack(x, device=xpgrad_device)
    assert out.device == xp.ones(1, device=xpgrad_device).device
    np.testing.assert_array_equal(out.to_device("cpu").numpy(), [1.0, 2.0])


def test_the_inspection_is_of_the_device(xpgrad_device: str) -> None:
    info, there = xp.namespace(xpgrad_device).__array_namespace_info__(), xp.ones(1, device=xpgrad_device).device
    assert info.default_device() == there
    whole = xp.__array_namespace_info__()
    assert info.default_dtypes() == whole.default_dtypes(device=there)
    assert info.dtypes() == whole.dtypes(device=there)
    assert there in info.devices()
    with xp.default_device(there):
        assert info.capabilities() == xp.__array_namespace_info__().capabilities()
    assert info.default_dtypes(device="numpy") == whole.default_dtypes(device="numpy")


def test_the_inspection_of_a_device_that_has_less(monkeypatch: Any) -> None:
    backend = xp.ones(1, device=OTHER).backend
    monkeypatch.setattr(backend, "default_dtype", lambda kind, device: xp.float32)
    monkeypatch.setattr(backend, "dtypes", lambda: [xp.float32])
    info = xp.namespace(OTHER).__array_namespace_info__()
    assert info.default_dtypes()["real floating"] is xp.float32
    assert info.default_dtypes(device="numpy")["real floating"] is xp.float64
    assert info.dtypes() == {"float32": xp.float32}
    assert "float64" in info.dtypes(device="numpy")
    assert xp.namespace(OTHER).zeros(2).dtype is xp.float32


def test_a_namespace_inside_of_a_compiled_function(xpgrad_device: str) -> None:
    x = xp.asarray([1.0, 2.0], device=xpgrad_device)
    step = xp.compile(lambda v: v.__array_namespace__().sum(v * v.__array_namespace__().arange(1.0, 3.0)))
    for _ in range(2):
        out = step(x)
        assert out.device == x.device
        assert out.item() == 5.0


def test_other_libraries_helpers_find_it() -> None:
    compat = pytest.importorskip("array_api_compat")
    x = xp.ones(2, device=OTHER)
    assert compat.array_namespace(x, x * 2) is xp.namespace(OTHER)
    assert not compat.is_numpy_namespace(xp.namespace(OTHER))
    assert compat.device(x) == xp.Device(OTHER)
