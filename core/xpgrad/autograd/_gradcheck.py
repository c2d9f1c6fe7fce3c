"""The numerics of `gradcheck`: Jacobians by central differences, backward passes and forward mode, compared as real matrices.

A complex number counts as its real and its imaginary part on both sides, so that one comparison handles all four combinations (CPX-10).
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from xpgrad._basics.arguments import shown
from xpgrad._basics.differences import central_difference
from xpgrad._modes import state
from xpgrad._modes.switches import no_grad
from xpgrad._tape.requests import grad
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.passes import batched_grads
from xpgrad._transforms.forward.levels import new_level
from xpgrad.autograd.function import Function
from xpgrad.errors import GradcheckError
from xpgrad.func import vmap
from xpgrad.rules.conversion import asarray
from xpgrad.rules.creation import zeros_like
from xpgrad.rules.manipulation import stack

Jacobian = list[list[float]]  # rows: components of the input; columns: components of the output


class Options(NamedTuple):
    """The options of `gradcheck`, under the names of its parameters."""

    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    undefined: bool
    dtypes: bool
    fast: bool
    forward: bool
    backward: bool
    batched: bool
    batched_forward: bool


@state.restoring
def check(func: Callable[..., Any], inputs: Any, options: Options) -> None:
    """Run all checks of `gradcheck`; raise GradcheckError if one fails."""
    args = _tuple(inputs)
    _check_inputs(args)
    places = [i for i, a in enumerate(args) if _needs_grad(a)]
    outs = _outputs(func(*args))
    if not outs:
        _check_constant(func, args, places, options.eps)
        return
    if options.forward:
        (_compare_tangents_along if options.fast else _compare_tangents)(func, args, places, outs, options)
        if options.undefined:
            _check_missing_tangents(func, args, places, options)
    if not options.backward:
        return
    (_compare_projections if options.fast else _compare_jacobians)(func, args, places, outs, options)
    if options.batched:
        _check_batched(args, places, outs, options)
    _check_scaling(func, args, places)
    if options.dtypes:
        _check_dtypes(func, args, places)
    if options.undefined:
        _check_undefined(func, args, places)


def second_order(func: Callable[..., Any], inputs: Any, grad_outputs: Any, strided: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function that computes the gradients of `func`, and its arguments: the inputs followed by the cotangents."""
    args = _tuple(inputs)
    if grad_outputs is None:
        seeds = tuple(_random_like(o, strided) for o in _outputs(func(*args)))
    else:
        seeds = _tuple(grad_outputs, "grad_outputs")
    count = len(seeds)

    def gradients(*both: Any) -> tuple[Any, ...]:
        own, given = both[: len(both) - count], both[len(both) - count :]
        needing = [a for a in own if _needs_grad(a)]
        found = grad(_outputs(func(*own)), needing, given, create_graph=True, allow_unused=True)
        return tuple(g for g in found if g is not None)

    return gradients, args + seeds


# -- arguments ---------------------------------------------------------------------------------------------------------


def _tuple(given: Any, what: str = "inputs") -> tuple[Any, ...]:
    if isinstance(given, Tensor):
        return (given,)
    if not isinstance(given, (tuple, list)):
        msg = f"gradcheck: `{what}` must be a Tensor, or a tuple or list of arguments, but got {shown(given)}"
        raise TypeError(msg)
    return tuple(given)


def _needs_grad(a: Any) -> bool:
    return isinstance(a, Tensor) and a.requires_grad


