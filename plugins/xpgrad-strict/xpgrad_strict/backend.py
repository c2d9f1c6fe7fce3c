"""The backend of array-api-strict's arrays, on two of its simulated devices. It uses the default kernels only."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from types import FunctionType, ModuleType
from typing import Any

import array_api_strict

from xpgrad import Device
from xpgrad.backend import Backend, Capabilities
from xpgrad.errors import CapabilityError
from xpgrad_strict import VERSIONS

__all__ = ["MissingFunctionError", "StrictBackend"]

_chosen: list[str] = []


class MissingFunctionError(CapabilityError, AttributeError):
    """A version of the standard lacks a function. It is also an AttributeError, so that `getattr` with a default works."""


class _Namespace:
    """The namespace of array-api-strict, or an extension of it; errors for missing functions name the version of the standard."""

    def __init__(self, inner: Any, version: str, name: str = "") -> None:
        self._inner, self._version, self._name = inner, version, name

    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(self._inner, name)
        except (AttributeError, RuntimeError) as exc:
            if name.startswith("__"):
                raise AttributeError(name) from exc
            raise self._make_error(name) from exc
        if isinstance(found, ModuleType):
            found = _Namespace(found, self._version, f"{name}.")
        elif isinstance(found, FunctionType):
            found = self._check_version(found, name)
            if name in ("broadcast_to", "diagonal"):
                found = _give_writable_views(found)
        setattr(self, name, found)
        return found

    def _check_version(self, function: Any, name: str) -> Any:
        """Return a function that raises `MissingFunctionError` if the version lacks it.

        NB: array-api-strict has the functions of later versions, and raises RuntimeError when they are called.
        """

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            try:
                return function(*args, **options)
            except RuntimeError as exc:
                if "requires API version" in str(exc):
                    raise self._make_error(name) from exc
                raise

        return call

    def _make_error(self, name: str) -> MissingFunctionError:
        msg = f"version {self._version} of the standard, which array-api-strict follows here, has no function `{self._name}{name}`"
        return MissingFunctionError(msg)


def _give_writable_views(function: Any) -> Any:
    """Return a function of an array whose views can be written to if the array can. NB: NumPy hands out some read-only views."""

    @functools.wraps(function)
    def call(x: Any, /, *args: Any, **options: Any) -> Any:
        out = function(x, *args, **options)
        if x._array.flags.writeable:
            out._array.flags.writeable = True
        return out

    return call


class StrictBackend(Backend):
    """The backend of array-api-strict's arrays.

    Parameters
    ----------
    variant : str or None
        The version of the standard, with a hyphen; None for the latest.

    Raises
    ------
    RuntimeError
        If this process already follows another version; array-api-strict has one setting per process.
    """

    name = "strict"
    capabilities = Capabilities(devices=True)
    is_host = False

    def __init__(self, variant: str | None) -> None:
        super().__init__()
        self.variant = variant
        self.table_name = self.name if variant is None else f"{self.name}+{variant}"
        wanted = VERSIONS[variant] if variant else array_api_strict.get_array_api_strict_flags()["api_version"]
        if _chosen and _chosen[0] != wanted:
            msg = (
                f"array-api-strict follows version {_chosen[0]} of the standard in this process, and can't follow {wanted} as well; use "
                "another process"
            )
            raise RuntimeError(msg)
        array_api_strict.set_array_api_strict_flags(api_version=wanted)
        _chosen[:] = [wanted]
        self.library = _Namespace(array_api_strict, wanted)
        self.host = array_api_strict.Device("CPU_DEVICE")
        self.places = {Device(self.table_name): self.host, Device(f"{self.table_name}:device1"): array_api_strict.Device("device1")}

    def namespace(self) -> Any:
        return self.library

    def array_types(self) -> tuple[type, ...]:
        return (type(array_api_strict.asarray(0)),)

    def from_host(self, array: Any, device: Device) -> Any:
        return array_api_strict.asarray(array, device=self.places[device], copy=True)

    def borrow(self, array: Any, device: Device) -> Any:
        return array_api_strict.asarray(array, device=self.places[device], copy=None)

    def to_host(self, x: Any) -> Any:
        import numpy as np

        return np.asarray(x.to_device(self.host))

    def on_host(self, device: Device) -> bool:
        return True  # arrays on all of its devices are NumPy arrays

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
