"""Operations that ask the mode, before they compute, for an existing result or to be timed.

Selective checkpoints use the first to avoid recomputation, and the profiler uses the second.

The generated text of an operation computes first and looks at the mode afterwards, once. While a row is watched, the backends' Tensor
classes have a second implementation of it instead: the same text with another kernel, which asks the mode of its thread
(`Mode.selecting`, `Mode.profiling`). Afterwards the first implementation is restored, so that unwatched programs pay nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from xpgrad._basics.threads import renew_in_children
from xpgrad._modes import state
from xpgrad._rows.row import Row

#: What a selection returns if it has no result for a call.
ABSENT: Any = object()

Methods = dict[str, Callable[..., Any]]


class _Pair(NamedTuple):
    """The two implementations of a row on a backend; the list of the second is empty until the row is watched."""

    cls: Any
    plain: Methods
    watched: list[Methods]
    make: Callable[[Any], Methods]  # takes a kernel


_LOCK = threading.RLock()
renew_in_children(globals(), "_LOCK")
_MADE: dict[Row, dict[Any, _Pair]] = {}
_WATCHERS: dict[Row, set[Watching]] = {}


def install(row: Row, backend: Any, methods: Methods, make: Callable[[Any], Methods]) -> None:
    """Set the implementation of a row on a backend's Tensor class: `methods`, or ``make(kernel)`` while the row is watched."""
    cls = backend.tensor_base
    if cls.stage:  # batches and captures end in operations on the Tensors that they interpret, which are watched
        _install(cls, methods)
        return
    with _LOCK:
        _MADE.setdefault(row, {})[backend] = pair = _Pair(cls, methods, [], make)
        _choose(row, pair)


def _choose(row: Row, pair: _Pair) -> None:
    """Set the plain or the watched implementation of a row on a Tensor class, depending on whether the row is watched."""
    if not _WATCHERS.get(row):
        _install(pair.cls, pair.plain)
        return
    if not pair.watched:
        pair.watched.append(pair.make(_make_asking_kernel(row, pair.cls.backend)))
    _install(pair.cls, pair.watched[0])


def _install(cls: Any, methods: Methods) -> None:
    """Set methods on a Tensor class."""
    for name, method in methods.items():
        setattr(cls, name, method)


def _make_asking_kernel(row: Row, backend: Any) -> Callable[..., Any]:
    """Return a kernel that returns a result supplied by the mode, if there is one, and otherwise computes, timed if the mode profiles."""
    compute: Any = getattr(backend.kernels, row.name, None)
    if row.operator and backend.has_operator(row.name) and not row.statics:
        compute = row.operator.function

    def kernel(*args: Any) -> Any:
        mode = state.current()
        if mode is None:
            return compute(*args)
        if mode.selecting is not None:
            found = mode.selecting.result(row, backend, args)
            if found is not ABSENT:
                return found
        return compute(*args) if mode.profiling is None else mode.profiling.time_operation(row, backend, compute, args)

    return kernel


class Watching:
    """Context manager in which the operations of some rows ask the mode before they compute.

    It affects all threads, but the modes of other threads have no answer. Several may overlap.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)

    def __enter__(self) -> None:
        try:
            with _LOCK:
                for row in self._rows:
                    _WATCHERS.setdefault(row, set()).add(self)
                    self._follow(row)
        except BaseException:  # an interrupt: `__exit__` is not called
            self._leave()
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            self._leave()
        except BaseException:  # an interrupt: the other rows must not stay watched
            self._leave()
            raise

    def _leave(self) -> None:
        """Stop watching; a second call, or one for rows that were not reached, changes nothing more."""
        with _LOCK:
            for row in self._rows:
                _WATCHERS.get(row, set()).discard(self)
                self._follow(row)

    @staticmethod
    def _follow(row: Row) -> None:
        """Update the implementations of a row after its number of watchers changed."""
        if len(_WATCHERS.get(row, ())) < 2:  # 0 or 1: the implementations may have to change
            for pair in _MADE.get(row, {}).values():
                _choose(row, pair)