def _outputs(result: Any) -> list[Any]:
    """Return the outputs that require grad.

    Raises
    ------
    TypeError
        An output is not a Tensor.
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
    """Return all elements as real numbers; a complex element counts as its real and its imaginary part."""
    values = x.detach().reshape((-1,)).tolist()
    return [p for v in values for p in (v.real, v.imag)] if x.dtype.is_complex else [float(v) for v in values]


def _from_components(numbers: list[float], like: Any) -> Any:
    """Make a Tensor like another one from its components."""
    values: Any = [complex(re, im) for re, im in zip(numbers[::2], numbers[1::2])] if like.dtype.is_complex else numbers
    return asarray(values, dtype=like.dtype, device=like.device).reshape(like.shape)


def _difference(func: Any, args: tuple[Any, ...], i: int, direction: Any, eps: float, outs: list[Any]) -> list[list[float]]:
    """Return the central difference of each output, as components, along a direction of the i-th input.

    Raises
    ------
    AssertionError
        An output near the inputs has another shape or dtype than in `outs`, the outputs at the inputs.
    IndexError
        The function returns another number of outputs than `outs` has.
    """

    def at(h: float) -> list[list[float]]:
        with no_grad():
            point = args[i].detach() + direction * h
        result = func(*args[:i], point.requires_grad_(), *args[i + 1 :])
        results = result if isinstance(result, (tuple, list)) else [result]
        found = [r for r in results if r.requires_grad] or list(results)
        _check_alike(found, outs, i, h)
        return [_components(o) for o in found]

    found: list[list[float]] = central_difference(at, eps)
    return found


def _check_alike(found: list[Any], outs: list[Any], i: int, h: float) -> None:
    where = f"when input {i} is moved by {h:g}"
    if len(found) != len(outs):
        msg = f"gradcheck: the function must return as many outputs {where} as without, but returned {len(found)} and {len(outs)}"
        raise IndexError(msg)
    for k, (new, old) in enumerate(zip(found, outs)):
        if new.shape != old.shape or new.dtype is not old.dtype:
            msg = (
                f"gradcheck: output {k} must have the same shape and dtype {where} as without, but has {new.shape} and {new.dtype}, not "
                f"{old.shape} and {old.dtype}"
            )
            raise AssertionError(msg)


def _basis(x: Any) -> Any:
    """Yield the unit vector of each component of a Tensor."""
    total = len(_components(x))
    for k in range(total):
        yield _from_components([1.0 if j == k else 0.0 for j in range(total)], x)


def _numerical(func: Any, args: tuple[Any, ...], i: int, eps: float, outs: list[Any]) -> list[Jacobian]:
    """Return the Jacobian of each output with respect to the i-th input, from central differences."""
    found: list[Jacobian] = [[] for _ in outs]
    for direction in _basis(args[i]):
        for jacobian, row in zip(found, _difference(func, args, i, direction, eps, outs)):
            jacobian.append(row)
    return found


def _analytical(args: tuple[Any, ...], places: list[int], out: Any) -> list[Jacobian]:
    """Return the Jacobian of one output with respect to each input, from one backward pass per component of the output."""
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
    func: Any, args: tuple[Any, ...], places: list[int], outs: list[Any], options: Options
) -> None:  # fmt: skip
    _, atol, rtol, nondet_tol, *_ = options
    numerical = {i: _numerical(func, args, i, options.eps, outs) for i in places}
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
    func: Any, args: tuple[Any, ...], places: list[int], outs: list[Any], options: Options
) -> None:  # fmt: skip
    eps, atol, rtol, nondet_tol, *_ = options
    # Positive weights: the entries of a Jacobian with one sign add up, and do not cancel.
    rng = random.Random(0)
    weights = {i: _unit(rng, len(_components(args[i]))) for i in places}
    seeds = [_unit(rng, len(_components(o))) for o in outs]
    numerical = {i: _difference(func, args, i, _from_components(w, args[i]), eps, outs) for i, w in weights.items()}
    inputs = [args[i] for i in places]
    for o, (out, seed) in enumerate(zip(outs, seeds)):
        vector = _from_components(seed, out)
        passes = [grad(out, inputs, vector, retain_graph=True, allow_unused=True) for _ in range(2)]
        for i, g, repeated in zip(places, *passes):
            n = math.fsum(p * q for p, q in zip(numerical[i][o], seed))
            a, b = (0.0 if x is None else math.fsum(p * q for p, q in zip(_components(x), weights[i])) for x in (g, repeated))
            scaled = atol * math.fsum(weights[i]) * math.fsum(seed)  # the errors add up like the entries
            if not _close(n, a, scaled, rtol):
                text = _mismatch(o, i, _numerical(func, args, i, eps, outs)[o], _analytical(args, [i], out)[0])
                raise GradcheckError(f"{text}\nin fast mode, which compared the projections {n} (numerical) and {a} (analytical)")
            if not _close(a, b, nondet_tol, 0.0):
                raise GradcheckError(_NOT_REENTRANT.format(nondet_tol))


# -- forward mode -----------------------------------------------------------------------------------------------------------


def _tangents(func: Any, args: tuple[Any, ...], directions: dict[int, Any]) -> list[Any]:
    """Return the tangent of each differentiable output along directions of some inputs; None for an output without one."""
    with new_level(user=True) as level:
        duals = [level.dual(a, directions[i]) if i in directions else a for i, a in enumerate(args)]
        return [level.tangent(o) for o in _outputs(func(*duals))]


def _dense(t: Any, out: Any) -> list[float]:
    return [0.0] * len(_components(out)) if t is None else _components(t)


def _compare_tangents(func: Any, args: tuple[Any, ...], places: list[int], outs: list[Any], options: Options) -> None:
    for i in places:
        numerical = _numerical(func, args, i, options.eps, outs)
        found: list[Jacobian] = [[] for _ in outs]
        for direction in _basis(args[i]):
            for jacobian, out, t in zip(found, outs, _tangents(func, args, {i: direction})):
                jacobian.append(_dense(t, out))
        for o, (n, a) in enumerate(zip(numerical, found)):
            if not _all_close(n, a, options.atol, options.rtol):
                raise GradcheckError(_mismatch(o, i, n, a) + " while considering forward mode")
        if options.batched_forward:
            _check_batched_tangents(func, args, i, found, options)


def _compare_tangents_along(func: Any, args: tuple[Any, ...], places: list[int], outs: list[Any], options: Options) -> None:
    rng = random.Random(0)
    for i in places:
        weights = _unit(rng, len(_components(args[i])))
        direction = _from_components(weights, args[i])
        numerical = _difference(func, args, i, direction, options.eps, outs)
        for o, (out, t) in enumerate(zip(outs, _tangents(func, args, {i: direction}))):
            a = _dense(t, out)
            if not _all_close([numerical[o]], [a], options.atol * math.fsum(weights), options.rtol):
                text = _mismatch(o, i, numerical[o], a)
                raise GradcheckError(f"{text}\nin fast mode, along one direction, while considering forward mode")
        if options.batched_forward:
            rows = [[_dense(t, o)] for o, t in zip(outs, _tangents(func, args, {i: direction}))]
            _check_batched_tangents(func, args, i, rows, options, [direction])


def _check_batched_tangents(
    func: Any, args: tuple[Any, ...], i: int, expected: list[Jacobian], options: Options, directions: list[Any] | None = None
) -> None:
    """Check that forward mode under `vmap` over directions gives the expected tangents."""

    def along(direction: Any) -> tuple[Any, ...]:
        with new_level() as level:
            dual = level.dual(args[i], direction)
            results = func(*args[:i], dual, *args[i + 1 :])
            results = results if isinstance(results, (tuple, list)) else [results]
            found = [(o, level.tangent(o)) for o in results if o.dtype.differentiable]
        return tuple(zeros_like(o) if t is None else t for o, t in found)

    columns = vmap(along)(stack(directions or list(_basis(args[i]))))
    for o, (column, rows) in enumerate(zip(columns, expected)):
        if not _all_close([_components(c) for c in column], rows, options.atol, options.rtol):
            msg = f"With forward mode in `vmap` the tangents of output {o} with respect to input {i} differ from those of a loop"
            raise GradcheckError(msg)


def _check_missing_tangents(func: Any, args: tuple[Any, ...], places: list[int], options: Options) -> None:
    """Check that a missing tangent of an input has the same effect as zeros."""
    if len(places) < 2:
        return
    zeros = {i: zeros_like(args[i].detach()) for i in places}
    for i in places:
        direction = _random_like(args[i], False).detach()
        outs = _outputs(func(*args))
        alone, full = (_tangents(func, args, d) for d in ({i: direction}, zeros | {i: direction}))
        for o, (out, a, b) in enumerate(zip(outs, alone, full)):
            if not _all_close([_dense(a, out)], [_dense(b, out)], options.atol, options.rtol):
                msg = f"Expected forward mode to treat a missing tangent as zeros: with one for input {i} only, that of output {o} differs"
                raise GradcheckError(msg)


def _unit(rng: random.Random, n: int) -> list[float]:
    values = [rng.random() + 1e-3 for _ in range(n)]
    norm = math.sqrt(math.fsum(v * v for v in values)) or 1.0
    return [v / norm for v in values]


def _check_constant(func: Any, args: tuple[Any, ...], places: list[int], eps: float) -> None:
    """Check, by differences with step `eps` at the inputs in `places`, that outputs that do not require grad are constant (GCK-11)."""
    result = func(*args)
    results = result if isinstance(result, (tuple, list)) else [result]
    floating = [k for k, r in enumerate(results) if r.dtype.differentiable]
    for i in places:
        for direction in _basis(args[i]):
            rows = _difference(func, args, i, direction, eps, list(results))
            if any(abs(v) > 0 for k in floating for v in rows[k]):
                msg = f"Numerical gradient for function expected to be zero: no output requires grad, but input {i} changes one"
                raise GradcheckError(msg)


# -- properties of the backward ---------------------------------------------------------------------------------------------


def _check_scaling(func: Any, args: tuple[Any, ...], places: list[int]) -> None:
    """Check that zero cotangents give zero gradients with the shape, dtype and device of the inputs (GCK-08)."""
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


def _check_batched(args: tuple[Any, ...], places: list[int], outs: list[Any], options: Options) -> None:
    """Check that the gradients for a batch of cotangents are those of its elements."""
    inputs = [args[i] for i in places]
    for o, out in enumerate(outs):
        seeds = [_random_like(out, False).detach() * (k + 1) for k in range(2)]
        batched = grad(out, inputs, stack(seeds), retain_graph=True, allow_unused=True, batched=batched_grads)
        single = [grad(out, inputs, s, retain_graph=True, allow_unused=True) for s in seeds]
        for i, (g, *rest) in zip(places, zip(batched, *single)):
            if (g is None) != (rest[0] is None) or (
                g is not None
                and not _all_close([_components(g[k]) for k in range(2)], [_components(r) for r in rest], options.atol, options.rtol)
            ):
                msg = f"With `is_grads_batched=True` the gradients of output {o} with respect to input {i} differ from those of a loop"
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
    """Check that backward accepts undefined cotangents of some outputs, and gives no gradient if all are undefined (GCK-07)."""
    inputs = [args[i] for i in places]
    count = len(_outputs(func(*args)))
    for chosen in [set(range(count)), *({k} for k in range(count) if count > 1)]:
        outs = _outputs(func(*args))
        roots = [_Undefined.apply(o) if k in chosen else o for k, o in enumerate(outs)]
        seeds = [_random_like(o, False).detach() for o in outs]
        try:
            found = grad(roots, inputs, seeds, allow_unused=True)
        except RuntimeError as exc:
            msg = f"Expected backward function to handle undefined output grads: with one, it raised {type(exc).__name__}: {exc}"
            raise GradcheckError(msg) from exc
        if len(chosen) == count and any(g is not None and any(c != 0 for c in _components(g)) for g in found):
            msg = "Expected backward function to handle undefined output grads: all were undefined, but a gradient is not zero"
            raise GradcheckError(msg)


def _random_like(x: Any, strided: bool) -> Any:
    """Make a leaf like `x` with random values, the same at each call; if `strided`, a view of every other element."""
    n = len(_components(x))
    rng = random.Random(n)
    if not strided or not x.ndim:
        return _from_components([rng.uniform(-1, 1) for _ in range(n)], x).requires_grad_()
    both = stack([_from_components([rng.uniform(-1, 1) for _ in range(n)], x) for _ in range(2)], axis=-1)
    return both[..., 0].requires_grad_()


# -- Jacobians by themselves ------------------------------------------------------------------------------------------------


def _real_leaves(name: str, given: Any) -> tuple[Any, ...]:
    """Return the arguments that require grad; raise for complex ones."""
    found = tuple(x for x in _tuple(given) if _needs_grad(x))
    if any(x.dtype.is_complex for x in found):
        msg = f"{name}: complex Tensors are not supported; use `gradcheck`, which compares real and imaginary parts"
        raise NotImplementedError(msg)
    return found


def _first(result: Any, name: str) -> Any:
    out = result[0] if isinstance(result, (tuple, list)) else result
    if not isinstance(out, Tensor):
        msg = f"{name}: the function must return Tensors, but returned {shown(out)}"
        raise TypeError(msg)
    return out


def numerical_jacobians(fn: Callable[..., Any], inputs: Any, target: Any, eps: float) -> tuple[Any, ...]:
    """Compute the Jacobians of the first output of ``fn(inputs)``.

    Parameters
    ----------
    fn : callable
    inputs : object
        What it is called with.
    target : Tensor or nested sequences of Tensors
        The Tensors in `inputs` to vary; they are changed in place, and restored.
    eps : float
        The step of the central differences.
    """
    name, given = "get_numerical_jacobian", _tuple(inputs)

    found = []
    for x in _real_leaves(name, target):
        data, before = x.data, x.detach().clone()

        def at(unit: Any, h: float, data: Any = data, before: Any = before) -> Any:
            data.copy_(before + unit * h)
            return _first(fn(given), name).detach().clone().reshape((-1,))

        with no_grad():
            try:
                rows = [central_difference(partial(at, unit), eps) for unit in _basis(x)]
                found.append(stack(rows) if rows else asarray([], dtype=x.dtype, device=x.device).reshape((0, at(0.0, 0.0).size)))
            finally:
                data.copy_(before)
    return tuple(found)


def analytical_jacobians(inputs: Any, output: Any, nondet_tol: float) -> tuple[tuple[Any, ...], bool, bool, bool]:
    """Return the Jacobians of an output and three flags: whether two passes agree, shapes are right, and dtypes are right."""
    name = "get_analytical_jacobian"
    if _first(output, name).dtype.is_complex:
        msg = f"{name}: Expected output to be non-complex, but it has dtype {output.dtype}; take `xpgrad.real(output)`"
        raise ValueError(msg)
    leaves = _real_leaves(name, inputs)
    sizes = types = reentrant = True
    found = []
    rows: list[list[Any]] = [[] for _ in leaves]
    for seed in _basis(output):
        passes = [grad(output, leaves, seed, retain_graph=True, allow_unused=True) for _ in range(2)]
        for row, x, one, two in zip(rows, leaves, *passes):
            g, again = (zeros_like(x) if v is None else v.detach() for v in (one, two))
            sizes, types = sizes and g.shape == x.shape, types and g.dtype is x.dtype
            reentrant = reentrant and _all_close([_components(g)], [_components(again)], nondet_tol, 0.0)
            row.append(g.reshape((-1,)))
    for row, x in zip(rows, leaves):
        empty = asarray([], dtype=x.dtype, device=x.device).reshape((x.size, 0))
        found.append(stack(row, axis=1) if row else empty)
    return tuple(found), reentrant, sizes, types
