"""Forward mode: tangents, computed together with the values, operation by operation (group M).

A `Level` is one forward differentiation: it stores the tangents of Tensors. While levels are active, the result of each operation gets
its tangent at every level, from the outermost to the innermost, by Tensor operations at the levels outside it only. So levels nest, and
perturbations of different levels are never confused. The tangent of a result follows from the row's reverse formulas; see `jvps`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from contextlib import nullcontext
from functools import partial
from typing import Any

from xpgrad._aliasing.cells import UNRECORDED, ForbiddenView
from xpgrad._modes import state, switches
from xpgrad._modes.captures import as_captured
from xpgrad._modes.setting import Setting
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._rows.row import Row
from xpgrad._tape.links import Link
from xpgrad._tape.node import Unpacked
from xpgrad._tensor.tensor import Tensor
from xpgrad._transforms.batch.batch import enter, leave, raise_to_common
from xpgrad._transforms.forward.jvps import as_tuple, jvp_of, of_dtype
from xpgrad.rules.creation import zeros_like


class Level:
    """The tangents of one forward differentiation.

    A Tensor with a node has its tangent stored under that node, so that another Tensor object that a backward pass unpacks from a saved
    value has it as well. Other Tensors, and duals, have it under themselves. A view of a Tensor with a tangent has the same view of that
    tangent, derived on request, so that writes through views and bases agree (FWD-12). All references are weak, and keyed by id because
    `==` on Tensors is elementwise.

    Attributes
    ----------
    outer : tuple of Level
        The levels outside this one, at which its tangents may have tangents.
    user : bool
        Whether it belongs to `autograd.forward_ad`, which allows one at a time.
    records : bool
        Whether its tangents have a history even if the mode does not record: forward mode ignores `no_grad`, and `linearize` transposes.
    keeps : bool
        Whether its tangents are kept after its end, for functions that a backward pass calls again.
    root : Level
        This level, or the one of which it is a copy (`reopened`).
    """

    __slots__ = ("__weakref__", "_ended", "_nodes", "_original", "_tensors", "keeps", "outer", "records", "user")

    def __init__(self, outer: tuple[Level, ...], user: bool = False, records: bool = False) -> None:
        self.outer = outer
        self.user = user
        self.records = records
        self.keeps = False
        self._original: Level | None = None
        self._ended: Any = None  # the tables below, once it has ended
        self._nodes: dict[Any, Any] = {}  # (id of the node, output number) -> (weak reference to the node, tangent)
        self._tensors: dict[int, Any] = {}  # id of the Tensor, or of a view's alias -> (weak reference to the Tensor, tangent or None)

    @property
    def active(self) -> bool:
        """Whether any Tensor has a tangent."""
        return bool(self._nodes or self._tensors)

    def close(self) -> None:
        """Drop all tangents (FWD-07), or keep them for `reopened`."""
        if self.keeps:
            self._ended = self._nodes, self._tensors
            self._nodes, self._tensors = {}, {}
        self._nodes.clear()
        self._tensors.clear()

    # -- after its end, where a loop runs its steps again, or a checkpoint its function -------------------------------

    @property
    def root(self) -> Level:
        return self._original or self

    def reopened(self, outer: tuple[Level, ...]) -> Level:
        """Return a copy of this level, with other levels outside, at which Tensors that still exist have the tangents that they had."""
        found = Level(outer, self.user, self.records)
        tables = self._ended or (self._nodes, self._tensors)
        found._original, found._nodes, found._tensors = self.root, *map(dict, tables)
        return found

    # -- what transforms ask ---------------------------------------------------------------------------------------

    def dual(self, x: Any, tangent: Any) -> Any:
        """Return a Tensor with the memory and history of `x` and a tangent; it keeps its tangents of outer levels.

        Raises
        ------
        ValueError
            If a dtype is not differentiable (FWD-03).
        RuntimeError
            If the shapes (FWD-04) or the devices differ.
        """
        for name, t in (("primal", x), ("tangent", tangent)):
            if not t.dtype.differentiable:
                msg = f"Expected {name} to be floating point or complex, but got: {t.dtype}; convert it with `xpgrad.astype`"
                raise ValueError(msg)
        if tangent.shape != x.shape:
            raise RuntimeError(_size_mismatch(x, tangent))
        if tangent.device != x.device:
            msg = f"a tangent must live where its primal lives, on {x.device}, but is on {tangent.device}; move it with `to_device`"
            raise RuntimeError(msg)
        x, tangent = as_captured(x), as_captured(tangent)
        if x.depth or tangent.depth:
            return self._dual_of_elements(x, tangent)
        if _steps(tangent) != _steps(x):
            with with_levels(self.outer):
                tangent = PRIMITIVES["clone_laid_out"](tangent, x._array)  # as in PyTorch, the tangent has the layout of the primal
        out = PRIMITIVES["alias"](x._stand_in())
        self.set_tangent(out, tangent)
        return out

    def _dual_of_elements(self, x: Any, tangent: Any) -> Any:
        """Apply `dual` inside `vmap`, to the Tensors that hold the batch."""
        both = raise_to_common([x, tangent])
        cls = type(both[0])
        levels = [t._array.level for t in both]
        level = levels[1] if levels[0] is None else levels[0]
        if level is None:
            return cls.backend.wrap(cls.backend.raw(self.dual(*(t._array.value for t in both)), None))
        return enter(self.dual(*(leave(t, level, cls) for t in both)), level, cls)

    def tangent(self, x: Any) -> Any:
        """Return the tangent of a Tensor, or None."""
        if not self.active:
            return None
        if x.depth:
            t = self.tangent(x._array.value)
            return None if t is None else x.backend.wrap(x.backend.raw(t, x._array.level))
        with with_levels(self.outer, self.records):
            return self.find(x)

    def primal(self, x: Any) -> Any:
        """Return a Tensor with the memory and history of `x`, without a tangent at this level."""
        if x.depth:
            return x.backend.wrap(x.backend.raw(self.primal(x._array.value), x._array.level))
        out = PRIMITIVES["alias"](x._stand_in())
        self.set_tangent(out, None)
        return out

    # -- the tables (called where the levels outside of this one are active) ------------------------------------------

    def find(self, x: Any) -> Any:
        """Return the tangent of `x`, or None; a view's is derived from that of its base."""
        steps = []
        while True:
            known, found = self._find_entry(x)
            alias = x._alias
            if known or alias is None or alias.parent is None:
                break
            steps.append(x)
            x = alias.parent
        if found is None:
            return None
        for view in reversed(steps):
            row = view._alias.row
            if row is not None:
                constant = view._alias.forbidden in UNRECORDED and not self.records  # as in PyTorch, a constant from the start
                with switches.no_grad() if constant else nullcontext():
                    found = getattr(found, row.method)(*view._alias.args)
            mode = state.current()
            if view.fresh is None and view._node is not None and state.records(mode):
                self._put_node(view._node, found)
        return found

    def _find_entry(self, x: Any) -> tuple[bool, Any]:
        """Return whether this very Tensor has an entry, and its tangent."""
        entry = self._tensors.get(_key(x))
        node = None if x.fresh is not None else x._node  # a stale view does not have the node of its present value yet
        if entry is not None and entry[0]() is not None:
            if node is not None and entry[1] is not None and (id(node.owner), node.output_nr) not in self._nodes:
                self._put_node(node, entry[1])
            return True, entry[1]
        if node is None:
            node = getattr(x, "_dead_node", None)  # `requires_grad_(False)` does not change values
        while isinstance(node, (Link, Unpacked)):  # a saved value of a graph that is cut: its tangent is that of the value outside
            node = node.inner if isinstance(node, Link) else node._owner
        if node is not None:
            entry = self._nodes.get((id(node.owner), node.output_nr))
            if entry is not None and entry[0]() is not None:
                return True, entry[1]
        return False, None

    def set_result_tangent(self, x: Any, tangent: Any) -> None:
        """Store the tangent of an operation's result."""
        node = None if x.fresh is not None else x._node
        if node is None or _key(x) in self._tensors:
            self.set_tangent(x, tangent)
        else:
            self._put_node(node, tangent)

    def set_tangent(self, x: Any, tangent: Any) -> None:
        """Store a tangent, or None, for this very Tensor, even if it is a view."""
        if x.depth:
            _, tangent = raise_to_common([x, tangent])
            cls, level = type(x), tangent._array.level
            if x._array.level is None and level is not None:  # the elements share the value, but not the tangent
                x._array = cls.backend.raw(leave(x, level, cls), level)
            level = x._array.level
            self.set_tangent(x._array.value, tangent._array.value if level is None else leave(tangent, level, cls))
            return
        key, table = _key(x), self._tensors
        # The callback is not Python code, in which an interrupt would be printed instead of raised.
        table[key] = (weakref.ref(x, partial(table.pop, key)), tangent)
        if tangent is not None and x.fresh is None and x._node is not None:
            self._put_node(x._node, tangent)

    def _put_node(self, node: Any, tangent: Any) -> None:
        owner, table = node.owner, self._nodes
        key = (id(owner), node.output_nr)
        table[key] = (weakref.ref(owner, partial(table.pop, key)), tangent)

    def forget(self, x: Any) -> None:
        """Drop the stored tangents of a Tensor that no longer has a node."""
        self._tensors.pop(_key(x), None)
        node = getattr(x, "_dead_node", None)
        if node is not None:
            self._nodes.pop((id(node), 0), None)

    def find_holder(self, x: Any) -> tuple[Any, tuple[Any, ...]]:
        """Return the Tensor whose tangent contains that of `x`, and the chain of views that leads from it to `x`."""
        chain = []
        while x._alias is not None and x._alias.parent is not None and _key(x) not in self._tensors:
            if x._alias.row is not None:
                chain.append((x._alias.row.name, x._alias.args))
            x = x._alias.parent
        return x, tuple(reversed(chain))


