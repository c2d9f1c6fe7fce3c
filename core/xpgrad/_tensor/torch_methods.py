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
        """The number of axes.

        Returns
        -------
        int
            The number of axes.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.dim()
        2
        """
        return self.ndim

    def numel(self: Any) -> int:
        """The number of elements.

        Returns
        -------
        int
            The number of elements.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.numel()
        4
        """
        return self.size

    def element_size(self: Any) -> int:
        """Bytes per element.

        Returns
        -------
        int
            Bytes of an element.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.element_size()
        8
        """
        return self.itemsize

    def stride(self: Any, dim: int | None = None) -> Any:
        """Strides in elements: all of them, or that of one axis.

        Parameters
        ----------
        dim : int, optional
            Of this axis alone.

        Returns
        -------
        tuple of int, or int
            In elements.

        Raises
        ------
        CapabilityError
            If the backend's arrays have none.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.stride()
        (2, 1)
        """
        strides = self.backend.strides(self.backend.own(self))
        if strides is None:
            msg = f"arrays of backend {self.backend.table_name!r} have no strides"
            raise CapabilityError(msg)
        return strides if dim is None else strides[normalize_axis(dim, self.ndim, "stride", "dim")]

    def clone(self: Any) -> Tensor:
        """A copy in memory of its own, recorded (fresh version counter).

        Returns
        -------
        Tensor
            Of the same shape and dtype. With memory of its own.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> y = x.clone()
        >>> y.sum().backward()
        >>> x.grad
        tensor([1., 1.])
        """
        return clone(self)

    def contiguous(self: Any) -> Tensor:
        """This Tensor in row-major order: itself if it is in that order already.

        Returns
        -------
        Tensor
            Of the same shape and dtype.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.T.contiguous().stride()
        (2, 1)
        """
        strides = self.backend.strides(self._array)
        expected, dense = 1, True
        for n, s in zip(reversed(self.shape), reversed(strides or ())):
            dense = dense and (n == 1 or s == expected)
            expected *= n
        if dense:
            return self
        return clone_contiguous(self)

    def reshape(self: Any, *shape: Any) -> Tensor:
        """The same elements in another shape: a view where strides allow.

        Parameters
        ----------
        *shape : int or tuple of int
            The shape; one length may be -1.

        Returns
        -------
        Tensor
            A view where that is possible.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.arange(6.0).reshape(2, 3)
        tensor([[0., 1., 2.],
                [3., 4., 5.]])
        >>> xp.arange(6.0).view(-1, 3)
        tensor([[0., 1., 2.],
                [3., 4., 5.]])
        """
        return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape)

    view = reshape

    def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """The Tensor with its axes `start_dim` to `end_dim` merged into one.

        Parameters
        ----------
        start_dim : int
            The first axis that is merged.
        end_dim : int
            The last.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        RuntimeError
            `start_dim` comes after `end_dim`.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((2, 3, 4)).flatten(1).shape
        (2, 12)
        """
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
        """The elements in one row: a view where strides allow.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.ravel()
        tensor([1., 2., 3., 4.])
        """
        return manipulation.reshape(self, (-1,)) if self.size else manipulation.reshape(self, (0,))

    def repeat(self: Any, *sizes: Any) -> Tensor:
        """The Tensor side by side with itself, `sizes` times along each axis (PyTorch's `repeat` is the standard's `tile`).

        Parameters
        ----------
        *sizes : int
            How often along each axis.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        ValueError
            For fewer numbers than there are axes, or a negative one.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.repeat(2, 2)
        tensor([[1., 4., 1., 4.],
                [1., 4., 1., 4.]])
        """
        times = shape_tuple(_several(sizes), "repeat: `sizes`")
        if len(times) < self.ndim:
            msg = (
                f"repeat: a Tensor of shape {self.shape} needs at least {self.ndim} numbers, but got {times}; `tile` needs no more than one"
            )
            raise ValueError(msg)
        return manipulation.tile(self, times)

    def tile(self: Any, *dims: Any) -> Tensor:
        """The Tensor side by side with itself; axes for which no number is given, the first ones, are not repeated.

        Parameters
        ----------
        *dims : int
            The axes, or as often along each.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.tile(2)
        tensor([1., 4., 1., 4.])
        """
        return manipulation.tile(self, shape_tuple(_several(dims), "dims"))

    def squeeze(self: Any, axis: Any = None, *, dim: Any = None) -> Tensor:
        """The Tensor without axes of length 1 (all of them by default; as in PyTorch, a longer one stays).

        Parameters
        ----------
        axis : int or tuple of int, optional
            The axes that go; all of length 1. `dim` is the same.
        dim : int or tuple of int, optional
            The same.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((1, 3, 1)).squeeze().shape
        (3,)
        """
        axis = axis_of(axis, dim)
        shape = self.shape
        if axis is None:
            axes: Any = range(len(shape))
        else:
            axes = normalize_axes(axis, len(shape), "squeeze") if shape or axis not in (0, -1) else ()
        return manipulation.squeeze(self, tuple(a for a in axes if shape[a] == 1))

    def unsqueeze(self: Any, dim: int) -> Tensor:
        """The Tensor with a new axis of length 1 at `dim`.

        Parameters
        ----------
        dim : int
            Where the new axis stands.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.unsqueeze(0).shape
        (1, 2)
        """
        return manipulation.expand_dims(self, axis=dim)

    def permute(self: Any, *dims: Any) -> Tensor:
        """The Tensor with its axes in another order: a view.

        Parameters
        ----------
        *dims : int
            The axes in their new order.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((2, 3, 4)).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        order: Any = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
        return manipulation.permute_dims(self, order)

    def transpose(self: Any, dim0: int, dim1: int) -> Tensor:
        """The Tensor with two axes exchanged: a view.

        Parameters
        ----------
        dim0 : int
            An axis.
        dim1 : int
            The one that it changes places with.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((2, 3, 4)).transpose(0, 2).shape
        (4, 3, 2)
        """
        order = list(range(self.ndim))
        dim0, dim1 = (normalize_axis(d, self.ndim, "transpose", w) for w, d in (("dim0", dim0), ("dim1", dim1)))
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return manipulation.transpose_axes(self, tuple(order))

    def t(self: Any) -> Tensor:
        """The transpose of a matrix (a vector is returned as it is).

        Returns
        -------
        Tensor
            A view; itself with fewer than two axes.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.t()
        tensor([[1., 3.],
                [2., 4.]])
        """
        if self.ndim > 2:
            msg = f"t: a matrix has two axes, but the shape is {self.shape}; use `x.mT`, `x.transpose(dim0, dim1)` or `x.permute(dims)`"
            raise ValueError(msg)
        return self.T if self.ndim == 2 else self

    def expand(self: Any, *sizes: Any) -> Tensor:
        """Broadcast to a larger shape without a copy; -1 keeps a length.

        Parameters
        ----------
        *sizes : int
            The shape; -1 keeps a length.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.expand(3, -1)
        tensor([[1., 4.],
                [1., 4.],
                [1., 4.]])
        """
        wanted = shape_tuple(sizes[0] if len(sizes) == 1 else sizes, "sizes", -1)
        own = (1,) * (len(wanted) - self.ndim) + self.shape
        return manipulation.broadcast_to(self, tuple(o if w == -1 else w for w, o in zip(wanted, own)))

    def expand_as(self: Any, other: Tensor) -> Tensor:
        """Broadcast to the shape of another Tensor.

        Parameters
        ----------
        other : Tensor
            Whose shape is taken.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> xp.tensor([1.0, 2.0]).expand_as(x)
        tensor([[1., 2.],
                [1., 2.]])
        """
        other = as_tensor("expand_as", other)
        return manipulation.broadcast_to(self, other.shape)

    def view_as(self: Any, other: Tensor) -> Tensor:
        """The same elements in the shape of another Tensor.

        Parameters
        ----------
        other : Tensor
            Whose shape is taken.

        Returns
        -------
        Tensor
            A view where strides allow, else a copy.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> xp.arange(4.0).view_as(x)
        tensor([[0., 1.],
                [2., 3.]])
        """
        other = as_tensor("view_as", other)
        return manipulation.reshape(self, other.shape)

    def unbind(self: Any, dim: int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis.

        Parameters
        ----------
        dim : int
            The axis that goes.

        Returns
        -------
        tuple of Tensor
            Views.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> first, second = x.unbind()
        >>> second
        tensor([3., 4.])
        """
        return manipulation.unstack(self, axis=dim)

    def flip(self: Any, *dims: Any) -> Tensor:
        """Reverse along axes: ints, or one tuple or list of them.

        Parameters
        ----------
        *dims : int
            The axes, or as often along each.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.flip(0)
        tensor([4., 1.])
        """
        return manipulation.flip(self, axis=_several(dims))

    # -- dtypes ------------------------------------------------------------------------------------------------------

    def to(self: Any, target: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
        """The Tensor in another dtype, or on another device; itself where nothing changes.

        Parameters
        ----------
        target : DType, Device, str or Tensor, optional
            What it is to be like.
        dtype : DType, optional
            The dtype of the result.
        device : Device or str, optional
            Where the result is.

        Returns
        -------
        Tensor
            Itself where nothing changes.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.to(xp.float32).dtype
        xpgrad.float32
        >>> x.to("numpy+readonly").device
        Device('numpy+readonly')
        """
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
        """The Tensor in the dtype of another.

        Parameters
        ----------
        other : Tensor
            Whose dtype is taken.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> xp.asarray([1, 2]).type_as(x).dtype
        xpgrad.float64
        """
        other = as_tensor("type_as", other)
        return self.to(dtype=other.dtype)

    def double(self: Any) -> Tensor:
        """The Tensor in float64.

        Returns
        -------
        Tensor
            As float64.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((2,), dtype=xp.float32).double().dtype
        xpgrad.float64
        """
        return self.to(dtype="float64")

    def float(self: Any) -> Tensor:
        """The Tensor in float32.

        Returns
        -------
        Tensor
            As float32.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.float().dtype
        xpgrad.float32
        """
        return self.to(dtype="float32")

    def half(self: Any) -> Tensor:
        """The Tensor in float16.

        Returns
        -------
        Tensor
            As float16.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.half().dtype
        xpgrad.float16
        """
        return self.to(dtype="float16")

    def long(self: Any) -> Tensor:
        """The Tensor in int64.

        Returns
        -------
        Tensor
            As int64.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.long()
        tensor([1, 4])
        """
        return self.to(dtype="int64")

    def is_floating_point(self: Any) -> bool:
        """Return whether the dtype is real floating.

        Returns
        -------
        bool
            Whether the dtype is real floating.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.is_floating_point()
        True
        """
        return self.dtype.is_floating_point

    def is_complex(self: Any) -> bool:
        """Return whether the dtype is complex.

        Returns
        -------
        bool
            Whether the dtype is complex.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.is_complex()
        False
        """
        return self.dtype.is_complex

    # -- new Tensors ---------------------------------------------------------------------------------------------------

    def _kin(self: Any, dtype: Any, device: Any) -> dict[str, Any]:
        """The dtype and the device of a new Tensor: those of this one, unless others are asked for."""
        return {"dtype": self.dtype if dtype is None else dtype, "device": self.device if device is None else device}

    def new_zeros(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Zeros of a shape, by default in the dtype and on the device of this Tensor.

        Parameters
        ----------
        *size : int or tuple of int
            The shape.
        dtype : DType, optional
            The dtype of the result.
        device : Device or str, optional
            Where the result is.
        requires_grad : bool
            Whether to record what is computed from the result.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_zeros(2, 2)
        tensor([[0., 0.],
                [0., 0.]])
        """
        return creation.zeros(_several(size), **self._kin(dtype, device), requires_grad=requires_grad)

    def new_ones(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Ones of a shape, by default in the dtype and on the device of this Tensor.

        Parameters
        ----------
        *size : int or tuple of int
            The shape.
        dtype : DType, optional
            The dtype of the result.
        device : Device or str, optional
            Where the result is.
        requires_grad : bool
            Whether to record what is computed from the result.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_ones(2)
        tensor([1., 1.])
        """
        return creation.ones(_several(size), **self._kin(dtype, device), requires_grad=requires_grad)

    def new_empty(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """A Tensor of a shape whose values are not set, by default in the dtype and on the device of this Tensor.

        Parameters
        ----------
        *size : int or tuple of int
            The shape.
        dtype : DType, optional
            The dtype of the result.
        device : Device or str, optional
            Where the result is.
        requires_grad : bool
            Whether to record what is computed from the result.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_empty((3,)).shape
        (3,)
        """
        return creation.empty(_several(size), **self._kin(dtype, device), requires_grad=requires_grad)

    def new_full(self: Any, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """A shape filled with one value, by default in the dtype and on the device of this Tensor.

        Parameters
        ----------
        size : int or tuple of int
            The shape.
        fill_value : number
            The value.
        dtype : DType, optional
            The dtype of the result.
        device : Device or str, optional
            Where the result is.
        requires_grad : bool
            Whether to record what is computed from the result.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_full((2,), 7.0)
        tensor([7., 7.])
        """
        return creation.full(size, fill_value, **self._kin(dtype, device), requires_grad=requires_grad)

    def new_tensor(self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """A copy of `data`, by default in the dtype and on the device of this Tensor.

        Parameters
        ----------
        data : array, number or list
            The data, which are copied.
        dtype : DType, optional
            The dtype of the result.
        device : Device or str, optional
            Where the result is.
        requires_grad : bool
            Whether to record what is computed from the result.

        Returns
        -------
        Tensor
            As the function of that name gives.

        Raises
        ------
        TypeError
            An argument is not of the type above.
        ValueError
            The shapes do not fit.
        IndexError
            An axis is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_tensor([1, 2]).dtype
        xpgrad.float64
        """
        return tensor(data, **self._kin(dtype, device), requires_grad=requires_grad)
