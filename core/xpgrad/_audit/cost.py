"""Sum the memory that the graph saves for backward by operation and line; find values saved twice and operations run twice."""

from __future__ import annotations

from typing import Any, NamedTuple

from xpgrad._array.base import TensorBase
from xpgrad._audit.findings import Finding
from xpgrad._audit.places import Place
from xpgrad._audit.running import Outcome, host_of
from xpgrad.autograd._drawing import array_size, bytes_text


class Kept(NamedTuple):
    """The memory that the operations with one name on one line save.

    Attributes
    ----------
    operation : str
    place : Place or None
    bytes : int
        Memory that several nodes save counts for the first one.
    nodes : int
    """

    operation: str
    place: Place | None
    bytes: int
    nodes: int


class Cost(NamedTuple):
    """The memory that the graph saves.

    Attributes
    ----------
    total : int
        Bytes.
    inputs : int
        The part of `total` that belongs to the inputs.
    lines : tuple of Kept
        The largest first.
    functions : tuple of (str, int, int)
        For each function of the user that the audited one calls: its name, the bytes that a checkpoint would save, and the operations
        that it would recompute.
    """

    total: int
    inputs: int
    lines: tuple[Kept, ...]
    functions: tuple[tuple[str, int, int], ...]


def costs(base: Outcome, nodes: list[Any]) -> tuple[Cost, list[Finding]]:
    """Sum the memory that nodes save, before the backward pass frees it; return it with the findings."""
    by_node = {e.node: e for e in base.trace.events if e.node is not None}
    given = {id(x._array) for x in base.inputs}
    seen: dict[int, Any] = {}
    sums: dict[tuple[str, Place | None], list[int]] = {}
    functions: dict[str, list[int]] = {}
    copies: dict[Any, list[tuple[Any, Any, int]]] = {}
    total = inputs = 0
    for node in reversed(nodes):
        event = by_node.get(node)
        size = 0
        for raw in node.held():
            if id(raw) in seen:
                continue
            seen[id(raw)] = raw
            n = array_size(raw, node.backend or getattr(node.cls, "backend", None)) or 0
            size += n
            if id(raw) in given:
                inputs += n
            elif event is not None and n >= 1024:
                copies.setdefault((tuple(raw.shape), str(raw.dtype)), []).append((raw, event, n))
        name = node.name() if event is None else event.name
        entry = sums.setdefault((name, None if event is None else event.place), [0, 0])
        entry[0] += size
        entry[1] += 1
        total += size
        for function in dict.fromkeys(p.function for p in (() if event is None else event.places[:-1])):
            one = functions.setdefault(function, [0, 0])
            one[0] += size
            one[1] += 1
    lines = sorted((Kept(name, place, b, n) for (name, place), (b, n) in sums.items() if b), key=lambda k: -k.bytes)
    ranked = sorted(((f, b, n) for f, (b, n) in functions.items() if b), key=lambda t: -t[1])
    found = _twice(copies) + _find_repeated(base)
    if total - inputs >= 1 << 20 and lines and lines[0].bytes * 2 >= total:
        k = lines[0]
        message = (
            f"`{k.operation}` keeps {bytes_text(k.bytes)} of the {bytes_text(total)} that the backward needs, in {k.nodes} operation(s)"
        )
        found.append(
            Finding("memory", "note", message, k.place, () if k.place is None else (k.place,), (), {"bytes": k.bytes, "total": total})
        )
    return Cost(total, inputs, tuple(lines), tuple(ranked)), found


def _twice(copies: dict[Any, list[tuple[Any, Any, int]]]) -> list[Finding]:
    """Report equal values that are saved in different memory."""
    found = []
    for group in copies.values():
        for i, (raw, event, n) in enumerate(group[:20]):
            for other, earlier, _ in group[:i]:
                backend = event.outs[0].backend
                a, b = backend.to_host(raw), backend.to_host(other)
                if a.shape == b.shape and bool((a == b).all()) and bool((a != a.reshape(-1)[0]).any()):
                    message = f"`{event.name}` keeps {bytes_text(n)} whose values `{earlier.name}` keeps, too ({earlier.place})"
                    details = {"bytes": n, "other": str(earlier.place)}
                    found.append(Finding("saved-twice", "note", message, event.place, event.places, (), details))
                    break
    return found


def _find_repeated(base: Outcome) -> list[Finding]:
    """Report operations that ran twice on the same operands."""
    found: list[Finding] = []
    seen: dict[Any, Any] = {}
    for event in base.trace.events:
        if event.node is None or event.row is None or event.row.is_view or not event.outs or event.outs[0].size < 64:
            continue
        try:
            key = (event.name, event.row.name, tuple(_key(base, x) for x in event.operands), tuple(map(repr, event.statics)))
        except TypeError:
            continue
        earlier = seen.setdefault(key, event)
        if earlier is not event and _same(earlier.outs[0], event.outs[0]):
            message = f"`{event.name}` was computed on the same operands before ({earlier.place})"
            found.append(Finding("recomputed", "note", message, event.place, event.places, (), {"other": str(earlier.place)}))
    return found


def _key(base: Outcome, x: Any) -> Any:
    return (id(x), 0 if x._alias is None else id(x._node)) if isinstance(x, TensorBase) else repr(x)


def _same(a: Any, b: Any) -> bool:
    a, b = host_of(a), host_of(b)
    return bool(a.shape == b.shape and ((a == b) | (a != a)).all())
