"""Custom rules the short way: a forward, and a vjp whose parameters' names say what it reads.

`custom_rule` turns them into a `Function`, with all that those promise: one node, higher orders, `vmap`, forward mode.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from xpgrad._basics.arguments import check_callable, shown
from xpgrad._basics.scalars import is_raw_array
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd.function import Function
from xpgrad.rules.manipulation import reshape
from xpgrad.rules.reduction import sum as total

__all__ = ["CustomRule", "custom_rule", "summed_to"]

_NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def custom_rule(forward: Callable[..., Any] | None = None, *, static: str | Iterable[str] | None = None) -> Any:
    """Turn a function of Tensors into an operation with a gradient of its own: the short way to a `Function`.

    A *rule* is what xpgrad calls the gradient formulas of an operation, whatever they are; this one has a vjp and may have a jvp. It is
    not a `jax.custom_vjp`, whose residuals are packed and unpacked by hand.

    Parameters
    ----------
    forward : callable
        From Tensors to a Tensor or a tuple of Tensors. It runs unrecorded, and must not write to its operands.
    static : str or iterable of str, optional
        The parameters that are not operands: numbers, strings, shapes. Default: those that are keyword-only or have a default.

    Returns
    -------
    CustomRule
        Call it like `forward`. Its decorators `vjp` and `jvp` take the formulas.

    Raises
    ------
    TypeError
        For a `forward` whose parameters cannot be named one by one, or have the names of what formulas read.

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
        return functools.partial(custom_rule, static=static)
    check_callable(forward, "custom_rule", "forward")
    return CustomRule(forward, static)


class CustomRule:
    """An operation with a gradient of its own; made by `custom_rule`.

    Attributes
    ----------
    operands, static : tuple of str
        The names of the parameters that are differentiated, and of the others.
    """

    def __init__(self, forward: Callable[..., Any], static: str | Iterable[str] | None = None) -> None:
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
        self.operands = tuple(n for n in parameters if n not in chosen)
        self.static = tuple(n for n in parameters if n in chosen)
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function.apply(*self.arguments(*args, **kwargs))

    def vjp(self, formula: Callable[..., Any]) -> CustomRule:
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

    def jvp(self, formula: Callable[..., Any]) -> CustomRule:
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
        self.function.jvp = staticmethod(self._tangents)  # type: ignore[method-assign]
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
        }
        title = "".join(part[:1].upper() + part[1:] for part in self._name.split("_")) or "Rule"
        return type(title, (Function,), body)

    def _run(self, *args: Any) -> Any:
        out = self._forward(*args[: self._positional], **dict(zip(self._keywords, args[self._positional :])))
        if isinstance(out, list):
            msg = f"{self._name} returned a list, whose Tensors would not be differentiated; return a tuple"
            raise TypeError(msg)
        # NB: an operand that is returned as it is cannot be saved as well.
        if isinstance(out, tuple):
            return tuple(o.clone() if isinstance(o, Tensor) and any(o is a for a in args) else o for o in out)
        return out.clone() if isinstance(out, Tensor) and any(out is a for a in args) else out

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
        if self._vjp is None:
            msg = f"{self._name} has no vjp, so it cannot be differentiated; declare one with `@{self._name}.vjp`"
            raise NotImplementedError(msg)
        values = _values(ctx.recipe, ctx.saved_tensors)
        values["g"] = grads if ctx.several else grads[0]
        returned = self._vjp[0](**values)
        given = returned if isinstance(returned, tuple) else (returned,)
        if len(given) != len(self.operands):
            msg = (
                f"the vjp of {self._name} returned {len(given)} gradient{'s' if len(given) != 1 else ''}, but there are "
                f"{len(self.operands)} operands ({', '.join(self.operands)}); return one for each, None for zero, or declare "
                "those that are not Tensors with `@custom_rule(static=...)`"
            )
            raise RuntimeError(msg)
        by_name = dict(zip(self.operands, given))
        return tuple(None if s is None else summed_to(by_name.get(n), s) for n, s in zip(self._signature.parameters, ctx.shapes))

    def _tangents(self, ctx: Any, *tangents: Any) -> Any:
        assert self._jvp is not None
        formula, reads = self._jvp
        values = _values(ctx.forward_recipe, ctx.saved_tensors)
        given = {f"d_{n}": t for n, t in zip(self._signature.parameters, tangents)}
        return formula(**values, **{n: given[n] for n in reads if n in given})


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
