"""Writing into Tensors: in-place arithmetic and ``x[key] = value``, with version counters, also through views.

An in-place operation computes first, then writes. The same Tensor object gets the new values and the node of the computation; its base
and the base's other views get the history of their new values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xpgrad._aliasing.cells import UNRECORDED, ForbiddenView, alias_of, follow, is_window, next_number
from xpgrad._aliasing.sharing import adopt, bump, copies, is_unshared, rebind, renew_arrays, run_uninterrupted
from xpgrad._aliasing.stale import take_over
from xpgrad._array.base import TensorBase
from xpgrad._array.checks import not_a_tensor
from xpgrad._array.kernels import check_key
from xpgrad._backends.classes import host_backend
from xpgrad._basics.dtypes import can_cast, promote_scalar
from xpgrad._basics.keys import basic_key
from xpgrad._basics.scalars import NOT_SCALAR, as_scalar, is_scalar
from xpgrad._basics.shapes import common_shape
from xpgrad._modes import state
from xpgrad._modes.running import transforming
from xpgrad._operations.coerce import unify
from xpgrad._operations.lift import lift
from xpgrad._rows.row import ROWS
from xpgrad._tensor.batching import become_batched
from xpgrad.rules.conversion import asarray
from xpgrad.rules.indexing import basic_error, prepare_key
from xpgrad.rules.manipulation import reshape


def _repeats_element(x: Any) -> bool:
    """Return whether two elements of a Tensor share one place in memory, as in an expanded view.

    If the backend reports no strides, the strides that the view would have on the host decide.
    """
    if is_window(x):
        return True
    strides = x.backend.strides(x._array)
    if strides is None:
        alias = x._alias
        if alias is None or not any(name == "broadcast_view" for name, _ in alias.path) or not x.size > 1:  # NB: nan if it is not known
            return False
        root = alias.memory[0] if alias.memory is not None else x._base
        host = host_backend()
        strides = host.strides(follow(host.kernels.zeros(root.shape), alias.path, host.kernels))
    # NB: empty arrays may have strides of 0.
    return strides is not None and 0 in strides and x.size > 1 and any(s == 0 and n > 1 for s, n in zip(strides, x.shape))


def check_writable(x: Any, value: Any, mode: Any) -> None:
    """Raise an error for a write that would break the graph (MUT-10, MUT-11, INF-05), or whose history would be lost.

    Parameters
    ----------
    x : Tensor
        Tensor to write to.
    value : object
        Value to write; None if it is not known, or not a Tensor.
    mode : Mode or None
        Mode of this context.

    Raises
    ------
    RuntimeError
        For a leaf that requires grad while recording, an inference tensor outside inference mode, expanded memory, or a view whose history
        would be lost.
    """
    if mode is not None and mode.capturing is not None:
        mode.capturing.check_writable(x)
    if getattr(value, "stage", 0) > x.stage:
        become_batched(x, type(value))
    if x.is_inference():
        if mode is None or not mode.inference:
            msg = "Inplace update to inference tensor outside InferenceMode is not allowed; write into a `clone()` of it"
            raise RuntimeError(msg)
        return
    recording = mode is None or mode.recording
    node = x._node if recording else None  # a stale view's node may be an error
    if node is not None and node.is_leaf:
        msg = (
            "a leaf Variable that requires grad is being used in an in-place operation. Use the out-of-place form, or wrap the update "
            "in `with xpgrad.no_grad():`"
        )
        raise RuntimeError(msg)
    if _repeats_element(x):
        msg = (
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
            "`clone()` the tensor before performing the operation"
        )
        raise RuntimeError(msg)
    alias = x._alias
    if alias is None:
        return
    if alias.cell.is_copy:
        msg = (
            "this Tensor is a copy where other libraries return a view (a part that was taken backwards, numbers in another dtype, or what "
            "a custom Function returned of its argument under `vmap`), so a write to it would not reach the whole. Write with "
            "`x[key] = value`, or into a `clone()`"
        )
        raise RuntimeError(msg)
    if not recording:
        return  # the values change for all that share them, and the version shows it
    if alias.forbidden == "saved":
        msg = (
            "a value that was read from a node is being modified inplace with grad mode enabled: it shares the memory of the Tensor that "
            "the node saved, whose history would not tell of it. Write into that Tensor, or into a `clone()`"
        )
        raise RuntimeError(msg)
    if alias.forbidden == "leaf":
        msg = (
            "a leaf Variable that requires grad is being used in an in-place operation: it is, or is a view of, a leaf that a hook on "
            "saved values has unpacked. Use the out-of-place form, or write into a `clone()` of it"
        )
        raise RuntimeError(msg)
    if alias.forbidden == "argument":
        msg = (
            "a leaf Variable that requires grad is being used in an in-place operation: it is, or is a view of, the argument of a function "
            "that is being differentiated, and the caller's Tensor would be overwritten. Write into a `clone()` of it"
        )
        raise RuntimeError(msg)
    if transforming() is not None and _holds_argument(alias.cell):
        msg = (
            "in-place operation on a Tensor from outside of a function that is being differentiated: it shares its memory with the "
            "function's argument, whose derivative would be lost. Write into a `clone()` of it"
        )
        raise RuntimeError(msg)
    if isinstance(alias.forbidden, ForbiddenView) and _has_history(node, value):
        msg = (
            f"{alias.forbidden.output} is a view and is being modified inplace. {alias.forbidden.origin}. Such functions do not allow the "
            "output views to be modified inplace; use slices, or `clone()` the view"
        )
        raise RuntimeError(msg)
    base = x._base if alias.parent is not None else None
    origin = None if base is None else base._node
    # If the base has no history, a view has one only through a view between the two that is a leaf.
    if base is not None and (node is not None if origin is None else origin.is_leaf):
        msg = "a view of a leaf Variable that requires grad is being used in an in-place operation. Use `xpgrad.no_grad()`"
        raise RuntimeError(msg)
    if alias.forbidden is None:
        return
    if isinstance(alias.forbidden, str) and alias.forbidden in UNRECORDED and (origin is not None or _has_history(node, value)):
        msg = (
            f"A view was created in {UNRECORDED[alias.forbidden]} and is being modified inplace with grad mode enabled. Its history "
            "would be lost: create the view and write to it in the same mode"
        )
        raise RuntimeError(msg)


def _has_history(node: Any, value: Any) -> bool:
    """Return whether the destination of a write, whose node is given, or what is written has a history."""
    return node is not None or getattr(value, "_node", None) is not None


def _holds_argument(cell: Any) -> bool:
    """Return whether the argument of a function that is being differentiated shares this memory."""
    found = [reference() for reference in cell.views]
    return any(t is not None and t._alias.forbidden == "argument" and t._alias.cell is cell for t in found)


def _write_in_place(x: Any, write: Callable[..., Any], *args: Any) -> None:
    """Write into the memory of `x`, whose array ``write(*args)`` returns, and bump its version.

    An interrupted write bumps it as well: saved values of the old contents must not be used.
    """
    try:
        x._array = write(*args)
        bump(x)
    except (IndexError, OverflowError, RuntimeError, TypeError, ValueError):  # refused by the library, e.g. because the memory is read-only
        raise
    except BaseException:
        bump(x)
        raise


def _commit(x: Any, out: Any, old: Any, mode: Any) -> None:
    """Write the result of an operation into the memory of `x`, with its history and its tangents.

    Parameters
    ----------
    x, out : Tensor
        Tensor to write to, and result; of one shape and dtype.
    old : Node or None
        Node that `x` loses if the result has no history.
    mode : Mode or None
        Mode of this context.
    """
    levels = () if mode is None else mode.levels
    pending: Any = None
    if levels:
        if levels.have_tangents(x, out):
            out = out.clone()  # a separate node and memory, so that the write does not change values that the tangent's node saved
        pending = levels.tangents_after_write(x, out)
    node, raw, backend = out._node, out._array, x.backend
    if out._alias is not None and shares_memory(x, out):
        raw = backend.kernels.copy(raw)  # otherwise repeating the write would give another result
    in_place = backend.capabilities.mutable and not copies(mode, x)

    def steps() -> None:
        if in_place:
            x._array = backend.update(backend.own(x), ..., raw)
            bump(x)
        else:
            rebind(x, raw)
        if node is not None:
            node.seq = next_number()
            adopt(x, node)
        elif old is not None:
            take_over(x, None)
        if levels:
            levels.settle(pending)

    run_uninterrupted(steps)
    if mode is not None:
        mode.note_write(x, out)


def _fit(x: Any, out: Any, name: str) -> Any:
    """Return the out-of-place result `out` in the dtype of `x`; raise RuntimeError if its shape or dtype does not fit."""
    if out._array.shape != x._array.shape and out.shape != x.shape:
        msg = f"in-place `{name}`: the result has shape {out.shape}, which does not fit the Tensor's shape {x.shape}; write `x = ...`"
        raise RuntimeError(msg)
    if out._array.dtype is not x._array.dtype and out.dtype is not x.dtype:
        refuse_kind(x, out.dtype, f"in-place `{name}`: result type")
        out = out._cast(x.dtype)
    return out


def refuse_kind(x: Any, dtype: Any, what: str) -> None:
    """Raise RuntimeError for numbers of a kind that the dtype of `x` cannot hold: the part that is cut off would have no gradient."""
    if not can_cast(dtype, x.dtype) and dtype.kind != x.dtype.kind:
        msg = f"{what} {dtype} can't be cast to the Tensor's dtype {x.dtype}; write `x = ...`"
        raise RuntimeError(msg)


def _as_constant(name: str, value: Any, x: Any) -> Any:
    """Return a raw array as a Tensor, which an in-place operation on `x` writes or reads.

    If the array may share memory with `x` it is copied, since no version counter would show that the write changed it.
    """
    out = lift(name, value, x)
    return out.clone() if type(out) is type(x) and x.backend.may_alias(x._array, out._array) else out


def apply(x: Any, name: str, other: Any, is_operator: bool = False) -> Any:
    """Write ``x OP other`` into the memory of `x`, and return `x`.

    In code that was written for NumPy, the operator ``x OP= other`` returns NotImplemented if `x` is a scalar, so that Python rebinds `x`.

    Raises
    ------
    TypeError, RuntimeError, NotImplementedError
        If the operands do not fit, or the write is refused; `x` is unchanged then.
    """
    mode = state.current()
    if mode is state.NO_GRAD and other.__class__ is x.__class__ and _step(x, name, other):
        return x
    if is_operator and mode is not None and mode.numpy is not None and mode.numpy.is_scalar(x):
        return NotImplemented
    if not isinstance(other, TensorBase) and not is_scalar(other):
        if other.__class__ in (list, tuple) and (found := x._from_sequence(other)) is not None:
            other = found
        other = _as_constant(f"in-place {name}", other, x)
        if not isinstance(other, TensorBase):
            raise not_a_tensor(name, x, other)
    check_writable(x, other, mode)
    recording = mode is None or mode.recording
    old, left = x._node if recording else None, x
    dual = mode is not None and bool(mode.levels) and mode.levels.have_tangents(x, other)
    if not dual and old is None and (not recording or getattr(other, "_node", None) is None) and _compute_in_place(x, name, other, mode):
        return x
    if recording and (dual or _reads_first(ROWS[name], x, other)):
        left = x.clone()  # as in PyTorch, an in-place operation saves a copy of what it overwrites
        other = left if other is x else other
    if other is not left and shares_memory(x, other):
        other = other.clone()  # the node may save its values, which must not be overwritten
    out = getattr(left, f"_op_{name}")(other if isinstance(other, TensorBase) else as_scalar(other))
    _commit(x, _fit(x, out, name), old, mode)
    return x


def rewrite(x: Any, function: Any, *others: Any) -> Any:
    """Write ``function(x)`` into the memory of `x`, for any function, and return `x`.

    Parameters
    ----------
    x : Tensor
        Tensor to write to.
    function : callable
        ``function(copy)`` computes the new values from a copy of `x` (as in PyTorch, in-place operations save what they overwrite).
    *others : Tensor
        The other Tensors that `function` reads. Whether `x` may be written to depends on whether one of them requires grad.
    """
    mode = state.current()
    for other in others or (None,):
        check_writable(x, other, mode)
    recording = mode is None or mode.recording
    shared = recording and (x._node is not None or any(shares_memory(x, o) or o._node is not None for o in others))
    shared = shared or (mode is not None and bool(mode.levels) and mode.levels.have_tangents(x, *others))
    out = function(x.clone() if shared else x)
    _commit(x, _fit(x, out, getattr(function, "__name__", "operation")), x._node if recording else None, mode)
    return x


def _reads_first(row: Any, x: Any, other: Any) -> bool:
    """Return whether the node of ``x OP other`` will save values that the write overwrites."""
    operands = (x, other)
    return any(
        row.tensors[0] in reads or (other is x and row.tensors[-1] in reads)
        for reads, operand in zip(row.reads, operands)
        if getattr(operand, "_node", None) is not None
    )


def shares_memory(x: Any, other: Any) -> bool:
    """Return whether `other` is a view or a detached alias of `x`."""
    alias = getattr(other, "_alias", None)
    return alias is not None and x._alias is not None and alias.cell is not None and alias.cell is x._alias.cell


def _step(x: Any, name: str, other: Any) -> bool:
    """Fast path of `apply` for an optimiser's step, with equal shapes and dtypes and no recording; return False in all other cases."""
    array, value, alias = x._array, other._array, x._alias
    if array.__class__ is not x.backend.array_type or array.dtype is not value.dtype or array.shape != value.shape:
        return False
    if alias is None:
        alias = alias_of(x)
    operator = ROWS[name].operator
    update = None if operator is None else operator.update
    if update is None or alias.cell is None or alias.parent is not None or alias.cell.is_copy or not x.backend.raw_operators:
        return False
    if other is not x and shares_memory(x, other):
        return False
    if not x.backend.capabilities.mutable:
        return False
    try:
        update(array, value)
        bump(x)
    except (RuntimeError, TypeError, ValueError):  # read-only memory, or a quotient of integers: the general path raises
        return False
    except BaseException:
        bump(x)  # interrupted: it counts as a write
        raise
    return True