def _key(x: Any) -> int:
    """Return the key of a Tensor: its id, or for a view that of its alias, which its stand-in shares (`_aliasing.stale`)."""
    alias = x._alias
    return id(x) if alias is None or alias.parent is None else id(alias)


def _steps(x: Any) -> Any:
    """Return the strides along axes longer than 1; None if the backend has no strides."""
    strides = x.backend.strides(x._array)
    return None if strides is None else [s for s, n in zip(strides, x.shape) if n > 1]


def _size_mismatch(x: Any, tangent: Any) -> str:
    return (
        "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is "
        f"of size {list(x.shape)} while the given forward gradient is of size {list(tangent.shape)}."
    )


def keep_tangents(levels: Iterable[Level]) -> None:
    """Keep the tangents of these levels after their end, for `reopen`."""
    for level in levels:
        level.keeps = True


def reopen(levels: Iterable[Level]) -> tuple[Level, ...]:
    """Return levels of an earlier call: those that are active, and copies of the others."""
    mode = state.current()
    known = {} if mode is None else {level.root: level for level in mode.levels}
    found: dict[Level, Level] = {}
    for level in levels:
        found[level] = known.get(level.root) or level.reopened(tuple([found.get(o, o) for o in level.outer]))
    return tuple(found.values())


def with_levels(levels: tuple[Level, ...], records: bool = False) -> Setting[Any]:
    """Return a context manager in which only these levels are active; with `records`, operations are always recorded.

    A selective checkpoint is not asked about operations on tangents, because their number depends on the active levels.
    """
    changes = {"recording": True} if records else {}
    return Setting(state.VARIABLE, state.mode_with(levels=Levels(levels), selecting=None, **changes))


