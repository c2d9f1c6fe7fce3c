"""`xpgrad.scipy.interpolate`: SciPy's interpolants for Tensors on every backend, differentiable with respect to points, values and queries.

Derivatives are those of the polynomial pieces; at a knot, those of the piece to its right. Finding the piece that contains a query has
no derivative. Values may be complex; knots and queries are real.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xpgrad._basics.faces import public_names, refusal
from xpgrad.scipy.interpolate._cubic import (
    Akima1DInterpolator as Akima1DInterpolator,
    CubicHermiteSpline as CubicHermiteSpline,
    CubicSpline as CubicSpline,
    PchipInterpolator as PchipInterpolator,
)
from xpgrad.scipy.interpolate._grids import RegularGridInterpolator as RegularGridInterpolator, interpn as interpn
from xpgrad.scipy.interpolate._one_axis import interp1d as interp1d
from xpgrad.scipy.interpolate._polynomials import PPoly as PPoly

__all__ = [
    "Akima1DInterpolator", "CubicHermiteSpline", "CubicSpline", "PPoly", "PchipInterpolator", "RegularGridInterpolator", "interp1d",
    "interpn",
]  # fmt: skip


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)
