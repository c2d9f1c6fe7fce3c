"""Find wrong rules, custom rules whose vjp and jvp disagree, and gradients that lose precision in float32.

If the gradient of the function disagrees with finite differences, each operation is checked individually on the operands it ran with.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xpgrad._array.base import TensorBase
from xpgrad._audit.findings import Finding
from xpgrad._audit.paths import directional_derivative, directions
from xpgrad._audit.running import Outcome, Problem, host_of, shift, weighted_grads
from xpgrad._audit.tracing import Event
from xpgrad._basics.differences import Slope, best_slope, dot
from xpgrad._basics.dtypes import DTYPES
from xpgrad._rows.namespace import PRIMITIVES
from xpgrad.errors import XpgradError
from xpgrad.func import jvp
from xpgrad.rules.conversion import asarray

#: The maximum number of operations that are checked individually.
TRIED = 400
#: Up to this relative deviation of a gradient from a difference, an iteration that stops early may be the reason.
ROUGHLY = 1e-3


def epsilon(x: Any) -> float:
    """Return the machine epsilon of a Tensor's dtype."""
    return 2.0 ** (-52 if x.dtype.itemsize >= (16 if x.dtype.is_complex else 8) else -23 if x.dtype.itemsize >= 4 else -10)


# -- a single operation -----------------------------------------------------------------------------------------------


def _call(event: Event, operands: list[Any]) -> Any:
    """Run the operation of an event again on other operands, and return its result."""
    if event.function is not None:
        return event.function.apply(*operands)
    row: Any = event.row
    primitive = PRIMITIVES.get(row.name)
    if primitive is None:
        return getattr(operands[0] if isinstance(operands[0], TensorBase) else operands[1], f"_op_{row.name}")(
            *operands[1:], *event.statics
        )
    return primitive(operands, *event.statics) if row.varargs else primitive(*operands, *event.statics)


def _detach_operands(operands: Sequence[Any]) -> list[Any]:
    """Return the operands, with Tensors replaced by constant copies."""
    return [x.detach().clone() if isinstance(x, TensorBase) else x for x in operands]


def _results(event: Event, operands: list[Any]) -> list[Any]:
    """Run an operation again; return its floating-point and complex results."""
    found = _call(event, operands)
    return [o for o in (found if isinstance(found, tuple) else (found,)) if isinstance(o, TensorBase) and o.dtype.differentiable]


def _disagreement(event: Event, seed: int) -> tuple[float, float] | None:
    """Compare an operation's derivative along a random direction (`seed`) by its rule and by differences; return both if they differ."""
    places = [i for i, x in enumerate(event.operands) if isinstance(x, TensorBase) and x._node is not None and x.dtype.differentiable]
    if not places:
        return None
    operands = _detach_operands(event.operands)
    leaves = [operands[i].requires_grad_(True) for i in places]
    outs = [o for o in _results(event, operands) if o._node is not None]
    if not outs:
        return None
    hosts = [host_of(o) for o in outs]
    xp = hosts[0].__array_namespace__()
    drawn = xp.random.default_rng(seed)
    weights = [xp.asarray(drawn.uniform(0.5, 1.5, h.shape)).astype(h.dtype) for h in hosts]
    gs = weighted_grads(outs, weights, leaves)
    steps = []
    for x in leaves:
        host = host_of(x)
        size = max(float(abs(host).max()) if host.size else 0.0, 1e-3)
        steps.append(xp.asarray(drawn.uniform(0.5, 1.5, host.shape)) * drawn.choice([-1.0, 1.0], host.shape) * size)
    wanted = sum(directional_derivative(g, d) for g, d in zip(gs, steps))
    eps = max(epsilon(x) for x in leaves)

    def value(h: float) -> float:
        given = _detach_operands(event.operands)
        for i, d in zip(places, steps):
            given[i] = shift(given[i], h * d)
        return sum(dot(w, host_of(o)) for w, o in zip(weights, _results(event, given)))

    best = best_slope(value, math.nan, eps)
    if math.isinf(best.error) or not math.isfinite(wanted) or best.agrees(wanted, eps):
        return None
    return wanted, best.value


def _suspects(base: Outcome) -> list[Event]:
    """Return the operations to check, at most `TRIED`: custom Functions first, then one operation of each name and line."""
    seen: set[Any] = set()
    custom, others = [], []
    for i, event in enumerate(base.trace.events):
        if event.node is None or (event.row is not None and (event.row.is_step or event.row.name == "put_through")):
            continue  # `put_through` computes nothing: its memory has been written already
        copies = [base.trace.copies.get((i, j)) for j in range(len(event.tensors))]
        if any(c is not None and not _same(x.backend.to_host(x._array), c[1]) for c, x in zip(copies, event.tensors)):
            continue  # an operand has been written to since
        if event.function is not None:
            custom.append(event)
            continue
        key = (event.name, event.place)
        if event.row is not None and key not in seen:
            seen.add(key)
            others.append(event)
    return (custom + others)[:TRIED]


