"""Methods with PyTorch's names for shapes, dtypes and new Tensors; each calls a function of the namespace.

Elementwise functions, products and selections are in `torch_functions`, reductions and sorting in `torch_reductions`.
`docs/torch-methods.md` lists the differences from PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from xpgrad._aliasing.cells import note_copy
from xpgrad._array.base import TensorBase
from xpgrad._basics.device import Device
from xpgrad._basics.docstrings import shares
from xpgrad._basics.dtypes import DTYPES, DType, as_dtype, complex_of, real_of
from xpgrad._basics.shapes import normalize_axes, normalize_axis, shape_tuple
from xpgrad._modes.batch_levels import note_made
from xpgrad._operations.lift import as_tensor
from xpgrad._operations.methods import as_in_numpy_code, axis_of, call_with_numpys
from xpgrad._rows import namespace
from xpgrad._tensor import turning
from xpgrad.errors import CapabilityError
from xpgrad.rules import creation, indexing, manipulation
from xpgrad.rules.conversion import tensor
from xpgrad.rules.creation import clone, clone_contiguous

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor


def _as_one(given: tuple[Any, ...]) -> Any:
    """Return lengths or axes that were given one by one, or as one tuple or list."""
    return given[0] if len(given) == 1 else given


# -- what docstrings have in common ------------------------------------------------------------------------------------

_document_axes = shares(
    raises="""\
TypeError
    If an axis is not an int.
IndexError
    If an axis is out of range."""
)
_document_new = shares(
    parameters="""\
*size : int or tuple of int
    Shape of the result, as one tuple or as several ints.
dtype : DType, optional
    Data type; that of this Tensor by default.
device : Device or str, optional
    Device of the result; that of this Tensor by default.
requires_grad : bool
    Whether operations on the result are recorded.""",
    raises="""\
TypeError
    If the shape does not consist of ints, or `dtype` is not a data type.
