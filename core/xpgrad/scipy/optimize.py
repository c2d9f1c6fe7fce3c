"""`xpgrad.scipy.optimize`: SciPy's optimisers and solvers of equations, with gradients from xpgrad and differentiable solutions.

A solution is differentiable, by the implicit function theorem, with respect to the Tensors that the function closes over or gets as `args`.
Only the solution is saved, so time and memory of its derivatives do not depend on the number of iterations. The derivatives are those of
the exact solution, evaluated at the computed one. Their error is of the order of its error, so choose a tight tolerance.
"""

from __future__ import annotations

import functools
import inspect
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xpgrad._basics.arguments import as_flag, check_callable, shown
from xpgrad._basics.docstrings import shares
from xpgrad._basics.faces import public_names, refusal
from xpgrad._basics.scalars import is_scalar
from xpgrad._basics.shapes import common_shape
from xpgrad._modes import state, switches
from xpgrad._operations.lift import as_tensors
from xpgrad._tensor.tensor import Tensor
from xpgrad.func import grad, jacrev, ravel_pytree
from xpgrad.linalg import cholesky, inv, matmul, solve, svdvals
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import astype, full
from xpgrad.rules.elementwise import atan2, log1p, maximum, sqrt, where
from xpgrad.rules.manipulation import reshape, unstack
from xpgrad.rules.reduction import sum as total
from xpgrad.scipy._bounds import bounded_residual, is_constant, read_bounds, read_sides
from xpgrad.scipy._constraints import METHODS, Conditions, Constraint, as_floats, read_constraints
from xpgrad.scipy._implicit import implicit, linear_solver_of
from xpgrad.scipy._objectives import (
    Failure,
    Objective,
    as_start,
    as_tuple,
    check_arguments,
    differentiable_result,
    functions_for_scipy,
    is_empty,
    objective_of,
    require_convergence,
    to_tensors,
    without_history,
)

__all__ = ["brentq", "curve_fit", "custom_root", "fixed_point", "least_squares", "minimize", "root"]


def __dir__() -> list[str]:
    return public_names(__name__)


if not TYPE_CHECKING:  # a type checker believes that a module with `__getattr__` has every name
    __getattr__ = refusal(__name__)


#: Methods of `root` that use the Jacobian.
_WITH_JACOBIAN = ("hybr", "lm")


_document_solver = shares(
    parameters="""\
x0 : Tensor, array or number, or nested tuples, named tuples, lists and dicts of them
    Initial guess; real. The function receives a tree of the same structure. A list of numbers is an array, as in SciPy, and integers
    become floating-point numbers.
args : tuple, or a number
    Further arguments of the function.
tol, callback, options : optional
    Passed to SciPy.
failure : {"raise", "warn", "ignore"}
    What to do if SciPy reports that it did not converge.
linear_solver : {"auto", "dense", "cg", "gmres"} or callable
    How to solve the linear systems of the implicit function theorem. "auto" factorises the Jacobian of up to 512 unknowns; beyond
    that it uses products with it, by CG if it is symmetric, else by GMRES. A callable receives the function that multiplies a
    vector by the matrix, and the right-hand side, both with NumPy vectors of float64, and returns the solution.""",
    raises="""\
TypeError
    An argument has a wrong type.
ImportError
    SciPy is not installed.""",
)


