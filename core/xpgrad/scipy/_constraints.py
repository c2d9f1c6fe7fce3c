"""Constraints of `xpgrad.scipy.optimize.minimize`: SciPy's forms of them, which are active at a minimum, and the conditions there.

At a minimum of f with active constraints h(x) = 0, the gradient of f is a combination of the gradients of h, whose factors are the
multipliers. These equations in x and the multipliers define both as functions of the parameters, so `implicit` differentiates them.
"""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xpgrad._basics.arguments import shown
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd._scipy import as_floating
from xpgrad.func import grad, hessian, jacrev
from xpgrad.linalg import matmul
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import full
from xpgrad.rules.indexing import take
from xpgrad.rules.manipulation import concat, reshape, stack
from xpgrad.rules.reduction import sum as total

#: Methods of SciPy's `minimize` that take constraints.
METHODS = ("cobyla", "cobyqa", "slsqp", "trust-constr")
#: How near to its limit an active constraint is, relative to the limit if that is larger than 1.
_NEAR = 1e-5
#: How far from the limit of an active constraint a method that stays inside may stop, relative to the unknowns if these are larger than 1.
_REACH = 0.1
#: Multipliers count as zero if their product with the constraint's gradient has at most this size, relative to that of the objective's
#: gradient if that is larger than 1.
_SMALL = 1e-6

Limits = list[Any]


class Constraint:
    """A constraint ``low <= function(x) <= high``.

    Parameters
    ----------
    function : ScipyObjective
        The constrained values; its method `vector` returns them with their history.
    low, high : list of (Tensor, number or None)
        The limits of each value.
    keep_feasible : bool or sequence of bool
        SciPy's option.
    """

    def __init__(self, function: Any, low: Limits, high: Limits, keep_feasible: Any = False) -> None:
        self.function, self.low, self.high, self.keep_feasible = function, low, high, keep_feasible

    def for_scipy(self, optimize: Any, method: str) -> Any:
        """Return SciPy's form of the constraint, with derivatives."""
        more: dict[str, Any] = {"hess": self._hess} if method == "trust-constr" else {}
        limits = as_floats(self.low, -math.inf), as_floats(self.high, math.inf)
        return optimize.NonlinearConstraint(self.function.fun, *limits, jac=self.function.jac, keep_feasible=self.keep_feasible, **more)

    def _hess(self, x: Any, v: Any) -> Any:
        """Return the sum of the values' Hessians, weighted by `v`, for SciPy."""
        flat = self.function.to_tensor(x)
        weights = self.function.to_tensor(v)
        return as_floating(hessian(lambda flat: total(weights * self.function.vector(flat)))(flat))


def read_constraints(name: str, given: Any, make: Callable[[Any], Any], ravel: Callable[[Any], Any], x: Any) -> list[Constraint]:
    """Return the constraints that a user gives in any of SciPy's forms.

    Parameters
    ----------
    name : str
        The function that is called, for messages.
    given : dict, LinearConstraint, NonlinearConstraint, or sequence of them
    make : callable
        Returns the objective of a function of a tree of unknowns, which also has the method `vector`.
    ravel : callable
        Flattens a tree of unknowns.
    x : Tensor, shape (n,)
        The initial guess.

    Raises
    ------
    TypeError
        The further arguments of a function are not a tuple.
    ValueError
        A constraint has another form, or another number of limits than of values.
    """
    found = []
    for one in given if isinstance(given, Sequence) else [given]:
        low, high, keep = getattr(one, "lb", 0.0), getattr(one, "ub", 0.0), getattr(one, "keep_feasible", False)
        keep = keep if _has_any(keep) else False  # SciPy tests its truth
        if _is_dict(one):
            function = _with_arguments(name, one["fun"], one.get("args", ()))
            high = 0.0 if str(one["type"]).lower() == "eq" else None
        elif hasattr(one, "lb") and callable(getattr(one, "fun", None)):
            function = one.fun
        elif hasattr(one, "lb") and hasattr(one, "A"):
            function = _product(name, one.A, ravel, x)
        else:
            forms = "a dict with 'type' ('eq' or 'ineq') and 'fun', a LinearConstraint, a NonlinearConstraint, or a sequence of these"
            msg = f"{name}: `constraints` must be {forms}, but got {shown(one)}"
            raise ValueError(msg)
        objective = make(function)
        count = objective.vector(x).shape[0]
        found.append(Constraint(objective, _spread_to(name, low, count), _spread_to(name, high, count), keep))
    return found