class new_level:  # noqa: N801 (a context)
    """Context manager: a level inside those that are active; its tangents are dropped on exit.

    Operations inside run as if outside inference mode, which would stop the level; an `inference_mode` entered inside does stop it. With
    `user`, it is the level of `autograd.forward_ad`, unless one is active already.
    """

    def __init__(self, records: bool = False, *, user: bool = False) -> None:
        mode = state.current()
        outer = () if mode is None else mode.levels
        self.level = Level(outer, records=records, user=user and not any(level.user for level in outer))
        inference = mode is not None and mode.inference
        changes = {"inference": False, "recording": False} if inference else {}
        self._setting: Setting[Any] = Setting(state.VARIABLE, state.mode_with(levels=Levels((*outer, self.level)), **changes))

    def __enter__(self) -> Level:
        self._setting.__enter__()
        return self.level

    def __exit__(self, *exc: object) -> None:
        self._setting.__exit__()
        self.level.close()


def _place_tangent(level: Level, x: Any, tangent: Any) -> tuple[Any, Any]:
    """Return the Tensor that holds the tangent of `x`, and the tangent to give it so that `x` has `tangent`."""
    holder, chain = level.find_holder(x)
    if holder is x:
        return x, tangent
    whole = level.find(holder)
    whole = zeros_like(holder) if whole is None else whole
    return holder, PRIMITIVES["written_through"](whole, of_dtype(tangent, whole), chain)


