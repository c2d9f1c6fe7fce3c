"""Transforms with the names of JAX and HIPS autograd, made of those of `torch.func`; and trees as one vector.

`value_and_grad` and `ravel_pytree` are JAX's, `elementwise_grad` and `hessian_vector_product` HIPS autograd's.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from xpgrad._basics.arguments import as_flag, check_callable
from xpgrad._basics.dtypes import promote
from xpgrad._basics.faces import names_keywords
from xpgrad._modes import state
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import as_tensor, lift_leaves
from xpgrad._tensor.tensor import Tensor
from xpgrad.func._reverse import Argnums, grad, grad_and_value, put_back, select_arguments, vjp
from xpgrad.func._tree import flatten, unflatten
from xpgrad.rules.creation import zeros
from xpgrad.rules.manipulation import concat, reshape
from xpgrad.rules.reduction import sum as total


@names_keywords
def value_and_grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the value of a real scalar function and its gradient (`jax.value_and_grad`).

    It is `grad_and_value` with the results in JAX's order.

    Parameters
    ----------
    func : callable
        Returns a real 0-d Tensor; with ``has_aux=True`` a pair of it and anything else.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate; see `grad_and_value`.
    has_aux : bool
        Whether `func` returns a pair.

    Returns
    -------
    callable
        Takes the arguments of `func` and returns ``(value, gradient)``, or ``((value, aux), gradient)``.

    Raises
    ------
    TypeError
        If `func` is not callable.
    RuntimeError
        When the result is called: if an argument cannot be differentiated, `argnums` does not fit, or the value is not a real 0-d Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.func.value_and_grad(lambda x: x**3)(2.0)
    (tensor(8.), tensor(12.))
    """
    check_callable(func, "value_and_grad")
    has_aux = as_flag(has_aux, "value_and_grad", "has_aux")
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return value, gradient

    return wrapper


@names_keywords
def elementwise_grad(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the derivative of an elementwise function at every element (HIPS autograd's `elementwise_grad`).

    Parameters
    ----------
    func : callable
        Returns a real Tensor of any shape. If each element of the result depends on only one element of an argument, its derivative is
        computed; otherwise the sum of the Jacobian's column.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate; see `grad_and_value`.

    Returns
    -------
    callable
        Takes the arguments of `func` and returns derivatives in the shape and structure of the chosen arguments.

    Raises
    ------
    TypeError
        If `func` is not callable.
    RuntimeError
        When the result is called: if an argument cannot be differentiated, or the value is not a real floating-point Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.func.elementwise_grad(xp.square)(xp.tensor([1.0, 2.0, 3.0]))
    tensor([2., 4., 6.])
    """
    check_callable(func, "elementwise_grad")

    @functools.wraps(func, updated=())
    def summed(*args: Any, **kwargs: Any) -> Tensor:
        out = func(*args, **kwargs)
        if not isinstance(out, Tensor) or not out.dtype.is_floating_point:
            what = f"a Tensor of dtype {out.dtype}" if isinstance(out, Tensor) else type(out).__name__
            msg = f"elementwise_grad: Expected the function to return a real floating Tensor, but got {what}"
            raise RuntimeError(msg)
        return total(out)

    return grad(summed, argnums)


@names_keywords
def hessian_vector_product(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the product of a Hessian and a vector (HIPS autograd's `hessian_vector_product`).

    The Hessian itself is never formed: a product costs about two gradients.

    Parameters
    ----------
    func : callable
        Real scalar function of real arguments.
    argnums : int or tuple of int
        Positions of the arguments with respect to which to differentiate; see `grad_and_value`.

    Returns
    -------
    callable
        Takes the arguments of `func`, followed by the vector, which has the structure and shapes of the chosen arguments; returns the
        product in the same structure.

    Raises
    ------
    TypeError
        If `func` is not callable; when the result is called, if there is no vector.
    RuntimeError
        When the result is called: if an argument, the value or the vector does not fit.

    Examples
    --------
    >>> import xpgrad as xp
    >>> xp.func.hessian_vector_product(lambda x: xp.sum(x**3))(xp.tensor([1.0, 2.0]), xp.tensor([1.0, 0.5]))
    tensor([6., 6.])
    """
    check_callable(func, "hessian_vector_product")

    @functools.wraps(func, updated=())
    @state.restoring
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if len(args) < 2:
            msg = "hessian_vector_product: give the arguments of the function, and the vector behind them"
            raise TypeError(msg)
        *rest, vector = args
        places, leaves, structure = select_arguments("hessian_vector_product", tuple(rest), argnums)

        def gradient(tree: Any) -> Any:
            return grad(func, argnums)(*put_back(tuple(rest), argnums, places, tree), **kwargs)

        # The Hessian is symmetric: its product with a vector is the vector's with it.
        _, product = vjp(gradient, unflatten(structure, leaves))
        (found,) = product(vector)
        return found

    return wrapper


def ravel_pytree(tree: Any) -> tuple[Tensor, Callable[[Any], Any]]:
    """Return the leaves of a tree as one vector, and a function that turns such a vector into a tree (`jax.flatten_util.ravel_pytree`).

    Both directions are differentiable, and can be used inside transforms.

    Parameters
    ----------
    tree : Tensor, array or number, or nested tuples, named tuples, lists and dicts of them
        Leaves on one device; numbers go where the others are.

    Returns
    -------
    flat : Tensor
        One-dimensional: all elements, leaf by leaf, each in row-major order, in the dtype to which the leaves promote. For a tree without
        leaves it is an empty vector on the default device.
    unravel : callable
        ``unravel(flat)`` returns a tree of the same structure, whose leaves have the original shapes and dtypes.

    Raises
    ------
    TypeError
        If a leaf is not a Tensor, an array or a number.
    DeviceMismatchError
        If leaves are on several devices.
    ValueError
        When `unravel` is called with a vector of another shape.

    Examples
    --------
    >>> import xpgrad as xp
    >>> flat, unravel = xp.func.ravel_pytree({"w": xp.tensor([[1.0, 2.0]]), "b": 3.0})
    >>> flat
    tensor([1., 2., 3.])
    >>> unravel(2 * flat)
    {'w': tensor([[2., 4.]]), 'b': tensor(6.)}
    """
    leaves, structure = flatten(tree)
    tensors = [as_tensor("ravel_pytree", x) for x in lift_leaves("ravel_pytree", leaves, numbers=True)]
    tensors = unify("ravel_pytree", tensors) if tensors else []
    shapes, dtypes = [x.shape for x in tensors], [x.dtype for x in tensors]
    sizes = [math.prod(shape) for shape in shapes]
    if tensors:
        wide = functools.reduce(promote, dtypes)
        flat = concat([reshape(x._cast(wide), (size,)) for x, size in zip(tensors, sizes)])
    else:
        flat = zeros((0,))
    length = sum(sizes)

    def unravel(vector: Any) -> Any:
        vector = as_tensor("unravel", vector)
        if vector.shape != (length,):
            msg = f"unravel: expected a vector of shape {(length,)}, as `ravel_pytree` returned it, but got shape {vector.shape}"
            raise ValueError(msg)
        parts, start = [], 0
        for shape, dtype, size in zip(shapes, dtypes, sizes):
            parts.append(reshape(vector[start : start + size], shape)._cast(dtype))
            start += size
        return unflatten(structure, parts)

    return flat, unravel
