"""The methods that users of PyTorch reach for, of shapes, of dtypes and of new Tensors: each is a function of the namespace.

Reductions, products and selections are in `torch_functions`. `docs/torch-methods.md` lists what differs from PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DTYPES, DType, as_dtype
from xpgrad._basics.shapes import normalize_axes, normalize_axis, shape_tuple
from xpgrad._operations.lift import as_tensor
from xpgrad._operations.methods import axis_of
from xpgrad.errors import CapabilityError
from xpgrad.rules import creation, manipulation
from xpgrad.rules.conversion import tensor
from xpgrad.rules.creation import clone, clone_contiguous

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor


def _several(given: tuple[Any, ...]) -> Any:
    """Lengths or axes, given one by one or as one tuple or list."""
    return given[0] if len(given) == 1 else given


class TorchMethods(TensorBase):
    """Methods with PyTorch's names; see `Tensor`. `self` is a `Tensor`, although this class on its own cannot declare that."""

    __slots__ = ()

    def dim(self: Any) -> int:
        """The number of axes."""
        return self.ndim

    def numel(self: Any) -> int:
        """The number of elements."""
        return self.size

    def element_size(self: Any) -> int:
        """Bytes per element."""
        return self.itemsize

    def stride(self: Any, dim: int | None = None) -> Any:
        """Strides in elements: all of them, or that of one axis.

        Raises
        ------
        CapabilityError
            If the backend's arrays have none.
        """
        strides = self.backend.strides(self.backend.own(self))
        if strides is None:
            msg = f"arrays of backend {self.backend.table_name!r} have no strides"
            raise CapabilityError(msg)
        return strides if dim is None else strides[normalize_axis(dim, self.ndim, "stride", "dim")]

    def clone(self: Any) -> Tensor:
        """A copy in memory of its own, recorded (fresh version counter)."""
        return clone(self)

    def contiguous(self: Any) -> Tensor:
        """This Tensor in row-major order: itself if it is in that order already."""
        strides = self.backend.strides(self._array)
        expected, dense = 1, True
        for n, s in zip(reversed(self.shape), reversed(strides or ())):
            dense = dense and (n == 1 or s == expected)
            expected *= n
        if dense:
            return self
        return clone_contiguous(self)

    def reshape(self: Any, *shape: Any) -> Tensor:
        """The same elements in another shape: a view where strides allow."""
        return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape)

    view = reshape

    def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """The Tensor with its axes `start_dim` to `end_dim` merged into one."""
        shape = self.shape or (1,)
        start = normalize_axis(start_dim, len(shape), "flatten", "start_dim")
        end = normalize_axis(end_dim, len(shape), "flatten", "end_dim")
        if start > end:
            msg = f"flatten: `start_dim` {start_dim} comes after `end_dim` {end_dim} in shape {shape}; exchange them"
            raise RuntimeError(msg)
        n = 1
        for length in shape[start : end + 1]:
            n *= length
        return manipulation.reshape(self, (*shape[:start], n, *shape[end + 1 :]))

    def ravel(self: Any) -> Tensor:
        """The elements in one row: a view where strides allow."""
        return manipulation.reshape(self, (-1,)) if self.size else manipulation.reshape(self, (0,))

    def repeat(self: Any, *sizes: Any) -> Tensor:
        """The Tensor side by side with itself, `sizes` times along each axis (PyTorch's `repeat` is the standard's `tile`).

        Raises
        ------
        ValueError
            For fewer numbers than there are axes, or a negative one.
        """
        times = shape_tuple(_several(sizes), "repeat: `sizes`")
        if len(times) < self.ndim:
            msg = (
                f"repeat: a Tensor of shape {self.shape} needs at least {self.ndim} numbers, but got {times}; `tile` needs no more than one"
            )
            raise ValueError(msg)
        return manipulation.tile(self, times)

    def tile(self: Any, *dims: Any) -> Tensor:
        """The Tensor side by side with itself; axes for which no number is given, the first ones, are not repeated."""
        return manipulation.tile(self, shape_tuple(_several(dims), "dims"))

    def squeeze(self: Any, axis: Any = None, *, dim: Any = None) -> Tensor:
        """The Tensor without axes of length 1 (all of them by default; as in PyTorch, a longer one stays)."""
        axis = axis_of(axis, dim)
        shape = self.shape
        if axis is None:
            axes: Any = range(len(shape))
        else:
            axes = normalize_axes(axis, len(shape), "squeeze") if shape or axis not in (0, -1) else ()
        return manipulation.squeeze(self, tuple(a for a in axes if shape[a] == 1))

    def unsqueeze(self: Any, dim: int) -> Tensor:
        """The Tensor with a new axis of length 1 at `dim`."""
        return manipulation.expand_dims(self, axis=dim)

    def permute(self: Any, *dims: Any) -> Tensor:
        """The Tensor with its axes in another order: a view."""
        order: Any = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
        return manipulation.permute_dims(self, order)

    def transpose(self: Any, dim0: int, dim1: int) -> Tensor:
        """The Tensor with two axes exchanged: a view."""
        order = list(range(self.ndim))
        dim0, dim1 = (normalize_axis(d, self.ndim, "transpose", w) for w, d in (("dim0", dim0), ("dim1", dim1)))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return manipulation.transpose_axes(self, tuple(order))

    def t(self: Any) -> Tensor:
        """The transpose of a matrix (a vector is returned as it is)."""
        if self.ndim > 2:
            msg = f"t: a matrix has two axes, but the shape is {self.shape}; use `x.mT`, `x.transpose(dim0, dim1)` or `x.permute(dims)`"
            raise ValueError(msg)
        return self.T if self.ndim == 2 else self

    def expand(self: Any, *sizes: Any) -> Tensor:
        """Broadcast to a larger shape without a copy; -1 keeps a length."""
        wanted = shape_tuple(sizes[0] if len(sizes) == 1 else sizes, "sizes", -1)
        own = (1,) * (len(wanted) - self.ndim) + self.shape
        return manipulation.broadcast_to(self, tuple(o if w == -1 else w for w, o in zip(wanted, own)))

    def expand_as(self: Any, other: Tensor) -> Tensor:
        """Broadcast to the shape of another Tensor."""
        other = as_tensor("expand_as", other)
        return manipulation.broadcast_to(self, other.shape)

    def view_as(self: Any, other: Tensor) -> Tensor:
        """The same elements in the shape of another Tensor."""
        other = as_tensor("view_as", other)
        return manipulation.reshape(self, other.shape)

    def unbind(self: Any, dim: int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis."""
        return manipulation.unstack(self, axis=dim)

    def flip(self: Any, *dims: Any) -> Tensor:
        """Reverse along axes: ints, or one tuple or list of them."""
        return manipulation.flip(self, axis=_several(dims))

    # -- dtypes ------------------------------------------------------------------------------------------------------

    def to(self: Any, target: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
        """The Tensor in another dtype, or on another device; itself where nothing changes."""
        if isinstance(target, Device) or (isinstance(target, str) and target not in DTYPES):
            device = target
        elif isinstance(target, TorchMethods):
            dtype, device = target.dtype, target.device
        elif target is not None:
            dtype = target
        out: Any = self
        out = out if device is None else out.to_device(device)
        if dtype is not None and not isinstance(dtype, DType):
            dtype = as_dtype(dtype, out.default_dtype)
        return out if dtype is None else out._cast(dtype)

    def type_as(self: Any, other: Tensor) -> Tensor:
        """The Tensor in the dtype of another."""
        other = as_tensor("type_as", other)
        return self.to(dtype=other.dtype)

    def double(self: Any) -> Tensor:
        """The Tensor in float64."""
        return self.to(dtype="float64")

    def float(self: Any) -> Tensor:
        """The Tensor in float32."""
        return self.to(dtype="float32")

    def half(self: Any) -> Tensor:
        """The Tensor in float16."""
        return self.to(dtype="float16")

    def long(self: Any) -> Tensor:
        """The Tensor in int64."""
        return self.to(dtype="int64")

    def is_floating_point(self: Any) -> bool:
        """Return whether the dtype is real floating."""
        return self.dtype.is_floating_point

    def is_complex(self: Any) -> bool:
        """Return whether the dtype is complex."""
        return self.dtype.is_complex

    # -- new Tensors ---------------------------------------------------------------------------------------------------

    def _kin(self: Any, dtype: Any, device: Any) -> dict[str, Any]:
        """The dtype and the device of a new Tensor: those of this one, unless others are asked for."""
        return {"dtype": self.dtype if dtype is None else dtype, "device": self.device if device is None else device}

    def new_zeros(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Zeros of a shape, by default in the dtype and on the device of this Tensor."""
        return creation.zeros(_several(size), **self._kin(dtype, device), requires_grad=requires_grad)

    def new_ones(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Ones of a shape, by default in the dtype and on the device of this Tensor."""
        return creation.ones(_several(size), **self._kin(dtype, device), requires_grad=requires_grad)

    def new_empty(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """A Tensor of a shape whose values are not set, by default in the dtype and on the device of this Tensor."""
        return creation.empty(_several(size), **self._kin(dtype, device), requires_grad=requires_grad)

    def new_full(self: Any, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """A shape filled with one value, by default in the dtype and on the device of this Tensor."""
        return creation.full(size, fill_value, **self._kin(dtype, device), requires_grad=requires_grad)

    def new_tensor(self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """A copy of `data`, by default in the dtype and on the device of this Tensor."""
        return tensor(data, **self._kin(dtype, device), requires_grad=requires_grad)
