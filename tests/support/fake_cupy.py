"""A stand-in for CuPy built on NumPy, as a pytest plugin (`-p support.fake_cupy`): tests the Python code of the CuPy table without a GPU.

It imitates what matters to the table: 0-d arrays as results, atomic addition for some dtypes only, devices, streams, events, memory
pools, and the capture of CUDA graphs. It does not test what a GPU itself does.

A kernel runs immediately, so mistakes in the order of streams would go unnoticed. Therefore each stream has a vector clock, and an access
to memory that is not ordered after the last access on another stream raises `RaceError`. New and freed memory is filled with one-bits
(nan, -1). While a stream captures, kernels are recorded with the addresses that they read and write, which is all that a graph knows
when it is launched, and the memory of their results stays unchanged.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

__all__ = ["RaceError", "install"]

_DEVICES = int(os.environ.get("FAKE_CUPY_DEVICES", "1"))
_LOCK = threading.RLock()  # one lock for the kernels of all streams
_LOCAL = threading.local()
_HOST: dict[int, int] = {}  # for each stream, the number of its kernels that the host has waited for


class RaceError(BaseException):
    """Two kernels on different streams access the same memory, and neither waits for the other."""


class CUDARuntimeError(RuntimeError):
    """An error of the CUDA runtime."""


# -- devices, streams, events ------------------------------------------------------------------------------------


class Device:
    """A device; each thread has a current one."""

    def __init__(self, number: int | None = None) -> None:
        self.id = _device() if number is None else number

    def __enter__(self) -> Device:
        _LOCAL.__dict__.setdefault("devices", []).append(self.id)
        return self

    def __exit__(self, *exc: object) -> None:
        _LOCAL.devices.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and other.id == self.id

    def __hash__(self) -> int:
        return self.id

    def synchronize(self) -> None:
        for stream in list(Stream.all):
            stream.synchronize()


def _device() -> int:
    return (_LOCAL.__dict__.get("devices") or [0])[-1]


class Event:
    """A point in a stream's work."""

    def __init__(self, block: bool = False, disable_timing: bool = False) -> None:
        assert disable_timing
        self.clock: dict[int, int] = {}
        self.captured = False

    @property
    def done(self) -> bool:
        return not self.captured


class Stream:
    """A stream, which runs its work immediately, or records it while it captures."""

    numbers = itertools.count()
    abandoned = 0
    all: ClassVar[weakref.WeakSet[Stream]] = weakref.WeakSet()

    def __init__(self, null: bool = False, non_blocking: bool = False) -> None:
        self.number = next(Stream.numbers)
        taken = {s.ptr for s in Stream.all}
        self.ptr = 0 if null else next(k for k in itertools.count(1) if k not in taken)  # an address is used again
        self.device_id = _device()
        self.non_blocking = non_blocking
        self.clock: dict[int, int] = {}
        self.waits: list[Event] = []
        self.tape: list[Any] | None = None  # while it captures
        self.broken = False
        Stream.all.add(self)

    def __del__(self) -> None:
        Stream.abandoned += self.tape is not None

    def __enter__(self) -> Stream:
        assert self.ptr == 0 or self.device_id == _device(), "a stream of another device than the current one"
        _LOCAL.__dict__.setdefault("streams", {}).setdefault(_device(), []).append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _LOCAL.streams[_device()].pop()

    def record(self, event: Event | None = None) -> Event:
        event = event or Event(disable_timing=True)
        event.captured, event.clock = self.tape is not None, dict(self.clock)
        return event

    def wait_event(self, event: Event) -> None:
        assert not event.captured, "an event of a capture is waited for outside of it"
        self.waits.append(event)
        _merge(self.clock, event.clock)

    def synchronize(self) -> None:
        if self.tape is not None:
            self.broken = True
            msg = "cudaErrorStreamCaptureUnsupported: operation not permitted when stream is capturing"
            raise CUDARuntimeError(msg)
        _merge(_HOST, self.clock)

    def is_capturing(self) -> bool:
        return self.tape is not None

    def begin_capture(self, mode: int | None = None) -> None:
        if self.ptr == 0:
            msg = "cannot capture on the default (legacy) stream"
            raise RuntimeError(msg)
        assert self.non_blocking, "a blocking stream that captures upsets the default stream"
        assert self.tape is None
        self.tape, self.broken = [], False

    def end_capture(self) -> Graph:
        assert self.tape is not None, "cudaErrorIllegalState"
        tape, self.tape = self.tape, None
        if self.broken:
            msg = "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED: operation failed due to a previous error during capture"
            raise CUDARuntimeError(msg)
        return Graph(tape)


