"""Batched Tensors: each represents one element of a batch inside `vmap`; how they are created and taken apart.

A batched Tensor has its own class, whose backend's arrays are Tensors of the class below with an additional first axis. The kernels of
that backend are its `Rulebook`: operations on the Tensors below. So there is a single tape, that of the Tensors at the bottom, and
forward mode, hooks and modes see ordinary operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

from xpgrad._aliasing.sharing import replace_data
from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DTYPES, DType
from xpgrad._basics.shapes import reshape_strides, row_major_strides
from xpgrad._modes.batch_levels import BatchLevel, active_levels, at_levels
from xpgrad._tensor.missing import MissingAttributes
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch import rules as _rules  # noqa: F401 (registers the rules by name)
from xpgrad._transforms.batch.array import Batched, escaped_error
from xpgrad._transforms.batch.rulebook import Rulebook
from xpgrad.backend import Backend
from xpgrad.errors import missing
from xpgrad.rules.manipulation import broadcast_view, moveaxis
from xpgrad.rules.transfer import to_device


class BatchBackend(Backend):
    """The backend of batched Tensors over one class of Tensors: its capabilities, except those that depend on single values."""

    operators = False
    checks_indices = True  # the operations on the Tensors below check them
    weak_scalars = True  # scalars are passed to operations on Tensors, which promote them
    rulebook: ClassVar[Any] = Rulebook
    array: ClassVar[Any] = Batched

    def __init__(self, inner: Any) -> None:
        below = inner.backend
        self.inner = inner
        self.device: Device = inner.device
        self.name, self.variant, self.is_host = below.name, below.variant, below.is_host
        self.capabilities = replace(
            below.capabilities, mutable=False, view_aliases=False, strides=False, boolean_indexing=False, data_dependent_shapes=False,
            streams=False, jit=False, dlpack=False,
        )  # fmt: skip
        super().__init__()
        self.table_name = f"vmap of {below.table_name}"
        self.rules: Any = self.rulebook(self)
        self.raw: Any = type(self.array.__name__, (self.array,), {"__slots__": (), "rules": self.rules})
        self.rules.raw = self.array_type = self.raw
        self._namespace = SimpleNamespace(asarray=lambda value, dtype: self.raw(inner.scalar(value, dtype), None))
        self.cls: Any = None

    def namespace(self) -> Any:
        return self._namespace

    @property
    def raw_operators(self) -> bool:
        return True  # the operators of `Batched` call the rules

    def kernel(self, name: str) -> Any:
        return self.rules.find(name)

    def array_types(self) -> tuple[type, ...]:
        return (self.raw,)

    def from_host(self, array: Any, device: Device) -> Any:
        below = self.inner.backend
        return self.raw(below.wrap(below.from_host(array, device)), None)

    def to_host(self, x: Any) -> Any:
        if x.level is None:  # all elements share the value
            return self.inner.backend.to_host(x.value._array)
        msg = (
            "Batching rule not implemented for what reads a value (`.item()`, `.numpy()`, `float(x)`, `if x:`): the value of one element "
            "was asked for inside `vmap`, where there are many; use `xpgrad.where` instead of a branch, or call the function without `vmap`"
        )
        raise RuntimeError(msg)

    def text(self, x: Any, indent: int) -> str:
        return str(x.value.backend.text(x.value._array, indent))

    def device_of(self, x: Any) -> Device:
        return self.device

    def to_device(self, x: Any, device: Device) -> Any:
        return x

    def devices(self) -> Sequence[Device]:
        return (self.device,)

    def default_dtype(self, kind: str, device: Device) -> DType:
        return self.inner.backend.default_dtype(kind, device)

    def creation_options(self, device: Device) -> dict[str, Any]:
        return {"device": device}

    def raw_dtype(self, dtype: DType) -> Any:
        self.inner.backend.raw_dtype(dtype)  # raises if the library has none
        return dtype

    def find_dtype(self, name: str) -> Any:
        return DTYPES[name] if self.inner.backend.find_dtype(name) is not None else None

    def dtype_of(self, raw: Any) -> DType:
        return raw if isinstance(raw, DType) else self.inner.backend.dtype_of(raw)

    def is_complex(self, x: Any) -> bool:
        return x.dtype.is_complex

    def is_traced(self, x: Any) -> bool:
        return True  # a result must not depend on the value of one element

    def strides(self, x: Any) -> tuple[int, ...] | None:
        """Return the strides that an element would have by itself: one that was computed lies in its own memory."""
        found = x.value.backend.strides(x.value._array)
        if found is None or x.level is None:
            return found
        if not x.level.size:  # NB: an empty array may have strides of 0, as if its elements were repeated
            return row_major_strides(x.shape)
        (batch, *rest), count = map(abs, found), x.level.size
        return tuple(s // count if batch and size > batch else s for s, size in zip(found[1:], rest))

    def may_alias(self, x: Any, y: Any) -> bool:
        """Return whether two arrays share memory, or would without other elements between theirs: `x` is `y` in another shape."""
        if x.value.backend.may_alias(x.value._array, y.value._array):
            return True
        strides = self.strides(y)
        return strides is not None and 0 not in y.shape and reshape_strides(y.shape, strides, x.shape) is not None

    def wrap(self, raw: Any) -> Any:
        return self.cls._wrap(raw)


def _refuse(what: str, instead: str) -> RuntimeError:
    return RuntimeError(f"{what} inside of a function transformed by `vmap` is not supported: {instead}")


class BatchedTensor(Tensor, MissingAttributes):
    """One element of a batch. Properties about its history are those of the Tensor that holds the batch."""

    __slots__ = ()

    @property
    def array(self) -> Any:
        """Raise an error: one element has no raw array."""
        raise missing(RuntimeError)(str(_refuse("reading `.array`", "stay with Tensors, or take the array outside")))

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to the Tensor that holds the batch."""
        return self._array.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        """Whether gradients flow to the batch."""
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Raise an error, as in PyTorch: use `xpgrad.func.grad`, or set it outside."""
        raise _refuse(
            "calling `requires_grad_()`", "use `xpgrad.func.grad`, `vjp`, `jacrev`, `jacfwd` or `hessian`, or set `requires_grad` outside"
        )

    @property
    def is_leaf(self) -> bool:
        """Whether the Tensor that holds the batch is a leaf."""
        return self._array.value.is_leaf

    @property
    def grad_fn(self) -> Any:
        """The node of the Tensor that holds the batch."""
        return self._array.value.grad_fn

    @property
    def grad(self) -> Any:
        """None: gradients are accumulated in the batch."""
        return None

    @grad.setter
    def grad(self, value: Any) -> None:
        raise _refuse("setting `.grad`", "return the gradient instead")

    @grad.deleter
    def grad(self) -> None:
        raise _refuse("deleting `.grad`", "there is none")

    def retain_grad(self) -> None:
        """Raise an error: an element of a batch cannot retain its gradient."""
        raise _refuse("calling `retain_grad()`", "use `xpgrad.func.grad`, or return the Tensor and retain its gradient outside")

    def backward(self, *args: Any, **kwargs: Any) -> None:
        """Raise an error: leaves would get the sum over the batch instead of the gradient of one element."""
        msg = "backward() called inside a functorch transform (`xpgrad.func.vmap`)"
        raise _refuse(msg, "use `xpgrad.func.grad`, or return the Tensor and call `backward()` outside")

    def register_hook(self, hook: Any) -> Any:
        """Call `hook` with the gradient of one element, inside the batch; its result replaces the gradient."""
        raw = self._array
        if not callable(hook) or raw.level is None:
            return raw.value.register_hook(hook)
        cls, level = type(self), raw.level

        def batched(g: Any) -> Any:
            with at_levels((*active_levels(), level)):
                out = hook(enter(g, level, cls))
                return None if out is None else leave(out, level, cls)

        return raw.value.register_hook(batched)

    def detach(self) -> Tensor:
        """Return the element without its history."""
        return self._wrap(type(self._array)(self._array.value.detach(), self._array.level))

    @property
    def data(self) -> Tensor:
        """The element without its history. Assigning to it raises RuntimeError."""
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        replace_data(self, value)

    def detach_(self) -> Tensor:
        """Detach this Tensor from its history, in place."""
        self._array = type(self._array)(self._array.value.detach(), self._array.level)
        return self

    def is_inference(self) -> bool:
        """Return whether the Tensor that holds the batch is an inference tensor."""
        return self._array.value.is_inference()

    def _become_inference(self) -> None:
        pass  # the batch already is

    def _stand_in(self) -> Tensor:
        return self

    def _move_to(self, device: Device) -> Tensor:
        """Return the element on another device; used by `to_device`."""
        moved = to_device(self._array.value, device)
        cls = batch_class(type(moved))
        return cls.backend.wrap(cls.backend.raw(moved, self._array.level))

    @classmethod
    def align(cls, tensors: list[Any]) -> list[Any]:
        return raise_to_common(tensors)

    @classmethod
    def lift(cls, x: Any) -> Any:
        return lift(x, cls)


_classes: dict[Any, Any] = {}


def batch_class(inner: Any) -> Any:
    """Return the class of batched Tensors over Tensors of the class `inner`."""
    found = _classes.get(inner)
    if found is None:
        backend = BatchBackend(inner)
        body = {
            "__slots__": (), "backend": backend, "device": inner.device, "depth": inner.depth + 1, "stage": inner.stage + 1, "inner": inner,
            "__module__": "xpgrad", "__qualname__": "Tensor",
        }  # fmt: skip
        backend.cls = backend.tensor_base = type("Tensor", (BatchedTensor,), body)
        found = _classes.setdefault(inner, backend.cls)  # another thread may have been faster
    return found


def class_of_depth(cls: Any, depth: int) -> Any:
    """Return the class of Tensors on the same device that is `depth` batches above an ordinary one."""
    while cls.depth > depth:
        cls = cls.inner
    while cls.depth < depth:
        cls = batch_class(cls)
    return cls


def lift(x: Any, cls: Any) -> Any:
    """Convert `x` to a Tensor of a class above its own; it has the same value for all elements."""
    if x.stage == cls.stage:
        return x
    return enter(x._stand_in(), None, cls) if issubclass(cls, BatchedTensor) else cls.lift(x)


def enter(x: Any, level: BatchLevel | None, cls: Any) -> Any:
    """Return the elements of `x` along its first axis as one Tensor of the class `cls`; without a level all elements share `x`."""
    return cls._wrap(cls.backend.raw(lift(x, cls.inner), level))


def leave(x: Any, level: BatchLevel, cls: Any) -> Any:
    """Stack all elements of a result along a new first axis, undoing `enter`."""
    x = lift(x, cls)
    raw = x._array
    if raw.level is level:
        return raw.value
    if raw.level is not None:
        raise escaped_error()
    value = raw.value
    return broadcast_view(value, (level.size, *value.shape))


def take_out(x: Any, level: BatchLevel | None, cls: Any) -> Any:
    """Remove the batch axis of a level from a Tensor that may have further batches inside that level.

    Raises
    ------
    LookupError
        If `level` is None, which means that all elements share `x`, but they do not.
    """
    if x.depth <= cls.depth:
        if level is not None:
            return leave(x, level, cls)
        x = lift(x, cls)
        if x._array.level is not None:
            raise LookupError
        return x._array.value
    raw = x._array
    value = take_out(raw.value, level, cls)
    moved = raw.level is not None and level is not None
    return enter(moveaxis(value, 1, 0) if moved else value, raw.level, type(x).inner)


def put_in(x: Any, level: BatchLevel | None, cls: Any) -> Any:
    """Undo `take_out`."""
    if x.depth < cls.depth:
        return lift(x, cls) if level is None else enter(x, level, cls)
    raw = x._array
    moved = raw.level is not None and level is not None
    return enter(put_in(moveaxis(raw.value, 1, 0) if moved else raw.value, level, cls), raw.level, batch_class(type(x._stand_in())))


def raise_to_common(tensors: list[Any]) -> list[Any]:
    """Convert Tensors of different stages on one device to the class with the highest stage."""
    highest = max(tensors, key=lambda t: t.stage)
    return [lift(t, type(highest._stand_in())) for t in tensors]
