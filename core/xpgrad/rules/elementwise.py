"""Elementwise functions of the standard. A formula is linear in ``g``, so it serves as vjp and as jvp.

For complex operands the engine conjugates around the formulas of holomorphic functions. ``conj=False`` marks functions that are not
holomorphic, and formulas that need no conjugation. The values that a formula reads are those that PyTorch saves: they decide which
in-place writes are errors (MUT-04).
"""

from __future__ import annotations

import cmath
import math
from typing import TYPE_CHECKING, Any, TypeAlias

from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._basics.scalars import as_scalar, is_scalar
from xpgrad._basics.shapes import common_shape
from xpgrad._operations.declare import elementwise, front, nondifferentiable, rule, view
from xpgrad._operations.lift import as_operand, lift, lift_all
from xpgrad._rows.row import Domain, Kink, zero_gradient

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert", "bitwise_left_shift",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign", "cos", "cosh", "divide", "equal", "exp",
    "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal",
    "log", "log1p", "log2", "log10", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum",
    "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign",
    "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc", "where",
]  # fmt: skip

Operand: TypeAlias = "Tensor | complex"  # a Tensor or a Python scalar
_LN2, _LN10 = math.log(2.0), math.log(10.0)


_REAL, _INTEGER = Domain("real"), Domain("integer", integers="exact")
_EXACT, _REAL_EXACT, _NUMBERS = Domain(integers="exact"), Domain("real", integers="exact"), Domain(bools=False, integers="exact")
_TRUTH = Domain("bool", integers="truth")
_LIBRARY = Domain("library", integers="exact")
_POSITIVE, _UNIT = Domain(low=0.0), Domain(low=-1.0, high=1.0)
_AT_BOUND = "exactly at a bound"


def is_complex(x: Any, xp: Any) -> bool:
    """Return whether an array, raw or a Tensor, is complex."""
    kind = getattr(x.dtype, "kind", None)  # many libraries have NumPy's dtypes: this is quicker than `isdtype`
    return xp.isdtype(x.dtype, "complex floating") if kind is None else kind == "c"


def one_for_zero(x: Any, xp: Any) -> Any:
    """Return `x`, which is real and not negative, with 1 for each 0; there its derivative is infinite.

    It divides in gradients that are 0 at a point without a derivative. Their own derivatives, which do not exist either, become nan. Only
    these divide by ``sqrt(0)``, so that NumPy warns of no first gradient.
    """
    return xp.where(x != 0, x, xp.sqrt(x) + 1)


def nan_unless(regular: Any, x: Any, xp: Any) -> Any:
    """Return `x` with nan where `regular` is False.

    nan is a factor, not a constant, because forward mode transposes formulas, and the transpose of a constant is 0.
    """
    ones = xp.ones_like(x)
    return x * xp.where(regular, ones, ones * math.nan)


@rule(None, lambda g, cond, xp: xp.keep(cond, g), conj=False, fresh=True, promotes=False, elementwise=True, helper=True)
def keep(xp: Any, cond: Any, x: Any) -> Any:
    """Return `x` where `cond` is True and 0 elsewhere, even if `x` is nan or infinite there."""
    return xp.where(cond, x, xp.zeros_like(x))


@rule(lambda g, low, high, xp: xp.share(g, low, high), None, None, conj=False, fresh=True, promotes=False, elementwise=True, helper=True)
def share(xp: Any, x: Any, low: Any, high: Any) -> Any:
    """Return `x` where ``low > high`` or either is nan, half of `x` where they are equal, and 0 where ``low < high``."""
    half = xp.multiply(x, xp.full_like(x, 0.5))  # functions take no Python numbers before version 2024.12
    return xp.keep(xp.logical_not(xp.less(low, high)), xp.where(xp.equal(low, high), half, x))


# -- arithmetic ----------------------------------------------------------------------------------------------------


