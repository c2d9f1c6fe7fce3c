"""Apply custom Functions under `vmap`: by their own `vmap` method, or by one derived from forward and backward (FUN-33)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, NamedTuple

from xpgrad._aliasing.cells import note_copy
from xpgrad._modes.batch_levels import active_levels, at_levels
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.array import escaped_error
from xpgrad._transforms.batch.batch import batch_class, class_of_depth, enter, leave, lift
from xpgrad.rules.manipulation import moveaxis
from xpgrad.rules.reduction import sum as total


class VmapInfo(NamedTuple):
    """Information about the batch, passed to the `vmap` method of a Function.

    Attributes
    ----------
    batch_size : int
    randomness : str
    """

    batch_size: int
    randomness: str


def check_transformable(cls: Any, name: str) -> None:
    """Raise for a Function whose forward takes `ctx`: transforms call forward and setup_context separately.

    Raises
    ------
    RuntimeError
    """
    msg = (
        "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the setup_context "
        f"staticmethod: in `xpgrad.func.{name}`, give {cls.__name__} a `forward` without `ctx`, and a `setup_context`"
    )
    raise RuntimeError(msg)


def apply_to_batch(base: Any, cls: Any, args: tuple[Any, ...]) -> Any:
    """Apply a Function to arguments, some of which are elements of a batch.

    Parameters
    ----------
    base : type
        `Function` itself: this module cannot import it.
    cls : type
        The user's subclass.
    args : tuple

    Raises
    ------
    RuntimeError
        The subclass has no rule for batches, or two.
    """
    own = cls.vmap is not base.vmap
    if own and cls.generate_vmap_rule:
        msg = (
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap staticmethod; "
            "remove one of them"
        )
        raise RuntimeError(msg)
    if not own and not cls.generate_vmap_rule:
        msg = (
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Override its `vmap` staticmethod, or set "
            "generate_vmap_rule=True if its forward and backward consist of xpgrad's operations"
        )
        raise RuntimeError(msg)
    depth = max(a.depth for a in args if isinstance(a, Tensor))
    level = None
    for a in args:
        if isinstance(a, Tensor) and a.depth == depth and a._array.level is not None:
            if level is not None and level is not a._array.level:
                raise escaped_error()
            level = a._array.level
    below = [a._array.value if isinstance(a, Tensor) and a.depth == depth else a for a in args]
    mapped = [isinstance(a, Tensor) and a.depth == depth and a._array.level is not None for a in args]
    if level is None:  # batched by class only: all elements share the same values
        out = cls.apply(*below)
        return tuple(_lift(o, depth) for o in out) if isinstance(out, tuple) else _lift(out, depth)
    if own:
        return _by_its_own_rule(cls, args, below, mapped, level, depth)
    return _by_a_generated_rule(base, cls, below, mapped, level, depth)


def _lift(x: Any, depth: int) -> Any:
    return lift(x, class_of_depth(type(x), depth)) if isinstance(x, Tensor) else x


def _by_its_own_rule(cls: Any, args: Any, below: list[Any], mapped: list[bool], level: Any, depth: int) -> Any:
    """Apply a Function to a batch by its own method `vmap`, and return elements of the results."""
    dims = tuple(a._array.home if m else None for a, m in zip(args, mapped))
    given = [x if not d else moveaxis(x, 0, d) for x, d in zip(below, dims)]
    returned = cls.vmap(VmapInfo(level.size, level.randomness), dims, *given)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        msg = f"{cls.__name__}.vmap must return a pair (output, out_dims), but got {type(returned).__name__}"
        raise RuntimeError(msg)
    out, out_dims = returned
    several = isinstance(out, tuple)
    outs = out if several else (out,)
    places = out_dims if isinstance(out_dims, (tuple, list)) else (out_dims,) * len(outs)
    if len(places) != len(outs):
        msg = f"{cls.__name__}.vmap returned {len(outs)} outputs, but {len(places)} out_dims; give one per output"
        raise RuntimeError(msg)
    results = []
    for o, d in zip(outs, places):
        if not isinstance(o, Tensor) or d is None:
            results.append(_lift(o, depth))
            continue
        batch = batch_class(class_of_depth(type(o), depth - 1))
        element = enter(moveaxis(o, d, 0) if d else o, level, batch)
        element._array.home = d % o.ndim
        results.append(element)
    return tuple(results) if several else results[0]


class _ElementCtx:
    """The `ctx` that a Function's methods see inside a batch: saved Tensors are elements of it."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()
        self.saved_for_forward: tuple[Any, ...] = ()
        self._nondiff: tuple[Any, ...] = ()
        self._materialize = True

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        self.saved_for_forward = tensors

    def mark_non_differentiable(self, *args: Any) -> None:
        self._nondiff = args

    def mark_dirty(self, *args: Any) -> None:
        msg = "a Function that overwrites its inputs cannot have a generated vmap rule; override its `vmap` staticmethod"
        raise RuntimeError(msg)

    def set_materialize_grads(self, value: bool) -> None:
        self._materialize = value