def _settle_output(
    level: Level, title: str, k: int, out: Any, result: Any, t: Any, args: tuple[Any, ...], given: list[Any], dirty: tuple[Any, ...],
    nondiff: tuple[Any, ...], unchanged: list[Any],
) -> None:  # fmt: skip
    """Check and store the tangent `t` that a `jvp` returned for one output.

    Parameters
    ----------
    level : Level
    title : str
        The name of the Function's nodes.
    k : int
        The number of the output.
    out, result : object
        What `apply` returns, and what `forward` returned.
    t : Tensor or None
    args, given : sequence
        The arguments, and their tangents.
    dirty, nondiff : tuple of Tensor
        As declared by `forward`.
    unchanged : list of Tensor
        The given tangents to which the `jvp` has not written.
    """
    if t is None:
        return
    if not isinstance(t, Tensor):
        msg = f"Function's jvp returned {type(t).__name__} at position {k + 1}; a tangent is a Tensor or None"
        raise TypeError(msg)
    if not isinstance(out, Tensor) or not out.dtype.differentiable or any(result is n for n in nondiff):
        msg = (
            f"Function's jvp returned a gradient at position {k + 1}, but the corresponding forward output is not a differentiable Tensor. "
            "You should return None at that position instead."
        )
        raise RuntimeError(msg)
    if t.shape != out.shape:
        raise RuntimeError(_size_mismatch(out, t))
    if any(result is d for d in dirty):
        if not any(t is known for a, known in zip(args, given) if a is result) or any(t is known for known in unchanged):
            msg = (
                "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input "
                "inplace, then the jvp function must modify the corresponding gradient inplace."
            )
            raise RuntimeError(msg)
        Levels.settle([(level, *_place_tangent(level, result, t))])
        return
    viewed = [known for a, known in zip(args, given) if isinstance(a, Tensor) and known is not None and _views(result, a)]
    if viewed:
        if not any(t is not known and _views(t, known) for known in viewed):
            msg = (
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view. Return a view of "
                "the tangent, e.g. `tangent[...]`"
            )
            raise RuntimeError(msg)
        if state.is_grad_enabled() and out._alias.forbidden in UNRECORDED:  # made in `forward`, which does not record, but `jvp` does
            out._alias.forbidden = ForbiddenView(f"Output {k} of {title}", custom=True)
        if level.find(out) is None:  # otherwise it has the view of the argument's tangent
            Levels.settle([(level, *_place_tangent(level, out, t))])
        return
    level.set_tangent(out, t)


def _views(x: Any, y: Any) -> bool:
    """Return whether `x` is `y` or a view of the same memory."""
    return x is y or (x._base is not None and x._base is (y if y._base is None else y._base))


