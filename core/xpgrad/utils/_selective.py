"""Selective checkpoints: a policy chooses the operations whose results are saved and not recomputed (SAV-20 to SAV-24).

In the first run the mode passes each operation's result to the policy (`Mode.finish_operation`). In a recomputation, operations with a
saved result ask for it before they compute (`_operations.watching`). A call is identified by its operation and its number among the calls
of that operation. Under `vmap`, an operation is the one on the whole batch.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Any

from xpgrad._aliasing.cells import alias_of, next_number
from xpgrad._backends.classes import host_backend
from xpgrad._basics.arguments import as_flag, shown
from xpgrad._modes import state
from xpgrad._operations.watching import ABSENT, Watching
from xpgrad._rows.namespace import COMPOSITE, EXTRAS, NONDIFFERENTIABLE, PRIMITIVES, RULES
from xpgrad._rows.row import ROWS, Row


class CheckpointPolicy(enum.Enum):
    """The decision of a policy on the result of an operation.

    ``MUST_SAVE`` and ``PREFER_SAVE`` save the result, ``MUST_RECOMPUTE`` and ``PREFER_RECOMPUTE`` recompute it. ``MUST_CPU_OFFLOAD`` and
    ``PREFER_CPU_OFFLOAD`` save it in host memory, and move it back when it is needed. Nothing overrides a preference, so both forms have
    the same effect.

    Examples
    --------
    >>> from xpgrad.utils import checkpoint
    >>> [policy.name for policy in checkpoint.CheckpointPolicy]
    ['MUST_SAVE', 'PREFER_SAVE', 'MUST_RECOMPUTE', 'PREFER_RECOMPUTE', 'MUST_CPU_OFFLOAD', 'PREFER_CPU_OFFLOAD']
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOADED = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """The first argument of a policy: information on the operation.

    Attributes
    ----------
    is_recompute : bool
        Always False, since policies are called in the first run only.
    op_output : Tensor or tuple of Tensor
        The result of the operation.

    Examples
    --------
    >>> from xpgrad.utils import checkpoint
    >>> context = checkpoint.SelectiveCheckpointContext(is_recompute=False)
    >>> context.is_recompute
    False
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | Collection[Callable[..., Any]], allow_cache_entry_mutation: bool = False
) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Make the two contexts of a checkpointed call whose saved results a policy chooses, for the argument `context_fn` of `checkpoint`.

    Parameters
    ----------
    policy_fn_or_list : callable, or list of functions
        ``policy(ctx, op, *args)`` returns a `CheckpointPolicy`, or True for ``MUST_SAVE`` and False for ``PREFER_RECOMPUTE``. `op` is the
        public function of the operation (`xpgrad.matmul`, also for ``x @ y``; `operator.getitem` for ``x[key]``), or an internal function
        for an operation without a public name. `args` are its operands, followed by its other arguments in normal form. A list of functions
        is the policy that returns ``MUST_SAVE`` for these and ``PREFER_RECOMPUTE`` for others.
    allow_cache_entry_mutation : bool, default False
        Do not check whether saved results were overwritten.

    Returns
    -------
    tuple of two context managers
        For the first call, and for the recomputation.

    Raises
    ------
    TypeError
        `policy_fn_or_list` is neither a function nor a collection of functions. When called: the policy returns something else.
    ValueError
        A function in the list is not an operation, or is composed of several operations.
    RuntimeError
        In the backward pass: a saved result was overwritten, or the function calls other operations than the first time.

    Notes
    -----
    Views are never saved, since they cost nothing. Saved results live as long as the graph: another pass through a retained graph finds
    them again, where PyTorch 2.13 raises an error. The policy is not called for operations inside functions made by `xpgrad.compile`, for
    operations on elements of a batch (it is called for the whole batch), and for tangents. In PyTorch 2.13 the policies for host memory
    recompute.

    Examples
    --------
    >>> import functools
    >>> import xpgrad as xp
    >>> from xpgrad.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> x = xp.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> keep_products = functools.partial(create_selective_checkpoint_contexts, [xp.matmul])
    >>> y = checkpoint(lambda x: xp.sum(xp.tanh(x @ x) ** 2), x, use_reentrant=False, context_fn=keep_products)
    >>> y.backward()
    """
    name = "create_selective_checkpoint_contexts"
    allow = as_flag(allow_cache_entry_mutation, name, "allow_cache_entry_mutation")
    if isinstance(policy_fn_or_list, (list, tuple, set, frozenset)):
        policy = _policy_of(policy_fn_or_list)
    elif callable(policy_fn_or_list):
        policy = _check_context_fn(policy_fn_or_list)
    else:
        msg = f"{name}: policy_fn_or_list must be either a function or a list of ops, but got {shown(policy_fn_or_list)}"
        raise TypeError(msg)
    first = _Keeping(policy)
    return first, _Returning(first, allow)


