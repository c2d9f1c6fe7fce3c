"""Capture the derivative of a function as a program whose input is a direction, and propagate which outputs depend on which elements of it.

The derivative is traced, not the function, so that the pattern is exactly that of the computation that runs later, including custom rules,
`detach` and rounding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from xpgrad._array.base import TensorBase
from xpgrad._basics.scalars import as_scalar
from xpgrad._modes import state
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import is_constant, lift_leaves
from xpgrad._rows.kernels import kernel_of
from xpgrad._tensor.tensor import Tensor
from xpgrad.errors import CaptureError
from xpgrad.func._forward import jvp
from xpgrad.func._reverse import Argnums, grad, put_back, select_arguments, vjp
from xpgrad.func._sparse import contraction_rules, convolution_rules, layout_rules
from xpgrad.func._sparse.dependence import TooDense, input_dependence
from xpgrad.func._sparse.host import sparse
from xpgrad.func._sparse.propagation import Rule, Walk
from xpgrad.func._tree import flatten, unflatten
from xpgrad.programs.capture import capture, capture_class
from xpgrad.programs.simplify import without_dead_code

#: How dependence passes kernels, by their names. A kernel without one is passed as others of its kind.
RULES = {**layout_rules.RULES, **contraction_rules.RULES, **convolution_rules.RULES}
RULES_OF_KINDS = {**layout_rules.RULES_OF_KINDS, **contraction_rules.RULES_OF_KINDS}


def rule_of(name: str) -> Rule | None:
    """Return the rule that propagates dependence through a kernel; None if there is none, so that each element may depend on everything."""
    return RULES.get(name) or RULES_OF_KINDS.get(kernel_of(name).kind)


class Pattern(NamedTuple):
    """A traced pattern.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of bool
        The pattern.
    unresolved : list of str
        Operations, with their lines, that got the conservative answer.
    fixed : bool
        Whether numbers among the arguments could not be traced: the pattern is valid for their values only.
    """

    matrix: Any
    unresolved: list[str]
    fixed: bool


class Call(NamedTuple):
    """A call of a function, and the arguments with respect to which it is differentiated."""

    name: str
    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    argnums: Argnums
    has_aux: bool

    def run(self) -> Any:
        """Return the function's results for detached arguments."""
        places, leaves, structure = select_arguments(self.name, self.args, self.argnums)
        tree = unflatten(structure, [x.detach() for x in leaves])
        return self.func(*put_back(self.args, self.argnums, places, tree), **self.kwargs)

    def value(self, *args: Any, **kwargs: Any) -> Any:
        """Return the function's value without `aux`."""
        out = self.func(*args, **kwargs)
        return out[0] if self.has_aux and isinstance(out, tuple) and len(out) == 2 else out