def _compute_in_place(x: Any, name: str, other: Any, mode: Any) -> bool:
    """Let the library compute ``x OP other`` directly into the memory of `x`, if nothing is recorded and it can.

    Return whether it did; if not, `x` is unchanged.
    """
    operator = ROWS[name].operator
    update = None if operator is None else operator.update
    backend = x.backend
    if update is None or not backend.capabilities.mutable or not backend.raw_operators or not x.dtype.differentiable or copies(mode, x):
        return False
    if isinstance(other, complex) and not x.dtype.is_complex:
        return False
    value: Any = other
    if not is_scalar(other):
        if type(other) is not type(x) or value.dtype is not x.dtype:
            return False
        if other is not x and shares_memory(x, other):
            return False  # not every library supports operands that overlap with the output
        if value.shape != x.shape and common_shape(value.shape, x.shape) != x.shape:
            return False
        value = value._array
    else:
        value = as_scalar(other)
    if mode is not None:
        update = functools.partial(mode.call, f"{name}_", update)
    _write_in_place(x, update, backend.own(x), value)
    if mode is not None:
        mode.note_write(x, other)
    return True


def fill(x: Any, value: Any) -> Any:
    """Overwrite every element of `x` with one value, and return `x`."""
    setitem(x, ..., value)
    return x


