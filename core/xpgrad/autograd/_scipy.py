"""Adapt a function of Tensors to SciPy's optimisers and solvers: a function of one float64 vector, with its derivatives.

The parameters may be any pytree; `xpgrad.func.ravel_pytree` turns them into the vector.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._basics.arguments import check_callable
from xpgrad._basics.docstrings import shares
from xpgrad._modes import switches
from xpgrad._tape.requests import grad
from xpgrad._tensor.computing import compute
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.passes import batched_grads
from xpgrad.func import hessian, hessian_vector_product, ravel_pytree
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import eye, zeros


def as_floating(x: Any) -> Any:
    """Copy a Tensor into an array of float64, to which SciPy may write."""
    return x.detach().numpy().astype("float64", copy=True)


def scipy_objective(func: Callable[..., Any], parameters: Any) -> ScipyObjective:
    """Adapt a function of Tensors to `scipy.optimize`: NumPy arrays and floats as arguments and results, and its derivatives.

    Parameters
    ----------
    func : callable
        ``func(parameters, *args)`` returns a 0-d real Tensor to minimise, or residuals: a real Tensor of any shape or a tree of them.
        SciPy's ``args=`` are passed on.
    parameters : Tensor, array or number, or nested tuples, named tuples, lists and dicts of them
        The starting point. `func` gets parameters with its structure, shapes, dtypes and device.

    Returns
    -------
    ScipyObjective
        Pass it to SciPy's functions with ``jac=True``, or its methods separately.

    Raises
    ------
    TypeError
        `func` is not callable, or a parameter is not a real floating-point number.
    DeviceMismatchError
        The parameters are on several devices.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from scipy.optimize import minimize
    >>> f = xp.autograd.interop.scipy_objective(lambda p: xp.sum((p["a"] - 3.0) ** 2) + p["b"] ** 2, {"a": xp.zeros(2), "b": 1.0})
    >>> result = minimize(f, f.x0, jac=True, method="L-BFGS-B")
    >>> [round(float(v), 3) for v in f.unravel(result.x)["a"]]
    [3.0, 3.0]
    """
    check_callable(func, "scipy_objective")
    return ScipyObjective(func, parameters)


#: What the docstrings of functions of a vector have in common.
_document_vector = shares(
    parameters="""\
x : array, shape (n,)
    The parameters as a vector.
*args : object
    Passed on to the function.""",
    raises="""\
TypeError
    The function does not return real floating-point Tensors.
