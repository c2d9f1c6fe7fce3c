"""What one thread's autograd is set to: recording or not, inference, anomaly detection. One context variable holds it all.

`None` is the common state (recording, nothing special), so that the hot path asks one C function one question.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, TypeVar

__all__ = ["Mode", "NO_GRAD", "current", "enter", "enable_grad", "enforce_grad_layout_policy", "inference_mode", "is_grad_enabled",
           "is_inference_mode_enabled", "leave", "no_grad", "set_grad_enabled"]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


class Mode:
    """An immutable state of the modes.

    ``recording`` tells whether operations are recorded; what else a mode wants of a result, it is told in `finish_operation`.

    Attributes
    ----------
    recording, inference, anomaly, check_nan : bool
    copies : bool
        Writes leave saved values alone (`allow_mutation_on_saved_tensors`).
    packing : object or None
        The hooks through which what is saved goes (`saved_tensors_hooks`).
    levels : tuple
        The levels of forward mode that are active, the outermost first.
    plain : bool
        There is nothing to add to a result: the hot path need not call `finish_operation`.
    """

    __slots__ = ("anomaly", "check_nan", "copies", "inference", "levels", "packing", "plain", "recording")

    def __init__(
        self, *, recording: bool = True, inference: bool = False, anomaly: bool = False, check_nan: bool = True, copies: bool = False,
        packing: Any = None, levels: tuple[Any, ...] = (),
    ) -> None:  # fmt: skip
        self.copies = copies
        self.inference = inference
        self.recording = recording and not inference
        self.anomaly = anomaly
        self.check_nan = check_nan
        self.packing = packing
        self.levels = levels
        self.plain = not inference and not levels and not (self.recording and (anomaly or packing is not None))

    def finish(self, out: Any) -> None:
        """Add to a fresh constant (a Tensor) what this mode asks for."""
        if self.inference:
            out._become_inference()
        elif self.anomaly and out._node is not None:
            from xpgrad._anomaly import remember_traceback

            remember_traceback(out._node.owner)

    def finish_operation(self, out: Any, row: Any, operands: tuple[Any, ...], statics: tuple[Any, ...]) -> None:
        """Add to the fresh result of an operation (a Tensor, or a tuple of them) what this mode asks for.

        Parameters
        ----------
        out : Tensor or tuple of Tensor
        row : Row
        operands : tuple
            Tensors and at most one Python scalar, unified; for a row with ``varargs`` one list of Tensors.
        statics : tuple
        """
        # In inference mode a view of a normal Tensor stays normal (INF-08).
        if not (self.inference and row.is_view and (operands[0]._alias is None or operands[0]._alias.forbidden != "inference")):
            for o in out if out.__class__ is tuple else (out,):
                self.finish(o)
        if self.packing is not None and self.recording:
            from xpgrad._packing import pack_result

            pack_result(self.packing, out, row, operands)
        if self.levels and not self.inference:
            from xpgrad._transforms.dual import carry

            carry(self, out, row, operands, statics)

    def _key(self) -> tuple[Any, ...]:
        return (self.recording, self.inference, self.anomaly, self.check_nan, self.copies, self.packing, self.levels)


NO_GRAD = Mode(recording=False)
_STATE: ContextVar[Mode | None] = ContextVar("xpgrad_mode", default=None)
current: Callable[[], Mode | None] = _STATE.get
_COMMON = Mode()


def enter(mode: Mode | None) -> Token[Mode | None]:
    """Set this context's mode; give the token to `leave`."""
    return _STATE.set(mode)


def leave(token: Token[Mode | None]) -> None:
    """Return to the mode before `enter`."""
    _STATE.reset(token)


def replaced(**changes: Any) -> Mode | None:
    """The current mode with some fields changed, in its canonical form."""
    mode = _STATE.get() or _COMMON
    fields: dict[str, Any] = {
        # Inside inference mode nothing records, whatever grad mode says (INF-09); remember grad mode as True.
        "recording": mode.recording or mode.inference,
        "inference": mode.inference,
        "anomaly": mode.anomaly,
        "check_nan": mode.check_nan,
        "copies": mode.copies,
        "packing": mode.packing,
        "levels": mode.levels,
    } | changes
    new = Mode(**fields)
    if new._key() == _COMMON._key():
        return None
    return NO_GRAD if new._key() == NO_GRAD._key() else new


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    mode = _STATE.get()
    return mode is None or mode.recording


def carries_tangents() -> bool:
    """Whether forward mode is active and something has a tangent: then gradients have tangents too, and passes run on Tensors."""
    mode = _STATE.get()
    return mode is not None and not mode.inference and any(level.active for level in mode.levels)


def is_inference_mode_enabled() -> bool:
    """Whether `inference_mode` is active in this thread."""
    mode = _STATE.get()
    return mode is not None and mode.inference