class Levels(tuple[Level, ...]):
    """The active levels, outermost first: `Mode.levels`, through which lower layers call forward mode."""

    __slots__ = ()

    def levels_outside(self, i: int) -> Levels:
        """Return the levels outside the i-th."""
        return Levels(self[:i])

    @property
    def running(self) -> bool:
        """Whether operations compute tangents in this context; inference mode stops them."""
        mode = state.current()
        return mode is not None and not mode.inference and bool(mode.levels)

    # -- operations --------------------------------------------------------------------------------------------------

    def set_tangents(self, mode: Any, out: Any, row: Row, operands: tuple[Any, ...], statics: tuple[Any, ...]) -> None:
        """Set the tangents of an operation's result; see `Mode.finish_operation`."""
        outs = out if out.__class__ is tuple else (out,)
        if not row.differentiable or outs[0].depth:  # the Tensor that holds the batch carries the tangents of its elements
            return
        if row.is_view and out._node is None and out._alias is not None and out._alias.parent is not None:
            return  # the tangent of a view is derived on request
        flat = operands[0] if row.varargs else operands
        for i, level in enumerate(self):
            if not level.active:
                continue
            primals = flat
            if level.records and not mode.recording:
                with with_levels(
                    self.levels_outside(i)
                ):  # views without a history: unrecorded operands are constants for the tangent as well
                    primals = tuple(x[...] if isinstance(x, Tensor) and x.requires_grad else x for x in flat)
            before = state.current()
            try:
                state.put(self._mode_outside(before, i))
                tangents, known = [], set()
                for x in flat:
                    t = of_dtype(level.find(x), x) if isinstance(x, Tensor) else None
                    tangents.append(t)
                    if t is not None:
                        known.add(id(t))
                if not known:
                    continue
                for o, t in zip(outs, jvp_of(row, primals, tangents, statics, outs)):
                    if t is not None and o.dtype.differentiable:
                        # As in PyTorch the tangent is a copy, because the user may write to the one given to `make_dual`.
                        level.set_result_tangent(o, t.clone() if id(t) in known and not row.is_view else of_dtype(t, o))
            finally:
                state.put(before)

    def _mode_outside(self, mode: Any, i: int) -> Any:
        """Return the mode for computing tangents at the i-th level (`with_levels` with the levels outside), cached in `mode`."""
        if i not in mode.outside:
            mode.outside[i] = with_levels(self.levels_outside(i), self[i].records).value
        return mode.outside[i]

    def set_linear_tangents(self, x: Any, out: Any, function: Any) -> None:
        """Set the tangents of `out`, which is ``function(x)`` for a linear function without a row."""
        if not self.running:
            return
        for i, level in enumerate(self):
            if level.active:
                with with_levels(self.levels_outside(i), level.records):
                    t = level.find(x)
                    if t is not None:
                        level.set_result_tangent(out, function(t))

    # -- writes --------------------------------------------------------------------------------------------------------

    def have_tangents(self, *tensors: Any) -> bool:
        """Return whether any of the Tensors among the arguments has a tangent at an active level."""
        if not self.running:
            return False
        found = [x for x in tensors if isinstance(x, Tensor) and not x.depth]
        return any(level.tangent(x) is not None for level in self for x in found)

    def tangents_after_write(self, x: Any, out: Any) -> list[Any]:
        """Return the new tangents of the memory of `x`, which the values of `out` are about to overwrite; pass them to `settle`."""
        pending: list[Any] = []
        if not self.running:
            return pending
        for i, level in enumerate(self):
            if not level.active:
                continue
            with with_levels(self.levels_outside(i), level.records):
                new = level.find(out)
                if new is None and level.find(x) is None:
                    continue
                pending.append((level, *_place_tangent(level, x, zeros_like(x) if new is None else new)))
        return pending

    @staticmethod
    def settle(pending: list[Any]) -> None:
        """Store the pending tangents after a write."""
        for level, holder, tangent in pending:
            level.set_result_tangent(holder, tangent)

    def forget(self, x: Any) -> None:
        """Drop the tangents of a Tensor that is detached in place."""
        for level in self:
            level.forget(x)

    # -- custom Functions ----------------------------------------------------------------------------------------------

    def function_tangents(self, args: tuple[Any, ...]) -> list[Any]:
        """Return the tangents of a Function's arguments at each level, before its forward can overwrite them."""
        found = []
        for i, level in enumerate(self):
            with with_levels(self.levels_outside(i), level.records):
                found.append((level, [level.tangent(a) if isinstance(a, Tensor) else None for a in args]))
        return found

    def carry_function(
        self, cls: Any, ctx: Any, args: tuple[Any, ...], dirty: tuple[Any, ...], nondiff: tuple[Any, ...], results: tuple[Any, ...],
        outs: tuple[Any, ...], before: list[Any],
    ) -> None:  # fmt: skip
        """Run the `jvp` of a custom Function for each level at which an argument has a tangent (FWD-13..16).

        Parameters
        ----------
        dirty, nondiff : tuple of Tensor
            As declared by `forward`.
        results, outs : tuple
            The values that `forward` returned and those that `apply` returns.
        before : list
            The result of `function_tangents` before the forward.
        """
        for i, (level, tangents) in enumerate(before):
            if all(t is None for t in tangents):
                continue
            with with_levels(self.levels_outside(i), level.records):
                given = [
                    zeros_like(a) if t is None and ctx._materialize and isinstance(a, Tensor) and a.dtype.differentiable else t
                    for a, t in zip(args, tangents)
                ]
                versions = [(t, t._version) for t in given if isinstance(t, Tensor) and not t.is_inference()]
                ctx._forward = True
                try:
                    returned = cls.jvp(ctx, *given)
                finally:
                    ctx._forward = False
                found = as_tuple(returned)
                if len(found) != len(outs):
                    msg = (
                        f"Function's jvp returned an invalid number of forward gradients (expected {len(outs)} but got {len(found)}); "
                        "return one per output of `forward`, None where there is none"
                    )
                    raise RuntimeError(msg)
                unchanged = [t for t, version in versions if t._version == version]
                for k, (out, result, t) in enumerate(zip(outs, results, found)):
                    _settle_output(level, f"{cls.__name__}Backward", k, out, result, t, args, given, dirty, nondiff, unchanged)
