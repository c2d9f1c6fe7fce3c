"""A backend whose arrays raise if the core uses Python's operators on them: with `operators = False` it may only use kernels.

It has a variant with dtypes that its base lacks. It is written like a plugin.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import xpgrad
from xpgrad import Device
from xpgrad.backend import Backend, BackendInfo, Capabilities, DType
from xpgrad.errors import CapabilityError
from xpgrad.registry import backend_names, register_backend

__all__ = ["Bare", "register"]

_CORE = str(Path(xpgrad.__file__).parent)
_KERNELS = str(Path(_CORE, "_array"))


def _guarded_operator(name: str) -> Callable[..., Any]:
    """Return an operator that kernels (the backend's or the default ones) may use, and that raises in the rest of the core."""

    def operator(self: Any, *args: Any) -> Any:
        file = sys._getframe(1).f_code.co_filename
        if file.startswith("<") or (file.startswith(_CORE) and not file.startswith(_KERNELS)):
            msg = f"{name} on a raw array, in {file}"
            raise AssertionError(msg)
        return getattr(np.ndarray, name)(self, *args)

    return operator


_NAMES = [f"__{prefix}{name}__" for name in ("add", "sub", "mul", "truediv", "pow", "matmul") for prefix in ("", "r", "i")]
Bare = type(
    "Bare",
    (np.ndarray,),
    {name: _guarded_operator(name) for name in [*_NAMES, "__neg__", "__lt__", "__gt__", "__le__", "__ge__", "__eq__", "__ne__"]},
)


def _bare(x: Any) -> Any:
    if isinstance(x, (tuple, list)):
        return type(x)(*map(_bare, x)) if hasattr(x, "_fields") else type(x)(map(_bare, x))
    return np.asarray(x).view(Bare) if isinstance(x, (np.ndarray, np.generic)) else x


class KernelsOnlyBackend(Backend):
    """NumPy arrays of another class; the base has float32 and complex64, the variant "double" also float64 and complex128."""

    name = "bare"
    operators = False

    def __init__(self, variant: str | None) -> None:
        self.variant = variant
        super().__init__()
        self.device = Device("bare" if variant is None else f"bare+{variant}")
        self.capabilities = Capabilities(float64=variant is not None)

    def namespace(self) -> Any:
        import array_api_compat.numpy as namespace

        return namespace

    def array_types(self) -> tuple[type, ...]:
        return (Bare,)

    def find_dtype(self, name: str) -> Any:
        if name == "bfloat16" or (self.variant is None and name in ("float64", "complex128")):
            return None
        return np.dtype(name)

    def dtype_of(self, raw: Any) -> DType:
        if self.find_dtype(str(raw)) is None:
            msg = f"backend {self.table_name!r} has no dtype {raw}"
            raise CapabilityError(msg)
        return super().dtype_of(raw)

    def from_host(self, array: Any, device: Device) -> Any:
        self.dtype_of(np.asarray(array).dtype)
        return _bare(np.array(array))

    def adopt(self, x: Any) -> Any:
        return _bare(x)

    def to_host(self, x: Any) -> Any:
        return np.asarray(x)

    def device_of(self, x: Any) -> Device:
        return self.device

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (self.device,)

    def own(self, tensor: Any) -> Any:
        tensor._array = array = _bare(tensor._array)
        return array

    def wrap_kernel(self, name: str, function: Any) -> Any:
        if not callable(function) or isinstance(function, type):
            return function
        return lambda *args, **options: _bare(function(*args, **options))


def register() -> None:
    """Register the backend unless it is registered already."""
    if "bare" not in backend_names():
        register_backend(BackendInfo(name="bare", load=KernelsOnlyBackend, install="part of the tests", variants=("double",)))
