"""The backend of PyTorch's tensors: on the host, on CUDA devices with their streams, and on `meta`, whose tensors have no values."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, ClassVar

import numpy as np
import torch
from torch.autograd import forward_ad

from xpgrad import Device
from xpgrad.backend import Backend, Capabilities
from xpgrad.errors import CapabilityError
from xpgrad_torch import kernels, special
from xpgrad_torch.lacking import Extension, guard_kernel

__all__ = ["TorchBackend"]

#: The kinds of devices that this backend supports.
_KINDS = ("cpu", "cuda", "meta")
_PLAIN = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)


def _shared(array: Any) -> Any:
    """Return a tensor that shares the memory of an array."""
    # NB: NumPy has two dtypes of unsigned integers of 64 bits, and gives 2**63 the one that PyTorch does not know.
    return torch.from_numpy(array.view(np.uint64) if array.dtype == np.uint64 else array)


class _Namespace:
    """PyTorch through array-api-compat, with a `linspace` for all dtypes."""

    def __init__(self) -> None:
        import array_api_compat.torch as library

        self._library = library

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._library, name)
        setattr(self, name, found)
        return found

    def linspace(self, start: Any, stop: Any, /, num: int, *, dtype: Any, **options: Any) -> Any:
        """Return evenly spaced values; integers are rounded down, as in NumPy."""
        if dtype.is_floating_point or dtype.is_complex:
            return self._library.linspace(start, stop, num, dtype=dtype, **options)
        exact = self._library.linspace(start, stop, num, dtype=torch.float64, **options)
        return exact != 0 if dtype is torch.bool else torch.floor(exact).to(dtype)


def has_tangent(x: Any) -> bool:
    """Return whether PyTorch's forward mode differentiates by what a tensor depends on; in nested transforms an outer one may."""
    if torch._C._functorch.is_gradtrackingtensor(x):
        return True
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None  # type: ignore[no-untyped-call]


@functools.cache
def _namespace() -> _Namespace:
    return _Namespace()


