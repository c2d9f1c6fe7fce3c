"""Find operands at a kink or a tie of an operation, and report the derivative that was used.

A kink counts if a gradient arrives at it. It matters if the one-sided derivatives of the whole function differ, which is measured.
"""

from __future__ import annotations

import math
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._audit.findings import Finding
from xpgrad._audit.nonfinite import Pulled, first_index
from xpgrad._audit.running import Outcome, host_of
from xpgrad._audit.tracing import Event
from xpgrad._basics.differences import Slope
from xpgrad._rows.row import parameters


def _host(x: Any) -> Any:
    return host_of(x) if isinstance(x, TensorBase) else x


def _equal(event: Event) -> Any:
    return _host(event.operands[0]) == _host(event.operands[1])


def _mask_at_kink(event: Event) -> Any:
    """Return a mask of the elements at which the operands lie at the row's kink."""
    row: Any = event.row
    values = dict(zip((*row.tensors, *row.statics), (*event.operands, *event.statics)))
    values["out"] = event.outs[0]
    where = row.kink.where
    return where(*[_host(values[name]) for name in parameters(where)])


#: Comparisons by order.
_ORDERS = ("<", "<=", ">", ">=")


def at_kinks(base: Outcome, pulled: list[Pulled], slopes: dict[int, Slope], eps: float) -> list[Finding]:
    """Return the findings about kinks and ties, at most one per line of the user's code.

    Parameters
    ----------
    pulled : list of Pulled
    slopes : dict
        Key -1: the derivative of the whole function along a direction of all inputs, with its one-sided quotients.
    """
    arrived = {p.node: p for p in pulled}
    whole = slopes.get(-1)
    matters = True
    if whole is not None and math.isfinite(whole.right) and math.isfinite(whole.left):
        scale = abs(whole.right) + abs(whole.left)
        matters = abs(whole.right - whole.left) > max(1e-3 * scale, 20 * whole.error * 1e-3)
    found: dict[Any, Finding] = {}
    edges = _edges(base)
    for event in base.trace.events:
        p = arrived.get(event.node) if event.node is not None else None
        if p is None or event.row is None:
            continue
        row = event.row
        if row.name == "where" and id(event.operands[0]) in edges:
            found_at = _mask_of_ties(event, edges[id(event.operands[0])])
            kind, words = "kink", f"`{edges[id(event.operands[0])][0].name}` compares equal values, and `where` takes one side"
        elif row.kink is not None:
            found_at, kind, words = _mask_at_kink(event), "tie" if row.kink.tie else "kink", f"`{event.name}` {row.kink.text}"
        else:
            continue
        finding = _finding(event, p, kind, words, found_at, matters)
        if finding is not None and (finding.kind, finding.place) not in found:
            found[finding.kind, finding.place] = finding
    return list(found.values())


def _edges(base: Outcome) -> dict[int, tuple[Event, Any]]:
    """Return order comparisons of recorded operands with equal elements, each with a mask of these, by the id of its result."""
    found = {}
    for event in base.trace.events:
        if event.row is not None and event.row.op in _ORDERS and any(x._node is not None for x in event.tensors):
            at = _equal(event)
            if hasattr(at, "any") and bool(at.any()):
                found[id(event.outs[0])] = event, at
    return found


def _mask_of_ties(event: Event, edge: tuple[Event, Any]) -> Any:
    """Return a mask of the elements at which a `where` depends on a comparison of equal values."""
    at = edge[1]
    shape = event.outs[0].shape
    return at if at.shape == shape else at.__array_namespace__().broadcast_to(at, shape)


def _finding(event: Event, p: Pulled, kind: str, words: str, where: Any, matters: bool) -> Finding | None:
    """Return the finding about elements at a kink or tie (the mask `where`) that receive a gradient; None if there are none."""
    if not hasattr(where, "any") or not bool(where.any()):
        return None
    g = p.arrived[0] if p.arrived else None
    if g is None:
        return None
    if g.shape == where.shape:
        where = where & (g != 0)
    elif not bool((g != 0).any()):
        return None
    if not bool(where.any()):
        return None
    index = first_index(where)
    used = _format_factors(p, g, where, index)
    count = int(where.sum())
    effect = (
        "the one-sided derivatives of the result differ"
        if matters
        else "the one-sided derivatives of the result agree along the direction that was tried"
    )
    text = f"{words}: {count} of {where.size} element{'s' if where.size > 1 else ''}, the first at index {list(index)}{used}; {effect}"
    details = {"operation": event.name, "count": count, "index": list(index)}
    return Finding(kind, "warning" if matters else "note", text, event.place, event.places, (), details)


def _format_factors(p: Pulled, g: Any, where: Any, index: tuple[int, ...]) -> str:
    """Format the factors by which the gradient was multiplied at an element."""
    parts = []
    for left in p.left:
        if left is None:
            continue
        if left.shape == where.shape:
            there = float(abs(g[index])) if g.shape == where.shape else float(abs(g).max())
            value = left[index].real
            sign = g[index].real if g.shape == where.shape else g.reshape(-1)[0].real
            parts.append(f"{float(value) / float(sign):.3g}" if there and sign else f"{float(value):.3g}")
    return f"; the derivative used there is {', '.join(parts)}" if parts else ""
