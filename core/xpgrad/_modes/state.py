"""The state of the modes: recording, inference, anomaly detection and observers, in one context variable.

None stands for the default state, so that the hot path makes a single call to a C function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True, eq=False)
class Mode:
    """A combination of modes. It is immutable: `mode_with` makes a changed copy.

    Attributes
    ----------
    recording, inference, check_nan : bool
        Inference mode never records.
    copies : bool
        Writes do not change saved values (`allow_mutation_on_saved_tensors`).
    anomaly : Anomaly or None
        Anomaly detection, which records tracebacks and checks what nodes compute (`_tape.anomaly`).
    numpy : object or None
        What differs in code that was written for NumPy (`_numpy.semantics`).
    packing : SavedHooks or None
        The hooks for saved values (`saved_tensors_hooks`).
    no_hooks : str or None
        The message of the error for setting such hooks (`disable_saved_tensors_hooks`).
    levels : Levels, or an empty tuple
        The active levels of forward mode, the outermost first; they store the tangents.
    capturing, selecting, profiling, auditing : object or None
        Observers that the methods below notify of operations and writes: a capture, whose constants become captured Tensors
        (`programs.capture.Taking`), a selective checkpoint, which stores results (`utils._selective`), a profile (`autograd.profiler`) and
        the trace of an audit (`_audit.tracing.Trace`).
    replaced : tuple of context managers
        The calls of `functional_call` that run, the outermost first.
    plain : bool
        No mode acts on results: the hot path need not call `finish_operation`.
    only_copies : bool
        Operations are recorded, and no other mode than `copies` is active.
    outside : dict
        For forward mode, the modes outside each level, which are made once (`Levels.carry`).
    """

    recording: bool = True
    inference: bool = False
    check_nan: bool = True
    copies: bool = False
    numpy: Any = None
    anomaly: Any = None
    packing: Any = None
    no_hooks: str | None = None
    levels: Any = ()
    capturing: Any = None
    selecting: Any = None
    profiling: Any = None
    auditing: Any = None
    replaced: tuple[Any, ...] = ()
    plain: bool = field(init=False)
    only_copies: bool = field(init=False)
    outside: dict[Any, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.recording = self.recording and not self.inference
        watched = self.recording and (self.anomaly is not None or self.packing is not None)
        observed = not (self.capturing is self.selecting is self.profiling is self.auditing is None)
        self.plain = not (self.inference or self.levels or watched or observed or self.copies)
        self.only_copies = self.copies and self.recording and not (self.levels or watched or observed)

    def finish(self, out: Any) -> None:
        """Apply this mode to a new Tensor without operands, such as a constant."""
        if self.capturing is not None:
            self.capturing.take(out)
        if self.inference:
            out._become_inference()
        elif self.anomaly is not None and out._node is not None:
            self.anomaly.record_traceback(out._node.owner)

    def finish_operation(self, out: Any, row: Any, operands: tuple[Any, ...], statics: tuple[Any, ...]) -> None:
        """Apply this mode to the new result of an operation.

        Parameters
        ----------
        out : Tensor or tuple of Tensor
        row : Row
        operands : tuple
            Tensors and at most one Python scalar, unified; for a row with ``varargs`` one list of Tensors.
        statics : tuple
        """
        profiling = self.profiling
        event = None if profiling is None else profiling.finish(row)
        if self.selecting is not None:
            self.selecting.keep(out, row, operands, statics)  # before the steps below compute anything
        if self.capturing is not None:
            self.capturing.watch(operands)
        # In inference mode a view of a normal Tensor stays normal (INF-08).
        if (self.inference or self.anomaly is not None or self.capturing is not None) and not (
            self.inference and row.is_view and (operands[0]._alias is None or operands[0]._alias.forbidden != "inference")
        ):
            for o in out if out.__class__ is tuple else (out,):
                self.finish(o)
        if self.copies and row.is_view and (operands[0]._alias is None or operands[0]._alias.forbidden != "inference"):
            for o in out if out.__class__ is tuple else (out,):
                if o.backend.capabilities.mutable:
                    o.backend.separate(o)
        if self.numpy is not None:
            self.numpy.finish_operation(out, row, operands)
        if self.packing is not None and self.recording:
            self.packing.keep(out, row, operands)
        if profiling is not None and event is not None:  # what hooks packed is theirs: a checkpoint's node keeps nothing
            profiling.record_node(event, out)
        if self.auditing is not None:
            self.auditing.ran(row, operands, statics, out)
        if self.levels and not self.inference:
            self.levels.set_tangents(self, out, row, operands, statics)

    # -- what observers are told besides -------------------------------------------------------------------------------

    def finish_computed(self, name: str, operands: tuple[Any, ...], out: Any) -> None:
        """Apply this mode to the new constant result of a public function that is not a row."""
        self.finish(out)
        if self.auditing is not None:
            self.auditing.record_computed(name, operands, out)

    def note_write(self, x: Any, value: Any) -> None:
        """Notify the capture and the audit of a write to a Tensor."""
        if self.capturing is not None:
            self.capturing.wrote()
        if self.auditing is not None:
            self.auditing.wrote(x, value)

    def call(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that computes outside the generated operations, timed by a profile."""
        return function(*args, **kwargs) if self.profiling is None else self.profiling.call(name, function, *args, **kwargs)

    def note_node(self, node: Any) -> None:
        """Notify the profile of the node that a function called by `call` made."""
        if self.profiling is not None:
            self.profiling.made_node(None, node)


