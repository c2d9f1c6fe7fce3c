"""Get and set the default device of this context, and resolve device names."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from xpgrad._backends.classes import tensor_class
from xpgrad._backends.loading import allowed_names, backend_for, backend_names, load_info
from xpgrad._basics.device import Device
from xpgrad._modes.setting import Setting
from xpgrad.errors import BackendLoadError, BackendNotFoundError

_DEFAULT: ContextVar[Device | None] = ContextVar("xpgrad_default_device", default=None)
#: Names that stand for a device of any backend that has one, as in PyTorch.
_GENERAL = ("cpu", "cuda")
_HOST = Device("numpy")
#: The device named by the environment; it is read only once, because reading takes as long as making a small array.
_NAMED = os.environ.get("XPGRAD_DEVICE", "").strip()


def get_default_device() -> Device:
    """Return the default device, on which Tensors are made from Python data.

    Returns
    -------
    Device
        The device set in this context; else that of the environment variable ``XPGRAD_DEVICE`` when xpgrad was imported; else ``numpy``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.get_default_device()
    Device('numpy')
    """
    found = _DEFAULT.get()
    if found is not None:
        return found
    return _resolve(Device(_NAMED)) if _NAMED else _HOST


def set_default_device(device: str | Device) -> None:
    """Set the default device of this context.

    Parameters
    ----------
    device : Device or str
        A device or its name; ``"cpu"`` and ``"cuda"`` stand for a device of an installed backend.

    Raises
    ------
    BackendNotFoundError, BackendLoadError, ValueError
        There is no such device. The default does not change.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.set_default_device("numpy")
    >>> xp.get_default_device()
    Device('numpy')
    """
    _DEFAULT.set(_check_device(device))


def default_device(device: str | Device) -> AbstractContextManager[None]:
    """Set the default device for a ``with`` block or a decorated function.

    Parameters
    ----------
    device : Device or str
        The default device inside the block.

    Returns
    -------
    context manager
        Leaving it restores the former default.

    Raises
    ------
    BackendNotFoundError, BackendLoadError, ValueError
        There is no such device.

    Examples
    --------
    >>> import xpgrad as xp
    >>> with xp.default_device("numpy+readonly"):
    ...     x = xp.zeros((2,))
    >>> x.device
    Device('numpy+readonly')
    """
    return Setting(_DEFAULT, _check_device(device))


def _check_device(device: str | Device) -> Device:
    resolved: Device = tensor_class(_resolve(Device(device))).device
    return resolved


def as_device(device: Any) -> Device:
    """Return the Device with a name; None is the default device.

    ``"cpu"`` is the default device if that uses host memory, else ``"numpy"``. ``"cuda"`` and ``"cuda:1"`` are devices of the first
    backend, by name, that is ready and has CUDA devices. A registered backend with one of these names has precedence.

    Raises
    ------
    BackendNotFoundError
        ``"cuda"`` was asked for, and no backend has such a device; the message names backends that could.
    ValueError
        No device has that number.
    """
    return get_default_device() if device is None else _resolve(Device(device))


def _resolve(device: Device) -> Device:
    """Replace a general name ("cpu", "cuda") by a device of a backend; return any other device unchanged."""
    name = device.backend
    if name not in _GENERAL or device.variant is not None or device.kind is not None or name in backend_names():
        return device
    return _of_the_host(device) if name == "cpu" else _with_cuda(device)


def _of_the_host(device: Device) -> Device:
    if device.index not in (None, 0):
        msg = f"device {str(device)!r}: the host is one device; write 'cpu', or name a backend's device, e.g. 'numpy'"
        raise ValueError(msg)
    default = _DEFAULT.get()
    if default is None and _NAMED and Device(_NAMED).backend not in _GENERAL:
        default = Device(_NAMED)
    if default is not None:
        cls = tensor_class(default)
        if cls.backend.on_host(cls.device):
            return cls.device
    return _HOST


def _with_cuda(device: Device) -> Device:
    reasons = []
    allowed = allowed_names()
    for name in backend_names():
        try:
            if not load_info(name, allowed).cuda:
                continue
            found = backend_for(name).cuda_devices()
        except BackendLoadError as exc:
            reasons.append(str(exc))
            continue
        if len(found) > (device.index or 0):
            return found[device.index or 0]
        reasons.append(f"backend {name!r} has {len(found) or 'no'} CUDA device{'s' * (len(found) != 1)}")
    msg = f"no backend has the device {str(device)!r}; of those that are registered, these could: {'; '.join(reasons) or 'none'}"
    raise BackendNotFoundError(msg)
