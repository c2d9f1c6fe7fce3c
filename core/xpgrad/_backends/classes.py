"""Find the Tensor class of a device or of a raw array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._array.classes import device_class
from xpgrad._backends import loading
from xpgrad._backends.loading import LOADED, allowed_names, backend_for, backend_names, load_info
from xpgrad._basics.device import Device
from xpgrad.backend import Backend
from xpgrad.errors import BackendLoadError

_classes: dict[str, Any] = {}
_host: Backend | None = None
_listeners: list[Callable[[Any], None]] = []


def host_backend() -> Backend:
    """Return the NumPy backend, which reads Python data and prints arrays for all backends, even if ``XPGRAD_BACKENDS`` excludes it."""
    global _host
    if _host is None:
        allowed = allowed_names()
        _host = backend_for("numpy") if allowed is None or "numpy" in allowed else load_info("numpy", None).load(None)
    return _host


def tensor_class(device: Device) -> Any:
    """Return the class of Tensors on a device, and make it at its first use.

    Parameters
    ----------
    device : Device
        A device.

    Returns
    -------
    type
        A subclass of `xpgrad.Tensor`.

    Raises
    ------
    BackendNotFoundError
        No backend has that name.
    BackendLoadError
        The backend does not load.
    ValueError
        The backend has no such device.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad import registry
    >>> registry.tensor_class(xp.Device("numpy")) is type(xp.ones((2,)))
    True
    """
    cls = _classes.get(device._text)
    if cls is None:
        backend = backend_for(device.table)
        devices = list(backend.devices())
        wanted = device if device in devices else None
        if wanted is None and device.kind is None and device.index is None:
            wanted = devices[0]
        if wanted is None:
            msg = f"backend {device.table!r} has no device {str(device)!r}; its devices: {', '.join(map(repr, map(str, devices)))}"
            raise ValueError(msg)
        with loading.LOCK:
            cls = _classes.get(str(wanted))
            if cls is None:
                cls = device_class(backend, wanted)
                for listener in _listeners:
                    listener(cls)
            _classes[str(wanted)] = _classes[str(device)] = cls
    return cls


def classes_in_use() -> list[Any]:
    """Return the classes of Tensors on the devices that have been used."""
    return list(dict.fromkeys(_classes.copy().values()))


def when_class_is_made(listener: Callable[[Any], None]) -> None:
    """Register a function that is called with each new Tensor class, so that a backend can register the class with its library.

    Parameters
    ----------
    listener : callable
        A function of the class.

    Examples
    --------
    >>> from xpgrad import registry
    >>> made = []
    >>> registry.when_class_is_made(made.append)
    """
    _listeners.append(listener)


def class_for_array(array: Any) -> Any:
    """Return the Tensor class for a raw array by the array's type.

    The backend with the name of the array's library is tried first, whether it is loaded or not. So the result does not depend on the
    backends used before, and other plugins need not be imported.

    Parameters
    ----------
    array : array
        A raw array.

    Returns
    -------
    type or None
        None if no registered backend takes the array.

    Examples
    --------
    >>> import numpy as np
    >>> import xpgrad as xp
    >>> from xpgrad import registry
    >>> registry.class_for_array(np.ones(2)) is type(xp.ones((2,)))
    True
    """
    top = type(array).__module__.partition(".")[0]
    backend = LOADED.get(top)
    if backend is not None and isinstance(array, backend.array_types()):
        return tensor_class(backend.device_of(array))
    for name in sorted(backend_names(), key=lambda n: n != top):
        backend = LOADED.get(name)
        if backend is None:
            try:
                info = load_info(name, allowed_names())
            except BackendLoadError:
                continue  # a broken plugin must not prevent the use of an array that may belong to another
            if top not in info.array_modules:
                continue
            backend = backend_for(name)
        if isinstance(array, backend.array_types()):
            return tensor_class(backend.device_of(array))
    return None


# `backend` is in a lower layer and cannot import these functions, so they are passed to it.
Backend._tensor_class = staticmethod(tensor_class)
Backend._host = staticmethod(host_backend)