NO_GRAD = Mode(recording=False)
VARIABLE: ContextVar[Mode | None] = ContextVar("xpgrad_mode", default=None)
current: Callable[[], Mode | None] = VARIABLE.get
#: Set this context's mode. To set it for a while, remember `current()`, then put the new one inside of a `try` whose `finally` puts the old
#: one back: a C function that is called first there cannot be kept from it by an interrupt.
put: Callable[[Mode | None], Any] = VARIABLE.set
_FIELDS = tuple(f.name for f in fields(Mode) if f.init)
_values_of: Callable[[Mode], tuple[Any, ...]] = attrgetter(*_FIELDS)
_COMMON, _NO_GRAD = _values_of(Mode()), _values_of(NO_GRAD)


def mode_with(**changes: Any) -> Mode | None:
    """Return the current mode with some fields changed; None stands for the default mode."""
    mode = VARIABLE.get()
    values = dict(zip(_FIELDS, _COMMON if mode is None else _values_of(mode)))
    if mode is not None and mode.inference:
        values["recording"] = True  # inside inference mode nothing records, whatever grad mode says (INF-09); remember it as True
    values.update(changes)
    new = tuple(values.values())
    return None if new == _COMMON else NO_GRAD if new == _NO_GRAD else Mode(*new)


def mode_for_numpy_code(semantics: Any) -> Mode | None:
    """Return the current mode for code that was written for NumPy; it replaces inference mode, whose views do not know their base."""
    mode = VARIABLE.get()
    return mode_with(copies=True, numpy=semantics, inference=False, recording=mode is None or mode.recording)


def are_equal(a: Mode | None, b: Mode | None) -> bool:
    """Return whether two modes are the same combination; None stands for the default mode."""
    return a is b or (_COMMON if a is None else _values_of(a)) == (_COMMON if b is None else _values_of(b))


def restoring(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function so that the mode is restored after it, even after an interrupt.

    A context manager written in Python cannot guarantee that: an interrupt may arrive before the first line of its `__exit__`.
    """

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        before = VARIABLE.get()
        try:
            return function(*args, **kwargs)
        finally:
            VARIABLE.set(before)

    return wrapper


def records(mode: Mode | None) -> bool:
    """Return whether operations are recorded in a mode; None stands for the default mode."""
    return mode is None or mode.recording


def is_grad_enabled() -> bool:
    """Return whether operations are being recorded in this thread.

    Returns
    -------
    bool
        False inside `no_grad` and `inference_mode`, and after ``set_grad_enabled(False)``.

    Examples
    --------
    >>> import xpgrad as xp
    >>> with xp.no_grad():
    ...     print(xp.is_grad_enabled())
    False
    >>> xp.is_grad_enabled()
    True
    """
    mode = VARIABLE.get()
    return mode is None or mode.recording


def carries_tangents() -> bool:
    """Return whether forward mode is active and a Tensor has a tangent; backward passes then run on Tensors, to carry tangents."""
    mode = VARIABLE.get()
    return mode is not None and not mode.inference and any(level.active for level in mode.levels)


def is_inference_mode_enabled() -> bool:
    """Return whether `inference_mode` is active in this thread.

    Returns
    -------
    bool
        True inside `inference_mode`.

    Examples
    --------
    >>> import xpgrad as xp
    >>> with xp.inference_mode():
    ...     print(xp.is_inference_mode_enabled())
    True
    """
    mode = VARIABLE.get()
    return mode is not None and mode.inference
