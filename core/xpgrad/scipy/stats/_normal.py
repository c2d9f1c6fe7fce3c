"""The logarithm of the normal density as two fused operations that save one array, the standardised argument, for all derivatives.

Programs that fit a model usually evaluate it on all their data, and passes over memory dominate its cost.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from xpgrad.scipy._declare import helper

_LOG_ROOT = math.log(2 * math.pi) / 2


def _scale_or_nan(xp: Any, scale: Any) -> Any:
    """Replace scales that are not above 0 by nan, so that values and derivatives become nan."""
    if scale.ndim == 0 and xp._backend.is_host and not xp._backend.is_traced(scale):  # reading one number is faster than `where`
        return scale if scale > 0 else scale * math.nan
    return xp.where(scale > 0, scale, scale * math.nan)


def _writes(xp: Any, scale: Any) -> bool:
    """Return whether intermediate arrays may be overwritten: the library supports it and the scale is 0-d, so no shape grows."""
    return scale.ndim == 0 and bool(xp._backend.capabilities.mutable)


def _one_of(g: Any) -> Any:
    """Return one element of a cotangent whose elements share memory (all strides 0, as a sum's), else the whole cotangent."""
    strides = getattr(g, "strides", None)
    return g if not strides or any(strides) or 0 in g.shape else g[(0,) * len(strides)]


def _total(g: Any, xp: Any) -> Any:
    """Return the sum of a cotangent."""
    one = _one_of(g)
    return xp.sum(g) if one is g else one * float(math.prod(g.shape))


def _by_loc(g: Any, loc_shape: Any, scale: Any, xp: Any) -> Any:
    """Return the cotangent of `loc`; if both parameters are 0-d, sum before dividing, which saves a pass."""
    return (xp.sum(g) if loc_shape == () == scale.shape else g) * (-1.0 / scale)


def _as_vector(x: Any, xp: Any) -> Any:
    """Reshape an array to a vector."""
    return x if x.ndim == 1 else xp.reshape(x, (-1,))


def _by_scale(g: Any, scale: Any, out: Any, xp: Any) -> Any:
    """Return the cotangent of `scale`; for a 0-d scale by an inner product, which allocates no array."""
    product = xp.vecdot(_as_vector(g, xp), _as_vector(out, xp)) if scale.shape == () else g * out
    return product * (-1.0 / scale)


def _standardised_jvp(d_loc: Any, d_scale: Any, d_x: Any, out: Any, scale: Any) -> Any:
    """Return the tangent of `_standardised`; missing tangents are None."""
    parts = (d_x, None if d_loc is None else -d_loc, None if d_scale is None else -(out * d_scale))
    total = functools.reduce(operator.add, (part for part in parts if part is not None))
    return total * (1.0 / scale)


# The argument is the last operand, so that its gradient may overwrite the cotangent.
@helper(_by_loc, _by_scale, "g * (1.0 / scale)", composed=True, jvp=_standardised_jvp)
def _standardised(xp: Any, loc: Any, scale: Any, x: Any) -> Any:
    """Compute ``(x - loc) / scale``."""
    z, inverse = x - loc, 1.0 / _scale_or_nan(xp, scale)
    if not _writes(xp, scale):
        return z * inverse
    z *= inverse
    return z


def _log_density_jvp(d_z: Any, d_scale: Any, z: Any, scale: Any) -> Any:
    """Return the tangent of `_normal_log_density`; missing tangents are None."""
    by_z = None if d_z is None else -(z * d_z)
    if d_scale is None:
        return by_z
    by_scale = d_scale * (-1.0 / scale)
    return by_scale if by_z is None else by_z + by_scale


@helper(
    lambda g, z: z * (_one_of(g) * -1.0),
    lambda g, scale, xp: (_total(g, xp) if scale.shape == () else g) * (-1.0 / scale),
    composed=True, jvp=_log_density_jvp,
)  # fmt: skip
def _normal_log_density(xp: Any, z: Any, scale: Any) -> Any:
    """Compute the logarithm of the normal density from the standardised argument and the scale."""
    out, log_scale = xp.square(z), xp.log(_scale_or_nan(xp, scale)) + _LOG_ROOT
    if not _writes(xp, scale):
        return out * -0.5 - log_scale
    out *= -0.5
    out -= log_scale
    return out


def norm_logpdf(x: Any, loc: Any, scale: Any) -> Any:
    """Return the logarithm of the normal density at `x`."""
    return _normal_log_density(_standardised(loc, scale, x), scale)
