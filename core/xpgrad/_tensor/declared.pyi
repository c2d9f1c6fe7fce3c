# Written by `python tests/project/test_api.py` from the declarations of functions: change those.

from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._tensor.tensor import Tensor

class DeclaredMethods(TensorBase):
    """The methods of a `Tensor` that declared functions are, in the modules of `rules`."""

    def __hash__(self) -> int: ...
    def __add__(self, other: Any, /) -> Tensor: ...
    def __and__(self, other: Any, /) -> Tensor: ...
    def __eq__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __floordiv__(self, other: Any, /) -> Tensor: ...
    def __ge__(self, other: Any, /) -> Tensor: ...
    def __gt__(self, other: Any, /) -> Tensor: ...
    def __iadd__(self, other: Any, /) -> Tensor: ...
    def __iand__(self, other: Any, /) -> Tensor: ...
    def __ifloordiv__(self, other: Any, /) -> Tensor: ...
    def __ilshift__(self, other: Any, /) -> Tensor: ...
    def __imatmul__(self, other: Any, /) -> Tensor: ...
    def __imod__(self, other: Any, /) -> Tensor: ...
    def __imul__(self, other: Any, /) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: Any, /) -> Tensor: ...
    def __ipow__(self, other: Any, /) -> Tensor: ...
    def __irshift__(self, other: Any, /) -> Tensor: ...
    def __isub__(self, other: Any, /) -> Tensor: ...
    def __itruediv__(self, other: Any, /) -> Tensor: ...
    def __ixor__(self, other: Any, /) -> Tensor: ...
    def __le__(self, other: Any, /) -> Tensor: ...
    def __lshift__(self, other: Any, /) -> Tensor: ...
    def __lt__(self, other: Any, /) -> Tensor: ...
    def __matmul__(self, other: Any, /) -> Tensor: ...
    def __mod__(self, other: Any, /) -> Tensor: ...
    def __mul__(self, other: Any, /) -> Tensor: ...
    def __ne__(self, other: Any, /) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Any, /) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Any, /) -> Tensor: ...
    def __radd__(self, other: Any, /) -> Tensor: ...
    def __rand__(self, other: Any, /) -> Tensor: ...
    def __rfloordiv__(self, other: Any, /) -> Tensor: ...
    def __rlshift__(self, other: Any, /) -> Tensor: ...
    def __rmod__(self, other: Any, /) -> Tensor: ...
    def __rmul__(self, other: Any, /) -> Tensor: ...
    def __ror__(self, other: Any, /) -> Tensor: ...
    def __rpow__(self, other: Any, /) -> Tensor: ...
    def __rrshift__(self, other: Any, /) -> Tensor: ...
    def __rshift__(self, other: Any, /) -> Tensor: ...
    def __rsub__(self, other: Any, /) -> Tensor: ...
    def __rtruediv__(self, other: Any, /) -> Tensor: ...
    def __rxor__(self, other: Any, /) -> Tensor: ...
    def __sub__(self, other: Any, /) -> Tensor: ...
    def __truediv__(self, other: Any, /) -> Tensor: ...
    def __xor__(self, other: Any, /) -> Tensor: ...
    def abs(self) -> Tensor:
        """Return the absolute value, elementwise; the derivative at 0 is taken as 0."""

    def abs_(self) -> Tensor:
        """Compute ``x.abs()`` in place, where ``x`` is this Tensor."""

    def acos(self) -> Tensor:
        """Return the inverse cosine in radians, elementwise."""

    def acos_(self) -> Tensor:
        """Compute ``x.acos()`` in place, where ``x`` is this Tensor."""

    def acosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine, elementwise."""

    def acosh_(self) -> Tensor:
        """Compute ``x.acosh()`` in place, where ``x`` is this Tensor."""

    def all(self, axis: Any = None, keepdim: Any = None, *, keepdims: bool = False, dim: Any = None) -> Tensor:
        """Return whether all elements over axes are True."""

    def any(self, axis: Any = None, keepdim: Any = None, *, keepdims: bool = False, dim: Any = None) -> Tensor:
        """Return whether at least one element over axes is True."""

    def argmax(self, axis: Any = None, keepdim: Any = None, *, keepdims: bool = False, dim: Any = None) -> Tensor:
        """Return the index of the largest element, the first of equal ones."""

    def argmin(self, axis: Any = None, keepdim: Any = None, *, keepdims: bool = False, dim: Any = None) -> Tensor:
        """Return the index of the smallest element, the first of equal ones."""

    def asin(self) -> Tensor:
        """Return the inverse sine in radians, elementwise."""

    def asin_(self) -> Tensor:
        """Compute ``x.asin()`` in place, where ``x`` is this Tensor."""

    def asinh(self) -> Tensor:
        """Return the inverse hyperbolic sine, elementwise."""

    def asinh_(self) -> Tensor:
        """Compute ``x.asinh()`` in place, where ``x`` is this Tensor."""

    def astype(self, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
        """Return `x` in another dtype; the gradient returns in the dtype of `x`."""

    def atan(self) -> Tensor:
        """Return the inverse tangent in radians, elementwise."""

    def atan_(self) -> Tensor:
        """Compute ``x.atan()`` in place, where ``x`` is this Tensor."""

    def atanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent, elementwise."""

    def atanh_(self) -> Tensor:
        """Compute ``x.atanh()`` in place, where ``x`` is this Tensor."""

    def bitwise_not(self) -> Tensor:
        """Return the bitwise not of integers or bools, elementwise."""

    def ceil(self) -> Tensor:
        """Round up to an integer, elementwise; the gradient is zero."""

    def ceil_(self) -> Tensor:
        """Compute ``x.ceil()`` in place, where ``x`` is this Tensor."""

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit `x` to ``[min, max]``, elementwise."""

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit `x` to ``[min, max]``, elementwise."""

    def conj(self) -> Tensor:
        """Return the complex conjugate, elementwise."""

    def cos(self) -> Tensor:
        """Return the cosine of angles in radians, elementwise."""

    def cos_(self) -> Tensor:
        """Compute ``x.cos()`` in place, where ``x`` is this Tensor."""

    def cosh(self) -> Tensor:
        """Return the hyperbolic cosine, elementwise."""

    def cosh_(self) -> Tensor:
        """Compute ``x.cosh()`` in place, where ``x`` is this Tensor."""

    def div(self, other: Any, /) -> Tensor:
        """Return the quotient ``x1 / x2``, elementwise with broadcasting; the result is floating-point."""

    def div_(self, other: Any, /) -> Tensor:
        """Compute ``x.div(other)`` in place, where ``x`` is this Tensor."""

    def eq(self, other: Any, /) -> Tensor:
        """Return whether ``x1 == x2``, elementwise with broadcasting."""

    def exp(self) -> Tensor:
        """Return the exponential, elementwise."""

    def exp_(self) -> Tensor:
        """Compute ``x.exp()`` in place, where ``x`` is this Tensor."""

    def expm1(self) -> Tensor:
        """Return ``exp(x) - 1``, elementwise and accurate near 0."""

    def expm1_(self) -> Tensor:
        """Compute ``x.expm1()`` in place, where ``x`` is this Tensor."""

    def floor(self) -> Tensor:
        """Round down to an integer, elementwise; the gradient is zero."""

    def floor_(self) -> Tensor:
        """Compute ``x.floor()`` in place, where ``x`` is this Tensor."""

    def ge(self, other: Any, /) -> Tensor:
        """Return whether ``x1 >= x2``, elementwise with broadcasting."""

    def gt(self, other: Any, /) -> Tensor:
        """Return whether ``x1 > x2``, elementwise with broadcasting."""

    def isfinite(self) -> Tensor:
        """Return whether each element is finite."""

    def isinf(self) -> Tensor:
        """Return whether each element is infinite."""

    def isnan(self) -> Tensor:
        """Return whether each element is nan."""

    def le(self, other: Any, /) -> Tensor:
        """Return whether ``x1 <= x2``, elementwise with broadcasting."""

    def log(self) -> Tensor:
        """Return the natural logarithm, elementwise."""

    def log10(self) -> Tensor:
        """Return the logarithm to base 10, elementwise."""

    def log10_(self) -> Tensor:
        """Compute ``x.log10()`` in place, where ``x`` is this Tensor."""

    def log1p(self) -> Tensor:
        """Return ``log(1 + x)``, elementwise and accurate near 0."""

    def log1p_(self) -> Tensor:
        """Compute ``x.log1p()`` in place, where ``x`` is this Tensor."""

    def log2(self) -> Tensor:
        """Return the logarithm to base 2, elementwise."""

    def log2_(self) -> Tensor:
        """Compute ``x.log2()`` in place, where ``x`` is this Tensor."""

    def log_(self) -> Tensor:
        """Compute ``x.log()`` in place, where ``x`` is this Tensor."""

    def logical_not(self) -> Tensor:
        """Return whether each element is False."""

    def lt(self, other: Any, /) -> Tensor:
        """Return whether ``x1 < x2``, elementwise with broadcasting."""

    def matmul(self, other: Tensor, /) -> Tensor:
        """Return the matrix product ``x1 @ x2``."""

    def mean(self, axis: Any = None, keepdim: Any = None, *, keepdims: bool = False, dim: Any = None) -> Tensor:
        """Return the arithmetic mean over axes."""

    def mul(self, other: Any, /) -> Tensor:
        """Return the product ``x1 * x2``, elementwise with broadcasting."""

    def mul_(self, other: Any, /) -> Tensor:
        """Compute ``x.mul(other)`` in place, where ``x`` is this Tensor."""

    def ne(self, other: Any, /) -> Tensor:
        """Return whether ``x1 != x2``, elementwise with broadcasting."""

    def neg(self) -> Tensor:
        """Return ``-x``, elementwise."""

    def neg_(self) -> Tensor:
        """Compute ``x.neg()`` in place, where ``x`` is this Tensor."""

    def positive(self) -> Tensor:
        """Return a copy of `x`."""

    def pow(self, other: Any, /) -> Tensor:
        """Return the power ``x1 ** x2``, elementwise with broadcasting."""

    def pow_(self, other: Any, /) -> Tensor:
        """Compute ``x.pow(other)`` in place, where ``x`` is this Tensor."""

    def prod(self, axis: Any = None, keepdim: Any = None, *, dtype: Any = None, keepdims: bool = False, dim: Any = None) -> Tensor:
        """Return the product over axes; its gradient is exact where elements are zero."""

    def reciprocal(self) -> Tensor:
        """Return ``1 / x``, elementwise."""

    def reciprocal_(self) -> Tensor:
        """Compute ``x.reciprocal()`` in place, where ``x`` is this Tensor."""

    def round(self) -> Tensor:
        """Round to the nearest integer, elementwise, and halves to the even one; the gradient is zero."""

    def round_(self) -> Tensor:
        """Compute ``x.round()`` in place, where ``x`` is this Tensor."""

    def sign(self) -> Tensor:
        """Return the sign, elementwise: -1, 0 or 1, and for complex `x` the number ``x / |x|``, or 0 at 0."""

    def sign_(self) -> Tensor:
        """Compute ``x.sign()`` in place, where ``x`` is this Tensor."""

    def signbit(self) -> Tensor:
        """Return whether the sign bit of each element is set."""

    def sin(self) -> Tensor:
        """Return the sine of angles in radians, elementwise."""

    def sin_(self) -> Tensor:
        """Compute ``x.sin()`` in place, where ``x`` is this Tensor."""

    def sinh(self) -> Tensor:
        """Return the hyperbolic sine, elementwise."""

    def sinh_(self) -> Tensor:
        """Compute ``x.sinh()`` in place, where ``x`` is this Tensor."""

    def sqrt(self) -> Tensor:
        """Return the square root, elementwise; its derivative at 0 is infinite."""

    def sqrt_(self) -> Tensor:
        """Compute ``x.sqrt()`` in place, where ``x`` is this Tensor."""

    def square(self) -> Tensor:
        """Return ``x * x``, elementwise."""

    def square_(self) -> Tensor:
        """Compute ``x.square()`` in place, where ``x`` is this Tensor."""

    def sum(self, axis: Any = None, keepdim: Any = None, *, dtype: Any = None, keepdims: bool = False, dim: Any = None) -> Tensor:
        """Return the sum over axes."""

    def tan(self) -> Tensor:
        """Return the tangent of angles in radians, elementwise."""

    def tan_(self) -> Tensor:
        """Compute ``x.tan()`` in place, where ``x`` is this Tensor."""

    def tanh(self) -> Tensor:
        """Return the hyperbolic tangent, elementwise."""

    def tanh_(self) -> Tensor:
        """Compute ``x.tanh()`` in place, where ``x`` is this Tensor."""

    def trunc(self) -> Tensor:
        """Round towards zero, elementwise; the gradient is zero."""

    def trunc_(self) -> Tensor:
        """Compute ``x.trunc()`` in place, where ``x`` is this Tensor."""