def setitem(x: Any, key: Any, value: Any) -> None:
    """Write ``x[key] = value``; the gradient goes to `value`, which broadcasts, and to the elements of `x` that stay.

    Raises
    ------
    TypeError, IndexError, ValueError, RuntimeError, NotImplementedError
        If the key or the value does not fit, or the write is refused; `x` is unchanged then.
    """
    mode = state.current()
    basic = basic_key(key)
    if not basic:
        for part in key if isinstance(key, tuple) else (key,):
            if getattr(part, "stage", 0) > x.stage:
                become_batched(x, type(part))
    if isinstance(value, (list, tuple)):
        value = asarray(value, device=x.device)  # as NumPy; PyTorch refuses lists
    elif not isinstance(value, TensorBase):
        scalar = as_scalar(value)
        value = _as_constant("x[key] = value", value, x) if scalar is NOT_SCALAR else _scalar_value(x, scalar)
        if not isinstance(value, TensorBase):
            what = f"a Tensor, an array or a scalar as the value, but got {type(value).__name__}"
            msg = f"x[key] = value needs {what}; use `xpgrad.asarray(value)`"
            raise TypeError(msg)
    if type(value) is not type(x):
        _, value = unify("x[key] = value", [x, value])
    check_writable(x, value, mode)
    prepared = key if basic else prepare_key(x, key)
    if value._array.dtype is not x._array.dtype and value.dtype is not x.dtype:
        value = _fit_value(x, value)
    shape = value._array.shape
    if len(shape) and shape[0] == 1:
        value = _drop_leading_axes(value, _rank_of_part(x, prepared))
    try:
        _write_at(x, prepared, value, mode)
    except (ValueError, OverflowError, IndexError, TypeError) as exc:
        error = _does_not_fit(x, key, value, exc)
        if error is exc:
            raise
        raise error from exc


