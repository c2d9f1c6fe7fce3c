"""The modes' state: recording or not, inference, anomaly detection. One context variable holds it all.

`None` is the common state (recording, nothing special), so that the hot path makes a single call to a C function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

__all__ = ["Mode", "NO_GRAD", "current", "is_grad_enabled", "is_inference_mode_enabled", "put", "replaced", "restoring"]

P = ParamSpec("P")
R = TypeVar("R")


class Mode:
    """An immutable state of the modes.

    ``recording`` tells whether operations are recorded; whatever else a mode needs from a result happens in `finish_operation`.

    Attributes
    ----------
    recording, inference, check_nan : bool
    copies : bool
        Writes leave saved values alone (`allow_mutation_on_saved_tensors`).
    anomaly : Anomaly or None
        Remembers tracebacks, and watches what nodes compute (`_tape.anomaly`).
    packing : SavedHooks or None
        The hooks that are applied to what is saved (`saved_tensors_hooks`).
    levels : Levels, or an empty tuple
        The levels of forward mode that are active, the outermost first; they carry the tangents.
    capturing : Taking, or None
        What makes constants writable where a function is captured (`programs.capture`).
    selecting : Selection, or None
        What a selective checkpoint keeps of the results of operations (`utils._selective`).
    profiling : Recording, or None
        What notes when operations and nodes run (`autograd.profiler`).
    auditing : Trace, or None
        What notes which operations ran on what, and what left the graph (`_audit`).
    plain : bool
        There is nothing to add to a result: the hot path need not call `finish_operation`.
    outside : dict
        Forward mode's: the modes outside of each level, made once (`Levels.carry`).
    """

    __slots__ = (
        "anomaly", "auditing", "capturing", "check_nan", "copies", "inference", "levels", "outside", "packing", "plain", "profiling",
        "recording", "selecting",
    )  # fmt: skip

    def __init__(
        self, *, recording: bool = True, inference: bool = False, anomaly: Any = None, check_nan: bool = True, copies: bool = False,
        packing: Any = None, levels: Any = (), capturing: Any = None, selecting: Any = None, profiling: Any = None,
        auditing: Any = None,
    ) -> None:  # fmt: skip
        self.copies = copies
        self.inference = inference
        self.recording = recording and not inference
        self.anomaly = anomaly
        self.check_nan = check_nan
        self.packing = packing
        self.levels = levels
        self.outside: dict[Any, Any] = {}
        self.capturing = capturing
        self.selecting = selecting
        self.profiling = profiling
        self.auditing = auditing
        watched = self.recording and (anomaly is not None or packing is not None)
        asked = capturing is not None or selecting is not None or profiling is not None or auditing is not None
        self.plain = not (inference or levels or watched or asked)

    def finish(self, out: Any) -> None:
        """Add to a fresh constant (a Tensor) what this mode asks for."""
        if self.capturing is not None:
            self.capturing.take(out)
        if self.inference:
            out._become_inference()
        elif self.anomaly is not None and out._node is not None:
            self.anomaly.remember(out._node.owner)

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
        profiling = self.profiling
        event = None if profiling is None else profiling.finished(row)
        if self.selecting is not None:
            self.selecting.keep(out, row, operands, statics)  # before what follows computes anything
        # In inference mode a view of a normal Tensor stays normal (INF-08).
        if (self.inference or self.anomaly is not None or self.capturing is not None) and not (
            self.inference and row.is_view and (operands[0]._alias is None or operands[0]._alias.forbidden != "inference")
        ):
            for o in out if out.__class__ is tuple else (out,):
                self.finish(o)
        if self.packing is not None and self.recording:
            self.packing.keep(out, row, operands)
        if profiling is not None and event is not None:  # what hooks packed is theirs: a checkpoint's node keeps nothing
            profiling.made(event, out)
        if self.auditing is not None:
            self.auditing.ran(row, operands, statics, out)
        if self.levels and not self.inference:
            self.levels.carry(self, out, row, operands, statics)

    def _key(self) -> tuple[Any, ...]:
        return (
            self.recording, self.inference, self.anomaly, self.check_nan, self.copies, self.packing, self.levels, self.capturing,
            self.selecting, self.profiling, self.auditing,
        )  # fmt: skip


NO_GRAD = Mode(recording=False)
VARIABLE: ContextVar[Mode | None] = ContextVar("xpgrad_mode", default=None)
current: Callable[[], Mode | None] = VARIABLE.get
#: Set this context's mode. To set it for a while, remember `current()`, then put the new one inside of a `try` whose `finally` puts the old
#: one back: a C function that is called first there cannot be kept from it by an interrupt.
put: Callable[[Mode | None], Any] = VARIABLE.set
_COMMON = Mode()


def replaced(**changes: Any) -> Mode | None:
    """The current mode with some fields changed, in its canonical form."""
    mode = VARIABLE.get() or _COMMON
    fields: dict[str, Any] = {
        # Inside inference mode nothing records, whatever grad mode says (INF-09); remember grad mode as True.
        "recording": mode.recording or mode.inference,
        "inference": mode.inference,
        "anomaly": mode.anomaly,
        "check_nan": mode.check_nan,
        "copies": mode.copies,
        "packing": mode.packing,
        "levels": mode.levels,
        "capturing": mode.capturing,
        "selecting": mode.selecting,
        "profiling": mode.profiling,
        "auditing": mode.auditing,
    } | changes
    new = Mode(**fields)
    if new._key() == _COMMON._key():
        return None
    return NO_GRAD if new._key() == NO_GRAD._key() else new


def restoring(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function: after it the mode is what it was before, whatever interrupts it.

    Contexts that are written in Python cannot promise that: an interrupt may come between entering their `__exit__` and its first line.
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
    """Return whether operations are recorded in a mode; None is the common one."""
    return mode is None or mode.recording


def is_grad_enabled() -> bool:
    """Return whether operations are being recorded in this thread."""
    mode = VARIABLE.get()
    return mode is None or mode.recording


def carries_tangents() -> bool:
    """Return whether forward mode is active and something has a tangent: then gradients have tangents too, and passes run on Tensors."""
    mode = VARIABLE.get()
    return mode is not None and not mode.inference and any(level.active for level in mode.levels)


def is_inference_mode_enabled() -> bool:
    """Return whether `inference_mode` is active in this thread."""
    mode = VARIABLE.get()
    return mode is not None and mode.inference
