"""Functions with custom rules, recorded as `_primitives` says: `primitive`, `defvjp`, `defjvp` and related functions.

The computation of a primitive is not recorded: its function gets NumPy arrays, and may use them freely. Its rules get arrays as well, or
Tensors if they are differentiated again; then they must consist of differentiable operations.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar

from xpgrad._modes import state
from xpgrad._tensor.tensor import Tensor
from xpgrad.dialects.hips._arrays import Box as Box, np
from xpgrad.dialects.hips._primitives import call_primitive
from xpgrad.dialects.hips._records import getval
from xpgrad.dialects.hips._spaces import SparseObject, VSpace, vspace
from xpgrad.func._tree import flatten, tree_map, unflatten

__all__ = [
    "Box", "JVPNode", "SparseObject", "VJPNode", "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp",
    "defvjp_argnum", "defvjp_argnums", "notrace_primitive", "primitive", "register_notrace", "vspace",
]  # fmt: skip


class Node:
    """The base class of the nodes that `tracer.trace` takes; it has no other subclasses."""

    def __init_subclass__(cls) -> None:
        if cls.__module__ != __name__:
            msg = (
                f"{cls.__name__}: nodes of a program's own class are not supported, because NumPy's functions do not make them here; "
                "`xpgrad.compile(f).explain(x)` shows the operations of a function, and `xpgrad.autograd.graph.draw` its graph"
            )
            raise TypeError(msg)


class VJPNode(Node):
    """The beginning or the end of a run in reverse mode, for `tracer.trace`; the class stands for reverse mode in `register_notrace`.

    Attributes
    ----------
    record : Record or None
        Of an end: the run.
    """

    def __init__(self, record: Any = None) -> None:
        self.record = record

    @classmethod
    def new_root(cls) -> VJPNode:
        """Return the beginning of a run."""
        return cls()


class JVPNode(Node):
    """The beginning or the end of a run in forward mode, for `tracer.trace`; the class stands for forward mode in `register_notrace`.

    Attributes
    ----------
    g : object
        The tangent.
    """

    def __init__(self, g: Any = None) -> None:
        self.g = g

    @classmethod
    def new_root(cls, g: Any) -> JVPNode:
        """Return the beginning of a run along the tangent `g`."""
        return cls(g)


# -- primitives ------------------------------------------------------------------------------------------------------------


class Primitive:
    """A function with custom rules; made by `primitive`."""

    #: All primitives that exist.
    every: ClassVar[weakref.WeakSet[Primitive]] = weakref.WeakSet()

    def __init__(self, fun: Callable[..., Any], differentiable: Callable[..., Any] | None = None) -> None:
        self.fun = fun
        self._differentiable = differentiable  # the same function of Tensors, for as long as no rule is defined for the mode
        self.__name__: str = getattr(fun, "__name__", "primitive")
        self.__doc__ = fun.__doc__
        self.__wrapped__ = fun
        self._vjps: Callable[..., Any] | None = None
        self._jvps: Callable[..., Any] | None = None
        self._known: Callable[[int], bool] = lambda argnum: True
        self._untraced: set[type] = set()
        Primitive.every.add(self)

    def __repr__(self) -> str:
        return f"<primitive {self.__name__}>"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind the primitive to an instance, like a function in a class."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._differentiable is not None and (self._jvps if state.carries_tangents() else self._vjps) is None:
            traced = _holds_tensor(args) or any(isinstance(x, Tensor) for x in kwargs.values())
            return (self._differentiable if traced else self.fun)(*args, **kwargs)
        if not _holds_tensor(args):
            return self.fun(*args, **kwargs)
        if self._untraced:
            tangents = state.carries_tangents()
            if (VJPNode in self._untraced and not tangents) or (JVPNode in self._untraced and tangents):
                return self.fun(*tree_map(getval, args), **kwargs)
        return call_primitive(self, args, kwargs)

    @property
    def has_vjp(self) -> bool:
        """Whether a vjp is defined, for some of the arguments at least."""
        return self._vjps is not None

    def check_known(self, argnums: Any) -> None:
        """Raise NotImplementedError if the vjp of one of these arguments is not defined."""
        for number in argnums:
            if self._vjps is None or not self._known(number):
                raise self._missing("VJP", (number,))

    def _missing(self, kind: str, argnums: Any) -> NotImplementedError:
        return NotImplementedError(
            f"{kind} of {self.__name__} wrt argnums {tuple(argnums)} not defined; define it with `def{kind.lower()}({self.__name__}, ...)`"
        )

    def vjps(self, argnums: tuple[int, ...], ans: Any, args: Any, kwargs: Any) -> Any:
        """Return the function that computes the cotangents of the arguments in `argnums` from that of the value `ans`."""
        if self._vjps is None:
            raise self._missing("VJP", argnums)
        return self._vjps(argnums, ans, args, kwargs)

    def jvps(self, argnums: tuple[int, ...], gs: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        """Compute the tangent of the value `ans` from the tangents `gs` of the arguments in `argnums`."""
        if self._jvps is None:
            raise self._missing("JVP", argnums)
        return self._jvps(argnums, gs, ans, args, kwargs)


def _holds_tensor(args: tuple[Any, ...]) -> bool:
    """Return whether an argument is a Tensor, or a container with one."""
    for a in args:
        if isinstance(a, Tensor):
            return True
    return any(isinstance(x, Tensor) for x in flatten(args)[0])


def primitive(f_raw: Callable[..., Any]) -> Any:
    """Decorate a function of arrays and numbers whose derivatives are defined by `defvjp` and `defjvp`.

    It can be differentiated with respect to its positional arguments. Arguments and the value may be tuples, lists and dicts.

    >>> from xpgrad.dialects.hips import grad
    >>> from xpgrad.dialects.hips.extend import defvjp, primitive
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: 3 * x**2 * g)
    >>> float(grad(cube)(2.0))
    12.0
    """
    return f_raw if isinstance(f_raw, Primitive) else Primitive(f_raw)


def notrace_primitive(f_raw: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function whose derivative is zero: it is called with arrays, and its value is a constant."""

    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*tree_map(getval, args), **kwargs)

    f_wrapped.__name__, f_wrapped.__doc__ = getattr(f_raw, "__name__", "f_wrapped"), f_raw.__doc__
    return f_wrapped


