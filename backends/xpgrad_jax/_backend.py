"""The JAX backend: immutable arrays on JAX's devices, or tracers that stand for them while a transform of JAX runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from xpgrad.backend import DTYPES, Backend, Capabilities, ControlFlow, Device, DType
from xpgrad.errors import CapabilityError
from xpgrad_jax import _kernels

__all__ = ["JaxBackend"]

_DTYPES = {np.dtype(name): dtype for name, dtype in DTYPES.items() if name != "bfloat16"} | {np.dtype(jnp.bfloat16): DTYPES["bfloat16"]}
_RAW = {dtype: raw for raw, dtype in _DTYPES.items()}
_WIDE = frozenset(("float64", "complex128", "int64", "uint64"))
_config: Any = jax.config  # its attributes are made at run time
# The device of the Tensors that were passed to a transform of JAX, by the transform's trace: tracers do not know their device.
_traces: WeakKeyDictionary[Any, Device] = WeakKeyDictionary()


_LAX = ControlFlow(jax.lax.scan, jax.lax.while_loop, jax.lax.cond)


def _x64() -> bool:
    return bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]


def _result_shape(signature: str, arrays: Any) -> tuple[int, ...]:
    """Return the shape of the result of a function with a signature of core axes, such as ``(m,n),(n)->(m)``, for some arrays."""
    given, result = ([part.split(",") for part in side.strip("()").split("),(")] for side in signature.split("->"))
    lengths = {axis: n for axes, a in zip(given, arrays) for axis, n in zip(axes, a.shape[-len(axes) :])}
    batch = jnp.broadcast_shapes(*(a.shape[: -len(axes)] for axes, a in zip(given, arrays)))
    return (*batch, *(lengths[axis] for axis in result[0]))


class JaxBackend(Backend):
    """JAX arrays on every device of this process."""

    name = "jax"
    weak_scalars = True
    checks_indices = True  # the kernels check them, because JAX itself clamps, fills or drops
    is_host = False
    overrides: ClassVar[dict[str, Callable[..., Any]]] = _kernels.KERNELS

    def __init__(self) -> None:
        super().__init__()
        self._raw_to_dtype = dict(_DTYPES)
        # The first device is the default one. JAX's device objects, whose str() depends on the platform, never leave this module.
        self.places = {Device(f"jax:{d.platform}:{d.id}"): d for d in jax.local_devices()}
        for platform in ("cpu",):
            if jax.default_backend() != platform:
                self.places |= {Device(f"jax:{platform}:{d.id}"): d for d in jax.local_devices(backend=platform)}
        self.names = {d: name for name, d in self.places.items()}
        self.default = next(iter(self.places))
        # NB: on other platforms XLA adds values for the same position in no fixed order.
        fixed = jax.default_backend() == "cpu"
        self._wide = Capabilities(mutable=False, view_aliases=False, devices=True, jit=True, vmap=True, deterministic_scatter=fixed)
        self._narrow = replace(self._wide, float64=False)
        self._units: dict[Any, Any] = {}
        from xpgrad_jax._tree import register_tensors

        register_tensors(self)

    @property
    def capabilities(self) -> Capabilities:  # type: ignore[override]
        """The capabilities; whether 64-bit dtypes exist depends on JAX's current setting."""
        return self._wide if _x64() else self._narrow

    def namespace(self) -> Any:
        return jnp

    def array_types(self) -> tuple[type, ...]:
        return (jax.Array,)

    def from_host(self, array: Any, device: Device) -> Any:
        array = np.asarray(array)
        if array.dtype.name in _WIDE:
            self.raw_dtype(DTYPES[array.dtype.name])  # raises if 64-bit dtypes are off; JAX would convert silently
        # NB: JAX may share NumPy's memory or read it later, so it gets a separate copy.
        copy = np.array(array, copy=True)
        with jax.ensure_compile_time_eval():  # even inside a transform of JAX, this makes an array with known values
            if device == self.default and _config.jax_default_device is None:
                return jnp.asarray(copy)
            return jax.device_put(copy, self.places[device])

    def to_host(self, x: Any) -> Any:
        if self.is_traced(x):
            msg = (
                "the values of a Tensor are not known inside a transform of JAX (jit, vmap, grad, shard_map): return it from the "
                "transform before you read its values"
            )
            raise CapabilityError(msg)
        return np.asarray(x)

    def text(self, x: Any, indent: int) -> str:
        return f"traced, shape={tuple(x.shape)}" if self.is_traced(x) else super().text(x, indent)

    def device_of(self, x: Any) -> Device:
        if len(self.places) == 1:
            return self.default
        if self.is_traced(x):
            trace = getattr(x, "_trace", None)
            while trace is not None:
                found = _traces.get(trace)
                if found is not None:
                    return found
                trace = getattr(trace, "parent_trace", None)
            return self.default
        # NB: an array may also be on devices of other processes, for which this one has no names.
        return self.names[min(x.sharding.addressable_devices, key=lambda d: d.id)]

    def note_device(self, x: Any, device: Device) -> None:
        trace = getattr(x, "_trace", None)
        if trace is not None and (device != self.default or trace not in _traces):
            _traces[trace] = device

    def to_device(self, x: Any, device: Device) -> Any:
        place = self.places[device]
        if device == self.default and not self.is_traced(x) and x.sharding.device_set == {place}:
            return x  # NB: `device_put` would commit the array, which then could not be combined with sharded arrays
        return jax.device_put(x, place)

    def devices(self) -> Sequence[Device]:
        return tuple(self.places)

    def creation_options(self, device: Device) -> dict[str, Any]:
        # NB: arrays made on the default device are not committed to it, so that they can be combined with sharded arrays.
        if device == self.default and _config.jax_default_device is None:
            return {}
        return {"device": self.places[device]}

    # -- dtypes --------------------------------------------------------------------------------------------------

    def default_dtype(self, kind: str, device: Device) -> DType:
        wide = _x64()
        names = {"real floating": ("float32", "float64"), "complex floating": ("complex64", "complex128")}
        return DTYPES[names.get(kind, ("int32", "int64"))[wide]]

    def raw_dtype(self, dtype: DType) -> Any:
        if dtype.name in _WIDE and not _x64():
            msg = (
                f"JAX has no {dtype} while 64-bit dtypes are off: switch them on at the start of the program with "
                f"`jax.config.update('jax_enable_x64', True)` or JAX_ENABLE_X64=1, or ask for a smaller dtype"
            )
            raise CapabilityError(msg)
        return _RAW[dtype]

    def find_dtype(self, name: str) -> Any:
        return None if name in _WIDE and not _x64() else _RAW[DTYPES[name]]

    def is_complex(self, x: Any) -> bool:
        return bool(jnp.issubdtype(x.dtype, jnp.complexfloating))

    # -- layout --------------------------------------------------------------------------------------------------

    def same_layout(self, x: Any, like: Any) -> bool:
        return self.with_layout(x, like) is x

    def with_layout(self, x: Any, like: Any) -> Any:
        # The gradient of a committed array gets the same sharding.
        if self.is_traced(x) or self.is_traced(like) or not like.committed or x.sharding == like.sharding:
            return x
        return jax.device_put(x, like.sharding)

    def kernel(self, name: str) -> Callable[..., Any] | None:
        return functools.partial(_kernels.written, self.kernels) if name == "written" else super().kernel(name)

    def special(self, name: str) -> Callable[..., Any] | None:
        from xpgrad_jax._special import function  # NB: loads jax.scipy

        return function(name)

    def sparse_matrix(self, values: Any, columns: Any, starts: Any, shape: tuple[int, int]) -> Any:
        from jax.experimental.sparse import BCSR  # NB: loads a module that few programs need

        return BCSR((values, jnp.asarray(columns), jnp.asarray(starts)), shape=shape, indices_sorted=True, unique_indices=True)

    def through_host(self, name: str, function: Callable[..., Any], *args: Any, signature: str = "") -> Any:
        arrays = [a for a in args if isinstance(a, jax.Array)]
        if not any(self.is_traced(a) for a in arrays) or not self.on_host(self.device_of(arrays[0])):
            return super().through_host(name, function, *args, signature=signature)
        # The values are not known yet, so the function is called when they are.
        if signature:
            shape, dtype = _result_shape(signature, arrays), np.result_type(*(a.dtype for a in arrays))
        else:
            shape = jnp.broadcast_shapes(*(a.shape for a in arrays))
            dtype = np.result_type(function(*(np.ones(1, a.dtype) if isinstance(a, jax.Array) else a for a in args)))
        places = [i for i, a in enumerate(args) if isinstance(a, jax.Array)]

        def compute(*values: Any) -> Any:
            given = list(args)
            for i, value in zip(places, values):
                given[i] = np.asarray(value)
            return np.asarray(function(*given), dtype)

        return jax.pure_callback(compute, jax.ShapeDtypeStruct(shape, dtype), *arrays, vmap_method="expand_dims")  # type: ignore[no-untyped-call]

    def wrap_kernel(self, name: str, function: Any) -> Any:
        if name not in _kernels.DATA_DEPENDENT:
            return function

        def checked(x: Any, *args: Any, **options: Any) -> Any:
            if self.is_traced(x):
                msg = (
                    f"the shape of the result of `{name}` depends on values, which are not known inside a transform of JAX (jit, vmap, "
                    "grad, shard_map) or a compiled function; that includes turning a mask into positions. Use `xpgrad.where`, or do it "
                    "outside"
                )
                raise CapabilityError(msg)
            with jax.ensure_compile_time_eval():  # the values of a constant are known even inside a transform
                return function(x, *args, **options)

        return checked

    # -- transforms ----------------------------------------------------------------------------------------------

    def synchronize(self, device: Device) -> None:
        # NB: JAX cannot wait for a device, but can wait for every array on it that is still referenced.
        jax.block_until_ready([x for x in jax.live_arrays() if not x.is_deleted() and self.places[device] in x.devices()])  # type: ignore[no-untyped-call]

    def compile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return jax.jit(function)

    def control_flow(self, arrays: Sequence[Any]) -> ControlFlow | None:
        return _LAX if any(map(self.is_traced, arrays)) else None

    def seed(self, x: Any, dtype: DType, device: Device) -> Any:
        if x.shape != ():
            return self.kernels.ones_like(x)
        # NB: the seed is placed like the root, and committed to its devices if the root is; there may be several devices, even of other
        # processes.
        place = device if self.is_traced(x) or not x.committed else x.sharding
        key = (dtype, place)
        unit = self._units.get(key)
        if unit is None:
            with jax.ensure_compile_time_eval():  # even inside a transform of JAX, this makes an array and not a tracer
                where = self.creation_options(device).get("device") if place is device else place
                unit = jax.device_put(np.ones((), self.raw_dtype(dtype)), where)
            self._units[key] = unit
        return unit

    def is_unit(self, g: Any) -> bool:
        return any(g is unit for unit in self._units.values())

    # -- tracing -------------------------------------------------------------------------------------------------

    def is_traced(self, x: Any) -> bool:
        return isinstance(x, Tracer)