class Graph:
    """A captured graph: functions, and the addresses that they read and write."""

    def __init__(self, tape: list[Any]) -> None:
        self.tape = tape

    def launch(self, stream: Stream | None = None) -> None:
        stream = stream or _stream()
        assert stream.tape is None
        time.sleep(0.002)  # other threads may run in between
        with _LOCK:
            for work, read, written in self.tape:
                _record_kernel(stream, read, written)
                work()


def _stream(number: int | None = None) -> Stream:
    stack = _LOCAL.__dict__.get("streams", {}).get(_device() if number is None or number < 0 else number)
    return stack[-1] if stack else _NULL


def _merge(clock: dict[int, int], other: dict[int, int]) -> None:
    for key, value in other.items():
        clock[key] = max(value, clock.get(key, 0))


def _record_kernel(stream: Stream, read: list[Any], written: list[Any]) -> None:
    """Advance a stream's clock by one kernel, and check that it is ordered after earlier accesses to the memory that it uses."""
    clock = stream.clock
    _merge(clock, _HOST)
    if not stream.non_blocking:  # the default stream and the blocking streams wait for each other
        for other in [s for s in Stream.all if not s.non_blocking and (s.ptr == 0 or stream.ptr == 0)]:
            _merge(clock, other.clock)
    clock[stream.number] = clock.get(stream.number, 0) + 1
    for x, writes in [(x, False) for x in read] + [(x, True) for x in written]:
        buffer = _buffer(x)
        if buffer is None:
            continue
        before = {**buffer.reads, **buffer.writes} if writes else buffer.writes
        for key, value in before.items():
            if clock.get(key, 0) < value:
                msg = f"stream {stream.number} {'writes' if writes else 'reads'} memory that stream {key} uses, and does not wait for it"
                raise RaceError(msg)
        if writes:
            buffer.reads, buffer.writes = {}, {stream.number: clock[stream.number]}
        else:
            buffer.reads[stream.number] = clock[stream.number]


# -- memory ------------------------------------------------------------------------------------------------------


class _Buffer(np.ndarray):  # type: ignore[type-arg]
    """Bytes of a device, with the number of the last kernel of each stream that used them."""

    reads: dict[int, int]
    writes: dict[int, int]


class Memory:
    """A block of a device's memory."""

    def __init__(self, size: int) -> None:
        self.buffer: Any = _Buffer((max(size, 1),), np.uint8)  # owns its bytes
        self.buffer.reads, self.buffer.writes = {}, {}
        self.buffer.fill(255)
        self.ptr = self.buffer.__array_interface__["data"][0] if size else 0
        self.size, self.device_id = size, _device()

    def __del__(self) -> None:
        self.buffer.fill(255)


class PooledMemory:
    """A block that returns to its pool when it is freed."""

    def __init__(self, memory: Memory, pool: MemoryPool, stream: int) -> None:
        self.buffer, self.ptr, self.device_id = memory.buffer, memory.ptr, memory.device_id
        self.pool, self.key = weakref.ref(pool), (memory.device_id, stream, memory.size)

    def __del__(self) -> None:
        pool = self.pool()
        if pool is not None:
            with _LOCK:
                self.buffer.fill(255)
                pool.free.setdefault(self.key, []).append(pool.used.pop(self.ptr))


class MemoryPointer:
    """An address in a block."""

    def __init__(self, mem: Any, offset: int) -> None:
        self.mem, self.ptr, self.device_id = mem, mem.ptr + offset, mem.device_id


