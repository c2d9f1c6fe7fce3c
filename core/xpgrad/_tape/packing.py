"""Hooks on what is saved for the backward: what they are applied to, and the nodes that hold what they return (group K).

A node keeps a `Packed` where the array was, and gets a class that unpacks into a private copy of the node for each use. Nodes of which
nothing was packed are not affected.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple

from xpgrad._array.base import TensorBase
from xpgrad._modes import state
from xpgrad._modes.setting import Setting
from xpgrad._rows.variants import Variants
from xpgrad._tape.node import Node, freed
from xpgrad._tape.saved import check_saveable, check_saved, unpacked
from xpgrad._tape.streams import UNPACKED
from xpgrad.errors import DeviceMismatchError

_DISABLED: ContextVar[str | None] = ContextVar("xpgrad_hooks_disabled", default=None)
new: Any = object.__new__


class SavedHooks(NamedTuple):
    """The pair of functions that pack and unpack what is saved."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]

    def packed(self, tensor: Any, *, output: bool = False) -> Packed:
        """The packed form of a Tensor that is being saved: what the pack hook makes of it.

        Parameters
        ----------
        tensor : Tensor
        output : bool
            The node that saves it also made it: if the hook returns the Tensor itself, a detached one is kept in its place, because the
            node would hold itself (SAV-16).

        Raises
        ------
        RuntimeError
            If the hook writes to it (SAV-09).
        """
        if tensor._alias is not None:
            check_saveable(tensor)
        version = tensor._version
        before = state.current()
        try:
            state.put(state.replaced(recording=False, packing=None))
            payload = self.pack(tensor)
        finally:
            state.put(before)
        if tensor._version != version:
            msg = (
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be modified by "
                "in-place operations as this can lead to unexpected side-effects; work on a `clone()` of it"
            )
            raise RuntimeError(msg)
        return Packed(tensor, payload.detach() if output and payload is tensor else payload, self.unpack)

    def keep(self, out: Any, row: Any, operands: tuple[Any, ...]) -> None:
        """Pack what the node of a fresh result (a Tensor, or a tuple of them) saved (SAV-01)."""
        outs = out if out.__class__ is tuple else (out,)
        node = next((o._node.owner for o in outs if o._node is not None), None)
        if node is None or row.varargs:  # operations on a list save shapes only
            return
        names = row.freeable(node.mask)
        for name in names:
            if name == "out":
                packed = tuple(self.packed(o, output=True) for o in outs)
                _replace(node, name, packed if row.outputs is not None else packed[0])
            else:
                _replace(node, name, self.packed(operands[row.tensors.index(name)]))
        if names:
            _become_packing(node)


def checked_hooks(pack: Any, unpack: Any) -> SavedHooks:
    """A pair of hooks that can be called.

    Raises
    ------
    TypeError
        If one cannot.
    """
    for name, hook in (("pack", pack), ("unpack", unpack)):
        if not callable(hook):
            msg = f"the {name} hook of saved Tensors must be callable, but got {type(hook).__name__}"
            raise TypeError(msg)
    return SavedHooks(pack, unpack)


def active_hooks(hooks: SavedHooks) -> state.Mode | None:
    """The mode in which `hooks` apply.

    Raises
    ------
    RuntimeError
        If hooks are disabled in this context (SAV-13).
    """
    message = _DISABLED.get()
    if message is not None:
        raise RuntimeError(message)
    return state.replaced(packing=hooks)


def disabled(message: str) -> AbstractContextManager[None]:
    """A context in which hooks are refused with this message (SAV-13).

    Raises
    ------
    RuntimeError
        If hooks are active where it is made.
    """
    mode = state.current()
    if mode is not None and mode.packing is not None:
        raise RuntimeError(message)
    return Setting(_DISABLED, message)


# -- one saved value --------------------------------------------------------------------------------------------------


