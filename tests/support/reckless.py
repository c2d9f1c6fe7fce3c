"""A backend whose kernels never check keys: an index out of range silently reads or writes another element.

Libraries that clamp or wrap indices behave like this, and one that does neither would access foreign memory. Then only the core protects
users. It is written like a plugin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from xpgrad import Device
from xpgrad.backend import Backend, BackendInfo, Capabilities
from xpgrad.registry import backend_names, register_backend

__all__ = ["RecklessBackend", "register"]

_DEVICE = Device("reckless")


def _valid_key(key: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Return a key that never fails: indices out of range wrap around, and parts that do not fit are dropped."""
    out: list[Any] = []
    axis = 0
    for part in key if isinstance(key, tuple) else (key,):
        if part is None or axis >= len(shape):
            continue
        if part is Ellipsis or isinstance(part, slice):
            out.append(slice(None))
        elif isinstance(part, int):
            out.append(part % max(shape[axis], 1))
        else:
            out.append((np.asarray(part).reshape(-1)[:1].astype(int)) % max(shape[axis], 1))
        axis += 1
    return tuple(out)


def _read(x: Any, key: Any) -> Any:
    try:
        return np.asarray(x[key])
    except (IndexError, ValueError, TypeError):
        return np.asarray(x[_valid_key(key, x.shape)])


def _write(buffer: Any, key: Any, value: Any) -> Any:
    try:
        buffer[key] = value
    except (IndexError, ValueError, TypeError):
        buffer[_valid_key(key, buffer.shape)] = np.asarray(value).reshape(-1)[0]
    return buffer


def _take_along(x: Any, indices: Any, axis: int) -> Any:
    return np.take_along_axis(x, indices % x.shape[axis], axis)


class RecklessBackend(Backend):
    """NumPy arrays with kernels that accept any key."""

    name = "reckless"
    capabilities = Capabilities()
    overrides: ClassVar[dict[str, Callable[..., Any]]] = {
        "index_basic": _read, "gather": _read, "written": _write, "put": lambda x, value, key: _write(np.array(x), key, value),
        "take_along_axis": lambda x, indices, *, axis=-1: _take_along(x, indices, axis),
        "from_front": lambda indices, n, axis, like: indices % n,
    }  # fmt: skip

    def namespace(self) -> Any:
        import array_api_compat.numpy as namespace

        return namespace

    def array_types(self) -> tuple[type, ...]:
        return (np.ndarray,)

    def from_host(self, array: Any, device: Device) -> Any:
        return np.array(array)

    def to_host(self, x: Any) -> Any:
        return np.asarray(x)

    def device_of(self, x: Any) -> Device:
        return _DEVICE

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (_DEVICE,)

    def own(self, tensor: Any) -> Any:
        tensor._array = array = np.asarray(tensor._array)
        return array

    def update(self, x: Any, key: Any, value: Any) -> Any:
        return _write(x, key, value)


def register() -> None:
    """Register the backend unless it is registered already."""
    if "reckless" not in backend_names():
        register_backend(BackendInfo(name="reckless", load=lambda variant: RecklessBackend(), install="part of the tests"))
