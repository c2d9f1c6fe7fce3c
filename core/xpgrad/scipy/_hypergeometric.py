"""The hypergeometric functions and the associated Legendre functions, computed by SciPy.

Their derivatives are the same functions of neighbouring parameters (DLMF 13.3.15, 14.10.1, 14.10.5 and 15.5.1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xpgrad.scipy._declare import no_derivative, special, valid

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = ["hyp1f1", "hyp2f1", "lpmv"]


@special(
    no_derivative("hyp1f1", "a"), no_derivative("hyp1f1", "b"),
    lambda g, a, b, x, xp: g * (a / b * xp.special_hyp1f1(a + 1.0, b + 1.0, x)),
)  # fmt: skip
def hyp1f1(a: Operand, b: Operand, x: Operand, /) -> Tensor:
    """Return the confluent hypergeometric function 1F1, Kummer's function M.

    Parameters
    ----------
    a, b : Tensor or number
        Real parameters. Not differentiable: the backward pass raises NotImplementedError if one requires grad.
    x : Tensor or number
        Real; broadcasts with the others. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.hyp1f1(1.0, 1.0, xp.asarray([0.0, 1.0]))  # the exponential function
    tensor([1.    , 2.7183])
    >>> xp.func.grad(special.hyp1f1, argnums=2)(1.0, 2.0, 0.0)
    tensor(0.5)
    """


@special(
    no_derivative("hyp2f1", "a"), no_derivative("hyp2f1", "b"), no_derivative("hyp2f1", "c"),
    lambda g, a, b, c, z, xp: g * (a * b / c * xp.special_hyp2f1(a + 1.0, b + 1.0, c + 1.0, z)), complex="z",
)  # fmt: skip
def hyp2f1(a: Operand, b: Operand, c: Operand, z: Operand, /) -> Tensor:
    """Return the hypergeometric function 2F1 of Gauss.

    Parameters
    ----------
    a, b, c : Tensor or number
        Real parameters. Not differentiable: the backward pass raises NotImplementedError if one requires grad.
    z : Tensor or number
        Real, or complex; broadcasts with the others. Differentiable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.hyp2f1(1.0, 1.0, 2.0, xp.asarray([0.0, 0.5]))  # -log(1 - z) / z
    tensor([1.    , 1.3863])
    >>> xp.func.grad(special.hyp2f1, argnums=3)(1.0, 1.0, 2.0, 0.0)
    tensor(0.5)
    """


def _lpmv_slope(g: Any, m: Any, v: Any, x: Any, out: Any, xp: Any) -> Any:
    below, above = xp.special_lpmv(m - 1.0, v, x), xp.special_lpmv(m + 1.0, v, x)
    root = xp.sqrt((1.0 - x) * (1.0 + x))
    return g * valid(((v + m) * (v - m + 1.0) * below - above) * 0.5 / root, out, xp)


@special(no_derivative("lpmv", "m", "it is an integer"), no_derivative("lpmv", "v"), _lpmv_slope)
def lpmv(m: Operand, v: Operand, x: Operand, /) -> Tensor:
    """Return the associated Legendre function of the first kind, with the Condon-Shortley phase.

    Parameters
    ----------
    m : Tensor or number
        The order, an integer. Not differentiable.
    v : Tensor or number
        The degree, real, at least 0. Not differentiable: the backward pass raises NotImplementedError if it requires grad.
    x : Tensor or number
        Real, in [-1, 1]; broadcasts with the others. Differentiable inside of the interval.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.lpmv(0.0, 2.0, xp.asarray([0.0, 0.5]))  # (3 x**2 - 1) / 2
    tensor([-0.5  , -0.125])
    >>> xp.func.grad(special.lpmv, argnums=2)(0.0, 2.0, 0.5)
    tensor(1.5)
    """