@elementwise("g", "g", op="+", fresh=False, conj=False, node="AddBackward0", domain=_EXACT)
def add(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the sum ``x1 + x2``, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([1.0, 2.0], requires_grad=True), xp.tensor(10.0, requires_grad=True)
    >>> y = xp.add(x1, x2)
    >>> y
    tensor([11., 12.], grad_fn=<AddBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([1., 1.]), tensor(2.))
    """


@elementwise("g", "-g", op="-", fresh=(False, True), conj=False, node="SubBackward0", domain=_NUMBERS)
def subtract(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the difference ``x1 - x2``, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([1.0, 2.0], requires_grad=True), xp.tensor(10.0, requires_grad=True)
    >>> y = xp.subtract(x1, x2)
    >>> y
    tensor([-9., -8.], grad_fn=<SubBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([1., 1.]), tensor(-2.))
    """


@elementwise("g * x2", "g * x1", op="*", node="MulBackward0", method="mul", domain=_EXACT)
def multiply(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the product ``x1 * x2``, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([1.0, 2.0], requires_grad=True), xp.tensor([3.0, 4.0], requires_grad=True)
    >>> y = xp.multiply(x1, x2)
    >>> y
    tensor([3., 8.], grad_fn=<MulBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([3., 4.]), tensor([1., 2.]))
    """


@elementwise("g / x2", "-g * (x1 / x2) / x2", op="/", node="DivBackward0", method="div")
def divide(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the quotient ``x1 / x2``, elementwise with broadcasting; the result is floating-point.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([1.0, 2.0], requires_grad=True), xp.tensor(4.0, requires_grad=True)
    >>> y = xp.divide(x1, x2)
    >>> y
    tensor([0.25, 0.5 ], grad_fn=<DivBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([0.25, 0.25]), tensor(-0.1875))
    """


def _pow_base(g: Any, x1: Any, x2: Any, xp: Any) -> Any:
    # At exponent 0 the derivative is 0, also at base 0, where the formula below would give 0 * inf (HOG-11, SUB-10).
    if isinstance(x2, (int, float, complex)):
        if x2 == 0:
            return xp.zeros_like(g)
        return g * x1 * 2 if x2 == 2 else g * (x1 ** (x2 - 1) * x2)
    # NB: at other finite bases the formula gives 0 as well, and its derivative with respect to the exponent, 1 / x1.
    zero = (x2 == 0) & ((x1 == 0) | ~xp.isfinite(x1))
    return xp.keep(~zero, g * (x2 * xp.pow(x1, xp.where(zero, xp.ones_like(x2), x2 - 1))))


def _pow_exponent(g: Any, x1: Any, x2: Any, out: Any, xp: Any) -> Any:
    # 0 ** x2 is constant for x2 >= 0, although log(0) is infinite (SUB-10).
    positive_exponent = (xp.real(x2) if is_complex(x2, xp) else x2) >= 0
    if not isinstance(x1, (int, float, complex)):
        zero = (x1 == 0) & positive_exponent
        return xp.keep(~zero, g * out * xp.log(xp.where(zero, xp.ones_like(x1), x1)))
    if x1 == 0:  # the factor is a constant, so that higher derivatives do not multiply 0 by infinity either
        return g * out * xp.where(positive_exponent, xp.zeros_like(x2), xp.full_like(x2, -math.inf))
    if is_complex(x2, xp):
        return g * out * cmath.log(x1)
    return g * out * (math.log(x1) if not isinstance(x1, complex) and x1 > 0 else math.nan)


@elementwise(
    _pow_base, _pow_exponent,
    op="**", node="PowBackward0", method="pow", numpy="power",
    kink=Kink("of 0 with an exponent below 1", lambda x1, x2: (x1 == 0) & (x2 < 1), (0.0, 0.5)),
    domain=(Domain(low=0.0, integers="exact"), _EXACT),
)  # fmt: skip
def pow(x1: Operand, x2: Operand, /) -> Tensor:  # noqa: A001 (the standard's name)
    """Return the power ``x1 ** x2``, elementwise with broadcasting.

    The gradient of `x1` is 0 where the exponent is 0, also at base 0. That of `x2` is 0 where the base is 0 and the real part of the
    exponent is not negative.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([2.0, 3.0], requires_grad=True), xp.tensor([3.0, 0.0], requires_grad=True)
    >>> y = xp.pow(x1, x2)
    >>> y
    tensor([8., 1.], grad_fn=<PowBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([12.,  0.]), tensor([5.5452, 1.0986]))
    """


@elementwise(zero_gradient, zero_gradient, op="//", conj=False, node="FloorDivideBackward0", domain=_REAL_EXACT)
def floor_divide(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the quotient rounded down, ``x1 // x2``, elementwise with broadcasting; both gradients are zero.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([7.0, -7.0], requires_grad=True), xp.tensor(2.0, requires_grad=True)
    >>> y = xp.floor_divide(x1, x2)
    >>> y
    tensor([ 3., -4.], grad_fn=<FloorDivideBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([0., 0.]), tensor(0.))
    """


@elementwise(
    lambda g: g, lambda g, x1, x2, xp: -g * xp.floor_divide(x1, x2),
    op="%", fresh=(False, True), node="RemainderBackward0", domain=_REAL_EXACT,
)  # fmt: skip
def remainder(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the remainder of ``x1 // x2``, with the sign of `x2`, elementwise with broadcasting.

    The gradient of `x1` passes unchanged; that of `x2` is multiplied by ``-(x1 // x2)``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([7.0, -7.0], requires_grad=True), xp.tensor(2.0, requires_grad=True)
    >>> y = xp.remainder(x1, x2)
    >>> y
    tensor([1., 1.], grad_fn=<RemainderBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([1., 1.]), tensor(1.))
    """


@elementwise("-g", op="-", conj=False, node="NegBackward0", method="neg", domain=_NUMBERS)
def negative(x: Tensor, /) -> Tensor:
    """Return ``-x``, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-2.0, 3.0])
    >>> xp.negative(x)
    tensor([ 2., -3.])
    >>> xp.func.elementwise_grad(xp.negative)(x)
    tensor([-1., -1.])
    """


@elementwise(lambda g: g, fresh=False, conj=False, op="+", inplace=False, kind="copy", may_return_operand=True, domain=_EXACT)
def positive(x: Tensor, /) -> Tensor:
    """Return a copy of `x`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-2.0, 3.0])
    >>> xp.positive(x)
    tensor([-2.,  3.])
    >>> xp.func.elementwise_grad(xp.positive)(x)
    tensor([1., 1.])
    """


def _abs_jvp(d_x: Any, x: Any, xp: Any) -> Any:
    # Not the formula for complex x: that maps real gradients to complex ones, and this is its transpose.
    return xp.real(xp.conj(xp.sign(x)) * d_x) if is_complex(x, xp) else d_x * xp.sign(x)


@elementwise(
    lambda g, x, xp: g * xp.sign(x),
    conj=False, node="AbsBackward0", jvp=_abs_jvp, dtype="real", kink=Kink("at 0", lambda x: x == 0, (0.0,)), domain=_EXACT,
)  # fmt: skip
def abs(x: Tensor, /) -> Tensor:  # noqa: A001 (the standard's name)
    """Return the absolute value, elementwise; the derivative at 0 is taken as 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-2.0, 0.0, 3.0])
    >>> xp.abs(x)
    tensor([2., 0., 3.])
    >>> xp.func.elementwise_grad(xp.abs)(x)
    tensor([-1.,  0.,  1.])
    """


def _phase_vjp(g: Any, x: Any, out: Any, xp: Any) -> Any:
    # The sign of a complex number moves along the unit circle only, at the speed of the angle.
    radius = xp.abs(x)
    centre = radius == 0
    tangential = g - out * xp.real(g * xp.conj(out))
    return xp.keep(~centre, tangential / xp.where(centre, xp.ones_like(radius), radius))


@rule(
    _phase_vjp,
    conj=False, fresh=True, node="SgnBackward0", jvp=lambda d_x, x, out, xp: _phase_vjp(d_x, x, out, xp), batch="stacked",
    kink=Kink("at 0", lambda x: x == 0, (0.0,)), dtype="same", spelled="sign",
)  # fmt: skip
def phase(xp: Any, x: Any) -> Any:
    """Return ``x / |x|`` for a complex array, and 0 at 0."""
    return xp.sign(x)


@elementwise(zero_gradient, conj=False, guard="not is_complex(x)", slow=lambda row, x: phase(x), domain=_EXACT)
def sign(x: Tensor, /) -> Tensor:
    """Return the sign, elementwise: -1, 0 or 1, and for complex `x` the number ``x / |x|``, or 0 at 0.

    For real `x` the gradient is zero; for complex `x` it is that of the direction ``x / |x|``, and 0 at 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-2.0, 0.0, 3.0])
    >>> xp.sign(x)
    tensor([-1.,  0.,  1.])
    >>> xp.func.elementwise_grad(xp.sign)(x)
    tensor([0., 0., 0.])
    """


@elementwise("g * x * 2", node="PowBackward0", domain=_EXACT)
def square(x: Tensor, /) -> Tensor:
    """Return ``x * x``, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-3.0, 0.5])
    >>> xp.square(x)
    tensor([9.  , 0.25])
    >>> xp.func.elementwise_grad(xp.square)(x)
    tensor([-6.,  1.])
    """


@elementwise(lambda g, out: g / (out * 2), domain=_POSITIVE, kink=Kink("at 0, where its derivative is infinite", lambda x: x == 0, (0.0,)))
def sqrt(x: Tensor, /) -> Tensor:
    """Return the square root, elementwise; its derivative at 0 is infinite.

    Parameters
    ----------
    x : Tensor, raw array or number
        Any shape; negative real values give nan.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.25, 4.0])
    >>> xp.sqrt(x)
    tensor([0.5, 2. ])
    >>> xp.func.elementwise_grad(xp.sqrt)(x)
    tensor([1.  , 0.25])
    """


@elementwise(
    lambda g, out: -g * (out * out),
    guard="dtype_of(x.dtype).differentiable",  # of integers, NumPy's function gives the integer part
    slow=lambda row, x: divide(1, x),
)
def reciprocal(x: Tensor, /) -> Tensor:
    """Return ``1 / x``, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.5, 4.0])
    >>> xp.reciprocal(x)
    tensor([2.  , 0.25])
    >>> xp.func.elementwise_grad(xp.reciprocal)(x)
    tensor([-4.    , -0.0625])
    """


# -- exponentials and logarithms -------------------------------------------------------------------------------------


@elementwise("g * out")
def exp(x: Tensor, /) -> Tensor:
    """Return the exponential, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1.0])
    >>> xp.exp(x)
    tensor([1.    , 2.7183])
    >>> xp.func.elementwise_grad(xp.exp)(x)
    tensor([1.    , 2.7183])
    """


@elementwise(lambda g, out: g * (out + 1))
def expm1(x: Tensor, /) -> Tensor:
    """Return ``exp(x) - 1``, elementwise and accurate near 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1e-9])
    >>> xp.expm1(x)
    tensor([0.e+00, 1.e-09])
    >>> xp.func.elementwise_grad(xp.expm1)(x)
    tensor([1., 1.])
    """


@elementwise("g / x", domain=_POSITIVE)
def log(x: Tensor, /) -> Tensor:
    """Return the natural logarithm, elementwise.

    Parameters
    ----------
    x : Tensor, raw array or number
        Any shape; real values give -inf at 0 and nan below it.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 4.0])
    >>> xp.log(x)
    tensor([0.    , 1.3863])
    >>> xp.func.elementwise_grad(xp.log)(x)
    tensor([1.  , 0.25])
    """


@elementwise(lambda g, x: g / (x + 1), node="Log1PBackward0", domain=Domain(low=-1.0))
def log1p(x: Tensor, /) -> Tensor:
    """Return ``log(1 + x)``, elementwise and accurate near 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1e-9])
    >>> xp.log1p(x)
    tensor([0.e+00, 1.e-09])
    >>> xp.func.elementwise_grad(xp.log1p)(x)
    tensor([1., 1.])
    """


@elementwise(lambda g, x: g / (x * _LN2), domain=_POSITIVE)
def log2(x: Tensor, /) -> Tensor:
    """Return the logarithm to base 2, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 8.0])
    >>> xp.log2(x)
    tensor([0., 3.])
    >>> xp.func.elementwise_grad(xp.log2)(x)
    tensor([1.4427, 0.1803])
    """


@elementwise(lambda g, x: g / (x * _LN10), domain=_POSITIVE)
def log10(x: Tensor, /) -> Tensor:
    """Return the logarithm to base 10, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.0, 100.0])
    >>> xp.log10(x)
    tensor([0., 2.])
    >>> xp.func.elementwise_grad(xp.log10)(x)
    tensor([0.4343, 0.0043])
    """


def _times_weight(g: Any, part: Any, other: Any, xp: Any) -> Any:
    """Return ``g * exp(part) / (exp(part) + exp(other))``, which does not overflow, nor do its derivatives."""
    difference = part - other
    larger = (xp.real(difference) if is_complex(difference, xp) else difference) >= 0
    small = xp.exp(xp.where(larger, -difference, difference))
    return g * (xp.where(larger, xp.ones_like(small), small) / (small + 1))


@elementwise(
    lambda g, x1, x2, xp: _times_weight(g, x1, x2, xp), lambda g, x1, x2, xp: _times_weight(g, x2, x1, xp),
    node="LogaddexpBackward0", domain=Domain("library"),
)  # fmt: skip
def logaddexp(x1: Operand, x2: Operand, /) -> Tensor:
    """Return ``log(exp(x1) + exp(x2))``, elementwise with broadcasting and without overflow.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([0.0, 1000.0], requires_grad=True), xp.tensor([0.0, 1000.0], requires_grad=True)
    >>> y = xp.logaddexp(x1, x2)
    >>> y
    tensor([6.9315e-01, 1.0007e+03], grad_fn=<LogaddexpBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([0.5, 0.5]), tensor([0.5, 0.5]))
    """


# -- trigonometric and hyperbolic functions ----------------------------------------------------------------------------


@elementwise(lambda g, x, xp: g * xp.cos(x))
def sin(x: Tensor, /) -> Tensor:
    """Return the sine of angles in radians, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1.0])
    >>> xp.sin(x)
    tensor([0.    , 0.8415])
    >>> xp.func.elementwise_grad(xp.sin)(x)
    tensor([1.    , 0.5403])
    """


@elementwise(lambda g, x, xp: -g * xp.sin(x))
def cos(x: Tensor, /) -> Tensor:
    """Return the cosine of angles in radians, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1.0])
    >>> xp.cos(x)
    tensor([1.    , 0.5403])
    >>> xp.func.elementwise_grad(xp.cos)(x)
    tensor([-0.    , -0.8415])
    """


@elementwise(lambda g, out: g * (out * out + 1), domain=Domain(low=-math.pi / 2, high=math.pi / 2))
def tan(x: Tensor, /) -> Tensor:
    """Return the tangent of angles in radians, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1.0])
    >>> xp.tan(x)
    tensor([0.    , 1.5574])
    >>> xp.func.elementwise_grad(xp.tan)(x)
    tensor([1.    , 3.4255])
    """


def _complex_slope(at_inverse: Any, x: Any, square: int, xp: Any) -> Any:
    """Return the derivative of a function of complex numbers at its inverse of `x`, which is 0 where ``x * x`` is `square`.

    On a branch cut, the inverse is on the side that the sign of a zero says. A sum such as ``1 - x * x`` loses this sign.
    """
    return xp.where(x * x == square, xp.zeros_like(x), at_inverse)


def _slope_at_asin(x: Any, xp: Any) -> Any:
    return _complex_slope(xp.cos(xp.asin(x)), x, 1, xp) if is_complex(x, xp) else xp.sqrt(1 - x * x)


def _slope_at_asinh(x: Any, xp: Any) -> Any:
    return _complex_slope(xp.cosh(xp.asinh(x)), x, -1, xp) if is_complex(x, xp) else xp.sqrt(x * x + 1)


def _slope_at_acosh(x: Any, xp: Any) -> Any:
    return _complex_slope(xp.sinh(xp.acosh(x)), x, 1, xp) if is_complex(x, xp) else xp.sqrt(x - 1) * xp.sqrt(x + 1)


@elementwise(lambda g, x, xp: g / _slope_at_asin(x, xp), numpy="arcsin", domain=_UNIT)
def asin(x: Tensor, /) -> Tensor:
    """Return the inverse sine in radians, elementwise.

    Parameters
    ----------
    x : Tensor, raw array or number
        Any shape; real values outside [-1, 1] give nan.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 0.5])
    >>> xp.asin(x)
    tensor([0.    , 0.5236])
    >>> xp.func.elementwise_grad(xp.asin)(x)
    tensor([1.    , 1.1547])
    """


@elementwise(lambda g, x, xp: -g / _slope_at_asin(x, xp), numpy="arccos", domain=_UNIT)
def acos(x: Tensor, /) -> Tensor:
    """Return the inverse cosine in radians, elementwise.

    Parameters
    ----------
    x : Tensor, raw array or number
        Any shape; real values outside [-1, 1] give nan.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 0.5])
    >>> xp.acos(x)
    tensor([1.5708, 1.0472])
    >>> xp.func.elementwise_grad(xp.acos)(x)
    tensor([-1.    , -1.1547])
    """


@elementwise(lambda g, x: g / (x * x + 1), numpy="arctan")
def atan(x: Tensor, /) -> Tensor:
    """Return the inverse tangent in radians, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1.0])
    >>> xp.atan(x)
    tensor([0.    , 0.7854])
    >>> xp.func.elementwise_grad(xp.atan)(x)
    tensor([1. , 0.5])
    """


def _atan2_vjp(g: Any, x: Any, y: Any, xp: Any) -> Any:
    # At the origin the derivative is 0, and higher ones are nan, as in PyTorch.
    return g * (x / one_for_zero(x * x + y * y, xp))


@elementwise(
    lambda g, x1, x2, xp: _atan2_vjp(g, x2, x1, xp), lambda g, x1, x2, xp: _atan2_vjp(-g, x1, x2, xp),
    node="Atan2Backward0", numpy="arctan2", domain=_REAL, kink=Kink("at (0, 0)", lambda x1, x2: (x1 == 0) & (x2 == 0), (0.0, 0.0)),
)  # fmt: skip
def atan2(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the angle in radians of the points ``(x2, x1)``, elementwise with broadcasting; its gradient at the origin is taken as 0.

    Parameters
    ----------
    x1 : Tensor, raw array or number
        Ordinates; real.
    x2 : Tensor, raw array or number
        Abscissas; real, of a shape that broadcasts with that of `x1`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([1.0, -1.0], requires_grad=True), xp.tensor([1.0, 1.0], requires_grad=True)
    >>> y = xp.atan2(x1, x2)
    >>> y
    tensor([ 0.7854, -0.7854], grad_fn=<Atan2Backward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([0.5, 0.5]), tensor([-0.5,  0.5]))
    """


@elementwise(lambda g, x, xp: g * xp.cosh(x))
def sinh(x: Tensor, /) -> Tensor:
    """Return the hyperbolic sine, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1.0])
    >>> xp.sinh(x)
    tensor([0.    , 1.1752])
    >>> xp.func.elementwise_grad(xp.sinh)(x)
    tensor([1.    , 1.5431])
    """


@elementwise(lambda g, x, xp: g * xp.sinh(x))
def cosh(x: Tensor, /) -> Tensor:
    """Return the hyperbolic cosine, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1.0])
    >>> xp.cosh(x)
    tensor([1.    , 1.5431])
    >>> xp.func.elementwise_grad(xp.cosh)(x)
    tensor([0.    , 1.1752])
    """


@elementwise("g * (1 - out * out)")
def tanh(x: Tensor, /) -> Tensor:
    """Return the hyperbolic tangent, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1.0])
    >>> xp.tanh(x)
    tensor([0.    , 0.7616])
    >>> xp.func.elementwise_grad(xp.tanh)(x)
    tensor([1.  , 0.42])
    """


@elementwise(lambda g, x, xp: g / _slope_at_asinh(x, xp), numpy="arcsinh")
def asinh(x: Tensor, /) -> Tensor:
    """Return the inverse hyperbolic sine, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 1.0])
    >>> xp.asinh(x)
    tensor([0.    , 0.8814])
    >>> xp.func.elementwise_grad(xp.asinh)(x)
    tensor([1.    , 0.7071])
    """


@elementwise(lambda g, x, xp: g / _slope_at_acosh(x, xp), numpy="arccosh", domain=Domain(low=1.0))
def acosh(x: Tensor, /) -> Tensor:
    """Return the inverse hyperbolic cosine, elementwise.

    Parameters
    ----------
    x : Tensor, raw array or number
        Any shape; real values below 1 give nan.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([1.5, 2.0])
    >>> xp.acosh(x)
    tensor([0.9624, 1.317 ])
    >>> xp.func.elementwise_grad(xp.acosh)(x)
    tensor([0.8944, 0.5774])
    """


@elementwise(lambda g, x: g / (1 - x * x), numpy="arctanh", domain=_UNIT)
def atanh(x: Tensor, /) -> Tensor:
    """Return the inverse hyperbolic tangent, elementwise.

    Parameters
    ----------
    x : Tensor, raw array or number
        Any shape; real values outside [-1, 1] give nan.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([0.0, 0.5])
    >>> xp.atanh(x)
    tensor([0.    , 0.5493])
    >>> xp.func.elementwise_grad(xp.atanh)(x)
    tensor([1.    , 1.3333])
    """


@elementwise(
    lambda g, x1, out: g * (x1 / out), lambda g, x2, out: g * (x2 / out),
    domain=_REAL, kink=Kink("at (0, 0)", lambda x1, x2: (x1 == 0) & (x2 == 0), (0.0, 0.0)),
)  # fmt: skip
def hypot(x1: Operand, x2: Operand, /) -> Tensor:
    """Return ``sqrt(x1 ** 2 + x2 ** 2)``, elementwise with broadcasting and without overflow; its gradient at the origin is nan.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([3.0, 5.0], requires_grad=True), xp.tensor([4.0, 12.0], requires_grad=True)
    >>> y = xp.hypot(x1, x2)
    >>> y
    tensor([ 5., 13.], grad_fn=<HypotBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([0.6   , 0.3846]), tensor([0.8   , 0.9231]))
    """


# -- selection ----------------------------------------------------------------------------------------------------------


@elementwise(
    lambda g, x1, x2, xp: xp.share(g, x1, x2), lambda g, x1, x2, xp: xp.share(g, x2, x1),
    conj=False, node="MaximumBackward0", kink=Kink("of equal values", lambda x1, x2: x1 == x2, (1.0, 1.0), tie=True), domain=_LIBRARY,
)  # fmt: skip
def maximum(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the larger of two values, elementwise with broadcasting; equal values share the gradient evenly.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([1.0, 2.0, 5.0], requires_grad=True), xp.tensor([3.0, 2.0, 4.0], requires_grad=True)
    >>> y = xp.maximum(x1, x2)
    >>> y
    tensor([3., 2., 5.], grad_fn=<MaximumBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([0. , 0.5, 1. ]), tensor([1. , 0.5, 0. ]))
    """


