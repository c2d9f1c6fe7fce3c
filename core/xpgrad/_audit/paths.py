"""Find by experiment the inputs whose influence on the result bypasses the graph, and the lines where it leaves the graph.

The derivative along a direction is measured twice: with the values that leave the graph free, and with all of them frozen. A difference
means that a part of the derivative leaves the graph; freezing more and more values tells where. An input without a gradient, or with a zero
gradient, is also shifted by finite steps, which act through roundings and comparisons. The result is compared with the reachability in the
graph, never with a guess from the names of operations.
"""

from __future__ import annotations

import math
from typing import Any

from xpgrad._audit.findings import Finding
from xpgrad._audit.places import Place
from xpgrad._audit.running import Outcome, Problem, host_of, shift
from xpgrad._audit.tracing import Break, Trace
from xpgrad._basics.differences import Slope, best_slope, dot

#: The steps by which an input is shifted to see whether the result depends on it, relative to its size.
FINITE = (0.05, -0.05, 0.7, -0.7, 3.0, -3.0)


#: Kinds of breaks by which a value, and not only a comparison of it, leaves the graph.
_LEFT = ("detached", "no-grad", "left-as-number", "left-as-array", "inner-gradient", "written")


def directions(problem: Problem, k: int) -> Any:
    """Return a random direction with the shape and size of an input."""
    host = host_of(problem.points[k])
    xp = host.__array_namespace__()
    drawn = xp.random.default_rng(problem.seed + 1 + k)
    v = drawn.uniform(0.5, 1.5, host.shape) * drawn.choice([-1.0, 1.0], host.shape)
    if host.dtype.kind == "c":
        v = v + 1j * drawn.uniform(0.5, 1.5, host.shape) * drawn.choice([-1.0, 1.0], host.shape)
    sizes = abs(host[abs(host) < math.inf]) if host.size else host
    size = float((sizes.astype(float) ** 2).mean() ** 0.5) if sizes.size else 1.0
    return xp.asarray(v * (size if size > 0 else 1.0))


def shift_input(problem: Problem, k: int, step: Any) -> list[Any]:
    """Return the points, with the k-th one shifted by a host array."""
    points = list(problem.points)
    points[k] = shift(points[k], step)
    return points


def _run_at(problem: Problem, points: list[Any], base: Trace | None, frozen: Any) -> float:
    """Return the weighted sum of the results at other points, with some values frozen; NaN if the function raises."""
    outcome = problem.run(points, base, frozen)
    if outcome.error is not None:
        return math.nan
    return problem.value(outcome.outputs)


def slope(problem: Problem, direction: dict[int, Any], middle: float, eps: float, base: Trace | None = None, frozen: Any = ()) -> Slope:
    """Differentiate by central differences, with decreasing steps until the quotients agree.

    Parameters
    ----------
    direction : dict
        Host arrays by input number.
    middle : float
        The value at the point itself.
    eps : float
        The machine epsilon of the function's precision.
    """

    def at(h: float) -> float:
        points = list(problem.points)
        for k, v in direction.items():
            points[k] = shift(points[k], h * v)
        return _run_at(problem, points, base, frozen)

    return best_slope(at, middle, eps)


def directional_derivative(gradient: Any, direction: Any) -> float:
    """Return the derivative along a direction from a gradient; 0 for None."""
    if gradient is None:
        return 0.0
    return dot(host_of(gradient), direction)


def broken_paths(problem: Problem, base: Outcome, gradients: list[Any], middle: float, eps: float) -> tuple[list[Finding], list[int]]:
    """Find derivatives that are lost on paths outside the graph.

    Returns
    -------
    tuple
        The findings, and the inputs whose gradient does not agree with differences, whether values that left the graph are frozen or not.
    """
    found: list[Finding] = []
    doubtful: list[int] = []
    every = range(len(base.trace.breaks))
    for k, label in enumerate(problem.labels):
        v = directions(problem, k)
        if not v.size or not math.isfinite(middle):
            continue
        wanted = directional_derivative(gradients[k], v)
        free = slope(problem, {k: v}, middle, eps)
        silent = gradients[k] is None or not bool((abs(host_of(gradients[k])) > 0).any())
        if math.isinf(free.error):
            if not silent:
                doubtful.append(k)
            continue
        if not free.agrees(wanted, eps):
            held = slope(problem, {k: v}, middle, eps, base.trace, every) if every else free
            if every and held.agrees(wanted, eps) and not free.agrees(held.value, eps):
                found += _lost(problem, base, k, v, middle, eps, free, held)
                continue
            entry = _reentry(problem, base, k, v)
            if entry is not None and gradients[k] is None:
                found.append(_make_capture_finding(label, entry, free.value))
            else:
                doubtful.append(k)
        elif silent:
            found += _steps(problem, base, k, v, gradients[k], middle, eps)
    return _merge(found), doubtful