@_document_solver
def minimize(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] | float = (), method: str | None = None, *, jac: Any = None, hess: Any = None,
    hessp: Any = None, bounds: Any = None, constraints: Any = (), tol: float | None = None, callback: Any = None, options: Any = None,
    failure: Failure = "raise", linear_solver: Any = "auto",
) -> Any:  # fmt: skip
    """Minimise a scalar function (`scipy.optimize.minimize`); the minimum and its position are differentiable.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns a 0-d real Tensor.
    method : str, optional
        One of SciPy's methods. xpgrad supplies the gradient and, for methods that use them, Hessians or products with the Hessian.
    jac, hess, hessp : callable or bool, optional
        Derivatives for SciPy's iterations, instead of xpgrad's: ``jac(x, *args)`` returns a tree like `x`, ``hess(x, *args)`` a matrix,
        ``hessp(x, p, *args)`` a tree like `x`. With ``jac=True``, `fun` returns the value and the gradient. Derivatives of the solution
        do not depend on them.
    bounds : sequence of (min, max), or `scipy.optimize.Bounds`, optional
        Bounds of each number in `x0`, in the order of `xpgrad.func.ravel_pytree`: numbers, 0-d Tensors or None. The solution is
        differentiable with respect to active bounds.
    constraints : dict, `LinearConstraint`, `NonlinearConstraint` of `scipy.optimize`, or sequence of them, optional
        For the methods "SLSQP" (the default), "trust-constr", "COBYLA" and "COBYQA". A dict has "type" ("eq": `fun` is zero, "ineq": not
        negative), "fun" and optionally "args". Functions get the same tree as `fun` and return a real Tensor, or a tree of them; a matrix
        multiplies the vector of `xpgrad.func.ravel_pytree`. The solution is differentiable with respect to Tensors that functions close
        over or get as "args", to matrices, and to limits. xpgrad computes the derivatives of constraints; those that are given are not
        used.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's result, in which `x` is a tree of Tensors like `x0` and `fun` is a 0-d Tensor.

    Raises
    ------
    RuntimeError
        SciPy does not converge and `failure` is "raise". Differentiating the solution raises it if the Hessian is singular, which means
        that the solution is not a strict minimum, or if the gradients of active constraints are linearly dependent.
    ValueError
        `fun` does not return a single real number, `bounds`, `constraints`, `jac`, `failure` or `linear_solver` is invalid, or the method
        takes no constraints.

    See Also
    --------
    least_squares : Minimise a sum of squares.
    custom_root : Differentiate the result of another solver.

    Notes
    -----
    At a solution without active bounds the gradient is zero, which defines the solution as a function of the parameters. A bound is active
    if the solution lies on it and the gradient points outwards; that number then equals its bound. At the transition between active and
    inactive, derivatives are one-sided.

    With constraints, the gradient is a combination of the gradients of the active ones: those that are zero ("eq"), or at a limit with a
    multiplier of the right sign. The solution and the multipliers together are defined by these equations and the active constraints.
    A constraint at its limit whose multiplier is zero is treated as inactive, with a RuntimeWarning if the solution has a history.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import optimize
    >>> a = xp.tensor(3.0, requires_grad=True)
    >>> found = optimize.minimize(lambda x: xp.sum((x - a) ** 2) + xp.sum(x**2), xp.zeros(2))
    >>> found.x.sum().backward()  # each element is a / 2
    >>> round(a.grad.item(), 6)
    1.0

    The nearest point of a plane:

    >>> total = xp.tensor(3.0, requires_grad=True)
    >>> plane = {"type": "eq", "fun": lambda x: xp.sum(x) - total}
    >>> found = optimize.minimize(lambda x: xp.sum(x**2), xp.zeros(3), constraints=plane)
    >>> found.x.detach()
    tensor([1., 1., 1.])
    >>> found.x[0].backward()
    >>> round(total.grad.item(), 6)
    0.333333
    """
    name = "minimize"
    args = as_tuple(args)
    optimize = check_arguments(name, fun, args, failure, linear_solver)
    value = fun if jac is not True else lambda x, *args: fun(x, *args)[0]
    objective = objective_of(name, value, x0, args, one=True)
    low, high = read_bounds(name, bounds, objective)
    wanted = "" if method is None or callable(method) else str(method).lower()
    more = functions_for_scipy(name, objective, wanted, fun, args, jac, hess, hessp)
    function = more.pop("fun")
    if low is not None:
        more["bounds"] = optimize.Bounds(as_floats(low, -math.inf), as_floats(high, math.inf))

    def constrained(function: Any) -> Objective:
        return Objective(name, function, as_start(x0), (), like_x=False, one=False)

    limited = [] if is_empty(constraints) else read_constraints(name, constraints, constrained, objective.ravel, objective.start)
    if limited:
        if wanted not in ("", *METHODS):
            msg = f"{name}: the method {method!r} takes no constraints; use 'SLSQP', 'trust-constr', 'COBYLA' or 'COBYQA'"
            raise ValueError(msg)
        more["constraints"] = [constraint.for_scipy(optimize, wanted) for constraint in limited]
    result = optimize.minimize(function, objective.x0, method=method, tol=tol, callback=callback, options=options, **more)
    require_convergence(name, bool(result.success), str(result.message), failure)
    if limited or (wanted == "trust-constr" and low is not None and not is_constant(objective, result, low, high)):
        if low is not None and high is not None:
            limited.append(Constraint(constrained(objective.ravel), low, high))
        x = objective.to_tensor(result.x)
        conditions = Conditions(objective.scalar, limited, x, inside=wanted == "trust-constr")
        flat = implicit(conditions.residual, conditions.start, linear_solver)[: x.shape[0]]
        if flat.requires_grad:
            conditions.warn(name)
        result.x, result.fun = objective.unravel_out(flat), objective.scalar(flat)
        return result

    def gradient(flat: Any) -> Any:
        return grad(objective.scalar)(flat)

    if is_constant(objective, result, low, high):
        flat = objective.to_tensor(result.x)
        result.x, result.fun = objective.unravel_out(flat), objective.scalar(flat)
        return result
    return differentiable_result(
        result, objective, bounded_residual(gradient, objective.to_tensor(result.x), low, high), linear_solver, symmetric=True, fun=True
    )