@elementwise(
    lambda g, x1, x2, xp: xp.share(g, x2, x1), lambda g, x1, x2, xp: xp.share(g, x1, x2),
    conj=False, node="MinimumBackward0", kink=Kink("of equal values", lambda x1, x2: x1 == x2, (1.0, 1.0), tie=True), domain=_LIBRARY,
)  # fmt: skip
def minimum(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the smaller of two values, elementwise with broadcasting; equal values share the gradient evenly.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([1.0, 2.0, 5.0], requires_grad=True), xp.tensor([3.0, 2.0, 4.0], requires_grad=True)
    >>> y = xp.minimum(x1, x2)
    >>> y
    tensor([1., 2., 4.], grad_fn=<MinimumBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([1. , 0.5, 0. ]), tensor([0. , 0.5, 1. ]))
    """


def _at_bound(x: Any, lo: Any, hi: Any) -> Any:
    at = x != x
    for bound in (lo, hi):
        if bound is not None:
            at = at | (x == bound)
    return at


def _mask_inside(g: Any, x: Any, lo: Any, hi: Any, xp: Any) -> Any:
    # At a bound the gradient passes (SUB-07).
    if lo is None or hi is None:
        outside = x < lo if hi is None else x > hi
    else:
        outside = (x < lo) | (x > hi)
    return xp.keep(~outside, g)


@rule(
    _mask_inside,
    conj=False, fresh=True, node="ClampBackward1", jvp=lambda d_x, x, lo, hi, xp: _mask_inside(d_x, x, lo, hi, xp), batch="stacked",
    kink=Kink(_AT_BOUND, _at_bound, (1.0, 1.0, 2.0)), public="clip",
)  # fmt: skip
def clip_scalar(xp: Any, x: Any, lo: Any, hi: Any) -> Any:
    """Limit `x` to ``[lo, hi]``, each a Python scalar or None."""
    return xp.clip(x, lo, hi)


@rule(
    lambda g, x, lo, xp: xp.keep(~(x < lo), g), lambda g, x, lo, xp: xp.keep(x < lo, g),
    conj=False, elementwise=True, fresh=True, node="ClampMinBackward1",
    kink=Kink(_AT_BOUND, lambda x, lo: x == lo, (1.0, 1.0)), public="clip",
)  # fmt: skip
def clip_below(xp: Any, x: Any, lo: Any) -> Any:
    """Limit `x` from below by an array."""
    return xp.maximum(x, lo)


@rule(
    lambda g, x, hi, xp: xp.keep(~(x > hi), g), lambda g, x, hi, xp: xp.keep(x > hi, g),
    conj=False, elementwise=True, fresh=True, node="ClampMaxBackward1",
    kink=Kink(_AT_BOUND, lambda x, hi: x == hi, (1.0, 1.0)), public="clip",
)  # fmt: skip
def clip_above(xp: Any, x: Any, hi: Any) -> Any:
    """Limit `x` from above by an array."""
    return xp.minimum(x, hi)


@front(method=("clamp", "clip"))
def clip(x: Tensor, /, min: Operand | None = None, max: Operand | None = None) -> Tensor:  # noqa: A002 (the standard's names)
    """Limit `x` to ``[min, max]``, elementwise.

    The gradient of `x` passes where `x` lies within the bounds, and at the bounds; elsewhere it goes to the bound, if that is a Tensor.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape; real.
    min, max : Tensor, raw array, int, float or None
        Bounds; None means no bound. The shapes of arrays broadcast with that of `x`.

    Returns
    -------
    Tensor
        Has the shape to which `x` and the bounds broadcast, and the dtype of `x`.

    Raises
    ------
    TypeError
        If `x` or a bound is not a Tensor, an array or a number, if a bound is complex, or if a bound is floating-point and `x` is not.
    ValueError
        If the shapes do not broadcast.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-1.0, 0.5, 3.0], requires_grad=True)
    >>> y = xp.clip(x, 0.0, 1.0)
    >>> y
    tensor([0. , 0.5, 1. ], grad_fn=<ClampBackward1>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([0., 1., 0.])
    """
    if not isinstance(x, TensorBase):
        x, min, max = lift_all("clip", (x, min, max))  # noqa: A001
        x = as_operand("clip", x)
    bounds: list[Any] = []
    shape = x.shape
    for name, bound in (("min", min), ("max", max)):
        if bound is None or is_scalar(bound):
            value = None if bound is None else as_scalar(bound)
            if isinstance(value, complex) or (isinstance(value, float) and not x.dtype.differentiable):
                msg = f"clip: `{name}`={value!r} does not fit Tensors of dtype {x.dtype}; give a bound of the same kind"
                raise TypeError(msg)
            bounds.append(int(value) if isinstance(value, bool) else value)  # libraries need not take bools here
        else:
            bound = lift("clip", bound, x)
            if not isinstance(bound, TensorBase):
                raise not_a_tensor("clip", bound)
            try:
                shape = common_shape(shape, bound.shape) if bound.shape else shape
            except ValueError as exc:
                msg = f"clip: `{name}` has shape {bound.shape}, which does not broadcast with the shape {shape} of the others"
                raise ValueError(msg) from exc
            if bound.dtype.is_complex or (bound.dtype.differentiable and not x.dtype.differentiable):
                msg = f"clip: `{name}` of dtype {bound.dtype} does not fit Tensors of dtype {x.dtype}; use `xpgrad.astype`"
                raise TypeError(msg)
            bounds.append(bound._cast(x.dtype))
    if not any(isinstance(b, TensorBase) for b in bounds):
        return clip_scalar(x, *bounds) if bounds != [None, None] else positive(x)
    for bound, limit in zip(bounds, (clip_below, clip_above)):
        if bound is not None:
            x = limit(x, bound)
    return x


@elementwise(None, lambda g, condition, xp: xp.keep(condition, g), lambda g, condition, xp: xp.keep(~condition, g), conj=False)
def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """Return `x1` where `condition` is True and `x2` elsewhere, with broadcasting; the element that is not selected gets the gradient 0.

    Parameters
    ----------
    condition : Tensor or raw array
        bool; in other dtypes every nonzero element counts as True.
    x1 : Tensor, raw array or number
        Values where `condition` is True.
    x2 : Tensor, raw array or number
        Values elsewhere. All three shapes must broadcast with each other.

    Returns
    -------
    Tensor
        Has the shape to which all three broadcast and the dtype to which `x1` and `x2` promote.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-1.0, 4.0], requires_grad=True)
    >>> y = xp.where(x > 0, xp.sqrt(xp.abs(x)), 0.0)
    >>> y
    tensor([0., 2.], grad_fn=<WhereBackward0>)
    >>> xp.sum(y).backward()
    >>> x.grad
    tensor([-0.  ,  0.25])
    """


def _copysign_vjp(g: Any, x1: Any, out: Any, xp: Any) -> Any:
    zero = x1 == 0
    return xp.keep(~zero, g * (out / xp.where(zero, xp.ones_like(out), x1)))


@elementwise(_copysign_vjp, zero_gradient, conj=False, domain=_REAL, kink=Kink("at 0", lambda x1: x1 == 0, (0.0, 1.0)))
def copysign(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the magnitude of `x1` with the sign of `x2`, elementwise with broadcasting.

    The gradient of `x1` is taken as 0 at 0; that of `x2` is zero.

    Parameters
    ----------
    x1 : Tensor, raw array or number
        Magnitudes; real.
    x2 : Tensor, raw array or number
        Numbers whose signs are taken; real, of a shape that broadcasts with that of `x1`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x1, x2 = xp.tensor([1.0, -2.0], requires_grad=True), xp.tensor([-1.0, 1.0], requires_grad=True)
    >>> y = xp.copysign(x1, x2)
    >>> y
    tensor([-1.,  2.], grad_fn=<CopysignBackward0>)
    >>> xp.autograd.grad(xp.sum(y), (x1, x2))
    (tensor([-1., -1.]), tensor([0., 0.]))
    """


