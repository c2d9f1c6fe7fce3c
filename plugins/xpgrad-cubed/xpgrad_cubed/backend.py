"""The backend of cubed arrays: a single device, arrays that are never written in place, and shapes that carry their chunks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import cubed
import numpy as np

from xpgrad import Device
from xpgrad.backend import DTYPES, Backend, Capabilities
from xpgrad_cubed import kernels, storage
from xpgrad_cubed.blocks import apply_blocks
from xpgrad_cubed.linalg import LINALG
from xpgrad_cubed.namespace import MISSING, NAMESPACE

__all__ = ["CubedBackend"]

_DEVICE = Device("cubed")


class CubedBackend(Backend):
    """The backend of cubed arrays with NumPy chunks. A `cubed.Spec`, not a device, decides where they are computed."""

    name = "cubed"
    capabilities = Capabilities(
        mutable=False, view_aliases=False, lazy=True, dlpack=False, fft=False,  # cubed has no Fourier transforms
        boolean_indexing=False, data_dependent_shapes=False,  # cubed's shapes are known before anything is computed
    )  # fmt: skip
    array_type = cubed.Array
    checks_indices = True  # known indices are checked at once, lazy ones when a chunk is computed
    operators = False  # cubed's operators check dtypes, but do not promote
    is_host = False  # 0-d Tensors of a host device move implicitly to other devices, which would compute a lazy array
    overrides: ClassVar[dict[str, Callable[..., Any]]] = kernels.KERNELS
    missing = MISSING

    def namespace(self) -> Any:
        return NAMESPACE

    @property
    def raw_operators(self) -> bool:
        return True

    def array_types(self) -> tuple[type, ...]:
        return (cubed.Array,)

    def from_host(self, array: Any, device: Device) -> Any:
        dtype = DTYPES.get(array.dtype.name)
        raw = array.dtype if dtype is None else self.raw_dtype(dtype)  # raises for a dtype that cubed lacks, such as float16
        return storage.from_numpy(np.array(array, dtype=raw, copy=True, order="C"))

    def to_host(self, x: Any) -> Any:
        out = storage.compute_arrays(x)[0].view()
        out.flags.writeable = False  # it may be the memory of a constant in a plan
        return out

    def compute_many(self, arrays: Sequence[Any]) -> Sequence[Any]:
        return storage.store_arrays(*arrays)

    def device_of(self, x: Any) -> Device:
        return _DEVICE

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (_DEVICE,)

    def on_host(self, device: Device) -> bool:
        return True  # NB: moving to NumPy would compute

    def find_dtype(self, name: str) -> Any:
        return np.dtype(name) if hasattr(cubed, name) else None

    def is_traced(self, x: Any) -> bool:
        return storage.known_values(x) is None

    def text(self, x: Any, indent: int) -> str:
        values = storage.known_values(x)  # printing must not start a computation
        return repr(x) if values is None else self.host_text(values, indent)

    def operand_shape(self, x: Any) -> tuple[int, ...]:
        return kernels.ChunkedShape.of(x)

    def with_layout(self, x: Any, like: Any) -> Any:
        return x if x.chunks == like.chunks else cubed.rechunk(x, like.chunksize)

    def same_layout(self, x: Any, like: Any) -> bool:
        return bool(x.chunks == like.chunks)

    def through_host(self, name: str, function: Callable[..., Any], *args: Any, signature: str = "") -> Any:
        return apply_blocks(function, signature, *args)  # it is called on each chunk when the result is computed

    def kernel(self, name: str) -> Any:
        if name == "linalg":
            return LINALG
        return functools.partial(kernels.flat_index, self.kernels) if name == "flat_index" else super().kernel(name)

    def wrap_kernel(self, name: str, function: Any) -> Any:
        return kernels.without_elements(name, function)
