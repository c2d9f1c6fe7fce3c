"""The methods that users of PyTorch reach for, element by element, and products: each is a function of the namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad._array.base import TensorBase
from xpgrad._operations.lift import as_tensor, lift, scaled
from xpgrad._rows import namespace
from xpgrad.rules import elementwise, linear_algebra, manipulation, reduction, utility

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = ["TorchFunctions", "floating"]


def floating(x: Any) -> Any:
    """`x`, or for integers and bools the same in the default floating dtype."""
    return x if x.dtype.differentiable else x._cast(x.default_dtype("real floating"))


def _need_axes(name: str, count: int, **operands: Any) -> None:
    """Refuse operands that do not have so many axes.

    Raises
    ------
    ValueError
        Naming the first of them.
    """
    for what, x in operands.items():
        if x.ndim != count:
            msg = f"{name}: `{what}` must have {count} axes, but has shape {x.shape}; use `@`, which takes any number"
            raise ValueError(msg)


class TorchFunctions(TensorBase):
    """Methods with PyTorch's names; see `Tensor`. `self` is a `Tensor`, although this class on its own cannot declare that."""

    __slots__ = ()

    # -- elementwise ----------------------------------------------------------------------------------------------------

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

    def clamp(self: Any, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002 (PyTorch's names)
        """Limit to ``[min, max]``."""
        return elementwise.clip(self, min, max)

    clip = clamp

    def where(self: Any, condition: Tensor, other: Any) -> Tensor:
        """``self`` where `condition` holds, else `other`."""
        return elementwise.where(condition, self, other)

    def relu(self: Any) -> Tensor:
        """``max(x, 0)``, whose derivative at 0 is 0 (`maximum` shares it: one half)."""
        if self.dtype.kind == "bool":
            msg = "relu needs numbers, but got a Tensor of bools; convert it with `xpgrad.astype`"
            raise TypeError(msg)
        return elementwise.where(self <= 0, 0, self)

    def sigmoid(self: Any) -> Tensor:
        """``1 / (1 + exp(-x))``, without overflow."""
        x = floating(self)
        if x.dtype.is_complex:
            return 1 / (1 + elementwise.exp(-x))
        positive = x >= 0  # each side by the form that overflows nowhere, in none of its derivatives
        power = elementwise.exp(elementwise.where(positive, 0, x))
        return elementwise.where(positive, 1 / (1 + elementwise.exp(-elementwise.where(positive, x, 0))), power / (1 + power))

    # -- comparisons ------------------------------------------------------------------------------------------------------

    def eq(self: Any, other: Any, /) -> Tensor:
        """``self == other``."""
        return elementwise.equal(self, other)

    def ne(self: Any, other: Any, /) -> Tensor:
        """``self != other``."""
        return elementwise.not_equal(self, other)

    def lt(self: Any, other: Any, /) -> Tensor:
        """``self < other``."""
        return elementwise.less(self, other)

    def le(self: Any, other: Any, /) -> Tensor:
        """``self <= other``."""
        return elementwise.less_equal(self, other)

    def gt(self: Any, other: Any, /) -> Tensor:
        """``self > other``."""
        return elementwise.greater(self, other)

    def ge(self: Any, other: Any, /) -> Tensor:
        """``self >= other``."""
        return elementwise.greater_equal(self, other)

    def isclose(self: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
        """True where ``|self - other| <= atol + rtol * |other|``."""
        return utility.isclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan)

    def allclose(self: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Return whether all elements are close; see `isclose`."""
        return utility.allclose(self, other, rtol=rtol, atol=atol, equal_nan=equal_nan)

    # -- products ---------------------------------------------------------------------------------------------------------

    def matmul(self: Any, other: Tensor, /) -> Tensor:
        """The matrix product."""
        return linear_algebra.matmul(self, other)

    def mm(self: Any, mat2: Tensor, /) -> Tensor:
        """The product of two matrices."""
        mat2 = as_tensor("mm", lift("mm", mat2, self))
        _need_axes("mm", 2, self=self, mat2=mat2)
        return linear_algebra.matmul(self, mat2)

    def dot(self: Any, other: Tensor, /) -> Tensor:
        """The sum of products of two vectors of one length (nothing conjugated)."""
        other = as_tensor("dot", lift("dot", other, self))
        _need_axes("dot", 1, self=self, other=other)
        if self.shape != other.shape:
            msg = f"dot: the vectors must be equally long, but the shapes are {self.shape} and {other.shape}"
            raise ValueError(msg)
        return reduction.sum(elementwise.multiply(self, other))

    def mv(self: Any, vec: Tensor, /) -> Tensor:
        """A matrix times a vector."""
        vec = as_tensor("mv", lift("mv", vec, self))
        _need_axes("mv", 2, self=self)
        _need_axes("mv", 1, vec=vec)
        return linear_algebra.matmul(self, vec)

    def bmm(self: Any, mat2: Tensor, /) -> Tensor:
        """The products of two stacks of matrices."""
        mat2 = as_tensor("bmm", lift("bmm", mat2, self))
        _need_axes("bmm", 3, self=self, mat2=mat2)
        _need_as_many("bmm", self, mat2)
        return linear_algebra.matmul(self, mat2)

    def outer(self: Any, vec2: Tensor, /) -> Tensor:
        """All products of the elements of two vectors."""
        return namespace.package.linalg.outer(self, vec2)

    def addmm(self: Any, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """``beta * self + alpha * (mat1 @ mat2)`` for matrices; `self` broadcasts, and is not read where `beta` is 0."""
        mat1, mat2 = (as_tensor("addmm", lift("addmm", m, self)) for m in (mat1, mat2))
        _need_axes("addmm", 2, mat1=mat1, mat2=mat2)
        return _added(self, linear_algebra.matmul(mat1, mat2), beta, alpha, "addmm")

    def baddbmm(self: Any, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
        """``beta * self + alpha * (batch1 @ batch2)`` for stacks of matrices; `self` broadcasts, and is not read where `beta` is 0."""
        batch1, batch2 = (as_tensor("baddbmm", lift("baddbmm", m, self)) for m in (batch1, batch2))
        _need_axes("baddbmm", 3, batch1=batch1, batch2=batch2)
        _need_as_many("baddbmm", batch1, batch2)
        return _added(self, linear_algebra.matmul(batch1, batch2), beta, alpha, "baddbmm")


def _need_as_many(name: str, one: Any, two: Any) -> None:
    """Refuse stacks of different lengths, which PyTorch does not broadcast."""
    if one.shape[0] != two.shape[0]:
        msg = f"{name}: the stacks must be equally long, but the shapes are {one.shape} and {two.shape}; use `@`, which broadcasts"
        raise ValueError(msg)


def _added(x: Any, product: Any, beta: Any, alpha: Any, name: str) -> Any:
    """``beta * x + alpha * product`` in the shape of the product."""
    for what, factor in (("beta", beta), ("alpha", alpha)):
        if getattr(factor, "ndim", 0):
            msg = f"{name}: `{what}` must be a number or a 0-d Tensor, but has shape {tuple(factor.shape)}"
            raise ValueError(msg)
    scaled_product = scaled(x, product, alpha, name)
    if isinstance(beta, (int, float)) and beta == 0:
        return scaled_product
    return manipulation.broadcast_to(scaled(x, x, beta, name), product.shape) + scaled_product