def register_notrace(trace_type: type, primitive_fun: Any) -> None:
    """Declare that the value of a primitive is a constant in reverse mode (`VJPNode`) or in forward mode (`JVPNode`)."""
    _require_argument(primitive_fun, "register_notrace")._untraced.add(trace_type)


def _require_argument(fun: Any, name: str) -> Primitive:
    if isinstance(fun, FunctionType) and not fun.__module__.startswith(("numpy", "xpgrad")):
        msg = f"{name}: {fun.__name__!r} is not decorated with `@primitive`, so its rule is not used: its operations are differentiated"
        warnings.warn(msg, UserWarning, stacklevel=3)
        return Primitive(fun)
    if isinstance(fun, Primitive):
        return fun
    if not callable(fun):
        msg = f"{name}: {fun!r} is not a primitive; decorate one with `@primitive`"
        raise TypeError(msg)
    title = getattr(fun, "__name__", fun)
    msg = f"{name}: {title!r} has xpgrad's derivative already, or has none that NumPy could use: your rule is not used"
    warnings.warn(msg, UserWarning, stacklevel=3)
    return Primitive(fun)


# -- reverse ---------------------------------------------------------------------------------------------------------------


def defvjp_argnums(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Define all vjps together: ``vjpmaker(argnums, ans, args, kwargs)`` returns a function from ``g`` to one gradient per argnum."""
    target = _require_argument(fun, "defvjp_argnums")
    target._vjps, target._known = vjpmaker, lambda argnum: True


def defvjp_argnum(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Define the vjps by one function: ``vjpmaker(argnum, ans, args, kwargs)`` returns a function from ``g`` to the gradient."""

    def all_of_them(argnums: tuple[int, ...], ans: Any, args: Any, kwargs: Any) -> Any:
        functions = [vjpmaker(argnum, ans, args, kwargs) for argnum in argnums]
        return lambda g: tuple(f(g) for f in functions)

    defvjp_argnums(_require_argument(fun, "defvjp_argnum"), all_of_them)


def defvjp(fun: Any, *vjpmakers: Callable[..., Any] | None, argnums: Any = None) -> None:
    """Define the vjp of each argument: ``vjpmaker(ans, *args, **kwargs)`` returns a function from ``g`` to the gradient.

    Parameters
    ----------
    fun : primitive
    *vjpmakers : callable or None
        None stands for zeros.
    argnums : iterable of int, optional
        The numbers of the arguments, from 0 on by default.
    """
    makers = dict(zip(range(len(vjpmakers)) if argnums is None else argnums, vjpmakers))

    def all_of_them(numbers: tuple[int, ...], ans: Any, args: Any, kwargs: Any) -> Any:
        functions = []
        for number in numbers:
            maker = makers[number]
            functions.append(_zeros(args[number]) if maker is None else maker(ans, *args, **kwargs))
        return lambda g: tuple(f(g) for f in functions)

    target = _require_argument(fun, "defvjp")
    defvjp_argnums(target, all_of_them)
    target._known = makers.__contains__


def _zeros(x: Any) -> Callable[[Any], Any]:
    return lambda g: tree_map(np.zeros_like, x)


# -- forward ---------------------------------------------------------------------------------------------------------------


def defjvp_argnums(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """Define the jvp of all arguments together: ``jvpmaker(argnums, gs, ans, args, kwargs)`` returns the tangent of the value."""
    _require_argument(fun, "defjvp_argnums")._jvps = jvpmaker


def _sum(parts: list[Any]) -> Any:
    out = parts[0]
    for part in parts[1:]:
        a, structure = flatten(out)
        out = unflatten(structure, [x + y for x, y in zip(a, flatten(part)[0])])
    return out


def defjvp_argnum(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """Define the jvps by one function: ``jvpmaker(argnum, g, ans, args, kwargs)`` returns one argument's contribution to the tangent."""

    def all_of_them(argnums: tuple[int, ...], gs: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        return _sum([jvpmaker(argnum, g, ans, args, kwargs) for argnum, g in zip(argnums, gs)])

    defjvp_argnums(_require_argument(fun, "defjvp_argnum"), all_of_them)


def defjvp(fun: Any, *jvpfuns: Callable[..., Any] | str | None, argnums: Any = None) -> None:
    """Define the jvp of each argument: ``jvpfun(g, ans, *args, **kwargs)`` returns its contribution to the tangent.

    Parameters
    ----------
    fun : primitive
    *jvpfuns : callable, "same" or None
        "same" for an argument in which the function is linear: the function itself is applied to the tangent. None stands for zeros.
    argnums : iterable of int, optional
        The numbers of the arguments, from 0 on by default.
    """
    target = _require_argument(fun, "defjvp")
    known = dict(zip(range(len(jvpfuns)) if argnums is None else argnums, jvpfuns))

    def one(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        if argnum not in known:
            raise target._missing("JVP", (argnum,))
        jvp = known[argnum]
        if jvp is None:
            return tree_map(np.zeros_like, ans)
        if isinstance(jvp, str):
            if jvp != "same":
                msg = f'defjvp: a jvp must be a function, "same" or None, but got {jvp!r:.40}'
                raise TypeError(msg)
            return target(*(g if i == argnum else a for i, a in enumerate(args)), **kwargs)
        return jvp(g, ans, *args, **kwargs)

    defjvp_argnum(target, one)


def def_linear(fun: Any) -> None:
    """Declare that a primitive is linear in each of its arguments, for forward mode."""
    target = _require_argument(fun, "def_linear")

    def one(argnum: int, g: Any, ans: Any, args: Any, kwargs: Any) -> Any:
        return target(*(g if i == argnum else a for i, a in enumerate(args)), **kwargs)

    defjvp_argnum(target, one)
