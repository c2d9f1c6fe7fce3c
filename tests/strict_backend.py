"""array-api-strict as a second backend: what the standard does not have is an error there, so a rule that passes uses the standard only.

Written as a plugin would be, with public names: everything that it does not define is the default in Array API calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xpgrad import Device
from xpgrad.backend import Backend, BackendInfo, Capabilities
from xpgrad.registry import backend_names, register_backend

__all__ = ["INFO", "register"]


class StrictBackend(Backend):
    """Arrays of the reference namespace, on two of its pretended devices, neither of which counts as the host."""

    name = "strict"
    capabilities = Capabilities(devices=True)
    is_host = False

    def __init__(self) -> None:
        super().__init__()
        import array_api_strict

        self.library = array_api_strict
        self.host = array_api_strict.Device("CPU_DEVICE")
        self.places = {Device("strict"): self.host, Device("strict:device1"): array_api_strict.Device("device1")}

    def namespace(self) -> Any:
        return self.library

    def array_types(self) -> tuple[type, ...]:
        return (type(self.library.asarray(0)),)

    def from_host(self, array: Any, device: Device) -> Any:
        return self.library.asarray(array, device=self.places[device], copy=True)

    def to_host(self, x: Any) -> Any:
        import numpy as np

        return np.asarray(x.to_device(self.host))

    def device_of(self, x: Any) -> Device:
        return next(device for device, place in self.places.items() if place == x.device)

    def to_device(self, x: Any, device: Device) -> Any:
        return x.to_device(self.places[device])

    def devices(self) -> Sequence[Device]:
        return tuple(self.places)

    def creation_options(self, device: Device) -> dict[str, Any]:
        return {"device": self.places[device]}

    def may_alias(self, x: Any, y: Any) -> bool:
        import numpy as np

        return bool(np.may_share_memory(self.to_host(x), self.to_host(y)))


def load(variant: str | None) -> Backend:
    """Make the backend."""
    return StrictBackend()


INFO = BackendInfo(name="strict", load=load, array_modules=("array_api_strict",), install="pip install array-api-strict")


def register() -> None:
    """Make it known, once."""
    if "strict" not in backend_names():
        register_backend(INFO)