def _is_dict(one: Any) -> bool:
    """Return whether a constraint is a dict as SciPy wants it."""
    return isinstance(one, Mapping) and callable(one.get("fun")) and str(one.get("type")).lower() in ("eq", "ineq")


def _with_arguments(name: str, function: Any, args: Any) -> Callable[[Any], Any]:
    """Return a function of the unknowns that calls `function` with further arguments."""
    if not isinstance(args, tuple):
        msg = f'{name}: the "args" of a constraint must be a tuple, but got {shown(args)}; give `(argument,)`'
        raise TypeError(msg)
    return lambda x: function(x, *args)


def _product(name: str, matrix: Any, ravel: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """Return the function that multiplies unknowns, as a vector, by a matrix; a single row may be a vector."""
    if hasattr(matrix, "toarray"):
        matrix = matrix.toarray()
    a = matrix.to(dtype=x.dtype, device=x.device) if isinstance(matrix, Tensor) else asarray(matrix, dtype=x.dtype, device=x.device)
    if a.ndim not in (1, 2) or a.shape[-1] != x.shape[0]:
        msg = f"{name}: the matrix of a LinearConstraint must have a column for each of {x.shape[0]} unknowns, but has shape {a.shape}"
        raise ValueError(msg)
    a = reshape(a, (-1, x.shape[0]))
    return lambda tree: matmul(a, ravel(tree))


def _spread_to(name: str, side: Any, count: int) -> Limits:
    """Return one limit per value of a constraint."""
    values = list(side.reshape((-1,)) if isinstance(side, Tensor) else side) if getattr(side, "ndim", 0) or _is_list(side) else [side]
    if len(values) == 1:
        values *= count
    if len(values) != count:
        msg = f"{name}: a constraint has {count} values, but {len(values)} limits"
        raise ValueError(msg)
    return values


def _has_any(flags: Any) -> bool:
    """Return whether a flag, or one of several, is set."""
    return bool(flags.any() if hasattr(flags, "any") else any(flags) if _is_list(flags) else flags)


def _is_list(side: Any) -> bool:
    return isinstance(side, (list, tuple))


def as_floats(side: Limits | None, missing: float) -> list[float]:
    """Return limits as floats, with `missing` for None."""
    return [missing if v is None else float(v.detach() if isinstance(v, Tensor) else v) for v in side or ()]


def as_number(v: Any, x: Any) -> Any:
    """Return a limit as a 0-d Tensor with the dtype and device of the unknowns `x`; None becomes 0."""
    if isinstance(v, Tensor):
        return v.to(dtype=x.dtype, device=x.device).reshape(())
    return full((), 0.0 if v is None else float(v), dtype=x.dtype, device=x.device)


class _Row(NamedTuple):
    """One value of a constraint with the limit next to it, the sign of its multiplier (0: any), and whether it is at the limit."""

    constraint: Constraint
    place: int
    limit: Any
    sign: int
    near: bool


class Conditions:
    """The conditions at a constrained minimum: equations in the unknowns and the multipliers of the active constraints.

    Parameters
    ----------
    scalar : callable
        The objective as a function of a vector.
    constraints : list of Constraint
    x : Tensor, shape (n,)
        The minimum, without history.
    inside : bool
        Whether the method stops before the limits of active constraints, as "trust-constr" does: these are found by the multipliers that
        they have at their limits.

    Attributes
    ----------
    start : Tensor, shape (n + k,)
        The minimum and the multipliers of k active constraints.
    weakly_active : bool
        Whether a constraint is at its limit, but its multiplier is zero.
    """

    def __init__(self, scalar: Callable[[Any], Any], constraints: list[Constraint], x: Any, *, inside: bool = False) -> None:
        self._scalar, self._x = scalar, x
        self._rows: list[_Row] = []
        for constraint in constraints:
            lows, highs = as_floats(constraint.low, -math.inf), as_floats(constraint.high, math.inf)
            for i, (value, low, high) in enumerate(zip(constraint.function.vector(x).detach().tolist(), lows, highs, strict=True)):
                at_low = value - low <= high - value
                limit, sign = low if at_low else high, 0 if low == high else 1 if at_low else -1
                if not math.isfinite(limit):
                    continue
                near = sign == 0 or (value - limit) * sign <= _NEAR * max(1.0, abs(limit))
                if near or inside:
                    self._rows.append(_Row(constraint, i, constraint.low[i] if at_low else constraint.high[i], sign, near))
        self.weakly_active, multipliers = False, asarray([], dtype=x.dtype, device=x.device)
        if self._rows:
            multipliers = self._select()
        self.start = concat([x, multipliers])

    def _select(self) -> Any:
        """Keep the constraints whose multipliers are not zero, and return these."""
        slope, jacobian = as_floating(grad(self._scalar)(self._x)), as_floating(jacrev(self._values)(self._x))
        sizes = (jacobian**2).sum(axis=1) ** 0.5
        values = self._values(self._x).detach().tolist()
        gaps = [abs(v) / size if size else math.inf for v, size in zip(values, sizes.tolist(), strict=True)]
        reach = _REACH * max(1.0, float(abs(self._x.detach()).max()))
        places = [k for k, row in enumerate(self._rows) if row.near]
        for k in sorted((k for k, row in enumerate(self._rows) if not row.near and gaps[k] <= reach), key=gaps.__getitem__):
            if self._holds(k, places, slope, jacobian):
                places.append(k)
        found = self._multipliers(places, slope, jacobian)
        small = _SMALL * max(1.0, float((slope**2).sum()) ** 0.5)
        kept = sorted(k for k, v in found.items() if self._rows[k].sign == 0 or abs(v) * sizes[k] > small)
        self.weakly_active = any(self._rows[k].near for k in found if k not in kept)
        self._rows = [self._rows[k] for k in kept]
        return asarray([found[k] for k in kept], dtype=self._x.dtype, device=self._x.device)

    def _multipliers(self, places: list[int], slope: Any, jacobian: Any) -> dict[int, float]:
        """Return the multipliers of some constraints, by least squares."""
        if not places:
            return {}
        signs = [self._rows[k].sign for k in places]
        sides = [-math.inf if s <= 0 else 0.0 for s in signs], [math.inf if s >= 0 else 0.0 for s in signs]
        optimize: Any = importlib.import_module("scipy.optimize")
        return dict(zip(places, optimize.lsq_linear(jacobian[places].T, slope, bounds=sides, method="bvls").x.tolist(), strict=True))

    def _holds(self, k: int, places: list[int], slope: Any, jacobian: Any) -> bool:
        """Return whether a constraint before whose limit SciPy stopped has a multiplier of its sign at the limit, beside the others."""
        found = self._multipliers(places, slope, jacobian)
        weights = asarray([found.get(j, 0.0) for j in range(len(self._rows))], dtype=self._x.dtype, device=self._x.device)
        normal = asarray(jacobian[k], dtype=self._x.dtype, device=self._x.device)
        moved = self._x - normal * (self._values(self._x).detach()[k] / (normal * normal).sum())
        rest = grad(lambda v: self._scalar(v) - total(weights * self._values(v)))(moved).detach()
        return self._rows[k].sign * float((rest * normal).sum()) > 0.0

    def _values(self, flat: Any) -> Any:
        """Return how far the constrained values are from the limits that they have reached."""
        parts = []
        for constraint in dict.fromkeys(row.constraint for row in self._rows):
            places = [row.place for row in self._rows if row.constraint is constraint]
            limits = stack([as_number(row.limit, flat) for row in self._rows if row.constraint is constraint])
            parts.append(take(constraint.function.vector(flat), asarray(places, device=flat.device), axis=0) - limits)
        return concat(parts)

    def residual(self, both: Any) -> Any:
        """Return what is zero at the minimum: the gradient of the Lagrangian, and the active constraints."""
        n = self._x.shape[0]
        flat, multipliers = both[:n], both[n:]
        if not self._rows:
            return grad(self._scalar)(flat)
        slope = grad(lambda v: self._scalar(v) - total(multipliers * self._values(v)))(flat)
        return concat([slope, -self._values(flat)])

    def warn(self, name: str) -> None:
        """Warn that derivatives are one-sided if a constraint is weakly active."""
        if self.weakly_active:
            msg = (
                f"{name}: a constraint is at its limit without any effect on the minimum (its multiplier is zero). The minimum has a kink "
                "there: derivatives are those without the constraint"
            )
            warnings.warn(msg, RuntimeWarning, stacklevel=3)