def unchecked_breaks(base: Outcome) -> list[Finding]:
    """Report the first value that left the graph of a function whose result is not finite, which `broken_paths` cannot examine."""
    left = [group for group in _groups(base) if group[0].kind in _LEFT]
    if not left:
        return []
    first = left[0][0]
    others = f", and by {len(left) - 1} other line{'s' if len(left) > 2 else ''}" if len(left) > 1 else ""
    message = f"`{first.call}` takes a value out of the graph{others}; whether a derivative is lost cannot be measured at these arguments"
    return [Finding("unchecked", "warning", message, first.place, first.places)]


def _groups(base: Outcome) -> list[list[Break]]:
    """Group the values that left the graph by line, in order of occurrence."""
    groups: dict[Any, list[Break]] = {}
    for b in base.trace.breaks:
        groups.setdefault(b.group, []).append(b)
    return list(groups.values())


def _lost(problem: Problem, base: Outcome, k: int, v: Any, middle: float, eps: float, free: Slope, held: Slope) -> list[Finding]:
    """Report the lines at which a derivative is lost; the share of a line is the change when its values are frozen as well.

    Parameters
    ----------
    problem : Problem
    base : Outcome
        The first run.
    k : int
        The input.
    v : Tensor
        The direction in which it moves.
    middle, eps : float
        The result of the first run, and the precision of the dtype.
    free, held : Slope
        The derivative if nothing is frozen, and if all values that left the graph are.
    """
    found, frozen, before = [], set(), free
    for group in _groups(base):
        frozen |= {b.number for b in group}
        now = slope(problem, {k: v}, middle, eps, base.trace, frozen)
        share = before.value - now.value
        if not before.agrees(now.value, eps):
            b = group[0]
            part = f" ({abs(share / free.value):.0%})" if free.value and abs(share) <= 10 * abs(free.value) else ""
            message = (
                f"`{b.call}` takes a value of `{problem.labels[k]}` out of the graph: along a direction, the result changes at the rate "
                f"{free.value:.6g}, the gradient says {held.value:.6g}, and {share:.6g}{part} is lost here"
            )
            details = {"call": b.call, "true": free.value, "gradient": held.value, "lost": share, "times": len(group)}
            found.append(_make_finding(b, "error", message, problem.labels[k], details))
        before = now
        if now.agrees(held.value, eps):
            break
    return found


def _make_finding(b: Break, severity: str, message: str, label: str, details: dict[str, Any]) -> Finding:
    return Finding(b.kind, severity, message, b.place, b.places, (label,), details)


def _steps(problem: Problem, base: Outcome, k: int, v: Any, gradient: Any, middle: float, eps: float) -> list[Finding]:
    """Shift input `k`, which has no derivative, along `v` by finite steps, and report the effect; the parameters are those of `_lost`."""
    label = problem.labels[k]
    found_at = None
    tolerance = math.sqrt(eps) * abs(middle) * 1e-3 + 1e-300
    for step in FINITE:
        value = _run_at(problem, shift_input(problem, k, step * v), None, ())
        if math.isfinite(value) and abs(value - middle) > tolerance:
            found_at = step, value
            break
    if found_at is None:
        if gradient is not None:
            return []  # the input enters the result with a factor that is zero here
        entry = _same_values(problem, base, k, v)
        if entry is not None:
            return [_make_capture_finding(label, entry, None)]
        return [Finding("unused", "warning", f"the result does not depend on `{label}`: it has no gradient, and moving it changes nothing",
                        None, (), (label,), {})]  # fmt: skip
    step, value = found_at
    frozen: set[int] = set()
    points = shift_input(problem, k, step * v)
    for group in _groups(base):
        frozen |= {b.number for b in group}
        now = _run_at(problem, points, base.trace, frozen)
        if abs(now - middle) <= tolerance:
            b = group[0]
            if gradient is not None and b.kind in ("compared", "index"):
                break  # the graph also leads to the result, and the value that it selects here is constant
            if b.number in base.trace.branches:
                b = b._replace(kind="branch")
            message = (
                f"`{label}` reaches the result only through `{b.call}`, whose derivative is zero: moved by {step:+.0%} of its size, it "
                f"changes the result from {middle:.6g} to {value:.6g}, and its gradient is {'None' if gradient is None else 'zero'}"
            )
            return [_make_finding(b, "error", message, label, {"call": b.call, "before": middle, "after": value, "step": step})]
    if gradient is None:
        entry = _reentry(problem, base, k, step * v)
        return [] if entry is None else [_make_capture_finding(label, entry, None)]
    message = (
        f"the gradient of `{label}` is exactly zero, but moved by {step:+.0%} of its size it changes the result from "
        f"{middle:.6g} to {value:.6g}"
    )
    return [Finding("flat", "note", message, None, (), (label,), {"before": middle, "after": value, "step": step})]


