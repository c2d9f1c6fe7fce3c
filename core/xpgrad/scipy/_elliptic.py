"""The complete elliptic integrals (DLMF, chapter 19), computed by SciPy.

Their derivatives are combinations of them (DLMF 19.4.1, 19.4.2), which cancel near 0, where power series are used (DLMF 19.5.1, 19.5.2).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from xpgrad._basics.docstrings import shares
from xpgrad.scipy._declare import special, valid

if TYPE_CHECKING:
    from xpgrad._tensor.tensor import Tensor
    from xpgrad.rules.elementwise import Operand

__all__ = ["ellipe", "ellipk", "ellipkm1"]

_document_parameter = shares(
    parameters="""\
m : Tensor or number
    The parameter, the square of the modulus; real, at most 1; nan above. Differentiable below 1."""
)

#: The squares of the coefficients of the power series of ``(1 - m) ** -0.5``.
_SQUARES = [1.0]
for _k in range(1, 60):
    _SQUARES.append(_SQUARES[-1] * ((2 * _k - 1) / (2 * _k)) ** 2)


def _series(m: Any, coefficients: list[float], xp: Any) -> Any:
    total = xp.zeros_like(m)
    for coefficient in reversed(coefficients):
        total = total * m + coefficient * (math.pi / 2.0)
    return total


def _first_slope(m: Any, rest: Any, first: Any, xp: Any) -> Any:
    """Return the derivative of `ellipk`, whose value is `first`; `rest` is 1 - m."""
    near = xp.abs(m) < 0.5
    series = _series(xp.where(near, m, xp.zeros_like(m)), [k * _SQUARES[k] for k in range(1, 60)], xp)
    far = xp.where(near, xp.ones_like(m) * 0.5, m)
    other = xp.where(near, xp.ones_like(m) * 0.5, rest)
    return xp.where(near, series, (xp.special_ellipe(m) - rest * first) / (far * other * 2.0))


def _second_slope(m: Any, second: Any, xp: Any) -> Any:
    """Return the derivative of `ellipe`, whose value is `second`."""
    near = xp.abs(m) < 0.5
    series = _series(xp.where(near, m, xp.zeros_like(m)), [k * _SQUARES[k] / (1 - 2 * k) for k in range(1, 60)], xp)
    far = xp.where(near, xp.ones_like(m), m)
    return xp.where(near, series, (second - xp.special_ellipk(xp.where(near, xp.zeros_like(m), m))) / (far * 2.0))


@special(lambda g, m, out, xp: g * valid(_first_slope(m, 1.0 - m, out, xp), out, xp))
@_document_parameter
def ellipk(m: Operand, /) -> Tensor:
    """Return the complete elliptic integral of the first kind; infinite at 1.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.ellipk(xp.asarray([0.0, 0.5, 1.0]))
    tensor([1.5708, 1.8541,    inf])
    >>> xp.func.grad(special.ellipk)(0.0)  # pi / 8
    tensor(0.3927)
    """


@special(lambda g, p, out, xp: g * -valid(_first_slope(1.0 - p, p, out, xp), out, xp))
def ellipkm1(p: Operand, /) -> Tensor:
    """Return the complete elliptic integral of the first kind ``ellipk(1 - p)``, accurate for small `p`.

    Parameters
    ----------
    p : Tensor or number
        One minus the parameter; real, at least 0; infinite at 0, nan below. Differentiable above 0.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.ellipkm1(xp.asarray([1e-20, 0.5, 1.0]))
    tensor([24.4121,  1.8541,  1.5708])
    >>> xp.func.grad(special.ellipkm1)(1.0)  # -pi / 8
    tensor(-0.3927)
    """


@special(lambda g, m, out, xp: g * valid(_second_slope(m, out, xp), out, xp))
@_document_parameter
def ellipe(m: Operand, /) -> Tensor:
    """Return the complete elliptic integral of the second kind.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import special
    >>> special.ellipe(xp.asarray([0.0, 0.5, 1.0]))
    tensor([1.5708, 1.3506, 1.    ])
    >>> xp.func.grad(special.ellipe)(0.0)  # -pi / 8
    tensor(-0.3927)
    """
