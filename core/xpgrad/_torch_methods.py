"""The methods that users of PyTorch reach for: each is the function of the same meaning in the namespace.

`dim` and `keepdim` are accepted beside the standard's `axis` and `keepdims`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from xpgrad._tensor import Tensor

__all__ = ["TorchMethods"]


def _ns() -> Any:
    return sys.modules["xpgrad"]


def _axis(axis: Any, dim: Any) -> Any:
    if dim is not None:
        if axis is not None:
            msg = f"`axis` and `dim` are two names of one argument, but got axis={axis!r} and dim={dim!r}"
            raise TypeError(msg)
        return dim
    return axis


class TorchMethods:
    """Methods with PyTorch's names; see `Tensor`."""

    __slots__ = ()

    _array: Any
    backend: ClassVar[Any]

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim  # type: ignore[attr-defined]

    def numel(self) -> int:
        """The number of elements."""
        return self.size  # type: ignore[attr-defined]

    def element_size(self) -> int:
        """Bytes per element."""
        return self.itemsize  # type: ignore[attr-defined]

    def stride(self, dim: int | None = None) -> Any:
        """Strides in elements: all, or one axis's.

        Raises
        ------
        CapabilityError
            If the backend's arrays have none.
        """
        strides = self.backend.strides(self.backend.own(self))
        if strides is None:
            from xpgrad.errors import CapabilityError

            msg = f"arrays of backend {self.backend.table_name!r} have no strides"
            raise CapabilityError(msg)
        return strides if dim is None else strides[dim]

    def clone(self) -> Tensor:
        """A copy in memory of its own, recorded (fresh version counter)."""
        from xpgrad.rules.creation import clone

        return clone(self)

    def contiguous(self) -> Tensor:
        """This Tensor in row-major order: itself if it is so already."""
        strides = self.backend.strides(self._array)
        expected, dense = 1, True
        for n, s in zip(reversed(self.shape), reversed(strides or ())):  # type: ignore[attr-defined]
            dense = dense and (n == 1 or s == expected)
            expected *= n
        if dense:
            return self  # type: ignore[return-value]
        from xpgrad.rules.creation import clone_contiguous

        return clone_contiguous(self)

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """In another shape: a view where strides allow."""
        return _ns().reshape(self, shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape)

    view = reshape

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Tensor:
        """With the axes `start_dim` to `end_dim` merged into one."""
        shape = self.shape or (1,)  # type: ignore[attr-defined]
        start, end = start_dim % len(shape), end_dim % len(shape)
        n = 1
        for length in shape[start : end + 1]:
            n *= length
        return _ns().reshape(self, (*shape[:start], n, *shape[end + 1 :]))

    def squeeze(self, axis: Any = None, *, dim: Any = None) -> Tensor:
        """Without axes of length 1 (all of them by default; as PyTorch, one that is longer stays)."""
        axis = _axis(axis, dim)
        shape = self.shape  # type: ignore[attr-defined]
        axes = range(len(shape)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        return _ns().squeeze(self, tuple(a for a in axes if shape[a] == 1))

    def unsqueeze(self, dim: int) -> Tensor:
        """With a new axis of length 1 at `dim`."""
        return _ns().expand_dims(self, axis=dim)

    def permute(self, *dims: int | Sequence[int]) -> Tensor:
        """With the axes in another order: a view."""
        return _ns().permute_dims(self, dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims)

    def transpose(self, dim0: int, dim1: int) -> Tensor:
        """With two axes exchanged: a view."""
        order = list(range(self.ndim))  # type: ignore[attr-defined]
        order[dim0], order[dim1] = order[dim1], order[dim0]
        return _ns().permute_dims(self, tuple(order))

    def t(self) -> Tensor:
        """The transpose of a matrix (a vector is returned as it is)."""
        return self.T if self.ndim == 2 else self  # type: ignore[attr-defined, return-value]

    def expand(self, *sizes: int | Sequence[int]) -> Tensor:
        """Broadcast to a larger shape without a copy; -1 keeps a length."""
        wanted = list(sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)
        own = (1,) * (len(wanted) - self.ndim) + self.shape  # type: ignore[attr-defined]
        return _ns().broadcast_to(self, tuple(o if w == -1 else w for w, o in zip(wanted, own)))

    def expand_as(self, other: Tensor) -> Tensor:
        """Broadcast to the shape of another Tensor."""
        return _ns().broadcast_to(self, other.shape)

    def view_as(self, other: Tensor) -> Tensor:
        """In the shape of another Tensor."""
        return _ns().reshape(self, other.shape)

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The slices along an axis."""
        return _ns().unstack(self, axis=dim)

    # -- dtypes ------------------------------------------------------------------------------------------------------

    def to(self, target: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
        """In another dtype, or on another device; the Tensor itself where nothing changes."""
        from xpgrad._device import Device
        from xpgrad._dtypes import DTYPES, DType

        if isinstance(target, Device) or (isinstance(target, str) and target not in DTYPES):
            device = target
        elif isinstance(target, TorchMethods):
            dtype, device = target.dtype, target.device  # type: ignore[attr-defined]
        elif target is not None:
            dtype = target
        out: Any = self
        out = out if device is None else out.to_device(device)
        if dtype is not None and not isinstance(dtype, DType):
            from xpgrad._dtypes import as_dtype

            dtype = as_dtype(dtype, out.default_dtype)
        return out if dtype is None else out._cast(dtype)

    def type_as(self, other: Tensor) -> Tensor:
        """In the dtype of another Tensor."""
        return self.to(dtype=other.dtype)

    def double(self) -> Tensor:
        """In float64."""
        return self.to(dtype="float64")

    def float(self) -> Tensor:
        """In float32."""
        return self.to(dtype="float32")

    def half(self) -> Tensor:
        """In float16."""
        return self.to(dtype="float16")

    def long(self) -> Tensor:
        """In int64."""
        return self.to(dtype="int64")

    def is_floating_point(self) -> bool:
        """Whether the dtype is real floating."""
        return self.dtype.is_floating_point  # type: ignore[attr-defined]

    def is_complex(self) -> bool:
        """Whether the dtype is complex."""
        return self.dtype.is_complex  # type: ignore[attr-defined]

    # -- reductions ----------------------------------------------------------------------------------------------------

    def sum(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The sum over axes."""
        return _ns().sum(self, axis=_axis(axis, dim), dtype=dtype, keepdims=keepdims or keepdim)

    def mean(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The mean over axes."""
        return _ns().mean(self, axis=_axis(axis, dim), keepdims=keepdims or keepdim)

    def prod(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The product over axes."""
        return _ns().prod(self, axis=_axis(axis, dim), dtype=dtype, keepdims=keepdims or keepdim)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """The largest element over axes (values only)."""
        return _ns().max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """The smallest element over axes (values only)."""
        return _ns().min(self, axis=axis, keepdims=keepdims)

    def amax(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The largest element over axes; ties share the gradient."""
        return _ns().max(self, axis=dim, keepdims=keepdim)

    def amin(self, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The smallest element over axes; ties share the gradient."""
        return _ns().min(self, axis=dim, keepdims=keepdim)

    def var(self, axis: Any = None, *, correction: Any = 0.0, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The variance over axes; `correction` is 0 by default, as in the standard (PyTorch's is 1)."""
        return _ns().var(self, axis=_axis(axis, dim), correction=correction, keepdims=keepdims or keepdim)

    def std(self, axis: Any = None, *, correction: Any = 0.0, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """The standard deviation over axes; `correction` is 0 by default, as in the standard (PyTorch's is 1)."""
        return _ns().std(self, axis=_axis(axis, dim), correction=correction, keepdims=keepdims or keepdim)

    def argmax(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """Where the largest element is."""
        return _ns().argmax(self, axis=_axis(axis, dim), keepdims=keepdims or keepdim)

    def argmin(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """Where the smallest element is."""
        return _ns().argmin(self, axis=_axis(axis, dim), keepdims=keepdims or keepdim)

    def all(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """Whether all elements are true."""
        return _ns().all(self, axis=_axis(axis, dim), keepdims=keepdims or keepdim)

    def any(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: bool = False) -> Tensor:
        """Whether any element is true."""
        return _ns().any(self, axis=_axis(axis, dim), keepdims=keepdims or keepdim)

    def cumsum(self, dim: int) -> Tensor:
        """Running sums along an axis."""
        return _ns().cumulative_sum(self, axis=dim)

    def cumprod(self, dim: int) -> Tensor:
        """Running products along an axis."""
        return _ns().cumulative_prod(self, axis=dim)

    # -- elementwise and products ----------------------------------------------------------------------------------------

    def exp(self) -> Tensor:
        """The exponential."""
        return _ns().exp(self)

    def log(self) -> Tensor:
        """The natural logarithm."""
        return _ns().log(self)

    def log1p(self) -> Tensor:
        """``log(1 + x)``."""
        return _ns().log1p(self)

    def expm1(self) -> Tensor:
        """``exp(x) - 1``."""
        return _ns().expm1(self)

    def sqrt(self) -> Tensor:
        """The square root."""
        return _ns().sqrt(self)

    def square(self) -> Tensor:
        """The square."""
        return _ns().square(self)

    def abs(self) -> Tensor:
        """The absolute value."""
        return _ns().abs(self)

    def sign(self) -> Tensor:
        """The sign."""
        return _ns().sign(self)

    def neg(self) -> Tensor:
        """``-x``."""
        return _ns().negative(self)

    def reciprocal(self) -> Tensor:
        """``1 / x``."""
        return _ns().reciprocal(self)

    def sin(self) -> Tensor:
        """The sine."""
        return _ns().sin(self)

    def cos(self) -> Tensor:
        """The cosine."""
        return _ns().cos(self)

    def tan(self) -> Tensor:
        """The tangent."""
        return _ns().tan(self)

    def tanh(self) -> Tensor:
        """The hyperbolic tangent."""
        return _ns().tanh(self)

    def floor(self) -> Tensor:
        """Rounded down."""
        return _ns().floor(self)

    def ceil(self) -> Tensor:
        """Rounded up."""
        return _ns().ceil(self)

    def round(self) -> Tensor:
        """Rounded to the nearest integer."""
        return _ns().round(self)

    def conj(self) -> Tensor:
        """The complex conjugate."""
        return _ns().conj(self)

    def isnan(self) -> Tensor:
        """Whether each element is not a number."""
        return _ns().isnan(self)

    def pow(self, exponent: Any, /) -> Tensor:
        """The power."""
        return _ns().pow(self, exponent)

    def add(self, other: Any, /, *, alpha: Any = 1) -> Tensor:
        """``self + alpha * other``."""
        return _ns().add(self, other if alpha == 1 else other * alpha)

    def sub(self, other: Any, /, *, alpha: Any = 1) -> Tensor:
        """``self - alpha * other``."""
        return _ns().subtract(self, other if alpha == 1 else other * alpha)

    def mul(self, other: Any, /) -> Tensor:
        """The product."""
        return _ns().multiply(self, other)

    def div(self, other: Any, /) -> Tensor:
        """The quotient."""
        return _ns().divide(self, other)

    def matmul(self, other: Tensor, /) -> Tensor:
        """The matrix product."""
        return _ns().matmul(self, other)

    mm = matmul

    def dot(self, other: Tensor, /) -> Tensor:
        """The sum of products of two vectors (nothing conjugated)."""
        return _ns().sum(_ns().multiply(self, other))

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002 (PyTorch's names)
        """Limited to ``[min, max]``."""
        return _ns().clip(self, min, max)

    clip = clamp

    def where(self, condition: Tensor, other: Any) -> Tensor:
        """``self`` where `condition` holds, else `other`."""
        return _ns().where(condition, self, other)

    def flip(self, *dims: int | tuple[int, ...]) -> Tensor:
        """Backwards along axes."""
        return _ns().flip(self, axis=dims[0] if len(dims) == 1 else dims)
