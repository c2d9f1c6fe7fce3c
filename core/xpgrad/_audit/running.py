"""Run the audited function under observation, at given or nearby arguments, with some of the values that leave the graph frozen.

Every run gets new copies of all Tensors and arrays among the arguments, so that the caller's objects do not change.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Container, Sequence
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._audit.places import Place
from xpgrad._audit.tracing import Trace
from xpgrad._basics.frames import is_own
from xpgrad._modes import state
from xpgrad._operations.lift import is_constant, lift_leaves
from xpgrad._tape.node import walk
from xpgrad._tensor.computing import compute
from xpgrad.autograd import grad
from xpgrad.func._tree import flatten, unflatten
from xpgrad.rules.conversion import asarray


def host_of(x: Any) -> Any:
    """Copy a Tensor into a host array."""
    array = x.backend.to_host(x.backend.own(x))
    return array.copy()


class Outcome:
    """The results of one run.

    Attributes
    ----------
    trace : Trace
    inputs : list of Tensor
        The leaves that are differentiated.
    outputs : list of Tensor
        The floating-point and complex Tensors among the results.
    result : object
        The result of the function.
    error : Exception or None
        The error of the function.
    where : Place or None
        The user's line that raised it.
    """

    def __init__(self, trace: Trace, inputs: list[Any], result: Any, error: Exception | None) -> None:
        self.trace, self.inputs, self.result, self.error = trace, inputs, result, error
        leaves = [] if error is not None else flatten(result)[0]
        self.leaves = leaves
        self.outputs = [x for x in leaves if isinstance(x, TensorBase) and x.dtype.differentiable]
        self.where = None if error is None else _raised_at(error)


class Problem:
    """The audited function with its arguments, and the choice of audited inputs.

    Parameters
    ----------
    function : callable
    args : tuple
    kwargs : mapping
    argnums : tuple of int or None
        The arguments with respect to which to differentiate. None: all with floating-point or complex Tensors or arrays; all floats if
        there are none.
    seed : int
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, argnums: tuple[int, ...] | None, seed: int
    ) -> None:
        self.function, self.kwargs, self.seed = function, dict(kwargs or {}), seed
        flat, self.structure = flatten(args)
        numbers = [len(flatten(a)[0]) for a in args]
        self.owners = [i for i, n in enumerate(numbers) for _ in range(n)]  # by leaf, the number of its argument
        self.names = _names(function, args, numbers)
        arrays = [isinstance(x, TensorBase) or is_constant(x) for x in flat]
        if argnums is not None:
            wanted = [i in argnums for i in self.owners]
            places = [k for k, w in enumerate(wanted) if w and (arrays[k] or _is_number(flat[k]))]
        else:
            places = [k for k, a in enumerate(arrays) if a] or [k for k, x in enumerate(flat) if isinstance(x, (float, complex))]
        lifted = lift_leaves("audit", [flat[k] for k in places], flat, numbers=True)
        for k, x in zip(places, lifted):
            flat[k] = x
        self.flat = flat
        self.places = [k for k in places if isinstance(flat[k], TensorBase) and flat[k].dtype.differentiable]
        if not self.places:
            what = "the arguments that `argnums` names hold" if argnums is not None else "the arguments hold"
            msg = f"audit: {what} nothing to differentiate with respect to: floating or complex Tensors, arrays or numbers"
            raise TypeError(msg)
        self.points = [flat[k].detach() for k in self.places]
        self.labels = [self.names[k] for k in self.places]
        self.weights: list[Any] = []
        self.runs = 0

    # -- runs ------------------------------------------------------------------------------------------------------

    def run(
        self, points: list[Any] | None = None, base: Trace | None = None, frozen: Container[int] = (), keep: bool = False,
        recording: bool = True,
    ) -> Outcome:  # fmt: skip
        """Run the function once.

        Parameters
        ----------
        points : list of Tensor, optional
            The audited inputs. Default: the given arguments.
        base, frozen, keep
            As for `Trace`.
        recording : bool
            Record the operations.
        """
        self.runs += 1
        flat = [_fresh(x) for x in self.flat]
        inputs = []
        for k, point in zip(self.places, self.points if points is None else points):
            flat[k] = leaf = point.detach().clone().requires_grad_(recording)
            inputs.append(leaf)
        trace = Trace(base, frozen, keep)
        args = unflatten(self.structure, flat)
        kwargs = {key: _fresh(value) for key, value in self.kwargs.items()}
        before = state.current()
        try:
            state.put(state.mode_with(auditing=trace, recording=recording, inference=False, anomaly=None))
            result, error = self._call(trace, args, kwargs)
        finally:
            state.put(before)
        return Outcome(trace, inputs, result, error)

    def _call(self, trace: Trace, args: Any, kwargs: Any) -> tuple[Any, Exception | None]:
        trace.stop.frame = sys._getframe()
        try:
            return self.function(*args, **kwargs), None
        except Exception as exc:  # noqa: BLE001 (whatever it raises is a finding)
            return None, exc
        finally:
            trace.stop.frame = None

    # -- the scalar whose gradient is audited ----------------------------------------------------------------------

    def weigh(self, outputs: list[Any]) -> None:
        """Choose the weights of the results: 1 for a scalar, else random numbers."""
        self.weights = []
        compute(*outputs)
        for out in outputs:
            host = host_of(out)
            xp = host.__array_namespace__()
            if len(outputs) == 1 and out.size == 1 and not out.dtype.is_complex:
                weight = xp.ones_like(host)
            else:
                drawn = xp.random.default_rng(self.seed)
                weight = xp.asarray(drawn.uniform(0.5, 1.5, host.shape) * drawn.choice([-1.0, 1.0], host.shape))
                if out.dtype.is_complex:
                    weight = weight + 1j * drawn.uniform(0.5, 1.5, host.shape)
                weight = weight.astype(host.dtype)
            self.weights.append(weight)

    def value(self, outputs: list[Any]) -> float:
        """Return the weighted sum of the results; NaN if their shapes differ from those of the first run."""
        if len(outputs) != len(self.weights):
            return math.nan
        total = 0.0
        compute(*outputs)
        for out, weight in zip(outputs, self.weights):
            host = host_of(out)
            if host.shape != weight.shape:
                return math.nan
            wide = complex if out.dtype.is_complex else float
            terms = weight.astype(wide).conj() * host.astype(wide)
            total += float(terms.real.sum())
        return total

    def gradients(self, outcome: Outcome) -> list[Any]:
        """Return the gradients of the weighted sum, None for an input that the graph does not reach; the graph is freed."""
        return weighted_grads(outcome.outputs, self.weights, outcome.inputs)

    def nodes(self, outcome: Outcome) -> list[Any]:
        """Return the nodes between the results and the inputs."""
        roots = [o._node for o in outcome.outputs if o._node is not None]
        return list(dict.fromkeys(n.owner for n in walk(roots)))


