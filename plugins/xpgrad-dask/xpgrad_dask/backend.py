"""The backend of dask arrays: a single device, arrays that are never written in place, and shapes that carry their chunks."""

# mypy: allow-untyped-calls
# (dask has no type hints on most of its functions)

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import dask.array as da
import numpy as np
from dask.base import persist

from xpgrad import Device
from xpgrad.backend import Backend, Capabilities
from xpgrad_dask import indexing, kernels
from xpgrad_dask.chunks import ChunkedShape, known_values, visible_shape, visible_size

__all__ = ["DaskBackend"]

_DEVICE = Device("dask")
_COUNT = itertools.count()


class _Namespace:
    """array-api-compat's namespace, with corrections of dask's mistakes."""

    def __getattr__(self, name: str) -> Any:
        import array_api_compat.dask.array as namespace

        found = getattr(namespace, name)
        setattr(self, name, found)
        return found

    def eye(self, n_rows: int, n_cols: int | None = None, /, *, k: int = 0, **options: Any) -> Any:
        """Return ones on a diagonal. NB: dask's `eye` loses the chunks of a matrix with more columns than rows (2026.8)."""
        import array_api_compat.dask.array

        namespace: Any = array_api_compat.dask.array
        columns = n_rows if n_cols is None else n_cols
        return namespace.eye(max(n_rows, columns), columns, k=k, **options)[:n_rows]


_NAMESPACE = _Namespace()


class DaskBackend(Backend):
    """The backend of dask arrays with NumPy chunks. Dask's configuration, not a device, decides where they are computed."""

    name = "dask"
    # NB: assigning to a part of a dask array replaces the graph inside the same object, so saved values would change as well. Arrays
    # are therefore treated as immutable, and a write makes a new array.
    capabilities = Capabilities(mutable=False, view_aliases=False, lazy=True, dlpack=False)
    array_type = da.Array
    operators = False  # dask's operators return NotImplemented for dtypes that they do not know
    weak_scalars = True
    checks_indices = True  # indices are checked when a chunk is computed
    # 0-d Tensors of a host device move implicitly to other devices, which would compute a lazy array.
    is_host = False
    # Assigning to a part of the user's array changes that object, so a Tensor has another one with the same graph.
    shares_input = False
    overrides: ClassVar[dict[str, Callable[..., Any]]] = {**kernels.KERNELS, **indexing.KERNELS, **indexing.PLAIN}

    def namespace(self) -> Any:
        return _NAMESPACE

    @property
    def raw_operators(self) -> bool:
        return True

    def kernel(self, name: str) -> Any:
        if name in ("linalg", "fft"):
            return kernels.Extension(getattr(self.namespace(), name), kernels.EXTENSIONS[name], name)
        found = super().kernel(name)
        if found is None:
            return None
        return found if name in kernels.PLAIN or name in indexing.PLAIN else lambda *args, **options: found(self.kernels, *args, **options)

    def through_host(self, name: str, function: Callable[..., Any], *args: Any, signature: str = "") -> Any:
        # The function is called on each chunk when the result is computed.
        if signature:
            return da.apply_gufunc(function, signature, *args, output_dtypes=np.result_type(*(a.dtype for a in args)), allow_rechunk=True)
        samples = (np.ones((), a.dtype) if isinstance(a, da.Array) else a for a in args)
        return da.core.elemwise(function, *args, dtype=function(*samples).dtype)

    def wrap_kernel(self, name: str, function: Any) -> Any:
        return kernels.guard_lengths(name, function)

    @property
    def tensor_base(self) -> Any:
        """The class of Tensors on dask, set by the registry. Arithmetic with an unknown length in their shape raises an error."""
        return self._tensor_base

    @tensor_base.setter
    def tensor_base(self, cls: Any) -> None:
        self._tensor_base = cls
        if cls is not None:
            cls.shape = property(lambda tensor: visible_shape(tensor._array), doc="The lengths of the axes; nan where one is unknown.")
            cls.size = property(lambda tensor: visible_size(tensor._array), doc="The number of elements; nan where that is unknown.")

    def array_types(self) -> tuple[type, ...]:
        return (da.Array,)

    def on_host(self, device: Device) -> bool:
        return True  # NB: moving to NumPy would compute

    def from_host(self, array: Any, device: Device) -> Any:
        return da.from_array(np.array(array, copy=True), chunks="auto")

    def to_host(self, x: Any) -> Any:
        # NB: the result may share memory with a dask graph, so it must not be written to.
        out = np.asarray(x.compute()).view()
        out.flags.writeable = False
        return out

    def compute_many(self, arrays: Sequence[Any]) -> Sequence[Any]:
        computed: Sequence[Any] = persist(*arrays)
        return computed

    def device_of(self, x: Any) -> Device:
        return _DEVICE

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (_DEVICE,)

    def find_dtype(self, name: str) -> Any:
        return None if name == "bfloat16" else np.dtype(name)

    def text(self, x: Any, indent: int) -> str:
        # Printing must not start a computation: an array that is not computed yet is shown with its shape and chunks only.
        values = known_values(x) if kernels.size_is_known(x) and x.size <= 1000 else None
        return repr(x) if values is None else self.host_text(values, indent)

    def is_traced(self, x: Any) -> bool:
        return True

    def operand_shape(self, x: Any) -> tuple[int, ...]:
        return ChunkedShape.of(x)

    def with_layout(self, x: Any, like: Any) -> Any:
        """Return `x` in the chunks of `like`, so that a `.grad` has the chunks of its leaf."""
        return kernels.fit(x, ChunkedShape.of(like))

    def same_layout(self, x: Any, like: Any) -> bool:
        return bool(x.chunks == like.chunks)

    # NB: dask's functions without a generator draw from a `RandomState` that it makes at the first of these calls.

    def get_rng_state(self, device: Device) -> Any:
        return da.random._cached_states.setdefault("numpy", da.random.RandomState())._numpy_state.get_state()

    def set_rng_state(self, device: Device, state: Any) -> None:
        da.random._cached_states["numpy"]._numpy_state.set_state(state)

    def stand_in(self, x: Any) -> Any:
        return da.Array({}, f"xpgrad-stand-in-{next(_COUNT)}", x.chunks, dtype=x.dtype, meta=x._meta) if isinstance(x, da.Array) else x

    def compile_program(self, program: Any, *, threads: int | None = None) -> Callable[..., Any]:
        from xpgrad_dask.programs import function_of  # NB: imported here because only compiled functions need it

        return function_of(program, self)