@_document_solver
def root(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] | float = (), method: str = "hybr", *, tol: float | None = None,
    callback: Any = None, options: Any = None, failure: Failure = "raise", linear_solver: Any = "auto",
) -> Any:  # fmt: skip
    """Solve equations (`scipy.optimize.root`); the root is differentiable.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns a real Tensor, or a tree of Tensors, with as many numbers as `x0`; it is zero at the root.
    method : str
        One of SciPy's methods. "hybr" and "lm" use xpgrad's Jacobian.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's result, in which `x` is a tree of Tensors like `x0`.

    Raises
    ------
    RuntimeError
        SciPy does not converge and `failure` is "raise". Differentiating the root raises it if the Jacobian is singular there.
    ValueError
        `fun` returns another number of values than it gets, or `failure` or `linear_solver` is invalid.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import optimize
    >>> a = xp.tensor(2.0, requires_grad=True)
    >>> found = optimize.root(lambda x: x * x - a, xp.ones(1), tol=1e-6)
    >>> found.x.sum().backward()  # 1 / (2 sqrt(a))
    >>> round(a.grad.item(), 4)
    0.3536
    """
    name = "root"
    args = as_tuple(args)
    optimize = check_arguments(name, fun, args, failure, linear_solver)
    objective = objective_of(name, fun, x0, args, like_x=True)
    exact = str(method).lower() in _WITH_JACOBIAN
    function = objective if exact else objective.fun
    more: dict[str, Any] = {"jac": True} if exact else {}
    result = optimize.root(function, objective.x0, method=method, tol=tol, callback=callback, options=options, **more)
    require_convergence(name, bool(result.success), " ".join(str(result.message).split()), failure)
    return differentiable_result(result, objective, objective.vector, linear_solver)


#: The losses of `least_squares` as functions of the squared residuals, as SciPy defines them.
_LOSSES: dict[str, Callable[[Any], Any]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (sqrt(1.0 + z) - 1.0),
    "huber": lambda z: where(z <= 1.0, z, 2.0 * sqrt(where(z <= 1.0, 1.0, z)) - 1.0),
    "cauchy": log1p,
    "arctan": lambda z: atan2(z, full((), 1.0, dtype=z.dtype, device=z.device)),
}


