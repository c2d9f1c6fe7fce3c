"""The methods that users of PyTorch reach for: each is the corresponding function of the namespace.

`dim` and `keepdim` are accepted as well as the standard's `axis` and `keepdims`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._basics.device import Device
from xpgrad._basics.dtypes import DTYPES, DType, as_dtype
from xpgrad._basics.shapes import normalize_axes, normalize_axis, shape_tuple
from xpgrad._operations.lift import as_tensor, scaled
from xpgrad.errors import CapabilityError
from xpgrad.rules import elementwise, linear_algebra, manipulation, reduction, searching, statistical
from xpgrad.rules.creation import clone, clone_contiguous

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["TorchMethods"]


def _axis(axis: Any, dim: Any) -> Any:
    if dim is not None:
        if axis is not None:
            msg = f"`axis` and `dim` are two names for one argument, but got axis={axis!r} and dim={dim!r}"
            raise TypeError(msg)
        return dim
    return axis


def _keep(keepdims: Any, keepdim: Any) -> Any:
    # NB: only one of the two names is given; what is no bool is the function's to refuse.
    return keepdims if keepdim is False else keepdim


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

    def squeeze(self: Any, axis: Any = None, *, dim: Any = None) -> Tensor:
        """The Tensor without axes of length 1 (all of them by default; as in PyTorch, a longer one stays)."""
        axis = _axis(axis, dim)
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

    # -- reductions ----------------------------------------------------------------------------------------------------

    def sum(self: Any, axis: Any = None, *, dtype: Any = None, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The sum over axes."""
        return reduction.sum(self, axis=_axis(axis, dim), dtype=dtype, keepdims=_keep(keepdims, keepdim))

    def mean(self: Any, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The mean over axes."""
        return statistical.mean(self, axis=_axis(axis, dim), keepdims=_keep(keepdims, keepdim))

    def prod(self: Any, axis: Any = None, *, dtype: Any = None, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The product over axes."""
        return statistical.prod(self, axis=_axis(axis, dim), dtype=dtype, keepdims=_keep(keepdims, keepdim))

    def max(self: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """The largest element over axes (values only)."""
        return reduction.max(self, axis=axis, keepdims=keepdims)

    def min(self: Any, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """The smallest element over axes (values only)."""
        return reduction.min(self, axis=axis, keepdims=keepdims)

    def amax(self: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The largest element over axes; ties share the gradient."""
        return reduction.max(self, axis=dim, keepdims=keepdim)

    def amin(self: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The smallest element over axes; ties share the gradient."""
        return reduction.min(self, axis=dim, keepdims=keepdim)

    def var(
        self: Any, axis: Any = None, *, correction: Any = 0.0, keepdims: bool = False, dim: Any = None, keepdim: bool = False
    ) -> Tensor:
        """The variance over axes; `correction` is 0 by default, as in the standard (PyTorch's is 1)."""
        return statistical.var(self, axis=_axis(axis, dim), correction=correction, keepdims=_keep(keepdims, keepdim))

    def std(
        self: Any, axis: Any = None, *, correction: Any = 0.0, keepdims: bool = False, dim: Any = None, keepdim: bool = False
    ) -> Tensor:
        """The standard deviation over axes; `correction` is 0 by default, as in the standard (PyTorch's is 1)."""
        return statistical.std(self, axis=_axis(axis, dim), correction=correction, keepdims=_keep(keepdims, keepdim))

    def argmax(self: Any, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The index of the largest element."""
        return searching.argmax(self, axis=_axis(axis, dim), keepdims=_keep(keepdims, keepdim))

    def argmin(self: Any, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The index of the smallest element."""
        return searching.argmin(self, axis=_axis(axis, dim), keepdims=_keep(keepdims, keepdim))

    def all(self: Any, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """True where all elements are true."""
        return reduction.all(self, axis=_axis(axis, dim), keepdims=_keep(keepdims, keepdim))

    def any(self: Any, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """True where any element is true."""
        return reduction.any(self, axis=_axis(axis, dim), keepdims=_keep(keepdims, keepdim))

    def cumsum(self: Any, dim: int) -> Tensor:
        """Running sums along an axis."""
        return statistical.cumulative_sum(self, axis=dim)

    def cumprod(self: Any, dim: int) -> Tensor:
        """Running products along an axis."""
        return statistical.cumulative_prod(self, axis=dim)

    # -- elementwise and products ----------------------------------------------------------------------------------------

    def exp(self: Any) -> Tensor:
        """The exponential."""
        return elementwise.exp(self)

    def log(self: Any) -> Tensor:
        """The natural logarithm."""
        return elementwise.log(self)

    def log1p(self: Any) -> Tensor:
        """``log(1 + x)``."""
        return elementwise.log1p(self)

    def expm1(self: Any) -> Tensor:
        """``exp(x) - 1``."""
        return elementwise.expm1(self)

    def sqrt(self: Any) -> Tensor:
        """The square root."""
        return elementwise.sqrt(self)

    def square(self: Any) -> Tensor:
        """The square."""
        return elementwise.square(self)

    def abs(self: Any) -> Tensor:
        """The absolute value."""
        return elementwise.abs(self)

    def sign(self: Any) -> Tensor:
        """The sign."""
        return elementwise.sign(self)

    def neg(self: Any) -> Tensor:
        """``-x``."""
        return elementwise.negative(self)

    def reciprocal(self: Any) -> Tensor:
        """``1 / x``."""
        return elementwise.reciprocal(self)

    def sin(self: Any) -> Tensor:
        """The sine."""
        return elementwise.sin(self)

    def cos(self: Any) -> Tensor:
        """The cosine."""
        return elementwise.cos(self)

    def tan(self: Any) -> Tensor:
        """The tangent."""
        return elementwise.tan(self)

    def tanh(self: Any) -> Tensor:
        """The hyperbolic tangent."""
        return elementwise.tanh(self)

    def floor(self: Any) -> Tensor:
        """Round down."""
        return elementwise.floor(self)

    def ceil(self: Any) -> Tensor:
        """Round up."""
        return elementwise.ceil(self)

    def round(self: Any) -> Tensor:
        """Round to the nearest integer."""
        return elementwise.round(self)

    def conj(self: Any) -> Tensor:
        """The complex conjugate."""
        return elementwise.conj(self)

    def isnan(self: Any) -> Tensor:
        """True where an element is not a number."""
        return elementwise.isnan(self)

    def pow(self: Any, exponent: Any, /) -> Tensor:
        """The power."""
        return elementwise.pow(self, exponent)

    def add(self: Any, other: Any, /, *, alpha: Any = 1) -> Tensor:
        """``self + alpha * other``."""
        return elementwise.add(self, scaled(self, other, alpha, "add"))

    def sub(self: Any, other: Any, /, *, alpha: Any = 1) -> Tensor:
        """``self - alpha * other``."""
        return elementwise.subtract(self, scaled(self, other, alpha, "sub"))

    def mul(self: Any, other: Any, /) -> Tensor:
        """The product."""
        return elementwise.multiply(self, other)

    def div(self: Any, other: Any, /) -> Tensor:
        """The quotient."""
        return elementwise.divide(self, other)

    def matmul(self: Any, other: Tensor, /) -> Tensor:
        """The matrix product."""
        return linear_algebra.matmul(self, other)

    mm = matmul

    def dot(self: Any, other: Tensor, /) -> Tensor:
        """The sum of products of two vectors (nothing conjugated)."""
        return reduction.sum(elementwise.multiply(self, other))

    def clamp(self: Any, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002 (PyTorch's names)
        """Limit to ``[min, max]``."""
        return elementwise.clip(self, min, max)

    clip = clamp

    def where(self: Any, condition: Tensor, other: Any) -> Tensor:
        """``self`` where `condition` holds, else `other`."""
        return elementwise.where(condition, self, other)

    def flip(self: Any, *dims: Any) -> Tensor:
        """Reverse along axes: ints, or one tuple or list of them."""
        return manipulation.flip(self, axis=dims[0] if len(dims) == 1 else dims)