def wrong_gradient(problem: Problem, base: Outcome, doubtful: list[int], slopes: dict[int, Slope], gradients: list[Any]) -> list[Finding]:
    """Report the operations with wrong rules; if there are none, the inputs with wrong gradients and the direction.

    Parameters
    ----------
    problem : Problem
    base : Outcome
        The first run.
    doubtful : list of int
        The inputs whose gradients disagree with differences.
    slopes : dict
        Their derivatives by differences.
    gradients : list
        The gradients of all inputs.
    """
    found: list[Finding] = []
    seen: set[Any] = set()
    labels = tuple(problem.labels[k] for k in doubtful)
    for event in _suspects(base):
        if (event.name, event.place) in seen:
            continue
        try:
            bad = _disagreement(event, problem.seed)
        except (XpgradError, RuntimeError, TypeError, ValueError, NotImplementedError, ArithmeticError, AttributeError):
            continue  # it cannot be run on its operands alone
        if bad is not None:
            seen.add((event.name, event.place))
            ours, theirs = bad
            what = f"the rule of `{event.name}`" + ("" if event.function is None else ", a custom Function,")
            message = f"{what} gives the derivative {ours:.6g} along a direction, where central differences give {theirs:.6g}"
            found.append(Finding("wrong-gradient", "error", message, event.place, event.places, labels,
                                 {"operation": event.name, "gradient": ours, "differences": theirs}))  # fmt: skip
    if found:
        return found
    for k in doubtful:
        s = slopes.get(k)
        label = problem.labels[k]
        if s is None or math.isinf(s.error):
            message = (
                f"the gradient of `{label}` could not be compared with central differences: near the point the result is not "
                f"finite, or rough"
            )
            found.append(Finding("not-compared", "note", message, None, (), (label,), {}))
            continue
        ours = directional_derivative(gradients[k], directions(problem, k))
        message = (
            f"the gradient of `{label}` gives {ours:.6g} along a direction, where central differences give {s.value:.6g} (give or take "
            f"{s.error:.1g}); each operation agrees by itself"
        )
        near = abs(ours - s.value) <= ROUGHLY * (abs(ours) + abs(s.value))
        found.append(
            Finding(
                "inexact" if near else "wrong-gradient",
                "note" if near else "warning",
                message,
                None,
                (),
                (label,),
                {"gradient": ours, "differences": s.value},
            )
        )
    return found


# -- reverse beside forward --------------------------------------------------------------------------------------------


def directions_disagree(problem: Problem, base: Outcome, eps: float) -> list[Finding]:
    """Compare the `vjp` with the `jvp` of each custom Function that ran in the first run, `base`; `eps` is the precision of the dtype."""
    found: list[Finding] = []
    seen: set[Any] = set()
    for event in base.trace.events:
        if event.function is None or event.node is None or (event.function, event.place) in seen:
            continue
        seen.add((event.function, event.place))
        try:
            pair = _compare_modes(event, problem.seed)
        except (XpgradError, RuntimeError, TypeError, ValueError, NotImplementedError, AttributeError):
            continue  # it has no `jvp`, or cannot be run on its operands alone
        if pair is None:
            continue
        reverse, forward = pair
        if abs(reverse - forward) > math.sqrt(eps) * 100 * (abs(reverse) + abs(forward)) + 1e-300:
            message = (
                f"`{event.name}`: reverse mode (`vjp` or `backward`) gives {reverse:.6g} along a direction, and forward mode (`jvp`) "
                f"{forward:.6g}"
            )
            found.append(Finding("vjp-and-jvp", "error", message, event.place, event.places, (), {"vjp": reverse, "jvp": forward}))
    return found


def _compare_modes(event: Event, seed: int) -> tuple[float, float] | None:
    """Return a derivative of a custom Function along a random direction, by its vjp and by its jvp; None if it has none."""
    places = [i for i, x in enumerate(event.operands) if isinstance(x, TensorBase) and x._node is not None]
    given = _detach_operands(event.operands)

    def call(*primals: Any) -> Any:
        args = list(given)
        for i, p in zip(places, primals):
            args[i] = p
        return tuple(_results(event, args))

    points = tuple(given[i] for i in places)
    if not points:
        return None
    hosts = [host_of(p) for p in points]
    xp = hosts[0].__array_namespace__()
    drawn = xp.random.default_rng(seed)
    tangents = [xp.asarray(drawn.uniform(0.5, 1.5, h.shape)).astype(h.dtype) for h in hosts]
    outs, pushed = jvp(call, points, tuple(asarray(t, device=p.device, dtype=p.dtype) for t, p in zip(tangents, points)))
    weights = [xp.asarray(drawn.uniform(0.5, 1.5, host_of(o).shape)).astype(host_of(o).dtype) for o in outs]
    forward = sum(dot(w, host_of(t)) for w, t in zip(weights, pushed))
    leaves = [p.clone().requires_grad_(True) for p in points]
    again = call(*leaves)
    if not any(o.requires_grad for o in again):
        return None
    gs = weighted_grads(again, weights, leaves)
    return sum(directional_derivative(g, t) for g, t in zip(gs, tangents)), forward