# -- rounding -------------------------------------------------------------------------------------------------------------


@elementwise(zero_gradient, conj=False, domain=_REAL_EXACT, may_return_operand=True)
def ceil(x: Tensor, /) -> Tensor:
    """Round up to an integer, elementwise; the gradient is zero.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-1.5, 0.5, 2.5])
    >>> xp.ceil(x)
    tensor([-1.,  1.,  3.])
    >>> xp.func.elementwise_grad(xp.ceil)(x)
    tensor([0., 0., 0.])
    """


@elementwise(zero_gradient, conj=False, domain=_REAL_EXACT, may_return_operand=True)
def floor(x: Tensor, /) -> Tensor:
    """Round down to an integer, elementwise; the gradient is zero.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-1.5, 0.5, 2.5])
    >>> xp.floor(x)
    tensor([-2.,  0.,  2.])
    >>> xp.func.elementwise_grad(xp.floor)(x)
    tensor([0., 0., 0.])
    """


@elementwise(zero_gradient, conj=False, may_return_operand=True, domain=_LIBRARY)
def round(x: Tensor, /) -> Tensor:  # noqa: A001 (the standard's name)
    """Round to the nearest integer, elementwise, and halves to the even one; the gradient is zero.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-1.5, 0.5, 2.5])
    >>> xp.round(x)
    tensor([-2.,  0.,  2.])
    >>> xp.func.elementwise_grad(xp.round)(x)
    tensor([0., 0., 0.])
    """


