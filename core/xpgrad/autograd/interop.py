"""Export custom rules to JAX and PyTorch, and functions to SciPy's optimisers.

The module uses only public names of xpgrad; JAX and PyTorch are imported when a function is exported to them.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import xpgrad as xp
from xpgrad._basics.faces import public_names
from xpgrad.autograd._rule import CustomRule, sum_to_shape
from xpgrad.autograd._scipy import ScipyObjective, scipy_objective
from xpgrad.autograd.function import Function, FunctionCtx, once_differentiable

__all__ = ["ScipyObjective", "scipy_objective", "to_jax_custom_vjp", "to_torch_function"]


def __dir__() -> list[str]:
    return public_names(__name__)


def to_jax_custom_vjp(rule: Any) -> Callable[..., Any]:
    """Turn a rule into a function of JAX arrays with the same gradient, for `jax.jit`, `jax.grad`, `jax.vmap` and their compositions.

    JAX differentiates the vjp like any other function, so that second derivatives work. In forward mode (`jax.jvp`) JAX refuses functions
    with a custom vjp.

    Parameters
    ----------
    rule : CustomRule or subclass of Function
        The result of `custom_rule`, or a `Function` with `setup_context`. It is written in functions of xpgrad, without branches on values.

    Returns
    -------
    callable
        It has the signature of the rule: operands are arrays of JAX or NumPy, static arguments any other values.

    Raises
    ------
    ImportError
        JAX is not installed.
    TypeError
        `rule` is something else. When called: a static argument is an array, or a result is not a Tensor.

    Examples
    --------
    >>> import xpgrad as xp
    >>> import jax
    >>> class Square(xp.autograd.Function):
    ...     @staticmethod
    ...     def forward(x):
    ...         return x * x
    ...     @staticmethod
    ...     def setup_context(ctx, inputs, output):
    ...         ctx.save_for_backward(*inputs)
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2.0 * x * g
    >>> square = xp.autograd.interop.to_jax_custom_vjp(Square)
    >>> x = jax.numpy.asarray(3.0)
    >>> float(square(x)), float(jax.grad(square)(x))
    (9.0, 6.0)
    """
    run = _Exported(rule, "to_jax_custom_vjp")
    jax = _library("jax", "pip install 'xpgrad[jax]'")
    numpy_array = _library("numpy", "pip install numpy").ndarray

    def is_array(a: Any) -> bool:
        return isinstance(a, (jax.Array, numpy_array))

    def exported(*args: Any, **kwargs: Any) -> Any:
        call = _JaxCall(jax, run, run.arguments(is_array, *args, **kwargs), is_array)
        if not call.places:
            return call.primal()
        function = jax.custom_vjp(call.primal)
        function.defvjp(call.forward, call.backward)
        return function(*(call.flat[i] for i in call.places))

    return run.name_like_rule(exported)


class _JaxCall:
    """One call of a rule in JAX: the primal, forward and backward functions of a `jax.custom_vjp` over the array arguments.

    Attributes
    ----------
    flat : tuple
        One argument per parameter.
    places : list of int
        The positions of the arrays among them.
    """

    def __init__(self, jax: Any, run: _Exported, flat: tuple[Any, ...], is_array: Callable[[Any], bool]) -> None:
        self.jax, self.run, self.flat, self.is_array = jax, run, flat, is_array
        self.places = [i for i, a in enumerate(flat) if is_array(a)]

    def primal(self, *arrays: Any) -> Any:
        """Compute the results."""
        outs, several, _ = self.run.forward(self._tensors(arrays))
        return _raw(outs, several)

    def forward(self, *arrays: Any) -> tuple[Any, Any]:
        """Compute the results and the residuals: arrays, and a `_Static` for everything else."""
        given = self._tensors(arrays)
        outs, several, ctx = self.run.forward(given)
        leaves, structure = self.jax.tree_util.tree_flatten((list(ctx.saved_tensors), ctx.attributes()))
        kept = [self.is_array(leaf) for leaf in leaves]
        metas = [(given[i].shape, given[i].dtype) for i in self.places]
        cotangents = [(o.shape, o.dtype, o.device, k in ctx.without_gradient) for k, o in enumerate(outs)]
        rest = _Static((structure, kept, [None if k else x for k, x in zip(kept, leaves)], metas, cotangents))
        return _raw(outs, several), self.jax.tree_util.Partial(rest, *(x for k, x in zip(kept, leaves) if k))

    def backward(self, residual: Any, g: Any) -> tuple[Any, ...]:
        """Compute the cotangent of each array."""
        structure, kept, others, metas, cotangents = residual.func.what
        arrays = iter(residual.args)
        leaves = [next(arrays) if k else x for k, x in zip(kept, others)]
        saved, attributes = self.jax.tree_util.tree_unflatten(structure, leaves)
        grads = []
        for v, (shape, dtype, device, dropped) in zip(g if isinstance(g, tuple) else (g,), cotangents):
            # JAX has special cotangents for integers, and its complex cotangents are the conjugates of PyTorch's.
            grads.append(xp.zeros(shape, dtype=dtype, device=device) if dropped else xp.conj(xp.asarray(v)))
        needs = tuple(i in self.places for i in range(len(self.flat)))
        with xp.no_grad():
            found = self.run.backward(saved, attributes, grads, needs)
            fitted = [_fit_gradient(found[i], *meta) for i, meta in zip(self.places, metas)]
            return tuple(None if v is None else xp.conj(v).array for v in fitted)

    def _tensors(self, arrays: Any) -> list[Any]:
        """Return the arguments, with the arrays wrapped as Tensors."""
        full = list(self.flat)
        for i, a in zip(self.places, arrays):
            full[i] = xp.asarray(self.jax.numpy.asarray(a))
        return full


def _raw(outs: tuple[Any, ...], several: bool) -> Any:
    """Return the raw arrays of the results: a tuple if there are several."""
    arrays = tuple(o.array for o in outs)
    return arrays if several else arrays[0]


def to_torch_function(rule: Any) -> Callable[..., Any]:
    """Turn a rule into a function of PyTorch tensors, with the same gradient to any order in PyTorch's autograd.

    Higher derivatives come from recording the rule's backward; a backward with `once_differentiable` stays differentiable once. The
    xpgrad-torch plugin takes the tensors if it is installed. Without it they must be on the CPU, and share their memory with NumPy arrays.

    Parameters
    ----------
    rule : CustomRule or subclass of Function
        The result of `custom_rule`, or a `Function` with `setup_context`.

    Returns
    -------
    callable
        It has the signature of the rule: operands are tensors, static arguments any other values.

    Raises
    ------
    ImportError
        PyTorch is not installed.
    TypeError
        `rule` is something else. When called: a static argument is a tensor, a result is not a Tensor, or, without the plugin, a tensor
        is not on the CPU.

    Examples
    --------
    >>> import xpgrad as xp
    >>> import torch
    >>> class Square(xp.autograd.Function):
    ...     @staticmethod
    ...     def forward(x):
    ...         return x * x
    ...     @staticmethod
    ...     def setup_context(ctx, inputs, output):
    ...         ctx.save_for_backward(*inputs)
    ...     @staticmethod
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 2.0 * x * g
    >>> square = xp.autograd.interop.to_torch_function(Square)
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> square(x).backward()
    >>> x.grad
    tensor(6.)
    """
    run = _Exported(rule, "to_torch_function")
    torch = _library("torch", "pip install torch")
    function = _rule_in_torch(torch, run)

    def is_array(a: Any) -> bool:
        return isinstance(a, torch.Tensor)

    def exported(*args: Any, **kwargs: Any) -> Any:
        flat = run.arguments(is_array, *args, **kwargs)
        places = [i for i, a in enumerate(flat) if is_array(a)]
        return function.apply([None if i in places else a for i, a in enumerate(flat)], places, *(flat[i] for i in places))

    return run.name_like_rule(exported)


def _rule_in_torch(torch: Any, run: _Exported) -> Any:
    """Make the PyTorch Function of a rule; `torch` is the module."""
    once = _differentiates_once(run.function)
    differentiable, barred = _differentiable_in_torch(torch), _barred_in_torch(torch, run.name)

    class Exported(torch.autograd.Function):  # type: ignore[misc]
        """The PyTorch Function of the rule; its forward saves the values that the rule saves in xpgrad."""

        @staticmethod
        def forward(ctx: Any, flat: Any, places: Any, *given: Any) -> Any:
            args = list(flat)
            for i, t in zip(places, given):
                args[i] = _from_torch(t)
            outs, several, xctx = run.forward(args)
            known = {id(args[i]): t for i, t in zip(places, given)}
            results = []
            for o in outs:
                t = known.get(id(o))
                if t is None:
                    t = known[id(o)] = _fresh(_to_torch(torch, o), given)
                results.append(t)
            saved = xctx.saved_tensors
            ctx.save_for_backward(*(known[id(s)] if id(s) in known else None if s is None else _to_torch(torch, s) for s in saved))
            ctx.mark_non_differentiable(*(results[k] for k in xctx.without_gradient))
            ctx.attributes, ctx.places, ctx.count = xctx.attributes(), places, len(flat)
            ctx.metas = [(args[i].shape, args[i].dtype) for i in places]
            return tuple(results) if several else results[0]

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            saved, places = ctx.saved_tensors, ctx.places
            kept = [k for k, s in enumerate(saved) if s is not None]
            needs = tuple(i in places and ctx.needs_input_grad[2 + places.index(i)] for i in range(ctx.count))
            gradients = functools.partial(_gradients, run, ctx.attributes, places, ctx.metas, needs, len(saved), kept)
            origins = (*(saved[k] for k in kept), *grads)
            if not (once and torch.is_grad_enabled()):
                return None, None, *differentiable.apply(gradients, *origins)
            with torch.no_grad():
                found = differentiable.apply(gradients, *origins)
            passed = iter(barred.apply(sum(v is not None for v in found), *(v for v in found if v is not None), *origins))
            return None, None, *(None if v is None else next(passed) for v in found)

    return Exported


def _gradients(
    run: _Exported, attributes: Any, places: Any, metas: Any, needs: tuple[bool, ...], count: int, kept: list[int], *values: Any
) -> list[Any]:
    """Run the backward of a rule as a function of Tensors, and return the gradients of the Tensor arguments.

    Parameters
    ----------
    run : _Exported
    attributes : dict
        The attributes of `ctx`.
    places, metas : sequence
        The positions of the Tensor arguments, and their shapes and dtypes.
    needs : tuple of bool
        Which arguments get a gradient.
    count : int
        The number of saved values.
    kept : list of int
        The positions of those that are not None.
    *values : Tensor
        The saved values at these positions, then the cotangents.
    """
    saved: list[Any] = [None] * count
    for k, v in zip(kept, values):
        saved[k] = v
    found = run.backward(saved, attributes, list(values[len(kept) :]), needs)
    return [_fit_gradient(found[i], *meta) if needs[i] else None for i, meta in zip(places, metas)]


def _differentiable_in_torch(torch: Any) -> Any:
    """Make the PyTorch Function that applies a function of Tensors, with xpgrad's derivatives."""

    class Differentiable(torch.autograd.Function):  # type: ignore[misc]
        """A function of xpgrad Tensors with xpgrad's derivatives to any order; its results may include None."""

        @staticmethod
        def forward(ctx: Any, function: Any, *given: Any) -> Any:
            ctx.function = function
            ctx.save_for_backward(*given)
            with xp.no_grad():
                outs = function(*(_from_torch(t) for t in given))
            return tuple(None if o is None else _fresh(_to_torch(torch, o), given) for o in outs)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            given = ctx.saved_tensors
            defined = [k for k, g in enumerate(grads) if g is not None]
            pullback = functools.partial(_pullback, ctx.function, len(given), defined)
            return None, *Differentiable.apply(pullback, *given, *(grads[k] for k in defined))

    return Differentiable


