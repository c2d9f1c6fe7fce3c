"""Saved values: check them for later writes, and turn them into Tensors with their history.

The generated text of node classes calls these functions in the uncommon cases and handles the common ones itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xpgrad._aliasing.cells import Alias, DetachedCell, alias_of, share_memory
from xpgrad._array.base import TensorBase
from xpgrad._modes import state
from xpgrad._tape.node import Node, Unpacked, slot_of


def check_version(node: Node, what: str, alias: Any) -> None:
    """Raise if the saved value `what` was overwritten after `node` saved it (MUT-03)."""
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
    mode = state.current()
    if mode is not None and mode.capturing is not None:
        return  # a write makes a new symbol, so that the saved one still has its values
    hint = (
        "the traceback of the forward call above shows the operation that failed to compute its gradient"
        if mode is not None and mode.anomaly
        else "enable anomaly detection to find the operation, with `xpgrad.autograd.set_detect_anomaly(True)`"
    )
    msg = (
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {what}, saved by "
        f"{node.name().removesuffix('Backward0')}, is at version {cell.version}; expected version "
        f"{cell.version_at(int(node.seq))} instead. Hint: {hint}, write into a `clone()`, or run "
        "both under `xpgrad.autograd.graph.allow_mutation_on_saved_tensors()`, which keeps copies (`xpgrad.numpy_code(function)` does)"
    )
    raise RuntimeError(msg)


def unpack(backend: Any, raw: Any, edge: Any, node: Any = None) -> Any:
    """Return the Tensor, with its history, of a raw value saved by `node`."""
    if edge.is_shadow:
        edge = edge.real
    if edge.is_leaf:
        leaf = edge.variable
        if leaf._array is raw:
            return leaf
    if node is not None and node.is_shadow:
        for own, owner in getattr(node, "unpacked", ()):
            if own is raw:
                return wrap_unpacked(backend, raw, owner, edge)
    return with_history(backend, raw, edge)


def with_history(backend: Any, raw: Any, edge: Any) -> Any:
    """Wrap a raw array as a new Tensor with the history of the value that `edge` stands for."""
    if edge.is_shadow:
        edge = edge.real
    tensor = backend.wrap(raw)
    tensor._node = edge
    tensor._alias = None if edge._alias is None else Alias(edge._alias)
    return tensor


def wrap_unpacked(backend: Any, raw: Any, owner: Any, edge: Any) -> Any:
    """Return a Tensor in the memory of an unpack hook's result `owner`, with the packed value's history (SAV-04).

    It shares the version counter of `owner`, not that of the packed value, because a write counts for the memory that it changes.
    """
    tensor = backend.wrap(raw)
    if owner.is_inference():
        alias_of(tensor)
    else:
        share_memory(tensor, owner)
    if edge is not None:
        if edge.is_shadow:
            edge = edge.real
        tensor._node = node = Unpacked.made_now()
        node._owner, node._alias = edge, tensor._alias.cell
        if node.original.is_leaf:
            tensor._alias.forbidden = "leaf"
    return tensor


def unpack_constant(backend: Any, raw: Any, tensor: Any) -> Any:
    """Return the saved constant operand: the Tensor itself, unless its array has been replaced since."""
    return tensor if tensor._array is raw else backend.wrap(raw)


def unpack_out(backend: Any, node: Any, raw: Any) -> Any:
    """Return the Tensor, or the tuple of Tensors, of a saved output."""
    real = node.original
    if not real.slotted:
        return unpack(backend, raw, real, node)
    nondiff = real.row.nondiff
    return tuple(backend.wrap(r) if k in nondiff else unpack(backend, r, slot_of(real, k), node) for k, r in enumerate(raw))


def saved_kind(node: Any, name: str) -> str:
    """Return ``"out"`` for a saved output, else the letter of the operand in the node's pattern."""
    return "out" if name == "out" else node.mask[node.row.tensors.index(name)]


def check_saved(node: Any, name: str) -> None:
    """Raise if a saved value was overwritten since (MUT-03)."""
    kind = saved_kind(node, name)
    alias = node._alias if kind == "out" else getattr(node, f"e_{name}")._alias if kind == "g" else getattr(node, f"c_{name}")._alias
    if alias is not None:
        check_version(node, name, alias)


def check_saved_operands(out: Any, operands: Iterable[Any]) -> None:
    """Raise if the node of a result saved an operand that is an inference tensor, whose writes are not counted (INF-03).

    Parameters
    ----------
    out : Tensor, tuple of Tensor, or NotImplemented
    operands : iterable
        Tensors, including the stand-ins of inference tensors, and other values.
    """
    marked = [x for x in operands if isinstance(x, TensorBase) and x._node is not None and x._alias is not None]
    marked = [x for x in marked if x._alias.forbidden == "inference"]
    first = out[0] if out.__class__ in (tuple, list) and out else out
    node = getattr(first, "_node", None)
    if marked and node is not None:
        held = node.owner.held()
        for x in marked:
            if any(raw is x._array for raw in held):
                check_saveable(x)


def check_saveable(tensor: Any) -> None:
    """Raise if a Tensor that is about to be saved is an inference tensor (INF-03)."""
    if tensor._alias.forbidden == "inference":
        msg = (
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation "
            "tracked by autograd; make a normal Tensor with `clone()` outside inference mode, or use `xpgrad.no_grad()` instead"
        )
        raise RuntimeError(msg)