class TorchBackend(Backend):
    """The backend of PyTorch's tensors; PyTorch's own autograd is not used."""

    name = "torch"
    array_type = torch.Tensor
    operators = False  # PyTorch's operators promote integers to float32 in quotients and with Python floats; the kernels do not
    is_host = False  # only some of its devices are the host
    weak_scalars = True
    checks_indices = True
    overrides: ClassVar[dict[str, Callable[..., Any]]] = kernels.KERNELS

    @property
    def raw_operators(self) -> bool:
        return True  # gradients are floating or complex, for which the operators promote as the kernels do

    def __init__(self) -> None:
        super().__init__()
        cuda = torch.cuda.is_available()
        # NB: on CUDA, values are added into duplicate places by atomic operations, in no fixed order.
        self.capabilities = Capabilities(strides=True, negative_step=False, devices=True, streams=cuda, deterministic_scatter=not cuda)
        raw = [
            torch.device("cpu"),
            *(torch.device("cuda", k) for k in range(torch.cuda.device_count() if cuda else 0)),
            torch.device("meta"),
        ]
        self._raw_devices = {Device(f"torch:{place}"): place for place in raw}
        self._devices = {place: device for device, place in self._raw_devices.items()}

    # -- required ----------------------------------------------------------------------------------------------

    def namespace(self) -> Any:
        return _namespace()

    def array_types(self) -> tuple[type, ...]:
        return (torch.Tensor,)

    def from_host(self, array: Any, device: Device) -> Any:
        array = np.asarray(array)
        # PyTorch needs a writable array in the machine's byte order; the copy keeps the strides.
        return _shared(np.array(array, dtype=array.dtype.newbyteorder("="), copy=True)).to(self._place(device))

    def borrow(self, array: Any, device: Device) -> Any:
        # PyTorch can share only writable memory in the machine's byte order, whose strides are nonnegative multiples of the item size.
        flags, strides = array.flags, array.strides
        if not (flags.writeable and array.dtype.isnative) or any(s < 0 or s % array.itemsize for s in strides):
            return self.from_host(array, device)
        return _shared(array)

    def to_host(self, x: Any) -> Any:
        self.refuse(x)
        if x.is_meta:
            msg = f"a Tensor on 'torch:meta' has a shape {tuple(x.shape)} and a dtype, but no values; compute on another device to get them"
            raise CapabilityError(msg)
        if x.dtype is torch.bfloat16:
            x = x.to(torch.float32)  # NumPy has no bfloat16; float32 holds all its values
        if x.is_conj() or x.is_neg():
            x = x.resolve_conj().resolve_neg()
        return (x if x.device.type == "cpu" else x.cpu()).numpy()

    def device_of(self, x: Any) -> Device:
        if x.requires_grad or has_tangent(x):
            self.refuse(x)
        found = self._devices.get(x.device)
        if found is None:
            msg = f"xpgrad's backend 'torch' has no device for a torch.Tensor on {str(x.device)!r}; move it first, e.g. with `x.cpu()`"
            raise TypeError(msg)
        return found

    def to_device(self, x: Any, device: Device) -> Any:
        place = self._place(device)
        if x.is_meta and place.type != "meta":
            msg = f"a Tensor on 'torch:meta' has no values that could be moved to {str(device)!r}; compute on that device instead"
            raise CapabilityError(msg)
        return x.to(place)

    def devices(self) -> Sequence[Device]:
        return tuple(self._raw_devices)

    # -- entry -------------------------------------------------------------------------------------------------

    @staticmethod
    def refuse(x: Any) -> None:
        """Raise an error for a tensor that xpgrad cannot use.

        Raises
        ------
        TypeError
            If the tensor requires grad or has a tangent, because PyTorch's autograd would miss a derivative, or if it is sparse, quantized
            or of a subclass.
        """
        if x.requires_grad:
            msg = (
                f"a torch.Tensor of shape {tuple(x.shape)} that requires grad was given to xpgrad, but PyTorch's autograd does not see "
                "what xpgrad computes: its gradient would be lost. Pass `x.detach()`, and ask xpgrad for the gradient with "
                "`xpgrad.tensor(x.detach(), requires_grad=True)`"
            )
            raise TypeError(msg)
        if has_tangent(x):
            msg = (
                f"a torch.Tensor of shape {tuple(x.shape)} with a tangent of PyTorch's forward mode was given to xpgrad, which does not "
                "pass it on: the derivative would be lost. Pass `x.detach()`, and use `xpgrad.func.jvp` for the derivative"
            )
            raise TypeError(msg)
        if x.layout is not torch.strided or x.is_quantized or type(x) not in _PLAIN:
            msg = (
                f"xpgrad takes dense plain tensors of PyTorch, but got a {type(x).__module__}.{type(x).__qualname__} with layout "
                f"{x.layout}; convert it first, e.g. with `x.to_dense()` or `x.as_subclass(torch.Tensor)`"
            )
            raise TypeError(msg)

    def share(self, x: Any) -> Any:
        self.refuse(x)
        return x.detach()  # another object, because the user may later make theirs require grad

    def _place(self, device: Device) -> Any:
        """Return PyTorch's device for one of xpgrad's; the host's if it is unknown."""
        return self._raw_devices.get(device) or next(iter(self._raw_devices.values()))

    def creation_options(self, device: Device) -> dict[str, Any]:
        return {"device": self._place(device)}

    def kernel(self, name: str) -> Callable[..., Any] | None:
        general = kernels.GENERAL.get(name)
        return super().kernel(name) if general is None else functools.partial(general, self.kernels)

    def special(self, name: str) -> Callable[..., Any] | None:
        return special.function(name)

    def sparse_matrix(self, values: Any, columns: Any, starts: Any, shape: tuple[int, int]) -> Any:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
            starts, columns = (torch.as_tensor(np.asarray(x, np.int64), device=values.device) for x in (starts, columns))
            return torch.sparse_csr_tensor(starts, columns, values, shape, check_invariants=False)

    def wrap_kernel(self, name: str, function: Any) -> Any:
        return Extension(function, name) if name in ("linalg", "fft") else guard_kernel(name, function)

    def find_dtype(self, name: str) -> Any:
        return getattr(torch, name, None)

    def is_complex(self, x: Any) -> bool:
        return bool(x.dtype.is_complex)

    def is_traced(self, x: Any) -> bool:
        return kernels.has_no_values(x)

    # -- layout and memory -------------------------------------------------------------------------------------

    def strides(self, x: Any) -> tuple[int, ...]:
        return tuple(x.stride())

    def with_layout(self, x: Any, like: Any) -> Any:
        if not like.is_contiguous() and _is_dense(like):
            return torch.empty_strided(like.shape, like.stride(), dtype=x.dtype, device=x.device).copy_(x)
        return x.clone(memory_format=torch.contiguous_format)

    def same_layout(self, x: Any, like: Any) -> bool:
        if x.is_conj() or x.is_neg():
            return False
        if like.is_contiguous() or not _is_dense(like):
            return bool(x.is_contiguous())
        return bool(x.stride() == like.stride())

    def may_alias(self, x: Any, y: Any) -> bool:
        return kernels.shares_memory(x, y)

    def own(self, tensor: Any) -> Any:
        return tensor._array

    # -- random numbers ----------------------------------------------------------------------------------------

    def get_rng_state(self, device: Device) -> Any:
        if device.kind == "cuda":
            return torch.cuda.get_rng_state(self._place(device))
        return torch.get_rng_state() if device.kind == "cpu" else None

    def set_rng_state(self, device: Device, state: Any) -> None:
        if device.kind == "cuda":
            torch.cuda.set_rng_state(state, self._place(device))
        else:
            torch.set_rng_state(state)

    # -- streams -----------------------------------------------------------------------------------------------
    #
    # The stream of the host and of `meta` is None.

    def current_stream(self, device: Device) -> Any:
        return torch.cuda.current_stream(self._place(device)) if device.kind == "cuda" else None

    def stream_guard(self, stream: Any) -> AbstractContextManager[Any]:
        guard: AbstractContextManager[Any] = nullcontext() if stream is None else torch.cuda.stream(stream)
        return guard

    def record_event(self, stream: Any) -> Any:
        return None if stream is None else stream.record_event()

    def wait_event(self, stream: Any, event: Any) -> None:
        if event is None:
            return  # work on the host is done when its call returns
        if stream is None:
            event.synchronize()
        else:
            stream.wait_event(event)

    def keep_alive(self, x: Any, stream: Any) -> None:
        if stream is not None and x.is_cuda:
            x.record_stream(stream)

    def synchronize(self, device: Device) -> None:
        if device.kind == "cuda":
            torch.cuda.synchronize(self._place(device))

    def is_capturing(self, device: Device) -> bool:
        if device.kind != "cuda":
            return False
        with torch.cuda.device(self._place(device)):
            return bool(torch.cuda.is_current_stream_capturing())


def _is_dense(x: Any) -> bool:
    """Return whether the elements of `x` fill a block of memory without gaps or overlaps ("non-overlapping and dense", LAY-01)."""
    expected = 1
    for stride, size in sorted((s, n) for s, n in zip(x.stride(), x.shape) if n != 1):
        if stride != expected:
            return False
        expected *= size
    return True
