"""The simulated backend: two devices, each with streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from xpgrad import Device
from xpgrad.backend import Backend, Capabilities
from xpgrad_simstream import streams
from xpgrad_simstream.array import SimArray, launch, namespace, read

__all__ = ["SimBackend"]

_DEVICES = (Device("simstream"), Device("simstream:1"))


class SimBackend(Backend):
    """The backend of NumPy arrays on simulated streams."""

    name = "simstream"
    capabilities = Capabilities(streams=True, devices=True, dlpack=False)
    is_host = False

    def namespace(self) -> Any:
        return namespace

    def array_types(self) -> tuple[type, ...]:
        return (SimArray,)

    def from_host(self, array: Any, device: Device) -> Any:
        value = np.array(array)
        stream = streams.current(device.index or 0)
        out = SimArray(value, streams.make_garbage(value), streams.Storage(stream), device.index or 0)
        copy, memory = value.copy(), out.memory
        stream.put(lambda: memory.__setitem__(..., copy), "a copy from the host", [], [out.storage])
        return out

    def to_host(self, x: Any) -> Any:
        return read(x)

    def device_of(self, x: Any) -> Device:
        return _DEVICES[x.place]

    def to_device(self, x: Any, device: Device) -> Any:
        return x if device == self.device_of(x) else self.from_host(read(x), device)

    def devices(self) -> Sequence[Device]:
        return _DEVICES

    def creation_options(self, device: Device) -> dict[str, Any]:
        return {"device": str(device)}

    def may_alias(self, x: Any, y: Any) -> bool:
        return x.storage is y.storage

    def find_dtype(self, name: str) -> Any:
        return None if name == "bfloat16" else np.dtype(name)

    def through_host(self, name: str, function: Callable[..., Any], *args: Any, signature: str = "") -> Any:
        return launch(name, function, *args)  # the function is queued as any other kernel

    # -- streams -------------------------------------------------------------------------------------------------

    def current_stream(self, device: Device) -> Any:
        return streams.current(device.index or 0)

    def stream_guard(self, stream: Any) -> AbstractContextManager[Any]:
        return streams.use(stream)

    def record_event(self, stream: Any) -> Any:
        return stream.record()

    def wait_event(self, stream: Any, event: Any) -> None:
        stream.wait(event)

    def keep_alive(self, x: Any, stream: Any) -> None:
        x.storage.keep(stream)

    def synchronize(self, device: Device) -> None:
        streams.synchronize()
