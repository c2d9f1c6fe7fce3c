"""SciPy's raw distribution functions, as incomplete gamma and beta functions of other arguments, and so with their derivatives.

The names end in "r" for a distribution function, in "rc" for its complement and in "ri" for its inverse in one argument.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._basics.docstrings import shares
from xpgrad._rows.namespace import operations
from xpgrad.scipy._declare import front, operands_of
from xpgrad.scipy._incomplete import ONCE, betainc, betaincc, betainccinv, betaincinv, gammainc, gammaincc, gammainccinv

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = [
    "bdtr", "bdtrc", "bdtri", "chdtr", "chdtrc", "chdtri", "fdtr", "fdtrc", "fdtri", "gdtr", "gdtrc", "nbdtr", "nbdtrc", "nbdtri",
    "pdtr", "pdtrc", "pdtri",
]  # fmt: skip

_RESULT: dict[str, str] = {
    "returns": """\
Tensor
    The shape to which the arguments broadcast, floating-point.""",
    "raises": """\
TypeError
    An argument is not a Tensor, an array or a number, or is complex.
ValueError
    The shapes do not broadcast.
CapabilityError
    SciPy computes this function, and is not installed or cannot reach the memory of the arrays.""",
}
_document_chi = shares(
    parameters=f"""\
v : Tensor or number
    Degrees of freedom, real, above 0. {ONCE}""",
    **_RESULT,
)
_document_f = shares(
    parameters="""\
dfn, dfd : Tensor or number
    Degrees of freedom of numerator and denominator, real, above 0. Differentiable once, by quadrature; second derivatives
    raise NotImplementedError.
x : Tensor or number
    Real, at least 0; nan below. Broadcasts with the others. Differentiable: the derivative is the density, or minus it.""",
    **_RESULT,
)
_document_gamma = shares(
    parameters=f"""\
a : Tensor or number
    The rate, above 0. Differentiable.
b : Tensor or number
    The shape, above 0. {ONCE}
x : Tensor or number
    Real, at least 0; nan below. Broadcasts with the others. Differentiable.""",
    **_RESULT,
)
_document_poisson = shares(
    parameters="""\
k : Tensor or number
    Number of events, at least 0; rounded down, and so without a derivative (it is 0).
m : Tensor or number
    Mean, at least 0. Differentiable.""",
    **_RESULT,
)
_document_binomial = shares(
    parameters="""\
k, n : Tensor or number
    Numbers of successes and of trials; rounded down, and so without derivatives (they are 0).
p : Tensor or number
    Probability of a success. Differentiable.""",
    **_RESULT,
)
_document_negative = shares(
    parameters="""\
k, n : Tensor or number
    Numbers of failures and of successes; rounded down, and so without derivatives (they are 0).
