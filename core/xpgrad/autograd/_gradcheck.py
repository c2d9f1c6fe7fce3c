"""The numerics of `gradcheck`: Jacobians by central differences and by backward passes, compared as real matrices.

A complex number counts as its real and imaginary part on both sides, so one comparison serves all four combinations (CPX-10).
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

from xpgrad._modes import no_grad
from xpgrad._tensor import Tensor
from xpgrad.autograd import grad
from xpgrad.autograd.function import Function
from xpgrad.errors import GradcheckError

__all__ = ["check", "second_order"]

Jacobian = list[list[float]]  # rows: components of the input; columns: components of the output


def check(
    func: Callable[..., Any], inputs: Any, eps: float, atol: float, rtol: float, nondet_tol: float, undefined: bool, dtypes: bool,
    fast: bool,
) -> None:  # fmt: skip
    """All checks of `gradcheck`; returns if they pass."""
    args = _tuple(inputs)
    _check_inputs(args)
    places = [i for i, a in enumerate(args) if _needs_grad(a)]
    outs = _outputs(func(*args))
    if not outs:
        _check_constant(func, args, places, eps)
        return
    compare = _compare_projections if fast else _compare_jacobians
    compare(func, args, places, outs, eps, atol, rtol, nondet_tol)
    _check_scaling(func, args, places)
    if dtypes:
        _check_dtypes(func, args, places)
    if undefined:
        _check_undefined(func, args, places)


def second_order(func: Callable[..., Any], inputs: Any, grad_outputs: Any, strided: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function whose outputs are the gradients of `func`, and its arguments: the inputs and the gradient outputs."""
    args = _tuple(inputs)
    if grad_outputs is None:
        seeds = tuple(_random_like(o, strided) for o in _outputs(func(*args)))
    else:
        seeds = _tuple(grad_outputs)
    count = len(seeds)

    def gradients(*both: Any) -> tuple[Any, ...]:
        own, given = both[: len(both) - count], both[len(both) - count :]
        needing = [a for a in own if _needs_grad(a)]
        found = grad(_outputs(func(*own)), needing, given, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradients, args + seeds


# -- arguments ---------------------------------------------------------------------------------------------------------


def _tuple(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, Tensor) else tuple(given)


def _needs_grad(a: Any) -> bool:
    return isinstance(a, Tensor) and a.requires_grad


def _outputs(result: Any) -> list[Any]:
    """The outputs that differentiate.

    Raises
    ------
    TypeError
        If one is no Tensor.
    """
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for r in results:
        if not isinstance(r, Tensor):
            msg = f"the function given to gradcheck must return Tensors, but returned {type(r).__name__}"
            raise TypeError(msg)
    return [r for r in results if r.requires_grad]


def _check_inputs(args: tuple[Any, ...]) -> None:
    if not any(_needs_grad(a) for a in args):
        msg = "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        raise ValueError(msg)
    for i, a in enumerate(args):
        if not _needs_grad(a):
            continue
        if a.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or complex. This check will likely fail if all "
                "the inputs are not of double precision floating point or complex.",
                UserWarning,
                stacklevel=4,
            )
        strides = a.backend.strides(a.backend.own(a))
        if strides is not None and any(s == 0 and n > 1 for s, n in zip(strides, a.shape)):
            msg = (
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be able to "
                "compute the numerical gradients correctly. You should call `clone()` on the input before passing it to gradcheck."
            )
            raise RuntimeError(msg)


# -- numbers in and out of Tensors ---------------------------------------------------------------------------------------


def _components(x: Any) -> list[float]:
    """All elements as real numbers, real before imaginary part."""
    values = x.detach().reshape((-1,)).tolist()
    return [p for v in values for p in (v.real, v.imag)] if x.dtype.is_complex else [float(v) for v in values]


def _from_components(numbers: list[float], like: Any) -> Any:
    """A Tensor of the shape, dtype and device of `like` with given components."""
    from xpgrad._convert import asarray

    values: Any = [complex(re, im) for re, im in zip(numbers[::2], numbers[1::2])] if like.dtype.is_complex else numbers
    return asarray(values, dtype=like.dtype, device=like.device).reshape(like.shape)


def _moved(args: tuple[Any, ...], i: int, offset: Any) -> tuple[Any, ...]:
    """The arguments with the i-th replaced by a leaf at another point."""
    with no_grad():
        point = args[i].detach() + offset
    return (*args[:i], point.requires_grad_(), *args[i + 1 :])


