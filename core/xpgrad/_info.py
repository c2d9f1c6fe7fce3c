"""`__array_namespace_info__`: the capabilities of the namespace in the standard's terms (Array API 2025.12, Inspection)."""

from __future__ import annotations

from typing import Any

from xpgrad import registry
from xpgrad._backends.classes import tensor_class
from xpgrad._backends.default_device import as_device, get_default_device
from xpgrad._backends.loading import backend_for
from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DTYPES, DType, isdtype

#: xpgrad's additional dtypes, which are not in the standard's list of names.
_FURTHER = ("float16", "bfloat16")


class NamespaceInfo:
    """The inspection functions of a namespace. Answers that depend on the backend are for one device, by default that of the namespace.

    Parameters
    ----------
    device : Device, optional
        Device of the namespace. By default the default device at the time of each call.
    """

    def __init__(self, device: Device | None = None) -> None:
        self._device = device

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities of the device's backend: ``"boolean indexing"``, ``"data-dependent shapes"``, ``"max dimensions"``."""
        backend = backend_for(self.default_device().table)
        about = getattr(backend.namespace(), "__array_namespace_info__", None)  # older libraries have none
        return {
            "boolean indexing": backend.capabilities.boolean_indexing,
            "data-dependent shapes": backend.capabilities.data_dependent_shapes,
            "max dimensions": None if about is None else about().capabilities().get("max dimensions"),
        }

    def default_device(self) -> Device:
        """Return the device on which Tensors are created, never None; see `xpgrad.set_default_device`."""
        return get_default_device() if self._device is None else self._device

    def default_dtypes(self, *, device: Device | str | None = None) -> dict[str, DType]:
        """Return a device's default dtypes, by ``"real floating"``, ``"complex floating"``, ``"integral"`` and ``"indexing"``."""
        default = tensor_class(as_device(self._device if device is None else device)).default_dtype
        return {kind: default(kind) for kind in ("real floating", "complex floating", "integral", "indexing")}

    def dtypes(self, *, device: Device | str | None = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """Return a device's dtypes by name.

        Parameters
        ----------
        device : Device or str, optional
            Device to describe; that of the namespace by default.
        kind : str or tuple of str, optional
            Only dtypes of this kind, as in `xpgrad.isdtype`.
        """
        backend = tensor_class(as_device(self._device if device is None else device)).backend
        own = backend.dtypes()
        return {
            name: dtype
            for name, dtype in DTYPES.items()
            if dtype in own and name not in _FURTHER and (kind is None or isdtype(dtype, kind))
        }

    def devices(self) -> tuple[Device, ...]:
        """Return the devices of the loaded backends, those of the default one first; this loads no library."""
        first = backend_for(self.default_device().table)
        others = [b for b in registry.loaded_backends() if b is not first]
        return tuple(device for backend in (first, *others) for device in backend.devices())


def __array_namespace_info__() -> NamespaceInfo:
    """Return the namespace's inspection object (Array API 2025.12)."""
    return NamespaceInfo()
