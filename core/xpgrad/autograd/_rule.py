"""Define custom rules by a forward and a vjp whose parameter names say what it reads.

`custom_rule` turns them into a `Function`, which gives one graph node, higher derivatives, `vmap` and forward mode. For an elementwise
function, whose Jacobian is diagonal, `vmap` and forward mode follow from the vjp: see `_Elementwise`.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, overload

from xpgrad._basics.arguments import as_flag, check_callable, shown
from xpgrad._basics.scalars import is_raw_array
from xpgrad._basics.shapes import common_shape
from xpgrad._modes import state
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd.function import Function, call_function
from xpgrad.rules.creation import astype, full
from xpgrad.rules.elementwise import conj, real
from xpgrad.rules.manipulation import moveaxis, reshape
from xpgrad.rules.reduction import sum as total

P = ParamSpec("P")
R = TypeVar("R")

_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@overload
def custom_rule(forward: Callable[P, R], *, static: str | Iterable[str] | None = None, elementwise: bool = False) -> CustomRule[P, R]: ...


@overload
def custom_rule(
    forward: None = None, *, static: str | Iterable[str] | None = None, elementwise: bool = False
) -> Callable[[Callable[P, R]], CustomRule[P, R]]: ...


def custom_rule(forward: Any = None, *, static: str | Iterable[str] | None = None, elementwise: bool = False) -> Any:
    """Turn a function of Tensors into an operation with its own derivative: a shorter way to write a `Function`.

    xpgrad calls the derivative formulas of an operation its *rule*. This one has a vjp and may have a jvp. Unlike with
    `jax.custom_vjp`, what the formulas read is saved for them.

    Parameters
    ----------
    forward : callable
        A function from Tensors to a Tensor or a tuple of Tensors. It runs unrecorded, and must not write to its operands.
    static : str or iterable of str, optional
        The parameters that are not differentiated, such as numbers, strings or shapes. Default: those that are keyword-only or have a
        default.
    elementwise : bool
        State that each element of a result depends on one element of each operand, as in NumPy's universal functions: operands
        broadcast, and results have the broadcast shape. Then `vmap` calls `forward` once with the whole batch, and forward mode follows
        from the vjp. So a `forward` that passes its arrays to NumPy or SciPy composes with every transform, if its vjp is written
        in functions of Tensors.

    Returns
    -------
    CustomRule
        Call it like `forward`. Its decorators `vjp`, `jvp` and `vmap` take the formulas.

    Raises
    ------
    TypeError
        `forward` has ``*args``, or a parameter with a name that formulas use, such as ``g``. When called: a result is not a Tensor.
    RuntimeError
        When an elementwise rule is called: a result or a gradient does not have the broadcast shape.

    Examples
    --------
    >>> import xpgrad as xp
    >>> @xp.autograd.custom_rule
    ... def softplus(x, *, beta=1.0):
    ...     return xp.log1p(xp.exp(beta * x)) / beta
    >>> @softplus.vjp
    ... def _(g, x, beta):
    ...     return g / (1.0 + xp.exp(-beta * x))
    >>> x = xp.tensor(0.0, requires_grad=True)
    >>> softplus(x).backward()
    >>> x.grad
    tensor(0.5)
    """
    if forward is None:
        return functools.partial(custom_rule, static=static, elementwise=elementwise)
    check_callable(forward, "custom_rule", "forward")
    return (_Elementwise if as_flag(elementwise, "custom_rule", "elementwise") else CustomRule)(forward, static)


class CustomRule(Generic[P, R]):
    """An operation with its own derivative; made by `custom_rule`.

    Attributes
    ----------
    operands, static : tuple of str
        The names of the parameters that are differentiated, and of the others.
    function : type
        The `Function` that implements it.
    """

    def __init__(self, forward: Callable[P, R], static: str | Iterable[str] | None = None) -> None:
        functools.update_wrapper(self, forward)
        self._forward = forward
        self._signature = inspect.signature(forward)
        parameters = self._signature.parameters
        name = self._name = getattr(forward, "__name__", type(forward).__name__)
        unnamed = [str(p) for p in parameters.values() if p.kind not in _NAMED]
        if unnamed:
            msg = f"custom_rule: {name} has the parameter {unnamed[0]}, which formulas cannot name; give it a fixed list of parameters"
            raise TypeError(msg)
        if static is None:
            chosen = {n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY or p.default is not p.empty}
        else:
            given = [static] if isinstance(static, str) else list(static) if isinstance(static, Iterable) else [static]
            if not all(isinstance(n, str) for n in given):
                msg = f"custom_rule: `static` must be a name of a parameter, or several, but got {shown(static)}"
                raise TypeError(msg)
            chosen = set(given)
            if not chosen <= set(parameters):
                msg = f"custom_rule: static={sorted(chosen - set(parameters))} are not parameters of {name}, which has {list(parameters)}"
                raise TypeError(msg)
        self.operands: tuple[str, ...] = tuple(n for n in parameters if n not in chosen)
        self.static: tuple[str, ...] = tuple(n for n in parameters if n in chosen)
        if not self.operands:
            msg = (
                f"custom_rule: {name} has no operand to differentiate: its parameters {list(parameters)} are all static (keyword-only, or "
                "with a default); say which are with `@custom_rule(static=...)`"
            )
            raise TypeError(msg)
        derived = {f"{n}_{k}" for n in (*self.operands, "out") for k in ("shape", "dtype")} | {f"d_{n}" for n in self.operands}
        taken = sorted(set(parameters) & ({"g", "out"} | derived))
        if taken:
            msg = f"custom_rule: {name} has parameters {taken}, but these names are what its formulas read; choose others"
            raise TypeError(msg)
        self._keywords = tuple(n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY)
        self._positional = len(parameters) - len(self._keywords)
        self._roles = tuple((n, n in chosen) for n in parameters)
        self._all_operands = 0 if chosen or self._keywords else len(parameters)  # how many there are if nothing else is taken
        self._vjp: _Formula | None = None
        self._jvp: _Formula | None = None
        self.function: type[Function] = self._make_function()

    def __repr__(self) -> str:
        return f"<custom rule {self._name}{self._signature}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if len(args) == self._all_operands and not kwargs:
            for a in args:
                if not isinstance(a, Tensor) or a.depth:
                    break
            else:  # NB: the common call, in which `apply` would have nothing to do
                mode = state.current()
                if mode is None or mode.profiling is None:
                    return call_function(self.function, args, {}, True, mode)
        return self.function.apply(*self.arguments(*args, **kwargs))

    def vjp(self, formula: Callable[..., Any]) -> CustomRule[P, R]:
        """Set the vector-Jacobian product; a decorator for a function of Tensors.

        Parameters
        ----------
        formula : callable
            Its parameter names say what it reads, and only that is saved: ``g``, the cotangent of the result; operands and static
            arguments by their names; ``out``, the result; ``x_shape`` and ``x_dtype`` of an operand ``x``; ``out_shape`` and
            ``out_dtype``. With several outputs, ``g`` and ``out`` are tuples. It returns the gradient of the operand, or a tuple with
            one gradient per operand; None means zero. A gradient with a shape to which the operand broadcasts is summed.

        Returns
        -------
        CustomRule
            The rule.

        Raises
        ------
        TypeError
            For parameters that it cannot read.
        """
        self._vjp = self._formula(formula, "vjp", {"g"}, "g")
        return self

    def jvp(self, formula: Callable[..., Any]) -> CustomRule[P, R]:
        """Set the Jacobian-vector product, for forward mode; a decorator.

        Parameters
        ----------
        formula : callable
            It may read what a vjp reads, except ``g``, and the tangent ``d_x`` of an operand ``x``: zeros if `x` has no tangent, None if
            it is not a differentiable Tensor. It returns the tangent of the result, or a tuple with one tangent per result.

        Returns
        -------
        CustomRule
            The rule.

        Raises
        ------
        TypeError
            For parameters that it cannot read.
        """
        self._jvp = self._formula(formula, "jvp", {f"d_{n}" for n in self.operands}, None)
        return self

    def vmap(self, formula: Callable[..., Any]) -> CustomRule[P, R]:
        """Set the rule for whole batches that `xpgrad.func.vmap` calls instead of `forward`; a decorator.

        Without it, `forward` runs on elements of the batch in vectorised operations, and cannot pass arrays to another library.

        Parameters
        ----------
        formula : callable
            It takes ``(info, in_dims, *args)``, as `Function.vmap` does: ``info.batch_size``; the batch axis of each argument, None if
            all elements share it; and one argument per parameter of the rule. It returns ``(result, out_dims)``. It is differentiated
            like any function of Tensors, and may call the rule itself.

        Returns
        -------
        CustomRule
            The rule.

        Raises
        ------
        TypeError
            `formula` does not take these arguments.
        """
        check_callable(formula, f"the vmap of {self._name}", "formula")
        expected = ("info", "in_dims", *self._signature.parameters)
        try:
            inspect.signature(formula).bind(*expected)
        except TypeError as error:
            msg = f"the vmap of {self._name} is called with ({', '.join(expected)}), but does not take these arguments: {error}"
            raise TypeError(msg) from error
        self.function.vmap = staticmethod(formula)  # type: ignore[method-assign]
        self.function.generate_vmap_rule = False
        return self

    def arguments(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the arguments of a call in the order of the parameters, as ``function.apply`` takes them.

        Raises
        ------
        TypeError
            The call does not match the signature, an operand is a raw array, or a static argument is a Tensor.
        """
        if kwargs or len(args) != len(self._roles) or self._keywords:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = (*bound.args, *(bound.arguments[n] for n in self._keywords))
        for (n, is_static), a in zip(self._roles, args):
            if isinstance(a, Tensor):
                if is_static:
                    msg = (
                        f"{self._name}: {n!r} is a static argument, but got a Tensor, whose gradient would be lost; make it an operand: "
                        f"name the static ones in `@custom_rule(static=...)`"
                    )
                    raise TypeError(msg)
            elif not is_static and is_raw_array(a):
                msg = f"{self._name}: {n!r} is a raw array of type {type(a).__name__}; wrap it with `xpgrad.asarray({n})`"
                raise TypeError(msg)
        return args

    def _formula(self, formula: Any, kind: str, more: set[str], first: str | None) -> _Formula:
        """Check the names of a formula's parameters, and return the formula with what it reads.

        Parameters
        ----------
        formula : callable
        kind : str
            What the formula is, for messages.
        more : set of str
            Names that it may have besides operands, statics and the output.
        first : str or None
            The name among its parameters in which it is linear.
        """
        parameters = inspect.signature(formula).parameters
        known = {*self.operands, *self.static, "out", *more} | {f"{n}_{k}" for n in (*self.operands, "out") for k in ("shape", "dtype")}
        wrong = [str(p) for n, p in parameters.items() if n not in known or p.kind not in _NAMED[1:]]
        if wrong:
            shown = [*sorted(more), *self.operands, "out", *self.static]
            msg = (
                f"the {kind} of {self._name} has parameters {wrong}, but it can read these only: {', '.join(shown)}, and the `_shape` and "
                "`_dtype` of operands and of out"
            )
            raise TypeError(msg)
        if first is not None and first not in parameters:
            msg = f"the {kind} of {self._name} does not read {first!r}, the gradient of the result, in which it must be linear"
            raise TypeError(msg)
        places = {n: i for i, n in enumerate(self._signature.parameters)} | {"out": _OUT}
        values: list[tuple[str, int, str | None]] = []
        tangents: list[tuple[str, int]] = []
        for n in parameters:
            base, _, part = n.rpartition("_")
            if n in places:
                values.append((n, places[n], None))
            elif part in ("shape", "dtype") and base in places:
                values.append((n, places[base], part))
            elif n.startswith("d_"):
                tangents.append((n, places[n[2:]]))
        return _Formula(formula, tuple(values), tuple(tangents))

    def _make_function(self) -> type[Function]:
        """Make the `Function` that implements this rule."""
        body = {
            "__module__": self._forward.__module__,
            "__doc__": self._forward.__doc__,
            "generate_vmap_rule": True,
            "forward": staticmethod(self._run),
            "setup_context": staticmethod(self._keep),
            "backward": staticmethod(self._gradients),
            "jvp": staticmethod(self._tangents),
        }
        title = "".join(part[:1].upper() + part[1:] for part in self._name.split("_")) or "Rule"
        return type(title, (Function,), body)

    def _run(self, *args: Any) -> Any:
        """Run the user's function: the `forward` of the `Function`."""
        forward: Callable[..., Any] = self._forward
        try:
            if self._keywords:
                out = forward(*args[: self._positional], **dict(zip(self._keywords, args[self._positional :])))
            else:
                out = forward(*args)
        except Exception as error:
            self._explain(error, args)
            raise
        if isinstance(out, Tensor):  # NB: the common case
            for a in args:
                if out is a:
                    break
            else:
                return out
        if isinstance(out, list):
            msg = f"{self._name} returned a list, whose Tensors would not be differentiated; return a tuple"
            raise TypeError(msg)
        return tuple([self._result(o, args) for o in out]) if isinstance(out, tuple) else self._result(out, args)

    def _result(self, out: Any, args: tuple[Any, ...]) -> Any:
        """Return a result of the user's function; an operand, which could not be saved if it were also a result, is copied."""
        if isinstance(out, Tensor):
            return out.clone() if any(out is a for a in args) else out
        if is_raw_array(out):
            msg = f"{self._name} returned a raw array of type {type(out).__name__}, which has no gradient; wrap it: `xpgrad.asarray(...)`"
            raise TypeError(msg)
        return out

    def _explain(self, error: Exception, tensors: tuple[Any, ...]) -> None:
        """Add a note to an error of the user's function that arose inside a batch: how else to write the rule."""
        if any(isinstance(t, Tensor) and t.depth for t in tensors):
            error.add_note(
                f"This happened in the custom rule {self._name} inside of `vmap`, which runs it on elements of a batch. If it needs "
                f"whole arrays, declare what it does with a batch by `@{self._name}.vmap`; or, if it works element by element, make "
                "it with `@custom_rule(elementwise=True)`"
            )

    def _keep(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the values that the formulas read: the `setup_context` of the `Function`."""
        ctx.several = isinstance(output, tuple)
        if False in ctx.needs_input_grad:
            ctx.are_tensors = [isinstance(a, Tensor) for a in inputs]
        vjp = self._vjp
        if vjp is not None:
            tensors, ctx.values = vjp.read(inputs, output)
            ctx.save_for_backward(*tensors)
        if self._jvp is not None:
            tensors, ctx.forward_values = self._jvp.read(inputs, output)
            ctx.save_for_forward(*tensors)

    def _gradients(self, ctx: Any, *grads: Any) -> Any:
        found = self._apply_vjp(ctx, grads)
        if False not in ctx.needs_input_grad:
            return found
        gradients = iter(found)
        given = [None if is_static else next(gradients) for _, is_static in self._roles]
        return tuple([v if is_tensor else None for v, is_tensor in zip(given, ctx.are_tensors)])

    def _apply_vjp(self, ctx: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call the vjp, and check that it returns one gradient per operand."""
        vjp = self._vjp
        if vjp is None:
            msg = f"{self._name} has no vjp, so it cannot be differentiated; declare one with `@{self._name}.vjp`"
            raise NotImplementedError(msg)
        saved = ctx.saved_tensors
        g = grads if ctx.several else grads[0]
        try:
            if vjp.is_positional and ctx.values is vjp.all_saved:
                returned = vjp.function(g, *saved)
            else:
                returned = vjp.function(g=g, **ctx.values.with_saved(saved))
        except Exception as error:
            self._explain(error, (*grads, *saved))
            raise
        given = returned if isinstance(returned, tuple) else (returned,)
        if len(given) != len(self.operands):
            msg = (
                f"the vjp of {self._name} returned {len(given)} gradient{'s' if len(given) != 1 else ''}, but there are "
                f"{len(self.operands)} operands ({', '.join(self.operands)}); return one for each, None for zero, or declare "
                "those that are not Tensors with `@custom_rule(static=...)`"
            )
            raise RuntimeError(msg)
        return given

    def _tangents(self, ctx: Any, *tangents: Any) -> Any:
        if self._jvp is None:
            msg = (
                f"{self._name} has no jvp, so it cannot be differentiated in forward mode; declare one with `@{self._name}.jvp`, or, if it "
                "works element by element, make it with `@custom_rule(elementwise=True)`"
            )
            raise NotImplementedError(msg)
        values = ctx.forward_values.with_saved(ctx.saved_tensors)
        return self._jvp.function(**values, **{n: tangents[place] for n, place in self._jvp.tangents})


class _Elementwise(CustomRule[P, R]):
    """An elementwise rule: under vmap it is called once with aligned axes, and its jvp follows from its vjp.

    The Jacobian is diagonal. Its product with a tangent ``t`` has the real part ``Re(conj(v) t)``, where ``v`` is the vjp of the cotangent
    1, and the imaginary part ``Re(conj(w) t)``, where ``w`` is the vjp of the cotangent i. This holds for complex functions that are not
    holomorphic as well; for real functions it is ``v t``.
    """

    def _make_function(self) -> type[Function]:
        function = super()._make_function()
        function.vmap = staticmethod(self._apply_aligned)  # type: ignore[method-assign]
        function.generate_vmap_rule = False
        return function

    def _apply_aligned(self, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, int]:
        """Apply the rule to a whole batch, with the batch axis in front of the broadcast axes of the elements."""
        rank = max(a.ndim - (d is not None) for a, d in zip(args, in_dims) if isinstance(a, Tensor))
        return self.function.apply(*(a if d is None else _batch_first(a, d, rank) for a, d in zip(args, in_dims))), 0

    def _run(self, *args: Any) -> Any:
        out = super()._run(*args)
        shapes = {n: a.shape for n, a in zip(self._signature.parameters, args) if isinstance(a, Tensor)}
        for o in out if isinstance(out, tuple) else (out,):
            if not isinstance(o, Tensor):
                msg = f"{self._name} returned {type(o).__name__}, but an elementwise rule returns Tensors; wrap it: `xpgrad.asarray(...)`"
                raise TypeError(msg)
            try:
                fits = o.shape == common_shape(*shapes.values())
            except ValueError:
                fits = False
            if not fits:
                msg = (
                    f"{self._name} is declared with `elementwise=True`, but returned the shape {o.shape} for operands of the shapes "
                    f"{', '.join(f'{n} {s}' for n, s in shapes.items())}; its results must have the shape to which its operands broadcast. "
                    "Leave out `elementwise=True` if it does not work element by element"
                )
                raise RuntimeError(msg)
        return out

    def _keep(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        super()._keep(ctx, inputs, output)
        ctx.results = tuple((o.shape, o.dtype, o.device) for o in (output if ctx.several else (output,)))
        if self._jvp is None:
            ctx.save_for_forward(*ctx.saved_tensors)
            ctx.set_materialize_grads(False)  # zeros for a missing tangent would give NaN if the derivative is infinite

    def _gradients(self, ctx: Any, *grads: Any) -> Any:
        if all(g is None for g in grads):
            return (None,) * len(ctx.needs_input_grad)
        return super()._gradients(ctx, *(_constant(0.0, meta) if g is None else g for g, meta in zip(grads, ctx.results)))

    def _apply_vjp(self, ctx: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        found = super()._apply_vjp(ctx, grads)
        shape = ctx.results[0][0]
        for n, v in zip(self.operands, found):
            if v is not None and not (isinstance(v, Tensor) and v.shape == shape):
                what = f"of the shape {v.shape}" if isinstance(v, Tensor) else f"of type {type(v).__name__}"
                msg = (
                    f"the vjp of {self._name}, made with `elementwise=True`, returned for {n} a gradient {what}; return None or "
                    f"a Tensor of the result's shape {shape}, an element for each of `g`: it is summed to the shape of {n} afterwards"
                )
                raise RuntimeError(msg)
        return found

    def _tangents(self, ctx: Any, *tangents: Any) -> Any:
        if self._jvp is not None:
            return super()._tangents(ctx, *tangents)
        by_name = dict(zip(self._signature.parameters, tangents))
        given = [by_name[n] for n in self.operands]
        found = tuple(self._tangent(ctx, k, given) if meta[1].differentiable else None for k, meta in enumerate(ctx.results))
        return found if ctx.several else found[0]

    def _tangent(self, ctx: Any, k: int, tangents: list[Any]) -> Any:
        """Compute the tangent of the k-th result; None if no operand has a tangent."""
        dtype = ctx.results[k][1]
        found = self._part(ctx, k, 1.0, tangents)
        if found is not None and dtype.is_complex:
            found = found + 1j * self._part(ctx, k, 1j, tangents)
        return None if found is None else astype(found, dtype, copy=False)

    def _part(self, ctx: Any, k: int, cotangent: complex, tangents: list[Any]) -> Any:
        """Compute the real part (`cotangent` 1) or the imaginary part (`cotangent` i) of the k-th result's tangent."""
        out = None
        cotangents = tuple(_constant(cotangent if j == k else 0.0, meta) for j, meta in enumerate(ctx.results))
        for v, t in zip(self._apply_vjp(ctx, cotangents), tangents):
            if v is not None and t is not None:
                part = real(conj(v) * t) if v.dtype.is_complex or t.dtype.is_complex else v * t
                out = part if out is None else out + part
        return out


def _constant(value: complex, meta: tuple[Any, ...]) -> Any:
    """Make a Tensor filled with `value` from a shape, a dtype and a device."""
    shape, dtype, device = meta
    return full(shape, value, dtype=dtype, device=device)


def _batch_first(x: Any, axis: int, rank: int) -> Any:
    """Move the batch axis to the front, and give each element `rank` axes by inserting axes of length 1 behind it."""
    x = moveaxis(x, axis, 0)
    return x if x.ndim > rank else reshape(x, (x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:]))


def sum_to_shape(g: Any, shape: tuple[int, ...]) -> Any:
    """Sum a gradient over the axes along which an operand of this shape was broadcast; return other values unchanged."""
    if not isinstance(g, Tensor) or g.shape == shape:
        return g
    lead = g.ndim - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, g.shape[lead:])):
        return g
    axes = (*range(lead), *(lead + k for k, n in enumerate(shape) if n != g.shape[lead + k]))
    return reshape(total(g, axis=axes), shape)


