"""Run a function once on Tensors, and compute cotangents and tangents from the record.

Arrays and numbers enter as Tensors, and leave as NumPy has them; a value that an outer transform differentiates stays a Tensor. Gradients
follow HIPS autograd: for a real function of complex numbers they are the conjugates of xpgrad's.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable
from typing import Any

from xpgrad._basics.frames import find_user_frame
from xpgrad._modes import state, switches
from xpgrad._modes.batch_levels import active_levels
from xpgrad._modes.running import run_transformed
from xpgrad._operations.lift import new_tensor
from xpgrad._tape.edges import GradientEdge
from xpgrad._tape.engine import run_pass
from xpgrad._tape.leaf import AccumulateGrad
from xpgrad._tape.node import walk
from xpgrad._tape.task import OtherLeaves, Pass
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.passes import gradients
from xpgrad._transforms.forward.levels import new_level
from xpgrad.dialects.hips._arrays import ARRAY, Box, box, np, raw_of
from xpgrad.dialects.hips._levels import PASSES, RUNS, Ended, Start, Trace
from xpgrad.func._reverse import basis, has_outer_history, make_input, node_of, release
from xpgrad.func._tree import LEAF, Structure, flatten, unflatten
from xpgrad.rules.creation import zeros_like

_ARRAY = np.ndarray
_SCALARS: Any = (float, complex, np.floating, np.complexfloating, np.ndarray)


# -- data in ---------------------------------------------------------------------------------------------------------------


def as_input(name: str, x: Any) -> Any:
    """Return a leaf of the differentiated argument as a Tensor: a floating-point or complex array or number, or a Tensor.

    Raises
    ------
    TypeError
        For anything else, Python's integers among them. Arrays of integers become floating ones.
    """
    make = Box.type_mappings.get(x.__class__)
    if make is not None:
        x = make(x, None, None)
    if isinstance(x, Tensor):
        if x.dtype.differentiable:
            return x
    elif isinstance(x, _SCALARS) and (out := box(x)) is not None:
        return out
    what = f"an array of dtype {x.dtype}" if hasattr(x, "dtype") else f"{type(x).__name__} {x!r:.40}"
    advice = "write a float, such as 1.0" if isinstance(x, (int, np.integer)) else "give floating or complex arrays and numbers"
    msg = f"{name}: cannot differentiate with respect to {what}; {advice}, or tuples, lists and dicts of them"
    raise TypeError(msg)


def _start_leaf(raw: Any) -> Any:
    """Return a float array as a new leaf: a fast path of `as_input` and `_begin` without transforms."""
    out = ARRAY._wrap(raw)
    out._node = Start(out)
    return out


def _begin(x: Any) -> Any:
    """Return a Tensor like `x` with respect to which one can differentiate; outer derivatives pass through it."""
    if x._node is not None or x.depth or state.carries_tangents() or active_levels() or x.is_inference():
        return make_input(x)
    out = x._wrap(x.backend.own(x))
    out._node = Start(out)  # the caller's array is safe: in-place writes to a leaf that requires grad are errors
    return out


def begin_in(trace: Trace, x: Any) -> Any:
    """Return a Tensor like `x` that is an argument of a run that the program makes; outer derivatives pass through it."""
    out = _begin(x)
    trace.begin(out)
    return out


def _has_outer_history(outs: list[Any], inner: list[Any]) -> bool:
    """Return whether results have a history that an outer derivative needs, once the function has run."""
    if any(x.depth or x._node.__class__ is not Ended for x in inner):
        return has_outer_history(outs, inner, Ended)
    return any(node.is_leaf and node.__class__ is not Ended for node in walk([o._node for o in outs if o._node is not None]))


def as_cotangent(name: str, value: Any, like: Any) -> Any:
    """Convert a value to a cotangent or tangent of a Tensor.

    Raises
    ------
    ValueError, TypeError
        The shapes differ, or the value is complex and the Tensor real.
    """
    if isinstance(value, Tensor):
        given: Any = value
        if value.dtype is not like.dtype and (like.dtype.is_complex or not value.dtype.is_complex):
            given = value._cast(like.dtype)
    else:
        raw = np.asarray(value)
        if raw.dtype.kind not in "biufc":
            msg = f"{name}: expected an array or a number of shape {like.shape}, but got {type(value).__name__} {value!r:.40}"
            raise TypeError(msg)
        if raw.dtype.kind == "c" and not like.dtype.is_complex:
            msg = f"{name}: got complex numbers where the function is real; give their real part"
            raise TypeError(msg)
        given = new_tensor(ARRAY, raw.astype(np.dtype(like.dtype), copy=False))
    if given.shape != like.shape:
        msg = f"{name}: expected shape {like.shape}, but got {given.shape}"
        raise ValueError(msg)
    return given if given.device == like.device else given.to_device(like.device)


#: The cotangent of a number, by its dtype; read-only, since it may be returned as a gradient without a copy.
_ONES: dict[Any, Any] = {}


def _seed(raw: Any) -> Any:
    """Return the cotangent 1 of a number."""
    found = _ONES.get(raw.dtype)
    if found is None:
        found = _ONES[raw.dtype] = np.ones((), raw.dtype)
        found.flags.writeable = False
    return found


# -- data out --------------------------------------------------------------------------------------------------------------


def getval(x: Any) -> Any:
    """Return the array or number behind `x`, without history; return other objects unchanged."""
    return raw_of(x) if isinstance(x, Tensor) else x


def convert_results(tree: Any, keep: bool = False) -> Any:
    """Convert results to what the caller gets: NumPy arrays and numbers, or Tensors if `keep`, inside an outer derivative."""
    if isinstance(tree, Tensor):
        return _convert_result(tree, keep)
    if isinstance(tree, (tuple, list, dict)):
        leaves, structure = flatten(tree)
        return unflatten(structure, [_convert_result(x, keep) for x in leaves])
    return tree


def _convert_result(x: Any, keep: bool) -> Any:
    if not isinstance(x, Tensor):
        return x
    if x.stage or state.carries_tangents() or (keep and x._node is not None):  # batched, captured, or differentiated by an outer transform
        return release(x, keep)
    return raw_of(x)


def _gradient(g: Any, like: Any, keep: bool) -> Any:
    """Convert a gradient to what the caller gets: a new array, zeros like `like` for None, or a Tensor if `keep`."""
    if g is None:
        if not like.stage and not state.carries_tangents():
            return np.zeros(like.shape, np.dtype(like.dtype))
        return zeros_like(like)
    if g.dtype.is_complex:
        g = np.conjugate(g)
    g = _convert_result(g, keep)
    if g.__class__ is _ARRAY and (g.base is not None or not g.flags.writeable):
        return g.copy()
    return g


def _plain_gradient(g: Any, like: Any) -> Any:
    """Convert a raw gradient to what the caller gets."""
    if g is None:
        return np.zeros(like.shape, np.dtype(like.dtype))
    if g.dtype.kind == "c":
        return np.conjugate(g)
    return g.copy() if g.__class__ is _ARRAY and (g.base is not None or not g.flags.writeable) else g


class NoDerivative(TypeError):
    """Raised if a function returns integers, bools or other objects.

    Attributes
    ----------
    value : object
        What it returned.
    """

    value: Any = None


def leaves_of(name: str, out: Any) -> tuple[list[Any], Structure]:
    """Return the leaves of a function's result (Tensors, and arrays and numbers without history) and its structure.

    Raises
    ------
    TypeError
        For results that have no derivative: integers, bools, None, text.
    """
    leaves, structure = flatten(out)
    for i, x in enumerate(leaves):
        if isinstance(x, Tensor):
            if x.dtype.differentiable:
                continue
        elif isinstance(x, _SCALARS) and np.asarray(x).dtype.kind in "fc":
            leaves[i] = new_tensor(ARRAY, np.asarray(x))
            continue
        elif isinstance(x, np.ndarray) and x.dtype.kind == "O":
            msg = f"{name}: the function returned an array of objects; make one of values with `array` of xpgrad.dialects.hips.numpy"
            raise TypeError(msg)
        what = f"an array of dtype {x.dtype}" if hasattr(x, "dtype") else f"{type(x).__name__} {x!r:.40}"
        msg = f"{name}: the function returned {what}, which has no derivative; return floating or complex arrays and numbers"
        error = NoDerivative(msg)
        error.value = convert_results(out)
        raise error
    return leaves, structure


def warn_independent() -> None:
    """Warn at the user's line, in HIPS autograd's words, that a function's value has no history, so that its derivative is zero."""
    frame = find_user_frame(sys._getframe(1))
    file, line = ("xpgrad", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
    warnings.warn_explicit("Output seems independent of input.", UserWarning, file, line)


# -- reverse ---------------------------------------------------------------------------------------------------------------


class Record:
    """One run of a function of one argument, differentiable in reverse.

    Parameters
    ----------
    name : str
        What is asked for, for messages.
    function : callable
    x : array, number, Tensor, or nested tuples, lists and dicts of them

    Attributes
    ----------
    out : object
        What the function returned; `outs` are its leaves, as Tensors, in the arrangement `structure`.
    inputs : list of Tensor
        The leaves of `x`, as Tensors; `inner` are those that the function was given.
    cut : bool
        Whether the function took a value without this level, by `x._value`.
    """

    __slots__ = ("_keep", "cut", "inner", "inputs", "name", "out", "outs", "recorded", "shape", "structure")

    def __init__(self, name: str, function: Callable[..., Any], x: Any) -> None:
        self.name, self.cut = name, False
        mode, runs = state.current(), RUNS.get()
        single = x.__class__ is _ARRAY or x.__class__ is float
        given, self.shape = ([x], LEAF) if single else flatten(x)
        try:
            if mode is None and not active_levels():
                self.inner, self.inputs = inner, inputs = [], []
                for leaf in given:
                    raw = leaf if leaf.__class__ is _ARRAY else np.asarray(leaf) if leaf.__class__ is float else None
                    if raw is not None and raw.dtype.kind == "f":
                        start = _start_leaf(raw)
                        inputs.append(start)
                    else:
                        inputs.append(as_input(name, leaf))
                        start = _begin(inputs[-1])
                    inner.append(start)
            else:
                self.inputs = [as_input(name, leaf) for leaf in given]
                state.put(state.mode_with(inference=False, recording=True))
                self.inner = [_begin(t) for t in self.inputs]
            RUNS.set((*runs, self))
            self.out = run_transformed(name, self.inner, function, self.inner[0] if single else unflatten(self.shape, self.inner))
        finally:
            state.put(mode)
            RUNS.set(runs)
        if self.out.__class__ is ARRAY and self.out._node is not None:
            self.outs, self.structure = [self.out], LEAF
        else:
            self.outs, self.structure = leaves_of(name, self.out)
            if not any(o.requires_grad for o in self.outs):
                warn_independent()
        self.recorded = mode is None or mode.recording
        self._keep: bool | None = None if self.recorded else False
        self._mark(Ended)

    def _mark(self, cls: type) -> None:
        """Give the nodes at which histories begin the class `Start` or `Ended`; an argument that depends on outer ones has none."""
        for t in self.inner:
            node = node_of(t)
            if isinstance(node, Start) or (node.__class__ is AccumulateGrad and node.private):
                node.__class__ = cls

    @property
    def keep(self) -> bool:
        """Whether an outer derivative needs the history of the results; computed at first use, by a walk over the graph."""
        if self._keep is None:
            self._keep = _has_outer_history(self.outs, self.inner)
        return self._keep

    @property
    def value(self) -> Any:
        """The result as the caller gets it."""
        return convert_results(self.out, self.keep)

    def auxiliary_values(self, aux: Any) -> tuple[Any, bool]:
        """Convert the further values `aux` of the function to the caller's types; also return whether one of them has a history."""
        leaves, structure = flatten(aux)
        kept = [isinstance(x, Tensor) and self.recorded and x.requires_grad and _has_outer_history([x], self.inner) for x in leaves]
        return unflatten(structure, [_convert_result(x, k) for x, k in zip(leaves, kept)]), any(kept)

    @property
    def size(self) -> int:
        """The number of real numbers in the result."""
        return sum(math.prod(o.shape) * (2 if o.dtype.is_complex else 1) for o in self.outs)

    @state.restoring
    def cotangents(self, seeds: list[Any], last: bool = True, batched: bool = False) -> list[Any]:
        """Return the gradient with respect to each leaf of the argument from one cotangent per leaf of the result, in xpgrad's convention.

        Parameters
        ----------
        seeds : list of Tensor or None
            None stands for a cotangent of 1, for leaves with one element.
        last : bool
            Release what the pass needs.
        batched : bool
            Whether the seeds, and so the gradients, have an additional first axis.
        """
        needed = [(o, s) for o, s in zip(self.outs, seeds) if o.requires_grad]
        if not needed or not self.inner:
            return [None] * len(self.inner)
        create = state.is_grad_enabled() and (self.keep or any(s is not None and s.requires_grad for _, s in needed))
        runs, passes = RUNS.get(), PASSES.get()
        if self.cut:
            PASSES.set((*passes, self))
        if create:  # a rule of a primitive may take `x._value` of what its function computed, which has this level
            RUNS.set((*runs, self))
        try:
            self._mark(Start)
            with switches.recorded():
                return gradients(
                    [o for o, _ in needed], self.inner, [s for _, s in needed], retain_graph=True if not last or create else None,
                    create_graph=create, allow_unused=True, is_grads_batched=batched,
                )  # fmt: skip
        finally:
            self._mark(Ended)
            RUNS.set(runs)
            PASSES.set(passes)

    def _plain(self, seeds: list[Any], last: bool) -> list[Any] | None:
        """Return the result of `cotangents` as raw arrays, without the checks of a request; None inside transforms.

        Parameters
        ----------
        seeds : list
            The cotangents of the outputs.
        last : bool
            Whether the graph may be freed.

        Notes
        -----
        If an outer derivative is being computed, the pass notices because it reaches leaves that are not its targets.
        """
        if self._keep or self.cut or state.current() is not None or active_levels():
            return None
        roots, raw = [], []
        for o, s in zip(self.outs, seeds):
            if o.__class__ is not ARRAY or not (
                s is None or (s.__class__ is ARRAY and s._node is None and s._array.dtype == o._array.dtype)
            ):
                return None
            if o._node is not None:
                roots.append(o._node)
                raw.append(_seed(o._array) if s is None else s._array)
        targets = []
        for t in self.inner:
            node = t._node
            if node.__class__ is not Ended:
                return None
            targets.append(node)
        if not roots:
            return None
        task = Pass(graph=False, retain=not last, targets=targets, capture=True, create=False)
        task.alone = self.recorded
        try:
            self._mark(Start)
            found = run_pass(task, roots, raw)
        except OtherLeaves:
            return None
        finally:
            self._mark(Ended)
        self._keep = False
        return found if len(found) == 1 else [task.captured.get(node) for node in targets]

    def pull_back(self, seeds: list[Any], last: bool = True) -> Any:
        """Return the gradients for cotangents (`seeds`) as the caller gets them, in the argument's structure; `last` frees the graph."""
        found = self._plain(seeds, last)
        if found is not None and self.shape is LEAF:
            return _plain_gradient(found[0], self.inputs[0])
        if found is None:
            out = [_gradient(g, x, True) for g, x in zip(self.cotangents(seeds, last), self.inputs)]
        else:
            out = [_plain_gradient(g, x) for g, x in zip(found, self.inputs)]
        if self.shape is LEAF:
            return out[0]
        if len(out) > 1:  # one array may be the gradient of several leaves
            seen: set[int] = set()
            for i, g in enumerate(out):
                out[i] = g.copy() if id(g) in seen and isinstance(g, _ARRAY) else g
                seen.add(id(g))
        return unflatten(self.shape, out)

    def vjp(self, cotangent: Any) -> Any:
        """Return the product of a cotangent and the Jacobian.

        Raises
        ------
        ValueError, TypeError
            For a cotangent that does not fit the result.
        """
        given, structure = flatten(cotangent)
        if structure != self.structure:
            kinds = f"{type(cotangent).__name__}, not {type(self.out).__name__}"
            msg = f"{self.name}: the cotangent is arranged in another way than the result: {kinds}"
            raise ValueError(msg)
        seeds = [as_cotangent(self.name, c, o) for c, o in zip(given, self.outs)]
        seeds = [np.conjugate(s) if s.dtype.is_complex else s for s in seeds]
        cotangents = {id(s._array) for s in seeds}  # a cotangent may be returned as a gradient without a copy
        leaves, structure = flatten(self.pull_back(seeds, last=False))
        return unflatten(structure, [leaf.copy() if id(leaf) in cotangents else leaf for leaf in leaves])

    def rows(self, alone: tuple[type, ...] = ()) -> Any:
        """Return the Jacobian of one array by another, with shape ``(*out.shape, *x.shape)``.

        Parameters
        ----------
        alone : tuple of type
            The classes of nodes that cannot take part in one pass for all rows.
        """
        (out,), (x,) = self.outs, self.inputs
        n = math.prod(out.shape)
        shape = (*out.shape, *x.shape)
        if not n or not out.requires_grad:
            return _gradient(None, np.broadcast_to(x, shape), True)
        (seeds,) = basis([out], 0, n)
        if any(isinstance(node.owner if hasattr(node, "owner") else node, alone) for node in walk([node_of(out)])):
            rows = [self.cotangents([seeds[i]], last=False)[0] for i in range(n)]
            jacobian = np.stack([zeros_like(x) if r is None else r for r in rows])
        else:
            (found,) = self.cotangents([seeds], batched=True)
            jacobian = found
        return _gradient(None, np.broadcast_to(x, shape), True) if jacobian is None else _gradient(np.reshape(jacobian, shape), x, True)


@state.restoring
def pull_back_from(g: Any, end: Any) -> Any:
    """Return the gradient with respect to the only argument of the innermost of the program's own runs that a node of the graph reaches.

    Raises
    ------
    TypeError
        It reaches no such argument, or several.
    ValueError
        The gradient does not fit the argument, because `g` does not fit the value.
    """
    nodes = list(walk([end]))
    starts = [node for node in nodes if node in Trace.of]
    run = max((Trace.of[node] for node in starts), key=lambda run: run.depth, default=None)
    starts = [node for node in starts if Trace.of[node] is run]
    if run is None or len(starts) != 1:
        msg = f"backward_pass: this node depends on {len(starts)} arguments that `tracer.new_box` made, not on one; use `make_vjp`"
        raise TypeError(msg)
    (start,) = starts
    seed = g if isinstance(g, Tensor) else new_tensor(ARRAY, np.asarray(g))
    out = ARRAY._wrap(seed._array)  # stands for the value that the node computed
    out._node = end
    keep = seed.requires_grad or any(node.is_leaf and node is not start for node in nodes)
    passes = PASSES.get()
    try:
        PASSES.set((*passes, run) if run.cut else passes)
        with switches.recorded():
            seed = np.conjugate(seed) if seed.dtype.is_complex else seed
            (found,) = gradients([out], [GradientEdge(start, 0)], [seed], retain_graph=True, create_graph=keep, allow_unused=True)
    finally:
        PASSES.set(passes)
    like = Trace.values[start]
    if found is not None:
        # A node does not know the shape of its value, so that a cotangent that does not fit is noticed here.
        if found.shape != like.shape or (found.dtype.is_complex and not like.dtype.is_complex):
            msg = (
                f"backward_pass: the gradient has shape {found.shape} and dtype {found.dtype}, but the argument has shape {like.shape} and "
                f"dtype {like.dtype}; give a cotangent with the shape of the value, which is complex only if the value is"
            )
            raise ValueError(msg)
        found = found._cast(like.dtype)
    return _gradient(found, like, keep)


# -- forward ---------------------------------------------------------------------------------------------------------------


@state.restoring
def push_forward(name: str, function: Callable[..., Any], x: Any, tangent: Any) -> tuple[Any, Any]:
    """Return the value of a function of one argument, and its derivative along a tangent in forward mode.

    Raises
    ------
    ValueError, TypeError
        For arguments, tangents and results that do not fit.
    """
    given, structure = flatten(x)
    points = [as_input(name, leaf) for leaf in given]
    along, other = flatten(tangent)
    if other != structure:
        msg = f"{name}: the tangent is arranged in another way than the argument: {type(tangent).__name__}, not {type(x).__name__}"
        raise ValueError(msg)
    directions = [as_cotangent(name, t, p) for t, p in zip(along, points)]
    with new_level() as level:
        duals = [level.dual(p, t) for p, t in zip(points, directions)]
        out = run_transformed(name, (), function, unflatten(structure, duals))
        outs, shape = leaves_of(name, out)
        found = [level.tangent(y) for y in outs]
    if all(t is None for t in found):
        warn_independent()
    slopes = [zeros_like(y) if t is None else t for y, t in zip(outs, found)]
    return convert_results(out, True), convert_results(unflatten(shape, slopes), True)
