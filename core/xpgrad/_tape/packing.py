"""Hooks on saved values, and the nodes whose values they packed (group K).

Such a node has a `Packed` in place of the saved array, and a class that unpacks into a private copy of the node for each use. Nodes
without packed values are not affected.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from xpgrad._array.base import TensorBase
from xpgrad._modes import state
from xpgrad._rows.variants import Variants
from xpgrad._tape.node import Node, freed_error
from xpgrad._tape.saved import check_saveable, check_saved, saved_kind, wrap_unpacked
from xpgrad._tape.streams import UNPACKED
from xpgrad.errors import DeviceMismatchError

new: Any = object.__new__


class SavedHooks(NamedTuple):
    """A pair of functions that pack and unpack saved values."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]

    def pack_tensor(self, tensor: Any, *, output: bool = False) -> Packed:
        """Call the pack hook on a Tensor that is being saved and return what replaces it in the node.

        Parameters
        ----------
        tensor : Tensor
        output : bool
            Whether the node that saves the Tensor also produced it. If the hook then returns the Tensor itself, a detached one is saved
            instead, to avoid a reference cycle (SAV-16).

        Raises
        ------
        RuntimeError
            If the hook writes to the Tensor (SAV-09).
        """
        if tensor._alias is not None:
            check_saveable(tensor)
        version = tensor._version
        before = state.current()
        try:
            state.put(state.mode_with(recording=False, packing=None))
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
        """Pack what the node of a new result (a Tensor, or a tuple of them) saved (SAV-01)."""
        outs = out if out.__class__ is tuple else (out,)
        node = next((o._node.owner for o in outs if o._node is not None), None)
        if node is None or row.varargs:  # operations on a list save shapes only
            return
        names = row.freeable(node.mask)
        for name in names:
            if name == "out":
                packed = tuple(self.pack_tensor(o, output=True) for o in outs)
                _replace(node, name, packed if row.outputs is not None else packed[0])
            else:
                _replace(node, name, self.pack_tensor(operands[row.tensors.index(name)]))
        if names:
            _become_packing(node)


def check_hooks(pack: Any, unpack: Any) -> SavedHooks:
    """Return the pair of hooks.

    Raises
    ------
    TypeError
        If one of them cannot be called.
    """
    for name, hook in (("pack", pack), ("unpack", unpack)):
        if not callable(hook):
            msg = f"the {name} hook of saved Tensors must be callable, but got {type(hook).__name__}"
            raise TypeError(msg)
    return SavedHooks(pack, unpack)


def mode_with_hooks(hooks: SavedHooks) -> state.Mode | None:
    """Return the mode in which `hooks` apply.

    Raises
    ------
    RuntimeError
        If hooks are disabled in this context (SAV-13).
    """
    mode = state.current()
    if mode is not None and mode.no_hooks is not None:
        raise RuntimeError(mode.no_hooks)
    return state.mode_with(packing=hooks)


def mode_without_hooks(message: str) -> state.Mode | None:
    """Return the mode in which setting hooks raises an error with this message (SAV-13).

    Raises
    ------
    RuntimeError
        If hooks are active.
    """
    mode = state.current()
    if mode is not None and mode.packing is not None:
        raise RuntimeError(message)
    return state.mode_with(no_hooks=message)


# -- one saved value --------------------------------------------------------------------------------------------------