class Packed:
    """The replacement for a saved array in a node: what the pack hook returned, and the hook that turns it into a Tensor again.

    Attributes
    ----------
    payload : object
    unpack : callable
    cls : type
        The class of the Tensor that was packed.
    dtype, shape
        Its own.
    tangents : tuple
        Pairs of a forward-mode level (weak) and the tangent there; only for a constant: what has a history has them under its node.
    """

    __slots__ = ("cls", "dtype", "payload", "shape", "tangents", "unpack")

    def __init__(self, tensor: Any, payload: Any, unpack: Any) -> None:
        self.payload = payload
        self.unpack = unpack
        self.cls = type(tensor._stand_in())
        self.dtype = tensor.dtype
        self.shape = tensor.shape
        mode = state.current()
        self.tangents: tuple[Any, ...] = ()
        if mode is not None and mode.levels and tensor._node is None:
            found = [(weakref.ref(level), level.tangent(tensor)) for level in mode.levels]
            self.tangents = tuple(pair for pair in found if pair[1] is not None)

    def tensor(self) -> Any:
        """The Tensor that the unpack hook returns, on the device where it was.

        Raises
        ------
        TypeError
            If it is not a Tensor (SAV-02).
        DeviceMismatchError
            If it is on another device.
        """
        mode = state.current()
        try:
            found = self.unpack(self.payload)
        finally:
            state.put(mode)  # a context that the hook entered ends with it
        if not isinstance(found, TensorBase):
            msg = (
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(found).__name__}; return a "
                "Tensor with the values that the pack hook was given"
            )
            raise TypeError(msg)
        if found.device != self.cls.device:
            msg = (
                f"Output of saved tensor unpack_hook is on {found.device}, but what was saved is on {self.cls.device}; move it back with "
                f"`x.to_device({str(self.cls.device)!r})`"
            )
            raise DeviceMismatchError(msg)
        used = UNPACKED.get()
        if used is not None:
            used.append(found)
        return found

    def value(self) -> Any:
        """The Tensor that the unpack hook returns, in the dtype that the gradient formulas rely on.

        Raises
        ------
        RuntimeError
            If it has another shape, or a dtype of another kind.
        """
        found = self.tensor()
        backend, dtype = self.cls.backend, found.dtype
        if found.shape != self.shape and all(isinstance(n, int) for n in self.shape):  # NB: lazy libraries do not know all lengths
            msg = f"Output of saved tensor unpack_hook has shape {found.shape}, but what was saved has shape {self.shape}"
            raise RuntimeError(msg)
        if dtype is self.dtype:
            return found
        if dtype.kind != self.dtype.kind:
            msg = (
                f"Output of saved tensor unpack_hook has dtype {dtype}, but what was saved has dtype {self.dtype}; convert it with "
                f"`x.astype(xpgrad.{self.dtype})`"
            )
            raise RuntimeError(msg)
        return backend.wrap(backend.kernels.cast(backend.own(found), backend.raw_dtype(self.dtype)))

    def array(self) -> Any:
        """The raw array of `value`."""
        return self.cls.backend.own(self.value())

    def restored(self, value: Any, edge: Any) -> Any:
        """A Tensor in the memory of an unpacked one with the history of what was packed or, for a constant, with its tangents (SAV-04)."""
        backend = self.cls.backend
        found = unpacked(backend, backend.own(value), value, edge)
        for reference, tangent in self.tangents:
            level = reference()
            if level is not None:
                level.hold(found, tangent)
        return found


# -- nodes ------------------------------------------------------------------------------------------------------------


def _replace(node: Any, name: str, value: Any) -> None:
    setattr(node, name, value)
    if name != "out" and node.mask[node.row.tensors.index(name)] == "c":
        setattr(node, f"c_{name}", None)  # the operand itself need not be kept


def _become_packing(node: Any) -> None:
    if not isinstance(node, PackingNode):
        node.__class__ = _packing_classes[type(node)]


class PackingNode(Node):
    """The behaviour of a node of which something was packed: it works on a copy of itself, unpacked for the occasion (SAV-03)."""

    __slots__ = ()

    packs = True
    copied: ClassVar[tuple[str, ...]]  # the slots
    opened: ClassVar[Any]  # the class of the copy

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        _opened(self).step(g, empty, True)
        if not retain:
            self.release()

    def grads(self, g: Any) -> list[Any]:
        found: list[Any] = _opened(self).grads(g)
        return found

    def graph_grads(self, g: Any) -> list[Any]:
        found: list[Any] = _opened(self).graph_grads(g)
        return found

    def held(self) -> list[Any]:
        """The raw arrays that are not packed."""
        return [v for v in super().held() if v.__class__ is not Packed]


def _body(cls: Any) -> dict[str, Any]:
    slots = tuple(s for c in cls.__mro__[:-1] for s in c.__dict__.get("__slots__", ()) if s not in ("__weakref__", "real"))
    opened = type(cls.__name__, (cls,), {"__slots__": ("unpacked",), "__module__": cls.__module__, "is_shadow": True})
    return {"copied": slots, "opened": opened}


#: The classes of nodes of which something was packed.
_packing_classes = Variants(_body, PackingNode)


def _opened(node: Any) -> Any:
    """A private copy of a node that holds raw arrays, as far as the needed gradients read them."""
    row, mask = node.row, node.mask
    edges = [getattr(node, f"e_{t}") if m == "g" else None for t, m in zip(row.tensors, mask)]
    wanted = {n for reads, e in zip(row.reads, edges) if e is not None and e.buffer is not None for n in reads}
    copy = new(node.opened)
    for slot in node.copied:
        try:
            setattr(copy, slot, getattr(node, slot))
        except AttributeError:
            continue
    copy.real = node.original
    copy.unpacked = []
    copy.seq = math.inf  # the copy checks no versions: what is packed has none (SAV-10), and the rest is checked here
    for name in row.freeable(mask):
        if name in wanted:
            setattr(copy, name, _unpacked(node, copy, name))
    return copy


def _unpacked(node: Any, copy: Any, name: str) -> Any:
    """The raw array, or arrays, of a saved value."""
    value = getattr(node, name)
    if value is None:
        raise freed(node)
    if value.__class__ is tuple:
        if any(v.__class__ is not Packed for v in value):
            check_saved(node, name)
        return tuple(_opened_value(copy, v)[0] if v.__class__ is Packed else v for v in value)
    if value.__class__ is not Packed:
        check_saved(node, name)
        return value
    raw, owner = _opened_value(copy, value)
    if name != "out" and node.mask[node.row.tensors.index(name)] == "c":
        setattr(copy, f"c_{name}", value.restored(owner, None))
    return raw


def _opened_value(copy: Any, packed: Packed) -> tuple[Any, Any]:
    """The raw array of what a hook unpacks for this copy, and the Tensor, noted there for formulas on Tensors."""
    owner = packed.value()
    found = (owner.backend.own(owner), owner)
    copy.unpacked.append(found)
    return found
