"""A function of Tensors as SciPy's optimisers and solvers want it: of one vector of float64, with its derivatives beside it.

The parameters may be any tree; SciPy sees them as the vector that `xpgrad.func.ravel_pytree` makes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._basics.arguments import check_callable
from xpgrad._modes import switches
from xpgrad._tape.requests import grad
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.passes import batched_grads
from xpgrad.func import hessian, hessian_vector_product, ravel_pytree
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import eye, zeros


def scipy_objective(func: Callable[..., Any], parameters: Any) -> ScipyObjective:
    """A function of Tensors as `scipy.optimize` wants it: NumPy's arrays and floats in and out, and the derivatives.

    Parameters
    ----------
    func : callable
        ``func(parameters, *args)``: a 0-d real Tensor, what is to be minimised; or residuals, a real Tensor of any shape or a tree of
        such. `args` are what SciPy hands on (its own ``args=``).
    parameters : Tensor, array or number, or nested tuples, named tuples, lists and dicts of them
        Where SciPy begins. The structure, shapes, dtypes and device are those that `func` gets.

    Returns
    -------
    ScipyObjective

    Raises
    ------
    TypeError
        For a `func` that cannot be called, and parameters that are not real floating numbers.
    DeviceMismatchError
        For parameters on several devices.

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