def _pullback(function: Any, count: int, defined: list[int], *values: Any) -> list[Any]:
    """Compute the gradients of a function from its `count` arguments and the cotangents of the results in `defined`."""
    xs, gs = list(values[:count]), dict(zip(defined, values[count:]))
    with xp.enable_grad():
        xs = [x if x.requires_grad or not _differentiable(x) else x.detach().requires_grad_() for x in xs]
        outs = function(*xs)
        roots = [k for k in gs if outs[k] is not None and outs[k].requires_grad]
        wanted = [i for i, x in enumerate(xs) if x.requires_grad]
        found: list[Any] = [None] * count
        if roots and wanted:
            seeds, inputs = [gs[k] for k in roots], [xs[i] for i in wanted]
            grads = xp.autograd.grad([outs[k] for k in roots], inputs, seeds, create_graph=True, allow_unused=True)
            for i, g in zip(wanted, grads):
                found[i] = g
    return found


def _barred_in_torch(torch: Any, name: str) -> Any:
    """Make the PyTorch Function that returns gradients which cannot be differentiated."""

    class Barred(torch.autograd.Function):  # type: ignore[misc]
        """Gradients that raise when differentiated. PyTorch's own decorator misses their dependence on saved values."""

        @staticmethod
        def forward(ctx: Any, count: int, *given: Any) -> Any:
            return tuple(t.clone() for t in given[:count])

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            msg = f"trying to differentiate twice {name}, whose backward was marked with @once_differentiable"
            raise RuntimeError(msg)

    return Barred