def _difference(func: Any, args: tuple[Any, ...], i: int, direction: Any, eps: float) -> list[list[float]]:
    """The central difference along a direction of the i-th input: the components of each output."""
    with no_grad():
        offset = direction * eps
    above = _all_components(func(*_moved(args, i, offset)))
    below = _all_components(func(*_moved(args, i, -offset)))
    return [[(a - b) / (2 * eps) for a, b in zip(one, other)] for one, other in zip(above, below)]


def _all_components(result: Any) -> list[list[float]]:
    results = result if isinstance(result, (tuple, list)) else [result]
    outs = [r for r in results if r.requires_grad]
    return [_components(o) for o in outs or results]


def _basis(x: Any) -> Any:
    """The unit directions of a Tensor's components."""
    total = len(_components(x))
    for k in range(total):
        yield _from_components([1.0 if j == k else 0.0 for j in range(total)], x)


def _numerical(func: Any, args: tuple[Any, ...], i: int, eps: float, count: int) -> list[Jacobian]:
    """For each output, the Jacobian with respect to the i-th input."""
    found: list[Jacobian] = [[] for _ in range(count)]
    for direction in _basis(args[i]):
        for jacobian, row in zip(found, _difference(func, args, i, direction, eps)):
            jacobian.append(row)
    return found


def _analytical(args: tuple[Any, ...], places: list[int], out: Any) -> list[Jacobian]:
    """For each input, the Jacobian of one output, by a backward pass per component of the output."""
    inputs = [args[i] for i in places]
    columns: list[Jacobian] = [[] for _ in places]
    for seed in _basis(out):
        for column, x, g in zip(columns, inputs, grad(out, inputs, seed, retain_graph=True, allow_unused=True)):
            column.append([0.0] * len(_components(x)) if g is None else _components(g))
    return [[list(row) for row in zip(*c)] if c else [[] for _ in _components(x)] for c, x in zip(columns, inputs)]


# -- comparing ------------------------------------------------------------------------------------------------------------


def _close(a: float, b: float, atol: float, rtol: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= atol + rtol * abs(b)


def _all_close(a: Jacobian, b: Jacobian, atol: float, rtol: float) -> bool:
    return all(_close(p, q, atol, rtol) for r, s in zip(a, b) for p, q in zip(r, s))


_NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different values, although "
    "analytical gradient matches numerical gradient. The tolerance for nondeterminism was {}; `nondet_tol` raises it."
)


def _compare_jacobians(
    func: Any, args: tuple[Any, ...], places: list[int], outs: list[Any], eps: float, atol: float, rtol: float, nondet_tol: float
) -> None:
    numerical = {i: _numerical(func, args, i, eps, len(outs)) for i in places}
    for o, out in enumerate(outs):
        analytical = _analytical(args, places, out)
        again = _analytical(args, places, out)
        for i, a, repeated in zip(places, analytical, again):
            n = numerical[i][o]
            if not _all_close(n, a, atol, rtol):
                raise GradcheckError(_mismatch(o, i, n, a))
            if not _all_close(a, repeated, nondet_tol, 0.0):
                raise GradcheckError(_NOT_REENTRANT.format(nondet_tol))


def _mismatch(o: int, i: int, numerical: Any, analytical: Any) -> str:
    return (
        f"Jacobian mismatch for output {o} with respect to input {i},\nnumerical:{numerical}\nanalytical:{analytical}\n"
        "(rows: components of the input, real before imaginary part; columns: of the output)"
    )


def _compare_projections(
    func: Any, args: tuple[Any, ...], places: list[int], outs: list[Any], eps: float, atol: float, rtol: float, nondet_tol: float
) -> None:
    # Positive weights, as they add up where a Jacobian has entries of one sign.
    rng = random.Random(0)
    weights = {i: _unit(rng, len(_components(args[i]))) for i in places}
    seeds = [_unit(rng, len(_components(o))) for o in outs]
    numerical = {i: _difference(func, args, i, _from_components(w, args[i]), eps) for i, w in weights.items()}
    inputs = [args[i] for i in places]
    for o, (out, seed) in enumerate(zip(outs, seeds)):
        vector = _from_components(seed, out)
        passes = [grad(out, inputs, vector, retain_graph=True, allow_unused=True) for _ in range(2)]
        for i, g, repeated in zip(places, *passes):
            n = math.fsum(p * q for p, q in zip(numerical[i][o], seed))
            a, b = (0.0 if x is None else math.fsum(p * q for p, q in zip(_components(x), weights[i])) for x in (g, repeated))
            scaled = atol * math.fsum(weights[i]) * math.fsum(seed)  # as many entries add up, so may their errors
            if not _close(n, a, scaled, rtol):
                text = _mismatch(o, i, _numerical(func, args, i, eps, len(outs))[o], _analytical(args, [i], out)[0])
                raise GradcheckError(f"{text}\nin fast mode, which compared the projections {n} (numerical) and {a} (analytical)")
            if not _close(a, b, nondet_tol, 0.0):
                raise GradcheckError(_NOT_REENTRANT.format(nondet_tol))


