"""`xpgrad.utils.checkpoint`: recompute values instead of saving them, with the names of `torch.utils.checkpoint`.

A checkpointed function saves only its arguments for backward: hooks on saved Tensors replace each by a number, and the first number that a
backward pass needs causes the function to run again.
"""

from __future__ import annotations

import traceback
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any

from xpgrad._aliasing.cells import alias_of, next_number
from xpgrad._basics.arguments import as_flag, as_flags, as_int, check_callable, shown
from xpgrad._basics.faces import public_names
from xpgrad._basics.frames import is_own
from xpgrad._modes import state
from xpgrad._modes.setting import Setting
from xpgrad._tape.packing import SavedHooks, mode_with_hooks
from xpgrad._tape.requests import backward as run_backward
from xpgrad._tape.saved import check_version
from xpgrad._tape.task import current_pass
from xpgrad._tensor.tensor import Tensor
from xpgrad.autograd._custom import Saved
from xpgrad.autograd.function import Function, once_differentiable
from xpgrad.utils._selective import CheckpointPolicy, SelectiveCheckpointContext, create_selective_checkpoint_contexts
from xpgrad.utils._surroundings import Surroundings

__all__ = [
    "CheckpointError",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]


def __dir__() -> list[str]:
    return public_names(__name__)


_EARLY_STOP: ContextVar[bool | None] = ContextVar("xpgrad_checkpoint_early_stop", default=None)
_DEBUG: ContextVar[bool | None] = ContextVar("xpgrad_checkpoint_debug", default=None)


class CheckpointError(RuntimeError):
    """A function that ran again for the backward saved other Tensors than the first time.

    Examples
    --------
    >>> from xpgrad.utils import checkpoint
    >>> issubclass(checkpoint.CheckpointError, RuntimeError)
    True
    """


class _Enough(BaseException):
    """The exception that stops a recomputation after the last value that the backward pass needs."""

    def __init__(self, frame: _Frame) -> None:
        self.frame = frame


