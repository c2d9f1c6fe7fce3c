"""Functions with custom rules, based on `xpgrad.autograd.Function`: `primitive`, `defvjp`, `defjvp` and related functions.

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
from xpgrad._operations.lift import new_tensor
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd.function import Function
from xpgrad.dialects.hips._arrays import ARRAY, np, raw_of
from xpgrad.dialects.hips._records import getval
from xpgrad.dialects.hips._spaces import SparseObject, VSpace, vspace
from xpgrad.func._tree import flatten, tree_map, unflatten

__all__ = [
    "Box", "JVPNode", "SparseObject", "VJPNode", "VSpace", "def_linear", "defjvp", "defjvp_argnum", "defjvp_argnums", "defvjp",
    "defvjp_argnum", "defvjp_argnums", "notrace_primitive", "primitive", "register_notrace", "vspace",
]  # fmt: skip


class VJPNode:
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


class JVPNode:
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


#: The class of the values that replace arrays and numbers while a function is differentiated.
Box = Tensor


# -- the operation ---------------------------------------------------------------------------------------------------------


class _Call:
    """One call of a primitive: the structure of its arguments and of its value."""

    def __init__(self, target: Primitive, structure: Any, kwargs: dict[str, Any]) -> None:
        self.target, self.structure, self.kwargs = target, structure, kwargs
        self.value: Any = None  # the structure of the value

    def argnums(self, needs: Any) -> tuple[int, ...]:
        """Return the positions of the arguments with a marked leaf."""
        flags, out = iter(needs), []
        for number, child in enumerate(self.structure.children):
            marked = [next(flags) for _ in range(_count(child))]
            if any(marked):
                out.append(number)
        return tuple(out)


def _count(structure: Any) -> int:
    return 1 if structure.is_leaf else sum(_count(child) for child in structure.children)


def _wrap(x: Any) -> Any:
    """Convert the array or number that a primitive returned to a Tensor; raise TypeError for anything else."""
    if isinstance(x, Tensor):
        return x
    raw = np.asarray(x)
    if raw.dtype.kind not in "biufc":
        msg = f"a primitive must return arrays and numbers, or tuples, lists and dicts of them, but got {type(x).__name__}"
        raise TypeError(msg)
    return new_tensor(ARRAY, raw)


def _raw(x: Any) -> Any:
    return raw_of(x) if isinstance(x, Tensor) and not x.depth else x


def _conj(x: Any) -> Any:
    return np.conjugate(x) if np.iscomplexobj(x) else x


class _Primitive(Function):
    """The operation of a primitive, with its rules."""

    @staticmethod
    def forward(call: _Call, *leaves: Any) -> tuple[Any, ...]:
        args = unflatten(call.structure, [_raw(x) for x in leaves])
        outs, call.value = flatten(call.target.fun(*args, **call.kwargs))
        return tuple(_wrap(x) for x in outs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.call, *leaves = inputs
        ctx.constants = [None if isinstance(x, Tensor) else x for x in leaves]
        ctx.tensors = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
        ctx.count = len(ctx.tensors)
        ctx.save_for_backward(*(leaves[i] for i in ctx.tensors), *output)
        ctx.save_for_forward(*(leaves[i] for i in ctx.tensors), *output)

    @staticmethod
    def _read(ctx: Any, plain: bool) -> tuple[list[Any], Any]:
        """Return the leaves of the arguments, and the value, as arrays if `plain`, else as Tensors."""
        saved = ctx.saved_tensors
        saved = [_raw(x) for x in saved] if plain else list(saved)
        leaves = list(ctx.constants)
        for i, x in zip(ctx.tensors, saved):
            leaves[i] = x
        return leaves, unflatten(ctx.call.value, saved[ctx.count :])

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> tuple[Any, ...]:
        call = ctx.call
        plain = not state.is_grad_enabled() and not state.carries_tangents() and not any(g is not None and g.depth for g in grad_outputs)
        leaves, ans = _Primitive._read(ctx, plain)
        args = unflatten(call.structure, leaves)
        given = [_raw(g) if plain else g for g in grad_outputs]
        g = unflatten(call.value, [_conj(g) for g in given])
        argnums = call.argnums(ctx.needs_input_grad[1:])
        found = call.target.vjps(argnums, ans, args, call.kwargs)(g)
        out: list[Any] = [None] * len(leaves)
        start = 0
        by_number = dict(zip(argnums, found))
        for number, child in enumerate(call.structure.children):
            count = _count(child)
            if number in by_number:
                part = by_number[number]
                part = part.mut_add(part.vs.zeros()) if isinstance(part, SparseObject) else part
                parts = flatten(part)[0]
                if len(parts) != count:
                    msg = f"{call.target.__name__}: the vjp of argument {number} returned {len(parts)} arrays for an argument of {count}"
                    raise TypeError(msg)
                for i, x in zip(range(start, start + count), parts):
                    if ctx.needs_input_grad[1 + i]:
                        out[i] = _fit_to(_conj(x), leaves[i])
            start += count
        return (None, *out)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        call = ctx.call
        given = tangents[1:]
        involved = [t for t in (*given, *ctx.saved_tensors) if t is not None]
        plain = not state.carries_tangents() and not any(t.requires_grad or t.depth for t in involved)
        leaves, ans = _Primitive._read(ctx, plain)
        args = unflatten(call.structure, leaves)
        argnums = call.argnums([t is not None for t in given])
        filled = [np.zeros_like(x) if t is None else _raw(t) if plain else t for t, x in zip(given, leaves)]
        tangent_args = unflatten(call.structure, filled)
        found = call.target.jvps(argnums, [tangent_args[n] for n in argnums], ans, args, call.kwargs)
        outs = [_fit_to(t, a) for t, a in zip(flatten(found)[0], flatten(ans)[0])]
        return tuple(outs)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        results = []
        for i in range(info.batch_size):
            results.append(_Primitive.apply(*(x if d is None else np.moveaxis(x, d, 0)[i] for x, d in zip(args, in_dims))))
        return tuple(np.stack(parts) for parts in zip(*results)), (0,) * len(results[0])


def _fit_to(x: Any, like: Any) -> Any:
    """Convert a cotangent or tangent from a rule to a Tensor with the shape and dtype of `like`; missing axes are broadcast."""
    x = _wrap(x)
    dtype = np.dtype(like.dtype) if hasattr(like, "dtype") else np.asarray(like).dtype
    if x.dtype.is_complex and dtype.kind != "c":
        x = np.real(x)
    shape = tuple(np.shape(like))
    return np.broadcast_to(x, shape) if x.shape != shape else x


# -- primitives ------------------------------------------------------------------------------------------------------------


class Primitive:
    """A function with custom rules; made by `primitive`."""

    #: All primitives that exist.
    every: ClassVar[weakref.WeakSet[Primitive]] = weakref.WeakSet()

    def __init__(self, fun: Callable[..., Any], differentiable: Callable[..., Any] | None = None) -> None:
        self.fun = fun
        self._differentiable = differentiable  # the same function of Tensors, for as long as no rule is defined
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
        leaves, structure = flatten(args)
        if self._differentiable is not None and self._vjps is None and self._jvps is None:
            traced = any(isinstance(x, Tensor) for x in (*leaves, *kwargs.values()))
            return (self._differentiable if traced else self.fun)(*args, **kwargs)
        if not any(isinstance(x, Tensor) for x in leaves):
            return self.fun(*args, **kwargs)
        if self._untraced:
            tangents = state.carries_tangents()
            if (VJPNode in self._untraced and not tangents) or (JVPNode in self._untraced and tangents):
                return self.fun(*tree_map(getval, args), **kwargs)
        call = _Call(self, structure, kwargs)
        if state.is_grad_enabled() and not state.carries_tangents():
            for number in call.argnums([isinstance(x, Tensor) and x.requires_grad for x in leaves]):
                if self._vjps is None or not self._known(number):
                    raise self._missing("VJP", (number,))
        outs = _Primitive.apply(call, *leaves)
        return unflatten(call.value, outs)

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
    if not isinstance(fun, Primitive):
        msg = f"{name}: {getattr(fun, '__name__', fun)!r} is not a primitive; decorate one with `@primitive`. NumPy's have rules already"
        raise TypeError(msg)
    return fun


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