def _unit(rng: random.Random, n: int) -> list[float]:
    values = [rng.random() + 1e-3 for _ in range(n)]
    norm = math.sqrt(math.fsum(v * v for v in values)) or 1.0
    return [v / norm for v in values]


def _check_constant(func: Any, args: tuple[Any, ...], places: list[int], eps: float) -> None:
    """Outputs that require no grad must not depend on the inputs (GCK-11)."""
    result = func(*args)
    results = result if isinstance(result, (tuple, list)) else [result]
    floating = [k for k, r in enumerate(results) if r.dtype.differentiable]
    for i in places:
        for direction in _basis(args[i]):
            rows = _difference(func, args, i, direction, eps)
            if any(abs(v) > 0 for k in floating for v in rows[k]):
                msg = f"Numerical gradient for function expected to be zero: no output requires grad, but input {i} changes one"
                raise GradcheckError(msg)


# -- properties of the backward ---------------------------------------------------------------------------------------------


def _check_scaling(func: Any, args: tuple[Any, ...], places: list[int]) -> None:
    """A zero gradient of the outputs must give zero (GCK-08)."""
    from xpgrad.rules.creation import zeros_like

    outs = _outputs(func(*args))
    found = grad(outs, [args[i] for i in places], [zeros_like(o.detach()) for o in outs], allow_unused=True)
    for i, g in zip(places, found):
        if g is None:
            continue
        if any(c != 0 for c in _components(g)):
            msg = f"backward not multiplied by grad_output: input {i} gets a gradient that is not zero from zeros"
            raise GradcheckError(msg)
        if g.dtype is not args[i].dtype or g.shape != args[i].shape or g.device != args[i].device:
            msg = f"grad is incorrect type: input {i} is {args[i].dtype} of shape {args[i].shape}, its gradient {g.dtype} of {g.shape}"
            raise GradcheckError(msg)


def _check_dtypes(func: Any, args: tuple[Any, ...], places: list[int]) -> None:
    outs = _outputs(func(*args))
    seeds = [_random_like(o, False).detach() for o in outs]
    for i, g in zip(places, grad(outs, [args[i] for i in places], seeds, allow_unused=True)):
        if g is not None and g.dtype is not args[i].dtype:
            msg = f"expected the gradient of input {i} to have its dtype {args[i].dtype}, but got {g.dtype}"
            raise GradcheckError(msg)


class _Undefined(Function):
    """The identity with an undefined gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.detach()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        return None


def _check_undefined(func: Any, args: tuple[Any, ...], places: list[int]) -> None:
    """Where all gradients of the outputs, or single ones, are undefined, the backward must give nothing or zeros (GCK-07)."""
    inputs = [args[i] for i in places]
    count = len(_outputs(func(*args)))
    for chosen in [set(range(count)), *({k} for k in range(count) if count > 1)]:
        outs = _outputs(func(*args))
        roots = [_Undefined.apply(o) if k in chosen else o for k, o in enumerate(outs)]
        seeds = [_random_like(o, False).detach() for o in outs]
        found = grad(roots, inputs, seeds, allow_unused=True)
        if len(chosen) == count and any(g is not None and any(c != 0 for c in _components(g)) for g in found):
            msg = "Expected backward function to handle undefined output grads: all were undefined, but a gradient is not zero"
            raise GradcheckError(msg)


def _random_like(x: Any, strided: bool) -> Any:
    """A leaf like `x` with random values, the same at each call; `strided`: a view that skips every other element."""
    n = len(_components(x))
    rng = random.Random(n)
    if not strided or not x.ndim:
        return _from_components([rng.uniform(-1, 1) for _ in range(n)], x).requires_grad_()
    from xpgrad.rules.manipulation import stack

    both = stack([_from_components([rng.uniform(-1, 1) for _ in range(n)], x) for _ in range(2)], axis=-1)
    return both[..., 0].requires_grad_()