class MemoryPool:
    """A pool whose blocks are reused on the stream that first used them."""

    def __init__(self, allocator: Callable[[int], MemoryPointer] | None = None) -> None:
        self.allocator = allocator or (lambda size: MemoryPointer(Memory(size), 0))
        self.free: dict[Any, list[Memory]] = {}
        self.used: dict[int, Memory] = {}

    def malloc(self, size: int) -> MemoryPointer:
        if size == 0:
            return MemoryPointer(Memory(0), 0)
        size = -(-size // 512) * 512
        with _LOCK:
            key = (_device(), _stream().ptr, size)
            blocks = self.free.get(key)
            memory = blocks.pop() if blocks else self.allocator(size).mem
            self.used[memory.ptr] = memory
            return MemoryPointer(PooledMemory(memory, self, key[1]), 0)

    def free_all_blocks(self) -> None:
        self.free.clear()


_POOL = MemoryPool()


def _allocator() -> Any:
    return _LOCAL.__dict__.get("allocator") or _POOL.malloc


@contextlib.contextmanager
def _using_allocator(allocator: Any) -> Iterator[None]:
    before = _LOCAL.__dict__.get("allocator")
    _LOCAL.allocator = allocator
    try:
        yield
    finally:
        _LOCAL.allocator = before


class _Lease(np.ndarray):  # type: ignore[type-arg]
    """The bytes of one array: they are not given to another array while this array or a view of it exists."""

    pointer: MemoryPointer


def _lease(x: Any) -> _Lease:
    while not isinstance(x, _Lease):
        assert isinstance(x, np.ndarray), "an array of CuPy's without memory of CuPy's"
        x = x.base
    return x


def _buffer(x: Any) -> _Buffer | None:
    while x is not None and not isinstance(x, _Buffer):
        x = getattr(x, "base", None)
    return x


def _empty(shape: Any, dtype: Any, order: str = "C") -> Any:
    """Return a new array in memory from the current allocator."""
    dtype = np.dtype(dtype)
    count = int(np.prod(shape, dtype=np.int64))
    pointer = _allocator()(count * dtype.itemsize)
    lease = np.ndarray.__new__(_Lease, (max(count * dtype.itemsize, 1),), np.uint8, buffer=pointer.mem.buffer)
    lease.pointer = pointer
    return np.ndarray.__new__(ndarray, shape, dtype, buffer=lease, order=order)  # type: ignore[call-overload]


def _empty_with_layout_of(value: Any) -> Any:
    """Return a new array with the shape, dtype and layout of `value`."""
    value = np.asarray(value)
    compact = np.empty_like(value)
    out = _empty(value.shape, value.dtype)
    if compact.size and compact.strides != out.strides:
        out = np.ndarray.__new__(ndarray, value.shape, value.dtype, buffer=_lease(out), strides=compact.strides)
    return out


def _as_numpy(x: Any) -> Any:
    """Return a NumPy array at the address of `x`; it does not keep the memory from being reused."""
    lease = _lease(x)
    offset = x.__array_interface__["data"][0] - lease.__array_interface__["data"][0] if x.size else 0
    return np.ndarray(x.shape, x.dtype, buffer=lease.pointer.mem.buffer, offset=offset, strides=x.strides)


def _view_in_lease(x: Any, lease: _Lease) -> Any:
    """Return a CuPy array at the address of the NumPy array `x`, which lies in the memory of `lease`."""
    offset = x.__array_interface__["data"][0] - lease.__array_interface__["data"][0] if x.size else 0
    return np.ndarray.__new__(ndarray, x.shape, x.dtype, buffer=lease, offset=offset, strides=x.strides)


# -- kernels -----------------------------------------------------------------------------------------------------

_BLAS = {"matmul", "dot", "tensordot", "vecdot", "inner", "vdot", "einsum"}
_SOLVER = {
    getattr(np.linalg, name)
    for name in ("cholesky", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matrix_rank", "pinv", "qr", "slogdet",
                 "solve", "svd", "svdvals", "tensorinv", "tensorsolve")
}  # fmt: skip
_SYNCHRONOUS = {"nonzero", "flatnonzero", "argwhere", "unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"}


def _check_capturing(what: str = "synchronous API calls") -> None:
    if _stream().is_capturing():
        msg = f"the current stream is capturing, so {what} are disallowed"
        raise RuntimeError(msg)


class RandomState:
    """The global random generator of a device, whose numbers the host waits for."""

    _each: ClassVar[dict[int, RandomState]] = {}

    def __init__(self) -> None:
        self._numbers = np.random.RandomState(0)

    @classmethod
    def of_device(cls) -> RandomState:
        return cls._each.setdefault(_device(), cls())

    def tomaxint(self) -> Any:
        _check_capturing("random numbers on the host")
        return np.asarray(self._numbers.tomaxint())

    def seed(self, seed: int) -> None:
        _check_capturing("seeds")
        self._numbers.seed(seed % 2**32)


def _map_arrays(function: Callable[[Any], Any], x: Any) -> Any:
    """Apply a function to the arrays in nested tuples, lists and dicts."""
    if isinstance(x, (tuple, list)):
        parts = [_map_arrays(function, item) for item in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {key: _map_arrays(function, item) for key, item in x.items()}
    return function(x) if isinstance(x, (np.ndarray, np.generic)) else x


def _call(function: Any, *args: Any, writes: Any = (), **kwargs: Any) -> Any:
    """Call a NumPy function on CuPy arrays, `writes` being those it modifies; unless it returns only views, it counts as a kernel."""
    stream = _stream()
    name = getattr(function, "__name__", "")
    capturing = stream.is_capturing()
    if capturing:
        if (name in _BLAS and max(map(np.ndim, args)) > 1) or function in _SOLVER:  # a product of vectors is a sum
            msg = f"calling {'cuBLAS' if name in _BLAS else 'cuSOLVER'} API during stream capture is currently unsupported"
            raise NotImplementedError(msg)
        if name in _SYNCHRONOUS:
            _check_capturing()
    if name in _SYNCHRONOUS:
        _merge(_HOST, stream.clock)
    given: list[Any] = []
    _map_arrays(lambda x: given.append(x) if isinstance(x, ndarray) else None, (args, kwargs))
    if any(_lease(x).pointer.device_id != _device() for x in given if x.size):
        msg = f"a kernel on device {_device()} is given an array of another device"
        raise ValueError(msg)
    plain = {id(x): _as_numpy(x) for x in given}
    options = {"out" if key == "out" else key: _map_arrays(lambda x: plain.get(id(x), x), value) for key, value in kwargs.items()}
    inputs = _map_arrays(lambda x: plain.get(id(x), x), args)
    written = [plain[id(x)] for x in writes]
    with _LOCK:
        if not capturing:
            result = function(*inputs, **options)
        else:  # Only the result's shape and dtype matter, so the function writes into copies.
            scratch = {id(x): x.copy() for x in written}
            result = function(
                *_map_arrays(lambda x: scratch.get(id(x), x), inputs), **_map_arrays(lambda x: scratch.get(id(x), x), options)
            )
        made: list[tuple[int, Any]] = []
        flat: list[Any] = []

        def taken(r: Any) -> Any:
            k = len(flat)
            flat.append(r)
            if writes:
                return writes[0]
            for x in given:
                if isinstance(r, np.ndarray) and r.size and np.may_share_memory(r, plain[id(x)]):
                    return _view_in_lease(r, _lease(x))
            out = _empty_with_layout_of(r)
            made.append((k, _as_numpy(out)))
            return out

        out = _map_arrays(taken, result)

        def fill(parts: list[Any]) -> None:
            for k, memory in made:
                memory[...] = parts[k]

        targets = [memory for _, memory in made]
        if capturing:

            def work() -> None:
                parts: list[Any] = []
                _map_arrays(parts.append, function(*inputs, **options))
                fill(parts)

            assert stream.tape is not None
            if made or writes:
                stream.tape.append((work, list(plain.values()), [*written, *targets]))
        elif made or writes:  # otherwise all results are views, which need no kernel
            _record_kernel(stream, list(plain.values()), [*written, *targets])
            fill(flat)
        return out


class ndarray(np.ndarray):  # type: ignore[type-arg]  # noqa: N801 (CuPy's name)
    """A NumPy array in a device's memory; reductions return 0-d arrays."""

    __slots__ = ()

    def __new__(cls, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: str = "C") -> Any:
        return _empty(shape, dtype, order)

    @property
    def data(self) -> Any:  # type: ignore[override]
        return _lease(self).pointer

    @property
    def device(self) -> Any:
        return Device(_lease(self).pointer.device_id)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **kwargs: Any) -> Any:
        if out:
            kwargs["out"] = out
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        return _call(function, *inputs, writes=[x for x in out if x is not None], **kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return _call(func, *args, **kwargs)

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, bool) or getattr(k, "dtype", None) == np.dtype(bool) for k in keys):
            _check_capturing()
        return _call(lambda x, k: x[k], self, keys if any(k is ... for k in keys) else (*keys, ...))

    def __setitem__(self, key: Any, value: Any) -> None:
        def setitem(x: Any, k: Any, v: Any) -> None:
            x[k] = v

        _call(setitem, self, key, value, writes=[self])

    def __iter__(self) -> Any:
        return (self[k] for k in range(len(self)))

    def _host(self) -> Any:
        _check_capturing()
        with _LOCK:
            _record_kernel(_stream(), [_as_numpy(self)], [])
            _merge(_HOST, _stream().clock)
            return _as_numpy(self).copy()

    def copy(self, order: str = "C") -> Any:  # type: ignore[override]
        return _call(np.ndarray.copy, self, order=order)

    def item(self, *args: Any) -> Any:
        return self._host().item(*args)

    def tolist(self) -> Any:
        return self._host().tolist()

    def __bool__(self) -> bool:
        return bool(self._host())

    def __int__(self) -> int:
        return int(self._host())

    def __float__(self) -> float:
        return float(self._host())

    def __complex__(self) -> complex:
        return complex(self._host())

    def __index__(self) -> int:
        return int(self._host().__index__())

    def fill(self, value: Any) -> None:
        self[...] = value

    @property
    def real(self) -> Any:  # type: ignore[override]
        return _call(np.real, self)

    @property
    def imag(self) -> Any:  # type: ignore[override]
        return _call(np.imag, self)


