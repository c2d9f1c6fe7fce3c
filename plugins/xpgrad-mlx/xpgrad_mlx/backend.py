"""The backend of MLX's arrays: in single precision on MLX's default device, or also with float64 on the CPU."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, ClassVar

import mlx.core as mx
import numpy as np

from xpgrad.backend import DTYPES, Backend, Capabilities, Device
from xpgrad_mlx import kernels, namespace
from xpgrad_mlx.host import array_of, numpy_of

__all__ = ["MlxBackend"]


def _on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose operations run on the CPU, whatever MLX's default device is."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        with mx.stream(mx.cpu):
            return function(*args, **options)

    return call


class _CpuNamespace:
    """A namespace whose functions run on the CPU; each is wrapped when it is first looked up."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if isinstance(found, ModuleType):
            found = _CpuNamespace(found)
        elif callable(found) and not isinstance(found, (type, mx.Dtype)):
            found = _on_cpu(found)
        setattr(self, name, found)
        return found


class MlxBackend(Backend):
    """The backend of MLX's arrays.

    Parameters
    ----------
    variant : str or None
        None for dtypes up to float32 and complex64, on MLX's default device. ``"float64"`` adds float64, which MLX has on the CPU only, so
        everything is computed there.
    """

    name = "mlx"
    array_type = mx.array
    is_host = False  # arrays are MLX's, although their memory is the host's (see `on_host`)
    operators = False  # MLX's operators do not support `6 & x`, and divide integers in float32
    overrides: ClassVar[dict[str, Callable[..., Any]]] = kernels.KERNELS

    def __init__(self, variant: str | None) -> None:
        self.variant = variant
        super().__init__()
        self.wide = variant is not None
        # On a GPU, several threads add into the same place in no fixed order.
        fixed = self.wide or not mx.is_available(mx.gpu)
        self.capabilities = Capabilities(
            mutable=False, view_aliases=False, float64=self.wide, complex128=False, threads=False, deterministic_scatter=fixed
        )  # fmt: skip
        self.device = Device(self.table_name)
        # Choosing the CPU takes 0.3 microseconds per operation, and is unnecessary if MLX has no other device.
        self.confined = self.wide and mx.is_available(mx.gpu)
        self.library: Any = _CpuNamespace(namespace) if self.confined else namespace

    @property
    def raw_operators(self) -> bool:
        return not self.confined  # gradients are floating or complex, for which the operators promote as the kernels do

    # -- required ----------------------------------------------------------------------------------------------

    def namespace(self) -> Any:
        return self.library

    def array_types(self) -> tuple[type, ...]:
        return (mx.array,)

    def from_host(self, array: Any, device: Device) -> Any:
        array = np.asarray(array)
        dtype = DTYPES.get(array.dtype.name)
        make = _on_cpu(array_of) if self.confined else array_of
        return make(array, None if dtype is None else self.raw_dtype(dtype))

    def to_host(self, x: Any) -> Any:
        out = _on_cpu(numpy_of)(x) if self.confined else numpy_of(x)
        out.flags.writeable = False  # it is MLX's memory
        return out

    def compute_many(self, arrays: Sequence[Any]) -> Sequence[Any]:
        mx.eval(*arrays)
        return arrays

    def device_of(self, x: Any) -> Device:
        return self.device

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (self.device,)

    def on_host(self, device: Device) -> bool:
        return True  # MLX's devices share one memory

    # -- entry -------------------------------------------------------------------------------------------------

    def share(self, x: Any) -> Any:
        self.dtype_of(x.dtype)
        return mx.array(x)  # another object, because the user may assign to parts of theirs

    def find_dtype(self, name: str) -> Any:
        return None if name == "float64" and not self.wide else getattr(namespace, name, None)

    def is_complex(self, x: Any) -> bool:
        return bool(x.dtype == mx.complex64)

    def kernel(self, name: str) -> Callable[..., Any] | None:
        return functools.partial(kernels.written, self.kernels) if name == "written" else super().kernel(name)

    def wrap_kernel(self, name: str, function: Any) -> Any:
        if not self.confined or not callable(function) or isinstance(function, (type, mx.Dtype)):
            return function
        return _on_cpu(function)

    # -- random numbers and evaluation -------------------------------------------------------------------------

    def get_rng_state(self, device: Device) -> Any:
        state: Any = mx.random.state
        high, low = state[0].tolist()
        return high << 32 | low

    def set_rng_state(self, device: Device, state: Any) -> None:
        mx.random.seed(state)  # the key is the two halves of the seed

    def synchronize(self, device: Device) -> None:
        mx.synchronize()
