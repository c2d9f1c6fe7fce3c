"""Custom rules the short way: a forward, and a vjp whose parameters' names say what it reads.

`custom_rule` turns them into a `Function`, with all that those promise: one node, higher orders, `vmap`, forward mode. Of a function that
works element by element the last two follow from its vjp, since its Jacobian is diagonal; see `_Elementwise`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Generic, ParamSpec, TypeVar, overload

from xpgrad._basics.arguments import as_flag, check_callable, shown
from xpgrad._basics.scalars import is_raw_array
from xpgrad._basics.shapes import common_shape
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd.function import Function
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
    """Turn a function of Tensors into an operation with a gradient of its own: the short way to a `Function`.

    A *rule* is what xpgrad calls the gradient formulas of an operation, whatever they are; this one has a vjp and may have a jvp. It is
    not a `jax.custom_vjp`, whose residuals are packed and unpacked by hand.

    Parameters
    ----------
    forward : callable
        From Tensors to a Tensor or a tuple of Tensors. It runs unrecorded, and must not write to its operands.
    static : str or iterable of str, optional
        The parameters that are not operands: numbers, strings, shapes. Default: those that are keyword-only or have a default.
    elementwise : bool
        Each element of a result depends on one element of each operand, as in NumPy's universal functions: operands broadcast, and
        results have the shape to which they do. So `vmap` calls `forward` once, with whole batches whose axes are aligned, and
        forward mode needs no formula: both follow from the vjp. A `forward` that hands its arrays to NumPy or SciPy thereby composes
        with every transform; its vjp is written in functions of Tensors and of other rules.

    Returns
    -------
    CustomRule
        Call it like `forward`. Its decorators `vjp`, `jvp` and `vmap` take the formulas.

    Raises
    ------
    TypeError
        For a `forward` whose parameters cannot be named one by one, or have the names of what formulas read. When called: for results
        that are not Tensors.
    RuntimeError
        When an elementwise rule is called: for results and gradients of another shape than that to which the operands broadcast.

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
    """An operation with a gradient of its own; made by `custom_rule`.

    Attributes
    ----------
    operands, static : tuple of str
        The names of the parameters that are differentiated, and of the others.
    function : type
        The `Function` behind it.
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
        self._vjp: tuple[Callable[..., Any], tuple[str, ...]] | None = None
        self._jvp: tuple[Callable[..., Any], tuple[str, ...]] | None = None
        self.function: type[Function] = self._made()

    def __repr__(self) -> str:
        return f"<custom rule {self._name}{self._signature}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function.apply(*self.arguments(*args, **kwargs))

    def vjp(self, formula: Callable[..., Any]) -> CustomRule[P, R]:
        """Decorate the vector-Jacobian product, written in functions of Tensors.

        Parameters
        ----------
        formula : callable
            Its parameters are what it reads, and nothing else is saved: ``g``, the gradient of the result; operands and static arguments
            by their names; ``out``, the result; ``x_shape`` and ``x_dtype`` of an operand ``x``, ``out_shape`` and ``out_dtype``. With
            several outputs, ``g`` and ``out`` are tuples. It returns the gradient of the operand, or a tuple with one for each;
            None means zero. Gradients may have a shape to which the operand broadcasts: they are summed.

        Returns
        -------
        CustomRule
            The rule.

        Raises
        ------
        TypeError
            For parameters that it cannot read.
        """
        self._vjp = formula, self._reads(formula, "vjp", {"g"}, "g")
        return self

    def jvp(self, formula: Callable[..., Any]) -> CustomRule[P, R]:
        """Decorate the Jacobian-vector product, for forward mode.

        Parameters
        ----------
        formula : callable
            It reads what a vjp reads, except ``g``, and for an operand ``x`` its tangent ``d_x``: zeros where it has none, None where the
            operand is not a Tensor with a derivative. It returns the tangent of the result, or a tuple with one for each result.

        Returns
        -------
        CustomRule
            The rule.

        Raises
        ------
        TypeError
            For parameters that it cannot read.
        """
        tangents = {f"d_{n}" for n in self.operands}
        self._jvp = formula, self._reads(formula, "jvp", tangents, None)
        return self

    def vmap(self, formula: Callable[..., Any]) -> CustomRule[P, R]:
        """Decorate what `xpgrad.func.vmap` calls with whole batches, in place of `forward` with elements of them.

        Without it `forward` runs inside of the batch, where its operations are vectorised; it cannot hand arrays to another library there.

        Parameters
        ----------
        formula : callable
            It takes ``(info, in_dims, *args)``, as `Function.vmap` does: ``info.batch_size``, where the batch's axis is in each argument
            (None where all elements share it), and the arguments, one for each parameter of the rule in their order. It returns
            ``(result, out_dims)``, and is differentiated like any function of Tensors: it may call the rule itself.

        Returns
        -------
        CustomRule
            The rule.

        Raises
        ------
        TypeError
            For a formula that does not take these arguments.
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
        """The arguments of a call, one per parameter, in their order: what ``function.apply`` takes.

        Raises
        ------
        TypeError
            If the call does not fit the signature, an operand is a raw array, or a static argument a Tensor.
        """
        if kwargs or len(args) != len(self._signature.parameters) or self._keywords:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            args = (*bound.args, *(bound.arguments[n] for n in self._keywords))
        for n, a in zip(self._signature.parameters, args):
            if isinstance(a, Tensor):
                if n in self.static:
                    msg = (
                        f"{self._name}: {n!r} is a static argument, but got a Tensor, whose gradient would be lost; make it an operand: "
                        f"name the static ones in `@custom_rule(static=...)`"
                    )
                    raise TypeError(msg)
            elif n in self.operands and is_raw_array(a):
                msg = f"{self._name}: {n!r} is a raw array of type {type(a).__name__}; wrap it with `xpgrad.asarray({n})`"
                raise TypeError(msg)
        return args

    def _reads(self, formula: Any, kind: str, more: set[str], first: str | None) -> tuple[str, ...]:
        """The names of a formula's parameters, checked."""
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
        return tuple(parameters)

    def _made(self) -> type[Function]:
        """The `Function` behind this rule."""

        def forward(*args: Any) -> Any:
            return self._run(*args)

        forward.__signature__ = inspect.signature(forward)  # type: ignore[attr-defined]  # found at once by `Function.apply`
        body = {
            "__module__": self._forward.__module__,
            "__doc__": self._forward.__doc__,
            "generate_vmap_rule": True,
            "forward": staticmethod(forward),
            "setup_context": staticmethod(self._keep),
            "backward": staticmethod(self._gradients),
            "jvp": staticmethod(self._tangents),
        }
        title = "".join(part[:1].upper() + part[1:] for part in self._name.split("_")) or "Rule"
        return type(title, (Function,), body)

    def _run(self, *args: Any) -> Any:
        out: Any = self._called(args, self._forward, *args[: self._positional], **dict(zip(self._keywords, args[self._positional :])))
        if isinstance(out, list):
            msg = f"{self._name} returned a list, whose Tensors would not be differentiated; return a tuple"
            raise TypeError(msg)
        for o in out if isinstance(out, tuple) else (out,):
            if is_raw_array(o) and not isinstance(o, Tensor):
                msg = f"{self._name} returned a raw array of type {type(o).__name__}, which has no gradient; wrap it: `xpgrad.asarray(...)`"
                raise TypeError(msg)
        # NB: an operand that is returned as it is cannot be saved as well.
        if isinstance(out, tuple):
            return tuple(o.clone() if isinstance(o, Tensor) and any(o is a for a in args) else o for o in out)
        return out.clone() if isinstance(out, Tensor) and any(out is a for a in args) else out

    def _called(self, tensors: tuple[Any, ...], formula: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call what the user wrote; an error inside of a batch says what else it could be written as."""
        try:
            return formula(*args, **kwargs)
        except Exception as error:
            if any(isinstance(t, Tensor) and t.depth for t in tensors):
                error.add_note(
                    f"This happened in the custom rule {self._name} inside of `vmap`, which runs it on elements of a batch. If it needs "
                    f"whole arrays, declare what it does with a batch by `@{self._name}.vmap`; or, if it works element by element, make "
                    "it with `@custom_rule(elementwise=True)`"
                )
            raise

    def _keep(self, ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what the formulas read."""
        args = dict(zip(self._signature.parameters, inputs))
        ctx.several = isinstance(output, tuple)
        ctx.shapes = tuple(a.shape if isinstance(a, Tensor) else None for a in args.values())
        reads = () if self._vjp is None else self._vjp[1]
        found, ctx.recipe = self._saved(reads, args, output)
        ctx.save_for_backward(*found)
        if self._jvp is not None:
            found, ctx.forward_recipe = self._saved(self._jvp[1], args, output)
            ctx.save_for_forward(*found)

    def _saved(self, reads: tuple[str, ...], args: dict[str, Any], output: Any) -> tuple[list[Any], dict[str, Any]]:
        """The Tensors to save, and by name how many of them a value consists of, or the value itself."""
        tensors: list[Any] = []
        recipe: dict[str, Any] = {}
        for n in reads:
            base, _, kind = n.rpartition("_")
            if n in args or n == "out":
                value = args.get(n, output)
                items = value if n == "out" and isinstance(value, tuple) else (value,)
                if any(isinstance(item, Tensor) for item in items):
                    places = []
                    for item in items:
                        places.append((True, len(tensors)) if isinstance(item, Tensor) else (False, item))
                        tensors += [item] if isinstance(item, Tensor) else []
                    recipe[n] = ("tuple" if items is value else "tensor", places)
                else:
                    recipe[n] = ("value", value)
            elif kind in ("shape", "dtype") and (base in args or base == "out"):
                value = args.get(base, output)
                several = base == "out" and isinstance(value, tuple)
                recipe[n] = ("value", tuple(getattr(v, kind, None) for v in value) if several else getattr(value, kind, None))
        return tensors, recipe

    def _gradients(self, ctx: Any, *grads: Any) -> Any:
        by_name = dict(zip(self.operands, self._pulled(ctx, grads)))
        return tuple(None if s is None else summed_to(by_name.get(n), s) for n, s in zip(self._signature.parameters, ctx.shapes))

    def _pulled(self, ctx: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        """The vjp: what it returns for each operand, checked."""
        if self._vjp is None:
            msg = f"{self._name} has no vjp, so it cannot be differentiated; declare one with `@{self._name}.vjp`"
            raise NotImplementedError(msg)
        values = _values(ctx.recipe, ctx.saved_tensors)
        values["g"] = grads if ctx.several else grads[0]
        returned = self._called((*grads, *ctx.saved_tensors), self._vjp[0], **values)
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
        formula, reads = self._jvp
        values = _values(ctx.forward_recipe, ctx.saved_tensors)
        given = {f"d_{n}": t for n, t in zip(self._signature.parameters, tangents)}
        return formula(**values, **{n: given[n] for n in reads if n in given})


class _Elementwise(CustomRule[P, R]):
    """A rule that works element by element: its vmap is a call with aligned axes, and its jvp follows from its vjp.

    The Jacobian is diagonal, real-linear over the real numbers: its product with a tangent ``t`` has the real part ``Re(conj(v) t)``, where
    ``v`` is the vjp of the cotangent 1, and the imaginary part ``Re(conj(w) t)``, where ``w`` is that of the cotangent i. This holds for
    complex functions whether they are holomorphic or not; for real ones it is ``v t``.
    """

    def _made(self) -> type[Function]:
        function = super()._made()
        function.vmap = staticmethod(self._aligned)  # type: ignore[method-assign]
        function.generate_vmap_rule = False
        return function

    def _aligned(self, info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, int]:
        """The results for a whole batch, whose axis comes in front of those that the elements broadcast to."""
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
            ctx.set_materialize_grads(False)  # in forward mode zeros for what has no tangent would be NaN beside an infinite derivative

    def _gradients(self, ctx: Any, *grads: Any) -> Any:
        if all(g is None for g in grads):
            return (None,) * len(ctx.shapes)
        return super()._gradients(ctx, *(_filled(0.0, meta) if g is None else g for g, meta in zip(grads, ctx.results)))

    def _pulled(self, ctx: Any, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        found = super()._pulled(ctx, grads)
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
        """The tangent of the k-th result; None where no operand has one."""
        dtype = ctx.results[k][1]
        found = self._part(ctx, k, 1.0, tangents)
        if found is not None and dtype.is_complex:
            found = found + 1j * self._part(ctx, k, 1j, tangents)
        return None if found is None else astype(found, dtype, copy=False)

    def _part(self, ctx: Any, k: int, cotangent: complex, tangents: list[Any]) -> Any:
        """The real part of the k-th result's tangent, or the imaginary part, by the cotangent 1 or i."""
        out = None
        cotangents = tuple(_filled(cotangent if j == k else 0.0, meta) for j, meta in enumerate(ctx.results))
        for v, t in zip(self._pulled(ctx, cotangents), tangents):
            if v is not None and t is not None:
                along = real(conj(v) * t) if v.dtype.is_complex or t.dtype.is_complex else v * t
                out = along if out is None else out + along
        return out


def _filled(value: complex, meta: tuple[Any, ...]) -> Any:
    """A Tensor of one value, by its shape, dtype and device."""
    shape, dtype, device = meta
    return full(shape, value, dtype=dtype, device=device)


def _batch_first(x: Any, axis: int, rank: int) -> Any:
    """A batch of which each element has `rank` axes, the missing ones in front of length 1, with the batch's axis before them."""
    x = moveaxis(x, axis, 0)
    return x if x.ndim > rank else reshape(x, (x.shape[0], *(1,) * (rank + 1 - x.ndim), *x.shape[1:]))


def summed_to(g: Any, shape: tuple[int, ...]) -> Any:
    """A gradient summed over the axes along which an operand of this shape was broadcast; others are returned as they are."""
    if not isinstance(g, Tensor) or g.shape == shape:
        return g
    lead = g.ndim - len(shape)
    if lead < 0 or any(n not in (1, m) for n, m in zip(shape, g.shape[lead:])):
        return g
    axes = (*range(lead), *(lead + k for k, n in enumerate(shape) if n != g.shape[lead + k]))
    return reshape(total(g, axis=axes), shape)


def _values(recipe: dict[str, Any], saved: tuple[Any, ...]) -> dict[str, Any]:
    """The values that a formula reads, from what was saved for it."""
    values: dict[str, Any] = {}
    for n, (kind, what) in recipe.items():
        if kind == "value":
            values[n] = what
        else:
            items = tuple(saved[x] if is_saved else x for is_saved, x in what)
            values[n] = items if kind == "tuple" else items[0]
    return values