@elementwise(zero_gradient, conj=False, domain=_REAL_EXACT, may_return_operand=True)
def trunc(x: Tensor, /) -> Tensor:
    """Round towards zero, elementwise; the gradient is zero.

    Examples
    --------
    >>> import xpgrad as xp
    >>> x = xp.tensor([-1.5, 0.5, 2.5])
    >>> xp.trunc(x)
    tensor([-1.,  0.,  2.])
    >>> xp.func.elementwise_grad(xp.trunc)(x)
    tensor([0., 0., 0.])
    """


# -- complex numbers ------------------------------------------------------------------------------------------------------


@elementwise(lambda g, xp: xp.conj(g), conj=False, inplace=False, numpy="conjugate", may_return_operand=True, domain=_EXACT)
def conj(x: Tensor, /) -> Tensor:
    """Return the complex conjugate, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> z = xp.tensor([1.0 + 2.0j, 3.0j])
    >>> xp.conj(z)
    tensor([1.-2.j, 0.-3.j])
    """


@view(lambda g, x_dtype, xp: xp.cast(g, x_dtype), node="RealBackward0", batch="stacked", kind="part", dtype="real", public="real")
def real_part(xp: Any, x: Any) -> Any:
    """Return the real part of a complex array."""
    return xp.real(x)


