"""The CuPy backend: arrays on CUDA devices, streams and events, and memory that several streams use."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar

import cupy
import numpy as np

from xpgrad.backend import DTYPES, Backend, Capabilities, Device, DType
from xpgrad.errors import BackendLoadError
from xpgrad_cupy import _graphs, _kernels

__all__ = ["CuPyBackend", "CuPyStream"]

_FROM_RAW = {np.dtype(name): dtype for name, dtype in DTYPES.items() if name != "bfloat16"}
_TO_RAW = {dtype: raw for raw, dtype in _FROM_RAW.items()}


class CuPyStream:
    """A stream together with its device: CuPy's null stream does not know its device."""

    __slots__ = ("index", "raw")

    def __init__(self, index: int, raw: Any) -> None:
        self.index, self.raw = index, raw

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CuPyStream) and other.index == self.index and other.raw.ptr == self.raw.ptr

    def __hash__(self) -> int:
        return hash((self.index, self.raw.ptr))

    def __repr__(self) -> str:
        return f"CuPyStream(device={self.index}, ptr={self.raw.ptr:#x})"


class CuPyBackend(Backend):
    """CuPy arrays on the CUDA devices of this process.

    Raises
    ------
    BackendLoadError
        If there is no CUDA device.
    """

    name = "cupy"
    # NB: the device adds values for the same position atomically, but in no fixed order.
    capabilities = Capabilities(strides=True, streams=True, devices=True, jit=True, deterministic_scatter=False)
    array_type = cupy.ndarray
    is_host = False
    weak_scalars = True
    overrides: ClassVar[dict[str, Callable[..., Any]]] = _kernels.KERNELS

    def __init__(self) -> None:
        super().__init__()
        if not cupy.cuda.is_available():
            msg = f"CuPy {cupy.__version__} is installed, but finds no CUDA device; check the driver, e.g. with `nvidia-smi`"
            raise BackendLoadError(msg)
        self.count = int(cupy.cuda.runtime.getDeviceCount())
        self._devices = tuple(Device(f"cupy:{k}") for k in range(self.count))
        # A single device is always the current one; with several, `wrap_kernel` runs kernels on their operands' device.
        self.operators = self.count == 1
        self._raw_to_dtype = dict(_FROM_RAW)
        self._dtype_to_raw = dict(_TO_RAW)
        self._pending: deque[tuple[Any, Any]] = deque()  # arrays that streams may still read, each with the event after the last read

    def namespace(self) -> Any:
        from xpgrad_cupy._namespace import namespace

        return namespace()

    def array_types(self) -> tuple[type, ...]:
        return (cupy.ndarray,)

    def from_host(self, array: Any, device: Device) -> Any:
        with cupy.cuda.Device(device.index or 0):
            return cupy.array(array, copy=True)

    def special(self, name: str) -> Callable[..., Any] | None:
        from xpgrad_cupy._special import function  # NB: loads cupyx.scipy

        return function(name)

    def sparse_matrix(self, values: Any, columns: Any, starts: Any, shape: tuple[int, int]) -> Any:
        from cupyx.scipy.sparse import csr_matrix  # NB: loads a module that few programs need

        with values.device:
            return csr_matrix((values, cupy.asarray(columns), cupy.asarray(starts)), shape=shape)

    def to_host(self, x: Any) -> Any:
        with x.device:
            return cupy.asnumpy(x)  # waits for the current stream

    def device_of(self, x: Any) -> Device:
        return self._devices[x.device.id]

    def to_device(self, x: Any, device: Device) -> Any:
        if x.device.id == (device.index or 0):
            return x
        cupy.cuda.get_current_stream(x.device.id).synchronize()  # the copy is queued on the other device
        with cupy.cuda.Device(device.index or 0):
            return cupy.array(x, copy=True)

    def devices(self) -> Sequence[Device]:
        return self._devices

    def cuda_devices(self) -> Sequence[Device]:
        return self._devices

    def get_rng_state(self, device: Device) -> Any:
        # NB: CuPy does not reveal the state of its global generator. So the generator is reseeded with a number drawn from itself, which
        # serves as its state: the numbers that follow differ, but depend only on the user's seed. Drawing waits for the device, which a
        # stream that captures a graph cannot do.
        if self.is_capturing(device):
            return None
        with cupy.cuda.Device(device.index or 0):
            generator = cupy.random.get_random_state()
            state = int(generator.tomaxint())
            generator.seed(state)
            return state

    def set_rng_state(self, device: Device, state: Any) -> None:
        with cupy.cuda.Device(device.index or 0):
            cupy.random.get_random_state().seed(state)

    def creation_options(self, device: Device) -> dict[str, Any]:
        return {} if self.count == 1 else {"device": cupy.cuda.Device(device.index or 0)}

    def ones(self, shape: tuple[int, ...], dtype: DType, device: Device) -> Any:
        with cupy.cuda.Device(device.index or 0):
            return cupy.ones(shape, _TO_RAW[dtype])

    def wrap_kernel(self, name: str, function: Any) -> Any:
        if name in ("fourier", "real_to_half", "half_to_real"):
            # NB: CuPy caches cuFFT's plans with their work areas. A graph would go on using the work area of a plan that was evicted.
            function = _graphs.forbid_capture(function, "a Fourier transform")
        if self.count == 1 or not callable(function) or isinstance(function, type):
            return function
        return _run_on_operands_device(function)

    # -- dtypes and layout ---------------------------------------------------------------------------------------

    def find_dtype(self, name: str) -> Any:
        return None if name == "bfloat16" else np.dtype(name)

    def is_complex(self, x: Any) -> bool:
        return bool(x.dtype.kind == "c")

    def strides(self, x: Any) -> tuple[int, ...]:
        return tuple(s // x.itemsize for s in x.strides)

    def same_layout(self, x: Any, like: Any) -> bool:
        if like.flags.c_contiguous or not _is_dense(like):
            return bool(x.flags.c_contiguous)
        return bool(x.strides == like.strides)

    def with_layout(self, x: Any, like: Any) -> Any:
        with x.device:
            out = cupy.empty_like(like, dtype=x.dtype) if _is_dense(like) else cupy.empty(like.shape, x.dtype)
            out[...] = x
            return out

    def may_alias(self, x: Any, y: Any) -> bool:
        return bool(cupy.may_share_memory(x, y))

    def update(self, x: Any, key: Any, value: Any) -> Any:
        with x.device:
            return super().update(x, key, value)

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return _graphs.CompiledFunction(function)

    # -- streams -------------------------------------------------------------------------------------------------

    def current_stream(self, device: Device) -> CuPyStream:
        index = device.index or 0
        return CuPyStream(index, cupy.cuda.get_current_stream(index))

    def stream_guard(self, stream: CuPyStream) -> AbstractContextManager[Any]:
        # Another thread does not use the capture's allocator.
        _graphs.check_not_capturing(stream.raw, "a backward pass in another thread")
        return _guard(stream)

    def record_event(self, stream: CuPyStream) -> Any:
        _graphs.check_not_capturing(stream.raw, "a backward pass over several streams")
        with cupy.cuda.Device(stream.index):
            return stream.raw.record(cupy.cuda.Event(disable_timing=True))

    def wait_event(self, stream: CuPyStream, event: Any) -> None:
        with cupy.cuda.Device(stream.index):
            stream.raw.wait_event(event)

    def keep_alive(self, x: Any, stream: CuPyStream) -> None:
        # NB: CuPy has no `record_stream`: a block returns to the pool of the stream on which it was allocated as soon as nothing refers
        # to it, so this keeps a reference until the streams that read it are done.
        pending = self._pending
        pending.append((self.record_event(stream), x))
        while pending and pending[0][0].done:
            pending.popleft()

    def synchronize(self, device: Device) -> None:
        cupy.cuda.Device(device.index or 0).synchronize()
        self._pending.clear()

    def is_capturing(self, device: Device) -> bool:
        return bool(cupy.cuda.get_current_stream(device.index or 0).is_capturing())


@contextmanager
def _guard(stream: CuPyStream) -> Iterator[None]:
    with cupy.cuda.Device(stream.index), stream.raw:
        yield


def _is_dense(x: Any) -> bool:
    """Return whether the elements of `x` fill a block of memory, each once (LAY-01: "non-overlapping and dense")."""
    expected = x.itemsize
    for stride, size in sorted((s, n) for s, n in zip(x.strides, x.shape) if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def _run_on_operands_device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a kernel so that the device of its first array, or its option `device`, is the current one while it runs."""

    @functools.wraps(function)
    def guarded(*args: Any, **options: Any) -> Any:
        found = next((a for a in (*args, *(args[0] if args and isinstance(args[0], list) else ())) if isinstance(a, cupy.ndarray)), None)
        device = options.get("device") if found is None else found.device
        if device is None:
            return function(*args, **options)
        with device:
            return function(*args, **options)

    return guarded