def _write_at(x: Any, key: Any, value: Any, mode: Any) -> None:
    """Write `value`, which has the dtype and device of `x`, at a key that was checked and normalised."""
    if ((mode is None or mode.recording) and (x._node is not None or value._node is not None)) or (
        mode is not None and mode.levels and mode.levels.have_tangents(x, value)
    ):
        key = key if isinstance(key, tuple) else (key,)
        if not (mode is None or (mode.only_copies and _is_alone(x))) or not _write_part(x, key, value, renews=mode is not None):
            _commit(x, x._op_put(value, key), None, mode)
        return
    backend = x.backend
    if not backend.checks_indices:  # `update` may be the backend's own
        key = check_key(backend.kernels, key, x.shape, x._array)
    alone = copies(mode, x) and _is_alone(x)  # asked before this function refers to the array
    array = backend.own(x)
    copying = not backend.capabilities.mutable or (copies(mode, x) and not alone)
    change = backend.kernels.written if copying else backend.update
    if mode is not None:
        change = functools.partial(mode.call, "setitem", change)
    if copying:
        raw = change(backend.kernels.copy(array), key, value._array)
        run_uninterrupted(lambda: rebind(x, raw))
    elif alone:

        def steps() -> None:
            x._array = change(array, key, value._array)
            renew_arrays(x)
            bump(x)

        run_uninterrupted(steps)
    else:
        _write_in_place(x, change, array, key, value._array)
    if mode is not None:
        mode.note_write(x, value)