p : Tensor or number
    Probability of a success. Differentiable.""",
    **_RESULT,
)


def _guard(value: Any, inside: Any) -> Any:
    """Return a value with nan where `inside` is False; a product, so that its derivatives are nan there as well."""
    one = operations.ones_like(value)
    return value * operations.where(inside, one, one * math.nan)


# -- chi squared, F and gamma distributions ------------------------------------------------------------------------------------


@front
@_document_chi
def chdtr(v: Operand, x: Operand, /) -> Tensor:
    """Return the distribution function of chi squared with `v` degrees of freedom.

    Parameters
    ----------
    x : Tensor or number
        Real, at least 0; nan below. Broadcasts with `v`. Differentiable to every order: the derivative is the density.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.chdtr(2.0, xp.asarray([0.0, 1.0, 2.0]))  # 1 - exp(-x / 2)
    tensor([0.    , 0.3935, 0.6321])
    >>> xp.func.grad(special.chdtr, argnums=1)(2.0, 1.0)
    tensor(0.3033)
    """
    v, x = operands_of("chdtr", ("v", "x"), (v, x))
    return gammainc(v * 0.5, x * 0.5)


@front
@_document_chi
def chdtrc(v: Operand, x: Operand, /) -> Tensor:
    """Return the complement of `chdtr`.

    Parameters
    ----------
    x : Tensor or number
        Real, at least 0; nan below. Broadcasts with `v`. Differentiable to every order.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.chdtrc(2.0, xp.asarray([0.0, 1.0, 2.0]))  # exp(-x / 2)
    tensor([1.    , 0.6065, 0.3679])
    >>> xp.func.grad(special.chdtrc, argnums=1)(2.0, 1.0)
    tensor(-0.3033)
    """
    v, x = operands_of("chdtrc", ("v", "x"), (v, x))
    return gammaincc(v * 0.5, x * 0.5)


@front
@_document_chi
def chdtri(v: Operand, p: Operand, /) -> Tensor:
    """Return the inverse of `chdtrc` in `x`.

    Parameters
    ----------
    p : Tensor or number
        Probability in [0, 1]; nan outside. Broadcasts with `v`. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.chdtri(2.0, 0.5)  # 2 log(2)
    tensor(1.3863)
    >>> xp.func.grad(special.chdtri, argnums=1)(2.0, 0.5)
    tensor(-4.)
    """
    v, p = operands_of("chdtri", ("v", "p"), (v, p))
    return gammainccinv(v * 0.5, p) * 2.0


@front
@_document_f
def fdtr(dfn: Operand, dfd: Operand, x: Operand, /) -> Tensor:
    """Return the distribution function of the F distribution.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.fdtr(2.0, 4.0, xp.asarray([0.0, 1.0, 2.0]))
    tensor([0.    , 0.5556, 0.75  ])
    >>> xp.func.grad(special.fdtr, argnums=2)(2.0, 4.0, 1.0)
    tensor(0.2963)
    """
    m, n, at = operands_of("fdtr", ("dfn", "dfd", "x"), (dfn, dfd, x))
    scaled = m * at
    high = scaled > n  # the sum with `n` may overflow
    low, far = operations.where(high, operations.zeros_like(scaled), scaled), operations.where(high, scaled, operations.ones_like(scaled))
    share = operations.where(high, 1.0 / (1.0 + n / far), low / (low + n))
    return _guard(betainc(m * 0.5, n * 0.5, share), (at >= 0) & (m > 0) & (n > 0))


@front
@_document_f
def fdtrc(dfn: Operand, dfd: Operand, x: Operand, /) -> Tensor:
    """Return the complement of `fdtr`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.fdtrc(2.0, 4.0, xp.asarray([0.0, 1.0, 2.0]))
    tensor([1.    , 0.4444, 0.25  ])
    >>> xp.func.grad(special.fdtrc, argnums=2)(2.0, 4.0, 1.0)
    tensor(-0.2963)
    """
    m, n, at = operands_of("fdtrc", ("dfn", "dfd", "x"), (dfn, dfd, x))
    scaled = m * at
    # From the smaller of the two shares, so that it keeps its digits. Elsewhere it is that of the uniform distribution.
    low, one = scaled < n, operations.ones_like(scaled + n)
    first, second, part = (operations.where(low, v, one) for v in (m * 0.5, n * 0.5, scaled))
    below = betaincc(first, second, part / (part + operations.where(low, n, one)))
    first, second, rest = (operations.where(low, one, v) for v in (n * 0.5, m * 0.5, n))
    above = betainc(first, second, rest / (rest + operations.where(low, one, scaled)))
    return _guard(operations.where(low, below, above), (at >= 0) & (m > 0) & (n > 0) & (n < math.inf))


@front
@_document_f
def fdtri(dfn: Operand, dfd: Operand, p: Operand, /) -> Tensor:
    """Return the inverse of `fdtr` in `x`.

    Parameters
    ----------
    p : Tensor or number
        Probability in [0, 1]; nan outside. Broadcasts with the others. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.fdtri(2.0, 4.0, 0.75)
    tensor(2.)
    >>> xp.func.grad(special.fdtri, argnums=2)(2.0, 4.0, 0.75)
    tensor(8.)
    """
    m, n, y = operands_of("fdtri", ("dfn", "dfd", "p"), (dfn, dfd, p))
    # The share below, or that above: each from `y` where it is the smaller one, so that it keeps its digits. Elsewhere it is that of the
    # uniform distribution, since its own may be rounded to 1, where the density is not known.
    half, one = operations.zeros_like(y) + 0.5, operations.ones_like(y)
    first, second = m * 0.5, n * 0.5
    low = y < betainc(first, second, half)
    below = betaincinv(operations.where(low, first, one), operations.where(low, second, one), operations.where(low, y, half))
    above = betainccinv(operations.where(low, one, second), operations.where(low, one, first), operations.where(low, half, y))
    return operations.where(low, below / (1.0 - below), (1.0 - above) / above) * n / m


@front
@_document_gamma
def gdtr(a: Operand, b: Operand, x: Operand, /) -> Tensor:
    """Return the distribution function of the gamma distribution with rate `a` and shape `b`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.gdtr(2.0, 1.0, xp.asarray([0.0, 0.5, 1.0]))  # 1 - exp(-2 x)
    tensor([0.    , 0.6321, 0.8647])
    >>> xp.func.grad(special.gdtr, argnums=(0, 2))(2.0, 1.0, 0.5)
    (tensor(0.1839), tensor(0.7358))
    """
    rate, order, at = operands_of("gdtr", ("a", "b", "x"), (a, b, x))
    return _guard(gammainc(order, rate * at), at >= 0)


@front
@_document_gamma
def gdtrc(a: Operand, b: Operand, x: Operand, /) -> Tensor:
    """Return the complement of `gdtr`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.gdtrc(2.0, 1.0, xp.asarray([0.0, 0.5, 1.0]))  # exp(-2 x)
    tensor([1.    , 0.3679, 0.1353])
    >>> xp.func.grad(special.gdtrc, argnums=(0, 2))(2.0, 1.0, 0.5)
    (tensor(-0.1839), tensor(-0.7358))
    """
    rate, order, at = operands_of("gdtrc", ("a", "b", "x"), (a, b, x))
    return _guard(gammaincc(order, rate * at), at >= 0)


# -- of numbers of events ------------------------------------------------------------------------------------------------------


def _count(k: Any) -> tuple[Any, Any]:
    """Return a number of events, rounded down, with 0 in place of negative ones, and where it is at least 0."""
    inside = k >= 0
    return operations.floor(operations.where(inside, k, operations.zeros_like(k))), inside


def _whole(k: Any) -> tuple[Any, Any]:
    """Return a number of events without its fraction, as SciPy does where it takes integers, with 0 in place of negative and infinite ones,
    and where it is at least 0 and finite.
    """
    inside = (k > -1) & (k < math.inf)
    return operations.trunc(operations.where(inside, k, operations.zeros_like(k))), inside


@front
@_document_poisson
def pdtr(k: Operand, m: Operand, /) -> Tensor:
    """Return the Poisson distribution function: the probability of at most `k` events.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.pdtr(xp.asarray([0.0, 1.0, 2.0]), 1.0)
    tensor([0.3679, 0.7358, 0.9197])
    >>> xp.func.grad(special.pdtr, argnums=1)(1.0, 1.0)  # minus the probability of k events
    tensor(-0.3679)
    """
    k, m = operands_of("pdtr", ("k", "m"), (k, m))
    count, inside = _count(k)
    return _guard(gammaincc(count + 1.0, m), inside)


@front
@_document_poisson
def pdtrc(k: Operand, m: Operand, /) -> Tensor:
    """Return the complement of `pdtr`: the probability of more than `k` events.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.pdtrc(xp.asarray([0.0, 1.0, 2.0]), 1.0)
    tensor([0.6321, 0.2642, 0.0803])
    >>> xp.func.grad(special.pdtrc, argnums=1)(1.0, 1.0)
    tensor(0.3679)
    """
    k, m = operands_of("pdtrc", ("k", "m"), (k, m))
    count, inside = _count(k)
    return _guard(gammainc(count + 1.0, m), inside)


@front
@_document_poisson
def pdtri(k: Operand, y: Operand, /) -> Tensor:
    """Return the inverse of `pdtr` in `m`.

    Parameters
    ----------
    y : Tensor or number
        Probability, at least 0 and below 1; nan outside. Broadcasts with `k`. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.pdtri(0.0, 0.5)  # log(2)
    tensor(0.6931)
    >>> xp.func.grad(special.pdtri, argnums=1)(0.0, 0.5)
    tensor(-2.)
    """
    given, probability = operands_of("pdtri", ("k", "y"), (k, y))
    count, inside = _whole(given)
    return _guard(gammainccinv(count + 1.0, probability), inside & (probability < 1))


class _Trials:
    """Successes among trials, with arguments that the incomplete beta functions take even where there is no distribution."""

    def __init__(self, name: str, k: Any, n: Any, p: Any) -> None:
        k, n, self.p = operands_of(name, ("k", "n", "p"), (k, n, p))
        finite = (n > -math.inf) & (n < math.inf)
        n = operations.where(finite, n, operations.ones_like(n) * math.nan)
        k = operations.floor(k)
        left = operations.trunc(n) - k
        self.negative, self.whole = k < 0, left == 0
        self.possible = (left >= 0) & (self.p >= 0) & (self.p <= 1)
        one = operations.ones_like(left)
        self.above = operations.where(self.negative, one, k + 1.0)
        self.left = operations.where(left > 0, left, one)


@front
@_document_binomial
def bdtr(k: Operand, n: Operand, p: Operand, /) -> Tensor:
    """Return the binomial distribution function: the probability of at most `k` successes in `n` trials.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.bdtr(xp.asarray([0.0, 1.0, 2.0]), 2.0, 0.5)
    tensor([0.25, 0.75, 1.  ])
    >>> xp.func.grad(special.bdtr, argnums=2)(1.0, 2.0, 0.5)
    tensor(-1.)
    """
    given = _Trials("bdtr", k, n, p)
    value = betaincc(given.above, given.left, given.p)
    return _guard(operations.where(given.whole, operations.ones_like(value), value), given.possible & ~given.negative)


@front
@_document_binomial
def bdtrc(k: Operand, n: Operand, p: Operand, /) -> Tensor:
    """Return the complement of `bdtr`: the probability of more than `k` successes; 1 for negative `k`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.bdtrc(xp.asarray([-1.0, 0.0, 1.0, 2.0]), 2.0, 0.5)
    tensor([1.  , 0.75, 0.25, 0.  ])
    >>> xp.func.grad(special.bdtrc, argnums=2)(1.0, 2.0, 0.5)
    tensor(1.)
    """
    given = _Trials("bdtrc", k, n, p)
    value = betainc(given.above, given.left, given.p)
    value = operations.where(given.whole, operations.zeros_like(value), value)
    return _guard(operations.where(given.negative, operations.ones_like(value), value), given.possible)


@front
@_document_binomial
def bdtri(k: Operand, n: Operand, y: Operand, /) -> Tensor:
    """Return the inverse of `bdtr` in `p`.

    Parameters
    ----------
    y : Tensor or number
        Probability in [0, 1]; nan outside. Broadcasts with the others. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.bdtri(1.0, 2.0, 0.75)
    tensor(0.5)
    >>> xp.func.grad(special.bdtri, argnums=2)(1.0, 2.0, 0.75)
    tensor(-1.)
    """
    given = _Trials("bdtri", k, n, y)
    value = betainccinv(given.above, given.left, given.p)
    return _guard(value, given.possible & ~given.negative & ~given.whole)


@front
@_document_negative
def nbdtr(k: Operand, n: Operand, p: Operand, /) -> Tensor:
    """Return the negative binomial distribution function: the probability of at most `k` failures before the `n`-th success.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.nbdtr(xp.asarray([0.0, 1.0, 2.0]), 1.0, 0.5)
    tensor([0.5  , 0.75 , 0.875])
    >>> xp.func.grad(special.nbdtr, argnums=2)(1.0, 1.0, 0.5)
    tensor(1.)
    """
    failures, successes, chance = operands_of("nbdtr", ("k", "n", "p"), (k, n, p))
    count, inside = _whole(failures)
    return _guard(betainc(operations.floor(successes), count + 1.0, chance), inside & (successes >= 1) & (successes < math.inf))


@front
@_document_negative
def nbdtrc(k: Operand, n: Operand, p: Operand, /) -> Tensor:
    """Return the complement of `nbdtr`: the probability of more than `k` failures.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.nbdtrc(xp.asarray([0.0, 1.0, 2.0]), 1.0, 0.5)
    tensor([0.5  , 0.25 , 0.125])
    >>> xp.func.grad(special.nbdtrc, argnums=2)(1.0, 1.0, 0.5)
    tensor(-1.)
    """
    failures, successes, chance = operands_of("nbdtrc", ("k", "n", "p"), (k, n, p))
    count, inside = _whole(failures)
    return _guard(betaincc(operations.floor(successes), count + 1.0, chance), inside & (successes >= 1) & (successes < math.inf))


@front
@_document_negative
def nbdtri(k: Operand, n: Operand, y: Operand, /) -> Tensor:
    """Return the inverse of `nbdtr` in `p`.

    Parameters
    ----------
    y : Tensor or number
        Probability in [0, 1]; nan outside. Broadcasts with the others. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.nbdtri(1.0, 1.0, 0.75)
    tensor(0.5)
    >>> xp.func.grad(special.nbdtri, argnums=2)(1.0, 1.0, 0.75)
    tensor(1.)
    """
    failures, successes, probability = operands_of("nbdtri", ("k", "n", "y"), (k, n, y))
    count, inside = _whole(failures)
    value = betaincinv(operations.floor(successes), count + 1.0, probability)
    return _guard(value, inside & (successes >= 1) & (successes < math.inf))
