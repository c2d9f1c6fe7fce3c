"""The gamma function and related functions, after chapters 5, 6, 8 and 25 of the NIST Digital Library (DLMF)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._backends.classes import host_backend
from xpgrad._basics.arguments import as_int
from xpgrad._rows.namespace import operations
from xpgrad.rules.elementwise import is_complex
from xpgrad.scipy._declare import by_the_host, front, helper, no_derivative, nowhere, operands_of, row_only, special, valid

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = [
    "beta", "betaln", "binom", "comb", "digamma", "exp1", "expi", "expn", "factorial", "gamma", "gammaln", "gammasgn", "loggamma",
    "multigammaln", "poch", "polygamma", "psi", "rgamma", "spence", "zeta",
]  # fmt: skip

# -- the gamma function and its logarithmic derivatives ------------------------------------------------------------------


@special(lambda g, x, out, xp: g * (out * xp.special_digamma(x)), complex=True)
def gamma(x: Operand, /) -> Tensor:
    """Return the gamma function; infinite at 0, NaN at negative integers.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Differentiable except at 0 and negative integers, where the derivative is not finite.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([1.0, 2.0, 4.0], requires_grad=True)
    >>> special.gamma(x).detach()
    tensor([1., 1., 6.])
    >>> special.gamma(x).sum().backward()
    >>> x.grad
    tensor([-0.5772,  0.4228,  7.5367])
    """


def _gammaln_slope(g: Any, x: Any, xp: Any) -> Any:
    return g * xp.special_digamma(x)


@special(_gammaln_slope)
def gammaln(x: Operand, /) -> Tensor:
    """Return the logarithm of the absolute value of `gamma`, for real `x`; infinite at the poles. For complex `x` see `loggamma`.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real. Differentiable except at 0 and negative integers, where the derivative is not finite; the derivative
        is `digamma`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([0.5, 10.0, 1000.0], requires_grad=True)
    >>> special.gammaln(x).sum().backward()
    >>> x.grad
    tensor([-1.9635,  2.2518,  6.9073])
    >>> special.gammaln(200.0)  # the logarithm of a number with 373 digits
    tensor(857.9337)
    """


@special(lambda g, x, out, xp: g * valid(xp.special_digamma(x), out, xp), complex=True)
def loggamma(x: Operand, /) -> Tensor:
    """Return the principal branch of the logarithm of `gamma`; NaN for negative real `x`.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Infinite at 0, and nan for negative real numbers: convert these to a complex dtype.
        Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.loggamma(xp.asarray([-0.5, 3.0]))
    tensor([   nan, 0.6931])
    >>> special.loggamma(xp.asarray([-0.5 + 0.0j]))
    tensor([1.2655-3.1416j])
    """


def _digamma_slope(g: Any, x: Any, xp: Any) -> Any:
    return g * xp.special_polygamma(xp.ones_like(x), x)


@special(_digamma_slope, complex=True)
def digamma(x: Operand, /) -> Tensor:
    """Return the logarithmic derivative of `gamma`; minus infinity at 0, NaN at negative integers.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Differentiable: the derivative is ``polygamma(1, x)``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.digamma(xp.asarray([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    >>> xp.func.grad(special.digamma)(1.0)  # pi**2 / 6
    tensor(1.6449)
    """


@special(row="digamma", complex=True)
def psi(x: Operand, /) -> Tensor:
    """Return the logarithmic derivative of `gamma`; another name of `digamma`.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.psi(xp.asarray([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    >>> special.digamma(xp.asarray([1.0, 0.5]))
    tensor([-0.5772, -1.9635])
    """


#: The Bernoulli numbers B2, B4, ...
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)
_STEPS = 24


def _complex_polygamma(n: Any, z: Any) -> Any:
    """Compute `polygamma` for complex NumPy arrays."""
    xp = host_backend().kernels
    n, z = xp.real(n) + xp.zeros_like(xp.real(z)), z + xp.zeros_like(n)
    out = xp.zeros_like(z) + math.nan
    for order in sorted({v for v in xp.reshape(n, (-1,)).tolist() if v >= 0 and v == int(v)}):
        value = _polygamma_of_order(int(order), z, xp) if order else xp.special_digamma(z)
        out = xp.where(n == order, value, out)
    return out


def _polygamma_of_order(order: int, z: Any, xp: Any) -> Any:
    """Compute `polygamma` by the asymptotic series (DLMF 5.15.8), after recurrence steps that move `z` beyond all poles."""
    steps = _STEPS + order
    if math.prod(z.shape) and math.isfinite(lowest := float(xp.min(xp.real(z)))):
        steps += max(int(-lowest), 0)
    total = xp.zeros_like(z)
    for k in range(steps):
        total = total + (z + float(k)) ** -(order + 1)
    w = z + float(steps)
    series = w**-order * math.factorial(order - 1) + w ** -(order + 1) * (math.factorial(order) / 2)
    for k, b in enumerate(_BERNOULLI, start=1):
        series = series + w ** -(order + 2 * k) * (b * math.factorial(2 * k + order - 1) / math.factorial(2 * k))
    return (total * math.factorial(order) + series) * (-1.0) ** (order + 1)


def _polygamma(xp: Any, n: Any, x: Any) -> Any:
    """Compute `polygamma` for real `x` by the Hurwitz zeta function (DLMF 25.11.12), for complex `x` in host memory."""
    if is_complex(x, xp):
        return xp._backend.through_host("polygamma", _complex_polygamma, n, x)
    n = xp.zeros_like(x) + n
    sign = xp.remainder(n, xp.ones_like(n) + 1.0) * 2.0 - 1.0
    value = sign * xp.special_gamma(n + 1.0) * xp.special_zeta(n + 1.0, x)
    value = xp.where(n == xp.round(n), value, xp.zeros_like(value) + math.nan)
    return xp.where(n == 0, xp.special_digamma(x), value)


def _polygamma_slope(g: Any, n: Any, x: Any, out: Any, xp: Any) -> Any:
    return g * valid(xp.special_polygamma(n + 1.0, x), out, xp)  # NB: for order -1 the next order, 0, is valid, so mask the result


@special(no_derivative("polygamma", "n", "it is a number of derivatives"), _polygamma_slope, composed=_polygamma, complex="x")
def polygamma(n: Operand, x: Operand, /) -> Tensor:
    """Return the `n`-th derivative of `digamma` at `x`; NaN unless `n` is a nonnegative integer.

    Parameters
    ----------
    n : Tensor or number
        An integer of at least 0, in any dtype. Not differentiable: the backward pass raises NotImplementedError if it requires
        grad.
    x : Tensor or number
        Real or complex; broadcasts with `n`. Differentiable: the derivative is ``polygamma(n + 1, x)``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.polygamma(xp.asarray([0, 1, 2]), 1.0)
    tensor([-0.5772,  1.6449, -2.4041])
    >>> xp.func.grad(lambda x: special.polygamma(1, x))(1.0)
    tensor(-2.4041)
    """


def _rgamma_slope(g: Any, x: Any, out: Any, xp: Any) -> Any:
    # The function is entire, but its factors have poles in the left half plane, so the reflection formula (DLMF 5.5.3) is used there.
    if xp.isdtype(x.dtype, "complex floating"):
        return g * (-out * xp.special_digamma(x))
    left = x < 0.5
    z = xp.where(left, x, xp.zeros_like(x))
    whole = xp.round(z)
    rest = (z - whole) * math.pi
    sign = 1.0 - 2.0 * xp.remainder(whole, xp.ones_like(whole) + 1.0)
    turned = xp.special_gamma(1.0 - z) * sign * (xp.cos(rest) - xp.sin(rest) * xp.special_digamma(1.0 - z) * (1 / math.pi))
    right = xp.where(left, xp.ones_like(x), x)
    return g * xp.where(left, turned, -xp.special_rgamma(right) * xp.special_digamma(right))


@special(_rgamma_slope, complex=True)
def rgamma(x: Operand, /) -> Tensor:
    """Return ``1 / gamma(x)``, an entire function.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. The function has zeros at 0 and at negative integers. Differentiable; at these zeros the
        derivative is finite for real numbers only.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.tensor([-2.0, -1.0, 0.0, 4.0], requires_grad=True)
    >>> special.rgamma(x).detach()
    tensor([0.    , 0.    , 0.    , 0.1667])
    >>> special.rgamma(x).sum().backward()
    >>> x.grad  # finite at the poles of `gamma`
    tensor([ 2.    , -1.    ,  1.    , -0.2094])
    """


@special(lambda g, xp: xp.zeros_like(g))
def gammasgn(x: Operand, /) -> Tensor:
    """Return the sign of `gamma` for real `x`; its derivative is 0.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real. The result is nan at negative integers. The derivative is 0 everywhere.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> x = xp.asarray([-1.5, -0.5, 3.0])
    >>> special.gammasgn(x)
    tensor([ 1., -1.,  1.])
    >>> special.gammasgn(x) * xp.exp(special.gammaln(x))  # equals `gamma`
    tensor([ 2.3633, -3.5449,  2.    ])
    """


@front
def multigammaln(a: Operand, d: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension `d`.

    Parameters
    ----------
    a : Tensor or number
        Real, above ``(d - 1) / 2``; otherwise the result is nan (SciPy raises ValueError). Differentiable.
    d : int
        Dimension, at least 1.

    Returns
    -------
    Tensor
        The shape of `a`, floating-point.

    Raises
    ------
    TypeError
        `a` is neither a Tensor, an array nor a number, or is complex; or `d` is not an integer.
    ValueError
        `d` is less than 1.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.multigammaln(3.0, 2)
    tensor(1.5502)
    >>> xp.func.grad(lambda a: special.multigammaln(a, 2))(3.0)
    tensor(1.6259)
    >>> special.digamma(3.0) + special.digamma(2.5)
    tensor(1.6259)
    """
    count = as_int(d, "scipy.special.multigammaln", "d")
    if count < 1:
        msg = f"scipy.special.multigammaln: `d` must be a dimension, at least 1, but got {d}"
        raise ValueError(msg)
    (x,) = operands_of("multigammaln", ("a",), (a,))
    one = operations.ones_like(x)
    x = x * operations.where(x > (count - 1) / 2, one, one * math.nan)  # a factor, so that the derivative is nan as well
    total: Any = gammaln(x) + count * (count - 1) / 4 * math.log(math.pi)
    for j in range(1, count):
        total = total + gammaln(x - j / 2)
    return total


# -- quotients of gamma functions ------------------------------------------------------------------------------------------


@helper(
    lambda g, a, b, xp: g * (xp.special_polygamma(xp.ones_like(a), a) - xp.special_polygamma(xp.ones_like(a), a + b)),
    lambda g, a, b, xp: -g * xp.special_polygamma(xp.ones_like(a), a + b),
)  # fmt: skip
def psi_gap(xp: Any, a: Any, b: Any) -> Any:
    """Return ``digamma(a) - digamma(a + b)`` without cancellation for small `b`."""
    # The Taylor series (DLMF 5.15.1) is used for small `b`, for which it converges in a few terms.
    plain = xp.special_digamma(a) - xp.special_digamma(a + b)
    near = (xp.abs(b) < a * 0.02) & (a > 0)
    if nowhere(xp, near):
        return plain
    safe, step = xp.where(near, a, xp.ones_like(a)), xp.where(near, b, xp.zeros_like(b))
    total = xp.zeros_like(plain)
    for n in range(7, 0, -1):
        total = (total + xp.special_polygamma(xp.ones_like(safe) * float(n), safe) * (1 / math.factorial(n))) * step
    return xp.where(near, -total, plain)


@special(lambda g, a, b, out, xp: g * (out * xp.special_psi_gap(a, b)), lambda g, a, b, out, xp: g * (out * xp.special_psi_gap(b, a)))
def beta(a: Operand, b: Operand, /) -> Tensor:
    """Return the beta function ``gamma(a) * gamma(b) / gamma(a + b)``.

    Parameters
    ----------
    a : Tensor or number
        Real; 0 and negative integers are poles, at which the derivative is not finite. Differentiable.
    b : Tensor or number
        As `a`, with which it broadcasts. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.beta(2.0, 3.0)  # 1 / 12
    tensor(0.0833)
    >>> xp.func.grad(special.beta, argnums=(0, 1))(1.0, 2.0)
    (tensor(-0.75), tensor(-0.25))
    """


@special(lambda g, a, b, xp: g * xp.special_psi_gap(a, b), lambda g, a, b, xp: g * xp.special_psi_gap(b, a))
def betaln(a: Operand, b: Operand, /) -> Tensor:
    """Return the logarithm of the absolute value of `beta`.

    Parameters
    ----------
    a : Tensor or number
        Real; 0 and negative integers are poles, at which the derivative is not finite. Differentiable.
    b : Tensor or number
        As `a`, with which it broadcasts. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> a = xp.tensor([1.0, 1000.0], requires_grad=True)
    >>> special.betaln(a, 2.0).detach()
    tensor([ -0.6931, -13.8165])
    >>> special.betaln(a, 2.0).sum().backward()
    >>> a.grad
    tensor([-1.5  , -0.002])
    """


@special(lambda g, z, m, out, xp: g * (-out * xp.special_psi_gap(z, m)), lambda g, z, m, out, xp: g * (out * xp.special_digamma(z + m)))
def poch(z: Operand, m: Operand, /) -> Tensor:
    """Return the Pochhammer symbol, the rising factorial ``gamma(z + m) / gamma(z)``.

    Parameters
    ----------
    z : Tensor or number
        Real. Differentiable, except at poles of `gamma`.
    m : Tensor or number
        Number of factors, real, not only integers; broadcasts with `z`. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.poch(3.0, xp.asarray([0.0, 1.0, 2.0, 3.0]))  # 1, 3, 3 * 4, 3 * 4 * 5
    tensor([ 1.,  3., 12., 60.])
    >>> xp.func.grad(special.poch)(3.0, 2.0)  # the derivative of z**2 + z
    tensor(7.)
    """


def _binom_zero(n: Any, k: Any, xp: Any) -> tuple[Any, tuple[Any, Any], tuple[Any, Any]]:
    """Return where `binom` is 0 because `k` is above `n` by a whole number, the arguments there, and those elsewhere, with safe ones."""
    zero = (k > n) & (k - n == xp.floor(k - n)) & (n > -1)
    one, two = xp.ones_like(n), xp.zeros_like(k) + 2.0
    return zero, (xp.where(zero, n, one), xp.where(zero, k, two)), (xp.where(zero, two, n), xp.where(zero, one, k))


def _binom_slope(beta: Any, rest: Any, u: Any, xp: Any) -> Any:
    """Return the derivative of ``beta * sin(pi u) / pi`` by `u`, if `rest` is the logarithmic derivative of `beta`."""
    return beta * (xp.cos(u * math.pi) + u * xp.special_sinc(u) * rest)


# At its zeros beyond n the coefficient is ``beta(n + 1, k - n) sin(pi (n - k + 1)) / pi`` (DLMF 5.5.3), and not a pole's multiple of 0.
def _binom_by_n(g: Any, n: Any, k: Any, out: Any, xp: Any) -> Any:
    zero, (m, j), (n, k) = _binom_zero(n, k, xp)
    rest = xp.special_digamma(m + 1.0) - xp.special_digamma(j - m)
    there = _binom_slope(xp.special_beta(m + 1.0, j - m), rest, m - j + 1.0, xp)
    return g * xp.where(zero, there, -out * xp.special_psi_gap(n - k + 1.0, k))


def _binom_by_k(g: Any, n: Any, k: Any, out: Any, xp: Any) -> Any:
    zero, (m, j), (n, k) = _binom_zero(n, k, xp)
    rest = xp.special_digamma(j + 1.0) - xp.special_digamma(j - m)
    there = _binom_slope(xp.special_beta(m + 1.0, j - m), rest, m - j + 1.0, xp)
    return g * xp.where(zero, -there, out * (xp.special_digamma(n - k + 1.0) - xp.special_digamma(k + 1.0)))


@special(_binom_by_n, _binom_by_k)
def binom(n: Operand, k: Operand, /) -> Tensor:
    """Return the binomial coefficient as a function of two real variables; see `comb`.

    Parameters
    ----------
    n : Tensor or number
        Real; nan at negative integers. Differentiable.
    k : Tensor or number
        Real; broadcasts with `n`. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.binom(5.0, xp.asarray([0.0, 1.0, 2.0, 2.5]))
    tensor([ 1.   ,  5.   , 10.   , 10.865])
    >>> xp.func.grad(special.binom)(5.0, 2.0)  # the derivative of n * (n - 1) / 2
    tensor(4.5)
    """


@front
def comb(N: Operand, k: Operand, *, repetition: bool = False) -> Tensor:
    """Return the number of combinations of `N` things taken `k` at a time as a float; 0 unless ``0 <= k <= N``.

    Parameters
    ----------
    N, k : Tensor or number
        Real; integers are cast to floating numbers. Differentiable. (SciPy's ``exact=True``, with Python integers, does not exist.)
    repetition : bool
        Whether things may be taken more than once.

    Returns
    -------
    Tensor
        The shape to which the arguments broadcast, in their common floating-point dtype.

    Raises
    ------
    TypeError
        An argument is neither a Tensor, an array nor a number, or is complex.
    ValueError
        The arguments do not broadcast.
    CapabilityError
        The library of the arrays has no such function, and SciPy is not installed or cannot reach the memory.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.comb(xp.asarray([3, 4, 5]), 2)
    tensor([ 3.,  6., 10.])
    >>> special.comb(xp.asarray([3, 4, 5]), 2, repetition=True)
    tensor([ 6., 10., 15.])
    >>> xp.func.grad(special.comb)(5.0, 2.0)
    tensor(4.5)
    """
    n, m = operands_of("comb", ("N", "k"), (N, k))
    if repetition:
        n = n + m - 1.0
    counts = ((m <= n) & (n >= 0) & (m >= 0)) | operations.isnan(n) | operations.isnan(m)
    value = binom(operations.where(counts, n, operations.ones_like(n)), operations.where(counts, m, operations.ones_like(m)))
    return operations.where(counts, value, operations.zeros_like(value))


@front
def factorial(n: Operand, /) -> Tensor:
    """Return the factorial ``gamma(n + 1)`` as a float; 0 for negative `n`, like SciPy's with ``exact=False``.

    Parameters
    ----------
    n : Tensor or number
        Any shape; real, not only integers. Differentiable; below 0, value and derivative are 0.

    Returns
    -------
    Tensor
        The shape of `n`, floating-point, also for integers.

    Raises
    ------
    TypeError
        `n` is neither a Tensor, an array nor a number, or is complex.
    CapabilityError
        The library of the arrays has no such function, and SciPy is not installed or cannot reach the memory.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.factorial(xp.asarray([-1, 0, 1, 4]))
    tensor([ 0.,  1.,  1., 24.])
    >>> xp.func.grad(special.factorial)(2.0)
    tensor(1.8456)
    """
    (x,) = operands_of("factorial", ("n",), (n,))
    below = x < 0
    value = gamma(operations.where(below, operations.zeros_like(x), x) + 1.0)
    return operations.where(below, operations.zeros_like(x), value)


# -- the zeta function ------------------------------------------------------------------------------------------------------


def _zeta_slope(g: Any, x: Any, q: Any, out: Any, xp: Any) -> Any:
    return g * valid(-x * xp.special_zeta(x + 1.0, q), out, xp)


@row_only(no_derivative("zeta", "x"), _zeta_slope)
def _zeta(x: Any, q: Any, /) -> Any:
    """Compute the Hurwitz zeta function."""


@row_only(no_derivative("zeta", "x"), composed=by_the_host("zeta"))
def _riemann(x: Any, /) -> Any:
    """Compute the Riemann zeta function."""


@front
def zeta(x: Operand, q: Operand | None = None) -> Tensor:
    """Return the Hurwitz zeta function, the sum of ``(k + q)**-x`` over ``k >= 0``, or the Riemann zeta function.

    Parameters
    ----------
    x : Tensor or number
        Real. Not differentiable: the backward pass raises NotImplementedError if it requires grad.
    q : Tensor or number, optional
        Real. Differentiable. Default: 1, for the Riemann zeta function, which is defined for ``x < 1`` as well.

    Returns
    -------
    Tensor
        The shape to which the arguments broadcast, in their common floating-point dtype.

    Raises
    ------
    TypeError
        An argument is neither a Tensor, an array nor a number, or is complex.
    ValueError
        The arguments do not broadcast.
    NotImplementedError
        `x` requires grad (raised by the backward pass).
    CapabilityError
        The library of the arrays has no such function, and SciPy is not installed or cannot reach the memory.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.zeta(xp.asarray([-1.0, 2.0, 4.0]))  # -1/12, pi**2 / 6, pi**4 / 90
    tensor([-0.0833,  1.6449,  1.0823])
    >>> xp.func.grad(lambda q: special.zeta(2.0, q))(1.0)  # -2 zeta(3)
    tensor(-2.4041)
    """
    if q is None:
        (x,) = operands_of("zeta", ("x",), (x,))
        return _riemann(x)
    return _zeta(*operands_of("zeta", ("x", "q"), (x, q)))


# -- exponential integrals --------------------------------------------------------------------------------------------------


@special(lambda g, x, out, xp: g * valid(-xp.exp(-x) / x, out, xp), complex=True)
def exp1(x: Operand, /) -> Tensor:
    """Return the exponential integral E1, the integral of ``exp(-t) / t`` from `x` to infinity.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Infinite at 0; value and derivative are nan for negative real numbers. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.exp1(xp.asarray([-1.0, 0.0, 1.0]))
    tensor([   nan,    inf, 0.2194])
    >>> xp.func.grad(special.exp1)(1.0)  # -exp(-x) / x
    tensor(-0.3679)
    """


@special(lambda g, x, out, xp: g * valid(xp.exp(x) / x, out, xp), complex=True)
def expi(x: Operand, /) -> Tensor:
    """Return the exponential integral Ei, the principal value of the integral of ``exp(t) / t`` from minus infinity to `x`.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real or complex. Differentiable except at 0, where the value is minus infinity.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.expi(xp.asarray([-1.0, 1.0]))
    tensor([-0.2194,  1.8951])
    >>> xp.func.grad(special.expi)(1.0)  # exp(x) / x
    tensor(2.7183)
    """


def _expn_slope(g: Any, n: Any, x: Any, out: Any, xp: Any) -> Any:
    n = xp.trunc(n)
    lower = xp.where(n > 0, n - 1.0, xp.zeros_like(n))
    other = xp.where(n > 0, xp.ones_like(x), x)
    slope = xp.where(n > 0, xp.special_expn(lower, x), xp.exp(-other) * ((other + 1.0) / other) / other)  # of order 0 it is exp(-x) / x
    return g * -valid(slope, out, xp)


@special(no_derivative("expn", "n", "it is an integer"), _expn_slope)
def expn(n: Operand, x: Operand, /) -> Tensor:
    """Return the generalised exponential integral, the integral of ``exp(-x * t) / t**n`` from 1 to infinity.

    Parameters
    ----------
    n : Tensor or number
        The order, an integer of at least 0 in any dtype; as in SciPy, a fractional part is dropped. Not differentiable: the backward pass
        raises NotImplementedError if it requires grad.
    x : Tensor or number
        Real, at least 0; nan below. Broadcasts with `n`. Differentiable above 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.expn(xp.asarray([0, 1, 2]), 1.0)
    tensor([0.3679, 0.2194, 0.1485])
    >>> xp.func.grad(lambda x: special.expn(2, x))(1.0)  # minus that of order 1
    tensor(-0.2194)
    """


def _log_over(x: Any, xp: Any) -> Any:
    """Return ``log(x) / (x - 1)``, which is 1 at 1."""
    u = x - 1.0
    near = xp.abs(u) < 0.3
    small = xp.where(near, u, xp.zeros_like(u))
    series = xp.zeros_like(u)
    for k in range(34, -1, -1):
        series = series * small + (-1.0) ** k / (k + 1)
    far = xp.where(near, xp.zeros_like(x) + 2.0, x)
    return xp.where(near, series, xp.log(far) / (far - 1.0))


@special(lambda g, x, out, xp: g * -valid(_log_over(x, xp), out, xp), complex=True)
def spence(x: Operand, /) -> Tensor:
    """Return Spence's function, the dilogarithm of ``1 - x``: the integral of ``log(t) / (1 - t)`` from 1 to `x`.

    Parameters
    ----------
    x : Tensor or number
        Any shape; real, at least 0, or complex; nan for negative real numbers. Differentiable; the derivative is infinite at 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.spence(xp.asarray([0.0, 1.0, 2.0]))
    tensor([ 1.6449,  0.    , -0.8225])
    >>> xp.func.grad(special.spence)(1.0)
    tensor(-1.)
    """