#: The place of the result among the values that a formula reads; the arguments' places count from 0.
_OUT = -1


class _Formula:
    """A formula with what it reads.

    Attributes
    ----------
    function : callable
    values : tuple of (str, int, str or None)
        The name of each parameter for a value, the place of the value, and "shape" or "dtype" if it reads only that.
    tangents : tuple of (str, int)
        The name of each parameter for a tangent, and the place of its operand.
    all_saved : _Values
        What the formula reads if all of it is Tensors.
    pick : callable or None
        Return the values from the arguments and the result; None if the formula reads the shape or the dtype of one.
    is_positional : bool
        Whether the formula takes ``g`` and then its values by position.
    """

    def __init__(
        self, function: Callable[..., Any], values: tuple[tuple[str, int, str | None], ...], tangents: tuple[tuple[str, int], ...]
    ) -> None:
        self.function, self.values, self.tangents = function, values, tangents
        names, places = [n for n, _, _ in values], [place for _, place, _ in values]
        self.all_saved = _Values(names, {})
        self.pick: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None
        if not any(part for _, _, part in values):
            one = slice(places[0], places[0] + 1 or None) if places else slice(0)
            self.pick = operator.itemgetter(*places) if len(places) > 1 else operator.itemgetter(one)
        parameters = inspect.signature(function).parameters
        self.is_positional = list(parameters) == ["g", *names] and all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters.values())

    def read(self, inputs: tuple[Any, ...], output: Any) -> tuple[tuple[Any, ...], _Values]:
        """Return the Tensors to save, and the values by name without these Tensors."""
        if self.pick is not None:
            found = self.pick((*inputs, output))
            for value in found:
                if not isinstance(value, Tensor):
                    break
            else:  # NB: the common case
                return found, self.all_saved
        tensors: list[Any] = []
        names: list[str] = []
        others: dict[str, Any] = {}
        for n, place, part in self.values:
            value = output if place == _OUT else inputs[place]
            if part is not None:
                several = place == _OUT and isinstance(value, tuple)
                others[n] = tuple([getattr(v, part, None) for v in value]) if several else getattr(value, part, None)
            elif isinstance(value, Tensor):
                names.append(n)
                tensors.append(value)
            else:
                others[n] = value
        if isinstance(output, tuple) and "out" in others:
            results: list[Any] = [None if isinstance(v, Tensor) else (v,) for v in output]
            tensors += [v for v in output if isinstance(v, Tensor)]
            others["out"] = results
        return tuple(tensors), _Values(names, others) if others else self.all_saved


class _Values(NamedTuple):
    """What a formula reads, without the Tensors, which the context has saved.

    Attributes
    ----------
    names : list of str
        The names of the first saved Tensors.
    others : dict
        The other values by name. With several results, ``out`` lists None for each result that is saved, after the named Tensors, and
        a tuple of one for any other.
    """

    names: list[str]
    others: dict[str, Any]

    def with_saved(self, saved: tuple[Any, ...]) -> dict[str, Any]:
        """Return all values by name."""
        values = dict(zip(self.names, saved))
        if self.others:
            values |= self.others
            if isinstance(values.get("out"), list):
                results = iter(saved[len(self.names) :])
                values["out"] = tuple([next(results) if v is None else v[0] for v in values["out"]])
        return values