# -- which operation ---------------------------------------------------------------------------------------------------


def _public(name: str) -> Any:
    """Return a public function by its registered name; None if there is none."""
    return next((table[name] for table in (RULES, NONDIFFERENTIABLE, COMPOSITE, EXTRAS) if name in table), None)


def operation_of(row: Row) -> Any:
    """Return the function that a policy gets for a row."""
    if row.name == "index_basic":
        return operator.getitem
    return _public(row.public[0]) or PRIMITIVES[row.name]


def _rows_of(function: Any) -> set[str]:
    """Return the names of the rows that a function in a policy's list stands for.

    Raises
    ------
    ValueError
        It stands for none.
    """
    found = {name for name, row in ROWS.items() if operation_of(row) is function}
    found |= {name for name, row in ROWS.items() if any(_public(p) is function for p in row.public)}
    if found:
        return found
    if any(function is f for f in COMPOSITE.values()):
        hint = "it is composed of others: name those"
    else:
        hint = "give public functions that compute on Tensors, e.g. `xpgrad.matmul`"
    msg = f"create_selective_checkpoint_contexts: expected operations in the list, but got {shown(function)}; {hint}"
    raise ValueError(msg)


_Policy = Callable[[Any, Row, tuple[Any, ...]], CheckpointPolicy]


def _policy_of(functions: Collection[Any]) -> _Policy:
    """Return the policy that saves the results of the given functions only."""
    names = {name for function in functions for name in _rows_of(function)}
    return lambda ctx, row, args: CheckpointPolicy.MUST_SAVE if row.name in names else CheckpointPolicy.PREFER_RECOMPUTE


def _check_context_fn(function: Callable[..., Any]) -> _Policy:
    """Wrap a policy so that its answer is checked, and a bool is converted to a `CheckpointPolicy`."""

    def policy(ctx: Any, row: Row, args: tuple[Any, ...]) -> CheckpointPolicy:
        answer = function(ctx, operation_of(row), *args)
        if isinstance(answer, bool):
            return CheckpointPolicy.MUST_SAVE if answer else CheckpointPolicy.PREFER_RECOMPUTE
        if not isinstance(answer, CheckpointPolicy):
            msg = f"the policy of a selective checkpoint must return a CheckpointPolicy or a bool, but returned {shown(answer)}"
            raise TypeError(msg)
        return answer

    return policy


# -- what is kept --------------------------------------------------------------------------------------------------------


class _Result:
    """A saved result of one operation.

    Attributes
    ----------
    operands : tuple
        Shapes and dtypes of the operands, with which a recomputation must agree.
    """

    def __init__(self, out: Any, operands: tuple[Any, ...], offload: bool) -> None:
        outs = out if out.__class__ is tuple else (out,)
        self.operands = operands
        self.several = out.__class__ is tuple
        self._number = next_number()
        self._cells = [alias_of(o).cell for o in outs]
        self._device = outs[0].device
        away = offload and not outs[0].backend.on_host(self._device)
        self._values = [o.to_device(host_backend().devices()[0]) if away else o.detach() for o in outs]

    def read(self, allow: bool) -> Any:
        """Return the raw array or the tuple of raw arrays.

        Raises
        ------
        RuntimeError
            It was overwritten, and `allow` is False.
        """
        written = any(c is not None and c.last_write > self._number for c in self._cells)
        if written and not allow:
            msg = (
                "Tensor cached during selective activation checkpoint has been mutated; write into a `clone()` of it, let the policy "
                "recompute it, or pass `allow_cache_entry_mutation=True` if its new value is meant"
            )
            raise RuntimeError(msg)
        values = [v.to_device(self._device) for v in self._values]
        # A result that was overwritten may be overwritten again, and the user holds the original.
        raws = [v.backend.own(v.clone() if written else v) for v in values]
        return tuple(raws) if self.several else raws[0]


#: By operation and backend, an entry per call: the saved result, or a marker that it is recomputed.
_Kept = dict[tuple[Row, Any], list[Any]]
_RECOMPUTE: Any = object()


def _describe(value: Any) -> Any:
    """Return shape and dtype of an array, or the type of another operand; unknown lengths (nan) become None."""
    if value.__class__ is list:
        return [_describe(v) for v in value]
    shape = getattr(value, "shape", None)
    return type(value) if shape is None else ([n if n == n else None for n in shape], value.dtype)


