"""Bounds of the unknowns of `xpgrad.scipy.optimize`: SciPy's forms of them, and what is 0 at a solution where some are active."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xpgrad._basics.arguments import shown
from xpgrad._basics.scalars import is_scalar
from xpgrad._modes import state
from xpgrad._tensor.tensor import Tensor
from xpgrad.rules.conversion import asarray
from xpgrad.rules.elementwise import where
from xpgrad.rules.manipulation import stack
from xpgrad.scipy._constraints import as_number
from xpgrad.scipy._objectives import Objective

__all__ = ["Limits", "bounded_residual", "is_constant", "read_bounds", "read_sides"]

Limits = list[Any] | None


def read_bounds(name: str, bounds: Any, objective: Objective) -> tuple[Limits, Limits]:
    """Return the lower and the upper bounds of the unknowns: numbers, Tensors or None."""
    n = len(objective.x0)
    if bounds is None:
        return None, None
    if hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        return _spread(bounds.lb, n), _spread(bounds.ub, n)
    pairs: list[Any] = list(bounds) if isinstance(bounds, Sequence) else [None]
    if len(pairs) != n or not all(isinstance(p, Sequence) and len(p) == 2 for p in pairs):
        wanted = f"a sequence of {n} pairs (min, max), one for each unknown, or scipy.optimize.Bounds"
        msg = f"{name}: `bounds` must be {wanted}, but got {shown(bounds)}"
        raise ValueError(msg)
    return [p[0] for p in pairs], [p[1] for p in pairs]


def read_sides(bounds: Any, n: int) -> tuple[Limits, Limits] | None:
    """Return the bounds if all lower ones are given first, as in SciPy's `least_squares`: numbers or vectors; None for pairs."""
    if not isinstance(bounds, (tuple, list)) or len(bounds) != 2:
        return None
    if not all(is_scalar(side) or (hasattr(side, "ndim") and side.ndim < 2) or (n != 2 and _length(side) == n) for side in bounds):
        return None
    return _spread_sequence(bounds[0], n), _spread_sequence(bounds[1], n)


def _length(side: Any) -> int:
    return len(side) if isinstance(side, Sequence) else -1


def _spread_sequence(side: Any, n: int) -> list[Any]:
    return list(side) if isinstance(side, Sequence) else _spread(side, n)


def _spread(side: Any, n: int) -> list[Any]:
    """Return a list of `n` bounds; a single bound is repeated."""
    values = list(side) if getattr(side, "ndim", 0) else [side] * n
    if len(values) == 1:
        values *= n
    return values


def is_constant(objective: Objective, result: Any, low: Limits, high: Limits) -> bool:
    """Return whether a solution has no derivatives: neither its function nor a bound depends on a Tensor that is differentiated."""
    if state.carries_tangents() or any(isinstance(v, Tensor) for side in (low, high) if side is not None for v in side):
        return False
    return not objective.vector(objective.to_tensor(result.x)).requires_grad


def bounded_residual(gradient: Any, x: Any, low: Limits, high: Limits) -> Any:
    """Return the residual of a minimum at `x` with the bounds `low` and `high`: the gradient or, at an active bound, the distance to it."""
    if low is None or high is None:
        return gradient
    slope = gradient(x).detach().tolist()
    held: list[Any] = []
    for v, g, one, other in zip(x.tolist(), slope, low, high, strict=True):
        bound = None
        for limit, outwards in ((one, g > 0), (other, g < 0)):
            value = None if limit is None else float(limit.detach() if isinstance(limit, Tensor) else limit)
            if value is not None and math.isfinite(value) and outwards and abs(v - value) <= 1e-7 * max(1.0, abs(value)):
                bound = limit
        held.append(bound)
    if all(h is None for h in held):
        return gradient
    active = asarray([h is not None for h in held], device=x.device)
    at = stack([as_number(h, x) for h in held])
    return lambda flat: where(active, flat - at, gradient(flat))
