"""The logarithm of the normal density as two operations that save one array, the standardised argument.

Most programs that fit a model compute it for all data points, and its cost is that of its passes over memory.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

from xpgrad.scipy._declare import helper

_LOG_ROOT = math.log(2 * math.pi) / 2


def _scale_or_nan(xp: Any, scale: Any) -> Any:
    """Return the scale, or NaN for an invalid one."""
    if scale.ndim == 0 and xp._backend.is_host and not xp._backend.is_traced(scale):  # one that is good is looked at sooner than chosen
        return scale if scale > 0 else scale * math.nan
    return xp.where(scale > 0, scale, scale * math.nan)


def _writes(xp: Any, scale: Any) -> bool:
    """Return whether intermediate results may be overwritten."""
    return scale.ndim == 0 and bool(xp._backend.capabilities.mutable)


def _one_of(g: Any) -> Any:
    """Return one element of a cotangent that is expanded from one element, as that of a sum is; else all of it."""
    strides = getattr(g, "strides", None)
    return g if not strides or any(strides) or 0 in g.shape else g[(0,) * len(strides)]


def _total(g: Any, xp: Any) -> Any:
    """Return the sum of a cotangent."""
    one = _one_of(g)
    return xp.sum(g) if one is g else one * float(math.prod(g.shape))


def _by_loc(g: Any, loc_shape: Any, scale: Any, xp: Any) -> Any:
    """Sum the cotangent of a 0-d location before it is divided by the scale, which saves a pass over memory."""
    return (xp.sum(g) if loc_shape == () == scale.shape else g) * (-1.0 / scale)


def _flat(x: Any, xp: Any) -> Any:
    return x if x.ndim == 1 else xp.reshape(x, (-1,))


def _by_scale(g: Any, scale: Any, out: Any, xp: Any) -> Any:
    """Sum the cotangent of a 0-d scale by a product of vectors, which makes no array."""
    moved = xp.vecdot(_flat(g, xp), _flat(out, xp)) if scale.shape == () else g * out
    return moved * (-1.0 / scale)


def _standardised_jvp(d_loc: Any, d_scale: Any, d_x: Any, out: Any, scale: Any) -> Any:
    parts = (d_x, None if d_loc is None else -d_loc, None if d_scale is None else -(out * d_scale))
    moved = functools.reduce(operator.add, (part for part in parts if part is not None))
    return moved * (1.0 / scale)


# The argument is the last operand, so that its gradient may overwrite what came in.
@helper(_by_loc, _by_scale, "g * (1.0 / scale)", composed=True, jvp=_standardised_jvp)
def _standardised(xp: Any, loc: Any, scale: Any, x: Any) -> Any:
    """Return ``(x - loc) / scale``."""
    z, inverse = x - loc, 1.0 / _scale_or_nan(xp, scale)
    if not _writes(xp, scale):
        return z * inverse
    z *= inverse
    return z


def _log_density_jvp(d_z: Any, d_scale: Any, z: Any, scale: Any) -> Any:
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
    """Compute the logarithm of the density from the standardised argument and the scale."""
    out, log_scale = xp.square(z), xp.log(_scale_or_nan(xp, scale)) + _LOG_ROOT
    if not _writes(xp, scale):
        return out * -0.5 - log_scale
    out *= -0.5
    out -= log_scale
    return out


def norm_logpdf(x: Any, loc: Any, scale: Any) -> Any:
    """Return the logarithm of the normal density."""
    return _normal_log_density(_standardised(loc, scale, x), scale)
