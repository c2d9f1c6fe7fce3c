"""Find gradients that vanish or explode with depth, by the strength of the result's dependence on each value.

The strength is the norm of the value's gradient times the norm of the value, relative to the size of the result, and so does not depend on
units.
"""

from __future__ import annotations

import math
from typing import Any

from xpgrad._audit.findings import Finding
from xpgrad._audit.nonfinite import Pulled
from xpgrad._audit.running import Outcome, host_of

#: A chain is reported if its ends differ by this factor, and it has at least this many operations.
FACTOR, DEPTH = 1e7, 12


def _norm(x: Any) -> float:
    wide = abs(x).astype(float)
    top = float(wide.max()) if wide.size else 0.0
    return top * float(((wide / top) ** 2).sum() ** 0.5) if top and math.isfinite(top) else top


def dependence(base: Outcome, pulled: list[Pulled]) -> list[tuple[int, float]]:
    """Return for each operation, in the order of the backward pass, its number and the strength of the result's dependence on it."""
    numbers = {e.node: i for i, e in enumerate(base.trace.events) if e.node is not None}
    out = []
    for p in pulled:
        i = numbers.get(p.node)
        if i is None or not p.arrived or p.arrived[0] is None:
            continue
        value = host_of(base.trace.events[i].outs[0])
        if value.shape == p.arrived[0].shape:
            out.append((i, _norm(p.arrived[0]) * _norm(value)))
    return out


def far_ranges(base: Outcome, pulled: list[Pulled]) -> list[Finding]:
    """Report vanishing and exploding gradients."""
    curve = [(i, s) for i, s in dependence(base, pulled) if s > 0 and math.isfinite(s)]
    if len(curve) < DEPTH:
        return []
    first = sorted(s for _, s in curve[:4])[2]
    last = sorted(s for _, s in curve[-4:])[1]
    ratio = last / first
    if 1 / FACTOR < ratio < FACTOR or not _is_gradual(curve, ratio):
        return []
    kind = "vanishing" if ratio < 1 else "exploding"
    event = base.trace.events[curve[-1][0]]
    message = (
        f"over {len(curve)} operations, the dependence of the result on the values falls from {first:.3g} to {last:.3g}"
        if ratio < 1
        else f"over {len(curve)} operations, the dependence of the result on the values grows from {first:.3g} to {last:.3g}"
    )
    return [Finding(kind, "warning", message, event.place, event.places, (), {"first": first, "last": last, "depth": len(curve)})]


def _is_gradual(curve: list[tuple[int, float]], ratio: float) -> bool:
    """Return whether the magnitudes change gradually: each quarter of the operations has less than 70 % of the change, in decades."""
    logs = [math.log10(s) for _, s in curve]
    n = len(logs)
    whole = math.log10(ratio)
    parts = [(logs[min(n - 1, (k + 1) * n // 4)] - logs[k * n // 4]) / whole for k in range(4)]
    return max(parts) < 0.7