@_document_solver
def least_squares(
    fun: Callable[..., Any], x0: Any, args: tuple[Any, ...] | float = (), *, bounds: Any = None, method: str = "trf", loss: str = "linear",
    f_scale: float = 1.0, failure: Failure = "raise", linear_solver: Any = "auto", **options: Any,
) -> Any:  # fmt: skip
    """Fit by least squares, with an optional robust loss (`scipy.optimize.least_squares`); the fit is differentiable.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args)`` returns the residuals: a real Tensor of any shape, or a tree of Tensors. Derivatives of the fit use its second
        derivatives, so custom rules in it must be twice differentiable.
    bounds : sequence of (min, max), `scipy.optimize.Bounds`, or (lower, upper), optional
        See `minimize`; only for the methods "trf" and "dogbox". As in SciPy, all lower and all upper bounds may be given as two numbers
        or vectors. Two lists of two numbers are pairs (min, max).
    method : {"trf", "dogbox", "lm"}
        SciPy's method.
    loss : {"linear", "soft_l1", "huber", "cauchy", "arctan"}
        The loss of the squared residuals, as SciPy defines it.
    f_scale : float
        The scale between inliers and outliers; see SciPy.
    **options
        Further options of SciPy: `ftol`, `xtol`, `gtol`, `x_scale`, `max_nfev`, `verbose`, ...

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's result, in which `x` is a tree of Tensors like `x0`, `cost` is a 0-d Tensor, and `fun` the residuals as a vector.

    Raises
    ------
    RuntimeError
        SciPy does not converge and `failure` is "raise". Differentiating the fit raises it if the fit is not unique.
    TypeError
        An argument has a wrong type, or `jac`, `jac_sparsity` or `kwargs` is given.
    ValueError
        `loss`, `bounds`, `failure` or `linear_solver` is invalid.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import optimize
    >>> t, y = xp.asarray([0.0, 1.0, 2.0]), xp.tensor([1.0, 3.0, 5.0], requires_grad=True)
    >>> fit = optimize.least_squares(lambda p: p["a"] + p["b"] * t - y, {"a": 0.0, "b": 0.0})
    >>> fit.x["b"].backward()
    >>> [round(v, 6) + 0.0 for v in y.grad.tolist()]
    [-0.5, 0.0, 0.5]
    """
    name = "least_squares"
    args = as_tuple(args)
    optimize = check_arguments(name, fun, args, failure, linear_solver)
    if loss not in _LOSSES:
        msg = f"least_squares: `loss` must be one of {', '.join(map(repr, _LOSSES))}, but got {shown(loss)}"
        raise ValueError(msg)
    for taken in ("jac", "kwargs", "jac_sparsity"):
        if taken in options:
            msg = f"least_squares has no argument {taken!r}: derivatives are computed, and functions close over what else they need"
            raise TypeError(msg)
    objective = objective_of(name, fun, x0, args)
    low, high = read_sides(bounds, len(objective.x0)) or read_bounds(name, bounds, objective)
    if low is not None:
        options["bounds"] = (as_floats(low, -math.inf), as_floats(high, math.inf))
    result = optimize.least_squares(
        objective.residuals, objective.x0, jac=objective.jacobian, method=method, loss=loss, f_scale=f_scale, **options
    )  # fmt: skip
    objective.recorded = None
    require_convergence(name, bool(result.success), str(result.message), failure)
    scale = float(f_scale)

    def cost(flat: Any) -> Any:
        values = objective.vector(flat) / scale
        return total(_LOSSES[loss](values * values)) * (0.5 * scale**2)

    if is_constant(objective, result, low, high):
        result.x = objective.unravel_out(objective.to_tensor(result.x))
        result.cost, result.fun = cost(objective.ravel(result.x)), objective.vector(objective.ravel(result.x))
        return result
    residual = bounded_residual(grad(cost), objective.to_tensor(result.x), low, high)
    found = differentiable_result(result, objective, residual, linear_solver, symmetric=True)
    found.cost, found.fun = cost(objective.ravel(found.x)), objective.vector(objective.ravel(found.x))
    return found