ValueError
    `x` does not have n elements.""",
)


class ScipyObjective:
    """A function of one vector and its derivatives, in float64 NumPy arrays; made by `scipy_objective`.

    A call returns the value and the derivative, as ``jac=True`` expects: ``minimize(f, f.x0, jac=True)``, ``root(f, f.x0, jac=True)``.
    The methods are for functions that take these separately: ``least_squares(f.fun, f.x0, jac=f.jac)``,
    ``minimize(f, f.x0, jac=True, hessp=f.hessp)``.

    Parameters
    ----------
    func : callable
        As for `scipy_objective`.
    parameters : Tensor, array or number, or a tree of them
        The starting point.

    Attributes
    ----------
    x0 : ndarray of float64, shape (n,)
        The starting point as a vector.

    Examples
    --------
    >>> import xpgrad as xp
    >>> f = xp.autograd.interop.ScipyObjective(lambda p: p[0] ** 2 * p[1], xp.tensor([3.0, 5.0]))
    >>> f.x0
    array([3., 5.])
    >>> f(f.x0)
    (45.0, array([30.,  9.]))
    >>> f([1.0, 2.0])
    (2.0, array([4., 1.]))
    """

    def __init__(self, func: Callable[..., Any], parameters: Any) -> None:
        self._func = func
        flat, self._unravel = ravel_pytree(parameters)
        if not flat.dtype.is_floating_point:
            msg = f"scipy_objective: the parameters must be real floating numbers, but they meet in {flat.dtype}; give e.g. 1.0, not 1"
            raise TypeError(msg)
        self._dtype, self._device = flat.dtype, flat.device
        self.x0: Any = as_floating(flat)

    def __repr__(self) -> str:
        name = getattr(self._func, "__qualname__", type(self._func).__name__)
        return f"<scipy_objective of {name}, {len(self.x0)} parameters on {self._device}>"

    def unravel(self, x: Any) -> Any:
        """Turn a vector into parameters, as `func` gets them.

        Parameters
        ----------
        x : array, shape (n,)
            A vector such as `x0`.

        Returns
        -------
        Tensor, or a tree of Tensors
            With the structure, shapes, dtypes and device of the given parameters.

        Raises
        ------
        ValueError
            `x` does not have n elements.

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p: p["b"], {"a": xp.zeros(2), "b": 1.0})
        >>> f.unravel([7.0, 8.0, 9.0])
        {'a': tensor([7., 8.]), 'b': tensor(9.)}
        """
        return self._unravel(self._to_tensor(x))

    @_document_vector
    def __call__(self, x: Any, *args: Any) -> tuple[Any, Any]:
        """Return the value and its gradient, or the residuals and their Jacobian.

        Returns
        -------
        value : float, or ndarray of shape (m,)
        derivative : ndarray of shape (n,), or (m, n)
        """
        return self._both(x, args)

    @_document_vector
    def fun(self, x: Any, *args: Any) -> Any:
        """Return the value alone.

        Returns
        -------
        float, or ndarray of shape (m,)
            The value, or the flattened residuals.

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p, scale: xp.sum(p * p) * scale, xp.tensor([1.0, 2.0]))
        >>> f.fun(f.x0, 10.0)
        50.0
        """
        with switches.no_grad():
            out = self._value(self._to_tensor(x), args)
        return float(out.detach()) if not out.ndim else as_floating(out)

    @_document_vector
    def jac(self, x: Any, *args: Any) -> Any:
        """Return the derivative alone.

        Returns
        -------
        ndarray of float64
            The gradient, shape (n,), or the Jacobian of the residuals, shape (m, n).

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p: xp.stack([p[0] * p[1], p[0] + p[1]]), xp.tensor([2.0, 3.0]))
        >>> f.jac(f.x0)
        array([[3., 2.],
               [1., 1.]])
        """
        return self._both(x, args)[1]

    @_document_vector
    def hess(self, x: Any, *args: Any) -> Any:
        """Return the Hessian of a scalar function.

        Returns
        -------
        ndarray of float64, shape (n, n)
            Second derivatives.

        Raises
        ------
        ValueError
            The function returns residuals, or `x` does not have n elements.

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p: p[0] ** 2 * p[1], xp.tensor([3.0, 5.0]))
        >>> f.hess(f.x0)
        array([[10.,  6.],
               [ 6.,  0.]])
        """
        return as_floating(hessian(lambda flat: self._scalar(flat, args, "hess"))(self._to_tensor(x)))

    @_document_vector
    def hessp(self, x: Any, p: Any, *args: Any) -> Any:
        """Return the product of the Hessian of a scalar function and a vector, without computing the Hessian.

        Parameters
        ----------
        p : array, shape (n,)
            The vector.

        Returns
        -------
        ndarray of float64, shape (n,)
            The Hessian times `p`.

        Raises
        ------
        ValueError
            The function returns residuals, or `x` does not have n elements.

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p: p[0] ** 2 * p[1], xp.tensor([3.0, 5.0]))
        >>> f.hessp(f.x0, [1.0, 0.0])
        array([10.,  6.])
        """
        return as_floating(hessian_vector_product(lambda flat: self._scalar(flat, args, "hessp"))(self._to_tensor(x), self._to_tensor(p)))

    def _both(self, x: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
        return self._differentiate(*self._record(x, args))

    def _record(self, x: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return the parameters as a vector, and the value with its history."""
        with switches.recorded():
            flat = self._to_tensor(x).requires_grad_()
            return flat, self._value(flat, args)

    def _differentiate(self, flat: Any, out: Any) -> tuple[Any, Any]:
        """Return a recorded value and its derivative."""
        with switches.recorded():
            if not out.requires_grad or 0 in out.shape:
                shape = (*out.shape, *flat.shape)
                found = zeros(shape, dtype=flat.dtype, device=flat.device)
            elif out.ndim:
                rows = eye(out.shape[0], dtype=out.dtype, device=out.device)
                (found,) = grad(out, flat, rows, materialize_grads=True, batched=batched_grads)
            else:
                (found,) = grad(out, flat, materialize_grads=True)
        compute(out, found)
        return as_floating(out) if out.ndim else float(out.detach()), as_floating(found)

    def _scalar(self, flat: Any, args: tuple[Any, ...], what: str) -> Any:
        out = self._value(flat, args)
        if out.ndim:
            msg = f"scipy_objective: {what} needs a function that returns a 0-d Tensor, but it returned {out.shape[0]} residuals"
            raise ValueError(msg)
        return out

    def _value(self, flat: Any, args: tuple[Any, ...]) -> Any:
        """Call the function with a flat Tensor; return a 0-d value, or the residuals as one vector."""
        out = self._func(self._unravel(flat), *args)
        if not (isinstance(out, Tensor) and not out.ndim):
            out, _ = ravel_pytree(out)
        if not out.dtype.is_floating_point:
            msg = f"scipy_objective: the function must return real floating Tensors, but returned {out.dtype}"
            raise TypeError(msg)
        return out

    def _to_tensor(self, x: Any) -> Any:
        """Copy SciPy's vector, to which it may write later, into a Tensor."""
        return asarray(x, dtype=self._dtype, device=self._device, copy=True)
