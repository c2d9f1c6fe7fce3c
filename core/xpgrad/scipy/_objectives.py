"""What the solvers of `xpgrad.scipy.optimize` share: their arguments are read, SciPy gets a function, and its result a history.

`Objective` is the function that SciPy calls with NumPy vectors, and `differentiable_result` differentiates what SciPy found.
"""

from __future__ import annotations

import importlib
import typing
import warnings
from collections.abc import Sequence
from typing import Any

from xpgrad._backends.contexts import keep_context
from xpgrad._basics.arguments import check_callable, shown
from xpgrad._basics.scalars import is_raw_array, is_scalar
from xpgrad._modes import switches
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd._scipy import ScipyObjective, as_floating
from xpgrad.func import ravel_pytree
from xpgrad.func._tree import tree_map
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import astype
from xpgrad.scipy._implicit import implicit, linear_solver_of

__all__ = [
    "Failure",
    "Objective",
    "as_start",
    "as_tuple",
    "check_arguments",
    "differentiable_result",
    "functions_for_scipy",
    "is_empty",
    "objective_of",
    "require_convergence",
    "to_tensors",
    "without_history",
]

Failure = typing.Literal["raise", "warn", "ignore"]

#: Methods of `minimize` that use no gradient, products with the Hessian, or the Hessian; all others use the gradient.
_WITHOUT_GRADIENT = ("nelder-mead", "powell", "cobyla", "cobyqa")
_WITH_PRODUCTS = ("newton-cg", "trust-ncg", "trust-krylov", "trust-constr")
_WITH_HESSIAN = ("dogleg", "trust-exact")


class Objective(ScipyObjective):
    """A function of a vector that also keeps its history.

    Attributes
    ----------
    start : Tensor, shape (n,)
        The initial guess, without history.
    recorded : tuple or None
        A point, the Tensor made of it, and the values there with their history.
    """

    def __init__(self, name: str, fun: Any, x0: Any, args: tuple[Any, ...], *, like_x: bool, one: bool) -> None:
        self.name, self.like_x, self.one = name, like_x, one
        self.recorded: tuple[Any, Any, Any] | None = None
        super().__init__(lambda tree: fun(tree, *args), x0)
        flat, self.unravel_out = ravel_pytree(x0)
        self.start = flat.detach()

    def to_tensor(self, x: Any) -> Any:
        """Copy SciPy's vector into a Tensor."""
        return self._to_tensor(x)

    def ravel(self, tree: Any) -> Any:
        """Flatten a tree to a vector."""
        return ravel_pytree(tree)[0]

    def _value(self, flat: Any, args: tuple[Any, ...]) -> Any:
        """Evaluate the function, and raise ValueError if it returns another number of values than required."""
        out = super()._value(flat, args)
        if self.one and out.ndim:
            count = out.shape[0]
            what = (
                f"{count} numbers; did you mean to sum them?"
                if count != 1
                else ("a number or an array of one; compute with Tensors, without `float()`, and return an element of the array")
            )
            msg = f"{self.name}: the function must return a 0-d Tensor, but returned {what}"
            raise ValueError(msg)
        if self.like_x and not out.ndim:
            out = out.reshape((1,))
        if self.like_x and out.shape != flat.shape:
            msg = f"{self.name}: the function must return as many numbers as it gets, {flat.shape[0]}, but returned {out.shape[0]}"
            raise ValueError(msg)
        return out

    def residuals(self, x: Any) -> Any:
        """Return the values as an array, and keep their history for `jacobian`, which SciPy mostly asks for next."""
        self.recorded = x.copy(), *self._record(x, ())
        return as_floating(self.recorded[2]).reshape(-1)

    def jacobian(self, x: Any) -> Any:
        """Return the Jacobian of the values as an array; the history that was kept is used up."""
        kept, self.recorded = self.recorded, None
        flat, out = kept[1:] if kept is not None and (kept[0] == x).all() else self._record(x, ())
        return self._differentiate(flat, out)[1].reshape((-1, len(x)))

    def vector(self, flat: Any) -> Any:
        """Return the values as one vector with their history."""
        out = self._value(flat, ())
        return out if out.ndim else out.reshape((1,))

    def scalar(self, flat: Any) -> Any:
        """Return the value of a scalar function, with its history."""
        return self._scalar(flat, (), self.name)


def is_empty(constraints: Any) -> bool:
    """Return whether no constraints are given."""
    return constraints is None or (isinstance(constraints, Sequence) and not constraints)


