"""Renew stale views: a view whose memory was written after its node was made gets a node of the new history at its next use.

A write gives such views a variant of their class, and the next use restores the class (`_rows.variants`; MUT-15..18).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import UNRECORDED, ForbiddenView, View, alias_of, chain_of, follow, mark_node, note_sharing
from xpgrad._modes import state
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad._rows.row import ROWS, Row
from xpgrad._rows.variants import TensorVariants


class _Views:
    """A namespace in which `follow` makes views of Tensors: the primitives, of which `gather` gives windows of the memory."""

    def __getattr__(self, name: str) -> Any:
        return PRIMITIVES[name]

    def gather(self, x: Any, key: Any) -> Any:
        """Return ``x[key]`` as a view: its array is a copy, which writes to the memory replace if they go to copies."""
        out = PRIMITIVES["gather"](x, key)
        alias_of(x)
        alias: Any = View(x, ROWS["gather"], (key,))
        out._alias = alias
        mark_node(out._node, alias)
        note_sharing(out)
        return out


VIEWS = _Views()


def take_over(x: Any, node: Any) -> None:
    """Set `node` as the node of `x` after a write: a retained ``.grad`` moves to the new node, other hooks stay (HOK-13, HOK-14)."""
    old = x._node
    alias = x._alias or alias_of(x)
    if node is not None and old is not None and old is not node and old.hooks is not None and old.hooks.retain:
        old.hand_over_retained(node)
    x._node = node
    mark_node(node, alias)


def record_node(function: Callable[..., Any], *args: Any) -> Any:
    """Return the node of ``function(*args)``, recorded in any mode.

    It runs outside the levels of forward mode: the result needs no tangent, and the tangents of the memory are moved after the write.
    """
    mode = state.current()
    if mode is None:
        return function(*args)._node
    try:
        state.put(state.mode_with(recording=True, inference=False, levels=()))
        return function(*args)._node
    finally:
        state.put(mode)


def outdate(x: Any, recorded: bool) -> None:
    """After a write to `x`, mark the other views of its memory as stale, because their nodes belong to the old values.

    Parameters
    ----------
    x : Tensor
    recorded : bool
        Whether the write is recorded. If not, views that were made under `no_grad` stay constants.
    """
    cell = x._alias.cell
    for reference in cell.views:
        view = reference()
        if view is None or view._alias.cell is not cell or view._alias.parent is None:
            continue
        cls = type(view)
        if cls.fresh is not None or view.is_inference():
            continue
        forbidden = view._alias.forbidden
        if view._base._node is None:
            node = view._node if isinstance(forbidden, ForbiddenView) else None
            stale = node is not None and not node.is_leaf  # a custom Function returned its constant argument
        else:
            stale = recorded or forbidden not in UNRECORDED
        if stale:
            view.__class__ = _stale_classes[cls]


def renew(view: Any) -> Any:
    """Rebuild the node of a stale view from the node of its base, as if the view were taken now.

    Returns
    -------
    Tensor
        The view itself.

    Raises
    ------
    RuntimeError
        If the view cannot take over the history of its base, such as one of several outputs.
    """
    forbidden = view._alias.forbidden
    if isinstance(forbidden, str) and forbidden in UNRECORDED:
        msg = (
            f"A view was created in {UNRECORDED[forbidden]} and its base or another view of its base has been modified inplace with grad "
            "mode enabled, so its history is not known. Create the view and write to its base in the same mode, or view a `detach()` of "
            "the base"
        )
        raise RuntimeError(msg)
    if isinstance(forbidden, ForbiddenView):
        msg = (
            f"{forbidden.output} is a view and its base or another view of its base has been modified inplace. {forbidden.origin}, which "
            "may not be used after that; take slices of the base, or `clone()` the output"
        )
        raise RuntimeError(msg)  # noqa: TRY004 (PyTorch's type)
    node = record_node(follow, view._base, chain_of(view), VIEWS)
    stale = type(view)
    try:
        view.__class__ = stale.fresh
        take_over(view, node)
    except BaseException:  # interrupted: the next use renews it
        view.__class__ = stale
        raise
    return view


def _stand_in(self: Any) -> Any:
    """Return the renewed view; without recording, a constant with the same memory."""
    mode = state.current()
    if state.records(mode):
        return renew(self)
    out = self._wrap(self._array)
    out._alias = self._alias
    return out


def _operation(row: Row, method: str) -> Any:
    def op(self: Any, *args: Any) -> Any:
        return getattr(_stand_in(self), method)(*args)

    return op


def _body(cls: Any) -> dict[str, Any]:
    slot, requires_grad, grad = cls._node, cls.requires_grad, cls.grad

    def wrap(self: Any, raw: Any) -> Any:
        out = object.__new__(cls)
        out._array = raw
        out._node = out._alias = None
        return out

    def act_on_old(self: Any, action: Any) -> Any:
        """Return ``action(self)`` with the old node still in place: it holds the retained `.grad` until the view is renewed."""
        stale = type(self)
        self.__class__ = cls
        try:
            return action(self)
        finally:
            self.__class__ = stale

    return {
        "fresh": cls, "__hash__": object.__hash__,
        "_node": property(lambda self: renew(self)._node, slot.__set__),
        "requires_grad": property(lambda self: requires_grad.fget(renew(self)) if self._alias.forbidden else True, requires_grad.fset),
        "grad": property(lambda self: act_on_old(self, grad.fget), grad.fset, grad.fdel),
        "retains_grad": property(lambda self: act_on_old(self, cls.retains_grad.fget)),
        "retain_grad": lambda self: None if self.retains_grad else renew(self).retain_grad(),
        "_stand_in": _stand_in, "_wrap": wrap, "scalar": cls.scalar,
    }  # fmt: skip


_stale_classes = TensorVariants(_body, _operation)
