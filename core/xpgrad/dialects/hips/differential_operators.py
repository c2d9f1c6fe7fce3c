"""HIPS autograd's differential operators, such as `grad`, `jacobian` and `make_vjp`: functions that return functions.

All take the position of the argument with respect to which to differentiate, or several positions, and return a function of the same
arguments.
"""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import xpgrad
from xpgrad._basics.arguments import check_callable
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd._custom import FunctionNode
from xpgrad.dialects.hips._arrays import ARRAY, np
from xpgrad.dialects.hips._primitives import PrimitiveNode
from xpgrad.dialects.hips._records import NoDerivative, Record, push_forward, warn_independent
from xpgrad.dialects.hips._spaces import vspace
from xpgrad.func._tree import flatten, tree_map
from xpgrad.rules.creation import ones_like

__all__ = [
    "checkpoint", "deriv", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian", "hessian_tensor_product",
    "hessian_vector_product", "holomorphic_grad", "jacobian", "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp",
    "multigrad_dict", "tensor_jacobian_product", "unary_to_nary", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip

Argnum = int | Sequence[int]


# -- one argument of several -----------------------------------------------------------------------------------------------


def _check(name: str, fun: Any, argnum: Any) -> None:
    check_callable(fun, name)
    numbers = argnum if isinstance(argnum, (tuple, list)) else (argnum,)
    if not all(isinstance(a, int) and not isinstance(a, bool) for a in numbers):
        msg = f"{name}: `argnum` must be an int, or a tuple or list of ints, but got {argnum!r:.60}; `grad_named` takes an argument's name"
        raise TypeError(msg)


def _split(fun: Callable[..., Any], argnum: Argnum, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Callable[[Any], Any], Any]:
    """Return a function of the chosen argument (or the tuple of chosen arguments), and its value."""
    if isinstance(argnum, int):
        if len(args) == 1 and not kwargs and argnum in (0, -1):
            return fun, args[0]
        places: tuple[int, ...] = (range(len(args))[argnum],)
        x: Any = args[argnum]
    else:
        places = tuple(range(len(args))[a] for a in argnum)
        x = tuple(args[a] for a in places)
    rest = list(args)

    def unary(x: Any) -> Any:
        new = rest[:]
        for place, part in zip(places, (x,) if isinstance(argnum, int) else x):
            new[place] = part
        return fun(*new, **kwargs)

    unary.__name__ = getattr(fun, "__name__", "unary")  # for messages
    return unary, x


def unary_to_nary(unary_operator: Callable[..., Any]) -> Callable[..., Any]:
    """Turn an operator on functions of one argument into one on functions of several arguments, with `argnum`.

    Parameters
    ----------
    unary_operator : callable
        ``unary_operator(fun, x, *options)``, with `fun` of one argument.

    Returns
    -------
    callable
        ``operator(fun, argnum=0, *options)``, which returns a function of the arguments of `fun`. With a tuple or list as `argnum`, `x` is
        the tuple of those arguments.
    """
    name = getattr(unary_operator, "__name__", "operator")

    def nary_operator(fun: Callable[..., Any], argnum: Argnum = 0, *options: Any, **named: Any) -> Callable[..., Any]:
        _check(name, fun, argnum)

        def nary_f(*args: Any, **kwargs: Any) -> Any:
            if argnum == 0 and len(args) == 1 and not kwargs:
                return unary_operator(fun, args[0], *options, **named)
            unary, x = _split(fun, argnum, args, kwargs)
            return unary_operator(unary, x, *options, **named)

        nary_f.__name__ = nary_f.__qualname__ = f"{name}_of_{getattr(fun, '__name__', '[unknown name]')}_wrt_argnum_{argnum}"
        nary_f.__doc__ = f"`{name}` of a function with respect to its argument {argnum}; takes the same arguments."
        return nary_f

    nary_operator.__name__ = nary_operator.__qualname__ = name
    nary_operator.__doc__ = unary_operator.__doc__
    nary_operator.__module__ = __name__
    return nary_operator


# -- reverse ---------------------------------------------------------------------------------------------------------------


def _one_for(record: Record) -> list[Any]:
    """Return the cotangent 1 of a value that is one real number.

    Raises
    ------
    TypeError
        For any other value.
    """
    (out, *more) = record.outs or [None]
    if out.__class__ is ARRAY and not more and not out._array.shape and out._array.dtype.kind == "f":
        return [None]
    if record.size != 1:
        shapes = ", ".join(f"{o.dtype} of shape {o.shape}" for o in record.outs) or "nothing"
        msg = (
            f"{record.name} applies to functions with one real number as their value, but this one returned {shapes}; use `jacobian`, "
            "`elementwise_grad` or `holomorphic_grad`"
        )
        raise TypeError(msg)
    return _ones(record)


def _ones(record: Record) -> list[Any]:
    return [None if not o._array.shape and not o.dtype.is_complex else _one(o) for o in record.outs]


def _one(o: Any) -> Any:
    return ARRAY._wrap(np.ones(o.shape, o._array.dtype)) if o.__class__ is ARRAY else ones_like(o)


@unary_to_nary
def grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the gradient of `fun`, whose value is one real number.

    Parameters
    ----------
    fun : callable
    argnum : int, or tuple or list of int
        The position of the argument with respect to which to differentiate: an array, a number, or nested tuples, lists and dicts of them.

    Returns
    -------
    callable
        It takes the arguments of `fun`, and returns the gradient with the structure of the argument. A complex gradient follows HIPS
        autograd: the derivative with respect to the real part minus i times that with respect to the imaginary part, which is the
        conjugate of xpgrad's gradient.

    Raises
    ------
    TypeError
        When the function is called: the argument is not differentiable, or the value is not one real number.

    >>> from xpgrad.dialects.hips import grad
    >>> float(grad(lambda x: x**3)(2.0))
    12.0
    """
    record = Record("grad", fun, x)
    return record.pull_back(_one_for(record))


@unary_to_nary
def value_and_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the value of `fun` and its gradient, which SciPy's optimisers take with ``jac=True``; see `grad`."""
    record = Record("value_and_grad", fun, x)
    gradient = record.pull_back(_one_for(record))
    return record.value, gradient


@unary_to_nary
def elementwise_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the column sums of the Jacobian of `fun`: the elementwise derivative of an elementwise function.

    Raises
    ------
    TypeError
        When the function is called: the value is complex, or as for `grad`.
    """
    record = Record("elementwise_grad", fun, x)
    if any(o.dtype.is_complex for o in record.outs):
        msg = "elementwise_grad applies to functions with real values, but this one returned complex numbers; use `holomorphic_grad`"
        raise TypeError(msg)
    return record.pull_back(_ones(record))


@unary_to_nary
def jacobian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the Jacobian of `fun`, with shape ``(*value.shape, *argument.shape)``.

    One backward pass computes all rows, unless `fun` calls a `primitive`.

    Raises
    ------
    TypeError
        When the function is called: the argument or the value is not one array or number, or as for `grad`.
    ValueError
        The value is complex. As in HIPS autograd, only holomorphic functions have a complex Jacobian.
    """
    record = Record("jacobian", fun, x)
    if not record.structure.is_leaf or not record.shape.is_leaf:
        msg = "jacobian takes functions of one array with one array as their value; `misc.flatten` makes an array of tuples and dicts"
        raise TypeError(msg)
    if record.outs[0].dtype.is_complex:
        msg = "jacobian applies to functions with real values, but this one returned complex numbers; take their parts"
        raise ValueError(msg)
    return record.rows(alone=(FunctionNode, PrimitiveNode))


@unary_to_nary
def hessian(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the Jacobian of the Jacobian, which is the Hessian of a `fun` with one number as its value."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_vjp(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the pair ``(vjp, value)`` at its arguments.

    ``vjp(v)`` is the product of `v` and the Jacobian. `v` has the structure of the value, and the product that of the argument. It may be
    called repeatedly.
    """
    try:
        record = Record("make_vjp", fun, x)
    except NoDerivative as exc:  # a comparison, or another value that does not depend on the argument differentiably
        warn_independent()
        return lambda v: vspace(x).zeros(), exc.value
    value = record.value
    # The pass reads arrays to which a caller may write.
    return record.vjp, value.copy() if isinstance(value, np.ndarray) else value


@unary_to_nary
def holomorphic_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the complex derivative of a holomorphic `fun` with one number as its value."""

    def real(x: Any) -> Any:
        return np.real(fun(x))

    if not any(np.iscomplexobj(leaf) for leaf in flatten(x)[0]):
        warnings.warn("Input to holomorphic_grad is not complex", UserWarning, stacklevel=3)
    return grad(real)(x)


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """Return the gradient function with respect to a named argument, which is passed by position when it is called."""
    check_callable(fun, "grad_named")
    names = inspect.getfullargspec(fun).args
    if argname not in names:
        msg = f"grad_named: the function has no argument {argname!r}; its arguments: {', '.join(names) or 'none'}"
        raise ValueError(msg)
    return grad(fun, names.index(argname))


@unary_to_nary
def grad_and_aux(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the gradient of the first of two values of `fun`, and returns the second value unchanged."""
    kept: list[Any] = []

    def first(x: Any) -> Any:
        value, aux = fun(x)
        kept.append(aux)
        return value

    record = Record("grad_and_aux", first, x)
    aux, shared = record.auxiliary_values(kept[0])
    return record.pull_back(_ones(record), last=not shared), aux


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that returns the gradients with respect to all arguments, including defaults, as an ordered dict by name."""
    check_callable(fun, "multigrad_dict")
    signature = inspect.signature(fun)

    def gradfun(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def of_dict(arguments: Any) -> Any:
            call = inspect.BoundArguments(signature, OrderedDict(arguments))
            return fun(*call.args, **call.kwargs)

        found = grad(of_dict)(dict(bound.arguments))
        return OrderedDict((name, found[name]) for name in bound.arguments)

    return gradfun


# -- forward ---------------------------------------------------------------------------------------------------------------


@unary_to_nary
def make_jvp(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that makes ``jvp`` at its arguments; ``jvp(v)`` is the value and its derivative along `v`, in forward mode."""

    def jvp(v: Any) -> Any:
        return push_forward("make_jvp", fun, x, v)

    return jvp


@unary_to_nary
def deriv(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the derivative of `fun` along ones in forward mode: the derivative of a function of one number.

    For complex numbers it is the derivative along 1 + i, as in HIPS autograd; `holomorphic_grad` computes the complex derivative.
    """
    return push_forward("deriv", fun, x, vspace(x).ones())[1]


@unary_to_nary
def make_jvp_reversemode(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that makes ``jvp`` at its arguments, which computes the derivative along a tangent by two reverse passes."""
    back, value = make_vjp(fun)(x)
    nothing = tree_map(np.zeros_like, value)
    # The vjp is linear in its cotangent, so that the transpose of the vjp, at any cotangent, is the jvp.
    return make_vjp(back)(nothing)[0]


# -- second derivatives ----------------------------------------------------------------------------------------------------


@unary_to_nary
def make_hvp(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return a function that computes the pair ``(hvp, gradient)`` at its arguments; ``hvp(v)`` is the Hessian times `v`."""
    return make_vjp(grad(fun))(x)


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function of the arguments of `fun` and a tensor that computes the product of the Hessian and the tensor."""
    _check("hessian_tensor_product", fun, argnum)

    def product(*args: Any, **kwargs: Any) -> Any:
        *rest, tensor = args
        unary, x = _split(fun, argnum, tuple(rest), kwargs)
        return make_hvp(unary)(x)[0](tensor)

    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Return a function of the arguments of `fun` and a tensor that contracts all axes of the tensor with the Jacobian."""
    _check("tensor_jacobian_product", fun, argnum)

    def contracted(*args: Any, **kwargs: Any) -> Any:
        *rest, tensor = args
        return np.tensordot(tensor, fun(*rest, **kwargs), axes=np.ndim(tensor))

    return jacobian(contracted, argnum)


vector_jacobian_product = tensor_jacobian_product


def _half_square(x: Any) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(f: Callable[..., Any], g: Callable[[Any], Any] = _half_square, f_argnum: int = 0) -> Callable[..., Any]:
    """Return a function that makes, at its arguments, a function of `v` that multiplies it by the generalised Gauss-Newton matrix.

    Parameters
    ----------
    f : callable
        The inner function; `f_argnum` is the number of its argument.
    g : callable
        The outer function of the value of `f`, with one number as its value. Default: half the sum of squares.
    """

    def at_point(inner: Callable[[Any], Any], x: Any) -> Any:
        back, value = make_vjp(inner)(x)
        forth = make_jvp_reversemode(inner)(x)
        curvature = make_hvp(g)(value)[0]
        return lambda v: back(curvature(forth(v)))

    at_point.__name__ = "make_ggnvp"
    return unary_to_nary(at_point)(f, f_argnum)


# -- memory ----------------------------------------------------------------------------------------------------------------


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Return `fun` without saved intermediate results, which the backward pass recomputes."""
    check_callable(fun, "checkpoint")

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(leaf, Tensor) for leaf in flatten((args, kwargs))[0]):
            return xpgrad.utils.checkpoint.checkpoint(fun, *args, **kwargs)
        return fun(*args, **kwargs)

    wrapped.__name__, wrapped.__doc__ = getattr(fun, "__name__", "checkpoint"), fun.__doc__
    return wrapped


# -- for operators that programs write themselves: on functions of one argument --------------------------------------------


def _make_vjp(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return ``(vjp, value)`` at `x`; ``vjp(g)`` is the product of `g` and the Jacobian."""
    return make_vjp(fun)(x)


def _make_jvp(fun: Callable[[Any], Any], x: Any) -> Any:
    """Return ``jvp`` at `x`; ``jvp(v)`` is the value and its derivative along `v`."""
    return make_jvp(fun)(x)
