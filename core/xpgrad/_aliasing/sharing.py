"""Apply a write to all Tensors that share the memory: versions, history, and new arrays if arrays are immutable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import alias_of, chain_of, follow, mark_node, note_sharing
from xpgrad._aliasing.stale import outdate, record_node, renew, take_over
from xpgrad._modes import state
from xpgrad._rows.namespace import operations


def run_uninterrupted(steps: Callable[[], None]) -> None:
    """Run steps that belong together; an interrupt is raised after they are complete.

    Parameters
    ----------
    steps : callable
        It is called a second time after an interrupt, so it must give the same result whichever of its steps were done before.
    """
    try:
        steps()
    except BaseException as interrupt:
        try:
            steps()
        except BaseException:  # noqa: BLE001 (the steps themselves fail: raise the first error)
            raise interrupt from None
        raise


def bump(x: Any) -> None:
    """Count a write to the memory of `x`, and mark the other views of that memory as stale."""
    alias = x._alias or alias_of(x)
    if alias.forbidden == "inference":
        return  # inference tensors have no version
    cell = alias.cell
    mode = state.current()
    cell.bump(mode is None or not mode.copies)
    if len(cell.views) > 1:
        outdate(x, recorded=False)


def copies(mode: Any, x: Any) -> bool:
    """Return whether writes to `x` in `mode` must leave the arrays that nodes saved unchanged, and so go to a copy."""
    return mode is not None and mode.copies and not x.is_inference()  # no node saves an inference tensor


def is_unshared(x: Any) -> bool:
    """Return whether certainly nothing but the Tensors that share the memory of `x` refers to it, such as a node that saved it.

    Views that were made while writes go to copies have arrays of their own (`Backend.separate`).
    """
    alias = x._alias or alias_of(x)
    memory = alias.memory
    base = x if alias.parent is None else x._base
    return memory is not None and base is not None and base._array is memory[0] and x.backend.is_unshared(memory)


def renew_arrays(x: Any) -> None:
    """After a write in place to the memory of `x`, give those that share it, and have arrays of their own, the new values."""
    for t in _sharers(x):
        t._array = follow(x._alias.memory[0], t._alias.path, x.backend.kernels)
        _separate(t)


def _sharers(x: Any) -> list[Any]:
    """Return the other living Tensors that share the memory of `x`."""
    return [t for t in (reference() for reference in x._alias.cell.views) if t is not None and t is not x]


def _separate(x: Any) -> None:
    """Give a view an array of its own while writes go to copies: it must not refer to that of its base (`is_unshared`)."""
    if copies(state.current(), x) and x._alias.path and x.backend.capabilities.mutable:
        x.backend.separate(x)


def adopt(x: Any, node: Any) -> None:
    """Make `node` the history of `x` after a write, and update all Tensors that share its memory: the base and its other views."""
    alias = x._alias
    if alias.parent is None:
        take_over(x, node)
    else:
        base = x._base
        written = x._wrap(x._array)
        written._node = node
        mark_node(node, alias)
        take_over(base, record_node(operations.put_through, base, written, chain_of(x)))
    if len(alias.cell.views) > 1:
        outdate(x, recorded=True)
        if x.fresh is not None:
            renew(x)


def rebind(x: Any, raw: Any) -> None:
    """Give `x` and all Tensors that share its memory new arrays: a write, if arrays are immutable."""
    if copies(state.current(), x):
        alias_of(x)
    replace_arrays(x, raw)
    bump(x)


def replace_arrays(x: Any, raw: Any) -> None:
    """Give `x` an array, and let all Tensors that share its memory have their parts of it; count no write."""
    alias = x._alias
    backend = x.backend
    sharing = [(x, raw)]
    keeps = x.depth and not state.is_grad_enabled() and not state.is_inference_mode_enabled()
    if alias is not None and alias.memory is not None:
        before = alias.memory[0]
        if not alias.path:
            alias.memory[0] = raw
        elif not (copies(state.current(), x) and _update_at(backend, alias, raw, is_unshared(x))):
            alias.memory[0] = backend.kernels.put_at_path(before, alias.path, raw)
        if keeps:
            alias.memory[0] = before.keep_history(alias.memory[0])
        root = alias.memory[0]
        sharing = [(t, follow(root, t._alias.path, backend.kernels)) for t in (x, *_sharers(x))]
    for t, array in sharing:
        t._array = t._array.keep_history(array) if keeps else array  # a batch holds the history
        if t._alias is not None:
            _separate(t)
        if t.fresh is None and t._node is not None:
            t._node.array_replaced(t._array)


def _update_at(backend: Any, alias: Any, raw: Any, in_place: bool) -> bool:
    """Write to the part of the memory that the path of an alias leads to; return False if the library has no view of that part.

    If not `in_place`, write to a copy of the memory, in which elements have the same order: where they lie decides what `reshape` shares.
    """
    if not (in_place or backend.capabilities.mutable):
        return False
    root = alias.memory[0] if in_place else backend.kernels.copy(alias.memory[0])
    part = follow(root, alias.path, backend.kernels)
    if not backend.may_alias(root, part):
        return False
    backend.update(part, ..., raw)
    alias.memory[0] = root
    return True


def replace_data(x: Any, value: Any) -> None:
    """Give `x` the array of another Tensor, whose memory it then shares; its history and its version stay, as those of ``x.data`` do.

    Raises
    ------
    RuntimeError
        The two have unlike devices, dtypes or shapes; `x` is an inference tensor or an argument of a transform; or `x` is a view or has
        one, which would keep the old memory.
    """
    if value._array is x._array:  # as after ``x.data -= y``
        return
    if x.stage or x.is_inference():
        kind = "an inference tensor" if x.is_inference() else "an argument of a transform or of a compiled function"
        msg = f"x.data = value: the value is incompatible with this Tensor, which is {kind}"
        raise RuntimeError(msg)
    if (type(value._stand_in()), value.dtype, value.shape) != (type(x._stand_in()), x.dtype, x.shape):
        msg = (
            f"x.data = value: the value, {value.dtype} of shape {value.shape} on {value.device}, is incompatible with this Tensor, "
            f"{x.dtype} of shape {x.shape} on {x.device}"
        )
        raise RuntimeError(msg)
    alias = alias_of(x)
    if alias.parent is not None or any(t is not None and t is not x for t in (reference() for reference in alias.cell.views)):
        msg = "x.data = value: this Tensor shares its memory with another one, which would keep the old values; write `x.data.copy_(value)`"
        raise RuntimeError(msg)
    source = alias_of(value)

    def steps() -> None:
        x._array, alias.memory, alias.path, alias.cell.views = value._array, source.memory, source.path, source.cell.views
        note_sharing(x)
        if x._node is not None:
            x._node.array_replaced(x._array)

    run_uninterrupted(steps)