def weighted_grads(outputs: Sequence[Any], weights: list[Any], inputs: Sequence[Any]) -> list[Any]:
    """Return the gradients of a sum of outputs with host arrays as weights; None for an input that the graph does not reach."""
    kept = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
    if not kept:
        return [None] * len(inputs)
    seeds = [asarray(w, device=o.device, dtype=o.dtype) for o, w in kept]
    return list(grad([o for o, _ in kept], list(inputs), seeds, allow_unused=True))


def shift(x: Any, step: Any) -> Any:
    """Return a constant Tensor: `x` plus a host array."""
    host = host_of(x)
    return asarray((host + step).astype(host.dtype), device=x.device, dtype=x.dtype)


def _fresh(x: Any) -> Any:
    """Copy an argument if a function could write to it."""
    if isinstance(x, TensorBase):
        return x.detach().clone().requires_grad_(x.requires_grad)
    return x.copy() if is_constant(x) and hasattr(x, "copy") else x


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float, complex)) and not isinstance(x, bool)


def _names(function: Any, args: tuple[Any, ...], numbers: list[int]) -> list[str]:
    """Return the names of the leaves: their parameter's name, with a path if an argument has several."""
    try:
        bound = inspect.signature(function).bind(*args).arguments
        titles: list[str] = []
        for name, value in bound.items():
            kind = inspect.signature(function).parameters[name].kind
            titles += [f"{name}[{i}]" for i in range(len(value))] if kind is inspect.Parameter.VAR_POSITIONAL else [name]
    except (TypeError, ValueError):
        titles = []
    if len(titles) != len(args):
        titles = [f"argument {i}" for i in range(len(args))]
    out = []
    for i, (title, n) in enumerate(zip(titles, numbers)):
        paths = _paths(args[i], title)
        out += paths if len(paths) == n else [title if n == 1 else f"{title} leaf {j}" for j in range(n)]
    return out


def _paths(tree: Any, title: str) -> list[str]:
    if isinstance(tree, (list, tuple)) and not hasattr(tree, "_fields"):
        return [p for i, item in enumerate(tree) for p in _paths(item, f"{title}[{i}]")]
    if isinstance(tree, dict):
        return [p for key, item in tree.items() for p in _paths(item, f"{title}[{key!r}]")]
    return [title]


def _raised_at(error: BaseException) -> Place | None:
    """Return the innermost line of the user's code in a traceback; None if there is none."""
    found, tb = None, error.__traceback__
    while tb is not None:
        code = tb.tb_frame.f_code
        if not is_own(code.co_filename):
            found = Place(code.co_filename, tb.tb_lineno, code.co_name)
        tb = tb.tb_next
    return found
