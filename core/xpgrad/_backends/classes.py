"""The Tensor class of a device, and of a raw array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._array.classes import device_class
from xpgrad._backends import loading
from xpgrad._backends.loading import LOADED, allowed_names, backend_for, backend_names, described
from xpgrad._basics.device import Device
from xpgrad.backend import Backend
from xpgrad.errors import BackendLoadError

_classes: dict[str, Any] = {}
_host: Backend | None = None
_listeners: list[Callable[[Any], None]] = []


def host_backend() -> Backend:
    """The table that reads Python data and prints arrays for every backend: NumPy's, also where ``XPGRAD_BACKENDS`` leaves it out."""
    global _host
    if _host is None:
        allowed = allowed_names()
        _host = backend_for("numpy") if allowed is None or "numpy" in allowed else described("numpy", None).load(None)
    return _host


def tensor_class(device: Device) -> Any:
    """The class of Tensors on `device`.

    Parameters
    ----------
    device : Device
        A device.

    Returns
    -------
    type
        The class of Tensors on the device.

    Raises
    ------
    BackendNotFoundError, BackendLoadError
        If the backend does not exist, or does not load.
    ValueError
        If the backend has no such device.

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


def when_class_is_made(listener: Callable[[Any], None]) -> None:
    """Call `listener` with each Tensor class, one per device, as it is made; for backends that must tell their library of them.

    Parameters
    ----------
    listener : callable
        Gets the class.

    Examples
    --------
    >>> from xpgrad import registry
    >>> made = []
    >>> registry.when_class_is_made(made.append)
    """
    _listeners.append(listener)


def class_for_array(array: Any) -> Any:
    """The Tensor class for a raw array, by its type; None if no registered backend takes it.

    The backend that shares its name with the array's library comes first, whichever are loaded: the answer does not depend on what was used
    before, and no other plugin is imported to find it.

    Parameters
    ----------
    array : array
        A raw array.

    Returns
    -------
    type or None
        The class of Tensors; None if no backend takes the array.

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
                info = described(name, allowed_names())
            except BackendLoadError:
                continue  # a broken plugin must not prevent the use of an array that may belong to another
            if top not in info.array_modules:
                continue
            backend = backend_for(name)
        if isinstance(array, backend.array_types()):
            return tensor_class(backend.device_of(array))
    return None


# `backend` is below and cannot import these: it is handed them.
Backend._tensor_class = staticmethod(tensor_class)
Backend._host = staticmethod(host_backend)