@view(lambda g, x_dtype, xp: xp.cast(g, x_dtype) * 1j, node="ImagBackward0", batch="stacked", kind="part", dtype="real", public="imag")
def imag_part(xp: Any, x: Any) -> Any:
    """Return the imaginary part of a complex array."""
    return xp.imag(x)


@front
def real(x: Tensor, /) -> Tensor:
    """Return the real part: a view of a complex `x`, or a real `x` itself.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape and dtype.

    Returns
    -------
    Tensor
        Has the shape of `x` and its real dtype; for complex `x` a view if the backend's library has views.

    Raises
    ------
    TypeError
        If `x` is not a Tensor, an array or a number.

    Examples
    --------
    >>> import xpgrad as xp
    >>> z = xp.tensor([1.0 + 2.0j, 3.0j], requires_grad=True)
    >>> xp.sum(xp.real(z)).backward()
    >>> xp.real(z)
    tensor([1., 0.], grad_fn=<RealBackward0>)
    >>> z.grad
    tensor([1.+0.j, 1.+0.j])
    """
    x = as_operand("real", x)
    return real_part(x) if x.dtype.is_complex else x


@front
def imag(x: Tensor, /) -> Tensor:
    """Return the imaginary part of a complex `x`, as a view.

    Parameters
    ----------
    x : Tensor or raw array
        Any shape; complex.

    Returns
    -------
    Tensor
        Has the shape of `x` and its real dtype; a view if the backend's library has views.

    Raises
    ------
    TypeError
        If `x` is real.

    Examples
    --------
    >>> import xpgrad as xp
    >>> z = xp.tensor([1.0 + 2.0j, 3.0j], requires_grad=True)
    >>> xp.sum(xp.imag(z)).backward()
    >>> xp.imag(z)
    tensor([2., 3.], grad_fn=<ImagBackward0>)
    >>> z.grad
    tensor([0.+1.j, 0.+1.j])
    """
    x = as_operand("imag", x)
    if not x.dtype.is_complex:
        msg = f"`imag` needs a complex Tensor, but got dtype {x.dtype}; use `xpgrad.zeros_like(x)` for a real one"
        raise TypeError(msg)
    return imag_part(x)