def jacobian_pattern(call: Call, local: bool, left: bool) -> Pattern:
    """Trace the pattern of a Jacobian, of shape ``(outputs, inputs)``, for products from the right (`jvp`) or from the left (`vjp`).

    Raises
    ------
    CaptureError
        If the function depends on values; the message names the line.
    ValueError
        If the derivative is dense and large.
    """

    def derivative(start: Callable[[Any], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        places, leaves, structure = select_arguments(call.name, args, call.argnums)

        def of_chosen(tree: Any) -> Any:
            return call.value(*put_back(args, call.argnums, places, tree), **kwargs)

        if left:
            out, product = vjp(of_chosen, unflatten(structure, leaves))
            outs, arrangement = flatten(out)
            return flatten(product(unflatten(arrangement, [start(y) for y in outs])))[0]
        directions = unflatten(structure, [start(x) for x in leaves])
        _, slopes = jvp(of_chosen, (unflatten(structure, leaves),), (directions,))
        return flatten(slopes)[0]

    found = _pattern(call, derivative, local)
    return found._replace(matrix=found.matrix.T.tocsr()) if left else found


def hessian_pattern(call: Call, local: bool) -> Pattern:
    """Trace the pattern of a Hessian; it raises the same errors as `jacobian_pattern`."""

    def derivative(start: Callable[[Any], Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        places, leaves, structure = select_arguments(call.name, args, call.argnums)
        directions = unflatten(structure, [start(x) for x in leaves])

        def gradient(tree: Any) -> Any:
            return grad(call.value, call.argnums)(*put_back(args, call.argnums, places, tree), **kwargs)

        _, product = vjp(gradient, unflatten(structure, leaves))
        return flatten(product(directions))[0]

    found = _pattern(call, derivative, local)
    return found._replace(matrix=found.matrix.T.tocsr())  # the outputs were the columns


def _pattern(call: Call, derivative: Callable[..., list[Any]], local: bool) -> Pattern:
    """Trace the pattern of a derivative; numbers among the arguments are traced like Tensors if the function allows it."""
    leaves, structure = flatten((call.args, call.kwargs))
    arrays = [i for i, x in enumerate(leaves) if isinstance(x, TensorBase) or is_constant(x)]
    numbers = [i for i, x in enumerate(leaves) if isinstance(as_scalar(x), (float, complex)) and i not in arrays]
    if numbers:
        try:
            return Pattern(*_capture(call, derivative, local, leaves, structure, sorted(arrays + numbers)), False)
        except (CaptureError, TypeError, ValueError, RuntimeError):
            pass  # a number that has to be one: the prepared object is for this value of it
    return Pattern(*_capture(call, derivative, local, leaves, structure, arrays), bool(numbers))


def _capture(
    call: Call, derivative: Callable[..., list[Any]], local: bool, leaves: list[Any], structure: Any, places: list[int]
) -> tuple[Any, list[str]]:
    given = unify(call.name, lift_leaves(call.name, [leaves[i] for i in places], leaves, numbers=True))
    given = [x.detach() for x in given]
    cls = given[0].__class__
    inside = capture_class(cls)
    started: list[tuple[Any, int]] = []
    total = 0

    def run(recorder: Any, *symbols: Any) -> tuple[Any, ...]:
        def start(x: Any) -> Tensor:
            nonlocal total
            raw = cls.backend.ones(x.shape, x.dtype, cls.device)
            variable = recorder.add_input(x.shape, x.dtype, None)
            started.append((variable, total))
            total += variable.size
            out: Tensor = inside._wrap(inside.backend.raw(raw, variable, recorder))
            return out

        recorder.runs = False
        full = list(leaves)
        for i, symbol in zip(places, symbols):
            full[i] = inside._wrap(symbol)
        args, kwargs = unflatten(structure, full)
        before = state.current()
        try:
            taking = inside.taking(recorder)
            taking.detaching = True
            state.put(state.Mode(recording=True, capturing=taking))
            slopes = derivative(start, args, kwargs)
            return tuple(inside.lift(t)._array for t in slopes)
        finally:
            state.put(before)

    try:
        program, _, _ = capture(inside, run, [x._array for x in given], [])
    except CaptureError as exc:
        raise _tracing_error(call.name, str(exc)) from exc
    program = without_dead_code(program)
    tracked = {v: input_dependence(v.shape, first, total) for v, first in started}
    known = dict(zip(program.inputs, [x._array for x in given])) if local else {}
    walk = Walk(program, cls.backend, rule_of, tracked, known)
    try:
        found = [x.matrix() for x in walk.outputs()]
    except TooDense as exc:
        msg = (
            f"{call.name}: the derivative has more nonzeros than a sparse one is for ({str(exc) or 'as its outputs say'}); use "
            "`jacrev`, `jacfwd` or `hessian`, or products (`jvp`, `vjp`, `hessian_vector_product`)"
        )
        raise ValueError(msg) from None
    whole = sparse.vstack(found, format="csr", dtype=bool) if len(found) > 1 else found[0]
    whole.sort_indices()
    return whole, list(walk.unresolved)


def _tracing_error(name: str, text: str) -> CaptureError:
    """Return the error for a function that depends on values, in words that do not mention compilation."""
    what = text.partition(" inside of a compiled function")[0]
    line = next(iter(re.findall(r" \([^()]*, line \d+, in [^()]*\)", text)), "")
    what = what.removesuffix(line)
    return CaptureError(
        f"{name}: the pattern cannot be traced, since it would depend on values: {what}{line}; use `xpgrad.where` instead of a branch, let "
        "the function close over indices and masks, or give the pattern yourself, with `pattern=matrix`"
    )