ValueError
    If a length is negative.""",
)


def _dtype_or_none(x: Any) -> DType | None:
    """Return the dtype that `x` spells, or None."""
    try:
        return as_dtype(x)
    except TypeError:
        return None


def _in_pairs(x: Any, dtype: DType) -> Tensor:
    """Return complex numbers as pairs of real ones along the last axis, or these as complex numbers: a copy, to which writes raise."""
    xp: Any = namespace.operations
    shape = x.shape
    if not shape or (dtype.is_complex and shape[-1] % 2):
        msg = f"view({dtype}): a Tensor of dtype {x.dtype} and shape {shape} has no last axis of pairs"
        raise ValueError(msg)
    if dtype.is_complex:
        out = creation.zeros((*shape[:-1], shape[-1] // 2), dtype=dtype, device=x.device)
        # Written by parts, because the product of 1j and infinity has nan as its real part.
        xp.real(out)[...] = x[..., 0::2]
        xp.imag(out)[...] = x[..., 1::2]
    else:
        out = manipulation.reshape(manipulation.stack([xp.real(x), xp.imag(x)], axis=-1), (*shape[:-1], 2 * shape[-1]))
    note_copy(out)
    return out


class TorchMethods(TensorBase):
    """Methods with PyTorch's names; see `Tensor`. `self` is a `Tensor`, which this base class cannot declare."""

    __slots__ = ()

    def dim(self: Any) -> int:
        """Return the number of axes.

        Returns
        -------
        int
            ``len(x.shape)``.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.dim()
        2
        """
        return self.ndim

    def numel(self: Any) -> int:
        """Return the number of elements.

        Returns
        -------
        int
            The product of the lengths in ``x.shape``.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.numel()
        4
        """
        return self.size

    def element_size(self: Any) -> int:
        """Return the size of an element in bytes.

        Returns
        -------
        int
            Bytes per element.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.element_size()
        8
        """
        return self.itemsize

    def stride(self: Any, dim: int | None = None) -> Any:
        """Return the strides in elements: those of all axes, or that of one.

        Parameters
        ----------
        dim : int, optional
            Axis whose stride to return.

        Returns
        -------
        tuple of int or int
            Number of elements in memory from one index of an axis to the next.

        Raises
        ------
        CapabilityError
            If the backend's arrays have no strides.
        IndexError
            If `dim` is out of range.

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
        """Return a copy in newly allocated memory; the gradient passes through.

        Returns
        -------
        Tensor
            Has the shape and dtype of this Tensor, and its own version counter.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> y = x.clone()
        >>> y.sum().backward()
        >>> x.grad
        tensor([1., 1.])
        """
        return note_made(clone(self))

    def contiguous(self: Any) -> Tensor:
        """Return this Tensor if it is in row-major order, else a copy that is; the gradient passes through.

        Returns
        -------
        Tensor
            Has the shape and dtype of this Tensor.

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

    def reshape(self: Any, *shape: Any, **numpys: Any) -> Tensor:
        """Return the same elements in another shape: a view if the strides allow one.

        Parameters
        ----------
        *shape : int or tuple of int
            New shape, as one tuple or as several ints. One length may be -1, which is inferred. Or one dtype: that of this Tensor; the real
            dtype of a complex Tensor, whose last axis then has real and imaginary parts in turns; or the complex dtype of a real one.
        **numpys : object
            Further arguments of `numpy.ndarray.reshape`, in code that `numpy_code` runs.

        Returns
        -------
        Tensor
            Of that shape and the dtype of this Tensor, or of the given dtype. In another dtype it is a copy, and writes to it raise.

        Raises
        ------
        TypeError
            If the shape does not consist of ints. Other dtypes are refused: the same bytes in them have no derivative, and the standard has
            no function for it.
        ValueError
            If the shape has another number of elements, or the last axis has not an even length for complex numbers.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.arange(6.0).reshape(2, 3)
        tensor([[0., 1., 2.],
                [3., 4., 5.]])
        """
        if numpys:
            return cast("Tensor", call_with_numpys("reshape", self, shape, numpys))
        try:
            return manipulation.reshape(self, shape[0] if len(shape) == 1 else shape)
        except TypeError as exc:
            if len(shape) == 1 and (dtype := _dtype_or_none(shape[0])) is not None:
                if dtype is self.dtype:
                    return manipulation.reshape(self, self.shape)
                if self.dtype.category == "real floating" and dtype is complex_of(self.dtype) and self.dtype is real_of(dtype):
                    return _in_pairs(self, dtype)
                if self.dtype.is_complex and dtype is real_of(self.dtype):
                    return _in_pairs(self, dtype)
                msg = (
                    f"view({dtype}): the same bytes in another dtype have no derivative, and the standard has no such function; convert "
                    "values with `x.astype(dtype)`, read bytes with `x.detach().numpy().view(...)`, or take `xpgrad.real(x)` and "
                    "`xpgrad.imag(x)`"
                )
                raise TypeError(msg) from exc
            raise

    @as_in_numpy_code
    def view(self: Any, *shape: Any) -> Tensor:
        """Return the same elements in another shape, or a complex Tensor as pairs of real numbers; another name of `reshape`.

        Parameters
        ----------
        *shape : int or tuple of int
            As for `reshape`.

        Returns
        -------
        Tensor
            As of `reshape`.

        See Also
        --------
        xpgrad.Tensor.reshape

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.arange(6.0).view(-1, 3)
        tensor([[0., 1., 2.],
                [3., 4., 5.]])
        """
        return cast("Tensor", self.reshape(*shape))

    @as_in_numpy_code
    @_document_axes
    def flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """Merge the axes from `start_dim` to `end_dim` into one.

        Parameters
        ----------
        start_dim : int
            First axis to merge.
        end_dim : int
            Last axis to merge.

        Returns
        -------
        Tensor
            A view if the strides allow one.

        Raises
        ------
        RuntimeError
            If `start_dim` comes after `end_dim`.

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

    @as_in_numpy_code
    def ravel(self: Any) -> Tensor:
        """Return the elements as a one-dimensional Tensor, in row-major order: a view if the strides allow one.

        Returns
        -------
        Tensor
            One-dimensional, of the dtype of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.ravel()
        tensor([1., 2., 3., 4.])
        """
        return manipulation.reshape(self, (-1,)) if self.size else manipulation.reshape(self, (0,))

    @as_in_numpy_code
    def repeat(self: Any, *sizes: Any) -> Tensor:
        """Repeat the whole Tensor along each axis, in newly allocated memory; the standard calls this `tile`.

        Parameters
        ----------
        *sizes : int
            Number of repetitions along each axis; additional ones in front add axes.

        Returns
        -------
        Tensor
            Its lengths are those of this Tensor times `sizes`.

        Raises
        ------
        TypeError
            If a number is not an int.
        ValueError
            If there are fewer numbers than axes, or one is negative.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.repeat(2, 2)
        tensor([[1., 4., 1., 4.],
                [1., 4., 1., 4.]])
        """
        times = shape_tuple(_as_one(sizes), "repeat: `sizes`")
        if len(times) < self.ndim:
            msg = (
                f"repeat: a Tensor of shape {self.shape} needs at least {self.ndim} numbers, but got {times}; `tile` needs no more than one"
            )
            raise ValueError(msg)
        return manipulation.tile(self, times)

    def tile(self: Any, *dims: Any) -> Tensor:
        """Repeat the whole Tensor along its last axes, in newly allocated memory.

        Parameters
        ----------
        *dims : int
            Number of repetitions along each axis, counted from the last one.

        Returns
        -------
        Tensor
            Its lengths are those of this Tensor times `dims`.

        Raises
        ------
        TypeError
            If a number is not an int.
        ValueError
            If a number is negative.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.tile(2)
        tensor([1., 4., 1., 4.])
        """
        return manipulation.tile(self, shape_tuple(_as_one(dims), "dims"))

    @_document_axes
    def squeeze(self: Any, axis: Any = None, *, dim: Any = None) -> Tensor:
        """Return a view without axes of length 1.

        Parameters
        ----------
        axis, dim : int or tuple of int, optional
            Axes to remove; all of length 1 by default. As in PyTorch, an axis of another length stays.

        Returns
        -------
        Tensor
            A view with the same elements.

        Raises
        ------
        TypeError
            If both `axis` and `dim` are given, or an axis is not an int.

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
        """Return a view with a new axis of length 1.

        Parameters
        ----------
        dim : int
            Position of the new axis in the result.

        Returns
        -------
        Tensor
            A view with one more axis.

        Raises
        ------
        TypeError
            If `dim` is not an int.
        IndexError
            If `dim` is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.unsqueeze(0).shape
        (1, 2)
        """
        return manipulation.expand_dims(self, axis=dim)

    @_document_axes
    def permute(self: Any, *dims: Any) -> Tensor:
        """Return a view with the axes in another order.

        Parameters
        ----------
        *dims : int
            The axes in their new order, each exactly once.

        Returns
        -------
        Tensor
            A view whose i-th axis is axis ``dims[i]`` of this Tensor.

        Raises
        ------
        ValueError
            If `dims` does not name each axis exactly once.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((2, 3, 4)).permute(2, 0, 1).shape
        (4, 2, 3)
        """
        order: Any = dims[0] if len(dims) == 1 and isinstance(dims[0], (tuple, list)) else dims
        return manipulation.permute_dims(self, order)

    @as_in_numpy_code
    @_document_axes
    def transpose(self: Any, dim0: int, dim1: int) -> Tensor:
        """Return a view with two axes exchanged.

        Parameters
        ----------
        dim0, dim1 : int
            Axes to exchange.

        Returns
        -------
        Tensor
            A view with the same elements.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((2, 3, 4)).transpose(0, 2).shape
        (4, 3, 2)
        """
        return turning.exchange_axes(self, "transpose", dim0=dim0, dim1=dim1)

    @_document_axes
    def swapaxes(self: Any, axis0: int, axis1: int, /) -> Tensor:
        """Return a view with two axes exchanged; another name of `transpose`.

        Parameters
        ----------
        axis0, axis1 : int
            Axes to exchange.

        Returns
        -------
        Tensor
            A view with the same elements.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((2, 3, 4)).swapaxes(0, 2).shape
        (4, 3, 2)
        """
        return turning.exchange_axes(self, "swapaxes", axis0=axis0, axis1=axis1)

    @_document_axes
    def diagonal(self: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
        """Return a diagonal of the matrices in two axes, as a view.

        Parameters
        ----------
        offset : int
            0 is the main diagonal, positive numbers lie above it, negative ones below.
        dim1, dim2 : int
            Axes of the rows and of the columns; by default the first two, as in PyTorch and NumPy.

        Returns
        -------
        Tensor
            A view without the two axes, whose last axis is the diagonal.

        Raises
        ------
        ValueError
            If the two axes are the same.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.diagonal()
        tensor([1., 4.])
        >>> x.diagonal(1)
        tensor([2.])
        """
        dim1, dim2 = (normalize_axis(d, self.ndim, "diagonal", w) for w, d in (("dim1", dim1), ("dim2", dim2)))
        if dim1 == dim2:
            msg = f"diagonal: `dim1` and `dim2` must differ, but both name axis {dim1} of shape {self.shape}"
            raise ValueError(msg)
        return namespace.package.linalg.diagonal(manipulation.moveaxis(self, (dim1, dim2), (-2, -1)), offset=offset)

    @as_in_numpy_code
    def trace(self: Any) -> Tensor:
        """Return the sum over the main diagonal of a matrix.

        Returns
        -------
        Tensor
            0-d; int64 for integers.

        Raises
        ------
        ValueError
            If this Tensor does not have two axes.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.tensor([[1.0, 2.0], [3.0, 4.0]]).trace()
        tensor(5.)
        """
        if self.ndim != 2:
            msg = f"trace: a matrix has two axes, but the shape is {self.shape}; use `xpgrad.linalg.trace`, which takes stacks"
            raise ValueError(msg)
        return namespace.package.linalg.trace(self)

    @as_in_numpy_code
    def take(self: Any, indices: Any, /, axis: int | None = None) -> Tensor:
        """Return the elements at integer indices; the gradients of duplicates add up.

        Parameters
        ----------
        indices : Tensor, raw array or list of integers
            Indices in any shape; negative ones count from the end.
        axis : int, optional
            Axis to index, as in `numpy.ndarray.take`. By default the Tensor is treated as flattened, as in PyTorch and NumPy.

        Returns
        -------
        Tensor
            Has the shape of the indices, or that of this Tensor with the axis replaced by it.

        Raises
        ------
        TypeError
            If `axis` is not an int, or `indices` are bools.
        IndexError
            If `axis` or an index is out of range, or `indices` are not integers.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> x.take([0, 3])
        tensor([1., 4.])
        >>> x.take([0], axis=1)
        tensor([[1.],
                [3.]])
        """
        return indexing.take(self.ravel(), indices, axis=0) if axis is None else indexing.take(self, indices, axis=axis)

    @as_in_numpy_code
    def copy(self: Any) -> Tensor:
        """Return a copy in newly allocated memory; the gradient passes through. NumPy's name of `clone`.

        Returns
        -------
        Tensor
            Has the shape and dtype of this Tensor, and its own version counter.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0], requires_grad=True)
        >>> x.copy().sum().backward()
        >>> x.grad
        tensor([1., 1.])
        """
        return clone(self)

    def t(self: Any) -> Tensor:
        """Return the transpose of a matrix, as a view; a vector or a 0-d Tensor is returned itself.

        Returns
        -------
        Tensor
            Of shape (N, M) for a matrix of shape (M, N).

        Raises
        ------
        ValueError
            If this Tensor has more than two axes.

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
        """Broadcast to a larger shape without a copy.

        Parameters
        ----------
        *sizes : int
            New shape, as one tuple or as several ints; -1 keeps a length.

        Returns
        -------
        Tensor
            A view that cannot be written to.

        Raises
        ------
        TypeError
            If the shape does not consist of ints.
        ValueError
            If this Tensor does not broadcast to the shape.

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
        """Broadcast to the shape of another Tensor without a copy.

        Parameters
        ----------
        other : Tensor or raw array
            Array with the new shape.

        Returns
        -------
        Tensor
            A view that cannot be written to.

        Raises
        ------
        TypeError
            If `other` is not a Tensor or an array.
        ValueError
            If this Tensor does not broadcast to that shape.

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
        """Return the same elements in the shape of another Tensor: a view if the strides allow one.

        Parameters
        ----------
        other : Tensor or raw array
            Array with the new shape.

        Returns
        -------
        Tensor
            Of the shape of `other` and the dtype of this Tensor.

        Raises
        ------
        TypeError
            If `other` is not a Tensor or an array.
        ValueError
            If `other` has another number of elements.

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
        """Return the slices along an axis, as views.

        Parameters
        ----------
        dim : int
            Axis to remove.

        Returns
        -------
        tuple of Tensor
            Views, one for each index of the axis; they cannot be written to while operations are recorded.

        Raises
        ------
        TypeError
            If `dim` is not an int.
        IndexError
            If `dim` is out of range.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> first, second = x.unbind()
        >>> second
        tensor([3., 4.])
        """
        return manipulation.unstack(self, axis=dim)

    @_document_axes
    def flip(self: Any, *dims: Any) -> Tensor:
        """Return this Tensor reversed along axes, in newly allocated memory.

        Parameters
        ----------
        *dims : int
            Axes to reverse, as one tuple or list, or as several ints.

        Returns
        -------
        Tensor
            Has the shape and dtype of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.flip(0)
        tensor([4., 1.])
        """
        return manipulation.flip(self, axis=_as_one(dims))

    # -- dtypes ------------------------------------------------------------------------------------------------------

    def to(self: Any, target: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
        """Return this Tensor in another dtype or on another device, or itself if nothing changes.

        Parameters
        ----------
        target : DType, Device, str or Tensor, optional
            A dtype, a device, or a Tensor with the dtype and the device of the result.
        dtype : DType, optional
            Data type of the result.
        device : Device or str, optional
            Device of the result.

        Returns
        -------
        Tensor
            Has the shape of this Tensor; the gradient returns in its dtype and on its device.

        Raises
        ------
        TypeError
            If `target` or `dtype` is not a data type.
        BackendNotFoundError, BackendLoadError, ValueError
            If there is no such device.

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
        """Return this Tensor in the dtype of another, or itself if it has that dtype.

        Parameters
        ----------
        other : Tensor or raw array
            Array with the new dtype.

        Returns
        -------
        Tensor
            Has the shape of this Tensor and the dtype of `other`.

        Raises
        ------
        TypeError
            If `other` is not a Tensor or an array.

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
        """Return this Tensor in float64, or itself if it has that dtype.

        Returns
        -------
        Tensor
            float64, of the shape of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> xp.ones((2,), dtype=xp.float32).double().dtype
        xpgrad.float64
        """
        return self.to(dtype="float64")

    def float(self: Any) -> Tensor:
        """Return this Tensor in float32, or itself if it has that dtype.

        Returns
        -------
        Tensor
            float32, of the shape of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.float().dtype
        xpgrad.float32
        """
        return self.to(dtype="float32")

    def half(self: Any) -> Tensor:
        """Return this Tensor in float16, or itself if it has that dtype.

        Returns
        -------
        Tensor
            float16, of the shape of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.half().dtype
        xpgrad.float16
        """
        return self.to(dtype="float16")

    def long(self: Any) -> Tensor:
        """Return this Tensor in int64, or itself if it has that dtype.

        Returns
        -------
        Tensor
            int64, of the shape of this Tensor.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.long()
        tensor([1, 4])
        """
        return self.to(dtype="int64")

    def is_floating_point(self: Any) -> bool:
        """Return whether the dtype is real floating-point.

        Returns
        -------
        bool
            False for integers, bools and complex numbers.

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
            True for complex64 and complex128.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.is_complex()
        False
        """
        return self.dtype.is_complex

    # -- new Tensors ---------------------------------------------------------------------------------------------------

    def _dtype_and_device(self: Any, dtype: Any, device: Any) -> dict[str, Any]:
        """Return the dtype and the device of a new Tensor: those given, or those of this Tensor."""
        return {"dtype": self.dtype if dtype is None else dtype, "device": self.device if device is None else device}

    @_document_new
    def new_zeros(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Return a Tensor of zeros, by default in the dtype and on the device of this Tensor.

        Returns
        -------
        Tensor
            Zeros of that shape.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_zeros(2, 2)
        tensor([[0., 0.],
                [0., 0.]])
        """
        return creation.zeros(_as_one(size), **self._dtype_and_device(dtype, device), requires_grad=requires_grad)

    @_document_new
    def new_ones(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Return a Tensor of ones, by default in the dtype and on the device of this Tensor.

        Returns
        -------
        Tensor
            Ones of that shape.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_ones(2)
        tensor([1., 1.])
        """
        return creation.ones(_as_one(size), **self._dtype_and_device(dtype, device), requires_grad=requires_grad)

    @_document_new
    def new_empty(self: Any, *size: Any, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Return a Tensor with unspecified values, by default in the dtype and on the device of this Tensor.

        Returns
        -------
        Tensor
            Of that shape; its values are arbitrary.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_empty((3,)).shape
        (3,)
        """
        return creation.empty(_as_one(size), **self._dtype_and_device(dtype, device), requires_grad=requires_grad)

    @_document_new
    def new_full(self: Any, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Return a Tensor filled with one value, by default in the dtype and on the device of this Tensor.

        Parameters
        ----------
        size : int or tuple of int
            Shape of the result.
        fill_value : number or 0-d Tensor
            Value of all elements.

        Returns
        -------
        Tensor
            Of that shape, filled with the value.

        Raises
        ------
        TypeError
            If `fill_value` is not a number, or is complex and the dtype is real.
        ValueError
            If `fill_value` is a Tensor with axes, or is not finite and the dtype is an integer one, or if a length is negative.
        OverflowError
            If `fill_value` is out of the range of an integer dtype.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_full((2,), 7.0)
        tensor([7., 7.])
        """
        return creation.full(size, fill_value, **self._dtype_and_device(dtype, device), requires_grad=requires_grad)

    @_document_new
    def new_tensor(self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Return a new leaf with a copy of `data`, by default in the dtype and on the device of this Tensor.

        Parameters
        ----------
        data : scalar, nested sequence, array or Tensor
            Numbers or bools, which are copied.

        Returns
        -------
        Tensor
            A leaf with a copy of the data.

        Raises
        ------
        RuntimeError
            If `requires_grad` is True and the dtype is neither floating-point nor complex.
        TypeError
            If `data` does not consist of numbers.
        ValueError
            If nested sequences are not regular.

        Examples
        --------
        >>> import xpgrad as xp
        >>> x = xp.tensor([1.0, 4.0])
        >>> x.new_tensor([1, 2]).dtype
        xpgrad.float64
        """
        return tensor(data, **self._dtype_and_device(dtype, device), requires_grad=requires_grad)
