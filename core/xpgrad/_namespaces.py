"""The namespace of each device: the package, but what is made there without a `device` is made on that device.

The Array API gives a function that is handed an array one way to make another beside it: ``x.__array_namespace__().zeros(n)``. So the
namespace that a Tensor answers with knows the Tensor's device, and code that never heard of devices runs on all of them.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._backends.classes import class_for_array, tensor_class
from xpgrad._backends.default_device import as_device, get_default_device
from xpgrad._basics.device import Device
from xpgrad._basics.scalars import is_raw_array
from xpgrad._info import NamespaceInfo

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["CREATION", "DeviceNamespace", "namespace"]

#: The functions that make an array of their device, by the module that has them; those named `*_like` have an array to follow.
CREATION = {
    "": ("arange", "empty", "eye", "full", "linspace", "ones", "zeros"),
    "fft": ("fftfreq", "rfftfreq"),
}
#: The functions that make an array from data, which may be on a device already.
CONVERSION = ("asarray", "from_dlpack", "tensor")


def namespace(device: Device | str | None = None) -> ModuleType:
    """The namespace whose functions make arrays on a device, unless they are told otherwise.

    Parameters
    ----------
    device : Device or str, optional
        As everywhere; ``None`` is the default device.

    Returns
    -------
    module
        For the default device the package `xpgrad` itself; for any other an object with all of the package's names, the same one
        each time. Its creation functions, `asarray`, `tensor`, `from_dlpack`, ``fft.fftfreq`` and ``fft.rfftfreq`` make arrays on
        `device`, and its inspection functions describe it. What is on a device already, a Tensor or another library's array that is
        not in the host's memory, stays there.

    Raises
    ------
    BackendNotFoundError, BackendLoadError, ValueError
        If there is no such device.

    Notes
    -----
    It is what ``x.__array_namespace__()`` returns for a Tensor `x` on that device (Array API 2024.12, `__array_namespace__`).

    >>> import xpgrad as xp
    >>> xp.namespace() is xp
    True
    """
    default = get_default_device()
    found = _SEEN.get((device, default)) if isinstance(device, Device) else None
    if found is None:
        there = tensor_class(as_device(device)).device
        found = sys.modules["xpgrad"] if there == tensor_class(default).device else _of(there)
        if there == device:  # the general names stand for one device today and for another tomorrow
            _SEEN[there, default] = found
    return found


#: The namespaces that were asked for, by their device and the default one.
_SEEN: dict[tuple[Device, Device], ModuleType] = {}


@functools.cache
def _of(device: Device) -> DeviceNamespace:
    return DeviceNamespace("xpgrad", device)


def _again(name: str, device: str) -> Any:
    """Return a pickled namespace."""
    found = _of(tensor_class(Device(device)).device)
    return found if name == "xpgrad" else getattr(found, name.removeprefix("xpgrad."))


class DeviceNamespace(ModuleType):
    """The package, or one of its modules, as seen from a device."""

    def __init__(self, name: str, device: Device) -> None:
        super().__init__(name, sys.modules["xpgrad"].__doc__)
        self._device = device

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__array_api_version__", "__array_namespace_info__", "__version__", "__all__"):
            raise AttributeError(f"{self!r} has no attribute {name!r}")
        whole = importlib.import_module(self.__name__)
        try:
            found = getattr(whole, name)
        except AttributeError as exc:
            raise AttributeError(f"{self!r} has no attribute {name!r}") from exc
        inner = self.__name__.partition(".")[2]
        if name in CREATION.get(inner, ()):
            found = _made_on(self._device, found)
        elif not inner and name in CONVERSION:
            found = _brought_to(self._device, found)
        elif not inner and name in CREATION:
            found = DeviceNamespace(f"xpgrad.{name}", self._device)
        elif name == "__array_namespace_info__":
            found = functools.partial(NamespaceInfo, self._device)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self.__name__))

    def __repr__(self) -> str:
        return f"<namespace {self.__name__!r} for device {str(self._device)!r}>"

    def __reduce__(self) -> Any:
        return _again, (self.__name__, str(self._device))


def _made_on(home: Device, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A creation function whose default device is this one."""

    @functools.wraps(function)
    def made(*args: Any, device: Any = None, **kwargs: Any) -> Tensor:
        return function(*args, device=home if device is None else device, **kwargs)

    return made


def _brought_to(home: Device, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function that makes a Tensor from data, which brings what is on no device of its own to this one."""

    @functools.wraps(function)
    def made(data: Any, /, *args: Any, device: Any = None, **kwargs: Any) -> Tensor:
        if device is None and not _settled(data):
            device = home
        return function(data, *args, device=device, **kwargs)

    return made


def _settled(data: Any) -> bool:
    """Return whether some data is on a device already: numbers, lists and the host's arrays are not."""
    if isinstance(data, TensorBase):
        return True
    if not is_raw_array(data):
        return False
    home = class_for_array(data)
    return home is not None and not home.backend.is_host
