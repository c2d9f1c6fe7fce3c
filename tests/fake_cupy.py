"""A stand-in for CuPy made of NumPy, as a pytest plugin (`-p fake_cupy`): what the CuPy table does in Python is tested without a GPU.

It knows CuPy's ways that matter to the table: arrays at 0-d, atomic addition for some dtypes only, streams, events, no `record_stream`.
What a GPU does is not tested by it.
"""

from __future__ import annotations

import sys
import threading
import types
from typing import Any

import numpy as np

__all__ = ["install"]


class ndarray(np.ndarray):  # noqa: N801 (CuPy's name)
    """NumPy's array with a device; reductions stay 0-d arrays."""

    @property
    def device(self) -> Any:
        return Device(0)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array.view(ndarray)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _wrapped(super().__array_function__(func, types, args, kwargs))  # type: ignore[misc]

    def __getitem__(self, key: Any) -> Any:
        out = super().__getitem__((*key, ...) if isinstance(key, tuple) and Ellipsis not in [k for k in key if k is ...] else key)
        return out if isinstance(out, ndarray) else super().__getitem__((key, ...)).view(ndarray)


class Device:
    """One device."""

    def __init__(self, number: int = 0) -> None:
        self.id = number

    def __enter__(self) -> Device:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def synchronize(self) -> None:
        pass


class Event:
    """An event that is reached at once."""

    done = True

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        assert disable_timing


class Stream:
    """A stream that does its work at once."""

    _count = 0
    _current = threading.local()

    def __init__(self) -> None:
        Stream._count += 1
        self.ptr = Stream._count
        self.waits: list[Event] = []

    def __enter__(self) -> Stream:
        stack = self._current.__dict__.setdefault("stack", [])
        stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        self._current.stack.pop()

    def record(self, event: Event | None = None) -> Event:
        return event or Event(disable_timing=True)

    def wait_event(self, event: Event) -> None:
        self.waits.append(event)

    def synchronize(self) -> None:
        pass

    def is_capturing(self) -> bool:
        return False


_NULL = Stream()
_ATOMIC = {np.dtype(name) for name in ("float16", "float32", "float64", "int32", "uint32", "uint64")}


def _scatter(ufunc: Any) -> Any:
    def scatter(a: Any, slices: Any, value: Any) -> None:
        if a.dtype not in _ATOMIC:
            msg = f"scatter only supports int32, float16, float32, float64, uint32, uint64, but got {a.dtype}"
            raise TypeError(msg)
        ufunc.at(a, slices, value)

    return scatter


def _wrapped(x: Any) -> Any:
    if isinstance(x, (np.ndarray, np.generic)):
        return np.asarray(x).view(ndarray)
    if isinstance(x, (tuple, list)):
        return type(x)(*map(_wrapped, x)) if hasattr(x, "_fields") else type(x)(map(_wrapped, x))
    return x


def _mirror(name: str, source: Any) -> Any:
    """A module whose functions are those of `source`, with this module's arrays as results."""
    module: Any = types.ModuleType(name)
    for key in dir(source):
        if key.startswith("_"):
            continue
        value = getattr(source, key)
        if callable(value) and not isinstance(value, type):
            value = (lambda f: lambda *args, **kwargs: _wrapped(f(*args, **kwargs)))(value)
        if not isinstance(value, types.ModuleType):
            setattr(module, key, value)
    module.__all__ = [key for key in dir(module) if not key.startswith("_")]
    return module


def install() -> None:
    """Make it importable as `cupy` and `cupyx`."""
    np.seterr(all="ignore")  # a GPU does not warn
    cupy = _mirror("cupy", np)
    cupy.__version__ = "0 (stand-in)"
    cupy.ndarray = ndarray
    cupy.__path__ = []
    cupy.asnumpy = lambda x: np.array(x).view(np.ndarray)
    cupy.bool = np.bool_
    cuda: Any = types.ModuleType("cupy.cuda")
    cuda.__path__ = []
    device: Any = types.ModuleType("cupy.cuda.device")
    device.Device = Device
    cuda.Device, cuda.Stream, cuda.Event = Device, Stream, Event
    cuda.is_available = lambda: True
    cuda.runtime = types.SimpleNamespace(getDeviceCount=lambda: 1)
    cuda.get_current_stream = lambda number=None: (Stream._current.__dict__.get("stack") or [_NULL])[-1]
    cupy.cuda = cuda
    cupyx: Any = types.ModuleType("cupyx")
    cupyx.scatter_add, cupyx.scatter_max = _scatter(np.add), _scatter(np.maximum)
    cupy.linalg, cupy.fft = _mirror("cupy.linalg", np.linalg), _mirror("cupy.fft", np.fft)
    sys.modules.update(
        {"cupy": cupy, "cupy.cuda": cuda, "cupy.cuda.device": device, "cupyx": cupyx, "cupy.linalg": cupy.linalg, "cupy.fft": cupy.fft}
    )


install()