class ScipyObjective:
    """A function of one vector, and its derivatives; made by `scipy_objective`. All arrays are NumPy's, of float64.

    Call it for the pair that ``jac=True`` stands for: ``minimize(f, f.x0, jac=True)``, ``root(f, f.x0, jac=True)``. Its methods are what
    SciPy takes separately: ``least_squares(f.fun, f.x0, jac=f.jac)``, ``minimize(f, f.x0, jac=True, hessp=f.hessp)``.

    Parameters
    ----------
    func : callable
        ``func(parameters, *args)``, as `scipy_objective` takes it.
    parameters : Tensor, array or number, or a tree of them
        Where SciPy begins.

    Attributes
    ----------
    x0 : ndarray of float64, shape (n,)
        The parameters as a vector: where to begin.

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
        self.x0: Any = self._out(flat)

    def __repr__(self) -> str:
        name = getattr(self._func, "__qualname__", type(self._func).__name__)
        return f"<scipy_objective of {name}, {len(self.x0)} parameters on {self._device}>"

    def unravel(self, x: Any) -> Any:
        """The parameters that a vector stands for: a tree of Tensors, as `func` gets them.

        Parameters
        ----------
        x : array, shape (n,)

        Returns
        -------
        Tensor, or a tree of Tensors
            In the structure, shapes, dtype and device of the parameters that were given.

        Raises
        ------
        ValueError
            For a vector of another length.

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p: p["b"], {"a": xp.zeros(2), "b": 1.0})
        >>> f.unravel([7.0, 8.0, 9.0])
        {'a': tensor([7., 8.]), 'b': tensor(9.)}
        """
        return self._unravel(self._in(x))

    def __call__(self, x: Any, *args: Any) -> tuple[Any, Any]:
        """The value and its gradient, or residuals and their Jacobian.

        Parameters
        ----------
        x : array, shape (n,)
        *args
            Handed on to the function.

        Returns
        -------
        value : float, or ndarray of shape (m,)
        derivative : ndarray of shape (n,), or (m, n)

        Raises
        ------
        TypeError
            If the function does not return real floating Tensors.
        ValueError
            For a vector of another length.
        """
        return self._both(x, args)

    def fun(self, x: Any, *args: Any) -> Any:
        """The value alone: a float, or residuals, an ndarray of shape (m,); parameters as those of a call.

        Parameters
        ----------
        x : array, shape (n,)
            The parameters as a vector.
        *args : object
            Handed on to the function.

        Returns
        -------
        float, or ndarray of shape (m,)
            A float for a 0-d result; else the residuals, flat.

        Raises
        ------
        TypeError
            If the function does not return real floating Tensors.
        ValueError
            For a vector of another length.

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p, scale: xp.sum(p * p) * scale, xp.tensor([1.0, 2.0]))
        >>> f.fun(f.x0, 10.0)
        50.0
        """
        with switches.no_grad():
            out = self._value(self._in(x), args)
        return float(out) if not out.ndim else self._out(out)

    def jac(self, x: Any, *args: Any) -> Any:
        """The derivative alone: a gradient, an ndarray of shape (n,), or a Jacobian (m, n).

        Parameters
        ----------
        x : array, shape (n,)
            The parameters as a vector.
        *args : object
            Handed on to the function.

        Returns
        -------
        ndarray of float64
            Of shape (n,) for a 0-d result, (m, n) for residuals.

        Raises
        ------
        TypeError
            If the function does not return real floating Tensors.
        ValueError
            For a vector of another length.

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p: xp.stack([p[0] * p[1], p[0] + p[1]]), xp.tensor([2.0, 3.0]))
        >>> f.jac(f.x0)
        array([[3., 2.],
               [1., 1.]])
        """
        return self._both(x, args)[1]

    def hess(self, x: Any, *args: Any) -> Any:
        """The Hessian of a scalar function: an ndarray of shape (n, n).

        Parameters
        ----------
        x : array, shape (n,)
            The parameters as a vector.
        *args : object
            Handed on to the function.

        Returns
        -------
        ndarray of float64, shape (n, n)
            Second derivatives.

        Raises
        ------
        ValueError
            If the function returns residuals.

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p: p[0] ** 2 * p[1], xp.tensor([3.0, 5.0]))
        >>> f.hess(f.x0)
        array([[10.,  6.],
               [ 6.,  0.]])
        """
        return self._out(hessian(lambda flat: self._scalar(flat, args, "hess"))(self._in(x)))

    def hessp(self, x: Any, p: Any, *args: Any) -> Any:
        """The product of the Hessian of a scalar function and a vector, without the Hessian: an ndarray of shape (n,).

        Parameters
        ----------
        x : array, shape (n,)
            The parameters as a vector.
        p : array, shape (n,)
            The vector.
        *args : object
            Handed on to the function.

        Returns
        -------
        ndarray of float64, shape (n,)
            The Hessian times `p`.

        Raises
        ------
        ValueError
            If the function returns residuals.

        Examples
        --------
        >>> import xpgrad as xp
        >>> f = xp.autograd.interop.scipy_objective(lambda p: p[0] ** 2 * p[1], xp.tensor([3.0, 5.0]))
        >>> f.hessp(f.x0, [1.0, 0.0])
        array([10.,  6.])
        """
        return self._out(hessian_vector_product(lambda flat: self._scalar(flat, args, "hessp"))(self._in(x), self._in(p)))

    def _both(self, x: Any, args: tuple[Any, ...]) -> tuple[Any, Any]:
        with switches.recorded():
            flat = self._in(x).requires_grad_()
            out = self._value(flat, args)
            if not out.requires_grad or 0 in out.shape:
                shape = (*out.shape, *flat.shape)
                found = zeros(shape, dtype=flat.dtype, device=flat.device)
            elif out.ndim:
                rows = eye(out.shape[0], dtype=out.dtype, device=out.device)
                (found,) = grad(out, flat, rows, materialize_grads=True, batched=batched_grads)
            else:
                (found,) = grad(out, flat, materialize_grads=True)
        return self._out(out) if out.ndim else float(out.detach()), self._out(found)

    def _scalar(self, flat: Any, args: tuple[Any, ...], what: str) -> Any:
        out = self._value(flat, args)
        if out.ndim:
            msg = f"scipy_objective: {what} needs a function that returns a 0-d Tensor, but it returned {out.shape[0]} residuals"
            raise ValueError(msg)
        return out

    def _value(self, flat: Any, args: tuple[Any, ...]) -> Any:
        """The value at a vector of Tensors: 0-d, or residuals as one vector."""
        out = self._func(self._unravel(flat), *args)
        if not (isinstance(out, Tensor) and not out.ndim):
            out, _ = ravel_pytree(out)
        if not out.dtype.is_floating_point:
            msg = f"scipy_objective: the function must return real floating Tensors, but returned {out.dtype}"
            raise TypeError(msg)
        return out

    def _in(self, x: Any) -> Any:
        """SciPy's vector, which it may write to later, as a Tensor."""
        return asarray(x, dtype=self._dtype, device=self._device, copy=True)

    def _out(self, x: Any) -> Any:
        """A Tensor as an array that SciPy may write to."""
        return x.detach().numpy().astype("float64", copy=True)