class _Application:
    """The state of one call of a Function by its generated rule, shared by forward, setup_context, backward and jvp.

    Attributes
    ----------
    mapped : list of bool
        For each argument, whether it holds a batch; otherwise all elements share it.
    depth : int
        The vmap depth of the arguments, including this batch.
    several : bool
        Whether `forward` returned a tuple.
    shapes : list
        The shapes of the elements that `forward` was given; None for other objects.
    views : list of bool
        For each result, whether `forward` returned an argument or a view of one. The caller gets a copy, to which writes raise.
    elements, outs : tuple
        The arguments and results of `forward`, until `setup_context` has run.
    """

    def __init__(self, mapped: list[bool], level: Any, depth: int) -> None:
        self.mapped, self.level, self.depth = mapped, level, depth
        self.several = False
        self.shapes: list[Any] = []
        self.views: list[bool] = []
        self.elements: tuple[Any, ...] = ()
        self.outs: tuple[Any, ...] = ()

    def enter_level(self) -> Any:
        """Return a context manager in which elements of the batch are valid: `vmap` may have returned, as in a backward pass."""
        levels = active_levels()
        return nullcontext() if self.level in levels else at_levels((*levels, self.level))

    def element(self, x: Any, is_mapped: bool, at: int) -> Any:
        """Wrap a batch as an element of depth ``at + 1``; return other values unchanged."""
        if not isinstance(x, Tensor) or not is_mapped:
            return x
        return enter(x, self.level, class_of_depth(type(x._stand_in()), at + 1))

    def whole(self, x: Any, at: int) -> Any:
        """Return the whole batch of an element."""
        return leave(x, self.level, class_of_depth(type(x._stand_in()), at + 1))

    def find_whole(self, saved: Any, inputs: Any, output: Any, at: int) -> tuple[Any, bool]:
        """Return what to save for a saved element, and whether that holds a batch: an input or output itself if it is one."""
        if saved is None:
            return None, False
        for whole, out in zip(output, self.outs):
            if out is saved:
                return whole, True
        for whole, element, is_mapped in zip(inputs, self.elements, self.mapped):
            if element is saved:
                return whole, is_mapped
        return self.whole(saved, at), True

    def gradient(self, g: Any, is_mapped: bool, at: int, shape: tuple[int, ...]) -> Any:
        """Return the gradient of an argument, a batch or its sum if elements share the argument, from an element's; None stays None."""
        if g is None:
            return None
        if g.shape != shape:
            g = PRIMITIVES["sum_to"](g, shape)  # FUN-09: summed over the axes along which the operand was broadcast
        full = self.whole(g, at)
        return full if is_mapped else total(full, axis=0)


def _by_a_generated_rule(base: Any, cls: Any, below: list[Any], mapped: list[bool], level: Any, depth: int) -> Any:
    """Apply the Function of whole batches that is generated from `base` to the values `below`, and return elements of its results.

    Parameters
    ----------
    base, cls : type
        The Function, and the class of Tensors of its operands.
    below : list
        The operands: those that are `mapped` are whole batches.
    mapped : list of bool
    level : BatchLevel
    depth : int
        The number of batches around the call.
    """
    batch = _Application(mapped, level, depth)
    outs = _generate(base, cls, batch).apply(*below)
    results = tuple(batch.element(o, True, depth - 1) for o in outs)
    for result, is_view in zip(results, batch.views):
        if is_view:
            note_copy(result)
    return results if batch.several else results[0]