class _Ctx(FunctionCtx):
    """A `ctx` outside the graph that records what `setup_context` declares."""

    def __init__(self) -> None:
        self.marked: tuple[Any, ...] = ()
        self.without_gradient: list[int] = []

    def mark_non_differentiable(self, *args: Any) -> None:
        self.marked = args

    def mark_dirty(self, *args: Any) -> None:
        msg = "a Function that overwrites its inputs cannot be exported: other libraries do not know of the write"
        raise RuntimeError(msg)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that the Function stored on it."""
        own = {*vars(FunctionCtx), *vars(_Ctx()), "needs_input_grad"}
        return {n: v for n, v in vars(self).items() if n not in own}


class _Exported:
    """A rule split into a forward that returns what it saves, and a backward."""

    def __init__(self, rule: Any, name: str) -> None:
        if isinstance(rule, CustomRule):
            self.rule: CustomRule[..., Any] | None = rule
            self.function: Any = rule.function
            self.signature = inspect.signature(rule)
        elif isinstance(rule, type) and issubclass(rule, Function) and rule.setup_context is not Function.setup_context:
            self.rule, self.function, self.signature = None, rule, inspect.signature(rule.forward)
        else:
            shown = rule.__name__ if isinstance(rule, type) else type(rule).__name__
            msg = f"{name} expects a rule from `xpgrad.autograd.custom_rule`, or a Function with `setup_context`, but got {shown}"
            raise TypeError(msg)
        self.given = rule
        self.name = getattr(rule, "__name__", self.function.__name__)

    def name_like_rule(self, function: Any) -> Callable[..., Any]:
        """Give a function the name, docstring and signature of the rule, and return it."""
        function.__name__ = function.__qualname__ = self.name
        function.__doc__ = self.given.__doc__
        function.__signature__ = self.signature
        return function

    def arguments(self, is_array: Callable[[Any], bool], *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return one argument per parameter."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        if self.rule is None:
            return bound.args
        for n in self.rule.static:
            if is_array(bound.arguments[n]):
                msg = f"{self.name}: {n!r} is a static argument, but got an array of type {type(bound.arguments[n]).__name__}"
                raise TypeError(msg)
        return tuple(bound.arguments[n] for n in self.signature.parameters)

    def forward(self, args: list[Any]) -> tuple[tuple[Any, ...], bool, _Ctx]:
        """Run the forward; return its outputs as a tuple, whether it returned a tuple, and the `ctx`."""
        ctx = _Ctx()
        ctx.needs_input_grad = tuple(isinstance(a, xp.Tensor) and _differentiable(a) for a in args)
        with xp.no_grad():
            result = self.function.forward(*args)
            self.function.setup_context(ctx, tuple(args), result)
        several = isinstance(result, tuple)
        outs = result if several else (result,)
        for o in outs:
            if not isinstance(o, xp.Tensor):
                msg = f"{self.name} returned {type(o).__name__}; an exported function must return a Tensor, or a tuple of Tensors"
                raise TypeError(msg)
        ctx.without_gradient = [k for k, o in enumerate(outs) if not _differentiable(o) or any(o is m for m in ctx.marked)]
        return outs, several, ctx

    def backward(self, saved: Any, attributes: dict[str, Any], grads: list[Any], needs: tuple[bool, ...]) -> list[Any]:
        """Run the backward; return one gradient or None per argument."""
        ctx = _Ctx()
        vars(ctx).update(attributes)
        ctx.needs_input_grad = needs
        ctx.save_for_backward(*saved)
        backward = self.function.user_backward()
        returned = backward(ctx, grads) if self.function.boxed_grads_call else backward(ctx, *grads)
        found = list(returned) if isinstance(returned, tuple) else [returned]
        if len(found) < len(needs) or any(v is not None for v in found[len(needs) :]):
            msg = f"the backward of {self.name} returned {len(found)} gradients for {len(needs)} arguments; return one for each"
            raise RuntimeError(msg)
        return found


class _Static:
    """The residual values that are not arrays; JAX carries them as the function of a `Partial`."""

    def __init__(self, what: tuple[Any, ...]) -> None:
        self.what = what

    def __call__(self) -> None:
        """Do nothing: a `Partial` needs a callable, which JAX never calls."""


def _library(name: str, command: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        msg = f"this needs {name}, which cannot be imported ({exc}); install it with `{command}`"
        raise ImportError(msg) from exc


def _differentiable(x: Any) -> bool:
    return xp.isdtype(x.dtype, ("real floating", "complex floating"))


def _differentiates_once(function: Any) -> bool:
    return function.user_backward().__code__ is once_differentiable(_differentiates_once).__code__


def _fit_gradient(g: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Bring a gradient to the shape and dtype of its operand; None for an operand without a derivative."""
    if g is None or not xp.isdtype(dtype, ("real floating", "complex floating")):
        return None
    g = sum_to_shape(g, shape)
    if g.shape != shape:
        msg = (
            f"a gradient of shape {g.shape} was returned for an operand of shape {shape}; return one that the operand's shape broadcasts to"
        )
        raise RuntimeError(msg)
    if xp.isdtype(g.dtype, "complex floating") and not xp.isdtype(dtype, "complex floating"):
        msg = f"the gradient of a {dtype} operand is {g.dtype}; return `xpgrad.real(...)` of it"
        raise RuntimeError(msg)
    return g if g.dtype is dtype else xp.astype(g, dtype)


def _from_torch(t: Any) -> Any:
    t = t.detach().resolve_conj().resolve_neg()
    if "torch" in xp.backend_names():
        return xp.asarray(t)
    if t.device.type != "cpu":
        msg = f"a tensor on {t.device} needs xpgrad's plugin for PyTorch; install it with `pip install xpgrad-torch`, or move it to the CPU"
        raise TypeError(msg)
    return xp.asarray(t.numpy(), device="numpy")


def _to_torch(torch: Any, x: Any) -> Any:
    x = x.detach()
    if isinstance(x.array, torch.Tensor):
        return x.array
    array = x.numpy()
    return torch.from_numpy(array) if array.flags.writeable else torch.tensor(array)


def _fresh(t: Any, given: Any) -> Any:
    """Return a result, copied if it shares memory with an operand: PyTorch does not track views that xpgrad made."""

    def span(x: Any) -> tuple[int, int]:
        storage = x.untyped_storage()
        return storage.data_ptr(), storage.data_ptr() + storage.nbytes()

    start, end = span(t)
    return t.clone() if any(start < e and s < end for s, e in map(span, given)) else t
