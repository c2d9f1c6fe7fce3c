"""A backend with read-only arrays whose slices are copies: in-place writing must work without shared memory.

Its arrays are read-only NumPy arrays: each kernel returns new memory, and an update makes a new array. It is written like a plugin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xpgrad import Device
from xpgrad.backend import Backend, BackendInfo, Capabilities
from xpgrad.registry import backend_names, register_backend

__all__ = ["INFO", "register"]


def _own(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x)(*map(_own, x)) if hasattr(x, "_fields") else type(x)(map(_own, x))
    if not isinstance(x, (np.ndarray, np.generic)):
        return x
    out = np.array(x)
    out.flags.writeable = False
    return out


class FrozenBackend(Backend):
    """A backend of immutable arrays without views and without strides."""

    name = "frozen"
    capabilities = Capabilities(mutable=False, view_aliases=False)
    operators = False
    shares_input = False

    def namespace(self) -> Any:
        import array_api_compat.numpy as namespace

        return namespace

    def array_types(self) -> tuple[type, ...]:
        return (np.ndarray,)

    def from_host(self, array: Any, device: Device) -> Any:
        return _own(array)

    def adopt(self, x: Any) -> Any:
        return _own(x)

    def to_host(self, x: Any) -> Any:
        return x

    def device_of(self, x: Any) -> Device:
        return Device("frozen")

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (Device("frozen"),)

    def wrap_kernel(self, name: str, function: Any) -> Any:
        if not callable(function) or isinstance(function, type):
            return function
        return lambda *args, **options: _own(function(*args, **options))


def load(variant: str | None) -> Backend:
    """Return the backend."""
    return FrozenBackend()


INFO = BackendInfo(name="frozen", load=load, install="part of the tests")


def register() -> None:
    """Register the backend unless it is registered already."""
    if "frozen" not in backend_names():
        register_backend(INFO)
