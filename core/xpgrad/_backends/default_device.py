"""The default device of this context."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from xpgrad._backends.classes import tensor_class
from xpgrad._basics.device import Device
from xpgrad._modes.setting import Setting

__all__ = ["as_device", "default_device", "get_default_device", "set_default_device"]

_DEFAULT: ContextVar[Device | None] = ContextVar("xpgrad_default_device", default=None)


def get_default_device() -> Device:
    """The device of Tensors made from Python data: set in this context, else ``XPGRAD_DEVICE``, else ``numpy``."""
    return _DEFAULT.get() or Device(os.environ.get("XPGRAD_DEVICE") or "numpy")


def set_default_device(device: str | Device) -> None:
    """Set the default device of this context.

    Raises
    ------
    BackendNotFoundError, BackendLoadError, ValueError
        If there is no such device; the default then stays as it was.
    """
    _DEFAULT.set(_checked(device))


def default_device(device: str | Device) -> AbstractContextManager[None]:
    """Use `device` as the default one inside a `with` block, or in a function that it decorates.

    Raises
    ------
    BackendNotFoundError, BackendLoadError, ValueError
        If there is no such device.
    """
    return Setting(_DEFAULT, _checked(device))


def _checked(device: str | Device) -> Device:
    resolved: Device = tensor_class(Device(device)).device
    return resolved


def as_device(device: Any) -> Device:
    """The Device that `device` names; `None` is the default one."""
    return get_default_device() if device is None else Device(device)
