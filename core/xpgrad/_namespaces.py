"""The namespace of each device: the package, but creation functions called without `device` create on that device.

The Array API gives a function that takes an array one way to make another on the same device: ``x.__array_namespace__().zeros(n)``. The
namespace that a Tensor returns therefore knows the Tensor's device, and code that knows nothing of devices runs on all of them.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from xpgrad._backends.classes import tensor_class
from xpgrad._backends.default_device import as_device, default_device, get_default_device
from xpgrad._basics.device import Device
from xpgrad._hints import missing_name
from xpgrad._info import NamespaceInfo

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

#: The functions that make an array on the default device, by module; `astype` does of a NumPy array.
MAKERS = {
    "xpgrad": ("arange", "asarray", "astype", "empty", "eye", "from_dlpack", "full", "linspace", "ones", "tensor", "zeros"),
    "xpgrad.fft": ("fftfreq", "rfftfreq"),
}


def namespace(device: Device | str | None = None) -> ModuleType:
    """Return the namespace whose functions create arrays on a device unless `device` is given.

    Parameters
    ----------
    device : Device or str, optional
        Device of the namespace; the default device by default.

    Returns
    -------
    module
        For the default device the package `xpgrad` itself; for any other one an object with all of the package's names, the same one
        each time. Its creation functions, `asarray`, `tensor`, `from_dlpack`, ``fft.fftfreq`` and ``fft.rfftfreq`` create arrays on
        `device`, as does `astype` of a NumPy array, and its inspection functions describe it. A Tensor, or another library's array that is
        not in the host's memory, stays on its device.

    Raises
    ------
    BackendNotFoundError, BackendLoadError, ValueError
        If there is no such device.

    Notes
    -----
    ``x.__array_namespace__()`` returns it for a Tensor `x` on that device (Array API 2025.12, `__array_namespace__`).

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.namespace() is xp
    True
    """
    there = tensor_class(as_device(device)).device
    return sys.modules["xpgrad"] if there == tensor_class(get_default_device()).device else _device_namespace(there)


@functools.cache
def _device_namespace(device: Device) -> DeviceNamespace:
    return DeviceNamespace("xpgrad", device)


def _unpickle(name: str, device: str) -> Any:
    """Return the namespace or module `name` of a device, for pickle."""
    found = _device_namespace(tensor_class(Device(device)).device)
    return found if name == "xpgrad" else getattr(found, name.removeprefix("xpgrad."))


class DeviceNamespace(ModuleType):
    """The package, or one of its modules, with a default device."""

    def __init__(self, name: str, device: Device) -> None:
        super().__init__(name, importlib.import_module(name).__doc__)
        self._device = device

    def __getattr__(self, name: str) -> Any:
        whole = importlib.import_module(self.__name__)
        of_the_module = name.startswith("__") and not name.startswith("__array_") and name not in ("__all__", "__version__")
        if of_the_module or not hasattr(whole, name):
            place = self.__name__.removeprefix("xpgrad").removeprefix(".")
            raise AttributeError(f"{self!r} has no attribute {name!r}" if of_the_module else missing_name(repr(self), name, place))
        found = getattr(whole, name)
        if name in MAKERS.get(self.__name__, ()):
            found = _bind_device(self._device, found)
        elif (inner := f"{self.__name__}.{name}") in MAKERS:
            found = DeviceNamespace(inner, self._device)
        elif name == "__array_namespace_info__":
            found = functools.partial(NamespaceInfo, self._device)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return dir(importlib.import_module(self.__name__))

    def __repr__(self) -> str:
        return f"<namespace {self.__name__!r} for device {str(self._device)!r}>"

    def __reduce__(self) -> Any:
        return _unpickle, (self.__name__, str(self._device))


def _bind_device(home: Device, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a creation function whose default device is `home`."""

    @functools.wraps(function)
    def made(*args: Any, **kwargs: Any) -> Tensor:
        with default_device(home):
            return function(*args, **kwargs)

    return made
