"""The NumPy backend: its arrays, dtypes, strides, random state and compiled programs."""

from __future__ import annotations

import functools
import importlib.util
import platform
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from xpgrad.backend import DTYPES, Backend, Capabilities, DefaultKernels, Device, DType
from xpgrad_numpy import _kernels
from xpgrad_numpy._emitters import NATIVE, NUMPY

__all__ = ["NumPyBackend", "ReadOnlyNumPyBackend"]

_DEVICE = Device("numpy")
_FROM_RAW = {np.dtype(name): dtype for name, dtype in DTYPES.items() if name != "bfloat16"}
_TO_RAW = {dtype: raw for raw, dtype in _FROM_RAW.items()}
_COMPLEX = (np.dtype(np.complex128), np.dtype(np.complex64))


@functools.cache
def _is_native_default() -> bool:
    """Return whether llvmlite is installed on a platform on which machine code has been tested."""
    tested = sys.platform == "linux" and platform.machine() == "x86_64"
    return tested and importlib.util.find_spec("llvmlite") is not None


@functools.cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)


class NumPyBackend(Backend):
    """NumPy arrays in the host's memory."""

    name = "numpy"
    capabilities = Capabilities(strides=True)
    array_type = np.ndarray
    weak_scalars = True
    checks_indices = _kernels.HAS_WIDE_INDICES
    program_loops = True
    device = _DEVICE
    overrides: ClassVar[dict[str, Any]] = _kernels.KERNELS

    def __init__(self) -> None:
        super().__init__()
        self._raw_to_dtype = dict(_FROM_RAW)
        self._dtype_to_raw = dict(_TO_RAW)

    def namespace(self) -> Any:
        import array_api_compat.numpy as namespace  # NB: 1.2x NumPy's own import time, so only when a kernel needs it

        return namespace

    def kernel(self, name: str) -> Callable[..., Any] | None:
        found = super().kernel(name)
        if found is None:
            found = _kernels.native(name)
        if _kernels.HAS_WIDE_INDICES:
            return found
        return _kernels.widened(name, found or getattr(self.namespace(), name)) if name in _kernels.POSITIONS else found

    special_complex = True

    def special(self, name: str) -> Callable[..., Any] | None:
        from xpgrad_numpy._special import function  # NB: loads SciPy

        return function(name)

    def through_host(self, name: str, function: Callable[..., Any], *args: Any, signature: str = "") -> Any:
        return function(*args)

    def array_types(self) -> tuple[type, ...]:
        return (np.ndarray, np.generic)

    def from_host(self, array: Any, device: Device) -> Any:
        return np.array(_refuse_masked(array), copy=True)

    def to_host(self, x: Any) -> Any:
        return np.asarray(_refuse_masked(x))

    def share(self, x: Any) -> Any:
        # NB: subclasses change the meaning of operators: `*` of two np.matrix is their matrix product.
        return x if x.__class__ is np.ndarray else np.asarray(_refuse_masked(x))

    def device_of(self, x: Any) -> Device:
        return self.device

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (self.device,)

    def get_rng_state(self, device: Device) -> Any:
        return np.random.get_state(legacy=False)  # noqa: NPY002 (this is about the global generator)

    def set_rng_state(self, device: Device, state: Any) -> None:
        np.random.set_state(state)  # noqa: NPY002

    def host_array(self, data: Any, dtype: DType | None) -> Any:
        return np.asarray(data) if dtype is None or dtype not in _TO_RAW else np.asarray(data, dtype=_TO_RAW[dtype])

    def host_text(self, array: Any, indent: int) -> str:
        return str(np.array2string(np.asarray(array), separator=", ", prefix=" " * indent, threshold=1000, precision=4))

    def ones(self, shape: tuple[int, ...], dtype: DType, device: Device) -> Any:
        return self.adopt(np.ones(shape, _TO_RAW[dtype]))

    def seed(self, x: Any, dtype: DType, device: Device) -> Any:
        return self.adopt(np.array(1, _TO_RAW[dtype])) if x.shape == () else self.ones(x.shape, dtype, device)

    def find_dtype(self, name: str) -> Any:
        return None if name == "bfloat16" else np.dtype(name)

    def dtype_of(self, raw: Any) -> DType:
        found = self._raw_to_dtype.get(raw)
        if found is None:
            msg = f"xpgrad cannot hold NumPy arrays of dtype {str(raw)!r}; convert first, e.g. with `array.astype('float64')`"
            raise TypeError(msg)
        return found

    def is_complex(self, x: Any) -> bool:
        return x.dtype in _COMPLEX

    def strides(self, x: Any) -> tuple[int, ...] | None:
        return tuple(s // x.itemsize for s in x.strides)

    def same_layout(self, x: Any, like: Any) -> bool:
        if x.__class__ is not np.ndarray:
            return False
        flags = x.flags
        if not flags.writeable:
            return False
        like = np.asarray(like)
        if like.flags.c_contiguous:
            return bool(flags.c_contiguous)
        if _is_dense(like):
            return bool(x.strides == like.strides)
        return bool(x.flags.c_contiguous)

    def with_layout(self, x: Any, like: Any) -> Any:
        if isinstance(x, np.generic):
            return np.asarray(x)  # a number has only one layout, and this makes a new array
        like = np.asarray(like)
        out = np.empty_like(like, dtype=x.dtype) if _is_dense(like) else np.empty(like.shape, x.dtype)
        out[...] = x
        return out

    def may_alias(self, x: Any, y: Any) -> bool:
        return bool(np.may_share_memory(x, y))

    def is_unshared(self, memory: list[Any]) -> bool:
        if _references(memory) != _REFERENCES or memory[0].__class__ is not np.ndarray:
            return False
        flags = memory[0].flags  # NB: this refers to the array, too
        return flags.owndata and flags.writeable

    def separate(self, tensor: Any) -> None:
        array = tensor._array
        if array.__class__ is np.ndarray and array.base is not None:
            tensor._array = _copy_with_layout(array)

    def sparse_matrix(self, values: Any, columns: Any, starts: Any, shape: tuple[int, int]) -> Any:
        from scipy.sparse import csr_array  # NB: loads SciPy

        return csr_array((np.array(values), columns, starts), shape=shape)

    def compile_program(self, program: Any, *, threads: int | None = None) -> Callable[..., Any]:
        if _is_native_default():
            try:
                return NATIVE.info.function(program, self, threads)
            except Exception as exc:  # noqa: BLE001 (whatever LLVM raises, NumPy source computes the same)
                _warn_once(f"machine code could not be compiled ({type(exc).__name__}: {exc}); NumPy source runs instead")
        return NUMPY.info.function(program, self, threads)

    def program_source(self, program: Any, *, threads: int | None = None) -> str:
        return NUMPY.info.source(program, self, threads)

    def is_unit(self, g: Any) -> bool:
        return g.shape == () and bool(g == 1)

    def update(self, x: Any, key: Any, value: Any) -> Any:
        mask = key[0] if key.__class__ is tuple and len(key) == 1 else key
        if mask.__class__ is np.ndarray and mask.dtype == bool and np.may_share_memory(x, value):
            value = value.copy()  # NumPy reads it while it writes
        x[key] = value
        return x

    def own(self, tensor: Any) -> Any:
        # NB: NumPy's reductions and 0-d operations return immutable scalars, which can be neither viewed nor written to.
        tensor._array = array = np.asarray(tensor._array)
        return array


def _references(memory: list[Any]) -> int:
    """Return the number of references to ``memory[0]``, plus what this call adds."""
    return sys.getrefcount(memory[0])


def _count_references() -> int:
    """Return what `_references` returns for an array to which a list and one Tensor refer; Pythons differ in what the call adds."""
    memory = [np.zeros(1)]
    tensor = [memory[0]]
    found = _references(memory)
    del tensor
    return found


_REFERENCES = _count_references()


def _refuse_masked(x: Any) -> Any:
    """Return `x`; raise if it is a masked array, whose mask would be lost."""
    # NB: this checks attributes because naming the class would import `numpy.ma`.
    if hasattr(x, "mask") and hasattr(x, "filled"):
        msg = (
            f"asarray: a masked array ({type(x).__name__}) has a mask, which Tensors do not; give `x.filled(value)`, and the mask by itself"
        )
        raise TypeError(msg)
    return x


def _is_dense(x: Any) -> bool:
    """Return whether the elements of `x` fill a block of memory, each once (LAY-01: "non-overlapping and dense")."""
    if x.flags.c_contiguous or x.flags.f_contiguous:
        return True
    expected = x.itemsize
    for stride, size in sorted((s, n) for s, n in zip(x.strides, x.shape) if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True


def _copy_with_layout(x: Any) -> Any:
    """Return a copy of a view, with gaps where it has gaps, so that `reshape` and `ravel` copy it where they copy the view."""
    flags = x.flags
    if flags.c_contiguous or flags.f_contiguous:
        return x.copy(order="K")
    if x.ndim == 1:
        out = np.empty(2 * x.size, x.dtype)[::2]
    else:
        shape, strides, item = x.shape, x.strides, x.itemsize
        steps = [0] * x.ndim
        inner, step, first = -1, 1, 0
        for i in sorted((i for i, n in enumerate(shape) if n != 1), key=lambda i: (abs(strides[i]), -i)):
            if inner < 0:
                step = item if abs(strides[i]) == item else 2 * item
            else:
                step *= shape[inner] * (1 if abs(strides[i]) == abs(strides[inner]) * shape[inner] else 2)
            steps[i], inner = step, i
            if strides[i] < 0:
                steps[i] = -step
                first += step * (shape[i] - 1)
        out = np.ndarray(shape, x.dtype, np.empty(step * shape[inner], np.uint8), first, steps)
    out[...] = x
    return out


class ReadOnlyNumPyBackend(NumPyBackend):
    """NumPy with every array frozen: a rule or the engine that writes to an array it does not own fails at once."""

    variant = "readonly"
    shares_input = False
    capabilities = Capabilities(strides=True, mutable=False)
    device = Device("numpy+readonly")
    operators = False

    def compile_program(self, program: Any, *, threads: int | None = None) -> Any:
        return None  # the generated code would write to arrays, which are frozen here

    def program_source(self, program: Any, *, threads: int | None = None) -> str:
        return str(program)

    def from_host(self, array: Any, device: Device) -> Any:
        return _freeze(np.array(_refuse_masked(array), copy=True))

    def adopt(self, x: Any) -> Any:
        return _freeze(x)

    def update(self, x: Any, key: Any, value: Any) -> Any:
        new = np.array(x)
        new[key] = value
        return _freeze(new)

    def own(self, tensor: Any) -> Any:
        tensor._array = array = _freeze(np.asarray(tensor._array))
        return array

    def same_layout(self, x: Any, like: Any) -> bool:
        return False

    def wrap_kernel(self, name: str, function: Any) -> Any:
        if name == "written":  # as in libraries whose arrays cannot be written to
            return functools.partial(DefaultKernels.written, self.kernels)
        if name in ("copy", "add_at", "scatter_into") or not callable(function) or isinstance(function, type):
            return function  # the engine's own buffers stay writable

        def frozen(*args: Any, **kwargs: Any) -> Any:
            out = function(*args, **kwargs)
            if isinstance(out, (tuple, list)):
                # NB: namedtuples of np.linalg keep their type; only their arrays are frozen.
                for item in out:
                    _freeze(item)
                return out
            return _freeze(out)

        return frozen


def _freeze(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    return x
