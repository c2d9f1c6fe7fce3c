"""The Tensor classes: one per backend, which gets the generated operations, and a subclass of it per device.

A single comparison of classes therefore shows whether two operands share a backend and a device.
"""

from __future__ import annotations

from typing import Any

from xpgrad._basics.device import Device

_bases: tuple[type, ...] = ()  # `Tensor`, in a layer above, registers itself when it is imported


def use(*bases: type) -> None:
    """Set the base classes of the backends' classes."""
    global _bases
    _bases = bases


def backend_class(backend: Any) -> Any:
    """Return a new Tensor class for one backend, on which the generated operations are set."""
    return type("Tensor", _bases, {"__slots__": (), "backend": backend, "__module__": "xpgrad", "__qualname__": "Tensor"})


def device_class(backend: Any, device: Device) -> Any:
    """Return a new Tensor class for one device."""
    body = {"__slots__": (), "device": device, "__module__": "xpgrad", "__qualname__": "Tensor"}
    return type("Tensor", (backend.tensor_base,), body)
