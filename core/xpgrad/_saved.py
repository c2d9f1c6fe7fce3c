"""What running operations and nodes ask for in the uncommon cases: saved values checked and turned into Tensors, views noted, errors.

The generated text of `_specialise` and `_nodeclass` calls these; the common cases are in that text itself.
"""

from __future__ import annotations

from typing import Any

from xpgrad import _modes
from xpgrad._accumulate import AccumulateGrad
from xpgrad._alias import Alias, DetachedCell
from xpgrad._node import Node, new_slot, slot_of
from xpgrad._row import Row

__all__ = ["add_into", "check_saveable", "check_saved", "check_version", "explain", "freed", "raw_saved", "record_outputs", "saved_value",
           "unpack", "unpack_constant", "unpack_out", "with_history"]  # fmt: skip


def freed(node: Node) -> RuntimeError:
    """The error for a node whose saved values were forgotten (RET-01)."""
    msg = (
        f"Trying to backward through the graph a second time: the values that {node.name()} saved have been freed. Pass "
        "`retain_graph=True` to the first `backward()` or `grad()` if you need to differentiate through this graph again"
    )
    return RuntimeError(msg)


def check_version(node: Node, what: str, alias: Any) -> None:
    """Raise ERR_VERSION if the saved value `what` was overwritten after `node` saved it (MUT-03)."""
    cell = alias.cell
    if cell is None or cell.last_write <= node.seq:
        return
    if cell.__class__ is DetachedCell:
        if what == "out":
            check_version(node, what, cell.memory)
            return
        msg = (
            f"Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(): {what}, saved by {node.name()}. Use "
            "`x.detach()` instead, which leaves `x` as it is"
        )
        raise RuntimeError(msg)
    mode = _modes.current()
    hint = (
        "the traceback of the forward call above shows the operation that failed to compute its gradient"
        if mode is not None and mode.anomaly
        else "enable anomaly detection to find the operation, with `xpgrad.autograd.set_detect_anomaly(True)`"
    )
    msg = (
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {what}, saved by "
        f"{node.name().removesuffix('Backward0')}, is at version {cell.version}; expected version "
        f"{cell.version_at(int(node.seq))} instead. Hint: {hint}, or write into a `clone()`"
    )
    raise RuntimeError(msg)


def unpack(backend: Any, raw: Any, edge: Any) -> Any:
    """The Tensor that a raw saved value belongs to, with its history."""
    if edge.is_shadow:
        edge = edge.real
    if edge.__class__ is AccumulateGrad:
        leaf = edge.variable
        if leaf._array is raw:
            return leaf
    return with_history(backend, raw, edge)


def with_history(backend: Any, raw: Any, edge: Any) -> Any:
    """A new Tensor around a raw array, with the history of the value that `edge` stands for."""
    if edge.is_shadow:
        edge = edge.real
    tensor = backend.wrap(raw)
    tensor._node = edge
    tensor._alias = None if edge._alias is None else Alias(edge._alias)
    return tensor


def unpack_constant(backend: Any, raw: Any, tensor: Any) -> Any:
    """The constant operand that was saved: the Tensor itself, unless it got another array since."""
    return tensor if tensor._array is raw else backend.wrap(raw)


def unpack_out(backend: Any, node: Any, raw: Any) -> Any:
    """The Tensor(s) of a saved output."""
    node = node.original
    if not node.slotted:
        return unpack(backend, raw, node)
    nondiff = node.row.nondiff
    return tuple(backend.wrap(r) if k in nondiff else unpack(backend, r, slot_of(node, k)) for k, r in enumerate(raw))


def saved_value(node: Any, name: str) -> Any:
    """What a node saved under a name, as the user reads it (``node._saved_self``; ACC-34): None for what it did not need.

    Raises
    ------
    RuntimeError
        If it was freed (RET-10) or overwritten since (MUT-03).
    """
    row, mask = node.row, node.mask
    wanted = {n for reads, m in zip(row.reads, mask) if m == "g" for n in reads}
    if name not in wanted:
        return None
    raw = getattr(node, name)
    kind = "out" if name == "out" else mask[row.tensors.index(name)]
    if kind == "s":
        return raw
    if raw is None:
        raise freed(node)
    if node.packs:
        from xpgrad._packing import packed_value

        found = packed_value(node, name)
        if found is not None:
            return found
    check_saved(node, name)
    if kind == "out":
        return unpack_out(node.backend, node, raw)
    return unpack(node.backend, raw, getattr(node, f"e_{name}")) if kind == "g" else getattr(node, f"c_{name}")


def raw_saved(node: Any, name: str) -> Any:
    """What stands for a saved value that is not read yet (``node._raw_saved_self``; SAV-12): one for each of several outputs."""
    from xpgrad._packing import SavedTensor

    if name == "out" and node.slotted:
        return tuple(SavedTensor(node, name, k) for k in range(node.n_outputs))
    return SavedTensor(node, name)


def check_saved(node: Any, name: str) -> None:
    """Raise ERR_VERSION if a saved value was overwritten since (MUT-03)."""
    kind = "out" if name == "out" else node.mask[node.row.tensors.index(name)]
    alias = node._alias if kind == "out" else getattr(node, f"e_{name}")._alias if kind == "g" else getattr(node, f"c_{name}")._alias
    if alias is not None:
        check_version(node, name, alias)


def check_saveable(tensor: Any) -> None:
    """Refuse to save an inference tensor in a graph (INF-03)."""
    if tensor._alias.forbidden == "inference":
        msg = (
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
            "tracked by autograd; make a normal Tensor with `clone()` outside inference mode, or use `xpgrad.no_grad()` instead"
        )
        raise RuntimeError(msg)


def explain(row: Row, exc: Exception, *arrays: Any) -> Exception:
    """The error for operands that a kernel refused: ours if their shapes do not broadcast, else the library's own."""
    from xpgrad.rules.manipulation import broadcast_shapes

    try:
        broadcast_shapes(*(a.shape for a in arrays))
    except ValueError as ours:
        msg = f"`{row.name}`: {ours}; reshape an operand, e.g. with `xpgrad.expand_dims(x, axis=-1)`"
        error = ValueError(msg)
        error.__cause__ = exc
        return error
    return exc


def record_outputs(node: Any, outs: tuple[Any, ...]) -> None:
    """Give each differentiable output of an operation with several its hidden node."""
    node.slots = [None] * len(outs)
    node.metas = [(o.shape, o.dtype, type(o)) for o in outs]
    for k, out in enumerate(outs):
        if k not in node.row.nondiff and out.dtype.differentiable:
            out._node = new_slot(node, k)


def add_into(e: Any, v: Any, empty: Any) -> None:
    """Add a gradient that others may hold into an edge's buffer, if the pass needs it."""
    b = e.buffer
    if b is None or v is None:
        return
    if b is empty:
        e.buffer = v
        e.owned = False
    elif e.owned:
        b += v
        e.buffer = b
    else:
        e.buffer = b + v
        e.owned = True