class ModeSwitch:
    """Base of the mode contexts: a context manager that is a decorator too, for functions and for generators."""

    def _mode(self) -> Mode | None:
        raise NotImplementedError

    def clone(self) -> ModeSwitch:
        """A fresh instance with the same arguments: decorated functions may recurse."""
        return type(self)()

    def __enter__(self) -> None:
        mode = self._mode()  # may refuse: then nothing has changed
        self._tokens = (*getattr(self, "_tokens", ()), _STATE.get())
        _STATE.set(mode)

    def __exit__(self, *exc: object) -> None:
        # NB: restores a value, not a Token: generators may be finalised in another context, where a Token is refused.
        *rest, before = self._tokens
        self._tokens = tuple(rest)
        _STATE.set(before)

    def __call__(self, func: F) -> F:
        if inspect.isclass(func):
            msg = f"`{type(self).__name__}` decorates functions, not the class {func.__name__}; decorate its methods"
            raise TypeError(msg)
        if inspect.isgeneratorfunction(func):
            return _around_generator(self, func)

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self.clone():
                return func(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


def _around_generator(switch: ModeSwitch, func: F) -> F:
    """Apply a mode only while the body of a generator runs (MOD-05)."""

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with switch.clone():
            generator = func(*args, **kwargs)
        step: Callable[[], Any] = functools.partial(next, generator)
        try:
            while True:
                try:
                    with switch.clone():
                        item = step()
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield item
                except GeneratorExit:
                    with switch.clone():
                        generator.close()
                    raise
                except BaseException as exc:  # noqa: BLE001 (handed into the generator)
                    step = functools.partial(generator.throw, exc)
                else:
                    step = functools.partial(generator.send, sent)
        finally:
            generator.close()

    return wrapper  # type: ignore[return-value]


class _PlainSwitch(ModeSwitch):
    """A switch without arguments, usable as ``@no_grad`` as well as ``@no_grad()`` (MOD-04)."""

    def __new__(cls, func: Any = None) -> Any:
        self = super().__new__(cls)
        return self if func is None else self(func)

    def __init__(self, func: Any = None) -> None:
        super().__init__()


class no_grad(_PlainSwitch):  # noqa: N801 (PyTorch's name)
    """Context and decorator: operations are not recorded (MOD-01). Thread-local. Results are leaves.

    >>> import xpgrad as xp
    >>> w = xp.tensor([1.0, 2.0], requires_grad=True)
    >>> with xp.no_grad():
    ...     (w * 2).requires_grad
    False
    """

    def _mode(self) -> Mode | None:
        return NO_GRAD if _STATE.get() is None else replaced(recording=False)


class enable_grad(_PlainSwitch):  # noqa: N801 (PyTorch's name)
    """Context and decorator: operations are recorded again inside `no_grad` (MOD-03); no effect in inference mode (INF-09)."""

    def _mode(self) -> Mode | None:
        return replaced(recording=True)


class set_grad_enabled(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Set recording on or off: at once as a function, for a block as a context, per call as a decorator (MOD-06).

    Parameters
    ----------
    mode : bool
    """

    def __init__(self, mode: bool) -> None:
        self.mode = bool(mode)
        self._tokens = (_STATE.get(),)
        _STATE.set(self._mode())

    def _mode(self) -> Mode | None:
        return replaced(recording=self.mode)

    def clone(self) -> set_grad_enabled:
        return _Applied(self.mode)

    def __enter__(self) -> None:
        _STATE.set(self._mode())  # the state before is the one that the constructor saw

    def __call__(self, func: F) -> F:
        _STATE.set(self._tokens[0])  # as a decorator it must not leak
        return super().__call__(func)


class _Applied(set_grad_enabled):
    """`set_grad_enabled` that acts on entering only (a decorated function's copy)."""

    def __init__(self, mode: bool) -> None:
        self.mode = mode
        self._tokens = ()

    def __enter__(self) -> None:
        ModeSwitch.__enter__(self)


_LAYOUT: ContextVar[bool] = ContextVar("xpgrad_layout_policy", default=True)
layout_policy: Callable[[], bool] = _LAYOUT.get


class enforce_grad_layout_policy(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Whether a new `.grad` takes its leaf's strides (the default), or may keep those that it came with (LAY-10).

    At once as a function, for a block as a context, per call as a decorator; thread-local.

    Parameters
    ----------
    enable : bool
    """

    def __init__(self, enable: bool) -> None:
        self.enable = bool(enable)
        self._before: tuple[bool, ...] = (_LAYOUT.get(),)
        _LAYOUT.set(self.enable)

    def clone(self) -> enforce_grad_layout_policy:
        """A fresh instance with the same argument."""
        return enforce_grad_layout_policy(self.enable)

    def __enter__(self) -> None:
        _LAYOUT.set(self.enable)

    def __exit__(self, *exc: object) -> None:
        _LAYOUT.set(self._before[0])

    def __call__(self, func: F) -> F:
        _LAYOUT.set(self._before[0])  # as a decorator it must not leak
        return super().__call__(func)


class inference_mode(ModeSwitch):  # noqa: N801 (PyTorch's name)
    """Context and decorator: no recording and no version counting; results are inference tensors (INF-01..11).

    Parameters
    ----------
    mode : bool, default True
        False nests back to normal.
    """

    def __new__(cls, mode: Any = True) -> Any:
        if isinstance(mode, bool):
            return super().__new__(cls)
        self = super().__new__(cls)
        self.mode = True
        return self(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def _mode(self) -> Mode | None:
        return replaced(inference=self.mode, recording=True) if self.mode else replaced(inference=False)

    def clone(self) -> inference_mode:
        return inference_mode(self.mode)