def _is_alone(x: Any) -> bool:
    """Return whether a write may change the array of `x` itself where writes keep what was saved."""
    return not x._is_view() and is_unshared(x)


def _write_part(x: Any, key: tuple[Any, ...], value: Any, *, renews: bool) -> bool:
    """Write to a part of the memory of `x` and record that; return False, without writing, if all of `x` must be computed again.

    If `renews`, views have arrays of their own, which get the new values.
    """
    backend = x.backend
    if not (basic_key(key) and backend.capabilities.mutable and backend.capabilities.view_aliases):
        return False
    array, part = backend.own(x), value._array
    if value._node is not None and part.shape != backend.kernels.index_basic(array, key).shape:
        return False
    if backend.may_alias(array, part):  # not every library reads the value before it writes
        return False
    node = x._op_put_through(value, (("index_basic", (key,)),))._node

    def steps() -> None:
        x._array = backend.update(array, key, part)
        if renews:
            renew_arrays(x)
        bump(x)
        node.seq = next_number()
        adopt(x, node)

    run_uninterrupted(steps)
    return True


def _rank_of_part(x: Any, key: Any) -> int:
    """Return the number of axes of ``x[key]``, for a key that was checked and normalised."""
    rank, joint = x.ndim, 0
    for part in key if isinstance(key, tuple) else (key,):
        if part is None:
            rank += 1
        elif isinstance(part, int):
            rank -= 1
        elif part is not Ellipsis and not isinstance(part, slice):
            mask = x.backend.kernels.isdtype(part.dtype, "bool")
            rank -= len(part.shape) if mask else 1
            joint = max(joint, 1 if mask else len(part.shape))  # the arrays of a key have common axes
    return int(rank + joint)


def _drop_leading_axes(value: Any, rank: int) -> Any:
    """Drop the leading axes of `value` beyond `rank` if they have length 1, as NumPy and PyTorch do."""
    extra = value.ndim - rank
    return reshape(value, value.shape[extra:]) if extra > 0 and set(value.shape[:extra]) == {1} else value


def _does_not_fit(x: Any, key: Any, value: Any, exc: Exception) -> Exception:
    """Return the error for a write that the library refused."""
    error = basic_error(x, key, exc)
    if error is not exc or not isinstance(exc, ValueError):
        return error
    return ValueError(
        f"x[key] = value: a value of shape {value.shape} does not fit the part of x, of shape {x.shape}, that is written to: {exc}"
    )


def _scalar_value(x: Any, scalar: Any) -> Any:
    """Return a Python scalar as a constant in the dtype of `x`."""
    dtype = x.dtype
    if promote_scalar(dtype, scalar, x.default_dtype) is not dtype and not (dtype.category == "bool" and isinstance(scalar, int)):
        msg = f"x[key] = {scalar!r}: a {type(scalar).__name__} does not fit a Tensor of dtype {dtype}; convert with `xpgrad.astype`"
        raise TypeError(msg)
    return type(x).scalar(scalar, dtype)


def _fit_value(x: Any, value: Any) -> Any:
    if not can_cast(value.dtype, x.dtype) and value.dtype.kind != x.dtype.kind:
        msg = f"x[key] = value: a value of dtype {value.dtype} does not fit a Tensor of dtype {x.dtype}; use `xpgrad.astype`"
        raise TypeError(msg)
    return value._cast(x.dtype)
