"""Saved values for users: ``node._saved_self`` and ``node._raw_saved_self``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import alias_of
from xpgrad._tape.node import freed_error, slot_of
from xpgrad._tape.packing import Packed, _become_packing, _replace, check_hooks
from xpgrad._tape.saved import check_saved, saved_kind, unpack, unpack_out, with_history


def saved_value(node: Any, name: str) -> Any:
    """Return the value that a node saved under a name (``node._saved_self``; ACC-34); None if no gradient needs it.

    Raises
    ------
    RuntimeError
        If the value was freed (RET-10) or overwritten since (MUT-03).
    """
    row, mask = node.row, node.mask
    wanted = {n for reads, m in zip(row.reads, mask) if m == "g" for n in reads}
    if name not in wanted:
        return None
    raw = getattr(node, name)
    kind = saved_kind(node, name)
    if kind == "s":
        return raw
    if raw is None:
        raise freed_error(node)
    if node.packs:
        found = packed_value(node, name)
        if found is not None:
            return found
    check_saved(node, name)
    if kind == "out":
        return unpack_out(node.backend, node, raw)
    if kind == "c":
        return getattr(node, f"c_{name}")
    found = unpack(node.backend, raw, getattr(node, f"e_{name}"))
    if not found.is_leaf:
        alias_of(found).forbidden = "saved"  # a recorded write would change the history of `found` only, not of the saved value
    return found


def raw_saved(node: Any, name: str) -> Any:
    """Return the `SavedTensor` of a name (``node._raw_saved_self``; SAV-12); a tuple of them for several outputs."""
    if name == "out" and node.slotted:
        return tuple(SavedTensor(node, name, k) for k in range(node.n_outputs))
    return SavedTensor(node, name)


# -- what the user sees of one saved value ----------------------------------------------------------------------------


def packed_value(node: Any, name: str) -> Any:
    """Unpack the value saved under a name: a new Tensor with the saved value's history (SAV-04, SAV-15); None if not packed."""
    backend, value = node.backend, getattr(node, name)
    if value.__class__ is tuple and any(v.__class__ is Packed for v in value):
        if any(v.__class__ is not Packed for v in value):
            check_saved(node, name)
        nondiff = node.row.nondiff
        edges = [None if k in nondiff else slot_of(node, k) for k in range(len(value))]
        return tuple(
            v.restore(v.value(), e) if v.__class__ is Packed else backend.wrap(v) if e is None else with_history(backend, v, e)
            for v, e in zip(value, edges)
        )
    if value.__class__ is not Packed:
        return None
    kind = saved_kind(node, name)
    return value.restore(value.value(), node if kind == "out" else None if kind == "c" else getattr(node, f"e_{name}"))


class SavedTensor:
    """A saved value of a node that has not been read yet (``node._raw_saved_self``; SAV-12)."""

    __slots__ = ("_k", "_name", "_node")

    def __init__(self, node: Any, name: str, k: int | None = None) -> None:
        self._node = node
        self._name = name
        self._k = k

    def register_hooks(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any], /) -> None:
        """Pack the value now, and unpack it each time it is needed.

        Raises
        ------
        RuntimeError
            If hooks are set already, if the value was freed, or if nothing was saved under this name.
        """
        hooks, node, name, k = check_hooks(pack_hook, unpack_hook), self._node, self._name, self._k
        if name not in node.row.freeable(node.mask):
            raise RuntimeError(NOTHING_SAVED)
        value = getattr(node, name)
        if value is None:
            raise RuntimeError(FREED)
        if (value if k is None else value[k]).__class__ is Packed:
            raise RuntimeError(ALREADY_SET)
        tensor = saved_value(node, name) if k is None else _one_output(node, k)
        entry = hooks.pack_tensor(tensor.detach())
        _replace(node, name, entry if k is None else (*value[:k], entry, *value[k + 1 :]))
        _become_packing(node)


def _one_output(node: Any, k: int) -> Any:
    check_saved(node, "out")
    return node.backend.wrap(node.out[k])


FREED = "Calling register_hooks on a saved tensor after it has been freed. Register them before the pass, or pass `retain_graph=True`"
NOTHING_SAVED = "Calling register_hooks on a saved tensor with value None is forbidden: the node keeps nothing under this name"
ALREADY_SET = "Calling register_hooks on a saved tensor whose hooks have already been set: there is only one pair at a time"
