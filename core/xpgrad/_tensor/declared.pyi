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
        """Absolute value; real for complex ``x``. The derivative at 0 is 0 (SUB-02, CPX-07)."""

    def abs_(self) -> Tensor:
        """Write ``x.abs()`` into this Tensor, and return it."""

    def acos(self) -> Tensor:
        """Inverse cosine, in radians."""

    def acos_(self) -> Tensor:
        """Write ``x.acos()`` into this Tensor, and return it."""

    def acosh(self) -> Tensor:
        """Inverse hyperbolic cosine."""

    def acosh_(self) -> Tensor:
        """Write ``x.acosh()`` into this Tensor, and return it."""

    def all(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: Any = None) -> Tensor:
        """True where all elements along axes are true."""

    def any(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: Any = None) -> Tensor:
        """True where any element along axes is true."""

    def argmax(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: Any = None) -> Tensor:
        """Index of the largest element, the first of equal ones (Array API 2024.12, `argmax`)."""

    def argmin(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: Any = None) -> Tensor:
        """Index of the smallest element, the first of equal ones (Array API 2024.12, `argmin`); see `argmax`."""

    def asin(self) -> Tensor:
        """Inverse sine, in radians."""

    def asin_(self) -> Tensor:
        """Write ``x.asin()`` into this Tensor, and return it."""

    def asinh(self) -> Tensor:
        """Inverse hyperbolic sine."""

    def asinh_(self) -> Tensor:
        """Write ``x.asinh()`` into this Tensor, and return it."""

    def atan(self) -> Tensor:
        """Inverse tangent, in radians."""

    def atan_(self) -> Tensor:
        """Write ``x.atan()`` into this Tensor, and return it."""

    def atanh(self) -> Tensor:
        """Inverse hyperbolic tangent."""

    def atanh_(self) -> Tensor:
        """Write ``x.atanh()`` into this Tensor, and return it."""

    def bitwise_not(self) -> Tensor:
        """Bitwise not of integers or bools."""

    def ceil(self) -> Tensor:
        """Rounded up; the derivative is zero (SUB-09)."""

    def ceil_(self) -> Tensor:
        """Write ``x.ceil()`` into this Tensor, and return it."""

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit ``x`` to ``[min, max]``; the gradient passes at the bounds (SUB-07)."""

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit ``x`` to ``[min, max]``; the gradient passes at the bounds (SUB-07)."""

    def conj(self) -> Tensor:
        """Complex conjugate."""

    def cos(self) -> Tensor:
        """Cosine of an angle in radians."""

    def cos_(self) -> Tensor:
        """Write ``x.cos()`` into this Tensor, and return it."""

    def cosh(self) -> Tensor:
        """Hyperbolic cosine."""

    def cosh_(self) -> Tensor:
        """Write ``x.cosh()`` into this Tensor, and return it."""

    def div(self, other: Any, /) -> Tensor:
        """Quotient ``x1 / x2``, elementwise with broadcasting; floating."""

    def div_(self, other: Any, /) -> Tensor:
        """Write ``x.div(other)`` into this Tensor, and return it."""

    def eq(self, other: Any, /) -> Tensor:
        """``x1 == x2``."""

    def exp(self) -> Tensor:
        """Exponential."""

    def exp_(self) -> Tensor:
        """Write ``x.exp()`` into this Tensor, and return it."""

    def expm1(self) -> Tensor:
        """``exp(x) - 1``, accurate near 0."""

    def expm1_(self) -> Tensor:
        """Write ``x.expm1()`` into this Tensor, and return it."""

    def floor(self) -> Tensor:
        """Rounded down; the derivative is zero (SUB-09)."""

    def floor_(self) -> Tensor:
        """Write ``x.floor()`` into this Tensor, and return it."""

    def ge(self, other: Any, /) -> Tensor:
        """``x1 >= x2``."""

    def gt(self, other: Any, /) -> Tensor:
        """``x1 > x2``."""

    def isfinite(self) -> Tensor:
        """True where an element is finite."""

    def isinf(self) -> Tensor:
        """True where an element is infinite."""

    def isnan(self) -> Tensor:
        """True where an element is not a number."""

    def le(self, other: Any, /) -> Tensor:
        """``x1 <= x2``."""

    def log(self) -> Tensor:
        """Natural logarithm."""

    def log10(self) -> Tensor:
        """Logarithm to base 10."""

    def log10_(self) -> Tensor:
        """Write ``x.log10()`` into this Tensor, and return it."""

    def log1p(self) -> Tensor:
        """``log(1 + x)``, accurate near 0."""

    def log1p_(self) -> Tensor:
        """Write ``x.log1p()`` into this Tensor, and return it."""

    def log2(self) -> Tensor:
        """Logarithm to base 2."""

    def log2_(self) -> Tensor:
        """Write ``x.log2()`` into this Tensor, and return it."""

    def log_(self) -> Tensor:
        """Write ``x.log()`` into this Tensor, and return it."""

    def logical_not(self) -> Tensor:
        """Logical not."""

    def lt(self, other: Any, /) -> Tensor:
        """``x1 < x2``."""

    def matmul(self, other: Tensor, /) -> Tensor:
        """Matrix product ``x1 @ x2`` (Array API 2024.12, `matmul`)."""

    def mean(self, axis: Any = None, *, keepdims: bool = False, dim: Any = None, keepdim: Any = None) -> Tensor:
        """Arithmetic mean over axes (Array API 2024.12, `mean`)."""

    def mul(self, other: Any, /) -> Tensor:
        """Product ``x1 * x2``, elementwise with broadcasting."""

    def mul_(self, other: Any, /) -> Tensor:
        """Write ``x.mul(other)`` into this Tensor, and return it."""

    def ne(self, other: Any, /) -> Tensor:
        """``x1 != x2``."""

    def neg(self) -> Tensor:
        """``-x``."""

    def neg_(self) -> Tensor:
        """Write ``x.neg()`` into this Tensor, and return it."""

    def positive(self) -> Tensor:
        """A copy of ``x``."""

    def pow(self, other: Any, /) -> Tensor:
        """Power ``x1 ** x2``, elementwise with broadcasting."""

    def pow_(self, other: Any, /) -> Tensor:
        """Write ``x.pow(other)`` into this Tensor, and return it."""

    def prod(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False, dim: Any = None, keepdim: Any = None) -> Tensor:
        """Product over axes (Array API 2024.12, `prod`); its gradient is exact where elements are zero (SUB-10)."""

    def reciprocal(self) -> Tensor:
        """``1 / x``."""

    def reciprocal_(self) -> Tensor:
        """Write ``x.reciprocal()`` into this Tensor, and return it."""

    def round(self) -> Tensor:
        """Rounded to the nearest integer, halves to even; the derivative is zero (SUB-09)."""

    def round_(self) -> Tensor:
        """Write ``x.round()`` into this Tensor, and return it."""

    def sign(self) -> Tensor:
        """Sign: -1, 0 or 1; for complex ``x`` the number ``x / |x|`` of modulus 1, and 0 at 0."""

    def sign_(self) -> Tensor:
        """Write ``x.sign()`` into this Tensor, and return it."""

    def signbit(self) -> Tensor:
        """True where the sign bit is set."""

    def sin(self) -> Tensor:
        """Sine of an angle in radians."""

    def sin_(self) -> Tensor:
        """Write ``x.sin()`` into this Tensor, and return it."""

    def sinh(self) -> Tensor:
        """Hyperbolic sine."""

    def sinh_(self) -> Tensor:
        """Write ``x.sinh()`` into this Tensor, and return it."""

    def sqrt(self) -> Tensor:
        """Square root; its derivative at 0 is infinite (SUB-03)."""

    def sqrt_(self) -> Tensor:
        """Write ``x.sqrt()`` into this Tensor, and return it."""

    def square(self) -> Tensor:
        """``x * x``."""

    def square_(self) -> Tensor:
        """Write ``x.square()`` into this Tensor, and return it."""

    def sum(self, axis: Any = None, *, dtype: Any = None, keepdims: bool = False, dim: Any = None, keepdim: Any = None) -> Tensor:
        """Sum over axes (Array API 2024.12, `sum`)."""

    def tan(self) -> Tensor:
        """Tangent of an angle in radians."""

    def tan_(self) -> Tensor:
        """Write ``x.tan()`` into this Tensor, and return it."""

    def tanh(self) -> Tensor:
        """Hyperbolic tangent."""

    def tanh_(self) -> Tensor:
        """Write ``x.tanh()`` into this Tensor, and return it."""

    def trunc(self) -> Tensor:
        """Rounded towards zero; the derivative is zero (SUB-09)."""

    def trunc_(self) -> Tensor:
        """Write ``x.trunc()`` into this Tensor, and return it."""