# -- values that come back as constants -------------------------------------------------------------------------------


def _constants(outcome: Outcome) -> dict[tuple[int, int], Any]:
    """Return the operands that are neither results nor inputs, by operation and position."""
    trace = outcome.trace
    inputs = {id(x) for x in outcome.inputs}
    found = {}
    for i, event in enumerate(trace.events):
        for j, x in enumerate(event.operands):
            if hasattr(x, "_node"):
                known = id(x) in inputs or id(x) in trace.came or trace.producers.get(id(x), i) < i
                if not known and x._node is None:
                    found[i, j] = host_of(x)
            elif isinstance(x, (int, float, complex)):
                found[i, j] = x
    return found


def entries(problem: Problem, base: Outcome, k: int, v: Any) -> list[tuple[int, int]]:
    """Return the constants that change when input `k` is shifted along `v`, as pairs of operation and operand numbers."""
    other = problem.run(shift_input(problem, k, 0.01 * v), keep=True)
    if other.error is not None or len(other.trace.events) != len(base.trace.events):
        return []
    before, after = _constants(base), _constants(other)
    return [at for at, value in before.items() if at in after and not _equal(value, after[at])]


def _reentry(problem: Problem, base: Outcome, k: int, v: Any) -> tuple[Place | None, tuple[Place, ...], str] | None:
    """Find the place at which a constant that depends on input `k`, shifted along `v`, enters the graph; None if there is none."""
    for at in entries(problem, base, k, v):
        event = base.trace.events[at[0]]
        return event.place, event.places, event.name
    return None


def _same_values(problem: Problem, base: Outcome, k: int, v: Any) -> tuple[Place | None, tuple[Place, ...], str] | None:
    """Find where a constant was created whose values equal those of input `k`, which receives no gradient; None if there is none."""
    wanted = host_of(problem.points[k])
    if wanted.size < 2:
        return None
    follow = set(entries(problem, base, k, v))  # copies of the input itself
    for at, value in _constants(base).items():
        if at not in follow and hasattr(value, "shape") and _equal(value, wanted):
            event = base.trace.events[at[0]]
            return event.place, event.places, event.name
    return None


def _equal(a: Any, b: Any) -> bool:
    """Return whether two constants are equal; NaN equals NaN."""
    if hasattr(a, "shape") and hasattr(b, "shape"):
        return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
    return bool(a == b)


def _make_capture_finding(label: str, entry: tuple[Place | None, tuple[Place, ...], str], rate: float | None) -> Finding:
    place, places, name = entry
    lost = "" if rate is None else f"; the result changes at the rate {rate:.6g}"
    message = f"a constant with the values of `{label}` enters here, in `{name}`, and `{label}` has no gradient{lost}"
    return Finding("captured", "error", message, place, places, (label,), {"operation": name})


def _merge(found: list[Finding]) -> list[Finding]:
    """Merge findings that differ only in the input."""
    out: dict[Any, Finding] = {}
    for f in found:
        key = (f.kind, f.place, f.details.get("call")) if f.place is not None else (f.kind, f.inputs)
        before = out.get(key)
        if before is None:
            out[key] = f
        else:
            more = before.inputs + tuple(i for i in f.inputs if i not in before.inputs)
            out[key] = before._replace(inputs=more)
    return list(out.values())