def functions_for_scipy(
    name: str, objective: Objective, method: str, fun: Any, args: Any, jac: Any, hess: Any, hessp: Any
) -> dict[str, Any]:  # fmt: skip
    """Return SciPy's arguments `fun`, `jac`, `hess` and `hessp` for a method: xpgrad's derivatives, unless others are given."""
    for what, given in (("jac", jac), ("hess", hess), ("hessp", hessp)):
        if not (given is None or callable(given) or (what == "jac" and given is True)):
            also = ", or True" if what == "jac" else ""
            msg = f"{name}: `{what}` must be a function{also}, but got {shown(given)}; leave it out, and xpgrad computes derivatives"
            raise ValueError(msg)

    def numbers(tree: Any) -> Any:
        return as_floating(objective.ravel(tree))

    def both(x: Any) -> Any:
        with switches.no_grad():
            value, gradient = fun(objective.unravel(x), *args)
        return float(value), numbers(gradient)

    def slope(x: Any) -> Any:
        with switches.no_grad():
            return numbers(jac(objective.unravel(x), *args))

    def matrix(x: Any) -> Any:
        with switches.no_grad():
            return numbers(hess(objective.unravel(x), *args)).reshape((len(x), len(x)))

    def product(x: Any, p: Any) -> Any:
        with switches.no_grad():
            return numbers(hessp(objective.unravel(x), objective.unravel(p), *args))

    if method in _WITHOUT_GRADIENT:
        return {"fun": objective.fun}
    found: dict[str, Any] = {"fun": objective, "jac": True}
    if jac is True:
        found["fun"] = both
    elif jac is not None:
        found |= {"fun": objective.fun, "jac": slope}
    if method in _WITH_PRODUCTS:
        found |= {"hess": matrix} if hess is not None and hessp is None else {"hessp": objective.hessp if hessp is None else product}
    elif method in _WITH_HESSIAN:
        found["hess"] = objective.hess if hess is None else matrix
    return found


def as_tuple(args: Any) -> Any:
    """Return further arguments as a tuple: a single number is one, as in SciPy."""
    return (args,) if is_scalar(args) else args


def as_start(x0: Any) -> Any:
    """Return an initial guess in floating-point numbers; a list of numbers becomes a Tensor."""
    if isinstance(x0, list) and x0 and all(is_scalar(x) and not isinstance(x, (bool, complex)) for x in x0):
        x0 = asarray(x0)
    return tree_map(_as_floating_leaf, x0)


def _as_floating_leaf(x: Any) -> Any:
    """Return an integer, or an array or a Tensor of integers, in floating-point numbers; others unchanged."""
    if isinstance(x, int) and not isinstance(x, bool):
        return float(x)
    if is_raw_array(x):
        x = asarray(x)
    if isinstance(x, Tensor) and "integer" in x.dtype.category:
        return astype(x, x.default_dtype("real floating"))
    return x


def objective_of(name: str, fun: Any, x0: Any, args: Any, *, like_x: bool = False, one: bool = False) -> Objective:
    """Return the objective of the public function `name`, after checking the initial guess `x0`."""
    try:
        return Objective(name, keep_context(fun), as_start(x0), args, like_x=like_x, one=one)
    except TypeError as exc:
        msg = str(exc).replace("scipy_objective: the parameters", f"{name}: `x0`")
        raise TypeError(msg) from None


def check_arguments(name: str, fun: Any, args: Any, failure: Any, linear_solver: Any = "auto") -> Any:
    """Check the arguments that all functions of this module have; return SciPy's module."""
    check_callable(fun, name, "fun")
    if not isinstance(args, tuple):
        msg = f"{name}: `args` must be a tuple of further arguments of the function, but got {shown(args)}; give `(argument,)`"
        raise TypeError(msg)
    if failure not in ("raise", "warn", "ignore"):
        msg = f"{name}: `failure` must be 'raise', 'warn' or 'ignore', but got {shown(failure)}"
        raise ValueError(msg)
    linear_solver_of(name, linear_solver)
    try:
        return importlib.import_module("scipy.optimize")
    except ImportError:
        msg = f"xpgrad.scipy.optimize.{name} needs SciPy, which is not installed: pip install 'xpgrad[scipy]'"
        raise ImportError(msg) from None


def require_convergence(name: str, well: bool, message: str, failure: str) -> None:
    """Raise or warn, as `failure` says, unless the solver converged (`well`)."""
    if well or failure == "ignore":
        return
    msg = f"{name} did not converge: {message.rstrip('.')}. Derivatives of the result would be those of no solution"
    if failure == "raise":
        raise RuntimeError(f"{msg}; begin nearer, allow more iterations, or pass failure='warn'")
    warnings.warn(msg, RuntimeWarning, stacklevel=3)


def differentiable_result(result: Any, objective: Objective, residual: Any, how: Any, *, symmetric: bool = False, fun: bool = False) -> Any:
    """Return SciPy's result with the solution and, if `fun`, the value as Tensors with their history.

    Parameters
    ----------
    result : OptimizeResult
    objective : Objective
    residual : callable
        What is 0 at the solution, which is differentiated implicitly.
    how, symmetric
        As for `implicit`.
    fun : bool
    """
    flat = implicit(residual, objective.to_tensor(result.x), how, symmetric=symmetric)
    result.x = objective.unravel_out(flat)
    if fun:
        result.fun = objective.scalar(flat)
    return result


def without_history(x: Any) -> Any:
    """Return a tree with its Tensors detached."""
    return tree_map(lambda v: v.detach() if isinstance(v, Tensor) else v, x)


def to_tensors(tree: Any, near: Any) -> Any:
    """Convert the arrays in `tree` to Tensors with the dtype and device of the Tensor `near`."""
    dtype = near.dtype if near.dtype.is_floating_point else None
    return tree_map(lambda v: v if isinstance(v, Tensor) else asarray(v, dtype=dtype, device=near.device), tree)