# -- without a derivative ---------------------------------------------------------------------------------------------------


@nondifferentiable(op="==", method="eq", domain=_EXACT)
def equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Return whether ``x1 == x2``, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.equal(xp.tensor([1.0, 2.0, 3.0]), 2.0)
    tensor([False,  True, False])
    """


@nondifferentiable(op="!=", method="ne", domain=_EXACT)
def not_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Return whether ``x1 != x2``, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.not_equal(xp.tensor([1.0, 2.0, 3.0]), 2.0)
    tensor([ True, False,  True])
    """


@nondifferentiable(op="<", method="lt", domain=_LIBRARY)
def less(x1: Operand, x2: Operand, /) -> Tensor:
    """Return whether ``x1 < x2``, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.less(xp.tensor([1.0, 2.0, 3.0]), 2.0)
    tensor([ True, False, False])
    """


@nondifferentiable(op="<=", method="le", domain=_LIBRARY)
def less_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Return whether ``x1 <= x2``, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.less_equal(xp.tensor([1.0, 2.0, 3.0]), 2.0)
    tensor([ True,  True, False])
    """


@nondifferentiable(op=">", method="gt", domain=_LIBRARY)
def greater(x1: Operand, x2: Operand, /) -> Tensor:
    """Return whether ``x1 > x2``, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.greater(xp.tensor([1.0, 2.0, 3.0]), 2.0)
    tensor([False, False,  True])
    """


@nondifferentiable(op=">=", method="ge", domain=_LIBRARY)
def greater_equal(x1: Operand, x2: Operand, /) -> Tensor:
    """Return whether ``x1 >= x2``, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.greater_equal(xp.tensor([1.0, 2.0, 3.0]), 2.0)
    tensor([False,  True,  True])
    """


@nondifferentiable(domain=_EXACT)
def isfinite(x: Tensor, /) -> Tensor:
    """Return whether each element is finite.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.isfinite(xp.tensor([1.0, xp.inf, xp.nan]))
    tensor([ True, False, False])
    """


@nondifferentiable(domain=_EXACT)
def isinf(x: Tensor, /) -> Tensor:
    """Return whether each element is infinite.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.isinf(xp.tensor([1.0, xp.inf, xp.nan]))
    tensor([False,  True, False])
    """


@nondifferentiable(domain=_EXACT)
def isnan(x: Tensor, /) -> Tensor:
    """Return whether each element is nan.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.isnan(xp.tensor([1.0, xp.inf, xp.nan]))
    tensor([False, False,  True])
    """


@nondifferentiable(domain=_REAL_EXACT)
def signbit(x: Tensor, /) -> Tensor:
    """Return whether the sign bit of each element is set.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.signbit(xp.tensor([-0.0, 0.0, 1.0]))
    tensor([ True, False, False])
    """


@nondifferentiable(domain=_REAL, dtype="same")
def nextafter(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the next floating-point number after `x1` in the direction of `x2`, elementwise with broadcasting.

    Parameters
    ----------
    x1 : Tensor, raw array or number
        Any shape; real floating-point.
    x2 : Tensor, raw array or number
        Direction; real, of a shape that broadcasts with that of `x1`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.nextafter(xp.tensor([1.0]), 2.0) - 1.0
    tensor([2.2204e-16])
    """