class Packed:
    """The replacement for a saved array in a node: the pack hook's result, and the hook that unpacks it.

    Attributes
    ----------
    payload : object
    unpack : callable
    cls : type
        The class of the Tensor that was packed.
    dtype, shape
        Those of the Tensor that was packed.
    tangents : tuple
        Pairs of a forward-mode level (weakly referenced) and the tangent there. Only for a constant: other values have them by node.
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
        """Call the unpack hook and return the Tensor, which must be on the device of the packed one.

        Raises
        ------
        TypeError
            If the hook does not return a Tensor (SAV-02).
        DeviceMismatchError
            If the Tensor is on another device.
        """
        mode = state.current()
        try:
            found = self.unpack(self.payload)
        finally:
            state.put(mode)  # leave any context that the hook entered
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
        """Return the unpacked Tensor in the dtype that the gradient formulas rely on.

        Raises
        ------
        RuntimeError
            If the Tensor has another shape, or a dtype of another kind.
        """
        found = self.tensor()
        backend, dtype = self.cls.backend, found.dtype
        if found.shape != self.shape and all(isinstance(n, int) for n in self.shape):  # NB: lazy libraries may not know a length
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
        """Return the raw array of `value`."""
        return self.cls.backend.own(self.value())

    def restore(self, value: Any, edge: Any) -> Any:
        """Return a Tensor in the memory of `value` with the packed value's history, or a constant's tangents (SAV-04)."""
        backend = self.cls.backend
        found = wrap_unpacked(backend, backend.own(value), value, edge)
        for reference, tangent in self.tangents:
            level = reference()
            if level is not None:
                level.set_tangent(found, tangent)
        return found


# -- nodes ------------------------------------------------------------------------------------------------------------


def _replace(node: Any, name: str, value: Any) -> None:
    setattr(node, name, value)
    if saved_kind(node, name) == "c":
        setattr(node, f"c_{name}", None)  # the packed value replaces the operand itself


def _become_packing(node: Any) -> None:
    if not isinstance(node, PackingNode):
        node.__class__ = _packing_classes[type(node)]


class PackingNode(Node):
    """The behaviour of a node with packed saved values: each use works on an unpacked copy of the node (SAV-03)."""

    __slots__ = ()

    packs = True
    slot_names: ClassVar[tuple[str, ...]]  # the slots to copy
    unpacked_class: ClassVar[Any]  # the class of the unpacked copy

    def step(self, g: Any, empty: Any, retain: bool) -> None:
        _unpack_node(self).step(g, empty, True)
        if not retain:
            self.release()

    def grads(self, g: Any) -> list[Any]:
        found: list[Any] = _unpack_node(self).grads(g)
        return found

    def graph_grads(self, g: Any) -> list[Any]:
        found: list[Any] = _unpack_node(self).graph_grads(g)
        return found

    def held(self) -> list[Any]:
        """Return the raw arrays that are not packed."""
        return [v for v in super().held() if v.__class__ is not Packed]


def _body(cls: Any) -> dict[str, Any]:
    slots = tuple(s for c in cls.__mro__[:-1] for s in c.__dict__.get("__slots__", ()) if s not in ("__weakref__", "real"))
    unpacked_class = type(cls.__name__, (cls,), {"__slots__": ("unpacked",), "__module__": cls.__module__, "is_shadow": True})
    return {"slot_names": slots, "unpacked_class": unpacked_class}


#: For each node class, the subclass for nodes with packed saved values.
_packing_classes = Variants(_body, PackingNode)


def _unpack_node(node: Any) -> Any:
    """Return a private copy of a node in which the values that the needed gradients read are unpacked."""
    row, mask = node.row, node.mask
    edges = [getattr(node, f"e_{t}") if m == "g" else None for t, m in zip(row.tensors, mask)]
    wanted = {n for reads, e in zip(row.reads, edges) if e is not None and e.buffer is not None for n in reads}
    copy = new(node.unpacked_class)
    for slot in node.slot_names:
        try:
            setattr(copy, slot, getattr(node, slot))
        except AttributeError:
            continue
    copy.real = node.original
    copy.unpacked = []
    copy.seq = math.inf  # the copy checks no versions: packed values have none (SAV-10), and `_unpack_saved` checks the others
    for name in row.freeable(mask):
        if name in wanted:
            setattr(copy, name, _unpack_saved(node, copy, name))
    return copy


def _unpack_saved(node: Any, copy: Any, name: str) -> Any:
    """Return the raw array, or the tuple of them, of a saved value."""
    value = getattr(node, name)
    if value is None:
        raise freed_error(node)
    if value.__class__ is tuple:
        if any(v.__class__ is not Packed for v in value):
            check_saved(node, name)
        return tuple(_unpack_value(copy, v)[0] if v.__class__ is Packed else v for v in value)
    if value.__class__ is not Packed:
        check_saved(node, name)
        return value
    raw, owner = _unpack_value(copy, value)
    if saved_kind(node, name) == "c":
        setattr(copy, f"c_{name}", value.restore(owner, None))
    return raw


def _unpack_value(copy: Any, packed: Packed) -> tuple[Any, Any]:
    """Unpack a value, record it in the copy for formulas on Tensors, and return its raw array and Tensor."""
    owner = packed.value()
    found = (owner.backend.own(owner), owner)
    copy.unpacked.append(found)
    return found
