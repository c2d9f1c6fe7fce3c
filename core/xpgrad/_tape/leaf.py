"""The node of a leaf: adds the gradient of a pass to `.grad` by the layout rules (groups C and D)."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import Alias
from xpgrad._aliasing.sharing import bump, rebind
from xpgrad._basics.threads import renew_in_children
from xpgrad._modes import state, switches
from xpgrad._rows.namespace import operations
from xpgrad._tape.node import Node

_INF = float("inf")
#: Held while a gradient is added to a `.grad`.
_LOCK = threading.RLock()
renew_in_children(globals(), "_LOCK")


class AccumulateGrad(Node):
    """The node of a leaf: adds the gradients that arrive to the leaf's `.grad` (ACC-32).

    The leaf refers to this node, and the node refers to the leaf weakly, so that reference counting reclaims a leaf. If a hook asks for a
    leaf that was reclaimed while its graph is still alive, it is recreated around the same array.
    """

    __slots__ = ("_leaf", "array", "cls", "grad", "grad_dtype", "off", "private", "stream")

    title = "AccumulateGrad"
    is_leaf = _is_end = True

    def __init__(self, leaf: Any) -> None:
        self.seq = _INF
        self.buffer = None
        self.hooks = None
        self._alias = None if leaf._alias is None else leaf._alias.cell
        self._leaf = weakref.ref(leaf)
        self.array = leaf._array
        self.cls = type(leaf)
        self.grad: Any = None
        self.grad_dtype: Any = leaf.dtype
        self.off = False
        self.private = False  # created by a transform for the function that it calls
        cls = self.cls
        # NB: streams are recorded under the normal class, for an inference tensor as well.
        self.stream = (type(leaf._stand_in()), cls.backend.current_stream(cls.device)) if cls.backend.capabilities.streams else None

    @property
    def is_spent(self) -> bool:
        """Whether the leaf belonged to a transform and is gone, so that nobody can ask for a derivative with respect to it."""
        return self.private and self._leaf() is None

    @property
    def variable(self) -> Any:
        """The leaf; recreated if it was reclaimed."""
        leaf = self._leaf()
        if leaf is None:
            leaf = object.__new__(self.cls)
            leaf._array = self.array
            leaf._alias = None if self._alias is None else Alias(self._alias)
            leaf._node = self
            self._leaf = weakref.ref(leaf)
        return leaf

    def reach(self, empty: Any, push: Callable[[Any], None]) -> None:
        pass

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        self.seq = _INF
        if not self.off:
            accumulate_raw(self, g)
        else:
            self.check_accumulates()

    def check_accumulates(self) -> None:
        """Raise if the leaf has become a result of an operation and so has no `.grad`; a leaf that stopped requiring grad passes."""
        leaf = self._leaf()
        if leaf is not None and leaf._node is not None:
            msg = (
                "leaf variable has been moved into the graph interior: it was detached in place, then overwritten by an operation that "
                "is recorded. Use `x.detach()` instead of `x.detach_()`, or write into a `clone()`"
            )
            raise RuntimeError(msg)

    def undefined(self) -> None:
        self.seq = _INF

    def meta(self) -> tuple[Any, ...] | None:
        leaf = self.variable
        return (leaf.shape, leaf.dtype, self.cls)

    def array_replaced(self, array: Any) -> None:
        self.array = array

    def shadow(self) -> Node:
        # The copy accumulates into the `.grad` of the original leaf.
        copy = super().shadow()
        copy.__class__ = ShadowLeaf
        copy.seq = _INF
        return copy

    def redirect(self, mapping: dict[Node, Node]) -> None:
        pass


class ShadowLeaf(AccumulateGrad):
    """The node of a leaf in a pass on shadows; it accumulates into the original leaf."""

    __slots__ = ()

    is_shadow = True


def accumulate_raw(node: Any, g: Any, owned: bool | None = None) -> None:
    """Add a raw gradient to `.grad` in place, or set it in the leaf's layout if there was none (LAY-01..05).

    `owned` says whether nobody else refers to the memory of `g`; by default the node knows.
    """
    real = node.original
    backend = real.cls.backend
    with _LOCK:
        old = real.grad
        wanted = real.grad_dtype if old is None else old.dtype
        if wanted is not None:
            raw = backend.raw_dtype(wanted)
            if g.dtype is not raw and g.dtype != raw:
                g = backend.kernels.cast(g, raw)
                owned = True
        if old is None:
            if not ((node.owned if owned is None else owned) and (backend.same_layout(g, real.array) or not switches.layout_policy())):
                g = backend.with_layout(g, real.array)
            real.grad = new = real.variable._wrap(g)
            mode = state.current()
            if mode is not None and mode.inference:
                new._become_inference()
        else:
            add_in_place(old, g)


def add_in_place(tensor: Any, g: Any) -> None:
    """Add a raw array into a Tensor's memory: the object, layout and history stay, the version rises (ACC-20, ACC-21)."""
    backend = tensor.backend
    array = backend.own(tensor)
    mode = state.current()
    if backend.capabilities.mutable and not (mode is not None and mode.copies):
        try:
            if backend.raw_operators:
                array += g
            else:
                array = backend.update(array, ..., backend.kernels.add(array, g))
            tensor._array = array
            bump(tensor)
        except BaseException:
            bump(tensor)  # after an interrupt some values may have changed: saved references to the old ones are invalid
            raise
    else:
        total = array + g if backend.raw_operators else backend.kernels.add(array, g)
        if backend.capabilities.strides and not backend.same_layout(total, array):
            total = backend.with_layout(total, array)
        rebind(tensor, total)


def accumulate_graph(node: Any, g: Any, create: bool = True) -> None:
    """Add a gradient with history: `.grad` becomes a new object and the old one keeps its value (ACC-22, LAY-06).

    Without ``create_graph`` the gradient is a Tensor only because it has tangents, and is added to an existing `.grad` in place (ACC-20).
    """
    real = node.original
    if real.grad_dtype is not None:
        g = g._cast(real.grad_dtype)
    with _LOCK:
        old = real.grad
        if old is None:
            real.grad = operations.clone_laid_out(g, real.array)
        elif not create:
            old.add_(g)
        else:
            real.grad = old + g