@_document_solver
def curve_fit(
    f: Callable[..., Any], xdata: Any, ydata: Any, p0: Any = None, sigma: Any = None, absolute_sigma: bool = False, *, bounds: Any = None,
    method: str | None = None, failure: Failure = "raise", linear_solver: Any = "auto", **options: Any,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Fit a function to data by least squares (`scipy.optimize.curve_fit`); the fit and its covariance are differentiable.

    Parameters
    ----------
    f : callable
        ``f(xdata, *parameters)`` returns a real Tensor of the shape of `ydata`; each parameter is a 0-d Tensor.
    xdata : object
        What `f` gets as its first argument, usually an array. A list of numbers becomes a Tensor.
    ydata : Tensor, array or sequence of numbers
        Data of any shape; real.
    p0 : sequence of numbers, or Tensor or array of shape (n,), optional
        Initial guess of the parameters; by default ones, as many as `f` has parameters after the first.
    sigma : Tensor or array, optional
        Standard deviations of the data, of a shape that broadcasts to that of `ydata`, or, for 1-d `ydata`, its covariance matrix.
    absolute_sigma : bool
        If False, only the ratios of `sigma` matter, and the covariance is scaled so that the reduced chi square is 1.
    bounds, **options
        See `least_squares`.
    method : {"lm", "trf", "dogbox"}, optional
        SciPy's method. Default, as in SciPy: "lm", or "trf" if there are bounds, a `loss`, or fewer data than parameters.

    Returns
    -------
    popt : Tensor, shape (n,)
        The parameters for which the sum of the squared residuals, divided by `sigma`, is least.
    pcov : Tensor, shape (n, n)
        Estimate of their covariance, ``inv(J.T @ J)`` with the Jacobian `J` of the residuals at `popt`. It is infinite, with a warning,
        if `J` has not the rank n, or if it must be scaled and there are no more data than parameters.

    Raises
    ------
    RuntimeError
        SciPy does not converge and `failure` is "raise".
    TypeError
        An argument has a wrong type, or the number of parameters cannot be read from the signature of `f` and `p0` is None.
    ValueError
        `sigma` has another shape, or `bounds`, `failure` or `linear_solver` is invalid.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import optimize
    >>> t, y = xp.asarray([0.0, 1.0, 2.0]), xp.tensor([1.0, 3.0, 5.5], requires_grad=True)
    >>> line, covariance = optimize.curve_fit(lambda t, a, b: a + b * t, t, y)
    >>> [round(float(v), 4) for v in line.detach()], covariance.shape
    ([0.9167, 2.25], (2, 2))
    >>> [round(v, 4) + 0.0 for v in xp.autograd.grad(line[1], y)[0].tolist()]
    [-0.5, 0.0, 0.5]
    """
    name = "curve_fit"
    check_callable(f, name, "f")
    absolute_sigma = as_flag(absolute_sigma, name, "absolute_sigma")
    (ydata,) = as_tensors(name, ydata if not isinstance(ydata, (list, tuple)) else asarray(ydata))
    if isinstance(xdata, (list, tuple)) and all(map(is_scalar, xdata)):
        xdata = astype(asarray(list(xdata)), ydata.default_dtype("real floating"))
    start = as_start([1.0] * _count_parameters(f)) if p0 is None else as_start(list(p0) if isinstance(p0, tuple) else p0)
    whiten = _whitening(sigma, ydata)

    def residuals(p: Any) -> Any:
        values = f(xdata, *unstack(p))
        if not isinstance(values, Tensor) or values.shape != ydata.shape:
            what = f"shape {values.shape}" if isinstance(values, Tensor) else shown(values)
            msg = f"curve_fit: `f` must return a Tensor of the shape of `ydata`, {ydata.shape}, but returned {what}"
            raise ValueError(msg)
        return whiten(values - ydata).reshape((-1,))

    if method is None:
        method = "lm" if bounds is None and "loss" not in options and ydata.numel() >= start.numel() else "trf"
    options |= {"bounds": bounds, "method": method, "failure": failure, "linear_solver": linear_solver}
    fit = least_squares(residuals, start, **options)
    if not fit.x.requires_grad and not state.carries_tangents():
        jacobian = asarray(fit.jac, dtype=fit.x.dtype, device=fit.x.device)
    else:
        jacobian, loss = jacrev(residuals)(fit.x), options.get("loss", "linear")
        if loss != "linear":
            jacobian = jacobian * _weigh(loss, float(options.get("f_scale", 1.0)), residuals(fit.x)).reshape((-1, 1))
    count, n = jacobian.shape
    sizes = svdvals(jacobian.detach()).tolist()
    full_rank = count >= n and sizes[-1] > max(count, n) * 2.0**-52 * sizes[0]
    if not full_rank or (not absolute_sigma and count <= n):
        warnings.warn("curve_fit: the covariance of the parameters could not be estimated", RuntimeWarning, stacklevel=2)
        return fit.x, full((n, n), math.inf, dtype=fit.x.dtype, device=fit.x.device)
    covariance = inv(matmul(jacobian.T, jacobian))
    return fit.x, covariance if absolute_sigma else covariance * (2 * fit.cost / (count - n))


def _weigh(loss: str, scale: float, values: Any) -> Any:
    """Return the square roots of a robust loss's second derivatives, at least eps: as in SciPy, they weigh the rows of the Jacobian."""
    cost = lambda v: total(_LOSSES[loss]((v / scale) ** 2)) * (0.5 * scale**2)  # noqa: E731
    return sqrt(maximum(grad(lambda v: total(grad(cost)(v)))(values), 2.0**-52))


def _count_parameters(f: Any) -> int:
    """Return the number of parameters of a function after its first; raise TypeError if its signature does not tell."""
    try:
        parameters = [*inspect.signature(f).parameters.values()][1:]
    except ValueError:
        parameters = []
    if not parameters or any(p.kind not in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters):
        msg = "curve_fit: the signature of `f` does not tell its number of parameters; give an initial guess `p0`"
        raise TypeError(msg)
    return len(parameters)


def _whitening(sigma: Any, ydata: Any) -> Callable[[Any], Any]:
    """Return the function that divides residuals by their standard deviations or, for a covariance matrix, by its Cholesky factor."""
    if sigma is None:
        return lambda r: r
    (sigma,) = as_tensors("curve_fit", sigma if not isinstance(sigma, (list, tuple)) else asarray(sigma))
    if ydata.ndim == 1 and sigma.shape == (ydata.shape[0],) * 2:
        factor = cholesky(sigma)
        return lambda r: reshape(solve(factor, reshape(r, (-1, 1))), (-1,))
    try:
        if common_shape(sigma.shape, ydata.shape) != ydata.shape:
            raise ValueError
    except ValueError:
        msg = f"curve_fit: `sigma` must have the shape of `ydata`, {ydata.shape}, or be its covariance matrix, but has shape {sigma.shape}"
        raise ValueError(msg) from None
    return lambda r: r / sigma


@_document_solver
def brentq(
    f: Callable[..., Any], a: Any, b: Any, args: tuple[Any, ...] | float = (), xtol: float = 2e-12, rtol: float | None = None,
    maxiter: int = 100, *, failure: Failure = "raise",
) -> Any:  # fmt: skip
    """Find a sign change of a function of one number (`scipy.optimize.brentq`); the root is differentiable.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns a 0-d real Tensor for a 0-d Tensor.
    a, b : Tensor, array or number
        Ends of the interval, at which `f` has different signs. The root does not depend on them.
    xtol, rtol, maxiter
        Passed to SciPy.

    Returns
    -------
    Tensor, shape ()
        The root.

    Raises
    ------
    ValueError
        `f` has the same sign at both ends.
    RuntimeError
        SciPy does not converge and `failure` is "raise". Differentiating the root raises it if the derivative of `f` is zero there.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import optimize
    >>> a = xp.tensor(2.0, requires_grad=True)
    >>> x = optimize.brentq(lambda x: x**3 - a, 0.0, 2.0)
    >>> x.backward()  # a ** (-2 / 3) / 3
    >>> round(a.grad.item(), 6)
    0.209987
    """
    name = "brentq"
    args = as_tuple(args)
    optimize = check_arguments(name, f, args, failure)
    ends, _ = ravel_pytree((a, b))
    objective = objective_of(name, f, asarray(ends[0] * 1.0).detach(), args, like_x=True)
    low, high = (float(v) for v in ends.detach())
    more = {} if rtol is None else {"rtol": rtol}
    x, report = optimize.brentq(
        lambda x: float(objective.fun([x])[0]), low, high, xtol=xtol, maxiter=maxiter, full_output=True, disp=False, **more
    )
    require_convergence(name, bool(report.converged), f"{report.flag} after {report.iterations} iterations", failure)
    return objective.unravel_out(implicit(objective.vector, objective.to_tensor([x]), "dense"))


@_document_solver
def fixed_point(
    func: Callable[..., Any], x0: Any, args: tuple[Any, ...] | float = (), xtol: float = 1e-8, maxiter: int = 500, method: str = "del2", *,
    failure: Failure = "raise", linear_solver: Any = "auto",
) -> Any:  # fmt: skip
    """Find ``x = func(x)`` (`scipy.optimize.fixed_point`); the fixed point is differentiable.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns a tree of the structure and shapes of `x`.
    xtol, maxiter
        Passed to SciPy.
    method : {"del2", "iteration"}
        Use Aitken's acceleration for each number, or plain iteration.

    Returns
    -------
    Tensor, or a tree of Tensors
        The fixed point, with the structure of `x0`.

    Raises
    ------
    RuntimeError
        SciPy does not converge and `failure` is "raise". Differentiating the fixed point raises it if the fixed point is not isolated.
    ValueError
        `func` returns another number of values than it gets, or `failure` or `linear_solver` is invalid.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy import optimize
    >>> a = xp.tensor(2.0, requires_grad=True)
    >>> x = optimize.fixed_point(lambda x: (x + a / x) / 2, 1.0)  # the square root
    >>> x.backward()
    >>> round(a.grad.item(), 6)
    0.353553
    """
    name = "fixed_point"
    args = as_tuple(args)
    optimize = check_arguments(name, func, args, failure, linear_solver)
    objective = objective_of(name, func, x0, args, like_x=True)
    try:
        x = optimize.fixed_point(objective.fun, objective.x0, xtol=xtol, maxiter=maxiter, method=method)
    except RuntimeError as exc:
        if "Failed to converge" not in str(exc):
            raise
        require_convergence(name, False, str(exc).partition(", value")[0], failure)
        x = objective.x0
        for _ in range(maxiter):
            x = objective.fun(x)
    return objective.unravel_out(implicit(lambda flat: flat - objective.vector(flat), objective.to_tensor(x), linear_solver))


def custom_root(
    residual: Callable[..., Any], *, linear_solver: Any = "auto", symmetric: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make the result of your own solver differentiable by the implicit function theorem; a decorator.

    Parameters
    ----------
    residual : callable
        ``residual(x, *args)``, with the arguments of the solver, returns as many numbers as the solution has; it is zero at the solution.
        It may close over Tensors.
    linear_solver
        See `minimize`.
    symmetric : bool
        Whether the Jacobian of `residual` is symmetric positive definite, as at a minimum. "auto" then uses CG for many unknowns.

    Returns
    -------
    callable
        A decorator for ``solver(*args)``, which returns a Tensor, array or number, or a tree of them. The solver is not recorded. It may
        be any code, for example NumPy or C, and receives Tensors without history.

    Raises
    ------
    TypeError
        `residual` is not callable. The decorator raises it for a solver that is not callable, and the solver for a solution that is not
        real and floating-point.
    ValueError
        `linear_solver` is invalid. The solver raises it if the residual has another number of values than the solution.
    RuntimeError
        The Jacobian is singular at the solution (raised when the solution is differentiated).

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.scipy.optimize import custom_root
    >>> @custom_root(lambda x, a: x**3 - a)
    ... def cube_root(a):
    ...     return a.numpy() ** (1 / 3)
    >>> a = xp.tensor([8.0, 27.0], requires_grad=True)
    >>> cube_root(a).sum().backward()
    >>> [round(v, 6) for v in a.grad.tolist()]
    [0.083333, 0.037037]
    """
    check_callable(residual, "custom_root", "residual")
    linear_solver_of("custom_root", linear_solver)

    def decorate(solver: Callable[..., Any]) -> Callable[..., Any]:
        check_callable(solver, "custom_root", "solver")

        @functools.wraps(solver)
        def solved(*args: Any) -> Any:
            with switches.no_grad():
                found = solver(*(without_history(a) for a in args))
            near = next((a for a in args if isinstance(a, Tensor)), None)
            if near is not None and not isinstance(found, Tensor):
                found = to_tensors(found, near)
            objective = objective_of("custom_root", residual, found, args, like_x=True)
            return objective.unravel_out(implicit(objective.vector, objective.start, linear_solver, symmetric=symmetric))

        return solved

    return decorate