def noop_context_fn() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Return two context managers that do nothing: the default `context_fn` of `checkpoint`.

    Returns
    -------
    (context manager, context manager)
        For the forward, and for the recomputation.

    Examples
    --------
    >>> from xpgrad.utils import checkpoint
    >>> len(checkpoint.noop_context_fn())
    2
    """
    return nullcontext(), nullcontext()


def set_checkpoint_early_stop(enable: bool) -> AbstractContextManager[None]:
    """Choose in a context whether `checkpoint` stops recomputing early, overriding its argument `early_stop`.

    Parameters
    ----------
    enable : bool
        It applies to calls of `checkpoint` in the context, wherever the backward pass runs.

    Returns
    -------
    context manager
        Leaving it restores the former setting.

    Raises
    ------
    TypeError
        `enable` is not a bool.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.utils import checkpoint
    >>> with checkpoint.set_checkpoint_early_stop(False):
    ...     y = checkpoint.checkpoint(xp.sin, xp.tensor(0.5))
    """
    return Setting(_EARLY_STOP, as_flag(enable, "set_checkpoint_early_stop", "enable"))


def set_checkpoint_debug_enabled(enabled: bool | None) -> AbstractContextManager[None]:
    """Choose in a context whether errors of `checkpoint` say where Tensors were saved, overriding its argument `debug`.

    Parameters
    ----------
    enabled : bool or None
        It applies to calls of `checkpoint` in the context. None leaves the choice to the argument.

    Returns
    -------
    context manager
        Leaving it restores the former setting.

    Raises
    ------
    TypeError
        `enabled` is neither a bool nor None.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.utils import checkpoint
    >>> with checkpoint.set_checkpoint_debug_enabled(True):
    ...     y = checkpoint.checkpoint(xp.sin, xp.tensor(0.5))
    """
    return Setting(_DEBUG, None if enabled is None else as_flag(enabled, "set_checkpoint_debug_enabled", "enabled"))


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool = False,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function and save only its arguments for backward, which recomputes the function.

    Parameters
    ----------
    function : callable
        It must compute the same both times; its side effects happen twice. It may return any object.
    *args, **kwargs
        The arguments of `function`. Active hooks for saved Tensors apply to Tensors among them, but not inside lists.
    use_reentrant : bool, default False
        Use the older form: a custom `Function` whose backward starts another backward pass. It supports only ``backward()`` without
        `inputs`, differentiates once, takes no keyword arguments, and sees only Tensors that are themselves arguments or results.
    context_fn : callable
        Returns two context managers, for the first call and for recomputations; see `create_selective_checkpoint_contexts`. They are
        not entered if nothing is recorded.
    determinism_check : {"default", "none"}
        Whether to compare the shapes, dtypes and devices of the Tensors that both calls save.
    debug : bool
        Include the places in the program where both calls saved Tensors in errors. `set_checkpoint_debug_enabled` overrides it.
    early_stop : bool, default True
        Stop recomputing after the last value that is needed. `set_checkpoint_early_stop` overrides it.
    preserve_rng_state : bool, default True
        Draw the same random numbers again from the global generators of NumPy and of the devices that have been used
        (`Backend.get_rng_state`). The function is responsible for other generators and keys.

    Returns
    -------
    object
        The result of `function`.

    Raises
    ------
    CheckpointError
        In the backward pass: the function saves other Tensors than the first time.
    ValueError
        Options cannot be combined.
    TypeError
        `function` or `context_fn` is not callable, or an option has the wrong type.

    Notes
    -----
    Each backward pass recomputes, even through a retained graph, and drops the recomputed values at its end. The recomputation runs with
    the recording mode, the levels of forward mode and `vmap`, the default device and the streams of the first call.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.utils.checkpoint import checkpoint
    >>> x = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> y = checkpoint(lambda x: xp.sum(xp.exp(x) * x), x)
    >>> y.backward()
    >>> x.grad
    tensor([ 5.4366, 22.1672])
    """
    check_callable(function, "checkpoint", "function")
    check_callable(context_fn, "checkpoint", "context_fn")
    use_reentrant, debug, early_stop, preserve_rng_state = as_flags(
        "checkpoint", use_reentrant=use_reentrant, debug=debug, early_stop=early_stop, preserve_rng_state=preserve_rng_state
    )
    if use_reentrant:
        if context_fn is not noop_context_fn or debug:
            msg = "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            raise ValueError(msg)
        if kwargs:
            msg = f"Unexpected keyword arguments: {', '.join(kwargs)}. With use_reentrant=True give all arguments by position"
            raise ValueError(msg)
        if not any(isinstance(a, Tensor) and a.requires_grad for a in args):
            warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", UserWarning, stacklevel=2)
        return _Reentrant.apply(function, preserve_rng_state, *args)
    if not isinstance(determinism_check, str) or determinism_check not in ("default", "none"):
        msg = f"determinism_check should be one of ['default', 'none'], but got {determinism_check!r:.60}"
        raise ValueError(msg)
    contexts = context_fn()
    if not isinstance(contexts, (tuple, list)) or len(contexts) != 2 or not all(hasattr(type(c), "__enter__") for c in contexts):
        msg = (
            f"checkpoint: `context_fn` must return two contexts, for the first run and for those that recompute, but gave {contexts!r:.60}"
        )
        raise TypeError(msg)
    forward_context, again_context = contexts
    if not state.is_grad_enabled():
        return function(*args, **kwargs)
    override, debug_override = _EARLY_STOP.get(), _DEBUG.get()
    frame = _Frame(
        function, args, kwargs, again_context,
        early_stop=early_stop if override is None else override, check=determinism_check == "default",
        debug=debug if debug_override is None else debug_override,
        surroundings=Surroundings(preserve_rng_state),
    )  # fmt: skip
    before = state.current()
    try:
        state.put(mode_with_hooks(SavedHooks(frame.pack, frame.unpack)))
        with forward_context:
            out = function(*args, **kwargs)
    finally:
        state.put(before)
    frame.completed = True
    return out


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,  # noqa: A002 (PyTorch's name)
    use_reentrant: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a chain of functions in checkpointed segments; the last segment is not checkpointed.

    Parameters
    ----------
    functions : iterable of callable
    segments : int
        The number of segments; the last one gets the remaining functions.
    input : Tensor
        The argument of the first function.
    use_reentrant, preserve_rng_state : bool
        As for `checkpoint`.
    **kwargs : object
        Options of `checkpoint`, such as `preserve_rng_state`.

    Returns
    -------
    object
        The result of the last function.

    Raises
    ------
    ValueError
        An argument is unknown, or `segments` is not between 1 and the number of functions.
    TypeError
        `functions` is not iterable.

    Examples
    --------
    >>> import xpgrad as xp
    >>> from xpgrad.utils import checkpoint
    >>> x = xp.tensor(0.5, requires_grad=True)
    >>> y = checkpoint.checkpoint_sequential([xp.sin, xp.exp, xp.tanh], 2, x)
    >>> y.backward()
    >>> x.grad
    tensor(0.2075)
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        msg = f"Unexpected keyword arguments: {', '.join(kwargs)}; checkpoint_sequential takes `use_reentrant` and `preserve_rng_state`"
        raise ValueError(msg)
    if not isinstance(functions, Iterable):
        msg = f"checkpoint_sequential: `functions` must be a list of functions, but got {shown(functions)}"
        raise TypeError(msg)
    chain = list(functions)
    for function in chain:
        check_callable(function, "checkpoint_sequential", "functions")
    segments = as_int(segments, "checkpoint_sequential", "segments")
    (use_reentrant,) = as_flags("checkpoint_sequential", use_reentrant=use_reentrant)
    if not 1 <= segments <= len(chain):
        msg = f"checkpoint_sequential: `segments` must be between 1 and the number of functions, {len(chain)}, but got {segments}"
        raise ValueError(msg)
    size = len(chain) // segments
    last = size * (segments - 1)
    x = input
    for start in range(0, last, size):
        x = checkpoint(_compose(chain[start : start + size]), x, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return _compose(chain[last:])(x)


def _compose(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def composed(x: Any) -> Any:
        for function in functions:
            x = function(x)
        return x

    return composed


# -- one call ---------------------------------------------------------------------------------------------------------


class _Place:
    """A placeholder that a node stores for a saved Tensor: its number among the Tensors that the call saved."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class _Moment:
    """A stand-in for a node in `check_version`, with the creation number that a node made at this moment would have."""

    __slots__ = ("seq",)

    def __init__(self) -> None:
        self.seq = next_number()

    def name(self) -> str:
        """Return the name for error messages."""
        return "a checkpointed function"


class _Argument:
    """A Tensor argument of the function, checked for overwriting, and packed if hooks are active."""

    def __init__(self, tensor: Any, hooks: SavedHooks | None) -> None:
        self._moment: Any = _Moment()
        self._saved = Saved(tensor, None)
        mode = state.current()
        self._tensor = tensor if hooks is None and mode is not None and mode.levels else None  # keeps the tangents of a constant alive
        if hooks is not None:
            self._saved.pack(hooks, tensor)

    def read(self) -> Any:
        """Return the Tensor with its history."""
        return self._saved.read(self._moment)


class _Recomputed:
    """A recomputed value without history, which is checked for overwriting."""

    __slots__ = ("_alias", "_moment", "_tensor")

    def __init__(self, tensor: Any) -> None:
        self._alias = alias_of(tensor)
        self._moment: Any = _Moment()
        self._tensor = tensor._wrap(tensor.backend.own(tensor))

    def read(self) -> Any:
        """Return the Tensor."""
        check_version(self._moment, f"a Tensor of shape {self._tensor.shape}", self._alias)
        return self._tensor


class _Frame:
    """One call of a checkpointed function, which can be repeated, and a description of what it saved.

    Attributes
    ----------
    places : list
        Weak references to the places that nodes store; a value is needed as long as its place is alive.
    completed : bool
        Whether the first call has returned; before that, a backward pass inside the function needs only a part of it.
    """

    def __init__(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], context: Any, *, early_stop: bool, check: bool, debug: bool,
        surroundings: Surroundings,
    ) -> None:  # fmt: skip
        mode = state.current()
        hooks = None if mode is None else mode.packing
        self.function = function
        self.args = [_store(a, hooks) for a in args]
        self.kwargs = {name: _store(a, hooks) for name, a in kwargs.items()}
        self.context = context
        self.early_stop, self.check, self.debug = early_stop, check, debug
        self.surroundings = surroundings
        self.completed = False
        self.places: list[Any] = []
        self.metadata: list[tuple[Any, ...]] = []
        self.stacks: list[str] = []

    def pack(self, x: Any) -> _Place:
        """Replace a saved Tensor by its number: the pack hook of the first call."""
        place = _Place(len(self.places))
        self.places.append(weakref.ref(place))
        self.metadata.append(_metadata(x))
        if self.debug:
            self.stacks.append(_here())
        return place

    def unpack(self, place: _Place) -> Any:
        """Return a value for this pass, for which the function is called again once: the unpack hook."""
        task = current_pass()
        # Values are stored on the backward pass, and freed with it.
        found = {} if task is None else task.notes.setdefault(self, {})
        if place.number not in found:
            self._compute(found)
        try:
            value = found.pop(place.number)
        except KeyError:
            msg = (
                f"xpgrad.utils.checkpoint: the saved Tensor number {place.number} was not recomputed; the function must do the same "
                "each time it is called"
            )
            raise CheckpointError(msg) from None
        return value.read()

    def _compute(self, found: dict[int, _Recomputed]) -> None:
        """Call the function again, and store the values that are still needed in `found`, by number."""
        needed = [r() is not None for r in self.places]
        last = max((k for k, need in enumerate(needed) if need), default=-1)
        metadata: list[tuple[Any, ...]] = []
        stacks: list[str] = []

        def pack(x: Any) -> Any:
            k = len(metadata)
            metadata.append(_metadata(x))
            if self.debug:
                stacks.append(_here())
            again = _Recomputed(x)
            if k < len(needed) and needed[k]:
                found[k] = again
            if self.early_stop and k == last:
                raise _Enough(self)
            return again

        args = [a.read() if a.__class__ is _Argument else a for a in self.args]
        kwargs = {name: a.read() if a.__class__ is _Argument else a for name, a in self.kwargs.items()}
        try:
            # A backward pass inside the function unpacks its saved values with these hooks.
            with self.surroundings.restore(SavedHooks(pack, _Recomputed.read)), self.context:
                self.function(*args, **kwargs)
        except _Enough as enough:
            if enough.frame is not self:
                raise
        else:
            if self.completed and len(metadata) != len(self.metadata):
                msg = (
                    "xpgrad.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                    f"Number of tensors saved during forward: {len(self.metadata)}\n"
                    f"Number of tensors saved during recomputation: {len(metadata)}\n"
                    f"The function must do the same each time it is called.{self._find_divergence(stacks)}"
                )
                raise CheckpointError(msg)
        if self.check:
            self._compare(metadata, stacks)

    def _compare(self, metadata: list[tuple[Any, ...]], stacks: list[str]) -> None:
        """Raise CheckpointError if the recomputation saved Tensors of other shapes, dtypes or devices than the first call."""
        different = [(k, a, b) for k, (a, b) in enumerate(zip(self.metadata, metadata)) if a != b]
        if different:
            lines = "".join(
                f"\nTensor at position {k}:\n    saved: {_describe(a)}\n    recomputed: {_describe(b)}" for k, a, b in different
            )
            msg = (
                "xpgrad.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward "
                f"pass.{lines}{self._find_divergence(stacks, different[0][0])}"
            )
            raise CheckpointError(msg)

    def _find_divergence(self, stacks: list[str], k: int | None = None) -> str:
        """Return the lines of the program at which the two calls diverged, for the option `debug`."""
        if not self.debug:
            return "\nPass `debug=True` to `checkpoint` to see where they were saved."
        if k is None:
            pairs = enumerate(zip(self.stacks, stacks))
            k = next((i for i, (a, b) in pairs if a != b), min(len(self.stacks), len(stacks)))
        parts = [f"\nSaved Tensor {k} {name}:\n{s[k]}" for name, s in (("in the forward", self.stacks), ("again", stacks)) if k < len(s)]
        return "".join(parts)


def _store(a: Any, hooks: SavedHooks | None) -> Any:
    """Return the form in which an argument is stored for the second call; elements of a batch, without history, stay unchanged."""
    return _Argument(a, hooks) if isinstance(a, Tensor) and not a.depth and not a.is_inference() else a


def _metadata(x: Any) -> tuple[Any, ...]:
    # Unknown lengths are nan, which does not equal itself: replace them by None.
    return tuple(n if n == n else None for n in x.shape), x.dtype, x.device


def _describe(metadata: tuple[Any, ...]) -> str:
    shape, dtype, device = metadata
    return f"shape {shape}, dtype {dtype}, device {device}"


def _here() -> str:
    """Return the user's part of the call stack as text."""
    frames = [f for f in traceback.extract_stack() if not is_own(f.filename)]
    return "".join(traceback.format_list(frames[-8:]))


# -- the older form ----------------------------------------------------------------------------------------------------


class _Reentrant(Function):
    """The function as one node; its backward calls it again, recorded, and starts a backward pass through the new graph."""

    @staticmethod
    def forward(ctx: Any, function: Any, preserve: bool, *args: Any) -> Any:
        ctx.function = function
        ctx.surroundings = Surroundings(preserve)
        ctx.others = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        return function(*args)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        task = current_pass()
        if task is not None and (task.capture or task.targets is not None):
            msg = (
                "When use_reentrant=True, xpgrad.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to "
                ".backward(). To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the "
                "`inputs` argument."
            )
            raise RuntimeError(msg)
        args = list(ctx.others)
        for i, x in zip(ctx.places, ctx.saved_tensors):
            args[i] = x.detach().requires_grad_() if x.requires_grad else x.detach()
        with ctx.surroundings.restore():
            out = ctx.function(*args)
        outs = out if isinstance(out, tuple) else (out,)
        roots = [(o, g) for o, g in zip(outs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not roots:
            msg = "none of output has requires_grad=True, this checkpoint() is not necessary"
            raise RuntimeError(msg)
        run_backward([o for o, _ in roots], [g for _, g in roots])
        return (None, None, *(a.grad if isinstance(a, Tensor) else None for a in args))