# -- precision ---------------------------------------------------------------------------------------------------------


def digits_lost(problem: Problem, base: Outcome, gradients: list[Any]) -> list[Finding]:
    """Compare gradients in single and double precision, and report the operation that lost digits."""
    if not all(str(p.dtype) == "float32" for p in problem.points):
        return []
    wide = object.__new__(Problem)
    try:
        wide_flat = [_wide(x) for x in problem.flat]
        wide.__dict__ |= problem.__dict__ | {"flat": wide_flat, "points": [wide_flat[k].detach() for k in problem.places]}
        other = wide.run(keep=True)
        if other.error is not None or len(other.outputs) != len(base.outputs) or any(str(o.dtype) != "float64" for o in other.outputs):
            return []
        exact = wide.gradients(other)
    except (XpgradError, RuntimeError, TypeError, ValueError):
        return []  # no double precision on this device
    found: list[Finding] = []
    pairs: list[Any] = [
        (f"the gradient of `{n}`", (n,), g, e) for n, g, e in zip(problem.labels, gradients, exact) if g is not None and e is not None
    ]
    pairs += [("the result", (), o, e) for o, e in zip(base.outputs, other.outputs)]
    for what, inputs, g, e in pairs:
        if g.dtype.is_complex:
            continue
        ours, theirs = host_of(g).astype(float), host_of(e)
        if ours.shape != theirs.shape:
            return []
        scale = float((theirs**2).sum() ** 0.5)
        distance = float(((ours - theirs) ** 2).sum() ** 0.5)
        if not math.isfinite(distance) or distance <= 2e-3 * scale or scale == 0:
            continue
        digits = max(0.0, -math.log10(distance / scale))
        culprit = _where_lost(base, other)
        place, places, name = (None, (), "") if culprit is None else (culprit.place, culprit.places, culprit.name)
        at = f"; most are lost in `{name}`" if name else ""
        message = f"in float32 {what} has {digits:.1f} digits (float64 says {_shown(theirs)}, float32 {_shown(ours)}){at}"
        found.append(Finding("cancellation", "warning", message, place, places, inputs, {"digits": digits, "operation": name}))
    return found[:1]  # the other findings have the same cause


def _wide(x: Any) -> Any:
    """Convert a float32 Tensor or array to float64; return anything else unchanged."""
    if isinstance(x, TensorBase) and str(x.dtype) == "float32":
        return x.detach()._cast(DTYPES["float64"])
    return x.astype(float) if not isinstance(x, TensorBase) and str(getattr(x, "dtype", "")) == "float32" and hasattr(x, "astype") else x


def _shown(x: Any) -> str:
    """Format the first elements of a host array for a message."""
    flat = x.reshape(-1)
    return f"{flat[0]:.6g}" if flat.size == 1 else f"[{', '.join(f'{v:.6g}' for v in flat[:3])}{', ...' if flat.size > 3 else ''}]"


def _where_lost(base: Outcome, other: Outcome) -> Event | None:
    """Return the operation that increases the relative error of its operands most; None below a factor of 50, or if the runs differ."""
    if len(base.trace.events) != len(other.trace.events):
        return None
    errors: dict[int, float] = {}
    best, culprit = 0.0, None
    for mine, exact in zip(base.trace.events, other.trace.events):
        if mine.name != exact.name or not mine.outs:
            return None
        a, b = host_of(mine.outs[0]).astype(float), host_of(exact.outs[0]).astype(float)
        scale = float(abs(b).max()) if b.size else 0.0
        error = float(abs(a - b).max()) / scale if scale and math.isfinite(scale) else 0.0
        errors[id(mine.outs[0])] = error
        before = max([6e-8, *(errors.get(id(x), 6e-8) for x in mine.tensors)])
        if error / before > best:
            best, culprit = error / before, mine
    return culprit if best > 50 else None


# -- memory that was changed without the graph -------------------------------------------------------------------------


def unseen_writes(base: Outcome) -> list[Finding]:
    """Report saved values that were overwritten without autograd's knowledge: through `.data`, `.array` or NumPy."""
    for (i, j), (raw, before, version) in base.trace.copies.items():
        event = base.trace.events[i]
        x = event.tensors[j]
        unseen = version == (0 if x._alias is None else x._version)
        if unseen and any(h is raw for h in event.node.held()) and not _same(x.backend.to_host(raw), before):
            message = (
                f"an operand of `{event.name}` was overwritten after it was used, where autograd cannot see it (by `.data`, `.array` or "
                "shared memory): the gradient is computed from the new values"
            )
            return [Finding("overwritten", "error", message, event.place, event.places, (), {"operation": event.name})]
    return []


def _same(a: Any, b: Any) -> bool:
    return bool(((a == b) | ((a != a) & (b != b))).all())