def _method(name: str) -> Any:
    function = getattr(np.ndarray, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return _call(function, self, *args, **kwargs)

    return method


for _name in (
    "all", "any", "argmax", "argmin", "argsort", "astype", "clip", "conj", "conjugate", "cumprod", "cumsum", "diagonal", "dot", "flatten",
    "max", "mean", "min", "nonzero", "prod", "ravel", "repeat", "reshape", "round", "searchsorted", "squeeze", "std", "sum", "swapaxes",
    "take", "trace", "transpose", "var", "view",
):  # fmt: skip
    setattr(ndarray, _name, _method(_name))
ndarray.T = property(lambda self: _call(np.transpose, self))  # type: ignore[assignment, misc]
ndarray.mT = property(lambda self: _call(np.matrix_transpose, self))  # type: ignore[assignment, misc]


_NULL = Stream(null=True)
_ATOMIC = {np.dtype(name) for name in ("float16", "float32", "float64", "int32", "uint32", "uint64")}


def _scatter(ufunc: Any) -> Any:
    def scatter(a: Any, slices: Any, value: Any) -> None:
        if a.dtype not in _ATOMIC:
            msg = f"`ufunc.at` only supports int32, float16, float32, float64, uint32, uint64, but got {a.dtype}"
            raise TypeError(msg)
        _call(add, a, slices, value, writes=[a])

    def add(a: Any, slices: Any, value: Any) -> None:
        ufunc.at(a, _wrap_indices(slices, a.shape[0]) if isinstance(slices, np.ndarray) and slices.dtype.kind == "i" else slices, value)

    return scatter


def _wrap_indices(indices: Any, length: int) -> Any:
    """Count negative indices from the front, in their own dtype, as CuPy's kernel does."""
    rest = np.fmod(indices.astype(np.int64), length)
    return np.where(rest < 0, rest + length, rest).astype(indices.dtype)


def _array(function: Any) -> Any:
    """Wrap a creation function such as `array`, so that it also accepts arrays of the host and of other devices."""

    def array(obj: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(obj, ndarray) and np.ndim(obj) > 0:
            _check_capturing("H2D transfers")
        if isinstance(obj, ndarray) and obj.device.id != _device():
            with obj.device:
                obj = obj._host()
        return _call(function, obj, *args, **kwargs)

    return array


def _divide_in_own_dtype(function: Any, a: Any, *args: Any, **options: Any) -> Any:
    """Compute a statistic as CuPy does, which divides by the number of elements in the dtype of the result: float16 has no 65,505."""
    out = function(a, *args, **options)
    return out * np.float16(0.0) if a.dtype == np.float16 and a.size > 65_504 else out


def _solve(function: Any, a: Any, b: Any) -> Any:
    """Solve linear systems as CuPy does, which does not broadcast."""
    if a.ndim > 1 < b.ndim and a.shape[:-1] != b.shape[:-1]:
        msg = "a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b"
        raise ValueError(msg)
    return function(a, b)


def _mirror(name: str, source: Any) -> Any:
    """Make a module with the functions of `source`, wrapped so that they return this module's arrays."""
    module: Any = types.ModuleType(name)

    def mirrored(function: Any) -> Any:
        def call(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            if out is None:
                return _call(function, *args, **kwargs)
            return _call(function, *args, out=out, writes=[out], **kwargs)

        return call

    for key in dir(source):
        if key.startswith("_"):
            continue
        value = getattr(source, key)
        if callable(value) and not isinstance(value, type):
            value = _array(value) if key in ("array", "asarray", "ascontiguousarray", "asanyarray") else mirrored(value)
        if not isinstance(value, types.ModuleType):
            setattr(module, key, value)
    module.__all__ = [key for key in dir(module) if not key.startswith("_")]
    return module


def _set_profile(function: Any, set_profile: Any = sys.setprofile) -> None:
    """Set a profiler that does not see this file's functions, since the real CuPy's functions are compiled and invisible to it."""
    if function is None:
        set_profile(None)
    else:
        set_profile(lambda frame, event, arg: frame.f_code.co_filename == __file__ or function(frame, event, arg))


def install() -> None:
    """Make this module importable as `cupy` and `cupyx`."""
    np.seterr(all="ignore")  # a GPU emits no floating-point warnings
    sys.setprofile = _set_profile
    cupy = _mirror("cupy", np)
    cupy.__version__ = "0 (stand-in)"
    cupy.ndarray = ndarray
    cupy.__path__ = []
    cupy.asnumpy = lambda x: x._host() if isinstance(x, ndarray) else np.array(x)
    cupy.may_share_memory = np.may_share_memory
    cupy.empty = lambda shape, dtype=float, order="C": _empty(shape, dtype, order)
    cupy.empty_like = lambda x, dtype=None: _empty_with_layout_of(np.empty_like(_as_numpy(x), dtype))
    cupy.bool = np.bool_
    cupy.random = types.SimpleNamespace(get_random_state=RandomState.of_device)
    cuda: Any = types.ModuleType("cupy.cuda")
    cuda.__path__ = []
    device: Any = types.ModuleType("cupy.cuda.device")
    device.Device = Device
    cuda.Device, cuda.Stream, cuda.Event, cuda.Graph = Device, Stream, Event, Graph
    cuda.Memory, cuda.MemoryPointer, cuda.MemoryPool = Memory, MemoryPointer, MemoryPool
    cuda.get_allocator, cuda.using_allocator = _allocator, _using_allocator
    cuda.is_available = lambda: True
    cuda.runtime = types.SimpleNamespace(getDeviceCount=lambda: _DEVICES, CUDARuntimeError=CUDARuntimeError)
    cuda.get_current_stream = _stream
    cupy.cuda = cuda
    cupyx: Any = types.ModuleType("cupyx")
    cupy.add.at, cupy.maximum.at = _scatter(np.add), _scatter(np.maximum)
    cupy.linalg, cupy.fft = _mirror("cupy.linalg", np.linalg), _mirror("cupy.fft", np.fft)
    cupy.linalg.solve = functools.partial(_solve, cupy.linalg.solve)
    for name in ("mean", "std", "var"):
        setattr(cupy, name, functools.partial(_divide_in_own_dtype, getattr(cupy, name)))
    sys.modules.update(
        {"cupy": cupy, "cupy.cuda": cuda, "cupy.cuda.device": device, "cupyx": cupyx, "cupy.linalg": cupy.linalg, "cupy.fft": cupy.fft}
    )


install()
