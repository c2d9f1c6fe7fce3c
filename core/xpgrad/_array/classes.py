"""The classes of Tensors: one per backend, on which the generated operations are put, and one per device below it.

So one comparison of classes tells that two operands share a backend and a device.
"""

from __future__ import annotations

from typing import Any

from xpgrad._basics.device import Device

_public: Any = None  # `Tensor`, which is in a layer above: it registers itself when it is loaded


def use(tensor: Any) -> None:
    """Make the classes of backends subclasses of this one."""
    global _public
    _public = tensor


def backend_class(backend: Any) -> Any:
    """The class of Tensors of one backend: the generated operations are put on it."""
    return type("Tensor", (_public,), {"__slots__": (), "backend": backend, "__module__": "xpgrad", "__qualname__": "Tensor"})


def device_class(backend: Any, device: Device) -> Any:
    """The class of Tensors on one device."""
    body = {"__slots__": (), "device": device, "__module__": "xpgrad", "__qualname__": "Tensor"}
    return type("Tensor", (backend.tensor_base,), body)