class _Selection:
    """A context manager for one checkpointed call: the observer `selecting` of the mode inside it; `outer` is the one outside."""

    def __init__(self) -> None:
        self._before: list[Any] = []

    def __enter__(self) -> None:
        self._before.append(state.current())
        state.put(state.mode_with(selecting=self))

    def __exit__(self, *exc: object) -> None:
        state.put(self._before.pop())

    @property
    def outer(self) -> Any:
        """The selection outside this one; None if there is none."""
        mode = self._before[-1]
        return None if mode is None else mode.selecting

    def keep(self, out: Any, row: Row, operands: tuple[Any, ...], statics: tuple[Any, ...]) -> None:
        """Pass the result of an operation to all selections."""
        outer = self.outer
        if outer is not None:
            outer.keep(out, row, operands, statics)
        first = out[0] if out.__class__ is tuple else out
        if not first.stage:
            self.note(out, row, first.backend, operands, statics)

    def note(self, out: Any, row: Row, backend: Any, operands: tuple[Any, ...], statics: tuple[Any, ...]) -> None:
        """Process the result of an operation on Tensors: subclasses save it or count it."""
        raise NotImplementedError

    def result(self, row: Row, backend: Any, args: tuple[Any, ...]) -> Any:
        """Return the saved raw result of the operation that is about to run; ABSENT if it must be computed."""
        outer = self.outer
        return ABSENT if outer is None else outer.result(row, backend, args)


class _Keeping(_Selection):
    """The context of the first run, which saves results."""

    def __init__(self, policy: _Policy) -> None:
        super().__init__()
        self._policy = policy
        self.kept: _Kept = {}

    @property
    def running(self) -> bool:
        """Return whether the first run has not ended yet."""
        return bool(self._before)

    def note(self, out: Any, row: Row, backend: Any, operands: tuple[Any, ...], statics: tuple[Any, ...]) -> None:
        before = state.current()
        try:
            state.put(_hidden_mode())
            policy = self._policy(SelectiveCheckpointContext(is_recompute=False, op_output=out), row, (*operands, *statics))
            offload = policy in _OFFLOADED
            entry: Any = _RECOMPUTE
            # NB: inference tensors have no versions, and no pass needs them.
            if (offload or policy in _SAVED) and not row.is_view and not (before is not None and before.inference):
                told = tuple(_describe([x._array for x in v] if row.varargs else getattr(v, "_array", v)) for v in operands)
                entry = _Result(out, told, offload)
        finally:
            state.put(before)
        self.kept.setdefault((row, backend), []).append(entry)


class _Returning(_Selection):
    """The context of recomputations, which returns saved results."""

    def __init__(self, first: _Keeping, allow: bool) -> None:
        super().__init__()
        self._first, self.kept = first, first.kept
        self._allow = allow
        self._counts: dict[tuple[Row, Any], int] = {}
        self._watching: list[Watching] = []

    def __enter__(self) -> None:
        self._counts.clear()
        watching = Watching({row for (row, _), entries in self.kept.items() if any(e is not _RECOMPUTE for e in entries)})
        self._watching.append(watching)
        watching.__enter__()
        super().__enter__()

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._watching.pop().__exit__(*exc)

    def note(self, out: Any, row: Row, backend: Any, operands: tuple[Any, ...], statics: tuple[Any, ...]) -> None:
        if row.is_view:  # never saved, and their number depends on which views are stale
            return
        key = (row, backend)
        index = self._counts[key] = self._counts.get(key, 0) + 1
        if index > len(self.kept.get(key, ())) and not self._first.running:  # a pass inside the function runs before all calls are known
            raise _different(f"call number {index} of `{row.name}` was not there in the forward")

    def result(self, row: Row, backend: Any, args: tuple[Any, ...]) -> Any:
        entries, index = self.kept.get((row, backend), ()), self._counts.get((row, backend), 0)
        entry = entries[index] if index < len(entries) else _RECOMPUTE  # `note` raises for a surplus call
        if entry is _RECOMPUTE:
            return super().result(row, backend, args)
        if tuple(_describe(a) for a in args[: len(row.tensors)]) != entry.operands:
            raise _different(f"call number {index + 1} of `{row.name}` has operands of other shapes or dtypes than in the forward")
        before = state.current()
        try:
            state.put(_hidden_mode())
            return entry.read(self._allow)
        finally:
            state.put(before)


def _hidden_mode() -> state.Mode | None:
    """Return the mode in which the operations of a selection itself are neither recorded nor observed."""
    return state.mode_with(recording=False, inference=False, packing=None, levels=(), selecting=None, anomaly=None)


def _different(what: str) -> RuntimeError:
    return RuntimeError(f"xpgrad.utils.checkpoint: {what}; the function must do the same each time it is called")