@nondifferentiable(domain=_TRUTH)
def logical_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Return whether both operands are True, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.logical_and(xp.tensor([True, True, False]), xp.tensor([True, False, False]))
    tensor([ True, False, False])
    """


@nondifferentiable(domain=_TRUTH)
def logical_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Return whether at least one operand is True, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.logical_or(xp.tensor([True, True, False]), xp.tensor([True, False, False]))
    tensor([ True,  True, False])
    """


@nondifferentiable(domain=_TRUTH)
def logical_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Return whether exactly one operand is True, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.logical_xor(xp.tensor([True, True, False]), xp.tensor([True, False, False]))
    tensor([False,  True, False])
    """


@nondifferentiable(domain=_TRUTH)
def logical_not(x: Tensor, /) -> Tensor:
    """Return whether each element is False.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.logical_not(xp.tensor([True, False]))
    tensor([False,  True])
    """


@nondifferentiable(op="&", domain=_INTEGER, dtype="same")
def bitwise_and(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the bitwise and of integers or bools, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.bitwise_and(xp.tensor([6, 5]), 3)
    tensor([2, 1])
    """


@nondifferentiable(op="|", domain=_INTEGER, dtype="same")
def bitwise_or(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the bitwise or of integers or bools, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.bitwise_or(xp.tensor([6, 5]), 3)
    tensor([7, 7])
    """


@nondifferentiable(op="^", domain=_INTEGER, dtype="same")
def bitwise_xor(x1: Operand, x2: Operand, /) -> Tensor:
    """Return the bitwise exclusive or of integers or bools, elementwise with broadcasting.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.bitwise_xor(xp.tensor([6, 5]), 3)
    tensor([5, 6])
    """


@nondifferentiable(op="~", method="bitwise_not", numpy="invert", domain=_INTEGER, dtype="same")
def bitwise_invert(x: Tensor, /) -> Tensor:
    """Return the bitwise not of integers or bools, elementwise.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.bitwise_invert(xp.tensor([0, 5]))
    tensor([-1, -6])
    """


@nondifferentiable(op="<<", numpy="left_shift", domain=_INTEGER, dtype="same")
def bitwise_left_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """Return integers shifted to the left, ``x1 << x2``, elementwise with broadcasting.

    Parameters
    ----------
    x1 : Tensor, raw array or number
        Integers to shift.
    x2 : Tensor, raw array or number
        Number of bits; integer and not negative, of a shape that broadcasts with that of `x1`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.bitwise_left_shift(xp.tensor([1, 3]), 2)
    tensor([ 4, 12])
    """


@nondifferentiable(op=">>", numpy="right_shift", domain=_INTEGER, dtype="same")
def bitwise_right_shift(x1: Operand, x2: Operand, /) -> Tensor:
    """Return integers shifted to the right, ``x1 >> x2``, elementwise with broadcasting.

    Parameters
    ----------
    x1 : Tensor, raw array or number
        Integers to shift.
    x2 : Tensor, raw array or number
        Number of bits; integer and not negative, of a shape that broadcasts with that of `x1`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.bitwise_right_shift(xp.tensor([8, 3]), 1)
    tensor([4, 1])
    """