def _generate(base: Any, cls: Any, batch: _Application) -> Any:
    """Make a Function of whole batches whose methods call those of `cls` on elements."""

    class Generated(base):  # type: ignore[misc]
        generate_vmap_rule = True  # a batch of batches

        @staticmethod
        def forward(*inputs: Any) -> Any:
            at = _deepest(inputs)  # may be less than `batch.depth`: values that all elements share lose a level
            with batch.enter_level():
                elements = [batch.element(x, m, at) for x, m in zip(inputs, batch.mapped)]
                out = cls.forward(*elements)
                batch.several = isinstance(out, tuple)
                batch.shapes = [e.shape if isinstance(e, Tensor) else None for e in elements]
                batch.elements, batch.outs = tuple(elements), out if batch.several else (out,)
                batch.views = [isinstance(o, Tensor) and any(_shares_memory(o, e) for e in elements) for o in batch.outs]
                return tuple(batch.whole(o, at) if isinstance(o, Tensor) else o for o in batch.outs)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            at = _deepest(inputs)
            inner = ctx.inner = _ElementCtx(tuple(ctx.needs_input_grad))
            with batch.enter_level():
                cls.setup_context(inner, batch.elements, batch.outs if batch.several else batch.outs[0])
                for_backward = [batch.find_whole(s, inputs, output, at) for s in inner.saved_tensors]
                for_forward = [batch.find_whole(s, inputs, output, at) for s in inner.saved_for_forward]
            ctx.set_materialize_grads(inner._materialize)
            ctx.save_for_backward(*(value for value, _ in for_backward))
            ctx.save_for_forward(*(value for value, _ in for_forward))
            ctx.recipes = [[is_mapped for _, is_mapped in pairs] for pairs in (for_backward, for_forward)]
            inner.saved_tensors = inner.saved_for_forward = ()
            lost = [o for o, e in zip(output, batch.outs) if any(e is n for n in inner._nondiff)]
            if lost:
                ctx.mark_non_differentiable(*lost)
            batch.elements = batch.outs = ()

        @staticmethod
        def backward(ctx: Any, *gs: Any) -> Any:
            saved = ctx.saved_tensors
            at = _deepest((*gs, *saved))
            inner = ctx.inner
            with batch.enter_level():
                inner.saved_tensors = tuple(batch.element(s, m, at) for s, m in zip(saved, ctx.recipes[0]))
                returned = cls.user_backward()(inner, *(batch.element(g, True, at) for g in gs))
                inner.saved_tensors = ()
                returned = returned if isinstance(returned, tuple) else (returned,)
                fitted = tuple(batch.gradient(g, m, at, s) for g, m, s in zip(returned, batch.mapped, batch.shapes))
            return fitted + returned[len(fitted) :]

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            saved = ctx.saved_tensors
            at = _deepest((*tangents, *saved))
            inner = ctx.inner
            with batch.enter_level():
                inner.saved_for_forward = inner.saved_tensors = tuple(batch.element(s, m, at) for s, m in zip(saved, ctx.recipes[1]))
                out = cls.jvp(inner, *(batch.element(t, m, at) for t, m in zip(tangents, batch.mapped)))
                inner.saved_for_forward = inner.saved_tensors = ()
                return tuple(batch.whole(o, at) if isinstance(o, Tensor) else o for o in (out if isinstance(out, tuple) else (out,)))

    Generated.__name__ = Generated.__qualname__ = cls.__name__
    return Generated


def _shares_memory(x: Any, y: Any) -> bool:
    """Return whether `x` is `y`, or a view or a detached alias of it."""
    alias = y._alias if isinstance(y, Tensor) else None
    return x is y or (alias is not None and alias.cell is not None and x._alias is not None and x._alias.cell is alias.cell)


def _deepest(items: Any) -> int:
    """Return the largest vmap depth among the Tensors of `items`; 0 without Tensors."""
    return max((x.depth for x in items if isinstance(x, Tensor)), default=0)
